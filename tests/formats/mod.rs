//! Every format in both directions, with its Python library.

#![cfg(test)]

mod archive;
mod array_record;
mod arrays;
mod bands;
mod beton;
mod coco;
mod divided;
mod downloads;
mod folders;
mod hdf5;
mod image_folder;
mod items;
mod layouts;
mod lists;
mod lit;

mod lmdb;
mod mds;
mod objects;
mod one_per_file;
mod people;
mod pictures;
mod planned;
mod published;
mod records;
mod roots;
mod scientific;
mod table;
mod tensors;
mod texts;
mod tfrecord;
mod versions;
mod webdataset;
mod zarr;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the scripts.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats")
}

/// Runs a script in this folder with the test clients' Python. Returns its output.
pub(crate) fn python(args: &[&str]) -> String {
    run(&clients(), args)
}

/// Like [`python`], with the first Python that has `module`: the test clients' or the system's. If neither has it,
/// prints a message and returns `None`, or fails if `PACKDS_REQUIRE_TORCH` is 1.
pub(crate) fn python_with(module: &str, args: &[&str]) -> Option<String> {
    let has = |python: &PathBuf| {
        let tried = Command::new(python).args(["-c", &format!("import {module}")]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let found = [clients(), PathBuf::from("/usr/bin/python3")].into_iter().find(has);
    if found.is_none() {
        let required = std::env::var_os("PACKDS_REQUIRE_TORCH").is_some_and(|value| value == "1");
        assert!(!required, "no Python has {module}");
        eprintln!("SKIPPED: no Python has {module}; scripts/setup installs it");
    }
    found.map(|python| run(&python, args))
}

/// Like [`python`], with the Python of the loaders for comparison. If it lacks `module`, prints a message and returns
/// `None`.
pub(crate) fn python_of_peers(module: &str, args: &[&str]) -> Option<String> {
    let python = peers();
    let tried = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no Python has {module}; bench/setup-peers installs it");
        return None;
    }
    Some(run(&python, args))
}

/// The Python of the loaders for comparison.
pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/.venv/bin/python")
}

/// The Python of the test clients.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python")
}

fn run(python: &Path, args: &[&str]) -> String {
    let output = Command::new(python).current_dir(scripts()).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?} (scripts/setup installs the modules): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
