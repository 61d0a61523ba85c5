//! Slices of epochs, alternating with the limit.

use packds_system::{to_u64, to_usize};
use std::time::{Duration, Instant};

use packds_format::Crc32c;
use packds_reader::loader::Loader;

use super::limit::Limit;
use super::{First, LoadBenchOptions};
use crate::BenchError;
use crate::machine::processor_time;
use crate::measure::{Pairs, to_f64};

/// Minimum number of pairs for a median.
const LEAST_PAIRS: usize = 5;
/// Maximum number of pairs. More would not make the median more stable.
const MOST_PAIRS: usize = 15;

pub(crate) struct Slices {
    pub(crate) pairs: Pairs,
    pub(crate) n: usize,
    pub(crate) images: u64,
    pub(crate) p99: Duration,
}

/// Times slices of `loader` and of its limit alternately, with equal numbers of batches.
pub(crate) fn run(
    loader: &Loader,
    limit: &Limit<'_>,
    options: &LoadBenchOptions,
    first: &First,
    progress: &mut dyn FnMut(&str),
) -> Result<Slices, BenchError> {
    let batch = u64::from(loader.schedule().rank_batch());
    let steps = loader.schedule().epoch(0)?.steps();
    // Each slice takes about a tenth of the time, so that the minimum of five pairs fits. A slice is at most an epoch.
    let wanted = first.images_per_s() * options.seconds / 10.0 / to_f64(batch);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number; precision does not matter"
    )]
    let n_batches = (wanted as u64).clamp(1, steps);
    // Cold reads need a whole epoch per slice. Otherwise, the time would include read-ahead for later batches.
    let n_batches = if options.cold { steps } else { n_batches };
    let images = n_batches * batch;
    let budget = Duration::from_secs_f64(options.seconds);
    let mut pairs = Pairs::default();
    let mut gaps: Vec<Duration> = Vec::new();
    let mut n = 0;
    let begun = Instant::now();
    // The first pair is a warm-up.
    for (pair, epoch) in (0..=MOST_PAIRS).zip(1_u32..) {
        if pair > LEAST_PAIRS && begun.elapsed() > budget {
            break;
        }
        progress(&format!("slice {pair}"));
        let limit_time = limit.run(epoch, n_batches)?;
        let (time, mut slice_gaps) = ours(loader, epoch, n_batches)?;
        if pair > 0 {
            pairs.push(time, limit_time);
            gaps.append(&mut slice_gaps);
            n += 1;
        }
    }
    gaps.sort_unstable();
    let p99 = gaps.get(gaps.len().saturating_sub(1) * 99 / 100);
    Ok(Slices { p99: p99.copied().unwrap_or_default(), pairs, n, images })
}

/// The time from the start of an epoch until its first `n_batches` batches are delivered, and the times between
/// batches.
fn ours(loader: &Loader, epoch: u32, n_batches: u64) -> Result<(Duration, Vec<Duration>), BenchError> {
    let mut gaps = Vec::with_capacity(to_usize(n_batches));
    let started = Instant::now();
    let mut last = started;
    let mut batches = loader.epoch(epoch)?;
    for _ in 0..n_batches {
        if let Some(batch) = batches.next() {
            drop(batch?);
        }
        gaps.push(last.elapsed());
        last = Instant::now();
    }
    let time = started.elapsed();
    drop(batches);
    Ok((time, gaps))
}

/// Images per second if the consumer reads every byte once. `None` if batches are copied, because copying already reads
/// every byte.
pub(crate) fn read_once(loader: &Loader, options: &LoadBenchOptions) -> Result<Option<f64>, BenchError> {
    let most = Duration::from_secs_f64(options.seconds / 2.0);
    let started = Instant::now();
    let mut images = 0;
    for batch in loader.epoch(1)? {
        let batch = batch?;
        // Batches that span two chunks are copied. The first batch shows whether the loader lends batches at all.
        if images == 0 && !batch.is_lent() {
            return Ok(None);
        }
        for field in batch.fields().iter().filter(|f| f.shape.is_some()) {
            let mut crc = Crc32c::new();
            crc.update(batch.view(&field.name, field.view)?.bytes);
            std::hint::black_box(crc.value());
        }
        images += batch.len();
        if started.elapsed() > most {
            break;
        }
    }
    let images = to_u64(images);
    Ok(Some(to_f64(images) / started.elapsed().as_secs_f64()))
}

/// CPU seconds of the whole process per image, over a whole epoch. Slices are not used here, because their CPU time
/// would include batches that are made but never consumed. Stops early after the maximum time per measurement.
pub(crate) fn cpu_s_per_image(loader: &Loader, options: &LoadBenchOptions) -> Result<f64, BenchError> {
    let most = Duration::from_secs_f64(options.seconds);
    let (started, before) = (Instant::now(), processor_time());
    let mut images = 0;
    let mut epoch = loader.epoch(2)?;
    for batch in epoch.by_ref() {
        images += to_u64(batch?.len());
        if started.elapsed() > most {
            break;
        }
    }
    drop(epoch);
    let used = processor_time().saturating_sub(before);
    Ok(used.as_secs_f64() / to_f64(images.max(1)))
}
