//! The columns of a sample: labels, validity, source id and size, and additional source columns.

use packds_format::{BlockBuilder, Coding, DType, Role};

use super::image::SourceSize;
use super::{SampleError, SampleReader};
use crate::label_set;
use crate::plan::ItemColumns;
use crate::source::{ColumnValues, append_stored};

/// The size and the coding of a stored image.
pub(super) struct Item {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) channels: u8,
    pub(super) coding: Coding,
}

impl SampleReader<'_> {
    /// Fills in labels, validity, source id and size, and additional source columns. `size` is `None` for a bad sample.
    pub(super) fn columns(
        &self,
        id: usize,
        size: Option<SourceSize>,
        block: &mut BlockBuilder,
    ) -> Result<(), SampleError> {
        let fields = &self.plan.fields;
        if let (Some(field), Some(label)) = (fields.label, self.listing.label(id)) {
            match i32::try_from(label) {
                Ok(narrow) if self.plan.label_dtype == DType::I32 => block.set_column(field, &narrow.to_le_bytes())?,
                _ => block.set_column(field, &label.to_le_bytes())?,
            }
        }
        if let (Some(field), Some(labels)) = (fields.labels, self.listing.label_list(id)) {
            let set = label_set::of(labels.iter().copied(), self.plan.item_bytes(field));
            block.set_column(field, &set)?;
        }
        if let Some(field) = fields.valid {
            block.set_column(field, &[u8::from(size.is_some())])?;
        }
        block.set_column(fields.source_id, &self.listing.number(id).to_le_bytes())?;
        block.set_column(fields.source_width, &size.map_or(0, |i| i.width).to_le_bytes())?;
        block.set_column(fields.source_height, &size.map_or(0, |i| i.height).to_le_bytes())?;
        for (column, &field) in self.listing.columns().iter().zip(&fields.extra) {
            match &column.values {
                ColumnValues::I64(values) => block.set_column(field, &values[id].to_le_bytes())?,
                ColumnValues::F64(values) => block.set_column(field, &values[id].to_le_bytes())?,
                ColumnValues::Bool(values) => block.set_column(field, &[u8::from(values[id])])?,
                ColumnValues::Text(texts) | ColumnValues::Json(texts) => {
                    append(block.item_mut(field)?, texts.get(id).as_bytes())?;
                }
            }
        }
        Ok(())
    }

    /// Copies the additional arrays and bytes of the source. `size` is that of the source's image. Returns false if the
    /// source marks the sample as zeros in place of a bad sample.
    pub(super) fn source_fields(
        &mut self,
        id: usize,
        size: SourceSize,
        block: &mut BlockBuilder,
    ) -> Result<bool, SampleError> {
        let mut valid = true;
        let fields = self.listing.fields().iter();
        for (source, &field) in fields.zip(&self.plan.fields.source_fields) {
            let wrong = |error| SampleError::Field { name: source.name.clone(), source: Box::new(error) };
            self.file.clear();
            append_stored(source.store.as_ref(), id, u64::MAX, &mut self.file).map_err(wrong)?;
            if source.role == Some(Role::Valid) {
                valid = self.file.iter().any(|byte| *byte != 0);
            }
            if let Some(axes) = source.role.and_then(axes_of) {
                let stored = self.plan.geometry.output_size(size.width, size.height, size.orientation);
                scale_places(&mut self.file, axes, (size.width, size.height), stored);
            }
            if self.plan.is_column(field) {
                block.set_column(field, &self.file)?;
            } else if self.plan.item_bytes(field) == 0 {
                append(block.item_mut(field)?, &self.file)?;
            } else {
                let out = block.tensor_mut(field)?;
                if out.len() != self.file.len() {
                    let (expected, found) = (out.len() as u64, self.file.len() as u64);
                    return Err(wrong(SampleError::WrongLength { expected, found }));
                }
                out.copy_from_slice(&self.file);
            }
        }
        Ok(valid)
    }
}

/// A number of an entry of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    X,
    Y,
    Other,
}

/// What the numbers of a field with places in the image are, in turn. `None` for other roles.
fn axes_of(role: Role) -> Option<&'static [Axis]> {
    match role {
        Role::Boxes => Some(&[Axis::X, Axis::Y]),
        Role::Keypoints => Some(&[Axis::X, Axis::Y, Axis::Other]),
        Role::Polygons => Some(&[Axis::Other, Axis::Other, Axis::X, Axis::Y]),
        _ => None,
    }
}

/// Scales places, which are little-endian `f32`, from an image of one size to another.
#[expect(clippy::cast_possible_truncation, reason = "places are stored as f32")]
fn scale_places(places: &mut [u8], axes: &[Axis], from: (u32, u32), to: (u32, u32)) {
    if from == to {
        return;
    }
    let factor = |to: u32, from: u32| f64::from(to) / f64::from(from.max(1));
    let (wide, high) = (factor(to.0, from.0), factor(to.1, from.1));
    let (numbers, _) = places.as_chunks_mut();
    for (number, axis) in numbers.iter_mut().zip(axes.iter().cycle()) {
        let factor = match axis {
            Axis::X => wide,
            Axis::Y => high,
            Axis::Other => continue,
        };
        *number = ((f64::from(f32::from_le_bytes(*number)) * factor) as f32).to_le_bytes();
    }
}

/// Appends an item of any length. Fails if memory runs out.
fn append(items: &mut Vec<u8>, item: &[u8]) -> Result<(), SampleError> {
    let room = items.try_reserve(item.len());
    room.map_err(|_| SampleError::Read(std::io::ErrorKind::OutOfMemory.into()))?;
    items.extend_from_slice(item);
    Ok(())
}

/// Fills in the columns that describe a variable-size item.
pub(super) fn describe(columns: &ItemColumns, item: &Item, block: &mut BlockBuilder) -> Result<(), SampleError> {
    block.set_column(columns.width, &item.width.to_le_bytes())?;
    block.set_column(columns.height, &item.height.to_le_bytes())?;
    block.set_column(columns.channels, &[item.channels])?;
    Ok(block.set_column(columns.coding, &[item.coding.number()])?)
}
