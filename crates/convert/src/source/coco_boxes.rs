//! Boxes in a COCO file: `bbox` is left, top, width and height in pixels. Each image gets the list of its boxes and the list of
//! their classes, and the outlines and keypoints of its boxes if there are any.

use std::collections::{BTreeSet, HashMap};

use packds_system::to_u64;
use serde_json::value::RawValue;

use super::box_fields::{AREA, BOX_LABELS, BOXES, BoxFields, CROWD, KEYPOINTS, POLYGONS, Seen};
use super::coco::{ANNOTATIONS, CATEGORIES, Categories, IMAGES, check_images, is_part};
use super::coco_keypoints::{self, Skeletons};
use super::coco_outlines::{Outlines, Rings};
use super::json_rows::{File, JsonRows, Member, with_json_member};
use super::keypoints::Points;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::error::ConvertError;

/// The boxes of one image, as JSON.
#[derive(Default)]
struct Boxes {
    boxes: Vec<String>,
    labels: Vec<String>,
    areas: Vec<String>,
    crowds: Vec<String>,
    keypoints: Vec<Points>,
    outlines: Outlines,
}

/// What the annotations are read with, and what was seen in them.
struct Reading<'a, 'b> {
    file: &'a File<'b>,
    categories: Categories,
    skeletons: Skeletons,
    seen: Seen,
    has_keypoints: bool,
    has_polygons: bool,
    /// Number of polygons without an area.
    n_empty: u64,
}

/// The rows of a COCO file with boxes: the members of each image, and its boxes.
pub(super) fn rows<'a>(file: &File<'a>, members: &[Member<'a>]) -> Result<JsonRows, ConvertError> {
    let categories = file.list(members, CATEGORIES)?;
    let skeletons = Skeletons::of(file, &categories)?;
    let mut reading = Reading {
        file,
        // All splits have the same fields, even if no box of a split has points.
        has_keypoints: skeletons.n() > 0,
        skeletons,
        categories: Categories::of(file, categories, &mut BTreeSet::new())?,
        seen: Seen::default(),
        has_polygons: false,
        n_empty: 0,
    };
    let images = file.list(members, IMAGES)?;
    let mut sizes = HashMap::new();
    for image in &images {
        let keys = file.members(image)?;
        let number = |wanted: &str| find(&keys, wanted).and_then(|value| value.get().parse::<f64>().ok());
        if let (Some(id), Some(size)) = (find(&keys, "id"), number("width").zip(number("height"))) {
            sizes.insert(id.get(), size);
        }
    }
    let mut of_image: HashMap<&str, Boxes> = HashMap::new();
    let annotations = file.list(members, ANNOTATIONS)?;
    for annotation in &annotations {
        let keys = file.members(annotation)?;
        let Some(image) = find(&keys, "image_id").map(RawValue::get) else {
            return Err(file.unread(annotation, "an annotation that lacks 'image_id'"));
        };
        reading.add(annotation, &keys, sizes.get(image).copied(), of_image.entry(image).or_default())?;
    }
    if let Some(first) = annotations.first().filter(|_| reading.seen.are_parts()) {
        let reason = "all boxes have numbers from 0 to 1, but boxes of COCO are in pixels: multiply them by the width and height of their image";
        return Err(file.wrong(first, reason.to_owned()));
    }
    reading.into_rows(&images, of_image)
}

