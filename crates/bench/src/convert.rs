//! `packds bench convert`: conversion and verification alongside their limits.

use packds_system::to_u64;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_convert::{ConvertOptions, Mode, Report, convert};
use packds_pixels::{Crop, Resize};
use packds_reader::VerifyOptions;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::BenchError;
use crate::limits::{concatenate, read_and_checksum, read_and_decode};
use crate::machine::{Machine, PeakRss};
use crate::measure::{Figure, Pairs};
use crate::opening::{open_and_inform, write_large};
use crate::watch::{Progress, Watcher};
use crate::workload::Workload;

/// Options of [`bench_convert`].
#[derive(Debug, Clone)]
pub struct ConvertBenchOptions {
    /// Number of threads for packds and the limits. 0 means one per core.
    pub jobs: usize,
    /// Number of pairs of runs, one of packds and one of the limit, after a warm-up pair.
    pub rounds: usize,
    /// Where to create a temporary folder. Default: the system's temporary folder.
    pub work: Option<PathBuf>,
}

/// The result of `packds bench convert`.
#[derive(Debug, Clone, Serialize)]
pub struct ConvertBench {
    /// The machine that ran the benchmark.
    pub machine: Machine,
    /// Number of threads.
    pub threads: usize,
    /// Number of pairs of runs.
    pub rounds: usize,
    /// Number of images that the user gave.
    pub n_files: usize,
    /// State of the page cache. Always `warm`, because the warm-up pairs read all files.
    pub cache: &'static str,
    /// Seed of the order of samples.
    pub seed: u64,
    /// Raw conversion with a short side of 256 and a crop of 224.
    pub raw: Figure,
    /// Conversion that stores the image files unchanged.
    pub encoded: Figure,
    /// Verification of the raw pack.
    pub verify: Figure,
    /// Median time to open a pack of 1.28 million samples and to read what `info` shows, in ms.
    pub open_ms: f64,
}

/// Measures conversion and verification of the images in `data`. `watcher` receives progress and can cancel.
///
/// # Errors
/// [`BenchError`] if something fails, a result is wrong, or the watcher cancels.
pub fn bench_convert(
    data: &Path,
    options: &ConvertBenchOptions,
    watcher: &dyn Watcher,
) -> Result<ConvertBench, BenchError> {
    let jobs = ConvertOptions { jobs: options.jobs, ..ConvertOptions::default() }.n_jobs();
    let rounds = options.rounds.max(1);
    // Three results with a warm-up pair each, and opening the large pack.
    let n_cells = to_u64(3 * (rounds + 1) + 1);
    let progress = &Progress::new(watcher, n_cells);
    let workload = |enough| Workload::new(data, options.work.as_deref(), jobs, enough, progress);
    let bench = |workload| Bench { workload, jobs, rounds };
    let decoding = bench(workload(ENOUGH_TO_DECODE)?);
    let raw = decoding.raw(progress)?;
    let verify = decoding.verify(progress)?;
    let n_files = decoding.workload.listing.len() / decoding.workload.repeats;
    progress.begin("opening a pack of 1.28 million samples")?;
    let open_ms = decoding.open_ms(progress)?;
    drop(decoding);
    let encoded = bench(workload(ENOUGH_TO_COPY)?).encoded(progress)?;
    Ok(ConvertBench {
        machine: Machine::here(),
        threads: jobs,
        rounds,
        n_files,
        cache: "warm",
        seed: ConvertOptions::default().seed,
        raw,
        encoded,
        verify,
        open_ms,
    })
}

/// Number of images for a decoding run that is long enough to time.
const ENOUGH_TO_DECODE: usize = 1000;
/// Number of images for a copying run that is long enough to time. With fewer, starting threads and filling buffers
/// would dominate.
const ENOUGH_TO_COPY: usize = 10_000;

struct Bench {
    workload: Workload,
    jobs: usize,
    rounds: usize,
}

impl Bench {
    fn raw(&self, progress: &Progress<'_>) -> Result<Figure, BenchError> {
        let options = ConvertOptions {
            resize: Some(Resize::Short(256)),
            crop: Some(Crop::Center { width: 224, height: 224 }),
            jobs: self.jobs,
            ..ConvertOptions::default()
        };
        let limit = || read_and_decode(&self.workload.listing, self.jobs, progress);
        self.conversion("raw", "read_and_decode", &options, limit, progress)
    }

    fn encoded(&self, progress: &Progress<'_>) -> Result<Figure, BenchError> {
        let options = ConvertOptions { mode: Mode::Encoded, jobs: self.jobs, ..ConvertOptions::default() };
        let output = self.workload.file("cat");
        let limit = || {
            let time = concatenate(&self.workload.listing, &output, progress)?;
            std::fs::remove_file(&output).map_err(BenchError::io(&output))?;
            Ok(time)
        };
        self.conversion("encoded", "cat", &options, limit, progress)
    }

