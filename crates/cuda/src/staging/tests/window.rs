//! Chunks on the GPU, copied through staging memory or from the registered file.

use packds_reader::device::{ChunkImages, Device, Placement};

use super::*;

pub(super) fn window(chunks: u32) -> Order {
    Order::Window { chunks: Some(chunks) }
}

/// A loader in the tier `gpu-window`.
pub(super) fn windowed(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> Result<Loader, LoadError> {
    let device = CudaDevice::with(driver.clone());
    let builder = builder.clone().device(Arc::new(device.clone()));
    let (device, tier) = device.in_tier(&builder, Some(Tier::GpuWindow))?;
    assert_eq!(tier, Tier::GpuWindow);
    builder.device(Arc::new(device)).build()
}

#[test]
fn a_window_of_chunks_gives_the_hosts_batches() {
    // The number of samples is not a multiple of the chunk size or the batch size.
    let (_folder, large) = pack(333);
    // With one sample per chunk, each batch needs new chunks in all places of its slot.
    let (_other_folder, small) = pack_in_chunks(61, 1);
    let all = [
        ("", window(4)),
        ("flip,norm:imagenet", window(7)),
        ("rrc8,flip,norm:imagenet,chw,bf16", window(3)),
        ("crop8+2,flip,erase,mixup:0.4", Order::Chunks),
        ("views:2,crop8+2,f16", Order::Sequential),
        ("rrc8,jitter:0.4/0.4/0.4/0.1,chw", window(5)),
    ];
    for (seed, (words, order)) in (0..).zip(all) {
        for (pack, batch, slots, access) in [
            (&large, 16, 2, Access::Mapped),
            (&large, 16, 3, Access::Direct),
            (&small, 2, 2, Access::Mapped),
            (&small, 3, 3, Access::Direct),
        ] {
            let slots = NonZero::new(slots).unwrap();
            let builder = builder(pack, words).order(order).slots(slots);
            let builder = builder.batch(batch).access(access);
            let wanted = on_host(builder.clone());
            let driver = sim(seed);
            let loader = windowed(&builder, &driver).unwrap();
            let mut found = Vec::new();
            for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
                found.push(finished(&driver, &batch.unwrap(), Stream(step % 2)));
            }
            assert_found(&driver, &found, &wanted, words);
            drop(loader);
            assert_eq!(driver.faults(), []);
        }
    }
}

#[test]
fn a_window_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = pack(200);
    let builder = builder(&pack, "rrc8,flip").order(window(4));
    let builder = builder.slots(NonZero::new(2).unwrap());
    let errors = errors_of_failing(160, |driver| windowed(&builder, driver));
    assert!(errors > 60, "{errors}");
}

#[test]
fn a_window_of_a_registered_file_gives_the_hosts_batches() {
    let (_folder, large) = pack(333);
    let (_other_folder, small) = pack_in_chunks(61, 1);
    for (seed, (pack, batch, words, order)) in (0..).zip([
        (&large, 16, "flip,norm:imagenet", window(7)),
        (&large, 16, "rrc8,flip,chw,bf16", Order::Chunks),
        (&large, 16, "", Order::Sequential),
        (&small, 3, "crop8+2,flip,mixup:0.4", window(9)),
    ]) {
        let builder = builder(pack, words).order(order).batch(batch);
        let builder = builder.slots(NonZero::new(2).unwrap());
        let driver = sim(seed);
        let told = assert_registering_equals_host(&builder.access(Access::Mapped), &driver);
        assert_eq!(told, "chunks are copied from the registered file");
        // This includes the comparison, which covers the whole small file, and at least one copy of each chunk.
        let chunks = ITEM * (pack.n_samples() - 16);
        assert!(driver.copied_from_maps() >= pack.file_len() + chunks);
    }
}

/// Asserts that the loader of `registering` delivers the same batches as the host. Returns the message.
fn assert_registering_equals_host(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> String {
    let wanted = on_host(builder.clone());
    let (loader, told) = registering(builder, driver).unwrap();
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        found.push(finished(driver, &batch.unwrap(), Stream(step % 2)));
    }
    assert_found(driver, &found, &wanted, "");
    drop(loader);
    assert_eq!(driver.faults(), []);
    told
}

