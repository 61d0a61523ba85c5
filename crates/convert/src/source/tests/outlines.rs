//! Outlines and keypoints of YOLO, LabelMe and COCO.

use packds_format::{Keypoints, Polygons, Role};

use super::super::{ListOptions, Listing, list};
use super::Tree;
use super::box_sources::{YAML, boxes, error, item, labelme, one, splits, told, tree, yolo};

/// The rings of each box of an image, rounded.
fn rings(listing: &Listing, idx: usize) -> Vec<Vec<Vec<[i32; 2]>>> {
    let n = item(listing, "boxes", idx).len() / 16;
    let polygons = Polygons::parse(&item(listing, "polygons", idx), n).unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "the places are small")]
    let rounded = |ring: &[[f32; 2]]| ring.iter().map(|point| point.map(|place| place.round() as i32)).collect();
    (0..n).map(|of| polygons.rings_of(of).map(rounded).collect()).collect()
}

/// The numbers of the keypoints of an image.
fn points(listing: &Listing, idx: usize) -> Vec<f32> {
    item(listing, "keypoints", idx).as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.fields().iter().map(|field| field.name.as_str()).collect()
}

#[test]
fn outlines_and_rotated_boxes_of_yolo_are_polygons() {
    let lines =
        "0 0.1 0.2 0.5 0.2 0.3 0.6\n1 0.1 0.1 0.1 0.2 0.2 0.2 0.2 0.1\n0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.2 0.2 0.3 0.3\n";
    let train = splits(&yolo(lines)).swap_remove(0).1;
    let expected = [
        one([10, 10, 50, 30], "cat"),
        one([10, 5, 20, 10], "dog"),
        one([40, 15, 60, 35], "cat"),
        one([10, 5, 30, 15], "dog"),
    ];
    assert_eq!((boxes(&train, 0), names(&train)), (expected.to_vec(), vec!["boxes", "box_labels", "polygons"]));
    let triangle = vec![vec![[10, 10], [50, 10], [30, 30]]];
    // The second one was given counterclockwise.
    let square = vec![vec![[10, 5], [20, 5], [20, 10], [10, 10]]];
    assert_eq!(rings(&train, 0), [triangle, square, vec![], vec![]]);
    assert!(rings(&train, 1).is_empty());
    let told = told(&train);
    assert!(told.contains("3 outlines packed in 'polygons', with the box around each"), "{told}");
    assert!(told.contains("1 polygon without an area, left out"), "{told}");
}

#[test]
fn outlines_that_are_all_rectangles_are_told_as_boxes() {
    let own = yolo("0 0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2\n");
    let train = splits(&own).swap_remove(0).1;
    assert_eq!(names(&train), ["boxes", "box_labels"]);
    let told = told(&train);
    let expected = "1 outline packed as boxes only, because all outlines are rectangles with level sides";
    assert!(told.contains(expected) && !told.contains("'polygons'"), "{told}");
}

