//! Packs that are truncated while a command reads them.

#![cfg(test)]

use std::fs::OpenOptions;
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Folder, SamplePack};

#[test]
fn a_pack_cut_short_while_it_is_extracted_ends_in_an_error() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 20_000, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    let command = folder
        .command(&["extract", "out.pack", "files"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.path("files/cat").exists() {
        thread::yield_now();
    }
    // Stop the process, so that most files are not written yet.
    let process = Pid::from_child(&command);
    kill_process(process, Signal::STOP).unwrap();
    let mut file = OpenOptions::new();
    file.write(true);
    file.open(folder.path("out.pack")).unwrap().set_len(4096).unwrap();
    kill_process(process, Signal::CONT).unwrap();
    let output = command.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{} {stderr}", output.status);
    assert!(stderr.contains("changed while it was read"), "{stderr}");
}
