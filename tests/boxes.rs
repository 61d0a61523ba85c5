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

/// Runs a command that may warn.
fn run(folder: &Folder, args: &[&str]) {
    let ran = folder.packds(args);
    assert_eq!(ran.code, 0, "{ran:?}");
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
    run(&folder, &["convert", "data/a.json", "a.pack", "--mode", "encoded"]);
    let before = boxes(&folder, "a.pack");
    assert_eq!(before[5].2, ["cat"]);
    let sides = [0_f32, 5.0, 5.5, 12.25].map(f32::to_le_bytes).concat();
    assert_eq!(before[5].1, sides);
    for (target, to) in [
        ("out.tar", "webdataset"),
        ("out.parquet", "parquet"),
        ("out.arrow", "arrow"),
        ("out.h5", "hdf5"),
        ("mds", "mds"),
        ("litdata", "litdata"),
    ] {
        run(&folder, &["export", "a.pack", target, "--to", to]);
        let again = format!("{target}.pack");
        run(&folder, &["convert", target, &again, "--mode", "encoded"]);
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

/// What each sample has in the fields of boxes, and its path.
fn objects(folder: &Folder, pack: &str) -> Vec<(String, Vec<Vec<u8>>)> {
    let pack = Pack::open(fs::read(folder.path(pack)).unwrap()).unwrap();
    let names = ["image", "id", "boxes", "box_labels", "box_area", "box_crowd"];
    let fields = names.map(|name| pack.schema().index_of(name).unwrap());
    let item = |field: usize, sample| pack.item(field, sample).unwrap().into_owned();
    let sample = |sample| {
        let path = String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap();
        (path, fields.map(|field| item(field, sample)).to_vec())
    };
    (0..pack.n_samples()).map(sample).collect()
}

#[test]
fn a_coco_file_is_exported_and_read_back() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    let encoded = ["--mode", "encoded", "--keep-order"];
    run(&folder, &[&["convert", "data/a.json", "first.pack"][..], &encoded].concat());
    run(&folder, &["export", "first.pack", "first", "--to", "coco"]);
    run(&folder, &[&["convert", "first/annotations.json", "a.pack"][..], &encoded].concat());
    let report = folder.packds(&["export", "a.pack", "out", "--to", "coco", "--json"]).json();
    assert_eq!(
        report["lost"],
        json!([
            "field `width`, because COCO has its own value with that name",
            "field `height`, because COCO has its own value with that name"
        ])
    );
    let again =
        folder.packds(&[&["convert", "out/annotations.json", "b.pack", "--json"][..], &encoded].concat()).json();
    let warnings = again["warnings"].to_string();
    assert!(!warnings.contains("file_name"), "{warnings}");
    assert_eq!(objects(&folder, "a.pack"), objects(&folder, "b.pack"));
    let whole = folder.packds(&[&["convert", "out", "c.pack", "--json"][..], &encoded].concat()).json();
    let warnings = whole["warnings"].to_string();
    assert!(warnings.contains("read the images in 'annotations.json'"), "{warnings}");
    assert_eq!(objects(&folder, "a.pack"), objects(&folder, "c.pack"));
    // Exported files have the usual extensions.
    let without_paths = |pack: &str| boxes(&folder, pack).into_iter().map(|own| (own.1, own.2)).collect::<Vec<_>>();
    assert_eq!(without_paths("first.pack"), without_paths("b.pack"));
    // Everything but the metadata of the packs is the same.
    for name in ["annotations.json", "images/cat-a.jpg"] {
        let [one, two] = ["first", "out"].map(|out| fs::read(folder.path(out).join(name)).unwrap());
        assert!(one == two, "{name}");
    }
}

#[test]
fn lines_of_yolo_are_the_boxes_inside_the_images() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    run(&folder, &["convert", "data/a.json", "a.pack", "--mode", "encoded", "--keep-order"]);
    run(&folder, &["export", "a.pack", "out", "--to", "yolo"]);
    let pack = Pack::open(fs::read(folder.path("a.pack")).unwrap()).unwrap();
    let (mut n, names) = (0, boxes(&folder, "a.pack"));
    for sample in 0..pack.n_samples() {
        let path = String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap();
        let (_, bytes, classes) = names.iter().find(|own| own.0 == path).unwrap();
        let (height, width, _) = pack.item_shape("image", sample).unwrap().unwrap();
        let [width, height] = [width, height].map(|side| f32::from(u16::try_from(side).unwrap()));
        let stem = path.strip_prefix("images/").unwrap().rsplit_once('.').unwrap().0;
        let is_there = ["jpg", "png"].map(|end| folder.path(&format!("out/images/{stem}.{end}")).is_file());
        assert!(is_there.contains(&true), "{path}");
        let text = fs::read_to_string(folder.path(&format!("out/labels/{stem}.txt"))).unwrap();
        for (line, (sides, class)) in text.lines().zip(bytes.as_chunks::<16>().0.iter().zip(classes)) {
            let numbers: Vec<f32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let [x, y, w, h] = [1, 2, 3, 4].map(|place| numbers[place]);
            let found = [(x - w / 2.0) * width, (y - h / 2.0) * height, (x + w / 2.0) * width, (y + h / 2.0) * height];
            let sides: Vec<f32> = sides.as_chunks::<4>().0.iter().map(|side| f32::from_le_bytes(*side)).collect();
            let close = |(one, two): (&f32, &f32)| (one - two).abs() < 1e-3;
            assert!(found.iter().zip(&sides).all(close), "{path}: {found:?} {sides:?}");
            assert_eq!(line.starts_with("0 "), class == "cat", "{line}");
            n += 1;
        }
        assert_eq!(text.lines().count(), classes.len(), "{path}");
    }
    assert_eq!(n, 18);
    let data = fs::read_to_string(folder.path("out/data.yaml")).unwrap();
    assert!(data.ends_with("names:\n  0: \"cat\"\n  1: \"dog\"\n"), "{data}");
    let ran = folder.packds(&["convert", "out", "back.pack", "--from", "yolo"]);
    assert!(ran.code == 2 && ran.stderr.contains("there is no reader for yolo alone"), "{ran:?}");
}

