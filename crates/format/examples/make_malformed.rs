//! Writes the missing malformed packs to a folder, and the error that each causes to its `errors.txt`.
//!
//! `cargo run -p packds-format --example make_malformed -- fixtures/malformed`. Existing files are kept. Review the
//! new lines of `errors.txt`, because the tests expect these errors.
#![expect(clippy::unwrap_used, dead_code, reason = "shared with the tests, which may unwrap and use more of it")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

#[path = "../tests/cases.rs"]
mod cases;
#[path = "../tests/malformed_cases.rs"]
mod malformed_cases;
#[path = "../tests/support.rs"]
mod support;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: make_malformed FOLDER")?;
    let folder = Path::new(&folder);
    let mut list = OpenOptions::new().create(true).append(true).open(folder.join("errors.txt"))?;
    for (name, bytes) in malformed_cases::malformed() {
        let path = folder.join(format!("{name}.pack"));
        if path.exists() {
            continue;
        }
        let error = malformed_cases::first_error(&bytes).ok_or_else(|| format!("{name}: no error was found"))?;
        File::create_new(&path)?.write_all(&bytes)?;
        writeln!(list, "{name}: {error:?}")?;
    }
    Ok(())
}
