//! Tests that damage never goes unnoticed: every command prints the same as before the damage, or an error that names
//! it.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use packds_format::Pack;

use crate::support::{Folder, fixture};

/// The output of a command, and the files that it wrote.
#[derive(Debug, PartialEq)]
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
    files: BTreeMap<String, Vec<u8>>,
}

/// A byte with a checksum, and the name of its part in errors.
struct Place {
    name: String,
    at: u64,
}

/// The first byte of every section that opening a pack does not check, of every column, and of the first chunk.
fn places(bytes: &[u8]) -> Vec<Place> {
    let pack = Pack::open(bytes).unwrap();
    let sections = pack.one().unwrap().sections().iter().filter(|s| s.len > 0);
    let sections = sections.map(|s| (format!("section {}", s.tag), s.offset));
    let columns = pack.one().unwrap().columns().iter().filter(|c| c.len > 0);
    let columns = columns.map(|c| {
        let name = &pack.schema().fields()[c.field].name;
        (format!("column `{name}`"), c.offset)
    });
    let chunk = pack.chunk_entry(0).ok();
    let chunk = chunk.map(|entry| ("chunk 0".to_owned(), entry.offset));
    let all = sections.chain(columns).chain(chunk);
    all.map(|(name, at)| Place { name, at }).collect()
}

const COMMANDS: &[&[&str]] = &[
    &["info", "a.pack"],
    &["info", "a.pack", "--json"],
    &["head", "a.pack"],
    &["labels", "a.pack"],
    &["labels", "a.pack", "--json"],
    &["show", "a.pack", "-o", "out/sheet.png"],
    &["extract", "a.pack", "out/files"],
    &["subset", "a.pack", "out/b.pack"],
    &["merge", "a.pack", "a.pack", "out/b.pack"],
    &["export", "a.pack", "out/set", "--to", "webdataset"],
    &["export", "a.pack", "out/set", "--to", "image-folder"],
    &["verify", "a.pack"],
];

fn run(folder: &Folder, bytes: &[u8], command: &[&str]) -> Outcome {
    fs::write(folder.path("a.pack"), bytes).unwrap();
    let out = folder.path("out");
    fs::create_dir(&out).unwrap();
    let ran = folder.packds(command);
    let files = folder.files("out").into_iter();
    let files = files.map(|name| (name.clone(), fs::read(out.join(name)).unwrap()));
    let outcome = Outcome {
        code: ran.code,
        // A report contains a duration, which varies.
        stdout: match command[0] {
            "export" | "extract" | "merge" | "show" | "subset" => String::new(),
            _ => ran.stdout,
        },
        stderr: without_progress(&ran.stderr),
        files: files.collect(),
    };
    fs::remove_dir_all(&out).unwrap();
    outcome
}

/// Removes progress lines, which only slow commands show.
fn without_progress(stderr: &str) -> String {
    let lines = stderr.lines().filter(|line| !line.contains("samples/s"));
    lines.collect::<Vec<_>>().join("\n")
}

/// `verify` must always find the damage.
fn is_right(command: &[&str], expected: &Outcome, found: &Outcome, place: &Place) -> bool {
    let said = format!("{}{}", found.stdout, found.stderr);
    // The exit code means bad data, and the message names the file and the place.
    let is_named = found.code == 1 && ["a.pack", &place.name].iter().all(|word| said.contains(word));
    is_named || (command[0] != "verify" && found == expected)
}

fn compare(packs: &[std::path::PathBuf]) {
    let folder = Folder::new();
    for golden in packs {
        let bytes = fs::read(golden).unwrap();
        let places = places(&bytes);
        for command in COMMANDS {
            let expected = run(&folder, &bytes, command);
            for place in &places {
                let mut damaged = bytes.clone();
                damaged[usize::try_from(place.at).unwrap()] ^= 1;
                let found = run(&folder, &damaged, command);
                assert!(
                    is_right(command, &expected, &found, place),
                    "{}: {} damaged: {command:?}: {found:?}, expected {expected:?}",
                    golden.display(),
                    place.name,
                );
            }
        }
    }
}

#[test]
fn each_command_says_what_it_said_or_names_the_damage() {
    let files = fs::read_dir(fixture("golden/v1")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut packs: Vec<_> = files.filter(|file| file.extension().is_some_and(|e| e == "pack")).collect();
    packs.sort();
    let n = packs.len().div_ceil(4);
    thread::scope(|scope| {
        for some in packs.chunks(n) {
            scope.spawn(|| compare(some));
        }
    });
}
