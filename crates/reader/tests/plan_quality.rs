//! Compares the reported quality with counts over complete orders.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use packds_format::{Geometry, label_icc};
use packds_reader::plan::{Batching, Dataset, Notice, Order, Ranks, Sampler, Schedule, ShuffleReport, Verdict};

fn schedule(order: Order, n: u64, per_chunk: u32, batch: u32) -> Schedule {
    let set = Dataset::new(Geometry::new(n, per_chunk).unwrap(), 1 << 20, &[9; 16]);
    let batching = Batching::global(batch);
    let sampler = Sampler::new(order).seed(1);
    sampler.schedule(set, Ranks::single(), batching).unwrap()
}

fn window(chunks: u32) -> Order {
    Order::Window { chunks: Some(chunks) }
}

fn report(schedule: &Schedule, icc: f64) -> ShuffleReport {
    schedule.shuffle_report(&[("label", Some(icc))]).unwrap()
}

/// The design effect of labels in the batches of some epochs: how much more often pairs within a batch have equal
/// labels than all pairs.
fn counted_deff(schedule: &Schedule, label: impl Fn(u64) -> i64, epochs: u32) -> f64 {
    let batch = f64::from(schedule.global_batch());
    let (mut equal, mut all) = (0.0, 0.0);
    let mut totals: BTreeMap<i64, f64> = BTreeMap::new();
    for epoch in 0..epochs {
        let plan = schedule.epoch(epoch).unwrap();
        for step in 0..plan.steps() {
            let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
            for slot in plan.batch(step) {
                *counts.entry(label(slot.sample)).or_default() += 1.0;
                *totals.entry(label(slot.sample)).or_default() += 1.0;
            }
            equal += counts.values().map(|c| c * (c - 1.0)).sum::<f64>();
            all += batch * (batch - 1.0);
        }
    }
    // Every epoch contains each sample once, except for a few that are dropped. Therefore the pairs of the whole set
    // are those of one epoch.
    let epochs = f64::from(epochs);
    let n: f64 = totals.values().sum::<f64>() / epochs;
    let pairs: f64 = totals.values().map(|c| c / epochs * (c / epochs - 1.0)).sum();
    let total = pairs / (n * (n - 1.0));
    1.0 + (batch - 1.0) * (equal / all - total) / (1.0 - total)
}

#[test]
fn the_design_effect_of_a_class_sorted_file_is_the_one_that_is_told() {
    // A dataset of the size of CIFAR-10, sorted by class: ten classes of 5000 samples, in chunks of 128 and of 64.
    let n = 50_000;
    let label = |sample: u64| i64::try_from(sample / 5000).unwrap();
    for (per_chunk, batch, order) in [
        (128, 128, window(1)),
        (128, 128, window(4)),
        (128, 128, window(8)),
        (128, 128, window(32)),
        (128, 128, window(128)),
        (128, 128, window(391)),
        (128, 127, window(8)),
        (128, 127, window(32)),
        (128, 127, window(100)),
        (64, 256, window(64)),
        (64, 250, window(64)),
        (64, 1000, window(64)),
        (64, 32, window(64)),
        (128, 128, Order::Chunks),
        (128, 512, Order::Chunks),
        (128, 128, Order::Random),
    ] {
        let schedule = schedule(order, n, per_chunk, batch);
        let icc = label_icc((0..n).map(label), per_chunk).unwrap();
        let told = report(&schedule, icc).labels[0].deff;
        let counted = counted_deff(&schedule, label, 6);
        println!("{order:?} {per_chunk} {batch}: reported {told:.3}, counted {counted:.3}");
        assert!(
            (told - counted).abs() < 0.06 + 0.12 * counted,
            "{order:?} {per_chunk} {batch}: reported {told}, counted {counted}"
        );
        let plan = schedule.epoch(0).unwrap();
        let one_epoch = plan.counted_deff(u64::MAX, label).unwrap();
        assert!((one_epoch - counted).abs() < 0.1 + 0.15 * counted, "{one_epoch} {counted}");
        if let Order::Window { chunks: Some(chunks) } = order {
            let curve = schedule.by_window(icc).unwrap();
            assert_eq!((curve[0].window, curve.last().map(|w| w.window)), (1, Some(50_000_u32.div_ceil(per_chunk))));
            let same = curve.iter().find(|point| point.window == chunks);
            let same = same.map(|point| point.deff.to_bits());
            assert!(same.is_none_or(|deff| deff == told.to_bits()));
        }
    }
}

