//! `packds doctor`: its output as text, JSON and pictures, and its exit status.

#![cfg(test)]

use serde_json::Value;

use crate::support::{binary, pack, packds, stderr, stdout};

const STAGES: [&str; 5] = ["step", "copy", "transform", "decode", "read"];
const LEVELS: [&str; 7] =
    ["device_batch", "host_batch", "processed_sample", "decoded_sample", "raw_sample", "page_cache", "source"];

fn doctor(pack: &str, options: &[&str]) -> Value {
    let mut args = vec!["doctor", pack, "--seconds", "0.5", "--json"];
    args.extend(options);
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    serde_json::from_str(&stdout(&result)).unwrap()
}

#[test]
fn a_slow_step_binds_and_needs_no_advice() {
    let (_dir, pack) = pack(&["--mode", "encoded"]);
    let options = ["--step-ms", "2000.5", "--batch", "4", "--augment", "rrc32"];
    let told = doctor(&pack, &options);
    assert_eq!((told["binds"].as_str(), told["batch"].as_u64()), (Some("step"), Some(4)));
    assert_eq!(told["advice"], Value::Array(Vec::new()));
    assert_eq!(told["stages"]["step"], 2000.5);
    for stage in STAGES {
        assert!(told["stages"][stage].as_f64().unwrap() >= 0.0, "{stage}");
    }
    let rates = LEVELS.map(|level| told["ladder"][level].as_f64().unwrap());
    assert!(rates.is_sorted_by(|a, b| a >= b) && rates[0] < 4.0, "{rates:?}");
    assert_eq!(told["step_is_modelled"], true);
    let args = ["doctor", &pack, "--seconds", "0.5", "--step-ms", "2000", "--batch", "4", "--check"];
    assert!(stdout(&packds(&args)).contains("no recommended change is a loader option"));
}

#[test]
fn without_a_step_it_is_loading_that_binds() {
    let (_dir, pack) = pack(&["--mode", "encoded"]);
    let told = doctor(&pack, &["--batch", "4", "--jobs", "1", "--check", "--dtype", "f32"]);
    assert_ne!(told["binds"], "step");
    assert_eq!(told["ladder"]["device_batch"], Value::Null);
    assert_eq!(told["possible_images_per_s"], Value::Null);
    for advice in told["advice"].as_array().unwrap() {
        assert!(advice["images_per_s"].as_f64() > told["images_per_s"].as_f64());
        assert!(advice["text"].is_string() && advice["change"].is_string());
    }
}

#[test]
fn packs_of_pixels_are_examined_in_every_order_cold_or_not() {
    let (_dir, pack) = pack(&["--chunk", "4"]);
    for order in ["sequential", "random", "chunks", "window"] {
        let told = doctor(&pack, &["--order", order, "--batch", "4", "--cold"]);
        assert_eq!(told["stages"]["decode"], 0.0);
        assert_eq!(told["cold"], true);
        assert!(told["images_per_s"].as_f64().unwrap() > 0.0, "{order}");
    }
}

#[test]
fn what_is_found_is_shown_and_drawn() {
    let (dir, pack) = pack(&["--mode", "encoded"]);
    for name in ["a.svg", "a.png"] {
        let plot = dir.path().join(name);
        let plot = plot.to_str().unwrap();
        let args = ["doctor", &pack, "--batch", "4", "--seconds", "0.5", "--step-ms", "1", "--plot", plot];
        let result = packds(&args);
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
        let text = stdout(&result);
        assert!(text.starts_with("binds    "), "{text}");
        for part in ["\nstages   ", "\nladder   ", "\nadvice   ", "\nspread   "] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.ends_with(&format!("\nplot     {plot}\n")), "{text}");
        assert!(std::fs::metadata(plot).unwrap().len() > 1000);
        // An existing picture is not replaced.
        assert_eq!(packds(&args).status.code(), Some(2));
    }
}

#[test]
fn the_step_of_a_training_is_learned_from_its_loader() {
    let (_dir, pack) = pack(&["--chunk", "4"]);
    // This program takes a loader's batches and waits after each.
    let training = format!("bench tune {pack} --step-ms 20 --seconds 1.5 --jobs 1 --prefetch 2 --batch 4");
    let program = binary();
    // The training's batch size is used, not `--batch`.
    let mut options = vec!["--batch", "8", "--", program.to_str().unwrap()];
    options.extend(training.split(' '));
    let told = doctor(&pack, &options);
    assert_eq!((told["binds"].as_str(), told["batch"].as_u64()), (Some("step"), Some(4)));
    let step = told["training"]["step_ms"].as_f64().unwrap();
    assert!((19.0..60.0).contains(&step), "{step}");
    assert_eq!(told["stages"]["step"], told["training"]["step_ms"]);
    assert_eq!(told["step_is_modelled"], false);
    let learned = &told["training"]["options"];
    assert_eq!((learned["threads"].as_u64(), told["threads"].as_u64()), (Some(1), Some(1)));
    let notes = told["training"]["notes"].to_string();
    assert!(notes.contains("--batch 8 is ignored: the training command uses"), "{notes}");
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let (dir, pack) = pack(&[]);
    let missing = dir.path().join("no.pack");
    let pack = pack.as_str();
    for (args, says) in [
        (vec![missing.to_str().unwrap()], "no.pack"),
        (vec![pack, "--step-ms=-1"], "--step-ms must be"),
        (vec![pack, "--step-ms", "-3"], "found -3"),
        (vec![pack, "--seconds", "-3"], "found -3"),
        (vec![pack, "--plot", "no-such-folder/a.png"], "no such folder"),
        (vec![pack, "--step-ms", "5", "--", "true"], "--step-ms"),
        (vec![pack, "--augment", "nonsense"], "nonsense"),
        (vec![pack, "--", "./no-such-program"], "no-such-program"),
        (vec![pack, "--batch", "4", "--", "true"], "took no batch from a packds loader"),
    ] {
        let result = packds(&[vec!["doctor"], args].concat());
        let said = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
