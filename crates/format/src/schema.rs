//! The schema: the ordered fields of a sample. See docs/reference/format.md, "Schema".

use packds_system::{counted, to_u64};
use serde::{Deserialize, Serialize};

use crate::codec::Codec;
use crate::filter::Filter;
use crate::keypoints::Keypoints;
use crate::limits::{MAX_COLUMN_ITEM_BYTES, MAX_DIMS, MAX_FIELDS, MAX_ITEM_BYTES, MAX_NAME_BYTES};
use crate::{DType, FormatError};

/// The kind of a field's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// Elements of type `dtype`. Their `shape` is the same for every sample.
    Tensor,
    /// A variable-size image: raw pixels or an encoded file, according to the field's `coding` column.
    Image,
    /// Arbitrary bytes.
    Bytes,
    /// UTF-8 text.
    String,
    /// A JSON value as UTF-8 text.
    Json,
    /// Any number of entries, such as boxes. Each entry has `shape` elements of type `dtype`.
    Ragged,
}

packds_system::named!(FieldKind {
    Tensor = "tensor",
    Image = "image",
    Bytes = "bytes",
    String = "string",
    Json = "json",
    Ragged = "ragged",
});

impl FieldKind {
    /// Whether the items are UTF-8 text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::String | Self::Json)
    }
}

/// Where a field's items are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// In the chunks.
    Body,
    /// In a contiguous array after the chunks. The array can be read on its own.
    Column,
}

/// The meaning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The sample's image.
    Image,
    /// A mask of the image.
    Mask,
    /// The class id.
    Label,
    /// The class ids of a multi-label sample as a bit set: id `i` is bit `i % 8` of byte `i / 8`.
    Labels,
    /// Boxes around objects: left, top, right and bottom, in pixels of the stored image.
    Boxes,
    /// The class id of each box.
    BoxLabels,
    /// Something else about each box, such as the area of its object.
    BoxAttribute,
    /// The points of each box, such as the joints of a person. A point is x and y, in pixels of the stored image, and
    /// its visibility: 0 if it is not labelled (x and y are 0 too), 1 if it is hidden, 2 if it is visible.
    Keypoints,
    /// The outlines of the objects in the boxes. An entry is a vertex: the index of the box, the index of the ring
    /// among those of the box, x and y. A mask is what the rings of a box enclose, by the nonzero winding rule.
    Polygons,
    /// The sample's number in the source's order.
    SourceId,
    /// Width of the source image in pixels, before any transform.
    SourceWidth,
    /// Height of the source image in pixels, before any transform.
    SourceHeight,
    /// CRC32C of the sample's decoded body items, concatenated in schema order.
    SampleCrc32c,
    /// 1 for valid samples, 0 if the sample replaces one that could not be read.
    Valid,
    /// The item's width in pixels, for the image field named in `of`.
    Width,
    /// The item's height in pixels, for the image field named in `of`.
    Height,
    /// The item's number of channels, for the image field named in `of`.
    Channels,
    /// The number of the item's [`Coding`], for the image field named in `of`.
    Coding,
}

packds_system::named!(Role {
    Image = "image",
    Mask = "mask",
    Label = "label",
    Labels = "labels",
    Boxes = "boxes",
    BoxLabels = "box_labels",
    BoxAttribute = "box_attribute",
    Keypoints = "keypoints",
    Polygons = "polygons",
    SourceId = "source_id",
    SourceWidth = "source_width",
    SourceHeight = "source_height",
    SampleCrc32c = "sample_crc32c",
    Valid = "valid",
    Width = "width",
    Height = "height",
    Channels = "channels",
    Coding = "coding",
});

/// The coding of an image item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Coding {
    /// Raw `u8` pixels, height x width x channels.
    Raw = 0,
    /// A JPEG file.
    Jpeg = 1,
    /// A PNG file.
    Png = 2,
    /// A GIF file.
    Gif = 3,
    /// A BMP file.
    Bmp = 4,
    /// A TIFF file.
    Tiff = 5,
    /// A WebP file.
    WebP = 6,
}

impl Coding {
    /// Every coding, in the order of docs/reference/format.md.
    pub const ALL: [Self; 7] = [Self::Raw, Self::Jpeg, Self::Png, Self::Gif, Self::Bmp, Self::Tiff, Self::WebP];

