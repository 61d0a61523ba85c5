//! A loader as a Python class.

use std::sync::Arc;

use packds_reader::loader::{self, LoaderBuilder};
use packds_reader::plan::{EpochPlan, MixtureState, State};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::batch::Count;
use crate::cuda::OnGpu;
use crate::doctor::{Diagnosis, examined, measured_step};
use crate::epoch::Epoch;
use crate::failure::Failure;
use crate::loader_options::LoaderOptions;
use crate::pack::Pack;

/// A loader of one or several packs, and the builder for more loaders with the same options.
#[pyclass(frozen, module = "packds._packds")]
#[derive(Debug)]
pub(crate) struct Loader {
    loader: loader::Loader,
    builder: LoaderBuilder,
    count: Count,
    on_gpu: Option<OnGpu>,
}

impl Loader {
    fn made(builder: LoaderBuilder, on_gpu: Option<OnGpu>) -> Result<Self, Failure> {
        Ok(Self { loader: builder.clone().build()?, builder, count: Count::default(), on_gpu })
    }

    /// The plan of an epoch. The loader must have only one pack.
    fn plan(&self, epoch: u32) -> Result<EpochPlan, Failure> {
        Ok(self.loader.schedule().epoch(epoch)?)
    }

    fn opened(&self, epoch: loader::Epoch) -> Epoch {
        Epoch::new(epoch, self.count.clone(), self.loader.stats().slots)
    }
}

