//! The contents of a batch: the type and shape of each field, and its place in a staging slot. They are decided once
//! per loader.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_format::{DType, Field, FieldKind, Schema, Store};

use super::error::LoadError;
use super::filling::Row;
use super::instance_masks::InstanceMasks;
use super::pictures::{ChunkSource, Pictures};
use crate::Pack;
use crate::arena::{SLOT_ALIGN, SlotMut};
use crate::device::Finish;
use crate::sample::dimensions;

/// A field of a batch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BatchField {
    /// Its name in the pack's schema.
    pub name: String,
    /// Which view of the sample's image or mask it shows. 0 for all other fields.
    pub view: u32,
    /// Element type.
    pub dtype: DType,
    /// Dimensions of one sample. `None` for variable-size items, such as images whose size the augmentation does not
    /// fix.
    pub shape: Option<Vec<usize>>,
    /// Dimensions of one entry of a ragged field. `None` for other fields.
    pub entry: Option<Vec<usize>>,
    /// Size of one sample. 0 for variable-size items.
    pub(crate) item_bytes: usize,
    /// Offset within a slot that holds `batch` samples.
    pub(crate) offset: usize,
    pub(crate) source: Source,
    /// How the device finishes the field's pixels, if it does. The field itself describes the contents of the slot.
    pub finish: Option<Arc<Finish>>,
}

/// The source of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A column, by its schema number.
    Column(usize),
    /// A fixed-size body field, by its position in the body. It is copied.
    Tensor(usize),
    /// A variable-size body field, by its position in the body. It is copied into separate memory of the batch.
    Variable(usize),
    /// The same as `Variable`, but its images are decoded.
    Decoded(usize),
    /// The same as `Variable`, but for boxes that move with the images, and the fields that describe them.
    Boxes(usize),
    /// The same as `Variable`, but for polygons that become masks.
    InstanceMasks(usize),
    /// A view of the augmented image.
    Image,
    /// The image's JPEG file for a device to decode, or the image's pixels.
    File,
    /// A view of an image that a device holds.
    Held,
    /// The image's mask.
    Mask,
}

impl BatchField {
    /// Size of one sample. 0 for variable-size items.
    pub const fn n_bytes(&self) -> usize {
        self.item_bytes
    }

    /// Number of entries in an item of `bytes` bytes. 0 if the field is not ragged.
    pub(crate) fn entries(&self, bytes: usize) -> usize {
        let entry = self.entry.iter().flatten().fold(to_usize(self.dtype.size()), |n, side| n.saturating_mul(*side));
        self.entry.as_ref().and_then(|_| bytes.checked_div(entry)).unwrap_or(0)
    }

    /// The dimensions of a ragged item of `bytes` bytes. Empty if the field is not ragged.
    pub(crate) fn ragged_shape(&self, bytes: usize) -> Vec<usize> {
        let Some(entry) = &self.entry else { return Vec::new() };
        std::iter::once(self.entries(bytes)).chain(entry.iter().copied()).collect()
    }

    /// Offset in a slot of a full batch. 0 for variable-size items.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The schema number of the field, if it is a column.
    pub(crate) const fn column(&self) -> Option<usize> {
        match self.source {
            Source::Column(number) => Some(number),
            _ => None,
        }
    }

    /// Whether the field has a region in each slot that the pieces of the batch fill.
    pub(crate) const fn is_filled(&self) -> bool {
        matches!(self.source, Source::Tensor(_) | Source::Image | Source::File | Source::Mask) && self.shape.is_some()
    }
}

/// All fields of a loader's batches.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) fields: Vec<BatchField>,
    pub(crate) rows: usize,
    pub(crate) slot_bytes: usize,
    /// The body fields to read, by their positions in the body.
    pub(crate) positions: Vec<usize>,
    /// The processing of images. `None` if no field is augmented.
    pub(crate) pictures: Option<Pictures>,
    /// How polygons become masks. `None` if they are delivered as polygons.
    pub(crate) instance_masks: Option<InstanceMasks>,
    /// Whether the user chose the fields. Otherwise all data fields of the first pack are loaded.
    is_chosen: bool,
}

/// What all batches of a loader share: the descriptions of their fields, the packs and the seeds.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) outputs: Outputs,
    pub(crate) packs: Vec<Arc<Pack>>,
    /// Each pack's seed for order and augmentation.
    pub(crate) seeds: Vec<u64>,
}

