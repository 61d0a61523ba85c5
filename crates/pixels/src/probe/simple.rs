//! PNG, GIF and BMP headers.

use packds_system::to_u64;

use super::bytes::{array, be32, le16, le32, offset};
use super::{ImageInfo, exif};
use crate::error::PixelError;
use crate::format::ImageFormat;

fn cut(format: ImageFormat) -> PixelError {
    PixelError::truncated(format, "ends inside its headers")
}

pub(super) fn probe_png(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let format = ImageFormat::Png;
    if bytes.get(12..16).ok_or_else(|| cut(format))? != b"IHDR" {
        return Err(PixelError::malformed(format, "the first chunk is not IHDR"));
    }
    let header: [u8; 13] = array(bytes, 16).ok_or_else(|| cut(format))?;
    let (Some(width), Some(height)) = (be32(&header, 0), be32(&header, 4)) else {
        return Err(cut(format));
    };
    let channels = match header[9] {
        0 => 1,
        2 | 3 => 3,
        4 => 2,
        6 => 4,
        other => return Err(PixelError::malformed(format, format!("unknown colour type {other}"))),
    };
    let exif = find_png_chunk(bytes, b"eXIf").unwrap_or(None);
    let frames = find_png_chunk(bytes, b"acTL").unwrap_or(None);
    Ok(ImageInfo {
        bit_depth: header[8],
        orientation: exif.map_or(1, exif::orientation),
        progressive: header[12] == 1,
        palette: header[9] == 3,
        has_more: frames.and_then(|body| be32(body, 0)).is_some_and(|n_frames| n_frames > 1),
        ..ImageInfo::plain(format, width, height, channels)
    })
}

/// The chunk of a PNG at a position: its kind, its body, and where the next chunk starts.
fn png_chunk(bytes: &[u8], at: usize) -> Option<([u8; 4], &[u8], usize)> {
    let length = offset(be32(bytes, at)?)?;
    let kind = array(bytes, at.checked_add(4)?)?;
    let start = at.checked_add(8)?;
    let end = start.checked_add(length)?;
    let body = bytes.get(start..end)?;
    let next = end.checked_add(4)?;
    (next <= bytes.len()).then_some((kind, body, next))
}

/// The body of the first chunk of this kind, if it occurs before the end. If a chunk is truncated, returns its start as
/// the error.
fn find_png_chunk<'a>(bytes: &'a [u8], wanted: &[u8; 4]) -> Result<Option<&'a [u8]>, usize> {
    let mut at = 8;
    while let Some((kind, body, next)) = png_chunk(bytes, at) {
        match &kind {
            found if found == wanted => return Ok(Some(body)),
            b"IEND" => return Ok(None),
            _ => at = next,
        }
    }
    Err(at)
}

pub(super) fn check_png_end(bytes: &[u8]) -> Result<(), PixelError> {
    // Pillow accepts files whose final checksum is truncated, and files whose IEND chunk has no checksum.
    let reason = |at| format!("no IEND chunk: the chunk at byte {at} runs past the end");
    find_png_chunk(bytes, b"IEND").map(|_| ()).map_err(|at| PixelError::truncated(ImageFormat::Png, reason(at)))
}

pub(super) fn probe_gif(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let format = ImageFormat::Gif;
    let size = le16(bytes, 6).zip(le16(bytes, 8));
    let (width, height) = size.ok_or_else(|| cut(format))?;
    let flags = bytes.get(10).copied().ok_or_else(|| cut(format))?;
    let plain = ImageInfo::plain(format, width.into(), height.into(), 3);
    let has_more = gif_frames(bytes, 2).is_ok_and(|n_frames| n_frames > 1);
    Ok(ImageInfo { bit_depth: (flags & 7) + 1, palette: true, has_more, ..plain })
}

pub(super) fn check_gif_end(bytes: &[u8]) -> Result<(), PixelError> {
    gif_frames(bytes, u32::MAX).map(|_| ())
}

