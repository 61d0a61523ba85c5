//! Tests of behaviour that all kinds of fetching share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::{FormatError, Role};

use super::checks::Checks;
use super::mapped::MappedFetch;
use super::{Access, Checksums, Fetch, FetchOptions};
use crate::plan::{Batching, Dataset, EpochPlan, Last, Order, Ranks, Sampler};
use crate::{Pack, ReadError, open};

impl Fetch {
    pub(crate) fn new(pack: Arc<Pack>, options: FetchOptions) -> Result<Arc<Self>, ReadError> {
        let choice = super::choose(&pack, &options);
        Self::chosen(pack, options, choice)
    }
}

pub(super) fn options(pack: &Pack, checksums: Checksums) -> FetchOptions {
    FetchOptions {
        access: Access::Mapped,
        checksums,
        memory_bytes: 64 << 20,
        budget: None,
        beside: 0,
        positions: (0..pack.schema().body().count()).collect(),
    }
}

/// The plan of an epoch of all samples in this order, in batches of `batch` samples. The last batch is padded.
pub(super) fn plan(pack: &Pack, order: Order, batch: u32) -> Arc<EpochPlan> {
    let dataset = Dataset::new(pack.geometry().merged(), 1 << 20, &pack.pack_uuid().0);
    let sampler = Sampler::new(order).seed(7);
    let ranks = Ranks::new(0, 1).unwrap();
    let schedule = sampler.schedule(dataset, ranks, Batching::per_rank(batch).last(Last::Pad)).unwrap();
    Arc::new(schedule.epoch(0).unwrap())
}

