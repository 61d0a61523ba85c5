//! `packds bench tune`: measures how long training waits, by threads, prefetch and batch size, and recommends settings.
//!
//! For each configuration, a consumer takes batches from a [`Loader`] and sleeps for the time of a training step. The
//! module `load` measures the maximum speed of a loader instead.

use packds_system::{counted, to_u64};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packds_reader::Pack;
use packds_reader::augment::Augment;
use packds_reader::loader::Loader;
use packds_reader::plan::Order;
use serde::{Serialize, Serializer};

use crate::BenchError;
use crate::load::{augment_words, cache, largest_batch, parse_augment};
use crate::machine::{Machine, processor_time};
use crate::measure::{percentile, to_f64};

/// Two waits are considered equal if their difference is less than this share of a step, because runs of the same
/// configuration differ by that much.
const ALIKE: f64 = 0.01;
/// If waiting for batches within epochs is less than this share of the total wait, most of the wait is at the start and
/// end of epochs.
const MOSTLY: f64 = 0.5;
/// Minimum number of batches per configuration.
const LEAST_BATCHES: usize = 10;
/// A step sleeps for this much less than its duration, because a sleep may end late. The rest is a busy wait.
const SLEEP_SLACK: Duration = Duration::from_micros(500);
/// Minimum number of batches per epoch for a wait to be measured. The first batch does not count, because it also waits
/// for the epoch to start.
const LEAST_STEPS: u64 = 2;
/// Number of slots in addition to those for prefetched batches: one for the batch in use, and one for the requested
/// batch.
const IN_USE: usize = 2;

/// Prefetch depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// A fixed number of batches.
    Fixed(NonZero<usize>),
    /// As many batches as the loader finds necessary.
    Auto,
}

impl std::fmt::Display for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(n) => f.pad(&n.to_string()),
            Self::Auto => f.pad("auto"),
        }
    }
}

impl Serialize for Ahead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(n) => n.serialize(serializer),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

/// Options of [`bench_tune`].
#[derive(Debug, Clone)]
pub struct TuneBenchOptions {
    /// Duration of a training step in ms.
    pub step_ms: f64,
    /// Thread counts. If empty: 1, 2, 4 and so on up to all cores.
    pub threads: Vec<NonZero<usize>>,
    /// Prefetch depths. If empty: 1, 2, 4, 8 and auto.
    pub prefetches: Vec<Ahead>,
    /// Batch sizes. If empty: 32, 64, 128 and 256, as long as an epoch has two batches.
    pub batches: Vec<u32>,
    /// Order of the samples.
    pub order: Order,
    /// Augmentations. Default: `rrc224,flip` for encoded images, else none.
    pub augment: Option<String>,
    /// Maximum time per configuration in seconds.
    pub seconds: f64,
    /// Seed of the order and augmentation.
    pub seed: u64,
}

/// The result of `packds bench tune`.
#[derive(Debug, Clone, Serialize)]
pub struct TuneBench {
    /// The machine that ran the benchmark.
    pub machine: Machine,
    /// Duration of a training step in ms.
    pub step_ms: f64,
    /// The path that the user gave.
    pub path: String,
    /// Number of samples in the pack.
    pub n_samples: u64,
    /// Size of the pack in bytes.
    pub bytes: u64,
    /// The resolved order.
    pub order: &'static str,
    /// The augmentations. Empty for none.
    pub augment: String,
    /// Maximum time per configuration in seconds.
    pub seconds: f64,
    /// Seed of the order and augmentation.
    pub seed: u64,
    /// State of the page cache. Always `warm`.
    pub cache: &'static str,
    /// Share of the pack in the page cache before the first configuration.
    pub resident_before: f64,
    /// Share of the pack in the page cache after the last configuration.
    pub resident_after: f64,
    /// The size to which larger default batch sizes were reduced, because the pack has too few samples.
    pub batch_cut_to: Option<u32>,
    /// The results, one per configuration.
    pub runs: Vec<TuneRun>,
    /// Time that an epoch takes in addition to its batches, at its start and end, in the recommended configuration.
    pub fixed_cost_ms: Option<f64>,
    /// Recommended settings; `None` if the pack is too small for every batch size.
    pub recommended: Option<Recommended>,
    /// The recommendation for each batch size.
    pub recommended_by_batch: Vec<Recommended>,
}

