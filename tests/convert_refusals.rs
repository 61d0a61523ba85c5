//! `packds convert`, end to end: errors, and bad files.

use std::fs;
use std::path::Path;

use packds_pixels::{Color, Filter, Resize};
use serde_json::Value;

use crate::converting::{
    CROP_224, column, convert, folder, folder_with_bad, manifest_in, names_in, open, path_of, pixels, refused, run,
    same_size,
};
use crate::support::{fixture, provenance, stderr, stdout, temp_dir};

#[test]
fn a_manifest_column_named_like_a_field_of_every_pack_is_refused() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,source_id\na.jpg,3\n");
    let reason = format!("{}: field `source_id` of the source has a name that packs reserve", dir.path().display());
    refused(&run(&[], &manifest, &dir.path().join("out.pack")), 2, &reason);
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
            let expected = format!("packds: error: {}: ", source.join(name).display());
            assert!(text.starts_with(&expected), "{mode} {file}: {text}");
            assert!(text.contains("\nhint: --on-error skip leaves out bad samples"), "{mode} {file}: {text}");
            assert_eq!(names_in(dir.path()), ["source"], "{mode} {file} left something behind");
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
        assert!(text.lines().next().unwrap().contains(wanted), "{file}: expected {wanted:?} in {text}");
    }
}

#[test]
fn the_first_bad_file_in_listing_order_is_named_at_any_number_of_jobs() {
    let dir = temp_dir();
    let bad = [("zero_bytes.jpg", "cat/b0.jpg"), ("text_named.jpg", "dog/z.jpg"), ("truncated.jpg", "fish/a0.jpg")];
    let source = folder_with_bad(dir.path(), &bad);
    for seed in ["0", "1", "2", "3"] {
        for jobs in ["1", "3"] {
            let result = run(&["--seed", seed, "--jobs", jobs, "--chunk", "2"], &source, &dir.path().join("out.pack"));
            let text = stderr(&result);
            assert!(
                text.contains(&format!("packds: error: {}", source.join("cat/b0.jpg").display())),
                "{seed} {jobs}: {text}"
            );
        }
    }
}

#[test]
fn skip_leaves_bad_files_out_and_lists_them() {
    let dir = temp_dir();
    let bad = [("zero_bytes.jpg", "cat/b0.jpg"), ("text_named.jpg", "dog/z.jpg"), ("truncated.jpg", "fish/a0.jpg")];
    let source = folder_with_bad(dir.path(), &bad);
    let mut bodies = Vec::new();
    for jobs in ["1", "2", "4"] {
        let out = dir.path().join(format!("{jobs}.pack"));
        let result = run(&["--on-error", "skip", "--json", "--chunk", "10", "--jobs", jobs], &source, &out);
        assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
        let report: Value = serde_json::from_str(&stdout(&result)).unwrap();
        let skipped: Vec<&str> =
            report["skipped"].as_array().unwrap().iter().map(|s| s["path"].as_str().unwrap()).collect();
        assert_eq!(skipped, ["cat/b0.jpg", "dog/z.jpg", "fish/a0.jpg"]);
        assert!(report["skipped"][0]["reason"].as_str().unwrap().contains("empty"));
        assert_eq!(report["n_samples"], 12);
        let pack = open(&out);
        assert_eq!(provenance(&pack)["skipped"], report["skipped"]);
        assert_eq!((pack.n_samples(), pack.n_chunks()), (12, 2));
        let mut paths: Vec<String> = (0..12).map(|i| path_of(&pack, i)).collect();
        for sample in 0..12 {
            let file = source.join(path_of(&pack, sample));
            let expected = pixels(&file, Resize::Short(256), CROP_224, Filter::Bilinear, Color::Rgb);
            assert_eq!(pack.item(0, sample).unwrap().as_ref(), expected);
        }
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 12);
        assert_eq!(pack.stats().unwrap().fields["image"].n_pixels, 12 * 224 * 224);
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
        let args = ["--on-error", "substitute", "--keep-order", "--json", "--mode", mode];
        let result = run(&args, &source, &out);
        assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
        let pack = open(&out);
        let bad = (0..13).find(|i| path_of(&pack, *i) == "dog/bad.jpg").unwrap();
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
    let result = run(&["--on-error", "skip"], &source, &dir.path().join("out.pack"));
    let message = format!("{}: none of the images could be converted (1 skipped)", source.display());
    refused(&result, 1, &message);
    assert_eq!(names_in(dir.path()), ["source"]);
}

#[test]
fn max_pixels_is_kept() {
    let dir = temp_dir();
    let result = run(&["--max-pixels", "100"], &same_size(), &dir.path().join("out.pack"));
    assert_eq!(result.status.code(), Some(1));
    assert!(stderr(&result).contains("100"), "{}", stderr(&result));
}

