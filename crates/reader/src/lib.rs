//! Opening, verifying and loading packs. This crate does the I/O that `packds-format` leaves out.
//!
//! [`open`] maps a pack. It checks everything except the chunks and columns, in milliseconds for a pack of any size. [`open_bytes`]
//! opens a pack in memory. [`verify`] reads the whole pack and reports all damage. A [`Loader`](loader::Loader) makes batches in
//! an order that [`plan`] computes, optionally [augmented](augment). [`Pack::sample`] and [`Pack::chunk`] read single samples
//! and chunks. docs/reference/loading.md is the guide. The [`doctor`] finds the training bottleneck.
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

/// Compiles the examples in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/loading.md")]
struct LoadingGuide;
