//! `packds convert`: converts a source to a pack.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use packds_convert::source::{Decision, ListOptions, Listed, Listing, Reading, list_all, list_splits};
use packds_convert::{
    ConvertError, ConvertOptions, Forecast, OnError, Report, Skipped, check_apart, check_target, check_target_name,
    convert_listing, forecast,
};
use packds_system::to_u64;
use serde_json::{Value, json};

use crate::console::Detail;
use crate::declared::Given;
use crate::escape::{escape, escape_path, first_few};
use crate::figures::{Column, Figures, Keys};
use crate::human::{counted, human_bytes, numbers, seek_line, time_line};
use crate::progress::Shown;
use crate::show::{SheetFile, draw_preview};
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds convert imagenet/train train.pack
  packds convert photos/ photos.pack --resize short:256 --batch 256
  packds convert photos/ photos.pack --mode encoded --seekable
  packds convert dataset/ out.pack --split train
  packds convert captions.jsonl captions.pack --label-key species
  packds convert 'shards/train-{000..099}.tar' train.pack
  packds convert train.h5 train.pack --image-key x --label-key y
  packds convert photos/ photos.pack --dtype f32 --normalize dataset
  packds convert photos/ photos.pack --dry-run";

/// Number of samples on the sheet of a dry run.
const SHEET_SAMPLES: usize = 36;

/// Maximum number of skipped files listed on the terminal. `--json` lists all.
const SHOWN_SKIPPED: usize = 10;

/// The columns of a dry run's table.
const FORMS: [Column; 5] = [("mode", 8), ("size", 10), ("chunk", 6), ("chunks", 7), ("images/s", 10)];

/// Convert an image folder, a manifest or a dataset in another format to a pack
///
/// SRC is a folder of class folders (read like torchvision's ImageFolder), a flat folder of images, a manifest (.csv,
/// .tsv or .jsonl), or a file, folder or pattern such as 'train-{000..099}.tar' in another format (see packds formats).
/// SRC may also be an archive of any of these, such as a zip or tar.gz file. By default, images that all have the same
/// size are stored unchanged. Images of several sizes are resized to short side 256 and centre-cropped to 224. Samples
/// are shuffled, so reading chunk by chunk gives a random order.
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
    /// With --dry-run: explain why the source is read in this way, and which option changes that
    #[arg(long, requires = "dry_run")]
    explain: bool,
    /// With --dry-run: draw some samples, as they would be packed, to this PNG or JPEG file
    #[arg(long, value_name = "FILE", requires = "dry_run", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(SheetFile::parse))]
    sheet: Option<SheetFile>,
    #[command(flatten)]
    given: Given<ConvertOptions>,
}

impl ConvertArgs {
    fn options(&self) -> Result<ConvertOptions, Failure> {
        let options = self.given.options()?.for_output(&self.output);
        options.check()?;
        Ok(options)
    }
}

pub(crate) fn run(args: &ConvertArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = args.options()?;
    let shown = Shown::new(console);
    shown.reading(&args.source);
    options.list.unpacking = shown.unpacking();
    let started = Instant::now();
    if options.list.split.as_deref() == Some("all") {
        options.check_splits()?;
        let list_options = ListOptions { split: None, ..options.list.clone() };
        let splits = shown.during("listing", || list_splits(&args.source, &list_options))?;
        return run_splits((args, &options), splits, started.elapsed(), &shown, console);
    }
    if args.dry_run {
        check_target_name(&args.output, &options)?;
    } else {
        check_apart(&args.source, &args.output)?;
        // Without --split, the source may have several splits, which are written to files other than OUT.
        let force = options.force || options.list.split.is_none();
        check_target(&args.output, &ConvertOptions { force, ..options.clone() })?;
    }
    let listed = shown.during("listing", || list_all(&args.source, &options.list))?;
    listed.choice().iter().for_each(|choice| console.warn(&escape(choice)));
    let listing = match listed {
        Listed::One(listing) => *listing,
        Listed::Splits(splits) => {
            options.check_splits()?;
            return run_splits((args, &options), splits, started.elapsed(), &shown, console);
        }
    };
    if args.dry_run {
        let forecast = shown.during("planning", || forecast(&listing, &options))?;
        if let Some(sheet) = &args.sheet {
            draw_sheet(&listing, sheet, &options, &shown)?;
        }
        return console.result(|| &forecast, |console| show_forecast(&forecast, (None, args.explain), console));
    }
    check_target(&args.output, &options)?;
    let list_time = started.elapsed();
    let report =
        shown.stoppable("planning", "", || convert_listing(&listing, list_time, &args.output, &options, &shown));
    let report = report.map_err(|error| stopped_at(error, &args.output, &[]))?;
    console.result(|| &report, |console| show_report(&report, console))?;
    Ok(exit_of(&[&report]))
}

