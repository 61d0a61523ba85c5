//! Reads the captions and splits of images in the JSON files of Karpathy (`dataset_coco.json`, `dataset_flickr8k.json`): `{"images":
//! [{"filepath": "val2014", "filename": "1.jpg", "split": "restval", "sentences": [{"raw": "an owl", "tokens": [..]}]}]}`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::coco::CAPTIONS;
use super::json_rows::{File, JsonRows, Member, is_array, is_object, is_text, object_of, with_json_member};
use super::warning::Warning;
use crate::error::ConvertError;

const SENTENCES: &str = "sentences";
/// The members of an image that become the path and the captions, or that repeat parts of the captions.
const READ: [&str; 4] = ["filepath", "filename", SENTENCES, "sentids"];

/// The list of images, if these members of a JSON file are those of a file of captions and splits.
pub(super) fn images<'a>(file: &File<'_>, members: &[Member<'a>]) -> Option<&'a RawValue> {
    let (_, images) = members.iter().find(|(name, _)| name == "images")?;
    let first = if is_array(images) { *file.items(images).ok()?.first()? } else { return None };
    let keys = if is_object(first) { file.members(first).ok()? } else { return None };
    let has = |wanted: &str, is: fn(&RawValue) -> bool| keys.iter().any(|(key, value)| key == wanted && is(value));
    (has("filename", is_text) && has(SENTENCES, is_array)).then_some(images)
}

/// The row of each image: its path, its captions, and its other members.
pub(super) fn rows(file: &File<'_>, images: &RawValue) -> Result<JsonRows, ConvertError> {
    let mut rows = Vec::new();
    for image in file.items(images)? {
        let keys = file.members(image)?;
        let text = |wanted: &str| {
            let value = keys.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.get())?;
            serde_json::from_str::<String>(value).ok()
        };
        let wrong = || file.unread(image, "an image that lacks the text 'filename' or the list 'sentences'");
        let name = text("filename").ok_or_else(wrong)?;
        let path = match text("filepath").filter(|folder| !folder.is_empty()) {
            Some(folder) => format!("{folder}/{name}"),
            None => name,
        };
        let sentences = keys.iter().find(|(key, list)| key == SENTENCES && is_array(list)).ok_or_else(wrong)?;
        let captions = captions(file, sentences.1)?;
        let others = object_of(keys.into_iter().filter(|(key, _)| !READ.contains(&key.as_str())));
        let row = with_json_member(CAPTIONS, &format!("[{}]", captions.join(", ")), &others);
        rows.push((file.line(image), with_json_member("path", &Value::from(path).to_string(), &row)));
    }
    let reason = "only the texts 'raw' of the sentences are read".to_owned();
    let warnings = vec![Warning::LeftOut { field: "tokens".to_owned(), reason }];
    Ok(JsonRows { rows, warnings, ..JsonRows::default() })
}

/// The captions of an image, as JSON.
fn captions<'a>(file: &File<'_>, sentences: &'a RawValue) -> Result<Vec<&'a str>, ConvertError> {
    let caption = |sentence: &'a RawValue| {
        let keys = if is_object(sentence) { file.members(sentence)? } else { Vec::new() };
        let raw = keys.iter().find(|(key, raw)| key == "raw" && is_text(raw)).map(|(_, raw)| raw.get());
        raw.ok_or_else(|| file.unread(sentence, "a sentence that lacks the text 'raw'"))
    };
    file.items(sentences)?.into_iter().map(caption).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::json_rows::json_rows;
    use super::*;

    fn read(images: &str) -> Result<JsonRows, ConvertError> {
        json_rows(Path::new("x.json"), &format!(r#"{{"images": [{images}], "dataset": "coco"}}"#))
    }

    #[test]
    fn captions_and_splits_are_columns() {
        let image = r#"{"filepath": "val2014", "sentids": [4, 5], "filename": "1.jpg", "imgid": 0, "split": "restval",
            "sentences": [{"tokens": ["an", "owl"], "raw": "An owl.", "imgid": 0, "sentid": 4}, {"raw": "a \"bird\""}]}"#;
        let other = r#"{"filename": "2.jpg", "split": "test", "sentences": []}"#;
        let read = read(&format!("{image}, {other}")).unwrap();
        let rows: Vec<&str> = read.rows.iter().map(|(_, row)| row.as_str()).collect();
        assert_eq!(
            rows,
            [
                r#"{"path": "val2014/1.jpg","captions": ["An owl.", "a \"bird\""],"imgid": 0, "split": "restval"}"#,
                r#"{"path": "2.jpg","captions": [],"split": "test"}"#
            ]
        );
    }

    #[test]
    fn images_and_sentences_without_texts_are_refused() {
        let first = r#"{"filename": "1.jpg", "sentences": [{"raw": "an owl"}]}"#;
        for (other, words) in [
            (r#"{"sentences": []}"#, "found an image that lacks the text 'filename' or the list 'sentences'"),
            (r#"{"filename": "2.jpg"}"#, "found an image that lacks the text 'filename' or the list 'sentences'"),
            (r#"{"filename": "2.jpg", "sentences": ["a"]}"#, "found a sentence that lacks the text 'raw'"),
        ] {
            let error = read(&format!("{first}, {other}")).map(|read| read.rows).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
