//! Finds labels in a source of arrays without a label field: one-hot rows, or the only field of whole numbers.

use std::collections::BTreeSet;
use std::path::Path;

use packds_format::{DType, Scalar};
use packds_system::{to_u64, to_usize};

use super::column::{ColumnValues, SourceColumn};
use super::found::{Found, FoundLabels, LabelValues};
use super::indicators::{is_no_chance, only_one};
use super::listing::SourceField;
use super::roles::is_column_name;
use super::store::{ArrayType, Content};
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::LABEL_KEY;
use crate::sample::SampleError;

/// Maximum number of classes for fields that are not named like labels.
const MAX_CLASSES: u64 = 1 << 16;

/// The number of classes if items of this type may be one-hot labels.
pub(super) fn one_hot_classes(array: &ArrayType) -> Option<u64> {
    match *array.shape.as_slice() {
        [n @ 2..=MAX_CLASSES] => Some(n),
        _ => None,
    }
}

/// A field with several numbers for each image.
#[derive(Debug, Clone)]
struct Vector {
    name: String,
    n: u64,
    place: Place,
}

/// Where a field is.
#[derive(Debug, Clone)]
enum Place {
    /// An index in [`Found::fields`].
    Field(usize),
    /// An index in [`Found::texts`], for a column whose values are JSON lists.
    Column(usize),
}

impl Found {
    /// If there are no labels yet, takes them from a field whose values are almost certainly labels. `key` is the label field that the
    /// caller chose.
    ///
    /// # Errors
    /// If the caller chose a field with several numbers for each image that is not one-hot.
    pub(super) fn take_label_field(&mut self, source: &Path, key: Option<&str>) -> Result<(), ConvertError> {
        if self.labels.is_some() || self.metadata.is_some() {
            return Ok(());
        }
        self.take_one_hot(source, key)?;
        if self.labels.is_none() && key.is_none() && self.named_like_labels().is_none() {
            self.take_only_ids(source)?;
        }
        Ok(())
    }

    /// The field that is named like labels, but whose items are not class ids.
    fn named_like_labels(&self) -> Option<&str> {
        self.warnings.iter().find_map(|warning| match warning {
            Warning::NotLabels { field, .. } => Some(field.as_str()),
            _ => None,
        })
    }

    /// Takes one-hot labels from the field that is named like labels, or else from the only field that can be one-hot.
    fn take_one_hot(&mut self, source: &Path, key: Option<&str>) -> Result<(), ConvertError> {
        let vectors = self.vectors();
        let named = self.named_like_labels();
        let chosen = match (named, vectors.as_slice()) {
            (Some(named), vectors) => vectors.iter().find(|vector| vector.name == named),
            (None, [only]) => Some(only),
            _ => None,
        };
        let Some(Vector { name, n, place }) = chosen.cloned() else { return Ok(()) };
        let wrong = |error: SampleError| ConvertError::malformed(source, &name, error.to_string());
        match self.one_hot_ids(&place, n, named.is_some()).map_err(wrong)? {
            Some(ids) => {
                self.warnings.push(Warning::OneHotLabels { field: name, n });
                self.take_ids(&place, ids);
                Ok(())
            }
            None if key == Some(name.as_str()) => {
                let reason = format!(
                    "expected one number or class name for each image, or {n} numbers with a 1 for the class and 0 elsewhere, found other numbers"
                );
                let hint = format!("choose another field with {LABEL_KEY}, or omit it to pack the numbers as a field");
                Err(ConvertError::unsupported(source, &name, reason, hint))
            }
            None => Ok(()),
        }
    }

    /// The fields with several numbers for each image. JSON lists are included only if no array can be one-hot.
    fn vectors(&self) -> Vec<Vector> {
        let of_field = |(place, field): (usize, &SourceField)| {
            let n = one_hot_classes(&array_of(field)?)?;
            Some(Vector { name: field.name.clone(), n, place: Place::Field(place) })
        };
        let of_column = |(place, column): (usize, &SourceColumn)| {
            let ColumnValues::Json(texts) = &column.values else { return None };
            let n = to_u64(flags_of(texts.iter().next()?)?.len());
            (2..=MAX_CLASSES).contains(&n).then(|| Vector { name: column.name.clone(), n, place: Place::Column(place) })
        };
        let arrays: Vec<Vector> = self.fields.iter().enumerate().filter_map(of_field).collect();
        match arrays.is_empty() {
            true => self.texts.iter().enumerate().filter_map(of_column).collect(),
            false => arrays,
        }
    }

