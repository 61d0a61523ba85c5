//! Finds datasets in the folders where torchvision stores its downloads.

use std::path::{Path, PathBuf};

use super::detect::holds;
use super::folder_note::FolderNote;
use super::shards::TENSOR_FOLDER;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// The folder of each dataset's files, relative to the root. The last one is relative to the dataset's own folder.
const FOLDERS: [(&str, DataFormat); 10] = [
    ("MNIST/raw", DataFormat::Mnist),
    ("FashionMNIST/raw", DataFormat::Mnist),
    ("KMNIST/raw", DataFormat::Mnist),
    ("QMNIST/raw", DataFormat::Mnist),
    ("EMNIST/raw", DataFormat::Mnist),
    ("cifar-10-batches-py", DataFormat::Cifar),
    ("cifar-10-batches-bin", DataFormat::Cifar),
    ("cifar-100-python", DataFormat::Cifar),
    ("cifar-100-binary", DataFormat::Cifar),
    ("raw", DataFormat::Mnist),
];

/// The format of the dataset below `root`, if there is one.
///
/// # Errors
/// If there are several datasets.
pub(super) fn format(root: &Path) -> Result<Option<DataFormat>, ConvertError> {
    Ok(only(root, |_| true)?.map(|(_, format)| format))
}

/// The folder with the files: `source` itself, or a subfolder.
///
/// # Errors
/// If several subfolders contain such files.
pub(crate) fn folder(source: &Path, format: DataFormat) -> Result<PathBuf, ConvertError> {
    if !source.is_dir() || holds(source, format) {
        return Ok(source.to_owned());
    }
    let found = only(source, |of| of == format)?;
    Ok(found.map_or(source.to_owned(), |(folder, _)| folder))
}

/// The warning about the folder of tensors next to the folder `raw`. Earlier versions of torchvision wrote both.
pub(super) fn unread_tensors(raw: &Path) -> Option<Warning> {
    let tensors = raw.with_file_name(TENSOR_FOLDER);
    let has_tensors = raw.file_name().is_some_and(|name| name == "raw") && tensors.is_dir();
    has_tensors.then(|| Warning::Folders(FolderNote::TensorsUnread { folder: TENSOR_FOLDER.as_bytes().to_vec() }))
}

/// The only dataset below `root` with a format that `is_wanted` accepts.
///
/// # Errors
/// If there are several.
fn only(root: &Path, is_wanted: impl Fn(DataFormat) -> bool) -> Result<Option<(PathBuf, DataFormat)>, ConvertError> {
    let known = FOLDERS.into_iter().filter(|(_, format)| is_wanted(*format));
    let folders = known.map(|(name, format)| (root.join(name), format));
    let mut found: Vec<_> = folders.filter(|(folder, format)| holds(folder, *format)).collect();
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let names: Vec<String> = found.iter().map(|(folder, _)| folder.display().to_string()).collect();
    let reason = format!("this folder has several datasets: {}", names.join(", "));
    let hint = "pass the folder of one of them";
    Err(ConvertError::unsupported(root, "", reason, hint))
}