    /// The number stored in the `coding` column.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The coding with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The file extension for this coding. Raw pixels have none.
    #[must_use]
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::Raw => None,
            Self::Jpeg => Some("jpg"),
            Self::Png => Some("png"),
            Self::Gif => Some("gif"),
            Self::Bmp => Some("bmp"),
            Self::Tiff => Some("tif"),
            Self::WebP => Some("webp"),
        }
    }
}

/// Normalization of stored values for a network: `(value * scale - mean) / std` per channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normalize {
    /// The factor that scales stored values to the range 0 to 1: 1/255 for `u8` pixels.
    pub scale: f64,
    /// Mean of each channel, on a scale of 0 to 1.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel, on a scale of 0 to 1.
    pub std: Vec<f64>,
    /// Whether the stored values are already normalized.
    pub applied: bool,
}

impl Normalize {
    /// Whether there are as many means as standard deviations, and all numbers are finite, as JSON requires.
    fn is_usable(&self) -> bool {
        let all = self.mean.iter().chain(&self.std).chain([&self.scale]);
        self.mean.len() == self.std.len() && all.into_iter().all(|v| v.is_finite())
    }
}

/// A named, typed part of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name, unique in the schema.
    pub name: String,
    /// The kind of its items.
    pub kind: FieldKind,
    /// Where they are stored.
    pub store: Store,
    /// Element type. `u8` for all kinds except tensors and ragged arrays.
    pub dtype: DType,
    /// Shape of a tensor, or of one entry of a ragged array. Empty for scalars and all other kinds.
    #[serde(default)]
    pub shape: Vec<u64>,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The image field described by a width, height, channels or coding column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The image field whose seek indexes this field holds. See docs/reference/format.md, "Seek index".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_index_of: Option<String>,
    /// Its compression.
    #[serde(default, skip_serializing_if = "Codec::is_none")]
    pub codec: Codec,
    /// Dimension order of an image tensor: `hwc` or `chw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Meaning of the channels: `rgb`, `gray` or `index` (class ids of a mask).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Normalization that was applied, or is still to be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// What the points of a field with role [`Role::Keypoints`] are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keypoints: Option<Keypoints>,
}

impl Field {
    /// A fixed-size body field.
    #[must_use]
    pub fn tensor(name: &str, dtype: DType, shape: &[u64]) -> Self {
        Self {
            name: name.to_owned(),
            kind: FieldKind::Tensor,
            store: Store::Body,
            dtype,
            shape: shape.to_vec(),
            role: None,
            of: None,
            seek_index_of: None,
            codec: Codec::None,
            layout: None,
            color: None,
            normalize: None,
            keypoints: None,
        }
    }

    /// A variable-size body field.
    #[must_use]
    pub fn variable(name: &str, kind: FieldKind) -> Self {
        Self { kind, ..Self::tensor(name, DType::U8, &[]) }
    }

    /// A body field with any number of entries per sample. `shape` is the shape of an entry.
    #[must_use]
    pub fn ragged(name: &str, dtype: DType, shape: &[u64]) -> Self {
        Self { kind: FieldKind::Ragged, ..Self::tensor(name, dtype, shape) }
    }

    /// A fixed-size column.
    #[must_use]
    pub fn column(name: &str, dtype: DType, shape: &[u64]) -> Self {
        Self { store: Store::Column, ..Self::tensor(name, dtype, shape) }
    }

    /// The same field with a role.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Size of an item in bytes. `None` if items are variable-size.
    #[must_use]
    pub fn item_bytes(&self) -> Option<u64> {
        self.array_bytes().filter(|_| self.kind == FieldKind::Tensor)
    }

    /// Number of entries in a ragged item of `bytes` bytes. `None` if the bytes are not whole entries, or the field is
    /// not ragged.
    #[must_use]
    pub fn entries(&self, bytes: u64) -> Option<u64> {
        let entry = self.array_bytes().filter(|_| self.kind == FieldKind::Ragged)?;
        bytes.checked_rem(entry).filter(|rest| *rest == 0).and_then(|_| bytes.checked_div(entry))
    }

    /// Checks that an item of `bytes` bytes has whole entries, if the field is ragged.
    pub(crate) fn check_entries(&self, bytes: u64) -> Result<(), String> {
        if self.kind != FieldKind::Ragged || self.entries(bytes).is_some() {
            return Ok(());
        }
        let entry = counted(self.array_bytes().unwrap_or(0), "byte");
        Err(format!("expected whole entries of {entry} each, found {}", counted(bytes, "byte")))
    }

