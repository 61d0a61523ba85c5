//! Lists of images that divide a folder into splits, and lists that do not.

use super::{Tree, classes, labels, paths};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::source::listing::Listing;
use crate::source::{ListOptions, Listed, list, list_all, list_splits};

/// The splits of a source.
fn splits(tree: &Tree) -> Vec<(String, Listing)> {
    match list_all(tree.root(), &ListOptions::default()).unwrap() {
        Listed::Splits(splits) => splits,
        Listed::One(listing) => panic!("no splits: {:?}", told(&listing)),
    }
}

/// The listing of a source without splits.
fn one(tree: &Tree) -> Listing {
    match list_all(tree.root(), &ListOptions::default()).unwrap() {
        Listed::One(listing) => *listing,
        Listed::Splits(splits) => panic!("{splits:?}"),
    }
}

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

/// The names of the splits, and the paths in each.
fn divided(tree: &Tree) -> Vec<(String, Vec<String>)> {
    splits(tree).into_iter().map(|(split, listing)| (split, paths(&listing))).collect()
}

fn split(name: &str, paths: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect())
}

#[test]
fn lists_divide_class_folders_without_a_change_of_ids() {
    let tree = Tree::new(&["images/cat/1.jpg", "images/cat/2.jpg", "images/dog/3.jpg"]);
    tree.write("meta/train.txt", b"dog/3\ncat/1\n");
    tree.write("meta/test.txt", b"cat/2\r\n");
    tree.write("meta/classes.txt", b"cat\ndog\n");
    assert_eq!(divided(&tree), [split("test", &["cat/2.jpg"]), split("train", &["cat/1.jpg", "dog/3.jpg"])]);
    for (_, listing) in splits(&tree) {
        assert_eq!(classes(&listing), ["cat", "dog"]);
        assert_eq!(told(&listing)[0], "the splits are those of 'meta/test.txt', 'meta/train.txt'");
    }
    let chosen = tree.list_split("test").unwrap();
    assert_eq!((labels(&chosen), paths(&chosen)), (vec![Some(0)], vec!["cat/2.jpg".to_owned()]));
    assert_eq!(list_splits(tree.root(), &ListOptions::default()).unwrap().len(), 2);
    let error = tree.list().unwrap_err();
    assert!(matches!(&error, ConvertError::SeveralSplits { splits, .. } if splits == &["test", "train"]), "{error}");
    let error = tree.list_split("val").unwrap_err();
    assert!(matches!(&error, ConvertError::SplitMissing { .. }), "{error}");
    let options = ListOptions { from: Some(DataFormat::ImageFolder), ..ListOptions::default() };
    assert_eq!(list(&tree.path("images"), &options).unwrap().len(), 3);
}

#[test]
fn lists_divide_images_and_their_masks() {
    let tree =
        Tree::new(&["images/a.jpg", "images/b.jpg", "images/c.jpg", "masks/a.png", "masks/b.png", "masks/c.png"]);
    tree.write("train.txt", b"\xef\xbb\xbfimages/b.jpg masks/b.png\n");
    tree.write("val.txt", b"# of the authors\n./images/a.jpg masks/a.png\n");
    let found = splits(&tree);
    let mask = |listing: &Listing| {
        let mut path = Vec::new();
        listing.mask_path_into(0, &mut path).unwrap();
        String::from_utf8(path).unwrap()
    };
    assert_eq!(mask(&found[0].1), "masks/b.png");
    assert_eq!(mask(&found[1].1), "masks/a.png");
    let expected = "the splits are those of 'train.txt', 'val.txt', of which only the first column is read (to read the others, pass one list as the source); ignored 1 image in no list ('images/c.jpg')";
    assert_eq!(told(&found[0].1), [expected]);
    assert_eq!((found[0].1.ignored(), found[0].1.len()), (0, 1));
}

