//! Handmade datasets: the layout of `streaming/base/format/mds/writer.py`, damaged and with what is refused.

use std::path::Path;

use packds_format::DType;
use proptest::prelude::*;

use super::super::mutation::{damage, survives_in};
use super::super::store::{ArrayType, Content};
use super::*;
use crate::sink::test_pack::refused;
use crate::source::{ColumnValues, Listing, list, list_all};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A column: its name, its encoding, its size in the index, and its value in each sample.
type TestColumn<'a> = (&'a str, &'a str, Option<usize>, Vec<Vec<u8>>);

fn word(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap().to_le_bytes()
}

/// The bytes of a shard.
fn shard(columns: &[TestColumn<'_>]) -> Vec<u8> {
    let n = columns[0].3.len();
    let sample = |idx: usize| {
        let stated = columns.iter().filter(|(_, _, size, _)| size.is_none());
        let sizes: Vec<u8> = stated.flat_map(|(.., values)| word(values[idx].len())).collect();
        let values: Vec<u8> = columns.iter().flat_map(|(.., values)| values[idx].clone()).collect();
        [sizes, values].concat()
    };
    let samples: Vec<Vec<u8>> = (0..n).map(sample).collect();
    // The library writes its settings between the offsets and the samples.
    let settings = b"{\"version\": 2}";
    let mut end = 4 + 4 * (n + 1) + settings.len();
    let mut table = word(n).to_vec();
    table.extend(word(end));
    for sample in &samples {
        end += sample.len();
        table.extend(word(end));
    }
    [table, settings.to_vec(), samples.concat()].concat()
}

/// The entry of a shard in the index. `zip` is the name of its compressed file.
fn entry(
    columns: &[TestColumn<'_>],
    basename: &str,
    compression: Option<&str>,
    zip: Option<&str>,
) -> serde_json::Value {
    serde_json::json!({
        "version": 2, "format": "mds", "hashes": [], "size_limit": 67_108_864,
        "column_names": columns.iter().map(|column| column.0).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|column| column.1).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|column| column.2).collect::<Vec<_>>(),
        "compression": compression,
        "raw_data": {"basename": basename, "bytes": shard(columns).len(), "hashes": {}},
        "zip_data": zip.map(|zip| serde_json::json!({"basename": zip, "bytes": 1, "hashes": {}})),
        "samples": columns[0].3.len(),
    })
}

fn write_index(folder: &Path, shards: &[serde_json::Value]) {
    let index = serde_json::json!({"version": 2, "shards": shards});
    std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

/// Writes a dataset of one raw shard.
fn save(folder: &Path, columns: &[TestColumn<'_>]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("shard.00000.mds"), shard(columns)).unwrap();
    write_index(folder, &[entry(columns, "shard.00000.mds", None, None)]);
}

fn ints(values: &[i64]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_le_bytes().to_vec()).collect()
}

fn pil(mode: &str, width: usize, height: usize, pixels: &[u8]) -> Vec<u8> {
    [&word(width)[..], &word(height), &word(mode.len()), mode.as_bytes(), pixels].concat()
}

fn images_and_labels() -> Vec<TestColumn<'static>> {
    vec![("image", "png", None, vec![PNG.to_vec(); 3]), ("label", "int", Some(8), ints(&[2, 0, 1]))]
}

fn listed(folder: &Path) -> Listing {
    list(folder, &ListOptions::default()).unwrap()
}

fn image(listing: &Listing, idx: usize) -> Vec<u8> {
    let mut out = Vec::new();
    listing.append_image(idx, u64::MAX, &mut out).unwrap();
    out
}

/// The reason why a dataset with this column is refused, next to images and labels.
fn reason(name: &str, encoding: &str, size: Option<usize>, value: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let column = (name, encoding, size, vec![value.to_vec(); 3]);
    save(folder.path(), &[images_and_labels(), vec![column]].concat());
    refused(folder.path(), &ListOptions::default()).replace(folder.path().to_str().unwrap(), "d")
}

