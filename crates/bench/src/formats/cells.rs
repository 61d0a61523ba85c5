//! Runs every format in every order, cache state and number of threads.

use packds_system::{counted, to_u64};
use std::time::Duration;

use super::drive::{Measured, Pace, checked, measure, medians};
use super::order::{OrderName, Schedule};
use super::reference::Reference;
use super::report::RunRow;
use super::written::Written;
use super::{CacheName, FormatsBenchOptions, cache, checksum};
use crate::BenchError;
use crate::watch::Progress;

/// Time after which a warm run does not start another epoch. A run may take several epochs, because one epoch of few
/// images is too short to time.
const LEAST: Duration = Duration::from_secs(1);
const LEAST_QUICK: Duration = Duration::from_millis(40);
/// Maximum share of the files that may be missing from the page cache in a warm run.
const SLACK: f64 = 0.02;

/// The checksum that every lossless format must deliver, computed from the reference.
pub(super) fn expected(reference: &Reference) -> Result<String, BenchError> {
    let mut sum = 0_u64;
    for (sample, label) in (0..).zip(&reference.labels) {
        let pixels = reference.pack.item(0, sample)?;
        sum = sum.wrapping_add(checksum::of_sample(&pixels, *label));
    }
    Ok(checksum::shown(sum))
}

#[derive(Debug, Clone, Copy)]
struct Setting {
    schedule: Schedule,
    cache: CacheName,
    step_ms: f64,
}

/// Number of cells in [`Progress`]: the images, the limits, writing each format, checking it in each order with
/// each number of threads, and timing it in each setting and round.
pub(super) fn count(options: &FormatsBenchOptions, n_formats: usize) -> u64 {
    let settings = options.cache.len().saturating_mul(steps(options.step_ms).len());
    let timed = settings.saturating_mul(options.rounds.max(1));
    let schedules = options.orders.len().saturating_mul(options.threads.len());
    let each = schedules.saturating_mul(timed.saturating_add(1));
    let all = n_formats.saturating_mul(each.saturating_add(1));
    to_u64(all.saturating_add(2))
}

struct Cell<'a> {
    written: &'a Written,
    skipped: Option<String>,
    checksum: Option<String>,
    runs: Vec<Measured>,
    /// Share of the files in the page cache before each run.
    shares: Vec<f64>,
}

/// Checks the output of every format, then times it. Each round covers all formats, so changes in machine speed affect
/// all of them.
pub(super) fn run_all(
    written: &[Written],
    reference: &Reference,
    options: &FormatsBenchOptions,
    progress: &Progress<'_>,
) -> Result<Vec<RunRow>, BenchError> {
    let expected = expected(reference)?;
    let mut rows = Vec::new();
    for &order in &options.orders {
        for &threads in &options.threads {
            let schedule = Schedule {
                order,
                n_samples: reference.n_samples(),
                batch: u64::from(reference.batch),
                threads,
                seed: options.seed,
                shard: None,
            };
            let sums = check_all(written, reference, &schedule, &expected, progress)?;
            for &cache in &options.cache {
                for step_ms in steps(options.step_ms) {
                    let setting = Setting { schedule, cache, step_ms };
                    rows.extend(run_setting(written, reference, options, setting, &sums, progress)?);
                }
            }
        }
    }
    progress.check()?;
    Ok(rows)
}

/// The step durations to measure: 0, which is loading alone, and the training step if there is one.
fn steps(step_ms: f64) -> Vec<f64> {
    if step_ms > 0.0 { vec![0.0, step_ms] } else { vec![0.0] }
}

/// Checks one whole epoch of each format against the reference's checksum.
fn check_all(
    written: &[Written],
    reference: &Reference,
    schedule: &Schedule,
    expected: &str,
    progress: &Progress<'_>,
) -> Result<Vec<Option<String>>, BenchError> {
    let what = format!("{} order on {}", schedule.order, counted(schedule.threads, "thread"));
    progress.part(&format!("checking {what}"))?;
    let check_one = |written: &Written| {
        progress.cell(&format!("checking {}, {what}", written.entry.name))?;
        if skipped(written, schedule.order).is_some() {
            return Ok(None);
        }
        let mut feed = written.open(schedule, reference.sample_bytes())?;
        let found = checked(feed.as_mut(), &|| progress.cancelled())?;
        progress.check()?;
        agreed(found, written.entry.name, schedule.order, expected).map(Some)
    };
    written.iter().map(check_one).collect()
}

/// The checksum of an epoch, if it is correct.
fn agreed(found: u64, format: &str, order: OrderName, expected: &str) -> Result<String, BenchError> {
    let found = checksum::shown(found);
    if found == expected {
        return Ok(found);
    }
    Err(BenchError::Disagree {
        format: format.to_owned(),
        order: order.to_string(),
        expected: expected.to_owned(),
        found,
    })
}

fn skipped(written: &Written, order: OrderName) -> Option<String> {
    if let Some(reason) = written.left_out() {
        return Some(reason.to_owned());
    }
    (written.entry.streamed && order == OrderName::PerSample)
        .then(|| "read sequentially: single samples cannot be accessed".to_owned())
}

