//! `packds convert`, end to end: its results.

use std::fs;
use std::path::Path;

use packds_format::{Coding, Permutation, Role, Store};
use packds_pixels::{Color, Crop, Filter, Resize};
use serde_json::Value;

use crate::converting::{
    CROP_224, column, convert, copy_tree, folder, folder_bytes, manifest_in, names_in, open, path_of, pixels, run,
    same_size,
};
use crate::support::{fixture, provenance, stderr, stdout, temp_dir};

#[test]
fn images_of_several_sizes_get_short_side_256_and_crop_224() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let result = run(&[], &folder(), &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let text = stdout(&result);
    assert!(text.contains("resized to short side 256 and cropped to 224 (usual for evaluation)"), "{text}");
    assert!(text.contains("--resize short:256 without --crop leaves room for random crops"), "{text}");
    assert!(text.contains("--mode encoded keeps the files' bytes"), "{text}");
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [224, 224, 3]);
    assert_eq!(pack.n_samples(), 12);
    for sample in 0..12 {
        let expected =
            pixels(&folder().join(path_of(&pack, sample)), Resize::Short(256), CROP_224, Filter::Bilinear, Color::Rgb);
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected, "{}", path_of(&pack, sample));
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
        let expected = pixels(&file, Resize::None, Crop::None, Filter::Bilinear, Color::Rgb);
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
    let expected: Vec<i64> = (0..12).map(|i| i64::try_from(permutation.at(i)).unwrap()).collect();
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
        (&["--dtype", "f16", "--normalize", "dataset", "--layout", "chw"], &folder()),
        (&["--mode", "encoded", "--quality", "80", "--resize", "max:64"], &folder()),
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
        assert!(!packs[0].windows(here.len()).any(|w| w == here), "{args:?}: the folder's name is in the pack");
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
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), fs::read(folder().join(&path)).unwrap());
        let coding = if path.ends_with(".png") { Coding::Png } else { Coding::Jpeg };
        assert_eq!(pack.coding("image", sample).unwrap(), Some(coding), "{path}");
    }
    assert_eq!(pack.stats().unwrap().sizes["image"].total, folder_bytes());
    assert!(pack.stats().unwrap().fields.is_empty(), "images that were not decoded have no pixel statistics");
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
        convert(&["--mode", "mixed", "--raw-fraction", fraction], &same_size(), &out);
        let pack = open(&out);
        let raw = (0..20).filter(|i| pack.coding("image", *i).unwrap() == Some(Coding::Raw)).count();
        assert_eq!(raw, expected);
    }
    let out = dir.path().join("half.pack");
    convert(&["--mode", "mixed", "--raw-fraction", "0.5"], &same_size(), &out);
    let pack = open(&out);
    let raw: Vec<u64> = (0..20).filter(|i| pack.coding("image", *i).unwrap() == Some(Coding::Raw)).collect();
    assert!((4..=16).contains(&raw.len()), "{raw:?}");
    for sample in 0..20 {
        let file = same_size().join(path_of(&pack, sample));
        let expected = match raw.contains(&sample) {
            true => pixels(&file, Resize::None, Crop::None, Filter::Bilinear, Color::Rgb),
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
            let expected = pixels(&file, Resize::None, Crop::None, Filter::Bilinear, Color::Rgb);
            assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected, "{codec}");
            let (h, w, c) = pack.item_shape("image", sample).unwrap().unwrap();
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
        assert_eq!(plain.item(0, sample).unwrap(), packed.item(0, sample).unwrap());
        packed.check_sample(sample).unwrap();
    }
    assert!(packed.one().unwrap().bytes_unchecked().len() * 10 < plain.one().unwrap().bytes_unchecked().len() * 9);
}

