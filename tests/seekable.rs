//! `packds convert --seekable`, end to end: indexes next to the unchanged images, and everything that reads such
//! a pack.

#![cfg(test)]

use std::fs;

use packds_format::{Coding, FieldKind};
use packds_pixels::build_seek_index;

use crate::converting::{convert, folder, names_in, open, path_of, refused, run};
use crate::support::{Folder, fixture, packds, stdout, temp_dir};

#[test]
fn each_jpeg_gets_its_index_and_keeps_its_bytes() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--mode", "encoded", "--seekable"], &folder(), &out);
    let pack = open(&out);
    let (seek, field) = pack.schema().seek_index_of("image").unwrap();
    assert_eq!((seek, field.name.as_str(), field.kind), (1, "image.seek", FieldKind::Bytes));
    let (mut n_indexed, mut bytes, mut image_bytes) = (0, 0, 0);
    for sample in 0..pack.n_samples() {
        let file = fs::read(folder().join(path_of(&pack, sample))).unwrap();
        assert_eq!(pack.item(0, sample).unwrap().as_ref(), file);
        let index = pack.item(seek, sample).unwrap();
        assert_eq!(index.as_ref(), build_seek_index(&file).unwrap_or_default());
        let is_jpeg = pack.coding("image", sample).unwrap() == Some(Coding::Jpeg);
        assert_eq!(index.is_empty(), !is_jpeg, "sample {sample}");
        pack.check_sample(sample).unwrap();
        n_indexed += u64::from(is_jpeg);
        bytes += index.len() as u64;
        image_bytes += file.len() as u64;
    }
    let stats = pack.stats().unwrap().seek["image.seek"];
    assert_eq!((stats.n_indexed, stats.bytes, stats.image_bytes), (n_indexed, bytes, image_bytes));
}

#[test]
fn files_of_every_kind_are_packed_with_and_without_an_index() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    convert(&["--mode", "encoded", "--seekable"], &fixture("images/formats"), &out);
    let pack = open(&out);
    let with_index = (0..pack.n_samples()).filter(|&sample| !pack.item(1, sample).unwrap().is_empty());
    let mut names: Vec<String> = with_index.map(|sample| path_of(&pack, sample)).collect();
    names.sort();
    assert_eq!(names, ["baseline.jpg", "baseline_422.jpg", "baseline_444.jpg", "exif_orientation_6.jpg", "gray.jpg"]);
}

#[test]
fn images_encoded_anew_get_indexes_too() {
    let dir = temp_dir();
    let out = dir.path().join("out.pack");
    let args = ["--mode", "encoded", "--quality", "90", "--resize", "max:100", "--seekable", "--codec", "zstd"];
    convert(&args, &folder(), &out);
    let pack = open(&out);
    for sample in 0..pack.n_samples() {
        let expected = build_seek_index(&pack.item(0, sample).unwrap()).unwrap();
        assert_eq!(pack.item(1, sample).unwrap().as_ref(), expected);
    }
}

#[test]
fn a_substitute_has_no_index() {
    let dir = temp_dir();
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(fixture("images/bad/truncated.jpg"), source.join("a.jpg")).unwrap();
    fs::copy(fixture("images/formats/baseline.jpg"), source.join("b.jpg")).unwrap();
    let out = dir.path().join("out.pack");
    let args = ["--mode", "encoded", "--seekable", "--keep-order", "--on-error", "substitute"];
    assert_eq!(run(&args, &source, &out).status.code(), Some(1));
    let pack = open(&out);
    assert!(pack.item(1, 0).unwrap().is_empty());
    assert_eq!(pack.stats().unwrap().seek["image.seek"].n_indexed, 1);
}

#[test]
fn report_info_verify_show_and_extract_know_of_indexes() {
    let dir = Folder::new();
    let (source, pack) = (folder(), dir.path("out.pack"));
    let result = run(&["--mode", "encoded", "--seekable", "-v"], &source, &pack);
    let line = stdout(&result).lines().find_map(|line| line.strip_prefix("seek     ").map(str::to_owned));
    let line = line.unwrap();
    assert!(line.starts_with("index of 10 of 12 images: ") && line.ends_with(" % of the images' bytes"), "{line}");
    let text = dir.packds(&["info", "out.pack"]).ok();
    assert!(text.contains(&format!("\nseek      image.seek: {line}\n")), "{text}");
    assert!(text.contains("image.seek      seek indexes of `image`\n"), "{text}");
    let info = dir.packds(&["info", "out.pack", "--json"]).json();
    assert_eq!(info["stats"]["seek"]["image.seek"]["n_indexed"], 10);
    assert_eq!(info["fields"][1]["seek_index_of"], "image");
    assert_eq!(info["provenance"]["options"]["seekable"], true);
    dir.packds(&["verify", "out.pack"]).ok();
    dir.packds(&["show", "out.pack", "-o", "sheet.png"]).ok();
    dir.packds(&["extract", "out.pack", "files"]).ok();
    // Only images are extracted, because the source had no indexes.
    let files: usize = ["cat", "dog", "fish"].map(|class| dir.files(&format!("files/{class}")).len()).iter().sum();
    assert_eq!(files, 12);
}

#[test]
fn seekable_is_for_encoded_images() {
    for mode in ["raw", "mixed"] {
        let dir = temp_dir();
        let result = run(&["--mode", mode, "--seekable"], &folder(), &dir.path().join("out.pack"));
        refused(&result, 2, &format!("--seekable only applies to packs of image files, found --mode {mode}"));
        assert!(names_in(dir.path()).is_empty(), "{mode}");
    }
}

#[test]
fn indexes_are_the_same_at_any_number_of_jobs() {
    let dir = temp_dir();
    let packs = ["1", "3"].map(|jobs| {
        let out = dir.path().join(jobs);
        convert(&["--mode", "encoded", "--seekable", "--jobs", jobs], &folder(), &out);
        fs::read(out).unwrap()
    });
    assert!(packs[0] == packs[1]);
    assert!(stdout(&packds(&["convert", "--help"])).contains("--seekable"));
}
