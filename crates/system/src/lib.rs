//! What several crates ask of the operating system, and what may then go wrong: opening files, and starting threads.
//!
//! Not for reading files: who opens one knows what is in it.
#![forbid(unsafe_code)]

mod parallel;
mod regular;

pub use parallel::in_parallel;
pub use regular::{create_regular, is_regular, open_regular, read_regular};
