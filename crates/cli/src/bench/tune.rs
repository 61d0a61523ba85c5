//! `packds bench tune`: finds the number of threads, prefetch and batch size with which training does not wait.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_bench::{Ahead, TuneBench, TuneBenchOptions, TuneRun, Wait, bench_tune};
use packds_reader::plan::Order;
use packds_report::PlotFile;

use super::{augmentation, check_time, show_cache, show_machine, tune_plot};
use crate::args::{n_threads, named};
use crate::escape::escape_path;
use crate::figures::{Column, Figures, Keys};
use crate::human::{counted, human_bytes};
use crate::output::{check_new, write_plot};
use crate::progress::Shown;
use crate::prose::Prose;
use crate::task::Amount;
use crate::{Console, Exit, Failure};

const COLUMNS: [Column; 11] = [
    ("batch", 5),
    ("threads", 7),
    ("prefetch", 8),
    ("wait ms", 8),
    ("median", 9),
    ("p95", 7),
    ("waiting", 7),
    ("first ms", 9),
    ("images/s", 9),
    ("CPU/1000", 9),
    ("memory", 10),
];

/// What to know about the results of a quick run.
const QUICK: &str = "Quick run: the results are rough. Do not cite them";

const EXAMPLES: &str = "\
Examples:
  packds bench tune train.pack --step-ms 120
  packds bench tune train.pack --step-ms 120 --jobs 1,2,4 --plot tune.svg";

/// Measure how long training waits, by threads, prefetch and batch size, and recommend settings
///
/// For each configuration, a consumer takes batches and sleeps for the time of a step, with the pack in the page cache.
/// The recommendation is the cheapest configuration (fewest threads, then least memory) whose wait exceeds the shortest
/// wait by at most 1 % of a step. Waits at the start and the end of an epoch are included.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneBenchArgs {
    /// Pack to measure
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pack: PathBuf,
    /// Duration of a training step in ms
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    step_ms: f64,
    /// Thread counts, such as 1,2,4; 0 = one per core [default: 1, 2, 4 and so on up to all cores]
    #[arg(short, long, value_name = "N,..", value_delimiter = ',')]
    jobs: Vec<usize>,
    /// Prefetch depths (batches), such as 1,4,auto [default: 1,2,4,8,auto]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse_depth)]
    prefetch: Vec<Ahead>,
    /// Batch sizes, such as 64,128 [default: 32,64,128,256, as long as an epoch has two batches]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    batch: Vec<u32>,
    /// Order of samples
    #[arg(long, value_parser = named::<Order>(), default_value = "window")]
    order: Order,
    /// Augmentations, such as rrc224,flip; empty for none [default: rrc224,flip for variable-size images]
    #[arg(long, value_name = "OPS")]
    augment: Option<String>,
    /// Maximum time per configuration [default: 3; 0.3 with --quick]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Measure quickly and roughly; do not cite the results
    #[arg(long)]
    quick: bool,
    /// Seed of the order and augmentation
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Plot the time lost to waiting against prefetch, with one line per number of threads (.svg or .png)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Replace an existing plot
    #[arg(long, requires = "plot")]
    force: bool,
}

fn parse_depth(text: &str) -> Result<Ahead, String> {
    match text {
        "auto" => Ok(Ahead::Auto),
        number => number.parse().map(Ahead::Fixed).map_err(|_| "expected a number above 0, or auto".to_owned()),
    }
}

impl TuneBenchArgs {
    fn options(&self) -> Result<TuneBenchOptions, Failure> {
        let seconds = self.seconds.unwrap_or(if self.quick { 0.3 } else { 3.0 });
        check_time("--seconds", seconds)?;
        check_time("--step-ms", self.step_ms)?;
        Ok(TuneBenchOptions {
            step_ms: self.step_ms,
            threads: self.jobs.iter().copied().map(n_threads).collect(),
            prefetches: self.prefetch.clone(),
            batches: self.batch.clone(),
            order: self.order,
            augment: self.augment.clone(),
            seconds,
            seed: self.seed,
        })
    }
}

