//! Tests resuming with a different number of ranks and a different batch size. The rest of the epoch is delivered, each
//! sample exactly once.

use std::sync::Arc;

use packds_format::{DType, Field, Role};
use proptest::prelude::*;
use tempfile::TempDir;

use super::images::write;
use super::{ORDERS, builder, some};
use crate::loader::{Batch, Epoch, LoadError, Loader};
use crate::plan::{Choice, Last, PlanError, Ranks, State};
use crate::{Access, Pack};

/// Number of samples per batch on each rank, and number of ranks.
type World = (u32, u32);

/// A pack of `n` samples labelled with their numbers.
fn numbered(n: u64) -> (TempDir, Arc<Pack>) {
    let fields =
        vec![Field::tensor("image", DType::U8, &[8]), Field::column("label", DType::I32, &[]).with_role(Role::Label)];
    write(n, fields, |block, sample| {
        let number = sample as u8;
        block.tensor_mut(0).unwrap().fill(number);
        block.set_column(1, &(sample as i32).to_le_bytes()).unwrap();
    })
}

/// The samples of a batch without padding. Checks their fields.
fn own(batch: &Batch) -> Vec<u64> {
    let labels = batch.elements::<i32>("label").unwrap();
    for ((row, id), label) in batch.ids().iter().enumerate().zip(labels) {
        assert_eq!(i32::try_from(*id), Ok(*label));
        assert_eq!(batch.item("image", row).unwrap(), [*id as u8; 8]);
    }
    batch.ids()[..batch.len() - batch.padding()].to_vec()
}

fn ranks((_, world): World) -> impl Iterator<Item = Ranks> {
    (0..world).map(move |rank| Ranks::new(rank, world).unwrap())
}

/// Resumes `state`, or begins epoch 1. `None` if less than a batch is left.
fn epoch_of(loader: &Loader, state: Option<&State>) -> Option<Epoch> {
    let epoch = match state {
        None => loader.epoch(1),
        Some(state) => loader.epoch_at(state),
    };
    match epoch {
        Ok(epoch) => Some(epoch).filter(|epoch| epoch.number() == 1),
        Err(LoadError::Plan(PlanError::NoBatch { .. })) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Resumes an epoch in each of `worlds` in turn. Each world delivers some tenths of the samples that are left. Returns
/// the delivered and the expected samples.
fn broken_run(worlds: &[(World, u64)], options: impl Fn(World) -> super::LoaderBuilder) -> (Vec<u64>, Vec<u64>) {
    let mut seen = Vec::new();
    let (mut state, mut had, mut planned) = (None::<State>, 0, Vec::new());
    for (number, &(world, tenths)) in worlds.iter().enumerate() {
        let is_last = number + 1 == worlds.len();
        let mut next = None;
        for ranks in ranks(world) {
            let mut builder = options(world).ranks(ranks);
            if let Some(state) = &state {
                builder = builder.resume(state);
            }
            let loader = builder.build().unwrap();
            let Some(mut epoch) = epoch_of(&loader, state.as_ref()) else {
                planned.truncate(had);
                return (seen, planned);
            };
            if planned.is_empty() {
                let plan = loader.schedule().epoch(1).unwrap();
                planned = (0..plan.len()).filter_map(|q| plan.position(q)).collect();
            }
            let left = epoch.steps() - epoch.next_step();
            let steps = if is_last { left } else { left * tenths / 10 };
            for batch in epoch.by_ref().take(steps as usize) {
                seen.extend(own(&batch.unwrap()));
            }
            next = Some((epoch.state(), steps * u64::from(world.0 * world.1)));
        }
        let (saved, more) = next.unwrap();
        had += more as usize;
        // The state is converted to text and back, as in a checkpoint.
        state = Some(State::from_json(&saved.to_json()).unwrap());
    }
    planned.truncate(had);
    (seen, planned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_run_gone_on_with_in_other_worlds_has_each_sample_of_its_epoch_once(
        n in 1_u64..150,
        order in 0_usize..ORDERS.len(),
        choice in 0_u8..3,
        pads in any::<bool>(),
        direct in any::<bool>(),
        worlds in prop::collection::vec(((1_u32..20, 1_u32..4), 0_u64..10), 2..4),
    ) {
        let (_folder, pack) = numbered(n);
        let options = |(batch, _): World| {
            let mut builder = builder(&pack).batch(batch).order(ORDERS[order]).threads(some(1));
            if pads {
                builder = builder.last(Last::Pad);
            }
            if direct {
                builder = builder.access(Access::Direct);
            }
            match choice {
                0 => builder,
                1 => builder.choice(Choice::filter(n, |sample| sample % 3 != 1)),
                _ => builder.choice(Choice::weighted(n, |sample| (sample % 5) as f64 * 0.5).unwrap()),
            }
        };
        // An epoch may have no samples or no batches.
        let plan = options(worlds[0].0).build().unwrap().schedule().epoch(1);
        prop_assume!(plan.is_ok());
        let (mut seen, mut planned) = broken_run(&worlds, options);
        if pads {
            prop_assert_eq!(planned.len() as u64, plan.unwrap().len());
        }
        seen.sort_unstable();
        planned.sort_unstable();
        prop_assert_eq!(seen, planned);
    }
}

#[test]
fn what_fills_up_a_batch_comes_at_its_end() {
    let (_folder, pack) = numbered(50);
    let whole = |batch| builder(&pack).batch(batch).last(Last::Pad);
    let loader = whole(16).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let mut seen = own(&epoch.next().unwrap().unwrap());
    let state = epoch.state();
    let resumed = whole(20).resume(&state).build().unwrap();
    let mut last = None;
    for batch in resumed.epoch_at(&state).unwrap() {
        let batch = batch.unwrap();
        seen.extend(own(&batch));
        last = Some(batch.padding());
    }
    // 16 samples were delivered, and 34 are left.
    assert_eq!(last, Some(6));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..50));
}

#[test]
fn a_mixture_does_not_go_on_with_another_global_batch() {
    let ((_a, first), (_b, second)) = (numbered(40), numbered(40));
    let mixed = |batch| {
        let builder = builder(&first).batch(batch).mix(Arc::clone(&second), 1.0);
        builder.build().unwrap()
    };
    let loader = mixed(8);
    let mut epoch = loader.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    let state = epoch.mixture_state().unwrap();
    let error = mixed(12).epoch_at_mixture(&state).unwrap_err();
    let LoadError::Plan(PlanError::OtherMixture { batch: 12 }) = error else {
        panic!("{error}");
    };
    let told = error.to_string();
    assert!(told.contains("global batch of 12 samples"), "{told}");
    assert!(told.contains("make the loader with the settings of the saved run"), "{told}");
}
