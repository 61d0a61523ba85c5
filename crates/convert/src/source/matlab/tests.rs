//! MATLAB files made by hand, and damaged files. `tests/formats` reads files that SciPy wrote.

use std::io::Write;

use super::*;
use crate::source::mutation::{damage, survives};
use crate::source::{list, store};

/// A part of a variable.
fn part(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut part = [kind.to_le_bytes(), u32::try_from(data.len()).unwrap().to_le_bytes()].concat();
    part.extend_from_slice(data);
    part.resize(part.len().next_multiple_of(8), 0);
    part
}

/// A variable whose numbers are stored as bytes.
fn matrix(name: &str, class: u32, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let flags = [class.to_le_bytes(), [0; 4]].concat();
    let shape: Vec<u8> = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
    let parts = [part(6, &flags), part(5, &shape), part(1, name.as_bytes()), part(2, data)].concat();
    part(14, &parts)
}

fn packed(variable: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(variable).unwrap();
    let data = out.finish().unwrap();
    let len = u32::try_from(data.len()).unwrap();
    [&15_u32.to_le_bytes()[..], &len.to_le_bytes(), &data].concat()
}

fn file(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"MATLAB 5.0 MAT-file".to_vec();
    file.resize(124, b' ');
    file.extend_from_slice(b"\0\x01IM");
    file.extend(variables.concat());
    file
}

fn images() -> Vec<u8> {
    (0..8 * 9 * 3 * 5).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

fn svhn() -> Vec<Vec<u8>> {
    let labels = matrix("y", 9, &[5, 1], &[1, 2, 3, 10, 5]);
    vec![packed(&matrix("X", 9, &[8, 9, 3, 5], &images())), labels]
}

fn listed(bytes: &[u8]) -> Result<crate::source::Listing, ConvertError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mat");
    std::fs::write(&path, bytes).unwrap();
    list(&path, &ListOptions::default())
}

fn refused(bytes: &[u8]) -> String {
    let error = listed(bytes).unwrap_err();
    format!("{error}; {}", error.hint().unwrap_or_default())
}

#[test]
fn samples_in_the_last_dimension_become_rows_in_the_order_of_numpy() {
    let listing = listed(&file(&svhn())).unwrap();
    let ids: Vec<_> = (0..5).map(|idx| listing.label(idx).unwrap()).collect();
    assert_eq!((listing.len(), ids), (5, vec![1, 2, 3, 10, 5]));
    let mut image = Vec::new();
    let content = listing.append_image(4, u64::MAX, &mut image).unwrap();
    assert!(matches!(content, store::Content::Pixels(shape) if (shape.height, shape.width) == (8, 9)));
    let at = |h: usize, w: usize, c: usize| images()[h + 8 * (w + 9 * (c + 3 * 4))];
    assert_eq!((image[0], image[1], image[3], image[27]), (at(0, 0, 0), at(0, 0, 1), at(0, 1, 0), at(1, 0, 0)));
    assert!(listing.warnings().iter().any(|w| matches!(w, Warning::SamplesLast { field, .. } if field == "X")));
}

#[test]
fn samples_in_the_first_dimension_stay_there() {
    let images: Vec<u8> = (0..4 * 8 * 9).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let variables = [matrix("images", 9, &[4, 8, 9], &images), matrix("labels", 9, &[1, 4], &[0, 1, 0, 1])];
    let listing = listed(&file(&variables)).unwrap();
    let mut image = Vec::new();
    listing.append_image(1, u64::MAX, &mut image).unwrap();
    assert_eq!((listing.len(), image[1], image[9]), (4, images[1 + 4 * 8], images[1 + 4]));
}

#[test]
fn other_variables_are_left_out_or_refused_by_name() {
    let mut variables = svhn();
    variables.push(matrix("meta", 2, &[1, 1], b"x"));
    let listing = listed(&file(&variables)).unwrap();
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|text| text.contains("'meta': this is a struct")), "{told:?}");
    let said = refused(&file(&[matrix("y", 1, &[1, 5], b"x"), svhn().remove(0)]));
    assert!(said.contains("y: this is a cell array") && said.contains("scipy.io.loadmat"), "{said}");
}

#[test]
fn arrays_whose_samples_may_be_in_either_dimension_are_refused() {
    for variables in [
        vec![matrix("images", 9, &[4, 8, 9], &images()[..288])],
        vec![matrix("images", 9, &[4, 8, 4], &images()[..128]), matrix("labels", 9, &[1, 4], &[0, 1, 0, 1])],
    ] {
        let said = refused(&file(&variables));
        assert!(
            said.contains("cannot tell which dimension of the array [4, 8,") && said.contains("moveaxis"),
            "{said}"
        );
    }
    assert!(refused(&file(&[matrix("meta", 2, &[1, 1], b"x")])).contains("it has no arrays of numbers"));
}

#[test]
fn a_folder_of_files_without_splits_is_not_one_dataset() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["1.mat", "2.mat"] {
        std::fs::write(folder.path().join(name), file(&svhn())).unwrap();
    }
    let error = list(folder.path(), &ListOptions::default()).unwrap_err().to_string();
    assert!(error.contains("2 files of type MATLAB"), "{error}");
}

#[test]
fn lengths_that_the_file_cannot_have_are_refused_before_anything_is_read() {
    let bomb = packed(&matrix("X", 9, &[0xffff, 0xffff, 3, 9], b"x"));
    assert!(refused(&file(&[bomb])).contains("for the dimensions [65535, 65535, 3, 9]"));
    let mut long = matrix("X", 9, &[8, 9, 3, 5], &images());
    long[4] = 0xff;
    assert!(refused(&file(&[long])).contains("bytes of a variable, found"));
    assert!(refused(&file(&[part(3, b"abcd")])).contains("expected a variable, found an element of type 3"));
}

#[test]
fn damaged_files_are_errors() {
    let whole = file(&svhn());
    survives(DataFormat::Matlab, "a.mat", 2000, |dice| {
        let mut bytes = whole.clone();
        damage(&mut bytes, dice);
        bytes
    });
    // The variable itself is damaged before it is compressed.
    survives(DataFormat::Matlab, "a.mat", 2000, |dice| {
        let mut variable = matrix("X", 9, &[8, 9, 3, 5], &images());
        damage(&mut variable, dice);
        file(&[packed(&variable), svhn().remove(1)])
    });
}
