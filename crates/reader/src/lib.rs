//! Opening, verifying and loading packs: what needs a file, on top of `packds-format`, which knows none.
//!
//! [`open`] maps a pack and checks everything but its chunks and columns, in milliseconds whatever its size. [`open_bytes`]
//! opens one that is in memory. [`verify`] reads it whole and names the damage. A [`Loader`](loader::Loader) makes batches of
//! it, in an order that [`plan`] computes, [augmented](augment) where that is wanted. [`Pack::sample`] and [`Pack::chunk`] show
//! single ones. docs/reference/loading.md is the guide. The [`doctor`] says why training waits.
//!
//! ```no_run
//! use packds_reader::loader::{LoadError, Loader};
//!
//! let pack = packds_reader::open("train.pack")?;
//! println!("{} samples in {} chunks", pack.n_samples(), pack.n_chunks());
//! let report = packds_reader::verify(&pack, packds_reader::VerifyOptions::default(), &|_, _| {})?;
//! assert!(report.is_ok());
//! let loader = Loader::builder(pack).batch(256).seed(42).build()?;
//! for batch in loader.epoch(0)? {
//!     println!("{:?}", batch?.elements::<i32>("label")?);
//! }
//! # Ok::<(), LoadError>(())
//! ```

pub mod arena;
#[cfg(test)]
#[path = "arena/tests.rs"]
mod arena_tests;
pub mod augment;
mod available;
mod copy;
mod dataset;
mod decode;
pub mod device;
pub mod doctor;
mod error;
mod fetch;
mod human;
pub mod loader;
mod mmap;
mod open;
mod pack;
pub mod plan;
mod sample;
mod sigbus;
mod storage;
mod sync;
mod verify;
mod view;

pub use decode::{ItemDecoder, ItemPixels};
pub use error::ReadError;
pub use fetch::{Access, AccessReport, Checksums, FetchStats};
pub use open::{open, open_bytes, open_with};
pub use pack::Pack;
pub use sample::{Chunk, Item, Sample};
#[doc(hidden)]
pub use storage::PackBytes;
pub use verify::{BadChunk, BadSample, VerifyOptions, VerifyReport, verify};
pub use view::{ArrayView, Element, WrongType};

/// The guide's examples, so that they compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/loading.md")]
struct LoadingGuide;
