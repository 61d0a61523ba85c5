//! Collects the fields of sources that are read sample by sample (members of tar files, features of records, values of
//! keys) into one column each. Each format's module finds the fields.

use std::path::Path;
use std::sync::Arc;

use packds_format::{Field, FieldKind, Role, Scalar};
use packds_system::to_u64;

use super::ListOptions;
use super::arrays::PATHS;
use super::column::{ColumnValues, SourceColumn, TextArena};
use super::found::{Found, FoundLabels, LabelValues, Names, is_made_anew, role_of};
use super::listing::SourceField;
use super::narrow::{Wide, narrowed};
use super::npy::{MAX_HEADER, npy_head};
use super::roles::{self, Keys, Part, Roles, are_paths, find_field, find_image_field};
use super::store::{ArrayType, Content, Contents, OpenFile, Span, SpanFiles, Spans, Store};
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::{IMAGE_KEY, LEAVE_OUT};

/// Maximum size of an item that is read as text, in bytes.
const MAX_TEXT: u64 = 1 << 26;
/// The location of an item without bytes.
const NOWHERE: Span = Span { file: 0, offset: 0, bytes: 0 };

/// An item that has not been read yet: a member of a tar file, or the value of a key.
pub(super) struct Raw<'a> {
    pub(super) file: &'a OpenFile,
    /// The index of `file` among the source's files.
    pub(super) number: u32,
    /// The file as named in errors.
    pub(super) path: &'a Path,
    pub(super) name: &'a [u8],
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Raw<'_> {
    /// Returns an error about the item.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(self.path, &shown(self.name), reason)
    }

    /// Returns an error about the item of an undamaged file.
    pub(super) fn contradictory(&self, reason: String, hint: String) -> ConvertError {
        ConvertError::contradictory(self.path, &shown(self.name), reason, hint)
    }

    /// Returns an error about an item that is not supported.
    pub(super) fn unsupported(&self, reason: String, hint: String) -> ConvertError {
        ConvertError::unsupported(self.path, &shown(self.name), reason, hint)
    }

    /// The bytes after the first `skip` bytes.
    pub(super) fn stored(&self, skip: u64, content: Content) -> Item<'static> {
        let (offset, bytes) = (self.offset.saturating_add(skip), self.bytes.saturating_sub(skip));
        Item::Stored(Span { file: self.number, offset, bytes }, content)
    }

    /// Reads at most the first `limit` bytes.
    pub(super) fn head(&self, limit: u64) -> Result<Vec<u8>, ConvertError> {
        self.file.bytes_at(self.offset, self.bytes.min(limit)).map_err(|e| self.wrong(e.to_string()))
    }

    /// Reads the bytes as text.
    pub(super) fn text(&self) -> Result<String, ConvertError> {
        self.text_to(MAX_TEXT)
    }

    /// Reads all bytes. Returns an error if there are too many for memory.
    pub(super) fn data(&self) -> Result<Vec<u8>, ConvertError> {
        self.data_to(MAX_TEXT, "a value")
    }

    fn data_to(&self, limit: u64, what: &str) -> Result<Vec<u8>, ConvertError> {
        if self.bytes > limit {
            let found = self.bytes;
            return Err(self.wrong(format!("expected {what} of at most {limit} bytes, found {found}")));
        }
        self.head(limit)
    }

    /// Reads the bytes as text. Returns an error if there are more than `limit`.
    pub(super) fn text_to(&self, limit: u64) -> Result<String, ConvertError> {
        String::from_utf8(self.data_to(limit, "a string")?).map_err(|e| self.wrong(format!("expected text: {e}")))
    }

    /// Parses a `.npy` file as an array.
    pub(super) fn array(&self) -> Result<Item<'static>, ConvertError> {
        let head = self.head(to_u64(MAX_HEADER))?;
        let (array, data) = npy_head(&head, self.bytes).map_err(|reason| self.wrong(reason))?;
        Ok(self.stored(data, Content::of_array(array)))
    }
}

/// Formats a name for messages.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

