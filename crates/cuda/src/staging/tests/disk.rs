//! Chunks read from the disk into GPU memory, in the tier `gpu-window`.

use packds_reader::Checksums;

use super::window::{window, windowed};
use super::*;

const FROM_DISK: &str = "chunks are read from the disk into the GPU's memory";

fn unchecked(pack: &Arc<Pack>, words: &str, order: Order) -> LoaderBuilder {
    let builder = builder(pack, words).order(order).checksums(Checksums::Off);
    builder.slots(NonZero::new(2).unwrap())
}

/// A loader for which reading chunks from the disk was requested, and the message about its copies.
fn reading(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> Result<(Loader, String), LoadError> {
    let device = CudaDevice::with(driver.clone()).reading_from_disk();
    let builder = builder.clone().device(Arc::new(device.clone()));
    let (device, _) = device.in_tier(&builder, Some(Tier::GpuWindow))?;
    let told = device.copies().unwrap();
    Ok((builder.device(Arc::new(device)).build()?, told))
}

/// Asserts that a loader that reads from the disk delivers the same batches as the host. Returns the message, and the
/// number of bytes read directly.
fn assert_equals_host(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> (String, u64) {
    let wanted = on_host(builder.clone());
    let (loader, told) = reading(builder, driver).unwrap();
    let compared = driver.read_directly();
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        found.push(finished(driver, &batch.unwrap(), Stream(step % 2)));
    }
    assert_found(driver, &found, &wanted, "");
    drop(loader);
    assert_eq!(driver.faults(), []);
    (told, driver.read_directly() - compared)
}

#[test]
fn chunks_from_the_disk_give_the_hosts_batches() {
    // The number of samples is not a multiple of the chunk size or the batch size.
    let (_folder, large) = pack(333);
    // With one sample per chunk, each batch needs new chunks in all places of its slot.
    let (_other_folder, small) = pack_in_chunks(61, 1);
    let (_third_folder, plain) = pack_of(100, 8, Codec::None, false);
    let all = [
        (&large, 16, "", window(4)),
        (&large, 16, "flip,norm:imagenet", window(7)),
        (&large, 16, "rrc8,flip,norm:imagenet,chw,bf16", Order::Chunks),
        (&small, 3, "crop8+2,flip,erase,mixup:0.4", window(9)),
        (&small, 2, "views:2,crop8+2,f16", Order::Sequential),
        (&plain, 8, "rrc8,flip", Order::Sequential),
    ];
    for (seed, (pack, batch, words, order)) in (0..).zip(all) {
        for access in [Access::Mapped, Access::Direct] {
            let builder = unchecked(pack, words, order).batch(batch).access(access);
            let (told, bytes) = assert_equals_host(&builder, &sim(seed));
            assert_eq!(told, FROM_DISK);
            // Each chunk is read at least once, except those of a batch that is left out.
            let chunks = ITEM * (pack.n_samples() - u64::from(batch));
            assert!(bytes >= chunks, "{words} {bytes}");
        }
    }
}

#[test]
fn no_chunk_is_read_over_one_that_the_gpu_still_needs() {
    // There are few places, and the GPU is much slower than the loader.
    let (_folder, pack) = pack_in_chunks(90, 1);
    for seed in 0..6 {
        let builder = unchecked(&pack, "rrc8,flip", window(9)).batch(3);
        let driver = Arc::new(SimDriver::new(seed, Duration::from_millis(3), GIB));
        assert_equals_host(&builder, &driver);
    }
}

#[test]
fn the_loader_reads_nothing_of_images_that_come_from_the_disk() {
    let (_folder, pack) = pack(160);
    let builder = unchecked(&pack, "flip", window(4)).fields(&["image", "label"]);
    let builder = builder.access(Access::Direct);
    let driver = sim(1);
    let (loader, _) = reading(&builder, &driver).unwrap();
    assert_eq!(loader.epoch(0).unwrap().map(Result::unwrap).count(), 10);
    assert_eq!(loader.stats().fetch.bytes_read, 0);
    let staged = windowed(&builder, &driver).unwrap();
    assert_eq!(staged.epoch(0).unwrap().map(Result::unwrap).count(), 10);
    assert!(staged.stats().fetch.bytes_read >= ITEM * 160);
}

#[test]
fn chunks_are_staged_where_the_disk_cannot_be_read_so() {
    let (_folder, pack) = pack(160);
    let plain = unchecked(&pack, "flip", window(4));
    let filter = Filter::NONE;
    let (_other_folder, packed) = pack_with(160, 8, Codec::Zstd { level: 3, filter });
    let packed = unchecked(&packed, "flip", window(4));
    let memory = unchecked(&in_memory(&pack), "flip", window(4));
    let with = |failure| Arc::new(SimDriver::new(1, Duration::ZERO, GIB).with_map_failure(failure));
    for (builder, driver, why) in [
        (&plain, with(MapFailure::Refused), "cannot read files"),
        (&plain, with(MapFailure::Garbled), "wrong bytes"),
        (&packed, sim(1), "the images are compressed"),
        (&memory, sim(1), "the pack is not in a file"),
    ] {
        let (told, bytes) = assert_equals_host(builder, &driver);
        assert!(told.starts_with("chunks are copied through staging memory, because ") && told.contains(why), "{told}");
        assert_eq!(bytes, 0);
    }
}

#[test]
fn what_reads_from_the_disk_are_not_for_is_refused() {
    let (_folder, pack) = pack(160);
    let builder = unchecked(&pack, "flip", window(4));
    let checked = builder.clone().checksums(Checksums::FirstTouch);
    let error = reading(&checked, &sim(1)).unwrap_err().to_string();
    assert!(error.contains("use checksums='off'"), "{error}");
    // The loader makes the same check.
    let device = CudaDevice::with(sim(1)).reading_from_disk();
    let builder = builder.device(Arc::new(device.clone()));
    let (window, _) = device.in_tier(&builder, Some(Tier::GpuWindow)).unwrap();
    let checked = checked.device(Arc::new(window)).build();
    let error = checked.unwrap_err().to_string();
    assert!(error.contains("use checksums='off'"), "{error}");
    for tier in [None, Some(Tier::Resident), Some(Tier::Host)] {
        let error = device.in_tier(&builder, tier).unwrap_err().to_string();
        assert!(error.contains("only tier 'gpu-window'"), "{error}");
    }
}

#[test]
fn a_driver_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = pack(200);
    let builder = unchecked(&pack, "rrc8,flip", window(4));
    let errors = errors_of_failing(160, |driver| Ok(reading(&builder, driver)?.0));
    assert!(errors > 60, "{errors}");
}

