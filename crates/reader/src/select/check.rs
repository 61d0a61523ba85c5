//! A parsed condition with its names resolved to the columns of a pack.

use std::cmp::Ordering;

use packds_format::{ColumnView, DType, Field, FieldKind, Role, Scalar, Store};

use super::ConditionError;
use super::parse::{Comparison, Condition, Test, Value};
use crate::{Pack, ReadError};

/// Names that exist without a field. A field with the same name takes precedence.
const SAMPLE: &str = "sample";
const PATH: &str = "path";

/// Maximum number of class names to list in an error.
const MAX_LISTED: usize = 10;

pub(crate) enum Check<'a> {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Test(Column<'a>, Test),
}

/// The column that a test applies to.
pub(crate) enum Column<'a> {
    /// The sample's number.
    Sample,
    /// The path of its source file.
    Path,
    /// One number per sample.
    Numbers(ColumnView<'a>),
    /// One number per sample, stored in the chunks: the index of the field, and the type.
    Items(usize, DType),
    /// Any number of numbers per sample, such as one for each box: the index of the field, and the type.
    Entries(usize, DType),
    /// A set of class ids per sample.
    ClassSet(ColumnView<'a>),
    /// Text in the chunks: the index of the field.
    Text(usize),
    /// A JSON value in the chunks: the index of the field.
    Json(usize),
}

/// The sample to check.
pub(crate) struct Values<'a> {
    pub pack: &'a Pack,
    pub sample: u64,
    /// Empty unless the condition needs paths.
    pub path: &'a [u8],
}

impl<'a> Check<'a> {
    pub(crate) fn of(condition: &Condition, pack: &'a Pack) -> Result<Self, ConditionError> {
        let each = |parts: &[Condition]| parts.iter().map(|part| Self::of(part, pack)).collect::<Result<Vec<_>, _>>();
        Ok(match condition {
            Condition::All(parts) => Self::All(each(parts)?),
            Condition::Any(parts) => Self::Any(each(parts)?),
            Condition::Not(inner) => Self::Not(Box::new(Self::of(inner, pack)?)),
            Condition::Test { column: name, test } => {
                let column = Column::of(name, pack)?;
                let test = bound(&column, name, test, pack)?;
                Self::Test(column, test)
            }
        })
    }

    pub(crate) fn needs_path(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::needs_path),
            Self::Not(inner) => inner.needs_path(),
            Self::Test(column, _) => matches!(column, Column::Path),
        }
    }

    pub(crate) fn holds(&self, values: &Values<'_>) -> Result<bool, ReadError> {
        match self {
            Self::All(parts) => first(parts, values, false),
            Self::Any(parts) => first(parts, values, true),
            Self::Not(inner) => inner.holds(values).map(|holds| !holds),
            Self::Test(column, test) => column.passes(test, values),
        }
    }
}

