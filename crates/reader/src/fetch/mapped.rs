//! Reads items from the mapped file. Addresses are computed once, and there are no copies or system calls.

use packds_system::{lock, to_u64, to_usize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use packds_format::ChunkEntry;

use super::ahead::{Ahead, PIECE_BYTES, Pieces, is_cold, pieces_of};
use super::checks::{Checks, Checksums};
use super::direct::{Place, places};
use super::early::Early;
use super::{EpochFetch, FetchStats, ItemRun, Step, StepItems, chunk_memory};
use crate::plan::Route;
use crate::{Pack, ReadError};

/// Alignment of direct reads.
const PAGE: u64 = 4096;

/// The mapped pack of one loader.
#[derive(Debug)]
pub(super) struct MappedFetch {
    pub(super) pack: Arc<Pack>,
    pub(super) checks: Arc<Checks>,
    /// The positions of each body field's items in a chunk, if they follow from the sample number alone.
    places: Vec<Option<Place>>,
    /// Where the first chunk of a file begins. `None` for a set, whose shards begin at different offsets.
    first_chunk: Option<usize>,
    /// The number of bytes from one chunk to the next.
    chunk_bytes: usize,
    /// Whether checksums are verified per sample instead of per chunk.
    by_sample: bool,
    pub(super) positions: Vec<usize>,
    pub(super) pieces: Pieces,
}

impl MappedFetch {
    pub(super) fn new(pack: Arc<Pack>, checks: impl Into<Arc<Checks>>, positions: &[usize]) -> Result<Self, ReadError> {
        let checks = checks.into();
        let n_fields = pack.schema().body().count();
        if let Some(position) = positions.iter().find(|position| **position >= n_fields) {
            return Err(pack.error(packds_format::FormatError::OutOfRange {
                what: "body field",
                index: to_u64(*position),
                len: to_u64(n_fields),
            }));
        }
        let compressed = pack.schema().body().any(|(_, field)| !field.codec.is_none());
        // To verify a compressed sample against its own checksum, it would have to be decompressed twice.
        let by_sample = checks.has_sample_crcs() && (!compressed || checks.policy() == Checksums::Always);
        Ok(Self {
            places: pack.located(places(&pack))?,
            first_chunk: pack.one().map(|file| to_usize(file.header().data_off)),
            chunk_bytes: to_usize(pack.located(pack.part(0))?.file.header().chunk_stride),
            pieces: Pieces::new(&body(&pack)?),
            pack,
            checks,
            by_sample,
            positions: positions.to_vec(),
        })
    }

    /// Whether the position of each sample follows from its number, and each sample can be verified without the rest of
    /// its chunk.
    pub(super) fn reads_samples(&self) -> bool {
        let is_placed = self.places.iter().all(Option::is_some);
        let is_alone = self.by_sample || self.checks.policy() == Checksums::Off;
        is_placed && is_alone && !self.positions.is_empty()
    }

    /// An upper bound for the size of the pages that contain these samples, and the size of the pieces that contain
    /// them, both in bytes.
    pub(super) fn cost_of(&self, samples: &[u64]) -> (u64, u64) {
        let mut bytes = 0;
        let mut pieces = BTreeSet::new();
        for sample in samples {
            for range in self.pack.sample_places(*sample).unwrap_or_default() {
                bytes += range.end.saturating_sub(range.start) + 2 * PAGE;
                pieces.extend(pieces_of(&range));
            }
        }
        let pieces = to_u64(pieces.len());
        (bytes, pieces.saturating_mul(PIECE_BYTES))
    }

    pub(super) fn chunk_memory(&self) -> u64 {
        chunk_memory(&self.pack, &self.positions).unwrap_or(u64::MAX)
    }

    pub(super) fn stopped(&self) -> ReadError {
        ReadError::Stopped { path: self.pack.file_path().to_owned() }
    }

    /// The bytes of the file that a sample needs: its items, or all of its chunk if the chunk is verified as a whole.
    pub(super) fn needed(&self, sample: u64) -> Vec<Range<u64>> {
        if self.positions.is_empty() {
            return Vec::new();
        }
        let (chunk, index) = self.pack.geometry().locate(sample);
        if !self.by_sample && self.checks.policy() != Checksums::Off {
            let entry = self.pack.chunk_entry(chunk).ok();
            let range = |entry: ChunkEntry| entry.offset..entry.offset + entry.stored_len;
            return entry.map(range).into_iter().collect();
        }
        let strided = |position: &usize| self.range(self.place_of(*position)?, chunk, index, 1);
        let ranges: Option<Vec<Range<usize>>> = self.positions.iter().map(strided).collect();
        match ranges {
            Some(ranges) => ranges.into_iter().map(|range| to_u64(range.start)..to_u64(range.end)).collect(),
            None => self.pack.sample_places(sample).unwrap_or_default(),
        }
    }

    fn place_of(&self, position: usize) -> Option<Place> {
        self.places.get(position).copied().flatten()
    }

    /// The range of `n` items. `None` if it exceeds the address space.
    #[inline]
    fn range(&self, place: Place, chunk: u64, index: u32, n: u32) -> Option<Range<usize>> {
        let (within, len) = place.of(index, n)?;
        let (first, chunk) = match self.first_chunk {
            Some(first) => (first, chunk),
            None => {
                let (part, own) = self.pack.of_chunk(chunk).ok()?;
                (to_usize(part.offset.checked_add(part.file.header().data_off)?), own)
            }
        };
        let start = first.checked_add(to_usize(chunk).checked_mul(self.chunk_bytes)?)?.checked_add(within)?;
        Some(start..start.checked_add(len)?)
    }

    fn bytes(&self, range: Range<usize>) -> Result<&[u8], ReadError> {
        let out = || {
            self.pack.error(packds_format::FormatError::OutOfBounds {
                what: "item",
                offset: to_u64(range.start),
                size: to_u64(range.len()),
                len: self.pack.end_offset(),
            })
        };
        self.pack.bytes_at(&range)?.ok_or_else(out)
    }

    /// A lost page reads as zeros, which may cause a mismatch. In this case, the error reports the lost page.
    fn or_lost(&self, result: Result<(), ReadError>) -> Result<(), ReadError> {
        result.or_else(|error| self.pack.no_page_lost().and(Err(error)))
    }

    fn check_chunk(&self, chunk: u64) -> Result<(), ReadError> {
        let bytes = self.pack.chunk_bytes_unchecked(chunk).map_err(|e| self.pack.error(e))?;
        self.or_lost(self.checks.check_chunk(&self.pack, chunk, bytes))
    }

    #[cold]
    pub(super) fn check_sample(&self, sample: u64) -> Result<(), ReadError> {
        let mut items = Vec::new();
        for (number, _) in self.pack.schema().body() {
            let item = self.pack.item_unchecked(number, sample);
            items.push(item.map_err(|error| self.pack.error(error))?);
        }
        let places = || self.pack.sample_places(sample).unwrap_or_default();
        let items = items.iter().map(AsRef::as_ref);
        self.or_lost(self.checks.check_sample(&self.pack, sample, items, places))
    }
}

/// The range of offsets with all chunks. For a set, it also contains everything between the chunks of its shards.
fn body(pack: &Pack) -> Result<Range<u64>, ReadError> {
    let Some(file) = pack.one() else { return Ok(0..pack.end_offset()) };
    let start = file.header().data_off;
    let Some(last) = pack.n_chunks().checked_sub(1) else {
        return Ok(start..start);
    };
    let last = pack.chunk_entry(last).map_err(|error| pack.error(error))?;
    Ok(start..last.offset.saturating_add(last.stored_len))
}

#[derive(Debug)]
pub(super) struct MappedEpoch {
    fetch: Arc<MappedFetch>,
    stopped: AtomicBool,
    /// Reads the first step, if the pack is not in memory and this saves time.
    early: Option<Early>,
    /// Prefetches the other steps. `None` if nothing has to be loaded.
    ahead: Option<Ahead>,
}

impl MappedEpoch {
    /// If the pack is not in memory, the first step may use `memory_bytes`.
    pub(super) fn start(
        fetch: &Arc<MappedFetch>,
        plan: Arc<dyn Route>,
        first_step: u64,
        memory_bytes: u64,
    ) -> Result<Self, ReadError> {
        fetch.pack.check_unchanged()?;
        let early = match is_cold(fetch) {
            true => Early::start(fetch, &plan, first_step, memory_bytes),
            false => None,
        };
        let next = first_step + u64::from(early.is_some());
        Ok(Self {
            ahead: Ahead::start(fetch, plan, next, early.is_some()),
            early,
            fetch: Arc::clone(fetch),
            stopped: AtomicBool::new(false),
        })
    }
}

impl EpochFetch for MappedEpoch {
    fn step(&self, step: u64) -> Result<StepItems, ReadError> {
        if let Some(items) = self.early.as_ref().and_then(|early| early.take(step)) {
            // The first step was read separately. Prefetching starts now.
            if let Some(ahead) = &self.ahead {
                ahead.go();
            }
            return items;
        }
        if self.stopped.load(Ordering::Acquire) {
            return Err(self.fetch.stopped());
        }
        if let Some(ahead) = &self.ahead {
            ahead.wait(step)?;
        }
        Ok(StepItems(Step::Mapped(MappedStep { fetch: Arc::clone(&self.fetch), checked: Mutex::default() })))
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(early) = &self.early {
            early.stop();
        }
        if let Some(ahead) = &self.ahead {
            ahead.stop();
        }
    }

    fn stats(&self) -> FetchStats {
        let early = self.early.as_ref().map(Early::stats).unwrap_or_default();
        let ahead = self.ahead.as_ref().map(Ahead::stats).unwrap_or_default();
        self.fetch.checks.counts().plus(early).plus(ahead)
    }
}

#[derive(Debug)]
pub(super) struct MappedStep {
    fetch: Arc<MappedFetch>,
    /// Chunks that were verified for this step, if every step verifies again. A chunk is verified once per step for all
    /// of its samples.
    checked: Mutex<BTreeSet<u64>>,
}

impl MappedStep {
    #[inline]
    pub(super) fn item<'a>(
        &'a self,
        position: usize,
        sample: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], ReadError> {
        let fetch = &*self.fetch;
        let (chunk, index) = fetch.pack.geometry().locate(sample);
        if sample < fetch.pack.n_samples() && !fetch.checks.is_sample_done(sample, chunk) {
            self.check_item(sample, chunk)?;
        }
        if let Some(place) = fetch.place_of(position)
            && sample < fetch.pack.n_samples()
            && let Some(range) = fetch.range(place, chunk, index, 1)
        {
            return fetch.bytes(range);
        }
        self.other_item(position, sample, scratch)
    }

    #[cold]
    fn check_item(&self, sample: u64, chunk: u64) -> Result<(), ReadError> {
        if self.fetch.by_sample {
            return self.fetch.check_sample(sample);
        }
        self.check_chunk(chunk)
    }

    fn check_chunk(&self, chunk: u64) -> Result<(), ReadError> {
        // The lock is held while the checksum is computed. If several threads need a chunk, only one of them computes
        // it.
        let mut checked = lock(&self.checked);
        if self.fetch.checks.is_chunk_done(chunk) || checked.contains(&chunk) {
            return Ok(());
        }
        self.fetch.check_chunk(chunk)?;
        if self.fetch.checks.policy() == Checksums::Always {
            checked.insert(chunk);
        }
        Ok(())
    }

    /// An item that must be looked up in its chunk, or decompressed.
    fn other_item<'a>(&'a self, position: usize, sample: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], ReadError> {
        let pack = &self.fetch.pack;
        let field = pack.schema().body().nth(position).map(|(number, _)| number);
        let field = field.unwrap_or(usize::MAX);
        match pack.item_unchecked(field, sample).map_err(|error| pack.error(error))? {
            std::borrow::Cow::Borrowed(item) => Ok(item),
            std::borrow::Cow::Owned(item) => {
                *scratch = item;
                Ok(scratch)
            }
        }
    }

    pub(super) fn run(&self, position: usize, first_sample: u64, n: u32) -> Result<Option<ItemRun>, ReadError> {
        let fetch = &*self.fetch;
        let Some(place) = fetch.place_of(position) else {
            return Ok(None);
        };
        let geometry = fetch.pack.geometry();
        let end = first_sample.saturating_add(u64::from(n));
        let (chunk, index) = geometry.locate(first_sample);
        // If there is only one field, its chunks are contiguous, so the items of all chunks of a file form one array.
        let is_plain = fetch.places.len() == 1 && fetch.pack.one().is_some();
        let one_chunk = end <= geometry.first_sample(chunk.saturating_add(1));
        if n == 0 || end > fetch.pack.n_samples() || !(one_chunk || is_plain) {
            return Ok(None);
        }
        let Some(range) = fetch.range(place, chunk, index, n) else {
            return Ok(None);
        };
        self.check_run(first_sample..end)?;
        fetch.bytes(range.clone())?;
        let bytes = fetch.pack.shared_bytes_at(&range)?;
        Ok(bytes.map(|bytes| ItemRun { bytes, place: Some((Arc::clone(&fetch.pack), range)) }))
    }

    /// Verifies consecutive samples. A part of a chunk is verified sample by sample if possible. Otherwise, the whole
    /// chunk is verified against its checksum.
    fn check_run(&self, samples: Range<u64>) -> Result<(), ReadError> {
        let geometry = self.fetch.pack.geometry();
        let mut next = samples.start;
        while next < samples.end {
            let (chunk, _) = geometry.locate(next);
            let first = geometry.first_sample(chunk);
            let last = geometry.first_sample(chunk.saturating_add(1));
            let end = last.min(samples.end);
            if !self.fetch.checks.is_chunk_done(chunk) {
                if self.fetch.by_sample && (next > first || end < last) {
                    for sample in next..end {
                        if !self.fetch.checks.is_sample_done(sample, chunk) {
                            self.fetch.check_sample(sample)?;
                        }
                    }
                } else {
                    self.check_chunk(chunk)?;
                }
            }
            next = end;
        }
        Ok(())
    }

    pub(super) fn still_good(&self) -> Result<(), ReadError> {
        self.fetch.pack.still_good()
    }
}
