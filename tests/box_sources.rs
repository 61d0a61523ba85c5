//! Folders with boxes in separate files (YOLO, Pascal VOC, LabelMe, COCO), from the folder to packs.

#![cfg(test)]

use std::fs;

use packds_pixels::encode_png;
use serde_json::{Value, json};

use crate::support::Folder;

/// Writes images of 20 x 10 pixels, and texts.
fn write(folder: &Folder, images: &[&str], texts: &[(&str, &str)]) {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    for (shade, name) in (0..).zip(images) {
        file(name, &encode_png(20, 10, 3, &[shade; 600]).unwrap());
    }
    texts.iter().for_each(|(name, text)| file(name, text.as_bytes()));
}

/// Converts `source`, and returns what the command says. Each split gets its own pack.
fn convert(folder: &Folder, source: &str, options: &[&str]) -> String {
    let args = [&["convert", source, "out.pack", "--mode", "encoded", "--keep-order"][..], options].concat();
    let ran = folder.packds(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stderr
}

/// The paths and fields of all samples.
fn samples(folder: &Folder, pack: &str) -> Vec<(Value, Value)> {
    let head = folder.packds(&["head", pack, "--json"]).json();
    let samples = head["samples"].as_array().unwrap().iter();
    samples.map(|sample| (sample["path"].clone(), sample["fields"].clone())).collect()
}

fn classes(folder: &Folder, pack: &str) -> Value {
    folder.packds(&["info", pack, "--json"]).json()["classes"][0]["names"].clone()
}

const YAML: &str = "train: ../train/images\nval: ../valid/images\nnc: 2\nnames: ['cat', 'dog']\n";

fn yolo(folder: &Folder) {
    let images = ["y/train/images/a.png", "y/train/images/b.png", "y/valid/images/c.png"];
    let texts = [("y/data.yaml", YAML), ("y/train/labels/a.txt", "1 0.5 0.5 0.2 0.4\n"), ("y/valid/labels/c.txt", "")];
    write(folder, &images, &texts);
}

#[test]
fn boxes_of_yolo_are_pixels_of_the_stored_image() {
    let folder = Folder::new();
    yolo(&folder);
    let told = convert(&folder, "y", &[]);
    assert!(told.contains("found the splits 'train', 'val'"), "{told}");
    assert!(told.contains("computed from parts of the width and height"), "{told}");
    let train = samples(&folder, "out.train.pack");
    assert_eq!((&train[0].1["boxes"], &train[0].1["box_labels"]), (&json!([[8, 3, 12, 7]]), &json!([1])));
    assert_eq!((&train[1].0, &train[1].1["boxes"]), (&json!("train/images/b.png"), &json!([])));
    assert_eq!(classes(&folder, "out.val.pack"), json!(["cat", "dog"]));
    folder.packds(&["show", "out.train.pack", "-o", "sheet.png"]).ok();
    let refused = folder.packds(&["convert", "y", "x.pack", "--split", "train", "--crop", "center:4x4"]);
    assert!(refused.stderr.contains("the source has boxes, which stay as they are"), "{refused:?}");
    fs::write(folder.path("y/train/labels/a.txt"), "0 0.5 0.5 0.2 0.4\n3 0.5 0.5 0.2 0.4\n").unwrap();
    let refused = folder.packds(&["convert", "y", "x.pack"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("train/labels/a.txt: line 2: the class 3 is not one of the 2 classes"),
        "{refused:?}"
    );
}

#[test]
fn a_plan_of_a_folder_of_boxes_builds_the_shards_of_a_conversion() {
    let folder = Folder::new();
    yolo(&folder);
    let args = ["--split", "train", "--mode", "encoded", "--chunk", "1", "--shards", "2"];
    let ran = folder.packds(&[&["convert", "y", "a.packs"][..], &args].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = folder.packds(&[&["plan", "y", "-o", "plan"][..], &args].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    for shard in ["0", "1"] {
        let ran = folder.packds(&["build", "plan", "--shard", shard, "-o", "b.packs"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(folder.packds(&["commit", "plan", "-o", "b.packs"]).code, 0);
    let files = |set: &str| -> Vec<_> {
        let entries = fs::read_dir(folder.path(set)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap())).collect();
        files.sort();
        files
    };
    assert!(files("a.packs") == files("b.packs"));
}

const XML: &str = "<annotation><size><width>20</width><height>10</height></size>
    <object><name>dog</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>
    </annotation>";

#[test]
fn boxes_of_pascal_voc_are_read_without_its_masks() {
    let folder = Folder::new();
    let texts = [
        ("VOCdevkit/VOC2012/Annotations/a.xml", XML),
        ("VOCdevkit/VOC2012/ImageSets/Main/train.txt", "a\n"),
        ("VOCdevkit/VOC2012/ImageSets/Main/val.txt", "b\n"),
    ];
    write(&folder, &["VOCdevkit/VOC2012/JPEGImages/a.png", "VOCdevkit/VOC2012/JPEGImages/b.png"], &texts);
    let told = convert(&folder, "VOCdevkit", &[]);
    assert!(told.contains("which Pascal VOC counts from 1"), "{told}");
    let expected = json!({ "boxes": [[1, 2, 9, 8]], "box_labels": [0], "box_difficult": [1] });
    let train = samples(&folder, "out.train.pack");
    for name in ["boxes", "box_labels", "box_difficult"] {
        assert_eq!(train[0].1[name], expected[name], "{train:?}");
    }
    assert_eq!(classes(&folder, "out.val.pack"), json!(["dog"]));
    // Masks come first.
    write(&folder, &["VOCdevkit/VOC2012/SegmentationClass/a.png"], &[]);
    let told = convert(&folder, "VOCdevkit", &["--force"]);
    assert!(told.contains("because there are masks; --leave-out mask reads the boxes of all images instead"), "{told}");
    let told = convert(&folder, "VOCdevkit", &["--force", "--leave-out", "mask"]);
    assert!(told.contains("their classes are the names in the files"), "{told}");
    assert_eq!(samples(&folder, "out.train.pack")[0].1["boxes"], expected["boxes"]);
}

#[test]
fn shapes_of_labelme_are_boxes() {
    let folder = Folder::new();
    let shape = json!({ "label": "cat", "points": [[1, 2], [9.5, 3], [5, 8]], "shape_type": "polygon", "flags": {} });
    let text = json!({ "version": "5.4.1", "flags": {}, "shapes": [shape], "imagePath": "a.png", "imageData": null, "imageHeight": 10, "imageWidth": 20 });
    write(&folder, &["l/a.png", "l/b.png"], &[("l/a.json", &text.to_string())]);
    let told = convert(&folder, "l", &[]);
    assert!(told.contains("1 polygon packed in 'polygons', with the box around each"), "{told}");
    assert_eq!(samples(&folder, "out.pack")[0].1["boxes"], json!([[1, 2, 9.5, 8]]));
    assert_eq!(classes(&folder, "out.pack"), json!(["cat"]));
}

#[test]
fn a_folder_of_coco_has_a_split_for_each_file() {
    let folder = Folder::new();
    let coco = |image: &str| {
        json!({
            "images": [{ "id": 1, "file_name": image }],
            "annotations": [{ "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4] }],
            "categories": [{ "id": 3, "name": "cat" }],
        })
        .to_string()
    };
    let [one, two] = ["a.png", "b.png"].map(coco);
    let files = ["coco/annotations/instances_train2017.json", "coco/annotations/instances_val2017.json"];
    let captions = ("coco/annotations/captions_val2017.json", "{}");
    write(&folder, &["coco/train2017/a.png", "coco/val2017/b.png"], &[(files[0], &one), (files[1], &two), captions]);
    let told = convert(&folder, "coco", &["--split", "val2017"]);
    let expected = "read the boxes in 'annotations/instances_val2017.json', and not 1 other JSON file next to it";
    assert!(told.contains(expected), "{told}");
    assert_eq!(samples(&folder, "out.pack")[0].1["boxes"], json!([[1, 2, 4, 6]]));
    let told = convert(&folder, "coco", &["--force"]);
    assert!(told.contains("found the splits 'train2017', 'val2017'"), "{told}");
    let missing = folder.packds(&["convert", "coco", "x.pack", "--split", "test2017"]);
    assert!(missing.stderr.contains("'train2017'"), "{missing:?}");
    write(
        &folder,
        &["r/train/a.png", "r/valid/b.png"],
        &[("r/train/_annotations.coco.json", &one), ("r/valid/_annotations.coco.json", &two)],
    );
    convert(&folder, "r", &["--force"]);
    assert_eq!(samples(&folder, "out.valid.pack")[0].1["boxes"], json!([[1, 2, 4, 6]]));
}

#[test]
fn data_sets_of_several_years_next_to_each_other_are_refused() {
    let folder = Folder::new();
    let texts = [("kit/VOC2007/Annotations/a.xml", XML), ("kit/VOC2012/Annotations/a.xml", XML)];
    write(&folder, &["kit/VOC2007/JPEGImages/a.png", "kit/VOC2012/JPEGImages/a.png"], &texts);
    let refused = folder.packds(&["convert", "kit", "x.pack"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("'VOC2007' and 'VOC2012' are data sets with boxes of their own"), "{refused:?}");
    assert!(refused.stderr.contains("packds merge"), "{refused:?}");
}
