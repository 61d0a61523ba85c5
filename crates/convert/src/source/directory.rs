//! A single folder: its entries, and which of its files may be samples. The `walk` module descends into subfolders.

use std::{os::fd::OwnedFd, path::Path};

use packds_system::to_u64;
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};

use super::{
    candidate::{SNIFFED_BYTES, SampleFiles, is_backup_name, is_image_bytes, is_system_folder},
    oddities::Oddities,
    paths::{as_path, joined},
    unread::UnreadFiles,
    warning::Warning,
};
use crate::error::ConvertError;

/// Device and inode numbers, which identify a folder.
pub(super) type Identity = (u64, u64);

/// The entries of a folder, unsorted, with links followed.
pub(super) struct Directory {
    /// The path relative to the root; empty for the root itself.
    path: Vec<u8>,
    entries: Dir,
    /// Which files are samples.
    files: SampleFiles,
    pub(super) identity: Identity,
    /// The names of its subfolders.
    pub(super) subdirectories: Vec<Vec<u8>>,
    /// The concatenated names of all other entries.
    names: Vec<u8>,
    others: Vec<Other>,
    /// Folders of other programs, not included in `subdirectories`.
    system: Vec<Vec<u8>>,
}

/// An entry other than a folder: the position of its name in `names`, and its kind.
struct Other {
    start: usize,
    // A small type, because a folder may have a million entries.
    len: u16,
    form: OtherForm,
}

#[derive(Clone, Copy)]
enum OtherForm {
    Regular,
    BrokenLink,
    Special,
}

impl Directory {
    /// Reads the entries of the folder `path` in `root`.
    pub(super) fn scan(root: &Path, path: &[u8], files: SampleFiles) -> Result<Self, ConvertError> {
        let full_path = if path.is_empty() { root.to_owned() } else { root.join(as_path(path)) };
        Self::scan_unplaced(&full_path, path, files)
            .map_err(|error| ConvertError::UnreadableDirectory { path: full_path, source: error.into() })
    }

