//! Converts what a format's module found into a [`Listing`]: sample names, labels as class ids, and the metadata of the pack that
//! the dataset was exported from, if any.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Field, FieldKind, Role, Scalar};
use packds_system::{counted, to_u64};

use super::ListOptions;
use super::column::{ColumnValues, SourceColumn, TextArena};
use super::listing::{Faults, Images, LabelLists, Labels, Listing, Masks, SourceField, SourceKind, append_stored};
use super::masks::Numbers;
use super::narrow::ragged_columns;
use super::overlooked::{flat_pixels, note_overlooked_labels, other_axis};
use super::paths::{FileTable, PathTable};
use super::repeats::boxes_in;
use super::roles::{TEXT_NAME, are_texts, is_label_name, no_samples};
use super::store::{Content, Store};
use super::values::CellKind;
use super::warning::Warning;
use crate::error::{ConvertError, quoted};
use crate::metadata::Metadata;
use crate::opt::{IMAGE_KEY, LABEL_KEY, LEAVE_OUT, MASK_KEY};
use crate::sample::SampleError;

/// What the module of a format found in a source.
pub(crate) struct Found {
    pub(super) kind: SourceKind,
    /// The images. Every field has the same number of samples.
    pub(super) images: Arc<dyn Store>,
    pub(super) names: Names,
    pub(super) labels: Option<FoundLabels>,
    /// The class names by id, if the source has class names but no labels were found yet.
    pub(super) classes: Vec<String>,
    /// Mask images. Each must have the size of its image.
    pub(super) masks: Option<Arc<dyn Store>>,
    /// All other fields that are kept in a store: numbers, arrays, files.
    pub(super) fields: Vec<SourceField>,
    /// Columns of strings, JSON or numbers.
    pub(super) texts: Vec<SourceColumn>,
    /// Metadata of the pack that the source was exported from.
    pub(super) metadata: Option<Metadata>,
    pub(super) faults: Faults,
    pub(super) warnings: Vec<Warning>,
    /// Number of files or members that are not samples.
    pub(super) ignored: u64,
    /// Whether the source has only one label, as a file with one sample does.
    pub(super) has_single_label: bool,
    /// Whether the images come from a three-dimensional array, which has no dimension for channels.
    pub(super) are_planes: bool,
}

/// Names of samples, for errors, reports and the pack.
pub(super) enum Names {
    /// Row numbers after this name: `FOLDER/0`, `FOLDER/1`, ...
    Numbered(String),
    /// Paths, with `/` as separator.
    Paths(Vec<Vec<u8>>),
}

/// Labels as stored in the source.
pub(super) struct FoundLabels {
    /// The name of the labels in the source.
    pub(super) name: String,
    pub(super) values: LabelValues,
    /// The class names by id, if the source has them.
    pub(super) classes: Vec<String>,
}

impl FoundLabels {
    /// Labels whose class ids have no names.
    pub(super) fn without_classes(name: &str, values: LabelValues) -> Self {
        Self { name: name.to_owned(), values, classes: Vec::new() }
    }
}

/// One label per sample.
pub(super) enum LabelValues {
    /// Class ids, or other integers.
    Ids(Vec<i64>),
    /// Class names.
    Names(TextArena),
    /// Numbers that are not class ids. They become a column.
    Numbers(Vec<f64>),
    /// Like `Numbers`, but in the source's element type.
    Typed(Arc<dyn Store>),
}

impl LabelValues {
    /// Class ids if all strings are integers; otherwise class names.
    pub(super) fn of_texts(texts: TextArena) -> Self {
        let id = |text: &str| match CellKind::of_text(text.trim()) {
            CellKind::Integer(id) => Some(id),
            _ => None,
        };
        let ids = texts.iter().map(id).collect();
        match ids {
            Some(ids) => Self::Ids(ids),
            None => Self::Names(texts),
        }
    }

