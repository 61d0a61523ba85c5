//! Joins adjacent small shards of a set to larger ones, as a new version. Items are copied as they are stored.
//!
//! The new version has the samples of the last one in the same order, so it keeps its ids: a training run can go on.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::{Classes, Manifest, Pack, ShardEntry, Stats, Uuid};
use packds_system::{counted, to_u64};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::commit::commit;
use super::leftovers::{self, Leftover};
use super::shard::{MERGE, Summary, entry_of};
use super::totals;
use crate::edit::{Changes, Edit, Taken, edit_as, joined_schema};
use crate::error::ConvertError;
use crate::options::EditOptions;
use crate::output::sync_folder;
use crate::pipeline::Observer;
use crate::provenance::VERSION;

/// How a set is compacted.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// Whether to only report what would be done.
    pub dry_run: bool,
    /// A new shard has at most about this many bytes. Shards with at least half of them stay as they are.
    pub shard_bytes: u64,
    /// Whether older versions are deleted, with their shards.
    pub delete_old: bool,
    /// Whether files that no version uses are deleted.
    pub clean: bool,
    /// Number of threads. 0 means all cores.
    pub jobs: usize,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self { dry_run: false, shard_bytes: 8_000_000_000, delete_old: false, clean: false, jobs: 0 }
    }
}

/// The result of compacting a set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompactReport {
    /// The set.
    pub output: PathBuf,
    /// Whether nothing was written or deleted.
    pub dry_run: bool,
    /// The latest version: a new one if shards were joined.
    pub version: u64,
    /// Number of samples in the set.
    pub n_samples: u64,
    /// Number of shards before and now.
    pub n_shards: [u64; 2],
    /// The new shards.
    pub joined: Vec<JoinedShard>,
    /// Files that were deleted; in a dry run, files that would be.
    pub deleted: Vec<Leftover>,
    /// Bytes of the other files that only older versions use, or none.
    pub old_bytes: u64,
    /// What changed besides.
    pub warnings: Vec<String>,
    /// Time to copy, to commit and to delete.
    pub time: Duration,
}

/// A shard that was made from several.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JoinedShard {
    /// Its path in the folder of the set. Empty in a dry run.
    pub path: String,
    /// Number of shards that were joined.
    pub n_shards: u64,
    /// Number of samples.
    pub n_samples: u64,
    /// Size of the file in bytes; in a dry run, of the files to join.
    pub bytes: u64,
}

