//! Hints for sources that are valid but do not have the expected layout.

use super::super::list;
use super::*;
use crate::data_format::DataFormat;
use crate::source::SourceKind;

/// The error and the hint from listing a source.
fn said(path: &Path, from: Option<DataFormat>) -> (String, String) {
    let options = ListOptions { from, ..ListOptions::default() };
    let error = list(path, &options).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn a_file_of_another_format_than_from_says_is_told_by_its_own() {
    let tree = Tree::new(&[]);
    tree.write("a.npy", b"\x93NUMPY");
    for from in DataFormat::ALL {
        if from == DataFormat::Npy || !from.is_built() || !from.is_source() {
            continue;
        }
        let (error, hint) = said(&tree.path("a.npy"), Some(from));
        let expected = "omit from, or use from='npy': this looks like npy";
        assert_eq!(hint, expected, "{from}: {error}");
    }
    let (_, hint) = said(&tree.path("a.npy"), None);
    assert!(hint.contains("damaged"), "{hint}");
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

#[test]
fn a_folder_of_something_else_names_what_it_holds() {
    let tree = Tree::new(&["notes.txt"]);
    tree.mkdir("images.zarr");
    tree.write("images.zarr/.zgroup", b"{}");
    let (error, hint) = said(tree.root(), None);
    assert!(error.contains("no images in this folder"), "{error}");
    let expected = format!("pass {}, which looks like zarr", tree.path("images.zarr").display());
    assert_eq!(hint, expected);
}

#[test]
fn a_repository_is_known_by_the_files_in_its_data_folder() {
    let tree = Tree::new(&["README.md"]);
    tree.mkdir("data");
    tree.write("data/test.tar", b"");
    tree.write("data/train.tar", b"");
    let options = ListOptions { split: Some("val".to_owned()), ..ListOptions::default() };
    let error = list(tree.root(), &options).unwrap_err();
    assert!(error.to_string().ends_with("no split 'val' here, found 'test', 'train'"), "{error}");
}

#[test]
fn a_source_without_samples_is_not_told_to_name_fields() {
    let tree = Tree::new(&[]);
    tree.write("a.tfrecord", b"");
    let (error, hint) = said(&tree.path("a.tfrecord"), None);
    assert!(error.ends_with("it contains no samples"), "{error}");
    assert!(!hint.contains("image_key"), "{hint}");
}

#[test]
fn braces_without_a_choice_are_part_of_a_name() {
    let tree = Tree::new(&[]);
    let (error, _) = said(&tree.path("sh-{}.tar"), None);
    assert!(error.ends_with("sh-{}.tar: no such file or folder"), "{error}");
}

/// A file of one array of 2 x 2 bytes.
fn npy() -> Vec<u8> {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n";
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &len[..], header.as_bytes(), &[1, 2, 3, 4]].concat()
}

#[test]
fn a_folder_of_npy_files_is_known_where_its_first_class_is_empty() {
    let tree = Tree::new(&[]);
    fs::create_dir(tree.path("airplane")).unwrap();
    fs::create_dir(tree.path("ship")).unwrap();
    tree.write("ship/0.npy", &npy());
    let listing = list(tree.root(), &ListOptions::default()).unwrap();
    assert_eq!((listing.len(), listing.kind()), (1, SourceKind::SampleFiles(DataFormat::Npy)));
}

#[test]
fn keys_of_a_folder_with_a_file_for_each_sample_that_name_no_field_are_refused() {
    let tree = Tree::new(&[]);
    fs::create_dir(tree.path("ship")).unwrap();
    tree.write("ship/0.npy", &npy());
    let refused = |options: &ListOptions| list(tree.root(), options).unwrap_err().to_string();
    let key = || Some("zz".to_owned());
    let said = refused(&ListOptions { label_key: key(), ..ListOptions::default() });
    let expected = "no field 'zz', found 'image', 'label'";
    assert!(said.ends_with(expected), "{said}");
    let said = refused(&ListOptions { mask_key: key(), ..ListOptions::default() });
    assert!(said.ends_with("no field 'zz', found 'image'"), "{said}");
    let leave_out = |name: &str| ListOptions { leave_out: vec![name.to_owned()], ..ListOptions::default() };
    let said = refused(&leave_out("zz"));
    assert!(said.ends_with("no field 'zz' to leave out, found 'image', 'label'"), "{said}");
    assert!(!list(tree.root(), &leave_out("label")).unwrap().has_labels());
}

#[test]
fn a_file_of_one_image_is_not_taken_for_one_of_its_lines() {
    let tree = Tree::new(&[]);
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (9, 8, 3), }\n";
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    let bytes = [&b"\x93NUMPY\x01\x00"[..], &len, header.as_bytes(), &[0; 9 * 8 * 3]].concat();
    tree.write("one.npy", &bytes);
    let (error, hint) = said(&tree.path("one.npy"), None);
    assert!(error.contains("but their shape 9x8x3 is that of one image: the file may be one sample"), "{error}");
    assert!(hint.contains("one_sample_per_file") && hint.contains("many_samples_per_file"), "{hint}");
}

#[test]
fn a_pack_is_no_source() {
    let tree = Tree::new(&[]);
    tree.write("a.pack", &packds_format::constants::MAGIC);
    let (error, hint) = said(&tree.path("a.pack"), None);
    assert!(error.ends_with("this is already a pack"), "{error}");
    assert!(hint.contains("packds export"), "{hint}");
    tree.write("a.packs/manifest-00000001.json", b"{}");
    let (error, hint) = said(&tree.path("a.packs"), None);
    assert!(error.ends_with("this is already a set of packs"), "{error}");
    assert!(hint.contains("packds merge"), "{hint}");
}

#[test]
fn keys_that_name_the_same_field_are_refused() {
    let tree = Tree::new(&[]);
    tree.write("x.npy", &npy());
    let options =
        ListOptions { image_key: Some("x".to_owned()), mask_key: Some("x".to_owned()), ..ListOptions::default() };
    let error = list(&tree.path("x.npy"), &options).unwrap_err();
    assert!(error.to_string().ends_with("must name different fields"), "{error}");
    assert!(!error.is_data());
}

#[test]
fn a_file_of_one_number_a_sample_is_no_file_of_images() {
    let tree = Tree::new(&[]);
    let labels = String::from_utf8_lossy(&npy()[10..70]).replace("(2, 2)", "(4,)  ");
    let head = &npy()[..10];
    tree.write("labels.npy", &[head, labels.as_bytes(), &npy()[70..]].concat());
    let (error, hint) = said(&tree.path("labels.npy"), None);
    assert!(error.ends_with("expected images, found one u8 for each sample"), "{error}");
    assert!(hint.contains("pass the file with the images"), "{hint}");
}

#[test]
fn labels_that_are_no_class_ids_keep_their_type_and_a_warning_says_so() {
    let tree = Tree::new(&[]);
    tree.write("x.npy", &npy());
    tree.write("x_labels.npy", &npy());
    let listing = list(&tree.path("x.npy"), &ListOptions::default()).unwrap();
    assert!(!listing.has_labels());
    let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "'label' is packed as an ordinary field, not as labels: expected an integer or a name for each image, found u8 arrays of shape [2]"
        ]
    );
}
