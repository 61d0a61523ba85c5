//! `packds convert`, end to end: what it makes, what it refuses, what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

use packds_format::{Coding, Pack, Permutation, Role, Store};
use packds_pixels::{Color, Crop, DecodeOptions, Decoder, Filter, Geometry, Resize};
use serde_json::Value;

use crate::support::{fixture, packds, stderr, stdout, temp_dir};

/// Runs convert and expects success.
fn convert(args: &[&str], source: &Path, output: &Path) {
    let result = run(args, source, output);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
}

fn run(args: &[&str], source: &Path, output: &Path) -> std::process::Output {
    let mut all = vec![
        "convert",
        source.to_str().unwrap(),
        output.to_str().unwrap(),
    ];
    all.extend(args);
    packds(&all)
}

fn open(path: &Path) -> Pack<Vec<u8>> {
    Pack::open(fs::read(path).unwrap()).unwrap()
}

fn folder() -> PathBuf {
    fixture("images/folder")
}

fn same_size() -> PathBuf {
    fixture("images/same_size")
}

/// A copy of the image folder, with `file` of the bad images in it under `name`.
fn folder_with_bad(dir: &Path, bad: &[(&str, &str)]) -> PathBuf {
    let source = dir.join("source");
    copy_tree(&folder(), &source);
    for (file, name) in bad {
        fs::copy(fixture("images/bad").join(file), source.join(name)).unwrap();
    }
    source
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Everything in a folder, hidden files too.
fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn path_of(pack: &Pack<Vec<u8>>, sample: u64) -> String {
    String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap()
}

fn column(pack: &Pack<Vec<u8>>, name: &str) -> Vec<i64> {
    let view = pack.column(pack.schema().index_of(name).unwrap()).unwrap();
    (0..pack.n_samples())
        .map(|i| view.integer(i).unwrap())
        .collect()
}

/// The pixels that the documented chain gives for a file.
fn pixels(file: &Path, resize: Resize, crop: Crop, filter: Filter, color: Color) -> Vec<u8> {
    let mut decoder = Decoder::new(DecodeOptions {
        color,
        ..DecodeOptions::default()
    });
    let geometry = Geometry {
        resize,
        crop,
        filter,
        ..Geometry::default()
    };
    decoder
        .render(&fs::read(file).unwrap(), &geometry)
        .unwrap()
        .data
}

const CROP_224: Crop = Crop::Center {
    width: 224,
    height: 224,
};

#[test]
fn images_of_several_sizes_get_short_side_256_and_crop_224() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let result = run(&[], &folder(), &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let text = stdout(&result);
    assert!(
        text.contains("short side 256, centre crop 224 (the evaluation standard)"),
        "{text}"
    );
    assert!(
        text.contains("--resize short:256 without --crop keeps room for random crops"),
        "{text}"
    );
    assert!(
        text.contains("--mode encoded keeps the files' bytes"),
        "{text}"
    );
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [224, 224, 3]);
    assert_eq!(pack.n_samples(), 12);
    for sample in 0..12 {
        let expected = pixels(
            &folder().join(path_of(&pack, sample)),
            Resize::Short(256),
            CROP_224,
            Filter::Bilinear,
            Color::Rgb,
        );
        assert_eq!(
            pack.item(0, sample).unwrap().as_ref(),
            expected,
            "{}",
            path_of(&pack, sample)
        );
        pack.check_sample(sample).unwrap();
    }
}

#[test]
fn images_of_one_size_are_kept_as_they_are() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&[], &same_size(), &out);
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [32, 32, 3]);
    for sample in 0..pack.n_samples() {
        let file = same_size().join(path_of(&pack, sample));
        let expected = pixels(
            &file,
            Resize::None,
            Crop::None,
            Filter::Bilinear,
            Color::Rgb,
        );
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
    }
}

