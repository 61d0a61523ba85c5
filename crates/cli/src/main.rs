//! The packds command.
fn main() {}
