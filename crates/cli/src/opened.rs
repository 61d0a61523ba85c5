//! Opening packs for inspection, with a check at the end that the file did not change.

use std::path::Path;

use packds_reader::Pack;

use crate::failure::Failure;

/// Opens a pack and runs `work` on it. If the file is truncated in the meantime, lost pages read as zeros. In that case
/// the truncation is returned as the error.
pub(crate) fn with_pack<T>(path: &Path, work: impl FnOnce(&Pack) -> Result<T, Failure>) -> Result<T, Failure> {
    let pack = packds_reader::open(path)?;
    let done = work(&pack);
    match pack.still_good() {
        Ok(()) => done,
        Err(error) if done.is_ok() => Err(Failure::from(error).printed()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    /// Truncates a copy of a pack while it is open, then reads past its end.
    fn cut_short<T>(then: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.pack");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/v1");
        std::fs::copy(golden.join("full_footer.pack"), &path).unwrap();
        with_pack(&path, |pack| {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(4096).unwrap();
            assert_eq!(pack.bytes_unchecked().last(), Some(&0));
            then()
        })
    }

    #[test]
    fn a_pack_cut_short_meanwhile_is_the_failure() {
        for failure in
            [cut_short(|| Ok(())).unwrap_err(), cut_short(|| Err::<(), _>(Failure::bad_data("damaged"))).unwrap_err()]
        {
            let message = format!("{failure:?}");
            assert!(message.contains("and now has 4096"), "{message}");
        }
    }
}
