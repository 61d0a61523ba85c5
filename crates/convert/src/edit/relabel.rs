//! Gives samples other classes, and classes other names.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::str::FromStr;

use packds_format::{Field, Pack, Role, Scalar};
use packds_system::{BadValue, counted};
use serde_json::{Value, json};

use super::joined::{check_distinct, class_names};
use super::values::items;
use super::{Changes, KnownPaths, Taken};
use crate::error::ConvertError;
use crate::identity;
use crate::opt::{ONLY, RENAME};
use crate::source::{ClassWord, KeyedTable};

/// How a pack is relabelled. Either a table or renamed classes must be given.
#[derive(Debug, Clone, Default)]
pub struct RelabelOptions {
    /// The label field. `None` means the field with role `label` or `labels`, or `box_labels` if there is no other.
    pub field: Option<String>,
    /// Whether samples without a row in the table are left out.
    pub only: bool,
    /// The classes that are renamed.
    pub rename: Vec<Rename>,
}

/// The old and the new name of a class, as in `OLD=NEW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename(String);

impl FromStr for Rename {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.split_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok(Self(text.to_owned())),
            _ => Err(BadValue::new("two class names, such as kitten=cat", text)),
        }
    }
}

/// The new classes of a label field.
#[derive(Debug)]
pub(super) struct Relabelled {
    /// The number of the field in the pack.
    pub(super) number: usize,
    pub(super) names: Vec<String>,
    pub(super) ids: NewIds,
}

/// The new class ids.
#[derive(Debug)]
pub(super) enum NewIds {
    /// By the old id.
    OfClasses(Vec<i64>),
    /// By the number of the sample.
    OfSamples(Vec<i64>),
}

impl Relabelled {
    /// What changes, as JSON.
    pub(super) fn described(&self, field: &str) -> Value {
        let (NewIds::OfClasses(ids) | NewIds::OfSamples(ids)) = &self.ids;
        let of = if matches!(self.ids, NewIds::OfClasses(_)) { "classes" } else { "samples" };
        json!({"relabel": field, "names": self.names, "of": of, "ids": identity::of_numbers(ids).to_string()})
    }
}

impl Changes {
    /// Gives samples the classes of a table, or renames classes. Also returns the samples to copy; `None` means all.
    /// `path` is the path of the pack, for messages.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if the options contradict each other or name an unknown field or class. An error in the
    /// table, or in the bytes of the pack.
    pub fn relabel<D: AsRef<[u8]>>(
        pack: &Pack<D>,
        path: &Path,
        table: Option<&Path>,
        options: &RelabelOptions,
    ) -> Result<(Self, Option<Vec<u64>>), ConvertError> {
        let taken = Taken { pack, path, samples: None };
        let (number, field) = label_field(&taken, options.field.as_deref())?;
        let names = class_names(&taken, field)?;
        check_distinct(&taken, &names, field)?;
        let field_name = field.name.clone();
        let mut changes = Self::default();
        let (relabelled, samples) = match (table, options.rename.is_empty()) {
            (Some(table), true) => changes.by_table(&taken, (number, field), names, table, options.only)?,
            (None, false) if !options.only => {
                (changes.by_renaming(&taken, (number, field), names, &options.rename)?, None)
            }
            (None, false) => {
                let reason = format!("{ONLY} cannot be combined with {RENAME}");
                return Err(ConvertError::options(reason, "only a table has samples to choose"));
            }
            (_, is_empty) => {
                let what = if is_empty { "neither is given" } else { "both are given" };
                let reason = format!("expected either a table or {RENAME}, but {what}");
                return Err(ConvertError::options(
                    reason,
                    format!("a table gives samples their classes, and {RENAME} gives classes other names"),
                ));
            }
        };
        changes.relabelled = Some((field_name, relabelled));
        Ok((changes, samples))
    }

