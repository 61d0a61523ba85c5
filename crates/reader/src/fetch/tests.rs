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

/// A pack of `n` raw samples of 224 x 224 x 3 bytes in chunks of 64.
fn large_pack(path: &Path, n: u32) {
    use packds_format::{
        BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema,
    };
    let crc = Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c);
    let fields = vec![Field::tensor("image", DType::U8, &[224, 224, 3]), crc];
    let file = std::fs::File::create(path).unwrap();
    let options = PackOptions::new(Schema::new(fields).unwrap(), 64);
    let mut writer = PackWriter::new(std::io::BufWriter::new(file), options).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        let item = block.tensor_mut(0).unwrap();
        for (word, i) in item.chunks_exact_mut(8).zip(0_u64..) {
            let value = packds_format::mix64(i ^ (u64::from(sample) << 32));
            word.copy_from_slice(&value.to_le_bytes());
        }
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    writer.finish(FooterParts::default()).unwrap();
}

#[test]
#[ignore = "a measurement: writes 1 GB and takes half a minute; run it with --release"]
fn how_fast_steps_are_copied_out_of_the_map() {
    use rustix::fs::{Advice, fadvise};
    use std::time::Instant;
    let folder = tempfile::TempDir::new_in("/var/tmp").unwrap();
    let path = folder.path().join("a.pack");
    large_pack(&path, 7000);
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let mut slot = vec![0_u8; 256 * 224 * 224 * 3];
    let drop_cache = || {
        let file = std::fs::File::open(&path).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    };
    for round in 0..3 {
        for (order, cold) in [
            (Order::Window { chunks: None }, false),
            (Order::Random, false),
            (Order::Window { chunks: None }, true),
            (Order::Random, true),
        ] {
            for checksums in [Checksums::Off, Checksums::FirstTouch] {
                if cold {
                    drop_cache();
                }
                let pack = Arc::new(open(&path).unwrap());
                let fetch = Fetch::new(Arc::clone(&pack), options(&pack, checksums)).unwrap();
                let plan = plan(&pack, order, 256);
                for epoch_number in 0..3 {
                    let start = Instant::now();
                    let epoch = fetch.start(Arc::clone(&plan), 0).unwrap();
                    let mut first = None;
                    for step in 0..plan.steps() {
                        let items = epoch.step(step).unwrap();
                        let mut scratch = Vec::new();
                        let out = slot.chunks_exact_mut(224 * 224 * 3);
                        for (slot, out) in plan.batch(step).zip(out) {
                            let item = items.item(0, slot.sample, &mut scratch).unwrap();
                            out.copy_from_slice(item);
                        }
                        items.still_good().unwrap();
                        first.get_or_insert_with(|| start.elapsed());
                    }
                    let seconds = start.elapsed().as_secs_f64();
                    println!(
                        "{round} {order:?} cold {cold} {checksums:?} epoch {epoch_number}: {:.2} GB/s, first {:?} {:?}",
                        1e-9 * f64::from(7000 * 224 * 224 * 3) / seconds,
                        first.unwrap(),
                        epoch.stats()
                    );
                }
            }
        }
        let pack = open(&path).unwrap();
        let items = slot.len();
        let start = Instant::now();
        let body = &pack.bytes()[8192..][..7000 * 224 * 224 * 3];
        for block in body.chunks_exact(items) {
            slot.copy_from_slice(block);
        }
        let map = start.elapsed().as_secs_f64();
        let start = Instant::now();
        for block in body.chunks_exact(items) {
            slot.copy_from_slice(block);
        }
        let again = start.elapsed().as_secs_f64();
        let bytes = 1e-9 * body.len() as f64;
        println!(
            "plain memcpy of a fresh map {:.2} GB/s, again {:.2}",
            bytes / map,
            bytes / again
        );
    }
}
