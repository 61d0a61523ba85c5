//! The errors of a conversion or an export. Each records whether the data is to blame.
//!
//! Problems that do not stop the conversion are reported as warnings instead.

use std::io;
use std::path::{Path, PathBuf};

use packds_pixels::PixelError;

use crate::data_format::DataFormat;
use crate::literal::python;
use crate::opt::{FORCE, FROM, IMAGE_KEY, LABEL_KEY, LEAVE_OUT, LIST_FORMATS, MASK_KEY, ON_ERROR, ROOT, SPLIT, VERIFY};
use crate::sample::SampleError;
use crate::source::Unread;

/// Why a conversion stopped.
///
/// The message names the place and what was found there. [`ConvertError::hint`] says what to do.
/// [`ConvertError::is_data`] says whether the data is to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source does not exist.
    #[error("{path}: no such file or folder")]
    SourceMissing {
        /// The source as the user gave it.
        path: PathBuf,
    },
    /// The source exists, but neither its name nor its content matches a known format.
    #[error("{path}: unrecognized format: {found}")]
    UnknownFormat {
        /// The source as the user gave it.
        path: PathBuf,
        /// A description of what it contains or starts with.
        found: String,
    },
    /// This build does not include the format.
    #[error("{path}: this build of packds does not support {format}")]
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
        /// Where in the file: a dataset, a member or an offset. Empty for the whole file.
        place: String,
        /// What was expected and found.
        reason: String,
        /// What to do. `None` if the data is damaged.
        hint: Option<String>,
    },
    /// The source does not have a field that is required or was requested.
    #[error("{path}: no field {wanted}, found {}", quoted(found))]
    KeyMissing {
        /// The source.
        path: PathBuf,
        /// A description of the missing field.
        wanted: String,
        /// The existing fields, in order.
        found: Vec<String>,
    },
    /// The source does not have a field that the user asked to exclude.
    #[error("{path}: no field '{wanted}' to leave out, found {}", quoted(found))]
    LeftOutMissing {
        /// The source.
        path: PathBuf,
        /// The missing field.
        wanted: String,
        /// The existing fields, in order.
        found: Vec<String>,
    },
    /// A source is valid but contains something that cannot be converted.
    #[error("{}: {reason}", place_in(path, place))]
    SourceUnsupported {
        /// The file or folder.
        path: PathBuf,
        /// Where in the file or folder.
        place: String,
        /// What is not supported.
        reason: String,
        /// What to do instead.
        hint: String,
    },
    /// The content of an archive cannot be converted. Paths in the message start with the path of the archive.
    #[error("{message}")]
    InArchive {
        /// What is wrong with it.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// Whether the data is to blame.
        is_data: bool,
    },
    /// The temporary file into which a source is unpacked cannot be written.
    #[error("{folder}: cannot unpack the source into a temporary file here: {source}")]
    Spool {
        /// The folder.
        folder: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The folder contains no images.
    #[error("{path}: no images in this folder (other files ignored: {ignored})")]
    EmptySource {
        /// The folder.
        path: PathBuf,
        /// How many other files it contains.
        ignored: u64,
        /// A file or folder in it that looks like a dataset of another format.
        holds: Option<(PathBuf, DataFormat)>,
    },
    /// The folder contains splits instead of class folders, and no split was chosen.
    #[error("{path}: expected class folders, found {}", found_splits(splits, others))]
    OnlySplits {
        /// The folder.
        path: PathBuf,
        /// The splits in it, sorted.
        splits: Vec<String>,
        /// The other folders in it, sorted.
        others: Vec<String>,
        /// The tables next to the splits. The likeliest is first.
        tables: Vec<String>,
    },
    /// The folders are parts of one dataset, and the labels are probably in a table.
    #[error("{path}: '{first}' and '{last}' look like parts of one dataset, not like classes")]
    Parts {
        /// The folder.
        path: PathBuf,
        /// The first part.
        first: String,
        /// The last part.
        last: String,
        /// The table next to the parts.
        table: PathBuf,
    },
    /// The source has several splits, and none was chosen.
    #[error("{path}: found the splits {}{and}", quoted(splits))]
    SeveralSplits {
        /// The source.
        path: PathBuf,
        /// The splits in it, sorted.
        splits: Vec<String>,
        /// A description of what else it contains.
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
        /// The I/O error.
        source: io::Error,
    },
    /// A folder contains itself through a symbolic link.
    #[error("{path}: this link points to {target}, which contains it")]
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
        /// A description of the missing column.
        wanted: String,
        /// The existing columns, in order.
        found: Vec<String>,
    },
    /// A manifest names a file outside the root folder.
    #[error("{path}: line {line}: '{file}' is outside the root {root}")]
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
    #[error("{path}: this file already exists")]
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
    #[error("{path}: this is a folder, but the output must be a file")]
    OutputIsFolder {
        /// The output.
        path: PathBuf,
    },
    /// The output must be a folder, but a file has its name.
    #[error("{path}: this is a file, but the output is a folder")]
    OutputIsFile {
        /// The output.
        path: PathBuf,
    },
    /// The output's name belongs to something other than a regular file.
    #[error("{path}: this is {found}, but the output must be a regular file or a new name")]
    OutputNotRegular {
        /// The output.
        path: PathBuf,
        /// A description of what it is.
        found: &'static str,
    },
    /// The output's working name is taken.
    #[error("{path}: the output is first written under this name, which is taken by {found}")]
    WorkingOccupied {
        /// The working file or folder.
        path: PathBuf,
        /// A description of what has that name.
        found: &'static str,
    },
    /// The output's folder is missing.
    #[error("{path}: the folder {folder} does not exist")]
    OutputFolderMissing {
        /// The output.
        path: PathBuf,
        /// The missing folder.
        folder: PathBuf,
    },
    /// Files cannot be created in the output's folder, or not with this name.
    #[error("{path}: cannot write here: {source}")]
    OutputNotWritable {
        /// The output.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Another conversion writes the same output.
    #[error("{path}: another conversion is writing this file")]
    OutputBusy {
        /// The output.
        path: PathBuf,
    },
    /// The format does not allow a pack with these options, or the pack could not be written.
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
        /// The I/O error.
        source: io::Error,
    },
}

