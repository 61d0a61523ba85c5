//! Detects columns of numbers that are read as text because some cells have a decimal comma or a word for a missing value.
//!
//! `values` decides the type of each column.

use super::labels::is_missing_word;
use super::rows::Cell;
use super::values::CellKind;

/// What is known about the cells of a column.
#[derive(Debug, Default)]
pub(super) struct Numerals {
    has_numbers: bool,
    /// The first cell with a decimal comma.
    comma: Option<String>,
    /// The first word for a missing value.
    word: Option<String>,
    /// Whether any cell is other text. Such a column does not hold numbers.
    has_others: bool,
}

impl Numerals {
    pub(super) fn observe(&mut self, cell: Cell<'_>) {
        let Cell::Text(text) = cell else { return };
        match CellKind::of(cell) {
            CellKind::Integer(_) | CellKind::Float(_) => self.has_numbers = true,
            _ if self.has_others || text.trim().is_empty() => {}
            _ if has_decimal_comma(text) => {
                self.comma.get_or_insert_with(|| text.to_owned());
            }
            _ if is_missing_word(text) => {
                self.word.get_or_insert_with(|| text.to_owned());
            }
            _ => self.has_others = true,
        }
    }

    /// The first number with a decimal comma, if all cells are numbers.
    pub(super) fn decimal(&self) -> Option<&str> {
        self.comma.as_deref().filter(|_| !self.has_others)
    }

    /// The first cell that is not a number, if all other cells are numbers.
    pub(super) fn text(&self) -> Option<&str> {
        let word = || self.word.as_deref().filter(|_| self.has_numbers && !self.has_others);
        self.decimal().or_else(word)
    }
}

/// Whether a string is a number with a decimal comma, such as `-0,5`.
fn has_decimal_comma(text: &str) -> bool {
    let text = text.trim();
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.strip_prefix('-').unwrap_or(text).split_once(',');
    parts.is_some_and(|(whole, rest)| are_digits(whole) && are_digits(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_commas_and_words_are_found_among_numbers_only() {
        let found = |cells: &[&str]| {
            let mut numerals = Numerals::default();
            cells.iter().for_each(|cell| numerals.observe(Cell::Text(cell)));
            (numerals.decimal().map(str::to_owned), numerals.text().map(str::to_owned))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found(&["1", "-0,5"]), (some("-0,5"), some("-0,5")));
        assert_eq!(found(&["1", "NA"]), (None, some("NA")));
        for none in [&["1", "2.5"][..], &["1", "0,5", "a"], &["NA", "None"], &["1,2,3"], &["1,", ",5"]] {
            assert_eq!(found(none), (None, None), "{none:?}");
        }
    }
}
