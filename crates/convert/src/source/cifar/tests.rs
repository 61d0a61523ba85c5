//! The tests write small CIFAR files of the binary version and the Python version.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::source::mutation::{damage, survives};
use crate::source::{ListOptions, list, list_splits};

/// A binary file with these labels.
fn binary(labels: &[&[u8]]) -> Vec<u8> {
    let record = |(i, labels): (usize, &&[u8])| {
        let pixels = (0..3072).map(move |k| u8::try_from((k + i * 5) % 256).unwrap());
        labels.iter().copied().chain(pixels).collect::<Vec<u8>>()
    };
    labels.iter().enumerate().flat_map(record).collect()
}

/// A file as pickled by Python 2: protocol 2, with the bytes as text.
fn pickled(n: u8, labels: &[u8]) -> Vec<u8> {
    let mut out =
        b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K"
            .to_vec();
    out.push(n);
    out.extend_from_slice(b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T");
    let pixels = usize::from(n) * 3072;
    out.extend_from_slice(&u32::try_from(pixels).unwrap().to_le_bytes());
    out.extend((0..pixels).map(|k| u8::try_from(k % 253).unwrap()));
    out.extend_from_slice(b"tbU\x06labels](");
    labels.iter().for_each(|label| out.extend_from_slice(&[b'K', *label]));
    out.extend_from_slice(b"eu.");
    out
}

/// Like [`pickled`], with file names.
fn pickled_with_names(n: u8, names: &[&str]) -> Vec<u8> {
    let mut out = pickled(n, &vec![0; usize::from(n)]);
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"U\x09filenames](");
    for name in names {
        out.extend_from_slice(&[b'U', u8::try_from(name.len()).unwrap()]);
        out.extend_from_slice(name.as_bytes());
    }
    out.extend_from_slice(b"eu.");
    out
}

fn labels(listing: &crate::source::Listing) -> Vec<i64> {
    (0..listing.len()).filter_map(|i| listing.label(i)).collect()
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
    assert_eq!((listings[1].0.as_str(), labels(train)), ("train", vec![3, 0, 1]));
    assert_eq!(train.classes()[3], b"cat");
    let mut image = Vec::new();
    train.append_image(1, u64::MAX, &mut image).unwrap();
    assert_eq!((image.len(), image[0], image[1]), (3072, 5, 6));
}

#[test]
fn of_two_labels_the_fine_one_is_the_label() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("train.bin"), binary(&[&[9, 42], &[1, 7]])).unwrap();
    fs::write(folder.path().join("fine_label_names.txt"), "x\n".repeat(50)).unwrap();
    let listings = list_splits(folder.path(), &ListOptions::default()).unwrap();
    assert_eq!(labels(&listings[0].1), [42, 7]);
    let coarse = &listings[0].1.columns()[0];
    assert_eq!(coarse.name, "coarse_label");
    assert_eq!(coarse.values, ColumnValues::I64(vec![9, 1]));
    fs::write(folder.path().join("coarse_label_names.txt"), "y\n".repeat(20)).unwrap();
    let options = |key: &str| ListOptions { label_key: Some(key.to_owned()), ..ListOptions::default() };
    let (_, train) = &list_splits(folder.path(), &options("coarse_label")).unwrap()[0];
    assert_eq!(labels(train), [9, 1]);
    assert_eq!((train.classes().len(), train.columns()[0].name.as_str()), (20, "fine_label"));
    let error = list_splits(folder.path(), &options("fine")).unwrap_err();
    let said = error.to_string();
    assert!(said.ends_with("no field 'fine' of labels, found 'image', 'label', 'coarse_label'"), "{said}");
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

/// Bytes as pickled by Python 3 with protocols 0 to 2: a call of `_codecs.encode` with a string.
fn encoded(protocol: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = b"c_codecs\nencode\n(".to_vec();
    for text in [bytes, b"latin1"] {
        if protocol == 0 {
            out.push(b'V');
            for byte in text {
                match byte {
                    0 | b'\n' | b'\r' | b'\\' | 0x1a => {
                        out.extend(format!("\\u{byte:04x}").into_bytes());
                    }
                    byte => out.push(*byte),
                }
            }
            out.push(b'\n');
        } else {
            let text: String = text.iter().map(|byte| char::from(*byte)).collect();
            out.push(b'X');
            out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            out.extend(text.into_bytes());
        }
    }
    out.extend(b"tR");
    out
}