/// Describes the splits of a folder, and any other folders next to them.
fn found_splits(splits: &[String], others: &[String]) -> String {
    match others {
        [] => format!("only the splits {}", quoted(splits)),
        others => format!("the splits {} next to {}", quoted(splits), quoted(others)),
    }
}

impl ConvertError {
    pub(crate) fn options(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Options { reason: reason.into(), hint: hint.into() }
    }

    pub(crate) fn malformed(path: &Path, place: &str, reason: impl Into<String>) -> Self {
        Self::SourceMalformed { path: path.to_owned(), place: place.to_owned(), reason: reason.into(), hint: None }
    }

    /// A [`Self::SourceMalformed`] for a source that is not damaged, but whose contents contradict each other.
    pub(crate) fn contradictory(path: &Path, place: &str, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        let (path, place, hint) = (path.to_owned(), place.to_owned(), Some(hint.into()));
        Self::SourceMalformed { path, place, reason: reason.into(), hint }
    }

    pub(crate) fn unsupported(path: &Path, place: &str, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        let (path, place) = (path.to_owned(), place.to_owned());
        Self::SourceUnsupported { path, place, reason: reason.into(), hint: hint.into() }
    }

    /// The same error with the name of the archive member added, if it is a [`Self::SourceMalformed`].
    pub(crate) fn in_member(self, name: &str) -> Self {
        match self {
            Self::SourceMalformed { path, place, reason, hint } => {
                Self::SourceMalformed { path, place: format!("{name}: {place}"), reason, hint }
            }
            other => other,
        }
    }

    /// The same error with a hint to read the source as `found` instead, if the format may be wrong.
    pub(crate) fn of_other_format(self, found: DataFormat) -> Self {
        let of_found = |path: &Path, place: &str, reason: String| {
            let name = found.name();
            let hint = format!("omit {FROM}, or use {}: this looks like {found}", FROM.with(name));
            Self::contradictory(path, place, reason, hint)
        };
        match self {
            Self::SourceMalformed { path, place, reason, .. } | Self::SourceUnsupported { path, place, reason, .. } => {
                of_found(&path, &place, reason)
            }
            Self::UnknownFormat { path, found } => of_found(&path, "", found),
            Self::UnreadableDirectory { path, source } => {
                of_found(&path, "", format!("cannot list this folder: {source}"))
            }
            other => other,
        }
    }

