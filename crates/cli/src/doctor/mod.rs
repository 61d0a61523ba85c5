//! `packds doctor`: finds the training bottleneck.

mod running;
mod training;

use std::ffi::OsString;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use packds_bench::{Machine, default_batch, has_encoded_images};
use packds_doctor::{Options, Report, Step, document, examine, picture, text};
use packds_reader::Pack;
use packds_reader::augment::Augment;
use packds_reader::loader::{LoadError, Loader, LoaderBuilder};
use packds_reader::plan::Order;
use packds_report::{Figure, PlotFile};
use serde_json::{Value, json};

use crate::args::{n_threads, named, ordered};
use crate::bench::check_time;
use crate::escape::escape_path;
use crate::human::counted;
use crate::output::{check_new, write_plot};
use crate::progress::Shown;
use crate::task::Amount;
use crate::{Console, Exit, Failure};
use training::{LoaderOptions, Training};

const EXAMPLES: &str = "\
Examples:
  packds doctor train.pack --step-ms 48.5 --batch 256
  packds doctor train.pack --step-ms 48.5 --augment rrc224,flip,norm:imagenet --jobs 4 --check
  packds doctor train.pack --cold --plot doctor.svg
  packds doctor train.pack --batch 256 -- python train.py";

/// Find the training bottleneck, the possible speed, and what to change
///
/// Times reading, decoding, transforming and copying, by caching a batch at one stage after another. From these times
/// and the duration of a training step, the doctor computes the bottleneck, the possible throughput and the gain from
/// each change. Pass the duration as --step-ms, or pass a training command after `--`: a program whose packds.Loader
/// reads this pack. The command is stopped after some steps. Options not given here are taken from that loader.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Pack to examine
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pack: PathBuf,
    /// Duration of a training step in ms, such as 48.5 [default: 0, loading only]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, conflicts_with = "command")]
    step_ms: Option<f64>,
    /// Training command whose step is timed
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Samples per batch; ignored with a training command [default: 256; 64 for variable-size images]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Loader threads; 0 = one per core [default: as in the training command, else one per core]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Order of samples [default: as in the training command, else auto]
    #[arg(long, value_parser = named::<Order>())]
    order: Option<Order>,
    /// Chunks shuffled together, for `--order window`
    #[arg(long, value_name = "CHUNKS")]
    window: Option<NonZero<u32>>,
    /// Augmentations, such as rrc224,flip; empty for none [default: as in the training command;
    /// without one, rrc224,flip for variable-size images]
    #[arg(long, value_name = "OPS")]
    augment: Option<String>,
    /// Element type of images [default: the output of --augment]
    #[arg(long, value_parser = packds_pixels::PIXEL_TYPES)]
    dtype: Option<String>,
    /// Memory for the loader, in bytes or with a unit, such as 4GiB [default: as in the training command, else 4 GiB]
    #[arg(long, value_name = "BYTES", value_parser = packds_system::parse_bytes)]
    memory: Option<u64>,
    /// Read from disk, bypassing the page cache, as if the pack did not fit in memory
    #[arg(long)]
    cold: bool,
    /// Apply the first recommended change that is a loader option, and measure again
    #[arg(long)]
    check: bool,
    /// Time budget for measuring; slow sources may take twice as long
    #[arg(long, value_name = "S", allow_negative_numbers = true, default_value_t = 15.0)]
    seconds: f64,
    /// Seed of the order and augmentation
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Plot the stages of a batch and the throughput ladder (.svg or .png)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Replace an existing plot
    #[arg(long, requires = "plot")]
    force: bool,
}

pub(crate) fn run(args: &DoctorArgs, console: &mut Console) -> Result<Exit, Failure> {
    args.check_numbers()?;
    if let Some(plot) = &args.plot {
        check_new(plot.path(), args.force)?;
        check_folder(plot.path())?;
    }
    let pack = Arc::new(packds_reader::open(&args.pack)?);
    // Report invalid options before running the training command.
    drop(args.loader(&pack, None)?.build().map_err(failed)?);
    let mut training = match args.command.as_slice() {
        [] => None,
        command => Some(Training::run(command, &pack, console)?),
    };
    let builder = args.loader(&pack, training.as_ref())?;
    let report = args.examine(&builder, training.as_ref(), console)?;
    if let Some(training) = &mut training {
        training.compare(args.batch, &report);
    }
    args.show(&report, training.as_ref(), console)
}

/// Writes the plot of a report to an .svg or .png file, replacing an existing file. `name` is the name of the pack or
/// dataset.
///
/// # Errors
/// If the plot cannot be written, with the command's error message.
pub fn doctor_plot(report: &Report, name: &str, path: &Path) -> Result<(), String> {
    let file = PlotFile::parse(&path.to_string_lossy())?;
    let written = write_plot(&file, &drawn(report, name), true);
    written.map_err(|failure| failure.text())
}

/// The plot of a report as SVG. `name` is the name of the pack or dataset.
pub fn doctor_picture(report: &Report, name: &str) -> String {
    drawn(report, name).svg()
}

