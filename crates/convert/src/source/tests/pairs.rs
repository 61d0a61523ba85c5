//! Image and mask folders, datasets inside other folders, and annotated datasets.

use std::fs;
use std::path::PathBuf;

use packds_pixels::encode_png;

use super::{Tree, classes, labels, paths};
use crate::error::ConvertError;
use crate::source::store::Content;
use crate::source::{FolderNote, ListOptions, Listed, Listing, SourceKind, Warning, list, list_all, list_splits};

/// The path of each image with the path of its mask.
fn pairs(listing: &Listing) -> Vec<(String, String)> {
    let mask = |idx| {
        let mut path = Vec::new();
        listing.mask_path_into(idx, &mut path).unwrap();
        String::from_utf8(path).unwrap()
    };
    paths(listing).into_iter().enumerate().map(|(idx, path)| (path, mask(idx))).collect()
}

fn pair(image: &str, mask: &str) -> (String, String) {
    (image.to_owned(), mask.to_owned())
}

fn folders(images: Option<&str>, masks: Option<&str>) -> ListOptions {
    ListOptions { images: images.map(PathBuf::from), masks: masks.map(PathBuf::from), ..ListOptions::default() }
}

#[test]
fn images_and_masks_in_two_folders_are_pairs() {
    for (images, masks) in
        [("images", "masks"), ("imgs", "labels"), ("Image", "Mask"), ("images", "annotations/trimaps")]
    {
        let files =
            [format!("{images}/a.jpg"), format!("{images}/b.jpg"), format!("{masks}/a.png"), format!("{masks}/b.png")];
        let tree = Tree::new(&files.each_ref().map(String::as_str));
        tree.write("annotations/list.txt", b"x");
        let listing = tree.list().unwrap();
        assert_eq!(listing.kind(), SourceKind::PairedFolders);
        assert_eq!(pairs(&listing), [pair(&files[0], &files[2]), pair(&files[1], &files[3])]);
        assert!(!listing.has_labels() && listing.classes().is_empty());
    }
}

#[test]
fn masks_may_have_marks_in_their_names() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg", "masks/a_mask.png", "masks/b_mask.png"]);
    let expected = [pair("images/a.jpg", "masks/a_mask.png"), pair("images/b.jpg", "masks/b_mask.png")];
    assert_eq!(pairs(&tree.list().unwrap()), expected);
    let tree = Tree::new(&["imgs/img_1.png", "imgs/img_11.png", "masks/mask_1.png", "masks/mask_11.png"]);
    let expected = [pair("imgs/img_1.png", "masks/mask_1.png"), pair("imgs/img_11.png", "masks/mask_11.png")];
    assert_eq!(pairs(&tree.list().unwrap()), expected);
    let tree = Tree::new(&[
        "leftImg8bit/train/ulm/u_1_leftImg8bit.png",
        "gtFine/train/ulm/u_1_gtFine_labelIds.png",
        "gtFine/train/ulm/u_1_gtFine_color.png",
    ]);
    let listing = tree.list_split("train").unwrap();
    assert_eq!(
        pairs(&listing),
        [pair("leftImg8bit/train/ulm/u_1_leftImg8bit.png", "gtFine/train/ulm/u_1_gtFine_labelIds.png")]
    );
    let unused = Warning::UnusedMasks { count: 1, first: b"gtFine/train/ulm/u_1_gtFine_color.png".to_vec() };
    let cities = Warning::FoldersInImages { count: 1, first: b"leftImg8bit/train/ulm".to_vec() };
    assert_eq!(listing.warnings(), [unused, cities]);
}

#[test]
fn equal_names_match_before_names_with_marks() {
    let tree = Tree::new(&["images/a.jpg", "images/a_mask.jpg", "masks/a.png", "masks/a_mask.png"]);
    let expected = [pair("images/a.jpg", "masks/a.png"), pair("images/a_mask.jpg", "masks/a_mask.png")];
    assert_eq!(pairs(&tree.list().unwrap()), expected);
}

#[test]
fn an_image_without_a_mask_is_a_bad_sample_and_a_mask_without_an_image_a_warning() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg", "masks/a.png", "masks/z.png"]);
    let listing = tree.list().unwrap();
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [1]);
    assert!(listing.fault(1).unwrap().to_string().contains("'masks' has no mask with the same name"));
    assert_eq!(listing.warnings(), [Warning::UnusedMasks { count: 1, first: b"masks/z.png".to_vec() }]);
    let tree = Tree::new(&["images/a.jpg", "images/a.png", "masks/a.png"]);
    let error = tree.list().unwrap_err().to_string();
    assert!(
        error.contains("'images/a.jpg' and 'images/a.png' have the same name, so they would share a mask"),
        "{error}"
    );
}

