//! Finds, reads and unpacks the chunks of a Zarr array on all threads.

use packds_system::{to_u64, to_usize};
use std::collections::HashMap;
use std::path::PathBuf;

use super::array::{Array, Element};
use super::codec::{Sharding, ToBytes, unchecked};
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};
use crate::source::ListOptions;
use crate::source::grid::{MAX_BAND_BYTES, Placing, WINDOW_BYTES, is_plausible};
use crate::source::spool::Spool;
use crate::source::store::OpenFile;

/// Most unpacked bytes of a chunk's variable-length items.
const MAX_VARIABLE_BYTES: usize = 1 << 30;

/// Offset and length of each chunk in a shard; none if missing.
type Index = Vec<Option<(u64, u64)>>;

impl Array {
    /// Elements of the chunks that are unpacked individually.
    fn unit(&self) -> &[u64] {
        match &self.chain.to_bytes {
            ToBytes::Shard(sharding) => &sharding.chunk,
            _ => &self.chunk,
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> Result<u64, ConvertError> {
        let mut dims = self.shape.iter().skip(1);
        let bytes = dims.try_fold(self.element_bytes(), |n, dim| n.checked_mul(*dim));
        bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
            self.malformed(format!("rows of no bytes or too many: {:?}", self.shape))
        })
    }

    /// An error about the array.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(&self.folder, &self.path, reason)
    }

    /// Number of rows. Refuses sizes that these files cannot contain under any compression.
    pub(super) fn count(&self) -> Result<usize, ConvertError> {
        let rows = self.shape.first().copied().unwrap_or(0);
        let stored = stored_bytes(&self.folder, 0);
        let plausible = is_plausible(rows, self.row_bytes()?, stored);
        let n = usize::try_from(rows).ok().filter(|_| plausible);
        n.ok_or_else(|| {
            let shape = &self.shape;
            self.malformed(format!("{shape:?} elements cannot lie in {stored} bytes"))
        })
    }

    /// Unpacks bands of rows on all threads and calls `take` with each in order: the bytes of its rows or framed items, and the
    /// number of rows.
    pub(super) fn unpack(
        &self,
        options: &ListOptions,
        mut take: impl FnMut(Vec<u8>, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        self.count()?;
        let rows = self.shape.first().copied().unwrap_or(0);
        let step = self.unit().first().copied().unwrap_or(1);
        let band = self.row_bytes()?.checked_mul(step.min(rows));
        let band = band
            .filter(|bytes| *bytes <= MAX_BAND_BYTES)
            .ok_or_else(|| {
                ConvertError::unsupported(
                    &self.folder,
                    &self.path,
                    format!("chunks of {step} rows, which are more than 1 GiB"),
                    "write the array again with chunks of fewer samples",
                )
            })?;
        let fit = to_usize(WINDOW_BYTES / band.max(1)).max(1);
        let jobs = options.jobs.max(1).min(fit);
        let mut next = 0_u64;
        ordered(
            jobs,
            (jobs * 2).min(fit),
            || (),
            |(), start: u64| {
                let count = step.min(rows - start);
                self.band(start, count).map(|bytes| (bytes, count))
            },
            || {
                let start = next;
                next = next.saturating_add(step);
                Ok((start < rows).then_some(start))
            },
            |band: Result<(Vec<u8>, u64), ConvertError>| {
                let (bytes, count) = band?;
                take(bytes, count)?;
                Ok(Next::Continue)
            },
        )
    }

    /// Appends all rows to `spool`.
    pub(super) fn spool(
        &self,
        options: &ListOptions,
        spool: &mut Spool,
    ) -> Result<(), ConvertError> {
        self.unpack(options, |bytes, _| spool.append(&bytes).map(|_| ()))
    }

    /// The rows `start..start + count`. They start at a chunk boundary and lie in no other chunks.
    fn band(&self, start: u64, count: u64) -> Result<Vec<u8>, ConvertError> {
        let variable = matches!(self.element, Element::Text | Element::Bytes);
        let unit = self.unit().to_vec();
        let element = self.element_bytes();
        let mut out = Vec::new();
        if !variable {
            let len = to_usize(self.row_bytes()?.saturating_mul(count));
            out = self.fill.iter().copied().cycle().take(len).collect();
        }
        let mut indexes = HashMap::new();
        let mut shape = self.shape.clone();
        if let Some(rows) = shape.first_mut() {
            *rows = count;
        }
        let mut at = vec![0_u64; shape.len()];
        if let Some(first) = at.first_mut() {
            *first = start;
        }
        loop {
            let bad = |reason: String| self.malformed(format!("chunk at {at:?}: {reason}"));
            if let Some(bytes) = self.chunk_at(&at, &mut indexes).map_err(bad)? {
                if variable {
                    return Ok(bytes);
                }
                let mut inside = at.clone();
                if let Some(first) = inside.first_mut() {
                    *first = 0;
                }
                let placing = Placing {
                    chunk: &unit,
                    shape: &shape,
                    at: &inside,
                    element_bytes: element,
                };
                let placed = placing.copy(&bytes, &mut out);
                placed.ok_or_else(|| bad("lies outside the array".to_owned()))?;
            }
            // The next chunk of these rows.
            let mut dim = shape.len();
            loop {
                dim -= 1;
                if dim == 0 {
                    return Ok(out);
                }
                let (Some(at), Some(step), Some(end)) =
                    (at.get_mut(dim), unit.get(dim), shape.get(dim))
                else {
                    return Ok(out);
                };
                *at = at.saturating_add(*step);
                if *at < *end {
                    break;
                }
                *at = 0;
            }
        }
    }

    /// The unpacked chunk with its first element at `at`; none if never written.
    fn chunk_at(
        &self,
        at: &[u64],
        indexes: &mut HashMap<PathBuf, Option<Index>>,
    ) -> Result<Option<Vec<u8>>, String> {
        let stored = at.iter().zip(&self.chunk).map(|(at, chunk)| at / chunk);
        let path = self.chunk_path(&stored.collect::<Vec<_>>());
        let inner = match &self.chain.to_bytes {
            ToBytes::Shard(sharding) => &sharding.chain,
            _ => &self.chain,
        };
        let variable = inner.to_bytes == ToBytes::Variable;
        let element = to_usize(self.element_bytes());
        let bytes = self.unit().iter().product::<u64>() * self.element_bytes();
        let most = to_usize(bytes);
        let most = if variable { MAX_VARIABLE_BYTES } else { most };
        // Data that is much larger when packed is damaged.
        let most_stored = to_u64(most).saturating_mul(2) + (1 << 16);
        let ToBytes::Shard(sharding) = &self.chain.to_bytes else {
            let Some(file) = open(&path)? else {
                return Ok(None);
            };
            let stored = whole(&file, 0, file.bytes, most_stored)?;
            let decoded = self.chain.decode(stored, &self.chunk, element, most);
            return decoded.map(Some).map_err(|e| named(&path, e));
        };
        let index = match indexes.get(&path) {
            Some(index) => index,
            None => {
                let index = match open(&path)? {
                    Some(file) => Some(sharding.index(&file, &self.chunk)?),
                    None => None,
                };
                indexes.entry(path.clone()).or_insert(index)
            }
        };
        let Some(index) = index else {
            return Ok(None);
        };
        let mut number = 0_u64;
        for ((at, outer), inner) in at.iter().zip(&self.chunk).zip(&sharding.chunk) {
            number = number * (outer / inner) + at % outer / inner;
        }
        let number = to_usize(number);
        let Some((offset, len)) = index.get(number).copied().flatten() else {
            return Ok(None);
        };
        let Some(file) = open(&path)? else {
            return Ok(None);
        };
        let stored = whole(&file, offset, len, most_stored)?;
        let decoded = sharding
            .chain
            .decode(stored, &sharding.chunk, element, most);
        decoded.map(Some).map_err(|e| named(&path, e))
    }

    fn chunk_path(&self, numbers: &[u64]) -> PathBuf {
        let (prefix, separator) = self.key;
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let mut name = numbers.join(&separator.to_string());
        if !prefix.is_empty() {
            name = format!("{prefix}{separator}{name}");
        }
        self.folder.join(name)
    }
}

