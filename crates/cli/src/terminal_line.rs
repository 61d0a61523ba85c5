//! A status line at the bottom of a terminal.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of a terminal that does not report one.
const COLUMNS: usize = 80;

/// The status line on stderr, which must be a terminal. It locks stderr only for one write, so other threads never
/// wait.
#[derive(Debug, Default)]
pub(crate) struct TerminalLine {
    is_drawn: bool,
}

impl TerminalLine {
    /// Replaces the line's text, cut to the width of the terminal.
    pub(crate) fn draw(&mut self, text: &str) {
        self.is_drawn = true;
        // Write only once, and clear the rest of the line last, so that nothing flickers.
        put(&format!("\r{}\x1b[K", cut(text, columns())));
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            clear_line();
        }
    }
}

/// Clears the terminal line that the cursor is on. It may show `^C`.
pub(crate) fn clear_line() {
    put("\r\x1b[K");
}

fn put(text: &str) {
    // If stderr is closed, the text is lost.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The available columns. Some columns are kept free for the cursor and the terminal's `^C`, because a line that wraps
/// cannot be cleared.
pub(crate) fn columns() -> usize {
    columns_of(io::stderr()).saturating_sub(3).max(1)
}

/// Number of columns of a terminal.
pub(crate) fn columns_of(terminal: impl AsFd) -> usize {
    let size = tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    if size == 0 { COLUMNS } else { size }
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The longest prefix of the text that fits.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// The text, cut if it does not fit. Text that was cut ends with an ellipsis.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    format!("{}\u{2026}", cut(text, columns.saturating_sub(1)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_the_terminal_ends() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 2), "ab");
        // Each of these characters takes two columns. Half a character is never shown.
        assert_eq!(cut("\u{732b}\u{72ac}", 3), "\u{732b}");
        assert_eq!(cut("a", 0), "");
        assert_eq!(["abc", "abcd"].map(|text| shortened(text, 3)), ["abc", "ab\u{2026}"]);
    }
}