    /// The numbers of a store with this element type: class ids if all are integers.
    pub(super) fn of_store(store: Arc<dyn Store>, dtype: DType) -> Result<Self, SampleError> {
        let (mut item, mut ids) = (Vec::new(), Vec::new());
        for idx in 0..store.len() {
            item.clear();
            store.append(idx, u64::MAX, &mut item)?;
            match Scalar::of(dtype, &item).and_then(Scalar::class_id) {
                Some(id) => ids.push(id),
                None => return Ok(Self::Typed(store)),
            }
        }
        Ok(Self::Ids(ids))
    }
}

impl Found {
    /// Images without labels or other fields.
    pub(super) fn new(kind: impl Into<SourceKind>, images: Arc<dyn Store>, names: Names) -> Self {
        Self {
            kind: kind.into(),
            images,
            names,
            labels: None,
            classes: Vec::new(),
            masks: None,
            fields: Vec::new(),
            texts: Vec::new(),
            metadata: None,
            faults: Faults::new(),
            warnings: Vec::new(),
            ignored: 0,
            has_single_label: false,
            are_planes: false,
        }
    }

    /// Builds the listing of `source`.
    pub(super) fn into_listing(mut self, source: &Path) -> Result<Listing, ConvertError> {
        let n = self.images.len();
        if n == 0 {
            return Err(no_samples(source));
        }
        self.check_lengths(source, n)?;
        self.check_images(source)?;
        self.take_label_maps();
        self.number_masks(source)?;
        let metadata = self.metadata.as_ref();
        let (texts, entries) = ragged_columns(std::mem::take(&mut self.texts), |name| metadata?.field(name));
        self.texts = texts;
        self.fields.extend(entries);
        let bytes = (0..n).map(|idx| self.images.bytes(idx)).collect();
        let mut listing = Listing {
            columns: self.texts,
            masks: self.masks.map(Masks::Stored),
            images: Images::Stored(self.images),
            fields: self.fields,
            metadata: self.metadata,
            faults: self.faults,
            warnings: self.warnings,
            ignored: self.ignored,
            ..Listing::of_files(self.kind, source, self.names.table(n), bytes)
        };
        match self.labels {
            Some(labels) => labels.put_into(&mut listing, source)?,
            None => take_label_sets(&mut listing, source)?,
        }
        note_overlooked_labels(&mut listing);
        // If the source was exported from a pack, the metadata describes its fields.
        let boxes = if listing.metadata.is_none() { boxes_in(&listing.columns, &listing.fields) } else { None };
        listing.warnings.extend(boxes);
        let forms = [other_axis(&listing), flat_pixels(&listing)];
        listing.warnings.extend(forms.into_iter().flatten());
        rename_taken(&mut listing);
        check_fields(&listing, source)?;
        Ok(listing)
    }

    /// Packs class names as texts if most of them are different, and warns about it.
    pub(super) fn take_texts(&mut self) {
        let Some(FoundLabels { name, values: LabelValues::Names(names), .. }) = &mut self.labels else { return };
        let different = to_u64(names.iter().collect::<HashSet<_>>().len());
        let count = to_u64(names.len());
        if self.metadata.is_some() || !are_texts(different, count) {
            return;
        }
        let field = std::mem::take(name);
        self.warnings.push(Warning::TextLabels { field, different, count, are_texts: true });
        self.texts.push(SourceColumn { name: TEXT_NAME.to_owned(), values: ColumnValues::Text(std::mem::take(names)) });
        self.labels = None;
    }

    /// The label field, if its strings are the class names.
    pub(super) fn class_field(&self) -> Option<String> {
        let labels = self.labels.as_ref()?;
        matches!(labels.values, LabelValues::Names(_)).then(|| labels.name.clone())
    }

    /// Removes excluded fields.
    pub(crate) fn leave_out(mut self, source: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        let labels = self.labels.iter().map(|labels| &labels.name);
        let texts = self.texts.iter().map(|column| &column.name);
        let fields = self.fields.iter().map(|field| &field.name);
        let names: Vec<String> = labels.chain(texts).chain(fields).cloned().collect();
        options.check_left_out(source, &names)?;
        self.labels = self.labels.filter(|l| !options.is_left_out(&l.name));
        self.texts.retain(|c| !options.is_left_out(&c.name));
        self.fields.retain(|f| !options.is_left_out(&f.name));
        Ok(self)
    }

