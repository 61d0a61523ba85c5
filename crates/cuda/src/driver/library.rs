//! NVIDIA libraries that are loaded on first use.

use std::error::Error;

use libloading::Library;

/// Declares the functions used from a library, and a function `functions` that loads the library once. The declared
/// types must match the library's header.
macro_rules! functions {
    ($library:literal in $names:expr, or install $remedy:literal; $($symbol:literal as $field:ident: $kind:ty;)+) => {
        /// The functions that are used from the library.
        struct Functions {
            $($field: $kind,)+
            /// The library that contains them.
            _library: libloading::Library,
        }

        /// Loads the library. It stays loaded.
        fn functions() -> Result<&'static Functions, CudaError> {
            static LOADED: std::sync::OnceLock<Result<Functions, String>> = std::sync::OnceLock::new();
            let load = || {
                let library = $crate::driver::library::open(&$names).map_err(|why| {
                    format!("{} cannot be loaded ({why}): install {}", $library, $remedy)
                })?;
                Ok(Functions {
                    // SAFETY: the types match the library's header.
                    $($field: unsafe { $crate::driver::library::symbol(&library, $library, $symbol)? },)+
                    _library: library,
                })
            };
            LOADED.get_or_init(load).as_ref().map_err(|why: &String| CudaError::Use(why.clone()))
        }
    };
}

pub(super) use functions;

/// Loads the first library that is found under one of these names. If there is none, returns the error for the first
/// name.
pub(super) fn open(names: &[&str]) -> Result<Library, String> {
    let mut why = None;
    for name in names {
        // SAFETY: NVIDIA's libraries may be initialized at any time.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(library),
            Err(error) => why = why.or(Some(said(&error))),
        }
    }
    Err(why.unwrap_or_default())
}

/// Looks up a function in a library. `whose` is the name of the library, for messages.
///
/// # Safety
/// The function has the type `F`.
pub(super) unsafe fn symbol<F: Copy>(library: &Library, whose: &str, name: &str) -> Result<F, String> {
    // SAFETY: guaranteed by the caller.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    let found = found.map_err(|error| format!("{whose} lacks {name}: {}", said(&error)))?;
    Ok(*found)
}

/// The dynamic linker's message, taken from the source of the error.
pub(super) fn said(error: &libloading::Error) -> String {
    let behind = error.source().map(ToString::to_string);
    behind.unwrap_or_else(|| error.to_string())
}