#[test]
fn order_is_the_documented_permutation_of_the_listing() {
    let dir = temp_dir();
    let (shuffled, kept) = (dir.path().join("a.pack"), dir.path().join("b.pack"));
    convert(&["--seed", "7"], &folder(), &shuffled);
    convert(&["--keep-order"], &folder(), &kept);
    let permutation = Permutation::new(12, 7);
    let expected: Vec<i64> = (0..12)
        .map(|i| i64::try_from(permutation.at(i)).unwrap())
        .collect();
    assert_eq!(column(&open(&shuffled), "source_id"), expected);
    let kept = open(&kept);
    assert_eq!(column(&kept, "source_id"), (0..12).collect::<Vec<_>>());
    assert_eq!(column(&kept, "label"), [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
    let paths: Vec<String> = (0..12).map(|i| path_of(&kept, i)).collect();
    assert_eq!(paths[0], "cat/a.jpg");
    assert_eq!(paths[11], "fish/c.jpg");
    assert_eq!(kept.classes().unwrap()[0].names, ["cat", "dog", "fish"]);
    assert_eq!(kept.classes().unwrap()[0].counts, [5, 4, 3]);
    assert!(kept.stats().unwrap().labels["label"].icc.is_some());
}

#[test]
fn the_same_bytes_come_out_at_any_number_of_jobs_and_under_any_name() {
    let dir = temp_dir();
    let masks = fixture("images/masks/manifest.jsonl");
    let cases: [(&[&str], &Path); 8] = [
        (&[], &folder()),
        (&["--codec", "zstd", "--chunk", "5"], &folder()),
        (&["--mode", "encoded"], &folder()),
        (&["--mode", "mixed", "--raw-fraction", "0.5"], &folder()),
        (&["--resize", "short:100"], &folder()),
        (
            &[
                "--dtype",
                "f16",
                "--normalize",
                "dataset",
                "--layout",
                "chw",
            ],
            &folder(),
        ),
        (
            &["--mode", "encoded", "--quality", "80", "--resize", "max:64"],
            &folder(),
        ),
        (&["--resize", "48x40"], &masks),
    ];
    for (i, (args, source)) in cases.into_iter().enumerate() {
        let mut packs = Vec::new();
        for jobs in ["1", "2", "5"] {
            let out = dir.path().join(format!("{i}-with-{jobs}.pack"));
            convert(&[args, &["--jobs", jobs]].concat(), source, &out);
            packs.push(fs::read(out).unwrap());
        }
        assert!(packs.iter().all(|p| *p == packs[0]), "{args:?}");
        let here = dir.path().to_str().unwrap().as_bytes();
        assert!(
            !packs[0].windows(here.len()).any(|w| w == here),
            "{args:?}: the folder's name is in the pack"
        );
    }
}

#[test]
fn encoded_mode_keeps_the_files_bytes() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--mode", "encoded"], &folder(), &out);
    let pack = open(&out);
    for sample in 0..pack.n_samples() {
        let path = path_of(&pack, sample);
        assert_eq!(
            pack.item(0, sample).unwrap().as_ref(),
            fs::read(folder().join(&path)).unwrap()
        );
        let coding = if path.ends_with(".png") {
            Coding::Png
        } else {
            Coding::Jpeg
        };
        assert_eq!(pack.coding("image", sample), Some(coding), "{path}");
    }
    assert_eq!(pack.stats().unwrap().sizes["image"].total, folder_bytes());
    assert!(
        pack.stats().unwrap().fields.is_empty(),
        "pixels that were not looked at have no statistics"
    );
}

fn folder_bytes() -> u64 {
    let classes = fs::read_dir(folder()).unwrap().map(|c| c.unwrap().path());
    classes
        .flat_map(|c| fs::read_dir(c).unwrap())
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn check_decode_finds_what_the_structure_hides_and_measures_pixels() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--mode", "encoded", "--check-decode"], &folder(), &out);
    assert_eq!(open(&out).stats().unwrap().fields["image"].mean.len(), 3);
}

#[test]
fn mixed_mode_stores_the_chosen_share_raw() {
    let dir = temp_dir();
    for (fraction, expected) in [("0", 0), ("1", 20)] {
        let out = dir.path().join(format!("{fraction}.pack"));
        convert(
            &["--mode", "mixed", "--raw-fraction", fraction],
            &same_size(),
            &out,
        );
        let pack = open(&out);
        let raw = (0..20)
            .filter(|i| pack.coding("image", *i) == Some(Coding::Raw))
            .count();
        assert_eq!(raw, expected);
    }
    let out = dir.path().join("half.pack");
    convert(
        &["--mode", "mixed", "--raw-fraction", "0.5"],
        &same_size(),
        &out,
    );
    let pack = open(&out);
    let raw: Vec<u64> = (0..20)
        .filter(|i| pack.coding("image", *i) == Some(Coding::Raw))
        .collect();
    assert!((4..=16).contains(&raw.len()), "{raw:?}");
    for sample in 0..20 {
        let file = same_size().join(path_of(&pack, sample));
        let expected = match raw.contains(&sample) {
            true => pixels(
                &file,
                Resize::None,
                Crop::None,
                Filter::Bilinear,
                Color::Rgb,
            ),
            false => fs::read(&file).unwrap(),
        };
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
    }
}

#[test]
fn raw_images_may_keep_their_own_sizes() {
    let dir = temp_dir();
    for codec in ["none", "zstd"] {
        let out = dir.path().join(format!("{codec}.pack"));
        convert(&["--resize", "none", "--codec", codec], &folder(), &out);
        let pack = open(&out);
        for sample in 0..pack.n_samples() {
            let file = folder().join(path_of(&pack, sample));
            let expected = pixels(
                &file,
                Resize::None,
                Crop::None,
                Filter::Bilinear,
                Color::Rgb,
            );
            assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected, "{codec}");
            let (h, w, c) = pack.item_shape("image", sample).unwrap();
            assert_eq!(usize::try_from(h * w * c).unwrap(), expected.len());
            pack.check_sample(sample).unwrap();
        }
    }
}

