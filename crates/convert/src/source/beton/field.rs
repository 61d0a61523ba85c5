//! The types of fields, and their values.

use std::path::Path;

use packds_format::DType;
use packds_system::to_usize;

use super::super::declared::{self, DeclaredFields};
use super::super::gather::{Item, Raw};
use super::super::store::{Content, PixelShape};
use super::header::{Sizes, number};
use crate::error::ConvertError;

/// Maximum number of dimensions of an array.
const MAX_DIMENSIONS: usize = 32;
/// Where the length of the name of an array's type is, after the lengths of its dimensions, and where the name is.
const TYPE_LENGTH_AT: usize = 8 * MAX_DIMENSIONS;
const TYPE_AT: usize = TYPE_LENGTH_AT + 8;

/// What a row stores for a field.
#[derive(Debug)]
pub(super) enum Kind {
    Float,
    Int,
    /// An image of three channels: a JPEG file or pixels.
    Image,
    Bytes,
    Json,
    /// An array of a fixed type and shape.
    Array(DType, Vec<u64>),
}

impl Kind {
    /// The type with this number.
    ///
    /// # Errors
    /// If it is a type that a user's code added, because its length in a row is not stored, or an array of another type than numbers.
    pub(super) fn of(path: &Path, name: &str, type_id: u8, arguments: &[u8]) -> Result<Self, ConvertError> {
        let place = format!("field '{}'", name.escape_debug());
        Ok(match type_id {
            0 => Self::Float,
            1 => Self::Int,
            2 => Self::Image,
            3 => Self::Bytes,
            4 | 6 => array(arguments).map_err(|reason| {
                let hint = "write the array with a little-endian type of numbers, such as '<f4'";
                ConvertError::unsupported(path, &place, reason, hint)
            })?,
            5 => Self::Json,
            other => {
                let what = if other == 255 { "a custom type".to_owned() } else { format!("the type {other}") };
                let reason = format!(
                    "the field has {what}, whose size is not in the file, so that no field can be found behind it"
                );
                let hint = "write the file again with DatasetWriter and without this field, or with FFCV's own fields";
                return Err(ConvertError::unsupported(path, &place, reason, hint));
            }
        })
    }

    /// Bytes in a row.
    pub(super) fn row_bytes(&self) -> usize {
        match self {
            // The mode, the width, the height and the place, without gaps.
            Self::Image => 13,
            Self::Bytes | Self::Json => 16,
            Self::Float | Self::Int | Self::Array(..) => 8,
        }
    }

    /// The alignment in a row.
    pub(super) fn alignment(&self) -> usize {
        match self {
            Self::Image | Self::Bytes | Self::Json => 1,
            Self::Float | Self::Int | Self::Array(..) => 8,
        }
    }

    /// Adds a value to a field. `cell` is what the row stores for it, and `raw` starts there.
    pub(super) fn read(
        &self,
        cell: &[u8],
        mut raw: Raw<'_>,
        sizes: &Sizes,
        place: usize,
        fields: &mut DeclaredFields,
    ) -> Result<(), ConvertError> {
        let text;
        let item = match self {
            Self::Float => Item::Float(f64::from_bits(number::<8>(cell, 0))),
            Self::Int => {
                raw.bytes = 8;
                declared::number(DType::I64, &raw)?
            }
            Self::Image => image(cell, &mut raw, sizes)?,
            Self::Bytes => {
                (raw.offset, raw.bytes) = (number::<8>(cell, 0), number::<8>(cell, 8));
                check(&raw, sizes)?;
                return fields.push_bytes(place, &raw);
            }
            Self::Json => {
                (raw.offset, raw.bytes) = (number::<8>(cell, 0), number::<8>(cell, 8));
                check(&raw, sizes)?;
                // FFCV ends the text with a zero byte, which is not part of it.
                raw.bytes = raw.bytes.saturating_sub(1);
                text = declared::json(&raw)?;
                Item::Json(&text)
            }
            Self::Array(dtype, shape) => {
                raw.offset = number::<8>(cell, 0);
                let bytes = shape.iter().try_fold(dtype.size(), |bytes, n| bytes.checked_mul(*n));
                raw.bytes = bytes.unwrap_or(u64::MAX);
                check(&raw, sizes)?;
                declared::array(*dtype, shape.clone(), 0, &raw)?
            }
        };
        fields.push(place, &raw, &item)
    }
}

/// An image: its mode, width, height and place.
fn image(cell: &[u8], raw: &mut Raw<'_>, sizes: &Sizes) -> Result<Item<'static>, ConvertError> {
    let (mode, place) = (number::<1>(cell, 0), number::<8>(cell, 5));
    let size = |at| u32::try_from(number::<2>(cell, at)).unwrap_or_default();
    raw.offset = place;
    match mode {
        0 => {
            let bytes = sizes.at(place);
            let reason = || raw.wrong(format!("expected an allocation at byte {place}, found none"));
            raw.bytes = bytes.ok_or_else(reason)?;
            check(raw, sizes)?;
            Ok(raw.stored(0, Content::File))
        }
        1 => {
            let shape = PixelShape { width: size(1), height: size(3), channels: 3, planar: false };
            if shape.bytes() == 0 {
                return Err(raw.wrong(format!("expected a size, found {}x{}", shape.width, shape.height)));
            }
            raw.bytes = shape.bytes();
            check(raw, sizes)?;
            Ok(raw.stored(0, Content::Pixels(shape)))
        }
        other => Err(raw.wrong(format!("expected the mode 0 (JPEG) or 1 (pixels), found {other}"))),
    }
}

/// Refuses a value outside the file, or without an allocation of its size.
fn check(raw: &Raw<'_>, sizes: &Sizes) -> Result<(), ConvertError> {
    let (bytes, offset, found) = (raw.bytes, raw.offset, raw.file.bytes);
    if offset.checked_add(bytes).is_none_or(|end| end > found) {
        return Err(raw.wrong(format!("expected {bytes} bytes at byte {offset}, found a file of {found} bytes")));
    }
    match sizes.at(offset) {
        _ if bytes == 0 => Ok(()),
        Some(found) if found == bytes => Ok(()),
        Some(found) => {
            Err(raw.wrong(format!("expected an allocation of {bytes} bytes at byte {offset}, found one of {found}")))
        }
        None => Err(raw.wrong(format!("expected an allocation at byte {offset}, found none"))),
    }
}

/// The type and shape of an array, from the arguments of its field.
fn array(arguments: &[u8]) -> Result<Kind, String> {
    let mut shape: Vec<u64> = (0..MAX_DIMENSIONS).map(|place| number::<8>(arguments, 8 * place)).collect();
    // Unused dimensions are zero.
    while shape.last() == Some(&0) {
        shape.pop();
    }
    let length = to_usize(number::<8>(arguments, TYPE_LENGTH_AT));
    let text = arguments.get(TYPE_AT..).and_then(|rest| rest.get(..length));
    let text = text.ok_or_else(|| format!("expected the name of a type of at most 1024 bytes, found {length}"))?;
    let types: Vec<(String, String)> = serde_json::from_slice(text)
        .map_err(|_| format!("expected one type of numbers, found {}", String::from_utf8_lossy(text).escape_debug()))?;
    let [(_, name)] = types.as_slice() else {
        return Err(format!("expected one type of numbers, found {}", types.len()));
    };
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.numpy_typestr() == name && *dtype != DType::Bf16);
    dtype
        .map(|dtype| Kind::Array(dtype, shape))
        .ok_or_else(|| format!("expected a type of numbers, found '{}'", name.escape_debug()))
}
