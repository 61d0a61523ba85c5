//! `packds bench formats`: loads the same images from every format.

use std::cmp::Ordering;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use packds_bench::formats::report::{FormatRow, Report, RunRow};
use packds_bench::{CacheName, FormatsBenchOptions, OrderName, bench_formats, format_names, to_csv};

use super::charts;
use crate::args::{n_threads, named};
use crate::escape::escape_path;
use crate::figures::{Figures, Keys};
use crate::human::{counted, human_bytes, to_f64};
use crate::output::{ResultFolder, check_new, write_file};
use crate::progress::Shown;
use crate::prose::Prose;
use crate::{Console, Exit, Failure};

const JSON: &str = "report.json";
const CSV: &str = "report.csv";

const EXAMPLES: &str = "\
Examples:
  packds bench formats images --quick
  packds bench formats train.pack --out report --jobs 1,4 --step-ms 50";

/// Compare loading the same images from many formats: folders, NumPy, HDF5, Zarr, Parquet, packs and others
///
/// All formats are made from the same images and read in the same orders and batches, on the same number of threads,
/// warm and cold. Results are verified: if the checksum of a format differs from that of the images, the exit code is
/// 1. docs/how-to/bench-formats.md describes the method.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FormatsBenchArgs {
    /// Image folder, manifest, or pack of raw images (u8, one size, hwc or chw)
    #[arg(value_name = "DATA", value_hint = ValueHint::AnyPath)]
    data: PathBuf,
    /// Rough results in less than a minute: four batches of images, short runs, one round
    #[arg(long)]
    quick: bool,
    /// Write report.html, report.json, report.csv and charts to this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "out")]
    force: bool,
    /// Where to create a temporary folder for the formats' files; only that folder is removed at the end
    /// [default: --out, or the system's temporary folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    work: Option<PathBuf>,
    /// Formats to measure, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(format_names()))]
    formats: Vec<String>,
    /// Orders of samples to measure: as written, every sample in random order, or whole batches in random order
    #[arg(
        long,
        value_parser = named::<OrderName>(),
        value_name = "ORDERS",
        value_delimiter = ',',
        default_value = "sequential,per-sample,chunk"
    )]
    orders: Vec<OrderName>,
    /// States of the page cache to measure: with all files in it, or with all files dropped from it before each run
    #[arg(
        long,
        value_parser = named::<CacheName>(),
        value_name = "STATES",
        value_delimiter = ',',
        default_value = "warm,cold"
    )]
    cache: Vec<CacheName>,
    /// Numbers of threads to measure; 0 = one per core
    #[arg(short, long, value_name = "N,..", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u16).range(0..=256))]
    jobs: Vec<u16>,
    /// Batch size and chunk size, in samples [default: 64; 32 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    batch: Option<u32>,
    /// Maximum number of images [default: all of a pack, 1024 of a folder; four batches with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    images: Option<u64>,
    /// Also measure how long training with steps of this duration waits for batches
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    step_ms: f64,
    /// Number of rounds; medians over all rounds are reported [default: 3; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: Option<u16>,
    /// Maximum time per run [default: 5; 0.2 with --quick]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seed of the orders
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Add results that other programs measured on the same images
    #[arg(long, value_name = "PEERS.JSON", value_hint = ValueHint::FilePath)]
    with: Option<PathBuf>,
}

impl FormatsBenchArgs {
    fn options(&self) -> Result<FormatsBenchOptions, Failure> {
        let quick = |value, look| if self.quick { look } else { value };
        let seconds = self.seconds.unwrap_or(quick(5.0, 0.2));
        let is_time = |value: f64| (0.0..=3600.0).contains(&value);
        if !is_time(seconds) || seconds <= 0.0 || !is_time(self.step_ms / 1e3) {
            return Err(Failure::not_run(format!(
                "--seconds must be above 0 and at most 3600, --step-ms 0 to 3600000; found {seconds} and {}",
                self.step_ms
            )));
        }
        let batch = self.batch.unwrap_or(if self.quick { 32 } else { 64 });
        let work = self.work.clone().or_else(|| self.out.clone());
        let args: Vec<String> = std::env::args().skip(1).collect();
        Ok(FormatsBenchOptions {
            command: format!("packds {}", args.join(" ")),
            batch,
            threads: once(self.jobs.iter().map(|jobs| n_threads(usize::from(*jobs)).get())),
            orders: once(self.orders.iter().copied()),
            cache: once(self.cache.iter().copied()),
            step_ms: self.step_ms,
            quick: self.quick,
            rounds: usize::from(self.rounds.unwrap_or(if self.quick { 1 } else { 3 })),
            seconds,
            images: self.images.or(self.quick.then_some(u64::from(batch) * 4)),
            formats: once(self.formats.iter().cloned()),
            work: work.unwrap_or_else(std::env::temp_dir),
            seed: self.seed,
            with: self.with.clone(),
        })
    }
}

