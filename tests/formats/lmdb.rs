//! LMDB, written and read by its own library.

use super::python;
use super::records::{N, assert_records, classes, converted, items, labels, refused};
use crate::support::Folder;

fn sources() -> Folder {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["lmdb.py", "write", &here]);
    folder
}

#[test]
fn what_the_library_writes_is_read() {
    let folder = sources();
    let ids: Vec<i32> = (0..20).map(|i| i % 3).collect();
    let datum = converted(&folder, "datum", &["--layout", "hwc"]);
    assert_records(&datum, 0..N);
    assert_eq!(labels(&datum), ids);
    // Entries are in the order of their keys, which is also the order of the class names.
    let files = converted(&folder, "file.mdb", &[]);
    let of_class = |class: u64| (0..N).filter(move |i| i % 3 == class);
    assert_records(&files, of_class(1).chain(of_class(2)).chain(of_class(0)));
    assert_eq!(classes(&files), ["ant", "sea lion", "zebra"]);
    assert_eq!(files.path(0).unwrap().unwrap(), b"ant/0001.png");
    let keys = converted(&folder, "keys", &[]);
    assert_records(&keys, 1..N);
    assert_eq!(labels(&keys), ids[1..]);
    let said = refused(&folder, "keys", &["--label-key", "zz"]);
    assert!(said.contains("no field 'zz', found 'image', 'label'"), "{said}");
    let args = ["convert", "keys", "k.pack", "--json"];
    assert_eq!(folder.packds(&args).json()["ignored"], 0);
    for args in [&[][..], &["--image-key", "images"]] {
        assert_records(&converted(&folder, "npy", args), 0..N);
    }
    let said = refused(&folder, "pickled", &[]);
    assert!(said.contains("00000: the value is a pickle"), "{said}");
}

#[test]
fn an_image_whose_label_key_is_missing_is_a_bad_sample() {
    let folder = sources();
    let said = refused(&folder, "gap", &[]);
    assert!(said.contains("the labels have no entry with its key"), "{said}");
    let args = ["convert", "gap", "g.pack", "--on-error", "skip", "--json"];
    let report = folder.packds(&args).json();
    assert_eq!(report["n_samples"], N - 2);
    assert_eq!(report["skipped"][0]["path"], "image-000000004");
}

#[test]
fn labels_in_a_database_of_their_own_are_kept() {
    let folder = sources();
    let ids: Vec<i32> = (0..20).map(|i| i % 3).collect();
    for args in [&[][..], &["--image-key", "images"]] {
        let pack = converted(&folder, "two", args);
        assert_records(&pack, 0..N);
        assert_eq!(labels(&pack), ids);
    }
    let ran = folder.packds(&["convert", "both", "b.pack", "--image-key", "images"]);
    assert!(ran.stderr.contains("left out the field 'names': it is a database"), "{ran:?}");
    let named = converted(&folder, "both", &["--image-key", "images", "--label-key", "names"]);
    assert_eq!((labels(&named), classes(&named)), (ids, ["class 0", "class 1", "class 2"].map(str::to_owned).to_vec()));
    let without = converted(&folder, "two", &["--leave-out", "labels"]);
    assert!(without.schema().fields().iter().all(|field| field.name != "label"));
    let said = refused(&folder, "binary", &[]);
    assert!(said.contains("00000: expected a label as text") && said.contains("--leave-out labels"), "{said}");
}

#[test]
fn digits_that_start_with_zero_are_names() {
    let folder = sources();
    let pack = converted(&folder, "codes", &[]);
    assert_eq!((labels(&pack), classes(&pack)), (vec![0, 1, 0, 1], ["007", "008"].map(str::to_owned).to_vec()));
}

#[test]
fn a_database_with_free_pages_and_long_values_is_read() {
    let folder = sources();
    let pack = converted(&folder, "many", &["--mode", "encoded"]);
    assert_eq!(pack.n_samples(), 4000 - 4000_u64.div_ceil(3));
    assert_eq!(pack.path(1).unwrap().unwrap(), b"000002");
    assert!(items(&pack, "image").iter().all(|item| item.starts_with(b"\x89PNG")));
}

#[test]
fn what_is_exported_is_read_by_the_library_and_comes_back() {
    let folder = sources();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["webdataset.py", "write", &here]);
    let pack = converted(&folder, "one.tar", &["--label-key", "species"]);
    folder.packds(&["export", "one.tar.pack", "out.lmdb"]).ok();
    let path = folder.path("out.lmdb");
    let read: serde_json::Value = serde_json::from_str(&python(&["lmdb.py", "read", path.to_str().unwrap()])).unwrap();
    for truth in ["sorted", "pages_fit", "last_page"] {
        assert_eq!(read[truth], true, "{truth}: {read}");
    }
    assert_eq!(read["entries"], read["n_keys"]);
    assert_eq!(read["classes"], serde_json::json!(["ant", "sea lion", "zebra"]));
    for (i, row) in read["rows"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&row["same"], &row["points"]), (&true.into(), &true.into()));
        assert_eq!(row["label"], [2, 0, 1][i % 3]);
    }
    let again = converted(&folder, "out.lmdb", &[]);
    for name in ["image", "label", "points", "txt", "json", "id"] {
        assert_eq!(items(&again, name), items(&pack, name), "{name}");
    }
    assert_eq!(classes(&again), classes(&pack));
}

#[test]
fn a_read_only_folder_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = sources();
    let mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path("datum"), permissions).unwrap();
    };
    mode(0o555);
    assert_eq!(converted(&folder, "datum", &[]).n_samples(), N);
    mode(0o755);
}
