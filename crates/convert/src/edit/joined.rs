//! The schema and the classes of a pack that is made from several packs.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use packds_format::{Classes, DType, Field, FormatError, Pack, Role, Scalar, Schema};
use packds_system::{counted, to_u64, to_usize};
use serde_json::Value;

use super::added::Added;
use super::relabel::{NewIds, Relabelled};
use super::{Changes, Taken};
use crate::error::ConvertError;
use crate::label_set;

const SAME_FIELDS: &str =
    "packs can be merged if their fields are the same: convert the sources again with the same options";

/// The new pack's fields, and where their items come from.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) schema: Schema,
    /// For each field of the new pack, its number in the schema of the packs.
    origins: Vec<usize>,
    /// The class names of each label field. Nothing is counted.
    pub(super) classes: Vec<Classes>,
    /// For each pack, the new class ids of each field of the packs whose ids change.
    maps: Vec<HashMap<usize, IdMap>>,
    /// The fields that follow those of the packs.
    added: Vec<Arc<Added>>,
    /// For a field of the packs, the new class id of each sample.
    labels: Option<(usize, Vec<i64>)>,
    pub(super) warnings: Vec<String>,
}

/// The new id of each class of a pack.
#[derive(Debug)]
struct IdMap {
    ids: Vec<i64>,
    /// The type of a label, or the length of a set of labels.
    to: Field,
}

