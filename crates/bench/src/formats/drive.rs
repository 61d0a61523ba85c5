//! One run of one format: epochs of batches, timed by the consumer.

use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::checksum;
use super::feed::Feed;
use super::report::Spread;
use crate::BenchError;
use crate::machine::{PeakRss, processor_time};
use crate::measure::{median, percentile};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Time that the consumer sleeps per batch, like a process that waits for an accelerator.
    pub(crate) step: Duration,
    /// No new epoch starts after this time.
    pub(crate) least: Duration,
    /// No batch is requested later than this. The time counts from the first batch, so that formats that open slowly
    /// are measured too.
    pub(crate) most: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) batch_ms: Spread,
    pub(crate) images_per_s: f64,
    pub(crate) first_batch_ms: f64,
    pub(crate) cpu_s_per_1000: f64,
    pub(crate) peak_rss_bytes: u64,
    pub(crate) wait_ms: Spread,
    pub(crate) wait_share: f64,
}

/// Opens and runs a feed. If cancelled, stops early and returns a meaningless result.
pub(crate) fn measure(
    open: &dyn Fn() -> Result<Box<dyn Feed>, BenchError>,
    pace: Pace,
    cancelled: &dyn Fn() -> bool,
) -> Result<Measured, BenchError> {
    let rss = PeakRss::reset();
    let cpu = processor_time();
    let opened = Instant::now();
    let mut feed = open()?;
    let (mut last, mut first_batch) = (Instant::now(), None);
    let (mut waits, mut gaps) = (Vec::new(), Vec::new());
    let (mut images, mut enough, mut epoch) = (0_usize, false, 0);
    while !enough {
        feed.epoch(epoch, &mut |pixels, labels| {
            let wait = last.elapsed();
            let first = *first_batch.get_or_insert_with(|| opened.elapsed());
            if !waits.is_empty() {
                gaps.push(to_ms(wait + pace.step));
            }
            waits.push(to_ms(wait));
            images += labels.len();
            black_box(pixels.first());
            if !pace.step.is_zero() {
                sleep(pace.step);
            }
            last = Instant::now();
            enough = last.duration_since(opened) >= first + pace.most || cancelled();
            !enough
        })?;
        enough |= opened.elapsed() >= pace.least;
        epoch += 1;
    }
    // Include the opening time, because some readers read most of an uncached file while they open it.
    let time = last.duration_since(opened).as_secs_f64().max(1e-9);
    let cpu = processor_time().saturating_sub(cpu).as_secs_f64();
    let peak_rss_bytes = rss.bytes();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    let images = images.max(1) as f64;
    if gaps.is_empty() {
        gaps.clone_from(&waits);
    }
    Ok(Measured {
        images_per_s: images / time,
        first_batch_ms: to_ms(first_batch.unwrap_or_default()),
        cpu_s_per_1000: cpu / images * 1e3,
        peak_rss_bytes,
        wait_share: waits.iter().sum::<f64>() / 1e3 / time,
        batch_ms: spread(gaps),
        wait_ms: spread(waits),
    })
}

/// The checksum of a whole epoch. If cancelled, the checksum of the batches so far, which is meaningless.
pub(crate) fn checked(feed: &mut dyn Feed, cancelled: &dyn Fn() -> bool) -> Result<u64, BenchError> {
    let mut sum = 0_u64;
    feed.epoch(0, &mut |pixels, labels| {
        sum = sum.wrapping_add(checksum::of_batch(pixels, labels));
        !cancelled()
    })?;
    Ok(sum)
}

pub(crate) fn medians(runs: &[Measured]) -> Measured {
    let of = |number: fn(&Measured) -> f64| median(runs.iter().map(number).collect());
    let mut peaks: Vec<u64> = runs.iter().map(|run| run.peak_rss_bytes).collect();
    peaks.sort_unstable();
    Measured {
        batch_ms: Spread { median: of(|run| run.batch_ms.median), p95: of(|run| run.batch_ms.p95) },
        images_per_s: of(|run| run.images_per_s),
        first_batch_ms: of(|run| run.first_batch_ms),
        cpu_s_per_1000: of(|run| run.cpu_s_per_1000),
        peak_rss_bytes: peaks.get(peaks.len() / 2).copied().unwrap_or(0),
        wait_ms: Spread { median: of(|run| run.wait_ms.median), p95: of(|run| run.wait_ms.p95) },
        wait_share: of(|run| run.wait_share),
    }
}

fn spread(times: Vec<f64>) -> Spread {
    Spread { p95: percentile(times.clone(), 95), median: median(times) }
}

fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::super::feed::Take;
    use super::*;

    /// A feed with ten batches. Each has two samples of 8 bytes and takes 2 ms.
    struct Slow;

    impl Feed for Slow {
        fn epoch(&mut self, _: u32, take: &mut Take<'_>) -> Result<(), BenchError> {
            for _ in 0..10 {
                sleep(Duration::from_millis(2));
                if !take(&[7; 16], &[1, 2]) {
                    break;
                }
            }
            Ok(())
        }
    }

    fn run(pace: Pace) -> Measured {
        measure(&|| Ok(Box::new(Slow)), pace, &|| false).unwrap()
    }

    #[test]
    fn loading_alone_is_timed_from_batch_to_batch() {
        let found = run(Pace { step: Duration::ZERO, least: Duration::from_millis(30), most: Duration::from_secs(5) });
        assert!(found.batch_ms.median >= 2.0 && found.batch_ms.p95 >= found.batch_ms.median);
        assert!((0.0..=1000.0).contains(&found.images_per_s), "{found:?}");
        assert!(found.first_batch_ms >= 2.0);
        assert!(found.wait_share > 0.9, "{found:?}");
    }

    #[test]
    fn a_training_step_waits_only_for_its_batch() {
        let found = run(Pace { step: Duration::from_millis(4), least: Duration::ZERO, most: Duration::from_secs(5) });
        assert!(found.batch_ms.median >= 6.0, "{found:?}");
        assert!(found.wait_ms.median >= 2.0, "{found:?}");
        // There are at least nine steps between ten batches. They are not part of the wait, however slow the machine
        // is.
        let seconds = 20.0 / found.images_per_s;
        assert!((1.0 - found.wait_share) * seconds >= 0.036, "{found:?}");
    }

    #[test]
    fn a_run_ends_when_its_time_is_over() {
        let found = run(Pace { step: Duration::ZERO, least: Duration::ZERO, most: Duration::from_nanos(1) });
        assert!(found.batch_ms.median >= 2.0, "one batch is always taken");
        assert!((checked(&mut Slow, &|| false).unwrap()) != 0);
    }

    #[test]
    fn a_run_that_is_cancelled_takes_no_further_batch() {
        let pace = Pace { step: Duration::ZERO, least: Duration::from_secs(60), most: Duration::from_secs(60) };
        let begun = Instant::now();
        measure(&|| Ok(Box::new(Slow)), pace, &|| true).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
