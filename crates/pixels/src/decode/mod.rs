//! Decodes files to output pixels.

#[cfg(feature = "codecs")]
mod bands;
mod bare;
mod bmp;
mod convert;
#[cfg(feature = "codecs")]
mod gif;
#[cfg(feature = "codecs")]
mod jpeg;
#[cfg(not(feature = "codecs"))]
mod left_out;
mod orient;
#[cfg(feature = "codecs")]
mod png;
mod pnm;
mod qoi;
#[cfg(test)]
mod tests;
mod tga;
#[cfg(feature = "codecs")]
mod tiff;
mod view;
#[cfg(test)]
#[path = "tests/view.rs"]
mod view_tests;
#[cfg(feature = "codecs")]
mod webp;

#[cfg(feature = "codecs")]
pub use bands::decode_bands;

use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::{Geometry, Orientation};
#[cfg(feature = "codecs")]
use crate::jpeg::JpegDecoder;
use crate::probe::{ImageInfo, probe};
use crate::resize::Resampler;
use crate::seek::Splicer;
use packds_system::{to_u64, to_usize};

/// The number of pixels above which Pillow raises an error. It is twice `Image.MAX_IMAGE_PIXELS`, above which Pillow
/// only warns.
const MAX_PIXELS: u64 = 178_956_970;

/// The channels of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Color {
    /// Red, green and blue, as from Pillow's `convert("RGB")`.
    #[default]
    Rgb,
    /// Luma, as from Pillow's `convert("L")`.
    Gray,
    /// For masks: palette indices, gray values, or the values 0 and 1 of a 1-bit image. Other images are rejected.
    /// Resize masks with `Filter::Nearest`.
    Index,
}

impl Color {
    /// Number of channels of the output.
    #[must_use]
    pub fn channels(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Gray | Self::Index => 1,
        }
    }
}

/// Decoder options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Channels of the output.
    pub color: Color,
    /// Maximum number of pixels that a header may declare. It is checked before memory is allocated.
    pub max_pixels: u64,
    /// Decodes a JPEG at 1/2, 1/4 or 1/8 of its size if the output is that much smaller. This is faster, but the pixels
    /// differ from Pillow's.
    pub jpeg_scaling: bool,
    /// How `crop_resize_into` treats the EXIF orientation. `render` follows its geometry instead.
    pub orientation: Orientation,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        let (color, orientation) = (Color::default(), Orientation::default());
        Self { color, max_pixels: MAX_PIXELS, jpeg_scaling: false, orientation }
    }
}

/// An image of interleaved bytes, with rows from top to bottom and pixels from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// Channels: 1 or 3.
    pub channels: u8,
    /// `height * width * channels` bytes.
    pub data: Vec<u8>,
}

/// A rendered image's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rendered {
    /// The header values of the source.
    pub info: ImageInfo,
    /// Width of the result.
    pub width: u32,
    /// Height of the result.
    pub height: u32,
}

/// Decodes images one at a time, reusing its buffers.
///
/// ```
/// use packds_pixels::{Color, DecodeOptions, Decoder, Geometry, Resize, encode_png};
/// let png = encode_png(2, 2, 1, &[0, 255, 255, 0])?;
/// let mut decoder = Decoder::new(DecodeOptions { color: Color::Gray, ..DecodeOptions::default() });
/// let half = Geometry { resize: Resize::Exact { width: 1, height: 1 }, ..Geometry::default() };
/// let image = decoder.render(&png, &half)?;
/// assert_eq!((image.width, image.height, image.data), (1, 1, vec![128]));
/// # Ok::<(), packds_pixels::PixelError>(())
/// ```
pub struct Decoder {
    options: DecodeOptions,
    #[cfg(feature = "codecs")]
    jpeg: Option<JpegDecoder>,
    resampler: Resampler,
    /// Decoded pixels in the output's channels.
    pixels: Vec<u8>,
    /// Raw samples or a raw row, before colour conversion.
    samples: Vec<u8>,
    /// Pixels rotated upright.
    upright: Vec<u8>,
    /// Builds small JPEGs of the visible parts of JPEGs that have seek indexes.
    splicer: Splicer,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder with these options.
    #[must_use]
    pub fn new(options: DecodeOptions) -> Self {
        Self {
            options,
            #[cfg(feature = "codecs")]
            jpeg: None,
            resampler: Resampler::default(),
            pixels: Vec::new(),
            samples: Vec::new(),
            upright: Vec::new(),
            splicer: Splicer::default(),
        }
    }

