//! Compares the classes of two packs.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::fields::Common;
use super::{Few, index};
use crate::edit::{Taken, class_names};
use crate::error::ConvertError;

/// How the classes of a label field differ. Each class is listed with its id.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClassChanges {
    /// The label field.
    pub field: String,
    /// The classes that only the second pack has.
    pub added: Few<(u64, String)>,
    /// The classes that only the first pack has.
    pub removed: Few<(u64, String)>,
    /// The ids whose class has another name, with the old and the new name. Neither pack has the other name.
    pub renamed: Few<(u64, String, String)>,
    /// The classes that have another id, with the old and the new id.
    pub moved: Few<(String, u64, u64)>,
}

impl ClassChanges {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.n + self.removed.n + self.renamed.n + self.moved.n == 0
    }

    pub(super) fn json(&self) -> Value {
        let classes = |few: &Few<(u64, String)>| -> Value {
            few.first.iter().map(|(id, name)| json!({"id": id, "class": name})).collect()
        };
        let renamed = self.renamed.first.iter().map(|(id, old, new)| json!({"id": id, "old": old, "new": new}));
        let moved = self.moved.first.iter().map(|(name, old, new)| json!({"class": name, "old": old, "new": new}));
        json!({
            "field": self.field,
            "n_added": self.added.n,
            "n_removed": self.removed.n,
            "n_renamed": self.renamed.n,
            "n_moved": self.moved.n,
            "added": classes(&self.added),
            "removed": classes(&self.removed),
            "renamed": renamed.collect::<Value>(),
            "moved": moved.collect::<Value>(),
        })
    }
}

/// The classes of all label fields that both packs have.
pub(super) struct AllClasses {
    pub(super) changes: Vec<ClassChanges>,
    /// By the name of the field.
    pub(super) ids: HashMap<String, Ids>,
}

/// The ids of a label field in both packs.
#[derive(Debug, Default)]
pub(super) struct Ids {
    names: [Vec<String>; 2],
    /// The id in the second pack of each class of the first one. Empty if both have the same ids.
    new: Vec<i64>,
}

impl Ids {
    /// The id in the second pack of a class of the first one. No id if it lacks the class.
    pub(super) fn new_id(&self, old: i64) -> i64 {
        match usize::try_from(old) {
            Ok(place) if !self.new.is_empty() => self.new.get(place).copied().unwrap_or(old),
            _ => old,
        }
    }

    /// Whether an id stands for different classes.
    pub(super) fn differ(&self) -> bool {
        !self.new.is_empty()
    }

    /// The name of a class, or its id.
    pub(super) fn shown(&self, pack: usize, id: i64) -> Value {
        let name = usize::try_from(id).ok().and_then(|id| self.names.get(pack)?.get(id));
        name.map_or_else(|| id.into(), |name| name.as_str().into())
    }
}

/// Compares the classes of each label field.
pub(super) fn compare<D: AsRef<[u8]>>(
    [one, two]: &[Taken<'_, D>; 2],
    common: &Common,
    limit: u64,
) -> Result<AllClasses, ConvertError> {
    let mut all = AllClasses { changes: Vec::new(), ids: HashMap::new() };
    for pair in common.columns.iter().chain(&common.body) {
        if !pair.field.has_class_ids() {
            continue;
        }
        let names = [class_names(one, &pair.field)?, class_names(two, &pair.field)?];
        let (changes, new) = compare_names(&pair.field.name, &names, limit);
        all.ids.insert(pair.field.name.clone(), Ids { names, new });
        all.changes.push(changes);
    }
    Ok(all)
}

/// How the classes differ, and the new id of each old class.
fn compare_names(field: &str, [old, new]: &[Vec<String>; 2], limit: u64) -> (ClassChanges, Vec<i64>) {
    let mut changes = ClassChanges {
        field: field.to_owned(),
        added: Few::new(limit),
        removed: Few::new(limit),
        renamed: Few::new(limit),
        moved: Few::new(limit),
    };
    if old == new {
        return (changes, Vec::new());
    }
    // If several classes have one name, the first one counts.
    let by_name = |names: &[String]| {
        let mut ids: HashMap<String, u64> = HashMap::new();
        for (id, name) in (0..).zip(names) {
            ids.entry(name.clone()).or_insert(id);
        }
        ids
    };
    let (old_ids, new_ids) = (by_name(old), by_name(new));
    let mut ids = Vec::new();
    for (id, name) in (0..).zip(old) {
        let other = new.get(index(id));
        let own = i64::try_from(id).unwrap_or(-1);
        match (new_ids.get(name), other) {
            // Classes of equal names keep their ids.
            (Some(_), Some(other)) if other == name => ids.push(own),
            (Some(found), _) => {
                changes.moved.push(|| (name.clone(), id, *found));
                ids.push(i64::try_from(*found).unwrap_or(-1));
            }
            (None, Some(other)) if !old_ids.contains_key(other) => {
                changes.renamed.push(|| (id, name.clone(), other.clone()));
                ids.push(own);
            }
            (None, _) => {
                changes.removed.push(|| (id, name.clone()));
                // Without names, ids are compared as they are.
                ids.push(if new.is_empty() { own } else { i64::MIN });
            }
        }
    }
    for (id, name) in (0..).zip(new) {
        let takes_old_place = old.get(index(id)).is_some_and(|old| !new_ids.contains_key(old));
        if !old_ids.contains_key(name) && !takes_old_place {
            changes.added.push(|| (id, name.clone()));
        }
    }
    (changes, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_added_removed_renamed_and_moved() {
        let names = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let (changes, ids) =
            compare_names("label", &[names("cat dog eel fox gnu"), names("cat fox owl eel hen ram")], 9);
        assert_eq!(changes.moved.first, [("eel".to_owned(), 2, 3), ("fox".to_owned(), 3, 1)]);
        assert_eq!(changes.renamed.first, [(4, "gnu".to_owned(), "hen".to_owned())]);
        assert_eq!(changes.removed.first, [(1, "dog".to_owned())]);
        assert_eq!(changes.added.first, [(2, "owl".to_owned()), (5, "ram".to_owned())]);
        assert_eq!(ids, [0, i64::MIN, 3, 1, 4]);
        let (same, ids) = compare_names("label", &[names("a b"), names("a b")], 9);
        assert!(same.is_empty() && ids.is_empty());
        // A pack without names has the same ids.
        let (unnamed, ids) = compare_names("label", &[names("a b"), Vec::new()], 1);
        assert_eq!((unnamed.removed.n, unnamed.removed.first.len(), ids), (2, 1, vec![0, 1]));
    }
}
