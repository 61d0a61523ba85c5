//! FFCV's files, written by the library `ffcv`.

use super::mds::assert_same;
use super::python_of_peers;
use super::records::{assert_records, converted, labels, refused};
use crate::support::Folder;

fn sources() -> Option<Folder> {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python_of_peers("ffcv", &["beton.py", "write", &here]).map(|_| folder)
}

#[test]
fn every_value_is_the_one_that_the_library_finds() {
    let Some(folder) = sources() else { return };
    let path = folder.path("all.beton").to_str().unwrap().to_owned();
    let read = python_of_peers("ffcv", &["beton.py", "read", &path]).unwrap();
    let pack = converted(&folder, "all.beton", &[]);
    assert_records(&pack, 0..20);
    assert_same(&pack, &read);
}

#[test]
fn files_are_splits_and_custom_fields_are_refused() {
    let Some(folder) = sources() else { return };
    let val = converted(&folder, "splits", &["--split", "val"]);
    assert_records(&val, 0..20);
    assert_eq!(labels(&val)[..4], [0, 1, 2, 0]);
    let said = refused(&folder, "custom.beton", &[]);
    assert!(said.contains("field 'mine': the field has a custom type"), "{said}");
}
