//! An epoch that the consumer owns. It is an iterator of batches, and dropping it stops its threads.

use packds_system::{lock, to_u64, to_usize, wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::board::Ready;
use super::error::LoadError;
use super::stats::{add, add_time, time};
use super::tuner::Spent;
use super::workers::Workers;
use crate::plan::{MixtureState, State};

/// The batches of one epoch, in order. It ends after the last batch or the first error.
///
/// Its threads work ahead as long as it exists. Dropping it, at any point, stops them.
#[derive(Debug)]
pub struct Epoch {
    workers: Arc<Workers>,
    threads: Vec<JoinHandle<()>>,
    number: u32,
    /// The step of the next batch. The board has it too, but after a fork, the board may still be locked.
    next_step: u64,
    steps: u64,
    /// The time when the consumer took its last batch.
    taken: Instant,
    /// The time when the consumer began to wait, if it called `wait` before `next`.
    waits_since: Option<Instant>,
    /// How long all threads together had been busy, and had waited for the disk, when the last batch was taken.
    threads_before: Option<(Duration, Duration)>,
    over: bool,
    made_in: u32,
    /// Frees the ring for the loader's next epoch.
    _lease: Lease,
}

/// Exclusive use of a loader's ring.
#[derive(Debug)]
pub(crate) struct Lease(Arc<AtomicBool>);

impl Lease {
    /// Acquires the ring. Fails if another epoch uses it.
    pub(crate) fn take(in_use: &Arc<AtomicBool>) -> Result<Self, LoadError> {
        if in_use.swap(true, Ordering::AcqRel) {
            return Err(LoadError::EpochOpen);
        }
        Ok(Self(Arc::clone(in_use)))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Epoch {
    pub(crate) fn start(workers: Arc<Workers>, n_threads: usize, number: u32, lease: Lease) -> Result<Self, LoadError> {
        let (next_step, steps) = {
            let progress = workers.board.lock();
            (progress.next_out, progress.steps)
        };
        let threads = workers.start(n_threads)?;
        Ok(Self {
            next_step,
            steps,
            workers,
            threads,
            number,
            taken: Instant::now(),
            waits_since: None,
            threads_before: None,
            over: false,
            made_in: std::process::id(),
            _lease: lease,
        })
    }

    pub(crate) const fn n_threads(&self) -> usize {
        self.threads.len()
    }

    /// The epoch's number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Number of steps in the epoch. It is the same on every rank.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// The step of the next batch.
    pub const fn next_step(&self) -> u64 {
        self.next_step
    }

    /// The state to save in order to resume after the batches taken so far. Prefetched batches are not included. For a
    /// mixture, this is only the state of its first pack, so save [`mixture_state`](Self::mixture_state) instead.
    pub fn state(&self) -> State {
        self.workers.schedule.state(self.next_step())
    }

    /// The state of a mixture to save in order to resume after the batches taken so far. `None` for a single pack.
    pub fn mixture_state(&self) -> Option<MixtureState> {
        self.workers.schedule.mixture_state(self.next_step())
    }

    /// Waits until [`next`](Iterator::next) would not block, for at most `at_most`. Returns whether it succeeded. Use
    /// it to handle signals and other events while waiting. The time is included in the time waited for the next batch.
    pub fn wait(&mut self, at_most: Duration) -> bool {
        if self.over || std::process::id() != self.made_in {
            // The result is an error or the end. `next` reports it immediately.
            return true;
        }
        let requested = Instant::now();
        self.waits_since.get_or_insert(requested);
        let slots = self.workers.shared.arena.n_slots();
        let board = &self.workers.board;
        let mut progress = board.lock();
        while !progress.has_answer() && board.held() < slots {
            let left = at_most.saturating_sub(requested.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = board.ready.wait_timeout(progress, left);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn take(&mut self) -> Result<Option<Ready>, LoadError> {
        let found = std::process::id();
        if found != self.made_in {
            let made_in = self.made_in;
            return Err(LoadError::Forked { made_in, found });
        }
        let requested = self.waits_since.take().unwrap_or_else(Instant::now);
        let board = &self.workers.board;
        let mut progress = board.lock();
        let ready = loop {
            let step = progress.next_out;
            if step >= progress.steps {
                // The time since the last batch was spent on that batch.
                add_time(&self.workers.shared.counters.consumer_busy, requested - self.taken);
                return Ok(None);
            }
            if let Some(result) = progress.done.remove(&step) {
                break result?;
            }
            if let Some(error) = progress.failed.take() {
                return Err(error);
            }
            let slots = self.workers.shared.arena.n_slots();
            if board.held() >= slots {
                return Err(LoadError::SlotsHeld { slots });
            }
            progress = wait(&board.ready, progress);
        };
        progress.next_out += 1;
        self.next_step = progress.next_out;
        drop(progress);
        board.batch_taken();
        board.tell_threads();
        let (waited, busy) = (requested.elapsed(), requested - self.taken);
        let counters = &self.workers.shared.counters;
        add_time(&counters.consumer_waited, waited);
        add_time(&counters.consumer_busy, busy);
        self.learn(waited, waited + busy);
        Ok(Some(ready))
    }

    /// Passes the times since the last batch to the tuner, and applies its choice.
    fn learn(&mut self, waited: Duration, passed: Duration) {
        let workers = &self.workers;
        let threads = (time(&workers.shared.counters.threads_busy), time(&workers.shared.counters.disk_waited));
        let before = self.threads_before.replace(threads);
        let mut tuner = lock(&workers.shared.tuner);
        let Some((busy, read)) = before else { return tuner.begin() };
        let is_new = tuner.learn(Spent {
            passed,
            waited,
            busy: threads.0.saturating_sub(busy),
            read: threads.1.saturating_sub(read),
        });
        if is_new {
            workers.board.set(&tuner);
        }
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let taken = self.take();
        self.taken = Instant::now();
        match taken {
            Ok(Some(ready)) => {
                let workers = &self.workers;
                let batch = Batch::new(workers, self.number, ready);
                add(&workers.shared.counters.batches, 1);
                add(&workers.shared.counters.samples, to_u64(batch.len()));
                add(&workers.shared.counters.bytes, batch.n_bytes());
                if let Some(journal) = &workers.shared.journal {
                    journal.tell();
                }
                Some(Ok(batch))
            }
            Ok(None) => {
                self.over = true;
                None
            }
            // A consumer that holds too many batches can drop some and try again.
            Err(error @ LoadError::SlotsHeld { .. }) => Some(Err(error)),
            Err(error) => {
                self.over = true;
                Some(Err(error))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.over {
            return (0, Some(0));
        }
        (0, Some(to_usize(self.steps.saturating_sub(self.next_step))))
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        if std::process::id() != self.made_in {
            // A forked child has no threads to wait for.
            return;
        }
        self.workers.stop();
        for thread in self.threads.drain(..) {
            // A panic has already been reported to the consumer.
            let _ = thread.join();
        }
    }
}
