//! Tests of direct reads. The items are equal to those of the pack in every order, with every engine and with little
//! memory. Other tests show what happens if the disk fails.

#![cfg(test)]

pub(super) mod faulty;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Role, Schema, Store};

use self::faulty::Faults;
use super::buffer::Buffer;
use super::engine::Source;
use super::loads::{Extent, Loads};
use super::memory::Memory;
use super::{DirectFetch, EngineKind};
use crate::fetch::EpochFetch;
use crate::fetch::checks::{Checks, Checksums};
use crate::fetch::tests::{ORDERS, golden, options, plan};
use crate::plan::{EpochPlan, Order};
use crate::{Pack, ReadError, open};

fn engines() -> Vec<EngineKind> {
    let short = Faults { short: 5000, ..Faults::default() };
    let interrupted = Faults { interrupted: true, short: 9000, ..Faults::default() };
    let refusing = Faults { refuses_direct: true, ..Faults::default() };
    let faulty = |faults| EngineKind::Faulty(Arc::new(faults));
    let mut engines = vec![EngineKind::Pread, faulty(short), faulty(interrupted), faulty(refusing)];
    if super::Uring::probe().is_ok() {
        engines.push(EngineKind::Uring);
    }
    engines
}

fn fetch_with(
    pack: &Arc<Pack>,
    memory_bytes: u64,
    checksums: Checksums,
    engine: EngineKind,
) -> Result<Arc<DirectFetch>, ReadError> {
    let mut options = options(pack, checksums);
    options.memory_bytes = memory_bytes;
    let checks = Checks::new(pack, checksums)?;
    let past_cache = !matches!(&engine, EngineKind::Pread);
    DirectFetch::with_engine(Arc::clone(pack), checks, &options, past_cache, engine).map(Arc::new)
}

/// The minimum memory for an epoch.
fn least_memory(pack: &Arc<Pack>, plan: &Arc<EpochPlan>, engine: &EngineKind) -> u64 {
    let mut memory = 4096;
    loop {
        let all = fetch_with(pack, memory, Checksums::Off, engine.clone()).and_then(|fetch| {
            let epoch = fetch.start(Arc::<EpochPlan>::clone(plan), 0)?;
            (0..plan.steps()).try_for_each(|step| epoch.step(step).map(|_| ()))
        });
        match all {
            Ok(()) => return memory,
            Err(ReadError::Memory { needed, given, .. }) => {
                assert_eq!(given, memory);
                assert!(needed > memory, "{needed} is not more than {memory}");
                memory = needed;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn compare(fetch: &Arc<DirectFetch>, plan: &Arc<EpochPlan>, threads: u64, what: &str) {
    let pack = &fetch.pack;
    let fields: Vec<usize> = pack.schema().body().map(|(number, _)| number).collect();
    let epoch = fetch.start(Arc::<EpochPlan>::clone(plan), 0).unwrap();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let step = next.fetch_add(1, Ordering::SeqCst);
                    if step >= plan.steps() {
                        return;
                    }
                    let items = epoch.step(step).unwrap();
                    let mut scratch = Vec::new();
                    for slot in plan.batch(step) {
                        for (position, field) in fields.iter().enumerate() {
                            let expected = pack.item(*field, slot.sample).unwrap();
                            let item = items.item(position, slot.sample, &mut scratch).unwrap();
                            assert_eq!(item, expected.as_ref(), "{what}, sample {}", slot.sample);
                        }
                    }
                }
            });
        }
    });
    let stats = epoch.stats();
    assert!(stats.bytes_read > 0 && stats.reads > 0);
}

#[test]
fn items_are_those_of_the_pack_in_every_order_with_the_least_memory_and_with_more() {
    for path in golden() {
        let pack = Arc::new(open(&path).unwrap());
        if pack.n_samples() == 0 {
            continue;
        }
        for order in ORDERS {
            for batch in [1, 3] {
                let plan = plan(&pack, order, batch);
                let least = least_memory(&pack, &plan, &engines()[1]);
                for (n, engine) in engines().into_iter().enumerate() {
                    let policies = [Checksums::FirstTouch, Checksums::Always, Checksums::Off];
                    // Batches of one sample differ only in the planning, not in the reads.
                    let memories = [least, least + least / 2, 64 << 20];
                    let kinds = if batch == 1 && n > 0 { 1 } else { 3 };
                    for memory in memories.into_iter().take(kinds) {
                        let what = format!("{} {order:?} {engine:?} {memory}", path.display());
                        let policy = policies[(n + usize::try_from(batch).unwrap()) % 3];
                        let fetch = fetch_with(&pack, memory, policy, engine.clone()).unwrap();
                        compare(&fetch, &plan, 1 + u64::from(batch), &what);
                        if memory == least {
                            // The next epoch reuses the memory.
                            compare(&fetch, &plan, 1, &what);
                        }
                    }
                }
            }
        }
    }
}

