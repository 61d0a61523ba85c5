//! Reads the file `data.yaml` of Ultralytics and Roboflow: the names of the classes, and the folders of the splits.
//!
//! Only the part of YAML that occurs in these files is read: scalars, lists, and a list or map of names. Other keys are skipped.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::ConvertError;
use crate::source::keypoints::MAX_POINTS;

/// The keys of splits.
const SPLITS: [&str; 3] = ["train", "val", "test"];
/// The keys of keypoints: how many, and which swap in a mirrored image.
const SHAPE: &str = "kpt_shape";
const SWAPS: &str = "flip_idx";

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DataYaml {
    /// The class names in the order of their ids. `None` if the file has no `names` and no `nc`.
    pub(super) names: Option<Vec<String>>,
    /// Whether the names are only numbers, because the file has no `names`.
    pub(super) is_numbered: bool,
    /// The folder that the others are relative to.
    pub(super) path: Option<String>,
    /// The folders or lists of each split, and the line of each split.
    pub(super) splits: Vec<(String, usize, Vec<String>)>,
    /// The keypoints of each box.
    pub(super) keypoints: Option<KeypointShape>,
}

/// The keypoints of each box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeypointShape {
    pub(super) n: usize,
    /// Whether each has a visibility besides x and y.
    pub(super) has_visibility: bool,
    /// The point that each point becomes in a mirrored image.
    pub(super) swaps: Option<Vec<u32>>,
}

/// A line without its comment.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

/// A value: one text, several, or several with keys.
enum Value {
    Nothing,
    One(String),
    Many(Vec<String>),
    Map(Vec<(String, String)>),
}

/// Whether the text has the keys of such a file.
pub(super) fn is_data_yaml(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    (has("names") || has("nc")) && SPLITS.iter().any(|split| has(split))
}

/// Reads the file at `path`.
///
/// # Errors
/// If the keys that matter have values in another form, or if `names` and `nc` differ.
pub(super) fn read(path: &Path, text: &str) -> Result<DataYaml, ConvertError> {
    let wrong = |line: usize, reason: String| {
        let hint = "write the values as in: names: [cat, dog]; train: images/train; val: images/val";
        ConvertError::contradictory(path, &format!("line {line}"), reason, hint)
    };
    let lines: Vec<Line<'_>> = (1..).zip(text.lines()).filter_map(|(number, line)| Line::of(number, line)).collect();
    let mut data = DataYaml::default();
    let (mut n_classes, mut seen): (Option<usize>, BTreeMap<String, usize>) = (None, BTreeMap::new());
    let mut swaps: Option<(usize, Vec<u32>)> = None;
    let mut rest = lines.as_slice();
    while let Some((first, after)) = rest.split_first() {
        // The lines of a value are indented, or are items of a list.
        let n =
            after.iter().take_while(|line| line.indent > 0 || line.text.starts_with("- ") || line.text == "-").count();
        let (block, others) = after.split_at(n);
        rest = others;
        let Some((key, value)) = split_key(first.text).filter(|_| first.indent == 0) else {
            return Err(wrong(first.number, format!("expected 'key: value', found '{}'", first.text)));
        };
        if let Some(other) = seen.insert(key.clone(), first.number) {
            return Err(wrong(first.number, format!("the key '{key}' is on line {other}, too")));
        }
        let is_needed = SPLITS.contains(&key.as_str()) || ["names", "nc", "path", SHAPE, SWAPS].contains(&key.as_str());
        if !is_needed {
            continue;
        }
        let value = value_of(value, block).map_err(|(line, reason)| wrong(line.unwrap_or(first.number), reason))?;
        let bad =
            |expected: &str| wrong(first.number, format!("expected {expected} in '{key}', found '{}'", first.text));
        match (key.as_str(), value) {
            ("names", value) => data.names = Some(names_of(value).map_err(|reason| wrong(first.number, reason))?),
            ("nc", Value::One(n)) => n_classes = Some(n.parse().map_err(|_| bad("the number of classes"))?),
            ("nc", _) => return Err(bad("the number of classes")),
            ("path", Value::One(folder)) => data.path = Some(folder),
            ("path", Value::Nothing) | (_, Value::Nothing) => {}
            ("path", _) => return Err(bad("a folder")),
            (SHAPE, Value::Many(shape)) => {
                let shape = KeypointShape::of(&shape).ok_or_else(|| bad("the number of keypoints, and 2 or 3"))?;
                data.keypoints = Some(shape);
            }
            (SHAPE, _) => return Err(bad("the number of keypoints, and 2 or 3")),
            (SWAPS, Value::Many(points)) => {
                let points = points.iter().map(|point| point.parse().ok()).collect::<Option<Vec<u32>>>();
                swaps = Some((first.number, points.ok_or_else(|| bad("a list of points"))?));
            }
            (SWAPS, _) => return Err(bad("a list of points")),
            (_, Value::One(folder)) => data.splits.push((key, first.number, vec![folder])),
            (_, Value::Many(folders)) => data.splits.push((key, first.number, folders)),
            (_, Value::Map(_)) => return Err(bad("a folder or a list of folders")),
        }
    }
    if let (Some(shape), Some((line, swaps))) = (&mut data.keypoints, swaps) {
        shape.set_swaps(swaps).map_err(|reason| wrong(line, reason))?;
    }
    let line = seen.get("nc").copied().unwrap_or(1);
    match (&data.names, n_classes) {
        (Some(names), Some(n)) if names.len() != n => {
            Err(wrong(line, format!("'nc' is {n}, but 'names' has {} names", names.len())))
        }
        (None, Some(n)) if n > MAX_CLASSES => {
            Err(wrong(line, format!("expected at most {MAX_CLASSES} classes, found {n}")))
        }
        (None, Some(n)) => {
            let names = Some((0..n).map(|id| id.to_string()).collect());
            Ok(DataYaml { names, is_numbered: true, ..data })
        }
        _ => Ok(data),
    }
}

