//! Divides the samples of a pack among several new packs.
//!
//! The side of a sample depends only on the seed and on what identifies the sample: its path, or else its checksum. A
//! sample stays on its side when samples are added or left out.

use std::collections::BTreeMap;
use std::path::Path;

use packds_format::{Field, FieldKind, Pack, Role, Scalar, hash_bytes};
use packds_system::{BadValue, counted};

use super::values::{field, items};
use super::{KnownPaths, Taken};
use crate::error::ConvertError;
use crate::opt::{BY, FOLDS, GROUP_BY, NAMES, RATIO, SEED, STRATIFY};
use crate::safe_name::safe_names;

/// How a pack is divided. Exactly one of `ratio`, `folds` and `by` must be set.
#[derive(Debug, Clone, Default)]
pub struct SplitOptions {
    /// The shares of the sides.
    pub ratio: Option<Share>,
    /// The number of sides of equal share.
    pub folds: Option<u32>,
    /// The field whose values are the sides.
    pub by: Option<String>,
    /// The names of the sides. Empty for the default names.
    pub names: Vec<String>,
    /// The field whose values stay together.
    pub group_by: Option<String>,
    /// The field whose values all sides have in the same proportions.
    pub stratify: Option<String>,
    /// The seed. `None` means 0.
    pub seed: Option<u64>,
}

/// The shares of several sides, such as `0.9,0.1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Share(Vec<f64>);

impl std::str::FromStr for Share {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let wrong = || BadValue::new("two or more shares that add up to 1, such as 0.9,0.1", text);
        let shares = text.split(',').map(|share| share.trim().parse::<f64>());
        let shares = shares.collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
        let is_whole = (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9;
        let is_valid = is_whole && shares.len() > 1 && shares.iter().all(|share| *share > 0.0);
        if is_valid { Ok(Self(shares)) } else { Err(wrong()) }
    }
}

/// One of the new packs of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Its name, which can be part of a file name.
    pub name: String,
    /// Its samples, in file order.
    pub samples: Vec<u64>,
}

/// Maximum number of sides, because each becomes a file.
const MAX_SIDES: usize = 1000;

/// Divides the samples of `pack`. `path` is the path of the pack, for messages.
///
/// # Errors
/// [`ConvertError::Options`] if the options contradict each other or name an unknown field, or if a side gets no
/// samples. An error in the bytes of the pack.
pub fn sides<D: AsRef<[u8]>>(pack: &Pack<D>, path: &Path, options: &SplitOptions) -> Result<Vec<Side>, ConvertError> {
    let taken = Taken { pack, path, samples: None };
    let chosen = [(RATIO, options.ratio.is_some()), (FOLDS, options.folds.is_some()), (BY, options.by.is_some())];
    if chosen.iter().filter(|(_, is_set)| *is_set).count() != 1 {
        return Err(ConvertError::options(
            format!("expected one of {RATIO}, {FOLDS} and {BY}"),
            format!("for example {} for a training and a validation set", RATIO.with("0.9,0.1")),
        ));
    }
    if let Some(by) = &options.by {
        return by_value(&taken, by, options);
    }
    let shares = match (&options.ratio, options.folds) {
        (Some(Share(shares)), _) => shares.clone(),
        (None, n) => vec![1.0 / f64::from(n.unwrap_or(1)); usize::try_from(n.unwrap_or(1)).unwrap_or(1)],
    };
    let names = names(shares.len(), options)?;
    let of_samples = match (&options.stratify, &options.group_by) {
        (Some(_), Some(_)) => {
            return Err(ConvertError::options(
                format!("{STRATIFY} and {GROUP_BY} cannot be combined"),
                "groups that stay together cannot be divided in fixed proportions",
            ));
        }
        (Some(field), None) => stratified(&taken, field, &shares, options.seed.unwrap_or(0))?,
        (None, group) => {
            let keys = keys(&taken, group.as_deref(), options.seed.unwrap_or(0))?;
            keys.into_iter().map(|key| side_of(key, &shares)).collect()
        }
    };
    let mut sides: Vec<Side> = names.into_iter().map(|name| Side { name, samples: Vec::new() }).collect();
    for (sample, side) in (0..).zip(of_samples) {
        if let Some(side) = sides.get_mut(side) {
            side.samples.push(sample);
        }
    }
    refuse_empty(&taken, sides)
}