#[test]
fn every_encoding_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let columns: Vec<TestColumn<'_>> = vec![
        (
            "array",
            "ndarray",
            None,
            vec![
                [&[33, 2 << 2 | 1, 2, 0, 1, 0][..], &[7; 8]].concat(),
                vec![33, 9, 2, 0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0],
            ],
        ),
        ("bytes", "bytes", None, vec![vec![], vec![0xff]]),
        ("decimal", "str_decimal", None, vec![b"1.50".to_vec(), b"1E+400".to_vec()]),
        ("digits", "str_int", None, vec![b"-7".to_vec(), b"9".to_vec()]),
        ("fixed", "ndarray:float32:2,1", Some(8), vec![vec![0; 8], vec![1; 8]]),
        ("float", "str_float", None, vec![b"0.1".to_vec(), b"-inf".to_vec()]),
        ("half", "float16", Some(2), vec![vec![0, 0x3c], vec![0, 0x40]]),
        ("json", "json", None, vec![b"{\"a\": [1, 2]}".to_vec(), b"null".to_vec()]),
        ("label", "uint8", Some(1), vec![vec![1], vec![0]]),
        ("mask", "pil", None, vec![pil("P", 1, 2, &[3, 4]), pil("L", 1, 2, &[5, 6])]),
        ("photo", "jpeg", None, vec![PNG.to_vec(), PNG.to_vec()]),
        ("str", "str", None, vec![b"a cat".to_vec(), "\u{e9}".as_bytes().to_vec()]),
        ("typed", "ndarray:uint8", None, vec![vec![1 << 2, 3, 1, 2, 3], vec![1 << 2, 3, 4, 5, 6]]),
    ];
    save(folder.path(), &columns);
    let listing = listed(folder.path());
    // The only column of image files is the image, and a typed number is the label.
    assert_eq!((listing.len(), image(&listing, 1)), (2, PNG.to_vec()));
    assert_eq!([listing.label(0), listing.label(1)], [Some(1), Some(0)]);
    let column = |name: &str| &listing.columns().iter().find(|column| column.name == name).unwrap().values;
    let texts = |values: &ColumnValues| match values {
        ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.iter().map(str::to_owned).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(texts(column("str")), ["a cat", "\u{e9}"]);
    assert_eq!(texts(column("decimal")), ["1.50", "1E+400"]);
    assert_eq!(texts(column("json")), ["{\"a\":[1,2]}", "null"]);
    assert!(matches!(column("digits"), ColumnValues::I64(values) if *values == [-7, 9]));
    assert!(matches!(column("float"), ColumnValues::F64(values) if *values == [0.1, f64::NEG_INFINITY]));
    let field = |name: &str| listing.fields().iter().find(|field| field.name == name).unwrap();
    let item = |name: &str, idx: usize| {
        let mut out = Vec::new();
        field(name).store.append(idx, u64::MAX, &mut out).unwrap();
        (field(name).store.content(idx), out)
    };
    let array = |dtype, shape: &[u64]| Content::Array(ArrayType { dtype, shape: shape.to_vec() });
    assert_eq!(item("array", 1), (array(DType::I32, &[2, 1]), vec![1, 0, 0, 0, 2, 0, 0, 0]));
    assert_eq!(item("fixed", 1), (array(DType::F32, &[2, 1]), vec![1; 8]));
    assert_eq!(item("half", 0), (array(DType::F16, &[]), vec![0, 0x3c]));
    assert_eq!(item("typed", 1), (array(DType::U8, &[3]), vec![4, 5, 6]));
    assert_eq!(item("bytes", 1), (Content::Bytes, vec![0xff]));
    assert!(listing.has_masks());
}

#[test]
fn pixels_become_arrays_of_the_mode() {
    for (mode, dtype, shape, bytes) in [
        ("L", DType::U8, &[2, 1][..], 2),
        ("LA", DType::U8, &[2, 1, 2], 4),
        ("RGB", DType::U8, &[2, 1, 3], 6),
        ("RGBA", DType::U8, &[2, 1, 4], 8),
        ("I;16", DType::U16, &[2, 1], 4),
        ("I", DType::I32, &[2, 1], 8),
        ("F", DType::F32, &[2, 1], 8),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let pixels: Vec<u8> = (0..bytes).collect();
        save(folder.path(), &[("image", "pil", None, vec![pil(mode, 1, 2, &pixels)])]);
        let listing = listed(folder.path());
        assert_eq!(image(&listing, 0), pixels);
        let content = listing.image_content(0);
        assert_eq!(content, Content::of_array(ArrayType { dtype, shape: shape.to_vec() }), "{mode}");
    }
}

