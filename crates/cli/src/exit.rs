//! Exit codes. As in shells, a command stopped by signal N exits with 128 + N.

use std::process::ExitCode;

/// How the command ended. The discriminant is the exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The command succeeded.
    #[default]
    Done = 0,
    /// The data is bad: for example a damaged pack, a bad input file, or skipped samples. Or `diff` found a
    /// difference.
    BadData = 1,
    /// The command could not run: for example invalid arguments, a missing source, or an output that already exists.
    NotRun = 2,
    /// The terminal was closed (SIGHUP).
    HungUp = 129,
    /// The user pressed Ctrl-C (SIGINT).
    Interrupted = 130,
    /// The process was terminated (SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether a signal stopped the command.
    pub(crate) fn is_stopped(self) -> bool {
        matches!(self, Self::HungUp | Self::Interrupted | Self::Terminated)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
