//! What to do about sources that are sound and yet not as they should be.

use std::io::Write;

use super::super::list;
use super::*;
use crate::data_format::DataFormat;

/// The error and the hint of listing a source.
fn said(path: &Path, from: Option<DataFormat>) -> (String, String) {
    let options = ListOptions {
        from,
        ..ListOptions::default()
    };
    let error = list(path, &options).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn a_file_of_another_format_than_from_says_is_told_by_its_own() {
    let tree = Tree::new(&[]);
    tree.write("a.npy", b"\x93NUMPY");
    for from in DataFormat::ALL {
        if from == DataFormat::Npy || !from.is_built() {
            continue;
        }
        let (error, hint) = said(&tree.path("a.npy"), Some(from));
        let expected = "leave --from out, or give --from npy: this looks like npy";
        assert_eq!(hint, expected, "{from}: {error}");
    }
    let (_, hint) = said(&tree.path("a.npy"), None);
    assert!(hint.contains("damaged"), "{hint}");
}

#[test]
fn zipped_zarr_is_no_file_of_torch() {
    let tree = Tree::new(&[]);
    let file = fs::File::create(tree.path("a.zarr.zip")).unwrap();
    let member = crate::sink::Member::stored("images/zarr.json", 0, 0);
    let mut bytes = member.local_header();
    let end = crate::sink::zip_directory(std::slice::from_ref(&member), member.end());
    bytes.extend(end);
    (&file).write_all(&bytes).unwrap();
    let (error, hint) = said(&tree.path("a.zarr.zip"), None);
    assert!(
        error.contains("images/zarr.json: a Zarr store in a zip file"),
        "{error}"
    );
    assert!(hint.contains("unzip it"), "{hint}");
}

#[test]
fn a_file_of_no_bytes_is_called_empty() {
    let tree = Tree::new(&[]);
    for name in ["a.parquet", "a.npz", "a.arrow"] {
        tree.write(name, b"");
        let (error, _) = said(&tree.path(name), None);
        assert!(error.ends_with("the file is empty (0 bytes)"), "{error}");
    }
}
