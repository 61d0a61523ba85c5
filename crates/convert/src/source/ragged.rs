//! Any number of entries per sample, in memory, and their form as JSON: a list with one item per entry.

use packds_format::{DType, Field, Scalar};
use packds_system::{to_u64, to_usize};
use serde_json::Value;

use super::column::TextArena;
use super::portable::Portable;
use super::store::{ArrayType, Content, Store};
use crate::sample::SampleError;

/// The entries of each sample.
#[derive(Debug)]
pub(crate) struct Ragged {
    pub(super) entry: ArrayType,
    pub(super) bytes: Vec<u8>,
    /// Where the entries of each sample end in `bytes`.
    pub(super) ends: Vec<u64>,
}

impl Ragged {
    /// Reads JSON texts as entries of the ragged field `known`. `None` if one of them has another form, or has a number that
    /// does not fit. A missing value (`null`) has no entries.
    pub(super) fn of_texts(texts: &TextArena, known: &Field) -> Option<Self> {
        let entry = ArrayType { dtype: known.dtype, shape: known.shape.clone() };
        let mut ragged = Self { entry, bytes: Vec::new(), ends: Vec::with_capacity(texts.len()) };
        for text in texts.iter() {
            match serde_json::from_str(text).ok()? {
                Value::Null => {}
                Value::Array(entries) => {
                    let ArrayType { dtype, shape } = &ragged.entry;
                    entries.iter().try_for_each(|entry| push(entry, *dtype, shape, &mut ragged.bytes))?;
                }
                _ => return None,
            }
            ragged.ends.push(to_u64(ragged.bytes.len()));
        }
        Some(ragged)
    }

    fn span(&self, idx: usize) -> Option<std::ops::Range<usize>> {
        let start = idx.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        Some(to_usize(start)..to_usize(*self.ends.get(idx)?))
    }
}

impl Store for Ragged {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.span(idx).map_or(0, |span| to_u64(span.len()))
    }

    fn content(&self, _idx: usize) -> Content {
        Content::Ragged(self.entry.clone())
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let item = self.span(idx).and_then(|span| self.bytes.get(span)).ok_or(SampleError::Missing)?;
        out.extend_from_slice(item.get(..to_usize(limit)).unwrap_or(item));
        Ok(())
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(places.len()));
        for place in places {
            bytes.extend_from_slice(self.bytes.get(self.span(*place)?)?);
            ends.push(to_u64(bytes.len()));
        }
        Some(Portable::Ragged { entry: self.entry.clone(), bytes, ends })
    }
}

/// Appends the numbers of an entry. `None` if its shape is not `shape`, or a number does not fit in `dtype`.
fn push(value: &Value, dtype: DType, shape: &[u64], out: &mut Vec<u8>) -> Option<()> {
    let Some((side, rest)) = shape.split_first() else {
        out.extend(number(value, dtype)?);
        return Some(());
    };
    let values = value.as_array().filter(|values| to_u64(values.len()) == *side)?;
    values.iter().try_for_each(|value| push(value, dtype, rest, out))
}

/// A number as bytes. Integers must fit exactly. Floats are rounded to the type, but not to infinity.
fn number(value: &Value, dtype: DType) -> Option<Vec<u8>> {
    match value {
        Value::Bool(value) => Scalar::Bool(*value).to_bytes(dtype),
        Value::Number(number) => match dtype {
            DType::F32 => single(number.as_f64()?).map(|single| single.to_le_bytes().to_vec()),
            // The text is that of the nearest f32.
            #[expect(clippy::cast_possible_truncation, reason = "half precision is compared with the f32")]
            DType::F16 | DType::Bf16 => Scalar::Single(number.as_f64()? as f32).to_bytes(dtype),
            DType::F64 => Scalar::Double(number.as_f64()?).to_bytes(dtype),
            _ => number.as_u64().map(Scalar::Unsigned).or(number.as_i64().map(Scalar::Int))?.to_bytes(dtype),
        },
        _ => None,
    }
}

