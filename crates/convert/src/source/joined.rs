//! Cells of a table that hold several labels: `cat dog`, `cat, dog`, `cat|dog` or `['cat', 'dog']`.
//!
//! A class name may itself contain a space or a comma, so whether a cell is a list depends on the other cells of the column.
//! `labels` reads the labels.

use std::collections::HashMap;

use super::values::CellKind;

/// Maximum number of distinct labels. A column with more is not treated as lists.
const MAX_LABELS: usize = 8192;
/// Maximum size of all labels, in bytes.
const MAX_LABEL_BYTES: usize = 1 << 18;
/// Maximum size of a cell to inspect, in bytes.
const MAX_BYTES: usize = 4096;
/// Maximum number of cells kept as examples.
const MAX_EXAMPLES: usize = 64;
/// A space separates names only if some cell has at least this many labels: two-word class names are common.
const MIN_WORDS: usize = 3;

/// What separates the labels in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `;` or `|`.
    Mark,
    Comma,
    Space,
    /// A list as Python writes it.
    Brackets,
}

impl Separator {
    const ALL: [Self; 4] = [Self::Brackets, Self::Mark, Self::Comma, Self::Space];

    /// The labels in a cell. A cell without the separator is one label.
    pub(super) fn parts(self, text: &str) -> Vec<&str> {
        let is_separator = |c: char| match self {
            Self::Mark => matches!(c, ';' | '|'),
            Self::Comma => c == ',',
            Self::Space | Self::Brackets => c == ' ',
        };
        match self {
            Self::Brackets => list_items(text),
            _ => text.split(is_separator).map(str::trim).filter(|part| !part.is_empty()).collect(),
        }
    }
}

/// The items of `['a', 'b']` or `[1, 2]`.
fn list_items(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut rest = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut items = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let body = quote.map_or(rest, |_| &rest[1..]);
        if body.is_empty() {
            return items;
        }
        let end = body.find(quote.unwrap_or(',')).unwrap_or(body.len());
        items.push(body[..end].trim());
        rest = body.get(end + 1..).unwrap_or_default();
    }
}

/// What is known about the distinct cells of a column.
#[derive(Debug)]
pub(super) struct JoinedScan {
    tallies: [LabelTally; 4],
    /// Cells that contain a possible separator.
    examples: Vec<String>,
    n_cells: usize,
    /// Whether the column's name says that it has several labels for each image.
    is_tags: bool,
}

#[derive(Debug)]
struct LabelTally {
    separator: Separator,
    labels: HashMap<String, Seen>,
    n_joined: usize,
    longest: usize,
    n_bytes: usize,
    /// Whether the cells certainly do not hold lists.
    is_out: bool,
}

/// Where a label was seen.
#[derive(Debug, Default)]
struct Seen {
    alone: bool,
    n_joined: usize,
}

impl JoinedScan {
    pub(super) fn new(is_tags: bool) -> Self {
        let tally = |separator| LabelTally {
            separator,
            labels: HashMap::new(),
            n_joined: 0,
            longest: 0,
            n_bytes: 0,
            is_out: false,
        };
        Self { tallies: Separator::ALL.map(tally), examples: Vec::new(), n_cells: 0, is_tags }
    }

    /// Inspects a cell. Each distinct cell must be passed only once.
    pub(super) fn observe(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.n_cells += 1;
        self.tallies.iter_mut().for_each(|tally| tally.observe(text));
        if self.examples.len() < MAX_EXAMPLES && text.len() <= MAX_BYTES && text.contains([';', '|', ',', ' ']) {
            self.examples.push(text.to_owned());
        }
    }

    /// The separator, an example cell, and whether the labels are names rather than numbers. `None` if the cells are
    /// not lists.
    pub(super) fn lists(&self) -> Option<(Separator, &str, bool)> {
        let tally = self.tallies.iter().find(|tally| tally.are_lists(self.n_cells, self.is_tags))?;
        let is_joined = |cell: &&String| tally.separator.parts(cell).len() > 1;
        let example = self.examples.iter().find(is_joined).map_or("", String::as_str);
        Some((tally.separator, example, !tally.are_numbers()))
    }

    /// A cell that may be a list, although nothing proves it: it has a bar or a semicolon, or all its parts occur in other cells.
    pub(super) fn doubtful(&self) -> Option<&str> {
        let is_doubtful = |cell: &&String| {
            let mut tallies =
                self.tallies.iter().filter(|tally| !tally.is_out && tally.separator != Separator::Brackets);
            tallies.any(|tally| {
                let parts = tally.separator.parts(cell);
                let is_mark = tally.separator == Separator::Mark;
                // Two class names of two words each may have a word in common.
                let is_enough = parts.len() >= MIN_WORDS || tally.come_back();
                let comes_back = |seen: &Seen| is_mark || seen.alone || (is_enough && seen.n_joined > 1);
                parts.len() > 1 && parts.iter().all(|part| tally.labels.get(*part).is_some_and(comes_back))
            })
        };
        self.examples.iter().find(is_doubtful).map(String::as_str)
    }
}

