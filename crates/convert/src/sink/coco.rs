//! COCO: a folder with `images/` and `annotations.json`, which has the boxes of the images.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::PathBuf;

use packds_format::Field;
use packds_pixels::fill_rings;
use packds_system::to_usize;
use serde_json::{Map, Value, json};

use super::boxes::{Boxes, Object};
use super::image_files::ImageFiles;
use super::rows::{self, Rows};
use super::{AsItIs, Batch, ExportedField, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;
use crate::source::{COCO_FILE, Ring, area};

const WHAT: &str = "COCO";
const IMAGES: &str = "images";
/// What an outline that cannot be written is called.
const POLYGONS: &str = "polygons";
/// Maximum number of pixels of an image with an outline with holes, which is drawn.
const MAX_MASK_PIXELS: u64 = 1 << 28;
/// The annotations, until they follow the list of images.
const PART_FILE: &str = "annotations.part";
/// The member, and the field, of the id of an image.
const ID: &str = "id";

pub(crate) struct CocoSink {
    folder: PathBuf,
    images: List,
    annotations: List,
    files: ImageFiles,
    rows: Rows,
    boxes: Boxes,
    ids: Ids,
    metadata: String,
}

/// Why COCO cannot store a field. `None` if it can.
pub(crate) fn left_out(field: &Field, form: &Form) -> Option<String> {
    let left_out = rows::left_out(field, form, WHAT, &["file_name", "width", "height"]);
    let is_id = is_id(field, form) || field.name != ID;
    left_out.or_else(|| (!is_id).then(|| format!("field `{ID}`, because {WHAT} has whole numbers or text as ids")))
}

/// Whether the field has the ids of the images.
fn is_id(field: &Field, form: &Form) -> bool {
    let is_value = match form {
        Form::Array(array) => array.shape.is_empty() && !array.dtype.is_float(),
        form => *form == Form::Text,
    };
    field.name == ID && is_value
}

/// The lines of a JSON list.
struct List {
    path: PathBuf,
    file: BufWriter<File>,
    n: u64,
}

impl List {
    fn create(path: PathBuf, start: &str) -> Result<Self, ConvertError> {
        let file = File::create_new(&path).map(BufWriter::new);
        let mut list = Self { file: file.map_err(ConvertError::io(&path))?, path, n: 0 };
        list.text(start)?;
        Ok(list)
    }

    fn text(&mut self, text: &str) -> Result<(), ConvertError> {
        self.file.write_all(text.as_bytes()).map_err(ConvertError::io(&self.path))
    }

    fn push(&mut self, value: &Value) -> Result<(), ConvertError> {
        let comma = if self.n > 0 { "," } else { "" };
        self.n = self.n.saturating_add(1);
        self.text(&format!("{comma}\n{value}"))
    }

    fn flush(&mut self) -> Result<(), ConvertError> {
        self.file.flush().map_err(ConvertError::io(&self.path))
    }
}

/// The ids of the images: their own, if an earlier image does not have the same.
struct Ids {
    /// The index of the field with their own ids.
    own: Option<usize>,
    taken: HashSet<String>,
    /// The next number for an image without an id of its own.
    next: u64,
    n_changed: u64,
    first_changed: Option<(Value, Value)>,
}

impl Ids {
    fn of(fields: &[ExportedField]) -> Self {
        let own = fields.iter().position(|field| is_id(&field.field, &field.form));
        Self { own, taken: HashSet::new(), next: 1, n_changed: 0, first_changed: None }
    }

    /// The id of the next image, whose row may have an id.
    fn of_row(&mut self, row: &Map<String, Value>) -> Value {
        let own = row.get(ID).filter(|_| self.own.is_some());
        if let Some(own) = own.filter(|own| self.taken.insert(own.to_string())) {
            return own.clone();
        }
        while !self.taken.insert(self.next.to_string()) {
            self.next = self.next.saturating_add(1);
        }
        let id = Value::from(self.next);
        if let Some(own) = own {
            self.n_changed = self.n_changed.saturating_add(1);
            self.first_changed.get_or_insert_with(|| (own.clone(), id.clone()));
        }
        id
    }

    /// Describes the ids that have changed.
    fn note(self) -> Option<String> {
        let (own, id) = self.first_changed?;
        let n = self.n_changed;
        let ids = if n == 1 { "the id of one image".to_owned() } else { format!("the ids of {n} images") };
        Some(format!("{ids}, because earlier images have the same; the first, {own}, became {id}"))
    }
}

impl CocoSink {
    fn write_sample(&mut self, batch: &Batch, k: usize) -> Result<(), ConvertError> {
        let (width, height) = self.boxes.size(batch, k)?;
        let path = self.files.write(IMAGES, batch, k)?;
        let mut own = Map::new();
        self.rows.add(batch, k, &mut own);
        let id = self.ids.of_row(&own);
        let mut row = Map::new();
        row.insert(ID.to_owned(), id.clone());
        row.insert("file_name".to_owned(), path.into());
        row.insert("width".to_owned(), width.into());
        row.insert("height".to_owned(), height.into());
        row.extend(own.into_iter().filter(|(name, _)| name != ID));
        self.images.push(&Value::Object(row))?;
        for object in self.boxes.objects(batch, k)? {
            let number = self.annotations.n.saturating_add(1);
            let mut row = annotation(number, &id, &object);
            if let Some(rings) = &object.rings {
                let outline = segmentation(rings, (width, height));
                let outline = outline.map_err(|reason| batch.bad(k, POLYGONS, reason))?;
                row.insert("segmentation".to_owned(), outline);
            }
            self.annotations.push(&Value::Object(row))?;
        }
        Ok(())
    }
}

fn annotation(number: u64, image: &Value, object: &Object) -> Map<String, Value> {
    let [left, top, right, bottom] = object.sides;
    let (width, height) = (right - left, bottom - top);
    let area = object.area.unwrap_or(width * height);
    let [left, top, width, height, area] = [left, top, width, height, area].map(number_of);
    let mut row = Map::new();
    row.insert(ID.to_owned(), number.into());
    row.insert("image_id".to_owned(), image.clone());
    row.insert("category_id".to_owned(), category(object.class).into());
    row.insert("bbox".to_owned(), vec![left, top, width, height].into());
    row.insert("area".to_owned(), area);
    row.insert("iscrowd".to_owned(), u8::from(object.is_crowd).into());
    if let Some(points) = &object.points {
        let n = points.iter().filter(|[_, _, visibility]| *visibility > 0.0).count();
        let numbers: Vec<Value> = points.iter().flatten().copied().map(number_of).collect();
        row.insert("keypoints".to_owned(), numbers.into());
        row.insert("num_keypoints".to_owned(), n.into());
    }
    row
}

/// The outline of an object: polygons, or run lengths if it has holes, which polygons of COCO do not have, or no outline: COCO's
/// library cannot read an empty list.
fn segmentation(rings: &[Ring], (width, height): (u32, u32)) -> Result<Value, String> {
    if !rings.is_empty() && rings.iter().all(|ring| ring.len() > 2 && area(ring) > 0.0) {
        let polygon = |ring: &Ring| -> Value {
            let numbers: Vec<Value> = ring.iter().flatten().map(|place| number_of(shortest(*place))).collect();
            numbers.into()
        };
        return Ok(rings.iter().map(polygon).collect());
    }
    let n_pixels = u64::from(width) * u64::from(height);
    if n_pixels > MAX_MASK_PIXELS {
        return Err(format!(
            "expected an image of at most {MAX_MASK_PIXELS} pixels for an outline with holes, found {n_pixels}"
        ));
    }
    let mut mask = vec![0; to_usize(n_pixels)];
    fill_rings(rings.iter().map(Vec::as_slice), (width, height), &mut mask).map_err(|error| error.to_string())?;
    let (mut lengths, mut before) = (vec![0_u64], 0);
    let (wide, high) = (to_usize(u64::from(width)), to_usize(u64::from(height)));
    for pixel in (0..wide).flat_map(|x| (0..high).map(move |y| y * wide + x)).filter_map(|at| mask.get(at)) {
        if *pixel != before {
            lengths.push(0);
            before = *pixel;
        }
        lengths.last_mut().into_iter().for_each(|length| *length += 1);
    }
    Ok(json!({ "size": [height, width], "counts": lengths }))
}

/// The shortest decimal number that reads as this `f32`.
fn shortest(place: f32) -> f64 {
    place.to_string().parse().unwrap_or_else(|_| f64::from(place))
}

/// A number, without a fraction if it is whole.
fn number_of(value: f64) -> Value {
    value.to_string().parse::<i64>().map_or_else(|_| value.into(), Value::from)
}

/// Categories are numbered from 1, as in COCO. Some programs take 0 for the background.
fn category(class: usize) -> usize {
    class.saturating_add(1)
}

impl Sink for CocoSink {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let boxes = Boxes::of(start, WHAT)?;
        let files = ImageFiles::create(start, WHAT)?;
        let images = start.path.join(IMAGES);
        fs::create_dir(&images).map_err(ConvertError::io(&images))?;
        Ok(Self {
            folder: start.path.to_owned(),
            // Programs such as pycocotools expect `info`.
            images: List::create(start.path.join(COCO_FILE), "{\"info\": {},\n\"images\": [")?,
            annotations: List::create(start.path.join(PART_FILE), "")?,
            rows: Rows::of(start, |place| !boxes.has(place)),
            files,
            boxes,
            ids: Ids::of(&start.exported.fields),
            metadata: start.metadata.to_text(),
        })
    }

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, batch: Batch) -> Result<(), ConvertError> {
        (0..batch.n).try_for_each(|k| self.write_sample(&batch, k))
    }

    fn finish(mut self) -> Result<Vec<String>, ConvertError> {
        self.images.text("\n],\n\"annotations\": [")?;
        append(self.annotations, &mut self.images)?;
        self.images.text("\n],\n\"categories\": [")?;
        self.images.n = 0;
        for (class, name) in self.boxes.classes().into_iter().enumerate() {
            let mut row = Map::new();
            row.insert(ID.to_owned(), category(class).into());
            row.insert("name".to_owned(), name.into());
            if let Some(points) = self.boxes.keypoints() {
                // Points are counted from 1.
                let skeleton: Vec<[u32; 2]> =
                    points.skeleton.iter().map(|line| line.map(|point| point.saturating_add(1))).collect();
                row.insert("keypoints".to_owned(), points.names.clone().into());
                row.insert("skeleton".to_owned(), json!(skeleton));
            }
            self.images.push(&Value::Object(row))?;
        }
        self.images.text("\n]}\n")?;
        self.images.flush()?;
        let path = self.folder.join(METADATA_FILE);
        fs::write(&path, self.metadata).map_err(ConvertError::io(&path))?;
        let lost = self.boxes.note().into_iter().chain(self.ids.note());
        Ok(lost.chain(self.rows.notes(COCO_FILE)).chain(self.files.note()).collect())
    }
}

