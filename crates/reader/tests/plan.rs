//! Guarantees of every plan, for many sizes: each sample occurs once, batches are the same for every world size, and
//! windows and lanes are as documented.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use packds_format::{Geometry, mix64};
use packds_reader::plan::{
    Batch, Batching, Choice, Dataset, EpochPlan, Last, Order, PlanError, Ranks, Sampler, Schedule,
};

const ORDERS: [Order; 6] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(1) },
    Order::Window { chunks: Some(5) },
    Order::Window { chunks: None },
];

fn dataset(n: u64, per_chunk: u32) -> Dataset {
    Dataset::new(Geometry::new(n, per_chunk).unwrap(), 1 << 20, &[3; 16])
}

fn divisors(n: u32) -> impl Iterator<Item = u32> {
    (1..=n).filter(move |d| n.is_multiple_of(*d))
}

fn schedule(order: Order, n: u64, per_chunk: u32, batch: Batching, ranks: (u32, u32)) -> Schedule {
    let ranks = Ranks::new(ranks.0, ranks.1).unwrap();
    let sampler = Sampler::new(order).seed(11);
    sampler.schedule(dataset(n, per_chunk), ranks, batch).unwrap()
}

fn plan(order: Order, n: u64, per_chunk: u32, batch: Batching, ranks: (u32, u32)) -> EpochPlan {
    schedule(order, n, per_chunk, batch, ranks).epoch(2).unwrap()
}

fn positions(plan: &EpochPlan) -> Vec<u64> {
    (0..plan.len()).map(|q| plan.position(q).unwrap()).collect()
}

fn sorted(mut samples: Vec<u64>) -> Vec<u64> {
    samples.sort_unstable();
    samples
}

/// Sizes with all kinds of remainders, followed by random sizes.
fn sizes() -> Vec<(u64, u32, u32)> {
    let mut sizes = Vec::new();
    for n in [1, 2, 5, 63, 64, 65, 127, 128, 500, 1000] {
        for per_chunk in [1, 3, 8, 64, 100] {
            for batch in [1, 2, 6, 7, 16, 60] {
                sizes.push((n, per_chunk, batch));
            }
        }
    }
    let mut word = 1_u64;
    let mut draw = |n: u64| {
        word = mix64(word.wrapping_add(0x9e37_79b9));
        word % n + 1
    };
    for _ in 0..150 {
        let small = |x: u64| u32::try_from(x).unwrap();
        sizes.push((draw(4000), small(draw(120)), small(draw(300))));
    }
    sizes
}

#[test]
fn every_order_visits_each_sample_exactly_once() {
    for (n, per_chunk, batch) in sizes() {
        for order in ORDERS {
            let batching = Batching::global(batch).last(Last::Pad);
            let plan = plan(order, n, per_chunk, batching, (0, 1));
            let seen = sorted(positions(&plan));
            assert!(seen.into_iter().eq(0..n), "{n} {per_chunk} {batch} {order:?}");
            assert_eq!(plan.position(n), None);
        }
    }
}

#[test]
fn global_batches_are_the_same_in_every_world_and_ranks_get_equal_shares() {
    for (n, per_chunk, batch) in sizes() {
        for order in ORDERS {
            for last in [Last::Drop, Last::Pad] {
                if last == Last::Drop && n < u64::from(batch) {
                    continue;
                }
                let batching = Batching::global(batch).last(last);
                let alone = plan(order, n, per_chunk, batching, (0, 1));
                let steps = [0, 1, alone.steps() / 2, alone.steps() - 1];
                for world in divisors(batch).filter(|world| *world < 20) {
                    let ranks: Vec<_> =
                        (0..world).map(|rank| plan(order, n, per_chunk, batching, (rank, world))).collect();
                    assert!(ranks.iter().all(|plan| plan.steps() == alone.steps()));
                    for &step in &steps {
                        let share = |plan: &EpochPlan| plan.batch(step).count();
                        let first = share(&ranks[0]);
                        assert!(ranks.iter().all(|plan| share(plan) == first));
                        let slots: Vec<_> = ranks.iter().flat_map(|p| p.batch(step)).collect();
                        let whole: Vec<_> = alone.batch(step).collect();
                        assert_eq!(slots, whole, "{n} {per_chunk} {batch} {order:?} {world}");
                    }
                }
            }
        }
    }
}