/// The result of one configuration.
#[derive(Debug, Clone, Serialize)]
pub struct TuneRun {
    /// Number of loader threads.
    pub threads: usize,
    /// Prefetch depth as configured.
    pub prefetch: Ahead,
    /// Samples per batch.
    pub batch: u32,
    /// Number of measured waits.
    pub batches: usize,
    /// Wait per batch, not counting the first batch of each epoch. `None` if the pack is so small that epochs have only
    /// one batch.
    pub wait_ms: Option<Wait>,
    /// Share of time spent waiting, including the start and end of epochs. The criterion for recommendations.
    pub wait_share: f64,
    /// Median time from the start of an epoch to its first batch, in ms.
    pub first_batch_ms: f64,
    /// Median time from the last batch of an epoch to its end, in ms.
    pub end_ms: f64,
    /// Images per second, including training.
    pub images_per_s: f64,
    /// CPU seconds per 1000 images.
    pub cpu_s_per_1000: f64,
    /// Memory of the staging ring in bytes.
    pub memory_bytes: u64,
    /// Number of slots of the staging ring.
    pub slots: usize,
    /// Prefetch depth at the end of the run.
    pub prefetch_at_end: usize,
}

/// Waiting times in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Wait {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
}

/// A recommended configuration and the reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommended {
    /// Number of loader threads.
    pub threads: usize,
    /// Prefetch depth.
    pub prefetch: Ahead,
    /// Samples per batch.
    pub batch: u32,
    /// Why this configuration is recommended.
    pub why: String,
}

impl TuneBench {
    /// The largest batch size whose wait can be measured on this pack.
    #[must_use]
    pub fn largest_batch(&self) -> u32 {
        largest_batch(self.n_samples, LEAST_STEPS)
    }

    /// The batch sizes whose wait cannot be measured, because the pack is too small.
    #[must_use]
    pub fn too_large(&self) -> Vec<u32> {
        let unmeasured = self.runs.iter().filter(|run| run.wait_ms.is_none());
        let mut batches: Vec<u32> = unmeasured.map(|run| run.batch).collect();
        batches.dedup();
        batches
    }
}