/// A pack of `n` samples of 3 KB in chunks of 16, with checksums per sample if `crcs` is set.
fn strided(folder: &Path, n: u32, crcs: bool) -> PathBuf {
    let mut fields = vec![Field::tensor("image", DType::U8, &[3000])];
    if crcs {
        let mut crc = Field::tensor("crc", DType::U32, &[]);
        crc.store = Store::Column;
        crc.role = Some(Role::SampleCrc32c);
        fields.push(crc);
    }
    let schema = Schema::new(fields).unwrap();
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 16)).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        for (at, byte) in (0_u32..).zip(block.tensor_mut(0).unwrap()) {
            *byte = sample.wrapping_mul(31).wrapping_add(at).to_le_bytes()[0];
        }
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    if block.n_samples() > 0 {
        writer.append(block.finish().unwrap()).unwrap();
    }
    let (bytes, _) = writer.finish(FooterParts::default()).unwrap();
    let path = folder.join("strided.pack");
    fs::write(&path, bytes).unwrap();
    path
}

fn strided_pack(n: u32) -> (tempfile::TempDir, Arc<Pack>) {
    let folder = tempfile::tempdir().unwrap();
    let path = strided(folder.path(), n, false);
    (folder, Arc::new(open(path).unwrap()))
}

fn faulty(pack: &Arc<Pack>, faults: Faults) -> (Arc<DirectFetch>, Arc<Faults>) {
    let faults = Arc::new(faults);
    let engine = EngineKind::Faulty(Arc::clone(&faults));
    let fetch = fetch_with(pack, 1 << 20, Checksums::FirstTouch, engine).unwrap();
    (fetch, faults)
}

#[test]
fn budget_is_never_exceeded_and_windows_that_do_not_fit_are_read_again() {
    let (_folder, pack) = strided_pack(640);
    let plan = plan(&pack, Order::Window { chunks: Some(12) }, 2);
    // A chunk is 48,000 bytes long. At the worst offset, it spans 13 pages.
    let slot = 13 * 4096;
    let fetch = fetch_with(&pack, 9 * slot, Checksums::FirstTouch, EngineKind::Pread).unwrap();
    let epoch = fetch.start(plan.clone(), 0).unwrap();
    for step in 0..plan.steps() {
        drop(epoch.step(step).unwrap());
        let stats = epoch.stats();
        assert_eq!(stats.buffers, 9);
        assert!(stats.buffers_in_use <= 9);
    }
    assert!(epoch.stats().chunks_evicted > 0);
    let fetch = fetch_with(&pack, 41 * slot, Checksums::FirstTouch, EngineKind::Pread).unwrap();
    let epoch = fetch.start(plan.clone(), 0).unwrap();
    for step in 0..plan.steps() {
        drop(epoch.step(step).unwrap());
    }
    let stats = epoch.stats();
    assert_eq!((stats.chunks_evicted, stats.reads), (0, 40));
}

#[test]
fn a_later_step_that_does_not_fit_is_refused_before_the_first() {
    let (_folder, pack) = strided_pack(640);
    // The second batch starts in the middle of a chunk of 16 and needs one more chunk.
    let plan = plan(&pack, Order::Sequential, 12);
    let uses = |step| plan.chunk_uses(step).len();
    assert_eq!((uses(0), uses(1)), (1, 2));
    let with = |slots: u64| fetch_with(&pack, slots * 13 * 4096, Checksums::Off, EngineKind::Pread);
    let error = with(1).unwrap().start(plan.clone(), 0).unwrap_err();
    let needs_two = matches!(error, ReadError::Memory { needed, .. } if needed == 2 * 13 * 4096);
    assert!(needs_two, "{error}");
    with(2).unwrap().start(plan, 0).unwrap();
}