pub(crate) fn golden() -> Vec<PathBuf> {
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

pub(super) const ORDERS: [Order; 4] =
    [Order::Sequential, Order::Random, Order::Chunks, Order::Window { chunks: Some(3) }];

#[test]
fn items_are_those_of_the_pack_in_every_order() {
    for path in golden() {
        let pack = Arc::new(open(&path).unwrap());
        if pack.n_samples() == 0 {
            continue;
        }
        let fields: Vec<usize> = pack.schema().body().map(|(number, _)| number).collect();
        for checksums in [Checksums::FirstTouch, Checksums::Always, Checksums::Off] {
            let mut options = options(&pack, checksums);
            options.access = if checksums == Checksums::Off { Access::Auto } else { Access::Mapped };
            let compressed = pack.schema().body().any(|(_, f)| !f.codec.is_none());
            let fetch = Fetch::new(Arc::clone(&pack), options.clone()).unwrap();
            let direct = compressed && options.access == Access::Auto;
            assert_eq!(fetch.report().access == Access::Direct, direct);
            for order in ORDERS {
                let plan = plan(&pack, order, 3);
                let epoch = fetch.start(plan.clone(), 0).unwrap();
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

#[test]
fn nothing_of_the_body_is_loaded_where_no_field_of_it_is_read() {
    for path in golden() {
        let pack = Arc::new(open(&path).unwrap());
        if pack.n_samples() == 0 || pack.schema().body().count() == 0 {
            continue;
        }
        for checksums in [Checksums::FirstTouch, Checksums::Always, Checksums::Off] {
            let needed = |positions: &[usize]| {
                let checks = Checks::new(&pack, checksums).unwrap();
                let fetch = MappedFetch::new(Arc::clone(&pack), checks, positions);
                fetch.unwrap().needed(0)
            };
            assert!(needed(&[]).is_empty(), "{} {checksums:?}", path.display());
            assert!(!needed(&[0]).is_empty());
        }
    }
}

/// A copy of a golden pack that a test can damage.
fn copy(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::TempDir::new().unwrap();
    let golden = golden().into_iter().find(|path| path.ends_with(name));
    let path = folder.path().join(name);
    std::fs::copy(golden.unwrap(), &path).unwrap();
    (folder, path)
}

fn flip(path: &Path, offset: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(offset).unwrap()] ^= 0x20;
    std::fs::write(path, bytes).unwrap();
}

/// The error of each sample's first item, if there is one.
fn errors(pack: &Arc<Pack>, checksums: Checksums) -> Vec<Option<ReadError>> {
    let fetch = Fetch::new(Arc::clone(pack), options(pack, checksums)).unwrap();
    let plan = plan(pack, Order::Sequential, 1);
    let epoch = fetch.start(plan.clone(), 0).unwrap();
    let item = |sample| {
        let step = epoch.step(sample).unwrap();
        step.item(0, sample, &mut Vec::new()).err()
    };
    (0..pack.n_samples()).map(item).collect()
}

#[test]
fn a_flipped_bit_is_found_under_each_policy_that_checks() {
    for name in [
        "full_footer.pack",
        "strided_one_field.pack",
        "several_fields.pack",
        "encoded_images.pack",
        "zstd_hwc_rgb.pack",
    ] {
        let (_folder, path) = copy(name);
        let pack = open(&path).unwrap();
        let places = pack.sample_places(1).unwrap();
        let by_sample = pack.schema().by_role(Role::SampleCrc32c, None).is_some();
        let compressed = pack.schema().body().any(|(_, field)| !field.codec.is_none());
        drop(pack);
        // The sample's checksum covers the bytes of all fields, not only of the fields that are read.
        flip(&path, places.last().unwrap().end - 1);
        let pack = Arc::new(open(&path).unwrap());
        for checksums in [Checksums::FirstTouch, Checksums::Always] {
            let errors = errors(&pack, checksums);
            match errors[1].as_ref().unwrap() {
                ReadError::Sample { sample: 1, chunk: 0, places: told, expected, found, .. } => {
                    assert!(by_sample && expected != found);
                    assert_eq!(*told, places);
                    assert!(errors[0].is_none() || compressed, "{name}");
                }
                ReadError::Format { source: FormatError::ChunkChecksum { chunk: 0, first_sample: 0, .. }, .. } => {
                    assert!(!by_sample || compressed, "{name}");
                }
                ReadError::Format { source: FormatError::BadBlock { .. }, .. } if compressed => {}
                other => panic!("{name}: {other}"),
            }
        }
        if !compressed {
            assert!(errors(&pack, Checksums::Off).iter().all(Option::is_none));
        }
    }
}

#[test]
fn an_error_names_file_sample_chunk_and_bytes() {
    let (_folder, path) = copy("full_footer.pack");
    let place = open(&path).unwrap().sample_places(1).unwrap()[0].clone();
    flip(&path, place.start);
    let pack = Arc::new(open(&path).unwrap());
    let error = errors(&pack, Checksums::FirstTouch).remove(1).unwrap();
    let start = format!(
        "{}: sample 1 (chunk 0): checksum mismatch in bytes {}..{}: expected 0x",
        path.display(),
        place.start,
        place.end
    );
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(error.is_data() && error.hint().is_some() && error.path() == path);
}

#[test]
fn samples_are_checked_once_or_always_or_never() {
    let (_folder, path) = copy("full_footer.pack");
    let pack = Arc::new(open(&path).unwrap());
    let n = pack.n_samples();
    for (checksums, expected) in [(Checksums::FirstTouch, n), (Checksums::Always, 3 * n), (Checksums::Off, 0)] {
        let fetch = Fetch::new(Arc::clone(&pack), options(&pack, checksums)).unwrap();
        for _ in 0..3 {
            let plan = plan(&pack, Order::Random, 1);
            let epoch = fetch.start(plan.clone(), 0).unwrap();
            for step in 0..plan.steps() {
                let items = epoch.step(step).unwrap();
                let sample = plan.batch(step).next().unwrap().sample;
                items.item(0, sample, &mut Vec::new()).unwrap();
            }
            let stats = epoch.stats();
            assert!(stats.samples_checked <= expected && stats.chunks_checked == 0);
        }
        let epoch = fetch.start(plan(&pack, Order::Random, 1), 0).unwrap();
        assert_eq!(epoch.stats().samples_checked, expected, "{checksums:?}");
    }
}

#[test]
fn runs_are_the_files_bytes_and_check_whole_chunks() {
    let (_folder, path) = copy("strided_one_field.pack");
    let pack = Arc::new(open(&path).unwrap());
    let fetch = Fetch::new(Arc::clone(&pack), options(&pack, Checksums::FirstTouch)).unwrap();
    let epoch = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap();
    let items = epoch.step(0).unwrap();
    let n = u32::try_from(pack.n_samples()).unwrap();
    let run = items.run(0, 0, n).unwrap().unwrap();
    let expected: Vec<u8> =
        (0..pack.n_samples()).flat_map(|sample| pack.item(0, sample).unwrap().into_owned()).collect();
    assert_eq!(run.as_ref(), expected);
    let stats = epoch.stats();
    assert_eq!((stats.chunks_checked, stats.samples_checked), (pack.n_chunks(), 0));
    // Samples that were verified with their chunk are not verified again.
    items.item(0, 1, &mut Vec::new()).unwrap();
    assert_eq!(epoch.stats(), stats);
    assert!(items.run(0, 1, n).unwrap().is_none());
    assert!(items.run(0, 0, 0).unwrap().is_none());
    drop((items, epoch, fetch));
    // The run keeps its memory alive.
    drop(pack);
    assert_eq!(run.clone().as_ref(), expected);
}

#[test]
fn what_was_bad_stays_bad_for_the_loader() {
    let (_folder, path) = copy("full_footer.pack");
    let at = open(&path).unwrap().sample_places(1).unwrap()[0].start;
    let write = |byte| {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[byte], at).unwrap();
    };
    let right = std::fs::read(&path).unwrap()[usize::try_from(at).unwrap()];
    write(!right);
    let pack = Arc::new(open(&path).unwrap());
    for checksums in [Checksums::FirstTouch, Checksums::Always] {
        write(!right);
        let pack = Arc::new(open(&path).unwrap());
        let fetch = Fetch::new(Arc::clone(&pack), options(&pack, checksums)).unwrap();
        let epoch = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap();
        let items = epoch.step(0).unwrap();
        items.item(0, 1, &mut Vec::new()).unwrap_err();
        write(right);
        let again = items.item(0, 1, &mut Vec::new()).unwrap_err();
        assert!(matches!(again, ReadError::Sample { expected, found, .. } if expected != found));
    }
    // A pack is rejected if its file was written to after it was opened.
    let fetch = Fetch::new(Arc::clone(&pack), options(&pack, Checksums::Off)).unwrap();
    let error = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap_err();
    assert!(matches!(error, ReadError::Modified { .. }) && error.is_data());
}

#[test]
fn a_damaged_column_of_checksums_is_refused() {
    let (_folder, path) = copy("full_footer.pack");
    let pack = open(&path).unwrap();
    let (number, _) = pack.schema().by_role(Role::SampleCrc32c, None).unwrap();
    let column = pack.one().unwrap().columns().iter().find(|entry| entry.field == number);
    flip(&path, column.unwrap().offset);
    let pack = Arc::new(open(&path).unwrap());
    let error = Fetch::new(Arc::clone(&pack), options(&pack, Checksums::FirstTouch)).unwrap_err();
    assert!(matches!(error, ReadError::Format { source: FormatError::ChecksumMismatch { .. }, .. }));
    Fetch::new(Arc::clone(&pack), options(&pack, Checksums::Off)).unwrap();
}

#[test]
fn fields_that_are_not_there_are_refused() {
    let (_folder, path) = copy("strided_one_field.pack");
    let pack = Arc::new(open(&path).unwrap());
    let mut options = options(&pack, Checksums::FirstTouch);
    options.positions = vec![0, 1];
    let error = Fetch::new(pack, options).unwrap_err();
    assert!(matches!(error, ReadError::Format { source: FormatError::OutOfRange { index: 1, .. }, .. }));
}

#[test]
fn a_file_cut_short_while_its_steps_are_read_is_an_error() {
    for checksums in [Checksums::Off, Checksums::FirstTouch] {
        for name in ["strided_one_field.pack", "encoded_images.pack", "zstd_text.pack"] {
            let (_folder, path) = copy(name);
            let pack = Arc::new(open(&path).unwrap());
            let fetch = Fetch::new(Arc::clone(&pack), options(&pack, checksums)).unwrap();
            let epoch = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap();
            let items = epoch.step(0).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(4096).unwrap();
            let item = items.item(0, 0, &mut Vec::new()).map(|_| ());
            let error = item.and_then(|()| items.still_good()).unwrap_err();
            let told = matches!(error, ReadError::Changed { found: 4096, .. } | ReadError::Format { .. });
            assert!(told, "{name} {error}");
            let error = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap_err();
            assert!(matches!(error, ReadError::Changed { found: 4096, .. }));
        }
    }
}

#[test]
fn a_stopped_epoch_says_so() {
    let (_folder, path) = copy("strided_one_field.pack");
    let pack = Arc::new(open(&path).unwrap());
    let fetch = Fetch::new(Arc::clone(&pack), options(&pack, Checksums::Off)).unwrap();
    let epoch = fetch.start(plan(&pack, Order::Sequential, 1), 0).unwrap();
    epoch.stop();
    assert!(matches!(epoch.step(0), Err(ReadError::Stopped { .. })));
}

/// A pack of `n` raw samples of 224 x 224 x 3 bytes in chunks of 64.
pub(super) fn large_pack(path: &Path, n: u32) {
    use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema};
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
                    let epoch = fetch.start(plan.clone(), 0).unwrap();
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
        let body = &pack.whole_file()[8192..][..7000 * 224 * 224 * 3];
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
        println!("plain memcpy of a fresh map {:.2} GB/s, again {:.2}", bytes / map, bytes / again);
    }
}

#[test]
fn single_samples_of_compressed_chunks_come_through_the_map_where_it_may_be_used() {
    let path = golden().into_iter().find(|path| path.ends_with("zstd_several_blocks.pack")).unwrap();
    let pack = Arc::new(open(&path).unwrap());
    assert!(pack.n_chunks() > 1);
    let mut options = options(&pack, Checksums::FirstTouch);
    options.access = Access::Auto;
    for (order, memory, mapped) in [(Order::Random, 1, true), (Order::Random, 100, false), (Order::Chunks, 1, false)] {
        let one = direct_chunk_bytes(&pack, &options);
        options.memory_bytes = one * memory;
        let fetch = Fetch::new(Arc::clone(&pack), options.clone()).unwrap();
        let epoch = fetch.start(plan(&pack, order, 1), 0).unwrap();
        let through_map = epoch.stats().buffers == 0;
        assert_eq!(through_map, mapped, "{order:?} {memory}");
    }
}

/// The minimum memory for reading the pack directly.
fn direct_chunk_bytes(pack: &Arc<Pack>, options: &FetchOptions) -> u64 {
    let mut options = options.clone();
    options.memory_bytes = 1;
    match Fetch::new(Arc::clone(pack), options) {
        Err(ReadError::Memory { needed, .. }) => needed,
        other => panic!("{other:?}"),
    }
}