/// Draws some samples as they would be packed.
fn draw_sheet(listing: &Listing, sheet: &SheetFile, options: &ConvertOptions, shown: &Shown) -> Result<(), Failure> {
    let folder = options.list.spool.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(&folder).map_err(|error| Failure::from(error).at(&folder))?;
    let pack = folder.path().join("preview.pack");
    let options = ConvertOptions {
        keep_order: true,
        shards: None,
        on_error: OnError::Substitute,
        chunk_samples: None,
        batch: None,
        ..options.clone()
    };
    let samples = listing.subset(SHEET_SAMPLES);
    shown.stoppable("drawing", "", || convert_listing(&samples, Duration::ZERO, &pack, &options, shown))?;
    let name = listing.root().file_name().unwrap_or_default().to_string_lossy();
    let title = format!("{}: {} of {}", escape(&name), samples.len(), counted(to_u64(listing.len()), "sample"));
    draw_preview(&pack, &title, (sheet, options.force), shown)
}

/// Converts every split to its own pack, or with `--dry-run` only prints the forecasts. All packs share the class ids.
fn run_splits(
    (args, options): (&ConvertArgs, &ConvertOptions),
    splits: Vec<(String, Listing)>,
    list_time: Duration,
    shown: &Shown,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let with_output = |(name, listing): (String, Listing)| {
        let output = split_output(&args.output, &name);
        (name, listing, output)
    };
    let outputs: Vec<(String, Listing, PathBuf)> = splits.into_iter().map(with_output).collect();
    if args.dry_run && args.sheet.is_some() {
        let hint = "choose one split with --split, or omit --sheet";
        return Err(Failure::not_run("--sheet can draw only one split").hint(hint));
    }
    if args.dry_run {
        let told = Told::of(&outputs);
        outputs.iter().try_for_each(|(_, _, output)| check_target_name(output, options))?;
        let mut documents = serde_json::Map::new();
        for (name, listing, _) in &outputs {
            let mut forecast = shown.during("planning", || forecast(listing, options))?;
            if console.json {
                documents.insert(name.clone(), json!(forecast));
            } else {
                forecast.warnings = told.in_split(name, &forecast.warnings);
                show_forecast(&forecast, (Some(name), args.explain), console)?;
            }
        }
        if console.json {
            console.document(&json!({"dry_run": true, "splits": documents}))?;
        }
        return Ok(Exit::Done);
    }
    let reports = write_packs(&outputs, list_time, options, shown, console)?;
    if console.json {
        console.document(&splits_json(&reports))?;
    }
    let all: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
    Ok(exit_of(&all))
}

/// Writes a pack for each split, and prints its report except with `--json`. A source without splits has only one, which has no
/// name.
pub(crate) fn write_packs(
    outputs: &[(String, Listing, PathBuf)],
    list_time: Duration,
    options: &ConvertOptions,
    shown: &Shown,
    console: &mut Console,
) -> Result<Vec<(String, Report)>, Failure> {
    let told = Told::of(outputs);
    // Check every output before writing the first.
    outputs.iter().try_for_each(|(_, _, output)| check_target(output, options))?;
    let mut reports = Vec::new();
    for (name, listing, output) in outputs {
        let report =
            shown.stoppable("planning", &escape(name), || convert_listing(listing, list_time, output, options, shown));
        let report = report.map_err(|error| stopped_at(error, output, &reports))?;
        if !console.json {
            warn(&told.in_split(name, &report.warnings), console);
            show_pack(&report, console)?;
            console.out.flush()?;
        }
        reports.push((name.clone(), report));
    }
    Ok(reports)
}

