//! A batch that the consumer owns, with typed views of its fields. Its memory is not reused until it is dropped.

use packds_system::{counted, to_u64};
use std::sync::Arc;

use super::board::{Board, Ready};
use super::error::LoadError;
use super::filling::{Row, Variable};
use super::geometry::BatchGeometry;
use super::outputs::{BatchField, Contents, Source};
use super::workers::Workers;
use crate::arena::SlotRef;
use crate::augment::Mix;
use crate::device::Transfer;
use crate::fetch::ItemRun;
use crate::view::{ArrayView, Element};

/// The parts of a batch that are outside its slot.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) step: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) padding: usize,
    pub(crate) variable: Vec<Variable>,
    pub(crate) borrowed: Option<(usize, ItemRun)>,
    pub(crate) bad: Vec<BadSample>,
    pub(crate) mix: Option<Mix>,
}

impl Prepared {
    pub(crate) const fn new(step: u64) -> Self {
        Self { step, rows: Vec::new(), padding: 0, variable: Vec::new(), borrowed: None, bad: Vec::new(), mix: None }
    }
}

/// A sample that was left out or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadSample {
    /// The index of its pack in the list of the loader's packs.
    pub pack: usize,
    /// The sample's number in the pack.
    pub sample: u64,
    /// The error message, which names the file, chunk, sample and byte.
    pub error: String,
}

/// Samples of one step on one rank, by field.
///
/// It holds a slot of the staging ring, which is not overwritten until the batch is dropped. One field may be borrowed
/// from the pack or from a buffer instead of being copied into the slot.
#[derive(Debug)]
pub struct Batch {
    contents: Arc<Contents>,
    board: Arc<Board>,
    prepared: Prepared,
    ids: Vec<u64>,
    epoch: u32,
    slot: Option<SlotRef>,
    transfer: Box<dyn Transfer>,
}

impl Batch {
    pub(crate) fn new(workers: &Workers, epoch: u32, ready: Ready) -> Self {
        let Ready { prepared, slot, transfer } = ready;
        Self {
            contents: Arc::clone(workers.contents_at(prepared.step)),
            board: Arc::clone(&workers.board),
            ids: prepared.rows.iter().map(|row| row.sample).collect(),
            prepared,
            epoch,
            slot: Some(slot),
            transfer,
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Always false: a batch has at least one sample.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The samples, by position in their pack's file, from 0.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The index of each sample's pack. All zeros if there is only one pack.
    pub fn packs(&self) -> Vec<usize> {
        self.prepared.rows.iter().map(|row| row.pack).collect()
    }

    /// Number of padding samples at the end. They fill up the last batch of the epoch and repeat earlier samples.
    pub fn padding(&self) -> usize {
        self.prepared.padding
    }

    /// The loader's epoch. In a mixture, each pack counts its own epochs.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The step, counted from 0 in every epoch.
    pub fn step(&self) -> u64 {
        self.prepared.step
    }

    /// The samples that were left out or replaced.
    pub fn bad_samples(&self) -> &[BadSample] {
        &self.prepared.bad
    }

    /// Partners and weights, if the augmentation mixes images. Mix the labels in the same way.
    pub fn mix(&self) -> Option<&Mix> {
        self.prepared.mix.as_ref()
    }

    /// The random choices for the images: the crop of each image, and how it is shown. `None` if images are not
    /// augmented, or may be mosaics of several images.
    pub fn geometry(&self) -> Option<BatchGeometry> {
        let has_geometry =
            self.contents.outputs.pictures.as_ref().is_some_and(|pictures| !pictures.plan().has_mosaics());
        has_geometry.then(|| BatchGeometry::new(&self.contents, &self.prepared.rows))
    }

    /// Whether the bytes of a field are borrowed from the pack or from a buffer instead of being copied.
    pub fn is_lent(&self) -> bool {
        self.prepared.borrowed.is_some()
    }

    /// The fields and their types.
    pub fn fields(&self) -> &[BatchField] {
        &self.contents.outputs.fields
    }

    /// The device's transfer of this batch.
    pub fn transfer(&self) -> &dyn Transfer {
        self.transfer.as_ref()
    }

    /// A fixed-size field, `[samples, ..]`. For an image with several views, the first view.
    ///
    /// # Errors
    /// [`LoadError::Option`] if the field does not exist (the message lists the fields) or has variable-size items.
    pub fn field(&self, name: &str) -> Result<ArrayView<'_>, LoadError> {
        self.view(name, 0)
    }

    /// One view of an image, `[samples, ..]`. Views are numbered from 0.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn view(&self, name: &str, view: u32) -> Result<ArrayView<'_>, LoadError> {
        let (number, field) = self.find(name, view)?;
        let refused = |what, why| Err(LoadError::Option(format!("the {what} of field `{name}` {why}")));
        let Some(item_shape) = &field.shape else {
            return refused("items", "vary in size: read them one by one with `item`");
        };
        match field.source {
            Source::Held => {
                return refused("images", "are on the device: the batch contains only descriptions of their crops");
            }
            Source::File => return refused("images", "are decoded on the device: the batch contains only their files"),
            _ => {}
        }
        let mut shape = vec![self.len()];
        shape.extend(item_shape);
        Ok(ArrayView { dtype: field.dtype, shape, bytes: self.bytes(number, field) })
    }

