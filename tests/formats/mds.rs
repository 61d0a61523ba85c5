//! MDS, written and read by the library `streaming`.

use std::collections::BTreeMap;

use packds_format::Pack;

use super::python_of_peers;
use super::records::{assert_records, converted, items, labels, refused};
use crate::support::Folder;

fn sources() -> Option<Folder> {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python_of_peers("streaming", &["mds.py", "write", &here]).map(|_| folder)
}

/// Asserts that each field has the bytes, in hexadecimal digits, that the library's own reader returned.
pub(crate) fn assert_same(pack: &Pack<Vec<u8>>, read: &str) {
    let fields: BTreeMap<String, Vec<String>> = serde_json::from_str(read.lines().last().unwrap()).unwrap();
    let hex = |item: &Vec<u8>| item.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (name, values) in fields {
        let found: Vec<String> = items(pack, &name).iter().map(hex).collect();
        assert_eq!(found, values, "{name}");
    }
}

#[test]
fn every_value_equals_that_of_the_library() {
    let Some(folder) = sources() else { return };
    let raw = folder.path("raw").to_str().unwrap().to_owned();
    let read = python_of_peers("streaming", &["mds.py", "read", &raw]).unwrap();
    for source in ["raw", "zstd", "gz", "bz2", "merged", "raw/index.json"] {
        assert_same(&converted(&folder, source, &[]), &read);
    }
    for (source, name) in [("br", "br"), ("snappy", "snappy")] {
        let said = refused(&folder, source, &[]);
        assert!(said.contains(&format!("the compression '{name}' is not supported")), "{said}");
        assert!(said.contains("hint: unpack the files in Python: "), "{said}");
    }
}

#[test]
fn the_library_reads_an_export() {
    let Some(folder) = sources() else { return };
    let pack = converted(&folder, "raw", &[]);
    for images in ["pixels", "files"] {
        let ran = folder.packds(&["export", "raw.pack", images, "--to", "mds", "--shard", "7", "--images", images]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let read = python_of_peers("streaming", &["mds.py", "read", folder.path(images).to_str().unwrap()]).unwrap();
        assert_same(&pack, &read);
    }
}

#[test]
fn folders_are_splits_and_pickles_can_be_left_out() {
    let Some(folder) = sources() else { return };
    assert_records(&converted(&folder, "splits", &["--split", "train"]), 0..15);
    let val = converted(&folder, "splits", &["--split", "val"]);
    assert_records(&val, 15..20);
    assert_eq!(labels(&val), [0, 1, 2, 0, 1]);
    let said = refused(&folder, "pickled", &[]);
    assert!(said.contains("field 'meta': the values are pickles"), "{said}");
    assert!(said.contains("leave it out with --leave-out meta"), "{said}");
    assert_records(&converted(&folder, "pickled", &["--leave-out", "meta"]), 0..1);
}
