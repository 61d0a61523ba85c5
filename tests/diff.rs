//! `packds diff`: how two packs differ.

#![cfg(test)]

use std::fs;

use packds_format::{Field, FieldKind};
use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, fixture};

/// Runs `diff --json`, which must find a difference unless the packs are equal.
fn diff(folder: &Folder, args: &[&str]) -> Value {
    let ran = folder.packds(&[&["diff", "--json"], args].concat());
    let found = ran.json();
    assert_eq!(ran.code, i32::from(found["is_equal"] != json!(true)), "{ran:?}");
    assert_eq!(ran.stderr, "", "{ran:?}");
    let n = |key: &str| found[key].as_u64().unwrap();
    let sizes = [0, 1].map(|pack| found["n_samples"][pack].as_u64().unwrap());
    assert_eq!(sizes[0], n("n_equal") + n("n_changed") + n("n_removed"), "{found}");
    assert_eq!(sizes[1], n("n_equal") + n("n_changed") + n("n_added"), "{found}");
    found
}

fn counts(found: &Value) -> [u64; 4] {
    ["n_added", "n_removed", "n_changed", "n_equal"].map(|key| found[key].as_u64().unwrap())
}

fn photos(folder: &Folder) {
    let source = fixture("images/same_size");
    folder.packds(&["convert", source.to_str().unwrap(), "a.pack", "--chunk", "4", "-q"]).ok();
}

#[test]
fn a_pack_equals_itself_its_set_and_its_copies() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "a.pack", "p.pack", "--folds", "2", "-q"]).ok();
    folder.packds(&["append", "s.packs", "p.fold0.pack", "p.fold1.pack", "-q"]).ok();
    folder.packds(&["merge", "s.packs", "m.pack", "--chunk", "7", "-q"]).ok();
    for (one, two) in [("a.pack", "a.pack"), ("s.packs", "m.pack"), ("m.pack", "s.packs@1")] {
        let said = folder.packds(&["diff", one, two]).ok();
        assert_eq!(said, format!("{one} and {two} have the same 20 samples\n"));
        assert_eq!(counts(&diff(&folder, &[one, two])), [0, 0, 0, 20]);
        assert_eq!(folder.packds(&["diff", one, two, "-q"]).ok(), "");
    }
    let found = diff(&folder, &["a.pack", "s.packs"]);
    assert_eq!((counts(&found), &found["same_order"]), ([0, 0, 0, 20], &json!(false)));
    let ran = folder.packds(&["diff", "a.pack", "s.packs"]);
    assert!(
        ran.code == 1 && ran.stdout.contains("order     the samples of both packs are in another order"),
        "{ran:?}"
    );
}

