//! One line at the bottom of a terminal that is drawn again and again, and taken away in the end.

use std::io::{self, Write};

use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// The line of stderr, which is a terminal. It takes the lock of stderr only for the writing of one text: who holds it longer
/// would have everybody wait who draws or warns.
#[derive(Debug, Default)]
pub(crate) struct TerminalLine {
    is_drawn: bool,
}

impl TerminalLine {
    /// Shows the text in the place of what the line showed, cut to the width of the terminal.
    pub(crate) fn draw(&mut self, text: &str) {
        self.is_drawn = true;
        // In one piece, and what is longer is removed last: nothing flickers.
        put(&format!("\r{}\x1b[K", cut(text, columns())));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            put("\r\x1b[K");
        }
    }
}

fn put(text: &str) {
    // Where stderr is closed there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// How many columns a text may have. Behind it there must be room for the `^C` of a Ctrl-C, which the terminal shows, and for
/// the cursor: else they go to the next line, and the first part stays where it is when the line is taken away.
pub(crate) fn columns() -> usize {
    let size = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    let columns = if size == 0 { COLUMNS } else { size };
    columns.saturating_sub(3).max(1)
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits so many columns.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_the_terminal_ends() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 2), "ab");
        // Each of these takes two columns, and half of one is none.
        assert_eq!(cut("\u{732b}\u{72ac}", 3), "\u{732b}");
        assert_eq!(cut("a", 0), "");
    }
}
