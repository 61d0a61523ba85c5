//! Access to single samples and chunks, for inspection and for code that chooses its own order.

use packds_system::{to_u64, to_usize};
use std::borrow::Cow;

use packds_format::{DType, Field, FieldKind, FormatError, Store};

use crate::view::{ArrayView, Element};
use crate::{Pack, ReadError};

/// One sample of a pack.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pack: &'a Pack,
    id: u64,
}

/// One field of one sample. Its bytes are borrowed from the pack or decompressed.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<'a> {
    /// Element type. `u8` for variable-size items that are not ragged.
    pub dtype: DType,
    /// Dimensions. A ragged item has its number of entries first. Other variable-size items have one dimension: their
    /// number of bytes.
    pub shape: Vec<usize>,
    /// The elements in C order, little-endian.
    pub bytes: Cow<'a, [u8]>,
}

/// One chunk of a pack.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    pack: &'a Pack,
    number: u64,
}

impl Pack {
    /// Returns a sample by its position in the file, from 0. Its data is read on access.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], with the path.
    pub fn sample(&self, id: u64) -> Result<Sample<'_>, ReadError> {
        self.check_index("sample", id, self.n_samples())?;
        self.protect()?;
        Ok(Sample { pack: self, id })
    }

    /// Returns a chunk by its number, from 0. Its data is read on access.
    ///
    /// # Errors
    /// As for [`sample`](Self::sample).
    pub fn chunk(&self, number: u64) -> Result<Chunk<'_>, ReadError> {
        self.check_index("chunk", number, self.n_chunks())?;
        self.protect()?;
        Ok(Chunk { pack: self, number })
    }

    fn check_index(&self, what: &'static str, index: u64, len: u64) -> Result<(), ReadError> {
        if index < len {
            return Ok(());
        }
        Err(self.error(FormatError::OutOfRange { what, index, len }))
    }

    fn field_named(&self, name: &str) -> Result<(usize, &Field), ReadError> {
        let number = self.schema().index_of(name).map_err(|e| self.error(e))?;
        let field = self.schema().fields().get(number);
        field.map(|field| (number, field)).ok_or_else(|| {
            let len = to_u64(self.schema().fields().len());
            self.error(FormatError::OutOfRange { what: "field", index: to_u64(number), len })
        })
    }
}

impl<'a> Sample<'a> {
    /// The sample's position in the file, counted from 0.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns one field. It is not copied unless it is compressed. The first access verifies the checksum, as
    /// described in [`Pack::item`](packds_format::Pack::item).
    ///
    /// # Errors
    /// [`ReadError::Format`] if the field does not exist or its bytes are damaged, [`ReadError::Changed`] if the file
    /// was truncated.
    pub fn field(&self, name: &str) -> Result<Item<'a>, ReadError> {
        let (number, field) = self.pack.field_named(name)?;
        let bytes = self.pack.whole(self.pack.item(number, self.id))?;
        let shape = match field.kind {
            FieldKind::Tensor => dimensions(field),
            FieldKind::Ragged => {
                let entries = field.entries(to_u64(bytes.len())).unwrap_or(0);
                std::iter::once(to_usize(entries)).chain(dimensions(field)).collect()
            }
            _ => vec![bytes.len()],
        };
        Ok(Item { dtype: field.dtype, shape, bytes })
    }

    /// Verifies the checksum of the sample's items again, even if it was verified before. If the pack has no checksums
    /// per sample, this verifies the chunk on first access.
    ///
    /// # Errors
    /// [`ReadError::Format`] with both checksums, [`ReadError::Changed`].
    pub fn check(&self) -> Result<(), ReadError> {
        self.pack.whole(self.pack.check_sample(self.id))
    }
}

impl Item<'_> {
    /// The elements with their type and shape.
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView { dtype: self.dtype, shape: self.shape.clone(), bytes: &self.bytes }
    }

    /// The elements as numbers, without a copy.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if `T` is not the element type, or the bytes are not aligned for `T`.
    pub fn elements<T: Element>(&self) -> Result<&[T], FormatError> {
        self.view().elements()
    }
}

impl<'a> Chunk<'a> {
    /// The chunk's number, counted from 0.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The positions of the chunk's samples in the file.
    pub fn samples(&self) -> std::ops::Range<u64> {
        let geometry = self.pack.geometry();
        let first = geometry.first_sample(self.number);
        first..first + u64::from(geometry.samples_in(self.number))
    }

