//! Tests the ownership and the lifetimes of memory and threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ORDERS, builder, loader_threads, opened, pixels, some};
use crate::Access;
use crate::device::SimDevice;
use crate::loader::{Batch, LoadError};
use crate::plan::Order;

#[test]
fn a_batch_in_hand_never_changes() {
    let (_folder, pack) = opened(640);
    for order in ORDERS {
        let loader = builder(&pack).order(order).threads(some(2)).slots(some(6)).build().unwrap();
        let mut held: Vec<Batch> = Vec::new();
        for batch in loader.epoch(0).unwrap() {
            held.push(batch.unwrap());
            if held.len() > 4 {
                held.remove(0);
            }
            for batch in &held {
                for (row, id) in batch.ids().iter().enumerate() {
                    assert_eq!(batch.item("image", row).unwrap(), pixels(*id));
                }
            }
        }
        // The batches outlive their epoch.
        for batch in &held {
            assert_eq!(batch.item("image", 0).unwrap(), pixels(batch.ids()[0]));
        }
    }
}

#[test]
fn holding_every_slot_is_an_error_and_dropping_one_goes_on() {
    let (_folder, pack) = opened(640);
    let loader = builder(&pack).order(Order::Random).slots(some(3)).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let mut held: Vec<Batch> = (0..3).map(|_| epoch.next().unwrap().unwrap()).collect();
    let error = epoch.next().unwrap().unwrap_err();
    assert!(matches!(error, LoadError::SlotsHeld { slots: 3 }), "{error}");
    held.pop();
    assert_eq!(epoch.next().unwrap().unwrap().step(), 3);
}

#[test]
fn waiting_piece_by_piece_gives_every_batch_and_the_end() {
    let (_folder, pack) = opened(640);
    let loader = builder(&pack).threads(some(1)).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    for step in 0..epoch.steps() {
        while !epoch.wait(Duration::from_micros(1)) {}
        assert_eq!(epoch.next().unwrap().unwrap().step(), step);
    }
    assert!(epoch.wait(Duration::ZERO));
    assert!(epoch.next().is_none());
    assert!(epoch.wait(Duration::ZERO));
    let stats = loader.stats();
    assert!(stats.consumer_waited > Duration::ZERO);
}

#[test]
fn who_holds_every_slot_does_not_wait_for_the_error() {
    let (_folder, pack) = opened(640);
    let loader = builder(&pack).slots(some(2)).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let _held: Vec<Batch> = (0..2).map(|_| epoch.next().unwrap().unwrap()).collect();
    assert!(epoch.wait(Duration::from_secs(3600)));
}

#[test]
fn a_slow_device_reads_every_slot_whole_before_it_is_written_again() {
    let (_folder, pack) = opened(640);
    for seed in 0..8 {
        let device = Arc::new(SimDevice::new(seed, Duration::from_millis(2)));
        let loader = builder(&pack)
            .order(Order::Window { chunks: Some(4) })
            .threads(some(3))
            .slots(some(2 + seed as usize % 3))
            .device(device.clone())
            .build()
            .unwrap();
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            if seed % 2 == 0 {
                batch.transfer().wait();
                assert!(batch.transfer().is_done());
            }
            assert_eq!(batch.item("image", 3).unwrap(), pixels(batch.ids()[3]));
        }
        assert_eq!(device.violations(), []);
    }
}

