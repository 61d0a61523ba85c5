//! Loading what a mapped pack's plan needs before it is asked for.
//!
//! Pieces of 2 MiB are loaded and put into the page table by `MADV_POPULATE_READ`, in the order of the plan, by threads
//! of their own. With `MADV_HUGEPAGE` on the map a file system that knows large folios reads each piece as one, and maps
//! it as one: no page faults are left for the threads that copy. `MADV_WILLNEED`, the usual advice, reads single pages,
//! so that each later process faults its way through them; `MADV_RANDOM` reads them one by one.
//!
//! A pack that is in memory already needs nothing of this but the page table, once; after that no thread is started.

use packds_system::{nanos, share, to_u64};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use packds_format::Bitmap;

use super::mapped::MappedFetch;
use crate::ReadError;
use crate::plan::Route;

/// Bytes that are loaded by one call: a huge page.
pub(super) const PIECE_BYTES: u64 = 2 << 20;
/// Bytes that may be loaded for steps that were not yet asked for.
const AHEAD_BYTES: u64 = 256 << 20;
/// Threads that wait for the disk: one call reads one piece, and a disk wants more than one at a time.
const COLD_THREADS: usize = 2;
/// Pages that are asked whether they are in memory, to tell a warm pack from a cold one.
const PROBES: u64 = 256;

/// The pieces of a pack that were loaded, by any epoch.
#[derive(Debug)]
pub(super) struct Pieces {
    loaded: Bitmap,
    /// Pieces of the body.
    n: u64,
    n_loaded: AtomicU64,
    /// Whether an epoch found nothing more to load.
    complete: AtomicBool,
}

impl Pieces {
    /// None is loaded yet of those that `body` touches.
    pub(super) fn new(body: &Range<u64>) -> Self {
        let body = pieces_of(body);
        Self {
            loaded: Bitmap::new(body.end),
            n: body.end.saturating_sub(body.start),
            n_loaded: AtomicU64::new(0),
            complete: AtomicBool::new(false),
        }
    }

    /// Takes a piece on, if nobody has.
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

/// The numbers of the pieces that a range touches.
pub(super) fn pieces_of(range: &Range<u64>) -> Range<u64> {
    range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
}

/// The loading of one epoch. Dropping it ends its threads.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    fetch: Arc<MappedFetch>,
    plan: Arc<dyn Route>,
    /// Whether all steps of the epoch are looked at.
    whole: bool,
    /// Whether steps wait for their bytes: a warm pack's pages are faster touched than waited for.
    cold: bool,
    state: Mutex<State>,
    /// There is something to load again, or nothing for ever.
    work: Condvar,
    /// A step may have become ready.
    ready: Condvar,
    bytes_read: AtomicU64,
    reads: AtomicU64,
    wait_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    /// Whether something else is to be read first.
    waits: bool,
    /// Whether there was anything to load.
    found: bool,
    /// Whether a thread looks for the pieces of `next_step`.
    planning: bool,
    /// The first step that was not looked at.
    next_step: u64,
    /// The latest step that was asked for.
    asked: u64,
    /// Pieces to load, with the step that needs them first.
    queue: VecDeque<(u64, u64)>,
    /// Pieces of each step that are not loaded yet.
    missing: BTreeMap<u64, u64>,
    /// Pieces of each step that was not asked for, loaded or not.
    ahead: VecDeque<(u64, u64)>,
}

impl State {
    fn is_ready(&self, step: u64) -> bool {
        step < self.next_step && self.missing.range(..=step).next().is_none()
    }

    /// Whether enough is loaded or under way for steps that nobody has asked for.
    fn is_far_ahead(&self) -> bool {
        let pieces: u64 = self.ahead.iter().map(|(_, pieces)| pieces).sum();
        self.next_step > self.asked && pieces * PIECE_BYTES >= AHEAD_BYTES
    }

    /// What the next step to look at needs.
    fn add(&mut self, step: u64, pieces: Vec<u64>) {
        self.planning = false;
        self.found |= !pieces.is_empty();
        self.next_step = step.saturating_add(1);
        let n = to_u64(pieces.len());
        if n > 0 {
            self.missing.insert(step, n);
            if step > self.asked {
                self.ahead.push_back((step, n));
            }
        }
        self.queue
            .extend(pieces.into_iter().map(|piece| (piece, step)));
    }
}

