//! Lists of samples in a `torch.save` file, such as `torch.save(list(dataset))`: each sample is a dictionary or a tuple.
//!
//! The first sample defines the fields.

use std::path::Path;

use packds_format::Scalar;

use super::super::ListOptions;
use super::super::found::{Found, Names};
use super::super::gather::{Gathered, Gathering, Item};
use super::super::pickle::{Id, Node, Tree};
use super::super::roles::{is_image_name, is_label_name};
use super::super::shards::Shards;
use super::super::split::is_split_name;
use super::super::store::{Content, OpenFile, Span, SpanFiles};
use super::super::tally::Tally;
use super::super::warning::Warning;
use super::storages::{self, Storages};
use super::tensors::{Tensor, add_classes, class_names, inner, is_tensor, place_name, tensor};
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::opt::LEAVE_OUT;

/// Maximum number of fields of a sample.
const MAX_FIELDS: usize = 256;

/// A list of samples, and its split if the file has one list per split.
pub(super) struct SampleList<'a> {
    pub(super) split: Option<&'a str>,
    samples: &'a [Id],
}

/// The lists of samples in a file: the saved object itself, or the values of a dictionary of splits. Empty if the file holds
/// tensors of all samples instead.
pub(super) fn lists(tree: &Tree) -> Vec<SampleList<'_>> {
    let list = |id: Id| match tree.get(inner(tree, id)) {
        Node::List(samples) if samples.iter().all(|sample| is_sample(tree, *sample)) => {
            samples.first().map(|_| samples.as_slice())
        }
        _ => None,
    };
    if let Some(samples) = list(tree.root) {
        return vec![SampleList { split: None, samples }];
    }
    let entries = tree.entries(tree.root).unwrap_or_default().iter();
    let named = |(key, value): &(Id, Id)| Some((tree.text(*key)?, list(*value)?));
    let found: Vec<(&str, &[Id])> = entries.clone().filter_map(named).collect();
    let has_tensors = entries.clone().any(|(_, value)| is_tensor(tree, *value));
    let is_split = |(name, _): &(&str, &[Id])| is_split_name(name.as_bytes());
    match found.as_slice() {
        [(_, samples)] if !has_tensors && !found.iter().all(is_split) => vec![SampleList { split: None, samples }],
        lists if lists.iter().all(is_split) => {
            lists.iter().map(|(name, samples)| SampleList { split: Some(*name), samples }).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a value is a dictionary with strings as keys, or a tuple whose first value is a tensor.
fn is_sample(tree: &Tree, id: Id) -> bool {
    let is_text = |(key, _): &(Id, Id)| tree.text(*key).is_some();
    match (tree.entries(id), tree.get(id)) {
        (Some(entries), _) => (1..=MAX_FIELDS).contains(&entries.len()) && entries.iter().all(is_text),
        (None, Node::Tuple(values)) => {
            values.len() <= MAX_FIELDS && values.first().is_some_and(|id| is_tensor(tree, *id))
        }
        _ => false,
    }
}

/// The fields of a sample, in order.
fn fields(tree: &Tree, sample: Id) -> Vec<(String, Id)> {
    if let Some(entries) = tree.entries(sample) {
        return entries.iter().filter_map(|(key, value)| Some((tree.text(*key)?.to_owned(), *value))).collect();
    }
    let values = tree.items(sample).unwrap_or_default().iter().enumerate();
    values.map(|(place, value)| (place_name(place), *value)).collect()
}

/// Whether `split` belongs to the part with the split `wanted`, which is in lower case.
fn is_wanted(split: Option<&str>, wanted: Option<&str>) -> bool {
    matches!((split, wanted), (Some(split), Some(wanted)) if split.eq_ignore_ascii_case(wanted))
}

/// Finds the samples of a part whose files contain lists of samples.
pub(super) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut columns = Columns::default();
    let mut files = Vec::new();
    for (number, path) in (0_u32..).zip(&part.files) {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let (tree, storages) = storages::open(&file)?;
        let wanted = part.split.as_deref();
        let list = lists(&tree).into_iter().find(|list| list.split.is_none() || is_wanted(list.split, wanted));
        let list = list.ok_or_else(|| {
            let hint = "save each sample as a dictionary with an 'image', or save one file for each split";
            ConvertError::contradictory(path, "", "expected a list of samples with images, found none", hint)
        })?;
        columns.take_others(&tree, path)?;
        let reader = Reader { tree: &tree, storages: &storages, file: &file, number };
        for (idx, sample) in list.samples.iter().enumerate() {
            columns.add(&reader, (idx, *sample), options)?;
        }
        files.push(file);
    }
    let stem = part.root.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut warnings: Vec<Warning> = columns.skipped.into_iter().map(|(_, warning)| warning).collect();
    warnings.extend(columns.others.warning(|count, first| Warning::OtherArrays { count, first }));
    let gathering = Gathering {
        format: DataFormat::Pt,
        fields: columns.fields,
        names: Names::Numbered(stem),
        files: SpanFiles::open(files),
        classes: columns.classes,
        labels: None,
        metadata: None,
        warnings,
        ignored: 0,
    };
    gathering.into_found(&part.root, options)
}

/// The samples of all files, by field.
#[derive(Default)]
struct Columns {
    /// All fields of the first sample.
    names: Vec<String>,
    fields: Vec<Gathered>,
    /// The names of fields that cannot be kept, each with its warning.
    skipped: Vec<(String, Warning)>,
    n: usize,
    classes: Vec<String>,
    /// What the files contain besides samples.
    others: Tally,
}

impl Columns {
    /// Reads the class names next to the lists of samples.
    fn take_others(&mut self, tree: &Tree, path: &Path) -> Result<(), ConvertError> {
        for (key, value) in tree.entries(tree.root).unwrap_or_default() {
            let key = tree.text(*key).unwrap_or_default();
            match class_names(tree, key, *value) {
                Some(classes) => add_classes(&mut self.classes, classes, (path, key))?,
                None if matches!(tree.get(*value), Node::List(_)) => {}
                None => self.others.add(key.as_bytes()),
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        reader: &Reader<'_>,
        (idx, sample): (usize, Id),
        options: &ListOptions,
    ) -> Result<(), ConvertError> {
        let values = fields(reader.tree, sample);
        let (path, place) = (reader.file.path.as_path(), format!("sample {idx}"));
        if self.n == 0 {
            self.names = values.iter().map(|(name, _)| name.clone()).collect();
            options.check_left_out(path, &self.names)?;
            refuse_batches(reader, &values)?;
        }
        let is_same = values.len() == self.names.len() && self.names.iter().all(|n| values.iter().any(|(v, _)| v == n));
        if !is_same {
            let found: Vec<String> = values.into_iter().map(|(name, _)| name).collect();
            let reason = format!("expected the fields {}, found {}", quoted(&self.names), quoted(&found));
            let hint = "save samples that all have the same fields";
            return Err(ConvertError::contradictory(path, &place, reason, hint));
        }
        for (name, value) in values {
            if !options.is_left_out(&name) && !self.skipped.iter().any(|(skipped, _)| *skipped == name) {
                self.add_value(reader, &place, name, value)?;
            }
        }
        self.n += 1;
        Ok(())
    }

    fn add_value(&mut self, reader: &Reader<'_>, place: &str, name: String, id: Id) -> Result<(), ConvertError> {
        let wrong = |reason: String| {
            let hint = format!(
                "save items of one type and shape (images may differ in size), or add {}",
                LEAVE_OUT.with(&name)
            );
            ConvertError::contradictory(&reader.file.path, place, format!("'{name}': {reason}"), hint)
        };
        let text;
        let item = match reader.value(&format!("{place} '{name}'"), id)? {
            Value::Tensor(item) => item,
            Value::Int(number) => Item::Int(number),
            Value::Float(number) => Item::Float(number),
            Value::Text(own) => Item::Text(own),
            Value::Json(own) => {
                text = own;
                Item::Json(&text)
            }
            Value::Other(found) if self.n == 0 && !is_image_name(&name) && !is_label_name(&name) => {
                let reason = format!("expected tensors, numbers or strings, found {found}");
                self.skipped.push((name.clone(), Warning::LeftOut { field: name, reason }));
                return Ok(());
            }
            Value::Other(found) => {
                return Err(wrong(format!("expected a tensor, a number or a string, found {found}")));
            }
        };
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.push(&item).map_err(wrong),
            None => {
                self.fields.push(Gathered::begin(name, &item));
                Ok(())
            }
        }
    }
}

/// A file with samples.
struct Reader<'a> {
    tree: &'a Tree,
    storages: &'a Storages,
    file: &'a OpenFile,
    /// The file's index in the part.
    number: u32,
}

/// The value of a field.
enum Value<'a> {
    Tensor(Item<'static>),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Json(String),
    /// A description of any other value.
    Other(String),
}

impl<'a> Reader<'a> {
    fn value(&self, place: &str, id: Id) -> Result<Value<'a>, ConvertError> {
        if let Some(tensor) = tensor(self.tree, self.storages, (&self.file.path, place), id)? {
            return self.tensor(place, &tensor);
        }
        Ok(match self.tree.get(id) {
            Node::Int(number) => Value::Int(*number),
            Node::Bool(is) => Value::Int(i64::from(*is)),
            Node::Float(number) => Value::Float(*number),
            Node::Text(_) => self.tree.text(id).map_or_else(|| Value::Other(self.tree.kind(id)), Value::Text),
            _ => match self.json(id) {
                Some(list) => Value::Json(list),
                None => Value::Other(self.tree.kind(id)),
            },
        })
    }

    /// A list of numbers or strings as JSON.
    fn json(&self, id: Id) -> Option<String> {
        let item = |id: &Id| match self.tree.get(*id) {
            Node::Int(number) => Some(serde_json::Value::from(*number)),
            Node::Float(number) => Some(serde_json::Value::from(*number)),
            Node::Bool(is) => Some(serde_json::Value::from(*is)),
            _ => self.tree.text(*id).map(serde_json::Value::from),
        };
        let items: Option<Vec<_>> = self.tree.items(id)?.iter().map(item).collect();
        Some(serde_json::Value::from(items?).to_string())
    }

    /// Returns a tensor with one number as that number, and any other tensor as its bytes in the file.
    fn tensor(&self, place: &str, tensor: &Tensor) -> Result<Value<'a>, ConvertError> {
        let bytes = tensor.checked_bytes((&self.file.path, place))?;
        if !tensor.array.is_one_number() {
            let span = Span { file: self.number, offset: tensor.offset, bytes };
            return Ok(Value::Tensor(Item::Stored(span, Content::of_array(tensor.array.clone()))));
        }
        let bytes = self.file.part(place, tensor.offset, bytes)?;
        let number = Scalar::of(tensor.array.dtype, &bytes);
        let is_float = tensor.array.dtype.is_float();
        Ok(match number.and_then(|number| number.integer().filter(|_| !is_float)) {
            Some(number) => Value::Int(number),
            None => Value::Float(number.map_or(f64::NAN, Scalar::nearest_f64)),
        })
    }
}

