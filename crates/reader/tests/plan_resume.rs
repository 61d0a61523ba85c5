//! Resuming a run: at any step, with another world size, with another batch.

#![cfg(test)]

use packds_format::Geometry;
use packds_reader::plan::{
    Batching, Choice, Dataset, EpochPlan, Last, Order, PlanError, Ranks, Sampler, Schedule, State,
};

const ORDERS: [Order; 5] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(5) },
    Order::Window { chunks: None },
];

fn dataset(n: u64, per_chunk: u32) -> Dataset {
    Dataset::new(Geometry::new(n, per_chunk).unwrap(), 1 << 20, &[3; 16])
}

/// The next `steps` global batches after a state, in the order in which ranks get the samples.
fn stream(schedules: &[Schedule], state: &State, steps: u64) -> Vec<Vec<u64>> {
    let mut plans: Vec<(EpochPlan, u64)> = schedules.iter().map(|s| s.at(state).unwrap()).collect();
    let mut batches = Vec::new();
    for _ in 0..steps {
        let mut batch = Vec::new();
        for ((plan, step), schedule) in plans.iter_mut().zip(schedules) {
            if *step == plan.steps() {
                *plan = schedule.epoch(plan.epoch() + 1).unwrap();
                *step = 0;
            }
            batch.extend(plan.batch(*step).map(|slot| slot.sample));
            *step += 1;
        }
        batches.push(batch);
    }
    batches
}

#[test]
fn one_hundred_steps_on_8_ranks_then_resumed_on_2_are_the_uninterrupted_stream() {
    let set = dataset(20_011, 64);
    for order in ORDERS {
        let sampler = Sampler::new(order).seed(5);
        let world = |world: u32| -> Vec<Schedule> {
            let ranks = (0..world).map(|rank| Ranks::new(rank, world).unwrap());
            ranks.map(|rank| sampler.schedule(set, rank, Batching::global(128)).unwrap()).collect()
        };
        let eight = world(8);
        let begin = eight[0].epoch(0).unwrap().state(0);
        let whole = stream(&world(1), &begin, 400);
        let first = stream(&eight, &begin, 100);
        let saved = eight[3].epoch(0).unwrap().state(100).to_json();
        assert!(saved.len() < 200, "{saved}");

        // The second run has a different memory budget, but the first run's decision is kept.
        let state = State::from_json(&saved).unwrap();
        let second = Sampler::new(Order::Auto).seed(5).memory_bytes(0);
        let two: Vec<Schedule> = (0..2)
            .map(|rank| {
                let rank = Ranks::new(rank, 2).unwrap();
                let batching = Batching::per_rank(64);
                second.resume(set, rank, batching, &state).unwrap()
            })
            .collect();
        let rest = stream(&two, &state, 300);
        assert_eq!([first, rest].concat(), whole, "{order:?}");
    }
}

#[test]
fn another_batch_size_in_the_middle_of_an_epoch_still_visits_each_sample_once() {
    let set = dataset(5003, 16);
    let changes = [(64, 128, 4), (64, 32, 8), (64, 48, 2), (60, 7, 1), (7, 90, 3), (64, 640, 5)];
    for order in ORDERS {
        for (before, after, world) in changes {
            let sampler = Sampler::new(order).seed(9);
            let batching = Batching::global(before).last(Last::Pad);
            let schedule = sampler.schedule(set, Ranks::single(), batching).unwrap();
            let plan = schedule.epoch(1).unwrap();
            let mut seen: Vec<u64> = (0..23).flat_map(|step| plan.batch(step).map(|slot| slot.sample)).collect();
            let state = plan.state(23);
            for rank in 0..world {
                let rank = Ranks::new(rank, world).unwrap();
                let batching = Batching::global(after).last(Last::Pad);
                let resumed = sampler.resume(set, rank, batching, &state).unwrap();
                let (plan, step) = resumed.at(&state).unwrap();
                assert_eq!(plan.epoch(), 1);
                assert_eq!(plan.state(step), state);
                let rest = (step..plan.steps()).flat_map(|step| plan.batch(step));
                seen.extend(rest.filter(|slot| !slot.padding).map(|slot| slot.sample));
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..5003), "{order:?} {before} {after} {world}");
        }
    }
}

#[test]
fn the_state_after_the_last_step_starts_the_next_epoch() {
    let sampler = Sampler::new(Order::Window { chunks: None });
    let schedule = sampler.schedule(dataset(1000, 8), Ranks::single(), Batching::global(64));
    let schedule = schedule.unwrap();
    let plan = schedule.epoch(4).unwrap();
    let (next, step) = schedule.at(&plan.state(plan.steps())).unwrap();
    assert_eq!((next.epoch(), step), (5, 0));
}

#[test]
fn a_state_of_another_run_is_refused_and_says_why() {
    let set = dataset(1000, 10);
    let sampler = Sampler::new(Order::Window { chunks: Some(8) }).seed(1);
    let batching = Batching::global(20);
    let one = Ranks::single();
    let schedule = sampler.schedule(set, one, batching).unwrap();
    let state = schedule.epoch(0).unwrap().state(3);
    let refused = |sampler: &Sampler, set| match sampler.resume(set, one, batching, &state).unwrap_err() {
        PlanError::OtherRun { what, .. } => what,
        other => panic!("{other}"),
    };
    assert_eq!(refused(&sampler, dataset(1001, 10)), "dataset");
    assert_eq!(refused(&sampler.clone().seed(2), set), "seed");
    assert_eq!(refused(&sampler.clone().lanes(2), set), "number of lanes");
    let random = Sampler::new(Order::Random).seed(1);
    assert_eq!(refused(&random, set), "order");
    let wider = Sampler::new(Order::Window { chunks: Some(9) }).seed(1);
    assert_eq!(refused(&wider, set), "window");
    let some = sampler.clone().choice(Choice::filter(1000, |i| i < 500));
    assert_eq!(refused(&some, set), "choice of samples or buckets");
    let message = sampler.clone().seed(2).resume(set, one, batching, &state).unwrap_err();
    assert_eq!(
        message.to_string(),
        "the saved state is for another seed: it has 0000000000000001, but this run has 0000000000000002"
    );
}

#[test]
fn a_damaged_state_is_an_error_or_a_place_in_the_run() {
    let set = dataset(1000, 10);
    let sampler = Sampler::new(Order::Window { chunks: Some(8) });
    let (one, batching) = (Ranks::single(), Batching::global(20));
    let schedule = sampler.schedule(set, one, batching).unwrap();
    let state = schedule.epoch(0).unwrap().state(3);
    let recipes = [(0, 4, 20), (8, 0, 20), (8, 4, 0), (8, 3, 20), (8, 10, 20), (8, 1 << 20, 1 << 20)];
    for (window, lanes, batch) in recipes {
        let mut bad = state;
        (bad.recipe.window, bad.recipe.lanes, bad.recipe.batch) = (window, lanes, batch);
        let auto = Sampler::default();
        assert!(auto.resume(set, one, batching, &bad).is_err(), "{bad:?}");
    }
    // A position beyond the end of the epoch means the start of the next epoch.
    for position in [1000, 1001, 1 << 50] {
        let mut late = state;
        late.position = position;
        let (plan, step) = schedule.at(&late).unwrap();
        assert_eq!((plan.epoch(), step), (1, 0));
    }
}
