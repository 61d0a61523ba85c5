//! Published data sets whose labels, masks and splits are in several places: Pascal VOC, Oxford-IIIT Pet, UCF-101 and others.

use std::path::PathBuf;

use super::{Tree, classes, labels, paths};
use crate::source::listing::Listing;
use crate::source::{ListOptions, Listed, list_all};

fn all(tree: &Tree) -> Listed {
    list_all(tree.root(), &ListOptions::default()).unwrap()
}

/// The splits of a source.
fn splits(tree: &Tree) -> Vec<(String, Listing)> {
    match all(tree) {
        Listed::Splits(splits) => splits,
        Listed::One(listing) => panic!("no splits: {:?}", told(&listing)),
    }
}

/// The listing of a source without splits.
fn one(tree: &Tree) -> Listing {
    match all(tree) {
        Listed::One(listing) => *listing,
        Listed::Splits(splits) => panic!("{splits:?}"),
    }
}

fn told(listing: &Listing) -> String {
    listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn split_names(splits: &[(String, Listing)]) -> Vec<&str> {
    splits.iter().map(|(split, _)| split.as_str()).collect()
}

/// A source with Pascal VOC's folders, below `folder`. Image 3 has no mask.
fn voc(folder: &str) -> Tree {
    let tree = Tree::new(&[]);
    for file in [
        "Annotations/1.xml",
        "JPEGImages/1.jpg",
        "JPEGImages/2.jpg",
        "JPEGImages/3.jpg",
        "SegmentationClass/1.png",
        "SegmentationClass/2.png",
        "SegmentationObject/1.png",
        "SegmentationObject/2.png",
    ] {
        tree.write(&format!("{folder}{file}"), b"x");
    }
    for (list, images) in [
        ("Segmentation/train", "1\n"),
        ("Segmentation/val", "2\n"),
        ("Segmentation/trainval", "1\n2\n"),
        ("Main/train", "1\n3\n"),
        ("Main/val", "2\n"),
        ("Layout/train", "2\n"),
        ("Layout/val", "1\n"),
        ("Main/dog_train", "1 -1\n3  1\n"),
        ("Main/dog_val", "2  1\n"),
    ] {
        tree.write(&format!("{folder}ImageSets/{list}.txt"), images.as_bytes());
    }
    tree
}

#[test]
fn pascal_voc_is_read_as_images_and_masks() {
    for folder in ["", "VOCdevkit/VOC2012/"] {
        let tree = voc(folder);
        let found = splits(&tree);
        assert_eq!(split_names(&found), ["train", "val"], "{folder}");
        for ((_, listing), (image, mask)) in found
            .iter()
            .zip([("JPEGImages/1.jpg", "SegmentationClass/1.png"), ("JPEGImages/2.jpg", "SegmentationClass/2.png")])
        {
            let mut path = Vec::new();
            listing.mask_path_into(0, &mut path).unwrap();
            assert_eq!((paths(listing), path.as_slice()), (vec![image.to_owned()], mask.as_bytes()));
            let told = told(listing);
            assert!(
                told.contains("ignored 1 image without a mask in 'SegmentationClass' ('JPEGImages/3.jpg')"),
                "{told}"
            );
            assert!(told.contains("and any boxes"), "{told}");
        }
    }
    // The masks that the caller chose must be there.
    let options = ListOptions { masks: Some(PathBuf::from("SegmentationClass")), ..ListOptions::default() };
    let tree = voc("");
    std::fs::remove_dir_all(tree.path("ImageSets")).unwrap();
    let Listed::One(listing) = list_all(tree.root(), &options).unwrap() else { panic!() };
    assert_eq!((listing.len(), listing.faulty().count()), (3, 1));
}

#[test]
fn numbers_in_the_lists_of_images_with_masks_are_labels() {
    let names = ["Abyssinian_1", "Abyssinian_2", "great_dane_1", "great_dane_10"];
    let files = names.map(|name| [format!("images/{name}.jpg"), format!("annotations/trimaps/{name}.png")]);
    let files: Vec<&str> = files.iter().flatten().map(String::as_str).collect();
    let tree = Tree::new(&files);
    tree.write("annotations/trainval.txt", b"Abyssinian_1 1 1 1\ngreat_dane_10 2 2 1\n");
    tree.write("annotations/test.txt", b"Abyssinian_2 1 1 1\ngreat_dane_1 2 2 1\n");
    let found = splits(&tree);
    assert_eq!(split_names(&found), ["test", "trainval"]);
    for (_, listing) in &found {
        assert_eq!((classes(listing), labels(listing)), (vec!["Abyssinian", "great_dane"], vec![Some(0), Some(1)]));
        assert!(format!("{:?}", listing.columns()).contains("I64([1, 2])"), "{:?}", listing.columns());
        let told = told(listing);
        assert!(told.contains("the labels are the first numbers in these lists"), "{told}");
        assert!(!told.contains("only the first column is read"), "{told}");
    }
    // If a class has two names, the numbers are the labels.
    tree.write("annotations/trainval.txt", b"Abyssinian_1 1\ngreat_dane_10 1\n");
    tree.write("annotations/test.txt", b"Abyssinian_2 1\ngreat_dane_1 2\n");
    let found = splits(&tree);
    assert_eq!((classes(&found[0].1), labels(&found[0].1)), (Vec::<&str>::new(), vec![Some(1), Some(2)]));
    // Numbers below 0 are no labels.
    tree.write("annotations/trainval.txt", b"Abyssinian_1 -1\ngreat_dane_10 1\n");
    tree.write("annotations/test.txt", b"Abyssinian_2 1\ngreat_dane_1 2\n");
    assert!(splits(&tree).iter().all(|(_, listing)| !listing.has_labels()));
}

#[test]
fn the_number_of_images_of_a_clip_is_no_label() {
    let tree = Tree::new(&["annotations/classInd.csv"]);
    for (clip, n) in [("A/a1", 2), ("A/a2", 3), ("B/b1", 2), ("B/b2", 1)] {
        (0..n).for_each(|frame| tree.write(&format!("rawframes/{clip}/img_{frame}.jpg"), b"x"));
    }
    tree.write("ucf_train_split_1_rawframes.txt", b"A/a1 2 0\nB/b1 2 1\n");
    tree.write("ucf_val_split_1_rawframes.txt", b"A/a2 3 0\nB/b2 1 1\n");
    tree.write("ucf_train_split_1_videos.txt", b"A/a1.avi 0\nB/b1.avi 1\n");
    tree.write("ucf_val_split_1_videos.txt", b"A/a2.avi 0\nB/b2.avi 1\n");
    let found = splits(&tree);
    assert_eq!(split_names(&found), ["train", "val"]);
    assert_eq!(labels(&found[0].1), [0, 0, 1, 1].map(Some));
    assert_eq!(labels(&found[1].1), [0, 0, 0, 1].map(Some));
    assert!(told(&found[0].1).contains("so the third one is read as the labels, such as 0"), "{}", told(&found[0].1));
    // Other numbers in the second column may be labels.
    let tree = Tree::new(&["clips/a/1.jpg", "clips/a/2.jpg", "clips/b/1.jpg"]);
    tree.write("clips/list.txt", b"a 2 0\nb 3 1\n");
    let listing = crate::source::list(&tree.path("clips/list.txt"), &ListOptions::default()).unwrap();
    assert_eq!(labels(&listing), [2, 2, 3].map(Some));
}

#[test]
fn images_without_a_row_in_a_table_of_masks_have_empty_masks() {
    let files =
        ["train_images/a.jpg", "train_images/b.jpg", "train_images/c.jpg", "train_images/e.jpg", "test_images/d.jpg"];
    let tree = Tree::new(&files);
    tree.write("train.csv", b"ImageId,ClassId,EncodedPixels\nb.jpg,1,1 2\nb.jpg,3,5 2\nc.jpg,1,1 1\ne.jpg,3,1 1\n");
    let found = splits(&tree);
    assert_eq!(split_names(&found), ["test_images", "train_images"]);
    let train = &found[1].1;
    assert_eq!(paths(train), ["train_images/b.jpg", "train_images/c.jpg", "train_images/e.jpg", "train_images/a.jpg"]);
    assert_eq!((train.has_masks(), found[0].1.has_masks(), train.faulty().count()), (true, false, 0));
    let mut mask = Vec::new();
    train.append_mask(3, (2, 2), &mut mask).unwrap();
    assert_eq!(mask, [0; 4]);
    assert!(told(train).contains("1 image without a row in 'train.csv' got an empty mask ('train_images/a.jpg')"));
}

#[test]
fn numbered_folders_are_no_classes_if_a_file_says_so() {
    let tree = Tree::new(&["00000/img1.png", "00001/img2.png"]);
    tree.write("dataset.json", b"{\"labels\": null}");
    let listing = one(&tree);
    assert_eq!((listing.len(), listing.has_labels(), classes(&listing).len()), (2, false, 0));
    assert!(told(&listing).contains("'dataset.json' says that the images have no labels"), "{}", told(&listing));
    let tree = Tree::new(&["images/00000/1.jpg", "images/00001/2.jpg"]);
    tree.write(
        "chat.json",
        br#"[{"id": "1", "image": "00000/1.jpg", "caption": "a cat", "talk": [{"from": "human"}]},
        {"id": "2", "image": "00001/2.jpg", "caption": "a dog", "talk": []}]"#,
    );
    let listing = one(&tree);
    assert!(
        !listing.has_labels() && listing.columns().iter().any(|column| column.name == "talk"),
        "{}",
        told(&listing)
    );
}

