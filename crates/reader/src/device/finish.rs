//! Describes the work on images that a device does in place of the host.

use packds_system::to_usize;
use std::sync::Arc;

use packds_format::DType;
use packds_pixels::ops::Adjustment;
use packds_pixels::{Layout, Padding};

use super::Resampling;

/// Alignment of the device's data in a slot.
const ALIGN: usize = 16;

/// How a device makes images from `u8` pixels. Each value of a channel is looked up in a table of 256 results. The
/// host makes the tables, so a device produces exactly the same values as the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Element type of the images: `U8`, `F16`, `Bf16` or `F32`.
    pub dtype: DType,
    /// Order of the dimensions.
    pub layout: Layout,
    /// Height.
    pub height: u32,
    /// Width.
    pub width: u32,
    /// Number of channels: 1 or 3.
    pub channels: u32,
    /// The bit patterns of the result for each byte, channel by channel. If a type has fewer than 32 bits, the upper
    /// bits are zero.
    pub table: Vec<u32>,
    /// The stored images from which the device cuts the results. The device holds these images, or decodes them from
    /// files. If the host decoded a file instead, its result in the slot is the stored image. `None` if the slot has
    /// the pixels of all results in order.
    pub windows: Option<Windows>,
    /// Colour operations, erasing, and mixing of images.
    pub changes: Changes,
    /// Offset of the table in each slot. Each entry takes 4 bytes, little-endian. The values for erasing follow the
    /// table.
    pub(crate) offset: usize,
}

/// Further changes to images. First, colour operations are applied to the pixels, in order. Then, the pixels are
/// converted to values, and rectangles of values are set, in order. Finally, each image is mixed with the previous one
/// in the batch, and the first with the last. Mixing uses the images as they were before any mixing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The bit patterns of the values that each rectangle of an image is set to, in order, channel by channel. The slot
    /// has a [`Patch`] for each rectangle of each image.
    pub erased: Vec<u32>,
    /// Number of rectangles per image.
    pub n_patches: usize,
    /// Whether images are mixed. The slot then has a [`Share`] for each image.
    pub mixes: bool,
    /// Number of colour operations per image, at most [`Changes::MOST_COLORS`]. The slot has a [`ColorOp`] for each.
    pub n_colors: usize,
    /// Whether [`Adjustment::Contrast`] may occur. It needs the mean of the whole image.
    pub measures: bool,
    pub(crate) patches: usize,
    pub(crate) shares: usize,
    pub(crate) colors: usize,
    /// Images per view.
    pub(crate) rows: usize,
}

/// A rectangle of an image. Empty if an end is not after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patch {
    /// First column, and one past the last column.
    pub x: (u32, u32),
    /// First row, and one past the last row.
    pub y: (u32, u32),
}

/// The change to an image that is mixed with another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The changed area.
    pub patch: Patch,
    /// The weight of the image's own values in that area. `None` if the other image's values replace them.
    pub own: Option<f32>,
}

/// A colour operation on an image. `None` has no effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColorOp(pub Option<Adjustment>);

/// How a device cuts crops out of stored images. The slot has a [`Frame`] for each crop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Width of each stored image.
    pub width: u32,
    /// Height of each stored image.
    pub height: u32,
    /// Bytes from one row of a stored image to the next.
    pub row_bytes: u32,
    /// The value of pixels outside the stored image.
    pub padding: Padding,
    /// How an area of each stored image is resized before it is cropped. `None` if it is not resized.
    pub resampling: Option<Arc<Resampling>>,
    /// Offset of the frames in each slot, grouped by view.
    pub(crate) offset: usize,
    /// Frames per view.
    pub(crate) rows: usize,
}

/// The part of a stored image that becomes one result. Each stored image may have its own size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Offset of the area from the first byte of the first stored image. An area that is not resized is the whole
    /// image.
    pub source: u64,
    /// The start column of the crop in the image or its resized area. It may be outside the image.
    pub x: i32,
    /// The start row of the crop. It may be outside the image.
    pub y: i32,
    /// Bit flags: any combination of [`Frame::HORIZONTAL`], [`Frame::VERTICAL`], [`Frame::ROWS_FIRST`] and
    /// [`Frame::RESIZED`].
    pub flips: u32,
    /// Width of the stored image, or of its resized area.
    pub width: u32,
    /// Height of the stored image, or of its resized area.
    pub height: u32,
    /// Bytes from one row of the stored image to the next.
    pub row_bytes: u32,
    /// Index of the column taps in [`Resampling::taps`], if the area is resized.
    pub across: u32,
    /// Index of the row taps.
    pub down: u32,
}

impl Frame {
    /// Left and right are swapped.
    pub const HORIZONTAL: u32 = 1;
    /// Top and bottom are swapped.
    pub const VERTICAL: u32 = 2;
    /// Rows are resampled before columns.
    pub const ROWS_FIRST: u32 = 4;
    /// The area is resized to [`width`](Self::width) and [`height`](Self::height) with the taps at
    /// [`across`](Self::across) and [`down`](Self::down).
    pub const RESIZED: u32 = 8;
    /// Size of a frame in a slot.
    pub const BYTES: usize = 40;

