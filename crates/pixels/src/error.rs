//! What can be wrong with an image, and whose fault it is.

use crate::area::Area;
use crate::format::ImageFormat;

/// Why an image could not be read, or an argument not be used.
///
/// The variants say who is to blame: `UnknownFormat`, `Empty`, `Malformed` and `Truncated` the
/// file; `TooManyPixels` and `OutOfMemory` a limit; `Unsupported` this library; `WrongBuffer`,
/// `NotSingleChannel`, `EmptyArea`, `AreaOutside` and `InvalidArgument` the caller. No variant names a path: the caller, who
/// knows it, adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PixelError {
    /// The first bytes are those of no image format known here.
    #[error("not an image of a known format: starts with {}", hex(first_bytes))]
    UnknownFormat {
        /// Up to eight bytes from the start of the file.
        first_bytes: Vec<u8>,
    },
    /// The file has no bytes at all.
    #[error("empty file")]
    Empty,
    /// The file breaks the rules of its format.
    #[error("malformed {format}: {reason}")]
    Malformed {
        /// The format that the first bytes announce.
        format: ImageFormat,
        /// The rule that is broken.
        reason: String,
    },
    /// The file ends before its image does.
    #[error("truncated {format}: {reason}")]
    Truncated {
        /// The format that the first bytes announce.
        format: ImageFormat,
        /// What is missing.
        reason: String,
    },
    /// The image declares more pixels than the caller allows.
    #[error(
        "{width}x{height} is {} pixels: the limit is {limit}",
        u64::from(*width) * u64::from(*height)
    )]
    TooManyPixels {
        /// Declared width.
        width: u32,
        /// Declared height.
        height: u32,
        /// Largest number of pixels allowed.
        limit: u64,
    },
    /// Memory for the image could not be had.
    #[error("no memory for {bytes} bytes of pixels")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The file may be right, but this library cannot read that kind.
    #[error("unsupported {format}: {what}")]
    Unsupported {
        /// The format that the first bytes announce.
        format: ImageFormat,
        /// The feature that is missing here.
        what: String,
    },
    /// A buffer that the caller gave has the wrong length.
    #[error("wrong buffer: expected {expected} bytes, found {found}")]
    WrongBuffer {
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A mask must have one channel: palette indices, gray values or bits.
    #[error("a mask must have 1 channel (palette, gray or 1-bit), found {channels}")]
    NotSingleChannel {
        /// Channels of the source.
        channels: u8,
    },
    /// An area without pixels.
    #[error("empty area: {}x{}", area.width, area.height)]
    EmptyArea {
        /// The area asked for.
        area: Area,
    },
    /// An area that reaches beyond the picture.
    #[error(
        "area of {}x{} at ({}, {}) is not inside the picture of {width}x{height}",
        area.width, area.height, area.x, area.y
    )]
    AreaOutside {
        /// The area asked for.
        area: Area,
        /// Width of the picture.
        width: u32,
        /// Height of the picture.
        height: u32,
    },
    /// A seek index that is damaged, or belongs to another image.
    #[error("the seek index {reason}")]
    BadSeekIndex {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An argument that makes no sense.
    #[error("invalid {what}: expected {expected}, found {found:?}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it was.
        found: String,
    },
}

impl PixelError {
    pub(crate) fn malformed(format: ImageFormat, reason: impl Into<String>) -> Self {
        Self::Malformed {
            format,
            reason: reason.into(),
        }
    }

    pub(crate) fn truncated(format: ImageFormat, reason: impl Into<String>) -> Self {
        Self::Truncated {
            format,
            reason: reason.into(),
        }
    }

    pub(crate) fn unsupported(format: ImageFormat, what: impl Into<String>) -> Self {
        Self::Unsupported {
            format,
            what: what.into(),
        }
    }

    pub(crate) fn argument(what: &'static str, expected: &'static str, found: &str) -> Self {
        Self::InvalidArgument {
            what,
            expected,
            found: found.to_owned(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lower_case_and_name_both_sides() {
        let error = PixelError::WrongBuffer {
            expected: 12,
            found: 3,
        };
        assert_eq!(
            error.to_string(),
            "wrong buffer: expected 12 bytes, found 3"
        );
        let error = PixelError::UnknownFormat {
            first_bytes: vec![0, 255],
        };
        assert_eq!(
            error.to_string(),
            "not an image of a known format: starts with 00 ff"
        );
        let error = PixelError::TooManyPixels {
            width: 65535,
            height: 65535,
            limit: 10,
        };
        assert_eq!(
            error.to_string(),
            "65535x65535 is 4294836225 pixels: the limit is 10"
        );
        let error = PixelError::truncated(ImageFormat::Png, "no IEND");
        assert_eq!(error.to_string(), "truncated PNG: no IEND");
    }
}
