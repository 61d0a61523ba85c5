//! Archives as sources: zip and tar files, and compressed files. An archive is unpacked once into a temporary folder, and that
//! folder is listed. Errors and packs use the names in the archive.
//!
//! Files that a format reads in place are not unpacked: `.npz` files, for example, and tar files of samples, which `webdataset` reads.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use packds_system::{Unfinished, to_usize};
use tempfile::TempDir;

use super::ListOptions;
use super::candidate::{is_image_name, is_system_folder};
use super::compressed::{self, without_extension};
use super::detect::{Head, detect, format_of_start, head_of, names_in};
use super::listing::Listing;
use super::members::{Directory, refused};
use super::paths::lossy;
use super::roles::is_label_name;
use super::rows::RowForm;
use super::shards::{Shards, data_folder};
use super::spool::SpoolFolder;
use super::store::OpenFile;
use super::tar::{Link, TarReader};
use super::unpacker::Unpacker;
use super::unread::is_note;
use super::warning::Warning;
use super::webdataset;
use super::zip_dir::{pieces, zip_entries};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;

/// Maximum nesting of archives.
const MAX_DEPTH: usize = 4;
/// Bytes to unpack at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// Maximum length of a link's target path, in bytes.
const MAX_LINK: u64 = 4096;

/// An archive that must be unpacked to be read.
pub(super) struct Archive {
    path: PathBuf,
    /// The path of the source within the archive; empty if the whole archive is the source.
    inside: PathBuf,
    form: Form,
}

/// The form of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Zip,
    Tar,
    /// One compressed file.
    Single,
}

/// An unpacked archive. Its temporary folder is removed when the last listing that uses it is dropped.
#[derive(Debug)]
pub(super) struct Unpacked {
    archive: PathBuf,
    /// `None` for a folder of archives.
    form: Option<Form>,
    folder: TempDir,
    directory: OnceLock<Directory>,
    _unfinished: Unfinished,
}

impl Unpacked {
    fn new(archive: PathBuf, form: Option<Form>, folder: TempDir) -> Arc<Self> {
        let _unfinished = Unfinished::new(folder.path());
        Arc::new(Self { archive, form, folder, directory: OnceLock::new(), _unfinished })
    }

    /// Where the members are in the archive, and the path in it of a folder of the temporary folder.
    pub(super) fn directory(&self, root: &Path) -> Result<(&Directory, Vec<u8>), ConvertError> {
        let form = self.form.ok_or_else(|| self.refused("it contains several archives"))?;
        let directory = match self.directory.get() {
            Some(directory) => directory,
            None => {
                let read = Directory::read(&self.archive, form)?;
                self.directory.get_or_init(|| read)
            }
        };
        let root = root.strip_prefix(self.folder.path()).unwrap_or(Path::new(""));
        Ok((directory, root.as_os_str().as_encoded_bytes().to_vec()))
    }

    /// Translates a path in the temporary folder to its name in the archive.
    pub(super) fn named(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.folder.path()) {
            Ok(inside) if inside == Path::new("") => self.archive.clone(),
            Ok(inside) => self.archive.join(inside),
            Err(_) => path.to_owned(),
        }
    }

    /// The error that a plan cannot name the samples.
    pub(super) fn refused(&self, reason: &str) -> ConvertError {
        refused(&self.archive, reason.to_owned())
    }

    /// Replaces the temporary folder in a message with the archive's path.
    pub(super) fn renamed(&self, text: &str) -> String {
        text.replace(&*self.folder.path().to_string_lossy(), &self.archive.to_string_lossy())
    }
}

/// An unpacked archive or folder of archives, and the location of the source in it.
pub(super) struct Opened {
    unpacked: Arc<Unpacked>,
    pub(super) source: PathBuf,
    warnings: Vec<Warning>,
}

impl Opened {
    /// A folder of archives. `folder` is the temporary folder with the unpacked archives. It is listed instead of
    /// `source`.
    pub(super) fn of_folder(source: &Path, folder: TempDir, warnings: Vec<Warning>) -> Self {
        let inner = folder.path().to_owned();
        Self { unpacked: Unpacked::new(source.to_owned(), None, folder), source: inner, warnings }
    }

