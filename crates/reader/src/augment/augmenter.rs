//! Applies a plan to samples, one after another.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_pixels::{Color, DecodeOptions, PixelError};

use super::erase::erase;
use super::frame::{Frame, Scene};
use super::op::Size;
use super::render::{Renderer, Use};
use super::steps::{Tools, map_mask};
use super::{AugmentError, AugmentPlan, Input, Picture};

/// Applies a plan. Use one per thread, because it has its own decoder, tables and scratch memory.
#[derive(Debug)]
pub struct Augmenter {
    plan: Arc<AugmentPlan>,
    workshop: Workshop,
}

#[derive(Debug)]
struct Workshop {
    images: Renderer,
    masks: Renderer,
    tools: Tools,
    /// The views of a sample before their values are converted, or a mask before its geometric transforms.
    scratch: Vec<u8>,
    /// The output buffer of geometric transforms.
    turned: Vec<u8>,
    frames: Vec<Frame>,
}

impl Augmenter {
    /// An augmenter for `plan`.
    pub fn new(plan: Arc<AugmentPlan>) -> Self {
        let color = match plan.output().channels {
            1 => Color::Gray,
            _ => Color::Rgb,
        };
        let options = DecodeOptions { color, jpeg_scaling: plan.dct_scaling, ..DecodeOptions::default() };
        let masks = DecodeOptions { color: Color::Index, ..DecodeOptions::default() };
        let workshop = Workshop {
            images: Renderer::new(options),
            masks: Renderer::new(masks),
            tools: Tools::default(),
            scratch: Vec::new(),
            turned: Vec::new(),
            frames: Vec::new(),
        };
        Self { plan, workshop }
    }

    /// Applies another plan from now on, which decodes images in the same way.
    pub(crate) fn turn_to(&mut self, plan: &Arc<AugmentPlan>) {
        self.plan = Arc::clone(plan);
    }

    /// The plan that this augmenter applies.
    pub fn plan(&self) -> &AugmentPlan {
        &self.plan
    }

    /// Makes the image of one sample, and its mask if there is one, if their size depends on the sample. They replace
    /// the contents of the outputs. Returns width and height.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub(crate) fn apply_varied(
        &mut self,
        input: Input<'_>,
        out: &mut Vec<u8>,
        mask_out: &mut Vec<u8>,
    ) -> Result<(u32, u32), AugmentError> {
        let plan = self.plan.for_sample(input.key.root(), input.image.size()?)?;
        let (Size { width, height }, item_bytes) = (plan.size(), plan.item_bytes());
        let of_mask = match input.mask {
            Some(Picture::Raw(raw)) => pixel_bytes(plan.size(), raw.channels)?,
            Some(Picture::Encoded(_)) => pixel_bytes(plan.size(), 1)?,
            None => 0,
        };
        for (to, n_bytes) in [(&mut *out, item_bytes), (&mut *mask_out, of_mask)] {
            grow(to, n_bytes)?;
            to.truncate(n_bytes);
        }
        let masks: &mut [&mut [u8]] = if input.mask.is_some() { &mut [mask_out] } else { &mut [] };
        self.apply(input, &mut [out], masks)?;
        Ok((width, height))
    }

    /// Makes all views of one sample. `outs[view]` has `item_bytes()` bytes.
    ///
    /// A mask gets the geometry of its image, with nearest-neighbour sampling. Where a crop extends beyond the mask, it
    /// pads the mask as it pads the image. Geometric transforms fill the places outside the mask with 0. Colours,
    /// erasing and normalization do not change the mask. `mask_outs[view]` has `height * width * channels` bytes of
    /// `u8`. A raw mask keeps its channels. An encoded mask has one channel.
    ///
    /// # Errors
    /// `Buffer`, `Picture`, `MaskSize`, `TooSmall`, and `Pixels` if the image cannot be decoded. After an error, the
    /// contents of the outputs are unspecified.
    pub fn apply(
        &mut self,
        input: Input<'_>,
        outs: &mut [&mut [u8]],
        mask_outs: &mut [&mut [u8]],
    ) -> Result<(), AugmentError> {
        let Self { plan, workshop } = self;
        let Input { key, image, mask, boxes } = input;
        let channels = plan.output().channels;
        let root = key.root();
        let size = image.size()?;
        let plan = &*plan.for_sample(root, size)?;
        check_buffers(plan, outs, plan.item_bytes())?;
        if let Picture::Raw(raw) = image
            && raw.channels != channels
        {
            return Err(AugmentError::Picture {
                what: "number of channels",
                expected: channels.to_string(),
                found: raw.channels.to_string(),
            });
        }
        workshop.frames.clear();
        for view in 0..plan.output().views {
            let frame = Frame::draw(&plan.ops, Scene { size, boxes }, root, view)?;
            workshop.frames.push(frame);
        }
        workshop.images_into(plan, root, (image, size), outs)?;
        match mask {
            Some(mask) => workshop.masks_into(plan, root, (mask, size), mask_outs),
            None => Ok(()),
        }
    }
}

