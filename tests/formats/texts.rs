//! Datasets with texts, clips and tables that are easy to misread.

use serde_json::{Value, json};

use super::items::{convert, hex, ids, items};
use super::people::{assert_told, names, refused, sources_of, told};
use crate::support::Folder;

fn sources() -> (Folder, Value) {
    sources_of("texts.py")
}

fn texts(items: &[Vec<u8>]) -> Vec<String> {
    items.iter().map(|item| String::from_utf8(item.clone()).unwrap()).collect()
}

#[test]
fn labels_that_are_nearly_all_different_are_texts() {
    let (folder, expected) = sources();
    let words = "12 of 12 labels are different, so they are packed as the column 'text'; to read them as class names, add --label-key label";
    for source in ["str", "icdar/gt.txt", "icdar"] {
        assert_told(&folder, source, &[words]);
    }
    let pack = convert(&folder, "str", &[]);
    assert!(pack.classes().unwrap().is_empty());
    assert_eq!(json!(texts(&items(&pack, "text"))), expected["words"]);
    let pack = convert(&folder, "icdar", &[]);
    assert_eq!(texts(&items(&pack, "text"))[1], "say \"hi\", you");
    for source in ["str", "icdar/gt.txt"] {
        let pack = convert(&folder, source, &["--label-key", "label"]);
        assert_eq!((names(&pack).len(), pack.n_samples()), (12, 12), "{source}");
    }
    // A column named `label` contains labels.
    assert_told(
        &folder,
        "named/labels.csv",
        &["12 of 12 labels in 'label' are different class names: if they are texts, rename the column to 'text'"],
    );
    assert_eq!(names(&convert(&folder, "named/labels.csv", &[])).len(), 12);
}

#[test]
fn captions_with_commas_need_no_quotes() {
    let (folder, _) = sources();
    assert_told(
        &folder,
        "captions",
        &[
            "16 rows have more cells than columns, because the captions are not in quotes",
            "first: 'A dog , number 1 , runs .'",
        ],
    );
    let pack = convert(&folder, "captions", &[]);
    let captions = texts(&items(&pack, "caption"));
    assert_eq!(
        (pack.n_samples(), captions[0].as_str(), captions[23].as_str()),
        (24, "A cat .", "A dog , number 23 , runs .")
    );
}

#[test]
fn images_in_folders_that_a_table_lists_get_the_labels_of_its_rows() {
    let (folder, expected) = sources();
    let words = "the rows name folders, such as '1000': each image in a folder is a sample";
    assert_told(&folder, "jester", &["found the splits 'test', 'train'", words]);
    let pack = convert(&folder, "jester", &["--split", "train"]);
    let labels = (ids(&pack), names(&pack).join(","));
    assert_eq!(labels, (vec![1, 1, 1, 2, 2, 2, 0, 0, 0], "No gesture,Swiping Left,Thumb Up".to_owned()));
    let pixels = hex(&items(&pack, "image").concat());
    assert!(expected["pixels"].as_str().unwrap().starts_with(&pixels[..3 * 2 * 8 * 9 * 3]));
    let pack = convert(&folder, "jester", &["--split", "test"]);
    assert_eq!((pack.n_samples(), pack.schema().index_of("label").is_err()), (3, true));
    let pack = convert(&folder, "jester/20bn", &["--from", "image-folder"]);
    assert_eq!(names(&pack).len(), 4);
    // The paths begin with the name of the folder of the table, and end with a slash.
    let pack = convert(&folder, "studies/labels.csv", &[]);
    assert_eq!((pack.n_samples(), ids(&pack)), (4, vec![1, 1, 0, 0]));
    // A folder without images is a bad sample. A source with two tables is refused.
    let ran = folder.packds(&["convert", "studies/more.csv", "no.pack", "--image-key", "folder_path"]);
    assert!(ran.code == 1 && ran.stderr.contains("studies/b/none: no such file, named in line 4"), "{ran:?}");
    let said = refused(&folder, "two", 1);
    assert!(said.contains("'a.csv' has a row for each folder, such as '1000'"), "{said}");
    assert!(said.contains("to give each image the labels of its folder, convert 'two/a.csv'"), "{said}");
}

#[test]
fn image_folders_with_images_only_in_subfolders_are_not_classes() {
    let (folder, _) = sources();
    let said = refused(&folder, "omniglot", 1);
    assert!(said.contains("'images_background' and 'images_evaluation' look like image folders"), "{said}");
    assert!(said.contains("find omniglot -name '*.png' | sort > paths.txt"), "{said}");
}

