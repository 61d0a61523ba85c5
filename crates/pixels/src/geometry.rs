//! The steps from stored pixels to output pixels: orientation, resize, crop.
//!
//! The arithmetic is the same as that of torchvision's `Resize` and `CenterCrop` on Pillow images, including Python's
//! rounding.

use std::fmt;
use std::str::FromStr;

use packds_system::BadValue;

/// The resampling filter, with Pillow's names and kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Filter {
    /// The nearest source pixel. Use it for masks.
    Nearest,
    /// The mean of the covered area.
    Box,
    /// Triangle, widened when shrinking: torchvision's default.
    #[default]
    Bilinear,
    /// Cubic with a = -0.5.
    Bicubic,
    /// Windowed sinc of radius 3.
    Lanczos,
}

// From the cheapest to the most expensive filter.
packds_system::named!(Filter {
    Nearest = "nearest",
    Box = "box",
    Bilinear = "bilinear",
    Bicubic = "bicubic",
    Lanczos = "lanczos",
});

/// The size to which the whole image is resized before cropping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Resize {
    /// The image is not resized.
    #[default]
    None,
    /// The short side has exactly this size, and the long side is in proportion, rounded down (torchvision's
    /// `Resize(int)`).
    Short(u32),
    /// The long side has exactly this size, and the short side is in proportion, rounded down, at least 1.
    Long(u32),
    /// Like `Long`, but an image stays unchanged if its long side is not longer than this.
    Max(u32),
    /// Exactly this size, ignoring proportions (torchvision's `Resize((height, width))`).
    Exact {
        /// Width of the result.
        width: u32,
        /// Height of the result.
        height: u32,
    },
}

/// Computes `size * a / b` like Python's `int(size * a / b)`: float division, rounded down. The result is at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the quotient is positive and clamped to u32 first; products above 2^53 are far outside image sizes"
)]
fn scaled(size: u32, a: u32, b: u32) -> u32 {
    let product = u64::from(size) * u64::from(a);
    let quotient = product as f64 / f64::from(b.max(1));
    (quotient.min(f64::from(u32::MAX)) as u32).max(1)
}

impl Resize {
    /// The new size of an image of `width` x `height`.
    #[must_use]
    pub fn output_size(self, width: u32, height: u32) -> (u32, u32) {
        let wide = width > height;
        let (short, long) = if wide { (height, width) } else { (width, height) };
        let sides = |new_short, new_long| {
            if wide { (new_long, new_short) } else { (new_short, new_long) }
        };
        match self {
            Self::None => (width, height),
            Self::Short(size) => sides(size, scaled(size, long, short)),
            Self::Max(size) if long <= size => (width, height),
            Self::Long(size) | Self::Max(size) => sides(scaled(size, short, long), size),
            Self::Exact { width, height } => (width, height),
        }
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Short(size) => write!(f, "short:{size}"),
            Self::Long(size) => write!(f, "long:{size}"),
            Self::Max(size) => write!(f, "max:{size}"),
            Self::Exact { width, height } => write!(f, "{width}x{height}"),
        }
    }
}

impl FromStr for Resize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let parsed = match text.split_once(':') {
            None if text == "none" => Some(Self::None),
            None => sides(text).map(|(width, height)| Self::Exact { width, height }),
            Some(("short", size)) => side(size).map(Self::Short),
            Some(("long", size)) => side(size).map(Self::Long),
            Some(("max", size)) => side(size).map(Self::Max),
            Some(_) => None,
        };
        parsed.ok_or_else(|| {
            let expected = "none, short:SIZE, long:SIZE, max:SIZE or WIDTHxHEIGHT (1 to 65535)";
            BadValue::new(expected, text)
        })
    }
}

/// The crop of the resized image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Crop {
    /// No crop.
    #[default]
    None,
    /// The centre. If the image is smaller, it is padded with zeros (torchvision's `CenterCrop`).
    Center {
        /// Width of the result.
        width: u32,
        /// Height of the result.
        height: u32,
    },
}

impl fmt::Display for Crop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Center { width, height } if width == height => write!(f, "center:{width}"),
            Self::Center { width, height } => write!(f, "center:{width}x{height}"),
        }
    }
}

impl FromStr for Crop {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let center = |(width, height)| Self::Center { width, height };
        let parsed = match text.split_once(':') {
            None if text == "none" => Some(Self::None),
            Some(("center", size)) => side(size).map(|side| (side, side)).or_else(|| sides(size)).map(center),
            _ => None,
        };
        let expected = "none, center:SIZE or center:WIDTHxHEIGHT (1 to 65535)";
        parsed.ok_or_else(|| BadValue::new(expected, text))
    }
}

/// Parses a number from 1 to 65535 that has only digits, without a sign or spaces.
fn side(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = if digits { text.parse::<u16>().ok()? } else { 0 };
    (value > 0).then_some(u32::from(value))
}

fn sides(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    Some((side(width)?, side(height)?))
}

/// How the EXIF orientation is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// Ignored (the default of Pillow and torchvision).
    #[default]
    Ignore,
    /// Applied first (Pillow's `ImageOps.exif_transpose`).
    Apply,
}

packds_system::named!(Orientation { Ignore = "ignore", Apply = "apply" });

/// All steps from stored pixels to output pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Geometry {
    /// How the whole image is resized.
    pub resize: Resize,
    /// The crop.
    pub crop: Crop,
    /// Resampling filter.
    pub filter: Filter,
    /// How the EXIF orientation is treated.
    pub orientation: Orientation,
}

