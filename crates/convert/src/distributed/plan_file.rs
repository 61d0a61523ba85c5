//! The file of a plan: a header and one part per shard, each compressed JSON with a checksum. A machine reads the header
//! and its own part.
//!
//! The file starts with [`MAGIC`] and the version. Then come the frames: the header, and the parts in the order of the
//! shards. An index follows with the offset (u64), the length (u64) and the CRC32C (u32) of each frame. The last
//! [`TRAILER_BYTES`] bytes are the offset of the index (u64), the number of frames (u64), the CRC32C of the index (u32)
//! and the last half of the magic. All numbers are little-endian.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use packds_format::{Uuid, crc32c};
use packds_system::{counted, open_regular, to_u64, to_usize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settled::Settled;
use crate::convert::Identity;
use crate::error::ConvertError;
use crate::provenance::VERSION;
use crate::source::part::{Part, Shared};

const MAGIC: &[u8; 8] = b"PACKPLAN";
const FILE_VERSION: u32 = 1;
const HEAD_BYTES: u64 = 12;
const ENTRY_BYTES: usize = 20;
const TRAILER_BYTES: usize = 24;
/// Maximum size of a frame's JSON. A plan of few shards for many samples needs more memory per shard than this allows.
const MAX_FRAME_BYTES: u64 = 8 << 30;
/// JSON of paths and sizes shrinks to a tenth at this level, and compressing takes less time than formatting.
const LEVEL: i32 = 3;

/// The plan of a set: which samples each shard gets, and how they are converted.
#[derive(Debug)]
pub struct ShardPlan {
    pub(super) path: PathBuf,
    file: File,
    index: Vec<Entry>,
    pub(super) header: Header,
}

/// What all shards of a plan share.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// The version of the program, because another one may write other bytes.
    pub(super) tool: String,
    pub(super) n_samples: u64,
    pub(super) dataset_uuid: [u8; 16],
    pub(super) pack_uuid: [u8; 16],
    pub(super) settled: Settled,
    pub(super) shared: Shared,
    /// The part of the provenance that does not depend on the samples.
    pub(super) origin: Value,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    offset: u64,
    bytes: u64,
    crc32c: u32,
}

impl Header {
    /// The identity of the set, or of the single pack that has its samples.
    pub(super) fn identity(&self) -> Identity {
        let (dataset_uuid, pack_uuid) = (Uuid(self.dataset_uuid), Uuid(self.pack_uuid));
        Identity { dataset_uuid, pack_uuid, origin: self.origin.clone() }
    }
}

impl ShardPlan {
    /// Opens a plan. Reads the header and the index, but no part.
    ///
    /// # Errors
    /// [`ConvertError::SourceMalformed`] if the file is no plan or is damaged, and [`ConvertError::Options`] if another
    /// version of packds made it.
    pub fn open(path: &Path) -> Result<Self, ConvertError> {
        let failed = |place: &str, reason: String| ConvertError::malformed(path, place, reason);
        let file = open_regular(path).map_err(ConvertError::io(path))?;
        let bytes = file.metadata().map_err(ConvertError::io(path))?.len();
        let read = |offset: u64, n: u64| read_at(&file, bytes, offset, n).map_err(|reason| failed("", reason));
        let head = read(0, HEAD_BYTES.min(bytes))?;
        if !head.starts_with(MAGIC) {
            let hint = "pass the file that `packds plan` wrote";
            return Err(ConvertError::contradictory(path, "", "this is no plan of a set", hint));
        }
        if head.get(8..12) != Some(&FILE_VERSION.to_le_bytes()) {
            return Err(failed("version", "a newer packds made this plan: use that version".to_owned()));
        }
        let truncated = || failed("", "the plan is cut off, or has bytes after its end: copy it again".to_owned());
        let trailer_at =
            bytes.checked_sub(to_u64(TRAILER_BYTES)).filter(|at| *at >= HEAD_BYTES).ok_or_else(truncated)?;
        let trailer = read(trailer_at, to_u64(TRAILER_BYTES))?;
        let number = |at: usize| trailer.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (index_at, n) = (number(0), number(8));
        let len = n.checked_mul(to_u64(ENTRY_BYTES)).ok_or_else(truncated)?;
        if trailer.get(20..) != MAGIC.get(4..) || index_at.checked_add(len) != Some(trailer_at) {
            return Err(truncated());
        }
        let index = read(index_at, len)?;
        if trailer.get(16..20) != Some(&crc32c(&index).to_le_bytes()) {
            return Err(failed("index", DAMAGED.to_owned()));
        }
        let index = index.chunks_exact(ENTRY_BYTES).filter_map(Entry::parse).collect::<Vec<_>>();
        let first = *index.first().ok_or_else(truncated)?;
        let header: Header = parse_frame(path, &file, bytes, first, "header")?;
        if header.tool != VERSION {
            let reason = format!("{}: packds {} made this plan, but this is {VERSION}", path.display(), header.tool);
            let hint = "use the same version on all machines, because the bytes of a shard depend on it";
            return Err(ConvertError::options(reason, hint));
        }
        Ok(Self { path: path.to_owned(), file, index, header })
    }

