//! Blocks: runs of whole samples, encoded in parallel and later assembled into chunks.

use crate::checksum::{self, Crc32c, crc32c};
use crate::filter::ItemShape;
use crate::le::{self, len_u64};
use crate::{Coding, Field, FieldKind, FormatError, Role, Schema, Store};
use packds_system::{counted, to_u64, to_usize};

/// One body field's items in a block.
#[derive(Debug)]
pub(crate) enum BlockPart {
    /// Contiguous fixed-size items. Only the first `used` bytes are valid.
    Tensor { bytes: Vec<u8>, used: usize },
    /// Items of variable size.
    Items { lens: Vec<u64>, payload: Vec<u8> },
    /// The items of a field with a codec: compressed, or uncompressed if compression would not shrink them.
    Frame { decoded_len: u64, bytes: Vec<u8> },
}

impl BlockPart {
    /// The bytes of the part after its table.
    pub(crate) fn payload(&self) -> &[u8] {
        match self {
            Self::Tensor { bytes, used } => bytes.get(..*used).unwrap_or(&[]),
            Self::Items { payload, .. } => payload,
            Self::Frame { bytes, .. } => bytes,
        }
    }

    pub(crate) fn payload_len(&self) -> u64 {
        len_u64(self.payload())
    }

    pub(crate) fn item_lens(&self) -> &[u64] {
        match self {
            Self::Items { lens, .. } => lens,
            _ => &[],
        }
    }

    pub(crate) fn decoded_len(&self) -> u64 {
        match self {
            Self::Frame { decoded_len, .. } => *decoded_len,
            other => other.payload_len(),
        }
    }
}

/// An encoded run of whole samples.
#[derive(Debug)]
pub struct Block {
    pub(crate) n_samples: u32,
    parts: Vec<BlockPart>,
    /// CRC32C of each part's payload. Computed when the block is finished, because blocks are made in parallel but
    /// written serially.
    payload_crcs: Vec<u32>,
    /// The bytes of each column field, in schema order.
    pub(crate) columns: Vec<Vec<u8>>,
}

impl Block {
    /// Number of samples.
    #[must_use]
    pub fn n_samples(&self) -> u32 {
        self.n_samples
    }

    /// Whether the parts and columns of the block match `schema`.
    pub(crate) fn is_of(&self, schema: &Schema) -> bool {
        let n = u64::from(self.n_samples);
        let part_fits = |(part, (_, field)): (&BlockPart, (usize, &Field))| match part {
            BlockPart::Tensor { used, .. } => {
                field.codec.is_none() && field.item_bytes().and_then(|b| b.checked_mul(n)) == Some(to_u64(*used))
            }
            BlockPart::Items { lens, .. } => {
                field.codec.is_none() && field.item_bytes().is_none() && len_u64(lens) == n
            }
            BlockPart::Frame { .. } => !field.codec.is_none(),
        };
        let column_fits = |(bytes, (_, field)): (&Vec<u8>, (usize, &Field))| {
            field.item_bytes().and_then(|b| b.checked_mul(n)) == Some(len_u64(bytes))
        };
        self.parts.len() == schema.body().count()
            && self.columns.len() == schema.columns().count()
            && self.parts.iter().zip(schema.body()).all(part_fits)
            && self.columns.iter().zip(schema.columns()).all(column_fits)
    }

    /// A part's payload and its CRC32C.
    pub(crate) fn payload(&self, position: usize) -> Result<(&[u8], u32), FormatError> {
        let payload = self.part(position)?.payload();
        let crc = self.payload_crcs.get(position).copied();
        Ok((payload, crc.unwrap_or_else(|| crc32c(payload))))
    }

    pub(crate) fn part(&self, position: usize) -> Result<&BlockPart, FormatError> {
        let wrong = || FormatError::WrongUse("block was made for a different schema".to_owned());
        self.parts.get(position).ok_or_else(wrong)
    }
}

/// Where a field's items are stored in a block.
#[derive(Debug, Clone, Copy)]
enum Place {
    Part(usize),
    Column(usize),
}

