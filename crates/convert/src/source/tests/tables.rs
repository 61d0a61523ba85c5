//! Tables as people find them: other delimiters, names without folder or extension, splits, lists of text, JSON.

use super::{Tree, classes, paths};
use crate::error::ConvertError;
use crate::source::{ListOptions, Listing, Warning, list, list_splits};

fn listed(files: &[&str], manifest: &str, text: &[u8]) -> Result<Listing, ConvertError> {
    listed_with(files, manifest, text, &ListOptions::default())
}

fn listed_with(files: &[&str], manifest: &str, text: &[u8], options: &ListOptions) -> Result<Listing, ConvertError> {
    let tree = Tree::new(files);
    tree.write(manifest, text);
    list(&tree.path(manifest), options)
}

fn labels(listing: &Listing) -> Vec<i64> {
    super::labels(listing).into_iter().flatten().collect()
}

const THREE: [&str; 3] = ["a.jpg", "b.jpg", "c.jpg"];

#[test]
fn the_header_tells_the_delimiter() {
    for delimiter in [",", ";", "\t", "|"] {
        let text = format!("\u{feff}path{delimiter}label\na.jpg{delimiter}x, y\nb.jpg{delimiter}z\n");
        let text = if delimiter == "," { text.replace("x, y", "\"x, y\"") } else { text };
        let listing = listed(&THREE, "m.csv", text.as_bytes()).unwrap();
        assert_eq!(classes(&listing), ["x, y", "z"], "{delimiter}");
    }
    // A delimiter inside quotes is none.
    let listing = listed(&THREE, "m.csv", b"\"path\";\"a,b,c\";label\na.jpg;1;2\n").unwrap();
    assert_eq!(labels(&listing), [2]);
}

#[test]
fn an_index_column_is_left_out_and_told() {
    let listing = listed(&THREE, "m.csv", b",path,label\n0,a.jpg,1\n1,b.jpg,0\n").unwrap();
    assert_eq!(labels(&listing), [1, 0]);
    assert!(listing.columns().is_empty());
    assert_eq!(listing.warnings(), [Warning::IndexColumn]);
}

#[test]
fn names_without_folder_or_extension_are_looked_for_once() {
    let files = ["train_images/1a.png", "train_images/2b.png", "test_images/1a.png", "test_images/2b.png"];
    let listing = listed(&files, "train.csv", b"id_code,label\n2b,0\n1a,1\n").unwrap();
    assert_eq!(paths(&listing), ["train_images/2b.png", "train_images/1a.png"]);
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told, ["the files named in 'id_code' were found in other folders: '2b' is 'train_images/2b.png'"]);
    // Nothing tells which of two folders.
    let error = listed(&files, "m.csv", b"id_code,label\n1a,0\n").unwrap_err().to_string();
    assert!(error.contains("may be those in 'test_images' or those in 'train_images'"), "{error}");
    // Class folders.
    let listing = listed(&["x/1.jpg", "y/2.jpg"], "m.csv", b"image_name,label\n2,0\n1.jpg,1\n").unwrap();
    assert_eq!(paths(&listing), ["y/2.jpg", "x/1.jpg"]);
    // Part of a path.
    let listing = listed(&["d/x/1.jpg", "d/y/1.jpg"], "m.csv", b"path,label\nx/1,0\ny/1.jpg,1\n").unwrap();
    assert_eq!(paths(&listing), ["d/x/1.jpg", "d/y/1.jpg"]);
}

#[test]
fn names_in_several_folders_are_found_but_not_in_another_split() {
    let files = ["part1/1.jpg", "part1/2.jpg", "part1/5.jpg", "part2/3.jpg", "test/4.jpg"];
    let listing = listed(&files, "m.csv", b"image,label\n1,0\n2,1\n5,1\n3,0\n4,1\n").unwrap();
    assert_eq!(paths(&listing)[2..4], ["part1/5.jpg", "part2/3.jpg"]);
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [4]);
    let listing =
        listed(&["images/a.jpg", "images/b.jpg"], "m.csv", b"path,label\nimages\\a.jpg,1\nimages\\b.jpg,0\n").unwrap();
    assert_eq!(paths(&listing), ["images/a.jpg", "images/b.jpg"]);
}

