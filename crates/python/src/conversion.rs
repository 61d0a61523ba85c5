//! Conversions and exports, with the words of the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_convert::source::{ListOptions, list, list_splits};
use packds_convert::{
    ConvertError, ConvertOptions, DataFormat, NormalizeBy, check_output, convert_listing, forecast,
};
use packds_format::DType;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::pack::Pack;
use crate::watch::{AfterInterrupt, Watch, watched};

/// Converts `source` into the pack `output` with these arguments of the command; the report as JSON.
#[pyfunction]
#[pyo3(signature = (source, output, args, dry_run=false, told=None))]
pub(crate) fn convert(
    py: Python<'_>,
    source: PathBuf,
    output: PathBuf,
    args: Vec<OsString>,
    dry_run: bool,
    told: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = packds::convert_options(&source, &output, &args).map_err(Failure::Option)?;
    let report = watched(py, told, AfterInterrupt::Wait, move |watch| {
        match (options.list.split.as_deref() == Some("all"), dry_run) {
            (true, _) => every_split(&source, &output, &options, dry_run, watch),
            (false, true) => Ok(forecast(&list(&source, &options.list)?, &options)?.to_json()),
            (false, false) => {
                let report = packds_convert::convert(&source, &output, &options, watch)?;
                Ok(report.to_json())
            }
        }
    })?;
    Ok(report.map_err(Failure::Convert)?.to_string())
}

/// Every split to a pack of its own, all with the same class ids: a report for each.
fn every_split(
    source: &Path,
    output: &Path,
    options: &ConvertOptions,
    dry_run: bool,
    watch: &Watch,
) -> Result<Value, ConvertError> {
    if options.normalize == NormalizeBy::Dataset && options.dtype != DType::U8 {
        return Err(ConvertError::Options {
            reason:
                "--normalize dataset with --split all would measure different values for each split"
                    .to_owned(),
            hint: "convert the split train first, then pass its mean and std as MEAN/STD"
                .to_owned(),
        });
    }
    let started = Instant::now();
    let list_options = ListOptions {
        split: None,
        ..options.list.clone()
    };
    let splits = list_splits(source, &list_options)?;
    let list_time = started.elapsed();
    let mut reports = Map::new();
    if dry_run {
        for (name, listing) in splits {
            reports.insert(name, forecast(&listing, options)?.to_json());
        }
        return Ok(Value::Object(reports));
    }
    // All outputs first: better no split than half of them.
    for (name, _) in &splits {
        check_output(&packds::split_output(output, name), options.force)?;
    }
    for (name, listing) in splits {
        let target = packds::split_output(output, &name);
        let report = convert_listing(&listing, list_time, &target, options, watch)?;
        reports.insert(name, report.to_json());
    }
    Ok(Value::Object(reports))
}

/// Exports a pack to `target` with these arguments of the command; the report as JSON.
#[pyfunction]
#[pyo3(signature = (pack, target, args, told=None))]
pub(crate) fn export(
    py: Python<'_>,
    pack: &Bound<'_, Pack>,
    target: PathBuf,
    args: Vec<OsString>,
    told: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let pack = pack.get().shared();
    let options = packds::export_options(pack.file_path(), &target, &args);
    let options = options.map_err(Failure::Option)?;
    packds_convert::check_apart(pack.file_path(), &target).map_err(Failure::from)?;
    let report = watched(py, told, AfterInterrupt::Wait, move |watch| {
        let report = packds_convert::export(&**pack, &target, &options, watch);
        // What the file lost meanwhile would be zeros.
        pack.still_good().map_err(Failure::from)?;
        report.map_err(Failure::from)
    })?;
    Ok(report?.to_json().to_string())
}

/// The formats of this build: name, what it holds, whether packs can be exported to it.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, bool)> {
    let built = DataFormat::ALL
        .into_iter()
        .filter(|format| format.is_built());
    built
        .map(|format| (format.name(), format.describe(), format.is_sink()))
        .collect()
}
