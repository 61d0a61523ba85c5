//! Why a command stopped, as it is told to the user: once, on stderr.

use std::io;
use std::path::{Path, PathBuf};

use packds_bench::BenchError;
use packds_convert::{ConvertError, hint_of_writing};
use packds_reader::ReadError;
use packds_reader::loader::LoadError;
use serde_json::json;

use crate::console::Console;
use crate::escape::escape_path;
use crate::exit::Exit;
use crate::interrupt;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// The file it is about.
    path: Option<PathBuf>,
    message: String,
    hint: Option<String>,
    /// The reader of stdout has gone: not an error, nothing to tell.
    broken_pipe: bool,
    /// The document of `--json` is written already.
    told: bool,
}

impl Failure {
    /// The data is not right.
    pub(crate) fn bad_data(message: impl ToString) -> Self {
        Self {
            exit: Exit::BadData,
            path: None,
            message: message.to_string(),
            hint: None,
            broken_pipe: false,
            told: false,
        }
    }

    /// The command could not run.
    pub(crate) fn not_run(message: impl ToString) -> Self {
        Self {
            exit: Exit::NotRun,
            ..Self::bad_data(message)
        }
    }

    /// The user stopped the command.
    pub(crate) fn interrupted(message: impl ToString) -> Self {
        Self {
            exit: interrupt::caught().unwrap_or(Exit::Interrupted),
            ..Self::bad_data(message)
        }
    }

    /// A file could not be written.
    pub(crate) fn write(path: &Path, error: &io::Error) -> Self {
        let failure = Self::not_run(format!("cannot write: {error}")).at(path);
        match hint_of_writing(error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// The same, about this file.
    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The same, about this file, which its message begins with: there it is not said twice.
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

    /// The same, with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, whose document of `--json` is written already.
    pub(crate) fn told(mut self) -> Self {
        self.told = true;
        self
    }

    /// Whether the reader of stdout has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// Message and hint as one text.
    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Tells the user, and how the command ends.
    pub(crate) fn report(&self, console: &mut Console) -> Exit {
        if self.broken_pipe {
            return Exit::Done;
        }
        if console.json && !self.told {
            let error = json!({
                "path": self.path.as_deref().map(escape_path),
                "message": self.message,
                "hint": self.hint,
            });
            // What could not be told on stdout is told on stderr just below.
            let _ = console.document(&json!({ "error": error }));
        }
        let _ = console.out.flush();
        let path = self.path.as_deref().map(escape_path);
        match path {
            Some(path) => console.note(&format!("{path}: {}", self.message)),
            None => console.note(&self.message),
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(console.err, "\nhint: {hint}");
        }
        self.exit
    }
}

/// Writing to the console failed. Errors of other files carry their path, see [`Failure::write`].
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
        let failure = if error.is_data() {
            Self::bad_data(error.reason())
        } else {
            Self::not_run(error.reason())
        };
        let failure = failure.at(error.path());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
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
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The file that a conversion's error begins with, if it is about one.
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

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Convert(error) => error.into(),
            BenchError::Read(error) => error.into(),
            BenchError::Load(LoadError::Read(error)) => error.into(),
            BenchError::Io { path, source } => Self::not_run(source).at(&path),
            BenchError::Pixels { path, source } => Self::not_run(source).at(&path),
            BenchError::BatchTooLarge { largest, .. } => {
                let hint = format!(
                    "--batch {largest} or less: a wait is measured where an epoch has two batches"
                );
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
