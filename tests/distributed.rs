//! Conversion on many machines: `packds plan`, `packds build` and `packds commit`.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, fixture, signal};

/// Plans, builds every shard and commits. Returns the document of the commit.
fn distribute(folder: &Folder, source: &str, options: &[&str], name: &str) -> Value {
    let (plan, set) = (format!("{name}.plan"), format!("{name}.packs"));
    let planned = folder.packds(&[&["plan", source, "-o", &plan, "--json"], options].concat()).json();
    let n_shards = planned["n_shards"].as_u64().unwrap();
    // The order of building does not matter.
    for shard in (0..n_shards).rev() {
        folder.packds(&["build", &plan, "--shard", &shard.to_string(), "-o", &set, "-q"]).ok();
    }
    folder.packds(&["commit", &plan, "-o", &set, "--json"]).json()
}

/// Asserts that the shards and the manifest of a source are those that `convert` writes, and that nothing else is left.
pub(crate) fn assert_planned(folder: &Folder, source: &str, options: &[&str]) {
    let options = [&["--chunk", "1", "--shards", "3"], options].concat();
    let before = folder.files("");
    let converted = folder.packds(&[&["convert", source, "c.packs", "-q"], &options[..]].concat());
    assert_eq!(converted.code, 0, "{source}: {}", converted.stderr);
    let done = distribute(folder, source, &options, "d");
    assert!(done["n_shards"].as_u64() > Some(1), "{source} {options:?}: {done}");
    let (expected, found) = (bytes(folder, "c.packs"), bytes(folder, "d.packs"));
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{source} {options:?}");
    assert!(expected == found, "{source} {options:?}");
    ["c.packs", "d.packs"].iter().for_each(|set| fs::remove_dir_all(folder.path(set)).unwrap());
    fs::remove_file(folder.path("d.plan")).unwrap();
    assert_eq!(folder.files(""), before, "{source}");
}

/// The bytes of every file in a folder.
fn bytes(folder: &Folder, name: &str) -> BTreeMap<String, Vec<u8>> {
    if !folder.path(name).exists() {
        return BTreeMap::new();
    }
    let read = |file: String| (file.clone(), fs::read(folder.path(name).join(&file)).unwrap());
    folder.files(name).into_iter().map(read).collect()
}

/// A copy of the photographs in the fixtures, which the test may change.
fn photos(folder: &Folder) -> String {
    let source = folder.path("photos");
    for class in ["circle", "noise", "square"] {
        fs::create_dir_all(source.join(class)).unwrap();
        let images = fixture(&format!("images/same_size/{class}"));
        for image in fs::read_dir(images).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&image, source.join(class).join(image.file_name().unwrap())).unwrap();
        }
    }
    source.to_str().unwrap().to_owned()
}

#[test]
fn the_shards_and_the_manifest_are_those_that_convert_writes() {
    let folder = Folder::new();
    let masks = fixture("images/masks/manifest.csv");
    let (same, sizes) = (fixture("images/same_size"), fixture("images/folder"));
    let (same, sizes, masks) = (same.to_str().unwrap(), sizes.to_str().unwrap(), masks.to_str().unwrap());
    folder.packds(&["convert", same, "all.pack", "--chunk", "4", "-q"]).ok();
    folder.packds(&["convert", masks, "masks.pack", "--resize", "short:32", "--crop", "center:32", "-q"]).ok();
    let chunked = &["--codec", "gzip", "--chunk", "3"];
    let exports: [(&str, &[&str]); 12] = [
        ("npy", &[]),
        ("npz", &[]),
        ("tar", &[]),
        ("tfrecord", &[]),
        ("safetensors", &[]),
        ("pt", &[]),
        ("h5", &[]),
        ("parquet", &[]),
        ("arrow", &[]),
        ("gzip.npz", &["--codec", "gzip"]),
        ("gzip.h5", chunked),
        ("gzip.zarr", chunked),
    ];
    for (to, options) in exports {
        for pack in ["all", "masks"] {
            let ran =
                folder.packds(&[&["export", &format!("{pack}.pack"), &format!("{pack}.{to}"), "-q"], options].concat());
            assert_eq!(ran.code, 0, "{to}: {}", ran.stderr);
            assert_planned(&folder, &format!("{pack}.{to}"), &[]);
        }
    }
    let cases: [(&str, &[&str]); 12] = [
        (same, &[]),
        (same, &["--seed", "7", "--codec", "zstd:3", "--layout", "chw"]),
        (same, &["--mode", "mixed", "--keep-order"]),
        (same, &["--dtype", "f32", "--normalize", "dataset"]),
        (sizes, &[]),
        (sizes, &["--mode", "encoded", "--seekable", "--check-decode"]),
        (sizes, &["--orientation", "apply"]),
        (sizes, &["--resize", "none", "--crop", "none", "--gray"]),
        (masks, &["--resize", "short:32", "--crop", "center:32"]),
        ("all.tar", &["--mode", "encoded", "--quality", "80"]),
        ("all.parquet", &["--mode", "encoded", "--quality", "80"]),
        ("all.gzip.h5", &["--keep-order"]),
    ];
    for (source, options) in cases {
        assert_planned(&folder, source, options);
    }
}