#[test]
fn padding_adds_the_first_samples_and_dropping_leaves_less_than_a_batch() {
    for (n, per_chunk, batch) in sizes() {
        for order in ORDERS {
            let batching = Batching::global(batch);
            let plan = plan(order, n, per_chunk, batching.last(Last::Pad), (0, 1));
            let mut seen = Vec::new();
            let mut padding = Vec::new();
            for slot in (0..plan.steps()).flat_map(|step| plan.batch(step)) {
                if slot.padding {
                    padding.push(slot.sample);
                } else {
                    seen.push(slot.sample);
                }
            }
            assert!(sorted(seen).into_iter().eq(0..n));
            let missing = (u64::from(batch) - n % u64::from(batch)) % u64::from(batch);
            let wrapped: Vec<u64> = (0..missing).map(|q| plan.position(q % n).unwrap()).collect();
            assert_eq!(sorted(padding), sorted(wrapped));
            assert_eq!(plan.dropped(), 0);

            let dropping = schedule(order, n, per_chunk, batching, (0, 1));
            match dropping.epoch(2) {
                Err(error) => assert_eq!(error, PlanError::NoBatch { samples: n, batch }),
                Ok(plan) => {
                    let seen = (0..plan.steps()).flat_map(|step| plan.batch(step));
                    let seen: Vec<u64> = seen.map(|slot| slot.sample).collect();
                    let distinct: BTreeSet<_> = seen.iter().collect();
                    assert_eq!(distinct.len(), seen.len());
                    assert_eq!(plan.dropped(), n - u64::try_from(seen.len()).unwrap());
                    assert!(plan.dropped() < u64::from(batch));
                    assert!(plan.batch(plan.steps()).next().is_none());
                }
            }
        }
    }
}

#[test]
fn windows_mix_at_most_their_chunks_and_no_group_is_a_runt() {
    for (n, per_chunk, batch, window) in
        [(10_000, 10, 127, 8), (10_007, 10, 127, 7), (9_999, 8, 48, 64), (9_999, 8, 32, 128), (5_000, 64, 256, 16)]
    {
        let order = Order::Window { chunks: Some(window) };
        let schedule = schedule(order, n, per_chunk, Batching::global(batch), (0, 1));
        let lanes = schedule.recipe().lanes;
        assert!(batch.is_multiple_of(lanes) && lanes <= window);
        let plan = schedule.epoch(0).unwrap();
        let per_lane = u64::from(window / lanes);
        let run = u64::from(batch / lanes);
        let whole_lane = n / u64::from(batch) * run;
        let mut sizes = BTreeSet::new();
        for lane in 0..u64::from(lanes) {
            // A lane's chunks with the positions of their first and last use. A group ends where all its chunks end.
            let mut uses: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for place in 0..whole_lane {
                let q = place / run * u64::from(batch) + lane * run + place % run;
                let chunk = plan.position(q).unwrap() / u64::from(per_chunk);
                uses.entry(chunk).or_insert((place, place)).1 = place;
            }
            let mut by_first: Vec<(u64, u64)> = uses.into_values().collect();
            by_first.sort_unstable();
            let (mut chunks, mut until) = (0, 0);
            for (first, last) in by_first {
                if chunks > 0 && first > until {
                    sizes.insert(chunks);
                    chunks = 0;
                }
                chunks += 1;
                until = until.max(last);
            }
            sizes.insert(chunks);
        }
        let (low, high) = (*sizes.first().unwrap(), *sizes.last().unwrap());
        assert!(
            high <= per_lane && high - low <= 1 && high + 1 >= per_lane,
            "{sizes:?} of {per_lane} in {n} {per_chunk} {batch} {window}"
        );
    }
}

#[test]
fn every_batch_has_the_same_share_of_each_lane_and_lanes_share_no_chunk_at_a_time() {
    let order = Order::Window { chunks: None };
    let plan = plan(order, 64 * 1000, 64, Batching::global(256), (0, 1));
    for step in 0..plan.steps() {
        let mut chunks: BTreeMap<u64, u32> = BTreeMap::new();
        for slot in plan.batch(step) {
            *chunks.entry(slot.sample / 64).or_default() += 1;
        }
        assert!(chunks.len() >= 64);
        assert!(chunks.values().all(|&count| count <= 4));
    }
}

/// The mean number of times that all ranks together read a chunk in an epoch, and the number of chunks with several
/// readers.
fn reading(order: Order, n: u64, per_chunk: u32, batch: u32, world: u32) -> (f64, usize) {
    let mut readers: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut reads = 0_u32;
    for rank in 0..world {
        let plan = plan(order, n, per_chunk, Batching::global(batch), (rank, world));
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        for step in 0..plan.steps() {
            held.retain(|_, until| *until >= step);
            for used in plan.chunk_uses(step) {
                readers.entry(used.chunk).or_default().insert(rank);
                reads += u32::from(held.insert(used.chunk, used.until).is_none());
            }
        }
    }
    let shared = readers.values().filter(|ranks| ranks.len() > 1).count();
    let n_chunks = n.div_ceil(u64::from(per_chunk)) as f64;
    (f64::from(reads) / n_chunks, shared)
}

