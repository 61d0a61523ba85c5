//! Files of `torch.save` like those that people publish: lists of samples, splits, class names, and views whose stored
//! numbers differ from their values.

use serde_json::{Value, json};

use super::items::{Bytes, convert, hex, ids, items};
use super::python_with;
use crate::support::Folder;

/// The files, and their contents.
fn sources() -> Option<(Folder, Value)> {
    let folder = Folder::new();
    let written = python_with("torch", &["tensors.py", folder.path("").to_str().unwrap()])?;
    Some((folder, serde_json::from_str(&written).unwrap()))
}

fn refused(folder: &Folder, name: &str, args: &[&str]) -> String {
    let ran = folder.packds(&[&["convert", name, "no.pack"], args].concat());
    assert_ne!(ran.code, 0, "{name}: {ran:?}");
    ran.stderr
}

fn names(pack: &Bytes) -> Vec<String> {
    pack.classes().unwrap().first().map(|classes| classes.names.clone()).unwrap_or_default()
}

#[test]
fn views_whose_numbers_pytorch_changes_when_it_reads_them_are_refused() {
    let Some((folder, _)) = sources() else { return };
    let said = refused(&folder, "neg.pt", &[]);
    assert!(said.contains("image: this tensor is a negated view") && said.contains("tensor.resolve_neg()"), "{said}");
    let said = refused(&folder, "conj.pt", &[]);
    assert!(
        said.contains("image: this tensor is a conjugate view") && said.contains("tensor.resolve_conj()"),
        "{said}"
    );
}

#[test]
fn lists_of_samples_are_read() {
    let Some((folder, expected)) = sources() else { return };
    for name in ["dicts.pt", "views.pt", "pairs.pt", "named.pt", "nested.pt", "tuple.pt"] {
        let pack = convert(&folder, name, &["--layout", "chw"]);
        assert_eq!(hex(&items(&pack, "image").concat()), expected["pixels"], "{name}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
    }
    assert_eq!(names(&convert(&folder, "named.pt", &[])), ["cat", "dog", "owl"]);
    let views = convert(&folder, "views.pt", &[]);
    assert_eq!((items(&views, "name")[4].as_slice(), items(&views, "box")[4].as_slice()), (&b"dog"[..], &b"[1,4]"[..]));
    let sizes = convert(&folder, "contiguous_sizes.pt", &["--resize", "8x8"]);
    assert_eq!(json!(ids(&sizes)), expected["labels"]);
    let told = folder.packds(&["convert", "nested.pt", "t.pack", "--dry-run"]).stderr;
    assert!(
        told.contains("left out the field 'meta': expected tensors, numbers or strings, found a dictionary of 1"),
        "{told}"
    );
}

#[test]
fn lists_of_samples_that_do_not_agree_say_where() {
    let Some((folder, _)) = sources() else { return };
    for (name, expected) in [
        ("sizes.pt", "sample 0 'image': the rows of the tensor are not contiguous"),
        ("missing.pt", "sample 5: expected the fields 'image', 'label', found 'image'"),
        ("numpy.pt", "sample 0: 'image': expected a tensor, a number or a string, found an object of numpy"),
        (
            "boxes.pt",
            "sample 1: 'boxes': expected an array of f32 with shape [2, 4], found an array of f32 with shape [3, 4]",
        ),
        ("batches.pt", "found a list of batches (the first has 4 images)"),
    ] {
        let said = refused(&folder, name, &[]);
        assert!(said.contains(expected), "{name}: {said}");
    }
    assert_eq!(convert(&folder, "boxes.pt", &["--leave-out", "boxes"]).n_samples(), 12);
}

#[test]
fn dictionaries_of_splits_are_splits() {
    let Some((folder, expected)) = sources() else { return };
    for name in ["splits.pt", "sets.pt", "split_samples.pt"] {
        let read = folder.packds(&["convert", name, "no.pack", "--dry-run"]);
        assert!(read.stderr.contains("found the splits 'test', 'train'"), "{name}: {read:?}");
        let pack = convert(&folder, name, &["--split", "test", "--layout", "chw"]);
        let pixels = expected["pixels"].as_str().unwrap();
        assert_eq!(hex(&items(&pack, "image").concat()), pixels[pixels.len() / 3 * 2..], "{name}");
        assert_eq!(ids(&pack), [2, 0, 1, 2], "{name}");
        assert_eq!(names(&pack).is_empty(), name == "sets.pt", "{name}");
    }
}

#[test]
fn ids_of_class_names_are_class_names() {
    let Some((folder, expected)) = sources() else { return };
    let pack = convert(&folder, "ids.pt", &[]);
    assert_eq!(json!(ids(&pack)), expected["labels"]);
    assert_eq!(names(&pack), ["cat", "dog", "owl"]);
    let said = refused(&folder, "contrary.pt", &[]);
    assert!(said.contains("classes: expected the same class names as before ('owl', 'cat', 'dog')"), "{said}");
}
