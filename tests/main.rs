//! End-to-end tests of the packds command.
