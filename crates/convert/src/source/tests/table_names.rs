//! Tables of a folder: which images they name, and where their class names come from.

use std::path::PathBuf;

use super::{Tree, classes, paths};
use crate::error::ConvertError;
use crate::source::{ListOptions, Listing, Warning, list, list_splits};

fn labels(listing: &Listing) -> Vec<i64> {
    super::labels(listing).into_iter().flatten().collect()
}

#[test]
fn folders_of_splits_that_a_table_does_not_name_are_splits_without_labels() {
    let tree = Tree::new(&["train_images/1.png", "train_images/2.png", "test_images/3.png", "valid/x/4.png"]);
    tree.write("labels.csv", b"id,label\n1,pug\n2,husky\n");
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = all.iter().map(|(name, listing)| (name.as_str(), paths(listing), labels(listing))).collect();
    let train = vec!["train_images/1.png".to_owned(), "train_images/2.png".to_owned()];
    assert_eq!(
        found,
        [
            ("test_images", vec!["test_images/3.png".to_owned()], vec![]),
            ("train_images", train, vec![1, 0]),
            ("valid", vec!["valid/x/4.png".to_owned()], vec![]),
        ]
    );
    assert!(all.iter().all(|(_, listing)| classes(listing) == ["husky", "pug"]));
    assert_eq!(
        all[0].1.warnings()[0].to_string(),
        "'labels.csv' names no image in 'test_images', so the folder is a split without labels"
    );
    let valid = ListOptions { split: Some("valid".to_owned()), ..ListOptions::default() };
    assert_eq!(list(tree.root(), &valid).unwrap().len(), 1);
    assert!(matches!(list(tree.root(), &ListOptions::default()), Err(ConvertError::SeveralSplits { .. })));
    // The folder is not divided into splits if only some images of a split are in the table, or if the table names several splits.
    for table in ["id,label\n1,pug\n", "id,label\ntrain_images/1,pug\ntrain_images/2,pug\nvalid/x/4,husky\n"] {
        tree.write("labels.csv", table.as_bytes());
        let listing = list(tree.root(), &ListOptions::default()).unwrap();
        assert!(listing.warnings()[0].to_string().contains("in the folder"), "{table}");
    }
}

#[test]
fn a_json_file_beside_a_table_has_the_names_of_its_ids() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "train/3.png", "test/4.png"]);
    tree.write("label_num_to_disease_map.json", b"{\"0\": \"mould\", \"1\": \"blight\", \"2\": \"healthy\"}");
    tree.write("train.csv", b"image_id,label\n1,2\n2,0\n3,2\n");
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let (test, train) = (&all[0].1, &all[1].1);
    assert_eq!((classes(train), labels(train)), (vec!["mould", "blight", "healthy"], vec![2, 0, 2]));
    assert_eq!((classes(test), test.has_labels()), (classes(train), false));
    let told: Vec<String> = train.warnings().iter().map(ToString::to_string).collect();
    assert!(told.contains(&"the class names are read from 'label_num_to_disease_map.json'".to_owned()), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("other file")), "{told:?}");
    // An id has no name, or a second file has other names.
    tree.write("train.csv", b"image_id,label\n1,3\n2,0\n3,2\n");
    assert!(classes(&list(&tree.path("train.csv"), &ListOptions::default()).unwrap()).is_empty());
    tree.write("train.csv", b"image_id,label\n1,1\n2,0\n3,2\n");
    tree.write("classes.json", b"[\"a\", \"b\", \"c\"]");
    let listing = list(&tree.path("train.csv"), &ListOptions::default()).unwrap();
    let unread = Warning::ClassNamesUnread { file: b"classes.json".to_vec(), of_ids: true };
    assert!(listing.classes().is_empty() && listing.warnings().contains(&unread), "{:?}", listing.warnings());
}

#[test]
fn lists_of_labels_in_two_tables_share_their_ids() {
    let tree = Tree::new(&["img/1.png", "img/2.png", "img/3.png", "img/4.png"]);
    tree.write("train.csv", b"path,labels\nimg/1.png,dog;owl\nimg/2.png,owl\n");
    tree.write("val.csv", b"path,labels\nimg/3.png,owl;cat\nimg/4.png,cat\n");
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let lists: Vec<_> = all.iter().map(|(_, listing)| [0, 1].map(|idx| listing.label_list(idx).unwrap())).collect();
    assert_eq!(classes(&all[1].1), ["cat", "dog", "owl"]);
    assert_eq!(lists, [[&[1, 2][..], &[2][..]], [&[0, 2][..], &[0][..]]]);
}

