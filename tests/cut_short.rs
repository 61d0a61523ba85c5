//! Packs that are cut short while a command reads them.

#![cfg(test)]

use std::fs::{self, OpenOptions};
use std::process::Stdio;
use std::thread;

use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{Folder, SamplePack};

#[test]
fn a_pack_cut_short_while_it_is_extracted_ends_in_an_error() {
    let folder = Folder::new();
    let pack = SamplePack {
        n_samples: 5000,
        ..SamplePack::default()
    };
    pack.write(&folder, "out.pack");
    // The second sample's file is a pipe: the command waits in it until somebody reads.
    let pipe = folder.path("files/dog/0001-img-1.png");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
    let command = folder
        .command(&["extract", "out.pack", "files", "--force"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.path("files/cat/0000-img-0.png").exists() {
        thread::yield_now();
    }
    let mut file = OpenOptions::new();
    file.write(true);
    file.open(folder.path("out.pack"))
        .unwrap()
        .set_len(4096)
        .unwrap();
    let reader = file.read(true).open(&pipe).unwrap();
    let output = command.wait_with_output().unwrap();
    drop(reader);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{} {stderr}", output.status);
    assert!(stderr.contains("changed while it was read"), "{stderr}");
}
