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

/// The error and the hint.
fn refused(tree: &Tree) -> (String, String) {
    let error = tree.list().unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

fn told(listing: &Listing) -> Vec<String> {
    listing.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn a_split_beside_a_dataset_of_splits_is_not_read_alone() {
    let tree = Tree::new(&["P/P/train/a/1.jpg", "P/P/train/b/1.jpg", "P/P/valid/a/2.jpg", "test/test/3.jpg"]);
    let (error, hint) = refused(&tree);
    assert!(
        error.ends_with(
            "'P/P' contains the splits 'train' and 'valid', so 'test' next to it is not read as the only split"
        ),
        "{error}"
    );
    assert!(hint.contains(&format!("convert '{}' alone", tree.path("P/P").display())), "{hint}");
    assert_eq!(list_splits(&tree.path("P/P"), &ListOptions::default()).unwrap().len(), 2);
    assert_eq!(tree.list_split("test").unwrap().len(), 1);
    // Folders of splits without images are no dataset.
    let tree = Tree::new(&["train/a/1.jpg", "train/b/1.jpg", "lists/train/1.txt", "lists/val/1.txt"]);
    assert_eq!(list_splits(tree.root(), &ListOptions::default()).unwrap().len(), 1);
}

#[test]
fn splits_in_image_and_mask_folders_may_lack_masks() {
    let tree = Tree::new(&[
        "img_dir/train/1.png",
        "img_dir/val/2.png",
        "img_dir/test/3.png",
        "img_dir/extra/4.png",
        "ann_dir/train/1_instance_color_RGB.png",
        "ann_dir/val/2_instance_color_RGB.png",
    ]);
    let named = ListOptions { images: Some("img_dir".into()), masks: Some("ann_dir".into()), ..ListOptions::default() };
    for options in [ListOptions::default(), named] {
        let splits = list_splits(tree.root(), &options).unwrap();
        let found: Vec<_> = splits.iter().map(|(name, own)| (name.as_str(), own.len(), own.has_masks())).collect();
        assert_eq!(found, [("test", 1, false), ("train", 1, true), ("val", 1, true)]);
        let said = "the images have no masks: there is no folder 'ann_dir/test'";
        assert!(told(&splits[0].1).contains(&said.to_owned()), "{:?}", splits[0].1.warnings());
        let beside = Warning::FoldersBesideSplits { count: 1, first: b"extra".to_vec() };
        assert!(splits[0].1.warnings().contains(&beside), "{:?}", splits[0].1.warnings());
    }
}

#[test]
fn other_masks_of_an_image_are_told() {
    let masks = ["gtFine/train/u_1_gtFine_labelIds.png", "gtFine/train/u_1_gtFine_labelTrainIds.png"];
    let tree = Tree::new(&["leftImg8bit/train/u_1_leftImg8bit.png", masks[0], masks[1]]);
    let said = told(&tree.list_split("train").unwrap()).join("\n");
    let expected =
        format!("ignored 1 other mask of images that have a mask: '{}' is packed, and '{}' is not", masks[0], masks[1]);
    assert!(said.contains(&expected) && !said.contains("without an image"), "{said}");
    fs::remove_file(tree.path(masks[0])).unwrap();
    let listing = tree.list_split("train").unwrap();
    assert!(listing.has_masks() && listing.warnings().is_empty(), "{:?}", listing.warnings());
}

#[test]
fn two_versions_of_each_image_in_each_folder_are_no_classes() {
    let files: Vec<String> = ["s1", "s2"]
        .iter()
        .flat_map(|scene| ["noisy", "clean"].map(|version| format!("{scene}/{version}/1.png")))
        .collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let (error, hint) = refused(&tree);
    assert!(error.contains("each of its 2 folders has two versions of each image, in 'noisy' and 'clean'"), "{error}");
    assert!(hint.contains("mkdir -p pairs/input pairs/target; for d in '"), "{hint}");
    // Folders with other names, or without partners, may be parts of classes.
    for files in [
        ["a/x/1.png", "a/y/1.png", "b/x/2.png", "b/y/2.png"],
        ["a/noisy/1.png", "a/clean/2.png", "b/noisy/3.png", "b/clean/4.png"],
    ] {
        assert_eq!(classes(&Tree::new(&files).list().unwrap()), ["a", "b"]);
    }
}

#[test]
fn folders_of_logs_and_lists_without_images_are_no_classes() {
    let tree = Tree::new(&["Art/1.jpg", "Product/1.jpg", "image_list/Art.txt"]);
    tree.mkdir("log");
    let listing = tree.list().unwrap();
    assert_eq!((classes(&listing), listing.ignored()), (vec!["Art", "Product"], 1));
    let said = told(&listing);
    assert!(said.contains(&"ignored 2 folders without images (first: 'image_list')".to_owned()), "{said:?}");
    // With images, such a folder may be a class.
    assert_eq!(classes(&Tree::new(&["log/1.jpg", "tree/1.jpg"]).list().unwrap()), ["log", "tree"]);
}

#[test]
fn splits_may_be_called_datasets_or_by_two_letters() {
    let tree = Tree::new(&[
        "TrainDataset/image/1.png",
        "TrainDataset/mask/1.png",
        "TestDataset/CVC/images/2.png",
        "TestDataset/CVC/masks/2.png",
        "TestDataset/Kvasir/images/3.png",
        "TestDataset/Kvasir/masks/3.png",
    ]);
    let duts =
        Tree::new(&["D-TR/D-TR-Image/1.jpg", "D-TR/D-TR-Mask/1.png", "D-TE/D-TE-Image/2.jpg", "D-TE/D-TE-Mask/2.png"]);
    for (tree, expected) in [(tree, ["TestDataset", "TrainDataset"]), (duts, ["D-TE", "D-TR"])] {
        let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
        let names: Vec<&str> = splits.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected);
        assert!(splits.iter().all(|(_, listing)| listing.has_masks()));
    }
}

#[test]
fn folders_with_values_for_their_images_are_no_classes() {
    let tree = Tree::new(&["part-000001/a.png", "part-000002/b.png"]);
    tree.write("part-000001/part-000001.json", b"{\"a.png\": {\"p\": \"a cat\", \"se\": 1}}");
    tree.write("part-000002/part-000002.json", b"{\"b.png\": {\"p\": \"a dog\", \"se\": 2}}");
    let (error, hint) = refused(&tree);
    assert!(
        error.contains("each folder has a file with values for its images, such as 'part-000001/part-000001.json'"),
        "{error}"
    );
    let file = tree.path("part-000001/part-000001.json");
    assert!(hint.starts_with(&format!("convert one such file, here '{}'", file.display())), "{hint}");
    assert_eq!(list(&file, &ListOptions::default()).unwrap().columns()[0].name, "p");
    // In the folder itself, the file is read.
    assert_eq!(list(&tree.path("part-000001"), &ListOptions::default()).unwrap().columns()[0].name, "p");
}

#[test]
fn a_single_image_beside_larger_data_is_no_dataset() {
    let tree = Tree::new(&["sprites.gif"]);
    tree.write("sprites.npz", &[0; 100]);
    let (error, hint) = refused(&tree);
    assert!(
        error.ends_with("the only image is 'sprites.gif', but 'sprites.npz' looks like npz and is larger"),
        "{error}"
    );
    assert!(hint.starts_with(&format!("pass {}; ", tree.path("sprites.npz").display())), "{hint}");
    let all = ListOptions { from: Some(DataFormat::ImageFolder), ..ListOptions::default() };
    assert_eq!(list(tree.root(), &all).unwrap().len(), 1);
}

#[test]
fn a_few_images_beside_larger_data_are_no_dataset() {
    let tree = Tree::new(&["a.png", "b.png", "c.png"]);
    tree.write("train.beton", &[0; 100]);
    let (error, hint) = refused(&tree);
    let expected = "the only images are 'a.png' and 2 others, but 'train.beton' looks like beton and is larger";
    assert!(error.ends_with(expected), "{error}");
    assert!(hint.starts_with(&format!("pass {}; ", tree.path("train.beton").display())), "{hint}");
    // No file stands for both.
    tree.write("val.beton", &[0; 100]);
    let (error, hint) = refused(&tree);
    assert!(error.ends_with("'train.beton' looks like beton, and all 2 such files or folders are larger"), "{error}");
    assert!(hint.starts_with("move the images to another folder; "), "{hint}");
    // Many images are a dataset.
    for number in 0..9 {
        tree.write(&format!("{number}.png"), b"x");
    }
    assert_eq!(tree.list().unwrap().len(), 12);
}

#[test]
fn a_few_images_beside_splits_with_an_index_are_no_dataset() {
    let tree = Tree::new(&["a.png", "b.png"]);
    for split in ["train", "val"] {
        tree.write(&format!("{split}/index.json"), b"{\"version\": 2, \"shards\": []}");
    }
    let (error, hint) = refused(&tree);
    assert!(error.contains("the only images are 'a.png' and 1 other, but 'train' looks like mds"), "{error}");
    assert!(hint.starts_with("move the images to another folder; "), "{hint}");
    let error = tree.list_split("val").unwrap_err();
    assert_eq!(error.hint().unwrap(), format!("pass {}, which looks like mds", tree.path("val").display()));
}

#[test]
fn names_with_the_same_numbers_and_two_patterns_are_told() {
    for [one, other] in [["rgb_0000#.jpg", "sync_depth_0000#.png"], ["000#_GT_SRGB_010.PNG", "000#_NOISY_SRGB_010.PNG"]]
    {
        let files: Vec<String> =
            (0..3).flat_map(|n| [one, other].map(|name| format!("s/{name}").replace('#', &n.to_string()))).collect();
        let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let listing = tree.list().unwrap();
        let is_told = |warning: &Warning| matches!(warning, Warning::MarkedNames { .. });
        assert!(listing.warnings().iter().any(is_told), "{:?}", listing.warnings());
    }
    // These words are classes.
    let files: Vec<String> = (0..3).flat_map(|n| ["cat", "dog"].map(|word| format!("{word}.{n}.jpg"))).collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(classes(&tree.list().unwrap()), ["cat", "dog"]);
}

#[test]
fn a_list_that_names_images_behind_numbers_is_told() {
    let tree = Tree::new(&["distorted/I01_1.bmp", "distorted/I01_2.bmp", "distorted/I01_3.bmp", "reference/I01.bmp"]);
    tree.write("mos.txt", b"5.5\n5.4\n5.3\n");
    tree.write("mos_with_names.txt", b"5.5 I01_1.bmp\r\n5.4 I01_2.bmp\r\n5.3 I01_3.bmp\r\n");
    let said = told(&tree.list().unwrap());
    let expected = "'mos_with_names.txt' was not read: if it has labels or other fields, pass it as the source";
    assert!(said.contains(&expected.to_owned()), "{said:?}");
}

#[test]
fn folders_with_the_same_subfolders_may_hold_the_classes_inside() {
    let tree = Tree::new(&["p1/0/1.png", "p1/1/2.png", "p2/0/3.png", "p2/1/4.png", "p3/0/5.png"]);
    let said = told(&tree.list().unwrap()).join("\n");
    assert!(
        said.contains(
            "all folders have the same subfolders, such as '0' and '1'; if these are the classes, run this Python"
        ),
        "{said}"
    );
    let other = Tree::new(&["p1/a/1.png", "p1/b/2.png", "p2/c/3.png", "p2/d/4.png"]);
    assert!(!told(&other.list().unwrap()).join("\n").contains("the same subfolders"));
}

#[test]
fn folders_that_repeat_their_names_may_be_parts_of_a_dataset() {
    let listing = Tree::new(&["scenes/scenes/1.png", "ships/ships/2.png"]).list().unwrap();
    let expected = "'scenes/scenes' and 'ships/ships' may be parts of a dataset instead of classes; if so, convert one of them alone";
    assert!(told(&listing).contains(&expected.to_owned()), "{:?}", told(&listing));
}

#[test]
fn a_copy_named_like_a_mask_folder_is_left_out() {
    let files = ["k/p1/1.tif", "k/p1/1_mask.tif", "k/p2/2.tif", "k/p2/2_mask.tif"];
    let copies = files.map(|file| format!("x-segmentation/{file}"));
    let tree = Tree::new(&files.iter().copied().chain(copies.iter().map(String::as_str)).collect::<Vec<_>>());
    let listing = tree.list().unwrap();
    assert_eq!((listing.len(), listing.has_masks()), (2, true));
    assert!(listing.warnings().contains(&Warning::CopyOfClasses { folder: b"x-segmentation".to_vec() }));
}

#[test]
fn another_version_of_a_split_is_told() {
    let tree = Tree::new(&["train/1.png", "train/2.png", "train_cleaned/1.png", "train_cleaned/2.png", "test/3.png"]);
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let said = told(&splits[0].1).join("\n");
    assert!(
        said.contains(
            "'train_cleaned' has images with the same names as 'train'; if they are two versions of each image, run"
        ),
        "{said}"
    );
}

#[test]
fn masks_of_the_cell_tracking_challenge_are_named_with_their_folder() {
    let tree = Tree::new(&["01/t000.tif", "01_GT/SEG/man_seg000.tif", "01_GT/TRA/man_track000.tif", "02/t000.tif"]);
    let (_, hint) = refused(&tree);
    assert!(hint.contains("images=01 masks='01_GT/SEG'"), "{hint}");
    let named = ListOptions { images: Some("01".into()), masks: Some("01_GT/SEG".into()), ..ListOptions::default() };
    assert!(list(tree.root(), &named).unwrap().faulty().next().is_none());
}

#[test]
fn a_folder_with_the_masks_of_several_others_is_no_class() {
    let tree =
        Tree::new(&["d1/a/1.jpg", "d2/b/2.jpg", "seg_label/d1/a/1.png", "seg_label/d2/b/2.png", "list/train.txt"]);
    let (error, hint) = refused(&tree);
    assert!(error.ends_with("'seg_label/d1' looks like the masks of 'd1', not like a class"), "{error}");
    assert!(hint.contains("images='images' masks='seg_label'"), "{hint}");
    fs::create_dir(tree.path("images")).unwrap();
    ["d1", "d2"].iter().for_each(|name| fs::rename(tree.path(name), tree.path(&format!("images/{name}"))).unwrap());
    let named =
        ListOptions { images: Some("images".into()), masks: Some("seg_label".into()), ..ListOptions::default() };
    assert_eq!(list(tree.root(), &named).unwrap().len(), 2);
}

#[test]
fn masks_of_parts_of_an_image_are_told() {
    let tree =
        Tree::new(&["X-img/0.jpg", "X-img/1.jpg", "X-mask-anno/0/00000_hair.png", "X-mask-anno/0/00000_skin.png"]);
    let (error, hint) = refused(&tree);
    let expected = "several masks have the number of one image, such as 'X-mask-anno/0/00000_hair.png'";
    assert!(
        error.contains(expected) && hint.starts_with("write one mask of class numbers for each image"),
        "{error}: {hint}"
    );
}

#[test]
fn masks_of_two_annotators_are_told() {
    let tree = Tree::new(&["Image_01L.jpg", "Image_01L_1stHO.png", "Image_01L_2ndHO.png"]);
    let fault = tree.list().unwrap().fault(0).unwrap().to_string();
    let expected = "there are 2 masks next to it, such as 'Image_01L_1stHO.png' and 'Image_01L_2ndHO.png'";
    assert!(fault.contains(expected), "{fault}");
}
