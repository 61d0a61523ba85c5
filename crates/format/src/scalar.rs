//! A number of any element type, and its conversions from bytes, to bytes and to text.

use half::{bf16, f16};

use crate::DType;

/// A number of any element type. Half precision is widened to [`Single`](Self::Single) without loss.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// A bool.
    Bool(bool),
    /// A signed integer, or an unsigned integer of at most 32 bits.
    Int(i64),
    /// A `u64`.
    Unsigned(u64),
    /// An `f16`, `bf16` or `f32`.
    Single(f32),
    /// An `f64`.
    Double(f64),
}

impl Scalar {
    /// An `f64` can represent all integers up to this value exactly.
    pub const EXACT_IN_F64: u64 = 1 << 53;

    /// The little-endian number at the start of `bytes`. `None` if there are too few bytes.
    #[must_use]
    pub fn of(dtype: DType, bytes: &[u8]) -> Option<Self> {
        Some(match dtype {
            DType::Bool => Self::Bool(*bytes.first()? != 0),
            DType::U8 => Self::Int((*bytes.first()?).into()),
            DType::I8 => Self::Int(i8::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::U16 => Self::Int(u16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::I16 => Self::Int(i16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::U32 => Self::Int(u32::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::I32 => Self::Int(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::U64 => Self::Unsigned(u64::from_le_bytes(*bytes.first_chunk()?)),
            DType::I64 => Self::Int(i64::from_le_bytes(*bytes.first_chunk()?)),
            DType::F16 => Self::Single(f16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::Bf16 => Self::Single(bf16::from_le_bytes(*bytes.first_chunk()?).into()),
            DType::F32 => Self::Single(f32::from_le_bytes(*bytes.first_chunk()?)),
            DType::F64 => Self::Double(f64::from_le_bytes(*bytes.first_chunk()?)),
        })
    }

    /// All numbers in `bytes`. An incomplete number at the end is ignored.
    pub fn each(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = Self> {
        let size = packds_system::to_usize(dtype.size());
        bytes.chunks(size).map_while(move |item| Self::of(dtype, item))
    }

    /// The same number as little-endian bytes of type `dtype`. `None` if the value would change, or if only one of the
    /// two types is a float.
    #[must_use]
    pub fn to_bytes(self, dtype: DType) -> Option<Vec<u8>> {
        let int = || self.integer();
        Some(match dtype {
            DType::Bool => vec![u8::try_from(int()?).ok().filter(|v| *v <= 1)?],
            DType::U8 => vec![u8::try_from(int()?).ok()?],
            DType::I8 => i8::try_from(int()?).ok()?.to_le_bytes().to_vec(),
            DType::U16 => u16::try_from(int()?).ok()?.to_le_bytes().to_vec(),
            DType::I16 => i16::try_from(int()?).ok()?.to_le_bytes().to_vec(),
            DType::U32 => u32::try_from(int()?).ok()?.to_le_bytes().to_vec(),
            DType::I32 => i32::try_from(int()?).ok()?.to_le_bytes().to_vec(),
            DType::U64 => match self {
                Self::Unsigned(value) => value,
                _ => u64::try_from(int()?).ok()?,
            }
            .to_le_bytes()
            .to_vec(),
            DType::I64 => int()?.to_le_bytes().to_vec(),
            DType::F16 => same(self, f16::from_f64(self.float()?), f16::to_f64)?.to_le_bytes().to_vec(),
            DType::Bf16 => same(self, bf16::from_f64(self.float()?), bf16::to_f64)?.to_le_bytes().to_vec(),
            DType::F32 => {
                #[expect(clippy::cast_possible_truncation, reason = "compared with the original")]
                let single = self.float()? as f32;
                same(self, single, f64::from)?.to_le_bytes().to_vec()
            }
            DType::F64 => self.float()?.to_le_bytes().to_vec(),
        })
    }

    /// The value of a bool or an integer. `None` for floats, and for integers above `i64::MAX`.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Unsigned(value) => i64::try_from(value).ok(),
            Self::Single(_) | Self::Double(_) => None,
        }
    }

    /// The value as a class id, if it is an integer, or a float with an integral value from -2^53 to 2^53.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "integral and within 2^53")]
    pub fn class_id(self) -> Option<i64> {
        match self.float() {
            None => self.integer(),
            Some(value) => (value.fract() == 0.0 && value.abs() <= Self::EXACT_IN_F64 as f64).then_some(value as i64),
        }
    }

    /// The value of a float. `None` for bools and integers.
    #[must_use]
    pub fn float(self) -> Option<f64> {
        match self {
            Self::Single(value) => Some(value.into()),
            Self::Double(value) => Some(value),
            Self::Bool(_) | Self::Int(_) | Self::Unsigned(_) => None,
        }
    }

    /// The nearest `f64`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rounding is intended")]
    pub fn nearest_f64(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Single(value) => value.into(),
            Self::Double(value) => value,
        }
    }

    /// The same value, with [`Single`](Self::Single) widened to [`Double`](Self::Double). It is then printed with the
    /// digits that identify the `f64`.
    #[must_use]
    pub fn widened(self) -> Self {
        match self {
            Self::Single(value) => Self::Double(value.into()),
            other => other,
        }
    }
}

/// Returns `narrow` if it equals `scalar`, and `None` otherwise.
fn same<T: Copy>(scalar: Scalar, narrow: T, wide: impl Fn(T) -> f64) -> Option<T> {
    let value = scalar.float()?;
    let is_same = wide(narrow).to_bits() == value.to_bits() || value.is_nan();
    is_same.then_some(narrow)
}

/// The shortest decimal text that identifies the number. A bool is 0 or 1. Very large and very small floats have an
/// exponent, because they would otherwise need up to 300 zeros.
impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => u8::from(*value).fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Single(value) if needs_exponent((*value).into()) => write!(f, "{value:e}"),
            Self::Double(value) if needs_exponent(*value) => write!(f, "{value:e}"),
            Self::Single(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
        }
    }
}

fn needs_exponent(value: f64) -> bool {
    value.is_finite() && value != 0.0 && !(1e-5..1e16).contains(&value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_values_at_their_ends() {
        assert_eq!(Scalar::of(DType::I8, &[0x80]), Some(Scalar::Int(-128)));
        let largest = Scalar::of(DType::U64, &[0xff; 8]).unwrap();
        assert_eq!((largest, largest.integer()), (Scalar::Unsigned(u64::MAX), None));
        assert_eq!(largest.to_string(), "18446744073709551615");
        assert_eq!(Scalar::of(DType::F32, &1.5_f32.to_le_bytes()), Some(Scalar::Single(1.5)));
        for (dtype, bits) in [(DType::F16, 0x3e00_u16), (DType::Bf16, 0x3fc0)] {
            assert_eq!(Scalar::of(dtype, &bits.to_le_bytes()), Some(Scalar::Single(1.5)));
        }
        assert_eq!(Scalar::of(DType::I64, &[0; 7]), None);
    }

    #[test]
    fn a_number_of_every_type_goes_to_bytes_and_back() {
        for dtype in DType::ALL {
            let bytes = vec![1; usize::try_from(dtype.size()).unwrap()];
            let scalar = Scalar::of(dtype, &bytes).unwrap();
            assert_eq!(scalar.to_bytes(dtype), Some(bytes), "{dtype}");
        }
    }

    #[test]
    fn a_type_that_does_not_hold_a_number_is_refused() {
        assert_eq!(Scalar::Int(256).to_bytes(DType::U8), None);
        assert_eq!(Scalar::Int(-1).to_bytes(DType::U64), None);
        assert_eq!(Scalar::Int(2).to_bytes(DType::Bool), None);
        assert_eq!(Scalar::Unsigned(u64::MAX).to_bytes(DType::U64), Some(vec![0xff; 8]));
        assert_eq!(Scalar::Double(0.1).to_bytes(DType::F32), None);
        assert_eq!(Scalar::Double(0.5).to_bytes(DType::F16), Some(vec![0, 0x38]));
        assert_eq!(Scalar::Double(1.0).to_bytes(DType::I64), None);
        assert!(Scalar::Double(f64::NAN).to_bytes(DType::F32).is_some());
    }

    #[test]
    fn whole_floats_are_class_ids_up_to_where_they_are_exact() {
        assert_eq!(Scalar::Double(7.0).class_id(), Some(7));
        assert_eq!(Scalar::Single(-1.0).class_id(), Some(-1));
        assert_eq!(Scalar::Double(9_007_199_254_740_992.0).class_id(), Some(1 << 53));
        for no_id in [0.5, 9_007_199_254_740_994.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Scalar::Double(no_id).class_id(), None, "{no_id}");
        }
        assert_eq!(Scalar::Unsigned(u64::MAX).class_id(), None);
        assert_eq!(Scalar::Bool(true).class_id(), Some(1));
    }

    #[test]
    fn singles_have_their_own_digits_until_they_are_widened() {
        assert_eq!(Scalar::Single(0.1).to_string(), "0.1");
        assert_eq!(Scalar::Single(0.1).widened().to_string(), "0.10000000149011612");
    }

    #[test]
    fn very_large_and_very_small_floats_have_an_exponent() {
        let shown = [1e300, -1e16, 1e15, 1e-5, 9e-6, 0.0, -0.0].map(|value| Scalar::Double(value).to_string());
        assert_eq!(shown, ["1e300", "-1e16", "1000000000000000", "0.00001", "9e-6", "0", "-0"]);
        assert_eq!(Scalar::Single(3.4e38).to_string(), "3.4e38");
        assert_eq!(Scalar::Double(f64::INFINITY).to_string(), "inf");
    }

    #[test]
    fn a_remainder_is_left_out() {
        let found: Vec<Scalar> = Scalar::each(DType::U16, &[1, 0, 2, 0, 3]).collect();
        assert_eq!(found, [Scalar::Int(1), Scalar::Int(2)]);
    }
}
