//! Codecs: block compression. See docs/reference/format.md, "Codecs and filters".

#[cfg_attr(feature = "zstd", path = "codec/zstd.rs")]
#[cfg_attr(not(feature = "zstd"), path = "codec/left_out.rs")]
mod zstd;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::FormatError;
use crate::filter::Filter;

pub(crate) use zstd::{compress, decompress};

/// Required feature: at least one field is compressed with Zstandard.
pub const FEATURE_ZSTD: u64 = 2;
/// The required features of all codecs.
pub(crate) const FEATURES: u64 = FEATURE_ZSTD;

/// How a field is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Codec {
    /// Not compressed.
    #[default]
    None,
    /// Zstandard (RFC 8878): each block of whole samples is one frame, after an optional pixel filter.
    Zstd {
        /// Compression level, 1 to 19.
        level: i32,
        /// The pixel filter applied before compression.
        filter: Filter,
    },
}

impl Codec {
    /// Whether blocks are stored uncompressed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The pixel filter.
    #[must_use]
    pub fn filter(&self) -> Filter {
        match self {
            Self::None => Filter::NONE,
            Self::Zstd { filter, .. } => *filter,
        }
    }

    /// The same compression without a pixel filter.
    #[must_use]
    pub fn without_filter(self) -> Self {
        match self {
            Self::None => self,
            Self::Zstd { level, .. } => Self::Zstd { level, filter: Filter::NONE },
        }
    }

    /// The number of the codec in a part entry.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd { .. } => 1,
        }
    }

    /// The required feature of this codec. 0 if there is none.
    pub(crate) const fn feature(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Zstd { .. } => FEATURE_ZSTD,
        }
    }

    /// Checks the parameters. Returns an error message if they are wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Zstd { level, .. } if !(1..=19).contains(level) => {
                Err(format!("the zstd level must be 1 to 19, found {level}"))
            }
            _ => Ok(()),
        }
    }

    /// Compresses one block. The result is deterministic.
    pub(crate) fn compress(&self, raw: &[u8]) -> Result<Vec<u8>, FormatError> {
        match self {
            Self::None => Ok(raw.to_vec()),
            Self::Zstd { level, .. } => compress(raw, *level),
        }
    }

    /// Decompresses one block to exactly `expected` bytes in `out`. Returns an error message if that fails.
    pub(crate) fn decompress(&self, block: &[u8], expected: u64, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::None => Err("the field is not compressed".to_owned()),
            Self::Zstd { .. } => decompress(block, expected, out),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Zstd { level, .. } => write!(f, "zstd level {level}"),
        }
    }
}
