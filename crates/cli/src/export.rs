//! `packds export`: converts a pack to another format.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{ConvertError, ExportOptions, ExportReport, check_apart, export, target_format};

use crate::args::PackPath;
use crate::choice::{Choice, nothing_chosen};
use crate::console::Detail;
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes, time_line};
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds export train.pack train.h5
  packds export train.pack train.zarr --chunk 256 --codec zstd
  packds export train.pack shards --to webdataset --shard 10000
  packds export train.pack train.parquet --images pixels
  packds export train.pack cats.h5 --class cat
  packds export train.pack images --to image-folder";

/// Convert a pack to another format: HDF5, Zarr, Parquet, WebDataset and more
///
/// The format follows from DST's extension (.npy, .npz, .pt, .safetensors, .h5, .zarr, .parquet, .arrow, .tar,
/// .tfrecord, .lmdb) or from --to. Samples keep their order. Labels, class names, other fields, statistics and
/// provenance are kept if the format supports them; the report lists what was lost. All data is checked against its
/// checksums.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pack: PackPath,
    /// File or folder to write
    #[arg(value_name = "DST", value_hint = ValueHint::AnyPath)]
    target: PathBuf,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    given: Given<ExportOptions>,
}

pub(crate) fn run(args: &ExportArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = args.given.options()?;
    // Report errors in the target before opening the pack.
    target_format(&args.target, &options)?;
    check_apart(&args.pack.pack, &args.target)?;
    with_pack(&args.pack.pack, |pack| {
        options.samples = args.choice.in_file_order(pack)?;
        if options.samples.as_ref().is_some_and(Vec::is_empty) {
            return Err(nothing_chosen(pack));
        }
        let shown = Shown::new(console);
        let report = shown.stoppable("exporting", "", || export(pack, &args.target, &options, &shown));
        let report = report.map_err(|error| match error {
            ConvertError::BadPack(_) | ConvertError::BadItem { .. } => Failure::from(error).at(&args.pack.pack),
            other => other.into(),
        })?;
        console.result(|| &report, |console| show(&report, console))
    })
}

fn show(report: &ExportReport, console: &mut Console) -> Result<(), Failure> {
    let lost = report.lost.iter().map(|lost| format!("not kept: {}", escape(lost)));
    if console.detail == Detail::Quiet {
        lost.for_each(|line| console.warn(&line));
        return Ok(());
    }
    let detail = console.detail;
    let out = &mut console.prose();
    let (export, sync) = (report.export.as_secs_f64(), report.sync.as_secs_f64());
    let (path, format) = (escape_path(&report.output), &report.format);
    let (samples, bytes) = (counted(report.n_samples, "sample"), human_bytes(report.bytes_out));
    writeln!(out, "{path}: {samples} as {format}, {bytes}")?;
    writeln!(out, "fields   {}", escape(&report.fields.join(", ")))?;
    writeln!(out, "time     {}", time_line(export + sync, report.n_samples, "samples"))?;
    for line in lost {
        writeln!(out, "{line}")?;
    }
    if detail == Detail::Verbose {
        writeln!(out, "stages   export {export:.3}, sync {sync:.3} (seconds)")?;
    }
    Ok(())
}
