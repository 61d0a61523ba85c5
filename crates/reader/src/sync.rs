//! The synchronization types of arenas. `tests/ring_model.rs` replaces them by those of a model checker.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
