//! Sets of packs: `packds append`, and every command that reads a set.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use packds_format::{Limits, Manifest};
use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, fixture, signal};

/// Packs of the photographs in the fixtures: all of them, and those of each class alone. They have other class ids.
fn photos(folder: &Folder) {
    let source = fixture("images/same_size");
    folder.packds(&["convert", source.to_str().unwrap(), "all.pack", "--chunk", "4", "-q"]).ok();
    folder.packds(&["split", "all.pack", "one.pack", "--by", "label", "-q"]).ok();
}

fn info(folder: &Folder, name: &str) -> Value {
    folder.packds(&["info", name, "--json"]).json()
}

#[test]
fn each_append_is_a_version_and_older_ones_stay_readable() {
    let folder = Folder::new();
    let pack = |seed: u32, name: &str| {
        SamplePack { n_samples: 10 + seed, chunk_samples: 4, ..SamplePack::default() }.write(&folder, name)
    };
    pack(0, "a.pack");
    pack(1, "b.pack");
    pack(2, "c.pack");
    let first = folder.packds(&["append", "s.packs", "a.pack", "b.pack", "--json"]).json();
    assert_eq!((&first["version"], &first["n_samples"], &first["n_shards"]), (&json!(1), &json!(21), &json!(2)));
    assert_eq!(first["added"][1]["is_copy"], json!(true));
    let second = folder.packds(&["append", "s.packs", "c.pack", "--json"]).json();
    assert_eq!((&second["version"], &second["n_samples"], &second["n_shards"]), (&json!(2), &json!(33), &json!(3)));
    for (name, n_samples, n_chunks) in [("s.packs", 33, 9), ("s.packs@1", 21, 6), ("s.packs@2", 33, 9)] {
        let found = info(&folder, name);
        assert_eq!((&found["n_samples"], &found["n_chunks"]), (&json!(n_samples), &json!(n_chunks)), "{name}");
        folder.packds(&["verify", name, "-q"]).ok();
    }
    assert_eq!(info(&folder, "s.packs")["set"]["shards"][2]["n_samples"], json!(12));
    let none = folder.packds(&["info", "s.packs@3"]);
    assert!(none.code != 0 && none.stderr.contains("there is no version 3: the latest is 2"), "{}", none.stderr);
    // A copy is the source, byte for byte.
    let path = first["added"][0]["path"].as_str().unwrap();
    assert!(fs::read(folder.path("s.packs").join(path)).unwrap() == fs::read(folder.path("a.pack")).unwrap());
}

#[test]
fn classes_are_joined_by_name_and_the_merged_pack_is_the_same() {
    let folder = Folder::new();
    photos(&folder);
    let names: Vec<String> = folder.files(".").into_iter().filter(|name| name.starts_with("one.")).collect();
    assert!(names.len() > 2, "{names:?}");
    // Each pack has only its own class.
    for (place, name) in names.iter().enumerate() {
        let source = folder.path(&format!("class{place}"));
        folder.packds(&["export", name, source.to_str().unwrap(), "--to", "image-folder", "-q"]);
        let _ = fs::remove_file(source.join("packds.json"));
        for entry in fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && fs::read_dir(&entry).unwrap().next().is_none() {
                fs::remove_dir(entry).unwrap();
            }
        }
        let target = format!("class{place}.pack");
        folder.packds(&["convert", source.to_str().unwrap(), &target, "--chunk", "4", "-q"]);
        let added = folder.packds(&["append", "s.packs", &target, "--json"]).json();
        let again = folder.packds(&["append", "s.packs", &target]);
        assert!(again.stderr.contains("is already in the set"), "{}", again.stderr);
        assert_eq!((&added["version"], &added["n_classes"]), (&json!(place + 1), &json!(place + 1)), "{added}");
        assert_eq!(added["added"][0]["is_copy"], json!(place == 0), "{added}");
    }
    folder.packds(&["merge", "s.packs", "m.pack", "-q"]).ok();
    let (set, merged) = (info(&folder, "s.packs"), info(&folder, "m.pack"));
    for key in ["n_samples", "classes", "fields", "pack_uuid", "dataset_uuid"] {
        assert_eq!(set[key], merged[key], "{key}");
    }
    assert_eq!(set["stats"]["fields"], merged["stats"]["fields"]);
    for args in [&["labels"][..], &["head", "--json", "-n", "100"]] {
        let of = |name| folder.packds(&[args, &[name]].concat()).ok().replace("s.packs", "m.pack");
        assert_eq!(of("s.packs"), of("m.pack"), "{args:?}");
    }
}

