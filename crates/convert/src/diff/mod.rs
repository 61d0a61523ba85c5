//! Says how two packs differ: in their fields, their classes and their samples. No image is decoded.
//!
//! `fields` compares the schemas, `classes` the classes, `matches` finds the pairs of samples to compare, and `items` compares
//! the items of each pair.

mod classes;
mod fields;
mod items;
mod matches;

use std::collections::BTreeMap;
use std::path::PathBuf;

use packds_system::Opt;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use self::classes::ClassChanges;
use self::fields::Common;
pub use self::fields::FieldChanges;
pub use self::items::ItemChange;
use self::items::Pairs;
use self::matches::Matches;
use crate::edit::{KnownPaths, Taken};
use crate::error::ConvertError;
use crate::options::{Declared, OptionSpec, put, whole};
use crate::pipeline::Observer;

/// Samples that are compared before the user may stop.
const BATCH: u64 = 1024;

/// The options of a comparison.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Maximum number of samples, and of classes, that are listed for each kind of difference. All are counted.
    pub number: u64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { number: 10 }
    }
}

impl Declared for DiffOptions {
    const OPTIONS: &'static [OptionSpec<Self>] = &[OptionSpec::value(
        Opt::new("number"),
        "N",
        |o: &mut Self, text| put(&mut o.number, whole(text, 0, u64::MAX)),
        "List at most N samples of each kind, and at most N classes; all are counted",
    )
    .short('n')
    .default(|o| o.number.to_string())];
}

/// All of some things are counted, and the first ones are listed.
#[derive(Debug, Clone)]
pub struct Few<T> {
    /// Number of all things.
    pub n: u64,
    /// The first ones.
    pub first: Vec<T>,
    limit: u64,
}

impl<T> Few<T> {
    fn new(limit: u64) -> Self {
        Self { n: 0, first: Vec::new(), limit }
    }

    fn push(&mut self, thing: impl FnOnce() -> T) {
        if self.n < self.limit {
            self.first.push(thing());
        }
        self.n += 1;
    }
}

/// A sample that only one of the packs has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleName {
    /// Its number.
    pub sample: u64,
    /// Its path, if its pack has paths.
    pub path: Option<String>,
}

/// A sample that both packs have, with different items.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleChange {
    /// Its number in the first pack.
    pub before: u64,
    /// Its number and its path in the second pack.
    pub after: SampleName,
    /// The items that differ.
    pub items: Vec<ItemChange>,
}

/// How two packs differ.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiffReport {
    /// The first and the second pack.
    pub packs: [PathBuf; 2],
    /// Number of samples of each.
    pub n_samples: [u64; 2],
    /// How the fields differ.
    pub fields: FieldChanges,
    /// How the classes of each label field differ.
    pub classes: Vec<ClassChanges>,
    /// Whether samples are matched by their paths. Otherwise, they are matched by their contents.
    pub by_path: bool,
    /// The samples that only the second pack has.
    pub added: Few<SampleName>,
    /// The samples that only the first pack has.
    pub removed: Few<SampleName>,
    /// The samples that both packs have, with different items.
    pub changed: Few<SampleChange>,
    /// Number of changed samples, by field.
    pub by_field: BTreeMap<String, u64>,
    /// Whether the samples that both packs have are in the same order.
    pub same_order: bool,
}

impl DiffReport {
    /// Number of samples that both packs have with equal items.
    #[must_use]
    pub fn n_equal(&self) -> u64 {
        self.n_samples[1] - self.added.n - self.changed.n
    }

    /// Whether no difference was found.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.fields.is_empty()
            && self.classes.iter().all(ClassChanges::is_empty)
            && self.added.n + self.removed.n + self.changed.n == 0
            && self.same_order
    }
}

impl SampleName {
    fn json(&self) -> Value {
        json!({"sample": self.sample, "path": self.path})
    }
}

