//! Errors of a command, reported once, on stderr.

use std::io;
use std::path::{Path, PathBuf};

use packds_bench::BenchError;
use packds_convert::{ConvertError, hint_of_writing};
use packds_reader::ReadError;
use packds_reader::loader::LoadError;
use packds_reader::plan::PlanError;
use packds_report::DrawError;
use serde_json::json;

use crate::console::Console;
use crate::escape::{escape, escape_path};
use crate::exit::Exit;
use crate::human::counted;
use crate::interrupt;

#[derive(Debug, Default)]
pub(crate) struct Failure {
    exit: Exit,
    path: Option<PathBuf>,
    message: String,
    hint: Option<String>,
    /// Whether the reader of stdout has closed the pipe. This is not an error and is not reported.
    broken_pipe: bool,
    /// Whether the document of `--json` is already written.
    is_printed: bool,
}

impl Failure {
    pub(crate) fn bad_data(message: impl ToString) -> Self {
        Self { exit: Exit::BadData, message: message.to_string(), ..Self::default() }
    }

    pub(crate) fn not_run(message: impl ToString) -> Self {
        Self { exit: Exit::NotRun, ..Self::bad_data(message) }
    }

    /// The failure of a command that the user stopped.
    pub(crate) fn interrupted(message: impl ToString) -> Self {
        Self { exit: interrupt::caught().unwrap_or(Exit::Interrupted), ..Self::bad_data(message) }
    }

    pub(crate) fn write(path: &Path, error: &io::Error) -> Self {
        Self::not_run(format!("cannot write: {error}")).at(path).hint_if(hint_of_writing(error))
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Sets the file that the error is about if the message begins with its path, and removes the path from the
    /// message.
    fn named(mut self, path: &Path) -> Self {
        let start = format!("{}: ", path.display());
        match self.message.strip_prefix(&start) {
            Some(rest) => {
                self.message = rest.to_owned();
                self.at(path)
            }
            None => self,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }

    /// The failure of a command whose exit code 1 is a result: bad data is why it could not run.
    pub(crate) fn instead_of_a_result(self) -> Self {
        let exit = if self.exit == Exit::BadData { Exit::NotRun } else { self.exit };
        Self { exit, ..self }
    }

    /// Marks the document of `--json` as written.
    pub(crate) fn printed(mut self) -> Self {
        self.is_printed = true;
        self
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// Whether to stop instead of continuing with the other packs.
    pub(crate) fn ends_all(&self) -> bool {
        self.broken_pipe || self.exit.is_stopped()
    }

    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn report(&self, console: &mut Console) -> Exit {
        if self.broken_pipe {
            return Exit::Done;
        }
        if console.json && !self.is_printed {
            let error = json!({
                "path": self.path.as_deref().map(escape_path),
                "message": self.message,
                "hint": self.hint,
            });
            // If writing to stdout fails, the message still goes to stderr below.
            let _ = console.document(&json!({ "error": error }));
        }
        // If writing to stdout fails, the message is still printed.
        let _ = console.out.flush();
        let message = match &self.path {
            Some(path) => format!("{}: {}", escape_path(path), self.message),
            None => self.message.clone(),
        };
        // A command that the user stopped has not failed.
        if self.exit.is_stopped() {
            console.note(&message);
        } else {
            console.error(&message);
        }
        if let Some(hint) = &self.hint {
            // If stderr is closed, the hint is lost.
            let _ = writeln!(console.err, "\nhint: {}", escape(hint));
        }
        self.exit
    }
}

impl From<DrawError> for Failure {
    fn from(error: DrawError) -> Self {
        let failure = Self::not_run(&error);
        match error {
            DrawError::SheetTooLarge { .. } => failure.hint("show fewer samples, or pass a smaller --size"),
            _ => failure,
        }
    }
}

/// An error while writing the result. Errors about other files have a path; see [`Failure::write`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::not_run(format!("cannot write the result: {error}"))
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let failure = if error.is_data() { Self::bad_data(error.reason()) } else { Self::not_run(error.reason()) };
        failure.at(error.path()).hint_if(error.hint())
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        let failure = match &error {
            ConvertError::Interrupted => Self::interrupted(&error),
            error if error.is_data() => Self::bad_data(error),
            error => Self::not_run(error),
        };
        let failure = match path_of(&error) {
            Some(path) => failure.named(path),
            None => failure,
        };
        failure.hint_if(error.hint())
    }
}

/// The path with which the message of a conversion error begins, if the error is about a file.
fn path_of(error: &ConvertError) -> Option<&Path> {
    use ConvertError as E;
    match error {
        E::SourceMissing { path }
        | E::UnknownFormat { path, .. }
        | E::FormatLeftOut { path, .. }
        | E::SourceMalformed { path, .. }
        | E::KeyMissing { path, .. }
        | E::SourceUnsupported { path, .. }
        | E::Spool { folder: path, .. }
        | E::EmptySource { path, .. }
        | E::OnlySplits { path, .. }
        | E::Parts { path, .. }
        | E::SeveralSplits { path, .. }
        | E::SplitMissing { path, .. }
        | E::UnreadableDirectory { path, .. }
        | E::SymlinkLoop { path, .. }
        | E::ManifestMalformed { path, .. }
        | E::ManifestColumnMissing { path, .. }
        | E::ManifestPathEscapes { path, .. }
        | E::BadSample { path, .. }
        | E::NothingLeft { path, .. }
        | E::OutputExists { path }
        | E::OutputFolderFull { path }
        | E::OutputIsFile { path }
        | E::OutputNotRegular { path, .. }
        | E::OutputIsFolder { path }
        | E::OutputFolderMissing { path, .. }
        | E::OutputNotWritable { path, .. }
        | E::OutputBusy { path }
        | E::Io { path, .. } => Some(path),
        _ => None,
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            // The library also suggests padding the last batch, but the command has no option for this.
            PlanError::NoBatch { samples, batch } => {
                let (batch, samples) = (counted(batch, "sample"), counted(samples, "sample"));
                Self::not_run(format!("no whole batch: expected at least {batch}, found {samples}"))
                    .hint("use a smaller --batch")
            }
            other => Self::not_run(other),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Convert(error) => error.into(),
            BenchError::Read(error) => error.into(),
            BenchError::Load(LoadError::Read(error)) => error.into(),
            BenchError::Load(LoadError::Plan(error)) | BenchError::Plan(error) => error.into(),
            BenchError::Io { path, source } => Self::not_run(source).at(&path),
            BenchError::Pixels { path, source } => Self::not_run(source).at(&path),
            BenchError::BatchTooLarge { largest, .. } => {
                let hint = format!("pass --batch {largest} or less: measuring the wait needs two batches per epoch");
                Self::not_run(error).hint(hint)
            }
            error @ BenchError::Disagree { .. } => Self::bad_data(error),
            error @ BenchError::Interrupted => Self::interrupted(error),
            other => Self::not_run(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_source_is_named_once_and_as_the_path() {
        let path = PathBuf::from("no/such");
        let failure = Failure::from(ConvertError::SourceMissing { path: path.clone() });
        assert_eq!(failure.path, Some(path));
        assert_eq!(failure.message, "no such file or folder");
    }
}
