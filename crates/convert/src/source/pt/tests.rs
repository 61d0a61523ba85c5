//! Zip files that PyTorch never writes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::store::OpenFile;
use super::super::zip_dir::zip_entries;
use crate::sink::{Member, zip_directory};

#[test]
fn members_beyond_4_gib_are_found_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.zip");
    let file = File::create(&path).unwrap();
    let large = Member::stored("a", 5 << 30, 0);
    let next = Member::stored("b", 3, large.end());
    // Holes in the file take no space on the disk.
    for member in [&large, &next] {
        file.write_all_at(&member.local_header(), member.header).unwrap();
    }
    let end = zip_directory(&[large.clone(), next.clone()], next.end());
    file.write_all_at(&end, next.end()).unwrap();
    let entries = zip_entries(&OpenFile::open(&path).unwrap()).unwrap();
    let places: Vec<_> = entries.iter().map(|e| (e.offset, e.stored)).collect();
    assert_eq!(places, [(large.data(), 5 << 30), (next.data(), 3)]);
    assert_eq!((large.data() % 64, next.data() % 64), (0, 0));
}
