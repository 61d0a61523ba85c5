//! Finds the files of a manifest: resolves its paths relative to a root folder.
//!
//! Image folders have no such paths: `walk` finds their files.

use std::borrow::Cow;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf, absolute},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::{
    ListOptions,
    candidate::SampleFiles,
    cell_form::file_and_class,
    clips::Clips,
    detect::names_in,
    directory::file_size,
    layout::is_image_folder,
    located::Located,
    near_names::{Near, NearNames},
    paths::{FileTable, PathTable, as_path, lossy},
    rows::{Cell, Rows},
    split::is_split_folder,
    table_note::TableNote,
    values::text_of,
    warning::Warning,
};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};

/// The formats of arrays with one sample per file, which a table may list without the extension.
const ARRAYS: [DataFormat; 3] = [DataFormat::Npy, DataFormat::Npz, DataFormat::Pt];
/// Number of rows inspected to find out whether the paths lack a folder.
const MAX_FIRST: usize = 100;
/// Number of files whose sizes a thread reads at a time.
const RUN_FILES: usize = 256;

/// The folder that paths are relative to.
pub(super) struct Root {
    pub(super) path: PathBuf,
    folder: OwnedFd,
    /// Other absolute paths of the folder. Paths in the manifest may start with them.
    absolute: Vec<PathBuf>,
    /// The folder that relative paths are resolved against, if it is not `path`.
    base: Option<PathBuf>,
    /// The files of columns whose paths lack the folder or the extension.
    located: BTreeMap<usize, Located>,
    /// The location of the folders, if the column of images names folders.
    clips: Option<Clips>,
    /// Whether each path is joined with a class, as in `1.jpg_Fish`.
    pub(super) has_classes: bool,
    /// Whether the first rows lead to no file below the root, or images are found only in a mask folder.
    is_lost: bool,
    /// By column, the prefix of paths that were written on another machine. The rest of each path is relative to the
    /// root.
    elsewhere: BTreeMap<usize, Vec<String>>,
}

impl Root {
    /// Opens the requested folder, or else the manifest's own.
    pub(super) fn open(source: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        match (&options.root, source.parent()) {
            (Some(root), _) => Self::at(root.clone()),
            (None, Some(parent)) if parent != Path::new("") => Self::at(parent.to_owned()),
            (None, _) => Self::at(PathBuf::from(".")),
        }
    }

