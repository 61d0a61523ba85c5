//! Hugging Face's `.safetensors`: a JSON header, then each field as one contiguous tensor.

use packds_system::to_u64;
use serde_json::{Map, Value, json};

use super::placed::{PieceEncoder, Pieces, PlacedFile, Places, Planned, hidden_notes, is_taken, planned};
use super::{Sink, SinkStart};
use crate::dtypes::safetensors_name;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

const ALIGNMENT: usize = 64;
/// The header's entry for strings.
const TEXTS: &str = "__metadata__";

pub(crate) struct SafetensorsSink {
    arrays: Vec<Planned>,
    places: Places,
    lost: Vec<String>,
}

impl Sink for SafetensorsSink {
    type Encoder = PieceEncoder;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let arrays = planned(start);
        if is_taken(&arrays, TEXTS) {
            let reason = format!("field `{TEXTS}`: safetensors uses this name for its own metadata");
            return Err(ConvertError::options(reason, "choose another format, or write the pack without this field"));
        }
        let mut order: Vec<&Planned> = arrays.iter().collect();
        // Put tensors with wide elements first, so that every tensor is aligned to its element size.
        order.sort_by_key(|array| std::cmp::Reverse(array.as_numbers().0.size()));
        let mut metadata = json!({"format": "pt", METADATA_KEY: start.metadata.to_text()});
        let classes = start.metadata.class_names("label");
        if !classes.is_empty() {
            metadata["classes"] = json!(json!(classes).to_string());
        }
        let mut header = Map::from_iter([(TEXTS.to_owned(), metadata)]);
        let mut end = 0_u64;
        let mut offsets = Vec::new();
        for array in order {
            let (dtype, shape) = array.as_numbers();
            let begin = end;
            end = end.saturating_add(array.bytes());
            offsets.push((array.name.as_str(), begin));
            let described = json!({
                "dtype": safetensors_name(dtype), "shape": shape, "data_offsets": [begin, end],
            });
            header.insert(array.name.clone(), described);
        }
        let mut text = Value::Object(header).to_string();
        while !(8 + text.len()).is_multiple_of(ALIGNMENT) {
            text.push(' ');
        }
        let file = PlacedFile::open(start.path, start.target)?;
        let len = to_u64(text.len());
        file.write_at(&len.to_le_bytes(), 0)?;
        file.write_at(text.as_bytes(), 8)?;
        let start_of = |array: &Planned| {
            let found = offsets.iter().find(|(name, _)| *name == array.name);
            let begin = found.map_or(0, |(_, begin)| *begin);
            (begin.saturating_add(8).saturating_add(len), array.item_bytes)
        };
        let starts = arrays.iter().map(start_of).collect();
        Ok(Self { lost: hidden_notes(start, &arrays, false), arrays, places: Places { file, starts } })
    }

    fn encoder(&self) -> PieceEncoder {
        PieceEncoder::new(&self.arrays, false, None)
    }

    fn write(&mut self, ready: Pieces) -> Result<(), ConvertError> {
        self.places.write(&ready)
    }

    fn finish(self) -> Result<Vec<String>, ConvertError> {
        Ok(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use packds_format::Field;

    use super::super::test_pack::{fields, pack_of, to};
    use super::*;
    use crate::export::ExportOptions;

    #[test]
    fn a_field_with_the_name_of_the_headers_texts_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut fields = fields();
        fields.push(Field { name: TEXTS.to_owned(), ..fields[1].clone() });
        let refused = to(&pack_of(3, fields), &dir.path().join("a.safetensors"), &ExportOptions::default());
        let message = "field `__metadata__`: safetensors uses this name for its own metadata";
        assert_eq!(refused.unwrap_err().to_string(), message);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