/// Collects samples into a [`Block`]. The memory of written blocks can be reused: see [`BlockBuilder::recycle`].
///
/// For each sample, set every field ([`tensor_mut`](Self::tensor_mut), [`item_mut`](Self::item_mut),
/// [`set_column`](Self::set_column)), then call [`finish_sample`](Self::finish_sample). Unset columns are 0. A column
/// with role [`Role::SampleCrc32c`] is computed.
#[derive(Debug)]
pub struct BlockBuilder {
    schema: Schema,
    places: Vec<Place>,
    crc_column: Option<usize>,
    /// CRC32C of the body items of all finished samples, concatenated.
    items_crc: u32,
    block: Block,
    /// Item size of each column in bytes.
    column_bytes: Vec<usize>,
}

impl BlockBuilder {
    /// A builder of an empty block for samples of this schema.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let (mut parts, mut columns, mut places, mut column_bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut crc_column = None;
        for field in schema.fields() {
            if field.store == Store::Column {
                places.push(Place::Column(columns.len()));
                if field.role == Some(Role::SampleCrc32c) {
                    crc_column = Some(columns.len());
                }
                columns.push(Vec::new());
                // An item of a column is at most 1024 bytes long.
                column_bytes.push(field.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(0));
            } else {
                places.push(Place::Part(parts.len()));
                parts.push(empty_part(field));
            }
        }
        let block = Block { n_samples: 0, parts, payload_crcs: Vec::new(), columns };
        let mut builder =
            Self { schema: schema.clone(), places, crc_column, items_crc: crc32c(&[]), block, column_bytes };
        builder.open_columns();
        builder
    }

    /// Like [`new`](Self::new), but reuses the memory of a written block.
    #[must_use]
    pub fn recycle(schema: &Schema, mut old: Block) -> Self {
        let mut fresh = Self::new(schema);
        if old.parts.len() != fresh.block.parts.len() {
            return fresh;
        }
        for (part, reuse) in fresh.block.parts.iter_mut().zip(old.parts.drain(..)) {
            match (part, reuse) {
                (BlockPart::Tensor { bytes, .. }, BlockPart::Tensor { bytes: old, .. }) => *bytes = old,
                (BlockPart::Items { lens, payload }, BlockPart::Items { lens: old_lens, payload: old }) => {
                    (*lens, *payload) = (old_lens, old);
                    lens.clear();
                    payload.clear();
                }
                _ => {}
            }
        }
        fresh
    }

    /// Number of samples so far.
    #[must_use]
    pub fn n_samples(&self) -> u32 {
        self.block.n_samples
    }

    /// Appends an item of zeros to every column for the next sample.
    fn open_columns(&mut self) {
        for (column, n) in self.block.columns.iter_mut().zip(&self.column_bytes) {
            column.resize(column.len() + n, 0);
        }
    }

    /// The buffer for this sample's item of tensor field `field` (its number in the schema). Fill it completely.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not a tensor in the body, or too large for memory.
    pub fn tensor_mut(&mut self, field: usize) -> Result<&mut [u8], FormatError> {
        let wrong = || FormatError::WrongUse(format!("field {field} is not a tensor in the body"));
        let n = self.schema.fields().get(field).and_then(Field::item_bytes).ok_or_else(wrong)?;
        let n = usize::try_from(n).map_err(|_| wrong())?;
        let start = usize::try_from(self.block.n_samples).map_err(|_| wrong())?.checked_mul(n).ok_or_else(wrong)?;
        match self.part_mut(field) {
            Some(BlockPart::Tensor { bytes, used }) => {
                *used = start.checked_add(n).ok_or_else(wrong)?;
                if bytes.len() < *used {
                    bytes.resize(*used, 0);
                }
                bytes.get_mut(start..*used).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    /// The buffer with all items of variable-size field `field` in this block. Append this sample's item to it.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not variable-size.
    pub fn item_mut(&mut self, field: usize) -> Result<&mut Vec<u8>, FormatError> {
        match self.part_mut(field) {
            Some(BlockPart::Items { payload, .. }) => Ok(payload),
            _ => Err(FormatError::WrongUse(format!("field {field} is not variable-size"))),
        }
    }

    /// The part of a body field.
    fn part_mut(&mut self, field: usize) -> Option<&mut BlockPart> {
        let Some(Place::Part(position)) = self.places.get(field) else { return None };
        self.block.parts.get_mut(*position)
    }

    /// Sets this sample's value of column field `field`. `value` is little-endian.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not a column or `value` has the wrong size.
    pub fn set_column(&mut self, field: usize, value: &[u8]) -> Result<(), FormatError> {
        let Some(Place::Column(column)) = self.places.get(field).copied() else {
            return Err(FormatError::WrongUse(format!("field {field} is not a column")));
        };
        let (expected, found) = (self.column_bytes.get(column).copied().unwrap_or(0), value.len());
        if expected != found {
            return Err(FormatError::WrongUse(format!(
                "column {field}: expected {}, found {found}",
                counted(expected, "byte")
            )));
        }
        if let Some(bytes) = self.block.columns.get_mut(column) {
            let start = bytes.len().saturating_sub(expected);
            le::put(bytes, start, value);
        }
        Ok(())
    }

    /// Discards the values of an unfinished sample.
    pub fn drop_sample(&mut self) {
        self.close_sample();
        self.open_columns();
    }

    /// Truncates everything to the finished samples. Otherwise bytes of an unfinished sample could end up in a chunk.
    fn close_sample(&mut self) {
        let n_samples = u64::from(self.block.n_samples);
        for (part, (_, field)) in self.block.parts.iter_mut().zip(self.schema.body()) {
            match part {
                BlockPart::Tensor { used, .. } => {
                    let end = field.item_bytes().unwrap_or(0).saturating_mul(n_samples);
                    *used = usize::try_from(end).unwrap_or(*used).min(*used);
                }
                BlockPart::Items { lens, payload } => {
                    let end: u64 = lens.iter().sum();
                    payload.truncate(to_usize(end));
                }
                BlockPart::Frame { .. } => {}
            }
        }
        for (column, n) in self.block.columns.iter_mut().zip(&self.column_bytes) {
            column.truncate(column.len().saturating_sub(*n));
        }
    }

    /// Finishes the sample.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if a tensor is missing, or a ragged item does not consist of whole entries.
    pub fn finish_sample(&mut self) -> Result<(), FormatError> {
        let (mut crc, mut sample_bytes) = (Crc32c::new(), 0);
        let count = u64::from(self.block.n_samples) + 1;
        for (part, (_, field)) in self.block.parts.iter_mut().zip(self.schema.body()) {
            match part {
                BlockPart::Tensor { bytes, used } => {
                    let item = field.item_bytes().unwrap_or(0);
                    if to_u64(*used) != item.saturating_mul(count) {
                        return Err(FormatError::WrongUse(format!("field `{}` has no value", field.name)));
                    }
                    let start = used.saturating_sub(to_usize(item));
                    crc.update(bytes.get(start..*used).unwrap_or(&[]));
                    sample_bytes += item;
                }
                BlockPart::Items { lens, payload } => {
                    let start: u64 = lens.iter().sum();
                    let item = payload.get(to_usize(start)..).unwrap_or(&[]);
                    let wrong = |reason| FormatError::WrongUse(format!("field `{}`: {reason}", field.name));
                    field.check_entries(len_u64(item)).map_err(wrong)?;
                    crc.update(item);
                    sample_bytes += len_u64(item);
                    lens.push(len_u64(item));
                }
                BlockPart::Frame { .. } => {}
            }
        }
        self.items_crc = checksum::combine(self.items_crc, crc.value(), sample_bytes);
        if let Some(column) = self.crc_column.and_then(|c| self.block.columns.get_mut(c)) {
            let start = column.len().saturating_sub(4);
            le::put(column, start, &crc.value().to_le_bytes());
        }
        self.block.n_samples += 1;
        self.open_columns();
        Ok(())
    }

    /// Encodes the block: applies filters and compression. An unfinished sample is discarded.
    ///
    /// # Errors
    /// [`FormatError::Io`] if the compressor fails.
    pub fn finish(mut self) -> Result<Block, FormatError> {
        self.close_sample();
        let fields: Vec<Field> = self.schema.body().map(|(_, f)| f.clone()).collect();
        for (position, field) in fields.iter().enumerate() {
            if !field.codec.is_none() {
                let raw = self.filtered(position, field);
                let packed = field.codec.compress(&raw)?;
                let decoded_len = len_u64(&raw);
                let bytes = if packed.len() < raw.len() { packed } else { raw };
                if let Some(part) = self.block.parts.get_mut(position) {
                    *part = BlockPart::Frame { decoded_len, bytes };
                }
            }
        }
        self.block.payload_crcs = match self.block.parts.as_slice() {
            // The checksum of a single uncompressed part is already combined from the samples' checksums, so no second
            // pass is needed.
            [BlockPart::Tensor { .. } | BlockPart::Items { .. }] => vec![self.items_crc],
            parts => parts.iter().map(|part| crc32c(part.payload())).collect(),
        };
        Ok(self.block)
    }

    /// The codec's input for a part: its filtered items. For variable-size items, a table of offsets comes first.
    fn filtered(&mut self, position: usize, field: &Field) -> Vec<u8> {
        let filter = field.codec.filter();
        let shapes = self.raw_shapes(field);
        let mut scratch = Vec::new();
        match self.block.parts.get_mut(position) {
            Some(BlockPart::Tensor { bytes, used }) => {
                bytes.truncate(*used);
                let mut raw = std::mem::take(bytes);
                *used = 0;
                let item = field.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(1).max(1);
                for (pixels, shape) in raw.chunks_exact_mut(item).zip(shapes) {
                    if let Some(shape) = shape {
                        filter.apply(pixels, shape, &mut scratch);
                    }
                }
                raw
            }
            Some(BlockPart::Items { lens, payload }) => {
                let mut raw = Vec::new();
                le::put_ends(&mut raw, lens.iter().copied());
                let mut rest = payload.as_mut_slice();
                for (len, shape) in lens.iter().zip(shapes) {
                    let (pixels, tail) = rest.split_at_mut(to_usize(*len));
                    if let Some(shape) = shape {
                        filter.apply(pixels, shape, &mut scratch);
                    }
                    rest = tail;
                }
                raw.extend_from_slice(payload);
                raw
            }
            _ => Vec::new(),
        }
    }

    /// The shape of each item. `None` for items that the field's filter does not apply to.
    fn raw_shapes(&self, field: &Field) -> Vec<Option<ItemShape>> {
        let n = to_usize(self.block.n_samples);
        if field.codec.filter().is_none() {
            return vec![None; n];
        }
        if field.kind == FieldKind::Tensor {
            let len = field.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            return vec![field.image_shape().and_then(|(h, w, c)| ItemShape::new(h, w, c, len)); n];
        }
        let position = self.schema.body().position(|(_, f)| f.name == field.name);
        let lens = position.and_then(|p| self.block.parts.get(p)).map_or(&[][..], BlockPart::item_lens);
        let value = |role, i: usize| self.column_value(role, &field.name, i);
        let shape = |(i, len): (usize, &u64)| {
            if value(Role::Coding, i)? != u64::from(Coding::Raw.number()) {
                return None;
            }
            let len = usize::try_from(*len).ok()?;
            ItemShape::new(value(Role::Height, i)?, value(Role::Width, i)?, value(Role::Channels, i)?, len)
        };
        lens.iter().enumerate().map(shape).collect()
    }

    /// Sample `i`'s value of the column that has this role for image field `of`. `None` if there is no such column.
    fn column_value(&self, role: Role, of: &str, i: usize) -> Option<u64> {
        let (number, field) = self.schema.by_role(role, Some(of))?;
        let Place::Column(column) = self.places.get(number)? else {
            return None;
        };
        let bytes = self.block.columns.get(*column)?;
        match field.dtype.size() {
            1 => bytes.get(i).map(|v| u64::from(*v)),
            _ => le::u32_at(bytes, i.checked_mul(4)?).map(u64::from),
        }
    }
}

fn empty_part(field: &Field) -> BlockPart {
    match field.kind {
        FieldKind::Tensor => BlockPart::Tensor { bytes: Vec::new(), used: 0 },
        _ => BlockPart::Items { lens: Vec::new(), payload: Vec::new() },
    }
}
