//! YOLO: a text file for each image, with a line for each box. The numbers of a line are parts of the width and height of the image.

use std::path::Path;

use packds_format::Keypoints;

use super::collected::{AS_POLYGONS, BoxSet, Class, Classes, Marks, Outline, Remark};
use super::data_yaml::{self, DataYaml, KeypointShape, MAX_CLASSES};
use super::fractions::size_of;
use super::parts::{From, Part, Place, has_extension, text_of};
use super::yolo_line::Line;
use super::{Found, Reader, Top};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::candidate::is_image_name;
use crate::source::captions::is_box;
use crate::source::folder_note::FolderNote;
use crate::source::keypoints::of_point;
use crate::source::layout::{IMAGE_FOLDERS, YOLO_CLASSES, has_box_texts, inside, is_one_of};
use crate::source::listing::Fault;
use crate::source::paths::{joined, lossy, stem};
use crate::source::root::{parts, with_slashes};
use crate::source::there::text_file;

const EXTENSION: &str = "txt";
/// The names of the folders of images and of text files. The text files of other tools may be in folders with other names.
const IMAGES: &[u8] = b"images";
const LABELS: &[u8] = b"labels";
const LABEL_FOLDERS: [&str; 3] = ["labels", "annotations", "labeltxt"];
/// Maximum number of text files of a folder to inspect, to find out whether they have boxes.
const MAX_TEXTS: usize = 8;

/// Whether this file has the names of the classes.
pub(super) fn is_names_file(name: &[u8]) -> bool {
    name == YOLO_CLASSES.as_bytes()
}

/// Whether a file has the classes and splits of a data set.
pub(in crate::source) fn is_data_yaml(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    is_yaml(&name) && matches!(text_file(path), Ok(Some(text)) if data_yaml::is_data_yaml(&text))
}

fn is_yaml(name: &&[u8]) -> bool {
    has_extension(name, "yaml") || has_extension(name, "yml")
}

/// The data set in a folder with text files of boxes. `None` for other folders.
pub(super) fn find(top: &Top, _options: &ListOptions) -> Result<Option<Found>, ConvertError> {
    if let Some((name, data)) = yaml_in(top)? {
        return of_yaml(top, &name, data).map(Some);
    }
    let Some((parts, folders)) = parts_in(top)? else { return Ok(None) };
    let mut names = None;
    for folder in folders {
        let file = joined(&folder, YOLO_CLASSES.as_bytes());
        if names.is_none()
            && let Some(text) = text_file(&inside(&top.path, &file))?
        {
            let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|line| !line.is_empty());
            names = Some(Names { names: lines.map(str::to_owned).collect(), file: lossy(&file) });
        }
    }
    Ok(Some(Found { parts, reader: Box::new(Yolo { names, keypoints: None }), notes: Vec::new() }))
}

/// The parts, and the folders that may have the file of class names.
type Parts = (Vec<Part>, Vec<Vec<u8>>);

/// The parts of a folder without a file of splits.
fn parts_in(top: &Top) -> Result<Option<Parts>, ConvertError> {
    let mut names = vec![Vec::new()];
    if let Some((images, labels)) = folders_in(top)? {
        let inner = Top::at(&inside(&top.path, images))?;
        let place = Place::instead(images, labels);
        names.extend([labels.to_vec(), images.to_vec()]);
        let splits = if inner.directory.sample_names().next().is_some() { Vec::new() } else { inner.splits() };
        let part = |split: Option<String>| {
            let folder = split.as_ref().map_or_else(|| images.to_vec(), |split| joined(images, split.as_bytes()));
            Part { split, from: From::Folders(vec![folder]), place: place.clone() }
        };
        let parts = if splits.is_empty() {
            vec![part(None)]
        } else {
            splits.into_iter().map(|split| part(Some(split))).collect()
        };
        return Ok(Some((parts, names)));
    }
    let mut parts = Vec::new();
    for split in top.splits() {
        let inner = Top::at(&top.path.join(&split))?;
        let Some((images, labels)) = folders_in(&inner)? else { continue };
        names.push(joined(split.as_bytes(), labels));
        let folder = joined(split.as_bytes(), images);
        parts.push(Part {
            split: Some(split),
            from: From::Folders(vec![folder]),
            place: Place::instead(images, labels),
        });
    }
    if !parts.is_empty() {
        return Ok(Some((parts, names)));
    }
    let has_names = top.directory.names().any(is_names_file);
    let is_flat = has_names && has_boxes_beside(top)?;
    let part = Part { split: None, from: From::Flat(Vec::new()), place: Place::Beside };
    Ok(is_flat.then(|| (vec![part], names)))
}

/// The folders of images and of text files with boxes.
type Folders<'a> = (&'a [u8], &'a [u8]);

