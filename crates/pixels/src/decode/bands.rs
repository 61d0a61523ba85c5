//! Decodes TIFF files with bands instead of colours, as tifffile does: the numbers are not changed, and the orientation
//! is ignored.

use std::io::Cursor;

use ::tiff::decoder::{Decoder, Limits};
use packds_system::to_usize;

use super::tiff::{FORMAT, as_the_decoder_reads, error};
use super::zeroed;
use crate::error::PixelError;
use crate::probe::{TiffBands, colors_of_bands, tiff_bands};

/// Decodes the bands of a TIFF file to native-endian numbers in the order height, width, bands.
///
/// # Errors
/// `Unsupported` if the header differs from `expected`, or if the compression is not supported. `Malformed` or
/// `Truncated` if the file is damaged. `OutOfMemory` if the numbers do not fit in memory.
pub fn decode_bands(bytes: &[u8], expected: &TiffBands) -> Result<Vec<u8>, PixelError> {
    if tiff_bands(bytes)?.as_ref() != Some(expected) {
        return Err(PixelError::unsupported(FORMAT, "another size, type or number of bands than the first file"));
    }
    let n_bytes = expected.bytes().and_then(|n| usize::try_from(n).ok());
    let n_bytes = n_bytes.ok_or(PixelError::OutOfMemory { bytes: u64::MAX })?;
    let of_bands = |error| match super::tiff::error(error) {
        PixelError::Unsupported { what, .. } => {
            PixelError::unsupported(FORMAT, format!("{what} in a file with {} channels (bands)", expected.bands))
        }
        other => other,
    };
    let source = as_the_decoder_reads(bytes, &colors_of_bands(bytes))?;
    let mut limits = Limits::default();
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (n_bytes, n_bytes.saturating_add(1 << 16));
    let mut decoder = Decoder::new(Cursor::new(source)).map_err(error)?.with_limits(limits);
    let layout = decoder.image_buffer_layout().map_err(of_bands)?;
    if layout.complete_len != n_bytes {
        return Err(PixelError::malformed(FORMAT, "the directory contradicts itself"));
    }
    let mut numbers = zeroed(n_bytes)?;
    decoder.read_image_bytes(&mut numbers).map_err(of_bands)?;
    if !expected.is_planar {
        return Ok(numbers);
    }
    let (n_bands, size) = (usize::from(expected.bands), to_usize(expected.bytes_of_one()));
    let mut interleaved = zeroed(n_bytes)?;
    for (band, plane) in numbers.chunks_exact(n_bytes / n_bands).enumerate() {
        let pixels = interleaved.chunks_exact_mut(n_bands * size);
        for (pixel, number) in pixels.zip(plane.chunks_exact(size)) {
            pixel[band * size..(band + 1) * size].copy_from_slice(number);
        }
    }
    Ok(interleaved)
}
