//! Image folders, flat folders and splits.

use std::{fs, os::unix::ffi::OsStrExt};

use super::{Tree, classes, fingerprint, labels, paths};
use crate::{
    data_format::DataFormat,
    error::ConvertError,
    source::{ColumnValues, ListOptions, SourceKind, Warning, candidate::SampleFiles, list, list_splits},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[test]
fn classes_are_the_sorted_subfolders() {
    let tree = Tree::new(&["dog/2.jpg", "cat/1.png", "Zebra/1.jpg", "\u{e9}lan/a.jpg"]);
    let listing = tree.list().unwrap();
    assert_eq!(listing.kind(), SourceKind::ImageFolder);
    assert_eq!(classes(&listing), ["Zebra", "cat", "dog", "\u{e9}lan"]);
    assert_eq!(paths(&listing), ["Zebra/1.jpg", "cat/1.png", "dog/2.jpg", "\u{e9}lan/a.jpg"]);
    assert_eq!(labels(&listing), [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!(listing.file_path(1), tree.path("cat/1.png"));
    assert_eq!(listing.root(), tree.root());
    assert!(listing.warnings().is_empty());
    assert!(listing.has_labels() && !listing.has_label_lists() && !listing.has_masks());
}

/// The order is that of Python's `sorted(os.walk(..))` with sorted file names. Folders are sorted by full path, so `a-b` (0x2d)
/// precedes `a/b` (0x2f), but classes are sorted by name alone.
#[test]
fn nested_files_come_in_torchvision_order() {
    let tree = Tree::new(&[
        "c/z.jpg",
        "c/a/b/1.jpg",
        "c/a/2.jpg",
        "c/a-b/3.jpg",
        "c/a/b-c/4.jpg",
        "c/a0/5.jpg",
        "c/10.jpg",
        "c/9.jpg",
        "c-d/1.jpg",
    ]);
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), ["c", "c-d"]);
    assert_eq!(
        paths(&listing),
        [
            "c/10.jpg",
            "c/9.jpg",
            "c/z.jpg",
            "c/a/2.jpg",
            "c/a-b/3.jpg",
            "c/a/b/1.jpg",
            "c/a/b-c/4.jpg",
            "c/a0/5.jpg",
            "c-d/1.jpg"
        ]
    );
}

#[test]
fn files_directly_in_a_folder_are_flat_and_unlabelled() {
    let tree = Tree::new(&["b.jpg", "a.PNG", "notes.txt", "empty/readme.md"]);
    let listing = tree.list().unwrap();
    assert_eq!(listing.kind(), SourceKind::FlatFolder);
    assert_eq!(paths(&listing), ["a.PNG", "b.jpg"]);
    assert_eq!(labels(&listing), [None, None]);
    assert!(listing.classes().is_empty());
    assert_eq!(listing.ignored(), 2);
}

#[test]
fn class_without_images_keeps_its_id() {
    let tree = Tree::new(&["a/1.jpg", "c/1.jpg", "b/notes.txt"]);
    tree.mkdir(".hidden");
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), [".hidden", "a", "b", "c"]);
    assert_eq!(labels(&listing), [Some(1), Some(3)]);
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "2 classes have no images and keep their ids (first: '.hidden', id 0)",
        "ignored 1 other file: 1 .txt ('b/notes.txt')",
    ];
    assert_eq!(told, expected);
    assert_eq!(listing.ignored(), 1);
}

#[test]
fn images_beside_class_folders_are_ignored_with_a_warning() {
    let tree = Tree::new(&["a/1.jpg", "b/1.jpg", "y.jpg", "x.jpg", "readme"]);
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["a/1.jpg", "b/1.jpg"]);
    assert_eq!(listing.ignored(), 3);
    let expected = Warning::FilesBesideClasses { count: 2, first: b"x.jpg".to_vec() };
    assert_eq!(listing.warnings(), std::slice::from_ref(&expected));
    assert_eq!(expected.to_string(), "ignored 2 images next to the class folders (first: 'x.jpg')");
}

