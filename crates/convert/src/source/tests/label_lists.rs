//! Lists and tables next to images that supply captions, labels or splits, as published datasets have them.

use super::{Tree, classes, labels, paths};
use crate::error::ConvertError;
use crate::source::{ColumnValues, ListOptions, Listing, list, list_splits};

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

fn texts(listing: &Listing) -> Vec<&str> {
    match listing.columns() {
        [column] => match &column.values {
            ColumnValues::Text(texts) | ColumnValues::Json(texts) => texts.iter().collect(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn splits(tree: &Tree) -> Vec<(String, Listing)> {
    list_splits(tree.root(), &ListOptions::default()).unwrap()
}

fn names(splits: &[(String, Listing)]) -> Vec<&str> {
    splits.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn numbered_captions_of_an_image_are_a_list_and_other_lists_give_the_splits() {
    let tree = Tree::new(&["Flicker8k_Dataset/1.jpg", "Flicker8k_Dataset/2.jpg", "Flicker8k_Dataset/3.jpg"]);
    let captions =
        b"1.jpg#0\tA \"red\" dog .\n1.jpg#1\tTwo, or three\n2.jpg#0\tb\n2.jpg#1\tc\n3.jpg#0\td\n3.jpg#1\te\n";
    tree.write("Flickr8k.token.txt", captions);
    tree.write("Flickr8k.lemma.token.txt", captions);
    for (split, image) in [("train", "1.jpg"), ("dev", "2.jpg"), ("test", "3.jpg")] {
        tree.write(&format!("Flickr_8k.{split}Images.txt"), image.as_bytes());
    }
    let all = splits(&tree);
    assert_eq!(names(&all), ["dev", "test", "train"]);
    assert_eq!(texts(&all[0].1), [r#"["b","c"]"#]);
    assert_eq!(texts(&all[2].1), [r#"["A \"red\" dog .","Two, or three"]"#]);
    let lines = told(&all[0].1);
    assert!(lines.contains(&"ignored 1 other file: 1 .txt ('Flickr8k.lemma.token.txt')".to_owned()), "{lines:?}");
    // Captions of a missing image are left out.
    tree.write("Flickr8k.token.txt", &[&captions[..], b"4.jpg.1#0\tf\n4.jpg.1#1\tg\n"].concat());
    let all = splits(&tree);
    let lines = told(&all[0].1);
    assert!(
        lines.contains(&"left out 1 image of 'Flickr8k.token.txt' without a file ('4.jpg.1')".to_owned()),
        "{lines:?}"
    );
    assert_eq!(all.iter().map(|(_, listing)| listing.len()).sum::<usize>(), 3);
    tree.write("Flickr8k.token.txt", &[&captions[..], b"3.jpg\th\n"].concat());
    let error = list(&tree.path("Flickr8k.token.txt"), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("line 7: expected the name of an image, '#'"), "{error}");
}

#[test]
fn a_list_gives_the_labels_of_a_split_without_class_folders() {
    let tree = Tree::new(&["train/n1/1.jpg", "train/n2/2.jpg", "val/a.jpg", "val/b.jpg", "val/c.jpg"]);
    tree.write("test/d.jpg", b"x");
    tree.write("test/e.jpg", b"x");
    tree.write("meta/val.txt", b"a.jpg 1\nb.jpg 0\nc.jpg 1\n");
    tree.write("meta/test.txt", b"d.jpg 0\ne.jpg 0\n");
    // Without the training list, the numbers have no meaning.
    assert!(splits(&tree).iter().all(|(split, listing)| listing.has_labels() == (split == "train")));
    tree.write("meta/train.txt", b"n1/1.jpg 0\nn2/2.jpg 1\n");
    let all = splits(&tree);
    assert_eq!(names(&all), ["test", "train", "val"]);
    assert_eq!((labels(&all[2].1), classes(&all[2].1)), (vec![Some(1), Some(0), Some(1)], vec!["n1", "n2"]));
    // The same label for all images is a placeholder.
    assert!(!all[0].1.has_labels());
    let lines = told(&all[2].1);
    let expected = "the labels are read from 'meta/val.txt': each is a class of the other splits, with its number in 'meta/train.txt'";
    assert_eq!(lines, [expected]);
    assert_eq!(labels(&tree.list_split("val").unwrap()), labels(&all[2].1));
    // The training list decides what a number means.
    tree.write("meta/train.txt", b"n1/1.jpg 1\nn2/2.jpg 0\n");
    assert_eq!(labels(&splits(&tree)[2].1), [Some(0), Some(1), Some(0)]);
    for wrong in ["n1/1.jpg 0\nn1/3.jpg 1\n", "n1/1.jpg 0\nn2/2.jpg 0\n", "1.jpg 0\n2.jpg 1\n"] {
        tree.write("meta/train.txt", wrong.as_bytes());
        assert!(!splits(&tree)[2].1.has_labels(), "{wrong}");
    }
    tree.write("meta/val.txt", b"a.jpg n2\nb.jpg n1\nc.jpg n2\n");
    assert_eq!(labels(&splits(&tree)[2].1), [Some(1), Some(0), Some(1)]);
    for wrong in ["a.jpg n2\nb.jpg n1\n", "a.jpg n2\nb.jpg n1\nc.jpg n3\n", "a.jpg n2\nb.jpg n1\na.jpg n2\n"] {
        tree.write("meta/val.txt", wrong.as_bytes());
        assert!(!splits(&tree)[2].1.has_labels(), "{wrong}");
    }
}

#[test]
fn lists_beside_unlabelled_splits_are_read_as_splits() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "test/1.png"]);
    tree.write("rec_gt_train.txt", b"train/1.png\tone\ntrain/2.png\ttwo\n");
    tree.write("rec_gt_test.txt", b"test/1.png\ttwo\n");
    let all = splits(&tree);
    assert_eq!(names(&all), ["test", "train"]);
    assert_eq!((labels(&all[0].1), classes(&all[0].1)), (vec![Some(1)], vec!["one", "two"]));
    // The folders have labels of their own.
    let tree = Tree::new(&["train/a/1.png", "train/b/2.png", "test/a/1.png"]);
    tree.write("rec_gt_train.txt", b"train/a/1.png\tone\ntrain/b/2.png\ttwo\n");
    tree.write("rec_gt_test.txt", b"test/a/1.png\ttwo\n");
    assert_eq!(classes(&splits(&tree)[0].1), ["a", "b"]);
}

#[test]
fn all_splits_have_classes_or_all_have_texts() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "train/3.png", "train/4.png", "train/5.png", "test/1.png"]);
    let words =
        |words: [&str; 5]| (1..).zip(words).map(|(n, word)| format!("train/{n}.png\t{word}\n")).collect::<String>();
    tree.write("rec_gt_train.txt", words(["a", "b", "\"c\"", "d", "e"]).as_bytes());
    tree.write("rec_gt_test.txt", b"test/1.png\t\"f\"\n");
    let all = splits(&tree);
    assert_eq!((texts(&all[0].1), texts(&all[1].1)), (vec!["\"f\""], vec!["a", "b", "\"c\"", "d", "e"]));
    for (_, listing) in &all {
        assert!(!listing.has_labels() && listing.classes().is_empty());
        assert!(
            told(listing).iter().any(|line| line.starts_with("6 of 6 labels are different")),
            "{:?}",
            told(listing)
        );
    }
    // A few different labels are classes if the other split repeats them.
    let images: Vec<String> = (0..9).map(|n| format!("test/{n}.png")).collect();
    images.iter().for_each(|image| tree.write(image, b"x"));
    tree.write("rec_gt_train.txt", words(["a", "b", "c", "a", "b"]).as_bytes());
    let test: String = images.iter().map(|image| format!("{image}\ta\n")).collect();
    tree.write("rec_gt_test.txt", test.as_bytes());
    let all = splits(&tree);
    assert!(all.iter().all(|(_, listing)| classes(listing) == ["a", "b", "c"]));
    // A split with numbers has no names, so the lists are not read.
    tree.write("rec_gt_train.txt", words(["a", "b", "c", "d", "e"]).as_bytes());
    tree.write("rec_gt_test.txt", b"test/1.png\t7\n");
    assert!(splits(&tree).iter().all(|(_, listing)| listing.columns().is_empty() && !listing.has_labels()));
}

#[test]
fn labels_of_clips_are_classes_even_if_most_are_different() {
    let tree = Tree::new(&[
        "clips/1/a.jpg",
        "clips/2/a.jpg",
        "clips/3/a.jpg",
        "clips/4/a.jpg",
        "clips/5/a.jpg",
        "clips/6/a.jpg",
    ]);
    tree.write("v1-train.csv", b"1;No gesture\n2;Thumb Up\n3;Swiping Left\n4;Stop\n5;Stop\n");
    tree.write("v1-validation.csv", b"6;Stop\n");
    let all = splits(&tree);
    let names = ["No gesture", "Stop", "Swiping Left", "Thumb Up"];
    assert!(all.iter().all(|(_, listing)| listing.columns().is_empty() && classes(listing) == names));
    assert_eq!(labels(&all[1].1), [Some(1)]);
}

#[test]
fn a_column_of_true_and_false_divides_a_table_into_splits() {
    let tree = Tree::new(&["train/1.jpg", "train/2.jpg", "train/3.jpg", "test/4.jpg"]);
    tree.write("train.csv", b"fname,label,is_valid\n1.jpg,cat,False\n2.jpg,dog,True\n3.jpg,dog,False\n");
    let all = list_splits(&tree.path("train.csv"), &ListOptions::default()).unwrap();
    assert_eq!(names(&all), ["train", "valid"]);
    let note = "the splits are those of 'is_valid': true is read as valid, and false as train";
    assert!(told(&all[1].1).contains(&note.to_owned()), "{:?}", told(&all[1].1));
    assert_eq!((paths(&all[1].1), all[1].1.columns().len()), (vec!["train/2.jpg".to_owned()], 0));
    tree.write("test.csv", b"fname,label\n4.jpg,cat\n");
    let all = splits(&tree);
    let found: Vec<_> = all.iter().map(|(name, listing)| (name.as_str(), labels(listing))).collect();
    assert_eq!(found, [("test", vec![Some(0)]), ("train", vec![Some(0), Some(1)]), ("valid", vec![Some(1)])]);
    // One value is no split, and other values are no flags.
    for (flags, n) in [("False", 1), ("maybe", 0)] {
        tree.write(
            "one.csv",
            format!("path,label,is_valid\ntrain/1.jpg,cat,{flags}\ntrain/2.jpg,dog,{flags}\n").as_bytes(),
        );
        let listing = list(&tree.path("one.csv"), &ListOptions::default()).unwrap();
        assert_eq!((listing.len(), listing.columns().len()), (2, 1), "{flags} {n}");
    }
}

#[test]
fn labels_in_the_form_of_fiftyone_are_read_in_place_of_the_folder() {
    let tree = Tree::new(&["data/001.jpg", "data/002.jpg", "data/003.jpg"]);
    tree.write("labels.json", br#"{"classes": ["sunny", "rain"], "labels": {"001": 1, "002": 0, "003": null}}"#);
    let listing = tree.list().unwrap();
    assert_eq!((labels(&listing), classes(&listing)), (vec![Some(1), Some(0)], vec!["sunny", "rain"]));
    let lines = told(&listing);
    assert!(lines.contains(&"left out 1 image whose label is null ('003')".to_owned()), "{lines:?}");
    // `--from image-folder` would make a class of the folder.
    assert!(lines[0].ends_with("to read a folder without the table, pass that folder as the source"), "{lines:?}");
    // Entries of a list on one line have an index.
    tree.write("rows.json", br#"[{"path": "data/001.jpg", "label": 0}, {"path": "data/002.jpg", "label": null}]"#);
    let rows = list(&tree.path("rows.json"), &ListOptions::default()).unwrap();
    assert!(
        rows.fault(1).unwrap().to_string().ends_with("in entry 1 (counted from 0) of 'rows.json'"),
        "{:?}",
        rows.fault(1)
    );
    tree.write("labels.json", br#"{"classes": null, "labels": {"001": "rain", "002": "sunny"}}"#);
    assert_eq!(classes(&list(&tree.path("labels.json"), &ListOptions::default()).unwrap()), ["rain", "sunny"]);
    tree.write("labels.json", br#"{"classes": ["sunny", "rain"], "labels": {"001": 1, "002": 2}}"#);
    let error = list(&tree.path("labels.json"), &ListOptions::default()).unwrap_err();
    let expected = "the label of '002': expected the number of one of 2 classes, from 0 to 1, found 2";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn names_in_a_list_may_lack_an_end_that_all_images_have() {
    let images = ["train_1_aligned.jpg", "train_2_aligned.jpg", "test_1_aligned.jpg"];
    let tree =
        Tree::new(&images.map(|image| format!("Image/aligned/{image}")).iter().map(String::as_str).collect::<Vec<_>>());
    let one_class = tree.list().unwrap();
    // The hint names the folder as the option expects it.
    assert!(told(&one_class)[0].contains("add images='Image/aligned' to pack"), "{:?}", told(&one_class));
    let named = ListOptions { images: Some("Image/aligned".into()), ..ListOptions::default() };
    assert!(!list(tree.root(), &named).unwrap().has_labels());
    tree.write("EmoLabel/list_label.txt", b"train_1.jpg 5\ntrain_2.jpg 1\ntest_1.jpg 5\n");
    let listing = tree.list().unwrap();
    assert_eq!(labels(&listing), [Some(5), Some(1), Some(5)]);
    let located = "'train_1.jpg' is read from 'aligned/train_1_aligned.jpg'";
    assert!(told(&listing).iter().any(|line| line.ends_with(located)), "{:?}", told(&listing));
    // Not all images have this end.
    tree.write("Image/aligned/other.jpg", b"x");
    assert!(list(&tree.path("EmoLabel/list_label.txt"), &ListOptions::default()).unwrap().faulty().count() > 0);
}

#[test]
fn a_sample_submission_is_no_source_and_lists_that_are_read_are_not_ignored() {
    let tree = Tree::new(&["1.png", "2.png"]);
    tree.write("sampleSubmission.csv", b"id,label\n1,0\n2,0\n");
    let lines = told(&tree.list().unwrap());
    assert_eq!(lines, ["ignored 1 other file: 1 .csv ('sampleSubmission.csv')"]);
    let tree = Tree::new(&["1.png", "2.png"]);
    tree.write("a_train.txt", b"1.png\n");
    tree.write("a_val.txt", b"2.png\n");
    tree.write("notes.txt", b"other\n");
    let all = splits(&tree);
    assert_eq!(told(&all[0].1), ["the splits are those of 'a_train.txt', 'a_val.txt'", "ignored 1 other file: 1 .txt"]);
    assert!(matches!(tree.list(), Err(ConvertError::SeveralSplits { .. })));
}
