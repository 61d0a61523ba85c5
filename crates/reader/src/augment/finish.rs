//! The last stage for a sample: converts its values to their type and order, then erases.

use std::sync::Arc;

use packds_format::DType;
use packds_pixels::{Layout, Padding, rows_come_first};

use super::AugmentPlan;
use super::color::{color_adjustments, measures, most_adjustments};
use super::erase::{drawn, encode, erased_to};
use super::frame::{Frame, Scene, Shown, resized_size, whole};
use super::op::{Op, Size, Stage};
use super::{AugmentError, SampleKey};
use crate::device::{self, Changes, ColorOp, FileLimits, Finish, Patch, Resampling, Windows};

/// An image in the memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) size: Size,
    /// Bytes from one row to the next.
    pub(crate) row_bytes: u32,
    /// Offset of its first byte from the first byte of the first image.
    pub(crate) source: u64,
}

impl AugmentPlan {
    /// Whether the result is a plain copy of the pixels, in the same type and order.
    pub(super) fn writes_bytes(&self) -> bool {
        let output = self.output();
        output.dtype == DType::U8 && (output.layout == Layout::Hwc || output.channels == 1)
    }

    /// The remaining work on the pixels of [`Augment::as_pixels`](super::Augment::as_pixels). `None` if there is no
    /// work, or if a device does not support all of it.
    pub(crate) fn finish(&self) -> Option<Finish> {
        let finish = self.finish_values();
        let is_some = !self.sizes_vary() && (!self.writes_bytes() || !finish.changes.is_empty());
        // What a device erases or mixes comes after a mosaic, which the host makes from finished images.
        (is_some && !self.erases_randomly() && !self.has_mosaics()).then_some(finish)
    }