impl LabelTally {
    fn observe(&mut self, text: &str) {
        let is_list = text.starts_with('[') && text.ends_with(']');
        self.is_out |= text.len() > MAX_BYTES || is_list != (self.separator == Separator::Brackets);
        if self.is_out {
            return;
        }
        let parts = self.separator.parts(text);
        self.longest = self.longest.max(parts.len());
        self.n_joined += usize::from(parts.len() > 1);
        for part in &parts {
            if !self.labels.contains_key(*part) {
                self.n_bytes += part.len();
                self.is_out = self.labels.len() >= MAX_LABELS || self.n_bytes > MAX_LABEL_BYTES;
            }
            if self.is_out {
                self.labels = HashMap::new();
                return;
            }
            let seen = self.labels.entry((*part).to_owned()).or_default();
            seen.alone |= parts.len() == 1;
            seen.n_joined += usize::from(parts.len() > 1);
        }
    }

    fn are_numbers(&self) -> bool {
        self.labels.keys().all(|label| matches!(CellKind::of_text(label), CellKind::Integer(0..)))
    }

    /// Whether nearly all labels occur in other cells too.
    fn come_back(&self) -> bool {
        let known = self.labels.values().filter(|seen| seen.alone || seen.n_joined > 1).count();
        10 * known >= 9 * self.labels.len()
    }

    /// Whether the cells are lists.
    fn are_lists(&self, n_cells: usize, is_tags: bool) -> bool {
        let come_back = self.come_back();
        let some_alone = self.labels.values().any(|seen| seen.alone);
        let are_few = self.labels.len() <= n_cells;
        let one_comes_back = self.labels.values().any(|seen| seen.n_joined > usize::from(!seen.alone));
        let proof = match self.separator {
            Separator::Brackets => return !self.is_out && n_cells > 0,
            Separator::Mark => self.are_numbers() || (come_back && are_few) || one_comes_back,
            Separator::Comma => come_back && (some_alone || (self.are_numbers() && are_few)),
            Separator::Space if self.are_numbers() => true,
            Separator::Space if self.longest < MIN_WORDS => false,
            Separator::Space => (come_back && some_alone && are_few) || (is_tags && one_comes_back),
        };
        !self.is_out && self.n_joined > 0 && proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(cells: &[&str]) -> Option<(Separator, bool)> {
        let mut scan = JoinedScan::new(false);
        cells.iter().for_each(|cell| scan.observe(cell));
        scan.lists().map(|(separator, _, names)| (separator, names))
    }

    #[test]
    fn cells_are_lists_if_their_labels_come_back() {
        assert_eq!(lists(&["cat", "dog", "cat|dog"]), Some((Separator::Mark, true)));
        assert_eq!(lists(&["cat", "dog", "cat, dog"]), Some((Separator::Comma, true)));
        assert_eq!(
            lists(&["clear", "haze", "clear haze water", "clear water", "haze water"]),
            Some((Separator::Space, true))
        );
        assert_eq!(lists(&["0", "16 0", "25"]), Some((Separator::Space, false)));
        assert_eq!(lists(&["['a', 'b, c']", "[]"]), Some((Separator::Brackets, true)));
        assert_eq!(lists(&["[1, 2]"]), Some((Separator::Brackets, false)));
        assert_eq!(lists(&["Edema|Mass", "Mass", "Hernia|Nodule"]), Some((Separator::Mark, true)));
        let mut scan = JoinedScan::new(true);
        ["agriculture clear primary", "haze primary", "cloudy"].iter().for_each(|cell| scan.observe(cell));
        assert_eq!(scan.lists().map(|(separator, _, _)| separator), Some(Separator::Space));
        assert_eq!(Separator::Brackets.parts("['a', \"b, c\", 3 ]"), ["a", "b, c", "3"]);
    }

    #[test]
    fn names_of_several_words_are_names() {
        assert_eq!(lists(&["golden retriever", "black bear", "cat"]), None);
        assert_eq!(lists(&["tench, Tinca tinca", "goldfish, Carassius auratus"]), None);
        assert_eq!(lists(&["0,5", "0,25", "1,75"]), None);
        let mut scan = JoinedScan::new(false);
        ["scab", "rust", "scab rust"].iter().for_each(|cell| scan.observe(cell));
        assert_eq!((scan.lists(), scan.doubtful()), (None, Some("scab rust")));
        for (cells, doubtful) in [
            (&["haze primary", "clear primary", "haze water", "clear water"][..], Some("haze primary")),
            (&["Hernia|Mass", "Effusion", "Nodule"], Some("Hernia|Mass")),
            (&["golden retriever", "labrador retriever", "cat"], None),
        ] {
            let mut scan = JoinedScan::new(false);
            cells.iter().for_each(|cell| scan.observe(cell));
            assert_eq!((scan.lists(), scan.doubtful()), (None, doubtful));
        }
    }

    #[test]
    fn huge_cells_and_many_labels_take_little_memory() {
        let mut scan = JoinedScan::new(false);
        scan.observe(&"x ".repeat(1 << 20));
        (0..20_000).for_each(|n| scan.observe(&format!("{n} {n} a")));
        assert!(scan.lists().is_none() && scan.examples.len() <= MAX_EXAMPLES);
        assert!(scan.tallies.iter().all(|tally| tally.labels.len() <= MAX_LABELS));
    }
}
