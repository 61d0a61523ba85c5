//! Chunks: uncompressed, compressed as a whole, in batches of samples, or sample by sample.

use std::path::Path;

use packds_system::{to_u64, to_usize};

use super::super::index_json::{self, INDEX, Unpacked};
use super::super::packed::{Packed, Piece};
use super::super::sized_samples::{check, offsets, words};
use super::super::store::OpenFile;
use super::{Chunk, Config};
use crate::error::ConvertError;
use crate::literal::python;
use crate::sample::MAX_FILE_BYTES;

/// The first bytes of a chunk that is compressed in batches.
const BATCHED: &[u8] = b"LDFZ01\0\0";
/// Bytes before its offsets: these bytes, the version, flags, and the numbers of samples, samples per batch, and batches.
const BATCHED_HEAD: u64 = 24;
/// Bytes that describe a batch.
const BATCH_BYTES: u64 = 24;
/// The last bytes of a chunk whose rows are in an Arrow table.
const ARROW: &[u8] = b"LDARW01\0";
/// Maximum size of the samples in a batch, in bytes.
const MAX_BATCH: u64 = 2 * MAX_FILE_BYTES;

/// What is compressed in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrap {
    Nothing,
    Chunk,
    Sample,
}

impl Wrap {
    /// How a chunk with this name is compressed. Batches are recognized by their first bytes.
    pub(super) fn of(config: &Config, name: &str) -> Self {
        match (&config.compression, config.compression_level.as_deref()) {
            (None, _) | (_, Some("batch")) => Self::Nothing,
            (Some(_), Some("sample")) => Self::Sample,
            // Chunks of rows in Arrow tables are not compressed as a whole, and have a shorter name.
            (Some(compression), _) if name.ends_with(&format!(".{compression}.bin")) => Self::Chunk,
            (Some(_), _) => Self::Nothing,
        }
    }

    /// Opens a chunk. Returns it unpacked, with the offsets of its samples.
    pub(super) fn open(
        self,
        path: &Path,
        chunk: &Chunk,
        unpacked: &mut Unpacked<'_>,
    ) -> Result<(OpenFile, Vec<u64>), ConvertError> {
        let table = chunk.chunk_size.saturating_add(2).saturating_mul(4);
        if self == Self::Chunk {
            let file = unpacked.file(path, chunk.chunk_bytes.saturating_add(table))?;
            let offsets = offsets(&file, chunk.chunk_size)?;
            return Ok((file, offsets));
        }
        let file = index_json::open(path)?;
        let file = match file.bytes.checked_sub(table) == Some(chunk.chunk_bytes) {
            true => file,
            false => index_json::of_length(file, "bytes", chunk.chunk_bytes)?,
        };
        let start = file.part("first bytes", 0, file.bytes.min(BATCHED_HEAD))?;
        if start.starts_with(BATCHED) {
            return Batched { file: &file, start: &start }.unpack(chunk.chunk_size, unpacked);
        }
        let offsets = offsets(&file, chunk.chunk_size)?;
        if self == Self::Sample {
            return unpack_samples(&file, &offsets, unpacked);
        }
        refuse_table(&file, &offsets)?;
        Ok((file, offsets))
    }
}

/// Refuses a chunk whose samples are only in an Arrow table after them.
fn refuse_table(file: &OpenFile, offsets: &[u64]) -> Result<(), ConvertError> {
    let tail = to_u64(ARROW.len());
    let has_table = file.bytes >= tail && file.part("last bytes", file.bytes - tail, tail)? == ARROW;
    if !has_table || offsets.first() != offsets.last() {
        return Ok(());
    }
    let folder = python(file.path.parent().unwrap_or(Path::new(".")));
    let reason = "the rows are in an Arrow table, which LitData writes for rows of strings, numbers, bytes and lists";
    let hint = format!(
        "write them to Parquet in Python, and pass the new folder: import pathlib, pyarrow.parquet; from litdata.streaming.item_loader import load_arrow_footer_table as table; d = pathlib.Path({folder}).resolve(); out = d.with_name(d.name + '-parquet'); out.mkdir(); [pyarrow.parquet.write_table(table(p.read_bytes()), out / f'{{p.stem}}.parquet') for p in d.glob('*.bin')]"
    );
    Err(ConvertError::unsupported(&file.path, "", reason, hint))
}

