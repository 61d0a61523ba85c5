//! `tf.Example`: named features, each a list of byte strings, floats or integers.

use packds_system::to_u64;
use std::collections::BTreeMap;

use packds_format::DType;
use packds_pixels::ImageFormat;
use serde_json::Value;

use super::super::protobuf::{Message, Part, Wire};
use super::super::store::{ArrayType, Content};
use crate::dtypes::of_tensorflow;

/// The features of a record.
#[derive(Debug, Default)]
pub(super) struct Example<'a> {
    features: BTreeMap<&'a str, Feature<'a>>,
}

/// A list of values.
#[derive(Debug, PartialEq)]
pub(super) enum Feature<'a> {
    Bytes(Vec<Part<'a>>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

/// Why a record is not an example.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    Damaged(String),
    /// The record contains lists of features.
    Sequence,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl<'a> Example<'a> {
    pub(super) fn parse(record: &'a [u8]) -> Result<Self, Refused> {
        let mut example = Self::default();
        let mut message = Message::new(record);
        while let Some((number, wire)) = message.next()? {
            match (number, wire) {
                (1, Wire::Bytes(features)) => example.features(features)?,
                (2, Wire::Bytes(_)) => return Err(Refused::Sequence),
                _ => {
                    let reason = format!("expected a tf.Example, found a message with field {number}");
                    return Err(Refused::Damaged(reason));
                }
            }
        }
        Ok(example)
    }

    fn features(&mut self, features: Part<'a>) -> Result<(), String> {
        let mut entries = features.message();
        while let Some((_, wire)) = entries.next()? {
            let Wire::Bytes(entry) = wire else {
                return Err("expected a feature".to_owned());
            };
            let (mut name, mut feature) = ("", Feature::Bytes(Vec::new()));
            let mut entry = entry.message();
            while let Some((number, wire)) = entry.next()? {
                match (number, wire) {
                    (1, Wire::Bytes(key)) => {
                        let text = str::from_utf8(key.bytes);
                        name = text.map_err(|_| "the name of a feature is not text".to_owned())?;
                    }
                    (2, Wire::Bytes(value)) => feature = Feature::parse(value)?,
                    _ => return Err("expected a name and a feature".to_owned()),
                }
            }
            self.features.insert(name, feature);
        }
        Ok(())
    }

    /// Removes a feature and the features that describe it.
    pub(super) fn remove(&mut self, name: &str) {
        self.features.remove(name);
        for suffix in ["shape", "dtype"] {
            self.features.remove(format!("{name}/{suffix}").as_str());
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Feature<'a>> {
        self.features.get(name)
    }

    /// The names of the features, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.features.keys().copied()
    }

    /// The type of the raw array in feature `name`, if the features `NAME/shape` and `NAME/dtype` state it.
    pub(super) fn array_of(&self, name: &str) -> Option<ArrayType> {
        let Some(Feature::Ints(shape)) = self.get(&format!("{name}/shape")) else {
            return None;
        };
        let dtype = self.get(&format!("{name}/dtype"))?.text()?;
        let shape = shape.iter().map(|n| u64::try_from(*n).ok());
        Some(ArrayType { dtype: DType::from_numpy_name(dtype)?, shape: shape.collect::<Option<_>>()? })
    }

    /// The type of raw pixels, if features state the height, width and channels, and these match the number of bytes.
    pub(super) fn raw_pixels(&self, image: &str) -> Option<RawPixels> {
        let bytes = to_u64(self.get(image)?.first_bytes()?.len());
        let int = |name: &str| {
            let names = [name.to_owned(), format!("image/{name}")];
            names.iter().find_map(|name| match self.get(name)? {
                Feature::Ints(values) if values.len() == 1 => u64::try_from(*values.first()?).ok(),
                _ => None,
            })
        };
        let (height, width) = (int("height")?, int("width")?);
        let channels = int("depth").or_else(|| int("channels"));
        let names = [format!("{image}/dtype"), "image/dtype".to_owned(), "dtype".to_owned()];
        let stated = names.iter().find_map(|name| DType::from_numpy_name(self.get(name)?.text()?));
        // If the channels are not stated, four bytes per pixel may be one number or four channels.
        let assumed = [Some(DType::U8), channels.map(|_| DType::U16), channels.map(|_| DType::F32)];
        let dtypes = match stated {
            Some(dtype) => vec![dtype],
            None => assumed.into_iter().flatten().collect(),
        };
        let array = |dtype| ArrayType { dtype, shape: vec![height, width, channels.unwrap_or(1)] };
        let array = dtypes.into_iter().map(array).find(|array| array.bytes() == Some(bytes))?;
        Some(RawPixels { is_assumed: stated.is_none() && array.dtype != DType::U8, array })
    }

    /// The content of feature `name` and its bytes.
    pub(super) fn content_of<'b>(
        &self,
        name: &str,
        value: Part<'b>,
        is_image: bool,
    ) -> Result<(Part<'b>, Content), String> {
        if let Some(array) = self.array_of(name) {
            let found = to_u64(value.bytes.len());
            return match array.bytes() {
                Some(bytes) if bytes == found => Ok((value, Content::of_array(array))),
                _ => Err(format!(
                    "expected an array of {} with shape {:?}, found {found} bytes",
                    array.dtype, array.shape
                )),
            };
        }
        if ImageFormat::sniff(value.bytes).is_some() {
            return Ok((value, Content::File));
        }
        if let Some((bytes, array)) = tensor_of(value) {
            return Ok((bytes, Content::of_array(array)));
        }
        if is_image && let Some(pixels) = self.raw_pixels(name) {
            return Ok((value, Content::of_array(pixels.array)));
        }
        let or_pixels = match is_image {
            true => ", or raw pixels with the features height, width and depth",
            false => "",
        };
        Err(format!("expected an image file or a tensor of tf.io.serialize_tensor{or_pixels}"))
    }
}