/// Refuses lists of batches, as returned by a data loader: the first batch would be mistaken for a sample.
fn refuse_batches(reader: &Reader<'_>, values: &[(String, Id)]) -> Result<(), ConvertError> {
    let shape_of = |is_role: fn(&str) -> bool| -> Result<Option<Vec<u64>>, ConvertError> {
        let Some((name, id)) = values.iter().find(|(name, _)| is_role(name)) else {
            return Ok(None);
        };
        let found = tensor(reader.tree, reader.storages, (&reader.file.path, name), *id)?;
        Ok(found.map(|tensor| tensor.array.shape))
    };
    let (Some(images), Some(labels)) = (shape_of(is_image_name)?, shape_of(is_label_name)?) else {
        return Ok(());
    };
    // Three or four labels and a three-dimensional image may be one sample: the first dimension may be the channels.
    let is_batch = match (images.as_slice(), labels.as_slice()) {
        ([n, _, _], [labels]) => *n > 4 && labels == n,
        ([n, _, ..], [labels]) => *n > 1 && labels == n,
        _ => false,
    };
    if !is_batch {
        return Ok(());
    }
    let reason = format!(
        "expected a list of samples, found a list of batches (the first has {} images)",
        images.first().unwrap_or(&0)
    );
    let hint = "save one tensor of all images and one tensor of all labels (torch.cat)";
    Err(ConvertError::unsupported(&reader.file.path, "", reason, hint))
}

/// The names of the fields in each list, prefixed with its split. They decide which splits a file has.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let names = lists(tree).into_iter().flat_map(|list| {
        let first = list.samples.first().map(|sample| fields(tree, *sample)).unwrap_or_default();
        first.into_iter().map(move |(name, _)| match list.split {
            Some(split) => format!("{split}.{name}"),
            None => name,
        })
    });
    names.collect()
}