#[test]
fn keypoints_of_yolo_are_pixels_with_their_visibility() {
    let pose = format!("{YAML}kpt_shape: [2, 3]\nflip_idx: [1, 0]\n");
    let own = yolo("0 0.5 0.5 0.2 0.4 0.5 0.5 2 0.4 0.4 0\n1 0.5 0.5 0.2 0.4 1.1 0.5 1 0.4 0.4 2\n");
    own.write("data.yaml", pose.as_bytes());
    let found = splits(&own);
    let train = &found[0].1;
    let expected = [50.0, 25.0, 2.0, 0.0, 0.0, 0.0, 110.0, 25.0, 1.0, 40.0, 20.0, 2.0];
    assert_eq!(points(train, 0).iter().map(|number| number.round()).collect::<Vec<_>>(), expected);
    let named = Keypoints { names: ["0", "1"].map(str::to_owned).to_vec(), swaps: vec![1, 0], skeleton: Vec::new() };
    assert_eq!(train.keypoints(), Some(&named));
    // The other split has the same field, and its box has no points.
    assert_eq!(points(&found[1].1, 0), [0.0; 6]);
    let roles: Vec<_> = train.fields().iter().map(|field| field.role).collect();
    assert_eq!(roles.last(), Some(&Some(Role::Keypoints)));
    own.write("labels/train/a.txt", b"0 0.5 0.5 0.2 0.4 0.5 0.5 2\n");
    let said = error(&own);
    assert!(
        said.contains("expected 5 numbers, or 11 for the keypoints of 'kpt_shape: [2, 3]', or the points"),
        "{said}"
    );
    // Two numbers for each point.
    own.write("data.yaml", pose.replace("[2, 3]", "[2, 2]").as_bytes());
    own.write("labels/train/a.txt", b"0 0.5 0.5 0.2 0.4 0.5 0.5 -1 -1\n");
    assert_eq!(points(&splits(&own)[0].1, 0), [50.0, 25.0, 2.0, 0.0, 0.0, 0.0]);
    own.write("data.yaml", pose.as_bytes());
    own.write("labels/train/a.txt", b"0 0.5 0.5 0.2 0.4 0.5 0.5 0.9 0.4 0.4 0\n");
    let found = error(&own);
    assert!(
        found.contains("labels/train/a.txt: line 1: expected 0, 1 or 2 as the visibility of a keypoint"),
        "{found}"
    );
}

