//! Staging with a simulated driver, which delays its work, poisons memory and records every broken rule.

mod batches;
mod disk;
mod files;
mod window;

use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use packds_format::{
    BlockBuilder, Codec, DType, Field, FieldKind, Filter, FooterParts, PackOptions, PackWriter, Role, Schema,
};
use packds_reader::augment::Augment;
use packds_reader::device::OwnSlots;
use packds_reader::loader::{BadSamples, LoadError, Loader, LoaderBuilder};
use packds_reader::plan::Order;
use packds_reader::{Access, Pack};
use tempfile::TempDir;

use super::*;
use crate::driver::{Fault, MapFailure, SimDriver};
use crate::{CudaDevice, Tier};

const SIDE: u64 = 12;
const ITEM: u64 = SIDE * SIDE * 3;
const GIB: u64 = 1 << 30;

/// A pack of `n` samples in chunks of 8: a colour image, a label, and text.
fn pack(n: u64) -> (TempDir, Arc<Pack>) {
    pack_in_chunks(n, 8)
}

/// Opens the bytes of a pack's file from memory.
fn in_memory(pack: &Pack) -> Arc<Pack> {
    let bytes = std::fs::read(pack.file_path()).unwrap();
    Arc::new(packds_reader::open_bytes("a name", bytes).unwrap())
}

fn pack_in_chunks(n: u64, chunk: u32) -> (TempDir, Arc<Pack>) {
    pack_with(n, chunk, Codec::None)
}

fn pack_with(n: u64, chunk: u32, codec: Codec) -> (TempDir, Arc<Pack>) {
    pack_of(n, chunk, codec, true)
}