#[test]
fn lists_divide_flat_folders_and_the_rows_of_tables() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg"]);
    tree.write("train.csv", b"path\nimages/a.jpg\n");
    tree.write("val.csv", b"path\nimages/b.jpg\n");
    assert_eq!(divided(&tree), [split("train", &["a.jpg"]), split("val", &["b.jpg"])]);
    let tree = Tree::new(&["images_001/images/a.jpg", "images_001/images/b.jpg", "images_002/images/c.jpg"]);
    tree.write("entries.csv", b"name,label,age,note\na.jpg,x|y,1,r\nb.jpg,y,2,s\nc.jpg,x,3,t\n");
    tree.write("train_val_list.txt", b"c.jpg\na.jpg\n");
    tree.write("test_list.txt", b"b.jpg\n");
    let found = splits(&tree);
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("test", "train_val"));
    assert_eq!(paths(&found[1].1), ["images_001/images/a.jpg", "images_002/images/c.jpg"]);
    assert_eq!((found[1].1.label_list(0), found[1].1.label_list(1)), (Some(&[0, 1][..]), Some(&[0][..])));
    let text = format!("{:?}", found[1].1.columns());
    assert!(text.contains("I64([1, 3])"), "{text}");
}

#[test]
fn a_list_of_all_others_repeats_them() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg", "images/c.jpg"]);
    tree.write("splits/train.txt", b"a\n");
    tree.write("splits/val.txt", b"b\n");
    tree.write("splits/trainval.txt", b"a\nb\n");
    tree.write("splits/test.txt", b"c\n");
    assert_eq!(divided(&tree), [split("test", &["c.jpg"]), split("train", &["a.jpg"]), split("val", &["b.jpg"])]);
    let told = told(&splits(&tree)[0].1);
    assert!(told[0].ends_with("; 'splits/trainval.txt' only repeats their images"), "{told:?}");
}

#[test]
fn lists_that_do_not_divide_the_images_are_told_with_the_reason() {
    for (train, val, reason) in [
        ("a.jpg\nb.jpg\n", "b.jpg\n", "'train.txt' and 'val.txt' both list 'b.jpg'"),
        ("a.jpg\nb.jpg\nz.jpg\n", "c.jpg\n", "'train.txt' lists 'z.jpg', which is not an image of the folder"),
        ("a.jpg\na.jpg\n", "b.jpg\n", "'train.txt' lists 'a.jpg' twice"),
        ("a.jpg\nd\nb.jpg\n", "c.jpg\n", "'train.txt' lists 'd', which may be 'd.jpg' or 'd.png'"),
    ] {
        let tree = Tree::new(&["images/a.jpg", "images/b.jpg", "images/c.jpg", "images/d.jpg", "images/d.png"]);
        tree.write("train.txt", train.as_bytes());
        tree.write("val.txt", val.as_bytes());
        let listing = one(&tree);
        let told = told(&listing);
        assert_eq!(told[0], format!("'train.txt', 'val.txt' were not used as splits: {reason}"));
        assert!(listing.len() == 5 && !told.iter().any(|text| text.contains("were not read")), "{told:?}");
    }
}

#[test]
fn several_ways_to_divide_are_told_and_the_same_way_twice_is_used() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg"]);
    for folder in ["split_1", "split_2"] {
        tree.write(&format!("{folder}/train.txt"), b"a\n");
        tree.write(&format!("{folder}/test.txt"), b"b\n");
    }
    assert_eq!(splits(&tree).len(), 2);
    tree.write("split_2/train.txt", b"b\n");
    tree.write("split_2/test.txt", b"a\n");
    let told = told(&one(&tree));
    assert!(
        told[0].starts_with(
            "'split_1/test.txt', 'split_2/test.txt' were not used as splits: the lists divide the images in 2 ways"
        ),
        "{told:?}"
    );
}

#[test]
fn lists_of_other_things_do_not_divide_a_folder() {
    // A single list, lists of other files, and lists whose columns may be the labels.
    for files in [
        &[("train.txt", "a.jpg\n")][..],
        &[("train.txt", "bear\n"), ("val.txt", "bus\n")],
        &[("train.txt", ""), ("val.txt", "")],
        &[("lists/train.txt", "a.jpg 1\n"), ("lists/val.txt", "b.jpg 0\n")],
    ] {
        let tree = Tree::new(&["images/a.jpg", "images/b.jpg"]);
        files.iter().for_each(|(name, text)| tree.write(name, text.as_bytes()));
        let listing = one(&tree);
        assert_eq!(listing.len(), 2);
        let is_of_splits = |text: &String| text.contains("as splits") || text.starts_with("the splits");
        assert!(!told(&listing).iter().any(is_of_splits), "{:?}", told(&listing));
    }
}

