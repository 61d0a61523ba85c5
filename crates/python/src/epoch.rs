//! An epoch that Python iterates over.

use packds_system::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use packds_reader::loader::{self, LoadError};
use pyo3::prelude::*;

use crate::batch::{Batch, Count, Held};
use crate::failure::Failure;

/// Maximum delay until Python sees a signal.
const SLICE: Duration = Duration::from_millis(50);
/// Time between checks for a slot that another thread released.
const MOMENT: Duration = Duration::from_millis(1);
/// After this time, assume that no slot will be released.
const LONG: Duration = Duration::from_secs(10);

/// The batches of one epoch. Threads load ahead while it is open.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Epoch {
    /// `None` after the end, or if closed.
    epoch: Mutex<Option<loader::Epoch>>,
    /// Whether the end was reached. From then on, requests from any thread return `Asked::End`.
    is_over: AtomicBool,
    count: Count,
    slots: usize,
}

/// The result of requesting a batch.
enum Asked {
    NotYet,
    /// Every slot is in use. The last slot is used by a Python thread that copies it, not by an array (see `take`).
    Full(Box<Failure>),
    Closed,
    End,
    Batch(Box<Result<loader::Batch, Failure>>),
}

impl Epoch {
    pub(crate) const fn new(epoch: loader::Epoch, count: Count, slots: usize) -> Self {
        Self { epoch: Mutex::new(Some(epoch)), is_over: AtomicBool::new(false), count, slots }
    }

    /// Queries the epoch, unless it ended or was closed. Releases the GIL, because another thread may hold the lock
    /// while it waits for a batch.
    fn look<T: Send>(&self, py: Python<'_>, at: impl FnOnce(&loader::Epoch) -> T + Send) -> Option<T> {
        py.detach(|| lock(&self.epoch).as_ref().map(at))
    }

    fn ask(&self) -> Asked {
        let mut guard = lock(&self.epoch);
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
            Some(Err(error @ LoadError::SlotsHeld { .. })) => Asked::Full(Box::new(error.into())),
            Some(batch) => Asked::Batch(Box::new(batch.map_err(Failure::from))),
        }
    }
}

#[pymethods]
impl Epoch {
    /// The next batch, or `None` at the end. Releases the GIL while it waits.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut full_since = None;
        loop {
            match py.detach(|| self.ask()) {
                Asked::NotYet => py.check_signals()?,
                Asked::Full(error) => {
                    if full_since.get_or_insert_with(Instant::now).elapsed() > LONG {
                        return Err((*error).into());
                    }
                    py.check_signals()?;
                    py.detach(|| thread::sleep(MOMENT));
                }
                Asked::Closed => {
                    return Err(Failure::Option(
                        "this iteration was closed: it ended with an error, another iteration of the loader began, or the loader was closed"
                            .to_owned(),
                    )
                    .into());
                }
                Asked::End => return Ok(None),
                Asked::Batch(batch) => {
                    let held = Held::new((*batch)?, self.count.clone());
                    // One slot must stay free for loading. If the program holds all others, it gets copies.
                    let copies = self.count.now() >= self.slots;
                    return Ok(Some(Batch::new(held, copies)));
                }
            }
        }
    }

    /// The state after the batches taken so far, as JSON. `None` if closed.
    fn state(&self, py: Python<'_>) -> Option<String> {
        self.look(py, |epoch| match epoch.mixture_state() {
            Some(state) => state.to_json(),
            None => epoch.state().to_json(),
        })
    }

    #[getter]
    fn steps(&self, py: Python<'_>) -> Option<u64> {
        self.look(py, loader::Epoch::steps)
    }

    #[getter]
    fn number(&self, py: Python<'_>) -> Option<u32> {
        self.look(py, loader::Epoch::number)
    }

    /// Number of remaining batches.
    #[getter]
    fn left(&self, py: Python<'_>) -> Option<u64> {
        self.look(py, |epoch| epoch.steps().saturating_sub(epoch.next_step()))
    }

    /// Stops the threads of the epoch.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let epoch = lock(&self.epoch).take();
            drop(epoch);
        });
    }
}
