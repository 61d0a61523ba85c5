//! Handmade files. They follow FFCV's layout: `ffcv/types.py`, `ffcv/writer.py`, `ffcv/memory_allocator.py` and `ffcv/fields/*.py` of
//! version 1.0.2.

use std::path::Path;

use packds_format::DType;

use super::super::mutation::{damage, survives};
use super::super::store::{ArrayType, Content};
use super::*;
use crate::sink::test_pack::refused;
use crate::source::{ColumnValues, Listed, Listing, list, list_all};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
/// Where the pages start. FFCV's own pages have at least 2 MiB.
const PAGE: usize = 1 << 14;

/// A value before it is written.
#[derive(Clone)]
enum Value {
    Float(f64),
    Int(i64),
    /// The mode, width and height of an image, and its bytes.
    Image(u8, u16, u16, Vec<u8>),
    /// Bytes, or JSON with its last zero.
    Bytes(Vec<u8>),
    Array(Vec<u8>),
}

/// A field: its name, the number of its type, its arguments, and its value in each sample.
type TestField<'a> = (&'a str, u8, Vec<u8>, Vec<Value>);

/// The arguments of an array.
fn arguments(dtype: &str, shape: &[u64]) -> Vec<u8> {
    let mut lengths = shape.to_vec();
    lengths.resize(32, 0);
    let text = format!("[[\"\", \"{dtype}\"]]");
    let numbers = lengths.into_iter().chain([u64::try_from(text.len()).unwrap()]);
    numbers.flat_map(u64::to_le_bytes).chain(text.bytes()).collect()
}

fn beton(fields: &[TestField<'_>]) -> Vec<u8> {
    let n = fields.first().map_or(0, |(.., values)| values.len());
    let mut described = Vec::new();
    for (name, type_id, arguments, _) in fields {
        let mut field = vec![*type_id];
        field.extend(name.bytes());
        field.resize(17, 0);
        field.extend(arguments);
        field.resize(1041, 0);
        described.extend(field);
    }
    let (mut rows, mut data, mut allocations) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..n {
        let mut row: Vec<u8> = Vec::new();
        let mut allocate = |bytes: &[u8]| {
            let place = u64::try_from(PAGE + data.len()).unwrap();
            let numbers = [u64::try_from(sample).unwrap(), place, u64::try_from(bytes.len()).unwrap()];
            allocations.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
            data.extend_from_slice(bytes);
            place.to_le_bytes()
        };
        for (.., values) in fields {
            let aligned = row.len().next_multiple_of(8);
            match &values[sample] {
                Value::Float(value) => {
                    row.resize(aligned, 0);
                    row.extend(value.to_le_bytes());
                }
                Value::Int(value) => {
                    row.resize(aligned, 0);
                    row.extend(value.to_le_bytes());
                }
                Value::Array(bytes) => {
                    row.resize(aligned, 0);
                    row.extend(allocate(bytes));
                }
                Value::Image(mode, width, height, bytes) => {
                    row.push(*mode);
                    row.extend(width.to_le_bytes());
                    row.extend(height.to_le_bytes());
                    row.extend(allocate(bytes));
                }
                Value::Bytes(bytes) => {
                    row.extend(allocate(bytes));
                    row.extend(u64::try_from(bytes.len()).unwrap().to_le_bytes());
                }
            }
        }
        let is_aligned = fields.iter().any(|(_, type_id, ..)| matches!(type_id, 0 | 1 | 4 | 6));
        row.resize(row.len().next_multiple_of(if is_aligned { 8 } else { 1 }), 0);
        rows.extend(row);
    }
    let mut head = [2_u16, u16::try_from(fields.len()).unwrap()].map(u16::to_le_bytes).concat();
    head.extend((1_u32 << 21).to_le_bytes());
    head.extend(u64::try_from(n).unwrap().to_le_bytes());
    head.extend(u64::try_from(PAGE + data.len()).unwrap().to_le_bytes());
    let mut bytes = [head, described, rows].concat();
    assert!(bytes.len() <= PAGE);
    bytes.resize(PAGE, 0);
    [bytes, data, allocations].concat()
}

fn images_and_labels() -> Vec<TestField<'static>> {
    let pixels = Value::Image(1, 1, 2, vec![1, 2, 3, 4, 5, 6]);
    let images = vec![pixels, Value::Image(0, 9, 9, PNG.to_vec())];
    vec![("image", 2, Vec::new(), images), ("label", 1, Vec::new(), vec![Value::Int(1), Value::Int(0)])]
}

fn listed(bytes: &[u8]) -> (tempfile::TempDir, Listing) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.beton");
    std::fs::write(&path, bytes).unwrap();
    let listing = list(&path, &ListOptions::default()).unwrap();
    (folder, listing)
}

