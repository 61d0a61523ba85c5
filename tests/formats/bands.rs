//! TIFF files with bands that tifffile wrote. packds must read the same arrays as tifffile.

use serde_json::Value;

use super::items::{convert, hex, ids, items};
use super::people::{names, sources_of, told};
use crate::support::Folder;

/// The files, and the arrays that tifffile reads from them.
fn sources() -> (Folder, Value) {
    sources_of("bands.py")
}

#[test]
fn bands_of_every_type_are_arrays_like_those_of_tifffile() {
    let (folder, expected) = sources();
    for (dtype, size) in [
        ("u1", 1),
        ("u2", 2),
        ("u4", 4),
        ("u8", 8),
        ("i1", 1),
        ("i2", 2),
        ("i4", 4),
        ("i8", 8),
        ("f2", 2),
        ("f4", 4),
        ("f8", 8),
    ] {
        let source = format!("types/{dtype}");
        let pack = convert(&folder, &source, &["--from", "image-folder"]);
        let field = &pack.schema().fields()[0];
        assert_eq!((field.dtype.size(), field.shape.as_slice()), (size, &[11, 9, 6][..]), "{dtype}");
        assert_eq!(hex(&items(&pack, "image").concat()), expected[&source], "{dtype}");
        assert_eq!((ids(&pack), names(&pack)), (vec![0, 0, 1, 1], vec!["a".to_owned(), "b".to_owned()]));
    }
    let pack = convert(&folder, "types/u2/list.csv", &[]);
    assert_eq!(ids(&pack), [0, 1, 0, 1]);
}

#[test]
fn bands_may_be_stored_in_every_way() {
    let (folder, expected) = sources();
    for kind in ["deflate", "tiles", "strips", "big_endian", "big_tiff", "rgb", "planes"] {
        let pack = convert(&folder, &format!("kinds/{kind}"), &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["types/u2"], "{kind}");
    }
    let words = "read 4 TIFF files with 6 bands as u16 arrays [11, 9, 6] (first: 'a/0.tif'): the bands are stored one";
    assert!(told(&folder, "kinds/planes").contains(words));
    for folder_of in ["two", "colors"] {
        let pack = convert(&folder, folder_of, &[]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected[folder_of], "{folder_of}");
    }
    for split in ["train", "test"] {
        let pack = convert(&folder, "splits", &["--split", split]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected[format!("splits/{split}")], "{split}");
    }
}

#[test]
fn bands_have_masks_and_no_options_for_pixels() {
    let (folder, expected) = sources();
    let pack = convert(&folder, "pairs", &[]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["pairs/images"]);
    assert_eq!(hex(&items(&pack, "mask").concat()), expected["masks"]);
    let mask = pack.schema().index_of("mask").unwrap();
    assert_eq!(pack.schema().fields()[mask].shape, [11, 9]);
    let ran = folder.packds(&["convert", "pairs", "no.pack", "--mode", "encoded"]);
    assert!(ran.code == 2 && ran.stderr.contains("u16 arrays of shape [11, 9, 6]"), "{ran:?}");
    // tifffile stacks the pages of a file, but packds refuses such a file.
    let ran = folder.packds(&["convert", "pages", "no.pack"]);
    assert!(ran.code == 1 && ran.stderr.contains("tifffile.imread(f)"), "{ran:?}");
}
