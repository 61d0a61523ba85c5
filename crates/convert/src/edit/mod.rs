//! Writes a pack from samples of other packs. Items are copied as they are stored: no image is decoded or encoded.
//!
//! `sides` chooses the samples of a split, `order` gives all samples another order, `changes` says which fields the new
//! pack has, `relabel` gives samples other classes, `added` adds fields, `joined` gives several packs one schema and one
//! list of classes, `equal_paths` finds samples that may be in several packs, `blocks` copies samples, and `totals`
//! computes the statistics of the new pack.

mod added;
mod blocks;
mod changes;
mod chunks;
mod equal_paths;
mod joined;
mod order;
mod relabel;
mod sides;
mod totals;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_format::{
    Classes, FooterParts, FormatError, LabelStats, Pack, PackOptions, Paths, Schema, Stats, Uuid, WriteSummary, among,
};
use packds_system::{to_u64, to_usize};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use self::added::AddFieldOptions;
use self::blocks::Copier;
pub use self::changes::Changes;
pub(crate) use self::equal_paths::equal_paths;
use self::joined::Joined;
pub(crate) use self::joined::{class_names, differences};
pub use self::order::{ReorderOptions, in_file_order, reordered};
pub use self::relabel::RelabelOptions;
pub use self::sides::{Share, Side, SplitOptions, sides};
pub(crate) use self::totals::pixels_of_all;
use crate::convert::{check_apart, name};
use crate::error::ConvertError;
use crate::identity;
use crate::opt::{BY, VERIFY};
use crate::options::EditOptions;
use crate::output::{Output, check_output};
use crate::pipeline::Observer;
use crate::provenance::VERSION;

/// A command that writes packs from packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Some samples of a pack.
    Subset,
    /// One of several parts of a pack.
    Split,
    /// All samples of several packs.
    Merge,
    /// A shard of a set.
    Append,
    /// A shard of a set, made from several.
    Compact,
    /// A pack with more fields.
    AddField,
    /// A pack without some fields.
    DropField,
    /// All samples of a pack in another order.
    Reorder,
    /// A pack with other labels.
    Relabel,
}

packds_system::named!(Edit { Subset = "subset", Split = "split", Merge = "merge", AddField = "add-field", DropField = "drop-field", Reorder = "reorder",
    Relabel = "relabel", Append = "append", Compact = "compact" });

/// The samples of one pack that are copied to the new pack.
#[derive(Debug)]
pub struct Taken<'a, D> {
    /// The pack.
    pub pack: &'a Pack<D>,
    /// Its path, for messages.
    pub path: &'a Path,
    /// The samples, in the order of the new pack. `None` means all, in file order.
    pub samples: Option<&'a [u64]>,
}

impl<D: AsRef<[u8]>> Taken<'_, D> {
    fn len(&self) -> u64 {
        self.samples.map_or_else(|| self.pack.n_samples(), |samples| to_u64(samples.len()))
    }

    /// The number in its pack of the sample with this number among the taken samples.
    fn sample(&self, number: u64) -> u64 {
        let chosen = self.samples.map(|samples| usize::try_from(number).ok().and_then(|i| samples.get(i)));
        match chosen {
            None => number,
            // An unknown number is refused when its item is read.
            Some(chosen) => chosen.copied().unwrap_or(u64::MAX),
        }
    }

    /// Whether the samples with these numbers among the taken ones are consecutive in the pack.
    fn is_run(&self, first: u64, n: u64) -> bool {
        let Some(samples) = self.samples else { return true };
        let run = samples.get(to_usize(first)..to_usize(first + n)).unwrap_or(&[]);
        run.iter().zip(run.iter().skip(1)).all(|(one, next)| one.checked_add(1) == Some(*next))
    }

    /// Whether every sample of the pack is taken once, in any order, or none.
    fn is_whole(&self) -> bool {
        let Some(samples) = self.samples else { return true };
        if samples.is_empty() || self.len() != self.pack.n_samples() {
            return samples.is_empty();
        }
        let mut seen = vec![false; to_usize(self.pack.n_samples())];
        let is_new = |sample: &u64| seen.get_mut(to_usize(*sample)).is_some_and(|seen| !std::mem::replace(seen, true));
        samples.iter().all(is_new)
    }

    /// All taken samples, in the order of the new pack.
    fn each(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|number| self.sample(number))
    }

    /// Adds the path of the pack to an error in its bytes.
    pub(crate) fn located(&self, error: FormatError) -> ConvertError {
        match error {
            FormatError::Io(source) => ConvertError::Io { path: self.path.to_owned(), source },
            shard if shard.is_of_system() => {
                ConvertError::Io { path: self.path.to_owned(), source: std::io::Error::other(shard.to_string()) }
            }
            damage => {
                let hint = format!("{VERIFY} lists all damage; nothing was written");
                ConvertError::contradictory(self.path, "", damage.to_string(), hint)
            }
        }
    }
}

