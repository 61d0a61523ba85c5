//! Tests several packs in fixed proportions.

use std::collections::BTreeMap;
use std::sync::Arc;

use packds_format::{Classes, DType, Field, FieldKind, FooterParts, Role, Store};
use packds_pixels::Pixels;
use tempfile::TempDir;

use super::images::{write, write_with};
use super::{ORDERS, builder, opened, some};
use crate::augment::{Augment, AugmentPlan, Augmenter, ImageSource, Input, Picture, SampleKey};
use crate::loader::{Batch, Epoch, LoadError, LoaderBuilder};
use crate::plan::{Choice, Last, MixtureState, Order, PlanError, Ranks, State};
use crate::{Access, Pack, ReadError};

const SIDE: u64 = 20;

/// The pixels of a sample. They differ between packs, between samples and between adjacent bytes.
fn pixels(pack: usize, sample: u64) -> Vec<u8> {
    let first = (pack as u64 * 1_000_000 + sample) * 5000;
    let byte = |i: u64| (packds_format::mix64(first + i) & 0xFF) as u8;
    (0..SIDE * SIDE * 3).map(byte).collect()
}

fn label(pack: usize, sample: u64) -> i32 {
    (pack as u64 * 1000 + sample) as i32
}

fn fields() -> Vec<Field> {
    let mut image = Field::tensor("image", DType::U8, &[SIDE, SIDE, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    vec![image, Field::column("label", DType::I32, &[]).with_role(Role::Label)]
}

/// Pack number `number` of a mixture.
fn pack(number: usize, n: u64) -> (TempDir, Arc<Pack>) {
    write(n, fields(), |block, sample| {
        let image = pixels(number, sample);
        block.tensor_mut(0).unwrap().copy_from_slice(&image);
        let label = label(number, sample);
        block.set_column(1, &label.to_le_bytes()).unwrap();
    })
}

/// A pack of 40 samples with all values 0.
fn zeros(fields: Vec<Field>) -> (TempDir, Arc<Pack>) {
    let written = fields.clone();
    write(40, fields, |block, _| {
        for (number, field) in written.iter().enumerate() {
            let zeros = vec![0; field.item_bytes().unwrap_or(0) as usize];
            match (field.store, field.kind) {
                (Store::Column, _) => block.set_column(number, &zeros).unwrap(),
                (_, FieldKind::Tensor) => block.tensor_mut(number).unwrap().fill(0),
                _ => block.item_mut(number).unwrap().push(0),
            }
        }
    })
}

/// Packs of 203, 50 and 9 samples.
fn packs() -> Vec<(TempDir, Arc<Pack>)> {
    [203, 50, 9].into_iter().zip(0..).map(|(n, i)| pack(i, n)).collect()
}

/// Each batch of 16 samples takes 11, 4 and 1 samples from the packs. The last pack has 9 steps per epoch.
fn mixed(packs: &[(TempDir, Arc<Pack>)]) -> LoaderBuilder {
    builder(&packs[0].1).proportion(11.0).mix(Arc::clone(&packs[1].1), 4.0).mix(Arc::clone(&packs[2].1), 1.0)
}

fn rows(batch: &Batch) -> Vec<(usize, u64)> {
    let packs = batch.packs();
    packs.into_iter().zip(batch.ids().iter().copied()).collect()
}

fn all_rows(epoch: Epoch) -> Vec<Vec<(usize, u64)>> {
    epoch.map(|batch| rows(&batch.unwrap())).collect()
}

#[test]
fn every_batch_has_its_proportions_with_the_pixels_and_labels_of_its_packs() {
    let packs = packs();
    for order in ORDERS {
        for (threads, access) in [(1, Access::Mapped), (3, Access::Mapped), (1, Access::Direct), (4, Access::Direct)] {
            let loader = mixed(&packs).order(order).access(access).threads(some(threads)).build().unwrap();
            assert_eq!(loader.mixture().unwrap().quotas(), [11, 4, 1]);
            let epoch = loader.epoch(2).unwrap();
            // There are 262 samples.
            assert_eq!((epoch.number(), epoch.steps()), (2, 16));
            let mut steps = 0;
            for batch in epoch {
                let batch = batch.unwrap();
                assert_eq!((batch.step(), batch.epoch(), batch.padding()), (steps, 2, 0));
                let planned = loader.mixture().unwrap().batch(2 * 16 + steps).unwrap();
                let planned: Vec<_> = planned.iter().map(|s| (s.source, s.sample)).collect();
                assert_eq!(rows(&batch), planned, "{order:?} {threads}");
                let mut counts = [0; 3];
                for (row, (pack, sample)) in rows(&batch).into_iter().enumerate() {
                    counts[pack] += 1;
                    assert_eq!(batch.item("image", row).unwrap(), pixels(pack, sample));
                    let labels = batch.elements::<i32>("label").unwrap();
                    assert_eq!(labels[row], label(pack, sample));
                }
                assert_eq!(counts, [11, 4, 1]);
                steps += 1;
            }
            assert_eq!(steps, 16);
            let stats = loader.stats();
            assert_eq!((stats.batches, stats.samples), (16, 256));
            assert_eq!(stats.bytes, 256 * (SIDE * SIDE * 3 + 4));
        }
    }
}

#[test]
fn ranks_share_the_rows_that_one_alone_would_have() {
    let packs = packs();
    for order in ORDERS {
        let on = |rank, world, access| {
            let ranks = Ranks::new(rank, world).unwrap();
            let loader = mixed(&packs).order(order).access(access).ranks(ranks);
            let loader = loader.batch(16 / world).threads(some(2)).build().unwrap();
            all_rows(loader.epoch(1).unwrap())
        };
        let whole = on(0, 1, Access::Mapped);
        // With 16 ranks, most ranks have no samples of the small packs, so they do not read these packs.
        for world in [2, 4, 16] {
            let mut together = vec![Vec::new(); whole.len()];
            for rank in 0..world {
                let access = [Access::Mapped, Access::Direct][rank as usize % 2];
                for (all, own) in together.iter_mut().zip(on(rank, world, access)) {
                    assert_eq!(own.len(), 16 / world as usize);
                    all.extend(own);
                }
            }
            assert_eq!(together, whole, "{order:?} {world}");
        }
    }
}

#[test]
fn a_small_pack_starts_over_while_a_large_one_goes_on() {
    let packs = packs();
    for (order, access) in [
        (Order::Random, Access::Mapped),
        (Order::Random, Access::Direct),
        (Order::Window { chunks: Some(2) }, Access::Direct),
        (Order::Sequential, Access::Direct),
    ] {
        let loader = mixed(&packs).order(order).access(access).threads(some(3)).build().unwrap();
        let mut seen: [Vec<u64>; 3] = Default::default();
        for epoch in 0..3 {
            for (pack, sample) in all_rows(loader.epoch(epoch).unwrap()).concat() {
                seen[pack].push(sample);
            }
        }
        for (pack, per_epoch) in [(0, 198), (1, 48), (2, 9)] {
            let epochs: Vec<&[u64]> = seen[pack].chunks_exact(per_epoch).collect();
            assert!(epochs.len() >= 2, "{pack}");
            for ids in &epochs {
                let mut ids = ids.to_vec();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), per_epoch, "pack {pack} {order:?}");
            }
            let same = order == Order::Sequential;
            assert_eq!(epochs[0] == epochs[1], same, "pack {pack} {order:?}");
        }
    }
}