/// A pack of `n` samples in chunks of `chunk`: a colour image, a label and, if `has_text` is set, text.
fn pack_of(n: u64, chunk: u32, codec: Codec, has_text: bool) -> (TempDir, Arc<Pack>) {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("a.pack");
    let mut image = Field::tensor("image", DType::U8, &[SIDE, SIDE, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    image.codec = codec;
    let mut fields = vec![image, Field::column("label", DType::I32, &[]).with_role(Role::Label)];
    if has_text {
        fields.push(Field::variable("text", FieldKind::String));
    }
    let options = PackOptions::new(Schema::new(fields).unwrap(), chunk);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    let samples = u64::from(chunk);
    for first in (0..n).step_by(usize::try_from(chunk).unwrap()) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + samples) {
            let pixels = block.tensor_mut(0).unwrap();
            for (at, pixel) in (0..ITEM).zip(pixels) {
                *pixel = packds_format::mix64(sample * ITEM + at).to_le_bytes()[0];
            }
            if has_text {
                let text = block.item_mut(2).unwrap();
                text.extend(sample.to_string().bytes());
            }
            let label = i32::try_from(sample).unwrap();
            block.set_column(1, &label.to_le_bytes()).unwrap();
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    let bytes = writer.finish(FooterParts::default()).unwrap().0;
    std::fs::write(&path, bytes).unwrap();
    (folder, Arc::new(packds_reader::open(path).unwrap()))
}

fn builder(pack: &Arc<Pack>, words: &str) -> LoaderBuilder {
    let builder =
        Loader::builder(Arc::clone(pack)).batch(16).seed(5).order(Order::Random).threads(NonZero::new(3).unwrap());
    match words {
        "" => builder,
        words => builder.augment(Augment::parse(words).unwrap()),
    }
}

fn sim(seed: u64) -> Arc<SimDriver> {
    Arc::new(SimDriver::new(seed, Duration::from_micros(300), GIB))
}

/// Takes a loader's batches on drivers that fail after 0 to `n` calls. Returns the number of runs with an error.
/// Resources must not leak.
fn errors_of_failing(n: u64, load: impl Fn(&Arc<SimDriver>) -> Result<Loader, LoadError>) -> usize {
    let fails = |calls: &u64| {
        let driver = sim(*calls);
        driver.fail_after(*calls);
        let failed = match load(&driver) {
            Err(error) => Some(error),
            Ok(loader) => loader.epoch(0).unwrap().find_map(Result::err),
        };
        if let Some(error) = &failed {
            let said = error.to_string();
            assert!(said.contains("the simulated device failed"), "{said}");
        }
        assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
        failed.is_some()
    };
    (0..n).filter(fails).count()
}

fn onto(builder: LoaderBuilder, driver: &Arc<SimDriver>) -> Result<Loader, LoadError> {
    let driver: Arc<dyn Driver> = driver.clone();
    builder.device(Arc::new(CudaDevice::with(driver))).build()
}

/// A field in the user's memory, as address and size.
type Kept = (DevicePtr, usize);

/// Queues the writing of a batch's fields into separate memory.
fn finished(driver: &SimDriver, batch: &Batch, stream: Stream) -> Vec<Option<Kept>> {
    let bytes = |field: &BatchField| match &field.finish {
        Some(finish) => {
            let values: usize = finish.shape().iter().product();
            batch.len() * values * usize::try_from(finish.dtype.size()).unwrap()
        }
        None => batch.len() * field.n_bytes(),
    };
    let kept: Vec<Option<Kept>> = batch
        .fields()
        .iter()
        .map(|field| {
            field.shape.as_ref()?;
            let bytes = bytes(field);
            let memory = driver.allocate(u64::try_from(bytes).unwrap(), "a field").unwrap();
            Some((memory, bytes))
        })
        .collect();
    let outputs: Vec<Option<DevicePtr>> = kept.iter().map(|kept| kept.map(|kept| kept.0)).collect();
    // SAFETY: each field has memory of its size, which is read when all work is done.
    unsafe { finish(batch, stream, &outputs).unwrap() };
    kept
}

/// An epoch's batches, made on the host: all bytes of each field.
fn on_host(builder: LoaderBuilder) -> Vec<Vec<Option<Vec<u8>>>> {
    let loader = builder.device(Arc::new(OwnSlots)).build().unwrap();
    let bytes = |batch: &Batch, field: &BatchField| {
        let view = batch.view(&field.name, field.view).ok()?;
        Some(view.bytes.to_vec())
    };
    let epoch = loader.epoch(0).unwrap();
    epoch
        .map(|batch| {
            let batch = batch.unwrap();
            batch.fields().iter().map(|field| bytes(&batch, field)).collect()
        })
        .collect()
}

/// Asserts that the user's memory is equal to the host's batches once all work is done.
fn assert_found(driver: &SimDriver, found: &[Vec<Option<Kept>>], wanted: &[Vec<Option<Vec<u8>>>], words: &str) {
    driver.finish_all();
    assert_eq!(found.len(), wanted.len());
    for (step, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        for (found, wanted) in found.iter().zip(wanted) {
            let found = found.and_then(|(memory, bytes)| driver.read(memory, bytes));
            assert!(found == *wanted, "{words}, step {step}");
        }
    }
}

/// Changes one byte of one sample in a pack's file, and opens the file again.
fn damaged(folder: &TempDir, pack: Arc<Pack>, sample: u64) -> Arc<Pack> {
    let at = pack.sample_places(sample).unwrap()[0].start;
    drop(pack);
    let path = folder.path().join("a.pack");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    Arc::new(packds_reader::open(path).unwrap())
}

/// Loads an epoch through a simulated GPU, on varying user streams, and compares it with the host's epoch.
fn assert_equals_host(pack: &Arc<Pack>, words: &str, seed: u64, slots: usize) {
    assert_like_host(&builder(pack, words), words, seed, slots);
}

fn assert_like_host(builder: &LoaderBuilder, words: &str, seed: u64, slots: usize) {
    let wanted = on_host(builder.clone());
    let driver = sim(seed);
    let slots = NonZero::new(slots).unwrap();
    let loader = onto(builder.clone().slots(slots), &driver).unwrap();
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        let batch = batch.unwrap();
        if step % 3 == 2 {
            batch.transfer().wait();
            assert!(batch.transfer().is_done());
        }
        found.push(finished(&driver, &batch, Stream(step % 2)));
    }
    assert_found(&driver, &found, &wanted, words);
    assert_eq!(driver.faults(), []);
}

#[test]
fn batches_on_the_gpu_are_those_of_the_host() {
    let (_folder, pack) = pack(160);
    let all = [
        "",
        "flip,norm:imagenet",
        "crop8+2,flip,norm:imagenet,chw",
        "crop8+2,flip,norm:imagenet,chw,bf16",
        "rrc8,flip,jitter:0.4/0.4/0.4/0.1,norm:imagenet,f16",
        "crop8,chw",
        "crop8,u8",
        "views:2,crop8+2,norm:imagenet,chw",
        "crop8,norm:imagenet,erase:0.5",
        "erase:0.9,cutout:5,erase:0.5",
        "views:2,crop8+2,norm:imagenet,chw,f16,erase:0.5,cutout:3",
        "mixup:0.4",
        "flip,norm:imagenet,mixup:0.4",
        "norm:imagenet,f16,mixup:0.4,chw",
        "crop8,norm:imagenet,bf16,mixup:1,cutmix:1,erase,chw",
        "flip,cutmix:1",
        "rrc8,norm:imagenet,cutout:4,cutmix:1",
    ];
    for (seed, words) in (0..).zip(all) {
        assert_equals_host(&pack, words, seed, 3);
    }
}

#[test]
fn what_is_erased_and_mixed_is_that_of_the_samples_that_are_left() {
    let (folder, _) = pack(96);
    let path = folder.path().join("a.pack");
    let mut bytes = std::fs::read(&path).unwrap();
    // This position is in the images of a chunk.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = Arc::new(packds_reader::open(path).unwrap());
    for policy in [BadSamples::Skip, BadSamples::Substitute] {
        let words = "norm:imagenet,chw,erase:0.9,mixup:0.4";
        let builder = builder(&damaged, words).bad_samples(policy);
        let host = builder.clone().build().unwrap();
        assert_eq!(host.epoch(0).unwrap().map(Result::unwrap).count(), 6);
        assert!(host.stats().bad_samples > 0);
        assert_like_host(&builder, words, 3, 2);
    }
}

#[test]
fn no_memory_changes_under_who_reads_it_however_late_the_gpu_is() {
    let (_folder, pack) = pack(320);
    for seed in 0..12 {
        let slots = 2 + usize::try_from(seed % 3).unwrap();
        assert_equals_host(&pack, "crop8+2,flip,norm:imagenet,chw", seed, slots);
    }
}

#[test]
fn images_are_staged_as_bytes() {
    let (_folder, pack) = pack(32);
    let driver = sim(1);
    let staged = |words: &str| {
        let loader = onto(builder(&pack, words), &driver).unwrap();
        let field = &loader.fields()[0];
        (field.dtype, field.finish.as_ref().map(|finish| finish.dtype))
    };
    assert_eq!(staged("norm:imagenet,f16"), (DType::U8, Some(DType::F16)));
    assert_eq!(staged("chw"), (DType::U8, Some(DType::U8)));
    assert_eq!(staged("flip"), (DType::U8, None));
    assert_eq!(staged("norm:imagenet,erase"), (DType::U8, Some(DType::F32)));
    assert_eq!(staged("bf16,mixup:0.2"), (DType::U8, Some(DType::Bf16)));
    assert_eq!(staged("cutmix:1"), (DType::U8, Some(DType::U8)));
}

#[test]
fn everything_is_given_back_also_in_the_middle_of_an_epoch() {
    let (_folder, pack) = pack(160);
    let driver = sim(3);
    let loader = onto(builder(&pack, "norm:imagenet"), &driver).unwrap();
    assert!(driver.in_use() > 0);
    let mut epoch = loader.epoch(0).unwrap();
    let kept: Vec<Batch> = (0..2).map(|_| epoch.next().unwrap().unwrap()).collect();
    let outputs = finished(&driver, &kept[0], Stream(0));
    drop(epoch);
    drop(loader);
    // Batches stay intact as long as they are held.
    let later = finished(&driver, &kept[1], Stream(1));
    drop(kept);
    driver.finish_all();
    for (memory, _) in outputs.into_iter().chain(later).flatten() {
        // SAFETY: the memory was allocated, and all work is done.
        unsafe { driver.free(memory) };
    }
    assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
}

#[test]
fn who_waits_has_the_whole_batch() {
    let (_folder, pack) = pack(64);
    let wanted = on_host(builder(&pack, "norm:imagenet"));
    let driver = sim(4);
    let loader = onto(builder(&pack, "norm:imagenet"), &driver).unwrap();
    let bytes = wanted[0][0].as_ref().unwrap().len();
    let memory = driver.allocate(u64::try_from(bytes).unwrap(), "images").unwrap();
    for (batch, wanted) in loader.epoch(0).unwrap().zip(wanted) {
        // SAFETY: the memory has this many bytes, and is read afterwards.
        unsafe { finish_and_wait(&batch.unwrap(), &[Some(memory), None, None]) }.unwrap();
        assert!(driver.read(memory, bytes) == wanted[0]);
    }
    assert_eq!(driver.faults(), []);
}

#[test]
fn a_batch_may_be_written_twice_on_two_streams() {
    let (_folder, pack) = pack(160);
    let driver = sim(9);
    let loader = onto(builder(&pack, "norm:imagenet,chw").slots(NonZero::new(2).unwrap()), &driver);
    let loader = loader.unwrap();
    let mut both = Vec::new();
    for batch in loader.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let first = finished(&driver, &batch, Stream(0))[0].unwrap();
        both.push((first, finished(&driver, &batch, Stream(1))[0].unwrap()));
    }
    driver.finish_all();
    for ((first, n), (second, _)) in both {
        assert!(driver.read(first, n) == driver.read(second, n));
    }
    assert_eq!(driver.faults(), []);
}

