//! Counts cases for a warning, and keeps the first case.

use super::warning::Warning;

/// A number of cases and the first case.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) first: Vec<u8>,
}

impl Tally {
    pub(super) fn add(&mut self, path: &[u8]) {
        if self.count == 0 {
            self.first = path.to_vec();
        }
        self.count += 1;
    }

    /// The warning made by `of`, if there is any case.
    pub(super) fn warning(self, of: impl FnOnce(u64, Vec<u8>) -> Warning) -> Option<Warning> {
        (self.count > 0).then(|| of(self.count, self.first))
    }

    /// Adds a later tally.
    pub(super) fn append(&mut self, other: Self) {
        if self.count == 0 {
            *self = other;
        } else {
            self.count += other.count;
        }
    }
}
