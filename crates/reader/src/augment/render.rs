//! Renders the frames of a sample from files or pixels.

use packds_pixels::{
    Color, Crop, CropResize, DecodeOptions, Decoder, Filter, Geometry, Padding, PixelError, Pixels, Resize, Resizer,
    padded_crop_into,
};

use super::augmenter::{grow, pixel_bytes};
use super::frame::{Frame, Shown, whole};
use super::op::{Op, Size};
use super::{AugmentError, AugmentPlan, Picture};

#[derive(Debug)]
pub(super) struct Renderer {
    decoder: Decoder,
    max_pixels: u64,
    /// Number of channels that files are decoded to.
    file_channels: u8,
    resizer: Resizer,
    /// The image that frames are cropped or flipped from, if they cannot be rendered directly.
    resized: Vec<u8>,
    views: Vec<CropResize>,
}

/// What a renderer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Image,
    /// The values of a mask are not blended.
    Mask,
}

impl Renderer {
    pub(super) fn new(options: DecodeOptions) -> Self {
        Self {
            decoder: Decoder::new(options),
            max_pixels: options.max_pixels,
            file_channels: if options.color == Color::Rgb { 3 } else { 1 },
            resizer: Resizer::new(),
            resized: Vec::new(),
            views: Vec::new(),
        }
    }

    pub(super) fn render(
        &mut self,
        plan: &AugmentPlan,
        of: Use,
        frames: &[Frame],
        (picture, size): (Picture<'_>, Size),
        outs: &mut [&mut [u8]],
    ) -> Result<(), AugmentError> {
        let out = plan.size();
        let filter = if of == Use::Mask { Filter::Nearest } else { plan.filter };
        let views = frames.iter().map(|frame| frame.crop_resize(size, out, filter));
        self.views.clear();
        self.views.extend(views.flatten());
        // Windows of raw pixels are copied, not resized.
        let copies =
            matches!((picture, frames.first()), (Picture::Raw(_), Some(Frame { shown: Shown::Window { .. }, .. })));
        // Rendering single views directly always decodes at full size. With DCT scaling, the whole image is decoded
        // instead.
        let scaled = plan.dct_scaling && matches!(picture, Picture::Encoded(_));
        if self.views.len() == frames.len() && !copies && !scaled {
            return self.show(picture, outs);
        }
        let resized = frames.iter().find_map(|frame| match frame.shown {
            Shown::Window { resized, .. } => Some(resized),
            Shown::Area(_) => None,
        });
        let resized = resized.unwrap_or(size);
        let whole = match picture {
            Picture::Raw(raw) if resized == size => raw,
            Picture::Raw(raw) => self.whole(raw, resized, filter)?,
            Picture::Encoded(encoded) => {
                let geometry = geometry(&plan.ops, filter, resized);
                // If all frames show the same part, which is the centre crop or the whole image, only that part is
                // decoded.
                if geometry.crop != Crop::None || frames.iter().all(|frame| matches!(frame.shown, Shown::Area(_))) {
                    return self.show_alike(encoded.bytes, &geometry, out, frames, outs);
                }
                self.rendered(encoded.bytes, &geometry, resized)?
            }
        };
        let padding = padding(&plan.ops, of);
        for (frame, to) in frames.iter().zip(outs) {
            let Shown::Window { x, y, .. } = frame.shown else { continue };
            let flips = (frame.flip_horizontal, frame.flip_vertical);
            padded_crop_into(whole, x, y, out.width, out.height, padding, flips.0, flips.1, to)?;
        }
        Ok(())
    }

    /// Renders frames that differ only in their flips.
    fn show_alike(
        &mut self,
        bytes: &[u8],
        geometry: &Geometry,
        size: Size,
        frames: &[Frame],
        outs: &mut [&mut [u8]],
    ) -> Result<(), AugmentError> {
        let flipped = |frame: &Frame| frame.flip_horizontal || frame.flip_vertical;
        if let ([frame], [out]) = (frames, &mut *outs)
            && !flipped(frame)
        {
            self.decoder.render_into(bytes, geometry, out)?;
            return Ok(());
        }
        let (width, height) = (size.width, size.height);
        let shown = self.rendered(bytes, geometry, size)?;
        for (frame, out) in frames.iter().zip(outs) {
            let flips = (frame.flip_horizontal, frame.flip_vertical);
            let padding = Padding::Edge;
            padded_crop_into(shown, 0, 0, width, height, padding, flips.0, flips.1, out)?;
        }
        Ok(())
    }

    /// Renders a file with this geometry into the renderer's own memory. `size` is the size of the result.
    fn rendered(&mut self, bytes: &[u8], geometry: &Geometry, size: Size) -> Result<Pixels<'_>, AugmentError> {
        let n_bytes = self.admit(size, self.file_channels)?;
        let memory = self.resized.get_mut(..n_bytes).unwrap_or_default();
        self.decoder.render_into(bytes, geometry, memory)?;
        Ok(Pixels { data: memory, width: size.width, height: size.height, channels: self.file_channels })
    }

