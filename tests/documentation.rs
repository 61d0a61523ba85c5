//! Tests that references are valid: from pages to files, headings, commands and messages, and from sources to pages.
//!
//! Tables and examples are tested by the crates that they describe.

#![cfg(test)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

/// Folders with builds, environments and output of benchmarks.
const NOT_OURS: &[&str] = &["target", "out", "demo"];
/// Folders that the pages mention, but that do not exist until a program creates them.
const MADE: &[&str] = &["bench/gpu/", "bench/out", "bench/.venv", "fuzz/corpus"];

#[test]
fn every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let pages = pages();
    assert!(pages.len() > 30, "only {} pages found", pages.len());
    let mut violations = Vec::new();
    for (page, text) in &pages {
        for (line, target) in links(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { normal(&page.with_file_name("").join(path)) };
            if !root().join(&file).exists() {
                violations.push(format!("{}:{line}: no file {path}", page.display()));
            } else if !anchor.is_empty()
                && let Some(text) = pages.get(&file)
                && !anchors(text).iter().any(|heading| heading == anchor)
            {
                violations.push(format!("{}:{line}: no heading #{anchor} in {}", page.display(), file.display()));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_page_and_heading_that_a_source_names_is_there() {
    let mut violations = Vec::new();
    let endings = ["rs", "py", "pyi", "md", "ipynb", "toml", ""];
    for path in files(&endings) {
        // Statements about earlier versions may refer to what no longer exists.
        if path == Path::new("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        for (line, named, heading) in named_pages(&text) {
            let Ok(page) = fs::read_to_string(root().join(named)) else {
                violations.push(format!("{}:{line}: no file {named}", path.display()));
                continue;
            };
            let is_there = |heading| headings(&page).any(|title| title == heading);
            if heading.is_some_and(|heading| !is_there(heading)) {
                violations.push(format!("{}:{line}: no heading {heading:?} in {named}", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let folders = ["bench", "crates", "docs", "examples", "fixtures", "fuzz", "scripts", "tests"];
    let mut violations = Vec::new();
    for (page, text) in &pages() {
        // Statements about earlier versions may refer to what no longer exists.
        if page == Path::new("CHANGELOG.md") {
            continue;
        }
        for (line, prose) in prose(text) {
            for code in prose.split('`').skip(1).step_by(2) {
                let named = code.split_whitespace().next().unwrap_or_default();
                let is_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
                let folder = named.split_once('/').map_or("", |(folder, _)| folder);
                if folders.contains(&folder)
                    && named.chars().all(is_path)
                    && !MADE.contains(&named)
                    && !root().join(named).exists()
                {
                    violations.push(format!("{}:{line}: no {named}", page.display()));
                }
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_module_of_the_map_is_there() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = map.lines().skip_while(|line| *line != "| crate | modules |");
    let mut missing = Vec::new();
    let mut n_modules = 0;
    for row in rows.skip(2).take_while(|line| line.starts_with('|')) {
        let mut names = row.split('`').skip(1).step_by(2);
        let folder = Path::new("crates").join(names.next().unwrap());
        // Modules are in lower case, and may be paths within the crate.
        for name in names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || "/_.".contains(c))) {
            let places = [format!("src/{name}.rs"), format!("src/{name}"), name.to_owned()];
            if !places.iter().any(|place| root().join(&folder).join(place).exists()) {
                missing.push(format!("{}: {name}", folder.display()));
            }
            n_modules += 1;
        }
    }
    assert!(n_modules > 30, "only {n_modules} modules found");
    assert!(missing.is_empty(), "ARCHITECTURE.md names modules that do not exist: {missing:?}");
}

#[test]
fn every_command_of_the_pages_is_understood() {
    let folder = std::env::temp_dir().join(format!("packds-pages-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // Lists of samples are read when options are parsed.
    fs::write(folder.join("keep.txt"), "0\n").unwrap();
    let mut violations = Vec::new();
    let mut n_commands = 0;
    for (page, text) in &pages() {
        for (line, words) in commands(text) {
            // The command's other files do not exist, so it ends after parsing its options.
            let output = Command::new(env!("CARGO_BIN_EXE_packds"))
                .args(&words)
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("For more information, try") {
                violations.push(format!("{}:{line}: {words:?}: {said}", page.display()));
            }
            n_commands += 1;
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(n_commands > 50, "only {n_commands} commands found");
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn the_pages_have_every_subcommand_and_option() {
    let page = fs::read_to_string(root().join("docs/reference/command.md")).unwrap();
    let docs = pages().into_iter().filter(|(path, _)| path.starts_with("docs"));
    let docs: String = docs.map(|(_, text)| text).collect();
    let mut missing = Vec::new();
    for parent in ["", "bench"] {
        let listed = help(parent);
        let names = listed
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next());
        // For `bench`, its subcommands are checked instead.
        for name in names.filter(|name| !["help", "bench"].contains(name)) {
            let command = format!("{parent} {name}");
            let command = command.trim();
            if !page.contains(&format!("| `packds {command}")) {
                missing.push(format!("{command} in command.md"));
            }
            let help = help(command);
            // In the help's text, a line may also start with an option and a comma.
            let options = help.lines().filter_map(|line| {
                let words = line.trim_start().starts_with('-').then(|| line.split_whitespace())?;
                let option = words.into_iter().find(|word| word.starts_with("--"))?;
                Some(option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
            });
            for option in options.filter(|option| !docs.contains(option)) {
                missing.push(format!("{command} {option}"));
            }
        }
    }
    assert!(missing.is_empty(), "the pages lack {missing:?}");
}

/// What `packds COMMAND --help` prints.
fn help(command: &str) -> String {
    let mut packds = Command::new(env!("CARGO_BIN_EXE_packds"));
    let words = command.split_whitespace().chain(["--help"]);
    String::from_utf8(packds.args(words).output().unwrap().stdout).unwrap()
}

#[test]
fn every_message_that_a_page_explains_is_one_of_the_sources() {
    let mut sources = String::new();
    for path in files(&["rs", "py"]) {
        let is_ours = path.starts_with("crates") && !path.iter().any(|part| part == "tests");
        if is_ours {
            sources += &fs::read_to_string(root().join(path)).unwrap();
        }
    }
    let mut violations = Vec::new();
    let mut n_messages = 0;
    for (page, text) in &pages() {
        for (line, message) in messages(text) {
            n_messages += 1;
            // An ellipsis matches anything.
            for part in message.split("..").map(str::trim) {
                if part.len() > 5 && !sources.contains(part) {
                    violations.push(format!("{}:{line}: no source says {part:?}", page.display()));
                }
            }
        }
    }
    assert!(n_messages > 40, "only {n_messages} messages found");
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// The first quoted text of each row in tables of messages or errors, with its line.
fn messages(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_table = false;
    for (line, row) in prose(page) {
        is_table = row.starts_with("| message |") || row.starts_with("| error |") || is_table && row.starts_with('|');
        if !is_table || !row.starts_with("| `") {
            continue;
        }
        let first = row.split(" | ").next().unwrap_or_default();
        found.extend(first.split('`').skip(1).step_by(2).map(|message| (line, message)));
    }
    found
}

/// The commands in the fenced code of a page, as words of a shell, with their lines.
pub(crate) fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let in_prose: Vec<usize> = prose(page).map(|(line, _)| line).collect();
    for (line, text) in (1..).zip(page.lines()) {
        let text = text.trim().trim_start_matches("$ ").trim_start_matches("env/bin/");
        // Lines with brackets are summaries of the syntax. Lines with ` = ` are dependencies in Cargo.toml.
        let is_command = text.starts_with("packds ") && !text.starts_with("packds =") && !text.contains('[');
        if is_command && in_prose.binary_search(&line).is_err() {
            found.push((line, shell_words(text).split_off(1)));
        }
    }
    found
}

/// The words of a command up to a comment, a pipe or a redirection.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            (' ', None) if !word.is_empty() => {
                if ["#", "|", "&&", ">"].contains(&word.as_str()) {
                    return words;
                }
                words.push(std::mem::take(&mut word));
            }
            (' ', None) => {}
            _ => word.push(c),
        }
    }
    words
}

/// Every page of the repository, by path from the root.
pub(crate) fn pages() -> BTreeMap<PathBuf, String> {
    let text = |path: &Path| fs::read_to_string(root().join(path)).unwrap();
    let paths = files(&["md"]).into_iter();
    paths.map(|path| (path.clone(), text(&path))).collect()
}

/// Files with these extensions (`""` for none), by path from the root.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            if name.starts_with('.') || NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            let kind = entry.file_type().unwrap();
            let extension = path.extension().map_or("", |text| text.to_str().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && extensions.contains(&extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The targets of a page's links and pictures with their lines. Links in code are ignored.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let mut rest = prose;
        while let Some(at) = rest.find("](") {
            let is_code = rest[..at].matches('`').count() % 2 == 1;
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            if !is_code {
                found.push((line, &rest[..end]));
            }
            rest = &rest[end..];
        }
    }
    found
}

/// The anchors of a page's headings, as on GitHub.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for title in headings(text) {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let anchor: String = title.to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        // The anchor of a second heading with the same words is `words-1`.
        let n_before = found.iter().filter(|other| **other == anchor).count();
        if n_before > 0 {
            found.push(format!("{anchor}-{n_before}"));
        }
        found.push(anchor);
    }
    found
}

/// The titles of a page's headings.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let lines = prose(text).map(|(_, line)| line);
    let marked = lines.filter(|line| line.starts_with('#'));
    marked.filter_map(|line| Some(line.trim_start_matches('#').strip_prefix(' ')?.trim()))
}

/// The lines of a page outside of fenced code, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// References in a text to pages and programs below docs/, with the heading if there is one: `PAGE, "HEADING"`.
fn named_pages(text: &str) -> Vec<(usize, &str, Option<&str>)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for (at, _) in text.match_indices("docs/") {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
            // This is part of a longer path, so it is not in the root folder.
            if text[..at].ends_with(is_path) {
                continue;
            }
            let end = text[at..].find(|c| !is_path(c)).map_or(text.len(), |n| at + n);
            let named = text[at..end].trim_end_matches('.');
            let quoted = text[end..].strip_prefix(", \"");
            let heading = quoted.and_then(|quoted| Some(quoted.split_once('"')?.0));
            if [".md", ".py", ".svg"].iter().any(|e| named.ends_with(e)) {
                found.push((line, named, heading));
            }
        }
    }
    found
}

/// Turns `a/../b` into `b` without accessing the file system.
fn normal(path: &Path) -> PathBuf {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts.into_iter().collect()
}

pub(crate) fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}
