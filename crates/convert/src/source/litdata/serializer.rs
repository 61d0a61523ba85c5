//! The serializers of LitData's values.

use std::path::Path;

use packds_format::DType;
use packds_system::to_u64;

use super::super::declared::{self, DeclaredFields};
use super::super::gather::{Item, Raw};
use super::super::sized_samples::words;
use super::super::store::Content;
use super::nested;
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;

/// Maximum number of dimensions, and bytes of the header before the values of an array.
const MAX_DIMENSIONS: usize = 64;
const MAX_ARRAY_HEAD: u64 = 8 + 4 * 64;

/// The element types of tensors, by number. Complex numbers have no type in packs.
pub(crate) const TORCH: [Option<DType>; 21] = [
    Some(DType::F32),
    Some(DType::F32),
    Some(DType::F64),
    Some(DType::F64),
    None,
    None,
    None,
    None,
    Some(DType::F16),
    Some(DType::F16),
    Some(DType::Bf16),
    Some(DType::U8),
    Some(DType::I8),
    Some(DType::I16),
    Some(DType::I16),
    Some(DType::I32),
    Some(DType::I32),
    Some(DType::I64),
    Some(DType::I64),
    Some(DType::Bool),
    Some(DType::U16),
];
/// The element types of NumPy arrays, by number.
pub(crate) const NUMPY: [Option<DType>; 14] = [
    Some(DType::I8),
    Some(DType::I16),
    Some(DType::I32),
    Some(DType::I64),
    Some(DType::U8),
    Some(DType::U16),
    Some(DType::U32),
    Some(DType::U64),
    Some(DType::F16),
    Some(DType::F32),
    Some(DType::F64),
    None,
    None,
    Some(DType::Bool),
];

/// How to write complex numbers instead.
const COMPLEX: &str = "write the real and the imaginary parts as two fields";

/// How the values of a field are serialized.
#[derive(Debug)]
pub(super) enum Serializer {
    Text,
    Json,
    Number(DType),
    /// An image file.
    File,
    /// A file or bytes. A field whose first value is an image file has image files.
    Bytes,
    /// An image with the header of Pillow's mode and size.
    Pil,
    /// A tensor after its type and shape.
    Tensor,
    /// A NumPy array after its type and shape.
    Numpy,
    /// Values of one type, without a shape.
    Vector(DType),
}

impl Serializer {
    /// The serializer of this name, such as `no_header_tensor:0` or `image:png`.
    ///
    /// # Errors
    /// If the values cannot be read: pickles, lists of images, and serializers that a user's code added.
    pub(super) fn of(path: &Path, field: &str, format: &str) -> Result<Self, ConvertError> {
        let (name, detail) = format.split_once(':').unwrap_or((format, ""));
        let complex = || {
            let reason =
                format!("the values are complex numbers ('{}'), which packs do not have", format.escape_debug());
            declared::unread(path, field, reason, COMPLEX)
        };
        let unread = || {
            let reason = format!("the serializer '{}' is not supported", format.escape_debug());
            declared::unread(path, field, reason, "write the field as bytes, a number, a string or an array")
        };
        let vector = |types: &[Option<DType>]| match detail.parse::<usize>().ok().and_then(|number| types.get(number)) {
            Some(Some(dtype)) => Ok(Self::Vector(*dtype)),
            Some(None) => Err(complex()),
            None => Err(unread()),
        };
        Ok(match name {
            "str" | "string" | "text" => Self::Text,
            "json" => Self::Json,
            "int" => Self::Number(DType::I64),
            "float" => Self::Number(DType::F64),
            "bool" => Self::Number(DType::Bool),
            "jpeg" | "image" | "tiff" | "tifffile" => Self::File,
            "bytes" | "file" | "video" | "audio" | "nifti" | "mesh" | "pdf" => Self::Bytes,
            "pil" => Self::Pil,
            "tensor" => Self::Tensor,
            "numpy" => Self::Numpy,
            "no_header_tensor" => vector(&TORCH)?,
            "no_header_numpy" => vector(&NUMPY)?,
            "pickle" | "graph" => return Err(declared::pickled(path, field)),
            "jpeg_array" => return Err(declared::several_images(path, field)),
            _ => return Err(unread()),
        })
    }

    /// Adds a value to a field.
    pub(super) fn read(&self, raw: &Raw<'_>, place: usize, fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        let text;
        let item = match self {
            Self::Text => {
                text = raw.text()?;
                Item::Text(&text)
            }
            Self::Json => {
                text = nested::json(raw)?;
                Item::Json(&text)
            }
            Self::Number(dtype) => declared::number(*dtype, raw)?,
            Self::File => raw.stored(0, Content::File),
            Self::Bytes => return fields.push_bytes(place, raw),
            Self::Pil => declared::pil(raw, fields.is_mask(place))?,
            Self::Tensor => array(raw, &TORCH, u32::from_be)?,
            Self::Numpy => array(raw, &NUMPY, u32::from_le)?,
            Self::Vector(dtype) => {
                let n = raw.bytes / dtype.size();
                declared::array(*dtype, vec![n], 0, raw)?
            }
        };
        fields.push(place, raw, &item)
    }
}

/// An array after the number of its type, the number of its dimensions, and their lengths. `native` converts these numbers from their
/// order of bytes.
fn array(raw: &Raw<'_>, types: &[Option<DType>], native: fn(u32) -> u32) -> Result<Item<'static>, ConvertError> {
    let head = raw.head(MAX_ARRAY_HEAD)?;
    // The numbers are at most 32 bits wide, so the conversion cannot fail.
    let ordered = |word: u64| u32::try_from(word).map(|word| native(u32::from_le(word))).unwrap_or(u32::MAX);
    let numbers: Vec<u64> = words(&head).into_iter().map(|word| u64::from(ordered(word))).collect();
    let (&[number, n], shape) = numbers
        .split_at_checked(2)
        .and_then(|(a, b)| Some((<&[u64; 2]>::try_from(a).ok()?, b)))
        .ok_or_else(|| raw.wrong(format!("expected the type and the shape of an array, found {} bytes", raw.bytes)))?;
    let known = usize::try_from(number).ok().and_then(|number| types.get(number).copied());
    let known = known.ok_or_else(|| raw.wrong(format!("expected the number of an element type, found {number}")))?;
    let dtype = known.ok_or_else(|| {
        let hint = format!("leave the field out with {LEAVE_OUT}, or {COMPLEX}");
        raw.unsupported("the values are complex numbers, which packs do not have".to_owned(), hint)
    })?;
    let shape = usize::try_from(n).ok().filter(|n| *n <= MAX_DIMENSIONS).and_then(|n| shape.get(..n));
    let shape =
        shape.ok_or_else(|| raw.wrong(format!("expected the lengths of {n} dimensions, found {} bytes", raw.bytes)))?;
    declared::array(dtype, shape.to_vec(), 8 + 4 * to_u64(shape.len()), raw)
}
