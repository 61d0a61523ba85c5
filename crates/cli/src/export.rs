//! `packds export`: convert a pack to another format.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use packds_convert::{
    ConvertError, DataFormat, ExportCodec, ExportOptions, ExportReport, ImagesAs, check_apart,
    export, target_format,
};

use crate::args::{PackPath, parsed};
use crate::console::Console;
use crate::escape::{escape, escape_path};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{counted, human_bytes};
use crate::opened::with_pack;
use crate::progress::Shown;

const EXAMPLES: &str = "\
Examples:
  packds export train.pack train.h5
  packds export train.pack train.zarr --chunk 256 --codec zstd
  packds export train.pack shards --to webdataset --shard 10000
  packds export train.pack train.parquet --images pixels
  packds export train.pack images --to image-folder";

/// Convert a pack to another format: HDF5, Zarr, Parquet, WebDataset and more
///
/// The format follows from DST's extension (.npy, .npz, .pt, .safetensors, .h5, .zarr, .parquet, .arrow, .tar, .tfrecord,
/// .lmdb) or from --to. Samples keep their order. Labels, class names, other fields, statistics and provenance are kept if
/// the format supports them; the report lists what was lost. All data is checked against its checksums.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pack: PackPath,
    /// File or folder to write
    #[arg(value_name = "DST", value_hint = ValueHint::AnyPath)]
    target: PathBuf,
    /// Format, one of packds formats [default: from DST's extension]
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<DataFormat>)]
    to: Option<DataFormat>,
    /// pixels (arrays) or files (as stored; raw pixels become lossless PNG) [default: depends on the format]
    #[arg(long, value_name = "HOW", value_parser = images)]
    images: Option<ImagesAs>,
    /// Samples per chunk (HDF5, Zarr), row group (Parquet) or record batch (Arrow) [default: as in the pack]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    chunk: Option<u32>,
    /// Samples per shard (Zarr) or per file (WebDataset, TFRecord, Parquet) [default: all in one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    shard: Option<u64>,
    /// none, gzip[:1-9], zstd[:1-19], blosc, lz4 or snappy, if the format supports it [default: depends on the format]
    #[arg(long, value_name = "CODEC", value_parser = ExportCodec::from_str)]
    codec: Option<ExportCodec>,
    /// Write one .npy per sample, in class folders (npy)
    #[arg(long)]
    per_sample: bool,
    /// Zarr version: 2 or 3 [default: 3]
    #[arg(long, value_name = "V", value_parser = clap::value_parser!(u8).range(2..=3))]
    zarr_version: Option<u8>,
    /// Threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Replace DST if it is a file and the format writes a single file; folders are never replaced
    #[arg(long)]
    force: bool,
}

fn images(text: &str) -> Result<ImagesAs, String> {
    match text {
        "pixels" => Ok(ImagesAs::Pixels),
        "files" => Ok(ImagesAs::Files),
        _ => Err(format!("expected pixels or files, found {text:?}")),
    }
}

impl ExportArgs {
    /// The export options of these arguments.
    pub(crate) fn options(&self) -> ExportOptions {
        ExportOptions {
            to: self.to,
            images: self.images,
            chunk_samples: self.chunk,
            shard_samples: self.shard,
            codec: self.codec,
            per_sample: self.per_sample,
            zarr_version: self.zarr_version,
            jobs: self.jobs,
            force: self.force,
        }
    }
}

pub(crate) fn run(args: &ExportArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.options();
    // Report errors in the target before opening the pack.
    target_format(&args.target, &options)?;
    check_apart(&args.pack.pack, &args.target)?;
    with_pack(&args.pack.pack, |pack| {
        let shown = Shown::new(console);
        let report = shown.stoppable("exporting", "", || {
            export(pack, &args.target, &options, &shown)
        });
        let report = report.map_err(|error| match error {
            ConvertError::BadPack(_) | ConvertError::BadItem { .. } => {
                Failure::from(error).at(&args.pack.pack)
            }
            other => other.into(),
        })?;
        if console.json {
            console.document(&report.to_json())?;
        } else {
            show(&report, console)?;
        }
        Ok(Exit::Done)
    })
}

fn show(report: &ExportReport, console: &mut Console) -> Result<(), Failure> {
    let out = &mut console.out;
    let seconds = report.export.as_secs_f64() + report.sync.as_secs_f64();
    writeln!(
        out,
        "{}: {} as {}, {} in {seconds:.1} s",
        escape_path(&report.output),
        counted(report.n_samples, "sample"),
        report.format,
        human_bytes(report.bytes_out),
    )?;
    writeln!(out, "fields: {}", escape(&report.fields.join(", ")))?;
    for lost in &report.lost {
        writeln!(out, "not kept: {}", escape(lost))?;
    }
    Ok(())
}
