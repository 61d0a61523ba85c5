//! Decodes the first frame of a WebP, lossy or lossless.

use packds_system::to_usize;
use std::io::Cursor;

use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder};

use super::convert::{Kind, Raster};
use super::zeroed;
use crate::error::PixelError;
use crate::probe::ImageInfo;

/// Converts an error of the `image` crate.
pub(super) fn error(format: crate::format::ImageFormat, error: &image::ImageError) -> PixelError {
    match error {
        image::ImageError::IoError(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
            PixelError::truncated(format, "the data ends inside the image")
        }
        image::ImageError::Unsupported(what) => PixelError::unsupported(format, what.to_string()),
        other => PixelError::malformed(format, other.to_string()),
    }
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|cause| error(info.format, &cause))?;
    read(decoder, info)
}

/// Reads all samples from an `image` decoder of gray, RGB or RGBA bytes.
pub(super) fn read(decoder: impl ImageDecoder, info: &ImageInfo) -> Result<Raster, PixelError> {
    if decoder.dimensions() != (info.width, info.height) {
        return Err(PixelError::malformed(info.format, "headers with different sizes"));
    }
    let kind = match decoder.color_type() {
        ColorType::L8 => Kind::Gray,
        ColorType::Rgb8 => Kind::Rgb,
        ColorType::Rgba8 => Kind::Rgba,
        other => return Err(PixelError::unsupported(info.format, format!("{other:?} samples"))),
    };
    let mut samples = zeroed(to_usize(decoder.total_bytes()))?;
    decoder.read_image(&mut samples).map_err(|cause| error(info.format, &cause))?;
    Ok(Raster { kind, samples })
}