/// Measures every configuration on the pack, after reading it into the page cache. `progress` receives
/// the name of each step, the number of steps done, and their total.
///
/// # Errors
/// [`BenchError`] if something fails or a result is wrong.
pub fn bench_tune(
    path: &Path,
    options: &TuneBenchOptions,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<TuneBench, BenchError> {
    let pack = Arc::new(packds_reader::open(path)?);
    let text = augment_words(&pack, options.augment.as_deref()).to_owned();
    let augment = parse_augment(&text)?;
    let bench = Bench { pack: &pack, options, augment };
    let (grid, batch_cut_to) = grid(options, pack.n_samples())?;
    let n_steps = to_u64(grid.len());
    progress("reading the pack into the page cache", 0, n_steps);
    cache::warm(&cache::pack_files(path)?)?;
    let resident_before = cache::resident(&pack)?;
    cache::check(resident_before, false)?;
    let mut runs = Vec::with_capacity(grid.len());
    let mut order = "";
    for (nth, (batch, threads, prefetch)) in grid.iter().enumerate() {
        let what = format!("batch {batch}, {}, prefetch {prefetch}", counted(threads.get(), "thread"));
        progress(&what, to_u64(nth), n_steps);
        let loader = bench.loader(*batch, *threads, *prefetch)?;
        order = loader.schedule().recipe().order.name();
        runs.push(bench.run(&loader, *batch, *threads, *prefetch)?);
    }
    let resident_after = cache::resident(&pack)?;
    cache::check(resident_after, false)?;
    let (recommended, by_batch) = recommend(&runs, options.step_ms);
    let is_chosen = |run: &&TuneRun| recommended.as_ref().is_some_and(|one| one.is(run));
    let chosen = runs.iter().find(is_chosen);
    Ok(TuneBench {
        machine: Machine::here(),
        step_ms: options.step_ms,
        path: path.to_string_lossy().into_owned(),
        n_samples: pack.n_samples(),
        bytes: pack.file_len(),
        order,
        augment: text,
        seconds: options.seconds,
        seed: options.seed,
        cache: "warm",
        resident_before,
        resident_after,
        fixed_cost_ms: chosen.map(|run| run.first_batch_ms + run.end_ms),
        batch_cut_to,
        runs,
        recommended,
        recommended_by_batch: by_batch,
    })
}

/// Batch size, threads and prefetch of each configuration.
type Grid = Vec<(u32, NonZero<usize>, Ahead)>;

/// All configurations, by batch size, and the size to which larger default batch sizes were reduced.
fn grid(options: &TuneBenchOptions, n_samples: u64) -> Result<(Grid, Option<u32>), BenchError> {
    let (batches, cut) = batches(options, n_samples)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = options.threads.clone();
    if threads.is_empty() {
        let doubled = std::iter::successors(Some(1), |n| Some(n * 2));
        let below = doubled.take_while(|n| *n < cores);
        threads = below.chain([cores]).filter_map(NonZero::new).collect();
    }
    threads.sort_unstable();
    threads.dedup();
    let mut prefetches = options.prefetches.clone();
    if prefetches.is_empty() {
        let fixed = [1, 2, 4, 8].into_iter().filter_map(NonZero::new);
        prefetches = fixed.map(Ahead::Fixed).chain([Ahead::Auto]).collect();
    }
    // Auto is last in the plot, whatever its depth.
    prefetches.sort_unstable_by_key(|prefetch| match prefetch {
        Ahead::Fixed(n) => n.get(),
        Ahead::Auto => usize::MAX,
    });
    prefetches.dedup();
    let mut grid = Vec::new();
    for batch in batches {
        for thread in &threads {
            grid.extend(prefetches.iter().map(|prefetch| (batch, *thread, *prefetch)));
        }
    }
    Ok((grid, cut))
}

/// The distinct batch sizes, and the size to which larger default sizes were reduced. Requested sizes are not changed.
fn batches(options: &TuneBenchOptions, n_samples: u64) -> Result<(Vec<u32>, Option<u32>), BenchError> {
    if n_samples < LEAST_STEPS {
        return Err(BenchError::TooFewSamples { n_samples, least: LEAST_STEPS });
    }
    let most = largest_batch(n_samples, LEAST_STEPS);
    let mut batches = options.batches.clone();
    let mut cut = None;
    if batches.is_empty() {
        let default = [32, 64, 128, 256];
        cut = default.iter().any(|batch| *batch > most).then_some(most);
        batches = default.map(|batch| most.min(batch)).to_vec();
    } else if let Some(batch) = batches.iter().find(|batch| u64::from(**batch) > n_samples) {
        return Err(BenchError::BatchTooLarge { batch: *batch, n_samples, largest: most });
    }
    batches.sort_unstable();
    batches.dedup();
    Ok((batches, cut))
}

struct Bench<'a> {
    pack: &'a Arc<Pack>,
    options: &'a TuneBenchOptions,
    augment: Option<Augment>,
}

