//! Receives progress of a benchmark and can cancel it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use packds_convert::Observer;

use crate::BenchError;

/// Interval between checks for the end of a sync.
const LOOK: Duration = Duration::from_millis(5);

/// Receives progress and can cancel.
pub trait Watcher: Sync {
    /// A part starts. `what` is a line for a log.
    fn part(&self, what: &str);

    /// A cell starts: writing, checking or timing something. `done` of `total` cells are complete.
    fn cell(&self, what: &str, done: u64, total: u64);

    /// Whether to stop. If so, files are removed and the error is [`BenchError::Interrupted`].
    fn cancelled(&self) -> bool;
}

pub(crate) struct Progress<'a> {
    watcher: &'a dyn Watcher,
    done: AtomicU64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(watcher: &'a dyn Watcher, total: u64) -> Self {
        Self { watcher, done: AtomicU64::new(0), total }
    }

    pub(crate) fn part(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        self.watcher.part(what);
        Ok(())
    }

    /// Reports the start of a cell. Skipped cells count too.
    pub(crate) fn cell(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        self.watcher.cell(what, done, self.total);
        Ok(())
    }

    pub(crate) fn begin(&self, what: &str) -> Result<(), BenchError> {
        self.part(what)?;
        self.cell(what)
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }

    /// Writes everything to disk, so that earlier runs do not slow down the next one. A slow disk may take long, so a
    /// thread waits for it.
    pub(crate) fn sync(&self) -> Result<(), BenchError> {
        let synced = thread::Builder::new().spawn(rustix::fs::sync).map_err(BenchError::Thread)?;
        while !synced.is_finished() {
            self.check()?;
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Fails if the benchmark was cancelled: results so far are invalid.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.cancelled() {
            return Err(BenchError::Interrupted);
        }
        Ok(())
    }
}

/// Cancels conversions and exports together with the benchmark.
impl Observer for Progress<'_> {
    fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }
}
