//! An augmentation checked against a field of a pack.

use packds_format::{DType, Field, FieldKind};
use packds_pixels::ops::{Emit, Sampling};
use packds_pixels::{CropResize, Filter, FloatType, Layout, Resize};
use packds_system::{counted, to_usize};

use super::SampleKey;
use super::augmenter::pixel_bytes;
use super::boxes::{BoundingBox, MinBox};
use super::frame::{Frame, Scene};
use super::geometry::rounded_crop;
use super::op::{Filling, Op, Size, Stage};
use super::{Augment, AugmentError};

/// Maximum number of views. Training does not need more.
const MAX_VIEWS: u32 = 64;

/// The input of an augmentation: the images of one field of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// The size of every image. `None` if sizes vary.
    pub size: Option<Size>,
    /// Number of channels: 1 or 3. Files are decoded to this number.
    pub channels: u8,
    /// Type of the stored values. Only `U8` can be augmented.
    pub dtype: DType,
    /// Order of the stored dimensions. Only `Hwc` can be augmented.
    pub layout: Layout,
}

impl ImageSource {
    /// Raw `u8` pixels or image files with this number of channels.
    pub fn raw(size: Option<Size>, channels: u8) -> Self {
        Self { size, channels, dtype: DType::U8, layout: Layout::Hwc }
    }

    /// The images of `field`: a tensor of three dimensions with a layout, a tensor of two dimensions (one channel), or
    /// variable-size images.
    ///
    /// # Errors
    /// `Source` if the field does not contain images, or does not have 1 or 3 channels.
    pub fn of_field(field: &Field) -> Result<Self, AugmentError> {
        let wrong = |what, expected, found: String| Err(AugmentError::Source { what, expected, found });
        if field.kind == FieldKind::Image {
            let gray = matches!(field.color.as_deref(), Some("gray" | "index"));
            return Ok(Self::raw(None, if gray { 1 } else { 3 }));
        }
        let shape = match (field.kind, field.shape.as_slice()) {
            (FieldKind::Tensor, &[height, width]) => Some((height, width, 1)),
            _ => field.image_shape(),
        };
        let Some((height, width, channels)) = shape else {
            let found = format!("{:?} {:?}", field.kind, field.shape);
            return wrong("the field", "an image or an image tensor with a layout", found);
        };
        let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else {
            return wrong("the size", "below 2^32", format!("{width}x{height}"));
        };
        let Ok(channels) = u8::try_from(channels) else {
            return wrong("the number of channels", "1 or 3", channels.to_string());
        };
        Ok(Self {
            size: Some(Size { width, height }),
            channels,
            dtype: field.dtype,
            layout: match field.layout.as_deref() {
                Some("chw") => Layout::Chw,
                _ => Layout::Hwc,
            },
        })
    }

    fn check(&self) -> Result<(), AugmentError> {
        let (what, expected, found) = if self.dtype != DType::U8 {
            ("the pixel type", "u8", self.dtype.to_string())
        } else if self.layout != Layout::Hwc && self.channels != 1 {
            ("the layout", "hwc", self.layout.to_string())
        } else if !matches!(self.channels, 1 | 3) {
            ("the number of channels", "1 or 3", self.channels.to_string())
        } else {
            return Ok(());
        };
        Err(AugmentError::Source { what, expected, found })
    }
}

/// The output of an augmentation: one image per view of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Height.
    pub height: u32,
    /// Width.
    pub width: u32,
    /// Number of channels: 1 or 3.
    pub channels: u8,
    /// `U8`, `F32`, `F16` or `Bf16`, little-endian.
    pub dtype: DType,
    /// Order of the dimensions.
    pub layout: Layout,
    /// Number of images per sample.
    pub views: u32,
}

/// An augmentation that matches its source, with the shape of its output.
#[derive(Debug, Clone, PartialEq)]
pub struct AugmentPlan {
    pub(super) ops: Vec<Op>,
    pub(super) filter: Filter,
    /// The fill value outside rotated or transformed images.
    pub(super) fill: [u8; 4],
    pub(super) dct_scaling: bool,
    /// Which boxes remain. `None` if the augmentation does not say.
    pub(super) min_box: Option<MinBox>,
    pub(super) mixup: Option<f64>,
    pub(super) cutmix: Option<f64>,
    /// The share of images that become mosaics.
    pub(super) mosaic: Option<f64>,
    pub(super) float: Option<FloatType>,
    pub(super) emit: Emit,
    output: Output,
    item_bytes: usize,
}

