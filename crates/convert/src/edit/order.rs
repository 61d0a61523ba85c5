//! Gives all samples of a pack another order.

use std::path::Path;

use packds_format::{Pack, Permutation, Scalar};
use packds_system::to_usize;

use super::values::{field, items};
use super::{KnownPaths, Taken};
use crate::error::ConvertError;
use crate::opt::{BY, SEED};

/// The new order.
#[derive(Debug, Clone, Default)]
pub struct ReorderOptions {
    /// The field by which the samples are sorted, or `path`. `None` means shuffled.
    pub by: Option<String>,
    /// The seed of a shuffled order. `None` means 0.
    pub seed: Option<u64>,
}

/// The name that stands for the paths of the samples.
const PATH: &str = "path";

/// The samples of `pack` in the new order. Samples with equal values keep their order. `path` is the path of the pack,
/// for messages.
///
/// # Errors
/// [`ConvertError::Options`] if the options contradict each other, or name an unknown field. An error in the bytes of
/// the pack.
pub fn reordered<D: AsRef<[u8]>>(
    pack: &Pack<D>,
    path: &Path,
    options: &ReorderOptions,
) -> Result<Vec<u64>, ConvertError> {
    let taken = Taken { pack, path, samples: None };
    let Some(by) = &options.by else {
        let permutation = Permutation::new(pack.n_samples(), options.seed.unwrap_or(0));
        return Ok((0..pack.n_samples()).map(|position| permutation.at(position)).collect());
    };
    if options.seed.is_some() {
        let hint = format!("a sorted order has no seed; omit {SEED}");
        return Err(ConvertError::options(format!("{SEED} cannot be combined with {BY}"), hint));
    }
    let mut samples: Vec<u64> = taken.each().collect();
    let has_field = pack.schema().index_of(by).is_ok();
    if by == PATH && !has_field && pack.has_paths() {
        let paths = KnownPaths::of(&taken)?;
        samples.sort_by(|one, two| paths.path(*one).cmp(paths.path(*two)));
        return Ok(samples);
    }
    if by == PATH && has_field && pack.has_paths() {
        let reason =
            format!("{}: `{PATH}` can mean the paths of the samples or the field of this name", path.display());
        return Err(ConvertError::options(reason, "drop the field first, or sort by another field"));
    }
    let number = field(&taken, by, pack.has_paths().then_some(PATH))?;
    let dtype = pack.schema().fields().get(number).filter(|field| !field.kind.is_text()).map(|field| field.dtype);
    let keys = items(&taken, number, |item| {
        dtype.and_then(|dtype| Scalar::of(dtype, item)).map_or_else(|| Key::Text(item.to_vec()), Key::of)
    })?;
    samples.sort_by(|one, two| keys.get(to_usize(*one)).cmp(&keys.get(to_usize(*two))));
    Ok(samples)
}

/// Sorts samples that a user listed, because a new pack keeps their order. Returns a warning if they were in another one.
///
/// # Errors
/// [`ConvertError::Options`] if a sample is listed twice.
pub fn in_file_order(samples: &mut [u64]) -> Result<Option<String>, ConvertError> {
    let is_sorted = samples.is_sorted();
    samples.sort_unstable();
    if let Some([twice, _]) = samples.windows(2).find(|pair| pair.first() == pair.last()) {
        return Err(ConvertError::options(format!("sample {twice} is listed twice"), "list each sample once"));
    }
    let told = "the listed samples are not in ascending order: the new pack has them in the order of the pack";
    Ok((!is_sorted).then(|| told.to_owned()))
}

/// A value by which samples are sorted. All values of a field have the same variant.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Text(Vec<u8>),
}

impl Key {
    fn of(value: Scalar) -> Self {
        Self::Number(match (value, value.float()) {
            (Scalar::Unsigned(value), _) => value.into(),
            (_, Some(value)) => float_rank(value).into(),
            (_, None) => value.integer().unwrap_or(0).into(),
        })
    }
}

/// An integer that sorts like the float. -0 equals 0, and values that are not numbers come last.
fn float_rank(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_samples_get_the_order_of_the_file() {
        let mut samples = [5, 3, 9];
        assert!(in_file_order(&mut samples).unwrap().unwrap().contains("not in ascending order"));
        assert_eq!(samples, [3, 5, 9]);
        assert_eq!(in_file_order(&mut samples).unwrap(), None);
        let error = in_file_order(&mut [5, 3, 3]).unwrap_err().to_string();
        assert!(error.contains("sample 3 is listed twice"), "{error}");
    }

    #[test]
    fn values_sort_as_numbers() {
        let floats = [f64::NEG_INFINITY, -2.0, -0.5, 0.0, 1e-300, 3.0, f64::INFINITY, -f64::NAN];
        let ranks = floats.map(float_rank);
        assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] != pair[1]), "{ranks:?}");
        assert_eq!(float_rank(-0.0), float_rank(0.0));
        let large = [Scalar::Unsigned(3), Scalar::Unsigned(u64::MAX - 1), Scalar::Unsigned(u64::MAX)].map(Key::of);
        assert!(large.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(Key::of(Scalar::Int(-3)) < Key::of(Scalar::Int(2)));
    }
}
