//! Everything that can be wrong with a pack, with the place, what was expected and what was found.

use crate::footer::SectionTag;

/// Why a pack could not be written, opened or read.
///
/// The variants name who is to blame: the file (most of them), a limit ([`FormatError::LimitExceeded`]), the caller
/// ([`FormatError::WrongUse`], [`FormatError::NoSuchField`], [`FormatError::OutOfRange`]) or the writer's target
/// ([`FormatError::Io`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Fewer bytes than the smallest possible pack.
    #[error("file is too short to be a pack: expected at least {expected} bytes, found {found}")]
    TooShort {
        /// The least a pack needs.
        expected: u64,
        /// The file's length.
        found: u64,
    },
    /// The first eight bytes are not a pack's.
    #[error("not a pack: expected the file to start with {expected:02x?}, found {found:02x?}")]
    BadMagic {
        /// The magic number.
        expected: [u8; 8],
        /// What stands there.
        found: [u8; 8],
    },
    /// Written by a later major version.
    #[error(
        "pack has format version {found}, this reader knows {expected}: read it with a newer packds"
    )]
    UnsupportedVersion {
        /// The major version this crate reads.
        expected: u16,
        /// The file's.
        found: u16,
    },
    /// Uses a feature this reader must understand and does not.
    #[error(
        "pack uses features this reader does not know: unknown required bits {unknown:#018x}: read it with a newer packds"
    )]
    UnknownFeatures {
        /// The unknown bits.
        unknown: u64,
    },
    /// No trailer at the end: the writer died, or the end of the file is gone.
    #[error(
        "pack is unfinished or truncated: no trailer at byte {offset}: expected it to end with {expected:02x?}, found {found:02x?}: convert it again or copy it again"
    )]
    NoTrailer {
        /// Where the trailer's magic was looked for.
        offset: u64,
        /// The end magic.
        expected: [u8; 8],
        /// What stands there.
        found: [u8; 8],
    },
    /// The trailer's file length is not the file's.
    #[error(
        "pack is truncated or extended: its trailer says {expected} bytes, the file has {found}"
    )]
    WrongLength {
        /// What the trailer says.
        expected: u64,
        /// The file's length.
        found: u64,
    },
    /// Header and trailer come from different packs.
    #[error("pack is spliced: header has uuid {expected}, trailer has {found}")]
    UuidMismatch {
        /// The header's.
        expected: String,
        /// The trailer's.
        found: String,
    },
    /// A checksum does not match.
    #[error(
        "{what}: checksum mismatch at byte {offset}: expected {expected:#010x}, found {found:#010x}"
    )]
    ChecksumMismatch {
        /// Which part of the file.
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
    #[error(
        "sample {sample} (chunk {chunk}): checksum mismatch: expected {expected:#010x}, found {found:#010x}"
    )]
    SampleChecksum {
        /// The sample.
        sample: u64,
        /// The chunk it lies in.
        chunk: u64,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes found.
        found: u32,
    },
    /// Bytes that must be zero are not.
    #[error("{what}: byte {offset} must be zero, found {found:#04x}")]
    NotZero {
        /// Which part of the file.
        what: &'static str,
        /// The first such byte.
        offset: u64,
        /// Its value.
        found: u8,
    },
    /// A number in the file has a value it cannot have.
    #[error("{what} at byte {offset}: expected {expected}, found {found}")]
    BadValue {
        /// Which number.
        what: &'static str,
        /// Where it stands.
        offset: u64,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A part reaches outside the place it may lie in.
    #[error("{what}: bytes {offset}..{end} lie outside the {len} bytes they belong in", end = offset.saturating_add(*size))]
    OutOfBounds {
        /// Which part.
        what: &'static str,
        /// Its start.
        offset: u64,
        /// Its length.
        size: u64,
        /// The length of what must contain it.
        len: u64,
    },
    /// A section the reader must understand and does not.
    #[error(
        "footer has a section {tag} that this reader must understand and does not: read it with a newer packds"
    )]
    UnknownSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// A section that every pack has is missing.
    #[error("footer has no {tag} section")]
    MissingSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// The same section twice.
    #[error("footer has two {tag} sections")]
    DuplicateSection {
        /// The section's tag.
        tag: SectionTag,
    },
    /// A JSON section that does not parse.
    #[error("{what} is not the JSON expected: {reason}")]
    BadJson {
        /// Which section.
        what: &'static str,
        /// The parser's reason, with line and column.
        reason: String,
    },
    /// A schema that contradicts itself.
    #[error("schema: field `{field}`: {reason}")]
    BadSchema {
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Compressed bytes that do not decompress to what they should.
    #[error("chunk {chunk}, field `{field}`, block {block}: cannot decompress: {reason}")]
    BadBlock {
        /// The chunk.
        chunk: u64,
        /// The field.
        field: String,
        /// The block in the chunk.
        block: u32,
        /// Expected and found sizes, or the decompressor's reason.
        reason: String,
    },
    /// An item that is not what the columns that describe it say.
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
    /// The paths section does not hold what it should.
    #[error("paths, group {group}: {reason}")]
    BadPaths {
        /// The group of paths.
        group: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// More than the reader's [`Limits`](crate::Limits) allow.
    #[error(
        "{what} is {found}, more than the limit of {limit}: raise the limit if the file is trusted"
    )]
    LimitExceeded {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The value found.
        found: u64,
    },
    /// A field name that the schema does not have.
    #[error("pack has no field `{name}`: it has {known}")]
    NoSuchField {
        /// The name asked for.
        name: String,
        /// The fields there are.
        known: String,
    },
    /// A sample, chunk or field number beyond the last.
    #[error("{what} {index} is out of range: there are {len}")]
    OutOfRange {
        /// What was asked for.
        what: &'static str,
        /// Its number.
        index: u64,
        /// How many there are.
        len: u64,
    },
    /// The writer was called in a way it cannot follow.
    #[error("{0}")]
    WrongUse(String),
    /// The writer's target failed.
    #[error("cannot write the pack: {0}")]
    Io(#[from] std::io::Error),
}

impl FormatError {
    pub(crate) fn bad_value(
        what: &'static str,
        offset: u64,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::BadValue {
            what,
            offset,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    pub(crate) fn schema(field: &str, reason: impl Into<String>) -> Self {
        Self::BadSchema {
            field: field.to_owned(),
            reason: reason.into(),
        }
    }
}