#[test]
fn candidate_is_known_by_extension_or_first_bytes() {
    let tree = Tree::new(&["a/broken.jpg", "a/text", "a/BMW", "a/old.jp2", "a/.DS_Store", "b/1.jpg"]);
    tree.write("a/picture", PNG);
    tree.write("a/picture.dat", PNG);
    tree.write("a/empty.webp", b"");
    tree.write("a/empty", b"");
    tree.write("a/text-BM", b"BM is how a bitmap starts");
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["a/broken.jpg", "a/empty.webp", "a/picture", "a/picture.dat", "b/1.jpg"]);
    assert_eq!(listing.sample(1).bytes, 0);
    assert_eq!(listing.sample(2).bytes, 16);
    assert_eq!(listing.ignored(), 6);
    let undecoded = Warning::UnreadType { name: "JPEG 2000", count: 1, first: b"a/old.jp2".to_vec() };
    let other = Warning::OtherFiles { groups: vec![(String::new(), 4, b"a/BMW".to_vec())] };
    assert_eq!(listing.warnings(), [undecoded, other]);
}

#[test]
fn folders_without_images_beside_the_only_one_with_images_are_not_classes() {
    let tree = Tree::new(&["photos/1.jpg", "photos/2.jpg", "text/train.lst", "text/test.lst", "notes.csv2"]);
    let listing = tree.list().unwrap();
    assert_eq!((paths(&listing), listing.classes().len()), (vec!["1.jpg".to_owned(), "2.jpg".to_owned()], 0));
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "read from 'photos', the only subfolder with images",
        "ignored 1 folder without images ('text')",
        "ignored 1 other file: 1 .csv2 ('notes.csv2')",
    ];
    assert!(expected.iter().all(|line| told.iter().any(|told| told == line)), "{told:?}");
}

