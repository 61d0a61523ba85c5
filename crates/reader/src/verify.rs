//! Verifies a whole pack on all cores, at memory speed.
//!
//! Chunks are read with `pread`, not through the mapping. So if the file is truncated or the disk fails, the result is
//! an error and the process does not end. Each thread reads small pieces, one after another, into its own buffer, so
//! the bytes are still cached when they are hashed. A whole chunk is read only if its checksum is wrong.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use packds_format::{
    ChunkEntry, Classes, Crc32c, DType, Field, FormatError, Role, Scalar, check_chunk, check_outside_chunks,
};
use packds_system::{in_parallel, lock, to_u64, to_usize};
use rustix::fs::{Advice, fadvise};

use self::sizes::ItemSizes;
use crate::{Pack, PackBytes, ReadError};

/// Number of bytes that are hashed at a time. They fit in the second-level cache together with the kernel's own data.
const PIECE_BYTES: usize = 256 << 10;
/// Number of bytes of consecutive chunks that one thread takes at a time. It is large enough for the kernel's
/// readahead.
const TASK_BYTES: u64 = 16 << 20;

/// Options of [`verify`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Number of threads. 0 means one per core.
    pub jobs: usize,
}

impl VerifyOptions {
    /// Options with this many threads. 0 means one per core.
    pub const fn jobs(jobs: usize) -> Self {
        Self { jobs }
    }
}

/// A chunk that does not match its checksum.
#[derive(Debug)]
#[non_exhaustive]
pub struct BadChunk {
    /// The path of its shard in the folder of the set. `None` for a pack of one file.
    pub shard: Option<String>,
    /// The chunk's number.
    pub chunk: u64,
    /// The first sample of the chunk.
    pub first_sample: u64,
    /// One past the last sample of the chunk.
    pub end_sample: u64,
    /// Its offset in its file.
    pub offset: u64,
    /// Its size in the file.
    pub stored_len: u64,
    /// The stored checksum.
    pub expected: u32,
    /// The checksum of the bytes found.
    pub found: u32,
    /// Whether the damaged samples are known: the pack has checksums per sample, and at least one of them fails.
    pub samples_known: bool,
    /// The same damage as a format error.
    pub error: FormatError,
}

/// A sample that does not match its own checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadSample {
    /// The sample's number.
    pub sample: u64,
    /// The chunk that contains it.
    pub chunk: u64,
    /// Its class id, if the pack has labels and their column is intact.
    pub label: Option<i64>,
    /// The name of its class.
    pub class: Option<String>,
    /// Its path in the source, if the pack has paths and they are intact.
    pub path: Option<Vec<u8>>,
}

/// All damage of a pack, in file order.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of samples in the pack.
    pub n_samples: u64,
    /// Number of chunks in the pack.
    pub n_chunks: u64,
    /// Size of the file.
    pub bytes: u64,
    /// The damaged chunks.
    pub bad_chunks: Vec<BadChunk>,
    /// The damaged samples. Empty if the pack has no checksums per sample.
    pub bad_samples: Vec<BadSample>,
    /// Other damage. Damage outside the chunks (columns, sections, padding) comes first. After that comes, for each
    /// chunk and field, the first item whose raw size differs from the size in its columns.
    pub errors: Vec<FormatError>,
}

impl VerifyReport {
    /// Whether there is no damage.
    pub fn is_ok(&self) -> bool {
        self.bad_chunks.is_empty() && self.bad_samples.is_empty() && self.errors.is_empty()
    }
}