/// The item of one sample in a field.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// Bytes in one of the files.
    Stored(Span, Content),
    Text(&'a str),
    /// Like `Text`, with the location of its bytes: some formats do not distinguish strings from bytes, so a later item may be bytes.
    TextIn(&'a str, Span),
    /// A JSON text without whitespace.
    Json(&'a str),
    Int(i64),
    Float(f64),
}

impl Item<'_> {
    fn kind(&self) -> String {
        match self {
            Self::Stored(_, content) => kind_of(content),
            Self::Text(_) | Self::TextIn(..) => "text".to_owned(),
            Self::Json(_) => "JSON".to_owned(),
            Self::Int(_) => "an integer".to_owned(),
            Self::Float(_) => "a number".to_owned(),
        }
    }
}

fn kind_of(content: &Content) -> String {
    let array = |array: &ArrayType| format!("an array of {} with shape {:?}", array.dtype, array.shape);
    match content {
        Content::File => "an image file".to_owned(),
        Content::Bytes => "bytes".to_owned(),
        Content::Text | Content::Json => "text".to_owned(),
        Content::Pixels(shape) => array(&shape.array()),
        Content::Array(of) => array(of),
        Content::Ragged(of) => format!("any number of entries of {} with shape {:?}", of.dtype, of.shape),
    }
}

/// The items of one field so far.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) name: String,
    items: Items,
    /// The locations of the strings, if every text came with its location.
    places: Vec<Span>,
}

#[derive(Debug)]
enum Items {
    Stored(Vec<Span>, Contents),
    Texts(TextArena),
    Jsons(TextArena),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    /// Numbers in the element type of the exported pack.
    Rows(Arc<dyn Store>),
}

impl Gathered {
    /// Starts a field with its first item.
    pub(super) fn begin(name: String, item: &Item<'_>) -> Self {
        let items = match item {
            Item::Stored(_, content) => Items::Stored(Vec::new(), Contents::All(content.clone())),
            Item::Text(_) | Item::TextIn(..) => Items::Texts(TextArena::default()),
            Item::Json(_) => Items::Jsons(TextArena::default()),
            Item::Int(_) => Items::Ints(Vec::new()),
            Item::Float(_) => Items::Floats(Vec::new()),
        };
        let mut gathered = Self { name, items, places: Vec::new() };
        // The first item always matches.
        let _ = gathered.push(item);
        gathered
    }

    /// Starts a field whose first item comes after `n` samples with a placeholder.
    pub(super) fn begin_after(n: usize, name: String, item: &Item<'_>) -> Self {
        let mut gathered = Self::begin(name, item);
        (0..n).for_each(|_| gathered.push_missing());
        // Other placeholders are copies of the item.
        if let Items::Stored(spans, _) = &mut gathered.items {
            spans.rotate_left(1);
        }
        gathered
    }

    /// A field of `n` items without bytes, at least one.
    pub(super) fn blank(n: usize, name: String) -> Self {
        Self::begin_after(n.saturating_sub(1), name, &Item::Stored(NOWHERE, Content::Bytes))
    }

    /// Adds the next item. On mismatch, returns what was expected and found.
    pub(super) fn push(&mut self, item: &Item<'_>) -> Result<(), String> {
        match (&mut self.items, item) {
            (Items::Stored(spans, contents), Item::Stored(span, content)) => {
                add_content(contents, spans.len(), content)?;
                spans.push(*span);
            }
            (Items::Texts(texts), Item::Text(text)) | (Items::Jsons(texts), Item::Json(text)) => {
                texts.push(text);
            }
            (Items::Texts(texts), Item::TextIn(text, span)) => {
                texts.push(text);
                self.places.push(*span);
            }
            (Items::Ints(values), Item::Int(value)) => values.push(*value),
            (Items::Floats(values), Item::Float(value)) => values.push(*value),
            (items, item) => {
                let expected = match items {
                    Items::Stored(_, Contents::All(content)) => kind_of(content),
                    Items::Stored(..) => "an image".to_owned(),
                    Items::Texts(_) => Item::Text("").kind(),
                    Items::Jsons(_) => Item::Json("").kind(),
                    Items::Ints(_) => Item::Int(0).kind(),
                    Items::Floats(_) | Items::Rows(_) => Item::Float(0.0).kind(),
                };
                return Err(format!("expected {expected}, found {}", item.kind()));
            }
        }
        Ok(())
    }