    /// Returns the listing with paths in the archive instead of the temporary folder, and with the warnings from
    /// unpacking.
    pub(super) fn listing(&self, mut listing: Listing) -> Listing {
        listing.keep_unpacked(&self.unpacked);
        for warning in &mut listing.warnings {
            match warning {
                Warning::NestedClasses { list, .. } => *list = None,
                Warning::Table(note) => note.without_paths(),
                _ => {}
            }
        }
        listing.warnings.splice(0..0, self.warnings.iter().cloned());
        listing
    }

    /// Returns the error with paths in the archive instead of the temporary folder.
    pub(super) fn error(&self, error: ConvertError) -> ConvertError {
        match error {
            error @ ConvertError::Interrupted => error,
            ConvertError::SourceMissing { path } => ConvertError::SourceMissing { path: self.unpacked.named(&path) },
            error => ConvertError::InArchive {
                message: self.unpacked.renamed(&error.to_string()),
                hint: error.hint().map(|hint| self.unpacked.renamed(&hint)),
                is_data: error.is_data(),
            },
        }
    }

    /// The options for the source. If the archive contains only a manifest, the manifest is assumed to list files next
    /// to the archive. The archive's folder then becomes the root, unless the caller chose one.
    pub(super) fn options(&self, options: &ListOptions) -> ListOptions {
        let beside = self.unpacked.archive.parent().unwrap_or(Path::new("")).to_owned();
        let is_alone = self.source.parent().is_some_and(|folder| only_in(folder).is_some());
        let is_manifest = self.source.is_file() && RowForm::of_source(&self.source).is_some();
        let beside = if beside == Path::new("") { PathBuf::from(".") } else { beside };
        let root = options.root.clone().or((is_alone && is_manifest).then_some(beside));
        ListOptions { root, ..options.clone() }
    }
}

impl Archive {
    /// The archive that is, or contains, the source. `None` if the source is read in place. `depth` counts the
    /// enclosing archives.
    pub(super) fn find(source: &Path, options: &ListOptions, depth: usize) -> Result<Option<Self>, ConvertError> {
        let Some((path, inside)) = file_of(source) else { return Ok(None) };
        let head = head_of(&path)?;
        let head = Head::new(&path, &head);
        let Some(form) = Form::of(&head) else { return Ok(None) };
        if inside == Path::new("") && is_read_in_place(&head, form, options)? {
            return Ok(None);
        }
        if depth == MAX_DEPTH {
            let reason = format!("archives are nested more than {MAX_DEPTH} deep");
            return Err(ConvertError::unsupported(
                &path,
                "",
                reason,
                "unpack the outer archives, and pass the inner one",
            ));
        }
        Ok(Some(Self { path, inside, form }))
    }

    /// Unpacks the whole archive into a new temporary folder.
    pub(super) fn open(&self, options: &ListOptions) -> Result<Opened, ConvertError> {
        let spool = options.spool_folder();
        let (folder, warnings) = self.unpack(&spool)?;
        let source = match self.inside == Path::new("") {
            true => only_source(folder.path()),
            false => folder.path().join(&self.inside),
        };
        let unpacked = Unpacked::new(self.path.clone(), Some(self.form), folder);
        Ok(Opened { unpacked, source, warnings })
    }

    /// Unpacks the whole archive. Returns the folder, and warnings about members that were not unpacked.
    pub(super) fn unpack(&self, spool: &SpoolFolder) -> Result<(TempDir, Vec<Warning>), ConvertError> {
        let mut unpacker = Unpacker::create(&self.path, spool)?;
        let mut open_ended = None;
        match self.form {
            Form::Zip => unzip(&self.path, &mut unpacker)?,
            Form::Tar => open_ended = untar(&self.path, &mut unpacker)?,
            Form::Single => unpack_single(&self.path, &mut unpacker)?,
        }
        let (folder, mut warnings) = unpacker.finish()?;
        warnings.extend(open_ended);
        Ok((folder, warnings))
    }
}

