//! The streams that a command writes to.

use std::io::{self, IsTerminal, Write};

use clap::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use crate::escape::escape;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::prose::Prose;
use crate::terminal_line::columns_of;

/// The output streams of a command, and how to write to them.
pub(crate) struct Console<'a> {
    /// Results, buffered.
    pub(crate) out: &'a mut dyn Write,
    /// Everything else: progress, warnings, errors.
    pub(crate) err: &'a mut dyn Write,
    /// Whether the result is printed as one JSON document.
    pub(crate) json: bool,
    pub(crate) detail: Detail,
    pub(crate) out_is_terminal: bool,
    /// Whether `err` is a terminal that can redraw a line. Progress bars need one.
    pub(crate) err_is_terminal: bool,
    /// Whether errors and warnings are coloured.
    pub(crate) is_colored: bool,
}

/// How much to print on success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Results, warnings and errors only.
    Quiet,
    Summary,
    Verbose,
}

/// Whether output to this stream is coloured. By default, it is if the stream is a terminal that can show colours and
/// NO_COLOR is not set.
pub(crate) fn is_colored(choice: ColorChoice, stream: &impl IsTerminal) -> bool {
    let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => stream.is_terminal() && !is_dumb() && !has_no_color,
    }
}

/// Whether the terminal can neither redraw a line nor show colours.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
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

    /// Writes lines of the result. On a terminal, they are wrapped between words.
    pub(crate) fn prose(&mut self) -> Prose<'_> {
        let columns = self.columns();
        Prose::new(self.out, columns)
    }

    /// The width of the terminal that shows the result. `usize::MAX` if there is none.
    pub(crate) fn columns(&self) -> usize {
        if self.out_is_terminal { columns_of(io::stdout()) } else { usize::MAX }
    }

    pub(crate) fn error(&mut self, message: &str) {
        self.marked("error:", AnsiColor::Red.on_default(), message);
    }

    pub(crate) fn warn(&mut self, message: &str) {
        self.marked("warning:", AnsiColor::Yellow.on_default(), message);
    }

    fn marked(&mut self, mark: &str, style: Style, message: &str) {
        let (style, message) = (style.bold(), escape(message));
        if self.is_colored {
            self.note(&format!("{style}{mark}{style:#} {message}"));
        } else {
            self.note(&format!("{mark} {message}"));
        }
    }

    /// Prints what the command is doing.
    pub(crate) fn doing(&mut self, what: &str) {
        if self.detail > Detail::Quiet {
            self.note(what);
        }
    }

    /// Writes a line that is not part of the result. On a terminal, it is wrapped between words.
    pub(crate) fn note(&mut self, line: &str) {
        // If stderr is closed, the line is lost.
        let columns = if self.err_is_terminal { columns_of(io::stderr()) } else { usize::MAX };
        let _ = writeln!(Prose::new(self.err, columns), "packds: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_message_do_not_reach_the_terminal() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            json: false,
            detail: Detail::Quiet,
            out_is_terminal: false,
            err_is_terminal: false,
            is_colored: false,
        };
        let failure = Failure::not_run("field `\x1b[31mX`").hint("rename `\x1b[31mX`");
        failure.report(&mut console);
        console.warn("a\nb");
        let expected = "packds: error: field `\\u{1b}[31mX`\n\nhint: rename `\\u{1b}[31mX`\npackds: warning: a\\nb\n";
        assert_eq!(String::from_utf8(err).unwrap(), expected);
    }
}
