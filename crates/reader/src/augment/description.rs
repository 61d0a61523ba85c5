//! The description of an augmentation: ops in order and settings of the result.

use packds_format::DType;
use packds_pixels::{Filter, Layout, Resize};

use super::op::{CROP_RATIO, CROP_SCALE, ERASE_RATIO, ERASE_SCALE, Filling, Op, Stage};
use super::{Policy, Size};
use packds_pixels::Padding;

/// Mean and standard deviation of ImageNet's training images, of values in 0 to 1.
pub(super) const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// What happens to a sample at load time: ops in the order given, and settings of the result.
///
/// Nothing is checked before [`AugmentPlan::new`](super::AugmentPlan::new), which sees all of it.
/// Ops come in this order: resize, crop (or `random_resized_crop`, which is both), flips, rotation
/// and affine maps, policies, colours, erasing. A later setting replaces an earlier one.
///
/// ```
/// use packds_reader::augment::Augment;
/// let train = Augment::new().random_resized_crop(224).horizontal_flip(0.5);
/// assert_eq!(train, Augment::parse("rrc224,flip")?);
/// # Ok::<(), packds_reader::augment::AugmentError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Augment {
    pub(super) ops: Vec<Op>,
    pub(super) views: u32,
    pub(super) filter: Filter,
    /// None, one value or one for each channel.
    pub(super) fill: Vec<u8>,
    pub(super) dct_scaling: bool,
    pub(super) mixup: Option<f64>,
    pub(super) cutmix: Option<f64>,
    pub(super) normalize: Option<(Vec<f32>, Vec<f32>)>,
    pub(super) dtype: Option<DType>,
    pub(super) layout: Layout,
}

impl Default for Augment {
    fn default() -> Self {
        Self::new()
    }
}

