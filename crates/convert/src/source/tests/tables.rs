//! Tables as they occur in practice: other delimiters, names without folder or extension, splits, lists of text, JSON.

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
    // A delimiter inside quotes does not separate fields.
    let listing = listed(&THREE, "m.csv", b"\"path\";\"a,b,c\";label\na.jpg;1;2\n").unwrap();
    assert_eq!(labels(&listing), [2]);
}

#[test]
fn an_index_column_is_left_out_and_told() {
    let listing = listed(&THREE, "m.csv", b",path,label\n0,a.jpg,1\n1,b.jpg,0\n").unwrap();
    assert_eq!(labels(&listing), [1, 0]);
    assert!(listing.columns().is_empty());
    assert_eq!(listing.warnings()[0], Warning::IndexColumn);
}

#[test]
fn names_without_folder_or_extension_are_looked_for_once() {
    let files = ["train_images/1a.png", "train_images/2b.png", "test_images/1a.png", "test_images/2b.png"];
    let listing = listed(&files, "train.csv", b"id_code,label\n2b,0\n1a,1\n").unwrap();
    assert_eq!(paths(&listing), ["train_images/2b.png", "train_images/1a.png"]);
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        told,
        [
            "the paths in 'id_code' do not lead to files as written, so packds searched for the files: '2b' is read from 'train_images/2b.png'"
        ]
    );
    // The warning names a path and its own file if the first file is missing.
    let listing = listed(&files[..2], "train.csv", b"id_code,label\n3c,0\n2b,0\n1a,1\n").unwrap();
    let found = "'2b' is read from 'train_images/2b.png'";
    assert!(listing.warnings().iter().any(|warning| warning.to_string().ends_with(found)), "{:?}", listing.warnings());
    // It is unclear which of the two folders is meant.
    let error = listed(&files, "m.csv", b"id_code,label\n1a,0\n").unwrap_err().to_string();
    assert!(error.contains("'test_images' and 'train_images' both have files with the listed names"), "{error}");
    // The files are in class folders.
    let listing = listed(&["x/1.jpg", "y/2.jpg"], "m.csv", b"image_name,label\n2,0\n1.jpg,1\n").unwrap();
    assert_eq!(paths(&listing), ["y/2.jpg", "x/1.jpg"]);
    // The table has only part of each path.
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
    assert!(error.to_string().contains("'1' matches both 't/1.jpg' and 't/1.png'"), "{error}");
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
    // If there is another column, there is only a warning.
    let listing = listed(&four, "m.csv", b"path,kind,age\na.jpg,x,1\nb.jpg,y,2\nc.jpg,x,3\nd.jpg,y,4\n").unwrap();
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told.len(), 1);
    assert!(
        !listing.has_labels() && told[0].contains("no field has a name commonly used for labels (fields: 'kind')"),
        "{told:?}"
    );
    let listing = listed(&four, "m.csv", b"path,dx,age\na.jpg,x,1\nb.jpg,y,2\nc.jpg,x,3\nd.jpg,y,4\n").unwrap();
    assert_eq!(classes(&listing), ["x", "y"]);
    assert_eq!(listing.warnings(), [Warning::LabelColumn { field: "dx".to_owned() }]);
    // A few rows are not enough to tell, so there is only a warning.
    let listing = listed(&four, "m.csv", b"Image,Id\na.jpg,x\nb.jpg,y\nc.jpg,z\nd.jpg,y\n").unwrap();
    assert!(!listing.has_labels() && matches!(listing.warnings(), [Warning::NoLabels { .. }]));
}

#[test]
fn columns_of_0_and_1_are_classes_if_each_row_has_one() {
    let four = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"];
    let text = "image,age,rust,healthy\na,1,0.0,1.0\nb,0,1,0\nc,5,0,1\nd,6,0,1\n";
    let listing = listed(&four, "m.csv", text.as_bytes()).unwrap();
    assert_eq!((classes(&listing), labels(&listing)), (vec!["healthy", "rust"], vec![0, 1, 0, 0]));
    assert_eq!(listing.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["age"]);
    assert!(listing.warnings().iter().any(|warning| matches!(warning, Warning::Indicators { .. })));
    // The last row has two classes, no class, or a value other than 0 and 1.
    for row in ["d,6,1,1", "d,6,0,0", "d,6,0,2", "d,6,,1"] {
        let text = text.replace("d,6,0,1", row);
        assert!(!listed(&four, "m.csv", text.as_bytes()).unwrap().has_labels(), "{row}");
    }
    let named = listed(&four, "m.csv", b"image,label,x,y\na,2,0,1\nb,1,1,0\nc,1,1,0\nd,0,0,1\n").unwrap();
    assert_eq!((labels(&named), named.columns().len()), (vec![2, 1, 1, 0], 2));
}

