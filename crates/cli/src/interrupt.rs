//! How the user stops a command: Ctrl-C (SIGINT), SIGTERM, SIGHUP. Which of them came is one fact for the whole process.
//!
//! Not for what a command does then: see `progress`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use packds_system::read_regular;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::exit::Exit;

/// The signals that stop a command, and how it ends then.
const STOPPING: [(i32, Exit); 3] = [
    (SIGINT, Exit::Interrupted),
    (SIGTERM, Exit::Terminated),
    (SIGHUP, Exit::HungUp),
];

/// What is known of the signals of this process.
#[derive(Default)]
struct Signals {
    /// Whether they do what they do by default.
    is_over: Arc<AtomicBool>,
    /// Whether one came.
    is_second: Arc<AtomicBool>,
    /// The exit code that the last one asks for; 0 where none came.
    asked: Arc<AtomicUsize>,
}

static SIGNALS: LazyLock<Signals> = LazyLock::new(Signals::register);

impl Signals {
    fn register() -> Self {
        let signals = Self::default();
        let ignored = ignored_signals();
        for (signal, exit) in STOPPING {
            // `nohup` and shells that start commands in the background ignore signals for them: it stays so.
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let Self {
                is_over,
                is_second,
                asked,
            } = &signals;
            let code = exit.code();
            // Where a signal cannot be caught, it keeps its default: the process ends.
            let _ = flag::register_conditional_default(signal, Arc::clone(is_over));
            let _ = flag::register_conditional_shutdown(signal, code.into(), Arc::clone(is_second));
            let _ = flag::register(signal, Arc::clone(is_second));
            let _ = flag::register_usize(signal, Arc::clone(asked), code.into());
        }
        signals
    }
}

/// Signals that stop a command are caught while this is there.
#[must_use]
pub(crate) struct Catching(());

/// Catches the signals that stop a command: [`caught`] tells of the first, the second ends the process at once.
pub(crate) fn catch() -> Catching {
    SIGNALS.is_over.store(false, Ordering::Relaxed);
    Catching(())
}

impl Drop for Catching {
    fn drop(&mut self) {
        SIGNALS.is_over.store(true, Ordering::Relaxed);
    }
}

/// How the command is to end, if the user stopped it.
pub(crate) fn caught() -> Option<Exit> {
    let code = SIGNALS.asked.load(Ordering::Relaxed);
    let mut exits = STOPPING.into_iter().map(|(_, exit)| exit);
    exits.find(|exit| usize::from(exit.code()) == code)
}

/// Ends the process at once, whatever its other threads do: nothing of it may be left to clean up.
pub(crate) fn end_process(exit: Exit) -> ! {
    low_level::exit(i32::from(exit.code()))
}

/// Makes writing more than the allowed size of files (`ulimit -f`) an error, instead of a signal that ends the process.
pub(crate) fn refuse_large_files() {
    // What is caught ends no process, and the call that writes then says why it failed.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// The signals that this process ignores: signal `n` is bit `n - 1`. None where the system does not tell.
fn ignored_signals() -> u64 {
    let status = read_regular(Path::new("/proc/self/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
