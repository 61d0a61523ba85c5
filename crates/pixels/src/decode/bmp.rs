//! Decodes BMP with 1 to 32 bits, either uncompressed, with bit fields, or run-length coded.

use packds_system::to_u64;

use super::convert::{Kind, Raster, palette, unpack};
use super::{usize_of, zeroed};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::{BmpLayout, ImageInfo, bmp_layout, le32};

/// Maximum number of pixels in a run.
const RUN: usize = 255;

fn cut(what: &str) -> PixelError {
    PixelError::truncated(ImageFormat::Bmp, what)
}

fn unsupported(what: String) -> PixelError {
    PixelError::unsupported(ImageFormat::Bmp, what)
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let layout = bmp_layout(bytes).ok_or_else(|| cut("ends inside its headers"))?;
    let data = bytes.get(layout.pixels_at..).ok_or_else(|| cut("no pixels"))?;
    let (width, height) = (usize_of(info.width), usize_of(info.height));
    let (bits, compression) = (layout.bits, layout.compression);
    let rows = || rows(data, width, height, &layout);
    let mut raster = match (bits, compression) {
        (1 | 4 | 8, 0) => {
            let depth = u8::try_from(bits).unwrap_or(8);
            let samples = unpack(&rows()?, width, depth);
            Raster { kind: colors(bytes, &layout), samples }
        }
        (4, 2) | (8, 1) => {
            let samples = run_lengths(bytes, layout.pixels_at, (width, height), bits == 4)?;
            Raster { kind: colors(bytes, &layout), samples }
        }
        (24, 0) => {
            let mut samples = rows()?;
            samples.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| pixel.reverse());
            Raster { kind: Kind::Rgb, samples }
        }
        (16, 0) => masked(&rows()?, 2, [0x7C00, 0x3E0, 0x1F])?,
        (32, 0) => masked(&rows()?, 4, [0xFF_0000, 0xFF00, 0xFF])?,
        (16 | 32, 3) => {
            // The masks follow a header of 40 bytes, or are part of a longer header. Both have the masks at the same
            // offsets.
            let mask = |at| le32(bytes, at).ok_or_else(|| cut("ends inside its bit fields"));
            masked(&rows()?, usize::from(bits / 8), [mask(54)?, mask(58)?, mask(62)?])?
        }
        _ => return Err(unsupported(format!("{bits} bits with compression {compression}"))),
    };
    let is_top_down = layout.entry == 4 && bytes.get(25).is_some_and(|byte| byte & 0x80 != 0);
    if !is_top_down {
        let stride = raster.samples.len() / height;
        let (mut top, mut bottom) = (0, height - 1);
        while top < bottom {
            let (first, second) = raster.samples.split_at_mut(bottom * stride);
            first[top * stride..][..stride].swap_with_slice(&mut second[..stride]);
            top += 1;
            bottom -= 1;
        }
    }
    Ok(raster)
}

/// The rows without their padding to four bytes.
fn rows(data: &[u8], width: usize, height: usize, layout: &BmpLayout) -> Result<Vec<u8>, PixelError> {
    let used = (width * usize::from(layout.bits)).div_ceil(8);
    let needed = layout.row_bytes(to_u64(width), to_u64(height));
    if to_u64(data.len()) < needed {
        return Err(cut(&format!("expected {needed} bytes of pixels, found {}", data.len())));
    }
    let mut packed = zeroed(used * height)?;
    for (row, source) in packed.chunks_exact_mut(used).zip(data.chunks(used.next_multiple_of(4))) {
        row.copy_from_slice(&source[..used]);
    }
    Ok(packed)
}

fn colors(bytes: &[u8], layout: &BmpLayout) -> Kind {
    let end = layout.palette_at.saturating_add(layout.n_colors.min(256) * layout.entry);
    let table = bytes.get(layout.palette_at..end.min(bytes.len())).unwrap_or_default();
    let entries: Vec<[u8; 3]> = table.chunks_exact(layout.entry).map(|entry| [entry[2], entry[1], entry[0]]).collect();
    palette(entries)
}

/// Decodes little-endian pixels in which each channel is a run of bits. The channels are scaled to bytes as in Pillow.
fn masked(packed: &[u8], n_bytes: usize, masks: [u32; 3]) -> Result<Raster, PixelError> {
    let known: [[u32; 3]; 6] = [
        [0x7C00, 0x3E0, 0x1F],
        [0xF800, 0x7E0, 0x1F],
        [0xFF_0000, 0xFF00, 0xFF],
        [0xFF, 0xFF00, 0xFF_0000],
        [0xFF00_0000, 0xFF_0000, 0xFF00],
        [0xFF00, 0xFF_0000, 0xFF00_0000],
    ];
    if !known.contains(&masks) {
        return Err(unsupported(format!("bit fields {masks:08x?}")));
    }
    let mut samples = zeroed(packed.len() / n_bytes * 3)?;
    for (pixel, source) in samples.chunks_exact_mut(3).zip(packed.chunks_exact(n_bytes)) {
        let value = source.iter().rev().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        for (channel, mask) in pixel.iter_mut().zip(masks) {
            let shift = mask.trailing_zeros();
            let scaled = ((value & mask) >> shift) * 255 / (mask >> shift);
            *channel = u8::try_from(scaled).unwrap_or(u8::MAX);
        }
    }
    Ok(Raster { kind: Kind::Rgb, samples })
}

/// Decodes run-length coded indices that start at `at`. As in Pillow, a run ends at the end of its row, skipped pixels
/// are 0, and too few pixels are an error.
fn run_lengths(
    bytes: &[u8],
    mut at: usize,
    (width, height): (usize, usize),
    nibbles: bool,
) -> Result<Vec<u8>, PixelError> {
    let n_pixels = width * height;
    let mut samples = zeroed(n_pixels.saturating_add(RUN))?;
    samples.clear();
    let value = |byte: u8, index: usize| match (nibbles, index % 2) {
        (false, _) => byte,
        (true, 0) => byte >> 4,
        (true, _) => byte & 15,
    };
    let pair = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk::<2>);
    let mut x = 0;
    while samples.len() < n_pixels
        && let Some(&[count, second]) = pair(at)
    {
        at += 2;
        match (count, second) {
            (0, 0) => {
                samples.resize(samples.len().next_multiple_of(width), 0);
                x = 0;
            }
            (0, 1) => break,
            (0, 2) => {
                let Some(&[right, up]) = pair(at) else { break };
                at += 2;
                let skipped = usize::from(up).saturating_mul(width).saturating_add(right.into());
                samples.resize(samples.len().saturating_add(skipped).min(n_pixels), 0);
                x = samples.len() % width;
            }
            (0, count) => {
                let n = usize::from(count).min(n_pixels - samples.len());
                let n_bytes = if nibbles { n.div_ceil(2) } else { n };
                let Some(literal) = bytes.get(at..at + n_bytes) else { break };
                let byte = |index: usize| literal[if nibbles { index / 2 } else { index }];
                samples.extend((0..n).map(|index| value(byte(index), index)));
                x += usize::from(count);
                // The next pair is at an even offset in the file.
                at = (at + n_bytes).next_multiple_of(2);
            }
            (count, byte) => {
                let n = usize::from(count).min(width.saturating_sub(x));
                samples.extend((0..n).map(|index| value(byte, index)));
                x += n;
            }
        }
    }
    if samples.len() < n_pixels {
        let found = samples.len();
        return Err(cut(&format!("the run lengths give only {found} of {n_pixels} pixels")));
    }
    samples.truncate(n_pixels);
    Ok(samples)
}
