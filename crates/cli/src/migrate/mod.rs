//! `packds migrate`: converts a dataset of another loader, and compares the pack with that loader's own reader.

mod compare;
mod reader;
mod values;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use packds_convert::source::{ListOptions, Listed, Listing, SourceKind, list_all, list_splits};
use packds_convert::{ConvertOptions, DataFormat, Mode, Report, check_apart, check_target};
use packds_pixels::{Crop, Resize};
use packds_system::to_u64;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::console::Detail;
use crate::convert::{exit_of, split_output, splits_json, write_packs};
use crate::declared::{Given, Kept};
use crate::escape::{escape, escape_path};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::{Console, Exit, Failure};
use compare::{Against, Comparison, compare};

const EXAMPLES: &str = "\
Examples:
  packds migrate train.beton train.pack
  packds migrate mds/train train.pack --python ~/venv/bin/python
  packds migrate litdata/ all.pack --samples 100 --json

Exit codes: 0 converted, and no difference was found; 1 a difference, or bad data; 2 could not run.";

/// Maximum number of differences of a pack that are listed.
const SHOWN_DIFFERENCES: usize = 10;

/// Convert a dataset of FFCV, MosaicML Streaming or LitData, and compare the pack with it
///
/// SOURCE is a .beton file, or a folder with an index.json. Image files are kept as they are; pixels stay pixels.
/// Then some samples of the pack are compared with what the other library reads, in the given Python. If the library
/// is not installed there, nothing is compared.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateArgs {
    /// Dataset to convert
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    source: PathBuf,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Number of random samples of each pack to compare; 0 compares none
    #[arg(long, value_name = "N", default_value_t = 1000)]
    samples: u64,
    /// Seed for the choice of the samples to compare
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Python interpreter that has the other library [default: python3]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    python: Option<PathBuf>,
    #[command(flatten)]
    given: Given<ConvertOptions, Migration>,
}

/// The options of a conversion that lose no data.
#[derive(Debug)]
struct Migration;

impl Kept for Migration {
    fn has(name: &str) -> bool {
        ["force", "jobs", "split", "image_key", "label_key", "mask_key", "leave_out", "keep_order", "on_error"]
            .contains(&name)
    }
}

/// What the source has.
#[derive(Debug, Serialize)]
struct Source {
    format: &'static str,
    /// The names of the splits. Empty if the source has none.
    splits: Vec<String>,
    n_samples: u64,
    n_files: u64,
    bytes: u64,
}

pub(crate) fn run(args: &MigrateArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = args.given.options()?.for_output(&args.output);
    check_apart(&args.source, &args.output)?;
    let shown = Shown::new(console);
    shown.reading(&args.source);
    options.list.unpacking = shown.unpacking();
    let started = Instant::now();
    let (format, outputs) = list(args, &options, &shown)?;
    let list_time = started.elapsed();
    let options = lossless(options, &outputs);
    options.check()?;
    // Report a pack that exists before anything is printed.
    outputs.iter().try_for_each(|(_, _, output)| check_target(output, &options))?;
    let found = Source::of(&args.source, format, &outputs)?;
    if !console.json {
        found.show(&args.source, console)?;
    }
    let reports = write_packs(&outputs, list_time, &options, &shown, console)?;
    let mut comparisons = Vec::new();
    for (split, listing, output) in &outputs {
        let against = Against {
            python: args.python.as_deref(),
            format,
            listing,
            split,
            list: &options.list,
            samples: (args.samples, args.seed),
        };
        let comparison = shown.stoppable("comparing", &escape(split), || compare(&against, output, &shown))?;
        if !console.json {
            show(&comparison, split, output, console)?;
        }
        comparisons.push((split.as_str(), comparison));
    }
    if console.json {
        document(&found, &reports, &comparisons, console)?;
    }
    let converted: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
    let differs = comparisons.iter().any(|(_, comparison)| comparison.n_differences > 0);
    Ok(if differs { Exit::BadData } else { exit_of(&converted) })
}

/// The samples of each split, and the packs to write. A source without splits has one pack, and its split has no name.
type Outputs = Vec<(String, Listing, PathBuf)>;

fn list(args: &MigrateArgs, options: &ConvertOptions, shown: &Shown) -> Result<(DataFormat, Outputs), Failure> {
    let splits = if options.list.split.as_deref() == Some("all") {
        let list_options = ListOptions { split: None, ..options.list.clone() };
        shown.during("listing", || list_splits(&args.source, &list_options))?
    } else {
        match shown.during("listing", || list_all(&args.source, &options.list))? {
            Listed::One(listing) => vec![(String::new(), *listing)],
            Listed::Splits(splits) => splits,
        }
    };
    let formats = [DataFormat::Beton, DataFormat::Mds, DataFormat::LitData];
    let other = |kind: SourceKind| formats.into_iter().find(|format| kind == SourceKind::Container(*format));
    let kind = splits.first().map_or(SourceKind::Program, |(_, listing)| listing.kind());
    let format = other(kind).ok_or_else(|| {
        let found = kind.name().replace('_', " ");
        let message = format!("expected a dataset of FFCV, MosaicML Streaming or LitData, found the format {found}");
        Failure::bad_data(message).at(&args.source).hint("`packds convert` reads this format")
    })?;
    let has_splits = splits.iter().any(|(split, _)| !split.is_empty());
    if has_splits {
        options.check_splits()?;
    }
    let with_output = |(split, listing): (String, Listing)| {
        let output = if split.is_empty() { args.output.clone() } else { split_output(&args.output, &split) };
        (split, listing, output)
    };
    Ok((format, splits.into_iter().map(with_output).collect()))
}

