//! Reads COCO files, which have separate lists of images, annotations and categories. The annotations are captions, the classes of
//! whole images, as in iNaturalist and iWildCam, or boxes (see `coco_boxes`).
//!
//! Files with outlines but no boxes are refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::value::RawValue;

use super::coco_boxes;
use super::detect::head_of;
use super::directory::Directory;
use super::json_rows::{File, JsonRows, Member, is_array, is_object, is_text, with_json_member, with_top_members};
use super::karpathy;
use super::paths::as_path;
use super::warning::Warning;
use crate::error::ConvertError;

pub(super) const IMAGES: &str = "images";
pub(super) const ANNOTATIONS: &str = "annotations";
pub(super) const CATEGORIES: &str = "categories";
/// The name that exports give to a COCO file.
pub(crate) const EXPORTED: &str = "annotations.json";
/// Names of the label field: for one category per image, and for several.
pub(super) const LABELS: [&str; 2] = ["label", "labels"];
/// The name of the column with the list of captions of each image.
pub(super) const CAPTIONS: &str = "captions";
/// Keys that occur in annotations of a part of an image.
const PARTS: [&str; 4] = ["bbox", "segmentation", "keypoints", "segments_info"];
/// Maximum number of JSON files in a folder to inspect. If there are more, none is inspected.
const MAX_FILES: usize = 8;

/// Whether these members of a JSON file are those of a COCO file.
pub(super) fn is_coco(file: &File<'_>, members: &[Member<'_>]) -> bool {
    let has = |wanted: &str| members.iter().any(|(name, list)| name == wanted && is_array(list));
    let has_images = members.iter().any(|(name, list)| name == IMAGES && file.is_array_of(list, is_object));
    has_images && [ANNOTATIONS, CATEGORIES, "licenses"].into_iter().any(has)
}

/// The COCO files with classes of whole images in a folder, and the files of captions and splits (Karpathy), sorted. Empty if the folder has more than [`MAX_FILES`] JSON files.
pub(super) fn files_in(root: &Path, top: &Directory) -> Vec<Vec<u8>> {
    let mut files: Vec<&[u8]> = top.names().filter(|name| name.ends_with(b".json")).collect();
    files.sort_unstable();
    if files.len() > MAX_FILES {
        return Vec::new();
    }
    files.into_iter().filter(|name| has_values(&root.join(as_path(name)))).map(<[u8]>::to_vec).collect()
}

/// Whether a JSON file is a COCO file whose first annotation is the class of an image, or has captions and splits. Reads the whole file only if it starts like one.
fn has_values(path: &Path) -> bool {
    let head = head_of(path).unwrap_or_default();
    let head = String::from_utf8_lossy(&head);
    let has = |key: &&str| head.contains(&format!("\"{key}\""));
    if !head.trim_start().starts_with('{') || ![IMAGES, ANNOTATIONS, CATEGORIES, "info", "licenses"].iter().any(has) {
        return false;
    }
    let found = with_top_members(path, |file, members| {
        if karpathy::images(file, members).is_some() {
            return Some(true);
        }
        let first = file.list(members, ANNOTATIONS).ok()?.first().copied()?;
        let keys = file.members(first).ok()?;
        Some(is_coco(file, members) && keys.iter().any(|(key, _)| key == "category_id") && !keys.iter().any(is_part))
    });
    found.flatten().unwrap_or(false)
}

/// Whether a member of an annotation describes a part of the image. False for null, and for an empty list or object.
pub(super) fn is_part((key, value): &Member<'_>) -> bool {
    PARTS.contains(&key.as_str()) && !matches!(value.get().trim(), "null" | "[]" | "{}")
}

fn has_categories<'a>(file: &File<'a>, members: &[Member<'a>]) -> Result<bool, ConvertError> {
    let is_there = members.iter().any(|(key, _)| key == CATEGORIES);
    Ok(is_there && !file.list(members, CATEGORIES)?.is_empty())
}

