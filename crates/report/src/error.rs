//! Why a picture cannot be drawn.

use packds_pixels::PixelError;

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The rasterizer rejected the drawing.
    #[error("cannot draw the image: {0}")]
    Svg(String),
    /// A figure is too large.
    #[error("cannot draw an image of {width}x{height} units: too large")]
    TooLarge {
        /// In units.
        width: u32,
        /// In units.
        height: u32,
    },
    /// A contact sheet is too large.
    #[error("a sheet of {width}x{height} pixels is too large")]
    SheetTooLarge {
        /// In pixels.
        width: u64,
        /// In pixels.
        height: u64,
    },
    /// The picture cannot be encoded.
    #[error(transparent)]
    Encode(#[from] PixelError),
}
