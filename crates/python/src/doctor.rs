//! The doctor's report, and its interpretation of times that Python measured.

use std::path::PathBuf;
use std::time::Duration;

use packds_doctor::{Case, Facts, Loading, MeasuredStep, Options, Overlap, Report, Step, Time, diagnose, examine};
use packds_reader::loader::LoaderBuilder;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::Failure;
use crate::loader_options::{get, must};
use crate::watch::{AfterInterrupt, watched};

/// The typical time, the fastest time and the slowest time in milliseconds, and whether there were too few batches.
type Millis = (f64, f64, f64, bool);

/// The doctor's report.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Diagnosis {
    report: Report,
}

#[pymethods]
impl Diagnosis {
    /// The report as JSON.
    fn document(&self) -> String {
        packds_doctor::document(&self.report).to_string()
    }

    /// The report as text for a terminal.
    fn text(&self) -> String {
        packds_doctor::text(&self.report, usize::MAX)
    }

    /// The plot as SVG.
    fn picture(&self, name: &str) -> String {
        packds_cli::doctor_picture(&self.report, name)
    }

    /// Writes the plot to a file. Replaces an existing file.
    fn plot(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| packds_cli::doctor_plot(&self.report, name, &path));
        Ok(written.map_err(Failure::Option)?)
    }
}

/// Examines a builder's loader with a training step that Python measured.
pub(crate) fn examined(
    py: Python<'_>,
    builder: LoaderBuilder,
    step: MeasuredStep,
    seconds: f64,
    check: bool,
) -> PyResult<Diagnosis> {
    let within = Duration::try_from_secs_f64(seconds).map_err(|error| Failure::Option(format!("seconds: {error}")))?;
    let options = Options { within, check, ..Options::default() };
    let report = watched(py, None, AfterInterrupt::Abandon, move |_| {
        examine(&builder, Step::Measured(step), &options, &mut |_| {})
    })?;
    let report = report.map_err(Failure::from)?;
    Ok(Diagnosis { report })
}

/// Reads a [`MeasuredStep`] from a dictionary whose keys are the names of its fields.
pub(crate) fn measured_step(step: &Bound<'_, PyDict>) -> PyResult<MeasuredStep> {
    Ok(MeasuredStep {
        step: must(step, "step").map(time)?,
        copy: must(step, "copy").map(time)?,
        pinned_copy: get(step, "pinned_copy")?,
        trained: get(step, "trained")?.map(time),
    })
}

const fn time((ms, low, high, is_short): Millis) -> Time {
    Time { ms, low, high, is_short }
}

const fn millis(time: Time) -> Millis {
    (time.ms, time.low, time.high, time.is_short)
}

/// Diagnoses a loader other than packds' own. The keys of `case` are the field names of `Case`, `Loading` and `Facts`.
#[pyfunction]
#[pyo3(name = "diagnose")]
pub(crate) fn diagnosed(case: &Bound<'_, PyDict>) -> PyResult<Diagnosis> {
    let ms = |name| must::<Millis>(case, name).map(time);
    let overlap = match must::<String>(case, "overlap")?.as_str() {
        "everything" => Overlap::Everything,
        "loading" => Overlap::Loading,
        "workers" => Overlap::Workers,
        _ => Overlap::Nothing,
    };
    let report = diagnose(Case {
        batch: must(case, "batch")?,
        overlap,
        step: ms("step")?,
        step_is_modelled: false,
        copy: ms("copy")?,
        loading: Loading {
            processed: ms("processed")?,
            decoded: ms("decoded")?,
            raw: ms("raw")?,
            page_cache: ms("page_cache")?,
            source: ms("source")?,
        },
        read: ms("read")?,
        trained: get::<Millis>(case, "trained")?.map(time),
        facts: Facts {
            threads: must(case, "threads")?,
            cores: must(case, "cores")?,
            pinned_copy: get(case, "pinned_copy")?,
            converted: get(case, "converted")?,
            left_out: get(case, "left_out")?,
            ..Facts::default()
        },
    });
    Ok(Diagnosis { report })
}

/// Records when a loader's batches were finished.
#[pyclass(module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Clock {
    clock: packds_doctor::Clock,
}

#[pymethods]
impl Clock {
    #[new]
    fn new(lead: usize) -> Self {
        Self { clock: packds_doctor::Clock::new(lead) }
    }

    fn begin_epoch(&mut self, ms: f64) {
        self.clock.begin_epoch(ms);
    }

    fn tick(&mut self, ms: f64) {
        self.clock.tick(ms);
    }

    fn end_epoch(&mut self) {
        self.clock.end_epoch();
    }

    fn batches(&self) -> usize {
        self.clock.batches()
    }

    /// The time per batch: milliseconds, the fastest and the slowest slice, and whether there were too few batches.
    fn time(&self) -> Option<Millis> {
        self.clock.time().map(millis)
    }

    /// The time per batch in the middle of an epoch.
    fn steady_time(&self) -> Option<Millis> {
        self.clock.steady_time().map(millis)
    }
}
