//! `packds add-field`, and tables in Parquet: values of tables and arrays as new fields.

#![cfg(test)]

use std::fs;

use packds_format::{DType, Field, FieldKind, Pack, Scalar, Store};
use serde_json::{Value, json};

use crate::formats::python;
use crate::support::{Folder, SamplePack, fixture, provenance};

type Opened = Pack<Vec<u8>>;

fn opened(folder: &Folder, name: &str) -> Opened {
    Pack::open(fs::read(folder.path(name)).unwrap()).unwrap()
}

/// A `.npy` file.
fn npy(folder: &Folder, name: &str, descr: &str, shape: &str, data: &[u8]) {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let start = [&b"\x93NUMPY\x01\x00"[..], &118_u16.to_le_bytes()].concat();
    fs::write(folder.path(name), [&start, header.as_bytes(), data].concat()).unwrap();
}

/// A pack with 10 samples, and its report for the command.
fn ten(folder: &Folder) -> Opened {
    SamplePack::default().write(folder, "a.pack")
}

/// Asserts that the fields of `old` are unchanged in `new`.
fn assert_kept(new: &Opened, old: &Opened) {
    assert_eq!(new.n_samples(), old.n_samples());
    for (number, field) in old.schema().fields().iter().enumerate().filter(|(_, f)| f.name != "sample_crc32c") {
        let after = new.schema().index_of(&field.name).unwrap();
        assert_eq!(new.schema().fields()[after], *field);
        for sample in 0..old.n_samples() {
            assert!(new.item(after, sample).unwrap() == old.item(number, sample).unwrap(), "{}", field.name);
            assert_eq!(new.path(sample).unwrap(), old.path(sample).unwrap());
        }
    }
}

fn texts(pack: &Opened, field: &str) -> Vec<String> {
    let number = pack.schema().index_of(field).unwrap();
    let item = |sample| String::from_utf8(pack.item(number, sample).unwrap().into_owned()).unwrap();
    (0..pack.n_samples()).map(item).collect()
}

fn numbers(pack: &Opened, field: &str) -> Vec<f64> {
    let number = pack.schema().index_of(field).unwrap();
    let dtype = pack.schema().fields()[number].dtype;
    let item = |sample| Scalar::each(dtype, &pack.item(number, sample).unwrap()).map(Scalar::nearest_f64).collect();
    (0..pack.n_samples()).flat_map(|sample| -> Vec<f64> { item(sample) }).collect()
}

fn field<'a>(pack: &'a Opened, name: &str) -> &'a Field {
    &pack.schema().fields()[pack.schema().index_of(name).unwrap()]
}