/// The distinct items, in order.
fn once<T: PartialEq>(asked: impl Iterator<Item = T>) -> Vec<T> {
    asked.fold(Vec::new(), |mut known, one| {
        if !known.contains(&one) {
            known.push(one);
        }
        known
    })
}

pub(crate) fn run(args: &FormatsBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.options()?;
    if let Some(folder) = &args.out {
        [JSON, CSV, charts::PAGE].iter().try_for_each(|name| check_new(&folder.join(name), args.force))?;
    }
    let _out = args.out.as_deref().map(ResultFolder::create).transpose()?;
    std::fs::create_dir_all(&options.work).map_err(|error| Failure::write(&options.work, &error))?;
    let shown = Shown::new(console);
    let report = shown.stoppable("starting", "", || bench_formats(&args.data, &options, &shown));
    // Clears the progress line.
    drop(shown);
    let report = report?;
    if let Some(folder) = &args.out {
        write_all(&report, folder, args.force)?;
    }
    let text = |console: &mut Console| {
        show(&report, &mut console.prose())?;
        if let Some(folder) = &args.out {
            writeln!(console.prose(), "\nreport   {}", escape_path(&folder.join(charts::PAGE)))?;
        }
        Ok(())
    };
    console.result(|| &report, text)
}

fn write_all(report: &Report, folder: &Path, force: bool) -> Result<(), Failure> {
    let mut json = serde_json::to_vec_pretty(report).map_err(std::io::Error::from)?;
    json.push(b'\n');
    for (name, bytes) in [(JSON, json), (CSV, to_csv(report).into())] {
        write_file(&folder.join(name), &bytes, force)?;
    }
    charts::write_all(report, folder)?;
    Ok(())
}

fn show(report: &Report, out: &mut Prose) -> Result<(), Failure> {
    let (machine, data) = (&report.machine, &report.data);
    writeln!(
        out,
        "machine  {}, {}, {}, Linux {}, {} on {}",
        machine.cpu,
        counted(machine.cores, "core"),
        human_bytes(machine.memory_bytes),
        machine.kernel,
        machine.filesystem,
        machine.disk
    )?;
    if machine.free_page_reporting {
        writeln!(
            out,
            "         this virtual machine returns free memory to its host: cold results vary, see docs/how-to/bench-formats.md"
        )?;
    }
    writeln!(
        out,
        "data     {} of {}x{}x{}, {}; batches of {}, {}, seed {}",
        counted(data.n_samples, "image"),
        data.height,
        data.width,
        data.channels,
        human_bytes(data.pixel_bytes),
        report.options.batch,
        counted(report.options.rounds, "round"),
        report.seed
    )?;
    if let Some(asked) = report.options.batch_asked {
        let least = 4 * u64::from(asked);
        writeln!(out, "         batches are smaller than the requested {asked}, which need at least {least} images")?;
    }
    show_limits(report, out)?;
    for group in groups(&report.runs) {
        show_group(report, &group, out)?;
    }
    writeln!(out, "\n* the best of its column")?;
    Ok(())
}

fn show_limits(report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    let limits = &report.limits;
    for (threads, rate) in &limits.memcpy_images_per_s {
        let decode = limits.decode_images_per_s.get(threads).copied().unwrap_or(0.0);
        let threads = counted(*threads, "thread");
        writeln!(out, "limit    {threads}: memcpy {rate:.0} images/s, decoding PNG {decode:.0} images/s")?;
    }
    for (cache, rate) in &limits.disk_read_images_per_s {
        writeln!(out, "limit    disk read, {cache}: {rate:.0} images/s")?;
    }
    Ok(())
}