impl AugmentPlan {
    /// Checks `augment` against `source`: the parameters, the order of the ops, and whether the output size is known.
    ///
    /// # Errors
    /// `Parameter`, `Order`, `Twice`, `Source`, `SizesVary`, `TooSmall`.
    pub fn new(augment: &Augment, source: &ImageSource) -> Result<Self, AugmentError> {
        source.check()?;
        augment.ops.iter().try_for_each(Op::check)?;
        augment.ops.iter().try_for_each(Op::check_has_size)?;
        check_order(&augment.ops)?;
        check_settings(augment)?;
        let channels = source.channels;
        for op in &augment.ops {
            if let Op::Erase { value, .. } = op {
                check_filling(op, value, channels, augment.output_dtype())?;
            }
        }
        let dtype = augment.output_dtype();
        let float = float_type(dtype)?;
        let norm = match &augment.normalize {
            None => None,
            Some((mean, std)) => Some((per_channel("mean", mean, channels)?, per_channel("deviation", std, channels)?)),
        };
        let norm = norm.as_ref().map(|(mean, std)| (&mean[..], &std[..]));
        let emit = Emit::new(channels.into(), norm, float, augment.layout)?;
        // The size is 0 if it varies.
        let Size { width, height } = output_size(&augment.ops, source.size)?.unwrap_or(Size { width: 0, height: 0 });
        let item_bytes = pixel_bytes(Size { width, height }, channels)
            .ok()
            .and_then(|n| n.checked_mul(to_usize(dtype.size())))
            .filter(|&n| isize::try_from(n).is_ok())
            .ok_or_else(|| setting("result", "size", "small enough for memory", format!("{width}x{height}")))?;
        Ok(Self {
            ops: augment.ops.clone(),
            filter: augment.filter,
            fill: fill(&augment.fill, channels)?,
            dct_scaling: augment.dct_scaling,
            min_box: augment.min_box,
            mixup: augment.mixup,
            cutmix: augment.cutmix,
            mosaic: augment.mosaic,
            float,
            emit,
            output: Output { height, width, channels, dtype, layout: augment.layout, views: augment.views },
            item_bytes,
        })
    }

    pub(super) fn set_output(&mut self, output: Output, item_bytes: usize) {
        (self.output, self.item_bytes) = (output, item_bytes);
    }

    /// Shape and type of the output. If [`sizes_vary`](Self::sizes_vary), its width and height are 0.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Size of one output image: one view of one sample.
    pub fn item_bytes(&self) -> usize {
        self.item_bytes
    }

    /// The part of an image of this size, with these boxes, that each view of a sample shows, with its flips. This is
    /// what a decoder needs. If the whole image is resized before the crop, or if the crop extends beyond the image,
    /// the part is rounded to pixels of the image and clipped to it.
    ///
    /// # Errors
    /// `TooSmall` if the image is smaller than the crop.
    pub fn crops(
        &self,
        key: SampleKey,
        (width, height): (u32, u32),
        boxes: &[BoundingBox],
    ) -> Result<Vec<CropResize>, AugmentError> {
        let picture = Size { width, height };
        let plan = self.for_sample(key.root(), picture)?;
        let crop = |view| {
            let frame = Frame::draw(&plan.ops, Scene { size: picture, boxes }, key.root(), view)?;
            let shown = frame.crop_resize(picture, plan.size(), plan.filter);
            Ok(shown.unwrap_or_else(|| rounded_crop(frame, picture, plan.size(), plan.filter)))
        };
        (0..self.output.views).map(crop).collect()
    }

    /// Whether the output equals the stored pixels, for images of one size.
    pub(crate) fn changes_nothing(&self) -> bool {
        let output = self.output;
        // Variable-size images always need a resize or a crop.
        self.ops.is_empty()
            && (output.dtype, output.layout, output.views) == (DType::U8, Layout::Hwc, 1)
            && self.mixup.is_none()
            && self.cutmix.is_none()
            && self.mosaic.is_none()
    }

    /// The word of the augmentation that needs boxes. `None` if there is none.
    pub(crate) fn needs_boxes(&self) -> Option<String> {
        let op = self.ops.iter().find(|op| matches!(op, Op::IouCrop { .. })).map(Op::to_string);
        op.or_else(|| self.min_box.map(|_| "minbox".to_owned()))
    }

    /// The word of the augmentation that joins the boxes of several images. `None` if there is none.
    pub(crate) fn joins_boxes(&self) -> Option<&'static str> {
        let mixup = self.mixup.map(|_| "mixup");
        self.mosaic.map(|_| "mosaic").or(mixup)
    }

    /// Whether images get rectangles of other images.
    pub(crate) const fn patches_images(&self) -> bool {
        self.cutmix.is_some()
    }

    /// Whether a view may be a mirror image.
    pub(crate) fn mirrors(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::HorizontalFlip(_) | Op::VerticalFlip(_)))
    }

    /// Whether an op may move pixels after the crop and the resize.
    pub(super) fn maps(&self) -> bool {
        self.ops.iter().any(Op::maps)
    }

    pub(super) fn sampling(&self) -> Sampling {
        match self.filter {
            Filter::Nearest => Sampling::Nearest,
            Filter::Bicubic => Sampling::Bicubic,
            _ => Sampling::Bilinear,
        }
    }

    pub(super) fn size(&self) -> Size {
        Size { width: self.output.width, height: self.output.height }
    }
}