    fn by_table<D: AsRef<[u8]>>(
        &mut self,
        taken: &Taken<'_, D>,
        (number, field): (usize, &Field),
        mut names: Vec<String>,
        table: &Path,
        only: bool,
    ) -> Result<(Relabelled, Option<Vec<u64>>), ConvertError> {
        if matches!(field.role, Some(Role::Labels | Role::BoxLabels)) {
            let reason = format!("{}: `{}` has several classes for each sample", taken.path.display(), field.name);
            let hint =
                format!("a table gives each sample one class; rename or join classes with {}", RENAME.with("OLD=NEW"));
            return Err(ConvertError::options(reason, hint));
        }
        let read = KeyedTable::read(table, &field.name)?;
        self.warnings.extend(read.warnings.iter().cloned());
        let rows = match read.by_number {
            true => read.of_samples(taken.each().map(|sample| sample.to_string().into()))?,
            false => {
                let paths = KnownPaths::for_table(taken)?;
                read.of_samples(taken.each().map(|sample| String::from_utf8_lossy(paths.path(sample))))?
            }
        };
        let n_before = names.len();
        let id_of = self.ids_of_values(&read, field, &mut names)?;
        if let Some(new) = names.get(n_before..).filter(|new| !new.is_empty()) {
            let shown = quoted_few(new);
            self.warnings.push(format!("{} added to `{}`: {shown}", counted(new.len(), "class"), field.name));
        }
        let old = items(taken, number, |item| Scalar::of(field.dtype, item).and_then(Scalar::integer).unwrap_or(-1))?;
        let new = old.iter().zip(&rows).map(|(old, row)| row.and_then(|row| id_of.get(row).copied()).unwrap_or(*old));
        let new: Vec<i64> = new.collect();
        let samples = only.then(|| taken.each().zip(&rows).filter(|(_, row)| row.is_some()).map(|(sample, _)| sample));
        let samples: Option<Vec<u64>> = samples.map(Iterator::collect);
        let kept = new.iter().zip(&rows).filter(|(_, row)| !only || row.is_some()).map(|(id, _)| *id);
        self.tell_empty(&old, kept, &names, &field.name);
        Ok((Relabelled { number, names, ids: NewIds::OfSamples(new) }, samples))
    }

    /// The class id of each value of the table. Values are class ids if all of them are numbers, and none is the name of
    /// a class. Otherwise they are names, and new ones are added to `names`, sorted by name.
    fn ids_of_values(
        &mut self,
        table: &KeyedTable,
        field: &Field,
        names: &mut Vec<String>,
    ) -> Result<HashMap<String, i64>, ConvertError> {
        let mut ids: HashMap<String, i64> = names.iter().cloned().zip(0..).collect();
        let values = table.values();
        let unknown = values.iter().filter(|(_, value)| !ids.contains_key(*value));
        let unknown: Vec<(u64, &str, ClassWord)> =
            unknown.map(|(line, value)| (*line, *value, ClassWord::of(value))).collect();
        let shown = |value: &str| value.escape_debug().to_string();
        if let Some((line, value, _)) = unknown.iter().find(|(.., word)| *word == ClassWord::Neither) {
            let reason = format!("expected the name or the id of a class, found '{}'", shown(value));
            return Err(table.wrong(*line, reason, "class ids are whole numbers from 0"));
        }
        let id = |word: ClassWord| if let ClassWord::Id(id) = word { Some(id) } else { None };
        let mut numbers = unknown.iter().filter_map(|(line, value, word)| Some((*line, *value, id(*word)?)));
        let n_numbers = numbers.clone().count();
        if n_numbers == values.len() {
            let last = i64::try_from(names.len()).unwrap_or(i64::MAX) - 1;
            let last = if names.is_empty() { i64::from(i32::MAX) } else { last };
            if let Some((line, _, id)) = numbers.clone().find(|(.., id)| *id > last) {
                let reason = format!("expected a class id from 0 to {last}, found {id}");
                return Err(table.wrong(line, reason, "write class names in all rows to add classes"));
            }
            if !names.is_empty() {
                self.warnings.push("the classes in the table are numbers, and are read as class ids".to_owned());
            }
            return Ok(numbers.map(|(_, value, id)| (value.to_owned(), id)).collect());
        }
        if let Some((line, value, _)) = numbers.next() {
            let reason = format!("expected the name of a class, as in other rows, found the number {value}");
            return Err(table.wrong(line, reason, "write names in all rows, or class ids in all rows"));
        }
        if let Some((line, value, _)) = unknown.first().filter(|_| names.is_empty()) {
            let reason = format!("the classes of `{}` have no names, found '{}'", field.name, shown(value));
            return Err(table.wrong(*line, reason, "write class ids: whole numbers from 0"));
        }
        let mut new: Vec<&str> = unknown.iter().map(|(_, value, _)| *value).collect();
        new.sort_unstable();
        for value in new {
            ids.insert(value.to_owned(), i64::try_from(names.len()).unwrap_or(i64::MAX));
            names.push(value.to_owned());
        }
        Ok(ids)
    }

