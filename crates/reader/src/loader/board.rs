//! The state that a loader's threads share with its consumer, under one lock. It determines what each of them does
//! next.

use packds_system::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::batch::Prepared;
use super::error::LoadError;
use super::filling::Filling;
use super::tuner::Tuner;
use crate::arena::SlotRef;
use crate::device::Transfer;

/// A filled slot with the rest of its batch.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) slot: SlotRef,
    pub(crate) transfer: Box<dyn Transfer>,
}

/// The loading state of one epoch.
#[derive(Debug, Default)]
pub(crate) struct Board {
    progress: Mutex<Progress>,
    /// Wakes threads, because there may be work.
    pub(crate) work: Condvar,
    /// Wakes inactive threads, because more of them may be needed again.
    pub(crate) called: Condvar,
    /// Wakes the consumer, because a batch may be ready.
    pub(crate) ready: Condvar,
    /// Set only once. Threads check it between samples and while they wait for a slot.
    pub(crate) stopped: AtomicBool,
    /// Number of batches that the consumer holds, from all epochs of the loader.
    held: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) next_begin: u64,
    /// The next step for the consumer.
    pub(crate) next_out: u64,
    pub(crate) steps: u64,
    /// Whether a thread is beginning a step. Slots are taken in the order of steps.
    pub(crate) beginning: bool,
    /// Steps whose pieces are not all assigned yet.
    pub(crate) filling: VecDeque<Arc<Filling>>,
    /// Finished steps that the consumer has not taken yet.
    pub(crate) done: BTreeMap<u64, Result<Ready, LoadError>>,
    /// An error that does not belong to a step. It ends the epoch.
    pub(crate) failed: Option<LoadError>,
    /// Number of active threads: those with a lower index than this.
    pub(crate) threads: usize,
    pub(crate) prefetch: usize,
}

impl Progress {
    /// Whether the consumer can continue immediately, with a batch, the end or an error.
    pub(crate) fn has_answer(&self) -> bool {
        self.next_out >= self.steps || self.failed.is_some() || self.done.contains_key(&self.next_out)
    }
}

impl Board {
    pub(crate) fn new(first_step: u64, steps: u64, tuner: &Tuner, held: Arc<AtomicUsize>) -> Self {
        let (threads, prefetch) = (tuner.threads(), tuner.prefetch());
        let (next_begin, next_out) = (first_step, first_step);
        let progress = Progress { next_begin, next_out, steps, threads, prefetch, ..Progress::default() };
        Self { progress: Mutex::new(progress), held, ..Self::default() }
    }

    /// Locks the state. If a thread panicked while it held the lock, the panic was already reported (see `workers`).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// Wakes the threads because there is work.
    pub(crate) fn tell_threads(&self) {
        self.work.notify_all();
    }

    /// Sets the number of active threads and the number of prefetched batches.
    pub(crate) fn set(&self, tuner: &Tuner) {
        let mut progress = self.lock();
        progress.threads = tuner.threads();
        progress.prefetch = tuner.prefetch();
        drop(progress);
        self.called.notify_all();
        self.work.notify_all();
    }

    /// Stores a step's result for the consumer. After a stop, the result is dropped. Otherwise the board would keep the
    /// batch, and the batch would keep its slot and the board.
    pub(crate) fn put(&self, step: u64, result: Result<Ready, LoadError>) {
        let mut progress = self.lock();
        if self.is_stopped() {
            return;
        }
        progress.done.insert(step, result);
        drop(progress);
        self.ready.notify_all();
    }

    /// Makes the pieces of a step available, unless the epoch is stopped.
    pub(crate) fn hand_out(&self, filling: Arc<Filling>) {
        let mut progress = self.lock();
        if self.is_stopped() {
            return;
        }
        progress.filling.push_back(filling);
        drop(progress);
        self.tell_threads();
    }

    /// Ends the epoch with an error that does not belong to a step.
    pub(crate) fn fail(&self, error: LoadError) {
        self.lock().failed.get_or_insert(error);
        self.ready.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Makes the threads end. They check `stopped` when they wake up.
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

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn batch_taken(&self) {
        self.held.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn batch_dropped(&self) {
        self.held.fetch_sub(1, Ordering::AcqRel);
        // A consumer on another thread may be waiting for a batch that lacked a slot.
        self.ready.notify_all();
    }
}
