//! The pack file format: parsing and writing, with full validation.
//!
//! A pack is one immutable file: header, schema, chunks of whole samples, columns, footer, trailer.
//! `docs/reference/format.md` is the only specification, and this crate implements it. The crate does not open files,
//! start threads, read clocks or decode images: [`PackWriter`] writes to any [`std::io::Write`], and [`Pack`] reads any
//! `AsRef<[u8]>` (a memory-mapped file, a `Vec`).
//!
//! No input makes this crate panic or allocate more than the input justifies (see [`Limits`]).
//!
//! A [`Schema`] declares the fields. A [`BlockBuilder`] collects samples in blocks, and a [`PackWriter`] writes the
//! blocks. A [`Pack`] returns samples. It checks each sample against its checksum on first access:
//!
//! ```
//! use packds_format::{BlockBuilder, DType, Field, FooterParts, Pack, PackOptions, PackWriter, Schema};
//!
//! let schema = Schema::new(vec![Field::tensor("image", DType::U8, &[2, 2, 3])])?;
//! let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 4))?;
//! let mut block = BlockBuilder::new(writer.schema());
//! for value in 0..10_u8 {
//!     block.tensor_mut(0)?.fill(value);
//!     block.finish_sample()?;
//!     if writer.block_room(block.n_samples()) == 0 {
//!         writer.append(block.finish()?)?;
//!         block = BlockBuilder::new(writer.schema());
//!     }
//! }
//! writer.append(block.finish()?)?;
//! let (bytes, _) = writer.finish(FooterParts::default())?;
//!
//! let pack = Pack::open(bytes)?;
//! assert_eq!(pack.n_samples(), 10);
//! assert_eq!(pack.item(0, 7)?.as_ref(), [7; 12]);
//! # Ok::<(), packds_format::FormatError>(())
//! ```
//!
//! Opening a file that is not a pack returns an error that says what is wrong and where:
//!
//! ```
//! use packds_format::{FormatError, Pack};
//!
//! let error = Pack::open(b"GIF89a").err();
//! assert!(matches!(error, Some(FormatError::TooShort { .. })));
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

#[cfg(target_endian = "big")]
compile_error!("packs are little-endian and columns are used in place: big-endian targets are not supported");

mod assemble;
mod block;
mod checked;
mod checksum;
mod chunk;
mod codec;
mod columns;
mod dtype;
mod error;
mod file;
mod filter;
mod footer;
mod geometry;
mod header;
mod items;
mod keypoints;
mod le;
mod limits;
mod manifest;
mod pack;
mod paths;
mod permutation;
mod polygons;
mod scalar;
mod schema;
mod stats;
mod summed;
mod trailer;
mod verify;
mod writer;

pub use block::{Block, BlockBuilder};
pub use codec::Codec;
pub use dtype::DType;
pub use error::FormatError;
pub use geometry::Geometry;
pub use header::Header;
pub use limits::Limits;
pub use pack::Pack;
pub use schema::{Coding, Field, FieldKind, Role, Schema, Store};
pub use stats::{Classes, Stats};
pub use writer::{FooterParts, PackOptions, PackWriter};

#[doc(hidden)]
pub use self::internal::*;

/// Internals for other crates of this workspace, and for tools that inspect packs. They may change in any version.
mod internal {
    pub use crate::checked::Bitmap;
    pub use crate::checksum::{Crc32c, crc32c};
    pub use crate::chunk::{ChunkEntry, ChunkView, PartEntry};
    pub use crate::columns::{ColumnEntry, ColumnView};
    pub use crate::file::PackFile;
    pub use crate::filter::{Filter, ItemShape};
    pub use crate::footer::{SectionEntry, SectionTag};
    pub use crate::geometry::{PackGeometry, among, chunk_samples_for, chunk_samples_without_padding};
    pub use crate::header::Uuid;
    pub use crate::items::BlockItems;
    pub use crate::keypoints::Keypoints;
    pub use crate::manifest::{Manifest, SET_EXTENSION, ShardEntry, manifest_name, manifest_version, version_of_set};
    pub use crate::pack::{Part, SHARD_ALIGN, check_chunk, check_outside_chunks};
    pub use crate::paths::Paths;
    pub use crate::permutation::{Permutation, hash_bytes, mix64};
    pub use crate::polygons::Polygons;
    pub use crate::scalar::Scalar;
    pub use crate::schema::Normalize;
    pub use crate::stats::{FieldStats, LabelStats, SeekStats, SizeStats, label_icc};
    pub use crate::trailer::Trailer;
    pub use crate::verify::{ChunkDamage, check_file_chunk};
    pub use crate::writer::{StoredChunk, WriteSummary};

    /// Sizes and offsets from `docs/reference/format.md`. A test compares them with the tables in that document.
    pub mod constants {
        pub use crate::chunk::{CHUNK_ENTRY_BYTES, KIND_EXPLICIT, KIND_STRIDED, PART_ALIGN, PART_ENTRY_BYTES};
        pub use crate::codec::FEATURE_ZSTD;
        pub use crate::columns::{COLUMN_ALIGN, COLUMN_BLOCK_BYTES};
        pub use crate::footer::{SECTION_ALIGN, SECTION_ENTRY_BYTES, SECTION_MUST_UNDERSTAND};
        pub use crate::header::{FEATURE_EXPLICIT_CHUNKS, FEATURE_RAGGED, HEADER_BYTES, MAGIC, MAJOR, MINOR};
        pub use crate::paths::PATH_GROUP;
        pub use crate::trailer::{END_MAGIC, TRAILER_BYTES};
    }
}
