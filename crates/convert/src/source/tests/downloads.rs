//! Datasets in the layouts of download tools and COCO.

use super::*;
use crate::data_format::DataFormat;
use crate::source::column::ColumnValues;
use crate::source::detect::detect;
use crate::source::{list, list_splits, warning::Warning};

#[test]
fn parquet_files_that_are_named_like_tar_files_describe_their_samples() {
    let tree = Tree::new(&["00000.tar", "00000.parquet", "00000_stats.json", "00001.tar"]);
    assert_eq!(detect(tree.root()).unwrap(), DataFormat::WebDataset);
    tree.write("more.parquet", b"x");
    let error = detect(tree.root()).unwrap_err();
    assert!(error.to_string().contains("the files have different formats"), "{error}");
}

#[test]
fn folders_with_a_file_of_their_name_are_parts_of_one_dataset() {
    let tree = Tree::new(&["00000/000000000.jpg", "00000/000000001.jpg", "00001/000010000.jpg"]);
    assert_eq!(classes(&tree.list().unwrap()), ["00000", "00001"]);
    tree.write("00000_stats.json", b"{}");
    tree.write("00001.parquet", b"x");
    let listing = tree.list().unwrap();
    assert!(!listing.has_labels() && listing.classes().is_empty());
    assert_eq!(listing.len(), 3);
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(listing.warnings()[0], Warning::NumberedParts { count: 2, first: b"00000".to_vec() });
    assert_eq!(told[1..], ["ignored 2 other files: 1 .json ('00000_stats.json'), 1 .parquet ('00001.parquet')"]);
    let options = ListOptions { from: Some(DataFormat::ImageFolder), ..ListOptions::default() };
    assert_eq!(classes(&list(tree.root(), &options).unwrap()), ["00000", "00001"]);
}

#[test]
fn values_in_json_files_beside_the_images_are_fields() {
    let tree = Tree::new(&["a/1.jpg", "a/2.jpg", "b/3.jpg"]);
    tree.write("a/1.json", b"{\"width\": 3, \"caption\": \"a cat\", \"tags\": [\"x\"], \"label\": 5}");
    tree.write("a/2.jpg.json", b"{\"width\": 4, \"caption\": \"a dog\", \"tags\": []}");
    tree.write("b/3.json", b"{\"width\": 5, \"caption\": \"a cow\", \"tags\": null, \"label\": 6}");
    let listing = tree.list().unwrap();
    let names: Vec<&str> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["width", "caption", "tags", "source_label"]);
    assert_eq!(listing.columns()[0].values, ColumnValues::I64(vec![3, 4, 5]));
    let ColumnValues::Json(tags) = &listing.columns()[2].values else { panic!() };
    assert_eq!(tags.iter().collect::<Vec<_>>(), ["[\"x\"]", "[]", "null"]);
    let ColumnValues::F64(label) = &listing.columns()[3].values else { panic!() };
    assert_eq!((label[0].to_bits(), label[1].is_nan()), (5.0_f64.to_bits(), true));
    assert_eq!((listing.ignored(), classes(&listing)), (0, vec!["a", "b"]));
    let said = listing.warnings()[0].to_string();
    assert!(said.ends_with("are packed as fields: 'width', 'caption', 'tags', 'label'"), "{said}");
    // Captions in text files take precedence. Labels in JSON objects are reported if there are no others.
    let flat = Tree::new(&["1.jpg", "2.jpg"]);
    for n in ["1", "2"] {
        flat.write(&format!("{n}.txt"), b"a cat");
        flat.write(&format!("{n}.json"), b"{\"caption\": \"x\", \"label\": \"cat\"}");
    }
    let listing = flat.list().unwrap();
    let names: Vec<&str> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["caption", "label"]);
    let said: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert!(said[1].contains("if 'label' has the labels, write the labels to a CSV file"), "{said:?}");
    assert!(said[2].contains("left out the field 'caption'"), "{said:?}");
}

#[test]
fn other_json_files_beside_the_images_are_counted_and_named() {
    for text in ["[1, 2]", "{}", "a cat"] {
        let tree = Tree::new(&["1.jpg", "2.jpg"]);
        tree.write("1.json", text.as_bytes());
        tree.write("2.json", text.as_bytes());
        let listing = tree.list().unwrap();
        assert_eq!(listing.warnings(), [Warning::JsonUnread { count: 2, first: b"1.json".to_vec() }], "{text}");
        assert_eq!((listing.columns().len(), listing.ignored()), (0, 2));
    }
    // A JSON object with hundreds of keys does not describe an image.
    let many: Vec<String> = (0..300).map(|n| format!("\"{n}\": 1")).collect();
    let tree = Tree::new(&["1.jpg"]);
    tree.write("1.json", format!("{{{}}}", many.join(", ")).as_bytes());
    assert!(matches!(tree.list().unwrap().warnings(), [Warning::JsonUnread { count: 1, .. }]));
}

