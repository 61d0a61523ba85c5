//! Handmade datasets: the layouts of `litdata/streaming/writer.py`, `framed_zstd.py` and `serializers.py`, damaged and with what is
//! refused.

use std::path::Path;

use packds_format::DType;

use super::super::mutation::{damage, survives_in};
use super::super::store::{ArrayType, Content};
use super::*;
use crate::sink::test_pack::refused;
use crate::source::{ColumnValues, Listing, list};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A value of each sample: its name, its serializer, and its bytes in each sample.
type TestField<'a> = (&'a str, &'a str, Vec<Vec<u8>>);

fn word(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap().to_le_bytes()
}

fn samples(fields: &[TestField<'_>]) -> Vec<Vec<u8>> {
    let sample = |idx: usize| {
        let sizes: Vec<u8> = fields.iter().flat_map(|(.., values)| word(values[idx].len())).collect();
        [sizes, fields.iter().flat_map(|(.., values)| values[idx].clone()).collect()].concat()
    };
    (0..fields[0].2.len()).map(sample).collect()
}

/// The number of samples, their offsets from `start`, and the samples.
fn chunk(samples: &[Vec<u8>]) -> Vec<u8> {
    let mut end = 4 * (samples.len() + 2);
    let mut bytes = [word(samples.len()), word(end)].concat();
    for sample in samples {
        end += sample.len();
        bytes.extend(word(end));
    }
    [bytes, samples.concat()].concat()
}

/// A chunk of `samples` in batches of two.
fn batched(samples: &[Vec<u8>]) -> Vec<u8> {
    let n = samples.len();
    let batches: Vec<&[Vec<u8>]> = samples.chunks(2).collect();
    let head = [&b"LDFZ01\0\0"[..], &[1, 0, 0, 0], &word(n), &word(2), &word(batches.len())].concat();
    let (mut end, mut offsets) = (0, word(0).to_vec());
    for sample in samples {
        end += sample.len();
        offsets.extend(word(end));
    }
    let mut at = head.len() + offsets.len() + 24 * batches.len();
    let (mut table, mut packed) = (Vec::new(), Vec::new());
    for (number, batch) in batches.iter().enumerate() {
        let bytes = batch.concat();
        let zstd = zstd::encode_all(&bytes[..], 3).unwrap();
        for number in [2 * number, batch.len(), at, 0, zstd.len(), bytes.len()] {
            table.extend(word(number));
        }
        at += zstd.len();
        packed.extend(zstd);
    }
    [head, offsets, table, packed].concat()
}

fn leaf() -> serde_json::Value {
    serde_json::json!({"type": null, "context": null, "children_spec": []})
}

/// The text of a dictionary with these keys, each with a value.
fn dictionary(keys: &[&str]) -> String {
    let keys_text = serde_json::to_string(keys).unwrap();
    let leaves: Vec<_> = keys.iter().map(|_| leaf()).collect();
    serde_json::json!([1, {"type": "builtins.dict", "context": keys_text, "children_spec": leaves}]).to_string()
}

fn config(fields: &[TestField<'_>]) -> serde_json::Value {
    let names: Vec<&str> = fields.iter().map(|(name, ..)| *name).collect();
    serde_json::json!({
        "compression": null, "chunk_bytes": 64_000_000, "chunk_size": null, "encryption": null, "item_loader": "PyTreeLoader",
        "data_format": fields.iter().map(|(_, format, _)| *format).collect::<Vec<_>>(),
        "data_spec": dictionary(&names),
    })
}

fn write(folder: &Path, config: &serde_json::Value, name: &str, bytes: &[u8], (n, length): (usize, usize)) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
    let chunks = [serde_json::json!({"chunk_bytes": length, "chunk_size": n, "dim": null, "filename": name})];
    let index = serde_json::json!({"chunks": chunks, "config": config, "updated_at": "0"});
    std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

fn save(folder: &Path, fields: &[TestField<'_>]) {
    let bytes = chunk(&samples(fields));
    write(folder, &config(fields), "chunk-0-0.bin", &bytes, (fields[0].2.len(), bytes.len()));
}

fn ints(values: &[i64]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_le_bytes().to_vec()).collect()
}

fn images_and_labels() -> Vec<TestField<'static>> {
    vec![("image", "jpeg", vec![PNG.to_vec(); 3]), ("class", "int", ints(&[2, 0, 1]))]
}

fn listed(folder: &Path) -> Listing {
    list(folder, &ListOptions::default()).unwrap()
}

fn image(listing: &Listing, idx: usize) -> Vec<u8> {
    let mut out = Vec::new();
    listing.append_image(idx, u64::MAX, &mut out).unwrap();
    out
}

fn said(folder: &Path) -> String {
    let options = ListOptions { from: Some(DataFormat::LitData), ..ListOptions::default() };
    refused(folder, &options).replace(folder.to_str().unwrap(), "d")
}

/// A tensor of bytes: the number of its type, the number of dimensions and their lengths in big-endian order, and its values.
fn tensor(code: u32, shape: &[u32], values: &[u8]) -> Vec<u8> {
    let numbers = [code, u32::try_from(shape.len()).unwrap()];
    let words = numbers.iter().chain(shape).flat_map(|number| number.to_be_bytes());
    words.chain(values.iter().copied()).collect()
}

#[test]
fn every_serializer_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let pil = |values: &[u8]| [&word(2)[..], &word(1), &word(1), b"L", values].concat();
    let numpy = |values: &[u8]| [&word(4)[..], &word(2), &word(1), &word(2), values].concat();
    let fields: Vec<TestField<'_>> = vec![
        ("bytes", "bytes", vec![vec![], vec![0xff]]),
        ("class", "int", ints(&[1, 0])),
        ("file", "file:png", vec![PNG.to_vec(), PNG.to_vec()]),
        ("flag", "bool", vec![vec![1], vec![0]]),
        ("float", "float", vec![0.5_f64.to_le_bytes().to_vec(), f64::NAN.to_le_bytes().to_vec()]),
        ("image", "image:png", vec![PNG.to_vec(), PNG.to_vec()]),
        (
            "json",
            "json",
            vec![b"{\"a\": 1}".to_vec(), [&[5][..], &word(1), &word(1), b"a", &[8, 2, 0, 0, 0, 0, 0, 0, 0]].concat()],
        ),
        ("mask", "pil", vec![pil(&[3, 4]), pil(&[5, 6])]),
        ("numpy", "numpy", vec![numpy(&[1, 2]), numpy(&[3, 4])]),
        ("row", "no_header_numpy:9", vec![vec![0; 8], vec![1; 8]]),
        ("tensor", "tensor", vec![tensor(11, &[3, 1, 2], &[7; 6]), tensor(11, &[3, 1, 2], &[8; 6])]),
        ("text", "str", vec![b"a cat".to_vec(), "\u{e9}".as_bytes().to_vec()]),
        ("vector", "no_header_tensor:10", vec![vec![0; 6], vec![1; 6]]),
    ];
    save(folder.path(), &fields);
    let listing = listed(folder.path());
    assert_eq!((listing.len(), image(&listing, 1)), (2, PNG.to_vec()));
    assert_eq!([listing.label(0), listing.label(1)], [Some(1), Some(0)]);
    let column = |name: &str| &listing.columns().iter().find(|column| column.name == name).unwrap().values;
    let texts = |values: &ColumnValues| match values {
        ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.iter().map(str::to_owned).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(texts(column("text")), ["a cat", "\u{e9}"]);
    assert_eq!(texts(column("json")), ["{\"a\":1}", "{\"a\":2}"]);
    let item = |name: &str, idx: usize| {
        let field = listing.fields().iter().find(|field| field.name == name).unwrap();
        let mut out = Vec::new();
        field.store.append(idx, u64::MAX, &mut out).unwrap();
        (field.store.content(idx), out)
    };
    let array = |dtype, shape: &[u64]| Content::of_array(ArrayType { dtype, shape: shape.to_vec() });
    assert_eq!(item("flag", 0), (array(DType::Bool, &[]), vec![1]));
    assert_eq!(item("float", 0), (array(DType::F64, &[]), 0.5_f64.to_le_bytes().to_vec()));
    assert_eq!(item("numpy", 1), (array(DType::U8, &[1, 2]), vec![3, 4]));
    assert_eq!(item("row", 1), (array(DType::F32, &[2]), vec![1; 8]));
    assert_eq!(item("tensor", 1), (array(DType::U8, &[3, 1, 2]), vec![8; 6]));
    assert_eq!(item("vector", 1), (array(DType::Bf16, &[3]), vec![1; 6]));
    assert_eq!(item("bytes", 1), (Content::Bytes, vec![0xff]));
    assert_eq!(item("file", 0), (Content::File, PNG.to_vec()));
    assert!(listing.has_masks());
}