/// The rows of a COCO file: the members of each image, and the positions of its categories.
pub(super) fn rows<'a>(file: &File<'a>, members: &[Member<'a>]) -> Result<JsonRows, ConvertError> {
    let annotations = file.list(members, ANNOTATIONS)?;
    if let Some(first) = annotations.first()
        && file.members(first)?.iter().any(|(key, _)| key == "caption")
    {
        return captions(file, &file.list(members, IMAGES)?, &annotations);
    }
    // All splits have the same fields, even if no image of a split has an object.
    if annotations.is_empty() && members.iter().any(|(key, _)| key == ANNOTATIONS) && has_categories(file, members)? {
        return coco_boxes::rows(file, members);
    }
    for annotation in &annotations {
        if coco_boxes::has_box(&file.members(annotation)?) {
            return coco_boxes::rows(file, members);
        }
    }
    let mut left_out = BTreeSet::new();
    let categories = Categories::of(file, file.list(members, CATEGORIES)?, &mut left_out)?;
    let images = file.list(members, IMAGES)?;
    let mut of_image: HashMap<&str, Vec<i64>> = HashMap::new();
    for annotation in annotations {
        let keys = file.members(annotation)?;
        if keys.iter().any(is_part) {
            return Err(outlines(file));
        }
        let find = |wanted: &str| keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.get());
        let (Some(image), Some(category)) = (find("image_id"), find("category_id")) else {
            return Err(file.unread(annotation, "an annotation that lacks 'image_id' or 'category_id'"));
        };
        let place = category.parse().ok().and_then(|id: i64| categories.place_of.get(&id));
        let Some(place) = place else {
            return Err(file.wrong(
                annotation,
                format!("the annotation refers to the category {category}, which is not in 'categories'"),
            ));
        };
        left_out.extend(keys.iter().map(|(key, _)| key.clone()));
        let places = of_image.entry(image).or_default();
        if !places.contains(place) {
            places.push(*place);
        }
    }
    let has_lists = of_image.values().any(|places| places.len() > 1);
    let has_labels = !of_image.is_empty();
    let mut rows = Vec::with_capacity(images.len());
    for image in images {
        let keys = file.members(image)?;
        let id = keys.iter().find(|(key, _)| key == "id").map_or("", |(_, id)| id.get());
        let places = of_image.remove(id).unwrap_or_default();
        let row = image.get().to_owned();
        let row = match (has_labels, has_lists, places.as_slice()) {
            (false, ..) | (_, false, []) => row,
            (_, false, [place, ..]) => {
                let row =
                    categories.id_beside(*place).map_or(row.clone(), |id| with_json_member("category_id", &id, &row));
                with_json_member(LABELS[0], &place.to_string(), &row)
            }
            (_, true, places) => with_json_member(LABELS[1], &format!("{places:?}"), &row),
        };
        rows.push((file.line(image), row));
    }
    check_images(file, of_image.keys())?;
    let known = ["id", "image_id", "category_id", "name"];
    let left_out = left_out.into_iter().filter(|key| !known.contains(&key.as_str())).collect();
    let warnings = has_labels.then_some(Warning::CategoryLabels { left_out, has_lists }).into_iter().collect();
    let classes = if has_labels { categories.names } else { Vec::new() };
    Ok(JsonRows { rows, classes, warnings, ..JsonRows::default() })
}

