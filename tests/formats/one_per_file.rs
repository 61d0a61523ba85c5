//! Files that hold one sample each, as `numpy`, `h5py`, `zarr`, `safetensors` and `torch` write them.

use packds_format::Pack;
use serde_json::{Value, json};

use super::items::{Bytes, convert, hex, ids, items};
use super::{python, python_with};
use crate::support::Folder;

const FORMATS: [&str; 6] = ["npy", "npz", "npz.gz", "safetensors", "h5", "zarr"];
const ONE: &str = "--one-sample-per-file";
const MANY: &str = "--many-samples-per-file";

/// The files, and their contents.
fn files() -> (Folder, Value) {
    let folder = Folder::new();
    let written = python(&["one_per_file.py", "write", folder.path("").to_str().unwrap()]);
    (folder, serde_json::from_str(&written).unwrap())
}

/// The error and the hint for a source that is rejected.
fn refused(folder: &Folder, args: &[&str]) -> String {
    let ran = folder.packds(&[&["convert", "--dry-run"], args, &["no.pack"]].concat());
    assert_ne!(ran.code, 0, "{args:?}: {ran:?}");
    ran.stderr
}

#[test]
fn class_folders_give_the_labels() {
    let (folder, expected) = files();
    for format in FORMATS {
        let pack = convert(&folder, &format!("classes/{format}"), &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["images"], "{format}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{format}");
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog"], "{format}");
    }
    let read = folder.packds(&["convert", "classes/h5", "no.pack", "--dry-run"]);
    assert!(read.stdout.contains("read as  hdf5, one sample per file; the first image is cat/0.h5"), "{read:?}");
}

#[test]
fn folders_of_splits_and_of_masks_are_read_as_for_images() {
    let (folder, expected) = files();
    for format in FORMATS {
        let source = format!("splits/{format}");
        let read = folder.packds(&["convert", &source, "no.pack", "--dry-run"]);
        assert!(read.stderr.contains("found the splits 'train', 'val'"), "{format}: {read:?}");
        let pack = convert(&folder, &source, &["--split", "train"]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["train"], "{format}");
        let pack = convert(&folder, &format!("pairs/{format}"), &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["images"], "{format}");
        assert_eq!(hex(&items(&pack, "mask").concat()), expected["masks"], "{format}");
    }
}

#[test]
fn the_arrays_of_a_file_are_its_image_label_and_mask() {
    let (folder, expected) = files();
    for format in &FORMATS[1..] {
        let pack = convert(&folder, &format!("flat/{format}"), &[ONE]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["images"], "{format}");
        assert_eq!(hex(&items(&pack, "mask").concat()), expected["masks"], "{format}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{format}");
    }
    let pack = convert(&folder, "volumes", &[ONE]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["volumes"]);
    assert_eq!(pack.schema().fields()[pack.schema().index_of("image").unwrap()].shape, [4, 10, 12]);
    // An image of floats without a channel dimension has the size of its mask.
    let pack = convert(&folder, "plane", &[ONE]);
    assert_eq!(hex(&items(&pack, "mask").concat()).len(), 2 * 10 * 12);
    // The only array is the image, whatever its name.
    assert_eq!(convert(&folder, "name.npz", &[ONE]).n_samples(), 1);
    let pack = convert(&folder, "big", &[]);
    let first = &items(&pack, "image")[0];
    assert_eq!(
        hex(&first.iter().step_by(2).copied().collect::<Vec<u8>>()),
        expected["images"].as_str().unwrap()[..2880]
    );
}

#[test]
fn torch_saves_tensors_tuples_and_dictionaries() {
    let folder = Folder::new();
    let written = python_with("torch", &["one_per_file.py", "torch", folder.path("").to_str().unwrap()]);
    let Some(written) = written else { return };
    let expected: Value = serde_json::from_str(&written).unwrap();
    for (source, args) in [("classes/pt", &[][..]), ("tuples", &[ONE]), ("dicts", &[ONE])] {
        let pack = convert(&folder, source, args);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["images"], "{source}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{source}");
    }
    assert!(refused(&folder, &["views"]).contains("tensor.contiguous()"));
    let said = refused(&folder, &["image.pt"]);
    assert!(said.contains("their shape 3x20x24 is that of one image: the file may be one sample"), "{said}");
    assert_eq!(convert(&folder, "image.pt", &[ONE]).n_samples(), 1);
    assert_eq!(convert(&folder, "image.pt", &[MANY]).n_samples(), 3);
}

