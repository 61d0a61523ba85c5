//! Tests of the doctor: its interpretation of numbers, and whether it finds a bottleneck that is added to a loader.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    AsBytes, Case, Facts, Level, LoaderOption, Loading, Options, Overlap, Stage, Stages, Step, Time, diagnose, examine,
};
use packds_format::{
    BlockBuilder, Coding, DType, Field, FieldKind, FooterParts, PackOptions, PackWriter, Role, Schema,
};
use packds_reader::Pack;
use packds_reader::augment::Augment;
use packds_reader::device::SimDevice;
use packds_reader::loader::{Batch, Loader, LoaderBuilder};
use tempfile::TempDir;

/// Times of stages, in the order of [`Stage::ALL`].
fn stages([step, copy, transform, decode, read]: [f64; 5]) -> Stages {
    Stages { step, copy, transform, decode, read }
}

/// A training run whose loader has these stages, on 2 of 8 cores, in batches of 100.
fn case(times: [f64; 5]) -> Case {
    let [step, copy, transform, decode, read] = times.map(Time::exactly);
    let cpu = transform.ms + decode.ms;
    Case {
        batch: 100,
        overlap: Overlap::Everything,
        step,
        step_is_modelled: true,
        copy,
        loading: Loading {
            processed: Time::exactly(transform.ms / 10.0),
            decoded: transform,
            raw: Time::exactly(cpu),
            page_cache: Time::exactly(cpu),
            source: Time::exactly(cpu.max(read.ms)),
        },
        read,
        trained: None,
        facts: Facts { threads: 2, cores: 8, growth: Some(5.0), ..Facts::default() },
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found} {expected}");
}

#[test]
fn stages_come_back_out_of_a_case() {
    let times = [7.0, 2.0, 3.0, 20.0, 5.0];
    assert_eq!(case(times).stages(), stages(times));
}

#[test]
fn the_slowest_track_binds_and_in_it_the_slowest_stage() {
    for (times, binds) in [
        ([50.0, 1.0, 10.0, 20.0, 5.0], Stage::Step),
        ([10.0, 40.0, 10.0, 20.0, 5.0], Stage::Copy),
        ([10.0, 1.0, 30.0, 20.0, 5.0], Stage::Transform),
        ([10.0, 1.0, 10.0, 60.0, 5.0], Stage::Decode),
        ([10.0, 1.0, 10.0, 20.0, 90.0], Stage::Read),
        // Transforming and decoding are each shorter than reading, but they share the threads.
        ([10.0, 1.0, 20.0, 25.0, 40.0], Stage::Decode),
    ] {
        let report = diagnose(case(times));
        assert_eq!(report.binds, binds, "{times:?}");
        near(report.images_per_s, 1e5 / Overlap::Everything.batch_ms(&stages(times)));
    }
}

#[test]
fn what_the_step_all_but_hides_does_not_bind() {
    assert_eq!(diagnose(case([100.0, 1.0, 4.0, 99.0, 5.0])).binds, Stage::Step);
    assert_eq!(diagnose(case([100.0, 1.0, 4.0, 105.0, 5.0])).binds, Stage::Decode);
}

#[test]
fn less_goes_on_side_by_side_in_other_loaders() {
    let times = stages([10.0, 4.0, 3.0, 5.0, 6.0]);
    let of = |overlap: Overlap| (overlap.batch_ms(&times), overlap.binds(&times));
    assert_eq!(of(Overlap::Everything), (10.0, Stage::Step));
    assert_eq!(of(Overlap::Loading), (14.0, Stage::Step));
    assert_eq!(of(Overlap::Workers), (14.0, Stage::Step));
    assert_eq!(of(Overlap::Nothing), (28.0, Stage::Step));
    let times = stages([2.0, 4.0, 3.0, 5.0, 6.0]);
    let of = |overlap: Overlap| (overlap.batch_ms(&times), overlap.binds(&times));
    assert_eq!(of(Overlap::Loading), (8.0, Stage::Decode));
    assert_eq!(of(Overlap::Workers), (14.0, Stage::Read));
    assert_eq!(of(Overlap::Nothing), (20.0, Stage::Read));
}