impl Form {
    /// Recognizes an archive by its first bytes.
    fn of(head: &Head<'_>) -> Option<Self> {
        match () {
            () if head.is_zip() => Some(Self::Zip),
            () if head.is_tar() => Some(Self::Tar),
            () if head.is_packed() => Some(Self::Single),
            () => None,
        }
    }
}

/// Whether the first bytes of a file are those of an archive or a compressed file.
pub(super) fn is_packed(path: &Path) -> Result<bool, ConvertError> {
    Ok(Form::of(&Head::new(path, &head_of(path)?)).is_some())
}

/// Splits a path into a file and the rest: `a.zip/train` is the folder `train` in the archive `a.zip`.
fn file_of(source: &Path) -> Option<(PathBuf, PathBuf)> {
    let file = source.ancestors().find(|above| above.exists()).filter(|found| found.is_file())?;
    let inside = source.strip_prefix(file).ok()?;
    let is_plain = inside.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| (file.to_owned(), inside.to_owned()))
}

/// Whether a format reads this file in place.
fn is_read_in_place(head: &Head<'_>, form: Form, options: &ListOptions) -> Result<bool, ConvertError> {
    let is_manifest = form == Form::Single && RowForm::of_source(head.path).is_some();
    Ok(match options.from {
        Some(DataFormat::Manifest) => is_manifest,
        Some(DataFormat::WebDataset) => true,
        Some(format) => (format.entry().starts)(head),
        None => match format_of_start(head) {
            Some(DataFormat::WebDataset) => !webdataset::is_of_files(head.path)?,
            format => is_manifest || format.is_some(),
        },
    })
}

/// The source in an unpacked archive. This is the only file or folder in the archive, apart from enclosing folders and
/// notes. If there are several, or if the only one is an image or an image folder, the source is the whole folder.
fn only_source(folder: &Path) -> PathBuf {
    let mut inner = folder.to_owned();
    while let Some(only) = only_in(&inner) {
        inner.push(&only);
        match inner.is_dir() {
            false if is_image_name(only.as_encoded_bytes()) => break,
            true if matches!(detect(&inner), Ok(DataFormat::ImageFolder)) => {}
            _ => return inner,
        }
    }
    folder.to_owned()
}

/// The only archive or dataset in a folder that otherwise contains just notes. `None` if the folder is a dataset
/// itself, or if the caller chose how it is read.
pub(super) fn alone_in(folder: &Path, options: &ListOptions) -> Option<PathBuf> {
    let is_chosen = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    if is_chosen || !folder.is_dir() || only_in(folder).is_none() {
        return None;
    }
    let inner = only_source(folder);
    let is_meant = match detect(folder) {
        Ok(DataFormat::ImageFolder) if inner == folder => {
            let deepest = only_folder(folder);
            return (deepest != folder && has_table(&deepest)).then_some(deepest);
        }
        // An error about the inner folder is more helpful than an error about a folder without images. But a folder such as
        // `label=0` is part of a partitioned dataset, so it is not read alone.
        Ok(DataFormat::ImageFolder) if inner.is_dir() => {
            !inner.strip_prefix(folder).is_ok_and(|path| path.as_os_str().as_encoded_bytes().contains(&b'='))
        }
        // The tar file may hold ordinary files rather than samples.
        Ok(DataFormat::WebDataset) => {
            inner.is_file() && Archive::find(&inner, options, 0).is_ok_and(|found| found.is_some())
        }
        Ok(DataFormat::ImageFolder) => {
            let head = head_of(&inner).unwrap_or_default();
            Form::of(&Head::new(&inner, &head)).is_some() && RowForm::of_source(&inner).is_none()
        }
        // torchvision keeps tensors in folders such as `MNIST/processed`.
        Ok(DataFormat::Pt) if data_folder(&inner).is_dir() => true,
        Ok(format) if inner.is_dir() && are_splits(&inner, format) => true,
        // A folder without a label file may be a class of the outer folder.
        Ok(DataFormat::Npy) => {
            let is_labels = |name: &String| name.strip_suffix(".npy").is_some_and(is_label_name);
            names_in(&inner).iter().any(is_labels)
        }
        _ => false,
    };
    (inner != folder && is_meant).then_some(inner)
}

