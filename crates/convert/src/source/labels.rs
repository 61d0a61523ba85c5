//! The label column of a manifest: ids, class names, lists of either, or regression targets.
//!
//! `manifest` finds the column.

use std::collections::HashMap;

use packds_format::Scalar;
use serde_json::Value;

use super::{
    joined::Separator,
    listing::{LabelLists, Labels},
    rows::Cell,
    values::{CellKind, text_of},
};
use crate::metadata::Metadata;

/// How the cells of a column are split into labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LabelSplit {
    /// A CSV cell is one label. A JSON array is a list.
    #[default]
    Never,
    /// A CSV cell that contains `;` or `|` turns the whole column into lists.
    IfSeparated,
    /// Every cell is a list.
    Always,
    /// Every cell is a list with this separator between its labels.
    At(Separator),
}

impl LabelSplit {
    /// The separator of the labels in a cell, if there is one.
    fn separator(self) -> Option<Separator> {
        match self {
            Self::Never => None,
            Self::IfSeparated | Self::Always => Some(Separator::Mark),
            Self::At(separator) => Some(separator),
        }
    }
}

/// The content of a label column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelForm {
    /// Class names or unchanged ids; one per sample, or lists.
    Classes { names: bool, lists: bool },
    /// Numbers other than ids: an ordinary column.
    Numbers,
    /// Whole numbers, some of them negative: an ordinary column. The first negative number is on this line.
    Negatives { line: u64 },
}

/// Examines every label before any is stored. Problems are kept until the form is requested, because the column may turn out not to
/// be the label.
#[derive(Debug, Default)]
pub(super) struct LabelScan {
    pub(super) split: LabelSplit,
    lists: bool,
    /// Whether any cell has no labels or several.
    has_lists: bool,
    /// Whether any cell has separators between labels, or is a JSON list.
    has_joined: bool,
    /// The smallest and the largest whole number.
    pub(super) ids: Option<[i64; 2]>,
    /// The line on which each of these kinds first appears.
    integer: Option<u64>,
    number: Option<u64>,
    json_text: Option<u64>,
    csv_text: Option<u64>,
    negative: Option<u64>,
    missing: Option<u64>,
    /// The line of the first list in which a label is missing.
    missing_item: Option<u64>,
    nested: Option<u64>,
    /// The first name that contains anything but digits, and its line.
    odd_name: Option<(String, u64)>,
    /// The first word for a missing value, and how many rows have one.
    words: Option<MissingWord>,
}

/// A word that may stand for a missing label.
#[derive(Debug)]
pub(super) struct MissingWord {
    pub(super) first: String,
    pub(super) n_rows: u64,
}

impl LabelScan {
    pub(super) fn new(split: LabelSplit) -> Self {
        Self { split, lists: split == LabelSplit::Always, ..Self::default() }
    }

    /// Whether any cell is a list, because it has separators or is JSON.
    pub(super) fn are_lists(&self) -> bool {
        self.lists && self.has_joined
    }

    /// Whether lists were expected, but each cell has exactly one label.
    pub(super) fn has_single_labels(&self) -> bool {
        self.split == LabelSplit::Always && !self.has_lists
    }

    /// The word for missing values that is packed as a class name, if there is one.
    pub(super) fn missing_name(&self) -> Option<&MissingWord> {
        self.words.as_ref().filter(|_| self.has_names())
    }

    /// Whether labels are names. A word for a missing value is treated as a name, unless the column has numbers and no
    /// lists.
    fn has_names(&self) -> bool {
        let has_numbers = self.integer.is_some() || self.number.is_some();
        let are_words = self.words.is_some() && (self.lists || !has_numbers);
        self.json_text.is_some() || self.csv_text.is_some() || are_words
    }

    /// A name among labels that are otherwise numbers.
    pub(super) fn odd_name(&self) -> Option<(&str, u64)> {
        let (name, line) = self.odd_name.as_ref()?;
        self.integer.map(|_| (name.as_str(), *line))
    }

