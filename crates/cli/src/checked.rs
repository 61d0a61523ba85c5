//! Samples read with their checksums checked.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use packds_format::{Crc32c, FormatError, Role, check_chunk};
use packds_reader::{MappedPack, Mapping};

/// Reads samples of a pack: by their own checksums, or by their chunks' where samples have none.
pub(crate) struct Checked<'a> {
    pack: &'a MappedPack,
    crc_column: Option<usize>,
    /// The chunks that are known to be whole.
    whole: Mutex<BTreeSet<u64>>,
}

impl<'a> Checked<'a> {
    pub(crate) fn new(pack: &'a MappedPack) -> Self {
        let crc_column = pack.schema().by_role(Role::SampleCrc32c, None);
        Self {
            pack,
            crc_column: crc_column.map(|(number, _)| number),
            whole: Mutex::default(),
        }
    }

    /// One sample's body items in schema order.
    pub(crate) fn items(&self, sample: u64) -> Result<Vec<Cow<'a, [u8]>>, FormatError> {
        if self.crc_column.is_none() {
            self.check_chunk_of(sample)?;
        }
        let mut crc = Crc32c::new();
        let mut items = Vec::new();
        for (number, _) in self.pack.schema().body() {
            let item = self.pack.item(number, sample)?;
            crc.update(&item);
            items.push(item);
        }
        let Some(column) = self.crc_column else {
            return Ok(items);
        };
        let stored = self.pack.item(column, sample)?;
        let expected = stored
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let found = crc.value();
        if expected != found {
            let (chunk, _) = self.pack.geometry().locate(sample);
            return Err(FormatError::SampleChecksum {
                sample,
                chunk,
                expected,
                found,
            });
        }
        Ok(items)
    }

    fn check_chunk_of(&self, sample: u64) -> Result<(), FormatError> {
        let (chunk, _) = self.pack.geometry().locate(sample);
        if self.whole().contains(&chunk) {
            return Ok(());
        }
        let bytes = self.pack.chunk_bytes(chunk)?;
        check_chunk::<Mapping>(self.pack, chunk, bytes).map_err(|damage| damage.error)?;
        self.whole().insert(chunk);
        Ok(())
    }

    fn whole(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
