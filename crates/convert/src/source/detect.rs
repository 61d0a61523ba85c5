//! Which format a source has: by its first bytes, by what a folder holds, and by its name where these do not tell.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use packds_format::constants::MAGIC;
use packds_system::open_regular;

use super::candidate::is_image_name;
use super::rows::RowForm;
use super::shards::{DATA_FOLDER, first_of_pattern, is_pattern, split_folders};
use super::store::OpenFile;
use super::tfrecord::is_tfrecord;
use super::torchvision;
use super::zip_dir::zip_entries;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// First bytes of a file that are looked at.
const HEAD_BYTES: u64 = 512;
/// What a zip file starts with.
const ZIP: &[u8] = b"PK\x03\x04";
/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 4096;

/// The format of `source`.
pub(super) fn detect(source: &Path) -> Result<DataFormat, ConvertError> {
    let unknown = |found: String| ConvertError::UnknownFormat {
        path: source.to_owned(),
        found,
    };
    let name = source.file_name().and_then(|name| name.to_str());
    let named = name.and_then(DataFormat::from_file_name);
    let metadata = match std::fs::metadata(source) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_pattern(source) {
                let first = name.and_then(first_of_pattern);
                let named = first.as_deref().and_then(DataFormat::from_file_name);
                return named.ok_or_else(|| unknown("a pattern without an extension".to_owned()));
            }
            return Err(ConvertError::SourceMissing {
                path: source.to_owned(),
            });
        }
        Err(error) => return Err(ConvertError::io(source)(error)),
    };
    if metadata.is_dir() {
        return of_folder(source).map(|found| found.unwrap_or(DataFormat::ImageFolder));
    }
    if !metadata.is_file() {
        return Err(unknown("neither a file nor a folder".to_owned()));
    }
    let mut head = Vec::new();
    let opened = open_regular(source).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    opened.map_err(ConvertError::io(source))?;
    if head.starts_with(&MAGIC) {
        let (reason, hint) = (
            "this is a pack already",
            "packds export takes it to other formats",
        );
        return Err(ConvertError::unsupported(source, "", reason, hint));
    }
    refuse_zipped_zarr(source, &head)?;
    if let Some(format) = of_bytes(&head, source, named) {
        return Ok(format);
    }
    if RowForm::from_path(source).is_some() {
        return Ok(DataFormat::Manifest);
    }
    let known = named.filter(|format| trusts_names(*format));
    known.ok_or_else(|| {
        if head.is_empty() {
            return ConvertError::malformed(source, "", "the file is empty (0 bytes)");
        }
        let shown = head.get(..16).unwrap_or(&head).escape_ascii();
        unknown(match named {
            Some(format) => format!("the name of {format}, but it starts with \"{shown}\""),
            None => format!("it starts with \"{shown}\""),
        })
    })
}

/// Formats whose files have no first bytes of their own, or may have others before them.
fn trusts_names(format: DataFormat) -> bool {
    matches!(
        format,
        DataFormat::Hdf5
            | DataFormat::TfRecord
            | DataFormat::WebDataset
            | DataFormat::Lmdb
            | DataFormat::Pt
    )
}

/// What the first bytes of a file say.
fn of_bytes(head: &[u8], source: &Path, named: Option<DataFormat>) -> Option<DataFormat> {
    let name = source.file_name()?.to_str().unwrap_or_default();
    let at = |offset: usize, magic: &[u8]| {
        head.get(offset..)
            .is_some_and(|rest| rest.starts_with(magic))
    };
    if at(0, b"\x89HDF\r\n\x1a\n") {
        return Some(DataFormat::Hdf5);
    }
    if at(0, b"\x93NUMPY") {
        return Some(DataFormat::Npy);
    }
    if at(0, ZIP) {
        // Both are zip files: `.npz` has arrays in it, `.pt` a pickle.
        let is_npz = named == Some(DataFormat::Npz) || first_zip_name(head).ends_with(b".npy");
        return Some(if is_npz {
            DataFormat::Npz
        } else {
            DataFormat::Pt
        });
    }
    if at(0, b"PAR1") || at(0, b"PARE") {
        return Some(DataFormat::Parquet);
    }
    if at(0, b"ARROW1") || at(0, b"FEA1") || at(0, b"\xff\xff\xff\xff") {
        return Some(DataFormat::Arrow);
    }
    if at(257, b"ustar") {
        return Some(DataFormat::WebDataset);
    }
    if at(0, b"\x1f\x8b") {
        return match named {
            Some(DataFormat::TfRecord) => named,
            _ if name.contains("idx") && name.contains("ubyte") => Some(DataFormat::Mnist),
            _ => Some(DataFormat::WebDataset),
        };
    }
    // The length of a header in JSON, then the JSON, in which the first entry may be of texts.
    if at(8, b"{\"") && (named == Some(DataFormat::Safetensors) || is_safetensors(head, source)) {
        return Some(DataFormat::Safetensors);
    }
    // A length and its checksum.
    if is_tfrecord(head) {
        return Some(DataFormat::TfRecord);
    }
    if at(0, &[0, 0]) && matches!(head.get(2..4), Some([0x08 | 0x09 | 0x0b..=0x0e, 1..=4])) {
        return Some(DataFormat::Mnist);
    }
    if is_cifar_name(name) && (name.ends_with(".bin") || is_pickled_dictionary(head)) {
        return Some(DataFormat::Cifar);
    }
    if at(0, b"\x80") && matches!(head.get(1), Some(2..=5)) {
        return Some(DataFormat::Pt);
    }
    None
}