    /// Like [`push`](Self::push), but also accepts a mix of numbers and lists, or of strings and bytes. All items are then converted
    /// to lists, or to bytes.
    pub(super) fn push_or_widen(&mut self, item: &Item<'_>) -> Result<(), String> {
        let listed = |text: &dyn std::fmt::Display| format!("[{text}]");
        let lists: TextArena = match (&self.items, item) {
            (Items::Ints(values), Item::Json(_)) => values.iter().map(|value| listed(value)).collect(),
            (Items::Floats(values), Item::Json(_)) => {
                values.iter().map(|value| listed(&serde_json::Value::from(*value))).collect()
            }
            (Items::Texts(texts), Item::Json(_)) => {
                texts.iter().map(|text| listed(&serde_json::Value::from(text))).collect()
            }
            (Items::Jsons(_), Item::TextIn(text, _)) => {
                let list = listed(&serde_json::Value::from(*text));
                return self.push(&Item::Json(&list));
            }
            (Items::Texts(texts), Item::Stored(_, Content::Bytes)) if self.places.len() == texts.len() => {
                let places = std::mem::take(&mut self.places);
                self.items = Items::Stored(places, Contents::All(Content::Bytes));
                return self.push(item);
            }
            (Items::Stored(_, Contents::All(Content::Bytes)), Item::TextIn(_, span)) => {
                return self.push(&Item::Stored(*span, Content::Bytes));
            }
            (Items::Jsons(_), Item::Int(value)) => return self.push(&Item::Json(&listed(value))),
            (Items::Jsons(_), Item::Float(value)) => {
                return self.push(&Item::Json(&listed(&serde_json::Value::from(*value))));
            }
            _ => return self.push(item),
        };
        self.items = Items::Jsons(lists);
        self.push(item)
    }

    /// Adds a placeholder for a bad sample that lacks this item. The placeholder is never used: bad samples are skipped
    /// or replaced by zeros, or cause an error. It is empty for files and bytes, and otherwise a copy of the first item,
    /// so that it adds no class.
    pub(super) fn push_missing(&mut self) {
        match &mut self.items {
            Items::Stored(spans, contents) => {
                let is_fixed = matches!(contents, Contents::All(Content::Array(_) | Content::Pixels(_)));
                spans.push(spans.first().copied().filter(|_| is_fixed).unwrap_or(NOWHERE));
                if let Contents::Each(each) = contents {
                    each.push(Content::File);
                }
            }
            Items::Texts(texts) | Items::Jsons(texts) => {
                let first = texts.iter().next().map(str::to_owned);
                texts.push(&first.unwrap_or_default());
            }
            Items::Ints(values) => values.push(values.first().copied().unwrap_or(0)),
            Items::Floats(values) => values.push(values.first().copied().unwrap_or(0.0)),
            // Rows are built only after all samples are collected.
            Items::Rows(_) => {}
        }
    }

