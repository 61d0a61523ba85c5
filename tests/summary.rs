//! What commands print on success, with `--quiet`, `--verbose`, `--color`, and several packs.

#![cfg(test)]

use std::fs;

use serde_json::json;

use crate::converting::copy_tree;
use crate::support::{Folder, SamplePack, fixture};

fn folder_with_images() -> Folder {
    let folder = Folder::new();
    copy_tree(&fixture("images/same_size"), &folder.path("images"));
    folder
}

#[test]
fn success_is_three_lines_and_details_come_when_asked_for() {
    let folder = folder_with_images();
    folder.packds(&["convert", "images", "in.pack"]).ok();
    let commands = [
        ["convert", "images", "out.pack"],
        ["export", "in.pack", "out.h5"],
        ["extract", "in.pack", "files"],
        ["subset", "in.pack", "sub.pack"],
        ["merge", "in.pack", "all.pack"],
    ];
    for command in commands {
        let run = |option: &str| folder.packds(&[&command[..], &["--force", option]].concat()).ok();
        let text = run("--color=auto");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with(&format!("{}: ", command[2])), "{text}");
        assert!(lines[2].starts_with("time     ") && lines[2].ends_with("s/s"), "{text}");
        assert_eq!(run("--quiet"), "");
        assert_eq!(run("-q"), "");
        assert!(folder.path(command[2]).exists());
        let details = run("--verbose");
        assert_eq!(details.contains("\nstages   "), command[0] != "extract", "{details}");
    }
    let verbose = folder.packds(&["convert", "images", "out.pack", "--force", "-v"]).ok();
    for part in ["\npixels   mean ", "\nbytes    ", "\nstages   "] {
        assert!(verbose.contains(part), "{verbose}");
    }
    let ran = folder.packds(&["convert", "images", "out.pack", "-q", "-v"]);
    assert!(ran.code == 2 && ran.stderr.contains("cannot be used with"), "{ran:?}");
}

#[test]
fn quiet_prints_warnings_and_bad_files_all_the_same() {
    let folder = folder_with_images();
    fs::create_dir(folder.path("images/zebra")).unwrap();
    let ran = folder.packds(&["convert", "images", "out.pack", "--quiet"]);
    let expected = "packds: warning: class 'zebra' has no images";
    assert!(ran.code == 0 && ran.stdout.is_empty() && ran.stderr.starts_with(expected), "{ran:?}");
    fs::write(folder.path("images/zebra/a.jpg"), "no image").unwrap();
    let ran = folder.packds(&["convert", "images", "out.pack", "--quiet", "--force", "--on-error", "skip"]);
    assert!(ran.code == 1 && ran.stdout.starts_with("skipped  1 file\nskipped  zebra/a.jpg: "), "{ran:?}");
    SamplePack::default().write(&folder, "in.pack");
    let ran = folder.packds(&["export", "in.pack", "out.npy", "--quiet"]);
    assert!(ran.code == 0 && ran.stdout.is_empty(), "{ran:?}");
    assert!(ran.stderr.starts_with("packds: warning: not kept: "), "{ran:?}");
}

#[test]
fn errors_and_help_are_coloured_only_when_asked_for_in_a_pipe() {
    let folder = Folder::new();
    let red = "packds: \u{1b}[1m\u{1b}[31merror:\u{1b}[0m ";
    for args in [&["info", "none.pack"][..], &["info"], &["info", "none.pack", "--window"]] {
        let ran = folder.packds(&[args, &["--color", "always"]].concat());
        assert!(ran.code == 2 && ran.stderr.starts_with(red), "{ran:?}");
        for choice in ["auto", "never"] {
            let ran = folder.packds(&[args, &["--color", choice]].concat());
            assert!(ran.stderr.starts_with("packds: error: ") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
        }
    }
    assert!(!folder.packds(&["--help"]).ok().contains('\u{1b}'));
    assert!(folder.packds(&["--help", "--color", "always"]).ok().contains("\u{1b}["));
}

#[test]
fn several_packs_have_headings_and_are_a_list_in_json() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    SamplePack { n_samples: 1, ..SamplePack::default() }.write(&folder, "b.pack");
    let one = |command, pack| folder.packds(&[command, pack]).ok();
    for command in ["info", "labels"] {
        let expected =
            format!("==> a.pack <==\n{}\n==> b.pack <==\n{}", one(command, "a.pack"), one(command, "b.pack"));
        assert_eq!(folder.packds(&[command, "a.pack", "b.pack"]).ok(), expected);
    }
    let both = folder.packds(&["verify", "a.pack", "b.pack"]).ok();
    assert_eq!(both, one("verify", "a.pack") + &one("verify", "b.pack"));
    assert!(both.ends_with(" KiB\n") && both.contains("b.pack: ok: 1 sample in 1 chunk, "), "{both}");
    for command in ["info", "labels", "verify"] {
        let alone = |pack| folder.packds(&[command, pack, "--json"]).json();
        let list = folder.packds(&[command, "a.pack", "b.pack", "--json"]).json();
        assert_eq!(list, json!([alone("a.pack"), alone("b.pack")]));
        assert_eq!([&list[0]["path"], &list[1]["path"]], ["a.pack", "b.pack"]);
    }
}

#[test]
fn the_exit_code_of_several_packs_is_the_worst_and_every_pack_is_read() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "a.pack");
    SamplePack::default().write(&folder, "bad.pack");
    folder.flip("bad.pack", 8192);
    let ran = folder.packds(&["verify", "bad.pack", "a.pack"]);
    assert!(
        ran.code == 1 && ran.stdout.contains("a.pack: ok: ") && ran.stdout.contains("bad.pack: damaged"),
        "{ran:?}"
    );
    let ran = folder.packds(&["verify", "bad.pack", "a.pack", "-q"]);
    assert!(ran.code == 1 && !ran.stdout.contains("ok") && ran.stdout.contains("damaged"), "{ran:?}");
    for command in ["info", "labels", "verify"] {
        let ran = folder.packds(&[command, "none.pack", "a.pack", "--json"]);
        let document = ran.json();
        assert_eq!((ran.code, &document[0]["error"]["path"]), (2, &json!("none.pack")), "{ran:?}");
        assert_eq!(document[1]["path"], "a.pack");
    }
    let ran = folder.packds(&["info", "a.pack", "bad.pack", "--shuffle", "--plot", "x.svg"]);
    assert!(ran.code == 2 && ran.stderr.contains("--plot can draw only one pack"), "{ran:?}");
}
