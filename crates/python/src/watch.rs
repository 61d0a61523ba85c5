//! Runs long work on a separate thread, while Python's thread handles signals and reports progress.

use packds_system::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use packds_convert::source::Unpacking;
use packds_convert::{Observer, Phase, Progress};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::failure::Failure;

/// Time between checks for signals and progress.
const SLICE: Duration = Duration::from_millis(50);

/// State shared by the two threads.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    shared: Mutex<Shared>,
    over: Condvar,
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: bool,
    done: u64,
    total: u64,
    phase: &'static str,
}

/// What happens to the work if Python is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterInterrupt {
    /// The work is cancelled, and Python waits while it cleans up.
    Wait,
    /// The work continues in the background until it is done. It only reads, so this is harmless.
    Abandon,
}

impl Watch {
    pub(crate) fn tell(&self, done: u64, total: u64) {
        let mut shared = lock(&self.shared);
        shared.done = done;
        shared.total = total;
    }

    /// Options for unpacking archives. Unpacking stops if the work is cancelled.
    pub(crate) fn unpacking(self: &Arc<Self>) -> Unpacking {
        let watch = Arc::clone(self);
        Unpacking::default().until(move || watch.cancelled())
    }

    /// Waits for at most `SLICE` until the work is done. Returns whether it is done.
    fn wait(&self) -> bool {
        let shared = lock(&self.shared);
        let waited = self.over.wait_timeout_while(shared, SLICE, |shared| !shared.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }
}

impl Observer for Watch {
    fn progress(&self, progress: Progress) {
        self.tell(progress.samples, progress.total);
        lock(&self.shared).phase = match progress.phase {
            Phase::Plan => "planning",
            Phase::Convert => "converting",
            Phase::Measure => "measuring mean and std",
            Phase::FindFirst => "looking for the first bad image",
            Phase::Export => "exporting",
            Phase::Copy => "copying",
            Phase::ReadShards => "reading shards",
            Phase::Sync => "writing to disk",
            _ => "working",
        };
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Marks the work as done when dropped, even after a panic.
struct Over(Arc<Watch>);

impl Drop for Over {
    fn drop(&mut self) {
        lock(&self.0.shared).is_over = true;
        self.0.over.notify_all();
    }
}

/// Runs `work` on another thread and returns its result. Meanwhile, calls `progress(done, total, phase)`. Raises
/// exceptions from signal handlers and from `progress`.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    after: AfterInterrupt,
    work: impl FnOnce(&Arc<Watch>) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let over = Over(Arc::clone(&watch));
    let builder = thread::Builder::new().name("packds-work".to_owned());
    let thread = builder.spawn(move || {
        let over = over;
        work(&over.0)
    });
    let thread = thread.map_err(Failure::Thread)?;
    let mut failed: Option<PyErr> = None;
    while !py.detach(|| watch.wait()) {
        if failed.is_some() {
            continue;
        }
        let looked = py.check_signals().and_then(|()| call(&watch, progress));
        if let Err(error) = looked {
            if after == AfterInterrupt::Abandon {
                return Err(error);
            }
            watch.cancelled.store(true, Ordering::Relaxed);
            failed = Some(error);
        }
    }
    // The work is done, so this waits only for the thread to end.
    let result = thread.join();
    if let Some(error) = failed {
        return Err(error);
    }
    call(&watch, progress)?;
    result.map_err(|_| PyRuntimeError::new_err("a thread of packds panicked: this is a bug in packds"))
}

fn call(watch: &Watch, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let (done, total, phase) = {
        let shared = lock(&watch.shared);
        (shared.done, shared.total, shared.phase)
    };
    progress.call1((done, total, phase)).map(|_| ())
}