#[test]
fn folders_that_look_like_no_classes_are_told() {
    let told = |files: &[&str]| {
        let warnings = Tree::new(files).list().unwrap().warnings().to_vec();
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let numbered = told(&["00000/1.jpg", "00000/2.jpg", "01000/3.jpg"]);
    assert!(
        numbered[0].starts_with("each folder is a class, but the names are numbers such as '00000'"),
        "{numbered:?}"
    );
    assert!(told(&["0/1.jpg", "1/2.jpg", "10/3.jpg"]).is_empty());
    let bands = told(&["p1/p1_B01.tif", "p1/p1_B02.tif", "p2/p2_B01.tif", "p2/p2_B02.tif"]);
    assert!(
        bands[0].contains("the files of a folder look like one sample: 'p1' has 2 files with its own name"),
        "{bands:?}"
    );
    assert!(told(&["n01/n01_1.jpg", "n01/n01_2.jpg", "n02/n02_3.jpg", "n02/n02_4.jpg"]).is_empty());
    let gifs = told(&["a/1.jpg", "a/2.gif", "b/3.jpg"]);
    assert_eq!(gifs, ["read 1 file of type GIF ('a/2.gif'); torchvision's ImageFolder leaves such files out"]);
    assert!(told(&["a/1.gif", "b/2.gif"]).is_empty());
}

#[test]
fn images_beside_their_archive_are_read_as_a_folder() {
    let tree = Tree::new(&["jpg/1.jpg", "jpg/2.jpg", "flowers.tgz"]);
    let listing = tree.list().unwrap();
    assert_eq!((listing.kind(), listing.len()), (SourceKind::FlatFolder, 2));
    assert!(
        listing.warnings().contains(&Warning::ManifestUnread { file: b"flowers.tgz".to_vec(), others: Vec::new() })
    );
    // An archive named like the folder contains nothing new, so the warning names the other file.
    let tree = Tree::new(&["jpg/1.jpg", "jpg/2.jpg", "jpg.zip", "list_attr.txt"]);
    assert!(
        tree.list()
            .unwrap()
            .warnings()
            .contains(&Warning::NoLists { file: b"list_attr.txt".to_vec(), others: Vec::new() })
    );
}

#[test]
fn named_folders_may_be_in_the_only_subfolder() {
    let tree = Tree::new(&["VOC2012/JPEGImages/1.jpg", "VOC2012/Annotations/1.xml"]);
    let options = ListOptions { images: Some("JPEGImages".into()), ..ListOptions::default() };
    assert_eq!(paths(&list(tree.root(), &options).unwrap()), ["1.jpg"]);
}

#[test]
fn numbers_in_the_names_of_images_are_told() {
    let listing =
        Tree::new(&["25_0_2_2017.jpg", "30_1_0_2017.jpg", "9_1_4_2017.jpg", "7_0_1_2016.jpg"]).list().unwrap();
    let told = Warning::LabelsInNames { word: b"25".to_vec(), image: b"25_0_2_2017.jpg".to_vec() };
    assert_eq!(listing.warnings(), [told]);
    let numbered = Tree::new(&["1_2.jpg", "3_4.jpg", "5_6.jpg", "7_8.jpg"]).list().unwrap();
    assert!(numbered.warnings().is_empty());
}

#[test]
fn words_before_numbers_in_the_names_of_images_are_labels() {
    let tree = Tree::new(&["train/dog.0.jpg", "train/cat.0.jpg", "train/cat.1.jpg", "train/dog.1.jpg", "test/1.jpg"]);
    let all = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let [(_, test), (_, train)] = all.as_slice() else { panic!("expected two splits") };
    assert_eq!((classes(train), labels(train)), (vec!["cat", "dog"], vec![Some(0), Some(0), Some(1), Some(1)]));
    assert_eq!((classes(test), test.has_labels()), (vec!["cat", "dog"], false));
    for other in [["cat.0.jpg", "cat_1.jpg", "dog.0.jpg", "dog.1.jpg"], ["a1.0.jpg", "a1.1.jpg", "b.0.jpg", "b.1.jpg"]]
    {
        assert!(!Tree::new(&other).list().unwrap().has_labels(), "{other:?}");
    }
}

#[test]
fn a_split_without_classes_beside_nested_classes_is_no_class() {
    let error = Tree::new(&["data_256/a/airfield/1.jpg", "data_256/b/bar/2.jpg", "val_256/3.jpg"]).list().unwrap_err();
    assert!(matches!(&error, ConvertError::OnlySplits { splits, .. } if splits == &["val_256"]), "{error}");
    // A folder without images is not a split.
    assert!(Tree::new(&["Img/img/WOMEN/id1/1.jpg", "Img/img/MEN/id2/2.jpg", "Eval/list.lst"]).list().is_ok());
}

#[test]
fn links_to_files_and_folders_are_followed() {
    let tree = Tree::new(&["store/real.jpg", "elsewhere/deep/2.jpg"]);
    let other = Tree::new(&[]);
    other.mkdir("a");
    other.link(tree.path("store/real.jpg").to_str().unwrap(), "a/link.jpg");
    other.link(tree.path("elsewhere").to_str().unwrap(), "b");
    let listing = other.list().unwrap();
    assert_eq!(paths(&listing), ["a/link.jpg", "b/deep/2.jpg"]);
    assert_eq!(listing.sample(0).bytes, 1);
}

#[test]
fn broken_link_is_a_candidate_only_by_its_name() {
    let tree = Tree::new(&["a/1.jpg", "b/1.jpg"]);
    tree.link("nowhere", "a/2.jpg");
    tree.link("nowhere", "a/3");
    tree.link("4", "a/4");
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["a/1.jpg", "a/2.jpg", "b/1.jpg"]);
    assert_eq!(listing.sample(1).bytes, 0);
    assert_eq!(listing.warnings(), [Warning::BrokenLinks { count: 2, first: b"a/3".to_vec() }]);
}

#[test]
fn pipe_is_ignored_and_not_opened() {
    let tree = Tree::new(&["a/1.jpg", "b/1.jpg"]);
    for name in ["a/2.jpg", "a/3"] {
        let mode = rustix::fs::Mode::RUSR;
        let file_type = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, tree.path(name), file_type, mode, 0).unwrap();
    }
    let listing = tree.list().unwrap();
    assert_eq!(paths(&listing), ["a/1.jpg", "b/1.jpg"]);
    assert_eq!(listing.warnings(), [Warning::SpecialFiles { count: 2, first: b"a/2.jpg".to_vec() }]);
}

