//! LabelMe: a JSON file next to each image, with shapes. Rectangles become boxes, and polygons and circles the boxes around them, with
//! their outlines. Points are keypoints of the box in their group.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, from_str};

use super::around;
use super::collected::{AS_POLYGONS, BoxSet, Class, Classes, Marks, NamedPoint, Outline, Remark};
use super::parts::{From, Part, Place, has_extension, text_of, without_image};
use super::{Found, Reader, Top};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::detect::head_of;
use crate::source::keypoints::of_point;
use crate::source::paths::{as_path, lossy, stem};
use crate::source::rings::outer;

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
    group_id: Option<Value>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

impl Shape {
    /// Its points, which are pairs of numbers.
    fn pairs(&self) -> Option<Vec<[f64; 2]>> {
        let pairs: Option<Vec<[f64; 2]>> =
            self.points.iter().map(|point| <[f64; 2]>::try_from(point.as_slice()).ok()).collect();
        pairs.filter(|pairs| !pairs.is_empty())
    }

    fn group(&self) -> Option<&Value> {
        self.group_id.as_ref().filter(|group| !group.is_null())
    }

    fn is_point(&self) -> bool {
        self.shape_type.as_deref() == Some("point")
    }

    fn has_box(&self) -> bool {
        // Older versions write no type for polygons.
        matches!(self.shape_type.as_deref(), Some("rectangle" | "polygon" | "circle") | None)
    }
}

const POLYGON: Remark = ("polygon", AS_POLYGONS);
const CIRCLE: Remark = ("circle", "packed as a polygon, with the box around each");
const OTHER_SHAPE: Remark = ("shape", "of other kinds, left out");
const OTHER_POINT: Remark = ("point", "whose group is not that of one box, left out");
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
        let groups = Groups::of(&shapes);
        for (number, shape) in shapes.iter().enumerate() {
            let add = groups.add((number, shape), size, &mut set);
            add.map_err(|reason| {
                wrong(&format!("shape {number} (counted from 0)"), format!("{reason} in '{}'", shape.label))
            })?;
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

/// The shapes that have the same `group_id`.
struct Groups<'a> {
    of: HashMap<String, Group<'a>>,
}

#[derive(Default)]
struct Group<'a> {
    /// The number of its only box. `None` if there are several, or none.
    of_box: Option<usize>,
    n_boxes: usize,
    points: Vec<&'a Shape>,
}

impl<'a> Groups<'a> {
    fn of(shapes: &'a [Shape]) -> Self {
        let mut of: HashMap<String, Group<'a>> = HashMap::new();
        for (number, shape) in shapes.iter().enumerate() {
            let Some(id) = shape.group() else { continue };
            let group = of.entry(id.to_string()).or_default();
            if shape.has_box() {
                group.n_boxes += 1;
                group.of_box = Some(number).filter(|_| group.n_boxes == 1);
            }
            group.points.extend(Some(shape).filter(|shape| shape.is_point()));
        }
        Self { of }
    }

    fn group(&self, shape: &Shape) -> Option<&Group<'a>> {
        self.of.get(&shape.group()?.to_string())
    }

    /// Adds the box of a shape, with its outline and its points.
    fn add(&self, (number, shape): (usize, &Shape), size: Option<(f64, f64)>, set: &mut BoxSet) -> Result<(), String> {
        if shape.is_point() {
            if self.group(shape).is_none_or(|group| group.of_box.is_none()) {
                set.remark(OTHER_POINT);
            }
            return Ok(());
        }
        if !shape.has_box() {
            set.remark(OTHER_SHAPE);
            return Ok(());
        }
        let points = shape.pairs().ok_or("expected points of two numbers")?;
        let mut own = Outline::default();
        let corners = match (shape.shape_type.as_deref(), points.as_slice()) {
            (Some("rectangle"), [_, _]) => {
                let corners = around(&points);
                own.rings.extend(outer(&sides(corners)).ok());
                corners
            }
            (Some("circle"), [centre, edge]) => {
                set.remark(CIRCLE);
                let outline = circle(*centre, *edge);
                own.add_ring(&outline, set);
                around(&outline)
            }
            (Some(shape @ ("rectangle" | "circle")), _) => return Err(format!("expected two points of a {shape}")),
            _ => {
                set.remark(POLYGON);
                own.add_ring(&points, set);
                around(&points)
            }
        };
        own.named = self.points(number, shape)?;
        let group = shape.group().filter(|_| own.named.is_empty()).map(|_| "group_id".to_owned());
        let is_kept =
            |value: &Value| !matches!(value, Value::Null) && value.as_object().is_none_or(|map| !map.is_empty());
        let others = shape.others.iter().filter(|(_, value)| is_kept(value) && value.as_str() != Some(""));
        set.seen.left_out.extend(others.map(|(key, _)| key.clone()).chain(group));
        let class = Class::Name(shape.label.clone().into());
        let added = set.add_outlined(corners, size, (class, Marks::default()), Some(own));
        added.ok_or_else(|| "found a point that is too far away".to_owned())
    }

    /// The points of the group of the shape with this number, if it has the only box of the group.
    fn points(&self, number: usize, shape: &Shape) -> Result<Vec<NamedPoint>, String> {
        const VISIBLE: f64 = 2.0;
        let mut named: Vec<NamedPoint> = Vec::new();
        let mut labels = HashSet::new();
        let Some(group) = self.group(shape).filter(|group| group.of_box == Some(number)) else { return Ok(named) };
        for point in &group.points {
            let label = &point.label;
            let Some([[x, y]]) = point.pairs().and_then(|pairs| <[[f64; 2]; 1]>::try_from(pairs).ok()) else {
                return Err(format!("the point '{label}' of the group is not one pair of numbers"));
            };
            if !labels.insert(label) {
                return Err(format!("two points of the group have the label '{label}'"));
            }
            named.push((label.clone().into(), of_point([x, y, VISIBLE])?));
        }
        Ok(named)
    }
}

/// The points of a rectangle, clockwise from the top left.
fn sides([left, top, right, bottom]: [f64; 4]) -> Vec<[f64; 2]> {
    vec![[left, top], [right, top], [right, bottom], [left, bottom]]
}

/// The points of a circle around a centre, through another point.
fn circle([x, y]: [f64; 2], [edge_x, edge_y]: [f64; 2]) -> Vec<[f64; 2]> {
    const N: u32 = 64;
    let radius = (edge_x - x).hypot(edge_y - y);
    let point = |number: u32| {
        let angle = std::f64::consts::TAU * f64::from(number) / f64::from(N);
        [x + radius * angle.cos(), y + radius * angle.sin()]
    };
    (0..N).map(point).collect()
}
