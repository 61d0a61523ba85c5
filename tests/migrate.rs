//! `packds migrate`: with programs that stand for the other libraries' readers, and with the real ones.

#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;
use serde_json::{Value, json};

use crate::formats::{peers, python_of_peers};
use crate::support::{Folder, Ran, SIZE, SamplePack, signal, stderr};

/// A source in this format: 10 images of 6 x 4 pixels with labels.
fn source(format: &str) -> Folder {
    let folder = Folder::new();
    SamplePack { paths: Some(Vec::new()), ..SamplePack::default() }.write(&folder, "first.pack");
    let ran = folder.packds(&["export", "first.pack", "source", "--to", format]);
    assert_eq!(ran.code, 0, "{ran:?}");
    folder
}

/// Writes a program that stands for the interpreter.
fn stub(folder: &Folder, body: &str) {
    // Another process writes it, so that no process that starts in the meantime inherits a file open for writing.
    let script = format!("#!/bin/sh\n{body}\n");
    let write = "printf '%s' \"$1\" > python && chmod +x python";
    let done = Command::new("sh").args(["-c", write, "sh", &script]).current_dir(folder.path("")).status().unwrap();
    assert!(done.success());
}

/// Migrates with the stub.
fn migrate(folder: &Folder, args: &[&str]) -> Ran {
    folder.packds(&[&["migrate", "source", "out.pack", "--python", "./python"], args].concat())
}

fn opened(n_samples: u64) -> String {
    json!({ "library": "streaming", "version": "1.2", "n_samples": n_samples }).to_string()
}

/// The lines of a reader for all samples, each changed by `change`.
fn answers(change: impl Fn(u32, &str, &mut Value)) -> String {
    let (width, height) = SIZE;
    let mut lines = vec![opened(10)];
    for sample in 0..10_u32 {
        let pixels: Vec<u8> = (0..72).map(|i| SamplePack::byte(sample, i)).collect();
        let crc = crc_fast::checksum(Crc32IsoHdlc, &pixels);
        let image = format!("{height}x{width}x3 values, CRC-32 {crc:08x}");
        for (field, value) in [("image", image), ("label", (sample % 3).to_string())] {
            let mut line = json!({ "sample": sample, "field": field, "values": ["other", value] });
            change(sample, field, &mut line);
            lines.push(line.to_string());
        }
    }
    lines.push(json!({ "done": true }).to_string());
    lines.join("\n")
}

/// A stub that prints these lines.
fn says(folder: &Folder, lines: &str) {
    fs::write(folder.path("lines"), format!("{lines}\n")).unwrap();
    stub(folder, "cat > request; cat lines");
}

#[test]
fn equal_values_are_no_difference() {
    for format in ["mds", "litdata"] {
        let folder = source(format);
        says(&folder, &answers(|_, _, _| {}));
        let said = migrate(&folder, &[]).ok();
        assert!(said.starts_with(&format!("found    source: {format}, 10 samples in ")), "{said}");
        assert!(said.contains("out.pack: 10 samples of 3 classes in 1 chunk"), "{said}");
        assert!(said.contains("compared 10 samples with streaming 1.2: image, label: no difference"), "{said}");
        let request: Value = serde_json::from_slice(&fs::read(folder.path("request")).unwrap()).unwrap();
        assert_eq!(request["format"], format);
        assert_eq!(request["samples"], json!((0..10).collect::<Vec<_>>()));
        let of_image = json!({
            "name": "image", "key": null, "kind": "pixels", "color": "RGB", "dtype": "|u1", "is_picture": true,
        });
        assert_eq!(request["fields"][0], of_image);
    }
}

