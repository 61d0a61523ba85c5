//! Results as lines of text. On a terminal, lines that are too long are wrapped between words.

use std::io::{self, Write};

use crate::terminal_line::width;

/// Indentation of wrapped lines that do not begin with a key.
const INDENT: usize = 2;
/// Minimum width of wrapped text.
const LEAST: usize = 24;

/// Writes lines, wrapped to the width of the terminal. If the output is not a terminal, lines are not wrapped.
pub(crate) struct Prose<'a> {
    out: &'a mut dyn Write,
    columns: usize,
    /// The line that is not complete yet.
    line: Vec<u8>,
}

impl<'a> Prose<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, columns: usize) -> Self {
        Self { out, columns, line: Vec::new() }
    }

    /// The width of the terminal. `usize::MAX` if there is none.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

impl Write for Prose<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.out.write_all(wrapped(&String::from_utf8_lossy(&line), self.columns).as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The line, wrapped between words. A word that is wider than the terminal gets a line of its own.
fn wrapped(line: &str, columns: usize) -> String {
    if width(line.trim_end()) <= columns {
        return line.to_owned();
    }
    let indent = " ".repeat(hanging(line, columns));
    let (mut text, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let is_word = word != " ";
        if is_word && used + width(word.trim_end()) > columns && used > indent.len() {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&indent);
            used = indent.len();
        }
        text.push_str(word);
        used += width(word);
    }
    text
}

/// The column at which wrapped text continues: where the text of the line begins, after the indentation, the key and
/// short cells.
fn hanging(line: &str, columns: usize) -> usize {
    let ends = line.match_indices("  ").map(|(start, _)| {
        let rest = line.get(start..).unwrap_or_default();
        line.len() - rest.trim_start_matches(' ').len()
    });
    let columns_of = ends.map(|end| width(line.get(..end).unwrap_or_default()));
    columns_of.filter(|column| *column + LEAST <= columns).max().unwrap_or(INDENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> String {
        let mut out = Vec::new();
        let mut prose = Prose::new(&mut out, columns);
        // The pieces of one line may be written separately.
        text.as_bytes().chunks(3).for_each(|piece| prose.write_all(piece).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_lines_are_wrapped_between_words_below_the_text() {
        let expected = "note     images have several sizes,\n         so they are resized\n";
        assert_eq!(shown("note     images have several sizes, so they are resized\n", 36), expected);
        assert_eq!(shown("a.pack: 28 samples in 1 chunk\n", 16), "a.pack: 28\n  samples in 1\n  chunk\n");
        assert_eq!(
            shown("         and so on and on, and further\n", 33),
            "         and so on and on, and\n         further\n"
        );
        let expected = "npy           .npy\n              one array of all images\n";
        assert_eq!(shown("npy           .npy                         one array of all images\n", 40), expected);
        assert_eq!(
            shown("  threads   4 and so on and so on and on\n", 36),
            "  threads   4 and so on and so on\n            and on\n"
        );
    }

    #[test]
    fn what_fits_or_goes_to_a_file_is_left_alone() {
        let text = "format    1.0,  data  at byte 8192\n\n  x \n";
        assert_eq!(shown(text, usize::MAX), text);
        assert_eq!(shown(text, 34), text);
    }

    #[test]
    fn long_words_are_kept() {
        assert_eq!(shown("uuid      pack 0123456789abcdef, x\n", 12), "uuid\n  pack\n  0123456789abcdef,\n  x\n");
        assert_eq!(shown("0123456789abcdef\n", 12), "0123456789abcdef\n");
    }
}