    /// Decodes, rotates, resizes and crops into `out`, which must have exactly the length of the result. For a JPEG,
    /// only the rows and columns inside the crop are decoded. The pixels are still equal to those of a full decode, and
    /// a truncated file is always an error.
    ///
    /// # Errors
    /// Any `PixelError`: an error in the file, an exceeded limit, or `WrongBuffer`. After an error, the contents of
    /// `out` are unspecified.
    pub fn render_into(&mut self, bytes: &[u8], geometry: &Geometry, out: &mut [u8]) -> Result<Rendered, PixelError> {
        let info = self.admit(bytes)?;
        self.render_probed(bytes, &info, geometry, out)
    }

    /// Like `render_into`, with a new buffer.
    ///
    /// # Errors
    /// Any `PixelError` except `WrongBuffer`.
    pub fn render(&mut self, bytes: &[u8], geometry: &Geometry) -> Result<Image, PixelError> {
        let info = self.admit(bytes)?;
        let (width, height) = geometry.output_size(info.width, info.height, info.orientation);
        self.check_n_pixels(width, height)?;
        let channels = self.options.color.channels();
        let mut data = zeroed(byte_count(width, height, channels)?)?;
        self.render_probed(bytes, &info, geometry, &mut data)?;
        Ok(Image { width, height, channels: if channels == 1 { 1 } else { 3 }, data })
    }

    /// The whole image at full size, as stored.
    ///
    /// # Errors
    /// As for `render`.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Image, PixelError> {
        let as_stored = Geometry { orientation: Orientation::Ignore, ..Geometry::default() };
        self.render(bytes, &as_stored)
    }

    /// Decodes the whole image into the decoder's buffer, which the next call reuses.
    ///
    /// # Errors
    /// As for `render`.
    pub fn decode_full(&mut self, bytes: &[u8]) -> Result<(ImageInfo, &[u8]), PixelError> {
        let info = self.admit(bytes)?;
        self.decode_all(bytes, &info)?;
        Ok((info, &self.pixels))
    }

    /// Reads the headers and applies the limits.
    fn admit(&self, bytes: &[u8]) -> Result<ImageInfo, PixelError> {
        let info = probe(bytes)?;
        self.check_n_pixels(info.width, info.height)?;
        Ok(info)
    }

    fn check_n_pixels(&self, width: u32, height: u32) -> Result<(), PixelError> {
        let limit = self.options.max_pixels;
        if u64::from(width) * u64::from(height) > limit {
            return Err(PixelError::TooManyPixels { width, height, limit });
        }
        Ok(())
    }

    fn render_probed(
        &mut self,
        bytes: &[u8],
        info: &ImageInfo,
        geometry: &Geometry,
        out: &mut [u8],
    ) -> Result<Rendered, PixelError> {
        let (width, height) = geometry.output_size(info.width, info.height, info.orientation);
        let channels = self.options.color.channels();
        let expected = byte_count(width, height, channels)?;
        PixelError::check_len(out.len(), expected)?;
        let turn = geometry.turn(info.orientation);
        let (upright_width, upright_height) = geometry.upright_size(info.width, info.height, info.orientation);
        let window = geometry.window(upright_width, upright_height);
        if window.x.len < window.x.out || window.y.len < window.y.out {
            out.fill(0);
        }
        if info.format == ImageFormat::Jpeg && turn == 1 {
            self.render_jpeg(bytes, info, geometry, out)?;
        } else {
            self.decode_all(bytes, info)?;
            let pixels = if turn == 1 {
                &self.pixels
            } else {
                orient::turn(&self.pixels, (info.width, info.height), channels, turn, &mut self.upright);
                &self.upright
            };
            let stride = usize_of(upright_width) * channels;
            self.resampler.start(upright_width, upright_height, channels, window, geometry.filter);
            self.resampler.push(pixels, 0, stride, out);
        }
        Ok(Rendered { info: *info, width, height })
    }

    /// Decodes the whole image into `self.pixels`.
    fn decode_all(&mut self, bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
        let n_bytes = byte_count(info.width, info.height, self.options.color.channels())?;
        if info.format == ImageFormat::Jpeg {
            resize_zeroed(&mut self.pixels, n_bytes)?;
            return self.decode_jpeg(bytes, info);
        }
        let samples = std::mem::take(&mut self.samples);
        let mut raster = guarded(info.format, || match info.format {
            ImageFormat::Bmp => bmp::decode(bytes, info),
            ImageFormat::Pnm => pnm::decode(bytes),
            ImageFormat::Tga => tga::decode(bytes),
            ImageFormat::Qoi => qoi::decode(bytes, info),
            #[cfg(feature = "codecs")]
            ImageFormat::Png => png::decode(bytes, info, samples),
            #[cfg(feature = "codecs")]
            ImageFormat::Gif => gif::decode(bytes, info),
            #[cfg(feature = "codecs")]
            ImageFormat::Tiff => tiff::decode(bytes, info),
            #[cfg(feature = "codecs")]
            ImageFormat::WebP | ImageFormat::Jpeg => webp::decode(bytes, info),
            #[cfg(not(feature = "codecs"))]
            _ => left_out::decode(info),
        })?;
        resize_zeroed(&mut self.pixels, n_bytes)?;
        let converted = convert::convert(&mut raster, info, self.options.color, &mut self.pixels);
        self.samples = raster.samples;
        converted
    }
}

