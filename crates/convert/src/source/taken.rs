//! The second pass over the rows of a manifest: stores the values of each row, and finds the files.
//!
//! The module `manifest` plans how to store each column.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use super::{
    column::SourceColumn,
    labels::{LabelBuilder, MISSING, in_known_order},
    listing::{Fault, Faults, Labels, Listing, Masks, SourceKind},
    manifest::Plan,
    mask_files::MaskFiles,
    narrow::{narrowed_columns, ragged_columns},
    pairs::is_normal,
    paths::{FileTable, PathTable},
    pixel_rows::PixelSpool,
    root::{Missing, Renamed, Root},
    rows::{Cell, Rows},
    tally::Tally,
    warning::Warning,
};
use crate::error::ConvertError;
use crate::metadata::Metadata;

/// The second pass's result.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) images: FileTable,
    pub(super) pixels: Option<PixelSpool>,
    pub(super) masks: Option<FileTable>,
    pub(super) labels: Option<LabelBuilder>,
    pub(super) columns: Vec<SourceColumn>,
    /// The line of each taken row, for messages about missing files and labels.
    lines: Vec<u64>,
    /// The taken rows without a label, and the place of each in the file.
    unlabelled: Vec<(usize, String)>,
    /// The taken rows without a mask, and the error about each. In place of the mask, the path of the image is stored.
    unmasked: BTreeMap<usize, Fault>,
}

impl Taken {
    /// The samples without a label, as bad samples.
    pub(super) fn unlabelled(&self, source: &Path) -> Faults {
        let fault = |(idx, place): &(usize, String)| {
            let name = source.file_name().unwrap_or_default().display();
            let reason = format!("{MISSING} in {place} of '{name}'");
            (*idx, Fault::from(reason))
        };
        self.unlabelled.iter().map(fault).collect()
    }
}

/// The second pass: takes the rows of the planned split, or all rows.
pub(super) fn take(
    rows: &mut Rows<'_>,
    plan: &Plan,
    root: &Root,
    pixels: Option<PixelSpool>,
) -> Result<Taken, ConvertError> {
    let mut taken = Taken {
        pixels,
        masks: plan.mask.map(|_| FileTable::default()),
        labels: plan.label.as_ref().map(|label| LabelBuilder::new(label.names, label.lists, label.split)),
        columns: plan.columns.iter().map(|(_, empty)| empty.clone()).collect(),
        ..Taken::default()
    };
    // The error about the last row without a mask.
    let mut no_mask = None;
    while rows.advance()? {
        if let Some((column, wanted)) = &plan.split
            && column.split(rows) != wanted.as_str()
        {
            if let (Some(labels), Some(label)) = (&mut taken.labels, &plan.label)
                && !label.with_cell(rows, |cell| labels.is_missing(cell))
            {
                label.with_cell(rows, |cell| labels.learn(cell));
            }
            continue;
        }
        let images = plan.path.map_or_else(|| Ok(vec![Vec::new()]), |path| root.images(rows, path))?;
        for image in images {
            take_sample(rows, plan, root, &image, &mut taken, &mut no_mask)?;
        }
    }
    match no_mask {
        _ if taken.lines.is_empty() => return Err(changed(rows)),
        _ if taken.unmasked.len() < taken.lines.len() => {}
        // Only the training split may have masks.
        Some(_) if plan.split.is_some() => (taken.masks, taken.unmasked) = (None, BTreeMap::new()),
        Some(missing) => return Err(missing),
        None => {}
    }
    Ok(taken)
}