impl Ahead {
    /// Starts to load, if it `waits` after [`go`](Self::go); none where there is nothing to do.
    pub(super) fn start(
        fetch: &Arc<MappedFetch>,
        plan: Arc<dyn Route>,
        first_step: u64,
        waits: bool,
    ) -> Option<Self> {
        let cold = is_cold(fetch);
        let pieces = fetch.pieces();
        if cold {
            // What was loaded once has gone again: which of it nobody says.
            pieces.forget();
            // Refused where the kernel has no huge pages: then pages are small.
            let _ = fetch.pack().storage().will_load();
        } else if pieces.all_loaded() || fetch.pack().storage().file().is_none() {
            return None;
        }
        let shared = Arc::new(Shared {
            fetch: Arc::clone(fetch),
            whole: plan.is_whole_from(first_step),
            plan,
            cold,
            state: Mutex::new(State {
                waits,
                next_step: first_step,
                asked: first_step,
                ..State::default()
            }),
            work: Condvar::new(),
            ready: Condvar::new(),
            bytes_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
        });
        let n = if cold { COLD_THREADS } else { 1 };
        let spawn = |_| {
            let shared = Arc::clone(&shared);
            let named = thread::Builder::new().name("packds-ahead".to_owned());
            named.spawn(move || shared.load()).ok()
        };
        // Without threads everything is read where it is touched: slower, not wrong.
        let threads: Vec<_> = (0..n).filter_map(spawn).collect();
        (!threads.is_empty()).then_some(Self { shared, threads })
    }

    /// Waits until what `step` needs is loaded.
    pub(super) fn wait(&self, step: u64) -> Result<(), ReadError> {
        self.shared.wait(step)
    }

    /// Begins, where it was to wait.
    pub(super) fn go(&self) {
        self.shared.lock().waits = false;
        self.shared.work.notify_all();
    }

    pub(super) fn stop(&self) {
        self.shared.lock().stopped = true;
        self.shared.work.notify_all();
        self.shared.ready.notify_all();
    }

    /// Bytes and requests read, and nanoseconds waited.
    pub(super) fn counts(&self) -> [u64; 3] {
        let shared = &self.shared;
        [&shared.bytes_read, &shared.reads, &shared.wait_ns].map(|n| n.load(Ordering::Relaxed))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has loaded less; what it left is read where it is touched.
            let _ = thread.join();
        }
    }
}

