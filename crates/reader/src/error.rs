//! Errors that occur when a pack is read. Each contains the pack's path.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use packds_format::{FormatError, manifest_version};
use packds_system::{Opt, counted};

/// An option of `packds convert`, for hints.
const CHUNK: Opt = Opt::new("chunk");

const DAMAGED: &str = "`packds verify` lists all damage; copy the pack again or convert it again";
/// For damage of a manifest, which no command repairs.
const OLDER: &str = "copy this file again; other versions of the set, such as photos.packs@1, can still be opened";

fn is_manifest(path: &Path) -> bool {
    path.file_name().and_then(std::ffi::OsStr::to_str).and_then(manifest_version).is_some()
}

/// Why a pack could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or mapped: it is missing, a directory, or not readable.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The file is not a pack, or is damaged.
    #[error("{}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        source: FormatError,
    },
    /// The folder has no manifest, so it is not a set of packs.
    #[error("{}: expected a pack, or a set of packs, found a folder without a manifest: `packds convert` makes packs from folders", path.display())]
    NotASet {
        /// The folder.
        path: PathBuf,
    },
    /// The set has no such version.
    #[error("{}: there is no version {version}: the latest is {latest}", path.display())]
    NoVersion {
        /// The set.
        path: PathBuf,
        /// The requested version.
        version: u64,
        /// The latest version.
        latest: u64,
    },
    /// The system could not read bytes of the file.
    #[error("{}: cannot read {} at byte {offset}: {source}", path.display(), counted(*len, "byte"))]
    Read {
        /// The file.
        path: PathBuf,
        /// The first requested byte.
        offset: u64,
        /// The number of requested bytes.
        len: u64,
        /// The system error.
        source: io::Error,
    },
    /// The length of the file changed after it was opened.
    #[error("{}: changed while it was read: its length was {} and is now {found}", path.display(), counted(*expected, "byte"))]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its length when it was opened.
        expected: u64,
        /// Its length now.
        found: u64,
    },
    /// The file was written to after it was opened, or only its modification time changed. The two cases cannot be
    /// distinguished.
    #[error("{}: changed after it was opened: its modification time differs", path.display())]
    Modified {
        /// The file.
        path: PathBuf,
    },
    /// A sample's bytes do not match its own checksum.
    #[error(
        "{}: sample {sample} (chunk {chunk}): checksum mismatch in bytes {}: expected {expected:#010x}, found {found:#010x}",
        path.display(),
        Places(places)
    )]
    Sample {
        /// The file.
        path: PathBuf,
        /// The sample.
        sample: u64,
        /// The chunk that contains it.
        chunk: u64,
        /// The positions of its items in the file, one per body field. For a compressed item, the block that contains
        /// it.
        places: Vec<Range<u64>>,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// The memory limit for buffers is too small for one step.
    #[error(
        "{}: reading it needs buffers of {}, but only {} is allowed: allow more memory, use smaller batches or a smaller window, or convert again with smaller chunks ({CHUNK})",
        path.display(), crate::human::bytes(*needed), crate::human::bytes(*given)
    )]
    Memory {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        given: u64,
        /// The minimum in bytes.
        needed: u64,
    },
    /// A condition for [`Pack::select`](crate::Pack::select) cannot be used.
    #[error("{}: condition: {problem}", path.display())]
    Condition {
        /// The file.
        path: PathBuf,
        /// The mistake, and what the pack has instead.
        problem: String,
    },
    /// Reading was stopped while the caller was waiting for data.
    #[error("{}: reading was stopped", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

/// Formats byte ranges for use in a sentence.
struct Places<'a>(&'a [Range<u64>]);

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Range { start, end }) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{start}..{end}")?;
        }
        Ok(())
    }
}

impl ReadError {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Format { path, .. }
            | Self::NotASet { path }
            | Self::NoVersion { path, .. }
            | Self::Read { path, .. }
            | Self::Changed { path, .. }
            | Self::Modified { path }
            | Self::Sample { path, .. }
            | Self::Memory { path, .. }
            | Self::Condition { path, .. }
            | Self::Stopped { path } => path,
        }
    }

    /// The problem, without the path.
    pub fn reason(&self) -> String {
        let whole = self.to_string();
        let prefix = format!("{}: ", self.path().display());
        whole.strip_prefix(&prefix).unwrap_or(&whole).to_owned()
    }

    /// Whether the file is the cause, not the caller or the system.
    pub fn is_data(&self) -> bool {
        match self {
            Self::Format { source, .. } => {
                !matches!(
                    source.of_file(),
                    FormatError::NoSuchField { .. }
                        | FormatError::OutOfRange { .. }
                        | FormatError::WrongUse(_)
                        | FormatError::Io(_)
                ) && !source.is_of_system()
            }
            Self::Changed { .. } | Self::Modified { .. } | Self::Sample { .. } => true,
            Self::Open { .. }
            | Self::NotASet { .. }
            | Self::NoVersion { .. }
            | Self::Read { .. }
            | Self::Memory { .. }
            | Self::Condition { .. }
            | Self::Stopped { .. } => false,
        }
    }

    /// How to fix it, if the message does not say so already.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("a pack is a single file: pass the .pack file, not its folder")
            }
            Self::Format { path, .. } if is_manifest(path) => Some(OLDER),
            Self::Format { source, .. } => match source.of_file() {
                FormatError::BadMagic { .. } | FormatError::TooShort { .. } => {
                    Some("`packds convert` makes packs from any format that `packds formats` lists")
                }
                FormatError::WrongLength { .. } => {
                    Some("copy the pack again: its length is not the length that was written")
                }
                FormatError::ChunkChecksum { .. }
                | FormatError::ChecksumMismatch { .. }
                | FormatError::SampleChecksum { .. } => Some(DAMAGED),
                _ => None,
            },
            Self::Sample { .. } => Some(DAMAGED),
            Self::Changed { .. } | Self::Modified { .. } => {
                Some("packs are immutable: write a new file and rename it over the old one")
            }
            Self::Open { .. }
            | Self::NotASet { .. }
            | Self::NoVersion { .. }
            | Self::Read { .. }
            | Self::Memory { .. }
            | Self::Condition { .. }
            | Self::Stopped { .. } => None,
        }
    }
}