impl Augment {
    /// One view, `u8`, height x width x channels, and no op.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ops: Vec::new(),
            views: 1,
            filter: Filter::Bilinear,
            fill: Vec::new(),
            dct_scaling: false,
            mixup: None,
            cutmix: None,
            normalize: None,
            dtype: None,
            layout: Layout::Hwc,
        }
    }

    pub(super) fn op(mut self, op: Op) -> Self {
        self.ops.push(op);
        self
    }

    /// A random part of the picture, resized to `size`: 8 to 100 % of the area, of sides 3:4 to 4:3.
    #[must_use]
    pub fn random_resized_crop(self, size: impl Into<Size>) -> Self {
        self.random_resized_crop_with(size, CROP_SCALE, CROP_RATIO)
    }

    /// As `random_resized_crop`, with `scale` (share of the area) evenly and `ratio` (width by
    /// height) evenly in its logarithm between the two numbers each.
    #[must_use]
    pub fn random_resized_crop_with(
        self,
        size: impl Into<Size>,
        scale: (f64, f64),
        ratio: (f64, f64),
    ) -> Self {
        let size = size.into();
        self.op(Op::RandomResizedCrop { size, scale, ratio })
    }

    /// A random window of `size` pixels of the picture with `padding` pixels around it. Where the
    /// padded picture is still smaller it is an error, or padded more if `pad_if_needed`.
    #[must_use]
    pub fn random_crop(
        self,
        size: impl Into<Size>,
        padding: u32,
        mode: Padding,
        pad_if_needed: bool,
    ) -> Self {
        self.op(Op::RandomCrop {
            size: size.into(),
            padding,
            mode,
            if_needed: pad_if_needed,
        })
    }

    /// The middle `size` pixels; black around a smaller picture.
    #[must_use]
    pub fn center_crop(self, size: impl Into<Size>) -> Self {
        self.op(Op::CenterCrop(size.into()))
    }

    /// The whole picture in another size.
    #[must_use]
    pub fn resize(self, resize: Resize) -> Self {
        self.op(Op::Resize(resize))
    }

    /// Left and right exchanged with probability `p`.
    #[must_use]
    pub fn horizontal_flip(self, p: f64) -> Self {
        self.op(Op::HorizontalFlip(p))
    }

    /// Top and bottom exchanged with probability `p`.
    #[must_use]
    pub fn vertical_flip(self, p: f64) -> Self {
        self.op(Op::VerticalFlip(p))
    }

    /// Turned around the middle by up to `degrees` either way; `fill` where nothing is.
    #[must_use]
    pub fn rotation(self, degrees: f64) -> Self {
        self.op(Op::Rotation(degrees))
    }

    /// Turned by up to `degrees`, moved by up to `translate` (shares of width and height), scaled
    /// between the numbers of `scale`, sheared by up to `shear` degrees along rows and columns.
    #[must_use]
    pub fn affine(
        self,
        degrees: f64,
        translate: (f64, f64),
        scale: (f64, f64),
        shear: (f64, f64),
    ) -> Self {
        self.op(Op::Affine {
            degrees,
            translate,
            scale,
            shear,
        })
    }

    /// torchvision's `RandAugment`: `n` operations of the policies' list, each with the same `magnitude`, of `bins` evenly
    /// spaced ones. Usual are 2, 9 and 31.
    #[must_use]
    pub fn rand_augment(self, n: u32, magnitude: u32, bins: u32) -> Self {
        self.op(Op::RandAugment { n, magnitude, bins })
    }

    /// torchvision's `TrivialAugmentWide`: one operation of the policies' list, with a random one of `bins` magnitudes, usually
    /// 31.
    #[must_use]
    pub fn trivial_augment(self, bins: u32) -> Self {
        self.op(Op::TrivialAugment { bins })
    }

    /// torchvision's `AutoAugment`: one of 25 pairs of operations that were learned from a data set.
    #[must_use]
    pub fn auto_augment(self, policy: Policy) -> Self {
        self.op(Op::AutoAugment(policy))
    }

    /// Brightness, contrast and saturation times `1 - x` to `1 + x` (not below 0), hue turned by
    /// `-hue` to `hue` of the circle, in random order.
    #[must_use]
    pub fn color_jitter(self, brightness: f64, contrast: f64, saturation: f64, hue: f64) -> Self {
        self.color_jitter_with(brightness, contrast, saturation, hue, 1.0)
    }

    /// As `color_jitter`, with probability `p`.
    #[must_use]
    pub fn color_jitter_with(
        self,
        brightness: f64,
        contrast: f64,
        saturation: f64,
        hue: f64,
        p: f64,
    ) -> Self {
        self.op(Op::Jitter {
            brightness,
            contrast,
            saturation,
            hue,
            p,
        })
    }

    /// All channels made luma with probability `p`.
    #[must_use]
    pub fn random_grayscale(self, p: f64) -> Self {
        self.op(Op::Grayscale(p))
    }

    /// Blurred with probability `p` by a Gaussian in a square of `kernel` pixels (odd), of a
    /// deviation in pixels between the numbers of `sigma`.
    #[must_use]
    pub fn gaussian_blur(self, kernel: u32, sigma: (f64, f64), p: f64) -> Self {
        self.op(Op::Blur { kernel, sigma, p })
    }

    /// Values of at least `threshold` inverted with probability `p`.
    #[must_use]
    pub fn solarize(self, threshold: u8, p: f64) -> Self {
        self.op(Op::Solarize { threshold, p })
    }

    /// A random rectangle of 2 to 33 % of the area, of sides 0.3 to 3.3, set to 0 with probability
    /// `p`, after the normalization.
    #[must_use]
    pub fn random_erasing(self, p: f64) -> Self {
        self.random_erasing_with(p, ERASE_SCALE, ERASE_RATIO, &[0.0])
    }

    /// As `random_erasing`, with `scale` (share of the area), `ratio` (height by width) and the
    /// value: one, or one for each channel, as it will stand in the result.
    #[must_use]
    pub fn random_erasing_with(
        self,
        p: f64,
        scale: (f64, f64),
        ratio: (f64, f64),
        value: &[f32],
    ) -> Self {
        self.op(Op::Erase {
            p,
            scale,
            ratio,
            value: Filling::Values(value.to_vec()),
        })
    }

    /// As `random_erasing_with`, with a random number of the normal distribution for each value. Floats only.
    #[must_use]
    pub fn random_erasing_randomly(self, p: f64, scale: (f64, f64), ratio: (f64, f64)) -> Self {
        let value = Filling::Random;
        self.op(Op::Erase {
            p,
            scale,
            ratio,
            value,
        })
    }

    /// A square of `side` pixels around a random pixel set to 0, after the normalization.
    #[must_use]
    pub fn cutout(self, side: u32) -> Self {
        self.op(Op::Cutout(side))
    }

    /// Blends each sample of a batch with another; the share is drawn from Beta(alpha, alpha). With
    /// `cutmix` too, each sample gets one of the two with equal chance.
    #[must_use]
    pub fn mixup(mut self, alpha: f64) -> Self {
        self.mixup = Some(alpha);
        self
    }

    /// Shows a rectangle of another sample of the batch in each; its share of the area is drawn from
    /// Beta(alpha, alpha).
    #[must_use]
    pub fn cutmix(mut self, alpha: f64) -> Self {
        self.cutmix = Some(alpha);
        self
    }

    /// That many results of each sample, drawn apart, from one decode.
    #[must_use]
    pub fn views(mut self, views: u32) -> Self {
        self.views = views;
        self
    }

    /// How resizes sample, and rotations, maps and policies: these by the nearest pixel with `Nearest`, by sixteen with `Bicubic`,
    /// else by four. `Bilinear` unless told.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The value of what lies outside in rotations, maps and policies: one, or one for each channel. Black unless told; masks
    /// have 0 there.
    #[must_use]
    pub fn fill(mut self, value: &[u8]) -> Self {
        self.fill = value.to_vec();
        self
    }

    /// Decodes JPEGs at 1/2, 1/4 or 1/8 of their size where `resize` makes them that much
    /// smaller; it needs one. Faster, but not Pillow's pixels: docs/reference/pixels.md has the difference.
    #[must_use]
    pub fn dct_scaling(mut self, on: bool) -> Self {
        self.dct_scaling = on;
        self
    }

    /// Makes values `(value / 255 - mean) / std`: a number, or one for each channel. Floats only;
    /// `F32` unless told.
    #[must_use]
    pub fn normalize(mut self, mean: &[f32], std: &[f32]) -> Self {
        self.normalize = Some((mean.to_vec(), std.to_vec()));
        self
    }

    /// Normalizes with ImageNet's usual numbers.
    #[must_use]
    pub fn normalize_imagenet(self) -> Self {
        self.normalize(&IMAGENET.0, &IMAGENET.1)
    }

    /// Type of the result: `U8`, `F32`, `F16` or `Bf16`. Floats without normalization are 0 to 1.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// The same without normalization, as `U8`: what is left to do on the device is a multiplication and an addition. None
    /// where it is bytes already.
    pub(crate) fn as_bytes(&self) -> Option<Self> {
        let is_bytes = self.normalize.is_none() && matches!(self.dtype, None | Some(DType::U8));
        (!is_bytes).then(|| Self {
            normalize: None,
            dtype: None,
            ..self.clone()
        })
    }

    /// The same up to the values: `u8` pixels, their channels together, of which nothing is erased or mixed. Draws are the
    /// same, since erasing comes last.
    pub(crate) fn as_pixels(&self) -> Self {
        let mut pixels = Self {
            layout: Layout::Hwc,
            mixup: None,
            cutmix: None,
            ..self.as_bytes().unwrap_or_else(|| self.clone())
        };
        pixels.ops.retain(|op| op.stage() != Stage::Erase);
        pixels
    }

    /// As far as areas and windows, of a device that changes colours too.
    pub(crate) fn as_windows(&self) -> Self {
        let mut windows = self.as_pixels();
        windows.ops.retain(|op| op.stage() != Stage::Color);
        windows
    }

    /// Order of the result's dimensions.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }
}
