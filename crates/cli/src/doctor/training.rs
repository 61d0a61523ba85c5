//! Times the steps of a training command. The command's loaders write their times to a journal; this module reads the
//! journal, and `running` starts and stops the command.

use packds_system::to_u64;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use packds_doctor::{MeasuredStep, Report, Time};
use packds_reader::Pack;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::running::Running;
use crate::console::{Console, Detail};
use crate::failure::Failure;
use crate::human::{counted, to_f64};
use crate::progress::Shown;

/// The command is stopped once its steps and waits have taken this time, over at least this number of batches.
const ENOUGH: (Duration, u64) = (Duration::from_secs(5), 3);
/// Initial time that is ignored, because the first steps may include compilation.
const WARMING: Duration = Duration::from_millis(250);
/// What the user sees while the command runs.
const WHAT: &str = "running the command to time its steps";
/// A note is added if the measured and the predicted rate differ by more than this fraction of the lower one.
const DIFFERS: f64 = 0.2;
/// Minimum duration of a timed part.
const PART: Duration = Duration::from_millis(50);
/// With fewer batches than this, times are unreliable.
const FEW: u64 = 10;

/// The timing of a training command's steps.
#[derive(Debug)]
pub(super) struct Training {
    pub(super) batch: u32,
    /// The other options of the training command's loader.
    pub(super) options: LoaderOptions,
    /// Time from receiving a batch to requesting the next.
    busy: Time,
    /// Time from requesting a batch to receiving it.
    waited: Time,
    /// The sum of `busy` and `waited`.
    passed: Time,
    batches: u64,
    notes: Vec<String>,
}

/// A loader's options. `None` means the default.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub(super) struct LoaderOptions {
    pub(super) order: String,
    pub(super) window: Option<u32>,
    pub(super) augment: Option<String>,
    pub(super) fields: Option<Vec<String>>,
    pub(super) threads: Option<NonZero<usize>>,
    pub(super) memory_bytes: Option<u64>,
    /// Whether the loader reads only a subset, or reads some samples more often than others.
    #[serde(skip_serializing)]
    chosen: bool,
}

/// A line of the journal: totals since the loader was created.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Line {
    loader: String,
    kind: u64,
    pack: String,
    batch: u32,
    options: LoaderOptions,
    batches: u64,
    busy_ns: u64,
    waited_ns: u64,
}

impl Training {
    /// Runs the command until its loader of this pack has recorded enough batches.
    pub(super) fn run(command: &[OsString], pack: &Pack, console: &mut Console) -> Result<Self, Failure> {
        let journal = Journal::new()?;
        let uuid = pack.pack_uuid().to_string();
        if !console.err_is_terminal {
            console.doing(WHAT);
        }
        let shown = Shown::new(console);
        let is_drawn = console.err_is_terminal && console.detail > Detail::Quiet;
        let (lines, ended) = shown.stoppable(WHAT, "", || {
            Running::start(command, &journal, is_drawn.then_some(&shown))?.watch(&journal, &uuid)
        })?;
        drop(shown);
        let mut training = Self::of(&lines, &uuid)?;
        training.notes.extend(ended.and_then(|status| training.end(status)));
        Ok(training)
    }

    /// A note if a command that ended by itself failed or took too few batches.
    fn end(&self, status: ExitStatus) -> Option<String> {
        let few = self.batches < FEW;
        if status.success() && !few {
            return None;
        }
        let few = if few { ", too few to be reliable" } else { "" };
        let batches = counted(self.batches, "batch");
        Some(format!("the command ended with {status} after {batches}{few}"))
    }