impl Workshop {
    fn images_into(
        &mut self,
        plan: &AugmentPlan,
        root: u64,
        picture: (Picture<'_>, Size),
        outs: &mut [&mut [u8]],
    ) -> Result<(), AugmentError> {
        let channels = plan.output().channels;
        let maps = plan.maps();
        if plan.writes_bytes() && !maps {
            self.images.render(plan, Use::Image, &self.frames, picture, outs)?;
            for (view, out) in (0..).zip(outs) {
                let out = self.tools.work(plan, (root, view), out, &mut [])?;
                erase(plan, root, view, out);
            }
            return Ok(());
        }
        let n_bytes = pixel_bytes(plan.size(), channels)?;
        let n_views = outs.len();
        grow(&mut self.scratch, n_bytes.saturating_mul(n_views))?;
        grow(&mut self.turned, if maps { n_bytes } else { 0 })?;
        let mut views: Vec<&mut [u8]> = self.scratch.chunks_exact_mut(n_bytes).take(n_views).collect();
        self.images.render(plan, Use::Image, &self.frames, picture, &mut views)?;
        for ((view, pixels), out) in (0..).zip(views).zip(outs) {
            let spare = self.turned.get_mut(..n_bytes).unwrap_or_default();
            let pixels = self.tools.work(plan, (root, view), pixels, spare)?;
            plan.emit.write_into(pixels, out)?;
            erase(plan, root, view, out);
        }
        Ok(())
    }

    fn masks_into(
        &mut self,
        plan: &AugmentPlan,
        root: u64,
        (mask, size): (Picture<'_>, Size),
        outs: &mut [&mut [u8]],
    ) -> Result<(), AugmentError> {
        let found = mask.size()?;
        if found != size {
            return Err(AugmentError::MaskSize {
                expected: format!("{}x{}", size.width, size.height),
                found: format!("{}x{}", found.width, found.height),
            });
        }
        let channels = match mask {
            Picture::Encoded(_) => 1,
            Picture::Raw(raw) => raw.channels,
        };
        let n_bytes = pixel_bytes(plan.size(), channels)?;
        check_buffers(plan, outs, n_bytes)?;
        self.masks.render(plan, Use::Mask, &self.frames, (mask, size), outs)?;
        if !plan.maps() {
            return Ok(());
        }
        grow(&mut self.scratch, n_bytes)?;
        grow(&mut self.turned, n_bytes)?;
        for (view, out) in (0..).zip(outs) {
            let (Some(first), Some(second)) = (self.scratch.get_mut(..n_bytes), self.turned.get_mut(..n_bytes)) else {
                continue;
            };
            first.copy_from_slice(out);
            let turned = map_mask(plan, (root, view), channels, first, second)?;
            out.copy_from_slice(turned);
        }
        Ok(())
    }
}

fn check_buffers(plan: &AugmentPlan, outs: &[&mut [u8]], n_bytes: usize) -> Result<(), AugmentError> {
    let views = to_usize(plan.output().views);
    if outs.len() != views {
        return Err(AugmentError::Buffer {
            what: "number of outputs, one for each view",
            expected: views,
            found: outs.len(),
        });
    }
    match outs.iter().find(|out| out.len() != n_bytes) {
        Some(out) => Err(AugmentError::Buffer { what: "bytes of an output", expected: n_bytes, found: out.len() }),
        None => Ok(()),
    }
}

/// Size of an image of `u8` values in bytes.
pub(super) fn pixel_bytes(size: Size, channels: u8) -> Result<usize, AugmentError> {
    let sides = [size.width, size.height, channels.into()];
    let product = sides.iter().try_fold(1_usize, |n, &side| n.checked_mul(to_usize(side)));
    Ok(product.ok_or(PixelError::OutOfMemory { bytes: u64::MAX })?)
}

/// Makes `memory` at least `n_bytes` long.
pub(super) fn grow(memory: &mut Vec<u8>, n_bytes: usize) -> Result<(), AugmentError> {
    if memory.len() < n_bytes {
        let more = n_bytes - memory.len();
        memory.try_reserve_exact(more).map_err(|_| PixelError::OutOfMemory { bytes: to_u64(n_bytes) })?;
        memory.resize(n_bytes, 0);
    }
    Ok(())
}
