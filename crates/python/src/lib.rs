//! The Python package's native part: packs, loaders and conversions as Python sees them.
//!
//! It is deliberately thin: everything in it is also in the Rust crates. Conveniences for Python are in python/packds.
//! The GIL is released around everything that waits, copies, decodes or checks. Waits end when Python has a signal to
//! handle.

mod batch;
mod command;
mod conversion;
mod cuda;
mod decoders;
mod distributed;
mod doctor;
mod epoch;
mod failure;
mod loader;
mod loader_options;
mod memory;
mod pack;
mod watch;
mod writer;

use packds_system::FrontEnd;
use pyo3::prelude::*;

/// The module `packds._packds`.
#[pymodule(gil_used = false)]
fn _packds(module: &Bound<'_, PyModule>) -> PyResult<()> {
    FrontEnd::Python.set();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DTYPES", memory::numpy_names())?;
    module.add("FIXED_ORDERS", loader_options::fixed_orders())?;
    module.add("LABEL_NAMES", packds_convert::source::LABEL_NAMES.to_vec())?;
    module.add("PIXEL_TYPES", packds_pixels::PIXEL_TYPES.to_vec())?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<batch::Geometry>()?;
    module.add_class::<doctor::Diagnosis>()?;
    module.add_class::<doctor::Clock>()?;
    module.add_class::<epoch::Epoch>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<pack::Pack>()?;
    module.add_class::<writer::Writer>()?;
    module.add_function(wrap_pyfunction!(command::run, module)?)?;
    module.add_function(wrap_pyfunction!(doctor::diagnosed, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::convert, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::export, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::edit, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::append, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::plan, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::build, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::commit, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::plan_size, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::in_file_order, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::compact, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::diff, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::reordered, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::sides, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::formats, module)?)?;
    module.add_function(wrap_pyfunction!(conversion::options, module)?)?;
    Ok(())
}