#[test]
fn columns_that_are_not_read_are_named_and_can_be_left_out() {
    let left_out = |name: &str| format!("leave it out with {}", crate::opt::LEAVE_OUT.with(name));
    for (encoding, expected) in [
        ("pkl", "the values are pickles, and loading them would run code"),
        ("list[jpeg]", "each value is a list of images, and a pack stores one image for each field of a sample"),
        ("jpeg_array", "each value is a list of images, and a pack stores one image for each field of a sample"),
        ("mine", "the encoding 'mine' is not supported"),
        ("ndarray:float128", "the encoding 'ndarray:float128' is not supported"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &[images_and_labels(), vec![("meta", encoding, None, vec![b"x".to_vec(); 3])]].concat());
        let error = list(folder.path(), &ListOptions::default()).unwrap_err();
        assert!(error.to_string().ends_with(&format!("index.json: field 'meta': {expected}")), "{error}");
        assert!(error.hint().unwrap().contains(&left_out("meta")));
        let options = ListOptions { leave_out: vec!["meta".to_owned()], ..ListOptions::default() };
        assert_eq!(list(folder.path(), &options).unwrap().len(), 3);
    }
}

#[test]
fn what_is_wrong_with_a_value_is_said_with_its_shard_sample_and_column() {
    let place = |reason: &str| format!("d/shard.00000.mds: sample 0: x: {reason}");
    for (encoding, size, value, expected) in [
        ("str", None, &b"\xff"[..], "expected text: invalid utf-8 sequence of 1 bytes from index 0"),
        ("json", None, b"NaN", "expected JSON: expected value at line 1 column 1"),
        (
            "str_int",
            None,
            b"99999999999999999999",
            "expected an integer of at most 64 bits, found '99999999999999999999'",
        ),
        ("str_float", None, b"x", "expected a number, found 'x'"),
        ("ndarray", None, b"", "expected the type and the shape of an array, found 0 bytes"),
        ("ndarray", None, b"\x05\x04\x01", "expected the number of an element type, found 5"),
        ("ndarray", None, b"\x08\xff\x01", "expected the type and the shape of an array, found 3 bytes"),
        ("ndarray", None, b"\x08\x08\x03\x03\x01", "expected 9 bytes for u8 values of shape [3, 3], found 1"),
        (
            "ndarray:uint64",
            None,
            b"\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "expected more than 64 bits can count bytes for u64 values of shape [18446744073709551615, 18446744073709551615], found 0",
        ),
        ("pil", None, b"\x01", "expected 12 bytes before the pixels, found 1"),
    ] {
        assert_eq!(reason("x", encoding, size, value), place(expected), "{encoding}");
    }
    let long = pil("RGB", 1, 1, &[0; 3]);
    assert_eq!(
        reason("x", "pil", None, &long[..17]),
        place("expected 3 bytes for u8 values of shape [1, 1, 3], found 2")
    );
    let mode = [&word(1)[..], &word(1), &word(99)].concat();
    assert_eq!(reason("x", "pil", None, &mode), place("expected a mode of at most 16 bytes, found 99"));
    let other = pil("CMYK", 1, 1, &[0; 4]);
    let expected = "expected an image of mode L, LA, RGB, RGBA, I;16, I or F, found mode 'CMYK'";
    assert_eq!(reason("x", "pil", None, &other), place(expected));
    let palette = "the image has a palette (mode P), which this format does not store";
    assert_eq!(reason("x", "pil", None, &pil("P", 1, 1, &[0])), place(palette));
    assert!(reason("x", "int", Some(4), &[0; 4]).ends_with("expected the size 8 for the column 'x', found 4"));
}

#[test]
fn arrays_of_different_shapes_are_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let x = ("x", "ndarray:float32", None, vec![vec![1 << 2, 1, 0, 0, 0, 0], vec![1 << 2, 0], vec![1 << 2, 0]]);
    save(folder.path(), &[images_and_labels(), vec![x]].concat());
    let listing = listed(folder.path());
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [1, 2]);
    let error = bad(&listing, 1);
    let expected = "'sample 1: x' in shard.00000.mds: expected an array of f32 with shape [1], found an array of f32 with shape [0]";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(error.hint().unwrap().contains("leave it out with"));
}

/// The error about a bad sample.
fn bad(listing: &Listing, idx: usize) -> ConvertError {
    ConvertError::BadSample { path: listing.file_path(idx), source: listing.fault(idx).unwrap() }
}