#[test]
fn splits_of_pairs_lie_inside_or_outside_of_them() {
    for files in [
        ["train/images/a.jpg", "train/masks/a.png", "val/images/b.jpg", "val/masks/b.png"],
        ["images/train/a.jpg", "masks/train/a.png", "images/val/b.jpg", "masks/val/b.png"],
    ] {
        let tree = Tree::new(&files);
        assert!(
            matches!(tree.list().unwrap_err(), ConvertError::OnlySplits { splits, .. } if splits == ["train", "val"])
        );
        let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
        let names: Vec<&str> = splits.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["train", "val"]);
        for (_, listing) in &splits {
            assert_eq!((listing.len(), listing.has_masks(), listing.classes().len()), (1, true, 0));
        }
    }
}

#[test]
fn masks_beside_their_images_are_masks() {
    let tree = Tree::new(&["benign/1.png", "benign/1_mask.png", "normal/2.png", "normal/2_mask.png"]);
    let listing = tree.list().unwrap();
    assert_eq!(pairs(&listing), [pair("benign/1.png", "benign/1_mask.png"), pair("normal/2.png", "normal/2_mask.png")]);
    assert_eq!((classes(&listing), labels(&listing)), (vec!["benign", "normal"], vec![Some(0), Some(1)]));
    let flat = Tree::new(&["a.jpg", "a_seg.png", "b.jpg"]);
    let listing = flat.list().unwrap();
    assert_eq!(pairs(&listing)[0], pair("a.jpg", "a_seg.png"));
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [1]);
    // If only one of many images is named like a mask, it is kept as an image.
    let files: Vec<String> = (0..9).map(|n| format!("{n}.jpg")).chain(["1_mask.jpg".to_owned()]).collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let listing = tree.list().unwrap();
    assert_eq!((listing.len(), listing.has_masks()), (10, false));
    assert_eq!(listing.warnings(), [Warning::FewMasks { count: 1, first: b"1_mask.jpg".to_vec() }]);
}

#[test]
fn folders_are_named_by_the_caller() {
    let tree = Tree::new(&["x/1.jpg", "y/1.png", "z/1.png"]);
    let listing = list(tree.root(), &folders(Some("x"), Some("z"))).unwrap();
    assert_eq!(pairs(&listing), [pair("x/1.jpg", "z/1.png")]);
    let listing = list(tree.root(), &folders(Some("x"), None)).unwrap();
    assert_eq!((paths(&listing), listing.has_masks()), (vec!["1.jpg".to_owned()], false));
    let error = list(tree.root(), &folders(None, Some("y"))).unwrap_err();
    assert!(error.hint().unwrap().contains("images='DIR'"), "{error}");
    let twice = Tree::new(&["images/1.jpg", "masks/1.png", "labels/1.png"]);
    let error = twice.list().unwrap_err();
    assert_eq!(error.hint().unwrap(), "choose with masks='labels'; from='image-folder' reads every folder as a class");
}

#[test]
fn an_annotated_dataset_is_refused_with_the_part_that_can_be_packed() {
    for (files, what, hint) in [
        (
            &["JPEGImages/1.jpg", "Annotations/xmls/1.xml", "SegmentationClass/1.txt"][..],
            "Pascal VOC",
            "images='JPEGImages'",
        ),
        (
            &["annotations/instances_train2017.json", "train2017/1.jpg"],
            "COCO",
            "annotations/instances_train2017.json as the source; to pack only the images, pass ",
        ),
        (&["images/1.jpg", "labels/1.txt"], "a text file for each image", "images='images'"),
        (&["images/train/1.jpg", "labels/train/1.txt"], "a text file for each image", "images='images'"),
    ] {
        let tree = Tree::new(files);
        for file in files.iter().filter(|file| file.ends_with(".txt")) {
            fs::write(tree.root().join(file), "a cat").unwrap();
        }
        let error = tree.list().unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
    let tree = Tree::new(&["JPEGImages/1.jpg", "Annotations/1.xml"]);
    assert_eq!(paths(&list(tree.root(), &folders(Some("JPEGImages"), None)).unwrap()), ["1.jpg"]);
}

#[test]
fn folders_that_look_like_splits_are_not_classes() {
    for (files, expected) in [
        (&["train/1.jpg", "test/1.jpg"][..], &["test", "train"][..]),
        (&["seg_train/seg_train/a/1.jpg", "seg_test/seg_test/a/1.jpg", "seg_pred/1.jpg"], &["seg_test", "seg_train"]),
        (&["training_set/training_set/a/1.jpg", "test_set/test_set/a/1.jpg"], &["test_set", "training_set"]),
        (&["train/a/1.jpg", "extra/b/1.jpg"], &["train"]),
    ] {
        let tree = Tree::new(files);
        let error = tree.list().unwrap_err();
        assert!(matches!(&error, ConvertError::OnlySplits { splits, .. } if splits == expected), "{error}");
        let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
        assert_eq!(splits.len(), expected.len());
    }
    // A class may be called train.
    assert_eq!(classes(&Tree::new(&["bus/1.jpg", "train/1.jpg"]).list().unwrap()), ["bus", "train"]);
    let tree = Tree::new(&["train/1.jpg", "test/2.jpg", "train.csv"]);
    assert!(tree.list().unwrap_err().hint().unwrap().contains("pass 'train.csv'"));
    let all = ListOptions { from: Some(crate::DataFormat::ImageFolder), ..ListOptions::default() };
    assert_eq!(classes(&list(tree.root(), &all).unwrap()), ["test", "train"]);
}

#[test]
fn classes_with_folders_of_images_and_masks_are_refused() {
    let files = ["TR/TR-Image/1.jpg", "TR/TR-Mask/1.png", "TE/TE-Image/2.jpg", "TE/TE-Mask/2.png"];
    let error = Tree::new(&files).list().unwrap_err();
    assert!(error.to_string().contains("'TE/TE-Mask' looks like the masks of 'TE/TE-Image'"), "{error}");
    assert!(error.hint().unwrap().contains("/TE/'; "), "{:?}", error.hint());
    let tree = Tree::new(&files);
    assert_eq!(paths(&list(&tree.path("TE"), &ListOptions::default()).unwrap()), ["TE-Image/2.jpg"]);
    // One class may have a mask folder but no images next to it.
    assert_eq!(classes(&Tree::new(&["cat/1/a.jpg", "dog/masks/2.jpg"]).list().unwrap()), ["cat", "dog"]);
}

#[test]
fn masks_named_after_the_images_are_theirs_beside_another_split() {
    let tree = Tree::new(&["train/1.jpg", "train/2.jpg", "train_masks/1.png", "train_masks/2.png", "test/3.jpg"]);
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["train/1.jpg", "train/2.jpg"]);
    assert!(listing.has_masks());
    let told = Warning::FoldersBesidePairs { count: 1, first: b"test".to_vec() };
    assert!(listing.warnings().contains(&told), "{:?}", listing.warnings());
}

