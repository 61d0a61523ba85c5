//! Reads TFRecord: files of `tf.Example` messages, each framed with its length and two checksums.
//!
//! Records of plain files are read in place; compressed files are unpacked. `tf.SequenceExample` is not supported.

mod example;
mod frames;

use packds_system::to_u64;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use packds_format::{DType, FieldKind, Scalar};
use packds_pixels::ImageFormat;

use super::ListOptions;
use super::class_names;
use super::column::TextArena;
use super::detect::names_in;
use super::found::{Found, FoundLabels, LabelValues, Names};
use super::gather::{Gathered, Gathering, Item};
use super::listing::Faults;
use super::protobuf::Part;
use super::roles::{Keys, Part as Role, find_field};
use super::shards::{Shards, allow_open_files};
use super::store::{Content, OpenFile, Span, SpanFiles};
use super::there::{first_there, text_file};
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::{IMAGE_KEY, LABEL_KEY, LEAVE_OUT};
use example::{Example, Feature, tensor_of};
use frames::Frames;

/// Names of the image feature, the most common first. Its field is always named `image`.
const IMAGE_KEYS: [&str; 4] = ["image/encoded", "image_raw", "image/raw", "image_bytes"];
/// Names of the label feature. Its field is always named `label`.
const LABEL_KEYS: [&str; 2] = ["image/class/label", "image/label"];
/// The feature with each sample's file name.
const FILE_NAME: &str = "image/filename";
/// The feature with each sample's class name.
const CLASS_TEXT: &str = "image/class/text";
/// Features that only repeat what the image or its bytes state.
const ABOUT_IMAGE: [&str; 8] = [
    "image/format",
    "image/height",
    "image/width",
    "image/channels",
    "image/colorspace",
    "image/shape",
    "image/dtype",
    "image/key/sha256",
];
/// Features that state the size and type of raw pixels.
const SIZES_OF_RAW: [&str; 5] = ["height", "width", "depth", "channels", "dtype"];
/// The file of class names that TF-Slim writes next to its records.
const SLIM_NAMES: &str = "labels.txt";
/// Maximum number of features reported as left out. A file can have nearly as many feature names as bytes.
const MAX_LEFT_OUT: usize = 100;
/// Maximum number of class names from strings next to labels. With larger ids, the strings are not used as class names.
const MAX_CLASSES: i64 = 1 << 20;

pub(crate) use frames::is_tfrecord;

/// A file of records, which are read from start to end.
pub(super) trait RecordFile {
    /// Reads the next record into `record`. Returns its offset in the file of [`into_file`](Self::into_file). `None` at the end.
    fn next(&mut self, record: &mut Vec<u8>) -> Result<Option<u64>, ConvertError>;

    /// The file that contains the records.
    fn into_file(self) -> Result<OpenFile, ConvertError>;
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    read_records(part, options, DataFormat::TfRecord, |path| Frames::open(path, options))
}

/// Finds the samples in files of `tf.Example` messages that `open` opens.
pub(super) fn read_records<R: RecordFile>(
    part: &Shards,
    options: &ListOptions,
    format: DataFormat,
    open: impl Fn(&Path) -> Result<R, ConvertError>,
) -> Result<Found, ConvertError> {
    allow_open_files(part.files.len());
    let mut warnings = Vec::new();
    let metadata = part.metadata(&mut warnings)?;
    let mut records = Records::new(options, metadata.as_ref());
    let mut files = Vec::new();
    for (file, path) in (0_u32..).zip(&part.files) {
        let mut opened = open(path)?;
        let (mut record, mut number) = (Vec::new(), 0);
        while let Some(offset) = opened.next(&mut record)? {
            records.add(&Place { path, file, offset, number }, &record)?;
            number += 1;
        }
        files.push(opened.into_file()?);
    }
    records.into_found((part, format), options, (files, warnings))
}

/// The location of a record.
struct Place<'a> {
    path: &'a Path,
    file: u32,
    /// Start of its message.
    offset: u64,
    /// Its index in the file.
    number: usize,
}

