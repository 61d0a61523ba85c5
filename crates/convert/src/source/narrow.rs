//! Numbers of the type that the pack had from which a source was exported, where the format has wider ones only.

use std::sync::Arc;

use half::{bf16, f16};
use packds_format::{DType, Field, FieldKind};

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
    let mut put = |number: Option<Vec<u8>>| number.map(|number| bytes.extend(number));
    match values {
        Wide::Ints(values) => values.iter().try_for_each(|v| put(narrow_int(dtype, *v))),
        Wide::Floats(values) => values.iter().try_for_each(|v| put(narrow_float(dtype, *v))),
        Wide::Texts(texts) => texts.iter().try_for_each(|text| {
            let number = text.parse::<u64>().ok();
            put(number.map(|number| number.to_le_bytes().to_vec()))
        }),
    }?;
    let shape = Vec::new();
    let array = ArrayType { dtype, shape };
    Some(Arc::new(Numbers { array, bytes }))
}

fn narrow_int(dtype: DType, value: i64) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::Bool => vec![u8::try_from(value).ok().filter(|v| *v <= 1)?],
        DType::U8 => vec![u8::try_from(value).ok()?],
        DType::I8 => i8::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::U16 => u16::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::I16 => i16::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::U32 => u32::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::I32 => i32::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::U64 => u64::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::I64 | DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => return None,
    })
}

fn narrow_float(dtype: DType, value: f64) -> Option<Vec<u8>> {
    // Values that were of the type are none the worse for it.
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
    let single = value as f32;
    let (half, brain) = (f16::from_f64(value), bf16::from_f64(value));
    let (narrow, bytes) = match dtype {
        DType::F32 => (f64::from(single), single.to_le_bytes().to_vec()),
        DType::F16 => (f64::from(half), half.to_le_bytes().to_vec()),
        DType::Bf16 => (f64::from(brain), brain.to_le_bytes().to_vec()),
        _ => return None,
    };
    let same = narrow.to_bits() == value.to_bits() || value.is_nan();
    same.then_some(bytes)
}