#[test]
fn float_pixels_are_scaled_and_normalized() {
    let dir = temp_dir();
    let plain = dir.path().join("u8.pack");
    convert(&[], &same_size(), &plain);
    let plain = open(&plain);
    let out = dir.path().join("f32.pack");
    convert(&["--dtype", "f32", "--normalize", "imagenet", "--layout", "chw"], &same_size(), &out);
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [3, 32, 32]);
    let normalize = pack.schema().fields()[0].normalize.clone().unwrap();
    assert!(normalize.applied);
    let (mean, std) = ([0.485_f32, 0.456, 0.406], [0.229_f32, 0.224, 0.225]);
    for sample in 0..20 {
        let (bytes, floats) = (plain.item(0, sample).unwrap(), pack.item(0, sample).unwrap());
        for (i, value) in floats.chunks_exact(4).enumerate() {
            let (channel, pixel) = (i / 1024, i % 1024);
            let expected = (f32::from(bytes[pixel * 3 + channel]) / 255.0 - mean[channel]) / std[channel];
            let found = f32::from_le_bytes(value.try_into().unwrap());
            assert!((expected - found).abs() <= expected.abs() * 1e-5 + 1e-6, "{expected} {found}");
        }
    }
}

#[test]
fn normalize_dataset_gives_mean_0_and_std_1() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--dtype", "f32", "--normalize", "dataset"], &same_size(), &out);
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
    assert!(mean.abs() < 1e-4 && (std - 1.0).abs() < 1e-4, "mean {mean}, std {std}");
}

#[test]
fn gray_filter_and_geometry_options_do_what_they_say() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--gray", "--resize", "40x30", "--filter", "lanczos"], &folder(), &out);
    let pack = open(&out);
    assert_eq!(pack.schema().fields()[0].shape, [30, 40, 1]);
    assert_eq!(pack.schema().fields()[0].color.as_deref(), Some("gray"));
    for sample in 0..12 {
        let file = folder().join(path_of(&pack, sample));
        let expected = pixels(&file, Resize::Exact { width: 40, height: 30 }, Crop::None, Filter::Lanczos, Color::Gray);
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
    }
}

#[test]
fn orientation_is_counted_and_applied_only_on_request() {
    let dir = temp_dir();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(fixture("images/formats/exif_orientation_6.jpg"), source.join("a.jpg")).unwrap();
    let shape = |args: &[&str], name: &str| {
        let out = dir.path().join(name);
        let result = run(&[args, &["--json"]].concat(), &source, &out);
        let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
        assert_eq!(report["oriented"], 1);
        open(&out).schema().fields()[0].shape.clone()
    };
    let (ignored, applied) = (shape(&[], "a.pack"), shape(&["--orientation", "apply"], "b.pack"));
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
    let names: Vec<(&str, Store)> = pack.schema().fields().iter().map(|f| (f.name.as_str(), f.store)).collect();
    for wanted in [("image", Store::Body), ("mask", Store::Body), ("caption", Store::Body), ("boxes", Store::Body)] {
        assert!(names.contains(&wanted), "{wanted:?} in {names:?}");
    }
    for wanted in ["label", "scene_id", "score", "verified"] {
        assert!(names.contains(&(wanted, Store::Column)), "{wanted} in {names:?}");
    }
    let item = |name: &str, i| pack.item(pack.schema().index_of(name).unwrap(), i).unwrap().into_owned();
    assert_eq!(item("caption", 0), b"a red disc");
    assert_eq!(item("boxes", 0), b"[[26,23,39,36]]");
    assert_eq!(item("scene_id", 1), 9_000_000_001_i64.to_le_bytes());
    assert_eq!(item("verified", 1), [0]);
    let mask = pixels(&fixture("images/masks/masks/00.png"), Resize::None, Crop::None, Filter::Nearest, Color::Index);
    assert_eq!(item("mask", 0), mask);
}

#[test]
fn a_folder_of_images_and_masks_has_the_pairs_of_its_manifest() {
    let dir = temp_dir();
    let (by_folder, by_manifest) = (dir.path().join("folder.pack"), dir.path().join("manifest.pack"));
    let options = ["--keep-order", "--resize", "none"];
    let result = run(&options, &fixture("images/masks"), &by_folder);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert!(stderr(&result).contains("'manifest.csv', 'manifest.jsonl' were not read"), "{}", stderr(&result));
    convert(&options, &fixture("images/masks/manifest.jsonl"), &by_manifest);
    let (folder, manifest) = (open(&by_folder), open(&by_manifest));
    for name in ["image", "mask"] {
        let [of_folder, of_manifest] = [&folder, &manifest].map(|pack| pack.schema().index_of(name).unwrap());
        assert_eq!(folder.schema().fields()[of_folder].role, manifest.schema().fields()[of_manifest].role);
        for sample in 0..6 {
            assert_eq!(folder.item(of_folder, sample).unwrap(), manifest.item(of_manifest, sample).unwrap());
        }
    }
    let text = stdout(&run(&["--dry-run"], &fixture("images/masks"), &dir.path().join("none.pack")));
    assert!(text.contains("masks    one per image; the first is masks/00.png"), "{text}");
}