    /// Adds an empty string, empty bytes or an empty list. Numbers are first converted to lists. Returns false and adds
    /// nothing if the field's items cannot be empty.
    pub(super) fn push_empty(&mut self) -> Result<bool, String> {
        match &self.items {
            Items::Stored(_, Contents::All(Content::Bytes)) => {
                self.push(&Item::Stored(NOWHERE, Content::Bytes))?;
            }
            Items::Texts(texts) if self.places.len() == texts.len() => {
                self.push(&Item::TextIn("", NOWHERE))?;
            }
            Items::Texts(_) => self.push(&Item::Text(""))?,
            Items::Jsons(_) | Items::Ints(_) | Items::Floats(_) => {
                self.push_or_widen(&Item::Json("[]"))?;
            }
            Items::Stored(..) | Items::Rows(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Number of items.
    pub(super) fn len(&self) -> usize {
        match &self.items {
            Items::Stored(spans, _) => spans.len(),
            Items::Texts(texts) | Items::Jsons(texts) => texts.len(),
            Items::Ints(values) => values.len(),
            Items::Floats(values) => values.len(),
            Items::Rows(rows) => rows.len(),
        }
    }

    /// Whether all items so far are integers.
    pub(super) fn is_of_ints(&self) -> bool {
        matches!(self.items, Items::Ints(_))
    }

    /// Whether the items are strings.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.items, Items::Texts(_))
    }

    /// The strings, if the items are strings.
    pub(super) fn texts(&self) -> Option<&TextArena> {
        match &self.items {
            Items::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// Whether all items so far are empty strings.
    pub(super) fn is_blank(&self) -> bool {
        matches!(&self.items, Items::Texts(texts) if texts.is_blank())
    }

    /// Whether the items are JSON.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.items, Items::Jsons(_))
    }

    /// Whether the items are image files or pixels.
    pub(super) fn is_of_pictures(&self) -> bool {
        matches!(self.items, Items::Stored(_, Contents::All(Content::File | Content::Pixels(_)) | Contents::Each(_)))
    }

    /// Whether the items are arrays with at least two dimensions.
    pub(super) fn is_of_planes(&self) -> bool {
        matches!(&self.items, Items::Stored(_, Contents::All(Content::Array(array))) if array.shape.len() > 1)
    }

    /// Whether the items may be images.
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.items, Items::Stored(..))
    }
}

/// Records the content of item `n`. Images may differ in size, and files may be mixed with pixels. All arrays must have the same
/// type.
fn add_content(contents: &mut Contents, n: usize, content: &Content) -> Result<(), String> {
    let is_image = |content: &Content| matches!(content, Content::File | Content::Pixels(_));
    match contents {
        Contents::All(first) if first != content && !(is_image(first) && is_image(content)) => {
            return Err(format!("expected {}, found {}", kind_of(first), kind_of(content)));
        }
        Contents::Each(_) if !is_image(content) => {
            return Err(format!("expected an image, found {}", kind_of(content)));
        }
        _ => contents.push(n, content.clone()),
    }
    Ok(())
}

/// All collected fields and labels.
pub(super) struct Gathering {
    pub(super) format: DataFormat,
    pub(super) fields: Vec<Gathered>,
    pub(super) names: Names,
    pub(super) files: SpanFiles,
    /// The class names, if the source stores them separately.
    pub(super) classes: Vec<String>,
    /// Labels that do not come from a field.
    pub(super) labels: Option<FoundLabels>,
    pub(super) metadata: Option<Metadata>,
    pub(super) warnings: Vec<Warning>,
    pub(super) ignored: u64,
}

impl Gathering {
    /// Decides the role of each field.
    pub(super) fn into_found(mut self, source: &Path, options: &ListOptions) -> Result<Found, ConvertError> {
        self.fields.retain(|field| !is_made_anew(&field.name));
        self.restore_types(options.label_key.as_deref());
        self.take_paths();
        let names: Vec<String> = self.fields.iter().map(|f| f.name.clone()).collect();
        let keys = Keys::of(options);
        let image = find_image_field(source, &names, keys, self.metadata.as_ref())?;
        let label = self.label_of(source, &names, keys)?;
        if label.is_some() {
            self.labels = None;
        }
        let mask = find_field(source, &names, Part::Mask, keys, self.metadata.as_ref())?;
        let roles = Roles::new(image, label, mask, keys);
        let mut found = Found {
            labels: self.labels,
            metadata: self.metadata,
            warnings: self.warnings,
            ignored: self.ignored,
            ..Found::new(self.format, Arc::new(empty(&self.files)), self.names)
        };
        for (place, field) in self.fields.into_iter().enumerate() {
            let items = field.kind();
            let part = roles.of(place);
            match roles.fitting(source, &field.name, part, &items, &mut found.warnings)? {
                Some(Part::Image) => found.images = field.into_store(source, &self.files)?,
                Some(Part::Mask) => found.masks = Some(field.into_store(source, &self.files)?),
                Some(Part::Label) => {
                    found.labels = Some(field.into_labels(source, &self.files, &self.classes)?);
                }
                None => field.into_field(source, &mut found, &self.files)?,
            }
        }
        Ok(found)
    }