/// Raw pixels with a stated size.
#[derive(Debug)]
pub(super) struct RawPixels {
    pub(super) array: ArrayType,
    /// Whether the element type was inferred from the number of bytes.
    pub(super) is_assumed: bool,
}

/// The bytes and the type of a tensor written by `tf.io.serialize_tensor`. `None` if the value is something else.
pub(super) fn tensor_of(value: Part<'_>) -> Option<(Part<'_>, ArrayType)> {
    let mut message = value.message();
    let (mut dtype, mut shape, mut content) = (None, Vec::new(), None);
    while let Some(field) = message.next().ok()? {
        match field {
            (1, Wire::Varint(number)) => dtype = Some(of_tensorflow(number)?),
            (2, Wire::Bytes(sizes)) => shape = tensor_shape(sizes)?,
            (3, Wire::Varint(_)) => {}
            (4, Wire::Bytes(bytes)) => content = Some(bytes),
            _ => return None,
        }
    }
    let (array, content) = (ArrayType { dtype: dtype?, shape }, content?);
    (array.bytes() == Some(to_u64(content.bytes.len()))).then_some((content, array))
}

fn tensor_shape(shape: Part<'_>) -> Option<Vec<u64>> {
    let (mut sizes, mut message) = (Vec::new(), shape.message());
    while let Some(field) = message.next().ok()? {
        let (2, Wire::Bytes(dimension)) = field else { return None };
        let (mut size, mut dimension) = (0, dimension.message());
        while let Some(field) = dimension.next().ok()? {
            match field {
                (1, Wire::Varint(number)) => size = number,
                (2, Wire::Bytes(_)) => {}
                _ => return None,
            }
        }
        sizes.push(size);
    }
    Some(sizes)
}

impl<'a> Feature<'a> {
    fn parse(value: Part<'a>) -> Result<Self, String> {
        let mut feature = Self::Bytes(Vec::new());
        let mut message = value.message();
        while let Some((number, wire)) = message.next()? {
            feature = match (number, wire) {
                (1, Wire::Bytes(list)) => Self::Bytes(byte_strings(list)?),
                (2, Wire::Bytes(list)) => Self::Floats(floats(list)?),
                (3, Wire::Bytes(list)) => Self::Ints(ints(list)?),
                _ => return Err(format!("expected a list of values, found field {number}")),
            };
        }
        Ok(feature)
    }

    /// Whether the only value is a byte string.
    pub(super) fn is_one_bytes(&self) -> bool {
        self.one_bytes().is_some()
    }

    /// The first byte string.
    fn first_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(values) => values.first().map(|value| value.bytes),
            _ => None,
        }
    }

    /// The only value, if it is a byte string.
    pub(super) fn one_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(values) => match values.as_slice() {
                [one] => Some(one.bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// The only value, if it is text.
    pub(super) fn text(&self) -> Option<&'a str> {
        str::from_utf8(self.one_bytes()?).ok()
    }

    /// All values as a JSON list.
    pub(super) fn json(&self) -> Result<String, String> {
        let values: Value = match self {
            Self::Ints(values) => values.iter().copied().collect(),
            Self::Floats(values) => values.iter().copied().collect(),
            Self::Bytes(values) => {
                let texts = values.iter().map(|v| str::from_utf8(v.bytes));
                let texts = texts.collect::<Result<Vec<_>, _>>();
                let texts = texts.map_err(|_| "expected text in a list of byte strings, found bytes".to_owned())?;
                texts.into_iter().collect()
            }
        };
        Ok(values.to_string())
    }
}

fn byte_strings(list: Part<'_>) -> Result<Vec<Part<'_>>, String> {
    let (mut values, mut message) = (Vec::new(), list.message());
    while let Some(field) = message.next()? {
        match field {
            (1, Wire::Bytes(value)) => values.push(value),
            _ => return Err("expected a list of byte strings".to_owned()),
        }
    }
    Ok(values)
}

fn floats(list: Part<'_>) -> Result<Vec<f32>, String> {
    let (mut values, mut message) = (Vec::new(), list.message());
    while let Some(field) = message.next()? {
        match field {
            (1, Wire::Fixed32(value)) => values.push(f32::from_le_bytes(value)),
            (1, Wire::Bytes(packed)) => {
                let (chunks, rest) = packed.bytes.as_chunks();
                if !rest.is_empty() {
                    return Err("expected floats of four bytes each".to_owned());
                }
                values.extend(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)));
            }
            _ => return Err("expected a list of floats".to_owned()),
        }
    }
    Ok(values)
}

fn ints(list: Part<'_>) -> Result<Vec<i64>, String> {
    let (mut values, mut message) = (Vec::new(), list.message());
    while let Some(field) = message.next()? {
        match field {
            (1, Wire::Varint(value)) => values.push(value.cast_signed()),
            (1, Wire::Bytes(packed)) => {
                let mut packed = packed.message();
                while let Some(value) = packed.next_varint()? {
                    values.push(value.cast_signed());
                }
            }
            _ => return Err("expected a list of integers".to_owned()),
        }
    }
    Ok(values)
}
