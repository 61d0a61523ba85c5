//! The number of threads and of prefetched batches may change at any time. This does not change the loaded data.

use packds_system::lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use crate::arena::SlotRef;
use crate::device::{Device, DeviceError, Done, Placement, Receiver, Transfer};
use crate::loader::tuner::{Spent, Tunable, Tuner};

const MS: Duration = Duration::from_millis(1);

/// Records which threads finish batches.
#[derive(Debug, Default)]
struct Finishers(Mutex<BTreeSet<String>>);

impl Device for Finishers {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(self)
    }
}

impl Receiver for Finishers {
    fn name(&self) -> &'static str {
        "finishers"
    }

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        let thread = thread::current().name().unwrap().to_owned();
        self.0.lock().unwrap().insert(thread);
        Ok(Box::new(Done))
    }
}

/// A loader that tunes up to `threads` threads, independently of the machine.
fn tuned(builder: LoaderBuilder, threads: usize) -> Loader {
    let mut loader = builder.build().unwrap();
    loader.threads = threads;
    *lock(&loader.shared.tuner) = Tuner::new(Tunable::up_to(threads, threads), Tunable::up_to(loader.stats().slots, 2));
    loader
}

/// Simulates slow training steps until the loader's tuner settles.
fn teach_slow_steps(loader: &Loader) {
    let mut tuner = lock(&loader.shared.tuner);
    for _ in 0..10_000 {
        tuner.learn(Spent { passed: 100 * MS, waited: Duration::ZERO, busy: MS, read: Duration::ZERO });
    }
}

/// The samples and images of each batch.
fn contents(epoch: Epoch) -> Vec<(Vec<u64>, Vec<u8>)> {
    let content = |batch: crate::loader::Batch| {
        let images = batch.elements::<u8>("image").unwrap().to_vec();
        (batch.ids().to_vec(), images)
    };
    epoch.map(|batch| content(batch.unwrap())).collect()
}

#[test]
fn batches_are_the_same_whatever_is_tuned_in_the_middle() {
    let (_folder, pack) = opened(640);
    for order in ORDERS {
        let fixed = builder(&pack).order(order).threads(some(1)).prefetch(some(1));
        let expected = contents(fixed.build().unwrap().epoch(2).unwrap());
        let loader = tuned(builder(&pack).order(order), 6);
        assert_eq!(contents(loader.epoch(2).unwrap()), expected);

        let mut epoch = loader.epoch(2).unwrap();
        let workers = loader.last.lock().unwrap().upgrade().unwrap();
        for (step, (ids, images)) in expected.iter().enumerate() {
            let (threads, prefetch) = (1 + step * 5 % 6, 1 + step * 3 % 4);
            let next = Tuner::new(Tunable::fixed(threads), Tunable::fixed(prefetch));
            workers.board.set(&next);
            let batch = epoch.next().unwrap().unwrap();
            assert_eq!(batch.ids(), ids);
            assert_eq!(batch.elements::<u8>("image").unwrap(), images);
        }
        assert!(epoch.next().is_none());
    }
}

#[test]
fn an_epoch_begins_with_what_was_learned_before() {
    let (_folder, pack) = opened(640);
    let finishers = Arc::new(Finishers::default());
    let loader = tuned(builder(&pack).device(finishers.clone()), 6);
    assert_eq!((loader.stats().threads, loader.stats().prefetch), (6, 2));
    teach_slow_steps(&loader);
    assert_eq!((loader.stats().threads, loader.stats().prefetch), (1, 1));
    assert_eq!(loader.epoch(0).unwrap().count(), 40);
    let names = finishers.0.lock().unwrap().clone();
    assert_eq!(names, BTreeSet::from(["packds-load-0".to_owned()]));
}

#[test]
fn threads_that_were_of_no_use_are_called_again() {
    let (_folder, pack) = opened(640);
    let finishers = Arc::new(Finishers::default());
    let loader = tuned(builder(&pack).device(finishers.clone()), 6);
    teach_slow_steps(&loader);
    let more = Tuner::new(Tunable::fixed(6), Tunable::fixed(4));
    for number in 0..500 {
        let mut epoch = loader.epoch(number).unwrap();
        epoch.next().unwrap().unwrap();
        let workers = loader.last.lock().unwrap().upgrade().unwrap();
        workers.board.set(&more);
        assert_eq!(epoch.count(), 39);
        if finishers.0.lock().unwrap().len() > 1 {
            return;
        }
    }
    panic!("one thread did all the work");
}

#[test]
fn what_is_chosen_is_told_with_its_reason() {
    let (_folder, pack) = opened(160);
    let loader = tuned(builder(&pack), 6);
    let first = loader.tuning();
    assert_eq!((first.len(), first[0].batches), (1, 0));
    assert_eq!((first[0].threads, first[0].prefetch), (6, 2));
    assert_eq!(loader.epoch(0).unwrap().count(), 10);
    teach_slow_steps(&loader);
    let tuning = loader.tuning();
    assert!(tuning[1].batches > 10 && tuning[1].threads == 3, "{tuning:?}");
    assert!(tuning[1].why.contains("worked for 0 % of their time"), "{tuning:?}");
    assert!(tuning.windows(2).all(|pair| pair[0].batches < pair[1].batches));

    let fixed = builder(&pack).threads(some(3)).prefetch(some(99)).slots(some(4));
    let fixed = fixed.build().unwrap();
    teach_slow_steps(&fixed);
    assert_eq!((fixed.stats().threads, fixed.stats().prefetch), (3, 4));
    assert_eq!(fixed.tuning().len(), 1);
}
