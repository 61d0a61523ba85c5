//! `packds bench edit`: measures edits of a pack, together with a plain copy.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_bench::{EditBench, EditBenchOptions, bench_edit};

use super::show_machine;
use crate::args::{Jobs, PackPath};
use crate::figures::{Column, Figures, Keys};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::prose::Prose;
use crate::{Console, Exit, Failure};

const COLUMNS: [Column; 7] =
    [("what", 8), ("samples", 8), ("MiB/s", 7), ("cat MiB/s", 9), ("ratio", 6), ("range", 13), ("peak RSS", 9)];

const EXAMPLES: &str = "\
Examples:
  packds bench edit train.pack
  packds bench edit train.pack --copies 10 --rounds 9 --work /mnt/fast";

/// Measure merge, split, subset and reorder, and compare them with copying as many bytes
///
/// Merges the pack with itself, puts every tenth sample into a pack of its own, with and without a pack of the others, and shuffles all samples. Each run alternates with a loop that
/// reads the pack and writes as many bytes, like `cat`. Ratios are medians of the pairs. The final sync to disk is not
/// measured.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EditBenchArgs {
    #[command(flatten)]
    pack: PackPath,
    #[command(flatten)]
    jobs: Jobs,
    /// Number of pairs of runs; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// How many times the merged pack has the samples of PACK
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1000))]
    copies: u16,
    /// Where to create a temporary folder, with room for the largest new pack; only that folder is removed at the end [default: the
    /// system's temporary folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    work: Option<PathBuf>,
}

pub(crate) fn run(args: &EditBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (jobs, rounds, copies) = (args.jobs.jobs, args.rounds, args.copies.into());
    let options = EditBenchOptions { jobs, rounds, copies, work: args.work.clone() };
    let pack = packds_reader::open(&args.pack.pack)?;
    if pack.manifest().is_some() {
        return Err(Failure::not_run("only a single pack can be measured").hint("pass a pack, such as one shard"));
    }
    let shown = Shown::new(console);
    let bench = shown.stoppable("starting", "", || bench_edit(&pack, &options, &shown));
    // Clears the progress line.
    drop(shown);
    let bench = bench?;
    console.result(|| &bench, |console| show(&bench, &mut console.prose()))
}

fn show(bench: &EditBench, out: &mut Prose) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    let (bytes, samples) = (human_bytes(bench.bytes), counted(bench.n_samples, "sample"));
    let rounds = counted(bench.rounds, "round");
    writeln!(
        out,
        "data     {samples}, {bytes}; cache {}, {rounds}, {} in merge, seed {}",
        bench.cache,
        counted(bench.copies, "input"),
        bench.seed
    )?;
    let mut figures = Figures::new(COLUMNS.to_vec(), Keys::Name);
    for figure in &bench.edits {
        let mib = figure.bytes_per_s / f64::from(1 << 20);
        let cells = [
            figure.name.to_owned(),
            figure.n_samples.to_string(),
            format!("{mib:.0}"),
            format!("{:.0}", mib * figure.limit_images_per_s / figure.images_per_s),
            format!("{:.2}", figure.ratio),
            format!("{:.2} to {:.2}", figure.ratio_range.0, figure.ratio_range.1),
            human_bytes(figure.peak_rss_bytes),
        ];
        figures.push(cells.to_vec(), "");
    }
    figures.lines(out.columns()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}