#[test]
fn bad_samples_are_left_out_or_replaced_and_the_commit_lists_them() {
    let folder = Folder::new();
    let source = photos(&folder);
    fs::write(folder.path("photos/noise/bad.png"), b"no image").unwrap();
    for shard in ["truncated.jpg", "zero_bytes.jpg"] {
        fs::copy(fixture("images/bad").join(shard), folder.path("photos/circle").join(shard)).unwrap();
    }
    let options = ["--chunk", "2", "--shards", "4", "--resize", "8x8"];
    for (policy, key, more) in [("skip", "skipped", 0), ("substitute", "substituted", 3)] {
        let options = [&options[..], &["--on-error", policy]].concat();
        let plan = format!("{policy}.plan");
        let planned = folder.packds(&[&["plan", &source, "-o", &plan, "--json"], &options[..]].concat()).json();
        let set = format!("{policy}.packs");
        for shard in 0..planned["n_shards"].as_u64().unwrap() {
            // A policy that applies is no failure of the shard.
            folder.packds(&["build", &plan, "--shard", &shard.to_string(), "-o", &set, "-q"]).ok();
        }
        let done = folder.packds(&["commit", &plan, "-o", &set, "--json"]);
        assert_eq!(done.code, 1, "{}", done.stderr);
        let done: Value = serde_json::from_str(&done.stdout).unwrap();
        let n = planned["n_samples"].as_u64().unwrap() - 3 + more;
        assert_eq!((&done["n_samples"], &done[format!("n_{key}")]), (&json!(n), &json!(3)), "{done}");
        let mut bad: Vec<&str> =
            done[key].as_array().unwrap().iter().map(|bad| bad["path"].as_str().unwrap()).collect();
        bad.sort_unstable();
        assert_eq!(bad, ["circle/truncated.jpg", "circle/zero_bytes.jpg", "noise/bad.png"]);
        folder.packds(&["verify", &set, "-q"]).ok();
        let info = folder.packds(&["info", &set, "--json"]).json();
        assert_eq!(info["provenance"][format!("n_{key}")], json!(3), "{info}");
    }
    // Without a policy, the machine that meets a bad sample fails, and names it.
    folder.packds(&[&["plan", &source, "-o", "stop.plan", "-q"], &options[..]].concat()).ok();
    let failed: Vec<String> = (0..4)
        .map(|shard: i32| folder.packds(&["build", "stop.plan", "--shard", &shard.to_string(), "-o", "stop.packs"]))
        .filter(|ran| ran.code == 1)
        .map(|ran| ran.stderr)
        .collect();
    assert!(!failed.is_empty() && failed.iter().all(|err| err.contains("photos/")), "{failed:?}");
    let missing = folder.packds(&["commit", "stop.plan", "-o", "stop.packs"]);
    assert!(missing.code == 2 && missing.stderr.contains("of 4 shards missing"), "{}", missing.stderr);
}

