//! `packds extract`: writes samples to files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use packds_convert::{ConvertError, ConvertOptions, ItemFile, Observer, item_file, safe_name, safe_names, stem};
use packds_format::{Field, Role};
use packds_reader::{Pack, ReadError};
use packds_system::{create_regular, in_parallel, lock, to_u64};
use serde_json::json;

use crate::args::{Jobs, PackPath};
use crate::choice::Choice;
use crate::console::Detail;
use crate::escape::escape_path;
use crate::human::{counted, human_bytes, time_line};
use crate::label::{Label, Labels};
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::samples::{bad_samples, note_bad};
use crate::task::Amount;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds extract train.pack images
  packds extract train.pack look --samples 3,5-8";

/// Message when the user stops the command.
const STOPPED: &str = "interrupted; the samples written so far are complete";

/// Number of samples that a thread takes at a time.
const RUN: usize = 32;

/// Write samples to files: u8 pixels as PNG, other arrays as .npy, encoded images unchanged
///
/// Files are named CLASS/NUMBER-NAME.EXT, where NAME is the name of the source file. CLASS and NAME are left out if the
/// pack does not have them. A pack with several fields produces several files per sample: the image is named as above,
/// and the other files have their field's name before the extension. Checksums are checked; damaged samples are listed
/// and skipped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Folder to write to; must be new or empty
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    jobs: Jobs,
    /// Write to DIR even if it is not empty, and replace files with the same names
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &ExtractArgs, console: &mut Console) -> Result<Exit, Failure> {
    with_pack(&args.pack.pack, |pack| write_samples(args, pack, console))
}

fn write_samples(args: &ExtractArgs, pack: &Pack, console: &mut Console) -> Result<Exit, Failure> {
    let samples = args.choice.in_file_order(pack)?.unwrap_or_else(|| (0..pack.n_samples()).collect());
    let extraction = Extraction::new(pack, &samples, args)?;
    make_folder(&args.dir, args.force)?;
    let started = Instant::now();
    let shown = Shown::new(console);
    let done = shown.stoppable("extracting", "", || extraction.run(&samples, &shown))?;
    note_bad(&done.bad, &args.pack.pack, console);
    let n_written = to_u64(samples.len() - done.bad.len());
    let n_files = done.kinds.values().sum::<u64>();
    let document = || {
        json!({
            "output": escape_path(&args.dir),
            "n_samples": n_written,
            "n_files": n_files,
            "bytes_out": done.bytes,
            "bad_samples": bad_samples(&done.bad),
        })
    };
    console.result(document, |console| {
        if console.detail == Detail::Quiet {
            return Ok(());
        }
        let (out, dir) = (&mut console.prose(), escape_path(&args.dir));
        let (samples, files) = (counted(n_written, "sample"), counted(n_files, "file"));
        writeln!(out, "{dir}: {samples} in {files}, {}", human_bytes(done.bytes))?;
        let kinds: Vec<String> = done.kinds.iter().map(|(extension, n)| format!("{n} .{extension}")).collect();
        writeln!(out, "files    {}", if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") })?;
        Ok(writeln!(out, "time     {}", time_line(started.elapsed().as_secs_f64(), n_written, "samples"))?)
    })?;
    Ok(if done.bad.is_empty() { Exit::Done } else { Exit::BadData })
}

/// Reads the metadata for file names and encodings first, so that damage to it is reported once, not once per sample.
fn check_described(pack: &Pack, samples: &[u64]) -> Result<(), ReadError> {
    let Some(first) = samples.first().copied() else { return Ok(()) };
    pack.located(pack.path(first))?;
    for (_, field) in pack.schema().body() {
        pack.located(pack.coding(&field.name, first))?;
        pack.located(pack.item_shape(&field.name, first))?;
    }
    Ok(())
}

fn make_folder(dir: &Path, force: bool) -> Result<(), Failure> {
    let empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(_) if dir.exists() && !dir.is_dir() => {
            let path = dir.to_owned();
            return Err(ConvertError::OutputIsFile { path }.into());
        }
        Err(error) => return Err(Failure::write(dir, &error)),
    };
    if !empty && !force {
        let hint = "choose a new folder, or pass --force to write to this one";
        return Err(Failure::not_run("is not empty").at(dir).hint(hint));
    }
    fs::create_dir_all(dir).map_err(|e| Failure::write(dir, &e))
}

#[derive(Default)]
struct Done {
    /// The number of files with each extension.
    kinds: BTreeMap<&'static str, u64>,
    bytes: u64,
    bad: Vec<(u64, String)>,
}

struct Extraction<'a> {
    pack: &'a Pack,
    dir: &'a Path,
    force: bool,
    jobs: usize,
    labels: Labels<'a>,
    folders: Vec<String>,
    /// The text that precedes the extension, for each body field. It is empty for the first image field.
    infixes: Vec<String>,
    has_paths: bool,
    /// Width of a sample's number, in digits.
    digits: usize,
    stop: AtomicBool,
}

