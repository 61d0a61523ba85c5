//! Converts items from big-endian to little-endian order.

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use super::portable::Portable;
use super::store::{Content, Store};
use crate::sample::SampleError;

/// Another store's items with the bytes of each number reversed.
#[derive(Debug)]
pub(super) struct Swapped {
    pub(super) store: Arc<dyn Store>,
    /// Bytes of a number.
    pub(super) element: usize,
}

impl Store for Swapped {
    fn len(&self) -> usize {
        self.store.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.store.bytes(idx)
    }

    fn content(&self, idx: usize) -> Content {
        self.store.content(idx)
    }

    fn is_uniform(&self) -> bool {
        self.store.is_uniform()
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let before = out.len();
        // Reads up to the end of a number, because only complete numbers can be reversed.
        let element = to_u64(self.element).max(1);
        let whole = limit.div_ceil(element).saturating_mul(element);
        self.store.append(idx, whole, out)?;
        let numbers = out.get_mut(before..).unwrap_or_default();
        swap(numbers, self.element);
        let limit = to_usize(limit);
        out.truncate(before.saturating_add(limit));
        Ok(())
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let store = Box::new(self.store.portable(places)?);
        Some(Portable::Swapped { store, element: self.element })
    }
}

/// Reverses the bytes of each number.
pub(super) fn swap(numbers: &mut [u8], element: usize) {
    for number in numbers.chunks_exact_mut(element.max(1)) {
        number.reverse();
    }
}
