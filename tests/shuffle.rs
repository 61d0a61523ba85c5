//! `packds info --shuffle`, end to end: the randomness of batches.

#![cfg(test)]

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Folder, Ran, SamplePack, fixture};

/// 20 images of 3 classes, sorted by class, in 5 chunks of 4.
fn sorted(folder: &Folder) {
    convert(folder, &["--keep-order"]);
}

/// The same images, shuffled.
fn shuffled(folder: &Folder) {
    convert(folder, &["--seed", "0"]);
}

fn convert(folder: &Folder, options: &[&str]) {
    let source = fixture("images/same_size");
    let mut args = vec!["convert", source.to_str().unwrap(), "out.pack"];
    args.extend(["--chunk", "4"]);
    args.extend(options);
    folder.packds(&args).ok();
}

fn info(folder: &Folder, options: &[&str]) -> Ran {
    let mut args = vec!["info", "out.pack", "--shuffle"];
    args.extend(options);
    folder.packds(&args)
}

fn report(folder: &Folder, options: &[&str]) -> Value {
    let mut args = options.to_vec();
    args.push("--json");
    let ran = info(folder, &args);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran.json()["shuffle"].clone()
}

#[test]
fn a_sorted_pack_read_chunk_by_chunk_is_harmful_and_the_window_named_fixes_it() {
    let folder = Folder::new();
    sorted(&folder);
    for order in [
        &["--batch", "4", "--window", "1"][..],
        &["--batch", "4", "--order", "chunks"],
        &["--batch", "4", "--order", "sequential"],
    ] {
        let found = report(&folder, order);
        assert_eq!(found["verdict"], "harmful", "{order:?}");
        let label = &found["labels"][0];
        assert_eq!(label["name"], "label");
        assert!(label["deff"].as_f64().unwrap() > 2.9, "{label}");
        let notice = found["notices"][0].as_str().unwrap();
        let fix = format!("use a window of {} chunks", label["window_ok"]);
        assert!(notice.contains(&fix), "{notice}");
        let least = [("window_ok", 1.5), ("window_uniform", 1.05)];
        for (key, limit) in least {
            let window = label[key].to_string();
            let fixed = report(&folder, &["--batch", "4", "--window", &window]);
            let deff = fixed["labels"][0]["deff"].as_f64().unwrap();
            assert!(deff <= limit, "{key} {window}: {deff}");
        }
    }
}

#[test]
fn a_shuffled_pack_is_uniform_like_in_every_order() {
    let folder = Folder::new();
    shuffled(&folder);
    for order in ["auto", "sequential", "random", "chunks"] {
        let found = report(&folder, &["--batch", "4", "--order", order]);
        assert_eq!(found["verdict"], "uniform-like", "{order}");
    }
    let found = report(&folder, &["--batch", "4", "--window", "1"]);
    assert_eq!(found["verdict"], "uniform-like");
    assert_eq!(found["notices"], serde_json::json!([]));
}

#[test]
fn the_text_follows_what_info_says_anyway() {
    let folder = Folder::new();
    sorted(&folder);
    let plain = folder.packds(&["info", "out.pack"]).ok();
    let text = info(&folder, &["--batch", "4", "--window", "1"]).ok();
    let expected = "\
shuffle   batches of 4, order window: harmful
window    1 chunk at a time, 20.0 % of the dataset, in 1 lane
memory    24.0 KiB for two windows, 40 B for tables
reads     1.000 reads per chunk and epoch, on one rank
repeats   samples that shared a batch meet again in the next epoch 6.33 times as often as with uniform batches
label     `label`: design effect 3.00, harmful
          smallest window for ok: 2 chunks, for uniform-like: 4 chunks
note      the file is sorted by `label` (icc 0.67), and this order mixes too little (design effect 3.0): use a \
window of 2 chunks or convert again with shuffling
";
    assert_eq!(text.strip_prefix(&plain), Some(expected));
}

