//! Describes how a source is read: what its images, labels, masks and other fields are.

use serde::Serialize;

use super::ListOptions;
use super::listing::{Labels, Listing, SourceKind};
use super::paths::lossy;
use super::roles::LABEL_NAMES;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::opt::{
    FROM, IMAGE_KEY, IMAGES, LABEL_KEY, MANY_SAMPLES_PER_FILE, MASK_KEY, MASKS, ONE_SAMPLE_PER_FILE, SPLIT,
};

/// How a source is read. Lets the user check this before a conversion.
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
    /// The class names by id, if the classes have names.
    pub classes: Vec<String>,
    /// The names of the other fields.
    pub fields: Vec<String>,
    /// Number of files or members in the source that are not samples.
    pub ignored: u64,
    /// Why the source is read in this way, and how to change that.
    pub decisions: Vec<Decision>,
}

/// A decision, which an option can change, about how to read a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// What was decided: `format`, `sample`, `image`, `label`, `mask` or `split`.
    pub what: &'static str,
    /// The reason.
    pub because: String,
    /// The option that changes the decision.
    pub instead: String,
}

impl Reading {
    /// Describes how this listing was read.
    pub(crate) fn of(listing: &Listing, options: &ListOptions) -> Self {
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
            decisions: decisions(listing, options),
        }
    }
}

fn decisions(listing: &Listing, options: &ListOptions) -> Vec<Decision> {
    let mut all = vec![format_decision(listing, options)];
    all.extend(sample_decision(listing, options));
    all.extend(image_decision(listing, options));
    all.push(label_decision(listing, options));
    all.extend(mask_decision(listing, options));
    all
}

fn is_folder(listing: &Listing) -> bool {
    matches!(
        listing.kind(),
        SourceKind::ImageFolder | SourceKind::FlatFolder | SourceKind::PairedFolders | SourceKind::BoxFolder
    )
}

/// The warning that gives the reason for a decision.
fn reason(listing: &Listing, is_one: fn(&Warning) -> bool) -> Option<String> {
    listing.warnings().iter().find(|warning| is_one(warning)).map(ToString::to_string)
}

fn image_decision(listing: &Listing, options: &ListOptions) -> Option<Decision> {
    let images = IMAGES.with("DIR");
    let (because, instead) = match listing.kind() {
        SourceKind::SampleFiles(_) => return None,
        SourceKind::PairedFolders => {
            let because = match &options.masks {
                Some(_) => "you chose the mask folder",
                None => "the folders have names commonly used for images and masks",
            };
            (
                because.to_owned(),
                format!("{images} without {MASKS} for images without masks, or both for other folders"),
            )
        }
        SourceKind::BoxFolder => {
            let because = "each has a file with its boxes".to_owned();
            (because, format!("{images} for images without boxes, {SPLIT} for one split"))
        }
        SourceKind::ImageFolder | SourceKind::FlatFolder => {
            let because = match listing.has_masks() {
                true => "the other files next to the images are their masks",
                false => "no folder has a name commonly used for masks or splits",
            };
            (because.to_owned(), format!("{images} with {MASKS} for image and mask pairs, {SPLIT} for one split"))
        }
        _ => {
            let told = reason(listing, |warning| matches!(warning, Warning::PathColumn { .. }));
            let because = match (&options.image_key, told) {
                (Some(key), _) => format!("you chose '{key}'"),
                (None, Some(told)) => told,
                (None, None) => "one field has a name commonly used for images".to_owned(),
            };
            (because, IMAGE_KEY.with("NAME").to_string())
        }
    };
    Some(Decision { what: "image", because, instead })
}

fn label_decision(listing: &Listing, options: &ListOptions) -> Decision {
    let is_reason = |warning: &Warning| {
        matches!(
            warning,
            Warning::LabelColumn { .. }
                | Warning::OnlyOtherColumn { .. }
                | Warning::Indicators { .. }
                | Warning::FolderLabels { .. }
                | Warning::RestOfLine { .. }
                | Warning::LabelsFromNames { .. }
                | Warning::NumberedLabels { .. }
                | Warning::FoldersInTar { .. }
                | Warning::TarClasses { .. }
                | Warning::Table(TableNote::SplitLabels { .. })
        )
    };
    let has_parts = reason(listing, |warning| matches!(warning, Warning::NumberedParts { .. })).is_some();
    let because = match (&listing.labels, &options.label_key) {
        (_, Some(key)) => format!("you chose '{key}'"),
        (Labels::ByDirectory(_), None) => "each folder with images is a class".to_owned(),
        _ if has_class_folders(listing) => "each folder with files is a class".to_owned(),
        (Labels::PerSample(_) | Labels::Lists(_), None) => {
            reason(listing, is_reason).unwrap_or_else(|| "one field has a name commonly used for labels".to_owned())
        }
        (Labels::None, None) if has_parts => "the folders are parts of one dataset, not classes".to_owned(),
        (Labels::None, None) if is_folder(listing) => "there are no class folders".to_owned(),
        (Labels::None, None) => {
            format!("there are no class folders, and no field has one of the names {}", LABEL_NAMES.join(", "))
        }
    };
    let instead = match is_folder(listing) {
        true if has_parts => format!("{}: every folder is a class", FROM.with("image-folder")),
        // A folder has no fields that a key could select.
        true => "a CSV file with the columns 'path' and 'label' as the source".to_owned(),
        false => LABEL_KEY.with("NAME").to_string(),
    };
    Decision { what: "label", because, instead }
}

