//! Controls the page cache, and proves that a pack is or is not in it.

use packds_system::to_u64;
use std::os::unix::fs::FileExt;

use packds_reader::Pack;
use rustix::fs::{Advice, fadvise, fdatasync};

use crate::BenchError;

/// Bytes per read.
const PIECE: usize = 1 << 20;
/// Maximum share of a pack that may be missing from (warm) or left in (cold) the page cache: opening the pack
/// reads its header, tables and columns.
const SLACK: f64 = 0.02;

/// Reads the whole file into the page cache.
pub(crate) fn read_into(pack: &Pack) -> Result<(), BenchError> {
    let failed = |error| BenchError::io(pack.file_path())(error);
    let file = pack.file().map_err(failed)?;
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let n = file.read_at(&mut buffer, offset).map_err(failed)?;
        if n == 0 {
            return Ok(());
        }
        offset += to_u64(n);
    }
}

/// Asks the kernel to drop the file's pages.
pub(crate) fn drop_from(pack: &Pack) -> Result<(), BenchError> {
    let failed = |error| BenchError::io(pack.file_path())(error);
    let file = pack.file().map_err(failed)?;
    // Dirty pages cannot be dropped.
    let kept = fdatasync(file).and_then(|()| fadvise(file, 0, None, Advice::DontNeed));
    kept.map_err(|error| failed(error.into()))
}

/// The share of the file in the page cache, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share has few digits")]
pub(crate) fn resident(pack: &Pack) -> Result<f64, BenchError> {
    let bytes = pack.resident_bytes().ok_or(BenchError::WrongResult {
        what: "state of the page cache",
        expected: "a system that reports it".to_owned(),
        found: "none".to_owned(),
    })?;
    Ok(bytes as f64 / pack.file_len().max(1) as f64)
}

/// Fails if the page cache is not in the requested state.
pub(crate) fn check(resident: f64, cold: bool) -> Result<(), BenchError> {
    let (good, expected) = if cold {
        (resident <= SLACK, "a pack that is not in the page cache")
    } else {
        (resident >= 1.0 - SLACK, "a pack that fits the page cache")
    };
    if good {
        return Ok(());
    }
    Err(BenchError::WrongResult {
        what: "state of the page cache",
        expected: expected.to_owned(),
        found: format!("{:.1} % of it cached", resident * 100.0),
    })
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
