//! Tests failures of storage, threads and processes.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::{ORDERS, builder, damaged, ids, opened, pixels, some};
use crate::arena::{SlotMut, SlotRef};
use crate::device::{Device, DeviceError, Placement, Receiver, Transfer};
use crate::loader::{BadSamples, LoadError};
use crate::plan::Order;
use crate::{Access, Checksums, Pack, ReadError, open};

#[test]
fn a_flipped_bit_ends_the_epoch_with_its_place() {
    for (order, access) in
        ORDERS.into_iter().flat_map(|order| [Access::Mapped, Access::Direct].map(|access| (order, access)))
    {
        let (_folder, pack) = damaged(64, [21]);
        let loader = builder(&pack).order(order).access(access).threads(some(2)).build().unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let error = epoch.find_map(Result::err).unwrap().to_string();
        assert!(error.contains("a.pack") && error.contains("chunk 2"), "{error}");
        assert!(epoch.next().is_none());
    }
}

#[test]
fn the_error_is_that_of_the_first_bad_sample_at_any_number_of_threads() {
    let (_folder, pack) = damaged(64, 0..64);
    let first_error = |threads| {
        let loader = builder(&pack).order(Order::Random).access(Access::Mapped).threads(some(threads));
        loader.build().unwrap().epoch(0).unwrap().find_map(Result::err).unwrap().to_string()
    };
    let expected = first_error(1);
    for _ in 0..200 {
        assert_eq!(first_error(4), expected);
    }
}

#[test]
fn a_bad_sample_is_skipped_or_substituted_where_that_is_wanted() {
    let (_folder, pack) = damaged(64, [21, 50]);
    for threads in [1, 4] {
        let with = |policy| {
            let loader = builder(&pack).order(Order::Random).access(Access::Mapped).bad_samples(policy);
            loader.threads(some(threads)).build().unwrap()
        };
        let loader = with(BadSamples::Skip);
        let mut seen = 0;
        let mut bad = Vec::new();
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            seen += batch.len();
            bad.extend(batch.bad_samples().iter().map(|bad| bad.sample));
            for (row, id) in batch.ids().iter().enumerate() {
                assert_eq!(batch.item("image", row).unwrap(), pixels(*id));
                assert_eq!(batch.elements::<i32>("label").unwrap()[row], super::label(*id));
            }
        }
        bad.sort_unstable();
        assert_eq!((seen, bad), (62, vec![21, 50]));
        assert_eq!(loader.stats().bad_samples, 2);
        let loader = with(BadSamples::Substitute);
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.len(), 16);
            assert!(!batch.ids().contains(&21) && !batch.ids().contains(&50));
            for (row, id) in batch.ids().iter().enumerate() {
                assert_eq!(batch.item("image", row).unwrap(), pixels(*id));
                assert_eq!(batch.elements::<i32>("label").unwrap()[row], super::label(*id));
            }
        }
    }
}

#[test]
fn a_batch_without_any_good_sample_is_an_error() {
    let (_folder, pack) = damaged(64, 0..64);
    for policy in [BadSamples::Skip, BadSamples::Substitute] {
        let loader = builder(&pack).order(Order::Random).bad_samples(policy).build().unwrap();
        let error = loader.epoch(0).unwrap().next().unwrap().unwrap_err();
        assert!(matches!(error, LoadError::NothingLeft { step: 0, samples: 16, .. }), "{error}");
    }
}

#[test]
fn without_checksums_a_flipped_bit_is_delivered() {
    let (_folder, pack) = damaged(64, [21]);
    let loader = builder(&pack).checksums(Checksums::Off).build().unwrap();
    assert_eq!(ids(loader.epoch(0).unwrap()).concat().len(), 64);
}

#[test]
fn a_file_cut_short_while_it_is_mapped_is_an_error_and_not_a_signal() {
    for order in ORDERS {
        let (folder, pack) = opened(640);
        let loader = builder(&pack).order(order).access(Access::Mapped).prefetch(some(1)).build().unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        epoch.next().unwrap().unwrap();
        let file = OpenOptions::new().write(true).open(folder.path().join("a.pack")).unwrap();
        file.set_len(100_000).unwrap();
        let error = epoch.find_map(Result::err).unwrap().to_string();
        assert!(error.contains("a.pack"), "{error}");
        drop(epoch);
        let error = loader.epoch(1).unwrap_err().to_string();
        assert!(error.contains("a.pack"), "{error}");
    }
}

/// A device that panics when the loader's thread calls it.
#[derive(Debug)]
struct Panicking;

impl Device for Panicking {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(self)
    }
}

impl Receiver for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn recycle(&self, slot: &mut SlotMut) {
        assert!(slot.number() > 100, "a bug in the device");
    }

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        Err(DeviceError { device: self.name(), reason: "never".to_owned() })
    }
}

#[test]
fn a_panic_in_a_thread_reaches_the_consumer() {
    let (_folder, pack) = opened(640);
    for threads in [1, 3] {
        let device = Arc::new(Panicking);
        let loader = builder(&pack).device(device).threads(some(threads)).build().unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(&error, LoadError::Panicked { message } if message == "a bug in the device"), "{error}");
        assert!(epoch.next().is_none());
    }
}

