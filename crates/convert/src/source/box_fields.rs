//! The fields of boxes, and which boxes are kept. The modules that read boxes share them.

use std::collections::BTreeSet;

use packds_format::{DType, Field, Keypoints, Role};

pub(super) const BOXES: &str = "boxes";
pub(super) const BOX_LABELS: &str = "box_labels";
pub(crate) const AREA: &str = "box_area";
pub(crate) const CROWD: &str = "box_crowd";
pub(super) const DIFFICULT: &str = "box_difficult";
pub(super) const KEYPOINTS: &str = "keypoints";
pub(super) const POLYGONS: &str = "polygons";

/// The fields of boxes, and the names of their classes.
#[derive(Debug, Clone)]
pub(super) struct BoxFields {
    pub(super) fields: Vec<Field>,
    pub(super) classes: Vec<String>,
}

impl BoxFields {
    /// All fields that boxes may have.
    pub(super) fn new(classes: Vec<String>) -> Self {
        let fields = vec![
            Field::ragged(BOXES, DType::F32, &[4]).with_role(Role::Boxes),
            Field::ragged(BOX_LABELS, DType::I64, &[]).with_role(Role::BoxLabels),
            Field::ragged(AREA, DType::F32, &[]).with_role(Role::BoxAttribute),
            Field::ragged(CROWD, DType::Bool, &[]).with_role(Role::BoxAttribute),
            Field::ragged(DIFFICULT, DType::Bool, &[]).with_role(Role::BoxAttribute),
        ];
        Self { fields, classes }
    }

    /// Adds the field of keypoints. Each box has `n` of them.
    pub(super) fn with_keypoints(mut self, n: u64, keypoints: Option<Keypoints>) -> Self {
        let field = Field::ragged(KEYPOINTS, DType::F32, &[n, 3]).with_role(Role::Keypoints);
        self.fields.push(Field { keypoints, ..field });
        self
    }

    /// Adds the polygons.
    pub(super) fn with_polygons(mut self) -> Self {
        self.fields.push(Field::ragged(POLYGONS, DType::F32, &[4]).with_role(Role::Polygons));
        self
    }

    /// The names of the keypoints, if they have any.
    pub(super) fn keypoints(&self) -> Option<&Keypoints> {
        self.fields.iter().find_map(|field| field.keypoints.as_ref())
    }
}

/// What was seen in all annotations.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Number of boxes without an area, which are left out.
    pub(super) empty: u64,
    /// Number of boxes that reach beyond their image, which are kept.
    pub(super) outside: u64,
    /// Number of boxes in all, and of those whose numbers are at most 1.
    pub(super) n: u64,
    n_parts: u64,
    /// Other values of annotations, which are left out.
    pub(super) left_out: BTreeSet<String>,
}

impl Seen {
    /// Whether a box is kept. Counts boxes without an area, and those that reach beyond an image of this width and height.
    pub(super) fn keeps(&mut self, [left, top, right, bottom]: [f64; 4], size: Option<(f64, f64)>) -> bool {
        self.n += 1;
        self.n_parts += u64::from([left, top, right, bottom].iter().all(|side| (0.0..=1.0).contains(side)));
        if right <= left || bottom <= top {
            self.empty += 1;
            return false;
        }
        // Tools round, so boxes may end up to one pixel beyond the image.
        let is_outside = |(w, h): (f64, f64)| left < -1.0 || top < -1.0 || right > w + 1.0 || bottom > h + 1.0;
        self.outside += u64::from(size.is_some_and(is_outside));
        true
    }

    /// Whether the boxes are parts of the width and height of their images instead of pixels.
    pub(super) const fn are_parts(&self) -> bool {
        self.n > 0 && self.n_parts == self.n
    }

    /// Adds what was seen in another file.
    pub(super) fn append(&mut self, other: Self) {
        self.n += other.n;
        self.n_parts += other.n_parts;
        self.empty += other.empty;
        self.outside += other.outside;
        self.left_out.extend(other.left_out);
    }
}