impl Joined {
    /// Fails if a field differs. Classes are joined by name.
    pub(super) fn of<D: AsRef<[u8]>>(taken: &[Taken<'_, D>], changes: &Changes) -> Result<Self, ConvertError> {
        let Some(first) = taken.first() else {
            return Err(ConvertError::options("no packs are given", "pass at least one pack"));
        };
        for other in taken.iter().skip(1) {
            check_fields(first, other)?;
        }
        let mut fields = first.pack.schema().fields().to_vec();
        let mut joined = Self {
            schema: first.pack.schema().clone(),
            origins: (0..fields.len()).filter(|number| !changes.dropped.contains(number)).collect(),
            classes: Vec::new(),
            maps: taken.iter().map(|_| HashMap::new()).collect(),
            added: changes.added.iter().map(|(added, _)| Arc::clone(added)).collect(),
            labels: None,
            warnings: Vec::new(),
        };
        for (number, field) in fields.iter_mut().enumerate() {
            let is_kept = !changes.dropped.contains(&number);
            if is_kept && field.has_class_ids() {
                match &changes.relabelled {
                    Some((_, relabelled)) if relabelled.number == number => joined.relabel(relabelled, field),
                    _ => joined.join_classes(taken, number, field)?,
                }
            }
        }
        let kept = joined.origins.iter().filter_map(|number| fields.get(*number).cloned());
        let added = joined.added.iter().map(|added| added.field.clone());
        joined.schema = Schema::new(kept.chain(added).collect()).map_err(ConvertError::Format)?;
        Ok(joined)
    }

    /// Joins the class names of a label field. New names follow those of the first pack.
    fn join_classes<D: AsRef<[u8]>>(
        &mut self,
        taken: &[Taken<'_, D>],
        number: usize,
        field: &mut Field,
    ) -> Result<(), ConvertError> {
        let all = taken.iter().map(|taken| class_names(taken, field)).collect::<Result<Vec<_>, _>>()?;
        let mut names = all.first().cloned().unwrap_or_default();
        if all.iter().any(|other| *other != names) {
            let mut known: HashMap<String, i64> = names.iter().cloned().zip(0..).collect();
            for (taken, own) in taken.iter().zip(&all) {
                check_names(taken, own, field)?;
                for name in own {
                    known.entry(name.clone()).or_insert_with(|| {
                        names.push(name.clone());
                        i64::try_from(names.len()).unwrap_or(i64::MAX) - 1
                    });
                }
            }
            if field.role == Some(Role::Labels) {
                field.shape = vec![to_u64(names.len().div_ceil(8)).max(1)];
            }
            for ((taken, own), maps) in taken.iter().zip(&all).zip(&mut self.maps) {
                let ids: Vec<i64> = own.iter().map(|name| known.get(name).copied().unwrap_or(-1)).collect();
                let n_changed = ids.iter().zip(0..).filter(|(new, old)| **new != *old).count();
                if n_changed > 0 {
                    let (n, gets) =
                        (counted(n_changed, "class"), if n_changed == 1 { "gets another id" } else { "get other ids" });
                    let (path, name) = (taken.path.display(), &field.name);
                    self.warnings.push(format!("{path}: {n} of `{name}` {gets}, because classes are joined by name"));
                }
                maps.insert(number, IdMap { ids, to: field.clone() });
            }
        }
        if !names.is_empty() {
            self.classes.push(Classes { field: field.name.clone(), names, counts: Vec::new() });
        }
        Ok(())
    }

    /// Sets the new classes of a label field.
    fn relabel(&mut self, relabelled: &Relabelled, field: &Field) {
        match &relabelled.ids {
            NewIds::OfSamples(ids) => self.labels = Some((relabelled.number, ids.clone())),
            // Items change only if classes are joined. Other names do not change them.
            NewIds::OfClasses(ids) if ids.iter().zip(0..).all(|(new, old)| *new == old) => {}
            NewIds::OfClasses(ids) => {
                for maps in &mut self.maps {
                    maps.insert(relabelled.number, IdMap { ids: ids.clone(), to: field.clone() });
                }
            }
        }
        if !relabelled.names.is_empty() {
            let names = relabelled.names.clone();
            self.classes.push(Classes { field: field.name.clone(), names, counts: Vec::new() });
        }
    }

    /// Whether the body of the new pack has the same fields as that of the pack with this index, and none of its items
    /// changes.
    pub(super) fn keeps_body<D: AsRef<[u8]>>(&self, index: usize, pack: &Pack<D>) -> bool {
        let is_mapped = |number: &usize| self.maps.get(index).is_some_and(|maps| maps.contains_key(number));
        let is_changed =
            |number: usize| is_mapped(&number) || self.labels.as_ref().is_some_and(|(field, _)| *field == number);
        let own = self.schema.body().map(|(_, field)| field);
        own.eq(pack.schema().body().map(|(_, field)| field))
            && !pack.schema().body().any(|(field, _)| is_changed(field))
    }

    /// The number in the schema of the packs of a field of the new pack.
    pub(super) fn origin(&self, number: usize) -> Result<usize, FormatError> {
        let unknown =
            || FormatError::OutOfRange { what: "field", index: to_u64(number), len: to_u64(self.origins.len()) };
        self.origins.get(number).copied().ok_or_else(unknown)
    }

    /// A field of the new pack that the packs lack.
    pub(super) fn added_at(&self, number: usize) -> Option<&Added> {
        let added = number.checked_sub(self.origins.len()).and_then(|place| self.added.get(place));
        added.map(Arc::as_ref)
    }

    /// The item of a field of the new pack, for a sample of the pack with this index.
    pub(super) fn item<'a, D: AsRef<[u8]>>(
        &self,
        (index, pack): (usize, &'a Pack<D>),
        number: usize,
        sample: u64,
    ) -> Result<Cow<'a, [u8]>, FormatError> {
        if let Some(added) = self.added_at(number) {
            return added.item(sample).map(Cow::Owned);
        }
        let place = number;
        let number = self.origin(number)?;
        if let Some((_, ids)) = self.labels.as_ref().filter(|(field, _)| *field == number) {
            let id = ids.get(to_usize(sample)).copied().unwrap_or(-1);
            let dtype = self.schema.fields().get(place).map_or(DType::I64, |field| field.dtype);
            return Ok(Cow::Owned(label_item(dtype, id)));
        }
        self.mapped(index, number, pack.item(number, sample)?)
    }

    /// The item of the new pack for an item of the pack with this index. `number` is that of the field in the packs.
    pub(super) fn mapped<'a>(
        &self,
        index: usize,
        number: usize,
        item: Cow<'a, [u8]>,
    ) -> Result<Cow<'a, [u8]>, FormatError> {
        match self.maps.get(index).and_then(|maps| maps.get(&number)) {
            None => Ok(item),
            Some(map) => map.item(&item).map(Cow::Owned),
        }
    }
}

impl IdMap {
    fn item(&self, item: &[u8]) -> Result<Vec<u8>, FormatError> {
        if self.to.role == Some(Role::Labels) {
            let ids = label_set::ids(item).map(|id| self.id(id)).collect::<Result<Vec<_>, _>>()?;
            let bytes = self.to.item_bytes().and_then(|bytes| usize::try_from(bytes).ok());
            return Ok(label_set::of(ids, bytes.unwrap_or(0)));
        }
        let mut mapped = Vec::with_capacity(item.len());
        for id in Scalar::each(self.to.dtype, item).map(|id| id.integer().unwrap_or(-1)) {
            mapped.extend(label_item(self.to.dtype, if id < 0 { id } else { self.id(id)? }));
        }
        Ok(mapped)
    }

