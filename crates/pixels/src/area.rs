//! Areas and views of images.

use crate::decode::{byte_count, usize_of};
use crate::error::PixelError;
use crate::geometry::Filter;

/// A rectangle of pixels. If a decoder rotates images, the rectangle refers to the upright image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// Left column.
    pub x: u32,
    /// Top row.
    pub y: u32,
    /// Width, at least 1.
    pub width: u32,
    /// Height, at least 1.
    pub height: u32,
}

impl Area {
    /// Checks that the area is not empty and is inside an image of `width` x `height`.
    ///
    /// # Errors
    /// `EmptyArea` or `AreaOutside`.
    pub fn check_inside(self, width: u32, height: u32) -> Result<(), PixelError> {
        if self.width == 0 || self.height == 0 {
            return Err(PixelError::EmptyArea { area: self });
        }
        let fits = |first: u32, len: u32, side: u32| first.checked_add(len).is_some_and(|end| end <= side);
        if fits(self.x, self.width, width) && fits(self.y, self.height, height) {
            Ok(())
        } else {
            Err(PixelError::AreaOutside { area: self, width, height })
        }
    }
}

/// A view of an image: it is cropped, then resized, then flipped.
///
/// The pixels are equal to those of `image.crop(box).resize((width, height), filter)` in Pillow 13: the resize does
/// not use pixels outside the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CropResize {
    /// The area to crop.
    pub area: Area,
    /// Width of the result.
    pub width: u32,
    /// Height of the result.
    pub height: u32,
    /// Resampling filter.
    pub filter: Filter,
    /// Whether to swap left and right.
    pub flip_horizontal: bool,
    /// Whether to swap top and bottom.
    pub flip_vertical: bool,
}

impl CropResize {
    /// Checks that the area is inside an image of `width` x `height`, and that an output of `found` bytes has the
    /// view's size.
    pub(crate) fn check(&self, width: u32, height: u32, channels: usize, found: usize) -> Result<(), PixelError> {
        self.area.check_inside(width, height)?;
        check_out(self.width, self.height, channels, found)
    }
}

/// Checks that an output of `width` x `height` is not empty and has `found` bytes.
pub(crate) fn check_out(width: u32, height: u32, channels: usize, found: usize) -> Result<(), PixelError> {
    if width == 0 || height == 0 {
        return Err(PixelError::argument("size of the result", "at least 1x1", format!("{width}x{height}")));
    }
    let expected = byte_count(width, height, channels)?;
    PixelError::check_len(found, expected)
}

/// An encoded image with an optional seek index.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// The seek index of a JPEG, see `build_seek_index`. `None` or empty if there is none.
    pub seek_index: Option<&'a [u8]>,
}

/// Raw interleaved u8 pixels `[height, width, channels]`.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// `height * width * channels` bytes, with rows from top to bottom and pixels from left to right.
    pub data: &'a [u8],
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// Channels.
    pub channels: u8,
}

impl Pixels<'_> {
    /// Checks that the image is not empty and that the length of the data matches the image's size. Returns the number
    /// of bytes per row.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty image, `WrongBuffer` if the data does not match the image's size.
    pub fn check(&self) -> Result<usize, PixelError> {
        let channels = usize::from(self.channels);
        let expected = byte_count(self.width, self.height, channels)?;
        if expected == 0 {
            let found = format!("{}x{}x{channels}", self.width, self.height);
            return Err(PixelError::argument("image", "at least 1x1x1", found));
        }
        PixelError::check_len(self.data.len(), expected)?;
        Ok(usize_of(self.width) * channels)
    }
}
