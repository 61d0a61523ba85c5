//! What a device that finishes images has left to do with them.

use packds_system::to_usize;
use std::sync::Arc;

use packds_format::DType;
use packds_pixels::ops::Adjustment;
use packds_pixels::{Layout, Padding};

use super::{FileLimits, Resampling};

/// Parts of what a device finishes with start at multiples of this in a slot.
const ALIGN: usize = 16;

/// How `u8` pixels become images: each value of a channel is looked up in a table of 256 results. The tables are the
/// host's, so that a device gives the host's values bit for bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Element type of the images: `U8`, `F16`, `Bf16` or `F32`.
    pub dtype: DType,
    /// Order of their dimensions.
    pub layout: Layout,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Channels: 1 or 3.
    pub channels: u32,
    /// The bit patterns of the results of each byte, channel by channel; types of fewer than 32 bits have zeros above.
    pub table: Vec<u32>,
    /// Where the pictures are that the images show, where the device [holds](super::Device::holds) them; none where their
    /// pixels lie in the slot, as large as the images and one after the other.
    pub windows: Option<Windows>,
    /// Which of the pictures are JPEG files that the device decodes, where it does: then `windows` are of these, or of pixels of
    /// the host's, as large as the images.
    pub files: Option<FileLimits>,
    /// What is erased of finished values, and whether images are mixed.
    pub changes: Changes,
    /// Where the loader puts the table in each slot, 4 bytes little-endian for each entry, and behind it what is erased is
    /// set to.
    pub(crate) offset: usize,
}

/// What is done to images beside showing them: first the colours of their pixels are changed, one operation after the other. Then, of
/// finished values, rectangles are set, one after the other, and each image is mixed with the one before it in the batch, the
/// first with the last, as these were before anything was mixed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Of each rectangle that is set in an image, in their order, the bit patterns of its values, channel by channel. In the
    /// slot there is a [`Patch`] for each of them and each image.
    pub erased: Vec<u32>,
    /// Rectangles of an image.
    pub n_patches: usize,
    /// Whether images are mixed. In the slot there is a [`Share`] for each image then.
    pub mixes: bool,
    /// Operations on the colours of an image, at most [`Changes::MOST_COLORS`]. In the slot there is a [`ColorOp`] for each of them
    /// and each image.
    pub n_colors: usize,
    /// Whether there may be [`Adjustment::Contrast`] among them, which takes the mean of all its image.
    pub measures: bool,
    pub(crate) patches: usize,
    pub(crate) shares: usize,
    pub(crate) colors: usize,
    /// Images of a view.
    pub(crate) rows: usize,
}

/// A rectangle of an image; empty where the last place is not behind the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patch {
    /// First column, and the one behind the last.
    pub x: (u32, u32),
    /// First row, and the one behind the last.
    pub y: (u32, u32),
}

/// What an image gets of the one that it is mixed with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Where it gets something.
    pub patch: Patch,
    /// The share of its own value in each value there; none where it takes the other's as they are.
    pub own: Option<f32>,
}

/// An operation on the colours of an image; none does nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColorOp(pub Option<Adjustment>);

/// Images that are windows of pictures that a device holds: of each image a [`Frame`] lies in the slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Columns of each picture.
    pub width: u32,
    /// Rows of each picture.
    pub height: u32,
    /// Bytes from a row of a picture to the next.
    pub row_bytes: u32,
    /// What is shown where a window lies outside.
    pub padding: Padding,
    /// How an area of each picture is resized first, so that windows are of that; none where windows are of the picture.
    pub resampling: Option<Arc<Resampling>>,
    /// Where the loader puts the frames in each slot, those of each view together.
    pub(crate) offset: usize,
    /// Frames of a view.
    pub(crate) rows: usize,
}

/// Which part of which picture an image shows. Each picture may have a size of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// First byte of the area of the picture, from the first byte of the first picture; the area is all of it where none is
    /// resized.
    pub source: u64,
    /// The column where the window starts in the picture or its resized area, perhaps outside.
    pub x: i32,
    /// The row where the window starts, perhaps outside.
    pub y: i32,
    /// [`Frame::HORIZONTAL`], [`Frame::VERTICAL`], [`Frame::ROWS_FIRST`] and [`Frame::RESIZED`].
    pub flips: u32,
    /// Columns of the picture, or of its resized area.
    pub width: u32,
    /// Rows of the picture, or of its resized area.
    pub height: u32,
    /// Bytes from a row of the picture to the next.
    pub row_bytes: u32,
    /// Where the taps of its columns start in [`Resampling::taps`], of an area that is resized.
    pub across: u32,
    /// Where the taps of its rows start.
    pub down: u32,
}

