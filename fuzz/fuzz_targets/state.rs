//! Resumes from an arbitrary state.
#![no_main]

#[path = "../../crates/reader/tests/state_bodies/mod.rs"]
mod state_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    state_bodies::state(bytes);
});
