//! Tables next to images: tables that are joined, tables that are preferred to others, and tables with other labels
//! than the folders.

use super::{Tree, classes, labels, paths};
use crate::source::listing::Listing;
use crate::source::{ColumnValues, ListOptions, Listed, list, list_all, list_splits};

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

fn columns(listing: &Listing) -> Vec<&str> {
    listing.columns().iter().map(|column| column.name.as_str()).collect()
}

fn with_label(key: &str) -> ListOptions {
    ListOptions { label_key: Some(key.to_owned()), ..ListOptions::default() }
}

/// The tables of CelebA, with fewer columns.
fn celeba() -> Tree {
    let tree = Tree::new(&["img/1.jpg", "img/2.jpg", "img/3.jpg", "img/4.jpg"]);
    tree.write("list_attr.csv", b"image_id,Bald,Male,Young\n1.jpg,-1,1,0\n2.jpg,1,-1,1\n3.jpg,-1,-1,1\n4.jpg,1,1,0\n");
    tree.write("list_eval_partition.csv", b"image_id,partition\n4.jpg,2\n3.jpg,1\n2.jpg,0\n1.jpg,0\n");
    tree.write("list_landmarks.csv", b"image_id,eye_x,eye_y\n1.jpg,1,5\n2.jpg,2,6\n3.jpg,3,7\n4.jpg,4,8\n");
    tree
}

#[test]
fn tables_with_a_row_for_each_image_are_joined() {
    let tree = celeba();
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = splits.iter().map(|(split, listing)| (split.as_str(), paths(listing).concat())).collect();
    let path = |path: &str| path.to_owned();
    assert_eq!(found, [("test", path("img/4.jpg")), ("train", path("img/1.jpgimg/2.jpg")), ("val", path("img/3.jpg"))]);
    assert_eq!(columns(&splits[0].1), ["Bald", "Male", "Young", "eye_x", "eye_y"]);
    assert_eq!(paths(&tree.list_split("val").unwrap()), ["img/3.jpg"]);
    let words = "the splits are those of 'partition': 0 is read as train, 1 as val and 2 as test (leave_out='partition' packs all images together)";
    assert!(told(&splits[0].1).iter().any(|text| text.contains(words)), "{:?}", told(&splits[0].1));
    let options = ListOptions { leave_out: vec!["partition".to_owned()], ..ListOptions::default() };
    let listing = list(tree.root(), &options).unwrap();
    assert_eq!((listing.len(), columns(&listing)), (4, vec!["Bald", "Male", "Young", "eye_x", "eye_y"]));
    // Without 2, it is unclear what 0 and 1 mean.
    tree.write("list_eval_partition.csv", b"image_id,partition\n4.jpg,1\n3.jpg,1\n2.jpg,0\n1.jpg,0\n");
    let listing = tree.list().unwrap();
    assert_eq!(columns(&listing), ["Bald", "Male", "Young", "partition", "eye_x", "eye_y"]);
    let values = format!("{:?}", listing.columns()[3].values);
    assert_eq!(values, "I64([0, 0, 1, 1])");
    let told = told(&listing);
    assert!(told[0].starts_with("read the images in 'list_attr.csv'"), "{told:?}");
    let words = "joined 'list_attr.csv' with 'list_eval_partition.csv' (columns 'partition'), 'list_landmarks.csv' (columns 'eye_x', 'eye_y'): each has one row for each image; 'partition' is packed as a field: 0, 1 and 2 usually mean train, val and test; columns of -1 and 1 (first: 'Bald') can be labels after -1 is replaced with 0, because class ids count from 0";
    assert!(told.iter().any(|text| text == words), "{told:?}");
    let listing = list(tree.root(), &with_label("Young")).unwrap();
    assert_eq!((labels(&listing), listing.columns().len()), (vec![Some(0), Some(1), Some(1), Some(0)], 5));
    let error = list(tree.root(), &with_label("Male")).unwrap_err();
    assert!(error.to_string().contains("column 'Male': a class id is negative"), "{error}");
    let options = ListOptions { leave_out: vec!["Bald".to_owned()], ..ListOptions::default() };
    assert_eq!(columns(&list(tree.root(), &options).unwrap()), ["Male", "Young", "partition", "eye_x", "eye_y"]);
}