    fn by_renaming<D: AsRef<[u8]>>(
        &mut self,
        taken: &Taken<'_, D>,
        (number, field): (usize, &Field),
        mut names: Vec<String>,
        renames: &[Rename],
    ) -> Result<Relabelled, ConvertError> {
        let refused = |reason: String, hint: String| {
            Err(ConvertError::options(format!("{}: {reason}", taken.path.display()), hint))
        };
        if names.is_empty() {
            let hint = "give samples other class ids with a table";
            return refused(format!("the classes of `{}` have no names", field.name), hint.to_owned());
        }
        let before = names.clone();
        let mut pairs: BTreeMap<usize, &str> = BTreeMap::new();
        for Rename(text) in renames {
            // A name may contain the sign.
            let splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
            let found = splits.filter_map(|(old, new)| Some((before.iter().position(|name| name == old)?, new)));
            let found: Vec<(usize, &str)> = found.filter(|(_, new)| !new.is_empty()).collect();
            let &[(old, new)] = found.as_slice() else {
                let text = text.escape_debug();
                let reason = format!("{RENAME}: `{}` has no class with the old name in '{text}'", field.name);
                return refused(reason, format!("its classes are {}", quoted_few(&before)));
            };
            if before[old] == new {
                let reason = format!("{RENAME}: '{}' has this name already", new.escape_debug());
                return refused(reason, "give it a new name".to_owned());
            }
            if pairs.insert(old, new).is_some() {
                let reason = format!("{RENAME}: '{}' gets two new names", before[old].escape_debug());
                return refused(reason, "give one new name".to_owned());
            }
        }
        if let Some(new) = pairs.values().find(|new| pairs.keys().any(|old| before[*old] == **new)) {
            let reason = format!("{RENAME}: '{}' is both an old and a new name", new.escape_debug());
            return refused(reason, "rename in two steps, with another name in between".to_owned());
        }
        let mut ids: Vec<i64> = (0..).take(names.len()).collect();
        for (old, new) in pairs {
            let target = names.iter().position(|name| name == new);
            match target {
                None => names[old] = new.to_owned(),
                Some(target) => {
                    ids[old] = i64::try_from(target).unwrap_or(i64::MAX);
                    let name = before[old].escape_debug();
                    let new = new.escape_debug();
                    self.warnings.push(format!("'{name}' is joined with '{new}', and keeps its id without samples"));
                }
            }
        }
        Ok(Relabelled { number, names, ids: NewIds::OfClasses(ids) })
    }

    /// Tells which classes have no samples any more.
    fn tell_empty(&mut self, old: &[i64], new: impl Iterator<Item = i64>, names: &[String], field: &str) {
        let mut left = vec![false; names.len()];
        for id in new.filter_map(|id| usize::try_from(id).ok()) {
            if let Some(is_left) = left.get_mut(id) {
                *is_left = true;
            }
        }
        let mut had = vec![false; names.len()];
        for id in old.iter().filter_map(|id| usize::try_from(*id).ok()) {
            if let Some(had) = had.get_mut(id) {
                *had = true;
            }
        }
        let empty = names.iter().zip(had.iter().zip(&left)).filter(|(_, (had, left))| **had && !**left);
        let empty: Vec<String> = empty.map(|(name, _)| name.clone()).collect();
        if !empty.is_empty() {
            let shown = quoted_few(&empty);
            self.warnings.push(format!("classes of `{field}` that have no samples any more keep their ids: {shown}"));
        }
    }
}

/// The label field of this name, or the only one.
fn label_field<'a, D: AsRef<[u8]>>(
    taken: &Taken<'a, D>,
    name: Option<&str>,
) -> Result<(usize, &'a Field), ConvertError> {
    let labels = taken.pack.schema().fields().iter().enumerate().filter(|(_, field)| field.has_class_ids());
    let labels: Vec<(usize, &Field)> = labels.collect();
    let has_own = labels.iter().any(|(_, field)| !field.is_of_boxes());
    let is_default = |field: &Field| !(has_own && field.is_of_boxes());
    let mut chosen =
        labels.iter().filter(|(_, field)| name.map_or_else(|| is_default(field), |name| field.name == name));
    match (chosen.next(), chosen.next()) {
        (Some(found), None) => Ok(*found),
        (None, _) if labels.is_empty() => {
            let reason = format!("{}: the pack has no labels", taken.path.display());
            Err(ConvertError::options(reason, "choose another pack"))
        }
        (_, _) => {
            let names: Vec<String> = labels.iter().map(|(_, field)| format!("`{}`", field.name)).collect();
            let what =
                name.map_or_else(|| "several label fields".to_owned(), |name| format!("no label field `{name}`"));
            let reason = format!("{}: {what}", taken.path.display());
            Err(ConvertError::options(reason, format!("choose one of {}", names.join(", "))))
        }
    }
}

/// The first of these names, in quotes.
fn quoted_few(names: &[String]) -> String {
    const FEW: usize = 10;
    let mut shown: Vec<String> = names.iter().take(FEW).map(|name| format!("'{}'", name.escape_debug())).collect();
    if names.len() > FEW {
        shown.push(format!("and {} more", names.len() - FEW));
    }
    shown.join(", ")
}