    fn scan_unplaced(full_path: &Path, path: &[u8], files: SampleFiles) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder: OwnedFd = openat(CWD, full_path, flags, Mode::empty())?;
        let stat = fstat(&folder)?;
        let mut directory = Self {
            path: path.to_vec(),
            entries: Dir::new(folder)?,
            files,
            identity: identity_of(&stat),
            subdirectories: Vec::new(),
            names: Vec::new(),
            others: Vec::new(),
            system: Vec::new(),
        };
        while let Some(entry) = directory.entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            match directory.form_of(name, entry.file_type())? {
                _ if name == c"." || name == c".." => {}
                None if is_system_folder(name.to_bytes()) => directory.system.push(name.to_bytes().to_vec()),
                None if files == SampleFiles::Images || !files.is_named(name.to_bytes()) => {
                    directory.subdirectories.push(name.to_bytes().to_vec());
                }
                form => {
                    let form = form.unwrap_or(OtherForm::Regular);
                    let start = directory.names.len();
                    directory.names.extend_from_slice(name.to_bytes());
                    let len = name.to_bytes().len();
                    let len = u16::try_from(len).map_err(|_| Errno::NAMETOOLONG)?;
                    directory.others.push(Other { start, len, form });
                }
            }
        }
        // Sorted, so that the first one reported does not depend on the file system.
        directory.system.sort_unstable();
        Ok(directory)
    }

    /// The kind of an entry after following links. `None` for a folder.
    fn form_of(&self, name: &std::ffi::CStr, file_type: FileType) -> Result<Option<OtherForm>, Errno> {
        let resolved = match file_type {
            FileType::Symlink | FileType::Unknown => match statat(self.entries.fd()?, name, AtFlags::empty()) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(Some(OtherForm::BrokenLink)),
            },
            known => known,
        };
        Ok(match resolved {
            FileType::Directory => None,
            FileType::RegularFile => Some(OtherForm::Regular),
            _ => Some(OtherForm::Special),
        })
    }

    /// Number of entries that are not subfolders of the dataset.
    pub(super) fn n_others(&self) -> usize {
        self.others.len() + self.system.len()
    }

    /// Reports the folders of other programs. Returns their number.
    pub(super) fn note_system(&self, oddities: &mut Oddities) -> u64 {
        self.system.iter().for_each(|name| oddities.system_folders.add(&joined(&self.path, name)));
        to_u64(self.system.len())
    }

    /// Adds the files that are not named like samples to `unread`. Does not open files.
    pub(super) fn note_files(&self, unread: &mut UnreadFiles) {
        let mut names: Vec<&[u8]> = self.names().filter(|name| !self.files.is_named(name)).collect();
        names.sort_unstable();
        names.into_iter().for_each(|name| unread.add_other(&joined(&self.path, name)));
    }

    /// The warning about files that are not named like samples.
    pub(super) fn other_files(&self) -> Option<Warning> {
        let mut unread = UnreadFiles::default();
        self.note_files(&mut unread);
        unread.into_warnings().next()
    }

    /// The names that look like samples, unsorted. Does not open files.
    pub(super) fn sample_names(&self) -> impl Iterator<Item = &[u8]> {
        self.names().filter(|name| self.files.is_named(name))
    }

    /// The names of all entries other than folders, unsorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.others.iter().map(|other| self.name(other))
    }

    /// Calls `each` with the name and size of each candidate, in name order. Returns the number of other files.
    pub(super) fn for_each_candidate(mut self, oddities: &mut Oddities, mut each: impl FnMut(&[u8], u64)) -> u64 {
        let mut ignored = self.note_system(oddities);
        // Sorted, so that the first file shown in each warning does not depend on the file system.
        let mut others = std::mem::take(&mut self.others);
        others.sort_unstable_by(|a, b| self.name(a).cmp(self.name(b)));
        for other in &others {
            let (is_image, oddity) = match other.form {
                OtherForm::Special => (false, Some(&mut oddities.special_files)),
                _ if self.files.is_named(self.name(other)) => (true, None),
                _ if self.files != SampleFiles::Images => (false, None),
                OtherForm::BrokenLink => (false, Some(&mut oddities.broken_links)),
                OtherForm::Regular => match self.sniff(other) {
                    Ok(true) if is_backup_name(self.name(other)) => (false, Some(&mut oddities.backup_files)),
                    Ok(true) => (true, None),
                    Ok(false) => {
                        oddities.unread.add(&self.path_of(other));
                        (false, None)
                    }
                    Err(_) => (false, Some(&mut oddities.unreadable_files)),
                },
            };
            if let Some(oddity) = oddity {
                oddity.add(&self.path_of(other));
            }
            if is_image {
                each(self.name(other), self.size(other));
            } else {
                ignored += 1;
            }
        }
        ignored
    }

    fn name(&self, other: &Other) -> &[u8] {
        &self.names[other.start..other.start + usize::from(other.len)]
    }

    fn path_of(&self, other: &Other) -> Vec<u8> {
        joined(&self.path, self.name(other))
    }

    /// The size of a file; 0 if unknown. Decoding reports the error later.
    fn size(&self, other: &Other) -> u64 {
        let stat = self.entries.fd().map(|folder| statat(folder, self.name(other), AtFlags::empty()));
        stat.flatten().map_or(0, |stat| stat.st_size.max(0).cast_unsigned())
    }

    /// True if a file starts like an image.
    fn sniff(&self, other: &Other) -> Result<bool, Errno> {
        // Without NONBLOCK, opening the file would hang if it had been replaced by a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.entries.fd()?, self.name(other), flags, Mode::empty())?;
        let mut bytes = [0; SNIFFED_BYTES];
        let mut len = 0;
        while len < bytes.len() {
            match rustix::io::read(&file, &mut bytes[len..])? {
                0 => break,
                read => len += read,
            }
        }
        Ok(is_image_bytes(&bytes[..len]))
    }
}

fn identity_of(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

/// The size of a file in `root`, after following links. `None` if it is not a regular file.
pub(super) fn file_size(root: &OwnedFd, path: &[u8]) -> Result<Option<u64>, Errno> {
    let stat = statat(root, path, AtFlags::empty())?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(regular.then(|| stat.st_size.max(0).cast_unsigned()))
}
