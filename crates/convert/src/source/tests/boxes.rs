//! COCO files with boxes.

use packds_format::{FieldKind, Role};

use super::super::warning::Warning;
use super::super::{ListOptions, list};
use super::{Tree, paths};

const COCO: &str = r#"{"images": [{"id": 5, "file_name": "1.jpg", "width": 9, "height": 9}, {"id": 6, "file_name": "2.jpg"}],
    "categories": [{"id": 7, "name": "owl"}, {"id": 2, "name": "cat"}],
    "annotations": [{"id": 1, "image_id": 6, "category_id": 7, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}]}"#;

fn tree() -> Tree {
    let tree = Tree::new(&["train2017/1.jpg", "train2017/2.jpg"]);
    tree.write("annotations/instances_train2017.json", COCO.as_bytes());
    tree
}

#[test]
fn boxes_and_their_classes_are_ragged_fields() {
    let tree = tree();
    let listing = list(&tree.path("annotations/instances_train2017.json"), &ListOptions::default()).unwrap();
    assert_eq!(paths(&listing), ["1.jpg", "2.jpg"]);
    let names: Vec<_> = listing.fields().iter().map(|field| (field.name.as_str(), field.role)).collect();
    let expected = [
        ("boxes", Some(Role::Boxes)),
        ("box_labels", Some(Role::BoxLabels)),
        ("box_area", Some(Role::BoxAttribute)),
        ("box_crowd", Some(Role::BoxAttribute)),
    ];
    assert_eq!(names, expected);
    let item = |field: usize, idx: usize| {
        let mut item = Vec::new();
        listing.fields()[field].store.append(idx, u64::MAX, &mut item).unwrap();
        item
    };
    assert_eq!(item(0, 1), [1_f32, 2.0, 4.0, 6.0].map(f32::to_le_bytes).concat());
    assert_eq!((item(1, 1), item(0, 0)), (1_i64.to_le_bytes().to_vec(), Vec::new()));
    assert_eq!(listing.box_classes(), ["cat", "owl"]);
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|line| line.starts_with("boxes are stored as left, top, right and bottom")), "{told:?}");
    let is_noise = |warning: &Warning| matches!(warning, Warning::NoLabels { .. } | Warning::BoxColumns { .. });
    assert!(!listing.warnings().iter().any(is_noise), "{told:?}");
}

#[test]
fn classes_of_boxes_are_no_labels_of_the_images() {
    let files: Vec<String> = (0..20).map(|n| format!("train2017/{}/{n}.jpg", if n < 10 { "a" } else { "b" })).collect();
    let tree = Tree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let images = files.iter().enumerate().map(|(n, file)| format!(r#"{{"id": {n}, "file_name": "{}"}}"#, &file[10..]));
    let boxes = (0..20).map(|n| format!(r#"{{"image_id": {n}, "category_id": 7, "bbox": [1, 2, 3, 4]}}"#));
    let [images, boxes] = [images.collect::<Vec<_>>(), boxes.collect()].map(|list| list.join(", "));
    let text =
        format!(r#"{{"images": [{images}], "annotations": [{boxes}], "categories": [{{"id": 7, "name": "owl"}}]}}"#);
    tree.write("annotations/instances_train2017.json", text.as_bytes());
    let listing = list(&tree.path("annotations/instances_train2017.json"), &ListOptions::default()).unwrap();
    assert!(!listing.has_labels() && !listing.has_label_lists());
    assert_eq!((listing.fields().len(), listing.len()), (2, 20));
}

#[test]
fn boxes_can_be_left_out() {
    let tree = tree();
    let options =
        ListOptions { leave_out: ["boxes", "box_labels"].map(str::to_owned).to_vec(), ..ListOptions::default() };
    let listing = list(&tree.path("annotations/instances_train2017.json"), &options).unwrap();
    assert!(listing.boxes().is_none());
    assert!(listing.columns().iter().all(|column| column.name != "boxes"));
}

#[test]
fn a_pack_of_boxes_keeps_the_sizes_of_its_images() {
    use crate::{ConvertOptions, convert};
    use packds_pixels::{Crop, Orientation};

    let tree = tree();
    for (side, name) in [(9, "1.jpg"), (12, "2.jpg")] {
        let file = packds_pixels::encode_png(side, 8, 3, &vec![7; 8 * 3 * packds_system::to_usize(side)]).unwrap();
        tree.write(&format!("train2017/{name}"), &file);
    }
    let (source, target) = (tree.path("annotations/instances_train2017.json"), tree.path("out.pack"));
    let crop = Some(Crop::Center { width: 4, height: 4 });
    for orientation in [Orientation::Ignore, Orientation::Apply] {
        let crop = crop.filter(|_| orientation == Orientation::Ignore);
        let options = ConvertOptions { crop, orientation, ..ConvertOptions::default() };
        let error = convert(&source, &target, &options, &()).unwrap_err();
        assert!(error.to_string().contains("the source has boxes, which stay as they are"), "{error}");
    }
    convert(&source, &target, &ConvertOptions::default(), &()).unwrap();
    let pack = packds_format::Pack::open(std::fs::read(&target).unwrap()).unwrap();
    let fields = pack.schema().fields();
    assert!(fields.iter().any(|field| field.role == Some(Role::Boxes) && field.kind == FieldKind::Ragged));
    let classes = pack.classes().unwrap();
    assert_eq!((classes[0].field.as_str(), &classes[0].counts), ("box_labels", &vec![0, 1]));
    let mut sizes: Vec<_> = (0..2).map(|n| pack.item_shape("image", n).unwrap().unwrap().1).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [9, 12]);
}