#[test]
fn a_pack_that_is_used_up_by_every_step_can_be_mixed_in() {
    let packs = [pack(0, 100), pack(1, 4)];
    for access in [Access::Mapped, Access::Direct] {
        let loader = builder(&packs[0].1)
            .proportion(3.0)
            .mix(Arc::clone(&packs[1].1), 1.0)
            .access(access)
            .threads(some(4))
            .build()
            .unwrap();
        let steps = all_rows(loader.epoch(0).unwrap());
        assert_eq!(steps.len(), 6);
        for rows in steps {
            let mut ids: Vec<u64> = rows.iter().filter(|r| r.0 == 1).map(|r| r.1).collect();
            ids.sort_unstable();
            assert_eq!(ids, [0, 1, 2, 3]);
        }
    }
}

#[test]
fn a_run_goes_on_from_a_saved_state_on_other_ranks() {
    let packs = packs();
    let loader = mixed(&packs).build().unwrap();
    let whole: Vec<_> = (0..2).flat_map(|epoch| all_rows(loader.epoch(epoch).unwrap())).collect();
    for taken in [0, 5, 16, 21, 32] {
        let mut epoch = loader.epoch(u32::from(taken > 16)).unwrap();
        let first = if taken > 16 { 16 } else { 0 };
        assert_eq!(epoch.by_ref().take(taken - first).count(), taken - first);
        let saved = epoch.mixture_state().unwrap().to_json();
        drop(epoch);
        let state = MixtureState::from_json(&saved).unwrap();
        assert_eq!(state.step, taken as u64);
        let mut rest: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        for rank in 0..2 {
            let ranks = Ranks::new(rank, 2).unwrap();
            let loader = mixed(&packs).batch(8).ranks(ranks).build().unwrap();
            let epoch = loader.epoch_at_mixture(&state).unwrap();
            assert_eq!(epoch.number() as usize, taken / 16);
            for batch in epoch {
                let batch = batch.unwrap();
                let step = taken / 16 * 16 + batch.step() as usize;
                rest.entry(step).or_default().extend(rows(&batch));
            }
        }
        let expected = whole.iter().enumerate().skip(taken);
        for (step, rows) in expected.take(16 - taken % 16) {
            assert_eq!(rest[&step], *rows, "{taken}");
        }
    }
}