/// Reads the whole pack and checks every byte. `progress` receives the bytes done and the total, from any thread. The
/// report does not depend on the number of threads.
///
/// Data outside the chunks and the lengths of items are read in place. Variable-size compressed images are decompressed
/// to check their size.
///
/// # Errors
/// [`ReadError::Changed`] if the length of the file changed, [`ReadError::Read`] if a read failed. Damage is part of
/// the report, not an error.
pub fn verify(
    pack: &Pack,
    options: VerifyOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<VerifyReport, ReadError> {
    pack.check_len()?;
    pack.protect()?;
    if let Ok(file) = pack.file() {
        // This is only a hint. Reading is slower without it.
        let _ = fadvise(file, 0, None, Advice::Sequential);
    }
    let mut report = VerifyReport {
        n_samples: pack.n_samples(),
        n_chunks: pack.n_chunks(),
        bytes: pack.file_len(),
        ..VerifyReport::default()
    };
    // Shards that cannot be opened are reported with the damage outside the chunks.
    let is_lost: Vec<bool> = pack.parts().map(|part| part.is_err()).collect();
    let tasks = Tasks::new(pack, is_lost)?;
    let found = tasks.run(options.jobs, progress)?;
    pack.check_len()?;
    report.errors = check_outside_chunks(pack).err().unwrap_or_default();
    report.errors.extend(found.wrong.into_iter().map(|(_, error)| error));
    let mut describe = None;
    for found in found.damaged {
        let describe = describe.get_or_insert_with(|| Describe::new(pack));
        let samples = found.samples.iter();
        report.bad_samples.extend(samples.map(|&sample| describe.sample(sample, found.chunk.chunk)));
        report.bad_chunks.push(found.chunk);
    }
    // A truncated file looks damaged, so report the truncation instead. Writes by other processes are reported as
    // damage.
    pack.no_page_lost()?;
    Ok(report)
}

/// Findings of all threads, sorted by chunk at the end.
#[derive(Default)]
struct Found {
    damaged: Vec<Damaged>,
    /// Wrong items in chunks with valid checksums, each with the number of its chunk.
    wrong: Vec<(u64, FormatError)>,
}

struct Damaged {
    chunk: BadChunk,
    samples: Vec<u64>,
}

/// The work of verifying a pack. Threads take runs of chunks from front to back.
struct Tasks<'a> {
    pack: &'a Pack,
    task_chunks: u64,
    /// The first chunk that has not been assigned yet.
    next: AtomicU64,
    stop: AtomicBool,
    total: u64,
    done: AtomicU64,
    sizes: ItemSizes<'a>,
    /// Which files cannot be opened.
    is_lost: Vec<bool>,
    found: Mutex<Found>,
    failed: Mutex<Option<ReadError>>,
}

impl<'a> Tasks<'a> {
    fn new(pack: &'a Pack, is_lost: Vec<bool>) -> Result<Self, ReadError> {
        let n = pack.n_chunks();
        let (total, _) = pack.located(pack.body_sizes())?;
        let mean = total.checked_div(n).unwrap_or(0).max(1);
        Ok(Self {
            pack,
            task_chunks: (TASK_BYTES / mean).max(1),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            total,
            done: AtomicU64::new(0),
            sizes: ItemSizes::new(pack, pack.parts().flatten().next().map_or(0, |part| part.first_sample)),
            is_lost,
            found: Mutex::default(),
            failed: Mutex::new(None),
        })
    }

    fn run(self, jobs: usize, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Found, ReadError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let jobs = if jobs == 0 { cores } else { jobs };
        let n_tasks = self.pack.n_chunks().div_ceil(self.task_chunks);
        let jobs = jobs.min(usize::try_from(n_tasks).unwrap_or(jobs)).max(1);
        in_parallel(jobs, || self.work(progress));
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        let mut found = std::mem::take(&mut *lock(&self.found));
        found.damaged.sort_by_key(|found| found.chunk.chunk);
        found.wrong.sort_by_key(|(chunk, _)| *chunk);
        Ok(found)
    }