    /// The timing of the loader that reads this pack. If several loaders read it, uses the one with the most time in
    /// steps and waits.
    fn of(lines: &[Line], uuid: &str) -> Result<Self, Failure> {
        let mut loaders = of_loaders(lines, uuid);
        let Some(lines) = loaders.pop() else {
            let text = if lines.is_empty() {
                "the command took no batch from a packds loader, so its steps cannot be timed"
            } else {
                "the command's packds loaders read other packs, so its steps cannot be timed"
            };
            let hint = "pass --step-ms, or a command that starts iterating over a packds.Loader for this pack within \
                        30 s of its start; in Python, packds.doctor(loader, train_step) examines any loader";
            return Err(Failure::not_run(text).hint(hint));
        };
        let last = lines.last().ok_or_else(|| Failure::not_run("the journal is empty"))?;
        let mut notes = Vec::new();
        let is_twin =
            |other: &&Vec<Line>| other.last().is_some_and(|other| (other.batch, other.kind) == (last.batch, last.kind));
        let (ranks, others) = loaders.iter().partition::<Vec<_>, _>(is_twin);
        if !ranks.is_empty() {
            notes.push(format!(
                "{} processes train in parallel: the rate is for one of them, but the stages are measured on all cores",
                ranks.len() + 1
            ));
        }
        if !others.is_empty() {
            let others = counted(to_u64(others.len()), "more loader");
            notes.push(format!(
                "ignored {others} of this pack with different options, because the timed loader took more time"
            ));
        }
        if last.options.chosen {
            notes.push("the loader reads only selected samples, but all samples are examined".to_owned());
        }
        Ok(Self {
            batch: last.batch,
            options: last.options.clone(),
            busy: between(&lines, |line| line.busy_ns),
            waited: between(&lines, |line| line.waited_ns),
            passed: between(&lines, Line::passed_ns),
            batches: last.batches,
            notes,
        })
    }

    /// The timing in the form that the doctor expects. The step includes the copy to the device.
    pub(super) fn step(&self) -> MeasuredStep {
        MeasuredStep { step: self.busy, copy: Time::default(), pinned_copy: None, trained: Some(self.passed) }
    }

