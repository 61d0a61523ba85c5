//! The route of a plan through the chunks of a set. Plans know only the chunks that the samples would have in one file.

use std::collections::BTreeMap;
use std::sync::Arc;

use packds_format::PackGeometry;

use super::epoch::ChunkUse;
use super::order::OrderKind;
use super::route::Route;

/// A route with the chunks of a set, whose shards may end in shorter chunks.
#[derive(Debug)]
pub(crate) struct StoredRoute {
    plan: Arc<dyn Route>,
    geometry: PackGeometry,
}

impl StoredRoute {
    /// The route itself if the stored chunks are those of the plan.
    pub(crate) fn of(plan: Arc<dyn Route>, geometry: &PackGeometry) -> Arc<dyn Route> {
        if geometry.is_merged() {
            return plan;
        }
        Arc::new(Self { plan, geometry: geometry.clone() })
    }
}

impl Route for StoredRoute {
    fn steps(&self) -> u64 {
        self.plan.steps()
    }

    fn samples_at(&self, step: u64) -> Vec<u64> {
        self.plan.samples_at(step)
    }

    fn chunk_uses(&self, step: u64) -> Vec<ChunkUse> {
        let planned: BTreeMap<u64, u64> =
            self.plan.chunk_uses(step).into_iter().map(|planned| (planned.chunk, planned.until)).collect();
        let merged = self.geometry.merged();
        let mut uses: Vec<ChunkUse> = Vec::new();
        let mut known: BTreeMap<u64, usize> = BTreeMap::new();
        for sample in self.samples_at(step) {
            let until = planned.get(&merged.locate(sample).0).copied().unwrap_or(step);
            let (chunk, _) = self.geometry.locate(sample);
            let place = *known.entry(chunk).or_insert_with(|| {
                uses.push(ChunkUse { chunk, until });
                uses.len() - 1
            });
            if let Some(seen) = uses.get_mut(place) {
                seen.until = seen.until.max(until);
            }
        }
        uses
    }

    fn order(&self) -> OrderKind {
        self.plan.order()
    }

    fn is_even(&self) -> bool {
        self.plan.is_even()
    }

    fn is_whole_from(&self, first_step: u64) -> bool {
        self.plan.is_whole_from(first_step)
    }
}
