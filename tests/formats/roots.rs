//! The folders that published datasets are unpacked into. They are read, or the hints for them work as printed.

use std::path::Path;
use std::process::Command;

use super::clients;
use super::items::{convert, hex, ids, items};
use super::people::{assert_told, names, refused, sources_of, told};

fn texts(items: &[Vec<u8>]) -> Vec<String> {
    items.iter().map(|item| String::from_utf8(item.clone()).unwrap()).collect()
}

/// Runs a line of Python in a folder, as a warning or hint says.
fn run_python(folder: &Path, line: &str) {
    let ran = Command::new(clients()).current_dir(folder).args(["-c", line]).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// The line of Python in a message.
fn line_in(said: &str) -> &str {
    let start = said.find("import csv").unwrap();
    said[start..].lines().next().unwrap()
}

#[test]
fn splits_of_databases_are_read_if_each_has_one() {
    let (folder, _) = sources_of("roots.py");
    let pack = convert(&folder, "single", &["--split", "training"]);
    assert_eq!(texts(&items(&pack, "text")), ["Hotel", "Bar", "007", "Exit", "Open"]);
    assert_told(&folder, "single", &["found the splits 'training', 'validation'"]);
}

#[test]
fn several_databases_are_refused_with_those_that_can_be_read() {
    let (folder, _) = sources_of("roots.py");
    let said = refused(&folder, "words", 2);
    assert!(said.contains("found 'training/MJ/MJ_train', 'training/ST'"), "{said}");
    assert!(said.contains("--split evaluation reads only that split"), "{said}");
    for (source, args, first) in [
        ("words/training/MJ/MJ_train", &[][..], "Hotel"),
        ("words", &["--split", "evaluation"], "Exit"),
        ("words", &["--split", "validation"], "007"),
    ] {
        assert_eq!(texts(&items(&convert(&folder, source, args), "text"))[0], first);
    }
    let said = refused(&folder, "rooms", 2);
    assert!(said.contains("found 'bedroom_val_lmdb', 'tower_val_lmdb'"), "{said}");
    assert!(said.contains("such as rooms/bedroom_val_lmdb"), "{said}");
}

#[test]
fn tensors_next_to_the_files_of_mnist_are_ignored_and_told() {
    let (folder, expected) = sources_of("roots.py");
    for source in ["digits", "digits/MNIST"] {
        let pack = convert(&folder, source, &["--split", "train"]);
        assert_eq!(
            (hex(&items(&pack, "image").concat()), ids(&pack)),
            (expected["digits"].as_str().unwrap().to_owned(), vec![0, 1, 2, 3, 4, 5])
        );
        assert_told(&folder, source, &["ignored the folder 'processed' next to the files"]);
    }
}

#[test]
fn extra_files_are_a_split_next_to_other_splits() {
    let (folder, expected) = sources_of("roots.py");
    assert_told(&folder, "houses", &["found the splits 'extra', 'test', 'train'"]);
    let pack = convert(&folder, "houses", &["--split", "extra"]);
    assert_eq!(hex(&items(&pack, "image").concat()), expected["houses"]["extra"]);
    assert_eq!(ids(&pack), [1, 2, 3, 4]);
}

#[test]
fn texts_in_file_names_are_read_from_the_table_that_the_warning_tells_to_write() {
    let (folder, _) = sources_of("roots.py");
    let said = told(&folder, "captchas");
    assert!(said.contains("the file names may be the texts in the images, such as '2b827'"), "{said}");
    run_python(&folder.path("captchas"), line_in(&said));
    let pack = convert(&folder, "captchas/names.csv", &[]);
    assert_eq!(texts(&items(&pack, "text")), ["2b827", "4nc37", "gny6b", "m3n8x", "w6yxc"]);
    assert_eq!(told(&folder, "plain"), "");
}

#[test]
fn ids_in_file_names_are_read_from_the_table_that_the_hint_tells_to_write() {
    let (folder, _) = sources_of("roots.py");
    let said = refused(&folder, "market", 1);
    run_python(&folder.path("market"), line_in(&said));
    assert_eq!(convert(&folder, "market/query.csv", &[]).n_samples(), 1);
    let pack = convert(&folder, "market/bounding_box_train.csv", &[]);
    assert_eq!(ids(&pack), [0, 0, 1]);
    assert_eq!(names(&pack), ["0002", "0007"]);
}

#[test]
fn characters_of_alphabets_are_read_from_the_list_that_the_hint_tells_to_write() {
    let (folder, _) = sources_of("roots.py");
    let said = refused(&folder, "letters", 1);
    let command = said.split('`').nth(1).unwrap();
    let ran = Command::new("sh").current_dir(folder.path("")).args(["-c", command]).status().unwrap();
    assert!(ran.success(), "{command}");
    let pack = convert(&folder, "paths.txt", &[]);
    assert_eq!(pack.n_samples(), 16);
    assert_eq!(names(&pack).len(), 8);
}
