//! Answers the page's requests about a pack with JSON and images.

use std::collections::BTreeMap;

use packds_format::{Classes, Coding, ColumnView, DType, Field, Role, Scalar};
use packds_reader::Pack;
use packds_system::{to_u64, to_usize};
use serde_json::{Value, json};

use crate::Failure;
use crate::class_words::Names;
use crate::escape::{escape, escape_path, lossy};
use crate::human::counted;
use crate::info::info_document;
use crate::label::{Label, Labels};
use crate::show::{field_picture, is_viewable, mask_legend};

/// Number of bars in a histogram.
const N_BINS: u8 = 24;
/// Maximum number of samples in one answer.
const MAX_PAGE: usize = 500;
/// Maximum length of a field's text that is shown, in bytes.
const MAX_TEXT: usize = 4096;
/// Maximum side of an image, in pixels.
const MAX_SIDE: u32 = 2048;

/// The reason why a request failed. The page shows it.
pub(super) struct Refused(pub(super) String);

impl<E: std::error::Error> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

type Query = BTreeMap<String, String>;

/// The samples to show, with their labels and columns.
pub(super) struct Catalogue<'a> {
    pack: &'a Pack,
    /// In file order.
    samples: Vec<u64>,
    labels: Labels<'a>,
    /// The class names of all fields.
    classes: Vec<Classes>,
    columns: Vec<Column<'a>>,
    /// The column that is 0 for substituted samples, if the pack has it.
    valid: Option<ColumnView<'a>>,
}

/// A column with one number for each sample.
struct Column<'a> {
    name: &'a str,
    dtype: DType,
    view: ColumnView<'a>,
}

impl Column<'_> {
    fn number(&self, sample: u64) -> Option<f64> {
        Scalar::of(self.dtype, self.view.get(sample)?).map(Scalar::nearest_f64).filter(|n| n.is_finite())
    }
}

impl<'a> Catalogue<'a> {
    pub(super) fn open(pack: &'a Pack, samples: Vec<u64>, (labels, classes): Names<'a>) -> Result<Self, Failure> {
        let mut columns = Vec::new();
        for (number, field) in pack.schema().columns() {
            // Checksums and class ids are not quantities.
            let is_quantity =
                field.shape.is_empty() && matches!(field.role, None | Some(Role::SourceWidth | Role::SourceHeight));
            if is_quantity {
                let view = pack.located(pack.column(number))?;
                columns.push(Column { name: &field.name, dtype: field.dtype, view });
            }
        }
        let valid = pack.schema().by_role(Role::Valid, None).map(|(number, _)| pack.located(pack.column(number)));
        Ok(Self { pack, samples, labels, classes, columns, valid: valid.transpose()? })
    }

    /// The pack: its name, classes, fields with pictures, columns with histograms, and the document of `packds info`.
    /// Counts and histograms are those of the samples to show.
    pub(super) fn pack(&self) -> Result<Value, Refused> {
        let columns = self.columns.iter().map(|column| {
            let (min, max, bins) = histogram(&self.samples, column);
            json!({ "name": column.name, "min": min, "max": max, "bins": bins })
        });
        let pictures =
            self.pictures().map(|(_, field)| json!({ "name": field.name, "is_mask": field.role == Some(Role::Mask) }));
        let names = self.labels.names().iter();
        Ok(json!({
            "name": escape_path(self.pack.file_path().file_name().unwrap_or_default().as_ref()),
            "n_samples": self.samples.len(),
            "classes": names.map(|name| escape(name)).zip(self.class_counts()).collect::<Vec<_>>(),
            "has_paths": self.pack.has_paths(),
            "columns": columns.collect::<Vec<_>>(),
            "pictures": pictures.collect::<Vec<_>>(),
            "info": info_document(self.pack)?,
        }))
    }

