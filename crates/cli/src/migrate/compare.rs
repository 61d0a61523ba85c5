//! Compares samples of a pack with what the other library reads from the source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use packds_convert::DataFormat;
use packds_convert::source::{ListOptions, Listing};
use packds_format::{Role, Scalar};
use packds_reader::Pack;
use packds_system::to_u64;
use serde::Serialize;
use serde_json::json;

use super::reader::{Reader, Said};
use super::values::Compared;
use crate::escape::escape_path;
use crate::failure::Failure;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::samples::spread;
use crate::task::Amount;

/// The file in a folder of MDS and LitData.
const INDEX: &str = "index.json";
/// The interpreter, unless the user names another.
const PYTHON: &str = "python3";
/// Maximum number of differences that are kept.
const KEPT_DIFFERENCES: u64 = 1000;

/// What a pack is compared with.
pub(super) struct Against<'a> {
    pub(super) python: Option<&'a Path>,
    pub(super) format: DataFormat,
    pub(super) listing: &'a Listing,
    /// Empty if the source has no splits.
    pub(super) split: &'a str,
    pub(super) list: &'a ListOptions,
    /// The number of samples, and the seed of their choice.
    pub(super) samples: (u64, u64),
}

/// The result of a comparison.
#[derive(Debug, Default, Serialize)]
pub(super) struct Comparison {
    library: Option<String>,
    version: Option<String>,
    /// Why nothing was compared.
    pub(super) reason: Option<String>,
    /// Number of samples compared.
    pub(super) n_samples: u64,
    /// The fields compared.
    pub(super) fields: Vec<String>,
    /// The fields that were not compared, or only for some samples.
    pub(super) skipped: Vec<Skipped>,
    pub(super) n_differences: u64,
    pub(super) differences: Vec<Difference>,
}

#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) field: String,
    pub(super) reason: String,
}

/// A value of the pack that differs from that of the source.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) sample: u64,
    pub(super) source_id: u64,
    pub(super) field: String,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Comparison {
    fn none(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// The name of the library, with its version.
    pub(super) fn library_name(&self) -> String {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        format!("{}{version}", self.library.as_deref().unwrap_or_default())
    }
}

/// Compares a pack with its source.
pub(super) fn compare(against: &Against<'_>, output: &Path, shown: &Shown) -> Result<Comparison, Failure> {
    let (n, seed) = against.samples;
    if n == 0 {
        return Ok(Comparison::none("--samples is 0"));
    }
    let root = match against.root() {
        Ok(root) => root,
        Err(reason) => return Ok(Comparison::none(reason)),
    };
    with_pack(output, |pack| {
        let fields = Compared::all(pack)?;
        let samples = numbered(pack, &spread(n, pack.n_samples(), seed))?;
        let run = Run { against, pack, samples, fields, comparison: Comparison::default(), n_values: 0 };
        run.run(&root, shown)
    })
}

impl Against<'_> {
    /// The folder or file that the library opens, or why there is none.
    fn root(&self) -> Result<PathBuf, String> {
        let root = self.listing.root();
        if self.format == DataFormat::Beton {
            let several = "only a single .beton file can be compared; pass each by itself";
            return if root.is_file() { Ok(root.to_owned()) } else { Err(several.to_owned()) };
        }
        let split = self.list.split.as_deref().filter(|_| self.split.is_empty()).unwrap_or(self.split);
        let folders = [root.to_owned(), root.join(split), root.parent().unwrap_or(root).to_owned()];
        let has_index = |folder: &PathBuf| folder.join(INDEX).is_file();
        folders.into_iter().find(has_index).ok_or_else(|| format!("{} has no {INDEX}", escape_path(root)))
    }

    /// The column that the user named for a field.
    fn key(&self, role: Option<Role>) -> Option<&str> {
        match role? {
            Role::Image => self.list.image_key.as_deref(),
            Role::Mask => self.list.mask_key.as_deref(),
            Role::Label | Role::Labels => self.list.label_key.as_deref(),
            _ => None,
        }
    }
}

/// Samples by their numbers in the source.
fn numbered(pack: &Pack, samples: &[u64]) -> Result<BTreeMap<u64, u64>, Failure> {
    let none = || Failure::not_run("the pack has no column `source_id`").at(pack.file_path());
    let (number, field) = pack.schema().by_role(Role::SourceId, None).ok_or_else(none)?;
    let mut numbered = BTreeMap::new();
    for sample in samples {
        let item = pack.located(pack.item(number, *sample))?;
        let id = Scalar::of(field.dtype, &item).and_then(Scalar::integer).and_then(|id| u64::try_from(id).ok());
        numbered.insert(id.ok_or_else(none)?, *sample);
    }
    Ok(numbered)
}

/// A comparison in progress.
struct Run<'a> {
    against: &'a Against<'a>,
    pack: &'a Pack,
    /// The samples of the pack, by their numbers in the source.
    samples: BTreeMap<u64, u64>,
    fields: Vec<Compared<'a>>,
    comparison: Comparison,
    n_values: u64,
}

