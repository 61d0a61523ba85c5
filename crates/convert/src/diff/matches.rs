//! Finds the samples that two packs have in common.
//!
//! Samples are matched by hashes of 16 bytes: of their paths, or of their items in the body. If several samples have the
//! same hash, the first one of one pack is matched with the first one of the other, the second with the second, and so
//! on.

use packds_format::FormatError;

use super::fields::Common;
use super::{BATCH, NONE, index};
use crate::edit::Taken;
use crate::error::ConvertError;
use crate::pipeline::Observer;

type Hash = [u8; 16];

/// The first 16 bytes of the hash of some bytes.
pub(super) fn hash(bytes: &[u8]) -> Hash {
    let mut short = [0; 16];
    short.copy_from_slice(blake3::hash(bytes).as_bytes().first_chunk::<16>().unwrap_or(&[0; 16]));
    short
}

/// The samples that both packs have.
pub(super) struct Matches {
    /// The first samples, which have the same numbers in both packs.
    n_same: u64,
    /// For each later sample of the second pack, its number in the first one.
    rest: Vec<u64>,
    /// For each later sample of the first pack, whether the second one has it.
    is_known: Vec<bool>,
}

impl Matches {
    /// The number in the first pack of a sample of the second one.
    pub(super) fn of(&self, sample: u64) -> Option<u64> {
        match sample.checked_sub(self.n_same) {
            None => Some(sample),
            Some(place) => self.rest.get(index(place)).copied().filter(|sample| *sample != NONE),
        }
    }

    /// The samples that only the first pack has.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = u64> + '_ {
        (self.n_same..).zip(&self.is_known).filter(|(_, is_known)| !**is_known).map(|(sample, _)| sample)
    }

    /// Matches the hashes of the later samples.
    fn new(n_same: u64, old: &[Hash], new: &[Hash]) -> Self {
        let sorted = |hashes: &[Hash]| {
            let mut places: Vec<u64> = (0..).take(hashes.len()).collect();
            places.sort_unstable_by_key(|place| (hashes.get(index(*place)), *place));
            places
        };
        let (mut is_known, mut rest) = (vec![false; old.len()], vec![NONE; new.len()]);
        let mut left = sorted(old).into_iter().peekable();
        for place in sorted(new) {
            let hash = new.get(index(place));
            while left.next_if(|before| old.get(index(*before)) < hash).is_some() {}
            let Some(before) = left.next_if(|before| old.get(index(*before)) == hash) else { continue };
            if let (Some(is_known), Some(slot)) = (is_known.get_mut(index(before)), rest.get_mut(index(place))) {
                *is_known = true;
                *slot = n_same + before;
            }
        }
        Self { n_same, rest, is_known }
    }
}

/// Matches samples by their paths.
pub(super) fn by_path<D: AsRef<[u8]>>(
    [one, two]: &[Taken<'_, D>; 2],
    observer: &dyn Observer,
) -> Result<Matches, ConvertError> {
    let mut old: Vec<Hash> = Vec::new();
    each_path(one, observer, |_, path| old.push(path))?;
    let (mut n_same, mut new) = (0_u64, Vec::new());
    each_path(two, observer, |sample, path| {
        if sample == n_same && old.get(index(sample)) == Some(&path) {
            n_same += 1;
        } else {
            new.push(path);
        }
    })?;
    old.drain(..index(n_same));
    Ok(Matches::new(n_same, &old, &new))
}

fn each_path<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    observer: &dyn Observer,
    mut each: impl FnMut(u64, Hash),
) -> Result<(), ConvertError> {
    taken
        .pack
        .for_each_path(|sample, path| {
            if sample.is_multiple_of(BATCH) {
                observer.check()?;
            }
            each(sample, hash(path));
            Ok::<_, Located<ConvertError>>(())
        })
        .map_err(|error| error.of(taken))
}

/// An error of the caller, or of a pack.
enum Located<E> {
    Caller(E),
    Pack(FormatError),
}

impl From<FormatError> for Located<ConvertError> {
    fn from(error: FormatError) -> Self {
        Self::Pack(error)
    }
}

impl From<ConvertError> for Located<ConvertError> {
    fn from(error: ConvertError) -> Self {
        Self::Caller(error)
    }
}

impl Located<ConvertError> {
    fn of<D: AsRef<[u8]>>(self, taken: &Taken<'_, D>) -> ConvertError {
        match self {
            Self::Caller(error) => error,
            Self::Pack(error) => taken.located(error),
        }
    }
}

/// Whether two chunks have equal bytes, by their checksums.
pub(super) fn are_equal<D: AsRef<[u8]>>(
    [one, two]: &[Taken<'_, D>; 2],
    old: u64,
    new: u64,
) -> Result<bool, ConvertError> {
    let old = one.pack.chunk_entry(old).map_err(|error| one.located(error))?;
    let new = two.pack.chunk_entry(new).map_err(|error| two.located(error))?;
    let key = |entry: &packds_format::ChunkEntry| (entry.stored_len, entry.crc32c, entry.n_samples);
    Ok(key(&old) == key(&new))
}

/// Matches samples by their items in the body. Leading chunks with equal checksums are not read.
pub(super) fn by_content<D: AsRef<[u8]>>(
    packs: &[Taken<'_, D>; 2],
    common: &Common,
    observer: &dyn Observer,
) -> Result<Matches, ConvertError> {
    let [one, two] = packs;
    let (mut n_same, mut chunk) = (0, 0);
    while common.same_bytes && chunk < one.pack.n_chunks().min(two.pack.n_chunks()) && are_equal(packs, chunk, chunk)? {
        n_same += u64::from(one.pack.geometry().samples_in(chunk));
        chunk += 1;
    }
    let fields = |pack: usize| common.body.iter().map(|pair| pair.numbers[pack]).collect::<Vec<_>>();
    let old = hashes(one, &fields(0), n_same, observer)?;
    let new = hashes(two, &fields(1), n_same, observer)?;
    Ok(Matches::new(n_same, &old, &new))
}

/// A hash of these items of each sample from `first` on.
fn hashes<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    fields: &[usize],
    first: u64,
    observer: &dyn Observer,
) -> Result<Vec<Hash>, ConvertError> {
    let n = taken.pack.n_samples();
    let mut all: Vec<Hash> = Vec::new();
    let mut start = first;
    while start < n {
        observer.check()?;
        let end = n.min(start + BATCH);
        let before = all.len();
        all.resize(before + index(end - start), [0; 16]);
        let batch = all.get_mut(before..).unwrap_or_default();
        for field in fields {
            let samples = start..end;
            let mut slots = batch.iter_mut();
            let read = taken.pack.for_each_item_in(*field, samples, |_, item| {
                if let Some(slot) = slots.next() {
                    *slot = hash(&[&slot[..], &hash(item)].concat());
                }
                Ok::<_, FormatError>(())
            });
            read.map_err(|error| taken.located(error))?;
        }
        start = end;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_are_matched_in_order() {
        let hashes = |text: &str| -> Vec<Hash> { text.bytes().map(|byte| hash(&[byte])).collect() };
        let found = Matches::new(3, &hashes("abcab"), &hashes("bxabbaa"));
        let of: Vec<Option<u64>> = (0..10).map(|sample| found.of(sample)).collect();
        let rest = [Some(4), None, Some(3), Some(7), None, Some(6), None];
        assert_eq!(of, [&[Some(0), Some(1), Some(2)][..], &rest].concat());
        assert_eq!(found.unmatched().collect::<Vec<_>>(), [5]);
    }
}
