//! Damage never goes unnoticed. Samples, chunks, selections and loaders return either the same as before the damage,
//! or an error that names the damaged part.

#![cfg(test)]

use std::fmt::{Debug, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::{FieldKind, Role, Store};
use packds_reader::augment::Augment;
use packds_reader::loader::{LoadError, Loader};
use packds_reader::plan::{Choice, Order};
use packds_reader::{Access, Checksums, Pack, open};

/// A range of bytes with its own checksum, and its name in errors.
struct Place {
    name: String,
    is_chunk: bool,
    first: u64,
    last: u64,
}

fn place(name: String, is_chunk: bool, offset: u64, len: u64) -> Option<Place> {
    Some(Place { name, is_chunk, first: offset, last: offset + len.checked_sub(1)? })
}

/// Every section, column and chunk.
fn places(pack: &Pack) -> Vec<Place> {
    let sections = pack.one().unwrap().sections().iter();
    let sections = sections.map(|s| place(format!("section {}", s.tag), false, s.offset, s.len));
    let columns = pack.one().unwrap().columns().iter().map(|c| {
        let name = &pack.schema().fields()[c.field].name;
        place(format!("column `{name}`"), false, c.offset, c.len)
    });
    let chunks = (0..pack.n_chunks()).map(|chunk| {
        let entry = pack.chunk_entry(chunk).unwrap();
        let name = format!("chunk {chunk}");
        place(name, true, entry.offset, entry.stored_len)
    });
    let all = sections.chain(columns).chain(chunks);
    all.flatten().collect()
}

/// The result of a reading function: its name, and either its values as text or the error.
type Told = (String, Result<String, String>);

fn told(way: String, result: Result<impl Debug, impl Display>) -> Told {
    let result = result.map(|value| format!("{value:?}"));
    (way, result.map_err(|error| error.to_string()))
}

/// The results of single samples, chunks and selections.
fn look(pack: &Pack) -> Vec<Told> {
    let mut all = Vec::new();
    let names = || pack.schema().fields().iter().map(|f| f.name.as_str());
    for id in 0..pack.n_samples().min(20) {
        let sample = pack.sample(id).unwrap();
        for name in names() {
            all.push(told(format!("sample {id} {name}"), sample.field(name)));
        }
        all.push(told(format!("check of sample {id}"), sample.check()));
    }
    for number in 0..pack.n_chunks() {
        let chunk = pack.chunk(number).unwrap();
        for name in names() {
            all.push(told(format!("chunk {number} {name}"), chunk.field(name)));
        }
        all.push(told(format!("check of chunk {number}"), chunk.check()));
    }
    for name in names() {
        let even = Choice::where_integer(pack, name, |n| n % 2 == 0);
        all.push(told(format!("where {name} is even"), even));
        let odd = Choice::where_bytes(pack, name, |bytes| bytes[0] % 2 == 1);
        all.push(told(format!("where {name} is odd"), odd));
    }
    all
}

/// The items of the first batches, by field, as text.
fn batches(loader: &Loader) -> Result<Vec<String>, LoadError> {
    let mut all = Vec::new();
    for batch in loader.epoch(0)?.take(6) {
        let batch = batch?;
        for field in batch.fields() {
            for row in 0..batch.len() {
                let bytes = match field.shape {
                    None => batch.item(&field.name, row)?,
                    Some(_) if row > 0 => continue,
                    Some(_) => batch.view(&field.name, field.view)?.bytes,
                };
                all.push(format!("{} {bytes:?}", field.name));
            }
        }
    }
    Ok(all)
}

const POLICIES: [Checksums; 3] = [Checksums::FirstTouch, Checksums::Always, Checksums::Off];
const ORDERS: [Order; 3] = [Order::Sequential, Order::Random, Order::Chunks];

/// The batches of loaders: all fields, with and without augmentation.
fn load(pack: &Arc<Pack>, policies: &[Checksums]) -> Vec<Told> {
    let fields = pack.schema().fields();
    let is_image = |role| {
        move |f: &&packds_format::Field| f.role == Some(role) && f.store == Store::Body && f.kind == FieldKind::Image
    };
    let is_augmented = fields.iter().any(|f| is_image(Role::Image)(&f));
    let all: Vec<String> = fields.iter().map(|f| f.name.clone()).collect();
    let mut found = Vec::new();
    for (policy, order) in policies.iter().flat_map(|p| ORDERS.map(|order| (*p, order))) {
        for access in [Access::Mapped, Access::Direct] {
            let builder = || {
                let builder = Loader::builder(Arc::clone(pack));
                builder.batch(2).seed(1).order(order).access(access).checksums(policy)
            };
            let way = format!("{policy:?} {order:?} {access:?}");
            let plain = builder().fields(&all).build();
            found.push(told(format!("loader {way}"), plain.and_then(|l| batches(&l))));
            if is_augmented {
                let augment = Augment::parse("rrc4").unwrap();
                let loader = builder().augment(augment).build();
                found.push(told(format!("augmented {way}"), loader.and_then(|l| batches(&l))));
            }
        }
    }
    found
}

fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
    let files = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let mut packs: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "pack")).collect();
    packs.sort();
    packs
}

/// Damages each selected place of every golden pack, and compares the results of `read` with those before the damage.
fn compare(wanted: impl Fn(&Place) -> bool, read: impl Fn(&Arc<Pack>) -> Vec<Told>) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("a.pack");
    for golden in golden() {
        let bytes = fs::read(&golden).unwrap();
        fs::write(&path, &bytes).unwrap();
        let whole = Arc::new(open(&path).unwrap());
        let (places, expected) = (places(&whole), read(&whole));
        for place in places.into_iter().filter(&wanted) {
            for at in [place.first, place.last] {
                let mut damaged = bytes.clone();
                damaged[usize::try_from(at).unwrap()] ^= 1;
                fs::write(&path, damaged).unwrap();
                let Ok(pack) = open(&path) else {
                    continue;
                };
                for (found, (_, expected)) in read(&Arc::new(pack)).iter().zip(&expected) {
                    let (way, found) = found;
                    let is_named = found.as_ref().is_err_and(|e| e.contains(&place.name));
                    let golden = golden.file_name().unwrap().display();
                    assert!(
                        is_named || found == expected,
                        "{golden}: {} at {at}: {way}: {found:?}, expected {expected:?}",
                        place.name,
                    );
                }
            }
        }
    }
}

#[test]
fn samples_chunks_and_choices_are_as_before_or_name_the_damage() {
    compare(|_| true, |pack| look(pack));
}

#[test]
fn batches_are_as_before_or_name_the_damage() {
    compare(|_| true, |pack| load(pack, &POLICIES[..2]));
}

#[test]
fn columns_and_sections_are_compared_without_checksums_of_samples_too() {
    compare(|place| !place.is_chunk, |pack| load(pack, &POLICIES));
}
