//! The values of a pack, in the form in which `compare.py` describes those of the source.

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;
use packds_format::{Field, FieldKind, Role, Scalar};
use packds_reader::augment::AugmentError;
use packds_reader::{ItemDecoder, Pack, ReadError};
use serde::Serialize;
use serde_json::Value;

use crate::escape::lossy;
use crate::failure::Failure;

/// A field to compare.
pub(super) struct Compared<'a> {
    number: usize,
    field: &'a Field,
    kind: Kind,
    decoder: ItemDecoder,
    /// The class names of labels.
    classes: Vec<String>,
}

/// How the values of a field are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Pixels,
    Mask,
    Number,
    Text,
    Json,
    /// Bytes. If they are an image, the library may give its pixels.
    File,
    Array,
}

/// A field, as `compare.py` takes it.
#[derive(Debug, Serialize)]
pub(super) struct Wanted<'a> {
    name: &'a str,
    /// The column in the source, if the user named it.
    key: Option<&'a str>,
    kind: Kind,
    /// The mode of Pillow that images are converted to.
    color: Option<&'static str>,
    dtype: &'static str,
    is_picture: bool,
}

/// A value of the pack.
pub(super) enum Own {
    Number(Option<Scalar>, Option<String>),
    Json(String),
    /// A text, or descriptions of an array and of the pixels in it.
    Said(Vec<String>),
}

impl<'a> Compared<'a> {
    /// The fields of a pack that come from the source.
    pub(super) fn all(pack: &'a Pack) -> Result<Vec<Self>, ReadError> {
        let classes = pack.located(pack.classes())?;
        let fields = pack.schema().fields().iter().enumerate().filter(|(_, field)| is_of_source(field));
        let compared = |(number, field): (usize, &'a Field)| {
            let own = classes.iter().find(|classes| classes.field == field.name);
            let classes = own.map(|classes| classes.names.clone()).unwrap_or_default();
            Self { number, field, kind: kind(field), decoder: ItemDecoder::new(field), classes }
        };
        Ok(fields.map(compared).collect())
    }

    pub(super) fn name(&self) -> &'a str {
        &self.field.name
    }

    pub(super) fn role(&self) -> Option<Role> {
        self.field.role
    }

    pub(super) fn wanted(&self, key: Option<&'a str>) -> Wanted<'a> {
        let color = match (self.kind, self.field.color.as_deref()) {
            (Kind::Pixels, Some("gray")) => Some("L"),
            (Kind::Pixels, Some("rgb")) => Some("RGB"),
            (Kind::Pixels, None) if self.field.kind == FieldKind::Image => Some("RGB"),
            (Kind::File, _) => Some("RGB"),
            _ => None,
        };
        let is_picture = matches!(self.kind, Kind::Pixels | Kind::Mask | Kind::File);
        Wanted { name: self.name(), key, kind: self.kind, color, dtype: self.field.dtype.numpy_typestr(), is_picture }
    }

    /// The value of a sample of the pack.
    pub(super) fn own(&mut self, pack: &Pack, sample: u64) -> Result<Own, Failure> {
        let item = pack.located(pack.item(self.number, sample))?;
        Ok(match self.kind {
            Kind::Number => {
                let number = Scalar::of(self.field.dtype, &item);
                let id = number.and_then(Scalar::integer).and_then(|id| usize::try_from(id).ok());
                Own::Number(number, id.and_then(|id| self.classes.get(id).cloned()))
            }
            Kind::Text => Own::Said(vec![lossy(&item)]),
            Kind::Json => Own::Json(lossy(&item)),
            _ if self.field.kind == FieldKind::Image => {
                let wrong = |error: AugmentError| Failure::bad_data(error).at(pack.file_path());
                let pixels = self.decoder.pixels(pack, sample, &item).map_err(wrong)?;
                Own::Said(vec![described(&pixels.shape, &pixels.data)])
            }
            Kind::File => {
                let pixels = self.decoder.pixels(pack, sample, &item).ok();
                let pixels = pixels.map(|pixels| described(&pixels.shape, &pixels.data));
                Own::Said([described(&[item.len()], &item)].into_iter().chain(pixels).collect())
            }
            _ => {
                let item = pack.sample(sample)?.field(&self.field.name)?;
                Own::Said(vec![described(&item.shape, &item.bytes)])
            }
        })
    }
}

impl Own {
    /// Whether the source has this value. It may be described in several ways.
    pub(super) fn is_one_of(&self, values: &[String]) -> bool {
        values.iter().any(|value| match self {
            Self::Said(own) => own.contains(value),
            Self::Json(own) => {
                let [own, value] = [own, value].map(|text| serde_json::from_str::<Value>(text).ok());
                own.is_some() && own == value
            }
            Self::Number(number, class) => {
                class.as_deref() == Some(value) || number.is_some_and(|number| is_number(number, value.trim()))
            }
        })
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Said(texts) => texts.join(" or "),
            Self::Json(text) => text.clone(),
            Self::Number(number, class) => {
                let number = number.map(|number| number.to_string()).unwrap_or_default();
                class.as_ref().map_or(number.clone(), |class| format!("{number} ({class})"))
            }
        }
    }
}

fn is_number(number: Scalar, value: &str) -> bool {
    match (number, number.float()) {
        (_, Some(own)) => {
            value.parse::<f64>().is_ok_and(|value| value.to_bits() == own.to_bits() || value.is_nan() && own.is_nan())
        }
        (Scalar::Unsigned(own), None) => value.parse() == Ok(own),
        (_, None) => value.parse().ok() == number.integer() && number.integer().is_some(),
    }
}

/// Whether the source, not packds, gave the values of a field.
fn is_of_source(field: &Field) -> bool {
    let roles = [Role::Image, Role::Mask, Role::Label, Role::Labels, Role::Boxes, Role::BoxLabels, Role::BoxAttribute];
    field.seek_index_of.is_none() && field.role.is_none_or(|role| roles.contains(&role))
}

fn kind(field: &Field) -> Kind {
    let is_mask = field.role == Some(Role::Mask) || field.color.as_deref() == Some("index");
    match field.kind {
        FieldKind::String => Kind::Text,
        FieldKind::Json => Kind::Json,
        FieldKind::Bytes => Kind::File,
        FieldKind::Image | FieldKind::Tensor if is_mask => Kind::Mask,
        FieldKind::Image => Kind::Pixels,
        FieldKind::Tensor if field.role == Some(Role::Image) || field.color.is_some() => Kind::Pixels,
        FieldKind::Tensor if field.shape.is_empty() => Kind::Number,
        _ => Kind::Array,
    }
}

/// The sides that are not 1, and the checksum of the bytes.
fn described(shape: &[usize], bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "empty".to_owned();
    }
    let sides: Vec<String> = shape.iter().filter(|side| **side != 1).map(ToString::to_string).collect();
    let sides = if sides.is_empty() { "1".to_owned() } else { sides.join("x") };
    format!("{sides} values, CRC-32 {:08x}", crc_fast::checksum(Crc32IsoHdlc, bytes))
}
