//! Errors in a condition.

use crate::ReadError;

/// Why a condition cannot be used. Its text becomes part of [`ReadError::Condition`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConditionError {
    /// The condition cannot be parsed.
    #[error("expected {expected} at character {at}, found {found}; for example: label = 'cat' and source_width >= 512")]
    Syntax {
        /// The position in the condition, in characters, starting at 1.
        at: usize,
        /// What would be correct here.
        expected: &'static str,
        /// The text at this position.
        found: String,
    },
    /// The pack has no column with this name.
    #[error("no column `{name}`; the columns are {}", known.join(", "))]
    NoColumn {
        /// The name in the condition.
        name: String,
        /// The names that a condition may use.
        known: Vec<String>,
    },
    /// The column has no class with this name.
    #[error("no class `{name}` in column `{column}`{}", some(known))]
    NoClass {
        /// The column.
        column: String,
        /// The name in the condition.
        name: String,
        /// The first class names. Empty if the classes have no names.
        known: Vec<String>,
    },
    /// The column holds values of another type.
    #[error("column `{column}` holds {holds}: it cannot be tested with {test}")]
    WrongType {
        /// The column.
        column: String,
        /// The type of its values.
        holds: &'static str,
        /// The test that does not apply.
        test: &'static str,
    },
    /// The pack is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
}

fn some(known: &[String]) -> String {
    if known.is_empty() {
        return ": its classes have no names, so compare it with ids".to_owned();
    }
    format!("; the classes include {}", known.join(", "))
}
