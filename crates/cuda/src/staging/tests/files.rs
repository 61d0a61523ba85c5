//! JPEG files that the GPU decodes. The simulated driver produces the same pixels as the host, so batches are equal.

use packds_format::Coding;
use packds_pixels::{encode_jpeg, encode_png};
use packds_reader::device::FileLimits;
use packds_reader::loader::Probe;
use packds_reader::plan::Choice;

use super::*;

const LIMITS: FileLimits = FileLimits { file_bytes: 3000, pixel_bytes: 40 * 40 * 3, side: 60 };

fn pixels(sample: u64, n: u32) -> Vec<u8> {
    let byte = |at: u64| (at / 11 + sample * 3).to_le_bytes()[0];
    (0..n.into()).map(byte).collect()
}

/// A sample's file, its format and size, and whether the device should decode it.
fn file(sample: u64) -> (Vec<u8>, Coding, (u32, u32, u8), bool) {
    let vary = u32::try_from(sample % 7).unwrap();
    let jpeg = |width: u32, height: u32, channels: u8| {
        let pixels = pixels(sample, width * height * u32::from(channels));
        let file = encode_jpeg(width, height, channels, &pixels, 90).unwrap();
        (file, Coding::Jpeg, (width, height, channels))
    };
    let ((file, coding, size), is_devices) = match sample % 10 {
        // The device does not decode files 3 to 7: gray, another format, too many pixels, a side that is too long, too
        // many bytes.
        3 => (jpeg(20, 20 + vary, 1), false),
        4 => {
            let pixels = pixels(sample, 12 * 10 * 3);
            let file = encode_png(12, 10, 3, &pixels).unwrap();
            ((file, Coding::Png, (12, 10, 3)), false)
        }
        5 => (jpeg(41, 40, 3), false),
        6 => (jpeg(61, 9, 3), false),
        7 => {
            let (mut file, coding, size) = jpeg(40, 40, 3);
            let comment = [0xFF, 0xFE, 0x0B, 0xB8];
            let text = std::iter::repeat_n(b'.', 0x0BB8 - 2);
            file.splice(2..2, comment.into_iter().chain(text));
            ((file, coding, size), false)
        }
        8 => (jpeg(40, 40, 3), true),
        9 => (jpeg(60, 9, 3), true),
        _ => (jpeg(9 + vary, 33 - 2 * vary, 3), true),
    };
    (file, coding, size, is_devices)
}

/// The text that marks a file that a decoder should reject.
const MARK: &[u8] = b"not for the GPU";

/// Adds a comment with the mark to a file.
fn marked(mut file: Vec<u8>) -> Vec<u8> {
    let comment = [0xFF, 0xFE, 0, u8::try_from(MARK.len() + 2).unwrap()];
    file.splice(2..2, comment.into_iter().chain(MARK.iter().copied()));
    file
}

/// A pack of `n` files in chunks of 8. The file of sample `bad` is truncated.
fn file_pack(n: u64, bad: Option<u64>) -> (TempDir, Arc<Pack>) {
    marked_pack(n, bad, |_| false)
}

fn marked_pack(n: u64, bad: Option<u64>, has_mark: impl Fn(u64) -> bool) -> (TempDir, Arc<Pack>) {
    pack_of(n, |sample| {
        let (mut file, coding, size, _) = file(sample);
        if has_mark(sample) {
            file = marked(file);
        }
        if Some(sample) == bad {
            file.truncate(file.len() / 2);
        }
        (file, coding, size)
    })
}

fn pack_of(n: u64, file_of: impl Fn(u64) -> (Vec<u8>, Coding, (u32, u32, u8))) -> (TempDir, Arc<Pack>) {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("a.pack");
    let of = |mut field: Field| {
        field.of = Some("image".to_owned());
        field
    };
    let fields = vec![
        Field::variable("image", FieldKind::Image).with_role(Role::Image),
        of(Field::column("coding", DType::U8, &[]).with_role(Role::Coding)),
        of(Field::column("width", DType::U32, &[]).with_role(Role::Width)),
        of(Field::column("height", DType::U32, &[]).with_role(Role::Height)),
        of(Field::column("channels", DType::U8, &[]).with_role(Role::Channels)),
        Field::column("label", DType::I32, &[]).with_role(Role::Label),
    ];
    let options = PackOptions::new(Schema::new(fields).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..n).step_by(8) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + 8) {
            let (file, coding, (width, height, channels)) = file_of(sample);
            block.item_mut(0).unwrap().extend(&file);
            block.set_column(1, &[coding.number()]).unwrap();
            block.set_column(2, &width.to_le_bytes()).unwrap();
            block.set_column(3, &height.to_le_bytes()).unwrap();
            block.set_column(4, &[channels]).unwrap();
            let label = i32::try_from(sample).unwrap();
            block.set_column(5, &label.to_le_bytes()).unwrap();
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    let bytes = writer.finish(FooterParts::default()).unwrap().0;
    std::fs::write(&path, bytes).unwrap();
    (folder, Arc::new(packds_reader::open(path).unwrap()))
}

