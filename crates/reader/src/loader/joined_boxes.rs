//! Joins the boxes of images that become one image, in a mosaic or by mixup, with everything that describes the boxes.

use super::boxes::Boxes;
use super::error::LoadError;
use super::filling::Variable;
use super::outputs::{BatchField, Outputs, Source};
use crate::augment::{AugmentError, AugmentPlan, BoundingBox, Mix, Movement, SampleKey, ShownBox, Tile, stored_boxes};

/// The fields of boxes in a batch.
pub(crate) struct JoinedBoxes<'a> {
    plan: &'a AugmentPlan,
    boxes: &'a Boxes,
    /// The variable-size fields of the batch.
    fields: Vec<&'a BatchField>,
    /// The place of the boxes among these fields.
    own: usize,
}

/// What a row takes from another row, or from itself.
struct Part {
    row: usize,
    movement: Movement,
    boxes: Vec<ShownBox>,
    /// The part of the image. `None` for all of it.
    tile: Option<Tile>,
}

impl<'a> JoinedBoxes<'a> {
    /// `None` if the boxes are not loaded.
    pub(crate) fn of(outputs: &'a Outputs, boxes: Option<&'a Boxes>, plan: &'a AugmentPlan) -> Option<Self> {
        let boxes = boxes?;
        let fields: Vec<&BatchField> = outputs.fields.iter().filter(|field| field.shape.is_none()).collect();
        let own = fields.iter().position(|field| field.source == Source::Boxes(boxes.position))?;
        Some(Self { plan, boxes, fields, own })
    }

    /// Gives each mosaic the boxes of its images.
    pub(crate) fn in_mosaics(&self, keys: &[SampleKey], variable: &mut [Variable]) -> Result<(), LoadError> {
        self.join(variable, |row, boxes_of| {
            let tiles = keys.get(row).and_then(|key| self.plan.tiles(*key))?;
            let part = |tile: Tile| {
                let (row, movement) = (tile.source(row, keys.len()), tile.movement(self.plan));
                let boxes = movement.boxes(&boxes_of(row));
                Part { row, movement, boxes, tile: Some(tile) }
            };
            Some(tiles.map(part).into())
        })
    }

    /// Gives each blended image the boxes of both images.
    pub(crate) fn in_mixes(&self, mix: &Mix, variable: &mut [Variable]) -> Result<(), LoadError> {
        self.join(variable, |row, boxes_of| {
            let partner = usize::try_from(*mix.partner.get(row)?).ok().filter(|partner| *partner != row)?;
            let part = |row| {
                let boxes = boxes_of(row).into_iter().enumerate();
                let boxes = boxes.map(|(index, sides)| ShownBox { index, sides }).collect();
                Part { row, movement: self.plan.no_movement(), boxes, tile: None }
            };
            Some(vec![part(row), part(partner)])
        })
    }

    /// Replaces the items of rows with those of their parts. A row without parts stays as it is.
    fn join(
        &self,
        variable: &mut [Variable],
        parts_of: impl Fn(usize, &dyn Fn(usize) -> Vec<BoundingBox>) -> Option<Vec<Part>>,
    ) -> Result<(), LoadError> {
        let Some(boxes) = variable.get(self.own).cloned() else { return Ok(()) };
        let boxes_of = |row| stored_boxes(boxes.item(row).unwrap_or_default());
        let rows: Vec<Option<Vec<Part>>> = (0..boxes.ends.len()).map(|row| parts_of(row, &boxes_of)).collect();
        for (field, items) in self.fields.iter().zip(variable) {
            if !matches!(field.source, Source::Boxes(_) | Source::InstanceMasks(_)) {
                continue;
            }
            let mut joined = Variable::default();
            for (row, parts) in rows.iter().enumerate() {
                let Some(parts) = parts else {
                    joined.push_row(items, row);
                    continue;
                };
                let bytes = self.item(field, items, &boxes, parts);
                let bytes = bytes.map_err(|error| LoadError::Option(error.to_string()))?;
                joined.push(&bytes, &field.ragged_shape(bytes.len()));
            }
            *items = joined;
        }
        Ok(())
    }

    /// The item that these parts give a field.
    fn item(
        &self,
        field: &BatchField,
        items: &Variable,
        boxes: &Variable,
        parts: &[Part],
    ) -> Result<Vec<u8>, AugmentError> {
        let (mut bytes, mut n_before) = (Vec::new(), 0);
        for part in parts {
            let item = items.item(part.row).unwrap_or_default();
            match field.source {
                Source::Boxes(position) => {
                    let n_stored = stored_boxes(boxes.item(part.row).unwrap_or_default()).len();
                    let shown = (&part.movement, part.boxes.as_slice());
                    bytes.extend(self.boxes.entries((field, position), (item, n_stored), shown, n_before)?);
                }
                _ => part.boxes.iter().for_each(|shown| self.push_mask(item, part.tile, shown.index, &mut bytes)),
            }
            n_before += part.boxes.len();
        }
        Ok(bytes)
    }

    /// Adds what a part shows of the mask of a box.
    fn push_mask(&self, masks: &[u8], tile: Option<Tile>, index: usize, to: &mut Vec<u8>) {
        let grid = self.plan.grid(1, 1);
        let n_bytes = grid.width * grid.height;
        let mask = masks.get(index * n_bytes..).and_then(|masks| masks.get(..n_bytes)).unwrap_or_default();
        let start = to.len();
        match tile {
            None => to.extend_from_slice(mask),
            Some(tile) => {
                to.resize(start + n_bytes, 0);
                tile.copy(grid, mask, to.get_mut(start..).unwrap_or_default());
            }
        }
    }
}