#[test]
fn masks_are_resized_to_the_nearest_class_number() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--keep-order", "--resize", "30x20"], &fixture("images/masks/manifest.csv"), &out);
    let pack = open(&out);
    let mask = pack.schema().index_of("mask").unwrap();
    assert_eq!(pack.schema().fields()[mask].shape, [20, 30]);
    assert_eq!(pack.schema().fields()[mask].role, Some(Role::Mask));
    let size = Resize::Exact { width: 30, height: 20 };
    for i in 0..6 {
        let file = fixture(&format!("images/masks/masks/{i:02}.png"));
        let expected = pixels(&file, size, Crop::None, Filter::Nearest, Color::Index);
        assert_eq!(pack.item(mask, i).unwrap().as_ref(), expected);
    }
}

#[test]
fn a_small_pack_of_images_and_masks_is_not_mostly_padding() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--resize", "30x20"], &fixture("images/masks/manifest.csv"), &out);
    assert_eq!(open(&out).geometry().chunk_samples(), 6);
    // Six images and masks take 14 KB, and each section and column starts on a new page.
    let bytes = fs::metadata(&out).unwrap().len();
    assert!(bytes < 100_000, "{bytes} bytes");
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
        assert_eq!(pack.geometry().chunk_samples(), expected, "{args:?}");
        if args.contains(&"--batch") {
            let batch: u64 = args.last().unwrap().parse().unwrap();
            assert_eq!(provenance(&pack)["options"]["batch"], batch);
        }
    }
}

#[test]
fn splits_are_told_apart_and_share_their_class_ids() {
    let dir = temp_dir();
    let source = dir.path().join("set");
    for (split, class) in [("train", "dog"), ("train", "fish"), ("val", "cat"), ("val", "fish")] {
        copy_tree(&folder().join(class), &source.join(split).join(class));
    }
    let out = dir.path().join("out.pack");
    // Each split has its own file, so this file is kept.
    fs::write(&out, "precious").unwrap();
    let result = run(&["--json"], &source, &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let told = "found the splits 'train', 'val': each gets its own pack; --split NAME writes only one";
    assert!(stderr(&result).contains(told), "{}", stderr(&result));
    let all = run(&["--split", "all", "--force", "--json"], &source, &out);
    assert!(all.status.success() && !stderr(&all).contains("found the splits"), "{}", stderr(&all));
    let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(report["n_samples"], 15);
    assert_eq!(report["splits"]["val"]["n_samples"], 8);
    assert_eq!(names_in(dir.path()), ["out.pack", "out.train.pack", "out.val.pack", "set"]);
    for split in ["train", "val"] {
        let pack = open(&dir.path().join(format!("out.{split}.pack")));
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog", "fish"]);
    }
    let one = dir.path().join("one.pack");
    convert(&["--split", "val"], &source, &one);
    assert_eq!(fs::read(&one).unwrap(), fs::read(dir.path().join("out.val.pack")).unwrap());
    let chosen = stderr(&run(&["--split", "val"], &source, &out));
    assert!(chosen.contains(&format!("{}: this file already exists", out.display())), "{chosen}");
    // The pack of the last split already exists, so that of the first is not written either.
    fs::remove_file(dir.path().join("out.train.pack")).unwrap();
    let stopped = stderr(&run(&[], &source, &out));
    let taken = dir.path().join("out.val.pack");
    assert!(stopped.contains(&format!("{}: this file already exists", taken.display())), "{stopped}");
    assert_eq!(names_in(dir.path()), ["one.pack", "out.pack", "out.val.pack", "set"]);
}

#[test]
fn dry_run_tells_the_plan_and_writes_nothing() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let result = run(&["--dry-run", "--json"], &folder(), &out);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let plan: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(plan["n_samples"], 12);
    assert_eq!(plan["source"]["kind"], "image_folder");
    assert_eq!(plan["source"]["labels"], "one");
    assert_eq!(plan["chosen"]["mode"], "raw");
    assert_eq!(plan["chosen"]["bytes"], 12 * 224 * 224 * 3);
    assert_eq!(plan["chosen"]["chunk_samples"], 64);
    assert_eq!(plan["forms"][1]["mode"], "encoded");
    assert!(plan["forms"].as_array().unwrap().iter().all(|f| f["images_per_s"].as_f64().unwrap() > 0.0));
    assert_eq!(plan["fields"][0]["shape"], serde_json::json!([224, 224, 3]));
    assert!(names_in(dir.path()).is_empty());
    let text = stdout(&run(&["--dry-run"], &folder(), &out));
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("mode ")).take(4).collect();
    assert!(rows[1].starts_with("raw ") && rows[1].ends_with(" chosen"), "{text}");
    assert!(rows[1].starts_with("raw ") && rows.iter().any(|row| row.ends_with(" chosen")), "{text}");
    assert!(text.contains("read as  image folder, one sample per file; the first image is cat/a.jpg"), "{text}");
}

