//! Every format in and out, against its real Python client.

#![cfg(test)]

mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this test's scripts.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats")
}

/// Runs a script of this folder with the test clients' Python; returns what it printed.
pub(crate) fn python(args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join(".venv/bin/python"))
        .current_dir(scripts())
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