    /// The position of the 1 in each row. `None` if a row is not one-hot. Also `None` if the field is not named like
    /// labels and has so few rows that they may be one-hot by chance.
    fn one_hot_ids(&self, place: &Place, n: u64, is_named: bool) -> Result<Option<Vec<i64>>, SampleError> {
        let mut row = Vec::new();
        let mut json = match place {
            Place::Column(place) => self.texts.get(*place).and_then(|column| match &column.values {
                ColumnValues::Json(texts) => Some(texts.iter()),
                _ => None,
            }),
            Place::Field(_) => None,
        };
        let mut ids = Vec::new();
        for idx in 0..self.images.len() {
            let text = json.as_mut().and_then(Iterator::next);
            if self.faults.contains_key(&idx) {
                // The row is only a placeholder.
                ids.push(0);
                continue;
            }
            let flags = match (place, text) {
                (Place::Field(place), _) => array_flags(&self.fields[*place], idx, &mut row)?,
                (Place::Column(_), text) => text.and_then(flags_of).filter(|flags| to_u64(flags.len()) == n),
            };
            let id = flags.and_then(|flags| only_one(flags.into_iter())).and_then(|id| i64::try_from(id).ok());
            let Some(id) = id else { return Ok(None) };
            ids.push(id);
        }
        let seen: BTreeSet<i64> = ids.iter().copied().collect();
        Ok((is_named || is_no_chance(seen.len(), ids.len(), to_usize(n))).then_some(ids))
    }

    /// Takes the labels from the only field of whole numbers, if they look like class ids. Does nothing if there are strings, because a
    /// text could also be the label.
    fn take_only_ids(&mut self, source: &Path) -> Result<(), ConvertError> {
        let mut places = (0..self.fields.len()).filter(|place| is_one_integer(&self.fields[*place]));
        let (Some(place), None) = (places.next(), places.next()) else { return Ok(()) };
        let SourceField { name, store, .. } = &self.fields[place];
        let dtype = array_of(&self.fields[place]).map_or(DType::Bool, |array| array.dtype);
        if dtype == DType::Bool || is_column_name(name) || !self.texts.is_empty() {
            return Ok(());
        }
        let values = LabelValues::of_store(store.clone(), dtype);
        let values = values.map_err(|error| ConvertError::malformed(source, name, error.to_string()))?;
        if let LabelValues::Ids(ids) = values
            && are_class_ids(&ids)
        {
            self.warnings.push(Warning::OnlyIds { field: name.clone() });
            self.take_ids(&Place::Field(place), ids);
        }
        Ok(())
    }

    /// Uses the field at `place` as the labels.
    fn take_ids(&mut self, place: &Place, ids: Vec<i64>) {
        let name = match *place {
            Place::Field(place) => self.fields.remove(place).name,
            Place::Column(place) => self.texts.remove(place).name,
        };
        self.warnings.retain(|warning| !matches!(warning, Warning::NotLabels { field, .. } if *field == name));
        let classes = std::mem::take(&mut self.classes);
        self.labels = Some(FoundLabels { name, values: LabelValues::Ids(ids), classes });
    }
}

/// The type of a field's items if they are arrays. `None` if the field has no name, because packs cannot store it.
fn array_of(field: &SourceField) -> Option<ArrayType> {
    match field.store.content(0) {
        Content::Array(array) if !field.name.is_empty() => Some(array),
        _ => None,
    }
}

/// Whether a field has one whole number per sample.
pub(super) fn is_one_integer(field: &SourceField) -> bool {
    array_of(field).is_some_and(|array| array.is_one_number() && !array.dtype.is_float())
}

/// Whether a field has several numbers per sample, like one-hot labels.
pub(super) fn is_vector(field: &SourceField) -> bool {
    array_of(field).is_some_and(|array| one_hot_classes(&array).is_some())
}

/// Which numbers of an array are 1. `None` unless each is 0 or 1.
fn array_flags(field: &SourceField, idx: usize, row: &mut Vec<u8>) -> Result<Option<Vec<bool>>, SampleError> {
    let Some(array) = array_of(field) else { return Ok(None) };
    row.clear();
    field.store.append(idx, u64::MAX, row)?;
    let numbers = row.chunks_exact(to_usize(array.dtype.size()));
    Ok(numbers.map(|bytes| flag(Scalar::of(array.dtype, bytes)?)).collect())
}

/// Which numbers of a JSON list are 1. `None` unless each is 0 or 1.
fn flags_of(list: &str) -> Option<Vec<bool>> {
    let numbers: Vec<f64> = serde_json::from_str(list).ok()?;
    numbers.into_iter().map(|number| flag(Scalar::Double(number))).collect()
}

fn flag(number: Scalar) -> Option<bool> {
    match number.class_id()? {
        id @ (0 | 1) => Some(id == 1),
        _ => None,
    }
}

/// Whether whole numbers look like class ids: they start at 0, repeat, and have few gaps.
fn are_class_ids(ids: &[i64]) -> bool {
    let seen: BTreeSet<i64> = ids.iter().copied().collect();
    let (first, last) = (seen.first().copied(), seen.last().copied().unwrap_or(0));
    let n_seen = i64::try_from(seen.len()).unwrap_or(i64::MAX);
    first == Some(0) && n_seen > 1 && 2 * seen.len() <= ids.len() && last / 2 < n_seen
}
