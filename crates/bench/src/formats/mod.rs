//! `packds bench formats`: loads the same images from every format, in the same orders, on the same number of threads.
//!
//! `reference` provides the images, `written` makes each format's files, `cells` runs them, and `report` defines the
//! results. Each format has an entry in `catalogue` and a reader in `read`. `feed` and `drive` do not depend on the
//! format.

pub(crate) mod cache;
mod candidate;
mod catalogue;
mod cells;
mod checksum;
mod csv;
mod drive;
mod feed;
mod limits;
mod machine;
mod map;
mod order;
mod packs;
mod peers;
mod read;
mod reference;
pub mod report;
mod written;

use std::path::{Path, PathBuf};

use packds_convert::ConvertError;
use packds_system::Unfinished;

use crate::BenchError;
use crate::watch::{Progress, Watcher};
pub use csv::to_csv;
pub use order::OrderName;
use peers::PeerRows;
use reference::Reference;
use report::{Data, OptionsShown, Report};
use written::Written;

/// State of the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheName {
    /// All files are in the page cache.
    Warm,
    /// No file is in the page cache.
    Cold,
}

packds_system::named!(CacheName { Warm = "warm", Cold = "cold" });

/// Options of [`bench_formats`].
#[derive(Debug, Clone)]
pub struct FormatsBenchOptions {
    /// The command line, for the report.
    pub command: String,
    /// Batch size. Reduced if there are fewer than four batches of images.
    pub batch: u32,
    /// Numbers of threads to measure.
    pub threads: Vec<usize>,
    /// Orders to measure.
    pub orders: Vec<OrderName>,
    /// States of the page cache to measure.
    pub cache: Vec<CacheName>,
    /// Duration of a training step in ms. All runs are repeated with such steps. 0 for none.
    pub step_ms: f64,
    /// Whether runs are short and results rough.
    pub quick: bool,
    /// Number of rounds. Each case is run once per round, and medians over the rounds are reported.
    pub rounds: usize,
    /// Maximum time per run in seconds.
    pub seconds: f64,
    /// Maximum number of images. Default: all of a pack, 1024 of a folder.
    pub images: Option<u64>,
    /// Formats to measure. If empty: all.
    pub formats: Vec<String>,
    /// Where to create a temporary folder for the formats' files.
    pub work: PathBuf,
    /// Seed of the orders.
    pub seed: u64,
    /// Results that other programs measured.
    pub with: Option<PathBuf>,
}

/// The names of all formats, in the order of reports.
#[must_use]
pub fn format_names() -> Vec<&'static str> {
    catalogue::all().iter().map(|entry| entry.name).collect()
}

/// Writes `data` in every format and measures loading from each. `watcher` receives progress and can cancel.
///
/// # Errors
/// [`BenchError`] if something fails, [`BenchError::Disagree`] if a format delivers wrong samples, and
/// [`BenchError::Interrupted`] if the watcher cancels. In every case, the temporary folder in the work folder is
/// removed.
pub fn bench_formats(data: &Path, options: &FormatsBenchOptions, watcher: &dyn Watcher) -> Result<Report, BenchError> {
    compare(data, options, watcher).map_err(|error| match error {
        BenchError::Convert(ConvertError::Interrupted) => BenchError::Interrupted,
        error => error,
    })
}

fn compare(data: &Path, options: &FormatsBenchOptions, watcher: &dyn Watcher) -> Result<Report, BenchError> {
    let started = machine::now();
    let entries = chosen(&options.formats)?;
    let peers = options.with.as_deref().map(PeerRows::read).transpose()?;
    let progress = Progress::new(watcher, cells::count(options, entries.len()));
    let work = tempfile::Builder::new().prefix("packds-formats").tempdir_in(&options.work);
    let work = work.map_err(BenchError::io(&options.work))?;
    let _unfinished = Unfinished::new(work.path());
    progress.begin("the images, as raw pixels")?;
    let reference = Reference::make(data, work.path(), options.batch, options.images, &progress)?;
    if let Some(peers) = &peers {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let expected = cells::expected(&reference)?;
        peers.check(&names, (reference.batch, reference.n_samples()), &expected)?;
    }
    let written = write_all(&entries, &reference, work.path(), &progress)?;
    progress.begin("the limits")?;
    let cold = options.cache.contains(&CacheName::Cold);
    let rounds = options.rounds.max(1);
    let limits = limits::measure(&reference, &options.threads, rounds, cold, options.seed, &progress)?;
    let runs = cells::run_all(&written, &reference, options, &progress)?;
    let mut report = Report {
        command: options.command.clone(),
        seed: options.seed,
        started,
        machine: machine::here(work.path()),
        versions: machine::versions(),
        data: shown(data, &reference),
        options: OptionsShown {
            batch: reference.batch,
            batch_asked: Some(options.batch).filter(|asked| *asked != reference.batch),
            threads: options.threads.clone(),
            orders: options.orders.iter().map(ToString::to_string).collect(),
            cache: options.cache.iter().map(ToString::to_string).collect(),
            step_ms: options.step_ms,
            quick: options.quick,
            rounds,
        },
        limits,
        formats: written.iter().map(|w| w.row(&reference)).collect(),
        runs,
    };
    if let Some(peers) = peers {
        peers.join(&mut report);
    }
    Ok(report)
}

fn write_all(
    entries: &[catalogue::Entry],
    reference: &Reference,
    work: &Path,
    progress: &Progress<'_>,
) -> Result<Vec<Written>, BenchError> {
    let mut written = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let what = format!("writing {}", entry.name);
        progress.part(&format!("{what} ({} of {})", number + 1, entries.len()))?;
        progress.cell(&what)?;
        written.push(Written::make(entry, reference, work, progress)?);
    }
    Ok(written)
}

fn shown(data: &Path, reference: &Reference) -> Data {
    let bytes_per_image = reference.height * reference.width * reference.channels;
    Data {
        path: data.to_string_lossy().into_owned(),
        n_samples: reference.n_samples(),
        height: reference.height,
        width: reference.width,
        channels: reference.channels,
        bytes_per_image,
        pixel_bytes: bytes_per_image * reference.n_samples(),
    }
}

fn chosen(names: &[String]) -> Result<Vec<catalogue::Entry>, BenchError> {
    let mut all = catalogue::all();
    let known: Vec<&str> = all.iter().map(|entry| entry.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(BenchError::wrong("--formats", format!("some of {}", known.join(", ")), unknown));
    }
    all.retain(|entry| names.is_empty() || names.iter().any(|name| name == entry.name));
    Ok(all)
}