#[test]
fn a_bad_value_of_any_column_makes_its_sample_a_bad_one() {
    for (encoding, good, value, expected) in [
        ("str", &b"a"[..], &b"\xff"[..], "expected text: invalid utf-8 sequence of 1 bytes from index 0"),
        ("json", b"1", b"[NaN]", "expected JSON: expected value at line 1 column 2"),
        ("str_int", b"1", b"x", "expected an integer of at most 64 bits, found 'x'"),
    ] {
        for place in [0, 1] {
            let folder = tempfile::tempdir().unwrap();
            let mut values = vec![good.to_vec(); 3];
            values[place] = value.to_vec();
            save(folder.path(), &[images_and_labels(), vec![("x", encoding, None, values)]].concat());
            let listing = listed(folder.path());
            assert_eq!(listing.faulty().collect::<Vec<_>>(), [place]);
            let reason = format!("'sample {place}: x' in shard.00000.mds: {expected}");
            assert_eq!(listing.fault(place).unwrap().to_string(), reason);
            // The others keep their labels.
            assert_eq!((listing.label(0), listing.label(2)), (Some(2), Some(1)));
        }
    }
}

#[test]
fn json_with_numbers_of_python_gets_another_hint_than_json_that_is_cut_off() {
    let hint = |value: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let column = ("x", "json", None, vec![b"1".to_vec(), value.to_vec(), b"1".to_vec()]);
        save(folder.path(), &[images_and_labels(), vec![column]].concat());
        bad(&listed(folder.path()), 1).hint().unwrap()
    };
    assert!(hint(b"[Infinity]").starts_with("write numbers that JSON can express"));
    assert!(!hint(b"[1").contains("JSON"));
}

#[test]
fn empty_values_before_the_first_image_are_bad_images() {
    let folder = tempfile::tempdir().unwrap();
    let columns = vec![
        ("image", "bytes", None, vec![Vec::new(), PNG.to_vec(), PNG.to_vec()]),
        ("other", "bytes", None, vec![Vec::new(), Vec::new(), b"x".to_vec()]),
        ("void", "bytes", None, vec![Vec::new(); 3]),
    ];
    save(folder.path(), &columns);
    let listing = listed(folder.path());
    assert_eq!([0, 1].map(|idx| listing.image_content(idx)), [Content::File, Content::File]);
    assert_eq!([image(&listing, 0), image(&listing, 2)], [Vec::new(), PNG.to_vec()]);
    let item = |name: &str, idx: usize| {
        let field = listing.fields().iter().find(|field| field.name == name).unwrap();
        let mut out = Vec::new();
        field.store.append(idx, u64::MAX, &mut out).unwrap();
        (field.store.content(idx), field.store.len(), out)
    };
    assert_eq!([item("other", 0), item("other", 2)], [Vec::new(), b"x".to_vec()].map(|out| (Content::Bytes, 3, out)));
    assert_eq!(item("void", 2), (Content::Bytes, 3, Vec::new()));
}

#[test]
fn a_second_column_of_pixels_of_different_sizes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = vec![pil("L", 2, 1, &[1, 2]), pil("L", 2, 1, &[1, 2]), pil("L", 1, 3, &[1, 2, 3])];
    save(folder.path(), &[images_and_labels(), vec![("other", "pil", None, pixels.clone())]].concat());
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    let expected = "other: expected an array of u8 with shape [1, 2] in sample 2, as in sample 0, found an array of u8 with shape [3, 1]";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(error.hint().unwrap().ends_with(&crate::opt::LEAVE_OUT.with("other").to_string()));
    // The images and the masks may have different sizes.
    save(folder.path(), &[("image", "pil", None, pixels.clone()), ("mask", "pil", None, pixels)]);
    assert_eq!(listed(folder.path()).len(), 3);
}

#[test]
fn a_picture_next_to_the_index_is_ignored_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &images_and_labels());
    std::fs::write(folder.path().join("preview.jpg"), [0; 4096]).unwrap();
    let listing = listed(folder.path());
    assert_eq!((listing.len(), listing.kind()), (3, DataFormat::Mds.into()));
    let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["ignored 1 other file: 1 .jpg ('preview.jpg')"]);
}

