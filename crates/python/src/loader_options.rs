//! Converts a loader's options from Python.

use packds_system::{Named, counted, to_usize};
use std::num::NonZero;
use std::sync::Arc;

use packds_reader::Pack;
use packds_reader::augment::Augment;
use packds_reader::device::OwnSlots;
use packds_reader::loader::{Loader, LoaderBuilder};
use packds_reader::plan::{Choice, Integers, Last, Order, OrderKind, Ranks};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cuda::{self, GpuOptions, OnGpu};
use crate::failure::Failure;

/// Which samples are in an epoch.
#[derive(Debug)]
enum Chosen {
    All,
    Samples(Vec<u64>),
    Weights(Vec<f64>),
    /// Balances the values of this column.
    Balanced(String),
}

/// The names of the orders that are the same in every epoch.
pub(crate) fn fixed_orders() -> Vec<&'static str> {
    let orders = Order::ALL.into_iter().filter(|order| order.kind().is_some_and(OrderKind::is_fixed));
    orders.map(Order::name).collect()
}

/// A loader's builder, and the options that it does not contain yet, because they need the packs' data or the GPU.
#[derive(Debug)]
pub(crate) struct LoaderOptions {
    builder: LoaderBuilder,
    chosen: Chosen,
    /// The GPU that receives batches, by number or `simulated`, and its options.
    gpu: Option<(String, GpuOptions)>,
}

impl LoaderOptions {
    /// Reads the options from a dict. Fails if there is no pack.
    pub(crate) fn read(packs: &[Arc<Pack>], given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let Some((first, others)) = packs.split_first() else {
            return Err(Failure::Option("there is no pack to load".to_owned()).into());
        };
        let (rank, world) = must(given, "ranks")?;
        let last = if must(given, "pad_last")? { Last::Pad } else { Last::Drop };
        let order = named::<Order>(given, "order")?.with_window(get(given, "window")?).map_err(Failure::from)?;
        let mut builder = Loader::builder(Arc::clone(first))
            .batch(must(given, "batch")?)
            .order(order)
            .seed(must(given, "seed")?)
            .ranks(Ranks::new(rank, world).map_err(Failure::from)?)
            .last(last)
            .access(named(given, "access")?)
            .checksums(named(given, "checksums")?)
            .bad_samples(named(given, "bad_samples")?)
            .decode_images(true)
            .instance_masks(must(given, "instance_masks")?);
        if !must::<bool>(given, "lend")? {
            builder = builder.device(Arc::new(OwnSlots));
        }
        if let Some(lanes) = get(given, "lanes")? {
            builder = builder.lanes(lanes);
        }
        if let Some(fields) = get::<Vec<String>>(given, "fields")? {
            builder = builder.fields(&fields);
        }
        if let Some(words) = get::<String>(given, "augment")? {
            builder = builder.augment(Augment::parse(&words).map_err(Failure::from)?);
        }
        if let Some(bytes) = get(given, "memory_bytes")? {
            builder = builder.memory_bytes(bytes);
        }
        if let Some(threads) = at_least_1(given, "threads")? {
            builder = builder.threads(threads);
        }
        if let Some(slots) = at_least_1(given, "slots")? {
            builder = builder.slots(slots);
        }
        if let Some(prefetch) = at_least_1(given, "prefetch")? {
            builder = builder.prefetch(prefetch);
        }
        let gpu = match get(given, "gpu")? {
            Some(number) => Some((number, GpuOptions::read(given)?)),
            None => None,
        };
        let builder = mix(builder, others, &must::<Vec<f64>>(given, "proportions")?)?;
        Ok(Self { builder, chosen: Chosen::read(given)?, gpu })
    }