#[test]
fn tables_that_do_not_fit_are_not_joined() {
    // The other table has a column of the same name, has fewer rows, or lists an image twice.
    for other in [
        "image_id,Male,size\n1.jpg,0.5,1\n2.jpg,0.6,1\n3.jpg,0.7,1\n4.jpg,0.8,1\n",
        "image_id,age,size\n1.jpg,5,1\n2.jpg,6,1\n3.jpg,7,1\n",
        "image_id,age,size\n1.jpg,5,1\n2.jpg,6,1\n3.jpg,7,1\n3.jpg,8,1\n",
    ] {
        let tree = Tree::new(&["img/1.jpg", "img/2.jpg", "img/3.jpg", "img/4.jpg"]);
        tree.write("attr.csv", b"image_id,Bald,Male\n1.jpg,-1,1\n2.jpg,1,-1\n3.jpg,-1,-1\n4.jpg,1,1\n");
        tree.write("other.csv", other.as_bytes());
        let told = told(&tree.list().unwrap());
        assert!(!told.iter().any(|text| text.contains("joined")), "{told:?}");
    }
}

#[test]
fn a_table_of_labels_is_joined_with_one_of_other_fields() {
    let tree = Tree::new(&["in/a.jpg", "in/b.jpg", "in/c.jpg"]);
    tree.write("truth.csv", b"image,MEL,NV\na,1.0,0.0\nb,0.0,1.0\nc,1.0,0.0\n");
    tree.write("meta.csv", b"image,age,sex\nb,30,f\na,50,m\nc,,f\n");
    let listing = tree.list().unwrap();
    assert_eq!((labels(&listing), columns(&listing)), (vec![Some(0), Some(1), Some(0)], vec!["age", "sex"]));
    assert_eq!(classes(&listing), ["MEL", "NV"]);
    let text = format!("{:?}", listing.columns()[0].values);
    assert!(text.starts_with("F64([50.0, 30.0, NaN"), "{text}");
}

#[test]
fn the_only_list_of_all_images_is_read() {
    let tree = Tree::new(&["Images/a.jpg", "Images/b.jpg", "Images/c.jpg"]);
    tree.write("files/All_labels.txt", b"c.jpg 3.5\na.jpg 1.25\nb.jpg 2.0\n");
    tree.write("files/60/train.txt", b"a.jpg 1.25\n");
    tree.write("files/60/test.txt", b"b.jpg 2.0\nc.jpg 3.5\n");
    let Listed::Splits(splits) = list_all(tree.root(), &ListOptions::default()).unwrap() else { panic!() };
    assert_eq!(paths(&splits[0].1), ["c.jpg", "b.jpg"]);
    assert_eq!(format!("{:?}", splits[1].1.columns()[0].values), "F64([1.25])");
    tree.write("files/other/train_1.txt", b"b.jpg 2.0\n");
    tree.write("files/other/test_1.txt", b"a.jpg 1.25\n");
    let listing = tree.list().unwrap();
    assert_eq!(format!("{:?}", listing.columns()[0].values), "F64([3.5, 1.25, 2.0])");
    let told = told(&listing);
    assert!(told.iter().any(|text| text.starts_with("read the images in 'files/All_labels.txt'")), "{told:?}");
    assert!(told[0].contains("were not used as splits: the lists divide the images in 2 ways"), "{told:?}");
}

#[test]
fn a_table_with_other_labels_than_the_folders_is_told() {
    let tree = Tree::new(&["a/1.jpg", "a/2.jpg", "b/3.jpg", "c/4.jpg"]);
    tree.write("metadata.csv", b"id,filename,y,place\n1,a/1.jpg,0,0\n2,a/2.jpg,0,1\n3,b/3.jpg,1,0\n4,c/4.jpg,1,1\n");
    let listing = tree.list().unwrap();
    let words = format!(
        "the folders are read as 3 classes, but 'metadata.csv' has other labels, of 2 classes, for the same images: to read the labels of the table, pass {} as the source",
        tree.path("metadata.csv").display()
    );
    assert_eq!((told(&listing).first(), listing.classes().len()), (Some(&words), 3));
    assert_eq!(list(&tree.path("metadata.csv"), &ListOptions::default()).unwrap().len(), 4);
    // A table with the same classes under other names does not contradict the folders.
    tree.write("metadata.csv", b"filename,y\na/1.jpg,2\na/2.jpg,2\nb/3.jpg,1\nc/4.jpg,0\n");
    let told = told(&tree.list().unwrap());
    assert!(told[0].starts_with("'metadata.csv' was not read"), "{told:?}");
}