#[test]
fn the_default_batch_fits_the_pack() {
    let folder = Folder::new();
    sorted(&folder);
    let note = "the default batch size was reduced to 20: an epoch of 20 samples must have one batch";
    let text = info(&folder, &["--order", "random"]).ok();
    assert!(text.contains("\nshuffle   batches of 20, order random: "), "{text}");
    assert!(text.ends_with(&format!("note      {note}\n")), "{text}");
    assert_eq!(report(&folder, &["--order", "random"])["notices"], serde_json::json!([note]));
    // A batch size that is passed is not reduced, so there is no notice.
    assert!(!info(&folder, &["--batch", "20"]).ok().contains("reduced"));
}

#[test]
fn the_document_gains_one_key() {
    let folder = Folder::new();
    sorted(&folder);
    let plain = folder.packds(&["info", "out.pack", "--json"]).json();
    let mut with = info(&folder, &["--batch", "4", "--json"]).json();
    let shuffle = with.as_object_mut().unwrap().remove("shuffle").unwrap();
    assert_eq!(with, plain);
    let keys: Vec<&String> = shuffle.as_object().unwrap().keys().collect();
    let expected = [
        "order",
        "window",
        "lanes",
        "coverage",
        "labels",
        "verdict",
        "repetition",
        "window_bytes",
        "rank_window_bytes",
        "table_bytes",
        "chunk_reads",
        "dropped",
        "notices",
    ];
    assert_eq!(keys, expected);
    // The whole pack fits in memory.
    assert_eq!(shuffle["order"], "random");
    assert_eq!(shuffle["window_bytes"], 20 * 32 * 32 * 3);
    let labels = shuffle["labels"].as_array().unwrap();
    let keys: Vec<&String> = labels[0].as_object().unwrap().keys().collect();
    let expected = ["name", "icc", "deff", "verdict", "window_ok", "window_uniform"];
    assert_eq!(keys, expected);
    assert_eq!(labels.len(), 1);
}

#[test]
fn the_memory_decides_what_is_left_open() {
    let folder = Folder::new();
    sorted(&folder);
    // Two chunks of 12 KiB fit twice in 50,000 bytes, but all five do not.
    let found = report(&folder, &["--batch", "4", "--memory", "50000"]);
    assert_eq!((&found["order"], &found["window"]), (&"window".into(), &2.into()));
    assert_eq!(found["verdict"], "ok");
}

#[test]
fn labels_without_a_correlation_give_no_verdict() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 1, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    let options = ["--batch", "1", "--window", "1"];
    let found = report(&folder, &options);
    assert_eq!(found["verdict"], Value::Null);
    let text = info(&folder, &options).ok();
    assert!(text.contains("order window: unknown, because"), "{text}");
}