impl KeypointShape {
    /// Reads the number of points, and the number of values of each.
    fn of(shape: &[String]) -> Option<Self> {
        let [n, sides] = shape else { return None };
        let n = n.parse().ok().filter(|n| (1..=MAX_POINTS).contains(n))?;
        let has_visibility = match sides.as_str() {
            "2" => false,
            "3" => true,
            _ => return None,
        };
        Some(Self { n, has_visibility, swaps: None })
    }

    fn set_swaps(&mut self, swaps: Vec<u32>) -> Result<(), String> {
        let n = self.n;
        if swaps.len() != n || !are_pairs(&swaps) {
            return Err(format!(
                "expected {n} numbers from 0 in '{SWAPS}' that come in pairs: if point 1 becomes 2 in a mirror image, 2 becomes 1"
            ));
        }
        self.swaps = Some(swaps);
        Ok(())
    }
}

/// Whether each point leads to one that leads back.
fn are_pairs(swaps: &[u32]) -> bool {
    let of = |point: u32| swaps.get(usize::try_from(point).ok()?).copied();
    (0..).zip(swaps).all(|(own, swap)| of(*swap) == Some(own))
}

/// Maximum number of classes without names.
pub(super) const MAX_CLASSES: usize = 1 << 16;

impl<'a> Line<'a> {
    /// A line that is not empty.
    fn of(number: usize, line: &'a str) -> Option<Self> {
        let text = without_comment(line).trim_end();
        let trimmed = text.trim_start_matches([' ', '\t']);
        let is_mark = text == "---" || text == "..." || text.starts_with('%');
        (!trimmed.is_empty() && !is_mark).then_some(Self { number, indent: text.len() - trimmed.len(), text: trimmed })
    }
}

/// Each character of a text outside quotes, with its position.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote: Option<(char, bool)> = None;
    let (mut last, mut is_closed) = (' ', false);
    text.char_indices().filter(move |(_, letter)| {
        let before = std::mem::replace(&mut last, *letter);
        // Two apostrophes inside apostrophes are one apostrophe.
        let continues = std::mem::take(&mut is_closed) && *letter == '\'' && before == '\'';
        match quote {
            Some((open, is_escaped)) => {
                let ends = *letter == open && !is_escaped;
                is_closed = ends;
                quote = (!ends).then_some((open, open == '"' && *letter == '\\' && !is_escaped));
                false
            }
            // An apostrophe inside a word is no quote.
            None if continues
                || (matches!(letter, '"' | '\'') && matches!(before, ' ' | '\t' | '[' | '{' | ',' | ':' | '-')) =>
            {
                quote = Some((*letter, false));
                false
            }
            None => true,
        }
    })
}

fn without_comment(line: &str) -> &str {
    let is_start = |at: usize| at == 0 || line.get(..at).is_some_and(|before| before.ends_with([' ', '\t']));
    let start = unquoted(line).find(|(at, letter)| *letter == '#' && is_start(*at));
    start.and_then(|(at, _)| line.get(..at)).unwrap_or(line)
}

