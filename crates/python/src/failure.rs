//! Converts errors of the crates to exceptions of the Python package.

use std::io::ErrorKind;
use std::path::Path;

use packds_convert::{ConvertError, SampleError};
use packds_format::FormatError;
use packds_reader::ReadError;
use packds_reader::augment::AugmentError;
use packds_reader::loader::LoadError;
use packds_reader::plan::PlanError;
use pyo3::prelude::*;

/// An error in code that runs without the GIL.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A pack cannot be read, or is damaged.
    Read(ReadError),
    /// A loader cannot be made, or a batch cannot be delivered.
    Load(LoadError),
    /// A conversion or an export failed.
    Convert(ConvertError),
    /// The system could not start a thread.
    Thread(std::io::Error),
    /// The request is invalid.
    Option(String),
    /// The data is invalid. The message says where.
    Damaged(String),
}

impl Failure {
    /// The failure for conversion options that are invalid or contradict each other.
    pub(crate) fn refused(error: &ConvertError) -> Self {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        Self::Option(format!("{error}{hint}"))
    }

    /// The class of the exception, in `packds._errors`.
    fn class(&self) -> &'static str {
        match self {
            Self::Read(error) | Self::Load(LoadError::Read(error)) => of_read(error),
            Self::Load(error) => of_load(error),
            Self::Convert(error) if missing_in(error).is_some() => "SourceNotFoundError",
            Self::Convert(_) => "ConvertError",
            Self::Thread(_) => "Error",
            Self::Option(_) => "OptionError",
            Self::Damaged(_) => "FormatError",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Read(error) => error.to_string(),
            // The part of the message that says what to do becomes the hint.
            Self::Load(LoadError::OnDevice { why, .. }) => why.clone(),
            Self::Load(error) => error.to_string(),
            Self::Convert(error) => error.to_string(),
            Self::Thread(error) => format!("cannot start a thread: {error}"),
            Self::Option(text) | Self::Damaged(text) => text.clone(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) | Self::Load(LoadError::Read(error)) => error.hint().map(str::to_owned),
            Self::Convert(error) => error.hint(),
            Self::Thread(_) | Self::Load(LoadError::Thread(_)) => Some(MORE_THREADS.to_owned()),
            Self::Load(LoadError::Plan(PlanError::NoBatch { .. })) => {
                Some("use drop_last=False, or a smaller batch_size".to_owned())
            }
            Self::Load(LoadError::OnDevice { remedy, .. }) => Some(remedy.to_string()),
            Self::Load(LoadError::OtherClasses { .. }) => Some(
                "convert the sources as splits of one folder with split='all', pass the same classes= to `write` and `from_dataset`, or list the other fields with fields=".to_owned(),
            ),
            Self::Load(LoadError::Forked { .. }) => {
                Some("start another iteration: it starts threads in this process".to_owned())
            }
            _ => None,
        }
    }

    /// The error number and the file, if this is a system error about a file.
    fn of_system(&self) -> Option<(i32, &Path)> {
        match self {
            Self::Read(error) | Self::Load(LoadError::Read(error)) => match error {
                ReadError::Open { path, source } | ReadError::Read { path, source, .. } => {
                    Some((source.raw_os_error()?, path))
                }
                _ => None,
            },
            Self::Convert(error) => Some((NO_SUCH_FILE, missing_in(error)?)),
            _ => None,
        }
    }

    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        self.made(py).map_or_else(|error| error, PyErr::from_value)
    }

    fn made<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = py.import("packds._errors")?.getattr(self.class())?;
        let error = class.call1((self.text(), self.hint()))?;
        if let Some((number, path)) = self.of_system() {
            error.setattr("errno", number)?;
            error.setattr("filename", path.as_os_str())?;
        }
        Ok(error)
    }
}

const MORE_THREADS: &str =
    "stop other programs, or allow more threads: `ulimit -u`, and the `pids` limit of a container";

/// `ENOENT`.
const NO_SUCH_FILE: i32 = 2;

/// The missing file: the source of a conversion, or a file that it names.
fn missing_in(error: &ConvertError) -> Option<&Path> {
    let sample = match error {
        ConvertError::SourceMissing { path } => return Some(path),
        ConvertError::BadSample { source, .. } => source,
        _ => return None,
    };
    let file = match sample {
        SampleError::Mask { source, .. } => source,
        image => image,
    };
    match file {
        SampleError::NoFile { file, is_there, .. } => (!is_there).then_some(file),
        _ => None,
    }
}

fn of_read(error: &ReadError) -> &'static str {
    match error {
        ReadError::Format { source: FormatError::NoSuchField { .. } | FormatError::WrongUse(_), .. } => "OptionError",
        ReadError::Condition { .. } => "OptionError",
        ReadError::Format { .. } | ReadError::Sample { .. } => "FormatError",
        ReadError::Open { source, .. } if source.kind() == ErrorKind::NotFound => "NotFoundError",
        _ => "ReadError",
    }
}

fn of_load(error: &LoadError) -> &'static str {
    match error {
        LoadError::Plan(_)
        | LoadError::Augment { .. }
        | LoadError::OtherFields { .. }
        | LoadError::OtherClasses { .. }
        | LoadError::Option(_)
        | LoadError::OnDevice { .. }
        | LoadError::Memory { .. } => "OptionError",
        LoadError::Sample { .. } | LoadError::NothingLeft { .. } => "FormatError",
        LoadError::Reserve { .. } | LoadError::Thread(_) => "ReadError",
        _ => "Error",
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.raised(py))
    }
}

/// Converts the errors of the crates to failures.
macro_rules! from {
    ($($error:ty => $failure:expr;)+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                $failure(error)
            }
        }
    )+};
}

from! {
    ReadError => Self::Read;
    LoadError => Self::Load;
    ConvertError => Self::Convert;
    PlanError => |error: PlanError| Self::Load(error.into());
    AugmentError => |error: AugmentError| Self::Option(error.to_string());
}