impl<'a> Extraction<'a> {
    fn new(pack: &'a Pack, samples: &[u64], args: &'a ExtractArgs) -> Result<Self, Failure> {
        let labels = Labels::of_samples(pack, Some(samples))?;
        check_described(pack, samples)?;
        let folders = safe_names(labels.names().iter().map(|name| name.as_bytes()));
        let fields: Vec<&Field> = pack.schema().body().map(|(_, field)| field).collect();
        let first = fields.iter().position(|f| f.role == Some(Role::Image)).unwrap_or(0);
        let names = safe_names(fields.iter().map(|f| f.name.as_bytes()));
        let infix = |(i, name)| if i == first { String::new() } else { format!(".{name}") };
        Ok(Self {
            pack,
            dir: &args.dir,
            force: args.force,
            jobs: ConvertOptions { jobs: args.jobs.jobs, ..ConvertOptions::default() }.n_jobs(),
            labels,
            folders,
            infixes: names.into_iter().enumerate().map(infix).collect(),
            has_paths: pack.has_paths(),
            digits: pack.n_samples().saturating_sub(1).to_string().len(),
            stop: AtomicBool::new(false),
        })
    }

    /// Extracts on several threads. Bad samples are returned in sample order.
    fn run(&self, samples: &[u64], shown: &Shown) -> Result<Done, Failure> {
        let (next, n_done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let report = |done| {
            shown.report(Amount::Of { done, total: to_u64(samples.len()), thing: "sample", bytes: 0 });
        };
        report(0);
        let shared = Mutex::new((Done::default(), None));
        let work = || {
            let mut mine = Done::default();
            let mut failed = None;
            while failed.is_none() && !self.stop.load(Ordering::Relaxed) {
                let start = next.fetch_add(RUN, Ordering::Relaxed);
                let end = samples.len().min(start.saturating_add(RUN));
                let run = samples.get(start..end).unwrap_or_default();
                if run.is_empty() {
                    break;
                }
                failed = run.iter().find_map(|&sample| {
                    if shown.cancelled() {
                        return Some(Failure::interrupted(STOPPED));
                    }
                    let failed = self.one(sample, &mut mine).err();
                    report(n_done.fetch_add(1, Ordering::Relaxed) + 1);
                    failed
                });
            }
            if failed.is_some() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let mut all = lock(&shared);
            for (extension, n) in mine.kinds {
                *all.0.kinds.entry(extension).or_default() += n;
            }
            all.0.bytes += mine.bytes;
            all.0.bad.append(&mut mine.bad);
            all.1 = all.1.take().or(failed);
        };
        let jobs = self.jobs.min(samples.len().div_ceil(RUN)).max(1);
        in_parallel(jobs, work);
        let (mut done, failed) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.bad.sort();
        failed.map_or(Ok(done), Err)
    }

    /// Writes all files of a sample. If one of its items is damaged, the sample is reported as bad, and no file is
    /// written.
    fn one(&self, sample: u64, done: &mut Done) -> Result<(), Failure> {
        let files = match self.files(sample) {
            Ok(files) => files,
            Err(message) => {
                done.bad.push((sample, message));
                return Ok(());
            }
        };
        let name = self.name(sample)?;
        for (infix, (extension, bytes)) in &files {
            let path = self.dir.join(format!("{name}{infix}.{extension}"));
            self.write(&path, bytes).map_err(|e| {
                // Leave no partial file. If it cannot be removed either, the write error is the one to report.
                let _ = fs::remove_file(&path);
                Failure::write(&path, &e)
            })?;
            *done.kinds.entry(extension).or_default() += 1;
            done.bytes += to_u64(bytes.len());
        }
        Ok(())
    }

    /// The files of a sample, each with the text before its extension. Seek indexes are left out, because they can be
    /// rebuilt from the images.
    fn files(&self, sample: u64) -> Result<Vec<(&str, ItemFile<'a>)>, String> {
        let items = self.pack.body_items(sample).map_err(|e| e.to_string())?;
        let fields = self.pack.schema().body().map(|(_, field)| field);
        let file = |((item, field), infix): ((_, &Field), _)| {
            item_file(self.pack, field, sample, item)
                .map(|file| (infix, file))
                .map_err(|reason| format!("sample {sample}, field `{}`: {reason}", field.name))
        };
        let named = items.into_iter().zip(fields);
        named
            .zip(self.infixes.iter().map(String::as_str))
            .filter(|((_, field), _)| field.seek_index_of.is_none())
            .map(file)
            .collect()
    }

    /// The relative path of a sample's files, without field name and extension.
    fn name(&self, sample: u64) -> Result<String, ReadError> {
        let mut name = format!("{sample:0digits$}", digits = self.digits);
        if self.has_paths {
            let path = self.pack.located(self.pack.path(sample))?;
            let stem = path.as_deref().map(stem).unwrap_or_default();
            if !stem.is_empty() {
                name = format!("{name}-{}", safe_name(stem));
            }
        }
        if !self.labels.is_one_class() {
            return Ok(name);
        }
        let Label::Class(id) = self.labels.of(sample) else { return Ok(name) };
        let folder = usize::try_from(id).ok().and_then(|id| self.folders.get(id));
        Ok(match folder {
            Some(folder) => format!("{folder}/{name}"),
            None => format!("{id}/{name}"),
        })
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let open = || create_regular(path, self.force);
        let opened = match open() {
            // A class folder is created with its first sample.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                open()
            }
            opened => opened,
        };
        opened?.write_all(bytes)
    }
}