    /// Number of shards.
    #[must_use]
    pub fn n_shards(&self) -> u64 {
        to_u64(self.index.len()) - 1
    }

    /// Number of samples in all shards, with those that turn out to be bad.
    #[must_use]
    pub fn n_samples(&self) -> u64 {
        self.header.n_samples
    }

    /// The samples of a shard.
    pub(super) fn part(&self, shard: u64) -> Result<Part, ConvertError> {
        let entry = self.index.get(to_usize(shard).saturating_add(1)).ok_or_else(|| {
            let reason = format!("the plan has {}, so there is no shard {shard}", counted(self.n_shards(), "shard"));
            ConvertError::options(reason, format!("shards are numbered from 0 to {}", self.n_shards() - 1))
        })?;
        let bytes = self.file.metadata().map_err(ConvertError::io(&self.path))?.len();
        parse_frame(&self.path, &self.file, bytes, *entry, &format!("shard {shard}"))
    }
}

const DAMAGED: &str = "the checksum is wrong: copy the plan again, or make it again";

impl Entry {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let crc32c = u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?);
        Some(Self { offset: number(0)?, bytes: number(8)?, crc32c })
    }
}

fn read_at(file: &File, len: u64, offset: u64, n: u64) -> Result<Vec<u8>, String> {
    if offset.checked_add(n).is_none_or(|end| end > len) {
        return Err(format!("bytes {offset}..{} are outside the {len} of the file", offset.saturating_add(n)));
    }
    let mut bytes = vec![0; to_usize(n)];
    file.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn parse_frame<T: DeserializeOwned>(
    path: &Path,
    file: &File,
    len: u64,
    entry: Entry,
    what: &str,
) -> Result<T, ConvertError> {
    let failed = |reason: String| ConvertError::malformed(path, what, reason);
    let packed = read_at(file, len, entry.offset, entry.bytes).map_err(failed)?;
    if crc32c(&packed) != entry.crc32c {
        return Err(failed(DAMAGED.to_owned()));
    }
    let mut json = Vec::new();
    let unpacked = zstd::Decoder::new(packed.as_slice());
    let unpacked = unpacked.and_then(|decoder| decoder.take(MAX_FRAME_BYTES).read_to_end(&mut json));
    unpacked.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&json).map_err(|error| failed(error.to_string()))
}

/// A frame: compressed JSON.
pub(super) fn frame(content: &impl Serialize) -> std::io::Result<Vec<u8>> {
    zstd::encode_all(serde_json::to_vec(content)?.as_slice(), LEVEL)
}

/// Writes a plan: the header, then the parts in order.
pub(super) struct PlanWriter<W> {
    target: W,
    at: u64,
    index: Vec<u8>,
}

impl<W: Write> PlanWriter<W> {
    pub(super) fn new(mut target: W, header: &Header) -> std::io::Result<Self> {
        target.write_all(MAGIC)?;
        target.write_all(&FILE_VERSION.to_le_bytes())?;
        let mut writer = Self { target, at: HEAD_BYTES, index: Vec::new() };
        writer.push(&frame(header)?)?;
        Ok(writer)
    }

    /// Appends a frame made by [`frame`].
    pub(super) fn push(&mut self, packed: &[u8]) -> std::io::Result<()> {
        self.target.write_all(packed)?;
        let bytes = to_u64(packed.len());
        self.index.extend_from_slice(&self.at.to_le_bytes());
        self.index.extend_from_slice(&bytes.to_le_bytes());
        self.index.extend_from_slice(&crc32c(packed).to_le_bytes());
        self.at += bytes;
        Ok(())
    }

    /// Writes the index and the trailer. Returns the target and the size of the file.
    pub(super) fn finish(mut self) -> std::io::Result<(W, u64)> {
        self.target.write_all(&self.index)?;
        self.target.write_all(&self.at.to_le_bytes())?;
        self.target.write_all(&to_u64(self.index.len() / ENTRY_BYTES).to_le_bytes())?;
        self.target.write_all(&crc32c(&self.index).to_le_bytes())?;
        self.target.write_all(MAGIC.get(4..).unwrap_or_default())?;
        self.target.flush()?;
        let bytes = self.at + to_u64(self.index.len() + TRAILER_BYTES);
        Ok((self.target, bytes))
    }
}