    pub(super) fn observe(&mut self, cell: Cell<'_>, line: u64) {
        let cell = filled(cell);
        match cell {
            Cell::Missing => {
                self.missing.get_or_insert(line);
            }
            Cell::Text(text) => {
                self.lists |= self.split == LabelSplit::IfSeparated && text.contains(SEPARATORS);
            }
            Cell::Json(value) => self.lists |= value.is_array(),
        }
        self.has_joined |= match cell {
            Cell::Missing => false,
            Cell::Text(text) => text.contains(SEPARATORS),
            Cell::Json(value) => value.is_array(),
        };
        self.has_lists |= self.has_joined || matches!(cell, Cell::Missing);
        for_each_item(cell, self.split.separator(), |item| self.observe_item(item, line));
    }

    fn observe_item(&mut self, item: Cell<'_>, line: u64) {
        let name = text_of(item);
        if is_missing_word(&name) {
            let word = self.words.get_or_insert_with(|| MissingWord { first: name.clone().into_owned(), n_rows: 0 });
            word.n_rows += 1;
            // A JSON number is never a word.
            if matches!(item, Cell::Text(_)) {
                return;
            }
        }
        let text = match item {
            Cell::Text(_) => &mut self.csv_text,
            Cell::Missing | Cell::Json(_) => &mut self.json_text,
        };
        let kind = CellKind::of(item);
        if self.odd_name.is_none()
            && matches!((item, kind), (Cell::Text(_), CellKind::Text))
            && !name.bytes().all(|byte| byte.is_ascii_digit())
        {
            self.odd_name = Some((name.into_owned(), line));
        }
        match kind {
            CellKind::Missing => self.missing_item.get_or_insert(line),
            CellKind::Nested => self.nested.get_or_insert(line),
            CellKind::Text | CellKind::Bool(_) => text.get_or_insert(line),
            kind => match class_id(kind) {
                None => self.number.get_or_insert(line),
                Some(id) => {
                    let [first, last] = self.ids.unwrap_or([id, id]);
                    self.ids = Some([first.min(id), last.max(id)]);
                    if id < 0 {
                        self.negative.get_or_insert(line);
                    }
                    self.integer.get_or_insert(line)
                }
            },
        };
    }

    /// The content of the column, or the line and the reason why it cannot hold labels. In a column of classes, rows
    /// without a label are bad samples.
    pub(super) fn form(&self) -> Result<LabelForm, (u64, String)> {
        let form = self.form_of_present()?;
        let is_empty = !self.has_names() && self.integer.is_none();
        match (form, self.missing) {
            // In split columns, an empty cell is an empty list.
            (LabelForm::Classes { lists: true, .. }, _) if self.split != LabelSplit::Never => Ok(form),
            (LabelForm::Classes { .. }, Some(line)) if is_empty => Err((line, MISSING.to_owned())),
            (LabelForm::Numbers | LabelForm::Negatives { .. }, Some(line)) => Err((line, MISSING.to_owned())),
            _ => Ok(form),
        }
    }

    /// Like [`Self::form`], but ignores rows without a label.
    fn form_of_present(&self) -> Result<LabelForm, (u64, String)> {
        let lists = self.lists;
        if let Some(line) = self.missing_item {
            return Err((line, MISSING.to_owned()));
        }
        if let Some(line) = self.nested {
            return Err((line, "expected a label or a list of labels, found nested JSON".to_owned()));
        }
        if let (Some(text), Some(number)) = (self.json_text, self.integer.or(self.number)) {
            let reason = "some labels are strings and some are numbers".to_owned();
            return Err((text.max(number), reason));
        }
        if self.has_names() {
            return Ok(LabelForm::Classes { names: true, lists });
        }
        match (self.number, self.negative) {
            (Some(_), _) if !lists => Ok(LabelForm::Numbers),
            (Some(line), _) => Err((line, "expected integers or names in a list of labels".to_owned())),
            (None, Some(line)) if !lists => Ok(LabelForm::Negatives { line }),
            (None, Some(line)) => Err((line, NEGATIVE.to_owned())),
            (None, None) => Ok(LabelForm::Classes { names: false, lists }),
        }
    }

