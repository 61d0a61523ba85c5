//! Datasets whose folder has an `index.json` that names their shards and describes their fields, as MosaicML Streaming and LitData
//! write them: where the index is, and the files that it names.

use std::collections::HashSet;
use std::io::{Error, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use packds_system::{open_regular, to_u64};
use serde::de::DeserializeOwned;

use super::ListOptions;
use super::compressed;
use super::detect::{Head, head_of};
use super::packed::Packed;
use super::shards::folders_in;
use super::split::is_split_folder;
use super::spool::Spool;
use super::store::OpenFile;
use crate::error::{ConvertError, quoted};

/// The name of the index.
pub(crate) const INDEX: &str = "index.json";
/// Maximum size of an index, in bytes. An index of a million shards has half of it.
const MAX_INDEX: u64 = 1 << 30;
/// Maximum number of subfolders to search for an index.
const MAX_FOLDERS: usize = 64;
/// Bytes unpacked at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// A format with an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexFormat {
    /// The member of the index that lists the shards.
    pub(super) list: &'static str,
    /// Whether a name is that of a shard.
    pub(super) is_shard: fn(&str) -> bool,
    /// Says how to join the datasets of the folders in a folder.
    pub(super) join: fn(&Path) -> String,
}

impl IndexFormat {
    /// Whether a file is an index of this format, according to its name and first bytes.
    pub(super) fn starts(self, head: &Head<'_>) -> bool {
        let text = String::from_utf8_lossy(head.bytes);
        let text = text.trim_start_matches('\u{feff}');
        let member = format!("\"{}\"", self.list);
        let list = text.split_once(&member).and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        let is_list = list.is_some_and(|list| list.trim_start().starts_with('['));
        head.name == INDEX && text.trim_start().starts_with('{') && is_list
    }

    /// Whether a folder has an index of this format, or a damaged one next to shards. The reader reports the damage.
    pub(super) fn is_in(self, folder: &Path, names: &[String]) -> bool {
        self.has_index(folder) || (folder.join(INDEX).is_file() && names.iter().any(|name| (self.is_shard)(name)))
    }

    /// Whether one of the first subfolders of a folder without an index has an index of this format.
    pub(super) fn is_below(self, folder: &Path, names: &[String]) -> bool {
        let mut names: Vec<&String> = names.iter().collect();
        names.sort_unstable();
        let mut folders = names.into_iter().take(MAX_FOLDERS).map(|name| folder.join(name));
        !folder.join(INDEX).exists() && folders.any(|folder| self.has_index(&folder))
    }

    fn has_index(self, folder: &Path) -> bool {
        let index = folder.join(INDEX);
        index.is_file() && head_of(&index).is_ok_and(|head| self.starts(&Head::new(&index, &head)))
    }

    /// The folders of a source that have an index, each with its split: the source itself, or its subfolders. The source may also be
    /// the index.
    ///
    /// # Errors
    /// If several subfolders have an index, but none is a split.
    pub(super) fn folders(self, source: &Path) -> Result<Vec<(Option<String>, PathBuf)>, ConvertError> {
        let folder = folder_of(source);
        if folder.is_file() {
            let reason = format!("expected a folder with '{INDEX}', found a file");
            let hint = format!("pass the folder that contains '{INDEX}'");
            return Err(ConvertError::contradictory(&folder, "", reason, hint));
        }
        if folder.join(INDEX).exists() {
            return Ok(vec![(None, folder)]);
        }
        let inner: Vec<PathBuf> = folders_in(&folder).into_iter().filter(|inner| inner.join(INDEX).is_file()).collect();
        let name = |inner: &PathBuf| inner.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let split = |inner: &PathBuf| Some(name(inner)).filter(|name| is_split_folder(name.as_bytes()));
        if inner.is_empty() {
            let reason = format!("expected '{INDEX}' in this folder, or in a folder for each split, found none");
            let hint = format!("pass the folder that contains '{INDEX}'");
            return Err(ConvertError::contradictory(&folder, "", reason, hint));
        }
        if inner.len() > 1 && inner.iter().all(|inner| split(inner).is_none()) {
            let names: Vec<String> = inner.iter().map(name).collect();
            let reason = format!(
                "expected '{INDEX}' in this folder, or in a folder for each split, found it in {}",
                quoted(&names)
            );
            let hint = format!("{}, or convert each folder separately", (self.join)(&folder));
            return Err(ConvertError::unsupported(&folder, "", reason, hint));
        }
        Ok(inner.into_iter().map(|inner| (split(&inner), inner)).collect())
    }
}

/// The folder of a source, which may be given as its index.
fn folder_of(source: &Path) -> PathBuf {
    let is_index = source.file_name().is_some_and(|name| name == INDEX) && !source.is_dir();
    match source.parent().filter(|_| is_index) {
        Some(parent) if parent == Path::new("") => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => source.to_owned(),
    }
}