impl Place<'_> {
    /// An error about a value. The record itself is undamaged, as its checksum shows.
    fn malformed(&self, reason: impl Into<String>) -> ConvertError {
        let hint = format!(
            "correct the values, choose other features with {IMAGE_KEY} and {LABEL_KEY}, or leave this one out with {LEAVE_OUT}"
        );
        ConvertError::contradictory(self.path, &self.name(), reason, hint)
    }

    /// The error for an undamaged record that is not a `tf.Example`.
    fn no_example(&self, reason: impl Into<String>) -> ConvertError {
        let hint = "write each sample as a tf.train.Example (SerializeToString), because other messages, such as those of tf.io.serialize_tensor, have no feature names";
        ConvertError::contradictory(self.path, &self.name(), reason, hint)
    }

    fn name(&self) -> String {
        format!("record {}", self.number)
    }

    /// The item: a number for an array with one number, otherwise a byte range of the file.
    fn item(&self, part: Part<'_>, content: Content) -> Item<'static> {
        let number = match &content {
            Content::Array(array) if array.is_one_number() => Scalar::of(array.dtype, part.bytes),
            _ => None,
        };
        match number.map(|number| (number.integer(), number)) {
            Some((Some(id), Scalar::Bool(_) | Scalar::Int(_) | Scalar::Unsigned(_))) => Item::Int(id),
            Some((_, number)) => Item::Float(number.nearest_f64()),
            None => Item::Stored(self.span(part), content),
        }
    }

    fn span(&self, part: Part<'_>) -> Span {
        let at = to_u64(part.at);
        Span { file: self.file, offset: self.offset.saturating_add(at), bytes: to_u64(part.bytes.len()) }
    }
}

/// Records being collected.
struct Records<'a> {
    options: &'a ListOptions,
    /// Metadata of the exported pack.
    metadata: Option<&'a Metadata>,
    /// How to read each feature, according to the first record. `None` if left out.
    plan: BTreeMap<String, Option<Planned>>,
    fields: Vec<Gathered>,
    n: usize,
    paths: Vec<Vec<u8>>,
    class_texts: TextArena,
    ids: Vec<i64>,
    /// Required fields that the first record has: image, label and mask.
    needed: Vec<String>,
    faults: Faults,
    /// The type of raw pixels, if it was inferred from their number of bytes.
    assumed: Option<DType>,
    /// Features that the first record lacks.
    left_out: BTreeSet<String>,
}

/// A feature that becomes a field.
#[derive(Debug, Clone)]
struct Planned {
    field: String,
    place: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An image file, pixels or an array, according to its features.
    Stored,
    Text,
    Bytes,
    Int,
    Float,
    /// A list of values.
    List,
}

impl<'a> Records<'a> {
    fn new(options: &'a ListOptions, metadata: Option<&'a Metadata>) -> Self {
        Self {
            options,
            metadata,
            plan: BTreeMap::new(),
            fields: Vec::new(),
            n: 0,
            paths: Vec::new(),
            class_texts: TextArena::default(),
            ids: Vec::new(),
            needed: Vec::new(),
            faults: Faults::new(),
            assumed: None,
            left_out: BTreeSet::new(),
        }
    }

    fn add(&mut self, place: &Place<'_>, record: &[u8]) -> Result<(), ConvertError> {
        let mut example = match Example::parse(record) {
            Ok(example) => example,
            Err(example::Refused::Damaged(reason)) => return Err(place.no_example(reason)),
            Err(example::Refused::Sequence) => {
                let reason = "this record is a tf.SequenceExample";
                let hint = "packds reads only tf.Example";
                return Err(ConvertError::unsupported(place.path, &place.name(), reason, hint));
            }
        };
        if self.n == 0 {
            let names: Vec<String> = example.names().map(str::to_owned).collect();
            self.options.check_left_out(place.path, &names)?;
        }
        let left_out = self.options.leave_out.iter();
        left_out.for_each(|name| example.remove(name));
        if self.n == 0 {
            self.make_plan(&example);
            self.needed = self.needed_fields(place.path);
        }
        let others = example.names().filter(|name| !self.plan.contains_key(*name));
        let room = MAX_LEFT_OUT.saturating_sub(self.left_out.len());
        self.left_out.extend(others.take(room).map(str::to_owned));
        let planned: Vec<(String, Planned)> =
            self.plan.iter().filter_map(|(name, planned)| Some((name.clone(), planned.clone()?))).collect();
        for (name, planned) in &planned {
            match example.get(name) {
                Some(feature) => self.add_feature(place, &example, (name, feature), planned)?,
                None => self.add_absent(place, name, planned)?,
            }
        }
        self.add_names(&example);
        self.n += 1;
        Ok(())
    }

