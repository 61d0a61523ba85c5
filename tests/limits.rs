//! Threads and writes that the system refuses, and sources that could block a reader forever: pipes, damaged heaps.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{Folder, Ran, SamplePack, binary, fixture};

/// Runs the command like [`Folder::packds`], and kills it if it hangs.
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
        vec!["subset", "a.pack", "subset.pack"],
        vec!["merge", "a.pack", "a.pack", "merged.pack"],
    ];
    let outputs: Vec<(String, String)> =
        formats.iter().map(|format| (format!("a.{format}"), format!("{format}.pack"))).collect();
    for (exported, pack) in &outputs {
        runs.push(vec!["export", "a.pack", exported]);
        runs.push(vec!["convert", exported, pack]);
    }
    runs.push(vec!["export", "a.pack", "b.zarr", "--codec", "blosc", "--chunk", "2", "--shard", "4"]);
    runs.push(vec!["convert", "b.zarr", "b.pack"]);
    for args in runs {
        let mut command = folder.command(&args);
        // A stack of this size does not fit in any address space.
        let output = command.env("RUST_MIN_STACK", (1_u64 << 50).to_string()).output();
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
    fs::copy(fixture("images/folder/cat/a.jpg"), folder.path("in/cat/a.jpg")).unwrap();
    pipe(&folder, "in/notes.txt");
    let ran = within_a_minute(&folder, &["convert", "in", "a.pack"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    pipe(&folder, "in/pipe.jpg");
    fs::write(folder.path("in/m.csv"), "path\ncat/a.jpg\npipe.jpg\n").unwrap();
    let ran = within_a_minute(&folder, &["convert", "in/m.csv", "b.pack"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = "in/pipe.jpg: not a regular file, named in line 3 of in/m.csv";
    assert!(ran.stderr.contains(expected), "{ran:?}");
    // A pipe in place of a pack, and of an extracted file.
    pipe(&folder, "pipe.pack");
    let ran = within_a_minute(&folder, &["verify", "pipe.pack"]);
    assert!(ran.code == 2 && ran.stderr.contains("not a regular file"), "{ran:?}");
    let ran = within_a_minute(&folder, &["extract", "a.pack", "out"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let file = format!("out/{}", folder.files("out")[0]);
    fs::remove_file(folder.path(&file)).unwrap();
    pipe(&folder, &file);
    let ran = within_a_minute(&folder, &["extract", "a.pack", "out", "--force"]);
    assert!(ran.code == 2 && ran.stderr.contains("not a regular file"), "{ran:?}");
}

/// Replaces `name` with a pipe, and then with a broken link. Both make `source` fail.
fn is_refused_without(folder: &Folder, source: &str, name: &str) {
    for put in ["pipe", "link"] {
        let path = folder.path(name);
        if path.is_file() {
            fs::remove_file(&path).unwrap();
        }
        match put {
            "pipe" => pipe(folder, name),
            _ => symlink("nowhere", &path).unwrap(),
        }
        let ran = within_a_minute(folder, &["convert", source, "b.pack"]);
        fs::remove_file(&path).unwrap();
        let last = name.rsplit('/').next().unwrap();
        assert!(matches!(ran.code, 1 | 2) && ran.stderr.contains(last), "{source} with a {put} as {name}: {ran:?}");
        assert!(!folder.path("b.pack").exists(), "{source}: {name}");
    }
}

#[test]
fn no_file_that_an_export_wrote_is_missing_without_a_word() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    for (format, more) in [
        ("zarr", &["--zarr-version", "2"][..]),
        ("zarr", &[]),
        ("npy", &[]),
        ("image-folder", &[]),
        ("webdataset", &[]),
        ("tfrecord", &[]),
        ("parquet", &[]),
    ] {
        let export = |out: &str| {
            let mut args = vec!["export", "a.pack", out, "--to", format];
            args.extend(more);
            folder.packds(&args).ok();
        };
        export("out");
        let names = folder.files("out");
        for name in &names {
            // Missing images are only reported as skipped, so only packds.json is tested.
            if format == "image-folder" && name != "packds.json" {
                continue;
            }
            let kept = fs::read(folder.path(&format!("out/{name}"))).unwrap();
            is_refused_without(&folder, "out", &format!("out/{name}"));
            fs::write(folder.path(&format!("out/{name}")), kept).unwrap();
        }
        folder.packds(&["convert", "out", "b.pack"]);
        assert!(folder.path("b.pack").exists(), "{format} {more:?}");
        fs::remove_file(folder.path("b.pack")).unwrap();
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

#[test]
fn labels_and_class_names_beside_images_are_not_missing_without_a_word() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    for name in ["x_train.h5", "x_train.npz", "x_train.pt", "x_train.safetensors"] {
        folder.packds(&["export", "a.pack", name]).ok();
        is_refused_without(&folder, name, &name.replacen("x", "y", 1));
    }
    folder.packds(&["export", "a.pack", "out", "--to", "npy"]).ok();
    fs::rename(folder.path("out/image.npy"), folder.path("x_train.npy")).unwrap();
    for name in ["y_train.npy", "labels.npy", "x_train.json"] {
        is_refused_without(&folder, "x_train.npy", name);
    }
    // One image each of MNIST and CIFAR, of 1 x 1 and 32 x 32 pixels.
    fs::create_dir(folder.path("mnist")).unwrap();
    let idx = [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7];
    fs::write(folder.path("mnist/train-images-idx3-ubyte"), idx).unwrap();
    for name in ["train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"] {
        is_refused_without(&folder, "mnist", &format!("mnist/{name}"));
    }
    fs::create_dir(folder.path("cifar")).unwrap();
    fs::write(folder.path("cifar/data_batch_1.bin"), [0; 3073]).unwrap();
    for name in ["data_batch_2.bin", "test_batch.bin", "batches.meta.txt", "batches.meta"] {
        is_refused_without(&folder, "cifar", &format!("cifar/{name}"));
    }
}

#[test]
fn what_stands_in_the_way_of_an_output_is_named() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    fs::write(folder.path("file"), "precious").unwrap();
    symlink("circle", folder.path("circle")).unwrap();
    for (args, expected) in [
        (&["extract", "a.pack", "file"][..], "this is a file"),
        (&["export", "a.pack", "circle", "--to", "hdf5", "--force"], "a link that leads back to itself"),
    ] {
        let ran = folder.packds(args);
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{args:?}: {ran:?}");
    }
    assert_eq!(fs::read(folder.path("file")).unwrap(), b"precious");
    // The text of this error comes from the HDF5 library.
    let command = "ulimit -f 0; exec \"$0\" export a.pack a.h5 2>&1";
    let mut run = Command::new("bash");
    run.args(["-c", command, binary().to_str().unwrap()]);
    let output = run.current_dir(folder.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("File too large") && said.contains("ulimit -f") && !said.contains("H5F"), "{said}");
}

#[test]
fn damaged_texts_of_hdf5_attributes_are_an_error() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    folder.packds(&["export", "a.pack", "a.h5"]).ok();
    let whole = fs::read(folder.path("a.h5")).unwrap();
    let heaps: Vec<usize> = (0..whole.len() - 4).filter(|at| whole[*at..].starts_with(b"GCOL")).collect();
    assert!(!heaps.is_empty());
    for heap in heaps {
        // A length with which the library would read the same object again and again.
        let mut damaged = whole.clone();
        damaged[heap + 24..heap + 32].copy_from_slice(&(u64::MAX - 15).to_le_bytes());
        fs::write(folder.path("b.h5"), &damaged).unwrap();
        let ran = within_a_minute(&folder, &["convert", "b.h5", "b.pack"]);
        assert!(ran.code == 1 && ran.stderr.contains("extends past the end of the heap"), "{ran:?}");
    }
}

/// Writes a dataset of MDS with `n` shards of one image each.
fn many_shards(folder: &Folder, name: &str, n: usize) {
    let image = fs::read(fixture("images/folder/cat/a.jpg")).unwrap();
    let word = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let (start, end) = (12, 12 + 4 + image.len());
    let shard = [&word(1)[..], &word(start), &word(end), &word(image.len()), &image].concat();
    fs::create_dir(folder.path(name)).unwrap();
    let entry = |number: usize| {
        let basename = format!("shard.{number:05}.mds");
        fs::write(folder.path(&format!("{name}/{basename}")), &shard).unwrap();
        serde_json::json!({
            "version": 2, "format": "mds", "column_names": ["image"], "column_encodings": ["jpeg"], "column_sizes": [null],
            "compression": null, "raw_data": {"basename": basename, "bytes": shard.len()}, "zip_data": null, "samples": 1,
        })
    };
    let index = serde_json::json!({"version": 2, "shards": (0..n).map(entry).collect::<Vec<_>>()});
    fs::write(folder.path(&format!("{name}/index.json")), index.to_string()).unwrap();
}

#[test]
fn more_shards_than_files_that_may_be_open_are_read() {
    let folder = Folder::new();
    many_shards(&folder, "set", 100);
    let mut run = Command::new("bash");
    run.args(["-c", "ulimit -n 64; exec \"$0\" convert set a.pack --jobs 2", binary().to_str().unwrap()]);
    let output = run.current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.packds(&["convert", "set", "b.pack"]).ok();
    assert_eq!(fs::read(folder.path("a.pack")).unwrap(), fs::read(folder.path("b.pack")).unwrap());
}
