//! What a device that finishes images has left to do with them.

use packds_format::DType;
use packds_pixels::{Layout, Padding};

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
    /// Where the loader puts the table in each slot, 4 bytes little-endian for each entry.
    pub(crate) offset: usize,
}

/// Images that are windows of pictures that a device holds: of each image a [`Frame`] lies in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Columns of each picture.
    pub width: u32,
    /// Rows of each picture.
    pub height: u32,
    /// What is shown where a window lies outside.
    pub padding: Padding,
    /// Where the loader puts the frames in each slot, those of each view together.
    pub(crate) offset: usize,
    /// Frames of a view.
    pub(crate) rows: usize,
}

/// Which part of which picture an image shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// First byte of the picture, from the first byte of the first picture.
    pub source: u64,
    /// The picture's column where the window starts, perhaps outside.
    pub x: i32,
    /// The picture's row where the window starts, perhaps outside.
    pub y: i32,
    /// [`Frame::HORIZONTAL`] and [`Frame::VERTICAL`].
    pub flips: u32,
}

impl Frame {
    /// Left and right are exchanged.
    pub const HORIZONTAL: u32 = 1;
    /// Top and bottom are exchanged.
    pub const VERTICAL: u32 = 2;
    /// Bytes of a frame in a slot.
    pub const BYTES: usize = 24;

    /// As it lies in a slot: little-endian, in the order of the fields, zeros behind.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.source.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.x.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.y.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.flips.to_le_bytes());
        bytes
    }
}

impl Windows {
    /// Where the frames of a view lie in each slot.
    #[must_use]
    pub fn offset(&self, view: u32) -> usize {
        let view = usize::try_from(view).unwrap_or(usize::MAX);
        let before = view.saturating_mul(self.rows * Frame::BYTES);
        self.offset.saturating_add(before)
    }
}

impl Finish {
    /// Dimensions of an image.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        let size = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
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

    /// Bytes of the table in a slot.
    pub(crate) const fn table_bytes(&self) -> usize {
        self.table.len() * size_of::<u32>()
    }

    /// Puts the table where the device finds it.
    pub(crate) fn write_table(&self, slot: &mut [u8]) {
        let to = slot.get_mut(self.offset..self.offset + self.table_bytes());
        let (words, _) = to.unwrap_or_default().as_chunks_mut::<4>();
        for (to, entry) in words.iter_mut().zip(&self.table) {
            *to = entry.to_le_bytes();
        }
    }
}