#[test]
fn options_of_an_order_need_shuffle() {
    let folder = Folder::new();
    sorted(&folder);
    for option in [["--batch", "4"], ["--window", "4"], ["--order", "auto"], ["--memory", "1000"]] {
        let ran = folder.packds(&["info", "out.pack", option[0], option[1]]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{option:?}");
        assert!(ran.stderr.contains("--shuffle"), "{}", ran.stderr);
    }
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let folder = Folder::new();
    sorted(&folder);
    for (options, told) in [
        (&["--batch", "0"][..], "0 is not in 1.."),
        (&["--window", "0"], "0 is not in 1.."),
        (
            &["--batch", "21"],
            "out.pack: no whole batch: expected at least 21 samples, found 20 samples\n\nhint: use a smaller --batch\n",
        ),
        (&["--batch", "4", "--window", "2", "--order", "chunks"], "--window requires --order window"),
    ] {
        let ran = info(&folder, options);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn the_picture_shows_order_batches_classes_and_windows() {
    let folder = Folder::new();
    sorted(&folder);
    let options = ["--batch", "4", "--window", "1", "--seed", "5", "--plot"];
    let plot = |name: &str| {
        let text = info(&folder, &[&options[..], &[name]].concat()).ok();
        assert!(
            text.ends_with(&format!("plot      {name}: measured design effect 3.00; uniform batches have 0.43\n")),
            "{text}"
        );
        fs::read(folder.path(name)).unwrap()
    };
    let svg = plot("a.svg");
    assert_eq!(svg, plot("b.SVG"));
    let svg = String::from_utf8(svg).unwrap();
    for told in [
        "<title>out.pack: window of 1 chunk, batches of 4, seed 5</title>",
        "Verdict: harmful. Label 'label', intra-chunk correlation 0.67.",
        ">Where batches come from: window of 1 chunk<",
        ">For comparison: uniform batches<",
        ">Classes of these batches, one colour per class<",
        ">design effect: measured 3.00, predicted 3.00<",
        ">this order: 3.00<",
        ">this order: 6.33<",
    ] {
        assert!(svg.contains(told), "{told}");
    }
    assert!(!svg.contains("script") && svg.ends_with("</svg>\n"));
    let png = plot("a.png");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(png, plot("b.png"));

    let found = report(&folder, &[&options[..], &["c.svg"]].concat());
    let counted = found["plot"]["counted_deff"].as_f64().unwrap();
    assert!((counted - 3.0).abs() < 1e-9);
    assert_eq!(found["plot"]["path"], "c.svg");
}

#[test]
fn a_picture_needs_no_label() {
    let folder = Folder::new();
    let pack = SamplePack { n_samples: 1, ..SamplePack::default() };
    pack.write(&folder, "out.pack");
    for order in ["sequential", "random", "chunks", "window"] {
        let name = format!("{order}.svg");
        let text = info(&folder, &["--batch", "1", "--order", order, "--plot", &name]).ok();
        assert!(text.ends_with(&format!("plot      {name}\n")), "{text}");
        let svg = fs::read_to_string(folder.path(&name)).unwrap();
        assert!(svg.contains("No label to judge by"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

#[test]
fn pictures_replace_nothing_unless_told_and_are_svg_or_png() {
    let folder = Folder::new();
    sorted(&folder);
    fs::write(folder.path("there.svg"), "mine").unwrap();
    let options = ["--batch", "4", "--plot", "there.svg"];
    let ran = info(&folder, &options);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("there.svg: already exists") && ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(fs::read(folder.path("there.svg")).unwrap(), b"mine");
    info(&folder, &[&options[..], &["--force"]].concat()).ok();
    assert!(fs::read(folder.path("there.svg")).unwrap().starts_with(b"<svg"));
    for (name, told) in [
        ("a.jpg", "ends in .svg or .png"),
        ("svg", "ends in .svg or .png"),
        ("-", "ends in .svg or .png"),
        ("none/a.svg", "cannot write"),
    ] {
        let ran = info(&folder, &["--batch", "4", "--plot", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let ran = info(&folder, &["--seed", "3"]);
    assert!(ran.code == 2 && ran.stderr.contains("--plot"), "{ran:?}");
}

#[test]
fn the_pictures_of_the_guide_are_what_the_command_draws() {
    let folder = Folder::new();
    let root = fixture("..");
    let script = Command::new("bash")
        .arg(root.join("scripts/shuffle-pictures"))
        .arg(env!("CARGO_BIN_EXE_packds"))
        .arg(folder.path(""))
        .output()
        .unwrap();
    assert!(script.status.success(), "{script:?}");
    for name in ["shuffle-sorted.svg", "shuffle-shuffled.svg"] {
        let drawn = fs::read(folder.path(name)).unwrap();
        let shown = fs::read(root.join("docs/pictures").join(name)).unwrap();
        assert!(shown == drawn, "docs/pictures/{name} is not what scripts/shuffle-pictures draws");
        assert!(shown.len() < 150_000);
    }
}
