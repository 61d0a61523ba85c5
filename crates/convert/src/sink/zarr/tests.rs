//! Round trips through Zarr.

use std::path::Path;

use packds_format::{DType, Field};

use crate::data_format::DataFormat;
use crate::export::{ExportCodec, ExportOptions};
use crate::sink::test_pack::{assert_same, back, fields, pack_of, to};

/// The path and the content of every file below a folder, sorted.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            out.push((path, bytes));
        }
    }
    out.sort();
    out
}

#[test]
fn every_version_codec_and_shard_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(11, fields());
    let codecs = [None, Some(ExportCodec::Gzip(4)), Some(ExportCodec::Zstd(3)), Some(ExportCodec::Blosc)];
    for (number, codec) in codecs.into_iter().enumerate() {
        for (version, chunk, shard) in [
            (2, None, None),
            (3, Some(3), None),
            (3, Some(20), None),
            (3, Some(2), Some(6)),
            (3, Some(2), Some(1 << 40)),
        ] {
            let options = ExportOptions {
                codec,
                zarr_version: Some(version),
                chunk_samples: chunk,
                shard_samples: shard,
                jobs: 3,
                ..ExportOptions::default()
            };
            let name = format!("{number}-{version}-{chunk:?}-{shard:?}.zarr");
            let target = folder.path().join(name);
            let report = to(&pack, &target, &options).unwrap();
            assert!(report.lost.is_empty(), "{:?}", report.lost);
            let back = back(&target, Some(DataFormat::Zarr));
            assert_same(&pack, &back);
            assert_eq!(back.path(5).unwrap(), pack.path(5).unwrap());
        }
    }
}

#[test]
fn threads_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(23, fields());
    let export = |jobs| {
        let target = folder.path().join("same.zarr");
        let options =
            ExportOptions { codec: Some(ExportCodec::Blosc), shard_samples: Some(8), jobs, ..ExportOptions::default() };
        to(&pack, &target, &options).unwrap();
        let files = files(&target);
        std::fs::remove_dir_all(target).unwrap();
        files
    };
    assert_eq!(export(1), export(4));
}

#[test]
fn no_name_leads_out_of_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = fields();
    for (number, name) in ["../column", "zarr.json", "__c", "path"].iter().enumerate() {
        let dtype = if number == 0 { DType::I8 } else { DType::Bf16 };
        all.insert(1, Field::tensor(name, dtype, &[2]));
    }
    let target = folder.path().join("in").join("out.zarr");
    std::fs::create_dir(folder.path().join("in")).unwrap();
    let report = to(&pack_of(3, all), &target, &ExportOptions::default()).unwrap();
    let outside: Vec<_> = std::fs::read_dir(folder.path().join("in")).unwrap().collect();
    assert_eq!(outside.len(), 1);
    assert!(target.join("_._column/c.0.0").is_file());
    assert!(target.join("field-zarr.json/c.0.0").is_file());
    let lost = report.lost.join("\n");
    for word in ["`../column`", "`field-__c`", "bfloat16", "paths, because another field"] {
        assert!(lost.contains(word), "{word}: {lost}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(3, fields());
    for (version, chunk, shard, word) in [
        (2, None, Some(8), "need Zarr version 3"),
        (3, Some(4), Some(6), "not a multiple of the chunk size 4"),
        (3, Some(u32::MAX), Some(1 << 40), "not a multiple"),
        (3, Some(1 << 30), Some(1 << 40), "exceed 1 GiB"),
        (4, None, None, "version 2 or 3"),
    ] {
        let options = ExportOptions {
            zarr_version: Some(version),
            chunk_samples: chunk,
            shard_samples: shard,
            ..ExportOptions::default()
        };
        let target = folder.path().join("no.zarr");
        let error = to(&pack, &target, &options).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
        assert!(!target.exists());
    }
}
