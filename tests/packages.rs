//! Published packages are self-contained: each has its licences, and needs no file outside the package.
//!
//! These tests do not compile the packages. CONTRIBUTING.md names the command that does.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The files of each published package, by the folder of its crate.
static PACKAGES: LazyLock<BTreeMap<PathBuf, BTreeSet<PathBuf>>> = LazyLock::new(packages);

fn packages() -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let root = root();
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        if manifest.contains("publish = false") {
            continue;
        }
        let output = Command::new(env!("CARGO"))
            .args(["package", "--list", "--allow-dirty", "--offline"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", folder.display());
        let files = String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect();
        found.insert(folder, files);
    }
    assert!(found.len() > 10, "only {} packages", found.len());
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_package_has_its_licences_and_a_page() {
    for (folder, files) in &*PACKAGES {
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            assert!(files.contains(Path::new(file)), "{}: no {file}", folder.display());
        }
    }
}

#[test]
fn no_package_includes_a_file_from_outside() {
    let mut outside = Vec::new();
    let mut n_included = 0;
    for (folder, files) in &*PACKAGES {
        for source in files.iter().filter(|file| file.extension().is_some_and(|e| e == "rs")) {
            let text = std::fs::read_to_string(folder.join(source)).unwrap();
            for call in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
                for included in text.split(call).skip(1) {
                    let name = included.split('"').next().unwrap();
                    let path = normal(&source.with_file_name("").join(name));
                    n_included += 1;
                    if !files.contains(&path) {
                        let folder = folder.file_name().unwrap().to_string_lossy();
                        outside.push(format!("{folder}/{}: {name}", source.display()));
                    }
                }
            }
        }
    }
    assert!(n_included > 3, "only {n_included} found");
    assert!(outside.is_empty(), "not in the package: {outside:?}");
}

/// Removes `..` from a path, together with the folder before it.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