#[test]
fn columns_of_file_names_are_images_and_masks() {
    let files = ["train/1_sat.jpg", "train/1_mask.png", "train/2_sat.jpg", "train/2_mask.png"];
    let mask_of = |listing: &Listing| {
        let mut mask = Vec::new();
        listing.mask_path_into(1, &mut mask);
        String::from_utf8(mask).unwrap()
    };
    let rows = "1,train/1_sat.jpg,train/1_mask.png\n2,train/2_sat.jpg,train/2_mask.png\n";
    for header in ["image_id,sat_image_path,mask_path\n", "n,picture,scene_mask\n", "n,picture,label\n"] {
        let listing = listed(&files, "m.csv", format!("{header}{rows}").as_bytes()).unwrap();
        assert_eq!((paths(&listing)[1].as_str(), mask_of(&listing).as_str()), ("train/2_sat.jpg", "train/2_mask.png"));
        assert!(!listing.has_labels());
    }
    // Colour images are not masks.
    let tree = Tree::new(&["a.png"]);
    let color =
        [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90\x77\x53\xde"[..], &[0; 16]].concat();
    tree.write("b.png", &color);
    tree.write("m.csv", b"picture,target\na.png,b.png\n");
    let error = list(&tree.path("m.csv"), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("'target' holds names of image files, but 'b.png' is not a mask"), "{error}");
    assert!(error.hint().unwrap().contains("leave_out"), "{:?}", error.hint());
    // They are another version of each image if both columns are named so.
    tree.write("m.csv", b"source,target\na.png,b.png\n");
    let listing = list(&tree.path("m.csv"), &ListOptions::default()).unwrap();
    assert_eq!((listing.has_masks(), listing.fields()[0].name.as_str()), (false, "target"));
    assert!(!listing.warnings().iter().any(|warning| matches!(warning, Warning::Unlisted { .. })));
    // Each line has two paths from another machine.
    let list = "/data/train/1_sat.jpg /data/train/1_mask.png\n/data/train/2_sat.jpg /data/train/2_mask.png\n";
    let listing = listed(&files, "train.txt", list.as_bytes()).unwrap();
    assert_eq!((paths(&listing)[1].as_str(), mask_of(&listing).as_str()), ("train/2_sat.jpg", "train/2_mask.png"));
    assert!(listing.warnings().contains(&Warning::MaskColumn { field: "label".to_owned() }));
}

#[test]
fn a_table_beside_images_without_labels_is_read_if_it_has_them() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "extra/3.png", "test/4.png"]);
    tree.write("sample_submission.csv", b"id,label\n3,0\n");
    tree.write("train.csv", b"id,label\n1,cat\n2,dog\n");
    let listing = list(tree.root(), &ListOptions::default()).unwrap();
    assert_eq!(
        (paths(&listing), classes(&listing)),
        (vec!["train/1.png".to_owned(), "train/2.png".to_owned()], vec!["cat", "dog"])
    );
    let (file, first) = (b"train.csv".to_vec(), b"extra/3.png".to_vec());
    let read = Warning::TableRead { file, count: 2, first, is_inside: true };
    assert_eq!((&listing.warnings()[0], listing.ignored()), (&read, 1));
    assert_eq!(
        read.to_string(),
        "read the images in 'train.csv', and ignored 2 other images in the folder (first: 'extra/3.png'): to pack them too, pass their folder as another source; to read a folder without the table, pass that folder as the source"
    );
    // A table is not read if it has no labels, or if it lists other files.
    for (file, table) in [("sizes.csv", "id,width\n1,5\n2,6\n"), ("train.csv", "id,label\n8,cat\n9,dog\n")] {
        std::fs::remove_file(tree.path("train.csv")).or_else(|_| std::fs::remove_file(tree.path("sizes.csv"))).unwrap();
        tree.write(file, table.as_bytes());
        let error = list(tree.root(), &ListOptions::default()).unwrap_err();
        assert!(matches!(error, ConvertError::OnlySplits { .. }), "{error}");
    }
    let flat = Tree::new(&["images/1.png", "images/2.png"]);
    flat.write("labels.csv", b"id,label\n1,pug\n2,husky\n");
    assert_eq!(classes(&list(flat.root(), &ListOptions::default()).unwrap()), ["husky", "pug"]);
}

