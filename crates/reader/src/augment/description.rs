//! The description of an augmentation: ops in order, and settings of the result.

use packds_format::DType;
use packds_pixels::{Filter, Layout, Padding, Resize};

use super::boxes::MinBox;
use super::op::{CROP_RATIO, CROP_SCALE, ERASE_RATIO, ERASE_SCALE, Filling, Op, Stage};
use super::varied::Sides;
use super::{Policy, Size};
use crate::setters::{ops, setters};

/// Mean and standard deviation of ImageNet's training images, for values from 0 to 1.
pub(super) const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// Describes what happens to a sample at load time: ops in order, and settings of the result.
///
/// All checks are done in [`AugmentPlan::new`](super::AugmentPlan::new), which needs the complete description. Ops must
/// be in this order: resize, crop (or `random_resized_crop`, which is both), flips, rotation and affine transforms,
/// policies, colours, erasing. A later setting replaces an earlier one.
///
/// ```
/// use packds_reader::augment::Augment;
/// let train = Augment::new().random_resized_crop(224).horizontal_flip(0.5);
/// assert_eq!(train, Augment::parse("rrc224,flip")?);
/// # Ok::<(), packds_reader::augment::AugmentError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Augment {
    pub(super) ops: Vec<Op>,
    pub(super) views: u32,
    pub(super) filter: Filter,
    /// One value, or one per channel. Empty if no value was set.
    pub(super) fill: Vec<u8>,
    pub(super) dct_scaling: bool,
    pub(super) min_box: Option<MinBox>,
    pub(super) mixup: Option<f64>,
    pub(super) cutmix: Option<f64>,
    /// The share of images that become mosaics.
    pub(super) mosaic: Option<f64>,
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
    /// An augmentation without ops. It makes one view as `u8`, height x width x channels.
    pub fn new() -> Self {
        Self {
            ops: Vec::new(),
            views: 1,
            filter: Filter::Bilinear,
            fill: Vec::new(),
            dct_scaling: false,
            min_box: None,
            mixup: None,
            cutmix: None,
            mosaic: None,
            normalize: None,
            dtype: None,
            layout: Layout::Hwc,
        }
    }

    ops! {
        /// A random part of the image, resized to `size`: 8 to 100% of the area, with an aspect ratio from 3:4 to 4:3.
        random_resized_crop(size: impl Into<Size>) =
            Op::RandomResizedCrop { size: size.into(), scale: CROP_SCALE, ratio: CROP_RATIO };
        /// Like `random_resized_crop`, with other ranges. `scale` is the fraction of the area, drawn uniformly. `ratio`
        /// is width divided by height, drawn uniformly in its logarithm.
        random_resized_crop_with(size: impl Into<Size>, scale: (f64, f64), ratio: (f64, f64)) =
            Op::RandomResizedCrop { size: size.into(), scale, ratio };
        /// A random window of `size` pixels in the image with `padding` pixels around it. A padded image that is still
        /// too small gets more padding if `pad_if_needed` is set. Otherwise it is an error.
        random_crop(size: impl Into<Size>, padding: u32, mode: Padding, pad_if_needed: bool) =
            Op::RandomCrop { size: size.into(), padding, mode, if_needed: pad_if_needed };
        /// The central `size` pixels. If the image is smaller, it is padded with black.
        center_crop(size: impl Into<Size>) = Op::CenterCrop(size.into());
        /// A random part of the image that overlaps a box, resized to `size`: `scale` is the range of its width and its
        /// height as fractions of the image, and `ratio` that of width divided by height. This is torchvision's
        /// `RandomIoUCrop`, whose defaults are (0.3, 1) and (0.5, 2). Boxes with their centre outside the part are left
        /// out. Images without boxes are not cropped.
        iou_crop(size: impl Into<Size>, scale: (f64, f64), ratio: (f64, f64)) =
            Op::IouCrop { size: size.into(), scale, ratio };
        /// Resizes the whole image so that it fits into `size`, and puts it in the middle. The borders are `fill`. A
        /// mask is 0 there.
        letterbox(size: impl Into<Size>, fill: [u8; 4]) = Op::Letterbox { size: size.into(), fill };
        /// Resizes the whole image so that it fits into `size`, times a factor from the range `scale`. A larger image
        /// is cropped at a random place. A smaller one has borders on the right and below, as in `letterbox`. These are
        /// torchvision's `ScaleJitter` and `FixedSizeCrop`.
        scale_jitter(size: impl Into<Size>, scale: (f64, f64), fill: [u8; 4]) =
            Op::ScaleJitter { size: size.into(), scale, fill };
        /// Resizes the whole image so that it covers `size`, and crops the rest at a random place, or on both sides
        /// equally if `center` is set. Without a size, [`Buckets`](super::Buckets) set it.
        cover(size: Option<Size>, center: bool) = Op::Cover { size, center };
        /// Resizes the whole image so that its short side has a random length: `sides.0`, `sides.0 + step` and so on,
        /// up to `sides.1`. If its longest side would be above `long`, it is resized to that instead. This is
        /// torchvision's `RandomShortestSize`. Without a crop, the results of different images have different sizes.
        short_side(sides: (u32, u32), step: u32, long: Option<u32>) =
            Op::ShortSide { sides: Sides { low: sides.0, high: sides.1, step }, long };
        /// Resizes the whole image.
        resize(resize: Resize) = Op::Resize(resize);
        /// Swaps left and right with probability `p`.
        horizontal_flip(p: f64) = Op::HorizontalFlip(p);
        /// Swaps top and bottom with probability `p`.
        vertical_flip(p: f64) = Op::VerticalFlip(p);
        /// Rotates around the centre by up to `degrees` in either direction, with `fill` outside.
        rotation(degrees: f64) = Op::Rotation(degrees);
        /// Rotates by up to `degrees`, moves by up to `translate` (fractions of width and height), scales by a factor
        /// in the range `scale`, and shears by up to `shear` degrees along rows and columns.
        affine(degrees: f64, translate: (f64, f64), scale: (f64, f64), shear: (f64, f64)) =
            Op::Affine { degrees, translate, scale, shear };
        /// torchvision's `RandAugment`: `n` random operations from the list of policy operations. All have the same
        /// `magnitude`, out of `bins` evenly spaced magnitudes. Common values are 2, 9 and 31.
        rand_augment(n: u32, magnitude: u32, bins: u32) = Op::RandAugment { n, magnitude, bins };
        /// torchvision's `TrivialAugmentWide`: one random operation from the list of policy operations, with a random
        /// one of `bins` magnitudes. The common value is 31.
        trivial_augment(bins: u32) = Op::TrivialAugment { bins };
        /// torchvision's `AutoAugment`: one of 25 pairs of operations that were learned from a dataset.
        auto_augment(policy: Policy) = Op::AutoAugment(policy);
        /// Multiplies brightness, contrast and saturation each by a random factor from `1 - x` to `1 + x` (at least 0),
        /// where `x` is the argument. Rotates the hue by `-hue` to `hue` of the colour circle. The order is random.
        color_jitter(brightness: f64, contrast: f64, saturation: f64, hue: f64) =
            Op::Jitter { brightness, contrast, saturation, hue, p: 1.0 };
        /// Like `color_jitter`, but applied with probability `p`.
        color_jitter_with(brightness: f64, contrast: f64, saturation: f64, hue: f64, p: f64) =
            Op::Jitter { brightness, contrast, saturation, hue, p };
        /// Converts to grayscale with probability `p`. The number of channels stays the same.
        random_grayscale(p: f64) = Op::Grayscale(p);
        /// Blurs with probability `p`, using a Gaussian in a square of `kernel` pixels (odd). The standard deviation in
        /// pixels is in the range `sigma`.
        gaussian_blur(kernel: u32, sigma: (f64, f64), p: f64) = Op::Blur { kernel, sigma, p };
        /// Inverts values of at least `threshold` with probability `p`.
        solarize(threshold: u8, p: f64) = Op::Solarize { threshold, p };
        /// Sets a random rectangle to 0 with probability `p`, after normalization. The rectangle covers 2 to 33% of the
        /// area. Its aspect ratio is from 0.3 to 3.3.
        random_erasing(p: f64) =
            Op::Erase { p, scale: ERASE_SCALE, ratio: ERASE_RATIO, value: Filling::Values(vec![0.0]) };
        /// Like `random_erasing`, with the given `scale` (fraction of the area), `ratio` (height divided by width) and
        /// value. The value has one number, or one per channel. It appears unchanged in the result.
        random_erasing_with(p: f64, scale: (f64, f64), ratio: (f64, f64), value: &[f32]) =
            Op::Erase { p, scale, ratio, value: Filling::Values(value.to_vec()) };
        /// Like `random_erasing_with`, but with normally distributed random values. Only for floats.
        random_erasing_randomly(p: f64, scale: (f64, f64), ratio: (f64, f64)) =
            Op::Erase { p, scale, ratio, value: Filling::Random };
        /// Sets a square of `side` pixels around a random pixel to 0, after normalization.
        cutout(side: u32) = Op::Cutout(side);
    }

    setters! {
        /// Blends each sample of a batch with another one. The weight is drawn from Beta(alpha, alpha). If `cutmix` is
        /// also set, either `mixup` or `cutmix` is applied to each sample, with equal probability.
        mixup(alpha: f64) = Some(alpha);
        /// Copies a rectangle of another sample of the batch into each sample. The fraction of the area that it covers
        /// is drawn from Beta(alpha, alpha).
        cutmix(alpha: f64) = Some(alpha);
        /// With probability `p`, shows parts of four images: of the sample, and of the three samples before it in the batch.
        mosaic(p: f64) = Some(p);
        /// Makes this many independent results per sample. The sample is decoded only once.
        views(views: u32) = views;
        /// The resampling filter of resizes. Rotations, affine transforms and policies use the nearest pixel for
        /// `Nearest`, 16 pixels for `Bicubic`, and 4 pixels otherwise. The default is `Bilinear`.
        filter(filter: Filter) = filter;
        /// The value outside the image in rotations, affine transforms and policies. It has one number, or one per
        /// channel. The default is black. Masks always get 0.
        fill(value: &[u8]) = value.to_vec();
        /// Decodes JPEGs at 1/2, 1/4 or 1/8 of their size if `resize` makes them that much smaller. This requires a
        /// resize. It is faster, but the pixels differ from Pillow's. docs/reference/pixels.md describes the
        /// difference.
        dct_scaling(on: bool) = on;
        /// Type of the result: `U8`, `F32`, `F16` or `Bf16`. Floats without normalization are from 0 to 1.
        dtype(dtype: DType) = Some(dtype);
        /// Order of the result's dimensions.
        layout(layout: Layout) = layout;
    }

    /// Converts values to `(value / 255 - mean) / std`. `mean` and `std` contain one number, or one per channel.
    /// Valid only for float results. The default type is `F32`.
    pub fn normalize(mut self, mean: &[f32], std: &[f32]) -> Self {
        self.normalize = Some((mean.to_vec(), std.to_vec()));
        self
    }

    /// Leaves out a box if one of its sides is shorter than `side` pixels in the result, or if the result shows less
    /// than the part `visible` of it. The default is 1 and 0.
    pub fn min_box(mut self, side: f64, visible: f64) -> Self {
        self.min_box = Some(MinBox { side, visible });
        self
    }

    /// Normalizes with the mean and standard deviation of ImageNet.
    pub fn normalize_imagenet(self) -> Self {
        self.normalize(&IMAGENET.0, &IMAGENET.1)
    }

    /// The same augmentation without normalization, as `U8`. A device can normalize the result with a multiplication
    /// and an addition. `None` if the result is already `U8`.
    #[doc(hidden)]
    pub fn as_bytes(&self) -> Option<Self> {
        let is_bytes = self.normalize.is_none() && matches!(self.dtype, None | Some(DType::U8));
        (!is_bytes).then(|| Self { normalize: None, dtype: None, ..self.clone() })
    }

    /// The same augmentation without normalization, type conversion, erasing and mixing. The result is interleaved `u8`
    /// pixels. The draws of the other ops stay the same, because erasing comes last.
    pub(crate) fn as_pixels(&self) -> Self {
        let mut pixels =
            Self { layout: Layout::Hwc, mixup: None, cutmix: None, ..self.as_bytes().unwrap_or_else(|| self.clone()) };
        pixels.ops.retain(|op| op.stage() != Stage::Erase);
        pixels
    }

    /// Like [`as_pixels`](Self::as_pixels), but also without colour operations, for a device that applies them.
    pub(crate) fn as_windows(&self) -> Self {
        let mut windows = self.as_pixels();
        windows.ops.retain(|op| op.stage() != Stage::Color);
        windows
    }
}
