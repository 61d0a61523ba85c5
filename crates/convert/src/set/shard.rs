//! Writes one pack as shards of a set.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use packds_format::{Classes, Manifest, Pack, ShardEntry, Stats, Uuid, WriteSummary};
use packds_system::{open_regular, to_u64, to_usize};
use serde_json::json;

use super::Added;
use super::leftovers::APPENDING;
use crate::edit::{Changes, Edit, Taken, edit_as, joined_schema};
use crate::error::ConvertError;
use crate::options::{AppendOptions, EditOptions};
use crate::output::Output;
use crate::pipeline::{Observer, Phase, Progress};

/// Bytes that are copied before the user may stop.
const PIECE_BYTES: u64 = 64 << 20;
/// Bytes of two files that are compared at a time.
const COMPARED_BYTES: usize = 1 << 20;
/// Bytes of the trailer, which differ between any two packs.
const TRAILER_BYTES: u64 = 64;

/// What to do if a pack does not fit.
pub(super) const MERGE: &str = "`packds merge` makes one pack of the set and this pack";

/// What a manifest says about a shard, and what it needs to sum up.
pub(super) type Summary = (ShardEntry, Vec<Classes>, Stats);

/// A pack to add to a set.
pub(super) struct Shard<'a, D> {
    pub(super) folder: &'a Path,
    pub(super) taken: &'a Taken<'a, D>,
    /// The set, if it exists, and the packs that were added before. Together they have the classes of the set.
    pub(super) before: Vec<(&'a Pack<D>, &'a Path)>,
}

