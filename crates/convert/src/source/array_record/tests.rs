//! Files that array_record wrote (see `fixtures/make/make_array_record.py`), and damaged ones.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::*;
use crate::source::mutation::{Dice, damage, survives};
use crate::source::{Listing, list};

/// The bytes of a fixture.
fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/array_record");
    let packed = std::fs::read(folder.join(format!("{name}.array_record.gz"))).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Saves bytes as an ArrayRecord file.
fn saved(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("x.array_record");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// All records of a file.
fn records(path: &Path) -> Result<Vec<Vec<u8>>, ConvertError> {
    let mut file = ArrayRecord::open(path, &ListOptions::default())?;
    let (mut all, mut record) = (Vec::new(), Vec::new());
    while file.next(&mut record)?.is_some() {
        all.push(record.clone());
    }
    Ok(all)
}

fn image(listing: &Listing, idx: usize) -> Vec<u8> {
    let mut image = Vec::new();
    listing.append_image(idx, u64::MAX, &mut image).unwrap();
    image
}

#[test]
fn examples_of_every_compression_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = None;
    for name in ["none", "zstd", "brotli", "snappy"] {
        let path = saved(&folder, &fixture(name));
        let found = records(&path).unwrap();
        assert_eq!((found.len(), found[4].len()), (5, 30_148), "{name}");
        assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{name}");
        let listing = list(&path, &ListOptions::default()).unwrap();
        let labels: Vec<_> = (0..listing.len()).map(|idx| listing.label(idx).unwrap()).collect();
        assert_eq!(labels, [0, 1, 2, 0, 1], "{name}");
        assert!(image(&listing, 4).starts_with(b"\x89PNG"), "{name}");
        assert_eq!(listing.columns()[0].name, "text");
    }
}

#[test]
fn records_that_are_image_files_are_the_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(&folder, &fixture("images"));
    let listing = list(&path, &ListOptions::default()).unwrap();
    let expected = records(&path).unwrap();
    assert_eq!(listing.len(), 5);
    (0..5).for_each(|idx| assert_eq!(image(&listing, idx), expected[idx]));
    // The name does not matter, nor does it when there are several shards.
    let shards = tempfile::tempdir().unwrap();
    for (number, name) in ["images", "empty"].into_iter().enumerate() {
        std::fs::write(shards.path().join(format!("x-train.array_record-0000{number}-of-00002")), fixture(name))
            .unwrap();
    }
    assert_eq!(list(shards.path(), &ListOptions::default()).unwrap().len(), 5);
    let other = folder.path().join("other");
    std::fs::write(&other, fixture("images")).unwrap();
    assert_eq!(list(&other, &ListOptions::default()).unwrap().len(), 5);
}

#[test]
fn transposed_and_empty_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = records(&saved(&folder, &fixture("transposed"))).unwrap_err();
    assert!(error.to_string().contains("chunk at byte 64: its records are transposed"), "{error}");
    assert!(error.hint().unwrap().contains("without the option transpose:true"));
    let error = list(&saved(&folder, &fixture("empty")), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it contains no samples"), "{error}");
}

#[test]
fn files_that_are_cut_off_or_damaged_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fixture("none");
    let n = whole.len();
    for (at, words) in [
        (0, "byte 0: expected the signature of Riegeli"),
        (64, "chunk at byte 64: the checksum of its header is wrong"),
        (150, "chunk at byte 64: the checksum of its data is wrong"),
        (65_540, "block at byte 65536: the checksum of the header is wrong"),
        (n - 65_536, "last block at byte"),
        (n - 65_500, "this is not an ArrayRecord file, or its writer did not close it"),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let error = records(&saved(&folder, &bytes)).unwrap_err().to_string();
        assert!(error.contains(words), "{at}: {error}");
    }
    for (len, words) in [
        (0, "expected the signature of Riegeli"),
        (63, "expected the signature of Riegeli"),
        (65_536, "expected two or more blocks of 65536 bytes, found 65536 bytes"),
        (n - 1, "the file is cut off, or was not closed by its writer"),
        (n - 65_536, "last block at byte"),
    ] {
        let error = records(&saved(&folder, &whole[..len])).unwrap_err().to_string();
        assert!(error.contains(words), "{len}: {error}");
    }
}

#[test]
fn a_changed_byte_is_an_error_or_changes_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(3);
    for name in ["none", "zstd", "brotli", "snappy"] {
        let whole = fixture(name);
        let expected = records(&saved(&folder, &whole)).unwrap();
        let mut n_errors = 0;
        for _ in 0..200 {
            let mut bytes = whole.clone();
            // Half of the bytes are near the start, where small files have all their records.
            let at = if dice.below(2) == 0 { dice.below(600) } else { dice.below(bytes.len()) };
            bytes[at] ^= 1 << dice.below(8);
            match records(&saved(&folder, &bytes)) {
                Ok(found) => assert_eq!(found, expected, "{name} {at}"),
                Err(_) => n_errors += 1,
            }
        }
        assert!(n_errors > 50, "{name}: {n_errors}");
    }
}