    /// The index of the label field. `None` if there are no labels or they do not come from a field.
    fn label_of(&self, source: &Path, names: &[String], keys: Keys<'_>) -> Result<Option<usize>, ConvertError> {
        let Some(labels) = &self.labels else {
            return find_field(source, names, Part::Label, keys, self.metadata.as_ref());
        };
        if keys.label.is_none_or(|key| key == labels.name) {
            return Ok(None);
        }
        // Includes the labels' own name, so that the error message lists it.
        let all = [names, std::slice::from_ref(&labels.name)].concat();
        find_field(source, &all, Part::Label, keys, self.metadata.as_ref())
    }

    /// Takes the samples' paths from the field that exports add, unless the pack has its own field with this name.
    fn take_paths(&mut self) {
        let Some(metadata) = self.metadata.as_ref() else {
            return;
        };
        if metadata.field(PATHS).is_some() {
            return;
        }
        let place = self.fields.iter().position(|field| field.name == PATHS);
        if let Some(place) = place
            && let Some(Items::Texts(paths)) = self.fields.get(place).map(|field| &field.items)
            && are_paths(paths.iter())
        {
            self.names = Names::Paths(paths.iter().map(|path| path.into()).collect());
            self.fields.remove(place);
        }
    }

    /// Restores element types of the pack that the format cannot store, except for label fields.
    fn restore_types(&mut self, label_key: Option<&str>) {
        let Some(metadata) = &self.metadata else {
            return;
        };
        for field in &mut self.fields {
            let known = metadata.field(&field.name);
            let is_label = label_key == Some(field.name.as_str());
            let is_label = is_label || known.is_some_and(|f| f.role == Some(Role::Label));
            if let Some(known) = known.filter(|_| !is_label) {
                field.narrow(known);
            }
            if let Items::Stored(_, Contents::All(content)) = &mut field.items {
                let stored = match content {
                    Content::Array(array) => array.clone(),
                    Content::Pixels(shape) => shape.array(),
                    _ => continue,
                };
                let restored = metadata.restored(&field.name, &stored);
                if restored != stored {
                    *content = Content::Array(restored);
                }
            }
        }
    }
}

fn empty(files: &SpanFiles) -> Spans {
    Spans { files: files.clone(), spans: Vec::new(), contents: Contents::All(Content::Bytes) }
}

impl Gathered {
    /// Converts the values to the type that they had in the pack, if all fit.
    fn narrow(&mut self, known: &Field) {
        let store = match &self.items {
            Items::Ints(values) => narrowed(Wide::Ints(values), known),
            Items::Floats(values) => narrowed(Wide::Floats(values), known),
            Items::Texts(_) if known.kind == FieldKind::Json => return self.texts_as_json(),
            _ => None,
        };
        if let Some(store) = store {
            self.items = Items::Rows(store);
        }
    }

    /// Converts strings back to JSON if all are valid JSON.
    fn texts_as_json(&mut self) {
        let Items::Texts(texts) = &self.items else {
            return;
        };
        let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        if texts.iter().all(is_json) {
            self.items = Items::Jsons(texts.clone());
        }
    }

    /// The kind of the items, which determines the field's possible roles.
    fn kind(&self) -> roles::Items {
        match &self.items {
            Items::Stored(_, Contents::All(content)) => roles::Items::of(content),
            Items::Stored(_, Contents::Each(_)) => roles::Items::pictures(),
            Items::Texts(_) => roles::Items::texts(),
            Items::Jsons(_) => roles::Items::of(&Content::Json),
            Items::Ints(_) | Items::Floats(_) => roles::Items::numbers(),
            Items::Rows(rows) => roles::Items::of(&rows.content(0)),
        }
    }

