//! docs/reference/format.md and the code agree: its tables are parsed and compared with the constants.

use std::fmt::Write;

use packds_format::constants::*;
use packds_format::{Coding, DType, Filter, Permutation, Role, SectionTag, crc32c, hash_bytes, label_icc, mix64};

use crate::support::golden_folder;

/// Name, offset and size of each header field.
const HEADER_LAYOUT: [(&str, usize, usize); 18] = [
    ("magic", 0, 8),
    ("major", 8, 2),
    ("minor", 10, 2),
    ("header_len", 12, 4),
    ("required_features", 16, 8),
    ("ignorable_features", 24, 8),
    ("align_log2", 32, 1),
    ("checksum_kind", 33, 1),
    ("reserved", 34, 2),
    ("chunk_samples", 36, 4),
    ("pack_uuid", 40, 16),
    ("dataset_uuid", 56, 16),
    ("schema_off", 72, 8),
    ("schema_len", 80, 8),
    ("data_off", 88, 8),
    ("sample_stride", 96, 8),
    ("chunk_stride", 104, 8),
    ("schema_crc32c", 112, 4),
];

/// Name, offset and size of each trailer field.
const TRAILER_LAYOUT: [(&str, usize, usize); 8] = [
    ("file_len", 0, 8),
    ("footer_off", 8, 8),
    ("footer_len", 16, 8),
    ("n_samples", 24, 8),
    ("pack_uuid", 32, 16),
    ("footer_crc32c", 48, 4),
    ("trailer_crc32c", 52, 4),
    ("end_magic", 56, 8),
];

fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/format.md");
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the first table after `below` (a heading or text) that has this first column.
fn table(below: &str, first_column: &str) -> Vec<Vec<String>> {
    let page = page();
    let start = page.find(below).unwrap_or_else(|| panic!("{below:?} is not in docs/reference/format.md"));
    let head = format!("| {first_column} |");
    let lines = page[start..].lines().skip_while(|line| !line.starts_with(&head));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "no table {first_column:?} below {below:?}");
    rows
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number")),
    }
}

fn hex(bytes: &[u8]) -> String {
    let text = bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x} ").unwrap();
        text
    });
    text.trim_end().to_owned()
}

fn layout(rows: &[Vec<String>]) -> Vec<(String, usize, usize)> {
    let row = |r: &Vec<String>| (r[2].clone(), r[0].parse().unwrap(), r[1].parse().unwrap());
    rows.iter().map(row).collect()
}

fn owned(layout: &[(&str, usize, usize)]) -> Vec<(String, usize, usize)> {
    layout.iter().map(|&(name, at, size)| (name.to_owned(), at, size)).collect()
}

/// The end of a table's last row, computed from the columns `offset` and `size`.
fn end(rows: &[Vec<String>]) -> u64 {
    rows.iter().fold(0, |end, row| {
        assert_eq!(number(&row[0]), end, "gap or overlap before {row:?}");
        end + number(&row[1])
    })
}

#[test]
fn header_and_trailer_tables_are_the_layouts() {
    let header = table("## Header", "offset");
    assert_eq!(layout(&header), owned(&HEADER_LAYOUT));
    assert_eq!(end(&header), 116);
    assert!(header[0][3].contains(&hex(&MAGIC)));
    assert!(header[1][3].starts_with(&MAJOR.to_string()));
    assert_eq!(number(&header[3][3]), HEADER_BYTES);
    let trailer = table("## Trailer", "offset");
    assert_eq!(layout(&trailer), owned(&TRAILER_LAYOUT));
    assert_eq!(end(&trailer), TRAILER_BYTES);
    assert!(trailer[7][3].contains(&hex(&END_MAGIC)));
    assert!(page().contains(&format!("# The pack format, version {MAJOR}.{MINOR}")));
}

#[test]
fn the_dumped_bytes_are_the_golden_files() {
    let file = std::fs::read(golden_folder().join("strided_one_field.pack")).unwrap();
    for line in file[..64].chunks(16) {
        assert!(page().contains(&hex(line)), "{}", hex(line));
    }
}

