//! HDF5 and h5py, in both directions.

use std::fs;

use packds_format::Pack;
use serde_json::{Value, json};

use super::items::{Bytes, assert_same, client, convert, hex, ids, items, refused, sample_pack, written_by};
use super::python;
use crate::support::Folder;

/// The contents of an export, read by h5py.
fn read(folder: &Folder, name: &str) -> Value {
    client("hdf5.py", "read", &folder.path(name))
}

/// The sources that h5py writes, and their contents.
fn sources() -> (Folder, Value) {
    written_by("hdf5.py")
}

#[test]
fn what_h5py_writes_comes_in_and_is_the_same_to_it_when_exported() {
    let (folder, expected) = sources();
    for name in [
        "nested.h5",
        "userblock.h5",
        "gzip.h5",
        "shuffled.h5",
        "lzf.h5",
        "checked.h5",
        "chunked.h5",
        "szip.h5",
        "big_endian.h5",
        "several",
        "files.h5",
        "contiguous.h5",
    ] {
        let pack = convert(&folder, name, &["--mode", "raw"]);
        let pixels = hex(&items(&pack, "image").concat());
        assert_eq!(json!(pixels), expected["pixels"], "{name}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        if !matches!(name, "several" | "files.h5") {
            let names = &pack.classes().unwrap()[0].names;
            assert_eq!(*names, ["cat", "dog", "owl"], "{name}");
        }
        if name == "big_endian.h5" {
            let row = [3, 4, 5].map(i32::to_le_bytes).concat();
            assert_eq!(items(&pack, "wide")[1], row);
        }
    }
    let pack = convert(&folder, "contiguous.h5", &[]);
    assert_eq!(items(&pack, "caption")[10], "picture 10 ä".as_bytes());
    assert_eq!(items(&pack, "fixed")[10], b"f10");
    assert_eq!(items(&pack, "score")[10], 1_f32.to_le_bytes());
    assert_eq!(items(&pack, "half")[0], [0, 0x3c, 0, 0x3c]);
    for args in [&["a.h5"][..], &["b.h5", "--chunk", "3"], &["c.h5", "--codec", "gzip:5"]] {
        let mut command = vec!["export", "out.pack"];
        command.extend(args);
        folder.packds(&command).ok();
        let found = read(&folder, args[0]);
        let is = &found["expected"];
        assert_eq!(found["image"]["value"], is["image"], "{args:?}");
        assert_eq!(found["label"]["value"], is["label"], "{args:?}");
        assert_eq!(found["label"]["classes"], json!(["cat", "dog", "owl"]));
        assert_eq!(found["caption"]["value"][10], "picture 10 ä", "{args:?}");
    }
}

#[test]
fn data_sets_that_cannot_be_read_are_left_out_with_a_warning() {
    let (folder, expected) = sources();
    let args = ["convert", "odd.h5", "odd.pack", "--keep-order", "--json"];
    let ran = folder.packds(&args);
    let warnings = ran.json()["warnings"].to_string();
    for words in [
        "left out the field 'boxes': elements of 8 bytes that are neither numbers",
        "left out the field 'opaque': elements of",
        "left out the field 'elsewhere': its data is in other files",
    ] {
        assert!(warnings.contains(words), "{warnings}");
    }
    let pack = convert(&folder, "odd.h5", &["--leave-out", "boxes", "--leave-out", "version"]);
    assert_eq!(json!(ids(&pack)), expected["labels"]);
    let key = ["convert", "odd.h5", "no.pack", "--label-key", "boxes"];
    refused(&folder, &key, "boxes: elements of 8 bytes");
}

#[test]
fn a_data_set_of_class_names_that_is_used_is_not_said_to_be_ignored() {
    let (folder, _) = sources();
    let args = ["convert", "listed.h5", "listed.pack", "--json"];
    let report = folder.packds(&args).json();
    assert_eq!((&report["warnings"], &report["ignored"]), (&json!([]), &json!(0)));
    let pack = convert(&folder, "listed.h5", &[]);
    let names = &pack.classes().unwrap()[0].names;
    assert_eq!(*names, ["cat", "dog", "owl"]);
}

#[test]
fn splits_are_told_by_names_and_groups() {
    let (folder, expected) = sources();
    for (name, split, first, n) in [
        ("keys.h5", "train", 0, 7),
        ("keys.h5", "test", 7, 4),
        ("groups.h5", "train", 0, 7),
        ("groups.h5", "val", 7, 4),
    ] {
        let pack = convert(&folder, name, &["--split", split]);
        let pixels = expected["pixels"].as_str().unwrap();
        let digits = 2 * 6 * 5 * 3;
        let found = hex(&items(&pack, "image").concat());
        assert_eq!(found, pixels[first * digits..][..n * digits], "{name}");
        let labels = expected["labels"].as_array().unwrap();
        assert_eq!(json!(ids(&pack)), json!(labels[first..][..n]), "{name}");
    }
}

