//! What a device that finishes images has left to do with them.

use packds_format::DType;
use packds_pixels::Layout;

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
    /// Where the loader puts the table in each slot, 4 bytes little-endian for each entry.
    pub(crate) offset: usize,
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