/// Returns `wanted` if any part has that value, otherwise the opposite. Stops at the first such part.
fn first(parts: &[Check<'_>], values: &Values<'_>, wanted: bool) -> Result<bool, ReadError> {
    for part in parts {
        if part.holds(values)? == wanted {
            return Ok(wanted);
        }
    }
    Ok(!wanted)
}

impl<'a> Column<'a> {
    fn of(name: &str, pack: &'a Pack) -> Result<Self, ConditionError> {
        let fields = pack.schema().fields();
        let Some((number, field)) = fields.iter().enumerate().find(|(_, field)| field.name == name) else {
            return match name {
                SAMPLE => Ok(Self::Sample),
                PATH if pack.has_paths() => Ok(Self::Path),
                _ => Err(ConditionError::NoColumn { name: name.to_owned(), known: known(pack) }),
            };
        };
        let column = || pack.located(pack.column(number));
        match field.kind {
            FieldKind::String => Ok(Self::Text(number)),
            FieldKind::Json => Ok(Self::Json(number)),
            _ if field.role == Some(Role::Labels) => Ok(Self::ClassSet(column()?)),
            FieldKind::Ragged if is_list(field) => Ok(Self::Entries(number, field.dtype)),
            _ if is_number(field) && field.store == Store::Column => Ok(Self::Numbers(column()?)),
            _ if is_number(field) => Ok(Self::Items(number, field.dtype)),
            _ => Err(ConditionError::WrongType { column: name.to_owned(), holds: holds(field), test: "a condition" }),
        }
    }

    fn holds(&self) -> &'static str {
        match self {
            Self::Path | Self::Text(_) => "text",
            Self::Json(_) => "JSON values",
            Self::ClassSet(_) => "sets of classes",
            Self::Sample | Self::Numbers(_) | Self::Items(..) | Self::Entries(..) => "numbers",
        }
    }

    fn passes(&self, test: &Test, values: &Values<'_>) -> Result<bool, ReadError> {
        let Values { pack, sample, path } = values;
        let number = match self {
            Self::Path => return Ok(text_passes(path, test)),
            Self::Text(field) => return Ok(text_passes(&pack.whole(pack.item(*field, *sample))?, test)),
            // `bound` accepts only null tests for JSON values.
            Self::Json(field) => return Ok(pack.whole(pack.item(*field, *sample))?.trim_ascii() == b"null"),
            Self::ClassSet(view) => return Ok(set_passes(view.get(*sample).unwrap_or(&[]), test)),
            Self::Entries(field, dtype) => {
                return Ok(entries_pass(*dtype, &pack.whole(pack.item(*field, *sample))?, test));
            }
            Self::Numbers(view) => view.get(*sample).and_then(|bytes| Scalar::of(view.dtype, bytes)),
            Self::Items(field, dtype) => Scalar::of(*dtype, &pack.whole(pack.item(*field, *sample))?),
            Self::Sample => Some(Scalar::Unsigned(*sample)),
        };
        Ok(number.is_some_and(|number| number_passes(number, test)))
    }
}

/// The names that a condition may use.
fn known(pack: &Pack) -> Vec<String> {
    let fields = pack.schema().fields();
    let usable =
        fields.iter().filter(|f| f.kind.is_text() || is_number(f) || is_list(f) || f.role == Some(Role::Labels));
    let mut names: Vec<String> = usable.map(|field| field.name.clone()).collect();
    let paths = pack.has_paths().then_some(PATH);
    let own = paths.into_iter().chain([SAMPLE]);
    names.extend(own.filter(|own| fields.iter().all(|field| field.name != *own)).map(str::to_owned));
    names
}

fn is_number(field: &Field) -> bool {
    field.kind == FieldKind::Tensor && field.shape.iter().product::<u64>() == 1
}

/// Whether each entry of the field is one number.
fn is_list(field: &Field) -> bool {
    field.kind == FieldKind::Ragged && field.shape.iter().product::<u64>() == 1
}

fn holds(field: &Field) -> &'static str {
    match field.kind {
        FieldKind::Image => "images",
        FieldKind::Bytes => "bytes",
        _ => "arrays",
    }
}

/// The test with class names replaced by class ids. Fails if the test does not apply to the column.
fn bound(column: &Column<'_>, name: &str, test: &Test, pack: &Pack) -> Result<Test, ConditionError> {
    let wrong = |test| ConditionError::WrongType { column: name.to_owned(), holds: column.holds(), test };
    let value = |value: &Value| match (column, value) {
        (Column::Path | Column::Text(_), Value::Text(_))
        | (Column::Numbers(_) | Column::Items(..) | Column::Entries(..), Value::Integer(_) | Value::Float(_)) => {
            Ok(value.clone())
        }
        (Column::Sample | Column::ClassSet(_), Value::Integer(_)) => Ok(value.clone()),
        (Column::Numbers(_) | Column::Items(..) | Column::Entries(..) | Column::ClassSet(_), Value::Text(class)) => {
            class_id(name, class, pack).map(Value::Integer)
        }
        (Column::Json(_), _) => Err(wrong("anything but `is null`")),
        (_, Value::Text(_)) => Err(wrong("a string")),
        (_, Value::Integer(_)) => Err(wrong("a number")),
        (_, Value::Float(_)) => Err(wrong("a number with a fraction")),
    };
    Ok(match test {
        Test::IsNull => Test::IsNull,
        Test::In(values) => Test::In(values.iter().map(value).collect::<Result<_, _>>()?),
        Test::Compare(comparison, typed) => {
            let is_class = match column {
                Column::ClassSet(_) => true,
                Column::Numbers(_) | Column::Items(..) | Column::Entries(..) => matches!(typed, Value::Text(_)),
                _ => false,
            };
            let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            if is_class && is_order {
                return Err(wrong("< or >: classes have no order"));
            }
            Test::Compare(*comparison, value(typed)?)
        }
    })
}