fn folders_in(top: &Top) -> Result<Option<Folders<'_>>, ConvertError> {
    let images = top.find(|name| is_one_of(name, &IMAGE_FOLDERS));
    let (Some(images), Some(labels)) = (images, top.find(|name| is_one_of(name, &LABEL_FOLDERS))) else {
        return Ok(None);
    };
    Ok(has_box_texts(&top.path, labels)?.then_some((images, labels)))
}

/// Whether the first text files with the names of images have only boxes.
fn has_boxes_beside(top: &Top) -> Result<bool, ConvertError> {
    let mut images: Vec<&[u8]> = top.directory.sample_names().map(stem).collect();
    images.sort_unstable();
    let is_of_image = |name: &&[u8]| has_extension(name, EXTENSION) && images.binary_search(&stem(name)).is_ok();
    let mut texts: Vec<&[u8]> = top.directory.names().filter(is_of_image).collect();
    texts.sort_unstable();
    for name in texts.iter().take(MAX_TEXTS) {
        if !text_file(&inside(&top.path, name))?.unwrap_or_default().lines().all(is_box) {
            return Ok(false);
        }
    }
    Ok(!texts.is_empty())
}

/// The file of splits and classes in a folder.
fn yaml_in(top: &Top) -> Result<Option<(String, DataYaml)>, ConvertError> {
    let mut files: Vec<String> = top.directory.names().filter(is_yaml).map(lossy).collect();
    files.sort_unstable();
    let mut found = Vec::new();
    for name in files {
        let path = top.path.join(&name);
        if let Some(text) = text_file(&path)?.filter(|text| data_yaml::is_data_yaml(text)) {
            found.push((name, text));
        }
    }
    // Other files may describe parts or other tasks.
    let usual = found.iter().position(|(name, _)| ["data.yaml", "data.yml"].contains(&name.as_str()));
    let (name, text) = match (found.as_slice(), usual) {
        ([], _) => return Ok(None),
        (_, Some(usual)) => found.swap_remove(usual),
        ([_], None) => found.swap_remove(0),
        ([(one, _), (other, _), ..], None) => {
            let reason = format!("'{one}' and '{other}' both describe a YOLO data set");
            let hint = "rename the one to read to data.yaml";
            return Err(ConvertError::contradictory(&top.path, "", reason, hint));
        }
    };
    let data = data_yaml::read(&top.path.join(&name), &text)?;
    Ok(Some((name, data)))
}

/// The data set that a file of splits and classes describes.
fn of_yaml(top: &Top, name: &str, data: DataYaml) -> Result<Found, ConvertError> {
    let path = top.path.join(name);
    let (mut parts, mut folders, mut notes) = (Vec::new(), Vec::<Vec<Vec<u8>>>::new(), Vec::new());
    for (split, line, entries) in data.splits {
        let mut leave_out = |reason: String| {
            notes.push(FolderNote::SplitLeftOut { split: split.clone(), file: name.to_owned(), reason });
        };
        let found = entries.iter().map(|entry| resolved(&top.path, data.path.as_deref(), entry).ok_or(entry));
        let mut found: Vec<Vec<u8>> = match found.collect() {
            Ok(found) => found,
            Err(entry) => {
                leave_out(format!("'{entry}' does not exist in the folder (line {line})"));
                continue;
            }
        };
        found.sort_unstable();
        found.dedup();
        if folders.contains(&found) {
            leave_out("it has the images of another split".to_owned());
            continue;
        }
        let from = from_of(&top.path, data.path.as_deref(), &found)?;
        parts.push(Part { split: Some(split), from, place: Place::instead(IMAGES, LABELS) });
        folders.push(found);
    }
    if parts.is_empty() {
        let reasons = notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let reason = if reasons.is_empty() { "it names no folder of images".to_owned() } else { reasons };
        let hint =
            "correct the folders after train, val and test, or put the file into the folder that they are relative to";
        return Err(ConvertError::contradictory(&path, "", reason, hint));
    }
    let names = data.names.filter(|_| !data.is_numbered).map(|names| Names { names, file: name.to_owned() });
    let reader = Box::new(Yolo { names, keypoints: data.keypoints });
    Ok(Found { parts, reader, notes })
}

/// The file or folder in `root` that an entry names. Its first parts may name folders of another machine, or the root itself.
fn resolved(root: &Path, base: Option<&str>, entry: &str) -> Option<Vec<u8>> {
    let names = |text: &str| parts(&with_slashes(text.into()));
    let own = names(entry)?;
    let below = base.and_then(names).map(|base| [base, own.clone()].concat());
    let shortest = own.len().min(2);
    let ends = (0..=own.len() - shortest).map(|start| own.get(start..).unwrap_or_default().to_vec());
    let found = below.into_iter().chain(ends).map(|names| names.join("/"));
    found.map(String::into_bytes).find(|path| inside(root, path).exists())
}

