//! `packds bench` runs, checks itself, and writes JSON.

#![cfg(test)]

use serde_json::Value;

use crate::support::{fixture, pack, packds, stderr, stdout, temp_dir};

#[test]
fn bench_convert_tells_each_figure_beside_its_limit() {
    let dir = temp_dir();
    let work = dir.path().to_str().unwrap();
    let images = fixture("images/same_size");
    let images = images.to_str().unwrap();
    let result = packds(&["bench", "convert", images, "--rounds", "1", "--jobs", "2", "--work", work, "--json"]);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let bench: Value = serde_json::from_str(&stdout(&result)).unwrap();
    for key in ["images_per_s", "bytes_per_s", "limit_images_per_s", "ratio", "peak_rss_bytes"] {
        for figure in [&bench["raw"], &bench["encoded"], &bench["verify"]] {
            assert!(figure[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
    assert_eq!(bench["raw"]["limit"], "read_and_decode");
    assert_eq!(bench["encoded"]["limit"], "cat");
    assert_eq!(bench["verify"]["limit"], "read_and_crc32c");
    assert!(bench["raw"]["seconds"]["decode"].as_f64().unwrap() > 0.0);
    assert!(bench["open_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((bench["threads"].as_u64(), bench["n_files"].as_u64()), (Some(2), Some(20)));
    assert!(bench["machine"]["cores"].as_u64().unwrap() >= 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the packs are removed");
}

#[test]
fn bench_edit_tells_each_edit_beside_a_plain_copy() {
    let (dir, pack) = pack(&[]);
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let folder = work.to_str().unwrap();
    let result = packds(&["bench", "edit", &pack, "--rounds", "1", "--copies", "3", "--work", folder, "--json"]);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let bench: Value = serde_json::from_str(&stdout(&result)).unwrap();
    let n = bench["n_samples"].as_u64().unwrap();
    let edits = bench["edits"].as_array().unwrap();
    let found: Vec<(&str, u64)> =
        edits.iter().map(|edit| (edit["name"].as_str().unwrap(), edit["n_samples"].as_u64().unwrap())).collect();
    assert_eq!(found, [("merge", 3 * n), ("split", n), ("subset", n.div_ceil(10)), ("reorder", n)]);
    assert!(edits.iter().all(|edit| edit["limit"] == "cat" && edit["ratio"].as_f64().unwrap() > 0.0));
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "the packs are removed");
    let missing = packds(&["bench", "edit", "no.pack"]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
}

fn bench_load(pack: &str, options: &[&str]) -> Value {
    let mut args = vec!["bench", "load", pack, "--seconds", "0.2", "--json"];
    args.extend(options);
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    serde_json::from_str(&stdout(&result)).unwrap()
}

#[test]
fn bench_load_tells_loading_beside_memcpy() {
    let (_dir, pack) = pack(&["--chunk", "4"]);
    let mut checksums = Vec::new();
    for (order, batch) in [
        ("sequential", "4"),
        ("random", "4"),
        ("chunks", "4"),
        ("window", "4"),
        // There are 20 samples, so the last batch is not full. The checksum covers it too.
        ("window", "6"),
    ] {
        let options = ["--order", order, "--batch", batch, "--jobs", "2", "--memory", "1GiB"];
        let bench = bench_load(&pack, &options);
        for key in [
            "images_per_s",
            "bytes_per_s",
            "limit_images_per_s",
            "ratio",
            "first_batch_ms",
            "resume_ms",
            "first_epoch_images_per_s",
            "p99_batch_ms",
            "peak_rss_bytes",
            "peak_anon_bytes",
            "cpu_s_per_1000",
        ] {
            assert!(bench[key].as_f64().unwrap() > 0.0, "{key}");
        }
        assert_eq!(bench["limit"], "memcpy");
        assert_eq!(bench["cache"], "warm");
        assert_eq!(bench["options"]["order"], order);
        // The report has the values of the command line, not descriptions.
        assert_eq!(bench["options"]["checksums"], "first-touch");
        assert_eq!(bench["access"], "mapped");
        assert!(bench["access_reason"].as_str().unwrap().starts_with("mapped, because"));
        assert_eq!(bench["path"], pack.as_str());
        assert!(bench["slices"].as_u64().unwrap() >= 5);
        assert!(bench["machine"]["cores"].as_u64().unwrap() >= 1);
        // Borrowed batches are also measured with one read of every byte, for a fair comparison.
        let lent = ["sequential", "chunks"].contains(&order);
        assert_eq!(bench["read_once_images_per_s"].is_number(), lent, "{order}");
        checksums.push(bench["checksum"].as_str().unwrap().to_owned());
    }
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn bench_load_tells_augmented_images_beside_their_decoding_and_resizing() {
    let (_dir, encoded) = pack(&["--mode", "encoded"]);
    let bench = bench_load(&encoded, &["--batch", "4"]);
    assert_eq!(bench["limit"], "decode_crop_resize");
    assert_eq!(bench["options"]["augment"], "rrc224,flip");
    let (_dir, mixed) = pack(&["--mode", "mixed", "--raw-fraction", "0.5"]);
    bench_load(&mixed, &["--batch", "4"]);
    // Words that resize the whole image, and batches of several sizes.
    for options in
        [["--augment", "letterbox64,flip"], ["--augment", "shortside:40-60/80"], ["--buckets", "area:4096/16"]]
    {
        let bench = bench_load(&encoded, &[&["--batch", "4"], &options[..]].concat());
        assert!(bench["ratio"].as_f64().unwrap() > 0.0, "{options:?}");
    }
    let bench = bench_load(&encoded, &["--batch", "4", "--buckets", "64,80x48"]);
    assert_eq!(
        (&bench["options"]["buckets"], &bench["options"]["augment"]),
        (&"64,80x48".into(), &"cover,flip".into())
    );
    let refused = packds(&["bench", "load", &encoded, "--buckets", "64,32"]);
    assert!(stderr(&refused).contains("the ratios of two sizes"), "{}", stderr(&refused));
    let (_dir, raw) = pack(&[]);
    let bench = bench_load(&raw, &["--batch", "4", "--augment", "rrc16,flip"]);
    assert_eq!(bench["limit"], "resize");
    assert_eq!(bench["sample_bytes"].as_u64().unwrap(), 16 * 16 * 3 + 4);
}

#[test]
fn bench_load_reduces_the_default_batch_for_a_small_pack() {
    let (_dir, pack) = pack(&[]);
    let bench = bench_load(&pack, &[]);
    assert_eq!((&bench["options"]["batch"], &bench["batch_cut_to"]), (&20.into(), &20.into()));
    let shown = stdout(&packds(&["bench", "load", &pack, "--seconds", "0.2"]));
    let line = "\nbatch    the default size was reduced to 20: an epoch of 20 samples must have one batch\n";
    assert!(shown.contains(line), "{shown}");
    assert!(bench_load(&pack, &["--batch", "20"])["batch_cut_to"].is_null());
    let result = packds(&["bench", "load", &pack, "--batch", "21"]);
    assert_eq!(result.status.code(), Some(2));
    let expected = "no whole batch: expected at least 21 samples, found 20 samples\n\nhint: use a smaller --batch\n";
    assert!(stderr(&result).ends_with(expected), "{}", stderr(&result));
}

#[test]
fn bench_load_refuses_options_that_do_not_go_together() {
    let (_dir, pack) = pack(&[]);
    for (options, reason) in [
        (["--order", "chunks", "--window", "3"], "--window"),
        (["--order", "window", "--seconds", "0"], "--seconds"),
        (["--order", "window", "--augment", "rcc224"], "rcc224"),
    ] {
        let mut args = vec!["bench", "load", &pack];
        args.extend(options);
        let result = packds(&args);
        assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
        assert!(stderr(&result).contains(reason), "{}", stderr(&result));
    }
}

#[test]
fn bench_tune_tells_the_wait_of_each_configuration_and_what_to_set() {
    let (dir, pack) = pack(&["--chunk", "4"]);
    let plot = dir.path().join("tune.svg");
    let options = [
        "--step-ms",
        "2",
        "--jobs",
        "1,2",
        "--prefetch",
        "1,auto",
        "--batch",
        "4,8",
        "--quick",
        "--seconds",
        "0.05",
        "--json",
        "--plot",
        plot.to_str().unwrap(),
    ];
    let result = packds(&[&["bench", "tune", &pack], &options[..]].concat());
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert!(stderr(&result).contains(": 7 of 8 steps"));
    let bench: Value = serde_json::from_str(&stdout(&result)).unwrap();
    assert_eq!(bench["step_ms"], 2.0);
    let runs = bench["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    for run in runs {
        for key in ["wait_share", "cpu_s_per_1000"] {
            assert!(run[key].as_f64().unwrap() >= 0.0, "{key}");
        }
        for key in ["first_batch_ms", "images_per_s", "memory_bytes"] {
            assert!(run[key].as_f64().unwrap() > 0.0, "{key}");
        }
        assert!(run["wait_ms"]["median"].as_f64().unwrap() <= run["wait_ms"]["p95"].as_f64().unwrap());
        // A batch takes at least as long as a step.
        let batch = run["batch"].as_f64().unwrap();
        assert!(run["images_per_s"].as_f64().unwrap() <= batch / 0.002);
    }
    assert!(bench["fixed_cost_ms"].as_f64().unwrap() > 0.0);
    assert!([4, 8].contains(&bench["recommended"]["batch"].as_u64().unwrap()));
    assert!(bench["recommended"]["why"].as_str().unwrap().contains("ms"));
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("Batches of 4") && svg.contains("Batches of 8") && svg.contains("a.pack"));
    // An existing picture is not replaced.
    let again = packds(&[&["bench", "tune", &pack], &options[..]].concat());
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
}

#[test]
fn bench_tune_shows_a_table_with_what_to_set() {
    let (dir, pack) = pack(&[]);
    let plot = dir.path().join("tune.svg");
    let plot = plot.to_str().unwrap();
    let result = packds(&[
        "bench",
        "tune",
        &pack,
        "--step-ms",
        "1",
        "--jobs",
        "1",
        "--prefetch",
        "2",
        "--batch",
        "4",
        "--seconds",
        "0.05",
        "--plot",
        plot,
    ]);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let shown = stdout(&result);
    assert!(shown.contains("\nset      threads 1, prefetch 2, batch 4: training waits"), "{shown}");
    assert!(shown.contains("cache    warm: 100.0 %"), "{shown}");
    assert!(shown.ends_with(&format!("\nplot     {plot}\n")), "{shown}");
}

#[test]
fn bench_tune_never_recommends_a_batch_that_it_cannot_wait_for() {
    let (_dir, pack) = pack(&[]);
    let options = ["--step-ms", "1", "--jobs", "1", "--prefetch", "1", "--quick"];
    let run = |more: &[&str]| {
        let result = packds(&[&["bench", "tune", &pack], &options[..], more].concat());
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
        stdout(&result)
    };
    let shown = run(&["--batch", "20"]);
    assert!(!shown.contains("-0.00") && !shown.contains("**"), "{shown}");
    assert!(shown.contains("batch    20 is too large for 20 samples"), "{shown}");
    assert!(shown.contains("set      no recommendation"), "{shown}");
    let bench: Value = serde_json::from_str(&run(&["--batch", "20", "--json"])).unwrap();
    for null in [&bench["runs"][0]["wait_ms"], &bench["recommended"], &bench["fixed_cost_ms"]] {
        assert!(null.is_null(), "{bench}");
    }
    // Default sizes are limited to measurable ones, without duplicates.
    let shown = run(&[]);
    assert!(shown.contains("batch    larger default sizes were reduced to 10"), "{shown}");
    let bench: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(bench["runs"].as_array().unwrap().len(), 1);
    assert_eq!(bench["recommended"]["batch"], 10);
}

#[test]
fn bench_tune_refuses_what_cannot_be_measured() {
    let (_dir, pack) = pack(&[]);
    for (options, reason) in [
        (["--step-ms", "0"], "--step-ms"),
        (["--prefetch", "0"], "auto"),
        (["--batch", "100000"], "hint: pass --batch "),
    ] {
        let mut args = vec!["bench", "tune", &pack];
        args.extend(options);
        let result = packds(&args);
        assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
        assert!(stderr(&result).contains(reason), "{}", stderr(&result));
    }
}
