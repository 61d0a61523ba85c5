//! Folders with boxes in separate files: YOLO, Pascal VOC, LabelMe and COCO.

use std::path::PathBuf;

use packds_format::Role;
use packds_pixels::encode_png;
use packds_system::to_usize;

use super::super::mutation::{Dice, damage};
use super::super::{ListOptions, Listed, Listing, list, list_all, list_splits};
use super::{Tree, paths};

pub(super) fn png(width: u32, height: u32) -> Vec<u8> {
    encode_png(width, height, 3, &vec![7; to_usize(u64::from(width * height * 3))]).unwrap()
}

/// A tree with images of 100 x 50 pixels, and text files.
pub(super) fn tree(images: &[&str], texts: &[(&str, &str)]) -> Tree {
    let tree = Tree::new(&[]);
    let image = png(100, 50);
    images.iter().for_each(|file| tree.write(file, &image));
    texts.iter().for_each(|(file, text)| tree.write(file, text.as_bytes()));
    tree
}

pub(super) fn item(listing: &Listing, name: &str, idx: usize) -> Vec<u8> {
    let field = listing.fields().iter().find(|field| field.name == name).unwrap();
    let mut item = Vec::new();
    field.store.append(idx, u64::MAX, &mut item).unwrap();
    item
}

/// The boxes of an image, rounded, and their classes.
pub(super) fn boxes(listing: &Listing, idx: usize) -> Vec<(Vec<i32>, String)> {
    #[expect(clippy::cast_possible_truncation, reason = "the corners are small")]
    let corners: Vec<i32> = item(listing, "boxes", idx)
        .as_chunks::<4>()
        .0
        .iter()
        .map(|corner| f32::from_le_bytes(*corner).round() as i32)
        .collect();
    let labels = item(listing, "box_labels", idx);
    let names = labels
        .as_chunks::<8>()
        .0
        .iter()
        .map(|id| listing.box_classes()[usize::try_from(i64::from_le_bytes(*id)).unwrap()].clone());
    corners.chunks(4).map(<[i32]>::to_vec).zip(names).collect()
}

pub(super) fn one(corners: [i32; 4], class: &str) -> (Vec<i32>, String) {
    (corners.to_vec(), class.to_owned())
}

pub(super) fn told(listing: &Listing) -> String {
    listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

pub(super) fn error(tree: &Tree) -> String {
    let error = list_all(tree.root(), &ListOptions::default()).unwrap_err();
    format!("{error} ({})", error.hint().unwrap_or_default())
}

pub(super) fn splits(tree: &Tree) -> Vec<(String, Listing)> {
    let Listed::Splits(splits) = list_all(tree.root(), &ListOptions::default()).unwrap() else { panic!("one set") };
    splits
}

pub(super) const YAML: &str =
    "path: ../datasets/x # root\ntrain: images/train\nval: images/val\ntest: # none\nnames:\n  0: cat\n  1: dog\n";

pub(super) fn yolo(lines: &str) -> Tree {
    let images = ["images/train/a.png", "images/train/b.png", "images/val/c.png"];
    tree(&images, &[("data.yaml", YAML), ("labels/train/a.txt", lines), ("labels/val/c.txt", "0 0.5 0.5 1 1\n")])
}

#[test]
fn boxes_of_yolo_are_computed_from_the_sizes_of_the_images() {
    let tree = yolo("1 0.5 0.5 0.2 0.4\n0 0.1 0.2 0.1 0.2\n");
    let found = splits(&tree);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["train", "val"]);
    let train = &found[0].1;
    assert_eq!(paths(train), ["images/train/a.png", "images/train/b.png"]);
    assert_eq!(boxes(train, 0), [one([40, 15, 60, 35], "dog"), one([5, 5, 15, 15], "cat")]);
    assert!(boxes(train, 1).is_empty());
    let roles: Vec<_> = train.fields().iter().map(|field| (field.name.as_str(), field.role)).collect();
    assert_eq!(roles, [("boxes", Some(Role::Boxes)), ("box_labels", Some(Role::BoxLabels))]);
    let told = told(train);
    assert!(told.contains("computed from parts of the width and height of each image (YOLO)"), "{told}");
    assert!(told.contains("their classes are the names in 'data.yaml'; 1 image without a box"), "{told}");
    // One split alone is the same.
    let val = tree.list_split("val").unwrap();
    assert_eq!((val.len(), boxes(&val, 0)), (1, vec![one([0, 0, 100, 50], "cat")]));
    assert!(tree.list().unwrap_err().to_string().contains("train"));
    assert_eq!(list_splits(tree.root(), &ListOptions::default()).unwrap().len(), 2);
    let missing = tree.list_split("test").unwrap_err().to_string();
    assert!(missing.contains("'test'"), "{missing}");
    let file = list(&tree.path("data.yaml"), &ListOptions::default()).unwrap_err();
    assert!(file.hint().unwrap().contains("pass the folder of the data set"), "{file}");
}