    fn work(&self, progress: &(dyn Fn(u64, u64) + Sync)) {
        let mut buffer = vec![0; PIECE_BYTES];
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(self.task_chunks, Ordering::Relaxed);
            let end = first.saturating_add(self.task_chunks).min(self.pack.n_chunks());
            if first >= end {
                return;
            }
            let mut bytes = 0;
            for chunk in first..end {
                match self.check(chunk, &mut buffer) {
                    Ok(len) => bytes += len,
                    Err(error) => return self.fail(error),
                }
            }
            let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
            progress(done.min(self.total), self.total);
        }
    }

    /// Keeps only the first error, because later errors would repeat it.
    fn fail(&self, error: ReadError) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.failed).get_or_insert(error);
    }

    /// Verifies the checksum of one chunk, then the item sizes in it. Returns the chunk's size.
    fn check(&self, chunk: u64, buffer: &mut [u8]) -> Result<u64, ReadError> {
        if self.is_lost.get(self.pack.file_of_chunk(chunk)) == Some(&true) {
            return Ok(0);
        }
        let entry = self.pack.chunk_entry(chunk).map_err(|e| self.pack.error(e))?;
        let mut crc = Crc32c::new();
        let mut at = entry.offset;
        let end = entry.offset + entry.stored_len;
        while at < end {
            let n = to_usize(end - at).min(buffer.len());
            let piece = buffer.get_mut(..n).unwrap_or_default();
            self.pack.read_at(piece, at)?;
            crc.update(piece);
            at += to_u64(n);
        }
        if crc.value() != entry.crc32c {
            let damaged = self.examine(chunk, &entry, crc.value())?;
            lock(&self.found).damaged.push(damaged);
            return Ok(entry.stored_len);
        }
        let wrong = self.sizes.wrong_in(chunk)?;
        if !wrong.is_empty() {
            let wrong = wrong.into_iter().map(|error| (chunk, error));
            lock(&self.found).wrong.extend(wrong);
        }
        Ok(entry.stored_len)
    }

    /// Reads a whole chunk again to find its damaged samples.
    fn examine(&self, chunk: u64, entry: &ChunkEntry, found: u32) -> Result<Damaged, ReadError> {
        let first_sample = self.pack.geometry().first_sample(chunk);
        let end_sample = first_sample + u64::from(entry.n_samples);
        // The length was checked against the file and the limits when the pack was opened.
        let mut bytes = vec![0; to_usize(entry.stored_len)];
        self.pack.read_at(&mut bytes, entry.offset)?;
        // Samples are read through the mapping. Do not do that if the file was truncated.
        self.pack.check_len()?;
        let (error, samples) = match check_chunk::<PackBytes>(self.pack, chunk, &bytes) {
            Err(damage) => (damage.error, damage.bad_samples),
            // The second read succeeded although the first failed. The memory or the disk is unreliable.
            Ok(()) => {
                let (offset, expected) = (entry.offset, entry.crc32c);
                let error = FormatError::ChunkChecksum { chunk, first_sample, end_sample, offset, expected, found };
                (error, Vec::new())
            }
        };
        let (part, _) = self.pack.located(self.pack.of_chunk(chunk))?;
        let chunk = BadChunk {
            shard: part.shard().map(str::to_owned),
            chunk,
            first_sample,
            end_sample,
            offset: entry.offset - part.offset,
            stored_len: entry.stored_len,
            expected: entry.crc32c,
            found,
            samples_known: !samples.is_empty(),
            error,
        };
        Ok(Damaged { chunk, samples })
    }
}

/// Describes samples with their labels and paths. Damaged columns are skipped.
struct Describe<'a> {
    pack: &'a Pack,
    /// The number of the label field, and its type.
    label: Option<(usize, DType)>,
    classes: Classes,
}

impl<'a> Describe<'a> {
    fn new(pack: &'a Pack) -> Self {
        let label = pack.schema().by_role(Role::Label, None);
        let of_label = |field: &Field| pack.classes().ok()?.into_iter().find(|classes| classes.field == field.name);
        Self {
            pack,
            label: label.map(|(number, field)| (number, field.dtype)),
            classes: label.and_then(|(_, field)| of_label(field)).unwrap_or_default(),
        }
    }

    fn sample(&self, sample: u64, chunk: u64) -> BadSample {
        let label = self.label.and_then(|(number, dtype)| {
            let item = self.pack.item(number, sample).ok()?;
            Scalar::of(dtype, &item)?.integer()
        });
        let class = label
            .and_then(|label| usize::try_from(label).ok())
            .and_then(|label| self.classes.names.get(label).cloned());
        BadSample { sample, chunk, label, class, path: self.pack.path(sample).ok().flatten() }
    }
}

mod sizes;
#[cfg(test)]
mod tests;
