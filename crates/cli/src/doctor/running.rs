//! Runs a training command, shows its output above the progress line, and always stops it in the end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use packds_reader::loader::JOURNAL;
use rustix::process::{Pid, Signal, kill_process_group};

use super::training::{Journal, Line, is_enough};
use crate::failure::Failure;
use crate::interrupt;
use crate::piped::lines;
use crate::progress::Shown;

/// Maximum runtime of the command, including its startup.
const LONGEST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// Time that the command has to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// The training command and all its child processes. They are stopped on drop.
pub(super) struct Running<'a> {
    child: Child,
    output: Option<Output<'a>>,
}

/// The lines that the command prints, and the progress line above which they appear.
struct Output<'a> {
    lines: Receiver<Vec<u8>>,
    shown: &'a Shown,
}

impl<'a> Running<'a> {
    /// Starts the command. `shown` is the progress line that its output must not disturb, if there is one.
    pub(super) fn start(command: &[OsString], journal: &Journal, shown: Option<&'a Shown>) -> Result<Self, Failure> {
        let Some((program, args)) = command.split_first() else {
            return Err(Failure::not_run("no command after --"));
        };
        let failed = |error| Failure::not_run(format!("cannot run the command: {error}")).at(program.as_ref());
        let mut command = Command::new(program);
        command.args(args).env(JOURNAL, journal.path()).stdin(Stdio::null()).process_group(0);
        // Only the report may go to stdout.
        let output = match shown {
            None => {
                command.stdout(io::stderr());
                None
            }
            Some(shown) => {
                let (reader, writer) = io::pipe().map_err(failed)?;
                command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
                // Without this, Python would buffer its output until it exits.
                command.env("PYTHONUNBUFFERED", "1");
                Some(Output { lines: lines(reader).map_err(failed)?, shown })
            }
        };
        let child = command.spawn().map_err(failed)?;
        Ok(Self { child, output })
    }

    /// Waits until the journal has enough data, the command exits, or time is up. The caller must catch signals: Ctrl-C
    /// does not reach the command, because it has its own process group.
    pub(super) fn watch(mut self, journal: &Journal, uuid: &str) -> Result<(Vec<Line>, Option<ExitStatus>), Failure> {
        let started = Instant::now();
        while started.elapsed() < LONGEST {
            let ended = self.child.try_wait()?;
            let lines = journal.lines();
            if ended.is_some() || is_enough(&lines, uuid) {
                return Ok((lines, ended));
            }
            if interrupt::caught().is_some() {
                return Err(Failure::interrupted("interrupted"));
            }
            self.wait();
        }
        Ok((journal.lines(), None))
    }

    /// Waits for a moment, and shows what the command prints in the meantime.
    fn wait(&self) {
        let until = Instant::now() + LOOK;
        if let Some(Output { lines, shown }) = &self.output {
            while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                shown.above(&line);
            }
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }

    fn send(&self, signal: Signal) {
        // The group may have exited already.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.send(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            self.wait();
        }
        self.send(Signal::KILL);
        // The process has exited or is exiting.
        let _ = self.child.wait();
        // Shows the last lines.
        self.wait();
    }
}