impl Reading<'_, '_> {
    /// Adds the box of an annotation to those of its image.
    fn add(
        &mut self,
        annotation: &RawValue,
        keys: &[Member<'_>],
        size: Option<(f64, f64)>,
        own: &mut Boxes,
    ) -> Result<(), ConvertError> {
        let file = self.file;
        let wrong = |reason: String| file.wrong(annotation, reason);
        let Some(category) = find(keys, "category_id") else {
            return Err(wrong("the annotation lacks 'category_id'".to_owned()));
        };
        let place = category.get().parse().ok().and_then(|id: i64| self.categories.place_of.get(&id));
        let Some(place) = place else {
            let reason =
                format!("the annotation refers to the category {}, which is not in 'categories'", category.get());
            return Err(wrong(reason));
        };
        let sides = find(keys, "bbox").and_then(|bbox| serde_json::from_str::<[f64; 4]>(bbox.get()).ok());
        let Some([left, top, width, height]) = sides else {
            return Err(wrong("expected a list of four numbers in 'bbox' of the annotation".to_owned()));
        };
        let known =
            ["id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints", "num_keypoints"];
        let others = keys.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        self.seen.left_out.extend(others.map(|(key, _)| key.clone()));
        let (right, bottom) = (left + width, top + height);
        let rings = find(keys, "segmentation").map_or_else(|| Ok(Rings::default()), |value| Rings::of(value, size));
        let rings = rings.map_err(wrong)?;
        let points = self.skeletons.points(find(keys, coco_keypoints::KEYPOINTS), category).map_err(wrong)?;
        if !self.seen.keeps([left, top, right, bottom], size) {
            return Ok(());
        }
        own.outlines.add(own.boxes.len(), &rings.rings).map_err(wrong)?;
        self.has_polygons |= !rings.rings.is_empty();
        self.n_empty += rings.n_empty;
        self.has_keypoints |= !points.is_empty();
        own.keypoints.push(points);
        own.boxes.push(format!("[{left},{top},{right},{bottom}]"));
        own.labels.push(place.to_string());
        let area = match find(keys, "area").map(RawValue::get) {
            Some(area) if area != "null" && !area.parse::<f32>().is_ok_and(f32::is_finite) => {
                return Err(wrong(format!("expected a number in 'area', found {area}")));
            }
            area => area.filter(|area| *area != "null"),
        };
        own.areas.extend(area.map(str::to_owned));
        let crowd = match find(keys, "iscrowd").map(RawValue::get) {
            Some("0" | "false") => Some("false"),
            Some("1" | "true") => Some("true"),
            None | Some("null") => None,
            Some(other) => return Err(wrong(format!("expected 0 or 1 in 'iscrowd', found {other}"))),
        };
        own.crowds.extend(crowd.map(str::to_owned));
        Ok(())
    }

    /// The rows of the images, with their boxes.
    fn into_rows(mut self, images: &[&RawValue], mut of_image: HashMap<&str, Boxes>) -> Result<JsonRows, ConvertError> {
        let has = |list: fn(&Boxes) -> &Vec<String>| of_image.values().all(|own| list(own).len() == own.boxes.len());
        let (has_areas, has_crowds) = (has(|own| &own.areas), has(|own| &own.crowds));
        let some = |list: fn(&Boxes) -> &Vec<String>| of_image.values().any(|own| !list(own).is_empty());
        let partial =
            [("area", some(|own| &own.areas) && !has_areas), ("iscrowd", some(|own| &own.crowds) && !has_crowds)];
        let partial = partial.into_iter().filter(|(_, is_partial)| *is_partial).map(|(name, _)| name.to_owned());
        self.seen.left_out.extend(partial);
        let mut rows = Vec::with_capacity(images.len());
        let mut without = 0;
        let n_points = self.skeletons.n();
        for image in images {
            let keys = self.file.members(image)?;
            let own = find(&keys, "id").and_then(|id| of_image.remove(id.get())).unwrap_or_default();
            without += u64::from(own.boxes.is_empty());
            let keypoints = || own.keypoints.iter().map(|points| coco_keypoints::json(points, n_points)).collect();
            let keypoints: Vec<String> = if self.has_keypoints { keypoints() } else { Vec::new() };
            let lists = [
                (KEYPOINTS, &keypoints, self.has_keypoints),
                (CROWD, &own.crowds, has_crowds),
                (AREA, &own.areas, has_areas),
                (BOX_LABELS, &own.labels, true),
                (BOXES, &own.boxes, true),
            ];
            let mut row = image.get().to_owned();
            if self.has_polygons {
                row = with_json_member(POLYGONS, &own.outlines.json(), &row);
            }
            for (name, list, _) in lists.into_iter().filter(|(_, _, is_there)| *is_there) {
                row = with_json_member(name, &format!("[{}]", list.join(",")), &row);
            }
            rows.push((self.file.line(image), row));
        }
        check_images(self.file, of_image.keys())?;
        let mut about = "their classes are the file's categories, in the order of their ids".to_owned();
        if let Some(note) = self.skeletons.note().filter(|_| self.has_keypoints) {
            about = format!("{about}; {note}");
        }
        let remarks = vec![(self.n_empty, "polygon".to_owned(), "without an area, left out".to_owned())];
        let note = TableNote::Boxes {
            about,
            counts: [without, self.seen.empty, self.seen.outside],
            remarks: if self.n_empty > 0 { remarks } else { Vec::new() },
            left_out: self.seen.left_out.into_iter().collect(),
        };
        let mut boxes = BoxFields::new(self.categories.names);
        if self.has_keypoints {
            boxes = boxes.with_keypoints(to_u64(n_points), self.skeletons.keypoints());
        }
        if self.has_polygons {
            boxes = boxes.with_polygons();
        }
        Ok(JsonRows { rows, boxes: Some(boxes), warnings: vec![Warning::Table(note)], ..JsonRows::default() })
    }
}

fn find<'a>(keys: &[Member<'a>], wanted: &str) -> Option<&'a RawValue> {
    keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| *value)
}

