//! Chunked datasets: chunks are read and unpacked on all threads, without the library.
//!
//! Supports the filters gzip, lzf, shuffle and fletcher32. The library handles all others.

use packds_system::{to_u64, to_usize};
use std::io::Read;

use ::hdf5::dataset::{ChunkInfo, FillValue, Layout};
use ::hdf5::filters::Filter;

use super::file::{H5Dataset, H5File};
use super::rows::{element_bytes, row_bytes};
use crate::error::ConvertError;
use crate::source::grid::{MAX_BAND_BYTES, Placing};

/// Maximum number of chunks to read here. Finding chunk `n` takes the library `n` steps, so the library reads datasets
/// with more chunks itself.
const MAX_CHUNKS: usize = 1 << 15;
/// The registered number of h5py's lzf filter.
const LZF: i32 = 32000;

/// An unpacking step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Deflate,
    Lzf,
    Shuffle,
    Fletcher32,
}

/// A dataset whose chunks can be unpacked here.
pub(super) struct Chunks {
    /// The steps in the order of packing. Unpacking starts with the last.
    steps: Vec<Step>,
    /// Elements of a chunk in each dimension.
    chunk: Vec<u64>,
    element_bytes: u64,
    /// The chunks, sorted by first row, then by position.
    infos: Vec<ChunkInfo>,
}

/// The size of a band of `rows` rows, in bytes. Refuses a band that exceeds [`MAX_BAND_BYTES`].
pub(super) fn check_band(file: &H5File, dataset: &H5Dataset, rows: usize) -> Result<u64, ConvertError> {
    let all = dataset.shape.first().copied().unwrap_or(0);
    let rows = to_u64(rows).min(all);
    let bytes = row_bytes(file, dataset)?.checked_mul(rows);
    bytes.filter(|bytes| *bytes <= MAX_BAND_BYTES).ok_or_else(|| {
        let reason = format!("expected chunks of at most 1 GiB, found larger chunks of {rows} rows");
        let hint = "rewrite the dataset with chunks of fewer samples (h5repack -l CHUNK=..., or h5py)";
        ConvertError::unsupported(&file.open.path, &dataset.path, reason, hint)
    })
}

impl Chunks {
    /// `None` if the library has to read the dataset.
    pub(super) fn of(file: &H5File, dataset: &H5Dataset) -> Result<Option<Self>, ConvertError> {
        let data = &dataset.dataset;
        if data.layout() != Layout::Chunked {
            return Ok(None);
        }
        let filters = data.filters();
        let steps = filters.iter().map(|filter| match filter {
            Filter::Deflate(_) => Some(Step::Deflate),
            Filter::Shuffle => Some(Step::Shuffle),
            Filter::Fletcher32 => Some(Step::Fletcher32),
            Filter::User(id, _) if *id == LZF => Some(Step::Lzf),
            _ => None,
        });
        let Some(steps) = steps.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let chunk = data.chunk().unwrap_or_default();
        let chunk: Vec<u64> = chunk.iter().filter_map(|n| u64::try_from(*n).ok()).collect();
        if chunk.len() != dataset.shape.len() || chunk.contains(&0) {
            return Err(dataset.malformed(file, format!("chunks of {chunk:?} elements do not fit the dataset")));
        }
        let n = data.num_chunks().unwrap_or(usize::MAX);
        let missing = chunk_count(&dataset.shape, &chunk) != u64::try_from(n).ok();
        let fill = data.dcpl().map(|plist| plist.fill_value_defined());
        let filled = !matches!(fill, Ok(FillValue::Default | FillValue::Undefined));
        // A user block shifts addresses, and library versions disagree on whether addresses include that shift.
        if n > MAX_CHUNKS || file.base > 0 || (missing && filled) {
            return Ok(None);
        }
        let mut infos = Vec::with_capacity(n);
        for idx in 0..n {
            let info = data.chunk_info(idx);
            infos.push(info.ok_or_else(|| dataset.malformed(file, format!("chunk {idx} is missing")))?);
        }
        infos.sort_by(|a, b| a.offset.cmp(&b.offset));
        let element_bytes = element_bytes(&dataset.element);
        let chunks = Self { steps, chunk, element_bytes, infos };
        chunks.chunk_bytes().map_err(|reason| dataset.malformed(file, reason))?;
        Ok(Some(chunks))
    }