    /// The builder, and the decisions about a GPU.
    pub(crate) fn builder(self, packs: &[Arc<Pack>]) -> Result<(LoaderBuilder, Option<OnGpu>), Failure> {
        let choice = packs.first().map(|first| self.chosen.choice(first)).transpose()?.flatten();
        let builder = match choice {
            Some(choice) => self.builder.choice(choice),
            None => self.builder,
        };
        let Some((gpu, options)) = &self.gpu else {
            return Ok((builder, None));
        };
        let (builder, on_gpu) = cuda::onto_gpu(builder, gpu, *options)?;
        Ok((builder, Some(on_gpu)))
    }
}

impl Chosen {
    fn read(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(match (get(given, "samples")?, get(given, "weights")?, get(given, "balance")?) {
            (None, None, None) => Self::All,
            (Some(samples), None, None) => Self::Samples(samples),
            (None, Some(weights), None) => Self::Weights(weights),
            (None, None, Some(column)) => Self::Balanced(column),
            _ => {
                let text = "samples, weights and balance cannot be combined: use only one of them";
                return Err(Failure::Option(text.to_owned()).into());
            }
        })
    }

    fn choice(&self, pack: &Pack) -> Result<Option<Choice>, Failure> {
        let n = pack.n_samples();
        Ok(match self {
            Self::All => None,
            Self::Samples(samples) => Some(Choice::samples(n, samples.iter().copied())?),
            Self::Weights(weights) => {
                let found = weights.len();
                if u64::try_from(found) != Ok(n) {
                    let text = format!("expected one weight for each of {}, found {found}", counted(n, "sample"));
                    return Err(Failure::Option(text));
                }
                if weights.iter().all(|&weight| weight == 0.0) {
                    return Err(Failure::Option("weights: all are 0".to_owned()));
                }
                let place = |sample| to_usize(sample);
                let weight = |sample| weights.get(place(sample)).copied().unwrap_or(0.0);
                Some(Choice::weighted(n, weight)?)
            }
            Self::Balanced(column) => {
                let labels = Integers::open(pack, column)?;
                let choice = Choice::balanced(n, |sample| labels.at(sample))?;
                pack.still_good()?;
                Some(choice)
            }
        })
    }
}

/// Mixes in the other packs. A single pack needs no proportions.
fn mix(mut builder: LoaderBuilder, others: &[Arc<Pack>], proportions: &[f64]) -> Result<LoaderBuilder, Failure> {
    let (packs, found) = (others.len() + 1, proportions.len());
    if found != packs && (packs, found) != (1, 0) {
        let text = format!("expected a proportion for each of {packs} packs, found {found}");
        return Err(Failure::Option(text));
    }
    let Some((first, of_others)) = proportions.split_first() else {
        return Ok(builder);
    };
    builder = builder.proportion(*first);
    for (pack, proportion) in others.iter().zip(of_others) {
        builder = builder.mix(Arc::clone(pack), *proportion);
    }
    Ok(builder)
}

/// The value of a dict's entry. `None` if there is no such entry, or if its value is Python's None.
pub(crate) fn get<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match dict.get_item(name)? {
        Some(value) if !value.is_none() => value.extract::<T>().map(Some).map_err(|error| {
            let error: PyErr = error.into();
            Failure::Option(format!("{name}: {error}")).into()
        }),
        _ => Ok(None),
    }
}

/// A required entry of a dict.
pub(crate) fn must<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    get(dict, name)?.ok_or_else(|| Failure::Option(format!("{name} is missing")).into())
}

/// A required entry of a dict, which must be one of a few names.
pub(crate) fn named<T: Named>(dict: &Bound<'_, PyDict>, name: &str) -> PyResult<T> {
    let text: String = must(dict, name)?;
    Ok(text.parse().map_err(|error| Failure::Option(format!("{name}: {error}")))?)
}

fn at_least_1(dict: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<NonZero<usize>>> {
    let zero = || Failure::Option(format!("{name} is 0: it must be at least 1"));
    Ok(get(dict, name)?.map(|n| NonZero::new(n).ok_or_else(zero)).transpose()?)
}