#[test]
fn captions_of_coco_are_no_boxes() {
    let tree = Tree::new(&["train2017/1.jpg", "val2017/2.jpg"]);
    for split in ["train2017", "val2017"] {
        tree.write(&format!("annotations/captions_{split}.json"), b"{}");
    }
    let error = tree.list().unwrap_err();
    assert!(error.to_string().contains("a COCO dataset with captions in 'annotations'"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("annotations/captions_train2017.json as the source"), "{hint}");
    tree.write("annotations/instances_train2017.json", b"{}");
    let error = tree.list().unwrap_err();
    assert!(error.to_string().contains("a COCO dataset with boxes"), "{error}");
}

#[test]
fn a_dataset_in_a_single_folder_is_read_in_place_of_the_folder_around_it() {
    let tree =
        Tree::new(&["planet/train-jpg/a.jpg", "planet/train-jpg/b.jpg", "planet/test-jpg/c.jpg", ".gitattributes"]);
    tree.write("planet/train.csv", b"image,tags\na,haze\nb,haze\n");
    tree.write("README.md", b"about");
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let [(_, test), (name, train)] = splits.as_slice() else { panic!("expected two splits") };
    assert_eq!(train.warnings()[0].to_string(), "read from 'planet', the only dataset in the folder");
    assert_eq!(
        (name.as_str(), train.root(), train.len(), test.len()),
        ("train-jpg", tree.path("planet").as_path(), 2, 1)
    );
    // A single class folder with a table is a class.
    let tree = Tree::new(&["cats/1.jpg"]);
    tree.write("cats/sizes.csv", b"width\n1\n");
    assert_eq!(classes(&list(tree.root(), &ListOptions::default()).unwrap()), ["cats"]);
}

#[test]
fn a_copy_of_the_only_folder_and_its_table_is_left_out() {
    let tree = Tree::new(&["images/1.jpg", "images/2.jpg", "fashion/images/1.jpg", "fashion/images/2.jpg"]);
    tree.write("styles.csv", b"id,color\n1,red\n2,blue,\n");
    let listing = list(tree.root(), &ListOptions::default());
    assert_eq!(classes(&listing.unwrap()), ["fashion", "images"]);
    tree.write("fashion/styles.csv", b"id,color\n1,red\n2,blue,\n");
    let listing = list(tree.root(), &ListOptions::default()).unwrap();
    assert_eq!((listing.len(), listing.has_labels()), (2, false));
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|line| line.contains("'fashion', which looks like a copy")), "{told:?}");
    let expected = "'styles.csv' was not read: line 3: expected 2 fields, found 3; if it has labels or other fields, correct this line";
    assert!(told.iter().any(|line| line == expected), "{told:?}");
}

#[test]
fn images_in_a_copy_of_their_folder_are_not_read() {
    let tree = Tree::new(&["images/1.jpg", "images/2.jpg", "fashion/images/1.jpg", "fashion/images/2.jpg"]);
    tree.write("styles.csv", b"id,color\n1,red\n2,blue\n");
    assert_eq!(
        paths(&list(&tree.path("styles.csv"), &ListOptions::default()).unwrap()),
        ["images/1.jpg", "images/2.jpg"]
    );
    tree.write("fashion/images/2.jpg", b"another");
    let error = list(&tree.path("styles.csv"), &ListOptions::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("'fashion/images' and 'images' both have files with the listed names"),
        "{error}"
    );
}

#[test]
fn captions_and_splits_of_karpathy_are_read_in_place_of_the_folders() {
    let tree = Tree::new(&["train2014/1.jpg", "val2014/2.jpg", "val2014/3.jpg"]);
    let image = |folder: &str, name: &str, split: &str| {
        format!(
            r#"{{"filepath": "{folder}", "filename": "{name}", "split": "{split}", "sentences": [{{"raw": "a {split}"}}]}}"#
        )
    };
    let images =
        [image("train2014", "1.jpg", "train"), image("val2014", "2.jpg", "restval"), image("val2014", "3.jpg", "test")];
    tree.write("dataset_coco.json", format!(r#"{{"images": [{}], "dataset": "coco"}}"#, images.join(", ")).as_bytes());
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = splits.iter().map(|(split, listing)| (split.as_str(), paths(listing).concat())).collect();
    let path = |path: &str| path.to_owned();
    let expected =
        [("restval", path("val2014/2.jpg")), ("test", path("val2014/3.jpg")), ("train", path("train2014/1.jpg"))];
    assert_eq!(found, expected);
    let ColumnValues::Json(captions) = &splits[0].1.columns()[0].values else { panic!("{splits:?}") };
    assert_eq!(captions.get(0), r#"["a restval"]"#);
}