#[test]
fn quotes_after_a_space_hold_one_cell() {
    let text = b"a.jpg, \"Sale, today\"\nb.jpg, \"Sale, today\"\nc.jpg, \"STOP\"\nd.jpg, \"STOP\"\n";
    let listing = listed(&["a.jpg", "b.jpg", "c.jpg", "d.jpg"], "gt.txt", text).unwrap();
    assert_eq!((classes(&listing), labels(&listing)), (vec!["STOP", "Sale, today"], vec![1, 1, 0, 0]));
    // Some strings contain a delimiter just before the closing quote, or several delimiters.
    let text = b"a.jpg, \"Sale,\"\nb.jpg, \"Sale,\"\nc.jpg, \"a, b, c\"\nd.jpg, \"a, b, c\"\n";
    let listing = listed(&["a.jpg", "b.jpg", "c.jpg", "d.jpg"], "gt.txt", text).unwrap();
    assert_eq!((classes(&listing), labels(&listing)), (vec!["Sale,", "a, b, c"], vec![0, 0, 1, 1]));
    // If no space comes before the quotes of a cell, quotes are read as usual.
    let listing = listed(&THREE, "m.csv", b"path,label,x\na.jpg,\"u, v\", \"w\"\nb.jpg,\"u, v\",1\n").unwrap();
    assert_eq!(classes(&listing), ["u, v"]);
    // The first quote may come after many rows.
    let many = "a.jpg, c0\nb.jpg, c1\n".repeat(5000);
    let text = format!("path, label\n{many}a.jpg, \"c0\"\n");
    assert_eq!(classes(&listed(&["a.jpg", "b.jpg"], "m.csv", text.as_bytes()).unwrap()), ["c0", "c1"]);
    // A quote that is never closed is part of the text.
    let error = listed(&["a.jpg"], "m.csv", b"path,label\na.jpg, \"x, y\n").unwrap_err();
    assert!(error.to_string().contains("expected 2 fields, found 3"), "{error}");
}

#[test]
fn tables_of_targets_and_of_captions_are_read_in_place_of_the_folder() {
    let targets = Tree::new(&["train/1.png", "train/2.png", "test/3.png"]);
    targets.write("train.csv", b"Id,Score\n1,0.5\n2,0.25\n");
    let (_, listing) = list_splits(targets.root(), &ListOptions::default()).unwrap().swap_remove(1);
    assert_eq!((listing.len(), listing.has_labels()), (2, false));
    assert!(listing.warnings()[0].to_string().contains("read the images in 'train.csv'"), "{:?}", listing.warnings());
    let captions = Tree::new(&["Images/1.png", "Images/2.png"]);
    captions.write("captions.txt", b"image,caption\n1.png,a dog\n2.png,a cat\n");
    let listing = list(captions.root(), &ListOptions::default()).unwrap();
    assert_eq!(listing.columns()[0].name, "caption");
    let others = |warning: &Warning| matches!(warning, Warning::OtherFiles { .. });
    assert!(!listing.warnings().iter().any(others), "{:?}", listing.warnings());
}

#[test]
fn tables_named_like_splits_are_read_as_splits() {
    let tree = Tree::new(&["img/1.png", "img/2.png", "img/3.png", "Meta/0.png"]);
    tree.write("Train.csv", b"path,label\nimg/1.png,dog\nimg/2.png,ant\n");
    tree.write("Test.csv", b"path,label\nimg/3.png,cat\n");
    tree.write("Meta.csv", b"path\nMeta/0.png\n");
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<(&str, Vec<i64>)> = all.iter().map(|(name, listing)| (name.as_str(), labels(listing))).collect();
    assert_eq!(
        (classes(&all[0].1), found),
        (vec!["ant", "cat", "dog"], vec![("test", vec![1]), ("train", vec![2, 0])])
    );
    let told: Vec<String> = all[0].1.warnings().iter().map(ToString::to_string).collect();
    assert!(told[0].contains("ignored 1 other image in the folder ('Meta/0.png')"), "{told:?}");
    assert!(told.iter().any(|line| line.contains("'Meta.csv'")), "{told:?}");
    let error = list(tree.root(), &ListOptions::default()).unwrap_err();
    assert!(matches!(error, ConvertError::SeveralSplits { .. }));
    let test = ListOptions { split: Some("test".to_owned()), ..ListOptions::default() };
    assert_eq!(labels(&list(tree.root(), &test).unwrap()), [1]);
    let missing = ListOptions { split: Some("val".to_owned()), ..ListOptions::default() };
    assert!(matches!(list(tree.root(), &missing).unwrap_err(), ConvertError::SplitMissing { .. }));
    // A table that lists a missing file is not a split.
    tree.write("Test.csv", b"path,label\nimg/9.png,cat\n");
    assert!(!matches!(list(tree.root(), &ListOptions::default()), Err(ConvertError::SeveralSplits { .. })));
}

#[test]
fn the_only_table_of_a_folder_without_images_is_read() {
    let tree = Tree::new(&["README"]);
    let names: Vec<String> = (0..784).map(|i| format!("pixel{i}")).collect();
    let row = "7,".repeat(783);
    tree.write("mnist.csv", format!("label,{}\n1,{row}7\n0,{row}7\n", names.join(",")).as_bytes());
    assert_eq!(labels(&list(tree.root(), &ListOptions::default()).unwrap()), [1, 0]);
}

#[test]
fn several_columns_of_images_without_a_header_are_not_labels() {
    let text = b"a.jpg,b.jpg,c.jpg,0.5\nb.jpg,c.jpg,a.jpg,0.25\n";
    let listing = listed(&THREE, "log.csv", text).unwrap();
    let names: Vec<&str> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!((listing.has_labels(), names), (false, vec!["column_2", "column_3", "column_4"]));
}