/// Reads the index in a folder.
pub(super) fn read<T: DeserializeOwned>(folder: &Path) -> Result<T, ConvertError> {
    let path = folder.join(INDEX);
    let file = open_regular(&path).map_err(ConvertError::io(&path))?;
    let mut text = Vec::new();
    file.take(MAX_INDEX + 1).read_to_end(&mut text).map_err(ConvertError::io(&path))?;
    if to_u64(text.len()) > MAX_INDEX {
        let reason = format!("expected an index of at most {MAX_INDEX} bytes, found more");
        return Err(ConvertError::malformed(&path, "", reason));
    }
    // Some editors of text write this mark.
    serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text))
        .map_err(|error| ConvertError::malformed(&path, "", format!("cannot be read: {error}")))
}

/// The path of a file that an index names.
///
/// # Errors
/// If it leads out of the folder of the index.
pub(super) fn file_in(folder: &Path, name: &str) -> Result<PathBuf, ConvertError> {
    let relative = Path::new(name);
    let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    match is_inside && !name.is_empty() && !name.contains('\0') {
        true => Ok(folder.join(relative)),
        false => {
            let reason = format!("expected the name of a file in this folder, found '{}'", name.escape_debug());
            Err(ConvertError::malformed(&folder.join(INDEX), "", reason))
        }
    }
}

/// What to do about a shard that does not fit the index.
const COPY_AGAIN: &str = "copy or download the file again, with the index that belongs to it";

/// Refuses an index that names a file twice.
pub(super) fn refuse_twice<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) -> Result<(), ConvertError> {
    let mut seen = HashSet::new();
    let Some(twice) = names.into_iter().find(|name| !seen.insert(*name)) else { return Ok(()) };
    let reason = format!("expected each file once, found '{}' twice", twice.escape_debug());
    let hint = "remove the second entry, or copy the index again";
    Err(ConvertError::contradictory(&folder.join(INDEX), "", reason, hint))
}

/// Opens a shard.
pub(super) fn open(path: &Path) -> Result<OpenFile, ConvertError> {
    OpenFile::open(path).map_err(|error| not_opened(path, error))
}

/// The error about a shard that cannot be opened.
fn not_opened(path: &Path, error: Error) -> ConvertError {
    match error.kind() {
        ErrorKind::NotFound => {
            let reason = format!("expected this file, which '{INDEX}' names, found none");
            ConvertError::contradictory(path, "", reason, COPY_AGAIN)
        }
        _ => ConvertError::io(path)(error),
    }
}

/// Refuses a shard of another length than the index states. `what` names what is counted.
pub(super) fn of_length(file: OpenFile, what: &str, expected: u64) -> Result<OpenFile, ConvertError> {
    if file.bytes == expected {
        return Ok(file);
    }
    let reason = format!("expected {expected} {what}, as in '{INDEX}', found {}", file.bytes);
    Err(ConvertError::contradictory(&file.path, "", reason, COPY_AGAIN))
}

/// The temporary file that the shards of a dataset are unpacked into, one after the other.
#[derive(Debug)]
pub(super) struct Unpacked<'a> {
    options: &'a ListOptions,
    /// `None` until something is unpacked.
    spool: Option<Spool>,
}

impl<'a> Unpacked<'a> {
    pub(super) fn new(options: &'a ListOptions) -> Self {
        Self { options, spool: None }
    }

    /// Unpacks a shard, as `unpack` does with the temporary file. Errors name `path`.
    pub(super) fn shard(
        &mut self,
        path: &Path,
        unpack: impl FnOnce(&mut Spool) -> Result<(), ConvertError>,
    ) -> Result<OpenFile, ConvertError> {
        let spool = match self.spool.take() {
            Some(spool) => spool,
            None => Spool::create(&self.options.spool_folder())?,
        };
        let spool = self.spool.insert(spool);
        unpack(spool)?;
        spool.since(path)
    }

    /// Unpacks a compressed shard to at most `limit` bytes.
    pub(super) fn file(&mut self, path: &Path, limit: u64) -> Result<OpenFile, ConvertError> {
        let damaged = |error: Error| match compressed::is_damage(&error) {
            true => ConvertError::malformed(path, "", format!("cannot be unpacked: {error}")),
            false => ConvertError::io(path)(error),
        };
        let Some(packed) = compressed::open(path).map_err(|error| not_opened(path, error))? else {
            let reason = "expected a file compressed with zstd, gzip, bzip2 or xz, found other bytes";
            return Err(ConvertError::malformed(path, "", reason));
        };
        let mut packed = packed.take(limit.saturating_add(1));
        let file = self.shard(path, |spool| {
            spool.begin_file(Packed::Stream(path.into()));
            let mut piece = Vec::new();
            loop {
                piece.clear();
                let n = packed.by_ref().take(PIECE_BYTES).read_to_end(&mut piece).map_err(damaged)?;
                if n == 0 {
                    return Ok(());
                }
                spool.append(&piece)?;
            }
        })?;
        if file.bytes > limit {
            let reason = format!("expected at most {limit} unpacked bytes, as in '{INDEX}', found more");
            return Err(ConvertError::malformed(path, "", reason));
        }
        Ok(file)
    }
}

/// The error about shards in a compression that is not read. `unpack` is Python code that writes them without it.
pub(super) fn unread_compression(path: &Path, name: &str, unpack: &str) -> ConvertError {
    let reason =
        format!("the compression '{}' is not supported, only zstd, gzip, bzip2 and xz are", name.escape_debug());
    ConvertError::unsupported(path, "", reason, format!("unpack the files in Python: {unpack}"))
}