fn class_id(column: &str, class: &str, pack: &Pack) -> Result<i128, ConditionError> {
    let classes = pack.located(pack.classes())?;
    let names = classes.into_iter().find(|classes| classes.field == column).map(|classes| classes.names);
    let mut names = names.unwrap_or_default();
    match (0..).zip(&names).find(|(_, name)| *name == class) {
        Some((id, _)) => Ok(id),
        None => {
            names.truncate(MAX_LISTED);
            Err(ConditionError::NoClass { column: column.to_owned(), name: class.to_owned(), known: names })
        }
    }
}

fn number_passes(number: Scalar, test: &Test) -> bool {
    match test {
        Test::IsNull => number.float().is_some_and(f64::is_nan),
        Test::In(values) => values.iter().any(|value| order(number, value) == Some(Ordering::Equal)),
        Test::Compare(comparison, value) => order(number, value).is_some_and(|order| comparison.accepts(order)),
    }
}

/// Whether a list of numbers passes a test: at least one must pass it. With `!=`, no number may be equal. An empty list is
/// null.
fn entries_pass(dtype: DType, item: &[u8], test: &Test) -> bool {
    let mut numbers = Scalar::each(dtype, item);
    match test {
        Test::IsNull => item.is_empty(),
        Test::Compare(Comparison::NotEqual, _) => numbers.all(|number| number_passes(number, test)),
        Test::In(_) | Test::Compare(..) => numbers.any(|number| number_passes(number, test)),
    }
}

/// How a number compares with a value. `None` if the number is NaN.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rounded to the column's precision")]
fn order(number: Scalar, value: &Value) -> Option<Ordering> {
    let integer = match number {
        Scalar::Unsigned(value) => Some(i128::from(value)),
        other => other.integer().map(i128::from),
    };
    match (integer, value) {
        (Some(integer), Value::Integer(value)) => Some(integer.cmp(value)),
        (_, Value::Integer(value)) => order(number, &Value::Float(*value as f64)),
        // 0.1 is not exact in f32: a user who types 0.1 means the f32 that is displayed as 0.1.
        (_, Value::Float(value)) if matches!(number, Scalar::Single(_)) => {
            number.nearest_f64().partial_cmp(&f64::from(*value as f32))
        }
        (_, Value::Float(value)) => number.nearest_f64().partial_cmp(value),
        (_, Value::Text(_)) => None,
    }
}

/// Whether a set of classes passes a test: at least one class must pass it. With `!=`, no class may be equal.
fn set_passes(bits: &[u8], test: &Test) -> bool {
    let has = |value: &Value| {
        let Value::Integer(id) = value else { return false };
        let byte = usize::try_from(id / 8).ok().filter(|_| *id >= 0).and_then(|byte| bits.get(byte));
        byte.is_some_and(|byte| byte >> (id % 8) & 1 == 1)
    };
    match test {
        Test::IsNull => bits.iter().all(|byte| *byte == 0),
        Test::In(values) => values.iter().any(has),
        Test::Compare(Comparison::NotEqual, value) => !has(value),
        Test::Compare(_, value) => has(value),
    }
}

/// Whether a string passes a test. An empty string is null. Strings are ordered by their bytes.
fn text_passes(text: &[u8], test: &Test) -> bool {
    let order = |value: &Value| match value {
        Value::Text(value) => Some(text.cmp(value.as_bytes())),
        Value::Integer(_) | Value::Float(_) => None,
    };
    match test {
        Test::IsNull => text.is_empty(),
        Test::In(values) => values.iter().any(|value| order(value) == Some(Ordering::Equal)),
        Test::Compare(comparison, value) => order(value).is_some_and(|order| comparison.accepts(order)),
    }
}

impl Comparison {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}
