//! Decodes the first page of a TIFF. As in Pillow, the page is always rotated upright.

use std::borrow::Cow;
use std::io::Cursor;

use ::tiff::decoder::{Decoder, DecodingResult, Limits};
use ::tiff::{ColorType, TiffError};

use super::convert::{Kind, Raster, palette, unpack};
use super::{byte_count, orient, usize_of};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::{ImageInfo, TiffColors, tiff_colors};

pub(super) const FORMAT: ImageFormat = ImageFormat::Tiff;

pub(super) fn error(error: TiffError) -> PixelError {
    match error {
        TiffError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            PixelError::truncated(FORMAT, "the data ends inside the image")
        }
        TiffError::UnsupportedError(what) => PixelError::unsupported(FORMAT, what.to_string()),
        other => PixelError::malformed(FORMAT, other.to_string()),
    }
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    if info.channels > 4 {
        return Err(PixelError::ManyChannels { format: FORMAT, channels: info.channels });
    }
    let colors = tiff_colors(bytes);
    let mut decoder = Decoder::new(Cursor::new(as_the_decoder_reads(bytes, &colors)?)).map_err(error)?;
    let mut limits = Limits::default();
    // There are at most four channels of 16 bits, and a single strip may hold the whole image.
    let most = byte_count(info.width, info.height, 8)?.saturating_add(1 << 16);
    limits.decoding_buffer_size = most;
    limits.intermediate_buffer_size = most;
    decoder = decoder.with_limits(limits);
    let (width, height) = decoder.dimensions().map_err(error)?;
    let turned = if colors.orientation >= 5 { (height, width) } else { (width, height) };
    if turned != (info.width, info.height) {
        return Err(PixelError::malformed(FORMAT, "directories with different image sizes"));
    }
    let color = decoder.colortype().map_err(error)?;
    let layout = decoder.image_buffer_layout().map_err(error)?;
    if layout.planes > 1 {
        return Err(PixelError::unsupported(FORMAT, "channels in separate planes"));
    }
    let samples = match decoder.read_image().map_err(error)? {
        DecodingResult::U8(samples) => samples,
        DecodingResult::U16(samples) => samples.iter().flat_map(|value| value.to_le_bytes()).collect(),
        DecodingResult::F16(_) | DecodingResult::F32(_) | DecodingResult::F64(_) => {
            return Err(PixelError::unsupported(FORMAT, "floats"));
        }
        DecodingResult::I8(_) | DecodingResult::I16(_) | DecodingResult::I32(_) | DecodingResult::I64(_) => {
            return Err(PixelError::unsupported(FORMAT, "signed numbers"));
        }
        _ => return Err(PixelError::unsupported(FORMAT, "numbers of more than 16 bits")),
    };
    let mut raster = interpret(samples, color, usize_of(width), &colors)?;
    if colors.orientation != 1 {
        let n_pixels = usize_of(width) * usize_of(height);
        let n_bytes = raster.samples.len() / n_pixels.max(1);
        let mut upright = Vec::new();
        orient::turn(&raster.samples, (width, height), n_bytes, colors.orientation, &mut upright);
        raster.samples = upright;
    }
    Ok(raster)
}

/// Changes the file if the decoder would misread it: the decoder does not support palettes or bytes that start with
/// their lowest bit, and it inverts white-is-zero samples only at some depths. If the photometric interpretation is
/// changed, the decoder returns gray samples with 0 as black, and the caller interprets them.
pub(super) fn as_the_decoder_reads<'a>(bytes: &'a [u8], colors: &TiffColors) -> Result<Cow<'a, [u8]>, PixelError> {
    let reversed = colors.reversed.as_deref();
    let reversed = reversed.ok_or_else(|| PixelError::malformed(FORMAT, "missing or overlapping strips"))?;
    if colors.photometric_at.is_none() && reversed.is_empty() {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut patched = bytes.to_vec();
    for strip in reversed {
        let strip = patched.get_mut(strip.clone()).unwrap_or_default();
        strip.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    }
    if let Some(field) = colors.photometric_at.clone().and_then(|place| patched.get_mut(place)) {
        let one = if colors.little { [1, 0] } else { [0, 1] };
        field.copy_from_slice(&one);
    }
    Ok(Cow::Owned(patched))
}

fn interpret(mut samples: Vec<u8>, color: ColorType, width: usize, colors: &TiffColors) -> Result<Raster, PixelError> {
    let kind = match color {
        ColorType::Gray(bits @ (1 | 2 | 4 | 8)) => {
            samples = unpack(&samples, width, bits);
            if let Some(table) = &colors.palette {
                palette(table.iter().copied())
            } else {
                gray(&mut samples, bits, colors.white_is_zero)
            }
        }
        ColorType::Gray(16) => {
            if colors.white_is_zero {
                samples.iter_mut().for_each(|byte| *byte = !*byte);
            }
            Kind::Gray16
        }
        ColorType::GrayA(8) => Kind::GrayAlpha,
        ColorType::RGB(8 | 16) => Kind::Rgb,
        ColorType::RGBA(8 | 16) => Kind::Rgba,
        ColorType::CMYK(8 | 16) => Kind::Cmyk,
        other => return Err(PixelError::unsupported(FORMAT, format!("{other:?} samples"))),
    };
    if matches!(color, ColorType::RGB(16) | ColorType::RGBA(16) | ColorType::CMYK(16)) {
        samples = samples.as_chunks::<2>().0.iter().map(|pair| pair[1]).collect();
    }
    if colors.multiplied && matches!(color, ColorType::RGBA(_)) {
        samples.as_chunks_mut::<4>().0.iter_mut().for_each(divide_by_alpha);
    }
    Ok(Raster { kind, samples })
}

/// Restores the colours of a pixel that were multiplied by its alpha, as Pillow does.
fn divide_by_alpha([red, green, blue, alpha]: &mut [u8; 4]) {
    for color in [red, green, blue] {
        let restored = (u32::from(*color) * 255).checked_div(u32::from(*alpha)).unwrap_or(0);
        *color = u8::try_from(restored).unwrap_or(u8::MAX);
    }
}

fn gray(samples: &mut [u8], bits: u8, white_is_zero: bool) -> Kind {
    let most = u8::MAX >> (8 - bits);
    let factor = if bits == 1 { 1 } else { 255 / most };
    for sample in samples {
        let value = if white_is_zero { most - *sample } else { *sample };
        *sample = value * factor;
    }
    if bits == 1 { Kind::Bits } else { Kind::Gray }
}