    /// The rows that are unpacked together.
    pub(super) fn rows(&self) -> u64 {
        self.chunk.first().copied().unwrap_or(1)
    }

    /// Bytes of an unpacked chunk.
    fn chunk_bytes(&self) -> Result<usize, String> {
        let bytes = self.chunk.iter();
        let bytes =
            bytes.copied().try_fold(self.element_bytes, u64::checked_mul).filter(|bytes| *bytes <= MAX_BAND_BYTES);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| format!("chunks of {:?} elements are too large", self.chunk))
    }

    /// The rows `start..start + count`. They must start at a chunk boundary and end at or before the next one.
    pub(super) fn band(
        &self,
        (file, dataset): (&H5File, &H5Dataset),
        start: u64,
        count: u64,
    ) -> Result<Vec<u8>, ConvertError> {
        let row = row_bytes(file, dataset)?;
        let len = to_usize(row.saturating_mul(count));
        let mut out = vec![0; len];
        let from = self.infos.partition_point(|i| i.offset.first() < Some(&start));
        let infos = self.infos.get(from..).unwrap_or_default();
        for info in infos.iter().take_while(|i| i.offset.first() == Some(&start)) {
            let bad = |reason: String| {
                let place = format!("chunk at {:?}: {reason}", info.offset);
                dataset.malformed(file, place)
            };
            let bytes = self.chunk(file, info).map_err(bad)?;
            let mut shape = dataset.shape.clone();
            let mut at = info.offset.clone();
            if let (Some(rows), Some(first)) = (shape.first_mut(), at.first_mut()) {
                (*rows, *first) = (count, 0);
            }
            let placing = Placing { chunk: &self.chunk, shape: &shape, at: &at, element_bytes: self.element_bytes };
            let placed = placing.copy(&bytes, &mut out);
            placed.ok_or_else(|| bad("is outside the dataset".to_owned()))?;
        }
        Ok(out)
    }

    /// Reads a chunk and unpacks it.
    fn chunk(&self, file: &H5File, info: &ChunkInfo) -> Result<Vec<u8>, String> {
        let expected = self.chunk_bytes()?;
        let mut bytes = file.open.bytes_at(info.addr, info.size).map_err(|e| e.to_string())?;
        for (number, step) in self.steps.iter().enumerate().rev() {
            if info.filter_mask >> number.min(31) & 1 == 1 {
                continue;
            }
            bytes = match step {
                // The compressed data may include a checksum of 4 bytes.
                Step::Deflate => inflate(&bytes, expected + 4)?,
                Step::Lzf => unlzf(&bytes, expected + 4)?,
                Step::Shuffle => unshuffle(&bytes, self.element_bytes),
                Step::Fletcher32 => checked(bytes)?,
            };
        }
        if bytes.len() != expected {
            return Err(format!("expected {expected} bytes, found {}", bytes.len()));
        }
        Ok(bytes)
    }
}

/// Number of chunks if none is missing.
fn chunk_count(shape: &[u64], chunk: &[u64]) -> Option<u64> {
    let mut dims = shape.iter().zip(chunk);
    dims.try_fold(1, |n: u64, (shape, chunk)| n.checked_mul(shape.div_ceil(*chunk)))
}

/// Inflates a zlib stream to at most `most` bytes.
fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let limit = to_u64(most).saturating_add(1);
    let mut inflated = flate2::read::ZlibDecoder::new(bytes).take(limit);
    let read = inflated.read_to_end(&mut out);
    read.map_err(|e| format!("the gzip data is damaged: {e}"))?;
    Ok(out)
}

