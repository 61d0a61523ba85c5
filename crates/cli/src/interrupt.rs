//! Signals that stop a command: SIGINT (Ctrl-C), SIGTERM, SIGHUP. Their state is global to the process.
//!
//! `progress` decides what a command does when stopped. If it takes long, a second Ctrl-C or SIGTERM ends the process.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use packds_system::{read_regular, unfinished};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals as Arriving;
use signal_hook::{flag, low_level};

use crate::escape::escape_path;
use crate::exit::Exit;
use crate::terminal_line::clear_line;

/// The signals that stop a command, and their exit codes.
const STOPPING: [(i32, Exit); 3] = [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated), (SIGHUP, Exit::HungUp)];

/// Time in which a command should stop by itself. Only later signals end it immediately, because users often press
/// Ctrl-C twice.
const PATIENCE: Duration = Duration::from_secs(2);

/// State of the signals in this process.
#[derive(Default)]
struct Signals {
    /// Whether signals have their default action, which ends the process.
    is_over: Arc<AtomicBool>,
    /// The exit code for the last signal that was caught. 0 if there was none.
    exit_code: Arc<AtomicUsize>,
}

static SIGNALS: LazyLock<Signals> = LazyLock::new(Signals::register);

impl Signals {
    fn register() -> Self {
        let signals = Self { is_over: Arc::new(AtomicBool::new(true)), ..Self::default() };
        let ignored = ignored_signals();
        for (signal, exit) in STOPPING {
            // `nohup` and shells make background commands ignore some signals. Those signals must remain ignored.
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let Self { is_over, exit_code } = &signals;
            let code = exit.code();
            // If a handler cannot be installed, the signal keeps its default action, which ends the process.
            let _ = flag::register_conditional_default(signal, Arc::clone(is_over));
            let _ = flag::register_usize(signal, Arc::clone(exit_code), code.into());
        }
        // A closed terminal often sends SIGHUP twice, so SIGHUP never ends the process.
        let ending = [SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        if let Ok(arriving) = Arriving::new(ending) {
            // If the thread cannot start, only the work itself can stop the command.
            let _ =
                thread::Builder::new().name("packds-signals".to_owned()).spawn(move || end_if_asked_again(arriving));
        }
        signals
    }
}

/// Ends the process if the user asks again, and names what is left.
fn end_if_asked_again(mut arriving: Arriving) {
    let mut first = None;
    for _ in arriving.forever() {
        let first = first.get_or_insert_with(Instant::now);
        if let Some(exit) = caught().filter(|_| first.elapsed() >= PATIENCE) {
            if io::stderr().is_terminal() {
                clear_line();
            }
            let left: Vec<String> = unfinished().iter().map(|path| escape_path(path)).collect();
            let left = if left.is_empty() { String::new() } else { format!("; left behind: {}", left.join(", ")) };
            // If stderr is closed, the line is lost.
            let _ = writeln!(io::stderr(), "packds: ended before it could stop{left}");
            end_process(exit);
        }
    }
}

/// While this guard lives, signals that stop a command are caught. Guards may be nested.
#[must_use]
pub(crate) struct Catching {
    /// Whether the default action applied before.
    was_over: bool,
}

/// Catches the signals that stop a command. [`caught`] returns the last one.
pub(crate) fn catch() -> Catching {
    Catching { was_over: SIGNALS.is_over.swap(false, Ordering::Relaxed) }
}

impl Drop for Catching {
    fn drop(&mut self) {
        SIGNALS.is_over.store(self.was_over, Ordering::Relaxed);
    }
}

/// The exit code, if the user stopped the command.
pub(crate) fn caught() -> Option<Exit> {
    let code = SIGNALS.exit_code.load(Ordering::Relaxed);
    let mut exits = STOPPING.into_iter().map(|(_, exit)| exit);
    exits.find(|exit| usize::from(exit.code()) == code)
}

/// Ends the process immediately, without waiting for other threads. The caller must have cleaned up.
pub(crate) fn end_process(exit: Exit) -> ! {
    low_level::exit(i32::from(exit.code()))
}

/// Turns exceeding the file size limit (`ulimit -f`) into a write error. By default the signal ends the process.
pub(crate) fn refuse_large_files() {
    // A caught signal does not end the process. Instead, the failing call returns an error.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Mask of the signals that this process ignores: signal `n` is bit `n - 1`. 0 if the system does not report it.
fn ignored_signals() -> u64 {
    let status = read_regular(Path::new("/proc/self/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
