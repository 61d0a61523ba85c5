//! Tests of what is common to all ways of fetching.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Access, Checksums, Fetch, FetchOptions};
use crate::plan::{Batching, Dataset, EpochPlan, Last, Order, Ranks, Sampler};
use crate::{MappedPack, open};

pub(super) fn options(pack: &MappedPack, checksums: Checksums) -> FetchOptions {
    FetchOptions {
        access: Access::Mapped,
        checksums,
        memory_bytes: 64 << 20,
        budget: None,
        positions: (0..pack.schema().body().count()).collect(),
    }
}

/// The plan of an epoch of all samples in this order, in batches of `batch`, the last one filled up.
pub(super) fn plan(pack: &MappedPack, order: Order, batch: u32) -> Arc<EpochPlan> {
    let dataset = Dataset::new(*pack.geometry(), 1 << 20, &pack.header().pack_uuid.0);
    let sampler = Sampler::new(order).seed(7);
    let ranks = Ranks::new(0, 1).unwrap();
    let schedule = sampler
        .schedule(dataset, ranks, Batching::per_rank(batch).last(Last::Pad))
        .unwrap();
    Arc::new(schedule.epoch(0).unwrap())
}

pub(super) fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
    let mut packs: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "pack"))
        .collect();
    packs.sort();
    assert!(packs.len() > 20);
    packs
}

pub(super) const ORDERS: [Order; 4] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(3) },
];

#[test]
fn items_are_those_of_the_pack_in_every_order() {
    for path in golden() {
        let pack = Arc::new(open(&path).unwrap());
        if pack.n_samples() == 0 {
            continue;
        }
        let fields: Vec<usize> = pack.schema().body().map(|(number, _)| number).collect();
        for checksums in [Checksums::FirstTouch, Checksums::Always, Checksums::Off] {
            let fetch = Fetch::new(Arc::clone(&pack), options(&pack, checksums)).unwrap();
            for order in ORDERS {
                let plan = plan(&pack, order, 3);
                let epoch = fetch.start(Arc::clone(&plan), 0).unwrap();
                for step in 0..plan.steps() {
                    let items = epoch.step(step).unwrap();
                    let mut scratch = Vec::new();
                    for slot in plan.batch(step) {
                        for (position, field) in fields.iter().enumerate() {
                            let expected = pack.item(*field, slot.sample).unwrap();
                            let item = items.item(position, slot.sample, &mut scratch).unwrap();
                            assert_eq!(item, expected.as_ref(), "{} {order:?}", path.display());
                        }
                    }
                    items.still_good().unwrap();
                }
            }
        }
    }
}
