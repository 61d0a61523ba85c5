//! Compares the fields of two packs.

use packds_format::{DType, Field, Role, Schema, Store};
use serde_json::{Value, json};

use crate::edit::differences;

/// How the fields of two packs differ.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FieldChanges {
    /// The fields that only the second pack has.
    pub added: Vec<String>,
    /// The fields that only the first pack has.
    pub removed: Vec<String>,
    /// The properties that differ: the field, the property, and both values.
    pub changed: Vec<(String, String, Value, Value)>,
    /// Whether the fields that both packs have are in another order.
    pub other_order: bool,
}

impl FieldChanges {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty() && !self.other_order
    }

    pub(super) fn json(&self) -> Value {
        let changed = self
            .changed
            .iter()
            .map(|(field, key, old, new)| json!({"field": field, "key": key, "old": old, "new": new}));
        json!({
            "added": self.added,
            "removed": self.removed,
            "changed": changed.collect::<Value>(),
            "other_order": self.other_order,
        })
    }
}

/// The fields of two packs whose items can be compared, as pairs of their numbers.
pub(super) struct Common {
    pub(super) columns: Vec<Pair>,
    pub(super) body: Vec<Pair>,
    /// Whether the items of the body are the same ones in the same order, so that checksums of samples can be compared.
    pub(super) same_items: bool,
    /// Whether equal bodies are also stored as equal bytes.
    pub(super) same_bytes: bool,
    /// The checksums of the samples.
    pub(super) checksums: Option<(usize, usize)>,
}

/// A field that both packs have.
pub(super) struct Pair {
    /// Its numbers in the packs.
    pub(super) numbers: [usize; 2],
    /// Its element type in each pack.
    pub(super) dtypes: [DType; 2],
    pub(super) field: Field,
    /// Whether the items can be compared byte by byte.
    pub(super) is_alike: bool,
}

impl Common {
    /// The differences between the fields, and the fields whose items can be compared.
    pub(super) fn of(one: &Schema, two: &Schema) -> (FieldChanges, Self) {
        let mut changes = FieldChanges::default();
        let mut pairs = Vec::new();
        for (number, field) in two.fields().iter().enumerate() {
            let Ok(before) = one.index_of(&field.name) else {
                changes.added.push(field.name.clone());
                continue;
            };
            let Some(old) = one.fields().get(before) else { continue };
            for (key, old, new) in differences(old, field) {
                changes.changed.push((field.name.clone(), key, old, new));
            }
            let is_alike = old.kind == field.kind && old.dtype == field.dtype && old.shape == field.shape;
            pairs.push((
                Pair { numbers: [before, number], dtypes: [old.dtype, field.dtype], field: field.clone(), is_alike },
                old.store,
            ));
        }
        let is_removed = |field: &&Field| two.index_of(&field.name).is_err();
        changes.removed = one.fields().iter().filter(is_removed).map(|field| field.name.clone()).collect();
        changes.other_order = !pairs.is_sorted_by_key(|(pair, _)| pair.numbers[0]);
        let checksums = one.by_role(Role::SampleCrc32c, None).zip(two.by_role(Role::SampleCrc32c, None));
        let bodies = || one.body().map(|(_, field)| field).zip(two.body().map(|(_, field)| field));
        let same_number = one.body().count() == two.body().count();
        let holds_same = |(old, new): (&Field, &Field)| {
            old.name == new.name && old.kind == new.kind && old.dtype == new.dtype && old.shape == new.shape
        };
        let mut common = Self {
            columns: Vec::new(),
            body: Vec::new(),
            same_items: same_number && bodies().all(holds_same),
            same_bytes: same_number && bodies().all(|(old, new)| old == new),
            checksums: checksums.map(|((old, _), (new, _))| (old, new)),
        };
        for (pair, old_store) in pairs {
            // The number in the source says where a sample comes from, and the checksums say nothing new.
            let says_nothing = matches!(pair.field.role, Some(Role::SourceId | Role::SampleCrc32c));
            let is_label = matches!(pair.field.role, Some(Role::Label | Role::Labels));
            match (old_store, pair.field.store) {
                (Store::Column, Store::Column) if !says_nothing && (pair.is_alike || is_label) => {
                    common.columns.push(pair);
                }
                (Store::Body, Store::Body) if pair.is_alike => common.body.push(pair),
                _ => {}
            }
        }
        (changes, common)
    }
}
