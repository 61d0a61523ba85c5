//! The second pass over the rows of a manifest: stores the values of each row, and finds the files.
//!
//! The module `manifest` plans how to store each column.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{
    column::SourceColumn,
    labels::{LabelBuilder, MISSING, in_known_order},
    listing::{Fault, Faults, Labels, Listing, Masks, SourceKind},
    manifest::Plan,
    mask_files::MaskFiles,
    narrow::narrowed_columns,
    paths::FileTable,
    pixel_rows::PixelSpool,
    root::{Missing, Renamed, Root},
    rows::{Cell, Rows},
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
    // The error about the first row without a mask.
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
        Some(missing) if taken.masks.as_ref().is_some_and(|masks| masks.paths.len() > 0) => return Err(missing),
        Some(_) => taken.masks = None,
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
            // Only the training split may have masks.
            (Err(missing), Cell::Missing) if plan.split.is_some() => {
                no_mask.get_or_insert(missing);
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
    taken: Taken,
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
    let masks = match taken.masks {
        None => None,
        Some(masks) => {
            let masks = root.files(masks.paths, jobs, &mut renamed)?;
            note(masks.missing, true);
            Some(Masks::Files(MaskFiles::new(masks.paths, masks.bytes)))
        }
    };
    for (idx, fault) in unlabelled {
        faults.entry(idx).or_insert(fault);
    }
    let (labels, classes) = taken.labels.map_or((Labels::None, Vec::new()), LabelBuilder::finish);
    let (labels, classes) = match &metadata {
        Some(metadata) => in_known_order(labels, classes, metadata),
        None => (labels, classes),
    };
    let (columns, fields) = narrowed_columns(taken.columns, metadata.as_ref());
    Ok(Listing {
        labels,
        classes,
        columns,
        fields,
        metadata,
        faults,
        masks,
        warnings: renamed.warning().into_iter().collect(),
        ..Listing::of_files(SourceKind::Manifest, &root.path, images.paths, images.bytes)
    })
}
