//! Writes the shards of a conversion, one after the other. Every shard but the last consists of full chunks, so the set
//! has the chunks of the single pack that the conversion would write.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use packds_format::{Block, Manifest, Schema, ShardEntry, Stats, Uuid, WriteSummary};
use packds_system::{counted, to_u64};
use serde_json::Map;

use super::shard::{entry_of, file_name};
use super::totals;
use crate::convert::{Identity, bad_samples};
use crate::error::ConvertError;
use crate::identity;
use crate::open_pack::{Finished, OpenPack, Origin};
use crate::opt::{CHUNK, SHARD_SIZE, SHARDS};
use crate::pipeline::Findings;
use crate::provenance::{Found, provenance};

/// When a shard is complete. It always has at least one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardRule {
    /// The samples are divided evenly among this many shards, or fewer if there are not enough chunks.
    Count(u64),
    /// A shard has at most about this many bytes.
    Bytes(u64),
}

impl ShardRule {
    /// The number of shards of `n_chunks` chunks, if all chunks have this size.
    pub(crate) fn n_shards(self, n_chunks: u64, chunk_bytes: u64) -> u64 {
        match self {
            Self::Count(n) => n.min(n_chunks).max(1),
            Self::Bytes(most) => n_chunks.div_ceil((most / chunk_bytes.max(1)).max(1)),
        }
    }
}

/// The number of chunks of a shard, if chunks are divided evenly. The first shards have one more than the others.
pub(crate) fn chunks_of_shard(shard: u64, n_shards: u64, n_chunks: u64) -> u64 {
    n_chunks / n_shards + u64::from(shard < n_chunks % n_shards)
}

/// The shards of a conversion.
pub(crate) struct Shards<'a> {
    from: Origin<'a>,
    folder: &'a Path,
    rule: ShardRule,
    /// What identifies the single pack.
    identity: &'a Identity,
    open: Option<OpenPack<'a>>,
    manifest: Manifest,
    warnings: Vec<String>,
    write_time: Duration,
    n_chunks: u64,
}

/// What a conversion wrote.
pub(crate) struct AllShards {
    pub(crate) stats: Stats,
    pub(crate) n_shards: u64,
    pub(crate) summary: WriteSummary,
    pub(crate) warnings: Vec<String>,
    pub(crate) write_time: Duration,
}

impl AllShards {
    /// A single pack.
    pub(crate) fn one(file: Finished) -> Self {
        let Finished { summary, stats, write_time, .. } = file;
        Self { stats, n_shards: 1, summary, warnings: Vec::new(), write_time }
    }
}

impl<'a> Shards<'a> {
    /// Writes to `folder`.
    pub(crate) fn new(from: Origin<'a>, folder: &'a Path, rule: ShardRule, identity: &'a Identity) -> Self {
        let pack = &from.plan.pack;
        let manifest = first_manifest(pack.schema.clone(), pack.chunk_samples, identity);
        let (warnings, write_time) = (Vec::new(), Duration::ZERO);
        Self { from, folder, rule, identity, open: None, manifest, warnings, write_time, n_chunks: 0 }
    }