#[test]
fn a_gpu_without_the_memory_is_told_when_the_loader_is_made() {
    let (_folder, pack) = pack(32);
    let driver = Arc::new(SimDriver::new(1, Duration::ZERO, 1000));
    let error = onto(builder(&pack, ""), &driver).unwrap_err().to_string();
    assert!(error.contains("bytes of free memory for staged batches"), "{error}");
    assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
}

#[test]
fn a_driver_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = pack(160);
    let errors =
        errors_of_failing(120, |driver| onto(builder(&pack, "norm:imagenet").slots(NonZero::new(2).unwrap()), driver));
    assert!(errors > 20, "{errors}");
}

#[test]
fn the_rings_memory_is_asked_for_from_the_node_of_the_gpu() {
    let (_folder, pack) = pack(32);
    let node_of = |driver: SimDriver| {
        let loader = onto(builder(&pack, "norm:imagenet"), &Arc::new(driver)).unwrap();
        assert_eq!(loader.epoch(0).unwrap().map(Result::unwrap).count(), 2);
        loader.stats().numa_node
    };
    let driver = || SimDriver::new(1, Duration::ZERO, GIB);
    assert_eq!(node_of(driver()), None);
    // This node does not exist. Loading still works, and the statistics report no node.
    assert_eq!(node_of(driver().on_node(1000)), None);
    // Some sandboxes forbid the system call, so node 0 is expected only if it succeeds here.
    let may = Arena::new(1, 1).unwrap().prefer_node(0);
    assert_eq!(node_of(driver().on_node(0)), may.ok().map(|()| 0));
}

