//! Prefetches the parts of a mapped pack that the plan needs.
//!
//! Threads load pieces of 2 MiB in the order of the plan. `MADV_POPULATE_READ` reads each piece and adds it to the page
//! table. With `MADV_HUGEPAGE`, a file system with large folios reads and maps each piece as a unit, so the threads
//! that copy do not take page faults. With the usual `MADV_WILLNEED`, the page cache would consist of single pages, and
//! every process would fault on each page. With `MADV_RANDOM`, which turns off readahead, each fault would read a
//! single page.
//!
//! If a pack is already in memory, only its page table needs to be filled, once. After that, no thread is started.

use packds_system::{lock, nanos, share, to_u64, wait};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use packds_format::Bitmap;

use super::mapped::MappedFetch;
use super::{Counts, FetchStats};
use crate::ReadError;
use crate::plan::Route;

/// Number of bytes that one call loads: a huge page.
pub(super) const PIECE_BYTES: u64 = 2 << 20;
/// Maximum number of bytes to prefetch for steps that were not requested yet.
const AHEAD_BYTES: u64 = 256 << 20;
/// Number of threads that wait for the disk. One call reads one piece, but a disk needs several requests at a time.
const COLD_THREADS: usize = 2;
/// Number of pages to check to decide whether a pack is in memory.
const PROBES: u64 = 256;

/// The pieces of a pack, and which of them have been loaded in any epoch.
#[derive(Debug)]
pub(super) struct Pieces {
    loaded: Bitmap,
    /// Number of pieces in the body.
    n: u64,
    n_loaded: AtomicU64,
    /// Whether an epoch found all pieces loaded.
    complete: AtomicBool,
}

impl Pieces {
    /// The pieces of `body`, none of which is loaded yet.
    pub(super) fn new(body: &Range<u64>) -> Self {
        let body = pieces_of(body);
        Self {
            loaded: Bitmap::new(body.end),
            n: body.end.saturating_sub(body.start),
            n_loaded: AtomicU64::new(0),
            complete: AtomicBool::new(false),
        }
    }

    /// Claims a piece for the caller. Returns false if it is already claimed.
    fn claim(&self, piece: u64) -> bool {
        let fresh = self.loaded.set(piece);
        if fresh {
            self.n_loaded.fetch_add(1, Ordering::Relaxed);
        }
        fresh
    }

    fn all_loaded(&self) -> bool {
        self.n_loaded.load(Ordering::Relaxed) >= self.n || self.complete.load(Ordering::Relaxed)
    }

    fn forget(&self) {
        self.loaded.clear();
        self.n_loaded.store(0, Ordering::Relaxed);
        self.complete.store(false, Ordering::Relaxed);
    }
}

/// The numbers of the pieces that overlap a range.
pub(super) fn pieces_of(range: &Range<u64>) -> Range<u64> {
    range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
}

/// Prefetching for one epoch. Dropping it stops its threads.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    fetch: Arc<MappedFetch>,
    plan: Arc<dyn Route>,
    /// Whether the steps from the first one on cover at least one whole epoch.
    whole: bool,
    /// Whether steps wait for their bytes. If the pack is in memory, touching the pages is faster than waiting.
    cold: bool,
    state: Mutex<State>,
    /// Wakes loading threads if there is work again or loading has ended.
    work: Condvar,
    /// Wakes threads that wait for a step, because one may be ready.
    ready: Condvar,
    counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    /// Whether other data must be read first.
    waits: bool,
    /// Whether there was any data to load.
    found: bool,
    /// Whether a thread is finding the pieces of `next_step`.
    planning: bool,
    /// The first step whose pieces have not been determined yet.
    next_step: u64,
    /// The latest requested step.
    requested: u64,
    /// Pieces to load, each with the first step that needs it.
    queue: VecDeque<(u64, u64)>,
    /// Number of pieces that are not loaded yet, by step.
    missing: BTreeMap<u64, u64>,
    /// For each step that has not been requested yet, the number of its pieces, whether loaded or not.
    ahead: VecDeque<(u64, u64)>,
}

impl State {
    fn is_ready(&self, step: u64) -> bool {
        step < self.next_step && self.missing.range(..=step).next().is_none()
    }

    /// Whether enough data for steps that have not been requested yet is loaded or being loaded.
    fn is_far_ahead(&self) -> bool {
        let pieces: u64 = self.ahead.iter().map(|(_, pieces)| pieces).sum();
        self.next_step > self.requested && pieces * PIECE_BYTES >= AHEAD_BYTES
    }

    fn add(&mut self, step: u64, pieces: Vec<u64>) {
        self.planning = false;
        self.found |= !pieces.is_empty();
        self.next_step = step.saturating_add(1);
        let n = to_u64(pieces.len());
        if n > 0 {
            self.missing.insert(step, n);
            if step > self.requested {
                self.ahead.push_back((step, n));
            }
        }
        self.queue.extend(pieces.into_iter().map(|piece| (piece, step)));
    }
}