#[test]
fn a_table_next_to_splits_labels_the_split_without_classes() {
    let images = ["1", "2", "3", "4"].map(|name| format!("D/Test/Images/{name}.ppm"));
    let tree = Tree::new(&images.each_ref().map(String::as_str));
    tree.write("D/Training/Images/00000/a.ppm", b"x");
    tree.write("D/Training/Images/00002/b.ppm", b"x");
    tree.write("GT-test.csv", b"Filename;Width;ClassId\n1.ppm;3;2\n2.ppm;3;0\n3.ppm;3;0\n4.ppm;3;2\n");
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let (split, test) = &splits[0];
    assert_eq!(
        (split.as_str(), labels(test), classes(test)),
        ("Test", vec![Some(1), Some(0), Some(0), Some(1)], vec!["00000", "00002"])
    );
    let words = "the labels are read from 'GT-test.csv': each is a class of the other splits";
    assert!(told(test).iter().any(|text| text == words), "{:?}", told(test));
    for (_, listing) in &splits {
        assert!(!told(listing).iter().any(|text| text.contains("was not read") || text.contains("has no labels")));
    }
    assert_eq!(labels(&tree.list_split("Test").unwrap()), [Some(1), Some(0), Some(0), Some(1)]);
    // The label 1 is not a class of the other splits.
    tree.write("GT-test.csv", b"Filename;Width;ClassId\n1.ppm;3;2\n2.ppm;3;1\n3.ppm;3;1\n4.ppm;3;2\n");
    let (_, test) = &list_splits(tree.root(), &ListOptions::default()).unwrap()[0];
    assert!(!test.has_labels() && told(test).iter().any(|text| text.contains("'GT-test.csv' was not read")));
}

#[test]
fn the_few_labels_of_a_split_are_classes_of_the_other_splits() {
    // Tiny ImageNet, Hugging Face and others: more than half of the labels are different, so the list alone has texts.
    let tree = Tree::new(&["train/a/1.jpg", "train/b/2.jpg", "train/c/3.jpg", "train/d/4.jpg", "train/e/5.jpg"]);
    let images = ["0", "1", "2", "3", "4"].map(|name| format!("val/images/{name}.jpg"));
    images.iter().for_each(|image| tree.write(image, b"x"));
    tree.write("val/val_annotations.txt", b"0.jpg\td\t1\n1.jpg\ta\t2\n2.jpg\tb\t3\n3.jpg\tc\t4\n4.jpg\ta\t5\n");
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let (_, val) = &splits[1];
    let ids = [3, 0, 1, 2, 0].map(Some);
    assert_eq!((labels(val), classes(val)), (ids.to_vec(), vec!["a", "b", "c", "d", "e"]));
    assert_eq!(labels(&tree.list_split("val").unwrap()), ids);
    // 'x' is no class of the other split.
    tree.write("val/val_annotations.txt", b"0.jpg\tx\t1\n1.jpg\ta\t2\n2.jpg\tb\t3\n3.jpg\tc\t4\n4.jpg\ta\t5\n");
    let (_, val) = &list_splits(tree.root(), &ListOptions::default()).unwrap()[1];
    assert!(!val.has_labels() && columns(val)[0] == "text", "{:?}", columns(val));
    // A table next to the splits with one label for each of few images.
    let tree = Tree::new(&["Train/0/1.jpg", "Train/1/2.jpg", "Train/2/3.jpg", "Test/a.jpg", "Test/b.jpg"]);
    tree.write("Test.csv", b"Width,ClassId,Path\n7,2,Test/a.jpg\n8,1,Test/b.jpg\n");
    let (_, test) = &list_splits(tree.root(), &ListOptions::default()).unwrap()[0];
    assert_eq!(labels(test), [Some(2), Some(1)]);
}

#[test]
fn splits_of_tables_have_the_same_column_of_labels() {
    let images = ["Test/0.jpg", "Test/1.jpg", "Train/0.jpg", "Train/1.jpg", "Train/2.jpg", "Train/3.jpg"];
    let tree = Tree::new(&images);
    let header = "Width,Height,ClassId,Path\n";
    tree.write(
        "Train.csv",
        format!("{header}5,6,4,Train/0.jpg\n6,6,4,Train/1.jpg\n7,7,9,Train/2.jpg\n8,7,9,Train/3.jpg\n").as_bytes(),
    );
    tree.write("Test.csv", format!("{header}5,6,9,Test/0.jpg\n6,7,4,Test/1.jpg\n").as_bytes());
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let (_, test) = &splits[0];
    assert_eq!((labels(test), columns(test)), (vec![Some(9), Some(4)], vec!["Width", "Height"]));
    assert!(told(test).contains(&"labels are read from 'ClassId', because of its name".to_owned()), "{:?}", told(test));
}

