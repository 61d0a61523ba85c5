//! For each image of a batch, the part of the stored image that it shows. The random choices are recomputed from seed,
//! epoch and sample.

use std::sync::Arc;

use packds_format::{Field, FieldKind, Role};

use super::error::LoadError;
use super::filling::Row;
use super::outputs::{BatchField, Contents, Outputs, Source};
use crate::Pack;
use crate::augment::Geometry;

/// The random choices for the images of a batch. This does not hold a slot.
#[derive(Debug, Clone)]
pub struct BatchGeometry {
    contents: Arc<Contents>,
    rows: Vec<Row>,
}

impl BatchGeometry {
    pub(crate) fn new(contents: &Arc<Contents>, rows: &[Row]) -> Self {
        Self { contents: Arc::clone(contents), rows: rows.to_vec() }
    }

    /// Width and height of every view.
    pub fn size(&self) -> (u32, u32) {
        let made = self.contents.outputs.pictures.as_ref().map(super::Pictures::made);
        made.map_or((0, 0), |made| (made.width, made.height))
    }

    /// The part of each sample's image that a view shows, and how the part is transformed.
    ///
    /// # Errors
    /// [`LoadError::Option`] if the view does not exist, or the pack does not store the image sizes.
    pub fn view(&self, view: u32) -> Result<Vec<Geometry>, LoadError> {
        let pictures = self.contents.outputs.pictures.as_ref();
        let pictures = pictures.filter(|pictures| view < pictures.made().views);
        let no_view = || LoadError::Option(format!("images have no view {view}"));
        let pictures = pictures.ok_or_else(no_view)?;
        let of_row = |row: &Row| {
            let pack = self.contents.packs.get(row.pack).ok_or_else(no_view)?;
            pictures.geometry(pack, *row, &self.contents.seeds, view)
        };
        self.rows.iter().map(of_row).collect()
    }
}

/// Words in field names that stand for positions in the image. Each of them may also end in `s` or `es`.
const PLACES: &str = "\
    bbox bndbox boundingbox box contour coord coordinate corner cxcywh facebox flow gaze joint keypoint keypt kp kpt \
    landmark opticalflow point polygon polyline pose pt quad rect rectangle roi segmentation skeleton vertex vertice \
    xy xywh xyxy";

/// Words in the names of fields that describe positions but do not contain them, such as `bbox_label`.
const ABOUT: &str =
    "area categorie category class confidence count id idx index label n name num score valid visibility";

fn names_places(name: &str) -> bool {
    let spaced = spaced(name);
    let has_one_of = |known: &str| {
        spaced.split(' ').any(|word| {
            let mut rests = known.split(' ').filter_map(|one| word.strip_prefix(one));
            rests.any(|rest| matches!(rest, "" | "s" | "es"))
        })
    };
    has_one_of(PLACES) && !has_one_of(ABOUT)
}

/// The letters of a name in lower case, with a space after each word. `faceBox2` becomes `face box `.
fn spaced(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() * 2);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            spaced.push(' ');
        }
        was_lower = c.is_ascii_lowercase();
        let is_letter = c.is_ascii_alphabetic();
        spaced.push(if is_letter { c.to_ascii_lowercase() } else { ' ' });
    }
    spaced
}

/// The fields that look like positions or pixels of an augmented image but do not move with it. These are images and
/// masks other than the augmented ones, arrays with the rows and columns of the image, and numbers, ragged arrays or
/// JSON whose names suggest positions.
pub(crate) fn unmoved<'a>(pack: &Pack, outputs: &'a Outputs) -> Vec<&'a str> {
    let Some(pictures) = outputs.pictures.as_ref().filter(|p| p.moves_pixels()) else {
        return Vec::new();
    };
    let size = pictures.stored_size();
    let stays = |field: &&BatchField| {
        let is_made = matches!(
            field.source,
            Source::Image | Source::File | Source::Held | Source::Mask | Source::Boxes(_) | Source::InstanceMasks(_)
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
    match field.kind {
        FieldKind::Image => true,
        FieldKind::Tensor => {
            // A single number is not a position.
            let has_several = field.shape.iter().any(|n| *n > 1);
            has_several && (names_places(&field.name) || is_of_size(&field.shape, image))
        }
        FieldKind::Json | FieldKind::Ragged => names_places(&field.name),
        _ => false,
    }
}

/// Whether an array has the rows and columns of the image, with channels first or last.
fn is_of_size(shape: &[u64], image: Option<(u32, u32)>) -> bool {
    let Some((width, height)) = image else { return false };
    let sides = [u64::from(height), u64::from(width)];
    shape.starts_with(&sides) || (shape.len() == 3 && shape.ends_with(&sides))
}
