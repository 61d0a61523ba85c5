//! Drawing errors.

use packds_pixels::PixelError;

/// Why an image cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The rasterizer rejected the drawing.
    #[error("cannot draw the image: {0}")]
    Svg(String),
    /// A figure is too large.
    #[error("cannot draw an image of {width}x{height} units: too large")]
    TooLarge {
        /// Width, in units.
        width: u32,
        /// Height, in units.
        height: u32,
    },
    /// A contact sheet is too large.
    #[error("a sheet of {width}x{height} pixels is too large")]
    SheetTooLarge {
        /// Width, in pixels.
        width: u64,
        /// Height, in pixels.
        height: u64,
    },
    /// The image cannot be encoded.
    #[error(transparent)]
    Encode(#[from] PixelError),
}