    /// Decides how to read each feature, based on the first record.
    fn make_plan(&mut self, example: &Example<'_>) {
        let image = self.image_of(example);
        let raw = image.as_deref().and_then(|image| example.raw_pixels(image));
        self.assumed = raw.as_ref().filter(|raw| raw.is_assumed).map(|raw| raw.array.dtype);
        for name in example.names() {
            let Some(feature) = example.get(name) else {
                continue;
            };
            let is_image = image.as_deref() == Some(name);
            let describes = |suffix: &str| {
                let of = name.strip_suffix(suffix);
                of.is_some_and(|of| example.get(of).is_some_and(Feature::is_one_bytes))
            };
            let left_out = (name == CLASS_TEXT && feature.text().is_some())
                || (name == FILE_NAME && feature.is_one_bytes())
                || (ABOUT_IMAGE.contains(&name) && image.is_some() && !is_image)
                || describes("/shape")
                || describes("/dtype")
                || (raw.is_some() && SIZES_OF_RAW.contains(&name));
            if left_out {
                self.plan.insert(name.to_owned(), None);
                continue;
            }
            let kind = match feature {
                _ if is_image => Kind::Stored,
                Feature::Bytes(values) => match values.as_slice() {
                    [_] if example.array_of(name).is_some() => Kind::Stored,
                    [_] if self.was(name, &[FieldKind::Bytes]) => Kind::Bytes,
                    [_] if self.was(name, &[FieldKind::String, FieldKind::Json]) => Kind::Text,
                    [one] if tensor_of(*one).is_some() => Kind::Stored,
                    [one] if ImageFormat::sniff(one.bytes).is_some() => Kind::Stored,
                    [one] if is_text(one.bytes) => Kind::Text,
                    [_] => Kind::Bytes,
                    _ => Kind::List,
                },
                Feature::Ints(values) if values.len() == 1 => Kind::Int,
                Feature::Floats(values) if values.len() == 1 => Kind::Float,
                Feature::Ints(_) | Feature::Floats(_) => Kind::List,
            };
            let field = match name {
                _ if is_image => "image",
                _ if LABEL_KEYS.contains(&name) => "label",
                name => name,
            };
            let planned = Planned { field: field.to_owned(), place: usize::MAX, kind };
            self.plan.insert(name.to_owned(), Some(planned));
        }
    }

    /// Whether the pack had a field with this name and one of these kinds.
    fn was(&self, name: &str, kinds: &[FieldKind]) -> bool {
        let known = self.metadata.and_then(|metadata| metadata.field(name));
        known.is_some_and(|field| kinds.contains(&field.kind))
    }

    /// The name of the image feature, if there is one.
    fn image_of(&self, example: &Example<'_>) -> Option<String> {
        if let Some(key) = &self.options.image_key {
            return example.get(key).is_some().then(|| key.clone());
        }
        let customary = IMAGE_KEYS.iter().chain(&["image", "img", "jpg", "png", "jpeg"]);
        let is_bytes = |name: &&str| example.get(name).is_some_and(Feature::is_one_bytes);
        let found = customary.copied().find(is_bytes).map(str::to_owned);
        found.or_else(|| {
            // Otherwise, take the only feature that is an image file.
            let is_file = |name: &&str| match example.get(name) {
                Some(Feature::Bytes(values)) => {
                    matches!(values.as_slice(), [one] if ImageFormat::sniff(one.bytes).is_some())
                }
                _ => false,
            };
            let mut files = example.names().filter(is_file);
            match (files.next(), files.next()) {
                (Some(one), None) => Some(one.to_owned()),
                _ => None,
            }
        })
    }