#[test]
fn the_images_of_kohya_are_read_without_the_regularization_images() {
    let tree = Tree::new(&["img/20_sks dog/1.png", "img/20_sks dog/2.png", "reg/1_dog/3.png", "model/m.json"]);
    tree.write("img/20_sks dog/1.txt", b"a dog");
    tree.write("img/20_sks dog/2.txt", b"the dog");
    let listing = one(&tree);
    assert_eq!(listing.len(), 2);
    assert!(listing.columns().iter().any(|column| column.name == "caption"));
    assert!(told(&listing).contains("ignored the regularization images in 'reg'"), "{}", told(&listing));
}

#[test]
fn a_single_list_of_a_split_is_told_with_the_line_that_writes_the_other() {
    let tree = Tree::new(&["images/a.png", "images/b.png", "labels/a_P.png", "labels/b_P.png"]);
    tree.write("valid.txt", b"b.png\n");
    let listing = one(&tree);
    assert!(listing.has_masks() && listing.len() == 2);
    let said = told(&listing);
    assert!(said.contains("'valid.txt' lists 1 of 2 images") && said.contains("open(\"train.txt\", \"w\")"), "{said}");
    tree.write("train.txt", b"a");
    assert_eq!(split_names(&splits(&tree)), ["train", "valid"]);
    let inner =
        Tree::new(&["camvid/images/a.png", "camvid/images/b.png", "camvid/labels/a_P.png", "camvid/labels/b_P.png"]);
    inner.write("camvid/valid.txt", b"b.png\n");
    let said = told(&one(&inner));
    assert!(said.contains("'valid.txt' lists 1 of 2 images") && !said.contains("was not read"), "{said}");
}

