//! The boxes of augmented images, with their keypoints and polygons. They move with the image, and boxes that a view does
//! not show are left out, together with their entries in the fields that describe them.

use packds_format::{Role, Schema};

use super::error::LoadError;
use super::filling::{Row, Variable};
use super::outputs::BatchField;
use super::pictures::{Pictures, bad_sample};
use crate::Pack;
use crate::augment::{AugmentError, BoundingBox, Movement, ShownBox, stored_boxes, stored_polygons};
use crate::fetch::StepItems;

/// The boxes of a pack, and the fields that describe them.
#[derive(Debug)]
pub(crate) struct Boxes {
    name: String,
    /// The keypoints, if they do not say which of them swap in a mirror image.
    pub(crate) unnamed_points: Option<String>,
    /// The position of the boxes in the body.
    pub(crate) position: usize,
    /// The positions of all fields that belong to them.
    all: Vec<usize>,
    /// The position of their keypoints, and the index of the point that each one becomes in a mirror image.
    keypoints: Option<(usize, Vec<u32>)>,
    /// The position of their polygons.
    polygons: Option<usize>,
}

/// The boxes that the views of a sample show.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Number of boxes in the stored image.
    n_stored: usize,
    views: Vec<(Movement, Vec<ShownBox>)>,
}

impl Boxes {
    /// The first boxes of the schema. `None` if it has none.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        let (number, boxes) = schema.by_role(Role::Boxes, None)?;
        let body = || schema.body().map(|(_, field)| field).enumerate();
        let all = body().filter(|(_, field)| field.concerns_boxes()).map(|(position, _)| position).collect();
        let position = schema.body().position(|(n, _)| n == number)?;
        let of_role = |role| body().find(|(_, field)| field.role == Some(role));
        let keypoints = of_role(Role::Keypoints);
        let unnamed = keypoints.filter(|(_, field)| field.keypoints.is_none());
        let keypoints = keypoints.map(|(position, field)| {
            let swaps = field.keypoints.as_ref().map(|keypoints| keypoints.swaps.clone());
            (position, swaps.unwrap_or_default())
        });
        let polygons = of_role(Role::Polygons).map(|(position, _)| position);
        let unnamed_points = unnamed.map(|(_, field)| field.name.clone());
        Some(Self { name: boxes.name.clone(), unnamed_points, position, all, keypoints, polygons })
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
        let Some((movement, shown)) = moved.view(field.view) else { return Ok(()) };
        let bytes: Vec<u8> = if position == self.position {
            shown.iter().flat_map(|shown| shown.sides).flat_map(f32::to_le_bytes).collect()
        } else if Some(position) == self.polygons {
            let stored = stored_polygons(item, moved.n_stored).map_err(|e| bad_sample(pack, row.sample, e))?;
            movement.polygons(&stored, shown).to_bytes()
        } else {
            let found = field.entries(item.len());
            if found != moved.n_stored {
                let error = AugmentError::Entries { field: field.name.clone(), expected: moved.n_stored, found };
                return Err(bad_sample(pack, row.sample, error));
            }
            let size = item.len().checked_div(found).unwrap_or(0);
            let entry = |shown: &ShownBox| item.get(shown.index * size..(shown.index + 1) * size);
            let entries = shown.iter().filter_map(entry);
            match &self.keypoints {
                Some((of, swaps)) if *of == position => {
                    let points = entries.flat_map(|entry| movement.keypoints(entry, swaps));
                    points.flatten().flat_map(f32::to_le_bytes).collect()
                }
                _ => entries.flatten().copied().collect(),
            }
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
        let view = |view| {
            let movement = pictures.movement((pack, row), seeds, view, boxes)?;
            let shown = movement.boxes(boxes);
            Ok((movement, shown))
        };
        let views = (0..pictures.made().views).map(view);
        Ok(Self { n_stored: boxes.len(), views: views.collect::<Result<_, LoadError>>()? })
    }

    /// How a view moves places, and the boxes that it shows.
    pub(crate) fn view(&self, view: u32) -> Option<(&Movement, &[ShownBox])> {
        let view = usize::try_from(view).ok().and_then(|view| self.views.get(view));
        view.map(|(movement, shown)| (movement, shown.as_slice()))
    }
}