/// A device that rejects everything.
#[derive(Debug)]
struct Refusing;

impl Device for Refusing {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(self)
    }
}

impl Receiver for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        Err(DeviceError { device: self.name(), reason: "out of memory".to_owned() })
    }
}

#[test]
fn what_a_device_refuses_reaches_the_consumer() {
    let (_folder, pack) = opened(64);
    let loader = builder(&pack).device(Arc::new(Refusing)).build().unwrap();
    let error = loader.epoch(0).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "refusing: out of memory");
}

#[test]
fn bad_samples_of_chunks_that_would_be_lent_are_skipped_too() {
    let (_folder, pack) = damaged(64, [21]);
    for access in [Access::Mapped, Access::Direct] {
        let loader = builder(&pack).batch(8).order(Order::Chunks).access(access);
        let loader = loader.bad_samples(BadSamples::Skip).build().unwrap();
        let mut seen = 0;
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            seen += batch.len();
            for (row, id) in batch.ids().iter().enumerate() {
                assert_eq!(batch.item("image", row).unwrap(), pixels(*id));
            }
        }
        assert_eq!(seen, 63, "{access:?}");
    }
}

#[test]
fn a_damaged_label_is_found_when_the_loader_is_made() {
    let (folder, pack) = opened(64);
    let column = pack.one().unwrap().columns().iter().find(|c| c.field == 1).unwrap().offset;
    let path = folder.path().join("a.pack");
    drop(pack);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[77], column + 40).unwrap();
    let pack = Arc::new(open(&path).unwrap());
    for checksums in [Checksums::FirstTouch, Checksums::Off] {
        let built = builder(&pack).checksums(checksums).build();
        let error = built.unwrap_err().to_string();
        assert!(error.contains("a.pack") && error.contains("label"), "{error}");
    }
    builder(&pack).fields(&["image"]).build().unwrap();
}

#[test]
fn a_file_cut_short_is_an_error_where_batches_are_lent() {
    for access in [Access::Mapped, Access::Direct] {
        for checksums in [Checksums::FirstTouch, Checksums::Off] {
            let (folder, pack) = opened(640);
            let loader = builder(&pack).batch(8).order(Order::Chunks).access(access);
            let loader = loader.checksums(checksums).prefetch(some(1)).build().unwrap();
            assert_eq!(loader.epoch(0).unwrap().count(), 80);
            let mut epoch = loader.epoch(1).unwrap();
            epoch.next().unwrap().unwrap();
            let path = folder.path().join("a.pack");
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(9000).unwrap();
            let mut error = None;
            for batch in epoch {
                match batch {
                    Err(found) => error = Some(found.to_string()),
                    Ok(batch) => {
                        // The batch was made before the file was truncated. It is either correct or not delivered.
                        for (row, id) in batch.ids().iter().enumerate() {
                            assert_eq!(batch.elements::<i32>("label").unwrap()[row], super::label(*id));
                        }
                    }
                }
            }
            let error = error.unwrap();
            assert!(error.contains("changed while it was read"), "{access:?}: {error}");
        }
    }
}

/// Sets the modification time to a time long ago. Otherwise, two writes within one clock tick of the file system would
/// have the same time.
fn written_long_ago(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn a_pack_that_is_overwritten_meanwhile_is_an_error_before_a_batch_shows_it() {
    for access in [Access::Mapped, Access::Direct] {
        let (_folder, path) = super::write_pack(400, false);
        written_long_ago(&path);
        let pack = Arc::new(open(&path).unwrap());
        let column = pack.one().unwrap().columns()[0].clone();
        let loader = builder(&pack).order(Order::Sequential).access(access).threads(some(1));
        let loader = loader.build().unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let is_right = |batch: &crate::loader::Batch| {
            let labels = batch.elements::<i32>("label").unwrap();
            let expected = batch.ids().iter().map(|id| super::label(*id));
            labels.iter().copied().eq(expected)
        };
        assert!(is_right(&epoch.next().unwrap().unwrap()));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let others = vec![1; usize::try_from(column.len).unwrap()];
        file.write_all_at(&others, column.offset).unwrap();
        let error = epoch.find_map(|batch| match batch {
            Ok(batch) => {
                assert!(is_right(&batch), "{access:?}: step {}", batch.step());
                None
            }
            Err(error) => Some(error),
        });
        let error = error.expect("an error before the end of the epoch");
        let is_told = matches!(error, LoadError::Read(ReadError::Modified { .. }));
        assert!(is_told, "{access:?}: {error}");
    }
}

#[test]
fn a_pack_that_is_replaced_by_renaming_is_read_on() {
    let (_folder, path) = super::write_pack(100, false);
    let (_other_folder, other) = super::write_pack(50, false);
    let pack = Arc::new(open(&path).unwrap());
    let loader = builder(&pack).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(epoch.all(|batch| batch.is_ok()));
    drop(epoch);
    assert_eq!(loader.epoch(1).unwrap().count(), 6);
}
