//! Finds the rows of a JSON file in any of its common forms.
//!
//! `rows` reads the cells of each row. It also reads files with one object per line, because they may be large.

use std::cell::RefCell;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use packds_system::{open_regular, to_u64};
use serde_json::{Deserializer, Value, value::RawValue};

use super::box_fields::BoxFields;
use super::candidate::is_image_name;
use super::coco;
use super::karpathy;
use super::roles::IMAGE_PATH_NAMES;
use super::rows::{malformed, members};
use super::split::is_split_folder;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::error::ConvertError;

/// The two members of a file of class labels that FiftyOne writes.
const FIFTYONE: [&str; 2] = ["classes", "labels"];
/// Maximum number of characters of a value to show in a message.
const MAX_SHOWN: usize = 60;

/// A row as a JSON object, and the line where it starts.
pub(super) type JsonRow = (u64, String);

pub(super) type Member<'a> = (String, &'a RawValue);

/// The rows of a JSON text.
#[derive(Debug, Default)]
pub(super) struct JsonRows {
    pub(super) rows: Vec<JsonRow>,
    /// The class names of the labels, if the text has them in a separate list.
    pub(super) classes: Vec<String>,
    /// The columns of boxes, if there are any.
    pub(super) boxes: Option<BoxFields>,
    pub(super) warnings: Vec<Warning>,
}

impl From<Vec<JsonRow>> for JsonRows {
    fn from(rows: Vec<JsonRow>) -> Self {
        Self { rows, ..Self::default() }
    }
}

/// The rows of a JSON text.
pub(super) fn json_rows(path: &Path, text: &str) -> Result<JsonRows, ConvertError> {
    let text = text.trim_start_matches('\u{feff}');
    let wrong = |error: serde_json::Error| malformed(path, to_u64(error.line()), error.to_string());
    let values: Vec<&RawValue> =
        Deserializer::from_str(text).into_iter().collect::<serde_json::Result<_>>().map_err(wrong)?;
    let file = File::new(path, text);
    match values.as_slice() {
        [only] if is_array(only) => file.rows_of_array(only).map(JsonRows::from),
        [only] => file.rows_of_object(only),
        // An object on each line, as in JSON Lines.
        lines => lines.iter().map(|row| file.row(row)).collect::<Result<Vec<_>, _>>().map(JsonRows::from),
    }
}

/// Passes the members of the object in a JSON file to `take`. `None` if the file cannot be read as one object.
pub(super) fn with_top_members<T>(path: &Path, take: impl FnOnce(&File<'_>, &[Member<'_>]) -> T) -> Option<T> {
    let mut text = String::new();
    open_regular(path).ok()?.read_to_string(&mut text).ok()?;
    let file = File::new(path, text.trim_start_matches('\u{feff}'));
    let members = members(Deserializer::from_str(file.text), "a JSON object", "column").ok()?;
    Some(take(&file, &members))
}

/// A JSON text and the name of its file.
pub(super) struct File<'a> {
    pub(super) path: &'a Path,
    text: &'a str,
    /// The offsets of its line feeds.
    feeds: Vec<usize>,
    /// The ranges of the lists that were read.
    lists: RefCell<Vec<Range<usize>>>,
}

impl<'a> File<'a> {
    fn new(path: &'a Path, text: &'a str) -> Self {
        let feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Self { path, text, feeds, lists: RefCell::default() }
    }

    fn rows_of_array(&self, array: &RawValue) -> Result<Vec<JsonRow>, ConvertError> {
        self.items(array)?.into_iter().map(|row| self.row(row)).collect()
    }

    /// A row of an array: an object, a path, or a path with its label and other values.
    fn row(&self, row: &RawValue) -> Result<JsonRow, ConvertError> {
        let object = match row.get().as_bytes().first() {
            Some(b'"') => format!("{{\"path\": {}}}", row.get()),
            Some(b'[') => {
                let cells = self.items(row)?;
                if !cells.first().is_some_and(|path| is_text(path)) {
                    return Err(self.unread(row, "an array that does not begin with a path"));
                }
                let name = |idx: usize| match idx {
                    0 => "path".to_owned(),
                    1 => "label".to_owned(),
                    _ => format!("column_{}", idx + 1),
                };
                object_of(cells.iter().enumerate().map(|(idx, cell)| (name(idx), *cell)))
            }
            _ => row.get().to_owned(),
        };
        Ok((self.line(row), object))
    }

