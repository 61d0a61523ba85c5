//! Rectangles of pictures, and what a view of a picture shows.

use crate::decode::{byte_count, usize_of};
use crate::error::PixelError;
use crate::geometry::Filter;

/// A rectangle of pixels of a picture: of the upright one where a decoder turns pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
}

impl Area {
    /// Says whether the area has pixels, and all of them in a picture of `width` x `height`.
    ///
    /// # Errors
    ///
    /// `EmptyArea` or `AreaOutside`.
    pub fn check_inside(self, width: u32, height: u32) -> Result<(), PixelError> {
        if self.width == 0 || self.height == 0 {
            return Err(PixelError::EmptyArea { area: self });
        }
        let fits =
            |first: u32, len: u32, side: u32| first.checked_add(len).is_some_and(|end| end <= side);
        if fits(self.x, self.width, width) && fits(self.y, self.height, height) {
            Ok(())
        } else {
            Err(PixelError::AreaOutside {
                area: self,
                width,
                height,
            })
        }
    }
}

/// Crop, then resize, then flip: what one view shows of a picture.
///
/// The pixels are those of Pillow 13's `picture.crop(box).resize((width, height), filter)`: the
/// resize sees nothing outside the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CropResize {
    /// The part that is shown.
    pub area: Area,
    /// Width of the result.
    pub width: u32,
    /// Height of the result.
    pub height: u32,
    /// How the resize samples.
    pub filter: Filter,
    /// Whether left and right are exchanged.
    pub flip_horizontal: bool,
    /// Whether top and bottom are exchanged.
    pub flip_vertical: bool,
}

impl CropResize {
    /// Says whether the view can be shown of a picture of `width` x `height` in `found` bytes.
    pub(crate) fn check(
        &self,
        width: u32,
        height: u32,
        channels: usize,
        found: usize,
    ) -> Result<(), PixelError> {
        self.area.check_inside(width, height)?;
        check_out(self.width, self.height, channels, found)
    }
}

/// Says whether an output of `width` x `height` has pixels and takes `found` bytes.
pub(crate) fn check_out(
    width: u32,
    height: u32,
    channels: usize,
    found: usize,
) -> Result<(), PixelError> {
    if width == 0 || height == 0 {
        return Err(PixelError::argument(
            "size of the result",
            "at least 1x1",
            &format!("{width}x{height}"),
        ));
    }
    let expected = byte_count(width, height, channels)?;
    if found == expected {
        Ok(())
    } else {
        Err(PixelError::WrongBuffer { expected, found })
    }
}

/// An encoded image, with its seek index where there is one.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// What tells where in a JPEG its rows and columns begin: see `build_seek_index`. Empty is none.
    pub seek_index: Option<&'a [u8]>,
}

/// Raw interleaved u8 pixels `[height, width, channels]`.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// `height * width * channels` bytes: rows from the top, pixels from the left.
    pub data: &'a [u8],
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes in a pixel.
    pub channels: u8,
}

impl Pixels<'_> {
    /// Says whether there are pixels and the data are as long as the sizes say; returns the bytes of a row.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an empty picture, `WrongBuffer` where the data do not fit its size.
    pub fn check(&self) -> Result<usize, PixelError> {
        let channels = usize::from(self.channels);
        let expected = byte_count(self.width, self.height, channels)?;
        if expected == 0 {
            let found = format!("{}x{}x{channels}", self.width, self.height);
            return Err(PixelError::argument("picture", "at least 1x1x1", &found));
        }
        if self.data.len() != expected {
            return Err(PixelError::WrongBuffer {
                expected,
                found: self.data.len(),
            });
        }
        Ok(usize_of(self.width) * channels)
    }
}
