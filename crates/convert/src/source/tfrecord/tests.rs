//! Handmade and damaged records.

use super::super::mutation::{damage, survives};
use super::*;
use crate::sink::test_pack::{exported, refused};
use crate::source::{ColumnValues, list};
use packds_format::{Field, crc32c};

/// A record in its frame.
fn frame(record: &[u8]) -> Vec<u8> {
    let masked = |b: &[u8]| crc32c(b).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let len = u64::try_from(record.len()).unwrap().to_le_bytes();
    [&len[..], &masked(&len), record, &masked(record)].concat()
}

fn said(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tfrecord");
    std::fs::write(&path, bytes).unwrap();
    refused(&path, &ListOptions::default()).replace(path.to_str().unwrap(), "a")
}

#[test]
fn damaged_files_say_where() {
    let whole = exported("a.tfrecord");
    assert!(said(&whole[..whole.len() - 1]).starts_with("a: record 4 at byte "));
    assert!(said(&whole[..5]).contains("record 0 at byte 0: expected 12 bytes, found 5"));
    let mut flipped = whole.clone();
    flipped[30] ^= 1;
    assert_eq!(said(&flipped), "a: record 0 at byte 0: the checksum of the record is wrong: the file is damaged");
    let mut flipped = whole.clone();
    flipped[2] ^= 1;
    assert!(said(&flipped).contains("the checksum of the record's length is wrong"));
    let huge = frame(&[]);
    let len = (1_u64 << 60).to_le_bytes();
    let crc = crc32c(&len).rotate_right(15).wrapping_add(0xa282_ead8);
    let huge = [&len[..], &crc.to_le_bytes(), &huge].concat();
    assert!(said(&huge).contains("bytes, found 1152921504606846976"));
}

#[test]
fn records_that_are_no_examples_are_refused() {
    assert!(said(&frame(b"hello world")).starts_with("a: record 0: "));
    assert_eq!(said(&frame(b"\x12\x00")), "a: record 0: this record is a tf.SequenceExample");
}

#[test]
fn a_record_without_its_image_or_label_is_a_bad_sample_and_one_without_another_feature_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tfrecord");
    let mut other = example(&[("image/label", b"cat"), ("note", b"x")]);
    let image = other.windows(6).position(|w| w == b"image\x12").unwrap();
    other[image + 2] = b'x';
    let len = other.len();
    let other = frame(&other[12..len - 4]);
    let records = [
        example(&[("image/label", b"cat"), ("note", b"a")]),
        other,
        example(&[("note", b"b")]),
        example(&[("image/label", b"dog")]),
    ];
    std::fs::write(&path, records.concat()).unwrap();
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(listing.len(), 4);
    let fault = |idx| listing.fault(idx).map(|fault| fault.to_string());
    assert_eq!(fault(0), None);
    assert!(fault(1).unwrap().ends_with("there is no feature 'image'"));
    assert!(fault(2).unwrap().ends_with("there is no feature 'image/label'"));
    assert_eq!(fault(3), None);
    let ColumnValues::Text(notes) = &listing.columns()[0].values else {
        panic!("{:?}", listing.columns());
    };
    assert_eq!(notes.iter().collect::<Vec<_>>(), ["a", "x", "b", ""]);
    let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["left out the field 'imxge': it is not in the first record, which defines the features"]);
    assert_eq!(listing.ignored(), 0);
}

/// A message field of fewer than 128 bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let head = [number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    [&head[..], bytes].concat()
}

/// A record with an image and these byte strings.
fn example(features: &[(&str, &[u8])]) -> Vec<u8> {
    let image: (&str, &[u8]) = ("image", b"\xff\xd8\xff\xe0jjjjjj");
    let entry = |(name, value): &(&str, &[u8])| {
        let value = field(2, &field(1, &field(1, value)));
        field(1, &[field(1, name.as_bytes()), value].concat())
    };
    let all = features.iter().chain([&image]);
    frame(&field(1, &all.flat_map(entry).collect::<Vec<u8>>()))
}

/// The kind and contents of field `blob` when records contain these values: bytes or strings.
fn blobs(values: &[&[u8]], metadata: Option<Field>) -> (&'static str, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let records = values.iter().map(|value| example(&[("blob", value)]));
    let records: Vec<u8> = records.flatten().collect();
    std::fs::write(folder.path().join("a.tfrecord"), records).unwrap();
    if let Some(field) = metadata {
        let text = serde_json::json!({"packds": 1, "fields": [field]}).to_string();
        std::fs::write(folder.path().join("packds.json"), text).unwrap();
    }
    let listing = list(folder.path(), &ListOptions::default()).unwrap();
    if let Some(column) = listing.columns().first() {
        let ColumnValues::Text(texts) = &column.values else {
            panic!("{column:?}");
        };
        return ("texts", texts.iter().map(|t| t.as_bytes().to_vec()).collect());
    }
    let store = &listing.fields()[0].store;
    assert_eq!(store.content(0), Content::Bytes);
    let item = |idx| {
        let mut item = Vec::new();
        store.append(idx, u64::MAX, &mut item).unwrap();
        item
    };
    ("bytes", (0..store.len()).map(item).collect())
}

#[test]
fn bytes_whose_first_values_are_empty_or_texts_come_in_as_bytes() {
    let texts: [&[u8]; 3] = [b"", b"two", b"\x01"];
    let control: [&[u8]; 3] = [b"", b"\x01", b"two"];
    let late: [&[u8]; 4] = [b"one", b"", b"\xff\xfe", b"four"];
    let text = Field::variable("blob", FieldKind::String);
    let bytes = Field::variable("blob", FieldKind::Bytes);
    for (values, metadata, kind) in [
        (&texts[..], None, "texts"),
        (&control, None, "bytes"),
        (&late, None, "bytes"),
        (&late, Some(text.clone()), "bytes"),
        (&control, Some(text), "texts"),
        (&texts, Some(bytes), "bytes"),
    ] {
        assert_eq!(blobs(values, metadata), (kind, values.iter().map(|v| v.to_vec()).collect()));
    }
}

#[test]
fn file_names_that_are_no_texts_name_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tfrecord");
    let names: [&[u8]; 2] = [b"a.jpg", b"\xff.jpg"];
    let records = names.map(|name| example(&[(FILE_NAME, name)])).concat();
    std::fs::write(&path, records).unwrap();
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(listing.sample(1).name, names[1]);
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let whole = exported("a.tfrecord");
    survives(DataFormat::TfRecord, "a.tfrecord", 1000, |dice| {
        let mut bytes = whole.clone();
        damage(&mut bytes, dice);
        bytes
    });
    // Damaged messages in intact frames.
    let mut records = Vec::new();
    let mut rest = whole.as_slice();
    while let Some(len) = rest.first_chunk() {
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap();
        records.push(rest[12..12 + len].to_vec());
        rest = &rest[len + 16..];
    }
    survives(DataFormat::TfRecord, "a.tfrecord", 2000, |dice| {
        let mut records = records.clone();
        let hit = dice.below(records.len());
        damage(&mut records[hit], dice);
        records.iter().flat_map(|record| frame(record)).collect()
    });
    let packed = exported("a.tfrecord.gz");
    survives(DataFormat::TfRecord, "a.tfrecord.gz", 300, |dice| {
        let mut bytes = packed.clone();
        damage(&mut bytes, dice);
        bytes
    });
}
