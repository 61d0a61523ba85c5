//! An epoch that Python iterates over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use packds_reader::loader;
use pyo3::prelude::*;

use crate::batch::{Batch, Count, Held};
use crate::failure::Failure;

/// The longest that a signal waits for Python to see it.
const SLICE: Duration = Duration::from_millis(50);

/// The batches of one epoch. Threads load ahead while it is open.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Epoch {
    /// None once it is over or closed.
    epoch: Mutex<Option<loader::Epoch>>,
    /// Whether its last batch was taken: whoever asks again, on any thread, learns that this is the end.
    is_over: AtomicBool,
    count: Count,
    slots: usize,
}

/// What came of asking for a batch.
enum Asked {
    NotYet,
    Closed,
    End,
    Batch(Box<Result<loader::Batch, Failure>>),
}

impl Epoch {
    pub(crate) const fn new(epoch: loader::Epoch, count: Count, slots: usize) -> Self {
        Self {
            epoch: Mutex::new(Some(epoch)),
            is_over: AtomicBool::new(false),
            count,
            slots,
        }
    }

    /// The epoch, locked. A panic under the lock was told to Python; the epoch is whole between its calls.
    fn lock(&self) -> MutexGuard<'_, Option<loader::Epoch>> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Asked {
        let mut guard = self.lock();
        let Some(epoch) = guard.as_mut() else {
            let is_over = self.is_over.load(Ordering::Acquire);
            return if is_over { Asked::End } else { Asked::Closed };
        };
        if !epoch.wait(SLICE) {
            return Asked::NotYet;
        }
        match epoch.next() {
            None => {
                self.is_over.store(true, Ordering::Release);
                *guard = None;
                Asked::End
            }
            Some(batch) => Asked::Batch(Box::new(batch.map_err(Failure::from))),
        }
    }
}

#[pymethods]
impl Epoch {
    /// The next batch; none at the end. Waits without the GIL.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        loop {
            match py.detach(|| self.ask()) {
                Asked::NotYet => py.check_signals()?,
                Asked::Closed => {
                    return Err(Failure::Option(
                        "this iteration was closed: a later one of the same loader began, or the loader was closed".to_owned(),
                    )
                    .into());
                }
                Asked::End => return Ok(None),
                Asked::Batch(batch) => {
                    let held = Held::new((*batch)?, self.count.clone());
                    // One slot must stay to load into: who holds more batches than that gets copies.
                    let copies = self.count.now() >= self.slots;
                    return Ok(Some(Batch::new(held, copies)));
                }
            }
        }
    }

    /// What to save to go on after the batches taken so far, as JSON; none where it is closed.
    fn state(&self) -> Option<String> {
        let guard = self.lock();
        let epoch = guard.as_ref()?;
        Some(match epoch.mixture_state() {
            Some(state) => state.to_json(),
            None => epoch.state().to_json(),
        })
    }

    #[getter]
    fn steps(&self) -> Option<u64> {
        self.lock().as_ref().map(loader::Epoch::steps)
    }

    #[getter]
    fn number(&self) -> Option<u32> {
        self.lock().as_ref().map(loader::Epoch::number)
    }

    #[getter]
    fn next_step(&self) -> Option<u64> {
        self.lock().as_ref().map(loader::Epoch::next_step)
    }

    /// Ends its threads.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let epoch = self.lock().take();
            drop(epoch);
        });
    }
}