/// Like `windowed`, but requests that the file is registered. Also returns the message about its copies.
fn registering(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> Result<(Loader, String), LoadError> {
    let device = CudaDevice::with(driver.clone()).registering_file();
    let builder = builder.clone().device(Arc::new(device.clone()));
    let (device, _) = device.in_tier(&builder, Some(Tier::GpuWindow))?;
    let told = device.copies().unwrap();
    Ok((builder.device(Arc::new(device)).build()?, told))
}

#[test]
fn chunks_are_staged_where_the_file_cannot_be_registered() {
    let (_folder, pack) = pack(160);
    let mapped = builder(&pack, "flip").order(window(4));
    let mapped = mapped.access(Access::Mapped);
    let direct = mapped.clone().access(Access::Direct);
    let filter = Filter::NONE;
    let (_other_folder, packed) = pack_with(160, 8, Codec::Zstd { level: 3, filter });
    let packed = builder(&packed, "flip").order(window(4));
    let packed = packed.access(Access::Mapped);
    let memory = builder(&in_memory(&pack), "flip").order(window(4));
    let with = |failure| Arc::new(SimDriver::new(1, Duration::ZERO, GIB).with_map_failure(failure));
    for (builder, driver, why) in [
        (&direct, sim(2), "the access is direct, as requested"),
        (&packed, sim(2), "the images are compressed"),
        (&memory, sim(2), "the pack is not in a file"),
        (&mapped, with(MapFailure::Refused), "cannot register read-only memory"),
        (&mapped, with(MapFailure::Garbled), "wrong bytes"),
    ] {
        let told = assert_registering_equals_host(builder, &driver);
        assert!(told.contains("through staging memory, because") && told.contains(why), "{told}");
        assert_eq!(driver.mapped_bytes(), 0);
    }
    // A second loader uses the same mapping.
    let driver = sim(3);
    let (first, _) = registering(&mapped, &driver).unwrap();
    assert_eq!(driver.mapped_bytes(), pack.file_len());
    let told = assert_registering_equals_host(&mapped, &driver);
    assert!(told.contains("already registered"), "{told}");
    drop(first);
    assert_eq!(driver.mapped_bytes(), 0);
    // Registering was not requested, so there is no message.
    let device = CudaDevice::with(driver);
    let builder = mapped.device(Arc::new(device.clone()));
    let (staging, _) = device.in_tier(&builder, Some(Tier::GpuWindow)).unwrap();
    assert_eq!(staging.copies(), None);
    for tier in [None, Some(Tier::Resident)] {
        let device = device.clone().registering_file();
        let error = device.in_tier(&builder, tier).unwrap_err().to_string();
        assert!(error.contains("for tiers 'gpu-window' and 'host'"), "{error}");
    }
}

#[test]
fn a_registered_file_with_a_driver_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = pack(200);
    let builder = builder(&pack, "rrc8,flip").order(window(4));
    let builder = builder.access(Access::Mapped);
    let builder = builder.slots(NonZero::new(2).unwrap());
    let errors = errors_of_failing(160, |driver| Ok(registering(&builder, driver)?.0));
    assert!(errors > 60, "{errors}");
}

#[test]
fn a_damaged_sample_of_a_registered_file_is_an_error() {
    let (folder, pack) = pack(160);
    // The sample is in the second chunk of the last batch, after a chunk that was copied.
    let pack = damaged(&folder, pack, 156);
    let builder = builder(&pack, "flip").order(Order::Sequential);
    let builder = builder.access(Access::Mapped);
    for seed in 0..4 {
        let driver = Arc::new(SimDriver::new(seed, Duration::from_millis(20), GIB));
        let (loader, told) = registering(&builder, &driver).unwrap();
        assert!(told.contains("from the registered file"), "{told}");
        let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
        assert!(error.to_string().contains("checksum"), "{error}");
        drop(loader);
        assert_eq!(driver.faults(), []);
    }
}

