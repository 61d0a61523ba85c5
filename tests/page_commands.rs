//! Runs the commands of pages as they are written, on a small dataset.
//!
//! The tests of the Python package run those of the tutorial and of the cookbook.

#![cfg(test)]

use std::{
    fs::{self, File},
    os::unix::fs::{OpenOptionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use crate::documentation::{commands, pages, root};
use crate::support::{binary, temp_dir};

/// The pages, each with its number of commands.
const PAGES: [(&str, usize); 8] = [
    ("README.md", 3),
    ("docs/explanation/shuffling.md", 2),
    ("docs/how-to/bench-formats.md", 3),
    // Makes a pack that the next page reads.
    ("docs/how-to/doctor.md", 6),
    ("docs/how-to/bench-tune.md", 2),
    ("docs/reference/benchmarks.md", 13),
    ("docs/reference/formats.md", 3),
    ("docs/reference/where.md", 1),
];

/// Options that make measurements short, for the commands that begin with these words. They replace the values on the
/// page.
const SMALL: [(&str, &[(&str, &str)]); 5] = [
    ("bench convert", &[("--rounds", "1")]),
    (
        "bench formats",
        &[
            ("--seconds", "0.05"),
            ("--images", "16"),
            ("--rounds", "1"),
            ("--formats", "npy,packds-raw"),
            ("--batch", "4"),
        ],
    ),
    ("bench load", &[("--seconds", "0.2"), ("--memory", "16MB"), ("--batch", "8")]),
    ("bench tune", &[("--seconds", "0.05"), ("--step-ms", "1"), ("--batch", "4"), ("--jobs", "1")]),
    ("doctor", &[("--seconds", "0.3")]),
];

/// Commands of pages that run scripts of `bench`, and options that make them short. The tests of the Python package run
/// `loaders.py`, which needs PyTorch.
const SCRIPTS: [(&str, &str, &str); 6] = [
    ("bench/python/README.md", "bench/python/run.py --self-test", ""),
    (
        "bench/python/README.md",
        "bench/python/run.py DATA --out peers.json",
        "--peers python-npy,python-h5py --step-ms 0",
    ),
    (
        "bench/python/README.md",
        "packds bench formats DATA --with peers.json",
        "--seconds 0.05 --formats npy,packds-raw",
    ),
    ("bench/python/README.md", "bench/formats DATA --out DIR", "--seconds 0.05 --step-ms 0 --orders chunk"),
    ("bench/README.md", "bench/conversions.py PACK", "--formats npy,webdataset"),
    (
        "bench/README.md",
        "bench/peers.py IMAGES",
        "--out out --raw-images 512 --encoded-images 128 --seconds 0.1 --rounds 1 --jobs 1 --only raw224",
    ),
];
/// Options of all measurements of formats.
const SHORT: &str = "--quick --images 16 --batch 4 --cache warm --jobs 1";

#[test]
fn the_scripts_of_bench_run_as_written() {
    let folder = temp_dir();
    make_sources(folder.path());
    symlink("PACK", folder.path().join("data.pack")).unwrap();
    symlink(root().join("bench"), folder.path().join("bench")).unwrap();
    symlink(binary(), folder.path().join("bin/packds")).unwrap();
    let bins = [folder.path().join("bin"), root().join(".venv/bin"), "/usr/bin".into(), "/bin".into()];
    let path = std::env::join_paths(bins).unwrap();
    // The stand-ins for training programs are not needed here.
    fs::remove_file(folder.path().join("bin/python")).unwrap();
    let pages = pages();
    for (page, command, options) in SCRIPTS {
        assert!(pages[Path::new(page)].contains(command), "{page}: {command}");
        let short = if command.contains(" DATA ") { SHORT } else { "" };
        let line = format!("{} {short} {options}", command.replace("DATA", "data.pack"));
        let output = Command::new("sh")
            .args(["-c", &line])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("PACKDS", binary())
            // The scripts must not find another packds.
            .env("CARGO_TARGET_DIR", folder.path())
            .env_remove("PYTHON")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
    }
    let peers: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("peers.json")).unwrap()).unwrap();
    let rates = peers["runs"].as_array().unwrap().iter().map(|run| run["images_per_s"].as_f64());
    assert!(rates.flatten().count() > 0, "no peer was measured: {peers}");
    assert!(folder.path().join("DIR/report.html").is_file());
}

#[test]
fn the_commands_of_the_pages_run_as_written() {
    let folder = temp_dir();
    make_sources(folder.path());
    let pages = pages();
    for (page, expected) in PAGES {
        let mut n_commands = 0;
        for (line, words) in commands(&pages[Path::new(page)]) {
            let words = small(words);
            let path = format!("{}:/usr/bin:/bin", folder.path().join("bin").display());
            let output = Command::new(binary())
                .args(&words)
                .current_dir(folder.path())
                .env("PATH", path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}:{line}: packds {}: {said}", words.join(" "));
            n_commands += 1;
        }
        assert_eq!(n_commands, expected, "the number of commands in {page}");
    }
}

/// The words of a command with the options of [`SMALL`].
fn small(mut words: Vec<String>) -> Vec<String> {
    let text = words.join(" ");
    let options = SMALL.iter().find(|(command, _)| text.starts_with(command)).map_or(&[][..], |(_, options)| options);
    for (name, value) in options {
        if let Some(place) = words.iter().position(|word| word == name) {
            words[place + 1] = (*value).to_owned();
        } else {
            // A command to run may follow the options.
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            words.splice(end..end, [(*name).to_owned(), (*value).to_owned()]);
        }
    }
    words
}

/// Writes everything that the pages name: images, results of another program, and training programs.
fn make_sources(folder: &Path) {
    for class in ["cat", "dog"] {
        let target = folder.join("imagenet/train").join(class);
        fs::create_dir_all(&target).unwrap();
        for i in 0..130 {
            let photo = root().join("examples/photos/ground/grass.jpg");
            fs::copy(&photo, target.join(format!("{i}.jpg"))).unwrap();
        }
    }
    for name in ["photos", "IMAGES", "DATA", "SRC"] {
        symlink("imagenet/train", folder.join(name)).unwrap();
    }
    for (name, size) in [("cifar.pack", "32x32"), ("images.pack", "224x224")] {
        let words = ["convert", "SRC", name, "--resize", size, "--chunk", "16"];
        let done = Command::new(binary()).args(words).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    fs::rename(folder.join("images.pack"), folder.join("PACK")).unwrap();
    fs::write(folder.join("peers.json"), r#"{"formats": [], "runs": [], "versions": {}}"#).unwrap();
    // Programs that take batches like a training script.
    fs::create_dir(folder.join("bin")).unwrap();
    for (name, pack) in [("python", "train.pack"), ("train_candle", "cifar.pack")] {
        let program = folder.join("bin").join(name);
        let file = File::options().create_new(true).write(true).mode(0o755).open(&program).unwrap();
        let options = "--step-ms 2 --seconds 1 --jobs 1 --prefetch 2 --batch 32";
        let text = format!("#!/bin/sh\nexec {} bench tune {pack} {options}\n", binary().display());
        std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
    }
}
