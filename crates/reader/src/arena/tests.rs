//! Tests the arena with system threads. `arena.rs` does not declare this module, because `tests/ring_model.rs` includes
//! that file unchanged.

use std::{io, thread};

use crate::arena::{Arena, HUGE_PAGE, SLOT_ALIGN, SlotMut};
use crate::sync::{AtomicBool, Ordering};

#[test]
fn slots_are_rounded_to_pages_aligned_and_disjoint() {
    let arena = Arena::new(3, 5000).unwrap();
    assert_eq!((arena.n_slots(), arena.slot_bytes()), (3, 8192));
    assert_eq!(arena.address().1, 3 * 8192);
    assert_eq!(arena.address().0.addr() % HUGE_PAGE, 0);
    let mut slots: Vec<SlotMut> = std::iter::from_fn(|| arena.try_take()).collect();
    assert_eq!(slots.len(), 3);
    for (i, slot) in (1..).zip(&mut slots) {
        assert_eq!(slot.as_ptr().addr() % SLOT_ALIGN, 0);
        assert!(slot.iter().all(|byte| *byte == 0));
        slot.fill(i);
    }
    for (i, slot) in (1..).zip(&slots) {
        assert!(slot.iter().all(|byte| *byte == i));
    }
    drop(slots);
    assert_eq!(arena.n_free(), 3);
}

#[test]
fn impossible_sizes_are_rejected() {
    for (n, bytes) in [(0, 1), (1, 0), (2, usize::MAX / 2), (usize::MAX, 4096), (1, usize::MAX)] {
        let error = Arena::new(n, bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{n} {bytes}");
    }
}

#[test]
fn pieces_are_disjoint_and_the_last_one_joins_the_slot() {
    let arena = Arena::new(1, 8192).unwrap();
    let mut pieces = arena.try_take().unwrap().split(&[1, 4095, 0, 96]).unwrap();
    assert!(arena.try_take().is_none());
    for (i, piece) in (1..).zip(&mut pieces) {
        piece.fill(i);
    }
    assert_eq!(pieces.iter().map(|p| p.len()).collect::<Vec<_>>(), [1, 4095, 0, 96]);
    let last = pieces.pop().unwrap();
    for piece in pieces {
        assert!(piece.join().is_none());
    }
    let slot = last.join().unwrap();
    assert_eq!(slot[..2], [1, 2]);
    assert_eq!(slot[4095..4098], [2, 4, 4]);
    assert_eq!(slot[4096 + 96..], [0; 4000]);
    assert!(slot.split(&[8192, 1]).is_none());
    assert!(arena.try_take().unwrap().split(&[]).is_none());
    assert!(arena.try_take().unwrap().split(&[usize::MAX, 2]).is_none());
    assert_eq!(arena.n_free(), 1);
}

#[test]
fn dropped_pieces_free_the_slot() {
    let arena = Arena::new(1, 8192).unwrap();
    let mut pieces = arena.try_take().unwrap().split(&[10, 10]).unwrap();
    pieces.pop();
    assert_eq!(arena.n_free(), 0);
    pieces.pop();
    assert_eq!(arena.n_free(), 1);
}

#[test]
fn frozen_slot_is_free_when_its_last_reference_is_dropped() {
    let arena = Arena::new(1, 1).unwrap();
    let mut slot = arena.try_take().unwrap();
    slot[7] = 7;
    let first = slot.freeze();
    let second = first.clone();
    drop(first);
    assert!(arena.try_take().is_none());
    assert_eq!(second[7], 7);
    drop(second);
    assert_eq!(arena.try_take().unwrap()[7], 7);
}

#[test]
fn waiting_ends_with_a_free_slot_or_with_stop() {
    let arena = Arena::new(1, 1).unwrap();
    let stop = AtomicBool::new(false);
    let held = arena.try_take().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| arena.take(&stop).is_some());
        drop(held);
        assert!(waiting.join().unwrap());
        let _held = arena.try_take().unwrap();
        let waiting = scope.spawn(|| arena.take(&stop).is_none());
        stop.store(true, Ordering::Release);
        arena.wake();
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn many_threads_never_see_each_others_bytes() {
    let rounds = if cfg!(miri) { 5 } else { 400 };
    let arena = Arena::new(3, 4096).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for me in 0..8_u8 {
            let (arena, stop) = (&arena, &stop);
            scope.spawn(move || {
                for round in 0..rounds {
                    let mut slot = arena.take(stop).unwrap();
                    slot.fill(me);
                    if round % 3 == 0 {
                        let mut pieces = slot.split(&[2048, 2048]).unwrap();
                        let second = pieces.pop().unwrap();
                        let mut first = pieces.pop().unwrap();
                        let other = thread::scope(|scope| {
                            let other = scope.spawn(move || {
                                let mut second = second;
                                second.fill(me + 100);
                                second.join()
                            });
                            first.fill(me);
                            let mine = first.join();
                            mine.xor(other.join().unwrap())
                        });
                        slot = other.unwrap();
                        assert!(slot[2048..].iter().all(|byte| *byte == me + 100));
                        assert!(slot[..2048].iter().all(|byte| *byte == me));
                        slot.fill(me);
                    }
                    let shared = slot.freeze();
                    let copy = shared.clone();
                    drop(shared);
                    assert!(copy.iter().all(|byte| *byte == me));
                }
            });
        }
    });
    assert_eq!(arena.n_free(), 3);
}

#[test]
fn memory_lies_where_it_is_asked_for_or_nothing_is_changed() {
    let arena = Arena::new(1, SLOT_ALIGN).unwrap();
    assert_eq!(arena.node(), None);
    let error = arena.prefer_node(5000).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(arena.prefer_node(1000).is_err());
    assert_eq!(arena.node(), None);
    // Some sandboxes do not allow this call.
    if !cfg!(miri) && arena.prefer_node(0).is_ok() {
        assert_eq!(arena.node(), Some(0));
    }
    let mut slot = arena.try_take().unwrap();
    slot.fill(1);
    assert!(slot.iter().all(|byte| *byte == 1));
}