    /// The shape of an item as text, such as `[224, 224, 3]`, or `[n, 4]` if the field is ragged. Empty for a number.
    #[must_use]
    pub fn shape_text(&self) -> String {
        let entries = (self.kind == FieldKind::Ragged).then(|| "n".to_owned());
        let sides: Vec<String> = entries.into_iter().chain(self.shape.iter().map(u64::to_string)).collect();
        if sides.is_empty() { String::new() } else { format!("[{}]", sides.join(", ")) }
    }

    /// Size of `shape` elements in bytes.
    fn array_bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.dtype.size(), |n, &d| n.checked_mul(d))
    }

    /// Whether the field holds training data. Other fields describe another field or the sample's source.
    #[must_use]
    pub fn is_data(&self) -> bool {
        use Role::{Image, Label, Labels, Mask, Valid};
        let of_data = matches!(self.role, None | Some(Image | Mask | Label | Labels | Valid));
        (of_data || self.concerns_boxes()) && self.seek_index_of.is_none()
    }

    /// Whether the field has one entry for each box: the boxes themselves, their classes, attributes and keypoints.
    #[must_use]
    pub const fn is_of_boxes(&self) -> bool {
        matches!(self.role, Some(Role::Boxes | Role::BoxLabels | Role::BoxAttribute | Role::Keypoints))
    }

    /// Whether the field means nothing without the boxes: it has an entry for each box, or is their polygons.
    #[must_use]
    pub const fn concerns_boxes(&self) -> bool {
        self.is_of_boxes() || matches!(self.role, Some(Role::Polygons))
    }

    /// `(height, width, channels)` if the field is an image tensor with a known layout.
    #[must_use]
    pub fn image_shape(&self) -> Option<(u64, u64, u64)> {
        match (self.kind, self.layout.as_deref(), self.shape.as_slice()) {
            (FieldKind::Tensor, Some("hwc"), &[h, w, c]) | (FieldKind::Tensor, Some("chw"), &[c, h, w]) => {
                Some((h, w, c))
            }
            _ => None,
        }
    }

    /// Checks that this is a valid field name.
    ///
    /// # Errors
    /// [`FormatError::BadSchema`] if it is not.
    pub fn check_name(&self) -> Result<(), FormatError> {
        if (1..=MAX_NAME_BYTES).contains(&self.name.len()) && !self.name.contains(char::is_control) {
            return Ok(());
        }
        let reason = format!("a name must have 1 to {MAX_NAME_BYTES} bytes and no control characters");
        Err(FormatError::schema(&self.name, reason))
    }

    /// Checks that the shape is one that a field can have.
    ///
    /// # Errors
    /// [`FormatError::BadSchema`] if it is not.
    pub fn check_shape(&self) -> Result<(), FormatError> {
        if self.shape.len() <= MAX_DIMS && !self.shape.contains(&0) {
            return Ok(());
        }
        let reason = format!("a shape must have at most {MAX_DIMS} nonzero dimensions, found {:?}", self.shape);
        Err(FormatError::schema(&self.name, reason))
    }

    fn validate(&self) -> Result<(), FormatError> {
        let bad = |reason: String| Err(FormatError::schema(&self.name, reason));
        self.check_name()?;
        self.check_shape()?;
        let is_array = matches!(self.kind, FieldKind::Tensor | FieldKind::Ragged);
        match self.array_bytes() {
            _ if !is_array => {}
            Some(n) if n > MAX_ITEM_BYTES => return bad(format!("an item must have at most 2^40 bytes, found {n}")),
            None => return bad("an item must have at most 2^40 bytes".to_owned()),
            _ => {}
        }
        if !is_array && (self.dtype != DType::U8 || !self.shape.is_empty()) {
            return bad("a variable-size field must have dtype u8 and no shape".to_owned());
        }
        if self.store == Store::Column {
            if self.kind != FieldKind::Tensor || !self.codec.is_none() {
                return bad("a column must hold uncompressed tensors".to_owned());
            }
            if self.item_bytes().is_none_or(|n| n > MAX_COLUMN_ITEM_BYTES) {
                return bad(format!("a column's item must have at most {MAX_COLUMN_ITEM_BYTES} bytes"));
            }
        }
        match &self.keypoints {
            Some(_) if self.role != Some(Role::Keypoints) => {
                return bad("only a field with role keypoints can name keypoints".to_owned());
            }
            Some(keypoints) => keypoints.check(&self.shape).or_else(bad)?,
            None => {}
        }
        self.validate_image()
    }

    /// Checks the kind and the type that `role`, of boxes or something about them, requires.
    fn check_boxes(&self, role: Role) -> Result<(), FormatError> {
        let expected = match role {
            Role::Boxes | Role::Polygons => Self::ragged(&self.name, DType::F32, &[4]),
            Role::BoxLabels => Self::ragged(&self.name, DType::I64, &[]),
            Role::Keypoints => Self::ragged(&self.name, DType::F32, &[self.shape.first().copied().unwrap_or(1), 3]),
            _ => Self::ragged(&self.name, self.dtype, &self.shape),
        };
        if (self.kind, self.dtype, &self.shape) == (expected.kind, expected.dtype, &expected.shape) {
            return Ok(());
        }
        let reason = format!("a field with role {role} must be ragged {} {}", expected.dtype, expected.shape_text());
        Err(FormatError::schema(&self.name, reason))
    }

    fn validate_image(&self) -> Result<(), FormatError> {
        let bad = |reason: String| Err(FormatError::schema(&self.name, reason));
        if !matches!(self.layout.as_deref(), None | Some("hwc" | "chw")) {
            let found = self.layout.as_deref().unwrap_or_default();
            return bad(format!("layout must be hwc or chw, found {found:?}"));
        }
        if let Err(reason) = self.codec.check() {
            return bad(reason);
        }
        if let Some(normalize) = &self.normalize
            && !normalize.is_usable()
        {
            return bad("normalize must have finite numbers, and as many means as standard deviations".to_owned());
        }
        let filter = self.codec.filter();
        if filter.is_none() {
            return Ok(());
        }
        let channels = match self.kind {
            FieldKind::Image => None,
            _ if self.dtype == DType::U8 => match self.image_shape() {
                Some((_, _, c)) => Some(c),
                None => return bad("a pixel filter needs an image tensor with a layout".to_owned()),
            },
            _ => return bad("a pixel filter needs u8 pixels".to_owned()),
        };
        if filter.has(Filter::GREEN) && channels.is_some_and(|c| c != 3) {
            return bad("the subtract-green filter needs 3 channels".to_owned());
        }
        if filter.has(Filter::PLANAR) != (self.layout.as_deref() != Some("chw")) {
            return bad("the planar filter is required for layout hwc, and not allowed for chw".to_owned());
        }
        Ok(())
    }
}

