//! What a conversion leaves behind when it is cut short: nothing under the final name, and nothing in the way.

#![cfg(test)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use packds_format::Pack;

use crate::support::{binary, fixture, packds, stderr, temp_dir};

/// A folder with enough links to images that converting it takes some seconds.
fn large_source(dir: &Path) -> PathBuf {
    let source = dir.join("source");
    fs::create_dir(&source).unwrap();
    let image = fs::canonicalize(fixture("images/folder/cat/a.jpg")).unwrap();
    (0..20_000).for_each(|i| symlink(&image, source.join(format!("{i:05}.jpg"))).unwrap());
    source
}

fn start(source: &Path, out: &Path) -> Child {
    let mut command = Command::new(binary());
    command.arg("convert").arg(source).arg(out).args([
        "--resize",
        "short:256",
        "--crop",
        "center:224",
        "--jobs",
        "1",
    ]);
    // A group of its own, so that signals reach it and not the test.
    command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the working file has bytes in it.
fn wait_for_bytes(working: &Path) {
    let started = Instant::now();
    while fs::metadata(working).map_or(0, |m| m.len()) < 1 << 20 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the conversion writes nothing"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn ctrl_c_ends_with_one_line_and_leaves_nothing() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let out = dir.path().join("out.pack");
    for name in ["-INT", "-TERM"] {
        let child = start(&source, &out);
        wait_for_bytes(&dir.path().join(".out.pack.packing"));
        signal(&child, name);
        let result = child.wait_with_output().unwrap();
        assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
        assert_eq!(
            stderr(&result),
            "packds: interrupted; nothing was written\n"
        );
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "only the source is left"
        );
    }
}

#[test]
fn a_comparison_that_is_interrupted_removes_the_formats_files() {
    let dir = temp_dir();
    let images = fixture("images/same_size");
    for (signalled, in_work) in [("-INT", true), ("-TERM", false)] {
        let mut command = Command::new(binary());
        command.args(["bench", "formats"]).arg(&images).args([
            "--formats",
            "npy,packds-raw",
            "--cache",
            "warm",
            "--rounds",
            "5",
        ]);
        if in_work {
            command.arg("--work").arg(dir.path());
        }
        let mut child = command
            .env("TMPDIR", dir.path())
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("round 1 of 5") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended by itself");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        signal(&child, signalled);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
        assert!(
            rest.contains("packds: interrupted; no report was written"),
            "{rest}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_killed_conversion_leaves_no_pack_and_the_next_one_succeeds() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let (out, working) = (
        dir.path().join("out.pack"),
        dir.path().join(".out.pack.packing"),
    );
    let mut child = start(&source, &out);
    wait_for_bytes(&working);
    // While it lives, no other conversion may write the same file.
    let second = packds(&["convert", source.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(2));
    let message = format!(
        "packds: {}: another conversion is writing this file\n",
        out.display()
    );
    assert!(stderr(&second).starts_with(&message), "{}", stderr(&second));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.exists());
    let left = fs::read(&working).unwrap();
    assert!(
        matches!(
            Pack::open(left),
            Err(packds_format::FormatError::NoTrailer { .. })
        ),
        "what is left is no pack"
    );
    let images = fixture("images/same_size");
    let next = packds(&["convert", images.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    assert!(out.exists() && !working.exists());
    assert_eq!(Pack::open(fs::read(&out).unwrap()).unwrap().n_samples(), 20);
}

#[test]
fn a_full_disk_ends_with_one_line_and_leaves_nothing() {
    let dir = temp_dir();
    let source = large_source(dir.path());
    let small = dir.path().join("small");
    fs::create_dir(&small).unwrap();
    // A file system of 8 MiB in a mount namespace of its own.
    let script = "mount -t tmpfs -o size=8m none \"$1\" || exit 77; \"$2\" convert \"$3\" \"$1/out.pack\" \
                  --resize 224x224; code=$?; ls -A \"$1\"; exit $code";
    let result = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, "sh"])
        .args([&small, &binary(), &source])
        .output();
    match result {
        Ok(result) if result.status.code() == Some(2) => {
            assert!(
                result.stdout.is_empty(),
                "left behind: {}",
                String::from_utf8_lossy(&result.stdout)
            );
            let text = stderr(&result);
            let expected = format!(
                "packds: {}: No space left on device",
                small.join("out.pack").display()
            );
            assert!(text.starts_with(&expected), "{text}");
        }
        // Only where the system does not let a file system be mounted; anything else is a failure.
        Ok(result) if result.status.code() == Some(77) || stderr(&result).contains("unshare") => {
            println!("SKIPPED: no mount namespaces here: {}", stderr(&result));
        }
        other => panic!("{other:?}"),
    }
}
