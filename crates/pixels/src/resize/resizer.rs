//! Views of images in memory.

use super::Resampler;
use crate::area::{CropResize, Pixels};
use crate::decode::usize_of;
use crate::error::PixelError;

/// Crops and resizes images one at a time, reusing its tables and row buffers.
///
/// ```
/// use packds_pixels::{Area, CropResize, Filter, Pixels, Resizer};
///
/// let image = Pixels { data: &[10, 20, 30, 40], width: 4, height: 1, channels: 1 };
/// let view = CropResize {
///     area: Area { x: 1, y: 0, width: 2, height: 1 },
///     width: 2,
///     height: 1,
///     filter: Filter::Bilinear,
///     flip_horizontal: true,
///     flip_vertical: false,
/// };
/// let mut out = [0; 2];
/// Resizer::new().crop_resize_into(image, &view, &mut out)?;
/// assert_eq!(out, [30, 20]);
/// # Ok::<(), packds_pixels::PixelError>(())
/// ```
#[derive(Debug, Default)]
pub struct Resizer {
    resampler: Resampler,
}

impl Resizer {
    /// A resizer that has not allocated memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a view of an image with 1 or 3 channels to `out`, which must have exactly
    /// `view.width * view.height * channels` bytes.
    ///
    /// # Errors
    /// `EmptyArea` or `AreaOutside`. `WrongBuffer` if the data does not match the image's size, or if `out` does not
    /// match the view's size. `InvalidArgument` if the image or the result is empty, or if the number of channels is
    /// not 1 or 3.
    pub fn crop_resize_into(&mut self, image: Pixels<'_>, view: &CropResize, out: &mut [u8]) -> Result<(), PixelError> {
        let stride = image.check()?;
        let channels = usize::from(image.channels);
        if !matches!(channels, 1 | 3) {
            return Err(PixelError::argument("channels", "1 or 3", channels));
        }
        view.check(image.width, image.height, channels, out.len())?;
        let first = usize_of(view.area.y) * stride + usize_of(view.area.x) * channels;
        self.resampler.start_view(view, channels);
        self.resampler.push(image.data, first, stride, out);
        Ok(())
    }
}