#[test]
fn a_file_that_is_cut_short_is_an_error() {
    let (folder, pack) = pack_of(160, 8, Codec::None, false);
    let builder = unchecked(&pack, "flip", Order::Sequential);
    let driver = sim(1);
    let (loader, _) = reading(&builder, &driver).unwrap();
    let path = folder.path().join("a.pack");
    let at = pack.sample_places(100).unwrap()[0].start;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    file.set_len(at).unwrap();
    assert!(epoch.any(|batch| batch.is_err()));
    drop((epoch, loader));
    assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
}

#[test]
fn the_simulated_driver_notes_reads_over_memory_in_use() {
    let file = || tempfile::tempfile().unwrap();
    let bytes = [7; 64];
    let driver = SimDriver::new(1, Duration::from_millis(20), GIB);
    let memory = driver.allocate(64, "copies").unwrap();
    let file = {
        let file = file();
        file.set_len(64).unwrap();
        driver.open_direct(file).unwrap()
    };
    // SAFETY: the memory exists until all work is done.
    unsafe { driver.register(bytes.as_ptr(), 64) }.unwrap();
    // SAFETY: as above.
    unsafe { driver.copy_in(bytes.as_ptr(), memory, 64, Stream(0)) }.unwrap();
    // SAFETY: violated on purpose. A copy to this memory is queued, which the driver records.
    unsafe { file.read(0, memory, 64) }.unwrap();
    driver.finish_all();
    assert!(driver.faults().contains(&Fault::WrittenTooEarly));
    // SAFETY: violated on purpose. The memory is not allocated, which the driver records.
    unsafe { file.read(0, memory.plus(1 << 40), 64) }.unwrap();
    assert!(driver.faults().contains(&Fault::NotAllocated));
    // SAFETY: the memory belongs to the driver.
    let error = unsafe { file.read(1, memory, 64) }.unwrap_err();
    assert!(error.to_string().contains("read_direct"), "{error}");
    // SAFETY: all work is done.
    unsafe { driver.unregister(bytes.as_ptr()) };
}
