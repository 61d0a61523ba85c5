//! The types of float that images are stored in.

use half::{bf16, f16};

/// A type of float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE half precision.
    F16,
    /// The upper half of an `F32`.
    Bf16,
    /// IEEE single precision.
    F32,
}

/// A Rust type of float.
trait Float {
    /// The value nearest to `value`.
    fn nearest(value: f32) -> Self;

    /// The same value.
    fn widened(self) -> f32;

    /// The bits of the value, in the lower bytes.
    fn to_word(self) -> u32;
}

macro_rules! half_floats {
    ($($half:ty),*) => {$(
        impl Float for $half {
            fn nearest(value: f32) -> Self {
                Self::from_f32(value)
            }

            fn widened(self) -> f32 {
                self.to_f32()
            }

            fn to_word(self) -> u32 {
                self.to_bits().into()
            }
        }
    )*};
}

half_floats!(f16, bf16);

impl Float for f32 {
    fn nearest(value: f32) -> Self {
        value
    }

    fn widened(self) -> f32 {
        self
    }

    fn to_word(self) -> u32 {
        self.to_bits()
    }
}

/// Evaluates `$body` with `$T` as the Rust type of `$float`.
macro_rules! with_float {
    ($float:expr, $T:ident => $body:expr) => {
        match $float {
            FloatType::F16 => {
                type $T = f16;
                $body
            }
            FloatType::Bf16 => {
                type $T = bf16;
                $body
            }
            FloatType::F32 => {
                type $T = f32;
                $body
            }
        }
    };
}

packds_system::named!(FloatType { F16 = "f16", Bf16 = "bf16", F32 = "f32" });

/// The names of the types of pixels: bytes, and each [`FloatType`].
pub const PIXEL_TYPES: [&str; 4] = ["u8", "f16", "bf16", "f32"];

impl FloatType {
    /// The type with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Bytes of a value.
    #[must_use]
    pub const fn n_bytes(self) -> usize {
        with_float!(self, T => size_of::<T>())
    }

    /// The nearest value of this type, little-endian in the lower bytes.
    #[must_use]
    pub fn bits(self, value: f32) -> u32 {
        with_float!(self, T => T::nearest(value).to_word())
    }

    /// Replaces each value of `own` by what `combine` makes of it and of the value of `other` at the same place.
    pub fn combine(self, own: &mut [u8], other: &[u8], combine: impl Fn(f32, f32) -> f32) {
        with_float!(self, T => {
            let pairs = own.as_chunks_mut::<{ size_of::<T>() }>().0.iter_mut();
            for (own, other) in pairs.zip(other.as_chunks().0) {
                let combined = combine(T::from_le_bytes(*own).widened(), T::from_le_bytes(*other).widened());
                *own = T::nearest(combined).to_le_bytes();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_name_of_its_own() {
        for float in FloatType::ALL {
            assert_eq!(FloatType::named(float.name()), Some(float));
        }
        assert_eq!(FloatType::named("f64"), None);
        assert_eq!(PIXEL_TYPES[0], "u8");
        assert_eq!(PIXEL_TYPES[1..], FloatType::ALL.map(FloatType::name));
    }

    #[test]
    fn values_are_rounded_to_the_nearest() {
        assert_eq!(FloatType::F16.bits(0.1), u32::from(f16::from_f32(0.1).to_bits()));
        assert_eq!(FloatType::Bf16.bits(0.1), u32::from(bf16::from_f32(0.1).to_bits()));
        assert_eq!(FloatType::F32.bits(0.1), 0.1_f32.to_bits());
    }

    #[test]
    fn values_are_combined_in_their_places() {
        for float in FloatType::ALL {
            let n = float.n_bytes();
            let of = |values: [f32; 2]| -> Vec<u8> {
                values.iter().flat_map(|v| float.bits(*v).to_le_bytes()[..n].to_vec()).collect()
            };
            let mut own = of([1.0, 2.0]);
            float.combine(&mut own, &of([4.0, 0.5]), |own, other| own - other);
            assert_eq!(own, of([-3.0, 1.5]), "{float:?}");
        }
    }
}
