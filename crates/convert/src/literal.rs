//! Paths as they are written in the lines of code that hints show.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as a string literal of Python, which is never a part of another literal.
pub(crate) fn python(path: &Path) -> String {
    let mut text = String::from("\"");
    for piece in path.as_os_str().as_bytes().utf8_chunks() {
        for c in piece.valid().chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => text.push(c),
            }
        }
        // Python's names of files have such characters in place of bytes that are not UTF-8.
        piece.invalid().iter().for_each(|byte| text.push_str(&format!("\\udc{byte:02x}")));
    }
    text + "\""
}

/// A path as a word of a shell.
pub(crate) fn shell(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn quotes_and_other_bytes_stay_in_the_literal() {
        let path = Path::new(OsStr::from_bytes(b"it's/\"a\"\\\x1b\xff"));
        assert_eq!(python(path), r#""it's/\"a\"\\\u001b\udcff""#);
        assert_eq!(shell(Path::new("it's")), r"'it'\''s'");
    }
}