#[test]
fn a_shard_of_bad_samples_alone_is_left_out() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("s/a")).unwrap();
    for name in ["1.png", "2.png"] {
        fs::write(folder.path("s/a").join(name), b"no image").unwrap();
    }
    for name in ["3.jpg", "4.jpg"] {
        fs::copy(fixture("images/formats/baseline.jpg"), folder.path("s/a").join(name)).unwrap();
    }
    let options = ["--images", "a", "--keep-order", "--chunk", "2", "--shards", "2", "--on-error", "skip"];
    folder.packds(&[&["plan", "s", "-o", "s.plan", "-q"], &options[..]].concat()).ok();
    for shard in ["0", "1"] {
        folder.packds(&["build", "s.plan", "--shard", shard, "-o", "s.packs", "-q"]).ok();
    }
    let done = folder.packds(&["commit", "s.plan", "-o", "s.packs", "--json"]);
    let done: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&done["n_samples"], &done["n_shards"], &done["n_skipped"]), (&json!(2), &json!(1), &json!(2)));
    assert!(done["warnings"][0].as_str().unwrap().contains("shard 0 is left out"), "{done}");
    folder.packds(&["verify", "s.packs", "-q"]).ok();
}

#[test]
fn repeating_a_step_changes_nothing_and_heals_a_damaged_shard() {
    let folder = Folder::new();
    let source = photos(&folder);
    let options = ["--chunk", "2", "--shards", "3"];
    distribute(&folder, &source, &options, "p");
    let before = bytes(&folder, "p.packs");
    let again = folder.packds(&["build", "p.plan", "--shard", "1", "-o", "p.packs", "--json"]).json();
    assert_eq!(again["is_kept"], json!(true), "{again}");
    let again = folder.packds(&["commit", "p.plan", "-o", "p.packs", "--json"]).json();
    assert_eq!(again["is_kept"], json!(true), "{again}");
    let files = folder.files("p.packs");
    let shard = files.iter().find(|name| name.ends_with(".pack")).unwrap();
    folder.flip(&format!("p.packs/{shard}"), 5000);
    let healed = (0..3).map(|shard: i32| {
        folder.packds(&["build", "p.plan", "--shard", &shard.to_string(), "-o", "p.packs", "--json"]).json()
    });
    let healed: Vec<Value> = healed.filter(|report| report["is_kept"] == json!(false)).collect();
    assert_eq!(healed.len(), 1);
    assert!(healed[0]["warnings"][0].as_str().unwrap().contains("damaged"), "{healed:?}");
    assert!(bytes(&folder, "p.packs") == before);
    // The plan itself is the same for the same source, also at another number of threads.
    for jobs in ["1", "3"] {
        let plan = format!("again{jobs}.plan");
        folder.packds(&[&["plan", &source, "-o", &plan, "--jobs", jobs, "-q"], &options[..]].concat()).ok();
        assert!(fs::read(folder.path(&plan)).unwrap() == fs::read(folder.path("p.plan")).unwrap());
    }
}

#[test]
fn a_source_that_changed_is_refused_with_the_name_of_the_file() {
    let folder = Folder::new();
    let source = photos(&folder);
    folder.packds(&["plan", &source, "-o", "p.plan", "--chunk", "64", "--shards", "1", "-q"]).ok();
    let name = folder.files("photos/circle")[0].clone();
    let path = folder.path("photos/circle").join(&name);
    let build = || folder.packds(&["build", "p.plan", "--shard", "0", "-o", "p.packs"]);
    let original = fs::read(&path).unwrap();
    let changed = fs::metadata(&path).unwrap().modified().unwrap();
    let mut longer = original.clone();
    longer.push(0);
    fs::write(&path, &longer).unwrap();
    let ran = build();
    let expected = format!("{name}: expected {} bytes as in the plan, found {}", original.len(), longer.len());
    assert!(ran.code == 1 && ran.stderr.contains(&expected), "{}", ran.stderr);
    fs::write(&path, &original).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(changed + Duration::from_secs(3)).unwrap();
    let ran = build();
    assert!(ran.stderr.contains(&format!("{name}: the file was changed after the plan was made")), "{}", ran.stderr);
    fs::remove_file(&path).unwrap();
    let ran = build();
    assert!(ran.stderr.contains(&format!("{name}: the file was there when the plan was made")), "{}", ran.stderr);
    fs::write(&path, &original).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    build().ok();
}

