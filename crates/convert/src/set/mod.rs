//! Writes sets of packs: adds shards, and commits manifests. A shard is written completely before a manifest names it,
//! and a manifest never replaces another, so a crash or a second writer leaves every version whole.

mod commit;
mod compact;
mod converted;
mod leftovers;
mod shard;
pub(crate) mod totals;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::{Manifest, Pack, ShardEntry, Stats};
use packds_system::to_u64;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

pub(crate) use self::commit::commit;
pub use self::compact::{CompactOptions, CompactReport, JoinedShard, compact};
pub use self::converted::ShardRule;
pub(crate) use self::converted::{AllShards, Shards, chunks_of_shard, first_manifest};
pub(crate) use self::leftovers::BUILDING;
pub use self::leftovers::Leftover;
pub(crate) use self::shard::file_name;
use self::shard::{Shard, origins_of, origins_of_shard};
use crate::edit::{Taken, equal_paths};
use crate::error::ConvertError;
use crate::identity;
use crate::options::AppendOptions;
use crate::output::{check_name, check_no_version, is_set_name};
use crate::pipeline::Observer;
use crate::provenance::VERSION;

/// The result of adding packs to a set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AppendReport {
    /// The set.
    pub output: PathBuf,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The new version.
    pub version: u64,
    /// Number of samples in the set.
    pub n_samples: u64,
    /// Number of shards in the set.
    pub n_shards: u64,
    /// Number of classes.
    pub n_classes: usize,
    /// The new shards.
    pub added: Vec<Added>,
    /// What changed besides the number of samples.
    pub warnings: Vec<String>,
    /// Time to copy and to commit.
    pub time: Duration,
}

/// A new shard of a set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Added {
    /// The pack that it was made from.
    pub source: PathBuf,
    /// Its path in the folder of the set. `None` for a dry run that would write a new file.
    pub path: Option<String>,
    /// Number of samples.
    pub n_samples: u64,
    /// Size of the file in bytes. Size of its items for a dry run that would write a new file.
    pub bytes: u64,
    /// Whether the file is the source, byte for byte.
    pub is_copy: bool,
    /// Whether the copy was already in the folder, because an earlier append was interrupted.
    pub was_there: bool,
}

