//! Folders with two versions of each image. The other version is a field that holds the unchanged files.

use serde_json::Value;

use super::items::{Bytes, convert, hex, items};
use super::people::{assert_told, refused, sources_of};
use crate::support::Folder;

/// Checks the pixels, the files of the other version and the masks of a pack.
#[track_caller]
fn assert_same(pack: &Bytes, field: &str, expected: &Value) {
    assert_eq!(hex(&items(pack, "image").concat()), expected["images"]);
    let others: Vec<String> = items(pack, field).iter().map(|file| hex(file)).collect();
    assert_eq!(serde_json::json!(others), expected["others"]);
    if !expected["masks"].is_null() {
        assert_eq!(hex(&items(pack, "mask").concat()), expected["masks"]);
    }
    assert!(pack.classes().unwrap().is_empty());
}

fn sources() -> (Folder, Value) {
    sources_of("versions.py")
}

#[test]
fn the_other_version_of_each_image_is_a_field() {
    let (folder, expected) = sources();
    assert_same(&convert(&folder, "lol/our485", &[]), "high", &expected["lol/our485"]);
    assert_told(
        &folder,
        "lol/our485",
        &[
            "'low' and 'high' have two versions of each image: the first is packed as 'image', and the file of the second, unchanged, as the field 'high'",
        ],
    );
    assert_same(&convert(&folder, "restored", &[]), "gt", &expected["restored"]);
    let classes = convert(&folder, "restored", &["--from", "image-folder"]);
    assert_eq!(classes.classes().unwrap()[0].names, ["gt", "input"]);
}

#[test]
fn a_table_of_two_versions_and_their_prompts_is_read() {
    let (folder, expected) = sources();
    for source in ["prompts", "prompts/prompt.json"] {
        let pack = convert(&folder, source, &[]);
        assert_same(&pack, "target", &expected["prompts"]);
        assert_eq!(
            items(&pack, "prompt"),
            ["image 0", "image 1", "image 2", "image 3", "image 4"].map(|text| text.as_bytes().to_vec())
        );
        assert_told(
            &folder,
            source,
            &["as the field 'target', which is not cropped", "--leave-out target leaves it out"],
        );
    }
    let pack = convert(&folder, "prompts", &["--leave-out", "target"]);
    assert!(pack.schema().index_of("target").is_err() && pack.schema().index_of("prompt").is_ok());
    std::fs::remove_file(folder.path("prompts/target/2.png")).unwrap();
    let said = refused(&folder, "prompts/prompt.json", 1);
    assert!(said.contains("'target/2.png' in column 'target': no such file"), "{said}");
}

#[test]
fn of_several_versions_two_are_packed_with_the_printed_commands() {
    let (folder, _) = sources();
    for (source, field) in [("scales", "HR"), ("three", "target")] {
        let said = refused(&folder, source, 1);
        let commands = said.split("run: ").nth(1).and_then(|text| text.split("; and convert pairs").next()).unwrap();
        let inside = format!("cd {:?}; {commands}", folder.path(source));
        assert!(std::process::Command::new("sh").args(["-ec", &inside]).status().unwrap().success(), "{said}");
        let pack = convert(&folder, &format!("{source}/pairs"), &[]);
        assert_eq!(items(&pack, field).len(), items(&pack, "image").len(), "{source}");
    }
}

#[test]
fn versions_in_splits_are_found_in_all_of_them() {
    let (folder, expected) = sources();
    for (source, split, field, key) in [
        ("lol", "our485", "high", "lol/our485"),
        // Two numbered files would not be enough alone.
        ("lol", "eval15", "high", "lol/eval15"),
        ("levir", "train", "B", "levir/train"),
        ("levir", "val", "B", "levir/val"),
        ("sr", "DIV2K_train_LR_bicubic", "HR", "sr"),
        ("edges", "trainA", "B", "edges"),
    ] {
        assert_same(&convert(&folder, source, &["--split", split]), field, &expected[key]);
    }
    let listed = convert(&folder, "listed", &["--split", "train"]);
    assert_eq!((listed.n_samples(), items(&listed, "B").len()), (2, 2));
    assert_eq!(items(&listed, "B")[1], std::fs::read(folder.path("listed/B/train_2.png")).unwrap());
    for (source, splits) in [("lol", "'eval15', 'our485'"), ("levir", "'train', 'val'"), ("edges", "'testA', 'trainA'")]
    {
        assert_told(&folder, source, &[&format!("found the splits {splits}: each gets its own pack")]);
    }
}

#[test]
fn an_image_without_its_other_version_is_a_bad_sample() {
    let (folder, _) = sources();
    let said = refused(&folder, "gaps", 1);
    assert!(said.contains("sample 9: 'clean' has no image with the same name"), "{said}");
    let ran = folder.packds(&["convert", "gaps", "out.pack", "--on-error", "skip", "--force"]);
    assert!(
        ran.stderr.contains("ignored 1 image without an image of the same name in 'noisy' (first: 'clean/other.png')"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("9 samples"), "{ran:?}");
}

#[test]
fn numbered_files_in_folders_that_may_be_classes_must_be_alike() {
    let (folder, _) = sources();
    let said = refused(&folder, "chance", 1);
    assert!(said.contains("'blur' and 'sharp' have 4 files with the same names"), "{said}");
}
