//! Round trips through all formats of plain arrays, and damage to their files.

use std::fs;
use std::path::{Path, PathBuf};

use packds_format::{DType, Pack};
use tempfile::TempDir;

use super::super::mutation::{damage, survives};
use super::super::{ListOptions, append_stored, list};
use super::*;
use crate::sink::npy_file;
use crate::source::Listing;
use crate::{ConvertOptions, ExportCodec, ExportOptions, convert, export};

const N: u64 = 40;

/// A value that depends on its position.
fn byte(i: usize) -> u8 {
    u8::try_from(i * 7 % 251).unwrap()
}

/// A folder of fields: images, labels of three classes, vectors, and big-endian numbers.
fn fields(folder: &Path) -> PathBuf {
    let source = folder.join("fields");
    fs::create_dir(&source).unwrap();
    let bytes = |n: usize| (0..n).map(byte).collect::<Vec<u8>>();
    let save = |name: &str, file: Vec<u8>| fs::write(source.join(name), file).unwrap();
    let n = usize::try_from(N).unwrap();
    let labels: Vec<u8> = (0..n).flat_map(|i| ((i % 3) as u64).to_le_bytes()).collect();
    save("images.npy", npy_file(DType::U8, &[N, 4, 6, 3], &bytes(n * 72)));
    save("labels.npy", npy_file(DType::I64, &[N, 1], &labels));
    save("vectors.npy", npy_file(DType::F32, &[N, 5], &bytes(n * 20)));
    let big = npy_file(DType::U16, &[N], &bytes(n * 2));
    let at = big.windows(3).position(|w| w == b"<u2").unwrap();
    let mut big = big;
    big[at] = b'>';
    save("big.npy", big);
    save("classes.json", br#"["cat", "dog", "eel"]"#.to_vec());
    source
}

/// Converts a source to a pack, keeping the source's order.
fn pack_of(source: &Path, folder: &Path, name: &str) -> Pack<Vec<u8>> {
    let pack = folder.join(name);
    let options = ConvertOptions { keep_order: true, chunk_samples: Some(7), ..ConvertOptions::default() };
    convert(source, &pack, &options, &()).unwrap();
    Pack::open(fs::read(&pack).unwrap()).unwrap()
}

/// Images, labels, classes, paths and all additional fields of a listing.
fn content(listing: &Listing) -> Vec<(String, Vec<u8>)> {
    let mut all = vec![(format!("{:?}", listing.classes()), Vec::new())];
    for idx in 0..listing.len() {
        let (mut image, mut path) = (Vec::new(), Vec::new());
        listing.append_image(idx, u64::MAX, &mut image).unwrap();
        listing.path_into(idx, &mut path);
        all.push((format!("{:?} {}", listing.label(idx), path.escape_ascii()), image));
    }
    let mut fields: Vec<_> = listing.fields().iter().collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    for field in fields {
        let mut bytes = Vec::new();
        for idx in 0..listing.len() {
            append_stored(field.store.as_ref(), idx, u64::MAX, &mut bytes).unwrap();
        }
        all.push((format!("{} {:?}", field.name, field.store.content(0)), bytes));
    }
    all
}

/// The bytes of all chunks.
fn chunks(pack: &Pack<Vec<u8>>) -> impl Iterator<Item = &[u8]> {
    (0..).map_while(|chunk| pack.chunk_bytes(chunk).ok())
}

/// The exports of one pack: names and options.
fn exports() -> Vec<(&'static str, ExportOptions)> {
    let plain = ExportOptions::default;
    let npy = ExportOptions { to: Some(DataFormat::Npy), ..plain() };
    let deflated = ExportOptions { codec: Some(ExportCodec::Gzip(6)), ..plain() };
    vec![("a.npz", plain()), ("deflated.npz", deflated), ("a.pt", plain()), ("a.safetensors", plain()), ("arrays", npy)]
}

#[test]
fn every_format_of_arrays_gives_back_what_it_was_given() {
    let folder = TempDir::new().unwrap();
    let source = fields(folder.path());
    let pack = pack_of(&source, folder.path(), "a.pack");
    let expected = content(&list(&source, &ListOptions::default()).unwrap());
    assert!(expected[1].0.starts_with("Some(0) fields/0"), "{}", expected[1].0);
    for (name, options) in exports() {
        let target = folder.path().join(name);
        let report = export(&pack, &target, &options, &()).unwrap();
        // Old PyTorch versions lack a type, so `a.pt` is exported with one note.
        let n_lost = usize::from(name == "a.pt");
        assert_eq!(report.lost.len(), n_lost, "{:?}", report.lost);
        let listing = list(&target, &ListOptions::default()).unwrap();
        assert_eq!(listing.warnings(), [], "{name}");
        assert_eq!(content(&listing), expected, "{name}");
        let again = pack_of(&target, folder.path(), &format!("{name}.pack"));
        assert!(chunks(&pack).count() > 5);
        assert!(chunks(&again).eq(chunks(&pack)), "{name}");
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = TempDir::new().unwrap();
    let pack = pack_of(&fields(folder.path()), folder.path(), "a.pack");
    for (name, options) in exports().into_iter().take(4) {
        let made = |jobs| {
            let target = folder.path().join(format!("{jobs}-{name}"));
            let options = ExportOptions { jobs, ..options.clone() };
            export(&pack, &target, &options, &()).unwrap();
            fs::read(target).unwrap()
        };
        assert_eq!(made(1), made(3), "{name}");
    }
}

#[test]
fn files_of_one_sample_keep_classes_and_names() {
    let folder = TempDir::new().unwrap();
    let source = fields(folder.path());
    let pack = pack_of(&source, folder.path(), "a.pack");
    let target = folder.path().join("samples");
    let options = ExportOptions { to: Some(DataFormat::Npy), per_sample: true, ..ExportOptions::default() };
    let report = export(&pack, &target, &options, &()).unwrap();
    assert!(report.lost[0].contains("vectors"), "{:?}", report.lost);
    let listing = list(&target, &ListOptions::default()).unwrap();
    assert_eq!(listing.len(), 40);
    assert_eq!(listing.classes(), [b"cat".to_vec(), b"dog".to_vec(), b"eel".to_vec()]);
    let (mut image, mut path) = (Vec::new(), Vec::new());
    listing.append_image(0, u64::MAX, &mut image).unwrap();
    listing.path_into(0, &mut path);
    assert_eq!((path.as_slice(), listing.label(0)), (&b"cat/0.npy"[..], Some(0)));
    assert_eq!(image, (0..72).map(byte).collect::<Vec<_>>());
}

#[test]
fn no_damage_makes_a_reader_panic_hang_or_fill_the_memory() {
    let folder = TempDir::new().unwrap();
    let pack = pack_of(&fields(folder.path()), folder.path(), "a.pack");
    for (name, options) in exports().into_iter().take(4) {
        let target = folder.path().join(name);
        export(&pack, &target, &options, &()).unwrap();
        let whole = fs::read(&target).unwrap();
        let format = DataFormat::from_file_name(name).unwrap();
        survives(format, name, 1500, |dice| {
            let mut bytes = whole.clone();
            damage(&mut bytes, dice);
            bytes
        });
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused_or_left_out() {
    let folder = TempDir::new().unwrap();
    let source = fields(folder.path());
    fs::write(source.join("labels.npy"), npy_file(DType::I64, &[3], &[0; 24])).unwrap();
    let error = list(&source, &ListOptions::default()).unwrap_err().to_string();
    assert!(error.contains("expected 40 values, one for each image, found 3"), "{error}");
    let short = npy_file(DType::U8, &[1 << 40, 4], &[0; 8]);
    fs::write(folder.path().join("short.npy"), short).unwrap();
    let error = list(&folder.path().join("short.npy"), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("found 8"), "{error}");
}
