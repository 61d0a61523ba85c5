//! Plans with buckets: each batch has samples of one bucket, ranks stay in step, and a run can be resumed at any step.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use packds_format::{Geometry, mix64};
use packds_reader::plan::{
    Batching, Bucketing, Choice, Dataset, EpochPlan, Last, Mixture, Notice, Order, PlanError, Ranks, Sampler, Schedule,
    Source, State,
};

const ORDERS: [Order; 5] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(5) },
    Order::Window { chunks: None },
];

fn dataset(n: u64) -> Dataset {
    Dataset::new(Geometry::new(n, 16).unwrap(), 1 << 20, &[3; 16])
}

/// Buckets of very different sizes.
fn bucket(sample: u64) -> u8 {
    match mix64(sample) % 100 {
        0 => 4,
        1..8 => 3,
        8..20 => 0,
        20..50 => 2,
        _ => 1,
    }
}

fn bucketing(n: u64) -> Bucketing {
    Bucketing::new(n, "test", bucket)
}

fn schedules(sampler: &Sampler, n: u64, world: u32, batching: Batching) -> Vec<Schedule> {
    let ranks = (0..world).map(|rank| Ranks::new(rank, world).unwrap());
    ranks.map(|ranks| sampler.schedule(dataset(n), ranks, batching).unwrap()).collect()
}

/// The samples of each step over all ranks, with whether they are padding. Checks that all ranks have the same number
/// of steps, batches of the same size, and the same bucket.
fn steps(plans: &[EpochPlan], first: u64) -> Vec<Vec<(u64, bool)>> {
    let of_step = |step| {
        let mut all = Vec::new();
        for plan in plans {
            assert_eq!(plan.steps(), plans[0].steps());
            assert_eq!(plan.batch(step).count(), plans[0].batch(step).count());
            for slot in plan.batch(step) {
                assert_eq!(usize::from(bucket(slot.sample)), plans[0].bucket(step));
                all.push((slot.sample, slot.padding));
            }
        }
        all
    };
    (first..plans[0].steps()).map(of_step).collect()
}

fn epoch_of(schedules: &[Schedule], epoch: u32) -> Vec<EpochPlan> {
    schedules.iter().map(|schedule| schedule.epoch(epoch).unwrap()).collect()
}

#[test]
fn each_sample_occurs_once_except_those_that_are_reported_as_dropped() {
    for order in ORDERS {
        for (n, batch) in [(1000, 24), (997, 12), (300, 60)] {
            for world in [1, 2, 3, 12] {
                let sampler = Sampler::new(order).seed(11).buckets(bucketing(n));
                let plans = epoch_of(&schedules(&sampler, n, world, Batching::global(batch)), 2);
                let seen: Vec<u64> = steps(&plans, 0).into_iter().flatten().map(|(sample, _)| sample).collect();
                let unique: BTreeSet<u64> = seen.iter().copied().collect();
                assert_eq!(unique.len(), seen.len());
                assert_eq!(seen.len() as u64 + plans[0].dropped(), n);
                let left: u64 = bucketing(n).counts().iter().map(|count| count % u64::from(batch)).sum();
                assert_eq!(plans[0].dropped(), left);
            }
        }
    }
}

#[test]
fn padding_fills_the_last_batch_of_each_bucket_with_its_own_samples() {
    for order in ORDERS {
        for world in [1, 4] {
            let sampler = Sampler::new(order).buckets(bucketing(500));
            let plans = epoch_of(&schedules(&sampler, 500, world, Batching::global(32).last(Last::Pad)), 0);
            let steps = steps(&plans, 0);
            let own = steps.iter().flatten().filter(|(_, padding)| !padding).map(|(sample, _)| *sample);
            assert_eq!(own.collect::<BTreeSet<_>>(), (0..500).collect());
            assert_eq!(steps.iter().flatten().filter(|(_, padding)| !padding).count(), 500);
            assert!(steps.iter().all(|step| step.len() == 32));
            assert_eq!(plans[0].dropped(), 0);
            // The batches that are not full come last, one for each bucket.
            let padded = steps.iter().map(|step| step.iter().any(|(_, padding)| *padding));
            let first = padded.clone().position(|padded| padded).unwrap();
            assert_eq!(steps.len() - first, 5);
            assert!(padded.skip(first).all(|padded| padded));
        }
    }
}

#[test]
fn global_batches_are_the_same_in_every_world() {
    for order in ORDERS {
        let sampler = Sampler::new(order).buckets(bucketing(1000));
        let batches = |world| steps(&epoch_of(&schedules(&sampler, 1000, world, Batching::global(24)), 1), 0);
        for world in [2, 3, 8] {
            assert_eq!(batches(world), batches(1), "{order:?}");
        }
    }
}

