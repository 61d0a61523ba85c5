//! Samples that a program supplies one by one. They are written to temporary files as they arrive, and listed at the end. The
//! listing is converted like any other, so the packs are the same as those that the command writes.

mod field;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use packds_format::DType;

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
    },
    /// Bytes.
    Bytes,
    /// A string.
    Text,
    /// A JSON text.
    Json,
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
            n_samples: 0,
            is_broken: false,
        })
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
        self.is_broken = true;
        for (field, value) in self.fields.iter_mut().zip(values) {
            field.push(value, &self.classes)?;
        }
        self.is_broken = false;
        self.n_samples += 1;
        Ok(())
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
        let source = self.target;
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
        if let Some(lists) = lists {
            listing.labels = Labels::Lists(lists);
            listing.classes = self.classes.into_iter().map(String::into_bytes).collect();
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
    for (place, (name, _)) in fields.iter().enumerate() {
        if fields.iter().take(place).any(|(other, _)| other == name) {
            return refuse(format!("two fields have the name `{name}`"), "rename one of them");
        }
    }
    Ok(())
}