    /// Alternates between a conversion and its limit. Times exclude the final sync to disk, which the limits do not do.
    fn conversion(
        &self,
        name: &'static str,
        limit_name: &'static str,
        options: &ConvertOptions,
        limit: impl Fn() -> Result<Duration, BenchError>,
        progress: &Progress<'_>,
    ) -> Result<Figure, BenchError> {
        let output = self.workload.file(&format!("{name}.pack"));
        let mut pairs = Pairs::default();
        let mut reports = Vec::new();
        let mut peak = 0;
        for round in 0..=self.rounds {
            progress.begin(&self.round_name(name, round))?;
            // Flush the output of earlier runs to disk and remove it, so that it does not slow down the next run.
            progress.sync()?;
            let limit_time = limit()?;
            match std::fs::remove_file(&output) {
                Err(error) if round > 0 => return Err(BenchError::io(&output)(error)),
                _ => progress.sync()?,
            }
            let rss = PeakRss::reset();
            let report = convert(&self.workload.source, &output, options, progress)?;
            self.check(&report)?;
            if round > 0 {
                pairs.push(report.stages.total.saturating_sub(report.stages.sync), limit_time);
                reports.push(report);
                peak = peak.max(rss.bytes());
            }
        }
        let stages = reports.get(pairs.median_run()).map(|report| report.stages.seconds());
        let stages = stages.into_iter().flatten().map(|(name, s)| (name.to_owned(), json!(s))).collect();
        Ok(self.figure(name, limit_name, self.workload.bytes, &pairs, peak, stages))
    }

    fn round_name(&self, name: &str, round: usize) -> String {
        match round {
            0 => format!("{name}, warm-up"),
            _ => format!("{name}, round {round} of {}", self.rounds),
        }
    }

    fn check(&self, report: &Report) -> Result<(), BenchError> {
        let (expected, found) = (self.workload.listing.len(), report.n_samples);
        if u64::try_from(expected) != Ok(found) || report.has_bad_samples() {
            return Err(BenchError::wrong("samples converted", expected.to_string(), found.to_string()));
        }
        Ok(())
    }

    /// Alternates between verifying the raw pack and its limit, which only reads the pack and computes a checksum.
    fn verify(&self, progress: &Progress<'_>) -> Result<Figure, BenchError> {
        let path = self.workload.file("raw.pack");
        let bytes = std::fs::metadata(&path).map_err(BenchError::io(&path))?.len();
        let mut pairs = Pairs::default();
        let (mut peak, mut before) = (0, None);
        for round in 0..=self.rounds {
            progress.begin(&self.round_name("verify", round))?;
            let (limit_time, crc) = read_and_checksum(&path, self.jobs, progress)?;
            if before.replace(crc).is_some_and(|before| before != crc) {
                return Err(BenchError::wrong("reading the pack", "the same bytes every time", "different bytes"));
            }
            let rss = PeakRss::reset();
            let started = Instant::now();
            let pack = packds_reader::open(&path)?;
            let report = packds_reader::verify(&pack, VerifyOptions::jobs(self.jobs), &|_, _| {})?;
            let time = started.elapsed();
            progress.check()?;
            if !report.is_ok() {
                return Err(BenchError::wrong("verify", "no damage", "damage"));
            }
            if round > 0 {
                pairs.push(time, limit_time);
                peak = peak.max(rss.bytes());
            }
        }
        Ok(self.figure("verify", "read_and_crc32c", bytes, &pairs, peak, Map::new()))
    }

    fn figure(
        &self,
        name: &'static str,
        limit: &'static str,
        bytes: u64,
        pairs: &Pairs,
        peak_rss_bytes: u64,
        seconds: Map<String, Value>,
    ) -> Figure {
        #[expect(clippy::cast_precision_loss, reason = "a rate needs few digits")]
        let (images, bytes) = (self.workload.listing.len() as f64, bytes as f64);
        Figure {
            name,
            n_samples: self.workload.listing.len(),
            images_per_s: images / pairs.ours(),
            bytes_per_s: bytes / pairs.ours(),
            limit,
            limit_images_per_s: images / pairs.limit(),
            ratio: pairs.ratio(),
            ratio_range: pairs.range(),
            peak_rss_bytes,
            seconds,
        }
    }

    fn open_ms(&self, progress: &Progress<'_>) -> Result<f64, BenchError> {
        let path = self.workload.file("large.pack");
        write_large(&path, progress)?;
        let mut pairs = Pairs::default();
        for round in 0..=self.rounds {
            progress.check()?;
            let time = open_and_inform(&path)?;
            if round > 0 {
                pairs.push(time, time);
            }
        }
        Ok(pairs.ours() * 1e3)
    }
}
