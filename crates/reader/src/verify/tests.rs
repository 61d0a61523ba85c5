//! Tests `verify` and `open` with a file.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_format::{
    BlockBuilder, Codec, Coding, Crc32c, DType, Field, FieldKind, Filter, FooterParts, FormatError, PackOptions,
    PackWriter, Role, Schema,
};
use tempfile::TempDir;

use crate::{Pack, ReadError, VerifyOptions, VerifyReport, open, verify};

const SAMPLE_BYTES: u64 = 100;

/// A pack of `n` samples of [`SAMPLE_BYTES`] in chunks of 8, and its folder.
fn pack(n: u8) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    let crc = Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c);
    let fields = vec![Field::tensor("x", DType::U8, &[SAMPLE_BYTES]), crc];
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(Schema::new(fields).unwrap(), 8)).unwrap();
    for first in (0..n).step_by(8) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..n.min(first + 8) {
            block.tensor_mut(0).unwrap().fill(sample);
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    fs::write(&path, writer.finish(FooterParts::default()).unwrap().0).unwrap();
    (folder, path)
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

fn report(pack: &Pack, jobs: usize) -> VerifyReport {
    verify(pack, VerifyOptions { jobs }, &|_, _| {}).unwrap()
}

#[test]
fn damage_is_reported_in_file_order_by_any_number_of_threads() {
    let (_folder, path) = pack(200);
    let data_off = open(&path).unwrap().one().unwrap().header().data_off;
    for sample in [199, 3, 100, 4] {
        flip(&path, data_off + sample * SAMPLE_BYTES + 50);
    }
    let pack = open(&path).unwrap();
    for jobs in [1, 2, 3, 64, 0] {
        let report = report(&pack, jobs);
        let chunks: Vec<u64> = report.bad_chunks.iter().map(|bad| bad.chunk).collect();
        let samples: Vec<u64> = report.bad_samples.iter().map(|bad| bad.sample).collect();
        assert_eq!((chunks, samples), (vec![0, 12, 24], vec![3, 4, 100, 199]));
        assert!(report.bad_chunks.iter().all(|bad| bad.samples_known && bad.expected != bad.found));
        assert_eq!(report.bad_chunks[1].offset, data_off + 96 * SAMPLE_BYTES);
        assert!(report.errors.is_empty() && !report.is_ok());
    }
}

#[test]
fn progress_reaches_the_total() {
    let (_folder, path) = pack(200);
    let last = std::sync::Mutex::new((0, 0));
    let pack = open(&path).unwrap();
    verify(&pack, VerifyOptions { jobs: 3 }, &|done, total| {
        let mut last = last.lock().unwrap();
        *last = (done.max(last.0), total);
    })
    .unwrap();
    assert_eq!(last.into_inner().unwrap(), (200 * SAMPLE_BYTES, 200 * SAMPLE_BYTES));
}

#[test]
fn an_empty_pack_is_whole() {
    let (_folder, path) = pack(0);
    let report = report(&open(&path).unwrap(), 4);
    assert!(report.is_ok());
    assert_eq!((report.n_chunks, report.n_samples), (0, 0));
}

#[test]
fn a_file_shortened_after_it_was_opened_is_an_error() {
    let (_folder, path) = pack(200);
    let pack = open(&path).unwrap();
    pack.check_len().unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(9000).unwrap();
    assert!(matches!(pack.check_len(), Err(ReadError::Changed { found: 9000, .. })));
    let error = verify(&pack, VerifyOptions::default(), &|_, _| {}).unwrap_err();
    assert!(matches!(error, ReadError::Changed { found: 9000, .. }) && error.is_data());
}

#[test]
fn a_pack_renamed_over_an_open_one_leaves_it_whole() {
    let (folder, path) = pack(200);
    let pack = open(&path).unwrap();
    let other = folder.path().join("b");
    fs::write(&other, b"short").unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(report(&pack, 2).is_ok());
}

#[test]
fn errors_say_whose_fault_they_are() {
    let (folder, path) = pack(8);
    let missing = open(folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, ReadError::Open { .. }) && !missing.is_data());
    let directory = open(folder.path()).unwrap_err();
    assert!(!directory.is_data() && directory.hint().is_some());
    let empty = folder.path().join("empty");
    File::create(&empty).unwrap();
    let error = open(&empty).unwrap_err();
    assert!(matches!(&error, ReadError::Format { source: FormatError::TooShort { found: 0, .. }, .. }));
    assert!(error.is_data());
    assert_eq!(error.reason(), "file is too short to be a pack: expected at least 4160 bytes, found 0");
    assert_eq!(error.to_string(), format!("{}: {}", empty.display(), error.reason()));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&[0; 64]).unwrap();
    assert!(open(&path).unwrap_err().is_data());
}

/// The baseline for `verify`: each of `jobs` threads reads and hashes its share of the file in pieces.
fn read_and_sum(path: &Path, jobs: u64, piece: usize) {
    let file = File::open(path).unwrap();
    let len = file.metadata().unwrap().len();
    let share = |job: u64| {
        let (mut at, end) = (len / jobs * job, len / jobs * (job + 1));
        let (mut buffer, mut crc) = (vec![0; piece], Crc32c::new());
        while at < end {
            let n = file.read_at(&mut buffer, at).unwrap();
            crc.update(&buffer[..n]);
            at += u64::try_from(n).unwrap();
        }
        std::hint::black_box(crc.value());
    };
    std::thread::scope(|scope| {
        for job in 0..jobs {
            let share = &share;
            scope.spawn(move || share(job));
        }
    });
}