impl<D: AsRef<[u8]> + Send + Sync> Shard<'_, D> {
    /// Copies the pack, or writes it again to fit the set. A dry run has no summaries.
    pub(super) fn write(
        &self,
        manifest: &Manifest,
        options: &AppendOptions,
        observer: &dyn Observer,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<(Added, Option<Summary>)>, ConvertError> {
        let pack = self.taken.pack;
        if pack.n_samples() == 0 {
            return Err(ConvertError::contradictory(self.taken.path, "", "the pack has no samples", "leave it out"));
        }
        match pack.one() {
            Some(file) if self.fits(manifest)? => {
                let entry = ShardEntry::of(file_name(pack.pack_uuid(), file.trailer().footer_crc32c), file)
                    .map_err(|error| self.taken.located(error))?;
                let added = Added {
                    source: self.taken.path.to_owned(),
                    path: Some(entry.path.clone()),
                    n_samples: entry.n_samples,
                    bytes: entry.bytes,
                    is_copy: true,
                    was_there: false,
                };
                if options.dry_run {
                    return Ok(vec![(added, None)]);
                }
                let was_there = self.copy(&entry, observer)?;
                Ok(vec![(Added { was_there, ..added }, Some(self.summary(entry)?))])
            }
            _ => self.write_again(manifest, options, observer, warnings).map(|added| vec![added]),
        }
    }

    fn summary(&self, entry: ShardEntry) -> Result<Summary, ConvertError> {
        let located = |error| self.taken.located(error);
        let pack = self.taken.pack;
        Ok((entry, pack.classes().map_err(located)?, pack.stats().map_err(located)?))
    }

    /// Whether the pack can be a shard as it is: the same fields, chunks and class ids.
    fn fits(&self, manifest: &Manifest) -> Result<bool, ConvertError> {
        let pack = self.taken.pack;
        let classes = pack.classes().map_err(|error| self.taken.located(error))?;
        let is_first = manifest.shards.is_empty();
        Ok(*pack.schema() == manifest.schema
            && pack.geometry().chunk_samples() == manifest.chunk_samples
            && pack.has_paths() == manifest.has_paths
            && (is_first || have_same_ids(&classes, &manifest.classes)))
    }

    /// Copies the file. The system shares or copies the bytes without passing them through this process, if it can. No
    /// manifest names the shard yet, so a file that an interrupted append left is replaced, unless it has the same bytes:
    /// then returns true.
    fn copy(&self, entry: &ShardEntry, observer: &dyn Observer) -> Result<bool, ConvertError> {
        let (source, target) = (self.taken.path, self.folder.join(&entry.path));
        let failed = |error| ConvertError::io(source)(error);
        let from = open_regular(source).map_err(failed)?;
        let is_left = target.exists();
        if is_left && same_bytes(&from, &target, observer)? {
            return Ok(true);
        }
        let trailer = self.taken.pack.one().and_then(|file| file.bytes_unchecked().last_chunk::<64>().copied());
        let output = Output::create(&target, is_left)?;
        let mut left = entry.bytes;
        while left > 0 {
            observer.check()?;
            let done = entry.bytes - left;
            let samples = packds_system::share(entry.n_samples, done, entry.bytes);
            observer.progress(Progress { samples, total: entry.n_samples, bytes_in: 0, phase: Phase::Copy });
            let n = io::copy(&mut (&from).take(left.min(PIECE_BYTES)), &mut output.file());
            let n = n.map_err(ConvertError::io(&target))?;
            if n == 0 {
                return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was truncated meanwhile")));
            }
            left -= n;
        }
        if trailer.map(|trailer| trailer.to_vec()) != Some(end_of(output.file()).map_err(failed)?.1) {
            return Err(failed(io::Error::other("the file was replaced meanwhile")));
        }
        crate::convert::name(output, entry.n_samples, observer)?;
        Ok(false)
    }

    /// Writes the pack with the class ids and the chunks of the set.
    fn write_again(
        &self,
        manifest: &Manifest,
        options: &AppendOptions,
        observer: &dyn Observer,
        warnings: &mut Vec<String>,
    ) -> Result<(Added, Option<Summary>), ConvertError> {
        let taken = self.taken;
        if taken.pack.has_paths() && !manifest.has_paths {
            let reason = "the samples have paths, but those of the set have none";
            return Err(ConvertError::contradictory(taken.path, "", reason, MERGE));
        }
        self.check_schema(manifest)?;
        let both = self.with_set();
        // The name of the shard contains a checksum that is known only when it is complete.
        let target = |uuid: Uuid| self.folder.join(format!("{APPENDING}{uuid}.pack"));
        let chunk_samples = Some(manifest.chunk_samples);
        // What a killed append left behind is replaced.
        let options = EditOptions { dry_run: options.dry_run, chunk_samples, jobs: options.jobs, force: true };
        let written = edit_as(&both, (Edit::Append, &json!({}), &Changes::default()), &target, &options, observer)?;
        let report = written.report;
        warnings.extend(report.warnings);
        let summary = written.file.map(|file| {
            let entry = ShardEntry { origin: Some(origin_of(self.taken)), ..entry_of(file.pack_uuid, &file.summary) };
            let place = self.folder.join(&entry.path);
            std::fs::rename(target(file.pack_uuid), &place).map_err(ConvertError::io(&place))?;
            Ok::<_, ConvertError>((entry, file.classes, file.stats))
        });
        let summary: Option<Summary> = summary.transpose()?;
        let added = Added {
            source: taken.path.to_owned(),
            path: summary.as_ref().map(|(entry, ..)| entry.path.clone()),
            n_samples: report.n_samples,
            bytes: if options.dry_run { report.bytes_copied } else { report.bytes_out },
            is_copy: false,
            was_there: false,
        };
        Ok((added, summary))
    }

    /// Checks that the classes of the pack have room in the label sets of the set.
    fn check_schema(&self, manifest: &Manifest) -> Result<(), ConvertError> {
        if joined_schema(&self.with_set())? == manifest.schema {
            return Ok(());
        }
        let reason = "the label sets of the set have no room for the new classes of this pack";
        Err(ConvertError::contradictory(self.taken.path, "", reason, MERGE))
    }

    /// All samples of the pack. Of the set, no samples are taken, only its fields and classes.
    fn with_set(&self) -> Vec<Taken<'_, D>> {
        let before = self.before.iter().map(|(pack, path)| Taken { pack, path, samples: Some(&[]) });
        before.chain([Taken { pack: self.taken.pack, path: self.taken.path, samples: None }]).collect()
    }
}

