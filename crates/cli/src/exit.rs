//! How the command ended. Who is stopped by a signal ends with 128 and its number, as shells have it.

use std::process::ExitCode;

/// How the command ended; its number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing is wrong.
    Done = 0,
    /// The data is not right: a damaged pack, a bad input file, samples skipped.
    BadData = 1,
    /// Could not run: wrong arguments, a missing source, an output that exists.
    NotRun = 2,
    /// The terminal was closed (SIGHUP).
    HungUp = 129,
    /// The user pressed Ctrl-C (SIGINT).
    Interrupted = 130,
    /// Somebody ended the command (SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