#[test]
fn a_new_plan_never_keeps_shards_of_older_contents() {
    let folder = Folder::new();
    let source = photos(&folder);
    folder.packds(&["convert", &source, "all.pack", "--keep-order", "-q"]).ok();
    assert_eq!(folder.packds(&["export", "all.pack", "x.npy", "-q"]).code, 0);
    let array = fs::read(folder.path("x.npy")).unwrap();
    let options = ["--chunk", "4", "--shards", "2"];
    let plan = || folder.packds(&[&["plan", "x.npy", "-o", "x.plan", "--force", "-q"], &options[..]].concat()).ok();
    let build = |shard: &str| folder.packds(&["build", "x.plan", "--shard", shard, "-o", "x.packs", "--json"]);
    plan();
    assert_eq!(build("0").json()["is_kept"], json!(false));
    assert_eq!(build("0").json()["is_kept"], json!(true));
    let changed: Vec<u8> =
        array.iter().enumerate().map(|(at, byte)| if at < 128 { *byte } else { 255 - byte }).collect();
    fs::write(folder.path("x.npy"), &changed).unwrap();
    // The old plan is refused, also for a shard that is there.
    let refused = build("0");
    assert!(refused.code == 1 && refused.stderr.contains("x.npy: the file was changed"), "{}", refused.stderr);
    plan();
    let again = build("0").json();
    assert_eq!(again["is_kept"], json!(false));
    assert!(again["warnings"][0].as_str().unwrap().contains("older than the source"), "{again}");
    build("1");
    folder.packds(&["commit", "x.plan", "-o", "x.packs", "-q"]).ok();
    folder.packds(&[&["convert", "x.npy", "c.packs", "-q"], &options[..]].concat()).ok();
    assert!(bytes(&folder, "x.packs") == bytes(&folder, "c.packs"));
}

#[test]
fn chunks_are_divided_evenly_and_a_manifest_that_changed_is_refused() {
    let folder = Folder::new();
    photos(&folder);
    let names: Vec<String> = ["circle", "noise", "square"]
        .iter()
        .flat_map(|class| {
            folder.files(&format!("photos/{class}")).into_iter().map(move |name| format!("{class}/{name}"))
        })
        .collect();
    let table = |label: &str| {
        let rows = names.iter().map(|name| format!("{name},{label}\n"));
        fs::write(folder.path("photos/m.csv"), format!("path,label\n{}", rows.collect::<String>())).unwrap();
    };
    table("one");
    let planned =
        folder.packds(&["plan", "photos/m.csv", "-o", "m.plan", "--chunk", "3", "--shards", "5", "--json"]).json();
    // 20 samples in 7 chunks.
    assert_eq!((&planned["n_shards"], &planned["shard_samples"]), (&json!(5), &json!(6)), "{planned}");
    let build = |shard: &str| folder.packds(&["build", "m.plan", "--shard", shard, "-o", "m.packs", "--json"]);
    let sizes = ["0", "1", "2", "3", "4"].map(|shard| build(shard).json()["n_samples"].as_u64().unwrap());
    assert_eq!(sizes, [6, 6, 3, 3, 2]);
    let set = folder.packds(&["convert", "photos/m.csv", "c.packs", "--chunk", "3", "--shards", "5", "--json"]).json();
    assert_eq!(set["n_shards"], json!(5));
    table("two");
    let refused = build("3");
    assert!(refused.code == 1 && refused.stderr.contains("m.csv: the file was changed"), "{}", refused.stderr);
}

