//! The contents of batches.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ORDERS, SAMPLE_BYTES, builder, ids, label, opened, pixels, some, text, write_pack};
use crate::loader::{LoadError, Loader};
use crate::plan::{Choice, Last, Order, Ranks, State};
use crate::{Access, open};
use packds_format::DType;

#[test]
fn every_order_delivers_the_samples_it_names_once_with_their_labels() {
    let (_folder, pack) = opened(203);
    for order in ORDERS {
        for (threads, access) in [(1, Access::Mapped), (3, Access::Mapped), (3, Access::Direct)] {
            let loader =
                builder(&pack).order(order).access(access).threads(some(threads)).last(Last::Pad).build().unwrap();
            let mut seen: BTreeSet<u64> = BTreeSet::new();
            let mut steps = 0;
            for batch in loader.epoch(2).unwrap() {
                let batch = batch.unwrap();
                assert_eq!((batch.step(), batch.epoch()), (steps, 2));
                steps += 1;
                let images = batch.field("image").unwrap();
                assert_eq!((images.dtype, images.shape), (DType::U8, vec![16, 50, 100]));
                let labels = batch.elements::<i32>("label").unwrap();
                for (row, id) in batch.ids().iter().enumerate() {
                    assert_eq!(batch.item("image", row).unwrap(), pixels(*id), "{order:?}");
                    assert_eq!(labels[row], label(*id));
                }
                seen.extend(&batch.ids()[..16 - batch.padding()]);
            }
            assert_eq!((steps, seen.len()), (13, 203), "{order:?}");
            let stats = loader.stats();
            assert_eq!((stats.batches, stats.samples), (13, 208));
            assert_eq!(stats.bytes, 208 * (SAMPLE_BYTES + 4));
        }
    }
}

#[test]
fn batches_are_those_of_the_plan_whatever_the_threads_and_depth() {
    let (_folder, pack) = opened(160);
    for order in ORDERS {
        let loader = builder(&pack).order(order).threads(some(1)).build().unwrap();
        let expected = ids(loader.epoch(1).unwrap());
        let plan = loader.schedule().epoch(1).unwrap();
        let planned: Vec<Vec<u64>> =
            (0..plan.steps()).map(|step| plan.batch(step).map(|slot| slot.sample).collect()).collect();
        assert_eq!(expected, planned);
        for (threads, prefetch, access) in [(2, 1, Access::Mapped), (4, 5, Access::Direct), (7, 16, Access::Auto)] {
            let loader = builder(&pack)
                .order(order)
                .access(access)
                .threads(some(threads))
                .prefetch(some(prefetch))
                .build()
                .unwrap();
            assert_eq!(ids(loader.epoch(1).unwrap()), expected);
        }
    }
}

#[test]
fn chunks_that_are_batches_are_lent_without_a_copy() {
    let (_folder, pack) = opened(64);
    for order in [Order::Chunks, Order::Sequential] {
        let loader = builder(&pack).batch(8).order(order).access(Access::Direct).build().unwrap();
        assert!(loader.epoch(0).unwrap().all(|batch| batch.unwrap().is_lent()));
        let loader = builder(&pack).batch(8).order(order).build().unwrap();
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let lent = batch.field("image").unwrap().bytes.as_ptr();
            assert!(pack.whole_file().as_ptr_range().contains(&lent), "{order:?}");
            assert_eq!(batch.item("image", 7).unwrap(), pixels(batch.ids()[7]));
            assert_eq!(batch.elements::<i32>("label").unwrap()[3], label(batch.ids()[3]));
        }
    }
}

#[test]
fn items_of_their_own_size_come_one_by_one() {
    let (_folder, path) = write_pack(50, true);
    let pack = Arc::new(open(path).unwrap());
    let loader = builder(&pack).threads(some(2)).order(Order::Random).build().unwrap();
    for batch in loader.epoch(0).unwrap() {
        let batch = batch.unwrap();
        for (row, id) in batch.ids().iter().enumerate() {
            assert_eq!(batch.item("text", row).unwrap(), text(*id).as_bytes());
            assert_eq!(batch.item("image", row).unwrap(), pixels(*id));
        }
        let error = batch.field("text").unwrap_err().to_string();
        assert!(error.contains("one by one with `item`"), "{error}");
    }
}