/// The default names of `n` sides, or the given ones.
fn names(n: usize, options: &SplitOptions) -> Result<Vec<String>, ConvertError> {
    if options.names.is_empty() {
        return Ok(match (options.ratio.is_some(), n) {
            (true, 2) => vec!["train".to_owned(), "val".to_owned()],
            (true, 3) => vec!["train".to_owned(), "val".to_owned(), "test".to_owned()],
            (true, _) => (0..n).map(|side| format!("part{side}")).collect(),
            (false, _) => (0..n).map(|side| format!("fold{side}")).collect(),
        });
    }
    let safe = safe_names(options.names.iter().map(String::as_bytes));
    if options.names.len() != n || safe != options.names {
        let found = options.names.join(",");
        return Err(ConvertError::options(
            format!("{NAMES}: expected {}, each different and valid in a file name, found {found}", counted(n, "name")),
            "give one name for each side",
        ));
    }
    Ok(safe)
}

/// A sample's position between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn position(key: u64) -> f64 {
    (key >> 11) as f64 / (1_u64 << 53) as f64
}

/// The side at this position, if each side takes its share of the positions.
fn side_of(key: u64, shares: &[f64]) -> usize {
    let at = position(key);
    let mut end = 0.0;
    let side = shares.iter().position(|share| {
        end += share;
        at < end
    });
    // Rounding may leave a gap behind the last share.
    side.unwrap_or_else(|| shares.len().saturating_sub(1))
}

/// A hash of what identifies each sample, or of its group.
fn keys<D: AsRef<[u8]>>(taken: &Taken<'_, D>, group: Option<&str>, seed: u64) -> Result<Vec<u64>, ConvertError> {
    if let Some(group) = group {
        let number = field(taken, group, None)?;
        return items(taken, number, |item| hash_bytes(seed, item));
    }
    let paths = KnownPaths::of(taken)?;
    // In a merged pack, only some samples may have paths.
    if taken.pack.has_paths() && taken.each().all(|sample| !paths.path(sample).is_empty()) {
        return Ok(taken.each().map(|sample| hash_bytes(seed, paths.path(sample))).collect());
    }
    for role in [Role::SampleCrc32c, Role::SourceId] {
        if let Some((number, _)) = taken.pack.schema().by_role(role, None) {
            let mut keys = items(taken, number, |item| hash_bytes(seed, item))?;
            for (key, sample) in keys.iter_mut().zip(taken.each()) {
                if !paths.path(sample).is_empty() {
                    *key = hash_bytes(seed, paths.path(sample));
                }
            }
            return Ok(keys);
        }
    }
    Err(ConvertError::options(
        format!("{}: the samples have neither paths nor checksums that identify them", taken.path.display()),
        format!("name a field that identifies them with {}", GROUP_BY.with("FIELD")),
    ))
}

/// Divides each group of equal values exactly, in the order of the samples' keys.
fn stratified<D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    name: &str,
    shares: &[f64],
    seed: u64,
) -> Result<Vec<usize>, ConvertError> {
    let number = field(taken, name, None)?;
    let keys = keys(taken, None, seed)?;
    let mut groups: BTreeMap<Vec<u8>, Vec<(u64, usize)>> = BTreeMap::new();
    for ((place, key), value) in (0..).zip(keys).zip(items(taken, number, <[u8]>::to_vec)?) {
        groups.entry(value).or_default().push((key, place));
    }
    let n_samples = groups.values().map(Vec::len).sum();
    let mut sides = vec![0; n_samples];
    for group in groups.values_mut() {
        group.sort_unstable();
        let n = group.len();
        for (rank, (_, place)) in group.iter().enumerate() {
            if let Some(side) = sides.get_mut(*place) {
                *side = side_of_rank(rank, n, shares);
            }
        }
    }
    Ok(sides)
}

/// The side of the sample with this rank among `n`, if each side takes its share of the ranks.
#[expect(clippy::cast_precision_loss, reason = "groups have far fewer than 2^53 samples")]
fn side_of_rank(rank: usize, n: usize, shares: &[f64]) -> usize {
    let middle = (rank as f64 + 0.5) / n as f64;
    let mut end = 0.0;
    let side = shares.iter().position(|share| {
        end += share;
        middle < end
    });
    side.unwrap_or_else(|| shares.len().saturating_sub(1))
}