#[test]
fn step_that_does_not_fit_is_refused_with_what_it_needs() {
    let (_folder, pack) = strided_pack(640);
    let plan = plan(&pack, Order::Sequential, 64);
    let fetch = fetch_with(&pack, 3 * 13 * 4096, Checksums::Off, EngineKind::Pread).unwrap();
    let error = fetch.start(plan, 0).unwrap_err();
    assert!(matches!(error, ReadError::Memory { given: 159_744, needed: 212_992, .. }));
    let error = fetch_with(&pack, 4096, Checksums::Off, EngineKind::Pread).unwrap_err();
    assert!(matches!(error, ReadError::Memory { given: 4096, needed: 53_248, .. }));
}

#[test]
fn items_without_bytes_are_there_without_a_read() {
    let (_folder, pack) = strided_pack(16);
    let source = Arc::new(Source::new(pack, true));
    let memory = Memory::new(1, 4096, 0).unwrap();
    let mut loads = Loads::new(source, Arc::default());
    let nothing = Extent::around(4096, 0).unwrap();
    assert_eq!(nothing.len, 0);
    let buffer = Buffer::new(None, 0, 0, memory.ring());
    let slot = memory.arena.try_take().unwrap();
    loads.start(&buffer, slot, &[nothing], &memory);
    assert!(loads.is_idle() && buffer.failure().is_none());
    assert_eq!(buffer.slot(0, 0), Some(&[][..]));
}

