//! Masks as run lengths in a table, as on Kaggle: `1 3 10 5` marks pixels 1 to 3 and 10 to 14, counted from 1. An image may have
//! several rows, one for each class or object.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use packds_system::{to_u64, to_usize};

use super::column::{ColumnValues, TextArena};
use super::labels::MISSING;
use super::listing::{Fault, Labels, Listing, Masks};
use super::paths::{FileTable, lossy};
use super::store::{Content, PixelShape};
use super::table_note::TableNote;
use super::tally::Tally;
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::{LEAVE_OUT, MASK_ORDER};
use crate::sample::SampleError;

/// The order in which run lengths count the pixels of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskOrder {
    /// Down the first column, then down the next one.
    Columns,
    /// Along the first row, then along the next one.
    Rows,
}

packds_system::named!(MaskOrder { Columns = "columns", Rows = "rows" });

/// The masks of all samples.
#[derive(Debug, Clone)]
pub(super) struct RunMasks {
    order: MaskOrder,
    texts: Arc<TextArena>,
    /// For each sample, the rows of its mask: the value of the marked pixels, and the place in `texts`.
    rows: Vec<Vec<(u8, usize)>>,
}

impl RunMasks {
    /// Masks with these rows: the value of the marked pixels, and the runs as text.
    pub(super) fn new(order: MaskOrder, masks: Vec<Vec<(u8, String)>>) -> Self {
        let mut texts = TextArena::default();
        let mut row = |(value, text): (u8, String)| {
            texts.push(&text);
            (value, texts.len() - 1)
        };
        let rows = masks.into_iter().map(|rows| rows.into_iter().map(&mut row).collect()).collect();
        Self { order, texts: Arc::new(texts), rows }
    }

    pub(super) fn order(&self) -> MaskOrder {
        self.order
    }

    /// The rows of a sample's mask: the value of the marked pixels, and the runs as text.
    pub(super) fn of(&self, idx: usize) -> Vec<(u8, String)> {
        let rows = self.rows.get(idx).into_iter().flatten();
        rows.map(|(value, row)| (*value, self.texts.get(*row).to_owned())).collect()
    }

    /// Number of bytes of a sample's mask, as text in the table.
    pub(super) fn bytes(&self, idx: usize) -> u64 {
        self.rows[idx].iter().map(|(_, row)| to_u64(self.texts.get(*row).len())).sum()
    }

    /// The masks of the samples at these positions.
    pub(super) fn picked(&self, places: &[usize]) -> Self {
        let rows = places.iter().map(|place| self.rows[*place].clone()).collect();
        Self { order: self.order, texts: Arc::clone(&self.texts), rows }
    }

    /// Appends the pixels of a mask. `size` is the width and height of the image. A pixel in several runs gets the
    /// largest value.
    pub(super) fn append(&self, idx: usize, size: (u32, u32), out: &mut Vec<u8>) -> Result<Content, SampleError> {
        let shape = PixelShape { width: size.0, height: size.1, channels: 1, planar: false };
        let (width, height) = (u64::from(size.0), u64::from(size.1));
        let start = out.len();
        out.resize(start + to_usize(shape.bytes()), 0);
        let pixels = out.get_mut(start..).unwrap_or_default();
        for (value, row) in &self.rows[idx] {
            let mut last = 0;
            for (first, n) in runs(self.texts.get(*row))? {
                if first <= last || n > width * height || first.saturating_add(n) > width * height + 1 {
                    let reason = format!(
                        "run-length mask: expected ascending runs of pixels from 1 to {}, found '{first} {n}' after pixel {last}; run lengths relative to the previous run are not read",
                        width * height
                    );
                    return Err(SampleError::Source(reason));
                }
                last = first + n - 1;
                for pixel in first - 1..last {
                    let place = match self.order {
                        MaskOrder::Columns => pixel % height * width + pixel / height,
                        MaskOrder::Rows => pixel,
                    };
                    if let Some(pixel) = pixels.get_mut(to_usize(place)) {
                        *pixel = (*pixel).max(*value);
                    }
                }
            }
        }
        Ok(Content::Pixels(shape))
    }
}

/// The runs of a cell: the first pixel and the number of pixels of each. A cell that is empty or -1 marks no pixel.
fn runs(text: &str) -> Result<Vec<(u64, u64)>, SampleError> {
    if is_blank(text) {
        return Ok(Vec::new());
    }
    let wrong = || SampleError::Source("run-length mask: expected pairs of positive whole numbers".to_owned());
    let numbers = text.split_ascii_whitespace().map(|word| word.parse().ok().filter(|n| *n > 0).ok_or_else(wrong));
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let (pairs, []) = numbers.as_chunks::<2>() else { return Err(wrong()) };
    Ok(pairs.iter().map(|[first, n]| (*first, *n)).collect())
}

fn is_blank(text: &str) -> bool {
    matches!(text.trim_ascii(), "" | "-1")
}