    /// The matching samples from `offset` on, at most `limit`. The filters are `class` (an id), `text` (a part of the
    /// path or of the class name), and `column` with `min` and `max`.
    pub(super) fn samples(&self, query: &Query) -> Result<Value, Refused> {
        let matching = self.matching(query)?;
        let offset = to_usize(number(query, "offset")?.unwrap_or(0));
        let limit = to_usize(number(query, "limit")?.unwrap_or(100)).min(MAX_PAGE);
        let part = matching.iter().skip(offset).take(limit);
        let listed: Result<Vec<Value>, Refused> = part.map(|sample| self.listed(*sample)).collect();
        Ok(json!({ "total": matching.len(), "samples": listed? }))
    }

    /// Everything about one sample except its images.
    pub(super) fn sample(&self, query: &Query) -> Result<Value, Refused> {
        let sample = self.asked(query)?;
        let mut all = self.listed(sample)?;
        let fields: Vec<Value> =
            (0..).zip(self.pack.schema().fields()).map(|(n, field)| self.field(n, field, sample)).collect();
        all["fields"] = Value::Array(fields);
        let legends = self.pictures().map(|(position, field)| {
            let legend = mask_legend(self.pack, (position, field), sample, &self.classes);
            let entries = legend.into_iter().map(|([red, green, blue], name)| json!({ "color": format!("#{red:02x}{green:02x}{blue:02x}"), "name": name }));
            (field.name.clone(), entries.collect::<Value>())
        });
        all["legends"] = Value::Object(legends.collect());
        Ok(all)
    }

    /// One field of one sample as a PNG file. The parameters are `sample`, `field` and `side`.
    pub(super) fn picture(&self, query: &Query) -> Result<Vec<u8>, Refused> {
        let sample = self.asked(query)?;
        let side = number(query, "side")?.and_then(|side| u32::try_from(side).ok()).unwrap_or(128).clamp(1, MAX_SIDE);
        let name = query.get("field").map_or("", String::as_str);
        let found = self.pictures().find(|(_, field)| field.name == name);
        let shown = found.ok_or_else(|| Refused(format!("no field `{name}` that contains images")))?;
        field_picture(self.pack, shown, sample, side).map_err(Refused)
    }

    /// The fields that contain images, with their positions in the body.
    fn pictures(&self) -> impl Iterator<Item = (usize, &'a Field)> {
        self.pack.schema().body().map(|(_, field)| field).enumerate().filter(|(_, field)| is_viewable(field))
    }

    fn asked(&self, query: &Query) -> Result<u64, Refused> {
        let sample = number(query, "sample")?.ok_or_else(|| Refused("the parameter `sample` is missing".to_owned()))?;
        if sample >= self.pack.n_samples() {
            let samples = counted(self.pack.n_samples(), "sample");
            return Err(Refused(format!("no sample {sample}: the pack has {samples}")));
        }
        Ok(sample)
    }

