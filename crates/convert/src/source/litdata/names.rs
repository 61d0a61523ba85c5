//! The names of the values of a sample, from the tree of dictionaries and lists that it was.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::error::ConvertError;

/// The name of the only value of samples that are not a dictionary or a list.
const ONLY: &str = "data";

/// The Python types of nodes with keys.
const DICTIONARIES: [&str; 2] = ["builtins.dict", "collections.OrderedDict"];
/// The Python types of nodes whose values are numbered.
const LISTS: [&str; 4] = ["builtins.list", "builtins.tuple", "collections.deque", "collections.namedtuple"];

/// A node of the tree.
#[derive(Debug, Deserialize)]
struct Node {
    /// The Python type. `None` for a value.
    #[serde(rename = "type")]
    type_name: Option<String>,
    /// The keys of a dictionary, as a list or as its JSON text.
    context: Option<Value>,
    #[serde(default)]
    children_spec: Vec<Node>,
}

/// The names of `n` values. A value in a nested dictionary is called `KEY.INNER`, and values of lists and tuples by number. `spec` is the
/// JSON text of the tree.
pub(super) fn of(path: &Path, spec: Option<&str>, n: usize) -> Result<Vec<String>, ConvertError> {
    let Some(spec) = spec else {
        return Ok((0..n).map(|number| number.to_string()).collect());
    };
    let wrong = |reason: String| ConvertError::malformed(path, "data_spec", reason);
    let (version, tree): (u64, Node) = serde_json::from_str(spec).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    if version != 1 {
        return Err(wrong(format!("expected version 1 of the tree, found {version}")));
    }
    if let Some(other) = tree.other_type() {
        let reason = format!("expected samples of dictionaries, lists and tuples, found '{}'", other.escape_debug());
        let hint = "write each sample as a dictionary of values, and run litdata.optimize again";
        return Err(ConvertError::unsupported(path, "data_spec", reason, hint));
    }
    let mut names = Vec::new();
    tree.add_names("", &mut names).map_err(wrong)?;
    match names.len() == n {
        true => Ok(names),
        false => Err(wrong(format!("expected a name for each of {n} values in data_format, found {}", names.len()))),
    }
}

impl Node {
    /// The first type that is neither a dictionary nor a list.
    fn other_type(&self) -> Option<&str> {
        let is_other = |name: &&str| !DICTIONARIES.contains(name) && !LISTS.contains(name);
        let own = self.type_name.as_deref().filter(is_other);
        own.or_else(|| self.children_spec.iter().find_map(Self::other_type))
    }

    /// Adds the names of all values below this node.
    fn add_names(&self, name: &str, names: &mut Vec<String>) -> Result<(), String> {
        let Some(type_name) = &self.type_name else {
            names.push(if name.is_empty() { ONLY } else { name }.to_owned());
            return Ok(());
        };
        let n = self.children_spec.len();
        let keys = match DICTIONARIES.contains(&type_name.as_str()) {
            true => self.keys()?,
            false => (0..n).map(|number| number.to_string()).collect(),
        };
        if keys.len() != n {
            return Err(format!("expected {n} keys for {n} values, found {}", keys.len()));
        }
        for (key, child) in keys.iter().zip(&self.children_spec) {
            let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            child.add_names(&inner, names)?;
        }
        Ok(())
    }

    /// The keys of a dictionary.
    fn keys(&self) -> Result<Vec<String>, String> {
        let parsed: Value;
        let keys = match &self.context {
            Some(Value::String(text)) => {
                parsed = serde_json::from_str(text).map_err(|e| format!("the keys cannot be read: {e}"))?;
                &parsed
            }
            Some(keys) => keys,
            None => &Value::Null,
        };
        let keys = keys.as_array().ok_or_else(|| "expected a list of keys".to_owned())?;
        let key = |key: &Value| match key {
            Value::String(key) => key.clone(),
            other => other.to_string(),
        };
        Ok(keys.iter().map(key).collect())
    }
}
