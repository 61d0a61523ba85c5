//! Tracks which bytes are valid. By default, the checksum of each sample or chunk is computed once.
//!
//! A failure is final for the loader. Even if a second read matched the checksum, memory or disk would be unreliable,
//! so the bytes still could not be trusted.

use packds_system::lock;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use packds_format::{Bitmap, Crc32c, Role, crc32c};

use super::FetchStats;
use crate::{Pack, ReadError};

/// When a loader verifies the bytes that it delivers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checksums {
    /// Each time bytes are delivered.
    Always,
    /// The first time a sample or chunk is delivered.
    #[default]
    FirstTouch,
    /// Never.
    Off,
}

packds_system::named!(Checksums { Always = "always", FirstTouch = "first_touch", Off = "off" });

/// Records which parts of its pack a loader has verified. Call the methods only with the pack that the record was made
/// for.
#[derive(Debug)]
pub(super) struct Checks {
    policy: Checksums,
    /// The column of sample checksums, if there is one.
    sample_crcs: Option<usize>,
    samples: Bitmap,
    chunks: Bitmap,
    /// Whether `bad` has entries. Most loaders never need to lock `bad`.
    any_bad: AtomicBool,
    /// The failed checks, with the computed checksums.
    bad: Mutex<BTreeMap<Unit, u32>>,
    bytes_checked: AtomicU64,
    chunks_checked: AtomicU64,
    samples_checked: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Chunk(u64),
    Sample(u64),
}

impl Checks {
    /// A record in which nothing is verified yet. If the column of sample checksums will be used, this verifies the
    /// column itself.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the column is damaged.
    pub(super) fn new(pack: &Pack, policy: Checksums) -> Result<Self, ReadError> {
        let column = pack.schema().by_role(Role::SampleCrc32c, None);
        let mut sample_crcs = None;
        if let Some((number, _)) = column.filter(|_| policy != Checksums::Off) {
            // The column of a shard is verified when its first sample is.
            if pack.one().is_some() {
                pack.column(number).map_err(|error| pack.error(error))?;
            }
            sample_crcs = Some(number);
        }
        // The file size limits the size of both bitmaps, because each checksum takes 4 bytes in the file.
        let bits = |wanted: bool, n| if wanted { n } else { 0 };
        let first_touch = policy == Checksums::FirstTouch;
        Ok(Self {
            policy,
            sample_crcs,
            samples: Bitmap::new(bits(first_touch && sample_crcs.is_some(), pack.n_samples())),
            chunks: Bitmap::new(bits(first_touch, pack.n_chunks())),
            any_bad: AtomicBool::new(false),
            bad: Mutex::default(),
            bytes_checked: AtomicU64::new(0),
            chunks_checked: AtomicU64::new(0),
            samples_checked: AtomicU64::new(0),
        })
    }

    pub(super) fn policy(&self) -> Checksums {
        self.policy
    }

    /// Whether single samples can be verified.
    pub(super) fn has_sample_crcs(&self) -> bool {
        self.sample_crcs.is_some()
    }

    /// Whether this sample needs no more verification. `chunk` is its chunk.
    #[inline]
    pub(super) fn is_sample_done(&self, sample: u64, chunk: u64) -> bool {
        match self.policy {
            Checksums::Off => true,
            Checksums::FirstTouch => self.samples.get(sample) || self.chunks.get(chunk),
            Checksums::Always => false,
        }
    }

    #[inline]
    pub(super) fn is_chunk_done(&self, chunk: u64) -> bool {
        match self.policy {
            Checksums::Off => true,
            Checksums::FirstTouch => self.chunks.get(chunk),
            Checksums::Always => false,
        }
    }

    /// Verifies all stored bytes of a chunk against its checksum, even if they were verified before.
    ///
    /// # Errors
    /// [`ReadError::Format`] with [`FormatError::ChunkChecksum`].
    pub(super) fn check_chunk(&self, pack: &Pack, chunk: u64, bytes: &[u8]) -> Result<(), ReadError> {
        let entry = pack.chunk_entry(chunk).map_err(|error| pack.error(error))?;
        let computed = crc32c(bytes);
        count(&self.chunks_checked, 1);
        count(&self.bytes_checked, bytes.len());
        if let Some(found) = self.verdict(Unit::Chunk(chunk), entry.crc32c, computed) {
            return pack.located(pack.compare_chunk(chunk, found));
        }
        self.chunks.set(chunk);
        Ok(())
    }

    /// Verifies all decoded body items of a sample, in schema order, against its checksum, even if they were verified
    /// before. `places` are their positions in the file. Does nothing if samples have no checksums.
    ///
    /// # Errors
    /// [`ReadError::Sample`].
    pub(super) fn check_sample<'a>(
        &self,
        pack: &Pack,
        sample: u64,
        items: impl Iterator<Item = &'a [u8]>,
        places: impl FnOnce() -> Vec<Range<u64>>,
    ) -> Result<(), ReadError> {
        let Some(column) = self.sample_crcs else {
            return Ok(());
        };
        let stored = pack.located(pack.item(column, sample))?;
        let expected = stored.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let mut crc = Crc32c::new();
        let mut len = 0_usize;
        for item in items {
            crc.update(item);
            len = len.saturating_add(item.len());
        }
        count(&self.samples_checked, 1);
        count(&self.bytes_checked, len);
        if let Some(found) = self.verdict(Unit::Sample(sample), expected, crc.value()) {
            return Err(ReadError::Sample {
                path: pack.file_path().to_owned(),
                sample,
                chunk: pack.geometry().locate(sample).0,
                places: places(),
                expected,
                found,
            });
        }
        self.samples.set(sample);
        Ok(())
    }

    pub(super) fn counts(&self) -> FetchStats {
        FetchStats {
            bytes_checked: self.bytes_checked.load(Ordering::Relaxed),
            chunks_checked: self.chunks_checked.load(Ordering::Relaxed),
            samples_checked: self.samples_checked.load(Ordering::Relaxed),
            ..FetchStats::default()
        }
    }

    /// The wrong checksum that was computed now or before. `None` if the checksums match.
    fn verdict(&self, unit: Unit, expected: u32, computed: u32) -> Option<u32> {
        if self.any_bad.load(Ordering::Acquire)
            && let Some(found) = lock(&self.bad).get(&unit)
        {
            return Some(*found);
        }
        if expected == computed {
            return None;
        }
        lock(&self.bad).insert(unit, computed);
        self.any_bad.store(true, Ordering::Release);
        Some(computed)
    }
}

fn count(counter: &AtomicU64, n: impl TryInto<u64>) {
    counter.fetch_add(n.try_into().unwrap_or(0), Ordering::Relaxed);
}