#[test]
fn metadata_in_splits_is_read_with_one_list_of_classes() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "val/3.png"]);
    tree.write(
        "train/metadata.jsonl",
        b"{\"file_name\": \"1.png\", \"label\": \"dog\"}\n{\"file_name\": \"2.png\", \"label\": \"ant\"}\n",
    );
    tree.write("val/metadata.jsonl", b"{\"file_name\": \"3.png\", \"label\": \"cat\"}\n");
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let ids: Vec<Vec<i64>> = all.iter().map(|(_, listing)| labels(listing)).collect();
    assert_eq!((classes(&all[1].1), ids), (vec!["ant", "cat", "dog"], vec![vec![2, 0], vec![1]]));
    let options = ListOptions { split: Some("val".to_owned()), ..ListOptions::default() };
    assert_eq!(labels(&list(tree.root(), &options).unwrap()), [1]);
}

#[test]
fn boxes_in_a_label_are_refused() {
    let error = listed(&["a.jpg"], "m.csv", b"ImageId,PredictionString\na,n01440764 1 2 30 40 n01440764 5 6 7 8\n")
        .unwrap_err();
    assert!(error.to_string().contains("'PredictionString' holds classes with bounding boxes"), "{error}");
    assert!(error.hint().unwrap().contains(".str.split().str[0]"));
}

#[test]
fn a_comma_at_the_end_of_each_line_is_no_column() {
    let listing = listed(&["a.jpg"], "m.csv", b"path,label,\na.jpg,1,\n").unwrap();
    assert!(labels(&listing) == [1] && listing.columns().is_empty() && listing.warnings().is_empty());
    let error = listed(&["a.jpg"], "m.csv", b"path,label,\na.jpg,1,5\n").unwrap_err();
    assert!(error.to_string().contains("column 3 has no name"), "{error}");
}

#[test]
fn ids_beside_masks_are_those_of_the_images() {
    let files =
        ["images/cat_1.jpg", "images/cat_2.jpg", "annotations/trimaps/cat_1.png", "annotations/trimaps/cat_2.png"];
    let tree = Tree::new(&files);
    tree.write("annotations/list.txt", b"cat_1 5\ncat_2 6\n");
    let listing = list(&tree.path("annotations/list.txt"), &ListOptions::default()).unwrap();
    assert_eq!((paths(&listing), labels(&listing)), (vec!["cat_1.jpg".to_owned(), "cat_2.jpg".to_owned()], vec![5, 6]));
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
    // Fold numbers are an ordinary column unless folds are requested.
    assert_eq!(list(&tree.path("m.csv"), &ListOptions::default()).unwrap().columns().len(), 1);
}

#[test]
fn a_split_that_cannot_be_in_a_file_name_is_refused() {
    for split in ["", "../x", "a/b", ".x"] {
        let tree = Tree::new(&THREE);
        tree.write("m.csv", format!("path,label,split\na.jpg,x,train\nb.jpg,y,{split}\n").as_bytes());
        let error = list_splits(&tree.path("m.csv"), &ListOptions::default()).unwrap_err().to_string();
        assert!(error.contains("cannot be part of a file name"), "{error}");
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
    let error = listed(&THREE, "m.json", b"{\"images\":\n [], \"annotations\": []}").unwrap_err();
    assert!(
        error.to_string().ends_with("line 2: this form of JSON is not supported: found 'images' with an array in it")
    );
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

#[test]
fn comments_and_counts_before_the_rows_are_skipped_and_told() {
    let pets =
        b"#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n# All images\nabyss_100 1 1 1\nbasset_2 2 2 1\n";
    let listing = listed(&["abyss_100.jpg", "basset_2.jpg"], "list.txt", pets).unwrap();
    assert_eq!((paths(&listing), labels(&listing)), (vec!["abyss_100.jpg".into(), "basset_2.jpg".into()], vec![1, 2]));
    let names: Vec<&str> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["column_3", "column_4"]);
    assert_eq!(listing.warnings()[0], Warning::LinesSkipped { count: 3 });
    assert_eq!(listing.warnings()[1], Warning::NoHeader { first: "abyss_100 1 1 1".to_owned() });
    let celeba = b"2\nBald Male \na.jpg -1  1\nb.jpg  1 -1\n";
    let listing = listed(&THREE, "list_attr_celeba.txt", celeba).unwrap();
    assert_eq!(paths(&listing), ["a.jpg", "b.jpg"]);
    assert_eq!(listing.columns()[0].values, crate::source::ColumnValues::I64(vec![-1, 1]));
    let told = listing.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told[0], "skipped the first line: it contains only a comment or the number of rows");
    assert_eq!(told[1], "the first column is read as 'path': the header has one name too few (first path: 'a.jpg')");
    // Line numbers include skipped lines.
    let error = listed(&THREE, "m.txt", b"# x\n\n2\na.jpg 1\nb.jpg\n").unwrap_err();
    assert!(matches!(error, ConvertError::ManifestMalformed { line: 5, .. }), "{error}");
}