fn decoding(builder: &LoaderBuilder, driver: &Arc<SimDriver>) -> Result<Loader, LoadError> {
    let device = CudaDevice::with(driver.clone()).decoding_jpeg(builder, Some(LIMITS))?;
    builder.clone().device(Arc::new(device)).build()
}

/// Asserts that batches with files decoded by the device are equal to the host's batches. Returns the number of images
/// that the host decoded, and the number of bad samples.
fn assert_equals_host(builder: &LoaderBuilder, seed: u64) -> (u64, u64) {
    assert_equals_host_by(&sim(seed), builder, seed)
}

fn assert_equals_host_by(driver: &Arc<SimDriver>, builder: &LoaderBuilder, seed: u64) -> (u64, u64) {
    let wanted = on_host(builder.clone());
    driver.refuse_jpeg_with(MARK);
    let loader = decoding(builder, driver).unwrap();
    let mut found = Vec::new();
    for (step, batch) in (0..).zip(loader.epoch(0).unwrap()) {
        let batch = batch.unwrap();
        let refused = batch.field("image").unwrap_err().to_string();
        assert!(refused.contains("decoded on the device"), "{refused}");
        found.push(finished(driver, &batch, Stream(step % 2)));
    }
    assert_found(driver, &found, &wanted, &format!("seed {seed}"));
    let stats = loader.stats();
    drop(loader);
    assert_eq!(driver.faults(), []);
    (stats.host_decoded, stats.bad_samples)
}

/// A pack of pictures. The first one is 9,000 pixels wide.
fn wide_pack() -> (TempDir, Arc<Pack>) {
    let width = |sample| if sample == 0 { 9000 } else { 30 };
    pack_of(4, |sample| {
        let (width, n) = (width(sample), width(sample) * 2 * 3);
        let file = encode_jpeg(width, 2, 3, &pixels(0, n), 90).unwrap();
        (file, Coding::Jpeg, (width, 2, 3))
    })
}

#[test]
fn files_of_any_size_become_the_hosts_images_and_what_is_not_the_devices_the_host_decodes() {
    let (_folder, pack) = file_pack(80, None);
    let of_host = (0..80).filter(|sample| !file(*sample).3).count();
    assert_eq!(of_host, 40);
    let all = [
        "rrc9x7",
        "rrc12,flip,norm:imagenet,chw",
        "rrc8,flip,jitter:0.4/0.4/0.4/0.1,norm:imagenet,f16",
        "rrc8,flip,norm:imagenet,erase:0.5",
        "rrc8,norm:imagenet,mixup:0.4,bf16",
    ];
    for (seed, words) in (0..).zip(all) {
        for slots in [2, 4] {
            let builder = builder(&pack, words).slots(NonZero::new(slots).unwrap());
            assert_eq!(assert_equals_host(&builder, seed), (40, 0), "{words}");
        }
    }
}

#[test]
fn a_decoder_that_writes_before_its_stream_gets_there_changes_no_batch_that_is_still_read() {
    let (_folder, pack) = marked_pack(160, None, |sample| sample % 10 == 1);
    for seed in 0..6 {
        for slots in [2, 4] {
            let builder = builder(&pack, "rrc8,flip,norm:imagenet");
            let builder = builder.slots(NonZero::new(slots).unwrap());
            let driver = sim(seed);
            driver.decode_early();
            assert_equals_host_by(&driver, &builder, seed);
        }
    }
}

#[test]
fn damaged_files_are_left_out_or_replaced_as_on_the_host() {
    let (_folder, pack) = file_pack(48, Some(21));
    assert!(file(21).3);
    for policy in [BadSamples::Skip, BadSamples::Substitute] {
        let builder = builder(&pack, "rrc8,flip,norm:imagenet").bad_samples(policy);
        assert_eq!(assert_equals_host(&builder, 3).1, 1);
    }
    let failed = decoding(&builder(&pack, "rrc8"), &sim(1)).unwrap();
    let error = failed.epoch(0).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("21"), "{error}");
}

#[test]
fn files_that_the_decoder_refuses_the_host_decodes() {
    let has_mark = |sample: u64| sample % 5 == 1;
    let (_folder, pack) = marked_pack(80, None, has_mark);
    let is_of_host = |sample: &u64| !file(*sample).3 || has_mark(*sample);
    let n = (0..80).filter(is_of_host).count() as u64;
    for (seed, slots) in (0..).zip([2, 3, 4]) {
        let builder = builder(&pack, "rrc8,flip,norm:imagenet,erase:0.5").slots(NonZero::new(slots).unwrap());
        assert_eq!(assert_equals_host(&builder, seed), (n, 0));
    }
}

