//! Opens, verifies and loads packs. This crate does the I/O that `packds-format` leaves out.
//!
//! # A tour
//!
//! [`open`] maps a pack. It validates the header, the schema and the tables. This takes milliseconds for a pack of any
//! size. [`open_bytes`] opens a pack in memory, such as this one with ten images:
//!
//! ```
//! use packds_format::{BlockBuilder, DType, Field, FooterParts, PackOptions, PackWriter, Schema};
//! use packds_reader::loader::Loader;
//! use packds_reader::plan::Order;
//! use packds_reader::{VerifyOptions, verify};
//!
//! let fields = vec![Field::tensor("image", DType::U8, &[2, 2, 3]), Field::column("label", DType::I32, &[])];
//! let mut writer = PackWriter::new(Vec::new(), PackOptions::new(Schema::new(fields)?, 4))?;
//! let mut block = BlockBuilder::new(writer.schema());
//! for label in 0..10_u8 {
//!     block.tensor_mut(0)?.fill(label);
//!     block.set_column(1, &i32::from(label).to_le_bytes())?;
//!     block.finish_sample()?;
//!     if writer.block_room(block.n_samples()) == 0 {
//!         writer.append(block.finish()?)?;
//!         block = BlockBuilder::new(writer.schema());
//!     }
//! }
//! writer.append(block.finish()?)?;
//! let (bytes, _) = writer.finish(FooterParts::default())?;
//! let pack = packds_reader::open_bytes("ten.pack", bytes)?;
//!
//! // Read a single sample.
//! assert_eq!(pack.n_samples(), 10);
//! assert_eq!(pack.sample(7)?.field("label")?.elements::<i32>()?, [7]);
//!
//! // List all damage, if there is any.
//! assert!(verify(&pack, VerifyOptions::default(), &|_, _| {})?.is_ok());
//!
//! // Load shuffled batches ahead of time, on all cores.
//! let loader = Loader::builder(pack).batch(5).order(Order::Random).seed(42).build()?;
//! let mut epoch = loader.epoch(0)?;
//! let first = epoch.next().ok_or("no batch")??;
//! assert_eq!(first.elements::<u8>("image")?.len(), 5 * 12);
//! let state = epoch.state();
//! drop((first, epoch));
//!
//! // Later, continue with the rest of the epoch.
//! assert_eq!(loader.epoch_at(&state)?.count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! - [`loader`] makes batches in an order that [`plan`] computes. It can also augment images ([`augment`]).
//! - [`Pack::sample`] and [`Pack::chunk`] read single samples and chunks in place. [`Pack::select`] finds samples by a
//!   condition. [`verify()`] reports all damage.
//! - [`device`] is for programs with their own destination of batches.
//!
//! The guide is docs/reference/loading.md.

#[doc(hidden)]
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
mod error;
mod fetch;
mod files;
mod human;
pub mod loader;
mod mmap;
mod open;
mod pack;
pub mod plan;
mod sample;
mod select;
mod set;
mod setters;
mod sigbus;
mod storage;
mod sync;
mod verify;
mod view;

pub use error::ReadError;
pub use fetch::{Access, AccessReport, Checksums, FetchStats};
pub use open::{open, open_bytes, open_with};
pub use pack::Pack;
pub use sample::{Chunk, Item, Sample};
pub use verify::{BadChunk, BadSample, VerifyOptions, VerifyReport, verify};
pub use view::{ArrayView, Element};

// Internals for the other crates of this workspace. They may change in any version.
#[doc(hidden)]
pub use self::{
    decode::{ItemDecoder, ItemPixels},
    set::latest_of_set,
    storage::PackBytes,
};