#[test]
fn h5py_reads_what_goes_out_and_it_comes_back() {
    let folder = Folder::new();
    let pack = sample_pack(&folder, "in.pack");
    for args in [
        &["a.h5"][..],
        &["b.h5", "--chunk", "3"],
        &["c.hdf5", "--codec", "gzip"],
        &["d.h5", "--codec", "gzip:9", "--chunk", "6"],
    ] {
        let mut command = vec!["export", "in.pack"];
        command.extend(args);
        let said = folder.packds(&command).ok();
        assert!(said.contains("no bfloat16"), "{said}");
        let found = read(&folder, args[0]);
        assert_eq!(found["label"]["value"], json!(ids(&pack)), "{args:?}");
        assert_eq!(found["label"]["classes"], json!(["cat", "dog", "sea lion"]));
        assert_eq!(found["half"]["dtype"], "float16");
        assert_eq!(found["brain"]["dtype"], "uint16");
        assert_eq!(found["caption"]["value"][9], "[9]");
        let is_plain = args.len() == 1;
        assert_eq!(found["image"]["chunks"].is_null(), is_plain, "{args:?}");
        assert_same(&pack, &convert(&folder, args[0], &[]), &format!("{args:?}"));
    }
}

#[test]
fn files_with_other_class_names_are_refused() {
    let folder = Folder::new();
    let write = "import h5py, numpy as np, sys\nfor n, names in enumerate(['abc', 'abc', 'cba']):\n    for kind in 'ad':\n        with h5py.File(f'{sys.argv[1]}/{kind}{n}.h5', 'w') as f:\n            f['image'] = np.zeros((4, 5, 5, 3), 'u1')\n            f['label'] = [0, 1, 2, n]\n            if kind == 'a': f['label'].attrs['classes'] = list(names)\n            else: f['classes'] = list(names)";
    python(&["-c", write, folder.path("").to_str().unwrap()]);
    for kind in ["a", "d"] {
        let same = format!("{kind}{{0,1}}.h5");
        let pack = convert(&folder, &same, &[]);
        assert_eq!(pack.classes().unwrap()[0].names, ["a", "b", "c"]);
        assert_eq!(ids(&pack), [0, 1, 2, 0, 0, 1, 2, 1]);
        let other = format!("{kind}{{0,2}}.h5");
        refused(
            &folder,
            &["convert", &other, "no.pack"],
            "expected the same class names as in the previous files ('a', 'b', 'c'), found 'c', 'b', 'a'",
        );
    }
}