#[test]
fn keys_of_bytes_are_read_as_python_3_pickles_them_for_python_2() {
    let pixels: Vec<u8> = (0..3072_u32 * 30).map(|k| u8::try_from(k % 256).unwrap()).collect();
    for protocol in [0, 1, 2] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("train");
        let mut out = match protocol {
            2 => b"\x80\x02}(".to_vec(),
            _ => b"(d(".to_vec(),
        };
        out.extend(encoded(protocol, b"data"));
        out.extend(b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt");
        out.extend(encoded(protocol, b"b"));
        out.extend(b"tR(I1\n(I30\nI3072\ntcnumpy\ndtype\n(Vu1\nI00\nI01\ntR(I3\nV|\nNNNI-1\nI-1\nI0\ntbI00\n");
        out.extend(encoded(protocol, &pixels));
        out.extend(b"tb");
        out.extend(encoded(protocol, b"fine_labels"));
        out.extend(b"(l");
        (0..30).for_each(|label| out.extend(format!("I{label}\na").into_bytes()));
        out.extend(encoded(protocol, b"coarse_labels"));
        out.extend(b"(l");
        (0..30).for_each(|_| out.extend(b"I1\na"));
        out.extend(b"u.");
        fs::write(&path, out).unwrap();
        // There is neither a test set nor a file of class names.
        for source in [path.as_path(), folder.path()] {
            let listing = list(source, &ListOptions::default()).unwrap();
            assert_eq!(labels(&listing), (0..30).collect::<Vec<_>>());
            assert!(listing.classes().is_empty());
            let mut image = Vec::new();
            listing.append_image(29, u64::MAX, &mut image).unwrap();
            assert!(image == pixels[29 * 3072..], "protocol {protocol}");
        }
    }
}

#[test]
fn torchvisions_root_is_its_one_data_set() {
    let folder = TempDir::new().unwrap();
    let python = folder.path().join("cifar-10-batches-py");
    fs::create_dir(&python).unwrap();
    fs::write(python.join("data_batch_1"), pickled(2, &[3, 4])).unwrap();
    fs::write(folder.path().join("cifar-10-python.tar.gz"), b"\x1f\x8b").unwrap();
    let listing = list(folder.path(), &ListOptions::default()).unwrap();
    assert_eq!(labels(&listing), [3, 4]);
    let raw = folder.path().join("FashionMNIST/raw");
    fs::create_dir_all(&raw).unwrap();
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2];
    images.extend([1, 2, 3, 4]);
    fs::write(raw.join("train-images-idx3-ubyte"), images).unwrap();
    let error = list(folder.path(), &ListOptions::default()).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("FashionMNIST/raw, ") && said.ends_with("cifar-10-batches-py"), "{said}");
    assert_eq!(error.hint().unwrap(), "pass the folder of one of them");
    let options = ListOptions { from: Some(DataFormat::Mnist), ..ListOptions::default() };
    let listing = list(folder.path(), &options).unwrap();
    assert_eq!(listing.len(), 1);
    let one = list(&folder.path().join("FashionMNIST"), &ListOptions::default()).unwrap();
    assert_eq!(one.len(), 1);
}

#[test]
fn wrong_lengths_and_labels_are_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |name: &str, file: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        list(&path, &ListOptions::default()).unwrap_err().to_string()
    };
    let file = binary(&[&[1], &[2]]);
    assert!(refused("data_batch_1.bin", &file[1..]).contains("records of 3073"));
    assert!(refused("test_batch", &pickled(2, &[1])).contains("a list of 2 labels"));
    let short = pickled(2, &[1, 2]);
    assert!(refused("test_batch", &short[..4000]).contains("bytes"));
}

#[test]
fn no_damage_makes_the_readers_panic() {
    for (name, file) in [("data_batch_1", pickled(1, &[4])), ("data_batch_1.bin", binary(&[&[1]]))] {
        survives(DataFormat::Cifar, name, 1000, |dice| {
            let mut bytes = file.clone();
            // The head and the tail contain everything except pixels.
            let mut head = bytes[..200].to_vec();
            damage(&mut head, dice);
            bytes.splice(..200, head);
            bytes
        });
    }
}

#[test]
fn keys_that_name_no_field_are_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data_batch_1.bin");
    fs::write(&file, binary(&[&[3], &[0]])).unwrap();
    let options = ListOptions { label_key: Some("zz".to_owned()), ..ListOptions::default() };
    let said = list(&file, &options).unwrap_err().to_string();
    let expected = "no field 'zz' of labels, found 'image', 'label'";
    assert!(said.ends_with(expected), "{said}");
    let own = ListOptions { label_key: Some("label".to_owned()), ..ListOptions::default() };
    assert_eq!(labels(&list(&file, &own).unwrap()), [3, 0]);
}

#[test]
fn names_of_files_are_taken_only_where_each_image_has_its_own() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data_batch_1");
    let listed = |names: &[&str]| {
        fs::write(&file, pickled_with_names(3, names)).unwrap();
        list(&file, &ListOptions::default())
    };
    let path = |names: &[&str]| {
        let mut path = Vec::new();
        listed(names).unwrap().path_into(1, &mut path);
        String::from_utf8(path).unwrap()
    };
    assert_eq!(path(&["a.png", "b.png", "c.png"]), "b.png");
    assert_eq!(path(&["a.png", "a.png", "c.png"]), "data_batch_1/1");
    assert_eq!(path(&["a.png", "", "c.png"]), "data_batch_1/1");
    // As many distinct names as images, plus a duplicate.
    for names in [&["a", "a", "b", "c"][..], &["a"]] {
        let error = listed(names).unwrap_err().to_string();
        let expected = format!("filenames: expected a list of 3 names, found a list of {}", names.len());
        assert!(error.contains(&expected), "{error}");
    }
}