/// One side for each value of a field. Class ids are named by their classes.
fn by_value<D: AsRef<[u8]>>(taken: &Taken<'_, D>, by: &str, options: &SplitOptions) -> Result<Vec<Side>, ConvertError> {
    let unused = [
        (NAMES, !options.names.is_empty()),
        (GROUP_BY, options.group_by.is_some()),
        (STRATIFY, options.stratify.is_some()),
        (SEED, options.seed.is_some()),
    ];
    if let Some((opt, _)) = unused.iter().find(|(_, is_set)| *is_set) {
        let hint = format!("each value of the field is a side with the name of the value; omit {opt}");
        return Err(ConvertError::options(format!("{opt} cannot be combined with {BY}"), hint));
    }
    let number = field(taken, by, None)?;
    let mut groups: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for (sample, value) in (0..).zip(items(taken, number, <[u8]>::to_vec)?) {
        groups.entry(value).or_default().push(sample);
    }
    if groups.len() > MAX_SIDES {
        let reason = format!("`{by}` has {} different values, and each would become a pack", groups.len());
        return Err(ConvertError::options(reason, format!("choose a field with at most {MAX_SIDES} values")));
    }
    let classes = taken.pack.classes().map_err(|error| taken.located(error))?;
    let classes = classes.into_iter().find(|classes| classes.field == by).map(|classes| classes.names);
    let described = taken.pack.schema().fields().get(number);
    let names: Vec<String> = groups.keys().map(|value| value_name(value, described, classes.as_deref())).collect();
    let names = safe_names(names.iter().map(String::as_bytes));
    Ok(names.into_iter().zip(groups.into_values()).map(|(name, samples)| Side { name, samples }).collect())
}

/// A value as text.
fn value_name(value: &[u8], field: Option<&Field>, classes: Option<&[String]>) -> String {
    let number = field.filter(|field| field.kind == FieldKind::Tensor).and_then(|f| Scalar::of(f.dtype, value));
    let Some(number) = number else { return String::from_utf8_lossy(value).into_owned() };
    let id = number.integer();
    let class = id.and_then(|id| usize::try_from(id).ok()).and_then(|id| classes?.get(id));
    match (class, id) {
        (Some(class), _) => class.clone(),
        (None, Some(id)) => id.to_string(),
        (None, None) => number.nearest_f64().to_string(),
    }
}

fn refuse_empty<D: AsRef<[u8]>>(taken: &Taken<'_, D>, sides: Vec<Side>) -> Result<Vec<Side>, ConvertError> {
    match sides.iter().find(|side| side.samples.is_empty()) {
        None => Ok(sides),
        Some(side) => {
            let n = counted(taken.pack.n_samples(), "sample");
            let reason = format!("{}: '{}' gets none of the {n}", taken.path.display(), side.name);
            Err(ConvertError::options(reason, "choose larger shares or another seed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_1() {
        assert_eq!("0.9, 0.1".parse(), Ok(Share(vec![0.9, 0.1])));
        assert_eq!("0.7,0.2,0.1".parse(), Ok(Share(vec![0.7, 0.2, 0.1])));
        for wrong in ["", "1", "0.9", "0.9,0.2", "1.5,-0.5", "0,1", "nan,1", "a,b"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sides_take_their_shares_of_positions_and_ranks() {
        let shares = [0.5, 0.25, 0.25];
        let keys = (0..1000_u64).map(|n| hash_bytes(7, &n.to_le_bytes()));
        let mut n = [0; 3];
        keys.for_each(|key| n[side_of(key, &shares)] += 1);
        assert!((450..550).contains(&n[0]) && (200..300).contains(&n[1]), "{n:?}");
        assert_eq!(side_of(u64::MAX, &[0.1, 0.1]), 1);
        let ranks: Vec<usize> = (0..8).map(|rank| side_of_rank(rank, 8, &shares)).collect();
        assert_eq!(ranks, [0, 0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(side_of_rank(0, 1, &shares), 1);
    }
}
