//! What the pages point at is there: files, headings, and the pages that sources name.
//!
//! Not for what the pages say: tests of each crate compare tables and run examples.

#![cfg(test)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

/// Folders of builds and environments, and of what benchmarks write.
const NOT_OURS: &[&str] = &["target", "out", "demo"];

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
            let file = if path.is_empty() {
                page.clone()
            } else {
                normal(&page.with_file_name("").join(path))
            };
            if !root().join(&file).exists() {
                violations.push(format!("{}:{line}: no file {path}", page.display()));
            } else if !anchor.is_empty()
                && let Some(text) = pages.get(&file)
                && !anchors(text).iter().any(|heading| heading == anchor)
            {
                violations.push(format!(
                    "{}:{line}: no heading #{anchor} in {}",
                    page.display(),
                    file.display()
                ));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_page_that_a_source_names_is_there() {
    let mut violations = Vec::new();
    let endings = ["rs", "py", "pyi", "md", "ipynb", "toml", ""];
    for path in files(&endings) {
        // What was true of an earlier version stays as it was written.
        if path == Path::new("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        for (line, named) in named_pages(&text) {
            if !root().join(named).exists() {
                violations.push(format!("{}:{line}: no file {named}", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Every page of the repository, by its path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let text = |path: &Path| fs::read_to_string(root().join(path)).unwrap();
    let paths = files(&["md"]).into_iter();
    paths.map(|path| (path.clone(), text(&path))).collect()
}

/// Files with these extensions, `""` for none, by their paths from the root.
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

/// The targets of a page's links and pictures with their lines. Code is no link.
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

/// The anchors of a page's headings, made as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let Some(title) = line.trim_start_matches('#').strip_prefix(' ') else {
            continue;
        };
        if !line.starts_with('#') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let anchor: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        // The second heading of the same words is `words-1`.
        let n_before = found.iter().filter(|other| **other == anchor).count();
        if n_before > 0 {
            found.push(format!("{anchor}-{n_before}"));
        }
        found.push(anchor);
    }
    found
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

/// Pages and programs below docs/ that a text names by their path from the root.
fn named_pages(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for (at, _) in text.match_indices("docs/") {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
            // Part of a longer path, which is not the root's folder.
            if text[..at].ends_with(is_path) {
                continue;
            }
            let end = text[at..]
                .find(|c| !is_path(c))
                .map_or(text.len(), |n| at + n);
            let named = text[at..end].trim_end_matches('.');
            if [".md", ".py", ".svg"].iter().any(|e| named.ends_with(e)) {
                found.push((line, named));
            }
        }
    }
    found
}

/// `a/../b` as `b`, without asking the file system.
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

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}
