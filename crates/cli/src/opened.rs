//! Opening packs for inspection, with a check at the end that the file did not change.

use std::path::{Path, PathBuf};

use packds_reader::Pack;

use crate::console::Console;
use crate::escape::escape_path;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal_line::clear_line;

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

/// Runs `work` on every pack. The exit code is that of the worst pack. With several packs, the JSON document is a list.
/// A pack that fails does not stop the others. `heading` says whether each pack needs a line with its name.
pub(crate) fn each_pack(
    paths: &[PathBuf],
    heading: bool,
    console: &mut Console,
    mut work: impl FnMut(&Path, &mut Console) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    if let [path] = paths {
        return work(path, console);
    }
    // Between two packs, no progress line catches the signal.
    let _catching = interrupt::catch();
    let mut worst = Exit::Done;
    for (i, path) in paths.iter().enumerate() {
        match (console.json, heading) {
            (true, _) => console.out.write_all(if i == 0 { b"[" } else { b"," })?,
            (false, true) => writeln!(console.out, "{}==> {} <==", if i == 0 { "" } else { "\n" }, escape_path(path))?,
            (false, false) => {}
        }
        worst = worst.max(match work(path, console) {
            Err(failure) if failure.ends_all() => return Err(failure),
            Err(failure) => failure.report(console),
            Ok(exit) => exit,
        });
        // The signal may arrive at the end of a pack, when `work` no longer checks for it.
        if i + 1 < paths.len() && interrupt::caught().is_some() {
            if console.err_is_terminal {
                // Remove the terminal's `^C`.
                clear_line();
            }
            return Err(Failure::interrupted("interrupted"));
        }
    }
    if console.json {
        console.out.write_all(b"]\n")?;
    }
    Ok(worst)
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
            assert_eq!(pack.whole_file().last(), Some(&0));
            then()
        })
    }

    #[test]
    fn a_pack_cut_short_meanwhile_is_the_failure() {
        for failure in
            [cut_short(|| Ok(())).unwrap_err(), cut_short(|| Err::<(), _>(Failure::bad_data("damaged"))).unwrap_err()]
        {
            let message = format!("{failure:?}");
            assert!(message.contains("and is now 4096"), "{message}");
        }
    }
}