#[test]
fn a_name_of_two_files_is_an_error_and_one_of_none_is_missing() {
    let files = ["t/1.jpg", "t/1.png", "t/2.jpg"];
    let error = listed(&files, "m.csv", b"id,label\n2,0\n1,1\n").unwrap_err();
    assert!(matches!(error, ConvertError::ManifestMalformed { line: 3, .. }), "{error}");
    assert!(error.to_string().contains("'1' may be 't/1.jpg' or 't/1.png'"), "{error}");
    let listing = listed(&files, "m.csv", b"id,label\n2,0\n3,1\n").unwrap();
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [1]);
}

#[test]
fn masks_are_looked_for_in_a_folder_of_masks() {
    let files = ["train/1.png", "train/2.png", "train_masks/1.png", "train_masks/2.png"];
    let listing = listed(&files, "train.csv", b"image,mask\n1,1\n2,2\n").unwrap();
    let mut mask = Vec::new();
    listing.mask_path_into(1, &mut mask);
    assert_eq!((paths(&listing)[1].as_str(), mask.as_slice()), ("train/2.png", &b"train_masks/2.png"[..]));
}

#[test]
fn whole_floats_are_ids() {
    let listing = listed(&THREE, "m.csv", b"path,label\na.jpg,1.0\nb.jpg,0.0\n").unwrap();
    assert_eq!(labels(&listing), [1, 0]);
    let listing = listed(&THREE, "m.csv", b"path,label\na.jpg,1.5\nb.jpg,0.0\n").unwrap();
    assert!(!listing.has_labels());
}

#[test]
fn the_only_other_column_gives_the_labels_if_its_values_repeat() {
    let four = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"];
    let listing = listed(&four, "m.csv", b"path,diagnosis\na.jpg,x\nb.jpg,y\nc.jpg,x\nd.jpg,y\n").unwrap();
    assert_eq!(classes(&listing), ["x", "y"]);
    assert_eq!(listing.warnings(), [Warning::OnlyOtherColumn { field: "diagnosis".to_owned() }]);
    let listing = listed(&four, "m.csv", b"path,caption\na.jpg,x\nb.jpg,y\nc.jpg,z\nd.jpg,w\n").unwrap();
    assert!(!listing.has_labels() && listing.warnings().is_empty());
    // With another column it is only told.
    let listing = listed(&four, "m.csv", b"path,diagnosis,age\na.jpg,x,1\nb.jpg,y,2\nc.jpg,x,3\nd.jpg,y,4\n").unwrap();
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told.len(), 1);
    assert!(!listing.has_labels() && told[0].contains("among 'diagnosis'; name"), "{told:?}");
}

#[test]
fn a_column_of_splits_makes_splits_with_the_same_ids() {
    let text = b"path,label,split\na.jpg,x,train\nb.jpg,y,val\nc.jpg,y,train\n";
    let error = listed(&THREE, "m.csv", text).unwrap_err();
    assert!(matches!(&error, ConvertError::SeveralSplits { splits, .. } if splits == &["train", "val"]), "{error}");
    let options = ListOptions { split: Some("val".to_owned()), ..ListOptions::default() };
    let listing = listed_with(&THREE, "m.csv", text, &options).unwrap();
    assert_eq!((paths(&listing), labels(&listing), classes(&listing)), (vec!["b.jpg".into()], vec![1], vec!["x", "y"]));
    let wrong = ListOptions { split: Some("test".to_owned()), ..ListOptions::default() };
    assert!(matches!(listed_with(&THREE, "m.csv", text, &wrong), Err(ConvertError::SplitMissing { .. })));
    let without = ListOptions { leave_out: vec!["split".to_owned()], ..ListOptions::default() };
    assert_eq!(listed_with(&THREE, "m.csv", text, &without).unwrap().len(), 3);
    let tree = Tree::new(&THREE);
    tree.write("m.csv", b"path,label,fold\na.jpg,x,0\nb.jpg,y,1\nc.jpg,y,0\n");
    let splits = list_splits(&tree.path("m.csv"), &ListOptions::default()).unwrap();
    let lens: Vec<_> = splits.iter().map(|(name, listing)| (name.as_str(), listing.len())).collect();
    assert_eq!(lens, [("0", 2), ("1", 1)]);
    // Folds are a column unless they are asked for.
    assert_eq!(list(&tree.path("m.csv"), &ListOptions::default()).unwrap().columns().len(), 1);
}