#[test]
fn the_document_has_what_was_found_the_conversion_and_the_comparison() {
    let folder = source("mds");
    says(
        &folder,
        &answers(|sample, field, line| {
            if sample == 4 && field == "label" {
                line["values"] = json!(["7"]);
            }
        }),
    );
    let ran = migrate(&folder, &["--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let document = ran.json();
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["found", "conversion", "comparison"]);
    let found = &document["found"];
    assert_eq!((&found["format"], &found["n_samples"]), (&json!("mds"), &json!(10)));
    assert!(found["n_files"].as_u64() > Some(1) && found["bytes"].as_u64() > Some(720), "{found}");
    assert_eq!(document["conversion"]["n_samples"], 10);
    let compared = &document["comparison"];
    assert_eq!(compared["library"], "streaming");
    assert_eq!(compared["n_samples"], 10);
    assert_eq!(compared["fields"], json!(["image", "label"]));
    assert_eq!((&compared["reason"], &compared["n_differences"]), (&Value::Null, &json!(1)));
    let difference = &compared["differences"][0];
    assert_eq!((&difference["source_id"], &difference["field"]), (&json!(4), &json!("label")));
    assert_eq!((&difference["expected"], &difference["found"]), (&json!("7"), &json!("1 (dog)")));
}

#[test]
fn a_difference_is_an_error_with_both_values() {
    let folder = source("mds");
    says(
        &folder,
        &answers(|sample, field, line| {
            if field == "image" && sample > 1 {
                line["values"] = json!(["4x6x3 values, CRC-32 00000000"]);
            }
        }),
    );
    let ran = migrate(&folder, &["--keep-order"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let start = "packds: error: out.pack: sample 2 (sample 2 of the source), field `image`: \
                 expected 4x6x3 values, CRC-32 00000000, found 4x6x3 values, CRC-32 ";
    assert!(ran.stderr.contains(start), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 8, "{ran:?}");
    assert!(ran.stdout.contains("image, label: 8 differences"), "{ran:?}");
    assert!(folder.path("out.pack").exists());
}

#[test]
fn class_names_equal_labels() {
    let folder = source("mds");
    says(
        &folder,
        &answers(|sample, field, line| {
            if field == "label" {
                let class = ["cat", "dog", "sea lion"][usize::try_from(sample % 3).unwrap()];
                line["values"] = json!([class]);
            }
        }),
    );
    assert!(migrate(&folder, &[]).ok().contains("no difference"));
}

#[test]
fn skipped_fields_are_named() {
    let folder = source("mds");
    let lines = answers(|_, _, _| {});
    let mut lines: Vec<&str> = lines.lines().filter(|line| !line.contains("\"label\"")).collect();
    let skipped = json!({ "field": "label", "skipped": "it is odd" }).to_string();
    lines.insert(1, &skipped);
    says(&folder, &lines.join("\n"));
    let said = migrate(&folder, &[]).ok();
    assert!(said.contains("skipped field `label`: it is odd\n"), "{said}");
    assert!(said.contains("streaming 1.2: image: no difference"), "{said}");
}

#[test]
fn without_the_library_nothing_is_compared() {
    let folder = source("mds");
    says(&folder, &json!({ "missing": "streaming", "python": "/usr/bin/python3" }).to_string());
    let said = migrate(&folder, &[]).ok();
    let line = "not compared: `streaming` is not installed for /usr/bin/python3; pass --python\n";
    assert!(said.ends_with(line), "{said}");
    let document = migrate(&folder, &["--json", "--force"]).json();
    assert_eq!(document["comparison"]["n_samples"], 0);
    assert!(document["comparison"]["reason"].as_str().unwrap().contains("is not installed"));
}

#[test]
fn without_an_interpreter_nothing_is_compared_unless_it_was_named() {
    let folder = source("mds");
    let output = folder.command(&["migrate", "source", "out.pack"]).env("PATH", folder.path("")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("not compared: cannot run python3: "), "{said}");
    let ran = migrate(&folder, &["--force"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("packds: error: ./python: cannot run: "), "{ran:?}");
}

#[test]
fn nothing_is_compared_on_request() {
    let folder = source("mds");
    let said = migrate(&folder, &["--samples", "0"]).ok();
    assert!(said.ends_with("not compared: --samples is 0\n"), "{said}");
}

#[test]
fn some_samples_are_compared() {
    let folder = source("mds");
    stub(&folder, "cat > request; echo 'not JSON'");
    assert_eq!(migrate(&folder, &["--samples", "3", "--seed", "1"]).code, 2);
    let request: Value = serde_json::from_slice(&fs::read(folder.path("request")).unwrap()).unwrap();
    let samples: Vec<u64> = request["samples"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(samples.len() == 3 && samples.is_sorted(), "{samples:?}");
}

/// The error of a reader that does this.
fn failure(body: &str) -> String {
    let folder = source("mds");
    stub(&folder, body);
    let ran = migrate(&folder, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("hint: the pack is complete; pass --samples 0 to omit the comparison"), "{ran:?}");
    assert!(folder.path("out.pack").exists());
    ran.stderr
}

#[test]
fn a_reader_that_fails_is_reported_with_its_last_line() {
    let said = failure("cat > request; echo Traceback >&2; echo 'ImportError: no numba' >&2; exit 3");
    assert!(said.contains("stopped too early (exit status: 3): ImportError: no numba"), "{said}");
    let said = failure("exit 0");
    assert!(said.contains("stopped too early (exit status: 0)\n"), "{said}");
    let said = failure("sleep 100 & exit 4");
    assert!(said.contains("stopped too early (exit status: 4)\n"), "{said}");
}

#[test]
fn broken_output_is_reported() {
    let said = failure("cat > request; echo hello; sleep 100");
    assert!(said.contains("the reader in Python printed `hello`"), "{said}");
    let said = failure("cat > request; echo '{\"sample\": -1}'; sleep 100");
    assert!(said.contains("the reader in Python printed `{\"sample\": -1}`"), "{said}");
}

#[test]
fn values_that_are_missing_or_were_not_asked_for_are_reported() {
    let ending = json!({ "done": true });
    let said = failure(&format!("cat > request; echo '{}'; echo '{ending}'", opened(10)));
    assert!(said.contains("gave 0 values, expected at least 20"), "{said}");
    for (sample, field) in [(10, "image"), (0, "images")] {
        let value = json!({ "sample": sample, "field": field, "values": [] });
        let said = failure(&format!("cat > request; echo '{}'; echo '{value}'; sleep 100", opened(10)));
        assert!(said.contains(&format!("gave a value of `{field}` that was not asked for")), "{said}");
    }
}

#[test]
fn another_number_of_samples_is_a_difference() {
    let folder = source("mds");
    stub(&folder, &format!("cat > request; echo '{}'; sleep 100", opened(11)));
    let ran = migrate(&folder, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("out.pack: expected 11 samples, which the library has, found 10"), "{ran:?}");
}

#[test]
fn a_reader_that_writes_many_lines_does_not_block() {
    let folder = source("mds");
    fs::write(folder.path("lines"), format!("{}\n", answers(|_, _, _| {}))).unwrap();
    // It does not read its request either.
    stub(&folder, "i=0; while [ $i -lt 20000 ]; do echo a long line of a library >&2; i=$((i+1)); done; cat lines");
    assert!(migrate(&folder, &[]).ok().contains("no difference"));
}

#[test]
fn ctrl_c_ends_the_reader() {
    let folder = source("mds");
    stub(&folder, "echo $$ > pid.new; mv pid.new pid; exec sleep 100");
    let mut command = folder.command(&["migrate", "source", "out.pack", "--python", "./python", "--quiet"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !folder.path("pid").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "the reader does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    let result = child.wait_with_output().unwrap();
    assert_eq!(result.status.code(), Some(130), "{}", stderr(&result));
    assert_eq!(stderr(&result), "packds: interrupted; the pack is complete, but not compared\n");
    let pid = fs::read_to_string(folder.path("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the reader still runs");
}

#[test]
fn other_formats_are_refused() {
    let folder = source("npy");
    let ran = migrate(&folder, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let message = "expected a dataset of FFCV, MosaicML Streaming or LitData, found the format npy";
    assert!(ran.stderr.contains(message) && ran.stderr.contains("hint: `packds convert` reads this format"), "{ran:?}");
    assert_eq!((ran.stdout.as_str(), folder.path("out.pack").exists()), ("", false));
}

#[test]
fn a_pack_that_exists_is_kept_without_force() {
    let folder = source("mds");
    fs::write(folder.path("out.pack"), "mine").unwrap();
    let ran = migrate(&folder, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!((ran.stdout.as_str(), fs::read(folder.path("out.pack")).unwrap().as_slice()), ("", &b"mine"[..]));
}

/// Migrates with the real library.
fn migrate_really(folder: &Folder, source: &str, args: &[&str]) -> String {
    let of_source = || folder.files(source.split('/').next().unwrap());
    let before = of_source();
    let python = peers();
    let ran = [&["migrate", source, "out.pack", "--force", "--python", python.to_str().unwrap()], args].concat();
    let ran = folder.packds(&ran);
    assert_eq!(ran.code, 0, "{source}: {ran:?}");
    assert_eq!(of_source(), before, "the source is changed");
    ran.stdout
}

#[test]
fn streaming_reads_the_same() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    let Some(_) = python_of_peers("streaming", &["mds.py", "write", &here]) else { return };
    for source in ["raw", "zstd", "merged", "raw/index.json"] {
        let said = migrate_really(&folder, source, &[]);
        assert!(said.contains("compared 20 samples with streaming ") && said.contains(": no difference"), "{said}");
        assert!(!said.contains("skipped"), "{said}");
    }
    let said = migrate_really(&folder, "splits", &[]);
    assert!(said.contains("out.train.pack: compared 15 samples with streaming "), "{said}");
    assert!(said.contains("out.val.pack: compared 5 samples with streaming "), "{said}");
    let said = migrate_really(&folder, "splits", &["--split", "val"]);
    assert!(said.contains("compared 5 samples"), "{said}");
    migrate_really(&folder, "pickled", &["--leave-out", "meta"]);
}

#[test]
fn litdata_reads_the_same() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    let Some(_) = python_of_peers("litdata", &["lit.py", "write", &here]) else { return };
    for source in ["raw", "chunk", "sample"] {
        let said = migrate_really(&folder, source, &[]);
        assert!(said.contains("compared 20 samples with litdata ") && said.contains(": no difference"), "{said}");
        assert!(!said.contains("skipped"), "{said}");
    }
    let said = migrate_really(&folder, "splits", &["--split", "train"]);
    assert!(said.contains("compared 20 samples"), "{said}");
}