#[test]
fn states_of_other_runs_are_refused() {
    let packs = packs();
    let loader = mixed(&packs).build().unwrap();
    let state = loader.epoch(0).unwrap().mixture_state().unwrap();
    let other = mixed(&packs).seed(8).build().unwrap();
    let error = other.epoch_at_mixture(&state).unwrap_err();
    assert!(matches!(error, LoadError::Plan(PlanError::OtherMixture { batch: 16 })), "{error}");
    let beyond = MixtureState { step: 1 << 60, ..state };
    let error = loader.epoch_at_mixture(&beyond).unwrap_err();
    assert!(error.to_string().contains("after the last possible epoch"), "{error}");
    let single = builder(&packs[0].1).build().unwrap();
    let error = single.epoch_at_mixture(&state).unwrap_err();
    assert!(error.to_string().contains("this loader has one pack"), "{error}");
    let epoch = single.epoch(0).unwrap();
    assert_eq!(epoch.mixture_state(), None);
    let error = loader.epoch_at(&epoch.state()).unwrap_err();
    assert!(error.to_string().contains("epoch_at_mixture"), "{error}");
    // For a mixture, this is the state of the first pack, which has 18 steps of 11 samples per epoch.
    drop(epoch);
    let mut epoch = loader.epoch(1).unwrap();
    epoch.by_ref().take(5).for_each(drop);
    let State { epoch, position, .. } = epoch.state();
    assert_eq!((epoch, position), (1, 3 * 11));
}

#[test]
fn options_that_a_mixture_cannot_have_are_refused() {
    let packs = packs();
    let error = mixed(&packs).last(Last::Pad).build().unwrap_err();
    assert!(error.to_string().contains("has no last batch"), "{error}");
    let state = builder(&packs[0].1).build().unwrap().epoch(0).unwrap().state();
    let error = mixed(&packs).resume(&state).build().unwrap_err();
    assert!(error.to_string().contains("`resume`"), "{error}");
    for error in [
        mixed(&packs).mix(Arc::clone(&packs[0].1), f64::NAN).build(),
        mixed(&packs).mix(Arc::clone(&packs[0].1), 1e-9).build(),
        mixed(&packs).batch(1000).build(),
        builder(&packs[0].1)
            .mix(Arc::clone(&packs[0].1), 1.0)
            .choice(Choice::samples(203, [1, 2, 3, 4, 5, 6, 7, 8]).unwrap())
            .build(),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, LoadError::Plan(PlanError::Mixture { .. })), "{error}");
    }
}

