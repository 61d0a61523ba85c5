//! Files that a device has refused to decode, which the host decodes from then on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::filling::Row;

/// Samples whose files a device has refused. Whether it does is a matter of the file alone, so that what batches hold depends neither on
/// threads nor on the order of samples.
#[derive(Debug, Default)]
pub(crate) struct RefusedFiles(Mutex<BTreeSet<(usize, u64)>>);

impl RefusedFiles {
    /// Notes a row's file, and says whether it was not known.
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
