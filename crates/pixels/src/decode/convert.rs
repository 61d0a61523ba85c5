//! The colour conversions of Pillow, with its rounding.

use super::Color;
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::ops::luma;
use crate::probe::ImageInfo;

/// The meaning of a raster's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Gray,
    /// 1-bit samples, 0 or 1.
    Bits,
    /// 16-bit gray. The low byte comes first.
    Gray16,
    GrayAlpha,
    Rgb,
    Rgba,
    /// CMYK in which 0 means no ink.
    Cmyk,
    /// CMYK in which 255 means no ink.
    InvertedCmyk,
    /// Palette indices. Indices beyond the palette are black.
    Palette(Box<[[u8; 3]; 256]>),
}

/// Decoded samples, before colour conversion.
#[derive(Debug)]
pub(super) struct Raster {
    pub(super) kind: Kind,
    pub(super) samples: Vec<u8>,
}

impl Kind {
    /// The number of channels and the number of bytes per pixel.
    fn sizes(&self) -> (u8, usize) {
        match self {
            Self::Gray | Self::Bits | Self::Palette(_) => (1, 1),
            Self::Gray16 => (1, 2),
            Self::GrayAlpha => (2, 2),
            Self::Rgb => (3, 3),
            Self::Rgba | Self::Cmyk | Self::InvertedCmyk => (4, 4),
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

/// Converts the samples to the channels of `color` and writes them to `out`.
pub(super) fn convert(raster: &mut Raster, info: &ImageInfo, color: Color, out: &mut [u8]) -> Result<(), PixelError> {
    let n_pixels = out.len() / color.channels();
    let expected = n_pixels * raster.kind.sizes().1;
    let found = raster.samples.len();
    if found != expected {
        let reason = format!("expected {expected} bytes of samples, found {found}");
        return Err(PixelError::malformed(info.format, reason));
    }
    match color {
        Color::Rgb => write(&raster.kind, &raster.samples, out, |rgb| rgb),
        Color::Gray => write(&raster.kind, &raster.samples, out, gray),
        Color::Index => return to_index(raster, info.format, out),
    }
    Ok(())
}

/// Writes the colour of each pixel. `of` converts a colour to the channels of the output.
pub(super) fn write<const N: usize>(kind: &Kind, samples: &[u8], out: &mut [u8], of: impl Fn([u8; 3]) -> [u8; N]) {
    let pixels = out.as_chunks_mut::<N>().0.iter_mut();
    let pairs = samples.as_chunks::<2>().0;
    let fours = samples.as_chunks::<4>().0;
    match kind {
        Kind::Gray if N == 1 => out.copy_from_slice(samples),
        Kind::Rgb if N == 3 => out.copy_from_slice(samples),
        Kind::Gray => pixels.zip(samples).for_each(|(pixel, &gray)| *pixel = of([gray; 3])),
        Kind::Bits => pixels.zip(samples).for_each(|(pixel, &bit)| *pixel = of([white_if(bit); 3])),
        Kind::Gray16 => pixels.zip(pairs).for_each(|(pixel, &sample)| *pixel = of([clip_16(sample); 3])),
        Kind::GrayAlpha => pixels.zip(pairs).for_each(|(pixel, &[gray, _])| *pixel = of([gray; 3])),
        Kind::Rgb => pixels.zip(samples.as_chunks().0).for_each(|(pixel, rgb)| *pixel = of(*rgb)),
        Kind::Rgba => pixels.zip(fours).for_each(|(pixel, &[r, g, b, _])| *pixel = of([r, g, b])),
        Kind::Cmyk => pixels.zip(fours).for_each(|(pixel, cmyk)| *pixel = of(cmyk_pixel(*cmyk))),
        Kind::InvertedCmyk => {
            pixels.zip(fours).for_each(|(pixel, cmyk)| *pixel = of(cmyk_pixel(cmyk.map(|ink| !ink))));
        }
        Kind::Palette(table) => {
            let colors = table.map(of);
            pixels.zip(samples).for_each(|(pixel, &index)| *pixel = colors[usize::from(index)]);
        }
    }
}

fn to_index(raster: &Raster, format: ImageFormat, out: &mut [u8]) -> Result<(), PixelError> {
    match raster.kind {
        Kind::Gray | Kind::Bits | Kind::Palette(_) => {
            out.copy_from_slice(&raster.samples);
            Ok(())
        }
        Kind::Gray16 => {
            let samples = raster.samples.as_chunks::<2>().0;
            // Accept numbers that fit in 8 bits, and images of only black and white, whose white becomes 255.
            let are_small = samples.iter().all(|[_, high]| *high == 0);
            if !are_small && !samples.iter().all(|sample| matches!(sample, [0, 0] | [255, 255])) {
                let reason = "a 16-bit mask; masks must have 8-bit class numbers (0 to 255)";
                return Err(PixelError::unsupported(format, reason));
            }
            out.iter_mut().zip(samples).for_each(|(class, [low, _])| *class = *low);
            Ok(())
        }
        ref other => Err(PixelError::NotSingleChannel { channels: other.sizes().0 }),
    }
}

fn white_if(bit: u8) -> u8 {
    if bit == 0 { 0 } else { 255 }
}

/// Converts 16-bit gray (Pillow's `I;16`) to bytes by clipping, not by scaling.
fn clip_16([low, high]: [u8; 2]) -> u8 {
    if high == 0 { low } else { 255 }
}

/// A colour converted to the single channel of a gray image.
pub(super) fn gray(rgb: [u8; 3]) -> [u8; 1] {
    [luma(rgb)]
}

/// `a * b / 255`, rounded like Pillow's `MULDIV255`.
fn multiply(a: u8, b: u8) -> u32 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product >> 8) + product) >> 8
}

#[expect(clippy::cast_possible_truncation, reason = "a share of `light` is at most `light`")]
fn cmyk_pixel([cyan, magenta, yellow, black]: [u8; 4]) -> [u8; 3] {
    let light = 255 - black;
    [cyan, magenta, yellow].map(|ink| u32::from(light).saturating_sub(multiply(ink, light)) as u8)
}

/// Unpacks rows of 1-, 2- or 4-bit samples. The first sample is in the high bits. Rows are padded to bytes.
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
            assert_eq!(luma([gray; 3]), gray);
        }
        assert_eq!(luma([255, 0, 0]), 76);
        assert_eq!(luma([0, 255, 0]), 150);
        assert_eq!(luma([0, 0, 255]), 29);
    }

    #[test]
    fn ink_darkens() {
        assert_eq!(cmyk_pixel([0, 0, 0, 0]), [255; 3]);
        assert_eq!(cmyk_pixel([255, 0, 128, 0]), [0, 255, 127]);
        assert_eq!(cmyk_pixel([0, 0, 0, 255]), [0; 3]);
    }

    #[test]
    fn packed_rows_are_padded_to_bytes() {
        assert_eq!(unpack(&[0b1010_0000, 0b0100_0000], 3, 1), [1, 0, 1, 0, 1, 0]);
        assert_eq!(unpack(&[0x12, 0x30], 3, 4), [1, 2, 3]);
        assert_eq!(unpack(&[0b00_01_10_11], 4, 2), [0, 1, 2, 3]);
    }
}
