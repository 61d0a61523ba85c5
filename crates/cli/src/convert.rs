//! `packds convert`: convert a source to a pack.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::{Args, ValueEnum, ValueHint};
use packds_convert::source::{ListOptions, Listing, Unpacking, list, list_splits};
use packds_convert::{
    Compression, ConvertError, ConvertOptions, DataFormat, Forecast, Mode, NormalizeBy, OnError,
    Report, Skipped, check_apart, check_output, convert_listing, forecast,
};
use packds_format::DType;
use packds_pixels::{Color, Crop, Filter, Layout, Orientation, Resize};
use serde_json::{Value, json};

use crate::args::parsed;
use crate::console::Console;
use crate::escape::{escape, escape_path};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{counted, human_bytes, numbers, seek_line};
use crate::progress::Shown;

const EXAMPLES: &str = "\
Examples:
  packds convert imagenet/train train.pack
  packds convert photos/ photos.pack --resize short:256 --batch 256
  packds convert photos/ photos.pack --mode encoded --seekable
  packds convert dataset/ out.pack --split all
  packds convert captions.jsonl captions.pack --label-key species
  packds convert 'shards/train-{000..099}.tar' train.pack
  packds convert train.h5 train.pack --image-key x --label-key y
  packds convert photos/ photos.pack --dtype f32 --normalize dataset
  packds convert photos/ photos.pack --dry-run";

/// Number of skipped files listed on the terminal. `--json` lists all.
const SHOWN_SKIPPED: usize = 10;

/// Convert an image folder, a manifest or a dataset in another format to a pack
///
/// SRC is a folder of class folders (read like torchvision's ImageFolder), a flat folder of images, a manifest (.csv, .tsv
/// or .jsonl), or a file, folder or pattern such as 'train-{000..099}.tar' in another format (see packds formats).
/// By default, images that all have one size are stored unchanged. Images of several sizes are resized to short
/// side 256 and centre-cropped to 224. Samples are shuffled, so reading chunk by chunk gives a random order.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// Image folder, manifest or dataset in another format
    #[arg(value_name = "SRC", value_hint = ValueHint::AnyPath)]
    source: PathBuf,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Print the expected result without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Decoding threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,

    #[command(flatten)]
    source_options: SourceArgs,
    #[command(flatten)]
    pixels: PixelArgs,
    #[command(flatten)]
    layout: LayoutArgs,

    /// What to do with a file that cannot be read or decoded: stop at the first in listing order; skip it and list it;
    /// or substitute a zero image and set the column `valid` to 0
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "stop",
        help_heading = "Errors"
    )]
    on_error: ErrorPolicy,
    /// Maximum pixels per image; a larger image is an error
    #[arg(long, value_name = "N", default_value_t = ConvertOptions::default().max_pixels, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Errors")]
    max_pixels: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Source")]
struct SourceArgs {
    /// Convert this split (train, val, ...) of a folder of splits; `all` writes one pack per split: OUT.train.pack and so on
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Base folder for relative paths in a manifest [default: the manifest's folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Option<PathBuf>,
    /// Image field, or a manifest's column of image paths [default: found by name]
    #[arg(long, value_name = "NAME")]
    image_key: Option<String>,
    /// Label field [default: found by name]
    #[arg(long, value_name = "NAME")]
    label_key: Option<String>,
    /// Mask field, or a manifest's column of mask paths [default: found by name]
    #[arg(long, value_name = "NAME")]
    mask_key: Option<String>,
    /// Exclude a field or column (repeatable)
    #[arg(long, value_name = "NAME")]
    leave_out: Vec<String>,
    /// Source format, one of packds formats [default: detected from content and name]
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<DataFormat>)]
    from: Option<DataFormat>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
