//! Conversions and exports that Python calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packds_convert::source::{ListOptions, list, list_splits};
use packds_convert::{
    AddFieldOptions, AppendOptions, BuildOptions, Changes, CompactOptions, ConvertError, ConvertOptions, DataFormat,
    Declared, DiffOptions, Edit, EditOptions, ExportOptions, OptionSpec, RelabelOptions, ReorderOptions, Side,
    SplitOptions, Taken, Takes, check_output, check_target, check_target_name, convert_listing, forecast, given,
};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::pack::Pack;
use crate::watch::{AfterInterrupt, Watch, watched};

/// The options that a user gave: the keyword and the text of each. The text of a switch that is on is empty.
pub(crate) type GivenTexts = Vec<(String, OsString)>;

/// Parses the options that were given.
pub(crate) fn options_of<O: Declared>(texts: &GivenTexts) -> Result<O, Failure> {
    let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    given(&texts).map_err(Failure::Option)
}

/// Converts `source` to the pack `output`, or with the split `all` to one pack per split. Returns the reports as JSON.
/// With `dry_run`, writes nothing and returns forecasts.
#[pyfunction]
#[pyo3(signature = (source, output, given, dry_run=false, progress=None))]
pub(crate) fn convert(
    py: Python<'_>,
    source: PathBuf,
    output: PathBuf,
    given: GivenTexts,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut options = options_of::<ConvertOptions>(&given)?.for_output(&output);
    options.check().map_err(|error| Failure::refused(&error))?;
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        options.list.unpacking = watch.unpacking();
        if dry_run {
            check_target_name(&output, &options)?;
        }
        match (options.list.split.as_deref() == Some("all"), dry_run) {
            (true, _) => every_split(&source, &output, &options, dry_run, watch),
            (false, true) => Ok(json!(forecast(&list(&source, &options.list)?, &options)?)),
            (false, false) => {
                let report = packds_convert::convert(&source, &output, &options, &**watch)?;
                Ok(json!(report))
            }
        }
    })?;
    Ok(report.map_err(Failure::Convert)?.to_string())
}

/// Converts every split to its own pack, all with the same class ids. Returns a report for each pack, or with `dry_run`
/// a forecast.
fn every_split(
    source: &Path,
    output: &Path,
    options: &ConvertOptions,
    dry_run: bool,
    watch: &Watch,
) -> Result<Value, ConvertError> {
    options.check_splits()?;
    let started = Instant::now();
    let list_options = ListOptions { split: None, ..options.list.clone() };
    let splits = list_splits(source, &list_options)?;
    let list_time = started.elapsed();
    let mut reports = Map::new();
    if dry_run {
        for (name, listing) in splits {
            reports.insert(name, json!(forecast(&listing, options)?));
        }
        return Ok(Value::Object(reports));
    }
    // Check all outputs first, because it is better to write no split than half of them.
    splits.iter().try_for_each(|(name, _)| check_target(&packds_cli::split_output(output, name), options))?;
    for (name, listing) in splits {
        let target = packds_cli::split_output(output, &name);
        let report = convert_listing(&listing, list_time, &target, options, watch)?;
        reports.insert(name, json!(report));
    }
    Ok(Value::Object(reports))
}

/// Exports all samples of a pack, or only `samples`, to `target`. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (pack, target, given, samples=None, progress=None))]
pub(crate) fn export(
    py: Python<'_>,
    pack: &Bound<'_, Pack>,
    target: PathBuf,
    given: GivenTexts,
    samples: Option<Vec<u64>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let pack = pack.get().shared();
    let options = ExportOptions { samples, ..options_of(&given)? };
    packds_convert::check_apart(pack.file_path(), &target).map_err(Failure::from)?;
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        let report = packds_convert::export(&**pack, &target, &options, &**watch);
        // If the file was truncated in the meantime, the lost part was read as zeros.
        pack.still_good().map_err(Failure::from)?;
        report.map_err(Failure::from)
    })?;
    Ok(json!(report?).to_string())
}

