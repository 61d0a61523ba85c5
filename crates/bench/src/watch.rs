//! Who follows a benchmark and may end it. Not for how it is shown: that is the command's.

use std::sync::atomic::{AtomicU64, Ordering};

use packds_convert::Observer;

use crate::BenchError;

/// Who is told how far a benchmark is, and may end it.
pub trait Watcher: Sync {
    /// A part begins, in words: a line of a log.
    fn part(&self, what: &str);

    /// A cell begins, in words: writing, checking or timing something. `done` of `total` cells are behind it.
    fn cell(&self, what: &str, done: u64, total: u64);

    /// Whether to stop: nothing is left of what was written, and the error is [`BenchError::Interrupted`].
    fn cancelled(&self) -> bool;
}

/// How far a benchmark is.
pub(crate) struct Progress<'a> {
    watcher: &'a dyn Watcher,
    done: AtomicU64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(watcher: &'a dyn Watcher, total: u64) -> Self {
        Self {
            watcher,
            done: AtomicU64::new(0),
            total,
        }
    }

    /// Says that a part begins.
    pub(crate) fn part(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        self.watcher.part(what);
        Ok(())
    }

    /// Says that a cell begins. Those that are skipped are cells too.
    pub(crate) fn cell(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        self.watcher.cell(what, done, self.total);
        Ok(())
    }

    /// Says that a part begins that is one cell.
    pub(crate) fn begin(&self, what: &str) -> Result<(), BenchError> {
        self.part(what)?;
        self.cell(what)
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }

    /// An error once it is to end: then nothing that was measured counts.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.cancelled() {
            return Err(BenchError::Interrupted);
        }
        Ok(())
    }

    /// What ends conversions and exports with the benchmark.
    pub(crate) fn ending(&self) -> Ending<'a> {
        Ending(self.watcher)
    }
}

/// A conversion's observer that ends it when the benchmark is to end.
pub(crate) struct Ending<'a>(&'a dyn Watcher);

impl Observer for Ending<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
