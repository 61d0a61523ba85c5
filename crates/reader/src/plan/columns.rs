//! Choices of samples by the columns of a pack. See docs/reference/sampling.md, "Weights".
//!
//! This is the only part of a plan that reads a file. It verifies a column's checksum and then makes one pass over the
//! column.

use packds_format::{ColumnView, DType, FormatError};

use super::choice::Choice;
use crate::{Pack, ReadError};

/// A column with one integer per sample, such as classes, source ids or widths. It is read in place.
#[derive(Debug, Clone)]
pub struct Integers<'a> {
    column: ColumnView<'a>,
}

impl<'a> Integers<'a> {
    /// Opens the column with this name. It makes one pass over the column.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the column does not exist, is not an integer column, or is damaged.
    pub fn open(pack: &'a Pack, name: &str) -> Result<Self, ReadError> {
        let column = open(pack, name)?;
        // Only `u64` values can exceed the range of `i64`, so only `u64` columns are checked value by value.
        let checked = match column.dtype {
            DType::U64 => pack.n_samples(),
            _ => pack.n_samples().min(1),
        };
        match (0..checked).find(|sample| column.integer(*sample).is_none()) {
            None => Ok(Self { column }),
            Some(sample) => Err(pack.error(FormatError::WrongUse(format!(
                "column `{name}`: expected one whole number below 2^63 per sample, found another value at sample {sample}"
            )))),
        }
    }

    /// The number of one sample, or 0 after the last sample. Call [`Pack::still_good`] after a pass over the column,
    /// because values on lost pages of the file also read as 0.
    pub fn at(&self, sample: u64) -> i64 {
        self.column.integer(sample).unwrap_or(0)
    }
}

impl Choice {
    /// Selects the samples whose value in column `name` satisfies the predicate. It makes one pass and takes 1 bit per
    /// sample.
    ///
    /// ```no_run
    /// # use packds_reader::plan::{Choice, Order, Sampler};
    /// let pack = packds_reader::open("train.pack")?;
    /// let animals = Choice::where_integer(&pack, "label", |class| class < 398)?;
    /// let sampler = Sampler::new(Order::default()).choice(animals);
    /// # Ok::<(), packds_reader::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Integers::open`], and the errors of [`Pack::still_good`].
    pub fn where_integer(pack: &Pack, name: &str, mut selected: impl FnMut(i64) -> bool) -> Result<Self, ReadError> {
        let column = Integers::open(pack, name)?;
        let choice = Self::filter(pack.n_samples(), |sample| selected(column.at(sample)));
        pack.still_good()?;
        Ok(choice)
    }

    /// Selects the samples whose little-endian bytes in column `name` satisfy the predicate. It makes one pass and
    /// takes 1 bit per sample.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the column does not exist or is damaged, and the errors of [`Pack::still_good`].
    pub fn where_bytes(pack: &Pack, name: &str, mut selected: impl FnMut(&[u8]) -> bool) -> Result<Self, ReadError> {
        let column = open(pack, name)?;
        let choice = Self::filter(pack.n_samples(), |sample| column.get(sample).is_some_and(&mut selected));
        pack.still_good()?;
        Ok(choice)
    }
}

fn open<'a>(pack: &'a Pack, name: &str) -> Result<ColumnView<'a>, ReadError> {
    let number = pack.schema().index_of(name).map_err(|e| pack.error(e))?;
    pack.whole(pack.column(number))
}
