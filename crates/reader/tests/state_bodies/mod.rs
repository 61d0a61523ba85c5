//! The fuzz body for saved states, shared by cargo-fuzz (`fuzz/`) and the tests on stable Rust. No state may make it
//! panic, take long or use much memory.

use packds_format::Geometry;
use packds_reader::plan::{Batching, Dataset, Last, Mixture, MixtureState, Order, Ranks, Sampler, Source, State};

/// Maximum size of a plan's tables: 40 bytes for each of 65,536 lanes.
const MOST_BYTES: u64 = 40 << 16;

/// The number of samples and the number of samples per chunk.
const SETS: [(u64, u32); 5] = [(1, 1), (1000, 7), (4096, 64), (1_281_167, 64), (1 << 45, u32::MAX)];

pub(crate) fn dataset(n: u64, per_chunk: u32) -> Option<Dataset> {
    let geometry = Geometry::new(n, per_chunk).ok()?;
    Some(Dataset::new(geometry, 1 << 20, &[1; 16]))
}

/// Parses bytes as the state of a run and of a mixture, and resumes from it.
pub(crate) fn state(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match State::from_json(&text) {
        Ok(state) => {
            assert_eq!(State::from_json(&state.to_json()), Ok(state));
            // States of real runs have under 200 bytes. With numbers that no run reaches, they have up to 209 bytes.
            assert!(state.to_json().len() < 210);
            go_on(&state);
        }
        Err(error) => assert!(error.to_string().starts_with("not a saved state: ")),
    }
    if let Ok(state) = MixtureState::from_json(&text) {
        assert_eq!(MixtureState::from_json(&state.to_json()), Ok(state));
        mix_on(&state);
    }
}

/// Resumes runs over several datasets with the state. Each dataset rejects the state or has a valid plan.
pub(crate) fn go_on(state: &State) {
    for (n, per_chunk) in SETS {
        let Some(set) = dataset(n, per_chunk) else {
            continue;
        };
        let mut theirs = *state;
        (theirs.dataset, theirs.choice) = (set.fingerprint(), 0);
        let sampler = Sampler::default().seed(theirs.seed);
        for (batch, last) in [(1, Last::Drop), (96, Last::Pad), (theirs.recipe.batch, Last::Pad)] {
            let batching = Batching::global(batch).last(last);
            let Ok(schedule) = sampler.resume(set, Ranks::single(), batching, &theirs) else {
                continue;
            };
            assert_eq!(schedule.recipe(), theirs.recipe);
            let Ok((plan, step)) = schedule.at(&theirs) else {
                continue;
            };
            assert!(step < plan.steps() && plan.memory_bytes() <= MOST_BYTES);
            for step in [step, plan.steps() - 1] {
                let samples = plan.batch(step).take(200);
                assert!(samples.into_iter().all(|slot| slot.sample < n));
                assert!(plan.batch(step).next().is_some());
            }
            assert!(plan.position(n - 1).is_some_and(|sample| sample < n));
            assert_eq!(plan.position(n), None);
            let again = schedule.at(&plan.state(step));
            assert!(again.is_ok_and(|(_, again)| again == step));
            let _ = schedule.shuffle_report(&[]);
        }
    }
}

/// Resumes a mixture of two packs, first with the state, then from the state's step.
fn mix_on(state: &MixtureState) {
    let source = |n, order| Some(Source { dataset: dataset(n, 7)?, sampler: Sampler::new(order), proportion: 1.0 });
    let sources = [source(1000, Order::Window { chunks: None }), source(50, Order::Random)];
    let sources: Vec<Source> = sources.into_iter().flatten().collect();
    let Ok(mixture) = Mixture::new(&sources, Ranks::single(), Batching::global(8)) else {
        return;
    };
    let _ = mixture.at(state);
    let mut own = mixture.state(0);
    own.step = state.step;
    let Ok(step) = mixture.at(&own) else { return };
    let batch = mixture.batch(step).unwrap_or_default();
    assert_eq!(batch.len(), 8);
}