    fn add_feature(
        &mut self,
        place: &Place<'_>,
        example: &Example<'_>,
        (name, feature): (&str, &Feature<'_>),
        planned: &Planned,
    ) -> Result<(), ConvertError> {
        let wrong = |found: &str| place.malformed(format!("feature '{name}': {found}"));
        let text;
        // Once a field holds lists, all its items are lists.
        let kind = match self.fields.get(planned.place) {
            Some(field) if field.is_json() => Kind::List,
            _ => planned.kind,
        };
        let item = match (kind, feature) {
            (Kind::Stored | Kind::Bytes, Feature::Bytes(values)) => {
                let [one] = values.as_slice() else { return Err(wrong("expected one value")) };
                match kind {
                    Kind::Bytes => Item::Stored(place.span(*one), Content::Bytes),
                    _ => {
                        let found = example.content_of(name, *one, planned.field == "image");
                        let (bytes, content) = found.map_err(|reason| wrong(&reason))?;
                        match example.array_of(name).is_some() || planned.field == "image" {
                            true => Item::Stored(place.span(bytes), content),
                            false => place.item(bytes, content),
                        }
                    }
                }
            }
            (Kind::Text, Feature::Bytes(values)) => match values.as_slice() {
                [one] => self.text_or_bytes(place, *one, planned),
                // Several values, so the single strings seen earlier were in fact one-element lists.
                _ => {
                    text = feature.json().map_err(|reason| wrong(&reason))?;
                    Item::Json(&text)
                }
            },
            (Kind::Int, Feature::Ints(values)) if values.len() == 1 => Item::Int(values.first().copied().unwrap_or(0)),
            (Kind::Float, Feature::Floats(values)) if values.len() == 1 => {
                Item::Float(values.first().copied().unwrap_or(0.0).into())
            }
            (Kind::Int | Kind::Float | Kind::List, feature) => {
                text = feature.json().map_err(|reason| wrong(&reason))?;
                Item::Json(&text)
            }
            _ => return Err(wrong("expected the same type as in the first record")),
        };
        if planned.field == "label"
            && let Item::Int(id) = item
        {
            self.ids.push(id);
        }
        match self.fields.get_mut(planned.place) {
            Some(field) => field.push_or_widen(&item).map_err(|reason| wrong(&reason)),
            None => {
                let known = self.fields.iter().position(|f| f.name == planned.field);
                if known.is_some() {
                    return Err(wrong(&format!("two features would have the same field: choose one with {IMAGE_KEY}")));
                }
                let number = self.fields.len();
                self.fields.push(Gathered::begin(planned.field.clone(), &item));
                if let Some(Some(planned)) = self.plan.get_mut(name) {
                    planned.place = number;
                }
                Ok(())
            }
        }
    }

    /// Adds an empty item for a missing feature; in this format, missing and empty mean the same. If the item cannot be empty, the sample is
    /// bad.
    fn add_absent(&mut self, place: &Place<'_>, name: &str, planned: &Planned) -> Result<(), ConvertError> {
        let is_needed = self.needed.contains(&planned.field);
        let Some(field) = self.fields.get_mut(planned.place) else {
            return Ok(());
        };
        let is_empty = !is_needed && field.push_empty().map_err(|e| place.malformed(e))?;
        if is_empty {
            return Ok(());
        }
        field.push_missing();
        if planned.field == "label" {
            // Adds a placeholder, because `ids` needs one id per sample, like `class_texts`.
            self.ids.extend(self.ids.first().copied());
        }
        self.add_fault(name);
        Ok(())
    }

    /// Marks the current sample as bad because a feature is missing.
    fn add_fault(&mut self, name: &str) {
        let reason = format!("there is no feature '{name}'");
        self.faults.entry(self.n).or_insert(reason.into());
    }

    /// The required fields that the first record has.
    fn needed_fields(&self, source: &Path) -> Vec<String> {
        let planned = self.plan.values().flatten();
        let names: Vec<String> = planned.map(|planned| planned.field.clone()).collect();
        let label = label_key(self.options);
        let keys = Keys { label: label.as_deref(), ..Keys::of(self.options) };
        let find = |part| {
            // Keys that match no field are reported later.
            let found = find_field(source, &names, part, keys, None).ok().flatten();
            found.and_then(|place| names.get(place).cloned())
        };
        let found = [find(Role::Label), find(Role::Mask)];
        let image = Some("image".to_owned());
        found.into_iter().chain([image]).flatten().collect()
    }

    /// The value as a string or as bytes: as in the exported pack, if there is one, or else like the first non-empty value. Strings
    /// become bytes if a later value is not text.
    fn text_or_bytes<'b>(&self, place: &Place<'_>, one: Part<'b>, planned: &Planned) -> Item<'b> {
        let text = str::from_utf8(one.bytes).ok();
        let is_known = self.was(&planned.field, &[FieldKind::String, FieldKind::Json]);
        let is_first = match self.fields.get(planned.place) {
            Some(field) => field.is_blank(),
            None => true,
        };
        match text {
            Some(text) if is_known || !is_first || is_text(one.bytes) => Item::TextIn(text, place.span(one)),
            _ => Item::Stored(place.span(one), Content::Bytes),
        }
    }

    /// Adds file names and class names, which are not fields.
    fn add_names(&mut self, example: &Example<'_>) {
        let is_planned = |name: &str| matches!(self.plan.get(name), Some(None));
        let (has_file, has_class) = (is_planned(FILE_NAME), is_planned(CLASS_TEXT));
        // If any sample has no file name, numbers are used as the names of all samples.
        let file = example.get(FILE_NAME).and_then(Feature::one_bytes);
        self.paths.extend(file.filter(|_| has_file).map(<[u8]>::to_vec));
        if has_class {
            let class = example.get(CLASS_TEXT).and_then(Feature::text);
            if class.is_none() && !self.has_label() {
                self.add_fault(CLASS_TEXT);
            }
            let is_bad = self.faults.contains_key(&self.n);
            let class = class.filter(|_| !is_bad);
            self.class_texts.push(class.unwrap_or_default());
        }
    }

    fn has_label(&self) -> bool {
        self.fields.iter().any(|field| field.name == "label")
    }

    fn into_found(
        mut self,
        (part, format): (&Shards, DataFormat),
        options: &ListOptions,
        (files, mut warnings): (Vec<OpenFile>, Vec<Warning>),
    ) -> Result<Found, ConvertError> {
        warnings.extend(self.left_out.iter().map(|name| Warning::LeftOut {
            field: name.clone(),
            reason: "it is not in the first record, which defines the features".to_owned(),
        }));
        warnings.extend(self.assumed.map(|dtype| Warning::AssumedPixels { dtype }));
        let metadata = self.metadata.cloned();
        warnings.extend(other_names(part)?);
        let classes = match label_names(part)? {
            Some(names) => names,
            None if metadata.is_none() => match self.classes_of_texts() {
                none if none.is_empty() => self.classes_beside(part, &mut warnings)?,
                names => names,
            },
            None => Vec::new(),
        };
        let mut options = options.clone();
        options.image_key = match options.image_key {
            Some(key) if self.plan.contains_key(&key) => Some("image".to_owned()),
            key => key,
        };
        options.label_key = label_key(&options);
        let labels =
            (!self.has_label() && self.class_texts.len() == self.n && options.label_key.is_none()).then(|| {
                let texts = std::mem::take(&mut self.class_texts);
                FoundLabels::without_classes(CLASS_TEXT, LabelValues::Names(texts))
            });
        let names = match self.paths.len() == self.n && self.n > 0 {
            true => Names::Paths(self.paths),
            false => Names::Numbered("record".to_owned()),
        };
        let gathering = Gathering {
            format,
            fields: self.fields,
            names,
            files: SpanFiles::open(files),
            classes,
            labels,
            metadata,
            warnings,
            ignored: 0,
        };
        let found = gathering.into_found(&part.root, &options)?;
        Ok(Found { faults: self.faults, ..found })
    }

    /// The class names in a file next to the records. A file that cannot be used causes a warning.
    fn classes_beside(&self, part: &Shards, warnings: &mut Vec<Warning>) -> Result<Vec<String>, ConvertError> {
        let Some(first) = part.files.first().filter(|_| !self.ids.is_empty()) else { return Ok(Vec::new()) };
        let path = first.with_file_name(SLIM_NAMES);
        let Some(text) = text_file(&path)? else {
            warnings.extend(class_names::beside(first)?);
            return Ok(Vec::new());
        };
        let file = SLIM_NAMES.as_bytes().to_vec();
        let n_ids = self.ids.iter().max().map_or(0, |id| id.saturating_add(1));
        match slim_names(&text).filter(|names| i64::try_from(names.len()).is_ok_and(|n| n >= n_ids)) {
            Some(names) => {
                warnings.push(Warning::ClassNamesRead { file });
                Ok(names)
            }
            None => {
                warnings.push(Warning::ClassNamesUnread { file, of_ids: false });
                Ok(Vec::new())
            }
        }
    }

    /// The class names from the strings next to the labels. Empty if an id has several names. An id without samples is its own name.
    fn classes_of_texts(&self) -> Vec<String> {
        let largest = self.ids.iter().max().copied().unwrap_or(0);
        let negative = self.ids.iter().any(|id| *id < 0);
        if self.class_texts.len() != self.ids.len() || negative || largest >= MAX_CLASSES {
            return Vec::new();
        }
        let mut name_of: BTreeMap<i64, &str> = BTreeMap::new();
        let named = self.ids.iter().zip(self.class_texts.iter());
        for (id, name) in named.filter(|(_, name)| !name.is_empty()) {
            if *name_of.entry(*id).or_insert(name) != name {
                return Vec::new();
            }
        }
        if name_of.is_empty() {
            return Vec::new();
        }
        let name = |id| name_of.get(&id).map_or_else(|| id.to_string(), |n| (*n).to_owned());
        (0..=largest).map(name).collect()
    }
}

/// The label field that the caller chose, with `label` in place of the common names of the feature.
fn label_key(options: &ListOptions) -> Option<String> {
    let key = options.label_key.as_deref()?;
    let is_customary = LABEL_KEYS.contains(&key);
    Some(if is_customary { "label" } else { key }.to_owned())
}

/// Whether the bytes are text: no control characters except line breaks and tabs.
fn is_text(bytes: &[u8]) -> bool {
    let text = str::from_utf8(bytes);
    text.is_ok_and(|text| !text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)))
}