#[test]
fn the_export_of_roboflow_is_read_though_its_folders_lead_outside() {
    let yaml = "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n\nnc: 2\nnames: ['cat', 'dog']\n\nroboflow:\n  workspace: x\n";
    let tree = tree(
        &["train/images/a.png", "valid/images/b.png"],
        &[
            ("data.yaml", yaml),
            ("train/labels/a.txt", "0 0.5 0.5 0.5 0.5"),
            ("valid/labels/b.txt", ""),
            ("README.roboflow.txt", "x"),
        ],
    );
    let found = splits(&tree);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "val"]);
    assert_eq!((boxes(&found[0].1, 0), boxes(&found[1].1, 0)), (vec![one([25, 13, 75, 38], "cat")], vec![]));
    let told = told(&found[0].1);
    assert!(told.contains("left out the split 'test' of 'data.yaml': '../test/images' does not exist"), "{told}");
}

#[test]
fn lists_of_images_are_splits_of_yolo() {
    let yaml = "train: train.txt\nval: [val.txt]\nnames: [cat]\n";
    let lists = [("train.txt", "./images/a.png\n\n./images/c.png\n"), ("val.txt", "/home/me/x/images/b.png\n")];
    let texts = [&[("my.yaml", yaml), ("labels/b.txt", "0 0.5 0.5 1 1")][..], &lists].concat();
    let tree = tree(&["images/a.png", "images/b.png", "images/c.png"], &texts);
    let found = splits(&tree);
    assert_eq!(paths(&found[0].1), ["images/a.png", "images/c.png"]);
    assert_eq!((paths(&found[1].1), boxes(&found[1].1, 0).len()), (vec!["images/b.png".to_owned()], 1));
    tree.write("train.txt", b"./images/a.png\n./images/z.png\n");
    let error = error(&tree);
    assert!(
        error.contains("train.txt: line 2: expected the path of an image in the folder, found './images/z.png'"),
        "{error}"
    );
}

#[test]
fn folders_of_yolo_without_a_file_of_splits_are_read() {
    let labels = [("labels/train/a.txt", "12 0.5 0.5 1 1"), ("labels/val/b.txt", "0 0.5 0.5 1 1")];
    let own = tree(&["images/train/a.png", "images/val/b.png"], &labels);
    let found = splits(&own);
    assert_eq!((found.len(), found[1].1.box_classes().len()), (2, 13));
    assert_eq!(boxes(&found[0].1, 0), [one([0, 0, 100, 50], "12")]);
    assert!(told(&found[0].1).contains("their classes are numbers, because there is no 'classes.txt'"));
    let flat = tree(&["images/a.png"], &[("labels/a.txt", "1 0.5 0.5 1 1"), ("labels/classes.txt", "cat\ndog\n")]);
    assert_eq!(boxes(&flat.list().unwrap(), 0), [one([0, 0, 100, 50], "dog")]);
    let each = tree(
        &["train/images/a.png", "val/images/b.png"],
        &[("train/labels/a.txt", "0 0.5 0.5 1 1"), ("val/labels/b.txt", "")],
    );
    assert_eq!(splits(&tree_of(&each)).len(), 2);
    // LabelImg writes the files next to the images.
    let beside = tree(&["a.png", "b.png"], &[("a.txt", "0 0.5 0.5 1 1"), ("classes.txt", "cat\n"), ("notes.txt", "x")]);
    let listing = beside.list().unwrap();
    assert_eq!(listing.ignored(), 1);
    assert_eq!((listing.len(), boxes(&listing, 0)), (2, vec![one([0, 0, 100, 50], "cat")]));
}