#[test]
fn a_shuffled_file_is_uniform_like_in_every_window() {
    for order in [window(1), window(64), Order::Chunks] {
        let report = report(&schedule(order, 50_000, 64, 256), 0.0001);
        assert_eq!(report.verdict, Some(Verdict::UniformLike));
        assert_eq!(report.labels[0].window_uniform, 1);
        let sorted = |notice: &Notice| matches!(notice, Notice::Sorted { .. });
        assert!(!report.notices.iter().any(sorted));
    }
}

#[test]
fn mates_meet_again_as_often_as_told() {
    let (n, per_chunk) = (4096, 64);
    for (order, batch) in [
        (window(1), 64),
        (window(4), 64),
        (window(8), 63),
        (window(16), 64),
        (window(64), 64),
        (Order::Chunks, 64),
        (Order::Random, 64),
    ] {
        let schedule = schedule(order, n, per_chunk, batch);
        let told = report(&schedule, 0.0).repetition;
        let pairs = |epoch| -> BTreeSet<(u64, u64)> {
            let plan = schedule.epoch(epoch).unwrap();
            let mut pairs = BTreeSet::new();
            for step in 0..plan.steps() {
                let samples: Vec<u64> = plan.batch(step).map(|slot| slot.sample).collect();
                for (i, a) in samples.iter().enumerate() {
                    pairs.extend(samples[..i].iter().map(|b| (*a.min(b), *a.max(b))));
                }
            }
            pairs
        };
        let (mut again, mut all) = (0.0, 0.0);
        for epoch in 0..3 {
            let (first, second) = (pairs(epoch), pairs(epoch + 1));
            again += first.intersection(&second).count() as f64;
            all += first.len() as f64;
        }
        let uniform = f64::from(batch - 1) / (n - 1) as f64;
        let counted = again / all / uniform;
        println!("{order:?} {batch}: reported {told:.2}, counted {counted:.2}");
        assert!((told - counted).abs() < 0.05 + 0.1 * counted, "{order:?}: reported {told}, counted {counted}");
    }
}

#[test]
fn verdicts_are_the_documented_ones() {
    for (deff, verdict) in [
        (0.9, Verdict::UniformLike),
        (1.05, Verdict::UniformLike),
        (1.06, Verdict::Ok),
        (1.5, Verdict::Ok),
        (1.51, Verdict::Weak),
        (3.0, Verdict::Weak),
        (3.01, Verdict::Harmful),
    ] {
        assert_eq!(Verdict::of(deff), verdict, "{deff}");
    }
}

#[test]
fn a_sorted_file_with_a_small_window_gets_a_warning_that_names_a_window_which_is_ok() {
    let (n, per_chunk, batch) = (1_281_167, 64, 256);
    let small = report(&schedule(window(16), n, per_chunk, batch), 0.97);
    assert_eq!(small.verdict, Some(Verdict::Harmful));
    let named = small.notices.iter().find_map(|notice| match notice {
        Notice::Sorted { window_ok, .. } => Some(*window_ok),
        _ => None,
    });
    let named = u32::try_from(named.unwrap()).unwrap();
    let enough = report(&schedule(window(named), n, per_chunk, batch), 0.97);
    assert_eq!(enough.verdict, Some(Verdict::UniformLike).max(enough.verdict));
    assert!(enough.verdict <= Some(Verdict::Ok));
    let less = report(&schedule(window(named - 1), n, per_chunk, batch), 0.97);
    assert!(less.verdict > Some(Verdict::Ok));
    let uniform = u32::try_from(small.labels[0].window_uniform).unwrap();
    let uniform = report(&schedule(window(uniform), n, per_chunk, batch), 0.97);
    assert_eq!(uniform.verdict, Some(Verdict::UniformLike));
    let text = small.notices[0].to_string();
    assert!(text.contains(&format!("a window of {named} chunks")), "{text}");
}

