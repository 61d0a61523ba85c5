//! A training that is run for some steps, to learn what they take. Its loaders tell it themselves: this only starts the
//! training, reads what they told, and stops it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packds_reader::MappedPack;
use packds_reader::doctor::{MeasuredStep, Time};
use packds_reader::loader::JOURNAL;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::console::Console;
use crate::failure::Failure;

/// The longest that the training runs, its start included.
const LONGEST: Duration = Duration::from_secs(30);
/// It is stopped before when its loader has told so many times: about 5 s of steps.
const ENOUGH: usize = 21;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// What it has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What a training's steps took.
#[derive(Debug)]
pub(super) struct Training {
    /// Samples of a batch.
    pub(super) batch: u32,
    /// Between getting a batch and asking for the next.
    busy: Time,
    /// From asking for a batch to getting it.
    waited: Time,
    batches: u64,
}

/// A line of what a loader told: all since it was made.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    loader: String,
    pack: String,
    batch: u32,
    batches: u64,
    busy_ns: u64,
    waited_ns: u64,
}

impl Training {
    /// Runs the command until its loader of this pack has told enough.
    pub(super) fn run(
        command: &[OsString],
        pack: &MappedPack,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let told = Told::new()?;
        let uuid = pack.header().pack_uuid.to_string();
        console.note("running the command until its steps are known");
        let running = Running::start(command, &told)?;
        let lines = running.watch(&told, &uuid)?;
        Self::of(&lines, &uuid)
    }

    /// Of the loader of this pack that gave most batches.
    fn of(lines: &[Line], uuid: &str) -> Result<Self, Failure> {
        let Some(told) = of_loader(lines, uuid) else {
            let text = if lines.is_empty() {
                "the command took no batch of a packds loader: nothing is known of its steps"
            } else {
                "the command's packds loaders read other packs: nothing is known of its steps"
            };
            let hint = "give --step-ms, or a program that iterates over a packds.Loader of this pack within 30 s; packds.doctor(loader, train_step) in Python examines any other";
            return Err(Failure::not_run(text).hint(hint));
        };
        let last = told
            .last()
            .ok_or_else(|| Failure::not_run("nothing was told"))?;
        Ok(Self {
            batch: last.batch,
            busy: between(&told, |line| line.busy_ns),
            waited: between(&told, |line| line.waited_ns),
            batches: last.batches,
        })
    }

    /// As the doctor takes it. The copy to the device is part of it.
    pub(super) fn step(&self) -> MeasuredStep {
        MeasuredStep {
            step: self.busy,
            copy: Time::default(),
            pinned_copy: None,
            trained: None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "batch": self.batch,
            "batches": self.batches,
            "step_ms": self.busy.ms,
            "waited_ms": self.waited.ms,
        })
    }

    pub(super) fn to_text(&self) -> String {
        format!(
            "training {} batches of {}: {:.2} ms of step and {:.2} ms of waiting for each",
            self.batches, self.batch, self.busy.ms, self.waited.ms
        )
    }
}

/// What the loader of this pack that gave most batches told, in order.
fn of_loader<'a>(lines: &'a [Line], uuid: &str) -> Option<Vec<&'a Line>> {
    let mut loaders: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.pack == uuid) {
        loaders.entry(&line.loader).or_default().push(line);
    }
    loaders
        .into_values()
        .max_by_key(|told| told.last().map(|line| line.batches))
}

/// Milliseconds for a batch from one line to the next. What came before the first one is warming up, unless there is no more.
fn between(told: &[&Line], nanos: fn(&Line) -> u64) -> Time {
    #[expect(clippy::cast_precision_loss, reason = "a time has few digits")]
    let ms = |nanos: u64, batches: u64| nanos as f64 / 1e6 / batches.max(1) as f64;
    let pairs = told.iter().zip(told.iter().skip(1));
    let times: Vec<f64> = pairs
        .filter(|(a, b)| b.batches > a.batches)
        .map(|(a, b)| ms(nanos(b).saturating_sub(nanos(a)), b.batches - a.batches))
        .collect();
    match (times.is_empty(), told.first()) {
        (true, Some(only)) => Time::exactly(ms(nanos(only), only.batches)),
        _ => Time::of(times),
    }
}