    /// Adds notes if the training run disagrees with the prediction or with the options.
    pub(super) fn compare(&mut self, batch: Option<u32>, report: &Report) {
        if let Some(batch) = batch.filter(|batch| *batch != self.batch) {
            let own = self.batch;
            self.notes.push(format!("--batch {batch} is ignored: the training command uses {own}"));
        }
        let (trained, modelled) = (report.images_per_s, report.modelled_images_per_s);
        let differs = report.spread.max(DIFFERS);
        let least = trained.min(modelled);
        if (trained - modelled).abs() > least * differs {
            self.notes.push(format!(
                "the training command reached {trained:.0} images/s, but the stages predict {modelled:.0}: other processes may have used the cores, or the options given here may differ from those of the training command's loader"
            ));
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "batch": self.batch,
            "batches": self.batches,
            "options": self.options,
            "step_ms": self.busy.ms,
            "waited_ms": self.waited.ms,
            "notes": self.notes,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let batches = counted(self.batches, "batch");
        let mut lines = vec![
            format!(
                "training {batches} of {}: {:.2} ms of step and {:.2} ms of waiting per batch",
                self.batch, self.busy.ms, self.waited.ms
            ),
            format!("its loader: {}", self.options.to_text()),
        ];
        lines.extend_from_slice(&self.notes);
        lines.join("\n         ")
    }
}

impl LoaderOptions {
    fn to_text(&self) -> String {
        let said = [
            Some(format!("order {}", self.order)),
            self.window.map(|chunks| format!("window {chunks}")),
            self.augment.as_ref().map(|ops| format!("augment {ops}")),
            self.fields.as_ref().map(|names| format!("fields {}", names.join(","))),
            self.threads.map(|n| format!("threads {n}")),
            self.memory_bytes.map(|bytes| format!("memory {bytes} bytes")),
        ];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Line {
    const fn passed_ns(&self) -> u64 {
        self.busy_ns.saturating_add(self.waited_ns)
    }
}

/// The journal lines of each loader of this pack, in order. The loader that spent the most time in steps and waits is
/// last. Loaders with equal process, batch size and kind are merged, because a program may create one per epoch.
fn of_loaders(lines: &[Line], uuid: &str) -> Vec<Vec<Line>> {
    let mut loaders: BTreeMap<(&str, u32, u64), Vec<&Line>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.pack == uuid) {
        let process = line.loader.split('-').next().unwrap_or_default();
        let key = (process, line.batch, line.kind);
        loaders.entry(key).or_default().push(line);
    }
    let mut all: Vec<Vec<Line>> = loaders.into_values().map(|lines| sums(&lines)).collect();
    all.sort_by_key(|lines| lines.last().map(Line::passed_ns));
    all
}

/// Merges loaders: each line becomes the total of all loaders so far.
fn sums(lines: &[&Line]) -> Vec<Line> {
    let mut latest: BTreeMap<&str, &Line> = BTreeMap::new();
    let mut all = Vec::new();
    for line in lines {
        latest.insert(&line.loader, line);
        let sum = |of: fn(&Line) -> u64| latest.values().map(|line| of(line)).sum();
        all.push(Line {
            batches: sum(|line| line.batches),
            busy_ns: sum(|line| line.busy_ns),
            waited_ns: sum(|line| line.waited_ns),
            ..(*line).clone()
        });
    }
    all
}

/// Whether the loader with the most time has recorded enough batches since warm-up.
pub(super) fn is_enough(lines: &[Line], uuid: &str) -> bool {
    let (loaders, (time, batches)) = (of_loaders(lines, uuid), ENOUGH);
    let Some(lines) = loaders.last().map(|lines| parts(lines)) else { return false };
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return false };
    let passed = last.passed_ns().saturating_sub(first.passed_ns());
    Duration::from_nanos(passed) >= time && last.batches >= first.batches + batches
}

/// Lines that are at least `PART` apart, after warm-up.
fn parts(lines: &[Line]) -> Vec<&Line> {
    let mut parts: Vec<&Line> = Vec::new();
    for line in lines {
        let (since, least) = match parts.last() {
            None => (0, WARMING),
            Some(last) => (last.passed_ns(), PART),
        };
        if Duration::from_nanos(line.passed_ns().saturating_sub(since)) >= least {
            parts.push(line);
        }
    }
    parts
}

/// Milliseconds per batch between lines. Ignores the warm-up, unless there is nothing after it.
fn between(lines: &[Line], nanos: fn(&Line) -> u64) -> Time {
    let warm = parts(lines);
    let ms = |nanos: u64, batches: u64| to_f64(nanos) / 1e6 / to_f64(batches.max(1));
    let pairs = warm.iter().zip(warm.iter().skip(1));
    let times: Vec<f64> = pairs
        .filter(|(a, b)| b.batches > a.batches)
        .map(|(a, b)| ms(nanos(b).saturating_sub(nanos(a)), b.batches - a.batches))
        .collect();
    let time = match (times.is_empty(), lines.last()) {
        (true, Some(only)) => Time::exactly(ms(nanos(only), only.batches)),
        _ => Time::of(times),
    };
    Time {
        // A few long steps are as reliable as many short ones.
        is_short: lines
            .last()
            .is_none_or(|last| last.batches < FEW && Duration::from_nanos(last.passed_ns()) < ENOUGH.0),
        ..time
    }
}

/// The file that loaders write to. It is removed on drop.
pub(super) struct Journal(PathBuf);

impl Journal {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("packds-doctor-{}", std::process::id()));
        // An earlier process with the same id may have been killed and left a journal behind.
        let _ = std::fs::remove_file(&path);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.map_err(|error| Failure::write(&path, &error))?;
        Ok(Self(path))
    }

    /// All complete lines so far.
    pub(super) fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines();
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // If the journal cannot be removed, nothing more can be done.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn line(loader: &str, pack: &str, batches: u64, busy_ms: u64) -> Line {
        Line {
            options: LoaderOptions::default(),
            loader: loader.to_owned(),
            kind: 1,
            pack: pack.to_owned(),
            batch: 32,
            batches,
            busy_ns: busy_ms * 1_000_000,
            waited_ns: batches * 500_000,
        }
    }

    #[test]
    fn a_step_is_what_lies_between_lines_of_the_loader_that_took_longest() {
        let lines = [
            // The first steps are slow, as with compilation.
            line("1-0", "a", 2, 900),
            line("2-0", "a", 1, 5),
            line("1-0", "a", 12, 1000),
            line("1-2", "b", 500, 9),
            line("1-0", "a", 22, 1100),
        ];
        let training = Training::of(&lines, "a").unwrap();
        assert!((training.busy.ms - 10.0).abs() < 1e-9 && training.batches == 22);
        assert!((training.waited.ms - 0.5).abs() < 1e-9);
    }

    #[test]
    fn loaders_that_are_made_anew_for_every_epoch_are_one() {
        let lines: Vec<Line> = (0..20).map(|epoch| line(&format!("1-{epoch}"), "a", 10, 100)).collect();
        let training = Training::of(&lines, "a").unwrap();
        assert_eq!(training.batches, 200);
        assert!((training.busy.ms - 10.0).abs() < 1e-9 && training.notes.is_empty());
        // Per batch: 10 ms of step and 0.5 ms of waiting.
        let trained = training.step().trained.unwrap();
        assert!((trained.ms - 10.5).abs() < 1e-9);
    }

    #[test]
    fn the_loader_that_took_longest_counts_and_the_others_are_noted() {
        let validation = |batches, busy_ms| Line { kind: 2, ..line("1-1", "a", batches, busy_ms) };
        let lines = [line("1-0", "a", 10, 500), validation(400, 300), line("1-0", "a", 20, 1000), validation(800, 600)];
        let training = Training::of(&lines, "a").unwrap();
        assert_eq!(training.batches, 20);
        assert!(training.notes[0].starts_with("ignored 1 more loader"), "{:?}", training.notes);
    }

    #[test]
    fn parallel_processes_are_noted() {
        let lines = [line("1-0", "a", 10, 500), line("2-0", "a", 10, 400)];
        let training = Training::of(&lines, "a").unwrap();
        assert!(training.notes[0].starts_with("2 processes train in parallel"));
        assert_eq!(training.notes.len(), 1);
    }

    #[test]
    fn a_few_long_steps_are_enough() {
        let is_short = |batches, busy_ms| {
            let training = Training::of(&[line("1-0", "a", batches, busy_ms)], "a").unwrap();
            training.step().step.is_short
        };
        assert!(is_short(4, 80) && !is_short(4, 8000) && !is_short(10, 80));
        let long = |n| line("1-0", "a", n, 2000 * n);
        assert!(!is_enough(&[long(1), long(2), long(3)], "a"));
        assert!(is_enough(&[long(1), long(2), long(3), long(4)], "a"));
    }

    #[test]
    fn a_command_that_ends_early_is_noted_with_its_status() {
        let training = |batches| Training::of(&[line("1-0", "a", batches, 80)], "a").unwrap();
        let [done, failed] = [0, 256].map(ExitStatus::from_raw);
        let said = training(4).end(failed).unwrap();
        assert!(said.contains("ended with exit status: 1 after 4 batches, too few"), "{said}");
        assert!(training(400).end(failed).unwrap().contains("exit status: 1"));
        assert!(training(4).end(done).unwrap().contains("too few"));
        assert_eq!(training(400).end(done), None);
    }

    #[test]
    fn a_command_without_a_loader_of_the_pack_is_distinguished() {
        let text = |lines: &[Line]| Training::of(lines, "a").unwrap_err().text();
        assert!(text(&[]).contains("took no batch from a packds loader"));
        assert!(text(&[line("1-0", "b", 4, 4)]).contains("read other packs"));
    }
}
