//! Tests the rules of ARCHITECTURE.md that the compiler does not check: dependencies between crates, and where code may
//! use certain features.
//!
//! Every violation is reported as `file:line: what is wrong; what to do`. `scanner` reads the sources.

#![cfg(test)]

mod scanner;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use scanner::{blank_comments_and_literals, line_at, sources, standard_paths, words};

/// Each workspace crate and the workspace crates that it may depend on, including dev-dependencies.
const ARROWS: &[(&str, &[&str])] = &[
    ("packds-system", &[]),
    ("packds-format", &["packds-system"]),
    ("packds-pixels", &["packds-system"]),
    ("packds-convert", &["packds-system", "packds-format", "packds-pixels"]),
    ("packds-reader", &["packds-system", "packds-format", "packds-pixels"]),
    ("packds-report", &["packds-system", "packds-pixels"]),
    ("packds-doctor", &["packds-system", "packds-format", "packds-pixels", "packds-reader", "packds-report"]),
    ("packds-bench", &["packds-system", "packds-format", "packds-pixels", "packds-convert", "packds-reader"]),
    ("packds-cuda", &["packds-system", "packds-format", "packds-pixels", "packds-reader"]),
    ("packds", &["packds-format", "packds-pixels", "packds-convert", "packds-reader", "packds-doctor", "packds-cuda"]),
    (
        "packds-cli",
        &[
            "packds-system",
            "packds-format",
            "packds-pixels",
            "packds-convert",
            "packds-reader",
            "packds-doctor",
            "packds-report",
            "packds-bench",
        ],
    ),
    (
        "packds-python",
        &[
            "packds-system",
            "packds-format",
            "packds-pixels",
            "packds-convert",
            "packds-reader",
            "packds-doctor",
            "packds-cuda",
            // For the wheel's command, and for reports about packs.
            "packds-cli",
        ],
    ),
];

/// Outside crates that only some workspace crates may use, including dev-dependencies.
const CONFINED: &[(&str, &[&str])] = &[
    ("image", &["packds-pixels"]),
    ("mozjpeg-sys", &["packds-pixels"]),
    ("arrow-array", FORMATS),
    ("bzip2", FORMATS),
    ("cudarc", &["packds-cuda"]),
    ("libloading", &["packds-cuda"]),
    ("clap", &["packds-cli"]),
    ("clap_complete", &["packds-cli"]),
    ("clap_mangen", &["packds-cli"]),
    ("notosans", &["packds-report"]),
    ("resvg", &["packds-report"]),
    ("hdf5", FORMATS),
    ("httparse", &["packds-cli"]),
    ("lzma-rust2", FORMATS),
    ("parquet", FORMATS),
    ("pyo3", &["packds-python"]),
    ("roxmltree", FORMATS),
    ("tar", FORMATS),
    ("zarrs", FORMATS),
    ("zip", FORMATS),
];

/// The crates that read and write other dataset formats: the converter and the benchmark.
const FORMATS: &[&str] = &["packds-convert", "packds-bench"];

/// The only places where literals may name flags of the command, because their messages reach only its users.
const MAY_NAME_FLAGS: &[&str] = &["crates/bench/", "crates/cli/", "crates/python/", "/examples/"];

/// The only places where the word `unsafe` may occur. A path that ends in `/` is a whole folder.
const UNSAFE_FILES: &[&str] = &[
    "crates/bench/src/formats/map.rs",
    "crates/bench/src/formats/read/hdf5.rs",
    "crates/bench/src/formats/read/lmdb.rs",
    "crates/bench/src/load/limit/direct_read.rs",
    // It measures calls to the driver.
    "crates/cuda/examples/gpu_rows/",
    "crates/cuda/src/driver/",
    "crates/cuda/src/resident.rs",
    "crates/cuda/src/staging/",
    "crates/pixels/src/jpeg.rs",
    "crates/pixels/src/jpeg/",
    "crates/pixels/src/ops/avx2.rs",
    "crates/pixels/src/ops/emit/avx2.rs",
    "crates/pixels/src/resize/avx2.rs",
    "crates/pixels/src/resize/avx512.rs",
    // It passes the addresses of tensors.
    "crates/python/src/cuda.rs",
    "crates/reader/src/arena.rs",
    "crates/reader/src/fetch/direct/uring.rs",
    "crates/reader/src/copy.rs",
    "crates/reader/src/mmap.rs",
    "crates/reader/src/sigbus.rs",
    "crates/reader/src/sigbus/",
    "crates/reader/tests/fork.rs",
];

