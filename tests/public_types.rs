//! Limits how many types a crate's documentation shows. Types that only our crates use are `#[doc(hidden)]`.

use std::fs;
use std::path::{Path, PathBuf};

/// Each limited crate, and the maximum number of types that its documentation may list.
const MOST_TYPES: &[(&str, usize)] = &[("format", 20), ("reader", 45)];

#[test]
fn crates_show_few_types() {
    for (name, most) in MOST_TYPES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(name);
        let mut types = Vec::new();
        add_types(&root.join("src/lib.rs"), &root.join("src"), &mut types);
        let n = types.len();
        assert!(
            n <= *most,
            "packds-{name} shows {n} types, more than {most}; hide what only our crates use: {types:?}"
        );
    }
}

#[test]
fn types_are_counted_where_they_are_documented() {
    let folder = crate::support::temp_dir();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "lib.rs",
        "#[cfg(test)]\nmod tests;\npub mod open;\n#[doc(hidden)]\npub mod hidden;\nmod own;\npub use own::{\n    Shown, shown, A_CONST,\n};\n\
         #[doc(hidden)]\npub use own::Unseen;\n#[derive(Debug)]\npub struct Here<T>(T);\nstruct Inner;\n",
    );
    write("open.rs", "/// A trait.\npub trait Open {\n    type Item;\n}\npub use other_crate::Foreign;\n");
    write("hidden.rs", "pub enum Hidden {}\n");
    let mut types = Vec::new();
    add_types(&folder.path().join("lib.rs"), folder.path(), &mut types);
    assert_eq!(types, ["Open", "Shown", "Here"]);
}

/// Adds the documented types of the module in `file`. Its submodules are in `folder`.
fn add_types(file: &Path, folder: &Path, types: &mut Vec<String>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    assert!(!text.is_empty(), "{} cannot be read", file.display());
    let is_own = |path: &str| {
        let first = path.split("::").next().unwrap_or_default();
        matches!(first, "self" | "crate" | "super") || text.contains(&format!("mod {first};\n"))
    };
    let mut is_hidden = false;
    // Items of the module itself start at the beginning of a line.
    let mut items = text.split('\n').peekable();
    while let Some(line) = items.next() {
        if line.starts_with("#[") || line.starts_with("//") {
            is_hidden |= line.contains("doc(hidden)") || line.contains("cfg(test)");
            continue;
        }
        let shown = line.strip_prefix("pub ").filter(|_| !is_hidden);
        is_hidden &= line.is_empty();
        let Some((kind, rest)) = shown.and_then(|item| item.split_once(' ')) else {
            continue;
        };
        match kind {
            "mod" => {
                let Some(name) = rest.strip_suffix(';') else { continue };
                let (file, inner) = module(folder, name);
                add_types(&file, &inner, types);
            }
            "use" => {
                let mut path = rest.to_owned();
                while let Some(more) = items.next_if(|_| !path.contains(';')) {
                    path.push_str(more);
                }
                let words = path.split(|c: char| !c.is_alphanumeric() && c != '_');
                if is_own(&path) {
                    types.extend(words.filter(|word| is_type(word)).map(str::to_owned));
                }
            }
            "struct" | "enum" | "trait" | "union" | "type" => {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                types.push(name.to_owned());
            }
            _ => {}
        }
    }
}

/// The file of a module, and the folder of its own modules.
fn module(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let inner = folder.join(name);
    let file = folder.join(format!("{name}.rs"));
    if file.exists() { (file, inner) } else { (inner.join("mod.rs"), inner) }
}

/// Whether a word is written like the name of a type.
fn is_type(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase)
}
