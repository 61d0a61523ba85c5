//! Folders whose splits or fields are in lists and tables next to the images.

use packds_format::Pack;

use super::items::{Bytes, convert, ids, items};
use super::people::{assert_told, names};
use super::python;
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    python(&["divided.py", folder.path("").to_str().unwrap()]);
    folder
}

/// The first byte of each item of a field.
fn first_bytes(pack: &Bytes, field: &str) -> Vec<u8> {
    items(pack, field).iter().map(|item| item[0]).collect()
}

fn opened(folder: &Folder, name: &str) -> Bytes {
    Pack::open(std::fs::read(folder.path(name)).unwrap()).unwrap()
}

#[test]
fn lists_of_images_give_the_splits_with_their_masks() {
    let folder = sources();
    let chosen = ["--images", "JPEGImages", "--masks", "SegmentationClass"];
    let lists = "the splits are those of 'ImageSets/Segmentation/train.txt', 'ImageSets/Segmentation/val.txt'; 'ImageSets/Segmentation/trainval.txt' only repeats their images";
    for (n, (options, words)) in [
        (&[][..], "ignored 2 images without a mask in 'SegmentationClass' (first: 'JPEGImages/2007_000004.png'), and any boxes"),
        (&chosen[..], "; ignored 2 images in no list (first: 'JPEGImages/2007_000004.png')"),
    ]
    .into_iter()
    .enumerate()
    {
        let out = format!("out{n}.pack");
        let ran = folder.packds(&[&["convert", "voc", &out, "--keep-order"], options].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains(lists) && ran.stderr.contains(words), "{ran:?}");
        for (split, numbers) in [("train", [0, 2]), ("val", [1, 3])] {
            let pack = opened(&folder, &format!("out{n}.{split}.pack"));
            assert_eq!(first_bytes(&pack, "image"), numbers.map(|number| 10 * number));
            assert_eq!(first_bytes(&pack, "mask"), numbers);
        }
    }
    assert_told(
        &folder,
        "voc/ImageSets/Segmentation/train.txt",
        &["the masks in 'SegmentationClass' were not read", "to pack them too, pass"],
    );
}

#[test]
fn the_columns_of_all_tables_are_packed() {
    let folder = sources();
    assert_told(
        &folder,
        "celeba",
        &["joined 'list_attr_celeba.csv' with 'list_eval_partition.csv' (columns 'partition')"],
    );
    let numbers = |pack: &Bytes, field: &str| -> Vec<i64> {
        items(pack, field).iter().map(|item| i64::from_le_bytes(item.as_slice().try_into().unwrap())).collect()
    };
    let bald = [-1, 1, 1, -1, 1, 1];
    let pack = convert(&folder, "celeba", &["--leave-out", "partition"]);
    assert_eq!((numbers(&pack, "Bald"), numbers(&pack, "Young")), (bald.to_vec(), vec![1, 1, -1, 1, 1, -1]));
    for (split, places) in [("train", 0..4), ("val", 4..5), ("test", 5..6)] {
        let pack = convert(&folder, "celeba", &["--split", split]);
        assert_eq!(numbers(&pack, "Bald"), bald[places], "{split}");
        assert!(pack.schema().index_of("partition").is_err());
    }
}

#[test]
fn a_table_named_like_a_split_has_its_labels() {
    let folder = sources();
    assert_told(&folder, "gtsrb", &["split 'Final_Test': the labels are read from 'GT-final_test.csv'"]);
    let pack = convert(&folder, "gtsrb", &["--split", "Final_Test"]);
    assert_eq!((ids(&pack), names(&pack)), (vec![1, 0, 0, 1, 1, 0], vec!["00000".to_owned(), "00003".to_owned()]));
}

#[test]
fn the_source_that_a_warning_names_has_the_labels_of_the_table() {
    let folder = sources();
    assert_told(
        &folder,
        "birds",
        &[
            "the folders are read as 3 classes, but 'metadata.csv' has other labels, of 2 classes",
            "pass birds/metadata.csv as the source",
        ],
    );
    let pack = convert(&folder, "birds/metadata.csv", &[]);
    assert_eq!(ids(&pack), [0, 1, 0, 0, 1, 0]);
}
