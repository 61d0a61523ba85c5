//! The other library's reader: a program in Python, which always ends with the command.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use packds_convert::Observer;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use crate::escape::lossy;
use crate::failure::Failure;
use crate::piped::lines;
use crate::progress::Shown;

/// Reads samples with the library of their format.
const SCRIPT: &str = include_str!("compare.py");
const LOOK: Duration = Duration::from_millis(50);
/// Maximum number of looks for the end of a program that closed its output.
const PATIENCE: u32 = 40;

/// The running program.
pub(super) struct Reader {
    child: Child,
    lines: Receiver<Vec<u8>>,
    errors: Receiver<Vec<u8>>,
    /// The last line of stderr.
    last: String,
}

/// A line of the program.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Said {
    /// The library is not installed.
    Missing {
        missing: String,
        python: String,
    },
    Opened {
        library: String,
        version: Option<String>,
        n_samples: u64,
    },
    /// A field that is not compared.
    Skipped {
        field: String,
        skipped: String,
    },
    /// A value, by the number of its sample in the source. It may be described in several ways.
    Value {
        sample: u64,
        field: String,
        values: Vec<String>,
    },
    Done {
        #[serde(rename = "done")]
        _done: bool,
    },
}

impl Reader {
    /// Starts the program with a request.
    pub(super) fn start(python: &Path, request: String) -> std::io::Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let none = || std::io::Error::other("no pipe");
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, stdout, stderr) = match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => (stdin, stdout, stderr),
            _ => return Err(none()),
        };
        let reader = Self { child, lines: lines(stdout)?, errors: lines(stderr)?, last: String::new() };
        // If the program ends before it has read the request, its exit is reported.
        let write = move || drop(stdin.write_all(request.as_bytes()));
        thread::Builder::new().name("packds-request".to_owned()).spawn(write)?;
        Ok(reader)
    }

    /// The next line.
    ///
    /// # Errors
    /// If the user stops the command, or if the program has ended or prints something else.
    pub(super) fn next(&mut self, shown: &Shown) -> Result<Said, Failure> {
        let mut has_ended = false;
        loop {
            if shown.cancelled() {
                return Err(Failure::interrupted("interrupted; the pack is complete, but not compared"));
            }
            let line = self.lines.recv_timeout(LOOK);
            self.take_errors();
            match line {
                Ok(line) => {
                    let found = || self.failed(&format!("printed `{}`", lossy(line.trim_ascii())));
                    return serde_json::from_slice(&line).map_err(|_| found());
                }
                // Another process may hold the pipe after the program has ended.
                Err(RecvTimeoutError::Timeout) if !has_ended => has_ended = self.child.try_wait()?.is_some(),
                Err(_) => return Err(self.ended()?),
            }
        }
    }

    /// The failure of a program that closed its output too early. It may take a moment to exit.
    fn ended(&mut self) -> Result<Failure, Failure> {
        let mut status = self.child.try_wait()?;
        for _ in 0..PATIENCE {
            thread::sleep(LOOK);
            status = status.or(self.child.try_wait()?);
            if status.is_some() {
                break;
            }
        }
        self.take_errors();
        let status = status.map_or("it still runs".to_owned(), |status| status.to_string());
        Ok(self.failed(&format!("stopped too early ({status})")))
    }

    /// Takes the lines of stderr, so that the program never waits for this.
    fn take_errors(&mut self) {
        while let Ok(line) = self.errors.try_recv() {
            let line = lossy(line.trim_ascii());
            if !line.is_empty() {
                self.last = line;
            }
        }
    }

    pub(super) fn failed(&self, what: &str) -> Failure {
        let last = if self.last.is_empty() { String::new() } else { format!(": {}", self.last) };
        let hint = "the pack is complete; pass --samples 0 to omit the comparison, or --python for another interpreter";
        Failure::not_run(format!("cannot compare: the reader in Python {what}{last}")).hint(hint)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The group may have exited already.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
