//! Hugging Face's `.safetensors`: tensors after a JSON header, read in place.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::ListOptions;
use super::arrays::{ArraySet, Described};
use super::found::Found;
use super::npy::Elements;
use super::per_file::PerFile;
use super::rows::members;
use super::shards::Shards;
use super::store::OpenFile;
use super::whole::FileValue;
use crate::data_format::DataFormat;
use crate::dtypes::of_safetensors_name;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

/// Maximum size of a header, in bytes: the format's own limit.
const MAX_HEADER: u64 = 100_000_000;

/// One part for each split in the file names. If the file names mention no split, the tensor names of the first file decide.
pub(crate) fn parts(shards: Shards) -> Result<Vec<Shards>, ConvertError> {
    ArraySet::parts(shards, |file| read_file(file, PerFile::Many))
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    ArraySet::join(part, options, |file| read_file(file, PerFile::Many))
}

/// The values of a file with one sample.
pub(crate) fn read_whole(path: &Path, _: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
    read_file(&file, PerFile::One)?.into_values(&file)
}

fn read_file(file: &Arc<OpenFile>, per_file: PerFile) -> Result<ArraySet, ConvertError> {
    let malformed = |reason: String| ConvertError::malformed(&file.path, "", reason);
    let len = file.part("", 0, 8)?;
    let len = len.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let room = file.bytes.saturating_sub(8);
    if len > room.min(MAX_HEADER) {
        let most = room.min(MAX_HEADER);
        return Err(malformed(format!("expected a header of at most {most} bytes, found {len}")));
    }
    let text = file.part("", 8, len)?;
    let header = members::<Value>(serde_json::Deserializer::from_slice(&text), "an object", "the name")
        .map_err(|error| malformed(format!("the header is not a JSON object of tensors: {error}")))?;
    let header: Map<String, Value> = header.into_iter().collect();
    check_apart(file, &header)?;
    let mut set = ArraySet::new(DataFormat::Safetensors, &file.path, per_file);
    let data = len.saturating_add(8);
    for (name, tensor) in &header {
        if name == "__metadata__" {
            take_metadata(&mut set, tensor);
        } else {
            push_tensor(&mut set, file, (name, tensor), data)?;
        }
    }
    Ok(set)
}

/// Start and end of a tensor's data, relative to the end of the header.
fn offsets(tensor: &Value) -> Option<(u64, u64)> {
    match tensor.get("data_offsets")?.as_array()?.as_slice() {
        [begin, end] => Some((begin.as_u64()?, end.as_u64()?)),
        _ => None,
    }
}

/// Refuses tensors with overlapping bytes, as the format does.
fn check_apart(file: &OpenFile, header: &Map<String, Value>) -> Result<(), ConvertError> {
    let places = header.iter().filter_map(|(name, tensor)| Some((offsets(tensor)?, name)));
    let mut places: Vec<_> = places.filter(|((begin, end), _)| begin < end).collect();
    places.sort_unstable();
    for (((_, end), name), ((begin, _), next)) in places.iter().zip(places.iter().skip(1)) {
        if begin < end {
            let reason = format!("its bytes overlap the bytes of the tensor '{name}'");
            let hint = "save the tensors again, without shared bytes";
            return Err(ConvertError::contradictory(&file.path, next, reason, hint));
        }
    }
    Ok(())
}

fn take_metadata(set: &mut ArraySet, metadata: &Value) {
    let text = |key| metadata.get(key).and_then(Value::as_str);
    if let Some(text) = text(METADATA_KEY) {
        set.take_metadata(text);
    }
    let classes = text("classes").and_then(|text| serde_json::from_str(text).ok());
    set.classes = classes.unwrap_or_default();
}

fn push_tensor(
    set: &mut ArraySet,
    file: &Arc<OpenFile>,
    (name, tensor): (&str, &Value),
    data: u64,
) -> Result<(), ConvertError> {
    let wrong = |expected: &str| {
        let found = tensor.to_string();
        let found: String = found.chars().take(120).collect();
        let reason = format!("expected {expected}, found {found}");
        ConvertError::malformed(&file.path, name, reason)
    };
    let numbers = |key: &str| -> Option<Vec<u64>> {
        let list = tensor.get(key)?.as_array()?;
        list.iter().map(Value::as_u64).collect()
    };
    let shape = numbers("shape").ok_or_else(|| wrong("a list `shape` of dimensions"))?;
    let dtype = tensor.get("dtype").and_then(Value::as_str);
    let dtype = dtype.ok_or_else(|| wrong("a string `dtype`"))?;
    let dtype = of_safetensors_name(dtype).ok_or_else(|| {
        let reason = format!("elements of type {dtype} are not supported");
        let hint = "save the tensor as BOOL, an integer type, F16, BF16, F32 or F64";
        ConvertError::unsupported(&file.path, name, reason, hint)
    })?;
    let Some((begin, end)) = offsets(tensor) else {
        return Err(wrong("two `data_offsets`"));
    };
    let n = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
    let in_file = data.checked_add(end).is_some_and(|end| end <= file.bytes);
    if n.is_none() || end.checked_sub(begin) != n || !in_file {
        return Err(wrong("`data_offsets` that fit its shape and the file"));
    }
    let described = Described {
        name,
        elements: Elements::Numbers { dtype, swapped: false },
        shape: &shape,
        offset: data.saturating_add(begin),
        room: end.saturating_sub(begin),
        stride: None,
    };
    set.push(file, &described)
}
