//! Progress of long commands: a bar on a terminal, occasional lines elsewhere. Also lets the user stop the command.
//!
//! Workers only record progress. A separate thread draws, so that work never waits for a terminal.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use packds_bench::Watcher;
use packds_convert::source::Unpacking;
use packds_convert::{Observer, Phase, Progress};
use packds_system::lock;

use crate::console::{Console, Detail};
use crate::escape::escape_path;
use crate::interrupt::{self, Catching};
use crate::task::{Amount, Task};
use crate::terminal_line::{TerminalLine, columns};

/// Interval at which the thread checks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval between plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows progress on stderr and watches for signals until dropped.
pub(crate) struct Shown {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    started: Instant,
    _catching: Catching,
}

struct Shared {
    /// Lock order: lock this first.
    place: Mutex<Place>,
    now: Mutex<Now>,
    over: Condvar,
}

enum Place {
    /// Progress is not shown.
    Nowhere,
    Terminal(TerminalLine),
    /// A file or pipe, and the time of the last line.
    Lines(Instant),
}

#[derive(Default)]
struct Now {
    task: Option<Task>,
    phase: Option<Phase>,
    /// What the task is a part of, such as a split. May be empty.
    about: String,
    /// The source being read, for the warning about a stall.
    source: String,
    /// Whether the work checks [`Shown::cancelled`]. If not, stopping ends the process.
    stops_itself: bool,
    is_over: bool,
}

impl Place {
    /// Clears the progress line, so that other text can be printed.
    fn clear(&mut self) {
        if let Self::Terminal(line) = self {
            line.clear();
        }
    }
}

impl Shown {
    /// Starts to show progress and to catch Ctrl-C.
    pub(crate) fn new(console: &Console) -> Self {
        let catching = interrupt::catch();
        let place = if console.detail == Detail::Quiet {
            Place::Nowhere
        } else if console.err_is_terminal {
            Place::Terminal(TerminalLine::default())
        } else {
            Place::Lines(Instant::now())
        };
        let shared = Arc::new(Shared { place: Mutex::new(place), now: Mutex::default(), over: Condvar::new() });
        let builder = thread::Builder::new().name("packds-progress".to_owned());
        let of_thread = Arc::clone(&shared);
        // If the thread cannot start, the work still runs, without progress.
        let thread = builder.spawn(move || of_thread.watch()).ok();
        Self { shared, thread, started: Instant::now(), _catching: catching }
    }

    /// Runs `work` and shows its progress. If the user stops the command, the process ends, so `work` must not need any
    /// cleanup.
    pub(crate) fn during<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.shared.begin(what, Amount::Unknown, Instant::now());
        let done = work();
        self.shared.idle();
        done
    }

    /// Runs work that checks [`cancelled`](Observer::cancelled) and cleans up by itself. From now on, stopping never
    /// ends the process, so completed work is still reported. `about` names what the work is a part of, such as a
    /// split. It may be empty.
    pub(crate) fn stoppable<T>(&self, what: &str, about: &str, work: impl FnOnce() -> T) -> T {
        {
            let mut now = lock(&self.shared.now);
            now.stops_itself = true;
            now.about = about.to_owned();
            now.phase = None;
        }
        self.during(what, work)
    }

    /// Shows the next step of a measurement: on a terminal instead of the last step, elsewhere on a separate line.
    pub(crate) fn step(&self, what: &str, amount: Amount) {
        self.shared.begin(what, amount, self.started);
        let line = lock(&self.shared.now).task.as_ref().map(Task::line).unwrap_or_default();
        self.shared.tell(&line);
    }

    /// Writes a line of another program. On a terminal, the progress line follows below it.
    pub(crate) fn above(&self, line: &[u8]) {
        let mut place = lock(&self.shared.place);
        place.clear();
        let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
        // If stderr is closed, the line is lost.
        let _ = io::stderr().write_all(&[line, end].concat());
        drop(place);
        self.shared.show();
    }

    pub(crate) fn reading(&self, source: &Path) {
        lock(&self.shared.now).source = escape_path(source);
    }

    pub(crate) fn report(&self, amount: Amount) {
        if let Some(task) = &mut lock(&self.shared.now).task {
            task.update(amount);
        }
    }

    /// Options for unpacking a source. Unpacking reports its progress here, and checks by itself whether to stop,
    /// because it must remove its temporary folder.
    pub(crate) fn unpacking(&self) -> Unpacking {
        let (shared, of_archive) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        let told = move |bytes| {
            if let Some(task) = &mut lock(&shared.now).task {
                "unpacking the source".clone_into(&mut task.what);
                task.update(Amount::Bytes(bytes));
            }
        };
        Unpacking::new(told).until(move || {
            lock(&of_archive.now).stops_itself = true;
            interrupt::caught().is_some()
        })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        lock(&self.shared.now).is_over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread, because only progress is lost.
            let _ = thread.join();
        }
        self.shared.idle();
    }
}

