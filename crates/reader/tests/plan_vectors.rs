//! Computes the test vectors of docs/reference/sampling.md again, and measures how long this takes.

#![cfg(test)]

use std::time::Instant;

use packds_format::{Geometry, mix64};
use packds_reader::plan::{Batching, Choice, Dataset, Domain, EpochPlan, Last, Order, Ranks, Sampler, key, random};

const DOC: &str = include_str!("../../../docs/reference/sampling.md");

/// The cells of the table whose header starts with `header`, row by row.
fn table(header: &str) -> Vec<Vec<String>> {
    let from = DOC.find(header).expect("the table is in docs/reference/sampling.md");
    DOC[from..]
        .lines()
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

fn order(name: &str, window: &str) -> Order {
    match name {
        "sequential" => Order::Sequential,
        "random" => Order::Random,
        "chunks" => Order::Chunks,
        "window" => Order::Window { chunks: Some(window.parse().unwrap()) },
        other => panic!("order {other}"),
    }
}

fn plan(n: u64, per_chunk: u32, batch: u32, sampler: &Sampler, epoch: u32) -> EpochPlan {
    let set = Dataset::new(Geometry::new(n, per_chunk).unwrap(), 1, &[0; 16]);
    let batching = Batching::global(batch).last(Last::Pad);
    let schedule = sampler.schedule(set, Ranks::single(), batching).unwrap();
    schedule.epoch(epoch).unwrap()
}

fn first(plan: &EpochPlan, count: u64) -> String {
    let samples: Vec<String> = (0..count.min(plan.len())).map(|q| plan.position(q).unwrap().to_string()).collect();
    samples.join(", ")
}

#[test]
fn keys_and_random_numbers_are_the_documented_ones() {
    let rows = table("| seed | epoch | domain | index | key |");
    assert!(rows.len() >= 4);
    let domains = [
        Domain::Chunks,
        Domain::ShortChunk,
        Domain::Samples,
        Domain::Group,
        Domain::Occurrence,
        Domain::Rounding,
        Domain::Augment,
    ];
    for row in rows {
        let number = |i: usize| row[i].parse::<u64>().unwrap();
        let domain = domains[usize::try_from(number(2) - 1).unwrap()];
        assert_eq!(domain as u64, number(2));
        let epoch = u32::try_from(number(1)).unwrap();
        let key = key(number(0), epoch, domain, number(3));
        let numbers = format!("{:#018x}, {:#018x}", random(key, 0), random(key, 1));
        assert_eq!(vec![format!("{key:#018x}"), numbers], row[4..], "{row:?}");
    }
}

#[test]
fn orders_are_the_documented_ones() {
    let rows = table("| n | chunk | batch | order | window | seed | epoch |");
    assert!(rows.len() >= 10);
    let mut found = Vec::new();
    for row in &rows {
        let number = |i: usize| row[i].parse::<u64>().unwrap();
        let small = |i: usize| row[i].parse::<u32>().unwrap();
        let sampler = Sampler::new(order(&row[3], &row[4])).seed(number(5));
        let plan = plan(number(0), small(1), small(2), &sampler, small(6));
        found.push(first(&plan, 12));
    }
    let expected: Vec<String> = rows.into_iter().map(|row| row[7].clone()).collect();
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}

#[test]
fn weighted_epochs_are_the_documented_ones() {
    let rows = table("| epoch | weights 0, 1/2, 1, 5/2 in turn |");
    assert!(rows.len() >= 2);
    for row in rows {
        let weights = [0.0, 0.5, 1.0, 2.5];
        let weight = |i: u64| weights[usize::try_from(i % 4).unwrap()];
        let choice = Choice::weighted(16, weight).unwrap();
        let sampler = Sampler::new(Order::Sequential).seed(7).choice(choice);
        let plan = plan(16, 4, 4, &sampler, row[0].parse().unwrap());
        assert_eq!(first(&plan, 100), row[1]);
    }
}

#[test]
#[ignore = "a measurement: run it with --release -- --ignored --nocapture"]
fn a_billion_samples_are_answered_in_under_a_microsecond() {
    let n = 1_000_000_000;
    for (what, order) in [
        ("sequential", Order::Sequential),
        ("random", Order::Random),
        ("chunks", Order::Chunks),
        ("window 64", Order::Window { chunks: Some(64) }),
        ("window 256", Order::Window { chunks: Some(256) }),
    ] {
        for batch in [256, 127] {
            let set = Dataset::new(Geometry::new(n, 64).unwrap(), 1, &[0; 16]);
            let sampler = Sampler::new(order).seed(3);
            let schedule = sampler.schedule(set, Ranks::single(), Batching::global(batch)).unwrap();
            let began = Instant::now();
            let plan = schedule.epoch(9).unwrap();
            let built = began.elapsed();
            let mut sum = 0_u64;
            let mut times: Vec<f64> = (0..2000_u64)
                .map(|round| {
                    let positions: Vec<u64> = (0..100).map(|i| mix64(round * 100 + i) % n).collect();
                    let began = Instant::now();
                    for q in &positions {
                        sum = sum.wrapping_add(plan.position(*q).unwrap());
                    }
                    began.elapsed().as_secs_f64() * 1e9 / 100.0
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let began = Instant::now();
            let rows: u64 = (0..200).map(|s| plan.batch(s).map(|x| x.sample & 1).sum::<u64>()).sum();
            let batches = began.elapsed().as_secs_f64() * 1e9 / f64::from(200 * batch);
            println!(
                "{what:10} batch {batch}: {:.0} ns per position (median of runs of 100), 99th percentile {:.0} ns; \
                 {batches:.0} ns in batches; plan made in {built:?}, {} bytes of tables ({sum} {rows})",
                times[1000],
                times[1980],
                plan.memory_bytes()
            );
            assert!(plan.memory_bytes() < 1 << 16);
        }
    }
}

#[test]
fn a_trillion_chunks_do_not_overflow() {
    let sampler = Sampler::new(order("window", "3")).seed(1);
    let plan = plan(1 << 40, 1, 127, &sampler, 0);
    let at = |q: u64| plan.position(q).unwrap();
    let found = [0, 1, 1 << 39, (1 << 40) - 1].map(at);
    let expected = [290_221_537_143, 366_482_328_890, 492_424_144_304, 864_415_051_059];
    assert_eq!(found, expected);
}