#[test]
fn folders_that_were_chosen_may_be_in_every_split() {
    let tree = Tree::new(&["train/images/1.jpg", "train/gt/1.png", "val/images/2.jpg", "val/gt/2.png"]);
    let options = folders(Some("images"), Some("gt"));
    assert!(matches!(list(tree.root(), &options).unwrap_err(), ConvertError::OnlySplits { .. }));
    let all = list_splits(tree.root(), &options).unwrap();
    assert_eq!(all.iter().map(|(_, listing)| listing.len()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_folder_of_annotations_with_images_is_not_pascal_voc() {
    let tree = Tree::new(&["JPEGImages/480p/bear/1.jpg", "Annotations/480p/bear/1.png"]);
    let listing = tree.list().unwrap();
    assert!(listing.has_masks() && paths(&listing) == ["JPEGImages/480p/bear/1.jpg"]);
}

#[test]
fn a_table_beside_splits_is_told_or_refused() {
    let unread = Warning::ManifestUnread { file: b"noisy.csv".to_vec(), others: Vec::new() };
    let tree = Tree::new(&["train/cat/1.jpg", "train/dog/1.jpg", "val/cat/1.jpg", "val/dog/1.jpg"]);
    tree.write("noisy.csv", b"path,noise\ntrain/cat/1.jpg,1\nval/dog/1.jpg,0\n");
    for (_, listing) in list_splits(tree.root(), &ListOptions::default()).unwrap() {
        assert_eq!(listing.warnings(), std::slice::from_ref(&unread));
    }
    let error = tree.list().unwrap_err();
    assert!(error.hint().unwrap().contains("one pack for each split"), "{:?}", error.hint());
    let flat = Tree::new(&["train/1.jpg", "val/1.jpg", "noisy.csv"]);
    assert!(flat.list().unwrap_err().hint().unwrap().contains("pass 'noisy.csv'"));
}

#[test]
fn doubled_splits_share_their_class_ids() {
    let tree =
        Tree::new(&["seg_train/seg_train/sea/1.jpg", "seg_train/seg_train/ice/1.jpg", "seg_test/seg_test/sea/2.jpg"]);
    let listing = tree.list_split("seg_test").unwrap();
    assert_eq!((classes(&listing), labels(&listing)), (vec!["ice", "sea"], vec![Some(1)]));
    assert!(listing.warnings().contains(&Warning::Wrapper { folder: b"seg_test".to_vec() }));
}

#[test]
fn a_manifest_beside_the_images_is_told() {
    let tree = Tree::new(&["a.jpg", "b.jpg", "metadata.jsonl"]);
    assert_eq!(
        tree.list().unwrap().warnings(),
        [Warning::NoLists { file: b"metadata.jsonl".to_vec(), others: Vec::new() }]
    );
}

#[test]
fn a_folder_around_class_folders_is_no_class() {
    let tree = Tree::new(&["flowers/rose/1.jpg", "flowers/lily/1.jpg", "readme.txt"]);
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), ["lily", "rose"]);
    assert_eq!(listing.warnings(), [Warning::Wrapper { folder: b"flowers".to_vec() }]);
}

#[test]
fn folders_with_the_names_of_images_and_their_masks_are_pairs() {
    for (images, masks) in [("train", "train_masks"), ("X_Training_Input", "X_Training_GroundTruth")] {
        let tree = Tree::new(&[&format!("{images}/1.jpg"), &format!("{masks}/1_mask.png")]);
        let listing = tree.list().unwrap();
        assert_eq!((listing.kind(), listing.has_masks()), (SourceKind::PairedFolders, true), "{images}");
    }
    // These folders are classes.
    let tree = Tree::new(&["with_mask/1.jpg", "without_mask/1.jpg"]);
    assert_eq!(tree.list().unwrap().kind(), SourceKind::ImageFolder);
}

#[test]
fn the_only_folder_with_images_is_read_in_place_of_the_one_around_it() {
    let tree =
        Tree::new(&["images/cat/1.jpg", "images/dog/1.jpg", "meta/classes.txt", "__MACOSX/x/._1.jpg", "train.json"]);
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), ["cat", "dog"]);
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert!(told.contains("read from 'images'") && told.contains("'train.json' was not read"), "{told}");
    let tree = Tree::new(&["cat/1.jpg", "cat/._1.jpg", "dog/1.jpg"]);
    let listing = tree.list().unwrap();
    assert_eq!((listing.len(), listing.ignored()), (2, 1));
}