struct PixelArgs {
    /// Store pixels (raw), image files (encoded), or some of each (mixed)
    #[arg(long, default_value = "raw")]
    mode: ModeName,
    /// Share of raw samples with --mode mixed, 0 to 1 [default: 0.5]
    #[arg(long, value_name = "P")]
    raw_fraction: Option<f64>,
    /// Re-encode images as JPEG of this quality (1 to 100) instead of keeping the original files
    #[arg(long, value_name = "Q", value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: Option<u8>,
    /// short:N, long:N, max:N, WIDTHxHEIGHT or none [default: depends on the image sizes]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Resize>)]
    resize: Option<Resize>,
    /// center:N, center:WIDTHxHEIGHT or none [default: depends on the image sizes]
    #[arg(long, value_name = "CROP", value_parser = parsed::<Crop>)]
    crop: Option<Crop>,
    /// nearest, box, bilinear, bicubic or lanczos, as in Pillow
    #[arg(long, default_value_t, value_parser = parsed::<Filter>)]
    filter: Filter,
    /// Apply the EXIF orientation (apply), or ignore it like torchvision (ignore)
    #[arg(long, default_value = "ignore")]
    orientation: OrientationName,
    /// Convert to one channel [default: as in the source for arrays and exported packs, else three]
    #[arg(long)]
    gray: bool,
    /// Convert to three channels, even if the source has one
    #[arg(long, conflicts_with = "gray")]
    rgb: bool,
    /// u8, f16, bf16 or f32; floats are scaled to 0..1 and normalized
    #[arg(long, default_value = "u8", value_parser = parse_dtype)]
    dtype: DType,
    /// none, imagenet, dataset (measured in an extra pass) or MEAN/STD such as 0.5,0.5,0.5/0.25,0.25,0.25;
    /// applied to float pixels, stored as metadata for u8
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = NormalizeBy::from_str)]
    normalize: NormalizeBy,
    /// Decode JPEGs at 1/2, 1/4 or 1/8 size where that is large enough: faster, but pixels differ (see docs/reference/pixels.md)
    #[arg(long)]
    jpeg_scaling: bool,
    /// Fully decode files even when stored unchanged: finds every damaged file, and measures mean and std
    #[arg(long)]
    check_decode: bool,
    /// With --mode encoded: add an index to each JPEG (1 to 2 % of its bytes), so that random crops decode faster
    #[arg(long)]
    seekable: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Layout")]
