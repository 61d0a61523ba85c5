//! The folder to which a manifest's paths are relative.
//!
//! Not for image folders, which are walked.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf, absolute},
    sync::{Mutex, MutexGuard, PoisonError},
};

use packds_system::in_parallel;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::{
    ListOptions,
    directory::file_size,
    paths::{PathTable, as_path},
    rows::{Cell, Rows},
    values::text_of,
};
use crate::error::ConvertError;

/// The folder to which paths are relative.
pub(super) struct Root {
    pub(super) path: PathBuf,
    folder: OwnedFd,
    /// Other names of the folder that absolute paths may start with.
    absolute: Vec<PathBuf>,
    /// What relative paths are relative to, where that is another folder.
    base: Option<PathBuf>,
}

impl Root {
    /// The folder that was asked for, else the one that the manifest lies in.
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
                _ => ConvertError::UnreadableDirectory {
                    path: path.clone(),
                    source,
                },
            }
        })?;
        let absolute = [absolute(&path), path.canonicalize()]
            .into_iter()
            .flatten()
            .collect();
        Ok(Self {
            path,
            folder,
            absolute,
            base: None,
        })
    }

    /// The root of a manifest with absolute paths that lead elsewhere: the deepest folder that has all files of these columns.
    /// Relative paths stay relative to this root.
    pub(super) fn around(
        &self,
        rows: &mut Rows<'_>,
        columns: &[usize],
    ) -> Result<Self, ConvertError> {
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

    /// The path in a cell, relative to the root, without `.` and `..` parts. `..` is resolved by
    /// the text alone, as if no folder were a link.
    pub(super) fn relative(&self, rows: &Rows<'_>, column: usize) -> Result<Vec<u8>, ConvertError> {
        let text = path_text(rows, column)?;
        let path = Path::new(OsStr::from_bytes(text.as_bytes()));
        let path = match &self.base {
            Some(base) => base.join(path),
            None => path.to_owned(),
        };
        let below = if path.is_absolute() {
            self.below(&path)
        } else {
            without_dots(&path)
        };
        match below {
            Some(relative) if relative.is_empty() => {
                let name = &rows.columns()[column];
                Err(rows.malformed(format!("column '{name}': '{text}' is no path of a file")))
            }
            Some(relative) => Ok(relative),
            None => Err(rows.escapes(&text, &self.path)),
        }
    }

    /// What an absolute path is relative to the root; none if it leads elsewhere.
    fn below(&self, path: &Path) -> Option<Vec<u8>> {
        let file = Path::new("/").join(as_path(&without_dots(path)?));
        let below = self
            .absolute
            .iter()
            .find_map(|root| file.strip_prefix(root).ok());
        below.and_then(without_dots)
    }

    /// The sizes of all files, read by `jobs` threads, or the first file that fails.
    pub(super) fn file_sizes(
        &self,
        table: &PathTable,
        jobs: usize,
    ) -> Result<Vec<u64>, FailedFile> {
        let mut sizes = vec![0; table.len()];
        let share = table.len().div_ceil(jobs.max(1)).max(1);
        let shares = Mutex::new((0..).step_by(share).zip(sizes.chunks_mut(share)));
        let first_failed: Mutex<Option<FailedFile>> = Mutex::new(None);
        in_parallel(jobs, || {
            loop {
                let next = lock(&shares).next();
                let Some((first, sizes)) = next else { return };
                if let Err(failed) = self.fill_sizes(table, first, sizes) {
                    let mut so_far = lock(&first_failed);
                    if so_far.as_ref().is_none_or(|other| failed.idx < other.idx) {
                        *so_far = Some(failed);
                    }
                }
            }
        });
        let failed = first_failed.into_inner();
        match failed.unwrap_or_else(PoisonError::into_inner) {
            Some(failed) => Err(failed),
            None => Ok(sizes),
        }
    }

    fn fill_sizes(
        &self,
        table: &PathTable,
        first: usize,
        sizes: &mut [u64],
    ) -> Result<(), FailedFile> {
        let mut path = Vec::new();
        for (idx, size) in (first..).zip(sizes) {
            path.clear();
            table.path_into(idx, &mut path);
            *size = match file_size(&self.folder, &path) {
                Ok(Some(size)) => size,
                Ok(None) => {
                    let mut failed = self.failed(idx, &path, None);
                    failed.is_there = true;
                    return Err(failed);
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => {
                    return Err(self.failed(idx, &path, None));
                }
                Err(error) => return Err(self.failed(idx, &path, Some(error.into()))),
            };
        }
        Ok(())
    }

    fn failed(&self, idx: usize, path: &[u8], error: Option<io::Error>) -> FailedFile {
        FailedFile {
            idx,
            file: self.path.join(as_path(path)),
            is_there: false,
            error,
        }
    }
}

/// A file that is not there or is no regular file; or, with an error, one that the system says
/// nothing about.
pub(super) struct FailedFile {
    pub(super) idx: usize,
    pub(super) file: PathBuf,
    /// It is there, but is a folder, pipe, socket or device.
    pub(super) is_there: bool,
    pub(super) error: Option<io::Error>,
}

/// A thread that panicked while it held the lock ends all with that panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path in a cell.
fn path_text(rows: &Rows<'_>, column: usize) -> Result<String, ConvertError> {
    let name = &rows.columns()[column];
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
        return Err(rows.malformed(format!("column '{name}': the path has a zero byte in it")));
    }
    Ok(text.into_owned())
}

/// The parts of a path with `/` between them, an absolute one's without that in front; none if it leads out.
fn without_dots(path: &Path) -> Option<Vec<u8>> {
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