    /// The same error, except that a [`Self::Format`] becomes an error about the pack that was read.
    pub(crate) fn of_pack(self) -> Self {
        match self {
            Self::Format(damage) => Self::BadPack(damage),
            other => other,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// What to do about the error. Printed after `hint:`.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::SourceMissing { path } if path.to_string_lossy().contains(['*', '?']) => {
                Some("write file patterns as {000..099} or {a,b}; to read a whole folder, pass the folder".to_owned())
            }
            Self::Options { hint, .. }
            | Self::SourceUnsupported { hint, .. }
            | Self::SourceMalformed { hint: Some(hint), .. } => Some(hint.clone()),
            Self::InArchive { hint, .. } => hint.clone(),
            Self::BadPack(_) => Some(format!("{VERIFY} lists all damage; nothing was written")),
            Self::BadSample { source, .. } => Some(hint_of_sample(source)),
            Self::NothingLeft { .. } => Some(format!("run without {} to see the first reason", ON_ERROR.with("skip"))),
            Self::UnknownFormat { .. } => {
                Some(format!("{LIST_FORMATS} lists the known formats; choose one with {}", FROM.with("FORMAT")))
            }
            Self::FormatLeftOut { .. } => Some("build packds with the cargo feature of that format".to_owned()),
            Self::SourceMalformed { hint: None, .. } => Some(
                "the data is damaged or truncated: copy or create it again; nothing was written".to_owned(),
            ),
            Self::KeyMissing { found, .. } => Some(hint_of_fields(found)),
            Self::LeftOutMissing { .. } => Some(format!("pass an existing field of the source with {LEAVE_OUT}")),
            Self::Spool { source, .. } => {
                let space = "a source without random access must be unpacked: this needs free space in that folder";
                Some(if is_limit_of_files(source) { MORE_FILES } else { space }.to_owned())
            }
            Self::EmptySource { holds, .. } => Some(match holds {
                Some((inside, _)) if inside.to_string_lossy().contains('=') => {
                    "folders named NAME=VALUE hold a column of a partitioned dataset: first write the dataset as one table with that column (pyarrow.dataset)".to_owned()
                }
                Some((inside, format)) => format!("pass {}, which looks like {format}", inside.display()),
                None => "images are recognized by their extension or first bytes; check the path".to_owned(),
            }),
            Self::SymlinkLoop { .. } => {
                Some("remove the link: following it would list the same files again and again".to_owned())
            }
            Self::ManifestMalformed { .. } => Some("correct this line; nothing was written".to_owned()),
            Self::ManifestColumnMissing { .. } => {
                Some(format!("choose the columns with {IMAGE_KEY}, {LABEL_KEY} and {MASK_KEY}"))
            }
            Self::ManifestPathEscapes { .. } => {
                Some(format!("pass {ROOT} with a folder that contains every file of the manifest"))
            }
            _ => self.hint_of_splits().or_else(|| self.hint_of_output()),
        }
    }

    /// Whether the source has splits, and no manifest or other data that could be meant instead.
    pub(crate) fn has_only_splits(&self) -> bool {
        match self {
            Self::OnlySplits { tables, .. } => tables.is_empty(),
            Self::SeveralSplits { and, .. } => and.is_empty(),
            _ => false,
        }
    }

    fn hint_of_splits(&self) -> Option<String> {
        let one = SPLIT.with("NAME");
        Some(match self {
            Self::SeveralSplits { and, .. } if !and.is_empty() => {
                format!(
                    "choose a split with {one}; to read files outside the splits, pass a file pattern, or move these files to a separate folder; to read arrays outside the splits, choose them with {IMAGE_KEY} and {LABEL_KEY}"
                )
            }
            Self::Parts { table, .. } => format!(
                "if the table '{}' has the labels, pass it as the source; {} reads every folder as a class",
                table.display(),
                FROM.with("image-folder")
            ),
            Self::OnlySplits { tables, .. } if !tables.is_empty() => {
                let tables = match tables.as_slice() {
                    [table] => format!("pass '{table}' if it has the labels"),
                    tables => format!("if one of {} has the labels, pass it", quoted(tables)),
                };
                format!("{tables}; otherwise {one} reads one split")
            }
            Self::OnlySplits { .. } | Self::SeveralSplits { .. } => {
                format!(
                    "{} writes one pack for each split, all with the same class ids; {one} writes only one",
                    SPLIT.with("all")
                )
            }
            Self::SplitMissing { available, .. } if available.is_empty() => {
                format!(
                    "omit {SPLIT}: packds recognizes a split by the name of a folder, file, array or group, such as train, val or test"
                )
            }
            Self::SplitMissing { available, .. } => format!("choose one of {}, or 'all'", quoted(available)),
            _ => return None,
        })
    }

    fn hint_of_output(&self) -> Option<String> {
        let hint = match self {
            Self::OutputExists { .. } => return Some(format!("{} replaces it", FORCE.on())),
            Self::OutputFolderFull { .. } => "choose a new folder: folders are never replaced",
            Self::OutputIsFolder { .. } => "choose a file name, such as out.pack",
            Self::OutputIsFile { .. } => {
                return Some(format!(
                    "choose a new folder, or remove the file: a folder never replaces a file, not even with {}",
                    FORCE.on()
                ));
            }
            Self::OutputNotRegular { .. } => "choose another file: only regular files are replaced",
            Self::WorkingOccupied { .. } => "remove it, or choose a different name for the output",
            Self::OutputFolderMissing { .. } => "create the folder first",
            Self::OutputNotWritable { source, .. } => {
                hint_of_writing(source).unwrap_or("choose a folder that you may write to")
            }
            Self::OutputBusy { .. } => "wait for it to end, or choose a different name",
            Self::Io { source, .. } => hint_of_writing(source)?,
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether the data is to blame (exit code 1). Otherwise the conversion could not run (exit code 2).
    pub fn is_data(&self) -> bool {
        matches!(
            self,
            Self::EmptySource { .. }
                | Self::Parts { .. }
                | Self::SymlinkLoop { .. }
                | Self::ManifestMalformed { .. }
                | Self::BadSample { .. }
                | Self::NothingLeft { .. }
                | Self::SourceMalformed { .. }
                | Self::BadPack(_)
                | Self::BadItem { .. }
                | Self::InArchive { is_data: true, .. }
        )
    }
}

/// What to do if the system refuses to write for a reason that has nothing to do with the data.
#[must_use]
pub fn hint_of_writing(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there, or write to another disk",
        io::ErrorKind::FileTooLarge => {
            "the file would exceed the limit on file sizes: raise the limit ('ulimit -f'), or write to another file system"
        }
        _ if is_limit_of_files(error) => MORE_FILES,
        io::ErrorKind::InvalidFilename => {
            "choose a shorter name: names are limited to 255 bytes, and packds adds nine bytes to the name while writing"
        }
        _ => return None,
    })
}

