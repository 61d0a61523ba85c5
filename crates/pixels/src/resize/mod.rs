//! Pillow's resampling, bit for bit. It has two passes, and the values between them are bytes.
//!
//! Each output value is a weighted mean of the source values around it. The weights are computed in `f64`, rounded to
//! 22 fractional bits, and summed in 32-bit integers, so the result does not depend on the machine. Pillow 13 runs the
//! vertical pass first if the height shrinks by more than twice as many pixels as the width. The order affects the
//! result, so we do the same.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod axis;
mod kernel;
mod lanes;
mod resizer;
mod scalar;
mod stream;
mod taps;
#[cfg(test)]
mod tests;

use crate::decode::{Image, byte_count, usize_of, zeroed};
use crate::error::PixelError;
use crate::geometry::{Filter, Geometry, Resize};

pub use axis::{AxisTaps, rows_come_first};
pub use resizer::Resizer;
pub(crate) use stream::Resampler;

/// Bytes that may be read or written beyond a row of a scratch buffer.
const SLACK: usize = 64;

/// Resizes a whole image like `PIL.Image.resize(size, filter)`.
///
/// # Errors
/// `WrongBuffer` if the image's data does not match its size, `InvalidArgument` if the size is empty or the number of
/// channels is not 1 or 3.
pub fn resize(src: &Image, width: u32, height: u32, filter: Filter) -> Result<Image, PixelError> {
    let expected = "at least 1x1 pixels of 1 or 3 channels";
    let channels = usize::from(src.channels);
    if width == 0 || height == 0 || src.width == 0 || src.height == 0 || !matches!(channels, 1 | 3) {
        return Err(PixelError::argument(
            "resize",
            expected,
            format!("{}x{}x{channels} to {width}x{height}", src.width, src.height),
        ));
    }
    let stride = usize_of(src.width) * channels;
    let needed = stride * usize_of(src.height);
    PixelError::check_len(src.data.len(), needed)?;
    let geometry = Geometry { resize: Resize::Exact { width, height }, filter, ..Geometry::default() };
    let mut data = zeroed(byte_count(width, height, channels)?)?;
    let mut resampler = Resampler::default();
    resampler.start(src.width, src.height, channels, geometry.window(src.width, src.height), filter);
    resampler.push(&src.data, 0, stride, &mut data);
    Ok(Image { width, height, channels: src.channels, data })
}