#[test]
fn rows_of_a_text_file_may_belong_to_numbers_in_names() {
    let tree = Tree::new(&["1_bath.jpg", "1_bed.jpg", "2_bath.jpg", "2_bed.jpg"]);
    tree.write("Info.txt", b"4 4 869500\n3 2 221900\n");
    let said = told(&one(&tree));
    assert!(
        said.contains("'Info.txt' may have a row for each number in the file names, such as 1 in '1_bath.jpg'"),
        "{said}"
    );
    tree.write("Info.txt", b"4 4 869500\n");
    assert!(told(&one(&tree)).contains("the file names may contain the labels"));
}

#[test]
fn versions_in_the_folders_of_splits_are_refused_with_commands() {
    let tree = Tree::new(&[]);
    for clip in ["train/G1", "train/G2", "test/G3"] {
        for folder in ["blur", "blur_gamma", "sharp"] {
            (0..3).for_each(|frame| tree.write(&format!("{clip}/{folder}/{frame:03}.png"), b"x"));
        }
    }
    let error = list_all(tree.root(), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("in 'blur' and 'sharp'"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("ln -s \"$d\"'blur' \"$s/input/$n\""), "{hint}");
    // The commands lead to two versions of each image in splits.
    let pairs = Tree::new(&[]);
    for clip in
        ["train/input/G1", "train/input/G2", "train/target/G1", "train/target/G2", "test/input/G3", "test/target/G3"]
    {
        (0..3).for_each(|frame| pairs.write(&format!("{clip}/{frame:03}.png"), b"x"));
    }
    let found = splits(&pairs);
    assert_eq!((split_names(&found), found[1].1.len()), (vec!["test", "train"], 6));
}
