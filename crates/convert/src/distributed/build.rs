//! Builds one shard of a plan. The bytes follow from the plan, so a shard that is built twice, at the same time or after
//! a crash, is the same file.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::{Pack, Uuid};
use packds_system::open_regular;
use rustix::fs::{FlockOperation, flock};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::plan_file::ShardPlan;
use crate::convert::{Identity, name, report, write_pack};
use crate::error::ConvertError;
use crate::identity;
use crate::output::{Output, check_name, sync_folder};
use crate::pipeline::Observer;
use crate::report::{Report, Skipped, Stages};
use crate::restored::Restored;
use crate::set::{BUILDING, check_set_name, file_name};
use crate::source::{Again, ListOptions};

/// The options of building a shard.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Number of decoding threads. 0 means all cores.
    pub jobs: usize,
}

/// The result of building a shard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BuildReport {
    /// The file of the shard.
    pub output: PathBuf,
    /// The number of the shard, from 0.
    pub shard: u64,
    /// Whether the shard was there and intact, so that nothing was written.
    pub is_kept: bool,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of bytes read from the source.
    pub bytes_in: u64,
    /// Size of the file in bytes.
    pub bytes_out: u64,
    /// Skipped files, in the order of the shard.
    pub skipped: Vec<Skipped>,
    /// Files replaced by images of zeros, in the order of the shard.
    pub substituted: Vec<Skipped>,
    /// Warnings about the samples.
    pub warnings: Vec<String>,
    /// What was changed in the samples.
    pub notes: Vec<String>,
    /// Time to build.
    pub time: Duration,
}

impl Serialize for BuildReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "output": self.output.to_string_lossy(),
            "shard": self.shard,
            "is_kept": self.is_kept,
            "n_samples": self.n_samples,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "skipped": self.skipped,
            "substituted": self.substituted,
            "warnings": self.warnings,
            "notes": self.notes,
            "seconds": {"total": self.time.as_secs_f64()},
        })
        .serialize(serializer)
    }
}

impl ShardPlan {
    /// The `pack_uuid` of a shard.
    pub(super) fn uuid(&self, shard: u64) -> Uuid {
        identity::of_shard(Uuid(self.header.pack_uuid), shard)
    }

    /// The file of a shard, if there is one in the folder of the set, and whether it is older than its source. Such a shard may have
    /// other contents: its name says nothing about times.
    ///
    /// # Errors
    /// [`ConvertError::SourceMalformed`] if the source has changed since the plan was made, [`ConvertError::Options`] if
    /// the folder has another set, or [`ConvertError::Io`] if it cannot be read.
    pub fn find(&self, folder: &Path, shard: u64) -> Result<Option<(PathBuf, bool)>, ConvertError> {
        super::commit::check_folder(self, folder)?;
        let part = self.part(shard)?;
        part.check_unchanged(&self.header.shared)?;
        let start = format!("{}-", self.uuid(shard));
        let found = names(folder)?.into_iter().find(|name| name.starts_with(&start) && name.ends_with(".pack"));
        let Some(path) = found.map(|name| folder.join(name)) else { return Ok(None) };
        let written = std::fs::metadata(&path).and_then(|there| there.modified()).map_err(ConvertError::io(&path))?;
        Ok(Some((path, written < part.last_change())))
    }

    /// Whether a pack is this shard. Its chunks are not checked.
    #[must_use]
    pub fn is_shard<D: AsRef<[u8]>>(&self, shard: u64, pack: &Pack<D>) -> bool {
        let settled = &self.header.settled;
        pack.pack_uuid() == self.uuid(shard)
            && pack.dataset_uuid() == Uuid(self.header.dataset_uuid)
            && pack.geometry().chunk_samples() == settled.chunk_samples
            && settled.schema().is_ok_and(|schema| *pack.schema() == schema)
    }

    /// The report of a shard that was there and intact.
    #[must_use]
    pub fn kept<D: AsRef<[u8]>>(&self, shard: u64, output: PathBuf, pack: &Pack<D>, time: Duration) -> BuildReport {
        let found = super::commit::found_in(&output, pack).unwrap_or_default();
        BuildReport {
            output,
            shard,
            is_kept: true,
            n_samples: pack.n_samples(),
            bytes_in: 0,
            bytes_out: pack.one().map_or(0, |file| file.trailer().file_len),
            skipped: found.skipped,
            substituted: found.substituted,
            warnings: Vec::new(),
            notes: Vec::new(),
            time,
        }
    }

