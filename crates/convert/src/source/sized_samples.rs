//! The samples of a shard: a number of samples, a table of offsets, and in each sample the lengths of its values before the values.
//! MosaicML Streaming and LitData have this layout.

use packds_system::to_u64;

use super::declared::u32_at;
use super::gather::Raw;
use super::index_json::INDEX;
use super::store::OpenFile;
use crate::error::ConvertError;

/// Bytes of each number.
const WORD: u64 = 4;

/// The samples of a shard.
#[derive(Debug)]
pub(super) struct SizedSamples<'a> {
    pub(super) file: &'a OpenFile,
    /// The index of `file` among the source's files.
    pub(super) number: u32,
    /// The names of the values.
    pub(super) names: &'a [String],
    /// The length of each value in bytes. `None` if each sample states it.
    pub(super) lengths: &'a [Option<u64>],
}

/// Where each of `n` samples starts, and where the last one ends. The file begins with their number and these offsets.
pub(super) fn offsets(file: &OpenFile, n: u64) -> Result<Vec<u64>, ConvertError> {
    let head = file.part("number of samples", 0, WORD)?;
    let found = u32_at(&head, 0).map_or(0, u64::from);
    if found != n {
        let reason = format!("expected {n} samples, as in '{INDEX}', found {found}");
        return Err(ConvertError::malformed(&file.path, "", reason));
    }
    let table = file.part("table of samples", WORD, (found + 1) * WORD)?;
    let offsets = words(&table);
    check(file, &offsets, (found + 2) * WORD)?;
    Ok(offsets)
}

/// Little-endian numbers.
pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).collect()
}

/// Refuses offsets that decrease or lead out of the file. The first must be at least `start`.
pub(super) fn check(file: &OpenFile, offsets: &[u64], start: u64) -> Result<(), ConvertError> {
    let last = offsets.last().copied().unwrap_or(0);
    if offsets.is_sorted() && offsets.first().is_some_and(|first| *first >= start) && last <= file.bytes {
        return Ok(());
    }
    let reason = format!("expected increasing offsets from {start} to {}, found others (last: {last})", file.bytes);
    Err(ConvertError::malformed(&file.path, "table of samples", reason))
}

impl SizedSamples<'_> {
    /// Passes each value of each sample to `value`, with its index in the sample.
    pub(super) fn read(
        &self,
        offsets: &[u64],
        mut value: impl FnMut(usize, &Raw<'_>) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        for (sample, pair) in offsets.windows(2).enumerate() {
            if let &[start, end] = pair {
                self.sample(sample, (start, end.saturating_sub(start)), &mut value)?;
            }
        }
        Ok(())
    }

    fn sample(
        &self,
        sample: usize,
        (start, bytes): (u64, u64),
        value: &mut impl FnMut(usize, &Raw<'_>) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let place = format!("sample {sample}");
        let wrong = |expected: u64| {
            let reason = format!("expected {expected} bytes for its values, found {bytes}");
            ConvertError::malformed(&self.file.path, &place, reason)
        };
        let n_stated = to_u64(self.lengths.iter().filter(|length| length.is_none()).count());
        let head = n_stated.saturating_mul(WORD);
        if bytes < head {
            return Err(wrong(head));
        }
        let mut stated = words(&self.file.part(&place, start, head)?).into_iter();
        let lengths = self.lengths.iter().map(|length| length.or_else(|| stated.next()).unwrap_or(0));
        let lengths: Vec<u64> = lengths.collect();
        let total = lengths.iter().try_fold(head, |sum, n| sum.checked_add(*n)).unwrap_or(u64::MAX);
        if total != bytes {
            return Err(wrong(total));
        }
        let mut offset = start.saturating_add(head);
        for (number, (name, bytes)) in self.names.iter().zip(lengths).enumerate() {
            let name = format!("{place}: {name}");
            let path = self.file.path.as_path();
            value(number, &Raw { file: self.file, number: self.number, path, name: name.as_bytes(), offset, bytes })?;
            offset = offset.saturating_add(bytes);
        }
        Ok(())
    }
}
