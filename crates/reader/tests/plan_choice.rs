//! Subsets, weights, balanced classes and mixtures.

#![cfg(test)]

use std::collections::BTreeMap;

use packds_format::Geometry;
use packds_reader::plan::{
    Batching, Choice, Dataset, EpochPlan, Last, Mixture, MixtureState, Order, PlanError, Ranks, Sampler, Source,
};

const ORDERS: [Order; 5] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(3) },
    Order::Window { chunks: None },
];

fn dataset(n: u64, per_chunk: u32, id: u8) -> Dataset {
    Dataset::new(Geometry::new(n, per_chunk).unwrap(), 1 << 20, &[id; 16])
}

fn plan(order: Order, choice: Choice, per_chunk: u32, epoch: u32) -> EpochPlan {
    let set = dataset(choice.n_samples(), per_chunk, 1);
    let sampler = Sampler::new(order).seed(3).choice(choice);
    let batching = Batching::global(24).last(Last::Pad);
    let schedule = sampler.schedule(set, Ranks::single(), batching).unwrap();
    schedule.epoch(epoch).unwrap()
}

fn counts(plan: &EpochPlan) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for q in 0..plan.len() {
        *counts.entry(plan.position(q).unwrap()).or_default() += 1;
    }
    counts
}

#[test]
fn a_subset_is_visited_once_in_every_order() {
    for order in ORDERS {
        for per_chunk in [1, 7, 64, 500] {
            for wanted in [1, 2, 3, 50] {
                let choice = Choice::filter(1003, |i| i % wanted == 0);
                let plan = plan(order, choice, per_chunk, 1);
                let expected = (0..1003).filter(|i| i % wanted == 0).map(|i| (i, 1));
                let found = counts(&plan);
                assert!(found.into_iter().eq(expected), "{order:?} {per_chunk}");
            }
        }
    }
}

#[test]
fn lists_ranges_and_predicates_of_the_same_samples_are_one_choice() {
    let ranges = Choice::ranges(100, [10..20, 15..25, 99..100]).unwrap();
    let list = Choice::samples(100, (10..25).chain([99, 99])).unwrap();
    let predicate = Choice::filter(100, |i| (10..25).contains(&i) || i == 99);
    assert_eq!(ranges, list);
    assert_eq!(list, predicate);
    let other = Choice::filter(100, |i| i == 99);
    assert_ne!(list.fingerprint(), other.fingerprint());
}

#[test]
fn weights_are_kept_exactly_in_whole_parts_and_on_average_in_the_rest() {
    let weights = [0.0, 0.25, 1.0, 2.5];
    let class = |sample: u64| usize::try_from(sample % 4).unwrap();
    let mut sums = [0_u64; 4];
    let epochs = 40;
    for epoch in 0..epochs {
        let choice = Choice::weighted(4000, |i| weights[class(i)]).unwrap();
        let order = Order::Window { chunks: Some(3) };
        for (sample, times) in counts(&plan(order, choice, 64, epoch)) {
            assert!([0..=0, 0..=1, 1..=1, 2..=3][class(sample)].contains(&times));
            sums[class(sample)] += times;
        }
    }
    let draws = f64::from(epochs) * 1000.0;
    for (sum, weight) in sums.into_iter().zip(weights) {
        // Four standard deviations of a mean of coin tosses.
        let mean = sum as f64 / draws;
        assert!((mean - weight).abs() < 4.0 * 0.5 / draws.sqrt(), "{weight}: {mean}");
    }
}

#[test]
fn balanced_classes_occur_equally_often() {
    let label = |i: u64| match i {
        0..9000 => 0,
        9000..9900 => 1,
        _ => 2,
    };
    let choice = Choice::balanced(10_000, label).unwrap();
    let plan = plan(Order::Window { chunks: None }, choice, 16, 0);
    let mut classes = BTreeMap::new();
    for (sample, times) in counts(&plan) {
        *classes.entry(label(sample)).or_insert(0_u64) += times;
    }
    assert_eq!(classes.len(), 3);
    for (class, times) in classes {
        assert!((3200..3470).contains(&times), "class {class}: {times}");
    }
}

#[test]
fn a_choice_and_its_plan_take_less_than_a_byte_a_sample() {
    let n = 1 << 20;
    let set = dataset(n, 64, 1);
    let choice = Choice::weighted(n, |i| (i % 1000) as f64 / 500.0).unwrap();
    let sampler = Sampler::new(Order::Window { chunks: None }).choice(choice);
    let schedule = sampler.schedule(set, Ranks::single(), Batching::global(256));
    let report = schedule.unwrap().shuffle_report(&[]).unwrap();
    // The other memory, for weights and lanes, does not grow with the number of samples.
    assert!(report.table_bytes <= n + 8192, "{} bytes", report.table_bytes);
}

