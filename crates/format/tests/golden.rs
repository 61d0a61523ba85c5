//! Golden packs stay readable forever and are never rewritten. The writer still writes the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::cases::{Case, cases};
use crate::support::golden_folder;
use packds_format::{BlockItems, FormatError, Pack, Store, check_chunk, check_outside_chunks, crc32c};

/// Length, checksum and zstd version of each golden file, from `list.txt`.
fn list() -> BTreeMap<String, (u64, u32, String)> {
    let text = std::fs::read_to_string(golden_folder().join("list.txt")).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let crc = u32::from_str_radix(words[2], 16).unwrap();
        (words[0].to_owned(), (words[1].parse().unwrap(), crc, words[3].to_owned()))
    };
    text.lines().map(line).collect()
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(golden_folder().join(format!("{name}.pack"))).unwrap()
}

#[test]
fn golden_files_are_those_of_the_list_and_of_the_cases() {
    let listed: BTreeSet<String> = list().into_keys().collect();
    let named: BTreeSet<String> = cases().unwrap().iter().map(|c| c.name.to_owned()).collect();
    let files = std::fs::read_dir(golden_folder()).unwrap().map(|f| f.unwrap().path());
    let packs = files.filter(|f| f.extension().is_some_and(|e| e == "pack"));
    let found: BTreeSet<String> = packs.map(|f| f.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, found);
    assert_eq!(named, found);
}

#[test]
fn no_golden_file_was_rewritten() {
    for (name, (len, crc, _)) in list() {
        let bytes = read(&name);
        assert_eq!((u64::try_from(bytes.len()).unwrap(), crc32c(&bytes)), (len, crc), "{name}");
    }
}

#[test]
fn golden_files_read_as_they_were_written() {
    for case in cases().unwrap() {
        compare(&case, &Pack::open(read(case.name)).unwrap());
    }
}

/// The bytes of a zstd frame may change with the version of zstd. In that case, only the decoded bytes are compared.
#[test]
fn the_writer_still_makes_the_golden_bytes() {
    let list = list();
    for case in cases().unwrap() {
        let (bytes, golden) = (case.to_bytes().unwrap(), read(case.name));
        let has_frames = case.name.starts_with("zstd") || case.path(0).is_some();
        if has_frames && list[case.name].2 != zstd::zstd_safe::version_string() {
            println!("{}: written with zstd {}, bytes not compared", case.name, list[case.name].2);
            compare(&case, &Pack::open(bytes).unwrap());
        } else {
            assert!(bytes == golden, "{}: the writer produces different bytes", case.name);
        }
    }
}

/// Compares everything that a reader returns with the case.
fn compare(case: &Case, pack: &Pack<Vec<u8>>) {
    let name = case.name;
    assert_eq!(pack.n_samples(), case.n_samples, "{name}");
    assert_eq!(pack.schema(), &case.options.schema, "{name}");
    assert_eq!(pack.one().unwrap().header().pack_uuid, case.options.pack_uuid, "{name}");
    assert_eq!(pack.one().unwrap().header().dataset_uuid, case.options.dataset_uuid, "{name}");
    assert_eq!(pack.one().unwrap().header().align_log2, case.options.align_log2, "{name}");
    for sample in 0..case.n_samples {
        for field in 0..case.fields().len() {
            let (found, expected) = (pack.item(field, sample).unwrap(), case.item(field, sample));
            assert!(found == expected, "{name}: field {field}, sample {sample}");
        }
        assert_eq!(pack.path(sample).unwrap(), case.path(sample), "{name}: sample {sample}");
        pack.check_sample(sample).unwrap();
    }
    compare_in_bulk(case, pack);
    let footer = case.footer().unwrap();
    assert_eq!(pack.stats().unwrap(), footer.stats, "{name}");
    assert_eq!(pack.classes().unwrap(), footer.classes, "{name}");
    let no_provenance = footer.provenance.is_empty();
    let provenance = if no_provenance { "{}" } else { &footer.provenance };
    assert_eq!(pack.provenance().unwrap(), provenance, "{name}");
    check_outside_chunks(pack).unwrap();
    for chunk in 0..pack.n_chunks() {
        check_chunk(pack, chunk, pack.chunk_bytes_unchecked(chunk).unwrap()).unwrap();
    }
}

/// Compares compressed items block by block. Reading past the last block is an error.
fn compare_by_blocks(case: &Case, pack: &Pack<Vec<u8>>) {
    let name = case.name;
    for (position, (number, field)) in pack.schema().body().enumerate() {
        if field.codec.is_none() {
            continue;
        }
        let mut sample = 0;
        // The buffer is reused for blocks of different sizes.
        let mut items = BlockItems::default();
        for chunk in 0..pack.n_chunks() {
            let bytes = pack.chunk_bytes_unchecked(chunk).unwrap();
            let n_blocks = pack.view_chunk(chunk, bytes).unwrap().parts()[position].n_blocks;
            for block in 0..n_blocks {
                pack.block_items(position, chunk, bytes, block, &mut items).unwrap();
                for within in 0..u32::try_from(items.len()).unwrap() {
                    assert!(
                        items.item(within) == Some(case.item(number, sample).as_ref()),
                        "{name}: {number}, {sample}"
                    );
                    sample += 1;
                }
                assert!(items.item(u32::try_from(items.len()).unwrap()).is_none());
            }
            let beyond = pack.block_items(position, chunk, bytes, n_blocks, &mut items);
            assert!(matches!(beyond, Err(FormatError::OutOfRange { what: "block", .. })));
        }
        assert_eq!(sample, case.n_samples, "{name}");
    }
}

fn compare_in_bulk(case: &Case, pack: &Pack<Vec<u8>>) {
    compare_by_blocks(case, pack);
    let name = case.name;
    for (number, field) in case.fields().iter().enumerate() {
        let mut seen = 0;
        if field.store == Store::Column {
            let column = pack.column(number).unwrap();
            for sample in 0..case.n_samples {
                assert_eq!(column.get(sample).unwrap(), case.item(number, sample), "{name}");
                seen += 1;
            }
            assert_eq!(column.get(case.n_samples), None, "{name}");
        } else {
            for chunk in 0..pack.n_chunks() {
                let bytes = pack.chunk_bytes_unchecked(chunk).unwrap();
                pack.for_each_item(number, chunk, bytes, |sample, item| {
                    assert_eq!(sample, seen, "{name}");
                    assert!(item == case.item(number, sample), "{name}: {number}, {sample}");
                    seen += 1;
                    Ok::<(), FormatError>(())
                })
                .unwrap();
            }
        }
        assert_eq!(seen, case.n_samples, "{name}");
    }
    let mut paths = 0;
    pack.for_each_path(|sample, path| {
        assert_eq!(Some(path.to_vec()), case.path(sample), "{name}");
        paths += 1;
        Ok::<(), FormatError>(())
    })
    .unwrap();
    assert_eq!(paths, if case.path(0).is_some() { case.n_samples } else { 0 }, "{name}");
}