    /// Whether any row has no label.
    pub(super) fn has_missing(&self) -> bool {
        self.missing.is_some()
    }
}

/// A number as a class id.
fn class_id(kind: CellKind) -> Option<i64> {
    match kind {
        CellKind::Integer(id) => Some(id),
        CellKind::Float(value) => Scalar::Double(value).class_id(),
        CellKind::Missing | CellKind::Bool(_) | CellKind::Text | CellKind::Nested => None,
    }
}

/// The error for a row without a label.
pub(super) const MISSING: &str = "the label is missing";
/// The error for a negative label.
pub(super) const NEGATIVE: &str = "a class id is negative: class ids start at 0";

/// Words that pandas and other programs use for a missing value, in lower case.
const MISSING_WORDS: [&str; 7] = ["nan", "na", "n/a", "#n/a", "<na>", "none", "null"];

/// Whether a string stands for a missing value. It may also be a name.
pub(super) fn is_missing_word(text: &str) -> bool {
    MISSING_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text.trim()))
}

/// The cell, or `Cell::Missing` if it is blank.
fn filled(cell: Cell<'_>) -> Cell<'_> {
    match cell {
        Cell::Text(text) if text.trim().is_empty() => Cell::Missing,
        Cell::Json(Value::String(text)) if text.trim().is_empty() => Cell::Missing,
        cell => cell,
    }
}

const SEPARATORS: [char; 2] = [';', '|'];

/// Calls `each` for each label in a cell. CSV cells are split at `separator`.
fn for_each_item<'a>(cell: Cell<'a>, separator: Option<Separator>, mut each: impl FnMut(Cell<'a>)) {
    match (cell, separator) {
        (Cell::Missing, _) => {}
        (Cell::Json(Value::Array(items)), _) => items.iter().map(Cell::Json).for_each(each),
        (Cell::Text(text), Some(separator)) => separator.parts(text).into_iter().map(Cell::Text).for_each(each),
        (Cell::Text(text), None) => each(Cell::Text(text.trim())),
        (Cell::Json(_), _) => each(cell),
    }
}

/// Collects labels row by row.
pub(super) struct LabelBuilder {
    names: bool,
    lists: bool,
    separator: Option<Separator>,
    /// Whether an empty cell is an empty list.
    has_empty_lists: bool,
    /// The ids, unchanged. For names, numbers in order of first appearance.
    ids: Vec<i64>,
    ends: Vec<usize>,
    number_of: HashMap<String, i64>,
}

impl LabelBuilder {
    pub(super) fn new(names: bool, lists: bool, split: LabelSplit) -> Self {
        Self {
            names,
            lists,
            separator: split.separator().filter(|_| lists),
            has_empty_lists: lists && split != LabelSplit::Never,
            ids: Vec::new(),
            ends: Vec::new(),
            number_of: HashMap::new(),
        }
    }

    /// Whether a row has no label, which makes its sample bad.
    pub(super) fn is_missing(&self, cell: Cell<'_>) -> bool {
        match filled(cell) {
            Cell::Missing => !self.has_empty_lists,
            Cell::Text(text) => !self.names && is_missing_word(text),
            Cell::Json(_) => false,
        }
    }

    /// Adds a placeholder for the next row, which has no label.
    pub(super) fn push_missing(&mut self) {
        match self.lists {
            true => self.ends.push(self.ids.len()),
            false => self.ids.push(0),
        }
    }

    /// Adds the next row's labels. Returns false if they do not fit. That happens only if the manifest has changed since the scan.
    #[must_use]
    pub(super) fn push(&mut self, cell: Cell<'_>) -> bool {
        let start = self.ids.len();
        let mut fits = true;
        for_each_item(filled(cell), self.separator, |item| {
            if self.names {
                let id = self.number_name(item);
                self.ids.push(id);
            } else if let Some(id) = class_id(CellKind::of(item)) {
                self.ids.push(id);
            } else {
                fits = false;
            }
        });
        if self.lists {
            sort_from(&mut self.ids, start);
            self.ends.push(self.ids.len());
            fits
        } else {
            fits && self.ids.len() == start + 1
        }
    }

    /// Assigns ids to the names in a row that is not packed, so that ids do not depend on which rows are packed.
    pub(super) fn learn(&mut self, cell: Cell<'_>) {
        if self.names {
            for_each_item(filled(cell), self.separator, |item| {
                self.number_name(item);
            });
        }
    }

    fn number_name(&mut self, item: Cell<'_>) -> i64 {
        let name = text_of(item);
        if let Some(number) = self.number_of.get(name.as_ref()) {
            return *number;
        }
        let number = i64::try_from(self.number_of.len()).unwrap_or(i64::MAX);
        self.number_of.insert(name.into_owned(), number);
        number
    }

    /// The labels and the class names, sorted. A name's id is its index.
    pub(super) fn finish(mut self) -> (Labels, Vec<Vec<u8>>) {
        let mut classes: Vec<(String, i64)> = self.number_of.into_iter().collect();
        classes.sort_unstable();
        if self.names {
            let mut id_of = vec![0; classes.len()];
            for (id, (_, number)) in (0..).zip(&classes) {
                if let Ok(number) = usize::try_from(*number) {
                    id_of[number] = id;
                }
            }
            for label in &mut self.ids {
                *label = usize::try_from(*label).ok().and_then(|number| id_of.get(number).copied()).unwrap_or(*label);
            }
            sort_lists(&mut self.ids, &self.ends);
        }
        let classes = classes.into_iter().map(|(name, _)| name.into_bytes()).collect();
        let labels = if self.lists {
            Labels::Lists(LabelLists { ends: self.ends, ids: self.ids })
        } else {
            Labels::PerSample(self.ids)
        };
        (labels, classes)
    }
}

/// Maps labels to the class ids and names of the pack that the manifest was exported from. Unchanged if some class is not in that
/// pack.
pub(super) fn in_known_order(mut labels: Labels, classes: Vec<Vec<u8>>, metadata: &Metadata) -> (Labels, Vec<Vec<u8>>) {
    let field = match labels {
        Labels::Lists(_) => "labels",
        _ => "label",
    };
    let known = metadata.class_names(field);
    let id_of: HashMap<&[u8], i64> = known.iter().map(String::as_bytes).zip(0..).collect();
    let new_ids: Option<Vec<i64>> = classes.iter().map(|name| id_of.get(name.as_slice()).copied()).collect();
    let (Some(new_ids), false) = (new_ids, classes.is_empty()) else {
        return (labels, classes);
    };
    let renumber = |id: &mut i64| {
        let new = usize::try_from(*id).ok().and_then(|id| new_ids.get(id));
        *id = new.copied().unwrap_or(*id);
    };
    match &mut labels {
        Labels::PerSample(ids) => ids.iter_mut().for_each(renumber),
        Labels::Lists(lists) => lists.renumber(renumber),
        Labels::None | Labels::ByDirectory(_) => {}
    }
    let classes = known.iter().map(|name| name.clone().into_bytes()).collect();
    (labels, classes)
}

impl LabelLists {
    /// Changes every id. The lists stay sorted.
    pub(super) fn renumber(&mut self, change: impl FnMut(&mut i64)) {
        self.ids.iter_mut().for_each(change);
        sort_lists(&mut self.ids, &self.ends);
    }
}

/// Sorts each of the lists that end at `ends`.
fn sort_lists(ids: &mut [i64], ends: &[usize]) {
    let mut start = 0;
    for end in ends {
        ids[start..*end].sort_unstable();
        start = *end;
    }
}

/// Sorts the values from `start` on and removes duplicates.
fn sort_from(ids: &mut Vec<i64>, start: usize) {
    ids[start..].sort_unstable();
    let mut kept = start;
    for idx in start..ids.len() {
        if kept == start || ids[kept - 1] != ids[idx] {
            ids[kept] = ids[idx];
            kept += 1;
        }
    }
    ids.truncate(kept);
}
