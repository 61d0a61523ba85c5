//! `packds head`, and `--class` of other commands.

#![cfg(test)]

use std::fs;

use packds_format::{DType, Field, FieldKind, Role};
use serde_json::json;

use crate::support::{Folder, SamplePack};

#[test]
fn the_first_samples_are_a_table() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let expected = "\
sample  label  class     path                image
0       0      cat       cat/img-0.png       6x4
1       1      dog       dog/img-1.png       6x4
2       2      sea lion  sea lion/img-2.png  6x4
";
    assert_eq!(folder.packds(&["head", "out.pack", "-n", "3"]).ok(), expected);
    assert_eq!(folder.packds(&["head", "out.pack", "--number", "99"]).ok().lines().count(), 11);
}

#[test]
fn small_fields_are_shown_and_large_ones_are_not() {
    let folder = Folder::new();
    let mut pack = SamplePack { n_samples: 2, ..SamplePack::default() };
    pack.body.insert(0, Field::variable("caption", FieldKind::String));
    pack.body.push(Field::tensor("mask", DType::U8, &[4, 6]).with_role(Role::Mask));
    pack.body.push(Field::tensor("box", DType::U8, &[4]));
    pack.body.push(Field::tensor("embedding", DType::F32, &[300]));
    pack.body.push(Field::variable("blob", FieldKind::Bytes));
    pack.write(&folder, "out.pack");
    let expected = "\
sample  label  class  path           image  mask  caption  box        blob
0       0      cat    cat/img-0.png  6x4    6x4   [0]      0,7,14,21  3 B
";
    assert_eq!(folder.packds(&["head", "out.pack", "-n", "1"]).ok(), expected);
    let document = folder.packds(&["head", "out.pack", "-n", "1", "--json"]).json();
    let sample = json!({
        "sample": 0,
        "label": 0,
        "class": "cat",
        "path": "cat/img-0.png",
        "fields": {
            "image": { "width": 6, "height": 4 },
            "mask": { "width": 6, "height": 4 },
            "caption": "[0]",
            "box": [0, 7, 14, 21],
            "blob": { "bytes": 3 },
        },
    });
    assert_eq!(document, json!({ "path": "out.pack", "n_samples": 2, "samples": [sample], "bad_samples": [] }));
}

#[test]
fn a_class_is_chosen_by_its_name_or_its_id() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    for class in ["dog", "1"] {
        let document = folder.packds(&["head", "out.pack", "--class", class, "--json"]).json();
        let samples: Vec<_> = document["samples"].as_array().unwrap().iter().map(|s| s["sample"].clone()).collect();
        assert_eq!(samples, [1, 4, 7], "{class}");
        let args = ["show", "out.pack", "--class", class, "-o", "dogs.png", "--force", "--json"];
        assert_eq!(folder.packds(&args).json()["samples"], json!([1, 4, 7]));
    }
    for command in [&["head"][..], &["show", "-o", "x.png"]] {
        let ran = folder.packds(&[command, &["out.pack", "--class", "cow"]].concat());
        let expected = "packds: error: out.pack: no class `cow`\n\nhint: the classes are cat, dog, sea lion\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    }
    assert_eq!(folder.packds(&["head", "out.pack", "--class", "3"]).code, 2);
}

#[test]
fn samples_are_chosen_by_a_condition() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let condition = "label = 'dog' and path != 'dog/img-4.png'";
    let chosen = ["--where", condition];
    let with = |command: &[&str]| folder.packds(&[command, &chosen].concat());
    let document = with(&["head", "out.pack", "--json"]).json();
    let samples: Vec<_> = document["samples"].as_array().unwrap().iter().map(|s| s["sample"].clone()).collect();
    assert_eq!(samples, [1, 7]);
    assert_eq!(with(&["show", "out.pack", "-o", "dogs.png", "--json"]).json()["samples"], json!([1, 7]));
    assert_eq!(
        with(&["show", "out.pack", "-o", "dog.png", "--json", "--samples", "8,7"]).json()["samples"],
        json!([7])
    );
    assert_eq!(with(&["extract", "out.pack", "dogs", "--json"]).json()["n_samples"], 2);
    assert_eq!(with(&["labels", "out.pack"]).ok(), "1\t1\tdog\tdog/img-1.png\n7\t1\tdog\tdog/img-7.png\n");
    let document = with(&["labels", "out.pack", "--json"]).json();
    assert_eq!((&document["samples"], &document["labels"]), (&json!([1, 7]), &json!([1, 1])));
    assert_eq!(document["paths"], json!(["dog/img-1.png", "dog/img-7.png"]));
    assert_eq!(folder.packds(&["labels", "out.pack", "--json"]).json()["samples"], json!(null));
}

#[test]
fn a_condition_that_cannot_be_used_is_refused() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    let refused = |condition: &str| {
        let ran = folder.packds(&["head", "out.pack", "--where", condition]);
        assert_eq!(ran.code, 2, "{ran:?}");
        ran.stderr
    };
    assert_eq!(
        refused("label ="),
        "packds: error: out.pack: condition: expected a number, or a string in single quotes at character 8, found the end; \
         for example: label = 'cat' and source_width >= 512\n"
    );
    assert_eq!(
        refused("label = 'cow'"),
        "packds: error: out.pack: condition: no class `cow` in column `label`; the classes include cat, dog, sea lion\n"
    );
    assert_eq!(
        refused("lable = 1"),
        "packds: error: out.pack: condition: no column `lable`; the columns are label, sample_crc32c, path, sample\n"
    );
    let none = folder.packds(&["show", "out.pack", "-o", "x.png", "--where", "sample > 1000"]);
    assert_eq!((none.code, none.stderr.as_str()), (2, "packds: error: out.pack: no sample meets these options\n"));
}

#[test]
fn damaged_samples_are_named_and_the_others_listed() {
    let folder = Folder::new();
    let mut pack = SamplePack { n_samples: 8, ..SamplePack::default() };
    pack.body.push(Field::variable("caption", FieldKind::String));
    let whole = pack.write(&folder, "out.pack");
    let offset = whole.chunk_entry(1).unwrap().offset;
    folder.flip("out.pack", offset);
    let ran = folder.packds(&["head", "out.pack"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("packds: error: out.pack: chunk 1 (samples 4..8): checksum mismatch"), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stdout.contains("\n3       0      cat       cat/img-3.png       6x4    [3]\n"), "{ran:?}");
    assert!(ran.stdout.contains("damaged\n"), "{ran:?}");
}

#[test]
fn a_sheet_is_a_png_or_a_jpeg() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    for (name, start) in [("a.png", &b"\x89PNG"[..]), ("a.jpg", b"\xff\xd8\xff"), ("a.JPEG", b"\xff\xd8\xff")] {
        folder.packds(&["show", "out.pack", "-o", name]).ok();
        assert!(fs::read(folder.path(name)).unwrap().starts_with(start), "{name}");
    }
    for name in ["a.webp", "a.txt", "a"] {
        let ran = folder.packds(&["show", "out.pack", "-o", name]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("expected a name that ends in .png or .jpg"), "{ran:?}");
        assert!(!folder.path(name).exists());
    }
}