/// Groups of runs that differ only in the format, in the order of the report.
fn groups(runs: &[RunRow]) -> Vec<Vec<&RunRow>> {
    let alike = |a: &RunRow, b: &RunRow| {
        (&a.order, &a.cache, a.threads, a.step_ms.to_bits()) == (&b.order, &b.cache, b.threads, b.step_ms.to_bits())
    };
    let mut groups: Vec<Vec<&RunRow>> = Vec::new();
    for run in runs {
        let known = groups.iter_mut().find(|g| g.iter().all(|r| alike(r, run)));
        match known {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// Minimum width of the first column, and of all other columns.
const WIDTHS: (usize, usize) = (24, 11);

/// A column of the table: its heading, a function that returns its value for a run, and a function that formats the
/// value. The smallest value is the best.
type Measured = (&'static str, fn(&RunRow, &FormatRow) -> Option<f64>, fn(f64) -> String);

const COLUMNS: [Measured; 9] = [
    // Negated, because the largest value is the best.
    ("images/s", |run, _| run.images_per_s.map(|rate| -rate), |rate| format!("{:.0}", -rate)),
    // The table has no median, because with several threads the median may only be the time to take a batch that was
    // already ready.
    ("mean ms", |run, _| run.mean_batch_ms(), |ms| format!("{ms:.2}")),
    ("p95 ms", |run, _| run.batch_ms.map(|ms| ms.p95), |ms| format!("{ms:.2}")),
    ("first ms", |run, _| run.first_batch_ms, |ms| format!("{ms:.1}")),
    ("wait ms", |run, _| run.wait_ms.map(|ms| ms.median), |ms| format!("{ms:.2}")),
    ("cpu s/1000", |run, _| run.cpu_s_per_1000, |seconds| format!("{seconds:.3}")),
    ("peak RSS", |run, _| run.peak_rss_bytes.map(to_f64), |bytes| format!("{:.0} MiB", bytes / 1_048_576.0)),
    ("on disk", |_, format| format.bytes.map(to_f64), |bytes| format!("{:.1} MiB", bytes / 1_048_576.0)),
    ("write s", |_, format| format.write_s, |seconds| format!("{seconds:.2}")),
];

/// Prints one table, the fastest format first. The best of each column is marked.
fn show_group(report: &Report, group: &[&RunRow], out: &mut Prose) -> Result<(), Failure> {
    let Some(first) = group.first() else { return Ok(()) };
    let step = match first.step_ms > 0.0 {
        true => format!(", with steps of {} ms", first.step_ms),
        false => String::new(),
    };
    writeln!(out, "\n{} order, {}, {}{step}", first.order, first.cache, counted(first.threads, "thread"))?;
    let of = |run: &RunRow| report.formats.iter().find(|f| f.format == run.format);
    let mut rows: Vec<(&RunRow, &FormatRow)> = group.iter().filter_map(|run| Some((*run, of(run)?))).collect();
    let rate = |run: &RunRow| run.images_per_s.unwrap_or(0.0);
    rows.sort_by(|(a, _), (b, _)| rate(b).partial_cmp(&rate(a)).unwrap_or(Ordering::Equal));
    let waited = first.step_ms > 0.0;
    let measured: Vec<&Measured> = COLUMNS.iter().filter(|(name, ..)| waited || *name != "wait ms").collect();
    rows.retain(|(run, _)| run.skipped.is_none());
    let titles = measured.iter().map(|(name, ..)| (*name, WIDTHS.1));
    let mut figures = Figures::new([("format", WIDTHS.0)].into_iter().chain(titles).collect(), Keys::Name);
    for (run, format) in &rows {
        let cell = |(_, value, shown): &&Measured| {
            let best = rows.iter().filter_map(|(run, format)| value(run, format)).fold(f64::INFINITY, f64::min);
            let found = value(run, format);
            let mark = if found.is_some_and(|found| found <= best) { "*" } else { " " };
            found.map_or_else(|| "-".to_owned(), shown) + mark
        };
        figures.push([run.format.clone()].into_iter().chain(measured.iter().map(cell)).collect(), &note(run));
    }
    figures.lines(out.columns()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    show_skipped(group, out)
}

fn show_skipped(group: &[&RunRow], out: &mut dyn Write) -> Result<(), Failure> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in group {
        let Some(reason) = run.skipped.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, formats)) => formats.push(&run.format),
            None => reasons.push((reason, vec![&run.format])),
        }
    }
    for (reason, formats) in reasons {
        writeln!(out, "skipped ({reason}): {}", formats.join(", "))?;
    }
    Ok(())
}

/// A remark on the page cache if it was not in the requested state, otherwise an empty string.
fn note(run: &RunRow) -> String {
    let cached = run.cached_share_before.unwrap_or(0.0);
    match run.cache.as_str() {
        "cold" if cached > 0.02 => format!("  {:.0} % cached", cached * 100.0),
        "warm" if run.cached_share_before.is_some_and(|share| share < 0.98) => {
            format!("  only {:.0} % cached", cached * 100.0)
        }
        _ => String::new(),
    }
}
