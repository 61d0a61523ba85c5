//! The footer's description of the pack's origin: everything that decided its bytes, and nothing else.

use packds_pixels::Geometry;
use serde_json::{Map, Value, json};

use crate::data_format::DataFormat;
use crate::options::{ConvertOptions, Mode};
use crate::plan::{ImageForm, Plan};
use crate::report::Skipped;
use crate::source::{Listing, SourceKind};

/// The version of the writing program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The decoding libraries, which decide the pixels.
const DECODERS: &str =
    "libjpeg-turbo (mozjpeg-sys 2.2), png 0.18, gif 0.14, tiff 0.11, image-webp (image 0.25)";
/// The resize algorithm, which decides the pixels.
const RESIZE: &str = "Pillow 13, 8-bit fixed point, antialiased";

/// The options that decide the bytes, with all defaults resolved.
pub(crate) fn options_json(listing: &Listing, options: &ConvertOptions, plan: &Plan) -> Value {
    let Geometry {
        resize,
        crop,
        filter,
        orientation,
    } = plan.geometry;
    let quality = match plan.form {
        ImageForm::Encoded { quality } | ImageForm::Mixed { quality, .. } => quality,
        _ => None,
    };
    let raw_fraction = match options.mode {
        Mode::Mixed { raw_fraction } => Some(raw_fraction),
        _ => None,
    };
    let orientation = match orientation {
        packds_pixels::Orientation::Ignore => "ignore",
        packds_pixels::Orientation::Apply => "apply",
    };
    let mut json = json!({
        "mode": options.mode.name(),
        "raw_fraction": raw_fraction,
        "resize": resize.to_string(),
        "crop": crop.to_string(),
        "filter": filter.to_string(),
        "orientation": orientation,
        "color": if options.color().channels() == 1 { "gray" } else { "rgb" },
        "dtype": options.dtype.name(),
        "layout": options.layout().to_string(),
        "normalize": options.normalize.to_string(),
        "quality": quality,
        "jpeg_scaling": options.jpeg_scaling,
        "codec": options.compression.to_string(),
        "chunk": plan.pack.chunk_samples,
        "batch": options.batch,
        "order": if options.keep_order { "kept" } else { "shuffled" },
        "seed": options.seed,
        "on_error": options.on_error.name(),
        "max_pixels": options.max_pixels,
    });
    // Newer options appear only if set, so that older packs keep their identifiers.
    let list = &options.list;
    let from = list.from.map(DataFormat::name);
    // A folder's split is itself a folder. It is the same dataset when named directly.
    let is_folder = matches!(
        listing.kind(),
        SourceKind::ImageFolder | SourceKind::FlatFolder
    );
    let split = list.split.clone().filter(|_| !is_folder);
    let given = [
        ("seekable", options.seekable.then(|| true.into())),
        ("check_decode", options.check_decode.then(|| true.into())),
        ("from", from.map(Value::from)),
        ("split", split.map(Value::from)),
        ("image_key", list.image_key.clone().map(Value::from)),
        ("label_key", list.label_key.clone().map(Value::from)),
        ("mask_key", list.mask_key.clone().map(Value::from)),
        (
            "leave_out",
            (!list.leave_out.is_empty()).then(|| list.leave_out.clone().into()),
        ),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            json[key] = value;
        }
    }
    json
}

/// What the conversion found in the source.
pub(crate) struct Findings<'a> {
    pub(crate) skipped: &'a [Skipped],
    pub(crate) substituted: &'a [Skipped],
    pub(crate) oriented: u64,
}

/// The JSON of the PROVENANCE section.
pub(crate) fn provenance(
    listing: &Listing,
    options: Value,
    found: &Findings<'_>,
) -> Map<String, Value> {
    let kind = match listing.kind() {
        SourceKind::ImageFolder => "image_folder",
        SourceKind::FlatFolder => "flat_folder",
        SourceKind::Manifest => "manifest",
        SourceKind::Container(format) => format.name(),
        SourceKind::Program => "program",
    };
    let option = |key| options.get(key).cloned().unwrap_or_default();
    let (order, seed) = (option("order"), option("seed"));
    let value = json!({
        "tool": format!("packds {VERSION}"),
        "source": {"kind": kind, "n_files": listing.len(), "ignored": listing.ignored()},
        "options": options,
        "decoder": DECODERS,
        "resize": RESIZE,
        "order": {"kind": order, "seed": seed, "permutation": "feistel-8"},
        "oriented": found.oriented,
        "n_skipped": found.skipped.len(),
        "skipped": listed(found.skipped),
        "n_substituted": found.substituted.len(),
        "substituted": listed(found.substituted),
    });
    match value {
        Value::Object(mut map) => {
            // Keeps what an exported pack recorded about itself.
            if let Some(metadata) = listing.metadata() {
                map.insert(
                    "origin".to_owned(),
                    Value::Object(metadata.provenance.clone()),
                );
            }
            map
        }
        _ => Map::new(),
    }
}

/// Most bytes of listed bad files. The section is limited, and a conversion must not fail at its end because of it.
const LISTED_BYTES: usize = 4 << 20;

/// As many bad files as fit, in listing order.
fn listed(files: &[Skipped]) -> &[Skipped] {
    // A byte escaped in JSON takes at most six. A name and a comma take some more.
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
    fn a_list_of_bad_files_stays_within_its_room() {
        let one = Skipped {
            path: "\u{1}".repeat(1000),
            reason: "no image".to_owned(),
        };
        let few = vec![one.clone(); 10];
        assert_eq!(listed(&few).len(), 10);
        let many = vec![one; 10_000];
        let json = serde_json::to_vec(&listed(&many)).unwrap();
        assert!(listed(&many).len() > 100 && json.len() < LISTED_BYTES);
    }
}