#[test]
fn coco_files_of_classes_are_splits_with_the_same_ids() {
    let tree = Tree::new(&["all/Aves/9/1.jpg", "all/Aves/9/2.jpg", "all/Plantae/4/3.jpg", "all/Plantae/4/4.jpg"]);
    let coco = |images: &str, annotations: &str| {
        let categories = r#"[{"id": 9, "name": "owl"}, {"id": 4, "name": "yew"}]"#;
        format!(r#"{{"info": {{}}, "categories": {categories}, "images": [{images}], "annotations": [{annotations}]}}"#)
    };
    let image = |id: u32, path: &str| format!(r#"{{"id": {id}, "file_name": "all/{path}", "width": 5}}"#);
    let (one, two) = (image(1, "Aves/9/1.jpg"), image(2, "Plantae/4/3.jpg"));
    let labels_of_two = r#"{"id": 1, "image_id": 2, "category_id": 4}, {"id": 2, "image_id": 1, "category_id": 9}"#;
    tree.write("train2018.json", coco(&format!("{one}, {two}"), labels_of_two).as_bytes());
    let label = r#"{"id": 3, "image_id": 3, "category_id": 9}"#;
    tree.write("val2018.json", coco(&image(3, "Aves/9/2.jpg"), label).as_bytes());
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = all.iter().map(|(name, listing)| (name.as_str(), paths(listing), labels(listing))).collect();
    let train = vec!["all/Aves/9/1.jpg".to_owned(), "all/Plantae/4/3.jpg".to_owned()];
    assert_eq!(found, [("train", train, vec![1, 0]), ("val", vec!["all/Aves/9/2.jpg".to_owned()], vec![1])]);
    assert!(all.iter().all(|(_, listing)| classes(listing) == ["yew", "owl"]));
    let told: Vec<String> = all[0].1.warnings().iter().map(ToString::to_string).collect();
    assert!(told[0].contains("ignored 1 other image in the folder ('all/Plantae/4/4.jpg')"), "{told:?}");
    let categories = "the classes are the file's categories, in the order of their ids";
    assert!(told.iter().any(|line| line == categories), "{told:?}");
    // The file alone has the same class ids.
    let val = list(&tree.path("val2018.json"), &ListOptions::default()).unwrap();
    assert_eq!((labels(&val), classes(&val)), (vec![1], vec!["yew", "owl"]));
    // A file of outlines is not a table of classes.
    let outlines = r#"{"id": 3, "image_id": 3, "category_id": 9, "segmentation": [[0, 0, 1, 1]]}"#;
    tree.write("val2018.json", coco(&image(3, "Aves/9/2.jpg"), outlines).as_bytes());
    let error = list(&tree.path("val2018.json"), &ListOptions::default()).unwrap_err();
    assert!(error.to_string().contains("a COCO file with outlines or points"), "{error}");
    let train = list(tree.root(), &ListOptions::default()).unwrap();
    assert_eq!((labels(&train), train.warnings()[0].to_string().contains("'train2018.json'")), (vec![1, 0], true));
}

#[test]
fn a_coco_file_beside_splits_has_the_labels_of_one() {
    let tree = Tree::new(&["train/1.jpg", "train/2.jpg", "test/3.jpg"]);
    let text = r#"{"images": [{"id": "x", "file_name": "1.jpg"}, {"id": "y", "file_name": "2.jpg"}], "annotations":
        [{"image_id": "y", "category_id": 0}, {"image_id": "x", "category_id": 1}], "categories": [{"id": 0, "name": "empty"}, {"id": 1, "name": "deer"}]}"#;
    tree.write("iwildcam_train_annotations.json", text.as_bytes());
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let found: Vec<_> = all.iter().map(|(name, listing)| (name.as_str(), labels(listing))).collect();
    assert_eq!((classes(&all[1].1), found), (vec!["empty", "deer"], vec![("test", vec![]), ("train", vec![1, 0])]));
}

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn files_that_name_no_images_of_a_folder_are_not_offered_as_sources() {
    let tree = Tree::new(&["cat/c1.jpg", "cat/c2.jpg", "dog/d1.jpg", "dog/d2.jpg"]);
    let offered = "if it has labels or other fields, pass it as the source";
    let unread = "was not read: it lists no images of this folder";
    for (file, text, end) in [
        ("labels.csv", "path,label\ncat/c1.jpg,4\ndog/d1.jpg,5\n", offered),
        ("labels.csv", "label,name\n0,house cat\n1,dingo\n", unread),
        ("labels.csv", "path,label\nno/1.jpg,4\nno/2.jpg,5\n", unread),
        ("words.txt", "# comment\nc1 ok 154 A\nd1 err 12 MOVE\n", offered),
        ("words.txt", "n0001\tentity\nn0002\tthing\n", "class names come only from folders and labels"),
    ] {
        tree.write(file, text.as_bytes());
        let told = told(&list(tree.root(), &ListOptions::default()).unwrap());
        assert!(told.iter().any(|line| line.contains(&format!("'{file}'")) && line.contains(end)), "{text}: {told:?}");
        std::fs::remove_file(tree.path(file)).unwrap();
    }
}

#[test]
fn a_text_file_for_each_image_is_told_with_the_folder() {
    let tree = Tree::new(&["image_2/000000.png", "image_2/000001.png", "calib/000000.txt", "calib/000001.txt"]);
    tree.write("label_2/000000.txt", b"Car 0.0 0 -1.58 171.0 99.0 283.0 166.0\n");
    tree.write("label_2/000001.txt", b"");
    let told = told(&list(tree.root(), &ListOptions::default()).unwrap());
    let words = "'calib', 'label_2' each have a text file for each image in 'image_2', but packds reads text files only next to their images; if these text files contain boxes, packds cannot pack them yet";
    assert!(told.iter().any(|line| line == words), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("as the source")), "{told:?}");
}

