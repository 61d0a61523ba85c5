//! Boxes of COCO, from the file to packs, exports, merged packs and planned sets.

#![cfg(test)]

use std::fs;

use packds_format::{Pack, Role};
use serde_json::{Value, json};

use crate::support::{Folder, fixture};

/// A COCO file with boxes for the first images of the fixtures. `categories` have the ids 1, 2 and so on.
fn coco(folder: &Folder, name: &str, categories: [&str; 2]) {
    let mut files: Vec<String> = Vec::new();
    fs::create_dir_all(folder.path("data/images")).unwrap();
    let source = fixture("images/folder");
    for class in fs::read_dir(&source).unwrap().map(Result::unwrap) {
        for file in fs::read_dir(class.path()).unwrap() {
            let file = file.unwrap();
            let own = format!("{}-{}", class.file_name().display(), file.file_name().display());
            fs::copy(file.path(), folder.path("data/images").join(&own)).unwrap();
            files.push(own);
        }
    }
    files.sort();
    let images: Vec<Value> =
        files.iter().zip(0..).map(|(file, id): (_, i32)| json!({ "id": id, "file_name": file })).collect();
    let boxes = (0..images.len()).flat_map(|image| (0..image % 4).map(move |n| (image, n)));
    let annotations: Vec<Value> = boxes
        .map(|(image, n)| json!({ "image_id": image, "category_id": 1 + n % 2, "bbox": [n, image, 5.5, 7.25] }))
        .collect();
    let named: Vec<Value> =
        categories.iter().zip(1..).map(|(name, id): (_, i32)| json!({ "id": id, "name": name })).collect();
    let text = json!({ "images": images, "annotations": annotations, "categories": named }).to_string();
    fs::write(folder.path("data").join(name), text).unwrap();
}

/// The path of each sample, its boxes, and the names of their classes.
fn boxes(folder: &Folder, pack: &str) -> Vec<(String, Vec<u8>, Vec<String>)> {
    let pack = Pack::open(fs::read(folder.path(pack)).unwrap()).unwrap();
    let (boxes, _) = pack.schema().by_role(Role::Boxes, None).unwrap();
    let (labels, field) = pack.schema().by_role(Role::BoxLabels, None).unwrap();
    let classes = pack.classes().unwrap().into_iter().find(|classes| classes.field == field.name).unwrap();
    let name = |id: &[u8; 8]| classes.names[usize::try_from(i64::from_le_bytes(*id)).unwrap()].clone();
    let mut samples: Vec<_> = (0..pack.n_samples())
        .map(|sample| {
            let path = String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap();
            let ids = pack.item(labels, sample).unwrap();
            let names = ids.as_chunks::<8>().0.iter().map(name).collect();
            (path, pack.item(boxes, sample).unwrap().into_owned(), names)
        })
        .collect();
    samples.sort();
    samples
}

#[test]
fn boxes_survive_an_export_and_its_conversion() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    folder.packds(&["convert", "data/a.json", "a.pack", "--mode", "encoded"]).ok();
    let before = boxes(&folder, "a.pack");
    assert_eq!(before[5].2, ["cat"]);
    let sides = [0_f32, 5.0, 5.5, 12.25].map(f32::to_le_bytes).concat();
    assert_eq!(before[5].1, sides);
    for target in ["out.tar", "out.parquet", "out"] {
        folder.packds(&["export", "a.pack", target]).ok();
        let again = format!("{target}.pack");
        folder.packds(&["convert", target, &again, "--mode", "encoded"]).ok();
        let after = boxes(&folder, &again);
        let plain = |all: &[(String, Vec<u8>, Vec<String>)]| -> Vec<_> {
            all.iter().map(|(_, boxes, names)| (boxes.clone(), names.clone())).collect()
        };
        let (mut one, mut two) = (plain(&before), plain(&after));
        one.sort();
        two.sort();
        assert_eq!(one, two, "{target}");
    }
}

#[test]
fn classes_of_boxes_are_joined_by_name() {
    for codec in ["none", "zstd:1"] {
        let folder = Folder::new();
        coco(&folder, "a.json", ["cat", "dog"]);
        coco(&folder, "b.json", ["dog", "owl"]);
        for name in ["a", "b"] {
            let (source, target) = (format!("data/{name}.json"), format!("{name}.pack"));
            folder.packds(&["convert", &source, &target, "--mode", "encoded", "--codec", codec]).ok();
        }
        folder.packds(&["merge", "a.pack", "b.pack", "ab.pack"]).ok();
        let mut expected = boxes(&folder, "a.pack");
        expected.extend(boxes(&folder, "b.pack"));
        expected.sort();
        assert_eq!(boxes(&folder, "ab.pack"), expected);
        let info = folder.packds(&["info", "ab.pack", "--json"]).json();
        let classes = &info["classes"][0];
        assert_eq!((&classes["names"], &classes["field"]), (&json!(["cat", "dog", "owl"]), &json!("box_labels")));
        let counts: u64 = classes["counts"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
        let n: usize = expected.iter().map(|(_, _, names)| names.len()).sum();
        assert_eq!(counts, u64::try_from(n).unwrap());
    }
}

#[test]
fn a_plan_of_boxes_builds_the_shards_of_a_conversion() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    let args = ["--mode", "encoded", "--chunk", "2"];
    folder.packds(&[&["convert", "data/a.json", "a.packs", "--shards", "2"][..], &args].concat()).ok();
    folder.packds(&[&["plan", "data/a.json", "-o", "plan", "--shards", "2"][..], &args].concat()).ok();
    for shard in ["0", "1"] {
        folder.packds(&["build", "plan", "--shard", shard, "-o", "b.packs"]).ok();
    }
    folder.packds(&["commit", "plan", "-o", "b.packs"]).ok();
    let files = |set: &str| -> Vec<_> {
        let entries = fs::read_dir(folder.path(set)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap())).collect();
        files.sort();
        files
    };
    assert!(files("a.packs") == files("b.packs"));
}

#[test]
fn samples_show_their_boxes() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    folder.packds(&["convert", "data/a.json", "a.pack", "--mode", "encoded", "--keep-order"]).ok();
    let head = folder.packds(&["head", "a.pack", "--json"]).json();
    let first = &head["samples"][1]["fields"];
    assert_eq!((&first["boxes"], &first["box_labels"]), (&json!([[0, 1, 5.5, 8.25]]), &json!([0])));
    folder.packds(&["show", "a.pack", "-o", "sheet.png"]).ok();
    assert!(folder.path("sheet.png").exists());
}
