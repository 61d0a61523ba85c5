//! A small scanner of Rust sources, for rules about words. It finds code and its position.
//!
//! It is not a parser. Comments and literals are blanked, so that a word in a comment is not a violation. If a rule
//! exempts tests, items under `#[cfg(test)]` are blanked too.

use std::{
    collections::BTreeSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{read, relative, root};

pub(super) struct Source {
    /// The path from the workspace root.
    pub(super) path: String,
    /// The code without comments, literals and items under `#[cfg(test)]`. Line numbers are as in the file.
    pub(super) code: String,
    /// As `code`, but including tests.
    pub(super) all_code: String,
    /// The literals of `code`, at their positions in the file; all other bytes are blank.
    pub(super) literals: String,
    /// Whether the whole file is test code.
    pub(super) is_test: bool,
}

/// Every `.rs` file under `folder`, in order. Empty if the folder does not exist.
pub(super) fn sources(folder: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect_rs(&root().join(folder), &mut paths);
    paths.sort();
    let mut test_modules = BTreeSet::new();
    let mut sources: Vec<Source> = Vec::new();
    for path in &paths {
        let text = read(path);
        let all_code = blank_comments_and_literals(&text);
        let (code, modules, tests) = blank_test_items(&all_code);
        let mut literals = literals_alone(&text);
        for test in tests {
            literals.replace_range(test.clone(), &blank(&literals[test]));
        }
        // `mod x;` in a/mod.rs, a/lib.rs or a/main.rs is a/x.rs, in a/b.rs it is a/b/x.rs.
        let base = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") => path.with_file_name(""),
            _ => path.with_extension(""),
        };
        for module in modules {
            test_modules.insert(relative(&base.join(format!("{module}.rs"))));
            test_modules.insert(format!("{}/", relative(&base.join(module))));
        }
        sources.push(Source { path: relative(path), code, all_code, literals, is_test: false });
    }
    for source in &mut sources {
        let in_tests_folder = source.path.starts_with("tests/") || source.path.contains("/tests/");
        source.is_test = in_tests_folder
            || test_modules
                .iter()
                .any(|module| source.path == *module || (module.ends_with('/') && source.path.starts_with(module)));
    }
    sources
}

