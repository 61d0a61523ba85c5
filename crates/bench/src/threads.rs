//! Threads for measurements. All of them must start, because fewer threads would measure something else.

use std::panic::resume_unwind;
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};

use crate::BenchError;

/// Starts a thread. Fails if the system cannot start another one.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, BenchError> {
    Builder::new().spawn_scoped(scope, work).map_err(BenchError::Thread)
}

/// Runs `work` on `n` threads and returns the result of each. A panic in one of them is passed on to the caller.
pub(crate) fn on_threads<T: Send>(n: usize, work: impl Fn() -> T + Sync) -> Result<Vec<T>, BenchError> {
    scope(|scope| {
        let started: Vec<_> = (0..n).map(|_| start(scope, &work)).collect::<Result<_, _>>()?;
        Ok(started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect())
    })
}