    fn into_store(self, source: &Path, files: &SpanFiles) -> Result<Arc<dyn Store>, ConvertError> {
        match self.items {
            Items::Stored(spans, contents) => Ok(Arc::new(Spans { files: files.clone(), spans, contents })),
            _ => Err(ConvertError::unsupported(
                source,
                &self.name,
                "expected images, found strings or numbers",
                format!("choose the field of images with {IMAGE_KEY}"),
            )),
        }
    }

    fn into_labels(self, source: &Path, files: &SpanFiles, classes: &[String]) -> Result<FoundLabels, ConvertError> {
        let name = self.name.clone();
        let values = match self.items {
            Items::Ints(ids) => LabelValues::Ids(ids),
            Items::Floats(values) => numbers(values),
            Items::Texts(texts) => LabelValues::of_texts(texts),
            items @ (Items::Stored(..) | Items::Jsons(_) | Items::Rows(_)) => {
                let wrong = |reason: String| ConvertError::malformed(source, &name, reason);
                let store = Self { items, ..self }.into_store(source, files)?;
                let Content::Array(array) = store.content(0) else {
                    return Err(wrong("expected labels".to_owned()));
                };
                LabelValues::of_store(store, array.dtype).map_err(|e| wrong(e.to_string()))?
            }
        };
        Ok(FoundLabels { name, values, classes: classes.to_vec() })
    }

    fn into_field(self, source: &Path, found: &mut Found, files: &SpanFiles) -> Result<(), ConvertError> {
        let name = self.name;
        let values = match self.items {
            Items::Stored(spans, Contents::Each(contents)) => return Err(varying(source, &name, &spans, &contents)),
            Items::Stored(spans, contents) => {
                let store = Arc::new(Spans { files: files.clone(), spans, contents });
                let role = role_of(found.metadata.as_ref(), &name);
                found.fields.push(SourceField { name, store, role });
                return Ok(());
            }
            Items::Rows(store) => {
                let role = role_of(found.metadata.as_ref(), &name);
                found.fields.push(SourceField { name, store, role });
                return Ok(());
            }
            Items::Texts(texts) => ColumnValues::Text(texts),
            Items::Jsons(texts) => ColumnValues::Json(texts),
            Items::Ints(values) => ColumnValues::I64(values),
            Items::Floats(values) => ColumnValues::F64(values),
        };
        found.texts.push(SourceColumn { name, values });
        Ok(())
    }
}

/// The error about a field of pixels of different sizes or forms that is neither the images nor the masks. A pack stores sizes only for
/// those, so the pixels could not be read.
fn varying(source: &Path, name: &str, spans: &[Span], contents: &[Content]) -> ConvertError {
    // Placeholders have no bytes.
    let is_real = |idx: usize| spans.get(idx).is_some_and(|span| span.bytes > 0);
    let mut real = contents.iter().enumerate().filter(|(idx, _)| is_real(*idx));
    let (first, expected) = real.next().unwrap_or((0, &Content::File));
    let (other, found) = real.find(|(_, content)| *content != expected).unwrap_or((first, expected));
    let reason = format!(
        "expected {} in sample {other}, as in sample {first}, found {}: a pack stores the sizes of the images and the masks, but not of this field",
        kind_of(expected),
        kind_of(found)
    );
    let hint = format!(
        "write this field as image files, such as PNG, or as arrays of one shape, or leave it out with {}",
        LEAVE_OUT.with(name)
    );
    ConvertError::unsupported(source, name, reason, hint)
}

/// Converts numbers to labels: class ids if all are integers.
fn numbers(values: Vec<f64>) -> LabelValues {
    let ids = values.iter().map(|value| Scalar::Double(*value).class_id());
    match ids.collect() {
        Some(ids) => LabelValues::Ids(ids),
        None => LabelValues::Numbers(values),
    }
}
