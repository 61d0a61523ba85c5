//! `packds labels`: lists the labels in file order.

use std::io::{self, Write};

use clap::Args;
use packds_format::{FormatError, among};
use packds_reader::Pack;
use serde_json::json;

use crate::args::PackPaths;
use crate::choice::Choice;
use crate::escape::{escape_bytes, escape_path, lossy};
use crate::interrupt;
use crate::label::Labels;
use crate::opened::{each_pack, with_pack};
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds labels train.pack | cut -f 3 | sort | uniq -c
  packds labels train.pack --where \"source_width < 64\"
  packds labels train.pack --json > labels.json";

/// List label, class and path of every sample, in file order
///
/// One line per sample: number, label, class name and source path, separated by tabs. Missing values are empty. With
/// --json, the output is one document with `samples`, `labels`, `classes` and `paths`. If there are several packs, each
/// has a heading; in JSON, they form a list.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabelsArgs {
    #[command(flatten)]
    packs: PackPaths,
    #[command(flatten)]
    choice: Choice,
}

pub(crate) fn run(args: &LabelsArgs, console: &mut Console) -> Result<Exit, Failure> {
    each_pack(&args.packs.packs, true, console, |path, console| with_pack(path, |pack| list(args, pack, console)))
}

fn list(args: &LabelsArgs, pack: &Pack, console: &mut Console) -> Result<Exit, Failure> {
    // Writing millions of lines takes a while. A signal must not end the output in the middle of a line.
    let _catching = interrupt::catch();
    let chosen = Chosen { pack, samples: args.choice.in_file_order(pack)? };
    let labels = Labels::of_samples(pack, chosen.samples.as_deref())?;
    if console.json {
        document(&chosen, &labels, console.out)?
    } else {
        text(&chosen, &labels, console.out)?
    }
    Ok(Exit::Done)
}

/// The samples to list, in file order.
struct Chosen<'a> {
    pack: &'a Pack,
    /// `None` means all.
    samples: Option<Vec<u64>>,
}

impl Chosen<'_> {
    fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.samples {
            Some(samples) => Box::new(samples.iter().copied()),
            None => Box::new(0..self.pack.n_samples()),
        }
    }

    fn has(&self, sample: u64) -> bool {
        self.samples.as_ref().is_none_or(|samples| samples.binary_search(&sample).is_ok())
    }
}

fn text(chosen: &Chosen<'_>, labels: &Labels, out: &mut dyn Write) -> Result<(), Failure> {
    let mut line = String::new();
    let mut write = |sample: u64, path: &str| {
        let label = labels.of(sample);
        let class = if labels.names().is_empty() { String::new() } else { labels.show(&label) };
        line.clear();
        line.push_str(&sample.to_string());
        for part in [&label.text(), &class, path] {
            line.push('\t');
            line.push_str(part);
        }
        line.push('\n');
        stop_if_interrupted()?;
        Ok(out.write_all(line.as_bytes())?)
    };
    if !chosen.pack.has_paths() {
        return chosen.iter().try_for_each(|sample| write(sample, ""));
    }
    for_each_path(chosen, |sample, path| write(sample, &escape_bytes(path)))
}

fn document(chosen: &Chosen<'_>, labels: &Labels, out: &mut dyn Write) -> Result<(), Failure> {
    let mut comma = "";
    let pack = chosen.pack;
    write!(out, "{{\"path\":{},\"n_samples\":{},", json!(escape_path(pack.file_path())), pack.n_samples())?;
    write!(out, "\"samples\":{},\"labels\":", json!(chosen.samples))?;
    if labels.is_none() {
        out.write_all(b"null")?;
    } else {
        out.write_all(b"[")?;
        for sample in chosen.iter() {
            stop_if_interrupted()?;
            write!(out, "{comma}{}", labels.of(sample).json())?;
            comma = ",";
        }
        out.write_all(b"]")?;
    }
    out.write_all(b",\"classes\":")?;
    let classes = (!labels.names().is_empty()).then(|| labels.names());
    serde_json::to_writer(&mut *out, &classes).map_err(io::Error::from)?;
    out.write_all(b",\"paths\":")?;
    if pack.has_paths() {
        comma = "[";
        for_each_path(chosen, |_, path| {
            out.write_all(comma.as_bytes())?;
            comma = ",";
            stop_if_interrupted()?;
            Ok(serde_json::to_writer(&mut *out, &lossy(path)).map_err(io::Error::from)?)
        })?;
        out.write_all(if comma == "[" { b"[]" } else { b"]" })?;
    } else {
        out.write_all(b"null")?;
    }
    Ok(out.write_all(b"}\n")?)
}

fn for_each_path(chosen: &Chosen<'_>, mut each: impl FnMut(u64, &[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    /// The error that stopped the iteration: an error of the pack, or another one.
    enum Stop {
        Read(FormatError),
        Other(Failure),
    }
    impl From<FormatError> for Stop {
        fn from(error: FormatError) -> Self {
            Self::Read(error)
        }
    }
    let walked =
        chosen.pack.for_each_path_with(among(chosen.samples.as_deref()), |sample, path| match chosen.has(sample) {
            true => each(sample, path).map_err(Stop::Other),
            false => Ok(()),
        });
    walked.map_err(|stop| match stop {
        Stop::Read(error) => chosen.pack.error(error).into(),
        Stop::Other(failure) => failure,
    })
}

fn stop_if_interrupted() -> Result<(), Failure> {
    interrupt::caught().map_or(Ok(()), |_| Err(Failure::interrupted("interrupted")))
}
