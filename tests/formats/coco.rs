//! Masks of COCO, written and read by pycocotools.

use super::python_of_peers;
use super::records::converted;
use crate::support::Folder;

#[test]
fn masks_are_the_same_after_a_conversion_and_an_export() {
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    if python_of_peers("pycocotools", &["coco.py", "write", &here]).is_none() {
        return;
    }
    converted(&folder, "x.json", &["--mode", "encoded"]);
    let ran = folder.packds(&["export", "x.json.pack", "out", "--to", "coco"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let [one, other] = ["x.json", "out/annotations.json"].map(|file| folder.path(file).to_str().unwrap().to_owned());
    let said = python_of_peers("pycocotools", &["coco.py", "compare", &one, &other]).unwrap();
    // Masks with holes are run lengths again, and all others polygons.
    assert_eq!(said.lines().last(), Some(r#"[["dict", "dict"], ["dict", "list"], ["list", "list"]]"#));
}
