//! A table of figures: one row per measurement, one column per figure.

use crate::terminal_line::width;

/// Title and minimum width of a column. Minimum widths keep the layout of the table the same for all values.
pub(crate) type Column = (&'static str, usize);

/// The first columns, which identify a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// One column of names, aligned left.
    Name,
    /// This many columns of numbers, aligned right.
    Numbers(usize),
}

/// The columns and rows of a table.
pub(crate) struct Figures {
    columns: Vec<Column>,
    keys: Keys,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    /// Text after the cells, without a title.
    mark: String,
}

impl Figures {
    pub(crate) fn new(columns: Vec<Column>, keys: Keys) -> Self {
        Self { columns, keys, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>, mark: &str) {
        self.rows.push(Row { cells, mark: mark.to_owned() });
    }

    /// The lines of the table. If it is wider than the terminal, it is split into parts, one below the other. Each part
    /// repeats the columns that identify the rows.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let whole = self.part(&all, |column| self.natural(column).max(self.columns.get(column).map_or(0, |one| one.1)));
        if whole.iter().all(|line| width(line) <= columns) {
            return whole;
        }
        let mut lines = Vec::new();
        for part in self.parts(columns) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(self.part(&part, |column| self.natural(column)));
        }
        lines
    }

    /// The columns of each part: those that identify the rows, and as many others as fit, at least one.
    fn parts(&self, columns: usize) -> Vec<Vec<usize>> {
        let widest_mark = self.rows.iter().map(|row| width(&row.mark)).max().unwrap_or(0);
        let n_keys = match self.keys {
            Keys::Name => 1,
            Keys::Numbers(n) => n,
        };
        let keys: Vec<usize> = (0..n_keys).collect();
        let used = |part: &[usize]| part.iter().map(|column| self.natural(*column) + 1).sum::<usize>();
        let mut parts = vec![keys.clone()];
        for column in n_keys..self.columns.len() {
            let Some(part) = parts.last_mut() else { break };
            if part.len() > keys.len() && used(part) + self.natural(column) + widest_mark > columns {
                parts.push([keys.as_slice(), &[column]].concat());
            } else {
                part.push(column);
            }
        }
        parts
    }

    /// The lines of one part. `width_of` returns the width of each column.
    fn part(&self, part: &[usize], width_of: impl Fn(usize) -> usize) -> Vec<String> {
        let line = |text: &dyn Fn(usize) -> String, mark: &str| {
            let cell = |column: &usize| {
                let text = text(*column);
                let space = " ".repeat(width_of(*column).saturating_sub(width(&text)));
                if *column == 0 && self.keys == Keys::Name { text + &space } else { space + &text }
            };
            let cells: Vec<String> = part.iter().map(cell).collect();
            (cells.join(" ") + mark).trim_end().to_owned()
        };
        let titles = line(&|column| self.title(column).to_owned(), "");
        let rows =
            self.rows.iter().map(|row| line(&|column| row.cells.get(column).cloned().unwrap_or_default(), &row.mark));
        [titles].into_iter().chain(rows).collect()
    }

    fn title(&self, column: usize) -> &'static str {
        self.columns.get(column).map_or("", |(title, _)| title)
    }

    /// The width of the longest cell or title.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|cell| width(cell)).chain([width(self.title(column))]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let mut figures =
            Figures::new(vec![("format", 10), ("images/s", 10), ("mean ms", 9), ("on disk", 9)], Keys::Name);
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        figures.push(row(["npy", "1200", "0.20", "5.0 MiB"]), " *");
        figures.push(row(["packds-raw", "1300", "0.19", "5.1 MiB"]), "");
        figures
    }

    #[test]
    fn the_whole_table_has_its_usual_widths() {
        let expected = [
            "format       images/s   mean ms   on disk",
            "npy              1200      0.20   5.0 MiB *",
            "packds-raw       1300      0.19   5.1 MiB",
        ];
        assert_eq!(figures().lines(usize::MAX), expected);
        assert_eq!(figures().lines(43), expected);
    }

    #[test]
    fn a_table_that_is_too_wide_is_shown_in_parts() {
        let expected = [
            "format     images/s mean ms",
            "npy            1200    0.20 *",
            "packds-raw     1300    0.19",
            "",
            "format     on disk",
            "npy        5.0 MiB *",
            "packds-raw 5.1 MiB",
        ];
        assert_eq!(figures().lines(30), expected);
        assert_eq!(figures().lines(1).len(), 11);
    }
}