    fn at(path: PathBuf) -> Result<Self, ConvertError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty()).map_err(|error| {
            let source = io::Error::from(error);
            match source.kind() {
                ErrorKind::NotFound => ConvertError::SourceMissing { path: path.clone() },
                _ => ConvertError::UnreadableDirectory { path: path.clone(), source },
            }
        })?;
        let absolute = [absolute(&path), path.canonicalize()].into_iter().flatten().collect();
        Ok(Self {
            path,
            folder,
            absolute,
            base: None,
            located: BTreeMap::new(),
            clips: None,
            has_classes: false,
            is_lost: false,
            elsewhere: BTreeMap::new(),
        })
    }

    /// The root for a manifest with absolute paths outside this root: the deepest folder that contains all files of these columns.
    /// Relative paths stay relative to this root.
    pub(super) fn around(&self, rows: &mut Rows<'_>, columns: &[usize]) -> Result<Self, ConvertError> {
        let base = absolute(&self.path).map_err(ConvertError::io(&self.path))?;
        let mut common: Option<PathBuf> = None;
        while rows.advance()? {
            for column in columns {
                let text = path_text(rows, *column)?;
                let path = base.join(OsStr::from_bytes(text.as_bytes()));
                let path = without_dots(&path).ok_or_else(|| rows.escapes(&text, &self.path))?;
                let file = Path::new("/").join(as_path(&path));
                let folder = file.parent().unwrap_or(&file);
                let found = common.as_deref().unwrap_or(folder).ancestors();
                let shared = found.into_iter().find(|above| folder.starts_with(above));
                common = shared.map(Path::to_owned);
            }
        }
        let root = Self::at(common.unwrap_or_else(|| base.clone()))?;
        let base = Some(base);
        Ok(Self { base, ..root })
    }

    /// The path in a cell, relative to the root, without `.` and `..`. Resolves `..` textually, ignoring links.
    pub(super) fn relative(&self, rows: &Rows<'_>, column: usize) -> Result<Vec<u8>, ConvertError> {
        let text = self.path_text(rows, column)?;
        if let Some(rest) = self
            .elsewhere
            .get(&column)
            .and_then(|start| parts(&text)?.strip_prefix(start.as_slice()).map(|rest| rest.join("/")))
        {
            return Ok(rest.into_bytes());
        }
        let path = Path::new(OsStr::from_bytes(text.as_bytes()));
        let path = match &self.base {
            Some(base) => base.join(path),
            None => path.to_owned(),
        };
        let below = if path.is_absolute() { self.below(&path) } else { without_dots(&path) };
        match below {
            Some(relative) if relative.is_empty() => {
                let name = &rows.columns[column];
                Err(rows.malformed(format!("column '{name}': '{text}' is not a file path")))
            }
            Some(relative) => self.located_path(rows, column, relative),
            None => Err(rows.escapes(&text, &self.path)),
        }
    }

    /// The path in a cell, without the class that may follow it.
    fn path_text(&self, rows: &Rows<'_>, column: usize) -> Result<String, ConvertError> {
        let text = path_text(rows, column)?;
        let file = self.has_classes.then(|| file_and_class(&text)).flatten();
        Ok(file.map(|(file, _)| file.to_owned()).unwrap_or(text))
    }

    /// The images of the current row, relative to the root. If a column names folders, these are the images of the
    /// folder. If the folder has no images, its own path is returned, and is later reported as missing.
    pub(super) fn images(&self, rows: &Rows<'_>, column: usize) -> Result<Vec<Vec<u8>>, ConvertError> {
        let path = self.relative(rows, column)?;
        let Some(clips) = &self.clips else { return Ok(vec![path]) };
        let images = clips.images(&self.path, &path)?;
        Ok(if images.is_empty() { vec![path] } else { images })
    }

    /// The file that a path in a column refers to: the located file, if the files of the column were located.
    fn located_path(&self, rows: &Rows<'_>, column: usize, path: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
        let Some(located) = self.located.get(&column) else {
            return Ok(path);
        };
        located.path(&path).map(|found| found.unwrap_or_else(|| path.clone())).map_err(|[one, other]| {
            let [named, one, other] = [&path, &one, &other].map(|path| lossy(path));
            let name = &rows.columns[column];
            rows.malformed(format!("column '{name}': '{named}' matches both '{one}' and '{other}'"))
        })
    }

    /// If the paths in the first rows lead to no files, searches for the files of these columns, which hold images or masks.
    pub(super) fn locate(
        &mut self,
        rows: &mut Rows<'_>,
        columns: &[(usize, bool)],
    ) -> Result<Vec<Warning>, ConvertError> {
        let mut first: Vec<Vec<Vec<u8>>> = vec![Vec::new(); columns.len()];
        let mut texts: Vec<Vec<String>> = vec![Vec::new(); columns.len()];
        for _ in 0..MAX_FIRST {
            if !rows.advance()? {
                break;
            }
            for (((column, _), paths), texts) in columns.iter().zip(&mut first).zip(&mut texts) {
                texts.extend(self.path_text(rows, *column));
                // Errors in these paths are reported later, when their rows are taken.
                paths.extend(self.relative(rows, *column));
            }
        }
        let mut warnings = Vec::new();
        for (((column, is_mask), paths), texts) in columns.iter().zip(first).zip(texts) {
            let is_file = |path: &Vec<u8>| matches!(file_size(&self.folder, path), Ok(Some(_)));
            if !paths.iter().any(is_file)
                && let Some((start, named, path)) = self.other_machine(&texts)
            {
                let column_name = rows.columns[*column].clone();
                warnings.push(Warning::FilesLocated { column: column_name, named, path });
                self.elsewhere.insert(*column, start);
                continue;
            }
            let Some(named) = paths.first().filter(|_| !paths.iter().any(is_file)) else { continue };
            if let ([_], Some(clips)) = (columns, Clips::find(&self.path, &paths)) {
                warnings.push(Warning::Table(TableNote::FolderRows { first: named.clone() }));
                self.clips = Some(clips);
                continue;
            }
            let located = |files| Located::find(&self.path, &rows.file.path, &paths, (files, *is_mask));
            let mut located_arrays = ARRAYS.iter().map(|format| located(SampleFiles::Of(*format)));
            let found = match located(SampleFiles::Images)? {
                None => located_arrays.find_map(Result::transpose).transpose()?,
                found => found,
            };
            let Some(located) = found else {
                self.is_lost = true;
                continue;
            };
            let found = |named: &Vec<u8>| Some((named.clone(), located.path(named).ok().flatten()?));
            if let Some((named, path)) = paths.iter().find_map(found) {
                let column = rows.columns[*column].clone();
                warnings.push(Warning::FilesLocated { column, named, path });
            }
            self.is_lost |= !*is_mask && located.is_in_masks();
            self.located.insert(*column, located);
        }
        Ok(warnings)
    }

    /// The image folder next to this one, such as `images` next to `labels`, if the first rows lead to files only there. It may also be
    /// a folder named after the split in the manifest's name: `train2017` for `captions_train2017.json`. Also returns the warnings
    /// about it.
    pub(super) fn beside<'a>(
        &self,
        manifest: &Path,
        rows: impl Fn() -> Result<Rows<'a>, ConvertError>,
        columns: &[(usize, bool)],
    ) -> Result<Option<(Self, Vec<Warning>)>, ConvertError> {
        if !self.is_lost {
            return Ok(None);
        }
        let above = ["..", "../.."].map(|above| self.path.join(above));
        let own_split = split_beside(&self.path, manifest);
        for folder in own_split.into_iter().chain(above.iter().flat_map(|above| image_folders_in(above))) {
            let mut root = Self::at(folder.clone())?;
            let mut warnings = root.locate(&mut rows()?, columns)?;
            if !root.is_lost {
                warnings.push(Warning::RootBeside { folder: folder.as_os_str().as_encoded_bytes().to_vec() });
                return Ok(Some((root, warnings)));
            }
        }
        Ok(None)
    }

    /// The shortest common prefix whose removal turns all paths into paths of files below the root. Also the first
    /// path, and the part of it that follows the prefix. `None` if there is no such prefix.
    fn other_machine(&self, texts: &[String]) -> Option<(Vec<String>, Vec<u8>, Vec<u8>)> {
        let first_text = texts.first()?;
        // If the file exists outside the root, another error reports it.
        if self.path.join(first_text).is_file() {
            return None;
        }
        let all: Vec<Vec<String>> = texts.iter().map(|text| parts(text)).collect::<Option<_>>()?;
        let first = all.first()?;
        // The prefix may be just the leading slash, but must not be empty.
        (usize::from(!first_text.starts_with('/'))..first.len()).find_map(|n| {
            let start = first.get(..n)?;
            let rest = |path: &Vec<String>| path.strip_prefix(start).map(|rest| rest.join("/").into_bytes());
            let is_file = |path: &Vec<String>| {
                rest(path).is_some_and(|rest| matches!(file_size(&self.folder, &rest), Ok(Some(_))))
            };
            let found = rest(first).filter(|_| all.iter().all(is_file))?;
            Some((start.to_vec(), first_text.clone().into_bytes(), found))
        })
    }

    /// An absolute path relative to the root. `None` if outside.
    fn below(&self, path: &Path) -> Option<Vec<u8>> {
        let file = Path::new("/").join(as_path(&without_dots(path)?));
        let below = self.absolute.iter().find_map(|root| file.strip_prefix(root).ok());
        below.and_then(without_dots)
    }

    /// The files that the paths name, with their sizes, read by `jobs` threads. If no file has the exact name, a file
    /// whose name differs only in case or Unicode form is used, and counted in `told`.
    pub(super) fn files(&self, table: PathTable, jobs: usize, told: &mut Renamed) -> Result<Files, ConvertError> {
        let Sizes { mut bytes, not_files } = self.file_sizes(&table, jobs)?;
        let (mut missing, mut taken) = (BTreeMap::new(), BTreeMap::new());
        let mut near_names = NearNames::of(&self.path);
        for (idx, is_there) in not_files {
            let path = table.path(idx);
            let near = if is_there { Near::None } else { near_names.find(&path) };
            let names = match near {
                Near::None => None,
                Near::Several(names) => Some(names),
                Near::One(near) => match file_size(&self.folder, &near) {
                    Ok(Some(size)) => {
                        told.add(&path, &near);
                        bytes[idx] = size;
                        taken.insert(idx, near);
                        continue;
                    }
                    _ => None,
                },
            };
            missing.insert(idx, Missing { is_there, near: names.map(|names| names.map(|name| lossy(&name))) });
        }
        if taken.is_empty() {
            return Ok(Files { paths: table, bytes, missing });
        }
        let mut files = FileTable::default();
        for idx in 0..table.len() {
            files.push(&taken.remove(&idx).unwrap_or_else(|| table.path(idx)));
        }
        Ok(Files { paths: files.paths, bytes, missing })
    }

    /// The sizes of all files, read by `jobs` threads. The error names the first file whose size cannot be read.
    fn file_sizes(&self, table: &PathTable, jobs: usize) -> Result<Sizes, ConvertError> {
        let mut sizes = Sizes { bytes: Vec::with_capacity(table.len()), not_files: BTreeMap::new() };
        let mut starts = (0..table.len()).step_by(RUN_FILES);
        ordered(
            jobs,
            jobs.saturating_mul(4),
            || (),
            |(), start: usize| {
                let run = start..table.len().min(start + RUN_FILES);
                run.map(|idx| self.file_size(table, idx)).collect::<Result<Vec<Found>, ConvertError>>()
            },
            || Ok::<_, ConvertError>(starts.next()),
            |run: Result<Vec<Found>, ConvertError>| {
                for found in run? {
                    sizes.push(found);
                }
                Ok(Next::Continue)
            },
        )?;
        Ok(sizes)
    }

    fn file_size(&self, table: &PathTable, idx: usize) -> Result<Found, ConvertError> {
        let path = table.path(idx);
        match file_size(&self.folder, &path) {
            Ok(Some(size)) => Ok(Found::File(size)),
            Ok(None) => Ok(Found::NoFile { is_there: true }),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => {
                Ok(Found::NoFile { is_there: false })
            }
            Err(error) => Err(ConvertError::io(&self.path.join(as_path(&path)))(error.into())),
        }
    }
}

