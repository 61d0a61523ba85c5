//! Tests loading from storage that may fail at any time.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use packds_format::Limits;

use super::{ORDERS, SAMPLE_BYTES, builder, opened, some, write_pack};
use crate::fetch::tests::golden;
use crate::loader::{Batch, LoadError, Loader};
use crate::storage::faulty::{Fault, Faulty};
use crate::{Access, Pack, ReadError, VerifyOptions, open, open_bytes, verify};

const ACCESS: [Access; 3] = [Access::Auto, Access::Mapped, Access::Direct];
/// A byte in a chunk in the middle of the file.
const PLACE: u64 = 30 * SAMPLE_BYTES;
const FAULTS: [Fault; 7] = [
    Fault::BadByte(PLACE),
    Fault::Short(3000),
    Fault::Cut(PLACE),
    Fault::Modified,
    Fault::Untold,
    Fault::Lost(PLACE),
    Fault::Cold,
];

/// The samples of each batch, and the items of each of its fields.
type Batches = Vec<(Vec<u64>, Vec<Vec<u8>>)>;

fn batches(loader: &Loader) -> Result<Batches, LoadError> {
    let contents = |batch: Result<Batch, LoadError>| {
        let batch = batch?;
        let mut items = Vec::new();
        for field in batch.fields() {
            for row in 0..batch.len() {
                items.push(batch.item(&field.name, row)?.to_vec());
            }
        }
        Ok((batch.ids().to_vec(), items))
    };
    loader.epoch(1)?.map(contents).collect()
}

#[test]
fn a_pack_in_memory_gives_the_batches_of_its_file() {
    for path in golden() {
        let file = Arc::new(open(&path).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        let memory = Arc::new(open_bytes("a name", bytes).unwrap());
        for (order, access) in ORDERS.into_iter().flat_map(|o| ACCESS.map(|a| (o, a))) {
            let load = |pack: &Arc<Pack>| {
                let loader = builder(pack).batch(3).order(order).access(access);
                batches(&loader.threads(some(2)).build()?)
            };
            let what = format!("{} {order:?} {access:?}", path.display());
            match (load(&file), load(&memory)) {
                (Ok(expected), Ok(found)) => assert!(expected == found, "{what}"),
                (Err(expected), Err(found)) => {
                    let expected = expected.to_string();
                    let path = path.display().to_string();
                    assert_eq!(found.to_string(), expected.replace(&path, "a name"));
                }
                (file, memory) => panic!("{what}: {:?} {:?}", file.err(), memory.err()),
            }
        }
    }
}

#[test]
fn a_pack_in_memory_says_how_it_is_read() {
    let (_folder, path) = write_pack(64, true);
    let pack = open_bytes("a name", std::fs::read(path).unwrap()).unwrap();
    assert_eq!(pack.is_resident(), Some(true));
    let refused = pack.file().unwrap_err().to_string();
    assert_eq!(refused, "the pack is not in a file");
    let pack = Arc::new(pack);
    let report = |access| {
        let loader = builder(&pack).access(access).build().unwrap();
        let report = loader.access().clone();
        assert!(!report.past_cache);
        (report.engine, report.reason)
    };
    let (engine, reason) = report(Access::Auto);
    assert_eq!(engine, "memory");
    assert!(reason.ends_with("the pack is in memory"), "{reason}");
    let (engine, reason) = report(Access::Direct);
    assert_eq!(engine, "pread");
    assert!(reason.ends_with("from memory with pread"), "{reason}");
}

#[test]
fn a_pack_in_memory_is_lent_as_one_in_a_file() {
    let (_folder, pack) = opened(64);
    let bytes = std::fs::read(pack.file_path()).unwrap();
    let memory = Arc::new(open_bytes("a name", bytes).unwrap());
    let whole = memory.whole_file().as_ptr_range();
    let loader = builder(&memory).order(crate::plan::Order::Sequential);
    for batch in loader.build().unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let image = batch.field("image").unwrap();
        assert!(whole.contains(&image.bytes.as_ptr()));
    }
}

#[test]
fn a_damaged_or_cut_pack_in_memory_is_refused_by_its_name() {
    let (_folder, path) = write_pack(64, false);
    let whole = std::fs::read(path).unwrap();
    let cut = open_bytes("a name", whole[..whole.len() / 2].to_vec()).unwrap_err();
    assert!(cut.to_string().starts_with("a name: "), "{cut}");
    let mut bytes = whole;
    bytes[usize::try_from(PLACE).unwrap()] ^= 1;
    let pack = open_bytes("a name", bytes).unwrap();
    let report = verify(&pack, VerifyOptions::default(), &|_, _| {}).unwrap();
    assert_eq!((report.bad_chunks.len(), report.bad_samples.len()), (1, 1));
}