/// What to do if too many files are open.
const MORE_FILES: &str = "raise the limit on open files ('ulimit -n')";

/// Whether a file could not be opened because the process or the system has too many open files.
fn is_limit_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|limit| error.raw_os_error() == Some(limit.raw_os_error()))
}

fn place_in(path: &Path, place: &str) -> String {
    match place {
        "" => path.display().to_string(),
        place => format!("{}: {place}", path.display()),
    }
}

/// Quoted names separated by commas, at most twelve of them.
pub(crate) fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 12;
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

/// What to do if a required field is not among the fields of a source.
fn hint_of_fields(found: &[String]) -> String {
    /// If there are more fields than this, each is probably the array of one image.
    const MANY: usize = 16;
    let has_more = |name: &String| {
        let rest = |other: &String| other.strip_prefix(name.as_str()).map(str::to_owned);
        found.iter().filter_map(rest).any(|rest| rest.starts_with('.'))
    };
    let keys = format!("choose the fields with {IMAGE_KEY}, {LABEL_KEY} and {MASK_KEY}");
    if found.iter().any(has_more) {
        "in a tar file, the name of a sample ends at the first dot, and the rest is the name of the field: use sample names without dots".to_owned()
    } else if found.len() > MANY {
        format!("{keys}; if each image is a separate array, combine them into one array first (numpy.stack)")
    } else {
        keys
    }
}

/// A line of Python that writes the files of a folder as arrays. `import` is the end of the line's import, and `read` reads the file `f`. `only`
/// is a condition for `f`; empty for all files.
pub(crate) fn files_to_npy(folder: &Path, pattern: &str, import: &str, (read, only): (&str, &str)) -> String {
    format!(
        "import pathlib, numpy{import}; src, out = pathlib.Path({}), pathlib.Path(\"arrays\"); [((out / f.relative_to(src)).parent.mkdir(parents=True, exist_ok=True), numpy.save((out / f.relative_to(src)).with_suffix(\".npy\"), {read})) for f in src.rglob(\"{pattern}\"){only}]",
        python(folder)
    )
}