#[test]
fn the_ladder_goes_down_from_the_step_to_the_source() {
    let mut case = case([10.0, 20.0, 30.0, 40.0, 100.0]);
    case.loading.page_cache = Time::exactly(80.0);
    // This is noise, because it is slower than a level with less data cached.
    case.loading.processed = Time::exactly(35.0);
    let ladder = diagnose(case).ladder;
    let rates: Vec<f64> = ladder.iter().map(|rung| rung.images_per_s).collect();
    let ms = [10.0, 20.0, 30.0, 30.0, 70.0, 80.0, 100.0];
    for ((rung, level), ms) in ladder.iter().zip(Level::ALL).zip(ms) {
        assert_eq!(rung.level, level);
        near(rung.images_per_s, 1e5 / ms);
    }
    assert!(rates.is_sorted_by(|a, b| a >= b));
}

#[test]
fn advice_is_sorted_by_what_it_gives_and_never_faster_than_the_step() {
    let mut case = case([10.0, 1.0, 10.0, 30.0, 5.0]);
    case.facts.needed = Some(0.5);
    let report = diagnose(case);
    let found: Vec<(&str, f64)> = report.advice.iter().map(|advice| (advice.change, advice.images_per_s)).collect();
    // Expected ms per batch. Threads: 40 / 4 = 10, as long as the step. Image size: 10 + 15 = 25. Storage mode: 25, the
    // time to read the pixels.
    assert_eq!(found.len(), 3, "{found:?}");
    for ((change, rate), (expected, ms)) in
        found.into_iter().zip([("threads", 10.0), ("image size", 25.0), ("storage mode", 25.0)])
    {
        assert_eq!(change, expected);
        near(rate, 1e5 / ms);
    }
    let threads = NonZero::new(8).map(LoaderOption::Threads);
    assert_eq!(report.advice[0].option, threads);
}

#[test]
fn a_training_that_the_step_binds_gets_no_advice() {
    assert_eq!(diagnose(case([100.0, 1.0, 10.0, 30.0, 5.0])).advice, []);
}

#[test]
fn what_no_stage_explains_is_told_and_no_advice_counts_on_it() {
    // The stages explain 30 of 100 ms. Reading takes 8 ms, so a disk twice as fast saves 4 ms.
    let mut case = case([10.0, 0.0, 5.0, 7.0, 8.0]);
    case.overlap = Overlap::Nothing;
    case.trained = Some(Time::exactly(100.0));
    case.facts = Facts::default();
    let report = diagnose(case.clone());
    near(report.unexplained_ms, 70.0);
    assert_eq!(report.advice, [], "a gain of 4 % is not reported");
    // Reading takes 60 of 100 ms.
    case.read = Time::exactly(60.0);
    case.loading.source = Time::exactly(72.0);
    let report = diagnose(case.clone());
    near(report.unexplained_ms, 18.0);
    let found: Vec<&str> = report.advice.iter().map(|advice| advice.change).collect();
    assert_eq!(found, ["memory", "disk"]);
    near(report.advice[1].images_per_s, 1e5 / 70.0);
    // This is within the spread of the runs, so it may be noise.
    case.trained = Some(Time { low: 50.0, ..Time::exactly(100.0) });
    near(diagnose(case).unexplained_ms, 0.0);
}

#[test]
fn a_step_that_is_slower_alone_than_in_training_does_not_contradict_it() {
    let mut case = case([30.0, 5.0, 4.0, 4.0, 4.0]);
    case.overlap = Overlap::Loading;
    case.trained = Some(Time::exactly(20.0));
    let report = diagnose(case);
    near(report.possible_images_per_s, 1e5 / 20.0);
    assert_eq!((report.binds, report.stages.step), (Stage::Step, 20.0));
    let rates = report.ladder.iter().map(|rung| rung.images_per_s);
    assert!(rates.is_sorted_by(|a, b| a >= b));
    assert_eq!(report.advice, []);
}