#[test]
fn a_run_resumed_at_any_step_in_any_world_continues_exactly() {
    for order in ORDERS {
        for last in [Last::Drop, Last::Pad] {
            let sampler = Sampler::new(order).seed(5).buckets(bucketing(400));
            let batching = Batching::global(12).last(last);
            let whole = epoch_of(&schedules(&sampler, 400, 4, batching), 3);
            let all = steps(&whole, 0);
            for step in 0..whole[0].steps() {
                let saved = whole[1].state(step).to_json();
                assert!(saved.len() < 200);
                let state = State::from_json(&saved).unwrap();
                let resumed: Vec<EpochPlan> = (0..2)
                    .map(|rank| {
                        let ranks = Ranks::new(rank, 2).unwrap();
                        let schedule = sampler.resume(dataset(400), ranks, batching, &state).unwrap();
                        let (plan, first) = schedule.at(&state).unwrap();
                        assert_eq!((first, plan.epoch()), (step, 3));
                        plan
                    })
                    .collect();
                assert_eq!(steps(&resumed, step), all[usize::try_from(step).unwrap()..]);
            }
            assert_eq!(whole[0].state(whole[0].steps()).epoch, 4);
        }
    }
}

#[test]
fn steps_can_be_requested_in_any_order_long_after_they_were_formed() {
    let sampler = Sampler::new(Order::Window { chunks: Some(5) }).buckets(bucketing(3000));
    for last in [Last::Drop, Last::Pad] {
        let plan = || schedules(&sampler, 3000, 2, Batching::global(10).last(last))[1].epoch(0).unwrap();
        let (in_order, other) = (plan(), plan());
        assert!(in_order.steps() > 200);
        let batch = |plan: &EpochPlan, step| plan.batch(step).collect::<Vec<_>>();
        let expected: Vec<_> = (0..in_order.steps()).map(|step| batch(&in_order, step)).collect();
        let last = other.steps() - 1;
        assert_eq!(batch(&other, last), expected[usize::try_from(last).unwrap()]);
        for step in (0..other.steps()).rev() {
            assert_eq!(batch(&other, step), expected[usize::try_from(step).unwrap()], "{step}");
        }
        assert_eq!(batch(&other, last + 1), []);
    }
}

#[test]
fn weights_and_selections_keep_their_counts() {
    let choice = Choice::weighted(600, |sample| if sample % 3 == 0 { 2.0 } else { 0.5 }).unwrap();
    let sampler = Sampler::new(Order::Window { chunks: Some(4) }).choice(choice).buckets(bucketing(600));
    let plan = schedules(&sampler, 600, 1, Batching::global(8).last(Last::Pad))[0].epoch(1).unwrap();
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    (0..plan.len()).for_each(|position| *expected.entry(plan.position(position).unwrap()).or_default() += 1);
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for (sample, padding) in steps(&[plan], 0).into_iter().flatten() {
        *found.entry(sample).or_default() += u64::from(!padding);
    }
    assert_eq!(found, expected);
}

#[test]
fn chunk_uses_are_those_of_the_batches() {
    let sampler = Sampler::new(Order::Window { chunks: Some(6) }).buckets(bucketing(1000));
    for plan in epoch_of(&schedules(&sampler, 1000, 2, Batching::global(16)), 0) {
        for step in 0..plan.steps() {
            let expected: BTreeSet<u64> = plan.batch(step).map(|slot| slot.sample / 16).collect();
            let uses = plan.chunk_uses(step);
            assert_eq!(uses.iter().map(|used| used.chunk).collect::<BTreeSet<_>>(), expected);
            assert!(uses.iter().all(|used| (step..plan.steps()).contains(&used.until)));
        }
    }
}

/// How often a chunk is read in an epoch, if it is kept until the step that the plan names.
fn reads_per_chunk(plan: &EpochPlan, n_chunks: f64) -> f64 {
    let (mut kept, mut reads) = (BTreeMap::new(), 0);
    for step in 0..plan.steps() {
        kept.retain(|_, until| *until >= step);
        for used in plan.chunk_uses(step) {
            let until = kept.entry(used.chunk).or_insert_with(|| {
                reads += 1;
                0
            });
            *until = used.until.max(*until);
        }
    }
    f64::from(reads) / n_chunks
}

