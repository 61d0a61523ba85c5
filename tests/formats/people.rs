//! Sources like those of tutorials and competitions. They are read correctly, with warnings about decisions, or
//! rejected with advice.

use serde_json::{Value, json};

use super::items::{Bytes, convert, hex, ids, items};
use super::python;
use crate::support::Folder;

/// The sources, and their contents.
fn sources() -> (Folder, Value) {
    sources_of("people.py")
}

/// The sources that a script writes, and their contents.
pub(super) fn sources_of(script: &str) -> (Folder, Value) {
    let folder = Folder::new();
    let written = python(&[script, folder.path("").to_str().unwrap()]);
    (folder, serde_json::from_str(&written).unwrap())
}

/// Checks that the warnings about a source have these words.
#[track_caller]
pub(super) fn assert_told(folder: &Folder, source: &str, words: &[&str]) {
    let said = told(folder, source);
    assert!(words.iter().all(|word| said.contains(word)), "{source}: {said}");
}

/// The warnings about a source that is read.
pub(super) fn told(folder: &Folder, source: &str) -> String {
    let ran = folder.packds(&["convert", source, "told.pack", "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stderr
}

/// The error and the hint for a source that is rejected.
#[track_caller]
pub(super) fn refused(folder: &Folder, source: &str, code: i32) -> String {
    let ran = folder.packds(&["convert", source, "no.pack"]);
    assert_eq!(ran.code, code, "{source}: {ran:?}");
    assert!(!folder.path("no.pack").exists());
    ran.stderr
}

pub(super) fn names(pack: &Bytes) -> Vec<String> {
    pack.classes().unwrap().first().map(|classes| classes.names.clone()).unwrap_or_default()
}

#[test]
fn tables_of_pandas_have_their_images_and_labels() {
    let (folder, expected) = sources();
    for name in [
        "train.csv",
        "train_index.csv",
        "train_semicolon.csv",
        "train.csv.gz",
        "named.csv",
        "floats.csv",
        "named.json",
        "labels.json",
        "lines.txt",
    ] {
        let source = format!("tables/{name}");
        let args: &[&str] = if name == "train_index.csv" { &["--label-key", "diagnosis"] } else { &[] };
        let pack = convert(&folder, &source, args);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        assert_eq!(hex(&items(&pack, "image").concat()), expected["pixels"], "{name}");
        let has_names = ["named.csv", "named.json", "labels.json"].contains(&name);
        assert_eq!(names(&pack), if has_names { vec!["cat", "dog", "owl"] } else { vec![] }, "{name}");
    }
    // A column called `labels` holds lists, unless --label-key names it.
    let pack = convert(&folder, "tables/lists.csv", &["--label-key", "labels"]);
    assert_eq!(json!(ids(&pack)), expected["labels"]);
    let said = told(&folder, "tables/lists.csv");
    assert!(
        said.contains("every list in 'labels' has one label: to read single labels, add --label-key labels"),
        "{said}"
    );
    let said = told(&folder, "tables/train.csv");
    assert!(said.contains("labels are read from 'diagnosis', the only column besides the paths"), "{said}");
    assert!(
        said.contains("the paths in 'id_code' do not lead to files as written, so packds searched for the files: 'id_00' is read from 'train_images/id_00.png'"),
        "{said}"
    );
    assert!(told(&folder, "tables/train_index.csv").contains("left out the first column: it has no name"));
}

#[test]
fn a_column_of_splits_is_chosen_from() {
    let (folder, expected) = sources();
    let val = convert(&folder, "tables/splits.csv", &["--split", "val"]);
    assert_eq!(json!(ids(&val)), json!([0, 1, 2]));
    assert_eq!(names(&val), ["cat", "dog", "owl"]);
    let ran = folder.packds(&["convert", "tables/splits.csv", "all.pack"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("found the splits 'train', 'val'") && ran.stderr.contains("--split NAME"), "{ran:?}");
    assert!(folder.path("all.train.pack").exists() && folder.path("all.val.pack").exists());
    assert_eq!(expected["labels"].as_array().unwrap().len(), 12);
}

#[test]
fn masks_of_every_type_are_masks() {
    let (folder, expected) = sources();
    for form in ["bool", "f32", "i64", "u16", "channel", "one_hot", "one_hot_first"] {
        for extension in ["npz", "h5"] {
            let source = format!("masks/{form}.{extension}");
            let pack = convert(&folder, &source, &[]);
            let masks = if form == "bool" { "bool" } else { "masks" };
            assert_eq!(hex(&items(&pack, "mask").concat()), expected[masks], "{source}");
        }
    }
    let pack = convert(&folder, "masks/three.npz", &[]);
    assert_eq!(hex(&items(&pack, "mask").concat()), expected["three"]);
    let pack = convert(&folder, "masks/label_map.h5", &[]);
    assert_eq!(hex(&items(&pack, "mask").concat()), expected["masks"]);
    assert!(told(&folder, "masks/label_map.h5").contains("masks are read from 'label'"));
    assert!(
        told(&folder, "masks/one_hot.npz")
            .contains("the masks are one-hot: the 3 classes are packed as the numbers 0 to 2")
    );
    let said = refused(&folder, "masks/halves.npz", 1);
    assert!(said.contains("mask: expected whole numbers from 0 to 255, found 0.5"), "{said}");
    let said = refused(&folder, "masks/one.h5", 2);
    assert!(said.contains("the file may be one sample"), "{said}");
}

#[test]
fn tar_files_have_their_labels_wherever_they_are() {
    let (folder, expected) = sources();
    for (name, labels) in
        [("stems.tar", "labels"), ("folders.tar", "labels"), ("classes.tar.gz", "by_class"), ("per_class", "by_class")]
    {
        let pack = convert(&folder, &format!("tars/{name}"), &[]);
        assert_eq!(json!(ids(&pack)), expected[labels], "{name}");
        let has_names = labels == "by_class";
        assert_eq!(names(&pack), if has_names { vec!["cat", "dog", "owl"] } else { vec![] }, "{name}");
    }
    assert!(told(&folder, "tars/per_class").contains("read 3 tar files as classes (first: 'cat')"));
    assert!(told(&folder, "tars/splits.tar").contains("found the splits 'train', 'val'"));
}

#[test]
fn files_that_are_not_data_are_named_with_what_to_do() {
    let (folder, _) = sources();
    for (name, error, hint) in [
        ("pointer.parquet", "this is a Git LFS pointer instead of the file", "git lfs pull"),
        ("page.npz", "this is a web page instead of the file", "download the file again"),
        ("one.png", "a single image", "pass the folder"),
    ] {
        let said = refused(&folder, &format!("foreign/{name}"), 2);
        assert!(said.contains(error) && said.contains(hint), "{name}: {said}");
    }
}

#[test]
fn images_of_more_than_8_bits_are_told() {
    let (folder, _) = sources();
    let ran = folder.packds(&["convert", "foreign/deep", "deep.pack"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("reduced 2 images with more than 8 bits per channel to 8 bits"), "{ran:?}");
    let said = refused(&folder, "foreign/white", 2);
    let words = ["such as 'a.png', and nearly all of their values are above 255", "src.rglob(\"*.png\")"];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(folder.packds(&["convert", "foreign/white", "files.pack", "--mode", "encoded"]).code, 0);
    // Depth images among photos would become white as well.
    let said = refused(&folder, "foreign/depth", 2);
    assert!(said.contains("such as 'sync_depth_0.png', and nearly all of their values are above 255"), "{said}");
}
