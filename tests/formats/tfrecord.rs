//! TFRecord, written and read by the library `tfrecord`.

use super::python;
use super::records::{N, assert_records, classes, converted, items, labels, pixels, refused};
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["tfrecord.py", "write", &here]);
    folder
}

#[test]
fn what_tfrecord_writes_is_read() {
    let folder = sources();
    for name in ["one.tfrecord", "two.tfrecord.gz"] {
        let pack = converted(&folder, name, &[]);
        assert_records(&pack, 0..N);
        // Labels that start at 1, as in ImageNet's records, are kept.
        assert_eq!(labels(&pack)[..4], [1, 2, 3, 1]);
        assert_eq!(classes(&pack), ["0", "zebra", "ant", "sea lion"]);
        assert_eq!(pack.path(3).unwrap().unwrap(), b"n3.png");
        assert_eq!(items(&pack, "score")[3], 0.75_f64.to_le_bytes());
        assert_eq!(items(&pack, "boxes")[..3], [&b"[0]"[..], b"[1,1]", b"[2,1,2]"]);
        assert_eq!(items(&pack, "caption")[9], b"caption 9");
    }
}

#[test]
fn splits_and_class_names_of_tensorflow_datasets_are_found() {
    let folder = sources();
    let read = folder.packds(&["convert", "tfds", "no.pack", "--dry-run"]);
    assert!(read.stderr.contains("found the splits 'test', 'train'"), "{read:?}");
    let pack = converted(&folder, "tfds", &["--split", "train"]);
    assert_records(&pack, (0..16).step_by(2).chain((1..16).step_by(2)));
    assert_eq!(classes(&pack), ["zebra", "ant", "sea lion"]);
    let shards = "tfds/animals-test.tfrecord-{00000..00001}-of-00002";
    for (source, n) in [(shards, 4), ("tfds/animals-test.tfrecord-00000-of-00002", 2)] {
        let pack = converted(&folder, source, &[]);
        assert_eq!(pack.n_samples(), n);
        assert_eq!(classes(&pack), ["zebra", "ant", "sea lion"], "{source}");
    }
}

#[test]
fn raw_pixels_are_read_where_their_size_is_told() {
    let folder = sources();
    let pack = converted(&folder, "raw.tfrecord", &[]);
    assert_records(&pack, 0..N);
    assert_eq!(labels(&pack)[..4], [0, 1, 2, 0]);
}

#[test]
fn serialized_tensors_and_wide_raw_pixels_have_their_type() {
    let folder = Folder::new();
    python(&["tfrecord.py", "tensors", folder.path("").to_str().unwrap()]);
    let pack = converted(&folder, "tensors.tfrecord", &[]);
    assert_records(&pack, 0..N);
    assert_eq!(labels(&pack)[..4], [0, 1, 2, 0]);
    let points: Vec<u8> = (3_u8..9).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    assert_eq!(items(&pack, "points")[3], points);
    assert_eq!(items(&pack, "score")[3], 0.75_f64.to_le_bytes());
    let halves: Vec<u8> = pixels(4).into_iter().flat_map(|value| (f32::from(value) / 2.0).to_le_bytes()).collect();
    let triples: Vec<u8> = pixels(4).into_iter().flat_map(|value| (u16::from(value) * 3).to_le_bytes()).collect();
    for (name, expected, told) in [
        ("floats", &halves, ""),
        ("raw_f32", &halves, "4 bytes per number and are read as f32"),
        ("raw_u16", &triples, "2 bytes per number and are read as u16"),
        ("raw_i16", &triples, ""),
    ] {
        let source = format!("{name}.tfrecord");
        let pack = converted(&folder, &source, &[]);
        assert_eq!(&items(&pack, "image")[4], expected, "{name}");
        let stderr = folder.packds(&["convert", &source, "t.pack", "--dry-run"]).stderr;
        assert_eq!(stderr.contains("bytes per number"), !told.is_empty(), "{name}: {stderr}");
        assert!(stderr.contains(told), "{name}: {stderr}");
    }
    let said = refused(&folder, "no_depth.tfrecord", &[]);
    assert!(said.contains("or raw pixels with the features height, width and depth"), "{said}");
    let said = refused(&folder, "strings.tfrecord", &[]);
    assert!(said.contains("expected an image file or a tensor of tf.io.serialize_tensor"), "{said}");
}

#[test]
fn what_is_exported_is_read_by_tfrecord_and_comes_back() {
    let folder = sources();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["webdataset.py", "write", &here]);
    let pack = converted(&folder, "one.tar", &["--label-key", "species"]);
    for (target, args) in [
        ("out.tfrecord", &[][..]),
        ("out.tfrecord.gz", &[]),
        ("records", &["--to", "tfrecord", "--shard", "8"]),
        ("packed", &["--to", "tfrecord", "--shard", "8", "--codec", "gzip"]),
    ] {
        let ran = folder.packds(&[&["export", "one.tar.pack", target], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let path = folder.path(target);
        let read: serde_json::Value =
            serde_json::from_str(&python(&["tfrecord.py", "read", path.to_str().unwrap()])).unwrap();
        let rows = read["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 20, "{target}");
        for (i, row) in rows.iter().enumerate() {
            assert_eq!((&row["same"], &row["points"]), (&true.into(), &true.into()));
            assert_eq!(row["text"], ["zebra", "ant", "sea lion"][i % 3]);
            assert_eq!(row["label"], [2, 0, 1][i % 3]);
            assert_eq!(row["size"], serde_json::json!([5, 7]));
            assert_eq!(row["file"], format!("a/{i:04}.png"));
        }
        let again = converted(&folder, target, &[]);
        for name in ["image", "label", "points", "txt", "json", "id"] {
            assert_eq!(items(&again, name), items(&pack, name), "{target} {name}");
        }
        assert_eq!(classes(&again), classes(&pack));
    }
}

#[test]
fn a_flipped_bit_is_refused_with_the_record() {
    let folder = sources();
    folder.flip("one.tfrecord", 900);
    let said = refused(&folder, "one.tfrecord", &[]);
    assert!(said.contains("the checksum of the record is wrong"), "{said}");
}
