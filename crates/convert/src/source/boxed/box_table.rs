//! A table of Open Images: a row for each box, with the id of its image.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use csv::ReaderBuilder;
use packds_system::to_u64;

use super::collected::{BoxSet, Class, Marks, Remark};
use super::data_yaml::MAX_CLASSES;
use super::fractions::{is_fraction, size_of};
use super::parts::text_of;
use crate::error::ConvertError;
use crate::source::detect::head_of;
use crate::source::listing::Fault;
use crate::source::paths::lossy;
use crate::source::rows::{Cell, RowFile, RowForm, Rows};

/// The columns that every table has, and the one that marks a box around several objects.
const COLUMNS: [&str; 6] = ["ImageID", "LabelName", "XMin", "YMin", "XMax", "YMax"];
const GROUP: &str = "IsGroupOf";
/// The first line of a file of class names. Older files have none.
const NAMES: [&str; 2] = ["LabelName", "DisplayName"];
/// The beginnings of the ids of classes.
const ID_STARTS: [&str; 3] = ["/m/", "/g/", "/t/"];

const UNKNOWN_GROUP: Remark = ("box", "for which it is unknown whether it is around a group, taken as one object");
const WITHOUT_IMAGE: Remark = ("box", "of images that are not in the folder, left out");

/// What a CSV file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Boxes,
    Names,
}

impl Content {
    /// The content of a CSV file, judged by its first line.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let head = lossy(&head_of(path).ok()?);
        let line = head.trim_start_matches('\u{feff}').lines().next()?;
        let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        let starts = |cell: &str| ID_STARTS.iter().any(|start| cell.starts_with(start));
        match cells.as_slice() {
            cells if COLUMNS.iter().all(|column| cells.contains(column)) => Some(Self::Boxes),
            cells if *cells == NAMES => Some(Self::Names),
            [first, _] if starts(first) => Some(Self::Names),
            _ => None,
        }
    }
}

/// The classes by their ids. The names are unique.
#[derive(Debug, Default)]
pub(super) struct ClassNames {
    pub(super) names: Vec<String>,
    places: HashMap<String, usize>,
}

impl ClassNames {
    /// Reads a file of class names. A name that several classes have is followed by the id.
    pub(super) fn read(path: &Path) -> Result<Self, ConvertError> {
        let text = text_of(path)?.unwrap_or_default();
        let mut rows = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let (mut classes, mut seen) = (Self::default(), HashSet::new());
        for (number, row) in (0..).zip(rows.records()) {
            let wrong = |reason: String| {
                let hint = "write one line for each class: its id and its name";
                ConvertError::contradictory(path, &format!("row {}", number + 1), reason, hint)
            };
            let row = row.map_err(|error| wrong(format!("the file is not CSV: {error}")))?;
            let cells: Vec<&str> = row.iter().map(str::trim).collect();
            let [id, name] = cells.as_slice() else {
                return Err(wrong(format!("expected 2 fields, found {}", cells.len())));
            };
            if number == 0 && [*id, *name] == NAMES {
                continue;
            }
            if id.is_empty() || name.is_empty() {
                return Err(wrong("a field is empty".to_owned()));
            }
            let is_again = !seen.insert((*name).to_owned());
            let name = if is_again { format!("{name} ({id})") } else { (*name).to_owned() };
            if classes.places.insert((*id).to_owned(), classes.names.len()).is_some() {
                return Err(wrong(format!("the class '{id}' has two names")));
            }
            classes.names.push(name);
        }
        Ok(classes)
    }

    /// The ids themselves, sorted.
    fn of_ids(ids: BTreeSet<String>) -> Self {
        let places = ids.iter().cloned().zip(0..).collect();
        Self { names: ids.into_iter().collect(), places }
    }
}

/// A box: left, top, right and bottom as parts of the image.
#[derive(Debug)]
struct Row {
    corners: [f64; 4],
    /// The id of its class.
    class: Arc<str>,
    is_group: Option<bool>,
}

/// The boxes of an image, and the number of their file.
#[derive(Debug)]
struct Own {
    file: usize,
    rows: Vec<Row>,
}

/// The boxes of each image, from one or more files.
#[derive(Debug, Default)]
pub(super) struct BoxTable {
    of_image: HashMap<String, Own>,
    n_files: usize,
    /// Whether all tables mark groups.
    pub(super) has_groups: bool,
    /// Other columns.
    left_out: BTreeSet<String>,
    ids: HashMap<String, Arc<str>>,
}

impl BoxTable {
    pub(super) fn new() -> Self {
        Self { has_groups: true, ..Self::default() }
    }

