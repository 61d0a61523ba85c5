//! Why a loader cannot be made, or a batch not delivered.

use std::path::PathBuf;

use super::remedy::Remedy;
use crate::augment::AugmentError;
use crate::device::DeviceError;
use crate::plan::PlanError;
use crate::{ReadError, human};

/// Why a loader cannot be made, or a batch not delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The pack could not be read, or is damaged where the plan needs it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Order, batch and ranks do not fit the pack or each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The augmentation does not fit the pack's images.
    #[error("{}: {source}", path.display())]
    Augment {
        /// The pack.
        path: PathBuf,
        /// What does not fit.
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
        /// Its file in the source, where the pack knows it.
        file: Option<String>,
        /// What is wrong with it.
        source: Box<AugmentError>,
    },
    /// The packs of a mixture differ in a field that is loaded.
    #[error("{}: field `{field}`: {what}: expected {expected}, as in the first pack, found {found}; the packs of a mixture must have the same fields", path.display())]
    OtherFields {
        /// The pack that differs from the first one.
        path: PathBuf,
        /// The field.
        field: String,
        /// What of it differs.
        what: &'static str,
        /// What the first pack has.
        expected: String,
        /// What this one has.
        found: String,
    },
    /// The packs of a mixture give the ids of a label field that is loaded different class names.
    #[error("{}: field `{field}`: expected {expected}, as in the first pack, found {found}; the ids of all packs of a mixture must mean the same classes: pack their sources with one list of class names, or leave the field out", path.display())]
    OtherClasses {
        /// The first pack that differs from the first of all.
        path: PathBuf,
        /// The label field.
        field: String,
        /// What the first pack has where they differ first.
        expected: String,
        /// What this one has there.
        found: String,
    },
    /// An option cannot be met; the text says which, what was found and what to change.
    #[error("{0}")]
    Option(String),
    /// Images cannot be on a device as they were asked for.
    #[error("{why}: {remedy}")]
    OnDevice {
        /// Why not.
        why: String,
        /// What to do.
        remedy: Remedy,
    },
    /// The memory budget does not hold what a batch takes.
    #[error(
        "a memory budget of {} is too small: {what} needs {}; give more memory or make the batch smaller",
        human::bytes(*budget), human::bytes(*needed)
    )]
    Memory {
        /// What needs it.
        what: &'static str,
        /// Bytes it takes at least.
        needed: u64,
        /// Bytes there are.
        budget: u64,
    },
    /// Memory for the ring could not be reserved.
    #[error("cannot reserve {} for {slots} batches: {source}", human::bytes(*bytes))]
    Reserve {
        /// Bytes of all slots.
        bytes: u64,
        /// Slots.
        slots: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread of the loader: {0}")]
    Thread(std::io::Error),
    /// The consumer holds every slot, so that nothing can be loaded.
    #[error(
        "all {slots} slots of the staging ring are held by batches that were not dropped: drop some, copy what must stay, or give the loader more `slots`"
    )]
    SlotsHeld {
        /// Slots of the ring.
        slots: usize,
    },
    /// Another epoch of this loader is still open, and the ring is its.
    #[error(
        "another epoch of this loader is still open: drop it first, or make a second loader from the same pack"
    )]
    EpochOpen,
    /// The process was forked after the loader was made: its threads are in the parent.
    #[error(
        "this loader belongs to process {made_in}, this is process {found}: threads do not survive a fork; open the pack again in the child"
    )]
    Forked {
        /// The process that made it.
        made_in: u32,
        /// This process.
        found: u32,
    },
    /// Every sample of a batch was bad, so that there is none to take their place.
    #[error("step {step}: all {samples} samples of the batch are bad; the first: {first}")]
    NothingLeft {
        /// The step.
        step: u64,
        /// Samples of the batch.
        samples: usize,
        /// What is wrong with the first.
        first: Box<LoadError>,
    },
    /// The device did not take a batch.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A thread of the loader panicked: a bug in packds.
    #[error("a thread of the loader panicked: {message}; this is a bug in packds")]
    Panicked {
        /// What it said.
        message: String,
    },
}

fn named(file: Option<&str>) -> String {
    file.map(|file| format!(", {file}")).unwrap_or_default()
}
