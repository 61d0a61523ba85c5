//! `packds commit`: makes a set of the shards of a plan.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use packds_convert::{Commit, CommitReport, ConvertError, Observer, ShardPlan};

use super::SetFolder;
use crate::console::{Console, Detail};
use crate::convert::show_bad_files;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds commit train.plan -o train.packs
  packds commit train.plan -o train.packs --json | jq '.skipped[].path'";

/// Make a set of the shards of a plan, once all of them are built
///
/// Reads the footer of every shard, adds up classes and statistics, and writes the manifest last. Until then the folder
/// is no set. If shards are missing, the error lists them. Repeating it does no harm. Exits with 1 if samples are bad, as
/// `packds convert` does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CommitArgs {
    /// Plan that `packds plan` wrote
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,
    #[command(flatten)]
    set: SetFolder,
}

pub(crate) fn run(args: &CommitArgs, console: &mut Console) -> Result<Exit, Failure> {
    let plan = ShardPlan::open(&args.plan)?;
    let shown = Shown::new(console);
    let report = shown.stoppable("reading", "", || commit_shards(&plan, &args.set.output, &shown))?;
    console.result(|| &report, |console| show(&report, console))?;
    Ok(if report.n_skipped + report.n_substituted > 0 { Exit::BadData } else { Exit::Done })
}

/// Makes a set of the shards in `folder`.
///
/// # Errors
/// As for [`Commit::new`], [`Commit::add`] and [`Commit::finish`].
pub fn commit_shards(plan: &ShardPlan, folder: &Path, observer: &dyn Observer) -> Result<CommitReport, ConvertError> {
    let mut commit = Commit::new(plan, folder)?;
    for path in commit.paths() {
        let pack = packds_reader::open(&path).map_err(|error| commit.unreadable(&path, &error.reason()))?;
        commit.add(&path, &pack, observer)?;
    }
    commit.finish(observer)
}

fn show(report: &CommitReport, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail != Detail::Quiet {
        let classes = match report.n_classes {
            0 => String::new(),
            n => format!(" of {}", counted(n, "class")),
        };
        let (path, bytes) = (escape_path(&report.output), human_bytes(report.bytes_out));
        let (samples, shards) = (counted(report.n_samples, "sample"), counted(report.n_shards, "shard"));
        writeln!(console.prose(), "{path}: {samples}{classes} in {shards}, {bytes}")?;
        if report.is_kept {
            writeln!(console.prose(), "kept     the set was there, with the same shards")?;
        }
    }
    show_bad_files("skipped", report.n_skipped, &report.skipped, console)?;
    show_bad_files("substituted", report.n_substituted, &report.substituted, console)
}
