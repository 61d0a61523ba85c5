//! Finds and deletes the files of a set that no version uses: what killed commands left behind, and the shards of
//! versions that are deleted. Only files whose names a writer makes are deleted.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use packds_format::{Limits, Manifest, manifest_name, manifest_version};
use packds_system::{open_regular, read_regular};
use rustix::fs::{FlockOperation, flock};

use super::CompactOptions;
use crate::error::ConvertError;
use crate::output::{Output, sync_folder};

/// How the names of new shards begin until they are complete.
pub(super) const COMPACTING: &str = "compacting-";
/// The same for shards that are added.
pub(super) const APPENDING: &str = "appending-";
/// The same for shards of a plan. A random number follows, because several processes may build the same shard.
pub(crate) const BUILDING: &str = "building-";

/// A file of a set that its latest version does not use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Its name in the folder of the set.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// What a file in the folder of a set is, by its name.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Manifest(u64),
    Shard,
    /// A file that was not finished.
    Unfinished,
}

impl Kind {
    /// `None` for names that no writer makes.
    fn of(name: &str) -> Option<Self> {
        if let Some(version) = manifest_version(name) {
            return Some(Self::Manifest(version));
        }
        if let Some(target) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".packing")) {
            return Self::of(target).map(|_| Self::Unfinished);
        }
        let is_hex =
            |text: &str, n: usize| text.len() == n && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let stem = name.strip_suffix(".pack")?;
        if let Some(uuid) = [COMPACTING, APPENDING].iter().find_map(|start| stem.strip_prefix(start)) {
            return is_hex(uuid, 32).then_some(Self::Unfinished);
        }
        if let Some((uuid, random)) = stem.strip_prefix(BUILDING).and_then(|rest| rest.split_once('-')) {
            return (is_hex(uuid, 32) && is_hex(random, 16)).then_some(Self::Unfinished);
        }
        let (uuid, checksum) = stem.split_once('-')?;
        (is_hex(uuid, 32) && is_hex(checksum, 8)).then_some(Self::Shard)
    }
}

/// Keeps other processes from committing a version after `latest`.
pub(super) fn lock(folder: &Path, latest: u64) -> Result<Output, ConvertError> {
    Output::create(&folder.join(manifest_name(latest + 1)), false).map_err(|error| match error {
        ConvertError::OutputExists { .. } | ConvertError::OutputBusy { .. } => busy(folder),
        other => other,
    })
}

fn busy(folder: &Path) -> ConvertError {
    let reason = format!("{}: another process is writing to this set", folder.display());
    ConvertError::options(reason, "run the command again later; nothing was deleted")
}

/// The files to delete, older manifests first, and the bytes of the others that `used`, the shards of the latest version,
/// does not have.
pub(super) fn find(
    folder: &Path,
    latest: u64,
    mut used: BTreeSet<String>,
    options: &CompactOptions,
) -> Result<(Vec<Leftover>, u64), ConvertError> {
    let in_folder = |error| ConvertError::io(folder)(error);
    let mut of_older = BTreeSet::new();
    let (mut manifests, mut files) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(in_folder)? {
        let entry = entry.map_err(in_folder)?;
        let name = entry.file_name();
        let Some((name, kind)) = name.to_str().and_then(|name| Some((name, Kind::of(name)?))) else { continue };
        let metadata = entry.metadata().map_err(in_folder)?;
        let file = Leftover { path: name.to_owned(), bytes: metadata.len() };
        // The lock of this process is not a leftover.
        if !metadata.is_file() || name == format!(".{}.packing", manifest_name(latest + 1)) {
            continue;
        }
        match kind {
            Kind::Manifest(version) if version < latest => {
                of_older.extend(shards_of(&folder.join(name))?);
                manifests.push((version, file));
            }
            // A version that was committed meanwhile.
            Kind::Manifest(version) if version > latest => used.extend(shards_of(&folder.join(name))?),
            Kind::Manifest(_) => {}
            Kind::Shard | Kind::Unfinished => files.push(file),
        }
    }
    manifests.sort_unstable_by_key(|(version, _)| *version);
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    files.retain(|file| !used.contains(&file.path));
    let (old, unused): (Vec<Leftover>, Vec<Leftover>) =
        files.into_iter().partition(|file| of_older.contains(&file.path));
    let mut deleted = Vec::new();
    let mut kept = 0;
    if options.delete_old {
        deleted.extend(manifests.into_iter().map(|(_, file)| file));
        deleted.extend(old);
    } else {
        kept += old.iter().map(|file| file.bytes).sum::<u64>();
    }
    if options.delete_old || options.clean {
        deleted.extend(unused);
    } else {
        kept += unused.iter().map(|file| file.bytes).sum::<u64>();
    }
    Ok((deleted, kept))
}

/// The files that a manifest names.
fn shards_of(path: &Path) -> Result<Vec<String>, ConvertError> {
    let bytes = read_regular(path).map_err(ConvertError::io(path))?;
    let manifest = Manifest::parse(&bytes, Limits::default()).map_err(|error| {
        let hint = "restore this file from a copy, or delete it if no run uses this version; nothing was deleted";
        ConvertError::contradictory(path, "", error.to_string(), hint)
    })?;
    Ok(manifest.shards.into_iter().map(|shard| shard.path).collect())
}

/// Deletes files. Manifests come first, so no manifest ever names a file that is gone.
pub(super) fn delete(folder: &Path, files: &[Leftover]) -> Result<(), ConvertError> {
    // A process that is writing to the set has locked what it writes.
    for file in files.iter().filter(|file| file.path.starts_with('.')) {
        let path = folder.join(&file.path);
        let opened = open_regular(&path).map_err(ConvertError::io(&path))?;
        if flock(&opened, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(busy(folder));
        }
    }
    let mut was_manifest = false;
    for file in files {
        let is_manifest = manifest_version(&file.path).is_some();
        if was_manifest && !is_manifest {
            sync_folder(folder)?;
        }
        was_manifest = is_manifest;
        let path = folder.join(&file.path);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(ConvertError::io(&path)(error)),
            _ => {}
        }
    }
    if files.is_empty() { Ok(()) } else { sync_folder(folder) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_writers_are_known() {
        let uuid = "00ed35aa3ddb3922a548268337970848";
        let kind = |name: &str| Kind::of(name);
        assert_eq!(kind("manifest-00000012.json"), Some(Kind::Manifest(12)));
        assert_eq!(kind(&format!("{uuid}-41154568.pack")), Some(Kind::Shard));
        for name in [
            format!("compacting-{uuid}.pack"),
            format!("appending-{uuid}.pack"),
            format!(".appending-{uuid}.pack.packing"),
            format!("building-{uuid}-0123456789abcdef.pack"),
            format!(".{uuid}-41154568.pack.packing"),
            ".manifest-00000012.json.packing".to_owned(),
        ] {
            assert_eq!(kind(&name), Some(Kind::Unfinished), "{name}");
        }
        for name in [
            "photos.pack".to_owned(),
            "notes.txt".to_owned(),
            "manifest-12.json".to_owned(),
            format!("{uuid}.pack"),
            format!("{uuid}-41154568.pack.bak"),
            format!("{}-41154568.pack", uuid.to_uppercase()),
            ".notes.txt.packing".to_owned(),
        ] {
            assert_eq!(kind(&name), None, "{name}");
        }
    }
}
