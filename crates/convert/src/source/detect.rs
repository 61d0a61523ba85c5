//! Detects the format of a source: by its first bytes, by the contents of a folder, or else by name.

use std::collections::HashSet;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use packds_format::constants::MAGIC;
use packds_format::manifest_version;
use packds_system::{open_regular, to_u64, to_usize};

use super::boxed;
use super::candidate::is_image_name;
use super::compressed::{self, Compression};
use super::foreign::Foreign;
use super::layout::holds_class_folders;
use super::rows::RowForm;
use super::shards::{data_folder, first_of_pattern, is_pattern, split_folders};
use super::torchvision;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::opt::FROM;
use crate::output::is_set_name;

/// Number of bytes to inspect at the start of a file.
const HEAD_BYTES: u64 = 512;
/// Magic bytes of a zip file.
const ZIP: &[u8] = b"PK\x03\x04";
/// Maximum number of folders to inspect for files that hold one sample each.
const MAX_FOLDERS: usize = 64;
/// Maximum number of entries to inspect per folder.
const MAX_ENTRIES: usize = 4096;

/// Detects the format of `source`.
pub(super) fn detect(source: &Path) -> Result<DataFormat, ConvertError> {
    let unknown = |found: String| ConvertError::UnknownFormat { path: source.to_owned(), found };
    let name = source.file_name().and_then(|name| name.to_str());
    let named = name.and_then(DataFormat::from_file_name);
    let metadata = match std::fs::metadata(source) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_pattern(source) {
                let first = name.and_then(first_of_pattern);
                let named = first.as_deref().and_then(DataFormat::from_file_name);
                return named.ok_or_else(|| unknown("the pattern has no extension".to_owned()));
            }
            return Err(ConvertError::SourceMissing { path: source.to_owned() });
        }
        Err(error) => return Err(ConvertError::io(source)(error)),
    };
    if metadata.is_dir() {
        if is_set_name(source) && names_in(source).iter().any(|name| manifest_version(name).is_some()) {
            let hint = "packds merge makes one pack of it, and packds export converts it to other formats";
            return Err(ConvertError::unsupported(source, "", "this is already a set of packs", hint));
        }
        let Some(format) = of_folder(source)? else {
            let foreign = Foreign::of_folder(&names_in(source));
            return foreign.map_or(Ok(DataFormat::ImageFolder), |foreign| Err(foreign.error(source)));
        };
        return Ok(format);
    }
    if !metadata.is_file() {
        return Err(unknown("it is neither a file nor a folder".to_owned()));
    }
    let head = head_of(source)?;
    if head.starts_with(&MAGIC) {
        let (reason, hint) = ("this is already a pack", "packds export converts it to other formats");
        return Err(ConvertError::unsupported(source, "", reason, hint));
    }
    if RowForm::from_path(source).is_some() {
        return Ok(DataFormat::Manifest);
    }
    let start = Head::new(source, &head);
    #[cfg(feature = "arrow")]
    if named == Some(DataFormat::Parquet) && super::parquet::names_files(source) {
        return Ok(DataFormat::Manifest);
    }
    if let Some(format) = format_of_start(&start) {
        return Ok(format);
    }
    if named != Some(DataFormat::Parquet) && RowForm::of_source(source).is_some() {
        return Ok(DataFormat::Manifest);
    }
    let known = named.filter(|format| format.entry().trusts_names);
    known.ok_or_else(|| {
        if head.is_empty() {
            return ConvertError::malformed(source, "", "the file is empty (0 bytes)");
        }
        if let Some(foreign) = Foreign::of_file(&start) {
            return foreign.error(source);
        }
        if boxed::is_data_yaml(source) {
            let reason = "this file has the classes and splits of a YOLO data set, but no images";
            return ConvertError::unsupported(source, "", reason, "pass the folder of the data set as the source");
        }
        let shown = head.get(..16).unwrap_or(&head).escape_ascii();
        unknown(match named {
            Some(format) => format!("the name suggests {format}, but the file starts with \"{shown}\""),
            None => format!("the file starts with \"{shown}\""),
        })
    })
}