/// Takes a sample of the current row. `image` is the path of its image. It is not used in a table of pixels.
fn take_sample(
    rows: &Rows<'_>,
    plan: &Plan,
    root: &Root,
    image: &[u8],
    taken: &mut Taken,
    no_mask: &mut Option<ConvertError>,
) -> Result<(), ConvertError> {
    taken.lines.push(rows.line);
    if plan.path.is_some() {
        taken.images.push(image);
    }
    if let Some(pixels) = &mut taken.pixels {
        pixels.push(rows)?;
    }
    if let (Some(masks), Some(column)) = (&mut taken.masks, plan.mask) {
        match (root.relative(rows, column), rows.cell(column)) {
            (Err(missing), Cell::Missing) => {
                *no_mask = Some(missing);
                let fault = Fault::NoMaskCell { column: rows.columns[column].as_str().into(), place: rows.place() };
                taken.unmasked.insert(taken.lines.len() - 1, fault);
                masks.push(image);
            }
            (mask, _) => masks.push(&mask?),
        }
    }
    let mut fits = true;
    if let (Some(labels), Some(label)) = (&mut taken.labels, &plan.label) {
        match label.with_cell(rows, |cell| labels.is_missing(cell)) {
            true => {
                taken.unlabelled.push((taken.lines.len() - 1, rows.place()));
                labels.push_missing();
            }
            false => fits &= label.with_cell(rows, |cell| labels.push(cell)),
        }
    }
    for (own, (column, _)) in taken.columns.iter_mut().zip(&plan.columns) {
        fits &= own.values.push(rows.cell(*column));
    }
    if fits { Ok(()) } else { Err(changed(rows)) }
}

/// The error if the second pass does not find what the first pass found.
pub(super) fn changed(rows: &Rows<'_>) -> ConvertError {
    rows.malformed("the manifest changed while it was read".to_owned())
}

/// Finds the files of the taken rows, and makes the listing. Missing files and labels become bad samples.
pub(super) fn finish(
    source: &Path,
    root: Root,
    mut taken: Taken,
    metadata: Option<Metadata>,
    jobs: usize,
) -> Result<Listing, ConvertError> {
    let manifest: Arc<Path> = source.into();
    let unlabelled = taken.unlabelled(source);
    let mut renamed = Renamed::default();
    let images = root.files(taken.images.paths, jobs, &mut renamed)?;
    let mut faults = Faults::new();
    let mut note = |missing: BTreeMap<usize, Missing>, is_mask| {
        for (idx, Missing { is_there, near }) in missing {
            faults.entry(idx).or_insert_with(|| Fault::File {
                manifest: Arc::clone(&manifest),
                line: taken.lines[idx],
                is_mask,
                is_there,
                near: near.map(Box::new),
            });
        }
    };
    note(images.missing, false);
    let mut blank = None;
    let masks = match taken.masks {
        None => None,
        Some(masks) => {
            let masks = root.files(masks.paths, jobs, &mut renamed)?;
            note(masks.missing, true);
            let mut files = MaskFiles::new(masks.paths, masks.bytes);
            (blank, taken.unmasked) = blank_masks(&images.paths, taken.unmasked, &mut files);
            Some(Masks::Files(files))
        }
    };
    faults.extend(taken.unmasked);
    for (idx, fault) in unlabelled {
        faults.entry(idx).or_insert(fault);
    }
    let (labels, classes) = taken.labels.map_or((Labels::None, Vec::new()), LabelBuilder::finish);
    let (labels, classes) = match &metadata {
        Some(metadata) => in_known_order(labels, classes, metadata),
        None => (labels, classes),
    };
    let (columns, mut fields) = ragged_columns(taken.columns, |name| metadata.as_ref()?.field(name));
    let (columns, narrowed) = narrowed_columns(columns, metadata.as_ref());
    fields.extend(narrowed);
    Ok(Listing {
        labels,
        classes,
        columns,
        fields,
        metadata,
        faults,
        masks,
        warnings: renamed.warning().into_iter().chain(blank).collect(),
        ..Listing::of_files(SourceKind::Manifest, &root.path, images.paths, images.bytes)
    })
}

/// Gives images without masks masks of zeros if they are in a folder such as `good` whose images all have no mask. Returns a
/// warning about these images, and the errors about the others.
fn blank_masks(
    images: &PathTable,
    unmasked: BTreeMap<usize, Fault>,
    files: &mut MaskFiles,
) -> (Option<Warning>, BTreeMap<usize, Fault>) {
    let with_masks = (0..images.len()).filter(|idx| !unmasked.contains_key(idx));
    let with_masks: BTreeSet<usize> = with_masks.map(|idx| images.directory_idx(idx)).collect();
    let mut tally = Tally::default();
    let mut others = BTreeMap::new();
    for (idx, fault) in unmasked {
        if is_normal(images.directory(idx)) && !with_masks.contains(&images.directory_idx(idx)) {
            files.set_blank(idx);
            tally.add(&images.path(idx));
        } else {
            others.insert(idx, fault);
        }
    }
    (tally.warning(|count, first| Warning::BlankMasks { count, first }), others)
}
