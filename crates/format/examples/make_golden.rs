//! Writes the missing golden packs to a folder, and adds a line for each to its `list.txt`.
//!
//! `cargo run -p packds-format --example make_golden -- fixtures/golden/v1`. Golden files are never overwritten: the
//! program fails if one exists. With `--missing`, it skips existing files.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

#[path = "../tests/cases.rs"]
mod cases;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: make_golden FOLDER [--missing]")?;
    let only_missing = arguments.next().as_deref() == Some("--missing");
    let folder = Path::new(&folder);
    let mut list = OpenOptions::new().create(true).append(true).open(folder.join("list.txt"))?;
    for case in cases::cases()? {
        let path = folder.join(format!("{}.pack", case.name));
        if only_missing && path.exists() {
            continue;
        }
        let bytes = case.to_bytes()?;
        // Fails if the file exists: golden files are never overwritten.
        File::create_new(&path).map_err(|e| format!("{}: {e}", path.display()))?.write_all(&bytes)?;
        let (name, len, crc) = (case.name, bytes.len(), packds_format::crc32c(&bytes));
        let zstd = zstd::zstd_safe::version_string();
        writeln!(list, "{name} {len} {crc:08x} {zstd}")?;
    }
    Ok(())
}
