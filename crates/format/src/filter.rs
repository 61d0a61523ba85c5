//! Pixel filters: reversible steps that make neighbouring bytes similar, so that a general-purpose codec compresses
//! them better.
//!
//! For photographs, zstd alone saves 10 %; with these filters it saves almost half. Sources: the subtract-green
//! transform of lossless WebP (RFC 9649, 4.3), and the "up" filter of PNG (RFC 2083, 6.4), applied to planes.

use serde::{Deserialize, Serialize};

/// A set of steps. They are applied in the order planar, green, up, and undone in reverse order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter(u8);

impl Filter {
    /// No step.
    pub const NONE: Self = Self(0);
    /// Converts interleaved pixels (height x width x channels) to planes (channels x height x width).
    pub const PLANAR: Self = Self(1);
    /// Subtracts the second of three planes from the first and the third, modulo 256.
    pub const GREEN: Self = Self(2);
    /// Replaces each row of a plane by its difference from the row above, modulo 256. The first row is unchanged.
    pub const UP: Self = Self(4);

    const NAMES: [(Self, &'static str); 3] = [(Self::PLANAR, "planar"), (Self::GREEN, "green"), (Self::UP, "up")];

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set contains the step.
    #[must_use]
    pub const fn has(self, step: Self) -> bool {
        self.0 & step.0 != 0
    }

    /// Whether there are no steps.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The number of the filter in a part entry.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The filter for pixels with this number of channels, either interleaved or in planes.
    #[must_use]
    pub fn for_pixels(channels: u64, interleaved: bool) -> Self {
        let planar = if interleaved { Self::PLANAR } else { Self::NONE };
        let green = if channels == 3 { Self::GREEN } else { Self::NONE };
        planar.and(green).and(Self::UP)
    }

    /// Applies the steps to one image, with `scratch` as a temporary buffer.
    pub(crate) fn apply(self, pixels: &mut [u8], shape: ItemShape, scratch: &mut Vec<u8>) {
        if self.has(Self::PLANAR) && shape.channels > 1 {
            scratch.clear();
            scratch.extend_from_slice(pixels);
            for (c, plane) in pixels.chunks_exact_mut(shape.plane()).enumerate() {
                let source = scratch.iter().skip(c).step_by(shape.channels);
                plane.iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            }
        }
        if self.has(Self::GREEN) {
            subtract_green(pixels, shape);
        }
        if self.has(Self::UP) {
            for plane in pixels.chunks_exact_mut(shape.plane()) {
                for line in (1..shape.height).rev() {
                    let (above, below) = plane.split_at_mut(line * shape.width);
                    let above = above.iter().skip((line - 1) * shape.width);
                    below.iter_mut().take(shape.width).zip(above).for_each(|(v, a)| *v = v.wrapping_sub(*a));
                }
            }
        }
    }

    /// Undoes the steps on one image of this shape. Reads from `stored` and writes to `pixels`, which have equal
    /// length. `lines` is scratch space for one row of each plane. Every byte is read and written once, in memory
    /// order.
    pub(crate) fn undo(self, stored: &[u8], shape: ItemShape, pixels: &mut [u8], lines: &mut Vec<u8>) {
        lines.clear();
        lines.resize(shape.width * shape.channels, 0);
        let green = self.has(Self::GREEN) && shape.channels == 3;
        let interleaved = self.has(Self::PLANAR);
        for y in 0..shape.height {
            let planes = stored.chunks_exact(shape.plane());
            for (line, plane) in lines.chunks_exact_mut(shape.width).zip(planes) {
                let new = plane.get(y * shape.width..).unwrap_or_default();
                // `line` still contains the row above. Its green step was undone only in `pixels`.
                if self.has(Self::UP) {
                    line.iter_mut().zip(new).for_each(|(v, d)| *v = v.wrapping_add(*d));
                } else {
                    line.iter_mut().zip(new).for_each(|(v, d)| *v = *d);
                }
            }
            if interleaved {
                let start = y * lines.len();
                let pixels = pixels.get_mut(start..start + lines.len());
                interleave(lines, shape, green, pixels.unwrap_or_default());
            } else {
                spread(lines, shape, green, y, pixels);
            }
        }
    }
}

/// Interleaves one row of each plane. If green was subtracted from the other channels, it is added back.
fn interleave(lines: &[u8], shape: ItemShape, green: bool, pixels: &mut [u8]) {
    let (first, rest) = lines.split_at(shape.width);
    if shape.channels != 3 {
        for (c, line) in lines.chunks_exact(shape.width).enumerate() {
            let pixels = pixels.iter_mut().skip(c).step_by(shape.channels);
            pixels.zip(line).for_each(|(to, from)| *to = *from);
        }
        return;
    }
    let (middle, last) = rest.split_at(shape.width);
    let added = if green { u8::MAX } else { 0 };
    let values = first.iter().zip(middle).zip(last);
    for (pixel, ((r, g), b)) in pixels.chunks_exact_mut(3).zip(values) {
        let add = g & added;
        pixel.copy_from_slice(&[r.wrapping_add(add), *g, b.wrapping_add(add)]);
    }
}

/// Writes one row of each plane to row `y` of the same plane in `pixels`. Adds green back as in [`interleave`].
fn spread(lines: &[u8], shape: ItemShape, green: bool, y: usize, pixels: &mut [u8]) {
    let planes = pixels.chunks_exact_mut(shape.plane());
    for (c, (plane, line)) in planes.zip(lines.chunks_exact(shape.width)).enumerate() {
        let to = plane.get_mut(y * shape.width..).unwrap_or_default();
        if green && c != 1 {
            let greens = lines.get(shape.width..).unwrap_or_default();
            let values = line.iter().zip(greens);
            to.iter_mut().zip(values).for_each(|(to, (v, g))| *to = v.wrapping_add(*g));
        } else {
            to.iter_mut().zip(line).for_each(|(to, v)| *to = *v);
        }
    }
}

/// Subtracts the second of three planes from the first and the third.
fn subtract_green(pixels: &mut [u8], shape: ItemShape) {
    if shape.channels != 3 {
        return;
    }
    let (first, rest) = pixels.split_at_mut(shape.plane());
    let (middle, last) = rest.split_at_mut(shape.plane());
    for plane in [first, last] {
        plane.iter_mut().zip(middle.iter()).for_each(|(v, g)| *v = v.wrapping_sub(*g));
    }
}

/// The shape of one image. No dimension is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemShape {
    /// Height.
    pub height: usize,
    /// Width.
    pub width: usize,
    /// Channels.
    pub channels: usize,
}

impl ItemShape {
    /// The shape of an image of `len` bytes. `None` if the dimensions do not give exactly `len` bytes, or if a
    /// dimension is 0.
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

    /// Bytes per plane. At least 1, so that it is a valid chunk size.
    fn plane(self) -> usize {
        (self.height * self.width).max(1)
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        let names: Vec<&str> = Self::NAMES.iter().filter(|(s, _)| self.has(*s)).map(|(_, n)| *n).collect();
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
            step.map(|(s, _)| all.and(*s)).ok_or_else(|| serde::de::Error::custom(format!("unknown filter {name:?}")))
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
            let (mut stored, mut scratch) = (pixels.clone(), Vec::new());
            Filter(bits).apply(&mut stored, shape, &mut scratch);
            let mut found = vec![0; pixels.len()];
            Filter(bits).undo(&stored, shape, &mut found, &mut scratch);
            prop_assert_eq!(found, pixels);
        }
    }
}