#[test]
fn zstd_gives_the_same_items_in_fewer_bytes() {
    let dir = temp_dir();
    let (plain, packed) = (dir.path().join("plain.pack"), dir.path().join("zstd.pack"));
    convert(&[], &folder(), &plain);
    convert(&["--codec", "zstd:3"], &folder(), &packed);
    let (plain, packed) = (open(&plain), open(&packed));
    for sample in 0..12 {
        assert_eq!(
            plain.item(0, sample).unwrap(),
            packed.item(0, sample).unwrap()
        );
        packed.check_sample(sample).unwrap();
    }
    assert!(packed.bytes().len() * 10 < plain.bytes().len() * 9);
}

#[test]
fn float_pixels_are_scaled_and_normalized() {
    let dir = temp_dir();
    let plain = dir.path().join("u8.pack");
    convert(&[], &same_size(), &plain);
    let plain = open(&plain);
    let out = dir.path().join("f32.pack");
    convert(
        &[
            "--dtype",
            "f32",
            "--normalize",
            "imagenet",
            "--layout",
            "chw",
        ],
        &same_size(),
        &out,
    );
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [3, 32, 32]);
    let normalize = pack.schema().fields()[0].normalize.clone().unwrap();
    assert!(normalize.applied);
    let (mean, std) = ([0.485_f32, 0.456, 0.406], [0.229_f32, 0.224, 0.225]);
    for sample in 0..20 {
        let (bytes, floats) = (
            plain.item(0, sample).unwrap(),
            pack.item(0, sample).unwrap(),
        );
        for (i, value) in floats.chunks_exact(4).enumerate() {
            let (channel, pixel) = (i / 1024, i % 1024);
            let expected =
                (f32::from(bytes[pixel * 3 + channel]) / 255.0 - mean[channel]) / std[channel];
            let found = f32::from_le_bytes(value.try_into().unwrap());
            assert!(
                (expected - found).abs() <= expected.abs() * 1e-5 + 1e-6,
                "{expected} {found}"
            );
        }
    }
}

