//! What changes in the samples of a pack.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use packds_format::{Field, Pack, Role, Schema, Store};
use packds_system::counted;
use serde_json::{Value, json};

use super::Taken;
use super::added::Added;
use super::relabel::Relabelled;
use super::values::items;
use crate::error::ConvertError;

/// What changes in the samples that are copied. By default, nothing does.
#[derive(Debug, Default)]
pub struct Changes {
    /// The numbers of the fields that are left out.
    pub(super) dropped: BTreeSet<usize>,
    /// The names of these fields, in the order of the schema.
    names: Vec<String>,
    /// The name of the label field that changes, and its new classes.
    pub(super) relabelled: Option<(String, Relabelled)>,
    /// The fields that are added, each with an id of its items.
    pub(super) added: Vec<(Arc<Added>, String)>,
    pub(super) warnings: Vec<String>,
}

impl Changes {
    /// Leaves out these fields, and the fields that describe them. `path` is the path of the pack, for messages.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if a field is unknown, if a field that is kept needs it, or if no field is left.
    pub fn drop_fields<D: AsRef<[u8]>>(pack: &Pack<D>, path: &Path, names: &[String]) -> Result<Self, ConvertError> {
        let fields = pack.schema().fields();
        let refused =
            |reason: String, hint: String| Err(ConvertError::options(format!("{}: {reason}", path.display()), hint));
        if let Some(unknown) = names.iter().find(|name| fields.iter().all(|field| field.name != **name)) {
            return refused(format!("no field `{unknown}`"), format!("the fields are {}", listed(fields.iter())));
        }
        let is_named = |name: &String| names.contains(name);
        let boxes = fields.iter().find(|field| field.role == Some(Role::Boxes));
        let drops_boxes = boxes.is_some_and(|boxes| is_named(&boxes.name));
        let is_dropped = |field: &Field| {
            is_named(&field.name) || described(field).is_some_and(is_named) || (drops_boxes && field.concerns_boxes())
        };
        for field in fields.iter().filter(|field| is_named(&field.name)) {
            // Without a seek index, images are only slower to read. Without its other fields, an image cannot be read.
            if let Some(image) = field.of.as_ref().filter(|image| !is_named(image)) {
                let hint = format!("drop `{image}` too, or keep both");
                return refused(format!("field `{image}` needs `{}`", field.name), hint);
            }
        }
        let body = || fields.iter().filter(|field| field.store == Store::Body);
        if names.is_empty() {
            return refused("no field is named".to_owned(), format!("the fields are {}", listed(fields.iter())));
        }
        if body().all(is_dropped) {
            let reason = "no field would be left outside the columns".to_owned();
            let one = if body().count() == 1 { "" } else { "at least one of " };
            return refused(reason, format!("keep {one}{}", listed(body())));
        }
        refuse_hidden_faults(&Taken { pack, path, samples: None }, names)?;
        let implied = fields.iter().filter(|field| is_dropped(field) && !is_named(&field.name));
        let implied: Vec<&Field> = implied.collect();
        let mut changes = Self::default();
        if !implied.is_empty() {
            let names = listed(implied.iter().copied());
            changes.warnings.push(format!("left out with the fields that they describe: {names}"));
        }
        for (number, field) in fields.iter().enumerate().filter(|(_, field)| is_dropped(field)) {
            changes.dropped.insert(number);
            changes.names.push(field.name.clone());
        }
        Ok(changes)
    }

    /// The changes as JSON, from which the identifiers of the new pack are derived. `None` if nothing changes.
    pub(super) fn described(&self) -> Option<Value> {
        match &self.relabelled {
            Some((field, relabelled)) => Some(relabelled.described(field)),
            None if !self.added.is_empty() => {
                let added = self.added.iter().map(|(added, ids)| added.described(ids));
                Some(json!({"add": added.collect::<Value>()}))
            }
            None => (!self.names.is_empty()).then(|| json!({"drop": self.names})),
        }
    }
}

/// The image field that a field describes.
fn described(field: &Field) -> Option<&String> {
    field.of.as_ref().or(field.seek_index_of.as_ref())
}

/// Refuses to leave out the only mark of the samples that replace unreadable ones.
fn refuse_hidden_faults<D: AsRef<[u8]>>(taken: &Taken<'_, D>, names: &[String]) -> Result<(), ConvertError> {
    let schema: &Schema = taken.pack.schema();
    let Some((number, field)) = schema.by_role(Role::Valid, None).filter(|(_, field)| names.contains(&field.name))
    else {
        return Ok(());
    };
    let n = items(taken, number, |item| item.first() == Some(&0))?.into_iter().filter(|is_bad| *is_bad).count();
    if n == 0 {
        return Ok(());
    }
    let name = &field.name;
    let reason = format!(
        "{}: only `{name}` says which {} replace samples that could not be read",
        taken.path.display(),
        counted(n, "sample")
    );
    Err(ConvertError::options(reason, format!("leave these samples out first: copy the samples with {name} = 1")))
}

/// The names of these fields.
fn listed<'a>(fields: impl Iterator<Item = &'a Field>) -> String {
    let names: Vec<String> = fields.map(|field| format!("`{}`", field.name)).collect();
    names.join(", ")
}