#[test]
fn worlds_share_the_batches_of_weighted_epochs_too() {
    let choice = Choice::weighted(1000, |i| (i % 7) as f64 / 3.0).unwrap();
    let sampler = Sampler::new(Order::Window { chunks: Some(9) }).choice(choice);
    let batches = |world: u32| -> Vec<Vec<u64>> {
        let plans: Vec<_> = (0..world)
            .map(|rank| {
                let ranks = Ranks::new(rank, world).unwrap();
                let schedule = sampler.schedule(dataset(1000, 8, 1), ranks, Batching::global(24));
                schedule.unwrap().epoch(4).unwrap()
            })
            .collect();
        (0..plans[0].steps())
            .map(|step| plans.iter().flat_map(move |plan| plan.batch(step)))
            .map(|slots| slots.map(|slot| slot.sample).collect())
            .collect()
    };
    assert_eq!(batches(1), batches(8));
    assert_eq!(batches(1), batches(3));
}

fn sources() -> [Source; 3] {
    let source = |n, per_chunk, id, order, proportion| Source {
        dataset: dataset(n, per_chunk, id),
        sampler: Sampler::new(order).seed(u64::from(id)),
        proportion,
    };
    [
        source(5003, 16, 1, Order::Window { chunks: Some(8) }, 0.5),
        source(601, 10, 2, Order::Random, 0.3),
        source(90, 4, 3, Order::Chunks, 0.2),
    ]
}

fn mixture(rank: u32, world: u32) -> Mixture {
    let ranks = Ranks::new(rank, world).unwrap();
    Mixture::new(&sources(), ranks, Batching::global(32)).unwrap()
}

#[test]
fn a_mixture_keeps_its_proportions_in_every_batch_and_each_pack_its_epochs() {
    let mixture = mixture(0, 1);
    assert_eq!(mixture.quotas(), [16, 10, 6]);
    assert_eq!(mixture.steps_per_epoch(), (5003 + 601 + 90) / 32);
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); 3];
    for step in 0..200 {
        let mut counts = [0; 3];
        for slot in mixture.batch(step).unwrap() {
            counts[slot.source] += 1;
            seen[slot.source].push(slot.sample);
        }
        assert_eq!(counts, [16, 10, 6]);
    }
    // Pack 1 is read several times, in passes of 60 whole batches. No pass repeats a sample.
    for epoch in seen[1].chunks(600) {
        let mut samples = epoch.to_vec();
        samples.sort_unstable();
        samples.dedup();
        assert_eq!(samples.len(), epoch.len());
    }
    assert_ne!(seen[1][..600], seen[1][600..1200]);
}

#[test]
fn a_mixture_is_the_same_in_every_world_and_after_resuming() {
    let batches = |world: u32, steps: std::ops::Range<u64>| -> Vec<Vec<(usize, u64)>> {
        let ranks: Vec<_> = (0..world).map(|rank| mixture(rank, world)).collect();
        steps
            .map(|step| {
                let slots = ranks.iter().flat_map(|m| m.batch(step).unwrap());
                slots.map(|slot| (slot.source, slot.sample)).collect()
            })
            .collect()
    };
    let whole = batches(1, 0..120);
    let eight = mixture(1, 8);
    let saved = eight.state(100).to_json();
    assert!(saved.len() < 200);
    let step = eight.at(&MixtureState::from_json(&saved).unwrap()).unwrap();
    assert_eq!([batches(8, 0..step), batches(2, step..120)].concat(), whole);

    let mut other = sources();
    other[1].sampler = Sampler::new(Order::Random).seed(77);
    let other = Mixture::new(&other, Ranks::single(), Batching::global(32)).unwrap();
    let refused = other.at(&eight.state(1));
    assert!(matches!(refused, Err(PlanError::OtherMixture { batch: 32 })));
    assert!(MixtureState::from_json("{\"v\":1,\"step\":3}").is_err());
}

#[test]
fn each_rank_has_its_part_of_each_pack() {
    for rank in 0..8 {
        let mixture = mixture(rank, 8);
        let slots = mixture.batch(7).unwrap();
        assert_eq!(slots.len(), 4);
        let firsts = slots.iter().filter(|slot| slot.source == 0).count();
        assert!((1..=3).contains(&firsts), "{firsts}");
    }
}

#[test]
fn mixtures_that_cannot_be_are_refused() {
    let make = |sources: &[Source], batch| Mixture::new(sources, Ranks::single(), Batching::global(batch));
    let refused = |sources: &[Source], batch| match make(sources, batch).unwrap_err() {
        PlanError::Mixture { source_index, .. } => source_index,
        other => panic!("{other}"),
    };
    assert_eq!(refused(&sources(), 2), 2);
    assert_eq!(refused(&sources(), 1000), 2);
    let mut some = sources();
    some[1].sampler = Sampler::new(Order::Random).choice(Choice::filter(601, |i| i > 3));
    assert_eq!(refused(&some, 32), 1);
    let mut negative = sources();
    negative[0].proportion = -1.0;
    assert_eq!(refused(&negative, 32), 0);
    assert_eq!(make(&[], 32).unwrap_err(), PlanError::NoSamples);
}