    /// Describes how a device makes the results from stored images of one size. A device can resize areas, crop, flip,
    /// change the colours of single pixels, normalize and convert the values, and erase. If the augmentation needs
    /// more, the error is a sentence that says why.
    pub(crate) fn finish_windows(&self, picture: Size) -> Result<Finish, &'static str> {
        if self.has_mosaics() {
            return Err("mosaics are made on the host");
        }
        let mut padding = Padding::Constant([0; 4]);
        let mut resized = None;
        for op in &self.ops {
            match *op {
                Op::Resize(resize) => resized = Some((resized_size(resize, picture), false)),
                Op::RandomResizedCrop { size, .. } => resized = Some((size, true)),
                Op::IouCrop { .. } => return Err("ioucrop depends on the boxes, which stay on the host"),
                Op::Letterbox { .. } | Op::ScaleJitter { .. } | Op::Cover { .. } | Op::ShortSide { .. } => {
                    return Err("letterbox, scalejitter, cover and shortside resize images on the host");
                }
                Op::RandomCrop { mode, .. } => padding = mode,
                _ => {}
            }
            if op.stage() == Stage::Policy {
                return Err("randaugment, trivialaugment and autoaugment need neighbouring pixels");
            }
            if op.stage() == Stage::Map || most_adjustments(op).is_none() {
                return Err("blur, rotate and affine need neighbouring pixels");
            }
        }
        if self.erases_randomly() {
            return Err("the random values of erase are drawn on the host");
        }
        let n_colors = self.ops.iter().map(most_adjustments).sum::<Option<usize>>();
        let n_colors = n_colors.filter(|n| *n <= Changes::MOST_COLORS);
        let n_colors = n_colors.ok_or("an image may need more than 32 colour operations")?;
        let sides = |size: Size| (size.width, size.height);
        let resampling = match resized {
            None => None,
            Some((to, of_areas)) => {
                let made = Resampling::new(sides(picture), sides(to), self.filter, of_areas);
                Some(Arc::new(made.ok_or("the tables for resizing images of this size take too much memory")?))
            }
        };
        let row_bytes = picture.width.checked_mul(self.output().channels.into());
        let windows = Windows {
            width: picture.width,
            height: picture.height,
            row_bytes: row_bytes.ok_or("the rows of the images are longer than 2^32 bytes")?,
            padding,
            resampling,
            offset: 0,
            rows: 0,
        };
        let values = self.finish_values();
        Ok(Finish {
            windows: Some(windows),
            changes: Changes { n_colors, measures: self.ops.iter().any(measures), ..values.changes },
            ..values
        })
    }

    /// Describes how a device makes the results from JPEG files that it decodes. A device can resize random areas of
    /// one view. Otherwise it can do the same as in [`finish_windows`](Self::finish_windows). If the augmentation
    /// needs more, the error is a sentence that says why.
    pub(crate) fn finish_files(&self, limits: FileLimits) -> Result<Finish, &'static str> {
        let is_area = |op: &Op| matches!(op, Op::RandomResizedCrop { .. });
        if !self.ops.iter().any(is_area) {
            return Err("the augmentation does not resize random areas (rrc)");
        }
        if self.output().views != 1 {
            return Err("each image has several views");
        }
        let side = Size { width: limits.side, height: limits.side };
        self.finish_windows(side)
    }

    /// The crop of an image that becomes a view of a sample. `None` if `resampling` has no taps for its area.
    pub(crate) fn window(
        &self,
        key: SampleKey,
        view: u32,
        picture: Located,
        resampling: Option<&Resampling>,
    ) -> Result<Option<device::Frame>, AugmentError> {
        let frame = Frame::draw(&self.ops, Scene::of(picture.size), key.root(), view)?;
        let (area, x, y) = match frame.shown {
            Shown::Area(area) => (area, 0, 0),
            Shown::Window { x, y, .. } => (whole(picture.size), x, y),
        };
        let start = |at: i64| {
            i32::try_from(at).map_err(|_| AugmentError::Parameter {
                op: "crop".to_owned(),
                what: "start",
                expected: "at most 2^31 pixels from the image",
                found: at.to_string(),
            })
        };
        let mut flips = u32::from(frame.flip_horizontal) * device::Frame::HORIZONTAL;
        flips |= u32::from(frame.flip_vertical) * device::Frame::VERTICAL;
        let (mut shown, mut places) = ((picture.size.width, picture.size.height), (0, 0));
        if let Some(resampling) = resampling {
            let Some(known) = resampling.places(area.width, area.height) else {
                return Ok(None);
            };
            (places, shown) = (known, resampling.size());
            let rows_first = rows_come_first(area.width, area.height, shown.0, shown.1);
            flips |= device::Frame::RESIZED | (u32::from(rows_first) * device::Frame::ROWS_FIRST);
        }
        let column = u64::from(area.x) * u64::from(self.output().channels);
        let before = u64::from(area.y) * u64::from(picture.row_bytes) + column;
        Ok(Some(device::Frame {
            source: picture.source + before,
            x: start(x)?,
            y: start(y)?,
            flips,
            width: shown.0,
            height: shown.1,
            row_bytes: picture.row_bytes,
            across: places.0,
            down: places.1,
        }))
    }

    fn finish_values(&self) -> Finish {
        let output = self.output();
        Finish {
            dtype: output.dtype,
            layout: output.layout,
            height: output.height,
            width: output.width,
            channels: output.channels.into(),
            table: self.emit.table(),
            windows: None,
            changes: self.changes(),
            offset: 0,
        }
    }

    fn changes(&self) -> Changes {
        let channels = usize::from(self.output().channels);
        let values = self.ops.iter().filter_map(erased_to);
        let erased: Vec<u32> = values
            .flat_map(|value| {
                let encoded = self.encoded(value).map(u32::from_le_bytes);
                encoded.into_iter().take(channels)
            })
            .collect();
        Changes {
            n_patches: erased.len() / channels.max(1),
            erased,
            mixes: self.mixup.is_some() || self.cutmix.is_some(),
            ..Changes::default()
        }
    }

    /// The rectangles that are erased in a view of a sample, one per erasing op.
    pub(crate) fn patches(&self, key: SampleKey, view: u32) -> impl Iterator<Item = Patch> {
        let root = key.root();
        drawn(self, root, view).map(|(_, _, patch)| patch)
    }

    /// The `n` colour operations of a view of a sample. If there are fewer, the rest have no effect and come last.
    pub(crate) fn colors(&self, key: SampleKey, view: u32, n: usize) -> impl Iterator<Item = ColorOp> {
        let adjustments = color_adjustments(self, key.root(), view);
        let adjustments = adjustments.map(|adjustment| ColorOp(Some(adjustment)));
        adjustments.chain(std::iter::repeat(ColorOp(None))).take(n)
    }

    /// The bytes of the value for each channel, in the element type of the result. `value` has one number for all
    /// channels, or one for each channel.
    pub(super) fn encoded(&self, value: &[f32]) -> [[u8; 4]; 3] {
        // There are 1 or 3 channels.
        [0, 1, 2].map(|channel| {
            let value = value.get(channel).or(value.first());
            encode(self.float, value.copied().unwrap_or(0.0))
        })
    }
}