impl Bench<'_> {
    fn loader(&self, batch: u32, threads: NonZero<usize>, prefetch: Ahead) -> Result<Loader, BenchError> {
        let mut builder = Loader::builder(Arc::clone(self.pack))
            .batch(batch)
            .order(self.options.order)
            .seed(self.options.seed)
            .threads(threads);
        if let Ahead::Fixed(prefetch) = prefetch {
            builder = builder.prefetch(prefetch).slots(prefetch.saturating_add(IN_USE));
        }
        if let Some(augment) = &self.augment {
            builder = builder.augment(augment.clone());
        }
        Ok(builder.build()?)
    }

    /// Simulates training for the given time, but at least for a few batches, and records the waits.
    fn run(
        &self,
        loader: &Loader,
        batch: u32,
        threads: NonZero<usize>,
        prefetch: Ahead,
    ) -> Result<TuneRun, BenchError> {
        let step = Duration::from_secs_f64(self.options.step_ms / 1e3);
        let most = Duration::from_secs_f64(self.options.seconds);
        let (mut waits, mut firsts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let (mut images, mut spun) = (0, Duration::ZERO);
        let (started, cpu) = (Instant::now(), processor_time());
        for number in 0.. {
            let mut asked = Instant::now();
            let mut epoch = loader.epoch(number)?;
            let mut first = true;
            for batch in epoch.by_ref() {
                let batch = batch?;
                let waited = asked.elapsed();
                (if first { &mut firsts } else { &mut waits }).push(waited);
                first = false;
                images += batch.len();
                spun += train(step);
                drop(batch);
                asked = Instant::now();
                if started.elapsed() >= most && waits.len() >= LEAST_BATCHES {
                    break;
                }
            }
            drop(epoch);
            ends.push(asked.elapsed());
            // Epochs with a single batch have only the wait for the first batch.
            let enough = waits.len() >= LEAST_BATCHES || firsts.len() >= LEAST_BATCHES;
            if started.elapsed() >= most && enough {
                break;
            }
        }
        let time = started.elapsed().as_secs_f64().max(1e-9);
        let used = processor_time().saturating_sub(cpu).saturating_sub(spun);
        let all = waits.iter().chain(&firsts).chain(&ends);
        let waited: Duration = all.sum();
        let stats = loader.stats();
        let images = to_f64(to_u64(images));
        Ok(TuneRun {
            threads: threads.get(),
            prefetch,
            batch,
            batches: waits.len(),
            wait_ms: (!waits.is_empty()).then(|| Wait::of(&waits)),
            wait_share: waited.as_secs_f64() / time,
            first_batch_ms: Wait::of(&firsts).median,
            end_ms: Wait::of(&ends).median,
            images_per_s: images / time,
            cpu_s_per_1000: used.as_secs_f64() / images.max(1.0) * 1e3,
            memory_bytes: stats.slot_bytes.saturating_mul(to_u64(stats.slots)),
            slots: stats.slots,
            prefetch_at_end: stats.prefetch,
        })
    }
}

/// Idles for the time of a step, as a CPU does while an accelerator trains. Returns the time spent in a busy wait.
fn train(step: Duration) -> Duration {
    let begun = Instant::now();
    if let Some(sleep) = step.checked_sub(SLEEP_SLACK) {
        std::thread::sleep(sleep);
    }
    let spinning = Instant::now();
    while begun.elapsed() < step {
        std::hint::spin_loop();
    }
    spinning.elapsed()
}

impl Wait {
    fn of(times: &[Duration]) -> Self {
        let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        Self {
            mean: times.iter().sum::<f64>() / to_f64(to_u64(times.len().max(1))),
            median: percentile(times.clone(), 50),
            p95: percentile(times, 95),
        }
    }
}

impl Recommended {
    /// Whether this is the configuration of `run`.
    #[must_use]
    pub fn is(&self, run: &TuneRun) -> bool {
        (self.threads, self.prefetch, self.batch) == (run.threads, run.prefetch, run.batch)
    }
}

/// The wait per step, as a multiple of the step's duration. It includes the start and end of epochs, because otherwise
/// many short epochs would look good.
fn wait_in_steps(run: &TuneRun) -> f64 {
    run.wait_share / (1.0 - run.wait_share).max(1e-9)
}