#[test]
fn an_existing_output_is_replaced_only_with_force() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    fs::write(&out, "precious").unwrap();
    let message = format!("{}: this file already exists", out.display());
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
    let message = format!("{}: the folder {} does not exist", missing.display(), dir.path().join("no").display());
    refused(&run(&[], &same_size(), &missing), 2, &message);
    let message = format!("{}: this is a folder, but the output must be a file", dir.path().display());
    refused(&run(&["--force"], &same_size(), dir.path()), 2, &message);
    // The path of the folder does not end in a name.
    let message = ".: this is a folder, but the output must be a file";
    refused(&run(&[], &same_size(), Path::new(".")), 2, message);
    let result = run(&[], &same_size(), Path::new("/proc/out.pack"));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).starts_with("packds: error: /proc/out.pack: cannot write here: "), "{}", stderr(&result));
}

#[test]
fn missing_sources_and_empty_folders_are_named() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let missing = dir.path().join("nothing");
    refused(&run(&[], &missing, &out), 2, &format!("{}: no such file or folder", missing.display()));
    let empty = dir.path().join("empty");
    fs::create_dir_all(empty.join("class")).unwrap();
    let result = run(&[], &empty, &out);
    assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
    assert!(stderr(&result).contains(&format!("{}: no images in this folder", empty.display())));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let cases: [(&[&str], &str); 11] = [
        (&["--chunk", "48", "--batch", "256"], "--chunk 48 and --batch 256: neither divides the other"),
        (
            &["--mode", "encoded", "--resize", "short:64"],
            "--mode encoded keeps the files' bytes, so it cannot resize, crop or rotate images, or convert them to gray",
        ),
        (&["--quality", "90"], "--quality only applies to images that are re-encoded"),
        (
            &["--mode", "encoded", "--dtype", "f32"],
            "--dtype f32 and --layout hwc need --mode raw, found --mode encoded",
        ),
        (&["--check-decode"], "--check-decode only applies to files that are stored unchanged"),
        (
            &["--mode", "encoded", "--normalize", "dataset"],
            "--normalize dataset needs the pixels of all images, but --mode encoded does not decode them",
        ),
        (&["--normalize", "0.5/0.5"], "--normalize has 1 value, but the images have 3 channels"),
        (&["--gray", "--normalize", "imagenet"], "--normalize imagenet applies to 3 channels, but --gray has 1"),
        (&["--mode", "mixed", "--raw-fraction", "1.5"], "--raw-fraction: expected a number from 0 to 1, found 1.5"),
        (&["--raw-fraction", "0.5"], "--raw-fraction requires --mode mixed"),
        (
            &["--resize", "none", "--dtype", "f32"],
            "--dtype f32 and --layout hwc need images of one size, but these have several sizes",
        ),
    ];
    for (args, message) in cases {
        let dir = temp_dir();
        refused(&run(args, &folder(), &dir.path().join("out.pack")), 2, message);
        assert!(names_in(dir.path()).is_empty(), "{args:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let dir = temp_dir();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    std::os::unix::fs::symlink("nowhere", source.join("gone.jpg")).unwrap();
    let message =
        format!("{}: cannot read this file: No such file or directory (os error 2)", source.join("gone.jpg").display());
    let out = dir.path().join("out.pack");
    refused(&run(&[], &source, &out), 1, &message);
    assert_eq!(names_in(dir.path()), ["source"]);
}

#[test]
fn label_ids_beyond_a_set_are_refused() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,labels\na.jpg,3;8192\n");
    let message = "the ids in a label set must be from 0 to 8191, found 8192";
    refused(&run(&[], &manifest, &dir.path().join("out.pack")), 2, message);
}

#[test]
fn a_quote_that_is_not_closed_is_refused() {
    let dir = temp_dir();
    let manifest = manifest_in(dir.path(), "path,label\na.jpg,\"x\nb.jpg,y\n");
    let message = format!("{}: line 2: a quote is not closed", manifest.display());
    refused(&run(&[], &manifest, &dir.path().join("out.pack")), 1, &message);
    fs::write(&manifest, "path,label\na.jpg,x\nb.jpg,\"y\nz\"\n").unwrap();
    let result = run(&[], &manifest, &dir.path().join("out.pack"));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let message =
        "--image-key, --label-key, --mask-key and --leave-out need a source with fields, and a folder has none";
    refused(&run(&["--label-key", "x"], &folder(), &out), 2, message);
    let message =
        "--filter and --jpeg-scaling only apply to images that are decoded, but --mode encoded keeps the files' bytes";
    let args = ["--mode", "encoded", "--jpeg-scaling"];
    refused(&run(&args, &folder(), &out), 2, message);
}