#[test]
fn refused_files_beside_damaged_ones_leave_every_label_with_its_image() {
    // The damaged file is at different positions in its batch.
    for bad in [1, 10, 21, 41] {
        let (_folder, pack) = marked_pack(48, Some(bad), |sample| sample % 4 == 0 && file(sample).3);
        for policy in [BadSamples::Skip, BadSamples::Substitute] {
            let builder = builder(&pack, "rrc8,flip,norm:imagenet").bad_samples(policy);
            assert_eq!(assert_equals_host(&builder, bad).1, 1);
        }
    }
}

#[test]
fn a_file_that_several_batches_have_at_a_time_may_be_refused_by_each() {
    let (_folder, pack) = marked_pack(2, None, |sample| sample == 1);
    let often = Choice::weighted(pack.n_samples(), |_| 160.0).unwrap();
    for seed in 0..4 {
        let builder = builder(&pack, "rrc8,flip").choice(often.clone());
        let builder = builder.slots(NonZero::new(6).unwrap());
        assert!((100..220).contains(&assert_equals_host(&builder, seed).0));
    }
}

#[test]
fn a_refused_file_is_refused_once_in_all_epochs() {
    let (_folder, pack) = marked_pack(48, None, |sample| sample == 21);
    let driver = sim(5);
    let loader = decoding(&builder(&pack, "rrc8"), &driver).unwrap();
    driver.refuse_jpeg_with(MARK);
    let epoch = |number| {
        let batches = loader.epoch(number).unwrap().map(Result::unwrap);
        assert_eq!(batches.map(|batch| batch.len()).sum::<usize>(), 48);
    };
    epoch(0);
    assert_eq!(driver.refused_jpeg(), 1);
    epoch(1);
    assert_eq!(driver.refused_jpeg(), 1);
}

#[test]
fn a_decoder_that_fails_at_any_call_is_an_error_and_nothing_is_lost() {
    let (_folder, pack) = file_pack(48, None);
    let builder = builder(&pack, "rrc8,flip").slots(NonZero::new(2).unwrap());
    for is_early in [false, true] {
        let errors = errors_of_failing(60, |driver| {
            if is_early {
                driver.decode_early();
            }
            decoding(&builder, driver)
        });
        assert!((40..60).contains(&errors), "{errors}");
    }
}

#[test]
fn what_a_failing_decoder_has_queued_is_done_before_its_memory_is_used_again() {
    let (_folder, pack) = file_pack(160, None);
    for seed in 0..6 {
        let driver = sim(seed);
        let loader = decoding(&builder(&pack, "rrc8,flip"), &driver).unwrap();
        driver.fail_decoding();
        let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
        let told = error.to_string();
        assert!(told.contains("the simulated decoder has no memory"), "{told}");
        drop(loader);
        assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
    }
}

#[test]
fn what_a_device_decodes_no_files_for_is_refused() {
    let (_folder, files) = file_pack(16, None);
    let (_other, raw) = pack(16);
    for (pack, words, why) in [
        (&files, "resize20,center8", "random areas"),
        (&files, "crop8+20", "random areas"),
        (&files, "rrc8,blur:3/0.1-2", "neighbouring pixels"),
        (&files, "views:2,rrc8", "several views"),
        (&files, "", "nothing is augmented"),
        (&raw, "rrc8", "the images are pixels, not files"),
    ] {
        let error = decoding(&builder(pack, words), &sim(1)).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(why) && told.contains("omit jpeg"), "{told}");
    }
    let device = CudaDevice::with(sim(1));
    for asking in [device.clone().registering_file(), device.clone().reading_from_disk()] {
        let refused = asking.decoding_jpeg(&builder(&files, "rrc8"), Some(LIMITS));
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("tier"), "{told}");
    }
    let limits = FileLimits { side: 60_000, ..LIMITS };
    let refused = device.decoding_jpeg(&builder(&files, "rrc8"), Some(limits));
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("take too much memory: omit jpeg"), "{told}");
}