impl Geometry {
    /// Width and height of the result for a stored image of `width` x `height` with EXIF `orientation` (1 to 8).
    ///
    /// ```
    /// use packds_pixels::{Crop, Geometry, Resize};
    /// let mut geometry = Geometry { resize: Resize::Short(256), ..Geometry::default() };
    /// assert_eq!(geometry.output_size(500, 375, 1), (341, 256));
    /// geometry.crop = Crop::Center { width: 224, height: 224 };
    /// assert_eq!(geometry.output_size(500, 375, 1), (224, 224));
    /// ```
    #[must_use]
    pub fn output_size(&self, width: u32, height: u32, orientation: u8) -> (u32, u32) {
        let (width, height) = self.upright_size(width, height, orientation);
        let window = self.window(width, height);
        (window.x.out, window.y.out)
    }

    /// Whether the result equals the stored image, for any image of this size and orientation.
    #[must_use]
    pub fn is_identity_for(&self, width: u32, height: u32, orientation: u8) -> bool {
        let upright = self.turn(orientation) == 1;
        upright
            && self.resize.output_size(width, height) == (width, height)
            && self.output_size(width, height, orientation) == (width, height)
    }

    /// The orientation to apply. 1 means none.
    pub(crate) fn turn(&self, orientation: u8) -> u8 {
        match self.orientation {
            Orientation::Apply if (2..=8).contains(&orientation) => orientation,
            _ => 1,
        }
    }

    pub(crate) fn upright_size(&self, width: u32, height: u32, orientation: u8) -> (u32, u32) {
        if self.turn(orientation) >= 5 { (height, width) } else { (width, height) }
    }

    /// The part of the resized image that the output shows, for an upright image of `width` x `height`.
    pub(crate) fn window(&self, width: u32, height: u32) -> Window {
        let (full_width, full_height) = self.resize.output_size(width, height);
        let (out_width, out_height) = match self.crop {
            Crop::None => (full_width, full_height),
            Crop::Center { width, height } => (width, height),
        };
        Window { x: Span::centered(full_width, out_width), y: Span::centered(full_height, out_height) }
    }
}

/// The part of the resized image that the output shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) x: Span,
    pub(crate) y: Span,
}

/// One axis of a `Window`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Size of the whole resized image.
    pub(crate) full: u32,
    /// First visible position of the resized image.
    pub(crate) start: u32,
    /// Number of visible positions.
    pub(crate) len: u32,
    /// Zeros before the first visible position.
    pub(crate) pad: u32,
    /// Size of the output: `pad + len`, followed by zeros.
    pub(crate) out: u32,
}

impl Span {
    /// All positions of a side with `full` positions.
    pub(crate) const fn whole(full: u32) -> Self {
        Self { full, start: 0, len: full, pad: 0, out: full }
    }

    fn centered(full: u32, out: u32) -> Self {
        if out >= full {
            return Self { full, start: 0, len: full, pad: (out - full) / 2, out };
        }
        // As in Python's round(), ties go to even.
        let rest = full - out;
        let half = rest / 2;
        let start = if rest % 2 == 1 && half % 2 == 1 { half + 1 } else { half };
        Self { full, start, len: out, pad: 0, out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_side_is_exact_and_long_side_rounds_down() {
        assert_eq!(Resize::Short(256).output_size(500, 375), (341, 256));
        assert_eq!(Resize::Short(256).output_size(375, 500), (256, 341));
        assert_eq!(Resize::Short(256).output_size(300, 300), (256, 256));
        assert_eq!(Resize::Short(256).output_size(1, 300), (256, 76800));
        assert_eq!(Resize::Long(512).output_size(10_000, 1), (512, 1));
        assert_eq!(Resize::Long(512).output_size(100, 50), (512, 256));
        assert_eq!(Resize::Max(512).output_size(100, 50), (100, 50));
        assert_eq!(Resize::Max(512).output_size(1024, 300), (512, 150));
    }

    #[test]
    fn center_crop_rounds_halves_to_even() {
        assert_eq!(Span::centered(225, 224).start, 0);
        assert_eq!(Span::centered(227, 224).start, 2);
        assert_eq!(Span::centered(229, 224).start, 2);
        assert_eq!(Span::centered(231, 224).start, 4);
        assert_eq!(Span::centered(256, 224).start, 16);
        let small = Span::centered(221, 224);
        assert_eq!((small.start, small.len, small.pad, small.out), (0, 221, 1, 224));
    }

    #[test]
    fn text_round_trips_and_nonsense_is_rejected() {
        for text in ["none", "short:256", "long:512", "max:512", "224x160"] {
            assert_eq!(text.parse::<Resize>().unwrap().to_string(), text);
        }
        for text in ["none", "center:224", "center:320x240"] {
            assert_eq!(text.parse::<Crop>().unwrap().to_string(), text);
        }
        for filter in Filter::ALL {
            assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
        }
        for text in ["", "0x3", "short:0", "short:+3", "short:70000", "tall:3", "3x", "224", "3x4x5"] {
            assert!(text.parse::<Resize>().is_err(), "{text}");
        }
        assert!("center:".parse::<Crop>().is_err());
        assert!("center:0".parse::<Crop>().is_err());
        assert!("cubic".parse::<Filter>().is_err());
    }

    #[test]
    fn identity_needs_the_same_size_and_no_turn() {
        let geometry = Geometry { orientation: Orientation::Apply, ..Geometry::default() };
        assert!(geometry.is_identity_for(10, 20, 1));
        assert!(!geometry.is_identity_for(10, 20, 3));
        assert_eq!(geometry.output_size(10, 20, 6), (20, 10));
        let crop = Geometry { crop: Crop::Center { width: 10, height: 20 }, ..Geometry::default() };
        assert!(crop.is_identity_for(10, 20, 6));
        let both = Geometry { resize: Resize::Exact { width: 5, height: 10 }, ..crop };
        assert!(!both.is_identity_for(10, 20, 1));
    }
}