/// The same tree, below another folder.
fn tree_of(inner: &Tree) -> Tree {
    let outer = Tree::new(&[]);
    outer.link(inner.root().to_str().unwrap(), "coco8");
    outer
}

#[test]
fn boxes_of_yolo_that_are_wrong_are_refused_with_file_and_line() {
    for (lines, words) in [
        (
            "0 0.5 0.5 0.1 0.1\n0 120 80 30 20",
            "labels/train/a.txt: line 2: expected numbers from 0 to 1, found 120 in '0 120 80 30 20'",
        ),
        ("2 0.5 0.5 0.1 0.1", "line 1: the class 2 is not one of the 2 classes of 'data.yaml'"),
        ("-1 0.5 0.5 0.1 0.1", "line 1: the class -1 is not"),
        ("cat 0.5 0.5 0.1 0.1", "line 1: expected the number of a class and the numbers of a box, found 'cat"),
        ("0 0.5 0.5 x 0.1", "line 1: expected the number of a class and the numbers of a box"),
        ("0 0.5 0.5 nan 0.1", "expected numbers from 0 to 1, found NaN"),
        ("0 0.5 0.5 0.1 0.1 0.9", "line 1: expected 5 numbers, or the points of an outline, found 6"),
        ("0 0.5 0.5 0.1", "line 1: expected 5 numbers, or the points of an outline, found 4"),
    ] {
        let error = error(&yolo(lines));
        assert!(error.contains(words), "{error}");
    }
    let tree = yolo("0 0.5 0.5 0.1 0.1");
    tree.write("labels/train/z.txt", b"0 0.5 0.5 0.1 0.1");
    let found = error(&tree);
    assert!(
        found.contains("labels/train/z.txt: the file has the boxes of the image 'z', which is not in 'images/train'"),
        "{found}"
    );
    let tree = yolo("0 0.5 0.5 0.1 0.1");
    tree.write("data.yaml", b"names: [cat]\ntrain: pictures\n");
    assert!(error(&tree).contains("'pictures' does not exist in the folder (line 2)"), "{}", error(&tree));
    tree.write("data.yaml", YAML.as_bytes());
    std::fs::remove_dir_all(tree.path("labels")).unwrap();
    assert!(error(&tree).contains("expected .txt files with the boxes of the images, found none"), "{}", error(&tree));
}

#[test]
fn an_image_whose_size_cannot_be_read_is_a_bad_sample() {
    let tree = yolo("0 0.5 0.5 0.1 0.1");
    tree.write("images/train/a.png", b"no image");
    let train = &splits(&tree)[0].1;
    assert_eq!(train.faulty().collect::<Vec<_>>(), [0]);
    let fault = train.fault(0).unwrap().to_string();
    assert!(fault.contains("the boxes need the size of the image, which cannot be read"), "{fault}");
}

#[test]
fn boxes_without_area_are_left_out_and_boxes_beyond_the_image_are_counted() {
    let told = told(&splits(&yolo("0 0.5 0.5 0 0.1\n0 0 0.5 0.5 0.1\n1 0.05 0.5 0.1 0.1\n"))[0].1);
    assert!(told.contains("1 box without an area, left out; 1 box beyond the edge of an image, kept"), "{told}");
}