    /// Returns a field of all samples, `[samples, ..]`, in place. This works for columns and for uncompressed
    /// fixed-size body fields. The first access verifies the checksum of the column or chunk.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] for other fields, [`ReadError::Format`] if the field does not exist or the chunk is
    /// damaged.
    pub fn field(&self, name: &str) -> Result<ArrayView<'a>, ReadError> {
        let pack = self.pack;
        let (number, field) = pack.field_named(name)?;
        let samples = self.samples();
        let bytes = if field.store == Store::Column {
            self.column_bytes(number)?
        } else if field.kind == FieldKind::Tensor && field.codec.is_none() {
            self.body_bytes(number)?
        } else {
            None
        };
        let bytes = bytes.ok_or_else(|| {
            pack.error(FormatError::WrongUse(format!(
                "field `{name}` is not stored as one array: read its samples one by one"
            )))
        })?;
        let mut shape = vec![to_usize(samples.end - samples.start)];
        shape.extend(dimensions(field));
        Ok(ArrayView { dtype: field.dtype, shape, bytes })
    }

    fn column_bytes(&self, number: usize) -> Result<Option<&'a [u8]>, ReadError> {
        let column = self.pack.whole(self.pack.column(number))?;
        let samples = self.samples();
        Ok(column.range(samples))
    }

    fn body_bytes(&self, number: usize) -> Result<Option<&'a [u8]>, ReadError> {
        let pack = self.pack;
        let position = pack.schema().body().position(|(n, _)| n == number);
        let stored = pack.whole(pack.chunk_bytes(self.number))?;
        let view = pack.located(pack.view_chunk(self.number, stored))?;
        let Some((position, last)) = position.zip(view.n_samples().checked_sub(1)) else {
            return Ok(None);
        };
        let place = |index| pack.located(view.item_place(position, index));
        Ok(stored.get(to_usize(place(0)?.start)..to_usize(place(last)?.end)))
    }

    /// Verifies the checksum of the chunk again, even if it was verified before.
    ///
    /// # Errors
    /// [`ReadError::Format`] with both checksums, [`ReadError::Changed`].
    pub fn check(&self) -> Result<(), ReadError> {
        let pack = self.pack;
        let stored = pack.located(pack.chunk_bytes_unchecked(self.number))?;
        let found = packds_format::crc32c(stored);
        pack.whole(pack.compare_chunk(self.number, found))
    }
}

/// The dimensions of a fixed-size item.
pub(crate) fn dimensions(field: &Field) -> Vec<usize> {
    field.shape.iter().map(|side| to_usize(*side)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::open;

    fn golden(name: &str) -> crate::Pack {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
        open(folder.join(name)).unwrap()
    }

    #[test]
    fn samples_and_chunks_lie_in_the_map() {
        let pack = golden("short_last_chunk.pack");
        let name = &pack.schema().body().next().unwrap().1.name;
        let whole = pack.whole_file().as_ptr_range();
        let mut seen = 0;
        for number in 0..pack.n_chunks() {
            let chunk = pack.chunk(number).unwrap();
            chunk.check().unwrap();
            let array = chunk.field(name).unwrap();
            assert!(whole.contains(&array.bytes.as_ptr()));
            let n = array.bytes.len() / array.shape[0];
            for (row, id) in chunk.samples().enumerate() {
                let sample = pack.sample(id).unwrap();
                sample.check().unwrap();
                let item = sample.field(name).unwrap();
                assert_eq!(*item.bytes, array.bytes[row * n..(row + 1) * n]);
                assert_eq!(item.shape, array.shape[1..]);
                seen += 1;
            }
        }
        assert_eq!(seen, pack.n_samples());
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let pack = golden("several_fields.pack");
        assert!(pack.sample(pack.n_samples()).is_err());
        assert!(pack.chunk(pack.n_chunks()).is_err());
        let error = pack.sample(0).unwrap().field("none").unwrap_err().to_string();
        assert!(error.contains("none"), "{error}");
    }

    #[test]
    fn compressed_fields_are_no_array_but_have_items() {
        let pack = golden("zstd_hwc_rgb.pack");
        let name = &pack.schema().body().next().unwrap().1.name;
        let error = pack.chunk(0).unwrap().field(name).unwrap_err().to_string();
        assert!(error.contains("one by one"), "{error}");
        let item = pack.sample(0).unwrap().field(name).unwrap();
        assert_eq!(item.elements::<u8>().unwrap().len(), item.bytes.len());
    }
}
