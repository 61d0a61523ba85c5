//! Finds, reads and unpacks the chunks of a Zarr array on all threads.

use packds_system::{to_u64, to_usize};
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use zarrs::array::{ChunkShape, FillValue, data_type};

use super::array::Array;
use super::codec::Sharding;
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::grid::{MAX_BAND_BYTES, Placing, bands, is_plausible};
use crate::source::store::OpenFile;

/// Maximum total size of a chunk's variable-length items, in bytes.
const MAX_VARIABLE_BYTES: usize = 1 << 30;

/// Offset and length of each chunk in a shard. `None` for missing chunks.
type Index = Vec<Option<(u64, u64)>>;

impl Array {
    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> Result<u64, ConvertError> {
        let mut dims = self.shape.iter().skip(1);
        let bytes = dims.try_fold(self.element_bytes(), |n, dim| n.checked_mul(*dim));
        bytes
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| self.malformed(format!("the rows of shape {:?} are empty or too large", self.shape)))
    }

    /// An error about the array.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(&self.folder, &self.path, reason)
    }

    /// Number of rows. Refuses row counts that files of this size cannot contain under any compression.
    pub(super) fn count(&self) -> Result<usize, ConvertError> {
        let rows = self.shape.first().copied().unwrap_or(0);
        let stored = stored_bytes(&self.folder, 0);
        let plausible = is_plausible(rows, self.row_bytes()?, stored);
        let n = usize::try_from(rows).ok().filter(|_| plausible);
        n.ok_or_else(|| {
            let shape = &self.shape;
            self.malformed(format!("an array of shape {shape:?} cannot be stored in {stored} bytes"))
        })
    }

    /// Unpacks bands of rows on all threads. Calls `take` for each band in order, with the bytes of its rows (or framed
    /// items), its first row and its number of rows.
    pub(super) fn unpack(
        &self,
        options: &ListOptions,
        mut take: impl FnMut(Vec<u8>, u64, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        self.count()?;
        let rows = self.shape.first().copied().unwrap_or(0);
        let step = self.unit().first().map_or(1, |step| step.get());
        let band = self.row_bytes()?.checked_mul(step.min(rows));
        let band = band.filter(|bytes| *bytes <= MAX_BAND_BYTES).ok_or_else(|| {
            let reason = format!("expected chunks of at most 1 GiB, found larger chunks of {step} rows");
            let hint = "write the array again with chunks of fewer samples";
            ConvertError::unsupported(&self.folder, &self.path, reason, hint)
        })?;
        let unpack = |start, count| self.band(start, count).map(|bytes| (bytes, start, count));
        bands((rows, step), band, options.jobs, unpack, |(bytes, start, count): (Vec<u8>, u64, u64)| {
            take(bytes, start, count)
        })
    }

    /// The rows `start..start + count`. They must start at a chunk boundary and end at or before the next one.
    pub(super) fn band(&self, start: u64, count: u64) -> Result<Vec<u8>, ConvertError> {
        let unit: Vec<u64> = self.unit().iter().map(|n| n.get()).collect();
        let element_bytes = self.element_bytes();
        let mut out = Vec::new();
        if !self.chain.is_variable() {
            let len = to_usize(self.row_bytes()?.saturating_mul(count));
            out = self.fill.as_ne_bytes().iter().copied().cycle().take(len).collect();
        }
        let mut indexes = HashMap::new();
        // The shape of an array with only these rows.
        let mut shape = self.shape.clone();
        let mut at = vec![0_u64; shape.len()];
        if let Some(rows) = shape.first_mut() {
            *rows = count;
        }
        loop {
            let place = placed(&at, start);
            let bad = |reason: String| self.malformed(format!("chunk at {place:?}: {reason}"));
            if let Some(bytes) = self.chunk_at(&place, &mut indexes).map_err(bad)? {
                if self.chain.is_variable() {
                    return Ok(bytes);
                }
                let placing = Placing { chunk: &unit, shape: &shape, at: &at, element_bytes };
                let placed = placing.copy(&bytes, &mut out);
                placed.ok_or_else(|| bad("lies outside the array".to_owned()))?;
            }
            if !advance(&mut at, &unit, &shape) {
                return Ok(out);
            }
        }
    }

    /// The files of the chunks whose first row is `start`.
    pub(super) fn chunk_files(&self, start: u64) -> Vec<PathBuf> {
        let unit: Vec<u64> = self.unit().iter().map(|n| n.get()).collect();
        let (mut at, mut files) = (vec![0_u64; self.shape.len()], Vec::new());
        loop {
            files.push(self.chunk_file(&placed(&at, start)));
            if !advance(&mut at, &unit, &self.shape) {
                return files;
            }
        }
    }

    /// The file of the chunk that contains the element `at`.
    fn chunk_file(&self, at: &[u64]) -> PathBuf {
        let stored: Vec<u64> = at.iter().zip(&self.chunk).map(|(at, chunk)| at / chunk.get()).collect();
        self.folder.join(self.keys.encode(&stored).as_str())
    }

    /// The unpacked chunk that starts at element `at`. `None` if it was never written.
    fn chunk_at(&self, at: &[u64], indexes: &mut HashMap<PathBuf, Index>) -> Result<Option<Vec<u8>>, String> {
        let path = self.chunk_file(at);
        let Some(file) = open(&path)? else {
            return Ok(None);
        };
        let (mut offset, mut len) = (0, file.bytes);
        if let Some(sharding) = &self.sharding {
            let index = match indexes.get(&path) {
                Some(index) => index,
                None => indexes.entry(path.clone()).or_insert(sharding.index(&file, &self.chunk)?),
            };
            let mut number = 0_u64;
            for ((at, outer), inner) in at.iter().zip(&self.chunk).zip(&sharding.chunk) {
                number = number * (outer.get() / inner.get()) + at % outer.get() / inner.get();
            }
            match index.get(to_usize(number)).copied().flatten() {
                Some(place) => (offset, len) = place,
                None => return Ok(None),
            }
        }
        let bytes = self.unit().iter().fold(self.element_bytes(), |n, dim| n.saturating_mul(dim.get()));
        let most = if self.chain.is_variable() { MAX_VARIABLE_BYTES } else { to_usize(bytes) };
        // A chunk that is stored much larger than it unpacks to is damaged.
        let stored = whole(&file, offset, len, to_u64(most).saturating_mul(2) + (1 << 16))?;
        let decoded = self.chain.decode(stored, self.unit(), (&self.data_type, &self.fill), most);
        decoded.map(Some).map_err(|e| named(&path, e))
    }
}

