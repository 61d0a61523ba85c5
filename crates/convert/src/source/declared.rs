//! Fields that a source declares once for all its samples, each with an encoding, as MosaicML Streaming, LitData and FFCV do.
//!
//! Each format's module finds the bytes of each value. This module reads the encodings that these formats share.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use packds_format::DType;
use packds_pixels::ImageFormat;

use super::ListOptions;
use super::class_names;
use super::found::{Found, LabelValues, Names};
use super::gather::{Gathered, Gathering, Item, Raw};
use super::listing::{Fault, Faults};
use super::roles::{Keys, is_image_name, is_mask_name};
use super::shards::Shards;
use super::store::{ArrayType, Content, OpenFile, SpanFiles};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;

/// Bytes before the mode of an image of Pillow: its width, its height and the length of the mode.
const PIL_HEAD: u64 = 12;
/// Maximum length of the mode. The longest has 8 bytes.
const MAX_PIL_MODE: u64 = 16;
/// Number of bytes that identify an image file.
const SNIFFED: u64 = 256;

/// The declared fields, and their items so far.
#[derive(Debug)]
pub(super) struct DeclaredFields {
    fields: Vec<Declared>,
    /// The samples with a value that cannot be read.
    faults: Faults,
}

#[derive(Debug)]
struct Declared {
    name: String,
    is_left_out: bool,
    /// Whether it is named like masks, or was chosen as the masks.
    is_mask: bool,
    /// Number of values so far.
    n: usize,
    /// `None` until a value that can be read and is not empty.
    items: Option<Gathered>,
    /// The error about the first value that cannot be read, until there are items.
    first_error: Option<ConvertError>,
}

