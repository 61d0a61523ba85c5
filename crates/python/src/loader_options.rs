//! The options of a loader, from the words of Python.

use packds_system::to_usize;
use std::num::NonZero;
use std::sync::Arc;

use packds_reader::augment::Augment;
use packds_reader::device::OwnSlots;
use packds_reader::loader::{BadSamples, Loader, LoaderBuilder};
use packds_reader::plan::{Choice, Integers, Last, Order, Ranks};
use packds_reader::{Access, Checksums, Pack};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cuda::{self, Asked, OnGpu};
use crate::failure::Failure;

/// Which samples an epoch has.
#[derive(Debug)]
enum Chosen {
    All,
    Samples(Vec<u64>),
    Weights(Vec<f64>),
    /// Each value of this column equally often.
    Balanced(String),
}

/// All that Python says about a loader. Nothing of it is checked yet.
#[derive(Debug)]
pub(crate) struct LoaderOptions {
    batch: u32,
    order: String,
    window: Option<u32>,
    lanes: Option<u32>,
    seed: u64,
    ranks: (u32, u32),
    pad_last: bool,
    fields: Option<Vec<String>>,
    augment: Option<String>,
    threads: Option<usize>,
    memory_bytes: Option<u64>,
    slots: Option<usize>,
    prefetch: Option<usize>,
    access: String,
    checksums: String,
    bad_samples: String,
    lend: bool,
    /// The GPU that batches go to, by its number.
    gpu: Option<String>,
    /// Where the images lie then.
    tier: String,
    /// What the GPU's driver registers.
    register: String,
    /// Who decodes JPEG files.
    jpeg: String,
    chosen: Chosen,
    proportions: Vec<f64>,
}

impl LoaderOptions {
    /// Reads them from a dict, whose keys are the fields' names.
    pub(crate) fn read(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let samples: Option<Vec<u64>> = get(dict, "samples")?;
        let weights: Option<Vec<f64>> = get(dict, "weights")?;
        let balance: Option<String> = get(dict, "balance")?;
        let chosen = match (samples, weights, balance) {
            (None, None, None) => Chosen::All,
            (Some(samples), None, None) => Chosen::Samples(samples),
            (None, Some(weights), None) => Chosen::Weights(weights),
            (None, None, Some(column)) => Chosen::Balanced(column),
            _ => {
                let text = "weights exclude samples and balance: give one of them";
                return Err(Failure::Option(text.to_owned()).into());
            }
        };
        Ok(Self {
            batch: must(dict, "batch")?,
            order: must(dict, "order")?,
            window: get(dict, "window")?,
            lanes: get(dict, "lanes")?,
            seed: must(dict, "seed")?,
            ranks: must(dict, "ranks")?,
            pad_last: must(dict, "pad_last")?,
            fields: get(dict, "fields")?,
            augment: get(dict, "augment")?,
            threads: get(dict, "threads")?,
            memory_bytes: get(dict, "memory_bytes")?,
            slots: get(dict, "slots")?,
            prefetch: get(dict, "prefetch")?,
            access: must(dict, "access")?,
            checksums: must(dict, "checksums")?,
            bad_samples: must(dict, "bad_samples")?,
            lend: must(dict, "lend")?,
            gpu: get(dict, "gpu")?,
            tier: must(dict, "tier")?,
            register: must(dict, "register")?,
            jpeg: must(dict, "jpeg")?,
            chosen,
            proportions: must(dict, "proportions")?,
        })
    }

    /// A loader's builder with these options for these packs, of which there is at least one; and what was decided, on a GPU.
    pub(crate) fn builder(
        &self,
        packs: &[Arc<Pack>],
    ) -> Result<(LoaderBuilder, Option<OnGpu>), Failure> {
        let builder = self.on_host(packs)?;
        let Some(gpu) = &self.gpu else {
            return Ok((builder, None));
        };
        let asked = Asked {
            tier: &self.tier,
            register: &self.register,
            jpeg: &self.jpeg,
        };
        let (builder, on_gpu) = cuda::onto_gpu(builder, gpu, asked)?;
        Ok((builder, Some(on_gpu)))
    }

    fn on_host(&self, packs: &[Arc<Pack>]) -> Result<LoaderBuilder, Failure> {
        let Some((first, others)) = packs.split_first() else {
            return Err(Failure::Option("there is no pack to load".to_owned()));
        };
        let (rank, world) = self.ranks;
        let last = if self.pad_last { Last::Pad } else { Last::Drop };
        let mut builder = Loader::builder(Arc::clone(first))
            .batch(self.batch)
            .order(self.order()?)
            .seed(self.seed)
            .ranks(Ranks::new(rank, world)?)
            .last(last)
            .access(self.access()?)
            .checksums(self.checksums()?)
            .bad_samples(self.bad_samples()?)
            .decode_images(true);
        if !self.lend {
            builder = builder.device(Arc::new(OwnSlots));
        }
        if let Some(lanes) = self.lanes {
            builder = builder.lanes(lanes);
        }
        if let Some(fields) = &self.fields {
            builder = builder.fields(fields);
        }
        if let Some(words) = &self.augment {
            builder = builder.augment(Augment::parse(words)?);
        }
        if let Some(bytes) = self.memory_bytes {
            builder = builder.memory_bytes(bytes);
        }
        if let Some(threads) = at_least_1("threads", self.threads)? {
            builder = builder.threads(threads);
        }
        if let Some(slots) = at_least_1("slots", self.slots)? {
            builder = builder.slots(slots);
        }
        if let Some(prefetch) = at_least_1("prefetch", self.prefetch)? {
            builder = builder.prefetch(prefetch);
        }
        if let Some(choice) = self.choice(first)? {
            builder = builder.choice(choice);
        }
        self.mix(builder, others)
    }