#[test]
fn the_simulated_driver_notes_a_map_that_ends_too_early() {
    const BYTES: usize = 64 << 20;
    let file = tempfile::tempfile().unwrap();
    file.set_len(u64::try_from(BYTES).unwrap()).unwrap();
    let queued = |is_unmapped: bool| {
        let driver = SimDriver::new(1, Duration::from_millis(4), GIB);
        // SAFETY: nobody writes the file.
        let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
        let host = map.as_ptr();
        // SAFETY: violated on purpose. The mapping is unmapped below, which the driver records.
        unsafe { driver.register_read_only(host, BYTES) }.unwrap();
        let memory = driver.allocate(1 << 16, "copies").unwrap();
        for _ in 0..32 {
            let from = map[BYTES / 2..].as_ptr();
            // SAFETY: as above.
            unsafe { driver.copy_in(from, memory, 1 << 16, Stream(0)) }.unwrap();
        }
        let map = (!is_unmapped).then_some(map);
        if is_unmapped {
            driver.finish_all();
        }
        // SAFETY: as above.
        unsafe { driver.unregister(host) };
        driver.finish_all();
        drop(map);
        driver.faults()
    };
    assert!(queued(false).contains(&Fault::GivenBackTooEarly));
    assert!(queued(true).contains(&Fault::UnmappedTooEarly));
}

#[test]
fn orders_and_policies_that_chunks_are_not_for_are_refused() {
    let (_folder, pack) = pack(64);
    let driver = sim(1);
    let by_chunk = builder(&pack, "flip").order(window(2));
    let random = windowed(&builder(&pack, "flip"), &driver);
    let skips = windowed(&by_chunk.clone().bad_samples(BadSamples::Skip), &driver);
    let blurs = windowed(&builder(&pack, "blur:3/0.1-2"), &driver);
    for (refused, said) in [
        (random, "cannot be used with order 'random': use order='window'"),
        (skips, "bad samples"),
        (blurs, "use tier='host'"),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let small = Arc::new(SimDriver::new(1, Duration::ZERO, 20_000));
    let error = windowed(&by_chunk, &small).unwrap_err().to_string();
    assert!(error.contains("bytes of free memory for"), "{error}");
    assert_eq!(small.in_use(), 0);
}

/// The images of a chunk in the file.
struct InFile(Range<usize>);

impl ChunkImages for InFile {
    fn in_file(&mut self) -> Option<Range<usize>> {
        Some(self.0.clone())
    }

    fn write(&mut self, _: &mut [u8]) -> bool {
        false
    }
}

/// Simulates a batch that failed after its first chunk. Its slot is never copied, so no event marks its end.
#[test]
fn a_ring_that_ends_waits_for_chunks_that_no_batch_came_to_use() {
    let (_folder, pack) = pack(64);
    let builder = builder(&pack, "flip").order(window(4));
    let builder = builder.access(Access::Mapped);
    let place = |sample| pack.sample_places(sample).unwrap()[0].clone();
    let byte = |place: u64| usize::try_from(place).unwrap();
    for seed in 0..4 {
        let driver = Arc::new(SimDriver::new(seed, Duration::from_millis(20), GIB));
        let device = CudaDevice::with(driver.clone()).registering_file();
        let builder = builder.clone().device(Arc::new(device.clone()));
        let (device, _) = device.in_tier(&builder, Some(Tier::GpuWindow)).unwrap();
        let ring = Arc::new(Arena::new(2, 4096).unwrap());
        let Placement::Chunks(attach) = Arc::new(device.clone()).placement(std::slice::from_ref(&pack)) else {
            panic!("chunks are not taken");
        };
        let ring = attach(&ring).unwrap();
        let mut images = InFile(byte(place(0).start)..byte(place(7).end));
        assert_eq!(ring.take_chunk(0, 0, &mut images).unwrap(), Some(0));
        drop((ring, device));
        assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
    }
}
