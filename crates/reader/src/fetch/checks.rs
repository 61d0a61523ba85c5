//! Which bytes were found whole, and which not: checksums, computed once for each sample or chunk by default.
//!
//! What was found bad stays bad for the loader: a second reading that happens to fit its checksum shows that memory or
//! disk cannot be trusted, not that the bytes can.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use packds_format::{Crc32c, FormatError, Role, crc32c};

use crate::{MappedPack, ReadError};

/// When a loader checks the bytes that it hands out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Checksums {
    /// Each time.
    Always,
    /// The first time that a sample or chunk is handed out.
    #[default]
    FirstTouch,
    /// Never.
    Off,
}

/// What a loader has checked of its pack. Its methods take the pack it was made for.
#[derive(Debug)]
pub(super) struct Checks {
    policy: Checksums,
    /// Where the column of sample checksums starts in the file, if there is one.
    sample_crcs: Option<usize>,
    samples: Bitmap,
    chunks: Bitmap,
    /// Whether `bad` has any: most loaders never take its lock.
    any_bad: AtomicBool,
    /// What failed, with the checksum that was found.
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

/// Counts of what was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) bytes: u64,
    pub(super) chunks: u64,
    pub(super) samples: u64,
}

impl Checks {
    /// Checks the column of sample checksums itself, where it will be used.
    ///
    /// # Errors
    /// [`ReadError::Format`] where the column is damaged.
    pub(super) fn new(pack: &MappedPack, policy: Checksums) -> Result<Self, ReadError> {
        let column = pack.schema().by_role(Role::SampleCrc32c, None);
        let mut sample_crcs = None;
        if let Some((number, _)) = column.filter(|_| policy != Checksums::Off) {
            pack.column(number).map_err(|error| pack.error(error))?;
            let place = pack.columns().iter().find(|entry| entry.field == number);
            sample_crcs = place.and_then(|entry| usize::try_from(entry.offset).ok());
        }
        // Both are bounded by the file: each sample with a checksum has 4 bytes in it, and so has each chunk.
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

    /// When to check.
    pub(super) fn policy(&self) -> Checksums {
        self.policy
    }

    /// Whether single samples can be checked.
    pub(super) fn has_sample_crcs(&self) -> bool {
        self.sample_crcs.is_some()
    }

    /// Whether nothing is left to check for this sample, which lies in this chunk.
    #[inline]
    pub(super) fn is_sample_done(&self, sample: u64, chunk: u64) -> bool {
        match self.policy {
            Checksums::Off => true,
            Checksums::FirstTouch => self.samples.get(sample) || self.chunks.get(chunk),
            Checksums::Always => false,
        }
    }

    /// Whether nothing is left to check for this chunk.
    #[inline]
    pub(super) fn is_chunk_done(&self, chunk: u64) -> bool {
        match self.policy {
            Checksums::Off => true,
            Checksums::FirstTouch => self.chunks.get(chunk),
            Checksums::Always => false,
        }
    }

    /// Compares the stored bytes of a chunk, all of them, with its checksum, whatever was checked before.
    ///
    /// # Errors
    /// [`ReadError::Format`] with [`FormatError::ChunkChecksum`].
    pub(super) fn check_chunk(
        &self,
        pack: &MappedPack,
        chunk: u64,
        bytes: &[u8],
    ) -> Result<(), ReadError> {
        let entry = pack.chunk_entry(chunk).map_err(|error| pack.error(error))?;
        let computed = crc32c(bytes);
        count(&self.chunks_checked, 1);
        count(&self.bytes_checked, bytes.len());
        let expected = entry.crc32c;
        if let Some(found) = self.verdict(Unit::Chunk(chunk), expected, computed) {
            let first_sample = pack.geometry().first_sample(chunk);
            return Err(pack.error(FormatError::ChunkChecksum {
                chunk,
                first_sample,
                end_sample: first_sample + u64::from(entry.n_samples),
                offset: entry.offset,
                expected,
                found,
            }));
        }
        self.chunks.set(chunk);
        Ok(())
    }

    /// Compares the decoded body items of a sample, all of them in schema order, with its checksum, whatever was checked
    /// before; `places` says where they lie in the file. Does nothing where samples have no checksums.
    ///
    /// # Errors
    /// [`ReadError::Sample`].
    pub(super) fn check_sample<'a>(
        &self,
        pack: &MappedPack,
        sample: u64,
        items: impl Iterator<Item = &'a [u8]>,
        places: impl FnOnce() -> Vec<Range<u64>>,
    ) -> Result<(), ReadError> {
        let Some(expected) = self.sample_crc(pack, sample) else {
            return Ok(());
        };
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

    /// What was checked so far.
    pub(super) fn counts(&self) -> Checked {
        Checked {
            bytes: self.bytes_checked.load(Ordering::Relaxed),
            chunks: self.chunks_checked.load(Ordering::Relaxed),
            samples: self.samples_checked.load(Ordering::Relaxed),
        }
    }

    fn sample_crc(&self, pack: &MappedPack, sample: u64) -> Option<u32> {
        let start = usize::try_from(sample.checked_mul(4)?)
            .ok()?
            .checked_add(self.sample_crcs?)?;
        let bytes = pack.bytes().get(start..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// The wrong checksum that was found now or before; none where all is well.
    fn verdict(&self, unit: Unit, expected: u32, computed: u32) -> Option<u32> {
        if self.any_bad.load(Ordering::Acquire)
            && let Some(found) = self.bad().get(&unit)
        {
            return Some(*found);
        }
        if expected == computed {
            return None;
        }
        self.bad().insert(unit, computed);
        self.any_bad.store(true, Ordering::Release);
        Some(computed)
    }

    fn bad(&self) -> MutexGuard<'_, BTreeMap<Unit, u32>> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(counter: &AtomicU64, n: impl TryInto<u64>) {
    counter.fetch_add(n.try_into().unwrap_or(0), Ordering::Relaxed);
}

/// Bits. Nothing but the bit itself is told by it, so no order is asked of memory: who sees it
/// not yet set checks again.
#[derive(Debug)]
pub(super) struct Bitmap(Box<[AtomicU64]>);

impl Bitmap {
    pub(super) fn new(n: u64) -> Self {
        let words = usize::try_from(n.div_ceil(64)).unwrap_or(0);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn get(&self, bit: u64) -> bool {
        self.word(bit)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    /// Sets a bit; says whether it was not set before.
    pub(super) fn set(&self, bit: u64) -> bool {
        let mask = 1 << (bit % 64);
        self.word(bit)
            .is_some_and(|word| word.fetch_or(mask, Ordering::Relaxed) & mask == 0)
    }

    pub(super) fn clear(&self) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(bit / 64).ok()?)
    }
}