#[test]
fn a_folder_for_each_image_with_one_mask_is_a_pair() {
    let tree = Tree::new(&["id1/images/id1.png", "id1/masks/z.png", "id2/images/id2.png", "id2/masks/y.png"]);
    let listing = tree.list().unwrap();
    assert_eq!(
        pairs(&listing),
        [pair("id1/images/id1.png", "id1/masks/z.png"), pair("id2/images/id2.png", "id2/masks/y.png")]
    );
    assert!(!listing.has_labels() && listing.classes().is_empty());
    // Folders with several images each are classes.
    let tree = Tree::new(&[
        "COVID/images/1.png",
        "COVID/images/2.png",
        "COVID/masks/1.png",
        "COVID/masks/2.png",
        "Normal/images/3.png",
        "Normal/masks/3.png",
    ]);
    tree.mkdir("notes");
    let listing = tree.list().unwrap();
    assert_eq!(listing.warnings(), [Warning::FoldersWithoutImages { count: 1, first: b"notes".to_vec() }]);
    assert_eq!(
        (classes(&listing), labels(&listing)),
        (vec!["COVID", "Normal", "notes"], vec![Some(0), Some(0), Some(1)])
    );
    assert!(listing.has_masks());
}

#[test]
fn masks_of_objects_are_merged() {
    let tree = Tree::new(&["id1/images/id1.png", "id2/images/x.png"]);
    for (name, pixels) in
        [("id1/masks/a.png", [9, 0, 0]), ("id1/masks/b.png", [0, 7, 0]), ("id2/masks/c.png", [1, 0, 2])]
    {
        tree.write(name, &encode_png(3, 1, 1, &pixels).unwrap());
    }
    let listing = tree.list().unwrap();
    assert_eq!(listing.warnings(), [Warning::MergedMasks { count: 1, first: b"id1/images/id1.png".to_vec() }]);
    assert_eq!(listing.mask_bytes(0), fs::metadata(tree.path("id1/masks/a.png")).unwrap().len() * 2);
    let mut mask = Vec::new();
    let content = listing.append_mask(0, (3, 1), &mut mask).unwrap();
    assert!(matches!(content, Some(Content::Pixels(_))) && mask == [9, 7, 0]);
    // A single mask is the file itself, also in a subset.
    mask.clear();
    let content = listing.subset(2).append_mask(1, (3, 1), &mut mask).unwrap();
    assert!(matches!(content, Some(Content::File)));
    assert_eq!(listing.subset(1).mask_files(0).map(|files| files.len()), Some(2));
    tree.write("id1/masks/b.png", &encode_png(2, 1, 1, &[1, 1]).unwrap());
    mask.clear();
    let error = tree.list().unwrap().append_mask(0, (3, 1), &mut mask).unwrap_err().to_string();
    assert!(error.starts_with("mask `id1/masks/b.png`: expected the image's (3, 1) pixels"), "{error}");
}

