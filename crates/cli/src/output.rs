//! Files that commands make besides packs: pictures. One that is there already is only replaced if the user says so.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::failure::Failure;

/// Refuses a file that is there already, before any work is done for it.
pub(crate) fn check_new(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        return Err(exists(path));
    }
    Ok(())
}

/// Writes the whole file, or leaves none.
pub(crate) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .truncate(force)
        .create(force)
        .create_new(!force);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::write(path, &error),
    })?;
    file.write_all(bytes).map_err(|error| {
        // Half a picture is none. Where it cannot be removed either there is nothing left to do.
        let _ = std::fs::remove_file(path);
        Failure::write(path, &error)
    })
}

fn exists(path: &Path) -> Failure {
    Failure::not_run("exists already")
        .at(path)
        .hint("name another file, or give --force to replace this one")
}