#[test]
fn chunks_are_read_about_as_often_as_without_buckets() {
    let n = 40_000;
    for world in [1, 4] {
        let reads = |sampler: &Sampler| {
            let plan = schedules(sampler, n, world, Batching::global(64))[0].epoch(0).unwrap();
            reads_per_chunk(&plan, n as f64 / 16.0 / f64::from(world))
        };
        let window = Sampler::new(Order::Window { chunks: Some(64) });
        let even = window.clone().buckets(Bucketing::new(n, "even", |sample| u8::try_from(mix64(sample) % 8).unwrap()));
        let (without, with) = (reads(&window), reads(&even));
        println!("world {world}: {without:.2} reads of a chunk without buckets, {with:.2} with 8 buckets");
        assert!(with < 2.0 * without, "{with}");
    }
}

#[test]
fn one_bucket_gives_the_batches_without_buckets() {
    for order in ORDERS {
        let plain = Sampler::new(order).seed(3);
        let one = plain.clone().buckets(Bucketing::new(500, "one", |_| 0));
        let batches = |sampler: &Sampler| {
            let plan = schedules(sampler, 500, 1, Batching::global(20))[0].epoch(0).unwrap();
            (0..plan.steps()).flat_map(|step| plan.batch(step).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(batches(&plain), batches(&one));
    }
}

#[test]
fn the_report_says_how_many_samples_are_left_out_and_which_ones_always_are() {
    let sampler = Sampler::new(Order::Random).buckets(bucketing(1000));
    let schedule = &schedules(&sampler, 1000, 1, Batching::global(32))[0];
    let report = schedule.shuffle_report(&[]).unwrap();
    let counts = bucketing(1000).counts().to_vec();
    let never = counts.iter().filter(|count| **count < 32).sum();
    assert!(never > 0);
    assert_eq!(report.dropped, counts.iter().map(|count| count % 32).sum::<u64>());
    assert!(report.notices.contains(&Notice::Buckets { buckets: 5, dropped: report.dropped }));
    assert!(report.notices.contains(&Notice::NeverSeen { samples: never }));
}

#[test]
fn a_state_of_other_buckets_is_refused() {
    let state = |sampler: &Sampler| schedules(sampler, 400, 1, Batching::global(8))[0].epoch(0).unwrap().state(2);
    let plain = Sampler::new(Order::Random);
    let with = plain.clone().buckets(bucketing(400));
    let renamed = plain.clone().buckets(Bucketing::new(400, "other", bucket));
    for (from, to) in [(&plain, &with), (&with, &plain), (&with, &renamed)] {
        let error = to.resume(dataset(400), Ranks::single(), Batching::global(8), &state(from)).unwrap_err();
        assert!(matches!(error, PlanError::OtherRun { what: "choice of samples or buckets", .. }), "{error}");
    }
}

#[test]
fn a_resumed_run_with_another_global_batch_is_refused() {
    let sampler = Sampler::new(Order::Random).buckets(bucketing(400));
    let state = schedules(&sampler, 400, 1, Batching::global(8))[0].epoch(0).unwrap().state(2);
    let error = sampler.resume(dataset(400), Ranks::single(), Batching::global(4), &state).unwrap_err();
    assert_eq!(error, PlanError::BucketBatch { planned: 8, found: 4 });
}

#[test]
fn a_state_within_a_batch_is_refused() {
    let sampler = Sampler::new(Order::Random).buckets(bucketing(400));
    let schedule = &schedules(&sampler, 400, 1, Batching::global(8))[0];
    let state = State { position: 13, ..schedule.epoch(0).unwrap().state(2) };
    let error = schedule.at(&state).unwrap_err();
    assert!(matches!(&error, PlanError::State { why } if why.contains("multiples of 8")), "{error}");
}

#[test]
fn an_epoch_in_which_no_bucket_is_full_is_refused() {
    let sampler =
        Sampler::new(Order::Random).buckets(Bucketing::new(400, "many", |sample| u8::try_from(sample % 16).unwrap()));
    let schedule = &schedules(&sampler, 400, 1, Batching::global(32))[0];
    let error = schedule.epoch(0).unwrap_err();
    assert_eq!(error, PlanError::NoFullBucket { samples: 400, batch: 32, buckets: 16 });
}

#[test]
fn buckets_of_another_pack_are_refused() {
    let sampler = Sampler::new(Order::Random).buckets(bucketing(399));
    let error = sampler.schedule(dataset(400), Ranks::single(), Batching::global(8)).unwrap_err();
    assert_eq!(error, PlanError::Selection { expected: 399, found: 400 });
}

#[test]
fn a_mixture_with_buckets_is_refused() {
    let source =
        Source { dataset: dataset(400), sampler: Sampler::new(Order::Random).buckets(bucketing(400)), proportion: 1.0 };
    let error = Mixture::new(&[source], Ranks::single(), Batching::global(8)).unwrap_err();
    assert!(error.to_string().contains("buckets"), "{error}");
}