/// Joins the rows of each image of a table into one sample with a mask. `field` is the column of run lengths. If any
/// image has several rows and the rows have labels, the labels become the values of the masks. Otherwise, marked pixels
/// are 1. Pixels are counted down the columns unless `order` says otherwise.
pub(super) fn join(
    source: &Path,
    mut listing: Listing,
    field: &str,
    order: Option<MaskOrder>,
) -> Result<Listing, ConvertError> {
    let column = listing.columns.iter().position(|column| column.name == field);
    let Some(ColumnValues::Text(texts)) = column.map(|column| listing.columns.remove(column).values) else {
        return Ok(listing);
    };
    let images = images_of(&listing);
    let firsts: Vec<usize> = images.iter().filter_map(|rows| rows.first().copied()).collect();
    let are_classes = firsts.len() < listing.len() && listing.has_labels();
    check_columns(source, &listing, &images)?;
    let added = are_classes.then(|| added(&listing));
    let values = added.map_or_else(|| Ok(vec![1; listing.len()]), |added| values(source, &listing, added))?;
    let rows = images.iter().map(|rows| rows.iter().map(|row| (values[*row], *row)).collect()).collect();
    let mut joined = listing.picked(&firsts);
    let mut classes = Vec::new();
    if are_classes {
        classes = std::mem::take(&mut joined.classes).iter().map(|class| lossy(class)).collect();
        joined.labels = Labels::None;
        // An empty mask needs no class.
        let is_missing = |fault: &Fault| matches!(fault, Fault::Said(reason) if reason.starts_with(MISSING));
        let is_empty = |idx: &usize| images[*idx].iter().all(|row| is_blank(texts.get(*row)));
        joined.faults.retain(|idx, fault| !(is_missing(fault) && is_empty(idx)));
    }
    joined.warnings.push(Warning::Table(TableNote::RunMasks { field: field.to_owned(), order, added, classes }));
    let order = order.unwrap_or(MaskOrder::Columns);
    joined.masks = Some(Masks::Runs(RunMasks { order, texts: Arc::new(texts), rows }));
    Ok(joined)
}

/// Whether images without a row can be added with empty masks: the masks are run lengths, and the rows have no other values.
pub(super) fn may_add_empty(listing: &Listing) -> bool {
    let has_values = listing.has_labels() || listing.has_label_lists() || !listing.columns.is_empty();
    matches!(listing.masks, Some(Masks::Runs(_))) && !has_values
}

/// Adds images of the same root with empty masks. `table` is the name of the table that lacks them.
pub(super) fn add_empty(listing: &mut Listing, images: &[(Vec<u8>, u64)], table: &[u8]) {
    let Some(Masks::Runs(runs)) = &mut listing.masks else { return };
    let (mut files, mut tally) = (FileTable::default(), Tally::default());
    (0..listing.paths.len()).for_each(|idx| files.push(&listing.paths.path(idx)));
    for (path, bytes) in images {
        files.push(path);
        listing.bytes.push(*bytes);
        runs.rows.push(Vec::new());
        tally.add(path);
    }
    listing.paths = files.paths;
    let file = table.to_vec();
    let told = tally.warning(|count, first| Warning::Table(TableNote::NoRows { file, count, first }));
    listing.warnings.extend(told);
}

/// The error if the caller chose the order of pixels, but there are no run lengths.
pub(super) fn no_column() -> ConvertError {
    let reason = format!("{MASK_ORDER} applies only to tables with a column of run-length encoded (RLE) masks");
    let hint = "omit it, or pass such a table as the source".to_owned();
    ConvertError::Options { reason, hint }
}

/// The rows of each image, in the order of their first rows.
fn images_of(listing: &Listing) -> Vec<Vec<usize>> {
    let mut images: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    for row in 0..listing.len() {
        let image = *known.entry(listing.paths.path(row)).or_insert(images.len());
        match images.get_mut(image) {
            Some(rows) => rows.push(row),
            None => images.push(vec![row]),
        }
    }
    images
}

/// Refuses the table if any other column differs between the rows of an image.
fn check_columns(source: &Path, listing: &Listing, images: &[Vec<usize>]) -> Result<(), ConvertError> {
    for column in &listing.columns {
        let differs = |rows: &&Vec<usize>| rows.windows(2).any(|pair| !column.values.are_same(pair[0], pair[1]));
        if let Some(row) = images.iter().find(differs).and_then(|rows| rows.first()) {
            let (name, image) = (&column.name, lossy(&listing.paths.path(*row)));
            let reason = format!("the rows of '{image}' are parts of one mask, but they differ in column '{name}'");
            return Err(ConvertError::contradictory(
                source,
                "",
                reason,
                format!("leave it out with {}", LEAVE_OUT.with(name)),
            ));
        }
    }
    Ok(())
}

/// The number to add to each class id, so that no class has the value 0. Unmarked pixels are 0.
fn added(listing: &Listing) -> u8 {
    let is_zero = |row: usize| listing.label(row) == Some(0) && !listing.faults.contains_key(&row);
    u8::from(!listing.classes.is_empty() || (0..listing.len()).any(is_zero))
}

/// The value of the pixels of each row.
fn values(source: &Path, listing: &Listing, added: u8) -> Result<Vec<u8>, ConvertError> {
    let ids = (0..listing.len()).map(|row| listing.label(row).unwrap_or(0));
    ids.map(|id| u8::try_from(id + i64::from(added))).collect::<Result<_, _>>().map_err(|_| {
        let reason = "the classes of the masks do not fit in the 255 values of a pixel";
        ConvertError::unsupported(source, "", reason, format!("leave out the column of classes with {LEAVE_OUT}"))
    })
}