/// The rows of a COCO file of captions: the members of each image, and its captions.
fn captions<'a>(
    file: &File<'a>,
    images: &[&'a RawValue],
    annotations: &[&'a RawValue],
) -> Result<JsonRows, ConvertError> {
    let mut of_image: HashMap<&str, Vec<&str>> = HashMap::new();
    for annotation in annotations {
        let keys = file.members(annotation)?;
        let find = |wanted: &str| keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| *value);
        match (find("image_id"), find("caption").filter(|caption| is_text(caption))) {
            (Some(image), Some(caption)) => of_image.entry(image.get()).or_default().push(caption.get()),
            _ => return Err(file.unread(annotation, "an annotation that lacks 'image_id' or the text 'caption'")),
        }
    }
    let mut rows = Vec::with_capacity(images.len());
    for image in images {
        let id = file.members(image)?.into_iter().find(|(key, _)| key == "id").map_or("", |(_, id)| id.get());
        let own = of_image.remove(id).unwrap_or_default();
        rows.push((file.line(image), with_json_member(CAPTIONS, &format!("[{}]", own.join(", ")), image.get())));
    }
    check_images(file, of_image.keys())?;
    Ok(JsonRows::from(rows))
}

/// Refuses annotations of images that are not in the list of images.
pub(super) fn check_images<'a>(file: &File<'_>, others: impl Iterator<Item = &'a &'a str>) -> Result<(), ConvertError> {
    let Some(image) = others.min() else { return Ok(()) };
    let reason = format!("an annotation refers to the image {image}, which is not in 'images'");
    Err(ConvertError::contradictory(file.path, "", reason, "correct the file"))
}

/// The categories in the order of their ids. Class ids are positions in this order.
pub(super) struct Categories {
    pub(super) place_of: BTreeMap<i64, i64>,
    pub(super) names: Vec<String>,
    /// The categories' own ids by class id. Empty if they equal the class ids.
    ids: Vec<i64>,
}

impl Categories {
    pub(super) fn of(
        file: &File<'_>,
        list: Vec<&RawValue>,
        left_out: &mut BTreeSet<String>,
    ) -> Result<Self, ConvertError> {
        let (mut names, mut lines): (BTreeMap<i64, String>, BTreeSet<String>) = Default::default();
        for category in list {
            let keys = file.members(category)?;
            let find = |wanted: &str| keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| *value);
            let id = find("id").and_then(|id| id.get().parse().ok());
            let name = find("name").filter(|name| is_text(name)).and_then(|name| serde_json::from_str(name.get()).ok());
            let (Some(id), Some(name)): (Option<i64>, Option<String>) = (id, name) else {
                return Err(file.unread(category, "a category that lacks a whole number 'id' or a 'name'"));
            };
            if !lines.insert(name.clone()) || names.insert(id, name.clone()).is_some() {
                return Err(file.wrong(
                    category,
                    format!("the category {id} ('{name}') has the id or the name of another category"),
                ));
            }
            left_out.extend(keys.iter().map(|(key, _)| key.clone()));
        }
        let place_of: BTreeMap<i64, i64> = names.keys().copied().zip(0..).collect();
        let differ = place_of.iter().any(|(id, place)| id != place);
        let ids = if differ { names.keys().copied().collect() } else { Vec::new() };
        Ok(Self { place_of, names: names.into_values().collect(), ids })
    }

    /// The category's own id, if the ids differ from the class ids.
    fn id_beside(&self, place: i64) -> Option<String> {
        self.ids.get(usize::try_from(place).ok()?).map(i64::to_string)
    }
}

fn outlines(file: &File<'_>) -> ConvertError {
    let reason = "this is a COCO file with outlines or points, but without boxes, which packds does not read";
    ConvertError::unsupported(file.path, "", reason, "to pack only the images, pass their folder as the source")
}

#[cfg(test)]
mod tests {
    use super::super::json_rows::json_rows;
    use super::*;