#[test]
fn small_sets_of_labels_are_no_class_ids() {
    let folder = Folder::new();
    python(&[
        "-c",
        "import numpy, sys; numpy.save(sys.argv[1], numpy.zeros((3, 4, 4, 3), 'u1'))",
        folder.path("x.npy").to_str().unwrap(),
    ]);
    fs::create_dir(folder.path("images")).unwrap();
    folder.packds(&["convert", "x.npy", "x.pack", "--keep-order"]).ok();
    folder.packds(&["extract", "x.pack", "images"]).ok();
    let mut names: Vec<String> = folder.files("images");
    names.sort();
    let sets = [r#"["a","c"]"#, r#"["b"]"#, "[]"];
    let rows = names.iter().zip(sets).map(|(name, set)| format!("{{\"path\":\"images/{name}\",\"labels\":{set}}}\n"));
    fs::write(folder.path("m.jsonl"), rows.collect::<String>()).unwrap();
    folder.packds(&["convert", "m.jsonl", "in.pack", "--keep-order"]).ok();
    let pack = Pack::open(fs::read(folder.path("in.pack")).unwrap()).unwrap();
    for target in ["sets.h5", "sets.zarr"] {
        folder.packds(&["export", "in.pack", target]).ok();
        let back = convert(&folder, target, &[]);
        assert_eq!(items(&pack, "labels"), items(&back, "labels"), "{target}");
        assert_eq!(pack.classes().unwrap()[0].names, back.classes().unwrap()[0].names);
    }
}

#[test]
fn statistics_of_normalized_floats_come_back() {
    let folder = Folder::new();
    sample_pack(&folder, "in.pack");
    let to = |source: &str, pack: &str, args: &[&str]| {
        let ran = folder.packds(&[&["convert", source, pack, "--keep-order"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        Pack::open(fs::read(folder.path(pack)).unwrap()).unwrap()
    };
    folder.packds(&["export", "in.pack", "bytes.h5"]).ok();
    let args = ["--dtype", "f32", "--normalize", "imagenet"];
    let floats = to("bytes.h5", "floats.pack", &args);
    folder.packds(&["export", "floats.pack", "floats.h5"]).ok();
    let back = to("floats.h5", "back.pack", &[]);
    assert_eq!(items(&floats, "image"), items(&back, "image"));
    let image = |pack: &Pack<Vec<u8>>| pack.stats().unwrap().fields.get("image").cloned();
    assert!(image(&floats).is_some());
    assert_eq!(image(&floats), image(&back));
    // Stored statistics are dropped if the samples differ, because they would be wrong.
    let fewer = "import h5py, sys; f = h5py.File(sys.argv[1], 'a')\nfor k in list(f):\n    v = f[k]\n    a = dict(v.attrs); x = v[1:]; del f[k]; f[k] = x; f[k].attrs.update(a)";
    python(&["-c", fewer, folder.path("floats.h5").to_str().unwrap()]);
    assert_eq!(image(&to("floats.h5", "fewer.pack", &[])), None);
}

#[test]
fn damage_and_what_is_not_for_us_is_refused() {
    let (folder, _) = sources();
    let bytes = fs::read(folder.path("contiguous.h5")).unwrap();
    fs::write(folder.path("cut.h5"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(folder.path("text.h5"), b"no HDF5 at all").unwrap();
    for (name, words) in [
        ("external.h5", "its data is in other files"),
        ("virtual.h5", "its data is in other files"),
        ("huge.h5", "does not fit in a file"),
        ("newer.h5", "bad version number for layout message"),
        ("newer.h5", "h5repack --low=0 --high=2"),
        ("loop.h5", "a link makes a group contain itself"),
        ("nothing.h5", "no field of images"),
        ("short.h5", "5"),
        ("cut.h5", "cut.h5"),
        ("text.h5", "text.h5"),
    ] {
        refused(&folder, &["convert", name, "no.pack"], words);
    }
    let args = ["convert", "gzip.h5", "no.pack", "--image-key", "nothing"];
    refused(&folder, &args, "nothing");
}

/// For each image of a pack, its position among the images that h5py wrote.
fn pictures(pack: &Bytes, expected: &Value) -> Vec<usize> {
    let all = expected["pixels"].as_str().unwrap();
    let item = all.len() / 11;
    let place = |image: &Vec<u8>| (0..11).position(|i| all[i * item..][..item] == hex(image)).unwrap();
    items(pack, "image").iter().map(place).collect()
}

#[test]
fn a_dataset_for_each_image_is_an_image_and_groups_are_classes() {
    let (folder, expected) = written_by("hdf5.py");
    let written = python(&["hdf5.py", "singles", folder.path("").to_str().unwrap()]);
    let order = serde_json::from_str::<Value>(&written).unwrap()["order"].clone();
    let order: Vec<usize> = serde_json::from_value(order).unwrap();
    for name in ["classes", "opaque", "bytes", "packed"] {
        let pack = convert(&folder, &format!("{name}.h5"), &[]);
        assert_eq!(pictures(&pack, &expected), order, "{name}");
        assert_eq!(ids(&pack), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2], "{name}");
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog", "owl"], "{name}");
        assert_eq!(pack.path(1).unwrap().unwrap(), b"cat/0003", "{name}");
    }
    let flat = convert(&folder, "flat.h5", &[]);
    assert_eq!(pictures(&flat, &expected), (0..11).collect::<Vec<_>>());
    assert!(flat.schema().index_of("label").is_err());
    let ran = folder.packds(&["convert", "flat.h5", "t.pack", "--dry-run"]);
    assert!(ran.stderr.contains("each of the 11 datasets is read as one image"), "{ran:?}");
    let ran = folder.packds(&["convert", "single_splits.h5", "t.pack", "--dry-run"]);
    assert!(ran.stderr.contains("found the splits 'test', 'train'"), "{ran:?}");
    let test = convert(&folder, "single_splits.h5", &["--split", "test"]);
    assert_eq!((pictures(&test, &expected), ids(&test)), (vec![9, 7, 10, 8], vec![0, 1, 1, 2]));
}

#[test]
fn datasets_that_are_not_arrays_of_samples_say_what_to_do() {
    let (folder, _) = written_by("hdf5.py");
    python(&["hdf5.py", "singles", folder.path("").to_str().unwrap()]);
    for (name, words) in [
        ("pairs", "not every group can be a class: 'images', 'masks'"),
        ("weights", "found 'bias', 'kernel'"),
        ("table", "such as rows of a PyTables table"),
        ("linked", "linked.h5: images: a link to another file, which is not followed"),
    ] {
        refused(&folder, &["convert", &format!("{name}.h5"), "no.pack"], words);
    }
    let ran = folder.packds(&["convert", "link_beside.h5", "l.pack"]);
    assert!(ran.code == 0 && ran.stderr.contains("left out the field 'more': a link to another file"), "{ran:?}");
}

#[test]
fn images_of_floats_keep_their_masks() {
    let (folder, expected) = written_by("hdf5.py");
    python(&["hdf5.py", "singles", folder.path("").to_str().unwrap()]);
    let pack = convert(&folder, "unit.h5", &[]);
    let pixels = expected["pixels"].as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&pixels[at * 2..at * 2 + 2], 16).unwrap();
    let images = items(&pack, "image").concat();
    let floats: Vec<f32> = images.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect();
    assert!(floats.iter().enumerate().all(|(at, float)| (float * 255.0 - f32::from(byte(at))).abs() < 1e-3));
    let masks = items(&pack, "mask").concat();
    assert!(masks.iter().enumerate().all(|(at, mask)| *mask == byte(at * 3) % 3));
}
