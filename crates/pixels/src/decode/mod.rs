//! From the bytes of a file to output pixels.

mod bare;
mod bmp;
mod convert;
mod gif;
mod jpeg;
mod orient;
mod png;
#[cfg(test)]
mod tests;
mod tiff;
mod view;
#[cfg(test)]
mod view_tests;
mod webp;

use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::{Geometry, Orientation};
use crate::jpeg::JpegDecoder;
use crate::probe::{ImageInfo, probe};
use crate::resize::Resampler;
use crate::seek::Splicer;
use packds_system::{to_u64, to_usize};

/// Pillow's own limit (`Image.MAX_IMAGE_PIXELS` twice over is its error, once its warning).
const MAX_PIXELS: u64 = 178_956_970;

/// Which channels the output has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Color {
    /// Red, green, blue: Pillow's `convert("RGB")`.
    #[default]
    Rgb,
    /// Luma: Pillow's `convert("L")`.
    Gray,
    /// For masks: the indices of a palette image, gray values, or the 0 and 1 of a 1-bit image;
    /// nothing else has one channel. To be resized with `Filter::Nearest`.
    Index,
}

impl Color {
    /// Channels of the output.
    #[must_use]
    pub fn channels(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Gray | Self::Index => 1,
        }
    }
}

/// How files are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Channels of the output.
    pub color: Color,
    /// Images that declare more pixels are refused before memory is asked for.
    pub max_pixels: u64,
    /// Decodes a JPEG at 1/2, 1/4 or 1/8 of its size where the output is that much smaller.
    /// Faster, but not Pillow's pixels.
    pub jpeg_scaling: bool,
    /// What `crop_resize_into` does about the EXIF orientation; `render` goes by its geometry.
    pub orientation: Orientation,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            color: Color::default(),
            max_pixels: MAX_PIXELS,
            jpeg_scaling: false,
            orientation: Orientation::default(),
        }
    }
}

/// An image: rows from the top, pixels from the left, channels together, a byte each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes in a pixel: 1 or 3.
    pub channels: u8,
    /// `height * width * channels` bytes.
    pub data: Vec<u8>,
}

/// What was rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rendered {
    /// The headers of the source.
    pub info: ImageInfo,
    /// Width of the result.
    pub width: u32,
    /// Height of the result.
    pub height: u32,
}

/// Decodes one image after the other and keeps its buffers in between.
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
    jpeg: Option<JpegDecoder>,
    resampler: Resampler,
    /// Decoded pixels with the channels of the output.
    pixels: Vec<u8>,
    /// Raw samples or a raw row, before colours are converted.
    samples: Vec<u8>,
    /// Pixels turned upright.
    upright: Vec<u8>,
    /// Puts together what a view shows of a JPEG with a seek index.
    splicer: Splicer,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder with these options.
    #[must_use]
    pub fn new(options: DecodeOptions) -> Self {
        Self {
            options,
            jpeg: None,
            resampler: Resampler::new(),
            pixels: Vec::new(),
            samples: Vec::new(),
            upright: Vec::new(),
            splicer: Splicer::default(),
        }
    }

    /// Decodes, turns, resizes and crops into `out`, which must have exactly the bytes of the
    /// result. Of a JPEG only the rows and columns that the crop shows are decoded, but the pixels
    /// are those of a full decode, and a truncated file is an error whatever the crop.
    ///
    /// # Errors
    ///
    /// Every error of `PixelError`: the file's, the limit's, or `WrongBuffer`. `out` is then
    /// unspecified.
    pub fn render_into(
        &mut self,
        bytes: &[u8],
        geometry: &Geometry,
        out: &mut [u8],
    ) -> Result<Rendered, PixelError> {
        let info = self.admit(bytes)?;
        self.render_probed(bytes, &info, geometry, out)
    }

    /// As `render_into`, into memory of its own.
    ///
    /// # Errors
    ///
    /// Every error of `PixelError` but `WrongBuffer`.
    pub fn render(&mut self, bytes: &[u8], geometry: &Geometry) -> Result<Image, PixelError> {
        let info = self.admit(bytes)?;
        let (width, height) = geometry.output_size(info.width, info.height, info.orientation);
        let n_pixels = u64::from(width) * u64::from(height);
        if n_pixels > self.options.max_pixels {
            return Err(PixelError::TooManyPixels {
                width,
                height,
                limit: self.options.max_pixels,
            });
        }
        let channels = self.options.color.channels();
        let mut data = zeroed(width, height, channels)?;
        self.render_probed(bytes, &info, geometry, &mut data)?;
        Ok(Image {
            width,
            height,
            channels: if channels == 1 { 1 } else { 3 },
            data,
        })
    }

    /// The whole image at full size, as stored.
    ///
    /// # Errors
    ///
    /// As `render`.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Image, PixelError> {
        let as_stored = Geometry {
            orientation: Orientation::Ignore,
            ..Geometry::default()
        };
        self.render(bytes, &as_stored)
    }

    /// Decodes the whole image into a buffer of the decoder's own, which the next call reuses.
    ///
    /// # Errors
    ///
    /// As `render`.
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
            return Err(PixelError::TooManyPixels {
                width,
                height,
                limit,
            });
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
        if out.len() != expected {
            return Err(PixelError::WrongBuffer {
                expected,
                found: out.len(),
            });
        }
        let turn = geometry.turn(info.orientation);
        let (upright_width, upright_height) =
            geometry.upright_size(info.width, info.height, info.orientation);
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
                orient::turn(
                    &self.pixels,
                    usize_of(info.width),
                    channels,
                    turn,
                    &mut self.upright,
                );
                &self.upright
            };
            let stride = usize_of(upright_width) * channels;
            self.resampler.start(
                upright_width,
                upright_height,
                channels,
                window,
                geometry.filter,
            );
            self.resampler.push_image(pixels, stride, out);
        }
        Ok(Rendered {
            info: *info,
            width,
            height,
        })
    }

    /// Fills `pixels` with the whole image.
    fn decode_all(&mut self, bytes: &[u8], info: &ImageInfo) -> Result<(), PixelError> {
        let n_bytes = byte_count(info.width, info.height, self.options.color.channels())?;
        if info.format == ImageFormat::Jpeg {
            resize_zeroed(&mut self.pixels, n_bytes)?;
            return self.decode_jpeg(bytes, info);
        }
        let samples = std::mem::take(&mut self.samples);
        let mut raster = guarded(info.format, || match info.format {
            ImageFormat::Png => png::decode(bytes, info, samples),
            ImageFormat::Gif => gif::decode(bytes, info),
            ImageFormat::Bmp => bmp::decode(bytes, info),
            ImageFormat::Tiff => tiff::decode(bytes, info),
            ImageFormat::WebP | ImageFormat::Jpeg => webp::decode(bytes, info),
        })?;
        resize_zeroed(&mut self.pixels, n_bytes)?;
        let converted = convert::convert(&mut raster, info, self.options.color, &mut self.pixels);
        self.samples = raster.samples;
        converted
    }
}