#[test]
fn a_link_that_leads_nowhere_is_a_bad_sample() {
    let folder = Folder::new();
    let source = photos(&folder);
    std::os::unix::fs::symlink("/nowhere", folder.path("photos/noise/gone.png")).unwrap();
    let options = ["--chunk", "4", "--shards", "2", "--on-error", "skip"];
    folder.packds(&[&["plan", &source, "-o", "p.plan", "-q"], &options[..]].concat()).ok();
    for shard in ["0", "1"] {
        folder.packds(&["build", "p.plan", "--shard", shard, "-o", "p.packs", "-q"]).ok();
    }
    let done = folder.packds(&["commit", "p.plan", "-o", "p.packs", "--json"]);
    let done: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&done["n_skipped"], &done["skipped"][0]["path"]), (&json!(1), &json!("noise/gone.png")), "{done}");
}

#[test]
fn what_cannot_be_planned_built_or_committed_is_refused() {
    let folder = Folder::new();
    let source = photos(&folder);
    let source = source.as_str();
    folder.packds(&["convert", source, "all.pack", "-q"]).ok();
    let pixels = vec!["7"; 48 * 48].join(" ");
    fs::write(folder.path("cells.csv"), format!("emotion,pixels\n0,{pixels}\n1,{pixels}\n")).unwrap();
    folder.packds(&["plan", source, "-o", "p.plan", "--chunk", "4", "--shards", "2", "-q"]).ok();
    folder.packds(&["plan", source, "-o", "q.plan", "--chunk", "4", "--shards", "2", "--seed", "1", "-q"]).ok();
    for shard in ["0", "1"] {
        folder.packds(&["build", "p.plan", "--shard", shard, "-o", "p.packs", "-q"]).ok();
        folder.packds(&["build", "q.plan", "--shard", shard, "-o", "p.packs", "-q"]).ok();
    }
    folder.packds(&["commit", "q.plan", "-o", "p.packs", "-q"]).ok();
    fs::write(folder.path("text.plan"), b"no plan").unwrap();
    let plan = fs::read(folder.path("p.plan")).unwrap();
    fs::write(folder.path("cut.plan"), &plan[..plan.len() - 1]).unwrap();
    for (args, code, expected) in [
        (&["plan", source, "-o", "x.plan"][..], 2, "a plan needs the number of shards"),
        (&["plan", source, "-o", "x.plan", "--shard-size", "1GB"], 2, "a plan needs the number of shards"),
        (&["plan", source, "-o", "p.plan", "--shards", "2"], 2, "p.plan: this file already exists"),
        (&["plan", "cells.csv", "-o", "x.plan", "--shards", "2"], 2, "its samples cannot be unpacked one by one"),
        (&["build", "p.plan", "--shard", "2", "-o", "u.packs"], 2, "the plan has 2 shards, so there is no shard 2"),
        (&["build", "p.plan", "--shard", "0", "-o", "p.pack"], 2, "expected the name of a set, which ends with .packs"),
        (&["build", "all.pack", "--shard", "0", "-o", "p.packs"], 1, "this is no plan of a set"),
        (&["build", "text.plan", "--shard", "0", "-o", "p.packs"], 1, "this is no plan of a set"),
        (&["build", "cut.plan", "--shard", "0", "-o", "p.packs"], 1, "the plan is cut off"),
        (&["commit", "p.plan", "-o", "none.packs"], 2, "2 of 2 shards missing: 0-1"),
        (&["commit", "p.plan", "-o", "p.packs"], 2, "the folder has another set than that of the plan"),
        (&["build", "p.plan", "--shard", "1", "-o", "p.packs"], 2, "the folder has another set than that of the plan"),
        (&["plan", source, "-o", "x.plan", "--shards", "2", "--split", "all"], 2, "a plan has one split"),
    ] {
        let ran = folder.packds(args);
        assert!(ran.code == code && ran.stderr.contains(expected), "{args:?}: {} {}", ran.code, ran.stderr);
    }
    assert!(!folder.path("x.plan").exists());
}

