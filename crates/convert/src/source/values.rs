//! Converts cells to typed values. The type of a column is determined from all its cells before any value is stored.
//!
//! `labels` does the same for labels.

use std::borrow::Cow;

use packds_format::{DType, Field, FieldKind, Scalar};
use serde_json::{Number, Value};

use super::{
    column::{ColumnValues, TextArena},
    rows::Cell,
};

/// The possible types of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CellKind {
    Missing,
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// Text, or a number that neither an i64 nor an f64 can represent.
    Text,
    /// A JSON array or object.
    Nested,
}

impl CellKind {
    /// The type of a cell. Spaces around a CSV number are ignored.
    pub(super) fn of(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Missing => Self::Missing,
            Cell::Text(text) => Self::of_text(text.trim()),
            Cell::Json(Value::Null) => Self::Missing,
            Cell::Json(Value::Bool(value)) => Self::Bool(*value),
            Cell::Json(Value::Number(number)) => Self::of_number(number),
            Cell::Json(Value::String(_)) => Self::Text,
            Cell::Json(Value::Array(_) | Value::Object(_)) => Self::Nested,
        }
    }

    /// Numbers with leading zeros or a plus sign are text, because they are usually codes.
    pub(super) fn of_text(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let padded = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        let integral = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if padded {
            return Self::Text;
        }
        // An integer outside the i64 range is text too: an f64 would round it. "-0" is a float.
        if integral && text != "-0" {
            return text.parse().map_or(Self::Text, Self::Integer);
        }
        if text.eq_ignore_ascii_case("true") {
            return Self::Bool(true);
        }
        if text.eq_ignore_ascii_case("false") {
            return Self::Bool(false);
        }
        let numeric = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
        match text.parse::<f64>() {
            Ok(value) if numeric && value.is_finite() => Self::Float(value),
            Ok(value) if ["nan", "inf"].iter().any(|name| digits.eq_ignore_ascii_case(name)) => Self::Float(value),
            _ => Self::Text,
        }
    }

    fn of_number(number: &Number) -> Self {
        if let Some(value) = number.as_i64() {
            return Self::Integer(value);
        }
        match number.as_f64() {
            Some(value) if !number.is_u64() => Self::Float(value),
            _ => Self::Text,
        }
    }
}

/// The kinds of cells seen in a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KindsSeen {
    missing: bool,
    integer: bool,
    /// An integer that an f64 cannot represent.
    wide: bool,
    float: bool,
    boolean: bool,
    text: bool,
    nested: bool,
}

impl KindsSeen {
    pub(super) fn observe(&mut self, cell: Cell<'_>) {
        match CellKind::of(cell) {
            CellKind::Missing => self.missing = true,
            CellKind::Integer(value) => {
                self.integer = true;
                self.wide |= value.unsigned_abs() > Scalar::EXACT_IN_F64;
            }
            CellKind::Float(_) => self.float = true,
            CellKind::Bool(_) => self.boolean = true,
            CellKind::Text => self.text = true,
            CellKind::Nested => self.nested = true,
        }
    }

    /// Whether there is a cell that is not missing.
    pub(super) fn is_some(self) -> bool {
        self.integer || self.float || self.boolean || self.text || self.nested
    }

    /// Whether all cells are numbers, and some have a fraction or an exponent.
    pub(super) fn is_float(self) -> bool {
        self.float && !self.boolean && !self.text && !self.nested
    }

    /// An empty column for cells that may have been exported from the pack field `known`. The cells alone do not always show the type:
    /// JSON can look like numbers or strings, and NaN and infinity like missing values.
    pub(super) fn column_as(self, known: Option<&Field>) -> ColumnValues {
        match known {
            Some(field) if field.kind == FieldKind::Json => ColumnValues::Json(TextArena::default()),
            Some(field) if !self.is_some() && matches!(field.dtype, DType::F32 | DType::F64) => {
                ColumnValues::F64(Vec::new())
            }
            _ => self.column(),
        }
    }

    /// An empty column of the narrowest type that holds every cell without loss.
    fn column(self) -> ColumnValues {
        let number = self.integer || self.float;
        if self.nested {
            ColumnValues::Json(TextArena::default())
        } else if self.text || (self.boolean && (number || self.missing)) {
            ColumnValues::Text(TextArena::default())
        } else if self.boolean {
            ColumnValues::Bool(Vec::new())
        } else if self.integer && !self.float && !self.missing {
            ColumnValues::I64(Vec::new())
        } else if number && !self.wide {
            ColumnValues::F64(Vec::new())
        } else {
            ColumnValues::Text(TextArena::default())
        }
    }
}

impl ColumnValues {
    /// Adds the next cell. Returns false if it does not fit the type. That happens only if the manifest has changed since the scan.
    #[must_use]
    pub(super) fn push(&mut self, cell: Cell<'_>) -> bool {
        match (&mut *self, CellKind::of(cell)) {
            (Self::I64(values), CellKind::Integer(value)) => values.push(value),
            (Self::F64(values), kind) => match float_of(kind) {
                Some(value) => values.push(value),
                None => return false,
            },
            (Self::Bool(values), CellKind::Bool(value)) => values.push(value),
            (Self::Text(texts), _) => texts.push(&text_of(cell)),
            (Self::Json(texts), _) => texts.push(&json_of(cell)),
            _ => return false,
        }
        true
    }
}

fn float_of(kind: CellKind) -> Option<f64> {
    match kind {
        CellKind::Missing => Some(f64::NAN),
        CellKind::Integer(value) => Some(value as f64),
        CellKind::Float(value) => Some(value),
        CellKind::Bool(_) | CellKind::Text | CellKind::Nested => None,
    }
}

/// A cell as text: a JSON string's characters, or the JSON text of any other JSON value.
pub(super) fn text_of(cell: Cell<'_>) -> Cow<'_, str> {
    match cell {
        Cell::Missing => Cow::Borrowed(""),
        Cell::Text(text) => Cow::Borrowed(text),
        Cell::Json(Value::String(text)) => Cow::Borrowed(text),
        Cell::Json(value) => Cow::Owned(value.to_string()),
    }
}

fn json_of(cell: Cell<'_>) -> String {
    match cell {
        Cell::Missing => "null".to_owned(),
        Cell::Text(text) => Value::from(text).to_string(),
        Cell::Json(value) => value.to_string(),
    }
}