fn xml(objects: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<annotation>\n<size><width>100</width><height>50</height></size>\n{objects}</annotation>\n"
    )
}

fn object(name: &str, sides: [i32; 4], others: &str) -> String {
    let [left, top, right, bottom] = sides;
    format!(
        "<object><name>{name}</name>{others}\n<bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>\n"
    )
}

#[test]
fn boxes_of_pascal_voc_keep_the_numbers_of_the_files() {
    let marked = |mark: u8| format!("<pose>Left</pose><difficult>{mark}</difficult>");
    let a = xml(&[object("dog", [1, 2, 30, 40], &marked(0)), object("cat", [5, 6, 200, 8], &marked(1))].concat());
    let b = xml(&object("cat", [1, 1, 100, 50], &marked(0)));
    let lists = ["Main", "Layout"]
        .map(|folder| [format!("ImageSets/{folder}/train.txt"), format!("ImageSets/{folder}/val.txt")]);
    let [[train, val], [one_way, other_way]] = &lists;
    let texts = [
        ("Annotations/a.xml", a.as_str()),
        ("Annotations/b.xml", &b),
        (train, "a\nc\n"),
        (val, "b\n"),
        (one_way, "b\n"),
        (other_way, "a\n"),
        ("ImageSets/Main/dog_train.txt", "a 1\nc -1\n"),
        ("ImageSets/Main/dog_val.txt", "b -1\n"),
    ];
    let voc = tree(&["JPEGImages/a.png", "JPEGImages/b.png", "JPEGImages/c.png"], &texts);
    for tree in [tree_of(&voc), voc] {
        let found = splits(&tree);
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "val"]);
        let train = &found[0].1;
        assert_eq!(paths(train), ["JPEGImages/a.png", "JPEGImages/c.png"]);
        assert_eq!(boxes(train, 0), [one([1, 2, 30, 40], "dog"), one([5, 6, 200, 8], "cat")]);
        assert_eq!((item(train, "box_difficult", 0), boxes(train, 1)), (vec![0, 1], vec![]));
        assert_eq!(boxes(&found[1].1, 0), [one([1, 1, 100, 50], "cat")]);
        let told = told(train);
        assert!(told.contains("(xmin, ymin, xmax, ymax), which Pascal VOC counts from 1"), "{told}");
        assert!(told.contains("1 image without a box; 1 box beyond the edge of an image, kept"), "{told}");
        assert!(told.contains("other values of annotations are left out: 'pose'"), "{told}");
    }
}

#[test]
fn xml_files_beside_the_images_have_boxes() {
    let (one_object, none) = (xml(&object("cat", [1, 2, 3, 4], "")), xml(""));
    let tree = tree(&["a.png", "b.png"], &[("a.xml", &one_object), ("b.xml", &none)]);
    let listing = tree.list().unwrap();
    assert_eq!((boxes(&listing, 0), listing.len(), listing.ignored()), (vec![one([1, 2, 3, 4], "cat")], 2, 0));
    assert!(!listing.fields().iter().any(|field| field.name == "box_difficult"));
    tree.write("c.xml", none.as_bytes());
    let found = error(&tree);
    assert!(found.contains("c.xml: the file has the boxes of the image 'c', which is not next to it"), "{found}");
    let splits_of = |images: &str, files: &str| {
        let (image, file) = (format!("{images}/a.png"), format!("{files}/a.xml"));
        let val = [images.replace("train", "valid"), files.replace("train", "valid")];
        let (other, own) = (format!("{}/b.png", val[0]), format!("{}/b.xml", val[1]));
        splits(&self::tree(&[&image, &other], &[(&file, &one_object), (&own, &none)]))
    };
    for (images, files) in
        [("train", "train"), ("images/train", "annotations/train"), ("train/images", "train/annotations")]
    {
        let found = splits_of(images, files);
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "valid"], "{images}");
        assert_eq!((boxes(&found[0].1, 0).len(), boxes(&found[1].1, 0).len()), (1, 0));
    }
}

