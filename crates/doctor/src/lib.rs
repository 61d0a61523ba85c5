//! Finds the training bottleneck: which stage limits the speed, how fast training could be, and what to change.
//!
//! The doctor caches data at one level after the other and times the rest. The levels are: batch on the device, batch
//! on the host, processed samples, decoded samples, stored samples, page cache, and nothing cached. The stage where the
//! time increases is the bottleneck. [`examine`] measures a loader. [`diagnose`] interprets times, however they were
//! measured. [`document`], [`text`] and [`picture`] show a report. docs/explanation/doctor.md describes the model.
//!
//! ```no_run
//! use packds_doctor::{Options, Step, examine};
//! use packds_reader::loader::{LoadError, Loader};
//!
//! let loader = Loader::builder(packds_reader::open("train.pack")?).batch(256);
//! let report = examine(&loader, Step::Modelled(50.0), &Options::default(), &mut |_| {})?;
//! println!("{} binds: {:.0} images/s", report.binds.name(), report.images_per_s);
//! for advice in &report.advice {
//!     println!("{}: {:.0} images/s", advice.text, advice.images_per_s);
//! }
//! # Ok::<(), LoadError>(())
//! ```
#![forbid(unsafe_code)]

mod advice;
mod clock;
mod document;
mod examination;
mod measure;
mod model;
mod picture;
mod report;

#[cfg(test)]
mod tests;

pub use advice::{Advice, LoaderOption};
pub use clock::Clock;
pub use document::{document, text};
pub use examination::{MeasuredStep, Options, Step, examine};
pub use model::{AsBytes, Case, Facts, Level, Loading, Overlap, Rung, Stage, Stages, Time};
pub use picture::picture;
pub use report::{Checked, Report, diagnose};