#[test]
fn limits_that_nobody_gives_follow_from_the_files_and_the_room() {
    let (_folder, pack) = file_pack(192, None);
    let builder = builder(&pack, "rrc8,flip").slots(NonZero::new(3).unwrap());
    // The limits may leave out 1 of 192 samples. Here they still include the largest file, the most pixels and the
    // longest side.
    let longest = (0..192).map(|sample| file(sample).0.len()).max().unwrap();
    let survey = Probe::new(&builder).survey_files(u64::MAX).unwrap();
    let limits = survey.limits;
    assert_eq!(limits.file_bytes, longest.next_multiple_of(4096));
    assert_eq!(limits.pixel_bytes, (41 * 40 * 3_u32).next_multiple_of(256));
    assert_eq!(limits.side, 61);
    // The device decodes all files except the gray files and the PNG files.
    assert_eq!((survey.n_inspected, survey.n_admitted, survey.lacks_memory), (192, 154, false));
    let less = Probe::new(&builder).survey_files(3 * 16 * 6000).unwrap();
    assert!(less.limits.pixel_bytes < 5120 && less.lacks_memory && less.n_admitted < 154);
    // There are three slots of 16 images, with space for 1000 bytes each.
    let less = Probe::new(&builder).survey_files(3 * 16 * 1000).unwrap_err().to_string();
    assert!(less.contains("its memory is too small"), "{less}");
    let device = CudaDevice::with(sim(4)).decoding_jpeg(&builder, None);
    let device = device.unwrap();
    assert!(device.why().unwrap().contains("5120 bytes of pixels and 61 pixels"));
    let loader = builder.device(Arc::new(device)).build().unwrap();
    let batches = loader.epoch(0).unwrap().map(Result::unwrap);
    assert_eq!(batches.map(|batch| batch.len()).sum::<usize>(), 192);
    // The host decodes only gray files and PNG files.
    let of_host = (0..192).filter(|sample| matches!(sample % 10, 3 | 4));
    assert_eq!(loader.stats().host_decoded, of_host.count() as u64);
}

#[test]
fn a_side_whose_weights_take_too_much_is_no_limit() {
    let (_folder, pack) = wide_pack();
    let builder = builder(&pack, "rrc8");
    let survey = Probe::new(&builder).survey_files(u64::MAX).unwrap();
    let limits = survey.limits;
    assert_eq!((survey.n_inspected, survey.n_admitted), (4, 3));
    assert!((1000..9000).contains(&limits.side), "{limits:?}");
    assert!(Probe::new(&builder).decodable(limits).is_ok());
}

#[test]
fn a_device_made_for_smaller_batches_is_refused() {
    let (_folder, pack) = file_pack(48, None);
    let driver = sim(1);
    let made_for = builder(&pack, "rrc8").batch(15);
    let device = CudaDevice::with(driver.clone()).decoding_jpeg(&made_for, Some(LIMITS));
    let larger = builder(&pack, "rrc8").device(Arc::new(device.unwrap()));
    let loader = larger.build().unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
    let told = error.to_string();
    assert!(
        told.contains("the batch has 16 files, but the device was made for a loader with a batch size of 15"),
        "{told}"
    );
    drop(loader);
    assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
}

#[test]
fn a_gpu_without_room_for_pixels_is_told_when_the_loader_is_made() {
    let (_folder, pack) = file_pack(16, None);
    let driver = Arc::new(SimDriver::new(1, Duration::ZERO, 1_500_000));
    // A ring of default length has fewer slots.
    let loader = decoding(&builder(&pack, "rrc8"), &driver).unwrap();
    assert!((2..16).contains(&loader.stats().slots));
    drop(loader);
    let counted = builder(&pack, "rrc8").slots(NonZero::new(16).unwrap());
    let error = decoding(&counted, &driver).unwrap_err();
    assert!(error.to_string().contains("staged batches"), "{error}");
    assert_eq!((driver.in_use(), driver.faults()), (0, Vec::new()));
}

#[test]
fn limits_follow_from_all_packs_of_a_mixture() {
    let (_small, small) = pack_of(8, |sample| {
        let file = encode_jpeg(6, 6, 3, &pixels(sample, 108), 90).unwrap();
        (file, Coding::Jpeg, (6, 6, 3))
    });
    let (_large, large) = file_pack(16, None);
    for (first, second) in [(&small, &large), (&large, &small)] {
        let builder = Loader::builder(Arc::clone(first)).batch(4);
        let builder = builder.mix(Arc::clone(second), 0.5);
        let builder = builder.augment(Augment::parse("rrc4").unwrap());
        let survey = Probe::new(&builder).survey_files(u64::MAX).unwrap();
        assert_eq!((survey.n_inspected, survey.limits.side), (24, 61));
    }
}

#[test]
fn a_pack_without_files_for_the_device_is_refused() {
    let (_folder, pack) = pack_of(8, |sample| {
        let file = encode_png(6, 6, 3, &pixels(sample, 108)).unwrap();
        (file, Coding::Png, (6, 6, 3))
    });
    let device = CudaDevice::with(sim(1));
    let refused = device.decoding_jpeg(&builder(&pack, "rrc4"), None);
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("none of 8 inspected images"), "{told}");
}
