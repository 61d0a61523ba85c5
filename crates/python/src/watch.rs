//! Long work on a thread of its own, while Python's thread looks at signals and tells how far the work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use packds_convert::{Observer, Phase, Progress};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::failure::Failure;

/// Between two looks.
const SLICE: Duration = Duration::from_millis(50);

/// What the two threads know of each other.
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

/// What becomes of the work when Python is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterInterrupt {
    /// It is asked to end, and waited for: it cleans up behind itself.
    Wait,
    /// It goes on in the background until it is done: it only reads.
    Abandon,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how far the work is.
    pub(crate) fn tell(&self, done: u64, total: u64) {
        let mut shared = self.lock();
        shared.done = done;
        shared.total = total;
    }

    /// Waits a while; whether the work is over.
    fn wait(&self) -> bool {
        let shared = self.lock();
        let waited = self
            .over
            .wait_timeout_while(shared, SLICE, |shared| !shared.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }
}

impl Observer for Watch {
    fn progress(&self, progress: Progress) {
        self.tell(progress.samples, progress.total);
        self.lock().phase = match progress.phase {
            Phase::Plan => "planning",
            Phase::Convert => "converting",
            Phase::Measure => "measuring mean and std",
            Phase::FindFirst => "looking for the first bad image",
            Phase::Export => "exporting",
            Phase::Sync => "writing to disk",
        };
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Says that the work is over, however it ends.
struct Over(Arc<Watch>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.over.notify_all();
    }
}

/// Does `work` on another thread and returns what came of it. Meanwhile calls `told(done, total, phase)`, and raises what
/// a signal or that call raises.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    told: Option<&Bound<'_, PyAny>>,
    after: AfterInterrupt,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
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
        let looked = py.check_signals().and_then(|()| call(&watch, told));
        if let Err(error) = looked {
            if after == AfterInterrupt::Abandon {
                return Err(error);
            }
            watch.cancelled.store(true, Ordering::Relaxed);
            failed = Some(error);
        }
    }
    // It is over but for the end of its thread.
    let result = thread.join();
    if let Some(error) = failed {
        return Err(error);
    }
    call(&watch, told)?;
    result.map_err(|_| {
        PyRuntimeError::new_err("a thread of packds panicked: this is a bug in packds")
    })
}

fn call(watch: &Watch, told: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(told) = told else {
        return Ok(());
    };
    let (done, total, phase) = {
        let shared = watch.lock();
        (shared.done, shared.total, shared.phase)
    };
    told.call1((done, total, phase)).map(|_| ())
}