impl Serialize for CompactReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let joined = self.joined.iter().map(|shard| {
            json!({
                "path": shard.path,
                "n_shards": shard.n_shards,
                "n_samples": shard.n_samples,
                "bytes": shard.bytes,
            })
        });
        let deleted = self.deleted.iter().map(|file| json!({"path": file.path, "bytes": file.bytes}));
        json!({
            "output": self.output.to_string_lossy(),
            "dry_run": self.dry_run,
            "version": self.version,
            "n_samples": self.n_samples,
            "n_shards": self.n_shards[1],
            "n_shards_before": self.n_shards[0],
            "joined": joined.collect::<Value>(),
            "bytes_copied": self.joined.iter().map(|shard| shard.bytes).sum::<u64>(),
            "deleted": deleted.collect::<Value>(),
            "bytes_deleted": self.deleted.iter().map(|file| file.bytes).sum::<u64>(),
            "old_bytes": self.old_bytes,
            "warnings": self.warnings,
            "seconds": {"total": self.time.as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// Joins adjacent small shards of the latest version of the set in `folder`, which is `current`. `open` opens a shard.
///
/// # Errors
/// What failed, and where. The set keeps its latest version.
pub fn compact<D, P, E>(
    folder: &Path,
    current: &Pack<D>,
    open: impl Fn(&Path) -> Result<P, E>,
    options: &CompactOptions,
    observer: &dyn Observer,
) -> Result<CompactReport, E>
where
    D: AsRef<[u8]> + Send + Sync,
    P: Deref<Target = Pack<D>>,
    E: From<ConvertError>,
{
    let started = Instant::now();
    let Some(manifest) = current.manifest() else {
        let reason = format!("{}: this is a pack, not a set", folder.display());
        return Err(ConvertError::options(reason, "pass the name of a set, which ends with .packs").into());
    };
    let groups = groups(&manifest.shards, options.shard_bytes);
    let mut next = Next { manifest: manifest.clone(), measured: empty(manifest) };
    next.manifest.shards.clear();
    let mut report = CompactReport {
        output: folder.to_owned(),
        dry_run: options.dry_run,
        version: manifest.version,
        n_samples: current.n_samples(),
        n_shards: [to_u64(manifest.shards.len()), to_u64(groups.len())],
        joined: Vec::new(),
        deleted: Vec::new(),
        old_bytes: 0,
        warnings: Vec::new(),
        time: Duration::ZERO,
    };
    let is_joined = groups.len() < manifest.shards.len();
    for group in groups.iter().filter(|_| is_joined) {
        let sum = |of: fn(&ShardEntry) -> u64| group.iter().map(of).sum::<u64>();
        let mut joined = JoinedShard {
            path: String::new(),
            n_shards: to_u64(group.len()),
            n_samples: sum(|shard| shard.n_samples),
            bytes: sum(|shard| shard.bytes),
        };
        if options.dry_run {
            report.joined.extend((group.len() > 1).then_some(joined));
            continue;
        }
        let paths: Vec<PathBuf> = group.iter().map(|shard| folder.join(&shard.path)).collect();
        let packs = paths.iter().map(|path| open(path)).collect::<Result<Vec<P>, E>>()?;
        let taken = packs.iter().zip(&paths).map(|(pack, path)| Taken { pack: &**pack, path, samples: None });
        let taken: Vec<_> = taken.collect();
        match group {
            [one] => next.add(of_one(one, &taken)?),
            _ => {
                let set = Taken { pack: current, path: folder, samples: Some(&[]) };
                let summary = join(folder, group, (set, taken), options, observer)?;
                joined.path.clone_from(&summary.0.path);
                joined.bytes = summary.0.bytes;
                next.add(summary);
                report.joined.push(joined);
            }
        }
    }
    if is_joined {
        report.version += 1;
        if !options.dry_run {
            next.commit(folder, manifest, observer)?;
        }
    }
    let stay = groups.iter().filter(|group| !is_joined || group.len() == 1).flat_map(|group| group.iter());
    let made = next.manifest.shards.iter();
    let used = stay.chain(made).map(|shard| shard.path.clone()).collect();
    // While it is held, no other process commits a version.
    let deletes = !options.dry_run && (options.delete_old || options.clean);
    let _lock = deletes.then(|| leftovers::lock(folder, report.version)).transpose()?;
    let (deleted, old_bytes) = leftovers::find(folder, report.version, used, options)?;
    if deletes {
        leftovers::delete(folder, &deleted)?;
    }
    (report.deleted, report.old_bytes, report.time) = (deleted, old_bytes, started.elapsed());
    Ok(report)
}

/// Divides the shards into runs that become one shard each. A shard that is large enough stays alone. Otherwise it would
/// be written again each time.
fn groups(shards: &[ShardEntry], most: u64) -> Vec<&[ShardEntry]> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (place, shard) in shards.iter().enumerate() {
        let is_large = shard.bytes >= most / 2;
        if place > start && (is_large || bytes.saturating_add(shard.bytes) > most) {
            groups.extend(shards.get(start..place));
            (start, bytes) = (place, 0);
        }
        bytes = bytes.saturating_add(shard.bytes);
        if is_large {
            groups.extend(shards.get(start..=place));
            (start, bytes) = (place + 1, 0);
        }
    }
    groups.extend(shards.get(start..).filter(|rest| !rest.is_empty()));
    groups
}

/// What the manifest needs of a shard that stays.
fn of_one<D: AsRef<[u8]>>(entry: &ShardEntry, taken: &[Taken<'_, D>]) -> Result<Summary, ConvertError> {
    let Some(taken) = taken.first() else { return Ok((entry.clone(), Vec::new(), Stats::default())) };
    let located = |error| taken.located(error);
    Ok((entry.clone(), taken.pack.classes().map_err(located)?, taken.pack.stats().map_err(located)?))
}

/// Writes shards as one. `set` gives the new shard the classes of the set.
fn join<D: AsRef<[u8]> + Send + Sync>(
    folder: &Path,
    group: &[ShardEntry],
    (set, shards): (Taken<'_, D>, Vec<Taken<'_, D>>),
    options: &CompactOptions,
    observer: &dyn Observer,
) -> Result<Summary, ConvertError> {
    for (entry, taken) in group.iter().zip(&shards) {
        let found = (taken.pack.pack_uuid(), taken.pack.one().map(|file| file.trailer().footer_crc32c));
        if found != (entry.pack_uuid, Some(entry.footer_crc32c)) {
            let hint = "the file was replaced; restore the shard from a copy";
            return Err(ConvertError::contradictory(taken.path, "", "this is not the shard that the set names", hint));
        }
    }
    let schema = set.pack.schema().clone();
    let chunk_samples = Some(set.pack.geometry().chunk_samples());
    let both: Vec<Taken<'_, D>> = std::iter::once(set).chain(shards).collect();
    if joined_schema(&both)? != schema {
        let reason = "the classes of the shards do not fit the fields of the set";
        return Err(ConvertError::contradictory(folder, "", reason, MERGE));
    }
    // The name of the shard contains a checksum that is known only when it is complete.
    let target = |uuid: Uuid| folder.join(format!("{}{uuid}.pack", leftovers::COMPACTING));
    // What a killed run left behind is replaced.
    let edit = EditOptions { dry_run: false, chunk_samples, jobs: options.jobs, force: true };
    let written = edit_as(&both, (Edit::Compact, &json!({}), &Changes::default()), &target, &edit, observer)?;
    let Some(file) = written.file else {
        return Err(ConvertError::options("nothing was written", "run the command again"));
    };
    let origins = group.iter().flat_map(|shard| [Some(shard.path.as_str()), shard.origin.as_deref()]);
    let origins: Vec<&str> = origins.flatten().collect();
    let entry = ShardEntry { origin: Some(origins.join(" ")), ..entry_of(file.pack_uuid, &file.summary) };
    let place = folder.join(&entry.path);
    std::fs::rename(target(file.pack_uuid), &place).map_err(ConvertError::io(&place))?;
    Ok((entry, file.classes, file.stats))
}

/// The next version, while its shards are added.
struct Next {
    manifest: Manifest,
    /// Like the manifest, with statistics that are added up from those of the shards.
    measured: Manifest,
}

/// A manifest without shards.
fn empty(manifest: &Manifest) -> Manifest {
    let (shards, stats, classes) = (Vec::new(), Stats::default(), Vec::<Classes>::new());
    Manifest { shards, stats, classes, ..manifest.clone() }
}

impl Next {
    fn add(&mut self, (entry, classes, stats): Summary) {
        self.manifest.shards.push(entry.clone());
        // The statistics are those of the last version, except for those that depend on the shards.
        totals::add(&mut self.measured, entry, &classes, &stats, &mut Vec::new());
    }

    /// Writes the manifest. The samples and their order are the same, and so are the ids.
    fn commit(&mut self, folder: &Path, last: &Manifest, observer: &dyn Observer) -> Result<(), ConvertError> {
        let n: u64 = self.manifest.shards.iter().map(|shard| shard.n_samples).sum();
        let expected: u64 = last.shards.iter().map(|shard| shard.n_samples).sum();
        if n != expected {
            let reason = format!("expected {} in the new shards, found {n}", counted(expected, "sample"));
            return Err(ConvertError::contradictory(folder, "", reason, "the shards were changed meanwhile"));
        }
        self.manifest.stats.labels = std::mem::take(&mut self.measured.stats.labels);
        self.manifest.version += 1;
        self.manifest.parent = Some(last.pack_uuid);
        let provenance = json!({"tool": format!("packds {VERSION}"), "edit": {"command": Edit::Compact.name()}});
        if let Value::Object(provenance) = provenance {
            self.manifest.provenance = provenance;
        }
        // The names of the new shards must be on disk before a manifest has them.
        sync_folder(folder)?;
        commit(folder, &self.manifest, &last.shards, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_neighbours_are_joined_and_large_shards_stay() {
        let shard = |bytes: u64| ShardEntry {
            path: String::new(),
            n_samples: 1,
            bytes,
            pack_uuid: Uuid([0; 16]),
            footer_crc32c: 0,
            body_bytes: 0,
            largest_chunk: 0,
            origin: None,
        };
        let sizes = |all: &[u64], most: u64| -> Vec<Vec<u64>> {
            let shards: Vec<ShardEntry> = all.iter().map(|bytes| shard(*bytes)).collect();
            groups(&shards, most).iter().map(|group| group.iter().map(|shard| shard.bytes).collect()).collect()
        };
        assert_eq!(sizes(&[1, 2, 3, 4, 1, 9, 1, 2, 20, 3], 10), [&[1, 2, 3, 4][..], &[1], &[9], &[1, 2], &[20], &[3]]);
        assert_eq!(sizes(&[5, 5, 1], 10), [&[5][..], &[5], &[1]]);
        assert_eq!(sizes(&[4, 4, 4], 10), [&[4, 4][..], &[4]]);
        assert_eq!(sizes(&[7], 10), [&[7][..]]);
    }
}
