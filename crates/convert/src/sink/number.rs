//! One number of an array, for formats that write numbers as text or in types of their own.

use half::{bf16, f16};
use packds_format::DType;
use serde_json::Value;

/// A number, as wide as it gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Bool(bool),
    Int(i64),
    /// Integers that an `i64` may not hold.
    Unsigned(u64),
    Float(f64),
}

impl Number {
    /// The number of this type in `bytes`; none where they are too few.
    pub(super) fn of(dtype: DType, bytes: &[u8]) -> Option<Self> {
        let first = bytes.first().copied();
        Some(match dtype {
            DType::Bool => Self::Bool(first? != 0),
            DType::U8 => Self::Int(first?.into()),
            DType::I8 => Self::Int(i8::from_le_bytes([first?]).into()),
            DType::U16 => Self::Int(u16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::I16 => Self::Int(i16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::U32 => Self::Int(u32::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::I32 => Self::Int(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::U64 => Self::Unsigned(u64::from_le_bytes(*bytes.first_chunk()?)),
            DType::I64 => Self::Int(i64::from_le_bytes(*bytes.first_chunk()?)),
            DType::F32 => Self::Float(f32::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::F64 => Self::Float(f64::from_le_bytes(*bytes.first_chunk()?)),
            DType::F16 => Self::Float(f16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::Bf16 => Self::Float(bf16::from_le_bytes(*bytes.first_chunk()?).into()),
        })
    }

    /// Whether a label of this type leaves in digits where a format has arrays too.
    pub(super) fn is_label(dtype: DType) -> bool {
        !matches!(dtype, DType::F16 | DType::Bf16)
    }

    /// Whether it is an infinity, which JSON has no word for.
    pub(super) fn is_infinite(self) -> bool {
        matches!(self, Self::Float(value) if value.is_infinite())
    }

    /// The number as an integer, where it is one.
    pub(super) fn integer(self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Unsigned(value) => i64::try_from(value).ok(),
            Self::Float(_) => None,
        }
    }

    /// The number in digits.
    pub(super) fn text(self) -> String {
        match self {
            Self::Bool(value) => u8::from(value).to_string(),
            Self::Int(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
        }
    }

    /// The number in JSON, which has no infinities: these and NaN are `null`.
    pub(super) fn json(self) -> Value {
        match self {
            Self::Bool(value) => value.into(),
            Self::Int(value) => value.into(),
            Self::Unsigned(value) => value.into(),
            Self::Float(value) => value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_values_at_their_ends() {
        assert_eq!(Number::of(DType::I8, &[0x80]), Some(Number::Int(-128)));
        let largest = Number::of(DType::U64, &[0xff; 8]).unwrap();
        assert_eq!(
            (largest, largest.integer()),
            (Number::Unsigned(u64::MAX), None)
        );
        assert_eq!(largest.json().to_string(), "18446744073709551615");
        assert_eq!(
            Number::of(DType::F32, &1.5_f32.to_le_bytes()),
            Some(Number::Float(1.5))
        );
        let halves = [(DType::F16, 0x3e00_u16), (DType::Bf16, 0x3fc0)];
        for (dtype, bits) in halves {
            assert_eq!(
                Number::of(dtype, &bits.to_le_bytes()),
                Some(Number::Float(1.5))
            );
        }
        assert_eq!(Number::Float(f64::NAN).json(), Value::Null);
        assert_eq!(Number::of(DType::I64, &[0; 7]), None);
    }
}
