//! Image folders as torchvision reads them.

use super::records::{classes, converted, items, labels};
use super::{python, python_with};
use crate::support::Folder;

#[test]
fn torchvision_sees_the_classes_ids_and_pixels_of_the_pack() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    python(&["webdataset.py", "write", &here]);
    let pack = converted(&folder, "one.tar", &["--label-key", "species"]);
    let ran = folder.packds(&["export", "one.tar.pack", "images", "--to", "image-folder"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let again = converted(&folder, "images/manifest.jsonl", &[]);
    for name in ["image", "label", "txt", "json", "id"] {
        assert_eq!(items(&again, name), items(&pack, name), "{name}");
    }
    assert_eq!(classes(&again), classes(&pack));

    let images = folder.path("images");
    let args = ["image_folder.py", "read", images.to_str().unwrap()];
    let Some(read) = python_with("torchvision", &args) else {
        return;
    };
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["classes"], serde_json::json!(["ant", "sea lion", "zebra"]));
    let rows = read["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    let (images, ids) = (items(&pack, "image"), labels(&pack));
    for row in rows {
        let path = row["path"].as_str().unwrap();
        let i: usize = path[path.len() - 8..path.len() - 4].parse().unwrap();
        let sum: u64 = images[i].iter().map(|b| u64::from(*b)).sum();
        assert_eq!((row["label"].as_i64(), row["sum"].as_u64()), (Some(ids[i].into()), Some(sum)), "{path}");
    }
}
