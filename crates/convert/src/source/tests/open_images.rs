//! Folders of Open Images.

use super::super::mutation::{Dice, damage};
use super::super::{ListOptions, Listed, list_all};
use super::box_sources::{boxes, error, item, one, splits, told, tree};
use super::{Tree, paths};

const HEADER: &str =
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n";
const NAMES: &str = "/m/01g317,Person\n/m/0199g,\"Bicycle, any\"\n";

fn table(rows: &str) -> String {
    format!("{HEADER}{rows}")
}

fn one_set(rows: &str) -> Tree {
    tree(
        &["train/a.png", "train/b.png"],
        &[("train-annotations-bbox.csv", &table(rows)), ("class-descriptions-boxable.csv", NAMES)],
    )
}

#[test]
fn boxes_of_open_images_are_computed_from_the_sizes_of_the_images() {
    let train = table(
        "a,xclick,/m/0199g,1,0.1,0.2,0.5,0.75,0,0,1,0,0\nb,xclick,/m/01g317,1,0,1,0,1,0,0,0,0,0\na,activemil,/m/01g317,1,0.5,0.5,0,1,-1,-1,-1,-1,-1\na,activemil,/m/01g317,1,0.5,0.75,0,1,-1,-1,-1,-1,-1\nz,xclick,/m/01g317,1,0,1,0,1,0,0,0,0,0\n",
    );
    let tree = tree(
        &["train/a.png", "train/b.png", "train/d.png", "validation/c.png"],
        &[
            ("train-annotations-bbox.csv", &train),
            ("validation-annotations-bbox.csv", &table("c,xclick,/m/01g317,1,0,0.5,0,0.5,0,0,0,0,0\n")),
            ("test-annotations-bbox.csv", &table("e,xclick,/m/01g317,1,0,0.5,0,0.5,0,0,0,0,0\n")),
            ("class-descriptions-boxable.csv", NAMES),
        ],
    );
    let found = splits(&tree);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "validation"]);
    let train = &found[0].1;
    assert_eq!(paths(train), ["train/a.png", "train/b.png", "train/d.png"]);
    assert_eq!(boxes(train, 0), [one([10, 25, 20, 38], "Bicycle, any"), one([50, 0, 75, 50], "Person")]);
    assert_eq!((boxes(train, 1), boxes(train, 2)), (vec![one([0, 0, 100, 50], "Person")], vec![]));
    assert_eq!(item(train, "box_crowd", 0), [1, 0]);
    assert_eq!(boxes(&found[1].1, 0), [one([0, 0, 50, 25], "Person")]);
    let told = told(train);
    for words in [
        "computed from parts of the width and height of each image (Open Images); their classes are the names in 'class-descriptions-boxable.csv'; 'box_crowd' is IsGroupOf",
        "1 image without a box; 1 box without an area, left out",
        "2 boxes for which it is unknown whether it is around a group",
        "1 box of images that are not in the folder, left out",
        "other values of annotations are left out: 'Confidence', 'IsDepiction', 'IsInside', 'IsOccluded', 'IsTruncated', 'Source'",
        "left out the split 'test' of 'test-annotations-bbox.csv': there is no folder 'test' with its images",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn one_table_has_the_boxes_of_all_images_of_the_folder() {
    let rows = table("a,x,/m/0199g,1,0,1,0,1,0,0,0,0,0\nb,x,/m/01g317,1,0,1,0,1,0,0,0,0,0\n");
    let tree = tree(&["images/a.png", "images/b.png"], &[("annotations/oidv6-train-annotations-bbox.csv", &rows)]);
    let listing = tree.list().unwrap();
    assert_eq!((boxes(&listing, 0), boxes(&listing, 1).len()), (vec![one([0, 0, 100, 50], "/m/0199g")], 1));
    assert!(told(&listing).contains("their classes are the ids in 'LabelName'"), "{}", told(&listing));
}

#[test]
fn the_folders_of_fiftyone_are_splits() {
    let (names, rows) = (format!("LabelName,DisplayName\n{NAMES}"), |id: &str| {
        table(&format!("{id},x,/m/01g317,1,0,1,0,1,0,0,0,0,0\n"))
    });
    let tree = tree(
        &["train/data/a.png", "validation/data/b.png"],
        &[
            ("train/labels/detections.csv", &rows("a")),
            ("validation/labels/detections.csv", &rows("b")),
            ("train/metadata/classes.csv", &names),
        ],
    );
    let found = splits(&tree);
    assert_eq!((found.len(), paths(&found[1].1)), (2, vec!["validation/data/b.png".to_owned()]));
    assert_eq!(boxes(&found[1].1, 0), [one([0, 0, 100, 50], "Person")]);
}

#[test]
fn tables_that_are_wrong_are_refused_with_file_and_line() {
    for (rows, words) in [
        (
            "a,x,/m/01g317,1,0,1.2,0,1,0,0,0,0,0\n",
            "train-annotations-bbox.csv: line 2: expected a number from 0 to 1 in 'XMax', found '1.2'",
        ),
        ("a,x,/m/01g317,1,0,nan,0,1,0,0,0,0,0\n", "in 'XMax', found 'nan'"),
        ("a,x,/m/01g317,1,0,,0,1,0,0,0,0,0\n", "in 'XMax', found ''"),
        ("a,x,/m/2,1,0,1,0,1,0,0,0,0,0\n", "line 2: the class '/m/2' is not in the file of class names"),
        ("a,x,/m/01g317,1,0,1,0,1,0,0,2,0,0\n", "expected 0, 1 or -1 in 'IsGroupOf', found '2'"),
        (",x,/m/01g317,1,0,1,0,1,0,0,0,0,0\n", "a row lacks its ImageID or LabelName"),
        ("a,x,/m/01g317,1\n", "expected 13 fields, found 4"),
    ] {
        let error = error(&one_set(rows));
        assert!(error.contains(words), "{words}: {error}");
    }
    let row = table("a,x,/m/01g317,1,0,1,0,1,0,0,0,0,0\n");
    for (file, text, words) in [
        ("class-descriptions-boxable.csv", "/m/1,a\n/m/1,b\n", "row 2: the class '/m/1' has two names"),
        ("class-descriptions-boxable.csv", "/m/1,a\n/m/2\n", "row 2: expected 2 fields, found 1"),
        ("class-descriptions-boxable.csv", "/m/1,a\n/m/2,\n", "row 2: a field is empty"),
        ("oidv6-train-annotations-bbox.csv", &row, "both have the boxes of the same split"),
    ] {
        let tree = one_set("a,x,/m/01g317,1,0,1,0,1,0,0,0,0,0\n");
        tree.write(file, text.as_bytes());
        let error = error(&tree);
        assert!(error.contains(words), "{words}: {error}");
    }
    let tree = tree(
        &["train/a.png", "test/b.png"],
        &[("train-annotations-bbox.csv", &row), ("test-annotations-bbox.csv", &row)],
    );
    let error = error(&tree);
    assert!(error.contains("another file has boxes of the image 'a' too"), "{error}");
}

#[test]
fn class_names_that_occur_twice_are_followed_by_the_id() {
    let tree = one_set("a,x,/m/2,1,0,1,0,1,0,0,0,0,0\n");
    tree.write("class-descriptions-boxable.csv", b"/m/1,Bat\n/m/2,Bat\n");
    let Listed::One(listing) = list_all(tree.root(), &ListOptions::default()).unwrap() else { panic!("splits") };
    assert_eq!(boxes(&listing, 0), [one([0, 0, 100, 50], "Bat (/m/2)")]);
}

#[test]
fn damaged_tables_are_errors_and_never_panic() {
    let mut dice = Dice::new(5);
    let rows = table("a,x,/m/01g317,1,0,1,0,1,0,0,0,0,0\nb,x,/m/0199g,1,0,1,0,1,0,0,0,0,0\n");
    for _ in 0..200 {
        let tree = one_set("");
        for (file, text) in [("train-annotations-bbox.csv", rows.as_str()), ("class-descriptions-boxable.csv", NAMES)] {
            let mut bytes = text.as_bytes().to_vec();
            damage(&mut bytes, &mut dice);
            tree.write(file, &bytes);
        }
        let _ = list_all(tree.root(), &ListOptions::default());
    }
}
