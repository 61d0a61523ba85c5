//! The labels, numbers and text of a sample as the members of a JSON object.

use packds_format::{DType, Field, Role, Scalar};
use packds_system::counted;
use serde_json::{Map, Value};

use super::fields::is_in_digits;
use super::{Batch, Form, SinkStart};
use crate::label_set;

pub(super) struct Rows {
    label: Option<(usize, DType)>,
    /// The field with sets of classes. A set has one bit per class.
    label_set: Option<usize>,
    rest: Vec<Column>,
    /// The names of the classes. Empty if they have none.
    names: Vec<String>,
}

struct Column {
    name: String,
    place: usize,
    form: Form,
    /// Number of infinities written as null.
    infinite: u64,
}

/// Why the rows of a format do not have a field. `None` if they have it, or if it holds the images. `what` names the
/// format, and `taken` the members that its rows already have.
pub(super) fn left_out(field: &Field, form: &Form, what: &str, taken: &[&str]) -> Option<String> {
    let name = &field.name;
    let is_held = match form {
        Form::Text | Form::Json => true,
        Form::Array(array) => array.shape.is_empty() || field.role == Some(Role::Labels),
        Form::File | Form::Bytes => false,
    };
    match name.as_str() {
        _ if field.role == Some(Role::Image) => None,
        name if taken.contains(&name) => {
            Some(format!("field `{name}`, because {what} has its own value with that name"))
        }
        _ if is_held => None,
        _ => Some(format!("field `{name}`, because besides images {what} can store only numbers and text")),
    }
}

impl Rows {
    /// The rows of the fields whose index `is_member` accepts. The image is never one of them.
    pub(super) fn of(start: &SinkStart<'_>, is_member: impl Fn(usize) -> bool) -> Self {
        let mut rows = Self { label: None, label_set: None, rest: Vec::new(), names: Vec::new() };
        for (place, field) in start.exported.fields.iter().enumerate().skip(1).filter(|(place, _)| is_member(*place)) {
            let dtype = field.field.dtype;
            match (&field.form, field.field.role) {
                (Form::Array(_), Some(Role::Label)) if is_in_digits(dtype) => {
                    rows.label = Some((place, dtype));
                }
                (Form::Array(_), Some(Role::Labels)) => rows.label_set = Some(place),
                _ => rows.rest.push(Column {
                    name: field.field.name.clone(),
                    place,
                    form: field.form.clone(),
                    infinite: 0,
                }),
            }
        }
        let field = if rows.label.is_some() { "label" } else { "labels" };
        rows.names = start.metadata.class_names(field).to_vec();
        rows
    }

    /// The class names, if each sample has one class.
    pub(super) fn class_names(&self) -> &[String] {
        if self.label.is_some() { &self.names } else { &[] }
    }

    /// The class id of sample `k`.
    pub(super) fn label(&self, batch: &Batch, k: usize) -> Option<i64> {
        let (place, dtype) = self.label?;
        Scalar::of(dtype, item(batch, place, k)).and_then(Scalar::integer)
    }

    /// Adds the values of sample `k`.
    pub(super) fn add(&mut self, batch: &Batch, k: usize, row: &mut Map<String, Value>) {
        if let Some(id) = self.label(batch, k) {
            row.insert("label".to_owned(), self.class_value(id));
        }
        if let Some(place) = self.label_set {
            let ids = label_set::ids(item(batch, place, k)).map(|id| self.class_value(id));
            row.insert("labels".to_owned(), ids.collect());
        }
        for column in &mut self.rest {
            row.insert(column.name.clone(), column.value(item(batch, column.place, k)));
        }
    }

    /// Describes values that JSON could not express in `file`.
    pub(super) fn notes(&self, file: &str) -> impl Iterator<Item = String> {
        self.rest.iter().filter_map(|column| column.note(file))
    }

    /// The name of a class, or its id if it has no name.
    fn class_value(&self, id: i64) -> Value {
        let name = usize::try_from(id).ok().and_then(|i| self.names.get(i));
        name.map_or_else(|| id.into(), |name| name.clone().into())
    }
}

fn item(batch: &Batch, place: usize, k: usize) -> &[u8] {
    batch.columns.get(place).map_or(&[][..], |column| column.item(k))
}

/// Converts a number to JSON. NaN and infinities become `null`, because JSON cannot represent them.
fn json(number: Scalar) -> Value {
    match number {
        Scalar::Bool(value) => value.into(),
        Scalar::Unsigned(value) => value.into(),
        other => other.float().map_or(other.integer().into(), Value::from),
    }
}

impl Column {
    fn value(&mut self, item: &[u8]) -> Value {
        match &self.form {
            Form::Array(array) => {
                let number = Scalar::of(array.dtype, item);
                let float = number.and_then(Scalar::float);
                self.infinite += u64::from(float.is_some_and(f64::is_infinite));
                number.map_or(Value::Null, json)
            }
            Form::Json => serde_json::from_slice(item).unwrap_or_default(),
            _ => String::from_utf8_lossy(item).into_owned().into(),
        }
    }

    fn note(&self, file: &str) -> Option<String> {
        (self.infinite > 0).then(|| {
            format!(
                "infinities in field `{}`, because JSON has none: {} became null in {file} and will be read as NaN",
                self.name,
                counted(self.infinite, "value")
            )
        })
    }
}
