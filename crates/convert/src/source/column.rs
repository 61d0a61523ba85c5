//! Typed values that a manifest gives beside paths and labels.
//!
//! Not for reading them: that is `manifest`.

use super::paths::ByteArena;

/// A column of the source that becomes a field of the pack: one value for each sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceColumn {
    /// The column's name in the manifest.
    pub name: String,
    /// One value for each sample, in listing order.
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
    /// Anything else; a missing value is empty.
    Text(TextArena),
    /// JSON texts without spaces, in a column that holds arrays or objects; a missing value is
    /// `null`.
    Json(TextArena),
}

impl ColumnValues {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) | Self::Json(values) => values.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Texts laid end to end: no allocation per text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextArena {
    texts: ByteArena,
}

impl TextArena {
    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Text `idx`.
    ///
    /// # Panics
    ///
    /// If `idx` is not less than [`TextArena::len`].
    pub fn get(&self, idx: usize) -> &str {
        // Only whole `str`s go in, so the replacement never happens.
        str::from_utf8(self.texts.get(idx)).unwrap_or_default()
    }

    /// The texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|idx| self.get(idx))
    }

    /// Bytes of all texts together.
    pub(crate) fn n_bytes(&self) -> usize {
        self.texts.n_bytes()
    }

    /// Whether all texts are empty.
    pub(super) fn is_blank(&self) -> bool {
        self.texts.n_bytes() == 0
    }

    pub(super) fn push(&mut self, text: &str) {
        self.texts.push(text.as_bytes());
    }
}
