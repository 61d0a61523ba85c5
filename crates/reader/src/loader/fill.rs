//! Writes rows of a batch. Each thread has a [`Filler`] with its own decoder and scratch memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::BadSamples;
use super::boxes::Moved;
use super::error::LoadError;
use super::filling::{Filling, Piece, Row};
use super::kept::Kept;
use super::outputs::{BatchField, Contents, Outputs, Source};
use super::pictures::{PictureFiller, Views, bad_sample};
use crate::copy::{copy_past_caches, fence};
use crate::fetch::StepItems;
use crate::{ItemDecoder, Pack};

/// Batches above this size bypass the CPU caches, because they would not stay there.
const PAST_CACHES: usize = 4 << 20;

/// The state that a thread needs to write rows.
#[derive(Debug)]
pub(crate) struct Filler {
    contents: Arc<Contents>,
    bad_samples: BadSamples,
    pictures: Option<PictureFiller>,
    /// One decoder for each field of decoded images.
    decoders: Vec<ItemDecoder>,
    /// The results that repeated batches reuse.
    kept: Option<Arc<Kept>>,
    scratch: Vec<u8>,
    /// Buffers for a decompressed item and for the masks of a sample.
    for_masks: [Vec<u8>; 2],
}

impl Filler {
    /// A filler that uses kept results instead of repeating the work.
    pub(crate) fn new(contents: &Arc<Contents>, bad_samples: BadSamples, kept: Option<&Arc<Kept>>) -> Self {
        let pictures = contents.outputs.pictures_on_host();
        Self {
            contents: Arc::clone(contents),
            bad_samples,
            pictures: pictures.map(|pictures| PictureFiller::new(pictures, contents)),
            decoders: decoders(&contents.outputs, &contents.packs),
            kept: kept.map(Arc::clone),
            scratch: Vec::new(),
            for_masks: Default::default(),
        }
    }

    /// Prepares for rows of this bucket.
    fn turn_to(&mut self, contents: &Arc<Contents>) {
        if Arc::ptr_eq(&self.contents, contents) {
            return;
        }
        self.contents = Arc::clone(contents);
        if let (Some(filler), Some(pictures)) = (&mut self.pictures, contents.outputs.pictures_on_host()) {
            filler.turn_to(pictures);
        }
    }

    /// Writes the rows of `piece` until `stopped` is set. Rows that fail are recorded in the piece. If bad samples are
    /// an error, the first of them ends the piece.
    pub(crate) fn fill(&mut self, filling: &Filling, piece: &mut Piece, stopped: &AtomicBool) {
        self.turn_to(&filling.contents);
        for (place, number) in piece.rows.clone().enumerate() {
            if stopped.load(Ordering::Acquire) {
                break;
            }
            let Some(row) = filling.rows.get(number).copied() else { continue };
            if let Some(batch) = self.kept.as_deref().and_then(Kept::batch) {
                copy_row(batch, &self.contents.outputs, (number, place), piece);
                continue;
            }
            let Some(items) = filling.items.get(row.pack).and_then(Option::as_ref) else {
                continue;
            };
            if let Err(error) = self.row(items, row, place, piece) {
                piece.bad.push((number, error));
                if self.bad_samples == BadSamples::Error {
                    break;
                }
            }
            for variable in &mut piece.variable {
                if variable.ends.len() <= place {
                    variable.push(&[], &[]);
                }
            }
        }
        fence();
    }