/// A pack of 2.1 GB with samples as large as 224 x 224 pixels.
fn large_pack(path: &Path) {
    let crc = Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c);
    let fields = vec![Field::tensor("x", DType::U8, &[150_528]), crc];
    let options = PackOptions::new(Schema::new(fields).unwrap(), 64);
    let mut writer = PackWriter::new(File::create(path).unwrap(), options).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..14_000_u32 {
        let byte = u8::try_from(sample % 251).unwrap();
        block.tensor_mut(0).unwrap().fill(byte);
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    writer.finish(FooterParts::default()).unwrap();
}

/// Run this with `cargo test --release -p packds-reader -- --ignored --nocapture`. It uses a warm page cache and
/// reports medians of 5 runs.
#[test]
#[ignore = "a measurement: writes 2 GB and takes half a minute"]
fn verify_keeps_up_with_reading_and_summing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("large.pack");
    large_pack(&path);
    let pack = open(&path).unwrap();
    let gigabytes = f64::from(u32::try_from(pack.file_len() >> 10).unwrap()) * 1024e-9;
    let median = |run: &dyn Fn()| {
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[2]
    };
    for jobs in [1, 2] {
        for piece in [256 << 10, 64 * 150_528] {
            let plain = median(&|| read_and_sum(&path, u64::try_from(jobs).unwrap(), piece));
            let whole = median(&|| assert!(report(&pack, jobs).is_ok()));
            println!(
                "{jobs} threads, plain pread of {piece} bytes + crc32c: {:.2} GB/s; verify: {:.2} GB/s; ratio {:.2}",
                gigabytes / plain,
                gigabytes / whole,
                plain / whole
            );
        }
    }
}

/// A pack of 12 raw images with 4 x 3 pixels in chunks of 4, or of files if `coding` says so. The columns contain
/// `wrong` for samples 5, 6 and 9.
fn sized(wrong: (u32, u32, u8), coding: Coding, codec: Codec) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    let column = |name: &str, dtype, role| {
        let mut field = Field::column(name, dtype, &[]).with_role(role);
        field.of = Some("image".to_owned());
        field
    };
    let mut image = Field::variable("image", FieldKind::Image).with_role(Role::Image);
    image.codec = codec;
    let fields = vec![
        image,
        column("coding", DType::U8, Role::Coding),
        column("width", DType::U32, Role::Width),
        column("height", DType::U32, Role::Height),
        column("channels", DType::U8, Role::Channels),
    ];
    let options = PackOptions::new(Schema::new(fields).unwrap(), 4);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for first in (0..12).step_by(4) {
        let mut block = BlockBuilder::new(writer.schema());
        for sample in first..first + 4 {
            let is_wrong = [5, 6, 9].contains(&sample);
            let (width, height, channels) = if is_wrong { wrong } else { (4, 3, 3) };
            block.item_mut(0).unwrap().extend([sample; 36]);
            block.set_column(1, &[coding.number()]).unwrap();
            block.set_column(2, &width.to_le_bytes()).unwrap();
            block.set_column(3, &height.to_le_bytes()).unwrap();
            block.set_column(4, &[channels]).unwrap();
            block.finish_sample().unwrap();
        }
        writer.append(block.finish().unwrap()).unwrap();
    }
    fs::write(&path, writer.finish(FooterParts::default()).unwrap().0).unwrap();
    (folder, path)
}

#[test]
fn raw_pixels_that_are_not_of_their_size_are_damage_by_right_checksums_too() {
    let filter = Filter::for_pixels(3, true);
    for codec in [Codec::None, Codec::Zstd { level: 1, filter }] {
        for wrong in [(0, 3, 3), (4, 4, 3), (4, 3, 1), (u32::MAX, u32::MAX, 255)] {
            let (_folder, path) = sized(wrong, Coding::Raw, codec);
            let pack = open(&path).unwrap();
            for jobs in [1, 3] {
                let report = report(&pack, jobs);
                assert!(!report.is_ok() && report.bad_chunks.is_empty());
                let (width, height, channels) = wrong;
                let size = format!("image: size must be [{height}, {width}, {channels}], found 36 bytes");
                let told: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
                let expected = [(1, 5), (2, 9)]
                    .map(|(chunk, sample)| format!("chunk {chunk}, sample {sample}, field `image`: {size}"));
                assert_eq!(told, expected);
            }
        }
        let (_folder, path) = sized((4, 4, 3), Coding::Jpeg, codec);
        assert!(report(&open(&path).unwrap(), 1).is_ok());
    }
}

#[test]
fn sizes_in_a_damaged_column_are_the_damage_of_the_column_alone() {
    let (_folder, path) = sized((4, 3, 3), Coding::Raw, Codec::None);
    let offset = open(&path).unwrap().one().unwrap().columns()[1].offset;
    flip(&path, offset);
    let report = report(&open(&path).unwrap(), 1);
    assert!(matches!(report.errors[..], [FormatError::ChecksumMismatch { .. }]));
}

#[test]
fn a_ragged_item_that_ends_inside_an_entry_is_found() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/malformed/ragged_item_ends_inside_an_entry.pack");
    let report = report(&open(file).unwrap(), 1);
    assert!(!report.is_ok());
    let text = format!("{report:?}");
    assert!(text.contains("expected whole entries of 16 bytes each, found 5 bytes"), "{text}");
}