/// Writes a pack with all samples of several packs, or with `samples` of one pack. `how` is a JSON object that describes the
/// choice. If there is one pack, leaves out the fields in `drop`, changes labels as `relabel` says, or adds fields as
/// `add` says: a table and options. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (packs, target, command, given, samples=None, drop=None, relabel=None, add=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn edit(
    py: Python<'_>,
    packs: Vec<Bound<'_, Pack>>,
    target: PathBuf,
    command: (String, String),
    given: GivenTexts,
    samples: Option<Vec<u64>>,
    drop: Option<Vec<String>>,
    relabel: Option<(Option<PathBuf>, GivenTexts)>,
    add: Option<(PathBuf, GivenTexts)>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (command, how) = command;
    let command: Edit = command.parse().map_err(|error| Failure::Option(format!("{error}")))?;
    let how: Value = serde_json::from_str(&how).unwrap_or_default();
    let options = options_of::<EditOptions>(&given)?;
    let relabel =
        relabel.map(|(table, given)| Ok::<_, Failure>((table, options_of::<RelabelOptions>(&given)?))).transpose()?;
    let add =
        add.map(|(table, given)| Ok::<_, Failure>((table, options_of::<AddFieldOptions>(&given)?))).transpose()?;
    let packs: Vec<_> = packs.iter().map(|pack| pack.get().shared()).collect();
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        let (changes, chosen) = match (packs.as_slice(), drop, relabel) {
            ([pack], None, None) if add.is_some() => {
                let (table, how) = add.unwrap_or_default();
                (Changes::add_fields(&***pack, pack.file_path(), &table, &how).map_err(Failure::from)?, None)
            }
            ([pack], Some(names), _) => {
                (Changes::drop_fields(&***pack, pack.file_path(), &names).map_err(Failure::from)?, None)
            }
            ([pack], None, Some((table, how))) => {
                Changes::relabel(&***pack, pack.file_path(), table.as_deref(), &how).map_err(Failure::from)?
            }
            _ => (Changes::default(), None),
        };
        let samples = samples.or(chosen);
        let packs = packs.iter();
        let taken =
            packs.clone().map(|pack| Taken { pack: &***pack, path: pack.file_path(), samples: samples.as_deref() });
        let taken: Vec<_> = taken.collect();
        let report = packds_convert::edit(&taken, (command, &how, &changes), &target, &options, &**watch);
        // If a file was truncated in the meantime, the lost part was read as zeros.
        packs.clone().try_for_each(|pack| pack.still_good()).map_err(Failure::from)?;
        report.map_err(Failure::from)
    })?;
    Ok(json!(report?).to_string())
}

/// Adds packs to the set at `target`, which may not exist yet. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (target, packs, given, progress=None))]
pub(crate) fn append(
    py: Python<'_>,
    target: PathBuf,
    packs: Vec<Bound<'_, Pack>>,
    given: GivenTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = options_of::<AppendOptions>(&given)?;
    let packs: Vec<_> = packs.iter().map(|pack| pack.get().shared()).collect();
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        packds_convert::check_set_name(&target).map_err(Failure::from)?;
        let current = packds_reader::latest_of_set(&target).map_err(Failure::from)?;
        let taken = packs.iter().map(|pack| Taken { pack: &***pack, path: pack.file_path(), samples: None });
        let taken: Vec<_> = taken.collect();
        let report = packds_convert::append(&target, current.as_deref(), &taken, &options, &**watch);
        packs.iter().try_for_each(|pack| pack.still_good()).map_err(Failure::from)?;
        report.map_err(Failure::from)
    })?;
    Ok(json!(report?).to_string())
}

/// Joins small shards of the set at `target`. Returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (target, given, progress=None))]
pub(crate) fn compact(
    py: Python<'_>,
    target: PathBuf,
    given: GivenTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = options_of::<CompactOptions>(&given)?;
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        packds_convert::check_set_name(&target).map_err(Failure::from)?;
        let current = packds_reader::open(&target).map_err(Failure::from)?;
        let open = |path: &Path| packds_reader::open(path).map_err(Failure::from);
        let report = packds_convert::compact(&target, &*current, open, &options, &**watch);
        current.still_good().map_err(Failure::from)?;
        report
    })?;
    Ok(json!(report?).to_string())
}