fn drawn(report: &Report, name: &str) -> Figure {
    let Machine { cpu, cores, .. } = Machine::here();
    picture(report, name, &format!("{cpu}, {}", counted(cores, "core")))
}

/// Checks that the plot's folder exists before anything is measured.
fn check_folder(path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let missing = Failure::not_run("no such folder for the plot").at(folder);
            Err(missing.hint("create it, or choose another file for --plot"))
        }
        _ => Ok(()),
    }
}

fn failed(error: LoadError) -> Failure {
    match error {
        LoadError::Read(error) => error.into(),
        error @ (LoadError::Sample { .. } | LoadError::NothingLeft { .. }) => Failure::bad_data(error),
        LoadError::Plan(error) => error.into(),
        error => Failure::not_run(error),
    }
}

impl DoctorArgs {
    fn check_numbers(&self) -> Result<(), Failure> {
        let step = self.step_ms.unwrap_or(0.0);
        if !(0.0..=3.6e6).contains(&step) {
            return Err(Failure::not_run(format!("--step-ms must be 0 to 3600000: found {step}")));
        }
        check_time("--seconds", self.seconds)
    }

    /// The loader to examine. Options not given are taken from the training command.
    fn loader(&self, pack: &Arc<Pack>, training: Option<&Training>) -> Result<LoaderBuilder, Failure> {
        let is_encoded = has_encoded_images(pack);
        let learned = training.map(|training| &training.options);
        let batch = training.map(|training| training.batch).or(self.batch);
        let mut builder = Loader::builder(Arc::clone(pack))
            .batch(batch.unwrap_or(default_batch(pack).0))
            .order(self.order(learned)?)
            .seed(self.seed);
        if let Some(threads) = self.jobs.map(n_threads).or(learned.and_then(|said| said.threads)) {
            builder = builder.threads(threads);
        }
        if let Some(bytes) = self.memory.or(learned.and_then(|said| said.memory_bytes)) {
            builder = builder.memory_bytes(bytes);
        }
        if let Some(fields) = learned.and_then(|said| said.fields.as_deref()) {
            builder = builder.fields(fields);
        }
        let words = self.words(is_encoded, learned);
        if words.is_empty() {
            return Ok(builder);
        }
        Ok(builder.augment(Augment::parse(&words).map_err(Failure::not_run)?))
    }

    fn order(&self, learned: Option<&LoaderOptions>) -> Result<Order, Failure> {
        let window = self.window.map(NonZero::get);
        let learned = learned.filter(|_| self.order.is_none() && window.is_none());
        let named = learned.and_then(|said| said.order.parse::<Order>().ok());
        match (named, learned) {
            (Some(order), Some(said)) => ordered(order, said.window),
            _ => ordered(self.order.unwrap_or_default(), window),
        }
    }

    fn words(&self, is_encoded: bool, learned: Option<&LoaderOptions>) -> String {
        let usual = match learned {
            Some(said) => said.augment.as_deref().unwrap_or_default(),
            None if is_encoded => "rrc224,flip",
            None => "",
        };
        let augment = self.augment.as_deref().unwrap_or(usual);
        let mut words = vec![augment, self.dtype.as_deref().unwrap_or_default()];
        words.retain(|word| !word.is_empty());
        words.join(",")
    }

    fn examine(
        &self,
        builder: &LoaderBuilder,
        training: Option<&Training>,
        console: &Console,
    ) -> Result<Report, Failure> {
        let step = match training {
            Some(training) => Step::Measured(training.step()),
            None => Step::Modelled(self.step_ms.unwrap_or(0.0)),
        };
        let options = Options { within: Duration::from_secs_f64(self.seconds), cold: self.cold, check: self.check };
        let shown = Shown::new(console);
        let about = options.within.mul_f64(if self.check { 2.0 } else { 1.0 });
        examine(builder, step, &options, &mut |what| shown.step(what, Amount::Time { about })).map_err(failed)
    }

    fn show(&self, report: &Report, training: Option<&Training>, console: &mut Console) -> Result<Exit, Failure> {
        let name = escape_path(self.pack.file_name().unwrap_or_default().as_ref());
        if let Some(plot) = &self.plot {
            write_plot(plot, &drawn(report, &name), self.force)?;
        }
        if console.json {
            let mut document = document(report);
            document["path"] = json!(escape_path(&self.pack));
            document["training"] = training.map_or(Value::Null, Training::to_json);
            document["cold"] = json!(self.cold);
            console.document(&document)?;
        } else {
            if let Some(training) = training {
                writeln!(console.prose(), "{}", training.to_text())?;
            }
            let columns = console.columns();
            console.prose().write_all(text(report, columns).as_bytes())?;
            if self.check && report.checked.is_none() {
                writeln!(console.prose(), "checked  nothing: no recommended change is a loader option")?;
            }
            if let Some(plot) = &self.plot {
                writeln!(console.prose(), "plot     {}", escape_path(plot.path()))?;
            }
        }
        Ok(Exit::Done)
    }
}
