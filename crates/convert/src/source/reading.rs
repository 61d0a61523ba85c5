//! How a source is read: what its images, labels, masks and other fields are.

use serde::Serialize;

use super::listing::Listing;
use super::paths::lossy;

/// How a source is read, for the user to check before a conversion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reading {
    /// `image_folder`, `flat_folder`, `paired_folders`, `manifest`, or the name of a format.
    pub kind: &'static str,
    /// What one sample is: a `file`, a `row`, a `record` or a `key`.
    pub sample: &'static str,
    /// The path or name of the first sample's image.
    pub image: String,
    /// The path or name of the first sample's mask, if there are masks.
    pub mask: Option<String>,
    /// Labels per sample: `none`, `one` or `list`.
    pub labels: &'static str,
    /// The class names by id, if they are named.
    pub classes: Vec<String>,
    /// The names of the other fields.
    pub fields: Vec<String>,
    /// Files that are ignored.
    pub ignored: u64,
}

impl Reading {
    /// How this listing was read.
    pub(crate) fn of(listing: &Listing) -> Self {
        let (mut image, mut mask) = (Vec::new(), Vec::new());
        if !listing.is_empty() {
            listing.path_into(0, &mut image);
            listing.mask_path_into(0, &mut mask);
        }
        let columns = listing.columns().iter().map(|column| &column.name);
        let fields = columns.chain(listing.fields().iter().map(|field| &field.name));
        Self {
            kind: listing.kind().name(),
            sample: listing.kind().sample(),
            image: lossy(&image),
            mask: listing.has_masks().then(|| lossy(&mask)),
            labels: match (listing.has_labels(), listing.has_label_lists()) {
                (true, _) => "one",
                (_, true) => "list",
                _ => "none",
            },
            classes: listing.classes().iter().map(|class| lossy(class)).collect(),
            fields: fields.cloned().collect(),
            ignored: listing.ignored(),
        }
    }
}
