//! Errors in images and arguments.

use crate::area::Area;
use crate::format::ImageFormat;
use packds_system::counted;

/// Why an image could not be decoded, encoded or changed.
///
/// The variants show what caused the error: the file (`UnknownFormat`, `OtherFormat`, `Empty`, `Malformed`,
/// `Truncated`), its seek index (`BadSeekIndex`), a limit (`TooManyPixels`, `OutOfMemory`), this library
/// (`Unsupported`, `ManyChannels`), or the caller (`WrongBuffer`, `NotSingleChannel`, `EmptyArea`, `AreaOutside`,
/// `InvalidArgument`). No variant contains a path. The caller can add it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PixelError {
    /// The first bytes do not match any known format.
    #[error("not an image of a supported format: starts with {}", hex(first_bytes))]
    UnknownFormat {
        /// Up to eight bytes from the start of the file.
        first_bytes: Vec<u8>,
    },
    /// The first bytes are those of a format that this library does not decode.
    #[error("files of type {name} are not supported")]
    OtherFormat {
        /// The format.
        name: &'static str,
    },
    /// The file is empty.
    #[error("empty file")]
    Empty,
    /// The file breaks the rules of its format.
    #[error("malformed {format}: {reason}")]
    Malformed {
        /// The format according to the first bytes.
        format: ImageFormat,
        /// The violated rule.
        reason: String,
    },
    /// The file ends before its image ends.
    #[error("truncated {format}: {reason}")]
    Truncated {
        /// The format according to the first bytes.
        format: ImageFormat,
        /// What is missing.
        reason: String,
    },
    /// The declared size exceeds the caller's limit.
    #[error(
        "{width}x{height} is {} pixels, more than the limit of {limit}",
        u64::from(*width) * u64::from(*height)
    )]
    TooManyPixels {
        /// Declared width.
        width: u32,
        /// Declared height.
        height: u32,
        /// The limit, in pixels.
        limit: u64,
    },
    /// Memory for the image could not be allocated.
    #[error("not enough memory for {bytes} bytes of pixels")]
    OutOfMemory {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// The file may be valid, but this library does not support it.
    #[error("unsupported {format}: {what}")]
    Unsupported {
        /// The format according to the first bytes.
        format: ImageFormat,
        /// The unsupported feature.
        what: String,
    },
    /// The image has more channels than colours and alpha need, such as the bands of a satellite image.
    #[error("{format} with {channels} channels (bands): expected at most 4")]
    ManyChannels {
        /// The format according to the first bytes.
        format: ImageFormat,
        /// The number of channels.
        channels: u8,
    },
    /// A buffer from the caller has the wrong length.
    #[error("wrong buffer: expected {}, found {found}", counted(*expected, "byte"))]
    WrongBuffer {
        /// The expected length in bytes.
        expected: usize,
        /// The actual length in bytes.
        found: usize,
    },
    /// A mask must have one channel: palette indices, gray values or bits.
    #[error(
        "a mask must have 1 channel (palette, gray or 1-bit), found {channels}: if its colours stand for classes, save the class numbers as one channel"
    )]
    NotSingleChannel {
        /// Channels of the source.
        channels: u8,
    },
    /// An empty area.
    #[error("empty area: {}x{}", area.width, area.height)]
    EmptyArea {
        /// The requested area.
        area: Area,
    },
    /// An area that extends beyond the image.
    #[error(
        "area of {}x{} at ({}, {}) is not inside the image of {width}x{height}",
        area.width, area.height, area.x, area.y
    )]
    AreaOutside {
        /// The requested area.
        area: Area,
        /// Width of the image.
        width: u32,
        /// Height of the image.
        height: u32,
    },
    /// A seek index that is damaged, or belongs to another image.
    #[error("the seek index {reason}")]
    BadSeekIndex {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An invalid argument.
    #[error("invalid {what}: expected {expected}, found {found:?}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// The valid values.
        expected: &'static str,
        /// The actual value.
        found: String,
    },
}

impl PixelError {
    pub(crate) fn malformed(format: ImageFormat, reason: impl Into<String>) -> Self {
        Self::Malformed { format, reason: reason.into() }
    }

    pub(crate) fn truncated(format: ImageFormat, reason: impl Into<String>) -> Self {
        Self::Truncated { format, reason: reason.into() }
    }

    pub(crate) fn unsupported(format: ImageFormat, what: impl Into<String>) -> Self {
        Self::Unsupported { format, what: what.into() }
    }

    pub(crate) fn argument(what: &'static str, expected: &'static str, found: impl ToString) -> Self {
        Self::InvalidArgument { what, expected, found: found.to_string() }
    }

    /// Checks the length of a buffer from the caller.
    pub(crate) const fn check_len(found: usize, expected: usize) -> Result<(), Self> {
        if found == expected { Ok(()) } else { Err(Self::WrongBuffer { expected, found }) }
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
        let error = PixelError::WrongBuffer { expected: 12, found: 3 };
        assert_eq!(error.to_string(), "wrong buffer: expected 12 bytes, found 3");
        let error = PixelError::UnknownFormat { first_bytes: vec![0, 255] };
        assert_eq!(error.to_string(), "not an image of a supported format: starts with 00 ff");
        let error = PixelError::TooManyPixels { width: 65535, height: 65535, limit: 10 };
        assert_eq!(error.to_string(), "65535x65535 is 4294836225 pixels, more than the limit of 10");
        let error = PixelError::truncated(ImageFormat::Png, "no IEND");
        assert_eq!(error.to_string(), "truncated PNG: no IEND");
    }
}