/// The file that loaders write to; gone at the end.
struct Told(PathBuf);

impl Told {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("packds-doctor-{}", std::process::id()));
        // What a process of that number left behind.
        let _ = std::fs::remove_file(&path);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.map_err(|error| Failure::write(&path, &error))?;
        Ok(Self(path))
    }

    /// All whole lines so far.
    fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // Where it cannot be removed there is nothing left to do.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Ctrl-C while the training runs: it has a process group of its own, and must be ended too.
struct Interrupts {
    asked: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Interrupts {
    fn watch() -> Self {
        let [asked, over] = [false, false].map(|flag| Arc::new(AtomicBool::new(flag)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Where a signal cannot be watched, it keeps its default.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&over));
            let _ = signal_hook::flag::register(signal, Arc::clone(&asked));
        }
        Self { asked, over }
    }
}

impl Drop for Interrupts {
    /// From here on signals do what they do by default.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The training, with all processes that it starts; they end with it.
struct Running {
    child: Child,
}

impl Running {
    fn start(command: &[OsString], told: &Told) -> Result<Self, Failure> {
        let Some((program, args)) = command.split_first() else {
            return Err(Failure::not_run("there is no command behind --"));
        };
        let child = Command::new(program)
            .args(args)
            .env(JOURNAL, &told.0)
            .stdin(Stdio::null())
            // Stdout is for what the doctor says.
            .stdout(std::io::stderr())
            .process_group(0)
            .spawn();
        let failed = |error| Failure::not_run(format!("cannot run it: {error}"));
        let child = child.map_err(|error| failed(error).at(program.as_ref()))?;
        Ok(Self { child })
    }

    /// Waits until enough is told, it has ended, or time is up.
    fn watch(mut self, told: &Told, uuid: &str) -> Result<Vec<Line>, Failure> {
        let interrupts = Interrupts::watch();
        let started = Instant::now();
        while started.elapsed() < LONGEST {
            let has_ended = self.child.try_wait()?.is_some();
            let lines = told.lines();
            let n_told = of_loader(&lines, uuid).map_or(0, |told| told.len());
            if has_ended || n_told >= ENOUGH {
                break;
            }
            if interrupts.asked.load(Ordering::Relaxed) {
                return Err(Failure::not_run("interrupted"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(told.lines())
    }

    fn send(&self, signal: Signal) {
        // A group that has ended already is what is wanted.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.send(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        self.send(Signal::KILL);
        // It has ended, or ends now.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(loader: &str, pack: &str, batches: u64, busy_ms: u64) -> Line {
        Line {
            loader: loader.to_owned(),
            pack: pack.to_owned(),
            batch: 32,
            batches,
            busy_ns: busy_ms * 1_000_000,
            waited_ns: batches * 500_000,
        }
    }

    #[test]
    fn a_step_is_what_lies_between_lines_of_the_loader_that_gave_most() {
        let lines = [
            // The first steps are slow: something is compiled.
            line("1-0", "a", 2, 900),
            line("1-1", "a", 1, 5),
            line("1-0", "a", 12, 1000),
            line("1-2", "b", 500, 9),
            line("1-0", "a", 22, 1100),
        ];
        let training = Training::of(&lines, "a").unwrap();
        assert!((training.busy.ms - 10.0).abs() < 1e-9 && training.batches == 22);
        assert!((training.waited.ms - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_command_without_a_loader_of_the_pack_is_told_apart() {
        let text = |lines: &[Line]| Training::of(lines, "a").unwrap_err().text();
        assert!(text(&[]).contains("took no batch of a packds loader"));
        assert!(text(&[line("1-0", "b", 4, 4)]).contains("read other packs"));
    }
}