fn named(path: &std::path::Path, reason: String) -> String {
    format!("{}: {reason}", path.display())
}

/// The file of a chunk; none if missing.
fn open(path: &std::path::Path) -> Result<Option<OpenFile>, String> {
    match OpenFile::open(path) {
        Ok(file) => Ok(Some(file)),
        // A dangling link is not an unwritten chunk.
        Err(error) => match packds_system::is_regular(path) {
            Ok(false) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Err(named(path, error.to_string())),
        },
    }
}

fn whole(file: &OpenFile, offset: u64, len: u64, most: u64) -> Result<Vec<u8>, String> {
    if len > most {
        return Err(named(&file.path, format!("{len} bytes, more than {most}")));
    }
    let mut bytes = Vec::new();
    let read = file.append_at(offset, len, &mut bytes);
    read.map_err(|e| e.to_string()).map(|()| bytes)
}

impl Sharding {
    /// Reads the index of a shard of `shard` elements.
    fn index(&self, file: &OpenFile, shard: &[u64]) -> Result<Index, String> {
        let n = shard.iter().zip(&self.chunk);
        let n = n.map(|(outer, inner)| outer / inner);
        let n = n.clone().try_fold(1, u64::checked_mul);
        let checksum = if self.index_crc { 4 } else { 0 };
        let len = n.and_then(|n| n.checked_mul(16)?.checked_add(checksum));
        let len = len.filter(|len| *len <= file.bytes).ok_or_else(|| {
            let found = format!("no room for an index in {} bytes", file.bytes);
            named(&file.path, found)
        })?;
        let at = if self.index_at_end {
            file.bytes - len
        } else {
            0
        };
        let mut bytes = whole(file, at, len, len)?;
        if self.index_crc {
            bytes = unchecked(bytes).map_err(|e| named(&file.path, format!("the index: {e}")))?;
        }
        let entry = |entry: &[u8]| {
            let (offset, len) = entry.split_at_checked(8)?;
            let offset = u64::from_le_bytes(offset.try_into().ok()?);
            let len = u64::from_le_bytes(len.try_into().ok()?);
            (offset != u64::MAX || len != u64::MAX).then_some((offset, len))
        };
        Ok(bytes.chunks_exact(16).map(entry).collect())
    }
}

/// The `rows` items in a variable-length chunk.
pub(super) fn items(bytes: &[u8], rows: u64) -> Result<Vec<&[u8]>, String> {
    let rows = to_usize(rows);
    // The chunk was never written.
    if bytes.is_empty() {
        return Ok(vec![&[]; rows]);
    }
    let short = || format!("expected {rows} items, found less");
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

/// Bytes of all files below a folder.
fn stored_bytes(folder: &std::path::Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < 40 => stored_bytes(&entry.path(), depth + 1),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.fold(0, u64::saturating_add)
}
