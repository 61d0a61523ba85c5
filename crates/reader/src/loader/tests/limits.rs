//! Tests options with numbers that no machine can satisfy. Building the loader fails, and the message has the number
//! and a hint.

use packds_format::{Field, FieldKind};

use super::images::write;
use super::{builder, opened, some};
use crate::loader::{LoadError, LoaderBuilder};
use crate::plan::{Last, Order, PlanError};
use crate::{Access, ReadError};

fn refused(builder: LoaderBuilder) -> LoadError {
    builder.build().unwrap_err()
}

#[test]
fn more_threads_than_a_machine_has_are_refused() {
    let (_folder, pack) = opened(40);
    for threads in [1025, 1 << 20, usize::MAX] {
        let error = refused(builder(&pack).threads(some(threads)));
        assert!(matches!(error, LoadError::Option(_)), "{error}");
        let told = format!("threads: expected at most 1024, found {threads}");
        assert!(error.to_string().starts_with(&told), "{error}");
    }
    let loader = builder(&pack).threads(some(60)).build().unwrap();
    assert_eq!(loader.epoch(0).unwrap().count(), 2);
}

#[test]
fn slots_count_with_the_pages_that_they_take() {
    let (_folder, pack) = opened(40);
    // A label takes 4 bytes. The minimum slot size is 4096 bytes.
    let many = |n| builder(&pack).batch(1).fields(&["label"]).slots(some(n));
    let memory = 1 << 20;
    many(256).memory_bytes(memory).build().unwrap();
    for slots in [257, 1 << 18, usize::MAX] {
        let error = refused(many(slots).memory_bytes(memory));
        let needed = 4096_u64.saturating_mul(slots as u64);
        let LoadError::Memory { needed: told, .. } = error else {
            panic!("{slots}: {error}");
        };
        assert_eq!(told, needed);
    }
}

#[test]
fn a_ring_that_no_machine_has_memory_for_is_refused() {
    let (_folder, pack) = opened(40);
    let large = builder(&pack).batch(1).fields(&["label"]);
    let error = refused(large.slots(some(1 << 34)).memory_bytes(u64::MAX));
    assert!(matches!(error, LoadError::Reserve { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains(" is available"), "{told}");
}

#[test]
fn a_batch_whose_rows_alone_fill_the_memory_is_refused() {
    let fields = vec![Field::variable("text", FieldKind::String)];
    let (_folder, pack) = write(4, fields, |block, _| {
        block.item_mut(0).unwrap().push(b'x');
    });
    let padded = |n| builder(&pack).fields(&["text"]).batch(n).last(Last::Pad);
    padded(1000).memory_bytes(1 << 20).build().unwrap();
    for n in [1 << 20, u32::MAX] {
        let error = refused(padded(n).memory_bytes(1 << 20));
        assert!(matches!(error, LoadError::Memory { .. }), "{n}: {error}");
    }
}

#[test]
fn a_proportion_that_is_no_positive_number_is_refused_of_one_pack_too() {
    let (_folder, pack) = opened(40);
    for proportion in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = refused(builder(&pack).proportion(proportion));
        let LoadError::Plan(PlanError::Mixture { source_index: 0, why }) = error else {
            panic!("{proportion}: {error}");
        };
        assert!(why.contains("positive number"), "{why}");
    }
}

#[test]
fn more_batches_ahead_than_there_are_slots_are_told() {
    let (_folder, pack) = opened(40);
    let told = |prefetch| {
        let loader = builder(&pack).slots(some(3)).prefetch(some(prefetch));
        let loader = loader.build().unwrap();
        assert_eq!(loader.stats().prefetch, prefetch.min(3));
        let notices = loader.notices().unwrap();
        notices.iter().any(|notice| notice.contains("prefetch"))
    };
    assert_eq!([2, 3, 4, usize::MAX].map(told), [false, false, true, true]);
}

#[test]
fn memory_beyond_any_machine_is_as_much_as_the_pack_needs() {
    let (_folder, pack) = opened(40);
    for order in [Order::Random, Order::Window { chunks: None }] {
        for bytes in [1 << 40, u64::MAX] {
            let loader = builder(&pack).order(order).memory_bytes(bytes);
            let loader = loader.access(Access::Direct).build().unwrap();
            let epoch = loader.epoch(0);
            if let Err(LoadError::Read(error @ ReadError::Open { .. })) = &epoch {
                panic!("{order:?} {bytes}: {error}");
            }
            assert_eq!(epoch.unwrap().count(), 2);
        }
    }
}

#[test]
fn windows_and_lanes_of_any_number_are_orders_or_errors() {
    let (_folder, pack) = opened(40);
    for chunks in [1, 5, 1 << 20, u32::MAX] {
        for lanes in [1, 2, 16, 1 << 20, u32::MAX] {
            let order = Order::Window { chunks: Some(chunks) };
            let loader = builder(&pack).order(order).lanes(lanes).build();
            match loader {
                Ok(loader) => assert_eq!(loader.epoch(0).unwrap().count(), 2),
                Err(error) => {
                    let is_lanes = matches!(error, LoadError::Plan(PlanError::Lanes { .. }));
                    assert!(is_lanes, "{error}");
                }
            }
        }
    }
}