#[test]
fn compressed_chunks_are_unpacked() {
    let fields = images_and_labels();
    let samples = samples(&fields);
    let whole = chunk(&samples);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let each: Vec<Vec<u8>> = samples.iter().map(|sample| zstd(sample)).collect();
    let early = whole.len() - 4 * (samples.len() + 2);
    for (level, name, bytes, length) in [
        (None, "chunk-0-0.zstd:3.bin", zstd(&whole), whole.len()),
        // Early versions did not count the offsets.
        (None, "chunk-0-0.zstd:3.bin", zstd(&whole), early),
        (Some("batch"), "chunk-0-0.bin", batched(&samples), batched(&samples).len()),
        (Some("sample"), "chunk-0-0.bin", chunk(&each), chunk(&each).len()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(&fields);
        config["compression"] = "zstd:3".into();
        config["compression_level"] = level.into();
        write(folder.path(), &config, name, &bytes, (3, length));
        let listing = listed(folder.path());
        assert_eq!([0, 1, 2].map(|idx| listing.label(idx)), [Some(2), Some(0), Some(1)]);
        assert_eq!(image(&listing, 2), PNG);
        write(folder.path(), &config, name, &bytes[..bytes.len() - 9], (3, length));
        let said = said(folder.path());
        assert!(said.contains("cannot be unpacked: ") || said.contains("expected"), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&fields);
    config["compression"] = "zstd:3".into();
    write(folder.path(), &config, "chunk-0-0.zstd:3.bin", &zstd(&[&whole[..], &[0; 99]].concat()), (3, whole.len()));
    assert!(said(folder.path()).ends_with("unpacked bytes, as in 'index.json', found more"));
    config["compression"] = "lz4".into();
    write(folder.path(), &config, "chunk-0-0.lz4.bin", &whole, (3, whole.len()));
    assert_eq!(said(folder.path()), "d/index.json: the compression 'lz4' is not supported");
}

#[test]
fn names_come_from_the_tree_and_the_only_images_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let fields = images_and_labels();
    let bytes = chunk(&samples(&fields));
    let mut config = config(&fields);
    let spec = |tree: serde_json::Value| serde_json::json!([1, tree]).to_string();
    let tuple = serde_json::json!({"type": "builtins.tuple", "context": "null", "children_spec": [leaf(), leaf()]});
    config["data_spec"] = spec(tuple.clone()).into();
    write(folder.path(), &config, "chunk-0-0.bin", &bytes, (3, bytes.len()));
    let listing = listed(folder.path());
    assert_eq!((image(&listing, 0), listing.label(0)), (PNG.to_vec(), None));
    // Three labels are too few to take them without a name.
    assert_eq!(listing.fields()[0].name, "1");
    let nested = serde_json::json!({"type": "builtins.dict", "context": "[\"x\"]", "children_spec": [tuple]});
    let names = names::of(folder.path(), Some(&spec(nested)), 2).unwrap();
    assert_eq!(names, ["x.0", "x.1"]);
    assert_eq!(names::of(folder.path(), Some(&spec(leaf())), 1).unwrap(), ["data"]);
    assert_eq!(names::of(folder.path(), None, 2).unwrap(), ["0", "1"]);
    for (tree, expected) in [
        (
            serde_json::json!({"type": "mine", "context": "[]", "children_spec": []}),
            "expected samples of dictionaries, lists and tuples, found 'mine'",
        ),
        (
            serde_json::json!({"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []}),
            "expected 0 keys for 0 values, found 1",
        ),
        (
            serde_json::json!({"type": "builtins.dict", "context": "{", "children_spec": []}),
            "the keys cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (leaf(), "expected a name for each of 2 values in data_format, found 1"),
    ] {
        let error = names::of(Path::new("i"), Some(&spec(tree)), 2).unwrap_err();
        assert_eq!(error.to_string(), format!("i: data_spec: {expected}"));
    }
}

#[test]
fn what_is_not_read_is_refused() {
    let fields = images_and_labels();
    let bytes = chunk(&samples(&fields));
    let refused = |key: &str, value: serde_json::Value| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(&fields);
        config[key] = value;
        write(folder.path(), &config, "chunk-0-0.bin", &bytes, (3, bytes.len()));
        said(folder.path())
    };
    let encrypted = refused("encryption", serde_json::json!({"algorithm": "fernet", "level": "sample"}));
    assert_eq!(encrypted, "d/index.json: the chunks are encrypted");
    let tokens = refused("item_loader", "TokensLoader".into());
    assert_eq!(tokens, "d/index.json: expected samples of the loader PyTreeLoader, found TokensLoader");
    for (format, expected) in [
        ("pickle", "the values are pickles, and loading them would run code"),
        ("graph:pickle", "the values are pickles, and loading them would run code"),
        ("jpeg_array", "each value is a list of images, and a pack stores one image for each field of a sample"),
        ("no_header_tensor:4", "the values are complex numbers ('no_header_tensor:4'), which packs do not have"),
        ("no_header_tensor:21", "the serializer 'no_header_tensor:21' is not supported"),
        ("mine", "the serializer 'mine' is not supported"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &[images_and_labels(), vec![("meta", format, vec![b"x".to_vec(); 3])]].concat());
        assert_eq!(said(folder.path()), format!("d/index.json: field 'meta': {expected}"));
        let options = ListOptions { leave_out: vec!["meta".to_owned()], ..ListOptions::default() };
        assert_eq!(list(folder.path(), &options).unwrap().len(), 3);
    }
    // Only the table is left of samples in an Arrow table.
    let folder = tempfile::tempdir().unwrap();
    let table =
        [chunk(&[Vec::new(), Vec::new(), Vec::new()]), b"ARROW1".to_vec(), word(6).to_vec(), b"LDARW01\0".to_vec()]
            .concat();
    write(folder.path(), &config(&fields), "chunk-0-0.bin", &table, (3, table.len()));
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("chunk-0-0.bin: the rows are in an Arrow table"), "{error}");
    assert!(error.hint().unwrap().contains("pyarrow.parquet.write_table"));
}

#[test]
fn what_is_wrong_with_a_value_is_said_with_its_chunk_sample_and_name() {
    let nested = |bytes: &[&[u8]]| bytes.concat();
    for (format, value, expected) in [
        ("str", b"\xff".to_vec(), "expected text: invalid utf-8 sequence of 1 bytes from index 0"),
        ("int", vec![0; 4], "expected 8 bytes for a number of type i64, found 4"),
        ("tensor", vec![0; 7], "expected the type and the shape of an array, found 7 bytes"),
        ("tensor", tensor(4, &[1], &[0]), "the values are complex numbers, which packs do not have"),
        ("tensor", tensor(21, &[1], &[0]), "expected the number of an element type, found 21"),
        (
            "tensor",
            [tensor(0, &[], &[])[..4].to_vec(), vec![0, 0, 0, 9]].concat(),
            "expected the lengths of 9 dimensions, found 8 bytes",
        ),
        ("tensor", tensor(0, &[2], &[0]), "expected 8 bytes for f32 values of shape [2], found 1"),
        ("numpy", tensor(0, &[2], &[0]), "expected the lengths of 16777216 dimensions, found 13 bytes"),
        ("no_header_tensor:0", vec![0; 7], "expected 4 bytes for f32 values of shape [1], found 7"),
        ("json", vec![12], "expected the tag of a value, found 12"),
        ("json", vec![11, 0], "expected no bytes after the value, found 1"),
        ("json", nested(&[&[2], &word(9)]), "expected fewer items than fit into 0 bytes, found more"),
        ("json", nested(&[&[6], &word(9), &word(0)]), "expected keys for 9 dictionaries, found none"),
        ("json", nested(&[&[9], &f64::NAN.to_le_bytes()]), "expected a number that JSON can express, found NaN"),
        (
            "json",
            nested(&[&nested(&[&[5], &word(1), &word(0)]).repeat(80), &[11]]),
            "expected at most 64 nested dictionaries, found more",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &[images_and_labels(), vec![("x", format, vec![value; 3])]].concat());
        assert_eq!(said(folder.path()), format!("d/chunk-0-0.bin: sample 0: x: {expected}"), "{format}");
    }
}

#[test]
fn a_number_that_json_cannot_express_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let nan = [&[3][..], &word(1), &f64::NAN.to_le_bytes()].concat();
    save(folder.path(), &[images_and_labels(), vec![("x", "json", vec![nan; 3])]].concat());
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    assert!(error.hint().unwrap().starts_with("write numbers that JSON can express"), "{error}");
}

#[test]
fn keys_that_become_the_same_name_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    save(
        folder.path(),
        &[images_and_labels(), vec![("a.b", "int", ints(&[0; 3])), ("a.b", "int", ints(&[0; 3]))]].concat(),
    );
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("index.json: the field 'a.b' appears twice"), "{error}");
    assert!(error.hint().unwrap().starts_with("rename the keys"));
}

