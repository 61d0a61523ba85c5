//! Exports each golden pack to each format and converts it back. Compares fields, types, roles, classes and values.
//!
//! `fixtures/listings/NAME.txt` contains the results for the golden pack NAME. If they change, users' files are read
//! differently, so the change belongs in the changelog.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use packds_convert::{ConvertError, ConvertOptions, DataFormat, ExportOptions, convert, export};
use packds_format::{Pack, crc32c};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Exports a pack to `format`, and converts the result back to a pack. Also returns the number of warnings.
fn there_and_back(
    pack: &Pack<Vec<u8>>,
    format: DataFormat,
    folder: &Path,
) -> Result<(Pack<Vec<u8>>, usize), ConvertError> {
    let mut target = folder.join(format.name());
    if let Some(extension) = format.extensions().first() {
        target.set_extension(extension);
    }
    let options = ExportOptions { to: Some(format), ..ExportOptions::default() };
    export(pack, &target, &options, &())?;
    let output = folder.join(format!("{}.pack", format.name()));
    let options = ConvertOptions { keep_order: true, jobs: 2, ..ConvertOptions::default() };
    let report = convert(&target, &output, &options, &())?;
    let back = Pack::open(std::fs::read(output).unwrap()).unwrap();
    Ok((back, report.warnings.len()))
}

/// One line per field, and one for paths and classes.
fn describe(pack: &Pack<Vec<u8>>, out: &mut String) {
    for (number, field) in pack.schema().fields().iter().enumerate() {
        let mut items = Vec::new();
        for sample in 0..pack.n_samples() {
            let item = pack.item(number, sample).unwrap();
            items.extend_from_slice(&u64::try_from(item.len()).unwrap().to_le_bytes());
            items.extend_from_slice(&item);
        }
        let json = serde_json::to_string(field).unwrap();
        writeln!(out, "  {json} {:08x}", crc32c(&items)).unwrap();
    }
    for classes in pack.classes().unwrap() {
        writeln!(out, "  classes of {}: {:?}", classes.field, classes.names).unwrap();
    }
    let paths: Vec<String> = (0..pack.n_samples())
        .map(|sample| pack.path(sample).unwrap().unwrap_or_default())
        .map(|path| String::from_utf8_lossy(&path).into_owned())
        .collect();
    let (first, last) = (paths.first(), paths.last());
    writeln!(out, "  {} samples, paths {first:?} to {last:?}", paths.len()).unwrap();
}

fn found(name: &str) -> String {
    let bytes = std::fs::read(fixtures().join("golden/v1").join(format!("{name}.pack"))).unwrap();
    let pack = Pack::open(bytes).unwrap();
    let mut out = String::new();
    for format in DataFormat::ALL.into_iter().filter(|format| format.is_sink()) {
        let folder = tempfile::tempdir().unwrap();
        match there_and_back(&pack, format, folder.path()) {
            Ok((back, warnings)) => {
                writeln!(out, "{format}: {warnings} warnings").unwrap();
                describe(&back, &mut out);
            }
            Err(_) => writeln!(out, "{format}: refused").unwrap(),
        }
    }
    out
}

#[test]
fn golden_packs_come_back_from_each_format_as_they_always_did() {
    let list = std::fs::read_to_string(fixtures().join("golden/v1/list.txt")).unwrap();
    let names = list.lines().filter_map(|line| line.split(' ').next());
    let mut changed = Vec::new();
    for name in names {
        let expected = fixtures().join("listings").join(format!("{name}.txt"));
        let expected = std::fs::read_to_string(expected).unwrap_or_default();
        let found = found(name);
        if found != expected {
            let at = std::env::temp_dir().join(format!("packds-listing-{name}.txt"));
            std::fs::write(&at, &found).unwrap();
            changed.push(at);
        }
    }
    assert!(changed.is_empty(), "these files differ from those in fixtures/listings: {changed:?}");
}