impl Frame {
    /// Left and right are exchanged.
    pub const HORIZONTAL: u32 = 1;
    /// Top and bottom are exchanged.
    pub const VERTICAL: u32 = 2;
    /// Rows are resampled before columns.
    pub const ROWS_FIRST: u32 = 4;
    /// The area is resized: as many columns and rows as its taps name become [`width`](Self::width) and
    /// [`height`](Self::height).
    pub const RESIZED: u32 = 8;
    /// Bytes of a frame in a slot.
    pub const BYTES: usize = 40;

    /// As it lies in a slot: little-endian, in the order of the fields.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.source.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.x.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.y.to_le_bytes());
        let (words, _) = bytes[16..].as_chunks_mut::<4>();
        let sizes = [self.flips, self.width, self.height, self.row_bytes];
        let sizes = sizes.into_iter().chain([self.across, self.down]);
        for (to, word) in words.iter_mut().zip(sizes) {
            *to = word.to_le_bytes();
        }
        bytes
    }
}

impl Patch {
    /// Bytes of a patch in a slot.
    pub const BYTES: usize = 16;

    /// As it lies in a slot: columns, then rows, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (to, place) in bytes
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .zip([self.x.0, self.x.1, self.y.0, self.y.1])
        {
            *to = place.to_le_bytes();
        }
        bytes
    }
}

impl Share {
    /// Bytes of a share in a slot.
    pub const BYTES: usize = 24;

    /// As it lies in a slot: the patch, 1 where values are taken as they are, the share of its own; little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.patch.to_bytes());
        bytes[16..20].copy_from_slice(&u32::from(self.own.is_none()).to_le_bytes());
        bytes[20..].copy_from_slice(&self.own.unwrap_or(0.0).to_le_bytes());
        bytes
    }
}

impl ColorOp {
    /// Bytes of an operation in a slot.
    pub const BYTES: usize = 8;

    /// As it lies in a slot, little-endian: its place in [`Adjustment`] from 1 on, 0 of nothing, and the bits of its factor or its
    /// threshold.
    #[must_use]
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
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..].copy_from_slice(&by.to_le_bytes());
        bytes
    }
}

impl Changes {
    /// The most operations on colours that a device takes.
    pub const MOST_COLORS: usize = 32;

    /// Where the operations on the colours of the first image of a view lie in each slot, those of each image together.
    #[must_use]
    pub fn colors(&self, view: u32) -> usize {
        let of_view = self
            .rows
            .saturating_mul(self.n_colors)
            .saturating_mul(ColorOp::BYTES);
        self.colors.saturating_add(of_views(view, of_view))
    }

    /// Where the patches of the first image of a view lie in each slot, those of each image together.
    #[must_use]
    pub fn patches(&self, view: u32) -> usize {
        let of_view = self
            .rows
            .saturating_mul(self.n_patches)
            .saturating_mul(Patch::BYTES);
        self.patches.saturating_add(of_views(view, of_view))
    }

    /// Where the shares of the images lie in each slot.
    #[must_use]
    pub const fn shares(&self) -> usize {
        self.shares
    }

    /// Whether nothing is changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n_patches == 0 && self.n_colors == 0 && !self.mixes
    }
}

impl Windows {
    /// Where the frames of a view lie in each slot.
    #[must_use]
    pub fn offset(&self, view: u32) -> usize {
        self.offset
            .saturating_add(of_views(view, self.rows * Frame::BYTES))
    }
}

/// Bytes of the views before one.
fn of_views(view: u32, bytes: usize) -> usize {
    to_usize(view).saturating_mul(bytes)
}

impl Finish {
    /// Dimensions of an image.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        let size = |n: u32| to_usize(n);
        let (height, width) = (size(self.height), size(self.width));
        match self.layout {
            Layout::Hwc => vec![height, width, size(self.channels)],
            Layout::Chw => vec![size(self.channels), height, width],
        }
    }

    /// Where the table lies in each slot.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Gives all that the device finishes with a place in each slot of `rows` samples, from `start` on. Where that ends;
    /// none where it is more than this machine can address.
    pub(crate) fn place(&mut self, start: usize, rows: usize, views: u32) -> Option<usize> {
        let images = rows.checked_mul(usize::try_from(views).ok()?)?;
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

    /// Puts the table, and behind it what is erased is set to, where the device finds them.
    pub(crate) fn write_table(&self, slot: &mut [u8]) {
        let (words, _) = slot
            .get_mut(self.offset..)
            .unwrap_or_default()
            .as_chunks_mut::<4>();
        let entries = self.table.iter().chain(&self.changes.erased);
        for (to, entry) in words.iter_mut().zip(entries) {
            *to = entry.to_le_bytes();
        }
    }
}
