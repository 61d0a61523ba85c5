//! Turns finished pieces into a batch: replaces or leaves out bad rows, joins variable items, and mixes images.

use super::BadSamples;
use super::batch::{BadSample, Prepared};
use super::error::LoadError;
use super::filling::{Filling, Piece, Row, Variable, join};
use super::outputs::{Contents, Outputs};
use crate::arena::SlotMut;

/// Joins the work of all threads. Returns the slot, which is no longer shared, and the other parts of the batch.
pub(crate) fn finish(
    filling: &Filling,
    mut pieces: Vec<Piece>,
    contents: &Contents,
    policy: BadSamples,
) -> Result<Option<(SlotMut, Prepared)>, LoadError> {
    for items in filling.items.iter().flatten() {
        items.still_good()?;
    }
    let Contents { outputs, seeds, .. } = contents;
    let mut bad: Vec<(usize, LoadError)> = Vec::new();
    let n_variable = outputs.fields.iter().filter(|f| f.shape.is_none()).count();
    let mut variable = vec![Variable::default(); n_variable];
    for piece in &mut pieces {
        bad.append(&mut piece.bad);
        for (all, part) in variable.iter_mut().zip(&piece.variable) {
            all.append(part);
        }
    }
    let Some(mut slot) = join(&mut pieces) else { return Ok(None) };
    let mut prepared =
        Prepared { rows: filling.rows.clone(), padding: filling.padding, variable, ..Prepared::new(filling.step) };
    if !bad.is_empty() {
        let kept = kept_rows(filling, &mut bad, policy)?;
        move_rows(&mut slot, outputs, &kept);
        prepared.keep(&kept);
        prepared.bad = bad.iter().filter_map(|(row, error)| told(filling, *row, error)).collect();
    }
    if let Some(pictures) = &outputs.pictures {
        let rows = (prepared.rows.as_slice(), seeds.as_slice());
        prepared.mix = pictures.join(outputs, &mut slot, &mut prepared.variable, rows)?;
    }
    Ok(Some((slot, prepared)))
}

fn told(filling: &Filling, row: usize, error: &LoadError) -> Option<BadSample> {
    let Row { pack, sample, .. } = *filling.rows.get(row)?;
    Some(BadSample { pack, sample, error: error.to_string() })
}

/// The source row for each row of the batch, or the error of the first bad row. A bad row is left out, or replaced with
/// the good row before it. If no good row comes before it, the first good row after it is used. Neither the error nor
/// the choice depends on threads.
fn kept_rows(
    filling: &Filling,
    bad: &mut Vec<(usize, LoadError)>,
    policy: BadSamples,
) -> Result<Vec<usize>, LoadError> {
    let n = filling.rows.len();
    bad.sort_by_key(|(row, _)| *row);
    if policy == BadSamples::Error {
        return Err(bad.swap_remove(0).1);
    }
    let is_bad = |row: &usize| bad.binary_search_by_key(row, |(row, _)| *row).is_ok();
    let good: Vec<usize> = (0..n).filter(|row| !is_bad(row)).collect();
    if good.is_empty() {
        return Err(LoadError::NothingLeft { step: filling.step, samples: n, first: Box::new(bad.swap_remove(0).1) });
    }
    if policy == BadSamples::Skip {
        return Ok(good);
    }
    let substitute = |row: usize| {
        let behind = good.partition_point(|good| *good <= row);
        good.get(behind.saturating_sub(1)).copied().unwrap_or(row)
    };
    Ok((0..n).map(substitute).collect())
}

/// Copies row `kept[to]` to row `to`, in every field in the slot. Copying in ascending order never overwrites a row
/// that is still needed: when rows are left out, later rows move to the front; when rows are replaced, the good rows
/// stay in place.
fn move_rows(slot: &mut SlotMut, outputs: &Outputs, kept: &[usize]) {
    for field in &outputs.fields {
        let n = field.item_bytes;
        for (to, from) in kept.iter().enumerate().filter(|(to, from)| to != *from) {
            let (from, to) = (field.offset + from * n, field.offset + to * n);
            if from.max(to) + n <= slot.len() {
                slot.copy_within(from..from + n, to);
            }
        }
    }
}

impl Prepared {
    /// Replaces row `to` with row `kept[to]` in everything that is outside the slot.
    fn keep(&mut self, kept: &[usize]) {
        let first_padding = self.rows.len() - self.padding;
        self.padding = kept.iter().filter(|from| **from >= first_padding).count();
        self.rows = kept.iter().filter_map(|from| self.rows.get(*from).copied()).collect();
        for variable in &mut self.variable {
            let mut moved = Variable::default();
            for from in kept {
                moved.push_row(variable, *from);
            }
            *variable = moved;
        }
    }
}
