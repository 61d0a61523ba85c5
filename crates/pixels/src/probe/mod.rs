//! Reads headers only: size, channels and orientation, without decoding any pixels.
//!
//! Whatever the input, these functions do not panic and do not allocate memory of a declared size.

mod bytes;
mod exif;
mod jpeg;
mod pnm;
mod qoi;
mod riff;
mod simple;
mod tga;
mod tiff;

use crate::error::PixelError;
use crate::format::{ImageFormat, other_format};

pub(crate) use bytes::{be16, le32};
pub(crate) use jpeg::check_end as check_jpeg_end;
pub(crate) use pnm::{PnmHeader, pnm_header};
pub(crate) use qoi::qoi_runs;
pub(crate) use simple::{BmpLayout, bmp_layout};
pub(crate) use tga::{TgaHeader, TgaKind, tga_header};
pub use tiff::{TiffBands, tiff_bands};
pub(crate) use tiff::{TiffColors, colors_of_bands, tiff_colors};

/// Image properties from the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// The format, detected from the content.
    pub format: ImageFormat,
    /// Stored width, before any rotation (but see `orientation` for TIFF).
    pub width: u32,
    /// Stored height, before any rotation.
    pub height: u32,
    /// Channels of the source: 1 gray, 2 gray with alpha, 3 colour (a palette counts as colour), 4 colour with alpha,
    /// or CMYK.
    pub channels: u8,
    /// Whether one of the channels is alpha.
    pub has_alpha: bool,
    /// Bits of one channel, or of one palette index.
    pub bit_depth: u8,
    /// EXIF orientation, 1 to 8, or 1 if there is none. Always 1 for TIFF, because Pillow rotates a TIFF when it
    /// decodes it. Width and height are those of the rotated image.
    pub orientation: u8,
    /// Whether a JPEG is progressive or has several scans, or whether a PNG or GIF is interlaced.
    pub progressive: bool,
    /// Whether the pixels are indices into a palette.
    pub palette: bool,
    /// Whether a JPEG stores RGB instead of YCbCr.
    pub stores_rgb: bool,
    /// Whether more frames (GIF, PNG, WebP) or pages (TIFF) follow the first. Only the first is ever decoded.
    pub has_more: bool,
}

impl ImageInfo {
    /// An upright image with 8 bits per channel and no palette.
    pub(crate) const fn plain(format: ImageFormat, width: u32, height: u32, channels: u8) -> Self {
        Self {
            format,
            width,
            height,
            channels,
            // Four channels of a JPEG are CMYK.
            has_alpha: matches!(channels, 2 | 4) && !matches!(format, ImageFormat::Jpeg),
            bit_depth: 8,
            orientation: 1,
            progressive: false,
            palette: false,
            stores_rgb: false,
            has_more: false,
        }
    }
}

/// Reads the headers of an image.
///
/// # Errors
/// `Empty`, `UnknownFormat`, `OtherFormat`, or `Malformed`, `Truncated` or `Unsupported` if the headers are invalid.
pub fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let format = ImageFormat::sniff(bytes).or_else(|| tga_header(bytes).map(|_| ImageFormat::Tga));
    let format = format.ok_or_else(|| unknown(bytes))?;
    let info = match format {
        ImageFormat::Jpeg => jpeg::probe(bytes)?.0,
        ImageFormat::Png => simple::probe_png(bytes)?,
        ImageFormat::Gif => simple::probe_gif(bytes)?,
        ImageFormat::Bmp => simple::probe_bmp(bytes)?,
        ImageFormat::Tiff => tiff::probe(bytes)?,
        ImageFormat::WebP => riff::probe(bytes)?,
        ImageFormat::Pnm => pnm::probe(bytes)?,
        ImageFormat::Tga => tga::probe(bytes)?,
        ImageFormat::Qoi => qoi::probe(bytes)?,
    };
    if info.width == 0 || info.height == 0 {
        let reason = format!("size is {}x{}", info.width, info.height);
        return Err(PixelError::malformed(format, reason));
    }
    Ok(info)
}

/// Reads the headers and checks, without decoding, that the file is complete. The check finds the EOI marker of a JPEG
/// after its first scan, the IEND chunk of a PNG, the trailer of a GIF, the declared size of WebP and BMP, the end of
/// a TIFF's strips or tiles, and all pixels of PNM, TGA and QOI.
///
/// # Errors
/// As for `probe`, and `Truncated` if the end is missing.
pub fn check_structure(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let info = probe(bytes)?;
    match info.format {
        ImageFormat::Jpeg => check_jpeg_end(bytes)?,
        ImageFormat::Png => simple::check_png_end(bytes)?,
        ImageFormat::Gif => simple::check_gif_end(bytes)?,
        ImageFormat::Bmp => simple::check_bmp_end(bytes, &info)?,
        ImageFormat::Tiff => tiff::check_end(bytes)?,
        ImageFormat::WebP => riff::check_end(bytes)?,
        ImageFormat::Pnm => pnm::check_end(bytes)?,
        ImageFormat::Tga => tga::check_end(bytes)?,
        ImageFormat::Qoi => qoi::check_end(bytes, &info)?,
    }
    Ok(info)
}

fn unknown(bytes: &[u8]) -> PixelError {
    if bytes.is_empty() {
        return PixelError::Empty;
    }
    if let Some(name) = other_format(bytes) {
        return PixelError::OtherFormat { name };
    }
    PixelError::UnknownFormat { first_bytes: bytes.iter().take(8).copied().collect() }
}