#[test]
fn images_of_another_size_than_the_file_says_are_told() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    let path = folder.path("data/a.json");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let images = text["images"].as_array_mut().unwrap();
    for image in &mut *images {
        (image["width"], image["height"]) = (json!(999), json!(500));
    }
    let n = images.len();
    fs::write(&path, text.to_string()).unwrap();
    let ran = folder.packds(&["convert", "data/a.json", "a.pack", "--mode", "encoded"]);
    let told = format!("{n} images with another width or height than the source says (first such image: ");
    assert!(ran.stderr.contains(&told), "{ran:?}");
}

#[test]
fn boxes_take_their_classes_along_when_they_are_dropped() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    run(&folder, &["convert", "data/a.json", "a.pack", "--mode", "encoded"]);
    let ran = folder.packds(&["drop-field", "a.pack", "b.pack", "boxes"]);
    assert!(
        ran.code == 0 && ran.stderr.contains("left out with the fields that they describe: `box_labels`"),
        "{ran:?}"
    );
    let pack = Pack::open(fs::read(folder.path("b.pack")).unwrap()).unwrap();
    assert!(pack.schema().fields().iter().all(|field| !field.is_of_boxes()));
    run(&folder, &["drop-field", "a.pack", "c.pack", "box_labels"]);
    let pack = Pack::open(fs::read(folder.path("c.pack")).unwrap()).unwrap();
    assert!(pack.schema().by_role(Role::Boxes, None).is_some());
}

#[test]
fn boxes_are_resized_with_their_images() {
    let folder = Folder::new();
    coco(&folder, "a.json", ["cat", "dog"]);
    run(&folder, &["convert", "data/a.json", "a.pack", "--mode", "encoded"]);
    let sides =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks::<4>().0.iter().map(|side| f32::from_le_bytes(*side)).collect() };
    for more in [
        &["--resize", "20x50"][..],
        &["--resize", "short:40"],
        &["--mode", "encoded", "--quality", "90", "--resize", "max:30"],
    ] {
        run(&folder, &[&["convert", "data/a.json", "b.pack", "--force"], more].concat());
        let resized = boxes(&folder, "b.pack");
        let pack = Pack::open(fs::read(folder.path("b.pack")).unwrap()).unwrap();
        for sample in 0..pack.n_samples() {
            let path = String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap();
            let number = |name: &str| {
                let field = pack.schema().index_of(name).unwrap();
                u32::from_le_bytes(pack.item(field, sample).unwrap().as_ref().try_into().unwrap())
            };
            let source = [number("source_width"), number("source_height")];
            let (height, width, _) = pack.item_shape("image", sample).unwrap().map_or((50, 20, 3), |shape| shape);
            let factors = [width as f32 / source[0] as f32, height as f32 / source[1] as f32];
            let of =
                |all: &[(String, Vec<u8>, Vec<String>)]| sides(&all.iter().find(|(name, ..)| *name == path).unwrap().1);
            let (found, before) = (of(&resized), of(&boxes(&folder, "a.pack")));
            assert_eq!(found.len(), before.len());
            for (place, (found, before)) in found.iter().zip(before).enumerate() {
                assert!((found - before * factors[place % 2]).abs() < 1e-3, "{more:?} {path}");
            }
        }
    }
    let refused = folder.packds(&["convert", "data/a.json", "x.pack", "--orientation", "apply"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("stay as they are when images are cropped or turned"),
        "{refused:?}"
    );
}