#[test]
fn a_split_of_folders_with_one_image_each_has_no_classes() {
    let tree = Tree::new(&["test/id3/images/id3.png", "test/id4/images/id4.png"]);
    for name in
        ["train/id1/images/id1.png", "train/id1/masks/1.png", "train/id2/images/id2.png", "train/id2/masks/2.png"]
    {
        tree.write(name, &encode_png(1, 1, 1, &[1]).unwrap());
    }
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let [(_, test), (_, train)] = splits.as_slice() else { panic!("expected two splits") };
    assert_eq!(test.warnings(), [Warning::ImageInEach { count: 2, first: b"id3".to_vec() }]);
    assert_eq!(
        (paths(test), test.has_labels()),
        (vec!["id3/images/id3.png".to_owned(), "id4/images/id4.png".to_owned()], false)
    );
    assert_eq!((train.warnings(), train.has_masks(), train.has_labels()), (&[][..], true, false));
    // With several images in a folder, the folders are classes.
    let tree = Tree::new(&["a/images/1.png", "a/images/2.png", "b/images/3.png"]);
    assert_eq!(classes(&tree.list().unwrap()), ["a", "b"]);
}

#[test]
fn masks_of_several_kinds_are_refused() {
    let files = [
        "1/images/a.png",
        "1/masks/disc.png",
        "1/masks/cup.png",
        "2/images/b.png",
        "2/masks/disc.png",
        "2/masks/cup.png",
    ];
    let error = Tree::new(&files).list().unwrap_err();
    assert!(error.to_string().contains("'2' has one image and 2 masks"), "{error}");
    assert!(error.hint().unwrap().contains("numpy.max"), "{error}");
}

#[test]
fn images_of_a_normal_class_have_masks_of_zeros() {
    let tree = Tree::new(&["test/good/1.png", "test/bent/2.png", "ground_truth/bent/2_mask.png"]);
    let listing = list(tree.root(), &folders(Some("test"), Some("ground_truth"))).unwrap();
    let told = Warning::BlankMasks { count: 1, first: b"test/good/1.png".to_vec() };
    assert!(listing.warnings().contains(&told), "{:?}", listing.warnings());
    assert_eq!((listing.faulty().count(), listing.mask_bytes(1), listing.mask_files(1)), (0, 0, Some(Vec::new())));
    let mut mask = Vec::new();
    listing.append_mask(1, (3, 2), &mut mask).unwrap();
    assert_eq!(mask, [0; 6]);
}

#[test]
fn splits_with_a_folder_of_masks_beside_each_are_pairs() {
    for (mask, image) in [("trainannot", "train"), ("train_labels", "train"), ("train_masks", "train_images")] {
        let other = |name: &str| name.replace("train", "val");
        let files = [
            format!("{image}/1.png"),
            format!("{mask}/1.png"),
            format!("{}/2.png", other(image)),
            format!("{}/2.png", other(mask)),
        ];
        let tree = Tree::new(&files.each_ref().map(String::as_str));
        assert!(matches!(tree.list().unwrap_err(), ConvertError::OnlySplits { .. }), "{mask}");
        let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
        assert_eq!(splits.len(), 2);
        assert_eq!(pairs(&splits[0].1), [pair(&files[0], &files[1])]);
        assert_eq!(splits[1].1.warnings(), []);
    }
}

#[test]
fn numbered_masks_of_one_image_are_merged_and_others_make_it_a_bad_sample() {
    let tree = Tree::new(&["x/b (1).png", "x/b (1)_mask.png", "x/b (1)_mask_1.png", "x/b (2).png", "x/b (2)_mask.png"]);
    let listing = tree.list().unwrap();
    assert_eq!((listing.len(), listing.faulty().count()), (2, 0));
    assert!(listing.warnings().contains(&Warning::MergedMasks { count: 1, first: b"x/b (1).png".to_vec() }));
    let files = listing.mask_files(0).unwrap();
    assert_eq!(
        files.iter().map(|(path, _)| path.as_slice()).collect::<Vec<_>>(),
        [b"x/b (1)_mask.png".as_slice(), b"x/b (1)_mask_1.png"]
    );
    let tree = Tree::new(&["x/1.png", "x/1_mask.png", "x/1_seg.png", "x/2.png", "x/2_mask.png"]);
    let listing = tree.list().unwrap();
    assert_eq!((listing.len(), listing.faulty().collect::<Vec<_>>()), (2, vec![0]));
    assert!(listing.fault(0).unwrap().to_string().contains("there are 2 masks next to it"));
}

#[test]
fn folders_with_names_of_images_and_masks_may_be_classes() {
    let tree = Tree::new(&["images/1.jpg", "labels/2.jpg", "sketches/3.jpg"]);
    let error = tree.list().unwrap_err();
    assert!(error.to_string().contains("no mask in 'labels' has the same name as an image in 'images'"), "{error}");
    assert!(error.hint().unwrap().contains("from='image-folder' reads every folder as a class"), "{error}");
    let tree = Tree::new(&["images/1.png", "labels/1.png", "sketches/3.png"]);
    let beside = Warning::FoldersBesidePairs { count: 1, first: b"sketches".to_vec() };
    assert_eq!(tree.list().unwrap().warnings(), [beside]);
}