#[test]
fn leaving_an_epoch_early_ends_its_threads() {
    let (_folder, pack) = opened(640);
    for order in ORDERS {
        let loader = builder(&pack).order(order).threads(some(4)).build().unwrap();
        for batch in loader.epoch(0).unwrap().take(2) {
            batch.unwrap();
        }
        // The ring is free for the next epoch.
        assert_eq!(loader.epoch(1).unwrap().count(), 40);
        let started = Instant::now();
        drop(loader.epoch(2).unwrap());
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_second_epoch_while_one_is_open_is_refused() {
    let (_folder, pack) = opened(64);
    let loader = builder(&pack).build().unwrap();
    let first = loader.epoch(0).unwrap();
    assert!(matches!(loader.epoch(1).unwrap_err(), LoadError::EpochOpen));
    drop(first);
    assert_eq!(loader.epoch(1).unwrap().count(), 4);
}

#[test]
fn a_thousand_loaders_leave_nothing_behind() {
    let (_folder, pack) = opened(64);
    for i in 0..1000 {
        let order = ORDERS[i % ORDERS.len()];
        let access = [Access::Mapped, Access::Direct][i / 4 % 2];
        let loader = builder(&pack).order(order).access(access).threads(some(2)).build().unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        assert_eq!(epoch.next().unwrap().unwrap().len(), 16);
    }
    // Other tests run loaders at the same time, but only a few.
    assert!(loader_threads() < 100, "{}", loader_threads());
}

#[test]
fn several_loaders_of_one_pack_work_side_by_side() {
    let (_folder, pack) = opened(640);
    let loaders: Vec<_> = (0..8).map(|seed| builder(&pack).seed(seed).build().unwrap()).collect();
    std::thread::scope(|scope| {
        for loader in &loaders {
            scope.spawn(|| {
                for batch in loader.epoch(0).unwrap() {
                    let batch = batch.unwrap();
                    assert_eq!(batch.item("image", 5).unwrap(), pixels(batch.ids()[5]));
                }
            });
        }
    });
}

#[test]
fn a_batch_can_be_sent_to_another_thread_and_outlive_the_loader() {
    let (_folder, pack) = opened(64);
    let loader = builder(&pack).order(Order::Random).build().unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    drop((loader, pack));
    let id = batch.ids()[0];
    let first = std::thread::spawn(move || batch.item("image", 0).unwrap().to_vec());
    assert_eq!(first.join().unwrap(), pixels(id));
}

#[test]
fn a_device_that_reads_slots_gets_chunks_copied_into_them() {
    let (_folder, pack) = opened(64);
    let device = Arc::new(SimDevice::new(3, Duration::from_millis(1)));
    let loader = builder(&pack).batch(8).order(Order::Chunks).device(device.clone());
    let loader = loader.build().unwrap();
    let mut last = Vec::new();
    for batch in loader.epoch(0).unwrap() {
        let batch = batch.unwrap();
        assert!(!batch.is_lent());
        batch.transfer().wait();
        last = pixels(batch.ids()[0]);
    }
    // The last transfer is the complete last batch.
    assert_eq!(device.memory()[..last.len()], last);
    assert_eq!(device.violations(), []);
}

#[test]
fn what_was_read_is_told_after_the_epoch_too() {
    let (_folder, pack) = opened(64);
    let loader = builder(&pack).order(Order::Window { chunks: Some(2) }).access(Access::Direct);
    let loader = loader.build().unwrap();
    assert_eq!(loader.epoch(0).unwrap().count(), 4);
    let first = loader.stats();
    assert!(first.fetch.bytes_read >= 64 * 5000, "{first:?}");
    assert!(first.fetch.chunks_checked == 8 && first.table_bytes > 0, "{first:?}");
    assert_eq!(loader.epoch(1).unwrap().count(), 4);
    let both = loader.stats();
    assert!(both.fetch.bytes_read > first.fetch.bytes_read, "{both:?}");
    assert_eq!(both.fetch.chunks_checked, 8);
}

#[test]
fn a_batch_that_outlives_its_epoch_keeps_one_slot_and_no_other() {
    let (_folder, pack) = opened(320);
    let loader = builder(&pack).order(Order::Random).threads(some(4)).prefetch(some(8)).build().unwrap();
    for round in 0..500_u64 {
        let mut epoch = loader.epoch(0).unwrap();
        let batch = epoch.next().unwrap().unwrap();
        // Stops at different moments of the threads' work.
        std::thread::sleep(Duration::from_micros(round % 50));
        drop(epoch);
        let arena = &loader.shared.arena;
        assert_eq!(arena.n_free() + 1, arena.n_slots(), "round {round}");
        drop(batch);
    }
}