/// The ordered fields of a sample, validated on construction.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    fields: Vec<Field>,
}

/// The schema as stored in the file.
#[derive(Serialize, Deserialize)]
struct SchemaJson {
    fields: Vec<Field>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    must_understand: Vec<String>,
}

impl Schema {
    /// Validates `fields` and makes a schema from them.
    ///
    /// # Errors
    /// [`FormatError::BadSchema`] if a field is inconsistent, a name occurs twice, or no field is in the body.
    pub fn new(fields: Vec<Field>) -> Result<Self, FormatError> {
        FormatError::check_limit("number of fields", to_u64(MAX_FIELDS), to_u64(fields.len()))?;
        let mut names = std::collections::BTreeSet::new();
        for field in &fields {
            field.validate()?;
            if !names.insert(field.name.as_str()) {
                return Err(FormatError::schema(&field.name, "two fields have this name"));
            }
        }
        if !fields.iter().any(|f| f.store == Store::Body) {
            return Err(FormatError::schema("*", "at least one field must be in the body"));
        }
        Self { fields }.with_valid_roles()?.with_valid_outlines()?.with_valid_indexes()
    }

    /// Checks that keypoints and polygons belong to boxes, and that there is at most one field of each.
    fn with_valid_outlines(self) -> Result<Self, FormatError> {
        for role in [Role::Keypoints, Role::Polygons] {
            let mut fields = self.fields.iter().filter(|field| field.role == Some(role));
            let Some(first) = fields.next() else { continue };
            if self.by_role(Role::Boxes, None).is_none() {
                let reason = format!("a field with role {role} needs a field with role boxes");
                return Err(FormatError::schema(&first.name, reason));
            }
            if let Some(second) = fields.next() {
                let reason = format!("only one field may have role {role}, and `{}` has it too", first.name);
                return Err(FormatError::schema(&second.name, reason));
            }
        }
        Ok(self)
    }