pub(crate) fn run(args: &TuneBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.options()?;
    if let Some(plot) = &args.plot {
        check_new(plot.path(), args.force)?;
    }
    let shown = Shown::new(console);
    let bench =
        bench_tune(&args.pack, &options, &mut |what, done, total| shown.step(what, Amount::Steps { done, total }))?;
    drop(shown);
    if let Some(plot) = &args.plot {
        let name = args.pack.file_name().unwrap_or_default();
        let figure = tune_plot::figure(&bench, &escape_path(name.as_ref()), if args.quick { &[QUICK] } else { &[] });
        write_plot(plot, &figure, args.force)?;
    }
    let text = |console: &mut Console| {
        show(&bench, &mut console.prose())?;
        if args.quick {
            writeln!(console.prose(), "quick    rough; do not cite")?;
        }
        if let Some(plot) = &args.plot {
            writeln!(console.prose(), "plot     {}", escape_path(plot.path()))?;
        }
        Ok(())
    };
    console.result(|| &bench, text)
}

fn show(bench: &TuneBench, out: &mut Prose) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    let augment = augmentation(&bench.augment);
    let (samples, bytes) = (counted(bench.n_samples, "sample"), human_bytes(bench.bytes));
    let TuneBench { order, seed, .. } = bench;
    writeln!(out, "pack     {samples}, {bytes}; order {order}, images {augment}, seed {seed}")?;
    show_cache(bench.cache, bench.resident_before, bench.resident_after, out)?;
    writeln!(out, "step     training step {} ms; {} s per configuration", bench.step_ms, bench.seconds)?;
    let mut figures = Figures::new(COLUMNS.to_vec(), Keys::Numbers(3));
    bench.runs.iter().for_each(|run| figures.push(cells(run).to_vec(), star(bench, run)));
    figures.lines(out.columns()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if bench.recommended.is_some() {
        writeln!(out, "best     ** recommended; * the best of its batch size")?;
    }
    show_too_small(bench, out)?;
    if let Some(cost) = bench.fixed_cost_ms {
        writeln!(
            out,
            "epoch    the recommended configuration has a fixed cost of {cost:.1} ms per epoch: before the first \
             batch and after the last"
        )?;
    }
    match &bench.recommended {
        Some(best) => writeln!(
            out,
            "set      threads {}, prefetch {}, batch {}: {}",
            best.threads, best.prefetch, best.batch, best.why
        )?,
        None => writeln!(out, "set      no recommendation: no wait could be measured")?,
    }
    Ok(())
}

/// Reports the batch sizes for which the pack is too small.
fn show_too_small(bench: &TuneBench, out: &mut dyn Write) -> Result<(), Failure> {
    let samples = counted(bench.n_samples, "sample");
    if let Some(most) = bench.batch_cut_to {
        writeln!(
            out,
            "batch    larger default sizes were reduced to {most}: an epoch of {samples} must have two batches"
        )?;
    }
    for batch in bench.too_large() {
        writeln!(
            out,
            "batch    {batch} is too large for {samples}: an epoch has only one batch, so there is no wait to measure; use --batch {} or less",
            bench.largest_batch()
        )?;
    }
    Ok(())
}

/// The best configuration of each batch size has one star, and the best of all has two.
fn star(bench: &TuneBench, run: &TuneRun) -> &'static str {
    let of_batch = bench.recommended_by_batch.iter().any(|one| one.is(run));
    let recommended = bench.recommended.as_ref();
    match (recommended.is_some_and(|one| one.is(run)), of_batch) {
        (true, _) => " **",
        (false, true) => " *",
        (false, false) => "",
    }
}

/// A row of the table.
fn cells(run: &TuneRun) -> [String; 11] {
    let wait = |part: fn(&Wait) -> f64| {
        let wait = run.wait_ms.as_ref();
        wait.map_or_else(|| "-".to_owned(), |wait| format!("{:.2}", part(wait)))
    };
    [
        run.batch.to_string(),
        run.threads.to_string(),
        run.prefetch.to_string(),
        wait(|wait| wait.mean),
        wait(|wait| wait.median),
        wait(|wait| wait.p95),
        format!("{:.1} %", run.wait_share * 100.0),
        format!("{:.1}", run.first_batch_ms),
        format!("{:.0}", run.images_per_s),
        format!("{:.3} s", run.cpu_s_per_1000),
        human_bytes(run.memory_bytes),
    ]
}