enum Found {
    File(u64),
    NoFile { is_there: bool },
}

/// The files of a column.
pub(super) struct Files {
    pub(super) paths: PathTable,
    /// The size of each file; 0 if it is missing.
    pub(super) bytes: Vec<u64>,
    /// Missing or non-regular files by index.
    pub(super) missing: BTreeMap<usize, Missing>,
}

/// A file that is missing or not regular.
pub(super) struct Missing {
    /// Whether the path exists, but is not a regular file.
    pub(super) is_there: bool,
    /// Two files whose names differ from the path only in case or Unicode form.
    pub(super) near: Option<[String; 2]>,
}

/// Counts files whose names differ from those in the table, and keeps the first name in the table and on disk.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    count: u64,
    first: Option<[Vec<u8>; 2]>,
}

impl Renamed {
    fn add(&mut self, named: &[u8], path: &[u8]) {
        self.count += 1;
        self.first.get_or_insert_with(|| [named.to_vec(), path.to_vec()]);
    }

    pub(super) fn warning(self) -> Option<Warning> {
        self.first.map(|[named, path]| Warning::NearNames { count: self.count, named, path })
    }
}

/// The sizes of the files of a column.
struct Sizes {
    /// The size of each file; 0 if it is missing.
    bytes: Vec<u64>,
    /// Missing or non-regular files by index. True if the path exists.
    not_files: BTreeMap<usize, bool>,
}

