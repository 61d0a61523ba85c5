//! `packds append`: adds packs to a set.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{AppendOptions, AppendReport, Taken, append, check_set_name};
use packds_reader::Pack;

use super::still_good;
use crate::args::PackPaths;
use crate::console::{Console, Detail};
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, time_line};
use crate::progress::Shown;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds append photos.packs monday.pack tuesday.pack   # creates the set, or adds to it
  packds append photos.packs wednesday.pack --dry-run
  packds info photos.packs                              # the latest version
  packds info photos.packs@1                            # an older version";

/// Add packs to a set: a folder of packs that reads as one pack
///
/// The set gets a new version, and older versions can still be read. A pack that fits is copied byte for byte, and its
/// checksums with it. A pack with other class ids or chunks is written again to fit the set, without decoding images.
/// The packs must have the same fields. A crash, or another append at the same time, leaves every version whole.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AppendArgs {
    /// Set to add to. It is created if it does not exist
    #[arg(value_name = "SET", value_hint = ValueHint::DirPath)]
    set: PathBuf,
    #[command(flatten)]
    packs: PackPaths,
    #[command(flatten)]
    given: Given<AppendOptions>,
}

pub(crate) fn run(args: &AppendArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let folder = &args.set;
    check_set_name(folder)?;
    let current = packds_reader::latest_of_set(folder)?;
    let paths = &args.packs.packs;
    let packs = paths.iter().map(packds_reader::open).collect::<Result<Vec<Pack>, _>>()?;
    let taken = paths.iter().zip(&packs).map(|(path, pack)| Taken { pack: &**pack, path, samples: None });
    let taken: Vec<_> = taken.collect();
    let shown = Shown::new(console);
    let current = current.as_deref();
    let report = shown.stoppable("copying", "", || append(folder, current, &taken, &options, &shown));
    still_good(&packs)?;
    let report = report?;
    console.result(|| &report, |console| show(&report, console))
}

fn show(report: &AppendReport, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let out = &mut console.prose();
    let classes = match report.n_classes {
        0 => String::new(),
        n => format!(" of {}", counted(n, "class")),
    };
    let (path, shards) = (escape_path(&report.output), counted(report.n_shards, "shard"));
    let samples = counted(report.n_samples, "sample");
    writeln!(out, "{path}: version {}, {samples}{classes} in {shards}", report.version)?;
    for added in &report.added {
        let how = match (added.is_copy, added.was_there) {
            (true, true) => "already there, with the same bytes",
            (true, false) => "copied byte for byte",
            (false, _) => "written again with the ids of the set",
        };
        let size = human_bytes(added.bytes);
        let samples = counted(added.n_samples, "sample");
        writeln!(out, "added     {}: {samples}, {size}, {how}", escape_path(&added.source))?;
    }
    if report.dry_run {
        writeln!(out, "nothing was written")?;
        return Ok(());
    }
    let n: u64 = report.added.iter().map(|added| added.n_samples).sum();
    writeln!(out, "time      {}", time_line(report.time.as_secs_f64(), n, "samples"))?;
    Ok(())
}