#[test]
fn what_can_be_read_both_ways_is_refused_until_an_option_decides() {
    let (folder, _) = files();
    for (source, what) in [
        ("flat/npz", "there is only one label: each file may be one sample"),
        ("flat/npz.gz", "there is only one label: each file may be one sample"),
        ("volumes", "the 6 files have no labels, and their arrays have three dimensions: each file may be one sample"),
        ("maps", "'mask' has as many numbers as the image has pixels: each file may be one sample"),
        ("one.npz", "their shape 3x20x24 is that of one image: the file may be one sample"),
    ] {
        let said = refused(&folder, &[source]);
        assert!(said.contains(what) && said.contains(ONE) && said.contains(MANY), "{source}: {said}");
    }
    assert_eq!(convert(&folder, "volumes", &[MANY]).n_samples(), 24);
    assert_eq!(convert(&folder, "sets", &[]).n_samples(), 36);
    let said = refused(&folder, &["both"]);
    assert!(said.contains("both the files and the class folders have labels"), "{said}");
    assert_eq!(convert(&folder, "both", &["--leave-out", "label"]).classes().unwrap()[0].names, ["cat", "dog"]);
    let said = refused(&folder, &["flat/npz", ONE, MANY]);
    assert!(said.contains(ONE) && said.contains(MANY), "{said}");
}

#[test]
fn a_table_of_arrays_gives_their_labels_and_columns() {
    let (folder, expected) = files();
    for format in ["npy", "npz"] {
        let pack = convert(&folder, &format!("table/{format}/train.csv"), &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["images"], "{format}");
        assert_eq!(ids(&pack), [0, 1, 0, 1, 0, 1], "{format}");
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog"], "{format}");
        assert!(pack.schema().fields().iter().any(|field| field.name == "age"), "{format}");
        let tagged = folder.packds(&["convert", &format!("table/{format}/tags.csv"), "tags.pack", "--dry-run"]);
        assert!(tagged.stdout.contains("labels   a list of ids per image"), "{tagged:?}");
    }
    // The folder is read by its only table with labels.
    std::fs::rename(folder.path("table/npy/tags.csv"), folder.path("table/tags.csv")).unwrap();
    let read = folder.packds(&["convert", "table/npy", "no.pack", "--dry-run"]);
    assert!(read.stdout.contains("classes  cat, dog") && read.stderr.contains("in 'train.csv'"), "{read:?}");
    std::fs::rename(folder.path("table/tags.csv"), folder.path("table/npy/tags.csv")).unwrap();
    std::fs::remove_file(folder.path("table/npy/train/id0.npy")).unwrap();
    assert_eq!(skipping(&folder, &["table/npy/train.csv"]).n_samples(), 5);
    let said = refused(&folder, &["table/both.csv", "--root", "."]);
    assert!(said.contains("both the files and the table have labels"), "{said}");
}

/// Converts without the bad samples.
fn skipping(folder: &Folder, args: &[&str]) -> Bytes {
    let options = ["out.pack", "--keep-order", "--force", "--on-error", "skip"];
    let ran = folder.packds(&[&["convert"], args, &options].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    Pack::open(std::fs::read(folder.path("out.pack")).unwrap()).unwrap()
}

#[test]
fn a_file_that_differs_or_is_damaged_is_a_bad_sample() {
    let (folder, _) = files();
    let said = refused(&folder, &["depths", ONE]);
    assert!(
        said.contains(
            "'image': expected an array of f32 with shape [2, 10, 12], found an array of f32 with shape [3, 10, 12]"
        ),
        "{said}"
    );
    assert_eq!(skipping(&folder, &["depths", ONE]).n_samples(), 3);
    assert!(refused(&folder, &["bad"]).contains("bad/cat/0.npz"));
    assert_eq!(ids(&skipping(&folder, &["bad"])), [0, 0, 1, 1]);
}
