//! One operation of an augmentation, and the allowed values of its parameters.

use packds_pixels::{Padding, Resize};

use super::AugmentError;
use super::policy::Policy;
use super::varied::Sides;

/// Width and height of a result in pixels. A single number means a square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

impl From<u32> for Size {
    fn from(side: u32) -> Self {
        Self { width: side, height: side }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.width == self.height {
            write!(f, "{}", self.width)
        } else {
            write!(f, "{}x{}", self.width, self.height)
        }
    }
}

pub(super) type Span = (f64, f64);

/// The default ranges of torchvision.
pub(super) const CROP_SCALE: Span = (0.08, 1.0);
pub(super) const CROP_RATIO: Span = (3.0 / 4.0, 4.0 / 3.0);
pub(super) const IOU_CROP_SCALE: Span = (0.3, 1.0);
pub(super) const IOU_CROP_RATIO: Span = (0.5, 2.0);
pub(super) const JITTER_SCALE: Span = (0.1, 2.0);
/// The usual border of YOLO.
pub(super) const LETTERBOX_FILL: u8 = 114;
pub(super) const ERASE_SCALE: Span = (0.02, 0.33);
pub(super) const ERASE_RATIO: Span = (0.3, 3.3);
pub(super) const MAGNITUDE_BINS: u32 = 31;
/// Default number of operations and magnitude of `RandAugment`.
pub(super) const RAND_AUGMENT: (u32, u32) = (2, 9);

/// An operation that a method of `Augment` adds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    RandomResizedCrop {
        size: Size,
        scale: Span,
        ratio: Span,
    },
    RandomCrop {
        size: Size,
        padding: u32,
        mode: Padding,
        if_needed: bool,
    },
    CenterCrop(Size),
    IouCrop {
        size: Size,
        scale: Span,
        ratio: Span,
    },
    Letterbox {
        size: Size,
        fill: [u8; 4],
    },
    ScaleJitter {
        size: Size,
        scale: Span,
        fill: [u8; 4],
    },
    /// Without a size, it is that of a bucket.
    Cover {
        size: Option<Size>,
        center: bool,
    },
    Resize(Resize),
    /// Resizes the short side to a random length, but the long side to at most `long`.
    ShortSide {
        sides: Sides,
        long: Option<u32>,
    },
    HorizontalFlip(f64),
    VerticalFlip(f64),
    Rotation(f64),
    Affine {
        degrees: f64,
        translate: (f64, f64),
        scale: Span,
        shear: (f64, f64),
    },
    Jitter {
        brightness: f64,
        contrast: f64,
        saturation: f64,
        hue: f64,
        p: f64,
    },
    Grayscale(f64),
    Blur {
        kernel: u32,
        sigma: Span,
        p: f64,
    },
    Solarize {
        threshold: u8,
        p: f64,
    },
    Erase {
        p: f64,
        scale: Span,
        ratio: Span,
        value: Filling,
    },
    Cutout(u32),
    RandAugment {
        n: u32,
        magnitude: u32,
        bins: u32,
    },
    TrivialAugment {
        bins: u32,
    },
    AutoAugment(Policy),
}

/// The values that erasing sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filling {
    /// One number, or one number per channel.
    Values(Vec<f32>),
    /// Normally distributed random numbers, one for each value.
    Random,
}

/// The stage of an op. Ops must be in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Resize,
    Crop,
    Flip,
    Map,
    Policy,
    Color,
    Erase,
}

impl Op {
    pub(super) fn stage(&self) -> Stage {
        match self {
            Self::Resize(_) | Self::ShortSide { .. } => Stage::Resize,
            Self::RandomResizedCrop { .. }
            | Self::RandomCrop { .. }
            | Self::CenterCrop(_)
            | Self::IouCrop { .. }
            | Self::Letterbox { .. }
            | Self::ScaleJitter { .. }
            | Self::Cover { .. } => Stage::Crop,
            Self::HorizontalFlip(_) | Self::VerticalFlip(_) => Stage::Flip,
            Self::Rotation(_) | Self::Affine { .. } => Stage::Map,
            Self::RandAugment { .. } | Self::TrivialAugment { .. } | Self::AutoAugment(_) => Stage::Policy,
            Self::Jitter { .. } | Self::Grayscale(_) | Self::Blur { .. } | Self::Solarize { .. } => Stage::Color,
            Self::Erase { .. } | Self::Cutout(_) => Stage::Erase,
        }
    }