#[test]
fn damaged_files_are_errors_and_never_panic() {
    let wholes = ["none", "zstd", "brotli", "snappy", "images", "transposed"].map(fixture);
    survives(DataFormat::ArrayRecord, "x.array_record", 120, |dice| {
        let mut bytes = wholes[dice.below(wholes.len())].clone();
        damage(&mut bytes, dice);
        bytes
    });
}

/// A chunk of records with right checksums.
fn chunk(kind: u8, n_records: u64, values_bytes: u64, data: &[u8]) -> Vec<u8> {
    let words = [to_u64(data.len()), highway::hash(data), u64::from(kind) | n_records << 8, values_bytes];
    let header = words.map(u64::to_le_bytes).concat();
    [&highway::hash(&header).to_le_bytes()[..], &header, data].concat()
}

/// A file of two blocks with a chunk after the signature, and one at the start of the last block.
fn file(first: &[u8], last: &[u8]) -> Vec<u8> {
    let block = |before: u64, after: u64| {
        let links = [before, after].map(u64::to_le_bytes).concat();
        [&highway::hash(&links).to_le_bytes()[..], &links].concat()
    };
    let mut bytes = [&SIGNATURE[..], first].concat();
    bytes.resize(65_536, 0);
    bytes.extend([block(0, 0), last.to_vec()].concat());
    bytes.resize(131_072, 0);
    bytes
}

#[test]
fn chunks_with_right_checksums_and_wrong_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    // The place of the index is byte 64.
    let postscript = b"\x00\x01\x0c\x08\x40\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9\x71";
    let last = chunk(b'r', 1, 12, postscript);
    let index = |records: &[&[u8]]| {
        let sizes: Vec<u8> = records.iter().map(|record| u8::try_from(record.len()).unwrap()).collect();
        let values = records.concat();
        let data = [&[0, u8::try_from(sizes.len()).unwrap()][..], &sizes, &values].concat();
        chunk(b'r', to_u64(records.len()), to_u64(values.len()), &data)
    };
    for (first, words) in [
        (
            index(&[b"\x0a\x04\x08\x01\x10\x01", b"\x10\x01"]),
            "expected a chunk between byte 0 and byte 64, found byte 0",
        ),
        (index(&[b"\x0a\x04\x08\x01\x10\x01", b"\x08\x80\x08"]), "found byte 1024"),
        (index(&[b"\x0a\x04\x08\x01\x10\x01"]), "expected 0 records in 1 chunk, found 0 records in 0 chunks"),
        (index(&[b"\x0a\x02\x08\x02"]), "expected version 1 of the index, found 2"),
        (index(&[b"\x08\x01"]), "expected a description of the file"),
        (index(&[]), "index at byte 64: it is empty"),
        (chunk(b'r', 2, 0, b"\x00\x01\x00"), "expected 2 records of 0 bytes in all, found 1 record of 0 bytes"),
        (chunk(b'r', 1, 9, b"\x00\x01\x09abc"), "found a record of 9 bytes"),
        (chunk(b'r', 1, 1, b"\x00\x01\x01abc"), "and 3 bytes of values"),
        (chunk(b'r', 1, 1, b"\x00\x7f\x01abc"), "expected 127 bytes of sizes, found 4"),
        (chunk(b'r', 1, 1, b"q\x01\x01\x01a"), "unknown compression 'q'"),
        (chunk(b'r', 1, 1, b"z\x02\x01\x01\x01a"), "cannot be unpacked"),
        (chunk(b'r', 1, 1, b"b\x02\x01\x01\x01a"), "cannot be unpacked"),
        (chunk(b'r', 1, 1, b"s\x02\x01\x00\x01a"), "expected 1 byte when unpacked, found fewer"),
        (chunk(b'r', 1, 1, b"z\x05\xff\xff\xff\xff\x0fa"), "expected at most 1073741824 bytes when unpacked"),
        (chunk(b'r', 1, 1, b""), "expected a compression, found no data"),
        (chunk(b'r', 1, u64::MAX, b"\x00\x01\x01a"), "expected a chunk of at most 1073741824 bytes"),
        (chunk(b'p', 0, 0, b""), "expected records, found a chunk of type 'p'"),
    ] {
        let error = records(&saved(&folder, &file(&first, &last))).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let mut long = chunk(b'r', 1, 1, b"");
    long[8..16].copy_from_slice(&100_000_u64.to_le_bytes());
    let sum = highway::hash(&long[8..]).to_le_bytes();
    long[..8].copy_from_slice(&sum);
    let error = records(&saved(&folder, &file(&index(&[]), &long))).unwrap_err().to_string();
    assert!(error.contains("expected 100000 bytes at byte 65600, found 65472"), "{error}");
}