#[test]
fn two_versions_of_the_same_images_are_not_classes_in_silence() {
    let twins = |one: &str, other: &str, names: &[&str]| {
        let files: Vec<String> = [one, other]
            .iter()
            .flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}.png")))
            .collect();
        Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for (one, other) in [("A", "B"), ("left", "right"), ("PNG", "tif"), ("train_x", "train_y")] {
        let error = twins(one, other, &["1", "2", "3"]).list().unwrap_err();
        assert!(error.to_string().contains("have 3 files with the same names"), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("images='{one}'")) && hint.contains("from='image-folder'"), "{hint}");
    }
    // Classes are never called like these.
    for (image, field, names) in
        [("noisy", "clean", &["1"][..]), ("Input", "Target", &["1", "2"]), ("a", "b", &["x1", "x2", "x3"])]
    {
        let listing = twins(field, image, names).list().unwrap();
        assert_eq!(
            (listing.len(), listing.classes().len(), listing.kind()),
            (names.len(), 0, SourceKind::PairedFolders)
        );
        assert_eq!(paths(&listing)[0], format!("{image}/{}.png", names[0]));
        assert_eq!(listing.fields()[0].name, field);
    }
    let listing = twins("before", "after", &["x", "y", "z"]).list().unwrap();
    let same = FolderNote::SameNames { one: b"after".to_vec(), other: b"before".to_vec() };
    let same = Warning::Folders(same);
    assert_eq!(listing.warnings(), std::slice::from_ref(&same));
    assert!(same.to_string().ends_with("and convert pairs, or pack only one with images='after'"), "{same}");
    // Class folders often contain numbered files, or files with different names.
    for tree in [twins("cat", "dog", &["1", "2", "3"]), Tree::new(&["A/1.png", "A/2.png", "A/3.png", "B/4.png"])] {
        assert!(tree.list().unwrap().warnings().is_empty());
    }
}

#[test]
fn domains_identities_and_sizes_are_not_classes() {
    for (folders, what) in [
        (&["trainA", "trainB"][..], "CycleGAN"),
        (&["bounding_box_train", "bounding_box_test", "query"], "re-identification"),
        (&["query", "gallery"], "re-identification"),
        (&["DIV2K_train_HR", "DIV2K_train_LR_bicubic/X2"], "super-resolution"),
        (&["HR", "LRx4"], "super-resolution"),
    ] {
        let files: Vec<String> = folders.iter().enumerate().map(|(n, folder)| format!("{folder}/{n}.png")).collect();
        let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let error = tree.list().unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().unwrap().contains("from='image-folder'"), "{error}");
        let options = ListOptions { from: Some(crate::DataFormat::ImageFolder), ..ListOptions::default() };
        assert_eq!(list(tree.root(), &options).unwrap().len(), folders.len());
    }
    let codes = ["HR", "LR", "AT", "BE", "CZ", "DE", "ES", "FR", "GB"].map(|code| format!("{code}/1.png"));
    assert_eq!(Tree::new(&codes.each_ref().map(String::as_str)).list().unwrap().classes().len(), 9);
}

#[test]
fn domains_with_test_folders_are_splits() {
    let tree = Tree::new(&["trainA/1.png", "trainB/2.png", "testA/3.png", "testB/4.png"]);
    let Listed::Splits(splits) = list_all(tree.root(), &ListOptions::default()).unwrap() else { panic!() };
    let names: Vec<&str> = splits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["testA", "testB", "trainA", "trainB"]);
    assert!(splits.iter().all(|(_, listing)| listing.len() == 1 && !listing.has_labels()));
}

#[test]
fn masks_in_jpeg_files_are_told() {
    let tree = Tree::new(&["images/1.jpg", "images/2.jpg", "masks/1.jpg", "masks/2.png"]);
    let lossy = Warning::LossyMasks { count: 1, first: b"masks/1.jpg".to_vec() };
    assert_eq!(tree.list().unwrap().warnings(), [lossy]);
}

#[test]
fn parts_of_a_dataset_beside_its_table_are_not_classes() {
    for [one, other] in [["images_001/images", "images_002/images"], ["HAM_images_part_1", "HAM_images_part_2"]] {
        let tree = Tree::new(&[&format!("{one}/a.png"), &format!("{other}/b.png")]);
        match tree.list() {
            Ok(listing) => assert_eq!(listing.classes().len(), 2),
            Err(error) => assert!(error.to_string().contains("'images_001' and 'images_002' look like image folders")),
        }
        tree.write("labels.csv", b"image,label\na.png,x\nb.png,y\n");
        // The table is read if it matches the images.
        assert_eq!(labels(&tree.list().unwrap()), [Some(0), Some(1)]);
        tree.write("labels.csv", b"image,label\na.png,x\nc.png,y\n");
        let error = tree.list().unwrap_err();
        assert!(error.to_string().contains("look like parts of one dataset"), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("'{}'", tree.path("labels.csv").display())), "{hint}");
    }
}