    /// The size of the result, if the op is a crop that resizes the whole stored image or a part of it.
    pub(super) fn resized_crop(&self) -> Option<Size> {
        match *self {
            Self::RandomResizedCrop { size, .. }
            | Self::IouCrop { size, .. }
            | Self::Letterbox { size, .. }
            | Self::ScaleJitter { size, .. } => Some(size),
            Self::Cover { size, .. } => size,
            _ => None,
        }
    }

    /// Whether the op may move pixels after the image is cropped and resized.
    pub(super) fn maps(&self) -> bool {
        matches!(self.stage(), Stage::Map | Stage::Policy)
    }

    /// Checks the parameters that do not depend on the images.
    pub(super) fn check(&self) -> Result<(), AugmentError> {
        match *self {
            Self::RandomResizedCrop { size, scale, ratio } => {
                self.sides(size)?;
                self.areas(scale)?;
                self.ratios(ratio)
            }
            Self::RandomCrop { size, padding, .. } => {
                self.sides(size)?;
                let found = padding.to_string();
                self.hold("padding", "0 to 65535", padding <= MAX_SIDE, found)
            }
            Self::CenterCrop(size) | Self::Letterbox { size, .. } => self.sides(size),
            Self::IouCrop { size, scale, ratio } => {
                self.sides(size)?;
                self.span("scale", "two fractions of the side from 0 to 1, the smaller one first", scale, 0.0, 1.0)?;
                self.ratios(ratio)
            }
            Self::ScaleJitter { size, scale, .. } => {
                self.sides(size)?;
                self.span("scale", "two numbers from 0.01 to 10, the smaller one first", scale, 0.01, 10.0)
            }
            Self::Cover { size, .. } => size.map_or(Ok(()), |size| self.sides(size)),
            Self::Resize(resize) => self.resize(resize),
            Self::ShortSide { sides, long } => self.short_side(sides, long),
            Self::HorizontalFlip(p) | Self::VerticalFlip(p) => self.probability(p),
            Self::Rotation(degrees) => self.degrees(degrees),
            Self::Affine { degrees, translate, scale, shear } => {
                self.degrees(degrees)?;
                for (what, share) in [("horizontal shift", translate.0), ("vertical shift", translate.1)] {
                    self.number(what, "0 to 1", share, 0.0, 1.0)?;
                }
                self.span("scale", "two numbers from 0.01 to 100, the smaller one first", scale, 0.01, 100.0)?;
                self.number("horizontal shear", "0 to 89 degrees", shear.0, 0.0, 89.0)?;
                self.number("vertical shear", "0 to 89 degrees", shear.1, 0.0, 89.0)
            }
            Self::Jitter { brightness, contrast, saturation, hue, p } => {
                let factors = [("brightness", brightness), ("contrast", contrast), ("saturation", saturation)];
                for (what, by) in factors {
                    self.number(what, "0 to 100", by, 0.0, 100.0)?;
                }
                self.number("hue", "0 to 0.5", hue, 0.0, 0.5)?;
                self.probability(p)
            }
            Self::Blur { kernel, sigma, p } => {
                let odd = kernel % 2 == 1 && kernel <= MAX_KERNEL;
                self.hold("kernel", "odd, 1 to 255", odd, kernel.to_string())?;
                let expected = "two numbers from 0.01 to 100, the smaller one first";
                self.span("sigma", expected, sigma, 0.01, 100.0)?;
                self.probability(p)
            }
            Self::Grayscale(p) | Self::Solarize { p, .. } => self.probability(p),
            Self::Erase { p, scale, ratio, .. } => {
                self.probability(p)?;
                self.areas(scale)?;
                self.ratios(ratio)
            }
            Self::Cutout(side) => self.sides(Size::from(side)),
            Self::RandAugment { n, magnitude, bins } => {
                let holds = (1..=MAX_POLICY_OPS).contains(&n);
                self.hold("number of operations", "1 to 16", holds, n.to_string())?;
                self.bins(bins)?;
                let found = format!("{magnitude} of {bins} bins");
                self.hold("magnitude", "below the number of bins", magnitude < bins, found)
            }
            Self::TrivialAugment { bins } => self.bins(bins),
            Self::AutoAugment(_) => Ok(()),
        }
    }

