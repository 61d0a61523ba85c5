//! How far a long command is: a bar on a terminal, a line now and then elsewhere; and how it ends when the user stops it.
//!
//! Who works only notes how far the work is. A thread of its own draws, so no work waits for a terminal.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use packds_bench::Watcher;
use packds_convert::source::Unpacking;
use packds_convert::{Observer, Phase, Progress};

use crate::console::Console;
use crate::escape::escape_path;
use crate::human::human_time;
use crate::interrupt::{self, Catching};
use crate::task::{Amount, Task, time_left};
use crate::terminal_line::{TerminalLine, columns};

/// Between two looks of the thread.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows what a command does on stderr, and watches for signals, until it is dropped.
pub(crate) struct Shown {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    _catching: Catching,
}

struct Shared {
    /// Whoever takes both locks takes this one first.
    place: Mutex<Place>,
    now: Mutex<Now>,
    over: Condvar,
}

/// Where it is shown.
enum Place {
    Terminal(TerminalLine),
    /// A file or a pipe, and when something was last written to it.
    Lines(Instant),
}

/// What the working threads have noted.
#[derive(Default)]
struct Now {
    task: Option<Task>,
    phase: Option<Phase>,
    /// What the task is about, such as a split; empty for everything.
    about: String,
    /// What is read, where a standstill is to name it.
    source: String,
    /// Whether the work looks at [`Shown::cancelled`]; what does not ends with the process.
    stops_itself: bool,
    is_over: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shown {
    /// Starts to show what is noted, and to watch for Ctrl-C; a second one ends the process at once.
    pub(crate) fn new(console: &Console) -> Self {
        let catching = interrupt::catch();
        let place = match console.err_is_terminal {
            true => Place::Terminal(TerminalLine::default()),
            false => Place::Lines(Instant::now()),
        };
        let shared = Arc::new(Shared {
            place: Mutex::new(place),
            now: Mutex::default(),
            over: Condvar::new(),
        });
        let builder = thread::Builder::new().name("packds-progress".to_owned());
        let of_thread = Arc::clone(&shared);
        // Without this thread nothing moves on the screen, and the work is done all the same.
        let thread = builder.spawn(move || of_thread.watch()).ok();
        Self {
            shared,
            thread,
            _catching: catching,
        }
    }

    /// Does the work and shows that. When the user stops the command, the process ends: nothing may be left to clean up.
    pub(crate) fn during<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.shared.begin(what, Amount::Unknown);
        let done = work();
        self.shared.idle();
        done
    }

    /// Does work that looks at [`cancelled`](Observer::cancelled) and cleans up behind itself. From now on the process never
    /// ends between: what is done is reported. `about` is what this is a part of, or empty.
    pub(crate) fn stoppable<T>(&self, what: &str, about: &str, work: impl FnOnce() -> T) -> T {
        {
            let mut now = locked(&self.shared.now);
            now.stops_itself = true;
            now.about = about.to_owned();
            now.phase = None;
        }
        self.during(what, work)
    }

    /// Notes what is read from now on.
    pub(crate) fn reading(&self, source: &Path) {
        locked(&self.shared.now).source = escape_path(source);
    }

    /// Notes how far the work is.
    pub(crate) fn tell(&self, amount: Amount) {
        self.shared.tell(amount);
    }

    /// Notes how much of a source was unpacked.
    pub(crate) fn unpacking(&self) -> Unpacking {
        let shared = Arc::clone(&self.shared);
        Unpacking::new(move |bytes| {
            if let Some(task) = &mut locked(&shared.now).task {
                "unpacking the source".clone_into(&mut task.what);
                task.tell(Amount::Bytes(bytes));
            }
        })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        locked(&self.shared.now).is_over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
        self.shared.idle();
    }
}

impl Shared {
    /// Another task begins, and is shown at once.
    fn begin(&self, what: &str, amount: Amount) {
        {
            let mut now = locked(&self.now);
            let what = match now.about.as_str() {
                "" => what.to_owned(),
                about => format!("{about}: {what}"),
            };
            now.task = Some(Task::new(what, amount));
        }
        self.show();
    }

    fn tell(&self, amount: Amount) {
        if let Some(task) = &mut locked(&self.now).task {
            task.tell(amount);
        }
    }

    /// Nothing is done any more: the terminal is free for results.
    fn idle(&self) {
        let mut place = locked(&self.place);
        locked(&self.now).task = None;
        if let Place::Terminal(line) = &mut *place {
            line.clear();
        }
    }

