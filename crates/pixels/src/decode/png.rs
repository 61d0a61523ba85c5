//! Decodes PNG without colour conversion. Palette indices stay indices.

use packds_system::to_u64;
use std::io::Cursor;

use ::png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Limits, Transformations};

use super::convert::{Kind, Raster, palette, unpack};
use super::{resize_zeroed, usize_of};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::ImageInfo;

/// Deflate expands one byte to at most about 1032 bytes.
const MAX_EXPANSION: u64 = 1040;

fn error(error: DecodingError) -> PixelError {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            PixelError::truncated(ImageFormat::Png, "the data end inside the image")
        }
        other => PixelError::malformed(ImageFormat::Png, other.to_string()),
    }
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo, mut samples: Vec<u8>) -> Result<Raster, PixelError> {
    let bits = u64::from(info.width) * u64::from(info.bit_depth);
    let raw = bits.div_ceil(8).saturating_mul(u64::from(info.height));
    if raw > to_u64(bytes.len()).saturating_mul(MAX_EXPANSION) {
        let reason = format!("{} bytes cannot hold {}x{} pixels", bytes.len(), info.width, info.height);
        return Err(PixelError::truncated(ImageFormat::Png, reason));
    }
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_limits(Limits { bytes: usize::MAX });
    decoder.set_transformations(Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(error)?;
    let n_bytes = reader.output_buffer_size().ok_or(PixelError::OutOfMemory { bytes: u64::MAX })?;
    // Interlaced passes are merged into the buffer bit by bit, so it must start as zeros.
    samples.clear();
    resize_zeroed(&mut samples, n_bytes)?;
    let frame = reader.next_frame(&mut samples).map_err(error)?;
    if (frame.width, frame.height) != (info.width, info.height) {
        return Err(PixelError::malformed(ImageFormat::Png, "the first frame is smaller than the image"));
    }
    let depth = frame.bit_depth as u8;
    if depth < 8 {
        samples = unpack(&samples, usize_of(info.width), depth);
    }
    let kind = match (frame.color_type, frame.bit_depth) {
        (ColorType::Grayscale, BitDepth::One) => Kind::Bits,
        (ColorType::Grayscale, BitDepth::Sixteen) => {
            samples.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
            Kind::Gray16
        }
        (ColorType::Grayscale, _) => {
            let factor = 255 / (u8::MAX >> (8 - depth.min(8)));
            samples.iter_mut().for_each(|gray| *gray *= factor);
            Kind::Gray
        }
        (ColorType::Indexed, _) => {
            let colors = reader.info().palette.as_deref().unwrap_or_default();
            palette(colors.as_chunks::<3>().0.iter().copied())
        }
        (ColorType::GrayscaleAlpha, _) => Kind::GrayAlpha,
        (ColorType::Rgb, _) => Kind::Rgb,
        (ColorType::Rgba, _) => Kind::Rgba,
    };
    if depth == 16 && kind != Kind::Gray16 {
        // Samples are big-endian and are reduced to their high bytes, as in Pillow.
        let mut is_high = false;
        samples.retain(|_| {
            is_high = !is_high;
            is_high
        });
    }
    Ok(Raster { kind, samples })
}
