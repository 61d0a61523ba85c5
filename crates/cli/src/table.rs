//! A table of strings, as wide as the terminal.

use crate::human::counted;
use crate::terminal_line::{shortened, width};

/// Number of columns between two cells.
const GAP: usize = 2;
/// Minimum width to which a cell may be cut.
const LEAST: usize = 8;
/// Maximum width of a title that is never cut.
const TITLE: usize = 24;
/// Maximum width of a cell, even if there is more room.
const MOST: usize = 1000;

/// A table. Its first row has the titles, and all rows have the same number of cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(titles: Vec<String>) -> Self {
        Self { rows: vec![titles] }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines of the table. Long cells are cut. If the columns do not fit even then, the last ones are left out.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let widths = self.widths(columns);
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, columns)| {
                let cell = shortened(cell, *columns);
                let padding = " ".repeat((columns + GAP).saturating_sub(width(&cell)));
                cell + &padding
            });
            cells.collect::<String>().trim_end().to_owned()
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        let left_out = self.titles().get(widths.len()..).unwrap_or_default();
        if !left_out.is_empty() {
            let more = counted(left_out.len(), "more column");
            lines.push(shortened(&format!("{more} with --json: {}", left_out.join(", ")), columns));
        }
        lines
    }

    fn titles(&self) -> &[String] {
        self.rows.first().map_or(&[], Vec::as_slice)
    }

    /// The width of the longest cell of each column.
    fn natural(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(row.len().max(widths.len()), 0);
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = width(cell).max(*widest).min(MOST);
            }
        }
        widths
    }

    fn widths(&self, columns: usize) -> Vec<usize> {
        let mut widths = self.natural();
        let gaps = |n: usize| GAP * n.saturating_sub(1);
        let title = |i: usize| self.titles().get(i).map_or(0, |title| width(title).min(TITLE));
        let least: Vec<usize> = widths.iter().enumerate().map(|(i, w)| (*w).min(LEAST).max(title(i))).collect();
        let sum_of_least = |n: usize| least.iter().take(n).sum::<usize>() + gaps(n);
        while widths.len() > 1 && sum_of_least(widths.len()) > columns {
            widths.pop();
        }
        while widths.iter().sum::<usize>() + gaps(widths.len()) > columns {
            // Titles are cut last.
            let widest = widths.iter_mut().zip(&least).max_by_key(|(width, least)| (**width > **least, **width));
            let Some((widest, _)) = widest.filter(|(width, _)| **width > 1) else { break };
            *widest -= 1;
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let texts = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let mut table = Table::new(texts(["n", "path", "caption"]));
        table.push(texts(["0", "cat/a.jpg", "a cat on a mat in a flat"]));
        table.push(texts(["10", "dog/b.jpg", "a dog"]));
        table
    }

    #[test]
    fn what_fits_is_not_cut() {
        let expected = ["n   path       caption", "0   cat/a.jpg  a cat on a mat in a flat", "10  dog/b.jpg  a dog"];
        assert_eq!(table().lines(usize::MAX), expected);
    }

    #[test]
    fn the_longest_cells_are_cut_first() {
        let expected = ["n   path       caption", "0   cat/a.jpg  a cat on\u{2026}", "10  dog/b.jpg  a dog"];
        assert_eq!(table().lines(24), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 1..60 {
            for line in table().lines(columns) {
                assert!(width(&line) <= columns, "{columns}: {line}");
            }
        }
        let narrow = table().lines(20);
        assert_eq!(narrow[3], "1 more column with\u{2026}");
    }

    #[test]
    fn titles_are_kept_whole() {
        let mut table = Table::new(["path", "source_height"].map(str::to_owned).to_vec());
        table.push(["a/path/that/is/long.png", "1"].map(str::to_owned).to_vec());
        assert_eq!(table.lines(32), ["path               source_height", "a/path/that/is/l\u{2026}  1"]);
    }
}
