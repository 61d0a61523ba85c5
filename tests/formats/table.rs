//! Parquet and Arrow, with pyarrow and Hugging Face's datasets.

use std::fs;
use std::path::Path;
use std::process::Command;

use packds_format::{FieldKind, Pack};
use serde_json::Value;

use super::python;
use crate::support::{Folder, SamplePack};

fn open(path: &Path) -> Pack<Vec<u8>> {
    Pack::open(fs::read(path).unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The items of a field, in the pack's order.
fn items(pack: &Pack<Vec<u8>>, name: &str) -> Vec<Vec<u8>> {
    let number = pack.schema().index_of(name).unwrap();
    (0..pack.n_samples()).map(|sample| pack.item(number, sample).unwrap().into_owned()).collect()
}

fn pixels(pack: &Pack<Vec<u8>>) -> Vec<String> {
    items(pack, "image").iter().map(|item| hex(item)).collect()
}

fn label_ids(pack: &Pack<Vec<u8>>) -> Vec<i64> {
    let items = items(pack, "label");
    let ids = items.iter().map(|item| match item.as_slice() {
        id @ [_, _, _, _] => i64::from(i32::from_le_bytes(id.try_into().unwrap())),
        id => i64::from_le_bytes(id.try_into().unwrap()),
    });
    ids.collect()
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn what_real_clients_write_comes_in() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    let dir = folder.path("in");
    let written: Value = serde_json::from_str(&python(&["table.py", "write", dir.to_str().unwrap()])).unwrap();
    let (expected, ids) = (strings(&written["pixels"]), &written["labels"]);
    let ids: Vec<i64> = serde_json::from_value(ids.clone()).unwrap();
    let hf = ["zebra", "ant", "fox"];
    for (name, classes, samples) in [
        ("hf.parquet", &hf[..], 12),
        ("array3d.parquet", &hf, 12),
        ("hf_saved --split train", &hf, 12),
        ("hf_saved --split test", &hf, 3),
        ("set --split train", &hf, 12),
        ("set --split test", &hf, 2),
        ("set/train-{00000..00001}-of-00002.parquet", &hf, 12),
        ("file.arrow", &[], 12),
        ("stream.arrow", &[], 12),
        ("lz4.arrow", &[], 12),
        ("zstd_stream.arrow", &[], 12),
        ("tensor.parquet", &[], 12),
    ] {
        let source = format!("in/{name}");
        let mut args = vec!["convert"];
        args.extend(source.split(' '));
        args.extend(["out.pack", "--keep-order", "--force"]);
        folder.packds(&args).ok();
        let pack = open(&folder.path("out.pack"));
        assert_eq!(pixels(&pack), expected[..samples], "{name}");
        assert_eq!(label_ids(&pack), ids[..samples], "{name}");
        let found = pack.classes().unwrap();
        let names = found.first().map_or(&[][..], |classes| &classes.names);
        assert_eq!(names, classes, "{name}");
    }
    // Names without an order get ids in sorted order.
    for name in ["none", "snappy", "gzip", "zstd", "lz4"] {
        let source = format!("in/files_{name}.parquet");
        folder.packds(&["convert", &source, "out.pack", "--keep-order", "--force"]).ok();
        let pack = open(&folder.path("out.pack"));
        assert_eq!(pixels(&pack), expected, "{name}");
        assert_eq!(pack.classes().unwrap()[0].names, ["ant", "fox", "zebra"]);
    }
    further_columns(&folder);
    typed_columns(&folder);
    refusals(&folder);
}

/// Columns of types that packs cannot store become text, or are left out with a warning.
fn typed_columns(folder: &Folder) {
    for source in ["in/typed.parquet", "in/typed.arrow"] {
        let ran = folder.packds(&["convert", source, "out.pack", "--force"]);
        assert_eq!(ran.code, 0, "{source}: {ran:?}");
        for name in ["map", "view", "parts"] {
            assert!(ran.stderr.contains(&format!("left out the field '{name}'")), "{source}: {ran:?}");
        }
        let pack = open(&folder.path("out.pack"));
        for (name, text) in [
            ("local", "2024-01-31T12:00:00"),
            ("utc", "2024-01-31T12:00:00.001Z"),
            ("berlin", "2024-01-31T12:00:00Z"),
            ("offset", "2024-01-31T12:00:00Z"),
            ("missing", ""),
            ("date", "2024-01-31"),
            ("time", "12:00:00"),
            ("took", "PT1.5S"),
            ("price", "1.25"),
            ("times", r#"["2024-01-31T12:00:00Z"]"#),
        ] {
            assert_eq!(str::from_utf8(&items(&pack, name)[0]).unwrap(), text, "{source}: {name}");
        }
    }
    let named = folder.packds(&["convert", "in/typed.parquet", "no.pack", "--label-key", "map"]);
    assert!(named.code == 2 && named.stderr.contains("column `map`"), "{named:?}");
}

fn further_columns(folder: &Folder) {
    let convert = |source: &str| {
        folder.packds(&["convert", source, "out.pack", "--keep-order", "--force"]).ok();
        open(&folder.path("out.pack"))
    };
    let pack = convert("in/hf.parquet");
    assert_eq!(items(&pack, "caption")[3], b"caption 3");
    assert_eq!(items(&pack, "spans")[2], b"[0,1]");
    assert_eq!(items(&pack, "score")[3], 1.5_f32.to_le_bytes());
    assert_eq!(pack.path(4).unwrap().unwrap(), b"a/4.png");
    let pack = convert("in/file.arrow");
    assert_eq!(items(&pack, "when")[3], b"1970-01-01T00:00:03");
    assert_eq!(items(&pack, "half")[1], [0, 0x3c]);
    assert_eq!(items(&pack, "vector")[1][..4], 4_f32.to_le_bytes());
    let counts = items(&pack, "count");
    assert_eq!(counts[3], 3_f64.to_le_bytes());
    assert!(f64::from_le_bytes(counts[2].as_slice().try_into().unwrap()).is_nan());
}

fn refusals(folder: &Folder) {
    let nulls = ["convert", "in/null_image.parquet", "no.pack"];
    let ran = folder.packds(&nulls);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("null_image"), "{}", ran.stderr);
    // The pack is written, but lacks some samples.
    let ran = folder.packds(&[&nulls[..], &["--on-error", "skip"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(open(&folder.path("no.pack")).n_samples(), 1);
    fs::remove_file(folder.path("no.pack")).unwrap();
    let nulls = ["convert", "in/null_label.parquet", "no.pack", "--on-error", "skip", "--json"];
    let ran = folder.packds(&nulls);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let skipped = &ran.json()["skipped"][0];
    assert_eq!(skipped["reason"], "sample 1: column `label`: the label is missing (null)");
    assert_eq!(label_ids(&open(&folder.path("no.pack"))), [0]);
    fs::remove_file(folder.path("no.pack")).unwrap();
    for (name, word) in [
        ("no_bytes.parquet", "the file's path is stored"),
        ("one.feather", "Feather version 1"),
        ("brotli.parquet", "brotli"),
        ("permuted.parquet", "permutation"),
        ("null_label.parquet", "image/1: sample 1: column `label`: the label is missing (null)"),
        ("no_rows.parquet", "it has no rows"),
        ("no_image.parquet", "no field of images"),
    ] {
        let source = format!("in/{name}");
        let ran = folder.packds(&["convert", &source, "no.pack"]);
        assert_ne!(ran.code, 0, "{name}");
        assert!(ran.stderr.contains(word), "{name}: {}", ran.stderr);
        assert!(!folder.path("no.pack").exists());
    }
}

#[test]
fn real_clients_read_what_goes_out() {
    let folder = Folder::new();
    let pack = SamplePack::default().write(&folder, "in.pack");
    let pack = open(&folder.path("in.pack")).n_samples().max(pack.n_samples());
    assert_eq!(pack, 10);
    let pack = open(&folder.path("in.pack"));
    let ids = label_ids(&pack);
    for args in [
        vec!["a.parquet"],
        vec!["b.parquet", "--codec", "zstd:5", "--chunk", "3"],
        vec!["c.parquet", "--images", "pixels", "--codec", "gzip"],
        vec!["d", "--to", "parquet", "--shard", "4"],
        vec!["e.arrow"],
        vec!["f.arrow", "--images", "pixels"],
        vec!["g.arrow", "--codec", "lz4"],
        vec!["h.arrow", "--codec", "zstd"],
    ] {
        let mut command = vec!["export", "in.pack"];
        command.extend(&args);
        assert_eq!(folder.packds(&command).code, 0, "{args:?}");
        let path = folder.path(args[0]);
        let path = path.to_str().unwrap();
        let read: Value = serde_json::from_str(&python(&["table.py", "read", path])).unwrap();
        assert_eq!(strings(&read["pixels"]), pixels(&pack), "{args:?}");
        assert_eq!(read["labels"], serde_json::json!(ids), "{args:?}");
        assert_eq!(strings(&read["names"]), ["cat", "dog", "sea lion"], "{args:?}");
        let is_plain = args[0].ends_with(".arrow") && !args.contains(&"--codec");
        assert_eq!(read["zero_copy"].as_bool().unwrap_or(false), is_plain, "{args:?}");
        // Loads the dataset as in a training script, with images as files.
        if !args.contains(&"pixels") && !path.ends_with(".arrow") {
            let read: Value = serde_json::from_str(&python(&["table.py", "load", path])).unwrap();
            assert_eq!(strings(&read["pixels"]), pixels(&pack), "{args:?}");
            assert_eq!(read["labels"], serde_json::json!(ids), "{args:?}");
            assert_eq!(read["image"], "Image", "{args:?}");
            assert_eq!(strings(&read["names"]), ["cat", "dog", "sea lion"]);
        }
        folder.packds(&["convert", args[0], "back.pack", "--keep-order", "--force"]).ok();
        let back = open(&folder.path("back.pack"));
        assert_eq!(pixels(&back), pixels(&pack), "{args:?}");
        assert_eq!(back.path(3).unwrap(), pack.path(3).unwrap(), "{args:?}");
    }
}

#[test]
fn a_record_batch_that_memory_has_no_room_for_is_an_error() {
    let folder = Folder::new();
    let path = folder.path("long.arrow");
    python(&["table.py", "long_batch", path.to_str().unwrap()]);
    assert!(fs::metadata(&path).unwrap().len() < 1 << 17);
    for room in [300_000, 500_000] {
        let command = format!("ulimit -v {room}; exec \"$0\" convert long.arrow a.pack --jobs 1");
        let mut run = Command::new("bash");
        run.args(["-c", &command, env!("CARGO_BIN_EXE_packds")]);
        let output = run.current_dir(folder.path("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let expected = "and packds needs twice that in free memory";
        assert!(said.contains(expected), "{said}");
    }
    // The size of a chunk accounts for the texts, so a chunk holds fewer than 1024 samples.
    folder.packds(&["convert", "long.arrow", "a.pack"]).ok();
    let pack = open(&folder.path("a.pack"));
    assert_eq!(pack.geometry().chunk_samples(), 8);
}

#[test]
fn long_texts_that_few_bytes_stand_for_are_not_kept_in_memory() {
    let folder = Folder::new();
    let path = folder.path("long.parquet");
    python(&["table.py", "long_texts", path.to_str().unwrap()]);
    assert!(fs::metadata(&path).unwrap().len() < 1 << 16);
    // The texts take 700 MiB, and twice as much while their buffer grows.
    let command = "ulimit -v 1000000; exec \"$0\" convert long.parquet a.pack --jobs 1 --codec zstd";
    let output = Command::new("bash")
        .args(["-c", command, env!("CARGO_BIN_EXE_packds")])
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let pack = open(&folder.path("a.pack"));
    let number = pack.schema().index_of("long").unwrap();
    assert_eq!(pack.schema().fields()[number].kind, FieldKind::String);
    let item = pack.item(number, 3).unwrap();
    assert!(item.len() == 1 << 20 && item.iter().all(|byte| *byte == b'a'));
    // An Arrow batch is unpacked as a whole, so this fails.
    let ran = folder.packds(&["convert", "long.parquet.arrow", "b.pack"]);
    assert!(ran.code == 1 && ran.stderr.contains("--leave-out long"), "{ran:?}");
    let args = ["convert", "long.parquet.arrow", "b.pack", "--leave-out", "long"];
    folder.packds(&args).ok();
}
