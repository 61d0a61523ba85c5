//! Damaged files of every format give an error or the right samples, never a panic, a hang or unbounded memory.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_convert::source::ListOptions;
use packds_convert::{ConvertOptions, DataFormat, OnError, convert};
use packds_format::hash_bytes;

use crate::support::{Folder, fixture};

/// For each format: the target of an export, the file in it to damage, and further arguments.
const FILES: [(&str, &str, &str, &[&str]); 13] = [
    ("npy", "out.npy", "out.npy", &[]),
    ("npz", "out.npz", "out.npz", &[]),
    ("npz", "out.npz", "out.npz", &["--codec", "gzip"]),
    ("pt", "out.pt", "out.pt", &[]),
    ("safetensors", "out.safetensors", "out.safetensors", &[]),
    ("hdf5", "out.h5", "out.h5", &["--codec", "gzip", "--chunk", "2"]),
    ("zarr", "out.zarr", "out.zarr/image/zarr.json", &["--codec", "zstd", "--chunk", "2"]),
    ("zarr", "out.zarr", "out.zarr/image/c.0.0.0.0", &["--codec", "zstd", "--chunk", "2"]),
    ("parquet", "out.parquet", "out.parquet", &[]),
    ("arrow", "out.arrow", "out.arrow", &[]),
    ("webdataset", "out.tar", "out.tar", &[]),
    ("tfrecord", "out.tfrecord", "out.tfrecord", &[]),
    ("lmdb", "out.lmdb", "out.lmdb/data.mdb", &[]),
];

/// Number of damaged versions of each file.
const ROUNDS: u64 = 150;
/// Time limit for each damaged version.
const PATIENCE: Duration = Duration::from_secs(20);
/// Limit of this process's memory growth during the whole test.
const MEMORY_BYTES: u64 = 2 << 30;

/// Changes, truncates, repeats or replaces bytes with extreme numbers, depending on `seed`.
fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let draw = |k: u64, n: usize| {
        let hash = hash_bytes(seed, &k.to_le_bytes());
        usize::try_from(hash % u64::try_from(n.max(1)).unwrap()).unwrap()
    };
    let mut bytes = bytes.to_vec();
    // Formats store their most important numbers at the start and end.
    let place = |k: u64, len: usize| match draw(k, 3) {
        0 => draw(k + 1, len.min(512)),
        1 => len - 1 - draw(k + 1, len.min(2048)),
        _ => draw(k + 1, len),
    };
    match draw(0, 5) {
        0 => bytes.truncate(draw(1, bytes.len())),
        1 => {
            let at = place(10, bytes.len());
            let end = (at + 8).min(bytes.len());
            let value = [0_u64, u64::MAX, 1 << 60, 1 << 31, 1 << 16][draw(11, 5)];
            bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
        }
        2 => {
            let at = place(20, bytes.len());
            let piece = bytes[at..(at + 64).min(bytes.len())].to_vec();
            let to = place(30, bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => {
            for k in 0..1 + u64::try_from(draw(1, 4)).unwrap() {
                let at = place(40 + 10 * k, bytes.len());
                bytes[at] ^= 1 << draw(41 + 10 * k, 8);
            }
        }
    }
    bytes
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

fn try_convert(source: &Path, format: DataFormat, out: PathBuf) -> Result<u64, String> {
    let options = ConvertOptions {
        list: ListOptions { from: Some(format), jobs: 2, ..ListOptions::default() },
        on_error: OnError::Skip,
        force: true,
        jobs: 2,
        max_pixels: 1 << 24,
        ..ConvertOptions::default()
    };
    let result = convert(source, &out, &options, &());
    result.map(|report| report.n_samples).map_err(|error| error.to_string())
}

#[test]
fn damaged_files_of_every_format_are_errors_and_nothing_worse() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    let ran = folder.packds(&["convert", source.to_str().unwrap(), "in.pack"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let before = resident_bytes();
    for (name, target, file, args) in FILES {
        let all: Vec<&str> = ["export", "in.pack", target].iter().chain(args).copied().collect();
        let ran = folder.packds(&all);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        let (target, file) = (folder.path(target), folder.path(file));
        let whole = fs::read(&file).unwrap();
        let (mut refused, mut taken) = (0, 0);
        for round in 0..ROUNDS {
            fs::write(&file, damaged(&whole, round)).unwrap();
            let started = Instant::now();
            match try_convert(&target, name.parse().unwrap(), folder.path("out.pack")) {
                Ok(_) => taken += 1,
                Err(message) => {
                    assert!(!message.is_empty(), "{name} {round}");
                    refused += 1;
                }
            }
            assert!(started.elapsed() < PATIENCE, "{name} {round}: {:?}", started.elapsed());
        }
        assert!(refused > 0 && refused + taken == ROUNDS, "{name}: {refused} refused, {taken} taken");
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < MEMORY_BYTES, "{name}: {grown} bytes");
        let _ = fs::remove_dir_all(&target);
        let _ = fs::remove_file(&target);
    }
}
