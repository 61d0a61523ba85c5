//! Pillow's colour conversions, with its rounding.

use super::Color;
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::ImageInfo;

/// The meaning of a raster's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Gray,
    /// 1-bit: 0 and 1.
    Bits,
    /// 16-bit gray, the low byte first.
    Gray16,
    GrayAlpha,
    Rgb,
    Rgba,
    /// 0 means no ink.
    Cmyk,
    /// Indices; colours that a palette lacks are black.
    Palette(Box<[[u8; 3]; 256]>),
}

/// Decoded samples, before colours are converted.
#[derive(Debug)]
pub(super) struct Raster {
    pub(super) kind: Kind,
    pub(super) samples: Vec<u8>,
}

impl Kind {
    fn sample_bytes(&self) -> usize {
        match self {
            Self::Gray | Self::Bits | Self::Palette(_) => 1,
            Self::Gray16 | Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    fn channels(&self) -> u8 {
        match self {
            Self::Gray | Self::Bits | Self::Gray16 | Self::Palette(_) => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// Extends a palette to 256 entries.
pub(super) fn palette(colors: impl IntoIterator<Item = [u8; 3]>) -> Kind {
    let mut table = Box::new([[0; 3]; 256]);
    for (entry, color) in table.iter_mut().zip(colors) {
        *entry = color;
    }
    Kind::Palette(table)
}

/// Converts the samples to the channels of `color`, into `out`.
pub(super) fn convert(raster: &mut Raster, info: &ImageInfo, color: Color, out: &mut [u8]) -> Result<(), PixelError> {
    let n_pixels = out.len() / color.channels();
    let expected = n_pixels * raster.kind.sample_bytes();
    let found = raster.samples.len();
    if found != expected {
        let reason = format!("{found} bytes of samples, {expected} expected");
        return Err(PixelError::malformed(info.format, reason));
    }
    match color {
        Color::Rgb => to_rgb(&raster.kind, &raster.samples, out),
        Color::Gray => to_gray(&raster.kind, &raster.samples, out),
        Color::Index => return to_index(raster, info.format, out),
    }
    Ok(())
}

fn to_rgb(kind: &Kind, samples: &[u8], out: &mut [u8]) {
    let pixels = out.chunks_exact_mut(3);
    match kind {
        Kind::Rgb => out.copy_from_slice(samples),
        Kind::Gray => pixels.zip(samples).for_each(|(rgb, &gray)| rgb.fill(gray)),
        Kind::Bits => pixels.zip(samples).for_each(|(rgb, &bit)| rgb.fill(white_if(bit))),
        Kind::Gray16 => {
            pixels.zip(samples.chunks_exact(2)).for_each(|(rgb, gray)| rgb.fill(clip_16(gray)));
        }
        Kind::GrayAlpha => pixels.zip(samples.chunks_exact(2)).for_each(|(rgb, la)| rgb.fill(la[0])),
        Kind::Rgba => pixels.zip(samples.chunks_exact(4)).for_each(|(rgb, rgba)| rgb.copy_from_slice(&rgba[..3])),
        Kind::Cmyk => {
            pixels.zip(samples.chunks_exact(4)).for_each(|(rgb, cmyk)| rgb.copy_from_slice(&cmyk_pixel(cmyk)));
        }
        Kind::Palette(table) => {
            pixels.zip(samples).for_each(|(rgb, &index)| rgb.copy_from_slice(&table[usize::from(index)]));
        }
    }
}

fn to_gray(kind: &Kind, samples: &[u8], out: &mut [u8]) {
    let pixels = out.iter_mut();
    match kind {
        Kind::Gray => out.copy_from_slice(samples),
        Kind::Bits => pixels.zip(samples).for_each(|(gray, &bit)| *gray = white_if(bit)),
        Kind::Gray16 => pixels.zip(samples.chunks_exact(2)).for_each(|(gray, sample)| *gray = clip_16(sample)),
        Kind::GrayAlpha => pixels.zip(samples.chunks_exact(2)).for_each(|(gray, la)| *gray = la[0]),
        Kind::Rgb => rgb_to_gray(samples, out),
        Kind::Rgba => pixels.zip(samples.chunks_exact(4)).for_each(|(gray, rgba)| *gray = luma(rgba)),
        Kind::Cmyk => {
            pixels.zip(samples.chunks_exact(4)).for_each(|(gray, cmyk)| *gray = luma(&cmyk_pixel(cmyk)));
        }
        Kind::Palette(table) => {
            let lumas = table.map(|color| luma(&color));
            pixels.zip(samples).for_each(|(gray, &index)| *gray = lumas[usize::from(index)]);
        }
    }
}

fn to_index(raster: &Raster, format: ImageFormat, out: &mut [u8]) -> Result<(), PixelError> {
    match raster.kind {
        Kind::Gray | Kind::Bits | Kind::Palette(_) => {
            out.copy_from_slice(&raster.samples);
            Ok(())
        }
        Kind::Gray16 => Err(PixelError::unsupported(format, "a mask of 16 bits")),
        ref other => Err(PixelError::NotSingleChannel { channels: other.channels() }),
    }
}

fn white_if(bit: u8) -> u8 {
    if bit == 0 { 0 } else { 255 }
}

/// Pillow's `I;16` becomes bytes by clipping, not by scaling.
fn clip_16(sample: &[u8]) -> u8 {
    if sample[1] == 0 { sample[0] } else { 255 }
}

/// Pillow's luma: ITU-R 601 in 16-bit fixed point.
#[expect(clippy::cast_possible_truncation, reason = "the weights sum to 65536, so the result is a byte")]
fn luma(rgb: &[u8]) -> u8 {
    let sum = u32::from(rgb[0]) * 19595 + u32::from(rgb[1]) * 38470 + u32::from(rgb[2]) * 7471;
    ((sum + 0x8000) >> 16) as u8
}

pub(super) fn rgb_to_gray(samples: &[u8], out: &mut [u8]) {
    for (gray, rgb) in out.iter_mut().zip(samples.chunks_exact(3)) {
        *gray = luma(rgb);
    }
}

/// `a * b / 255`, rounded like Pillow's `MULDIV255`.
fn multiply(a: u8, b: u8) -> u32 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product >> 8) + product) >> 8
}

#[expect(clippy::cast_possible_truncation, reason = "a share of `light` is at most `light`")]
fn cmyk_pixel(cmyk: &[u8]) -> [u8; 3] {
    let light = 255 - cmyk[3];
    let channel = |ink: u8| u32::from(light).saturating_sub(multiply(ink, light)) as u8;
    [channel(cmyk[0]), channel(cmyk[1]), channel(cmyk[2])]
}

fn inverted(cmyk: &[u8]) -> [u8; 3] {
    cmyk_pixel(&[!cmyk[0], !cmyk[1], !cmyk[2], !cmyk[3]])
}

pub(super) fn inverted_cmyk_to_rgb(samples: &[u8], out: &mut [u8]) {
    for (rgb, cmyk) in out.chunks_exact_mut(3).zip(samples.chunks_exact(4)) {
        rgb.copy_from_slice(&inverted(cmyk));
    }
}

pub(super) fn inverted_cmyk_to_gray(samples: &[u8], out: &mut [u8]) {
    for (gray, cmyk) in out.iter_mut().zip(samples.chunks_exact(4)) {
        *gray = luma(&inverted(cmyk));
    }
}

/// Unpacks rows of 1-, 2- or 4-bit samples, the first in the high bits, rows padded to bytes.
pub(super) fn unpack(packed: &[u8], width: usize, bits: u8) -> Vec<u8> {
    let per_byte = usize::from(8 / bits.clamp(1, 8));
    let mask = if bits >= 8 { 255 } else { (1 << bits) - 1 };
    let mut samples = Vec::with_capacity(packed.len() * per_byte);
    for row in packed.chunks_exact(width.div_ceil(per_byte).max(1)) {
        let values = row
            .iter()
            .flat_map(|byte| (0..per_byte).rev().map(move |place| (byte >> (place * usize::from(bits))) & mask));
        samples.extend(values.take(width));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luma_of_gray_is_gray_and_weights_round_up_from_half() {
        for gray in 0..=255 {
            assert_eq!(luma(&[gray; 3]), gray);
        }
        assert_eq!(luma(&[255, 0, 0]), 76);
        assert_eq!(luma(&[0, 255, 0]), 150);
        assert_eq!(luma(&[0, 0, 255]), 29);
    }

    #[test]
    fn ink_darkens() {
        assert_eq!(cmyk_pixel(&[0, 0, 0, 0]), [255; 3]);
        assert_eq!(cmyk_pixel(&[255, 0, 128, 0]), [0, 255, 127]);
        assert_eq!(cmyk_pixel(&[0, 0, 0, 255]), [0; 3]);
    }

    #[test]
    fn packed_rows_are_padded_to_bytes() {
        assert_eq!(unpack(&[0b1010_0000, 0b0100_0000], 3, 1), [1, 0, 1, 0, 1, 0]);
        assert_eq!(unpack(&[0x12, 0x30], 3, 4), [1, 2, 3]);
        assert_eq!(unpack(&[0b00_01_10_11], 4, 2), [0, 1, 2, 3]);
    }
}
