//! `packds bench convert`: packing and verifying, beside what the machine could do at best.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_bench::{ConvertBench, ConvertBenchOptions, Figure, bench_convert};

use super::show_machine;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{counted, human_bytes};
use crate::progress::Benchmarking;

/// Converting and verifying, beside reading and decoding, copying, and checksumming the same files
///
/// Raw conversion (short side 256, crop 224) beside a loop that only reads and fully decodes the same files; encoded
/// conversion beside `cat`; verify beside reading the pack with CRC32C alone; opening a pack of 1.28 million samples.
/// Ours and the limit run in turn; ratios are medians of the pairs. Files are repeated, by links, until a run takes long enough.
#[derive(Debug, Args)]
pub(crate) struct ConvertBenchArgs {
    /// The image folder
    #[arg(value_name = "DATA", value_hint = ValueHint::DirPath)]
    data: PathBuf,
    /// Threads; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Pairs of runs
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Write the packs into this folder [default: the system's for temporary files]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    scratch: Option<PathBuf>,
}

pub(crate) fn run(args: &ConvertBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = ConvertBenchOptions {
        jobs: args.jobs,
        runs: args.runs,
        scratch: args.scratch.clone(),
    };
    let shown = Benchmarking::new(console);
    let bench = bench_convert(&args.data, &options, &shown);
    // Takes its line off the terminal.
    drop(shown);
    let bench = bench?;
    if console.json {
        console.document(&bench.to_json())?;
    } else {
        show(&bench, console.out)?;
    }
    Ok(Exit::Done)
}

fn show(bench: &ConvertBench, out: &mut dyn Write) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    writeln!(
        out,
        "data     {}, repeated to the number of images shown; cache {}, {}, {}, seed {}",
        counted(bench.n_files, "file"),
        bench.cache,
        counted(bench.jobs, "thread"),
        counted(bench.runs, "run"),
        bench.seed
    )?;
    writeln!(
        out,
        "{:8} {:>7} {:>9} {:>7} {:>16} {:>9} {:>6} {:>13} {:>9}",
        "what", "images", "images/s", "MB/s", "limit", "images/s", "ratio", "range", "peak RSS"
    )?;
    for Figure {
        name,
        n_images,
        images_per_s,
        mb_per_s,
        limit,
        limit_images_per_s,
        ratio,
        ratio_range,
        peak_rss_bytes,
        ..
    } in [&bench.raw, &bench.encoded, &bench.verify]
    {
        let range = format!("{:.2} to {:.2}", ratio_range.0, ratio_range.1);
        let peak = human_bytes(*peak_rss_bytes);
        writeln!(
            out,
            "{name:8} {n_images:>7} {images_per_s:>9.0} {mb_per_s:>7.0} {limit:>16} {limit_images_per_s:>9.0} {ratio:>6.2} {range:>13} {peak:>9}"
        )?;
    }
    writeln!(
        out,
        "open     {:.1} ms for 1.28 million samples, with all that info shows",
        bench.open_ms
    )?;
    Ok(())
}
