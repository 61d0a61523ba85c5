//! What is told about tables and lists next to images.

use std::fmt;

use packds_system::counted;

use super::paths::lossy;
use crate::error::quoted;

/// A decision about tables or lists next to images. Paths are relative to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableNote {
    /// Lists of images give the splits.
    Splits {
        /// The lists.
        files: Vec<Vec<u8>>,
        /// Lists that only repeat the images of others.
        repeated: Vec<Vec<u8>>,
        /// Whether the lists have other columns, which are not read.
        has_columns: bool,
        /// Number of ignored images: those in no list.
        count: u64,
        /// The first ignored image.
        first: Vec<u8>,
    },
    /// Lists that are named like splits, but do not clearly divide the images.
    NotSplits {
        /// The lists.
        files: Vec<Vec<u8>>,
        /// Why they are not used.
        reason: String,
    },
}

impl fmt::Display for TableNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |files: &[Vec<u8>]| quoted(&files.iter().map(|file| lossy(file)).collect::<Vec<_>>());
        match self {
            Self::Splits { files, repeated, has_columns, count, first } => {
                write!(out, "the splits are those of {}", names(files))?;
                if *has_columns {
                    out.write_str(", of which only the first column is read")?;
                }
                if !repeated.is_empty() {
                    write!(out, "; {} only repeats their images", names(repeated))?;
                }
                if *count > 0 {
                    let label = if *count == 1 { "" } else { "first: " };
                    let images = counted(*count, "image");
                    write!(out, "; ignored {images} in no list ({label}'{}')", lossy(first))?;
                }
                Ok(())
            }
            Self::NotSplits { files, reason } => {
                write!(out, "{} were not used as splits: {reason}", names(files))
            }
        }
    }
}
