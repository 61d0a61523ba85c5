use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::source::store::Span;

#[test]
fn bytes_have_the_origin_of_the_last_mark_before_them() {
    let mut origin = Origin::default();
    let packed = origin.add(Packed::Stream(Path::new("a.gz").into()));
    // Bytes before the first mark have no origin.
    origin.begin(10, Piece { packed, place: 1, ..Piece::default() });
    origin.at(14, 100);
    origin.begin(20, Piece { packed, place: 2, ..Piece::default() });
    origin.end(30);
    let find = |offset, bytes| origin.find(offset, bytes).map(|(_, piece, offset)| (piece.place, offset));
    assert_eq!(find(9, 1), None);
    assert_eq!(find(10, 4), Some((1, 0)));
    assert_eq!(find(15, 5), Some((1, 101)));
    // These bytes lie in two pieces.
    assert_eq!(find(19, 2), None);
    assert_eq!(find(20, 10), Some((2, 0)));
    assert_eq!(find(30, 1), None);
    assert_eq!(find(20, u64::MAX), None);
}

/// Unpacks spans of a compressed file with the bytes 0, 1, 2 ...
fn unpacked(spans: &[(u64, u64)]) -> Result<Vec<Vec<u8>>, ConvertError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gz");
    let mut packing = GzEncoder::new(std::fs::File::create(&path).unwrap(), Compression::fast());
    let bytes: Vec<u8> = (0..200).collect();
    packing.write_all(&bytes).unwrap();
    packing.finish().unwrap();
    let options = ListOptions { spool: Some(folder.path().to_owned()), ..ListOptions::default() };
    let again = Again { options, check: &|| Ok(()) };
    let mut spans: Vec<Span> =
        spans.iter().map(|(offset, bytes)| Span { file: 0, offset: *offset, bytes: *bytes }).collect();
    let packed = [Packed::Stream(path.as_path().into())];
    let file = unpack(&packed, &[Piece::default()], spans.iter_mut().collect(), &again, Path::new("p.plan"))?;
    Ok(spans.iter().map(|span| file.bytes_at(span.offset, span.bytes).unwrap()).collect())
}

#[test]
fn only_the_bytes_that_are_wanted_are_unpacked_in_any_order_and_shared() {
    let wanted = [(90, 3), (5, 2), (6, 4), (90, 3), (0, 0), (199, 1)];
    let expected: [&[u8]; 6] = [&[90, 91, 92], &[5, 6], &[6, 7, 8, 9], &[90, 91, 92], &[], &[199]];
    assert_eq!(unpacked(&wanted).unwrap(), expected);
}

#[test]
fn bytes_that_are_not_there_are_an_error_that_names_the_file() {
    let error = unpacked(&[(190, 20)]).unwrap_err().to_string();
    assert!(error.ends_with("a.gz: expected at least 210 bytes when unpacked, found fewer"), "{error}");
}
