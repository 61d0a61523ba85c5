//! Tables and lists like those of competitions and papers. They are read, cause a warning, or are rejected with advice.

use serde_json::{Value, json};

use super::items::{convert, hex, ids, items};
use super::people::{assert_told, names, refused, sources_of, told};
use crate::support::Folder;

/// The sources, and their contents.
fn sources() -> (Folder, Value) {
    sources_of("lists.py")
}

/// Checks that a source is rejected with these words.
#[track_caller]
fn assert_refused(folder: &Folder, source: &str, code: i32, words: &[&str]) {
    let said = refused(folder, source, code);
    assert!(words.iter().all(|word| said.contains(word)), "{source}: {said}");
}

#[test]
fn rows_of_boxes_are_refused_and_other_repeats_are_told() {
    let (folder, _) = sources();
    assert_refused(
        &folder,
        "tables/boxes.csv",
        1,
        &["found 24 rows for 12 images in 'path'; 'xmin', 'ymin', 'xmax', 'ymax' look like boxes", ".groupby('path')"],
    );
    let pack = convert(&folder, "tables/boxes.jsonl", &[]);
    assert_eq!(items(&pack, "image").len(), 12);
    assert_told(
        &folder,
        "tables/box.csv",
        &["'xmin', 'ymin', 'xmax', 'ymax' look like boxes, and are packed as fields"],
    );
    assert_told(
        &folder,
        "tables/captions.csv",
        &["the 24 rows refer to only 12 images in 'image' (first repeated image: 'images/0000.png')"],
    );
}

#[test]
fn tags_are_labels_if_they_come_back_and_are_told_otherwise() {
    let (folder, _) = sources();
    let pack = convert(&folder, "tables/tags.csv", &[]);
    assert_eq!(names(&pack), ["clear", "haze", "primary", "road"]);
    assert_told(&folder, "tables/tags.csv", &["labels are read from 'tags'", "read as lists of labels"]);
    assert_told(
        &folder,
        "tables/other_tags.csv",
        &["no labels found", "no field has a name commonly used for labels (fields: 'tags')"],
    );
}