    fn show(&self) {
        let mut place = locked(&self.place);
        let Some(task) = locked(&self.now).task.clone() else {
            return;
        };
        match &mut *place {
            Place::Terminal(line) if interrupt::caught().is_some() => line.draw("stopping"),
            Place::Terminal(line) => line.draw(&task.bar(columns())),
            Place::Lines(last) if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                note(&task.line());
            }
            Place::Lines(_) => {}
        }
    }

    /// The work of the thread.
    fn watch(&self) {
        loop {
            let now = locked(&self.now);
            let waited = self.over.wait_timeout(now, LOOK_EVERY);
            let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if now.is_over {
                return;
            }
            drop(now);
            self.end_if_stopped();
            self.note_standstill();
            self.show();
        }
    }

    /// Says what no longer moves: who waits may want to know what for.
    fn note_standstill(&self) {
        let mut place = locked(&self.place);
        let mut now = locked(&self.now);
        let Some(text) = now.task.as_mut().and_then(Task::standstill) else {
            return;
        };
        if let Place::Terminal(line) = &mut *place {
            line.clear();
        }
        match now.source.as_str() {
            "" => note(&text),
            source => note(&format!("{text}, reading {source}")),
        }
    }

    /// Ends the process if the user asks for that and the work does not end itself.
    fn end_if_stopped(&self) {
        let Some(exit) = interrupt::caught() else {
            return;
        };
        let mut place = locked(&self.place);
        // Held to the end: no work that has to clean up begins now.
        let now = locked(&self.now);
        if now.stops_itself {
            return;
        }
        if let Place::Terminal(line) = &mut *place {
            line.clear();
        }
        note("interrupted");
        interrupt::end_process(exit);
    }
}

/// Writes a line to stderr.
fn note(text: &str) {
    // Where stderr is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "packds: {text}");
}

impl Observer for Shown {
    fn progress(&self, progress: Progress) {
        let amount = match progress.phase {
            Phase::Sync => Amount::Unknown,
            _ => Amount::Of {
                done: progress.samples,
                total: progress.total,
                things: "images",
                bytes: progress.bytes_in,
            },
        };
        let before = locked(&self.shared.now).phase.replace(progress.phase);
        if before == Some(progress.phase) {
            return self.tell(amount);
        }
        let what = match progress.phase {
            Phase::Plan => "planning",
            Phase::Convert => "converting",
            Phase::Measure => "measuring mean and std",
            Phase::Export => "exporting",
            Phase::FindFirst => "found a bad image, looking for the first",
            Phase::Sync => "writing to disk",
        };
        self.shared.begin(what, amount);
    }

    fn cancelled(&self) -> bool {
        interrupt::caught().is_some()
    }
}

/// Shows how far a benchmark is on stderr, and ends it when the user asks to.
pub(crate) struct Benchmarking {
    line: Option<Mutex<TerminalLine>>,
    started: Instant,
    _catching: Catching,
}

impl Benchmarking {
    /// Starts to watch for Ctrl-C; a second one ends the process at once.
    pub(crate) fn new(console: &Console) -> Self {
        Self {
            line: console.err_is_terminal.then(Mutex::default),
            started: Instant::now(),
            _catching: interrupt::catch(),
        }
    }
}

impl Drop for Benchmarking {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            locked(line).clear();
        }
    }
}

impl Watcher for Benchmarking {
    fn part(&self, what: &str) {
        if self.line.is_none() {
            note(what);
        }
    }

    // Drawn as each cell begins and never meanwhile: nothing else is to run while something is timed.
    fn cell(&self, what: &str, done: u64, total: u64) {
        if let Some(line) = &self.line {
            let elapsed = self.started.elapsed();
            locked(line).draw(&cell_line(what, done, total, elapsed));
        }
    }

    fn cancelled(&self) -> bool {
        interrupt::caught().is_some()
    }
}

/// How many cells are done, in which time, how long the others take if they are like those, and what is being done.
fn cell_line(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let so_far = format!("{done} of {total}, {}", human_time(elapsed));
    match time_left(done, total, elapsed) {
        Some(left) => format!("{so_far}, about {} left: {what}", human_time(left)),
        None => format!("{so_far}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_says_how_long_it_will_take_once_something_is_done() {
        let line = |done| cell_line("npy", done, 40, Duration::from_secs(120));
        assert_eq!(line(0), "0 of 40, 2 min: npy");
        assert_eq!(line(10), "10 of 40, 2 min, about 6 min left: npy");
    }
}