#[test]
fn every_command_that_takes_a_pack_takes_a_set() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "all.pack", "half.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    folder.packds(&["append", "s.packs", "half.train.pack", "half.val.pack", "-q"]).ok();
    for args in [
        &["info", "s.packs"][..],
        &["info", "s.packs", "--shuffle", "--batch", "4"],
        &["verify", "s.packs"],
        &["head", "s.packs"],
        &["labels", "s.packs"],
        &["show", "s.packs", "-o", "sheet.png"],
        &["extract", "s.packs", "out", "--samples", "0-3"],
        &["export", "s.packs", "x.npz"],
        &["export", "s.packs", "x.tar"],
        &["subset", "s.packs", "sub.pack", "--where", "sample >= 5"],
        &["split", "s.packs", "sp.pack", "--folds", "2"],
        &["merge", "s.packs", "all.pack", "m.pack"],
        &["append", "t.packs", "s.packs"],
        &["bench", "load", "s.packs", "--batch", "4"],
        &["doctor", "s.packs", "--batch", "4"],
    ] {
        let ran = folder.packds(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    assert_eq!(info(&folder, "t.packs")["n_samples"], info(&folder, "all.pack")["n_samples"]);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_the_set_as_it_was() {
    let folder = Folder::new();
    let small = SamplePack { n_samples: 6, chunk_samples: 4, ..SamplePack::default() };
    small.write(&folder, "a.pack");
    photos(&folder);
    folder.packds(&["append", "s.packs", "a.pack", "-q"]).ok();
    fs::write(folder.path("file.packs"), b"").unwrap();
    let before = folder.files("s.packs");
    for (args, expected) in [
        (&["append", "s.packs", "a.pack"][..], "is already in the set"),
        (&["append", "s.packs", "all.pack"], "expected"),
        (&["append", "s.packs", "s.packs@1"], "samples of this set are already in the set"),
        (&["append", "s.packs", "s.packs"], "samples of this set are already in the set"),
        (&["append", "a.pack", "s.packs"], "expected the name of a set, which ends with .packs"),
        (&["append", "s.packs@1", "a.pack"], "s.packs@1: this is the name of a version of the set 's.packs'"),
        (&["append", "s.packs", "none.pack"], "none.pack: cannot open"),
        (&["append", "none/s.packs", "a.pack"], "the folder none does not exist"),
        (&["append", "file.packs", "a.pack"], "file.packs: cannot open: Not a directory"),
        (&["append", "new.packs", "a.pack", "a.pack"], "is already in the set"),
        (&["append", "s.packs", "a.pack", "--dry-run"], "is already in the set"),
    ] {
        let ran = folder.packds(args);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
        assert_eq!(folder.files("s.packs"), before, "{args:?}");
    }
    // A folder that a crash left without a manifest is a new set.
    fs::create_dir(folder.path("left.packs")).unwrap();
    folder.packds(&["append", "left.packs", "a.pack", "-q"]).ok();
    let dry = folder.packds(&["append", "dry.packs", "a.pack", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["n_samples"], &dry["n_shards"]), (&json!(true), &json!(6), &json!(1)));
    assert!(!folder.path("dry.packs").exists());
    let folder_without = folder.packds(&["info", "new.packs"]);
    assert!(folder_without.code != 0, "{}", folder_without.stdout);
}

/// A set that is converted directly has the samples, the order, the ids and the statistics of the pack that the same
/// conversion writes.
#[test]
fn a_conversion_to_shards_has_the_samples_of_a_conversion_to_one_pack() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    let source = source.to_str().unwrap();
    for (mode, rule) in [
        (&["--mode", "raw"][..], &["--shards", "3"][..]),
        (&["--mode", "encoded"], &["--shards", "2"]),
        (&["--codec", "zstd"], &["--shard-size", "20KB"]),
        (&["--mode", "encoded", "--keep-order"], &["--shards", "100"]),
    ] {
        let args = |target, more: &[&'static str]| {
            [&["convert", source, target, "--chunk", "4", "--json"], mode, more].concat()
        };
        let one = folder.packds(&args("one.pack", &["--force"])).json();
        let set = folder.packds(&args("set.packs", rule)).json();
        let n_shards = set["n_shards"].as_u64().unwrap();
        assert!(n_shards > 1, "{rule:?}: {set}");
        assert_eq!((&one["n_samples"], &one["n_chunks"]), (&set["n_samples"], &set["n_chunks"]));
        folder.packds(&["verify", "set.packs", "-q"]).ok();
        folder.packds(&["merge", "set.packs", "merged.pack", "--force", "-q"]);
        let (one, merged) = (info(&folder, "one.pack"), info(&folder, "merged.pack"));
        let set = info(&folder, "set.packs");
        for key in ["pack_uuid", "dataset_uuid", "classes", "fields"] {
            assert_eq!(one[key], set[key], "{key}");
        }
        assert_eq!(one["stats"]["fields"], set["stats"]["fields"]);
        assert_eq!(one["order"], set["order"]);
        // Chunks end with their shards only at the end, so the correlation is the same up to rounding.
        let icc = |info: &Value| info["stats"]["labels"]["label"]["icc"].as_f64().unwrap();
        assert!((icc(&one) - icc(&set)).abs() < 1e-9, "{one} {set}");
        let bytes = |name: &str| {
            let pack = packds_format::Pack::open(fs::read(folder.path(name)).unwrap()).unwrap();
            let fields = 0..pack.schema().fields().len();
            let item = |field, sample| pack.item(field, sample).unwrap().into_owned();
            let of = |sample| fields.clone().map(|field| item(field, sample)).collect::<Vec<_>>();
            (0..pack.n_samples()).map(|sample| (pack.path(sample).unwrap(), of(sample))).collect::<Vec<_>>()
        };
        assert!(bytes("one.pack") == bytes("merged.pack"), "{mode:?}");
        assert_eq!(one["pack_uuid"], merged["pack_uuid"]);
        // The same options give the same files.
        let files = |name: &str| {
            folder
                .files(name)
                .into_iter()
                .map(|file| (fs::read(folder.path(name).join(&file)).unwrap(), file))
                .collect::<Vec<_>>()
        };
        folder.packds(&[&args("again.packs", rule)[..], &["--jobs", "1"]].concat());
        assert!(files("set.packs") == files("again.packs"), "{mode:?}");
        fs::remove_dir_all(folder.path("set.packs")).unwrap();
        fs::remove_dir_all(folder.path("again.packs")).unwrap();
    }
    for (target, rule, expected) in [
        ("x.pack", "--shards=2", "expected the name of a set"),
        ("x.packs", "--seed=1", "this is the name of a set of packs"),
        ("x.packs@2", "--seed=1", "this is the name of a version of the set 'x.packs'"),
        ("x.packs@2", "--shards=2", "this is the name of a version of the set 'x.packs'"),
        ("x.packs", "--shard-size=0", "expected at least 1 byte"),
        ("one.packs", "--shards=2", "this set already exists"),
    ] {
        fs::create_dir_all(folder.path("one.packs")).unwrap();
        for dry in [&[][..], &["--dry-run"]] {
            let ran = folder.packds(&[&["convert", source, target, rule], dry].concat());
            let is_new = dry.is_empty() || target != "one.packs";
            assert!(!is_new || ran.code != 0 && ran.stderr.contains(expected), "{}", ran.stderr);
        }
    }
    assert!(folder.files(".").iter().all(|name| !name.contains("packing")), "{:?}", folder.files("."));
}

/// Of several writers, each either adds its pack or says that another was first. No pack is lost or added twice.
#[test]
fn writers_at_the_same_time_never_lose_a_version() {
    let folder = Folder::new();
    let names: Vec<String> = (0..6).map(|n| format!("{n}.pack")).collect();
    for (n, name) in (0..).zip(&names) {
        SamplePack { n_samples: 5 + n, chunk_samples: 4, ..SamplePack::default() }.write(&folder, name);
    }
    folder.packds(&["append", "s.packs", &names[0], "-q"]).ok();
    let mut children: Vec<_> = names[1..]
        .iter()
        .map(|name| {
            let mut command = folder.command(&["append", "s.packs", name, "-q"]);
            (name, command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
        })
        .collect();
    let mut added = 1;
    while let Some((name, child)) = children.pop() {
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            added += 1;
        } else {
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(err.contains("first") || err.contains("is writing this file"), "{err}");
            // Another writer may still be first.
            while folder.packds(&["append", "s.packs", name, "-q"]).code != 0 {}
            added += 1;
        }
    }
    let found = info(&folder, "s.packs");
    assert_eq!((&found["set"]["version"], &found["n_samples"]), (&json!(added), &json!((5..11).sum::<u64>())));
    folder.packds(&["verify", "s.packs", "-q"]).ok();
}

/// The usual limit of open files is lower than the number of shards of a large set.
#[test]
fn a_set_may_have_more_shards_than_open_files_are_allowed() {
    let folder = Folder::new();
    let names: Vec<String> = (0..60).map(|n| format!("{n}.pack")).collect();
    for (n, name) in (0..).zip(&names) {
        SamplePack { n_samples: 3 + n, chunk_samples: 4, paths: Some(Vec::new()), ..SamplePack::default() }
            .write(&folder, name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for packs in names.chunks(20) {
        folder.packds(&[&["append", "s.packs"], packs, &["-q"]].concat()).ok();
    }
    let labels = |limits: &str| {
        let mut shell = std::process::Command::new("sh");
        let command = format!("{limits}; exec {} labels s.packs", crate::support::binary().display());
        shell.args(["-c", &command]).current_dir(folder.path(".")).output().unwrap()
    };
    // The limit can be raised.
    let raised = labels("ulimit -S -n 40");
    assert!(raised.status.success(), "{}", String::from_utf8_lossy(&raised.stderr));
    let refused = labels("ulimit -n 40");
    let err = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && err.contains("allow more of them (`ulimit -n`)"), "{err}");
}

/// Number of kills. `PACKDS_KILLS`, set when the tests are compiled, asks for more.
fn n_kills() -> u32 {
    option_env!("PACKDS_KILLS").and_then(|n| n.parse().ok()).unwrap_or(20)
}

#[test]
fn a_killed_append_leaves_every_version_whole() {
    let folder = Folder::new();
    SamplePack { n_samples: 20_000, chunk_samples: 16, paths: Some(Vec::new()), ..SamplePack::default() }
        .write(&folder, "a.pack");
    SamplePack { n_samples: 20_001, chunk_samples: 16, paths: Some(Vec::new()), ..SamplePack::default() }
        .write(&folder, "b.pack");
    folder.packds(&["append", "s.packs", "a.pack", "-q"]).ok();
    let started = Instant::now();
    folder.packds(&["append", "t.packs", "a.pack", "b.pack", "-q"]).ok();
    let takes = started.elapsed();
    let mut versions = BTreeSet::new();
    for step in 0..n_kills() {
        let mut command = folder.command(&["append", "s.packs", "b.pack", "-q"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(takes * step / n_kills() + Duration::from_millis(1));
        signal(&child, "-KILL");
        child.wait().unwrap();
        folder.packds(&["verify", "s.packs@1", "-q"]).ok();
        let found = info(&folder, "s.packs");
        let (version, n) = (found["set"]["version"].as_u64().unwrap(), found["n_samples"].as_u64().unwrap());
        assert_eq!(n, if version == 1 { 20_000 } else { 40_001 });
        folder.packds(&["verify", "s.packs", "-q"]).ok();
        versions.insert(version);
        if version == 2 {
            fs::remove_file(folder.path("s.packs/manifest-00000002.json")).unwrap();
        }
    }
    folder.packds(&["append", "s.packs", "b.pack", "-q"]).ok();
    // Besides two shards and two manifests, nothing is left.
    assert_eq!(folder.files("s.packs").len(), 4);
    assert!(versions.contains(&1), "{versions:?}");
}

/// A set or a merged pack may have the samples of a set under other names.
#[test]
fn samples_that_are_in_the_set_are_refused_or_told() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "all.pack", "half.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    for half in ["half.train.pack", "half.val.pack"] {
        folder.packds(&["append", "s.packs", half, "-q"]).ok();
    }
    folder.packds(&["merge", "s.packs", "new.pack", "-q"]).ok();
    folder.packds(&["merge", "s.packs@1", "old.pack", "-q"]).ok();
    folder.packds(&["append", "other.packs", "s.packs", "-q"]).ok();
    folder
        .packds(&[
            "convert",
            fixture("images/same_size").to_str().unwrap(),
            "c.packs",
            "--shards",
            "2",
            "--chunk",
            "4",
            "-q",
        ])
        .ok();
    folder.packds(&["merge", "c.packs", "c.pack", "-q"]).ok();
    for (set, pack) in [
        ("s.packs", "new.pack"),
        ("s.packs", "old.pack"),
        ("s.packs", "s.packs"),
        ("other.packs", "new.pack"),
        ("other.packs", "s.packs@2"),
        ("c.packs", "c.pack"),
    ] {
        let ran = folder.packds(&["append", set, pack]);
        assert!(ran.code == 2 && ran.stderr.contains("already in the set"), "{set} {pack}: {}", ran.stderr);
    }
    let told = |args: &[&str]| folder.packds(args).json()["warnings"].to_string();
    let twice = told(&["append", "other.packs", "s.packs@1", "--dry-run", "--json"]);
    assert!(twice.contains("equal paths in several packs: ") && twice.contains(".png'"), "{twice}");
    let twice = told(&["merge", "half.train.pack", "half.train.pack", "t.pack", "--json"]);
    assert!(twice.contains("equal paths in several packs: "), "{twice}");
    assert_eq!(told(&["merge", "half.train.pack", "half.val.pack", "t.pack", "--force", "--json"]), "[]");
}

/// What an interrupted append left is used only if it is the source.
#[test]
fn a_damaged_leftover_is_replaced() {
    let folder = Folder::new();
    SamplePack { n_samples: 10, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "a.pack");
    SamplePack { n_samples: 11, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "b.pack");
    folder.packds(&["append", "s.packs", "a.pack", "-q"]).ok();
    let added = folder.packds(&["append", "s.packs", "b.pack", "--json"]).json();
    let shard = format!("s.packs/{}", added["added"][0]["path"].as_str().unwrap());
    assert_eq!(added["added"][0]["was_there"], json!(false));
    let whole = fs::read(folder.path(&shard)).unwrap();
    let mut flipped = whole.clone();
    flipped[5000] ^= 1;
    for (left, was_there) in [(&flipped, false), (&whole, true), (&whole[..whole.len() - 1].to_vec(), false)] {
        fs::remove_file(folder.path("s.packs/manifest-00000002.json")).unwrap();
        fs::write(folder.path(&shard), left).unwrap();
        let again = folder.packds(&["append", "s.packs", "b.pack", "--json"]).json();
        assert_eq!(again["added"][0]["was_there"], json!(was_there));
        folder.packds(&["verify", "s.packs", "-q"]).ok();
    }
    // A shard that is missing is told.
    fs::remove_file(folder.path(&shard)).unwrap();
    SamplePack { n_samples: 12, chunk_samples: 4, ..SamplePack::default() }.write(&folder, "c.pack");
    let told = folder.packds(&["append", "s.packs", "c.pack", "--json"]).json()["warnings"].to_string();
    assert!(told.contains("of the set is missing or has another size"), "{told}");
}

#[test]
fn a_dry_run_forecasts_the_shards_and_other_numbers_are_told() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    let convert = |args: &[&str]| {
        folder.packds(&[&["convert", source.to_str().unwrap(), "s.packs", "--json"], args].concat()).json()
    };
    let dry = convert(&["--shards", "3", "--chunk", "4", "--dry-run"]);
    assert_eq!((&dry["n_shards"], &dry["shard_bytes"]), (&json!(3), &json!(2 * 4 * 32 * 32 * 3)));
    let of_size = convert(&["--shard-size", "30KB", "--chunk", "4", "--dry-run"]);
    assert_eq!(of_size["n_shards"], json!(3), "{of_size}");
    assert!(!folder.path("s.packs").exists());
    let text = folder.packds(&["convert", source.to_str().unwrap(), "s.packs", "--shards=3", "--chunk=4", "--dry-run"]);
    assert!(text.stdout.contains("set      3 shards of about 24.0 KiB"), "{}", text.stdout);
    let few = convert(&["--shards", "3"]);
    assert_eq!(few["n_shards"], json!(1));
    let told = "--shards 3: the set has 1 shard, because a shard has whole chunks of 1024 samples; --chunk makes chunks smaller";
    assert_eq!(few["warnings"], json!([told]));
    fs::remove_dir_all(folder.path("s.packs")).unwrap();
    let large = convert(&["--shard-size", "1", "--chunk", "4"]);
    assert!(large["warnings"].to_string().contains("--shard-size 1: the largest shard has "), "{large}");
}

/// The packs that a set was made from are named by what is made from the set.
#[test]
fn a_pack_made_from_a_set_knows_where_its_samples_come_from() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["subset", "all.pack", "a.pack", "--samples", "0-4", "-q"]).ok();
    folder.packds(&["subset", "all.pack", "b.pack", "--samples", "5-12", "-q"]).ok();
    folder.packds(&["append", "s.packs", "a.pack", "b.pack", "-q"]).ok();
    let origins = |args: &[&str]| {
        folder.packds(&[args, &["-q"]].concat()).ok();
        info(&folder, args[2])["provenance"]["origins"][0]["shards"].clone()
    };
    let all = origins(&["merge", "s.packs", "m.pack"]);
    assert_eq!((all[0]["n_samples"].clone(), all[1]["n_samples"].clone()), (json!(5), json!(8)), "{all}");
    assert_eq!(all[0]["provenance"]["edit"]["command"], json!("subset"));
    let one = origins(&["subset", "s.packs", "one.pack", "--samples", "6"]);
    assert_eq!((one.as_array().unwrap().len(), one[0]["n_samples"].clone()), (1, json!(8)), "{one}");
}

