//! The boxes of augmented images. They move with the image, and boxes that a view does not show are left out, together
//! with their entries in the fields that describe them.

use packds_format::{Role, Schema};

use super::error::LoadError;
use super::filling::{Row, Variable};
use super::outputs::BatchField;
use super::pictures::{Pictures, bad_sample};
use crate::Pack;
use crate::augment::{AugmentError, BoundingBox, ShownBox, stored_boxes};
use crate::fetch::StepItems;

/// The boxes of a pack, and the fields that describe them.
#[derive(Debug)]
pub(crate) struct Boxes {
    name: String,
    /// The position of the boxes in the body.
    pub(crate) position: usize,
    /// The positions of all fields with one entry for each box.
    all: Vec<usize>,
}

/// The boxes that the views of a sample show.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Number of boxes in the stored image.
    n_stored: usize,
    views: Vec<Vec<ShownBox>>,
}

impl Boxes {
    /// The first boxes of the schema. `None` if it has none.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        let (number, boxes) = schema.by_role(Role::Boxes, None)?;
        let body = schema.body().enumerate();
        let all = body.filter(|(_, (_, field))| field.is_of_boxes()).map(|(position, _)| position).collect();
        let position = schema.body().position(|(n, _)| n == number)?;
        Some(Self { name: boxes.name.clone(), position, all })
    }

    /// Whether the body field at `position` changes if boxes are moved or left out.
    pub(crate) fn concern(&self, position: usize) -> bool {
        self.all.contains(&position)
    }

    /// The boxes of a stored image.
    pub(crate) fn stored(
        &self,
        items: &StepItems,
        sample: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Vec<BoundingBox>, LoadError> {
        Ok(stored_boxes(items.item(self.position, sample, scratch)?))
    }

    /// Like [`stored`](Self::stored), but reads the sample itself.
    pub(crate) fn read(&self, pack: &Pack, sample: u64) -> Result<Vec<BoundingBox>, LoadError> {
        Ok(stored_boxes(&pack.sample(sample)?.field(&self.name)?.bytes))
    }

    /// Adds the entries of a field that the view shows. `item` is the field of the stored sample.
    pub(crate) fn push(
        &self,
        (pack, row): (&Pack, Row),
        (field, position): (&BatchField, usize),
        item: &[u8],
        moved: &Moved,
        to: &mut Variable,
    ) -> Result<(), LoadError> {
        let shown = usize::try_from(field.view).ok().and_then(|view| moved.views.get(view));
        let shown = shown.map_or(&[][..], Vec::as_slice);
        let bytes: Vec<u8> = if position == self.position {
            shown.iter().flat_map(|shown| shown.sides).flat_map(f32::to_le_bytes).collect()
        } else {
            let found = field.entries(item.len());
            if found != moved.n_stored {
                let error = AugmentError::Entries { field: field.name.clone(), expected: moved.n_stored, found };
                return Err(bad_sample(pack, row.sample, error));
            }
            let size = item.len().checked_div(found).unwrap_or(0);
            let entry = |shown: &ShownBox| item.get(shown.index * size..(shown.index + 1) * size);
            shown.iter().filter_map(entry).flatten().copied().collect()
        };
        to.push(&bytes, &field.ragged_shape(bytes.len()));
        Ok(())
    }
}

impl Moved {
    pub(crate) fn new(
        pictures: &Pictures,
        (pack, row): (&Pack, Row),
        seeds: &[u64],
        boxes: &[BoundingBox],
    ) -> Result<Self, LoadError> {
        let views = (0..pictures.made().views).map(|view| pictures.shown_boxes((pack, row), seeds, view, boxes));
        Ok(Self { n_stored: boxes.len(), views: views.collect::<Result<_, _>>()? })
    }
}