/// The result of an edit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EditReport {
    /// The new pack.
    pub output: PathBuf,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Number of samples.
    pub n_samples: u64,
    /// Number of chunks.
    pub n_chunks: u64,
    /// Samples per chunk. The last chunk may have fewer.
    pub chunk_samples: u32,
    /// Number of classes.
    pub n_classes: usize,
    /// Bytes of the items that are copied. After compression, the new pack may have fewer.
    pub bytes_copied: u64,
    /// Size of the new pack in bytes. 0 for a dry run.
    pub bytes_out: u64,
    /// What changed besides the choice of samples.
    pub warnings: Vec<String>,
    /// Time from the first sample to the last written byte.
    pub copy: Duration,
    /// Time to sync the pack to disk.
    pub sync: Duration,
}

impl Serialize for EditReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "output": self.output.to_string_lossy(),
            "dry_run": self.dry_run,
            "n_samples": self.n_samples,
            "n_chunks": self.n_chunks,
            "chunk_samples": self.chunk_samples,
            "n_classes": self.n_classes,
            "bytes_copied": self.bytes_copied,
            "bytes_out": self.bytes_out,
            "warnings": self.warnings,
            "seconds": {"copy": self.copy.as_secs_f64(), "sync": self.sync.as_secs_f64(), "total": (self.copy + self.sync).as_secs_f64()},
        })
        .serialize(serializer)
    }
}

