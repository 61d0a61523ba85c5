//! The synchronization types that arenas use. `tests/ring_model.rs` replaces them with types of a model checker.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
