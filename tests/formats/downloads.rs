//! Datasets as img2dataset and COCO write them: read with their metadata, or refused with the file to pass.

use super::items::{convert, items};
use super::people::{refused, told};
use super::python;
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    python(&["downloads.py", folder.path("").to_str().unwrap()]);
    folder
}

fn texts(items: &[Vec<u8>]) -> Vec<String> {
    items.iter().map(|item| String::from_utf8(item.clone()).unwrap()).collect()
}

#[test]
fn tar_files_of_img2dataset_are_read_without_their_tables() {
    let folder = sources();
    let said = told(&folder, "img2dataset/tars");
    assert!(said.contains("ignored 2 Parquet files (first: '00000.parquet')"), "{said}");
    let pack = convert(&folder, "img2dataset/tars", &[]);
    assert_eq!((pack.n_samples(), texts(&items(&pack, "txt"))[5].as_str()), (6, "a 000010002"));
}

#[test]
fn folders_of_img2dataset_are_one_dataset_with_the_values_of_each_image() {
    let folder = sources();
    let said = told(&folder, "img2dataset/files");
    for words in [
        "did not use 2 folders as classes (first: '00000')",
        "are packed as fields: 'url', 'key', 'width', 'height'",
        "left out the field 'caption': the .txt files next to the images already give this field",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let ran = folder.packds(&["convert", "img2dataset/files", "no.pack", "--dry-run", "--explain"]);
    let words = "parts of one dataset, not classes; instead: --from image-folder: every folder is a class";
    assert!(ran.stdout.contains(words), "{ran:?}");
    let pack = convert(&folder, "img2dataset/files", &[]);
    assert!(pack.classes().unwrap().is_empty());
    assert_eq!(texts(&items(&pack, "caption"))[5], "a 000010002");
    assert_eq!(texts(&items(&pack, "url"))[0], "http://x/000000000");
    assert_eq!(items(&pack, "width"), vec![9_i64.to_le_bytes().to_vec(); 6]);
}

#[test]
fn captions_of_coco_are_read_from_their_file() {
    let folder = sources();
    let said = refused(&folder, "coco", 2);
    assert!(said.contains("a COCO dataset with captions in 'annotations'"), "{said}");
    assert!(said.contains("pass coco/annotations/captions_train2017.json as the source"), "{said}");
    let pack = convert(&folder, "coco/annotations/captions_train2017.json", &[]);
    assert_eq!(pack.n_samples(), 12);
    assert_eq!(texts(&items(&pack, "captions"))[1], r#"["picture 1","picture 13"]"#);
}
