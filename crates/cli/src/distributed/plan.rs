//! `packds plan`: divides a conversion among many machines.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueHint};
use packds_convert::{ConvertOptions, PlanReport, check_apart, list_to_plan, plan_shards};

use crate::console::{Console, Detail};
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, time_line};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds plan imagenet/train --shards 64 -o train.plan
  packds build train.plan --shard 0 -o train.packs      # on any machine, and so on up to 63
  packds commit train.plan -o train.packs               # when all shards are there
  packds plan 'shards/{000..999}.tar' --shards 100 --mode encoded -o train.plan";

/// Plan a conversion on many machines: which samples each shard of the set gets
///
/// Takes the options of `packds convert`. Lists the source once and writes all decisions to one file, from which any
/// machine builds any shard. The machines must see the source under the same path. The set that the shards become has
/// the samples, the order, the classes and the statistics that `packds convert` would write.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Image folder, manifest or dataset in another format
    #[arg(value_name = "SRC", value_hint = ValueHint::AnyPath)]
    source: PathBuf,
    /// Plan to write
    #[arg(short, long, value_name = "PLAN", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    given: Given<ConvertOptions>,
}

pub(crate) fn run(args: &PlanArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = args.given.options()?.for_output(&args.output);
    options.check()?;
    check_apart(&args.source, &args.output)?;
    let shown = Shown::new(console);
    shown.reading(&args.source);
    options.list.unpacking = shown.unpacking();
    let started = Instant::now();
    let listing = shown.during("listing", || list_to_plan(&args.source, &options.list))?;
    let list_time = started.elapsed();
    let report = shown.stoppable("planning", "", || {
        plan_shards(&args.source, (&listing, list_time), &args.output, &options, &shown)
    })?;
    console.result(|| &report, |console| show(&report, console))?;
    Ok(Exit::Done)
}

fn show(report: &PlanReport, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let PlanReport { n_samples, n_shards, shard_samples, chunk_samples, .. } = report;
    let (path, bytes) = (escape_path(&report.output), human_bytes(report.bytes_out));
    let (samples, shards) = (counted(*n_samples, "sample"), counted(*n_shards, "shard"));
    let out = &mut console.prose();
    writeln!(out, "{path}: {samples} in {shards} of up to {shard_samples}, in chunks of {chunk_samples}, {bytes}")?;
    writeln!(out, "images   {}", report.images)?;
    writeln!(out, "time     {}", time_line(report.time.as_secs_f64(), *n_samples, "samples"))?;
    for note in &report.notes {
        writeln!(out, "note     {note}")?;
    }
    let last = n_shards.saturating_sub(1);
    writeln!(out, "next     packds build {path} --shard K -o OUT.packs, for every K from 0 to {last}")?;
    writeln!(out, "then     packds commit {path} -o OUT.packs")?;
    Ok(())
}
