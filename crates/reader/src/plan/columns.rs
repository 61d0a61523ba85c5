//! Choices of samples by what a pack's columns say of them. docs/reference/sampling.md, "Weights".
//!
//! The only part of a plan that reads a file. A column is checked against its checksum and then gone through once.

use packds_format::{ColumnView, DType, FormatError};

use super::choice::Choice;
use crate::{Pack, ReadError};

/// A column of one whole number a sample: classes, source ids, widths. Reads where the pack lies and copies nothing.
#[derive(Debug, Clone, Copy)]
pub struct Integers<'a> {
    column: ColumnView<'a>,
}

impl<'a> Integers<'a> {
    /// The column of this name: one pass over it.
    ///
    /// # Errors
    /// [`ReadError::Format`] where there is no such column, its values are not whole numbers, or it is damaged.
    pub fn open(pack: &'a Pack, name: &str) -> Result<Self, ReadError> {
        let column = open(pack, name)?;
        let whole = Self { column };
        // Of all whole numbers only large ones of 64 bits are too large, so only then each is looked at.
        let checked = match column.dtype {
            DType::U64 => pack.n_samples(),
            _ => pack.n_samples().min(1),
        };
        match (0..checked).find(|sample| column.integer(*sample).is_none()) {
            None => Ok(whole),
            Some(sample) => Err(pack.error(FormatError::WrongUse(format!(
                "column `{name}` does not have one whole number below 2^63 a sample, see sample {sample}"
            )))),
        }
    }

    /// One sample's number; 0 beyond the last sample. Ask [`Pack::still_good`] after a pass over them: what a file
    /// lost meanwhile is 0 too.
    #[must_use]
    pub fn at(&self, sample: u64) -> i64 {
        self.column.integer(sample).unwrap_or(0)
    }
}

impl Choice {
    /// The samples for whose number in column `name` the predicate holds. One pass, 1 bit a sample.
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
    /// As for [`Integers::open`], and what [`Pack::still_good`] finds.
    pub fn where_integer(
        pack: &Pack,
        name: &str,
        mut selected: impl FnMut(i64) -> bool,
    ) -> Result<Self, ReadError> {
        let column = Integers::open(pack, name)?;
        let choice = Self::filter(pack.n_samples(), |sample| selected(column.at(sample)));
        pack.still_good()?;
        Ok(choice)
    }

    /// The samples for whose value in column `name`, its little-endian bytes, the predicate holds. One pass, 1 bit a
    /// sample.
    ///
    /// # Errors
    /// [`ReadError::Format`] where there is no such column, or it is damaged; what [`Pack::still_good`]
    /// finds.
    pub fn where_bytes(
        pack: &Pack,
        name: &str,
        mut selected: impl FnMut(&[u8]) -> bool,
    ) -> Result<Self, ReadError> {
        let column = open(pack, name)?;
        let choice = Self::filter(pack.n_samples(), |sample| {
            column.get(sample).is_some_and(&mut selected)
        });
        pack.still_good()?;
        Ok(choice)
    }
}

fn open<'a>(pack: &'a Pack, name: &str) -> Result<ColumnView<'a>, ReadError> {
    let number = pack.schema().index_of(name).map_err(|e| pack.error(e))?;
    pack.whole(pack.column(number))
}
