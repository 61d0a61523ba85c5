//! Decides which files may be images: by name, without opening them, or else by their first bytes.
//!
//! A candidate may still fail to decode.

use packds_pixels::ImageFormat;

use crate::data_format::DataFormat;

/// Number of bytes that [`is_image_bytes`] needs.
pub(super) const SNIFFED_BYTES: usize = 16;

/// Folders that other programs create next to data, for copies, thumbnails, settings or deleted files. They are never classes.
const SYSTEM_FOLDERS: [&str; 15] = [
    "__MACOSX",
    ".ipynb_checkpoints",
    "__pycache__",
    "@eaDir",
    "#recycle",
    ".thumbnails",
    ".git",
    ".svn",
    ".idea",
    ".vscode",
    ".cache",
    ".AppleDouble",
    "$RECYCLE.BIN",
    "System Volume Information",
    "lost+found",
];

/// True if folders with this name are created by programs and are not part of a dataset.
pub(super) fn is_system_folder(name: &[u8]) -> bool {
    SYSTEM_FOLDERS.iter().any(|known| known.as_bytes() == name) || name.starts_with(b".Trash")
}

/// Which files of a folder are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleFiles {
    /// Image files.
    Images,
    /// Files of this format, or folders if the format stores data in folders. Each holds one sample.
    Of(DataFormat),
}

impl SampleFiles {
    /// Whether a file or folder with this name may be a sample.
    pub(super) fn is_named(self, name: &[u8]) -> bool {
        match self {
            Self::Images => is_image_name(name),
            Self::Of(format) => {
                let name = str::from_utf8(name).ok().filter(|name| !name.starts_with('.'));
                name.and_then(DataFormat::from_file_name) == Some(format)
            }
        }
    }
}

/// True if the extension, after the last dot, belongs to a decodable image format. False for the files `._NAME` that macOS adds.
pub(super) fn is_image_name(name: &[u8]) -> bool {
    !name.starts_with(b"._")
        && extension(name).is_some_and(|extension| ImageFormat::from_extension(extension).is_some())
}

/// True if the name looks like a backup or a partial download, such as `1.jpg.bak` or `1.jpg~`.
pub(super) fn is_backup_name(name: &[u8]) -> bool {
    const ENDS: [&str; 8] = ["bad", "bak", "old", "orig", "tmp", "part", "crdownload", "partial"];
    let is_known = |end: &[u8]| ENDS.iter().any(|known| end.eq_ignore_ascii_case(known.as_bytes()));
    name.ends_with(b"~") || extension(name).is_some_and(is_known)
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    Some(&name[dot + 1..])
}

/// True if a file with these first bytes is an image.
pub(super) fn is_image_bytes(bytes: &[u8]) -> bool {
    match ImageFormat::sniff(bytes) {
        // Text may also start with "BM", but a bitmap has four zero bytes at offset 6.
        Some(ImageFormat::Bmp) => bytes.get(6..10) == Some(&[0; 4]),
        found => found.is_some(),
    }
}
