//! The first batch of a pack that is not in memory, beside reading the bytes of its samples directly.

use std::time::Instant;

use packds_reader::Access;
use packds_reader::plan::Last;
use serde::Serialize;

use super::limit::DirectRead;
use super::{Bench, cache};
use crate::BenchError;
use crate::measure::Pairs;

/// Pairs of runs; one before them warms up what is not the disk.
const PAIRS: usize = 7;

/// How long the first batch takes from a cold disk, with one way to read the pack.
#[derive(Debug, Clone, Serialize)]
pub struct FirstBatch {
    /// `mapped` or `direct`.
    pub access: &'static str,
    /// Milliseconds from opening the pack to the first batch: median.
    pub ms: f64,
    /// Milliseconds that io_uring takes to read the bytes of its samples past the page cache: median.
    pub limit_ms: f64,
    /// Median over the pairs of (limit's time / our time).
    pub ratio: f64,
    /// The smallest and the largest of these.
    pub ratio_range: (f64, f64),
}

/// Times both ways to read, each in turn with its limit; neither unless the pack is to be read cold.
pub(super) fn run(
    bench: &Bench<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<FirstBatch>, BenchError> {
    if !bench.options.cold {
        return Ok(Vec::new());
    }
    let ways = [("mapped", Access::Mapped), ("direct", Access::Direct)];
    let mut found = Vec::with_capacity(ways.len());
    for (name, access) in ways {
        progress(&format!("first batches from a cold disk, {name}"));
        let pairs = pairs(bench, access)?;
        found.push(FirstBatch {
            access: name,
            ms: pairs.ours() * 1e3,
            limit_ms: pairs.limit() * 1e3,
            ratio: pairs.ratio(),
            ratio_range: pairs.range(),
        });
    }
    Ok(found)
}

fn pairs(bench: &Bench<'_>, access: Access) -> Result<Pairs, BenchError> {
    let mut pairs = Pairs::default();
    for pair in 0..=PAIRS {
        let limit = {
            let loader = bench.loader(packds_reader::open(bench.path)?, Last::Drop, access)?;
            let read = DirectRead::new(&loader)?;
            let requests = read.of_samples(0, 1)?;
            read.time(&requests)?
        };
        // What a map shows stays in memory: nothing of the pack is open here.
        cache::drop_from(&packds_reader::open(bench.path)?)?;
        let started = Instant::now();
        let loader = bench.loader(packds_reader::open(bench.path)?, Last::Drop, access)?;
        let mut epoch = loader.epoch(0)?;
        if let Some(batch) = epoch.next() {
            drop(batch?);
        }
        let ours = started.elapsed();
        if pair > 0 {
            pairs.push(ours, limit);
        }
    }
    Ok(pairs)
}