fn said(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.beton");
    std::fs::write(&path, bytes).unwrap();
    refused(&path, &ListOptions::default()).replace(path.to_str().unwrap(), "a")
}

fn image(listing: &Listing, idx: usize) -> Vec<u8> {
    let mut out = Vec::new();
    listing.append_image(idx, u64::MAX, &mut out).unwrap();
    out
}

#[test]
fn every_type_of_field_is_read() {
    let json = |text: &str| Value::Bytes([text.as_bytes(), b"\0"].concat());
    let fields = [
        images_and_labels(),
        vec![
            ("score", 0, Vec::new(), vec![Value::Float(0.5), Value::Float(f64::INFINITY)]),
            ("notes", 5, Vec::new(), vec![json("{\"a\": 1}"), json("[]")]),
            ("raw", 3, Vec::new(), vec![Value::Bytes(vec![7]), Value::Bytes(vec![8, 9])]),
            ("array", 4, arguments("<f4", &[1, 2]), vec![Value::Array(vec![0; 8]), Value::Array(vec![1; 8])]),
            ("tensor", 6, arguments("<i2", &[]), vec![Value::Array(vec![3, 0]), Value::Array(vec![4, 0])]),
        ],
    ]
    .concat();
    let (_folder, listing) = listed(&beton(&fields));
    assert_eq!(listing.len(), 2);
    assert_eq!([image(&listing, 0), image(&listing, 1)], [vec![1, 2, 3, 4, 5, 6], PNG.to_vec()]);
    assert_eq!(listing.image_content(1), Content::File);
    let pixels = ArrayType { dtype: DType::U8, shape: vec![2, 1, 3] };
    assert_eq!(listing.image_content(0), Content::of_array(pixels));
    assert_eq!([listing.label(0), listing.label(1)], [Some(1), Some(0)]);
    let column = |name: &str| &listing.columns().iter().find(|column| column.name == name).unwrap().values;
    assert!(matches!(column("score"), ColumnValues::F64(values) if *values == [0.5, f64::INFINITY]));
    let ColumnValues::Json(texts) = column("notes") else { panic!() };
    assert_eq!(texts.iter().collect::<Vec<_>>(), ["{\"a\":1}", "[]"]);
    let item = |name: &str| {
        let field = listing.fields().iter().find(|field| field.name == name).unwrap();
        let mut out = Vec::new();
        field.store.append(1, u64::MAX, &mut out).unwrap();
        (field.store.content(1), out)
    };
    let array = |dtype, shape: &[u64]| Content::Array(ArrayType { dtype, shape: shape.to_vec() });
    assert_eq!(item("raw"), (Content::Bytes, vec![8, 9]));
    assert_eq!(item("array"), (array(DType::F32, &[1, 2]), vec![1; 8]));
    assert_eq!(item("tensor"), (array(DType::I16, &[]), vec![4, 0]));
}

#[test]
fn files_of_a_folder_are_splits_or_joined() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = beton(&images_and_labels());
    std::fs::write(folder.path().join("train.beton"), &bytes).unwrap();
    std::fs::write(folder.path().join("val.beton"), &bytes).unwrap();
    let Listed::Splits(splits) = list_all(folder.path(), &ListOptions::default()).unwrap() else { panic!() };
    assert_eq!(splits.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train", "val"]);
    std::fs::rename(folder.path().join("val.beton"), folder.path().join("train-1.beton")).unwrap();
    assert_eq!(list(folder.path(), &ListOptions::default()).unwrap().len(), 4);
    let other = beton(&[("image", 2, Vec::new(), vec![Value::Image(1, 1, 1, vec![0; 3])])]);
    std::fs::write(folder.path().join("train-2.beton"), other).unwrap();
    let error = refused(folder.path(), &ListOptions::default());
    assert!(
        error.contains("expected the fields [\"image\", \"label\"], as in the first file, found [\"image\"]"),
        "{error}"
    );
}

