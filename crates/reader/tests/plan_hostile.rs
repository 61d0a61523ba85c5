//! Invalid states: random bytes, changed states, impossible numbers.

#![cfg(test)]

mod state_bodies;

use std::time::{Duration, Instant};

use packds_format::Geometry;
use packds_reader::plan::{Batching, Dataset, Last, MixtureState, OrderKind, PlanError, Ranks, Recipe, Sampler, State};
use proptest::prelude::*;

/// Numbers near the limits, numbers near each other, and random numbers.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        0_u32..9,
        Just(64),
        Just(256),
        Just(1 << 16),
        Just((1 << 16) + 1),
        Just(u32::MAX - 1),
        Just(u32::MAX),
        any::<u32>(),
    ]
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let orders = [OrderKind::Sequential, OrderKind::Random, OrderKind::Chunks, OrderKind::Window];
    // In half of the cases, the lanes divide the batch. Otherwise nearly all states would be rejected.
    (0..4_usize, number(), number(), number(), prop::bool::ANY).prop_map(move |(order, window, lanes, batch, fits)| {
        Recipe {
            order: orders[order],
            window,
            lanes,
            batch: if fits { lanes.saturating_mul(batch % 8 + 1) } else { batch },
        }
    })
}

fn state() -> impl Strategy<Value = State> {
    let position = prop_oneof![0..3000_u64, any::<u64>().prop_map(|at| at >> 2)];
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), number(), position);
    (numbers, recipe()).prop_map(|((dataset, choice, seed, epoch, position), recipe)| State {
        dataset,
        choice,
        seed,
        recipe,
        epoch,
        position,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_a_state_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        state_bodies::state(&bytes);
    }

    #[test]
    fn any_words_of_a_state_are_a_state_or_an_error(
        words in "(\\{|\\}|:|,|\"v\":1|\"mixture\":\"0123456789abcdef\"|\"step\":[0-9]{1,20}|\"at\"|[0-9]){0,9}"
    ) {
        state_bodies::state(words.as_bytes());
    }

    #[test]
    fn a_changed_state_is_a_state_or_an_error(
        state in state(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = state.to_json().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        state_bodies::state(&bytes);
    }

    #[test]
    fn hostile_numbers_are_refused_or_a_plan_at_once(state in state()) {
        let began = Instant::now();
        prop_assert_eq!(State::from_json(&state.to_json()), Ok(state));
        state_bodies::go_on(&state);
        // There are up to 15 plans. Each takes microseconds, or a millisecond for 65,536 lanes.
        prop_assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[test]
    fn whatever_recipe_is_accepted_visits_each_sample_once(recipe in recipe(), n in 1_u64..900) {
        let set = Dataset::new(Geometry::new(n, 7).unwrap(), 1 << 20, &[1; 16]);
        let state = State { dataset: set.fingerprint(), choice: 0, seed: 4, recipe, epoch: 2, position: 0 };
        let batching = Batching::global(13).last(Last::Pad);
        let resumed = Sampler::default().seed(4).resume(set, Ranks::single(), batching, &state);
        if let Ok(schedule) = resumed {
            let (plan, _) = schedule.at(&state).unwrap();
            let mut seen: Vec<u64> = (0..n).map(|q| plan.position(q).unwrap()).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..n));
        }
    }
}

/// A valid state.
fn written() -> String {
    let state = State {
        dataset: 1,
        choice: 2,
        seed: 3,
        recipe: Recipe { order: OrderKind::Window, window: 64, lanes: 32, batch: 256 },
        epoch: 5,
        position: 6,
    };
    state.to_json()
}

#[test]
fn errors_name_what_is_wrong() {
    let good = written();
    for (from, to, told) in [
        ("{", "[", "it is not a JSON object"),
        ("\"v\":1", "\"v\":2", "`v` is the version of another release"),
        ("\"v\"", "\"w\"", "`v` is missing"),
        ("\"seed\"", "\"sead\"", "`seed` is missing"),
        ("\"seed\"", "seed", "a key is not in quotes"),
        ("\"at\":6", "6", "a value has no key"),
        ("\"at\":6", "\"epoch\":6", "a key occurs twice"),
        ("\"at\":6", "\"at\":6,\"by\":1", "it has unknown keys"),
        ("0000000000000003", "3", "`seed` is not 16 hexadecimal digits in quotes"),
        ("\"window\",", "\"auto\",", "`order` is not the name of an order"),
        ("\"lanes\":32", "\"lanes\":4294967296", "`lanes` is not a whole number from 0 to 4294967295"),
        ("\"epoch\":5", "\"epoch\":-5", "`epoch` is not a whole number from 0 to 4294967295"),
        ("\"at\":6", "\"at\":4611686018427387904", "`at` is not a whole number from 0 to 4611686018427387903"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let error = State::from_json(&bad).unwrap_err();
        assert_eq!(error, PlanError::State { why: told.to_owned() }, "{bad}");
    }
}

#[test]
fn long_states_and_wrong_steps_are_named_too() {
    let good = written();
    let long = good.replace(',', &format!(",{}", " ".repeat(200)));
    let told = "not a saved state: it is longer than any saved state";
    assert_eq!(State::from_json(&long).unwrap_err().to_string(), told);
    let step = MixtureState::from_json("{\"v\":1,\"mixture\":\"0000000000000000\",\"step\":x}");
    let told = "not a saved state: `step` is not a whole number from 0 to 4611686018427387903";
    assert_eq!(step.unwrap_err().to_string(), told);
}
