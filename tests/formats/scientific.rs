//! MATLAB files, compressed HDF5 files and masks of another size, as SciPy, h5py and Pillow write them.

use super::items::{convert, hex, ids, items};
use super::people::{assert_told, refused, sources_of, told};
use crate::support::provenance;

#[test]
fn matlab_files_have_the_arrays_of_scipy() {
    let (folder, expected) = sources_of("scientific.py");
    let pixels = expected["pixels"].as_str().unwrap();
    let (train, test) = pixels.split_at(pixels.len() / 6 * 4);
    for (split, pixels, labels) in [("train", train, vec![1, 2, 10, 1]), ("test", test, vec![2, 10])] {
        let pack = convert(&folder, "matlab/svhn", &["--split", split]);
        assert_eq!((hex(&items(&pack, "image").concat()).as_str(), ids(&pack)), (pixels, labels), "{split}");
    }
    assert_told(&folder, "matlab/svhn", &["the last dimension of 'X' counts the samples", "[9, 8, 3, 4] is read as 4"]);
    let pack = convert(&folder, "matlab/rows.mat", &[]);
    assert_eq!(
        (hex(&items(&pack, "image").concat()), ids(&pack)),
        (expected["planes"].as_str().unwrap().to_owned(), vec![1, 2, 10, 1, 2, 10])
    );
    assert_told(&folder, "matlab/rows.mat", &["'note': this is a string", "'more': this is a struct"]);
    let pack = convert(&folder, "matlab/columns.mat", &[]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["columns"]);
    for (name, words) in [("cells", "images: this is a cell array"), ("old", "this is a file of type MATLAB")] {
        let said = refused(&folder, &format!("matlab/{name}.mat"), 2);
        assert!(said.contains(words) && said.contains("scipy.io.loadmat"), "{said}");
    }
}

#[test]
fn a_scene_and_its_map_are_refused_with_a_line_that_works() {
    let (folder, expected) = sources_of("scientific.py");
    let said = refused(&folder, "matlab/scene", 2);
    let line = said.split("in this folder: ").nth(1).and_then(|line| line.split("; and convert").next()).unwrap();
    let code = format!("import os; os.chdir({:?}); {line}", folder.path("matlab/scene"));
    crate::formats::python(&["-c", &code]);
    let pack = convert(&folder, "matlab/scene/scene.npz", &[]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["scene"][0]);
    assert_eq!(hex(&items(&pack, "mask").concat()), expected["scene"][1]);
}

#[test]
fn labels_and_splits_of_numbered_images_are_read() {
    let (folder, expected) = sources_of("scientific.py");
    let pixels = expected["pixels"].as_str().unwrap();
    for (split, labels, places) in [("train", [1, 10], [0, 5]), ("valid", [2, 1], [1, 3]), ("test", [10, 2], [2, 4])] {
        let pack = convert(&folder, "matlab/flowers", &["--split", split]);
        let images = places.map(|place| &pixels[place * pixels.len() / 6..(place + 1) * pixels.len() / 6]);
        assert_eq!((ids(&pack), hex(&items(&pack, "image").concat())), (labels.to_vec(), images.concat()), "{split}");
    }
    assert_told(&folder, "matlab/flowers", &["labels are read from 'imagelabels.mat' and splits from 'setid.mat'"]);
    assert!(!told(&folder, "matlab/flowers").contains("ignored"), "{}", told(&folder, "matlab/flowers"));
    // The folder has one more image than there are labels.
    std::fs::copy(folder.path("matlab/flowers/jpg/image_00001.png"), folder.path("matlab/flowers/jpg/image_00008.png"))
        .unwrap();
    assert_told(&folder, "matlab/flowers", &["'imagelabels.mat' was not read"]);
}

#[test]
fn compressed_hdf5_files_are_read_like_the_plain_ones() {
    let (folder, expected) = sources_of("scientific.py");
    let pixels = expected["pixels"].as_str().unwrap();
    let (train, test) = pixels.split_at(pixels.len() / 6 * 4);
    for (split, pixels, labels) in [("train", train, vec![1, 0, 0, 1]), ("test", test, vec![0, 0])] {
        let pack = convert(&folder, "pcam", &["--split", split]);
        assert_eq!((hex(&items(&pack, "image").concat()).as_str(), ids(&pack)), (pixels, labels), "{split}");
    }
    let words = ["found the splits 'test', 'train'", "masks in a separate file", "level_2_split_train_mask.h5"];
    assert_told(&folder, "pcam", &words);
    assert!(told(&folder, "pcam").contains("level_2_split_test_meta.csv"), "{}", told(&folder, "pcam"));
    std::fs::write(folder.path("pcam/level_2_split_test_x.h5.gz"), b"not packed").unwrap();
    let said = refused(&folder, "pcam", 1);
    assert!(said.contains("level_2_split_test_x.h5.gz: it has the extension of a compressed file"), "{said}");
}

#[test]
fn masks_with_the_shape_of_their_image_are_resized_like_pillow_does() {
    let (folder, expected) = sources_of("scientific.py");
    for name in ["smaller", "larger"] {
        let source = format!("masks/{name}");
        for mode in ["raw", "encoded"] {
            let pack = convert(&folder, &source, &["--mode", mode]);
            assert_eq!(hex(&items(&pack, "mask").concat()), expected[name], "{name}, {mode}");
            assert_eq!(provenance(&pack)["resized_masks"], 6, "{name}, {mode}");
        }
        let words = "resized masks to the size of the image, like Pillow's resize with Image.NEAREST";
        assert_told(&folder, &source, &[words, "'images/0.png'"]);
        let ran = folder.packds(&["convert", &source, "told.pack", "--force"]);
        assert!(ran.stderr.contains("resized 6 masks to the size of the image"), "{ran:?}");
        let info = folder.packds(&["info", "told.pack"]);
        assert!(info.stdout.contains("masks     6 resized to the size of the image"), "{info:?}");
    }
    let said = refused(&folder, "masks/other", 1);
    assert!(said.contains("expected the image's (16, 18) pixels (width, height), found (9, 9)"), "{said}");
}
