//! Samples whose values follow each other, after the lengths of the values whose length is not fixed. MDS and LitData
//! have such samples; each says how the values of a field are encoded.

use std::borrow::Cow;

use packds_format::{DType, Role, Scalar};

use super::renamed::paths_as_field;
use super::{Batch, Encode, ExportedField, Form, SinkStart};
use crate::error::ConvertError;
use crate::source::PATHS;
use crate::source::store::ArrayType;

/// What the values of a field are.
pub(super) enum Values<'a> {
    /// Class ids, as `i64`.
    Ids,
    /// Arrays of this type, or numbers if it has no dimensions.
    Arrays(&'a ArrayType),
    /// Image files. All have this extension, if there is one.
    Files(Option<&'static str>),
    Bytes,
    Text,
    Json,
}

/// How the values of a field are encoded.
#[derive(Debug, Clone)]
pub(super) struct Encoding {
    /// The name that the format's index has for it.
    pub(super) name: String,
    /// The bytes before each value.
    pub(super) prefix: Vec<u8>,
    /// The length of each value. `None` if each sample states it.
    pub(super) fixed: Option<u64>,
}

impl Encoding {
    /// An encoding without a prefix. Each sample states the length.
    pub(super) fn stated(name: impl Into<String>) -> Self {
        Self { name: name.into(), prefix: Vec::new(), fixed: None }
    }
}

#[derive(Debug, Clone)]
pub(super) struct SizedColumn {
    pub(super) name: String,
    pub(super) encoding: Encoding,
    from: From,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy)]
enum From {
    /// The field at this index.
    Field(usize),
    /// The JSON in the field at this index, without whitespace before it. LitData takes such bytes for tags.
    Json(usize),
    /// The labels in the field at this index.
    Labels(usize, DType),
    Paths,
}

#[derive(Debug, Clone)]
pub(crate) struct SizedEncoder {
    pub(super) columns: Vec<SizedColumn>,
}

/// Samples one after the other.
#[derive(Debug, Default)]
pub(crate) struct SizedSamples {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

impl SizedEncoder {
    /// The columns of all exported fields and of the paths. Adds to `lost` what they cannot hold.
    pub(super) fn of(start: &SinkStart<'_>, encoding: fn(&Values<'_>) -> Encoding, lost: &mut Vec<String>) -> Self {
        let fields = &start.exported.fields;
        let has_paths = paths_as_field(start, fields.iter().map(|field| field.field.name.as_str()), lost);
        let columns = fields.iter().enumerate().map(|(place, field)| {
            let values = values_of(field);
            let from = match values {
                Values::Ids => From::Labels(place, field.field.dtype),
                Values::Json => From::Json(place),
                _ => From::Field(place),
            };
            SizedColumn { name: field.field.name.clone(), encoding: encoding(&values), from }
        });
        let mut columns: Vec<SizedColumn> = columns.collect();
        if has_paths {
            columns.push(SizedColumn { name: PATHS.to_owned(), encoding: encoding(&Values::Text), from: From::Paths });
        }
        Self { columns }
    }

    fn sample(&self, batch: &Batch, k: usize, out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let values: Vec<Cow<'_, [u8]>> = self.columns.iter().map(|column| column.value(batch, k)).collect();
        for (column, value) in self.columns.iter().zip(&values).filter(|(column, _)| column.encoding.fixed.is_none()) {
            let n = column.encoding.prefix.len().saturating_add(value.len());
            let n = u32::try_from(n).map_err(|_| {
                let reason = format!("expected at most {} bytes, which the format can state, found {n}", u32::MAX);
                batch.bad(k, &column.name, reason)
            })?;
            out.extend_from_slice(&n.to_le_bytes());
        }
        for (column, value) in self.columns.iter().zip(&values) {
            out.extend_from_slice(&column.encoding.prefix);
            out.extend_from_slice(value);
        }
        Ok(())
    }
}

impl Encode for SizedEncoder {
    type Ready = SizedSamples;

    fn encode(&self, batch: Batch) -> Result<SizedSamples, ConvertError> {
        let mut samples = SizedSamples::default();
        for k in 0..batch.n {
            self.sample(&batch, k, &mut samples.bytes)?;
            samples.ends.push(samples.bytes.len());
        }
        Ok(samples)
    }
}

impl SizedColumn {
    fn value<'a>(&self, batch: &'a Batch, k: usize) -> Cow<'a, [u8]> {
        let item = |place: usize| batch.columns.get(place).map_or(&[][..], |column| column.item(k));
        match self.from {
            From::Field(place) => Cow::Borrowed(item(place)),
            From::Json(place) => Cow::Borrowed(item(place).trim_ascii_start()),
            From::Labels(place, dtype) => {
                let id = Scalar::of(dtype, item(place)).and_then(Scalar::integer).unwrap_or_default();
                Cow::Owned(id.to_le_bytes().to_vec())
            }
            From::Paths => {
                let path = batch.paths.get(k).map_or(&[][..], Vec::as_slice);
                Cow::Owned(String::from_utf8_lossy(path).into_owned().into_bytes())
            }
        }
    }
}

fn values_of(field: &ExportedField) -> Values<'_> {
    match &field.form {
        Form::Array(array) if is_ids(field, array) => Values::Ids,
        Form::Array(array) => Values::Arrays(array),
        Form::File => Values::Files(field.extension),
        Form::Bytes => Values::Bytes,
        Form::Text => Values::Text,
        Form::Json => Values::Json,
    }
}

/// Whether the field has labels that an `i64` can hold.
fn is_ids(field: &ExportedField, array: &ArrayType) -> bool {
    let is_label = field.field.role == Some(Role::Label) && array.shape.is_empty();
    is_label && !array.dtype.is_float() && array.dtype != DType::U64
}