#[test]
fn custom_fields_and_other_types_are_refused() {
    let x = |type_id, arguments| {
        said(&beton(&[images_and_labels(), vec![("x", type_id, arguments, vec![Value::Int(0); 2])]].concat()))
    };
    let reason = |what: &str| {
        format!(
            "a: field 'x': the field has {what}, whose size is not in the file, so that no field can be found behind it"
        )
    };
    assert_eq!(x(255, Vec::new()), reason("a custom type"));
    assert_eq!(x(9, Vec::new()), reason("the type 9"));
    assert_eq!(x(4, arguments(">f4", &[1])), "a: field 'x': expected a type of numbers, found '>f4'");
    assert_eq!(x(4, arguments("<c8", &[1])), "a: field 'x': expected a type of numbers, found '<c8'");
    let nothing = x(4, vec![0xff; 300]);
    assert!(nothing.contains("expected the name of a type of at most 1024 bytes, found"), "{nothing}");
    let twice = said(&beton(&[images_and_labels(), images_and_labels()].concat()));
    assert_eq!(twice, "a: the field 'image' appears twice");
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let whole = beton(&images_and_labels());
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        said(&bytes)
    };
    let rows = 24 + 2 * 1041;
    assert_eq!(changed(0, &[1]), "a: expected version 2 of the format, found 1");
    assert_eq!(changed(16, &[0; 8]), "a: the file is not complete: its writing was interrupted");
    assert!(changed(2, &[0xff, 0xff]).starts_with("a: fields: a: expected "));
    assert_eq!(changed(2, &[0, 0]), "a: expected at least one field, found none");
    let n = whole.len();
    let table = PAGE + 6 + PNG.len();
    let samples = changed(8, &[0xff; 8]);
    let expected = format!(
        "a: expected {} samples of 24 bytes at byte {rows} and a table at byte {table}, found a file of {n} bytes",
        u64::MAX
    );
    assert_eq!(samples, expected);
    assert_eq!(changed(rows, &[2]), "'sample 0: image' in a.beton: expected the mode 0 (JPEG) or 1 (pixels), found 2");
    assert_eq!(changed(rows + 1, &[0, 0]), "'sample 0: image' in a.beton: expected a size, found 0x2");
    let outside = changed(rows + 5, &[0xff; 8]);
    assert_eq!(
        outside,
        format!("'sample 0: image' in a.beton: expected 6 bytes at byte {}, found a file of {n} bytes", u64::MAX)
    );
    assert_eq!(
        changed(rows + 24 + 5, &[0; 8]),
        "'sample 1: image' in a.beton: expected an allocation at byte 0, found none"
    );
    assert_eq!(
        said(&whole[..n - 1]),
        "a: allocations: expected a table of 24 bytes for each allocation, found 47 bytes"
    );
    assert_eq!(said(b"\x02\0"), "a: header: a: expected 24 bytes at byte 0, found 2");
    // Sample 0 is an image of 1x2 pixels.
    let narrow = changed(rows + 1, &[1, 0, 1, 0]);
    assert_eq!(
        narrow,
        format!("'sample 0: image' in a.beton: expected an allocation of 3 bytes at byte {PAGE}, found one of 6")
    );
    let inside = changed(rows + 5, &[8, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(inside, "'sample 0: image' in a.beton: expected an allocation at byte 8, found none");
    let fewer = changed(8, &[1]);
    assert_eq!(fewer, "a: allocations: expected the data of 1 sample, found data of sample 1");
    let json = [images_and_labels(), vec![("x", 5, Vec::new(), vec![Value::Bytes(b"{\0".to_vec()); 2])]].concat();
    assert_eq!(said(&beton(&json)), "a: sample 0: x: expected JSON: EOF while parsing an object at line 1 column 1");
    let zeros = said(&[0; 4096]);
    assert_eq!(zeros, "a: expected version 2 of the format, found 0");
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let fields = [
        images_and_labels(),
        vec![
            ("x", 3, Vec::new(), vec![Value::Bytes(vec![1]); 2]),
            ("y", 4, arguments("<f4", &[2]), vec![Value::Array(vec![0; 8]); 2]),
            ("z", 5, Vec::new(), vec![Value::Bytes(b"[]\0".to_vec()); 2]),
        ],
    ]
    .concat();
    let whole = beton(&fields);
    let rows = 24 + 5 * 1041;
    survives(DataFormat::Beton, "a.beton", 2000, |dice| {
        let mut bytes = whole.clone();
        damage(&mut bytes, dice);
        bytes
    });
    // The header, the rows and the allocations have all offsets and lengths.
    survives(DataFormat::Beton, "a.beton", 3000, |dice| {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(3) {
            let allocations = PAGE..bytes.len();
            let part = [0..24, rows..rows + 2 * 72, allocations][dice.below(3)].clone();
            let at = part.start + dice.below(part.len());
            bytes[at] = [0, 1, 2, 0x7f, 0x80, 0xff][dice.below(6)];
        }
        bytes
    });
}

#[test]
fn a_file_of_another_version_is_recognized_by_its_name() {
    let path = Path::new("a.beton");
    let head = crate::source::Head::new(path, &[2, 0, 1, 0]);
    assert!(starts(&head));
    assert!(!starts(&crate::source::Head::new(Path::new("a.bin"), &[2, 0])));
}