    fn rows_of_object(&self, object: &'a RawValue) -> Result<JsonRows, ConvertError> {
        let members = self.members(object)?;
        if coco::is_coco(self, &members) {
            coco::rows(self, &members)
        } else if let Some(images) = karpathy::images(self, &members) {
            karpathy::rows(self, images)
        } else if let Some(labels) = fiftyone_labels(&members) {
            self.rows_of_fiftyone(&members, labels)
        } else {
            self.rows_of_members(object, &members).map(JsonRows::from)
        }
    }

    /// The rows of `{"classes": ["cat", "dog"], "labels": {"1": 0, "2": 1}}`, as FiftyOne writes. The keys are the names of the images
    /// without extension. An image whose label is null is left out.
    fn rows_of_fiftyone(&self, members: &[Member<'a>], labels: &RawValue) -> Result<JsonRows, ConvertError> {
        let classes: Vec<String> = self
            .list(members, FIFTYONE[0])?
            .into_iter()
            .map(|name| serde_json::from_str(name.get()).map_err(|_| self.unread(name, "a class that is not a text")))
            .collect::<Result<_, _>>()?;
        let is_id = |label: &RawValue| label.get().parse().is_ok_and(|id: usize| id < classes.len());
        let (mut rows, mut nulls, mut first) = (Vec::new(), 0, String::new());
        for (name, label) in self.members(labels)? {
            if label.get() == "null" {
                if nulls == 0 {
                    first = name;
                }
                nulls += 1;
                continue;
            }
            let is_right = if classes.is_empty() { is_text(label) } else { is_id(label) };
            if !is_right {
                let n = classes.len();
                let expected = match n {
                    0 => "expected the name of a class".to_owned(),
                    _ => format!("expected the number of one of {n} classes, from 0 to {}", n - 1),
                };
                let found = label.get().chars().take(MAX_SHOWN).collect::<String>();
                return Err(self.wrong(label, format!("the label of '{name}': {expected}, found {found}")));
            }
            rows.push((self.line(label), labelled(&Value::from(name).to_string(), label.get())));
        }
        let null = (nulls > 0).then_some(Warning::Table(TableNote::NullLabels { count: nulls, first }));
        Ok(JsonRows { rows, classes, warnings: null.into_iter().collect(), ..JsonRows::default() })
    }

    fn rows_of_members(&self, object: &'a RawValue, members: &[Member<'a>]) -> Result<Vec<JsonRow>, ConvertError> {
        let all = |is: fn(&RawValue) -> bool| members.iter().all(|(_, value)| is(value));
        let has_columns = members.iter().any(|(name, value)| is_path_column(name) && self.is_column(value));
        let are_labels = |(_, value): &Member<'_>| !is_array(value) && !is_object(value);
        let mut lists = members.iter().filter(|(_, value)| self.is_array_of(value, is_object));
        match (lists.next(), lists.next()) {
            _ if has_columns => self.rows_of_columns(members),
            _ if members.iter().all(are_labels) => Ok(self.labelled(members)),
            _ if all(is_object) => self.rows_of_objects(members),
            _ if all(is_array) && members.iter().all(|(name, _)| is_image_name(name.as_bytes())) => {
                Ok(self.labelled(members))
            }
            _ if all(is_array) && members.iter().all(|(name, _)| is_split_folder(name.as_bytes())) => {
                self.rows_of_splits(members)
            }
            // `{"labels": [["1.jpg", 0], ["2.jpg", 1]]}`, as in the datasets of StyleGAN.
            _ if members.len() == 1 && members.iter().all(|(_, rows)| self.is_array_of(rows, is_array)) => {
                self.rows_of_array(members[0].1)
            }
            (None, None) if members.iter().all(|(_, value)| self.is_array_of(value, is_text)) => {
                self.rows_of_classes(members)
            }
            (Some((own, rows)), None) => match members.iter().find(|(name, value)| name != own && is_array(value)) {
                Some((name, value)) => Err(self.unread(value, &format!("a list '{name}' next to '{own}'"))),
                None => self.rows_of_array(rows),
            },
            _ => {
                let other = members.iter().find(|member| !are_labels(member));
                let (name, value) = other.map_or(("", object), |(name, value)| (name.as_str(), *value));
                let kind = if is_array(value) { "an array" } else { "an object" };
                Err(self.unread(value, &format!("'{name}' with {kind} in it")))
            }
        }
    }