    fn mix(
        &self,
        mut builder: LoaderBuilder,
        others: &[Arc<Pack>],
    ) -> Result<LoaderBuilder, Failure> {
        let (packs, found) = (others.len() + 1, self.proportions.len());
        // One pack needs none.
        if found != packs && (packs, found) != (1, 0) {
            let text = format!("expected a proportion for each of {packs} packs, found {found}");
            return Err(Failure::Option(text));
        }
        let Some((first, of_others)) = self.proportions.split_first() else {
            return Ok(builder);
        };
        builder = builder.proportion(*first);
        for (pack, proportion) in others.iter().zip(of_others) {
            builder = builder.mix(Arc::clone(pack), *proportion);
        }
        Ok(builder)
    }

    fn order(&self) -> Result<Order, Failure> {
        let order = match self.order.as_str() {
            "auto" => Order::Auto,
            "sequential" => Order::Sequential,
            "random" => Order::Random,
            "chunks" => Order::Chunks,
            "window" => Order::Window {
                chunks: self.window,
            },
            other => {
                let known = "auto, random, window, chunks or sequential";
                return Err(unknown("order", known, other));
            }
        };
        match (order, self.window) {
            // As on the command line: a window means the order `window`.
            (Order::Auto, Some(chunks)) => Ok(Order::Window {
                chunks: Some(chunks),
            }),
            (Order::Auto | Order::Window { .. }, _) | (_, None) => Ok(order),
            (_, Some(_)) => Err(Failure::Option(format!(
                "window is for the order window, found {:?}",
                self.order
            ))),
        }
    }

    fn access(&self) -> Result<Access, Failure> {
        match self.access.as_str() {
            "auto" => Ok(Access::Auto),
            "mapped" => Ok(Access::Mapped),
            "direct" => Ok(Access::Direct),
            other => Err(unknown("access", "auto, mapped or direct", other)),
        }
    }

    fn checksums(&self) -> Result<Checksums, Failure> {
        match self.checksums.as_str() {
            "first_touch" => Ok(Checksums::FirstTouch),
            "always" => Ok(Checksums::Always),
            "off" => Ok(Checksums::Off),
            other => Err(unknown("checksums", "first_touch, always or off", other)),
        }
    }

    fn bad_samples(&self) -> Result<BadSamples, Failure> {
        match self.bad_samples.as_str() {
            "error" => Ok(BadSamples::Error),
            "skip" => Ok(BadSamples::Skip),
            "substitute" => Ok(BadSamples::Substitute),
            other => Err(unknown("bad_samples", "error, skip or substitute", other)),
        }
    }

    fn choice(&self, pack: &Pack) -> Result<Option<Choice>, Failure> {
        let n = pack.n_samples();
        Ok(match &self.chosen {
            Chosen::All => None,
            Chosen::Samples(samples) => Some(Choice::samples(n, samples.iter().copied())?),
            Chosen::Weights(weights) => {
                let found = weights.len();
                if u64::try_from(found) != Ok(n) {
                    let text = format!("expected a weight for each of {n} samples, found {found}");
                    return Err(Failure::Option(text));
                }
                if weights.iter().all(|&weight| weight == 0.0) {
                    return Err(Failure::Option("weights: all are 0".to_owned()));
                }
                let place = |sample| to_usize(sample);
                let weight = |sample| weights.get(place(sample)).copied().unwrap_or(0.0);
                Some(Choice::weighted(n, weight)?)
            }
            Chosen::Balanced(column) => {
                let labels = Integers::open(pack, column)?;
                let choice = Choice::balanced(n, |sample| labels.at(sample))?;
                pack.still_good()?;
                Some(choice)
            }
        })
    }
}

/// An entry; none where it is missing or None.
pub(crate) fn get<'py, T: FromPyObjectOwned<'py>>(
    dict: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    match dict.get_item(name)? {
        Some(value) if !value.is_none() => value.extract::<T>().map(Some).map_err(|error| {
            let error: PyErr = error.into();
            Failure::Option(format!("{name}: {error}")).into()
        }),
        _ => Ok(None),
    }
}

/// An entry that must be there.
pub(crate) fn must<'py, T: FromPyObjectOwned<'py>>(
    dict: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    get(dict, name)?.ok_or_else(|| Failure::Option(format!("{name} is missing")).into())
}

fn unknown(name: &str, known: &str, found: &str) -> Failure {
    Failure::Option(format!("{name}: expected {known}, found {found:?}"))
}

fn at_least_1(name: &str, n: Option<usize>) -> Result<Option<NonZero<usize>>, Failure> {
    match n {
        None => Ok(None),
        Some(n) => NonZero::new(n)
            .map(Some)
            .ok_or_else(|| Failure::Option(format!("{name} is 0: it must be at least 1"))),
    }
}
