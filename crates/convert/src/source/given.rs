//! Samples that a program supplies one by one. They are written to temporary files as they arrive, and listed at the end. The
//! listing is converted like any other, so the packs are the same as those that the command writes.

mod field;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use packds_format::{DType, Keypoints, Polygons, Role};
use packds_system::{counted, to_usize};

use self::field::{GivenField, Values};
use super::found::{Found, Names};
use super::listing::{Labels, Listing, SourceKind};
use super::spool::{SpoolFolder, Unpacking};
use crate::error::ConvertError;

/// The kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenKind {
    /// The image: an image file or an array. There must be exactly one such field.
    Image,
    /// The mask of the image: an image file, or an array of the same size.
    Mask,
    /// A class, by id or by name.
    Label,
    /// The ids of several classes.
    Labels,
    /// An array of a fixed type.
    Array {
        /// Element type.
        dtype: DType,
        /// Dimensions; empty for a single number.
        shape: Vec<u64>,
    },
    /// Any number of entries of a fixed type.
    Ragged {
        /// Element type.
        dtype: DType,
        /// Dimensions of an entry; empty for a single number.
        shape: Vec<u64>,
        /// What the entries are: boxes, or something about each box.
        role: Option<Role>,
    },
    /// Bytes.
    Bytes,
    /// A string.
    Text,
    /// A JSON text.
    Json,
}

impl GivenKind {
    /// The role of a field about boxes.
    fn box_role(&self) -> Option<Role> {
        match self {
            Self::Ragged { role, .. } => *role,
            _ => None,
        }
    }
}