    /// The new id of a class. Negative ids stand for no class, and are kept by the caller.
    fn id(&self, old: i64) -> Result<i64, FormatError> {
        let new = usize::try_from(old).ok().and_then(|place| self.ids.get(place));
        new.copied().ok_or_else(|| FormatError::OutOfRange {
            what: "class id",
            index: u64::try_from(old).unwrap_or(0),
            len: to_u64(self.ids.len()),
        })
    }
}

/// The item of a label.
fn label_item(dtype: DType, id: i64) -> Vec<u8> {
    match dtype {
        DType::I64 => id.to_le_bytes().to_vec(),
        _ => i32::try_from(id).unwrap_or(i32::MAX).to_le_bytes().to_vec(),
    }
}

pub(crate) fn class_names<D: AsRef<[u8]>>(taken: &Taken<'_, D>, field: &Field) -> Result<Vec<String>, ConvertError> {
    let classes = taken.pack.classes().map_err(|error| taken.located(error))?;
    let own = classes.into_iter().find(|classes| classes.field == field.name);
    Ok(own.map_or_else(Vec::new, |classes| classes.names))
}

/// How classes with the same name can be told apart, or get names.
const OWN_NAMES: &str = "classes are joined by name: give every class a name of its own when converting";

/// Refuses names by which classes cannot be joined.
fn check_names<D: AsRef<[u8]>>(taken: &Taken<'_, D>, names: &[String], field: &Field) -> Result<(), ConvertError> {
    if names.is_empty() {
        let reason = format!("expected class names for `{}`, as in the other packs, found none", field.name);
        return Err(ConvertError::contradictory(taken.path, "", reason, OWN_NAMES));
    }
    check_distinct(taken, names, field)
}

/// Refuses names that do not tell classes apart.
pub(super) fn check_distinct<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    names: &[String],
    field: &Field,
) -> Result<(), ConvertError> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => {
            let reason = format!("two classes of `{}` are called '{name}'", field.name);
            Err(ConvertError::contradictory(taken.path, "", reason, OWN_NAMES))
        }
    }
}

/// Reports the first difference between the fields of two packs. Sets of labels may differ in length.
fn check_fields<D: AsRef<[u8]>>(first: &Taken<'_, D>, other: &Taken<'_, D>) -> Result<(), ConvertError> {
    let (own, theirs) = (first.pack.schema().fields(), other.pack.schema().fields());
    let refused = |reason: String| Err(ConvertError::contradictory(other.path, "", reason, SAME_FIELDS));
    let name =
        |field: Option<&Field>| field.map_or_else(|| "no further field".to_owned(), |f| format!("field `{}`", f.name));
    for place in 0..own.len().max(theirs.len()) {
        let (one, two) = (own.get(place), theirs.get(place));
        if one.map(|field| &field.name) != two.map(|field| &field.name) {
            let first = first.path.display();
            return refused(format!("expected {}, as in {first}, found {}", name(one), name(two)));
        }
        let Some((one, two)) = one.zip(two) else { continue };
        let is_set = one.role == Some(Role::Labels);
        let mut differing = differences(one, two).into_iter();
        if let Some((key, expected, found)) = differing.find(|(key, ..)| !(is_set && key == "shape")) {
            let first = first.path.display();
            return refused(format!("field `{}`: expected {key} {expected}, as in {first}, found {found}", one.name));
        }
    }
    Ok(())
}

/// The properties in which two fields differ, each with both values.
pub(crate) fn differences(one: &Field, two: &Field) -> Vec<(String, Value, Value)> {
    let object = |field: &Field| match serde_json::to_value(field) {
        Ok(Value::Object(object)) => object,
        _ => serde_json::Map::new(),
    };
    let (one, mut two) = (object(one), object(two));
    let mut differing = Vec::new();
    for (key, expected) in one {
        let found = two.remove(&key).unwrap_or_default();
        if expected != found {
            differing.push((key, expected, found));
        }
    }
    differing.extend(two.into_iter().map(|(key, found)| (key, Value::Null, found)));
    differing
}