#[test]
fn the_error_about_a_damaged_index_names_it() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &images_and_labels());
    let index = std::fs::read(folder.path().join("index.json")).unwrap();
    for damaged in [&index[..9], b"", b"[]", b"\xff\xfe"] {
        std::fs::write(folder.path().join("index.json"), damaged).unwrap();
        let said = refused(folder.path(), &ListOptions::default());
        assert!(said.contains("index.json: cannot be read: "), "{said}");
    }
    // A byte order mark is no damage.
    std::fs::write(folder.path().join("index.json"), [&b"\xef\xbb\xbf"[..], &index].concat()).unwrap();
    assert_eq!(listed(folder.path()).len(), 3);
}

fn strings(values: &[&str]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.as_bytes().to_vec()).collect()
}

#[test]
fn a_split_alone_has_the_class_ids_of_all_splits() {
    let folder = tempfile::tempdir().unwrap();
    let columns = |labels: &[&str]| {
        let n = labels.len();
        vec![("image", "png", None, vec![PNG.to_vec(); n]), ("label", "str", None, strings(labels))]
    };
    save(&folder.path().join("train"), &columns(&["c", "b", "c"]));
    save(&folder.path().join("val"), &columns(&["b", "a", "b"]));
    let of = |split: &str| {
        let options = ListOptions { split: Some(split.to_owned()), ..ListOptions::default() };
        let listing = list(folder.path(), &options).unwrap();
        assert_eq!(listing.classes(), ["a", "b", "c"].map(|class| class.as_bytes().to_vec()));
        let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        ([0, 1, 2].map(|idx| listing.label(idx).unwrap()), warnings)
    };
    assert_eq!(of("train"), ([2, 1, 2], vec!["class 'a' has no images and keeps its id 0".to_owned()]));
    assert_eq!(of("val"), ([1, 0, 1], vec!["class 'c' has no images and keeps its id 2".to_owned()]));
}

#[test]
fn ids_of_one_split_are_told_if_the_other_splits_must_be_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let columns =
        vec![("image", "png", None, vec![PNG.to_vec(); 3]), ("label", "str", None, strings(&["b", "a", "b"]))];
    save(&folder.path().join("train"), &columns);
    std::fs::create_dir(folder.path().join("val")).unwrap();
    write_index(&folder.path().join("val"), &[entry(&columns, "s.mds", Some("zstd"), Some("s.zip"))]);
    let options = ListOptions { split: Some("train".to_owned()), ..ListOptions::default() };
    let listing = list(folder.path(), &options).unwrap();
    let warning = listing.warnings()[0].to_string();
    assert!(warning.starts_with("the class ids count the classes of this split alone: those of 'val'"), "{warning}");
}

#[test]
fn shards_that_are_missing_or_listed_twice_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let columns = images_and_labels();
    save(folder.path(), &columns);
    let one = |name: &str| entry(&columns, name, None, None);
    write_index(folder.path(), &[one("shard.00000.mds"), one("shard.00001.mds")]);
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    let expected = "shard.00001.mds: expected this file, which 'index.json' names, found none";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(error.hint().unwrap().starts_with("copy or download the file again"));
    write_index(folder.path(), &[one("shard.00000.mds"), one("shard.00000.mds")]);
    let said = refused(folder.path(), &ListOptions::default());
    assert!(said.ends_with("index.json: expected each file once, found 'shard.00000.mds' twice"), "{said}");
}

#[test]
fn arrays_without_values_are_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let column = ("z", "ndarray:float32", None, vec![vec![1 << 2, 0]; 3]);
    save(folder.path(), &[images_and_labels(), vec![column]].concat());
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("field `z`: a shape must have at most 8 nonzero dimensions, found [0]"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("leave it out with"));
}

#[test]
fn a_label_that_would_take_the_name_of_another_column_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let label = ("label", "float32", Some(4), vec![0.5_f32.to_le_bytes().to_vec(); 3]);
    let columns =
        vec![("image", "png", None, vec![PNG.to_vec(); 3]), label, ("target", "int", Some(8), ints(&[1, 0, 1]))];
    save(folder.path(), &columns);
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("would be packed as `target`, but the source has a field `target` too"),
        "{error}"
    );
    let options = ListOptions { label_key: Some("target".to_owned()), ..ListOptions::default() };
    assert_eq!(list(folder.path(), &options).unwrap().label(0), Some(1));
}

