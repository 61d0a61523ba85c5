//! Decides which fields of a pack are exported, and in which form.

use packds_format::{DType, Field, FieldKind, Pack, Role};

use super::item_file::common_extension;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::formats::Output;
use crate::opt::{IMAGES, MODE};
use crate::safe_name::safe_names;
use crate::source::store::{ArrayType, PixelShape};

/// What a format can store for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Only arrays. All items of a field have the same type and shape.
    Arrays,
    /// Arrays, and also image files, bytes and text of any length. Pixels are exported as arrays.
    FilesAndArrays,
    /// The same as `FilesAndArrays`, but pixels are exported as lossless image files unless arrays are requested.
    FilesFirst,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Arrays of this type, little-endian, in C order. Scalars have no dimensions.
    Array(ArrayType),
    /// Image files. Each batch stores their extensions.
    File,
    Bytes,
    Text,
    Json,
}

/// Whether formats that store items as files write labels of this type as decimal digits.
pub(crate) fn is_in_digits(dtype: DType) -> bool {
    !matches!(dtype, DType::F16 | DType::Bf16)
}

#[derive(Debug, Clone)]
pub(crate) struct ExportedField {
    /// The field's index in the pack's schema.
    pub(crate) number: usize,
    /// The field as described in the pack.
    pub(crate) field: Field,
    pub(crate) form: Form,
    /// The extension of its files, if it has files and all have the same.
    pub(crate) extension: Option<&'static str>,
}

/// All exported fields: the image first, then the others in schema order.
#[derive(Debug, Clone)]
pub(crate) struct Exported {
    pub(crate) fields: Vec<ExportedField>,
    /// Whether the pack has the path of each sample.
    pub(crate) has_paths: bool,
    /// Descriptions of the fields that are not exported.
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
    /// Decides which fields are exported to `format`. Fails if the format cannot store the images.
    pub(crate) fn of<D: AsRef<[u8]>>(
        pack: &Pack<D>,
        format: DataFormat,
        output: &Output,
        images: Option<ImagesAs>,
    ) -> Result<Self, ConvertError> {
        if pack.n_samples() == 0 {
            return Err(ConvertError::options("the pack has no samples", "there is nothing to export"));
        }
        let (mut fields, mut lost) = (Vec::new(), Vec::new());
        for (number, field) in pack.schema().fields().iter().enumerate() {
            // Other fields are not exported, because converting the export back to a pack derives them again.
            if !field.is_data() {
                continue;
            }
            match form(field, output.holds, images) {
                Some(form) => match (output.left_out)(field, &form) {
                    Some(reason) => lost.push(reason),
                    None => {
                        let extension = if form == Form::File { common_extension(pack, field)? } else { None };
                        fields.push(ExportedField { number, field: field.clone(), form, extension });
                    }
                },
                None if field.role == Some(Role::Image) => {
                    return Err(cannot_hold(format, images));
                }
                None => lost.push(format!("field `{}`, because {format} cannot store it", field.name)),
            }
        }
        fields.sort_by_key(|f| f.field.role != Some(Role::Image));
        Ok(Self { fields, has_paths: pack.has_paths(), lost })
    }

    /// The index of the label field, if labels are written as decimal digits.
    pub(crate) fn label_in_digits(&self) -> Option<usize> {
        let (place, label) = self.by_role(Role::Label)?;
        matches!(&label.form, Form::Array(a) if a.shape.is_empty() && is_in_digits(a.dtype)).then_some(place)
    }

    pub(crate) fn by_role(&self, role: Role) -> Option<(usize, &ExportedField)> {
        let mut fields = self.fields.iter().enumerate();
        fields.find(|(_, f)| f.field.role == Some(role))
    }
}

fn form(field: &Field, holds: Holds, images: Option<ImagesAs>) -> Option<Form> {
    let besides_arrays = |form| (holds != Holds::Arrays).then_some(form);
    match field.kind {
        FieldKind::Tensor => {
            let array = ArrayType { dtype: field.dtype, shape: field.shape.clone() };
            let is_picture = matches!(field.role, Some(Role::Image | Role::Mask)) && PixelShape::of(&array).is_some();
            let as_files = images.map_or(holds == Holds::FilesFirst, |images| images == ImagesAs::Files);
            if is_picture && as_files { besides_arrays(Form::File) } else { Some(Form::Array(array)) }
        }
        FieldKind::Image if images == Some(ImagesAs::Pixels) => None,
        FieldKind::Image => besides_arrays(Form::File),
        FieldKind::String => besides_arrays(Form::Text),
        FieldKind::Json | FieldKind::Ragged => besides_arrays(Form::Json),
        _ => besides_arrays(Form::Bytes),
    }
}

fn cannot_hold(format: DataFormat, images: Option<ImagesAs>) -> ConvertError {
    let (reason, hint) = match images {
        Some(ImagesAs::Pixels) => (
            format!(
                "{} needs images of one size, but this pack contains image files or images of several sizes",
                IMAGES.with("pixels")
            ),
            format!("omit {IMAGES}, or first convert to images of one size with {}", MODE.with("raw")),
        ),
        Some(ImagesAs::Files) => {
            (format!("{format} cannot store image files"), format!("omit {IMAGES}, or choose another format"))
        }
        None => (
            format!("{format} stores arrays of one shape, but this pack has image files or images of several sizes"),
            format!(
                "choose a format that stores files, such as webdataset or parquet, or first convert to images of one size with {}",
                MODE.with("raw")
            ),
        ),
    };
    ConvertError::options(reason, hint)
}

/// Returns the names of the fields in the output, as close to `wanted` as possible. Adds a note to `lost` for each
/// field whose name is not valid for `place`.
pub(super) fn held_names(fields: &[String], wanted: &[String], place: &str, lost: &mut Vec<String>) -> Vec<String> {
    let names = safe_names(wanted.iter().map(String::as_bytes));
    for (of, name) in fields.iter().zip(&names) {
        if of != name {
            lost.push(format!("the name of field `{of}`, which is not valid for {place}; the array is named `{name}`"));
        }
    }
    names
}
