//! Compares the items of pairs of samples.

use std::collections::{BTreeMap, HashMap};

use packds_format::{ColumnView, FormatError, Role, Scalar};
use packds_system::to_u64;
use serde_json::{Value, json};

use super::classes::Ids;
use super::fields::{Common, Pair};
use super::matches::{are_equal, hash};
use crate::edit::Taken;
use crate::error::ConvertError;
use crate::label_set;

/// Numbers of an array that are shown.
const SMALL: usize = 16;
/// Bytes of a text that are shown.
const SHORT: usize = 200;

/// An item that differs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ItemChange {
    /// The field.
    pub field: String,
    /// The old and the new value: a number, a class, a text, or a list of these. `None` for larger items.
    pub values: Option<[Value; 2]>,
    /// The size of the old and of the new item in bytes.
    pub bytes: [u64; 2],
}

impl ItemChange {
    pub(super) fn json(&self) -> Value {
        let [old, new] = self.values.clone().unwrap_or_default();
        json!({"field": self.field, "old": old, "new": new, "old_bytes": self.bytes[0], "new_bytes": self.bytes[1]})
    }
}

/// What a comparison needs of an item in the body.
#[derive(PartialEq)]
struct Seen {
    hash: [u8; 16],
    bytes: u64,
    /// A short text.
    text: Option<String>,
}