/// Restores elements from their shuffled bytes: the first bytes of all elements, then the second bytes, and so on.
fn unshuffle(bytes: &[u8], element: u64) -> Vec<u8> {
    let size = to_usize(element).max(1);
    let n = bytes.len() / size;
    if size == 1 || n <= 1 {
        return bytes.to_vec();
    }
    let mut out = vec![0; bytes.len()];
    for (byte, plane) in bytes.chunks_exact(n).take(size).enumerate() {
        for (element, value) in out.chunks_exact_mut(size).zip(plane) {
            if let Some(place) = element.get_mut(byte) {
                *place = *value;
            }
        }
    }
    // The incomplete element at the end is not shuffled.
    if let (Some(rest), Some(source)) = (out.get_mut(n * size..), bytes.get(n * size..)) {
        rest.copy_from_slice(source);
    }
    out
}

/// The bytes without their checksum. Fails if the checksum does not match.
fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let at = bytes.len().checked_sub(4);
    let at = at.ok_or("expected a checksum, found fewer than 4 bytes")?;
    let stored = bytes.split_off(at);
    let stored = stored.try_into().map(u32::from_le_bytes).unwrap_or(0);
    let found = fletcher32(&bytes);
    // Some library versions swapped the bytes of each 16-bit half, and all versions accept both orders.
    let swapped = (found & 0x00ff_00ff) << 8 | (found >> 8) & 0x00ff_00ff;
    if stored == found || stored == swapped {
        Ok(bytes)
    } else {
        Err(format!("expected the checksum {found:08x}, found {stored:08x}"))
    }
}

/// Fletcher's checksum of big-endian 16-bit words, with sums modulo 65535.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (0_u64, 0_u64);
    let fold = |sum: u64| (sum & 0xffff) + (sum >> 16);
    for words in bytes.chunks(720) {
        for word in words.chunks(2) {
            let first = word.first().copied().unwrap_or(0);
            let second = word.get(1).copied().unwrap_or(0);
            low += u64::from(first) << 8 | u64::from(second);
            high += low;
        }
        low = fold(low);
        high = fold(high);
    }
    let last = |sum: u64| u32::try_from(fold(fold(sum))).unwrap_or(0);
    last(high) << 16 | last(low)
}

/// Unpacks LibLZF data: literal runs, and copies of earlier bytes.
fn unlzf(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let short = || "the lzf data ends too early".to_owned();
    let mut out: Vec<u8> = Vec::new();
    let mut rest = bytes.iter().copied();
    while let Some(control) = rest.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next().ok_or_else(short)?);
            }
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(rest.next().ok_or_else(short)?);
            }
            let low = usize::from(rest.next().ok_or_else(short)?);
            let back = ((control & 31) << 8 | low) + 1;
            let start = out.len().checked_sub(back);
            let start = start.ok_or("the lzf data refers to bytes before its start")?;
            for idx in start..start + len + 2 {
                let byte = out.get(idx).copied().ok_or_else(short)?;
                out.push(byte);
            }
        }
        if out.len() > most {
            return Err(format!("the lzf data unpacks to more than {most} bytes"));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_bytes_come_back() {
        assert_eq!(unshuffle(&[1, 3, 2, 4, 9], 2), [1, 2, 3, 4, 9]);
        assert_eq!(unshuffle(&[1, 2, 3], 1), [1, 2, 3]);
    }

    #[test]
    fn lzf_copies_may_overlap_and_never_reach_before_the_start() {
        // "ab", then 6 bytes copied from 2 bytes back.
        assert_eq!(unlzf(&[1, b'a', b'b', 4 << 5, 1], 99), Ok(b"abababab".to_vec()));
        assert!(unlzf(&[1, b'a', b'b', 4 << 5, 2], 99).is_err());
        assert!(unlzf(&[5, b'a'], 99).is_err());
        assert!(unlzf(&[1, b'a', b'b', 4 << 5, 1], 5).is_err());
    }

    #[test]
    fn a_checksum_that_is_another_is_refused() {
        let mut bytes = vec![1, 2, 3, 4, 5];
        let sum = fletcher32(&bytes);
        bytes.extend(sum.to_le_bytes());
        assert_eq!(checked(bytes.clone()), Ok(vec![1, 2, 3, 4, 5]));
        bytes[0] ^= 1;
        assert!(checked(bytes).is_err());
    }
}