#[test]
fn lists_two_folders_below_are_told_and_read() {
    let tree = Tree::new(&["JPEGImages/2007_1.jpg", "JPEGImages/2007_2.jpg", "Annotations/2007_1.xml"]);
    tree.write("ImageSets/Main/train.txt", b"2007_1\n");
    tree.write("ImageSets/Main/cat_val.txt", b"2007_2 1\n");
    let options = ListOptions { images: Some(PathBuf::from("JPEGImages")), ..ListOptions::default() };
    let told = told(&list(tree.root(), &options).unwrap());
    let words = "'ImageSets/Main/train.txt' and 1 other file were not read: if they have labels or splits, pass one as the source";
    assert!(told.iter().any(|line| line == words), "{told:?}");
    let train = list(&tree.path("ImageSets/Main/train.txt"), &ListOptions::default()).unwrap();
    assert_eq!(paths(&train), ["2007_1.jpg"]);
    let cats = list(&tree.path("ImageSets/Main/cat_val.txt"), &ListOptions::default()).unwrap();
    assert_eq!((paths(&cats), labels(&cats)), (vec!["2007_2.jpg".to_owned()], vec![1]));
}

#[test]
fn a_file_named_like_boxes_beside_splits_is_told() {
    let tree = Tree::new(&["WIDER_train/images/a/1.jpg", "WIDER_train/images/b/2.jpg", "WIDER_val/images/a/3.jpg"]);
    tree.write("wider_face_split/wider_face_train_bbx_gt.txt", b"a/1.jpg\n1\n4 1 22 30 0 0 0 0 0 0\n");
    for (split, listing) in list_splits(tree.root(), &ListOptions::default()).unwrap() {
        let told = told(&listing);
        let words = "'wider_face_split/wider_face_train_bbx_gt.txt' was not read: its name suggests boxes, and packds cannot pack boxes yet";
        assert!(told.iter().any(|line| line == words), "{split}: {told:?}");
    }
}

#[test]
fn images_beside_those_of_a_table_are_counted() {
    let tree = Tree::new(&["t/a.jpg", "t/a_mask.png", "t/b.jpg", "t/c.jpg", "u/d.jpg"]);
    tree.write("m.csv", b"path,mask,label\nt/a.jpg,t/a_mask.png,1\n");
    let told = told(&list(&tree.path("m.csv"), &ListOptions::default()).unwrap());
    let words = "found 2 images without rows in the table (first: 't/b.jpg'): not packed, although other images in the same folder have rows";
    assert_eq!(told, [words]);
}

#[test]
fn the_label_of_a_list_without_column_names_is_told_and_can_be_another_column() {
    let tree = Tree::new(&["w/a01-00.png", "w/a01-01.png"]);
    tree.write("words.txt", b"#--- words.txt\na01-00 ok 154 AT A\na01-01 err 12 NN MOVE\n");
    let listing = list(&tree.path("words.txt"), &ListOptions::default()).unwrap();
    let words = "the columns have no names, so the second one is read as the labels, such as 'ok'; for the labels in another column, add an option such as label_key='column_5'";
    assert!(told(&listing).iter().any(|line| line == words), "{:?}", told(&listing));
    let key = ListOptions { label_key: Some("column_4".to_owned()), ..ListOptions::default() };
    let listing = list(&tree.path("words.txt"), &key).unwrap();
    let columns: Vec<&str> = listing.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!((classes(&listing), columns), (vec!["AT", "NN"], vec!["source_label", "column_3", "column_5"]));
    assert!(!told(&listing).iter().any(|line| line.contains("the second one")));
}
