//! docs/reference/read_pack.py reads every golden pack as this crate does. It was written from docs/reference/format.md
//! alone.

use std::path::Path;
use std::process::Command;

use packds_format::{Crc32c, FormatError, Pack, Store};
use serde_json::{Value, json};

use crate::cases::cases;
use crate::support::golden_folder;

/// The reference reader's summaries of packs.
fn python(packs: &[std::path::PathBuf]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("PACKDS_PYTHON").map_or(root.join(".venv/bin/python"), Into::into);
    let output = Command::new(&python)
        .arg(root.join("docs/reference/read_pack.py"))
        .args(packs)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}: run scripts/setup", python.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("ModuleNotFoundError"), "{stderr}run scripts/setup");
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same summary, made with this crate.
fn summary(pack: &Pack<Vec<u8>>) -> Value {
    let mut crcs = serde_json::Map::new();
    for (number, field) in pack.schema().fields().iter().enumerate() {
        let mut crc = Crc32c::new();
        if field.store == Store::Column {
            crc.update(&pack.column(number).unwrap().to_bytes());
        }
        for chunk in (0..pack.n_chunks()).filter(|_| field.store == Store::Body) {
            let bytes = pack.chunk_bytes_unchecked(chunk).unwrap();
            let each = |_, item: &[u8]| {
                crc.update(item);
                Ok::<(), FormatError>(())
            };
            pack.for_each_item(number, chunk, bytes, each).unwrap();
        }
        crcs.insert(field.name.clone(), crc.value().into());
    }
    let (mut paths, mut n_paths) = (Crc32c::new(), 0);
    pack.for_each_path(|_, path| {
        paths.update(path);
        paths.update(&[0]);
        n_paths += 1;
        Ok::<(), FormatError>(())
    })
    .unwrap();
    json!({
        "n_samples": pack.n_samples(), "n_chunks": pack.n_chunks(), "crc32c": crcs, "n_paths": n_paths,
        "paths_crc32c": paths.value(), "classes": pack.classes().unwrap(), "stats": pack.stats().unwrap(),
    })
}

#[test]
fn the_reference_reader_reads_every_golden_pack_alike() {
    let names: Vec<&str> = cases().unwrap().iter().map(|case| case.name).collect();
    let files: Vec<_> = names.iter().map(|n| golden_folder().join(format!("{n}.pack"))).collect();
    let summaries = python(&files);
    assert_eq!(summaries.len(), files.len());
    for ((name, file), found) in names.iter().zip(&files).zip(summaries) {
        let pack = Pack::open(std::fs::read(file).unwrap()).unwrap();
        assert_eq!(found, summary(&pack), "{name}");
    }
}

#[test]
fn the_reference_reader_reads_the_golden_set_alike() {
    let folder = golden_folder().join("two_shards.packs");
    let bytes = std::fs::read(folder.join("manifest-00000002.json")).unwrap();
    let manifest = packds_format::Manifest::parse(&bytes, packds_format::Limits::default()).unwrap();
    let shards = folder.clone();
    let open =
        move |_, entry: &packds_format::ShardEntry| std::fs::read(shards.join(&entry.path)).map_err(FormatError::Open);
    let set = Pack::open_set(manifest, packds_format::Limits::default(), open).unwrap();
    // The folder of the set means its latest version.
    let version = folder.join("manifest-00000002.json");
    assert_eq!(python(&[folder, version]), [summary(&set), summary(&set)]);
}

#[test]
fn the_reference_reader_finds_a_flipped_bit() {
    let mut bytes = std::fs::read(golden_folder().join("full_footer.pack")).unwrap();
    bytes[8200] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flipped.pack");
    std::fs::write(&file, bytes).unwrap();
    let result = std::panic::catch_unwind(|| python(&[file]));
    let message = *result.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("checksum of chunk 0"), "{message}");
}
