//! A pack file that a conversion is writing, with what its footer will contain.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use packds_format::{Block, Classes, FooterParts, FormatError, PackWriter, Paths, Stats, Uuid, WriteSummary};
use packds_system::to_u64;
use serde_json::Value;

use crate::convert::{Identity, bad_samples};
use crate::options::ConvertOptions;
use crate::pipeline::Findings;
use crate::plan::Plan;
use crate::provenance::{Found, provenance};
use crate::source::Listing;

/// Bytes per write call. Passing whole blocks made writing up to twice as slow with a single decoding thread; the cause
/// is unknown.
const WRITE_BYTES: usize = 128 << 10;

/// What the samples of a file come from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) options: &'a ConvertOptions,
    pub(crate) plan: &'a Plan,
}

/// A pack file that is being written.
pub(crate) struct OpenPack<'a> {
    from: Origin<'a>,
    identity: &'a Identity,
    writer: PackWriter<Timed>,
    /// The samples, by their numbers in the listing.
    ids: Vec<usize>,
    paths: Paths,
    /// Findings of this file alone.
    findings: Findings,
}

/// A finished file.
pub(crate) struct Finished {
    pub(crate) summary: WriteSummary,
    pub(crate) stats: Stats,
    pub(crate) classes: Vec<Classes>,
    /// Time spent in write calls.
    pub(crate) write_time: Duration,
}

impl<'a> OpenPack<'a> {
    pub(crate) fn new(from: Origin<'a>, file: File, identity: &'a Identity) -> Result<Self, FormatError> {
        Self::with_id(from, file, identity, identity.pack_uuid)
    }

    /// A file of several, with an id of its own.
    pub(crate) fn with_id(
        from: Origin<'a>,
        file: File,
        identity: &'a Identity,
        pack_uuid: Uuid,
    ) -> Result<Self, FormatError> {
        let target = Timed { file, time: Duration::ZERO };
        let mut pack = from.plan.pack.clone();
        (pack.dataset_uuid, pack.pack_uuid) = (identity.dataset_uuid, pack_uuid);
        Ok(Self {
            from,
            identity,
            writer: PackWriter::new(target, pack)?,
            ids: Vec::new(),
            paths: Paths::default(),
            findings: Findings::new(from.options.color().channels()),
        })
    }

    /// Appends the block with the samples `ids`. May return a block to be reused.
    pub(crate) fn append(
        &mut self,
        block: Block,
        ids: &[usize],
        findings: &Findings,
    ) -> Result<Option<Block>, FormatError> {
        let mut path = Vec::new();
        for &id in ids {
            path.clear();
            self.from.listing.path_into(id, &mut path);
            self.paths.push(&path)?;
        }
        self.ids.extend_from_slice(ids);
        self.findings.merge(findings, block.n_samples());
        self.writer.append(block)?;
        Ok(self.writer.reclaim())
    }

    /// Number of samples so far.
    pub(crate) fn n_samples(&self) -> u64 {
        to_u64(self.ids.len())
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.position()
    }

    /// Writes the footer. Empty statistics are left out. The provenance tells the findings in `all` samples, or those in
    /// the samples of this file.
    pub(crate) fn finish(self, all: Option<&Findings>) -> Result<Finished, FormatError> {
        let Origin { listing, options, plan } = self.from;
        let all = all.unwrap_or(&self.findings);
        let stats = crate::convert::stats(listing, plan, &self.findings, &self.ids, options);
        let classes = crate::convert::classes(listing, &self.ids);
        let (skipped, substituted) = bad_samples(listing, all, options);
        let provenance =
            Value::Object(provenance(&self.identity.origin, &Found::of(all, &skipped, &substituted))).to_string();
        let parts = FooterParts { stats: stats.clone(), classes: classes.clone(), provenance, paths: self.paths };
        let (target, summary) = self.writer.finish(parts)?;
        Ok(Finished { summary, stats, classes, write_time: target.time })
    }
}

struct Timed {
    file: File,
    time: Duration,
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let started = Instant::now();
        let result = self.file.write(bytes.get(..WRITE_BYTES).unwrap_or(bytes));
        self.time += started.elapsed();
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
