//! Where a command's words go.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// The two streams of a command and what is known about them.
pub(crate) struct Console<'a> {
    /// Results, buffered.
    pub(crate) out: &'a mut dyn Write,
    /// Everything else: progress, warnings, errors.
    pub(crate) err: &'a mut dyn Write,
    /// Whether the result is to be one JSON document.
    pub(crate) json: bool,
    /// Whether a person sees `out`.
    pub(crate) out_is_terminal: bool,
    /// Whether a person sees `err`, and lines can be drawn again there: bars are shown only then.
    pub(crate) err_is_terminal: bool,
}

impl Console<'_> {
    /// Writes the one document of `--json`.
    pub(crate) fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Writes a line about something that is not the result.
    pub(crate) fn note(&mut self, line: &str) {
        // Where stderr is closed there is nobody to tell.
        let _ = writeln!(self.err, "packds: {line}");
    }
}
