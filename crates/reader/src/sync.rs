//! The synchronization types that arenas use. `tests/ring_model.rs` replaces them with those of a model checker.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