#[test]
fn ranks_read_their_own_chunks() {
    let order = Order::Window { chunks: Some(64) };
    for world in [1, 2, 8, 64] {
        let (reads, shared) = reading(order, 64 * 640 + 100, 64, 256, world);
        // Only chunks that cross one of the 63 borders between lanes have two readers.
        assert!(shared < 64, "{shared} of 641 chunks have several readers");
        assert!(reads < 1.11, "{reads} reads per chunk in a world of {world}");
    }
}

#[test]
fn the_report_tells_how_often_chunks_are_read() {
    for (order, batch, world) in [
        (Order::Window { chunks: Some(64) }, 256, 8),
        (Order::Window { chunks: Some(64) }, 192, 3),
        (Order::Window { chunks: Some(64) }, 192, 96),
        (Order::Window { chunks: Some(60) }, 600, 8),
        (Order::Window { chunks: Some(8) }, 1016, 127),
        (Order::Window { chunks: Some(4) }, 512, 512),
        (Order::Chunks, 256, 4),
        (Order::Chunks, 256, 8),
        (Order::Chunks, 240, 8),
        (Order::Sequential, 240, 2),
    ] {
        let (n, per_chunk) = (64 * 640, 64);
        let told = schedule(order, n, per_chunk, Batching::global(batch), (0, world));
        let told = told.shuffle_report(&[]).unwrap().chunk_reads.unwrap();
        let (found, _) = reading(order, n, per_chunk, batch, world);
        assert!(
            told >= found * 0.99 && told <= found * 1.35 + 0.2,
            "{order:?} {batch} {world}: reported {told}, found {found}"
        );
    }
}

/// A batch as runs of consecutive samples in the file: the first sample and the length.
fn runs(batch: Batch<'_>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for slot in batch {
        match runs.last_mut() {
            Some((first, len)) if *first + *len == slot.sample => *len += 1,
            _ => runs.push((slot.sample, 1)),
        }
    }
    runs
}

#[test]
fn a_chunk_order_reads_whole_chunks_when_batches_are_chunks() {
    for world in [1, 4] {
        let batching = Batching::per_rank(64);
        let plan = plan(Order::Chunks, 64 * 100 + 9, 64, batching, (0, world));
        let mut chunks = Vec::new();
        // The last step includes the short chunk: 9 samples from it, and 55 from another chunk.
        let last = plan.steps() - 1;
        if world == 1 {
            let runs = runs(plan.batch(last));
            assert_eq!((runs.len(), runs[0], runs[1].1), (2, (6400, 9), 55));
        }
        for step in 0..last {
            let runs = runs(plan.batch(step));
            assert_eq!(runs.len(), 1);
            let (first, len) = runs[0];
            assert_eq!((first % 64, len), (0, 64));
            chunks.push(first / 64);
        }
        let uses = (0..last).flat_map(|step| plan.chunk_uses(step));
        assert!(uses.map(|used| used.chunk).eq(chunks.iter().copied()));
        let in_order = sorted(chunks.clone());
        assert_ne!(chunks, in_order);
        let distinct: BTreeSet<_> = chunks.iter().collect();
        assert_eq!(distinct.len(), chunks.len());
    }
}

#[test]
fn chunk_uses_agree_with_the_batches() {
    for order in ORDERS {
        for (rank, world) in [(0, 1), (1, 4)] {
            let plan = plan(order, 3001, 16, Batching::global(40), (rank, world));
            let chunks = |step| plan.batch(step).map(|slot| slot.sample / 16);
            for step in [0, 13, plan.steps() - 2] {
                let mut expected: Vec<u64> = Vec::new();
                for chunk in chunks(step) {
                    if !expected.contains(&chunk) {
                        expected.push(chunk);
                    }
                }
                let uses: Vec<u64> = plan.chunk_uses(step).iter().map(|used| used.chunk).collect();
                assert_eq!(uses, expected, "{order:?}");
            }
            for step in 0..plan.steps() {
                let uses = plan.chunk_uses(step);
                let named: BTreeSet<u64> = uses.iter().map(|used| used.chunk).collect();
                assert_eq!(named, chunks(step).collect());
                assert_eq!(named.len(), uses.len());
                assert!(uses.iter().all(|used| used.until >= step && used.until < plan.steps()));
            }
        }
    }
}

