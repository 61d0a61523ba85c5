//! `packds doctor`: why training waits, and what to change.

mod picture;
mod tell;
mod training;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use packds_bench::has_encoded_images;
use packds_reader::Pack;
use packds_reader::augment::Augment;
use packds_reader::doctor::{Options, Report, Step, examine};
use packds_reader::loader::{LoadError, Loader, LoaderBuilder};
use packds_reader::plan::Order;
use serde_json::{Value, json};

use crate::console::Console;
use crate::escape::escape_path;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::parse_bytes;
use crate::order::OrderName;
use crate::output::check_new;
use crate::plot_file::PlotFile;
use training::{LoaderOptions, Training};

pub use picture::{doctor_picture, doctor_plot};
pub use tell::{doctor_document, doctor_text};

const EXAMPLES: &str = "\
Examples:
  packds doctor train.pack --step-ms 48.5 --batch 256
  packds doctor train.pack --step-ms 48.5 --augment rrc224,flip,norm:imagenet --threads 4 --check
  packds doctor train.pack --cold --plot doctor.svg
  packds doctor train.pack --batch 256 -- python train.py";

/// Say why training waits: what binds, how fast it could be, and what to change
///
/// A batch is cached at one stage of its way after the other, and what is left is timed: reading, decoding, transforming and
/// copying. Together with the time of a training step that says which of them binds, how fast training could be, and what
/// each change would give. The step is told by --step-ms, or learned from a training that is run behind `--`: a program
/// whose packds.Loader reads this pack. What is not given here is as that loader has it. It is stopped after some steps.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The pack
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pack: PathBuf,
    /// Milliseconds that training takes for a batch, such as 48.5 [default: 0, loading alone]
    #[arg(
        long,
        value_name = "MS",
        allow_negative_numbers = true,
        conflicts_with = "command"
    )]
    step_ms: Option<f64>,
    /// A training to learn the step from
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Samples of a batch [default: that of a training, which is always taken, else 256; 64 for images of sizes of their own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Threads of the loader [default: those of a training, else one for each core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// In which order samples are read [default: that of a training, else auto]
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// Chunks mixed at one time, for `--order window`
    #[arg(long, value_name = "CHUNKS")]
    window: Option<NonZero<u32>>,
    /// What is done to images, such as rrc224,flip; empty for nothing [default: as a training has it, else rrc224,flip for images of sizes of their own]
    #[arg(long, value_name = "OPS")]
    augment: Option<String>,
    /// Element type of images [default: as --augment gives them]
    #[arg(long, value_enum)]
    dtype: Option<DtypeName>,
    /// Memory of the loader, in bytes or as 4GiB [default: that of a training, else 4 GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Read from the disk past the page cache, as if the pack did not fit the memory
    #[arg(long)]
    cold: bool,
    /// Follow the first advice that is an option of the loader, and measure again
    #[arg(long)]
    check: bool,
    /// How long measuring may take; slow sources take up to twice as long
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        default_value_t = 15.0
    )]
    seconds: f64,
    /// Seed of order and augmentation
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Draw it: an .svg or a .png file of the stages of a batch and the ladder of rates
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Replace the picture if there is one
    #[arg(long, requires = "plot")]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DtypeName {
    U8,
    F16,
    Bf16,
    F32,
}

impl DtypeName {
    /// The word of an augmentation.
    const fn word(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }
}

pub(crate) fn run(args: &DoctorArgs, console: &mut Console) -> Result<Exit, Failure> {
    args.check_numbers()?;
    if let Some(plot) = &args.plot {
        check_new(plot.path(), args.force)?;
        check_folder(plot.path())?;
    }
    let pack = Arc::new(packds_reader::open(&args.pack)?);
    // Whatever is wrong with the options is said before a training is run.
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

/// That a file can be made there: it is said before anything is measured.
fn check_folder(path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let missing = Failure::not_run("there is no such folder to draw to").at(folder);
            Err(missing.hint("make it, or choose another file for --plot"))
        }
        _ => Ok(()),
    }
}