/// A shard without samples that a command needs is not opened.
#[test]
fn a_missing_shard_stops_only_commands_that_need_it() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "all.pack", "half.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    folder.packds(&["append", "s.packs", "half.train.pack", "half.val.pack", "-q"]).ok();
    let set = info(&folder, "s.packs")["set"]["shards"].clone();
    fs::remove_file(folder.path("s.packs").join(set[1]["path"].as_str().unwrap())).unwrap();
    for args in [
        &["head", "s.packs", "-n", "3"][..],
        &["labels", "s.packs", "--samples", "0-2"],
        &["labels", "s.packs", "--samples", "0-2", "--json"],
        &["subset", "s.packs", "some.pack", "--samples", "0-2"],
        &["extract", "s.packs", "out", "--samples", "0-2"],
    ] {
        folder.packds(args).ok();
    }
    let last = (set[0]["n_samples"].as_u64().unwrap() + 1).to_string();
    for args in [
        &["verify", "s.packs"][..],
        &["head", "s.packs", "-n", "100"],
        &["labels", "s.packs", "--samples", &last],
        &["subset", "s.packs", "o.pack", "--samples", &last],
        &["merge", "s.packs", "o.pack"],
        &["export", "s.packs", "o.npz"],
        &["extract", "s.packs", "out2", "--samples", &last],
        &["show", "s.packs", "-o", "sheet.png"],
    ] {
        let ran = folder.packds(args);
        let said = [ran.stdout.as_str(), ran.stderr.as_str()].concat();
        assert_eq!(ran.code, 1, "{args:?}: {said}");
        assert!(said.contains("cannot open: No such file"), "{args:?}: {said}");
    }
}