/// Identifies a pack and, for a set, each of its shards.
pub(super) fn origins_of<D: AsRef<[u8]>>(taken: &Taken<'_, D>) -> Vec<String> {
    let shards = taken.pack.manifest().map_or(&[][..], |manifest| &manifest.shards);
    let shards = shards.iter().flat_map(origins_of_shard);
    shards.chain([origin_of(taken)]).collect()
}

/// Identifies a shard, and the pack that it was made from.
pub(super) fn origins_of_shard(shard: &ShardEntry) -> Vec<String> {
    let own = [shard.path.clone(), file_name(shard.pack_uuid, shard.footer_crc32c)];
    // A shard that was joined from several has the origins of all.
    let origins = shard.origin.iter().flat_map(|origins| origins.split(' ').map(str::to_owned));
    own.into_iter().chain(origins).collect()
}

/// Identifies a pack: the file name that it has as a shard, or the id of a version of a set.
pub(super) fn origin_of<D: AsRef<[u8]>>(taken: &Taken<'_, D>) -> String {
    let uuid = taken.pack.pack_uuid();
    taken.pack.one().map_or_else(|| uuid.to_string(), |file| file_name(uuid, file.trailer().footer_crc32c))
}

/// The entry of a shard that was just written.
pub(super) fn entry_of(pack_uuid: Uuid, summary: &WriteSummary) -> ShardEntry {
    ShardEntry {
        path: file_name(pack_uuid, summary.footer_crc32c),
        n_samples: summary.n_samples,
        bytes: summary.file_len,
        pack_uuid,
        footer_crc32c: summary.footer_crc32c,
        body_bytes: summary.body_bytes,
        largest_chunk: summary.largest_chunk,
        origin: None,
    }
}

/// The file name of a shard. The checksum tells packs apart whose writer gave them the same id.
pub(crate) fn file_name(uuid: Uuid, footer_crc32c: u32) -> String {
    format!("{uuid}-{footer_crc32c:08x}.pack")
}

/// Whether each class has the same id in both lists. One list may have more classes.
fn have_same_ids(own: &[Classes], of_set: &[Classes]) -> bool {
    let same = |one: &Classes| {
        let Some(other) = of_set.iter().find(|other| other.field == one.field) else { return false };
        let n = one.names.len().min(other.names.len());
        n > 0 && one.names.get(..n) == other.names.get(..n)
    };
    own.len() == of_set.len() && own.iter().all(same)
}

/// Whether two files have the same bytes.
fn same_bytes(one: &File, other: &Path, observer: &dyn Observer) -> Result<bool, ConvertError> {
    let failed = |error| ConvertError::io(other)(error);
    let theirs = open_regular(other).map_err(failed)?;
    let (mut at, len) = (0, one.metadata().map_err(failed)?.len());
    if theirs.metadata().map_err(failed)?.len() != len {
        return Ok(false);
    }
    let mut pieces = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
    while at < len {
        observer.check()?;
        let n = to_usize(len - at).min(COMPARED_BYTES);
        for (file, piece) in [one, &theirs].into_iter().zip(&mut pieces) {
            file.read_exact_at(&mut piece[..n], at).map_err(failed)?;
        }
        let [one, theirs] = &pieces;
        if one[..n] != theirs[..n] {
            return Ok(false);
        }
        at += to_u64(n);
    }
    Ok(true)
}

/// The length and the trailer of a file.
fn end_of(file: &File) -> io::Result<(u64, Vec<u8>)> {
    let len = file.metadata()?.len();
    let mut trailer = vec![0; to_usize(TRAILER_BYTES.min(len))];
    file.read_exact_at(&mut trailer, len.saturating_sub(TRAILER_BYTES))?;
    Ok((len, trailer))
}
