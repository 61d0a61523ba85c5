//! Conversions on many machines that Python calls.

use std::path::PathBuf;
use std::time::Instant;

use packds_convert::{BuildOptions, ConvertOptions, ShardPlan, check_apart, list_to_plan, plan_shards};
use pyo3::prelude::*;
use serde_json::json;

use crate::conversion::{GivenTexts, options_of};
use crate::failure::Failure;
use crate::watch::{AfterInterrupt, watched};

/// Plans the conversion of `source` to a set. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (source, output, given, progress=None))]
pub(crate) fn plan(
    py: Python<'_>,
    source: PathBuf,
    output: PathBuf,
    given: GivenTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut options = options_of::<ConvertOptions>(&given)?.for_output(&output);
    options.check().map_err(|error| Failure::refused(&error))?;
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        options.list.unpacking = watch.unpacking();
        check_apart(&source, &output)?;
        let started = Instant::now();
        let listing = list_to_plan(&source, &options.list)?;
        plan_shards(&source, (&listing, started.elapsed()), &output, &options, &**watch)
    })?;
    Ok(json!(report.map_err(Failure::Convert)?).to_string())
}

/// Builds one shard of a plan. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (plan, output, shard, given, progress=None))]
pub(crate) fn build(
    py: Python<'_>,
    plan: PathBuf,
    output: PathBuf,
    shard: u64,
    given: GivenTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = options_of::<BuildOptions>(&given)?;
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        packds_cli::build_shard(&ShardPlan::open(&plan)?, shard, &output, &options, &**watch)
    })?;
    Ok(json!(report.map_err(Failure::Convert)?).to_string())
}

/// Makes a set of the shards of a plan. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (plan, output, progress=None))]
pub(crate) fn commit(
    py: Python<'_>,
    plan: PathBuf,
    output: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        packds_cli::commit_shards(&ShardPlan::open(&plan)?, &output, &**watch)
    })?;
    Ok(json!(report.map_err(Failure::Convert)?).to_string())
}

/// The number of shards and of samples of a plan.
#[pyfunction]
pub(crate) fn plan_size(py: Python<'_>, plan: PathBuf) -> PyResult<(u64, u64)> {
    let plan = py.detach(|| ShardPlan::open(&plan)).map_err(Failure::Convert)?;
    Ok((plan.n_shards(), plan.n_samples()))
}
