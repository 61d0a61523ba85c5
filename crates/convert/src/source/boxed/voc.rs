//! Pascal VOC: an XML file for each image, in the folder `Annotations` or next to the image, as LabelImg writes it.

use std::path::Path;

use roxmltree::{Document, Node, ParsingOptions};

use super::collected::{BoxSet, Class, Classes, Marks};
use super::parts::{From, Part, Place, has_extension, text_of};
use super::{Found, Reader, Top};
use crate::error::ConvertError;
use crate::plan::MASK;
use crate::source::ListOptions;
use crate::source::candidate::SampleFiles;
use crate::source::detect::head_of;
use crate::source::layout::{IMAGE_FOLDERS, VOC_MASKS, has_images_below, inside, is_one_of};
use crate::source::paths::{as_path, joined, lossy, stem};

pub(super) const EXTENSION: &str = "xml";
const ANNOTATIONS: [&str; 1] = ["annotations"];

/// Maximum number of elements, attributes and texts of a file.
const MAX_NODES: u32 = 1 << 20;
/// Maximum number of files to inspect, to find out whether they have boxes.
const MAX_FILES: usize = 8;

/// Whether a folder with images and masks also has files of boxes.
pub(in crate::source) fn has_annotations(root: &Path) -> bool {
    Top::at(root).and_then(|top| folders_in(&top).map(|found| found.is_some())).unwrap_or(false)
}

/// The data set in a folder with XML files of boxes. `None` for other folders. The masks of Pascal VOC are read in place of the boxes
/// unless they are left out.
pub(super) fn find(top: &Top, options: &ListOptions) -> Result<Option<Found>, ConvertError> {
    let masks = top.find(|name| is_one_of(name, &VOC_MASKS));
    let has_masks = match masks {
        Some(masks) => has_images_below((&top.path, SampleFiles::Images), masks)?,
        None => false,
    };
    if has_masks && !options.is_left_out(MASK) {
        return Ok(None);
    }
    let mut parts = parts_in(top)?;
    if parts.is_empty() {
        for split in top.splits() {
            let inner = Top::at(&top.path.join(&split))?;
            let inner = parts_in(&inner)?.into_iter().filter(|part| part.split.is_none());
            parts.extend(inner.map(|part| part.of_split(&split)));
        }
    }
    let reader = Box::new(Voc { has_masks });
    Ok((!parts.is_empty()).then(|| Found { parts, reader, notes: Vec::new() }))
}

/// The parts of a folder: its splits, or all of it. Empty if it has no XML files of boxes.
fn parts_in(top: &Top) -> Result<Vec<Part>, ConvertError> {
    let Some((images, files, splits)) = folders_in(top)? else {
        let is_beside = top.directory.sample_names().next().is_some() && has_boxes(top);
        let part = Part { split: None, from: From::Flat(Vec::new()), place: Place::Beside };
        return Ok(is_beside.then_some(part).into_iter().collect());
    };
    let place = Place::instead(images, files);
    let part = |split: Option<String>| {
        let folder = split.as_ref().map_or_else(|| images.to_vec(), |split| joined(images, split.as_bytes()));
        Part { split, from: From::Folders(vec![folder]), place: place.clone() }
    };
    Ok(if splits.is_empty() { vec![part(None)] } else { splits.into_iter().map(|split| part(Some(split))).collect() })
}

/// The folders of images and of XML files, and the splits in both.
type Folders<'a> = (&'a [u8], &'a [u8], Vec<String>);

fn folders_in(top: &Top) -> Result<Option<Folders<'_>>, ConvertError> {
    let images = top.find(|name| is_one_of(name, &IMAGE_FOLDERS));
    let (Some(images), Some(files)) = (images, top.find(|name| is_one_of(name, &ANNOTATIONS))) else { return Ok(None) };
    let inner = Top::at(&inside(&top.path, files))?;
    if inner.directory.names().any(|name| has_extension(name, EXTENSION)) {
        return Ok(Some((images, files, Vec::new())));
    }
    let mut splits = inner.splits();
    splits.retain(|split| inside(&top.path, images).join(split).is_dir());
    for split in &splits {
        let folder = Top::at(&inner.path.join(split))?;
        if folder.directory.names().any(|name| has_extension(name, EXTENSION)) {
            return Ok(Some((images, files, splits)));
        }
    }
    Ok(None)
}