#[test]
fn batches_of_other_loaders_and_wrong_outputs_are_refused() {
    let (_folder, pack) = pack(32);
    let host = builder(&pack, "").build().unwrap();
    let batch = host.epoch(0).unwrap().next().unwrap().unwrap();
    // SAFETY: nothing is written.
    let error = unsafe { finish(&batch, Stream(0), &[]) }.unwrap_err();
    assert!(error.to_string().contains("without a CUDA device"), "{error}");
    let driver = sim(1);
    let loader = onto(builder(&pack, ""), &driver).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    // SAFETY: nothing is written.
    let error = unsafe { finish(&batch, Stream(0), &[None]) }.unwrap_err();
    assert!(error.to_string().contains("each of 3 fields, found 1"), "{error}");
}

/// Like `assert_equals_host`, with the whole dataset on the GPU.
fn assert_resident_equals_host(pack: &Arc<Pack>, words: &str, seed: u64) {
    let wanted = on_host(builder(pack, words));
    let driver = sim(seed);
    let device = CudaDevice::with(driver.clone());
    let builder = builder(pack, words).slots(NonZero::new(2).unwrap());
    let (device, tier) = device.in_tier(&builder.clone().device(Arc::new(device.clone())), None).unwrap();
    assert_eq!(tier, Tier::Resident, "{words}");
    let loader = builder.device(Arc::new(device)).build().unwrap();
    let image = &loader.fields()[0];
    assert_eq!((image.n_bytes(), image.finish.as_ref().unwrap().windows.is_some()), (0, true));
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        let batch = batch.unwrap();
        assert!(batch.field("image").unwrap_err().to_string().contains("on the device"));
        found.push(finished(&driver, &batch, Stream(step % 2)));
    }
    assert_found(&driver, &found, &wanted, words);
    drop(loader);
    assert_eq!(driver.faults(), []);
}