    /// The rows of `{"1.jpg": "cat"}`.
    fn labelled(&self, members: &[Member<'_>]) -> Vec<JsonRow> {
        let row = |(name, label): &Member<'_>| {
            (self.line(label), labelled(&Value::from(name.as_str()).to_string(), label.get()))
        };
        members.iter().map(row).collect()
    }

    /// The rows of `{"1.jpg": {"label": "cat"}}`.
    fn rows_of_objects(&self, members: &[Member<'_>]) -> Result<Vec<JsonRow>, ConvertError> {
        let row = |(name, object): &Member<'_>| {
            let has_path = self.members(object)?.iter().any(|(name, _)| is_path_column(name));
            let row = if has_path { object.get().to_owned() } else { with_member("path", name, object.get()) };
            Ok((self.line(object), row))
        };
        members.iter().map(row).collect()
    }

    /// The rows of `{"train": [..], "val": [..]}`.
    fn rows_of_splits(&self, members: &[Member<'_>]) -> Result<Vec<JsonRow>, ConvertError> {
        let mut rows = Vec::new();
        for (split, array) in members {
            let own = self.rows_of_array(array)?.into_iter();
            rows.extend(own.map(|(line, row)| (line, with_member("split", split, &row))));
        }
        Ok(rows)
    }

    /// The rows of `{"cat": ["1.jpg", "2.jpg"]}`.
    fn rows_of_classes(&self, members: &[Member<'_>]) -> Result<Vec<JsonRow>, ConvertError> {
        let mut rows = Vec::new();
        for (class, paths) in members {
            let class = Value::from(class.as_str()).to_string();
            rows.extend(self.items(paths)?.iter().map(|path| (self.line(path), labelled(path.get(), &class))));
        }
        Ok(rows)
    }

    /// The rows of `{"path": [..], "label": [..]}`, or of the same with objects keyed by row number instead of arrays.
    fn rows_of_columns(&self, members: &[Member<'a>]) -> Result<Vec<JsonRow>, ConvertError> {
        let mut columns = Vec::with_capacity(members.len());
        for (name, column) in members {
            let cells = match column {
                array if is_array(array) => self.items(array)?,
                object if is_object(object) => self.members(object)?.into_iter().map(|(_, value)| value).collect(),
                _ => return Err(self.unread(column, &format!("'{name}', which is not a list"))),
            };
            columns.push((name, cells));
        }
        let n_rows = columns.first().map_or(0, |(_, cells)| cells.len());
        if let Some((name, cells)) = columns.iter().find(|(_, cells)| cells.len() != n_rows) {
            let (first, found) = (columns[0].0, cells.len());
            let reason = format!("expected {n_rows} values in '{name}', as in '{first}', found {found}");
            return Err(ConvertError::contradictory(self.path, "", reason, "give each image a value in each list"));
        }
        let row = |idx: usize| {
            let cells = columns.iter().map(|(name, cells)| ((*name).clone(), cells[idx]));
            (self.line(columns[0].1[idx]), object_of(cells))
        };
        Ok((0..n_rows).map(row).collect())
    }

    /// Whether a value is a list of paths, or an object of paths keyed by row number.
    fn is_column(&self, value: &'a RawValue) -> bool {
        let first = match value {
            array if is_array(array) => return self.is_array_of(array, is_text),
            object if is_object(object) => self.members(object),
            _ => return false,
        };
        first.is_ok_and(|members| members.first().is_some_and(|(_, value)| is_text(value)))
    }

    /// Whether a value is an array whose first item is of this kind.
    pub(super) fn is_array_of(&self, value: &RawValue, is: fn(&RawValue) -> bool) -> bool {
        is_array(value) && self.items(value).is_ok_and(|items| items.first().is_some_and(|first| is(first)))
    }

    /// The line on which a value starts, counted from 1.
    pub(super) fn line(&self, value: &RawValue) -> u64 {
        to_u64(self.feeds.partition_point(|feed| *feed < self.range(value).start)) + 1
    }

    /// The byte range of a value within the text.
    fn range(&self, value: &RawValue) -> Range<usize> {
        let start = value.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        start..start + value.get().len()
    }

    /// The index of a value in the innermost list that was read, or else its line.
    fn place(&self, value: &RawValue) -> String {
        let at = self.range(value).start;
        let lists = self.lists.borrow();
        let list = lists.iter().filter(|list| list.start < at && at < list.end).min_by_key(|list| list.len());
        let items: Option<Vec<&RawValue>> =
            list.and_then(|list| serde_json::from_str(self.text.get(list.clone())?).ok());
        match items.and_then(|items| items.iter().position(|item| self.range(item).contains(&at))) {
            Some(index) => entry(to_u64(index)),
            None => format!("line {}", self.line(value)),
        }
    }

    pub(super) fn unread(&self, value: &RawValue, found: &str) -> ConvertError {
        let reason = format!("this form of JSON is not supported: found {found}");
        let hint = r#"write one of [{"path": "1.jpg", "label": "cat"}], [["1.jpg", "cat"]], {"1.jpg": "cat"}, {"cat": ["1.jpg"]} and {"path": ["1.jpg"], "label": ["cat"]}"#;
        ConvertError::contradictory(self.path, &self.place(value), reason, hint)
    }

    /// The error about a value that contradicts others.
    pub(super) fn wrong(&self, value: &RawValue, reason: String) -> ConvertError {
        ConvertError::contradictory(self.path, &self.place(value), reason, "correct the file")
    }

    /// The items of the list with this name; none if there is no such list.
    pub(super) fn list(&self, members: &[Member<'a>], wanted: &str) -> Result<Vec<&'a RawValue>, ConvertError> {
        let list = members.iter().find(|(name, list)| name == wanted && is_array(list));
        list.map_or(Ok(Vec::new()), |(_, list)| self.items(list))
    }

    pub(super) fn items<'b>(&self, array: &'b RawValue) -> Result<Vec<&'b RawValue>, ConvertError> {
        self.lists.borrow_mut().push(self.range(array));
        serde_json::from_str(array.get()).map_err(|error| malformed(self.path, self.line(array), error.to_string()))
    }

    pub(super) fn members<'b>(&self, object: &'b RawValue) -> Result<Vec<Member<'b>>, ConvertError> {
        members(Deserializer::from_str(object.get()), "a JSON object", "column")
            .map_err(|error| malformed(self.path, self.line(object), error.to_string()))
    }
}

/// The labels of a file as FiftyOne writes it. `None` for other files.
fn fiftyone_labels<'a>(members: &[Member<'a>]) -> Option<&'a RawValue> {
    match members {
        [(classes, list), (labels, object)]
            if [classes, labels] == FIFTYONE && (is_array(list) || list.get() == "null") && is_object(object) =>
        {
            Some(object)
        }
        _ => None,
    }
}