impl Run<'_> {
    fn run(mut self, root: &Path, shown: &Shown) -> Result<Comparison, Failure> {
        self.leave_out_label_sets();
        let python = self.against.python.unwrap_or(Path::new(PYTHON));
        let mut reader = match Reader::start(python, self.request(root)) {
            Ok(reader) => reader,
            Err(error) if self.against.python.is_some() => {
                return Err(Failure::not_run(format!("cannot run: {error}")).at(python));
            }
            Err(error) => return Ok(Comparison::none(format!("cannot run {PYTHON}: {error}; pass --python"))),
        };
        let total = to_u64(self.samples.len());
        let mut last = None;
        loop {
            match reader.next(shown)? {
                Said::Missing { missing, python } => {
                    return Ok(Comparison::none(format!("`{missing}` is not installed for {python}; pass --python")));
                }
                Said::Opened { library, version, n_samples } => {
                    (self.comparison.library, self.comparison.version) = (Some(library), version);
                    if !self.has_all(n_samples)? {
                        return Ok(self.comparison);
                    }
                }
                Said::Skipped { field, skipped } => self.skip(field, skipped),
                Said::Value { sample, field, values } => {
                    if last.replace(sample) != Some(sample) {
                        self.comparison.n_samples += 1;
                        let done = self.comparison.n_samples;
                        shown.report(Amount::Of { done, total, thing: "sample", bytes: 0 });
                    }
                    if !self.value(sample, &field, &values)? {
                        return Err(reader.failed(&format!("gave a value of `{field}` that was not asked for")));
                    }
                }
                Said::Done { .. } => break,
            }
        }
        self.finish(&reader)
    }

    /// Removes sets of labels. The source may have them in many forms.
    fn leave_out_label_sets(&mut self) {
        let (sets, fields) = std::mem::take(&mut self.fields).into_iter().partition(|f| f.role() == Some(Role::Labels));
        self.fields = fields;
        let sets: Vec<Compared<'_>> = sets;
        for field in sets {
            self.skip(field.name().to_owned(), "sets of labels are not compared".to_owned());
        }
    }

    fn request(&self, root: &Path) -> String {
        let fields: Vec<_> = self.fields.iter().map(|field| field.wanted(self.against.key(field.role()))).collect();
        let samples: Vec<&u64> = self.samples.keys().collect();
        let (format, path) = (self.against.format.name(), root.to_string_lossy());
        json!({ "format": format, "path": path, "fields": fields, "samples": samples }).to_string()
    }

    /// Whether the source has as many samples for the library as for packds.
    fn has_all(&mut self, n_samples: u64) -> Result<bool, Failure> {
        let listed = to_u64(self.against.listing.len());
        if n_samples == listed {
            return Ok(true);
        }
        let counts = format!("expected {n_samples} samples, which the library has, found {listed}");
        if self.against.split.is_empty() && self.against.list.split.is_none() {
            return Err(Failure::bad_data(counts).at(self.pack.file_path()));
        }
        self.comparison.reason = Some(format!("the split is a part of the dataset of the library: {counts}"));
        Ok(false)
    }

    fn skip(&mut self, field: String, reason: String) {
        self.comparison.skipped.push(Skipped { field, reason });
    }

    /// Compares a value. Returns `false` if it was not asked for.
    fn value(&mut self, source_id: u64, name: &str, values: &[String]) -> Result<bool, Failure> {
        let sample = self.samples.get(&source_id).copied();
        let Some((sample, field)) = sample.zip(self.fields.iter_mut().find(|field| field.name() == name)) else {
            return Ok(false);
        };
        self.n_values += 1;
        let own = field.own(self.pack, sample)?;
        if !self.comparison.fields.iter().any(|known| known == name) {
            self.comparison.fields.push(name.to_owned());
        }
        if own.is_one_of(values) {
            return Ok(true);
        }
        self.comparison.n_differences += 1;
        if self.comparison.n_differences <= KEPT_DIFFERENCES {
            let (field, expected, found) = (name.to_owned(), values.first().cloned().unwrap_or_default(), own.text());
            self.comparison.differences.push(Difference { sample, source_id, field, expected, found });
        }
        Ok(true)
    }

    /// Checks that no value is missing.
    fn finish(mut self, reader: &Reader) -> Result<Comparison, Failure> {
        let skipped = |name: &str| self.comparison.skipped.iter().any(|skipped| skipped.field == name);
        let complete = to_u64(self.fields.iter().filter(|field| !skipped(field.name())).count());
        let expected = complete.saturating_mul(to_u64(self.samples.len()));
        if self.n_values < expected {
            let what = format!("gave {} values, expected at least {expected}", self.n_values);
            return Err(reader.failed(&what));
        }
        if self.comparison.fields.is_empty() {
            self.comparison.reason = Some("no field can be compared".to_owned());
        }
        Ok(self.comparison)
    }
}