#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, packs: Vec<PyRef<'_, Pack>>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let packs: Vec<Arc<packds_reader::Pack>> = packs.iter().map(|pack| pack.shared()).collect();
        let options = LoaderOptions::read(&packs, options)?;
        Ok(py.detach(|| {
            let (builder, on_gpu) = options.builder(&packs)?;
            Self::made(builder, on_gpu)
        })?)
    }

    /// A loader with the same options that resumes a state.
    fn resumed(&self, py: Python<'_>, state: &str) -> PyResult<Self> {
        if self.loader.mixture().is_some() {
            // The state of a mixture does not determine any options.
            MixtureState::from_json(state).map_err(Failure::from)?;
            return Ok(py.detach(|| Self::made(self.builder.clone(), self.on_gpu.clone()))?);
        }
        let state = State::from_json(state).map_err(Failure::from)?;
        Ok(py.detach(|| Self::made(self.builder.clone().resume(&state), self.on_gpu.clone()))?)
    }

    /// A loader with the same options and its own ring. If the dataset is on the GPU, both loaders share it.
    fn twin(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(py.detach(|| Self::made(self.builder.clone(), self.on_gpu.clone()))?)
    }

    /// The batches of an epoch.
    fn epoch(&self, py: Python<'_>, number: u32) -> PyResult<Epoch> {
        let epoch = py.detach(|| self.loader.epoch(number).map_err(Failure::from))?;
        Ok(self.opened(epoch))
    }

    /// The batches after a saved state.
    fn epoch_at(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let epoch = py.detach(|| {
            let epoch = if self.loader.mixture().is_some() {
                self.loader.epoch_at_mixture(&MixtureState::from_json(state)?)?
            } else {
                self.loader.epoch_at(&State::from_json(state)?)?
            };
            Ok::<_, Failure>(epoch)
        })?;
        Ok(self.opened(epoch))
    }

    /// The state before the first step of an epoch.
    fn state_of(&self, epoch: u32) -> PyResult<String> {
        if let Some(mixture) = self.loader.mixture() {
            let first = u64::from(epoch).saturating_mul(mixture.steps_per_epoch());
            return Ok(mixture.state(first).to_json());
        }
        Ok(self.plan(epoch)?.state(0).to_json())
    }

    /// Number of batches in an epoch.
    fn steps(&self, epoch: u32) -> PyResult<u64> {
        match self.loader.mixture() {
            Some(mixture) => Ok(mixture.steps_per_epoch()),
            None => Ok(self.plan(epoch)?.steps()),
        }
    }

    /// Number of samples in an epoch over all ranks, before the last batch is dropped or padded. For a mixture, the
    /// number of samples in all packs.
    fn samples(&self, epoch: u32) -> PyResult<u64> {
        if self.loader.mixture().is_some() {
            let packs = self.loader.packs().iter();
            return Ok(packs.map(|pack| pack.n_samples()).sum());
        }
        Ok(self.plan(epoch)?.len())
    }

    /// The fields of a batch: name, view, element type, and the shape of a sample, if it is fixed.
    fn fields(&self) -> Vec<(String, u32, &'static str, Option<Vec<usize>>)> {
        let fields = self.loader.fields().iter();
        fields
            .map(|f| match &f.finish {
                None => (f.name.clone(), f.view, f.dtype.name(), f.shape.clone()),
                Some(made) => (f.name.clone(), f.view, made.dtype.name(), Some(made.shape())),
            })
            .collect()
    }

    /// Whether the images of each batch have the size of its bucket.
    #[getter]
    fn has_buckets(&self) -> bool {
        self.loader.has_buckets()
    }

    /// The tier of batches on a GPU. `None` without a GPU.
    #[getter]
    fn tier(&self) -> Option<&'static str> {
        self.on_gpu.as_ref().map(|on_gpu| on_gpu.tier)
    }

    /// How the pack is read: the access path, the engine, and why.
    fn access(&self) -> (&'static str, &'static str, String) {
        let report = self.loader.access();
        (report.access.name(), report.engine, report.reason.clone())
    }

    /// Decisions that were made by default, and warnings about the options.
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut notices = py.detach(|| self.loader.notices().map_err(Failure::from))?;
        if let Some(on_gpu) = &self.on_gpu {
            notices.extend(on_gpu.why.clone());
            notices.extend(on_gpu.copies.clone());
        }
        Ok(notices)
    }

    /// The notices about lost accuracy.
    fn doubts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(py.detach(|| self.loader.doubts().map_err(Failure::from))?)
    }

    /// The quality of the order, as JSON.
    fn shuffle_report(&self, py: Python<'_>) -> PyResult<String> {
        let report = py.detach(|| self.loader.shuffle_report().map_err(Failure::from))?;
        Ok(report.to_json())
    }

    /// Finds the training bottleneck, with a training step that Python measured.
    fn examine(&self, py: Python<'_>, step: &Bound<'_, PyDict>, seconds: f64, check: bool) -> PyResult<Diagnosis> {
        let step = measured_step(step)?;
        examined(py, self.builder.clone(), step, seconds, check)
    }

    /// Tuning history: for each entry, the batches delivered, the threads, the batches prepared ahead, and the reason.
    fn tuning(&self) -> Vec<(u64, usize, usize, String)> {
        let entries = self.loader.tuning().into_iter();
        entries.map(|entry| (entry.batches, entry.threads, entry.prefetch, entry.why)).collect()
    }

    /// Statistics so far, as JSON. Durations are in seconds, except those in `fetch`, which are in nanoseconds.
    fn stats(&self) -> String {
        let stats = self.loader.stats();
        let fetch = stats.fetch;
        let document: Value = json!({
            "batches": stats.batches,
            "samples": stats.samples,
            "bytes": stats.bytes,
            "bad_samples": stats.bad_samples,
            "host_decoded": stats.host_decoded,
            "consumer_waited": stats.consumer_waited.as_secs_f64(),
            "consumer_busy": stats.consumer_busy.as_secs_f64(),
            "threads_busy": stats.threads_busy.as_secs_f64(),
            "threads_waited_for_disk": stats.threads_waited_for_disk.as_secs_f64(),
            "threads_waited_for_consumer": stats.threads_waited_for_consumer.as_secs_f64(),
            "threads": stats.threads,
            "prefetch": stats.prefetch,
            "slots": stats.slots,
            "slot_bytes": stats.slot_bytes,
            "numa_node": stats.numa_node,
            "table_bytes": stats.table_bytes,
            "batches_held": self.count.now(),
            "tier": self.tier(),
            "copies": self.on_gpu.as_ref().and_then(|on_gpu| on_gpu.copies.as_deref()),
            "fetch": {
                "bytes_read": fetch.bytes_read,
                "reads": fetch.reads,
                "wait_ns": fetch.wait_ns,
                "busy_ns": fetch.busy_ns,
                "bytes_checked": fetch.bytes_checked,
                "chunks_checked": fetch.chunks_checked,
                "samples_checked": fetch.samples_checked,
                "chunks_evicted": fetch.chunks_evicted,
                "buffers": fetch.buffers,
                "buffers_in_use": fetch.buffers_in_use,
            },
        });
        document.to_string()
    }
}
