//! Errors: what is wrong with a pack and where, what was expected and what was found.

use crate::footer::SectionTag;
use packds_system::counted;

/// Why a pack could not be written, opened or read.
///
/// Each variant shows what caused the error. Most variants mean that the file is damaged or invalid. The other causes
/// are a limit ([`FormatError::LimitExceeded`]), the caller ([`FormatError::WrongUse`], [`FormatError::NoSuchField`],
/// [`FormatError::OutOfRange`]) and the writer's target ([`FormatError::Io`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file is shorter than the smallest possible pack.
    #[error("file is too short to be a pack: expected at least {expected} bytes, found {found}")]
    TooShort {
        /// The minimum length of a pack.
        expected: u64,
        /// The file's length.
        found: u64,
    },
    /// The file does not start with the magic number.
    #[error("not a pack: expected the file to start with {expected:02x?}, found {found:02x?}")]
    BadMagic {
        /// The magic number.
        expected: [u8; 8],
        /// What was found.
        found: [u8; 8],
    },
    /// The pack has a major version that this crate does not read.
    #[error("pack has format version {found}, but this reader supports {expected}: read it with a newer packds")]
    UnsupportedVersion {
        /// The major version that this crate reads.
        expected: u16,
        /// The major version of the file.
        found: u16,
    },
    /// The pack requires a feature that this reader does not support.
    #[error(
        "pack uses features that this reader does not support (unknown required bits {unknown:#018x}): read it with a newer packds"
    )]
    UnknownFeatures {
        /// The unknown bits.
        unknown: u64,
    },
    /// There is no trailer: writing was interrupted, or the end of the file is missing.
    #[error(
        "pack is unfinished or truncated: no trailer at byte {offset} (expected it to end with {expected:02x?}, found {found:02x?}); convert it again or copy it again"
    )]
    NoTrailer {
        /// Where the trailer was expected.
        offset: u64,
        /// The end magic.
        expected: [u8; 8],
        /// What was found.
        found: [u8; 8],
    },
    /// The trailer's file length differs from the actual one.
    #[error("pack is truncated or extended: its trailer says {expected} bytes, but the file has {found}")]
    WrongLength {
        /// The length in the trailer.
        expected: u64,
        /// The file's length.
        found: u64,
    },
    /// Header and trailer come from different packs.
    #[error("pack is spliced: its header has the uuid {expected}, but its trailer has {found}")]
    UuidMismatch {
        /// The id in the header.
        expected: String,
        /// The id in the trailer.
        found: String,
    },
    /// A checksum does not match.
    #[error("{what}: checksum mismatch at byte {offset}: expected {expected:#010x}, found {found:#010x}")]
    ChecksumMismatch {
        /// The part of the file.
        what: String,
        /// Where it starts.
        offset: u64,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// A chunk's bytes do not match its checksum.
    #[error(
        "chunk {chunk} (samples {first_sample}..{end_sample}): checksum mismatch at byte {offset}: expected {expected:#010x}, found {found:#010x}"
    )]
    ChunkChecksum {
        /// The chunk.
        chunk: u64,
        /// Its first sample.
        first_sample: u64,
        /// One past its last sample.
        end_sample: u64,
        /// Where it starts in the file.
        offset: u64,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// A sample's bytes do not match its own checksum.
    #[error("sample {sample} (chunk {chunk}): checksum mismatch: expected {expected:#010x}, found {found:#010x}")]
    SampleChecksum {
        /// The sample.
        sample: u64,
        /// The chunk that contains it.
        chunk: u64,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// Bytes that must be zero are not.
    #[error("{what}: byte {offset} must be zero, found {found:#04x}")]
    NotZero {
        /// The part of the file.
        what: &'static str,
        /// The first nonzero byte.
        offset: u64,
        /// Its value.
        found: u8,
    },
    /// A field of the file has an invalid value.
    #[error("{what} at byte {offset}: expected {expected}, found {found}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// Where it is.
        offset: u64,
        /// The valid values.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// A part extends beyond the bytes that must contain it.
    #[error("{what}: bytes {offset}..{end} are outside the {} available", counted(*len, "byte"), end = offset.saturating_add(*size))]
    OutOfBounds {
        /// The part.
        what: &'static str,
        /// Its start.
        offset: u64,
        /// Its length.
        size: u64,
        /// Length of the containing bytes.
        len: u64,
    },
    /// The pack has a required section that this reader does not know.
    #[error("footer has a required section {tag} that this reader does not know: read it with a newer packds")]
    UnknownSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// A mandatory section is missing.
    #[error("footer has no {tag} section")]
    MissingSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// A section occurs twice.
    #[error("footer has two {tag} sections")]
    DuplicateSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// A JSON section is invalid.
    #[error("{what}: invalid JSON: {reason}")]
    BadJson {
        /// The section.
        what: &'static str,
        /// The parser's reason, with line and column.
        reason: String,
    },
    /// The schema is inconsistent.
    #[error("schema: field `{field}`: {reason}")]
    BadSchema {
        /// The field.
        field: String,
        /// The reason.
        reason: String,
    },
    /// Compressed bytes do not decompress to the expected items.
    #[error("cannot decompress block {block} of field `{field}` in chunk {chunk}: {reason}")]
    BadBlock {
        /// The chunk.
        chunk: u64,
        /// The field.
        field: String,
        /// The block within the chunk.
        block: u32,
        /// Expected and actual size, or the decompressor's message.
        reason: String,
    },
    /// An item does not match the columns that describe it.
    #[error("chunk {chunk}, sample {sample}, field `{field}`: {reason}")]
    BadItem {
        /// The chunk.
        chunk: u64,
        /// The sample.
        sample: u64,
        /// The field.
        field: String,
        /// What was expected and found.
        reason: String,
    },
    /// The paths section is invalid.
    #[error("paths, group {group}: {reason}")]
    BadPaths {
        /// The group of paths.
        group: u64,
        /// The reason.
        reason: String,
    },
    /// The manifest of a set is invalid.
    #[error("manifest: {reason}")]
    BadManifest {
        /// What was expected and found.
        reason: String,
    },
    /// A shard of a set is damaged, or it is not the file that the manifest describes. Numbers and offsets are those of
    /// the shard.
    #[error("shard '{shard}': {source}")]
    Shard {
        /// Its path in the folder of the set.
        shard: String,
        /// What is wrong.
        source: Box<FormatError>,
    },
    /// A shard cannot be opened.
    #[error("cannot open: {0}")]
    Open(std::io::Error),
    /// A shard is not the file that the manifest describes.
    #[error("not the file in the manifest: expected {what} {expected}, found {found}: restore the original file")]
    OtherShard {
        /// The property that differs.
        what: &'static str,
        /// Its value in the manifest.
        expected: String,
        /// Its value in the file.
        found: String,
    },
    /// A size exceeds the reader's [`Limits`](crate::Limits).
    #[error("{what}: {found} is more than the limit of {limit}: raise the limit if the file is trusted")]
    LimitExceeded {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The value found.
        found: u64,
    },
    /// The schema has no field of this name.
    #[error("pack has no field `{name}`: it has {known}")]
    NoSuchField {
        /// The requested name.
        name: String,
        /// The names of all fields.
        known: String,
    },
    /// The number of a sample, chunk, block or field is too large.
    #[error("{what} {index} is out of range: there are {len}")]
    OutOfRange {
        /// What is numbered, for example samples or chunks.
        what: &'static str,
        /// The requested number.
        index: u64,
        /// How many there are.
        len: u64,
    },
    /// An API was used incorrectly.
    #[error("{0}")]
    WrongUse(String),
    /// Writing failed.
    #[error("cannot write the pack: {0}")]
    Io(#[from] std::io::Error),
}

impl FormatError {
    /// The error of the file itself: for a shard, without the name of the shard.
    #[must_use]
    pub fn of_file(&self) -> &Self {
        match self {
            Self::Shard { source, .. } => source.of_file(),
            error => error,
        }
    }

    /// Whether a shard cannot be opened although it is there, for example because too many files are open. A set without
    /// one of its shards is damaged.
    #[must_use]
    pub fn is_of_system(&self) -> bool {
        matches!(self.of_file(), Self::Open(error) if error.kind() != std::io::ErrorKind::NotFound)
    }

    pub(crate) fn bad_value(what: &'static str, offset: u64, expected: impl ToString, found: impl ToString) -> Self {
        Self::BadValue { what, offset, expected: expected.to_string(), found: found.to_string() }
    }

    /// Checks that a field of the file has the only valid value. `None` means that the file is too short for the field.
    pub(crate) fn check_value<T: PartialEq + Default + ToString>(
        what: &'static str,
        offset: u64,
        expected: T,
        found: impl Into<Option<T>>,
    ) -> Result<(), Self> {
        match found.into() {
            Some(found) if found == expected => Ok(()),
            found => Err(Self::bad_value(what, offset, expected, found.unwrap_or_default())),
        }
    }

    /// Checks a size against its limit.
    pub(crate) fn check_limit(what: &'static str, limit: u64, found: u64) -> Result<(), Self> {
        if found > limit { Err(Self::LimitExceeded { what, limit, found }) } else { Ok(()) }
    }

    /// Checks that an index is less than the number of items.
    pub(crate) fn check_index(what: &'static str, index: u64, len: u64) -> Result<(), Self> {
        if index >= len { Err(Self::OutOfRange { what, index, len }) } else { Ok(()) }
    }

    /// Compares a checksum. Skipped when fuzzing, because random input would never pass.
    pub(crate) fn check_crc(what: impl ToString, offset: u64, expected: u32, found: u32) -> Result<(), Self> {
        if expected == found || cfg!(fuzzing) {
            return Ok(());
        }
        Err(Self::ChecksumMismatch { what: what.to_string(), offset, expected, found })
    }

    /// Converts an error of the JSON parser.
    pub(crate) fn json(what: &'static str) -> impl Fn(serde_json::Error) -> Self {
        move |error| Self::BadJson { what, reason: error.to_string() }
    }

    pub(crate) fn schema(field: &str, reason: impl Into<String>) -> Self {
        Self::BadSchema { field: field.to_owned(), reason: reason.into() }
    }
}
