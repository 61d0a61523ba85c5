//! Describes the pack's origin in the footer: everything that affected its bytes, and nothing else.

use packds_pixels::Geometry;
use packds_system::to_u64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::options::{ConvertOptions, Declared};
use crate::pipeline::Findings;
use crate::plan::{ImageForm, Plan};
use crate::report::Skipped;
use crate::source::{Listing, SourceKind};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The decoding libraries, which affect the pixels.
const DECODERS: &str = "libjpeg-turbo (mozjpeg-sys 2.2), png 0.18, gif 0.14, tiff 0.11, image-webp (image 0.25)";
/// The resize algorithm, which affects the pixels.
const RESIZE: &str = "Pillow 13, 8-bit fixed point, antialiased";

/// The oldest options. Their order must not change, because identifiers depend on it. Newer options follow in the order
/// of their declaration.
const FIRST_OPTIONS: &str = "mode raw_fraction resize crop filter orientation color dtype layout normalize quality \
    jpeg_scaling codec chunk batch order seed on_error max_pixels seekable check_decode from split image_key label_key \
    mask_key leave_out";

/// The options that affect the bytes, with all defaults resolved. Newer options appear only if they are set, which
/// keeps old identifiers unchanged.
pub(crate) fn options_json(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Value {
    let settled = settled(listing, options, plan);
    let recorded = ConvertOptions::OPTIONS.iter().filter_map(|spec| spec.recorded);
    let entry = |(key, value): (&str, fn(&ConvertOptions) -> Option<Value>)| Some((key.to_owned(), value(&settled)?));
    let mut entries: Vec<(String, Value)> = recorded.filter_map(entry).collect();
    let place = |name: &str| FIRST_OPTIONS.split(' ').position(|first| first == name);
    entries.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    Value::Object(entries.into_iter().collect())
}

/// The options, with the decisions of the plan filled in.
fn settled(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> ConvertOptions {
    let Geometry { resize, crop, filter, orientation } = plan.geometry;
    let mut settled = ConvertOptions {
        resize: Some(resize),
        crop: Some(crop),
        filter,
        orientation,
        quality: match plan.form {
            ImageForm::Encoded { quality } | ImageForm::Mixed { quality, .. } => quality,
            _ => None,
        },
        raw_fraction: match plan.form {
            ImageForm::Mixed { raw_fraction, .. } => Some(raw_fraction),
            _ => None,
        },
        chunk_samples: Some(plan.pack.chunk_samples),
        ..options.clone()
    };
    // A split of a folder is itself a folder. Passing that folder directly must give the same dataset.
    if matches!(listing.kind(), SourceKind::ImageFolder | SourceKind::FlatFolder) {
        settled.list.split = None;
    }
    settled
}

/// What the PROVENANCE section says about the source, the options and the program.
pub(crate) fn origin(listing: &Listing, options: Value) -> Value {
    let option = |key| options.get(key).cloned().unwrap_or_default();
    let (order, seed) = (option("order"), option("seed"));
    let mut value = json!({
        "tool": format!("packds {VERSION}"),
        "source": {"kind": listing.kind().name(), "n_files": listing.len(), "ignored": listing.ignored()},
        "options": options,
        "decoder": DECODERS,
        "resize": RESIZE,
        "order": {"kind": order, "seed": seed, "permutation": "feistel-8"},
    });
    // Keep the provenance that the exported pack recorded.
    if let Some(metadata) = listing.metadata() {
        value["origin"] = Value::Object(metadata.provenance.clone());
    }
    value
}

/// What was found in the samples of a file, or of all files of a set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) oriented: u64,
    pub(crate) n_skipped: u64,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) n_substituted: u64,
    pub(crate) substituted: Vec<Skipped>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resized_masks: Option<u64>,
}

impl Found {
    pub(crate) fn of(findings: &Findings, skipped: &[Skipped], substituted: &[Skipped]) -> Self {
        Self {
            oriented: findings.oriented,
            n_skipped: to_u64(skipped.len()),
            skipped: listed(skipped).to_vec(),
            n_substituted: to_u64(substituted.len()),
            substituted: listed(substituted).to_vec(),
            resized_masks: findings.resized_masks.map(|(n, _)| n),
        }
    }

    /// Adds what was found in another file.
    pub(crate) fn add(&mut self, other: Self) {
        self.oriented += other.oriented;
        self.n_skipped += other.n_skipped;
        self.n_substituted += other.n_substituted;
        self.resized_masks = match (self.resized_masks, other.resized_masks) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        for (all, more) in [(&mut self.skipped, other.skipped), (&mut self.substituted, other.substituted)] {
            all.extend(more);
            all.truncate(listed(all).len());
        }
    }
}

/// The JSON of the PROVENANCE section.
pub(crate) fn provenance(origin: &Value, found: &Found) -> Map<String, Value> {
    let mut value = origin.as_object().cloned().unwrap_or_default();
    // The origin of the source comes last.
    let before = value.shift_remove("origin").map(|before| ("origin".to_owned(), before));
    let found = json!(found);
    value.extend(found.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    value.extend(before);
    value
}

/// Maximum size of the list of bad files in bytes. The size of the section is limited, and a long list must not make a
/// conversion fail at its end.
const LISTED_BYTES: usize = 4 << 20;

/// As many of the bad files as fit into the limit, in listing order.
fn listed(files: &[Skipped]) -> &[Skipped] {
    // In JSON, an escaped byte takes at most six bytes. Punctuation and key names take some more.
    let mut room = LISTED_BYTES;
    let fits = |file: &&Skipped| {
        let bytes = 40 + 6 * (file.path.len() + file.reason.len());
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let n = files.iter().take_while(fits).count();
    files.get(..n).unwrap_or(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_option_is_still_recorded() {
        let recorded = ConvertOptions::OPTIONS.iter().filter_map(|spec| spec.recorded);
        let recorded: Vec<&str> = recorded.map(|(name, _)| name).collect();
        assert!(FIRST_OPTIONS.split(' ').all(|first| recorded.contains(&first)), "{recorded:?}");
    }

    #[test]
    fn a_list_of_bad_files_stays_within_its_room() {
        let one = Skipped { path: "\u{1}".repeat(1000), reason: "no image".to_owned() };
        let few = vec![one.clone(); 10];
        assert_eq!(listed(&few).len(), 10);
        let many = vec![one; 10_000];
        let json = serde_json::to_vec(&listed(&many)).unwrap();
        assert!(listed(&many).len() > 100 && json.len() < LISTED_BYTES);
    }
}