impl Augment {
    fn output_dtype(&self) -> DType {
        let default = match self.normalize {
            Some(_) => DType::F32,
            None => DType::U8,
        };
        self.dtype.unwrap_or(default)
    }
}

fn setting(name: &str, what: &'static str, expected: &'static str, found: String) -> AugmentError {
    AugmentError::Parameter { op: name.to_owned(), what, expected, found }
}

fn float_type(dtype: DType) -> Result<Option<FloatType>, AugmentError> {
    let float = FloatType::named(dtype.name());
    if float.is_none() && dtype != DType::U8 {
        return Err(setting("result", "type", "u8, f32, f16 or bf16", dtype.to_string()));
    }
    Ok(float)
}

fn fill(values: &[u8], channels: u8) -> Result<[u8; 4], AugmentError> {
    match *values {
        [] => Ok([0; 4]),
        [value] => Ok([value; 4]),
        [red, green, blue] if channels == 3 => Ok([red, green, blue, 0]),
        _ => {
            let found = format!("{} for {}", values.len(), counted(channels, "channel"));
            let expected = "one number, or one for each channel";
            Err(setting("fill", "value", expected, found))
        }
    }
}

fn per_channel(what: &'static str, values: &[f32], channels: u8) -> Result<Vec<f32>, AugmentError> {
    match values {
        [value] => Ok(vec![*value; channels.into()]),
        values if values.len() == usize::from(channels) => Ok(values.to_vec()),
        values => {
            let found = format!("{} for {}", values.len(), counted(channels, "channel"));
            Err(setting("norm", what, "one number, or one for each channel", found))
        }
    }
}

fn check_settings(augment: &Augment) -> Result<(), AugmentError> {
    if !(1..=MAX_VIEWS).contains(&augment.views) {
        let found = augment.views.to_string();
        return Err(setting("views", "number", "1 to 64", found));
    }
    for (name, alpha) in [("mixup", augment.mixup), ("cutmix", augment.cutmix)] {
        let Some(alpha) = alpha else { continue };
        if !(0.01..=1000.0).contains(&alpha) {
            return Err(setting(name, "alpha", "0.01 to 1000", alpha.to_string()));
        }
        if augment.views > 1 {
            let expected = "1, because labels are mixed by sample";
            return Err(setting(name, "number of views", expected, augment.views.to_string()));
        }
    }
    if let Some(p) = augment.mosaic {
        if !(0.0..=1.0).contains(&p) {
            return Err(setting("mosaic", "probability", "0 to 1", p.to_string()));
        }
        if augment.views > 1 {
            let expected = "1, because a mosaic is made of samples";
            return Err(setting("mosaic", "number of views", expected, augment.views.to_string()));
        }
    }
    if augment.dct_scaling && !augment.ops.iter().any(|op| op.stage() == Stage::Resize) {
        let expected = "used with a resize of the whole image (resize256,center224), because random parts are decoded at full size";
        return Err(setting("dct", "setting", expected, "no resize".to_owned()));
    }
    if let Some(MinBox { side, visible }) = augment.min_box {
        if !(0.0..=65_535.0).contains(&side) {
            return Err(setting("minbox", "side", "0 to 65535 pixels", side.to_string()));
        }
        if !(0.0..=1.0).contains(&visible) {
            return Err(setting("minbox", "visible part", "0 to 1", visible.to_string()));
        }
    }
    let scales = |op: &&Op| matches!(op, Op::ScaleJitter { .. } | Op::ShortSide { .. });
    if let (2.., Some(op)) = (augment.views, augment.ops.iter().find(scales)) {
        let expected = "1, because the image is resized once for all views";
        return op.hold("number of views", expected, false, augment.views.to_string());
    }
    let varies = |op: &&Op| matches!(op, Op::ShortSide { .. });
    if let Some(op) = augment.ops.iter().find(varies)
        && !augment.ops.iter().any(|op| op.stage() == Stage::Crop)
    {
        let joins = [augment.mixup, augment.cutmix, augment.mosaic].iter().any(Option::is_some);
        let expected = "one for mixup, cutmix and mosaic: add a crop, such as center640, or leave these words out";
        op.hold("size of the images", expected, !joins, "different sizes".to_owned())?;
    }
    if !augment.fill.is_empty() && !augment.ops.iter().any(Op::maps) {
        let expected =
            "used with rotate, affine or a policy such as randaugment (crops have their own value, as in crop32+4:128)";
        return Err(setting("fill", "setting", expected, "none of these".to_owned()));
    }
    let Some((mean, std)) = &augment.normalize else { return Ok(()) };
    if augment.output_dtype() == DType::U8 {
        let expected = "f32, f16 or bf16, because u8 cannot hold normalized values";
        return Err(setting("norm", "type of the result", expected, "u8".to_owned()));
    }
    if let Some(bad) = mean.iter().find(|value| !value.is_finite()) {
        return Err(setting("norm", "mean", "finite", bad.to_string()));
    }
    match std.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
        Some(bad) => Err(setting("norm", "deviation", "above 0", bad.to_string())),
        None => Ok(()),
    }
}

