use std::path::Path;

use crate::{Pack, ReadError, open};

fn golden(name: &str) -> Pack {
    open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1").join(name)).unwrap()
}

#[track_caller]
fn assert_selects(pack: &str, condition: &str, expected: &[u64]) {
    assert_eq!(golden(pack).select(condition).unwrap(), expected, "{condition}");
}

#[track_caller]
fn assert_refused(pack: &str, condition: &str, expected: &str) {
    let error = golden(pack).select(condition).unwrap_err();
    assert!(matches!(error, ReadError::Condition { .. }), "{error:?}");
    assert_eq!(error.reason(), format!("condition: {expected}"), "{condition}");
}

#[test]
fn numbers_are_compared() {
    let selects = |condition, expected: &[u64]| assert_selects("full_footer.pack", condition, expected);
    selects("width < 102", &[0, 1]);
    selects("width <= 102", &[0, 1, 2]);
    selects("width > 103.5", &[4, 5]);
    selects("width>=1e2 and height = 70003", &[3]);
    selects("source_id == 5", &[0]);
    selects("source_id <> 5", &[1, 2, 3, 4, 5]);
    selects("source_id in (0, +1, -7, 2.0)", &[3, 4, 5]);
    selects("source_id not in (0, 1)", &[0, 1, 2, 3]);
    selects("valid = false", &[4]);
    selects("sample >= 4", &[4, 5]);
    selects("width = 99999999999999999999999", &[]);
    selects("width is null", &[]);
}

#[test]
fn classes_are_named() {
    let selects = |condition, expected: &[u64]| assert_selects("full_footer.pack", condition, expected);
    selects("label = 'ant'", &[0, 5]);
    selects("label = 0", &[0, 5]);
    selects("label in ('bee', 'cat', 4)", &[1, 2, 3]);
    selects("\"label\" != 'ant'", &[1, 2, 3, 4]);
}

#[test]
fn sets_of_classes_pass_with_any_of_theirs() {
    let selects = |condition, expected: &[u64]| assert_selects("labels_multi_hot.pack", condition, expected);
    selects("classes = 1", &[0, 1, 4]);
    selects("classes != 1", &[2, 3]);
    selects("classes in (2, 23)", &[0, 3]);
    selects("classes = 4 and classes = 13", &[1, 2]);
    selects("classes = 1000 or classes = -1", &[]);
    selects("classes is null", &[]);
}

#[test]
fn lists_of_numbers_pass_with_any_of_theirs() {
    let selects = |condition, expected: &[u64]| assert_selects("boxes.pack", condition, expected);
    selects("ids = -5401438947037063545", &[1]);
    selects("ids != -5401438947037063545", &[0, 2]);
    selects("ids not in (-5401438947037063545, -7872529855720266889)", &[0]);
    selects("ids < 0", &[1, 2]);
    selects("ids is null", &[0]);
    assert_refused("boxes.pack", "boxes = 3", "column `boxes` holds arrays: it cannot be tested with a condition");
}

#[test]
fn paths_and_texts_are_compared() {
    assert_selects("full_footer.pack", "path = 'class 1/img_4.jpg' or path in ('x', 'class 0/img_0.jpg')", &[0, 4]);
    assert_selects("full_footer.pack", "path >= 'class 2'", &[2, 5]);
    assert_selects("bytes_string_json.pack", "text is null", &[0]);
    assert_selects("bytes_string_json.pack", "text = 'caption 2: café 🐍'", &[2]);
    assert_selects("bytes_string_json.pack", "boxes is not null and sample < 2", &[0, 1]);
}

#[test]
fn numbers_in_chunks_are_compared() {
    assert_selects("scalars.pack", "i > -4000000000000000000", &[1, 2]);
    assert_selects("scalars.pack", "i = -5575663950343508916", &[0]);
}

#[test]
fn half_and_single_floats_equal_the_decimals_that_display_them() {
    assert_selects("dtypes_column.pack", "bf16 = 49020930 or f64 < -1e50", &[1, 2]);
}

