//! Arrays split into chunks along every dimension: copies chunks to their place, and limits the sizes that a file may declare.

use packds_system::to_usize;

use crate::error::ConvertError;
use crate::ordered::{Next, ordered};

/// Maximum total size of the chunks that share the same rows, in bytes. They are in memory at the same time.
pub(super) const MAX_BAND_BYTES: u64 = 1 << 30;
/// Maximum total size of the bands being processed, in bytes.
const WINDOW_BYTES: u64 = 512 << 20;
/// Maximum plausible expansion when unpacking, slightly above deflate's limit. Other codecs exceed it only for runs of the same
/// byte.
const MAX_GROWTH: u64 = 1100;
/// Number of unpacked bytes that is accepted for any file size.
const SMALL_BYTES: u64 = 64 << 30;
/// Number of rows that is accepted for any file size. It is limited because each row takes memory.
const SMALL_ROWS: u64 = 1 << 20;

/// Whether `rows` rows of `row_bytes` bytes can come from `stored` bytes. Declared sizes must pass this check before use.
pub(super) fn is_plausible(rows: u64, row_bytes: u64, stored: u64) -> bool {
    let most = stored.saturating_mul(MAX_GROWTH);
    let most = most.saturating_add(SMALL_BYTES);
    let most_rows = stored.saturating_mul(64).saturating_add(SMALL_ROWS);
    let total = rows.checked_mul(row_bytes);
    total.is_some_and(|total| total <= most) && rows <= most_rows
}

/// Unpacks bands of `step` rows on `jobs` threads and passes them to `take` in order. `unpack` receives the first row of a band and
/// its number of rows. `bytes` is the memory that one band takes.
pub(super) fn bands<R: Send>(
    (rows, step): (u64, u64),
    bytes: u64,
    jobs: usize,
    unpack: impl Fn(u64, u64) -> Result<R, ConvertError> + Sync,
    mut take: impl FnMut(R) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let fit = to_usize(WINDOW_BYTES / bytes.max(1)).max(1);
    let jobs = jobs.max(1).min(fit);
    let mut next = 0_u64;
    ordered(
        jobs,
        (jobs * 2).min(fit),
        || (),
        |(), start: u64| unpack(start, step.min(rows - start)),
        || {
            let start = next;
            next = next.saturating_add(step);
            Ok((start < rows).then_some(start))
        },
        |band: Result<R, ConvertError>| {
            take(band?)?;
            Ok(Next::Continue)
        },
    )
}

/// The position of a chunk in a larger array.
pub(super) struct Placing<'a> {
    /// The chunk's length in each dimension.
    pub(super) chunk: &'a [u64],
    /// The array's length in each dimension.
    pub(super) shape: &'a [u64],
    /// The position of the chunk's first element in the array.
    pub(super) at: &'a [u64],
    pub(super) element_bytes: u64,
}

impl Placing<'_> {
    /// Copies the part of a chunk that lies within the array. `None` if there is no such part, or if `bytes` or `out`
    /// is too short.
    pub(super) fn copy(&self, bytes: &[u8], out: &mut [u8]) -> Option<()> {
        let n = self.chunk.len();
        let mut copied = Vec::with_capacity(n);
        for ((at, chunk), shape) in self.at.iter().zip(self.chunk).zip(self.shape) {
            copied.push(shape.checked_sub(*at).filter(|n| *n > 0)?.min(*chunk));
        }
        let run = copied.last()?.checked_mul(self.element_bytes)?;
        let mut place = vec![0_u64; n];
        loop {
            let (mut from, mut to) = (0_u64, 0_u64);
            for dim in 0..n {
                let place = *place.get(dim)?;
                from = from.checked_mul(*self.chunk.get(dim)?)?.checked_add(place)?;
                to = to.checked_mul(*self.shape.get(dim)?)?;
                to = to.checked_add(place)?.checked_add(*self.at.get(dim)?)?;
            }
            let slice = |at: u64| {
                let start = usize::try_from(at.checked_mul(self.element_bytes)?).ok()?;
                Some(start..start.checked_add(usize::try_from(run).ok()?)?)
            };
            let source = bytes.get(slice(from)?)?;
            out.get_mut(slice(to)?)?.copy_from_slice(source);
            // Go to the next run: count up through all dimensions but the last.
            let mut dim = n.checked_sub(1)?;
            loop {
                if dim == 0 {
                    return Some(());
                }
                dim -= 1;
                let place = place.get_mut(dim)?;
                *place += 1;
                if *place < *copied.get(dim)? {
                    break;
                }
                *place = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_at_the_edge_fills_only_what_lies_in_the_array() {
        let placing = Placing { chunk: &[2, 2], shape: &[3, 3], at: &[2, 2], element_bytes: 1 };
        let mut out = [0; 9];
        assert_eq!(placing.copy(&[1, 2, 3, 4], &mut out), Some(()));
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(placing.copy(&[], &mut out), None);
    }

    #[test]
    fn sizes_that_nothing_stands_behind_are_not_believed() {
        assert!(is_plausible(60_000, 784, 10_000_000));
        assert!(!is_plausible(1 << 60, 1, 1000));
        assert!(!is_plausible(1 << 40, 1 << 40, 1 << 40));
        assert!(!is_plausible(1 << 30, 1, 1000));
    }
}