fn mask_decision(listing: &Listing, options: &ListOptions) -> Option<Decision> {
    if !listing.has_masks() {
        return None;
    }
    let told = reason(listing, |warning| matches!(warning, Warning::MaskColumn { .. }));
    let because = match (&options.mask_key, told) {
        (Some(key), _) => format!("you chose '{key}'"),
        (None, Some(told)) => told,
        (None, None) if listing.kind() == SourceKind::PairedFolders => {
            "the files in the folder have the same names as the images".to_owned()
        }
        (None, None) if is_folder(listing) => "the files next to the images have the same names".to_owned(),
        (None, None) => "one field has a name commonly used for masks".to_owned(),
    };
    let instead = match listing.kind() {
        SourceKind::PairedFolders => format!("{}: every folder is a class", FROM.with("image-folder")),
        _ if is_folder(listing) => format!("{}: every file is an image", FROM.with("image-folder")),
        _ => MASK_KEY.with("NAME").to_string(),
    };
    Some(Decision { what: "mask", because, instead })
}

fn format_decision(listing: &Listing, options: &ListOptions) -> Decision {
    let is_inside = listing.warnings().iter().find_map(|warning| match warning {
        Warning::TableRead { is_inside, .. } => Some(*is_inside),
        _ => None,
    });
    if let Some(is_inside) = is_inside {
        let because = "a table next to the images describes them".to_owned();
        let instead = match is_inside {
            true => "an image folder as the source".to_owned(),
            false => format!("{}: the folder itself", FROM.with("image-folder")),
        };
        return Decision { what: "format", because, instead };
    }
    let because = match (options.from, listing.kind()) {
        (Some(_), _) => "you chose it".to_owned(),
        (
            None,
            SourceKind::ImageFolder | SourceKind::FlatFolder | SourceKind::PairedFolders | SourceKind::BoxFolder,
        ) => "it is a folder with image files".to_owned(),
        (None, SourceKind::Manifest) => "the file is a table or a list of paths".to_owned(),
        (None, SourceKind::Program) => "a program supplied the samples".to_owned(),
        (None, SourceKind::Container(format) | SourceKind::SampleFiles(format)) => {
            format!("its files look like {format}")
        }
    };
    Decision { what: "format", because, instead: FROM.with("FORMAT").to_string() }
}

/// Whether the first sample's label is the name of its folder.
fn has_class_folders(listing: &Listing) -> bool {
    let class = (!listing.is_empty()).then(|| listing.label(0)).flatten();
    let class = class.and_then(|id| listing.classes().get(usize::try_from(id).ok()?));
    class.is_some_and(|class| listing.paths.directory(0).rsplit(|byte| *byte == b'/').any(|folder| folder == class))
}

/// Why each file is read as one sample or as many. `None` for formats without this choice.
fn sample_decision(listing: &Listing, options: &ListOptions) -> Option<Decision> {
    let (because, instead) = match (listing.kind(), options.one_sample_per_file) {
        (SourceKind::SampleFiles(_) | SourceKind::Container(_), Some(_)) => {
            ("you requested it", format!("omit {ONE_SAMPLE_PER_FILE} or {MANY_SAMPLES_PER_FILE}"))
        }
        (SourceKind::SampleFiles(_), None) if has_class_folders(listing) => {
            ("the files are in class folders", MANY_SAMPLES_PER_FILE.to_string())
        }
        (SourceKind::SampleFiles(_), None) => {
            ("no file has a name commonly used for an array with all images", MANY_SAMPLES_PER_FILE.to_string())
        }
        (SourceKind::Container(format), None) if format.may_hold_one_sample() => {
            ("the files are not in class folders and do not look like single images", ONE_SAMPLE_PER_FILE.to_string())
        }
        _ => return None,
    };
    Some(Decision { what: "sample", because: because.to_owned(), instead })
}
