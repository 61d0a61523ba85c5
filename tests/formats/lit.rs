//! LitData, written and read by the library `litdata`.

use super::mds::assert_same;
use super::python_of_peers;
use super::records::{assert_records, converted, items, labels, refused};
use crate::support::Folder;

fn sources() -> Option<Folder> {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python_of_peers("litdata", &["lit.py", "write", &here]).map(|_| folder)
}

#[test]
fn every_value_equals_that_of_the_library() {
    let Some(folder) = sources() else { return };
    let raw = folder.path("raw").to_str().unwrap().to_owned();
    let read = python_of_peers("litdata", &["lit.py", "read", &raw]).unwrap();
    for source in ["raw", "chunk", "batch", "sample"] {
        let pack = converted(&folder, source, &[]);
        assert_same(&pack, &read);
        assert_eq!(items(&pack, "meta.b")[3], b"[3,\"x3\"]");
    }
}

#[test]
fn the_library_reads_an_export() {
    let Some(folder) = sources() else { return };
    let pack = converted(&folder, "raw", &[]);
    let ran = folder.packds(&["export", "raw.pack", "again", "--to", "litdata", "--shard", "7"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let read = python_of_peers("litdata", &["lit.py", "read", folder.path("again").to_str().unwrap()]).unwrap();
    assert_same(&pack, &read);
}

#[test]
fn folders_are_splits_and_tuples_have_numbers() {
    let Some(folder) = sources() else { return };
    assert_records(&converted(&folder, "splits", &["--split", "val"]), 0..20);
    let pack = converted(&folder, "tuple", &[]);
    assert_records(&pack, 0..20);
    assert_eq!(labels(&pack)[..4], [0, 1, 2, 0]);
}

#[test]
fn pickles_can_be_left_out_and_arrow_tables_are_refused() {
    let Some(folder) = sources() else { return };
    let said = refused(&folder, "pickled", &[]);
    assert!(said.contains("field 'meta': the values are pickles"), "{said}");
    assert_records(&converted(&folder, "pickled", &["--leave-out", "meta"]), 0..20);
    let said = refused(&folder, "table", &[]);
    assert!(said.contains("the rows are in an Arrow table"), "{said}");
}
