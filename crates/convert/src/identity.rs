//! The identity of a dataset and of its packs. `dataset_uuid` and `pack_uuid` are hashes of the encoding defined here.
//!
//! The encoding is part of the format. `docs/reference/format.md` describes it, and tests with golden identifiers keep
//! it from changing.

use packds_format::Uuid;
use serde_json::Value;

use crate::source::store::Content;
use crate::source::{ColumnValues, Listing, SourceColumn, SourceField, TextArena};

/// The first string of the encoding. Any change to the encoding requires a new string.
const VERSION: &[u8] = b"packds source 1";
/// The first string of the encoding of a pack that is made from other packs.
const PARTS_VERSION: &[u8] = b"packds parts 1";

/// The first string of the encoding of a set.
const SET_VERSION: &[u8] = b"packds set 1";

/// The identifiers of the dataset and of the pack.
///
/// `options` is the `options` object of the PROVENANCE section. `tool` is the version of the program that writes the
/// pack.
pub(crate) fn uuids(listing: &Listing, options: &Value, tool: &str) -> (Uuid, Uuid) {
    let mut hasher = blake3::Hasher::new();
    encode(listing, &mut |bytes| {
        hasher.update(bytes);
    });
    let dataset = uuid(&hasher);
    hasher.update(options.to_string().as_bytes());
    hasher.update(tool.as_bytes());
    (dataset, uuid(&hasher))
}

/// The identifiers of a pack that is made from other packs. `parts` contains the `pack_uuid` of each of these packs,
/// and the number and the indices of the samples taken from it. `changes` is a JSON object that says what changes in
/// these samples. `settings` is a JSON object with everything else that affects the bytes.
pub(crate) fn of_parts(
    parts: impl Iterator<Item = (Uuid, u64, impl Iterator<Item = u64>)>,
    changes: Option<&Value>,
    settings: &Value,
    tool: &str,
) -> (Uuid, Uuid) {
    let mut hasher = blake3::Hasher::new();
    let mut out = Encoder::default();
    let mut feed = |bytes: &[u8]| {
        hasher.update(bytes);
    };
    out.string(PARTS_VERSION);
    for (pack, n_samples, samples) in parts {
        out.string(&pack.0);
        out.number(n_samples);
        for sample in samples {
            out.number(sample);
            out.flush(&mut feed);
        }
    }
    if let Some(changes) = changes {
        out.string(changes.to_string().as_bytes());
    }
    out.flush(&mut feed);
    let dataset = uuid(&hasher);
    hasher.update(settings.to_string().as_bytes());
    hasher.update(tool.as_bytes());
    (dataset, uuid(&hasher))
}

/// The identifiers of a version of a set. `shards` contains the `pack_uuid` of each shard.
pub(crate) fn of_shards(shards: impl Iterator<Item = Uuid>, chunk_samples: u32) -> (Uuid, Uuid) {
    let mut hasher = blake3::Hasher::new();
    let mut out = Encoder::default();
    let mut feed = |bytes: &[u8]| {
        hasher.update(bytes);
    };
    out.string(SET_VERSION);
    for shard in shards {
        out.string(&shard.0);
        out.flush(&mut feed);
    }
    out.flush(&mut feed);
    let dataset = uuid(&hasher);
    hasher.update(&chunk_samples.to_le_bytes());
    (dataset, uuid(&hasher))
}

/// The `pack_uuid` of a shard of a conversion. `pack` is the id that a single pack would have.
pub(crate) fn of_shard(pack: Uuid, number: u64) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    let mut out = Encoder::default();
    out.string(SET_VERSION);
    out.string(&pack.0);
    out.number(number);
    out.flush(&mut |bytes: &[u8]| {
        hasher.update(bytes);
    });
    uuid(&hasher)
}

/// The first 16 bytes of the hash of these numbers.
pub(crate) fn of_numbers(numbers: &[i64]) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    uuid(&hasher)
}

/// The first 16 bytes of the hash of these items, each after its length.
pub(crate) fn of_items<E>(items: impl Iterator<Item = Result<Vec<u8>, E>>) -> Result<Uuid, E> {
    let mut hasher = blake3::Hasher::new();
    let mut out = Encoder::default();
    for item in items {
        out.string(&item?);
        out.flush(&mut |bytes: &[u8]| {
            hasher.update(bytes);
        });
    }
    Ok(uuid(&hasher))
}

/// The first 16 bytes of the hash.
fn uuid(hasher: &blake3::Hasher) -> Uuid {
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    Uuid(id)
}

