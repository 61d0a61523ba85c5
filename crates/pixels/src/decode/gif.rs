//! Decodes the first frame of a GIF as palette indices.

use std::io::Cursor;

use ::gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::convert::{Raster, palette};
use super::{usize_of, zeroed};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::ImageInfo;

fn error(error: DecodingError) -> PixelError {
    match error {
        DecodingError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            PixelError::truncated(ImageFormat::Gif, "the data ends inside the image")
        }
        other => PixelError::malformed(ImageFormat::Gif, other.to_string()),
    }
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Unlimited);
    let mut decoder = options.read_info(Cursor::new(bytes)).map_err(error)?;
    let global: Option<Vec<u8>> = decoder.global_palette().map(<[u8]>::to_vec);
    let frame = decoder.read_next_frame().map_err(error)?;
    let frame = frame.ok_or_else(|| PixelError::truncated(ImageFormat::Gif, "no frame"))?;
    let colors = frame.palette.clone().or(global).unwrap_or_default();
    let kind = palette(colors.as_chunks::<3>().0.iter().copied());
    let (width, height) = (usize_of(info.width), usize_of(info.height));
    let mut samples = zeroed(width * height)?;
    // Pillow fills the area outside the first frame with the transparent index, or with 0.
    samples.fill(frame.transparent.unwrap_or(0));
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let n_columns = usize::from(frame.width).min(width.saturating_sub(left));
    let rows = frame.buffer.chunks_exact(usize::from(frame.width).max(1));
    let lines = samples.chunks_exact_mut(width).skip(top);
    for (line, row) in lines.zip(rows) {
        if n_columns > 0 {
            line[left..left + n_columns].copy_from_slice(&row[..n_columns]);
        }
    }
    Ok(Raster { kind, samples })
}
