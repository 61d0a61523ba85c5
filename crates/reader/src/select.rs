//! Selects samples by a condition on their columns. docs/reference/where.md describes the language.

mod check;
mod error;
mod parse;

use check::{Check, Values};
use error::ConditionError;

use packds_format::FormatError;

use crate::{Pack, ReadError};

impl Pack {
    /// The samples that meet a condition such as `label = 'cat' and width >= 512`, in file order.
    /// docs/reference/where.md describes the language. Reads the columns that the condition names, and the chunks only
    /// if it names a field that is stored in them, such as text.
    ///
    /// # Errors
    /// [`ReadError::Condition`] if the condition cannot be parsed, names a column or a class that the pack does not
    /// have, or compares a column with a value of the wrong type; [`ReadError::Format`] and [`ReadError::Changed`] as
    /// for every read.
    pub fn select(&self, condition: &str) -> Result<Vec<u64>, ReadError> {
        self.protect()?;
        let check = parse::condition(condition).and_then(|condition| Check::of(&condition, self));
        let check = check.map_err(|error| match error {
            ConditionError::Read(error) => error,
            other => ReadError::Condition { path: self.file_path().to_owned(), problem: other.to_string() },
        })?;
        let mut selected = Vec::new();
        let mut visit = |sample, path: &[u8]| {
            if check.holds(&Values { pack: self, sample, path })? {
                selected.push(sample);
            }
            Ok(())
        };
        // Paths are stored in compressed groups, so they are read in order.
        if check.needs_path() {
            self.for_each_path(|sample, path| visit(sample, path).map_err(Stop::Item)).map_err(|stop| match stop {
                Stop::Paths(error) => self.error(error),
                Stop::Item(error) => error,
            })?;
        } else {
            (0..self.n_samples()).try_for_each(|sample| visit(sample, &[]))?;
        }
        self.still_good()?;
        Ok(selected)
    }
}

/// Why the reading of paths stopped.
enum Stop {
    Paths(FormatError),
    Item(ReadError),
}

impl From<FormatError> for Stop {
    fn from(error: FormatError) -> Self {
        Self::Paths(error)
    }
}

#[cfg(test)]
mod tests;
