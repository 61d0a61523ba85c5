//! Timing: batches of a loader, copies to its device, steps.

use std::time::{Duration, Instant};

use super::model::Time;
use crate::loader::{Batch, Epoch, LoadError, Loader};

/// Batches that a run has at least, if they come within [`PATIENCE`] times its time.
const LEAST_BATCHES: usize = 4;
const PATIENCE: u32 = 2;
/// Copies and steps that are timed at least and at most.
const REPEATED: (usize, usize) = (3, 200);

/// What a run showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) time: Time,
    /// Steps of the first epoch that were taken.
    pub(super) steps: u64,
}

/// Takes batches of one epoch after the other, of each no more than `most_steps`, for about as long as `within`.
pub(super) fn run(
    epoch: &dyn Fn(u32) -> Result<Epoch, LoadError>,
    most_steps: u64,
    within: Duration,
    step: &mut dyn FnMut(&Batch),
) -> Result<Run, LoadError> {
    let started = Instant::now();
    let patience = within * PATIENCE;
    let mut ends = Vec::new();
    let mut steps = 0;
    let mut over = false;
    for number in 0..u32::MAX {
        let mut epoch = epoch(number)?;
        let mut taken = 0;
        while !over && taken < most_steps {
            if !epoch.wait(patience.saturating_sub(started.elapsed())) {
                // Slower than anybody waits for.
                over = true;
                break;
            }
            let Some(batch) = epoch.next().transpose()? else {
                break;
            };
            batch.transfer().wait();
            step(&batch);
            drop(batch);
            ends.push(millis(started.elapsed()));
            taken += 1;
            let time = started.elapsed();
            over = time >= patience || time >= within && ends.len() >= LEAST_BATCHES;
        }
        if number == 0 {
            steps = taken;
        }
        if over || taken == 0 {
            break;
        }
    }
    let time = Time::between(&ends).unwrap_or_else(|| Time::exactly(millis(started.elapsed())));
    Ok(Run { time, steps })
}

/// Copies one batch to the loader's device, again and again.
pub(super) fn copies(loader: &Loader, within: Duration) -> Result<Time, LoadError> {
    let batch = first_batch(loader)?;
    let Some(slot) = batch.as_ref().and_then(Batch::slot) else {
        return Ok(Time::default());
    };
    repeated(within, || {
        let copy = loader.device().submit(slot.clone(), slot.len())?;
        copy.wait();
        Ok(())
    })
}

/// Steps on one batch, again and again.
pub(super) fn steps(
    loader: &Loader,
    within: Duration,
    step: &mut dyn FnMut(&Batch),
) -> Result<Time, LoadError> {
    let Some(batch) = first_batch(loader)? else {
        return Ok(Time::default());
    };
    repeated(within, || {
        step(&batch);
        Ok(())
    })
}

/// The first batch, on the device, while nothing else is loaded.
fn first_batch(loader: &Loader) -> Result<Option<Batch>, LoadError> {
    let batch = loader.epoch(0)?.next().transpose()?;
    if let Some(batch) = &batch {
        batch.transfer().wait();
    }
    Ok(batch)
}

/// The time of `work`; the first time it is only warmed up.
fn repeated(
    within: Duration,
    mut work: impl FnMut() -> Result<(), LoadError>,
) -> Result<Time, LoadError> {
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