#[test]
fn colour_images_in_a_folder_of_masks_are_refused() {
    let color = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90\x77\x53\xde";
    let color = [&color[..], &[0; 16]].concat();
    for [images, masks, hint] in [
        ["images/1.png", "gt/1.png", "image-folder reads every folder"],
        ["1.png", "1_mask.png", "image-folder reads every file as an image"],
        ["train/images/1.png", "train/gt/1.png", "images"],
    ] {
        let tree = Tree::new(&[]);
        [images, masks].into_iter().for_each(|file| tree.write(file, &color));
        let error = list_all(tree.root(), &ListOptions::default()).unwrap_err();
        assert!(error.to_string().contains("is named like a mask, but is a colour image"), "{error}");
        assert!(error.hint().unwrap().replace("'", "").contains(hint), "{:?}", error.hint());
    }
    // If the caller names the folders, the masks are accepted.
    let tree = Tree::new(&[]);
    ["input/1.png", "gt/1.png"].into_iter().for_each(|file| tree.write(file, &color));
    let [images, masks] = ["input", "gt"].map(|folder| Some(folder.into()));
    assert!(list(tree.root(), &ListOptions { images, masks, ..ListOptions::default() }).unwrap().has_masks());
}

#[test]
fn everything_beside_images_and_masks_is_counted() {
    let tree = Tree::new(&["images/1.png", "labels/2.png", "labels/x/3.png", "labels/labels/1.png"]);
    tree.write("labels/notes.md", b"x");
    tree.write("labels/labels/Thumbs.db", b"x");
    let listing = tree.list().unwrap();
    assert_eq!(pairs(&listing), [pair("images/1.png", "labels/labels/1.png")]);
    let folder = Warning::FoldersBesidePairs { count: 1, first: b"labels/x".to_vec() };
    let file = Warning::FilesBesidePairs { count: 1, first: b"labels/2.png".to_vec() };
    assert_eq!(listing.warnings(), [folder, file]);
    assert_eq!(listing.ignored(), 3);
    let [images, masks] = ["labels", "labels/labels"].map(|folder| Some(folder.into()));
    let listing = list(tree.root(), &ListOptions { images, masks, ..ListOptions::default() });
    let told = listing.map(|listing| listing.warnings().to_vec()).unwrap_or_default();
    assert!(
        !told
            .iter()
            .any(|warning| matches!(warning, Warning::FilesBesidePairs { first, .. } if first.starts_with(b"labels")))
    );
}

#[test]
fn files_beside_folders_of_images_and_masks_are_told() {
    let files =
        ["a/images/1.png", "a/images/2.png", "a/masks/1.png", "a/masks/2.png", "b/images/3.png", "b/masks/3.png"];
    let tree = Tree::new(&[&files[..], &["a.xlsx", "b/notes.txt"]].concat());
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), ["a", "b"]);
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["ignored 2 other files: 1 .txt ('b/notes.txt'), 1 .xlsx ('a.xlsx')"]);
}

#[test]
fn the_same_images_and_masks_in_two_formats_are_no_classes() {
    let names: Vec<String> = ["PNG", "TIF"]
        .iter()
        .flat_map(|folder| {
            let of = |kind: &str, n| format!("{folder}/{kind}/{n}.{}", folder.to_lowercase());
            (1..5).flat_map(|n| [of("Original", n), of("Ground Truth", n)]).collect::<Vec<_>>()
        })
        .collect();
    let tree = Tree::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let error = tree.list().unwrap_err();
    assert!(
        error.to_string().ends_with(
            "'PNG' and 'TIF' have 4 files with the same names, so they look like two versions of each image"
        ),
        "{error}"
    );
    assert_eq!(list(tree.root(), &folders(Some("PNG"), None)).unwrap().len(), 4);
}

#[test]
fn versions_with_the_same_class_folders_are_no_classes() {
    let files = |names: [&str; 4]| -> Vec<String> {
        let of = |version: &'static str| names.map(|name| format!("{version}/{name}.jpg"));
        ["color", "grayscale", "segmented"].into_iter().flat_map(of).collect()
    };
    let tree = |files: Vec<String>| Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let versions = tree(files(["healthy/leaf", "healthy/stem", "rust/old", "rust/new"]));
    let error = versions.list().unwrap_err();
    let words =
        "'color' and 'grayscale' have 4 files with the same names, so they look like two versions of each image";
    assert!(error.to_string().ends_with(words), "{error}");
    assert!(error.hint().unwrap().contains("to pack only one folder, add images='color'"), "{error}");
    assert_eq!(classes(&list(versions.root(), &folders(Some("color"), None)).unwrap()), ["healthy", "rust"]);
    // In one folder, or with numbered names and different images, the folders may be classes.
    for names in [["photo/a", "photo/b", "photo/c", "photo/d"], ["1/1", "1/2", "2/1", "2/2"]] {
        assert_eq!(classes(&tree(files(names)).list().unwrap()).len(), 3, "{names:?}");
    }
}

