//! Reads manifests.

use std::path::PathBuf;

use super::{Tree, classes, fingerprint, labels, paths};
use crate::{
    error::ConvertError,
    sample::SampleError,
    source::{ColumnValues, ListOptions, Listing, SourceKind, list},
};

/// A tree with the images `a.jpg`, `b.jpg`, `c.jpg` and masks next to a manifest.
fn tree(manifest: &str, text: &str) -> (Tree, PathBuf) {
    let tree = Tree::new(&["a.jpg", "b.jpg", "sub/c.jpg", "m/a.png", "m/b.png"]);
    tree.write("b.jpg", b"four");
    tree.write(manifest, text.as_bytes());
    let path = tree.path(manifest);
    (tree, path)
}

fn listed_with(manifest: &str, text: &str, options: &ListOptions) -> Result<Listing, ConvertError> {
    let (_tree, path) = tree(manifest, text);
    list(&path, options)
}

fn csv(text: &str) -> Result<Listing, ConvertError> {
    listed_with("m.csv", text, &ListOptions::default())
}

fn jsonl(text: &str) -> Result<Listing, ConvertError> {
    listed_with("m.jsonl", text, &ListOptions::default())
}

#[track_caller]
fn assert_malformed(result: Result<Listing, ConvertError>, line: u64, reason: &str) {
    let error = result.unwrap_err();
    assert!(error.is_data());
    match error {
        ConvertError::ManifestMalformed { line: found_line, reason: found, .. } => {
            assert_eq!((found_line, found.as_str()), (line, reason));
        }
        other => panic!("{other}"),
    }
}

fn column<'a>(listing: &'a Listing, name: &str) -> &'a ColumnValues {
    &listing.columns().iter().find(|column| column.name == name).unwrap().values
}

