//! Opens a set of packs: a folder `NAME.packs` with shards and manifests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use packds_format::{Limits, Manifest, SET_EXTENSION, manifest_name, manifest_version, version_of_set};
use packds_system::{open_regular, to_u64};

use crate::{Pack, ReadError};

/// Maximum size of a manifest in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 30;

/// The versions of a set, in ascending order. Empty if the folder has no manifest.
///
/// # Errors
/// The folder cannot be read.
fn versions(folder: &Path) -> io::Result<Vec<u64>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(folder)? {
        versions.extend(entry?.file_name().to_str().and_then(manifest_version));
    }
    versions.sort_unstable();
    Ok(versions)
}

/// The latest version of a set. `None` if there is no version yet: the folder does not exist, or a crash left it without
/// a manifest.
///
/// # Errors
/// As for [`open`](crate::open).
pub fn latest_of_set(folder: &Path) -> Result<Option<Pack>, ReadError> {
    match versions(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReadError::Open { path: folder.to_owned(), source }),
        Ok(versions) if versions.is_empty() => Ok(None),
        Ok(_) => crate::open(folder).map(Some),
    }
}

/// The folder of a set and the version to open. `None` if the path is not that of a set. `NAME.packs@3` and
/// `NAME.packs/manifest-00000003.json` name a version, and `NAME.packs` the latest.
fn named(path: &Path) -> Option<(PathBuf, Option<u64>)> {
    let name = path.file_name()?.to_str()?;
    if let Some((folder, version)) = version_of_set(name).filter(|_| !path.exists()) {
        return Some((path.with_file_name(folder), Some(version)));
    }
    if let Some(version) = manifest_version(name) {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        return Some((folder.to_owned(), Some(version)));
    }
    let is_set = name.ends_with(SET_EXTENSION) && path.is_dir();
    is_set.then(|| (path.to_owned(), None))
}

/// Opens a version of a set, if `path` is that of a set.
pub(crate) fn open(path: &Path, limits: Limits) -> Option<Result<Pack, ReadError>> {
    let (folder, version) = named(path)?;
    Some(open_version(path, &folder, version, limits))
}

fn open_version(path: &Path, folder: &Path, version: Option<u64>, limits: Limits) -> Result<Pack, ReadError> {
    let failed = |source| ReadError::Open { path: path.to_owned(), source };
    let all = versions(folder).map_err(failed)?;
    let version = match (version, all.last()) {
        (_, None) => return Err(ReadError::NotASet { path: path.to_owned() }),
        (None, Some(latest)) => *latest,
        (Some(version), Some(latest)) if !all.contains(&version) => {
            return Err(ReadError::NoVersion { path: path.to_owned(), version, latest: *latest });
        }
        (Some(version), _) => version,
    };
    let manifest = read(&folder.join(manifest_name(version)), limits)?;
    if manifest.version != version {
        let reason = format!("expected version {version}, as in its file name, found {}", manifest.version);
        let source = packds_format::FormatError::BadManifest { reason };
        return Err(ReadError::Format { path: folder.join(manifest_name(version)), source });
    }
    Pack::of_set(manifest, folder, path, limits)
}

/// Reads and validates a manifest.
///
/// # Errors
/// [`ReadError::Open`] if it cannot be read, [`ReadError::Format`] if it is damaged.
fn read(path: &Path, limits: Limits) -> Result<Manifest, ReadError> {
    let failed = |source| ReadError::Open { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(failed)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_MANIFEST_BYTES + 1), &mut bytes).map_err(failed)?;
    if to_u64(bytes.len()) > MAX_MANIFEST_BYTES {
        return Err(failed(io::Error::other("the manifest has more than 1 GiB")));
    }
    Manifest::parse(&bytes, limits).map_err(|source| ReadError::Format { path: path.to_owned(), source })
}
