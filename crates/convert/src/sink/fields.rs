//! Decides which fields of a pack are exported, and in which form.

use packds_format::{DType, Field, FieldKind, Pack, Role};

use super::image_folder;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::opt::{IMAGES, MODE};
use crate::safe_name::safe_names;
use crate::source::store::{ArrayType, PixelShape};

/// What a format can store for each sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holds {
    /// Arrays of one type and shape.
    pub(crate) arrays: bool,
    /// Image files.
    pub(crate) files: bool,
    /// Bytes of any length.
    pub(crate) bytes: bool,
    /// Text of any length.
    pub(crate) text: bool,
    /// Whether pixels are exported as lossless image files unless arrays are requested.
    pub(crate) prefers_files: bool,
}

impl Holds {
    /// Only arrays.
    pub(crate) const ARRAYS: Self =
        Self { arrays: true, files: false, bytes: false, text: false, prefers_files: false };
    /// Everything. Pixels are exported as arrays.
    pub(crate) const FILES_AND_ARRAYS: Self =
        Self { arrays: true, files: true, bytes: true, text: true, prefers_files: false };
    /// Everything. Pixels are exported as image files unless arrays are requested.
    pub(crate) const FILES_FIRST: Self = Self { prefers_files: true, ..Self::FILES_AND_ARRAYS };
}

/// The exported form of a field's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Arrays of this type, little-endian, in C order. Scalars have no dimensions.
    Array(ArrayType),
    /// Image files. The batch states their formats.
    File,
    /// Bytes.
    Bytes,
    /// UTF-8 text.
    Text,
    /// JSON text.
    Json,
}

/// Whether a label of this type is written as digits in a format that also has arrays.
pub(crate) fn is_in_digits(dtype: DType) -> bool {
    !matches!(dtype, DType::F16 | DType::Bf16)
}

/// An exported field.
#[derive(Debug, Clone)]
pub(crate) struct ExportedField {
    /// Its index in the pack's schema.
    pub(crate) number: usize,
    /// The pack's description.
    pub(crate) field: Field,
    pub(crate) form: Form,
}

/// All exported fields: the image first, then the others in schema order.
#[derive(Debug, Clone)]
pub(crate) struct Exported {
    pub(crate) fields: Vec<ExportedField>,
    /// Whether the pack knows the path of each sample.
    pub(crate) has_paths: bool,
    /// Fields that are not exported, in sentences.
    pub(crate) lost: Vec<String>,
}

/// The exported form of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagesAs {
    /// Arrays of pixels.
    Pixels,
    /// Image files: the pack's own files, and lossless PNG for pixels.
    Files,
}

packds_system::named!(ImagesAs { Pixels = "pixels", Files = "files" });

impl Exported {
    /// Decides for `format`.
    ///
    /// # Errors
    /// If the format cannot store the images.
    pub(crate) fn of<D: AsRef<[u8]>>(
        pack: &Pack<D>,
        format: DataFormat,
        holds: Holds,
        images: Option<ImagesAs>,
    ) -> Result<Self, ConvertError> {
        if pack.n_samples() == 0 {
            return Err(ConvertError::Options {
                reason: "the pack has no samples".to_owned(),
                hint: "there is nothing to export".to_owned(),
            });
        }
        let (mut fields, mut lost) = (Vec::new(), Vec::new());
        for (number, field) in pack.schema().fields().iter().enumerate() {
            if field.seek_index_of.is_some() || field.role.is_some_and(describes) {
                continue;
            }
            match form(field, holds, images) {
                Some(form) => match left_out(format, field, &form) {
                    Some(reason) => lost.push(reason),
                    None => fields.push(ExportedField { number, field: field.clone(), form }),
                },
                None if field.role == Some(Role::Image) => {
                    return Err(cannot_hold(format, images));
                }
                None => lost.push(format!("field `{}`: {format} cannot hold it", field.name)),
            }
        }
        fields.sort_by_key(|f| f.field.role != Some(Role::Image));
        Ok(Self { fields, has_paths: pack.path(0)?.is_some(), lost })
    }

    /// The field with this role.
    pub(crate) fn by_role(&self, role: Role) -> Option<(usize, &ExportedField)> {
        let mut fields = self.fields.iter().enumerate();
        fields.find(|(_, f)| f.field.role == Some(role))
    }
}

/// Whether fields with this role only contain what another conversion would derive again.
fn describes(role: Role) -> bool {
    matches!(
        role,
        Role::SourceId
            | Role::SourceWidth
            | Role::SourceHeight
            | Role::SampleCrc32c
            | Role::Width
            | Role::Height
            | Role::Channels
            | Role::Coding
    )
}

fn form(field: &Field, holds: Holds, images: Option<ImagesAs>) -> Option<Form> {
    let kept = |form, held: bool| held.then_some(form);
    match field.kind {
        FieldKind::Tensor => {
            let array = ArrayType { dtype: field.dtype, shape: field.shape.clone() };
            let is_picture = matches!(field.role, Some(Role::Image | Role::Mask)) && PixelShape::of(&array).is_some();
            let as_files = match images {
                Some(images) => images == ImagesAs::Files,
                None => holds.prefers_files,
            };
            if is_picture && as_files { kept(Form::File, holds.files) } else { kept(Form::Array(array), holds.arrays) }
        }
        FieldKind::Image if images == Some(ImagesAs::Pixels) => None,
        FieldKind::Image => kept(Form::File, holds.files),
        FieldKind::String => kept(Form::Text, holds.text),
        FieldKind::Json => kept(Form::Json, holds.text),
        _ => kept(Form::Bytes, holds.bytes),
    }
}

/// Why `format` cannot store a field, although it supports its form.
fn left_out(format: DataFormat, field: &Field, form: &Form) -> Option<String> {
    match format {
        DataFormat::ImageFolder => image_folder::left_out(field, form),
        _ => None,
    }
}

fn cannot_hold(format: DataFormat, images: Option<ImagesAs>) -> ConvertError {
    let (reason, hint) = match images {
        Some(ImagesAs::Pixels) => (
            format!(
                "{} needs images of one size, and this pack holds image files or images of several sizes",
                IMAGES.with("pixels")
            ),
            format!("leave {IMAGES} out, or convert with {} and one size first", MODE.with("raw")),
        ),
        Some(ImagesAs::Files) => {
            (format!("{format} cannot hold image files"), format!("leave {IMAGES} out, or choose another format"))
        }
        None => (
            format!("{format} holds arrays of one shape, but this pack has image files or images of several sizes"),
            format!(
                "choose a format that holds files, such as webdataset or parquet, or convert with {} and one size first",
                MODE.with("raw")
            ),
        ),
    };
    ConvertError::Options { reason, hint }
}

/// The names of the fields in the output, as close to `wanted` as possible. Reports names that no `place` can have.
pub(super) fn held_names(fields: &[String], wanted: &[String], place: &str, lost: &mut Vec<String>) -> Vec<String> {
    let names = safe_names(wanted.iter().map(String::as_bytes));
    for (of, name) in fields.iter().zip(&names) {
        if of != name {
            lost.push(format!("the name of field `{of}`: not valid for a {place}; the array is `{name}`"));
        }
    }
    names
}