#[test]
fn no_byte_of_a_plan_can_be_changed_unnoticed() {
    let folder = Folder::new();
    let source = photos(&folder);
    folder.packds(&["plan", &source, "-o", "p.plan", "--chunk", "64", "--shards", "1", "-q"]).ok();
    let plan = fs::read(folder.path("p.plan")).unwrap();
    for at in (0..plan.len()).step_by(plan.len() / 60) {
        let mut changed = plan.clone();
        changed[at] ^= 0x40;
        fs::write(folder.path("x.plan"), &changed).unwrap();
        let ran = folder.packds(&["build", "x.plan", "--shard", "0", "-o", "x.packs"]);
        assert!(ran.code == 1 || ran.code == 2, "byte {at}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains("x.plan"), "byte {at}: {}", ran.stderr);
        assert!(!folder.path("x.packs").exists(), "byte {at}");
    }
}

#[test]
fn many_processes_may_build_the_same_shard_at_once() {
    let folder = Folder::new();
    let source = photos(&folder);
    folder.packds(&["plan", &source, "-o", "p.plan", "--chunk", "4", "--shards", "2", "-q"]).ok();
    let build = |shard: u32| {
        let shard = shard.to_string();
        let mut command = folder.command(&["build", "p.plan", "--shard", &shard, "-o", "p.packs", "-q"]);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = (0..8).map(|n| build(n % 2)).collect();
    for child in running {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let commit = || folder.command(&["commit", "p.plan", "-o", "p.packs", "-q"]).spawn().unwrap();
    let running: Vec<_> = (0..4).map(|_| commit()).collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    folder.packds(&["convert", &source, "c.packs", "--chunk", "4", "--shards", "2", "-q"]).ok();
    assert!(bytes(&folder, "p.packs") == bytes(&folder, "c.packs"));
}

/// Number of kills. `PACKDS_KILLS`, set when the tests are compiled, asks for more.
fn n_kills() -> u32 {
    option_env!("PACKDS_KILLS").and_then(|n| n.parse().ok()).unwrap_or(20)
}

#[test]
fn a_killed_build_or_commit_leaves_no_half_set() {
    let folder = Folder::new();
    let source = folder.path("many/a");
    fs::create_dir_all(&source).unwrap();
    for n in 0..1500 {
        fs::copy(fixture("images/formats/baseline.jpg"), source.join(format!("{n}.jpg"))).unwrap();
    }
    folder.packds(&["plan", "many", "-o", "p.plan", "--images", "a", "--chunk", "64", "--shards", "2", "-q"]).ok();
    let timed = |args: &[&str]| {
        let started = Instant::now();
        folder.packds(args).ok();
        started.elapsed()
    };
    let takes = timed(&["build", "p.plan", "--shard", "0", "-o", "t.packs", "-q"]);
    timed(&["build", "p.plan", "--shard", "1", "-o", "t.packs", "-q"]);
    let commit_takes = timed(&["commit", "p.plan", "-o", "t.packs", "-q"]);
    let expected = bytes(&folder, "t.packs");
    let killed = |args: &[&str], after: Duration| {
        let mut child = folder.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        signal(&child, "-KILL");
        child.wait().unwrap();
    };
    for step in 0..n_kills() {
        let shard = (step % 2).to_string();
        killed(&["build", "p.plan", "--shard", &shard, "-o", "p.packs", "-q"], takes * step / n_kills());
        // Without a manifest there is no set.
        assert_ne!(folder.packds(&["info", "p.packs"]).code, 0);
        // A file with the name of a shard is whole.
        for (name, found) in bytes(&folder, "p.packs").iter().filter(|(name, _)| expected.contains_key(*name)) {
            assert!(found == &expected[name], "{name}");
            fs::remove_file(folder.path("p.packs").join(name)).unwrap();
        }
    }
    for shard in ["0", "1"] {
        folder.packds(&["build", "p.plan", "--shard", shard, "-o", "p.packs", "-q"]).ok();
    }
    for step in 0..n_kills() {
        killed(&["commit", "p.plan", "-o", "p.packs", "-q"], commit_takes * step / n_kills());
        let manifest = folder.path("p.packs/manifest-00000001.json");
        if manifest.exists() {
            folder.packds(&["verify", "p.packs", "-q"]).ok();
            fs::remove_file(manifest).unwrap();
        }
    }
    folder.packds(&["commit", "p.plan", "-o", "p.packs", "-q"]).ok();
    // Nothing else is left.
    assert!(bytes(&folder, "p.packs") == expected);
}
