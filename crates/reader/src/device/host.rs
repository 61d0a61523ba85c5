//! The host as a destination: batches stay in the staging slots, where the user reads them.

use std::sync::Arc;

use super::{Device, DeviceError, Placement, Receiver, Transfer};
use crate::Pack;
use crate::arena::SlotRef;

/// No device: the user reads batches from the loader's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostDevice;

impl Device for HostDevice {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::Host
    }
}

/// The host, but every batch is copied into its slot and never lent from the pack's memory, which is read-only. Use it
/// if you want to modify batches.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnSlots;

impl Device for OwnSlots {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::slots(Arc::new(InPlace))
    }
}

/// The host in place of a device that finishes images. Batches stay in their slots with unfinished images. Used to
/// measure the host's work for such a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Staged;

impl Device for Staged {
    fn placement(self: Arc<Self>, _: &[Arc<Pack>]) -> Placement {
        Placement::Pixels(Box::new(|_| Ok(Arc::new(InPlace))))
    }
}

/// Leaves batches in their slots.
#[derive(Debug, Clone, Copy, Default)]
pub struct InPlace;

impl Receiver for InPlace {
    fn name(&self) -> &'static str {
        "host"
    }

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        Ok(Box::new(Done))
    }
}

/// A completed transfer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done;

impl Transfer for Done {
    fn is_done(&self) -> bool {
        true
    }

    fn wait(&self) {}
}