fn run_setting(
    written: &[Written],
    reference: &Reference,
    options: &FormatsBenchOptions,
    setting: Setting,
    sums: &[Option<String>],
    progress: &Progress<'_>,
) -> Result<Vec<RunRow>, BenchError> {
    let cell = |(written, sum): (_, &Option<String>)| {
        let skipped = skipped(written, setting.schedule.order);
        Cell { written, skipped, checksum: sum.clone(), runs: Vec::new(), shares: Vec::new() }
    };
    let mut cells: Vec<Cell<'_>> = written.iter().zip(sums).map(cell).collect();
    let rounds = options.rounds.max(1);
    for round in 1..=rounds {
        let what = format!("{}: round {round} of {rounds}", setting.shown());
        progress.part(&what)?;
        for cell in &mut cells {
            progress.cell(&format!("{}, {what}", cell.written.entry.name))?;
            if cell.skipped.is_none() {
                cell.run(reference, options, &setting, progress)?;
            }
        }
    }
    Ok(cells.iter().map(|cell| cell.row(&setting)).collect())
}

impl Setting {
    fn shown(&self) -> String {
        let Schedule { order, threads, .. } = self.schedule;
        let step = match self.step_ms > 0.0 {
            true => format!(", steps of {} ms", self.step_ms),
            false => String::new(),
        };
        format!("{order}, {}, {}{step}", self.cache, counted(threads, "thread"))
    }
}

impl Cell<'_> {
    fn run(
        &mut self,
        reference: &Reference,
        options: &FormatsBenchOptions,
        setting: &Setting,
        progress: &Progress<'_>,
    ) -> Result<(), BenchError> {
        let files = self.written.files();
        let mut share = cache::share(files)?;
        if setting.cache == CacheName::Cold {
            cache::drop_all(files)?;
            share = cache::share(files)?;
        } else if share < 1.0 - SLACK {
            cache::warm(files)?;
            share = cache::share(files)?;
        }
        let epochs = match (setting.cache, setting.step_ms > 0.0, options.quick) {
            (CacheName::Cold, _, _) | (_, true, _) => Duration::ZERO,
            (CacheName::Warm, false, true) => LEAST_QUICK,
            (CacheName::Warm, false, false) => LEAST,
        };
        let pace = Pace {
            step: Duration::from_secs_f64(setting.step_ms / 1e3),
            least: epochs,
            most: Duration::from_secs_f64(options.seconds),
        };
        let open = || self.written.open(&setting.schedule, reference.sample_bytes());
        self.runs.push(measure(&open, pace, &|| progress.cancelled())?);
        self.shares.push(share);
        Ok(())
    }

    fn row(&self, setting: &Setting) -> RunRow {
        let row = RunRow {
            format: self.written.entry.name.to_owned(),
            order: setting.schedule.order.to_string(),
            cache: setting.cache.to_string(),
            threads: setting.schedule.threads,
            batch: u32::try_from(setting.schedule.batch).unwrap_or(u32::MAX),
            step_ms: setting.step_ms,
            skipped: self.skipped.clone(),
            ..RunRow::default()
        };
        if self.skipped.is_some() {
            return row;
        }
        let found = medians(&self.runs);
        let waited = setting.step_ms > 0.0;
        // The worst round: for cold runs the one with the most cached data, for warm runs the one with the least.
        let shares = self.shares.iter().copied();
        let share = match setting.cache {
            CacheName::Cold => shares.fold(0.0, f64::max),
            CacheName::Warm => shares.fold(1.0, f64::min),
        };
        RunRow {
            batch_ms: Some(found.batch_ms),
            images_per_s: Some(found.images_per_s),
            first_batch_ms: Some(found.first_batch_ms),
            cpu_s_per_1000: Some(found.cpu_s_per_1000),
            peak_rss_bytes: Some(found.peak_rss_bytes),
            wait_ms: waited.then_some(found.wait_ms),
            wait_share: waited.then_some(found.wait_share),
            checksum: self.checksum.clone(),
            cached_share_before: Some(share),
            ..row
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_delivers_something_else_is_named_with_both_sums() {
        let expected = checksum::shown(checksum::of_batch(&[1, 2, 3, 4, 5, 6, 7, 8], &[0, 1]));
        let delivered = |label: i64| {
            let found = checksum::of_batch(&[1, 2, 3, 4, 5, 6, 7, 8], &[0, label]);
            agreed(found, "npy", OrderName::Chunk, &expected)
        };
        assert_eq!(delivered(1).unwrap(), expected);
        let error = delivered(2).unwrap_err();
        let BenchError::Disagree { found, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            error.to_string(),
            format!("npy, chunk order: delivered wrong samples (expected checksum {expected}, found {found})")
        );
        assert_ne!(*found, expected);
    }

    #[test]
    fn a_step_is_measured_beside_loading_alone() {
        assert_eq!(steps(0.0), [0.0]);
        assert_eq!(steps(50.0), [0.0, 50.0]);
    }
}
