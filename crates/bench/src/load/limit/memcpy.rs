//! The limit of copying: copies blocks of a batch to reused buffers.

use packds_system::{to_u64, to_usize};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use packds_reader::arena::{Arena, SlotMut};
use packds_reader::loader::{BatchField, Loader};

use crate::BenchError;
use crate::threads::start;

/// Maximum size of the source: far more than the caches, less than memory.
const MOST_SOURCE: usize = 1 << 30;
/// Target buffers per thread, used in turn.
const BUFFERS: usize = 2;

/// Copies the pack's bytes from one buffer to others. All buffers are in huge pages.
pub(crate) struct Memcpy<'a> {
    loader: &'a Loader,
    source: SlotMut,
    source_bytes: usize,
    batch_bytes: usize,
    threads: usize,
}

impl<'a> Memcpy<'a> {
    pub(super) fn new(loader: &'a Loader, threads: usize) -> Result<Self, BenchError> {
        let pack = loader.pack();
        let body = pack.located(pack.part(0))?.file.bytes_unchecked();
        let fields = loader.fields().iter();
        let sample: usize = fields.map(BatchField::n_bytes).sum();
        let batch = to_usize(loader.schedule().rank_batch());
        let batch_bytes = (sample * batch).max(1);
        let blocks = (body.len().min(MOST_SOURCE) / batch_bytes).max(1);
        let source_bytes = blocks * batch_bytes;
        let mut source = reserve(loader, 1, source_bytes)?;
        let mut source = source.remove(0);
        for (to, from) in source.chunks_mut(body.len().max(1)).zip(std::iter::repeat(body)) {
            to.copy_from_slice(from.get(..to.len()).unwrap_or_default());
        }
        Ok(Self { loader, source, source_bytes, batch_bytes, threads })
    }

    pub(super) fn run(&self, n_batches: u64) -> Result<Duration, BenchError> {
        let mut buffers = reserve(self.loader, self.threads * BUFFERS, self.batch_bytes)?;
        for buffer in &mut buffers {
            // Touch the pages before timing starts, so that page faults are not measured.
            buffer.fill(1);
        }
        let next = AtomicU64::new(0);
        let n_blocks = to_u64(self.source_bytes / self.batch_bytes);
        let started = Instant::now();
        thread::scope(|scope| {
            for mine in buffers.chunks_mut(BUFFERS) {
                start(scope, || {
                    for turn in (0..mine.len()).cycle() {
                        let block = next.fetch_add(1, Ordering::Relaxed);
                        if block >= n_batches {
                            return;
                        }
                        let block = to_usize(block % n_blocks);
                        let from = &self.source[block * self.batch_bytes..][..self.batch_bytes];
                        if let Some(to) = mine.get_mut(turn) {
                            to[..self.batch_bytes].copy_from_slice(from);
                            black_box(to.first());
                        }
                    }
                })?;
            }
            Ok::<(), BenchError>(())
        })?;
        Ok(started.elapsed())
    }
}

/// Memory in huge pages, like the staging ring.
fn reserve(loader: &Loader, n: usize, bytes: usize) -> Result<Vec<SlotMut>, BenchError> {
    let arena: Arc<Arena> = Arena::new(n, bytes).map_err(BenchError::io(loader.pack().file_path()))?;
    Ok(std::iter::from_fn(|| arena.try_take()).collect())
}