#[test]
fn shapes_of_labelme_have_outlines_and_points() {
    let shapes = r#"{"label": "owl", "points": [[10, 10], [30, 20]], "group_id": 7, "shape_type": "rectangle"},
        {"label": "beak", "points": [[12, 13]], "group_id": 7, "shape_type": "point"},
        {"label": "tail", "points": [[14, 15.5]], "group_id": 7, "shape_type": "point"},
        {"label": "beak", "points": [[1, 1]], "group_id": 8, "shape_type": "point"},
        {"label": "cat", "points": [[1, 2], [5, 8], [9, 3]], "shape_type": "polygon"}"#;
    let own = tree(&["a.png"], &[("a.json", &labelme(shapes))]);
    let listing = own.list().unwrap();
    assert_eq!(names(&listing), ["boxes", "box_labels", "keypoints", "polygons"]);
    let rectangle = vec![vec![[10, 10], [30, 10], [30, 20], [10, 20]]];
    assert_eq!(rings(&listing, 0), [rectangle, vec![vec![[1, 2], [9, 3], [5, 8]]]]);
    assert_eq!(points(&listing, 0), [12.0, 13.0, 2.0, 14.0, 15.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(listing.keypoints().unwrap().names, ["beak", "tail"]);
    let said = told(&listing);
    assert!(said.contains("1 point whose group is not that of one box, left out"), "{said}");
    assert!(!said.contains("group_id"), "{said}");
    // Rectangles alone have no outlines besides their sides.
    own.write(
        "a.json",
        labelme(r#"{"label": "owl", "points": [[10, 10], [30, 20]], "shape_type": "rectangle"}"#).as_bytes(),
    );
    assert_eq!(names(&own.list().unwrap()), ["boxes", "box_labels"]);
    for (shape, words) in [
        (r#"{"label": "x", "points": [[1, 2]], "shape_type": "circle"}"#, "expected two points of a circle in 'x'"),
        (
            r#"{"label": "x", "points": [[1, 2], [3, 4]], "group_id": 1, "shape_type": "rectangle"},
               {"label": "y", "points": [[1, 2], [3, 4]], "group_id": 1, "shape_type": "point"}"#,
            "the point 'y' of the group is not one pair of numbers in 'x'",
        ),
        (
            r#"{"label": "x", "points": [[1, 2], [3, 4]], "group_id": 1, "shape_type": "rectangle"},
               {"label": "y", "points": [[1, 2]], "group_id": 1, "shape_type": "point"},
               {"label": "y", "points": [[1, 2]], "group_id": 1, "shape_type": "point"}"#,
            "two points of the group have the label 'y'",
        ),
    ] {
        let error = error(&tree(&["a.png"], &[("a.json", &labelme(shape))]));
        assert!(error.contains(words), "{error}");
    }
}

const PERSON: &str =
    r#"{"id": 1, "name": "person", "keypoints": ["nose", "left_eye", "right_eye"], "skeleton": [[2, 3], [1, 2]]}"#;

/// A folder with a COCO file.
fn coco(annotations: &str, categories: &str) -> Tree {
    let text = format!(
        r#"{{"images": [{{"id": 1, "file_name": "a.png", "width": 100, "height": 50}}, {{"id": 2, "file_name": "b.png"}}],
            "categories": [{categories}], "annotations": [{annotations}]}}"#
    );
    tree(&["a.png", "b.png"], &[("x.json", &text)])
}

fn listed(tree: &Tree) -> Listing {
    list(&tree.path("x.json"), &ListOptions::default()).unwrap()
}

#[test]
fn outlines_and_keypoints_of_coco_are_fields() {
    let own = coco(
        r#"{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "segmentation": [[1, 2, 1, 42, 31, 42], [5, 5, 6, 6]],
            "keypoints": [3, 4, 2, 0, 0, 0, 5.5, 6, 1], "num_keypoints": 2},
           {"image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 9], "segmentation": [[1, 2, 1, 42, 31, 42]]},
           {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "segmentation": {"size": [50, 100], "counts": [52, 3, 4945]}}"#,
        PERSON,
    );
    let listing = listed(&own);
    assert_eq!(names(&listing), ["boxes", "box_labels", "keypoints", "polygons"]);
    let traced = vec![vec![[1, 2], [2, 2], [2, 5], [1, 5]]];
    assert_eq!(rings(&listing, 0), [vec![vec![[1, 2], [31, 42], [1, 42]]], traced]);
    let expected = [&[3.0, 4.0, 2.0, 0.0, 0.0, 0.0, 5.5, 6.0, 1.0][..], &[0.0; 9]].concat();
    assert_eq!((points(&listing, 0), points(&listing, 1).len()), (expected, 0));
    let named = listing.keypoints().unwrap();
    assert_eq!((named.swaps.as_slice(), named.skeleton.as_slice()), (&[0, 2, 1][..], &[[1, 2], [0, 1]][..]));
    let said = told(&listing);
    assert!(said.contains("1 box without an area, left out; 1 polygon without an area, left out"), "{said}");
    assert!(!said.contains("other values of annotations"), "{said}");
    // Without the boxes they mean nothing.
    let options = ListOptions { leave_out: vec!["boxes".to_owned()], ..ListOptions::default() };
    let without = list(&own.path("x.json"), &options).unwrap();
    assert_eq!(names(&without), ["box_labels"]);
}

#[test]
fn categories_with_different_keypoints_have_no_names() {
    let categories =
        format!(r#"{PERSON}, {{"id": 2, "name": "hand", "keypoints": ["thumb"]}}, {{"id": 3, "name": "hat"}}"#);
    let listing = listed(&coco(
        r#"{"image_id": 1, "category_id": 2, "bbox": [1, 2, 30, 40], "keypoints": [3, 4, 2]},
           {"image_id": 1, "category_id": 3, "bbox": [1, 2, 30, 40]}"#,
        &categories,
    ));
    let expected = [&[3.0, 4.0, 2.0][..], &[0.0; 15]].concat();
    assert_eq!((points(&listing, 0), listing.keypoints()), (expected, None));
    let said = told(&listing);
    assert!(said.contains("keypoints have no names, because categories have different ones"), "{said}");
}

#[test]
fn outlines_and_keypoints_of_coco_that_are_wrong_are_refused() {
    for (values, words) in [
        (r#""segmentation": {"size": [100, 50], "counts": [5000]}"#, "(50 x 100), found 100 x 50"),
        (r#""segmentation": {"size": [50, 100], "counts": [4999]}"#, "expected run lengths that sum to 5000 pixels"),
        (r#""segmentation": {"size": [50, 100], "counts": "0o"}"#, "ends within a number"),
        (r#""segmentation": [[1, 2, 3]]"#, "expected pairs of x and y in a polygon"),
        (r#""keypoints": [1, 2, 2]"#, "expected 3 times x, y and visibility in 'keypoints', found 3 numbers"),
        (r#""keypoints": [1, 2, 3, 0, 0, 0, 0, 0, 0]"#, "expected 0, 1 or 2 as the visibility of a keypoint, found 3"),
        (r#""keypoints": 7"#, "expected a list of numbers in 'keypoints'"),
    ] {
        let one = format!(r#"{{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], {values}}}"#);
        let tree = coco(&one, PERSON);
        let error = list(&tree.path("x.json"), &ListOptions::default()).unwrap_err().to_string();
        assert!(error.contains("x.json: entry 0 (counted from 0)") && error.contains(words), "{error}");
    }
    for (from, to, words) in [
        ("[2, 3]", "[2, 4]", "expected two different points from 1 to 3 in each line of 'skeleton'"),
        ("[2, 3]", "[0, 3]", "expected two different points from 1 to 3"),
        ("[2, 3]", "[2]", "expected pairs of points in 'skeleton'"),
        (r#"["nose", "left_eye", "right_eye"]"#, r#"["nose", "nose", "x"]"#, "two keypoints have the name 'nose'"),
        (r#"["nose", "left_eye", "right_eye"]"#, "7", "expected a list of names in 'keypoints'"),
    ] {
        let tree = coco(r#"{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40]}"#, &PERSON.replace(from, to));
        let error = list(&tree.path("x.json"), &ListOptions::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn files_of_keypoints_are_read_if_there_are_no_other_boxes() {
    let text = std::fs::read_to_string(
        coco(
            r#"{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "keypoints": [1, 2, 2, 0, 0, 0, 0, 0, 0]}"#,
            PERSON,
        )
        .path("x.json"),
    )
    .unwrap();
    let own = tree(
        &["val2017/a.png", "val2017/b.png"],
        &[("annotations/person_keypoints_val2017.json", &text), ("annotations/captions_val2017.json", "{}")],
    );
    assert_eq!(names(&own.list().unwrap()), ["boxes", "box_labels", "keypoints"]);
    own.write("annotations/instances_val2017.json", text.replace("\"keypoints\"", "\"others\"").as_bytes());
    assert_eq!(names(&own.list().unwrap()), ["boxes", "box_labels"]);
}

#[test]
fn resizing_moves_points_and_outlines_with_the_image() {
    use crate::{ConvertOptions, convert};
    use packds_pixels::Resize;

    let own = coco(
        r#"{"image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 20], "segmentation": [[10, 20, 40, 20, 40, 40]],
            "keypoints": [20, 30, 2, 0, 0, 0, 0, 0, 0]}"#,
        PERSON,
    );
    let target = own.path("out.pack");
    let options = ConvertOptions { resize: Some(Resize::Exact { width: 50, height: 10 }), ..ConvertOptions::default() };
    convert(&own.path("x.json"), &target, &options, &()).unwrap();
    let pack = packds_format::Pack::open(std::fs::read(&target).unwrap()).unwrap();
    let item = |name: &str| {
        let field = pack.schema().index_of(name).unwrap();
        let longest = (0..2).map(|sample| pack.item(field, sample).unwrap().into_owned()).max_by_key(Vec::len).unwrap();
        longest.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect::<Vec<_>>()
    };
    assert_eq!(item("boxes"), [5.0, 4.0, 20.0, 8.0]);
    assert_eq!(item("polygons"), [0.0, 0.0, 5.0, 4.0, 0.0, 0.0, 20.0, 4.0, 0.0, 0.0, 20.0, 8.0]);
    assert_eq!(item("keypoints"), [10.0, 6.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let names = &pack.schema().fields().iter().find_map(|field| field.keypoints.as_ref()).unwrap().names;
    assert_eq!(names[1], "left_eye");
}
