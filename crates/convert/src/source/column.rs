//! Columns of a source that become pack fields, with typed values: one value per sample. Paths and labels are stored
//! elsewhere.

use super::paths::ByteArena;

/// A source column that becomes a pack field: one value per sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceColumn {
    /// The column's name in the source.
    pub name: String,
    /// One value per sample, in listing order.
    pub values: ColumnValues,
}

/// The values of a [`SourceColumn`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnValues {
    /// Every value is an integer.
    I64(Vec<i64>),
    /// Every value is a number; a missing one is NaN.
    F64(Vec<f64>),
    /// Every value is true or false.
    Bool(Vec<bool>),
    /// Any other values; a missing value is empty.
    Text(TextArena),
    /// JSON values as text without whitespace, for columns that contain arrays or objects. A missing value is `null`.
    Json(TextArena),
}

impl ColumnValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) | Self::Json(values) => values.len(),
        }
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the values at two positions are the same.
    pub(super) fn are_same(&self, one: usize, other: usize) -> bool {
        match self {
            Self::I64(values) => values[one] == values[other],
            Self::F64(values) => values[one].to_bits() == values[other].to_bits(),
            Self::Bool(values) => values[one] == values[other],
            Self::Text(values) | Self::Json(values) => values.get(one) == values.get(other),
        }
    }

    /// The values at these positions.
    pub(super) fn picked(&self, places: &[usize]) -> Self {
        let texts = |values: &TextArena| places.iter().map(|place| values.get(*place)).collect();
        match self {
            Self::I64(values) => Self::I64(places.iter().map(|place| values[*place]).collect()),
            Self::F64(values) => Self::F64(places.iter().map(|place| values[*place]).collect()),
            Self::Bool(values) => Self::Bool(places.iter().map(|place| values[*place]).collect()),
            Self::Text(values) => Self::Text(texts(values)),
            Self::Json(values) => Self::Json(texts(values)),
        }
    }
}

/// Concatenated strings that share one allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextArena {
    texts: ByteArena,
}

impl<T: AsRef<str>> FromIterator<T> for TextArena {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut arena = Self::default();
        texts.into_iter().for_each(|text| arena.push(text.as_ref()));
        arena
    }
}

impl TextArena {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text at index `idx`.
    ///
    /// # Panics
    ///
    /// Panics unless `idx` is less than [`TextArena::len`].
    pub fn get(&self, idx: usize) -> &str {
        // The bytes were added as `str`, so they are valid UTF-8.
        str::from_utf8(self.texts.get(idx)).unwrap_or_default()
    }

    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|idx| self.get(idx))
    }

    /// Total length of all strings, in bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.texts.n_bytes()
    }

    /// Whether all strings are empty.
    pub(super) fn is_blank(&self) -> bool {
        self.texts.n_bytes() == 0
    }

    pub(super) fn push(&mut self, text: &str) {
        self.texts.push(text.as_bytes());
    }
}