#[test]
fn chunks_are_held_no_longer_than_two_windows() {
    for window in [16, 48] {
        let order = Order::Window { chunks: Some(window) };
        let plan = plan(order, 16 * 1000 + 5, 16, Batching::global(64), (0, 1));
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        for step in 0..plan.steps() {
            held.retain(|_, until| *until >= step);
            for used in plan.chunk_uses(step) {
                held.insert(used.chunk, used.until);
            }
            let most = usize::try_from(2 * window).unwrap();
            assert!(held.len() <= most, "{} chunks", held.len());
        }
    }
}

#[test]
fn orders_differ_by_seed_and_epoch_and_not_otherwise() {
    for order in ORDERS {
        let run = |seed, epoch| {
            let sampler = Sampler::new(order).seed(seed);
            let batching = Batching::global(20);
            let schedule = sampler.schedule(dataset(2000, 16), Ranks::single(), batching);
            positions(&schedule.unwrap().epoch(epoch).unwrap())
        };
        assert_eq!(run(1, 1), run(1, 1));
        if order != Order::Sequential {
            assert_ne!(run(1, 1), run(1, 2));
            assert_ne!(run(1, 1), run(2, 1));
        }
    }
}

#[test]
fn the_default_window_is_64_chunks_or_what_fits_and_auto_is_random_for_what_fits() {
    let recipe = |order, chunks: u64, memory| {
        let geometry = Geometry::new(chunks * 8, 8).unwrap();
        let set = Dataset::new(geometry, 1 << 20, &[0; 16]);
        let sampler = Sampler::new(order).memory_bytes(memory);
        let schedule = sampler.schedule(set, Ranks::single(), Batching::global(256));
        let schedule = schedule.unwrap();
        let recipe = schedule.recipe();
        let notices = schedule.notices().len();
        (recipe.order.name(), recipe.window, recipe.lanes, notices)
    };
    let default = Order::Window { chunks: None };
    assert_eq!(recipe(default, 1000, 1 << 30), ("window", 64, 64, 0));
    assert_eq!(recipe(default, 1000, 40 << 20), ("window", 20, 16, 1));
    assert_eq!(recipe(default, 10, 1 << 40), ("window", 64, 8, 0));
    let named = Order::Window { chunks: Some(100) };
    assert_eq!(recipe(named, 1000, 0), ("window", 100, 64, 0));
    assert_eq!(recipe(Order::Auto, 1000, 1 << 30), ("random", 1, 1, 1));
    assert_eq!(recipe(Order::Auto, 2000, 1 << 30), ("window", 64, 64, 0));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let fails = |sampler: &Sampler, ranks, batching| {
        let schedule = sampler.schedule(dataset(1000, 10), ranks, batching);
        schedule.unwrap_err()
    };
    let sampler = Sampler::new(Order::Chunks);
    let three = Ranks::new(0, 3).unwrap();
    let one = Ranks::single();
    assert_eq!(Ranks::new(3, 3), Err(PlanError::Rank { rank: 3, world: 3 }));
    let world = PlanError::World { batch: 64, world: 3 };
    assert_eq!(fails(&sampler, three, Batching::global(64)), world);
    let large = fails(&sampler, three, Batching::per_rank(u32::MAX));
    assert!(matches!(large, PlanError::BatchTooLarge { .. }));
    let zero = fails(&sampler, one, Batching::global(0));
    assert!(matches!(zero, PlanError::Zero { .. }));
    let no_window = Sampler::new(Order::Window { chunks: Some(0) });
    let zero = fails(&no_window, one, Batching::global(4));
    assert!(matches!(zero, PlanError::Zero { .. }));
    for (order, lanes) in [
        (Order::Chunks, 3),
        (Order::Sequential, 2),
        (Order::Window { chunks: Some(2) }, 4),
        (Order::Chunks, 1 << 17),
        (Order::Random, 0),
    ] {
        let error = fails(&Sampler::new(order).lanes(lanes), one, Batching::global(1 << 17));
        let zero = lanes == 0 && matches!(error, PlanError::Zero { .. });
        assert!(zero || matches!(error, PlanError::Lanes { .. }), "{error}");
    }
    let other = Sampler::new(Order::Chunks).choice(Choice::filter(999, |_| true));
    let selection = fails(&other, one, Batching::global(4));
    assert!(matches!(selection, PlanError::Selection { .. }));
    let none = Sampler::new(Order::Chunks).choice(Choice::filter(1000, |_| false));
    let schedule = none.schedule(dataset(1000, 10), one, Batching::global(4));
    assert_eq!(schedule.unwrap().epoch(0).unwrap_err(), PlanError::NoSamples);
    let empty = sampler.schedule(dataset(0, 10), one, Batching::global(4));
    assert_eq!(empty.unwrap_err(), PlanError::NoSamples);
}