/// Follows folders that contain only one folder.
fn only_folder(folder: &Path) -> PathBuf {
    let mut inner = folder.to_owned();
    while let Some(only) = only_in(&inner).map(|only| inner.join(only)).filter(|only| only.is_dir()) {
        inner = only;
    }
    inner
}

/// Whether a folder has a table and no images of its own.
fn has_table(folder: &Path) -> bool {
    let names = names_in(folder);
    let is_table = |name: &String| RowForm::from_path(Path::new(name)).is_some() && !is_note(name.as_bytes());
    names.iter().any(is_table) && !names.iter().any(|name| is_image_name(name.as_bytes()))
}

/// Whether the files of a format in a folder are named after splits, such as `train.h5` and `test.h5`.
fn are_splits(folder: &Path, format: DataFormat) -> bool {
    let shards = Shards::find(folder, format).map(Shards::by_split).unwrap_or_default();
    shards.len() > 1 && shards.iter().all(|part| part.split.is_some())
}

/// The only visible name in a folder, apart from notes such as a README.
pub(super) fn only_in(folder: &Path) -> Option<OsString> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_hidden = |name: &[u8]| name.starts_with(b".");
    let is_other =
        |name: &[u8]| is_hidden(name) || is_system_folder(name) || (is_note(name) && name != METADATA_FILE.as_bytes());
    let mut names = names.filter(|name| !is_other(name.as_encoded_bytes()));
    names.next().filter(|_| names.next().is_none())
}

fn unzip(path: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), ConvertError> {
    let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
    let entries = zip_entries(&file)?;
    unpacker.expect(entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.bytes)))?;
    for entry in &entries {
        let name = entry.unix_name();
        if name.ends_with('/') {
            unpacker.folder(name.as_bytes())?;
        } else if entry.is_link {
            let mut target = Vec::new();
            pieces(&file, entry, entry.bytes.min(MAX_LINK), |piece| {
                target.extend_from_slice(piece);
                Ok(())
            })?;
            unpacker.link(name.as_bytes(), Link::Symbolic(target))?;
        } else if let Some(mut writing) = unpacker.file(name.as_bytes())? {
            pieces(&file, entry, entry.bytes, |piece| writing.append(piece))?;
        }
    }
    Ok(())
}

fn untar(path: &Path, unpacker: &mut Unpacker<'_>) -> Result<Option<Warning>, ConvertError> {
    let mut tar = TarReader::open(path, "")?;
    let mut piece = Vec::new();
    while let Some(mut member) = tar.next()? {
        if let Some(link) = member.link.take() {
            unpacker.link(&member.name, link)?;
        } else if member.is_folder() {
            unpacker.folder(&member.name)?;
        } else if !member.is_file {
            unpacker.skip(&member.name);
        } else if let Some(mut writing) = unpacker.file(&member.name)? {
            writing.expect(member.bytes)?;
            loop {
                piece.clear();
                let read = tar.data(&member, PIECE_BYTES, &mut piece);
                read.map_err(|error| error.in_member(&lossy(&member.name)))?;
                if piece.is_empty() {
                    break;
                }
                writing.append(&piece)?;
            }
        }
    }
    let first = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
    Ok(tar.is_open_ended.then_some(Warning::OpenEndedTars { count: 1, first }))
}

/// Unpacks a compressed file. The unpacked file has the same name, without the compression extension.
fn unpack_single(path: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), ConvertError> {
    let failed = |error: std::io::Error| match compressed::is_damage(&error) {
        true => ConvertError::malformed(path, "", format!("cannot be unpacked: {error}")),
        false => ConvertError::io(path)(error),
    };
    let Some(mut unpacked) = compressed::open(path).map_err(failed)? else { return Ok(()) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(mut writing) = unpacker.file(without_extension(&name).as_bytes())? else { return Ok(()) };
    let mut piece = vec![0; to_usize(PIECE_BYTES)];
    loop {
        let n = unpacked.read(&mut piece).map_err(failed)?;
        match piece.get(..n) {
            Some(bytes) if n > 0 => writing.append(bytes)?,
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "tests/archive.rs"]
mod tests;
