//! Polygons that are delivered as masks: one for each box that a view shows.

use packds_format::{Field, Role};
use packds_system::to_usize;

use super::boxes::Moved;
use super::error::LoadError;
use super::filling::{Row, Variable};
use super::outputs::BatchField;
use super::pictures::{PictureField, Pictures, bad_sample};
use crate::Pack;
use crate::augment::{fill_masks, stored_boxes, stored_polygons};
use crate::fetch::StepItems;

/// How the polygons of a pack become masks.
#[derive(Debug)]
pub(crate) struct InstanceMasks {
    /// The position of the polygons in the body.
    polygons: usize,
    /// The position of the boxes in the body.
    pub(crate) boxes: usize,
    image: PictureField,
    /// The schema number of the images.
    pub(crate) image_number: usize,
    /// Width and height of all masks. `None` if they have the sizes of their stored images.
    size: Option<(u32, u32)>,
}

impl InstanceMasks {
    /// Masks of the first images of a pack, at the size that `pictures` give them. `wanted` are the fields to load.
    pub(crate) fn new(pack: &Pack, pictures: Option<&Pictures>, wanted: Option<&[String]>) -> Result<Self, LoadError> {
        let schema = pack.schema();
        let position = |is_meant: &dyn Fn(&Field) -> bool| schema.body().position(|(_, field)| is_meant(field));
        let is_wanted = |field: &Field| wanted.is_none_or(|names| names.contains(&field.name));
        let missing = |what| {
            let path = pack.file_path().display();
            LoadError::Option(format!("{path}: instance masks are made from polygons, but {what}"))
        };
        let polygons = position(&|field| field.role == Some(Role::Polygons) && is_wanted(field));
        let polygons = polygons.ok_or_else(|| missing("no loaded field has the role polygons"))?;
        let boxes = position(&|field| field.role == Some(Role::Boxes));
        let boxes = boxes.ok_or_else(|| missing("no field has the role boxes"))?;
        let mut images = schema.body().filter(|(_, field)| field.role == Some(Role::Image));
        let image = images.next().ok_or_else(|| missing("the pack has no images that give them a size"));
        let (image_number, image) = image?;
        let image = PictureField::new(schema, image)
            .map_err(|source| LoadError::Augment { path: pack.file_path().to_owned(), source: Box::new(source) })?;
        let made = pictures.map(|pictures| (pictures.made().width, pictures.made().height));
        Ok(Self { polygons, boxes, size: made.or(image.fixed_size()), image, image_number })
    }

    /// Whether the body field at this position becomes masks.
    pub(crate) fn are_of(&self, position: usize) -> bool {
        self.polygons == position
    }

    /// The dimensions of a mask. `None` if sizes vary.
    pub(crate) fn entry(&self) -> Option<Vec<usize>> {
        self.size.map(|(width, height)| vec![to_usize(height), to_usize(width)])
    }

    /// Adds the masks of a row. `moved` are the boxes that its views show, if the images move.
    pub(crate) fn push(
        &self,
        (pack, row): (&Pack, Row),
        (items, scratch): (&StepItems, &mut [Vec<u8>; 2]),
        field: &BatchField,
        moved: Option<&Moved>,
        to: &mut Variable,
    ) -> Result<(), LoadError> {
        let [from, masks] = scratch;
        let refused = |error| bad_sample(pack, row.sample, error);
        let n_stored = stored_boxes(items.item(self.boxes, row.sample, from)?).len();
        let item = items.item(self.polygons, row.sample, from)?;
        let stored = stored_polygons(item, n_stored).map_err(refused)?;
        let (polygons, n_boxes) = match moved.and_then(|moved| moved.view(field.view)) {
            Some((movement, shown)) => (movement.polygons(&stored, shown), shown.len()),
            None => (stored, n_stored),
        };
        let (width, height) = match self.size {
            Some(size) => size,
            None => self.image.size_in(pack, row.sample)?,
        };
        fill_masks(&polygons, n_boxes, (width, height), masks).map_err(refused)?;
        to.push(masks, &[n_boxes, to_usize(height), to_usize(width)]);
        Ok(())
    }
}