fn check_filling(op: &Op, value: &Filling, channels: u8, dtype: DType) -> Result<(), AugmentError> {
    let Filling::Values(value) = value else {
        let expected = "a fixed value for u8, because random values are distributed around 0 and need f32, f16 or bf16";
        return op.hold("value", expected, dtype != DType::U8, "random".to_owned());
    };
    let found = format!("{value:?}");
    let count = value.len() == 1 || value.len() == usize::from(channels);
    op.hold("value", "one number, or one for each channel", count, found.clone())?;
    let fits = |value: &f32| match dtype {
        DType::U8 => (0.0..=255.0).contains(value) && value.fract() == 0.0,
        _ => value.is_finite(),
    };
    let expected = "values that fit the result (whole numbers from 0 to 255 for u8, otherwise finite numbers)";
    op.hold("value", expected, value.iter().all(fits), found)
}

fn check_order(ops: &[Op]) -> Result<(), AugmentError> {
    for (number, op) in ops.iter().enumerate() {
        let before = &ops[..number];
        let order = |previous: &Op, reason| {
            Err(AugmentError::Order { op: op.to_string(), previous: previous.to_string(), reason })
        };
        if let Some(previous) = before.iter().find(|previous| previous.stage() > op.stage()) {
            let reason = match op.stage() {
                Stage::Resize => {
                    "a resize must come first; move it to the front, or omit it if a random resized crop sets the size"
                }
                Stage::Crop => {
                    "only a resize may come before a crop, so that only the cropped part is decoded; move the crop forward"
                }
                Stage::Flip => {
                    "flips must come right after the crop, where they cost nothing; put them before rotations, colours and erasing"
                }
                Stage::Map => "rotations must come before policies, colours and erasing",
                Stage::Policy => "policies must come before colours and erasing",
                Stage::Color | Stage::Erase => {
                    "erasing must come last, because it writes finished values; put it at the end"
                }
            };
            return order(previous, reason);
        }
        let (Stage::Resize | Stage::Crop | Stage::Flip) = op.stage() else { continue };
        let same = |previous: &&Op| std::mem::discriminant(*previous) == std::mem::discriminant(op);
        if let Some(previous) = before.iter().find(same) {
            return Err(AugmentError::Twice { op: op.to_string(), previous: previous.to_string() });
        }
        let Some(previous) = before.last() else { continue };
        if op.stage() == Stage::Resize {
            return order(previous, "only one resize is possible; omit one of the two");
        }
        if op.stage() == Stage::Crop && previous.stage() == Stage::Crop {
            return order(previous, "only one crop is possible; omit one of the two");
        }
        if op.resized_crop().is_some() {
            return order(previous, "this crop uses the stored image and sets the size itself; omit the resize");
        }
    }
    Ok(())
}

/// The size of every result. It is the source's size unless an op sets it. `None` if an op makes it vary.
fn output_size(ops: &[Op], source: Option<Size>) -> Result<Option<Size>, AugmentError> {
    if ops.iter().any(|op| matches!(op, Op::ShortSide { .. })) {
        let crops = ops.iter().find_map(|op| match *op {
            Op::CenterCrop(out) | Op::RandomCrop { size: out, .. } => Some(out),
            _ => None,
        });
        return Ok(crops);
    }
    let mut size = source;
    for op in ops {
        match *op {
            Op::Resize(Resize::Exact { width, height }) => size = Some(Size { width, height }),
            Op::Resize(resize) => size = size.map(|size| super::frame::resized_size(resize, size)),
            Op::CenterCrop(out) | Op::RandomCrop { size: out, .. } => size = Some(out),
            _ => size = op.resized_crop().or(size),
        }
    }
    // If the known size is too small for the crop, every sample would fail.
    if let (Ok(size), Some(source)) = (size.ok_or(AugmentError::SizesVary), source) {
        Frame::draw(ops, Scene::of(source), 0, 0)?;
        return Ok(Some(size));
    }
    size.map(Some).ok_or(AugmentError::SizesVary)
}