#[test]
fn only_named_fields_are_loaded() {
    let (_folder, pack) = opened(32);
    let loader = builder(&pack).fields(&["label"]).build().unwrap();
    let names: Vec<&str> = loader.fields().iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["label"]);
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let error = batch.field("image").unwrap_err().to_string();
    assert_eq!(error, "batches have no field `image`; they have label");
    let error = batch.elements::<i64>("label").unwrap_err().to_string();
    assert_eq!(error, "field `label`: the elements are i32, but were requested as i64");
    let error = batch.item("label", 16).unwrap_err().to_string();
    assert_eq!(error, "the batch has 16 samples: there is no row 16");
}

#[test]
fn unknown_fields_are_refused_with_those_there_are() {
    let (_folder, pack) = opened(32);
    let error = builder(&pack).fields(&["pixels"]).build().unwrap_err();
    assert!(error.to_string().contains("image"), "{error}");
    let none: [&str; 0] = [];
    let error = builder(&pack).fields(&none).build().unwrap_err();
    assert!(matches!(error, LoadError::Option(_)), "{error}");
}

#[test]
fn a_run_resumed_on_other_ranks_delivers_what_the_uninterrupted_one_would() {
    let (_folder, pack) = opened(1003);
    for order in ORDERS {
        let on = |rank: u32, world: u32| {
            let ranks = Ranks::new(rank, world).unwrap();
            builder(&pack).order(order).ranks(ranks).batch(16 / world)
        };
        let whole: Vec<BTreeSet<u64>> = (0..2)
            .flat_map(|epoch| ids(on(0, 1).build().unwrap().epoch(epoch).unwrap()))
            .map(|ids| ids.into_iter().collect())
            .collect();
        // There are 70 steps on 8 ranks: 62 of epoch 0, and 8 of epoch 1.
        let mut states: Vec<String> = Vec::new();
        let mut steps: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); whole.len()];
        for rank in 0..8 {
            let loader = on(rank, 8).build().unwrap();
            let mut place = 0;
            for batch in loader.epoch(0).unwrap() {
                steps[place].extend(batch.unwrap().ids());
                place += 1;
            }
            let mut epoch = loader.epoch(1).unwrap();
            for batch in epoch.by_ref().take(8) {
                steps[place].extend(batch.unwrap().ids());
                place += 1;
            }
            states.push(epoch.state().to_json());
        }
        assert!(states.iter().all(|state| *state == states[0] && state.len() < 200));
        let state = State::from_json(&states[0]).unwrap();
        for rank in 0..2 {
            let loader = on(rank, 2).resume(&state).build().unwrap();
            let mut place = 70;
            for batch in loader.epoch_at(&state).unwrap() {
                steps[place].extend(batch.unwrap().ids());
                place += 1;
            }
            assert_eq!(place, whole.len());
        }
        assert_eq!(steps, whole, "{order:?}");
    }
}

#[test]
fn a_choice_of_samples_is_all_that_comes() {
    let (_folder, pack) = opened(100);
    let choice = Choice::samples(100, [3, 5, 99, 64]).unwrap();
    let loader = builder(&pack).batch(2).choice(choice).build().unwrap();
    let mut seen: Vec<u64> = ids(loader.epoch(0).unwrap()).concat();
    seen.sort_unstable();
    assert_eq!(seen, [3, 5, 64, 99]);
}

#[test]
fn too_little_memory_for_the_ring_is_refused_with_both_numbers() {
    let (_folder, pack) = opened(64);
    let error = builder(&pack).memory_bytes(100_000).build().unwrap_err();
    assert!(matches!(error, LoadError::Memory { needed, budget: 100_000, .. } if needed > 100_000));
    assert!(error.to_string().contains("the staging ring needs"), "{error}");
}

#[test]
fn what_was_decided_is_told() {
    let (_folder, pack) = opened(64);
    let loader = Loader::builder(Arc::clone(&pack)).build().unwrap();
    let notices = loader.notices().unwrap().join("\n");
    assert!(notices.contains("random"), "{notices}");
    assert!(notices.contains(&loader.access().reason), "{notices}");
    assert_eq!(loader.shuffle_report().unwrap().order.name(), "random");
}
