//! Rectangles of pictures, and pictures of raw pixels.

use crate::decode::{byte_count, usize_of};
use crate::error::PixelError;

/// A rectangle of pixels of the (orientation-applied) picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
}

/// Raw interleaved u8 pixels `[height, width, channels]`.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// `height * width * channels` bytes: rows from the top, pixels from the left.
    pub data: &'a [u8],
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes in a pixel.
    pub channels: u8,
}

impl Pixels<'_> {
    /// Says whether the data are as long as the sizes say; returns the bytes of a row.
    pub(crate) fn check(&self) -> Result<usize, PixelError> {
        let channels = usize::from(self.channels);
        let expected = byte_count(self.width, self.height, channels)?;
        if expected == 0 {
            let found = format!("{}x{}x{channels}", self.width, self.height);
            return Err(PixelError::argument("picture", "at least 1x1x1", &found));
        }
        if self.data.len() != expected {
            return Err(PixelError::WrongBuffer {
                expected,
                found: self.data.len(),
            });
        }
        Ok(usize_of(self.width) * channels)
    }
}
