//! Threads that a measurement needs all of: with fewer it would measure something else.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::BenchError;

/// Starts a thread.
///
/// # Errors
/// [`BenchError::Thread`] where the system starts no more.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, BenchError> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map_err(BenchError::Thread)
}