#[test]
fn slow_copies_want_fewer_bytes() {
    let mut case = case([10.0, 40.0, 12.0, 0.0, 5.0]);
    case.facts.is_f32 = true;
    case.facts.as_bytes = Some(AsBytes { bytes: 0.25, transform: 6.0 });
    let advice = diagnose(case).advice;
    let found: Vec<&str> = advice.iter().map(|advice| advice.change).collect();
    assert_eq!(found, ["normalization", "dtype"]);
    // The step is the next limit.
    near(advice[0].images_per_s, 1e4);
    near(advice[1].images_per_s, 1e5 / 20.0);
}

#[test]
fn a_slow_disk_wants_memory_and_no_threads() {
    let mut case = case([10.0, 1.0, 5.0, 10.0, 60.0]);
    case.facts.window_read = Some(20.0);
    case.facts.growth = None;
    let advice = diagnose(case).advice;
    let found: Vec<&str> = advice.iter().map(|advice| advice.change).collect();
    assert_eq!(found, ["memory", "window", "disk"]);
    near(advice[0].images_per_s, 1e5 / 15.0);
}

#[test]
fn no_disk_and_no_memory_promise_more_than_the_page_cache_gave() {
    // Reading alone is slow, but a batch from the page cache takes hardly less time than one from the source.
    let mut case = case([1.0, 0.0, 5.0, 10.0, 60.0]);
    case.facts = Facts::default();
    case.loading.page_cache = Time::exactly(52.0);
    let cached = diagnose(case.clone()).ladder[5].images_per_s;
    let advice = diagnose(case.clone()).advice;
    let found: Vec<&str> = advice.iter().map(|advice| advice.change).collect();
    assert_eq!(found, ["disk", "memory"]);
    for advice in advice {
        near(advice.images_per_s, cached);
    }
    // If workers take as long with the page cache as from the source, neither a faster disk nor more memory helps.
    case.overlap = Overlap::Workers;
    case.loading.page_cache = case.loading.source;
    assert_eq!(diagnose(case).advice, []);
}

#[test]
fn a_change_that_gives_less_than_the_spread_is_marked() {
    let mut case = case([10.0, 1.0, 10.0, 30.0, 5.0]);
    case.facts.needed = Some(0.5);
    // A change from 40 ms to 25 ms is a gain of 60 %, and a change to 10 ms is a gain of 300 %.
    case.loading.raw = Time { low: 20.0, high: 90.0, ..case.loading.raw };
    let found: Vec<(&str, bool)> =
        diagnose(case).advice.iter().map(|advice| (advice.change, advice.within_spread)).collect();
    let expected = [("threads", false), ("image size", true), ("storage mode", true)];
    assert_eq!(found, expected);
}

#[test]
fn what_reads_compressed_chunks_from_memory_wants_no_compression() {
    let mut case = case([1.0, 0.0, 5.0, 0.0, 60.0]);
    case.facts = Facts { is_compressed: true, ..Facts::default() };
    case.loading.page_cache = Time::exactly(58.0);
    let report = diagnose(case.clone());
    assert_eq!(report.binds, Stage::Read);
    let found: Vec<&str> = report.advice.iter().map(|advice| advice.change).collect();
    assert_eq!(found, ["codec"]);
    // The limit is the rate of stored samples in memory.
    near(report.advice[0].images_per_s, report.ladder[4].images_per_s);
    // If the chunks come from a disk, the disk may be the limit.
    case.loading.page_cache = Time::exactly(20.0);
    let advice = diagnose(case).advice;
    assert!(advice.iter().all(|advice| advice.change != "codec"));
}

