//! The values of a column of a table: numbers, arrays of one shape, texts or JSON.

use std::str::FromStr;

use half::{bf16, f16};
use packds_format::{DType, Field, FieldKind, Scalar};
use packds_system::{BadValue, to_usize};

use super::column::{ColumnValues, TextArena};
use super::rows::Cell;
use super::store::ArrayType;
use super::values::text_of;

/// The type of a new field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// Numbers.
    Number(DType),
    /// Texts.
    Text,
    /// JSON values.
    Json,
}

impl FromStr for ValueType {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == text) {
            return Ok(Self::Number(dtype));
        }
        match text {
            _ if text == FieldKind::String.name() => Ok(Self::Text),
            _ if text == FieldKind::Json.name() => Ok(Self::Json),
            _ => {
                let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
                Err(BadValue::new(format!("{}, string or json", names.join(", ")), text))
            }
        }
    }
}

/// The values of a column, one for each row.
#[derive(Debug)]
pub(crate) enum TableValues {
    /// Numbers, or arrays of one shape.
    Numbers(ArrayType, Vec<u8>),
    Text(TextArena),
    Json(TextArena),
}

impl TableValues {
    /// No values of this type.
    pub(super) fn of_type(given: ValueType) -> Self {
        match given {
            ValueType::Number(dtype) => Self::Numbers(ArrayType { dtype, shape: Vec::new() }, Vec::new()),
            ValueType::Text => Self::Text(TextArena::default()),
            ValueType::Json => Self::Json(TextArena::default()),
        }
    }

    /// The item of a row.
    pub(crate) fn item(&self, row: usize) -> &[u8] {
        match self {
            Self::Numbers(array, bytes) => {
                let size = to_usize(array.bytes().unwrap_or(0));
                let start = row.saturating_mul(size);
                bytes.get(start..start.saturating_add(size)).unwrap_or_default()
            }
            Self::Text(texts) | Self::Json(texts) if row < texts.len() => texts.get(row).as_bytes(),
            Self::Text(_) | Self::Json(_) => &[],
        }
    }

    /// A value as text.
    #[cfg(feature = "arrow")]
    pub(super) fn text(&self, row: usize) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Numbers(array, _) => {
                let numbers: Vec<String> =
                    Scalar::each(array.dtype, self.item(row)).map(|number| number.to_string()).collect();
                numbers.join(" ").into()
            }
            Self::Text(_) | Self::Json(_) => String::from_utf8_lossy(self.item(row)),
        }
    }

    /// Adds a cell. `Err` says what was expected.
    pub(super) fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        match self {
            Self::Numbers(array, bytes) => {
                let text = text_of(cell);
                let number = number_of(text.trim(), array.dtype);
                let number =
                    number.ok_or_else(|| format!("expected {}, found '{}'", array.dtype, text.escape_debug()))?;
                bytes.extend(number);
                Ok(())
            }
            Self::Text(texts) => {
                texts.push(&text_of(cell));
                Ok(())
            }
            Self::Json(texts) => {
                let text = text_of(cell);
                match cell {
                    Cell::Json(value) => texts.push(&value.to_string()),
                    Cell::Missing => texts.push("null"),
                    Cell::Text(_) => {
                        let value = serde_json::from_str::<serde_json::Value>(&text);
                        let value = value.map_err(|error| format!("expected a JSON value, found {error}"))?;
                        texts.push(&value.to_string());
                    }
                }
                Ok(())
            }
        }
    }
}

impl From<ColumnValues> for TableValues {
    fn from(values: ColumnValues) -> Self {
        let numbers = |dtype, bytes| Self::Numbers(ArrayType { dtype, shape: Vec::new() }, bytes);
        match values {
            ColumnValues::I64(values) => numbers(DType::I64, values.iter().flat_map(|n| n.to_le_bytes()).collect()),
            ColumnValues::F64(values) => numbers(DType::F64, values.iter().flat_map(|n| n.to_le_bytes()).collect()),
            ColumnValues::Bool(values) => numbers(DType::Bool, values.into_iter().map(u8::from).collect()),
            ColumnValues::Text(texts) => Self::Text(texts),
            ColumnValues::Json(texts) => Self::Json(texts),
        }
    }
}

/// A number as bytes of this type. Floats are rounded to the nearest one of the type. `None` if the text is not a number,
/// or does not fit.
fn number_of(text: &str, dtype: DType) -> Option<Vec<u8>> {
    if dtype == DType::Bool {
        let is_true = text.eq_ignore_ascii_case("true") || text == "1";
        let is_false = text.eq_ignore_ascii_case("false") || text == "0";
        return (is_true || is_false).then(|| vec![u8::from(is_true)]);
    }
    if !dtype.is_float() {
        let number = text.parse().map(Scalar::Int).or_else(|_| text.parse().map(Scalar::Unsigned));
        return number.ok()?.to_bytes(dtype);
    }
    let value: f64 = text.parse().ok()?;
    let rounded = match dtype {
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    // A number that is too large for the type would become infinite.
    let is_kept = !value.is_finite() || Scalar::of(dtype, &rounded)?.float()?.is_finite();
    is_kept.then_some(rounded)
}

/// The field for items of this type: a column if they are small numbers.
pub(crate) fn field_of(name: &str, values: &TableValues) -> Field {
    match values {
        TableValues::Numbers(array, _) => crate::plan::numbers_field(name, array),
        TableValues::Text(_) => Field::variable(name, FieldKind::String),
        TableValues::Json(_) => Field::variable(name, FieldKind::Json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_but_never_changed_otherwise() {
        assert_eq!(number_of("300", DType::U16), Some(vec![44, 1]));
        assert_eq!(number_of("18446744073709551615", DType::U64), Some(vec![255; 8]));
        assert_eq!(number_of("0.1", DType::F32), Some(0.1_f32.to_le_bytes().to_vec()));
        assert_eq!(number_of("nan", DType::F64).map(|bytes| bytes.len()), Some(8));
        assert_eq!(number_of("TRUE", DType::Bool), Some(vec![1]));
        for (text, dtype) in [
            ("300", DType::U8),
            ("-1", DType::U64),
            ("1.0", DType::I64),
            ("70000", DType::F16),
            ("1e39", DType::F32),
            ("2", DType::Bool),
            ("", DType::F64),
            ("cat", DType::F32),
        ] {
            assert_eq!(number_of(text, dtype), None, "{text} {dtype}");
        }
    }

    #[test]
    fn types_have_the_names_of_the_format() {
        assert_eq!("u8".parse(), Ok(ValueType::Number(DType::U8)));
        assert_eq!("string".parse(), Ok(ValueType::Text));
        assert_eq!("json".parse(), Ok(ValueType::Json));
        assert!("float".parse::<ValueType>().unwrap_err().to_string().contains("f64, string or json"));
    }
}
