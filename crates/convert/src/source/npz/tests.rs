//! Zip files with wrong or unusual headers of members.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use packds_format::DType;
use tempfile::TempDir;

use crate::sink::{Member, npy_file, zip_directory};
use crate::source::{ListOptions, list, list_splits};
use crc_fast::CrcAlgorithm::Crc32IsoHdlc;

/// A zip file with one deflated member, `content`, that states an unpacked size of `bytes`.
fn deflated(content: &[u8], bytes: u64) -> Vec<u8> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content).unwrap();
    let packed = packed.finish().unwrap();
    let mut member = Member::stored("image.npy", bytes, 0);
    (member.is_deflated, member.stored) = (true, packed.len() as u64);
    let mut file = member.local_header();
    file.extend_from_slice(&packed);
    let end = file.len() as u64;
    file.extend(zip_directory(&[member], end));
    file
}

fn refused(file: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.npz");
    fs::write(&path, file).unwrap();
    list(&path, &ListOptions::default()).unwrap_err().to_string()
}

#[test]
fn unpacking_stops_where_the_header_says_that_the_array_ends() {
    let mut content = npy_file(DType::U8, &[2, 4, 4], &[7; 32]);
    content.resize(64 << 20, 0);
    let error = refused(&deflated(&content, 160));
    assert!(error.contains("expected 160 bytes when unpacked, found more"), "{error}");
    let content = npy_file(DType::U8, &[2, 4, 4], &[7; 31]);
    let error = refused(&deflated(&content, 160));
    assert!(error.contains("expected 160 bytes when unpacked, found fewer"), "{error}");
}

#[test]
fn encrypted_members_and_unknown_methods_are_refused() {
    let file = deflated(&npy_file(DType::U8, &[1, 2, 2], &[1; 4]), 132);
    let entry = file.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let mut encrypted = file.clone();
    encrypted[entry + 8] |= 1;
    assert!(refused(&encrypted).contains("encrypted"));
    let mut lzma = file;
    lzma[entry + 10] = 14;
    assert!(refused(&lzma).contains("method 14"));
}

#[test]
fn keys_of_several_splits_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mnist.npz");
    let (mut file, mut members) = (Vec::new(), Vec::new());
    for (key, n) in [("x_train", 3_u64), ("y_train", 3), ("x_test", 2), ("y_test", 2)] {
        let shape: &[u64] = if key.starts_with('x') { &[n, 2, 2] } else { &[n] };
        let bytes: u64 = shape.iter().product();
        let content = npy_file(DType::U8, shape, &vec![1; usize::try_from(bytes).unwrap()]);
        let mut member = Member::stored(&format!("{key}.npy"), content.len() as u64, file.len() as u64);
        member.crc = crc_fast::checksum(Crc32IsoHdlc, &content).try_into().unwrap();
        file.extend(member.local_header());
        file.extend_from_slice(&content);
        members.push(member);
    }
    let end = file.len() as u64;
    file.extend(zip_directory(&members, end));
    fs::write(&path, file).unwrap();
    let error = list(&path, &ListOptions::default()).unwrap_err().to_string();
    assert!(error.contains("'test', 'train'"), "{error}");
    let listings = list_splits(&path, &ListOptions::default()).unwrap();
    let found: Vec<_> = listings.iter().map(|(name, l)| (name.as_str(), l.len())).collect();
    assert_eq!(found, [("test", 2), ("train", 3)]);
    assert_eq!(listings[1].1.label(0), Some(1));
}