impl Outputs {
    /// The fields in `wanted`, or all data fields if it is `None`, in batches of `rows` samples.
    pub(crate) fn new(
        pack: &Pack,
        wanted: Option<&[String]>,
        (pictures, instance_masks): (Option<Pictures>, Option<InstanceMasks>),
        rows: usize,
    ) -> Result<Self, LoadError> {
        let schema = pack.schema();
        let (fields, positions, is_chosen) = (Vec::new(), Vec::new(), wanted.is_some());
        let mut outputs = Self { fields, rows, slot_bytes: 0, positions, pictures, instance_masks, is_chosen };
        for number in numbers(pack, wanted)? {
            outputs.add(schema, number)?;
        }
        if outputs.fields.is_empty() {
            return Err(LoadError::Option("no field is loaded: list at least one".to_owned()));
        }
        if let Some(pictures) = &outputs.pictures {
            outputs.positions.extend(pictures.positions());
        }
        outputs.positions.extend(outputs.instance_masks.as_ref().map(|masks| masks.boxes));
        outputs.positions.sort_unstable();
        outputs.positions.dedup();
        Ok(outputs)
    }

    fn add(&mut self, schema: &Schema, number: usize) -> Result<(), LoadError> {
        let Some(field) = schema.fields().get(number) else { return Ok(()) };
        if field.store == Store::Column {
            return self.push(field, Source::Column(number));
        }
        let position = schema.body().position(|(n, _)| n == number).unwrap_or(0);
        let source = self.pictures.as_ref().and_then(|pictures| pictures.source_of(position));
        let masks = self.instance_masks.as_ref().filter(|masks| masks.are_of(position)).map(InstanceMasks::entry);
        let views = self.pictures.as_ref().map_or(1, |pictures| pictures.made().views);
        if let Some(entry) = masks {
            self.positions.push(position);
            return (0..views).try_for_each(|view| {
                self.place(field, view, DType::U8, None, 0, Source::InstanceMasks(position))?;
                if let Some(placed) = self.fields.last_mut() {
                    placed.entry.clone_from(&entry);
                }
                Ok(())
            });
        }
        match source {
            Some(Source::Boxes(position)) => {
                self.positions.push(position);
                (0..views).try_for_each(|view| self.place(field, view, field.dtype, None, 0, Source::Boxes(position)))
            }
            Some(source) => self.push_views(field, source),
            None => {
                self.positions.push(position);
                match field.kind {
                    FieldKind::Tensor => self.push(field, Source::Tensor(position)),
                    _ => self.push(field, Source::Variable(position)),
                }
            }
        }
    }

    /// Enables decoding of variable-size images that are not processed in another way.
    pub(crate) fn decode_images(&mut self, schema: &Schema) {
        let body: Vec<&Field> = schema.body().map(|(_, field)| field).collect();
        for field in &mut self.fields {
            if let Source::Variable(position) = field.source
                && body.get(position).is_some_and(|f| f.kind == FieldKind::Image)
            {
                field.source = Source::Decoded(position);
            }
        }
    }

    /// Adds a field with the dtype and shape that it has in the pack.
    fn push(&mut self, field: &Field, source: Source) -> Result<(), LoadError> {
        let shape = match source {
            Source::Variable(_) => None,
            _ => Some(dimensions(field)),
        };
        let bytes = match source {
            Source::Variable(_) => 0,
            _ => field.item_bytes().unwrap_or(0),
        };
        self.place(field, 0, field.dtype, shape, bytes, source)
    }

    /// Adds the views of a field that the augmentation makes.
    fn push_views(&mut self, field: &Field, source: Source) -> Result<(), LoadError> {
        let Some(pictures) = &self.pictures else { return Ok(()) };
        let (dtype, shape, views) = pictures.output(source);
        if pictures.sizes_vary() {
            return self.place(field, 0, dtype, None, 0, source);
        }
        let bytes = shape.iter().fold(dtype.size(), |n, d| n.saturating_mul(to_u64(*d)));
        let bytes = match (source, pictures.files()) {
            (Source::Held, _) => 0,
            (Source::File, Some(files)) => files.limits.item_bytes(to_usize(bytes)).map_or(u64::MAX, to_u64),
            _ => bytes,
        };
        let finish = match (source, pictures.finish().cloned()) {
            (Source::Image | Source::File | Source::Held, Some(finish)) => {
                Some(Arc::new(self.place_table(finish, views)?))
            }
            _ => None,
        };
        for view in 0..views {
            self.place(field, view, dtype, Some(shape.clone()), bytes, source)?;
            if let Some(placed) = self.fields.last_mut() {
                placed.finish.clone_from(&finish);
            }
        }
        Ok(())
    }

