//! Makes a set of the shards of a plan: reads the footers of all shards, and writes the manifest.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::{Limits, Manifest, Pack, ShardEntry, manifest_name};
use packds_system::{counted, read_regular, to_u64};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::build::{names, remove_all_leftovers};
use super::plan_file::ShardPlan;
use crate::convert::kept_sorted;
use crate::error::ConvertError;
use crate::opt::SHARD;
use crate::pipeline::{Observer, Phase, Progress};
use crate::provenance::{Found, provenance};
use crate::report::Skipped;
use crate::set::{check_set_name, commit, first_manifest, totals};

/// Number of ranges of missing shards that an error lists.
const LISTED: usize = 100;

/// How often, and after what time, a manifest is tried again that another process is writing.
const MAX_TRIES: usize = 100;
const WAIT: Duration = Duration::from_millis(50);

/// The result of making a set of shards.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommitReport {
    /// The set.
    pub output: PathBuf,
    /// Whether the set was there, with the same shards.
    pub is_kept: bool,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of shards.
    pub n_shards: u64,
    /// Number of classes.
    pub n_classes: usize,
    /// Size of all shards in bytes.
    pub bytes_out: u64,
    /// Number of files that were skipped in all shards.
    pub n_skipped: u64,
    /// The first of them.
    pub skipped: Vec<Skipped>,
    /// Number of files that were replaced by images of zeros in all shards.
    pub n_substituted: u64,
    /// The first of them.
    pub substituted: Vec<Skipped>,
    /// What users of the set should know.
    pub warnings: Vec<String>,
    /// Time to read the footers and to write the manifest.
    pub time: Duration,
}

impl Serialize for CommitReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "output": self.output.to_string_lossy(),
            "is_kept": self.is_kept,
            "n_samples": self.n_samples,
            "n_shards": self.n_shards,
            "n_classes": self.n_classes,
            "bytes_out": self.bytes_out,
            "n_skipped": self.n_skipped,
            "skipped": self.skipped,
            "n_substituted": self.n_substituted,
            "substituted": self.substituted,
            "warnings": self.warnings,
            "seconds": {"total": self.time.as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// The shards of a plan, on their way to becoming a set. Pass each of [`Commit::paths`] to [`Commit::add`].
#[derive(Debug)]
pub struct Commit<'a> {
    plan: &'a ShardPlan,
    folder: &'a Path,
    paths: Vec<PathBuf>,
    n_added: u64,
    manifest: Manifest,
    found: Found,
    warnings: Vec<String>,
    started: Instant,
}

impl<'a> Commit<'a> {
    /// Finds the shards of the plan in the folder of the set.
    ///
    /// # Errors
    /// [`ConvertError::Options`] names the shards that are missing.
    pub fn new(plan: &'a ShardPlan, folder: &'a Path) -> Result<Self, ConvertError> {
        let started = Instant::now();
        check_set_name(folder)?;
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in names(folder)? {
            let Some((uuid, _)) = name.strip_suffix(".pack").and_then(|stem| stem.rsplit_once('-')) else { continue };
            files.entry(uuid.to_owned()).or_default().push(name);
        }
        let mut missing = Vec::new();
        let mut paths = Vec::new();
        for shard in 0..plan.n_shards() {
            match files.get(&plan.uuid(shard).to_string()).map(Vec::as_slice) {
                None | Some([]) => missing.push(shard),
                Some([name]) => paths.push(folder.join(name)),
                Some([one, other, ..]) => {
                    let reason = format!("{}: shard {shard} is there twice, as {one} and {other}", folder.display());
                    return Err(ConvertError::options(reason, "remove the file that `packds verify` finds damaged"));
                }
            }
        }
        if !missing.is_empty() {
            return Err(missing_shards(folder, &missing, plan));
        }
        let header = &plan.header;
        let identity = header.identity();
        let manifest = first_manifest(header.settled.schema()?, header.settled.chunk_samples, &identity);
        let (found, warnings) = (Found::default(), Vec::new());
        Ok(Self { plan, folder, paths, n_added: 0, manifest, found, warnings, started })
    }