#[test]
fn dry_run_warns_of_empty_images_and_what_the_conversion_does() {
    let dir = temp_dir();
    let (source, out) = (dir.path().join("set"), dir.path().join("out.pack"));
    fs::create_dir(&source).unwrap();
    for (name, bytes) in [("a.png", fs::read(folder().join("cat/a.jpg")).unwrap()), ("b.jpg", Vec::new())] {
        fs::write(source.join(name), bytes).unwrap();
    }
    for (policy, then, code) in [
        ("stop", "the conversion fails; --on-error skip leaves out bad samples", 1),
        ("skip", "the conversion leaves out their samples", 1),
        ("substitute", "the conversion replaces them with zeros", 1),
    ] {
        let result = run(&["--dry-run", "--on-error", policy], &source, &out);
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
        let warning = format!("1 empty image file, such as 'b.jpg': {then}");
        assert!(stderr(&result).contains(&warning), "{}", stderr(&result));
        assert!(stdout(&result).ends_with("damaged ones are found by the conversion\n"), "{}", stdout(&result));
        assert_eq!(run(&["--on-error", policy, "--force"], &source, &out).status.code(), Some(code));
    }
    let whole = run(&["--dry-run"], &folder(), &out);
    assert!(!stderr(&whole).contains("empty"), "{}", stderr(&whole));
}

#[test]
fn dry_run_explains_the_reading_and_draws_some_samples() {
    let dir = temp_dir();
    let (out, sheet) = (dir.path().join("out.pack"), dir.path().join("sheet.png"));
    let options = ["--dry-run", "--explain", "--sheet", sheet.to_str().unwrap()];
    let text = stdout(&run(&options, &folder(), &out));
    assert!(text.contains("why      format: it is a folder with image files; instead: --from FORMAT"), "{text}");
    assert!(text.contains("why      label: each folder with images is a class; instead: a CSV file"), "{text}");
    assert!(fs::read(&sheet).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(names_in(dir.path()), ["sheet.png"]);
    let again = run(&options, &folder(), &out);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains("sheet.png") && stderr(&again).contains("--force"), "{}", stderr(&again));
    let alone = run(&["--explain"], &folder(), &out);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
    let splits = run(&["--dry-run", "--split", "all", "--sheet", "x.png"], &folder(), &out);
    assert_eq!(splits.status.code(), Some(2), "{}", stderr(&splits));
}

#[test]
fn a_chunk_counts_texts_beside_the_image() {
    let dir = temp_dir();
    let image = folder().join("cat/a.jpg");
    let write = |name: &str, text: &str| {
        let rows = format!("{{\"path\": {image:?}, \"caption\": \"{text}\"}}\n").repeat(40);
        let path = dir.path().join(name);
        fs::write(&path, rows).unwrap();
        path
    };
    let long = write("long.jsonl", &"a".repeat(512 << 10));
    let short = write("short.jsonl", "a cat");
    for (source, mode, expected) in
        [(&long, "raw", 16), (&long, "encoded", 16), (&short, "encoded", 1024), (&short, "raw", 1024)]
    {
        let size = ["--resize", "32x32", "--json"];
        let options = match mode {
            "raw" => &size[..],
            _ => &["--mode", mode, "--json"],
        };
        let out = dir.path().join(format!("{expected}.{mode}.pack"));
        let planned = run(&[options, &["--dry-run"]].concat(), source, &out);
        let planned: Value = serde_json::from_str(&stdout(&planned)).unwrap();
        assert_eq!(planned["chosen"]["chunk_samples"], expected, "{planned}");
        let result = run(options, source, &out);
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
        let found = open(&out).geometry().chunk_samples();
        assert_eq!(found, expected, "{source:?} {mode}");
    }
}