#[test]
fn the_first_line_of_a_list_is_a_row_where_it_has_a_number() {
    for (name, text) in [
        ("val.txt", "a.JPEG 65\nb.JPEG 970\n"),
        ("val.txt", "  a 65\n  b   970\n"),
        ("val.csv", "a,65\nb,970\n"),
        ("val.csv", "id,label\na,65\nb,970\n"),
    ] {
        let listing = listed(&["a.JPEG", "b.JPEG"], name, text.as_bytes()).unwrap();
        assert_eq!((listing.len(), labels(&listing)), (2, vec![65, 970]), "{text}");
    }
    // The layout of Stanford Online Products.
    let listing =
        listed(&THREE, "m.txt", b"image_id class_id super_class_id path\n1 1 1 a.jpg\n2 1 1 b.jpg\n").unwrap();
    assert_eq!((paths(&listing)[1].as_str(), labels(&listing)), ("b.jpg", vec![1, 1]));
    // A header with column numbers, as pandas writes it, is not a row.
    let listing = listed(&THREE, "m.csv", b"path,0,1\na.jpg,5,6\n").unwrap();
    assert_eq!((listing.len(), listing.columns().len()), (1, 2));
    // CelebA's split numbers are not labels.
    let listing = listed(&THREE, "list_eval_partition.txt", b"a.jpg 0\nb.jpg 2\n").unwrap();
    assert!(!listing.has_labels() && listing.columns().len() + listing.len() == 3);
}

#[test]
fn tables_that_belong_together_are_refused_with_what_to_do() {
    let tree = Tree::new(&["images/001.Black/x.jpg", "classes.txt", "image_class_labels.txt"]);
    tree.write("images.txt", b"1 001.Black/x.jpg\n");
    for name in ["images.txt", "classes.txt", "image_class_labels.txt"] {
        let error = list(&tree.path(name), &ListOptions::default()).unwrap_err();
        assert!(error.to_string().contains("one of several tables, as in CUB"), "{error}");
        assert!(error.hint().unwrap().contains("merge"));
    }
}

#[test]
fn rows_and_columns_have_a_limit() {
    let long = |name: &str, start: &str, end: &str| {
        let text = [start.as_bytes(), &vec![b'x'; 65 << 20], end.as_bytes()].concat();
        let error = listed(&THREE, name, &text).unwrap_err();
        assert!(error.to_string().contains("expected at most 64 MiB per row, found more"), "{error}");
    };
    long("m.csv", "", "");
    long("m.csv", "path,label\na.jpg,1\nb.jpg,", "\n");
    long("m.csv", "path,label\na.jpg,\"", "\n");
    long("m.jsonl", "{\"path\": \"", "\"}\n");
    let columns = |n: usize| (0..n).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    let error = listed(&THREE, "m.csv", format!("path,{0}\na.jpg,{0}\n", columns(2000)).as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("expected at most 1024 columns (the limit of fields in a pack), found 2001"),
        "{error}"
    );
    let error = listed(&THREE, "m.csv", &b",".repeat(2 << 20)).unwrap_err();
    assert!(error.to_string().contains("expected at most 1048576 columns, found 2097153"), "{error}");
    let error = listed(&THREE, "m.csv", b"path,label\na\0.jpg,1\n").unwrap_err();
    assert!(error.to_string().contains("the path contains a NUL byte"), "{error}");
}

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn cells_of_several_labels_are_lists_and_told() {
    for (name, cells) in [
        ("tags", ["haze", "water road haze", "water road"]),
        ("label", ["haze", "\"water, road, haze\"", "\"water, road\""]),
        ("label", ["haze", "water|road|haze", "water|road"]),
        ("labels", ["['haze']", "\"['water', 'road', 'haze']\"", "\"['water', 'road']\""]),
    ] {
        let [a, b, c] = cells;
        let text = format!("path,{name}\na.jpg,{a}\nb.jpg,{b}\nc.jpg,{c}\n");
        let options = ListOptions { label_key: Some(name.to_owned()), ..ListOptions::default() };
        let listing = listed_with(&THREE, "m.csv", text.as_bytes(), &options).unwrap();
        if b.contains('|') {
            assert!(listing.has_label_lists() && listing.warnings().is_empty(), "{text}");
        } else {
            assert!(told(&listing)[0].starts_with(&format!("the cells of '{name}' are read as lists")), "{text}");
        }
        assert_eq!(classes(&listing), ["haze", "road", "water"], "{text}");
        assert_eq!(listing.label_list(2), Some(&[1, 2][..]));
    }
    let listing = listed(&THREE, "m.csv", b"Id,Target\na.jpg,16 0\nb.jpg,25\nc.jpg,\n").unwrap();
    assert_eq!((listing.label_list(0), listing.label_list(2)), (Some(&[0, 16][..]), Some(&[][..])));
    let listing = listed(&THREE, "m.csv", b"path,label\na.jpg,scab\nb.jpg,rust\nc.jpg,scab rust\n").unwrap();
    assert_eq!(classes(&listing), ["rust", "scab", "scab rust"]);
    assert_eq!(
        told(&listing),
        [
            "'scab rust' in 'label' is packed as one class name: if it is a list of labels, separate the labels with ';' and convert with label_key='label'"
        ]
    );
}