/// Passes the encoding of a listing to `feed` in pieces of about one sample. The encoding does not include where and
/// how the files were found, so a dataset that is moved, or listed in a manifest, remains the same dataset.
pub(crate) fn encode(listing: &Listing, feed: &mut impl FnMut(&[u8])) {
    let mut out = Encoder::default();
    out.string(VERSION);
    out.len(listing.classes().len());
    for class in listing.classes() {
        out.string(class);
    }
    out.len(listing.len());
    for idx in 0..listing.len() {
        encode_sample(listing, idx, &mut out);
        out.flush(feed);
    }
    out.len(listing.columns().len());
    for column in listing.columns() {
        encode_column(column, &mut out, feed);
    }
    encode_fields_and_faults(listing, &mut out);
    out.flush(feed);
}

fn encode_sample(listing: &Listing, idx: usize, out: &mut Encoder) {
    let mut path = Vec::new();
    listing.path_into(idx, &mut path);
    out.string(&path);
    out.number(listing.sample(idx).bytes);
    if let Some(label) = listing.label(idx) {
        out.number(1);
        out.number(label.cast_unsigned());
    } else if let Some(labels) = listing.label_list(idx) {
        out.number(2);
        out.len(labels.len());
        labels.iter().for_each(|label| out.number(label.cast_unsigned()));
    } else {
        out.number(0);
    }
    path.clear();
    if let Some(files) = listing.mask_files(idx) {
        out.number(2);
        out.len(files.len());
        for (path, bytes) in files {
            out.string(&path);
            out.number(bytes);
        }
    } else if let Some(bytes) = listing.mask_path_into(idx, &mut path) {
        out.number(1);
        out.string(&path);
        out.number(bytes);
    } else {
        out.number(0);
    }
}

fn encode_column(column: &SourceColumn, out: &mut Encoder, feed: &mut impl FnMut(&[u8])) {
    out.string(column.name.as_bytes());
    match &column.values {
        ColumnValues::I64(values) => {
            out.number(0);
            values.iter().for_each(|value| out.number(value.cast_unsigned()));
        }
        ColumnValues::F64(values) => {
            out.number(1);
            values.iter().for_each(|value| out.number(value.to_bits()));
        }
        ColumnValues::Bool(values) => {
            out.number(2);
            values.iter().for_each(|value| out.number((*value).into()));
        }
        ColumnValues::Text(texts) => encode_texts(3, texts, out, feed),
        ColumnValues::Json(texts) => encode_texts(4, texts, out, feed),
    }
    out.flush(feed);
}

/// Encodes one string at a time, to avoid a second copy of all strings in memory.
fn encode_texts(kind: u64, texts: &TextArena, out: &mut Encoder, feed: &mut impl FnMut(&[u8])) {
    out.number(kind);
    for text in texts.iter() {
        out.string(text.as_bytes());
        out.flush(feed);
    }
}

/// Encodes nothing if a listing has no fields and no faults. Such a listing keeps the identifiers that it had before
/// fields and faults were added to the encoding.
fn encode_fields_and_faults(listing: &Listing, out: &mut Encoder) {
    if listing.fields().is_empty() && listing.faulty().next().is_none() {
        return;
    }
    out.len(listing.fields().len());
    for field in listing.fields() {
        encode_field(field, out);
    }
    let faults: Vec<usize> = listing.faulty().collect();
    out.len(faults.len());
    faults.into_iter().for_each(|idx| out.len(idx));
}

fn encode_field(field: &SourceField, out: &mut Encoder) {
    out.string(field.name.as_bytes());
    let content = field.store.content(0);
    out.number(match content {
        Content::File => 0,
        Content::Bytes => 1,
        Content::Text => 2,
        Content::Json => 3,
        Content::Pixels(_) | Content::Array(_) => 4,
        Content::Ragged(_) => 5,
    });
    let array = match content {
        Content::Pixels(shape) => shape.array(),
        Content::Array(array) | Content::Ragged(array) => array,
        Content::File | Content::Bytes | Content::Text | Content::Json => return,
    };
    out.string(array.dtype.name().as_bytes());
    out.len(array.shape.len());
    array.shape.into_iter().for_each(|dim| out.number(dim));
}

/// Encoded bytes that have not been passed to `feed` yet.
#[derive(Default)]
struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn len(&mut self, len: usize) {
        self.number(len as u64);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn flush(&mut self, feed: &mut impl FnMut(&[u8])) {
        feed(&self.0);
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