    const CATEGORIES: &str = r#"{"images": [{"id": "a", "file_name": "1.jpg"}, {"id": "b", "file_name": "2.jpg"}],
        "categories": [{"id": 7, "name": "owl", "supercategory": "bird"}, {"id": 2, "name": "cat"}],
        "annotations": [ANNOTATIONS]}"#;

    fn read(annotations: &str) -> Result<JsonRows, ConvertError> {
        json_rows(Path::new("x.json"), &CATEGORIES.replace("ANNOTATIONS", annotations))
    }

    #[test]
    fn classes_are_the_categories_in_the_order_of_their_ids() {
        let read =
            read(r#"{"image_id": "b", "category_id": 2}, {"image_id": "a", "category_id": 7, "count": 3}"#).unwrap();
        let rows: Vec<&str> = read.rows.iter().map(|(_, row)| row.as_str()).collect();
        assert_eq!(
            rows,
            [
                r#"{"label": 1,"category_id": 7,"id": "a", "file_name": "1.jpg"}"#,
                r#"{"label": 0,"category_id": 2,"id": "b", "file_name": "2.jpg"}"#
            ]
        );
        assert_eq!(read.classes, ["cat", "owl"]);
        let left_out = vec!["count".to_owned(), "supercategory".to_owned()];
        assert_eq!(read.warnings, [Warning::CategoryLabels { left_out, has_lists: false }]);
    }

    #[test]
    fn several_categories_of_an_image_are_lists() {
        let two = r#"{"image_id": "a", "category_id": 7}, {"image_id": "a", "category_id": 2}, {"image_id": "a", "category_id": 2}"#;
        let rows: Vec<String> = read(two).unwrap().rows.into_iter().map(|(_, row)| row).collect();
        let ends = rows.iter().map(|row| row.split("\"id\"").next().unwrap()).collect::<Vec<_>>();
        assert_eq!(ends, [r#"{"labels": [1, 0],"#, r#"{"labels": [],"#]);
    }

    #[test]
    fn a_file_without_annotations_has_images_without_boxes() {
        let none = read("").unwrap();
        let expected =
            r#"{"boxes": [],"box_labels": [],"box_area": [],"box_crowd": [],"id": "a", "file_name": "1.jpg"}"#;
        assert_eq!((none.rows[0].1.as_str(), none.classes.len()), (expected, 0));
    }

    #[test]
    fn captions_of_an_image_are_a_list() {
        let read =
            read(r#"{"image_id": "a", "caption": "an owl"}, {"image_id": "a", "caption": "a \"bird\""}"#).unwrap();
        let rows: Vec<&str> = read.rows.iter().map(|(_, row)| row.as_str()).collect();
        assert_eq!(
            rows,
            [
                r#"{"captions": ["an owl", "a \"bird\""],"id": "a", "file_name": "1.jpg"}"#,
                r#"{"captions": [],"id": "b", "file_name": "2.jpg"}"#
            ]
        );
        assert!(read.classes.is_empty());
    }

    #[test]
    fn annotations_that_are_no_classes_are_refused() {
        for (annotation, words) in [
            (r#"{"image_id": "a", "category_id": 7, "segmentation": [[1, 2, 3, 4]]}"#, "with outlines or points"),
            (r#"{"image_id": "a", "count": 2}"#, "found an annotation that lacks 'image_id' or 'category_id'"),
            (r#"{"image_id": "a", "caption": 2}"#, "found an annotation that lacks 'image_id' or the text 'caption'"),
            (r#"{"image_id": "c", "caption": "an owl"}"#, "refers to the image \"c\", which is not in 'images'"),
            (
                r#"{"image_id": "a", "category_id": 1}"#,
                "the annotation refers to the category 1, which is not in 'categories'",
            ),
            (r#"{"image_id": "c", "category_id": 7}"#, "refers to the image \"c\", which is not in 'images'"),
            (r#"{"image_id": "a", "category_id": 7, "category_id": 7}"#, "'category_id' appears twice"),
            (r#"{"image_id": {"a": [], "category_id": 7}"#, "expected"),
        ] {
            let error = read(annotation).map(|read| read.rows).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(read(r#"{"image_id": "a", "category_id": 7, "bbox": []}"#).is_ok());
        let twice = CATEGORIES.replace("ANNOTATIONS", "").replace("cat\"}", "owl\"}");
        let error = json_rows(Path::new("x.json"), &twice).map(|read| read.rows).unwrap_err().to_string();
        assert!(error.contains("the category 2 ('owl') has the id or the name of another category"), "{error}");
    }
}
