//! Finds samples that may be in several packs, by their paths.

use packds_format::hash_bytes;

use super::Taken;
use crate::error::ConvertError;

/// Number of samples up to which paths are compared. More would take long compared with copying one pack.
const MOST: u64 = 20_000_000;

/// A warning if samples of different packs have the same path, or if there are too many samples to compare. Needs 8 bytes
/// of memory for each path.
pub(crate) fn equal_paths<D: AsRef<[u8]>>(packs: &[Taken<'_, D>]) -> Result<Option<String>, ConvertError> {
    if let Some(told) = too_many(packs.iter().map(|taken| taken.pack.n_samples()).sum(), MOST) {
        return Ok(Some(told));
    }
    let hash = |path: &[u8]| hash_bytes(0, path);
    let mut all: Vec<u64> = Vec::new();
    for taken in packs {
        let mut own = Vec::new();
        each(taken, |path| own.push(hash(path)))?;
        own.sort_unstable();
        own.dedup();
        all.append(&mut own);
    }
    all.sort_unstable();
    let mut repeated: Vec<u64> =
        all.chunk_by(u64::eq).filter(|same| same.len() > 1).filter_map(<[u64]>::first).copied().collect();
    drop(all);
    repeated.shrink_to_fit();
    let n = repeated.len();
    let mut first = None;
    for taken in packs.iter().filter(|_| n > 0) {
        each(taken, |path| {
            if first.is_none() && repeated.binary_search(&hash(path)).is_ok() {
                first = Some(path.to_vec());
            }
        })?;
        if first.is_some() {
            break;
        }
    }
    Ok(first.map(|path| {
        let path = String::from_utf8_lossy(&path).into_owned();
        format!("equal paths in several packs: {n}, such as '{path}'; samples may be there twice")
    }))
}

fn too_many(n_samples: u64, most: u64) -> Option<String> {
    let told = || {
        format!(
            "the paths of the {n_samples} samples were not compared, because there are more than {most}; samples may be there twice"
        )
    };
    (n_samples > most).then(told)
}

/// Calls `each` with the paths of a pack that are not empty.
fn each<D: AsRef<[u8]>>(taken: &Taken<'_, D>, mut each: impl FnMut(&[u8])) -> Result<(), ConvertError> {
    let read = taken.pack.for_each_path(|_, path| {
        if !path.is_empty() {
            each(path);
        }
        Ok::<_, packds_format::FormatError>(())
    });
    read.map_err(|error| taken.located(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_if_paths_are_not_compared() {
        assert_eq!(too_many(5, 5), None);
        assert!(too_many(6, 5).is_some_and(|told| told.contains("the 6 samples were not compared")));
    }
}