impl Serialize for AppendReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let added = self.added.iter().map(|added| {
            json!({
                "source": added.source.to_string_lossy(),
                "path": added.path,
                "n_samples": added.n_samples,
                "bytes": added.bytes,
                "is_copy": added.is_copy,
                "was_there": added.was_there,
            })
        });
        json!({
            "output": self.output.to_string_lossy(),
            "dry_run": self.dry_run,
            "version": self.version,
            "n_samples": self.n_samples,
            "n_shards": self.n_shards,
            "n_classes": self.n_classes,
            "bytes_copied": self.added.iter().map(|added| added.bytes).sum::<u64>(),
            "added": added.collect::<Value>(),
            "warnings": self.warnings,
            "seconds": {"total": self.time.as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// Checks that this is the name of a set, and not of a pack or of a version of a set.
///
/// # Errors
/// [`ConvertError::Options`] if it does not end with `.packs`.
pub fn check_set_name(folder: &Path) -> Result<(), ConvertError> {
    check_no_version(folder)?;
    if is_set_name(folder) {
        return Ok(());
    }
    let reason = format!("{}: expected the name of a set, which ends with .packs", folder.display());
    Err(ConvertError::options(reason, "give the set a name such as photos.packs"))
}

/// Adds whole packs to the set in `folder`, as one new version. `current` is the latest version, or `None` if the set is
/// new. A pack that fits is copied byte for byte. Another is written again with the class ids and the chunks of the set,
/// without decoding its images.
///
/// # Errors
/// [`ConvertError`] says what does not fit, what failed, and where. The set keeps its version.
pub fn append<D: AsRef<[u8]> + Send + Sync>(
    folder: &Path,
    current: Option<&Pack<D>>,
    packs: &[Taken<'_, D>],
    options: &AppendOptions,
    observer: &dyn Observer,
) -> Result<AppendReport, ConvertError> {
    let started = Instant::now();
    let mut next = Next::of(current, packs)?;
    refuse_known(&next.manifest, packs)?;
    let mut warnings = missing_shards(folder, &next.manifest);
    warnings.extend(known_paths(folder, current, packs)?);
    check_name(folder)?;
    let is_new = !folder.exists();
    if is_new && !options.dry_run {
        std::fs::create_dir(folder).map_err(ConvertError::io(folder))?;
    }
    let done = add(folder, &mut next, current, packs, options, observer);
    if done.is_err() && is_new {
        // Succeeds only if the folder is empty.
        let _ = std::fs::remove_dir(folder);
    }
    let (added, more) = done?;
    warnings.extend(more);
    Ok(AppendReport {
        output: folder.to_owned(),
        dry_run: options.dry_run,
        version: next.manifest.version,
        n_samples: next.n_samples()
            + added.iter().filter(|_| options.dry_run).map(|added| added.n_samples).sum::<u64>(),
        n_shards: to_u64(next.manifest.shards.len()) + if options.dry_run { to_u64(added.len()) } else { 0 },
        n_classes: next.manifest.classes.first().map_or(0, |classes| classes.names.len()),
        added,
        warnings,
        time: started.elapsed(),
    })
}

/// Refuses a pack that is already in the set, or is given twice, also as a part or a version of a set.
fn refuse_known<D: AsRef<[u8]>>(manifest: &Manifest, packs: &[Taken<'_, D>]) -> Result<(), ConvertError> {
    let mut known: BTreeSet<String> = manifest.shards.iter().flat_map(origins_of_shard).collect();
    // The ids of the versions. Each has the first shards of the latest.
    for n in 1..=manifest.shards.len() {
        let first = manifest.shards.iter().take(n).map(|shard| shard.pack_uuid);
        known.insert(identity::of_shards(first, manifest.chunk_samples).1.to_string());
    }
    known.extend(manifest.parent.map(|parent| parent.to_string()));
    for taken in packs {
        let own: BTreeSet<String> = origins_of(taken).into_iter().collect();
        // The merged pack of a version has the ids of the set.
        let is_version = known.contains(&taken.pack.pack_uuid().to_string())
            || !manifest.shards.is_empty() && taken.pack.dataset_uuid() == manifest.dataset_uuid;
        if is_version || !own.is_disjoint(&known) {
            let what = if taken.pack.manifest().is_some() { "samples of this set are" } else { "this pack is" };
            let reason = format!("{}: {what} already in the set", taken.path.display());
            return Err(ConvertError::options(reason, "add each pack once"));
        }
        known.extend(own);
    }
    Ok(())
}

/// Warns about shards that the new version will need, but that are missing or have another size.
fn missing_shards(folder: &Path, manifest: &Manifest) -> Vec<String> {
    let is_there = |shard: &ShardEntry| {
        let metadata = std::fs::metadata(folder.join(&shard.path));
        metadata.is_ok_and(|metadata| metadata.len() == shard.bytes)
    };
    let lost = manifest.shards.iter().filter(|shard| !is_there(shard));
    lost.map(|shard| format!("the shard '{}' of the set is missing or has another size", shard.path)).collect()
}

/// A warning if samples with the same paths are in the set already, or in several of the packs.
fn known_paths<D: AsRef<[u8]>>(
    folder: &Path,
    current: Option<&Pack<D>>,
    packs: &[Taken<'_, D>],
) -> Result<Option<String>, ConvertError> {
    let all = current.map(|pack| Taken { pack, path: folder, samples: None }).into_iter();
    let all = all.chain(packs.iter().map(|taken| Taken { pack: taken.pack, path: taken.path, samples: None }));
    let all: Vec<Taken<'_, D>> = all.collect();
    match (equal_paths(&all), current) {
        // The new samples do not depend on older shards.
        (Err(error), Some(_)) => Ok(Some(format!("the paths were not compared with those of the set: {error}"))),
        (found, _) => found,
    }
}

fn add<D: AsRef<[u8]> + Send + Sync>(
    folder: &Path,
    next: &mut Next,
    current: Option<&Pack<D>>,
    packs: &[Taken<'_, D>],
    options: &AppendOptions,
    observer: &dyn Observer,
) -> Result<(Vec<Added>, Vec<String>), ConvertError> {
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    let mut before: Vec<(&Pack<D>, &Path)> = current.into_iter().map(|pack| (pack, folder)).collect();
    for taken in packs {
        let shard = Shard { folder, taken, before: before.clone() };
        before.push((taken.pack, taken.path));
        for (added, stats) in shard.write(&next.manifest, options, observer, &mut warnings)? {
            if let Some((entry, classes, stats)) = stats {
                next.add(entry, &classes, &stats, &mut warnings);
            }
            all.push(added);
        }
    }
    if !options.dry_run {
        next.identify();
        let old = current.and_then(Pack::manifest).map_or(&[][..], |manifest| &manifest.shards);
        commit(folder, &next.manifest, old, observer)?;
    }
    Ok((all, warnings))
}

/// The next version of a set, while shards are added.
struct Next {
    manifest: Manifest,
}

impl Next {
    fn of<D: AsRef<[u8]>>(current: Option<&Pack<D>>, packs: &[Taken<'_, D>]) -> Result<Self, ConvertError> {
        let Some(first) = packs.first() else {
            return Err(ConvertError::options("no packs are given", "pass at least one pack"));
        };
        let manifest = match current.map(Pack::manifest) {
            Some(Some(latest)) => {
                let mut next = latest.clone();
                next.parent = Some(latest.pack_uuid);
                next.version += 1;
                next
            }
            _ => Manifest {
                version: 1,
                parent: None,
                pack_uuid: first.pack.pack_uuid(),
                dataset_uuid: first.pack.dataset_uuid(),
                chunk_samples: first.pack.geometry().chunk_samples(),
                schema: first.pack.schema().clone(),
                has_paths: first.pack.has_paths(),
                shards: Vec::new(),
                stats: Stats::default(),
                classes: Vec::new(),
                provenance: Map::new(),
            },
        };
        Ok(Self { manifest })
    }

    fn n_samples(&self) -> u64 {
        self.manifest.shards.iter().map(|shard| shard.n_samples).sum()
    }

    fn add(
        &mut self,
        entry: ShardEntry,
        classes: &[packds_format::Classes],
        stats: &Stats,
        warnings: &mut Vec<String>,
    ) {
        totals::add(&mut self.manifest, entry, classes, stats, warnings);
    }

    /// Sets the ids and the provenance, which follow from the shards.
    fn identify(&mut self) {
        let shards = self.manifest.shards.iter().map(|shard| shard.pack_uuid);
        let (dataset, pack) = identity::of_shards(shards, self.manifest.chunk_samples);
        if self.manifest.version == 1 {
            self.manifest.dataset_uuid = dataset;
        }
        self.manifest.pack_uuid = pack;
        let provenance = json!({"tool": format!("packds {VERSION}"), "edit": {"command": "append"}});
        if let Value::Object(provenance) = provenance {
            self.manifest.provenance = provenance;
        }
    }
}
