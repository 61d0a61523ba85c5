//! Why training waits: what binds, how fast it could be, and what to change.
//!
//! The method is to cache a batch at one stage of its way after the other and to time what is left: on the device, on the
//! host, its samples processed, decoded, as they are stored, in the page cache, and not at all. Where time grows, there is
//! the bottleneck. [`examine`] measures that of a loader; [`diagnose`] says what measured times mean, whoever measured
//! them. docs/explanation/doctor.md has the model.
//!
//! ```no_run
//! use packds_reader::doctor::{Options, Step, examine};
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

mod advice;
mod clock;
mod examination;
mod measure;
mod model;
mod report;

#[cfg(test)]
mod tests;

pub use advice::{Advice, LoaderOption};
pub use clock::Clock;
pub use examination::{MeasuredStep, Options, Step, examine};
pub use model::{AsBytes, Case, Facts, Level, Loading, Overlap, Rung, Stage, Stages, Time};
pub use report::{Checked, Report, diagnose};