#[test]
fn fields_that_may_be_none_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let fields = [images_and_labels(), vec![("v", "int", ints(&[3, 0, 0]))]].concat();
    let (bytes, mut config) = (chunk(&samples(&fields)), config(&fields));
    config["types"] = serde_json::json!({"image": "pil", "v": {"optional": true, "type": "int"}});
    write(folder.path(), &config, "chunk-0-0.bin", &bytes, (3, bytes.len()));
    let warnings: Vec<String> = listed(folder.path()).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["values of 'v' that are None are stored as 0 or as empty strings, and packed as such"]);
    // Samples that are not dictionaries have only one type, as a string.
    config["types"] = "int".into();
    write(folder.path(), &config, "chunk-0-0.bin", &bytes, (3, bytes.len()));
    assert!(listed(folder.path()).warnings().is_empty());
}

#[test]
fn the_length_of_a_chunk_is_compared_with_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let fields = images_and_labels();
    let bytes = chunk(&samples(&fields));
    let n = bytes.len();
    for (length, is_right) in [(n, true), (n - 4 * (3 + 2), true), (n - 1, false), (5, false)] {
        write(folder.path(), &config(&fields), "chunk-0-0.bin", &bytes, (3, length));
        let listed = list(folder.path(), &ListOptions::default());
        let said = listed.map(|listing| listing.len()).map_err(|error| error.to_string());
        let expected = format!("expected {length} bytes, as in 'index.json', found {n}");
        assert_eq!(said.is_ok(), is_right, "{said:?}");
        assert!(said.map_or_else(|error| error.ends_with(&expected), |found| found == 3), "{length}");
    }
}

