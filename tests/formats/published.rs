//! Datasets with the files and names of their publishers. They are read without options, or refused with a hint that
//! works.

use serde_json::{Value, json};

use super::items::{convert, hex, ids, items};
use super::people::{assert_told, names, refused, sources_of, told};
use super::python;
use crate::support::Folder;

/// The sources, and their contents.
fn sources() -> (Folder, Value) {
    sources_of("published.py")
}

/// Runs the line of Python at the end of the error about a source, in a folder.
#[track_caller]
fn run_hint(folder: &Folder, source: &str, (within, file): (&str, &str)) {
    let said = refused(folder, source, 2);
    let (_, line) = said.split_once("in Python: ").unwrap();
    // The second line is for images without labels.
    let line = line.split("; and ").next().unwrap().trim().replace("x.parquet", file);
    let within = folder.path(within);
    python(&["-c", &format!("import os, numpy, pandas\nos.chdir({within:?})\n{line}")]);
}

#[test]
fn tables_beside_images_are_read_if_they_are_meant_and_named_if_not() {
    let (folder, _) = sources();
    assert_told(&folder, "alone", &["ignored 1 other file: 1 .bib ('cite.bib')"]);
    assert_told(
        &folder,
        "boneage",
        &[
            "split 'training': read the images in 'boneage-training-dataset.csv'",
            "split 'test': read the images in 'boneage-test-dataset.csv'",
            "split 'test': image paths are read from 'Case ID', because its cells are names of image files",
        ],
    );
    assert_told(&folder, "fashion", &["joined 'images.csv' with 'styles.csv' (columns 'gender', 'articleType')"]);
    let said = told(&folder, "isic");
    assert!(said.contains("read the images in 'ISIC_Training_GroundTruth.csv'"), "{said}");
    assert!(said.contains("joined 'ISIC_Training_GroundTruth.csv' with 'ISIC_Training_Metadata.csv'"), "{said}");
    let pack = convert(&folder, "isic", &[]);
    // The class names are sorted: BCC, MEL, NV.
    assert_eq!((ids(&pack), names(&pack).len()), ([1, 2, 0].repeat(4), 3));
    assert_told(&folder, "words", &["read the images in 'gt.txt'", "are packed as the column 'text'"]);
    assert_told(&folder, "llava", &["read the images in 'chat.json'"]);
    assert!(told(&folder, "flickr").contains("read the images in 'results.csv'"));
    let pack = convert(&folder, "flickr", &[]);
    assert_eq!(items(&pack, "comment")[3], b" A dog , number 1 , runs .");
}

#[test]
fn lists_and_annotations_of_papers_have_their_labels() {
    let (folder, expected) = sources();
    let pack = convert(&folder, "fgvc/images_variant_train.txt", &[]);
    assert_eq!((json!(ids(&pack)), names(&pack).len()), (expected["labels"].clone(), 3));
    assert_told(&folder, "tiny", &["split 'val': read the images in 'val_annotations.txt'"]);
    let pack = convert(&folder, "tiny", &["--split", "val"]);
    assert_eq!(
        (ids(&pack)[..3].to_vec(), names(&pack)),
        (vec![0, 1, 0], vec!["n01443537".to_owned(), "n01629819".to_owned()])
    );
    assert_told(&folder, "tags/pairs.csv", &["'haze primary' in 'label' is packed as one class name: if it is a list"]);
    assert_told(&folder, "tags/bars.csv", &["'Effusion|Hernia' in 'label' is packed as one class name"]);
}

#[test]
fn masks_may_be_in_one_split_only_or_have_16_bits() {
    let (folder, expected) = sources();
    let said = told(&folder, "globe/metadata.csv");
    assert!(said.contains("split 'valid': packed without masks, because 'mask_path' is empty in every row"), "{said}");
    assert!(!said.contains("split 'train': packed without masks"), "{said}");
    assert_eq!(items(&convert(&folder, "globe/metadata.csv", &["--split", "train"]), "mask").len(), 4);
    let pack = convert(&folder, "salt", &[]);
    assert_eq!(hex(&items(&pack, "mask").concat()), expected["salt"]);
}

#[test]
fn records_of_tensorflow_have_one_hot_labels_and_the_names_of_tf_slim() {
    let (folder, expected) = sources();
    for (source, field) in [("hot", "one_hot"), ("named", "label")] {
        assert_told(&folder, source, &[&format!("labels are read from '{field}', which is one-hot")]);
        assert_eq!(json!(ids(&convert(&folder, source, &[]))), expected["labels"], "{source}");
    }
    assert!(!told(&folder, "not").contains("one-hot"));
    assert_told(&folder, "slim", &["the class names are read from 'labels.txt'"]);
    let pack = convert(&folder, "slim", &["--split", "train"]);
    assert_eq!(names(&pack), ["daisy", "roses", "tulips"]);
    assert_told(&folder, "few", &["'labels.txt' was not read"]);
    assert_told(&folder, "lmdbs", &["found the splits 'train', 'val'"]);
    assert_eq!(json!(ids(&convert(&folder, "lmdbs", &["--split", "val"]))), expected["labels"]);
}

#[test]
fn arrays_and_archives_alone_in_a_folder_are_read() {
    let (folder, expected) = sources();
    for source in ["olivetti", "zarr", "zip"] {
        assert_eq!(json!(ids(&convert(&folder, source, &[]))).as_array().unwrap().len(), 12, "{source}");
    }
    assert_eq!(json!(ids(&convert(&folder, "olivetti", &[]))), expected["labels"]);
    assert_told(&folder, "zarr", &["read from 'data.zarr', the only dataset in the folder"]);
    assert_told(&folder, "zip", &["read from 'archive.zip', the only dataset in the folder"]);
    let said = refused(&folder, "robust", 1);
    assert!(said.contains("robust/CIFAR-10-C: 'labels.npy' has labels") && said.contains("--image-key fog"), "{said}");
}

#[test]
fn the_lines_that_convert_other_files_work() {
    let (folder, _) = sources();
    run_hint(&folder, "x.parquet", (".", "x.parquet"));
    let pack = convert(&folder, "x.npz", &[]);
    assert_eq!((items(&pack, "image")[0].len(), items(&pack, "image_id")[3].as_slice()), (137 * 236, &b"Train_3"[..]));
    run_hint(&folder, "stl", ("stl", ""));
    let pack = convert(&folder, "stl/train.npz", &[]);
    assert_eq!(
        (ids(&pack), names(&pack)),
        (vec![0, 1, 2], vec!["airplane".to_owned(), "bird".to_owned(), "car".to_owned()])
    );
    // The file has the columns of each plane one after another.
    let row: Vec<u8> = items(&pack, "image")[0][..96 * 3].iter().step_by(3).copied().collect();
    assert_eq!(row, (0..96).collect::<Vec<u8>>());
}