    /// The elements of a field, `[samples, ..]` in C order.
    ///
    /// # Errors
    /// As for [`field`](Self::field), or if `T` is not the field's element type.
    pub fn elements<T: Element>(&self, name: &str) -> Result<&[T], LoadError> {
        let elements = self.field(name)?.elements::<T>();
        elements.map_err(|wrong| LoadError::Option(format!("field `{name}`: {wrong}")))
    }

    /// The bytes of a field of one sample, for any kind of field. For an image with several views, the first view.
    ///
    /// # Errors
    /// [`LoadError::Option`] if the field or the row does not exist.
    pub fn item(&self, name: &str, row: usize) -> Result<&[u8], LoadError> {
        let (number, field) = self.find(name, 0)?;
        let item = if field.shape.is_some() {
            let start = row.saturating_mul(field.item_bytes);
            self.bytes(number, field).get(start..start.saturating_add(field.item_bytes)).filter(|_| row < self.len())
        } else {
            self.variable(number).and_then(|variable| variable.item(row))
        };
        item.ok_or_else(|| {
            LoadError::Option(format!("the batch has {}: there is no row {row}", counted(self.len(), "sample")))
        })
    }

    /// All entries of a ragged field, `[entries, ..]`, and `samples + 1` offsets: sample `i` has the entries from offset
    /// `i` to offset `i + 1`. For the boxes of an image with several views, those of the first view.
    ///
    /// # Errors
    /// [`LoadError::Option`] if the field does not exist or is not ragged.
    pub fn entries(&self, name: &str) -> Result<(ArrayView<'_>, Vec<usize>), LoadError> {
        self.view_entries(name, 0)
    }

    /// Like [`entries`](Self::entries), for one view of an image. Views are numbered from 0.
    ///
    /// # Errors
    /// As for [`entries`](Self::entries), or if the field has no such view.
    pub fn view_entries(&self, name: &str, view: u32) -> Result<(ArrayView<'_>, Vec<usize>), LoadError> {
        let (number, field) = self.find(name, view)?;
        let (Some(entry), Some(items)) = (&field.entry, self.variable(number)) else {
            return Err(LoadError::Option(format!("field `{name}` is not ragged: read it with `field` or `item`")));
        };
        let mut offsets = vec![0];
        offsets.extend(items.ends.iter().map(|end| field.entries(*end)));
        let mut shape = vec![field.entries(items.bytes.len())];
        shape.extend(entry);
        Ok((ArrayView { dtype: field.dtype, shape, bytes: &items.bytes }, offsets))
    }

    /// The dimensions of one sample's item, if the field is ragged (`[entries, ..]`) or holds variable-size images that
    /// are [decoded](super::LoaderBuilder::decode_images) (`[height, width, channels]`, for masks `[height, width]`).
    /// `None` for other items.
    pub fn item_shape(&self, name: &str, row: usize) -> Option<&[usize]> {
        let (number, _) = self.find(name, 0).ok()?;
        self.variable(number)?.shape(row)
    }

    /// The items of a variable-size field, one after another.
    fn variable(&self, number: usize) -> Option<&Variable> {
        let fields = self.contents.outputs.fields.iter();
        let before = fields.take(number).filter(|f| f.shape.is_none()).count();
        self.prepared.variable.get(before)
    }

    fn find(&self, name: &str, view: u32) -> Result<(usize, &BatchField), LoadError> {
        let fields = &self.contents.outputs.fields;
        let found = fields.iter().enumerate().find(|(_, f)| f.name == name && f.view == view);
        found.ok_or_else(|| {
            let mut known: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            known.dedup();
            let known = known.join(", ");
            if fields.iter().any(|f| f.name == name) {
                return LoadError::Option(format!("field `{name}` has no view {view}"));
            }
            LoadError::Option(format!("batches have no field `{name}`; they have {known}"))
        })
    }

    /// All bytes of a fixed-size field.
    fn bytes(&self, number: usize, field: &BatchField) -> &[u8] {
        let len = self.len() * field.item_bytes;
        if let Some((borrowed, run)) = &self.prepared.borrowed
            && *borrowed == number
        {
            return run.as_ref().get(..len).unwrap_or_default();
        }
        let slot = self.slot.as_deref().unwrap_or_default();
        slot.get(field.offset..field.offset + len).unwrap_or_default()
    }

    /// The slot that contains the batch.
    #[doc(hidden)]
    pub fn slot(&self) -> Option<&SlotRef> {
        self.slot.as_ref()
    }

    /// Size of all fields in bytes.
    pub(crate) fn n_bytes(&self) -> u64 {
        let fixed: usize = self.contents.outputs.fields.iter().map(|f| f.item_bytes * self.len()).sum();
        let variable: usize = self.prepared.variable.iter().map(|r| r.bytes.len()).sum();
        to_u64(fixed + variable)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Frees the slot before others are notified.
        self.slot = None;
        self.board.batch_dropped();
    }
}
