//! Helpers that several crates share: they open files, start threads, and convert sizes. The crate also defines how
//! messages show options, their values, and counts.
//!
//! The crate does not parse file formats. The crates that open the files do.
#![forbid(unsafe_code)]

mod counted;
mod named;
mod option;
mod parallel;
mod regular;
mod size;
mod unfinished;

pub use counted::counted;
pub use named::{BadValue, Named};
pub use option::{Entered, FrontEnd, On, Opt, With, Words};
pub use parallel::{in_parallel, lock, wait};
pub use regular::{create_regular, is_regular, open_regular, read_regular};
pub use size::{nanos, parse_bytes, share, to_u64, to_usize};
pub use unfinished::{Unfinished, unfinished};
