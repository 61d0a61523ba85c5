//! WebDataset, written and read by the libraries `webdataset` and `tarfile`.

use std::fs;

use packds_format::DType;

use super::python;
use super::records::{N, assert_records, classes, converted, items, labels, refused};
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["webdataset.py", "write", &here]);
    folder
}

fn ids() -> Vec<i32> {
    (0..i32::try_from(N).unwrap()).map(|i| i % 3).collect()
}

#[test]
fn what_webdataset_writes_is_read() {
    let folder = sources();
    for name in ["one.tar", "one.tar.gz"] {
        let pack = converted(&folder, name, &[]);
        assert_records(&pack, 0..N);
        assert_eq!(labels(&pack), ids());
        assert_eq!(items(&pack, "txt")[7], b"caption 7");
        assert_eq!(items(&pack, "json")[1], br#"{"species":"ant","n":1}"#);
        assert_eq!(items(&pack, "id")[3], 30_i64.to_le_bytes());
        let points = pack.schema().fields().iter().find(|f| f.name == "points").unwrap();
        assert_eq!((points.dtype, points.shape.as_slice()), (DType::F32, &[2, 3][..]));
        assert_eq!(pack.path(5).unwrap().unwrap(), b"a/0005.png");
        let named = converted(&folder, name, &["--label-key", "species"]);
        assert_eq!(classes(&named), ["ant", "sea lion", "zebra"]);
        assert_eq!(labels(&named)[..3], [2, 0, 1]);
    }
}

#[test]
fn folders_and_patterns_of_shards_are_read_with_images_of_several_formats() {
    let folder = sources();
    for source in ["set", "set/s-{000000..000002}.tar"] {
        let pack = converted(&folder, source, &[]);
        assert_eq!(labels(&pack), ids(), "{source}");
        let images = items(&pack, "image");
        assert_eq!(images[4], super::records::pixels(4));
    }
}

#[test]
fn every_kind_of_header_of_tarfile_is_read_and_no_name_leaves_the_folder() {
    let folder = sources();
    for form in ["GNU", "USTAR"] {
        let ran = folder.packds(&["convert", &format!("{form}.tar"), "x.pack", "--keep-order", "--force"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("ignored 20 pickles (first: "), "{ran:?}");
        let pack = converted(&folder, &format!("{form}.tar"), &[]);
        assert_records(&pack, 0..N);
        assert_eq!(labels(&pack), ids());
    }
    // The last sample is an image without a label. Its name leads out of the folder.
    let said = refused(&folder, "PAX.tar", &[]);
    assert!(said.contains("escaped.png: sample 20: expected a member for the field 'cls'"), "{said}");
}

#[test]
fn a_sample_without_its_label_is_skipped_and_listed() {
    let folder = sources();
    let said = refused(&folder, "PAX.tar", &["--dry-run"]);
    assert!(said.contains("hint: --on-error skip leaves out bad samples"), "{said}");
    for (policy, n, key) in [("skip", N, "skipped"), ("substitute", N + 1, "substituted")] {
        let ran =
            folder.packds(&["convert", "PAX.tar", "x.pack", "--keep-order", "--force", "--json", "--on-error", policy]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let report = ran.json();
        assert_eq!(report["n_samples"], n);
        let bad = &report[key][0];
        assert_eq!(bad["path"], "../../escaped.png");
        assert!(bad["reason"].as_str().unwrap().contains("the field 'cls'"), "{bad}");
    }
}

#[test]
fn what_is_exported_is_read_by_webdataset_and_comes_back() {
    let folder = sources();
    // Several chunks: data that was compressed separately must form one stream per shard.
    let pack = converted(&folder, "one.tar", &["--batch", "4"]);
    for (target, args) in [
        ("out.tar", &[][..]),
        ("out.tar.gz", &[]),
        ("shards", &["--to", "webdataset", "--shard", "6"]),
        ("packed", &["--to", "webdataset", "--shard", "6", "--codec", "gzip:1"]),
    ] {
        folder.packds(&[&["export", "one.tar.pack", target], args].concat()).ok();
        let path = folder.path(target);
        let read: serde_json::Value =
            serde_json::from_str(&python(&["webdataset.py", "read", path.to_str().unwrap()])).unwrap();
        assert_eq!(read["packds"], 1);
        assert_eq!(read["shards"], if path.is_dir() { 4 } else { 1 });
        assert_eq!(read["owners"], serde_json::json!([[0, 0, 0, ""]]));
        let rows = read["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 20);
        for (i, row) in rows.iter().enumerate() {
            assert_eq!((&row["same"], &row["points"]), (&true.into(), &true.into()));
            assert_eq!(row["label"], i % 3);
            assert_eq!(row["key"], format!("{i:06}"));
            assert_eq!(row["txt.txt"], format!("caption {i}"));
            assert_eq!(row["json.json"]["n"], i);
        }
        let again = converted(&folder, target, &[]);
        for name in ["image", "label", "points", "txt", "json", "id"] {
            assert_eq!(items(&again, name), items(&pack, name), "{target} {name}");
        }
    }
}

#[test]
fn a_shard_that_is_cut_short_is_refused_with_the_place() {
    let folder = sources();
    let bytes = fs::read(folder.path("one.tar")).unwrap();
    fs::write(folder.path("cut.tar"), &bytes[..30_000]).unwrap();
    let said = refused(&folder, "cut.tar", &[]);
    assert!(said.contains("cut.tar: byte 2"), "{said}");
    assert!(said.contains("the tar file ends too early"), "{said}");
    let bytes = fs::read(folder.path("one.tar.gz")).unwrap();
    fs::write(folder.path("cut.tar.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let said = refused(&folder, "cut.tar.gz", &[]);
    assert!(said.contains("of the unpacked tar file"), "{said}");
}