    /// Reserves space in each slot for the table that a device needs to finish images.
    fn place_table(&mut self, mut finish: Finish, views: u32) -> Result<Finish, LoadError> {
        let end = finish.place(self.slot_bytes, self.rows, views);
        let end = end.and_then(|end| end.checked_next_multiple_of(SLOT_ALIGN));
        let too_large = || LoadError::Option("a batch has more bytes than this machine can address".to_owned());
        self.slot_bytes = end.ok_or_else(too_large)?;
        Ok(finish)
    }

    fn place(
        &mut self,
        field: &Field,
        view: u32,
        dtype: DType,
        shape: Option<Vec<usize>>,
        item_bytes: u64,
        source: Source,
    ) -> Result<(), LoadError> {
        let too_large = || {
            LoadError::Option(format!(
                "field `{}`: {} samples of {item_bytes} bytes are more than this machine can address",
                field.name, self.rows
            ))
        };
        let item_bytes = to_usize(item_bytes);
        let offset = self.slot_bytes;
        self.slot_bytes = item_bytes
            .checked_mul(self.rows)
            .and_then(|bytes| offset.checked_add(bytes))
            .and_then(|end| end.checked_next_multiple_of(SLOT_ALIGN))
            .ok_or_else(too_large)?;
        self.fields.push(BatchField {
            name: field.name.clone(),
            view,
            dtype,
            shape,
            entry: (field.kind == FieldKind::Ragged).then(|| dimensions(field)),
            item_bytes,
            offset,
            source,
            finish: None,
        });
        Ok(())
    }

    /// The processing of images on the host, if any.
    pub(crate) fn pictures_on_host(&self) -> Option<&Pictures> {
        self.pictures.as_ref().filter(|pictures| pictures.held().is_none())
    }

    /// The data fields of another pack of a mixture that are not loaded, because the first pack lacks them.
    pub(crate) fn lacking<'a>(&self, pack: &'a Pack) -> Vec<&'a str> {
        let is_lacking = |field: &&Field| field.is_data() && self.fields.iter().all(|own| own.name != field.name);
        let fields = pack.schema().fields().iter().filter(is_lacking).filter(|_| !self.is_chosen);
        fields.map(|field| field.name.as_str()).collect()
    }

    /// The image field that a device decodes.
    pub(crate) fn files(&self) -> Option<&BatchField> {
        self.fields.iter().find(|f| f.source == Source::File)
    }

    /// Writes what a device needs to finish images into a slot that is filled with `rows`. Returns the number of images
    /// that the host decoded instead of the device.
    pub(crate) fn write_finish(
        &self,
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
        source: Option<&ChunkSource<'_>>,
    ) -> Result<u64, LoadError> {
        let mut finished = self.fields.iter().filter_map(|f| Some((f, f.finish.as_deref()?)));
        let (Some((field, finish)), Some(pictures)) = (finished.next(), &self.pictures) else {
            return Ok(0);
        };
        pictures.write_finish((finish, field), slot, rows, seeds, source)
    }

    /// The field whose batches can be borrowed from the pack: its index, and its position in the body. It must be the
    /// only field besides columns, and its samples must be stored in the form that batches have.
    pub(crate) fn borrowable(&self) -> Option<(usize, usize)> {
        let mut filled = self.fields.iter().enumerate().filter(|(_, f)| !matches!(f.source, Source::Column(_)));
        match (filled.next(), filled.next()) {
            (Some((number, field)), None) => match field.source {
                Source::Tensor(position) => Some((number, position)),
                Source::Image => Some((number, self.pictures.as_ref()?.unchanged()?)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The schema numbers of the fields to load.
fn numbers(pack: &Pack, wanted: Option<&[String]>) -> Result<Vec<usize>, LoadError> {
    let schema = pack.schema();
    let Some(names) = wanted else {
        let data = schema.fields().iter().enumerate().filter(|(_, field)| field.is_data());
        return Ok(data.map(|(number, _)| number).collect());
    };
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let number = pack.located(schema.index_of(name))?;
        if numbers.contains(&number) {
            return Err(LoadError::Option(format!("field `{name}` is listed twice: list each field only once")));
        }
        numbers.push(number);
    }
    Ok(numbers)
}