#[test]
fn what_binds_is_decided_by_the_rates_that_are_shown() {
    // The source took longer than any of its stages alone, and longer than the step.
    let mut case = case([50.0, 1.0, 10.0, 5.0, 20.0]);
    case.loading.source = Time::exactly(100.0);
    assert_eq!(diagnose(case.clone()).binds, Stage::Read);
    // Reading alone was slow, but the source keeps up with the step.
    case.read = Time::exactly(70.0);
    case.loading.source = Time::exactly(45.0);
    assert_eq!(diagnose(case.clone()).binds, Stage::Step);
    // No stage accounts for the time of the source.
    case.read = Time::default();
    case.loading = Loading { source: Time::exactly(80.0), ..Loading::default() };
    assert_eq!(diagnose(case.clone()).binds, Stage::Read);
    // Training was as fast as the step, so loading is fast enough.
    case.trained = Some(Time::exactly(50.0));
    assert_eq!(diagnose(case).binds, Stage::Step);
}

#[test]
fn times_that_differ_by_more_than_themselves_cannot_tell() {
    let mut case = case([50.0, 1.0, 10.0, 5.0, 20.0]);
    assert!(diagnose(case.clone()).is_certain);
    case.loading.source = Time { ms: 20.0, low: 1.0, high: 900.0, is_short: false };
    assert!(!diagnose(case).is_certain);
}

#[test]
fn times_of_too_few_batches_cannot_tell_and_no_advice_is_sure() {
    let mut case = case([10.0, 1.0, 10.0, 30.0, 5.0]);
    // Times of at most a twentieth of a batch's time are ignored.
    case.copy.is_short = true;
    assert!(diagnose(case.clone()).is_certain);
    case.loading.raw.is_short = true;
    let report = diagnose(case);
    assert!(report.is_short && !report.is_certain);
    assert!(report.advice.iter().all(|advice| advice.within_spread));
}

#[test]
fn without_a_step_nothing_is_told_of_batches_that_are_cached_whole() {
    let ladder = diagnose(case([0.0, 0.001, 10.0, 5.0, 20.0])).ladder;
    assert_eq!((ladder[0].images_per_s, ladder[1].images_per_s), (0.0, 0.0));
    assert!(ladder[2].images_per_s > 0.0);
}

#[test]
fn a_process_that_does_all_in_turn_wants_workers() {
    let mut case = case([30.0, 0.0, 10.0, 20.0, 0.0]);
    case.overlap = Overlap::Nothing;
    case.facts.threads = 0;
    case.facts.growth = None;
    case.facts.converted = Some(5.0);
    let advice = diagnose(case).advice;
    let found: Vec<&str> = advice.iter().map(|advice| advice.change).collect();
    // The step limits both.
    assert_eq!(found, ["threads", "convert"]);
    near(advice[0].images_per_s, 1e5 / 30.0);
}

#[test]
fn what_a_prediction_leaves_out_is_said() {
    let mut case = case([30.0, 0.0, 10.0, 20.0, 0.0]);
    case.overlap = Overlap::Nothing;
    case.facts.threads = 0;
    case.facts.growth = None;
    case.facts.converted = Some(5.0);
    let text = |case: &Case| {
        let advice = diagnose(case.clone()).advice;
        let convert = advice.iter().find(|advice| advice.change == "convert");
        convert.unwrap().text.clone()
    };
    assert!(!text(&case).contains("without"));
    case.facts.left_out = Some("RandomResizedCrop".to_owned());
    assert!(text(&case).contains("it does not include RandomResizedCrop, which augment= would have to do"));
}

#[test]
fn a_wide_spread_marks_a_report() {
    let mut case = case([30.0, 0.0, 10.0, 20.0, 0.0]);
    assert!(!diagnose(case.clone()).is_rough);
    case.loading.source.high = case.loading.source.ms * 1.7;
    let report = diagnose(case);
    assert!(report.is_rough && report.is_certain, "{}", report.spread);
}