/// The place of an entry of a list, for messages.
pub(super) fn entry(index: u64) -> String {
    format!("entry {index} (counted from 0)")
}

/// Whether this is a common name for a column of paths.
fn is_path_column(name: &str) -> bool {
    IMAGE_PATH_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

pub(super) fn is_array(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

pub(super) fn is_text(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// The JSON object of a row with this path and label, both given as JSON.
fn labelled(path: &str, label: &str) -> String {
    format!("{{\"path\": {path}, \"label\": {label}}}")
}

/// The object with one more member, whose value is a string.
fn with_member(name: &str, value: &str, object: &str) -> String {
    with_json_member(name, &Value::from(value).to_string(), object)
}

/// The object with one more member, whose value is JSON.
pub(super) fn with_json_member(name: &str, value: &str, object: &str) -> String {
    let rest = object.trim_start().strip_prefix('{').unwrap_or(object);
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"{name}\": {value}{comma}{rest}")
}

/// The JSON object with these members.
pub(super) fn object_of<'a>(members: impl Iterator<Item = (String, &'a RawValue)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}: {}", Value::from(name), value.get())).collect();
    format!("{{{}}}", members.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        json_rows(Path::new("x.json"), text).unwrap().rows.into_iter().map(|(_, row)| row).collect()
    }

    #[test]
    fn each_form_has_the_same_rows() {
        let expected = [r#"{"path": "1.jpg", "label": "cat"}"#, r#"{"path": "2.jpg", "label": "dog"}"#];
        for text in [
            r#"{"1.jpg": "cat", "2.jpg": "dog"}"#,
            r#"[["1.jpg", "cat"], ["2.jpg", "dog"]]"#,
            r#"{"cat": ["1.jpg"], "dog": ["2.jpg"]}"#,
            r#"{"path": ["1.jpg", "2.jpg"], "label": ["cat", "dog"]}"#,
            r#"{"path": {"0": "1.jpg", "1": "2.jpg"}, "label": {"0": "cat", "1": "dog"}}"#,
            r#"{"version": 1, "data": [{"path": "1.jpg", "label": "cat"}, {"path": "2.jpg", "label": "dog"}]}"#,
            "{\"path\": \"1.jpg\", \"label\": \"cat\"}\n{\"path\": \"2.jpg\", \"label\": \"dog\"}\n",
        ] {
            assert_eq!(rows(text), expected, "{text}");
        }
        assert_eq!(rows(r#"["1.jpg"]"#), [r#"{"path": "1.jpg"}"#]);
        assert_eq!(rows(r#"{"1.jpg": ["cat", "dog"]}"#), [r#"{"path": "1.jpg", "label": ["cat", "dog"]}"#]);
        assert_eq!(
            rows(r#"{"1.jpg": {"label": 1}, "2.jpg": {}}"#),
            [r#"{"path": "1.jpg","label": 1}"#, r#"{"path": "2.jpg"}"#]
        );
        let row = r#"{"split": "val","path": "1.jpg", "label": 0, "column_3": "cat"}"#;
        assert_eq!(rows(r#"{"val": [["1.jpg", 0, "cat"]]}"#), [row]);
    }

    #[test]
    fn other_forms_are_refused_with_those_that_are_read() {
        for (text, place, found) in [
            (r#"{"info": {"a": 1}, "x": [1]}"#, "line 1", "found 'info' with an object in it"),
            (
                r#"{"classes": ["cat"], "data": [{"path": "1.jpg", "label": 0}]}"#,
                "line 1",
                "found a list 'classes' next to 'data'",
            ),
            (
                r#"["2.jpg", [0, "1.jpg"]]"#,
                "entry 1 (counted from 0)",
                "found an array that does not begin with a path",
            ),
        ] {
            let error = json_rows(Path::new("x.json"), text).unwrap_err();
            assert_eq!(error.to_string(), format!("x.json: {place}: this form of JSON is not supported: {found}"));
            assert!(error.hint().unwrap().contains(r#"[["1.jpg", "cat"]]"#), "{error}");
        }
        let lengths = json_rows(Path::new("x.json"), r#"{"images": ["1.jpg", "2.jpg"], "labels": [0]}"#).unwrap_err();
        assert_eq!(lengths.to_string(), "x.json: expected 2 values in 'labels', as in 'images', found 1");
    }

    #[test]
    fn rows_have_the_line_where_they_start() {
        let lines = |text| {
            json_rows(Path::new("x.json"), text).unwrap().rows.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert_eq!(lines("[\n{\"path\": 1},\n\n{\"path\": 2}]"), [2, 4]);
        assert_eq!(lines("{\"1.jpg\": 0,\n\"2.jpg\": 1}"), [1, 2]);
    }
}
