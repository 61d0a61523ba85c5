//! Who follows a comparison and may end it. Not for how it is shown: that is the command's.

use std::sync::atomic::{AtomicU64, Ordering};

use packds_convert::Observer;

use crate::BenchError;

/// Who is told how far a comparison is, and may end it.
pub trait Watcher: Sync {
    /// A part begins, in words: a line of a log.
    fn part(&self, what: &str);

    /// A cell begins, in words: writing, checking or timing one format. `done` of `total` cells are behind it.
    fn cell(&self, what: &str, done: u64, total: u64);

    /// Whether to stop: nothing is left of what was written, and the error is [`BenchError::Interrupted`].
    fn cancelled(&self) -> bool;
}

/// How far a comparison is.
pub(super) struct Progress<'a> {
    watcher: &'a dyn Watcher,
    done: AtomicU64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(watcher: &'a dyn Watcher, total: u64) -> Self {
        Self {
            watcher,
            done: AtomicU64::new(0),
            total,
        }
    }

    /// Says that a part begins.
    pub(super) fn part(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        self.watcher.part(what);
        Ok(())
    }

    /// Says that a cell begins. Those that are skipped are cells too.
    pub(super) fn cell(&self, what: &str) -> Result<(), BenchError> {
        self.check()?;
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        self.watcher.cell(what, done, self.total);
        Ok(())
    }

    pub(super) fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }

    /// An error once it is to end: then nothing that was measured counts.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        if self.cancelled() {
            return Err(BenchError::Interrupted);
        }
        Ok(())
    }

    /// What ends conversions and exports with the comparison.
    pub(super) fn ending(&self) -> Ending<'a> {
        Ending(self.watcher)
    }
}

/// A conversion's observer that ends it when the comparison is to end.
pub(super) struct Ending<'a>(&'a dyn Watcher);

impl Observer for Ending<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
