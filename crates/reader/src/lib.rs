//! Opening, mapping and verifying packs: what needs a file, on top of `packds-format`, which knows none.
//!
//! [`open`] maps a pack and checks everything but its chunks, in milliseconds whatever its size. [`verify`] reads it whole
//! and names the damage.
//!
//! ```no_run
//! let pack = packds_reader::open("train.pack")?;
//! println!("{} samples in {} chunks", pack.n_samples(), pack.n_chunks());
//! let report = packds_reader::verify(&pack, packds_reader::VerifyOptions::default(), &|_, _| {})?;
//! assert!(report.is_ok());
//! # Ok::<(), packds_reader::ReadError>(())
//! ```

pub mod arena;
pub mod augment;
mod copy;
mod dataset;
pub mod device;
mod error;
mod fetch;
mod human;
pub mod loader;
mod mmap;
mod open;
pub mod plan;
mod sample;
mod sigbus;
mod verify;
mod view;

pub use error::ReadError;
pub use fetch::{Access, AccessReport, Checksums, FetchStats};
pub use mmap::Mapping;
pub use open::{MappedPack, open, open_with};
pub use sample::{Chunk, Item, Sample};
pub use verify::{BadChunk, BadSample, VerifyOptions, VerifyReport, verify};
pub use view::{ArrayView, Element, WrongType};