#[test]
fn normalize_dataset_gives_mean_0_and_std_1() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(
        &["--dtype", "f32", "--normalize", "dataset"],
        &same_size(),
        &out,
    );
    let pack = open(&out);
    let values: Vec<f64> = (0..20)
        .flat_map(|i| pack.item(0, i).unwrap().into_owned())
        .collect::<Vec<u8>>()
        .chunks_exact(12)
        .map(|pixel| f64::from(f32::from_le_bytes(pixel[..4].try_into().unwrap())))
        .collect();
    let n = f64::from(u32::try_from(values.len()).unwrap());
    let mean = values.iter().sum::<f64>() / n;
    let std = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!(
        mean.abs() < 1e-4 && (std - 1.0).abs() < 1e-4,
        "mean {mean}, std {std}"
    );
}

#[test]
fn gray_filter_and_geometry_options_do_what_they_say() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(
        &["--gray", "--resize", "40x30", "--filter", "lanczos"],
        &folder(),
        &out,
    );
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [30, 40, 1]);
    assert_eq!(pack.schema().fields()[0].color.as_deref(), Some("gray"));
    for sample in 0..12 {
        let file = folder().join(path_of(&pack, sample));
        let expected = pixels(
            &file,
            Resize::Exact {
                width: 40,
                height: 30,
            },
            Crop::None,
            Filter::Lanczos,
            Color::Gray,
        );
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
    }
}

#[test]
fn orientation_is_counted_and_applied_only_on_request() {
    let dir = temp_dir();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(
        fixture("images/formats/exif_orientation_6.jpg"),
        source.join("a.jpg"),
    )
    .unwrap();
    let shape = |args: &[&str], name: &str| {
        let out = dir.path().join(name);
        let result = run(&[args, &["--json"]].concat(), &source, &out);
        let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
        assert_eq!(report["oriented"], 1);
        open(&out).schema().fields()[0].shape.clone()
    };
    let (ignored, applied) = (
        shape(&[], "a.pack"),
        shape(&["--orientation", "apply"], "b.pack"),
    );
    assert_eq!((ignored[0], ignored[1]), (applied[1], applied[0]));
    assert_ne!(ignored[0], ignored[1], "the fixture is not square");
}

#[test]
fn manifest_columns_become_fields() {
    let dir = temp_dir();
    let source = fixture("images/masks/manifest.jsonl");
    let out = dir.path().join("out.pack");
    convert(&["--keep-order", "--resize", "none"], &source, &out);
    let pack = open(&out);
    let names: Vec<(&str, Store)> = pack
        .schema()
        .fields()
        .iter()
        .map(|f| (f.name.as_str(), f.store))
        .collect();
    for wanted in [
        ("image", Store::Body),
        ("mask", Store::Body),
        ("caption", Store::Body),
        ("boxes", Store::Body),
    ] {
        assert!(names.contains(&wanted), "{wanted:?} in {names:?}");
    }
    for wanted in ["label", "scene_id", "score", "verified"] {
        assert!(
            names.contains(&(wanted, Store::Column)),
            "{wanted} in {names:?}"
        );
    }
    let item = |name: &str, i| {
        pack.item(pack.schema().index_of(name).unwrap(), i)
            .unwrap()
            .into_owned()
    };
    assert_eq!(item("caption", 0), b"a red disc");
    assert_eq!(item("boxes", 0), b"[[26,23,39,36]]");
    assert_eq!(item("scene_id", 1), 9_000_000_001_i64.to_le_bytes());
    assert_eq!(item("verified", 1), [0]);
    let mask = pixels(
        &fixture("images/masks/masks/00.png"),
        Resize::None,
        Crop::None,
        Filter::Nearest,
        Color::Index,
    );
    assert_eq!(item("mask", 0), mask);
}

#[test]
fn masks_are_resized_to_the_nearest_class_number() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(
        &["--keep-order", "--resize", "30x20"],
        &fixture("images/masks/manifest.csv"),
        &out,
    );
    let pack = open(&out);
    let mask = pack.schema().index_of("mask").unwrap();
    assert_eq!(pack.schema().fields()[mask].shape, [20, 30]);
    assert_eq!(pack.schema().fields()[mask].role, Some(Role::Mask));
    let size = Resize::Exact {
        width: 30,
        height: 20,
    };
    for i in 0..6 {
        let file = fixture(&format!("images/masks/masks/{i:02}.png"));
        let expected = pixels(&file, size, Crop::None, Filter::Nearest, Color::Index);
        assert_eq!(pack.item(mask, i).unwrap().as_ref(), expected);
    }
}