/// The class names in a file of TF-Slim: an id and a name in each line, such as `0:daisy`. `None` for other text, and
/// if the ids do not count from 0.
fn slim_names(text: &str) -> Option<Vec<String>> {
    let pairs = text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.split_once(':'));
    let pair = |(id, name): (&str, &str)| Some((id.trim().parse::<usize>().ok()?, name.trim().to_owned()));
    let mut pairs: Vec<(usize, String)> = pairs.map(|parts| parts.and_then(pair)).collect::<Option<_>>()?;
    pairs.sort();
    pairs
        .iter()
        .enumerate()
        .all(|(place, (id, _))| place == *id)
        .then(|| pairs.into_iter().map(|(_, name)| name).collect())
}

/// The class names that TensorFlow Datasets stores in the source or next to its first file.
fn label_names(part: &Shards) -> Result<Option<Vec<String>>, ConvertError> {
    let names = first_there(folders_of_names(part).map(|folder| folder.join("label.labels.txt")))?;
    let text = names.map(|names| text_file(&names)).transpose()?.flatten();
    Ok(text.map(|text| text.lines().map(str::to_owned).collect()))
}

/// The folders that may have files of class names.
fn folders_of_names(part: &Shards) -> impl Iterator<Item = &Path> {
    let beside = part.files.first().and_then(|file| file.parent());
    [Some(part.root.as_path()).filter(|root| root.is_dir()), beside].into_iter().flatten()
}

/// The warnings about the class names of other features than the label, in files such as `species.labels.txt`.
fn other_names(part: &Shards) -> Result<Vec<Warning>, ConvertError> {
    let Some(folder) = folders_of_names(part).next() else { return Ok(Vec::new()) };
    let mut fields: Vec<String> =
        names_in(folder).iter().filter_map(|name| Some(name.strip_suffix(".labels.txt")?.to_owned())).collect();
    fields.retain(|field| field != "label");
    fields.sort_unstable();
    let told = |field: String| {
        let text = text_file(&folder.join(format!("{field}.labels.txt")))?.unwrap_or_default();
        Ok(Warning::NamesLeftOut { field, names: text.lines().map(str::to_owned).collect() })
    };
    fields.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests;