impl Ahead {
    /// Starts loading, or waits for [`go`](Self::go) if `waits` is set. Returns `None` if nothing has to be loaded.
    pub(super) fn start(fetch: &Arc<MappedFetch>, plan: Arc<dyn Route>, first_step: u64, waits: bool) -> Option<Self> {
        let cold = is_cold(fetch);
        let pieces = &fetch.pieces;
        if cold {
            // Pages that were loaded before may have been reclaimed, and the system does not report which ones.
            pieces.forget();
            fetch.pack.will_load();
        } else if pieces.all_loaded() || fetch.pack.is_in_memory() {
            return None;
        }
        let shared = Arc::new(Shared {
            fetch: Arc::clone(fetch),
            whole: plan.is_whole_from(first_step),
            plan,
            cold,
            state: Mutex::new(State { waits, next_step: first_step, requested: first_step, ..State::default() }),
            work: Condvar::new(),
            ready: Condvar::new(),
            counts: Counts::default(),
        });
        let n = if cold { COLD_THREADS } else { 1 };
        let spawn = |_| {
            let shared = Arc::clone(&shared);
            let named = thread::Builder::new().name("packds-ahead".to_owned());
            named.spawn(move || shared.load()).ok()
        };
        // Without threads, pages are read when they are touched. This is slower, but correct.
        let threads: Vec<_> = (0..n).filter_map(spawn).collect();
        (!threads.is_empty()).then_some(Self { shared, threads })
    }

    pub(super) fn wait(&self, step: u64) -> Result<(), ReadError> {
        self.shared.wait(step)
    }

    /// Starts loading if `start` was called with `waits`.
    pub(super) fn go(&self) {
        lock(&self.shared.state).waits = false;
        self.shared.work.notify_all();
    }

    pub(super) fn stop(&self) {
        lock(&self.shared.state).stopped = true;
        self.shared.work.notify_all();
        self.shared.ready.notify_all();
    }

    pub(super) fn stats(&self) -> FetchStats {
        self.shared.counts.stats()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // If a thread panicked, the remaining data is read when it is touched.
            let _ = thread.join();
        }
    }
}

/// Whether some of the pack is not in memory. Checks evenly spaced pages.
pub(super) fn is_cold(fetch: &MappedFetch) -> bool {
    let len = fetch.pack.end_offset();
    (0..PROBES).any(|probe| {
        let at = share(len, probe, PROBES);
        fetch.pack.is_page_resident(at) == Some(false)
    })
}

impl Shared {
    fn wait(&self, step: u64) -> Result<(), ReadError> {
        let mut state = lock(&self.state);
        state.requested = state.requested.max(step);
        let requested = state.requested;
        while state.ahead.front().is_some_and(|(step, _)| *step <= requested) {
            state.ahead.pop_front();
        }
        self.work.notify_all();
        if self.cold && !state.stopped && !state.is_ready(step) {
            let start = Instant::now();
            while !state.stopped && !state.is_ready(step) {
                state = wait(&self.ready, state);
            }
            let waited = nanos(start.elapsed());
            self.counts.wait_ns.fetch_add(waited, Ordering::Relaxed);
        }
        if state.stopped {
            return Err(self.fetch.stopped());
        }
        Ok(())
    }

    /// The work of each thread: loads pieces until none are left.
    fn load(&self) {
        let _on_panic = StopOnPanic(self);
        while let Some((piece, step)) = self.next() {
            self.load_piece(piece);
            let mut state = lock(&self.state);
            if let Some(missing) = state.missing.get_mut(&step) {
                *missing = missing.saturating_sub(1);
                if *missing == 0 {
                    state.missing.remove(&step);
                    self.ready.notify_all();
                }
            }
        }
    }

    /// The next piece to load. Waits while loading is far enough ahead. `None` at the end.
    fn next(&self) -> Option<(u64, u64)> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            if let Some(next) = state.queue.pop_front() {
                return Some(next);
            }
            if state.waits || state.planning || state.is_far_ahead() {
                state = wait(&self.work, state);
                continue;
            }
            let step = state.next_step;
            let pieces = &self.fetch.pieces;
            if pieces.all_loaded() || step >= self.plan.steps() {
                if self.whole && !state.found {
                    pieces.complete.store(true, Ordering::Relaxed);
                }
                // Everything is loaded, so steps do not need to wait any more, and the other threads end.
                state.next_step = u64::MAX;
                self.ready.notify_all();
                self.work.notify_all();
                return None;
            }
            state.planning = true;
            drop(state);
            let found = self.pieces_of_step(step);
            state = lock(&self.state);
            state.add(step, found);
            self.ready.notify_all();
            self.work.notify_all();
        }
    }

    /// The pieces of a step that have not been claimed yet. Do not hold the lock, because this reads chunk tables and
    /// may wait for the disk.
    fn pieces_of_step(&self, step: u64) -> Vec<u64> {
        let pieces = &self.fetch.pieces;
        // The step that reads a truncated file reports the error.
        if self.fetch.pack.protect().is_err() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for sample in self.plan.samples_at(step) {
            for range in self.fetch.needed(sample) {
                found.extend(pieces_of(&range).filter(|piece| pieces.claim(*piece)));
            }
        }
        found
    }

    fn load_piece(&self, piece: u64) {
        let start = piece * PIECE_BYTES;
        let pack = &self.fetch.pack;
        if pack.is_page_resident(start) == Some(false) {
            self.counts.bytes.fetch_add(PIECE_BYTES, Ordering::Relaxed);
            self.counts.reads.fetch_add(1, Ordering::Relaxed);
        }
        pack.load(start, PIECE_BYTES);
    }
}