#[test]
fn a_time_is_the_median_of_its_slices() {
    let time = Time::of(vec![4.0, 1.0, 2.0]);
    assert_eq!((time.ms, time.low, time.high), (2.0, 1.0, 4.0));
    near(time.spread(), 0.75);
    near(Time::of(vec![4.0, 2.0]).ms, 3.0);
    assert_eq!(Time::of(Vec::new()), Time::default());
}

/// A pack of square images with a side of `side` pixels, stored as JPEG files or as raw pixels.
fn pack(side: u32, files: bool) -> (TempDir, Arc<Pack>) {
    let of = |mut field: Field| {
        field.of = Some("image".to_owned());
        field
    };
    let length = u64::from(side);
    let mut fields = if files {
        vec![
            Field::variable("image", FieldKind::Image).with_role(Role::Image),
            of(Field::column("coding", DType::U8, &[]).with_role(Role::Coding)),
            of(Field::column("width", DType::U32, &[]).with_role(Role::Width)),
            of(Field::column("height", DType::U32, &[]).with_role(Role::Height)),
            of(Field::column("channels", DType::U8, &[]).with_role(Role::Channels)),
        ]
    } else {
        vec![Field::tensor("image", DType::U8, &[length, length, 3]).with_role(Role::Image)]
    };
    if !files {
        fields[0].layout = Some("hwc".to_owned());
    }
    let options = PackOptions::new(Schema::new(fields).unwrap(), 8);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in 0..8_u64 {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first * 8..first * 8 + 8 {
            let byte = |i: u64| (packds_format::mix64(sample + i / 40) & 0xFF).to_le_bytes()[0];
            let pixels: Vec<u8> = (0..length * length * 3).map(byte).collect();
            if files {
                let file = packds_pixels::encode_jpeg(side, side, 3, &pixels, 95).unwrap();
                block.item_mut(0).unwrap().extend(&file);
                block.set_column(1, &[Coding::Jpeg.number()]).unwrap();
                block.set_column(2, &side.to_le_bytes()).unwrap();
                block.set_column(3, &side.to_le_bytes()).unwrap();
                block.set_column(4, &[3]).unwrap();
            } else {
                block.tensor_mut(0).unwrap().copy_from_slice(&pixels);
            }
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    std::fs::write(&path, writer.finish(FooterParts::default()).unwrap().0).unwrap();
    let pack = Arc::new(packds_reader::open(path).unwrap());
    (folder, pack)
}

fn loader(pack: &Arc<Pack>, augment: &str) -> LoaderBuilder {
    let builder = Loader::builder(Arc::clone(pack)).batch(16).threads(NonZero::<usize>::MIN);
    match augment {
        "" => builder,
        words => builder.augment(Augment::parse(words).unwrap()),
    }
}

const SHORT: Options = Options { within: Duration::from_millis(600), cold: false, check: false };

/// Asserts that the doctor finds the bottleneck that was added. Other tests use the same cores, so one success in three
/// measurements is enough.
fn assert_binds(builder: &LoaderBuilder, step_ms: f64, planted: Stage) {
    let measured = (0..3).map(|_| {
        let report = examine(builder, Step::Modelled(step_ms), &SHORT, &mut |_| {}).unwrap();
        assert!(report.images_per_s > 0.0 && report.possible_images_per_s >= report.images_per_s);
        assert_eq!(report.ladder.len(), Level::ALL.len());
        report
    });
    let wrong: Vec<_> = measured.take_while(|report| report.binds != planted).collect();
    assert!(wrong.len() < 3, "{wrong:?}");
}

#[test]
fn a_slow_step_is_named() {
    let (_folder, pack) = pack(16, false);
    assert_binds(&loader(&pack, ""), 500.0, Stage::Step);
}

#[test]
fn a_slow_copy_is_named() {
    let (_folder, pack) = pack(16, false);
    let device = Arc::new(SimDevice::new(3, Duration::from_millis(60)));
    assert_binds(&loader(&pack, "").device(device), 0.01, Stage::Copy);
}

#[test]
fn a_slow_transform_is_named() {
    let (_folder, pack) = pack(16, true);
    let heavy = "rrc224,jitter:0.4/0.4/0.4/0.1";
    assert_binds(&loader(&pack, heavy), 0.01, Stage::Transform);
}

#[test]
fn a_slow_decode_is_named() {
    let (_folder, pack) = pack(320, true);
    assert_binds(&loader(&pack, "rrc8"), 0.01, Stage::Decode);
}

#[test]
fn a_slow_disk_is_named() {
    let (_folder, pack) = pack(16, true);
    let slow = loader(&pack, "rrc16").slow_disk(Duration::from_millis(60));
    assert_binds(&slow, 0.01, Stage::Read);
}

#[test]
fn what_lies_in_the_page_cache_wants_neither_disk_nor_memory() {
    let (_folder, pack) = pack(16, true);
    assert_eq!(pack.is_resident(), Some(true));
    let slow = loader(&pack, "rrc16").slow_disk(Duration::from_millis(20));
    let report = examine(&slow, Step::Modelled(0.01), &SHORT, &mut |_| {}).unwrap();
    assert_eq!(report.case.loading.page_cache, report.case.loading.source);
    let found = report.advice.iter().map(|advice| advice.change);
    assert!(found.clone().all(|change| !matches!(change, "disk" | "memory" | "window" | "chunk size")), "{report:?}");
    // With the page cache bypassed, the disk is the bottleneck.
    let cold = Options { cold: true, ..SHORT };
    let report = examine(&slow, Step::Modelled(0.01), &cold, &mut |_| {}).unwrap();
    assert_ne!(report.case.loading.page_cache, report.case.loading.source);
}

#[test]
fn a_step_that_is_run_is_measured_with_its_loading() {
    let (_folder, pack) = pack(16, false);
    let mut seen = 0;
    let mut train = |batch: &Batch| {
        seen += batch.len();
        std::thread::sleep(Duration::from_millis(20));
    };
    let report = examine(&loader(&pack, ""), Step::Run(&mut train), &SHORT, &mut |_| {}).unwrap();
    assert_eq!(report.binds, Stage::Step);
    assert!(!report.case.step_is_modelled && report.case.trained.is_some());
    assert!(report.stages.step >= 20.0 && seen > 0);
}

#[test]
fn following_advice_is_measured_beside_its_prediction() {
    let (_folder, pack) = pack(320, true);
    let check = Options { check: true, ..SHORT };
    let builder = loader(&pack, "rrc8");
    let report = examine(&builder, Step::Modelled(0.01), &check, &mut |_| {}).unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    match report.checked {
        Some(checked) => {
            assert_eq!(checked.change, "threads");
            assert!(checked.predicted > report.images_per_s && checked.measured > 0.0);
        }
        None => assert_eq!(cores, 1, "{:?}", report.advice),
    }
}

#[test]
fn batches_that_are_repeated_are_those_of_the_loader() {
    let (_folder, pack) = pack(24, true);
    let loader = loader(&pack, "rrc16,flip,norm:imagenet,chw").build().unwrap();
    let expected = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let bytes = |batch: &Batch| batch.field("image").unwrap().bytes.to_vec();
    let raw = Arc::new(packds_reader::loader::Kept::take(&loader).unwrap());
    let decoded = Arc::new(raw.decoded().unwrap());
    let processed = Arc::new(raw.processed(&loader).unwrap().unwrap());
    for kept in [raw, decoded, processed] {
        for batch in loader.repeat(&kept).unwrap().take(3) {
            let batch = batch.unwrap();
            assert_eq!(batch.ids(), expected.ids());
            assert_eq!(bytes(&batch), bytes(&expected));
        }
    }
}
