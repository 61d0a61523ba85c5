//! `packds compact`: joins small shards of a set.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{CompactOptions, CompactReport, check_set_name, compact};
use packds_reader::Pack;

use crate::console::{Console, Detail};
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, time_line};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds compact photos.packs --dry-run
  packds compact photos.packs                          # a new version; older ones stay
  packds compact photos.packs --shard-size 1GB
  packds compact photos.packs --delete-old             # only the latest version stays";

/// Join small neighbouring shards of a set, without decoding images
///
/// The set gets a new version with the same samples in the same order and with the same ids, so saved training states
/// stay valid. Older versions keep their shards until they are deleted. A crash leaves the latest version whole.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    /// Set to compact
    #[arg(value_name = "SET", value_hint = ValueHint::DirPath)]
    set: PathBuf,
    #[command(flatten)]
    given: Given<CompactOptions>,
}

pub(crate) fn run(args: &CompactArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let folder = &args.set;
    check_set_name(folder)?;
    let current = packds_reader::open(folder)?;
    let open = |path: &std::path::Path| Ok::<Pack, Failure>(packds_reader::open(path)?);
    let shown = Shown::new(console);
    let report = shown.stoppable("copying", "", || compact(folder, &*current, open, &options, &shown));
    current.still_good()?;
    let report = report?;
    console.result(|| &report, |console| show(&report, console))
}

fn show(report: &CompactReport, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let out = &mut console.prose();
    let (path, samples) = (escape_path(&report.output), counted(report.n_samples, "sample"));
    let [before, after] = report.n_shards;
    let shards = if before == after { String::new() } else { format!(", before {before}") };
    writeln!(out, "{path}: version {}, {samples} in {}{shards}", report.version, counted(after, "shard"))?;
    for joined in &report.joined {
        let (n, samples) = (counted(joined.n_shards, "shard"), counted(joined.n_samples, "sample"));
        writeln!(out, "joined    {n}: {samples}, {}", human_bytes(joined.bytes))?;
    }
    if report.joined.is_empty() {
        writeln!(out, "joined    nothing: no neighbours fit in one shard")?;
    }
    if !report.deleted.is_empty() {
        let bytes = report.deleted.iter().map(|file| file.bytes).sum();
        let n = counted(report.deleted.len(), "file");
        writeln!(out, "deleted   {n}, {}", human_bytes(bytes))?;
    }
    if report.old_bytes > 0 {
        let bytes = human_bytes(report.old_bytes);
        writeln!(
            out,
            "unused    {bytes} that this version does not use; --delete-old deletes them with older versions"
        )?;
    }
    if report.dry_run {
        writeln!(out, "nothing was written or deleted")?;
        return Ok(());
    }
    writeln!(out, "time      {}", time_line(report.time.as_secs_f64(), report.n_samples, "samples"))?;
    Ok(())
}