/// Crates that open no files, start no threads and read no clock, and the names that they therefore
/// must not use.
const PURE: &[(&str, &[&str])] =
    &[("crates/format/src", &["std::fs", "std::thread", "std::time"]), ("crates/pixels/src", &["std::fs"])];

/// Crates that open files named by users. A pipe must not make them wait forever.
const OPEN_REGULAR: &[&str] = &["crates/cli/src", "crates/convert/src", "crates/python/src", "crates/reader/src"];

/// The only files in these crates that do not open files through `packds_system`.
const MAY_OPEN: &[&str] = &[
    // Opens only files that the command itself created.
    "crates/cli/src/doctor/training.rs",
    // Opens a folder to sync it.
    "crates/convert/src/output.rs",
    // The HDF5 library opens the file after its type was checked.
    "crates/convert/src/source/hdf5/file.rs",
    // Reads files of the kernel, such as /proc/meminfo.
    "crates/reader/src/available.rs",
];

/// Accessors of a pack that verify no checksum.
const UNCHECKED: &[&str] = &["bytes_unchecked", "chunk_bytes_unchecked", "item_unchecked"];

/// The only places that may call these accessors: each verifies checksums itself, or needs no values. A path that ends
/// in `/` is a whole folder.
const MAY_SKIP_CHECKS: &[&str] = &[
    "crates/bench/src/load/limit/memcpy.rs",
    // Only the trailer of a file is compared with that of its copy.
    "crates/convert/src/set/shard.rs",
    // Whole files are passed to a driver. The loader verifies the parts that are used.
    "crates/cuda/src/staging/",
    // These verify checksums and search for damage.
    "crates/format/src/checked.rs",
    "crates/format/src/file.rs",
    "crates/format/src/pack.rs",
    "crates/format/src/verify.rs",
    // For `checksums="off"`, and for columns and batches, which were verified before.
    "crates/python/src/memory.rs",
    "crates/python/src/pack.rs",
    // The loader decides when to verify.
    "crates/reader/src/fetch/",
    // It only finds the file with the bytes. The modules that use them are named here.
    "crates/reader/src/pack.rs",
    // Only the lengths of items are used, or a device reads the pictures from disk itself.
    "crates/reader/src/loader/options/probe/files.rs",
    "crates/reader/src/loader/pictures/held.rs",
    // `check` verifies everything that was found before.
    "crates/reader/src/sample.rs",
    // The checksum was just computed.
    "crates/reader/src/verify/sizes.rs",
];

const FORBID_UNSAFE: &[&str] = &[
    "crates/system/src/lib.rs",
    "crates/format/src/lib.rs",
    "crates/convert/src/lib.rs",
    "crates/packds/src/lib.rs",
    "crates/report/src/lib.rs",
    "crates/doctor/src/lib.rs",
];
const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];
const MAY_PRINT: &[&str] = &["crates/cli/", "crates/bench/"];
const MAX_LINES: usize = 800;

