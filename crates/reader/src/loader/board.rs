//! Who does what next: the state that a loader's threads and its consumer share, under one lock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::Prepared;
use super::error::LoadError;
use super::filling::Filling;
use super::tuner::Tuner;
use crate::arena::SlotRef;
use crate::device::Transfer;

/// A filled slot with all that belongs to it.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) slot: SlotRef,
    pub(crate) transfer: Box<dyn Transfer>,
}

/// The state of one epoch's loading.
#[derive(Debug)]
pub(crate) struct Board {
    progress: Mutex<Progress>,
    /// For threads: there may be something to do.
    work: Condvar,
    /// For threads that have none, because fewer are enough: there may be more again.
    called: Condvar,
    /// For the consumer: a batch may be ready.
    ready: Condvar,
    /// Set once; threads look at it between samples and while they wait for a slot.
    pub(crate) stopped: AtomicBool,
    /// Batches in the hands of the consumer, of all epochs of the loader.
    held: Arc<AtomicUsize>,
}

/// What is under way.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The step to begin next.
    pub(crate) next_begin: u64,
    /// The step that the consumer gets next.
    pub(crate) next_out: u64,
    /// Steps of the epoch.
    pub(crate) steps: u64,
    /// Whether a thread is beginning a step: slots are taken in the order of steps.
    pub(crate) beginning: bool,
    /// Steps with pieces that nobody has taken.
    pub(crate) filling: VecDeque<Arc<Filling>>,
    /// Steps that are done, until the consumer takes them.
    pub(crate) done: BTreeMap<u64, Result<Ready, LoadError>>,
    /// Why it cannot go on, where that belongs to no step.
    pub(crate) failed: Option<LoadError>,
    /// Threads that load: those whose numbers are below.
    pub(crate) threads: usize,
    /// Batches made ahead.
    pub(crate) prefetch: usize,
}

impl Progress {
    /// Whether the consumer gets an answer at once: a batch, the end or an error.
    pub(crate) fn has_answer(&self) -> bool {
        self.next_out >= self.steps
            || self.failed.is_some()
            || self.done.contains_key(&self.next_out)
    }
}

impl Board {
    pub(crate) fn new(first_step: u64, steps: u64, tuner: &Tuner, held: Arc<AtomicUsize>) -> Self {
        Self {
            progress: Mutex::new(Progress {
                next_begin: first_step,
                next_out: first_step,
                steps,
                beginning: false,
                filling: VecDeque::new(),
                done: BTreeMap::new(),
                failed: None,
                threads: tuner.threads(),
                prefetch: tuner.prefetch(),
            }),
            work: Condvar::new(),
            called: Condvar::new(),
            ready: Condvar::new(),
            stopped: AtomicBool::new(false),
            held,
        }
    }

    /// The state, locked. A thread that panicked while it held the lock has told so before (see `crew`).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_for_work<'a>(
        &self,
        progress: MutexGuard<'a, Progress>,
    ) -> MutexGuard<'a, Progress> {
        self.work
            .wait(progress)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there may be more threads that load.
    pub(crate) fn wait_to_be_called<'a>(
        &self,
        progress: MutexGuard<'a, Progress>,
    ) -> MutexGuard<'a, Progress> {
        self.called
            .wait(progress)
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_for_batch<'a>(
        &self,
        progress: MutexGuard<'a, Progress>,
    ) -> MutexGuard<'a, Progress> {
        self.ready
            .wait(progress)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait_for_batch`](Self::wait_for_batch), but no longer than `at_most`.
    pub(crate) fn wait_for_batch_at_most<'a>(
        &self,
        progress: MutexGuard<'a, Progress>,
        at_most: Duration,
    ) -> MutexGuard<'a, Progress> {
        let waited = self.ready.wait_timeout(progress, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells the threads that there is something to do.
    pub(crate) fn tell_threads(&self) {
        self.work.notify_all();
    }

    /// Sets how many threads load, and how many batches ahead.
    pub(crate) fn set(&self, tuner: &Tuner) {
        let mut progress = self.lock();
        progress.threads = tuner.threads();
        progress.prefetch = tuner.prefetch();
        drop(progress);
        self.called.notify_all();
        self.work.notify_all();
    }

    /// Puts a step's result where the consumer finds it. Once the epoch is stopped there is none, and what came later would
    /// keep its slot as long as a batch keeps the board.
    pub(crate) fn put(&self, step: u64, result: Result<Ready, LoadError>) {
        let mut progress = self.lock();
        if self.is_stopped() {
            return;
        }
        progress.done.insert(step, result);
        drop(progress);
        self.ready.notify_all();
    }

    /// Hands out the pieces of a step, unless the epoch is stopped.
    pub(crate) fn hand_out(&self, filling: Arc<Filling>) {
        let mut progress = self.lock();
        if self.is_stopped() {
            return;
        }
        progress.filling.push_back(filling);
        drop(progress);
        self.tell_threads();
    }

    /// Ends the epoch with an error that belongs to no step.
    pub(crate) fn fail(&self, error: LoadError) {
        self.lock().failed.get_or_insert(error);
        self.ready.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Makes threads end: they look at `stopped` when they are woken.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let mut progress = self.lock();
        progress.filling.clear();
        progress.done.clear();
        drop(progress);
        self.called.notify_all();
        self.work.notify_all();
        self.ready.notify_all();
    }

    /// Batches that the consumer holds.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn batch_taken(&self) {
        self.held.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn batch_dropped(&self) {
        self.held.fetch_sub(1, Ordering::AcqRel);
        // A consumer on another thread may wait for a batch that had no slot.
        self.ready.notify_all();
    }
}
