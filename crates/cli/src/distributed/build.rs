//! `packds build`: builds one shard of a plan.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use packds_convert::{BuildOptions, BuildReport, ConvertError, Observer, ShardPlan};
use packds_reader::VerifyOptions;
use packds_system::to_u64;

use super::SetFolder;
use crate::console::{Console, Detail};
use crate::convert::show_bad_files;
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, time_line};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds build train.plan --shard 17 -o train.packs
  seq 0 63 | xargs -P 4 -I{} packds build train.plan --shard {} -o train.packs --jobs 4
  packds build train.plan --shard $SLURM_ARRAY_TASK_ID -o train.packs   # in a Slurm array job";

/// Build one shard of a plan, on any machine
///
/// Repeating it does no harm: the bytes of a shard follow from the plan. A shard that is there and intact is kept, and a
/// damaged one is replaced. A file of the source that changed after the plan was made is an error. Samples that are bad
/// are skipped or replaced as the plan says, and `packds commit` reports them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BuildArgs {
    /// Plan that `packds plan` wrote
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,
    /// Number of the shard, from 0
    #[arg(long, value_name = "K")]
    shard: u64,
    #[command(flatten)]
    set: SetFolder,
    #[command(flatten)]
    given: Given<BuildOptions>,
}

pub(crate) fn run(args: &BuildArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let plan = ShardPlan::open(&args.plan)?;
    let shown = Shown::new(console);
    let report =
        shown.stoppable("building", "", || build_shard(&plan, args.shard, &args.set.output, &options, &shown))?;
    console.result(|| &report, |console| show(&report, &plan, console))?;
    Ok(Exit::Done)
}

/// Builds a shard, unless it is there and intact.
///
/// # Errors
/// As for [`ShardPlan::build`].
pub fn build_shard(
    plan: &ShardPlan,
    shard: u64,
    folder: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<BuildReport, ConvertError> {
    let started = Instant::now();
    packds_convert::check_set_name(folder)?;
    let there = plan.find(folder, shard)?;
    let why = there.as_ref().map(|(_, is_old)| if *is_old { "older than the source" } else { "damaged" });
    if let Some((path, false)) = there
        && let Ok(pack) = packds_reader::open(&path)
        && plan.is_shard(shard, &pack)
        && let Ok(found) = packds_reader::verify(&pack, VerifyOptions::jobs(options.jobs), &|_, _| ())
        && found.is_ok()
    {
        return Ok(plan.kept(shard, path, &pack, started.elapsed()));
    }
    let mut report = plan.build(shard, folder, options, observer)?;
    report.warnings.extend(why.map(|why| format!("the shard that was there is {why}: it was replaced")));
    Ok(report)
}

fn show(report: &BuildReport, plan: &ShardPlan, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let (path, samples) = (escape_path(&report.output), counted(report.n_samples, "sample"));
    let (bytes, shard) = (human_bytes(report.bytes_out), report.shard);
    let out = &mut console.prose();
    writeln!(out, "{path}: shard {shard} of {}, {samples}, {bytes}", plan.n_shards())?;
    if report.is_kept {
        writeln!(out, "kept     it was there and is intact")?;
        return Ok(());
    }
    writeln!(out, "time     {}", time_line(report.time.as_secs_f64(), report.n_samples, "images"))?;
    for note in &report.notes {
        writeln!(out, "note     {note}")?;
    }
    show_bad_files("skipped", to_u64(report.skipped.len()), &report.skipped, console)?;
    show_bad_files("substituted", to_u64(report.substituted.len()), &report.substituted, console)
}