/// How two packs differ, as JSON.
#[pyfunction]
#[pyo3(signature = (packs, given, progress=None))]
pub(crate) fn diff(
    py: Python<'_>,
    packs: [Bound<'_, Pack>; 2],
    given: GivenTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = options_of::<DiffOptions>(&given)?;
    let packs = packs.each_ref().map(|pack| pack.get().shared());
    let report = watched(py, progress, AfterInterrupt::Wait, move |watch| {
        let both = packs.each_ref().map(|pack| Taken { pack: &***pack, path: pack.file_path(), samples: None });
        let report = packds_convert::diff(&both, &options, &**watch);
        packs.iter().try_for_each(|pack| pack.still_good()).map_err(Failure::from)?;
        report.map_err(Failure::from)
    })?;
    Ok(json!(report?).to_string())
}

/// Samples that a user listed, in the order of the pack, and a warning if that is another order.
#[pyfunction]
pub(crate) fn in_file_order(mut samples: Vec<u64>) -> PyResult<(Vec<u64>, Option<String>)> {
    let told = packds_convert::in_file_order(&mut samples).map_err(Failure::from)?;
    Ok((samples, told))
}

/// All samples of a pack in another order.
#[pyfunction]
pub(crate) fn reordered(py: Python<'_>, pack: &Bound<'_, Pack>, given: GivenTexts) -> PyResult<Vec<u64>> {
    let options = options_of::<ReorderOptions>(&given)?;
    let pack = pack.get().shared();
    let samples = py.detach(|| packds_convert::reordered(&**pack, pack.file_path(), &options));
    Ok(samples.map_err(Failure::from)?)
}

/// The sides of a split: the name, the pack to write, and the samples. Fails if a pack exists, unless `force` is set.
#[pyfunction]
pub(crate) fn sides(
    py: Python<'_>,
    pack: &Bound<'_, Pack>,
    output: PathBuf,
    given: GivenTexts,
    force: bool,
) -> PyResult<Vec<(String, PathBuf, Vec<u64>)>> {
    let options = options_of::<SplitOptions>(&given)?;
    let pack = pack.get().shared();
    let sides = py.detach(|| packds_convert::sides(&**pack, pack.file_path(), &options)).map_err(Failure::from)?;
    let side = |side: Side| (side.name.clone(), packds_cli::split_output(&output, &side.name), side.samples);
    let sides: Vec<_> = sides.into_iter().map(side).collect();
    // Check every output before the first is written.
    sides.iter().try_for_each(|(_, output, _)| check_output(output, force)).map_err(Failure::from)?;
    Ok(sides)
}

/// The formats in this build: name, description, and whether packs can be exported to it.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, bool)> {
    let built = DataFormat::ALL.into_iter().filter(|format| format.is_built());
    built.map(|format| (format.name(), format.describe(), format.is_sink())).collect()
}

/// The name, the heading and the default of an option, and whether the option is a switch.
type OptionTuple = (&'static str, &'static str, Option<String>, bool);

/// The options of `convert`, `export`, `split`, `reorder`, `relabel` or of every edit.
#[pyfunction]
pub(crate) fn options(name: &str) -> Vec<OptionTuple> {
    fn of<O: Declared>() -> Vec<OptionTuple> {
        let tuple = |spec: &'static OptionSpec<O>| {
            let default = spec.default.map(|default| default(&O::default()));
            (spec.opt.python(), spec.heading, default, matches!(spec.takes, Takes::Nothing(_)))
        };
        O::OPTIONS.iter().map(tuple).collect()
    }
    match name {
        "convert" => of::<ConvertOptions>(),
        "add_field" => of::<AddFieldOptions>(),
        "append" => of::<AppendOptions>(),
        "build" => of::<BuildOptions>(),
        "compact" => of::<CompactOptions>(),
        "diff" => of::<DiffOptions>(),
        "edit" => of::<EditOptions>(),
        "relabel" => of::<RelabelOptions>(),
        "reorder" => of::<ReorderOptions>(),
        "split" => of::<SplitOptions>(),
        _ => of::<ExportOptions>(),
    }
}
