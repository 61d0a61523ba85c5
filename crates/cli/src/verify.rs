//! `packds verify`: checks a whole pack and reports the damage.

use std::io::Write;
use std::path::Path;

use clap::Args;
use packds_format::FormatError;
use packds_reader::{BadSample, ReadError, VerifyOptions, VerifyReport};
use packds_system::to_u64;
use serde_json::{Value, json};

use crate::args::{Jobs, PackPaths};
use crate::console::Detail;
use crate::escape::{escape, escape_bytes, escape_path, lossy};
use crate::human::{counted, human_bytes};
use crate::opened::each_pack;
use crate::progress::Shown;
use crate::task::Amount;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds verify train.pack && echo intact
  packds verify *.pack --quiet || echo damaged
  packds verify train.pack --json | jq '.bad_samples[].path'";

/// Check every byte of a pack; list damaged chunks and samples
///
/// Exits with 0 if all packs are intact, with 1 if a pack is damaged, and with 2 if a pack cannot be read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    packs: PackPaths,
    #[command(flatten)]
    jobs: Jobs,
}

pub(crate) fn run(args: &VerifyArgs, console: &mut Console) -> Result<Exit, Failure> {
    // Every line begins with the name of its pack.
    each_pack(&args.packs.packs, false, console, |path, console| check(path, args.jobs.jobs, console))
}

fn check(path: &Path, jobs: usize, console: &mut Console) -> Result<Exit, Failure> {
    let pack = packds_reader::open(path).or_else(|error| refused(error, console))?;
    let options = VerifyOptions::jobs(jobs);
    let shown = Shown::new(console);
    let progress = |done, total| shown.report(Amount::OfBytes { done, total });
    let report = shown.during("verifying", || packds_reader::verify(&pack, options, &progress));
    let report = report.or_else(|error| refused(error, console))?;
    let exit = match report.errors.iter().any(FormatError::is_of_system) {
        true => Exit::NotRun,
        false if report.is_ok() => Exit::Done,
        false => Exit::BadData,
    };
    let printed = if console.json {
        console.document(&verify_document(&report, path))
    } else if report.is_ok() && console.detail == Detail::Quiet {
        Ok(())
    } else {
        text(&report, &escape_path(path), &mut console.prose())
    };
    match printed.and_then(|()| Ok(console.out.flush()?)) {
        // A closed pipe must not change the exit code.
        Err(failure) if !failure.is_broken_pipe() => Err(failure),
        _ => Ok(exit),
    }
}

/// Turns an error into a failure. If the error is in the pack's data, the pack is damaged, and with `--json` the
/// document says so.
fn refused<T>(error: ReadError, console: &mut Console) -> Result<T, Failure> {
    let is_data = error.is_data();
    let (path, reason) = (error.path().to_owned(), error.reason());
    let failure = Failure::from(error);
    if !(console.json && is_data) {
        return Err(failure);
    }
    console.document(&json!({
        "path": escape_path(&path),
        "ok": false,
        "bad_chunks": [],
        "bad_samples": [],
        "errors": [reason],
    }))?;
    Err(failure.printed())
}

/// The document of `packds verify --json` about the pack at `path`.
#[must_use]
pub fn verify_document(report: &VerifyReport, path: &Path) -> Value {
    let chunks = report.bad_chunks.iter().map(|bad| {
        json!({
            "shard": bad.shard.as_deref().map(escape),
            "chunk": bad.chunk,
            "first_sample": bad.first_sample,
            "end_sample": bad.end_sample,
            "offset": bad.offset,
            "bytes": bad.stored_len,
            "expected": format!("{:08x}", bad.expected),
            "found": format!("{:08x}", bad.found),
            "samples_known": bad.samples_known,
        })
    });
    let samples = report.bad_samples.iter().map(|bad| {
        json!({
            "sample": bad.sample,
            "chunk": bad.chunk,
            "label": bad.label,
            "class": bad.class,
            "path": bad.path.as_deref().map(lossy),
        })
    });
    json!({
        "path": escape_path(path),
        "ok": report.is_ok(),
        "n_samples": report.n_samples,
        "n_chunks": report.n_chunks,
        "bytes": report.bytes,
        "bad_chunks": chunks.collect::<Vec<_>>(),
        "bad_samples": samples.collect::<Vec<_>>(),
        "errors": report.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn text(report: &VerifyReport, path: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let mut samples = report.bad_samples.iter().peekable();
    for bad in &report.bad_chunks {
        writeln!(out, "{path}: {}", bad.error)?;
        if !bad.samples_known {
            writeln!(out, "{path}:   any of its samples may be damaged")?;
        }
        while let Some(sample) = samples.next_if(|s| s.chunk == bad.chunk) {
            // The numbers in the error are those of the shard.
            let of_set = if bad.shard.is_some() { "in the set: " } else { "" };
            writeln!(out, "{path}:   {of_set}{}", describe(sample))?;
        }
    }
    for error in &report.errors {
        writeln!(out, "{path}: {}", escape(&error.to_string()))?;
    }
    let VerifyReport { n_samples, n_chunks, bytes, .. } = report;
    if report.is_ok() {
        let (samples, chunks) = (counted(*n_samples, "sample"), counted(*n_chunks, "chunk"));
        writeln!(out, "{path}: ok: {samples} in {chunks}, {}", human_bytes(*bytes))?;
        return Ok(());
    }
    let (bad, chunks) = (report.bad_chunks.len(), counted(*n_chunks, "chunk"));
    let samples = counted(to_u64(report.bad_samples.len()), "sample");
    let errors = counted(to_u64(report.errors.len()), "other error");
    writeln!(out, "{path}: damaged: {bad} of {chunks}, {samples} listed, {errors}")?;
    Ok(())
}

fn describe(bad: &BadSample) -> String {
    let mut text = format!("sample {}", bad.sample);
    let class = bad.class.as_deref().map(escape);
    if let Some(class) = class.or_else(|| bad.label.map(|label| label.to_string())) {
        text.push_str(&format!(", class {class}"));
    }
    if let Some(path) = &bad.path {
        text.push_str(&format!(", {}", escape_bytes(path)));
    }
    text
}