#[test]
fn labels_below_zero_are_a_column_and_told() {
    for name in ["m.csv", "m.txt"] {
        let listing = listed(&THREE, name, b"path,label\na.jpg,-1\nb.jpg,1\n").unwrap();
        assert!(!listing.has_labels());
        assert_eq!(listing.columns()[0].name, "target");
        assert_eq!(
            told(&listing)[..1],
            [
                "'label' is packed as an ordinary field, not as labels: expected an integer or a name for each image, found negative numbers (class ids count from 0)"
            ]
        );
    }
}

#[test]
fn paths_of_another_machine_lead_below_the_root_or_are_refused() {
    for (start, mark) in
        [("/content/data/", "/"), ("../input/set/", "/"), ("C:\\data\\", "\\"), ("/kaggle/input/set/./", "/")]
    {
        let text = format!("path,label\n{start}train{mark}a.jpg,1\n{start}val{mark}b.jpg,0\n");
        let listing = listed(&["train/a.jpg", "val/b.jpg"], "m.csv", text.as_bytes()).unwrap();
        assert_eq!(paths(&listing), ["train/a.jpg", "val/b.jpg"], "{text}");
        assert_eq!(listing.faulty().count(), 0);
        assert!(told(&listing)[0].ends_with("' is read from 'train/a.jpg'"), "{:?}", told(&listing));
    }
    let error = listed(&THREE, "m.csv", b"path,label\n/content/data/z.jpg,1\n").unwrap_err();
    assert!(
        error.to_string().ends_with("its paths begin with '/content/data', which does not exist on this machine"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("root='DIR'"));
}

#[test]
fn an_id_of_several_files_is_refused() {
    let files = ["train/1a_red.png", "train/1a_green.png", "train/2b_red.png"];
    let error = listed(&files, "train.csv", b"Id,Target\n1a,0\n2b,1\n").unwrap_err();
    let expected = "'1a' matches 2 files, such as 'train/1a_green.png' and 'train/1a_red.png'";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(error.hint().unwrap().contains("merge the files of each id"));
}

/// A table with a label and 16 pixels per row, and the pixels of all rows.
fn pixel_rows(header: &str) -> (String, Vec<u8>) {
    let pixels: Vec<u8> = (0..32).map(|n| n * 7).collect();
    let row = |label: &str, row: &[u8]| {
        let cells: Vec<String> = row.iter().map(u8::to_string).collect();
        format!("{label},{}\n", cells.join(","))
    };
    (format!("{header}{}{}", row("3", &pixels[..16]), row("8", &pixels[16..])), pixels)
}

fn all_pixels(listing: &Listing) -> Vec<u8> {
    let mut out = Vec::new();
    (0..listing.len()).for_each(|idx| drop(listing.append_image(idx, u64::MAX, &mut out).unwrap()));
    out
}

fn header(names: impl Iterator<Item = String>) -> String {
    format!("label,{}\n", names.collect::<Vec<_>>().join(","))
}

#[test]
fn a_column_for_each_pixel_makes_gray_images() {
    let grid = || (1..=4).flat_map(|y| (1..=4).map(move |x| format!("{y}x{x}")));
    for (name, header) in [
        ("pixel0", header((0..16).map(|n| format!("pixel{n}")))),
        ("pixel1", header((1..=16).map(|n| format!("pixel{n}")))),
        ("grid", header(grid())),
        ("numbers", header((0..16).map(|n| n.to_string()))),
        ("none", String::new()),
    ] {
        let (text, pixels) = pixel_rows(&header);
        let listing = listed(&[], "m.csv", text.as_bytes()).unwrap();
        assert_eq!((labels(&listing), all_pixels(&listing)), (vec![3, 8], pixels), "{name}");
        assert!(
            listing.columns().is_empty() && listing.warnings().contains(&Warning::PixelColumns { height: 4, width: 4 })
        );
        assert!(listing.file_path(1).ends_with("m.csv/row/1"));
    }
    let two_by_eight = header((1..=2).flat_map(|y| (1..=8).map(move |x| format!("{y}x{x}"))));
    let listing = listed(&[], "m.csv", pixel_rows(&two_by_eight).0.as_bytes()).unwrap();
    assert!(listing.warnings().contains(&Warning::PixelColumns { height: 2, width: 8 }));
    // Numbered columns next to paths are features.
    let names: Vec<String> = (0..16).map(|n| n.to_string()).collect();
    let text = format!("path,{0}\na.jpg,{0}\n", names.join(","));
    assert_eq!(listed(&THREE, "m.csv", text.as_bytes()).unwrap().columns().len(), 16);
}

#[test]
fn all_pixels_in_a_cell_make_gray_images_with_splits() {
    let text = b"emotion,pixels,Usage\n0,1 2 3 4,Training\n1,5 6 7 8,PublicTest\n1,9 10 11 255,Training\n0,0 0 0 0,PrivateTest\n";
    let error = listed(&[], "fer2013.csv", text).unwrap_err();
    assert!(matches!(error, ConvertError::SeveralSplits { .. }), "{error}");
    let options = ListOptions { split: Some("Training".to_owned()), ..ListOptions::default() };
    let listing = listed_with(&[], "fer2013.csv", text, &options).unwrap();
    assert_eq!((labels(&listing), all_pixels(&listing)), (vec![0, 1], vec![1, 2, 3, 4, 9, 10, 11, 255]));
    assert_eq!(listing.warnings()[0], Warning::OnlyOtherColumn { field: "emotion".to_owned() });
}

#[test]
fn pixels_that_are_no_gray_image_are_refused() {
    let refused = |text: &str| {
        let error = listed(&[], "m.csv", text.as_bytes()).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let cells = |n: usize| vec!["7"; n].join(" ");
    let (error, hint) = refused(&format!("label,pixels\n1,{}\n", cells(48)));
    assert!(error.contains("the 48 pixels of each row may be 4 x 4 pixels of three channels"), "{error}");
    assert!(hint.contains("reshape(-1, 4, 4, 3)") && hint.contains("reshape(-1, 3, 4, 4)"), "{hint}");
    let (error, hint) = refused(&format!("label,pixels\n1,{}\n", cells(17)));
    assert!(error.contains(", found 17") && hint.contains("height, width"), "{error}");
    let (error, _) = refused(&format!("label,pixels\n1,{}\n2,{}\n", cells(16), cells(9)));
    assert!(error.ends_with("line 3: expected 4 x 4 pixels as in the first row, found 9"), "{error}");
    for (cell, found) in [("256", "'256'"), ("-1", "'-1'"), ("0.5", "'0.5'"), ("x\0", "'x\0'"), ("", "no text")] {
        let (error, _) = refused(&format!("label,pixels\n1,{cell}\n"));
        let expected = format!("line 2: column 'pixels': expected a pixel from 0 to 255, found {found}");
        assert!(error.ends_with(&expected), "{error}");
    }
    // Refuses a huge cell, and half a million columns.
    let (error, _) = refused(&format!("label,pixels\n1,{}\n", cells(1 << 20)));
    assert!(error.contains("(at most 262144)"), "{error}");
    let names: Vec<String> = (0..1 << 19).map(|n| format!("pixel{n}")).collect();
    let (error, _) = refused(&format!("{}\n{}\n", names.join(","), vec!["0"; 1 << 19].join(",")));
    assert!(error.contains("(at most 262144)"), "{error}");
}

#[test]
fn names_in_another_case_or_unicode_form_are_found() {
    let tree = Tree::new(&["images/img_1.jpg", "images/caf\u{e9}.jpg", "images/b.jpg"]);
    let rows = "path,label\nimages/IMG_1.JPG,x\nImages/cafe\u{301}.jpg,y\nimages/b.jpg,x\n";
    tree.write("m.csv", rows.as_bytes());
    let listing = list(&tree.path("m.csv"), &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["images/img_1.jpg", "images/caf\u{e9}.jpg", "images/b.jpg"]);
    assert_eq!(listing.faulty().count(), 0);
    let said = listing.warnings()[0].to_string();
    assert_eq!(
        said,
        "found 2 files only by ignoring case and Unicode form: 'images/IMG_1.JPG' is read from 'images/img_1.jpg'"
    );
    // The name is ambiguous if two files match.
    tree.write("images/IMG_1.jpg", b"x");
    let listing = list(&tree.path("m.csv"), &ListOptions::default()).unwrap();
    let fault = listing.fault(0).unwrap().to_string();
    assert!(fault.contains("both 'images/IMG_1.jpg' and 'images/img_1.jpg' have this name"), "{fault}");
}

#[test]
fn a_column_of_image_names_may_hold_pixels() {
    let pixels = |n: u8| (0..16).map(|pixel| (pixel * n).to_string()).collect::<Vec<_>>().join(" ");
    let text = format!("left_eye_x,Image\n66.0,{}\n65.5,{}\n", pixels(1), pixels(2));
    let listing = listed(&[], "training.csv", text.as_bytes()).unwrap();
    assert_eq!(listing.len(), 2);
    assert!(listing.warnings().contains(&Warning::PixelColumns { height: 4, width: 4 }), "{:?}", listing.warnings());
    // A file name that consists of numbers is not read as pixels.
    let listing = listed(&["1 2 3.jpg"], "m.csv", b"Image,label\n1 2 3.jpg,0\n").unwrap();
    assert_eq!(paths(&listing), ["1 2 3.jpg"]);
}

#[test]
fn the_table_beside_a_single_folder_of_images_is_read() {
    let tree = Tree::new(&["pictures/1.jpg", "pictures/2.jpg"]);
    tree.write("full.csv", b"filename,label\n1.jpg,0\n2.jpg,1\n");
    let listing = tree.list().unwrap();
    assert_eq!(
        (paths(&listing), labels(&listing)),
        (vec!["pictures/1.jpg".into(), "pictures/2.jpg".into()], vec![0, 1])
    );
    // The folders are classes here.
    let tree = Tree::new(&["a/1.jpg", "b/2.jpg"]);
    tree.write("full.csv", b"filename,label\n1.jpg,1\n2.jpg,0\n");
    assert_eq!(labels(&tree.list().unwrap()), [0, 1]);
}

#[test]
fn tables_beside_arrays_are_told() {
    let tree = Tree::new(&["classes.csv", "labels.txt", "README.csv"]);
    tree.write("x.npy", &npy("|u1", "2, 4, 4, 3", &[0; 96]));
    let groups = vec![("csv".to_owned(), 1, b"classes.csv".to_vec())];
    assert!(tree.list().unwrap().warnings().contains(&Warning::OtherFiles { groups }));
}

/// A `.npy` file.
fn npy(dtype: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes().chain(body.iter().copied()));
    bytes
}

#[test]
fn the_table_beside_folders_of_folders_is_read() {
    let tree = Tree::new(&["train/0/1/01a.jpg", "train/2/3/23b.jpg", "train/2/4/24c.jpg"]);
    tree.write("train.csv", b"id,label\n01a,7\n23b,9\n24c,7\n");
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["train/0/1/01a.jpg", "train/2/3/23b.jpg", "train/2/4/24c.jpg"]);
    assert_eq!(labels(&listing), [7, 9, 7]);
    // Digits of hashes are no labels.
    tree.write("train.csv", b"id,score\n01a,0.5\n23b,1.5\n24c,2.5\n");
    let listing = tree.list().unwrap();
    assert_eq!((labels(&listing).len(), listing.columns[0].name.as_str()), (0, "score"));
}

