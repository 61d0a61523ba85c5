//! Decodes, resizes, crops and casts images. The pixels are exactly those of Pillow.
//!
//! All functions are pure functions over slices: they do not use files, threads or clocks. A [`Decoder`] turns the
//! bytes of a file into output pixels. [`probe`](probe()) and [`check_structure`] read only headers. [`Histogram`]
//! counts pixel values and computes their mean and deviation. [`ops`] modifies pixels and converts them to floats.
//!
//! The reference is Pillow 13: `Image.open(file).convert("RGB")`, followed by torchvision's `Resize` and `CenterCrop`
//! on the Pillow image. docs/reference/pixels.md lists what was measured, and the few differences.
//!
//! In this example, a photo is resized and cropped while it is decoded, and its pixels are counted:
//!
//! ```
//! use packds_pixels::{Crop, DecodeOptions, Decoder, Geometry, Histogram, Resize, encode_jpeg};
//!
//! let photo = encode_jpeg(500, 375, 3, &vec![200; 500 * 375 * 3], 90)?;
//! let geometry = Geometry {
//!     resize: Resize::Short(256),
//!     crop: Crop::Center { width: 224, height: 224 },
//!     ..Geometry::default()
//! };
//! let mut decoder = Decoder::new(DecodeOptions::default());
//! let mut pixels = vec![0; 224 * 224 * 3];
//! decoder.render_into(&photo, &geometry, &mut pixels)?;
//! let mut histogram = Histogram::new(3);
//! histogram.add(&pixels);
//! assert!((histogram.mean(0) - 200.0).abs() < 2.0);
//! # Ok::<(), packds_pixels::PixelError>(())
//! ```
//!
//! `probe` describes an image from the header of its file, without decoding:
//!
//! ```
//! use packds_pixels::{ImageFormat, encode_png, probe};
//!
//! let info = probe(&encode_png(4, 3, 1, &[0; 12])?)?;
//! assert_eq!((info.format, info.width, info.height, info.channels), (ImageFormat::Png, 4, 3, 1));
//! # Ok::<(), packds_pixels::PixelError>(())
//! ```
#![cfg_attr(
    not(feature = "codecs"),
    expect(dead_code, unused_imports, unused_variables, reason = "the decoders that use them are left out")
)]

mod area;
mod cast;
mod decode;
#[cfg(feature = "codecs")]
mod encode;
mod error;
mod float;
mod format;
mod geometry;
mod histogram;
#[cfg(feature = "codecs")]
mod jpeg;
pub mod ops;
mod padded;
mod polygon;
mod probe;
mod resize;
mod seek;

pub use area::{Area, CropResize, Encoded, Pixels};
pub use cast::{Layout, to_layout_into};
#[cfg(feature = "codecs")]
pub use decode::decode_bands;
pub use decode::{Color, DecodeOptions, Decoder, Image, Rendered};
#[cfg(feature = "codecs")]
pub use encode::encode_png;
pub use error::PixelError;
pub use float::{FloatType, PIXEL_TYPES};
pub use format::{ImageFormat, other_format};
pub use geometry::{Crop, Filter, Geometry, Orientation, Resize};
pub use histogram::Histogram;
#[cfg(feature = "codecs")]
pub use jpeg::{encode_jpeg, jpeg_simd};
pub use padded::{Padding, padded_crop_into};
pub use polygon::fill_rings;
pub use probe::{ImageInfo, TiffBands, check_structure, probe, tiff_bands};
pub use resize::{AxisTaps, Resizer, resize, rows_come_first};
pub use seek::build_seek_index;
