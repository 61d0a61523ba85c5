//! NVIDIA libraries that are loaded on first use.

use std::error::Error;

use libloading::Library;

/// Loads the first available library of these names. The error is that of the first name.
pub(super) fn open(names: &[&str]) -> Result<Library, String> {
    let mut why = None;
    for name in names {
        // SAFETY: the library's initialisers are NVIDIA's, which vouches for them.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(library),
            Err(error) => why = why.or(Some(said(&error))),
        }
    }
    Err(why.unwrap_or_default())
}

/// Looks up a function of a library. `whose` is the name of the library, for messages.
///
/// # Safety
/// It is of the type `F`.
pub(super) unsafe fn symbol<F: Copy>(
    library: &Library,
    whose: &str,
    name: &str,
) -> Result<F, String> {
    // SAFETY: the caller's.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    let found = found.map_err(|error| format!("{whose} lacks {name}: {}", said(&error)))?;
    Ok(*found)
}

/// The message of the dynamic linker, which is the source of the error.
pub(super) fn said(error: &libloading::Error) -> String {
    let behind = error.source().map(ToString::to_string);
    behind.unwrap_or_else(|| error.to_string())
}