#[test]
fn masks_of_pascal_voc_are_read_unless_they_are_left_out() {
    let a = xml(&object("cat", [1, 2, 3, 4], ""));
    let tree = tree(&["JPEGImages/a.png", "SegmentationClass/a.png"], &[("Annotations/a.xml", &a)]);
    let listing = tree.list().unwrap();
    assert!(listing.has_masks() && listing.boxes().is_none());
    let said = told(&listing);
    assert!(
        said.contains("the boxes in 'Annotations' were not read, because there are masks; leave_out='mask'"),
        "{said}"
    );
    let options = ListOptions { leave_out: vec!["mask".to_owned()], ..ListOptions::default() };
    let listing = list(tree.root(), &options).unwrap();
    assert_eq!((listing.has_masks(), boxes(&listing, 0).len()), (false, 1));
}

#[test]
fn xml_files_that_are_wrong_are_refused_with_file_and_line() {
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<annotation>&b;</annotation>";
    for (text, words) in [
        ("<annotation>\n<object></annotation>", "a.xml: line 2: the file is not valid XML"),
        ("<other/>", "line 1: expected 'annotation', found 'other'"),
        (bomb, "line 1: the file is not valid XML: "),
        (&deep, "expected 'annotation', found 'a'"),
        (&format!("<annotation>{deep}</annotation>").repeat(2), "not valid XML"),
        ("<annotation>\n<object><bndbox/></object></annotation>", "line 2: an object has no 'name'"),
        ("<annotation>\n<object><name>x</name></object></annotation>", "line 2: the object 'x' has no 'bndbox'"),
        (
            "<annotation><object><name>x</name>\n<bndbox><xmin>a</xmin></bndbox></object></annotation>",
            "line 2: expected a number in 'xmin' of the object 'x', found 'a'",
        ),
        (&xml(&object("x", [1, 2, 3, 4], "<difficult>2</difficult>")), "expected 0 or 1 in 'difficult', found '2'"),
    ] {
        let tree = tree(&["JPEGImages/a.png"], &[("Annotations/a.xml", text)]);
        let error = error(&tree);
        assert!(error.contains(words), "{error}");
    }
    let tree = tree(&["JPEGImages/a.png"], &[("Annotations/a.xml", &xml("")), ("Annotations/b.xml", &xml(""))]);
    assert!(error(&tree).contains("b.xml: the file has the boxes of the image 'b'"), "{}", error(&tree));
    tree.write("Annotations/b.xml", &[0xff, 0xfe]);
    std::fs::rename(tree.path("Annotations/b.xml"), tree.path("Annotations/a.xml")).unwrap();
    assert!(error(&tree).contains("a.xml: the file is not UTF-8"), "{}", error(&tree));
}

pub(super) fn labelme(shapes: &str) -> String {
    format!(
        r#"{{"version": "5.0.1", "flags": {{}}, "shapes": [{shapes}], "imagePath": "a.png", "imageData": "aGk=", "imageHeight": 50, "imageWidth": 100}}"#
    )
}

