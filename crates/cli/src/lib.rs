//! The packds command
