//! `packds bench tune`: which threads, prefetch and batch a loader needs so that training does not wait.

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_bench::{Ahead, TuneBench, TuneBenchOptions, TuneRun, Wait, bench_tune};

use super::{show_machine, tune_plot};
use crate::console::Console;
use crate::escape::escape_path;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{counted, human_bytes};
use crate::order::OrderName;
use crate::output::check_new;
use crate::plot_file::PlotFile;

/// What training waits for, by threads, batches made ahead and batch size; and what to set
///
/// A consumer takes batches as training does and does nothing for the time of a step, once for each configuration, with the
/// pack in the page cache. Recommended is what costs least (the fewest threads, then the least memory) of those that wait
/// about as little as the best, beginnings and ends of epochs included: within 1 % of a step.
#[derive(Debug, Args)]
pub(crate) struct TuneBenchArgs {
    /// The pack
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pack: PathBuf,
    /// Milliseconds that training takes for a batch
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    step_ms: f64,
    /// Threads of the loader, such as 1,2,4 [default: 1, 2, 4 and so on to all cores]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    threads: Vec<NonZero<usize>>,
    /// Batches made ahead, such as 1,4,auto [default: 1,2,4,8,auto]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse_depth)]
    prefetch: Vec<Ahead>,
    /// Samples of a batch, such as 64,128 [default: 32,64,128,256, as far as an epoch
    /// has two such batches]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    batch: Vec<u32>,
    /// In which order samples are read
    #[arg(long, value_enum, default_value = "window")]
    order: OrderName,
    /// What is done to images, such as rrc224,flip; empty for nothing [default: rrc224,flip for images of sizes of their own]
    #[arg(long, value_name = "OPS")]
    augment: Option<String>,
    /// How long each configuration may take [default: 3, or 0.3 with --quick]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// A quick look, too short to be quoted
    #[arg(long)]
    quick: bool,
    /// Seed of order and augmentation
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Draw it: an .svg or a .png file of the wait by prefetch, a line for each number of threads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Replace the picture if there is one
    #[arg(long, requires = "plot")]
    force: bool,
}

fn parse_depth(text: &str) -> Result<Ahead, String> {
    match text {
        "auto" => Ok(Ahead::Auto),
        number => number
            .parse()
            .map(Ahead::Fixed)
            .map_err(|_| "expected a number above 0, or auto".to_owned()),
    }
}

impl TuneBenchArgs {
    fn options(&self) -> Result<TuneBenchOptions, Failure> {
        let seconds = self.seconds.unwrap_or(if self.quick { 0.3 } else { 3.0 });
        for (option, found) in [("--seconds", seconds), ("--step-ms", self.step_ms)] {
            if !(found > 0.0 && found <= 3600.0) {
                return Err(Failure::not_run(format!(
                    "{option} is a number above 0, at most 3600: found {found}"
                )));
            }
        }
        Ok(TuneBenchOptions {
            step_ms: self.step_ms,
            threads: self.threads.clone(),
            prefetches: self.prefetch.clone(),
            batches: self.batch.clone(),
            order: self.order.with_window(None)?,
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
    let bench = bench_tune(&args.pack, &options, &mut |what| console.note(what))?;
    if let Some(plot) = &args.plot {
        let name = args.pack.file_name().unwrap_or_default();
        let figure = tune_plot::figure(&bench, &escape_path(name.as_ref()));
        plot.write(&figure, args.force)?;
    }
    if console.json {
        console.document(&bench.to_json())?;
    } else {
        show(&bench, console.out)?;
        if args.quick {
            writeln!(console.out, "quick    too short to be quoted")?;
        }
    }
    Ok(Exit::Done)
}

fn show(bench: &TuneBench, out: &mut dyn Write) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    let augment = match bench.augment.as_str() {
        "" => "as they are",
        augment => augment,
    };
    writeln!(
        out,
        "pack     {}, {}; order {}, images {augment}, seed {}",
        counted(bench.n_samples, "sample"),
        human_bytes(bench.file_bytes),
        bench.order,
        bench.seed
    )?;
    writeln!(
        out,
        "cache    {}: {:.1} % of the pack in the page cache before, {:.1} % after",
        bench.cache,
        bench.resident_before * 100.0,
        bench.resident_after * 100.0
    )?;
    writeln!(
        out,
        "step     {} ms of training for a batch; {} s for each configuration",
        bench.step_ms, bench.seconds
    )?;
    writeln!(
        out,
        "{:>5} {:>7} {:>5} {:>8} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>10}",
        "batch",
        "threads",
        "prefetch",
        "wait ms",
        "median",
        "p95",
        "waiting",
        "first ms",
        "images/s",
        "CPU/1000",
        "memory"
    )?;
    for run in &bench.runs {
        show_run(bench, run, out)?;
    }
    show_too_small(bench, out)?;
    if let Some(cost) = bench.fixed_cost_ms {
        writeln!(
            out,
            "epoch    {cost:.1} ms beside its batches: to the first one, and from the last one to the end"
        )?;
    }
    match &bench.recommended {
        Some(best) => writeln!(
            out,
            "set      threads {}, prefetch {}, batch {}: {}",
            best.threads, best.prefetch, best.batch, best.why
        )?,
        None => writeln!(
            out,
            "set      nothing can be recommended: no batch was waited for"
        )?,
    }
    Ok(())
}

/// Which batch sizes the pack is too small for, and which were tried in their place.
fn show_too_small(bench: &TuneBench, out: &mut dyn Write) -> Result<(), Failure> {
    let samples = counted(bench.n_samples, "sample");
    if let Some(most) = bench.batch_cut_to {
        writeln!(
            out,
            "batch    no default size above {most} was tried: of {samples} an epoch has to have two batches"
        )?;
    }
    for batch in bench.too_large() {
        writeln!(
            out,
            "batch    {batch} is too large for a pack of {samples}: an epoch has one batch, and none to wait for; --batch {} or less",
            bench.largest_batch()
        )?;
    }
    Ok(())
}

/// A line of the table; what is recommended for its batch has a star, what is recommended at all has two.
fn show_run(bench: &TuneBench, run: &TuneRun, out: &mut dyn Write) -> Result<(), Failure> {
    let of_batch = bench.recommended_by_batch.iter().any(|one| one.is(run));
    let recommended = bench.recommended.as_ref();
    let star = match (recommended.is_some_and(|one| one.is(run)), of_batch) {
        (true, _) => " **",
        (false, true) => " *",
        (false, false) => "",
    };
    let wait = |part: fn(&Wait) -> f64| {
        let wait = run.wait_ms.as_ref();
        wait.map_or_else(|| "-".to_owned(), |wait| format!("{:.2}", part(wait)))
    };
    writeln!(
        out,
        "{:>5} {:>7} {:>5} {:>8} {:>9} {:>7} {:>5.1} % {:>9.1} {:>9.0} {:>7.3} s {:>10}{star}",
        run.batch,
        run.threads,
        run.prefetch,
        wait(|wait| wait.mean),
        wait(|wait| wait.median),
        wait(|wait| wait.p95),
        run.wait_share * 100.0,
        run.first_batch_ms,
        run.images_per_s,
        run.cpu_s_per_1000,
        human_bytes(run.memory_bytes)
    )?;
    Ok(())
}
