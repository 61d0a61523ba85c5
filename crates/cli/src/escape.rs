//! Escapes text from files for display. Names may contain control characters and terminal escape sequences.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Text on one line. Control characters are escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Bidirectional marks make a terminal show text in a different order.
        let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
        if c.is_control() || reorders {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Bytes as text. Invalid UTF-8 becomes `\xNN`.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        out.push_str(piece.valid());
        for byte in piece.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

pub(crate) fn escape_bytes(bytes: &[u8]) -> String {
    escape(&lossy(bytes))
}

pub(crate) fn escape_path(path: &Path) -> String {
    escape_bytes(path.as_os_str().as_bytes())
}

/// The first names of a list, and the number of the others.
pub(crate) fn first_few(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| escape(name)).collect();
    match names.len() {
        n if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_see_no_control_characters() {
        assert_eq!(escape("a\x1b[2Jb\n\tc"), "a\\u{1b}[2Jb\\n\\tc");
        assert_eq!(escape("\u{202e}gpj.exe"), "\\u{202e}gpj.exe");
        assert_eq!(escape("Caf\u{e9}/\u{732b}"), "Caf\u{e9}/\u{732b}");
    }

    #[test]
    fn bytes_that_are_not_utf_8_stay_visible() {
        assert_eq!(escape_bytes(b"a\xff\xfeb/\xc3"), "a\\xff\\xfeb/\\xc3");
    }
}
