//! Columns of objects, as Hugging Face has them: their boxes become fields, if the sizes of the images tell what the numbers are.

use serde_json::json;

use super::items::convert;
use super::people::told;
use super::python;
use crate::support::{Folder, fixture};

#[test]
fn boxes_in_a_column_of_objects_are_fields() {
    let folder = Folder::new();
    python(&["objects.py", folder.path("").to_str().unwrap()]);
    let expected = json!([[10, 5, 18, 9], [0, 0, 20, 10]]);
    for (source, form) in [
        ("sizes.parquet", "left, top, width and height"),
        ("corners.parquet", "left, top, right and bottom"),
        ("folder", "left, top, width and height"),
    ] {
        let said = told(&folder, source);
        assert!(said.contains(&format!("those in 'objects' are {form}, judged by the sizes of the images")), "{said}");
        convert(&folder, source, &["--mode", "encoded"]);
        let head = folder.packds(&["head", "out.pack", "--json"]).json();
        let (first, second) = (&head["samples"][0]["fields"], &head["samples"][1]["fields"]);
        assert_eq!((&first["boxes"], &first["box_labels"]), (&expected, &json!([1, 0])), "{source}");
        assert_eq!(second["boxes"], json!([]), "{source}");
        let classes = folder.packds(&["info", "out.pack", "--json"]).json()["classes"][0]["names"].clone();
        let (names, area) = match source {
            "folder" => (json!(["0", "1"]), json!(null)),
            _ => (json!(["cat", "dog"]), json!([32, 200])),
        };
        assert_eq!((classes, &first["box_area"]), (names, &area), "{source}");
    }
}

#[test]
fn objects_that_may_be_read_in_two_ways_stay_json() {
    let folder = Folder::new();
    python(&["objects.py", folder.path("").to_str().unwrap()]);
    let said = told(&folder, "unsure.parquet");
    assert!(
        said.contains("'objects' stays JSON, and its boxes are not packed: the sizes of the images do not tell"),
        "{said}"
    );
    let pack = convert(&folder, "unsure.parquet", &[]);
    assert!(pack.schema().index_of("objects").is_ok() && pack.schema().index_of("boxes").is_err());
}

/// A folder of images with a table of their objects.
fn with_objects(folder: &Folder, rows: [&str; 2]) {
    let images = folder.path("data/train");
    std::fs::create_dir_all(&images).unwrap();
    let table = ["a.jpg", "b.jpg"].iter().zip(rows).map(|(name, objects)| {
        std::fs::copy(fixture("images/folder/cat/a.jpg"), images.join(name)).unwrap();
        format!("{{\"file_name\": \"{name}\", \"objects\": {objects}}}\n")
    });
    let table: String = table.collect();
    std::fs::write(images.join("metadata.jsonl"), table).unwrap();
}

#[test]
fn objects_of_another_form_are_told_with_their_image() {
    let good = r#"{"bbox": [[1, 2, 3, 4]], "category": [0]}"#;
    for bad in [
        r#"{"bbox": [[1, 2, 3, 4], [5, 6, 7, 8]], "category": [0]}"#,
        r#"{"bbox": [[1, 2, 3]], "category": [0]}"#,
        r#"{"bbox": [[1, 2, 3, 4]], "category": [-1]}"#,
        r#""none""#,
    ] {
        let folder = Folder::new();
        with_objects(&folder, [good, bad]);
        let said = told(&folder, "data");
        let expected = "'objects' stays JSON, and its boxes are not packed: expected boxes of four numbers and as many classes from 0 in 'category' for '";
        assert!(said.contains(expected) && said.contains("b.jpg', as for other images, found "), "{bad}: {said}");
        assert!(!said.contains("looks like boxes"), "{said}");
    }
}
