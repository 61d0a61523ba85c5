//! Errors in building a loader and in loading batches.

use std::path::PathBuf;

use super::remedy::Remedy;
use crate::augment::AugmentError;
use crate::device::DeviceError;
use crate::plan::PlanError;
use crate::{ReadError, human};

/// Why a loader cannot be made, or a batch cannot be delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The pack cannot be read, or data that the plan needs is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Order, batch or ranks do not match the pack or each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The augmentation does not match the pack's images.
    #[error("{}: {source}", path.display())]
    Augment {
        /// The pack.
        path: PathBuf,
        /// What does not match.
        source: Box<AugmentError>,
    },
    /// One sample's image could not be decoded or augmented.
    #[error("{}: sample {sample} (chunk {chunk}{}): {source}", path.display(), named(file.as_deref()))]
    Sample {
        /// The pack.
        path: PathBuf,
        /// The sample.
        sample: u64,
        /// Its chunk.
        chunk: u64,
        /// Its file in the source, if known.
        file: Option<String>,
        /// The problem.
        source: Box<AugmentError>,
    },
    /// The packs of a mixture differ in a loaded field.
    #[error("{}: field `{field}`: expected the {what} {expected}, as in the first pack, found {found}; the packs of a mixture must have the same fields", path.display())]
    OtherFields {
        /// The pack that differs from the first one.
        path: PathBuf,
        /// The field.
        field: String,
        /// The property that differs.
        what: &'static str,
        /// The value in the first pack.
        expected: String,
        /// The value in this pack.
        found: String,
    },
    /// The packs of a mixture have different class names for a loaded label field.
    #[error("{}: field `{field}`: expected {expected}, as in the first pack, found {found}; an id must mean the same class in all packs of a mixture, so pack their sources with the same list of class names, or leave out the field", path.display())]
    OtherClasses {
        /// The first pack that differs from pack 0.
        path: PathBuf,
        /// The label field.
        field: String,
        /// The first difference, as found in pack 0.
        expected: String,
        /// The first difference, as found in this pack.
        found: String,
    },
    /// An option cannot be used. The message says which one, what was found, and what to change.
    #[error("{0}")]
    Option(String),
    /// Images cannot be placed on the device as requested.
    #[error("{why}: {remedy}")]
    OnDevice {
        /// The reason.
        why: String,
        /// What to do instead.
        remedy: Remedy,
    },
    /// The memory budget is too small for a batch.
    #[error(
        "a memory budget of {} is too small: {what} needs {}; allow more memory or reduce the batch size",
        human::bytes(*budget), human::bytes(*needed)
    )]
    Memory {
        /// What needs the memory.
        what: &'static str,
        /// The minimum number of bytes.
        needed: u64,
        /// Number of bytes available.
        budget: u64,
    },
    /// Memory for the ring could not be reserved.
    #[error("cannot reserve {} for {slots} batches: {source}", human::bytes(*bytes))]
    Reserve {
        /// Size of all slots in bytes.
        bytes: u64,
        /// Number of slots.
        slots: usize,
        /// The system error.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread of the loader: {0}")]
    Thread(std::io::Error),
    /// The consumer holds every slot, so loading cannot continue.
    #[error(
        "all {slots} slots of the staging ring are held by batches that have not been dropped: drop some batches, copy the data that you need, or give the loader more `slots`"
    )]
    SlotsHeld {
        /// Number of slots in the ring.
        slots: usize,
    },
    /// Another epoch of this loader is still open and uses the ring.
    #[error("another epoch of this loader is still open: drop it first, or make a second loader from the same pack")]
    EpochOpen,
    /// The process was forked after the loader was made. The threads are in the parent.
    #[error(
        "this loader belongs to process {made_in}, but this is process {found}: threads do not survive a fork; open the pack again in the child"
    )]
    Forked {
        /// The process that made the loader.
        made_in: u32,
        /// This process.
        found: u32,
    },
    /// Every sample of a batch is bad, so no sample can replace the others.
    #[error("step {step}: every sample of the batch is bad (batch size {samples}); the first error is: {first}")]
    NothingLeft {
        /// The step.
        step: u64,
        /// Number of samples in the batch.
        samples: usize,
        /// The problem with the first sample.
        first: Box<LoadError>,
    },
    /// The device rejected a batch.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A thread of the loader panicked. This is a bug in packds.
    #[error("a thread of the loader panicked: {message}; this is a bug in packds")]
    Panicked {
        /// The panic message.
        message: String,
    },
}

fn named(file: Option<&str>) -> String {
    file.map(|file| format!(", {file}")).unwrap_or_default()
}