#[test]
fn folders_of_hash_digits_are_no_classes() {
    let (one, other) = ("0/00d2b9542c.jpg", "a/a1d2b9542c.jpg");
    assert_eq!(labels(&Tree::new(&[one, other]).list().unwrap()).len(), 0);
    // The name of one file does not begin with the digit of its folder.
    assert_eq!(classes(&Tree::new(&[one, "a/b1d2b9542c.jpg"]).list().unwrap()), ["0", "a"]);
    let splits = Tree::new(&[
        "train/0/1/01a.jpg",
        "train/2/3/23b.jpg",
        "train/2/4/24c.jpg",
        "test/0/1/01d.jpg",
        "test/0/2/02e.jpg",
        "test/1/2/12e.jpg",
    ]);
    splits.write("train_labels.csv", b"image_id,InChI\n01a,x\n23b,y\n24c,z\n");
    let listed = list_splits(splits.root(), &ListOptions::default()).unwrap();
    let columns = |at: usize| listed[at].1.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>();
    assert_eq!(
        (listed[0].0.as_str(), columns(0), listed[1].0.as_str(), columns(1)),
        ("test", vec![], "train", vec!["InChI"])
    );
}

#[test]
fn ids_in_a_column_of_any_name_are_found_among_the_images() {
    let tree = Tree::new(&["train/7.jpg", "train/8.jpg", "train/9.jpg"]);
    tree.write("t.csv", b"GalaxyID,Class1.1,n\n7,0.5,7\n8,0.25,7\n9,1,8\n");
    let listing = list(&tree.path("t.csv"), &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["train/7.jpg", "train/8.jpg", "train/9.jpg"]);
    assert!(listing.warnings().contains(&Warning::PathColumn { field: "GalaxyID".to_owned() }));
    // Two columns may both be ids.
    tree.write("t.csv", b"a,b\n7,8\n8,9\n");
    assert!(list(&tree.path("t.csv"), &ListOptions::default()).is_err());
}

#[test]
fn folders_that_differ_only_in_case_have_one_copy_of_each_file() {
    let tree = Tree::new(&["Part_1/1.jpg", "part_1/1.jpg", "Part_2/2.jpg", "part_2/2.jpg"]);
    tree.write("t.csv", b"image_id,dx\n1,a\n2,b\n");
    let listing = list(&tree.path("t.csv"), &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["Part_1/1.jpg", "Part_2/2.jpg"]);
    // A file of another size is no copy.
    tree.write("part_2/2.jpg", b"longer");
    let error = list(&tree.path("t.csv"), &ListOptions::default()).unwrap_err().to_string();
    assert!(error.contains("matches both 'Part_2/2.jpg' and 'part_2/2.jpg'"), "{error}");
}