/// The nearest f32. `None` if it is not finite.
#[expect(clippy::cast_possible_truncation, reason = "floats are rounded")]
pub(super) fn single(number: f64) -> Option<f32> {
    Some(number as f32).filter(|single| single.is_finite())
}

/// The entries of a ragged item as JSON.
///
/// # Errors
/// A description of a number that JSON cannot express.
pub(crate) fn to_json(field: &Field, item: &[u8]) -> Result<String, String> {
    let mut numbers = Scalar::each(field.dtype, item);
    let n = field.entries(to_u64(item.len())).ok_or("its size is not that of whole entries")?;
    let mut out = String::new();
    let shape: Vec<u64> = std::iter::once(n).chain(field.shape.iter().copied()).collect();
    put(&shape, &mut numbers, &mut out)?;
    Ok(out)
}

fn put(shape: &[u64], numbers: &mut impl Iterator<Item = Scalar>, out: &mut String) -> Result<(), String> {
    let Some((side, rest)) = shape.split_first() else {
        let number = numbers.next().ok_or("a number is missing")?;
        if !number.nearest_f64().is_finite() {
            return Err(format!("expected a number that JSON can express, found {number}"));
        }
        match number {
            Scalar::Bool(value) => out.push_str(&value.to_string()),
            number => out.push_str(&number.to_string()),
        }
        return Ok(());
    };
    out.push('[');
    for place in 0..*side {
        if place > 0 {
            out.push(',');
        }
        put(rest, numbers, out)?;
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> TextArena {
        let mut arena = TextArena::default();
        texts.iter().for_each(|text| arena.push(text));
        arena
    }

    #[test]
    fn entries_go_to_json_and_back() {
        for (dtype, shape, text) in [
            (DType::F32, &[2][..], "[[0.5,-3],[1e20,0.1]]"),
            (DType::I64, &[], "[9223372036854775807,-1]"),
            (DType::U64, &[], "[18446744073709551615]"),
            (DType::Bool, &[1], "[[true],[false]]"),
            (DType::F64, &[1, 2], "[[[0.1,2]]]"),
            (DType::F16, &[], "[]"),
            (DType::F16, &[], "[0.099975586,-2]"),
            (DType::Bf16, &[], "[0.100097656]"),
        ] {
            let field = Field::ragged("x", dtype, shape);
            let ragged = Ragged::of_texts(&texts(&[text]), &field).unwrap();
            let mut item = Vec::new();
            ragged.append(0, u64::MAX, &mut item).unwrap();
            assert_eq!(to_json(&field, &item).unwrap(), text, "{dtype}");
        }
    }

    #[test]
    fn a_missing_value_has_no_entries() {
        let ragged = Ragged::of_texts(&texts(&["[1]", "null", "[2,3]"]), &Field::ragged("x", DType::U8, &[])).unwrap();
        assert_eq!((ragged.bytes.as_slice(), ragged.ends.as_slice()), (&[1, 2, 3][..], &[1, 1, 3][..]));
    }

    #[test]
    fn other_forms_and_numbers_that_do_not_fit_stay_json() {
        for (dtype, shape, text) in [
            (DType::F32, &[2][..], "[[1]]"),
            (DType::F32, &[2], "[1,2]"),
            (DType::F32, &[], "[[1]]"),
            (DType::F32, &[], "{}"),
            (DType::F32, &[], "[1e39]"),
            (DType::U8, &[], "[256]"),
            (DType::U8, &[], "[1.5]"),
            (DType::F64, &[], "[\"1\"]"),
        ] {
            assert!(Ragged::of_texts(&texts(&[text]), &Field::ragged("x", dtype, shape)).is_none(), "{text}");
        }
    }

    #[test]
    fn nan_is_no_json() {
        let field = Field::ragged("x", DType::F32, &[]);
        assert!(to_json(&field, &f32::NAN.to_le_bytes()).unwrap_err().contains("JSON"));
    }
}
