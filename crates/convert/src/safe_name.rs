//! Converts names in a pack to file names. Names may contain anything, but no file may end up outside the target
//! folder.

use std::collections::BTreeSet;

/// Maximum length of a name in bytes. File systems allow 255, but a number and extensions are appended to the name.
const MAX_BYTES: usize = 120;

/// Converts `name` to a similar file name: a single path component that is not empty or hidden and has no control
/// characters.
pub fn safe_name(name: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(name).chars() {
        let unsafe_here = c.is_control() || matches!(c, '/' | '\\' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let hides = c == '.' && out.is_empty();
        let c = if unsafe_here || hides { '_' } else { c };
        if out.len() + c.len_utf8() > MAX_BYTES {
            break;
        }
        out.push(c);
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

/// Converts a list of names like [`safe_name`]. The results are unique.
pub fn safe_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut out = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let safe = safe_name(name);
        let mut unique = safe.clone();
        while !taken.insert(unique.clone()) {
            unique = format!("{unique}-{i}");
        }
        out.push(unique);
    }
    out
}

/// The file name in a path, without its extension. Empty if the path is empty.
pub fn stem(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(&[]);
    match name.iter().rposition(|b| *b == b'.') {
        Some(dot) if dot > 0 => name.get(..dot).unwrap_or(name),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_in_their_folder() {
        let safe = |name: &str| safe_name(name.as_bytes());
        assert_eq!(safe("../../x"), "_._.._x");
        assert_eq!(safe(".."), "_.");
        assert_eq!(safe("."), "_");
        assert_eq!(safe(""), "_");
        assert_eq!(safe("/etc/passwd"), "_etc_passwd");
        assert_eq!(safe("a\0b\nc\\d"), "a_b_c_d");
        assert_eq!(safe("great white shark"), "great white shark");
        assert_eq!(safe(&"\u{e9}".repeat(100)).len(), 120);
        assert_eq!(safe_name(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn names_that_become_equal_are_told_apart() {
        let names: [&[u8]; 4] = [b"a/b", b"a\\b", b"a_b-1", b"c"];
        assert_eq!(safe_names(names), ["a_b", "a_b-1", "a_b-1-2", "c"]);
    }

    #[test]
    fn stems_have_no_folder_and_no_extension() {
        assert_eq!(stem(b"cat/a.b.jpg"), b"a.b");
        assert_eq!(stem(b"cat/.hidden"), b".hidden");
        assert_eq!(stem(b"/etc/passwd"), b"passwd");
        assert_eq!(stem(b"x/"), b"");
    }
}