#[test]
fn new_labels_classes_and_samples_are_told_apart() {
    let folder = Folder::new();
    photos(&folder);
    let labels = folder.packds(&["labels", "a.pack"]).ok();
    let rows: Vec<Vec<&str>> = labels.lines().map(|line| line.split('\t').collect()).collect();
    let (path, class) = (rows[3][3], rows[3][2]);
    fs::write(folder.path("t.csv"), format!("path,label\n{path},zebra\n")).unwrap();
    folder.packds(&["relabel", "a.pack", "b.pack", "t.csv", "-q"]);
    folder.packds(&["subset", "b.pack", "c.pack", "--samples", "3-12", "-q"]).ok();
    let found = diff(&folder, &["a.pack", "c.pack", "-n", "2"]);
    assert_eq!(counts(&found), [0, 10, 1, 9]);
    assert_eq!(found["removed"], json!([{"sample": 0, "path": rows[0][3]}, {"sample": 1, "path": rows[1][3]}]));
    let change = json!({"field": "label", "old": class, "new": "zebra", "old_bytes": 4, "new_bytes": 4});
    assert_eq!(found["changed"], json!([{"sample": 3, "new_sample": 0, "path": path, "fields": [change]}]));
    assert_eq!(found["classes"][0]["added"], json!([{"id": 3, "class": "zebra"}]));
    assert_eq!(found["n_changed_by_field"], json!({"label": 1}));
    let back = diff(&folder, &["c.pack", "a.pack", "--number", "0"]);
    assert_eq!((counts(&back), &back["added"], &back["changed"]), ([10, 0, 1, 9], &json!([]), &json!([])));
    assert_eq!((&back["classes"][0]["n_removed"], &back["classes"][0]["removed"]), (&json!(1), &json!([])));
    let said = folder.packds(&["diff", "a.pack", "c.pack", "-n", "1"]).stdout;
    for line in [
        "classes   `label`: 1 added 'zebra' (3)\n".to_owned(),
        "samples   0 added, 10 removed, 1 changed, 9 equal; matched by paths\n".to_owned(),
        format!("- {}\n- and 9 more\n", rows[0][3]),
        format!("~ {path}: `label` is 'zebra', was '{class}'\n"),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    // A class with another name, or with another id, is the same class for its samples.
    let rename = format!("{class}=other");
    folder.packds(&["relabel", "a.pack", "r.pack", "--rename", &rename, "-q"]);
    let renamed = diff(&folder, &["a.pack", "r.pack"]);
    assert_eq!((counts(&renamed), &renamed["classes"][0]["renamed"][0]["new"]), ([0, 0, 0, 20], &json!("other")));
    let classes = |names: [&str; 2]| SamplePack { classes: names.map(str::to_owned).to_vec(), ..SamplePack::default() };
    classes(["cat", "dog"]).write(&folder, "cat.pack");
    classes(["dog", "cat"]).write(&folder, "dog.pack");
    let moved = diff(&folder, &["cat.pack", "dog.pack"]);
    // Labels are compared by name, even if the ids are equal.
    let paths = || Some((0..10_u8).map(|number| vec![b'a' + number]).collect::<Vec<_>>());
    SamplePack { paths: paths(), ..classes(["cat", "dog"]) }.write(&folder, "ids.pack");
    SamplePack { paths: paths(), ..classes(["dog", "cat"]) }.write(&folder, "other.pack");
    let named = diff(&folder, &["ids.pack", "other.pack"]);
    assert_eq!((counts(&named), &named["n_changed_by_field"]), ([0, 0, 10, 0], &json!({"label": 10})));
    // The paths name the classes, so no path is in both packs.
    assert_eq!((counts(&moved), &moved["classes"][0]["n_moved"]), ([10, 10, 0, 0], &json!(2)));
}

#[test]
fn all_fields_that_differ_are_listed() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["drop-field", "a.pack", "b.pack", "source_width", "source_height", "-q"]).ok();
    let found = diff(&folder, &["a.pack", "b.pack"]);
    assert_eq!(
        (&found["fields"]["removed"], counts(&found)),
        (&json!(["source_width", "source_height"]), [0, 0, 0, 20])
    );
    let back = folder.packds(&["diff", "b.pack", "a.pack"]).stdout;
    assert!(back.contains("fields    added `source_width`, `source_height`\n"), "{back}");
    let source = fixture("images/same_size");
    folder.packds(&["convert", source.to_str().unwrap(), "c.pack", "--resize", "16x16", "--codec", "zstd", "-q"]);
    let found = diff(&folder, &["a.pack", "c.pack"]);
    let keys: Vec<&Value> = found["fields"]["changed"].as_array().unwrap().iter().map(|one| &one["key"]).collect();
    assert!(keys.contains(&&json!("shape")) && keys.contains(&&json!("codec")), "{found}");
}

#[test]
fn samples_without_paths_are_matched_by_their_contents() {
    let folder = Folder::new();
    let pack = |n_samples, chunk_samples| SamplePack {
        n_samples,
        chunk_samples,
        paths: Some(Vec::new()),
        ..SamplePack::default()
    };
    pack(10, 4).write(&folder, "a.pack");
    pack(13, 4).write(&folder, "b.pack");
    // Neither needs equal chunks.
    pack(13, 5).write(&folder, "c.pack");
    for name in ["b.pack", "c.pack"] {
        let found = diff(&folder, &["a.pack", name]);
        assert_eq!((counts(&found), &found["matched_by"]), ([3, 0, 0, 10], &json!("content")), "{name}");
        assert_eq!(found["added"][0], json!({"sample": 10, "path": null}));
        let ran = folder.packds(&["diff", name, "a.pack"]);
        assert!(ran.stdout.contains("- sample 10\n") && ran.stdout.contains("matched by contents"), "{ran:?}");
    }
    folder.packds(&["reorder", "b.pack", "d.pack", "-q"]).ok();
    assert_eq!(counts(&diff(&folder, &["b.pack", "d.pack"])), [0, 0, 0, 13]);
    // One pack has paths: the contents still match.
    SamplePack::default().write(&folder, "p.pack");
    assert_eq!(counts(&diff(&folder, &["p.pack", "b.pack"])), [3, 0, 0, 10]);
}

#[test]
fn samples_with_one_path_are_matched_in_order() {
    let folder = Folder::new();
    let paths = |names: &str| Some(names.bytes().map(|byte| vec![byte]).collect::<Vec<_>>());
    let pack = |names: &str| SamplePack {
        n_samples: u32::try_from(names.len()).unwrap(),
        paths: paths(names),
        ..SamplePack::default()
    };
    pack("xxyx").write(&folder, "a.pack");
    pack("xxyxx").write(&folder, "b.pack");
    pack("yxx").write(&folder, "c.pack");
    assert_eq!(counts(&diff(&folder, &["a.pack", "b.pack"])), [1, 0, 0, 4]);
    let found = diff(&folder, &["a.pack", "c.pack"]);
    // Each is matched with a sample of another number, and so of other pixels.
    assert_eq!((counts(&found), &found["same_order"]), ([0, 1, 3, 0], &json!(false)));
    let pairs: Vec<_> = found["changed"].as_array().unwrap().iter().map(|c| (&c["sample"], &c["new_sample"])).collect();
    assert_eq!(pairs, [(&json!(2), &json!(0)), (&json!(0), &json!(1)), (&json!(1), &json!(2))]);
    assert_eq!(found["removed"], json!([{"sample": 3, "path": "x"}]));
}

