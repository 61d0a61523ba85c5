//! LabelMe: a JSON file next to each image, with shapes. Rectangles become boxes, and polygons the boxes around them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, from_str};

use super::collected::{BoxSet, Class, Classes, Marks, Remark};
use super::parts::{From, Part, Place, has_extension, text_of, without_image};
use super::{Found, Reader, Top};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::detect::head_of;
use crate::source::paths::{as_path, lossy, stem};

const EXTENSION: &str = "json";
/// Maximum number of files to inspect, to find out whether they have shapes.
const MAX_FILES: usize = 8;

/// The data set in a folder with JSON files of shapes. `None` for other folders.
pub(super) fn find(top: &Top, _options: &ListOptions) -> Result<Option<Found>, ConvertError> {
    let part = || Part { split: None, from: From::Flat(Vec::new()), place: Place::Beside };
    let mut parts: Vec<Part> = has_shapes(top)?.then(part).into_iter().collect();
    if parts.is_empty() {
        for split in top.splits() {
            if has_shapes(&Top::at(&top.path.join(&split))?)? {
                parts.push(part().of_split(&split));
            }
        }
    }
    Ok((!parts.is_empty()).then(|| Found { parts, reader: Box::new(Labelme), notes: Vec::new() }))
}

/// Whether one of the first JSON files with the name of an image has shapes.
///
/// # Errors
/// If it does, but another file with shapes has no image.
fn has_shapes(top: &Top) -> Result<bool, ConvertError> {
    let mut images: Vec<&[u8]> = top.directory.sample_names().map(stem).collect();
    images.sort_unstable();
    let mut files: Vec<&[u8]> = top.directory.names().filter(|name| has_extension(name, EXTENSION)).collect();
    files.sort_unstable();
    let (with, without): (Vec<&[u8]>, Vec<&[u8]>) =
        files.into_iter().partition(|name| images.binary_search(&stem(name)).is_ok());
    let is_one = |name: &[u8]| {
        let head = head_of(&top.path.join(as_path(name))).unwrap_or_default();
        let head = lossy(&head);
        let has = |key: &str| head.contains(&format!("\"{key}\""));
        // The image itself may come before the shapes.
        (has("shapes") && ["version", "flags", "imagePath"].into_iter().any(has))
            || (has("imageData") && has("version"))
    };
    if !with.into_iter().take(MAX_FILES).any(is_one) {
        return Ok(false);
    }
    match without.into_iter().find(|name| is_one(name)) {
        Some(name) => Err(without_image(&top.path.join(as_path(name)), b"")),
        None => Ok(true),
    }
}

/// A file of LabelMe. Other values are not read, such as the bytes of the image.
#[derive(Deserialize)]
struct Shapes {
    shapes: Vec<Shape>,
    #[serde(rename = "imagePath")]
    path: Option<String>,
    #[serde(rename = "imageWidth")]
    width: Option<f64>,
    #[serde(rename = "imageHeight")]
    height: Option<f64>,
}

#[derive(Deserialize)]
struct Shape {
    label: String,
    #[serde(default)]
    points: Vec<Vec<f64>>,
    shape_type: Option<String>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

const POLYGON: Remark = ("polygon", "replaced by the box around each");
const OTHER_SHAPE: Remark = ("shape", "of other kinds, left out");
const OTHER_IMAGE: Remark = ("file", "that names an image with another name, read for the image with its own name");

/// Reads the JSON files.
struct Labelme;

impl Reader for Labelme {
    fn read(&self, path: &Path, image: &Path) -> Result<Option<BoxSet>, ConvertError> {
        let Some(text) = text_of(path)? else { return Ok(None) };
        let wrong = |place: &str, reason: String| ConvertError::contradictory(path, place, reason, "correct the file");
        let Shapes { shapes, path: named, width, height } = from_str(&text).map_err(|error| {
            wrong(&format!("line {}", error.line()), format!("expected a file of LabelMe: {error}"))
        })?;
        let mut set = BoxSet::default();
        let own = image.file_name().unwrap_or_default().as_encoded_bytes();
        let is_other = |named: &String| named.rsplit(['/', '\\']).next().is_none_or(|name| name.as_bytes() != own);
        if named.as_ref().is_some_and(is_other) {
            set.remark(OTHER_IMAGE);
        }
        let size = width.zip(height).filter(|(width, height)| *width > 0.0 && *height > 0.0);
        for (number, shape) in shapes.into_iter().enumerate() {
            let Shape { label, points, shape_type, others } = shape;
            let wrong =
                |reason: &str| wrong(&format!("shape {number} (counted from 0)"), format!("{reason} in '{label}'"));
            match shape_type.as_deref() {
                Some("rectangle") if points.len() == 2 => {}
                Some("rectangle") => return Err(wrong("expected two points of a rectangle")),
                // Older versions write no type for polygons.
                Some("polygon") | None => set.remark(POLYGON),
                Some(_) => {
                    set.remark(OTHER_SHAPE);
                    continue;
                }
            }
            let points: Option<Vec<[f64; 2]>> =
                points.into_iter().map(|point| <[f64; 2]>::try_from(point).ok()).collect();
            let Some(points) = points.filter(|points| !points.is_empty()) else {
                return Err(wrong("expected points of two numbers"));
            };
            let side = |axis: usize, choose: fn(f64, f64) -> f64| {
                points.iter().map(|point| point[axis]).reduce(choose).unwrap_or_default()
            };
            let corners = [side(0, f64::min), side(1, f64::min), side(0, f64::max), side(1, f64::max)];
            let is_kept =
                |value: &Value| !matches!(value, Value::Null) && value.as_object().is_none_or(|map| !map.is_empty());
            let others = others.into_iter().filter(|(_, value)| is_kept(value) && value.as_str() != Some(""));
            set.seen.left_out.extend(others.map(|(key, _)| key));
            set.add(corners, size, Class::Name(label.clone().into()), Marks::default())
                .ok_or_else(|| wrong("found a point that is too far away"))?;
        }
        Ok(Some(set))
    }

    fn classes(&self) -> Classes {
        Classes::OfNames
    }

    fn about(&self) -> String {
        "they are the rectangles and the boxes around polygons of LabelMe; their classes are the labels in the files, sorted".to_owned()
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }
}