    /// The frame as stored in a slot: little-endian, in field order.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (source, words) = bytes.split_at_mut(8);
        source.copy_from_slice(&self.source.to_le_bytes());
        let (x, y) = (self.x.cast_unsigned(), self.y.cast_unsigned());
        put_words(words, [x, y, self.flips, self.width, self.height, self.row_bytes, self.across, self.down]);
        bytes
    }
}

impl Patch {
    /// Size of a patch in a slot.
    pub const BYTES: usize = 16;

    /// The patch as stored in a slot: columns, then rows, little-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put_words(&mut bytes, [self.x.0, self.x.1, self.y.0, self.y.1]);
        bytes
    }
}

impl Share {
    /// Size of a share in a slot.
    pub const BYTES: usize = 24;

    /// The share as stored in a slot, little-endian: the patch, a 1 if values are replaced, and the weight of the
    /// image's own values.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.patch.to_bytes());
        put_words(&mut bytes[16..], [u32::from(self.own.is_none()), self.own.unwrap_or(0.0).to_bits()]);
        bytes
    }
}

impl ColorOp {
    /// Size of an operation in a slot.
    pub const BYTES: usize = 8;

    /// The operation as stored in a slot, little-endian: its index in [`Adjustment`], counted from 1 (0 for none), and
    /// the bits of its parameter.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, by): (u32, u32) = match self.0 {
            None => (0, 0),
            Some(Adjustment::Brightness(factor)) => (1, factor.to_bits()),
            Some(Adjustment::Contrast(factor)) => (2, factor.to_bits()),
            Some(Adjustment::Saturation(factor)) => (3, factor.to_bits()),
            Some(Adjustment::Hue(factor)) => (4, factor.to_bits()),
            Some(Adjustment::Grayscale) => (5, 0),
            Some(Adjustment::Solarize(threshold)) => (6, threshold.into()),
        };
        let mut bytes = [0; Self::BYTES];
        put_words(&mut bytes, [kind, by]);
        bytes
    }
}

impl Changes {
    /// Maximum number of colour operations per image on a device.
    pub const MOST_COLORS: usize = 32;

    /// Where the colour operations for the images of a view start in each slot. They are grouped by image.
    pub fn colors(&self, view: u32) -> usize {
        let of_view = self.rows.saturating_mul(self.n_colors).saturating_mul(ColorOp::BYTES);
        self.colors.saturating_add(of_views(view, of_view))
    }

    /// Where the patches for the images of a view start in each slot. They are grouped by image.
    pub fn patches(&self, view: u32) -> usize {
        let of_view = self.rows.saturating_mul(self.n_patches).saturating_mul(Patch::BYTES);
        self.patches.saturating_add(of_views(view, of_view))
    }

    /// Offset of the images' shares in each slot.
    pub const fn shares(&self) -> usize {
        self.shares
    }

    /// Whether there are no changes.
    pub const fn is_empty(&self) -> bool {
        self.n_patches == 0 && self.n_colors == 0 && !self.mixes
    }
}

impl Windows {
    /// Offset of a view's frames in each slot.
    pub fn offset(&self, view: u32) -> usize {
        self.offset.saturating_add(of_views(view, self.rows * Frame::BYTES))
    }
}

/// Writes words in little-endian order, until `to` is full.
pub(super) fn put_words(to: &mut [u8], words: impl IntoIterator<Item = u32>) {
    for (to, word) in to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
}

/// Total size of the views before `view`, if each takes `bytes` bytes.
fn of_views(view: u32, bytes: usize) -> usize {
    to_usize(view).saturating_mul(bytes)
}

impl Finish {
    /// Dimensions of an image.
    pub fn shape(&self) -> Vec<usize> {
        let (height, width) = (to_usize(self.height), to_usize(self.width));
        match self.layout {
            Layout::Hwc => vec![height, width, to_usize(self.channels)],
            Layout::Chw => vec![to_usize(self.channels), height, width],
        }
    }

    /// Offset of the table in each slot.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Reserves space in each slot of `rows` samples for everything that the device needs, from `start` on. Returns the
    /// end. `None` if it exceeds the address space.
    pub(crate) fn place(&mut self, start: usize, rows: usize, views: u32) -> Option<usize> {
        let images = rows.checked_mul(to_usize(views))?;
        let mut end = start;
        let mut take = |bytes: usize| {
            let at = end;
            end = at.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
            Some(at)
        };
        let words = self.table.len() + self.changes.erased.len();
        self.offset = take(words.checked_mul(size_of::<u32>())?)?;
        if let Some(windows) = &mut self.windows {
            windows.rows = rows;
            windows.offset = take(images.checked_mul(Frame::BYTES)?)?;
        }
        let changes = &mut self.changes;
        changes.rows = rows;
        let patches = images.checked_mul(changes.n_patches)?;
        changes.patches = take(patches.checked_mul(Patch::BYTES)?)?;
        let shares = if changes.mixes { images } else { 0 };
        changes.shares = take(shares.checked_mul(Share::BYTES)?)?;
        let colors = images.checked_mul(changes.n_colors)?;
        changes.colors = take(colors.checked_mul(ColorOp::BYTES)?)?;
        Some(end)
    }

    /// Writes the table and the values for erasing into a slot.
    pub(crate) fn write_table(&self, slot: &mut [u8]) {
        let entries = self.table.iter().chain(&self.changes.erased);
        put_words(slot.get_mut(self.offset..).unwrap_or_default(), entries.copied());
    }
}
