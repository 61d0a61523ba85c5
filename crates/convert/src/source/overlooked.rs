//! Warns about possible labels in a source for which no labels were found.

use packds_format::DType;
use packds_system::to_u64;
use serde_json::Value;

use super::column::{ColumnValues, TextArena};
use super::label_fields::{is_one_integer, is_vector};
use super::listing::{Images, Listing, SourceField, SourceKind};
use super::roles::is_label_name;
use super::store::Content;
use super::warning::Warning;
use crate::data_format::DataFormat;

/// Adds warnings about possible labels, unless there are labels, or a field named like labels already has a warning.
pub(super) fn note_overlooked_labels(listing: &mut Listing) {
    let has_labels = listing.has_labels() || listing.has_label_lists();
    let is_told = |warning: &Warning| matches!(warning, Warning::NotLabels { .. });
    if has_labels || listing.metadata.is_some() || listing.warnings.iter().any(is_told) {
        return;
    }
    let is_program = listing.kind == SourceKind::Program;
    // In sources of other formats, vectors are rarely labels. They may be boxes.
    let has_arrays = matches!(listing.kind, SourceKind::Container(format) if format.may_hold_one_sample());
    let may_be_labels = |field: &&SourceField| is_one_integer(field) || (has_arrays && is_vector(field));
    let mut numbers = listing.fields.iter().filter(may_be_labels).map(|field| field.name.clone()).collect::<Vec<_>>();
    numbers.extend(integer_columns(listing));
    let json = json_columns(listing);
    listing.warnings.extend(json);
    if !numbers.is_empty() {
        listing.warnings.push(Warning::NoLabels { fields: numbers, is_program });
    }
}

/// The columns of integers with a word for labels in their names, as in `label_category`.
fn integer_columns(listing: &Listing) -> impl Iterator<Item = String> {
    let is_named = |name: &str| name.split(['_', '-', ' ', '.']).any(is_label_name);
    let integers = listing.columns.iter().filter(|column| matches!(column.values, ColumnValues::I64(_)));
    integers.filter(move |column| is_named(&column.name)).map(|column| column.name.clone())
}

/// Warns about arrays in which a dimension other than the first may count the samples. It may be the last, as written
/// by MATLAB (`[height, width, 3, n]`), or the second, after the frames of a video (`[frames, n, height, width]`).
pub(super) fn other_axis(listing: &Listing) -> Option<Warning> {
    let Images::Stored(store) = &listing.images else { return None };
    let Content::Array(array) = store.content(0) else { return None };
    let [width, channels, n] = *array.shape.as_slice() else { return None };
    let is_last = matches!(channels, 1 | 3) && width > 4 && n > 4;
    let is_second = width > 4 && channels > 4 && n > 4;
    let axis = is_last.then_some(3).or(is_second.then_some(1)).filter(|_| array.dtype == DType::U8)?;
    Some(Warning::OtherAxis { array: ([to_u64(store.len()), width, channels, n], axis) })
}

/// Warns about one-dimensional images with as many numbers as a square image.
pub(super) fn flat_pixels(listing: &Listing) -> Option<Warning> {
    const MIN_SIDE: u64 = 8;
    let Images::Stored(store) = &listing.images else { return None };
    let Content::Array(array) = store.content(0) else { return None };
    let [n] = *array.shape.as_slice() else { return None };
    let square = |channels: u64| {
        let side = (n / channels).isqrt();
        (side >= MIN_SIDE && side * side * channels == n).then_some(Warning::FlatPixels { n, side, channels })
    };
    square(3).or_else(|| square(1)).filter(|_| listing.metadata.is_none())
}

/// Warns about labels inside JSON objects in a table, if there are no other labels.
pub(super) fn inner_labels(listing: &Listing) -> Vec<Warning> {
    let has_labels = listing.has_labels() || listing.has_label_lists();
    if has_labels || listing.metadata.is_some() { Vec::new() } else { json_columns(listing) }
}

/// Warns about columns of lists or objects that are named like labels, or that contain a key named like labels.
fn json_columns(listing: &Listing) -> Vec<Warning> {
    let has_keys = listing.kind == DataFormat::WebDataset.into();
    let told = |(name, texts): (&String, &TextArena)| {
        if is_label_name(name) {
            return Some(Warning::NotLabels { field: name.clone(), found: "lists or objects".to_owned() });
        }
        let first: Value = serde_json::from_str(texts.iter().find(|text| *text != "null")?).ok()?;
        let is_label = |(key, value): &(&String, &Value)| is_label_name(key) && (value.is_i64() || value.is_string());
        let (key, _) = first.as_object()?.iter().find(is_label)?;
        let (field, key) = (name.clone(), key.clone());
        match listing.kind {
            SourceKind::Manifest => Some(Warning::LabelNested { field, key }),
            _ => has_keys.then_some(Warning::LabelInside { field, key }),
        }
    };
    let columns = listing.columns.iter();
    let json = columns.filter_map(|column| match &column.values {
        ColumnValues::Json(texts) => Some((&column.name, texts)),
        _ => None,
    });
    json.filter_map(told).collect()
}