    /// Adds the rows of a file. Each class must be one of `names`, if there are any.
    ///
    /// # Errors
    /// If an earlier file has boxes of the same image.
    pub(super) fn read(&mut self, path: &Path, folder: &Path, names: Option<&ClassNames>) -> Result<(), ConvertError> {
        let file = RowFile::new(path, folder)?;
        let mut rows = Rows::open(&file, RowForm::Csv)?;
        let place = |name: &str| rows.columns.iter().position(|column| column == name);
        let (Some(places), group) = (COLUMNS.map(place).into_iter().collect::<Option<Vec<usize>>>(), place(GROUP))
        else {
            return Err(rows.malformed(format!("expected the columns {}", COLUMNS.join(", "))));
        };
        let known = |name: &String| COLUMNS.contains(&name.as_str()) || name == GROUP;
        self.left_out.extend(rows.columns.iter().filter(|name| !known(name)).cloned());
        self.has_groups &= group.is_some();
        let mut images: HashMap<String, Own> = HashMap::new();
        while rows.advance()? {
            let text = |column: usize| match rows.cell(column) {
                Cell::Text(text) => text.trim(),
                _ => "",
            };
            let [image, class, sides @ ..] = places.as_slice() else { break };
            let (image, class) = (text(*image), text(*class));
            if image.is_empty() || class.is_empty() {
                return Err(rows.malformed("a row lacks its ImageID or LabelName".to_owned()));
            }
            if names.is_some_and(|names| !names.places.contains_key(class)) {
                return Err(rows.malformed(format!("the class '{class}' is not in the file of class names")));
            }
            let mut corners = [0.0; 4];
            for (corner, (column, name)) in corners.iter_mut().zip(sides.iter().zip(COLUMNS.iter().skip(2))) {
                let text = text(*column);
                let number = text.parse().ok().filter(|number| is_fraction(*number));
                *corner = number.ok_or_else(|| {
                    rows.malformed(format!("expected a number from 0 to 1 in '{name}', found '{text}'"))
                })?;
            }
            let is_group = match group.map(text) {
                None | Some("" | "-1") => None,
                Some("0") => Some(false),
                Some("1") => Some(true),
                Some(other) => return Err(rows.malformed(format!("expected 0, 1 or -1 in '{GROUP}', found '{other}'"))),
            };
            let class = match self.ids.get(class) {
                Some(known) => Arc::clone(known),
                None => Arc::clone(self.ids.entry(class.to_owned()).or_insert_with(|| class.into())),
            };
            if self.ids.len() > MAX_CLASSES {
                return Err(rows.malformed(format!("expected at most {MAX_CLASSES} classes, found more")));
            }
            let row = Row { corners, class, is_group };
            match images.get_mut(image) {
                Some(own) => own.rows.push(row),
                None => drop(images.insert(image.to_owned(), Own { file: self.n_files, rows: vec![row] })),
            }
        }
        if let Some(image) = images.keys().filter(|image| self.of_image.contains_key(*image)).min() {
            let reason = format!("another file has boxes of the image '{image}' too");
            return Err(ConvertError::contradictory(path, "", reason, "keep one file with the boxes of each split"));
        }
        self.of_image.extend(images);
        self.n_files += 1;
        Ok(())
    }

    /// The classes of the boxes in the table, for data sets without a file of class names.
    pub(super) fn classes(&self) -> ClassNames {
        ClassNames::of_ids(self.ids.keys().cloned().collect())
    }

    /// The boxes of the image with this id, in pixels. `None` if there are none.
    pub(super) fn set(&self, id: &str, image: &Path, classes: &ClassNames) -> Option<BoxSet> {
        let Own { rows, .. } = self.of_image.get(id)?;
        let mut set = BoxSet::default();
        let (width, height) = match size_of(image) {
            Ok(size) => size,
            Err(reason) => {
                set.fault = Some(Fault::from(reason));
                return Some(set);
            }
        };
        for row in rows {
            let [left, top, right, bottom] = row.corners;
            let corners = [left * width, top * height, right * width, bottom * height];
            let class = classes.places.get(&*row.class).and_then(|place| i64::try_from(*place).ok());
            let is_crowd = self.has_groups.then(|| row.is_group.unwrap_or(false));
            if self.has_groups && row.is_group.is_none() {
                set.remark(UNKNOWN_GROUP);
            }
            // Parts of a size always fit in f32.
            let marks = Marks { is_crowd, ..Marks::default() };
            let _ = set.add(corners, Some((width, height)), Class::Id(class.unwrap_or_default()), marks);
        }
        set.seen.left_out.extend(self.left_out.iter().cloned());
        Some(set)
    }

    /// The boxes of the file with this number whose images are not among these.
    pub(super) fn without_image(&self, file: usize, images: &HashSet<String>) -> (Remark, u64) {
        let others = self.of_image.iter().filter(|(image, own)| own.file == file && !images.contains(*image));
        (WITHOUT_IMAGE, others.map(|(_, own)| to_u64(own.rows.len())).sum())
    }
}
