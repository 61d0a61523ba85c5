//! The command that comes with the wheel.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments (the program's name first) without the GIL. Returns its exit code.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| packds_cli::run(args)).code()
}
