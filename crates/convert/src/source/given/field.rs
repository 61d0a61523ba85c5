//! The values of one field of samples that a program supplies.

use packds_system::{counted, to_u64};
use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Field, Role};

use super::super::column::{ColumnValues, SourceColumn, TextArena};
use super::super::found::{FoundLabels, LabelValues};
use super::super::listing::{LabelLists, SourceField};
use super::super::spool::{Spool, SpoolFolder};
use super::super::store::{ArrayType, Content, Contents, Store};
use super::{GivenKind, GivenValue};
use crate::error::ConvertError;
use crate::sample::{MAX_FILE_BYTES, SampleError};

/// A field and its values so far.
#[derive(Debug)]
pub(super) struct GivenField {
    pub(super) name: String,
    kind: GivenKind,
    kept: Kept,
}

/// Where the values of a field are kept.
#[derive(Debug)]
enum Kept {
    /// Variable-size items.
    Items {
        spool: Spool,
        ends: Vec<u64>,
        contents: Contents,
    },
    /// Arrays of one type.
    Rows(Spool, ArrayType),
    /// Class ids. Labels given as names become ids if the class names are known, otherwise `Names`.
    Ids(Vec<i64>),
    Names(TextArena),
    Lists(LabelLists),
    Texts(TextArena),
}

/// The values of a complete field.
pub(super) enum Values {
    Images(Arc<dyn Store>),
    Masks(Arc<dyn Store>),
    Labels(FoundLabels),
    Lists(LabelLists),
    Field(SourceField),
    Text(SourceColumn),
}

impl GivenField {
    pub(super) fn new(name: &str, kind: &GivenKind, folder: &SpoolFolder) -> Result<Self, ConvertError> {
        let kept = match kind {
            GivenKind::Image | GivenKind::Mask | GivenKind::Bytes | GivenKind::Ragged { .. } => {
                Kept::Items { spool: Spool::create(folder)?, ends: Vec::new(), contents: Contents::All(Content::Bytes) }
            }
            GivenKind::Array { dtype, shape } => {
                Kept::Rows(Spool::create(folder)?, ArrayType { dtype: *dtype, shape: shape.clone() })
            }
            GivenKind::Label => Kept::Ids(Vec::new()),
            GivenKind::Labels => Kept::Lists(LabelLists::default()),
            GivenKind::Text | GivenKind::Json => Kept::Texts(TextArena::default()),
        };
        Ok(Self { name: name.to_owned(), kind: kind.clone(), kept })
    }

    /// The role of a field about boxes.
    pub(super) fn box_role(&self) -> Option<Role> {
        self.kind.box_role()
    }

    /// The shape of an entry, if the field has role keypoints.
    pub(super) fn entry_of_keypoints(&self) -> Option<&[u64]> {
        match &self.kind {
            GivenKind::Ragged { shape, role: Some(Role::Keypoints), .. } => Some(shape),
            _ => None,
        }
    }

    /// Whether the values are classes of the image.
    pub(super) fn is_label(&self) -> bool {
        matches!(self.kind, GivenKind::Label | GivenKind::Labels)
    }

    /// Checks whether `value` may be added. The error says why not.
    pub(super) fn check(&self, value: &GivenValue<'_>, classes: &[String]) -> Result<(), String> {
        let known = |id: i64| check_class(id, classes);
        match (&self.kind, value) {
            (GivenKind::Image | GivenKind::Mask | GivenKind::Bytes, GivenValue::Bytes(bytes)) => check_bytes(bytes),
            (GivenKind::Image | GivenKind::Mask, GivenValue::Array { dtype, shape, bytes }) => {
                check_array(*dtype, shape, bytes)
            }
            (GivenKind::Array { dtype, shape }, GivenValue::Array { dtype: found, shape: found_shape, bytes }) => {
                if (dtype, shape.as_slice()) != (found, *found_shape) {
                    return Err(format!(
                        "expected an array of {dtype} with shape {shape:?}, found {found} with shape {found_shape:?}"
                    ));
                }
                check_array(*found, found_shape, bytes)
            }
            (GivenKind::Ragged { dtype, shape, .. }, GivenValue::Array { dtype: found, shape: found_shape, bytes }) => {
                match found_shape.split_first() {
                    Some((0, entry)) if dtype == found && entry == shape => Ok(()),
                    Some((_, entry)) if dtype == found && entry == shape => check_array(*found, found_shape, bytes),
                    _ => Err(format!("expected {}, found {}", wanted(&self.kind), named(value))),
                }
            }
            (GivenKind::Label, GivenValue::Id(id)) => match &self.kept {
                Kept::Names(_) => Err("expected the name of a class, found an id".to_owned()),
                _ => known(*id),
            },
            (GivenKind::Label, GivenValue::Text(name)) => match &self.kept {
                _ if !classes.is_empty() => match classes.iter().any(|class| class == name) {
                    true => Ok(()),
                    false => Err(format!("`{name}` is not one of the classes")),
                },
                Kept::Ids(ids) if !ids.is_empty() => Err("expected a class id, found a name".to_owned()),
                _ => Ok(()),
            },
            (GivenKind::Labels, GivenValue::Ids(ids)) => {
                if let Some(id) = ids.iter().find(|id| **id < 0) {
                    return Err(format!("class ids start at 0, found {id}"));
                }
                ids.iter().try_for_each(|id| known(*id))
            }
            (GivenKind::Text, GivenValue::Text(_)) => Ok(()),
            (GivenKind::Json, GivenValue::Text(text)) => {
                let parsed = serde_json::from_str::<serde::de::IgnoredAny>(text);
                parsed.map(|_| ()).map_err(|e| format!("not JSON: {e}"))
            }
            (kind, value) => Err(format!("expected {}, found {}", wanted(kind), named(value))),
        }
    }