/// Appends the lines of a list to another, and removes its file.
fn append(mut from: List, to: &mut List) -> Result<(), ConvertError> {
    from.flush()?;
    let file = from.file.get_mut();
    let copied = file.rewind().and_then(|()| io::copy(file, &mut to.file)).and_then(|_| fs::remove_file(&from.path));
    copied.map_err(ConvertError::io(&from.path))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use packds_format::{DType, Pack, Role};

    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::test_pack::{assert_same_field, back, fields, pack_of, pack_with_boxes, to};

    fn options() -> ExportOptions {
        ExportOptions { to: Some(DataFormat::Coco), ..ExportOptions::default() }
    }

    /// Exports to a folder. Returns the annotations and what was lost.
    fn exported(pack: &Pack<Vec<u8>>, folder: &Path) -> (Value, String) {
        let report = to(pack, &folder.join("out"), &options()).unwrap();
        let text = fs::read(folder.join("out").join(COCO_FILE)).unwrap();
        (serde_json::from_slice(&text).unwrap(), report.lost.join("\n"))
    }

    #[test]
    fn boxes_classes_and_other_fields_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let pack = pack_with_boxes(&[], true);
        let (annotations, lost) = exported(&pack, folder.path());
        assert_eq!(
            annotations["images"][2],
            json!({ "id": 3, "file_name": "images/im.2.png", "width": 6, "height": 4,
            "caption": "caption\u{e9} \"2\"\n", "label": "sea lion" })
        );
        assert_eq!(
            annotations["annotations"][1],
            json!({ "id": 2, "image_id": 3, "category_id": 3,
            "bbox": [0.5, 0.1, 4, 2.1], "area": 8.25, "iscrowd": 1 })
        );
        assert_eq!(annotations["categories"][3], json!({ "id": 4, "name": "none" }));
        assert!(lost.contains("the paths of 5 samples"), "{lost}");
        let mut names =
            fs::read_dir(folder.path().join("out")).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
        names.sort();
        assert_eq!(names, [COCO_FILE, IMAGES, METADATA_FILE]);
        let again = back(&folder.path().join("out").join(COCO_FILE), None);
        for name in ["caption", "label", "boxes", "box_labels", "box_area", "box_crowd"] {
            assert_same_field(&pack, &again, name);
        }
        let names = |pack: &Pack<Vec<u8>>, field: &str| {
            pack.classes().unwrap().into_iter().find(|classes| classes.field == field).unwrap().names
        };
        assert_eq!(names(&again, "box_labels"), names(&pack, "box_labels"));
    }

    #[test]
    fn images_keep_their_ids_unless_earlier_ones_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let ids = [7, 7, 1, 2, 7];
        let (annotations, lost) = exported(&pack_with_boxes(&ids, true), folder.path());
        let images = annotations["images"].as_array().unwrap();
        assert_eq!(images.iter().map(|image| image["id"].as_i64().unwrap()).collect::<Vec<_>>(), [7, 1, 2, 3, 4]);
        assert!(
            lost.contains("the ids of 4 images, because earlier images have the same; the first, 7, became 1"),
            "{lost}"
        );
        assert_eq!(annotations["annotations"][0]["image_id"], 1);
    }

    #[test]
    fn classes_without_names_are_named_by_id() {
        let folder = tempfile::tempdir().unwrap();
        let (annotations, lost) = exported(&pack_with_boxes(&[], false), folder.path());
        let names: Vec<&Value> = annotations["categories"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["0", "1", "2"]);
        assert!(lost.contains("each is named by its id"), "{lost}");
    }

    #[test]
    fn outlines_and_keypoints_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.png", &packds_pixels::encode_png(6, 5, 3, &[7; 90]).unwrap());
        // A mask with a hole, a polygon, and two pixels that touch at a corner.
        let holed = json!({ "size": [5, 6], "counts": [0, 15, 1, 1, 1, 12] });
        let polygon = json!([[1, 1, 4.1, 1, 4, 4.5]]);
        let pixels = json!([[0, 0, 1, 0, 1, 1, 0, 1], [1, 1, 2, 1, 2, 2, 1, 2]]);
        let annotation = |number: u8, segmentation: &Value| {
            json!({ "id": number, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 3, "iscrowd": 0,
                "segmentation": segmentation, "num_keypoints": 1, "keypoints": [1.5, 2, 2, 0, 0, 0] })
        };
        let annotations: Vec<Value> =
            (1..).zip([&holed, &polygon, &pixels]).map(|(number, outline)| annotation(number, outline)).collect();
        let category = json!({ "id": 1, "name": "cat", "keypoints": ["left_ear", "right_ear"], "skeleton": [[1, 2]] });
        let file = json!({ "images": [{ "id": 1, "file_name": "a.png", "width": 6, "height": 5 }],
            "categories": [category], "annotations": annotations });
        write("x.json", file.to_string().as_bytes());
        let pack = back(&folder.path().join("x.json"), None);
        let (again, lost) = exported(&pack, folder.path());
        assert_eq!(again["annotations"], file["annotations"]);
        assert_eq!(again["categories"], file["categories"]);
        assert!(!lost.contains("polygons") && !lost.contains("keypoints"), "{lost}");
        let read = back(&folder.path().join("out").join(COCO_FILE), None);
        for name in ["polygons", "keypoints"] {
            assert_same_field(&pack, &read, name);
        }
    }

    #[test]
    fn boxes_without_an_outline_get_an_empty_mask() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.png", &packds_pixels::encode_png(6, 5, 3, &[7; 90]).unwrap());
        let annotation = |number: u8, segmentation: Value| json!({ "id": number, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": segmentation });
        let annotations = [annotation(1, json!([[1, 1, 4, 1, 4, 4]])), annotation(2, json!([]))];
        let file = json!({ "images": [{ "id": 1, "file_name": "a.png", "width": 6, "height": 5 }],
            "categories": [{ "id": 1, "name": "cat" }], "annotations": annotations });
        write("x.json", file.to_string().as_bytes());
        let (again, _) = exported(&back(&folder.path().join("x.json"), None), folder.path());
        let found = &again["annotations"];
        assert_eq!(found[0]["segmentation"], json!([[1, 1, 4, 1, 4, 4]]));
        assert_eq!(found[1]["segmentation"], json!({ "size": [5, 6], "counts": [30] }));
    }

    #[test]
    fn packs_without_boxes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let said = to(&pack_of(3, fields()), &folder.path().join("out"), &options()).unwrap_err();
        assert_eq!(said.to_string(), "COCO stores boxes and their classes, but this pack has none");
        assert!(!folder.path().join("out").exists());
    }

    #[test]
    fn fields_that_rows_cannot_have_are_left_out() {
        let column = |name: &str, dtype| Field::column(name, dtype, &[]);
        let number = |dtype| Form::Array(crate::source::store::ArrayType { dtype, shape: Vec::new() });
        for (field, form, expected) in [
            (column("id", DType::I64), number(DType::I64), None),
            (column("id", DType::F32), number(DType::F32), Some("whole numbers or text as ids")),
            (column("width", DType::I64), number(DType::I64), Some("its own value with that name")),
            (column("score", DType::F32), number(DType::F32), None),
            (column("mask", DType::U8).with_role(Role::Mask), Form::File, Some("only numbers and text")),
        ] {
            let found = left_out(&field, &form);
            assert_eq!(found.is_some(), expected.is_some(), "{}", field.name);
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{}", field.name);
        }
    }
}
