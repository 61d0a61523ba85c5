//! `.npy`, `.npz`, `.safetensors`, `.pt`, CIFAR and MNIST: packds converts what numpy, safetensors, torch and
//! torchvision write, and these libraries read the same from its exports.

use serde_json::{Value, json};

use super::{python, python_with};
use crate::support::Folder;

fn text(folder: &Folder, name: &str) -> String {
    folder.path(name).to_str().unwrap().to_owned()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Converts a source and exports the pack to this target.
fn there_and_back(folder: &Folder, source: &[&str], target: &[&str]) {
    let mut convert = vec!["convert", source[0], "a.pack", "--keep-order", "--force"];
    convert.extend_from_slice(&source[1..]);
    let ran = folder.packds(&convert);
    assert_eq!(ran.code, 0, "{source:?}: {ran:?}");
    let mut export = vec!["export", "a.pack"];
    export.extend_from_slice(target);
    let ran = folder.packds(&export);
    assert_eq!(ran.code, 0, "{target:?}: {ran:?}");
}

/// Checks that `read` has the arrays of `written`.
fn check(written: &Value, read: &Value, what: &str) {
    for (name, array) in written.as_object().unwrap() {
        assert_eq!(&read[name], array, "{what}: {name}");
    }
}

#[test]
fn numpy_and_safetensors_read_what_came_from_them() {
    let folder = Folder::new();
    let written = parse(&python(&["arrays.py", "write", &text(&folder, "")]));
    let sources = ["npy", "a.npz", "deflated.npz", "a.safetensors"];
    let targets: [&[&str]; 4] =
        [&["out.npz"], &["deflated-out.npz", "--codec", "gzip"], &["out.safetensors"], &["out", "--to", "npy"]];
    for source in sources {
        for target in targets {
            there_and_back(&folder, &[source], target);
            let path = text(&folder, target[0]);
            let read = parse(&python(&["arrays.py", "read", &path]));
            check(&written, &read[0], &format!("{source} to {target:?}"));
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    there_and_back(&folder, &["a.npz"], &["one.npy"]);
    let read = parse(&python(&["arrays.py", "read", &text(&folder, "one.npy")]));
    assert_eq!(read[0]["image"], written["image"]);
}

#[test]
fn what_numpy_saves_but_is_not_for_us_is_refused() {
    let folder = Folder::new();
    python(&["arrays.py", "write", &text(&folder, "")]);
    for (name, expected) in [("objects.npy", "Python objects"), ("fortran.npy", "Fortran order")] {
        let ran = folder.packds(&["convert", name, "o.pack"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let file = folder.path("a.npz");
    let bytes = std::fs::read(&file).unwrap();
    folder.flip("a.npz", 3000);
    let ran = folder.packds(&["convert", "a.npz", "o.pack"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("expected the checksum"), "{}", ran.stderr);
    std::fs::write(&file, &bytes[..bytes.len() - 100]).unwrap();
    let ran = folder.packds(&["convert", "a.npz", "o.pack"]);
    assert!(ran.stderr.contains("directory"), "{}", ran.stderr);
    let ran = folder.packds(&["convert", "deflated.npz", "o.pack", "--label-key", "no"]);
    assert!(ran.stderr.contains("'no'"), "{}", ran.stderr);
}

#[test]
fn torch_reads_what_came_from_it_and_nothing_is_called() {
    let folder = Folder::new();
    let written = python_with("torch", &["arrays.py", "torch", &text(&folder, "")]);
    let Some(written) = written.map(|text| parse(&text)) else {
        return;
    };
    for source in ["dict.pt", "tuple.pt", "old.pt", "set.pt", "views.pt"] {
        there_and_back(&folder, &[source], &["out.pt", "--force"]);
        let out = text(&folder, "out.pt");
        let read = python_with("torch", &["arrays.py", "read", &out]).unwrap();
        let mut read = parse(&read)[0].clone();
        if read["vector"].is_null() {
            read["vector"] = read["field_2"].clone();
        }
        check(&written, &read, source);
    }
    let keys = ["convert", "nested.pt", "n.pack", "--image-key", "set.image"];
    folder.packds(&keys).ok();
    for (name, expected) in [
        ("nested.pt", "found 'set.image', 'label'"),
        ("permuted.pt", "save tensor.contiguous()"),
        ("samples.pt", "(torch.stack)"),
        ("harmful.pt", "calls posix.system"),
    ] {
        let ran = folder.packds(&["convert", name, "o.pack"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    assert!(!folder.path("called").exists());
}

#[test]
fn cifar_and_mnist_are_read_as_torchvision_reads_them() {
    let folder = Folder::new();
    let written = python_with("torchvision", &["arrays.py", "published", &text(&folder, "")]);
    let Some(written) = written.map(|text| parse(&text)) else {
        return;
    };
    let sources = [
        ("cifar", "cifar/cifar-10-batches-py"),
        ("cifar", "cifar-bin"),
        ("mnist", "mnist/MNIST/raw"),
        ("mnist", "mnist"),
        ("cifar", "cifar"),
    ];
    for (name, source) in sources {
        for split in ["train", "test"] {
            let from = ["--from", name, "--split", split];
            there_and_back(&folder, &[&[source][..], &from].concat(), &["o.npz", "--force"]);
            let read = parse(&python(&["arrays.py", "read", &text(&folder, "o.npz")]));
            let expected = &written[format!("{name}-{split}")];
            let mut image = read[0]["image"].clone();
            if name == "mnist" {
                // An image without a channel dimension has the same bytes as an image of one channel.
                image[1] = expected[0][1].clone();
            }
            assert_eq!(image, expected[0], "{source} {split}");
            assert_eq!(read[0]["label"], expected[1], "{source} {split}");
            if name == "cifar" {
                assert_eq!(read[0]["classes"][9], json!("class 9"));
            }
        }
    }
}