impl Shared {
    /// Writes a line to a file or pipe. A terminal shows the task instead.
    fn tell(&self, what: &str) {
        if let Place::Lines(last) = &mut *lock(&self.place) {
            *last = Instant::now();
            note(what);
        }
    }

    /// Starts a task and shows it immediately.
    fn begin(&self, what: &str, amount: Amount, since: Instant) {
        {
            let mut now = lock(&self.now);
            let what = match now.about.as_str() {
                "" => what.to_owned(),
                about => format!("{about}: {what}"),
            };
            now.task = Some(Task::new(what, amount, since));
        }
        self.show();
    }

    /// Clears the line, so that the terminal is free for results.
    fn idle(&self) {
        let mut place = lock(&self.place);
        lock(&self.now).task = None;
        place.clear();
    }

    fn show(&self) {
        let mut place = lock(&self.place);
        let Some(task) = lock(&self.now).task.clone() else { return };
        match &mut *place {
            Place::Terminal(line) if interrupt::caught().is_some() => line.draw("stopping"),
            Place::Terminal(line) => line.draw(&task.bar(columns())),
            Place::Lines(last) if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                note(&task.line());
            }
            Place::Lines(_) | Place::Nowhere => {}
        }
    }

    fn watch(&self) {
        loop {
            let now = lock(&self.now);
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

    /// Reports a stall, so that the user can see which task is stuck.
    fn note_standstill(&self) {
        let mut place = lock(&self.place);
        let mut now = lock(&self.now);
        let Some(text) = now.task.as_mut().and_then(Task::standstill) else { return };
        place.clear();
        match now.source.as_str() {
            "" => note(&text),
            source => note(&format!("{text}, reading {source}")),
        }
    }

    /// Ends the process if the user asked to stop and the work does not check for that.
    fn end_if_stopped(&self) {
        let Some(exit) = interrupt::caught() else { return };
        let mut place = lock(&self.place);
        // While this lock is held, work that needs cleanup cannot start.
        let now = lock(&self.now);
        if now.stops_itself {
            return;
        }
        place.clear();
        note("interrupted");
        interrupt::end_process(exit);
    }
}

fn note(text: &str) {
    // If stderr is closed, the line is lost.
    let _ = writeln!(io::stderr(), "packds: {text}");
}

impl Observer for Shown {
    fn progress(&self, progress: Progress) {
        let amount = match progress.phase {
            Phase::Sync => Amount::Unknown,
            phase => {
                // The source of an export has samples, which may not be images.
                let thing = match phase {
                    Phase::Export | Phase::Copy => "sample",
                    Phase::ReadShards => "shard",
                    _ => "image",
                };
                Amount::Of { done: progress.samples, total: progress.total, thing, bytes: progress.bytes_in }
            }
        };
        let before = lock(&self.shared.now).phase.replace(progress.phase);
        if before == Some(progress.phase) {
            return self.report(amount);
        }
        let what = match progress.phase {
            Phase::Plan => "planning",
            Phase::Convert => "converting",
            Phase::Measure => "measuring mean and std",
            Phase::Export => "exporting",
            Phase::Copy => "copying",
            Phase::ReadShards => "reading shards",
            Phase::FindFirst => "found a bad image; searching for the first one",
            Phase::Sync => "writing to disk",
            _ => "working",
        };
        self.shared.begin(what, amount, Instant::now());
    }

    fn cancelled(&self) -> bool {
        interrupt::caught().is_some()
    }
}

/// A benchmark removes its files by itself, so it must run in [`Shown::stoppable`].
impl Watcher for Shown {
    fn part(&self, what: &str) {
        self.shared.tell(what);
    }

    fn cell(&self, what: &str, done: u64, total: u64) {
        self.shared.begin(what, Amount::Steps { done, total }, self.started);
    }

    fn cancelled(&self) -> bool {
        interrupt::caught().is_some()
    }
}