    /// Refuses images that are single numbers, which happens if a label file is passed.
    fn check_images(&self, source: &Path) -> Result<(), ConvertError> {
        match self.images.content(0) {
            Content::Array(array) if array.shape.is_empty() => Err(ConvertError::unsupported(
                source,
                "",
                format!("expected images, found one {} for each sample", array.dtype),
                format!("pass the file with the images, or choose the field of images with {IMAGE_KEY}"),
            )),
            _ => Ok(()),
        }
    }

    /// Height and width of the images if all are arrays of the same size.
    fn image_size(&self) -> Option<(u64, u64)> {
        match self.images.content(0) {
            Content::Pixels(shape) if self.images.is_uniform() => Some((shape.height.into(), shape.width.into())),
            Content::Array(array) => match *array.shape.as_slice() {
                [h, w] | [h, w, 1..=4] | [1..=4, h, w] => Some((h, w)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Uses a field as masks if it has a label name and one number for each pixel. It is then transformed together with
    /// the images.
    fn take_label_maps(&mut self) {
        let Some((height, width)) = self.image_size().filter(|_| self.masks.is_none() && self.metadata.is_none())
        else {
            return;
        };
        let is_map = |field: &SourceField| {
            let shape = match field.store.content(0) {
                Content::Pixels(shape) => shape.array().shape,
                Content::Array(array) => array.shape,
                _ => return false,
            };
            is_label_name(&field.name)
                && [vec![height, width], vec![height, width, 1], vec![1, height, width]].contains(&shape)
        };
        if let Some(place) = self.fields.iter().position(is_map) {
            let SourceField { name, store, .. } = self.fields.remove(place);
            self.warnings.retain(|warning| !matches!(warning, Warning::NotLabels { field, .. } if *field == name));
            self.warnings.push(Warning::LabelMaps { field: name });
            self.masks = Some(store);
        }
    }

    /// Converts masks of other element types to `u8`.
    ///
    /// # Errors
    /// If the masks are arrays that do not give a class for each pixel: every sample would be invalid.
    fn number_masks(&mut self, source: &Path) -> Result<(), ConvertError> {
        let Some(masks) = &self.masks else { return Ok(()) };
        let array = match masks.content(0) {
            Content::Array(array) => array,
            // One-hot masks for three classes have the shape of RGB images.
            Content::Pixels(shape) if shape.channels == 3 => shape.array(),
            _ => return Ok(()),
        };
        let numbers = Numbers::new(masks, &array, self.image_size()).filter(|_| masks.is_uniform());
        let numbers = numbers.ok_or_else(|| {
            ConvertError::unsupported(
                source,
                "",
                format!(
                    "expected masks that are image files or two-dimensional arrays, found {} {:?}",
                    array.dtype, array.shape
                ),
                format!("leave the field out with {LEAVE_OUT}, choose another field with {MASK_KEY}, or write a number for each pixel"),
            )
        })?;
        numbers.refuse_channels(source)?;
        if let Some(n) = numbers.one_hot() {
            self.warnings.push(Warning::OneHotMasks { n });
        }
        self.masks = Some(Arc::new(numbers));
        Ok(())
    }

    fn check_lengths(&self, source: &Path, n: usize) -> Result<(), ConvertError> {
        let labels = self.labels.iter().map(|labels| {
            let n = match &labels.values {
                LabelValues::Ids(ids) => ids.len(),
                LabelValues::Names(names) => names.len(),
                LabelValues::Numbers(numbers) => numbers.len(),
                LabelValues::Typed(store) => store.len(),
            };
            (labels.name.as_str(), n)
        });
        let paths = match &self.names {
            Names::Paths(paths) => Some(("paths", paths.len())),
            Names::Numbered(_) => None,
        };
        let masks = self.masks.iter().map(|masks| ("mask", masks.len()));
        let fields = self.fields.iter().map(|f| (f.name.as_str(), f.store.len()));
        let texts = self.texts.iter().map(|c| (c.name.as_str(), c.values.len()));
        for (name, found) in labels.chain(paths).chain(masks).chain(fields).chain(texts) {
            if found != n {
                return Err(other_count(source, name, self.images.as_ref(), found));
            }
        }
        Ok(())
    }
}

impl Names {
    pub(super) fn table(self, n: usize) -> PathTable {
        match self {
            Self::Numbered(folder) => {
                let mut table = PathTable::default();
                let folder = table.push_directory(folder.as_bytes());
                (0..n).for_each(|idx| table.push(folder, idx.to_string().as_bytes()));
                table
            }
            Self::Paths(paths) => {
                let mut table = FileTable::default();
                paths.iter().for_each(|path| table.push(path));
                table.paths
            }
        }
    }
}

impl FoundLabels {
    fn put_into(self, listing: &mut Listing, source: &Path) -> Result<(), ConvertError> {
        match self.values {
            LabelValues::Ids(ids)
                if self.classes.is_empty() && listing.metadata.is_none() && ids.iter().any(|id| *id < 0) =>
            {
                listing.warnings.push(Warning::negative_ids(&self.name));
                let (name, values) = (free_target(self.name, listing, source)?, ColumnValues::I64(ids));
                listing.columns.push(SourceColumn { name, values });
            }
            LabelValues::Ids(mut ids) => {
                let known = listing.metadata.as_ref();
                // If this field was not the label of the pack, it does not get the pack's class names.
                let field = known.and_then(|m| m.field(&self.name));
                let is_other = field.is_some_and(|field| field.role != Some(Role::Label));
                let classes = match known {
                    _ if is_other => &[][..],
                    Some(known) if self.classes.is_empty() => known.class_names("label"),
                    _ => &self.classes,
                };
                let names = i64::try_from(classes.len()).unwrap_or(i64::MAX);
                let is_wrong = |id: &i64| names > 0 && !(0..names).contains(id);
                if ids.iter().all(is_wrong) {
                    let wrong = ids.first().copied().unwrap_or(0);
                    let reason =
                        format!("the class id {wrong} has no name: the list has {}", counted(names, "class name"));
                    let hint = class_ids_hint();
                    return Err(ConvertError::contradictory(source, &self.name, reason, hint));
                }
                listing.classes = classes.iter().map(|c| c.clone().into_bytes()).collect();
                for (idx, id) in ids.iter_mut().enumerate().filter(|(_, id)| is_wrong(id)) {
                    let reason = format!(
                        "'{}': the class id {id} has no name: the list has {}",
                        self.name,
                        counted(names, "class name")
                    );
                    listing.faults.entry(idx).or_insert(reason.into());
                    // The error reports the original id. Store 0, because every id in the pack must have a name.
                    *id = 0;
                }
                listing.labels = Labels::PerSample(ids);
            }
            LabelValues::Names(names) => {
                let faults = &listing.faults;
                let named = names.iter().enumerate();
                let named = named.filter(|(idx, _)| !faults.contains_key(idx));
                let mut classes: Vec<&str> = named.map(|(_, name)| name).collect();
                classes.sort_unstable();
                classes.dedup();
                let id = |name: &str| classes.binary_search(&name).unwrap_or_default();
                let ids = names.iter().map(|name| i64::try_from(id(name)).unwrap_or(-1));
                listing.labels = Labels::PerSample(ids.collect());
                listing.classes = classes.iter().map(|c| c.as_bytes().to_vec()).collect();
            }
            LabelValues::Numbers(values) => {
                listing.warnings.push(Warning::no_ids(&self.name, DType::F64));
                let (name, values) = (free_target(self.name, listing, source)?, ColumnValues::F64(values));
                listing.columns.push(SourceColumn { name, values });
            }
            LabelValues::Typed(store) => {
                let dtype = match store.content(0) {
                    Content::Array(array) => array.dtype,
                    _ => DType::U8,
                };
                listing.warnings.push(Warning::no_ids(&self.name, dtype));
                let name = free_target(self.name, listing, source)?;
                listing.fields.push(SourceField { name, store, role: None });
            }
        }
        Ok(())
    }
}

/// The field name for regression targets: `label` is reserved for class ids.
pub(super) fn target(name: String) -> String {
    match name.as_str() {
        "label" => "target".to_owned(),
        _ => name,
    }
}

/// [`target`], unless the source has another field of that name.
fn free_target(name: String, listing: &Listing, source: &Path) -> Result<String, ConvertError> {
    let to = target(name.clone());
    let fields = listing.fields.iter().map(|field| &field.name);
    let mut others = fields.chain(listing.columns.iter().map(|column| &column.name));
    if to == name || !others.any(|other| *other == to) {
        return Ok(to);
    }
    let reason = format!(
        "the values of `{name}` are no class ids, so the field would be packed as `{to}`, but the source has a field `{to}` too"
    );
    let hint =
        format!("read the labels from `{to}` with {}, or leave one of them out with {LEAVE_OUT}", LABEL_KEY.with(&to));
    Err(ConvertError::unsupported(source, "", reason, hint))
}

/// Refuses field names and shapes that a pack cannot store.
fn check_fields(listing: &Listing, source: &Path) -> Result<(), ConvertError> {
    let stored = listing.fields.iter().map(|field| match field.store.content(0) {
        Content::Array(array) => Field::tensor(&field.name, array.dtype, &array.shape),
        _ => Field::variable(&field.name, FieldKind::Bytes),
    });
    let columns = listing.columns.iter().map(|column| Field::column(&column.name, DType::U8, &[]));
    let error = stored.chain(columns).find_map(|field| {
        let checked = field.check_name().and_then(|()| field.check_shape());
        checked.err().map(|error| (error, field.name))
    });
    error.map_or(Ok(()), |(error, name)| {
        let leave_out = LEAVE_OUT.with(name);
        let hint = format!("give the field another name or shape in the source, or leave it out with {leave_out}");
        Err(ConvertError::unsupported(source, "", error.to_string(), hint))
    })
}

/// Renames fields that collide with the pack's names for images, labels and masks.
pub(super) fn rename_taken(listing: &mut Listing) {
    let taken = [
        ("image", true),
        ("label", listing.has_labels()),
        ("labels", listing.has_label_lists()),
        ("mask", listing.has_masks()),
    ];
    let is_taken = |name: &String| taken.contains(&(name.as_str(), true));
    let fields = listing.fields.iter_mut().map(|field| &mut field.name);
    let columns = listing.columns.iter_mut().map(|column| &mut column.name);
    for name in fields.chain(columns).filter(|name| is_taken(name)) {
        let field = name.clone();
        *name = format!("source_{field}");
        let to = name.clone();
        listing.warnings.push(Warning::Renamed { field, to });
    }
}

/// The hint for errors about class ids without names.
fn class_ids_hint() -> String {
    format!(
        "correct the labels or the list of class names, leave the field out with {LEAVE_OUT}, or choose another field with {LABEL_KEY}"
    )
}

/// Refuses a file whose class names differ from those of earlier files, because its ids would mean other classes.
pub(super) fn check_same_classes(file: &Path, expected: &[String], found: &[String]) -> Result<(), ConvertError> {
    if expected == found || expected.is_empty() || found.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "expected the same class names as in the previous files ({}), found {}",
        quoted(expected),
        quoted(found)
    );
    let hint = "convert each file separately, or write all files with the same class names";
    Err(ConvertError::contradictory(file, "", reason, hint))
}

/// The error for a field whose number of values differs from the number of images. If another dimension of the images has that
/// length, the error says so.
pub(super) fn other_count(source: &Path, name: &str, images: &dyn Store, found: usize) -> ConvertError {
    let reason = format!("expected {} values, one for each image, found {found}", images.len());
    let along = match images.content(0) {
        Content::Array(array) => array.shape.iter().position(|n| usize::try_from(*n) == Ok(found)),
        _ => None,
    };
    let Some(dimension) = along.map(|place| place + 1) else {
        let hint = format!(
            "write one value for each image, or choose other fields with {IMAGE_KEY}, {LABEL_KEY} and {MASK_KEY}"
        );
        return ConvertError::contradictory(source, name, reason, hint);
    };
    let reason = format!("{reason} (dimension {dimension} of the images has this length)");
    let hint = format!("put the sample dimension first: numpy.moveaxis(images, {dimension}, 0)");
    ConvertError::contradictory(source, name, reason, hint)
}

/// Converts label sets of an exported pack (one bit per class) back to lists of labels.
fn take_label_sets(listing: &mut Listing, source: &Path) -> Result<(), ConvertError> {
    let mut fields = listing.fields.iter();
    let Some(place) = fields.position(|field| field.role == Some(Role::Labels)) else {
        return Ok(());
    };
    let field = listing.fields.remove(place);
    let (mut lists, mut bits) = (LabelLists::default(), Vec::new());
    for idx in 0..field.store.len() {
        bits.clear();
        let read = append_stored(field.store.as_ref(), idx, u64::MAX, &mut bits);
        read.map_err(|e| ConvertError::malformed(source, &field.name, e.to_string()))?;
        let set = (0_i64..).zip(bits.iter().flat_map(|byte| (0..8).map(move |k| (byte >> k) & 1)));
        lists.ids.extend(set.filter(|(_, bit)| *bit == 1).map(|(id, _)| id));
        lists.ends.push(lists.ids.len());
    }
    let names = listing.metadata.as_ref().map_or(&[][..], |m| m.class_names("labels"));
    let largest = lists.ids.iter().max().copied().unwrap_or(0);
    if !names.is_empty() && i64::try_from(names.len()).is_ok_and(|n| largest >= n) {
        let n = names.len();
        let reason = format!("the class id {largest} has no name: the list has {}", counted(n, "class name"));
        return Err(ConvertError::contradictory(source, &field.name, reason, class_ids_hint()));
    }
    listing.classes = names.iter().map(|name| name.clone().into_bytes()).collect();
    listing.labels = Labels::Lists(lists);
    Ok(())
}

/// Whether every conversion writes this field itself. A copy from an exported pack is then ignored.
pub(super) fn is_made_anew(name: &str) -> bool {
    matches!(name, "source_id" | "source_width" | "source_height" | "sample_crc32c")
}

/// The role that the field had in the exported pack.
pub(super) fn role_of(metadata: Option<&Metadata>, name: &str) -> Option<Role> {
    metadata.and_then(|m| m.field(name)).and_then(|f| f.role)
}

#[cfg(test)]
mod tests {
    use packds_format::Classes;

    use crate::data_format::DataFormat;

    use super::super::spool::{Spool, SpoolFolder, Unpacking};
    use super::super::store::ArrayType;
    use super::*;

    /// Builds a store from rows of the same length.
    fn rows(rows: &[&[u8]], shape: &[u64]) -> Arc<dyn Store> {
        let folder = SpoolFolder { path: std::env::temp_dir(), unpacking: Unpacking::default() };
        let mut spool = Spool::create(&folder).unwrap();
        let mut ends: Vec<u64> = Vec::new();
        for row in rows {
            let start = spool.append(row).unwrap();
            ends.push(start + u64::try_from(row.len()).unwrap());
        }
        let array = ArrayType { dtype: DType::U8, shape: shape.to_vec() };
        let content = Content::of_array(array);
        spool.into_items(Path::new("s"), &ends, content).unwrap()
    }

    fn metadata(field: &str, names: &[&str]) -> Metadata {
        let text = serde_json::json!({
            "packds": 1,
            "fields": [Field::column("labels", DType::U8, &[2]).with_role(Role::Labels)],
            "classes": [Classes {
                field: field.to_owned(),
                names: names.iter().map(|n| (*n).to_owned()).collect(),
                counts: Vec::new(),
            }],
        });
        Metadata::parse(&text.to_string()).unwrap()
    }

    fn found(n: usize) -> Found {
        Found::new(DataFormat::Npz, rows(&vec![&[0_u8; 4][..]; n], &[2, 2]), Names::Numbered("image".to_owned()))
    }

    fn labels(values: LabelValues, classes: &[&str]) -> Option<FoundLabels> {
        Some(FoundLabels { name: "y".to_owned(), values, classes: classes.iter().map(|c| (*c).to_owned()).collect() })
    }

    #[test]
    fn class_names_become_ids_in_the_order_of_the_names() {
        let mut names = TextArena::default();
        ["dog", "cat", "dog"].iter().for_each(|name| names.push(name));
        let found = Found { labels: labels(LabelValues::Names(names), &[]), ..found(3) };
        let listing = found.into_listing(Path::new("s.npz")).unwrap();
        let ids: Vec<_> = (0..3).map(|i| listing.label(i)).collect();
        assert_eq!(ids, [Some(1), Some(0), Some(1)]);
        assert_eq!(listing.classes(), [b"cat".to_vec(), b"dog".to_vec()]);
        assert_eq!(listing.file_path(2), Path::new("s.npz/image/2"));
    }

    #[test]
    fn ids_without_a_name_make_bad_samples_and_are_refused_where_all_are_so() {
        let some = Found { labels: labels(LabelValues::Ids(vec![0, -1, 2]), &["a", "b"]), ..found(3) };
        let listing = some.into_listing(Path::new("s")).unwrap();
        assert!(listing.fault(0).is_none() && listing.fault(1).is_some());
        let fault = listing.fault(2).unwrap().to_string();
        assert!(fault.ends_with("the class id 2 has no name: the list has 2 class names"), "{fault}");
        for ids in [vec![3, 2], vec![-1, -1]] {
            let found = Found { labels: labels(LabelValues::Ids(ids), &["a", "b"]), ..found(2) };
            let error = found.into_listing(Path::new("s")).unwrap_err();
            assert!(error.to_string().contains("has no name: the list has 2 class names"), "{error}");
            assert!(error.is_data());
            assert!(error.hint().unwrap().contains("label_key"));
        }
    }

    #[test]
    fn names_of_an_exported_pack_come_back() {
        let found = Found {
            labels: labels(LabelValues::Ids(vec![1, 0]), &[]),
            metadata: Some(metadata("label", &["a", "b"])),
            ..found(2)
        };
        let listing = found.into_listing(Path::new("s")).unwrap();
        assert_eq!(listing.classes(), [b"a".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn another_field_does_not_get_the_names_of_the_labels() {
        let labels = FoundLabels {
            name: "labels".to_owned(),
            values: LabelValues::Ids(vec![5, 0]),
            classes: vec!["a".to_owned()],
        };
        let found = Found { labels: Some(labels), metadata: Some(metadata("label", &["a", "b"])), ..found(2) };
        let listing = found.into_listing(Path::new("s")).unwrap();
        assert_eq!((listing.label(0), listing.classes().len()), (Some(5), 0));
    }

    #[test]
    fn sets_of_labels_come_back_as_lists() {
        let sets = SourceField {
            name: "labels".to_owned(),
            store: rows(&[&[0b101, 0], &[0, 0], &[0, 0b10]], &[2]),
            role: Some(Role::Labels),
        };
        let found = Found { fields: vec![sets], ..found(3) };
        let listing = found.into_listing(Path::new("s")).unwrap();
        let lists: Vec<_> = (0..3).map(|i| listing.label_list(i).unwrap().to_vec()).collect();
        assert_eq!(lists, [vec![0, 2], vec![], vec![9]]);
        assert!(listing.fields().is_empty());
    }

    #[test]
    fn numbers_that_are_no_ids_become_a_column_that_does_not_take_the_labels_name() {
        let mut found = Found { labels: labels(LabelValues::Numbers(vec![0.5, 1.0]), &[]), ..found(2) };
        found.labels.as_mut().unwrap().name = "label".to_owned();
        let listing = found.into_listing(Path::new("s")).unwrap();
        assert!(!listing.has_labels());
        assert_eq!(listing.columns()[0].name, "target");
    }

    #[test]
    fn fields_of_other_lengths_and_no_samples_are_refused() {
        let short = SourceField { name: "extra".to_owned(), store: rows(&[&[1], &[2]], &[]), role: None };
        let found_short = Found { fields: vec![short], ..found(3) };
        let error = found_short.into_listing(Path::new("s")).unwrap_err();
        let message = "s: extra: expected 3 values, one for each image, found 2";
        assert_eq!(error.to_string(), message);
        let error = found(0).into_listing(Path::new("s")).unwrap_err();
        assert_eq!(error.to_string(), "s: it contains no samples");
    }
}
