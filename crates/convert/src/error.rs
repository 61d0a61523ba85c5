//! The errors of a conversion or an export, and whether the data is to blame.
//!
//! Findings that do not stop the conversion are warnings of the listing, not errors.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::data_format::DataFormat;
use crate::sample::SampleError;

/// Why a conversion stopped.
///
/// The message names the place and what was found there. [`ConvertError::hint`] says what to do, and [`ConvertError::is_data`]
/// whether the data is to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source does not exist.
    #[error("{path}: no such file or folder")]
    SourceMissing {
        /// The source as it was given.
        path: PathBuf,
    },
    /// The source exists, but neither its name nor its content matches a known format.
    #[error("{path}: this is no format that is known: {found}")]
    UnknownFormat {
        /// The source as it was given.
        path: PathBuf,
        /// What it contains or starts with, in words.
        found: String,
    },
    /// This build does not include the format.
    #[error("{path}: this build of packds has no {format}")]
    FormatLeftOut {
        /// The source or the target.
        path: PathBuf,
        /// The format.
        format: DataFormat,
    },
    /// A source, or a part of it, is damaged, mislabelled, or contradicts itself.
    #[error("{}: {reason}", place_in(path, place))]
    SourceMalformed {
        /// The file or folder.
        path: PathBuf,
        /// Where in it: a dataset, a member, an offset; empty for the whole.
        place: String,
        /// What was expected and found.
        reason: String,
        /// What to do, if the bytes themselves are not damaged.
        hint: Option<String>,
    },
    /// A source lacks a field that is required or was requested.
    #[error("{path}: no field {wanted}, found {}", quoted(found))]
    KeyMissing {
        /// The source.
        path: PathBuf,
        /// The missing field, in words.
        wanted: String,
        /// The existing fields, in order.
        found: Vec<String>,
    },
    /// A source lacks a field that is to be excluded.
    #[error("{path}: no field '{wanted}' to leave out, found {}", quoted(found))]
    LeftOutMissing {
        /// The source.
        path: PathBuf,
        /// The missing field.
        wanted: String,
        /// The existing fields, in order.
        found: Vec<String>,
    },
    /// A source is valid but holds something that cannot be converted.
    #[error("{}: {reason}", place_in(path, place))]
    SourceUnsupported {
        /// The file or folder.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is not supported.
        reason: String,
        /// What to do instead.
        hint: String,
    },
    /// The temporary file into which a source is unpacked cannot be written.
    #[error("{folder}: cannot unpack the source into a temporary file here: {source}")]
    Spool {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder contains no images.
    #[error("{path}: no images in this folder ({ignored} other files ignored)")]
    EmptySource {
        /// The folder.
        path: PathBuf,
        /// How many other files it contains.
        ignored: u64,
        /// A file or folder in it that looks like a dataset of another format.
        holds: Option<(PathBuf, DataFormat)>,
    },
    /// The folder contains only splits with class folders, and no split was chosen.
    #[error(
        "{path}: expected class folders, found only the splits {}",
        quoted(splits)
    )]
    OnlySplits {
        /// The folder.
        path: PathBuf,
        /// The splits in it, sorted.
        splits: Vec<String>,
    },
    /// The source has several splits, and none was chosen.
    #[error("{path}: found the splits {}{and}", quoted(splits))]
    SeveralSplits {
        /// The source.
        path: PathBuf,
        /// The splits in it, sorted.
        splits: Vec<String>,
        /// What else it contains, in words.
        and: &'static str,
    },
    /// The chosen split does not exist.
    #[error("{path}: no split '{wanted}' here, found {}", quoted(available))]
    SplitMissing {
        /// The source.
        path: PathBuf,
        /// The requested split.
        wanted: String,
        /// The existing splits, sorted.
        available: Vec<String>,
    },
    /// A folder could not be listed.
    #[error("{path}: cannot list this folder: {source}")]
    UnreadableDirectory {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder contains itself through a symbolic link.
    #[error("{path}: this link leads back to {target}, which contains it")]
    SymlinkLoop {
        /// The link that closes the loop.
        path: PathBuf,
        /// The ancestor folder that it links to.
        target: PathBuf,
    },
    /// A row of a manifest, or the manifest as a whole, is malformed.
    #[error("{path}: line {line}: {reason}")]
    ManifestMalformed {
        /// The manifest.
        path: PathBuf,
        /// The line on which the row starts, counted from 1.
        line: u64,
        /// What was expected and found.
        reason: String,
    },
    /// A manifest lacks a column that is required or was requested.
    #[error("{path}: no column {wanted}, found {}", quoted(found))]
    ManifestColumnMissing {
        /// The manifest.
        path: PathBuf,
        /// The missing column, in words.
        wanted: String,
        /// The existing columns, in order.
        found: Vec<String>,
    },
    /// A manifest names a file outside the root folder.
    #[error("{path}: line {line}: '{file}' lies outside the root {root}")]
    ManifestPathEscapes {
        /// The manifest.
        path: PathBuf,
        /// The line on which the row starts.
        line: u64,
        /// The path as written in the manifest.
        file: String,
        /// The root folder in use.
        root: PathBuf,
    },
    /// Options that contradict each other or the data.
    #[error("{reason}")]
    Options {
        /// The contradiction.
        reason: String,
        /// What to change.
        hint: String,
    },
    /// An image cannot be read, decoded or stored.
    #[error("{}: {source}", cut(path))]
    BadSample {
        /// The image's file.
        path: PathBuf,
        /// What is wrong with it.
        source: SampleError,
    },
    /// The pack to be exported is damaged.
    #[error("{0}")]
    BadPack(packds_format::FormatError),
    /// An item of a pack cannot be exported.
    #[error("sample {sample}, field `{field}`: {reason}")]
    BadItem {
        /// The sample.
        sample: u64,
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Every image was skipped.
    #[error("{path}: none of the images could be converted ({skipped} skipped)")]
    NothingLeft {
        /// The source.
        path: PathBuf,
        /// How many were skipped.
        skipped: usize,
    },
    /// A file with the output's name exists.
    #[error("{path}: this file exists already")]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// A folder with the output's name exists and is not empty.
    #[error("{path}: this folder is not empty")]
    OutputFolderFull {
        /// The output.
        path: PathBuf,
    },
    /// A folder with the output's name exists.
    #[error("{path}: this is a folder, expected the name of a file to write")]
    OutputIsFolder {
        /// The output.
        path: PathBuf,
    },
    /// The output must be a folder, but a file has its name.
    #[error("{path}: this is a file, and what is written here is a folder")]
    OutputIsFile {
        /// The output.
        path: PathBuf,
    },
    /// The output's name belongs to something other than a regular file.
    #[error("{path}: this is {found}, expected a regular file or a new name")]
    OutputNotRegular {
        /// The output.
        path: PathBuf,
        /// What it is, in words.
        found: &'static str,
    },
    /// The output's working name is taken.
    #[error("{path}: the output is written under this name first, and {found} is in the way")]
    WorkingOccupied {
        /// The working file or folder.
        path: PathBuf,
        /// What has that name, in words.
        found: &'static str,
    },
    /// The output's folder is missing.
    #[error("{path}: there is no folder {folder} to write it to")]
    OutputFolderMissing {
        /// The output.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// Files cannot be created in the output's folder.
    #[error("{path}: cannot write here: {source}")]
    OutputNotWritable {
        /// The output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another conversion writes the same output.
    #[error("{path}: another conversion is writing this file")]
    OutputBusy {
        /// The output.
        path: PathBuf,
    },
    /// The pack cannot be laid out with these options.
    #[error("{0}")]
    Format(#[from] packds_format::FormatError),
    /// The caller cancelled.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ConvertError {
    /// A [`Self::SourceMalformed`].
    pub(crate) fn malformed(path: &Path, place: &str, reason: impl Into<String>) -> Self {
        Self::SourceMalformed {
            path: path.to_owned(),
            place: place.to_owned(),
            reason: reason.into(),
            hint: None,
        }
    }

    /// A [`Self::SourceMalformed`] without damaged bytes: its contents contradict each other.
    pub(crate) fn contradictory(
        path: &Path,
        place: &str,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::SourceMalformed {
            path: path.to_owned(),
            place: place.to_owned(),
            reason: reason.into(),
            hint: Some(hint.into()),
        }
    }

    /// A [`Self::SourceUnsupported`].
    pub(crate) fn unsupported(
        path: &Path,
        place: &str,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::SourceUnsupported {
            path: path.to_owned(),
            place: place.to_owned(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// The same error, with the advice to read the source as `found` instead.
    pub(crate) fn of_other_format(self, found: DataFormat) -> Self {
        let of_found = |path: &Path, place: &str, reason: String| {
            let name = found.name();
            let hint = format!("leave --from out, or give --from {name}: this looks like {found}");
            Self::contradictory(path, place, reason, hint)
        };
        match self {
            Self::SourceMalformed {
                path,
                place,
                reason,
                ..
            }
            | Self::SourceUnsupported {
                path,
                place,
                reason,
                ..
            } => of_found(&path, &place, reason),
            Self::UnknownFormat { path, found } => of_found(&path, "", found),
            Self::UnreadableDirectory { path, source } => {
                of_found(&path, "", format!("cannot list this folder: {source}"))
            }
            other => other,
        }
    }

    /// The same error, but a [`Self::Format`] is about the pack that was read.
    pub(crate) fn of_pack(self) -> Self {
        match self {
            Self::Format(damage) => Self::BadPack(damage),
            other => other,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// What to do about it, for the line that starts with `hint:`.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::SourceMissing { path } if path.to_string_lossy().contains(['*', '?']) => Some(
                "patterns of files are written {000..099} or {a,b}; all files of a folder are taken by naming the folder"
                    .to_owned(),
            ),
            Self::SourceMissing { .. }
            | Self::UnreadableDirectory { .. }
            | Self::Format(_)
            | Self::BadItem { .. }
            | Self::Interrupted => None,
            Self::Options { hint, .. } | Self::SourceUnsupported { hint, .. } => Some(hint.clone()),
            Self::BadPack(_) => Some("'packds verify' lists all damage; nothing was written".to_owned()),
            Self::BadSample { source, .. } => Some(hint_of_sample(source).to_owned()),
            Self::NothingLeft { .. } => Some("run without '--on-error skip' to see the first reason".to_owned()),
            Self::UnknownFormat { .. } => {
                Some("'packds formats' lists what is known; '--from FORMAT' says which it is".to_owned())
            }
            Self::FormatLeftOut { .. } => {
                Some("build it with the cargo feature of that format".to_owned())
            }
            Self::SourceMalformed { hint: Some(hint), .. } => Some(hint.clone()),
            Self::SourceMalformed { hint: None, .. } => Some(
                "the data are damaged or cut short: copy or make them again; nothing was written".to_owned(),
            ),
            Self::KeyMissing { found, .. } => Some(hint_of_fields(found).to_owned()),
            Self::LeftOutMissing { .. } => {
                Some("name a field of the source with --leave-out".to_owned())
            }
            Self::Spool { .. } => Some(
                "sources that cannot be read in any order need as much room there as they have when unpacked".to_owned(),
            ),
            Self::EmptySource { holds, .. } => Some(match holds {
                Some((inside, _)) if inside.to_string_lossy().contains('=') => {
                    "folders called NAME=VALUE are a column of a partitioned data set: write it as one with that column first (pyarrow.dataset)".to_owned()
                }
                Some((inside, format)) => format!("name {}, which looks like {format}", inside.display()),
                None => "images are known by their extension or by their first bytes; check the path".to_owned(),
            }),
            Self::OnlySplits { .. } | Self::SeveralSplits { .. } | Self::SplitMissing { .. } => {
                self.hint_of_splits()
            }
            Self::SymlinkLoop { .. } => {
                Some("remove the link: following it would list the same files again and again".to_owned())
            }
            Self::ManifestMalformed { .. }
            | Self::ManifestColumnMissing { .. }
            | Self::ManifestPathEscapes { .. } => self.hint_of_manifest().map(str::to_owned),
            Self::OutputExists { .. }
            | Self::OutputFolderFull { .. }
            | Self::OutputIsFolder { .. }
            | Self::OutputIsFile { .. }
            | Self::OutputNotRegular { .. }
            | Self::WorkingOccupied { .. }
            | Self::OutputFolderMissing { .. }
            | Self::OutputNotWritable { .. }
            | Self::OutputBusy { .. }
            | Self::Io { .. } => self.hint_of_output().map(str::to_owned),
        }
    }

    /// Which split to choose.
    fn hint_of_splits(&self) -> Option<String> {
        let hint = match self {
            Self::SeveralSplits { and, .. } if !and.is_empty() => {
                "'--split NAME' takes one; what is of none is taken where it is named: files by a pattern or a folder of their own, arrays by --image-key and --label-key"
            }
            Self::OnlySplits { .. } | Self::SeveralSplits { .. } => {
                "'--split all' writes one pack for each split with the same class ids, '--split NAME' only one"
            }
            Self::SplitMissing { available, .. } if available.is_empty() => {
                "only folders with train, val or test folders in them, and files whose names or parts are called so, have splits; leave --split out"
            }
            Self::SplitMissing { available, .. } => {
                return Some(format!("choose one of {}, or 'all'", quoted(available)));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// What to do about a manifest.
    fn hint_of_manifest(&self) -> Option<&'static str> {
        Some(match self {
            Self::ManifestMalformed { .. } => "correct this line; nothing was written",
            Self::ManifestColumnMissing { .. } => {
                "name the columns with --image-key, --label-key and --mask-key"
            }
            Self::ManifestPathEscapes { .. } => {
                "pass --root with a folder that contains every file of the manifest"
            }
            _ => return None,
        })
    }

    /// What to do about an output file or folder.
    fn hint_of_output(&self) -> Option<&'static str> {
        Some(match self {
            Self::OutputExists { .. } => "'--force' replaces it",
            Self::OutputFolderFull { .. } => "name a new folder: folders are never replaced",
            Self::OutputIsFolder { .. } => "name a file, such as out.pack",
            Self::OutputIsFile { .. } => {
                "name a new folder, or remove the file: a folder never replaces one, also not with '--force'"
            }
            Self::OutputNotRegular { .. } => "name another file: only regular files are replaced",
            Self::WorkingOccupied { .. } => "remove it, or choose another name for the output",
            Self::OutputFolderMissing { .. } => "make the folder first",
            Self::OutputNotWritable { source, .. } => {
                hint_of_writing(source).unwrap_or("choose a folder that you may write to")
            }
            Self::OutputBusy { .. } => "wait for it to end, or choose another name",
            Self::Io { source, .. } => return hint_of_writing(source),
            _ => return None,
        })
    }

    /// True if the data is to blame (exit code 1). False if the conversion could not run: a missing source, an argument, the system
    /// (exit code 2).
    pub fn is_data(&self) -> bool {
        match self {
            Self::EmptySource { .. }
            | Self::SymlinkLoop { .. }
            | Self::ManifestMalformed { .. }
            | Self::BadSample { .. }
            | Self::NothingLeft { .. }
            | Self::SourceMalformed { .. }
            | Self::BadPack(_)
            | Self::BadItem { .. } => true,
            Self::SourceMissing { .. }
            | Self::UnknownFormat { .. }
            | Self::FormatLeftOut { .. }
            | Self::KeyMissing { .. }
            | Self::LeftOutMissing { .. }
            | Self::SourceUnsupported { .. }
            | Self::Spool { .. }
            | Self::OnlySplits { .. }
            | Self::SeveralSplits { .. }
            | Self::SplitMissing { .. }
            | Self::UnreadableDirectory { .. }
            | Self::ManifestColumnMissing { .. }
            | Self::ManifestPathEscapes { .. }
            | Self::Options { .. }
            | Self::OutputExists { .. }
            | Self::OutputFolderFull { .. }
            | Self::OutputIsFolder { .. }
            | Self::OutputIsFile { .. }
            | Self::OutputNotRegular { .. }
            | Self::WorkingOccupied { .. }
            | Self::OutputFolderMissing { .. }
            | Self::OutputNotWritable { .. }
            | Self::OutputBusy { .. }
            | Self::Format(_)
            | Self::Interrupted
            | Self::Io { .. } => false,
        }
    }
}

/// What to do if the system refuses to write for a reason unrelated to the content.
#[must_use]
pub fn hint_of_writing(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or write to another disk"
        }
        io::ErrorKind::FileTooLarge => {
            "files must not become that large here: raise the limit ('ulimit -f'), or write to another file system"
        }
        io::ErrorKind::InvalidFilename => {
            "choose a shorter name: names have at most 255 bytes, nine of which are needed while the file is written"
        }
        _ => return None,
    })
}

/// A file and a place in it.
fn place_in(path: &Path, place: &str) -> String {
    match place {
        "" => path.display().to_string(),
        place => format!("{}: {place}", path.display()),
    }
}

/// Quoted names separated by commas, cut after a dozen.
pub(crate) fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 12;
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("'{name}'"))
        .collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest == 0 {
        shown.join(", ")
    } else {
        format!("{} and {rest} more", shown.join(", "))
    }
}

/// What to do if a source has these fields but not the required ones.
fn hint_of_fields(found: &[String]) -> &'static str {
    /// More fields than this are one array per image.
    const MANY: usize = 16;
    let has_more = |name: &String| {
        let rest = |other: &String| other.strip_prefix(name.as_str()).map(str::to_owned);
        found
            .iter()
            .filter_map(rest)
            .any(|rest| rest.starts_with('.'))
    };
    if found.iter().any(has_more) {
        "in a tar file the name of a sample ends at its first dot, and what follows is the field: write the samples under names without dots"
    } else if found.len() > MANY {
        "name the fields with --image-key, --label-key and --mask-key; where each image is an array of its own, put all into one first (numpy.stack)"
    } else {
        "name the fields with --image-key, --label-key and --mask-key"
    }
}

/// What to do about a bad sample.
fn hint_of_sample(error: &SampleError) -> &'static str {
    match error {
        SampleError::Mask { source, .. } => hint_of_sample(source),
        SampleError::NoFile { file, .. } if is_numbers(file) => {
            "pixels in texts are not read: make an array of each (numpy.fromstring(text, sep=' ')) and one of all, as .npz"
        }
        SampleError::NoFile { is_there: true, .. } => {
            "folders, pipes, sockets and devices are not read: name a file, or give '--on-error skip', which leaves such samples out and lists them"
        }
        SampleError::NoFile { .. } => {
            "relative paths start in the manifest's folder: '--root FOLDER' names another one, '--on-error skip' leaves such samples out and lists them"
        }
        _ => {
            "'--on-error skip' leaves bad samples out and lists them, '--on-error substitute' puts zeros in their place"
        }
    }
}

/// Whether the supposed file name consists of numbers with spaces between them.
fn is_numbers(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut numbers = name.split_ascii_whitespace();
    numbers.clone().count() > 4 && numbers.all(|word| word.parse::<f64>().is_ok())
}

/// A path, cut if it is longer than real paths are.
fn cut(path: &Path) -> String {
    const SHOWN: usize = 1024;
    let text = path.display().to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