    /// Makes `resized` large enough for an image of this size. Returns the size in bytes.
    fn admit(&mut self, size: Size, channels: u8) -> Result<usize, AugmentError> {
        let Size { width, height } = size;
        let limit = self.max_pixels;
        if u64::from(width) * u64::from(height) > limit {
            return Err(PixelError::TooManyPixels { width, height, limit }.into());
        }
        let n_bytes = pixel_bytes(size, channels)?;
        grow(&mut self.resized, n_bytes)?;
        Ok(n_bytes)
    }

    /// Renders `self.views`.
    fn show(&mut self, picture: Picture<'_>, outs: &mut [&mut [u8]]) -> Result<(), AugmentError> {
        match picture {
            Picture::Encoded(encoded) => {
                self.decoder.crop_resize_into(encoded, &self.views, outs)?;
            }
            Picture::Raw(raw) => {
                for (view, out) in self.views.iter().zip(outs) {
                    self.resizer.crop_resize_into(raw, view, out)?;
                }
            }
        }
        Ok(())
    }

    /// Resizes the whole image of raw pixels.
    fn whole(&mut self, raw: Pixels<'_>, resized: Size, filter: Filter) -> Result<Pixels<'_>, AugmentError> {
        let n_bytes = self.admit(resized, raw.channels)?;
        let memory = self.resized.get_mut(..n_bytes).unwrap_or_default();
        let view = CropResize {
            area: whole(Size { width: raw.width, height: raw.height }),
            width: resized.width,
            height: resized.height,
            filter,
            flip_horizontal: false,
            flip_vertical: false,
        };
        self.resizer.crop_resize_into(raw, &view, memory)?;
        Ok(Pixels { data: memory, width: resized.width, height: resized.height, channels: raw.channels })
    }
}

/// The plan's resize and centre crop, as one geometry. `resized` is the size of the whole image after the resize.
fn geometry(ops: &[Op], filter: Filter, resized: Size) -> Geometry {
    let mut geometry = Geometry { filter, ..Geometry::default() };
    for op in ops {
        match *op {
            Op::Resize(resize) => geometry.resize = resize,
            Op::Letterbox { .. } | Op::ScaleJitter { .. } => {
                geometry.resize = Resize::Exact { width: resized.width, height: resized.height };
            }
            Op::Cover { size, center } => {
                geometry.resize = Resize::Exact { width: resized.width, height: resized.height };
                if let (Some(Size { width, height }), true) = (size, center) {
                    geometry.crop = Crop::Center { width, height };
                }
            }
            Op::CenterCrop(Size { width, height }) => {
                geometry.crop = Crop::Center { width, height };
            }
            _ => {}
        }
    }
    geometry
}

/// The padding of the plan's crop. Black if it sets none. The borders of a letterbox have no class, so they are 0 in a
/// mask.
fn padding(ops: &[Op], of: Use) -> Padding {
    let modes = ops.iter().find_map(|op| match *op {
        Op::RandomCrop { mode, .. } => Some(mode),
        Op::Letterbox { fill, .. } | Op::ScaleJitter { fill, .. } if of == Use::Image => Some(Padding::Constant(fill)),
        _ => None,
    });
    modes.unwrap_or(Padding::Constant([0; 4]))
}
