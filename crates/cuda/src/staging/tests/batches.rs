//! Batches copied to the GPU from the registered file, in the tier `host`.

use super::window::window;
use super::*;

const FROM_FILE: &str = "batches are copied from the registered file";

/// A pack with only images and labels, so that batches may be contiguous in the file.
fn plain_pack(n: u64) -> (TempDir, Arc<Pack>) {
    pack_of(n, 8, Codec::None, false)
}

fn mapped(pack: &Arc<Pack>, words: &str, order: Order) -> LoaderBuilder {
    let builder = builder(pack, words).order(order).access(Access::Mapped);
    builder.slots(NonZero::new(2).unwrap())
}

/// A loader in the tier `host` for which registering the file was requested, and the message about its copies.
fn registering(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> Result<(Loader, String), LoadError> {
    let device = CudaDevice::with(driver.clone()).registering_file();
    let builder = builder.clone().device(Arc::new(device.clone()));
    let (device, tier) = device.in_tier(&builder, Some(Tier::Host))?;
    assert_eq!(tier, Tier::Host);
    let told = device.copies().unwrap();
    Ok((builder.device(Arc::new(device)).build()?, told))
}

/// Asserts that the loader of `registering` delivers the same batches as the host. Returns the message, and the number
/// of bytes copied from the file.
fn assert_equals_host(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> (String, u64) {
    let wanted = on_host(builder.clone());
    let host = builder.clone().build().unwrap();
    let mixes: Vec<_> = host.epoch(0).unwrap().map(|batch| batch.unwrap().mix().cloned()).collect();
    let (loader, told) = registering(builder, driver).unwrap();
    let compared = driver.copied_from_maps();
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        let batch = batch.unwrap();
        assert_eq!(batch.mix(), mixes[found.len()].as_ref());
        found.push(finished(driver, &batch, Stream(step % 2)));
    }
    assert_found(driver, &found, &wanted, "");
    drop(loader);
    assert_eq!((driver.faults(), driver.mapped_bytes()), (Vec::new(), 0));
    (told, driver.copied_from_maps() - compared)
}

#[test]
fn batches_that_lie_in_the_file_as_they_are_come_from_there() {
    // The number of samples is not a multiple of the chunk size or the batch size.
    let (_folder, pack) = plain_pack(173);
    for (seed, words) in (0..).zip([
        "",
        "norm:imagenet",
        "norm:imagenet,chw,bf16",
        "f16,chw",
        "norm:imagenet,erase:0.9,mixup:0.4",
        "cutmix:1,chw",
    ]) {
        let driver = sim(seed);
        let (told, bytes) = assert_equals_host(&mapped(&pack, words, Order::Sequential), &driver);
        assert_eq!((told.as_str(), bytes), (FROM_FILE, ITEM * 160), "{words}");
        // Each chunk is a batch, except the last, which is too short and is left out, wherever it is in the order.
        let chunks = mapped(&pack, words, Order::Chunks).batch(8);
        let (told, bytes) = assert_equals_host(&chunks, &sim(seed));
        assert_eq!(told, FROM_FILE);
        assert!(bytes >= ITEM * 8, "{words} {bytes}");
    }
}

#[test]
fn batches_are_staged_where_they_do_not_lie_in_the_file_or_it_cannot_be_registered() {
    let (_folder, pack) = plain_pack(160);
    let (_with_text, texts) = pack_in_chunks(160, 8);
    let sequential = |words: &str| mapped(&pack, words, Order::Sequential);
    let with = |failure| Arc::new(SimDriver::new(1, Duration::ZERO, GIB).with_map_failure(failure));
    for (builder, driver, why) in [
        (mapped(&pack, "", Order::Random), sim(1), "the order is 'random'"),
        (mapped(&pack, "", window(4)), sim(1), "the order is 'window'"),
        (sequential("crop8,norm:imagenet"), sim(1), "the host changes the images"),
        (sequential("views:2,f16"), sim(1), "the host changes the images"),
        (sequential("flip,f16"), sim(1), "the host changes the images"),
        (mapped(&texts, "", Order::Sequential), sim(1), "compressed or variable-size"),
        (sequential("").access(Access::Direct), sim(1), "the access is direct, as requested"),
        (sequential(""), with(MapFailure::Refused), "cannot register"),
        (sequential(""), with(MapFailure::Garbled), "wrong bytes"),
    ] {
        let (told, bytes) = assert_equals_host(&builder, &driver);
        assert!(
            told.starts_with("batches are copied through staging memory, because ") && told.contains(why),
            "{told}"
        );
        assert_eq!(bytes, 0);
    }
    // With two packs, only one of the mappings would be registered.
    let (_other_folder, other) = plain_pack(160);
    let (told, bytes) = assert_equals_host(&sequential("").mix(other, 1.0), &sim(1));
    assert!(told.contains("several packs are mixed") && bytes == 0, "{told}");
}

#[test]
fn a_driver_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = plain_pack(160);
    let builder = mapped(&pack, "norm:imagenet", Order::Sequential);
    let errors = errors_of_failing(120, |driver| Ok(registering(&builder, driver)?.0));
    assert!(errors > 40, "{errors}");
}

#[test]
fn damaged_samples_of_the_file_follow_the_policy() {
    let (folder, pack) = plain_pack(160);
    let pack = damaged(&folder, pack, 100);
    let sequential = mapped(&pack, "norm:imagenet", Order::Sequential);
    let driver = sim(1);
    let (loader, _) = registering(&sequential, &driver).unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("checksum"), "{error}");
    drop(loader);
    assert_eq!(driver.faults(), []);
    for policy in [BadSamples::Skip, BadSamples::Substitute] {
        let builder = sequential.clone().bad_samples(policy);
        let (told, bytes) = assert_equals_host(&builder, &sim(2));
        // All batches except the one with the damaged sample.
        assert_eq!((told.as_str(), bytes), (FROM_FILE, ITEM * 144));
    }
}

#[test]
fn a_batch_keeps_the_file_registered_when_its_loader_is_gone() {
    let (_folder, pack) = plain_pack(160);
    let builder = mapped(&pack, "norm:imagenet", Order::Sequential);
    let wanted = on_host(builder.clone());
    let driver = Arc::new(SimDriver::new(3, Duration::from_millis(20), GIB));
    let (loader, _) = registering(&builder, &driver).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    drop(loader);
    assert_eq!(driver.mapped_bytes(), pack.file_len());
    let (memory, bytes) = finished(&driver, &batch, Stream(0))[0].unwrap();
    drop(batch);
    assert_eq!(driver.mapped_bytes(), 0);
    driver.finish_all();
    assert!(driver.read(memory, bytes) == wanted[0][0]);
    assert_eq!(driver.faults(), []);
}