    /// Appends a block, to a new shard if the current one is complete.
    pub(crate) fn append(
        &mut self,
        block: Block,
        ids: &[usize],
        findings: &Findings,
    ) -> Result<Option<Block>, ConvertError> {
        if self.open.as_ref().is_some_and(|open| self.is_complete(open)) {
            self.close()?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let uuid = self.shard_uuid();
                let path = self.folder.join(working_name(uuid));
                let file = File::create_new(&path).map_err(ConvertError::io(&path))?;
                let open = OpenPack::with_id(self.from, file, self.identity, uuid);
                self.open.insert(open.map_err(ConvertError::Format)?)
            }
        };
        open.append(block, ids, findings).map_err(|error| written(self.folder, error))
    }

    fn shard_uuid(&self) -> Uuid {
        identity::of_shard(self.identity.pack_uuid, to_u64(self.manifest.shards.len()))
    }

    fn is_complete(&self, open: &OpenPack<'_>) -> bool {
        let chunk_samples = u64::from(self.manifest.chunk_samples);
        if !open.n_samples().is_multiple_of(chunk_samples) {
            return false;
        }
        let n_chunks = open.n_samples() / chunk_samples;
        match self.rule {
            rule @ ShardRule::Count(_) => {
                let all = to_u64(self.from.listing.len()).div_ceil(chunk_samples);
                n_chunks >= chunks_of_shard(to_u64(self.manifest.shards.len()), rule.n_shards(all, 0), all)
            }
            // The next chunk is expected to have the mean size.
            ShardRule::Bytes(most) => open.bytes().saturating_add(open.bytes() / n_chunks.max(1)) > most,
        }
    }

    fn close(&mut self) -> Result<(), ConvertError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let uuid = self.shard_uuid();
        let done = open.finish(None).map_err(|error| written(self.folder, error))?;
        let entry: ShardEntry = entry_of(uuid, &done.summary);
        let (from, to) = (self.folder.join(working_name(uuid)), self.folder.join(&entry.path));
        std::fs::rename(&from, &to).map_err(ConvertError::io(&to))?;
        self.write_time += done.write_time;
        self.n_chunks += done.summary.n_chunks;
        totals::add(&mut self.manifest, entry, &done.classes, &done.stats, &mut self.warnings);
        Ok(())
    }

    /// A warning if the shards are not as many or as small as requested.
    fn other_size(&self) -> Option<String> {
        let shards = &self.manifest.shards;
        let chunk_samples = self.manifest.chunk_samples;
        let (option, found) = match self.rule {
            ShardRule::Count(n) if to_u64(shards.len()) < n => {
                (SHARDS.with(n).to_string(), format!("the set has {}", counted(shards.len(), "shard")))
            }
            ShardRule::Bytes(most) if shards.iter().any(|shard| shard.largest_chunk > most) => {
                let bytes = shards.iter().map(|shard| shard.bytes).max().unwrap_or(0);
                (SHARD_SIZE.with(most).to_string(), format!("the largest shard has {bytes} bytes"))
            }
            _ => return None,
        };
        let why = format!("a shard has whole chunks of {}", counted(chunk_samples, "sample"));
        Some(format!("{option}: {found}, because {why}; {CHUNK} makes chunks smaller"))
    }

    /// Completes the last shard and writes the manifest. The bad samples are known only now, so its provenance lists all.
    pub(crate) fn finish(mut self, findings: &Findings) -> Result<AllShards, ConvertError> {
        self.close()?;
        let (skipped, substituted) = bad_samples(self.from.listing, findings, self.from.options);
        self.manifest.provenance = provenance(&self.identity.origin, &Found::of(findings, &skipped, &substituted));
        let path = self.folder.join(packds_format::manifest_name(1));
        let bytes = self.manifest.to_bytes().map_err(ConvertError::Format)?;
        std::fs::write(&path, &bytes).map_err(ConvertError::io(&path))?;
        self.warnings.extend(self.other_size());
        let shards = &self.manifest.shards;
        let sum = |of: fn(&ShardEntry) -> u64| shards.iter().map(of).sum::<u64>();
        let summary = WriteSummary::of_shards(sum(|s| s.n_samples), self.n_chunks, sum(|s| s.bytes));
        Ok(AllShards {
            n_shards: to_u64(shards.len()),
            summary,
            stats: self.manifest.stats,
            warnings: self.warnings,
            write_time: self.write_time,
        })
    }
}

/// The first version of the manifest of a converted set, without shards.
pub(crate) fn first_manifest(schema: Schema, chunk_samples: u32, identity: &Identity) -> Manifest {
    Manifest {
        version: 1,
        parent: None,
        pack_uuid: identity.pack_uuid,
        dataset_uuid: identity.dataset_uuid,
        chunk_samples,
        schema,
        has_paths: true,
        shards: Vec::new(),
        stats: Stats::default(),
        classes: Vec::new(),
        provenance: Map::new(),
    }
}

/// The name of a shard until it is complete.
fn working_name(uuid: Uuid) -> String {
    file_name(uuid, 0)
}

fn written(folder: &Path, error: packds_format::FormatError) -> ConvertError {
    match error {
        packds_format::FormatError::Io(source) => ConvertError::Io { path: folder.to_owned(), source },
        other => ConvertError::Format(other),
    }
}