/// Whether what stands behind eight bytes is the start of a header as `.safetensors` has one, of the length that they say.
fn is_safetensors(head: &[u8], source: &Path) -> bool {
    let len = head.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let room = std::fs::metadata(source).map_or(0, |found| found.len().saturating_sub(8));
    let has = |word: &[u8]| head.windows(word.len()).any(|bytes| bytes == word);
    len.is_some_and(|len| (2..=room).contains(&len))
        && (has(b"\"data_offsets\"") || has(b"\"__metadata__\""))
}

/// Refuses a Zarr store in a zip file, which would pass for one that PyTorch wrote.
fn refuse_zipped_zarr(source: &Path, head: &[u8]) -> Result<(), ConvertError> {
    const NAMES: [&str; 4] = ["zarr.json", ".zgroup", ".zarray", ".zattrs"];
    if !head.starts_with(ZIP) {
        return Ok(());
    }
    let file = OpenFile::open(source).map_err(ConvertError::io(source))?;
    // What is wrong with the zip file its reader says.
    let entries = zip_entries(&file).unwrap_or_default();
    let is_zarr = |name: &str| NAMES.contains(&name.rsplit('/').next().unwrap_or(name));
    match entries.iter().find(|entry| is_zarr(&entry.name)) {
        None => Ok(()),
        Some(entry) => Err(ConvertError::unsupported(
            source,
            &entry.name,
            "a Zarr store in a zip file, which is not read",
            "unzip it into a folder, and name that",
        )),
    }
}

/// The name of the first file in a zip.
fn first_zip_name(head: &[u8]) -> &[u8] {
    let len = match head.get(26..28) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    };
    head.get(30..30 + len).unwrap_or_default()
}

/// The names of the files that CIFAR is published as.
pub(super) fn is_cifar_name(name: &str) -> bool {
    name.starts_with("data_batch")
        || matches!(
            name.trim_end_matches(".bin"),
            "test_batch" | "train" | "test"
        )
}

/// Whether a file starts as a pickle of protocol 2 to 5 does, or as one of a dictionary of protocol 0 or 1.
fn is_pickled_dictionary(head: &[u8]) -> bool {
    [&b"\x80"[..], b"(d", b"}"]
        .iter()
        .any(|start| head.starts_with(start))
}

/// Whether a folder's own files are a data set of CIFAR or MNIST.
pub(super) fn holds(folder: &Path, format: DataFormat) -> bool {
    let names = names_in(folder);
    match format {
        DataFormat::Cifar => holds_cifar(folder, &names),
        DataFormat::Mnist => {
            let is_idx = |name: &String| name.contains("-idx") && name.contains("ubyte");
            names.iter().any(is_idx)
        }
        _ => false,
    }
}

fn holds_cifar(folder: &Path, names: &[String]) -> bool {
    let cifar = [
        "data_batch_1",
        "data_batch_1.bin",
        "batches.meta",
        "batches.meta.txt",
        "fine_label_names.txt",
    ];
    // CIFAR-100's names say little.
    let is_pickled = |name: &str| {
        let mut head = Vec::new();
        let path = folder.join(name);
        let opened = open_regular(&path).ok();
        let read = opened.and_then(|file| file.take(2).read_to_end(&mut head).ok());
        read.is_some() && is_pickled_dictionary(&head)
    };
    let is_cifar = |name: &String| {
        cifar.contains(&name.as_str())
            || (matches!(name.as_str(), "train" | "test") && is_pickled(name))
    };
    names.iter().any(is_cifar)
}