    fn row(&mut self, items: &StepItems, row: Row, place: usize, piece: &mut Piece) -> Result<(), LoadError> {
        let past_caches = self.contents.outputs.slot_bytes >= PAST_CACHES;
        let copy = if past_caches { copy_past_caches } else { <[u8]>::copy_from_slice };
        let mut regions = piece.regions.iter_mut();
        let mut variable = piece.variable.iter_mut();
        let mut views = Views::default();
        let mut varied = Vec::new();
        let Some(pack) = self.contents.packs.get(row.pack) else { return Ok(()) };
        let Contents { outputs, seeds, .. } = &*self.contents;
        let mut stored = Vec::new();
        let mut moved = None;
        if let Some((pictures, boxes)) = outputs.pictures.as_ref().and_then(|p| Some((p, p.boxes()?))) {
            stored = boxes.stored(items, row.sample, &mut self.scratch)?;
            moved = Some((boxes, Moved::new(pictures, (pack, row), seeds, &stored)?));
        }
        for field in &outputs.fields {
            match field.source {
                Source::Column(_) | Source::Held => {}
                Source::Tensor(position) => {
                    let item = items.item(position, row.sample, &mut self.scratch)?;
                    if let Some(to) = regions.next().and_then(|r| slot_row(r, field, place)) {
                        copy(to, item);
                    }
                }
                Source::Variable(position) => {
                    let item = items.item(position, row.sample, &mut self.scratch)?;
                    if let Some(variable) = variable.next() {
                        variable.push(item, &field.ragged_shape(item.len()));
                    }
                }
                Source::Boxes(position) => {
                    let item = items.item(position, row.sample, &mut self.scratch)?;
                    if let (Some(variable), Some((boxes, moved))) = (variable.next(), &moved) {
                        boxes.push((pack, row), (field, position), item, moved, variable)?;
                    }
                }
                Source::InstanceMasks(_) => {
                    if let (Some(variable), Some(masks)) = (variable.next(), &outputs.instance_masks) {
                        let moved = moved.as_ref().map(|(_, moved)| moved);
                        masks.push((pack, row), (items, &mut self.for_masks), field, moved, variable)?;
                    }
                }
                Source::Decoded(position) => {
                    let item = items.item(position, row.sample, &mut self.scratch)?;
                    let decoder = self.decoders.iter_mut().find(|d| d.field() == field.name);
                    if let (Some(variable), Some(decoder)) = (variable.next(), decoder) {
                        let pixels = decoder.pixels(pack, row.sample, item);
                        let pixels = pixels.map_err(|e| bad_sample(pack, row.sample, e))?;
                        variable.push(&pixels.data, &pixels.shape);
                    }
                }
                Source::Image | Source::Mask if field.shape.is_none() => {
                    varied.extend(variable.next().map(|variable| (field.source, variable)));
                }
                Source::Image | Source::File | Source::Mask => {
                    if let Some(to) = regions.next().and_then(|r| slot_row(r, field, place)) {
                        views.push(field.source, to);
                    }
                }
            }
        }
        let Some(pictures) = &mut self.pictures else { return Ok(()) };
        let pixels = self.kept.as_deref().and_then(|kept| kept.pixels(row));
        let given = (pixels, stored.as_slice());
        match &outputs.pictures {
            Some(made) if !varied.is_empty() => pictures.fill_varied((pack, made), items, row, given, varied),
            _ => pictures.fill(pack, items, row, given, &mut views),
        }
    }
}

fn decoders(outputs: &Outputs, packs: &[Arc<Pack>]) -> Vec<ItemDecoder> {
    let decoded = outputs.fields.iter().filter(|f| matches!(f.source, Source::Decoded(_)));
    let fields = packs.first().map_or(&[][..], |pack| pack.schema().fields());
    let described = decoded.filter_map(|f| fields.iter().find(|field| field.name == f.name));
    described.map(ItemDecoder::new).collect()
}

fn copy_row(batch: &[u8], outputs: &Outputs, (number, place): (usize, usize), piece: &mut Piece) {
    let filled = outputs.fields.iter().filter(|field| field.is_filled());
    for (field, region) in filled.zip(&mut piece.regions) {
        let start = field.offset + number * field.item_bytes;
        let from = batch.get(start..start + field.item_bytes);
        if let (Some(from), Some(to)) = (from, slot_row(region, field, place)) {
            to.copy_from_slice(from);
        }
    }
}

/// The bytes of one row of a field in a piece's region.
fn slot_row<'a>(region: &'a mut [u8], field: &BatchField, place: usize) -> Option<&'a mut [u8]> {
    let start = place.checked_mul(field.item_bytes)?;
    region.get_mut(start..start.checked_add(field.item_bytes)?)
}
