//! TGA headers and run lengths.
//!
//! A TGA file has no signature. Therefore a file is checked for a TGA header only if it has no known signature.

use packds_system::{to_u64, to_usize};

use super::ImageInfo;
use super::bytes::{array, le16};
use crate::error::PixelError;
use crate::format::ImageFormat;

const FORMAT: ImageFormat = ImageFormat::Tga;
/// Length of the header.
const HEADER: usize = 18;

/// The meaning of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TgaKind {
    Palette,
    Color,
    Gray,
}

/// The header of a TGA file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TgaHeader {
    pub(crate) kind: TgaKind,
    pub(crate) has_runs: bool,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Bits of a pixel: 1, 8, 16, 24 or 32.
    pub(crate) depth: u8,
    pub(crate) is_top_down: bool,
    pub(crate) is_right_to_left: bool,
    /// First index of the palette.
    pub(crate) first_color: usize,
    /// Bits of a palette entry: 16, 24 or 32.
    pub(crate) color_bits: u8,
    pub(crate) palette_at: usize,
    pub(crate) data_at: usize,
}

impl TgaHeader {
    /// Bytes of a row.
    fn row_bytes(&self) -> u64 {
        u64::from(self.width).saturating_mul(self.depth.into()).div_ceil(8)
    }

    /// The bytes of the image, if the file has all of them. Only for images without run-length coding.
    pub(crate) fn data<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], PixelError> {
        let data = bytes.get(self.data_at..).unwrap_or_default();
        let needed = self.row_bytes().saturating_mul(self.height.into());
        data.get(..to_usize(needed)).ok_or_else(|| cut(needed, data.len()))
    }

    /// Passes every packet to `each`: the bytes of its pixels, and how often they are repeated.
    pub(crate) fn packets(&self, bytes: &[u8], mut each: impl FnMut(&[u8], usize)) -> Result<(), PixelError> {
        let pixel = usize::from(self.depth / 8);
        let n_bytes = to_usize(self.row_bytes().saturating_mul(self.height.into()));
        let (mut at, mut done) = (self.data_at, 0_usize);
        while done < n_bytes {
            let short = || cut(to_u64(n_bytes), done);
            let head = *bytes.get(at).ok_or_else(short)?;
            let n_pixels = usize::from(head & 0x7F) + 1;
            let (stored, times) = if head & 0x80 == 0 { (n_pixels, 1) } else { (1, n_pixels) };
            let pixels = bytes.get(at + 1..).and_then(|rest| rest.get(..stored * pixel)).ok_or_else(short)?;
            each(pixels, times);
            at += 1 + pixels.len();
            done += n_pixels * pixel;
        }
        match done == n_bytes {
            true => Ok(()),
            false => Err(PixelError::malformed(FORMAT, "the last run is longer than the image")),
        }
    }
}

fn cut(needed: u64, found: usize) -> PixelError {
    PixelError::truncated(FORMAT, format!("needs {needed} bytes of pixels, has {found}"))
}

/// The header, if it is that of a TGA file that Pillow decodes.
pub(crate) fn tga_header(bytes: &[u8]) -> Option<TgaHeader> {
    let header: [u8; HEADER] = array(bytes, 0)?;
    let [id_len, has_palette, kind, ..] = header;
    let (color_bits, depth, flags) = (header[7], header[16], header[17]);
    let first_color = usize::from(le16(&header, 3)?);
    let n_colors = usize::from(le16(&header, 5)?);
    let kind_of = match (kind & 7, depth) {
        (1, 8) if has_palette == 1 => TgaKind::Palette,
        (2, 16 | 24 | 32) => TgaKind::Color,
        (3, 8 | 16) => TgaKind::Gray,
        (3, 1) if kind == 3 => TgaKind::Gray,
        _ => return None,
    };
    let palette_bytes = match (has_palette, color_bits) {
        (0, _) => 0,
        (1, 16 | 24 | 32) => n_colors * usize::from(color_bits / 8),
        _ => return None,
    };
    let palette_at = HEADER + usize::from(id_len);
    let found = TgaHeader {
        kind: kind_of,
        has_runs: kind & 8 != 0,
        width: le16(&header, 12)?.into(),
        height: le16(&header, 14)?.into(),
        depth,
        is_top_down: flags & 0x20 != 0,
        is_right_to_left: flags & 0x10 != 0,
        first_color,
        color_bits,
        palette_at,
        data_at: palette_at + palette_bytes,
    };
    (kind & !0x0B == 0 && found.width > 0 && found.height > 0).then_some(found)
}

pub(super) fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let header = tga_header(bytes).ok_or_else(|| PixelError::malformed(FORMAT, "no header"))?;
    let (palette, channels) = match (header.kind, header.depth) {
        (TgaKind::Palette, _) => (true, 3),
        (TgaKind::Color, 24) => (false, 3),
        (TgaKind::Color, _) => (false, 4),
        (TgaKind::Gray, 16) => (false, 2),
        (TgaKind::Gray, _) => (false, 1),
    };
    let bit_depth = header.depth.min(8);
    Ok(ImageInfo { palette, bit_depth, ..ImageInfo::plain(FORMAT, header.width, header.height, channels) })
}

pub(super) fn check_end(bytes: &[u8]) -> Result<(), PixelError> {
    let header = tga_header(bytes).ok_or_else(|| PixelError::malformed(FORMAT, "no header"))?;
    if header.has_runs { header.packets(bytes, |_, _| {}) } else { header.data(bytes).map(|_| ()) }
}
