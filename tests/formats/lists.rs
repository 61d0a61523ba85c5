//! Tables and lists as competitions and papers bring them: read, told or refused with what to do.

use serde_json::{Value, json};

use super::items::{convert, ids, items};
use super::people::{names, refused, told};
use super::python;
use crate::support::Folder;

/// The sources, and their contents.
fn sources() -> (Folder, Value) {
    let folder = Folder::new();
    let written = python(&["lists.py", folder.path("").to_str().unwrap()]);
    (folder, serde_json::from_str(&written).unwrap())
}

/// Checks that a source is told of with these words.
#[track_caller]
fn assert_told(folder: &Folder, source: &str, words: &[&str]) {
    let said = told(folder, source);
    assert!(words.iter().all(|word| said.contains(word)), "{source}: {said}");
}

/// Checks that a source is refused with these words.
#[track_caller]
fn assert_refused(folder: &Folder, source: &str, code: i32, words: &[&str]) {
    let said = refused(folder, source, code);
    assert!(words.iter().all(|word| said.contains(word)), "{source}: {said}");
}

#[test]
fn rows_of_boxes_are_refused_and_other_repeats_are_told() {
    let (folder, _) = sources();
    assert_refused(
        &folder,
        "tables/boxes.csv",
        1,
        &[
            "its 24 rows name 12 images in 'path', and 'xmin', 'ymin', 'xmax', 'ymax' look like boxes",
            ".groupby('path')",
        ],
    );
    let pack = convert(&folder, "tables/boxes.jsonl", &[]);
    assert_eq!(items(&pack, "image").len(), 12);
    assert_told(
        &folder,
        "tables/box.csv",
        &["'xmin', 'ymin', 'xmax', 'ymax' look like boxes, and are packed as fields"],
    );
    assert_told(
        &folder,
        "tables/captions.csv",
        &["the 24 rows name only 12 images in 'image', first 'images/0000.png' again"],
    );
}

#[test]
fn tags_are_labels_if_they_come_back_and_are_told_otherwise() {
    let (folder, _) = sources();
    let pack = convert(&folder, "tables/tags.csv", &[]);
    assert_eq!(names(&pack), ["clear", "haze", "primary", "road"]);
    assert_told(&folder, "tables/tags.csv", &["labels are read from 'tags'", "read as lists of labels"]);
    assert_told(
        &folder,
        "tables/other_tags.csv",
        &["no labels found", "none of the fields 'tags' has a usual name for labels"],
    );
}

#[test]
fn missing_labels_are_bad_samples_and_words_for_them_are_told() {
    let (folder, expected) = sources();
    assert_told(&folder, "tables/none.csv", &["'None' is packed as a class (4 rows of 'label')"]);
    assert_told(&folder, "tables/dash.csv", &["read as names, because '-' in line 2 is no number"]);
    for (name, line) in [("empty.csv", 2), ("na_ids.csv", 2), ("null.jsonl", 1)] {
        let source = format!("tables/{name}");
        let words = format!("the label is missing in line {line} of '{name}'");
        assert_refused(&folder, &source, 1, &[&words, "--on-error skip"]);
    }
    let ran = folder.packds(&["convert", "tables/empty.csv", "skip.pack", "--on-error", "skip"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("8 samples of 2 classes") && ran.stdout.contains("skipped  4 files"), "{ran:?}");
    assert_eq!(expected["labels"].as_array().unwrap().len(), 12);
}

#[test]
fn decimal_commas_are_told_and_refused_as_labels() {
    let (folder, _) = sources();
    assert_told(&folder, "tables/decimal.csv", &["'weight' is packed as text, because of cells such as '0,5'"]);
    let words = ["'0,5' may be a number with a decimal comma", "decimal=','", "write ';' between labels"];
    assert_refused(&folder, "tables/decimal_label.csv", 1, &words);
}

#[test]
fn tables_of_excel_are_read_in_utf_16_and_with_their_separator() {
    let (folder, expected) = sources();
    for name in ["utf16.csv", "sep.csv"] {
        let pack = convert(&folder, &format!("encodings/{name}"), &[]);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        assert_eq!(names(&pack), ["cat", "dog", "\u{e9}ider"], "{name}");
        assert_eq!(items(&pack, "image").len(), 12);
    }
    let words = ["line 4: the text in field 2 is not UTF-8", "iconv -f WINDOWS-1252 -t UTF-8 'latin1.csv'"];
    assert_refused(&folder, "encodings/latin1.csv", 1, &words);
}