/// The first bytes of a file, and its name.
pub(crate) struct Head<'a> {
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    /// The format indicated by the name.
    pub(crate) named: Option<DataFormat>,
    /// The first bytes.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Self { path, name, named: DataFormat::from_file_name(name), bytes }
    }

    /// Whether the bytes at `offset` match.
    pub(crate) fn has(&self, offset: usize, magic: &[u8]) -> bool {
        let rest = self.bytes.get(offset..);
        rest.is_some_and(|rest| rest.starts_with(magic))
    }

    /// Whether this is a zip file.
    pub(crate) fn is_zip(&self) -> bool {
        self.has(0, ZIP)
    }

    /// Whether this is a gzip file.
    pub(crate) fn is_gzip(&self) -> bool {
        self.has(0, b"\x1f\x8b")
    }

    /// Whether this is a compressed file.
    pub(crate) fn is_packed(&self) -> bool {
        Compression::of(self.bytes).is_some()
    }

    /// Whether this is a tar file, plain or compressed.
    pub(crate) fn is_tar(&self) -> bool {
        const MAGIC: &[u8] = b"ustar";
        const MAGIC_AT: u64 = 257;
        let is_packed_tar = || {
            let start = compressed::start(self.path, MAGIC_AT + to_u64(MAGIC.len()));
            self.named == Some(DataFormat::WebDataset) || start.ends_with(MAGIC)
        };
        self.has(to_usize(MAGIC_AT), MAGIC) || (self.is_packed() && is_packed_tar())
    }

    /// The name of the first member of a zip file.
    pub(crate) fn first_zip_name(&self) -> &[u8] {
        let len = match self.bytes.get(26..28) {
            Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
            _ => 0,
        };
        self.bytes.get(30..30 + len).unwrap_or_default()
    }
}

/// The format indicated by the first bytes of a file.
pub(super) fn format_of_start(head: &Head<'_>) -> Option<DataFormat> {
    // Try pickles last, because their two magic bytes are weak evidence.
    let (last, others): (Vec<_>, Vec<_>) = DataFormat::ALL.into_iter().partition(|format| *format == DataFormat::Pt);
    let mut formats = others.into_iter().chain(last);
    formats.find(|format| (format.entry().starts)(head))
}

/// The first bytes of a file.
pub(super) fn head_of(file: &Path) -> Result<Vec<u8>, ConvertError> {
    let mut head = Vec::new();
    let opened = open_regular(file).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    opened.map_err(ConvertError::io(file))?;
    Ok(head)
}

/// Whether the files directly in a folder form a published dataset of this format.
pub(super) fn holds(folder: &Path, format: DataFormat) -> bool {
    (format.entry().is_published)(folder, &names_in(folder))
}

/// The visible names in a folder, from at most `MAX_ENTRIES` entries; empty if the folder cannot be listed.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.take(MAX_ENTRIES).map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// Like [`format_of_folder`], but files of several formats are an error.
fn of_folder(folder: &Path) -> Result<Option<DataFormat>, ConvertError> {
    let own = of_own_files(folder);
    if let Some(own) = own.filter(|own| !matches!(own, DataFormat::WebDataset)) {
        return only_set(folder, own).map(Some);
    }
    // Check torchvision's layout first. The tar files may be just the archives that its files were unpacked from.
    match torchvision::format(folder)? {
        Some(format) => Ok(Some(format)),
        None => own.or_else(|| of_sample_files(folder)).map_or(Ok(None), |own| only_set(folder, own).map(Some)),
    }
}

/// Returns `format` unless the folder also contains files of another dataset format, which is an error.
fn only_set(folder: &Path, format: DataFormat) -> Result<DataFormat, ConvertError> {
    let mut names = names_in(folder);
    names.sort();
    let tables = tables_of_tars(&names);
    let format = if tables.is_empty() { format } else { DataFormat::WebDataset };
    let of = |name: &String| Some((of_set(name)?, name.clone()));
    let sets: Vec<_> = names.iter().filter(|name| !tables.contains(name)).filter_map(of).collect();
    let own = sets.iter().find(|(found, _)| *found == format);
    let other = sets.iter().find(|(found, _)| *found != format);
    let (Some((_, own)), Some((second, other))) = (own, other) else {
        return Ok(format);
    };
    let reason = format!("the files have different formats: '{own}' is {format}, '{other}' is {second}");
    let hint = format!("choose with {} or {}, or pass the files", FROM.with(format.name()), FROM.with(second.name()));
    Err(ConvertError::contradictory(folder, "", reason, hint))
}

/// The Parquet files, if each has the same stem as a tar file. img2dataset writes samples to the tar file and their metadata to the
/// Parquet file.
pub(super) fn tables_of_tars(names: &[String]) -> Vec<&String> {
    let is_of = |name: &&String, format| of_set(name) == Some(format);
    let stem = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    let tars: HashSet<String> = names.iter().filter(|name| is_of(name, DataFormat::WebDataset)).map(stem).collect();
    let tables: Vec<&String> = names.iter().filter(|name| is_of(name, DataFormat::Parquet)).collect();
    if tables.iter().all(|name| tars.contains(&stem(name))) { tables } else { Vec::new() }
}