/// The key and the value of `key: value`.
fn split_key(text: &str) -> Option<(String, &str)> {
    let is_end = |at: usize| text.get(at + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    let (at, _) = unquoted(text).find(|(at, letter)| *letter == ':' && is_end(*at))?;
    Some((scalar(text.get(..at)?.trim()).ok()?, text.get(at + 1..)?.trim()))
}

/// The line and the reason of an error. `None` for the line of the key.
type Wrong = (Option<usize>, String);

/// The value after a key, or in the lines below it.
fn value_of(value: &str, block: &[Line<'_>]) -> Result<Value, Wrong> {
    if value.starts_with(['[', '{']) {
        let mut text = value.to_owned();
        block.iter().for_each(|line| text = format!("{text} {}", line.text));
        return flow(&text).map_err(|reason| (None, reason));
    }
    let Some(first) = block.first() else {
        return Ok(if value.is_empty() {
            Value::Nothing
        } else {
            Value::One(scalar(value).map_err(|reason| (None, reason))?)
        });
    };
    if !value.is_empty() {
        return Err((Some(first.number), format!("expected a value on one line, found '{}'", first.text)));
    }
    let (mut items, mut members) = (Vec::new(), Vec::new());
    for line in block {
        let wrong = |reason: String| (Some(line.number), reason);
        if line.indent != first.indent {
            return Err(wrong(format!("expected the indentation of line {}, found '{}'", first.number, line.text)));
        }
        match (line.text.strip_prefix("- "), split_key(line.text)) {
            (Some(item), _) => items.push(scalar(item.trim()).map_err(wrong)?),
            (None, Some((key, value))) => members.push((key, scalar(value).map_err(wrong)?)),
            (None, None) => return Err(wrong(format!("expected '- value' or 'key: value', found '{}'", line.text))),
        }
    }
    match (items.is_empty(), members.is_empty()) {
        (false, true) => Ok(Value::Many(items)),
        (true, false) => Ok(Value::Map(members)),
        _ => Err((Some(first.number), "expected a list or a map, found both".to_owned())),
    }
}

/// A list such as `[cat, dog]`, or a map such as `{0: cat, 1: dog}`.
fn flow(text: &str) -> Result<Value, String> {
    let wrong = || format!("expected a list such as [cat, dog], found '{text}'");
    let close = if text.starts_with('[') { ']' } else { '}' };
    let inner = text.get(1..).and_then(|text| text.strip_suffix(close)).ok_or_else(wrong)?;
    if unquoted(inner).any(|(_, letter)| matches!(letter, '[' | ']' | '{' | '}')) {
        return Err(wrong());
    }
    let commas = unquoted(inner).filter(|(_, letter)| *letter == ',').map(|(at, _)| at);
    let (mut start, mut items) = (0, Vec::new());
    for end in commas.chain([inner.len()]) {
        items.push(inner.get(start..end).unwrap_or_default().trim());
        start = end + 1;
    }
    // A comma may follow the last item.
    if items.last().is_some_and(|last| last.is_empty()) {
        items.pop();
    }
    if close == ']' {
        return items.into_iter().map(scalar).collect::<Result<_, _>>().map(Value::Many);
    }
    let member =
        |item: &str| split_key(item).and_then(|(key, value)| Some((key, scalar(value).ok()?))).ok_or_else(wrong);
    items.into_iter().map(member).collect::<Result<_, _>>().map(Value::Map)
}

/// A text with or without quotes.
fn scalar(text: &str) -> Result<String, String> {
    let wrong = || format!("expected a name or a path, found '{text}'");
    match text.chars().next() {
        None => Err("expected a name or a path, found nothing".to_owned()),
        Some('"') => serde_json::from_str(text).map_err(|_| wrong()),
        Some('\'') => {
            let inner = text.get(1..).and_then(|text| text.strip_suffix('\'')).ok_or_else(wrong)?;
            let plain = inner.replace("''", "");
            if plain.contains('\'') { Err(wrong()) } else { Ok(inner.replace("''", "'")) }
        }
        Some('&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' | '[' | ']' | '{' | '}' | ',') => Err(wrong()),
        Some(_) => Ok(text.to_owned()),
    }
}

/// The names of a list, or of a map from ids to names.
fn names_of(value: Value) -> Result<Vec<String>, String> {
    let names = match value {
        Value::Many(names) => names,
        Value::Map(members) => {
            let mut by_id = BTreeMap::new();
            for (id, name) in members {
                let id: usize = id.parse().map_err(|_| format!("expected the number of a class, found '{id}'"))?;
                if by_id.insert(id, name).is_some() {
                    return Err(format!("the class {id} has two names"));
                }
            }
            if let Some((expected, _)) = by_id.keys().enumerate().find(|(place, id)| place != *id) {
                return Err(format!("the class {expected} has no name, but later classes have one"));
            }
            by_id.into_values().collect()
        }
        Value::Nothing | Value::One(_) => return Err("expected a list of names in 'names', found none".to_owned()),
    };
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two classes have the name '{}'", pair[0])),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> DataYaml {
        read(Path::new("data.yaml"), text).unwrap()
    }

    #[test]
    fn names_are_a_list_or_a_map_in_any_form() {
        let names = ["person", "traffic light", "it's: #1"];
        for text in [
            "nc: 3\nnames: ['person', 'traffic light', \"it's: #1\"]\n",
            "names: [person, traffic light, 'it''s: #1']",
            "names: ['person', 'traffic light', # comment\n        'it''s: #1', ]",
            "names:\n- person\n- traffic light\n- \"it's: #1\"\n",
            "# comment\n---\nnames:\n  - person # first\n  - traffic light\n\n  - 'it''s: #1'\nnc: 3",
            "names:\n  0: person\n  2: \"it's: #1\"\n  1: traffic light\nother:\n  x: [1, {\n",
            "names: {0: person, 1: 'traffic light', 2: \"it's: #1\"}",
        ] {
            assert_eq!(of(text).names.unwrap(), names, "{text}");
        }
        assert_eq!(of("nc: 2").names.unwrap(), ["0", "1"]);
    }

    #[test]
    fn splits_are_folders_or_lists_of_folders() {
        let text = "path: ../datasets/coco8 # root\ntrain: images/train\nval: [a/images, b/images]\ntest: # none\n\
            kpt_shape: [17, 3]\nnames: {0: person}\nroboflow:\n  license: MIT\n  url: https://x.y/z\ndownload: |\n  import os\n  x = {1}\n";
        let data = of(text);
        let split = |name: &str, line: usize, folders: &[&str]| {
            (name.to_owned(), line, folders.iter().map(|folder| (*folder).to_owned()).collect())
        };
        assert_eq!(data.splits, [split("train", 2, &["images/train"]), split("val", 3, &["a/images", "b/images"])]);
        assert_eq!(
            (data.path.as_deref(), data.keypoints.map(|shape| (shape.n, shape.has_visibility))),
            (Some("../datasets/coco8"), Some((17, true)))
        );
    }

    #[test]
    fn other_yaml_is_refused_with_what_was_found() {
        for (text, words) in [
            ("names: cat", "line 1: expected a list of names in 'names'"),
            ("nc: 2\nnames: [cat]", "line 1: 'nc' is 2, but 'names' has 1 names"),
            ("nc: two", "line 1: expected the number of classes in 'nc', found 'nc: two'"),
            ("names: [cat, [dog]]", "expected a list such as [cat, dog], found '[cat, [dog]]'"),
            ("names: [cat, dog", "expected a list such as"),
            ("names:\n  0: cat\n  2: dog", "the class 1 has no name"),
            ("names:\n  0: cat\n  0: dog", "the class 0 has two names"),
            ("names:\n  0: cat\n  - dog", "line 2: expected a list or a map, found both"),
            ("names:\n  - cat\n    dog", "line 3: expected the indentation of line 2, found 'dog'"),
            ("names: [cat, cat]", "two classes have the name 'cat'"),
            ("names: *other", "expected a name or a path, found '*other'"),
            ("train: {a: b}", "expected a folder or a list of folders in 'train'"),
            ("train: a\ntrain: b", "line 2: the key 'train' is on line 1, too"),
            ("path: [a, b]", "expected a folder in 'path'"),
            ("words", "line 1: expected 'key: value', found 'words'"),
            ("kpt_shape: 5", "expected the number of keypoints, and 2 or 3 in 'kpt_shape'"),
            ("kpt_shape: [5, 4]", "expected the number of keypoints, and 2 or 3 in 'kpt_shape'"),
            ("kpt_shape: [3, 2]\nflip_idx: [0, 1]", "line 2: expected 3 numbers from 0 in 'flip_idx'"),
            ("kpt_shape: [3, 2]\nflip_idx: [1, 2, 0]", "line 2: expected 3 numbers from 0 in 'flip_idx'"),
            ("flip_idx: x", "expected a list of points in 'flip_idx'"),
            ("nc: 99999999999", "expected at most 65536 classes"),
        ] {
            let error = read(Path::new("data.yaml"), text).map(|data| data.names).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
