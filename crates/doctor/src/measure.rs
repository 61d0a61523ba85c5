//! Times batches of a loader, copies to its device, and steps.

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::model::Time;
use packds_reader::loader::{Batch, Epoch, LoadError, Loader};

/// Minimum number of batches per run, unless they take longer than [`PATIENCE`] times the planned duration.
const LEAST_BATCHES: usize = 10;
pub(crate) const PATIENCE: u32 = 3;
/// Maximum number of batches that are assumed to arrive together at the start of an epoch.
const MOST_LEAD: usize = 4;
/// Minimum and maximum number of repetitions of copies and steps.
const REPEATED: (usize, usize) = (3, 200);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) time: Time,
    /// Number of steps taken in the first epoch, or `u64::MAX` if an epoch was completed.
    pub(crate) steps: u64,
}

/// Number of batches that arrive together at the start of an epoch, because threads begin them in parallel.
pub(crate) fn lead(loader: &Loader) -> usize {
    loader.threads().min(MOST_LEAD)
}

/// The length of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) most_steps: u64,
    /// Approximate duration.
    pub(crate) within: Duration,
    /// The run continues until this many epochs are complete, but for at most [`PATIENCE`] times `within`.
    pub(crate) whole_epochs: usize,
}

/// Times batches from one epoch after another. `lead` batches are assumed to arrive together at the start of an epoch.
pub(crate) fn run(
    epoch: &dyn Fn(u32) -> Result<Epoch, LoadError>,
    lead: usize,
    extent: Extent,
    step: &mut dyn FnMut(&Batch),
) -> Result<Run, LoadError> {
    let Extent { most_steps, within, whole_epochs } = extent;
    let started = Instant::now();
    let patience = within * PATIENCE;
    let mut clock = Clock::new(lead);
    let mut steps = 0;
    let mut over = false;
    for number in 0..u32::MAX {
        let mut epoch = epoch(number)?;
        clock.begin_epoch(millis(started.elapsed()));
        let mut taken = 0;
        while !over && taken < most_steps {
            if !epoch.wait(patience.saturating_sub(started.elapsed())) {
                // The batch takes too long. Stop waiting for it.
                over = true;
                break;
            }
            let Some(batch) = epoch.next().transpose()? else {
                clock.end_epoch();
                break;
            };
            batch.transfer().wait();
            step(&batch);
            drop(batch);
            let time = started.elapsed();
            clock.tick(millis(time));
            taken += 1;
            let enough = clock.batches() >= LEAST_BATCHES && clock.whole_epochs() >= whole_epochs;
            over = time >= patience || time >= within && enough;
        }
        if number == 0 {
            steps = taken;
        }
        if over || taken == 0 {
            break;
        }
    }
    // No batch arrived, so this time is a lower bound.
    let longer = || Time { is_short: true, ..Time::exactly(millis(started.elapsed())) };
    let time = clock.time().unwrap_or_else(longer);
    Ok(Run { time, steps: if clock.whole_epochs() > 0 { u64::MAX } else { steps } })
}

/// Times repeated copies of one batch to the loader's device.
pub(crate) fn copies(loader: &Loader, within: Duration) -> Result<Time, LoadError> {
    let batch = first_batch(loader)?;
    let Some(slot) = batch.as_ref().and_then(Batch::slot) else {
        return Ok(Time::default());
    };
    repeated(within, || {
        let copy = loader.receiver().submit(slot.clone(), slot.len())?;
        copy.wait();
        Ok(())
    })
}

/// Times the step, which is run repeatedly on one batch.
pub(crate) fn steps(loader: &Loader, within: Duration, step: &mut dyn FnMut(&Batch)) -> Result<Time, LoadError> {
    let Some(batch) = first_batch(loader)? else { return Ok(Time::default()) };
    repeated(within, || {
        step(&batch);
        Ok(())
    })
}

/// The first batch, once it is on the device. Nothing else is being loaded then.
fn first_batch(loader: &Loader) -> Result<Option<Batch>, LoadError> {
    let batch = loader.epoch(0)?.next().transpose()?;
    if let Some(batch) = &batch {
        batch.transfer().wait();
    }
    Ok(batch)
}

/// The median time of `work`. The first call is a warm-up.
fn repeated(within: Duration, mut work: impl FnMut() -> Result<(), LoadError>) -> Result<Time, LoadError> {
    let started = Instant::now();
    work()?;
    let mut times = Vec::new();
    while times.len() < REPEATED.0 || started.elapsed() < within && times.len() < REPEATED.1 {
        let begun = Instant::now();
        work()?;
        times.push(millis(begun.elapsed()));
        if started.elapsed() > within * PATIENCE {
            break;
        }
    }
    Ok(Time::of(times))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