#[test]
fn samples_that_no_epoch_has_are_told() {
    let told = |order, n, batch| {
        let report = schedule(order, n, 64, batch).shuffle_report(&[]).unwrap();
        report.notices.iter().find_map(|notice| match notice {
            Notice::NeverSeen { samples } => Some(*samples),
            _ => None,
        })
    };
    assert_eq!(told(Order::Sequential, 1000, 64), Some(40));
    assert_eq!(told(Order::Chunks, 1024, 64), None);
    assert_eq!(told(window(4), 1000, 64), None);

    // If an epoch has few chunks, every epoch may drop the ends of some of them. The report must give the correct
    // number.
    for n in [1, 63, 64, 65, 100, 127, 129, 191, 300, 1000] {
        for batch in [1, 5, 24, 64, 65, 90, 128, 200] {
            let schedule = schedule(Order::Chunks, n, 64, batch);
            if schedule.epoch(0).is_err() {
                continue;
            }
            let seen = u64::try_from(all_seen(&schedule, 80).len()).unwrap();
            let told = told(Order::Chunks, n, batch).unwrap_or(0);
            assert_eq!(told, n - seen, "{n} samples in batches of {batch}");
        }
    }

    // With windows, epochs drop different samples.
    let schedule = schedule(window(4), 1000, 64, 64);
    assert_eq!(all_seen(&schedule, 60).len(), 1000);
}

/// The samples of some epochs.
fn all_seen(schedule: &Schedule, epochs: u32) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    for epoch in 0..epochs {
        let plan = schedule.epoch(epoch).unwrap();
        let slots = (0..plan.steps()).flat_map(|step| plan.batch(step));
        seen.extend(slots.map(|slot| slot.sample));
    }
    seen
}

#[test]
fn the_report_tells_memory_and_is_json() {
    let report = report(&schedule(window(64), 64 * 1000, 64, 256), 1.0);
    assert_eq!(report.window_bytes, 128 << 20);
    assert_eq!((report.window, report.lanes), (64, 64));
    assert!((report.coverage - 0.064).abs() < 1e-9);
    let json = report.to_json();
    assert!(json.starts_with("{\"order\":\"window\",\"window\":64,\"lanes\":64,"));
    assert!(json.contains("\"name\":\"label\",\"icc\":1,\"deff\":3."), "{json}");
    assert!(json.contains("\"verdict\":\"harmful\""), "{json}");
}

#[test]
fn a_notice_says_what_to_do_and_counts_right() {
    let notice = |order, batch, world| {
        let set = Dataset::new(Geometry::new(64 * 4000, 64).unwrap(), 1 << 20, &[9; 16]);
        let schedule = |order| {
            let ranks = Ranks::new(0, world).unwrap();
            let sampler = Sampler::new(order).memory_bytes(2 << 20);
            let schedule = sampler.schedule(set, ranks, Batching::global(batch));
            schedule.unwrap().shuffle_report(&[]).unwrap()
        };
        let texts: Vec<String> = schedule(order).notices.iter().map(ToString::to_string).collect();
        // With the suggested window, there are no notices left.
        let fixed = schedule(order).notices.iter().find_map(|notice| match notice {
            Notice::Rereading { window, .. } => *window,
            _ => None,
        });
        if let Some(chunks) = fixed {
            let left = schedule(window(chunks)).notices;
            assert!(left.is_empty(), "{left:?}");
        }
        texts.join("\n")
    };
    assert_eq!(
        notice(window(64), 512, 128),
        "each chunk is read 2.02 times per epoch, because the 128 ranks share chunks: with a window of 128 chunks, each \
         rank has its own chunks"
    );
    assert_eq!(
        notice(window(100), 4096, 512).split(": ").last(),
        Some("with a window of 512 chunks, each rank has its own chunks")
    );
    assert_eq!(notice(window(64), 512, 64), "");
    assert_eq!(
        notice(Order::Chunks, 512, 16).split(": ").last(),
        Some("make a rank's batch a whole number of chunks, or convert again with smaller chunks")
    );
    assert_eq!(
        notice(Order::Window { chunks: None }, 64, 1),
        "the window has 1 chunk instead of 64: two windows must fit in the memory limit of 2 MiB"
    );
    let report = schedule(Order::Sequential, 65, 64, 64).shuffle_report(&[]);
    assert_eq!(
        report.unwrap().notices[0].to_string(),
        "every epoch leaves out the same sample: to include it, pad the last batch"
    );
}