#[test]
fn a_table_with_splits_is_read_with_its_images_also_from_the_archive_beside_it() {
    let (folder, expected) = sources();
    for (source, words) in [
        ("zipped", "unpacked 'images.zip' into a temporary folder"),
        ("unzipped", "read the images in 'annotations.csv'"),
    ] {
        assert_told(&folder, source, &[words, "labels are read from 'Majority Vote Label', because of its name"]);
        let pack = convert(&folder, source, &["--split", "test"]);
        assert_eq!((ids(&pack), names(&pack)), (vec![0, 1, 0, 1], vec!["HP".to_owned(), "SSA".to_owned()]), "{source}");
        let pixels = hex(&items(&pack, "image").concat());
        assert!(expected["pixels"].as_str().unwrap().ends_with(&pixels), "{source}");
    }
    assert_told(&folder, "names", &["unpacked 'images.zip' into a temporary folder", "'names.csv' was not read"]);
    assert_eq!(ids(&convert(&folder, "names", &[])), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_chosen_label_column_may_be_absent_from_the_test_split() {
    let (folder, _) = sources();
    let said = told(&folder, "pets");
    assert!(said.contains("no labels found") && said.contains("--label-key"), "{said}");
    let pack = convert(&folder, "pets", &["--split", "train", "--label-key", "Score"]);
    assert_eq!(ids(&pack), [0, 1, 2, 3, 0, 1, 2, 3]);
    let pack = convert(&folder, "pets", &["--split", "test", "--label-key", "Score"]);
    assert_eq!((pack.n_samples(), pack.schema().index_of("label").is_err()), (4, true));
    let ran = folder.packds(&["convert", "pets", "no.pack", "--label-key", "Scores"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("if one of 'train.csv', 'test.csv' has the labels, pass it"),
        "{ran:?}"
    );
}

#[test]
fn folders_of_nnunet_are_images_and_masks() {
    let (folder, expected) = sources();
    assert_told(&folder, "nnunet", &["ignored 1 folder next to the image and mask folders ('imagesTs')"]);
    let pack = convert(&folder, "nnunet", &[]);
    let masks: Vec<String> = items(&pack, "mask").iter().map(|mask| hex(mask)).collect();
    assert_eq!(json!(masks), expected["masks"]);
    let said = refused(&folder, "nifti", 2);
    assert!(said.contains("3 files of type NIfTI (first: 'imagesTr/case_0.nii.gz')"), "{said}");
}

#[test]
fn a_fourth_channel_of_a_tiff_is_told_unless_it_is_black() {
    let (folder, _) = sources();
    let ran = folder.packds(&["convert", "four", "four.pack"]);
    assert!(ran.code == 0 && ran.stdout.contains("left out the alpha channel of 3 images"), "{ran:?}");
    let ran = folder.packds(&["convert", "cmyk", "cmyk.pack"]);
    assert!(ran.code == 0 && !ran.stdout.contains("alpha"), "{ran:?}");
}

#[test]
fn a_dry_run_fails_if_no_image_can_be_decoded() {
    let (folder, _) = sources();
    let ran = folder.packds(&["convert", "many", "many.pack", "--dry-run"]);
    assert!(ran.code == 1 && ran.stderr.contains("in a file with 13 channels (bands)"), "{ran:?}");
    assert!(ran.stderr.contains("tifffile.imread(f)") && !ran.stderr.contains("Image.open"), "{ran:?}");
}

#[test]
fn folders_with_another_meaning_are_not_classes() {
    let (folder, _) = sources();
    let said = refused(&folder, "series", 1);
    assert!(said.contains("'01_GT' looks like the masks of '01', but its files have different names"), "{said}");
    let said = refused(&folder, "arrays", 1);
    assert!(said.contains("'images' has npy files, but 'masks' has files of another format"), "{said}");
    assert_told(&folder, "faces", &["the classes 'aligned' and 'original' have files with the same names"]);
    assert_told(
        &folder,
        "depth",
        &["'0_depth.png' and other files are named after another image, here '0_colors.png'"],
    );
}

#[test]
fn a_file_of_classes_is_read_instead_of_a_sample_submission() {
    let (folder, _) = sources();
    assert_told(
        &folder,
        "camera",
        &[
            "split 'train': read the images in 'train_annotations.json'",
            "'train_annotations.json' names no image in 'test', so the folder is a split without labels",
        ],
    );
    let pack = convert(&folder, "camera", &["--split", "train"]);
    assert_eq!((ids(&pack), names(&pack)), (vec![0, 1, 0, 1], vec!["empty".to_owned(), "peccary".to_owned()]));
}

#[test]
fn advice_fits_what_is_there() {
    let (folder, expected) = sources();
    let said = refused(&folder, "urls/train.tsv", 1);
    assert!(said.contains("the table lists URLs: download the images first"), "{said}");
    assert_told(&folder, "packed", &["unpacked 'train_x.h5.gz', 'train_y.h5.gz' into a temporary folder"]);
    let pack = convert(&folder, "packed", &[]);
    assert_eq!(ids(&pack), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["pixels"]);
    // A column of file names is preferred to one of ids.
    let pack = convert(&folder, "birds/metadata.csv", &[]);
    assert_eq!((pack.n_samples(), ids(&pack)[..3].to_vec()), (12, vec![0, 1, 2]));
}