/// One sample's value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GivenValue<'a> {
    /// An image file, or other bytes.
    Bytes(&'a [u8]),
    /// An array.
    Array {
        /// Element type.
        dtype: DType,
        /// Dimensions.
        shape: &'a [u64],
        /// The elements, little-endian, in C order.
        bytes: &'a [u8],
    },
    /// A string, a JSON text, or the name of a class.
    Text(&'a str),
    /// The id of a class.
    Id(i64),
    /// The ids of several classes.
    Ids(&'a [i64]),
}

/// Samples supplied by a program. Images, masks, arrays and bytes are stored in unnamed temporary files, which disappear when the program
/// ends, even if it crashes. Labels, strings and sizes are kept in memory.
#[derive(Debug)]
pub struct Given {
    /// The path of the pack to be written, for error messages.
    target: PathBuf,
    fields: Vec<GivenField>,
    classes: Vec<String>,
    keypoints: Option<Keypoints>,
    n_samples: usize,
    /// Whether a sample was only partly written. The set is then unusable.
    is_broken: bool,
}

impl Given {
    /// Starts an empty set with fields of these names and kinds for the pack `target`. The temporary files are in `folder`.
    /// `classes` are the names of the class ids. If empty, ids have no names, or the names are collected from the samples.
    ///
    /// # Errors
    /// [`ConvertError::Options`] unless there is one image, at most one mask, at most one label field, and no duplicate name;
    /// [`ConvertError::Spool`].
    pub fn new(
        target: &Path,
        folder: &Path,
        fields: &[(String, GivenKind)],
        classes: Vec<String>,
    ) -> Result<Self, ConvertError> {
        check(fields)?;
        let folder = SpoolFolder { path: folder.to_owned(), unpacking: Unpacking::default() };
        let fields = fields.iter().map(|(name, kind)| GivenField::new(name, kind, &folder));
        Ok(Self {
            target: target.to_owned(),
            fields: fields.collect::<Result<_, _>>()?,
            classes,
            keypoints: None,
            n_samples: 0,
            is_broken: false,
        })
    }

    /// The same set, with names for the points of the field with role keypoints.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if the names do not fit the field, or if there is no such field.
    pub fn with_keypoints(mut self, keypoints: Keypoints) -> Result<Self, ConvertError> {
        let mut kinds = self.fields.iter().filter_map(GivenField::entry_of_keypoints);
        let checked = match kinds.next() {
            Some(shape) => keypoints.check(shape),
            None => Err("no field has the role keypoints".to_owned()),
        };
        let hint = "give a name for each point, and pairs of points by their index";
        checked.map_err(|reason| ConvertError::options(reason, hint))?;
        self.keypoints = Some(keypoints);
        Ok(self)
    }

    /// Number of samples so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n_samples
    }

    /// Whether there are no samples yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_samples == 0
    }

    /// Adds the next sample: one value per field, in field order. If a value is invalid, the sample is not added, but more samples
    /// may be added later.
    ///
    /// # Errors
    /// [`ConvertError::SourceUnsupported`] with the sample and field if a value does not fit its field; [`ConvertError::Spool`] if
    /// a value cannot be stored.
    pub fn push(&mut self, values: &[GivenValue<'_>]) -> Result<(), ConvertError> {
        if self.is_broken {
            return Err(self.refused("", "an earlier sample was only partly written"));
        }
        if values.len() != self.fields.len() {
            let (expected, found) = (self.fields.len(), values.len());
            let reason = format!("expected a value for each of {expected} fields, found {found}");
            return Err(self.refused("", &reason));
        }
        // Check all values first, so that a sample is added either completely or not at all.
        for (field, value) in self.fields.iter().zip(values) {
            let checked = field.check(value, &self.classes);
            checked.map_err(|reason| self.refused(&field.name, &reason))?;
        }
        self.check_boxes(values)?;
        self.is_broken = true;
        for (field, value) in self.fields.iter_mut().zip(values) {
            field.push(value, &self.classes)?;
        }
        self.is_broken = false;
        self.n_samples += 1;
        Ok(())
    }

    /// Checks that there is an entry for each box in every field about boxes, that polygons are those of the boxes, and that the
    /// classes of boxes have names.
    fn check_boxes(&self, values: &[GivenValue<'_>]) -> Result<(), ConvertError> {
        let mut expected = None;
        for (field, value) in self.fields.iter().zip(values) {
            let (Some(role), GivenValue::Array { shape, bytes, .. }) = (field.box_role(), value) else { continue };
            if role == Role::Polygons {
                continue;
            }
            let found = shape.first().copied().unwrap_or(0);
            let (first, expected) = *expected.get_or_insert((&field.name, found));
            if found != expected {
                let expected = counted(expected, "entry");
                let reason = format!("expected {expected}, as in `{first}`: one for each box; found {found}");
                return Err(self.refused(&field.name, &reason));
            }
            if role == Role::Boxes {
                let wrong = bytes.as_chunks().0.iter().find_map(field::check_box);
                wrong.map_or(Ok(()), |reason| Err(self.refused(&field.name, &reason)))?;
            }
            if role == Role::BoxLabels && self.names_boxes() {
                let (ids, _) = bytes.as_chunks();
                let known = ids.iter().try_for_each(|id| field::check_class(i64::from_le_bytes(*id), &self.classes));
                known.map_err(|reason| self.refused(&field.name, &reason))?;
            }
            if role == Role::Keypoints {
                let wrong = bytes.as_chunks().0.iter().find_map(field::check_keypoint);
                wrong.map_or(Ok(()), |reason| Err(self.refused(&field.name, &reason)))?;
            }
        }
        let n_boxes = expected.map_or(0, |(_, n)| to_usize(n));
        for (field, value) in self.fields.iter().zip(values) {
            if let (Some(Role::Polygons), GivenValue::Array { bytes, .. }) = (field.box_role(), value) {
                Polygons::parse(bytes, n_boxes).map_err(|reason| self.refused(&field.name, &reason))?;
            }
        }
        Ok(())
    }

    /// Whether the names of the classes are those of boxes. If the image has a class itself, they are its names.
    fn names_boxes(&self) -> bool {
        let has_label = self.fields.iter().any(GivenField::is_label);
        !self.classes.is_empty() && !has_label
    }

    fn refused(&self, field: &str, reason: &str) -> ConvertError {
        let place = match field {
            "" => format!("sample {}", self.n_samples),
            field => format!("sample {}, field `{field}`", self.n_samples),
        };
        let hint = "give every sample the fields of the schema, with values of the declared kinds";
        ConvertError::unsupported(&self.target, &place, reason, hint)
    }

    /// Returns the listing of all samples.
    ///
    /// # Errors
    /// [`ConvertError::SourceMalformed`] if there are no samples; [`ConvertError::SourceUnsupported`] if a sample was only partly
    /// written; [`ConvertError::Spool`].
    pub fn into_listing(self) -> Result<Listing, ConvertError> {
        if self.is_broken {
            return Err(self.refused("", "a sample was only partly written"));
        }
        let names_boxes = self.names_boxes();
        let (source, keypoints) = (self.target, self.keypoints);
        if self.n_samples == 0 {
            let hint = "give at least one sample; nothing was written";
            return Err(ConvertError::contradictory(&source, "", "no sample was added", hint));
        }
        let (mut images, mut masks, mut labels) = (None, None, None);
        let (mut lists, mut fields, mut texts) = (None, Vec::new(), Vec::new());
        for field in self.fields {
            match field.finish(&source, self.n_samples, &self.classes)? {
                Values::Images(store) => images = Some(store),
                Values::Masks(store) => masks = Some(store),
                Values::Labels(found) => labels = Some(found),
                Values::Lists(found) => lists = Some(found),
                Values::Field(field) => fields.push(field),
                Values::Text(column) => texts.push(column),
            }
        }
        let images = images.ok_or_else(|| ConvertError::malformed(&source, "", "it has no images"))?;
        let found = Found {
            labels,
            masks,
            fields,
            texts,
            ..Found::new(SourceKind::Program, images, Names::Numbered(String::new()))
        };
        let mut listing = found.into_listing(&source)?;
        listing.keypoints = keypoints;
        if let Some(lists) = lists {
            listing.labels = Labels::Lists(lists);
            listing.classes = self.classes.into_iter().map(String::into_bytes).collect();
        } else if names_boxes {
            listing.box_classes = self.classes;
        }
        Ok(listing)
    }
}

fn check(fields: &[(String, GivenKind)]) -> Result<(), ConvertError> {
    let count = |wanted: &dyn Fn(&GivenKind) -> bool| fields.iter().filter(|(_, kind)| wanted(kind)).count();
    let refuse = |reason: String, hint: &str| {
        let hint = hint.to_owned();
        Err(ConvertError::Options { reason, hint })
    };
    let n_images = count(&|kind| *kind == GivenKind::Image);
    if n_images != 1 {
        return refuse(
            format!("expected one field of images, found {n_images}"),
            "declare one field as the image, and the others as arrays",
        );
    }
    if count(&|kind| *kind == GivenKind::Mask) > 1 {
        return refuse("a pack has at most one field of masks".to_owned(), "declare the others as arrays");
    }
    if count(&|kind| matches!(kind, GivenKind::Label | GivenKind::Labels)) > 1 {
        return refuse(
            "a pack has at most one field of class labels".to_owned(),
            "declare the others as arrays of integers",
        );
    }
    let n_boxes = count(&|kind| kind.box_role() == Some(Role::Boxes));
    let about_boxes = fields.iter().find(|(_, kind)| kind.box_role().is_some());
    if let Some((name, _)) = about_boxes.filter(|_| n_boxes != 1) {
        return refuse(
            format!("`{name}` is about boxes, so expected one field of boxes, found {n_boxes}"),
            "declare one field as the boxes, and others as ragged arrays without a role",
        );
    }
    for role in [Role::Keypoints, Role::Polygons] {
        let n = count(&|kind| kind.box_role() == Some(role));
        if n > 1 {
            return refuse(
                format!("a pack has at most one field of {role}, found {n}"),
                "declare the others as ragged arrays without a role",
            );
        }
    }
    for (place, (name, _)) in fields.iter().enumerate() {
        if fields.iter().take(place).any(|(other, _)| other == name) {
            return refuse(format!("two fields have the name `{name}`"), "rename one of them");
        }
    }
    Ok(())
}