/// Files are kept as they are. If some images are pixels, all become pixels, at their own sizes.
fn lossless(options: ConvertOptions, outputs: &Outputs) -> ConvertOptions {
    match outputs.iter().any(|(_, listing, _)| listing.has_pixels()) {
        true => ConvertOptions { resize: Some(Resize::None), crop: Some(Crop::None), ..options },
        false => ConvertOptions { mode: Mode::Encoded, ..options },
    }
}

impl Source {
    fn of(path: &Path, format: DataFormat, outputs: &Outputs) -> Result<Self, Failure> {
        let index = path.file_name().is_some_and(|name| name == "index.json");
        let folder = if index { path.parent().filter(|folder| !folder.as_os_str().is_empty()) } else { None };
        let root = match folder {
            None if index => Path::new("."),
            None => path,
            Some(folder) => folder,
        };
        let (n_files, bytes) = size_of(root)?;
        let n_samples = outputs.iter().map(|(_, listing, _)| to_u64(listing.len())).sum();
        let splits = outputs.iter().map(|(split, ..)| split.clone()).filter(|split| !split.is_empty()).collect();
        Ok(Self { format: format.name(), splits, n_samples, n_files, bytes })
    }

    fn show(&self, path: &Path, console: &mut Console) -> Result<(), Failure> {
        if console.detail == Detail::Quiet {
            return Ok(());
        }
        let (samples, files) = (counted(self.n_samples, "sample"), counted(self.n_files, "file"));
        let splits: Vec<String> = self.splits.iter().map(|split| escape(split)).collect();
        let splits = if splits.is_empty() { String::new() } else { format!("; splits: {}", splits.join(", ")) };
        let (path, bytes) = (escape_path(path), human_bytes(self.bytes));
        writeln!(console.prose(), "found    {path}: {}, {samples} in {files}, {bytes}{splits}", self.format)?;
        Ok(console.out.flush()?)
    }
}

/// The number and size of the files at a path. Links to folders are not followed.
fn size_of(path: &Path) -> Result<(u64, u64), Failure> {
    let unread = |error| Failure::not_run(format!("cannot read: {error}")).at(path);
    if !path.is_dir() {
        // A pattern of files has no size of its own.
        return Ok(path.metadata().map_or((0, 0), |file| (1, file.len())));
    }
    let (mut n_files, mut bytes) = (0_u64, 0_u64);
    for entry in path.read_dir().map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let below = match entry.file_type().map_err(unread)?.is_dir() {
            true => size_of(&entry.path())?,
            false => entry.path().metadata().map_or((0, 0), |file| (u64::from(file.is_file()), file.len())),
        };
        n_files += below.0;
        bytes = bytes.saturating_add(below.1);
    }
    Ok((n_files, bytes))
}

fn document(
    found: &Source,
    reports: &[(String, Report)],
    comparisons: &[(&str, Comparison)],
    console: &mut Console,
) -> Result<(), Failure> {
    let (conversion, comparison) = match (reports, comparisons) {
        ([(split, report)], [(_, comparison)]) if split.is_empty() => (json!(report), json!(comparison)),
        _ => {
            let splits = comparisons.iter().map(|(split, one)| ((*split).to_owned(), json!(one)));
            (splits_json(reports), json!({ "splits": splits.collect::<Map<String, Value>>() }))
        }
    };
    console.document(&json!({ "found": found, "conversion": conversion, "comparison": comparison }))
}

/// Prints the result of a comparison. Differences are errors.
fn show(comparison: &Comparison, split: &str, output: &Path, console: &mut Console) -> Result<(), Failure> {
    let path = escape_path(output);
    // The lines above are about this pack, unless there are several.
    let start = if split.is_empty() { String::new() } else { format!("{path}: ") };
    for one in comparison.differences.iter().take(SHOWN_DIFFERENCES) {
        let place = format!("sample {} (sample {} of the source), field `{}`", one.sample, one.source_id, one.field);
        console.error(&format!("{path}: {place}: expected {}, found {}", one.expected, one.found));
    }
    let more = comparison.n_differences.saturating_sub(to_u64(SHOWN_DIFFERENCES));
    if more > 0 {
        console.error(&format!("{path}: {}", counted(more, "more difference")));
    }
    if console.detail == Detail::Quiet {
        return Ok(());
    }
    let out = &mut console.prose();
    for skipped in &comparison.skipped {
        writeln!(out, "{start}skipped field `{}`: {}", escape(&skipped.field), escape(&skipped.reason))?;
    }
    if let Some(reason) = &comparison.reason {
        return Ok(writeln!(out, "{start}not compared: {}", escape(reason))?);
    }
    let result = match comparison.n_differences {
        0 => "no difference".to_owned(),
        n => counted(n, "difference"),
    };
    let fields: Vec<String> = comparison.fields.iter().map(|field| escape(field)).collect();
    let (samples, library) = (counted(comparison.n_samples, "sample"), escape(&comparison.library_name()));
    Ok(writeln!(out, "{start}compared {samples} with {library}: {}: {result}", fields.join(", "))?)
}