impl Sizes {
    fn push(&mut self, found: Found) {
        let size = match found {
            Found::File(size) => size,
            Found::NoFile { is_there } => {
                self.not_files.insert(self.bytes.len(), is_there);
                0
            }
        };
        self.bytes.push(size);
    }
}

/// The folder next to `root` with the name of the split at the end of the manifest's name.
fn split_beside(root: &Path, manifest: &Path) -> Option<PathBuf> {
    let stem = manifest.file_stem()?.to_string_lossy();
    let name = stem.rsplit('_').next().filter(|name| is_split_folder(name.as_bytes()))?;
    let folder = root.join("..").join(name);
    folder.is_dir().then_some(folder)
}

/// The subfolders with names commonly used for images, in name order.
fn image_folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut names = names_in(folder);
    names.retain(|name| is_image_folder(name.as_bytes()));
    names.sort_unstable();
    names.into_iter().map(|name| folder.join(name)).filter(|folder| folder.is_dir()).collect()
}

/// The path in a cell.
fn path_text(rows: &Rows<'_>, column: usize) -> Result<String, ConvertError> {
    let name = &rows.columns[column];
    let text = match rows.cell(column) {
        Cell::Missing => {
            return Err(rows.malformed(format!("column '{name}': the path is missing")));
        }
        cell @ (Cell::Text(_) | Cell::Json(serde_json::Value::String(_))) => text_of(cell),
        Cell::Json(value) => {
            let reason = format!("column '{name}': expected a path, found {value}");
            return Err(rows.malformed(reason));
        }
    };
    if text.contains('\0') {
        return Err(rows.malformed(format!("column '{name}': the path contains a NUL byte")));
    }
    Ok(with_slashes(text))
}

/// Replaces the backslashes of a path from Windows with slashes. A path that has slashes is not changed.
pub(super) fn with_slashes(text: Cow<'_, str>) -> String {
    let is_windows = text.contains('\\') && !text.contains('/');
    if is_windows { text.replace('\\', "/") } else { text.into_owned() }
}

/// The parts of a path without empty parts, `.`, and leading `..`. `None` if `..` appears later.
pub(super) fn parts(text: &str) -> Option<Vec<String>> {
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<String> = parts.skip_while(|part| *part == "..").map(str::to_owned).collect();
    (!parts.iter().any(|part| part == "..")).then_some(parts)
}

/// The components of a path joined with `/`, without a leading slash. `None` if the path leaves the root.
pub(super) fn without_dots(path: &Path) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.as_bytes()),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir | Component::RootDir => {}
            Component::Prefix(_) => return None,
        }
    }
    Some(parts.join(&b'/'))
}