/// Releases waiting steps if the thread panics.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = lock(&self.0.state);
            state.next_step = u64::MAX;
            state.planning = false;
            state.missing.clear();
            self.0.ready.notify_all();
            self.0.work.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{Advice, fadvise};

    use super::super::checks::{Checks, Checksums};
    use super::super::tests::{large_pack, plan};
    use super::*;
    use crate::open;
    use crate::plan::Order;

    /// A pack of several pieces, and its folder.
    fn fetch(checksums: Checksums) -> (tempfile::TempDir, Arc<MappedFetch>) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.pack");
        large_pack(&path, 100);
        File::open(&path).unwrap().sync_all().unwrap();
        let pack = Arc::new(open(&path).unwrap());
        let checks = Checks::new(&pack, checksums).unwrap();
        (folder, Arc::new(MappedFetch::new(pack, checks, &[0]).unwrap()))
    }

    fn load_all(fetch: &Arc<MappedFetch>, order: Order) -> bool {
        let plan = plan(&fetch.pack, order, 7);
        let Some(ahead) = Ahead::start(fetch, plan.clone(), 0, false) else {
            return false;
        };
        for step in 0..plan.steps() {
            ahead.wait(step).unwrap();
            if ahead.shared.cold {
                for slot in plan.batch(step) {
                    for range in fetch.needed(slot.sample) {
                        let here = fetch.pack.is_page_resident(range.start);
                        assert_eq!(here, Some(true), "sample {}", slot.sample);
                    }
                }
            }
        }
        // If the pack is in memory, steps do not wait for loading.
        while ahead.threads.iter().any(|thread| !thread.is_finished()) {
            thread::yield_now();
        }
        true
    }

    #[test]
    fn what_is_loaded_once_starts_no_thread_again() {
        for checksums in [Checksums::Off, Checksums::FirstTouch] {
            for order in [Order::Random, Order::Sequential] {
                let (_folder, fetch) = fetch(checksums);
                assert!(load_all(&fetch, order));
                assert_eq!(fetch.pieces.n_loaded.load(Ordering::Relaxed), fetch.pieces.n);
                assert!(!load_all(&fetch, order));
            }
        }
    }

    #[test]
    fn what_has_gone_from_memory_is_loaded_before_its_step() {
        let (folder, fetch) = fetch(Checksums::Off);
        drop(fetch);
        // Some pages may stay in memory: those that another test holds, and all pages on a file system in memory.
        let file = File::open(folder.path().join("a.pack")).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let pack = Arc::new(open(folder.path().join("a.pack")).unwrap());
        let checks = Checks::new(&pack, Checksums::Off).unwrap();
        let fetch = Arc::new(MappedFetch::new(pack, checks, &[0]).unwrap());
        let plan = plan(&fetch.pack, Order::Random, 7);
        if let Some(ahead) = Ahead::start(&fetch, plan, 0, false).filter(|ahead| ahead.shared.cold) {
            ahead.wait(0).unwrap();
            assert!(ahead.stats().bytes_read >= PIECE_BYTES && ahead.stats().reads >= 1);
        }
        assert!(load_all(&fetch, Order::Random) || fetch.pieces.all_loaded());
    }

    #[test]
    fn who_waits_for_a_step_is_freed_by_stopping() {
        let (_folder, fetch) = fetch(Checksums::Off);
        let plan = plan(&fetch.pack, Order::Random, 7);
        let shared = Shared {
            fetch: Arc::clone(&fetch),
            plan,
            whole: true,
            cold: true,
            state: Mutex::default(),
            work: Condvar::new(),
            ready: Condvar::new(),
            counts: Counts::default(),
        };
        let ahead = Ahead { shared: Arc::new(shared), threads: Vec::new() };
        // There is no loading thread, so only `stop` can end the wait.
        thread::scope(|scope| {
            let waiting = scope.spawn(|| ahead.wait(3));
            while lock(&ahead.shared.state).requested < 3 {
                thread::yield_now();
            }
            ahead.stop();
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error, ReadError::Stopped { .. }));
        });
        assert!(ahead.stats().wait_ns > 0);
    }

    #[test]
    fn loading_stays_a_bounded_distance_ahead() {
        let mut state = State::default();
        state.add(0, vec![0; 10_000]);
        assert!(!state.is_far_ahead(), "a requested step is not ahead");
        let most = usize::try_from(AHEAD_BYTES / PIECE_BYTES).unwrap();
        state.add(1, vec![0; most - 1]);
        assert!(!state.is_far_ahead());
        state.add(2, vec![0; 1]);
        assert!(state.is_far_ahead());
    }
}
