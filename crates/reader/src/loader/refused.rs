//! Files that a device refused to decode. The host decodes them from then on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::filling::Row;

/// Samples whose files a device refused. A refusal depends on the file alone. So the contents of batches depend neither on
/// threads nor on the order of samples.
#[derive(Debug, Default)]
pub(crate) struct RefusedFiles(Mutex<BTreeSet<(usize, u64)>>);

impl RefusedFiles {
    /// Records a row's file. Returns whether it is new.
    pub(crate) fn note(&self, row: Row) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((row.pack, row.sample))
    }

    /// Whether a row's file was refused.
    pub(crate) fn has(&self, row: Row) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(row.pack, row.sample))
    }
}
