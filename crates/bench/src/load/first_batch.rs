//! Times the first batch of an uncached pack, alongside reading its samples directly.

use std::time::Instant;

use packds_reader::Access;
use packds_reader::plan::Last;
use serde::Serialize;

use super::limit::DirectRead;
use super::{Bench, cache};
use crate::BenchError;
use crate::measure::Pairs;

/// Number of pairs of runs, after one warm-up pair.
const PAIRS: usize = 7;

/// The time to the first batch of an uncached pack, for one access path.
#[derive(Debug, Clone, Serialize)]
pub struct FirstBatch {
    /// `mapped` or `direct`.
    pub access: &'static str,
    /// Median milliseconds from opening the pack to the first batch.
    pub ms: f64,
    /// Median milliseconds for io_uring to read the samples' bytes, bypassing the page cache.
    pub limit_ms: f64,
    /// Median over the pairs of (limit's time / our time).
    pub ratio: f64,
    /// The smallest and the largest ratio.
    pub ratio_range: (f64, f64),
}

/// Times both access paths, each alternating with its limit. Empty unless the pack is read cold.
pub(super) fn run(bench: &Bench<'_>, progress: &mut dyn FnMut(&str)) -> Result<Vec<FirstBatch>, BenchError> {
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
        // Pages that are mapped cannot be dropped from the page cache, so the pack must not be open here.
        cache::drop_all(&cache::pack_files(bench.path)?)?;
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