/// Turns a conversion's error into a failure. If the user stopped the command, the failure names the packs already
/// written. If a disk is full, the failure has a hint.
fn stopped_at(error: ConvertError, output: &Path, before: &[(String, Report)]) -> Failure {
    match (error, before) {
        (ConvertError::Interrupted, [_, ..]) => {
            let written: Vec<String> = before.iter().map(|(_, report)| escape_path(&report.output)).collect();
            let written = written.join(", ");
            Failure::interrupted(format!("interrupted; this pack was not written (already written: {written})"))
                .at(output)
        }
        (error, _) if is_full(&error) => {
            let hint = "free space there, or write to another disk; '--dry-run' prints the size of the pack";
            Failure::from(error).hint(hint)
        }
        (error, _) => error.into(),
    }
}

fn is_full(error: &ConvertError) -> bool {
    let (ConvertError::Io { source, .. } | ConvertError::OutputNotWritable { source, .. }) = error else {
        return false;
    };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The output path of a split: `out.pack` becomes `out.train.pack`, and the set `out.packs` becomes `out.train.packs`.
#[must_use]
pub fn split_output(output: &Path, split: &str) -> PathBuf {
    let extension = output.extension().filter(|e| *e == "pack" || *e == "packs").and_then(|e| e.to_str());
    let stem = if extension.is_some() { output.with_extension("") } else { output.to_owned() };
    let mut name = stem.into_os_string();
    name.push(format!(".{split}.{}", extension.unwrap_or("pack")));
    PathBuf::from(name)
}

pub(crate) fn splits_json(reports: &[(String, Report)]) -> Value {
    let sum = |value: fn(&Report) -> u64| reports.iter().map(|(_, r)| value(r)).sum::<u64>();
    let skipped: Value = reports
        .iter()
        .flat_map(|(split, report)| report.skipped.iter().map(move |s| (split, s)))
        .map(|(split, s)| json!({"split": split, "path": s.path, "reason": s.reason}))
        .collect();
    let mut seconds = serde_json::Map::new();
    for (name, value) in reports.iter().flat_map(|(_, r)| r.stages.seconds()) {
        let before = seconds.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        seconds.insert(name.to_owned(), json!(before + value));
    }
    let splits: serde_json::Map<String, Value> = reports.iter().map(|(n, r)| (n.clone(), json!(r))).collect();
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
pub(crate) fn exit_of(reports: &[&Report]) -> Exit {
    if reports.iter().any(|r| r.has_bad_samples()) { Exit::BadData } else { Exit::Done }
}

fn warn(warnings: &[String], console: &mut Console) {
    warnings.iter().for_each(|warning| console.warn(&escape(warning)));
}

/// The warnings that all splits share.
struct Told {
    shared: Vec<String>,
    first: Option<String>,
}

impl Told {
    fn of(outputs: &[(String, Listing, PathBuf)]) -> Self {
        let mut all = outputs.iter().map(|(_, listing, _)| listing.warnings());
        let mut shared = all.next().unwrap_or_default().to_vec();
        all.for_each(|warnings| shared.retain(|warning| warnings.contains(warning)));
        let first = outputs.first().map(|(name, ..)| name.clone());
        Self { shared: shared.iter().map(ToString::to_string).collect(), first }
    }

    /// The warnings to print for a split: shared ones with the first split, others with the name of their split.
    fn in_split(&self, split: &str, warnings: &[String]) -> Vec<String> {
        let is_first = self.first.as_deref() == Some(split);
        let is_new = |warning: &&String| is_first || !self.shared.contains(warning);
        let named = |warning: &String| match self.shared.contains(warning) {
            true => warning.clone(),
            false => format!("split '{split}': {warning}"),
        };
        warnings.iter().filter(is_new).map(named).collect()
    }
}

fn show_report(report: &Report, console: &mut Console) -> Result<(), Failure> {
    warn(&report.warnings, console);
    show_pack(report, console)
}

/// The words for the number of classes, such as ` of 10 classes`. Empty if the source has no class names.
fn of_classes(n: usize) -> String {
    if n == 0 { String::new() } else { format!(" of {}", counted(n, "class")) }
}

/// Prints the report of a pack, without its warnings.
fn show_pack(report: &Report, console: &mut Console) -> Result<(), Failure> {
    let Report { n_samples, n_chunks, chunk_samples, n_classes, .. } = report;
    let path = escape_path(&report.output);
    let classes = of_classes(*n_classes);
    let (samples, chunks) = (counted(*n_samples, "sample"), counted(*n_chunks, "chunk"));
    if console.detail == Detail::Quiet {
        return show_bad(report, console);
    }
    let bytes = human_bytes(report.bytes_out);
    let shards = report.n_shards.map_or_else(String::new, |n| format!(" and {}", counted(n, "shard")));
    writeln!(console.prose(), "{path}: {samples}{classes} in {chunks} of {chunk_samples}{shards}, {bytes}")?;
    writeln!(console.prose(), "images   {}", report.images)?;
    writeln!(console.prose(), "time     {}", time_line(report.stages.total.as_secs_f64(), *n_samples, "images"))?;
    // Show the decisions even without `--verbose`.
    for note in &report.notes {
        writeln!(console.prose(), "note     {note}")?;
    }
    if report.ignored > 0 {
        writeln!(console.prose(), "ignored  {}", counted(report.ignored, "other file"))?;
    }
    if console.detail == Detail::Verbose {
        show_details(report, console)?;
    }
    show_bad(report, console)
}

fn show_details(report: &Report, console: &mut Console) -> Result<(), Failure> {
    if !report.mean.is_empty() {
        writeln!(
            console.prose(),
            "pixels   mean {}, std {} (on a scale of 0 to 1)",
            numbers(&report.mean),
            numbers(&report.std)
        )?;
    }
    if let Some(seek) = &report.seek {
        writeln!(console.prose(), "seek     {}", seek_line(seek, report.n_samples))?;
    }
    let (bytes_in, bytes_out) = (human_bytes(report.bytes_in), human_bytes(report.bytes_out));
    writeln!(console.prose(), "bytes    {bytes_in} read, {bytes_out} written")?;
    let stages = report.stages.seconds();
    let stages = stages.iter().filter(|(name, s)| *name != "total" && *s >= 0.0005);
    let stages: Vec<String> = stages.map(|(name, s)| format!("{name} {s:.3}")).collect();
    writeln!(
        console.prose(),
        "stages   {} (seconds; read, decode, stats and encode are summed over all threads)",
        stages.join(", ")
    )?;
    if report.oriented > 0 {
        let images = counted(report.oriented, "image");
        writeln!(console.prose(), "exif     {images} with an orientation (see --orientation)")?;
    }
    Ok(())
}

/// Reports files that were skipped or replaced.
fn show_bad(report: &Report, console: &mut Console) -> Result<(), Failure> {
    for (what, list) in [("skipped", &report.skipped), ("substituted", &report.substituted)] {
        show_bad_files(what, to_u64(list.len()), list, console)?;
    }
    Ok(())
}

/// Prints the number of bad files, and the first of them.
pub(crate) fn show_bad_files(what: &str, n: u64, list: &[Skipped], console: &mut Console) -> Result<(), Failure> {
    if n == 0 {
        return Ok(());
    }
    writeln!(console.prose(), "{what:8} {}", counted(n, "file"))?;
    for one in list.iter().take(SHOWN_SKIPPED) {
        writeln!(console.prose(), "{what:8} {}: {}", escape(&one.path), escape(&one.reason))?;
    }
    let more = n.saturating_sub(to_u64(SHOWN_SKIPPED));
    if more > 0 {
        writeln!(console.prose(), "{what:8} {more} more: packds info --json lists them")?;
    }
    Ok(())
}

fn show_forecast(
    forecast: &Forecast,
    (split, explain): (Option<&str>, bool),
    console: &mut Console,
) -> Result<(), Failure> {
    warn(&forecast.warnings, console);
    if let Some(split) = split {
        writeln!(console.prose(), "split    {}", escape(split))?;
    }
    let Forecast { n_samples, n_classes, .. } = forecast;
    let (images, classes) = (counted(*n_samples, "image"), of_classes(*n_classes));
    writeln!(console.prose(), "source   {images}{classes}, {}", human_bytes(forecast.bytes_in))?;
    show_reading(&forecast.source, console)?;
    if explain {
        for Decision { what, because, instead, .. } in &forecast.source.decisions {
            writeln!(console.prose(), "why      {what}: {}; instead: {}", escape(because), escape(instead))?;
        }
    }
    writeln!(console.prose(), "images   {}", forecast.images)?;
    for note in &forecast.notes {
        writeln!(console.prose(), "note     {note}")?;
    }
    let mut figures = Figures::new(FORMS.to_vec(), Keys::Name);
    for form in &forecast.forms {
        let mark = if form.mode == forecast.chosen.mode { " chosen" } else { "" };
        let (size, rate) = (human_bytes(form.bytes), format!("{:.0}", form.images_per_s));
        figures.push(
            vec![form.mode.to_string(), size, form.chunk_samples.to_string(), form.n_chunks.to_string(), rate],
            mark,
        );
    }
    let lines = figures.lines(console.columns());
    lines.iter().try_for_each(|line| writeln!(console.out, "{line}"))?;
    if let Some((n, bytes)) = forecast.n_shards.zip(forecast.shard_bytes) {
        let (shards, size) = (counted(n, "shard"), human_bytes(bytes));
        writeln!(console.prose(), "set      {shards} of about {size}")?;
    }
    writeln!(
        console.prose(),
        "rates    of one thread on this machine, from memory: raw is copied or decompressed, encoded is decoded and resized"
    )?;
    writeln!(console.prose(), "checks   only a few images were decoded: damaged ones are found by the conversion")?;
    Ok(())
}

/// Shows what a sample is, so that the user notices if the source is read wrongly.
fn show_reading(source: &Reading, console: &mut Console) -> Result<(), Failure> {
    let kind = source.kind.replace('_', " ");
    writeln!(
        console.prose(),
        "read as  {kind}, one sample per {}; the first image is {}",
        source.sample,
        escape(&source.image)
    )?;
    if let Some(mask) = &source.mask {
        writeln!(console.prose(), "masks    one per image; the first is {}", escape(mask))?;
    }
    match (source.labels, source.classes.as_slice()) {
        ("none", _) => writeln!(console.prose(), "labels   none")?,
        ("list", []) => writeln!(console.prose(), "labels   a list of ids per image")?,
        (_, []) => writeln!(console.prose(), "labels   one id per image")?,
        (_, classes) => writeln!(console.prose(), "classes  {}", first_few(classes))?,
    }
    if !source.fields.is_empty() {
        writeln!(console.prose(), "fields   {}", first_few(&source.fields))?;
    }
    if source.ignored > 0 {
        writeln!(console.prose(), "ignored  {}", counted(source.ignored, "other file"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_hints_at_the_dry_run_by_conversions_alone() {
        let full = || ConvertError::Io { path: PathBuf::from("a.pack"), source: ErrorKind::StorageFull.into() };
        let text = stopped_at(full(), Path::new("a.pack"), &[]).text();
        assert!(text.contains("'--dry-run' prints"), "{text}");
        let other = Failure::from(full()).text();
        assert!(other.contains("another disk") && !other.contains("dry-run"), "{other}");
    }

    #[test]
    fn splits_get_names_of_their_own() {
        assert_eq!(split_output("a/out.pack".as_ref(), "train"), PathBuf::from("a/out.train.pack"));
        assert_eq!(split_output("imagenet".as_ref(), "val"), PathBuf::from("imagenet.val.pack"));
    }
}
