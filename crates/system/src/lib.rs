//! What several crates ask of the operating system, and what may then go wrong: opening files, starting threads, and sizes. And
//! the words of users: how messages name options, and the names of values.
//!
//! Not for reading files: who opens one knows what is in it.
#![forbid(unsafe_code)]

mod named;
mod option;
mod parallel;
mod regular;
mod size;

pub use named::{BadValue, Named};
pub use option::{Entered, FrontEnd, On, Opt, With, Words};
pub use parallel::{in_parallel, lock, wait};
pub use regular::{create_regular, is_regular, open_regular, read_regular};
pub use size::{nanos, share, to_u64, to_usize};