#[test]
fn compressed_shards_are_unpacked_unless_the_raw_ones_are_there() {
    let columns = images_and_labels();
    let bytes = shard(&columns);
    let gzip = || {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut out, &bytes).unwrap();
        out.finish().unwrap()
    };
    for (compression, packed) in [("zstd:7", zstd::encode_all(&bytes[..], 3).unwrap()), ("gz", gzip())] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.zip"), &packed).unwrap();
        write_index(folder.path(), &[entry(&columns, "s.mds", Some(compression), Some("s.zip"))]);
        assert_eq!(listed(folder.path()).label(0), Some(2));
        std::fs::write(folder.path().join("s.zip"), &packed[..packed.len() - 9]).unwrap();
        let said = refused(folder.path(), &ListOptions::default());
        assert!(said.contains("s.zip: cannot be unpacked: "), "{said}");
        std::fs::write(folder.path().join("s.mds"), &bytes).unwrap();
        assert_eq!(listed(folder.path()).label(0), Some(2));
    }
    let folder = tempfile::tempdir().unwrap();
    write_index(folder.path(), &[entry(&columns, "s.mds", Some("zstd"), Some("s.zip"))]);
    for (unpacked, expected) in [
        (
            [&bytes[..], b"x"].concat(),
            format!("expected at most {} unpacked bytes, as in 'index.json', found more", bytes.len()),
        ),
        (
            bytes[1..].to_vec(),
            format!("expected {0} unpacked bytes, as in 'index.json', found {1}", bytes.len(), bytes.len() - 1),
        ),
    ] {
        std::fs::write(folder.path().join("s.zip"), zstd::encode_all(&unpacked[..], 3).unwrap()).unwrap();
        let said = refused(folder.path(), &ListOptions::default());
        assert!(said.ends_with(&expected), "{said}");
    }
    // The hint is code, whatever the name of the folder.
    let quoted = folder.path().join("it's");
    std::fs::create_dir(&quoted).unwrap();
    std::fs::write(quoted.join("s.zip"), b"").unwrap();
    write_index(&quoted, &[entry(&columns, "s.mds", Some("br"), Some("s.zip"))]);
    let error = list(&quoted, &ListOptions::default()).unwrap_err();
    assert!(error.hint().unwrap().contains(&format!("pathlib.Path(\"{}\")", quoted.display())));
    assert!(error.to_string().ends_with("the compression 'br' is not supported, only zstd, gzip, bzip2 and xz are"));
    assert!(error.hint().unwrap().contains("from streaming.base.compression import decompress"));
}

#[test]
fn folders_with_an_index_are_splits_and_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["train", "val"] {
        save(&folder.path().join(split), &images_and_labels());
    }
    let crate::source::Listed::Splits(splits) = list_all(folder.path(), &ListOptions::default()).unwrap() else {
        panic!("no splits");
    };
    let names: Vec<(&str, usize)> = splits.iter().map(|(name, listing)| (name.as_str(), listing.len())).collect();
    assert_eq!(names, [("train", 3), ("val", 3)]);
    // An index that joins them names the folders, and these are the splits.
    let columns = images_and_labels();
    let entries = ["train", "val"].map(|split| entry(&columns, &format!("{split}/shard.00000.mds"), None, None));
    write_index(folder.path(), &entries);
    let one = ListOptions { split: Some("val".to_owned()), ..ListOptions::default() };
    assert_eq!(list(folder.path(), &one).unwrap().len(), 3);
    // The index itself is the source, too.
    assert_eq!(list(&folder.path().join("train/index.json"), &ListOptions::default()).unwrap().len(), 3);
    let folder = tempfile::tempdir().unwrap();
    for part in ["0", "1"] {
        save(&folder.path().join(part), &images_and_labels());
    }
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    let expected = "expected 'index.json' in this folder, or in a folder for each split, found it in '0', '1'";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(error.hint().unwrap().contains("merge_index"));
    // Next to a split, they are no part of it.
    save(&folder.path().join("train"), &images_and_labels());
    let train = ListOptions { split: Some("train".to_owned()), ..ListOptions::default() };
    assert_eq!(list(folder.path(), &train).unwrap().len(), 3);
    let said = refused(folder.path(), &ListOptions::default());
    assert!(said.ends_with("found the splits 'train', and files that belong to no split"), "{said}");
    std::fs::remove_dir_all(folder.path().join("train")).unwrap();
    let entries = ["0", "1"].map(|part| entry(&columns, &format!("{part}/shard.00000.mds"), None, None));
    write_index(folder.path(), &entries);
    assert_eq!(listed(folder.path()).len(), 6);
}

