//! `packds compact`: small shards of a set are joined, and what is not used is deleted.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, signal};

fn info(folder: &Folder, name: &str) -> Value {
    folder.packds(&["info", name, "--json"]).json()
}

/// A set of small shards, each in a version of its own.
fn grown(folder: &Folder, n: u32) {
    for number in 0..n {
        let name = format!("{number}.pack");
        SamplePack { n_samples: 5 + number, chunk_samples: 4, ..SamplePack::default() }.write(folder, &name);
        // Equal paths are told.
        assert_eq!(folder.packds(&["append", "s.packs", &name, "-q"]).code, 0);
    }
}

#[test]
fn a_compacted_set_has_the_same_samples_ids_and_order() {
    let folder = Folder::new();
    grown(&folder, 6);
    let before = info(&folder, "s.packs");
    let report = folder.packds(&["compact", "s.packs", "--json"]).json();
    let n = json!((5..11).sum::<u64>());
    assert_eq!(
        (&report["version"], &report["n_shards_before"], &report["n_shards"]),
        (&json!(7), &json!(6), &json!(1))
    );
    assert_eq!((&report["joined"][0]["n_samples"], &report["joined"][0]["n_shards"]), (&n, &json!(6)));
    let after = info(&folder, "s.packs");
    // A state of a training run depends on these.
    for key in ["pack_uuid", "dataset_uuid", "n_samples", "classes", "fields"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!(before["stats"]["fields"], after["stats"]["fields"]);
    folder.packds(&["verify", "s.packs", "-q"]).ok();
    folder.packds(&["diff", "s.packs@6", "s.packs"]).ok();
    // The statistics are those of the chunks that the set has now.
    folder.packds(&["merge", "s.packs", "m.pack", "-q"]);
    let icc = |info: &Value| info["stats"]["labels"]["label"]["icc"].as_f64().unwrap();
    assert!((icc(&info(&folder, "m.pack")) - icc(&after)).abs() < 1e-9);
    assert_eq!(info(&folder, "m.pack")["pack_uuid"], before["pack_uuid"]);
    // All versions can still be read, and packs that the set has are still known.
    for version in 1..=7 {
        folder.packds(&["verify", &format!("s.packs@{version}"), "-q"]).ok();
    }
    let again = folder.packds(&["append", "s.packs", "3.pack"]);
    assert!(again.code == 2 && again.stderr.contains("already in the set"), "{again:?}");
    SamplePack { n_samples: 40, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "new.pack");
    let added = folder.packds(&["append", "s.packs", "new.pack", "--json"]).json();
    assert_eq!((&added["version"], &added["n_shards"]), (&json!(8), &json!(2)));
    folder.packds(&["verify", "s.packs", "-q"]).ok();
    let second = folder.packds(&["compact", "s.packs", "--json"]).json();
    assert_eq!((&second["version"], &second["n_shards"]), (&json!(9), &json!(1)));
    let again = folder.packds(&["append", "s.packs", "3.pack"]);
    assert!(again.stderr.contains("already in the set"), "{again:?}");
}

#[test]
fn shards_of_the_chosen_size_stay_and_a_dry_run_writes_nothing() {
    let folder = Folder::new();
    grown(&folder, 4);
    SamplePack { n_samples: 4000, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "large.pack");
    folder.packds(&["append", "s.packs", "large.pack", "-q"]);
    SamplePack { n_samples: 3, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "last.pack");
    folder.packds(&["append", "s.packs", "last.pack", "-q"]);
    let files = folder.files("s.packs");
    let dry = folder.packds(&["compact", "s.packs", "--shard-size", "400KB", "--dry-run", "--json"]).json();
    assert_eq!((&dry["version"], &dry["n_shards"], &dry["dry_run"]), (&json!(7), &json!(3), &json!(true)));
    assert_eq!((&dry["joined"][0]["path"], &dry["joined"][0]["n_shards"]), (&json!(""), &json!(4)));
    assert_eq!((&dry["deleted"], dry["old_bytes"].as_u64().unwrap() > 0), (&json!([]), true));
    let dry =
        folder.packds(&["compact", "s.packs", "--shard-size", "400KB", "--dry-run", "--delete-old", "--json"]).json();
    // Six manifests and the four small shards.
    assert_eq!(dry["deleted"].as_array().unwrap().len(), 10, "{dry}");
    assert_eq!(folder.files("s.packs"), files);
    let said = folder.packds(&["compact", "s.packs", "--shard-size", "400KB", "--dry-run"]).ok();
    assert!(said.contains("joined    4 shards") && said.contains("nothing was written or deleted"), "{said}");
    let done = folder.packds(&["compact", "s.packs", "--shard-size", "400KB", "--delete-old", "--json"]).json();
    assert_eq!(done["deleted"], dry["deleted"]);
    assert_eq!(folder.files("s.packs").len(), 4, "{:?}", folder.files("s.packs"));
    folder.packds(&["verify", "s.packs", "-q"]).ok();
    assert_eq!(info(&folder, "s.packs")["n_samples"], json!(4029));
    // Nothing is left to do.
    let said = folder.packds(&["compact", "s.packs", "--shard-size", "400KB"]).ok();
    assert!(said.contains("version 7") && said.contains("joined    nothing"), "{said}");
}

#[test]
fn only_files_of_writers_that_no_version_uses_are_deleted() {
    let folder = Folder::new();
    grown(&folder, 3);
    let unused = "00ed35aa3ddb3922a548268337970848-41154568.pack";
    let unfinished =
        [".00ed35aa3ddb3922a548268337970848-00000001.pack.packing", "compacting-00ed35aa3ddb3922a548268337970848.pack"];
    let foreign = ["notes.txt", "mine.pack", ".notes.txt.packing"];
    let write = || {
        for name in unfinished.iter().chain(&[unused]).chain(&foreign) {
            fs::write(folder.path("s.packs").join(name), "x").unwrap();
        }
    };
    write();
    let n = folder.files("s.packs").len();
    let plain = folder.packds(&["compact", "s.packs", "--shard-size", "1", "--json"]).json();
    assert_eq!((&plain["deleted"], &plain["old_bytes"], folder.files("s.packs").len()), (&json!([]), &json!(3), n));
    let cleaned = folder.packds(&["compact", "s.packs", "--shard-size", "1", "--clean", "--json"]).json();
    assert_eq!((cleaned["deleted"].as_array().unwrap().len(), &cleaned["bytes_deleted"]), (3, &json!(3)));
    // Three manifests, three shards and the files of others.
    assert_eq!(folder.files("s.packs").len(), 9);
    write();
    folder.packds(&["compact", "s.packs", "--delete-old", "-q"]).ok();
    let left = folder.files("s.packs");
    assert_eq!(left.len(), 5, "{left:?}");
    assert!(foreign.iter().all(|name| left.iter().any(|file| file == name)), "{left:?}");
    folder.packds(&["verify", "s.packs", "-q"]).ok();
    // While another process writes, nothing is deleted.
    write();
    let lock = fs::File::open(folder.path("s.packs").join(unfinished[0])).unwrap();
    lock.lock().unwrap();
    let ran = folder.packds(&["compact", "s.packs", "--clean"]);
    assert!(ran.code == 2 && ran.stderr.contains("another process is writing to this set"), "{ran:?}");
    assert_eq!(folder.files("s.packs").len(), 8);
}

#[test]
fn what_is_no_set_is_refused() {
    let folder = Folder::new();
    grown(&folder, 2);
    for (args, says) in [
        (&["0.pack"][..], "expected the name of a set, which ends with .packs"),
        (&["no.packs"], "no.packs"),
        (&["s.packs@1"], "this is the name of a version of the set"),
        (&["s.packs", "--shard-size", "many"], "'--shard-size <BYTES>'"),
    ] {
        let ran = folder.packds(&[&["compact"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {ran:?}");
    }
    // A damaged shard stops it, and the set stays as it was.
    let shard = folder.files("s.packs").into_iter().find(|name| name.ends_with(".pack")).unwrap();
    folder.flip(&format!("s.packs/{shard}"), 8300);
    let files = folder.files("s.packs");
    let ran = folder.packds(&["compact", "s.packs"]);
    assert!(ran.code == 1 && ran.stderr.contains("checksum"), "{ran:?}");
    assert_eq!(folder.files("s.packs"), files);
    fs::write(folder.path("s.packs/manifest-00000001.json"), "{}").unwrap();
    let ran = folder.packds(&["compact", "s.packs", "--delete-old", "--shard-size", "1"]);
    assert!(ran.code == 1 && ran.stderr.contains("nothing was deleted"), "{ran:?}");
    assert_eq!(folder.files("s.packs"), files);
}

#[test]
fn a_killed_compact_leaves_the_latest_version_whole() {
    let folder = Folder::new();
    for (name, n_samples) in [("a.pack", 20_000), ("b.pack", 20_001)] {
        SamplePack { n_samples, chunk_samples: 16, ..SamplePack::default() }.write(&folder, name);
        folder.packds(&["append", "s.packs", name, "-q"]);
    }
    let copy = || {
        let _ = fs::remove_dir_all(folder.path("t.packs"));
        fs::create_dir(folder.path("t.packs")).unwrap();
        for name in folder.files("s.packs") {
            fs::copy(folder.path("s.packs").join(&name), folder.path("t.packs").join(&name)).unwrap();
        }
    };
    let args = ["compact", "t.packs", "--delete-old", "-q"];
    copy();
    let started = Instant::now();
    folder.packds(&args).ok();
    let takes = started.elapsed();
    assert_eq!(folder.files("t.packs").len(), 2);
    let mut versions = BTreeSet::new();
    let n_kills = option_env!("PACKDS_KILLS").and_then(|n| n.parse().ok()).unwrap_or(20_u32);
    for step in 0..n_kills {
        copy();
        let mut child = folder.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(takes * step / n_kills + Duration::from_millis(1));
        signal(&child, "-KILL");
        child.wait().unwrap();
        let found = info(&folder, "t.packs");
        assert_eq!(found["n_samples"], json!(40_001));
        versions.insert(found["set"]["version"].as_u64().unwrap());
        folder.packds(&["verify", "t.packs", "-q"]).ok();
        // Every version that is left can be read.
        for name in folder.files("t.packs").iter().filter(|name| name.starts_with("manifest-")) {
            folder.packds(&["verify", &format!("t.packs/{name}"), "-q"]).ok();
        }
        folder.packds(&args).ok();
        assert_eq!(folder.files("t.packs").len(), 2, "{:?}", folder.files("t.packs"));
    }
    assert!(versions.contains(&2), "{versions:?}");
}