/// Runs a decoder of another project. Should hostile bytes make it panic, that is an error of the
/// file for the caller, who has many more to read.
fn guarded<T>(
    format: ImageFormat,
    decode: impl FnOnce() -> Result<T, PixelError>,
) -> Result<T, PixelError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode));
    caught.unwrap_or_else(|_| Err(PixelError::malformed(format, "the decoder gave up")))
}

/// A `u32` as a length in memory: on every supported machine `usize` has at least 32 bits.
pub(crate) fn usize_of(value: u32) -> usize {
    to_usize(value)
}

/// Bytes of an image, where they fit memory at all.
pub(crate) fn byte_count(width: u32, height: u32, channels: usize) -> Result<usize, PixelError> {
    let rows = usize_of(width).checked_mul(usize_of(height));
    rows.and_then(|n_pixels| n_pixels.checked_mul(channels))
        .filter(|&n_bytes| isize::try_from(n_bytes).is_ok())
        .ok_or(PixelError::OutOfMemory { bytes: u64::MAX })
}

/// A buffer of zeros; an error where there is no memory for it.
pub(crate) fn zeroed(width: u32, height: u32, channels: usize) -> Result<Vec<u8>, PixelError> {
    let mut data = Vec::new();
    resize_zeroed(&mut data, byte_count(width, height, channels)?)?;
    Ok(data)
}

/// Gives `buffer` that length; an error where there is no memory for it.
pub(crate) fn resize_zeroed(buffer: &mut Vec<u8>, n_bytes: usize) -> Result<(), PixelError> {
    let more = n_bytes.saturating_sub(buffer.len());
    let bytes = to_u64(n_bytes);
    buffer
        .try_reserve_exact(more)
        .map_err(|_| PixelError::OutOfMemory { bytes })?;
    buffer.resize(n_bytes, 0);
    Ok(())
}

/// Checks the pixels that a caller hands in for encoding.
pub(crate) fn check_pixels(
    width: u32,
    height: u32,
    channels: u8,
    found: usize,
) -> Result<(), PixelError> {
    if width == 0 || height == 0 || !matches!(channels, 1 | 3) {
        let found = format!("{width}x{height}x{channels}");
        return Err(PixelError::argument(
            "image",
            "at least 1x1 pixels of 1 or 3 channels",
            &found,
        ));
    }
    let expected = byte_count(width, height, usize::from(channels))?;
    if found == expected {
        Ok(())
    } else {
        Err(PixelError::WrongBuffer { expected, found })
    }
}
