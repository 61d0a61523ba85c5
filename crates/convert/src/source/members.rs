//! The members of an archive that a plan refers to. They are read from the archive, so another process unpacks no others.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_system::to_u64;
use serde::{Deserialize, Serialize};

use super::archive::Form;
use super::listing::append_stored;
use super::packed::{Again, Origin, Packed, Piece};
use super::paths::{FilePath, lossy};
use super::portable::Portable;
use super::store::{Content, OpenFile, Store};
use super::tar::TarReader;
use super::zip_dir::zip_entries;
use crate::error::ConvertError;
use crate::sample::SampleError;

/// Where the files of an archive are in it.
#[derive(Debug)]
pub(super) struct Directory {
    archive: PathBuf,
    /// The archive, or a spool that would contain all its members.
    file: OpenFile,
    /// The offset and the bytes of each path in the file.
    places: HashMap<Vec<u8>, (u64, u64)>,
}

impl Directory {
    /// Reads the names in an archive.
    pub(super) fn read(path: &Path, form: Form) -> Result<Self, ConvertError> {
        let io = || ConvertError::io(path);
        let mut file = OpenFile::open(path).map_err(io())?;
        let (mut places, mut origin) = (HashMap::new(), Origin::default());
        match form {
            Form::Zip => {
                let packed = origin.add(Packed::Zip(path.into()));
                let mut end = 0_u64;
                for (place, entry) in (0..).zip(zip_entries(&file)?) {
                    origin.begin(end, Piece { packed, place, ..Piece::default() });
                    if !entry.is_link {
                        places.insert(normal(entry.unix_name().as_bytes()), (end, entry.bytes));
                    }
                    end = end.saturating_add(entry.bytes);
                }
            }
            Form::Tar => {
                let mut tar = TarReader::open(path, "")?;
                while let Some(member) = tar.next()? {
                    if member.is_file {
                        places.insert(normal(&member.name), (member.offset, member.bytes));
                    }
                }
                if tar.is_plain() {
                    return Ok(Self { archive: path.to_owned(), file, places });
                }
                let packed = origin.add(Packed::Stream(path.into()));
                origin.begin(0, Piece { packed, ..Piece::default() });
            }
            Form::Single => return Err(refused(path, "it is one compressed file".to_owned())),
        }
        file = OpenFile::empty().map_err(io())?.with_origin(origin);
        Ok(Self { archive: path.to_owned(), file, places })
    }

    /// The files at these paths below `root`.
    pub(super) fn part(&self, root: &[u8], paths: &BTreeSet<Vec<u8>>) -> Result<PartMembers, ConvertError> {
        let mut items = Vec::new();
        for path in paths {
            let inside = if root.is_empty() { path.clone() } else { [root, b"/", path].concat() };
            let Some((offset, bytes)) = self.places.get(&inside).copied() else {
                let reason = format!("'{}' is a link to another file of the archive", lossy(&inside));
                return Err(refused(&self.archive, reason));
            };
            items.push(Some((&self.file, offset, bytes, Content::File)));
        }
        let members = Portable::of(items.into_iter());
        let members = members.ok_or_else(|| refused(&self.archive, "it was moved meanwhile".to_owned()))?;
        Ok(PartMembers { paths: paths.iter().map(|path| FilePath::from(path.as_slice())).collect(), members })
    }
}

/// The error about an archive that cannot be planned.
pub(super) fn refused(archive: &Path, reason: String) -> ConvertError {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let folder = name.split('.').next().unwrap_or_default();
    let hint = match archive {
        _ if archive.is_dir() => "unpack the archives in it, and pass the folder".to_owned(),
        _ if name.to_ascii_lowercase().ends_with(".zip") => {
            format!("unpack it, and pass the folder: unzip {} -d {folder}", archive.display())
        }
        _ if name.contains(".tar") || name.ends_with(".tgz") => {
            format!("unpack it, and pass the folder: mkdir {folder} && tar -xf {} -C {folder}", archive.display())
        }
        _ => {
            let program = match name.rsplit('.').next() {
                Some("zst") => "unzstd",
                Some("xz") => "unxz -k",
                Some("bz2") => "bunzip2 -k",
                _ => "gunzip -k",
            };
            format!("unpack it, and pass the result: {program} {}", archive.display())
        }
    };
    ConvertError::unsupported(archive, "", format!("a plan cannot name the samples in this archive: {reason}"), hint)
}

/// A path without empty parts.
fn normal(name: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').filter(|part| !matches!(part, [] | [b'.'])).collect();
    parts.join(&b'/')
}

/// Some members of an archive, as a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartMembers {
    /// Their paths, relative to the root of the listing.
    paths: Vec<FilePath>,
    pub(super) members: Portable,
}

impl PartMembers {
    pub(super) fn open(self, plan: &Path, again: &Again<'_>) -> Result<Members, ConvertError> {
        let store = self.members.open(self.paths.len(), plan, again)?;
        let places = self.paths.iter().enumerate().map(|(idx, path)| (path.as_bytes().to_vec(), idx)).collect();
        Ok(Members { store, places })
    }
}

/// Members of an archive that are read like files.
#[derive(Debug, Clone)]
pub(super) struct Members {
    store: Arc<dyn Store>,
    /// The index of each path in the store.
    places: HashMap<Vec<u8>, usize>,
}

impl Members {
    /// Appends the file at `path`, or its first `limit` bytes, to `out`. Returns the number of bytes.
    pub(super) fn append(&self, path: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<u64, SampleError> {
        let before = out.len();
        let place = self.places.get(path).copied().ok_or(SampleError::Missing)?;
        append_stored(self.store.as_ref(), place, limit, out)?;
        Ok(to_u64(out.len() - before))
    }
}
