//! Damage never goes unnoticed. Every reading function returns either the same as before the damage, or an error that
//! names the damaged part.

use std::fmt::Debug;

use packds_format::{Bitmap, FormatError, Pack};

use crate::support::golden_folder;

/// A range of bytes with its own checksum, and its name in errors.
struct Place {
    name: String,
    first: u64,
    last: u64,
}

fn place(name: String, offset: u64, len: u64) -> Option<Place> {
    let last = offset + len.checked_sub(1)?;
    let first = offset;
    Some(Place { name, first, last })
}

/// Every section, column and chunk.
fn places(pack: &Pack<Vec<u8>>) -> Vec<Place> {
    let sections = pack.one().unwrap().sections().iter();
    let sections = sections.map(|s| place(format!("section {}", s.tag), s.offset, s.len));
    let columns = pack.one().unwrap().columns().iter().map(|c| {
        let name = &pack.schema().fields()[c.field].name;
        place(format!("column `{name}`"), c.offset, c.len)
    });
    let chunks = (0..pack.n_chunks()).map(|chunk| {
        let entry = pack.chunk_entry(chunk).unwrap();
        place(format!("chunk {chunk}"), entry.offset, entry.stored_len)
    });
    sections.chain(columns).chain(chunks).flatten().collect()
}

/// The result of a reading function: its name, and either its values as text or the error.
type Told = (String, Result<String, String>);

fn told(way: String, result: Result<impl Debug, FormatError>) -> Told {
    let result = result.map(|value| format!("{value:?}"));
    (way, result.map_err(|error| error.to_string()))
}

/// Everything that a pack returns, for a few samples.
fn read(pack: &Pack<Vec<u8>>) -> Vec<Told> {
    let mut all = vec![
        told("stats".to_owned(), pack.stats()),
        told("classes".to_owned(), pack.classes()),
        told("provenance".to_owned(), pack.provenance()),
    ];
    let mut paths = Vec::new();
    let walked = pack.for_each_path(|_, path| {
        paths.push(path.to_vec());
        Ok::<_, FormatError>(())
    });
    all.push(told("for_each_path".to_owned(), walked.map(|()| paths)));
    let fields = || pack.schema().fields().iter().enumerate();
    for (number, field) in fields().filter(|(n, _)| pack.one().unwrap().columns().iter().any(|c| c.field == *n)) {
        let column = pack.column(number);
        all.push(told(format!("column {}", field.name), column));
    }
    for chunk in 0..pack.n_chunks() {
        all.push(told(format!("chunk_bytes {chunk}"), pack.chunk_bytes(chunk)));
    }
    let n = pack.n_samples();
    let some = (0..n.min(40)).chain(n.saturating_sub(2)..n);
    for sample in some {
        all.push(told(format!("path {sample}"), pack.path(sample)));
        all.push(told(format!("body_items {sample}"), pack.body_items(sample)));
        for (number, field) in fields() {
            let name = &field.name;
            let item = pack.item(number, sample);
            all.push(told(format!("item {name} {sample}"), item));
            let coding = pack.coding(name, sample);
            all.push(told(format!("coding {name} {sample}"), coding));
            let shape = pack.item_shape(name, sample);
            all.push(told(format!("item_shape {name} {sample}"), shape));
        }
    }
    for (number, field) in fields() {
        let mut items = Vec::new();
        let walked = pack.for_each_item_in(number, 0..n.min(40), |_, item| {
            items.push(item.to_vec());
            Ok::<_, FormatError>(())
        });
        let walked = walked.map(|()| items);
        all.push(told(format!("for_each_item_in {}", field.name), walked));
    }
    all
}

fn golden() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(golden_folder()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let packs = files.filter(|file| file.extension().is_some_and(|e| e == "pack"));
    let named = packs.map(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(file).unwrap())
    });
    named.collect()
}

#[test]
fn each_way_of_reading_gives_what_it_gave_or_names_the_damage() {
    for (name, bytes) in golden() {
        let whole = Pack::open(bytes.clone()).unwrap();
        let expected = read(&whole);
        for place in places(&whole) {
            for at in [place.first, place.last] {
                let mut damaged = bytes.clone();
                damaged[usize::try_from(at).unwrap()] ^= 1;
                let opened = Pack::open(damaged);
                let found = match &opened {
                    Ok(pack) => read(pack),
                    Err(error) => vec![(String::new(), Err(error.to_string()))],
                };
                let is_named = |error: &str| error.contains(&place.name);
                let is_told = found.iter().any(|(_, r)| r.as_ref().is_err_and(|e| is_named(e)));
                assert!(is_told, "{name}: {} at {at} is not detected", place.name);
                if opened.is_err() {
                    continue;
                }
                for ((way, found), (_, expected)) in found.iter().zip(&expected) {
                    match found {
                        Ok(_) => {
                            assert!(found == expected, "{name}: {} at {at}: {way}", place.name)
                        }
                        Err(error) => assert!(
                            is_named(error) || found == expected,
                            "{name}: {} at {at}: {way}: {error}",
                            place.name
                        ),
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_damaged_fails_each_time() {
    let mut packs = golden().into_iter();
    let (_, bytes) = packs.find(|(name, _)| name == "full_footer").unwrap();
    let column = Pack::open(bytes.clone()).unwrap().one().unwrap().columns()[0].clone();
    let mut damaged = bytes;
    damaged[usize::try_from(column.offset).unwrap()] ^= 1;
    let pack = Pack::open(damaged).unwrap();
    for _ in 0..2 {
        let error = pack.item(column.field, 0).unwrap_err();
        let is_told = matches!(error, FormatError::ChecksumMismatch { .. });
        assert!(is_told, "{error}");
    }
}

#[test]
fn bits_beyond_the_last_are_never_set() {
    let known = Bitmap::new(70);
    assert!(known.set(69) && !known.set(69) && known.get(69));
    assert!(!known.get(68) && !known.get(128) && !known.set(128));
}