/// Whether an annotation has a box.
pub(super) fn has_box(keys: &[Member<'_>]) -> bool {
    keys.iter().any(|key| key.0 == "bbox" && is_part(key))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::json_rows::json_rows;
    use super::*;

    fn read(annotations: &str) -> Result<JsonRows, ConvertError> {
        let text = r#"{"images": [{"id": 5, "file_name": "1.jpg", "width": 9, "height": 9}, {"id": 6, "file_name": "2.jpg"}],
            "categories": [{"id": 7, "name": "owl"}, {"id": 2, "name": "cat"}], "annotations": [ANNOTATIONS]}"#;
        json_rows(Path::new("x.json"), &text.replace("ANNOTATIONS", annotations))
    }

    fn note(counts: [u64; 3], left_out: Vec<String>) -> Warning {
        let about = "their classes are the file's categories, in the order of their ids".to_owned();
        Warning::Table(TableNote::Boxes { about, counts, remarks: Vec::new(), left_out })
    }

    #[test]
    fn boxes_of_an_image_are_a_list_of_corners_with_their_classes() {
        let read = read(
            r#"{"id": 1, "image_id": 5, "category_id": 7, "bbox": [1, 2, 3.5, 4], "area": 14, "iscrowd": 0},
               {"id": 2, "image_id": 5, "category_id": 2, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 1, "score": 3}"#,
        )
        .unwrap();
        let rows: Vec<&str> = read.rows.iter().map(|(_, row)| row.as_str()).collect();
        let first = r#"{"boxes": [[1,2,4.5,6],[0,0,1,1]],"box_labels": [1,0],"box_area": [14,1],"box_crowd": [false,true],"id": 5"#;
        assert!(rows[0].starts_with(first), "{}", rows[0]);
        assert!(rows[1].starts_with(r#"{"boxes": [],"box_labels": [],"#), "{}", rows[1]);
        assert_eq!(read.boxes.unwrap().classes, ["cat", "owl"]);
        let left_out = vec!["score".to_owned()];
        assert_eq!(read.warnings, [note([1, 0, 0], left_out)]);
    }

    #[test]
    fn boxes_without_area_are_left_out_and_boxes_beyond_the_image_are_told() {
        let read = read(
            r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 0, 4]}, {"image_id": 5, "category_id": 7, "bbox": [5, 5, 9, 1]},
               {"image_id": 6, "category_id": 7, "bbox": [5, 5, 9, 1]}"#,
        )
        .unwrap();
        assert_eq!(read.warnings, [note([0, 1, 1], Vec::new())]);
        assert!(read.rows[0].1.starts_with(r#"{"boxes": [[5,5,14,6]],"box_labels": [1],"id""#), "{}", read.rows[0].1);
    }

    #[test]
    fn boxes_in_parts_of_the_image_are_refused() {
        let part = r#"{"image_id": 5, "category_id": 7, "bbox": [0.1, 0.2, 0.5, 0.4]}"#;
        let error = read(part).map(|read| read.rows).unwrap_err().to_string();
        assert!(error.contains("all boxes have numbers from 0 to 1, but boxes of COCO are in pixels"), "{error}");
        let pixels = r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 3, 4]}"#;
        assert_eq!(read(&format!("{part},{pixels}")).unwrap().rows.len(), 2);
    }

    #[test]
    fn a_split_without_objects_has_the_fields_of_boxes() {
        let read = read("").unwrap();
        assert_eq!(read.boxes.unwrap().classes, ["cat", "owl"]);
        assert!(read.rows[0].1.starts_with(r#"{"boxes": [],"box_labels": [],"#), "{}", read.rows[0].1);
    }

    #[test]
    fn values_that_some_boxes_lack_are_left_out_with_a_warning() {
        let read = read(
            r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0},
               {"image_id": 6, "category_id": 7, "bbox": [1, 2, 3, 4], "area": 12}"#,
        )
        .unwrap();
        assert_eq!(read.warnings, [note([0; 3], vec!["iscrowd".to_owned()])]);
        assert!(read.rows[0].1.starts_with(r#"{"boxes": [[1,2,4,6]],"box_labels": [1],"box_area": [12],"id""#));
    }

    #[test]
    fn annotations_of_other_images_and_categories_are_refused() {
        for (annotation, words) in [
            (r#"{"image_id": 9, "category_id": 7, "bbox": [1, 2, 3, 4]}"#, "refers to the image 9"),
            (r#"{"image_id": 5, "category_id": 1, "bbox": [1, 2, 3, 4]}"#, "the category 1, which is not"),
            (r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 3]}"#, "expected a list of four numbers in 'bbox'"),
            (r#"{"image_id": 5, "bbox": [1, 2, 3, 4]}"#, "lacks 'category_id'"),
            (r#"{"category_id": 7, "bbox": [1, 2, 3, 4]}"#, "lacks 'image_id'"),
            (
                r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 3, 4], "iscrowd": 2}"#,
                "expected 0 or 1 in 'iscrowd', found 2",
            ),
            (r#"{"image_id": 5, "category_id": 7, "bbox": [1, 2, 3, 4], "area": "x"}"#, "expected a number in 'area'"),
        ] {
            let error = read(annotation).map(|read| read.rows).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
