//! Items as files, for formats that contain files. Arrays become `.npy` files. Images, text and bytes stay unchanged.

use std::borrow::Cow;

use packds_format::Scalar;

use super::item_file::npy;
use super::{Batch, ExportedField, Form};

/// The extension and the bytes of item `k` of field `place`.
pub(super) fn item_bytes<'a>(
    field: &ExportedField,
    batch: &'a Batch,
    place: usize,
    k: usize,
) -> (&'static str, Cow<'a, [u8]>) {
    let Some(column) = batch.columns.get(place) else {
        return ("bin", Cow::Borrowed(&[]));
    };
    let item = column.item(k);
    match &field.form {
        Form::Array(array) => ("npy", Cow::Owned(npy(array.dtype, &array.shape, item))),
        Form::File => (column.extensions.get(k).copied().unwrap_or("bin"), Cow::Borrowed(item)),
        Form::Bytes => ("bin", Cow::Borrowed(item)),
        Form::Text => ("txt", Cow::Borrowed(item)),
        Form::Json => ("json", Cow::Borrowed(item)),
    }
}

/// Item `k` of field `place` as decimal digits. See `Exported::label_in_digits`.
pub(super) fn digits(field: &ExportedField, batch: &Batch, place: usize, k: usize) -> String {
    let item = batch.columns.get(place).map_or(&[][..], |column| column.item(k));
    Scalar::of(field.field.dtype, item).map(|id| id.widened().to_string()).unwrap_or_default()
}