/// Unpacks `packed` to at most `limit` bytes.
fn unpacked(file: &OpenFile, place: &str, packed: &[u8], limit: u64) -> Result<Vec<u8>, ConvertError> {
    use std::io::Read;
    let damaged =
        |error: std::io::Error| ConvertError::malformed(&file.path, place, format!("cannot be unpacked: {error}"));
    let mut bytes = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(damaged)?;
    decoder.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(damaged)?;
    if to_u64(bytes.len()) > limit {
        let reason = format!("expected at most {limit} unpacked bytes, found more");
        return Err(ConvertError::malformed(&file.path, place, reason));
    }
    Ok(bytes)
}

/// Unpacks a chunk whose samples are compressed one by one.
fn unpack_samples(
    file: &OpenFile,
    offsets: &[u64],
    into: &mut Unpacked<'_>,
) -> Result<(OpenFile, Vec<u64>), ConvertError> {
    let (mut ends, mut end) = (vec![0], 0);
    let samples = into.shard(&file.path, |spool| {
        let number = spool.unpacks(Packed::Parts(file.path.as_path().into()));
        for (sample, pair) in offsets.windows(2).enumerate() {
            let &[start, packed_end] = pair else { continue };
            let place = format!("sample {sample}");
            let rows = packed_end.saturating_sub(start);
            let packed = file.part(&place, start, rows)?;
            let bytes = unpacked(file, &place, &packed, MAX_BATCH)?;
            spool.begin(Piece { packed: number, place: 0, start, rows });
            spool.append(&bytes)?;
            end += to_u64(bytes.len());
            ends.push(end);
        }
        Ok(())
    })?;
    Ok((samples, ends))
}

/// A chunk that is compressed in batches: a head, the offsets of the unpacked samples, a table of batches, and the batches.
struct Batched<'a> {
    file: &'a OpenFile,
    /// The head.
    start: &'a [u8],
}

impl Batched<'_> {
    fn unpack(&self, n: u64, into: &mut Unpacked<'_>) -> Result<(OpenFile, Vec<u64>), ConvertError> {
        let wrong = |reason: String| ConvertError::malformed(&self.file.path, "", reason);
        let head = words(self.start);
        let &[_, _, version, found, _, n_batches] = head.as_slice() else {
            return Err(wrong(format!("expected {BATCHED_HEAD} bytes before the samples, found {}", self.start.len())));
        };
        // The flags, in the upper half of the word, were never used.
        if version != 1 {
            return Err(wrong(format!("expected version 1 of a chunk in batches, found {version}")));
        }
        if found != n {
            return Err(wrong(format!("expected {n} samples, as in '{INDEX}', found {found}")));
        }
        let table = (found + 1) * 4;
        let offsets = words(&self.file.part("table of samples", BATCHED_HEAD, table)?);
        let batches = self.file.part("table of batches", BATCHED_HEAD + table, n_batches * BATCH_BYTES)?;
        let file = into.shard(&self.file.path, |spool| {
            let file = spool.unpacks(Packed::Parts(self.file.path.as_path().into()));
            for (number, batch) in batches.chunks_exact(to_usize(BATCH_BYTES)).enumerate() {
                let place = format!("batch {number}");
                let &[_, _, low, high, packed, bytes] = words(batch).as_slice() else { continue };
                let (start, rows) = (high << 32 | low, packed);
                let packed = self.file.part(&place, start, rows)?;
                let unpacked = unpacked(self.file, &place, &packed, bytes.min(MAX_BATCH))?;
                if to_u64(unpacked.len()) != bytes {
                    let reason = format!("expected {bytes} unpacked bytes, found {}", unpacked.len());
                    return Err(ConvertError::malformed(&self.file.path, &place, reason));
                }
                spool.begin(Piece { packed: file, place: 0, start, rows });
                spool.append(&unpacked)?;
            }
            Ok(())
        })?;
        check(&file, &offsets, 0)?;
        Ok((file, offsets))
    }
}