#[test]
fn an_index_that_does_not_fit_its_shards_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let columns = images_and_labels();
    let said = |change: &dyn Fn(&mut serde_json::Value)| {
        for name in ["shard.00000.mds", "shard.00001.mds"] {
            std::fs::write(folder.path().join(name), shard(&columns)).unwrap();
        }
        let mut shard = entry(&columns, "shard.00001.mds", None, None);
        change(&mut shard);
        write_index(folder.path(), &[entry(&columns, "shard.00000.mds", None, None), shard]);
        let options = ListOptions { from: Some(DataFormat::Mds), ..ListOptions::default() };
        refused(folder.path(), &options).replace(folder.path().to_str().unwrap(), "d")
    };
    let name = "d/index.json: shard.00001.mds";
    assert_eq!(
        said(&|shard| shard["version"] = 3.into()),
        format!("{name}: expected version 2 of the format, found 3")
    );
    let format = format!("{name}: expected shards of the format mds, found json");
    assert_eq!(said(&|shard| shard["format"] = "json".into()), format);
    let other = said(&|shard| shard["column_names"] = serde_json::json!(["image", "other"]));
    assert_eq!(
        other,
        format!(
            "{name}: expected the columns [\"image\", \"label\"], as in the first shard, found [\"image\", \"other\"]"
        )
    );
    let sizes = said(&|shard| shard["column_sizes"] = serde_json::json!([null]));
    assert_eq!(sizes, format!("{name}: expected an encoding and a size for each of 2 columns, found 2 and 1"));
    for basename in ["../x.mds", "/etc/passwd", ""] {
        let said = said(&|shard| shard["raw_data"]["basename"] = basename.into());
        assert_eq!(said, format!("d/index.json: expected the name of a file in this folder, found '{basename}'"));
    }
    assert!(said(&|shard| shard["raw_data"]["basename"] = "y.mds".into()).starts_with("d/y.mds: "));
    let bytes = shard(&columns).len();
    let length = said(&|shard| shard["raw_data"]["bytes"] = 7.into());
    assert_eq!(length, format!("d/shard.00001.mds: expected 7 bytes, as in 'index.json', found {bytes}"));
    let count = said(&|shard| shard["samples"] = 4.into());
    assert_eq!(count, "d/shard.00001.mds: expected 4 samples, as in 'index.json', found 3");
    let twice = said(&|shard| shard["column_names"] = serde_json::json!(["image", "image"]));
    assert!(twice.contains("expected the columns"), "{twice}");
}

#[test]
fn offsets_outside_the_shard_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let columns = images_and_labels();
    save(folder.path(), &columns);
    let said = |at: usize, to: u32| {
        let mut bytes = shard(&columns);
        bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
        std::fs::write(folder.path().join("shard.00000.mds"), bytes).unwrap();
        refused(folder.path(), &ListOptions::default())
    };
    assert!(said(4, 3).contains("table of samples: expected increasing offsets from 20 to"));
    assert!(said(8, u32::MAX).contains("table of samples: expected increasing offsets"));
    let size = u32::try_from(shard(&columns).len()).unwrap() - 3 * 28;
    assert!(said(usize::try_from(size).unwrap(), 9).contains("sample 0: expected 21 bytes for its values, found 28"));
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [
        images_and_labels(),
        vec![
            ("x", "ndarray", None, vec![vec![8, 1 << 2, 2, 0, 0]; 3]),
            ("y", "pil", None, vec![pil("L", 1, 1, &[0]); 3]),
            ("z", "json", None, vec![b"{\"a\": [1, 2]}".to_vec(); 3]),
        ],
    ]
    .concat();
    save(folder.path(), &columns);
    let index = std::fs::read(folder.path().join("index.json")).unwrap();
    survives_in(DataFormat::Mds, folder.path(), "index.json", 1500, |dice| {
        let mut bytes = index.clone();
        damage(&mut bytes, dice);
        bytes
    });
    std::fs::write(folder.path().join("index.json"), &index).unwrap();
    let whole = shard(&columns);
    survives_in(DataFormat::Mds, folder.path(), "shard.00000.mds", 3000, |dice| {
        let mut bytes = whole.clone();
        // The length stays, so that the damage is found in the shard and not by the index.
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len());
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.below(5)];
        }
        bytes
    });
}