/// Whether some of the pack is not in memory, as far as pages at even distances tell.
pub(super) fn is_cold(fetch: &MappedFetch) -> bool {
    let len = fetch.pack().file_len();
    (0..PROBES).any(|probe| {
        let at = share(len, probe, PROBES);
        fetch.pack().storage().is_resident(at) == Some(false)
    })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, step: u64) -> Result<(), ReadError> {
        let mut state = self.lock();
        state.asked = state.asked.max(step);
        let asked = state.asked;
        while state.ahead.front().is_some_and(|(step, _)| *step <= asked) {
            state.ahead.pop_front();
        }
        self.work.notify_all();
        if self.cold && !state.stopped && !state.is_ready(step) {
            let start = Instant::now();
            while !state.stopped && !state.is_ready(step) {
                state = self
                    .ready
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let waited = nanos(start.elapsed());
            self.wait_ns.fetch_add(waited, Ordering::Relaxed);
        }
        if state.stopped {
            return Err(self.fetch.stopped());
        }
        Ok(())
    }

    /// What each thread does: pieces, as long as there are any.
    fn load(&self) {
        let _on_panic = StopOnPanic(self);
        while let Some((piece, step)) = self.next() {
            self.load_piece(piece);
            let mut state = self.lock();
            if let Some(missing) = state.missing.get_mut(&step) {
                *missing = missing.saturating_sub(1);
                if *missing == 0 {
                    state.missing.remove(&step);
                    self.ready.notify_all();
                }
            }
        }
    }

    /// The next piece to load, once there is room for it; none at the end.
    fn next(&self) -> Option<(u64, u64)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(next) = state.queue.pop_front() {
                return Some(next);
            }
            if state.waits || state.planning || state.is_far_ahead() {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let step = state.next_step;
            let pieces = self.fetch.pieces();
            if pieces.all_loaded() || step >= self.plan.steps() {
                if self.whole && !state.found {
                    pieces.complete.store(true, Ordering::Relaxed);
                }
                // Nothing is left to load: no step waits any more, and the other threads end too.
                state.next_step = u64::MAX;
                self.ready.notify_all();
                self.work.notify_all();
                return None;
            }
            state.planning = true;
            drop(state);
            let found = self.pieces_of_step(step);
            state = self.lock();
            state.add(step, found);
            self.ready.notify_all();
            self.work.notify_all();
        }
    }

    /// The pieces that a step needs and nobody has loaded. Looks into the tables of chunks, which may wait for the disk: not
    /// under the lock.
    fn pieces_of_step(&self, step: u64) -> Vec<u64> {
        let pieces = self.fetch.pieces();
        // A file that is shorter now is told of by the step that reads it.
        if self.fetch.pack().protect().is_err() {
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
        let storage = self.fetch.pack().storage();
        if storage.is_resident(start) == Some(false) {
            self.bytes_read.fetch_add(PIECE_BYTES, Ordering::Relaxed);
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        // What cannot be loaded is found by who touches it.
        let _ = storage.load(start, PIECE_BYTES);
    }
}

/// Frees those who wait for a thread that will not come back.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
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
        (
            folder,
            Arc::new(MappedFetch::new(pack, checks, &[0]).unwrap()),
        )
    }

    fn load_all(fetch: &Arc<MappedFetch>, order: Order) -> bool {
        let plan = plan(fetch.pack(), order, 7);
        let Some(ahead) = Ahead::start(fetch, plan.clone(), 0, false) else {
            return false;
        };
        for step in 0..plan.steps() {
            ahead.wait(step).unwrap();
            if ahead.shared.cold {
                for slot in plan.batch(step) {
                    for range in fetch.needed(slot.sample) {
                        let here = fetch.pack().storage().is_resident(range.start);
                        assert_eq!(here, Some(true), "sample {}", slot.sample);
                    }
                }
            }
        }
        // Steps of a warm pack do not wait for the loading.
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
                assert_eq!(
                    fetch.pieces().n_loaded.load(Ordering::Relaxed),
                    fetch.pieces().n
                );
                assert!(!load_all(&fetch, order));
            }
        }
    }

    #[test]
    fn what_has_gone_from_memory_is_loaded_before_its_step() {
        let (folder, fetch) = fetch(Checksums::Off);
        drop(fetch);
        // The system drops what it may: pages that a test elsewhere holds, or that memory is made of, stay.
        let file = File::open(folder.path().join("a.pack")).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let pack = Arc::new(open(folder.path().join("a.pack")).unwrap());
        let checks = Checks::new(&pack, Checksums::Off).unwrap();
        let fetch = Arc::new(MappedFetch::new(pack, checks, &[0]).unwrap());
        let plan = plan(fetch.pack(), Order::Random, 7);
        if let Some(ahead) = Ahead::start(&fetch, plan, 0, false).filter(|ahead| ahead.shared.cold)
        {
            ahead.wait(0).unwrap();
            assert!(ahead.counts()[0] >= PIECE_BYTES && ahead.counts()[1] >= 1);
        }
        assert!(load_all(&fetch, Order::Random) || fetch.pieces().all_loaded());
    }

    #[test]
    fn who_waits_for_a_step_is_freed_by_stopping() {
        let (_folder, fetch) = fetch(Checksums::Off);
        let plan = plan(fetch.pack(), Order::Random, 7);
        let shared = Shared {
            fetch: Arc::clone(&fetch),
            plan,
            whole: true,
            cold: true,
            state: Mutex::default(),
            work: Condvar::new(),
            ready: Condvar::new(),
            bytes_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
        };
        let ahead = Ahead {
            shared: Arc::new(shared),
            threads: Vec::new(),
        };
        // Nobody loads, so that only stopping ends the waiting.
        thread::scope(|scope| {
            let waiting = scope.spawn(|| ahead.wait(3));
            while ahead.shared.lock().asked < 3 {
                thread::yield_now();
            }
            ahead.stop();
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error, ReadError::Stopped { .. }));
        });
        assert!(ahead.counts()[2] > 0);
    }

    #[test]
    fn loading_stays_a_bounded_distance_ahead() {
        let mut state = State::default();
        state.add(0, vec![0; 10_000]);
        assert!(!state.is_far_ahead(), "what is asked for is not ahead");
        let most = usize::try_from(AHEAD_BYTES / PIECE_BYTES).unwrap();
        state.add(1, vec![0; most - 1]);
        assert!(!state.is_far_ahead());
        state.add(2, vec![0; 1]);
        assert!(state.is_far_ahead());
    }
}