/// Whether one of the first XML files with the name of an image begins like one of Pascal VOC.
fn has_boxes(top: &Top) -> bool {
    let mut files: Vec<&[u8]> = top.directory.names().filter(|name| has_extension(name, EXTENSION)).collect();
    files.sort_unstable();
    files.into_iter().take(MAX_FILES).any(|name| {
        let has_image = top.directory.sample_names().any(|image| stem(image) == stem(name));
        let head = head_of(&top.path.join(as_path(name))).unwrap_or_default();
        has_image && lossy(&head).contains("<annotation")
    })
}

/// Reads the XML files.
struct Voc {
    has_masks: bool,
}

impl Reader for Voc {
    fn read(&self, path: &Path, _image: &Path) -> Result<Option<BoxSet>, ConvertError> {
        let Some(text) = text_of(path)? else { return Ok(None) };
        let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&text, options).map_err(|error| {
            let place = format!("line {}", error.pos().row);
            ConvertError::contradictory(path, &place, format!("the file is not valid XML: {error}"), "correct the file")
        })?;
        let file = File { path, document: &document };
        let root = document.root_element();
        if !root.has_tag_name("annotation") {
            return Err(file.wrong(root, format!("expected 'annotation', found '{}'", root.tag_name().name())));
        }
        let size = child(root, "size").and_then(|size| {
            let side = |name| child(size, name)?.text()?.trim().parse::<f64>().ok().filter(|side| *side > 0.0);
            side("width").zip(side("height"))
        });
        let mut set = BoxSet::default();
        for object in root.children().filter(|node| node.has_tag_name("object")) {
            file.add(object, size, &mut set)?;
        }
        Ok(Some(set))
    }

    fn classes(&self) -> Classes {
        Classes::OfNames
    }

    fn about(&self) -> String {
        "they are the numbers of the files (xmin, ymin, xmax, ymax), which Pascal VOC counts from 1; their classes are the names in the files, sorted"
            .to_owned()
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn in_place(&self) -> Option<&'static str> {
        self.has_masks.then_some(MASK)
    }
}

/// A parsed file.
struct File<'a> {
    path: &'a Path,
    document: &'a Document<'a>,
}

impl File<'_> {
    /// Adds the box of an object.
    fn add(&self, object: Node<'_, '_>, size: Option<(f64, f64)>, set: &mut BoxSet) -> Result<(), ConvertError> {
        let name = child(object, "name").and_then(|name| name.text()).map(str::trim).unwrap_or_default();
        if name.is_empty() {
            return Err(self.wrong(object, "an object has no 'name'".to_owned()));
        }
        let Some(sides) = child(object, "bndbox") else {
            return Err(self.wrong(object, format!("the object '{name}' has no 'bndbox'")));
        };
        let side = |wanted: &str| {
            let text = child(sides, wanted).and_then(|side| side.text()).map(str::trim).unwrap_or_default();
            text.parse::<f64>().ok().filter(|side| side.is_finite()).ok_or_else(|| {
                self.wrong(sides, format!("expected a number in '{wanted}' of the object '{name}', found '{text}'"))
            })
        };
        let corners = [side("xmin")?, side("ymin")?, side("xmax")?, side("ymax")?];
        let difficult = child(object, "difficult");
        let is_difficult = match difficult.and_then(|mark| mark.text()).map(str::trim) {
            None => None,
            Some("0" | "false" | "False") => Some(false),
            Some("1" | "true" | "True") => Some(true),
            Some(other) => {
                let place = difficult.unwrap_or(object);
                return Err(self.wrong(place, format!("expected 0 or 1 in 'difficult', found '{other}'")));
            }
        };
        let known = ["name", "bndbox", "difficult"];
        let others = object.children().filter(|node| node.is_element()).map(|node| node.tag_name().name());
        set.seen.left_out.extend(others.filter(|name| !known.contains(name)).map(str::to_owned));
        set.add(corners, size, Class::Name(name.into()), Marks { is_difficult, ..Marks::default() })
            .ok_or_else(|| self.wrong(sides, format!("the box of the object '{name}' is too large")))
    }

    /// The error about an element.
    fn wrong(&self, node: Node<'_, '_>, reason: String) -> ConvertError {
        let line = self.document.text_pos_at(node.range().start).row;
        ConvertError::contradictory(self.path, &format!("line {line}"), reason, "correct the file")
    }
}

/// The first child with this name.
fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|node| node.has_tag_name(name))
}
