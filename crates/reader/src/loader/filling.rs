//! A batch while it is written: its rows, the pieces that threads take, and their results.

use packds_system::lock;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::error::LoadError;
use super::outputs::{BatchField, Contents, Outputs};
use crate::arena::{PieceMut, SlotMut};
use crate::fetch::StepItems;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The index of the sample's pack in the list of the loader's packs.
    pub(crate) pack: usize,
    /// The sample, by position in its pack's file.
    pub(crate) sample: u64,
    /// The pack's epoch. It is part of the seed of augmentation.
    pub(crate) epoch: u32,
}

/// Rows of a batch that are written by one thread.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) rows: Range<usize>,
    /// The bytes of these rows, for each field that [`BatchField::is_filled`], in field order.
    pub(crate) regions: Vec<PieceMut>,
    /// The items of these rows, concatenated, for each variable field in field order.
    pub(crate) variable: Vec<Variable>,
    /// Rows that failed, with their errors.
    pub(crate) bad: Vec<(usize, LoadError)>,
}

/// Variable-size items, concatenated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) bytes: Vec<u8>,
    /// Where each item ends in `bytes`.
    pub(crate) ends: Vec<usize>,
    /// The dimensions of each item that contains pixels. Empty for other items.
    shapes: Vec<Vec<usize>>,
}

impl Variable {
    pub(crate) fn push(&mut self, item: &[u8], shape: &[usize]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
        self.shapes.push(shape.to_vec());
    }

    pub(crate) fn push_row(&mut self, other: &Self, row: usize) {
        let item = other.item(row).unwrap_or_default();
        self.push(item, other.shape(row).unwrap_or_default());
    }

    pub(crate) fn shape(&self, row: usize) -> Option<&[usize]> {
        self.shapes.get(row).map(Vec::as_slice).filter(|shape| !shape.is_empty())
    }

    pub(crate) fn item(&self, row: usize) -> Option<&[u8]> {
        let start = match row.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.bytes.get(start..*self.ends.get(row)?)
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for row in 0..other.ends.len() {
            self.push_row(other, row);
        }
    }
}

/// A batch while it is written.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) step: u64,
    /// What the batch contains, by its bucket.
    pub(crate) contents: Arc<Contents>,
    pub(crate) rows: Vec<Row>,
    pub(crate) padding: usize,
    /// The items of this step, for each pack that it takes samples from.
    pub(crate) items: Arc<[Option<StepItems>]>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Piece>,
    done: Vec<Piece>,
    n_pieces: usize,
}

impl Filling {
    pub(crate) fn new(
        (step, contents): (u64, &Arc<Contents>),
        rows: Vec<Row>,
        padding: usize,
        items: Arc<[Option<StepItems>]>,
        pieces: VecDeque<Piece>,
    ) -> Self {
        let n_pieces = pieces.len();
        let state = Mutex::new(State { waiting: pieces, done: Vec::with_capacity(n_pieces), n_pieces });
        Self { step, contents: Arc::clone(contents), rows, padding, items, state }
    }

    /// Takes an unassigned piece. Also returns whether it was the last one.
    pub(crate) fn take(&self) -> (Option<Piece>, bool) {
        let mut state = lock(&self.state);
        let piece = state.waiting.pop_front();
        (piece, state.waiting.is_empty())
    }

    /// Returns a finished piece. The caller that returns the last one gets all pieces, in row order.
    pub(crate) fn give_back(&self, piece: Piece) -> Option<Vec<Piece>> {
        let mut state = lock(&self.state);
        state.done.push(piece);
        if state.done.len() < state.n_pieces {
            return None;
        }
        let mut done = std::mem::take(&mut state.done);
        done.sort_by_key(|piece| piece.rows.start);
        Some(done)
    }
}

/// Splits a slot into pieces of `piece_rows` rows each. A slot is stored field by field, and each field row by row.
pub(crate) fn cut(slot: SlotMut, outputs: &Outputs, n_rows: usize, piece_rows: usize) -> VecDeque<Piece> {
    let piece_rows = piece_rows.max(1);
    let ranges: Vec<Range<usize>> =
        (0..n_rows).step_by(piece_rows).map(|start| start..(start + piece_rows).min(n_rows)).collect();
    let n_variable = outputs.fields.iter().filter(|f| f.shape.is_none()).count();
    let mut pieces: VecDeque<Piece> = ranges
        .iter()
        .map(|rows| Piece {
            rows: rows.clone(),
            regions: Vec::new(),
            variable: vec![Variable::default(); n_variable],
            bad: Vec::new(),
        })
        .collect();
    let filled: Vec<&BatchField> = outputs.fields.iter().filter(|f| f.is_filled()).collect();
    let mut lens = Vec::with_capacity(filled.len() * (ranges.len() + 1));
    let mut end = 0;
    for field in &filled {
        lens.push(field.offset - end);
        lens.extend(ranges.iter().map(|rows| rows.len() * field.item_bytes));
        end = field.offset + n_rows * field.item_bytes;
    }
    // There must be at least one piece, so that joining the pieces returns the slot.
    lens.push(0);
    let mut parts = slot.split(&lens).unwrap_or_default().into_iter();
    for _ in &filled {
        // The bytes between these fields are padding, and columns that have already been written.
        drop(parts.next());
        for (piece, part) in pieces.iter_mut().zip(&mut parts) {
            piece.regions.push(part);
        }
    }
    if let Some((piece, part)) = pieces.front_mut().zip(parts.next()) {
        piece.regions.push(part);
    }
    pieces
}

pub(crate) fn join(pieces: &mut [Piece]) -> Option<SlotMut> {
    let mut slot = None;
    for part in pieces.iter_mut().flat_map(|piece| piece.regions.drain(..)) {
        slot = part.join();
    }
    slot
}