/// The images in folders, or in lists of images.
fn from_of(root: &Path, base: Option<&str>, found: &[Vec<u8>]) -> Result<From, ConvertError> {
    let (lists, folders): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = found.iter().partition(|path| inside(root, path).is_file());
    if lists.is_empty() {
        return Ok(From::Folders(folders.into_iter().cloned().collect()));
    }
    if let Some(folder) = folders.first() {
        let reason = format!("a split has both the list '{}' and the folder '{}'", lossy(lists[0]), lossy(folder));
        return Err(ConvertError::contradictory(root, "", reason, "use only lists, or only folders"));
    }
    let mut files = Vec::new();
    for list in lists {
        let path = inside(root, list);
        let text = text_of(&path)?.unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let image = resolved(root, base, line.trim()).filter(|image| is_image_name(image));
            let size =
                image.as_ref().and_then(|image| inside(root, image).metadata().ok()).filter(|found| found.is_file());
            let (Some(image), Some(size)) = (image, size) else {
                let reason = format!("expected the path of an image in the folder, found '{}'", line.trim());
                let hint = "correct the path, or remove the line";
                return Err(ConvertError::contradictory(&path, &format!("line {number}"), reason, hint));
            };
            files.push((image, size.len()));
        }
    }
    Ok(From::Files(files))
}

/// The class names, and the file that has them.
struct Names {
    names: Vec<String>,
    file: String,
}

/// Reads the text files.
struct Yolo {
    names: Option<Names>,
    keypoints: Option<KeypointShape>,
}

impl Reader for Yolo {
    fn read(&self, path: &Path, image: &Path) -> Result<Option<BoxSet>, ConvertError> {
        let Some(text) = text_of(path)? else { return Ok(None) };
        let mut set = BoxSet::default();
        let (mut size, mut is_probed) = (None, false);
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |reason: String| {
                let hint = "correct the line; 'class x y width height' has the number of the class, and the centre and size of the box as parts of the width and height of the image";
                ConvertError::contradictory(path, &format!("line {number}"), reason, hint)
            };
            let parsed = Line::parse(line.trim(), self.keypoints.as_ref()).map_err(wrong)?;
            self.check(parsed.class).map_err(wrong)?;
            if !is_probed {
                is_probed = true;
                match size_of(image) {
                    Ok(found) => size = Some(found),
                    Err(reason) => set.fault = Some(Fault::from(reason)),
                }
            }
            let Some(size) = size else { continue };
            add(&mut set, parsed, size).map_err(|reason| wrong(format!("{reason}: '{line}'")))?;
        }
        Ok(Some(set))
    }

    fn classes(&self) -> Classes {
        self.names.as_ref().map_or(Classes::Numbered, |names| Classes::Given(names.names.clone()))
    }

    fn about(&self) -> String {
        let names = match &self.names {
            Some(Names { file, .. }) => format!("their classes are the names in '{file}'"),
            None => format!("their classes are numbers, because there is no '{YOLO_CLASSES}' with names"),
        };
        format!("they were computed from parts of the width and height of each image (YOLO); {names}")
    }

    fn keypoints(&self) -> Option<Keypoints> {
        let KeypointShape { n, swaps, .. } = self.keypoints.as_ref()?;
        let names = (0..*n).map(|number| number.to_string()).collect();
        Some(Keypoints { names, swaps: swaps.clone()?, skeleton: Vec::new() })
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn n_others(&self) -> u64 {
        u64::from(self.names.as_ref().is_some_and(|names| names.file == YOLO_CLASSES))
    }
}

const OUTLINE: Remark = ("outline", AS_POLYGONS);

/// Adds what a line says to the boxes of an image of this size.
fn add(set: &mut BoxSet, line: Line, (width, height): (f64, f64)) -> Result<(), String> {
    let Line { class, corners: [left, top, right, bottom], outline, points } = line;
    let corners = [left * width, top * height, right * width, bottom * height];
    let points = points.into_iter().map(|[x, y, mark]| of_point([x * width, y * height, mark]));
    let mut own = Outline { points: points.collect::<Result<_, _>>()?, ..Outline::default() };
    if !outline.is_empty() {
        set.remark(OUTLINE);
        let points: Vec<[f64; 2]> = outline.into_iter().map(|[x, y]| [x * width, y * height]).collect();
        own.add_ring(&points, set);
    }
    let added = set.add_outlined(corners, Some((width, height)), (Class::Id(class), Marks::default()), Some(own));
    added.ok_or_else(|| "found a box that is too large".to_owned())
}

impl Yolo {
    fn check(&self, class: i64) -> Result<(), String> {
        let n = self.names.as_ref().map_or(MAX_CLASSES, |names| names.names.len());
        if usize::try_from(class).is_ok_and(|class| class < n) {
            return Ok(());
        }
        Err(match &self.names {
            Some(Names { file, .. }) => format!("the class {class} is not one of the {n} classes of '{file}' (from 0)"),
            None => format!("expected a class from 0 to {}, found {class}", MAX_CLASSES - 1),
        })
    }
}