/// Writes a pack with these samples of these packs, one pack after the other. `what` is the command, a description of
/// the choice for the provenance, and the changes.
///
/// The pack gets its name only once it is complete and on disk. The same samples and options always give the same
/// bytes, whatever the number of threads.
///
/// # Errors
/// [`ConvertError`] says what failed, where, and whether the data is to blame. Nothing is left at `target`.
pub fn edit<D: AsRef<[u8]> + Send + Sync>(
    taken: &[Taken<'_, D>],
    what: (Edit, &Value, &Changes),
    target: &Path,
    options: &EditOptions,
    observer: &dyn Observer,
) -> Result<EditReport, ConvertError> {
    let written = edit_as(taken, what, &|_| target.to_owned(), options, observer)?;
    Ok(written.report)
}

/// What was written.
pub(crate) struct Written {
    pub(crate) report: EditReport,
    /// The new file. `None` for a dry run.
    pub(crate) file: Option<NewFile>,
}

/// A new pack file.
pub(crate) struct NewFile {
    pub(crate) pack_uuid: Uuid,
    pub(crate) summary: WriteSummary,
    pub(crate) stats: Stats,
    pub(crate) classes: Vec<Classes>,
}

/// The schema of a pack with samples of all these packs.
pub(crate) fn joined_schema<D: AsRef<[u8]>>(taken: &[Taken<'_, D>]) -> Result<Schema, ConvertError> {
    Joined::of(taken, &Changes::default()).map(|joined| joined.schema)
}

/// Like [`edit`], but the path of the new pack may depend on its id.
pub(crate) fn edit_as<D: AsRef<[u8]> + Send + Sync>(
    taken: &[Taken<'_, D>],
    what: (Edit, &Value, &Changes),
    target: &dyn Fn(Uuid) -> PathBuf,
    options: &EditOptions,
    observer: &dyn Observer,
) -> Result<Written, ConvertError> {
    let (command, how, changes) = what;
    let joined = Joined::of(taken, changes)?;
    let n_samples: u64 = taken.iter().map(Taken::len).sum();
    if n_samples == 0 {
        return Err(ConvertError::options("no samples are chosen", "there is nothing to write"));
    }
    let copier = Copier { taken, joined: &joined, is_partial: !taken.iter().all(Taken::is_whole) };
    let in_first = taken.first().map_or(1, |taken| taken.pack.geometry().chunk_samples());
    let chunk_samples = options.chunk_samples.unwrap_or(in_first);
    let pack = pack_options(&copier, chunk_samples, changes.described().as_ref())?;
    let target = &*target(pack.pack_uuid);
    taken.iter().try_for_each(|taken| check_apart(taken.path, target))?;
    check_output(target, options.force)?;
    let mut warnings = changes.warnings.clone();
    warnings.extend(joined.warnings.iter().cloned());
    let without = taken.iter().filter(|taken| !taken.pack.has_paths());
    let without: Vec<String> = without.map(|taken| taken.path.display().to_string()).collect();
    if (1..taken.len()).contains(&without.len()) {
        warnings.push(format!("the samples of {} have no paths, so their paths are empty", without.join(", ")));
    }
    if command == Edit::Merge && taken.len() > 1 {
        warnings.extend(equal_paths(taken)?);
    }
    let n_chunks = n_samples.div_ceil(u64::from(chunk_samples));
    let labels = totals::label_stats(&copier, chunk_samples)?;
    // Samples that are chosen at random are never sorted.
    if command == Edit::Merge || how.get(BY.name()).is_some() && command == Edit::Reorder {
        warnings.extend(totals::sorted(&copier, &labels, (n_samples, chunk_samples))?);
    }
    let mut report = EditReport {
        output: target.to_owned(),
        dry_run: options.dry_run,
        n_samples,
        n_chunks,
        chunk_samples,
        n_classes: joined.classes.first().map_or(0, |classes| classes.names.len()),
        bytes_copied: 0,
        bytes_out: 0,
        warnings,
        copy: Duration::ZERO,
        sync: Duration::ZERO,
    };
    if options.dry_run {
        report.bytes_copied = copier.body_bytes()?;
        return Ok(Written { report, file: None });
    }
    let output = Output::create(target, options.force)?;
    let started = Instant::now();
    let provenance = provenance(taken, command, how)?;
    let parts = Parts { pack, provenance, labels };
    let (file, bytes_copied, lost) = write(&copier, parts, &output, options, observer)?;
    report.warnings.extend(lost);
    report.bytes_copied = bytes_copied;
    report.bytes_out = file.summary.file_len;
    report.copy = started.elapsed();
    let started = Instant::now();
    name(output, n_samples, observer)?;
    report.sync = started.elapsed();
    Ok(Written { report, file: Some(file) })
}

/// The options of the new pack, with its ids.
fn pack_options<D: AsRef<[u8]> + Send + Sync>(
    copier: &Copier<'_, D>,
    chunk_samples: u32,
    changes: Option<&Value>,
) -> Result<PackOptions, ConvertError> {
    let taken = copier.taken;
    let mut pack = PackOptions::new(copier.joined.schema.clone(), chunk_samples);
    for taken in taken {
        let part = taken.pack.part(0).map_err(|error| taken.located(error))?;
        pack.align_log2 = pack.align_log2.max(part.file.header().align_log2);
    }
    let settings = json!({"chunk": chunk_samples, "align": pack.align_log2});
    let parts = taken.iter().map(|taken| (taken.pack.pack_uuid(), taken.len(), taken.each()));
    (pack.dataset_uuid, pack.pack_uuid) = match taken {
        // A run can continue on the merged pack of a set, because it has the same id and the same order.
        [Taken { pack: set, samples: None, .. }]
            if changes.is_none() && set.manifest().is_some() && set.geometry().chunk_samples() == chunk_samples =>
        {
            (set.dataset_uuid(), set.pack_uuid())
        }
        _ => identity::of_parts(parts, changes, &settings, VERSION),
    };
    Ok(pack)
}

/// What `write` needs besides the samples.
struct Parts {
    pack: PackOptions,
    provenance: Value,
    labels: BTreeMap<String, LabelStats>,
}

/// Writes the pack. Also returns the size of the copied items, and a warning if the new pack lacks statistics that the
/// packs have.
fn write<D: AsRef<[u8]> + Send + Sync>(
    copier: &Copier<'_, D>,
    Parts { pack, provenance, labels }: Parts,
    output: &Output,
    options: &EditOptions,
    observer: &dyn Observer,
) -> Result<(NewFile, u64, Option<String>), ConvertError> {
    let pack_uuid = pack.pack_uuid;
    let (writer, totals) = copier.copy(pack, output, options.jobs, observer)?;
    let (stats, lost) = totals::stats(copier, &totals, labels)?;
    let classes = totals::classes(copier)?;
    let parts = FooterParts {
        stats: stats.clone(),
        classes: classes.clone(),
        provenance: provenance.to_string(),
        paths: paths(copier.taken)?,
    };
    let (_, summary) = writer.finish(parts).map_err(|error| crate::convert::write_error(output, error))?;
    Ok((NewFile { pack_uuid, summary, stats, classes }, totals.body_bytes, lost))
}

/// The paths of all taken samples. Empty if no pack has paths. Samples of packs without paths get empty ones.
fn paths<D: AsRef<[u8]>>(taken: &[Taken<'_, D>]) -> Result<Paths, ConvertError> {
    let mut paths = Paths::default();
    if !taken.iter().any(|taken| taken.pack.has_paths()) {
        return Ok(paths);
    }
    for taken in taken.iter().filter(|taken| taken.len() > 0) {
        let known = KnownPaths::of(taken)?;
        for sample in taken.each() {
            paths.push(known.path(sample)).map_err(ConvertError::Format)?;
        }
    }
    Ok(paths)
}

/// The paths of a pack's samples, in memory, because reading them one by one would decompress a group for each.
pub(crate) struct KnownPaths {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KnownPaths {
    pub(crate) fn of<D: AsRef<[u8]>>(taken: &Taken<'_, D>) -> Result<Self, ConvertError> {
        let mut known = Self { bytes: Vec::new(), ends: Vec::new() };
        let read = taken.pack.for_each_path_with(among(taken.samples), |sample, path| {
            // Samples of other shards are not read.
            known.ends.resize(to_usize(sample), known.bytes.len());
            known.bytes.extend_from_slice(path);
            known.ends.push(known.bytes.len());
            Ok::<_, FormatError>(())
        });
        read.map_err(|error| taken.located(error)).map(|()| known)
    }

    /// The paths by which the rows of a table are matched. It is an error if the pack has none.
    fn for_table<D: AsRef<[u8]>>(taken: &Taken<'_, D>) -> Result<Self, ConvertError> {
        if taken.pack.has_paths() {
            return Self::of(taken);
        }
        let hint = "use a column `sample` with the numbers of the samples instead of `path`";
        Err(ConvertError::options(format!("{}: the pack has no paths", taken.path.display()), hint))
    }

    /// The path of a sample. Empty if the pack has no paths.
    pub(crate) fn path(&self, sample: u64) -> &[u8] {
        let place = usize::try_from(sample).ok();
        let end = place.and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        let start = place.and_then(|i| self.ends.get(i.checked_sub(1)?)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or(&[])
    }
}

/// The JSON of the PROVENANCE section: the command, and where the samples come from.
fn provenance<D: AsRef<[u8]>>(taken: &[Taken<'_, D>], command: Edit, how: &Value) -> Result<Value, ConvertError> {
    /// Maximum length of the provenance of all packs together. Beyond it, the provenance of a pack is left out, because
    /// the size of the section is limited.
    const MAX_BYTES: usize = 8 << 20;
    let mut room = MAX_BYTES;
    let mut origins = Vec::new();
    for taken in taken {
        let mut origin = json!({
            "pack_uuid": taken.pack.pack_uuid().to_string(),
            "dataset_uuid": taken.pack.dataset_uuid().to_string(),
            "n_samples": taken.pack.n_samples(),
            "n_taken": taken.len(),
        });
        let text = taken.pack.provenance().map_err(|error| taken.located(error))?;
        if let Some(left) = room.checked_sub(text.len()) {
            room = left;
            origin["provenance"] = serde_json::from_str(&text).unwrap_or_default();
        }
        let shards = shard_origins(taken, &text, &mut room)?;
        if !shards.is_empty() {
            origin["shards"] = shards.into();
        }
        origins.push(origin);
    }
    let tool = format!("packds {VERSION}");
    Ok(json!({"tool": tool, "edit": {"command": command.name(), "options": how}, "origins": origins}))
}

/// Where the samples of a set come from: the shards with taken samples whose provenance is not that of the set. Shards
/// with the same provenance are mentioned once.
fn shard_origins<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    of_set: &str,
    room: &mut usize,
) -> Result<Vec<Value>, ConvertError> {
    let Some(manifest) = taken.pack.manifest() else { return Ok(Vec::new()) };
    let mut seen = BTreeSet::from([of_set.to_owned()]);
    let mut origins = Vec::new();
    let has = among(taken.samples);
    let mut first = 0;
    for (number, entry) in manifest.shards.iter().enumerate() {
        let samples = first..first + entry.n_samples;
        first = samples.end;
        if !has(samples) {
            continue;
        }
        let part = taken.pack.part(number).map_err(|error| taken.located(error))?;
        let text = part.file.provenance().map_err(|error| taken.located(error))?;
        if let Some(left) = room.checked_sub(text.len())
            && seen.insert(text.clone())
        {
            *room = left;
            origins.push(json!({
                "pack_uuid": entry.pack_uuid.to_string(),
                "n_samples": entry.n_samples,
                "provenance": serde_json::from_str::<Value>(&text).unwrap_or_default(),
            }));
        }
    }
    Ok(origins)
}