    /// Writes a shard to the folder of the set, and replaces one that is there. The folder is created if necessary.
    ///
    /// # Errors
    /// [`ConvertError`] says what failed and where. A file that changed after the plan was made is an error. Nothing is
    /// left behind.
    pub fn build(
        &self,
        shard: u64,
        folder: &Path,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<BuildReport, ConvertError> {
        let started = Instant::now();
        check_set_name(folder)?;
        let (part, shared) = (self.part(shard)?, &self.header.shared);
        part.check_unchanged(shared)?;
        create(folder)?;
        let options = self.header.settled.options(options.jobs);
        // What must be unpacked is unpacked next to the shard.
        let list = ListOptions { spool: Some(folder.to_owned()), jobs: options.n_jobs(), ..ListOptions::default() };
        let again = Again { options: list, check: &|| observer.check() };
        let listing = part.clone().into_listing(shared, &self.path, &again)?;
        let plan = self.header.settled.plan(&listing, &options)?;
        let uuid = self.uuid(shard);
        let identity = Identity { pack_uuid: uuid, ..self.header.identity() };
        remove_leftovers(folder, &format!("{BUILDING}{uuid}-"))?;
        let output = Output::create(&folder.join(working_name(uuid)), false)?;
        let mut stages = Stages::default();
        let written = write_pack(&listing, &options, &plan, &identity, &output, observer, &mut stages)?;
        // A file that was changed meanwhile may be in the shard.
        part.check_unchanged(shared)?;
        let target = folder.join(file_name(uuid, written.summary.footer_crc32c));
        // The copy keeps the lock until the file has its name.
        let _lock = output.file().try_clone().map_err(ConvertError::io(&target))?;
        let working = output.target().to_owned();
        name(output, written.summary.n_samples, observer)?;
        std::fs::rename(&working, &target).map_err(ConvertError::io(&target))?;
        remove_others(folder, uuid, &target)?;
        sync_folder(folder)?;
        let restored = Restored { options, warnings: Vec::new() };
        let report = report(&listing, &plan, written, target, stages, restored);
        Ok(BuildReport::of(shard, report, started.elapsed()))
    }
}

impl BuildReport {
    fn of(shard: u64, report: Report, time: Duration) -> Self {
        let Report { output, n_samples, bytes_in, bytes_out, skipped, substituted, warnings, notes, .. } = report;
        Self {
            output,
            shard,
            is_kept: false,
            n_samples,
            bytes_in,
            bytes_out,
            skipped,
            substituted,
            warnings,
            notes,
            time,
        }
    }
}

/// A name that no other process uses, on any machine.
fn working_name(uuid: Uuid) -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{BUILDING}{uuid}-{random:016x}.pack")
}

/// Removes the files of killed processes: their names begin with `start`, and no process has locked them.
pub(super) fn remove_leftovers(folder: &Path, start: &str) -> Result<(), ConvertError> {
    let is_leftover = |name: &String| name.strip_prefix('.').unwrap_or(name).starts_with(start);
    for name in names(folder)?.into_iter().filter(is_leftover) {
        let path = folder.join(name);
        // Another process may remove it first.
        let Ok(file) = open_regular(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Removes files of the same shard with other contents: those of an older source.
fn remove_others(folder: &Path, uuid: Uuid, target: &Path) -> Result<(), ConvertError> {
    let is_other = |name: &String| {
        name.starts_with(&format!("{uuid}-")) && name.ends_with(".pack") && target.file_name() != Some(name.as_ref())
    };
    for name in names(folder)?.into_iter().filter(is_other) {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(ConvertError::io(&path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Removes all that killed processes left behind.
pub(super) fn remove_all_leftovers(folder: &Path) -> Result<(), ConvertError> {
    remove_leftovers(folder, BUILDING)
}

/// The names of the files in a folder that are valid UTF-8. Empty if there is no folder.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, ConvertError> {
    let failed = |error| ConvertError::io(folder)(error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
    Ok(entries.map(name).collect::<Result<Vec<_>, _>>().map_err(failed)?.into_iter().flatten().collect())
}

fn create(folder: &Path) -> Result<(), ConvertError> {
    check_name(folder)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(ConvertError::OutputIsFile { path: folder.to_owned() })
        }
        made => made.map_err(ConvertError::io(folder)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_leftover_that_somebody_writes_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["building-a-1.pack", ".building-a-2.pack.packing", "building-b-1.pack", "other.pack"] {
            std::fs::write(path(name), b"").unwrap();
        }
        let held = File::open(path("building-a-1.pack")).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_leftovers(folder.path(), "building-a-").unwrap();
        let mut left = names(folder.path()).unwrap();
        left.sort_unstable();
        assert_eq!(left, ["building-a-1.pack", "building-b-1.pack", "other.pack"]);
        drop(held);
        remove_all_leftovers(folder.path()).unwrap();
        assert_eq!(names(folder.path()).unwrap(), ["other.pack"]);
    }
}
