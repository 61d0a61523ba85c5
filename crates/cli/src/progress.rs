//! How far a long command is: a bar on a terminal, a line now and then elsewhere; and how it is stopped.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use packds_bench::Watcher;
use packds_convert::source::Unpacking;
use packds_convert::{Observer, Phase, Progress};

use crate::human::human_bytes;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows a conversion's progress on stderr, and ends it when the user asks to.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    lines: Mutex<Lines>,
    cancelled: Arc<AtomicBool>,
}

struct Lines {
    started: Instant,
    last: Instant,
    phase: Phase,
}

/// Starts to watch for Ctrl-C, which sets the flag; a second one ends the process at once.
fn watch_signals() -> Arc<AtomicBool> {
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        // Where a signal cannot be watched, it keeps its default: the process ends.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 2, Arc::clone(&cancelled));
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    cancelled
}

/// A bar of this form on stderr.
fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl Shown {
    /// Starts to watch for Ctrl-C; a second one ends the process at once.
    pub(crate) fn new(terminal: bool) -> Self {
        let cancelled = watch_signals();
        let now = Instant::now();
        let lines = Mutex::new(Lines {
            started: now,
            last: now,
            phase: Phase::Convert,
        });
        let bar = terminal.then(|| bar("{msg} [{bar:30}] {pos}/{len} images, {eta} left"));
        Self {
            bar,
            lines,
            cancelled,
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows how far a comparison of formats is on stderr, and ends it when the user asks to.
pub(crate) struct Comparing {
    bar: Option<ProgressBar>,
    started: Instant,
    cancelled: Arc<AtomicBool>,
}

impl Comparing {
    /// Starts to watch for Ctrl-C; a second one ends the process at once.
    pub(crate) fn new(terminal: bool) -> Self {
        // Drawn as each cell begins and never meanwhile: nothing else is to run while a format is timed.
        let bar = terminal.then(|| bar("[{bar:20}] {prefix}: {wide_msg}"));
        Self {
            bar,
            started: Instant::now(),
            cancelled: watch_signals(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Comparing {
    fn part(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            // Where stderr is closed there is nobody to tell.
            None => {
                let _ = writeln!(std::io::stderr(), "packds: {what}");
            }
        }
    }

    fn cell(&self, what: &str, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_prefix(time_line(done, total, self.started.elapsed()));
            bar.set_message(what.to_owned());
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// How many cells are done, in which time, and how long the others take if they are like those.
fn time_line(done: u64, total: u64, elapsed: Duration) -> String {
    let so_far = format!("{done} of {total}, {:#}", HumanDuration(elapsed));
    #[expect(clippy::cast_precision_loss, reason = "an estimate has few digits")]
    let times = total.saturating_sub(done) as f64 / done as f64;
    match Duration::try_from_secs_f64(elapsed.as_secs_f64() * times) {
        Ok(left) => format!("{so_far}, about {:#} left", HumanDuration(left)),
        // Nothing is done yet.
        Err(_) => so_far,
    }
}

/// Shows how much of a source was unpacked, until it is dropped.
pub(crate) fn unpacking(terminal: bool) -> Unpacking {
    let bar = terminal.then(|| bar("{msg}").with_finish(ProgressFinish::AndClear));
    let last = Mutex::new(Instant::now());
    Unpacking::new(move |bytes| {
        let text = format!("unpacking the source, {}", human_bytes(bytes));
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match &bar {
            Some(bar) => bar.set_message(text),
            None if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                // Where stderr is closed there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "packds: {text}");
            }
            None => {}
        }
    })
}

impl Observer for Shown {
    fn progress(&self, progress: Progress) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.phase != progress.phase {
            let now = Instant::now();
            *lines = Lines {
                started: now,
                last: now,
                phase: progress.phase,
            };
            if let Some(bar) = &self.bar {
                bar.reset();
            }
        }
        let seconds = lines.started.elapsed().as_secs_f64().max(1e-9);
        let what = match progress.phase {
            Phase::Convert => "converting",
            Phase::Measure => "measuring mean and std",
            Phase::Export => "exporting",
            Phase::FindFirst => "found a bad image, looking for the first in listing order",
        };
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let (images_per_s, mb_per_s, left) = (
            progress.samples as f64 / seconds,
            progress.bytes_in as f64 / seconds / 1e6,
            progress.total.saturating_sub(progress.samples) as f64 * seconds
                / progress.samples.max(1) as f64,
        );
        if let Some(bar) = &self.bar {
            bar.set_length(progress.total);
            bar.set_position(progress.samples);
            bar.set_message(format!(
                "{what}, {images_per_s:.0} images/s, {mb_per_s:.0} MB/s"
            ));
        } else if lines.last.elapsed() >= LINE_EVERY {
            lines.last = Instant::now();
            let (done, total) = (progress.samples, progress.total);
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(
                std::io::stderr(),
                "packds: {what}: {done} of {total} images, {images_per_s:.0} images/s, {mb_per_s:.0} MB/s, {left:.0} s left"
            );
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_estimated_once_something_is_done() {
        let line = |done| time_line(done, 40, Duration::from_secs(120));
        assert_eq!(line(0), "0 of 40, 2m");
        assert_eq!(line(10), "10 of 40, 2m, about 6m left");
        assert_eq!(line(40), "40 of 40, 2m, about 0s left");
    }
}