fn texts(values: &ColumnValues) -> Vec<&str> {
    match values {
        ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.iter().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_become_sorted_classes() {
    let listing = csv("path,label\nb.jpg,dog\nsub/c.jpg,ant\na.jpg,dog\n").unwrap();
    assert_eq!(listing.kind(), SourceKind::Manifest);
    assert_eq!(paths(&listing), ["b.jpg", "sub/c.jpg", "a.jpg"]);
    assert_eq!(classes(&listing), ["ant", "dog"]);
    assert_eq!(labels(&listing), [Some(1), Some(0), Some(1)]);
    assert_eq!(listing.sample(0).bytes, 4);
    assert_eq!(listing.sample(1).directory, b"sub");
    assert!(listing.columns().is_empty());
}

#[test]
fn integers_are_ids_as_they_are() {
    let listing = csv("label,path\n7,a.jpg\n 2 ,b.jpg\n").unwrap();
    assert_eq!(labels(&listing), [Some(7), Some(2)]);
    assert!(listing.classes().is_empty());
    let listing = jsonl("{\"image\":\"a.jpg\",\"class\":3}\n").unwrap();
    assert_eq!(labels(&listing), [Some(3)]);
}

#[test]
fn integers_in_json_strings_are_names() {
    let listing = jsonl("{\"path\":\"a.jpg\",\"label\":\"3\"}\n").unwrap();
    assert_eq!((classes(&listing), labels(&listing)), (vec!["3"], vec![Some(0)]));
}

#[test]
fn other_numbers_are_a_column() {
    let listing = csv("path,target\na.jpg,-1\nb.jpg,0.5\n").unwrap();
    assert!(!listing.has_labels());
    assert_eq!(*column(&listing, "target"), ColumnValues::F64(vec![-1.0, 0.5]));
}

#[test]
fn lists_of_labels_are_sorted_ids() {
    for text in [
        "path,labels\na.jpg,dog;cat; dog\nb.jpg,\nsub/c.jpg,eel|ant\n",
        "labels,file\n\"dog|cat\",a.jpg\n;,b.jpg\neel;ant;,sub/c.jpg\n",
    ] {
        let listing = csv(text).unwrap();
        assert_eq!(classes(&listing), ["ant", "cat", "dog", "eel"]);
        assert!(listing.has_label_lists() && !listing.has_labels());
        let lists: Vec<_> = (0..3).map(|idx| listing.label_list(idx).unwrap()).collect();
        assert_eq!(lists, [&[1, 2][..], &[], &[0, 3]]);
    }
    let listing = jsonl(concat!(
        "{\"path\":\"a.jpg\",\"labels\":[5,2,5]}\n",
        "{\"path\":\"b.jpg\",\"labels\":[]}\n",
        "{\"path\":\"b.jpg\",\"labels\":9}\n"
    ))
    .unwrap();
    let lists: Vec<_> = (0..3).map(|idx| listing.label_list(idx).unwrap()).collect();
    assert_eq!(lists, [&[2, 5][..], &[], &[9]]);
    assert!(listing.classes().is_empty());
}

#[test]
fn chosen_columns_win_over_known_names() {
    let options = ListOptions {
        image_key: Some("where".to_owned()),
        label_key: Some("tags".to_owned()),
        mask_key: Some("outline".to_owned()),
        ..ListOptions::default()
    };
    let text = "path,where,tags,label,outline\nq,a.jpg,x;y,1,m/a.png\nr,b.jpg,y,2,m/b.png\n";
    let listing = listed_with("m.csv", text, &options).unwrap();
    assert_eq!(paths(&listing), ["a.jpg", "b.jpg"]);
    assert_eq!(listing.label_list(0), Some(&[0, 1][..]));
    assert_eq!(listing.label_list(1), Some(&[1][..]));
    assert_eq!(texts(column(&listing, "path")), ["q", "r"]);
    assert_eq!(*column(&listing, "label"), ColumnValues::I64(vec![1, 2]));
    assert_eq!(listing.columns().len(), 2);
    assert!(listing.has_masks());
}

#[test]
fn masks_are_files_too() {
    let (_tree, path) = tree("m.tsv", "Image\tMask\nb.jpg\tm/b.png\na.jpg\tm/a.png\n");
    let listing = list(&path, &ListOptions::default()).unwrap();
    let mut mask = Vec::new();
    assert_eq!(listing.mask_path_into(0, &mut mask), Some(1));
    assert_eq!(mask, b"m/b.png");
    let mut mask = Vec::new();
    assert_eq!(listing.mask_path_into(1, &mut mask), Some(1));
    assert_eq!(mask, b"m/a.png");
}

#[test]
fn column_type_holds_every_cell() {
    let listing = csv(concat!(
        "path,int,gap,float,wide,flag,flaggap,code,date,none,mixed\n",
        "a.jpg,1,5,1.5,9007199254740993,true,true,007,2024-01-01,,1\n",
        "b.jpg,-2,,nan,,FALSE,,8,2024-01-02,,x\n"
    ))
    .unwrap();
    assert_eq!(*column(&listing, "int"), ColumnValues::I64(vec![1, -2]));
    match (column(&listing, "gap"), column(&listing, "float")) {
        (ColumnValues::F64(gap), ColumnValues::F64(float)) => {
            assert_eq!((gap[0], gap[1].is_nan()), (5.0, true));
            assert_eq!((float[0], float[1].is_nan()), (1.5, true));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(texts(column(&listing, "wide")), ["9007199254740993", ""]);
    assert_eq!(*column(&listing, "flag"), ColumnValues::Bool(vec![true, false]));
    assert_eq!(texts(column(&listing, "flaggap")), ["true", ""]);
    assert_eq!(texts(column(&listing, "code")), ["007", "8"]);
    assert_eq!(texts(column(&listing, "date")), ["2024-01-01", "2024-01-02"]);
    assert_eq!(texts(column(&listing, "none")), ["", ""]);
    assert_eq!(texts(column(&listing, "mixed")), ["1", "x"]);
}

#[test]
fn json_columns_keep_their_types() {
    let listing = jsonl(concat!(
        "\u{feff}{\"path\":\"a.jpg\",\"n\":1,\"s\":\"1\",\"box\":[1, 2.5],\"u\":18446744073709551615}\n",
        "\n",
        "{\"path\":\"b.jpg\",\"late\":true,\"n\":2.5,\"s\":\"2\",\"box\":null,\"u\":1}\n"
    ))
    .unwrap();
    assert_eq!(*column(&listing, "n"), ColumnValues::F64(vec![1.0, 2.5]));
    assert_eq!(texts(column(&listing, "s")), ["1", "2"]);
    assert_eq!(texts(column(&listing, "box")), ["[1,2.5]", "null"]);
    assert!(matches!(column(&listing, "box"), ColumnValues::Json(_)));
    assert_eq!(texts(column(&listing, "u")), ["18446744073709551615", "1"]);
    assert_eq!(texts(column(&listing, "late")), ["", "true"]);
    let order: Vec<_> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(order, ["n", "s", "box", "u", "late"]);
}

#[test]
fn pairs_of_paths_and_labels_may_be_in_a_member() {
    let text = "{\"labels\": [[\"b.jpg\", 4], [\"a.jpg\", 2]]}";
    let listing = listed_with("dataset.json", text, &ListOptions::default()).unwrap();
    assert_eq!(
        (paths(&listing), labels(&listing)),
        (vec!["b.jpg".to_owned(), "a.jpg".to_owned()], vec![Some(4), Some(2)])
    );
    assert!(listed_with("dataset.json", "{\"labels\": null}", &ListOptions::default()).is_err());
}

#[test]
fn key_that_a_row_lacks_is_missing() {
    let listing = jsonl("{\"path\":\"a.jpg\",\"s\":\"x\"}\n{\"path\":\"b.jpg\"}\n").unwrap();
    assert_eq!(texts(column(&listing, "s")), ["x", ""]);
}

#[test]
fn byte_order_mark_and_windows_lines_are_accepted() {
    let listing = csv("\u{feff}path,label\r\n\"a.jpg\",1\r\nb.jpg,2\r\n").unwrap();
    assert_eq!(paths(&listing), ["a.jpg", "b.jpg"]);
    let listing = jsonl("{\"path\":\"a.jpg\"}\r\n{\"path\":\"b.jpg\"}").unwrap();
    assert_eq!(paths(&listing), ["a.jpg", "b.jpg"]);
}

#[test]
fn paths_are_cleaned_and_may_repeat_or_be_absolute() {
    let (tree, path) = tree("m.csv", "");
    let absolute = tree.path("sub/c.jpg");
    let text = format!("path\n./a.jpg\nsub/../a.jpg\n{}\na.jpg\n", absolute.display());
    tree.write("m.csv", text.as_bytes());
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["a.jpg", "a.jpg", "sub/c.jpg", "a.jpg"]);
}

#[test]
fn root_may_be_elsewhere() {
    let (tree, _) = tree("lists/m.csv", "path\nc.jpg\n");
    let options = ListOptions { root: Some(tree.path("sub")), ..ListOptions::default() };
    let listing = list(&tree.path("lists/m.csv"), &options).unwrap();
    assert_eq!(listing.file_path(0), tree.path("sub/c.jpg"));
    let options = ListOptions { root: Some(tree.path("none")), ..ListOptions::default() };
    let error = list(&tree.path("lists/m.csv"), &options).unwrap_err();
    assert!(matches!(error, ConvertError::SourceMissing { .. }), "{error}");
}

#[test]
fn path_outside_the_root_is_an_error() {
    for file in ["../x.jpg", "sub/../../x.jpg"] {
        let error = csv(&format!("path\na.jpg\n{file}\n")).unwrap_err();
        match &error {
            ConvertError::ManifestPathEscapes { line, file: found, .. } => {
                assert_eq!((*line, found.as_str()), (3, file));
            }
            other => panic!("{other}"),
        }
        assert!(error.hint().unwrap().contains("root"));
    }
}

#[test]
fn absolute_paths_may_lead_anywhere_where_no_root_is_given() {
    let (files, _) = tree("other/m/c.png", "");
    let at = |name: &str| files.path(name).display().to_string();
    let (lists, path) = tree("m.csv", "");
    // The root is the folder that contains all of the files.
    let text = format!("path,mask\n{},{}\n", at("a.jpg"), at("sub/../m/a.png"));
    lists.write("m.csv", text.as_bytes());
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["a.jpg"]);
    assert_eq!(listing.file_path(0), files.path("a.jpg"));
    let text = format!("path\n{}\n{}\n", at("sub/c.jpg"), at("other/m/c.png"));
    lists.write("m.csv", text.as_bytes());
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["sub/c.jpg", "other/m/c.png"]);
    // Relative paths stay relative to the manifest's folder.
    lists.write("m.csv", format!("path\nb.jpg\n{}\n", at("sub/c.jpg")).as_bytes());
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(listing.file_path(0), lists.path("b.jpg"));
    assert_eq!(listing.file_path(1), files.path("sub/c.jpg"));
    // A requested root takes precedence.
    let options = ListOptions { root: Some(lists.path("")), ..ListOptions::default() };
    let error = list(&path, &options).unwrap_err();
    assert!(matches!(error, ConvertError::ManifestPathEscapes { line: 3, .. }), "{error}");
}

#[test]
fn first_missing_file_is_named_with_its_line() {
    let text = "{\"path\":\"a.jpg\"}\n\n{\"path\":\"x.jpg\"}\n{\"path\":\"y.jpg\"}\n";
    for jobs in [1, 3] {
        let (tree, path) = tree("m.ndjson", text);
        let options = ListOptions { jobs, ..ListOptions::default() };
        let listing = list(&path, &options).unwrap();
        assert_eq!(listing.faulty().next(), Some(1));
        match listing.fault(1).unwrap() {
            SampleError::NoFile { line, file, .. } => {
                assert_eq!((line, file), (3, tree.path("x.jpg")));
            }
            other => panic!("{other}"),
        }
        assert!(listing.fault(0).is_none() && listing.fault(2).is_some());
    }
    // A folder is not accepted as a file. Of several missing files, the one in the earlier line is reported.
    let none = "mask `m/none.png`: no such file, named in line 2 of ";
    assert_no_file("path,mask\na.jpg,m/none.png\nsub,m/a.png\n", 0, none);
    let folder = "not a regular file, named in line 2 of ";
    assert_no_file("path,mask\nsub,m/a.png\na.jpg,m/none.png\n", 0, folder);
    assert_no_file("path,mask\nsub,m/none.png\n", 0, folder);
}

/// Checks which sample is the first without its file, and how its error starts.
#[track_caller]
fn assert_no_file(text: &str, sample: usize, expected: &str) {
    let listing = csv(text).unwrap();
    assert_eq!(listing.faulty().next(), Some(sample));
    let fault = listing.fault(sample).unwrap().to_string();
    assert!(fault.starts_with(expected), "{fault}");
}

#[test]
fn line_is_where_the_row_starts() {
    let text = "path,note\na.jpg,\"two\nlines\"\nx.jpg,n\n";
    assert_no_file(text, 1, "no such file, named in line 4 of ");
}

#[test]
fn blank_lines_are_skipped_and_counted() {
    let text = "path\na.jpg\n\n\nx.jpg\n";
    assert_no_file(text, 1, "no such file, named in line 5 of ");
}

#[test]
fn lines_are_right_whatever_ends_them() {
    for (text, expected) in [
        ("path,x\r\na.jpg,1\r\nb.jpg\r\n", 3),
        ("path,x\r\na.jpg,1\r\n\r\nb.jpg", 4),
        ("path,x\na.jpg,1\nb.jpg", 3),
        ("\n\npath,x\na.jpg,\"1\n2\"\nb.jpg\n", 6),
        ("path,x\na.jpg,1\nb.jpg,1,\"2\n3\"\na.jpg,1\n", 3),
    ] {
        match csv(text).unwrap_err() {
            ConvertError::ManifestMalformed { line, .. } => assert_eq!(line, expected, "{text:?}"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn missing_columns_are_errors_that_list_the_others() {
    match csv("picture,label\na,1\n").unwrap_err() {
        ConvertError::ManifestColumnMissing { wanted, found, .. } => {
            assert!(wanted.starts_with("of image paths (path, "));
            assert_eq!(found, ["picture", "label"]);
        }
        other => panic!("{other}"),
    }
    let options = ListOptions { label_key: Some("tag".to_owned()), ..ListOptions::default() };
    match listed_with("m.csv", "path\na.jpg\n", &options).unwrap_err() {
        ConvertError::ManifestColumnMissing { wanted, .. } => assert_eq!(wanted, "'tag'"),
        other => panic!("{other}"),
    }
}

#[test]
fn rows_without_masks_are_bad_samples_or_have_nothing_to_mark() {
    let (tree, path) = tree("m.csv", "image,mask\ngood/a.jpg,\nbad/b.jpg,m/b.png\nbad/c.jpg,\n");
    ["good/a.jpg", "bad/b.jpg", "bad/c.jpg", "m/b.png"].iter().for_each(|file| tree.write(file, b"x"));
    let listing = list(&path, &ListOptions::default()).unwrap();
    assert_eq!(listing.faulty().collect::<Vec<_>>(), [2]);
    let error = ConvertError::BadSample { path: path.clone(), source: listing.fault(2).unwrap() };
    assert!(error.to_string().ends_with("sample 2: line 4: column 'mask': the path is missing"), "{error}");
    assert!(error.hint().unwrap().contains("leave_out='mask' packs all images without masks"), "{error}");
    let mut mask = Vec::new();
    listing.append_mask(0, (2, 3), &mut mask).unwrap();
    assert_eq!(mask, [0; 6]);
    let told = listing.warnings()[0].to_string();
    assert!(told.starts_with("used masks of zeros for 1 image ('good/a.jpg')"), "{told}");
}

#[test]
fn malformed_csv_names_the_line() {
    assert_malformed(csv("path,label\n"), 2, "the manifest has no rows");
    assert_malformed(csv(""), 1, "expected a header line with column names");
    assert_malformed(
        csv("path,a,a\na.jpg,1,2\n"),
        1,
        "column 'a' appears twice: the first line is read as column names",
    );
    assert_malformed(csv("path,,a\na.jpg,1,2\n"), 1, "column 2 has no name");
    assert_malformed(csv("path,a\na.jpg,1\nb.jpg\n"), 3, "expected 2 fields, found 1");
    assert_malformed(csv("path,label\na.jpg,1\n,2\n"), 3, "column 'path': the path is missing");
    assert_malformed(csv("path,label\n.,1\n"), 2, "column 'path': '.' is not a file path");
    assert_malformed(csv("path\na\0.jpg\n"), 2, "column 'path': the path contains a NUL byte");
    let (tree, path) = tree("m.csv", "");
    tree.write("m.csv", b"path,note\na.jpg,x\nb.jpg,\xff\n");
    let error = list(&path, &ListOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: line 3: the text in field 2 is not UTF-8", path.display()));
    assert!(error.hint().unwrap().contains("iconv -f WINDOWS-1252 -t UTF-8 'm.csv' > 'utf8-m.csv'"), "{error}");
}

#[test]
fn malformed_json_names_the_line() {
    assert_malformed(jsonl("\n\n"), 2, "the manifest has no rows");
    assert_malformed(jsonl("{\"path\":\"a.jpg\"}\n{\"path\":}\n"), 2, "expected value at column 9");
    assert_malformed(jsonl("[1]\n"), 1, "invalid type: sequence, expected a JSON object at column 0");
    assert_malformed(jsonl("{\"path\":\"a.jpg\",\"path\":\"b.jpg\"}\n"), 1, "column 'path' appears twice at column 31");
    assert_malformed(jsonl("{\"path\":1}\n"), 1, "column 'path': expected a path, found 1");
    let (tree, path) = tree("m.jsonl", "");
    tree.write("m.jsonl", b"{\"path\":\"a.jpg\"}\n{\"path\":\"\xff\"}\n");
    let error = list(&path, &ListOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: line 2: the text is not UTF-8", path.display()));
}

#[test]
fn bad_labels_name_the_line() {
    let missing = "column 'label': the label is missing";
    assert_malformed(csv("path,label\na.jpg,\nb.jpg, \n"), 2, missing);
    assert_malformed(csv("path,label\na.jpg,0.5\nb.jpg,\n"), 3, missing);
    let named = ListOptions { label_key: Some("label".to_owned()), ..ListOptions::default() };
    assert_malformed(
        listed_with("m.csv", "path,label\na.jpg,1\nb.jpg,-1\n", &named),
        3,
        "column 'label': a class id is negative: class ids start at 0",
    );
    assert_malformed(
        csv("path,labels\na.jpg,1;2\nb.jpg,0.5\n"),
        3,
        "column 'labels': expected integers or names in a list of labels",
    );
    let both = csv("path,label,labels\na.jpg,1,2\n").unwrap_err().to_string();
    assert!(both.contains("'label' and 'labels' may both be the label column"), "{both}");
    assert_malformed(jsonl("{\"path\":\"a.jpg\",\"label\":null}\n"), 1, missing);
    assert_malformed(jsonl("{\"path\":\"a.jpg\",\"label\":[1,null]}\n"), 1, missing);
    assert_malformed(
        jsonl("{\"path\":\"a.jpg\",\"label\":1}\n{\"path\":\"b.jpg\",\"label\":\"1\"}\n"),
        2,
        "column 'label': some labels are strings and some are numbers",
    );
    assert_malformed(
        jsonl("{\"path\":\"a.jpg\",\"label\":{\"a\":1}}\n"),
        1,
        "column 'label': expected a label or a list of labels, found nested JSON",
    );
    let options = ListOptions { label_key: Some("path".to_owned()), ..ListOptions::default() };
    assert_malformed(
        listed_with("m.csv", "path\na.jpg\n", &options),
        1,
        "one column cannot have two roles (path, label or mask)",
    );
}

#[test]
fn manifest_has_no_splits() {
    let options = ListOptions { split: Some("train".to_owned()), ..ListOptions::default() };
    let error = listed_with("m.csv", "path\na.jpg\n", &options).unwrap_err();
    assert!(matches!(error, ConvertError::SplitMissing { .. }), "{error}");
}

#[test]
fn unreadable_manifest_is_an_io_error() {
    let error = crate::source::rows::RowFile::new(std::path::Path::new("/"), &std::env::temp_dir()).err().unwrap();
    assert!(matches!(error, ConvertError::Io { .. }), "{error}");
}

#[test]
fn fingerprint_changes_with_columns_masks_and_lists() {
    let prints: Vec<Vec<u8>> = [
        "path\na.jpg\n",
        "path,x\na.jpg,1\n",
        "path,x\na.jpg,1.0\n",
        "path,x\na.jpg,2\n",
        "path,z\na.jpg,1\n",
        "path,x\na.jpg,true\n",
        "path,x\na.jpg,text\n",
        "path,label\na.jpg,1\n",
        "path,labels\na.jpg,1\n",
        "path,label\na.jpg,one\n",
        "path,mask\na.jpg,m/a.png\n",
        "path,mask\na.jpg,m/b.png\n",
    ]
    .iter()
    .map(|text| fingerprint(&csv(text).unwrap()))
    .collect();
    let distinct: std::collections::BTreeSet<&Vec<u8>> = prints.iter().collect();
    assert_eq!(distinct.len(), prints.len());
}
