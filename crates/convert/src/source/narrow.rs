//! Restores the number types of an exported pack if the format only has wider ones.

use std::sync::Arc;

use packds_format::{DType, Field, FieldKind, Scalar};

use super::column::TextArena;
use super::store::{Numbers, Store};

/// One number per sample, in the format's wide type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wide<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    /// Numbers that are too large for the other types, in decimal digits.
    Texts(&'a TextArena),
}

/// The numbers in the type of the pack's field `known`. None if they already have it, or if one does not fit.
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
