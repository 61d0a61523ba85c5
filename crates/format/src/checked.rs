//! Lazy verification of an open pack: each column, chunk and sample is checked against its checksum on first use.
//!
//! This module verifies everything that [`PackFile::item`], [`PackFile::column`], [`PackFile::chunk_bytes`] and the functions built
//! on them return. Code that has its own policy or searches for damage calls the `_unchecked` accessors.
//! `tests/architecture.rs` lists where this is allowed. Only successful checks are cached, so damaged data fails every
//! time.

use packds_system::{to_u64, to_usize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::checksum::{Crc32c, crc32c};
use crate::columns::ColumnEntry;
use crate::file::{PackFile, find, section};
use crate::footer::{SectionEntry, SectionTag};
use crate::le;
use crate::{FormatError, Role};

/// Records what has already been verified.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// One bit per column, in the order of the column directory.
    columns: OnceLock<Bitmap>,
    paths: AtomicBool,
    chunks: OnceLock<Bitmap>,
    samples: OnceLock<Bitmap>,
}

/// Bits that threads set without a lock. Relaxed ordering is enough, because a bit does not guard other memory. A
/// thread that misses a bit only repeats a check.
#[doc(hidden)]
#[derive(Debug)]
pub struct Bitmap(Box<[AtomicU64]>);

impl Bitmap {
    /// A bitmap of `n` cleared bits.
    #[must_use]
    pub fn new(n: u64) -> Self {
        let words = to_usize(n.div_ceil(64));
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether a bit is set. False beyond the last bit.
    #[inline]
    #[must_use]
    pub fn get(&self, bit: u64) -> bool {
        self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    /// Sets a bit. Returns whether it was clear before.
    pub fn set(&self, bit: u64) -> bool {
        let mask = 1 << (bit % 64);
        self.word(bit).is_some_and(|word| word.fetch_or(mask, Ordering::Relaxed) & mask == 0)
    }

    /// Clears all bits.
    pub fn clear(&self) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(bit / 64).ok()?)
    }
}

impl<D: AsRef<[u8]>> PackFile<D> {
    /// A column by field number, with its verified bytes. `None` if the field is not a column.
    pub(crate) fn whole_column(&self, field: usize) -> Result<Option<(&ColumnEntry, &[u8])>, FormatError> {
        let Some((place, entry)) = (0..).zip(self.columns()).find(|(_, c)| c.field == field) else { return Ok(None) };
        let n_columns = to_u64(self.columns().len());
        let known = self.checked.columns.get_or_init(|| Bitmap::new(n_columns));
        if !known.get(place) {
            let name = self.schema().fields().get(field).map_or("", |field| field.name.as_str());
            entry.check(self.bytes_unchecked(), name)?;
            known.set(place);
        }
        let bytes = le::slice("column", self.bytes_unchecked(), entry.offset, entry.len)?;
        Ok(Some((entry, bytes)))
    }

    /// The verified bytes of the paths section. `None` if the pack has no paths.
    pub(crate) fn whole_paths(&self) -> Result<Option<&[u8]>, FormatError> {
        let Ok(entry) = find(self.sections(), SectionTag::PATHS) else { return Ok(None) };
        let file = self.bytes_unchecked();
        if self.checked.paths.load(Ordering::Relaxed) {
            let SectionEntry { offset, len, .. } = *entry;
            return le::slice("section", file, offset, len).map(Some);
        }
        let bytes = section(file, entry)?;
        self.checked.paths.store(true, Ordering::Relaxed);
        Ok(Some(bytes))
    }

    /// The stored bytes of a chunk, verified on first use.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk, [`FormatError::ChunkChecksum`].
    pub fn chunk_bytes(&self, chunk: u64) -> Result<&[u8], FormatError> {
        let bytes = self.chunk_bytes_unchecked(chunk)?;
        if !self.whole_chunks().get(chunk) {
            self.compare_chunk(chunk, crc32c(bytes))?;
            self.whole_chunks().set(chunk);
        }
        Ok(bytes)
    }

    /// Verifies stored bytes against the checksum of their chunk.
    ///
    /// # Errors
    /// [`FormatError::ChunkChecksum`] if they differ, [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn compare_chunk(&self, chunk: u64, found: u32) -> Result<(), FormatError> {
        let entry = self.chunk_entry(chunk)?;
        if found == entry.crc32c || cfg!(fuzzing) {
            return Ok(());
        }
        let first_sample = self.geometry().first_sample(chunk);
        Err(FormatError::ChunkChecksum {
            chunk,
            first_sample,
            end_sample: first_sample.saturating_add(u64::from(entry.n_samples)),
            offset: entry.offset,
            expected: entry.crc32c,
            found,
        })
    }

    /// Verifies a sample's body items against the sample's own checksum, or against its chunk's checksum if samples
    /// have no checksums or are compressed. Does nothing if they were verified before. An intact sample in a damaged
    /// chunk passes if it has its own checksum.
    pub(crate) fn check_body(&self, sample: u64) -> Result<(), FormatError> {
        let (chunk, _) = self.geometry().locate(sample);
        let has_own = self.schema().by_role(Role::SampleCrc32c, None).is_some();
        let is_known = self.whole_chunks().get(chunk) || (has_own && self.whole_samples().get(sample));
        if is_known {
            return Ok(());
        }
        let is_plain = self.schema().body().all(|(_, f)| f.codec.is_none());
        if has_own && is_plain {
            return self.check_sample(sample);
        }
        match self.chunk_bytes(chunk) {
            Err(FormatError::ChunkChecksum { .. }) if has_own => self.check_sample(sample),
            other => other.map(|_| ()),
        }
    }

    /// Verifies one sample's body items against the sample's checksum, even if they were verified before. If samples
    /// have no checksums, verifies the sample's chunk on first use.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::SampleChecksum`], [`FormatError::ChunkChecksum`], or an error for
    /// malformed bytes.
    pub fn check_sample(&self, sample: u64) -> Result<(), FormatError> {
        self.check_sample_id(sample)?;
        let (chunk, _) = self.geometry().locate(sample);
        let Some((column, _)) = self.schema().by_role(Role::SampleCrc32c, None) else {
            return self.chunk_bytes(chunk).map(|_| ());
        };
        let expected = le::u32_at(&self.item(column, sample)?, 0).unwrap_or(0);
        let mut crc = Crc32c::new();
        for (number, _) in self.schema().body() {
            let item = self.item_unchecked(number, sample);
            // If a table or block is malformed, report the chunk's checksum mismatch instead, if there is one.
            let damage = |error| self.chunk_bytes(chunk).err().unwrap_or(error);
            crc.update(&item.map_err(damage)?);
        }
        let found = crc.value();
        if expected != found && !cfg!(fuzzing) {
            return Err(FormatError::SampleChecksum { sample, chunk, expected, found });
        }
        self.whole_samples().set(sample);
        Ok(())
    }

    fn whole_chunks(&self) -> &Bitmap {
        let n = self.n_chunks();
        self.checked.chunks.get_or_init(|| Bitmap::new(n))
    }

    /// The samples verified so far. The length of the file limits the size of this bitmap, because each bit corresponds
    /// to a 4-byte checksum in the file.
    fn whole_samples(&self) -> &Bitmap {
        let n = self.n_samples();
        self.checked.samples.get_or_init(|| Bitmap::new(n))
    }
}
