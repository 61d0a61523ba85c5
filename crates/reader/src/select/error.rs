//! Errors of a condition.

use crate::ReadError;

/// Why samples could not be selected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The condition cannot be parsed.
    #[error("condition, character {at}: expected {expected}, found {found}")]
    Syntax {
        /// The position in the condition, in characters from 1.
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
    /// The class names do not include this name.
    #[error("no class `{name}` in column `{column}`{}", some(known))]
    NoClass {
        /// The column.
        column: String,
        /// The name in the condition.
        name: String,
        /// The first class names. Empty if the classes have none.
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
