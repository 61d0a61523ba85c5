//! The streams that a command writes to.

use std::io::{self, Write};

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// The output streams of a command, and how to write to them.
pub(crate) struct Console<'a> {
    /// Results, buffered.
    pub(crate) out: &'a mut dyn Write,
    /// Everything else: progress, warnings, errors.
    pub(crate) err: &'a mut dyn Write,
    /// Whether the result is printed as one JSON document.
    pub(crate) json: bool,
    pub(crate) out_is_terminal: bool,
    /// Whether `err` is a terminal that can redraw a line. Progress bars need one.
    pub(crate) err_is_terminal: bool,
}

impl Console<'_> {
    pub(crate) fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Writes the result: its document with `--json`, otherwise its text.
    pub(crate) fn result<T: Serialize>(
        &mut self,
        document: impl FnOnce() -> T,
        text: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        if self.json {
            self.document(&document())?
        } else {
            text(self)?
        }
        Ok(Exit::Done)
    }

    /// Writes a line that is not part of the result.
    pub(crate) fn note(&mut self, line: &str) {
        // stderr may be closed; then the line is lost.
        let _ = writeln!(self.err, "packds: {line}");
    }
}
