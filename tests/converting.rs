//! Shared by the tests of conversion: running it, sources, and expected results.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use packds_format::Pack;
use packds_pixels::{Color, Crop, DecodeOptions, Decoder, Filter, Geometry, Resize};

use crate::support::{fixture, packds, stderr, stdout};

/// Runs convert and expects success.
pub(crate) fn convert(args: &[&str], source: &Path, output: &Path) {
    let result = run(args, source, output);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
}

pub(crate) fn run(args: &[&str], source: &Path, output: &Path) -> std::process::Output {
    let mut all = vec!["convert", source.to_str().unwrap(), output.to_str().unwrap()];
    all.extend(args);
    packds(&all)
}

pub(crate) fn open(path: &Path) -> Pack<Vec<u8>> {
    Pack::open(fs::read(path).unwrap()).unwrap()
}

pub(crate) fn folder() -> PathBuf {
    fixture("images/folder")
}

pub(crate) fn same_size() -> PathBuf {
    fixture("images/same_size")
}

/// A copy of the image folder, with bad images added. `bad` lists their fixtures and the names of the copies.
pub(crate) fn folder_with_bad(dir: &Path, bad: &[(&str, &str)]) -> PathBuf {
    let source = dir.join("source");
    copy_tree(&folder(), &source);
    for (file, name) in bad {
        fs::copy(fixture("images/bad").join(file), source.join(name)).unwrap();
    }
    source
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The names of everything in a folder, including hidden files.
pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn path_of(pack: &Pack<Vec<u8>>, sample: u64) -> String {
    String::from_utf8(pack.path(sample).unwrap().unwrap()).unwrap()
}

pub(crate) fn column(pack: &Pack<Vec<u8>>, name: &str) -> Vec<i64> {
    let view = pack.column(pack.schema().index_of(name).unwrap()).unwrap();
    (0..pack.n_samples()).map(|i| view.integer(i).unwrap()).collect()
}

/// The pixels of a file after the documented steps of a conversion.
pub(crate) fn pixels(file: &Path, resize: Resize, crop: Crop, filter: Filter, color: Color) -> Vec<u8> {
    let mut decoder = Decoder::new(DecodeOptions { color, ..DecodeOptions::default() });
    let geometry = Geometry { resize, crop, filter, ..Geometry::default() };
    decoder.render(&fs::read(file).unwrap(), &geometry).unwrap().data
}

pub(crate) const CROP_224: Crop = Crop::Center { width: 224, height: 224 };

pub(crate) fn folder_bytes() -> u64 {
    let classes = fs::read_dir(folder()).unwrap().map(|c| c.unwrap().path());
    classes.flat_map(|c| fs::read_dir(c).unwrap()).map(|f| f.unwrap().metadata().unwrap().len()).sum()
}

/// Checks the exit code, the line of the error, and that nothing was printed to stdout.
pub(crate) fn refused(result: &std::process::Output, code: i32, message: &str) {
    let text = stderr(result);
    assert_eq!(result.status.code(), Some(code), "{text}");
    let first = text.lines().find(|l| !l.starts_with("packds: warning")).unwrap_or_default();
    assert_eq!(first, format!("packds: error: {message}"), "{text}");
    assert_eq!(stdout(result), "");
}

/// A manifest `m.csv` with this text, and two copies of an image, `a.jpg` and `b.jpg`.
pub(crate) fn manifest_in(dir: &Path, text: &str) -> PathBuf {
    for name in ["a.jpg", "b.jpg"] {
        fs::copy(folder().join("cat/a.jpg"), dir.join(name)).unwrap();
    }
    let manifest = dir.join("m.csv");
    fs::write(&manifest, text).unwrap();
    manifest
}