#[test]
fn a_split_that_cannot_be_in_a_file_name_is_refused() {
    for split in ["", "../x", "a/b", ".x"] {
        let tree = Tree::new(&THREE);
        tree.write("m.csv", format!("path,label,split\na.jpg,x,train\nb.jpg,y,{split}\n").as_bytes());
        let error = list_splits(&tree.path("m.csv"), &ListOptions::default()).unwrap_err().to_string();
        assert!(error.contains("cannot be a part of a file's name"), "{error}");
    }
}

#[test]
fn lines_of_paths_and_labels_need_no_header() {
    for (name, text) in
        [("m.txt", "a.jpg 1\nb.jpg 0\n"), ("m.txt", "a.jpg\t1\nb.jpg\t0\n"), ("m.csv", "a.jpg,1\nb.jpg,0\n")]
    {
        let listing = listed(&THREE, name, text.as_bytes()).unwrap();
        assert_eq!((paths(&listing), labels(&listing)), (vec!["a.jpg".into(), "b.jpg".into()], vec![1, 0]), "{text}");
    }
    let listing = listed(&THREE, "m.txt", b"a.jpg\nb.jpg\n").unwrap();
    assert_eq!((listing.len(), listing.has_labels()), (2, false));
    let listing = listed(&THREE, "m.txt", b"1 a.jpg\n2 b.jpg\n").unwrap();
    assert_eq!(listing.columns()[0].name, "column_1");
}

#[test]
fn json_is_a_list_of_objects_or_a_label_for_each_path() {
    let list = b"[\n {\"image\": \"a.jpg\", \"label\": 1},\n {\"image\": \"b.jpg\", \"label\": 0, \"age\": 3}\n]";
    let listing = listed(&THREE, "m.json", list).unwrap();
    assert_eq!((labels(&listing), listing.columns().len()), (vec![1, 0], 1));
    let listing = listed(&THREE, "m.json", b"{\"a.jpg\": \"x\", \"b.jpg\": \"y\"}").unwrap();
    assert_eq!((paths(&listing), classes(&listing)), (vec!["a.jpg".into(), "b.jpg".into()], vec!["x", "y"]));
    let malformed = |text: &[u8]| match listed(&THREE, "m.json", text).unwrap_err() {
        ConvertError::ManifestMalformed { line, reason, .. } => (line, reason),
        other => panic!("{other}"),
    };
    let (line, reason) = malformed(b"[\n{\"image\": \"a.jpg\"},\n3]");
    assert_eq!(line, 3, "{reason}");
    let (line, reason) = malformed(b"{\"images\":\n [], \"annotations\": []}");
    assert_eq!(line, 2);
    assert!(reason.contains("found 'images' with an array in it"), "{reason}");
    assert_eq!(malformed(b"[{\"image\": \"a.jpg\"},").0, 1);
}

#[test]
fn a_compressed_table_is_read() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"path,label\na.jpg,x\nb.jpg,y\n").unwrap();
    let packed = packed.finish().unwrap();
    let listing = listed(&THREE, "m.csv.gz", &packed).unwrap();
    assert_eq!((labels(&listing), listing.root().ends_with("m.csv.gz")), (vec![0, 1], false));
    let error = listed(&THREE, "m.csv.gz", &packed[..packed.len() - 6]).unwrap_err();
    assert!(matches!(&error, ConvertError::Io { path, .. } if path.ends_with("m.csv.gz")), "{error}");
}