impl Serialize for DiffReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = |few: &Few<SampleName>| -> Value { few.first.iter().map(SampleName::json).collect() };
        let changed = self.changed.first.iter().map(|change| {
            json!({
                "sample": change.before,
                "new_sample": change.after.sample,
                "path": change.after.path,
                "fields": change.items.iter().map(ItemChange::json).collect::<Value>(),
            })
        });
        json!({
            "packs": self.packs.each_ref().map(|path| path.to_string_lossy()),
            "is_equal": self.is_equal(),
            "n_samples": self.n_samples,
            "fields": self.fields.json(),
            "classes": self.classes.iter().map(ClassChanges::json).collect::<Value>(),
            "matched_by": if self.by_path { "path" } else { "content" },
            "same_order": self.same_order,
            "n_equal": self.n_equal(),
            "n_added": self.added.n,
            "n_removed": self.removed.n,
            "n_changed": self.changed.n,
            "n_changed_by_field": self.by_field,
            "added": names(&self.added),
            "removed": names(&self.removed),
            "changed": changed.collect::<Value>(),
        })
        .serialize(serializer)
    }
}

/// Compares two packs. Samples are matched by their paths, or by their contents if a pack has no paths. Needs at most 32
/// bytes of memory for each sample of both packs.
///
/// # Errors
/// An error in the bytes of a pack, or that the user stopped.
pub fn diff<D: AsRef<[u8]>>(
    packs: &[Taken<'_, D>; 2],
    options: &DiffOptions,
    observer: &dyn Observer,
) -> Result<DiffReport, ConvertError> {
    let [one, two] = packs;
    let limit = options.number;
    let (fields, common) = Common::of(one.pack.schema(), two.pack.schema());
    let classes = classes::compare(packs, &common, limit)?;
    let by_path = packs.iter().all(|taken| taken.pack.has_paths());
    let found = match by_path {
        true => matches::by_path(packs, observer)?,
        false => matches::by_content(packs, &common, observer)?,
    };
    let mut report = DiffReport {
        packs: [one.path.to_owned(), two.path.to_owned()],
        n_samples: [one.pack.n_samples(), two.pack.n_samples()],
        fields,
        classes: Vec::new(),
        by_path,
        added: Few::new(limit),
        removed: Few::new(limit),
        changed: Few::new(limit),
        by_field: BTreeMap::new(),
        same_order: true,
    };
    let mut pairs = Pairs::new(packs, &common, &classes.ids, by_path)?;
    compare_all(&mut pairs, &found, &mut report, observer)?;
    found.unmatched().for_each(|sample| report.removed.push(|| SampleName { sample, path: None }));
    name(one, report.removed.first.iter_mut())?;
    let changed = report.changed.first.iter_mut().map(|change| &mut change.after);
    name(two, report.added.first.iter_mut().chain(changed))?;
    report.classes = classes.changes;
    Ok(report)
}

/// Compares every pair, in the order of the second pack.
fn compare_all<D: AsRef<[u8]>>(
    pairs: &mut Pairs<'_, D>,
    found: &Matches,
    report: &mut DiffReport,
    observer: &dyn Observer,
) -> Result<(), ConvertError> {
    let [_, n] = report.n_samples;
    let (mut least, mut start) = (0, 0);
    while start < n {
        observer.check()?;
        let end = n.min(start + BATCH);
        let mut batch = Vec::new();
        for after in start..end {
            match found.of(after) {
                Some(before) => {
                    report.same_order &= before >= least;
                    least = before;
                    batch.push((before, after));
                }
                None => report.added.push(|| SampleName { sample: after, path: None }),
            }
        }
        for (before, after, items) in pairs.compare(&batch)? {
            for item in &items {
                *report.by_field.entry(item.field.clone()).or_default() += 1;
            }
            report.changed.push(|| SampleChange { before, after: SampleName { sample: after, path: None }, items });
        }
        start = end;
    }
    Ok(())
}

/// Sets the paths of listed samples.
fn name<'a, D: AsRef<[u8]>>(
    taken: &Taken<'_, D>,
    names: impl Iterator<Item = &'a mut SampleName>,
) -> Result<(), ConvertError> {
    // A few paths are looked up one by one. Otherwise, all are read once.
    const FEW: usize = 1000;
    let names: Vec<&mut SampleName> = names.collect();
    let known = (names.len() > FEW).then(|| KnownPaths::of(taken)).transpose()?;
    for name in names {
        let path = match &known {
            Some(known) if taken.pack.has_paths() => Some(known.path(name.sample).to_vec()),
            Some(_) => None,
            None => taken.pack.path(name.sample).map_err(|error| taken.located(error))?,
        };
        name.path = path.map(|path| String::from_utf8_lossy(&path).into_owned());
    }
    Ok(())
}

/// The number of a sample that has no partner.
const NONE: u64 = u64::MAX;

fn index(sample: u64) -> usize {
    packds_system::to_usize(sample)
}
