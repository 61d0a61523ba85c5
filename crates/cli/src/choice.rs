//! Selects samples by number, class and condition.

use std::collections::HashSet;

use clap::Args;
use packds_reader::Pack;
use serde_json::{Value, json};

use crate::Failure;
use crate::label::samples_of_class;
use crate::samples::SampleList;

/// The options that choose samples. A sample must meet all of the given options.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Only these samples: numbers and ranges, such as 3,5-8, or a file with one of them per line
    #[arg(long, value_name = "LIST")]
    samples: Option<SampleList>,
    /// Only samples of this class or with a box of it, given by its name or its id
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Only samples that meet this condition, such as "source_width >= 512 and label in ('cat', 'dog')"
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
}

impl Choice {
    /// Whether the samples are given by number.
    pub(crate) fn is_list(&self) -> bool {
        self.samples.is_some()
    }

    /// The options as JSON, for the provenance of a pack. A list of samples may be long, so it is only mentioned.
    pub(crate) fn described(&self) -> Value {
        json!({"samples": self.samples.as_ref().map(|_| "listed"), "class": self.class, "where": self.condition})
    }

    /// The chosen samples. Samples given by number are in the order given, others in file order. `None` means all.
    pub(crate) fn of(&self, pack: &Pack) -> Result<Option<Vec<u64>>, Failure> {
        let listed = self.samples.as_ref().map(|list| list.within(pack.n_samples())).transpose();
        // Commands that take several packs do not say elsewhere which pack is meant.
        let mut chosen = listed.map_err(|failure| failure.at(pack.file_path()))?;
        if let Some(class) = &self.class {
            chosen = Some(both(chosen, samples_of_class(pack, class)?));
        }
        if let Some(condition) = &self.condition {
            chosen = Some(both(chosen, pack.select(condition)?));
        }
        Ok(chosen)
    }

    /// The chosen samples, in file order and without duplicates. `None` means all.
    pub(crate) fn in_file_order(&self, pack: &Pack) -> Result<Option<Vec<u64>>, Failure> {
        let mut chosen = self.of(pack)?;
        if let Some(samples) = &mut chosen {
            samples.sort_unstable();
            samples.dedup();
        }
        Ok(chosen)
    }
}

/// The error if the options choose no sample.
pub(crate) fn nothing_chosen(pack: &Pack) -> Failure {
    let what = if pack.n_samples() == 0 { "the pack is empty" } else { "no sample meets these options" };
    Failure::not_run(what).at(pack.file_path())
}

/// The samples that are in both sets, in the order of `chosen`.
fn both(chosen: Option<Vec<u64>>, found: Vec<u64>) -> Vec<u64> {
    let Some(mut chosen) = chosen else { return found };
    let found: HashSet<u64> = found.into_iter().collect();
    chosen.retain(|sample| found.contains(sample));
    chosen
}
