//! Where the images of a batch come from: drawn again, since all of it follows from seed, epoch and sample.

use std::sync::Arc;

use packds_format::{Field, FieldKind, Role};

use super::error::LoadError;
use super::filling::Row;
use super::outputs::{BatchField, Outputs, Source};
use crate::MappedPack;
use crate::augment::Geometry;

/// What was drawn for the images of a batch. It holds no slot.
#[derive(Debug, Clone)]
pub struct BatchGeometry {
    outputs: Arc<Outputs>,
    packs: Arc<[Arc<MappedPack>]>,
    seeds: Arc<[u64]>,
    rows: Vec<Row>,
}

impl BatchGeometry {
    pub(crate) fn new(
        outputs: &Arc<Outputs>,
        packs: &Arc<[Arc<MappedPack>]>,
        seeds: &Arc<[u64]>,
        rows: &[Row],
    ) -> Self {
        Self {
            outputs: Arc::clone(outputs),
            packs: Arc::clone(packs),
            seeds: Arc::clone(seeds),
            rows: rows.to_vec(),
        }
    }

    /// Width and height of every view.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        let made = self.outputs.pictures.as_ref().map(super::Pictures::made);
        made.map_or((0, 0), |made| (made.width, made.height))
    }

    /// For each sample what a view shows of it.
    ///
    /// # Errors
    /// [`LoadError::Option`] where there is no such view, or the pack does not say how large an image is.
    pub fn view(&self, view: u32) -> Result<Vec<Geometry>, LoadError> {
        let pictures = self.outputs.pictures.as_ref();
        let pictures = pictures.filter(|pictures| view < pictures.made().views);
        let no_view = || LoadError::Option(format!("images have no view {view}"));
        let pictures = pictures.ok_or_else(no_view)?;
        let of_row = |row: &Row| {
            let pack = self.packs.get(row.pack).ok_or_else(no_view)?;
            pictures.geometry(pack, *row, &self.seeds, view)
        };
        self.rows.iter().map(of_row).collect()
    }
}

/// Parts of names of fields that say where something is in the image.
const PLACES: [&str; 7] = [
    "box", "coord", "flow", "keyp", "landmark", "point", "polygon",
];

/// The fields that look like places or pixels of an image that is moved, while they stay as they are: images and masks beside
/// those that are augmented, arrays of the image's rows and columns, and numbers or JSON called as places are.
pub(crate) fn unmoved<'a>(pack: &MappedPack, outputs: &'a Outputs) -> Vec<&'a str> {
    let Some(pictures) = outputs.pictures.as_ref().filter(|p| p.moves_pixels()) else {
        return Vec::new();
    };
    let size = pictures.stored_size();
    let stays = |field: &&BatchField| {
        let is_made = matches!(
            field.source,
            Source::Image | Source::File | Source::Held | Source::Mask
        );
        let described = pack.schema().fields().iter().find(|f| f.name == field.name);
        !is_made && described.is_some_and(|described| is_of_places(described, size))
    };
    let fields = outputs.fields.iter().filter(stays);
    fields.map(|field| field.name.as_str()).collect()
}

fn is_of_places(field: &Field, image: Option<(u32, u32)>) -> bool {
    if let Some(role) = field.role {
        return matches!(role, Role::Image | Role::Mask);
    }
    let sides = image.map(|(width, height)| [u64::from(height), u64::from(width)]);
    let name = field.name.to_lowercase();
    match field.kind {
        FieldKind::Image => true,
        FieldKind::Tensor
            if field.shape.get(..2) == sides.as_ref().map(|s| &s[..]) && sides.is_some() =>
        {
            true
        }
        FieldKind::Tensor | FieldKind::Json => PLACES.iter().any(|place| name.contains(place)),
        FieldKind::Bytes | FieldKind::String => false,
    }
}
