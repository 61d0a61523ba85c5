//! `packds bench convert`: measures converting and verifying, together with the hardware limits.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_bench::{ConvertBench, ConvertBenchOptions, bench_convert};

use super::show_machine;
use crate::args::Jobs;
use crate::figures::{Column, Figures, Keys};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::prose::Prose;
use crate::{Console, Exit, Failure};

const COLUMNS: [Column; 9] = [
    ("what", 8),
    ("images", 7),
    ("images/s", 9),
    ("MiB/s", 7),
    ("limit", 16),
    ("images/s", 9),
    ("ratio", 6),
    ("range", 13),
    ("peak RSS", 9),
];

const EXAMPLES: &str = "\
Examples:
  packds bench convert images
  packds bench convert images --rounds 3 --jobs 4";

/// Measure convert and verify, and compare them with reading, decoding and copying the same files
///
/// Compares raw conversion (short side 256, crop 224) with a loop that only reads and fully decodes the same files.
/// Compares encoded conversion with `cat`, and verify with reading the pack and computing CRC32C. Also times opening a
/// pack of 1.28 million samples. Runs of packds and of the limit alternate; ratios are medians of the pairs. If there
/// are too few files for a long enough run, each is used several times, through links.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertBenchArgs {
    /// Image folder
    #[arg(value_name = "DATA", value_hint = ValueHint::DirPath)]
    data: PathBuf,
    #[command(flatten)]
    jobs: Jobs,
    /// Number of pairs of runs; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Where to create a temporary folder; only that folder is removed at the end [default: the system's temporary
    /// folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    work: Option<PathBuf>,
}

pub(crate) fn run(args: &ConvertBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = ConvertBenchOptions { jobs: args.jobs.jobs, rounds: args.rounds, work: args.work.clone() };
    let shown = Shown::new(console);
    let bench = shown.stoppable("starting", "", || bench_convert(&args.data, &options, &shown));
    // Clears the progress line.
    drop(shown);
    let bench = bench?;
    console.result(|| &bench, |console| show(&bench, &mut console.prose()))
}

fn show(bench: &ConvertBench, out: &mut Prose) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    writeln!(
        out,
        "data     {}, repeated to give the number of images shown; cache {}, {}, {}, seed {}",
        counted(bench.n_files, "file"),
        bench.cache,
        counted(bench.threads, "thread"),
        counted(bench.rounds, "round"),
        bench.seed
    )?;
    let mut figures = Figures::new(COLUMNS.to_vec(), Keys::Name);
    for figure in [&bench.raw, &bench.encoded, &bench.verify] {
        let cells = [
            figure.name.to_owned(),
            figure.n_samples.to_string(),
            format!("{:.0}", figure.images_per_s),
            format!("{:.0}", figure.bytes_per_s / f64::from(1 << 20)),
            figure.limit.to_owned(),
            format!("{:.0}", figure.limit_images_per_s),
            format!("{:.2}", figure.ratio),
            format!("{:.2} to {:.2}", figure.ratio_range.0, figure.ratio_range.1),
            human_bytes(figure.peak_rss_bytes),
        ];
        figures.push(cells.to_vec(), "");
    }
    figures.lines(out.columns()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "open     {:.1} ms for 1.28 million samples, including everything that info shows", bench.open_ms)?;
    Ok(())
}