#[test]
fn the_only_table_with_a_value_for_each_image_is_read() {
    let tree = Tree::new(&["faces/1.jpg", "faces/2.jpg"]);
    tree.write("landmarks.csv", b"image_name,x,y\n1.jpg,0.5,1.5\n2.jpg,2.5,3.5\n");
    let listing = tree.list().unwrap();
    assert_eq!(columns(&listing), ["x", "y"]);
    assert!(told(&listing)[0].starts_with("read the images in 'landmarks.csv'"), "{:?}", told(&listing));
    // Without a row for each image, the table is not read, and a warning names it.
    tree.write("landmarks.csv", b"image_name,x,y\n1.jpg,0.5,1.5\n");
    let listing = tree.list().unwrap();
    let is_unread = |text: &String| text.contains("'landmarks.csv' was not read");
    assert!(columns(&listing).is_empty() && told(&listing).iter().any(is_unread));
    // If there are two such tables, neither is read.
    tree.write("landmarks.csv", b"image_name,x,y\n1.jpg,0.5,1.5\n2.jpg,2.5,3.5\n");
    tree.write("others.csv", b"image_name,x,y\n1.jpg,0.5,1.5\n2.jpg,2.5,4.5\n");
    assert!(columns(&tree.list().unwrap()).is_empty());
}

#[test]
fn the_only_json_file_with_a_split_for_each_image_gives_the_splits() {
    let tree = Tree::new(&["images/1.jpg", "images/2.jpg", "images/3.jpg"]);
    let row = |name: &str, split: &str| format!("{{\"filename\": \"{name}.jpg\", \"split\": \"{split}\", \"n\": [1]}}");
    let rows = [row("1", "train"), row("2", "train"), row("3", "test")].join(", ");
    tree.write("dataset.json", format!("{{\"images\": [{rows}], \"dataset\": \"x\"}}").as_bytes());
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let facts: Vec<(&str, usize)> = splits.iter().map(|(split, listing)| (split.as_str(), listing.len())).collect();
    assert_eq!(facts, [("test", 1), ("train", 2)]);
    assert_eq!(columns(&splits[0].1), ["n"]);
}

#[test]
fn quotes_in_a_list_with_tabs_are_part_of_the_text() {
    let tree = Tree::new(&["1.png", "2.png", "3.png", "4.png", "5.png"]);
    tree.write("list.txt", b"1.png\t\"Sale\"\n2.png\tsay \"hi\"\n3.png\t5'\n4.png\tc\n5.png\td\n");
    let listing = list(&tree.root().join("list.txt"), &ListOptions::default()).unwrap();
    let ColumnValues::Text(texts) = &listing.columns()[0].values else { panic!() };
    assert_eq!(texts.iter().take(2).collect::<Vec<_>>(), ["\"Sale\"", "say \"hi\""]);
}

#[test]
fn a_quote_that_is_not_closed_in_a_list_with_spaces_is_part_of_the_text() {
    let tree = Tree::new(&["1.png", "2.png", "3.png", "my 4.png"]);
    let texts_of = |lines: &[u8]| {
        tree.write("words.txt", lines);
        let listing = list(&tree.root().join("words.txt"), &ListOptions::default()).unwrap();
        let column = listing.columns().iter().find(|column| column.name == "column_3").unwrap();
        let ColumnValues::Text(texts) = &column.values else { panic!() };
        texts.iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let words = texts_of(b"# the \"words\"\n1.png ok \"\n2.png ok \"a\"\n3.png err b\n");
    assert_eq!(words, ["\"", "\"a\"", "b"]);
    // Quotes that are closed on each line may be around spaces.
    assert_eq!(texts_of(b"1.png ok \"a\"\n\"my 4.png\" err 5\"\n"), ["a", "5\""]);
}

#[test]
fn a_final_test_is_a_split() {
    let test: Vec<String> = (0..4).map(|i| format!("Final_Test/Images/{i}.png")).collect();
    let train = ["Training/00000/1.png", "Training/00014/2.png"];
    let tree = Tree::new(&train.into_iter().chain(test.iter().map(String::as_str)).collect::<Vec<_>>());
    tree.write("GT-final_test.csv", b"Filename;Width;ClassId\n0.png;5;14\n1.png;6;0\n2.png;5;14\n3.png;6;0\n");
    tree.write("Final_Test/Images/GT-final_test.test.csv", b"Filename;Width\n0.png;5\n1.png;6\n2.png;5\n3.png;6\n");
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    assert_eq!(splits.iter().map(|(split, _)| split.as_str()).collect::<Vec<_>>(), ["Final_Test", "Training"]);
    // The labels of a table next to the splits are preferred to a table in the split without labels.
    let (_, final_test) = &splits[0];
    let expected = (vec![Some(1), Some(0), Some(1), Some(0)], vec!["00000", "00014"]);
    assert_eq!((labels(final_test), classes(final_test)), expected);
}
