//! ArrayRecord, written and read by Google's library.

use super::mds::assert_same;
use super::python_of_peers;
use super::records::{converted, labels, refused};
use crate::support::Folder;

#[test]
fn every_record_equals_that_of_the_library() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    if python_of_peers("array_record", &["arrayrecord.py", "write", &here]).is_none() {
        return;
    }
    for name in ["none", "zstd", "brotli", "snappy", "padded"] {
        let file = format!("{name}.array_record");
        let pack = converted(&folder, &file, &[]);
        let path = folder.path(&file).to_str().unwrap().to_owned();
        let read = python_of_peers("array_record", &["arrayrecord.py", "read", &path]).unwrap();
        assert_same(&pack, &read);
        assert_eq!(labels(&pack)[..4], [0, 1, 2, 0], "{name}");
    }
    let said = refused(&folder, "transposed.array_record", &[]);
    assert!(said.contains("its records are transposed"), "{said}");
}