#[test]
fn report_has_what_machines_read() {
    let dir = temp_dir();
    let result = run(&["--json"], &folder(), &dir.path().join("out.pack"));
    let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(report["n_samples"], 12);
    assert_eq!(report["skipped"], Value::Array(Vec::new()));
    assert_eq!(report["bytes_in"], folder_bytes());
    let fields = open(&dir.path().join("out.pack")).schema().fields().to_vec();
    assert_eq!(report["fields"], serde_json::to_value(fields).unwrap());
    assert_eq!(report["bytes_out"], fs::metadata(dir.path().join("out.pack")).unwrap().len());
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
    fs::copy(folder().join("cat/a.jpg"), class.join(std::ffi::OsStr::from_bytes(b"\xff\xfe.jpg"))).unwrap();
    std::os::unix::fs::symlink(folder().join("cat/b.jpg"), class.join("a link.jpg")).unwrap();
    let out = dir.path().join("out.pack");
    convert(&["--keep-order"], &source, &out);
    let pack = open(&out);
    let paths: Vec<Vec<u8>> = (0..2).map(|i| pack.path(i).unwrap().unwrap()).collect();
    assert_eq!(paths, [b"caf\xe9 noir/a link.jpg".to_vec(), b"caf\xe9 noir/\xff\xfe.jpg".to_vec()]);
}

#[test]
fn labels_that_are_no_integers_become_a_column_of_floats() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,label\na.jpg,0.5\nb.jpg,2\n");
    let out = dir.path().join("out.pack");
    convert(&["--keep-order"], &manifest, &out);
    let pack = open(&out);
    let label = pack.schema().index_of("label").unwrap();
    assert_eq!(pack.schema().fields()[label].dtype.name(), "f64");
    let values: Vec<f64> =
        (0..2).map(|i| f64::from_le_bytes(pack.item(label, i).unwrap().as_ref().try_into().unwrap())).collect();
    assert_eq!(values, [0.5, 2.0]);
}

#[test]
fn label_lists_become_a_set_of_bits() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,labels\na.jpg,sky;tree\nb.jpg,boat\n");
    let out = dir.path().join("out.pack");
    convert(&["--keep-order"], &manifest, &out);
    let pack = open(&out);
    assert_eq!(pack.classes().unwrap()[0].names, ["boat", "sky", "tree"]);
    assert_eq!(pack.classes().unwrap()[0].counts, [1, 1, 1]);
    assert_eq!(column(&pack, "labels"), [0b110, 0b001]);
}

#[test]
fn label_lists_of_ids_hold_the_largest_id() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,labels\na.jpg,3;9\nb.jpg,0\n");
    let out = dir.path().join("out.pack");
    convert(&["--keep-order"], &manifest, &out);
    let pack = open(&out);
    let labels = pack.schema().index_of("labels").unwrap();
    assert_eq!(pack.item(labels, 0).unwrap().as_ref(), [0b1000, 0b10]);
    assert_eq!(pack.item(labels, 1).unwrap().as_ref(), [0b1, 0]);
}

#[test]
fn dry_run_counts_compressed_bytes() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let result = run(&["--dry-run", "--codec", "zstd", "--json"], &folder(), &out);
    let plan: Value = serde_json::from_str(&stdout(&result)).unwrap();
    convert(&["--codec", "zstd"], &folder(), &out);
    let (expected, found) = (open(&out), plan["chosen"]["bytes"].as_u64().unwrap());
    let stored: u64 = (0..expected.n_chunks()).map(|k| expected.chunk_entry(k).unwrap().stored_len).sum();
    assert!(found.abs_diff(stored) * 20 < stored, "{found} {stored}");
}
