//! Decodes image files into the caller's memory.

use packds_pixels::{Color, DecodeOptions, Decoder, PixelError};

/// A decoder and its buffers. Each thread has its own decoder.
pub(crate) struct Pictures(Decoder);

impl Pictures {
    pub(crate) fn new(channels: u64) -> Self {
        let color = if channels == 1 { Color::Gray } else { Color::Rgb };
        Self(Decoder::new(DecodeOptions { color, ..DecodeOptions::default() }))
    }

    /// Decodes a file into `out`. Returns whether its pixels fill `out` exactly.
    pub(crate) fn decode(&mut self, file: &[u8], out: &mut [u8]) -> Result<bool, PixelError> {
        let (_, pixels) = self.0.decode_full(file)?;
        if pixels.len() != out.len() {
            return Ok(false);
        }
        out.copy_from_slice(pixels);
        Ok(true)
    }
}