#[test]
fn missing_labels_are_bad_samples_and_words_for_them_are_told() {
    let (folder, expected) = sources();
    assert_told(&folder, "tables/none.csv", &["'None' in 'label' is packed as a class (4 rows)"]);
    assert_told(&folder, "tables/dash.csv", &["read as names, because '-' in line 2 is not a number"]);
    for (name, line) in [("empty.csv", 2), ("na_ids.csv", 2), ("null.jsonl", 1)] {
        let source = format!("tables/{name}");
        let words = format!("the label is missing in line {line} of '{name}'");
        assert_refused(&folder, &source, 1, &[&words, "--on-error skip"]);
    }
    let ran = folder.packds(&["convert", "tables/empty.csv", "skip.pack", "--on-error", "skip"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("8 samples of 2 classes") && ran.stdout.contains("skipped  4 files"), "{ran:?}");
    assert_eq!(expected["labels"].as_array().unwrap().len(), 12);
}

#[test]
fn decimal_commas_are_told_and_refused_as_labels() {
    let (folder, _) = sources();
    assert_told(&folder, "tables/decimal.csv", &["'weight' is packed as text, because of cells such as '0,5'"]);
    let words = ["'0,5' may be a number with a decimal comma", "decimal=','", "separate labels with ';'"];
    assert_refused(&folder, "tables/decimal_label.csv", 1, &words);
}

#[test]
fn tables_of_excel_are_read_in_utf_16_and_with_their_separator() {
    let (folder, expected) = sources();
    for name in ["utf16.csv", "sep.csv"] {
        let pack = convert(&folder, &format!("encodings/{name}"), &[]);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        assert_eq!(names(&pack), ["cat", "dog", "\u{e9}ider"], "{name}");
        assert_eq!(items(&pack, "image").len(), 12);
    }
    let words = ["line 4: the text in field 2 is not UTF-8", "iconv -f WINDOWS-1252 -t UTF-8 'latin1.csv'"];
    assert_refused(&folder, "encodings/latin1.csv", 1, &words);
}

#[test]
fn lists_of_papers_find_their_images_and_classes() {
    let (folder, _) = sources();
    for (source, classes, words) in [
        (
            "food/meta/train.txt",
            vec!["pie", "waffles"],
            ["'pie'", "from the folder", "'pie/0' is read from 'pie/0.jpg'"],
        ),
        ("dtd/labels/train1.txt", vec!["banded", "blotchy"], ["'banded'", "from the folder", "../images'"]),
        (
            "sun/Training_01.txt",
            vec!["a/abbey", "b/bar/indoor"],
            ["'a/abbey'", "the list has no labels", "searched for"],
        ),
    ] {
        let source = format!("papers/{source}");
        assert_told(&folder, &source, &words);
        let pack = convert(&folder, &source, &[]);
        assert_eq!(names(&pack), classes, "{source}");
        assert_eq!(ids(&pack), (0..12).map(|i| i % 2).collect::<Vec<_>>(), "{source}");
    }
    let source = "papers/fgvc/images_family_train.txt";
    assert_told(&folder, source, &["all words after the first on a line are read as one label, such as '707-320'"]);
    assert_eq!(names(&convert(&folder, source, &[])), ["707-320", "A320 family", "BAe 146"]);
}

#[test]
fn folders_of_papers_tell_of_labels_elsewhere() {
    let (folder, _) = sources();
    assert_eq!(names(&convert(&folder, "papers/dtd", &[])), ["banded", "blotchy"]);
    assert_told(&folder, "papers/yolo", &["computed from parts of the width and height of each image (YOLO)"]);
    let words = ["the labels in 'devkit' are in MATLAB files", "scipy.io.loadmat", "--images cars_train"];
    assert_refused(&folder, "papers/cars", 2, &words);
    assert_told(&folder, "papers/flowers", &["'imagelabels.mat' was not read: if it has labels, write"]);
    assert_told(&folder, "papers/flat", &["'labels.mat' was not read: if it has labels, write"]);
    assert!(!told(&folder, "papers/flat").contains("of type MATLAB"));
}

#[test]
fn run_lengths_are_masks_and_pairs_of_labels_are_not() {
    let (folder, expected) = sources();
    let mask = |name: &str| expected["runs"][name].as_str().unwrap().to_owned();
    let masks = |source: &str| -> Vec<String> {
        items(&convert(&folder, source, &[]), "mask").iter().map(|mask| hex(mask)).collect()
    };
    let words = "masks are drawn from the run lengths in 'EncodedPixels', counted down the columns of the image (add";
    assert_told(&folder, "others/rle.csv", &[words]);
    let drawn = masks("others/rle.csv");
    assert_eq!((drawn.len(), &drawn[..2]), (12, &[mask("none"), mask("one")][..]));
    // All rows of an image are one sample. Where the rows overlap, the larger class id is kept.
    assert_told(&folder, "others/objects.csv", &["marked pixels have the number of their class, and all others are 0"]);
    assert_eq!(masks("others/objects.csv"), vec![mask("two"); 12]);
    assert!(convert(&folder, "others/objects.csv", &[]).schema().index_of("label").is_err());
    assert_told(&folder, "others/joined.csv", &["1 is 'Fish', 2 is 'Sugar', and all other pixels are 0"]);
    let drawn = masks("others/joined.csv");
    assert_eq!((drawn.len(), &drawn[..2]), (12, &[mask("none"), mask("two")][..]));
    assert_eq!(items(&convert(&folder, "others/rle.csv", &["--leave-out", "EncodedPixels"]), "image").len(), 12);
    assert_eq!(items(&convert(&folder, "others/pairs.csv", &[]), "image").len(), 12);
}

#[test]
fn run_lengths_that_may_be_drawn_wrongly_are_refused() {
    let (folder, _) = sources();
    let words = ["'mask' holds run-length encoded (RLE) masks, but its name does not say how", "--leave-out mask"];
    assert_refused(&folder, "others/order.csv", 2, &words);
    let words = ["'rle_mask' holds run-length", "(as in TGS Salt), add --mask-order columns", "add --mask-order rows"];
    assert_refused(&folder, "others/carvana.csv", 2, &words);
    let words = ["expected ascending runs of pixels from 1 to 72, found '3 1' after pixel 6", "relative"];
    assert_refused(&folder, "others/relative.csv", 1, &words);
    assert_refused(&folder, "others/outside.csv", 1, &["found '70 4' after pixel 0"]);
    assert_refused(&folder, "others/two.csv", 1, &["the columns 'rle', 'encoding' all hold", "--mask-key"]);
    let pack = convert(&folder, "others/two.csv", &["--mask-key", "rle"]);
    assert!(pack.schema().index_of("encoding").is_ok());
    let words = ["the rows of 'images/0000.png' are parts of one mask, but they differ in column 'area'"];
    assert_refused(&folder, "others/areas.csv", 1, &words);
}

#[test]
fn run_lengths_are_masks_of_planes_but_not_of_other_arrays() {
    let (folder, expected) = sources();
    let pack = convert(&folder, "others/planes.csv", &[]);
    assert_eq!(hex(&items(&pack, "mask")[1]), expected["runs"]["one"]);
    let words = ["the height and width of the arrays are unclear", "--leave-out"];
    assert_refused(&folder, "others/bands.csv", 2, &words);
}

#[test]
fn the_order_of_run_lengths_can_be_chosen() {
    let (folder, expected) = sources();
    let second = |source: &str, order: &str| {
        let pack = convert(&folder, source, &["--mask-order", order]);
        hex(&items(&pack, "mask")[1])
    };
    for source in ["others/carvana.csv", "others/order.csv", "others/rle.csv"] {
        assert_eq!(second(source, "columns"), expected["runs"]["one"], "{source}");
        assert_eq!(second(source, "rows"), expected["runs"]["rows"], "{source}");
    }
    let words = "counted down the columns of the image (add --mask-order rows if they are counted along the rows)";
    assert_told(&folder, "others/rle.csv", &[words]);
    let words = "--mask-order applies only to tables with a column of run-length encoded (RLE) masks";
    for source in ["others/pairs.csv", "others/images", "others/sizes/images.npy"] {
        super::items::refused(&folder, &["convert", source, "no.pack", "--mask-order", "rows"], words);
    }
}

#[test]
fn names_of_classes_and_nested_labels_are_told() {
    let (folder, _) = sources();
    assert_told(&folder, "others/ids.csv", &["'classes.txt' was not read: class names come only from"]);
    assert_told(&folder, "others/nested.json", &["to use 'label' inside 'meta', write it as a separate column"]);
}

#[test]
fn arrays_with_other_numbers_of_labels_are_refused_and_samples_in_the_last_dimension_are_told() {
    let (folder, _) = sources();
    let words = ["labels.npy: expected 12 values, one for each image in 'images.npy'", "found 10"];
    assert_refused(&folder, "others/sizes", 1, &words);
    assert_refused(&folder, "others/last", 1, &["expected 8 values", "numpy.moveaxis(images, 3, 0)"]);
    let words = ["the array [8, 9, 3, 12] is read as 8 images: if there are 12 images, put that dimension first"];
    assert_told(&folder, "others/unlabelled", &words);
}

#[test]
fn tables_of_pandas_and_csv_have_their_labels() {
    let (folder, expected) = sources();
    let labelled: [(&str, &[&str]); 11] = [
        ("flags.csv", &["the label of each row is the name of the column with a 1: 'cat', 'dog', 'owl'"]),
        ("float_flags.csv", &["the label of each row is the name of the column with a 1: 'cat', 'dog', 'owl'"]),
        ("photo.csv", &["image paths are read from 'photo', because its cells are names of image files"]),
        ("index.csv", &["left out the first column: it has no name, like the index column that pandas writes"]),
        ("ham.csv", &["labels are read from 'dx', because of its name", "'0000' is read from '0000.png'"]),
        ("diagnosis.csv", &["labels are read from 'diagnosis', because of its name"]),
        ("fold.csv", &[]),
        ("comma.csv", &[]),
        ("dict.csv", &[]),
        ("dict.tsv", &[]),
        ("crlf.csv", &[]),
    ];
    for (name, words) in labelled {
        let source = format!("written/{name}");
        assert_told(&folder, &source, words);
        let pack = convert(&folder, &source, &[]);
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        let has_names = name != "diagnosis.csv";
        assert_eq!(names(&pack), if has_names { vec!["cat", "dog", "owl"] } else { vec![] }, "{name}");
    }
    let pack = convert(&folder, "written/dict.csv", &[]);
    assert_eq!(items(&pack, "note")[0], b"says \"a, b\"\nand more");
    let pack = convert(&folder, "written/late.csv", &[]);
    assert_eq!((pack.n_samples(), names(&pack)), (4801, vec!["cat".to_owned(), "dog".to_owned(), "owl".to_owned()]));
    let pack = convert(&folder, "written/split.csv", &["--split", "val"]);
    assert_eq!((pack.n_samples(), names(&pack)), (4, vec!["cat".to_owned(), "dog".to_owned(), "owl".to_owned()]));
}

#[test]
fn an_image_folder_of_datasets_has_the_images_of_its_table() {
    let (folder, _) = sources();
    assert_told(
        &folder,
        "imagefolder",
        &["read the images in 'metadata.jsonl', and ignored 1 other image in the folder ('extra.png')"],
    );
    let pack = convert(&folder, "imagefolder", &[]);
    let texts: Vec<String> = items(&pack, "text").into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
    assert_eq!(texts, (0..12).map(|n| format!("picture {n}")).collect::<Vec<_>>());
}

#[test]
fn parquet_tables_that_name_files_are_read_as_tables() {
    let (folder, _) = sources();
    let text = |items: Vec<Vec<u8>>| String::from_utf8(items[3].clone()).unwrap();
    for split in ["train", "test"] {
        let pack = convert(&folder, "parquet", &["--split", split]);
        assert_eq!((pack.n_samples(), text(items(&pack, "text"))), (12, format!("{split} 3")));
        assert_eq!(items(&pack, "score")[3], 1.5_f64.to_le_bytes());
    }
    let pack = convert(&folder, "parquet/rows.parquet", &[]);
    assert_eq!((pack.n_samples(), names(&pack)), (12, vec!["cat".to_owned(), "dog".to_owned(), "owl".to_owned()]));
    assert_eq!(items(&pack, "when")[0], b"2026-01-02T00:00:00Z");
}

#[test]
fn the_explanation_has_the_reason_and_the_option_that_decides_otherwise() {
    let (folder, _) = sources();
    for (source, words) in [
        (
            "imagefolder",
            "why      format: a table next to the images describes them; instead: --from image-folder: the folder itself",
        ),
        (
            "written/flags.csv",
            "why      label: the label of each row is the name of the column with a 1: 'cat', 'dog', 'owl'; instead: --label-key NAME",
        ),
        (
            "written/photo.csv",
            "why      image: image paths are read from 'photo', because its cells are names of image files; instead: --image-key NAME",
        ),
        (
            "written/ham.csv",
            "why      label: labels are read from 'dx', because of its name; instead: --label-key NAME",
        ),
    ] {
        let ran = folder.packds(&["convert", source, "no.pack", "--dry-run", "--explain"]);
        assert!(ran.stdout.contains(words), "{source}: {ran:?}");
    }
}