/// The format indicated by the files directly in a folder.
fn of_own_files(folder: &Path) -> Option<DataFormat> {
    // A marker file identifies the format even if it is unreadable. The format's reader reports the error.
    let has = |name: &str| std::fs::symlink_metadata(folder.join(name)).is_ok();
    let marked = |format: &DataFormat| format.entry().markers.iter().any(|name| has(name));
    if let Some(format) = DataFormat::ALL.into_iter().find(marked) {
        return Some(format);
    }
    let names = names_in(folder);
    let has_index = |format: &DataFormat| (format.entry().has_index)(folder, &names);
    if let Some(format) = DataFormat::ALL.into_iter().find(has_index) {
        return Some(format);
    }
    // Any other folder with images is an image folder, whatever else it contains. `--from` overrides this.
    if names.iter().any(|name| is_image_name(name.as_bytes())) {
        return None;
    }
    let is_published = |format: &DataFormat| (format.entry().is_published)(folder, &names);
    let found = DataFormat::ALL.into_iter().find(is_published);
    // A file of weights or features next to class folders is not the dataset.
    let is_image_folder = || holds_class_folders(folder).unwrap_or(false) || is_unpacked(folder, &names);
    let found = found.or_else(|| names.iter().find_map(|name| of_set(name)).filter(|_| !is_image_folder()));
    // A repository has its data in a subfolder, next to a dataset card and scripts.
    let found = found.or_else(|| names_in(&data_folder(folder)).iter().find_map(|name| of_set(name)));
    let has_images = |names: &Vec<String>| names.iter().any(|name| is_image_name(name.as_bytes()));
    let in_splits = || {
        let splits = split_folders(folder).into_iter().map(|split| names_in(&split));
        splits.filter(|names| !has_images(names)).flatten().find_map(|name| of_set(&name))
    };
    found.or_else(in_splits)
}

/// Whether a folder has exactly one archive, and a subfolder of images that were probably unpacked from it.
fn is_unpacked(folder: &Path, names: &[String]) -> bool {
    let is_archive = |name: &&String| of_set(name) == Some(DataFormat::WebDataset);
    let has_images = |name: &String| names_in(&folder.join(name)).iter().any(|name| is_image_name(name.as_bytes()));
    names.iter().filter(is_archive).count() == 1 && names.iter().any(has_images)
}

/// The format indicated by a file name, if a folder of such files forms one dataset.
pub(super) fn of_set(name: &str) -> Option<DataFormat> {
    DataFormat::from_file_name(name).filter(|format| format.entry().is_set)
}

/// Finds the files and folders in `folder` that look like datasets, and their formats.
pub(super) fn data_sets_in(folder: &Path) -> impl Iterator<Item = (PathBuf, DataFormat)> {
    // Hugging Face's cache has a data set in `snapshots/REVISION`.
    const LEVELS: usize = 2;
    data_sets_within(folder, LEVELS)
}

fn data_sets_within(folder: &Path, levels: usize) -> Box<dyn Iterator<Item = (PathBuf, DataFormat)>> {
    let mut names = names_in(folder);
    names.sort();
    let folder = folder.to_owned();
    Box::new(names.into_iter().filter_map(move |name| {
        let path = folder.join(&name);
        let is_folder = path.is_dir();
        let format = if is_folder { format_of_folder(&path) } else { of_set(&name) };
        let deeper = || if levels > 1 && is_folder { data_sets_within(&path, levels - 1).next() } else { None };
        format.map(|format| (path.clone(), format)).or_else(deeper)
    }))
}

/// The format of a folder's files. `None` if the folder is, or may be, an image folder.
pub(super) fn format_of_folder(folder: &Path) -> Option<DataFormat> {
    of_folder(folder).ok().flatten()
}

/// The format of files that hold one sample each, in a folder or its subfolders. `None` if there are images.
fn of_sample_files(folder: &Path) -> Option<DataFormat> {
    let of_sample = |name: &String| DataFormat::from_file_name(name).filter(|format| format.may_hold_one_sample());
    let mut waiting = vec![folder.to_owned()];
    let mut found = None;
    for _ in 0..MAX_FOLDERS {
        let Some(folder) = waiting.pop() else { break };
        let mut names = names_in(&folder);
        if names.iter().any(|name| is_image_name(name.as_bytes())) {
            return None;
        }
        let is_set =
            |format: &DataFormat| *format != DataFormat::Zarr || names.iter().filter_map(of_sample).count() > 1;
        found = found.or_else(|| names.iter().find_map(of_sample).filter(is_set));
        names.retain(|name| of_sample(name).is_none());
        names.sort_by(|a, b| b.cmp(a));
        waiting.extend(names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir()));
    }
    found
}