#[test]
fn classes_of_boxes_are_joined_by_name() {
    for codec in ["none", "zstd:1"] {
        let folder = Folder::new();
        coco(&folder, "a.json", ["cat", "dog"]);
        coco(&folder, "b.json", ["dog", "owl"]);
        for name in ["a", "b"] {
            let (source, target) = (format!("data/{name}.json"), format!("{name}.pack"));
            run(&folder, &["convert", &source, &target, "--mode", "encoded", "--codec", codec]);
        }
        run(&folder, &["merge", "a.pack", "b.pack", "ab.pack"]);
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
    run(&folder, &[&["convert", "data/a.json", "a.packs", "--shards", "2"][..], &args].concat());
    run(&folder, &[&["plan", "data/a.json", "-o", "plan", "--shards", "2"][..], &args].concat());
    for shard in ["0", "1"] {
        run(&folder, &["build", "plan", "--shard", shard, "-o", "b.packs"]);
    }
    run(&folder, &["commit", "plan", "-o", "b.packs"]);
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
    run(&folder, &["convert", "data/a.json", "a.pack", "--mode", "encoded", "--keep-order"]);
    let head = folder.packds(&["head", "a.pack", "--json"]).json();
    let first = &head["samples"][1]["fields"];
    assert_eq!((&first["boxes"], &first["box_labels"]), (&json!([[0, 1, 5.5, 8.25]]), &json!([0])));
    run(&folder, &["show", "a.pack", "-o", "sheet.png"]);
    assert!(folder.path("sheet.png").exists());
}

#[test]
fn samples_show_their_polygons_and_keypoints() {
    let folder = Folder::new();
    coco(&folder, "plain.json", ["cat", "dog"]);
    let text = fs::read_to_string(folder.path("data/plain.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    for annotation in file["annotations"].as_array_mut().unwrap() {
        let [x, y] = [0, 1].map(|side| annotation["bbox"][side].as_f64().unwrap());
        annotation["segmentation"] = json!([[x, y, x + 5.0, y, x + 5.0, y + 7.0]]);
        annotation["keypoints"] = json!([x + 1.0, y + 1.0, 2, x + 4.0, y + 5.0, 1]);
    }
    for category in file["categories"].as_array_mut().unwrap() {
        category["keypoints"] = json!(["left_ear", "right_ear"]);
        category["skeleton"] = json!([[1, 2]]);
    }
    fs::write(folder.path("data/full.json"), file.to_string()).unwrap();
    let sheet = |name: &str| {
        let (source, pack, sheet) = (format!("data/{name}.json"), format!("{name}.pack"), format!("{name}.png"));
        run(&folder, &["convert", &source, &pack, "--mode", "encoded", "--keep-order"]);
        run(&folder, &["show", &pack, "-o", &sheet]);
        fs::read(folder.path(&sheet)).unwrap()
    };
    assert!(sheet("plain") != sheet("full"));
    let pack = Pack::open(fs::read(folder.path("full.pack")).unwrap()).unwrap();
    assert!(
        pack.schema().by_role(Role::Polygons, None).is_some() && pack.schema().by_role(Role::Keypoints, None).is_some()
    );
    // Without boxes, nothing of them is left.
    run(&folder, &["drop-field", "full.pack", "bare.pack", "boxes"]);
    let bare = Pack::open(fs::read(folder.path("bare.pack")).unwrap()).unwrap();
    assert!(bare.schema().fields().iter().all(|field| !field.concerns_boxes()));
}
