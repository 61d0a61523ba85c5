//! Every kind of malformed pack is rejected with the right error, and the error's fields have the right values.

use std::collections::BTreeMap;

use packds_format::{DType, Field, FormatError, Geometry, Limits, Pack, PackOptions, PackWriter, Schema};

use crate::cases::cases;
use crate::malformed_cases::{first_error, malformed};
use crate::support::{Part, malformed_folder, put, rebuild, reseal, section};

/// The expected error of each malformed pack, from `errors.txt`.
fn expected() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(malformed_folder().join("errors.txt")).unwrap();
    let line = |line: &str| {
        let (name, error) = line.split_once(": ").unwrap();
        (name.to_owned(), error.to_owned())
    };
    text.lines().map(line).collect()
}

#[test]
fn every_malformed_file_gives_its_error() {
    let expected = expected();
    let (mut n_files, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(malformed_folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pack") {
            continue;
        }
        n_files += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let error = first_error(&std::fs::read(&path).unwrap());
        let error = error.unwrap_or_else(|| panic!("{name}: no error was found"));
        assert!(!error.to_string().is_empty());
        let found = format!("{error:?}");
        if expected.get(&name) != Some(&found) {
            wrong.push(format!("{name}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(n_files, expected.len());
}

/// `malformed` reproduces every file exactly, so the origin of each file is known.
#[test]
fn malformed_files_are_those_of_the_cases() {
    let made = malformed();
    if zstd::zstd_safe::version_string() != "1.5.7" {
        println!("frames were written with zstd 1.5.7, bytes not compared");
        return;
    }
    assert_eq!(made.len(), expected().len());
    for (name, bytes) in made {
        let path = malformed_folder().join(format!("{name}.pack"));
        assert!(bytes == std::fs::read(&path).unwrap(), "{name}");
    }
}

#[test]
fn every_variant_about_a_file_has_a_malformed_file() {
    let errors = expected();
    for variant in [
        "TooShort",
        "BadMagic",
        "UnsupportedVersion",
        "UnknownFeatures",
        "NoTrailer",
        "WrongLength",
        "UuidMismatch",
        "ChecksumMismatch",
        "ChunkChecksum",
        "SampleChecksum",
        "NotZero",
        "BadValue",
        "OutOfBounds",
        "UnknownSection",
        "MissingSection",
        "DuplicateSection",
        "BadJson",
        "BadSchema",
        "BadBlock",
        "BadItem",
        "BadPaths",
        "LimitExceeded",
    ] {
        assert!(errors.values().any(|e| e.starts_with(&format!("{variant} "))), "{variant}");
    }
}

fn golden(name: &str) -> Vec<u8> {
    let cases = cases().unwrap();
    cases.iter().find(|case| case.name == name).unwrap().to_bytes().unwrap()
}

#[test]
fn wrong_calls_are_told_from_wrong_files() {
    let pack = Pack::open(golden("full_footer")).unwrap();
    match pack.schema().index_of("picture") {
        Err(FormatError::NoSuchField { name, known }) => {
            assert_eq!(name, "picture");
            assert!(known.starts_with("image, label, source_id"));
        }
        other => panic!("{other:?}"),
    }
    let out_of_range = [
        pack.item(0, 6).unwrap_err(),
        pack.item(7, 0).unwrap_err(),
        pack.chunk_entry(2).unwrap_err(),
        pack.path(u64::MAX).unwrap_err(),
    ];
    let found = out_of_range.map(|e| match e {
        FormatError::OutOfRange { what, index, len } => (what, index, len),
        other => panic!("{other:?}"),
    });
    let expected = [("sample", 6, 6), ("field", 7, 7), ("chunk", 2, 2), ("sample", u64::MAX, 6)];
    assert_eq!(found, expected);
    assert!(matches!(pack.column(0), Err(FormatError::WrongUse(_))));
    let nothing = |_, _: &[u8]| Ok::<(), FormatError>(());
    assert!(matches!(pack.for_each_item(1, 0, &[], nothing), Err(FormatError::WrongUse(_))));
    assert!(matches!(Geometry::new(0, 0), Err(FormatError::BadValue { .. })));
}

#[test]
fn a_target_that_fails_is_an_io_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[])]).unwrap();
    let result = PackWriter::new(Full, PackOptions::new(schema, 1));
    assert!(matches!(result, Err(FormatError::Io(e)) if e.kind() == std::io::ErrorKind::StorageFull));
}

#[test]
fn limits_are_the_readers_to_set() {
    let file = golden("full_footer");
    let limits = |chunk_bytes, json_bytes| Limits { chunk_bytes, json_bytes };
    let open = |limits| Pack::open_with(file.as_slice(), limits).map(|_| ());
    open(limits(192, 1 << 20)).unwrap();
    let chunk = open(limits(191, 1 << 20)).unwrap_err();
    assert!(matches!(chunk, FormatError::LimitExceeded { what: "bytes of a chunk", limit: 191, found: 192 }));
    let json = open(limits(192, 100)).unwrap_err();
    assert!(matches!(json, FormatError::LimitExceeded { what: "schema", limit: 100, .. }));
}

#[test]
fn later_minor_versions_and_ignorable_features_are_accepted() {
    let mut file = golden("full_footer");
    put(&mut file, 10, &7_u16.to_le_bytes());
    put(&mut file, 24, &(1_u64 << 63 | 1).to_le_bytes());
    reseal(&mut file);
    let pack = Pack::open(file.as_slice()).unwrap();
    assert_eq!((pack.one().unwrap().header().minor, pack.one().unwrap().header().ignorable_features), (7, 1 << 63 | 1));
    assert!(first_error(&file).is_none());
}

#[test]
fn unknown_sections_and_schema_keys_are_skipped() {
    let news = Part { tag: *b"news", flags: 0, bytes: vec![7; 100] };
    let file = rebuild(&golden("full_footer"), |parts| parts.insert(2, news));
    assert!(first_error(&file).is_none(), "{:?}", first_error(&file));
    assert!(section(&file, b"news").is_some());
    let json = r#"{"fields":[{"name":"x","kind":"tensor","store":"body","dtype":"u8","shape":[4,5,3],"later":{}}],"later":[1],"must_understand":[]}"#;
    let file = rebuild(&golden("short_last_chunk"), |parts| parts[0].bytes = json.into());
    assert!(first_error(&file).is_none(), "{:?}", first_error(&file));
}

/// Optional sections may be missing or come first. Missing sections read as empty. Everything else reads the same.
#[test]
fn sections_may_come_in_any_order_and_optional_ones_may_be_missing() {
    let file = rebuild(&golden("full_footer"), |parts| {
        parts.reverse();
        parts.retain(|part| ![*b"STAT", *b"CLAS", *b"PROV", *b"PATH"].contains(&part.tag));
    });
    assert!(first_error(&file).is_none(), "{:?}", first_error(&file));
    let pack = Pack::open(file).unwrap();
    assert_eq!(pack.stats().unwrap(), packds_format::Stats::default());
    assert!(pack.classes().unwrap().is_empty() && pack.provenance().unwrap() == "{}");
    assert_eq!(pack.path(0).unwrap(), None);
}