/// The names in a folder, as many as are looked at, without hidden ones; none where it cannot be listed.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.take(MAX_ENTRIES).map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// What the files of a folder say; none where it is, or may be, a folder of images.
fn of_folder(folder: &Path) -> Result<Option<DataFormat>, ConvertError> {
    let own = of_own_files(folder);
    if let Some(own) = own.filter(|own| !matches!(own, DataFormat::WebDataset)) {
        return only_set(folder, own).map(Some);
    }
    // Beside them lie the archives that they were unpacked from.
    match torchvision::format(folder)? {
        Some(format) => Ok(Some(format)),
        None => own.map_or(Ok(None), |own| only_set(folder, own).map(Some)),
    }
}

/// The format, which has to be that of all sets of files that lie in the folder.
fn only_set(folder: &Path, format: DataFormat) -> Result<DataFormat, ConvertError> {
    let mut names = names_in(folder);
    names.sort();
    let of = |name: &String| Some((of_set(name)?, name.clone()));
    let sets: Vec<_> = names.iter().filter_map(of).collect();
    let own = sets.iter().find(|(found, _)| *found == format);
    let other = sets.iter().find(|(found, _)| *found != format);
    let (Some((_, own)), Some((second, other))) = (own, other) else {
        return Ok(format);
    };
    let reason =
        format!("there are files of several formats: '{own}' is {format}, '{other}' is {second}");
    let hint = format!(
        "say which are meant with --from {} or --from {}, or name the files",
        format.name(),
        second.name()
    );
    Err(ConvertError::contradictory(folder, "", reason, hint))
}

/// What the files in a folder itself say.
fn of_own_files(folder: &Path) -> Option<DataFormat> {
    // What is there and cannot be read, its reader reports.
    let has = |name: &str| std::fs::symlink_metadata(folder.join(name)).is_ok();
    if [".zgroup", ".zarray", "zarr.json"].into_iter().any(has) {
        return Some(DataFormat::Zarr);
    }
    if has("dataset_dict.json") {
        return Some(DataFormat::Arrow);
    }
    if has("data.mdb") {
        return Some(DataFormat::Lmdb);
    }
    let names = names_in(folder);
    // Whatever lies beside images, they are what the folder is for; `--from` says otherwise.
    if names.iter().any(|name| is_image_name(name.as_bytes())) {
        return None;
    }
    let published = [DataFormat::Cifar, DataFormat::Mnist];
    if let Some(format) = published.into_iter().find(|format| holds(folder, *format)) {
        return Some(format);
    }
    if let Some(format) = names.iter().find_map(|name| of_set(name)) {
        return Some(format);
    }
    // Beside it a repository has its card and scripts.
    let data = names_in(&folder.join(DATA_FOLDER));
    if let Some(format) = data.iter().find_map(|name| of_set(name)) {
        return Some(format);
    }
    let nested = split_folders(folder);
    let mut nested = nested.iter().flat_map(|split| names_in(split));
    if let Some(format) = nested.find_map(|name| of_set(&name)) {
        return Some(format);
    }
    has_npy(folder, &names).then_some(DataFormat::Npy)
}

/// The format of a file whose name is that of one which a folder holds a set of.
fn of_set(name: &str) -> Option<DataFormat> {
    let sets = [
        DataFormat::Parquet,
        DataFormat::Arrow,
        DataFormat::WebDataset,
        DataFormat::TfRecord,
        DataFormat::Hdf5,
        DataFormat::Npz,
        DataFormat::Pt,
        DataFormat::Safetensors,
    ];
    DataFormat::from_file_name(name).filter(|format| sets.contains(format))
}

/// The first file or folder in `folder` that looks like a data set, and its format: what may have been meant.
pub(super) fn data_set_in(folder: &Path) -> Option<(PathBuf, DataFormat)> {
    let mut names = names_in(folder);
    names.sort();
    names.into_iter().find_map(|name| {
        let path = folder.join(&name);
        let format = match path.is_dir() {
            true => of_folder(&path).ok().flatten(),
            false => of_set(&name),
        };
        format.map(|format| (path, format))
    })
}

/// Whether a folder, or the first folder in it that is not empty, holds `.npy` files: a class may have no samples.
fn has_npy(folder: &Path, names: &[String]) -> bool {
    let is_npy = |name: &str| DataFormat::from_file_name(name) == Some(DataFormat::Npy);
    if names.iter().any(|name| is_npy(name)) {
        return true;
    }
    let mut folders: Vec<&String> = names.iter().filter(|n| folder.join(n).is_dir()).collect();
    folders.sort();
    let mut filled = folders.iter().map(|name| names_in(&folder.join(name)));
    let first = filled.find(|names| !names.is_empty());
    first.is_some_and(|names| names.iter().any(|name| is_npy(name)))
}