#[test]
fn a_manifest_column_named_like_a_field_of_every_pack_is_refused() {
    let dir = temp_dir();
    fs::copy(folder().join("cat/a.jpg"), dir.path().join("a.jpg")).unwrap();
    let manifest = dir.path().join("m.csv");
    fs::write(&manifest, "path,source_id\na.jpg,3\n").unwrap();
    refused(
        &run(&[], &manifest, &dir.path().join("out.pack")),
        2,
        "the manifest's column `source_id` has the name of a field that packs have anyway",
    );
}

/// Checks the exit code, the one line of the error, and that a hint or nothing follows.
fn refused(result: &std::process::Output, code: i32, message: &str) {
    let text = stderr(result);
    assert_eq!(result.status.code(), Some(code), "{text}");
    let first = text
        .lines()
        .find(|l| !l.starts_with("packds: warning"))
        .unwrap_or_default();
    assert_eq!(first, format!("packds: {message}"), "{text}");
    assert_eq!(stdout(result), "");
}

#[test]
fn every_bad_file_stops_the_conversion_with_its_path_and_reason() {
    let cases = [
        ("truncated.jpg", "dog/bad.jpg"),
        ("zero_bytes.jpg", "dog/bad.jpg"),
        ("text_named.jpg", "dog/bad.jpg"),
        ("png_bomb_65535.png", "dog/bad.png"),
        ("tiff_16gb_header.tif", "dog/bad.tif"),
        ("truncated.png", "dog/bad.png"),
    ];
    for mode in ["raw", "encoded"] {
        for (file, name) in cases {
            let dir = temp_dir();
            let source = folder_with_bad(dir.path(), &[(file, name)]);
            let out = dir.path().join("out.pack");
            let result = run(&["--mode", mode], &source, &out);
            let text = stderr(&result);
            assert_eq!(result.status.code(), Some(1), "{mode} {file}: {text}");
            let expected = format!("packds: {}: ", source.join(name).display());
            assert!(text.starts_with(&expected), "{mode} {file}: {text}");
            assert!(
                text.contains("\nhint: '--on-error skip' leaves bad images out"),
                "{mode} {file}: {text}"
            );
            assert_eq!(
                names_in(dir.path()),
                ["source"],
                "{mode} {file} left something behind"
            );
        }
    }
}

#[test]
fn reasons_say_what_was_expected_and_found() {
    let cases = [
        ("truncated.jpg", "dog/bad.jpg", "truncated"),
        ("zero_bytes.jpg", "dog/bad.jpg", "empty"),
        ("text_named.jpg", "dog/bad.jpg", "not an image"),
        ("png_bomb_65535.png", "dog/bad.png", "178956970"),
        ("tiff_16gb_header.tif", "dog/bad.tif", "178956970"),
        ("truncated.png", "dog/bad.png", "truncated"),
    ];
    for (file, name, wanted) in cases {
        let dir = temp_dir();
        let source = folder_with_bad(dir.path(), &[(file, name)]);
        let text = stderr(&run(&[], &source, &dir.path().join("out.pack")));
        assert!(
            text.lines().next().unwrap().contains(wanted),
            "{file}: expected {wanted:?} in {text}"
        );
    }
}

#[test]
fn the_first_bad_file_in_listing_order_is_named_at_any_number_of_jobs() {
    let dir = temp_dir();
    let bad = [
        ("zero_bytes.jpg", "cat/b0.jpg"),
        ("text_named.jpg", "dog/z.jpg"),
        ("truncated.jpg", "fish/a0.jpg"),
    ];
    let source = folder_with_bad(dir.path(), &bad);
    for seed in ["0", "1", "2", "3"] {
        for jobs in ["1", "3"] {
            let result = run(
                &["--seed", seed, "--jobs", jobs, "--chunk", "2"],
                &source,
                &dir.path().join("out.pack"),
            );
            let text = stderr(&result);
            assert!(
                text.contains(&format!("packds: {}", source.join("cat/b0.jpg").display())),
                "{seed} {jobs}: {text}"
            );
        }
    }
}

