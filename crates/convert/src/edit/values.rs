//! The values of a field.

use packds_format::{Field, FieldKind, FormatError};

use super::Taken;
use crate::error::ConvertError;

/// The number of a field whose values can be compared: a number or a text. `other` is a name that the caller allows too.
pub(super) fn field<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    name: &str,
    other: Option<&str>,
) -> Result<usize, ConvertError> {
    let fields = taken.pack.schema().fields();
    let is_value = |field: &&Field| field.shape.is_empty() && (field.kind == FieldKind::Tensor || field.kind.is_text());
    let found = fields.iter().enumerate().find(|(_, field)| field.name == name && is_value(field));
    found.map(|(number, _)| number).ok_or_else(|| {
        let names = fields.iter().filter(is_value).map(|field| field.name.as_str()).chain(other);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let reason = format!("{}: no field `{name}` with numbers or texts", taken.path.display());
        ConvertError::options(reason, format!("choose one of {}", names.join(", ")))
    })
}

/// What `value` makes of each item of a field, in file order.
pub(super) fn items<D: AsRef<[u8]>, T>(
    taken: &Taken<'_, D>,
    number: usize,
    mut value: impl FnMut(&[u8]) -> T,
) -> Result<Vec<T>, ConvertError> {
    let mut values = Vec::new();
    let read = taken.pack.for_each_item_in(number, taken.each(), |_, item| {
        values.push(value(item));
        Ok::<_, FormatError>(())
    });
    read.map_err(|error| taken.located(error)).map(|()| values)
}
