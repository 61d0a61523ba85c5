//! What the system may refuse, and what may make whoever reads it wait for ever: threads, pipes, damaged heaps.

#![cfg(test)]

use std::fs;
use std::process::Command;

use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{Folder, Ran, SamplePack, binary, fixture};

/// Runs the command as [`Folder::packds`] does, and ends it where it hangs.
fn within_a_minute(folder: &Folder, args: &[&str]) -> Ran {
    let mut command = Command::new("timeout");
    command.arg("60").arg(binary()).args(args);
    let output = command.current_dir(folder.path("")).output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn pipe(folder: &Folder, name: &str) {
    mknodat(CWD, folder.path(name), FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn commands_work_where_no_thread_can_start() {
    let folder = Folder::new();
    let images = fs::canonicalize(fixture("images/folder")).unwrap();
    let images = images.to_str().unwrap();
    let manifest = format!("path\n{images}/cat/a.jpg\n{images}/cat/a.jpg\n");
    fs::write(folder.path("m.csv"), manifest).unwrap();
    let formats = ["zarr", "parquet", "tar", "npz", "h5"];
    let mut runs = vec![
        vec!["convert", images, "a.pack", "--resize", "32x32"],
        vec!["convert", "m.csv", "m.pack", "--root", images],
        vec!["verify", "a.pack"],
        vec!["extract", "a.pack", "files"],
    ];
    let outputs: Vec<(String, String)> = formats
        .iter()
        .map(|format| (format!("a.{format}"), format!("{format}.pack")))
        .collect();
    for (exported, pack) in &outputs {
        runs.push(vec!["export", "a.pack", exported]);
        runs.push(vec!["convert", exported, pack]);
    }
    for args in runs {
        let mut command = folder.command(&args);
        // No address space has room for such a stack.
        let output = command
            .env("RUST_MIN_STACK", (1_u64 << 50).to_string())
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    }
}

#[test]
fn a_pipe_among_the_files_of_any_format_is_refused_and_nothing_waits() {
    for (format, name) in [
        ("webdataset", "train-0.tar"),
        ("tfrecord", "a.tfrecord"),
        ("parquet", "a.parquet"),
        ("arrow", "a.arrow"),
        ("hdf5", "a.h5"),
        ("npz", "a.npz"),
        ("pt", "a.pt"),
        ("safetensors", "a.safetensors"),
        ("lmdb", "data.mdb"),
        ("zarr", "zarr.json"),
        ("npy", "a.npy"),
        ("cifar", "data_batch_1"),
        ("mnist", "train-images-idx3-ubyte"),
        ("manifest", "m.csv"),
    ] {
        let folder = Folder::new();
        fs::create_dir(folder.path("in")).unwrap();
        pipe(&folder, &format!("in/{name}"));
        for source in ["in".to_owned(), format!("in/{name}")] {
            let ran = within_a_minute(&folder, &["convert", &source, "a.pack", "--from", format]);
            assert!(matches!(ran.code, 1 | 2), "{format}: {ran:?}");
        }
    }
}

#[test]
fn a_pipe_beside_the_images_is_refused_or_left_out() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("in/cat")).unwrap();
    fs::copy(
        fixture("images/folder/cat/a.jpg"),
        folder.path("in/cat/a.jpg"),
    )
    .unwrap();
    pipe(&folder, "in/packds.json");
    let ran = within_a_minute(&folder, &["convert", "in", "a.pack"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    pipe(&folder, "in/pipe.jpg");
    fs::write(folder.path("in/m.csv"), "path\ncat/a.jpg\npipe.jpg\n").unwrap();
    let ran = within_a_minute(&folder, &["convert", "in/m.csv", "b.pack"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = "line 3: not a regular file: in/pipe.jpg";
    assert!(ran.stderr.contains(expected), "{ran:?}");
    // In the place of a pack, and where extracted files go.
    pipe(&folder, "pipe.pack");
    let ran = within_a_minute(&folder, &["verify", "pipe.pack"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("not a regular file"),
        "{ran:?}"
    );
    let ran = within_a_minute(&folder, &["extract", "a.pack", "out"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let file = format!("out/{}", folder.files("out")[0]);
    fs::remove_file(folder.path(&file)).unwrap();
    pipe(&folder, &file);
    let ran = within_a_minute(&folder, &["extract", "a.pack", "out", "--force"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("not a regular file"),
        "{ran:?}"
    );
}

#[test]
fn damaged_texts_of_hdf5_attributes_are_an_error() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    folder.packds(&["export", "a.pack", "a.h5"]).ok();
    let whole = fs::read(folder.path("a.h5")).unwrap();
    let heaps: Vec<usize> = (0..whole.len() - 4)
        .filter(|at| whole[*at..].starts_with(b"GCOL"))
        .collect();
    assert!(!heaps.is_empty());
    for heap in heaps {
        // A length that leads the library back to the same object, for ever.
        let mut damaged = whole.clone();
        damaged[heap + 24..heap + 32].copy_from_slice(&(u64::MAX - 15).to_le_bytes());
        fs::write(folder.path("b.h5"), &damaged).unwrap();
        let ran = within_a_minute(&folder, &["convert", "b.h5", "b.pack"]);
        assert!(
            ran.code == 1 && ran.stderr.contains("more than the heap"),
            "{ran:?}"
        );
    }
}