fn hint_of_sample(error: &SampleError) -> String {
    let skip = ON_ERROR.with("skip");
    match error {
        SampleError::Mask { source, .. } if matches!(**source, SampleError::Pixels(PixelError::Unsupported { .. })) => {
            format!("save 8-bit class numbers in Python: a = numpy.asarray(Image.open(file)); Image.fromarray((a > 0).astype(numpy.uint8)).save(file) for two classes, or a.astype(numpy.uint8) if no number is above 255; {skip} leaves out bad samples and lists them")
        }
        SampleError::Mask { source, .. } => hint_of_sample(source),
        SampleError::Value { hint: Some(hint), .. } => format!("{hint}; {skip} leaves out bad samples and lists them"),
        SampleError::Pixels(PixelError::Unsupported { .. }) if !is_multiband(error) => {
            format!("convert it in Python: use Image.open(file).convert(\"RGB\").save(\"x.png\") for 8-bit pixels, or numpy.save(\"x.npy\", numpy.asarray(Image.open(file))) to keep the values; {skip} leaves out bad samples and lists them")
        }
        SampleError::Pixels(PixelError::ManyChannels { .. } | PixelError::Unsupported { .. }) => {
            // Pillow does not read more than four channels.
            let line = files_to_npy(Path::new("images"), "*.tif*", ", tifffile", ("tifffile.imread(f)", ""));
            format!("to keep all channels, write the images as arrays into another folder, and convert that folder; in Python, run: {line}; {skip} leaves out bad samples and lists them")
        }
        SampleError::Pixels(PixelError::NotSingleChannel { .. }) => {
            format!("if the colours of mask files stand for classes, write a table 'class_dict.csv' with the columns name,r,g,b next to the masks: each colour then becomes the number of its row, counted from 0; {skip} leaves out bad samples and lists them")
        }
        SampleError::Pixels(PixelError::OtherFormat { name }) => {
            let hint = Unread::named(name).map_or("", |row| row.hint);
            format!("{hint}; {skip} leaves out bad samples and lists them")
        }
        SampleError::NoMask { line, .. } => {
            let line = line.as_ref().map_or(String::new(), |line| format!(", in Python: {line}"));
            format!("if nothing is marked in an image, write a mask of zeros{line}; {skip} leaves out images without masks and lists them")
        }
        SampleError::NoMaskCell { column, .. } => {
            format!("if nothing is marked in an image, name a mask of zeros; {skip} leaves out images without masks and lists them; {} packs all images without masks", LEAVE_OUT.with(column))
        }
        SampleError::NoFile { file, .. } if is_url(file) => {
            "the table lists URLs: download the images first, for example with img2dataset, and convert the downloaded files".to_owned()
        }
        SampleError::NoFile { file, .. } if is_numbers(file) => {
            "pixels stored as text are not read: convert each string to an array (numpy.fromstring(text, sep=' ')), and save all of them as one array in a .npz file".to_owned()
        }
        SampleError::NoFile { is_there: true, .. } => {
            format!("folders, pipes, sockets and devices are not read: pass a file, or use {skip}, which leaves out such samples and lists them")
        }
        SampleError::NoFile { .. } => {
            format!("relative paths are resolved against the manifest's folder: {} sets a different folder, and {skip} leaves out such samples and lists them", ROOT.with("FOLDER"))
        }
        _ => {
            format!("{skip} leaves out bad samples and lists them, and {} replaces them with zeros", ON_ERROR.with("substitute"))
        }
    }
}

/// Whether the error is about a TIFF file with bands instead of colours. Pillow does not read bands.
fn is_multiband(error: &SampleError) -> bool {
    error.to_string().contains("(bands)")
}

/// Whether the supposed path is in fact a URL.
fn is_url(file: &Path) -> bool {
    file.components().any(|part| ["http:", "https:", "s3:", "gs:"].iter().any(|known| part.as_os_str() == *known))
}

/// Whether the supposed file name is in fact a list of numbers separated by spaces.
fn is_numbers(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut numbers = name.split_ascii_whitespace();
    numbers.clone().count() > 4 && numbers.all(|word| word.parse::<f64>().is_ok())
}

/// A path, truncated if it is longer than any real path.
fn cut(path: &Path) -> String {
    const SHOWN: usize = 1024;
    let text = path.display().to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
