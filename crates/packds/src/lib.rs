//! packds packs an image dataset into one chunked, checksummed file and loads training batches from it.
//!
//! # A tour
//!
//! [`convert`](crate::convert::convert) makes a pack from a folder with one subfolder per class, from a manifest, or
//! from another format. [`open`] maps a pack in milliseconds, whatever its size. [`verify`] checks every byte. A
//! [`Loader`](loader::Loader) makes batches. Their order depends only on the seed and the epoch.
//!
//! ```
//! use packds::convert::{ConvertOptions, convert};
//! use packds::loader::Loader;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (photos, out) = (folder.path().join("photos"), folder.path().join("train.pack"));
//! # for (class, level) in [("cats", 60), ("dogs", 200)] {
//! #     std::fs::create_dir_all(photos.join(class))?;
//! #     let png = packds_pixels::encode_png(8, 8, 3, &[level; 8 * 8 * 3])?;
//! #     std::fs::write(photos.join(class).join("1.png"), png)?;
//! # }
//! // photos/cats/1.png and photos/dogs/1.png, 8 x 8 pixels each. `&()` ignores the progress.
//! let report = convert(&photos, &out, &ConvertOptions::default(), &())?;
//! assert_eq!(report.n_samples, 2);
//!
//! let pack = packds::open(&out)?;
//! assert_eq!(pack.n_samples(), 2);
//! assert_eq!(pack.sample(1)?.field("image")?.shape, [8, 8, 3]);
//!
//! let report = packds::verify(&pack, packds::VerifyOptions::default(), &|_, _| {})?;
//! assert!(report.is_ok());
//!
//! let loader = Loader::builder(pack).batch(2).seed(42).build()?;
//! for batch in loader.epoch(0)? {
//!     let batch = batch?;
//!     let (pixels, labels) = (batch.elements::<u8>("image")?, batch.elements::<i32>("label")?);
//!     assert_eq!(pixels.len(), 2 * 8 * 8 * 3);
//!     assert_eq!(labels[0] + labels[1], 1); // one cat, one dog
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An [`Augment`](augment::Augment) crops, flips and normalizes while loading:
//!
//! ```
//! use packds::augment::Augment;
//!
//! let augment = Augment::parse("rrc224,flip,norm:imagenet,f32,chw")?;
//! # let _ = augment;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `codecs` (default) | images stored as JPEG, PNG or other files; needs a C compiler |
//! | `zstd` (default) | compressed packs; needs a C compiler |
//! | `convert` (default) | `packds::convert`: makes packs, and exports them |
//! | `arrow` | Parquet, Arrow IPC and formats based on them, for the converter |
//! | `hdf5` | HDF5, for the converter; needs the HDF5 library |
//! | `zarr` | Zarr, for the converter |
//! | `doctor` | `packds::doctor`: finds what limits the speed of training |
//! | `cuda` | `packds::cuda`: batches in the memory of NVIDIA GPUs |
#![forbid(unsafe_code)]

#[doc(inline)]
pub use packds_reader::*;

#[cfg(feature = "convert")]
#[doc(inline)]
pub use packds_convert as convert;

#[cfg(feature = "doctor")]
#[doc(inline)]
pub use packds_doctor as doctor;

#[cfg(feature = "cuda")]
#[doc(inline)]
pub use packds_cuda as cuda;

/// The types of the file format: schemas, fields, element types.
#[doc(inline)]
pub use packds_format as format;

/// Compiles the examples of the guides.
#[cfg(doctest)]
#[doc = include_str!("../guides/rust.md")]
#[doc = include_str!("../guides/loading.md")]
struct Guides;
