//! The encodings of MDS columns.

use std::path::Path;

use packds_format::DType;
use packds_system::to_u64;

use super::super::declared::{self, DeclaredFields};
use super::super::gather::{Item, Raw};
use super::super::store::{ArrayType, Content};
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;

/// Maximum number of dimensions, and so of bytes before the values of an array: its type, the number of dimensions, and their lengths.
const MAX_DIMENSIONS: usize = 63;
const MAX_ARRAY_HEAD: u64 = 2 + 8 * 63;

/// The number that stands for each element type before an array.
const DTYPES: [(u8, DType); 11] = [
    (8, DType::U8),
    (9, DType::I8),
    (16, DType::U16),
    (17, DType::I16),
    (18, DType::F16),
    (32, DType::U32),
    (33, DType::I32),
    (34, DType::F32),
    (64, DType::U64),
    (65, DType::I64),
    (66, DType::F64),
];

/// How the values of a column are encoded.
#[derive(Debug)]
pub(super) enum Encoding {
    Bytes,
    Text,
    Json,
    /// An image file.
    File,
    /// An image with the header of Pillow's mode and size.
    Pil,
    Number(DType),
    /// An integer in digits.
    Digits,
    /// A number with a fraction, in digits.
    Decimal,
    /// An array. What is `None` is stated by each value.
    Array(Option<DType>, Option<Vec<u64>>),
}

impl Encoding {
    /// The encoding of this name.
    ///
    /// # Errors
    /// If the values cannot be read: pickles, lists of images, and encodings that a user's code added.
    pub(super) fn of(path: &Path, column: &str, name: &str) -> Result<Self, ConvertError> {
        if let Some(dtype) = dtype_named(name) {
            return Ok(Self::Number(dtype));
        }
        Ok(match name {
            "bytes" => Self::Bytes,
            // Decimals have any number of digits, so they are kept as strings.
            "str" | "str_decimal" => Self::Text,
            "json" => Self::Json,
            "jpeg" | "png" => Self::File,
            "pil" => Self::Pil,
            "int" => Self::Number(DType::I64),
            "str_int" => Self::Digits,
            "str_float" => Self::Decimal,
            "pkl" => return Err(declared::pickled(path, column)),
            "jpeg_array" | "jpegarray" | "list[pil]" | "list[jpeg]" | "list[png]" => {
                return Err(declared::several_images(path, column));
            }
            _ => match array_named(name) {
                Some(array) => array,
                None => {
                    let reason = format!("the encoding '{}' is not supported", name.escape_debug());
                    let how = "write the field in an encoding of the library, such as bytes or ndarray";
                    return Err(declared::unread(path, column, reason, how));
                }
            },
        })
    }

    /// The length of each value, if all have the same.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Number(dtype) => Some(dtype.size()),
            Self::Array(Some(dtype), Some(shape)) => ArrayType { dtype: *dtype, shape: shape.clone() }.bytes(),
            _ => None,
        }
    }

    /// Adds a value to a field.
    pub(super) fn read(&self, raw: &Raw<'_>, place: usize, fields: &mut DeclaredFields) -> Result<(), ConvertError> {
        let text;
        let item = match self {
            Self::Bytes => return fields.push_bytes(place, raw),
            Self::File => raw.stored(0, Content::File),
            Self::Pil => declared::pil(raw, fields.is_mask(place))?,
            Self::Number(dtype) => declared::number(*dtype, raw)?,
            Self::Array(dtype, shape) => array(*dtype, shape.as_deref(), raw)?,
            Self::Text => {
                text = raw.text()?;
                Item::Text(&text)
            }
            Self::Json => {
                text = declared::json(raw)?;
                Item::Json(&text)
            }
            Self::Digits => {
                text = raw.text()?;
                let wrong = || {
                    let hint = format!("write it with the encoding str, or leave it out with {LEAVE_OUT}");
                    let reason = format!("expected an integer of at most 64 bits, found '{}'", text.escape_debug());
                    raw.contradictory(reason, hint)
                };
                Item::Int(text.parse().map_err(|_| wrong())?)
            }
            Self::Decimal => {
                text = raw.text()?;
                let wrong = || raw.wrong(format!("expected a number, found '{}'", text.escape_debug()));
                Item::Float(text.parse().map_err(|_| wrong())?)
            }
        };
        fields.push(place, raw, &item)
    }
}

/// The element type with this name in NumPy.
fn dtype_named(name: &str) -> Option<DType> {
    DTYPES.into_iter().map(|(_, dtype)| dtype).find(|dtype| dtype.numpy_name() == name)
}

/// An encoding of arrays: `ndarray`, `ndarray:DTYPE` or `ndarray:DTYPE:LENGTH,LENGTH`.
fn array_named(name: &str) -> Option<Encoding> {
    let rest = name.strip_prefix("ndarray")?;
    let Some(rest) = rest.strip_prefix(':').filter(|rest| !rest.is_empty()) else {
        return rest.trim_start_matches(':').is_empty().then_some(Encoding::Array(None, None));
    };
    let (dtype, shape) = rest.split_once(':').map_or((rest, None), |(dtype, shape)| (dtype, Some(shape)));
    let lengths = |shape: &str| shape.split(',').map(|length| length.trim().parse().ok()).collect::<Option<Vec<u64>>>();
    let shape = match shape {
        Some(shape) => Some(lengths(shape)?),
        None => None,
    };
    Some(Encoding::Array(Some(dtype_named(dtype)?), shape))
}

/// An array, after its type and shape where these are not fixed.
fn array(dtype: Option<DType>, shape: Option<&[u64]>, raw: &Raw<'_>) -> Result<Item<'static>, ConvertError> {
    let head = match (dtype, shape) {
        (Some(_), Some(_)) => Vec::new(),
        _ => raw.head(MAX_ARRAY_HEAD)?,
    };
    let mut rest = head.as_slice();
    let short = || raw.wrong(format!("expected the type and the shape of an array, found {} bytes", raw.bytes));
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => {
            let (code, after) = rest.split_first().ok_or_else(short)?;
            rest = after;
            let known = DTYPES.into_iter().find(|(known, _)| known == code);
            known.ok_or_else(|| raw.wrong(format!("expected the number of an element type, found {code}")))?.1
        }
    };
    let shape = match shape {
        Some(shape) => shape.to_vec(),
        None => {
            let (form, after) = rest.split_first().ok_or_else(short)?;
            let (n, width) = (usize::from(form >> 2), 1_usize << (form & 3));
            let lengths = after.get(..n.saturating_mul(width)).filter(|_| n <= MAX_DIMENSIONS).ok_or_else(short)?;
            rest = after.get(lengths.len()..).unwrap_or_default();
            lengths.chunks_exact(width).map(length).collect()
        }
    };
    declared::array(dtype, shape, to_u64(head.len() - rest.len()), raw)
}

/// A length in 1, 2, 4 or 8 bytes.
fn length(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |length, byte| (length << 8) | u64::from(*byte))
}