#[test]
fn link_loop_is_an_error_that_names_the_link() {
    let tree = Tree::new(&["a/b/1.jpg"]);
    tree.link("../../a", "a/b/again");
    match tree.list().unwrap_err() {
        ConvertError::SymlinkLoop { path, target } => {
            assert_eq!(path, tree.path("a/b/again"));
            assert_eq!(target, tree.path("a"));
        }
        other => panic!("{other}"),
    }
    let tree = Tree::new(&["a/1.jpg"]);
    tree.link(".", "b");
    match tree.list().unwrap_err() {
        ConvertError::SymlinkLoop { path, target } => {
            assert_eq!(path, tree.path("b"));
            assert_eq!(target, tree.root());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn same_folder_may_be_reached_twice_without_a_loop() {
    let tree = Tree::new(&["a/1.jpg"]);
    tree.link("a", "b");
    assert_eq!(paths(&tree.list().unwrap()), ["a/1.jpg", "b/1.jpg"]);
}

#[test]
fn names_may_have_spaces_and_any_bytes() {
    let tree = Tree::new(&["a class/an image.jpg"]);
    let class = tree.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&class).unwrap();
    fs::write(class.join(std::ffi::OsStr::from_bytes(b"\xff\n.jpg")), b"xyz").unwrap();
    let listing = tree.list().unwrap();
    assert_eq!(listing.classes(), [b"a class".to_vec(), b"caf\xe9".to_vec()]);
    let sample = listing.sample(1);
    assert_eq!((sample.directory, sample.name), (&b"caf\xe9"[..], &b"\xff\n.jpg"[..]));
    assert_eq!(fs::read(listing.file_path(1)).unwrap(), b"xyz");
}

#[test]
fn folder_without_images_is_an_error() {
    let tree = Tree::new(&["a/notes.txt", "b.txt"]);
    tree.mkdir("c");
    match tree.list().unwrap_err() {
        ConvertError::EmptySource { path, ignored, .. } => {
            assert_eq!((path.as_path(), ignored), (tree.root(), 2));
        }
        other => panic!("{other}"),
    }
    assert!(matches!(Tree::new(&[]).list(), Err(ConvertError::EmptySource { ignored: 0, .. })));
}

#[test]
fn missing_source_and_other_files_are_told_apart() {
    let tree = Tree::new(&["a.doc", "b.yaml"]);
    let options = ListOptions::default();
    let missing = list(&tree.path("none"), &options).unwrap_err();
    assert!(matches!(&missing, ConvertError::SourceMissing { path } if *path == tree.path("none")));
    assert!(!missing.is_data());
    for file in ["a.doc", "b.yaml"] {
        let error = list(&tree.path(file), &options).unwrap_err();
        assert!(matches!(error, ConvertError::UnknownFormat { .. }), "{error}");
    }
}

#[test]
fn unreadable_folder_is_an_error() {
    let tree = Tree::new(&["a/1.jpg"]);
    // The superuser can read every folder, so the test uses a file instead of a folder: that always fails.
    let error = crate::source::directory::Directory::scan(tree.root(), b"a/1.jpg", SampleFiles::Images).err().unwrap();
    match &error {
        ConvertError::UnreadableDirectory { path, source } => {
            assert_eq!(*path, tree.path("a/1.jpg"));
            assert_eq!(source.kind(), std::io::ErrorKind::NotADirectory);
        }
        other => panic!("{other}"),
    }
    assert!(!error.is_data());
}

#[test]
fn folder_of_splits_needs_a_choice() {
    let tree = Tree::new(&["val/a/1.jpg", "Train/b/1.jpg", "readme.md"]);
    tree.mkdir(".git");
    let error = tree.list().unwrap_err();
    match &error {
        ConvertError::OnlySplits { splits, .. } => assert_eq!(splits, &["Train", "val"]),
        other => panic!("{other}"),
    }
    assert!(error.hint().unwrap().contains("split='all'"));
    assert!(!error.is_data());
}

#[test]
fn splits_share_their_class_ids() {
    let tree = Tree::new(&[
        "train/cat/1.jpg",
        "train/dog/1.jpg",
        "val/ant/1.jpg",
        "val/dog/2.jpg",
        "test/x.jpg",
        "extra/dog/3.jpg",
    ]);
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    let names: Vec<&str> = splits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["test", "train", "val"]);
    let (test, train, val) = (&splits[0].1, &splits[1].1, &splits[2].1);
    assert_eq!(classes(train), ["ant", "cat", "dog"]);
    assert_eq!(classes(val), classes(train));
    assert_eq!(labels(train), [Some(1), Some(2)]);
    assert_eq!(labels(val), [Some(0), Some(2)]);
    let beside = Warning::FoldersBesideSplits { count: 1, first: b"extra".to_vec() };
    let empty = Warning::EmptyClasses { count: 1, first: b"ant".to_vec(), id: 0 };
    assert_eq!(train.warnings(), [empty, beside.clone()]);
    assert_eq!(test.warnings(), [Warning::SplitUnlabelled, beside]);
    assert_eq!(test.kind(), SourceKind::FlatFolder);
    assert_eq!(train.root(), tree.path("train"));

    let one = tree.list_split("train").unwrap();
    assert_eq!(fingerprint(&one), fingerprint(train));
    assert_eq!(labels(&tree.list_split("extra").unwrap()), [Some(2)]);
}

#[test]
fn missing_split_is_an_error_that_lists_the_others() {
    let tree = Tree::new(&["train/a/1.jpg", "val/a/1.jpg"]);
    match tree.list_split("test").unwrap_err() {
        ConvertError::SplitMissing { wanted, available, .. } => {
            assert_eq!(wanted, "test");
            assert_eq!(available, ["train", "val"]);
        }
        other => panic!("{other}"),
    }
    let plain = Tree::new(&["a/1.jpg"]);
    for error in [plain.list_split("a").unwrap_err(), list_splits(plain.root(), &ListOptions::default()).unwrap_err()] {
        assert!(matches!(&error, ConvertError::SplitMissing { available, .. } if available.is_empty()), "{error}");
    }
}

#[test]
fn empty_split_is_an_error_that_names_it() {
    let tree = Tree::new(&["train/a/1.jpg"]);
    tree.mkdir("val");
    let error = list_splits(tree.root(), &ListOptions::default()).unwrap_err();
    assert!(matches!(&error, ConvertError::EmptySource { path, .. } if *path == tree.path("val")), "{error}");
}

#[test]
fn listing_does_not_depend_on_the_number_of_threads() {
    let tree = Tree::new(&[]);
    for class in 0..150 {
        for file in 0..(class % 4) {
            tree.write(&format!("c{class}/{file}/{file}.jpg"), b"abc");
        }
        tree.write(&format!("c{class}/notes"), b"abc");
    }
    let listed = |jobs| list(tree.root(), &ListOptions { jobs, ..ListOptions::default() }).unwrap();
    let (one, many) = (listed(1), listed(7));
    assert_eq!(fingerprint(&one), fingerprint(&many));
    assert_eq!(one.warnings(), many.warnings());
    assert_eq!((one.ignored(), many.ignored()), (150, 150));

    tree.link(".", "c3/loop");
    tree.link(".", "c97/loop");
    for jobs in [1, 2, 7] {
        let error = list(tree.root(), &ListOptions { jobs, ..ListOptions::default() }).unwrap_err();
        assert!(matches!(&error, ConvertError::SymlinkLoop { path, .. } if *path == tree.path("c3/loop")), "{error}");
    }
}

#[test]
fn fingerprint_changes_with_paths_labels_and_sizes() {
    let base = Tree::new(&["a/1.jpg", "b/2.jpg"]);
    let same = Tree::new(&["a/1.jpg", "b/2.jpg"]);
    assert_eq!(fingerprint(&base.list().unwrap()), fingerprint(&same.list().unwrap()));
    let renamed = Tree::new(&["a/1.jpg", "b/3.jpg"]);
    assert_ne!(fingerprint(&base.list().unwrap()), fingerprint(&renamed.list().unwrap()));
    same.write("b/2.jpg", b"xx");
    assert_ne!(fingerprint(&base.list().unwrap()), fingerprint(&same.list().unwrap()));
    same.write("b/2.jpg", b"x");
    same.mkdir("aa");
    assert_ne!(fingerprint(&base.list().unwrap()), fingerprint(&same.list().unwrap()));
}

/// The encoding is part of the identity of packs: these bytes must never change.
#[test]
fn fingerprint_has_the_documented_bytes() {
    let tree = Tree::new(&["c/1.jpg"]);
    let mut expected = Vec::new();
    let number = |value: u64| value.to_le_bytes();
    expected.extend(number(15));
    expected.extend(b"packds source 1");
    expected.extend(number(1)); // classes
    expected.extend(number(1));
    expected.extend(b"c");
    expected.extend(number(1)); // samples
    expected.extend(number(7));
    expected.extend(b"c/1.jpg");
    expected.extend(number(1)); // size
    expected.extend(number(1)); // one label
    expected.extend(number(0));
    expected.extend(number(0)); // no mask
    expected.extend(number(0)); // no columns
    assert_eq!(fingerprint(&tree.list().unwrap()), expected);
}

#[test]
fn folders_that_programs_left_are_never_classes() {
    let tree = Tree::new(&[
        "cat/1.jpg",
        "cat/.ipynb_checkpoints/1-checkpoint.jpg",
        "cat/Thumbs.db",
        "dog/1.jpg",
        "desktop.ini",
    ]);
    for folder in [".ipynb_checkpoints", "@eaDir", ".thumbnails", "lost+found", ".git", "__MACOSX", ".Trash-1000"] {
        tree.write(&format!("{folder}/x.jpg"), b"x");
    }
    for from in [None, Some(DataFormat::ImageFolder)] {
        let listing = list(tree.root(), &ListOptions { from, ..ListOptions::default() }).unwrap();
        assert_eq!((classes(&listing), listing.len()), (vec!["cat", "dog"], 2));
        let system = Warning::SystemFolders { count: 8, first: b"cat/.ipynb_checkpoints".to_vec() };
        assert_eq!(listing.warnings(), [system]);
        assert_eq!(listing.ignored(), 10);
    }
    // Other hidden folders are classes, as in torchvision.
    let tree = Tree::new(&["cat/1.jpg", ".dog/1.jpg"]);
    assert_eq!(classes(&tree.list().unwrap()), [".dog", "cat"]);
}

#[test]
fn a_file_of_another_format_beside_class_folders_is_named_and_not_read() {
    for file in ["model.h5", "weights.pt", "features.npz", "a.csv", "labels.json", "x.zip", "shards.tar"] {
        for folders in [["cat/1.jpg", "dog/1.jpg"], ["data/cat/1.jpg", "data/dog/1.jpg"]] {
            let tree = Tree::new(&folders);
            tree.write(file, b"x");
            let listing = tree.list().unwrap();
            assert_eq!((listing.len(), classes(&listing)), (2, vec!["cat", "dog"]), "{file}");
            let unread = match file {
                "a.csv" | "labels.json" => Warning::NoLists { file: file.as_bytes().to_vec(), others: Vec::new() },
                _ => Warning::ManifestUnread { file: file.as_bytes().to_vec(), others: Vec::new() },
            };
            assert!(listing.warnings().contains(&unread), "{file}: {:?}", listing.warnings());
        }
    }
    let tree = Tree::new(&["train/cat/1.jpg", "test/cat/1.jpg", "model.h5"]);
    assert_eq!(tree.list_split("test").unwrap().len(), 1);
    // Pictures in a folder next to a dataset do not make it an image folder.
    let tree = Tree::new(&["preview/1.jpg", "train.h5"]);
    assert!(tree.list().unwrap_err().to_string().contains("train.h5"));
}

#[test]
fn texts_beside_images_are_captions_unless_they_hold_boxes() {
    let tree = Tree::new(&[]);
    for n in 0..10 {
        tree.write(&format!("{n}.jpg"), b"x");
        if n != 3 {
            tree.write(&format!("{n}.txt"), format!("\u{feff}a photo of {n}\n").as_bytes());
        }
    }
    let listing = tree.list().unwrap();
    let column = &listing.columns()[0];
    let ColumnValues::Text(texts) = &column.values else { panic!("{column:?}") };
    assert_eq!(
        (column.name.as_str(), texts.iter().nth(3), texts.iter().last()),
        ("caption", Some(""), Some("a photo of 9"))
    );
    assert_eq!((listing.warnings(), listing.ignored()), (&[Warning::Captions { missing: 1 }][..], 0));
    let from = Some(DataFormat::ImageFolder);
    assert!(list(tree.root(), &ListOptions { from, ..ListOptions::default() }).unwrap().columns().is_empty());
    tree.write("2.txt", b"\xff");
    assert!(tree.list().unwrap_err().to_string().ends_with("2.txt: this caption is not UTF-8"));
    // A huge text is not a caption, and then too few captions are left.
    tree.write("2.txt", &vec![b'x'; 1 << 17]);
    assert!(tree.list().unwrap().columns().is_empty());
    let boxes = Tree::new(&["a/1.jpg", "a/2.jpg", "b/3.jpg"]);
    boxes.write("a/1.txt", b"0 0.5 0.5 0.1 0.2\n1 0.1 0.2 0.3 0.4\n");
    boxes.write("a/2.txt", b"");
    boxes.write("b/3.txt", b"0 0.1 0.1 0.2 0.1 0.2 0.2\n");
    let listing = boxes.list().unwrap();
    assert_eq!((listing.columns().len(), listing.warnings()), (0, &[Warning::BoxesUnread { count: 2 }][..]));
}

#[test]
fn folders_that_differ_in_the_split_alone_are_splits() {
    for folders in [["cars_train", "cars_test"], ["trainset", "testset"], ["fold1", "fold2"], ["x-train", "x-val"]] {
        let [one, other] = folders;
        let tree =
            Tree::new(&[&format!("{one}/cat/1.jpg"), &format!("{other}/cat/2.jpg"), &format!("{other}/dog/3.jpg")]);
        let error = tree.list().unwrap_err();
        assert!(matches!(&error, ConvertError::OnlySplits { splits, .. } if splits.len() == 2), "{error}");
        let listing = tree.list_split(other).unwrap();
        assert_eq!((classes(&listing), labels(&listing)), (vec!["cat", "dog"], vec![Some(0), Some(1)]));
    }
    // Class names may contain the names of splits.
    assert_eq!(
        classes(&Tree::new(&["train_car/1.jpg", "test_tube/1.jpg"]).list().unwrap()),
        ["test_tube", "train_car"]
    );
}

#[test]
fn classes_with_images_only_in_inner_folders_are_told() {
    let told = |files: &[&str]| {
        let listing = Tree::new(files).list().unwrap();
        listing.warnings().iter().any(|warning| matches!(warning, Warning::NestedClasses { count: 2, .. }))
    };
    assert!(told(&["amazon/bike/1.jpg", "amazon/mug/2.jpg", "dslr/bike/3.jpg"]));
    assert!(!told(&["cat/1.jpg", "cat/more/2.jpg", "dog/more/3.jpg"]));
}

#[test]
fn a_dataset_in_one_of_the_folders_is_no_class() {
    let folders = ["planet/planet/train-jpg/1.jpg", "planet/planet/test-jpg/2.jpg", "test-more/test-more/3.jpg"];
    let splits = Tree::new(&folders);
    let error = splits.list().unwrap_err();
    let inner = splits.path("planet/planet");
    assert!(error.to_string().contains("'planet/planet' contains the splits 'test-jpg' and 'train-jpg'"), "{error}");
    assert!(error.hint().unwrap().starts_with(&format!("convert '{}' alone", inner.display())));
    assert_eq!(list_splits(&inner, &ListOptions::default()).unwrap().len(), 2);
    let table = Tree::new(&["a/a/images/1.jpg", "b/b/2.jpg"]);
    assert_eq!(classes(&table.list().unwrap()), ["a", "b"]);
    table.write("a/a/labels.csv", b"path,label\nimages/1.jpg,x\n");
    let error = table.list().unwrap_err().to_string();
    assert!(error.contains("'a/a' contains the table 'labels.csv'"), "{error}");
    let from = Some(DataFormat::ImageFolder);
    assert_eq!(classes(&list(table.root(), &ListOptions { from, ..ListOptions::default() }).unwrap()), ["a", "b"]);
}

#[test]
fn folders_that_may_be_no_classes_are_told() {
    let told = |files: &[&str]| -> Vec<String> {
        Tree::new(files).list().unwrap().warnings().iter().map(ToString::to_string).collect()
    };
    let only = told(&["faces/1.jpg", "faces/2.jpg"]);
    assert!(only[0].starts_with("'faces' is the only folder, so all images have the same label"), "{only:?}");
    for [one, other] in [["v_Archery_g01_c01", "v_Archery_g01_c02"], ["patient1", "patient2"], ["TCGA_5_1", "TCGA_6_2"]]
    {
        let clips = told(&[&format!("{one}/1.jpg"), &format!("{other}/2.jpg")]);
        assert!(clips[0].contains(&format!("'{one}' and '{other}' differ only in their numbers")), "{clips:?}");
    }
    // Classes may be numbered, and so may their files.
    assert_eq!(told(&["c0/1.jpg", "c1/1.jpg"]), [""; 0]);
    assert_eq!(told(&["n01440764/1.jpg", "n01443537/1.jpg"]), [""; 0]);
    let numbered = ["Forest/Forest_1.jpg", "Forest/Forest_2.jpg", "River/River_1.jpg", "River/River_2.jpg"];
    assert_eq!(told(&numbered), [""; 0]);
}

#[test]
fn a_copy_of_the_classes_beside_them_is_left_out_and_told() {
    let tree = Tree::new(&["cells/cells/a/1.jpg", "cells/cells/b/2.jpg", "cells/a/1.jpg", "cells/b/2.jpg"]);
    let listing = tree.list().unwrap();
    assert_eq!(classes(&listing), ["a", "b"]);
    assert!(listing.warnings().contains(&Warning::CopyOfClasses { folder: b"cells".to_vec() }));
    let from = Some(DataFormat::ImageFolder);
    let all = list(&tree.path("cells"), &ListOptions { from, ..ListOptions::default() }).unwrap();
    assert_eq!(classes(&all), ["a", "b", "cells"]);
    // A class may contain a folder with the name of one other class.
    assert_eq!(classes(&Tree::new(&["a/1.jpg", "b/2.jpg", "c/a/3.jpg"]).list().unwrap()), ["a", "b", "c"]);
}

#[test]
fn named_folders_are_found_inside_single_outer_folders_and_in_their_splits() {
    let options = |images: &str| ListOptions { images: Some(images.into()), ..ListOptions::default() };
    let nested = Tree::new(&["x/y/raw/1.jpg", "x/y/other/2.jpg"]);
    assert_eq!(paths(&list(nested.root(), &options("raw")).unwrap()), ["1.jpg"]);
    let in_splits = Tree::new(&["x/train/raw/1.jpg", "x/train/other/2.jpg", "x/test/raw/3.jpg"]);
    let splits = list_splits(in_splits.root(), &options("raw")).unwrap();
    assert_eq!(splits.iter().map(|(_, listing)| paths(listing)).collect::<Vec<_>>(), [["3.jpg"], ["1.jpg"]]);
}

#[test]
fn a_folder_with_the_name_of_the_folder_around_it_is_no_class() {
    let tree = Tree::new(&["cars_train/cars_train/1.jpg", "cars_test/cars_test/2.jpg"]);
    let splits = list_splits(tree.root(), &ListOptions::default()).unwrap();
    for (split, listing) in splits {
        assert!(!listing.has_labels() && listing.classes().is_empty(), "{split}");
        assert!(listing.warnings().contains(&Warning::Wrapper { folder: split.into_bytes() }));
    }
}
