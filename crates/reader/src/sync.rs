//! What threads share an arena by. `tests/ring_model.rs` has the same names of a checker's locks.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
