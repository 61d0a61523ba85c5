//! BMP with 1 to 32 bits, either uncompressed, with bit fields, or run-length coded.

use super::convert::{Kind, Raster, palette, unpack};
use super::{usize_of, zeroed};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::probe::{ImageInfo, le16, le32};

/// The contents of the two headers.
struct Header {
    pixels_at: usize,
    palette_at: usize,
    /// Bytes per palette entry.
    entry: usize,
    top_down: bool,
    bits: u16,
    compression: u32,
    n_colors: usize,
    masks: [u32; 3],
}

fn cut(what: &str) -> PixelError {
    PixelError::truncated(ImageFormat::Bmp, what)
}

fn unsupported(what: String) -> PixelError {
    PixelError::unsupported(ImageFormat::Bmp, what)
}

fn header(bytes: &[u8]) -> Option<Header> {
    let size = le32(bytes, 14)?;
    let pixels_at = usize_of(le32(bytes, 10)?);
    let end = 14_usize.checked_add(usize_of(size))?;
    if size == 12 {
        let bits = le16(bytes, 24)?;
        let (top_down, compression, masks) = (false, 0, [0; 3]);
        let n_colors = 1 << bits.min(8);
        return Some(Header { pixels_at, palette_at: end, entry: 3, top_down, bits, compression, n_colors, masks });
    }
    let bits = le16(bytes, 28)?;
    let compression = le32(bytes, 30)?;
    let declared = usize_of(le32(bytes, 46)?);
    let n_colors = if declared == 0 { 1 << bits.min(8) } else { declared.min(256) };
    let masks = if compression == 3 { [le32(bytes, 54)?, le32(bytes, 58)?, le32(bytes, 62)?] } else { [0; 3] };
    let top_down = bytes.get(25)? & 0x80 != 0;
    Some(Header { pixels_at, palette_at: end, entry: 4, top_down, bits, compression, n_colors, masks })
}

pub(super) fn decode(bytes: &[u8], info: &ImageInfo) -> Result<Raster, PixelError> {
    let header = header(bytes).ok_or_else(|| cut("ends inside its headers"))?;
    let data = bytes.get(header.pixels_at..).ok_or_else(|| cut("no pixels"))?;
    let (width, height) = (usize_of(info.width), usize_of(info.height));
    let (bits, compression) = (header.bits, header.compression);
    let mut raster = match (bits, compression) {
        (1 | 4 | 8, 0) => {
            let packed = rows(data, width, height, usize::from(bits))?;
            let depth = u8::try_from(bits).unwrap_or(8);
            let samples = unpack(&packed, width, depth);
            Raster { kind: colors(bytes, &header), samples }
        }
        (4, 2) | (8, 1) => {
            let samples = run_lengths(data, width, height, bits == 4)?;
            Raster { kind: colors(bytes, &header), samples }
        }
        (24, 0) => {
            let mut samples = rows(data, width, height, 24)?;
            samples.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| pixel.reverse());
            Raster { kind: Kind::Rgb, samples }
        }
        (16, 0) => masked(&rows(data, width, height, 16)?, 2, [0x7C00, 0x3E0, 0x1F])?,
        (32, 0) => masked(&rows(data, width, height, 32)?, 4, [0xFF_0000, 0xFF00, 0xFF])?,
        (16 | 32, 3) => {
            let n_bytes = usize::from(bits / 8);
            masked(&rows(data, width, height, usize::from(bits))?, n_bytes, header.masks)?
        }
        _ => return Err(unsupported(format!("{bits} bits with compression {compression}"))),
    };
    if !header.top_down {
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
fn rows(data: &[u8], width: usize, height: usize, bits: usize) -> Result<Vec<u8>, PixelError> {
    let used = (width * bits).div_ceil(8);
    let stride = used.next_multiple_of(4);
    // The padding of the last row may be missing.
    let needed = stride.saturating_mul(height - 1).saturating_add(used);
    if data.len() < needed {
        return Err(cut(&format!("{needed} bytes of pixels expected, {} found", data.len())));
    }
    let mut packed = zeroed(used * height)?;
    for (row, source) in packed.chunks_exact_mut(used).zip(data.chunks(stride)) {
        row.copy_from_slice(&source[..used]);
    }
    Ok(packed)
}

fn colors(bytes: &[u8], header: &Header) -> Kind {
    let end = header.palette_at.saturating_add(header.n_colors * header.entry);
    let table = bytes.get(header.palette_at..end.min(bytes.len())).unwrap_or_default();
    let entries: Vec<[u8; 3]> = table.chunks_exact(header.entry).map(|entry| [entry[2], entry[1], entry[0]]).collect();
    palette(entries)
}

/// Little-endian pixels in which each channel is a run of bits. The channels are scaled to bytes as in Pillow.
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

/// Run-length coded indices. Skipped pixels stay 0.
fn run_lengths(data: &[u8], width: usize, height: usize, nibbles: bool) -> Result<Vec<u8>, PixelError> {
    let mut samples = zeroed(width * height)?;
    let (mut x, mut y, mut at) = (0, 0, 0);
    let value = |byte: u8, index: usize| match (nibbles, index % 2) {
        (false, _) => byte,
        (true, 0) => byte >> 4,
        (true, _) => byte & 15,
    };
    let ends = || cut("the run lengths end inside the image");
    let pair = |at: usize| data.get(at..).and_then(<[u8]>::first_chunk::<2>).ok_or_else(ends);
    while y < height {
        let &[count, second] = pair(at)?;
        at += 2;
        let n_run = match (count, second) {
            (0, 0) => {
                (x, y) = (0, y + 1);
                continue;
            }
            (0, 1) => break,
            (0, 2) => {
                let &[right, up] = pair(at)?;
                at += 2;
                (x, y) = (x + usize::from(right), y + usize::from(up));
                continue;
            }
            (0, n) | (n, _) => usize::from(n),
        };
        let n_literal = if nibbles { n_run.div_ceil(2) } else { n_run };
        let literal = if count == 0 { data.get(at..at + n_literal).ok_or_else(ends)? } else { &[] };
        for index in 0..n_run {
            let byte = literal.get(if nibbles { index / 2 } else { index }).copied().unwrap_or(second);
            if x < width {
                samples[y * width + x] = value(byte, index);
            }
            x += 1;
        }
        at += literal.len().next_multiple_of(2);
    }
    Ok(samples)
}