#[test]
fn packs_whose_fields_differ_are_refused_with_the_field_and_both_values() {
    let (_folder, first) = pack(0, 40);
    let refused = |change: fn(&mut Vec<Field>)| {
        let mut fields = fields();
        change(&mut fields);
        let (_folder, other) = zeros(fields);
        let error = builder(&first).mix(other, 1.0).build().unwrap_err();
        let LoadError::OtherFields { path, field, what, expected, found } = &error else {
            panic!("{error}");
        };
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        (field.clone(), *what, found.clone())
    };
    let told = |field: &str, what, found: &str| (field.to_owned(), what, found.to_owned());
    let found = refused(|fields| fields[0].shape = vec![SIDE, 10, 3]);
    assert_eq!(found, told("image", "shape", "[20, 10, 3]"));
    let found = refused(|fields| fields[0].dtype = DType::F32);
    assert_eq!(found, told("image", "element type", "f32"));
    let found = refused(|fields| fields[0].layout = None);
    assert_eq!(found, told("image", "layout", "none"));
    let found = refused(|fields| fields[0].role = None);
    assert_eq!(found, told("image", "role", "none"));
    let found = refused(|fields| fields[1] = Field::column("label", DType::I64, &[]).with_role(Role::Label));
    assert_eq!(found, told("label", "element type", "i64"));
    let found = refused(|fields| fields[1].name = "class".to_owned());
    assert_eq!(found, told("label", "field", "none"));
    let found = refused(|fields| fields.insert(0, Field::column("extra", DType::U8, &[])));
    assert_eq!(found, told("label", "place in the schema", "2"));
    let found = refused(|fields| fields.insert(0, Field::tensor("extra", DType::U8, &[1])));
    assert_eq!(found.1, "place in the schema");
    let found = refused(|fields| fields[0] = Field::variable("image", FieldKind::Bytes));
    assert_eq!(found.1, "kind");
}

/// A pack of 40 samples with these class names.
fn named(names: &[&str]) -> (TempDir, Arc<Pack>) {
    let classes = Classes {
        field: "label".to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        counts: Vec::new(),
    };
    let footer = FooterParts { classes: vec![classes], ..FooterParts::default() };
    write_with(40, fields(), footer, |block, sample| {
        block.tensor_mut(0).unwrap().fill(0);
        block.set_column(1, &label(0, sample).to_le_bytes()).unwrap();
    })
}

#[test]
fn packs_whose_class_names_differ_are_refused_with_the_first_difference() {
    let refused = |first: &[&str], other: &[&str]| {
        let ((_a, first), (_b, other)) = (named(first), named(other));
        let error = builder(&first).mix(Arc::clone(&other), 1.0).build();
        let error = error.unwrap_err();
        let LoadError::OtherClasses { path, field, expected, found } = &error else {
            panic!("{error}");
        };
        assert_eq!((path.as_path(), field.as_str()), (other.file_path(), "label"));
        (expected.clone(), found.clone())
    };
    let told = |expected: &str, found: &str| (expected.to_owned(), found.to_owned());
    assert_eq!(refused(&["cat", "dog"], &["cat", "bird"]), told("class 1 `dog`", "class 1 `bird`"));
    assert_eq!(refused(&["cat", "dog"], &["dog", "cat"]), told("class 0 `cat`", "class 0 `dog`"));
    assert_eq!(refused(&["cat", "dog"], &["cat"]), told("class 1 `dog`", "no class 1"));
    assert_eq!(refused(&["cat"], &["cat", "dog"]), told("no class 1", "class 1 `dog`"));
    assert_eq!(refused(&["cat", "dog"], &[]), told("2 class names, the first `cat`", "no class names"));
    assert_eq!(refused(&[], &["cat"]), told("no class names", "1 class name, the first `cat`"));
}

#[test]
fn packs_with_the_same_class_names_are_mixed_and_others_where_their_labels_are_not_loaded() {
    let (_a, first) = named(&["cat", "dog"]);
    let (_b, same) = named(&["cat", "dog"]);
    builder(&first).mix(same, 1.0).build().unwrap();
    let (_c, other) = named(&["dog", "cat"]);
    let images = builder(&first).mix(other, 1.0).fields(&["image"]);
    images.build().unwrap();
}

#[test]
fn fields_that_are_not_loaded_may_differ() {
    let (_folder, first) = pack(0, 40);
    let mut fields = fields();
    fields[0].shape = vec![SIDE, 10, 3];
    fields.push(Field::column("extra", DType::U8, &[]));
    let (_folder, other) = zeros(fields);
    let loader = builder(&first).mix(other, 1.0).fields(&["label"]).build().unwrap();
    assert_eq!(loader.epoch(0).unwrap().count(), 5);
}