/// The position of a chunk in the array. `at` is its position in the rows from `start` on.
fn placed(at: &[u64], start: u64) -> Vec<u64> {
    let mut place = at.to_vec();
    if let Some(first) = place.first_mut() {
        *first = start;
    }
    place
}

/// Moves to the next chunk of the same rows. The position in the first dimension does not change. False at the end.
fn advance(at: &mut [u64], unit: &[u64], shape: &[u64]) -> bool {
    let mut dims = at.iter_mut().zip(unit).zip(shape).skip(1).rev();
    let next = dims.find_map(|((at, step), end)| {
        *at = at.saturating_add(*step);
        if *at < *end {
            return Some(());
        }
        *at = 0;
        None
    });
    next.is_some()
}

fn named(path: &Path, reason: String) -> String {
    format!("{}: {reason}", path.display())
}

/// The file of a chunk. `None` if it is missing.
fn open(path: &Path) -> Result<Option<OpenFile>, String> {
    match OpenFile::open(path) {
        Ok(file) => Ok(Some(file)),
        // A dangling link is an error, not an unwritten chunk.
        Err(error) => match packds_system::is_regular(path) {
            Ok(false) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Err(named(path, error.to_string())),
        },
    }
}

fn whole(file: &OpenFile, offset: u64, len: u64, most: u64) -> Result<Vec<u8>, String> {
    if len > most {
        return Err(named(&file.path, format!("expected at most {most} bytes, found {len}")));
    }
    file.bytes_at(offset, len).map_err(|e| e.to_string())
}

impl Sharding {
    /// Reads the index of a shard of `shard` elements.
    fn index(&self, file: &OpenFile, shard: &ChunkShape) -> Result<Index, String> {
        let counts = shard.iter().zip(&self.chunk).map(|(shard, chunk)| shard.get() / chunk.get());
        let shape: Option<ChunkShape> = counts.chain([2]).map(NonZeroU64::new).collect();
        let shape = shape.unwrap_or_default();
        let bytes = shape.iter().try_fold(8_u64, |n, dim| n.checked_mul(dim.get()));
        let bytes = bytes.filter(|bytes| *bytes <= MAX_BAND_BYTES).unwrap_or(u64::MAX);
        let len = bytes.saturating_add(if self.index_crc { 4 } else { 0 });
        if len > file.bytes {
            return Err(named(&file.path, format!("{} bytes are too few for the index", file.bytes)));
        }
        let at = if self.index_at_end { file.bytes - len } else { 0 };
        let stored = whole(file, at, len, len)?;
        let of_index = (&data_type::uint64(), &FillValue::from(u64::MAX));
        let index = self.index.decode(stored, &shape, of_index, to_usize(bytes));
        let index = index.map_err(|e| named(&file.path, format!("the index: {e}")))?;
        let entry = |entry: &[u8]| {
            let (offset, len) = entry.split_at_checked(8)?;
            let offset = u64::from_le_bytes(offset.try_into().ok()?);
            let len = u64::from_le_bytes(len.try_into().ok()?);
            (offset != u64::MAX || len != u64::MAX).then_some((offset, len))
        };
        Ok(index.chunks_exact(16).map(entry).collect())
    }
}

/// The `rows` items in a variable-length chunk.
pub(super) fn items(bytes: &[u8], rows: u64) -> Result<Vec<&[u8]>, String> {
    let rows = to_usize(rows);
    // A chunk without bytes was never written.
    if bytes.is_empty() {
        return Ok(vec![&[]; rows]);
    }
    let short = || format!("expected {rows} items, found fewer");
    let number = |bytes: &[u8]| {
        let number = bytes.try_into().map(u32::from_le_bytes).unwrap_or(0);
        to_usize(number)
    };
    let (count, mut rest) = bytes.split_at_checked(4).ok_or_else(short)?;
    if number(count) < rows {
        return Err(short());
    }
    let mut items = Vec::new();
    for _ in 0..rows {
        let (len, after) = rest.split_at_checked(4).ok_or_else(short)?;
        let (item, after) = after.split_at_checked(number(len)).ok_or_else(short)?;
        items.push(item);
        rest = after;
    }
    Ok(items)
}

/// Total bytes of all files below a folder.
fn stored_bytes(folder: &Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < 40 => stored_bytes(&entry.path(), depth + 1),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.fold(0, u64::saturating_add)
}
