//! Starting threads. A measurement needs all of them: fewer would measure something else.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::BenchError;

/// Starts a thread.
///
/// # Errors
/// [`BenchError::Thread`] if the system cannot start another one.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, BenchError> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map_err(BenchError::Thread)
}