/// Recommends a configuration overall, and one for each batch size. For each batch size, it is the cheapest one (fewest
/// threads, then least memory) whose wait is close to the shortest. Overall, it is the one with the largest batch size
/// among those whose wait is close to the shortest of all, because a step with a larger batch trains on more images.
/// Configurations without a measured wait are ignored.
fn recommend(runs: &[TuneRun], step_ms: f64) -> (Option<Recommended>, Vec<Recommended>) {
    let measured = runs.iter().filter(|run| run.wait_ms.is_some());
    let runs: Vec<&TuneRun> = measured.collect();
    let mut batches: Vec<u32> = runs.iter().map(|run| run.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let best = |runs: &[&TuneRun]| {
        let waits = runs.iter().map(|run| wait_in_steps(run));
        waits.min_by(f64::total_cmp).unwrap_or(0.0)
    };
    let cheapest = |batch: &u32| {
        let of_batch: Vec<&TuneRun> = runs.iter().copied().filter(|run| run.batch == *batch).collect();
        let least = best(&of_batch);
        let good = of_batch.iter().filter(|run| wait_in_steps(run) <= least + ALIKE);
        let run = good.min_by_key(|run| (run.threads, run.memory_bytes))?;
        let recommended = Recommended {
            threads: run.threads,
            prefetch: run.prefetch,
            batch: *batch,
            why: why(run, &of_batch, least, step_ms),
        };
        Some((wait_in_steps(run), recommended))
    };
    let by_batch: Vec<(f64, Recommended)> = batches.iter().filter_map(cheapest).collect();
    // The list has a configuration whose wait is about the shortest of all, so one is chosen if any is listed.
    let least = best(&runs);
    let good = |(wait, _): &&(f64, Recommended)| *wait <= least + ALIKE;
    let chosen = by_batch.iter().rev().find(good).map(|(_, one)| one.clone());
    (chosen, by_batch.into_iter().map(|(_, one)| one).collect())
}

/// The wait with this configuration, why it was chosen for its batch size, and what would help.
fn why(run: &TuneRun, tried: &[&TuneRun], least: f64, step_ms: f64) -> String {
    let wait = run.wait_ms.map_or(0.0, |wait| wait.mean);
    let share = run.wait_share * 100.0;
    let cheap = match tried {
        [_] => "this is the only configuration tried for this batch size".to_owned(),
        _ => format!(
            "this is the cheapest configuration ({}, {}) whose wait is close to the shortest, {:.1} % of the time",
            counted(run.threads, "thread"),
            counted(run.slots, "slot"),
            least / (1.0 + least) * 100.0
        ),
    };
    if run.wait_share < ALIKE {
        return format!(
            "training waits {wait:.2} ms per batch, {share:.1} % of its time, which is negligible for a step of {step_ms} ms: {cheap}"
        );
    }
    let help = if wait < wait_in_steps(run) * step_ms * MOSTLY {
        "most of the wait is at the start and end of epochs, so longer epochs would help"
    } else {
        "the loader is slower than training, so a smaller batch or less augmentation would help"
    };
    let more = more_of(run, tried);
    format!("training waits {wait:.2} ms per batch, {share:.1} % of its time: {cheap}; {help}; {more}")
}

/// Says whether more threads or a larger prefetch would help. Values that were tried would not help, or they would have
/// been recommended.
fn more_of(run: &TuneRun, tried: &[&TuneRun]) -> String {
    let effect = |seen: bool, not_tried: &'static str| if seen { "would not help" } else { not_tried };
    let threads = tried.iter().any(|other| other.threads > run.threads);
    let deeper = |other: &&TuneRun| other.threads == run.threads && other.slots > run.slots;
    let ahead = tried.iter().any(deeper);
    if threads == ahead {
        return format!("more threads or a larger prefetch {}", effect(ahead, "were not tried"));
    }
    let (threads, ahead) = (effect(threads, "were not tried"), effect(ahead, "was not tried"));
    format!("more threads {threads}, a larger prefetch {ahead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(batch: u32, threads: usize, prefetch: usize, wait: f64) -> TuneRun {
        let ahead = NonZero::new(prefetch).map_or(Ahead::Auto, Ahead::Fixed);
        let slots = if prefetch == 0 { 16 } else { prefetch + IN_USE };
        TuneRun {
            threads,
            prefetch: ahead,
            batch,
            batches: 100,
            wait_ms: Some(Wait { mean: wait, median: wait, p95: wait }),
            wait_share: wait / (wait + 50.0),
            first_batch_ms: 1.0,
            end_ms: 0.0,
            images_per_s: 1.0,
            cpu_s_per_1000: 1.0,
            memory_bytes: u64::try_from(slots).unwrap() * u64::from(batch),
            slots,
            prefetch_at_end: prefetch,
        }
    }

    fn chosen(runs: &[TuneRun]) -> (u32, usize, String) {
        let one = recommend(runs, 50.0).0.unwrap();
        (one.batch, one.threads, one.prefetch.to_string())
    }

    #[test]
    fn fewer_threads_come_before_less_memory() {
        let runs = [run(32, 2, 1, 0.0), run(32, 1, 8, 0.02), run(32, 1, 4, 0.05)];
        assert_eq!(chosen(&runs), (32, 1, "4".to_owned()));
    }

    #[test]
    fn a_cheaper_configuration_that_waits_longer_is_not_recommended() {
        let runs = [run(32, 1, 1, 9.0), run(32, 2, 2, 5.0), run(32, 2, 4, 4.8)];
        assert_eq!(chosen(&runs), (32, 2, "2".to_owned()));
        // A difference of 1 % of a step is noise, but a larger one is not.
        let runs = [run(32, 1, 1, 0.5), run(32, 2, 2, 0.1)];
        assert_eq!(chosen(&runs), (32, 1, "1".to_owned()));
        let runs = [run(32, 1, 1, 0.7), run(32, 2, 2, 0.1)];
        assert_eq!(chosen(&runs), (32, 2, "2".to_owned()));
    }

    #[test]
    fn what_waits_between_epochs_is_not_recommended_over_what_does_not() {
        // There is almost no wait for batches. But epochs of large batches are short, and training waits at each start.
        let waiting = |share, run| TuneRun { wait_share: share, ..run };
        let runs = [
            waiting(0.085, run(64, 2, 4, 0.03)),
            waiting(0.080, run(64, 2, 8, 0.02)),
            waiting(0.132, run(64, 1, 2, 0.06)),
            waiting(0.131, run(256, 1, 1, 0.05)),
        ];
        assert_eq!(chosen(&runs), (64, 2, "4".to_owned()));
        let why = recommend(&runs, 50.0).0.unwrap().why;
        assert!(why.contains("8.5 % of its time") && why.contains("longer epochs"), "{why}");
    }

    #[test]
    fn auto_is_recommended_only_where_no_fixed_depth_is_as_good() {
        let runs = [run(32, 1, 0, 0.0), run(32, 1, 8, 0.0)];
        assert_eq!(chosen(&runs), (32, 1, "8".to_owned()));
        let runs = [run(32, 1, 0, 0.0), run(32, 1, 8, 3.0)];
        assert_eq!(chosen(&runs), (32, 1, "auto".to_owned()));
    }

    #[test]
    fn the_largest_batch_that_is_not_waited_for_is_recommended() {
        let runs = [run(32, 1, 1, 0.0), run(64, 1, 1, 0.05), run(128, 1, 1, 30.0)];
        assert_eq!(chosen(&runs), (64, 1, "1".to_owned()));
        let (_, by_batch) = recommend(&runs, 50.0);
        let batches: Vec<u32> = by_batch.iter().map(|one| one.batch).collect();
        assert_eq!(batches, [32, 64, 128]);
        assert!(by_batch[2].why.contains("37.5 % of its time"), "{}", by_batch[2].why);
        assert_eq!(recommend(&[], 50.0), (None, Vec::new()));
    }

    #[test]
    fn a_batch_that_was_not_waited_for_is_never_recommended() {
        let unmeasured = TuneRun { wait_ms: None, wait_share: 0.0, ..run(64, 1, 1, 0.0) };
        let runs = [run(32, 1, 1, 5.0), unmeasured];
        assert_eq!(chosen(&runs), (32, 1, "1".to_owned()));
        assert_eq!(recommend(&runs[1..], 50.0), (None, Vec::new()));
    }

    #[test]
    fn of_threads_and_depths_that_were_not_tried_nothing_is_concluded() {
        let why = |runs: &[TuneRun]| recommend(runs, 50.0).0.unwrap().why;
        let one = why(&[run(32, 1, 1, 30.0)]);
        assert!(one.contains("only configuration") && !one.contains("would not"), "{one}");
        assert!(one.ends_with("more threads or a larger prefetch were not tried"), "{one}");
        let prefetches = why(&[run(32, 1, 1, 30.0), run(32, 1, 2, 30.0)]);
        assert!(prefetches.ends_with("more threads were not tried, a larger prefetch would not help"), "{prefetches}");
        // The deepest prefetch was needed, so an even deeper one may be better.
        let deepest = why(&[run(32, 1, 1, 30.0), run(32, 1, 2, 20.0), run(32, 2, 1, 30.0)]);
        assert!(deepest.ends_with("more threads would not help, a larger prefetch was not tried"), "{deepest}");
    }

    #[test]
    fn a_step_takes_its_time() {
        let begun = Instant::now();
        train(Duration::from_millis(3));
        assert!(begun.elapsed() >= Duration::from_millis(3));
    }

    fn options(batches: &[u32], prefetches: &[Ahead]) -> TuneBenchOptions {
        TuneBenchOptions {
            step_ms: 1.0,
            threads: Vec::new(),
            prefetches: prefetches.to_vec(),
            batches: batches.to_vec(),
            order: Order::Auto,
            augment: None,
            seconds: 1.0,
            seed: 0,
        }
    }

    #[test]
    fn default_batches_leave_two_an_epoch_and_the_cut_is_reported() {
        let cut = |n| batches(&options(&[], &[]), n).unwrap();
        assert_eq!(cut(80), (vec![32, 40], Some(40)));
        assert_eq!(cut(30), (vec![15], Some(15)));
        assert_eq!(cut(512), (vec![32, 64, 128, 256], None));
        assert_eq!(cut(2), (vec![1], Some(1)));
    }

    #[test]
    fn each_configuration_is_tried_once() {
        let two = Ahead::Fixed(NonZero::new(2).unwrap());
        let prefetches = [Ahead::Auto, two, Ahead::Auto, two];
        let (grid, _) = grid(&options(&[8, 4, 8], &prefetches), 40).unwrap();
        let mut once = grid.clone();
        once.dedup();
        assert_eq!(grid, once);
        assert_eq!((grid[0].0, grid[0].2, grid[1].2), (4, two, Ahead::Auto));
    }

    #[test]
    fn a_batch_larger_than_the_pack_is_refused_with_one_that_fits() {
        let error = batches(&options(&[8, 64], &[]), 30).unwrap_err();
        assert!(matches!(error, BenchError::BatchTooLarge { batch: 64, n_samples: 30, largest: 15 }));
        let error = batches(&options(&[], &[]), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected at least 2 samples, found 1: a wait is measured between two batches of an epoch"
        );
        // A batch size with one batch per epoch is measured, except for its wait.
        assert_eq!(batches(&options(&[30], &[]), 30).unwrap().0, [30]);
    }
}
