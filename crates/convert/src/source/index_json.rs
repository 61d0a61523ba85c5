//! Datasets whose folder has an `index.json` that names their shards and describes their fields, as MosaicML Streaming and LitData
//! write them: where the index is, and the files that it names.

use std::io::Read;
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
pub(super) const INDEX: &str = "index.json";
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
    /// Says how to join the datasets of the folders in a folder.
    pub(super) join: fn(&Path) -> String,
}

impl IndexFormat {
    /// Whether a file is an index of this format, according to its name and first bytes.
    pub(super) fn starts(self, head: &Head<'_>) -> bool {
        let text = String::from_utf8_lossy(head.bytes);
        let member = format!("\"{}\"", self.list);
        let list = text.split_once(&member).and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        let is_list = list.is_some_and(|list| list.trim_start().starts_with('['));
        head.name == INDEX && text.trim_start().starts_with('{') && is_list
    }

    /// Whether a folder, or one of its first subfolders, has an index of this format.
    pub(super) fn is_in(self, folder: &Path, names: &[String]) -> bool {
        let has_index = |folder: &Path| {
            let index = folder.join(INDEX);
            index.is_file() && head_of(&index).is_ok_and(|head| self.starts(&Head::new(&index, &head)))
        };
        if names.iter().any(|name| name == INDEX) {
            return has_index(folder);
        }
        let mut names: Vec<&String> = names.iter().collect();
        names.sort_unstable();
        names.into_iter().take(MAX_FOLDERS).any(|name| has_index(&folder.join(name)))
    }

    /// The folders of a source that have an index, each with its split: the source itself, or its subfolders. The source may also be
    /// the index.
    ///
    /// # Errors
    /// If several subfolders have an index, but are not splits.
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
        if inner.len() > 1 && inner.iter().any(|inner| split(inner).is_none()) {
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
    serde_json::from_slice(&text)
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

/// Refuses a shard of another length than the index states. `what` names what is counted.
pub(super) fn of_length(file: OpenFile, what: &str, expected: u64) -> Result<OpenFile, ConvertError> {
    if file.bytes == expected {
        return Ok(file);
    }
    let reason = format!("expected {expected} {what}, as in '{INDEX}', found {}", file.bytes);
    let hint = "copy or download the file again, with the index that belongs to it";
    Err(ConvertError::contradictory(&file.path, "", reason, hint))
}

/// Unpacks a compressed shard into a temporary file of at most `limit` bytes.
pub(super) fn unpack(path: &Path, limit: u64, options: &ListOptions) -> Result<OpenFile, ConvertError> {
    let damaged = |error: std::io::Error| match compressed::is_damage(&error) {
        true => ConvertError::malformed(path, "", format!("cannot be unpacked: {error}")),
        false => ConvertError::io(path)(error),
    };
    let Some(packed) = compressed::open(path).map_err(ConvertError::io(path))? else {
        let reason = "expected a file compressed with zstd, gzip, bzip2 or xz, found other bytes";
        return Err(ConvertError::malformed(path, "", reason));
    };
    let folder = options.spool_folder();
    let mut spool = Spool::create(&folder)?;
    spool.begin_file(Packed::Stream(path.into()));
    let (mut piece, mut found) = (Vec::new(), 0);
    let mut packed = packed.take(limit.saturating_add(1));
    loop {
        piece.clear();
        let n = packed.by_ref().take(PIECE_BYTES).read_to_end(&mut piece).map_err(damaged)?;
        if n == 0 {
            break;
        }
        found += to_u64(n);
        folder.unpacking.check()?;
        spool.append(&piece)?;
    }
    if found > limit {
        let reason = format!("expected at most {limit} unpacked bytes, as in '{INDEX}', found more");
        return Err(ConvertError::malformed(path, "", reason));
    }
    spool.finish(path)
}

/// The error about shards in a compression that is not read. `unpack` is Python code that writes them without it.
pub(super) fn unread_compression(path: &Path, name: &str, unpack: &str) -> ConvertError {
    let reason =
        format!("the compression '{}' is not supported, only zstd, gzip, bzip2 and xz are", name.escape_debug());
    ConvertError::unsupported(path, "", reason, format!("unpack the files in Python: {unpack}"))
}
