//! What the first pass over a manifest finds in a column.
//!
//! `manifest` decides how the column is used.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use packds_system::to_u64;

use super::cell_form::CellForm;
use super::folder_labels::folder_of;
use super::joined::JoinedScan;
use super::labels::{LabelForm, LabelScan, LabelSplit};
use super::numerals::Numerals;
use super::rows::Cell;
use super::values::{KindsSeen, text_of};
use super::warning::Warning;

/// Maximum number of distinct cells to count.
const MAX_DISTINCT: usize = 1 << 16;
/// Maximum number of splits.
const MAX_SPLITS: usize = 64;

/// The first pass's result for a column.
pub(super) struct ColumnScan {
    pub(super) kinds: KindsSeen,
    pub(super) labels: LabelScan,
    pub(super) joined: JoinedScan,
    pub(super) numerals: Numerals,
    pub(super) form: CellForm,
    /// The folders of the paths, if the manifest contains only paths. `None` if there are too many.
    pub(super) folders: Option<BTreeSet<String>>,
    /// Hashes of the distinct cells. `None` if there are too many.
    pub(super) distinct: Option<HashSet<u64>>,
    /// The distinct cells, if the column may hold splits. `None` if it may not, or if there are too many.
    pub(super) values: Option<BTreeSet<String>>,
}

impl ColumnScan {
    /// Starts the scan of a column. `is_list`: the manifest contains only paths. `is_split`: the column may hold splits. `is_tags`:
    /// it may hold several labels for each image.
    pub(super) fn new(split: LabelSplit, [is_list, is_split, is_tags]: [bool; 3]) -> Self {
        Self {
            kinds: KindsSeen::default(),
            labels: LabelScan::new(split),
            joined: JoinedScan::new(is_tags),
            numerals: Numerals::default(),
            form: CellForm::default(),
            folders: is_list.then(BTreeSet::new),
            distinct: Some(HashSet::new()),
            values: is_split.then(BTreeSet::new),
        }
    }

    pub(super) fn observe(&mut self, cell: Cell<'_>, line: u64) {
        self.kinds.observe(cell);
        self.labels.observe(cell, line);
        self.numerals.observe(cell);
        self.form.observe(cell);
        let text = text_of(cell);
        if let Some(distinct) = &mut self.distinct {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            if distinct.insert(hasher.finish()) && !matches!(cell, Cell::Json(_)) {
                self.joined.observe(&text);
            }
        }
        self.distinct = self.distinct.take().filter(|distinct| distinct.len() <= MAX_DISTINCT);
        if let Some(values) = &mut self.values
            && !values.contains(text.as_ref())
        {
            values.insert(text.into_owned());
        }
        self.values = self.values.take().filter(|values| values.len() <= MAX_SPLITS);
        if let Some(folders) = &mut self.folders {
            folders.insert(folder_of(&text_of(cell)).to_owned());
        }
        self.folders = self.folders.take().filter(|folders| folders.len() <= MAX_DISTINCT);
    }

    /// Whether the cells look like labels, regardless of the column's name: at least two values, each in two or more rows on average.
    pub(super) fn is_like_labels(&self, n_rows: u64) -> bool {
        let distinct = self.distinct.as_ref().map(|distinct| to_u64(distinct.len()));
        let repeats = distinct.is_some_and(|distinct| distinct >= 2 && 2 * distinct <= n_rows);
        // Whole lists of labels may be unique, although their labels repeat.
        (repeats || self.joined.lists().is_some()) && matches!(self.labels.form(), Ok(LabelForm::Classes { .. }))
    }

    /// Whether the column may hold labels: there are at least two distinct cells, some repeat, and they are not floats.
    pub(super) fn repeats(&self, n_rows: u64) -> bool {
        let distinct = self.distinct.as_ref().map_or(n_rows, |distinct| to_u64(distinct.len()));
        distinct > 1 && distinct < n_rows && !self.kinds.is_float()
    }

    /// Warns about class names that may be mistakes: words for missing values, or a string among numbers.
    pub(super) fn doubtful_names(&self, field: &str) -> Option<Warning> {
        let field = field.to_owned();
        if let Some(word) = self.labels.missing_name() {
            return Some(Warning::MissingNames { field, name: word.first.clone(), n_rows: word.n_rows });
        }
        self.labels.odd_name().map(|(name, line)| Warning::NumbersAsNames { field, name: name.to_owned(), line })
    }

    /// Whether each cell is a whole number, and at least one is negative.
    pub(super) fn are_negative(&self) -> bool {
        matches!(self.labels.form(), Ok(LabelForm::Negatives { .. }))
    }

    /// Whether each cell is a whole number, and none is negative.
    pub(super) fn are_ids(&self) -> bool {
        matches!(self.labels.form(), Ok(LabelForm::Classes { names: false, lists: false }))
    }
}
