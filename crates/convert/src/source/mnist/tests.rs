//! idx files, plain and gzipped, with and without labels.

use std::fs;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::source::mutation::{damage, survives};
use crate::source::{ListOptions, list, list_splits};

fn idx(kind: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, kind, u8::try_from(shape.len()).unwrap()];
    for n in shape {
        file.extend(n.to_le_bytes().iter().rev());
    }
    file.extend_from_slice(data);
    file
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut out, bytes).unwrap();
    out.finish().unwrap()
}

fn pixels(n: usize) -> Vec<u8> {
    (0..n).map(|i| u8::try_from(i % 251).unwrap()).collect()
}

#[test]
fn splits_are_found_with_their_labels_plain_and_gzipped() {
    let folder = TempDir::new().unwrap();
    let save = |name: &str, file: Vec<u8>| fs::write(folder.path().join(name), file).unwrap();
    save("train-images-idx3-ubyte.gz", gz(&idx(8, &[3, 2, 4], &pixels(24))));
    save("train-labels-idx1-ubyte.gz", gz(&idx(8, &[3], &[7, 0, 9])));
    save("t10k-images.idx3-ubyte", idx(8, &[1, 2, 4], &pixels(8)));
    save("t10k-labels.idx1-ubyte", idx(8, &[1], &[5]));
    let listings = list_splits(folder.path(), &ListOptions::default()).unwrap();
    let names: Vec<_> = listings.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["test", "train"]);
    let train = &listings[1].1;
    let labels: Vec<_> = (0..train.len()).map(|i| train.label(i)).collect();
    assert_eq!(labels, [Some(7), Some(0), Some(9)]);
    let mut image = Vec::new();
    train.append_image(2, u64::MAX, &mut image).unwrap();
    assert_eq!(image, pixels(24)[16..]);
}

#[test]
fn a_file_without_labels_is_read_with_a_warning_and_rows_of_labels_give_their_first() {
    let folder = TempDir::new().unwrap();
    let images = folder.path().join("qmnist-train-images-idx3-ubyte");
    fs::write(&images, idx(8, &[2, 2, 2], &pixels(8))).unwrap();
    let listing = list(&images, &ListOptions::default()).unwrap();
    assert!(!listing.has_labels());
    let warning = listing.warnings()[0].to_string();
    assert!(warning.contains("qmnist-train-labels-idx1-ubyte"), "{warning}");
    let rows: Vec<u8> = [4, 1, 6, 2].iter().flat_map(|n| [0, 0, 0, *n]).collect();
    let labels = folder.path().join("qmnist-train-labels-idx2-int");
    fs::write(labels, idx(0x0c, &[2, 2], &rows)).unwrap();
    let listing = list(&images, &ListOptions::default()).unwrap();
    assert_eq!((listing.label(0), listing.label(1)), (Some(4), Some(6)));
    assert_eq!(listing.fields()[0].name, "label_info");
}

#[test]
fn files_that_do_not_fit_their_headers_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("train-images-idx3-ubyte");
    let refused = |file: &[u8]| {
        fs::write(&path, file).unwrap();
        let options = ListOptions { from: Some(DataFormat::Mnist), ..ListOptions::default() };
        list(&path, &options).unwrap_err().to_string()
    };
    let huge = idx(8, &[u32::MAX, u32::MAX, u32::MAX], &[0; 8]);
    assert!(refused(&huge).contains("more than 2^64"), "{}", refused(&huge));
    assert!(refused(&gz(&huge)).contains("when unpacked"));
    assert!(refused(&idx(8, &[3, 2, 2], &[0; 11])).contains("found 11"));
    assert!(refused(&gz(&idx(8, &[1, 2, 2], &[0; 5]))).contains("when unpacked"));
    let cut = gz(&idx(8, &[9, 9, 9], &pixels(729)));
    assert!(refused(&cut[..cut.len() - 20]).contains("unpacked"));
    assert!(refused(&idx(0x0a, &[1], &[0])).contains("header of an idx file"));
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let plain = idx(8, &[5, 4, 4], &pixels(80));
    for file in [gz(&plain), plain] {
        survives(DataFormat::Mnist, "train-images-idx3-ubyte", 2000, |dice| {
            let mut bytes = file.clone();
            damage(&mut bytes, dice);
            bytes
        });
    }
}

#[test]
fn keys_that_name_no_field_are_refused() {
    let folder = TempDir::new().unwrap();
    let images = folder.path().join("train-images-idx3-ubyte");
    fs::write(&images, idx(8, &[2, 2, 2], &pixels(8))).unwrap();
    let labels = folder.path().join("train-labels-idx1-ubyte");
    fs::write(labels, idx(8, &[2], &[1, 0])).unwrap();
    let said = |options: &ListOptions| list(&images, options).unwrap_err().to_string();
    let key = || Some("zz".to_owned());
    for options in [
        ListOptions { image_key: key(), ..ListOptions::default() },
        ListOptions { label_key: key(), ..ListOptions::default() },
        ListOptions { mask_key: key(), ..ListOptions::default() },
    ] {
        let said = said(&options);
        assert!(said.ends_with("no field 'zz', found 'image', 'label'"), "{said}");
    }
}

#[test]
fn every_usual_name_is_found_with_its_labels() {
    for (images, labels) in [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
        ("train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte.gz"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte.gz"),
        ("emnist-letters-train-images-idx3-ubyte", "emnist-letters-train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte/train-images-idx3-ubyte", "train-labels-idx1-ubyte/train-labels-idx1-ubyte"),
    ] {
        let folder = TempDir::new().unwrap();
        let save = |name: &str, file: Vec<u8>| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if name.ends_with(".gz") { gz(&file) } else { file }).unwrap();
        };
        save(images, idx(8, &[3, 2, 4], &pixels(24)));
        save(labels, idx(8, &[3], &[7, 0, 9]));
        for source in [folder.path().to_owned(), folder.path().join(images)] {
            let split = match source.is_dir() {
                true if images.starts_with("t10k") => Some("test".to_owned()),
                true => Some("train".to_owned()),
                false => None,
            };
            let options = ListOptions { split, ..ListOptions::default() };
            let listing = list(&source, &options).unwrap();
            assert_eq!((listing.len(), listing.label(2)), (3, Some(9)), "{}", source.display());
        }
    }
}

#[test]
fn one_file_under_two_names_is_one_split() {
    let folder = TempDir::new().unwrap();
    for name in ["train-images-idx3-ubyte", "train-images.idx3-ubyte"] {
        fs::write(folder.path().join(name), idx(8, &[3, 2, 4], &pixels(24))).unwrap();
    }
    assert_eq!(parts(folder.path()).unwrap().len(), 1);
}