    /// Stores a value that [`check`](Self::check) has accepted.
    pub(super) fn push(&mut self, value: &GivenValue<'_>, classes: &[String]) -> Result<(), ConvertError> {
        match (&mut self.kept, value) {
            (Kept::Items { spool, ends, contents }, GivenValue::Bytes(bytes) | GivenValue::Array { bytes, .. }) => {
                let start = spool.append(bytes)?;
                let content = content(&self.kind, value);
                contents.push(ends.len(), content);
                ends.push(start + to_u64(bytes.len()));
            }
            (Kept::Rows(spool, _), GivenValue::Array { bytes, .. }) => {
                spool.append(bytes)?;
            }
            (Kept::Ids(ids), GivenValue::Id(id)) => ids.push(*id),
            (Kept::Ids(ids), GivenValue::Text(name)) if !classes.is_empty() => {
                let place = classes.iter().position(|class| class == name);
                ids.push(place.and_then(|p| i64::try_from(p).ok()).unwrap_or(-1));
            }
            (Kept::Ids(_), GivenValue::Text(name)) => {
                let mut names = TextArena::default();
                names.push(name);
                self.kept = Kept::Names(names);
            }
            (Kept::Names(texts) | Kept::Texts(texts), GivenValue::Text(text)) => texts.push(text),
            (Kept::Lists(lists), GivenValue::Ids(ids)) => {
                let mut ids = ids.to_vec();
                ids.sort_unstable();
                ids.dedup();
                lists.ids.extend(ids);
                lists.ends.push(lists.ids.len());
            }
            // `check` accepts nothing else.
            _ => {}
        }
        Ok(())
    }

    /// Completes the field after all `n` values.
    pub(super) fn finish(self, source: &Path, n: usize, classes: &[String]) -> Result<Values, ConvertError> {
        let name = self.name;
        let field = |store| {
            let (name, role) = (name.clone(), self.kind.box_role());
            Values::Field(SourceField { name, store, role })
        };
        Ok(match self.kept {
            Kept::Items { spool, ends, contents } => {
                let store = spool.into_items(source, &ends, contents)?;
                match self.kind {
                    GivenKind::Image => Values::Images(store),
                    GivenKind::Mask => Values::Masks(store),
                    _ => field(store),
                }
            }
            Kept::Rows(spool, array) => {
                let rows = spool.into_rows(source, array.clone(), n)?;
                field(Arc::new(Arrays { rows, array }))
            }
            Kept::Ids(ids) => {
                Values::Labels(FoundLabels { name, values: LabelValues::Ids(ids), classes: classes.to_vec() })
            }
            Kept::Names(names) => {
                Values::Labels(FoundLabels { name, values: LabelValues::Names(names), classes: Vec::new() })
            }
            Kept::Lists(lists) => Values::Lists(lists),
            Kept::Texts(texts) => {
                let values = match self.kind {
                    GivenKind::Json => ColumnValues::Json(texts),
                    _ => ColumnValues::Text(texts),
                };
                Values::Text(SourceColumn { name, values })
            }
        })
    }
}