#[test]
fn a_resident_set_gives_the_hosts_batches() {
    // The number of samples is not a multiple of the chunk size or the batch size.
    let (_folder, pack) = pack(173);
    let all = [
        "",
        "flip",
        "norm:imagenet",
        "flip,vflip,norm:imagenet,chw",
        "crop8+2,flip,norm:imagenet,chw,bf16",
        "crop10+4:reflect,flip,f16",
        "crop16?,norm:imagenet",
        "center7,vflip:0.5,chw",
        "views:2,crop8+2:edge,flip,norm:imagenet,chw",
        "views:2,crop8+2,flip,norm:imagenet,erase:0.5,cutout:3",
        "crop8+2,flip,norm:imagenet,bf16,mixup:0.4,erase",
        "flip,mixup:0.4,cutmix:1",
        "rrc8,flip",
        "rrc7x21,flip,vflip,norm:imagenet,chw",
        "views:2,rrc12,norm:imagenet,bf16,erase",
        "resize20,center14,norm:imagenet,f16",
        "resize8,crop8+3,flip",
        "resize5,center9,chw",
        "flip,jitter:0.4/0/0.4/0.1",
        "rrc8,flip,jitter:0.4/0.4/0.4/0.1,gray:0.3,norm:imagenet,bf16",
        "views:2,crop8+4,jitter:0.8/0.8/0.8/0.2/0.8,gray:0.2,solarize:128/0.2,norm:imagenet,chw",
        "crop8+2,solarize:90/0.5,jitter:0/0.9/0/0,jitter:0.5/0.5/0/0,erase,mixup:0.4,cutmix:1",
    ];
    for (seed, words) in (0..).zip(all) {
        assert_resident_equals_host(&pack, words, seed);
    }
}

#[test]
fn what_cannot_be_resident_is_on_the_host_or_refused() {
    let (_folder, pack) = pack(32);
    let device = CudaDevice::with(sim(1));
    let jitters = ["jitter:0.4/0/0/0"; 32].join(",");
    for words in ["rrc8,jitter:0.4/0/0/0,blur:3/0.1-2", "rotate:10", &format!("{jitters},gray")] {
        let builder = builder(&pack, words).device(Arc::new(device.clone()));
        assert_eq!(device.in_tier(&builder, None).unwrap().1, Tier::Host, "{words}");
        let error = device.in_tier(&builder, Some(Tier::Resident)).unwrap_err();
        assert!(error.to_string().contains("use tier='host'"), "{error}");
    }
    // The images fill the whole memory of this GPU.
    let bytes = ITEM * 32;
    let small = CudaDevice::with(Arc::new(SimDriver::new(1, Duration::ZERO, bytes)));
    let flips = builder(&pack, "flip");
    let builder = flips.clone().device(Arc::new(small.clone()));
    assert_eq!(small.in_tier(&builder, None).unwrap().1, Tier::Host);
    let error = small.in_tier(&builder, Some(Tier::Resident)).unwrap_err();
    assert!(error.to_string().contains("bytes of free memory"), "{error}");
    let builder = flips.device(Arc::new(device.clone()));
    assert_eq!(device.in_tier(&builder, Some(Tier::Host)).unwrap().1, Tier::Host);
    let error = device.in_tier(&builder, Some(Tier::HostWindow));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("needs order 'window'"), "{error}");
    let windows = builder.order(Order::Window { chunks: Some(2) });
    for wanted in [Tier::HostWindow, Tier::Host] {
        let found = device.in_tier(&windows, Some(wanted)).unwrap().1;
        assert_eq!(found, wanted);
    }
}

#[test]
fn a_set_that_is_half_loaded_is_given_back() {
    let (_folder, pack) = pack(160);
    for calls in 0..60 {
        let driver = sim(calls);
        let device = CudaDevice::with(driver.clone());
        let builder = builder(&pack, "flip").device(Arc::new(device.clone()));
        driver.fail_after(calls);
        drop(device.in_tier(&builder, None));
        assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
    }
}
