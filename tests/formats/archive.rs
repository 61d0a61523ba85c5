//! Archives written by Python's `zipfile`, `tarfile` and `zstandard` give the same packs as the folders in them.

use std::fs;

use super::items::{Bytes, convert};
use super::python;
use crate::support::Folder;

fn archives() -> Folder {
    let folder = Folder::new();
    python(&["archive.py", "write", folder.path("").to_str().unwrap()]);
    folder
}

/// The bytes of the pack made from a source. Checks that nothing that was unpacked is left.
fn pack_of(folder: &Folder, source: &str, args: &[&str]) -> Vec<u8> {
    convert(folder, source, args);
    let names = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("packds-")).collect();
    assert!(left.is_empty(), "{source}: {left:?}");
    fs::read(folder.path("out.pack")).unwrap()
}

fn assert_same(folder: &Folder, plain: &str, archives: &[&str], args: &[&str]) {
    let expected = pack_of(folder, plain, args);
    for archive in archives {
        assert!(pack_of(folder, archive, args) == expected, "{archive}");
    }
}

fn names(pack: &Bytes) -> Vec<String> {
    (0..pack.n_samples()).map(|i| String::from_utf8_lossy(&pack.path(i).unwrap().unwrap()).into_owned()).collect()
}

#[test]
fn an_archive_of_class_folders_gives_the_same_bytes_as_the_folder() {
    let folder = archives();
    let all = [
        "classes.zip",
        "stored.zip",
        "bzip2.zip",
        "classes.tar",
        "classes.tar.gz",
        "classes.tar.xz",
        "classes.tar.bz2",
        "classes.tar.zst",
        "download",
        "nested.zip",
    ];
    assert_same(&folder, "classes", &all, &[]);
    let pack = convert(&folder, "classes.tar.xz", &[]);
    assert_eq!(names(&pack)[..2], ["cat/cat.1.png", "cat/cat.2.png"]);
    assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog", "owl"]);
}

#[test]
fn archives_of_pairs_splits_and_other_formats_give_the_same_bytes_as_the_folders() {
    let folder = archives();
    assert_same(&folder, "pairs", &["pairs.zip", "pairs.tar", "pairs.tar.gz"], &[]);
    assert_same(&folder, "pairs_of_arrays", &["pairs_of_arrays.zip", "pairs_of_arrays.tar"], &[]);
    assert_same(&folder, "beside", &["beside.zip", "beside.tar", "beside.tar.gz"], &[]);
    assert!(convert(&folder, "beside.tar", &[]).schema().index_of("mask").is_ok());
    assert_same(&folder, "splits", &["splits.zip", "splits.tar", "splits.tar.gz"], &["--split", "test"]);
    assert_same(&folder, "cifar", &["cifar.zip", "cifar.tar", "cifar.tar.gz"], &[]);
    assert_same(&folder, "mnist/gzip", &["mnist.zip", "mnist.tar.gz"], &[]);
    assert_same(&folder, "zarr_store", &["zarr_store.zip", "zarr_store.tar.gz"], &[]);
}

#[test]
fn a_compressed_file_gives_the_same_bytes_as_the_file() {
    let folder = archives();
    // `x.npy` in a zip file is an `.npz` file.
    for (name, ends) in
        [("x.npy", &[".gz", ".xz", ".bz2", ".zst"][..]), ("rows.csv", &[".gz", ".xz", ".bz2", ".zst", ".zip"])]
    {
        let packed: Vec<String> = ends.iter().map(|end| format!("{name}{end}")).collect();
        assert_same(&folder, name, &packed.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    }
}

#[test]
fn a_tar_file_of_a_tar_file_for_each_class_gives_the_same_bytes_as_the_folder_of_these() {
    let folder = archives();
    let all = ["ILSVRC2012_img_train.tar", "classes_of_tars.tar.gz", "classes_of_tars.zip"];
    assert_same(&folder, "classes_of_tars", &all, &[]);
    let pack = convert(&folder, all[0], &[]);
    assert_eq!(pack.classes().unwrap()[0].names, ["n01", "n02"]);
    assert_eq!(names(&pack)[0], "n01_1.jpeg");
}

#[test]
fn a_path_may_lead_into_an_archive() {
    let folder = archives();
    assert_same(&folder, "classes/pets/cat", &["classes.zip/pets/cat", "nested.zip/inner/classes.zip/pets/cat"], &[]);
    assert_same(&folder, "splits/train", &["splits.tar.gz/train"], &[]);
    let missing = folder.packds(&["convert", "splits.zip/none", "no.pack"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("splits.zip/none: no such file or folder"), "{missing:?}");
}

#[test]
fn messages_about_an_archive_name_it_and_not_its_temporary_folder() {
    let folder = archives();
    let none = folder.packds(&["convert", "splits.zip", "no.pack", "--split", "none"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("splits.zip: no split 'none' here, found 'test', 'train'"), "{none:?}");
    let dry = folder.packds(&["convert", "classes.zip", "no.pack", "--dry-run"]);
    assert_eq!(dry.code, 0);
    assert!(dry.stdout.contains("the first image is cat/cat.1.png"), "{dry:?}");
    let all = folder.packds(&["convert", "splits.zip", "both.pack"]);
    assert_eq!(all.code, 0, "{all:?}");
    assert!(all.stderr.contains("found the splits 'test', 'train': each gets its own pack"), "{all:?}");
    assert!(folder.path("both.train.pack").exists() && folder.path("both.test.pack").exists());
}
