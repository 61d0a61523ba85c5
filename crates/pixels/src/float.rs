//! The floating-point types that images can be stored in.

use half::{bf16, f16};

/// A floating-point type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE half precision.
    F16,
    /// The upper half of an `F32`.
    Bf16,
    /// IEEE single precision.
    F32,
}

packds_system::named!(FloatType { F16 = "f16", Bf16 = "bf16", F32 = "f32" });

/// The names of all pixel types: `u8` for bytes, and those of [`FloatType`].
pub const PIXEL_TYPES: [&str; 4] = ["u8", "f16", "bf16", "f32"];

impl FloatType {
    /// The type with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Size of a value in bytes.
    #[must_use]
    pub const fn n_bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// The bit pattern of the nearest value of this type. 16-bit types use the lower half.
    #[must_use]
    pub fn bits(self, value: f32) -> u32 {
        match self {
            Self::F16 => f16::from_f32(value).to_bits().into(),
            Self::Bf16 => bf16::from_f32(value).to_bits().into(),
            Self::F32 => value.to_bits(),
        }
    }

    /// Replaces each value of `own` with the result of `combine` for it and the corresponding value of `other`.
    pub fn combine(self, own: &mut [u8], other: &[u8], combine: impl Fn(f32, f32) -> f32) {
        let halves = |bytes| f16::from_le_bytes(bytes).to_f32();
        let upper_halves = |bytes| bf16::from_le_bytes(bytes).to_f32();
        match self {
            Self::F16 => combine_as(own, other, combine, halves, |value| f16::from_f32(value).to_le_bytes()),
            Self::Bf16 => combine_as(own, other, combine, upper_halves, |value| bf16::from_f32(value).to_le_bytes()),
            Self::F32 => combine_as(own, other, combine, f32::from_le_bytes, f32::to_le_bytes),
        }
    }
}

/// `FloatType::combine` for values of `N` bytes.
fn combine_as<const N: usize>(
    own: &mut [u8],
    other: &[u8],
    combine: impl Fn(f32, f32) -> f32,
    read: impl Fn([u8; N]) -> f32,
    write: impl Fn(f32) -> [u8; N],
) {
    for (own, other) in own.as_chunks_mut().0.iter_mut().zip(other.as_chunks().0) {
        *own = write(combine(read(*own), read(*other)));
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
