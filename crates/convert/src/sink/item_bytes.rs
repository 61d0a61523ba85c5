//! Items as files, for formats that contain files: arrays as `.npy`; images, texts and bytes unchanged.

use std::borrow::Cow;

use super::npy_header::npy_header;
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
        Form::Array(array) => {
            let mut file = npy_header(array.dtype, &array.shape);
            file.extend_from_slice(item);
            ("npy", Cow::Owned(file))
        }
        Form::File => {
            let extension = column.extensions.get(k).copied().unwrap_or("bin");
            (extension, Cow::Borrowed(item))
        }
        Form::Bytes => ("bin", Cow::Borrowed(item)),
        Form::Text => ("txt", Cow::Borrowed(item)),
        Form::Json => ("json", Cow::Borrowed(item)),
    }
}
