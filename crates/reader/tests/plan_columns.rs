//! Selections from a pack's columns.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use packds_reader::plan::{Choice, Integers};
use packds_reader::{Pack, open};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1").join(name)
}

/// 6 samples. Each has a class and a source id.
fn pack() -> Pack {
    open(golden("full_footer.pack")).unwrap()
}

fn labels(pack: &Pack) -> Vec<i64> {
    let column = pack.schema().index_of("label").unwrap();
    let column = pack.column(column).unwrap();
    (0..pack.n_samples()).map(|sample| column.integer(sample).unwrap()).collect()
}

#[test]
fn a_predicate_is_asked_once_for_each_sample_and_selects_what_it_says() {
    let pack = pack();
    let labels = labels(&pack);
    let wanted = labels[1];
    assert!(labels.iter().any(|label| *label != wanted));
    let mut asked = Vec::new();
    let found = Choice::where_integer(&pack, "label", |label| {
        asked.push(label);
        label == wanted
    });
    assert_eq!(asked, labels);
    let at = |sample: u64| labels[usize::try_from(sample).unwrap()];
    let expected = Choice::filter(6, |sample| at(sample) == wanted);
    assert_eq!(found.unwrap(), expected);
    let bytes = wanted.to_le_bytes();
    let found = Choice::where_bytes(&pack, "label", |value| value == bytes);
    assert_eq!(found.unwrap(), expected);
    assert!(expected.memory_bytes() <= 6 + 16);
}

#[test]
fn integers_serve_balanced_and_weighted_choices() {
    let pack = pack();
    let (all, column) = (labels(&pack), Integers::open(&pack, "label").unwrap());
    let found: Vec<i64> = (0..6).map(|sample| column.at(sample)).collect();
    assert_eq!(found, all);
    assert_eq!(column.at(6), 0);
    let by_column = Choice::balanced(6, |sample| column.at(sample)).unwrap();
    let by_list = Choice::balanced(6, |sample| all[usize::try_from(sample).unwrap()]).unwrap();
    assert_eq!(by_column, by_list);
}

#[test]
fn columns_that_are_missing_or_no_numbers_are_refused() {
    let told = |name: &str, column: &str| {
        let pack = open(golden(name)).unwrap();
        let error = Integers::open(&pack, column).unwrap_err();
        assert!(!error.is_data(), "{error}");
        let refused = Choice::where_integer(&pack, column, |_| true).unwrap_err();
        assert_eq!(refused.to_string(), error.to_string());
        error.reason()
    };
    let missing = told("full_footer.pack", "clas");
    assert!(missing.contains("clas") && missing.contains("label"), "{missing}");
    for column in ["f64", "f32", "u64", "bf16"] {
        let whole = told("dtypes_column.pack", column);
        assert!(whole.contains(&format!("column `{column}`: expected one whole number")));
    }
    let body = told("strided_one_field.pack", "image");
    assert!(body.contains("not a column"), "{body}");
}

#[test]
fn a_damaged_column_is_not_chosen_by() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.pack");
    let mut bytes = fs::read(golden("full_footer.pack")).unwrap();
    let whole = pack();
    let label = whole.schema().index_of("label").unwrap();
    let column = whole.one().unwrap().columns().iter().find(|c| c.field == label).unwrap();
    bytes[usize::try_from(column.offset).unwrap()] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = open(&path).unwrap();
    let error = Choice::where_integer(&damaged, "label", |_| true).unwrap_err();
    assert!(error.is_data() && error.reason().contains("label"), "{error}");
}
