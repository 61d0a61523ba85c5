//! Binary and Python files made by hand.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::source::mutation::{damage, survives};
use crate::source::{ListOptions, list, list_splits};

/// Records of these labels each.
fn binary(labels: &[&[u8]]) -> Vec<u8> {
    let record = |(i, labels): (usize, &&[u8])| {
        let pixels = (0..3072).map(move |k| u8::try_from((k + i * 5) % 256).unwrap());
        labels.iter().copied().chain(pixels).collect::<Vec<u8>>()
    };
    labels.iter().enumerate().flat_map(record).collect()
}

/// As Python 2 pickled it: protocol 2, the bytes as a text.
fn pickled(n: u8, labels: &[u8]) -> Vec<u8> {
    let mut out = b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K".to_vec();
    out.push(n);
    out.extend_from_slice(b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T");
    let pixels = usize::from(n) * 3072;
    out.extend_from_slice(&u32::try_from(pixels).unwrap().to_le_bytes());
    out.extend((0..pixels).map(|k| u8::try_from(k % 253).unwrap()));
    out.extend_from_slice(b"tbU\x06labels](");
    labels
        .iter()
        .for_each(|label| out.extend_from_slice(&[b'K', *label]));
    out.extend_from_slice(b"eu.");
    out
}

fn labels(listing: &crate::source::Listing) -> Vec<i64> {
    (0..listing.len())
        .filter_map(|i| listing.label(i))
        .collect()
}

#[test]
fn binary_batches_are_one_training_set_with_class_names() {
    let folder = TempDir::new().unwrap();
    let save = |name: &str, file: Vec<u8>| fs::write(folder.path().join(name), file).unwrap();
    save("data_batch_1.bin", binary(&[&[3], &[0]]));
    save("data_batch_2.bin", binary(&[&[1]]));
    save("test_batch.bin", binary(&[&[2]]));
    save("batches.meta.txt", b"plane\ncar\nbird\ncat\n\n".to_vec());
    let listings = list_splits(folder.path(), &ListOptions::default()).unwrap();
    let train = &listings[1].1;
    assert_eq!(
        (listings[1].0.as_str(), labels(train)),
        ("train", vec![3, 0, 1])
    );
    assert_eq!(train.classes()[3], b"cat");
    let mut image = Vec::new();
    train.append_image(1, u64::MAX, &mut image).unwrap();
    assert_eq!((image.len(), image[0], image[1]), (3072, 5, 6));
}

#[test]
fn of_two_labels_the_fine_one_is_the_label() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("train.bin"),
        binary(&[&[9, 42], &[1, 7]]),
    )
    .unwrap();
    fs::write(folder.path().join("fine_label_names.txt"), "x\n".repeat(50)).unwrap();
    let listings = list_splits(folder.path(), &ListOptions::default()).unwrap();
    assert_eq!(labels(&listings[0].1), [42, 7]);
    let coarse = &listings[0].1.columns()[0];
    assert_eq!(coarse.name, "coarse_label");
    assert_eq!(coarse.values, ColumnValues::I64(vec![9, 1]));
}

#[test]
fn pickled_batches_are_read_in_place_and_small_ones_too() {
    for n in [2_u8, 30] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("data_batch_1");
        let ids: Vec<u8> = (0..n).map(|i| i % 10).collect();
        fs::write(&path, pickled(n, &ids)).unwrap();
        let listing = list(&path, &ListOptions::default()).unwrap();
        assert_eq!(labels(&listing)[..2], [0, 1]);
        let mut image = Vec::new();
        listing.append_image(1, u64::MAX, &mut image).unwrap();
        assert_eq!(usize::from(image[0]), 3072 % 253);
    }
}

#[test]
fn wrong_lengths_and_labels_are_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |name: &str, file: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        list(&path, &ListOptions::default())
            .unwrap_err()
            .to_string()
    };
    let file = binary(&[&[1], &[2]]);
    assert!(refused("data_batch_1.bin", &file[1..]).contains("records of 3073"));
    assert!(refused("test_batch", &pickled(2, &[1])).contains("a list of 2 labels"));
    let short = pickled(2, &[1, 2]);
    assert!(refused("test_batch", &short[..4000]).contains("bytes"));
}

#[test]
fn no_damage_makes_the_readers_panic() {
    for (name, file) in [
        ("data_batch_1", pickled(1, &[4])),
        ("data_batch_1.bin", binary(&[&[1]])),
    ] {
        survives(DataFormat::Cifar, name, 1000, |dice| {
            let mut bytes = file.clone();
            // The head and the tail, where everything but pixels is.
            let mut head = bytes[..200].to_vec();
            damage(&mut head, dice);
            bytes.splice(..200, head);
            bytes
        });
    }
}