#[test]
fn skip_leaves_bad_files_out_and_lists_them() {
    let dir = temp_dir();
    let bad = [
        ("zero_bytes.jpg", "cat/b0.jpg"),
        ("text_named.jpg", "dog/z.jpg"),
        ("truncated.jpg", "fish/a0.jpg"),
    ];
    let source = folder_with_bad(dir.path(), &bad);
    let mut bodies = Vec::new();
    for jobs in ["1", "2", "4"] {
        let out = dir.path().join(format!("{jobs}.pack"));
        let result = run(
            &[
                "--on-error",
                "skip",
                "--json",
                "--chunk",
                "4",
                "--jobs",
                jobs,
            ],
            &source,
            &out,
        );
        assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
        let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
        let skipped: Vec<&str> = report["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["path"].as_str().unwrap())
            .collect();
        assert_eq!(skipped, ["cat/b0.jpg", "dog/z.jpg", "fish/a0.jpg"]);
        assert!(
            report["skipped"][0]["reason"]
                .as_str()
                .unwrap()
                .contains("empty")
        );
        assert_eq!(report["n_samples"], 12);
        let pack = open(&out);
        assert_eq!(pack.provenance().unwrap()["skipped"], report["skipped"]);
        assert_eq!((pack.n_samples(), pack.n_chunks()), (12, 3));
        let mut paths: Vec<String> = (0..12).map(|i| path_of(&pack, i)).collect();
        for sample in 0..12 {
            let file = source.join(path_of(&pack, sample));
            let expected = pixels(
                &file,
                Resize::Short(256),
                CROP_224,
                Filter::Bilinear,
                Color::Rgb,
            );
            assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
        }
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 12);
        assert_eq!(
            pack.stats().unwrap().fields["image"].n_pixels,
            12 * 224 * 224
        );
        bodies.push(fs::read(&out).unwrap());
    }
    assert!(bodies.iter().all(|b| *b == bodies[0]));
}