/// Values of a field declared as arrays. They are never treated as pixels, because that could drop a dimension.
#[derive(Debug)]
struct Arrays {
    rows: Arc<dyn Store>,
    array: ArrayType,
}

impl Store for Arrays {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.rows.bytes(idx)
    }

    fn content(&self, _idx: usize) -> Content {
        Content::Array(self.array.clone())
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        self.rows.append(idx, limit, out)
    }
}

fn content(kind: &GivenKind, value: &GivenValue<'_>) -> Content {
    match (kind, value) {
        (GivenKind::Ragged { dtype, shape, .. }, _) => {
            Content::Ragged(ArrayType { dtype: *dtype, shape: shape.clone() })
        }
        (_, GivenValue::Array { dtype, shape, .. }) => {
            Content::of_array(ArrayType { dtype: *dtype, shape: shape.to_vec() })
        }
        (GivenKind::Image | GivenKind::Mask, _) => Content::File,
        _ => Content::Bytes,
    }
}

/// Why four numbers are not the left, top, right and bottom of a box. `None` if they are.
pub(super) fn check_box(sides: &[u8; 16]) -> Option<String> {
    let (sides, _) = sides.as_chunks();
    let sides: Vec<f32> = sides.iter().map(|side| f32::from_le_bytes(*side)).collect();
    let is_box = matches!(*sides, [left, top, right, bottom] if left <= right && top <= bottom && (right - left + bottom - top).is_finite());
    (!is_box).then(|| {
        format!("expected left, top, right and bottom, found {sides:?}: a box has no width and height of its own")
    })
}

/// Why three numbers are not x, y and the visibility of a point. `None` if they are.
pub(super) fn check_keypoint(point: &[u8; 12]) -> Option<String> {
    let (numbers, _) = point.as_chunks();
    let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    let is_point = match *numbers {
        [x, y, 0.0] => x == 0.0 && y == 0.0,
        [x, y, 1.0 | 2.0] => x.is_finite() && y.is_finite(),
        _ => false,
    };
    (!is_point).then(|| {
        format!(
            "expected x, y and the visibility of a point (0, 1 or 2; 0, 0, 0 if it is not labelled), found {numbers:?}"
        )
    })
}

/// Checks that a class has a name, if classes have names.
pub(super) fn check_class(id: i64, classes: &[String]) -> Result<(), String> {
    if classes.is_empty() || usize::try_from(id).is_ok_and(|id| id < classes.len()) {
        return Ok(());
    }
    Err(format!("the class id {id} has no name: the list has {}", counted(classes.len(), "class name")))
}

fn check_bytes(bytes: &[u8]) -> Result<(), String> {
    let len = to_u64(bytes.len());
    if len > MAX_FILE_BYTES {
        return Err(format!("expected at most {MAX_FILE_BYTES} bytes, found {len}"));
    }
    Ok(())
}

fn check_array(dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<(), String> {
    let array = ArrayType { dtype, shape: shape.to_vec() };
    let found = u64::try_from(bytes.len()).ok();
    if shape.contains(&0) {
        return Err(format!("expected an array with elements, found shape {shape:?}"));
    }
    if array.bytes() != found {
        let n = bytes.len();
        return Err(format!("{n} bytes are not an array of {dtype} with shape {shape:?}"));
    }
    Ok(())
}

fn wanted(kind: &GivenKind) -> String {
    match kind {
        GivenKind::Image | GivenKind::Mask => "an array or the bytes of an image file".to_owned(),
        GivenKind::Label => "the id or the name of a class".to_owned(),
        GivenKind::Labels => "a list of class ids".to_owned(),
        GivenKind::Array { dtype, shape } => format!("an array of {dtype} with shape {shape:?}"),
        GivenKind::Ragged { dtype, shape, .. } => {
            format!("an array of {dtype} with shape {}", Field::ragged("", *dtype, shape).shape_text())
        }
        GivenKind::Bytes => "bytes".to_owned(),
        GivenKind::Text => "a string".to_owned(),
        GivenKind::Json => "a JSON text".to_owned(),
    }
}

fn named(value: &GivenValue<'_>) -> String {
    match value {
        GivenValue::Bytes(_) => "bytes".to_owned(),
        GivenValue::Array { dtype, shape, .. } => format!("an array of {dtype} with shape {shape:?}"),
        GivenValue::Text(_) => "a string".to_owned(),
        GivenValue::Id(_) => "an integer".to_owned(),
        GivenValue::Ids(_) => "a list of integers".to_owned(),
    }
}