struct LayoutArgs {
    /// hwc or chw [default: as in the source for arrays and exported packs, else hwc]
    #[arg(long, value_parser = parsed::<Layout>)]
    layout: Option<Layout>,
    /// none, or zstd[:LEVEL] with a pixel filter
    #[arg(long, default_value = "none", value_parser = Compression::from_str)]
    codec: Compression,
    /// Samples per chunk [default: a power of two, at most 16 MiB and 1024 samples]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    chunk: Option<u32>,
    /// Batch size to align chunks with: the chunk size becomes its largest divisor that fits
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Keep the source's order. For training, do not read a pack sorted by class chunk by chunk
    #[arg(long)]
    keep_order: bool,
    /// Seed for the sample order and for the choice of raw samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeName {
    Raw,
    Encoded,
    Mixed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrientationName {
    Ignore,
    Apply,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ErrorPolicy {
    Stop,
    Skip,
    Substitute,
}

fn parse_dtype(text: &str) -> Result<DType, String> {
    let known = [DType::U8, DType::F16, DType::Bf16, DType::F32];
    let found = known.into_iter().find(|dtype| dtype.name() == text);
    found.ok_or_else(|| format!("expected u8, f16, bf16 or f32, found {text:?}"))
}

impl ConvertArgs {
    /// The conversion options of these arguments.
    pub(crate) fn options(&self) -> Result<ConvertOptions, Failure> {
        let (source, pixels, layout) = (&self.source_options, &self.pixels, &self.layout);
        let mode = match (pixels.mode, pixels.raw_fraction) {
            (ModeName::Mixed, fraction) => Mode::Mixed {
                raw_fraction: fraction.unwrap_or(0.5),
            },
            (_, Some(_)) => {
                return Err(Failure::not_run("--raw-fraction requires --mode mixed")
                    .hint("add --mode mixed"));
            }
            (ModeName::Raw, None) => Mode::Raw,
            (ModeName::Encoded, None) => Mode::Encoded,
        };
        Ok(ConvertOptions {
            list: ListOptions {
                split: source.split.clone(),
                root: source.root.clone(),
                from: source.from,
                image_key: source.image_key.clone(),
                label_key: source.label_key.clone(),
                mask_key: source.mask_key.clone(),
                leave_out: source.leave_out.clone(),
                spool: parent_folder(&self.output),
                unpacking: Unpacking::default(),
                jobs: ConvertOptions {
                    jobs: self.jobs,
                    ..ConvertOptions::default()
                }
                .n_jobs(),
            },
            mode,
            resize: pixels.resize,
            crop: pixels.crop,
            filter: pixels.filter,
            orientation: match pixels.orientation {
                OrientationName::Ignore => Orientation::Ignore,
                OrientationName::Apply => Orientation::Apply,
            },
            color: match (pixels.gray, pixels.rgb) {
                (true, _) => Some(Color::Gray),
                (false, true) => Some(Color::Rgb),
                (false, false) => None,
            },
            dtype: pixels.dtype,
            layout: layout.layout,
            normalize: pixels.normalize.clone(),
            quality: pixels.quality,
            jpeg_scaling: pixels.jpeg_scaling,
            check_decode: pixels.check_decode,
            seekable: pixels.seekable,
            compression: layout.codec,
            chunk_samples: layout.chunk,
            batch: layout.batch,
            keep_order: layout.keep_order,
            seed: layout.seed,
            on_error: match self.on_error {
                ErrorPolicy::Stop => OnError::Stop,
                ErrorPolicy::Skip => OnError::Skip,
                ErrorPolicy::Substitute => OnError::Substitute,
            },
            max_pixels: self.max_pixels,
            jobs: self.jobs,
            force: self.force,
        })
    }
}

pub(crate) fn run(args: &ConvertArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = args.options()?;
    options.check()?;
    let shown = Shown::new(console);
    shown.reading(&args.source);
    options.list.unpacking = shown.unpacking();
    if options.list.split.as_deref() == Some("all") {
        return run_splits(args, &options, &shown, console);
    }
    if !args.dry_run {
        check_apart(&args.source, &args.output)?;
        check_output(&args.output, options.force)?;
    }
    let started = Instant::now();
    let listing = shown.during("listing", || list(&args.source, &options.list))?;
    if args.dry_run {
        let forecast = shown.during("planning", || forecast(&listing, &options))?;
        if console.json {
            console.document(&forecast.to_json())?;
        } else {
            show_forecast(&forecast, None, console)?;
        }
        return Ok(Exit::Done);
    }
    let list_time = started.elapsed();
    let report = shown.stoppable("planning", "", || {
        convert_listing(&listing, list_time, &args.output, &options, &shown)
    });
    let report = report.map_err(|error| stopped_at(error, &args.output, &[]))?;
    if console.json {
        console.document(&report.to_json())?;
    } else {
        show_report(&report, console)?;
    }
    Ok(exit_of(&[&report]))
}

/// Converts every split to its own pack. All packs share the class ids.
fn run_splits(
    args: &ConvertArgs,
    options: &ConvertOptions,
    shown: &Shown,
    console: &mut Console,
) -> Result<Exit, Failure> {
    if options.normalize == NormalizeBy::Dataset && options.dtype != DType::U8 {
        return Err(Failure::not_run(
            "--normalize dataset with --split all would measure different values for each split",
        )
        .hint("convert --split train first, then pass its mean and std as --normalize MEAN/STD"));
    }
    let started = Instant::now();
    let list_options = ListOptions {
        split: None,
        ..options.list.clone()
    };
    let splits = shown.during("listing", || list_splits(&args.source, &list_options))?;
    let list_time = started.elapsed();
    let outputs: Vec<(String, Listing, PathBuf)> = splits
        .into_iter()
        .map(|(name, listing)| {
            let output = split_output(&args.output, &name);
            (name, listing, output)
        })
        .collect();
    if args.dry_run {
        let mut documents = serde_json::Map::new();
        for (name, listing, _) in &outputs {
            let forecast = shown.during("planning", || forecast(listing, options))?;
            if console.json {
                documents.insert(name.clone(), forecast.to_json());
            } else {
                show_forecast(&forecast, Some(name), console)?;
            }
        }
        if console.json {
            console.document(&json!({"dry_run": true, "splits": documents}))?;
        }
        return Ok(Exit::Done);
    }
    // Check every output before writing the first.
    outputs
        .iter()
        .try_for_each(|(_, _, output)| check_output(output, options.force))?;
    let mut reports = Vec::new();
    for (name, listing, output) in &outputs {
        let report = shown.stoppable("planning", &escape(name), || {
            convert_listing(listing, list_time, output, options, shown)
        });
        let report = report.map_err(|error| stopped_at(error, output, &reports))?;
        if !console.json {
            show_report(&report, console)?;
            console.out.flush()?;
        }
        reports.push((name.clone(), report));
    }
    if console.json {
        console.document(&splits_json(&reports))?;
    }
    let all: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
    Ok(exit_of(&all))
}

/// Adds the packs already written to a split's error.
fn stopped_at(error: ConvertError, output: &Path, before: &[(String, Report)]) -> Failure {
    match (error, before) {
        (ConvertError::Interrupted, [_, ..]) => {
            let written = before.iter().map(|(_, report)| escape_path(&report.output));
            let written: Vec<String> = written.collect();
            Failure::interrupted(format!(
                "interrupted; this pack was not written, {} was",
                written.join(", ")
            ))
            .at(output)
        }
        (error, _) if is_full(&error) => {
            let hint = "free space there, or write to another disk; '--dry-run' prints the size of the pack";
            Failure::from(error).hint(hint)
        }
        (error, _) => error.into(),
    }
}

/// Whether the output's disk is full.
fn is_full(error: &ConvertError) -> bool {
    let (ConvertError::Io { source, .. } | ConvertError::OutputNotWritable { source, .. }) = error
    else {
        return false;
    };
    matches!(
        source.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// The folder that contains a file.
fn parent_folder(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    let here = parent == Path::new("");
    Some(if here {
        PathBuf::from(".")
    } else {
        parent.to_owned()
    })
}

/// The output path of a split: `out.pack` becomes `out.train.pack`.
#[must_use]
pub fn split_output(output: &Path, split: &str) -> PathBuf {
    let stem = if output.extension().is_some_and(|e| e == "pack") {
        output.with_extension("")
    } else {
        output.to_owned()
    };
    let mut name = stem.into_os_string();
    name.push(format!(".{split}.pack"));
    PathBuf::from(name)
}

fn splits_json(reports: &[(String, Report)]) -> Value {
    let sum = |value: fn(&Report) -> u64| reports.iter().map(|(_, r)| value(r)).sum::<u64>();
    let skipped = reports.iter().flat_map(|(split, report)| {
        let one = move |s: &Skipped| json!({"split": split, "path": s.path, "reason": s.reason});
        report.skipped.iter().map(one)
    });
    let skipped: Vec<Value> = skipped.collect();
    let mut seconds = serde_json::Map::new();
    for (name, value) in reports.iter().flat_map(|(_, r)| r.stages.seconds()) {
        let before = seconds.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        seconds.insert(name.to_owned(), json!(before + value));
    }
    let splits: serde_json::Map<String, Value> = reports
        .iter()
        .map(|(n, r)| (n.clone(), r.to_json()))
        .collect();
    json!({
        "n_samples": sum(|r| r.n_samples),
        "skipped": skipped,
        "bytes_in": sum(|r| r.bytes_in),
        "bytes_out": sum(|r| r.bytes_out),
        "seconds": seconds,
        "splits": splits,
    })
}

/// Skipped or substituted samples are reported as bad data, although the pack was written.
fn exit_of(reports: &[&Report]) -> Exit {
    if reports.iter().any(|r| r.has_bad_samples()) {
        Exit::BadData
    } else {
        Exit::Done
    }
}

fn show_report(report: &Report, console: &mut Console) -> Result<(), Failure> {
    for warning in &report.warnings {
        console.note(&format!("warning: {}", escape(warning)));
    }
    let Report {
        n_samples,
        n_chunks,
        chunk_samples,
        n_classes,
        ..
    } = report;
    let path = escape_path(&report.output);
    let classes = match n_classes {
        0 => String::new(),
        1 => " of 1 class".to_owned(),
        n => format!(" of {n} classes"),
    };
    writeln!(
        console.out,
        "{path}: {}{classes} in {} of {chunk_samples}",
        counted(*n_samples, "sample"),
        counted(*n_chunks, "chunk")
    )?;
    writeln!(console.out, "images   {}", report.images)?;
    for note in &report.notes {
        writeln!(console.out, "note     {note}")?;
    }
    if !report.mean.is_empty() {
        writeln!(
            console.out,
            "pixels   mean {}, std {} (of 0..1)",
            numbers(&report.mean),
            numbers(&report.std)
        )?;
    }
    if let Some(seek) = &report.seek {
        writeln!(console.out, "seek     {}", seek_line(seek, *n_samples))?;
    }
    let (bytes_in, bytes_out) = (human_bytes(report.bytes_in), human_bytes(report.bytes_out));
    writeln!(console.out, "bytes    {bytes_in} read, {bytes_out} written")?;
    let seconds = report.stages.total.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    let rate = *n_samples as f64 / seconds.max(1e-9);
    writeln!(console.out, "time     {seconds:.2} s, {rate:.0} images/s")?;
    let stages = report.stages.seconds();
    let stages = stages
        .iter()
        .filter(|(name, s)| *name != "total" && *s >= 0.0005);
    let stages: Vec<String> = stages.map(|(name, s)| format!("{name} {s:.3}")).collect();
    writeln!(
        console.out,
        "stages   {} (s; read, decode, stats, encode over all threads)",
        stages.join(", ")
    )?;
    show_oddities(report, console)
}

/// Reports files that were ignored, rotated, skipped or replaced.
fn show_oddities(report: &Report, console: &mut Console) -> Result<(), Failure> {
    if report.ignored > 0 {
        writeln!(
            console.out,
            "ignored  {}",
            counted(report.ignored, "other file")
        )?;
    }
    if report.oriented > 0 {
        let n = report.oriented;
        writeln!(
            console.out,
            "exif     {n} images carry an orientation (see --orientation)"
        )?;
    }
    for (what, list) in [("skipped", &report.skipped), ("zeros", &report.substituted)] {
        if list.is_empty() {
            continue;
        }
        writeln!(console.out, "{what:8} {} files", list.len())?;
        for one in list.iter().take(SHOWN_SKIPPED) {
            writeln!(
                console.out,
                "{what:8} {}: {}",
                escape(&one.path),
                escape(&one.reason)
            )?;
        }
        if list.len() > SHOWN_SKIPPED {
            writeln!(
                console.out,
                "{what:8} {} more: packds info --json lists them",
                list.len() - SHOWN_SKIPPED
            )?;
        }
    }
    Ok(())
}

fn show_forecast(
    forecast: &Forecast,
    split: Option<&str>,
    console: &mut Console,
) -> Result<(), Failure> {
    for warning in &forecast.warnings {
        console.note(&format!("warning: {}", escape(warning)));
    }
    if let Some(split) = split {
        writeln!(console.out, "split    {}", escape(split))?;
    }
    let Forecast {
        n_samples,
        n_classes,
        ..
    } = forecast;
    writeln!(
        console.out,
        "source   {n_samples} images of {n_classes} classes, {}",
        human_bytes(forecast.bytes_in)
    )?;
    writeln!(console.out, "images   {}", forecast.images)?;
    for note in &forecast.notes {
        writeln!(console.out, "note     {note}")?;
    }
    writeln!(
        console.out,
        "{:8} {:>12} {:>8} {:>8} {:>22}",
        "mode", "size", "chunk", "chunks", "images/s, one thread"
    )?;
    for form in &forecast.forms {
        let chosen = if form.mode == forecast.chosen.mode {
            "  <- chosen"
        } else {
            ""
        };
        let size = human_bytes(form.bytes);
        let (mode, chunk, n_chunks, rate) = (
            form.mode,
            form.chunk_samples,
            form.n_chunks,
            form.images_per_s,
        );
        writeln!(
            console.out,
            "{mode:8} {size:>12} {chunk:>8} {n_chunks:>8} {rate:>22.0}{chosen}"
        )?;
    }
    writeln!(
        console.out,
        "rates    measured on this machine, from memory: raw is copied or decompressed, encoded is decoded and resized"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_hints_at_the_dry_run_by_conversions_alone() {
        let full = || ConvertError::Io {
            path: PathBuf::from("a.pack"),
            source: ErrorKind::StorageFull.into(),
        };
        let text = stopped_at(full(), Path::new("a.pack"), &[]).text();
        assert!(text.contains("'--dry-run' prints"), "{text}");
        let other = Failure::from(full()).text();
        assert!(
            other.contains("another disk") && !other.contains("dry-run"),
            "{other}"
        );
    }

    #[test]
    fn splits_get_names_of_their_own() {
        assert_eq!(
            split_output("a/out.pack".as_ref(), "train"),
            PathBuf::from("a/out.train.pack")
        );
        assert_eq!(
            split_output("imagenet".as_ref(), "val"),
            PathBuf::from("imagenet.val.pack")
        );
    }
}