#[test]
fn rectangles_and_polygons_of_labelme_are_boxes() {
    let shapes = r#"{"label": "dog", "points": [[30, 40], [10.5, 20]], "group_id": null, "shape_type": "rectangle", "flags": {}},
        {"label": "cat", "points": [[1, 2], [9, 3], [5, 8]], "group_id": 1, "shape_type": "polygon", "flags": {}},
        {"label": "cat", "points": [[1, 2], [9, 3]], "shape_type": "circle", "flags": {}},
        {"label": "cat", "points": [[1, 2], [9, 3]], "shape_type": "line", "flags": {}}"#;
    let tree = tree(&["a.png", "b.png"], &[("a.json", &labelme(shapes))]);
    let listing = tree.list().unwrap();
    assert_eq!(
        boxes(&listing, 0),
        [one([11, 20, 30, 40], "dog"), one([1, 2, 9, 8], "cat"), one([-7, -6, 9, 10], "cat")]
    );
    let told = told(&listing);
    for words in [
        "1 polygon packed in 'polygons', with the box around each",
        "1 circle packed as a polygon, with the box around each",
        "1 shape of other kinds, left out",
        "1 image without a box",
        "left out: 'group_id'",
    ] {
        assert!(told.contains(words), "{told}");
    }
    assert_eq!((listing.columns().len(), listing.ignored()), (0, 0));
    tree.write("c.json", labelme("").as_bytes());
    let found = error(&tree);
    assert!(found.contains("c.json: the file has the boxes of the image 'c', which is not next to it"), "{found}");
}