#[test]
fn the_note_about_sizes_names_encoded_images_only_if_the_source_has_files() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = vec![pil("L", 300, 300, &[1; 300 * 300]), pil("L", 400, 300, &[2; 400 * 300])];
    save(&folder.path().join("set"), &[("image", "pil", None, pixels)]);
    let out = folder.path().join("a.pack");
    let report = crate::convert(&folder.path().join("set"), &out, &crate::ConvertOptions::default(), &()).unwrap();
    assert!(report.notes[0].starts_with("images have several sizes"), "{:?}", report.notes);
    assert!(!report.notes[0].contains("keeps the files' bytes"), "{:?}", report.notes);
}

/// A PNG of 8x8 gray pixels of 16 bits, all with the same value.
#[expect(clippy::big_endian_bytes, reason = "PNG is big-endian")]
fn deep_png(value: u16) -> Vec<u8> {
    let piece = |name: &[u8], data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(&[name, data].concat());
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], name, data, &crc.sum().to_be_bytes()].concat()
    };
    let head = [&8_u32.to_be_bytes()[..], &8_u32.to_be_bytes(), &[16, 0, 0, 0, 0]].concat();
    let row = [&[0][..], &value.to_be_bytes().repeat(8)].concat();
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut pixels, &row.repeat(8)).unwrap();
    let pixels = pixels.finish().unwrap();
    [PNG[..8].to_vec(), piece(b"IHDR", &head), piece(b"IDAT", &pixels), piece(b"IEND", &[])].concat()
}

#[test]
fn the_hint_for_images_that_would_be_white_does_not_read_shards_as_images() {
    let folder = tempfile::tempdir().unwrap();
    save(&folder.path().join("set"), &[("image", "png", None, vec![deep_png(0x8000); 3])]);
    let out = folder.path().join("a.pack");
    let error = crate::convert(&folder.path().join("set"), &out, &crate::ConvertOptions::default(), &()).unwrap_err();
    assert!(error.to_string().contains("as 8-bit images they would be white"), "{error}");
    assert!(error.hint().unwrap().starts_with("write the images to the source as arrays"), "{error}");
}

/// Names and encodings of columns, and a value of each.
const COLUMNS: [(&str, &str, Option<usize>, &[u8]); 12] = [
    ("image", "png", None, PNG),
    ("x", "jpeg", None, PNG),
    ("photo", "bytes", None, PNG),
    ("data", "bytes", None, b"abc"),
    ("label", "int", Some(8), &[1, 0, 0, 0, 0, 0, 0, 0]),
    ("class", "str", None, b"cat"),
    ("target", "float32", Some(4), &[0, 0, 0, 63]),
    ("labels", "ndarray:int16:2", Some(4), &[1, 0, 0, 0]),
    ("mask", "png", None, PNG),
    ("gt", "ndarray:uint8", None, &[2 << 2, 1, 2, 5, 6]),
    ("note", "json", None, b"[1]"),
    ("y", "str_int", None, b"7"),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_column_is_lost(columns in prop::sample::subsequence(&COLUMNS[..], 1..12), n in 1_usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let of = |(name, encoding, size, value): &(&'static str, &'static str, _, &[u8])| (*name, *encoding, *size, vec![value.to_vec(); n]);
        let columns: Vec<TestColumn<'_>> = columns.iter().map(of).collect();
        save(folder.path(), &columns);
        // If the source is refused, nothing is lost.
        let Ok(listing) = list(folder.path(), &ListOptions::default()) else { return Ok(()) };
        prop_assert_eq!(listing.len(), n);
        let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        let columns_found = listing.columns().iter().map(|column| column.name.as_str());
        let found = columns_found.chain(listing.fields().iter().map(|field| field.name.as_str()));
        let others: HashSet<&str> = found.map(|name| name.trim_start_matches("source_")).collect();
        let lost = columns.iter().filter(|(name, ..)| !others.contains(name) && !warnings.iter().any(|w| w.contains(&format!("'{name}'"))));
        // One column is the image, and at most one each is the label and the mask.
        let roles = 1 + usize::from(listing.has_labels() || listing.has_label_lists()) + usize::from(listing.has_masks());
        prop_assert!(lost.clone().count() <= roles, "{:?}: {:?}", lost.map(|column| column.0).collect::<Vec<_>>(), warnings);
    }
}