    /// Checks that buckets have set the size of the op, if it has none of its own.
    pub(super) fn check_has_size(&self) -> Result<(), AugmentError> {
        let has_size = !matches!(self, Self::Cover { size: None, .. });
        self.hold("size", "given, as in cover224, or set by buckets", has_size, "none".to_owned())
    }

    pub(super) fn hold(
        &self,
        what: &'static str,
        expected: &'static str,
        holds: bool,
        found: String,
    ) -> Result<(), AugmentError> {
        if holds {
            return Ok(());
        }
        Err(AugmentError::Parameter { op: self.to_string(), what, expected, found })
    }

    fn resize(&self, resize: Resize) -> Result<(), AugmentError> {
        match resize {
            Resize::Exact { width, height } => self.sides(Size { width, height }),
            Resize::Short(side) | Resize::Long(side) | Resize::Max(side) => self.sides(Size::from(side)),
            Resize::None => self.sides(Size::from(0)),
        }
    }

    fn short_side(&self, Sides { low, high, step }: Sides, long: Option<u32>) -> Result<(), AugmentError> {
        self.sides(Size { width: low, height: high })?;
        self.sides(Size::from(long.unwrap_or(high)))?;
        let holds = low <= high && (1..=MAX_SIDE).contains(&step);
        self.hold("range", "two sides, the shorter one first, and a step of at least 1", holds, self.to_string())?;
        let holds = long.is_none_or(|long| low <= long);
        self.hold("longest side", "at least the short side", holds, long.unwrap_or(0).to_string())
    }

    fn sides(&self, size: Size) -> Result<(), AugmentError> {
        let sides = 1..=MAX_SIDE;
        let holds = sides.contains(&size.width) && sides.contains(&size.height);
        self.hold("size", "1 to 65535", holds, size.to_string())
    }

    fn number(
        &self,
        what: &'static str,
        expected: &'static str,
        value: f64,
        low: f64,
        high: f64,
    ) -> Result<(), AugmentError> {
        let holds = (low..=high).contains(&value);
        self.hold(what, expected, holds, value.to_string())
    }

    fn span(
        &self,
        what: &'static str,
        expected: &'static str,
        (from, to): Span,
        low: f64,
        high: f64,
    ) -> Result<(), AugmentError> {
        let holds = low <= from && from <= to && to <= high;
        self.hold(what, expected, holds, format!("{from} to {to}"))
    }

    fn bins(&self, bins: u32) -> Result<(), AugmentError> {
        let holds = (2..=MAX_BINS).contains(&bins);
        self.hold("number of bins", "2 to 1000", holds, bins.to_string())
    }

    fn probability(&self, p: f64) -> Result<(), AugmentError> {
        self.number("probability", "0 to 1", p, 0.0, 1.0)
    }

    fn degrees(&self, degrees: f64) -> Result<(), AugmentError> {
        self.number("angle", "0 to 180 degrees", degrees, 0.0, 180.0)
    }

    fn areas(&self, scale: Span) -> Result<(), AugmentError> {
        self.span("scale", "two fractions of the area from 0 to 1, the smaller one first", scale, 0.0, 1.0)
    }

    fn ratios(&self, ratio: Span) -> Result<(), AugmentError> {
        self.span("ratio", "two numbers from 0.01 to 100, the smaller one first", ratio, 0.01, 100.0)
    }
}

/// Maximum side. Larger sides are assumed to be typos.
pub(super) const MAX_SIDE: u32 = 65_535;
const MAX_KERNEL: u32 = 255;
const MAX_POLICY_OPS: u32 = 16;
const MAX_BINS: u32 = 1000;