#[test]
fn verify_lists_the_damage_of_every_shard() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "all.pack", "part.pack", "--folds", "3", "-q"]).ok();
    folder.packds(&["append", "s.packs", "part.fold0.pack", "part.fold1.pack", "part.fold2.pack", "-q"]).ok();
    let set = info(&folder, "s.packs")["set"]["shards"].clone();
    let shard = |n: usize| folder.path("s.packs").join(set[n]["path"].as_str().unwrap());
    fs::remove_file(shard(1)).unwrap();
    let mut bytes = fs::read(shard(2)).unwrap();
    bytes[8200] ^= 1;
    fs::write(shard(2), bytes).unwrap();
    let ran = folder.packds(&["verify", "s.packs", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &report["ok"]), (1, &json!(false)));
    assert!(report["errors"][0].as_str().unwrap().contains("cannot open"), "{report}");
    assert_eq!(report["bad_chunks"][0]["shard"], set[2]["path"]);
    let sample = report["bad_samples"][0]["sample"].as_u64().unwrap();
    let text = folder.packds(&["verify", "s.packs"]);
    assert!(text.stdout.contains(&format!("  in the set: sample {sample}, class ")), "{}", text.stdout);
}

/// Checksums do not tell whether a writer counted correctly.
#[test]
fn verify_compares_the_manifest_with_the_shards() {
    let folder = Folder::new();
    photos(&folder);
    folder.packds(&["split", "all.pack", "half.pack", "--ratio", "0.5,0.5", "-q"]).ok();
    folder.packds(&["append", "s.packs", "half.train.pack", "half.val.pack", "-q"]).ok();
    folder.packds(&["verify", "s.packs", "-q"]).ok();
    let path = folder.path("s.packs/manifest-00000001.json");
    let whole = Manifest::parse(&fs::read(&path).unwrap(), Limits::default()).unwrap();
    let verify = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = whole.clone();
        change(&mut manifest);
        fs::write(&path, manifest.to_bytes().unwrap()).unwrap();
        let ran = folder.packds(&["verify", "s.packs"]);
        assert_eq!(ran.code, i32::from(manifest != whole), "{}", ran.stdout);
        ran.stdout
    };
    verify(&|_| {});
    for (change, expected) in [
        (
            &(|m: &mut Manifest| m.classes[0].names.swap(0, 2)) as &dyn Fn(&mut Manifest),
            "class 0 of `label`: expected 'circle'",
        ),
        (&|m| m.classes[0].names.truncate(1), "class 1 of `label`: expected 'noise'"),
        (&|m| m.classes.clear(), "expected the classes of `label`, as in the shard"),
        (&|m| m.classes[0].counts[0] += 1, "samples of 'circle' in `label`: expected 7, as in the shards, found 8"),
        (&|m| m.stats.fields.get_mut("image").unwrap().mean[1] = 9.0, "mean of channel 1 of `image`: expected 0."),
        (&|m| m.stats.fields.get_mut("image").unwrap().std[2] = 0.5, "std of channel 2 of `image`: expected 0."),
        (&|m| m.stats.fields.get_mut("image").unwrap().n_pixels += 1, "pixels of `image`: expected 20480"),
        (&|m| m.stats.fields.clear(), "expected statistics of the pixels of `image`, as in the shards, found none"),
    ] {
        let said = verify(change);
        assert!(said.contains("manifest: ") && said.contains(expected), "{expected}: {said}");
    }
    // Other versions can still be opened if the latest manifest is damaged.
    fs::write(&path, b"{}").unwrap();
    let ran = folder.packds(&["info", "s.packs"]);
    assert!(ran.stderr.contains("other versions of the set, such as photos.packs@1"), "{}", ran.stderr);
}