    fn class_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.labels.names().len()];
        for sample in &self.samples {
            for id in classes_of(&self.labels.of(*sample)) {
                if let Some(count) = counts.get_mut(to_usize(id)) {
                    *count += 1;
                }
            }
        }
        counts
    }

    fn matching(&self, query: &Query) -> Result<Vec<u64>, Refused> {
        let class = number(query, "class")?;
        let text = query.get("text").map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
        let range = self.range(query)?;
        let by_path = match &text {
            Some(text) => Some(self.paths_with(text)?),
            None => None,
        };
        let matches = |sample: &u64| {
            let label = || self.labels.of(*sample);
            let has_class = class.is_none_or(|class| classes_of(&label()).contains(&class));
            let has_text = text.as_ref().is_none_or(|text| {
                by_path.as_ref().is_some_and(|paths| paths.binary_search(sample).is_ok())
                    || self.labels.show(&label()).to_lowercase().contains(text)
            });
            let is_in_range = range.as_ref().is_none_or(|(column, min, max)| {
                column.number(*sample).is_some_and(|number| (*min..=*max).contains(&number))
            });
            has_class && has_text && is_in_range
        };
        Ok(self.samples.iter().copied().filter(matches).collect())
    }

    fn range(&self, query: &Query) -> Result<Option<(&Column<'a>, f64, f64)>, Refused> {
        let Some(name) = query.get("column").filter(|name| !name.is_empty()) else { return Ok(None) };
        let column = self.columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| Refused(format!("no numeric column `{name}`")))?;
        let bound = |key, default| match query.get(key).filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| Refused(format!("{key}: expected a number, found `{text}`"))),
        };
        Ok(Some((column, bound("min", f64::NEG_INFINITY)?, bound("max", f64::INFINITY)?)))
    }

    /// The samples whose path in lower case contains this text, in ascending order.
    fn paths_with(&self, text: &str) -> Result<Vec<u64>, Refused> {
        let mut found = Vec::new();
        if self.pack.has_paths() {
            self.pack.for_each_path(|sample, path| {
                if lossy(path).to_lowercase().contains(text) {
                    found.push(sample);
                }
                Ok::<_, packds_format::FormatError>(())
            })?;
        }
        Ok(found)
    }

    fn listed(&self, sample: u64) -> Result<Value, Refused> {
        let path = self.pack.path(sample)?;
        let label = self.labels.of(sample);
        Ok(json!({
            "sample": sample,
            "label": self.labels.show(&label),
            "path": path.map(|path| lossy(&path)),
            "is_substituted": self.valid.as_ref().is_some_and(|valid| valid.integer(sample) == Some(0)),
        }))
    }

    fn field(&self, number: usize, field: &Field, sample: u64) -> Value {
        let value = match self.pack.item(number, sample) {
            Err(error) => format!("error: {error}"),
            Ok(item) if field.kind.is_text() => shortened(&lossy(&item)),
            Ok(item) if is_viewable(field) => self.described(field, sample, item.len()),
            Ok(item) if to_u64(item.len()) <= 16 * field.dtype.size() && field.shape.len() <= 1 => {
                Scalar::each(field.dtype, &item).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
            }
            Ok(item) => counted(item.len(), "byte"),
        };
        json!({ "name": field.name, "value": value })
    }

    /// The size and coding of an image, and its number of bytes.
    fn described(&self, field: &Field, sample: u64, bytes: usize) -> String {
        let shape = self.pack.item_shape(&field.name, sample).ok().flatten().or(field.image_shape());
        let size =
            shape.map_or_else(String::new, |(height, width, channels)| format!("{width} x {height} x {channels}, "));
        let coding = self.pack.coding(&field.name, sample).ok().flatten().unwrap_or(Coding::Raw);
        format!("{size}{coding:?}, {}", counted(bytes, "byte"))
    }
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT);
    if end < text.len() { format!("{}...", text.split_at(end).0) } else { text.to_owned() }
}

fn classes_of(label: &Label) -> Vec<u64> {
    match label {
        Label::Class(id) => u64::try_from(*id).into_iter().collect(),
        Label::Set(ids) => ids.clone(),
        Label::None | Label::Numbers(_) => Vec::new(),
    }
}

fn number(query: &Query, key: &str) -> Result<Option<u64>, Refused> {
    let Some(text) = query.get(key).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Refused(format!("{key}: expected a whole number, found `{text}`")))
}

/// The range of a column, and the number of samples in each bar of its histogram.
fn histogram(samples: &[u64], column: &Column<'_>) -> (f64, f64, Vec<u64>) {
    let numbers = || samples.iter().filter_map(|sample| column.number(*sample));
    let min = numbers().fold(f64::INFINITY, f64::min);
    let max = numbers().fold(f64::NEG_INFINITY, f64::max);
    let mut bins = vec![0; usize::from(N_BINS)];
    let edges: Vec<f64> = (0..N_BINS).map(|bin| min + (max - min) * f64::from(bin) / f64::from(N_BINS)).collect();
    for number in numbers() {
        let below = edges.partition_point(|edge| *edge <= number);
        if let Some(count) = bins.get_mut(below.saturating_sub(1)) {
            *count += 1;
        }
    }
    (min, max, bins)
}