#[test]
fn bodies_are_compared_with_and_without_checksums() {
    let folder = Folder::new();
    let body = || [SamplePack::default().body, vec![Field::variable("note", FieldKind::String)]].concat();
    let pack =
        |n_samples, paths: Option<Vec<Vec<u8>>>| SamplePack { n_samples, paths, body: body(), ..SamplePack::default() };
    let names = |order: &[u8]| Some(order.iter().map(|name| vec![b'a' + name]).collect::<Vec<_>>());
    pack(6, names(&[0, 1, 2, 3, 4, 5])).write(&folder, "a.pack");
    // Two samples have each other's path.
    pack(6, names(&[0, 1, 3, 2, 4, 5])).write(&folder, "b.pack");
    for name in ["a", "b"] {
        let (from, to) = (format!("{name}.pack"), format!("{name}.bare.pack"));
        folder.packds(&["drop-field", &from, &to, "sample_crc32c", "-q"]).ok();
    }
    for (one, two) in [("a.pack", "b.pack"), ("a.bare.pack", "b.bare.pack")] {
        let found = diff(&folder, &[one, two]);
        assert_eq!(counts(&found), [0, 0, 2, 4], "{found}");
        assert_eq!(found["n_changed_by_field"], json!({"image": 2, "label": 2, "note": 2}));
        let fields = &found["changed"][0]["fields"];
        let note = json!({"field": "note", "old": "[3]", "new": "[2]", "old_bytes": 3, "new_bytes": 3});
        assert!(fields.as_array().unwrap().contains(&note), "{fields}");
        let said = folder.packds(&["diff", one, two]).stdout;
        assert!(said.contains("`image` has other bytes; `note` is '[2]', was '[3]'"), "{said}");
    }
    let found = diff(&folder, &["a.pack", "a.bare.pack"]);
    assert_eq!((counts(&found), &found["fields"]["removed"]), ([0, 0, 0, 6], &json!(["sample_crc32c"])));
    // Bodies whose checksums are equal are not read, so damage there is not found.
    let pack = packds_format::Pack::open(fs::read(folder.path("a.pack")).unwrap()).unwrap();
    let start = pack.chunk_entry(0).unwrap().offset;
    for (one, two) in [("a.pack", "x.pack"), ("a.bare.pack", "x.pack")] {
        fs::copy(folder.path(one), folder.path(two)).unwrap();
        folder.flip(two, start + 200);
        assert_eq!(counts(&diff(&folder, &[one, two])), [0, 0, 0, 6]);
        assert_eq!(folder.packds(&["verify", two, "-q"]).code, 1);
    }
}

#[test]
fn what_cannot_be_compared_ends_with_2() {
    let folder = Folder::new();
    photos(&folder);
    fs::write(folder.path("cut.pack"), &fs::read(folder.path("a.pack")).unwrap()[..3000]).unwrap();
    for (args, says) in [
        (&["a.pack", "no.pack"][..], "no.pack: cannot open"),
        (&["cut.pack", "a.pack"], "cut.pack: file is too short to be a pack"),
        (&["a.pack", "a.pack", "-n", "x"], "'--number <N>': expected a whole number"),
        (&["a.pack"], "required arguments were not provided"),
    ] {
        let ran = folder.packds(&[&["diff"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says) && ran.stdout.is_empty(), "{ran:?}");
    }
    let ran = folder.packds(&["diff", "a.pack", "no.pack", "--json"]);
    assert!(ran.code == 2 && ran.json()["error"]["path"] == json!("no.pack"), "{ran:?}");
    // A damaged column is read, so its damage is found. It is not a difference.
    let pack = packds_format::Pack::open(fs::read(folder.path("a.pack")).unwrap()).unwrap();
    let label = pack.schema().index_of("label").unwrap();
    let bytes = fs::read(folder.path("a.pack")).unwrap();
    let column = pack.column(label).unwrap().to_bytes().into_owned();
    let at = bytes.windows(column.len()).position(|window| window == column).unwrap();
    fs::copy(folder.path("a.pack"), folder.path("bad.pack")).unwrap();
    folder.flip("bad.pack", u64::try_from(at).unwrap());
    let ran = folder.packds(&["diff", "a.pack", "bad.pack"]);
    assert!(ran.code == 2 && ran.stderr.contains("checksum"), "{ran:?}");
}