#[test]
fn substitute_writes_zeros_and_says_so_in_the_column_valid() {
    for mode in ["raw", "encoded"] {
        let dir = temp_dir();
        let source = folder_with_bad(dir.path(), &[("truncated.jpg", "dog/bad.jpg")]);
        let out = dir.path().join("out.pack");
        let args = [
            "--on-error",
            "substitute",
            "--keep-order",
            "--json",
            "--mode",
            mode,
        ];
        let result = run(&args, &source, &out);
        assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
        let pack = open(&out);
        let bad = (0..13)
            .find(|i| path_of(&pack, *i) == "dog/bad.jpg")
            .unwrap();
        let valid = column(&pack, "valid");
        assert_eq!(valid.iter().sum::<i64>(), 12);
        assert_eq!(valid[usize::try_from(bad).unwrap()], 0);
        assert_eq!(column(&pack, "label")[usize::try_from(bad).unwrap()], 1);
        assert!(pack.item(0, bad).unwrap().iter().all(|v| *v == 0), "{mode}");
        pack.check_sample(bad).unwrap();
        let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
        assert_eq!(report["substituted"][0]["path"], "dog/bad.jpg");
        assert_eq!(report["skipped"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn nothing_left_after_skipping_is_an_error() {
    let dir = temp_dir();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(fixture("images/bad/text_named.jpg"), source.join("a.jpg")).unwrap();
    let result = run(
        &["--on-error", "skip"],
        &source,
        &dir.path().join("out.pack"),
    );
    let message = format!(
        "{}: none of the images could be converted (1 skipped)",
        source.display()
    );
    refused(&result, 1, &message);
    assert_eq!(names_in(dir.path()), ["source"]);
}

#[test]
fn max_pixels_is_kept() {
    let dir = temp_dir();
    let result = run(
        &["--max-pixels", "100"],
        &same_size(),
        &dir.path().join("out.pack"),
    );
    assert_eq!(result.status.code(), Some(1));
    assert!(stderr(&result).contains("100"), "{}", stderr(&result));
}

#[test]
fn an_existing_output_is_replaced_only_with_force() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    fs::write(&out, "precious").unwrap();
    let message = format!("{}: this file exists already", out.display());
    refused(&run(&[], &same_size(), &out), 2, &message);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    convert(&["--force"], &same_size(), &out);
    assert_eq!(open(&out).n_samples(), 20);
    assert_eq!(names_in(dir.path()), ["out.pack"]);
}

#[test]
fn outputs_that_cannot_be_are_refused_before_any_work() {
    let dir = temp_dir();
    let missing = dir.path().join("no/out.pack");
    let message = format!(
        "{}: there is no folder {} to write it to",
        missing.display(),
        dir.path().join("no").display()
    );
    refused(&run(&[], &same_size(), &missing), 2, &message);
    let message = format!(
        "{}: this is a folder, expected the name of the pack to write",
        dir.path().display()
    );
    refused(&run(&["--force"], &same_size(), dir.path()), 2, &message);
    let result = run(&[], &same_size(), Path::new("/proc/out.pack"));
    assert_eq!(result.status.code(), Some(2));
    assert!(
        stderr(&result).starts_with("packds: /proc/out.pack: cannot write here: "),
        "{}",
        stderr(&result)
    );
}

#[test]
fn missing_sources_and_empty_folders_are_named() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let missing = dir.path().join("nothing");
    refused(
        &run(&[], &missing, &out),
        2,
        &format!("{}: no such file or folder", missing.display()),
    );
    let empty = dir.path().join("empty");
    fs::create_dir_all(empty.join("class")).unwrap();
    let result = run(&[], &empty, &out);
    assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
    assert!(stderr(&result).contains(&format!("{}: no images in this folder", empty.display())));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let cases: [(&[&str], &str); 11] = [
        (
            &["--chunk", "48", "--batch", "256"],
            "--chunk 48 and --batch 256: neither divides the other",
        ),
        (
            &["--mode", "encoded", "--resize", "short:64"],
            "--mode encoded keeps the files' bytes, so it cannot resize, crop, turn or gray them",
        ),
        (
            &["--quality", "90"],
            "--quality is for images that are encoded anew",
        ),
        (
            &["--mode", "encoded", "--dtype", "f32"],
            "--dtype f32 and --layout hwc need --mode raw, found --mode encoded",
        ),
        (
            &["--check-decode"],
            "--check-decode is for files that are kept untouched",
        ),
        (
            &["--mode", "encoded", "--normalize", "dataset"],
            "--normalize dataset needs pixels, and --mode encoded does not look at them",
        ),
        (
            &["--normalize", "0.5/0.5"],
            "--normalize has 1 values, the images have 3 channels",
        ),
        (
            &["--gray", "--normalize", "imagenet"],
            "--normalize imagenet is for 3 channels, --gray has 1",
        ),
        (
            &["--mode", "mixed", "--raw-fraction", "1.5"],
            "--raw-fraction is a share, found 1.5",
        ),
        (
            &["--raw-fraction", "0.5"],
            "--raw-fraction is for --mode mixed",
        ),
        (
            &["--resize", "none", "--dtype", "f32"],
            "--dtype f32 and --layout hwc need images of one size, and these have several",
        ),
    ];
    for (args, message) in cases {
        let dir = temp_dir();
        refused(
            &run(args, &folder(), &dir.path().join("out.pack")),
            2,
            message,
        );
        assert!(names_in(dir.path()).is_empty(), "{args:?}");
    }
}

#[test]
fn chunks_follow_the_rule_the_batch_and_the_wish() {
    let cases: [(&[&str], u32); 5] = [
        (&[], 64),
        (&["--batch", "100"], 100),
        (&["--batch", "250"], 50),
        (&["--chunk", "7"], 7),
        (&["--chunk", "64", "--batch", "256"], 64),
    ];
    let dir = temp_dir();
    for (i, (args, expected)) in cases.into_iter().enumerate() {
        let out = dir.path().join(format!("{i}.pack"));
        convert(args, &folder(), &out);
        let pack = open(&out);
        assert_eq!(pack.header().chunk_samples, expected, "{args:?}");
        if args.contains(&"--batch") {
            let batch: u64 = args.last().unwrap().parse().unwrap();
            assert_eq!(pack.provenance().unwrap()["options"]["batch"], batch);
        }
    }
}

#[test]
fn splits_are_told_apart_and_share_their_class_ids() {
    let dir = temp_dir();
    let source = dir.path().join("set");
    for (split, class) in [
        ("train", "dog"),
        ("train", "fish"),
        ("val", "cat"),
        ("val", "fish"),
    ] {
        copy_tree(&folder().join(class), &source.join(split).join(class));
    }
    let out = dir.path().join("out.pack");
    let result = run(&[], &source, &out);
    let message = format!(
        "{}: expected class folders, found only the splits 'train', 'val'",
        source.display()
    );
    refused(&result, 2, &message);
    assert!(
        stderr(&result).contains("hint: '--split all' writes one pack for each split"),
        "{}",
        stderr(&result)
    );
    let result = run(&["--split", "all", "--json"], &source, &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(report["n_samples"], 15);
    assert_eq!(report["splits"]["val"]["n_samples"], 8);
    assert_eq!(
        names_in(dir.path()),
        ["out.train.pack", "out.val.pack", "set"]
    );
    for split in ["train", "val"] {
        let pack = open(&dir.path().join(format!("out.{split}.pack")));
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog", "fish"]);
    }
    let one = dir.path().join("one.pack");
    convert(&["--split", "val"], &source, &one);
    assert_eq!(
        fs::read(&one).unwrap(),
        fs::read(dir.path().join("out.val.pack")).unwrap()
    );
}

#[test]
fn dry_run_tells_the_plan_and_writes_nothing() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let result = run(&["--dry-run", "--json"], &folder(), &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let plan: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(plan["n_samples"], 12);
    assert_eq!(plan["chosen"]["mode"], "raw");
    assert_eq!(plan["chosen"]["bytes"], 12 * 224 * 224 * 3);
    assert_eq!(plan["chosen"]["chunk_samples"], 64);
    assert_eq!(plan["forms"][1]["mode"], "encoded");
    assert!(
        plan["forms"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["images_per_s"].as_f64().unwrap() > 0.0)
    );
    assert!(names_in(dir.path()).is_empty());
    let text = stdout(&run(&["--dry-run"], &folder(), &out));
    assert!(text.contains("raw") && text.contains("<- chosen"), "{text}");
}

#[test]
fn report_has_what_machines_read() {
    let dir = temp_dir();
    let result = run(&["--json"], &folder(), &dir.path().join("out.pack"));
    let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(report["n_samples"], 12);
    assert_eq!(report["skipped"], Value::Array(Vec::new()));
    assert_eq!(report["bytes_in"], folder_bytes());
    assert_eq!(
        report["bytes_out"],
        fs::metadata(dir.path().join("out.pack")).unwrap().len()
    );
    for stage in ["list", "read", "decode", "write", "sync", "total"] {
        assert!(report["seconds"][stage].as_f64().is_some(), "{stage}");
    }
}

#[test]
fn names_that_are_not_utf_8_spaces_and_links_are_taken() {
    use std::os::unix::ffi::OsStrExt;
    let dir = temp_dir();
    let source = dir.path().join("my images");
    let class = source.join(std::ffi::OsStr::from_bytes(b"caf\xe9 noir"));
    fs::create_dir_all(&class).unwrap();
    fs::copy(
        folder().join("cat/a.jpg"),
        class.join(std::ffi::OsStr::from_bytes(b"\xff\xfe.jpg")),
    )
    .unwrap();
    std::os::unix::fs::symlink(folder().join("cat/b.jpg"), class.join("a link.jpg")).unwrap();
    let out = dir.path().join("out.pack");
    convert(&["--keep-order"], &source, &out);
    let pack = open(&out);
    let paths: Vec<Vec<u8>> = (0..2).map(|i| pack.path(i).unwrap().unwrap()).collect();
    assert_eq!(
        paths,
        [
            b"caf\xe9 noir/a link.jpg".to_vec(),
            b"caf\xe9 noir/\xff\xfe.jpg".to_vec()
        ]
    );
}