#[test]
fn arrays_become_columns_or_fields_of_the_body() {
    let folder = Folder::new();
    let old = ten(&folder);
    let add = |args: &[&str]| {
        let report = folder.packds(&[&["add-field", "a.pack", "o.pack", "--force", "--json"], args].concat()).json();
        assert_eq!(report["n_samples"], json!(10), "{report}");
        folder.packds(&["verify", "o.pack", "-q"]).ok();
        let new = opened(&folder, "o.pack");
        assert_kept(&new, &old);
        new
    };
    npy(&folder, "age.npy", "<u2", "(10,)", &(0..10_u16).flat_map(|n| (n * 300).to_le_bytes()).collect::<Vec<u8>>());
    let new = add(&["age.npy"]);
    assert_eq!((field(&new, "age").store, field(&new, "age").dtype), (Store::Column, DType::U16));
    assert_eq!(numbers(&new, "age"), (0..10).map(|n| f64::from(n * 300)).collect::<Vec<_>>());
    assert_eq!(provenance(&new)["edit"]["options"]["table"], json!("age.npy"));
    // Big-endian, and a vector.
    let big: Vec<u8> = (0..30_u16).flat_map(|n| f32::from(n).to_le_bytes().into_iter().rev()).collect();
    npy(&folder, "v.npy", ">f4", "(10, 3)", &big);
    let new = add(&["v.npy", "--name", "clip"]);
    assert_eq!((field(&new, "clip").dtype, &*field(&new, "clip").shape), (DType::F32, &[3][..]));
    assert_eq!(numbers(&new, "clip"), (0..30).map(f64::from).collect::<Vec<_>>());
    // An item of more than 1024 bytes is no column.
    npy(
        &folder,
        "large.npy",
        "<f8",
        "(10, 200)",
        &(0..2000).flat_map(|n| f64::from(n).to_le_bytes()).collect::<Vec<u8>>(),
    );
    let new = add(&["large.npy", "-j", "1"]);
    assert_eq!(field(&new, "large").store, Store::Body);
    assert_eq!(numbers(&new, "large"), (0..2000).map(f64::from).collect::<Vec<_>>());
    npy(&folder, "flag.npy", "|b1", "(10,)", &[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(field(&add(&["flag.npy"]), "flag").dtype, DType::Bool);
    npy(
        &folder,
        "name.npy",
        "<U2",
        "(10,)",
        &(0..10_u32).flat_map(|n| [(97 + n).to_le_bytes(), [0; 4]].concat()).collect::<Vec<u8>>(),
    );
    let new = add(&["name.npy"]);
    assert_eq!((field(&new, "name").kind, texts(&new, "name").join("")), (FieldKind::String, "abcdefghij".to_owned()));
}

#[test]
fn columns_of_tables_are_matched_by_path_or_number() {
    let folder = Folder::new();
    let old = ten(&folder);
    let path = |sample| String::from_utf8(old.path(sample).unwrap().unwrap()).unwrap();
    let mut csv = "path,age,score,ok,note,one\n".to_owned();
    let mut by_number = "sample\tscore\n".to_owned();
    let mut lines = String::new();
    for sample in (0..10).rev() {
        csv += &format!("{},{sample},{sample}.5,{},\"n, {sample}\",1\n", path(sample), sample % 2 == 0);
        by_number += &format!("{sample}\t{}.25\n", sample);
        lines += &format!("{{\"path\": \"{}\", \"box\": [{sample}, 1], \"who\": \"p{sample}\"}}\n", path(sample));
    }
    fs::write(folder.path("t.csv"), &csv).unwrap();
    fs::write(folder.path("t.tsv"), &by_number).unwrap();
    fs::write(folder.path("t.jsonl"), &lines).unwrap();
    let add = |args: &[&str]| {
        folder.packds(&[&["add-field", "a.pack", "o.pack", "--force", "-q"], args].concat()).ok();
        folder.packds(&["verify", "o.pack", "-q"]).ok();
        let new = opened(&folder, "o.pack");
        assert_kept(&new, &old);
        new
    };
    let new = add(&["t.csv"]);
    let types = ["age", "score", "ok", "note"].map(|name| (field(&new, name).kind, field(&new, name).dtype));
    let tensor = FieldKind::Tensor;
    let expected = [(tensor, DType::I64), (tensor, DType::F64), (tensor, DType::Bool), (FieldKind::String, DType::U8)];
    assert_eq!(types, expected);
    assert_eq!(numbers(&new, "age"), (0..10).map(f64::from).collect::<Vec<_>>());
    assert_eq!(numbers(&new, "score"), (0..10).map(|n| f64::from(n) + 0.5).collect::<Vec<_>>());
    assert_eq!(texts(&new, "note")[7], "n, 7");
    let new = add(&["t.csv", "--column", "age", "--name", "years", "--dtype", "u8"]);
    assert_eq!((field(&new, "years").dtype, new.schema().index_of("score").is_err()), (DType::U8, true));
    let new = add(&["t.csv", "--column", "one", "--column", "age", "--dtype", "string"]);
    assert_eq!((texts(&new, "one")[0].as_str(), texts(&new, "age")[9].as_str()), ("1", "9"));
    let new = add(&["t.tsv", "--dtype", "f16"]);
    assert_eq!((numbers(&new, "score")[4], field(&new, "score").dtype), (4.25, DType::F16));
    let new = add(&["t.jsonl"]);
    assert_eq!((field(&new, "box").kind, texts(&new, "box")[3].as_str()), (FieldKind::Json, "[3,1]"));
    assert_eq!(texts(&new, "who")[3], "p3");
    // The same samples and values give the same bytes, other values another id.
    add(&["t.tsv", "-j", "1"]);
    let (one, uuid) = (fs::read(folder.path("o.pack")).unwrap(), opened(&folder, "o.pack").pack_uuid());
    add(&["t.tsv", "-j", "2"]);
    assert!(fs::read(folder.path("o.pack")).unwrap() == one);
    fs::write(folder.path("t.tsv"), by_number.replace("4.25", "4.5")).unwrap();
    assert_ne!(add(&["t.tsv"]).pack_uuid(), uuid);
}

#[test]
fn a_set_gets_fields_and_texts_are_compressed_as_the_other_fields() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    folder.packds(&["convert", source.to_str().unwrap(), "a.pack", "--chunk", "4", "--codec", "zstd", "-q"]);
    folder.packds(&["split", "a.pack", "p.pack", "--folds", "2", "-q"]).ok();
    folder.packds(&["append", "s.packs", "p.fold0.pack", "p.fold1.pack", "-q"]).ok();
    let rows: Vec<String> = (0..20).map(|sample| format!("{sample},text {sample}")).collect();
    fs::write(folder.path("t.csv"), format!("sample,note\n{}\n", rows.join("\n"))).unwrap();
    folder.packds(&["add-field", "s.packs", "o.pack", "t.csv", "-q"]).ok();
    folder.packds(&["verify", "o.pack", "-q"]).ok();
    let new = opened(&folder, "o.pack");
    assert!(!field(&new, "note").codec.is_none() && texts(&new, "note")[19] == "text 19");
    let found = folder.packds(&["diff", "s.packs", "o.pack", "--json"]).json();
    assert_eq!((&found["fields"]["added"], &found["n_equal"]), (&json!(["note"]), &json!(20)));
    // What is left out again leaves the pack as it was.
    folder.packds(&["drop-field", "o.pack", "back.pack", "note", "-q"]).ok();
    assert_eq!(folder.packds(&["diff", "s.packs", "back.pack", "-q"]).code, 0);
    let dry = folder.packds(&["add-field", "a.pack", "dry.pack", "t.csv", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["bytes_out"]), (&json!(true), &json!(0)));
    assert!(!folder.path("dry.pack").exists());
}

#[test]
fn parquet_tables_give_fields_and_labels() {
    let folder = Folder::new();
    let source = fixture("images/same_size");
    folder.packds(&["convert", source.to_str().unwrap(), "a.pack", "-q"]).ok();
    let labels = folder.packds(&["labels", "a.pack"]).ok();
    fs::write(folder.path("labels.tsv"), format!("sample\tid\tlabel\tpath\n{labels}")).unwrap();
    let table = "import sys, pyarrow.csv as c, pyarrow.parquet as p, pyarrow as a; \
                 t = c.read_csv(sys.argv[1], parse_options=c.ParseOptions(delimiter='\\t')).drop(['sample']); \
                 t = t.append_column('w', t['id'].cast(a.uint32())); p.write_table(t, sys.argv[2], row_group_size=7)";
    let paths = ["labels.tsv", "t.parquet"].map(|name| folder.path(name).to_str().unwrap().to_owned());
    python(&["-c", table, &paths[0], &paths[1]]);
    let old = opened(&folder, "a.pack");
    folder.packds(&["add-field", "a.pack", "o.pack", "t.parquet", "--column", "w", "-q"]).ok();
    let new = opened(&folder, "o.pack");
    assert_kept(&new, &old);
    assert_eq!((numbers(&new, "w"), field(&new, "w").dtype), (numbers(&old, "label"), DType::U32));
    for (args, says) in [
        (&["--column", "nothing"][..], "no column `nothing`"),
        (&["--dtype", "u8"], "the columns of a Parquet file have types"),
    ] {
        let ran = folder.packds(&[&["add-field", "a.pack", "x.pack", "t.parquet"], args].concat());
        assert!(ran.code != 0 && ran.stderr.contains(says), "{ran:?}");
    }
    // The table has the class names or ids of another pack.
    folder.packds(&["reorder", "a.pack", "r.pack", "-q"]).ok();
    let ran = folder.packds(&["relabel", "r.pack", "l.pack", "t.parquet"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(folder.packds(&["diff", "r.pack", "l.pack", "-q"]).code, 0);
    folder.packds(&["subset", "a.pack", "few.pack", "--samples", "0-3", "-q"]).ok();
    let ran = folder.packds(&["relabel", "few.pack", "x.pack", "t.parquet"]);
    assert!(ran.code == 1 && ran.stderr.contains("row 4: the pack has no sample with the path"), "{ran:?}");
    let ran = folder.packds(&["add-field", "few.pack", "x.pack", "t.parquet", "--column", "w"]);
    assert!(ran.code == 1 && ran.stderr.contains("row 4: the pack has no sample with the path"), "{ran:?}");
    fs::write(folder.path("bad.parquet"), "PAR1 no PAR1").unwrap();
    for command in ["relabel", "add-field"] {
        let ran = folder.packds(&[command, "a.pack", "x.pack", "bad.parquet"]);
        assert!(ran.code == 1 && ran.stderr.contains("bad.parquet"), "{ran:?}");
    }
    assert!(!folder.path("x.pack").exists());
}

#[test]
fn what_does_not_fit_is_refused_with_the_place() {
    let folder = Folder::new();
    let old = ten(&folder);
    let all: Vec<String> = (0..10).map(|sample| format!("{sample},1")).collect();
    let rows = |n: usize, more: &str| format!("sample,age\n{}\n{more}", all[..n].join("\n"));
    let files = [
        ("missing.csv", rows(7, "")),
        ("extra.csv", rows(10, "10,1\n")),
        ("twice.csv", rows(10, "3,1\n")),
        ("mixed.csv", rows(9, "9,old\n")),
        ("empty.csv", rows(9, "9,\n")),
        ("nokey.csv", "name,age\na,1\n".to_owned()),
        ("both.csv", "path,sample,age\na,0,1\n".to_owned()),
        ("none.csv", "sample,age\n".to_owned()),
        ("only.csv", "sample\n0\n".to_owned()),
        ("label.csv", rows(10, "").replace("age", "label")),
        ("two.csv", "sample,a,b\n0,1,2\n".to_owned()),
        ("table.xlsx", "x".to_owned()),
    ];
    for (name, text) in files {
        fs::write(folder.path(name), text).unwrap();
    }
    npy(&folder, "short.npy", "<u2", "(9,)", &[0; 18]);
    npy(&folder, "cut.npy", "<u2", "(10,)", &[0; 18]);
    npy(&folder, "flag.npy", "|b1", "(10,)", &[2; 10]);
    npy(&folder, "image.npy", "|u1", "(10,)", &[2; 10]);
    let before = folder.files(".");
    for (args, says) in [
        (&["missing.csv"][..], "expected a row for each of 10 samples, found none for 3, first for the number '7'"),
        (&["extra.csv"], "line 12: the pack has no sample with the number '10'"),
        (&["twice.csv"], "'3' has a row in line 5 too"),
        (&["mixed.csv"], "line 11: `age`: expected a number, as in line 2, found 'old'"),
        (&["empty.csv"], "line 11: `age` has no value"),
        (&["nokey.csv"], "expected a column `path` or `sample`; the columns are `name`, `age`"),
        (&["both.csv"], "found both"),
        (&["none.csv"], "the table has no rows"),
        (&["only.csv"], "expected a column besides `sample`"),
        (&["label.csv"], "a.pack has a field `label` already"),
        (&["two.csv", "--name", "x"], "--name names one field, but the table has the columns 'a', 'b'"),
        (&["two.csv", "--column", "c"], "no column `c`"),
        (&["two.csv", "--column", "a", "--column", "a"], "--column names `a` twice"),
        (&["table.xlsx"], "pass a .csv, .tsv, .jsonl, .parquet or .npy file"),
        (&["nothing.csv"], "nothing.csv"),
        (&["mixed.csv", "--dtype", "u8"], "line 11: `age`: expected u8, found 'old'"),
        (&["missing.csv", "--dtype", "float"], "f64, string or json"),
        (&["short.npy"], "expected an item for each of 10 samples of a.pack, found 9"),
        (&["cut.npy"], "expected 20 bytes for an array of shape [10], found 18"),
        (&["flag.npy"], "item 0: expected booleans"),
        (&["image.npy"], "a.pack has a field `image` already"),
        (&["short.npy", "--dtype", "u8"], "--dtype cannot be combined with a .npy file"),
        (&["short.npy", "--column", "a"], "--column cannot be combined with a .npy file"),
    ] {
        let ran = folder.packds(&[&["add-field", "a.pack", "o.pack"], args].concat());
        let said = ran.stderr.replace('\n', " ");
        assert!(matches!(ran.code, 1 | 2) && said.contains(says), "{args:?}: {ran:?}");
        let document = folder.packds(&[&["add-field", "a.pack", "o.pack", "--json"], args].concat()).json();
        assert_ne!(document["error"]["message"], Value::Null);
    }
    assert_eq!(folder.files("."), before);
    SamplePack { paths: Some(Vec::new()), ..SamplePack::default() }.write(&folder, "bare.pack");
    fs::write(folder.path("path.csv"), "path,age\na,1\n").unwrap();
    let ran = folder.packds(&["add-field", "bare.pack", "o.pack", "path.csv"]);
    assert!(ran.code == 2 && ran.stderr.contains("the pack has no paths"), "{ran:?}");
    assert_eq!(old.n_samples(), 10);
}