/// Compares pairs of samples.
pub(super) struct Pairs<'a, D> {
    packs: &'a [Taken<'a, D>; 2],
    common: &'a Common,
    ids: &'a HashMap<String, Ids>,
    columns: Vec<[ColumnView<'a>; 2]>,
    checksums: Option<[ColumnView<'a>; 2]>,
    /// Whether the bodies are compared. They are equal if samples are matched by their contents.
    with_bodies: bool,
    /// The last two chunks that were compared, and whether they are equal.
    last: Option<(u64, u64, bool)>,
}

/// A pair of samples, and the items that differ.
type Differing = (u64, u64, Vec<ItemChange>);

impl<'a, D: AsRef<[u8]>> Pairs<'a, D> {
    pub(super) fn new(
        packs: &'a [Taken<'a, D>; 2],
        common: &'a Common,
        ids: &'a HashMap<String, Ids>,
        with_bodies: bool,
    ) -> Result<Self, ConvertError> {
        let [one, two] = packs;
        let column = |numbers: [usize; 2]| {
            let old = one.pack.column(numbers[0]).map_err(|error| one.located(error))?;
            let new = two.pack.column(numbers[1]).map_err(|error| two.located(error))?;
            Ok::<_, ConvertError>([old, new])
        };
        let columns = common.columns.iter().map(|pair| column(pair.numbers)).collect::<Result<_, _>>()?;
        let checksums = common.checksums.filter(|_| common.same_items);
        let checksums = checksums.map(|(old, new)| column([old, new])).transpose()?;
        Ok(Self { packs, common, ids, columns, checksums, with_bodies, last: None })
    }

    /// The pairs whose items differ, in the given order.
    pub(super) fn compare(&mut self, pairs: &[(u64, u64)]) -> Result<Vec<Differing>, ConvertError> {
        let mut found: BTreeMap<usize, Vec<ItemChange>> = BTreeMap::new();
        for (pair, views) in self.common.columns.iter().zip(&self.columns) {
            for (place, (before, after)) in pairs.iter().enumerate() {
                let items = [views[0].get(*before), views[1].get(*after)].map(Option::unwrap_or_default);
                if let Some(change) = self.column_change(pair, items) {
                    found.entry(place).or_default().push(change);
                }
            }
        }
        if self.with_bodies {
            self.compare_bodies(pairs, &mut found)?;
        }
        let differing = found.into_iter().filter_map(|(place, items)| {
            let (before, after) = pairs.get(place)?;
            Some((*before, *after, items))
        });
        Ok(differing.collect())
    }

    /// How the items of a column differ.
    fn column_change(&self, pair: &Pair, items: [&[u8]; 2]) -> Option<ItemChange> {
        let field = &pair.field;
        let ids = self.ids.get(&field.name);
        // An id may stand for another class, and a set of labels may have room for more classes.
        if pair.is_alike && items[0] == items[1] && !ids.is_some_and(Ids::differ) {
            return None;
        }
        let n_bytes = items.map(|item| to_u64(item.len()));
        let change = |values| Some(ItemChange { field: field.name.clone(), values, bytes: n_bytes });
        if let Some(ids) = ids {
            let labels = [0, 1].map(|pack| labels(pair, pack, items[pack]));
            let moved: Vec<i64> = labels[0].iter().map(|id| ids.new_id(*id)).collect();
            let (mut old, mut new) = (moved, labels[1].clone());
            old.sort_unstable();
            new.sort_unstable();
            if old == new {
                return None;
            }
            let shown = |pack: usize| -> Value {
                let mut all = labels[pack].iter().map(|id| ids.shown(pack, *id));
                if field.role == Some(Role::Label) { all.next().unwrap_or_default() } else { all.collect() }
            };
            return change(Some([shown(0), shown(1)]));
        }
        let small = field.shape.iter().product::<u64>() <= to_u64(SMALL);
        let shown = |item: &[u8]| -> Value {
            let mut all = Scalar::each(field.dtype, item).map(number);
            if field.shape.is_empty() { all.next().unwrap_or_default() } else { all.collect() }
        };
        change(small.then(|| items.map(shown)))
    }

    /// Compares bodies by the checksums of the samples, or else by their bytes.
    fn compare_bodies(
        &mut self,
        pairs: &[(u64, u64)],
        found: &mut BTreeMap<usize, Vec<ItemChange>>,
    ) -> Result<(), ConvertError> {
        let mut suspects = Vec::new();
        for (place, (before, after)) in pairs.iter().enumerate() {
            let is_equal = match &self.checksums {
                Some([old, new]) => old.u32(*before) == new.u32(*after),
                None => self.in_equal_chunks(*before, *after)?,
            };
            if !is_equal {
                suspects.push((place, *before, *after));
            }
        }
        if suspects.is_empty() {
            return Ok(());
        }
        let [one, two] = self.packs;
        for pair in &self.common.body {
            let new: Vec<u64> = suspects.iter().map(|(_, _, after)| *after).collect();
            let new = seen(two, pair, 1, &new)?;
            let mut by_old = suspects.clone();
            by_old.sort_unstable_by_key(|(_, before, _)| *before);
            let old: Vec<u64> = by_old.iter().map(|(_, before, _)| *before).collect();
            let old = seen(one, pair, 0, &old)?;
            let old: HashMap<usize, Seen> = by_old.iter().map(|(place, ..)| *place).zip(old).collect();
            for ((place, ..), new) in suspects.iter().zip(new) {
                let Some(old) = old.get(place).filter(|old| **old != new) else { continue };
                let values = old.text.clone().zip(new.text.clone()).map(|(old, new)| [old.into(), new.into()]);
                let bytes = [old.bytes, new.bytes];
                let change = ItemChange { field: pair.field.name.clone(), values, bytes };
                found.entry(*place).or_default().push(change);
            }
        }
        Ok(())
    }

    /// Whether the samples have the same place in chunks with equal bytes.
    fn in_equal_chunks(&mut self, before: u64, after: u64) -> Result<bool, ConvertError> {
        let [one, two] = self.packs;
        let ((old, place), (new, other)) = (one.pack.geometry().locate(before), two.pack.geometry().locate(after));
        if !self.common.same_bytes || place != other {
            return Ok(false);
        }
        match self.last {
            Some((last_old, last_new, is_equal)) if (last_old, last_new) == (old, new) => Ok(is_equal),
            _ => {
                let is_equal = are_equal(self.packs, old, new)?;
                self.last = Some((old, new, is_equal));
                Ok(is_equal)
            }
        }
    }
}

/// The class ids of an item. None if they are negative.
fn labels(pair: &Pair, pack: usize, item: &[u8]) -> Vec<i64> {
    let dtype = pair.dtypes[pack];
    match pair.field.role {
        Some(Role::Labels) => label_set::ids(item).collect(),
        _ => Scalar::of(dtype, item).and_then(Scalar::integer).into_iter().collect(),
    }
}

/// Reads the items of a field in the body.
fn seen<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    pair: &Pair,
    pack: usize,
    samples: &[u64],
) -> Result<Vec<Seen>, ConvertError> {
    let mut all = Vec::new();
    let read = taken.pack.for_each_item_in(pair.numbers[pack], samples.iter().copied(), |_, item| {
        let is_short = pair.field.kind.is_text() && item.len() <= SHORT;
        let text = is_short.then(|| String::from_utf8_lossy(item).into_owned());
        all.push(Seen { hash: hash(item), bytes: to_u64(item.len()), text });
        Ok::<_, FormatError>(())
    });
    read.map_err(|error| taken.located(error)).map(|()| all)
}

/// A number with its shortest digits. JSON has no infinities and no NaN, so these are texts.
fn number(number: Scalar) -> Value {
    let text = number.to_string();
    serde_json::from_str(&text).unwrap_or_else(|_| text.into())
}
