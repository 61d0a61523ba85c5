//! The commands that write packs from packs, such as `subset`, `split` and `merge`.

pub(crate) mod add_field;
pub(crate) mod append;
pub(crate) mod compact;
pub(crate) mod drop_field;
pub(crate) mod merge;
pub(crate) mod relabel;
pub(crate) mod reorder;
pub(crate) mod split;
pub(crate) mod subset;

use std::io::Write;
use std::path::{Path, PathBuf};

use packds_convert::{Changes, Edit, EditOptions, EditReport, Taken, edit};
use packds_reader::Pack;
use serde_json::Value;

use crate::console::{Console, Detail};
use crate::escape::{escape, escape_path};
use crate::failure::Failure;
use crate::human::{counted, human_bytes, time_line};
use crate::progress::Shown;

/// Writes a pack and shows progress. `about` names the pack if there are several.
fn write(
    packs: &[(&Path, &Pack, Option<&[u64]>)],
    what: (Edit, &Value, &Changes),
    (target, about): (&Path, &str),
    options: &EditOptions,
    shown: &Shown,
) -> Result<EditReport, Failure> {
    let taken = packs.iter().map(|(path, pack, samples)| Taken { pack: &***pack, path, samples: *samples });
    let taken: Vec<_> = taken.collect();
    Ok(shown.stoppable("copying", about, || edit(&taken, what, target, options, shown))?)
}

/// Prints a report.
fn show(report: &EditReport, console: &mut Console) -> Result<(), Failure> {
    report.warnings.iter().for_each(|warning| console.warn(&escape(warning)));
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let path = escape_path(&report.output);
    let samples = counted(report.n_samples, "sample");
    let classes = match report.n_classes {
        0 => String::new(),
        n => format!(" of {}", counted(n, "class")),
    };
    let chunks = format!("{} of {}", counted(report.n_chunks, "chunk"), report.chunk_samples);
    let copied = human_bytes(report.bytes_copied);
    let is_verbose = console.detail == Detail::Verbose;
    let out = &mut console.prose();
    if report.dry_run {
        writeln!(out, "{path}: {samples}{classes} in {chunks}")?;
        writeln!(out, "to copy  about {copied}; nothing was written")?;
        return Ok(());
    }
    writeln!(out, "{path}: {samples}{classes} in {chunks}, {}", human_bytes(report.bytes_out))?;
    writeln!(out, "copied   {copied}, without decoding images")?;
    let seconds = (report.copy + report.sync).as_secs_f64();
    writeln!(out, "time     {}", time_line(seconds, report.n_samples, "samples"))?;
    if is_verbose {
        let (copy, sync) = (report.copy.as_secs_f64(), report.sync.as_secs_f64());
        writeln!(out, "stages   copy {copy:.3}, sync {sync:.3} (seconds)")?;
    }
    Ok(())
}

/// Checks that no file was cut off while it was read.
fn still_good(packs: &[Pack]) -> Result<(), Failure> {
    packs.iter().try_for_each(|pack| Ok(pack.still_good()?))
}

/// The packs with their paths, all samples of each.
fn whole<'a>(paths: &'a [PathBuf], packs: &'a [Pack]) -> Vec<(&'a Path, &'a Pack, Option<&'a [u64]>)> {
    paths.iter().zip(packs).map(|(path, pack)| (path.as_path(), pack, None)).collect()
}
