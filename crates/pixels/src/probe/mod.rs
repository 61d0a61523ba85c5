//! Reads headers only: size, channels and orientation, without decoding any pixels.
//!
//! Whatever the input, these functions do not panic and do not allocate memory of a declared size.

mod bytes;
mod exif;
mod jpeg;
mod riff;
mod simple;
mod tiff;

use crate::error::PixelError;
use crate::format::ImageFormat;

pub(crate) use bytes::{be16, le32};
pub(crate) use jpeg::check_end as check_jpeg_end;
pub(crate) use simple::{BmpLayout, bmp_layout};
pub(crate) use tiff::{TiffColors, tiff_colors};

/// Image properties from the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// The format, detected from content.
    pub format: ImageFormat,
    /// Stored width, before any rotation (but see `orientation`).
    pub width: u32,
    /// Stored height, before any rotation.
    pub height: u32,
    /// Channels of the source: 1 gray, 2 gray with alpha, 3 colour (a palette counts as colour), 4 colour with alpha,
    /// or CMYK.
    pub channels: u8,
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
}

impl ImageInfo {
    /// An upright image with 8 bits per channel and no palette.
    pub(crate) const fn plain(format: ImageFormat, width: u32, height: u32, channels: u8) -> Self {
        let (progressive, palette, stores_rgb) = (false, false, false);
        Self { format, width, height, channels, bit_depth: 8, orientation: 1, progressive, palette, stores_rgb }
    }
}

/// Reads the headers of an image.
///
/// # Errors
/// `Empty`, `UnknownFormat`, or `Malformed` / `Truncated` / `Unsupported` if the headers are invalid.
pub fn probe(bytes: &[u8]) -> Result<ImageInfo, PixelError> {
    let format = ImageFormat::sniff(bytes).ok_or_else(|| unknown(bytes))?;
    let info = match format {
        ImageFormat::Jpeg => jpeg::probe(bytes)?.0,
        ImageFormat::Png => simple::probe_png(bytes)?,
        ImageFormat::Gif => simple::probe_gif(bytes)?,
        ImageFormat::Bmp => simple::probe_bmp(bytes)?,
        ImageFormat::Tiff => tiff::probe(bytes)?,
        ImageFormat::WebP => riff::probe(bytes)?,
    };
    if info.width == 0 || info.height == 0 {
        let reason = format!("size is {}x{}", info.width, info.height);
        return Err(PixelError::malformed(format, reason));
    }
    Ok(info)
}

/// Reads the headers and checks, without decoding, that the file is complete. The check finds the EOI marker of a JPEG
/// after its first scan, the IEND chunk of a PNG, the trailer of a GIF, the declared size of WebP and BMP, and the end
/// of a TIFF's strips or tiles.
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
    }
    Ok(info)
}

fn unknown(bytes: &[u8]) -> PixelError {
    if bytes.is_empty() {
        return PixelError::Empty;
    }
    PixelError::UnknownFormat { first_bytes: bytes.iter().take(8).copied().collect() }
}
