//! Checks whether a pack is in the page cache.

use packds_reader::Pack;

use crate::BenchError;
pub(crate) use crate::formats::cache::{drop_all, pack_files, warm};
use crate::measure::to_f64;

/// Maximum share of a pack that may be missing from the page cache (warm) or left in it (cold). It is not 0, because
/// opening a pack reads its tables and columns.
const SLACK: f64 = 0.02;

/// The share of the pack in the page cache, from 0 to 1.
pub(crate) fn resident(pack: &Pack) -> Result<f64, BenchError> {
    let unknown = || BenchError::wrong("state of the page cache", "a system that reports it", "none");
    let bytes = pack.resident_bytes().ok_or_else(unknown)?;
    Ok(to_f64(bytes) / to_f64(pack.file_len().max(1)))
}

/// Fails if the page cache is not in the requested state.
pub(crate) fn check(resident: f64, cold: bool) -> Result<(), BenchError> {
    let (good, expected) = if cold {
        (resident <= SLACK, "a pack that is not in the page cache")
    } else {
        (resident >= 1.0 - SLACK, "a pack that is in the page cache")
    };
    if good {
        return Ok(());
    }
    let found = format!("{:.1} % of it cached", resident * 100.0);
    Err(BenchError::wrong("state of the page cache", expected, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_called_cold_or_warm_that_is_not() {
        assert!(check(0.0, true).is_ok() && check(0.01, true).is_ok());
        assert!(check(1.0, false).is_ok() && check(0.99, false).is_ok());
        let error = check(0.5, true).unwrap_err().to_string();
        assert_eq!(
            error,
            "state of the page cache: expected a pack that is not in the page cache, found 50.0 % of it cached"
        );
        assert!(check(0.5, false).is_err());
    }
}