fn failed(error: LoadError) -> Failure {
    match error {
        LoadError::Read(error) => error.into(),
        error @ (LoadError::Sample { .. } | LoadError::NothingLeft { .. }) => {
            Failure::bad_data(error)
        }
        error => Failure::not_run(error),
    }
}

impl DoctorArgs {
    fn check_numbers(&self) -> Result<(), Failure> {
        let step = self.step_ms.unwrap_or(0.0);
        if !(0.0..=3.6e6).contains(&step) {
            let text = format!("--step-ms is a number from 0 to 3600000: found {step}");
            return Err(Failure::not_run(text));
        }
        let seconds = self.seconds;
        if !(seconds > 0.0 && seconds <= 3600.0) {
            let text = format!("--seconds is a number above 0, at most 3600: found {seconds}");
            return Err(Failure::not_run(text));
        }
        Ok(())
    }

    /// The loader with these options, and with those of the training where none are given.
    fn loader(
        &self,
        pack: &Arc<Pack>,
        training: Option<&Training>,
    ) -> Result<LoaderBuilder, Failure> {
        let is_encoded = has_encoded_images(pack);
        let usual = if is_encoded { 64 } else { 256 };
        // What has no whole batch cannot be measured.
        let most = u32::try_from(pack.n_samples()).unwrap_or(u32::MAX).max(1);
        let learned = training.map(|training| &training.options);
        let batch = training.map(|training| training.batch).or(self.batch);
        let mut builder = Loader::builder(Arc::clone(pack))
            .batch(batch.unwrap_or(most.min(usual)))
            .order(self.order(learned)?)
            .seed(self.seed);
        if let Some(threads) = self.threads.or(learned.and_then(|said| said.threads)) {
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
        let named = learned.and_then(|said| OrderName::from_str(&said.order, false).ok());
        match (named, learned) {
            (Some(order), Some(said)) => order.with_window(said.window),
            _ => self.order.unwrap_or_default().with_window(window),
        }
    }

    /// What is done to images, in words.
    fn words(&self, is_encoded: bool, learned: Option<&LoaderOptions>) -> String {
        let usual = match learned {
            Some(said) => said.augment.as_deref().unwrap_or_default(),
            None if is_encoded => "rrc224,flip",
            None => "",
        };
        let augment = self.augment.as_deref().unwrap_or(usual);
        let words = [augment, self.dtype.map_or("", DtypeName::word)];
        let given: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        given.join(",")
    }

    fn examine(
        &self,
        builder: &LoaderBuilder,
        training: Option<&Training>,
        console: &mut Console,
    ) -> Result<Report, Failure> {
        let step = match training {
            Some(training) => Step::Measured(training.step()),
            None => Step::Modelled(self.step_ms.unwrap_or(0.0)),
        };
        let options = Options {
            within: Duration::from_secs_f64(self.seconds),
            cold: self.cold,
            check: self.check,
        };
        examine(builder, step, &options, &mut |what| console.note(what)).map_err(failed)
    }

    fn show(
        &self,
        report: &Report,
        training: Option<&Training>,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        let name = escape_path(self.pack.file_name().unwrap_or_default().as_ref());
        if let Some(plot) = &self.plot {
            plot.write(&picture::figure(report, &name), self.force)?;
        }
        if console.json {
            let mut document = doctor_document(report);
            document["training"] = training.map_or(Value::Null, Training::to_json);
            document["cold"] = json!(self.cold);
            console.document(&document)?;
        } else {
            if let Some(training) = training {
                writeln!(console.out, "{}", training.to_text())?;
            }
            console.out.write_all(doctor_text(report).as_bytes())?;
            if self.check && report.checked.is_none() {
                let text = "checked  no advice is an option of the loader: nothing was followed";
                writeln!(console.out, "{text}")?;
            }
        }
        Ok(Exit::Done)
    }
}