#[test]
fn a_batch_that_leads_out_of_the_file_is_refused() {
    let fields = images_and_labels();
    let mut config = config(&fields);
    config["compression"] = "zstd".into();
    config["compression_level"] = "batch".into();
    let whole = batched(&samples(&fields));
    let reason = |at: usize, to: u32| {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
        write(folder.path(), &config, "chunk-0-0.bin", &bytes, (3, bytes.len()));
        said(folder.path())
    };
    assert_eq!(reason(8, 2), "d/chunk-0-0.bin: expected version 1 of a chunk in batches, found 2");
    assert_eq!(reason(12, 4), "d/chunk-0-0.bin: expected 3 samples, as in 'index.json', found 4");
    let n = whole.len();
    let batches = reason(20, u32::MAX);
    assert_eq!(
        batches,
        format!(
            "d/chunk-0-0.bin: table of batches: d/chunk-0-0.bin: expected 103079215080 bytes at byte 40, found {}",
            n - 40
        )
    );
    assert!(reason(40 + 8, u32::MAX).contains("batch 0: d/chunk-0-0.bin: expected "));
    assert!(reason(40 + 20, 9).ends_with("batch 0: expected at most 9 unpacked bytes, found more"));
    assert!(reason(40 + 20, 900).contains("batch 0: expected 900 unpacked bytes, found"));
    assert!(reason(28, u32::MAX).contains("table of samples: expected increasing offsets"));
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let fields = [
        images_and_labels(),
        vec![
            ("x", "tensor", vec![tensor(0, &[1], &[0; 4]); 3]),
            ("y", "json", vec![[&[1][..], &word(1), &word(1), b"a"].concat(); 3]),
        ],
    ]
    .concat();
    save(folder.path(), &fields);
    let index = std::fs::read(folder.path().join("index.json")).unwrap();
    let damaged = |whole: &[u8], name: &str, n: usize| {
        survives_in(DataFormat::LitData, folder.path(), name, n, |dice| {
            let mut bytes = whole.to_vec();
            damage(&mut bytes, dice);
            bytes
        });
    };
    damaged(&index, "index.json", 1500);
    std::fs::write(folder.path().join("index.json"), &index).unwrap();
    damaged(&chunk(&samples(&fields)), "chunk-0-0.bin", 2000);
    damaged(&batched(&samples(&fields)), "chunk-0-0.bin", 2000);
}
