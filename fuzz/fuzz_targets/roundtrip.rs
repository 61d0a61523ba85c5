//! Writes and reads a pack with a schema and content derived from the bytes.
#![no_main]
#![expect(dead_code, reason = "each target uses only one of these functions")]

#[path = "../../crates/format/tests/fuzz_bodies.rs"]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_bodies::round_trip(bytes);
});