#[test]
fn not_binds_before_and_before_or() {
    let selects = |condition, expected: &[u64]| assert_selects("full_footer.pack", condition, expected);
    selects("not width < 104", &[4, 5]);
    selects("sample = 0 or sample = 1 and sample = 2", &[0]);
    selects("(sample = 0 or sample = 1) and sample = 1", &[1]);
    selects("NOT sample = 0 AND NOT (sample = 1 OR sample > 2)", &[2]);
    selects("not not sample = 3", &[3]);
}

#[test]
fn mistakes_are_located() {
    let refused = |condition, expected| assert_refused("full_footer.pack", condition, expected);
    refused("", "expected a column at character 1, found the end; for example: label = 'cat' and source_width >= 512");
    refused(
        "width >",
        "expected a number, or a string in single quotes at character 8, found the end; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "width = 3 label = 2",
        "expected `and`, `or` or the end at character 11, found `label = 2`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "width 3",
        "expected =, !=, <, <=, >, >=, `in` or `is null` at character 7, found `3`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "é # 3",
        "expected a column, a value or an operator at character 3, found `# 3`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "label = 'ant",
        "expected a closing quote at character 9, found `'ant`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "label in (1, 2",
        "expected `,` or `)` at character 15, found the end; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "label is 3",
        "expected `null` at character 10, found `3`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "width = 1x",
        "expected a number at character 9, found `1x`; for example: label = 'cat' and source_width >= 512",
    );
    refused(
        "width not 3",
        "expected `in` at character 11, found `3`; for example: label = 'cat' and source_width >= 512",
    );
    let deep = "(".repeat(100_000);
    refused(
        &deep,
        "expected at most 64 nested conditions at character 65, found `((((((((((((((((((((`; for example: label = 'cat' and source_width >= 512",
    );
}

#[test]
fn columns_and_classes_must_exist() {
    assert_refused(
        "full_footer.pack",
        "labl = 1",
        "no column `labl`; the columns are label, source_id, width, height, valid, crc32c, path, sample",
    );
    assert_refused(
        "full_footer.pack",
        "label = 'ape'",
        "no class `ape` in column `label`; the classes include ant, bee, cat, dog, eel",
    );
    assert_refused(
        "labels_multi_hot.pack",
        "classes = 'ape'",
        "no class `ape` in column `classes`: its classes have no names, so compare it with ids",
    );
}

#[test]
fn values_must_suit_their_column() {
    let refused = assert_refused;
    refused("full_footer.pack", "image = 1", "column `image` holds arrays: it cannot be tested with a condition");
    refused("full_footer.pack", "path = 1", "column `path` holds text: it cannot be tested with a number");
    refused("full_footer.pack", "sample = 'a'", "column `sample` holds numbers: it cannot be tested with a string");
    refused(
        "full_footer.pack",
        "label < 'bee'",
        "column `label` holds numbers: it cannot be tested with < or >: classes have no order",
    );
    refused(
        "labels_multi_hot.pack",
        "classes > 1",
        "column `classes` holds sets of classes: it cannot be tested with < or >: classes have no order",
    );
    refused(
        "bytes_string_json.pack",
        "boxes = 'a'",
        "column `boxes` holds JSON values: it cannot be tested with anything but `is null`",
    );
    refused(
        "bytes_string_json.pack",
        "blob is null",
        "column `blob` holds bytes: it cannot be tested with a condition",
    );
}

#[test]
fn a_damaged_text_is_an_error() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1/bytes_string_json.pack");
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.windows(7).position(|window| window == b"caption").unwrap();
    bytes[at] ^= 1;
    let pack = crate::open_bytes("damaged.pack", bytes).unwrap();
    assert!(matches!(pack.select("text = 'a'"), Err(ReadError::Format { .. })));
    assert_eq!(pack.select("sample = 1").unwrap(), [1]);
}