/// The number of frames before the trailer, counted up to `most`. Walks through the blocks of a GIF by their lengths.
fn gif_frames(bytes: &[u8], most: u32) -> Result<u32, PixelError> {
    let table = |flags: u8| {
        if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
    };
    let end =
        |at: usize| PixelError::truncated(ImageFormat::Gif, format!("no trailer: the block at byte {at} is truncated"));
    let flags = bytes.get(10).copied().ok_or_else(|| end(10))?;
    let mut at = 13 + table(flags);
    let mut n_frames = 0_u32;
    loop {
        match bytes.get(at).copied() {
            Some(0x3B) => return Ok(n_frames),
            Some(0x21) => at = skip_gif_blocks(bytes, at + 2).ok_or_else(|| end(at))?,
            Some(0x2C) => {
                let flags = bytes.get(at + 9).copied().ok_or_else(|| end(at))?;
                at = skip_gif_blocks(bytes, at + 11 + table(flags)).ok_or_else(|| end(at))?;
                n_frames += 1;
                if n_frames == most {
                    return Ok(n_frames);
                }
            }
            // Readers skip stray bytes between blocks. After a frame they are harmless.
            Some(_) if n_frames > 0 => at += 1,
            Some(other) => {
                let reason = format!("unknown block type {other:02x} at byte {at}");
                return Err(PixelError::malformed(ImageFormat::Gif, reason));
            }
            None => return Err(end(at)),
        }
    }
}

fn skip_gif_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1 + length;
        if length == 0 {
            return Some(at);
        }
    }
}

pub(super) fn probe_bmp(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let format = ImageFormat::Bmp;
    let header = le32(bytes, 14).ok_or_else(|| cut(format))?;
    let (width, height, bits) = if header == 12 {
        let size = le16(bytes, 18).zip(le16(bytes, 20)).zip(le16(bytes, 24));
        size.map(|((width, height), bits)| (u32::from(width), u32::from(height), bits))
    } else if header >= 40 {
        let height = array(bytes, 22).map(i32::from_le_bytes);
        let size = le32(bytes, 18).zip(height).zip(le16(bytes, 28));
        size.map(|((width, height), bits)| (width, height.unsigned_abs(), bits))
    } else {
        let reason = format!("expected a header of 12 bytes, or of at least 40, found {header}");
        return Err(PixelError::malformed(format, reason));
    }
    .ok_or_else(|| cut(format))?;
    let plain = ImageInfo::plain(format, width, height, if bits == 32 { 4 } else { 3 });
    Ok(ImageInfo { bit_depth: u8::try_from(bits.min(8)).unwrap_or(8), palette: bits <= 8, ..plain })
}

/// Where the palette and the pixels of a BMP start, and their format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BmpLayout {
    pub(crate) bits: u16,
    pub(crate) compression: u32,
    /// Number of colours in the palette, if the image has one.
    pub(crate) n_colors: usize,
    pub(crate) palette_at: usize,
    /// Bytes per palette entry.
    pub(crate) entry: usize,
    pub(crate) pixels_at: usize,
}

/// Reads the layout from the headers. As in Pillow, the pixels start after the palette if no start is given, or if they
/// would start right after the header.
pub(crate) fn bmp_layout(bytes: &[u8]) -> Option<BmpLayout> {
    let size = le32(bytes, 14)?;
    let end = offset(size)?.checked_add(14)?;
    let (bits, compression, declared, entry) = match size {
        12 => (le16(bytes, 24)?, 0, 0, 3),
        _ => (le16(bytes, 28)?, le32(bytes, 30)?, offset(le32(bytes, 46)?)?, 4),
    };
    let n_colors = if declared == 0 { 1 << bits.min(8) } else { declared };
    let palette = if bits <= 8 { n_colors.checked_mul(entry)? } else { 0 };
    let masks = if size == 40 && compression == 3 { 12 } else { 0 };
    let pixels_at = match offset(le32(bytes, 10)?)? {
        0 => end.checked_add(masks)?.checked_add(palette)?,
        start if start == end => end.checked_add(palette)?,
        start => start,
    };
    Some(BmpLayout { bits, compression, n_colors, palette_at: end, entry, pixels_at })
}

impl BmpLayout {
    /// Bytes of all rows. The padding of the last row is not included, because it may be missing.
    pub(crate) fn row_bytes(&self, width: u64, height: u64) -> u64 {
        let used = width.saturating_mul(self.bits.into()).div_ceil(8);
        let rows = used.next_multiple_of(4).saturating_mul(height.saturating_sub(1));
        rows.saturating_add(used)
    }
}

pub(super) fn check_bmp_end(bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
    let format = ImageFormat::Bmp;
    let layout = bmp_layout(bytes).ok_or_else(|| cut(format))?;
    // The size of run-length coded images (1, 2) cannot be computed.
    let rows = match layout.compression {
        1 | 2 => 0,
        _ => layout.row_bytes(info.width.into(), info.height.into()),
    };
    let needed = rows.saturating_add(to_u64(layout.pixels_at));
    if needed <= to_u64(bytes.len()) {
        return Ok(());
    }
    let reason = format!("needs {needed} bytes, has {}", bytes.len());
    Err(PixelError::truncated(format, reason))
}
