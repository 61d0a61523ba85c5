//! Restores the number types of an exported pack if the format only has wider ones, and ragged fields if it only has JSON.

use std::sync::Arc;

use packds_format::{DType, Field, FieldKind, Scalar};

use super::column::{ColumnValues, SourceColumn, TextArena};
use super::found::role_of;
use super::listing::SourceField;
use super::ragged::Ragged;
use super::store::{Numbers, Store};
use crate::metadata::Metadata;

/// One number per sample, in the format's wide type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wide<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    /// Numbers that are too large for `i64` and `f64`, as decimal digits.
    Texts(&'a TextArena),
}

/// The numbers in the type of the pack's field `known`. `None` if they already have it, or if one does not fit.
pub(super) fn narrowed(values: Wide<'_>, known: &Field) -> Option<Arc<dyn Store>> {
    let dtype = known.dtype;
    let is_as_it_was = match values {
        Wide::Ints(_) => dtype == DType::I64,
        Wide::Floats(_) => dtype == DType::F64,
        Wide::Texts(_) => dtype != DType::U64,
    };
    if known.kind != FieldKind::Tensor || !known.shape.is_empty() || is_as_it_was {
        return None;
    }
    let mut bytes = Vec::new();
    let mut put = |number: Scalar| number.to_bytes(dtype).map(|number| bytes.extend(number));
    match values {
        Wide::Ints(values) => values.iter().try_for_each(|v| put(Scalar::Int(*v))),
        Wide::Floats(values) => values.iter().try_for_each(|v| put(Scalar::Double(*v))),
        Wide::Texts(texts) => {
            let mut numbers = texts.iter().map(|text| text.parse().ok());
            numbers.try_for_each(|number| put(Scalar::Unsigned(number?)))
        }
    }?;
    Some(Arc::new(Numbers::new(dtype, bytes)))
}

/// Separates the columns that had narrower numbers in the exported pack. They become fields.
pub(super) fn narrowed_columns(
    columns: Vec<SourceColumn>,
    metadata: Option<&Metadata>,
) -> (Vec<SourceColumn>, Vec<SourceField>) {
    let (mut wide, mut fields) = (Vec::new(), Vec::new());
    for SourceColumn { name, values } in columns {
        let numbers = match &values {
            ColumnValues::I64(values) => Some(Wide::Ints(values)),
            ColumnValues::F64(values) => Some(Wide::Floats(values)),
            ColumnValues::Text(texts) => Some(Wide::Texts(texts)),
            _ => None,
        };
        let known = metadata.and_then(|metadata| metadata.field(&name));
        match numbers.zip(known).and_then(|(numbers, known)| narrowed(numbers, known)) {
            Some(store) => fields.push(SourceField { role: role_of(metadata, &name), name, store }),
            None => wide.push(SourceColumn { name, values }),
        }
    }
    (wide, fields)
}

/// Separates the columns of JSON texts whose values are entries of a ragged field. `known` describes the field of a column.
pub(super) fn ragged_columns<'a>(
    columns: Vec<SourceColumn>,
    known: impl Fn(&str) -> Option<&'a Field>,
) -> (Vec<SourceColumn>, Vec<SourceField>) {
    let (mut others, mut fields) = (Vec::new(), Vec::new());
    for SourceColumn { name, values } in columns {
        let known = known(&name).filter(|known| known.kind == FieldKind::Ragged);
        let ragged = match (&values, known) {
            (ColumnValues::Json(texts) | ColumnValues::Text(texts), Some(known)) => {
                Ragged::of_texts(texts, known).map(|store| (store, known.role))
            }
            _ => None,
        };
        match ragged {
            Some((store, role)) => fields.push(SourceField { name, store: Arc::new(store), role }),
            None => others.push(SourceColumn { name, values }),
        }
    }
    (others, fields)
}
