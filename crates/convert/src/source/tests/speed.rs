//! Time and memory for listing a million files. Ignored by default because it first creates a million links.

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use crate::source::{ListOptions, list};

const N_FILES: usize = 1_000_000;
/// Links per file. An ext4 file can have at most 65000.
const LINKS_PER_FILE: usize = 50_000;

#[test]
#[ignore = "makes a million files; run alone with --release -- --ignored --nocapture"]
fn a_million_files_in_classes_are_listed_fast_and_in_little_memory() {
    measure(1000);
}

#[test]
#[ignore = "makes a million files; run alone with --release -- --ignored --nocapture"]
fn a_million_files_in_one_folder_are_listed_fast_and_in_little_memory() {
    measure(1);
}

#[test]
#[ignore = "makes a million files; run alone with --release -- --ignored --nocapture"]
fn a_manifest_of_a_million_files_is_listed_fast_and_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path(), 1);
    let manifest = folder.path().join("all.csv");
    let mut out = BufWriter::new(fs::File::create(&manifest).unwrap());
    writeln!(out, "path,label,width").unwrap();
    for idx in 0..N_FILES {
        writeln!(out, "n00000000/n00000000_{idx}.JPEG,class {},{idx}", idx % 1000).unwrap();
    }
    out.into_inner().unwrap();
    measure_list(&manifest, 2);
}

fn measure(n_classes: usize) {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path(), n_classes);
    println!("{n_classes} classes");
    for jobs in [1, 2, 2] {
        measure_list(folder.path(), jobs);
    }
}

fn measure_list(source: &Path, jobs: usize) {
    let before = peak_memory_kb();
    let start = Instant::now();
    let listing = list(source, &ListOptions { jobs, ..ListOptions::default() }).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(listing.len(), N_FILES);
    let after = peak_memory_kb();
    println!("{jobs} threads: {seconds:.2} s, peak {before} kB before, {after} kB after");
}

fn make_tree(root: &Path, n_classes: usize) {
    let mut origin = PathBuf::new();
    for idx in 0..N_FILES {
        let class = root.join(format!("n{:08}", idx % n_classes));
        if idx < n_classes {
            fs::create_dir(&class).unwrap();
        }
        let file = class.join(format!("n{:08}_{idx}.JPEG", idx % n_classes));
        if idx % LINKS_PER_FILE == 0 {
            fs::write(&file, b"x").unwrap();
            origin = file;
        } else {
            fs::hard_link(&origin, &file).unwrap();
        }
    }
}

/// The peak memory of this process so far.
fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