/// Runs a decoder. If a hostile file makes it panic, the panic is reported as an error in the file, so that
/// callers can continue with other files.
fn guarded<T>(format: ImageFormat, decode: impl FnOnce() -> Result<T, PixelError>) -> Result<T, PixelError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode));
    caught.unwrap_or_else(|_| Err(PixelError::malformed(format, "the decoder crashed")))
}

/// Converts a `u32` to a length in memory.
pub(crate) fn usize_of(value: u32) -> usize {
    to_usize(value)
}

/// Size of an image in bytes, if it fits in memory.
pub(crate) fn byte_count(width: u32, height: u32, channels: usize) -> Result<usize, PixelError> {
    let rows = usize_of(width).checked_mul(usize_of(height));
    rows.and_then(|n_pixels| n_pixels.checked_mul(channels))
        .filter(|&n_bytes| isize::try_from(n_bytes).is_ok())
        .ok_or(PixelError::OutOfMemory { bytes: u64::MAX })
}

/// A zeroed buffer. Returns an error if memory is exhausted.
pub(crate) fn zeroed(n_bytes: usize) -> Result<Vec<u8>, PixelError> {
    let mut data = Vec::new();
    resize_zeroed(&mut data, n_bytes)?;
    Ok(data)
}

/// Sets the length of `buffer`. Returns an error if memory is exhausted.
pub(crate) fn resize_zeroed(buffer: &mut Vec<u8>, n_bytes: usize) -> Result<(), PixelError> {
    let more = n_bytes.saturating_sub(buffer.len());
    let bytes = to_u64(n_bytes);
    buffer.try_reserve_exact(more).map_err(|_| PixelError::OutOfMemory { bytes })?;
    buffer.resize(n_bytes, 0);
    Ok(())
}

/// Checks the pixels passed for encoding.
pub(crate) fn check_pixels(width: u32, height: u32, channels: u8, found: usize) -> Result<(), PixelError> {
    if width == 0 || height == 0 || !matches!(channels, 1 | 3) {
        let found = format!("{width}x{height}x{channels}");
        return Err(PixelError::argument("image", "at least 1x1 pixels of 1 or 3 channels", found));
    }
    let expected = byte_count(width, height, usize::from(channels))?;
    PixelError::check_len(found, expected)
}
