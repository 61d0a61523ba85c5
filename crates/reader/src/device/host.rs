//! The host: batches stay in the staging slots, where the user reads them.

use super::{Device, DeviceError, Transfer};
use crate::arena::{SlotMut, SlotRef};

/// No device: the user reads batches from the loader's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostDevice;

impl Device for HostDevice {
    fn name(&self) -> &'static str {
        "host"
    }

    fn takes_lent(&self) -> bool {
        true
    }

    fn recycle(&self, _: &mut SlotMut) {}

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        Ok(Box::new(Done))
    }
}

/// The host, with every batch in its slot. For users who write to batches, which is not allowed in the pack's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnSlots;

impl Device for OwnSlots {
    fn name(&self) -> &'static str {
        HostDevice.name()
    }

    fn recycle(&self, slot: &mut SlotMut) {
        HostDevice.recycle(slot);
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        HostDevice.submit(slot, len)
    }
}

/// The host in place of a device that finishes images: batches stay in their slots with unfinished images. It measures the
/// host's work for such a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Staged;

impl Device for Staged {
    fn name(&self) -> &'static str {
        HostDevice.name()
    }

    fn finishes(&self) -> bool {
        true
    }

    fn recycle(&self, slot: &mut SlotMut) {
        HostDevice.recycle(slot);
    }

    fn submit(&self, slot: SlotRef, len: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        HostDevice.submit(slot, len)
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