/// The result of an epoch of a pack whose storage fails after some calls. The epoch must be complete or end with an
/// error, and must not hang.
fn broken(
    bytes: &[u8],
    (fault, after): (Fault, u64),
    work: impl FnOnce(Pack) -> Result<Batches, LoadError> + Send + 'static,
) -> Result<Batches, LoadError> {
    let storage = Faulty::new(bytes.to_vec(), fault, after);
    let (done, result) = mpsc::channel();
    let thread = thread::spawn(move || {
        let pack = Pack::new(storage, Path::new("broken.pack"), Limits::default());
        let _ = done.send(pack.map_err(LoadError::from).and_then(work));
    });
    let result = result.recv_timeout(Duration::from_secs(60));
    let result = result.unwrap_or_else(|_| panic!("{fault:?} after {after} hangs or panics"));
    thread.join().unwrap();
    result
}

/// Whether `error` is the one that `fault` causes, with the pack's name and the known position.
fn is_of(error: &LoadError, fault: Fault, len: u64) -> bool {
    let text = error.to_string();
    let contains = |part: &str| text.contains(part);
    contains("broken.pack: ")
        && match fault {
            Fault::BadByte(_) => contains("cannot read") && contains("bytes at byte"),
            Fault::Cut(at) => contains(&format!("its length was {len} bytes and is now {at}")),
            Fault::Modified => contains("its modification time differs"),
            Fault::Untold => contains("cannot open: Input/output error"),
            Fault::Lost(at) => contains(&format!("cannot read 1 byte at byte {at}: ")),
            Fault::Short(_) | Fault::Cold => false,
        }
}

#[test]
fn whatever_breaks_while_a_pack_is_loaded_is_told_or_harmless() {
    let (_folder, path) = write_pack(64, true);
    let bytes = std::fs::read(path).unwrap();
    let len = u64::try_from(bytes.len()).unwrap();
    for (order, access) in ORDERS.into_iter().flat_map(|o| ACCESS.map(|a| (o, a))) {
        let load = move |pack: Pack| {
            let loader = builder(&Arc::new(pack)).order(order).access(access);
            batches(&loader.threads(some(2)).build()?)
        };
        let whole = load(open_bytes("a.pack", bytes.clone()).unwrap()).unwrap();
        for fault in FAULTS {
            let mut told = 0;
            for after in [0, 1, 2, 3, 5, 8, 13, 21, 34, 1 << 40] {
                let what = format!("{order:?} {access:?} {fault:?} after {after}");
                match broken(&bytes, (fault, after), load) {
                    Ok(batches) => assert!(batches == whole, "{what}"),
                    Err(error) => {
                        assert!(is_of(&error, fault, len), "{what}: {error}");
                        told += 1;
                    }
                }
            }
            // Data delivered from memory is not read with `read_at`.
            let is_harmless = matches!(fault, Fault::Short(_) | Fault::Cold)
                || matches!(fault, Fault::BadByte(_)) && access != Access::Direct;
            assert_eq!(told == 0, is_harmless, "{order:?} {access:?} {fault:?}");
        }
    }
}

#[test]
fn whatever_breaks_while_a_pack_is_verified_is_told_or_harmless() {
    let (_folder, path) = write_pack(64, true);
    let bytes = std::fs::read(path).unwrap();
    let len = u64::try_from(bytes.len()).unwrap();
    for fault in FAULTS {
        let mut told = 0;
        for after in 0..12 {
            let check = |pack: Pack| -> Result<Batches, LoadError> {
                let report = verify(&pack, VerifyOptions { jobs: 2 }, &|_, _| {})?;
                assert!(report.is_ok(), "{report:?}");
                Ok(Vec::new())
            };
            if let Err(error) = broken(&bytes, (fault, after), check) {
                assert!(is_of(&error, fault, len), "{fault:?} after {after}: {error}");
                told += 1;
            }
        }
        let is_harmless = matches!(fault, Fault::Short(_) | Fault::Cold | Fault::Modified);
        assert_eq!(told == 0, is_harmless, "{fault:?}");
    }
}

#[test]
fn a_storage_that_gives_nothing_more_is_an_error_and_no_wait() {
    let (_folder, path) = write_pack(64, false);
    let bytes = std::fs::read(path).unwrap();
    let load = |pack: Pack| {
        let loader = builder(&Arc::new(pack)).access(Access::Direct);
        batches(&loader.build()?)
    };
    let error = broken(&bytes, (Fault::Short(0), 0), load).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("broken.pack: cannot read "), "{text}");
    assert!(text.contains("ends early"), "{text}");
    assert!(matches!(error, LoadError::Read(ReadError::Read { .. })));
}
