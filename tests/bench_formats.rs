//! `packds bench formats`: every format delivers the same samples, and the report is machine-readable.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{fixture, packds, stderr, stdout, temp_dir};

/// The reason in the rows of formats that this build leaves out.
const LEFT_OUT: &str = "not part of this build";

fn is_left_out(name: &str) -> bool {
    (name.starts_with("hdf5") && !cfg!(feature = "hdf5"))
        || (name.starts_with("zarr") && !cfg!(feature = "zarr"))
        || (matches!(name, "arrow" | "parquet") && !cfg!(feature = "arrow"))
        || (name == "lmdb" && !cfg!(feature = "lmdb"))
}

fn run(data: &Path, out: &Path, options: &[&str]) -> Value {
    let (data, out) = (data.to_str().unwrap(), out.to_str().unwrap());
    let mut args = vec!["bench", "formats", data, "--quick", "--json", "--out", out];
    args.extend(options);
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    serde_json::from_str(&stdout(&result)).unwrap()
}

fn rows<'a>(report: &'a Value, key: &str) -> &'a Vec<Value> {
    report[key].as_array().unwrap()
}

#[test]
fn every_format_delivers_the_same_samples_in_every_order() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    let report = run(&images, dir.path(), &["--seconds", "0.02", "--step-ms", "1"]);
    let formats = rows(&report, "formats");
    let mut sums = BTreeSet::new();
    for format in formats {
        let name = format["format"].as_str().unwrap();
        let mine = rows(&report, "runs").iter();
        let mine: Vec<&Value> = mine.filter(|run| run["format"] == name).collect();
        // Three orders, warm and cold, one and two threads, with and without a step.
        assert_eq!(mine.len(), 24, "{name}");
        for run in mine {
            let streamed = name.starts_with("webdataset") || name == "tfrecord";
            if let Some(reason) = run["skipped"].as_str() {
                let alone = streamed && run["order"] == "per-sample";
                let left_out = is_left_out(name) && reason == LEFT_OUT;
                assert!(alone || left_out, "{name}: {reason}");
                assert_eq!(run["images_per_s"], Value::Null);
                continue;
            }
            for key in ["images_per_s", "first_batch_ms", "peak_rss_bytes"] {
                assert!(run[key].as_f64().unwrap() > 0.0, "{name}: {key}");
            }
            let share = run["cached_share_before"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&share), "{name}: {share}");
            let waits = run["step_ms"].as_f64().unwrap() > 0.0;
            assert_eq!(run["wait_ms"].is_object(), waits, "{name}");
            sums.insert(run["checksum"].as_str().unwrap().to_owned());
        }
        if format["bytes"] != Value::Null {
            assert!(format["bytes"].as_u64().unwrap() > 0, "{name}");
            assert!(format["write_s"].as_f64().unwrap() > 0.0, "{name}");
        }
    }
    assert_eq!(sums.len(), 1, "{sums:?}");
    let written: Value = serde_json::from_slice(&fs::read(dir.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(written, report);
    let table = fs::read_to_string(dir.path().join("report.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + rows(&report, "runs").len());
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("packds-raw"), "the page shows the formats");
    assert_eq!((&report["data"]["n_samples"], &report["options"]["batch"]), (&json!(20), &json!(5)));
    let names = fs::read_dir(dir.path()).unwrap();
    let left = names.filter(|e| {
        let name = e.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with("packds-formats")
    });
    assert_eq!(left.count(), 0, "the formats' files are removed");
}

#[test]
fn images_of_several_sizes_are_the_middles_of_resized_ones() {
    let dir = temp_dir();
    let images = fixture("images/folder");
    let options = ["--formats", "image-folder,packds-raw,packds-encoded", "--orders", "chunk", "--cache", "warm"];
    let report = run(&images, dir.path(), &options);
    assert_eq!(report["data"]["height"], 224);
    let runs = rows(&report, "runs");
    // The encoded pack has the original files. Decoding, resizing and cropping them gives the same pixels.
    let sums: BTreeSet<&str> = runs.iter().filter_map(|r| r["checksum"].as_str()).collect();
    assert_eq!((runs.len(), sums.len()), (6, 1));
}

/// A pack of the fixtures' images, made with these options.
fn packed(dir: &Path, options: &[&str]) -> std::path::PathBuf {
    let pack = dir.join("images.pack");
    let images = fixture("images/same_size");
    let mut args = vec!["convert", images.to_str().unwrap(), pack.to_str().unwrap()];
    args.extend(options);
    let made = packds(&args);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    pack
}

#[test]
fn gray_images_come_from_every_format_but_an_encoded_pack() {
    let dir = temp_dir();
    let pack = packed(dir.path(), &["--gray"]);
    let options = ["--orders", "chunk", "--cache", "warm", "--jobs", "1"];
    let report = run(&pack, &dir.path().join("out"), &options);
    assert_eq!(report["data"]["channels"], 1);
    let mut delivered = BTreeSet::new();
    for run in rows(&report, "runs") {
        let name = run["format"].as_str().unwrap();
        match run["skipped"].as_str() {
            Some(reason) if name == "packds-encoded" => {
                assert!(reason.contains("one channel"), "{reason}");
            }
            Some(reason) => assert!(is_left_out(name), "{name}: {reason}"),
            None => {
                delivered.insert(name);
            }
        }
    }
    for name in ["image-folder", "webdataset-png", "npy", "packds-raw"] {
        assert!(delivered.contains(name), "{name}");
    }
}

#[test]
fn a_pack_with_channels_first_is_compared_as_one_with_channels_last() {
    let dir = temp_dir();
    let mut sums = BTreeSet::new();
    for layout in ["hwc", "chw"] {
        let folder = dir.path().join(layout);
        fs::create_dir(&folder).unwrap();
        let pack = packed(&folder, &["--layout", layout]);
        let options = ["--formats", "npy,image-folder,packds-raw", "--orders", "sequential"];
        let report = run(&pack, &folder.join("out"), &options);
        for run in rows(&report, "runs") {
            sums.insert(run["checksum"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(sums.len(), 1, "{sums:?}");
}

#[test]
fn what_is_named_twice_is_measured_once() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    let options = ["--formats", "npy,npy", "--orders", "chunk,chunk", "--jobs", "1,1", "--cache", "warm,warm"];
    let report = run(&images, dir.path(), &options);
    assert_eq!(rows(&report, "runs").len(), 1);
    assert_eq!(report["options"]["threads"], json!([1]));
    assert_eq!(report["options"]["orders"], json!(["chunk"]));
}

#[test]
fn class_ids_are_those_of_the_pack() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    let mut files = Vec::new();
    for class in fs::read_dir(images).unwrap() {
        for file in fs::read_dir(class.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    // Sorted as folder names, these labels would have another order. Some ids between them are missing.
    let lines = files.iter().enumerate().map(|(nth, file)| {
        let label = [9, 10, 2, 115][nth % 4];
        let name = format!("{nth}.png");
        fs::copy(file, dir.path().join(&name)).unwrap();
        let row = json!({"path": name, "label": label});
        format!("{row}\n")
    });
    let manifest = dir.path().join("a.jsonl");
    fs::write(&manifest, lines.collect::<String>()).unwrap();
    let pack = dir.path().join("a.pack");
    let args = ["convert", manifest.to_str().unwrap(), pack.to_str().unwrap()];
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let some =
        ["--formats", "image-folder,webdataset,packds-raw,packds-encoded", "--orders", "sequential", "--cache", "warm"];
    let report = run(&pack, dir.path(), &some);
    let runs = rows(&report, "runs");
    let sums: BTreeSet<&str> = runs.iter().filter_map(|r| r["checksum"].as_str()).collect();
    assert_eq!((runs.len(), sums.len()), (8, 1));
}

#[test]
fn rows_of_other_programs_must_agree() {
    let dir = temp_dir();
    let pack = dir.path().join("a.pack");
    let images = fixture("images/same_size");
    let (images, pack_name) = (images.to_str().unwrap(), pack.to_str().unwrap());
    assert_eq!(packds(&["convert", images, pack_name]).status.code(), Some(0));
    let some = ["--formats", "packds-raw", "--cache", "warm", "--jobs", "1", "--batch", "5"];
    let report = run(&pack, dir.path(), &some);
    let sum = rows(&report, "runs")[0]["checksum"].clone();
    let peers = |sum: &Value| {
        json!({
            "versions": {"peer": "1"},
            "formats": [{"format": "peer", "title": "A peer", "runtime": "python", "lossless": true}],
            "runs": [{"format": "peer", "order": "chunk", "cache": "warm", "threads": 1, "batch": 5, "step_ms": 0.0,
                "images_per_s": 1.0, "batch_ms": {"median": 1.0, "p95": 1.0}, "checksum": sum}],
        })
    };
    let path = dir.path().join("peers.json");
    fs::write(&path, peers(&sum).to_string()).unwrap();
    let with = [&some[..], &["--force", "--with", path.to_str().unwrap()]].concat();
    let report = run(&pack, dir.path(), &with);
    assert_eq!(report["versions"]["peer"], "1");
    assert_eq!(rows(&report, "formats").last().unwrap()["format"], "peer");
    fs::write(&path, peers(&json!("0000000000000000")).to_string()).unwrap();
    let (pack, out) = (pack.to_str().unwrap(), dir.path().to_str().unwrap());
    let args = [&["bench", "formats", pack, "--quick", "--out", out], &with[..]].concat();
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(1));
    let said = stderr(&result);
    let expected = format!(
        "peer, chunk order: delivered wrong samples (expected checksum {}, found 0000000000000000)",
        sum.as_str().unwrap()
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn other_formats_are_to_be_made_packs_first() {
    let dir = temp_dir();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let images = fixture("images/same_size");
    let (pack, arrays) = (path("a.pack"), path("a.npz"));
    for args in [["convert", images.to_str().unwrap(), &pack], ["export", &pack, &arrays]] {
        let result = packds(&args);
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    }
    let result = packds(&["bench", "formats", &arrays, "--quick"]);
    assert_ne!(result.status.code(), Some(0));
    let said = stderr(&result);
    assert!(said.contains("expected an image folder or a pack, found"), "{said}");
}

#[test]
fn the_table_tells_the_mean_of_batches_on_any_number_of_threads() {
    let images = fixture("images/same_size");
    let some = ["--formats", "npy,packds-raw", "--orders", "chunk", "--cache", "warm"];
    let data = ["bench", "formats", images.to_str().unwrap(), "--quick"];
    let result = packds(&[&data[..], &some[..]].concat());
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let shown = stdout(&result);
    for text in ["chunk order, warm, 1 thread\n", "chunk order, warm, 2 threads\n", "limit    1 thread:", " 1 round,"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(shown.contains(" mean ms      p95 ms"), "{shown}");
}

#[test]
fn a_report_is_named_and_not_replaced() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    let (images, out) = (images.to_str().unwrap(), dir.path().to_str().unwrap());
    let some = ["--formats", "packds-raw", "--orders", "chunk", "--cache", "warm", "--jobs", "1", "--out", out];
    let args = [&["bench", "formats", images, "--quick"], &some[..]].concat();
    let shown = stdout(&packds(&args));
    let page = dir.path().join("report.html");
    assert!(shown.ends_with(&format!("\nreport   {}\n", page.display())), "{shown}");
    fs::write(&page, "old").unwrap();
    let result = packds(&args);
    assert_eq!((result.status.code(), stdout(&result).as_str()), (Some(2), ""));
    assert!(stderr(&result).contains("report.json: already exists"), "{}", stderr(&result));
    assert_eq!(fs::read(&page).unwrap(), b"old");
    let result = packds(&[&args[..], &["--force"]].concat());
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert_ne!(fs::read(&page).unwrap(), b"old");
}

#[test]
fn data_that_is_missing_is_named_for_machines() {
    let result = packds(&["--json", "bench", "formats", "no/such", "--quick"]);
    assert_eq!(result.status.code(), Some(2));
    let said: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(said["error"]["path"], "no/such");
    assert_eq!(said["error"]["message"], "no such file or folder");
    assert!(stderr(&result).ends_with("packds: error: no/such: no such file or folder\n"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_written() {
    let images = fixture("images/same_size");
    let images = images.to_str().unwrap();
    for (option, value) in [("--formats", "npy,nothing"), ("--seconds", "0"), ("--step-ms", "-1")] {
        let result = packds(&["bench", "formats", images, &format!("{option}={value}")]);
        assert_eq!(result.status.code(), Some(2), "{option}");
        assert!(stderr(&result).contains(option), "{}", stderr(&result));
    }
}