    /// Checks that each seek index belongs to an image field, and that no image field has two.
    fn with_valid_indexes(self) -> Result<Self, FormatError> {
        for field in &self.fields {
            let Some(of) = &field.seek_index_of else { continue };
            let bad = |reason| Err(FormatError::schema(&field.name, reason));
            if field.kind != FieldKind::Bytes || field.store != Store::Body {
                return bad("a seek index must be a field of kind bytes in the body");
            }
            let target = self.fields.iter().find(|f| f.name == *of);
            if target.is_none_or(|f| f.kind != FieldKind::Image) {
                return bad("`seek_index_of` does not name a field of kind image");
            }
            let same = |f: &&Field| f.seek_index_of.as_ref() == Some(of);
            if self.fields.iter().filter(same).count() > 1 {
                return bad("two fields are seek indexes of the same image field");
            }
        }
        Ok(self)
    }

    /// Checks that each field with a role has the place and type that the role requires, and that its `of` names an
    /// image field if the role needs one.
    fn with_valid_roles(self) -> Result<Self, FormatError> {
        for field in &self.fields {
            let expected: &[DType] = match field.role {
                None | Some(Role::Image | Role::Mask) => continue,
                Some(
                    role @ (Role::Boxes | Role::BoxLabels | Role::BoxAttribute | Role::Keypoints | Role::Polygons),
                ) => {
                    field.check_boxes(role)?;
                    continue;
                }
                Some(Role::Label) => &[DType::I32, DType::I64],
                Some(Role::SourceId) => &[DType::U64],
                Some(Role::SampleCrc32c | Role::SourceWidth | Role::SourceHeight | Role::Width | Role::Height) => {
                    &[DType::U32]
                }
                Some(Role::Labels | Role::Valid | Role::Channels | Role::Coding) => &[DType::U8],
            };
            let is_set = field.role == Some(Role::Labels);
            let fits = expected.contains(&field.dtype) && field.shape.len() == usize::from(is_set);
            if field.store != Store::Column || !fits {
                let types: Vec<&str> = expected.iter().map(|d| d.name()).collect();
                let (role, types) = (field.role.map_or("", Role::name), types.join(" or "));
                let reason = format!("a field with role {role} must be a column of {types}");
                return Err(FormatError::schema(&field.name, reason));
            }
            let describes = matches!(field.role, Some(Role::Width | Role::Height | Role::Channels | Role::Coding));
            let target = self.fields.iter().find(|f| Some(&f.name) == field.of.as_ref());
            if describes && target.is_none_or(|f| f.kind != FieldKind::Image) {
                return Err(FormatError::schema(&field.name, "`of` does not name a field of kind image"));
            }
        }
        Ok(self)
    }

    /// All fields.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The body fields in order, each with its number in the schema.
    pub fn body(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(|(_, f)| f.store == Store::Body)
    }

    /// The column fields in order, each with its number in the schema.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(|(_, f)| f.store == Store::Column)
    }

    /// The field with this role, and its number in the schema. If the role describes an image field, `of` is that
    /// field's name.
    #[must_use]
    pub fn by_role(&self, role: Role, of: Option<&str>) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, f)| f.role == Some(role) && f.of.as_deref() == of)
    }

    /// The field that holds the seek indexes of this image field, and its number in the schema.
    #[must_use]
    pub fn seek_index_of(&self, image: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, f)| f.seek_index_of.as_deref() == Some(image))
    }

    /// The number of the field with this name.
    ///
    /// # Errors
    /// [`FormatError::NoSuchField`], with the existing names.
    pub fn index_of(&self, name: &str) -> Result<usize, FormatError> {
        self.fields.iter().position(|f| f.name == name).ok_or_else(|| FormatError::NoSuchField {
            name: name.to_owned(),
            known: self.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Whether the body is strided: all its fields have a fixed size and no compression.
    #[must_use]
    pub fn is_strided(&self) -> bool {
        self.body().all(|(_, f)| f.kind == FieldKind::Tensor && f.codec.is_none())
    }

    /// The schema as JSON, as it is stored in the file.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, FormatError> {
        serde_json::to_vec(&SchemaJson { fields: self.fields.clone(), must_understand: Vec::new() })
            .map_err(FormatError::json("schema"))
    }

    /// Parses and validates the JSON.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, FormatError> {
        let json: SchemaJson = serde_json::from_slice(bytes).map_err(FormatError::json("schema"))?;
        if let Some(key) = json.must_understand.first() {
            return Err(FormatError::schema("*", format!("uses `{key}`, which this reader does not know")));
        }
        Self::new(json.fields)
    }
}