#[test]
fn lists_of_images_without_masks_do_not_divide_pairs() {
    let tree = Tree::new(&[
        "JPEGImages/a.jpg",
        "JPEGImages/b.jpg",
        "JPEGImages/c.jpg",
        "SegmentationClass/a.png",
        "SegmentationClass/b.png",
    ]);
    tree.write("ImageSets/Main/train.txt", b"a\nc\n");
    tree.write("ImageSets/Main/val.txt", b"b\n");
    let told_of = |tree: &Tree| told(&one(tree));
    assert!(
        told_of(&tree)[0].ends_with("'ImageSets/Main/train.txt' lists 'c', which is not an image with a mask"),
        "{:?}",
        told_of(&tree)
    );
    tree.write("ImageSets/Segmentation/train.txt", b"a\n");
    tree.write("ImageSets/Segmentation/val.txt", b"b\n");
    assert_eq!(divided(&tree), [split("train", &["JPEGImages/a.jpg"]), split("val", &["JPEGImages/b.jpg"])]);
}

#[test]
fn one_list_of_flags_divides_the_folder() {
    let tree = Tree::new(&["images/a/1.jpg", "images/a/2.jpg", "images/b/3.jpg"]);
    tree.write("images.txt", b"1 a/1.jpg\n2 a/2.jpg\n3 b/3.jpg\n");
    tree.write("train_test_split.txt", b"1 0\n2 1\n3 1\n");
    assert_eq!(divided(&tree), [split("test", &["a/1.jpg"]), split("train", &["a/2.jpg", "b/3.jpg"])]);
    let told_first = told(&splits(&tree)[0].1).remove(0);
    assert_eq!(told_first, "the splits are those of 'train_test_split.txt', where 1 is read as train and 0 as test");
    tree.write("train_test_split.txt", b"1 0\n2 1\n3 2\n");
    assert_eq!(one(&tree).len(), 3);
}

#[test]
fn masks_beside_the_images_of_a_list_are_told() {
    let tree = Tree::new(&["images/a.jpg", "images/b.jpg", "masks/a.png", "masks/b.png"]);
    tree.write("train.txt", b"images/a.jpg\n");
    let told_of = |name: &str| told(&list(&tree.path(name), &ListOptions::default()).unwrap());
    let words = format!(
        "the masks in 'masks' were not read, because a list names only images: to pack them too, pass {} as the source",
        tree.root().display()
    );
    assert!(told_of("train.txt").contains(&words), "{:?}", told_of("train.txt"));
    tree.write("pairs.csv", b"image,mask\nimages/a.jpg,masks/a.png\nimages/b.jpg,masks/b.png\n");
    assert!(told_of("pairs.csv").is_empty());
    // Next to a table, the folders are paired only by options.
    tree.write("train.csv", b"image,label\nimages/a.jpg,x\n");
    let warnings = told_of("train.csv").join(" ");
    assert!(warnings.contains("as the source, with images='images' and masks='masks'"), "{warnings}");
    // Pascal VOC's folders are found without options.
    let tree = Tree::new(&[
        "JPEGImages/2008_1.jpg",
        "JPEGImages/2008_2.jpg",
        "SegmentationClass/2008_1.png",
        "Annotations/2008_1.xml",
    ]);
    tree.write("ImageSets/Segmentation/train.txt", b"2008_1\n");
    let told = told(&list(&tree.path("ImageSets/Segmentation/train.txt"), &ListOptions::default()).unwrap());
    let words = format!("pass {} as the source", tree.root().display());
    assert!(told.iter().any(|text| text.ends_with(&words) && text.contains("SegmentationClass")), "{told:?}");
}