#[test]
fn files_of_labelme_that_are_wrong_are_refused() {
    for (shape, words) in [
        (
            r#"{"points": [[1, 2], [3, 4]], "shape_type": "rectangle"}"#,
            "a.json: line 1: expected a file of LabelMe: missing field `label`",
        ),
        (
            r#"{"label": "x", "points": [[1, 2]], "shape_type": "rectangle"}"#,
            "shape 0 (counted from 0): expected two points of a rectangle in 'x'",
        ),
        (r#"{"label": "x", "points": [[1], [2]], "shape_type": "rectangle"}"#, "expected points of two numbers in 'x'"),
        (r#"{"label": "x", "points": [], "shape_type": "polygon"}"#, "expected points of two numbers in 'x'"),
        (
            r#"{"label": "x", "points": [[1e300, 1], [0, 0]], "shape_type": "rectangle"}"#,
            "found a point that is too far away in 'x'",
        ),
    ] {
        let error = error(&tree(&["a.png"], &[("a.json", &labelme(shape))]));
        assert!(error.contains(words), "{error}");
    }
}

fn coco(image: &str, categories: &str) -> String {
    format!(
        r#"{{"images": [{{"id": 1, "file_name": "{image}", "width": 100, "height": 50}}], "categories": [{categories}],
            "annotations": [{{"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}}]}}"#
    )
}

const OWL: &str = r#"{"id": 7, "name": "owl"}"#;

#[test]
fn each_file_of_coco_is_a_split() {
    let (train, val) = (coco("a.png", OWL), coco("b.png", OWL));
    let texts = [
        ("annotations/instances_train2017.json", train.as_str()),
        ("annotations/instances_val2017.json", &val),
        ("annotations/captions_val2017.json", "{}"),
    ];
    let tree = tree(&["train2017/a.png", "val2017/b.png"], &texts);
    let found = splits(&tree);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train2017", "val2017"]);
    assert_eq!((boxes(&found[0].1, 0), paths(&found[1].1)), (vec![one([1, 2, 4, 6], "owl")], vec!["b.png".to_owned()]));
    let said = told(&found[0].1);
    assert!(said.contains("read the boxes in 'annotations/instances_train2017.json'"), "{said}");
    assert_eq!(tree.list_split("val2017").unwrap().len(), 1);
    let missing = tree.list_split("test2017").unwrap_err().to_string();
    assert!(missing.contains("'test2017'"), "{missing}");
    let several = tree.list().unwrap_err();
    assert!(several.to_string().contains("train2017"), "{several}");
    // The annotations of all splits are often there without their images.
    std::fs::remove_dir_all(tree.path("train2017")).unwrap();
    let Listed::One(only) = list_all(tree.root(), &ListOptions::default()).unwrap() else { panic!("several") };
    assert_eq!(boxes(&only, 0).len(), 1);
    assert!(told(&only).contains("left out the split 'train2017' of 'annotations/instances_train2017.json'"));
    tree.write("train2017/a.png", &png(9, 9));
    tree.write("annotations/instances_val2017.json", coco("b.png", r#"{"id": 7, "name": "cat"}"#).as_bytes());
    assert!(error(&tree).contains("have different categories"), "{}", error(&tree));
}

#[test]
fn a_coco_file_beside_its_images_is_read_as_roboflow_writes_it() {
    let (train, valid) = (coco("a.png", OWL), coco("b.png", OWL));
    let texts = [("train/_annotations.coco.json", train.as_str()), ("valid/_annotations.coco.json", &valid)];
    let tree = tree(&["train/a.png", "valid/b.png"], &texts);
    let found = splits(&tree);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "valid"]);
    assert_eq!(boxes(&found[1].1, 0), [one([1, 2, 4, 6], "owl")]);
    let alone = list(&tree.path("train"), &ListOptions::default()).unwrap();
    assert_eq!(boxes(&alone, 0).len(), 1);
}

#[test]
fn options_that_choose_folders_or_the_format_read_only_the_images() {
    let images = ListOptions { images: Some(PathBuf::from("images/train")), ..ListOptions::default() };
    let tree = yolo("0 0.5 0.5 0.1 0.1");
    let listing = list(tree.root(), &images).unwrap();
    assert_eq!((listing.len(), listing.boxes().is_none()), (2, true));
    let options =
        ListOptions { leave_out: vec!["boxes".to_owned()], split: Some("train".to_owned()), ..ListOptions::default() };
    let listing = list(tree.root(), &options).unwrap();
    assert_eq!(listing.fields().iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["box_labels"]);
    for options in [
        ListOptions { leave_out: vec!["other".to_owned()], split: Some("train".to_owned()), ..ListOptions::default() },
        ListOptions { label_key: Some("other".to_owned()), split: Some("train".to_owned()), ..ListOptions::default() },
    ] {
        let error = list(tree.root(), &options).unwrap_err().to_string();
        assert!(error.contains("other"), "{error}");
    }
}

#[test]
fn damaged_files_of_boxes_are_errors_and_never_panic() {
    let voc = xml(&object("dog", [1, 2, 30, 40], "<difficult>0</difficult>"));
    let labelme = labelme(r#"{"label": "dog", "points": [[30, 40], [10.5, 20]], "shape_type": "rectangle"}"#);
    let coco = coco("a.png", OWL);
    let trees = [
        (yolo("0 0.5 0.5 0.1 0.1\n1 0.1 0.1 0.2 0.1 0.2 0.2\n"), "labels/train/a.txt", None),
        (yolo("0 0.5 0.5 0.1 0.1\n"), "data.yaml", None),
        (tree(&["JPEGImages/a.png"], &[("Annotations/a.xml", &voc)]), "Annotations/a.xml", None),
        (tree(&["a.png"], &[("a.json", &labelme)]), "a.json", None),
        (
            tree(&["train/a.png"], &[("train/_annotations.coco.json", &coco)]),
            "train/_annotations.coco.json",
            Some("train"),
        ),
    ];
    let mut dice = Dice::new(7);
    for (tree, file, split) in trees {
        let whole = std::fs::read(tree.path(file)).unwrap();
        let options = ListOptions { split: split.map(str::to_owned), ..ListOptions::default() };
        let mut n_errors = 0;
        for _ in 0..300 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut dice);
            tree.write(file, &bytes);
            n_errors += u32::from(list_all(tree.root(), &options).is_err());
        }
        assert!(n_errors > 0, "{file}");
    }
}

#[test]
fn a_file_of_boxes_that_is_not_regular_is_refused() {
    let tree = yolo("0 0.5 0.5 0.1 0.1");
    std::fs::create_dir_all(tree.path("labels/train/b.txt")).unwrap();
    let found = error(&tree);
    assert!(found.contains("labels/train/b.txt"), "{found}");
}
