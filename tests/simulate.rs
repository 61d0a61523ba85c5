//! `packds simulate`: the numbers follow from the plans alone.

#![cfg(test)]

use serde_json::{Value, json};

use crate::support::{Folder, SamplePack};

const SET: [&str; 8] = ["--samples", "100000", "--sample-bytes", "100KB", "--chunk", "100", "--batch", "50"];

fn simulate(folder: &Folder, options: &[&str]) -> Value {
    folder.packds(&[&["simulate", "--json"], &SET[..], options].concat()).json()
}

#[test]
fn every_chunk_is_read_once_per_epoch_and_a_cache_of_the_whole_set_answers_the_rest() {
    let folder = Folder::new();
    let found = simulate(&folder, &["--ranks", "1", "--cache", "10GB", "--epochs", "3"]);
    assert_eq!((&found["n_chunks"], &found["chunk_bytes"]), (&json!(1000), &json!(10_000_000)), "{found}");
    let epochs = found["epochs"].as_array().unwrap();
    assert_eq!(epochs[0]["bytes_from_store"], json!(10_000_000_000_u64), "{found}");
    for epoch in &epochs[1..] {
        assert_eq!((&epoch["bytes_from_store"], &epoch["wait_s"]), (&json!(0), &json!(0.0)), "{found}");
    }
    // 100,000 images at 4000 per second.
    assert!((epochs[1]["seconds"].as_f64().unwrap() - 25.0).abs() < 1e-6, "{found}");
    let half = simulate(&folder, &["--ranks", "1", "--cache", "5GB", "--epochs", "2"]);
    let share = half["epochs"][1]["hit_share"].as_f64().unwrap();
    assert!((0.45..=0.55).contains(&share), "{half}");
}

#[test]
fn machines_share_the_reads_and_a_slow_link_makes_training_wait() {
    let folder = Folder::new();
    // 100 GB.
    let large = ["simulate", "--samples", "1000000", "--sample-bytes", "100KB", "--chunk", "100", "--window", "16"];
    let cluster = ["--ranks", "16", "--ranks-per-host", "4", "--epochs", "1", "--json"];
    let found = folder.packds(&[&large[..], &cluster].concat()).json();
    assert_eq!((&found["n_hosts"], &found["n_ranks"]), (&json!(4), &json!(16)), "{found}");
    let bytes = found["epochs"][0]["bytes"].as_u64().unwrap();
    assert!((24_900_000_000..25_200_000_000).contains(&bytes), "{found}");
    // 4 ranks train 1.6 GB/s.
    let slow = ["--ranks", "4", "--bandwidth", "800MB", "--epochs", "1", "--json"];
    let slow = folder.packds(&[&large[..], &slow].concat()).json();
    let epoch = &slow["epochs"][0];
    let share = epoch["wait_s"].as_f64().unwrap() / epoch["seconds"].as_f64().unwrap();
    assert!((0.48..0.52).contains(&share), "{slow}");
    // Small requests cost more.
    let requests = |size: &str| simulate(&folder, &["--request", size])["epochs"][0]["n_requests"].as_u64().unwrap();
    assert_eq!(requests("1MB"), 10 * requests("16MiB"));
}

#[test]
fn the_result_depends_on_the_seed_alone_and_the_plot_shows_it() {
    let folder = Folder::new();
    let hits = |seed: &str| simulate(&folder, &["--seed", seed, "--cache", "3GB"])["epochs"][1]["hit_share"].clone();
    assert_eq!(hits("1"), hits("1"));
    let args = [&["simulate"], &SET[..], &["--plot", "cache.svg"]].concat();
    let text = folder.packds(&args).ok();
    assert!(text.contains("hits % by next use") && text.contains("cache.svg"), "{text}");
    let plot = std::fs::read_to_string(folder.path("cache.svg")).unwrap();
    assert!(plot.contains("evicts by next use"), "{plot}");
    let again = folder.packds(&args);
    assert!(again.code == 2 && again.stderr.contains("cache.svg"), "{}", again.stderr);
}

#[test]
fn a_pack_or_a_set_describes_itself_and_what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    SamplePack { n_samples: 200, chunk_samples: 10, ..SamplePack::default() }.write(&folder, "a.pack");
    folder.packds(&["append", "s.packs", "a.pack", "-q"]).ok();
    for name in ["a.pack", "s.packs"] {
        let found = folder.packds(&["simulate", name, "--batch", "4", "--ranks", "2", "--json"]).json();
        assert_eq!((&found["n_samples"], &found["n_chunks"]), (&json!(200), &json!(20)), "{found}");
    }
    for (args, says) in [
        (&["--samples", "10"][..], "--sample-bytes"),
        (&["a.pack", "--samples", "10"], "cannot be used with"),
        (&["--samples", "0", "--sample-bytes", "1"], "0"),
        (&["--samples", "100", "--sample-bytes", "1KB", "--order", "random"], "only orders that read whole chunks"),
        (&["--samples", "100", "--sample-bytes", "1KB"], "no whole batch"),
        (&["a.pack", "--rate", "0"], "expected a number above 0"),
    ] {
        let ran = folder.packds(&[&["simulate"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {} {}", ran.code, ran.stderr);
    }
}