#[test]
fn splits_beside_masks_of_some_classes_are_read_without_masks() {
    let tree = Tree::new(&[
        "bottle/train/good/1.png",
        "bottle/test/good/1.png",
        "bottle/test/broken/1.png",
        "bottle/ground_truth/broken/1_mask.png",
    ]);
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = splits.iter().map(|(split, listing)| (split.as_str(), paths(listing))).collect();
    let test = vec!["broken/1.png".to_owned(), "good/1.png".to_owned()];
    assert_eq!(found, [("test", test), ("train", vec!["good/1.png".to_owned()])]);
    let told = Warning::FoldersBesideSplits { count: 1, first: b"ground_truth".to_vec() };
    assert!(splits.iter().all(|(_, listing)| listing.warnings().contains(&told)));
}

#[test]
fn folders_that_each_contain_splits_are_refused() {
    let tree = Tree::new(&["bottle/train/good/1.png", "bottle/test/bad/2.png", "cable/train/good/3.png"]);
    let error = tree.list().unwrap_err();
    let expected = "each of its 2 folders contains splits, such as 'bottle/test', so they are not read as classes";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(error.hint().unwrap().contains(&tree.path("bottle").display().to_string()));
    // Only one class has a folder named like a split, so the folders are classes.
    assert_eq!(Tree::new(&["a/test/1.png", "b/2.png"]).list().unwrap().len(), 2);
}

#[test]
fn image_and_mask_folders_of_each_split_are_splits_of_pairs() {
    let tree = Tree::new(&[]);
    for split in ["Training", "Test"] {
        for n in 0..3 {
            tree.write(&format!("Task1-2_{split}_Input/{split}{n}.jpg"), &encode_png(1, 1, 3, &[1, 2, 3]).unwrap());
            let mask = format!("Task1_{split}_GroundTruth/{split}{n}_segmentation.png");
            tree.write(&mask, &encode_png(1, 1, 1, &[1]).unwrap());
        }
    }
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> =
        splits.iter().map(|(name, listing)| (name.as_str(), listing.len(), listing.has_masks())).collect();
    assert_eq!(found, [("Task1-2_Test_Input", 3, true), ("Task1-2_Training_Input", 3, true)]);
    assert_eq!(splits[0].1.warnings(), []);
}

#[test]
fn masks_inside_some_classes_are_refused() {
    let files = ["Fish/Trout/Trout/1.png", "Fish/Trout/Trout GT/1.png", "Other/Trout/2.png"];
    let error = Tree::new(&files).list().unwrap_err();
    assert!(error.to_string().contains("'Fish/Trout/Trout GT' looks like the masks of 'Fish/Trout/Trout'"), "{error}");
    let error = Tree::new(&["a/Data/Images/Bad/1.png", "a/Data/Masks/Bad/1.png", "b/Data/Images/Bad/2.png"])
        .list()
        .unwrap_err();
    assert!(error.to_string().contains("'a/Data/Masks' looks like the masks of 'a/Data/Images'"), "{error}");
    // Without masks named like the images, the folder may be a class.
    assert!(Tree::new(&["faces/with/mask/1.png", "faces/with/hat/2.png", "cars/3.png"]).list().is_ok());
}

#[test]
fn folders_with_the_same_splits_each_are_refused() {
    let names = ["train_images", "train_labels", "test_images", "test_labels"];
    let files: Vec<String> =
        ["fog", "snow"].iter().flat_map(|folder| names.map(|name| format!("{folder}/{name}.png"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let tree = Tree::new(&files);
    let error = tree.list().unwrap_err();
    assert!(error.to_string().contains("its 2 folders all contain the same splits"), "{error}");
    assert!(error.hint().unwrap().contains(&tree.path("fog").display().to_string()), "{error}");
}

#[test]
fn mask_folders_of_only_some_splits_are_read_if_they_are_named() {
    let tree = Tree::new(&[
        "train/images/1.png",
        "train/1st_manual/1.png",
        "train/mask/1.png",
        "test/images/2.png",
        "test/mask/2.png",
    ]);
    let masks = ListOptions { masks: Some("1st_manual".into()), ..ListOptions::default() };
    let Listed::One(listing) = list_all(tree.root(), &masks).unwrap() else { panic!() };
    assert_eq!(pairs(&listing), [pair("images/1.png", "1st_manual/1.png")]);
    let told = Warning::FoldersBesideSplits { count: 1, first: b"test".to_vec() };
    assert!(listing.warnings().contains(&told), "{:?}", listing.warnings());
    // The masks of the other split may be of another kind, so they are not read alone in silence.
    let split = ListOptions { split: Some("test".into()), ..ListOptions::default() };
    let error = list(tree.root(), &split).unwrap_err();
    assert!(error.to_string().contains("there are several mask folders"), "{error}");
    // A split without masks is read alone.
    let tree = Tree::new(&["train/images/1.png", "train/1st_manual/1.png", "train/mask/1.png", "test/images/2.png"]);
    assert_eq!(list(tree.root(), &split).unwrap().len(), 1);
}
