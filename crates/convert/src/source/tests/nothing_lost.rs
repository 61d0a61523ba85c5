//! No file of a source is silently dropped: each is in the listing, counted, or named in a warning.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::roles::{is_label_name, is_mask_name};
use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const FOLDERS: [&str; 19] = [
    "",
    "cat",
    "dog",
    "images",
    "masks",
    "labels",
    "annotations",
    "train",
    "val",
    "test",
    "train_masks",
    ".hidden",
    "__MACOSX",
    "data",
    "others",
    "trainA",
    "HR",
    "meta",
    "00000",
];
const FILES: [&str; 13] = [
    "1.png",
    "2.png",
    "1_mask.png",
    "1.txt",
    "2.txt",
    "notes.csv",
    "x.npy",
    "Thumbs.db",
    "._1.png",
    "3.jpg",
    "3.json",
    "00000.parquet",
    "4.h5",
];

/// Files in a few folders, so that files often share a folder.
fn files() -> impl Strategy<Value = BTreeSet<String>> {
    prop::sample::subsequence(&FOLDERS[..], 1..6).prop_flat_map(|folders| {
        let inner = prop_oneof![3 => Just(""), 1 => prop::sample::select(folders.clone())];
        let file = (prop::sample::select(folders), inner, prop::sample::select(&FILES[..]));
        let path = file.prop_map(|(outer, inner, name)| {
            let parts = [outer, inner, name].into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("/")
        });
        prop::collection::btree_set(path, 1..14)
    })
}

/// The paths of all mask files.
fn masks(listing: &Listing) -> Vec<String> {
    let path = |idx| {
        let mut path = Vec::new();
        listing.mask_path_into(idx, &mut path)?;
        Some(String::from_utf8_lossy(&path).into_owned())
    };
    (0..listing.len()).filter_map(path).collect()
}

/// The sum of all numbers in the warnings.
fn counted(warnings: &str) -> usize {
    warnings.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<usize>().ok()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn of_folders(files in files()) {
        let tree = Tree::new(&[]);
        for file in &files {
            let is_text = [".txt", ".json", ".csv"].iter().any(|end| file.ends_with(end));
            tree.write(file, if is_text { b"a cat" } else { PNG });
        }
        // If the source is refused, nothing is lost.
        let Ok(listing) = tree.list() else { return Ok(()) };
        let root = listing.root().strip_prefix(tree.root()).unwrap().to_string_lossy().into_owned();
        let inside = |path: &String| if root.is_empty() { path.clone() } else { format!("{root}/{path}") };
        let read: BTreeSet<String> = paths(&listing).iter().chain(&masks(&listing)).map(inside).collect();
        let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        let warnings = warnings.join("\n");
        let is_named = |file: &&String| file.split('/').any(|part| warnings.contains(part));
        // Files left by macOS are not part of a dataset.
        let rest: Vec<&String> = files.iter().filter(|file| !read.contains(*file) && !file.contains("__MACOSX")).collect();
        let (images, others): (Vec<&String>, Vec<&String>) = rest.iter().partition(|file| {
            let name = file.rsplit('/').next().unwrap();
            !name.starts_with("._") && (name.ends_with(".png") || name.ends_with(".jpg"))
        });
        let silent: Vec<&&String> = images.iter().filter(|file| !is_named(file)).collect();
        prop_assert!(silent.len() <= counted(&warnings), "{silent:?} of {files:?}: {warnings}");
        let captions = if listing.columns().is_empty() { 0 } else { listing.len() };
        // If only one of several subfolders has images, the warning names that one and not the others.
        let is_beside = |file: &&&String| file.contains('/') && warnings.contains("the only subfolder with images");
        let silent = others.iter().filter(|file| !is_named(file) && !is_beside(file)).count();
        let ignored = usize::try_from(listing.ignored()).unwrap();
        prop_assert!(silent <= ignored + captions + counted(&warnings), "{others:?} of {files:?}, {ignored} ignored: {warnings}");
    }

    #[test]
    fn of_tables(names in prop::collection::btree_set(prop::sample::select(
        &["label", "diagnosis", "mask", "caption", "score", "", "split", "fold", "x", "y", "id", "class_name"][..],
    ), 0..7), n in 2_usize..6) {
        let tree = Tree::new(&["1.png", "2.png", "3.png", "4.png", "5.png"]);
        let names: Vec<&str> = names.into_iter().collect();
        let cell = |name: &str, row: usize| match name {
            "mask" => format!("{}.png", row + 1),
            "caption" => format!("text {row}"),
            "score" => format!("0.{row}5"),
            _ => (row % 2).to_string(),
        };
        let mut text = format!("path,{}\n", names.join(","));
        for row in 0..n {
            let cells: Vec<String> = names.iter().map(|name| cell(name, row)).collect();
            text.push_str(&format!("{}.png,{}\n", row + 1, cells.join(",")));
        }
        tree.write("t.csv", text.as_bytes());
        let options = ListOptions { split: None, ..ListOptions::default() };
        let Ok(listing) = super::super::list(&tree.path("t.csv"), &options) else { return Ok(()) };
        let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        let warnings = warnings.join("\n");
        prop_assert_eq!(listing.len(), n);
        for name in names {
            let is_column = listing.columns().iter().any(|column| column.name.trim_start_matches("source_") == name);
            let is_label = (listing.has_labels() || listing.has_label_lists()) && is_label_name(name);
            let is_mask = listing.has_masks() && is_mask_name(name);
            let is_told = warnings.contains(&format!("'{name}'")) || (name.is_empty() && warnings.contains("has no name"));
            prop_assert!(is_column || is_label || is_mask || is_told, "'{}' of {}: {}", name, text, warnings);
        }
    }
}