fn collect_rs(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            collect_rs(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

pub(super) fn line_at(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The words of `code` and their positions.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(move |c| !is_word(c))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
}

/// The first two parts of every path that starts with `std`, in order, including paths inside `use std::{..}`.
pub(super) fn standard_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = BTreeSet::new();
    for (at, _) in words(code).filter(|(_, word)| *word == "std") {
        let rest = code[at + "std".len()..].trim_start();
        let Some(rest) = rest.strip_prefix("::") else {
            continue;
        };
        let start = code.len() - rest.len();
        let group = rest.trim_start();
        if !group.starts_with('{') {
            found.extend(words(rest).next().map(|(_, word)| (line_at(code, start), format!("std::{word}"))));
            continue;
        }
        let start = code.len() - group.len();
        let group = &group[..matching_brace(group)];
        let mut depth = 0;
        let mut first_of_part = false;
        for (idx, c) in group.char_indices() {
            match c {
                '{' => {
                    depth += 1;
                    first_of_part = true;
                }
                '}' => depth -= 1,
                ',' => first_of_part = true,
                _ if depth == 1 && first_of_part && c.is_alphanumeric() => {
                    first_of_part = false;
                    found.extend(
                        words(&group[idx..])
                            .next()
                            .map(|(_, word)| (line_at(code, start + idx), format!("std::{word}"))),
                    );
                }
                _ => {}
            }
        }
    }
    found.into_iter().collect()
}

/// The length of `code` up to the end of its first block.
fn matching_brace(code: &str) -> usize {
    let mut depth = 0_usize;
    for (idx, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return idx + 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

/// Blanks items under `#[cfg(test)]` or `#[cfg(all(test, ..))]`. Also returns the names of the items that are modules
/// in separate files, and the positions of all items.
fn blank_test_items(code: &str) -> (String, Vec<String>, Vec<Range<usize>>) {
    let mut blanked = code.to_owned();
    let (mut modules, mut tests) = (Vec::new(), Vec::new());
    for marker in ["cfg(test)]", "cfg(all(test"] {
        for (at, _) in code.match_indices(marker) {
            let start = code[..at].rfind('#').unwrap_or(at);
            if code[start..at].starts_with("#!") {
                blanked = blank(code);
                tests.push(0..code.len());
                continue;
            }
            let item = &code[start..];
            let ends_in_semicolon = item.find(';').unwrap_or(item.len()) < item.find('{').unwrap_or(item.len());
            let len = if ends_in_semicolon {
                let len = item.find(';').map_or(item.len(), |idx| idx + 1);
                let mut after_mod = words(&item[..len]).skip_while(|(_, word)| *word != "mod");
                modules.extend(after_mod.nth(1).map(|(_, name)| name.to_owned()));
                len
            } else {
                matching_brace(item)
            };
            blanked.replace_range(start..start + len, &blank(&code[start..start + len]));
            tests.push(start..start + len);
        }
    }
    (blanked, modules, tests)
}

/// Replaces every byte with a space, except line breaks.
fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// Blanks comments, strings and character literals. All other bytes keep their positions.
pub(super) fn blank_comments_and_literals(text: &str) -> String {
    split(text).0
}

/// The opposite of `blank_comments_and_literals`: strings and character literals stay where they are, and every other
/// byte is blank.
fn literals_alone(text: &str) -> String {
    split(text).1
}

/// The code without comments and literals, and the literals alone.
fn split(text: &str) -> (String, String) {
    let mut literals = blank(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(c) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment_len(rest)
        } else if c == '"' {
            string_len(rest)
        } else if c == '\'' {
            char_literal_len(rest)
        } else if !after_word && (rest.starts_with('r') || rest.starts_with("br")) {
            raw_string_len(rest)
        } else {
            0
        };
        if len == 0 {
            out.push(c);
            after_word = c.is_alphanumeric() || c == '_';
            rest = &rest[c.len_utf8()..];
        } else {
            // The prefix of a raw string stays in the code, like that of a plain string.
            let prefix = rest.find(['"', '\'', '/']).unwrap_or(0);
            out.push_str(rest[..prefix].trim_end_matches('#'));
            out.push_str(&blank(&rest[rest[..prefix].trim_end_matches('#').len()..len]));
            if c != '/' {
                let at = text.len() - rest.len();
                literals.replace_range(at..at + len, &rest[..len]);
            }
            after_word = false;
            rest = &rest[len..];
        }
    }
    (out, literals)
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (idx, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return idx + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal. 0 for a lifetime, which looks like the start of a literal.
fn char_literal_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // The escaped character itself may be a quote.
            let after_escape = chars.next().map_or(text.len(), |(idx, c)| idx + c.len_utf8());
            text[after_escape..].find('\'').map_or(text.len(), |idx| after_escape + idx + 1)
        }
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(idx, _)| idx + 1),
        None => 0,
    }
}

/// The length of the raw string. 0 if none starts here.
fn raw_string_len(text: &str) -> usize {
    let after_prefix = text.trim_start_matches('b').trim_start_matches('r');
    let hashes = after_prefix.len() - after_prefix.trim_start_matches('#').len();
    if !after_prefix[hashes..].starts_with('"') || !text[..text.len() - after_prefix.len()].ends_with('r') {
        return 0;
    }
    let body = text.len() - after_prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    text[body..].find(&end).map_or(text.len(), |idx| body + idx + end.len())
}

#[test]
fn comments_literals_and_tests_are_not_code() {
    let text = r####"
        // println! std::fs
        /* unsafe /* nested */ unsafe */
        const A: &str = "unsafe \" std::fs";
        const B: &[u8] = br#"unsafe " "#;
        const C: (char, char) = ('"', '\'');
        fn f<'a>(x: &'a str) {}
        #[cfg(test)]
        mod tests { fn g() { println!("{}", "}"); } }
        fn after() { real!(); }
    "####;
    let code = blank_test_items(&blank_comments_and_literals(text)).0;
    let found: Vec<&str> = words(&code).map(|(_, word)| word).collect();
    let expected = "const A str const B u8 br const C char char fn f a x a str fn after real";
    assert_eq!(found.join(" "), expected);
    assert_eq!(code.lines().count(), text.lines().count());
    let literals = literals_alone(text);
    let found: Vec<&str> = literals.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let first = found.first().copied().unwrap_or_default();
    assert_eq!(first, r#""unsafe \" std::fs""#);
    assert_eq!(literals.len(), text.len());
}

#[test]
fn grouped_imports_are_seen_in_full() {
    let code = "use std::{\n    io::{self, Read},\n    time::{Duration, Instant},\n};\nlet x = std::fs::read(p);";
    let found: Vec<_> = standard_paths(code).into_iter().map(|(line, path)| format!("{line} {path}")).collect();
    assert_eq!(found, ["2 std::io", "3 std::time", "5 std::fs"]);
}