#[test]
fn dependencies_follow_the_arrows() {
    let mut violations = Vec::new();
    for package in packages() {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            violations.push(format!(
                "{}:1: crate {} is not in ARROWS; add it to tests/architecture.rs and to ARCHITECTURE.md",
                package.manifest, package.name
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let ours = ARROWS.iter().any(|(name, _)| name == dependency);
            if ours && *dependency != package.name && !allowed.contains(&dependency.as_str()) {
                violations.push(format!(
                    "{}:{}: {} may not depend on {dependency}; move what is needed to a crate that both may use",
                    package.manifest,
                    package.line_of(dependency),
                    package.name
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn outside_crates_stay_in_their_rooms() {
    let mut violations = Vec::new();
    for package in packages() {
        for (confined, rooms) in CONFINED {
            let depends = package.dependencies.iter().any(|name| name == confined);
            if depends && !rooms.contains(&package.name.as_str()) {
                violations.push(format!(
                    "{}:{}: {confined} may only be used by {}; call that crate instead",
                    package.manifest,
                    package.line_of(confined),
                    rooms.join(", ")
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn pure_crates_name_no_files_threads_or_clock() {
    let mut violations = Vec::new();
    for (folder, forbidden) in PURE {
        for source in sources(folder).into_iter().filter(|source| !source.is_test) {
            for (line, path) in standard_paths(&source.code) {
                if forbidden.contains(&path.as_str()) {
                    violations.push(format!(
                        "{}:{line}: {path} is not allowed in {folder}; let the caller use it and pass the result in",
                        source.path
                    ));
                }
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn only_the_command_and_the_benchmarks_print() {
    let mut violations = Vec::new();
    for source in sources("crates").into_iter().filter(|source| !source.is_test) {
        // Examples are separate programs, so they may print.
        if source.path.contains("/examples/") || MAY_PRINT.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        for (at, word) in words(&source.code) {
            if PRINTING.contains(&word) && source.code[at + word.len()..].starts_with('!') {
                violations.push(format!(
                    "{}:{}: {word}! in a library; return the value or an error and let crates/cli print it",
                    source.path,
                    line_at(&source.code, at)
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn libraries_name_no_flags_of_the_command() {
    let completions = Command::new(env!("CARGO_BIN_EXE_packds")).args(["completions", "bash"]).output();
    let completions = String::from_utf8(completions.unwrap().stdout).unwrap();
    let is_flag = |flag: &str| completions.split_whitespace().any(|word| word == flag);
    assert!(is_flag("--chunk") && !is_flag("--sort"), "{completions}");
    let mut violations = Vec::new();
    for source in sources("crates").into_iter().filter(|source| !source.is_test) {
        if MAY_NAME_FLAGS.iter().any(|part| source.path.contains(part)) {
            continue;
        }
        let text = &source.literals;
        for (at, _) in text.match_indices("--") {
            let rest = &text[at + 2..];
            let len = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
            let flag = &text[at..at + 2 + len];
            if len > 0 && is_flag(flag) {
                violations.push(format!(
                    "{}:{}: the flag {flag} in a library; use packds_system::Opt, which Python prints as its keyword",
                    source.path,
                    line_at(text, at)
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn unsafe_stays_in_the_named_files() {
    let mut violations = Vec::new();
    for source in ["crates", "tests", "fuzz"].into_iter().flat_map(sources) {
        let named = UNSAFE_FILES
            .iter()
            .any(|file| source.path == *file || (file.ends_with('/') && source.path.starts_with(file)));
        // Tests are included, because a test should use the safe interface rather than `unsafe`.
        for (at, _) in words(&source.all_code).filter(|(_, word)| *word == "unsafe" && !named) {
            violations.push(format!(
                "{}:{}: unsafe outside the files of UNSAFE_FILES; use a safe interface, or add the file there with a reason",
                source.path,
                line_at(&source.all_code, at)
            ));
        }
    }
    assert_none(&violations);
}

#[test]
fn files_of_users_are_opened_by_one_function() {
    let mut violations = Vec::new();
    for source in OPEN_REGULAR.iter().flat_map(|folder| sources(folder)) {
        if source.is_test || MAY_OPEN.contains(&source.path.as_str()) {
            continue;
        }
        for (at, word) in words(&source.code) {
            let rest = &source.code[at + word.len()..];
            let opens = match word {
                "File" => rest.starts_with("::open("),
                "fs" => rest.starts_with("::read(") || rest.starts_with("::read_to_string("),
                _ => false,
            };
            if opens {
                violations.push(format!(
                    "{}:{}: the opened file may be a pipe; use packds_system::open_regular",
                    source.path,
                    line_at(&source.code, at)
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn packs_are_read_unchecked_in_the_named_files_only() {
    let mut violations = Vec::new();
    for source in sources("crates").into_iter().filter(|source| !source.is_test) {
        let named = MAY_SKIP_CHECKS
            .iter()
            .any(|file| source.path == *file || (file.ends_with('/') && source.path.starts_with(file)));
        for (at, word) in words(&source.code).filter(|(_, word)| UNCHECKED.contains(word) && !named) {
            let (path, line) = (&source.path, line_at(&source.code, at));
            violations.push(format!(
                "{path}:{line}: {word} returns bytes that were not compared with a checksum; call the accessor without `_unchecked`, or add the file to MAY_SKIP_CHECKS with a reason"
            ));
        }
    }
    assert_none(&violations);
}

#[test]
fn crates_without_unsafe_forbid_it() {
    let mut violations = Vec::new();
    for path in FORBID_UNSAFE {
        let text = read(&root().join(path));
        if !blank_comments_and_literals(&text).contains("#![forbid(unsafe_code)]") {
            violations.push(format!("{path}:1: #![forbid(unsafe_code)] is missing; add it below the crate's docs"));
        }
    }
    assert_none(&violations);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let mut violations = Vec::new();
    for package in packages() {
        let mut section = "";
        let mut inherits = false;
        for line in package.text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            }
            inherits |= section == "[lints]" && line.replace(' ', "") == "workspace=true";
        }
        if !inherits {
            violations.push(format!(
                "{}:1: the workspace's lints do not apply; add `[lints]` with `workspace = true`",
                package.manifest
            ));
        }
    }
    assert_none(&violations);
}

#[test]
fn no_file_is_longer_than_800_lines() {
    let mut violations = Vec::new();
    for source in ["crates", "tests", "fuzz"].into_iter().flat_map(sources) {
        let n_lines = source.all_code.lines().count();
        if n_lines > MAX_LINES {
            violations.push(format!(
                "{}:{MAX_LINES}: {n_lines} lines, more than {MAX_LINES}; split the file by concept, or move its tests to a separate file",
                source.path
            ));
        }
    }
    assert_none(&violations);
}

struct Package {
    name: String,
    /// The path of the package's Cargo.toml, from the workspace root.
    manifest: String,
    text: String,
    dependencies: Vec<String>,
}

impl Package {
    /// The number of the manifest's line that names `dependency`. 1 if no line does.
    fn line_of(&self, dependency: &str) -> usize {
        let names = |line: &str| {
            line.split(['=', '.', ' ', ']']).next() == Some(dependency) || line.contains(&format!("\"{dependency}\""))
        };
        self.text.lines().position(names).map_or(1, |idx| idx + 1)
    }
}

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `path` from the workspace root, with `/` between its parts.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/")
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let package = |value: &serde_json::Value| {
        let path = fs::canonicalize(value["manifest_path"].as_str().unwrap()).unwrap();
        Package {
            name: text(&value["name"]),
            manifest: relative(&path),
            text: read(&path),
            dependencies: value["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .map(|dependency| text(&dependency["name"]))
                .collect(),
        }
    };
    let packages: Vec<Package> = metadata["packages"].as_array().unwrap().iter().map(package).collect();
    assert!(packages.len() >= ARROWS.len(), "cargo metadata lists only {} crates", packages.len());
    packages
}

fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n\n{}\n", violations.join("\n"));
}