#[test]
fn augmentation_is_drawn_from_the_packs_own_epoch_and_seed() {
    let packs = packs();
    let augment = Augment::parse("rrc8,flip").unwrap();
    let source = ImageSource::of_field(&fields()[0]).unwrap();
    let plan = Arc::new(AugmentPlan::new(&augment, &source).unwrap());
    let mut augmenter = Augmenter::new(Arc::clone(&plan));
    let mut expected = |pack, key| {
        let mut out = vec![0; plan.item_bytes()];
        let SampleKey { sample, .. } = key;
        let (side, data) = (SIDE as u32, pixels(pack, sample));
        let image = Picture::Raw(Pixels { data: &data, width: side, height: side, channels: 3 });
        augmenter.apply(Input::new(key, image), &mut [&mut out], &mut []).unwrap();
        out
    };
    for threads in [1, 3] {
        let loader = mixed(&packs).augment(augment.clone()).threads(some(threads)).build().unwrap();
        let seeds: Vec<u64> = loader.mixture().unwrap().schedules().map(|s| s.seed()).collect();
        assert_eq!(seeds[0], 7);
        assert!(seeds[1] != seeds[0] && seeds[2] != seeds[1] && seeds[2] != seeds[0]);
        for batch in loader.epoch(1).unwrap() {
            let batch = batch.unwrap();
            for (row, (pack, sample)) in rows(&batch).into_iter().enumerate() {
                let steps = [18, 12, 9][pack];
                let epoch = ((16 + batch.step()) / steps) as u32;
                let key = SampleKey { seed: seeds[pack], epoch, sample };
                assert_eq!(batch.item("image", row).unwrap(), expected(pack, key));
            }
        }
    }
}

#[test]
fn memory_is_shared_and_too_little_of_it_is_refused() {
    let packs = packs();
    // Chunks of 8 samples take 9600 bytes, and batches take 16 * 1204 bytes. The memory is enough for windows of 2
    // chunks.
    let build = |memory| {
        let loader = mixed(&packs).access(Access::Direct).memory_bytes(memory).slots(some(2));
        loader.order(Order::Window { chunks: Some(2) }).threads(some(3)).build()
    };
    let loader = build(400_000).unwrap();
    for (pack, sample) in all_rows(loader.epoch(0).unwrap()).concat() {
        assert!(sample < [203, 50, 9][pack]);
    }
    let mut held = 0;
    let mut epoch = loader.epoch(1).unwrap();
    for batch in epoch.by_ref() {
        batch.unwrap();
        let buffers = loader.stats().fetch.buffers;
        held = held.max(buffers);
        assert!(buffers * 9600 <= 400_000, "{buffers}");
    }
    assert!(held >= 3);
    drop(epoch);
    let error = build(70_000).unwrap_err();
    assert!(matches!(error, LoadError::Read(ReadError::Memory { .. }) | LoadError::Memory { .. }), "{error}");
    let error = build(30_000).unwrap_err();
    assert!(matches!(error, LoadError::Memory { .. }), "{error}");
}

#[test]
fn leaving_a_mixture_early_ends_its_threads_and_frees_the_ring() {
    let packs = packs();
    for access in [Access::Mapped, Access::Direct] {
        let loader = mixed(&packs).access(access).threads(some(4)).build().unwrap();
        for taken in 0..12 {
            let epoch = loader.epoch(taken).unwrap();
            assert_eq!(epoch.take(taken as usize).filter(Result::is_ok).count(), taken as usize);
        }
        assert_eq!(loader.epoch(1).unwrap().count(), 16);
    }
}

#[test]
fn each_pack_has_its_notices() {
    let packs = packs();
    let loader = mixed(&packs).build().unwrap();
    let notices = loader.notices().unwrap();
    for (_, pack) in &packs {
        let path = pack.file_path().display().to_string();
        assert!(notices.iter().any(|notice| notice.starts_with(&path)), "{notices:?}");
    }
    assert_eq!(loader.packs().len(), 3);
    assert_eq!(loader.schedule().global_batch(), 11);
    let (_folder, single) = opened(64);
    assert!(builder(&single).build().unwrap().mixture().is_none());
}
