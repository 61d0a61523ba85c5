//! Numbers of the type that the pack had from which a source was exported, where the format has wider ones only.

use std::sync::Arc;

use packds_format::{DType, Field, FieldKind, Scalar};

use super::column::TextArena;
use super::store::{ArrayType, Numbers, Store};

/// One number for each sample, as wide as the format has them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wide<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    /// Digits, of numbers that are too large for the others.
    Texts(&'a TextArena),
}

/// The numbers of the type of the pack's field `known`; none where they have it already, or where one does not fit it.
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
    let shape = Vec::new();
    let array = ArrayType { dtype, shape };
    Some(Arc::new(Numbers { array, bytes }))
}
