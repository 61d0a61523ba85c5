//! End-to-end tests of the packds command.

mod architecture;
mod convert;
mod interrupted;
mod look;
mod support;