#[test]
fn unreadable_bytes_are_named_and_other_chunks_still_come() {
    let (_folder, pack) = strided_pack(160);
    let bad = pack.chunk_entry(3).unwrap().offset + 20_000;
    let (fetch, _) = faulty(&pack, Faults { bad_byte: Some(bad), ..Faults::default() });
    let plan = plan(&pack, Order::Sequential, 16);
    let epoch = fetch.start(plan.clone(), 0).unwrap();
    for step in 0..plan.steps() {
        match epoch.step(step) {
            Ok(_) => assert_ne!(step, 3),
            Err(ReadError::Read { offset, len, source, .. }) => {
                assert_eq!((step, source.raw_os_error()), (3, Some(5)));
                assert!((offset..offset + len).contains(&bad));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn file_cut_short_is_told_as_changed() {
    let (folder, pack) = strided_pack(160);
    let (fetch, faults) = faulty(&pack, Faults::default());
    *faults.closed.lock().unwrap() = true;
    let plan = plan(&pack, Order::Sequential, 160);
    let epoch = fetch.start(plan, 0).unwrap();
    while !faults.waiting.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    let file = OpenOptions::new().write(true).open(folder.path().join("strided.pack")).unwrap();
    file.set_len(100_000).unwrap();
    faults.open();
    let error = epoch.step(0).unwrap_err();
    assert!(matches!(error, ReadError::Changed { found: 100_000, .. }), "{error}");
}

#[test]
fn engine_that_dies_and_thread_that_panics_are_errors_and_no_hang() {
    let (_folder, pack) = strided_pack(640);
    let plan = plan(&pack, Order::Sequential, 16);
    let dies = Faults { dies_after: Some(3), ..Faults::default() };
    let panics = Faults { panics_after: Some(3), ..Faults::default() };
    for faults in [dies, panics] {
        let (fetch, _) = faulty(&pack, faults);
        let epoch = fetch.start(plan.clone(), 0).unwrap();
        let results: Vec<_> = (0..plan.steps()).map(|step| epoch.step(step).is_ok()).collect();
        assert!(results.iter().any(|ok| !ok));
        assert!(!results.last().unwrap());
    }
}

#[test]
fn stopping_and_dropping_return_at_once_while_a_read_is_slow() {
    let (_folder, pack) = strided_pack(160);
    let (fetch, faults) = faulty(&pack, Faults::default());
    *faults.closed.lock().unwrap() = true;
    let plan = plan(&pack, Order::Sequential, 16);
    let epoch = fetch.start(plan, 0).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| epoch.step(0));
        while !faults.waiting.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        epoch.stop();
        assert!(matches!(waiting.join().unwrap(), Err(ReadError::Stopped { .. })));
    });
    assert!(matches!(epoch.step(1), Err(ReadError::Stopped { .. })));
    drop(epoch);
    faults.open();
}

#[test]
fn flipped_bit_is_found_in_the_chunk_or_in_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    for crcs in [false, true] {
        let path = strided(folder.path(), 160, crcs);
        let entry = open(&path).unwrap().chunk_entry(5).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(entry.offset).unwrap() + 7 * 3000 + 11] ^= 4;
        fs::write(&path, bytes).unwrap();
        let pack = Arc::new(open(&path).unwrap());
        for order in [Order::Chunks, Order::Random] {
            for memory in [16 << 20, 2 * 13 * 4096] {
                let plan = plan(&pack, order, 1);
                let engine = EngineKind::Pread;
                let fetch = fetch_with(&pack, memory, Checksums::FirstTouch, engine).unwrap();
                let epoch = fetch.start(plan.clone(), 0).unwrap();
                let mut bad = Vec::new();
                for step in 0..plan.steps() {
                    let items = epoch.step(step).unwrap();
                    for slot in plan.batch(step) {
                        match items.item(0, slot.sample, &mut Vec::new()) {
                            Ok(_) => {}
                            Err(ReadError::Format { .. } | ReadError::Sample { .. }) => {
                                bad.push(slot.sample);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                bad.sort_unstable();
                let expected: Vec<u64> = match crcs {
                    // With checksums per sample, the other samples of the chunk are known to be valid.
                    true => vec![87],
                    // Without them, all samples of the chunk are invalid, even if samples are read one by one.
                    false => (80..96).collect(),
                };
                assert_eq!(bad, expected, "{crcs} {order:?} {memory}");
            }
        }
    }
}

#[test]
fn runs_show_the_buffer_itself_and_at_most_half_of_all_are_out() {
    let (_folder, pack) = strided_pack(640);
    let plan = plan(&pack, Order::Chunks, 16);
    let fetch = fetch_with(&pack, 6 * 13 * 4096, Checksums::FirstTouch, EngineKind::Pread).unwrap();
    let epoch = fetch.start(plan.clone(), 0).unwrap();
    let mut kept = Vec::new();
    for step in 0..plan.steps() {
        let items = epoch.step(step).unwrap();
        let first = plan.batch(step).next().unwrap().sample;
        assert!(items.run(0, first + 1, 16).unwrap().is_none());
        assert!(items.run(0, first, 0).unwrap().is_none());
        let run = items.run(0, first, 16).unwrap();
        assert_eq!(run.is_some(), step < 3);
        let Some(run) = run else { continue };
        let mut scratch = Vec::new();
        let second = items.item(0, first + 1, &mut scratch).unwrap();
        assert_eq!(run.as_ref()[3000..6000].as_ptr(), second.as_ptr());
        kept.push((first, run.clone()));
    }
    drop(epoch);
    drop(fetch);
    for (first, run) in kept {
        let expected = (first..first + 16).flat_map(|s| pack.item(0, s).unwrap().into_owned());
        assert!(run.as_ref().iter().copied().eq(expected));
    }
}

#[test]
fn steps_are_handed_out_once_and_unknown_ones_are_refused() {
    let (_folder, pack) = strided_pack(160);
    let fetch = fetch_with(&pack, 1 << 20, Checksums::Off, EngineKind::Pread).unwrap();
    let epoch = fetch.start(plan(&pack, Order::Sequential, 16), 4).unwrap();
    assert!(matches!(epoch.step(3), Err(ReadError::Format { .. })));
    let items = epoch.step(4).unwrap();
    assert!(items.item(0, 0, &mut Vec::new()).is_err());
    assert!(items.item(0, 4 * 16, &mut Vec::new()).is_ok());
    assert!(items.item(1, 4 * 16, &mut Vec::new()).is_err());
    assert!(items.item(0, 160, &mut Vec::new()).is_err());
    assert!(items.run(0, 0, 16).is_err());
    assert!(matches!(epoch.step(4), Err(ReadError::Format { .. })));
    for step in 5..10 {
        epoch.step(step).unwrap();
    }
    assert!(matches!(epoch.step(10), Err(ReadError::Format { .. })));
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn thousand_loaders_opened_and_dropped_leave_no_threads() {
    let (_folder, pack) = strided_pack(160);
    let before = threads();
    for n in 0..1000 {
        let engines = engines();
        let engine = engines[n % engines.len()].clone();
        let fetch = fetch_with(&pack, 1 << 20, Checksums::FirstTouch, engine).unwrap();
        let plan = plan(&pack, Order::Window { chunks: Some(3) }, 16);
        let epoch = fetch.start(plan, 0).unwrap();
        if n % 3 == 0 {
            drop(epoch.step(0).unwrap());
        }
    }
    // Other tests start and end threads at the same time.
    let began = Instant::now();
    while threads() > before + 40 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} {before}", threads());
        thread::yield_now();
    }
}