    /// The files of the shards, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Adds the next shard. Its chunks are not checked: `build` has just written them.
    ///
    /// # Errors
    /// [`ConvertError::SourceMalformed`] if the file is not this shard.
    pub fn add<D: AsRef<[u8]>>(
        &mut self,
        path: &Path,
        pack: &Pack<D>,
        observer: &dyn Observer,
    ) -> Result<(), ConvertError> {
        observer.check()?;
        let (shard, total) = (self.n_added, to_u64(self.paths.len()));
        observer.progress(Progress { samples: shard, total, bytes_in: 0, phase: Phase::ReadShards });
        let Some(file) = pack.one().filter(|_| self.plan.is_shard(shard, pack)) else {
            return Err(self.unreadable(path, &format!("it is not that of {}", self.plan.path.display())));
        };
        self.n_added += 1;
        self.found.add(found_in(path, pack)?);
        if file.n_samples() == 0 {
            self.warnings.push(format!("shard {shard} is left out, because all of its samples are bad"));
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (entry, stats, classes) = (ShardEntry::of(name, file)?, pack.stats()?, pack.classes()?);
        totals::add(&mut self.manifest, entry, &classes, &stats, &mut self.warnings);
        Ok(())
    }

    /// The error if the next shard cannot be opened.
    #[must_use]
    pub fn unreadable(&self, path: &Path, reason: &str) -> ConvertError {
        let shard = self.n_added;
        let hint = format!("build it again with {}, which replaces it", SHARD.with(shard));
        ConvertError::contradictory(path, "", format!("shard {shard} cannot be used: {reason}"), hint)
    }

    /// Writes the manifest. If the same manifest is there, nothing is written.
    ///
    /// # Errors
    /// [`ConvertError::NothingLeft`] if all samples are bad, or [`ConvertError::Options`] if the folder has another set.
    pub fn finish(mut self, observer: &dyn Observer) -> Result<CommitReport, ConvertError> {
        let header = &self.plan.header;
        if self.manifest.shards.is_empty() {
            let skipped = usize::try_from(self.found.n_skipped).unwrap_or(usize::MAX);
            return Err(ConvertError::NothingLeft { path: self.plan.path.clone(), skipped });
        }
        self.manifest.provenance = provenance(&header.origin, &self.found);
        let is_kept = self.is_there()?;
        if !is_kept {
            self.write(observer)?;
        }
        remove_all_leftovers(self.folder)?;
        let shards = &self.manifest.shards;
        let n_samples = shards.iter().map(|shard| shard.n_samples).sum();
        let (stats, settled) = (&self.manifest.stats, &header.settled);
        self.warnings.extend(kept_sorted(stats, settled.chunk_samples, settled.keep_order, n_samples));
        Ok(CommitReport {
            output: self.folder.to_owned(),
            is_kept,
            n_samples,
            n_shards: to_u64(shards.len()),
            n_classes: self.manifest.classes.first().map_or(0, |classes| classes.names.len()),
            bytes_out: shards.iter().map(|shard| shard.bytes).sum(),
            n_skipped: self.found.n_skipped,
            skipped: self.found.skipped,
            n_substituted: self.found.n_substituted,
            substituted: self.found.substituted,
            warnings: self.warnings,
            time: self.started.elapsed(),
        })
    }

    /// Writes the manifest. Another process may be writing the same one: then this one waits until it is done.
    fn write(&self, observer: &dyn Observer) -> Result<(), ConvertError> {
        let mut tries = 0;
        loop {
            let done = commit(self.folder, &self.manifest, &[], observer);
            if done.is_ok() || self.is_there()? {
                return Ok(());
            }
            tries += 1;
            let is_busy = matches!(done, Err(ConvertError::Options { .. }));
            if tries == MAX_TRIES || !is_busy {
                return done;
            }
            observer.check()?;
            std::thread::sleep(WAIT);
        }
    }

    /// Whether the folder has this manifest.
    fn is_there(&self) -> Result<bool, ConvertError> {
        check_folder(self.plan, self.folder)?;
        let path = self.folder.join(manifest_name(1));
        match read_regular(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Ok(there) if there == self.manifest.to_bytes()? => Ok(true),
            Ok(_) => Err(other_set(self.folder)),
            Err(error) => Err(ConvertError::io(&path)(error)),
        }
    }
}

/// Refuses a folder that has the set of another plan.
pub(super) fn check_folder(plan: &ShardPlan, folder: &Path) -> Result<(), ConvertError> {
    let path = folder.join(manifest_name(1));
    let there = match read_regular(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        there => there.map_err(ConvertError::io(&path))?,
    };
    let found = Manifest::parse(&there, Limits::default()).map_err(|error| {
        let hint = "delete this file, and commit again: the shards are not affected";
        ConvertError::contradictory(&path, "", error.to_string(), hint)
    })?;
    match found.pack_uuid.0 == plan.header.pack_uuid {
        true => Ok(()),
        false => Err(other_set(folder)),
    }
}

fn other_set(folder: &Path) -> ConvertError {
    let reason = format!("{}: the folder has another set than that of the plan", folder.display());
    ConvertError::options(reason, "build the plan in a folder of its own")
}

fn missing_shards(folder: &Path, missing: &[u64], plan: &ShardPlan) -> ConvertError {
    let ranges = ranges(missing);
    let few = ranges.get(..LISTED).unwrap_or(&ranges).join(",");
    let more = if ranges.len() > LISTED { " and more" } else { "" };
    let (n, all) = (missing.len(), counted(plan.n_shards(), "shard"));
    let reason = format!("{}: {n} of {all} missing: {few}{more}", folder.display());
    let first = missing.first().copied().unwrap_or(0);
    ConvertError::options(reason, format!("build each of them, such as {}; then commit again", SHARD.with(first)))
}

/// Ascending numbers as Slurm writes them: `0-3` and `7`.
fn ranges(numbers: &[u64]) -> Vec<String> {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let range = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(u64::to_string).collect(),
    };
    runs.map(range).collect()
}

/// What was found in the samples of a shard, as its provenance tells.
pub(super) fn found_in<D: AsRef<[u8]>>(path: &Path, pack: &Pack<D>) -> Result<Found, ConvertError> {
    let provenance = pack.provenance()?;
    serde_json::from_str(&provenance)
        .map_err(|error| ConvertError::malformed(path, "provenance", format!("not that of a shard: {error}")))
}