impl DeclaredFields {
    /// No items yet. `path` is the file that declares the fields. `rename` says what to do about two fields with the same name.
    ///
    /// # Errors
    /// If two fields have the same name, or the caller excludes a field that does not exist.
    pub(super) fn new(
        path: &Path,
        names: &[String],
        rename: &str,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            let reason = format!("the field '{}' appears twice", twice.escape_debug());
            return Err(ConvertError::contradictory(path, "", reason, rename));
        }
        options.check_left_out(path, names)?;
        let field = |name: &String| Declared {
            name: name.clone(),
            is_left_out: options.is_left_out(name),
            is_mask: is_mask_name(name) || options.mask_key.as_ref() == Some(name),
            n: 0,
            items: None,
            first_error: None,
        };
        Ok(Self { fields: names.iter().map(field).collect(), faults: Faults::new() })
    }

    /// Excludes all fields but one.
    pub(super) fn keep_only(&mut self, name: &str) {
        self.fields.iter_mut().for_each(|field| field.is_left_out |= field.name != name);
    }

    /// The different strings of a field. None if its values are not strings.
    pub(super) fn words(&self, name: &str) -> BTreeSet<Vec<u8>> {
        let items = self.place(name).and_then(|place| self.fields.get(place)?.items.as_ref());
        let texts = items.and_then(Gathered::texts).into_iter().flat_map(|texts| texts.iter().enumerate());
        let good = texts.filter(|(idx, _)| !self.faults.contains_key(idx));
        good.map(|(_, text)| text.as_bytes().to_vec()).collect()
    }

    /// The index of a field.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The names of all fields.
    pub(super) fn names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// Whether the caller excluded the field.
    pub(super) fn is_left_out(&self, place: usize) -> bool {
        self.fields.get(place).is_none_or(|field| field.is_left_out)
    }

    /// Whether the field is named like masks, or was chosen as the masks.
    pub(super) fn is_mask(&self, place: usize) -> bool {
        self.fields.get(place).is_some_and(|field| field.is_mask)
    }

    /// Adds the next value of a field, which `read` reads and pushes. If it cannot be read, its sample is a bad one.
    pub(super) fn add(
        &mut self,
        place: usize,
        read: impl FnOnce(&mut Self) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let Err(error) = read(self) else { return Ok(()) };
        let (Some(fault), Some(field)) = (Fault::of_value(&error), self.fields.get_mut(place)) else {
            return Err(error);
        };
        self.faults.entry(field.n).or_insert(fault);
        field.n += 1;
        match &mut field.items {
            Some(items) => items.push_missing(),
            None => {
                field.first_error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Pushes a file or bytes. A field has image files if its first value that is not empty is one.
    pub(super) fn push_bytes(&mut self, place: usize, raw: &Raw<'_>) -> Result<(), ConvertError> {
        let Some(field) = self.fields.get_mut(place) else { return Ok(()) };
        let is_file = match &field.items {
            Some(items) => items.is_of_pictures(),
            None if raw.bytes == 0 => {
                field.n += 1;
                return Ok(());
            }
            None => ImageFormat::sniff(&raw.head(SNIFFED)?).is_some(),
        };
        self.push(place, raw, &raw.stored(0, if is_file { Content::File } else { Content::Bytes }))
    }

    /// Pushes the item of the next sample to a field.
    pub(super) fn push(&mut self, place: usize, raw: &Raw<'_>, item: &Item<'_>) -> Result<(), ConvertError> {
        let Some(field) = self.fields.get_mut(place) else { return Ok(()) };
        match &mut field.items {
            Some(items) => items.push(item).map_err(|reason| {
                let hint = format!(
                    "write values of one type and shape for this field, or leave it out with {}",
                    LEAVE_OUT.with(&field.name)
                );
                raw.contradictory(reason, hint)
            })?,
            None => field.items = Some(Gathered::begin_after(field.n, field.name.clone(), item)),
        }
        field.n += 1;
        Ok(())
    }

    /// Decides the role of each field. If no field has a common name for images, the only field of images is taken, or else the only
    /// field of arrays.
    ///
    /// # Errors
    /// If a field has no value that can be read, or has no role that fits its values.
    pub(super) fn into_found(
        self,
        format: DataFormat,
        files: Vec<OpenFile>,
        part: &Shards,
        options: &ListOptions,
    ) -> Result<Found, ConvertError> {
        let mut fields = Vec::new();
        for field in self.fields {
            match (field.items, field.first_error) {
                (Some(items), _) => fields.push(items),
                (None, Some(error)) => return Err(error),
                (None, None) if field.n > 0 => fields.push(Gathered::blank(field.n, field.name)),
                (None, None) => {}
            }
        }
        let mut warnings = Vec::new();
        let metadata = part.metadata(&mut warnings)?;
        let mut options = options.clone();
        if options.image_key.is_none() && metadata.is_none() {
            options.image_key = only_images(&fields, Keys::of(&options));
        }
        let gathering = Gathering {
            format,
            fields,
            names: Names::Numbered(format.entry().sample.to_owned()),
            files: SpanFiles::open(files),
            classes: Vec::new(),
            labels: None,
            metadata,
            warnings,
            ignored: 0,
        };
        let mut found = gathering.into_found(&part.root, &options)?;
        found.faults = self.faults;
        if options.label_key.is_none() {
            found.take_texts();
        }
        let has_ids = found.labels.as_ref().is_some_and(|labels| matches!(labels.values, LabelValues::Ids(_)));
        if let Some(first) = part.files.first().filter(|_| has_ids) {
            found.warnings.extend(class_names::beside(first)?);
        }
        Ok(found)
    }
}

/// The only field of images, else the only field of arrays, if no field has a common name for images.
fn only_images(fields: &[Gathered], keys: Keys<'_>) -> Option<String> {
    let is_free = |field: &&Gathered| !keys.has(&field.name);
    if fields.iter().filter(is_free).any(|field| is_image_name(&field.name)) {
        return None;
    }
    let is_free = |field: &&Gathered| is_free(field) && !is_mask_name(&field.name);
    let only = |is_one: fn(&Gathered) -> bool| {
        let mut found = fields.iter().filter(is_free).filter(|field| is_one(field));
        let first = found.next()?;
        if found.next().is_none() { Some(first.name.clone()) } else { None }
    };
    match fields.iter().filter(is_free).any(Gathered::is_of_pictures) {
        true => only(Gathered::is_of_pictures),
        false => only(Gathered::is_of_planes),
    }
}

/// The error about a field in an encoding that is not read. `how` says how to write it instead.
pub(super) fn unread(path: &Path, name: &str, reason: String, how: &str) -> ConvertError {
    let hint = format!("leave it out with {}, or {how}", LEAVE_OUT.with(name));
    ConvertError::unsupported(path, &format!("field '{}'", name.escape_debug()), reason, hint)
}

/// The error about a field of pickles.
pub(super) fn pickled(path: &Path, name: &str) -> ConvertError {
    let reason = "the values are pickles, and loading them would run code".to_owned();
    unread(path, name, reason, "write the field in another encoding")
}

/// The error about a field with a list of images in each sample.
pub(super) fn several_images(path: &Path, name: &str) -> ConvertError {
    let reason = "each value is a list of images, and a pack stores one image for each field of a sample".to_owned();
    unread(path, name, reason, "write each image of the list as its own sample or field")
}

/// The little-endian number at the start of `bytes`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

/// A number of this type.
pub(super) fn number(dtype: DType, raw: &Raw<'_>) -> Result<Item<'static>, ConvertError> {
    if raw.bytes != dtype.size() {
        return Err(raw.wrong(format!(
            "expected {} bytes for a number of type {dtype}, found {}",
            dtype.size(),
            raw.bytes
        )));
    }
    Ok(raw.stored(0, Content::Array(ArrayType { dtype, shape: Vec::new() })))
}

/// An array whose values start after `skip` bytes.
pub(super) fn array(dtype: DType, shape: Vec<u64>, skip: u64, raw: &Raw<'_>) -> Result<Item<'static>, ConvertError> {
    let (array, found) = (ArrayType { dtype, shape }, raw.bytes.saturating_sub(skip));
    if array.bytes() != Some(found) {
        let expected = array.bytes().map_or("more than 64 bits can count".to_owned(), |n| n.to_string());
        let shape = &array.shape;
        return Err(
            raw.wrong(format!("expected {expected} bytes for {dtype} values of shape {shape:?}, found {found}"))
        );
    }
    Ok(raw.stored(skip, Content::of_array(array)))
}

/// JSON without whitespace.
pub(super) fn json(raw: &Raw<'_>) -> Result<String, ConvertError> {
    let text = raw.text()?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        let reason = format!("expected JSON: {error}");
        // Python's own JSON has these words.
        match ["NaN", "Infinity"].iter().any(|word| text.contains(word)) {
            true => no_json_number(raw, reason),
            false => raw.wrong(reason),
        }
    })?;
    Ok(value.to_string())
}

/// The error about a number that JSON cannot express.
pub(super) fn no_json_number(raw: &Raw<'_>, reason: String) -> ConvertError {
    raw.contradictory(reason, "write numbers that JSON can express (not NaN or Infinity), or null".to_owned())
}

/// The pixels of an image as Pillow holds them: width, height, length of the mode, the mode, and rows of pixels. Palettes are not
/// stored, so images with a palette are read only as masks (`is_mask`), whose numbers are classes.
pub(super) fn pil(raw: &Raw<'_>, is_mask: bool) -> Result<Item<'static>, ConvertError> {
    let head = raw.head(PIL_HEAD + MAX_PIL_MODE)?;
    let numbers = [0, 4, 8].map(|at| u32_at(&head, at));
    let [Some(width), Some(height), Some(mode)] = numbers.map(|number| number.map(u64::from)) else {
        return Err(raw.wrong(format!("expected {PIL_HEAD} bytes before the pixels, found {}", raw.bytes)));
    };
    let skip = PIL_HEAD.saturating_add(mode);
    let text = usize::try_from(skip).ok().and_then(|end| head.get(usize::try_from(PIL_HEAD).ok()?..end));
    let Some(text) = text.filter(|_| mode <= MAX_PIL_MODE) else {
        return Err(raw.wrong(format!("expected a mode of at most {MAX_PIL_MODE} bytes, found {mode}")));
    };
    let (dtype, channels) = match text {
        b"L" => (DType::U8, None),
        b"P" if is_mask => (DType::U8, None),
        b"LA" => (DType::U8, Some(2)),
        b"RGB" => (DType::U8, Some(3)),
        b"RGBA" => (DType::U8, Some(4)),
        b"I;16" => (DType::U16, None),
        b"I" => (DType::I32, None),
        b"F" => (DType::F32, None),
        other => {
            let mode = other.escape_ascii();
            let hint = match other {
                b"1" => "write it after image.convert('L'), or a mask as an array: numpy.asarray(image, 'uint8')",
                _ => "write it after image.convert('RGB') or image.convert('L')",
            };
            let reason = match other {
                b"P" => "the image has a palette (mode P), which this format does not store".to_owned(),
                _ => format!("expected an image of mode L, LA, RGB, RGBA, I;16, I or F, found mode '{mode}'"),
            };
            return Err(raw.unsupported(reason, hint.to_owned()));
        }
    };
    let shape = [Some(height), Some(width), channels].into_iter().flatten().collect();
    array(dtype, shape, skip, raw)
}