#[test]
fn record_sizes_are_those_of_the_tables() {
    assert_eq!(end(&table("### Explicit", "offset")), PART_ENTRY_BYTES);
    assert_eq!(end(&table("## Columns", "offset")), 24);
    assert_eq!(end(&table("## Footer", "offset")), SECTION_ENTRY_BYTES);
    let kinds = table("Section `CHNK`", "kind");
    let expected = [(KIND_STRIDED, "strided", 4), (KIND_EXPLICIT, "explicit", CHUNK_ENTRY_BYTES)];
    for (row, (kind, name, size)) in kinds.iter().zip(expected) {
        assert_eq!((number(&row[0]), row[1].as_str(), number(&row[2])), (kind.into(), name, size));
    }
    let page = page();
    for text in [
        format!("end of the previous part aligned to {PART_ALIGN}"),
        format!("one for each {COLUMN_BLOCK_BYTES} bytes, including an incomplete last block"),
        format!("of the last chunk aligned to {COLUMN_ALIGN}"),
        format!("end of the table aligned to {SECTION_ALIGN}"),
        format!("`ceil(paths / {PATH_GROUP})`"),
    ] {
        assert!(page.contains(&text), "{text:?} is not in docs/reference/format.md");
    }
    assert_eq!(SECTION_MUST_UNDERSTAND, 1);
}

#[test]
fn dtypes_are_those_of_the_table() {
    let found = table("| dtype | bytes |", "dtype");
    let expected = DType::ALL.map(|d| vec![d.name().into(), d.size().to_string(), d.numpy().into()]);
    assert_eq!(found, expected);
    for d in DType::ALL {
        assert_eq!(serde_json::to_string(&d).unwrap(), format!("\"{}\"", d.name()));
    }
}

#[test]
fn codings_filters_roles_and_tags_are_those_of_the_tables() {
    let codings = table("| coding | name |", "coding");
    assert_eq!(codings.len(), Coding::ALL.len());
    for (row, coding) in codings.iter().zip(Coding::ALL) {
        assert_eq!(number(&row[0]), u64::from(coding.number()));
        assert_eq!(row[1], format!("{coding:?}").to_lowercase());
        assert!(coding.extension().is_none_or(|e| row[2] == e));
    }
    for row in table("## Codecs and filters", "filter") {
        let filter: Filter = serde_json::from_str(&format!("\"{}\"", row[0])).unwrap();
        assert_eq!(u64::from(filter.number()), number(&row[1]));
    }
    let roles = table("| role | dtype |", "role");
    assert_eq!(roles.len(), 18);
    for row in roles {
        let role: Role = serde_json::from_str(&format!("\"{}\"", row[0])).unwrap();
        assert_eq!(role.name(), row[0]);
    }
    let tags = [
        (SectionTag::SCHEMA, "yes"),
        (SectionTag::CHUNKS, "yes"),
        (SectionTag::COLUMNS, "yes"),
        (SectionTag::STATS, "no"),
        (SectionTag::CLASSES, "no"),
        (SectionTag::PROVENANCE, "no"),
        (SectionTag::PATHS, "no"),
    ];
    let expected = tags.map(|(tag, required)| (format!("`{}`", tag.0.escape_ascii()), required));
    let rows = table("## Footer", "tag");
    let found = rows.iter().map(|row| (format!("`{}`", row[0]), row[1].as_str()));
    assert!(found.eq(expected));
}

#[test]
fn feature_bits_are_those_of_the_table() {
    let bits = [("EXPLICIT_CHUNKS", FEATURE_EXPLICIT_CHUNKS), ("ZSTD", FEATURE_ZSTD), ("RAGGED", FEATURE_RAGGED)];
    let rows = table("## Features and compatibility", "bit");
    let found = rows.iter().map(|row| (row[1].as_str(), 1 << number(&row[0])));
    assert!(found.eq(bits));
}

#[test]
fn test_vectors_hold() {
    for row in table("## Permutation", "n") {
        let permutation = Permutation::new(number(&row[0]), number(&row[1]));
        for (position, expected) in (0_u64..).zip(row[2].split(", ")) {
            assert_eq!(permutation.at(position), number(expected), "{row:?}");
        }
    }
    for row in table("## Permutation", "x") {
        assert_eq!(mix64(number(&row[0])), number(&row[1]));
    }
    for row in table("## Permutation", "seed") {
        let bytes = row[1].trim_matches('`').as_bytes();
        assert_eq!(hash_bytes(number(&row[0]), bytes), number(&row[2]), "{row:?}");
    }
    assert!(page().contains(&format!("is {:#x}. The checksum of no", crc32c(b"123456789"))));
    assert_eq!(crc32c(b""), 0);
    let icc = label_icc([0, 0, 1, 0, 1, 1].into_iter(), 3).unwrap();
    assert!((icc + 1.0 / 9.0).abs() < 1e-12);
}

#[test]
fn every_section_of_the_page_is_in_its_table_of_contents() {
    let page = page();
    for title in page.lines().filter_map(|line| line.strip_prefix("## ")) {
        let anchor = title.to_lowercase().replace(' ', "-");
        assert!(page.contains(&format!("](#{anchor})")), "{title}");
    }
}
