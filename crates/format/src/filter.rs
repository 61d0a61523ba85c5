//! Pixel filters: reversible steps that make neighbouring bytes alike, so that a general codec finds something.
//!
//! On photographs zstd alone saves a tenth, after these filters almost half. Source: the subtract-green transform of
//! lossless WebP (RFC 9649, 4.3) and the "up" filter of PNG (RFC 2083, 6.4), on planes.

use serde::{Deserialize, Serialize};

/// A set of steps, applied in the order planar, green, up; undone in the reverse order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter(u8);

impl Filter {
    /// No step.
    pub const NONE: Self = Self(0);
    /// Interleaved pixels (height x width x channels) become planes (channels x height x width).
    pub const PLANAR: Self = Self(1);
    /// The second of three planes is subtracted from the first and the third, modulo 256.
    pub const GREEN: Self = Self(2);
    /// Each line of a plane becomes its difference, modulo 256, from the line above; the first stays.
    pub const UP: Self = Self(4);

    const NAMES: [(Self, &'static str); 3] = [
        (Self::PLANAR, "planar"),
        (Self::GREEN, "green"),
        (Self::UP, "up"),
    ];

    /// The steps of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has the step.
    #[must_use]
    pub const fn has(self, step: Self) -> bool {
        self.0 & step.0 != 0
    }

    /// Whether it has no step at all.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The number in a part entry.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The filter for pixels of so many channels in this layout.
    #[must_use]
    pub fn for_pixels(channels: u64, interleaved: bool) -> Self {
        let planar = if interleaved {
            Self::PLANAR
        } else {
            Self::NONE
        };
        let green = if channels == 3 {
            Self::GREEN
        } else {
            Self::NONE
        };
        planar.and(green).and(Self::UP)
    }

    /// Applies the steps to one image, through `scratch`.
    pub(crate) fn apply(self, pixels: &mut [u8], shape: ItemShape, scratch: &mut Vec<u8>) {
        if self.has(Self::PLANAR) && shape.channels > 1 {
            scratch.clear();
            scratch.extend_from_slice(pixels);
            for (c, plane) in pixels.chunks_exact_mut(shape.plane()).enumerate() {
                let source = scratch.iter().skip(c).step_by(shape.channels);
                plane
                    .iter_mut()
                    .zip(source)
                    .for_each(|(to, from)| *to = *from);
            }
        }
        if self.has(Self::GREEN) {
            green(pixels, shape, u8::wrapping_sub);
        }
        if self.has(Self::UP) {
            for plane in pixels.chunks_exact_mut(shape.plane()) {
                for line in (1..shape.height).rev() {
                    let (above, below) = plane.split_at_mut(line * shape.width);
                    let above = above.iter().skip((line - 1) * shape.width);
                    below
                        .iter_mut()
                        .take(shape.width)
                        .zip(above)
                        .for_each(|(v, a)| *v = v.wrapping_sub(*a));
                }
            }
        }
    }

    /// Undoes the steps on one image, through `scratch`.
    pub(crate) fn undo(self, pixels: &mut [u8], shape: ItemShape, scratch: &mut Vec<u8>) {
        if self.has(Self::UP) {
            for plane in pixels.chunks_exact_mut(shape.plane()) {
                for line in 1..shape.height {
                    let (above, below) = plane.split_at_mut(line * shape.width);
                    let above = above.iter().skip((line - 1) * shape.width);
                    below
                        .iter_mut()
                        .take(shape.width)
                        .zip(above)
                        .for_each(|(v, a)| *v = v.wrapping_add(*a));
                }
            }
        }
        if self.has(Self::GREEN) {
            green(pixels, shape, u8::wrapping_add);
        }
        if self.has(Self::PLANAR) && shape.channels > 1 {
            scratch.clear();
            scratch.extend_from_slice(pixels);
            for (c, plane) in scratch.chunks_exact(shape.plane()).enumerate() {
                let target = pixels.iter_mut().skip(c).step_by(shape.channels);
                target.zip(plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Applies `op(plane, green)` to the first and the third of three planes.
fn green(pixels: &mut [u8], shape: ItemShape, op: fn(u8, u8) -> u8) {
    if shape.channels != 3 {
        return;
    }
    let (first, rest) = pixels.split_at_mut(shape.plane());
    let (middle, last) = rest.split_at_mut(shape.plane());
    for plane in [first, last] {
        plane
            .iter_mut()
            .zip(middle.iter())
            .for_each(|(v, g)| *v = op(*v, *g));
    }
}

/// The size of one image, whose bytes number `height * width * channels`, none of them 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemShape {
    /// Lines.
    pub height: usize,
    /// Pixels of a line.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
}

impl ItemShape {
    /// The shape, if these dimensions have exactly `len` bytes and no zero among them.
    #[must_use]
    pub fn new(height: u64, width: u64, channels: u64, len: usize) -> Option<Self> {
        let bytes = height.checked_mul(width)?.checked_mul(channels)?;
        if bytes == 0 || usize::try_from(bytes).ok()? != len {
            return None;
        }
        Some(Self {
            height: usize::try_from(height).ok()?,
            width: usize::try_from(width).ok()?,
            channels: usize::try_from(channels).ok()?,
        })
    }

    /// Bytes of one plane; at least 1, so that it can be the length of pieces.
    fn plane(self) -> usize {
        (self.height * self.width).max(1)
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        let names: Vec<&str> = Self::NAMES
            .iter()
            .filter(|(s, _)| self.has(*s))
            .map(|(_, n)| *n)
            .collect();
        f.write_str(&names.join("+"))
    }
}

impl Serialize for Filter {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "none" {
            return Ok(Self::NONE);
        }
        text.split('+').try_fold(Self::NONE, |all, name| {
            let step = Self::NAMES.iter().find(|(_, n)| *n == name);
            step.map(|(s, _)| all.and(*s))
                .ok_or_else(|| serde::de::Error::custom(format!("unknown filter {name:?}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_are_what_the_format_says() {
        let shape = ItemShape::new(2, 1, 3, 6).unwrap();
        let mut pixels = [10, 20, 30, 11, 22, 33];
        let mut scratch = Vec::new();
        Filter::PLANAR.apply(&mut pixels, shape, &mut scratch);
        assert_eq!(pixels, [10, 11, 20, 22, 30, 33]);
        Filter::GREEN.apply(&mut pixels, shape, &mut scratch);
        assert_eq!(pixels, [246, 245, 20, 22, 10, 11]);
        Filter::UP.apply(&mut pixels, shape, &mut scratch);
        assert_eq!(pixels, [246, 255, 20, 2, 10, 1]);
    }

    proptest! {
        #[test]
        fn undo_reverses_apply(h in 1_usize..20, w in 1_usize..20, c in 1_usize..5, bits in 0_u8..8, seed: u64) {
            let mut state = seed;
            let pixels: Vec<u8> = (0..h * w * c).map(|_| { state = crate::mix64(state); state.to_le_bytes()[0] }).collect();
            let shape = ItemShape { height: h, width: w, channels: c };
            let (mut work, mut scratch) = (pixels.clone(), Vec::new());
            Filter(bits).apply(&mut work, shape, &mut scratch);
            Filter(bits).undo(&mut work, shape, &mut scratch);
            prop_assert_eq!(work, pixels);
        }
    }
}
