//! Plans the pack before any image is converted: geometry, schema, chunk size and order.

use std::path::Path;

use packds_format::{
    Coding, DType, Field, FieldKind, Filter, FormatError, Normalize, PackOptions, Permutation, Role, Schema,
    chunk_samples_for, chunk_samples_without_padding,
};
use packds_pixels::ops::Emit;
use packds_pixels::{Crop, FloatType, Geometry, Layout, PixelError, Resize};
use packds_system::{counted, to_u64, to_usize};
use serde::{Deserialize, Serialize};

use crate::ConvertError;
use crate::opt::{CROP, DTYPE, GRAY, LAYOUT, LEAVE_OUT, MODE, NORMALIZE, QUALITY, RESIZE, SIZE};
use crate::options::{ConvertOptions, Mode, NormalizeBy, OnError};
use crate::pipeline::Observer;
use crate::source::store::{ArrayType, Content, PixelShape};
use crate::source::{ColumnValues, Listing, SourceColumn, SourceField};
use crate::survey::{Sizes, mean_file_bytes, mean_item_bytes, mean_other_bytes, refuse_white, survey};

/// Short side that images of several sizes are resized to. Together with [`DEFAULT_CROP`], this is the usual
/// preprocessing for evaluation at 224 pixels.
const DEFAULT_SHORT: u32 = 256;
const DEFAULT_CROP: u32 = 224;
/// Names of the fields that a conversion adds.
const IMAGE: &str = "image";
pub(crate) const MASK: &str = "mask";
const LABEL: &str = "label";
const LABELS: &str = "labels";
const VALID: &str = "valid";
const SOURCE_ID: &str = "source_id";
const SOURCE_WIDTH: &str = "source_width";
const SOURCE_HEIGHT: &str = "source_height";
/// JPEG quality of the encoded part of a mixed pack.
pub(crate) const MIXED_QUALITY: u8 = 90;

/// How the image of a sample is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImageForm {
    /// Pixels of one size for all images.
    Fixed { width: u32, height: u32 },
    /// An array of this type, stored unchanged.
    Array(ArrayType),
    /// Pixels, with a separate size for each image.
    Variable,
    /// The source file unchanged, or re-encoded.
    Encoded { quality: Option<u8> },
    /// Raw pixels if a hash of the path and the seed is below the fraction, otherwise like `Encoded`.
    Mixed { raw_fraction: f64, quality: Option<u8> },
}

impl ImageForm {
    /// Whether all items have the size that the schema states.
    pub(crate) const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed { .. } | Self::Array(_))
    }
}

/// Schema indices of the fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldNumbers {
    pub(crate) image: usize,
    pub(crate) seek: Option<usize>,
    pub(crate) mask: Option<usize>,
    /// Width and height of all masks, if the images have one size.
    pub(crate) mask_size: Option<(u32, u32)>,
    pub(crate) label: Option<usize>,
    pub(crate) labels: Option<usize>,
    pub(crate) valid: Option<usize>,
    pub(crate) source_id: usize,
    pub(crate) source_width: usize,
    pub(crate) source_height: usize,
    /// The size and coding columns of the image, if images vary in size.
    pub(crate) image_columns: Option<ItemColumns>,
    pub(crate) mask_columns: Option<ItemColumns>,
    /// The field of each additional source column.
    pub(crate) extra: Vec<usize>,
    /// The field of each additional array or byte string of the source.
    pub(crate) source_fields: Vec<usize>,
}

/// The columns that describe an image field of variable size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemColumns {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) channels: usize,
    pub(crate) coding: usize,
}

impl FieldNumbers {
    /// The fields of a schema by name. `mask_size` is the size of all masks, which the schema has only if there are masks.
    ///
    /// # Errors
    /// If a field is missing. This cannot happen to the schema of a plan, but to one that was read from a file.
    pub(crate) fn of(
        schema: &Schema,
        listing: &Listing,
        options: &ConvertOptions,
        mask_size: Option<(u32, u32)>,
    ) -> Result<Self, FormatError> {
        let of = |name: &str| {
            let reason = "expected in the schema, found none".to_owned();
            let missing = || FormatError::BadSchema { field: name.to_owned(), reason };
            schema.fields().iter().position(|field| field.name == name).ok_or_else(missing)
        };
        let if_any = |condition: bool, name: &str| condition.then(|| of(name)).transpose();
        let described = |name: &str| {
            let is_described = schema.fields().iter().any(|field| field.of.as_deref() == Some(name));
            let column = |suffix: &str| of(&format!("{name}.{suffix}"));
            let columns = || {
                let (width, height) = (column("width")?, column("height")?);
                Ok::<_, FormatError>(ItemColumns {
                    width,
                    height,
                    channels: column("channels")?,
                    coding: column("coding")?,
                })
            };
            is_described.then(columns).transpose()
        };
        Ok(Self {
            image: of(IMAGE)?,
            seek: if_any(options.seekable, &format!("{IMAGE}.seek"))?,
            mask: if_any(listing.has_masks(), MASK)?,
            mask_size,
            label: if_any(listing.has_labels(), LABEL)?,
            labels: if_any(listing.has_label_lists(), LABELS)?,
            valid: if_any(options.on_error == OnError::Substitute, VALID)?,
            source_id: of(SOURCE_ID)?,
            source_width: of(SOURCE_WIDTH)?,
            source_height: of(SOURCE_HEIGHT)?,
            image_columns: described(IMAGE)?,
            mask_columns: described(MASK)?,
            extra: listing.columns().iter().map(|column| of(&column.name)).collect::<Result<_, _>>()?,
            source_fields: listing.fields().iter().map(|field| of(&field.name)).collect::<Result<_, _>>()?,
        })
    }
}

/// The width and the height that a field states for its images.
pub(crate) fn size_of(field: &Field) -> Option<(u32, u32)> {
    field.image_shape().map(|(height, width, _)| (narrow(width), narrow(height)))
}

/// The plan of a pack.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) geometry: Geometry,
    pub(crate) form: ImageForm,
    pub(crate) pack: PackOptions,
    pub(crate) fields: FieldNumbers,
    /// Decisions made by default, to be reported.
    pub(crate) notes: Vec<String>,
    /// The type of the label column.
    pub(crate) label_dtype: DType,
    /// Mean and standard deviation, for float pixels and for the schema's normalization.
    pub(crate) affine: Option<(Vec<f64>, Vec<f64>)>,
}

/// Plans everything except the dataset's own mean and standard deviation, which are measured in a separate pass.
pub(crate) fn plan(listing: &Listing, options: &ConvertOptions, observer: &dyn Observer) -> Result<Plan, ConvertError> {
    let mut notes = Vec::new();
    let (geometry, form) = decide_image(listing, options, observer, &mut notes)?;
    let affine = match &options.normalize {
        NormalizeBy::None | NormalizeBy::Dataset => None,
        NormalizeBy::ImageNet => Some((NormalizeBy::IMAGENET_MEAN.to_vec(), NormalizeBy::IMAGENET_STD.to_vec())),
        NormalizeBy::Values { mean, std } => Some((mean.clone(), std.clone())),
    };
    let label_dtype = label_dtype(listing);
    let mut plan = Plan {
        geometry,
        form,
        pack: PackOptions::new(Schema::new(vec![Field::tensor(IMAGE, DType::U8, &[1])])?, 1),
        fields: FieldNumbers::default(),
        notes,
        label_dtype,
        affine,
    };
    plan.build_schema(listing, options)?;
    plan.pack.chunk_samples = plan.chunk_samples(listing, options)?;
    Ok(plan)
}

fn decide_image(
    listing: &Listing,
    options: &ConvertOptions,
    observer: &dyn Observer,
    notes: &mut Vec<String>,
) -> Result<(Geometry, ImageForm), ConvertError> {
    let mut geometry = Geometry {
        resize: options.resize.unwrap_or_default(),
        crop: options.crop.unwrap_or_default(),
        filter: options.filter,
        orientation: options.orientation,
    };
    if let Some(array) = one_array(listing)? {
        check_array(&array, options)?;
        return Ok((geometry, ImageForm::Array(array)));
    }
    if options.mode == Mode::Encoded {
        check_has_files(listing, options)?;
        return Ok((geometry, ImageForm::Encoded { quality: options.quality }));
    }
    refuse_white(listing, options)?;
    let sizes = survey(listing, options, &geometry, observer)?;
    if options.resize.is_none() && options.crop.is_none() && sizes == Sizes::Several {
        geometry.resize = Resize::Short(DEFAULT_SHORT);
        geometry.crop = Crop::Center { width: DEFAULT_CROP, height: DEFAULT_CROP };
        let keeps = format!(", and {} keeps the files' bytes", MODE.with("encoded"));
        let are_files = listing.image_contents().all(|content| content == Content::File);
        notes.push(format!(
            "images have several sizes, so they are resized to short side {DEFAULT_SHORT} and cropped to {DEFAULT_CROP} \
             (usual for evaluation); {} without {CROP} leaves room for random crops{}",
            RESIZE.with("short:256"),
            if are_files { &keeps } else { "" }
        ));
    }
    if options.mode == Mode::Mixed {
        let raw_fraction = options.raw_fraction.unwrap_or(ConvertOptions::RAW_FRACTION);
        let identity = !options.has_geometry() && geometry.resize == Resize::None && geometry.crop == Crop::None;
        let quality = if identity { options.quality } else { Some(options.quality.unwrap_or(MIXED_QUALITY)) };
        return Ok((geometry, ImageForm::Mixed { raw_fraction, quality }));
    }
    let fixed = match (geometry.crop, geometry.resize, sizes) {
        (Crop::Center { width, height }, _, _) | (Crop::None, Resize::Exact { width, height }, _) => {
            Some((width, height))
        }
        (Crop::None, _, Sizes::One { width, height }) => Some((width, height)),
        (Crop::None, _, Sizes::Several) => None,
        (Crop::None, _, Sizes::Unknown) => {
            // No file could be read, so any size will do: the conversion will report the bad files.
            Some((DEFAULT_CROP, DEFAULT_CROP))
        }
    };
    Ok(match fixed {
        Some((width, height)) => (geometry, ImageForm::Fixed { width, height }),
        None if options.dtype != DType::U8 || options.layout() == Layout::Chw => {
            let (dtype, layout) = (DTYPE.with(options.dtype), LAYOUT.with(options.layout()));
            return Err(ConvertError::options(
                format!("{dtype} and {layout} need images of one size, but these have several sizes"),
                format!("add {}, or {}", CROP.with("center:224"), RESIZE.with(SIZE)),
            ));
        }
        None => (geometry, ImageForm::Variable),
    })
}

/// Returns an error if image files would be kept but the source contains pixels instead.
fn check_has_files(listing: &Listing, options: &ConvertOptions) -> Result<(), ConvertError> {
    let keeps = options.quality.is_none();
    if keeps && listing.has_pixels() {
        return Err(ConvertError::options(
            format!("{} keeps image files, but the source contains pixels", MODE.with("encoded")),
            format!("add {} to encode them as JPEG, or use {}", QUALITY.with(90), MODE.with("raw")),
        ));
    }
    Ok(())
}

/// The type of the images if they are plain arrays. Arrays of different types are an error.
fn one_array(listing: &Listing) -> Result<Option<ArrayType>, ConvertError> {
    let mut found: Option<ArrayType> = None;
    for content in listing.image_contents() {
        match (content, &found) {
            (Content::Array(array), None) => found = Some(array),
            (Content::Array(array), Some(before)) if array == *before => {}
            (Content::Array(array), Some(before)) => {
                return Err(ConvertError::unsupported(
                    listing.root(),
                    "",
                    format!(
                        "the arrays differ in type or shape: {} {:?} and {} {:?}",
                        before.dtype, before.shape, array.dtype, array.shape
                    ),
                    "give all arrays the same type and shape",
                ));
            }
            _ => return Ok(found),
        }
    }
    Ok(found)
}

/// Rejects options that would change pixels, because plain arrays are stored unchanged.
fn check_array(array: &ArrayType, options: &ConvertOptions) -> Result<(), ConvertError> {
    let default = ConvertOptions::default();
    let changes = options.has_geometry()
        || options.mode != default.mode
        || options.dtype != default.dtype
        || options.layout.is_some()
        || options.color.is_some()
        || options.normalize != default.normalize
        || options.jpeg_scaling;
    if !changes {
        return Ok(());
    }
    Err(ConvertError::Options {
        reason: format!(
            "the images are {} arrays of shape {:?}, and such arrays are stored unchanged",
            array.dtype, array.shape
        ),
        hint: format!(
            "omit {MODE}, {RESIZE}, {CROP}, {GRAY}, {DTYPE}, {LAYOUT} and {NORMALIZE}: they only apply to u8 images with 1 or 3 channels"
        ),
    })
}

/// `i32`, or `i64` if a label does not fit.
fn label_dtype(listing: &Listing) -> DType {
    let fits = |i| listing.label(i).is_none_or(|label| i32::try_from(label).is_ok());
    if (0..listing.len()).all(fits) { DType::I32 } else { DType::I64 }
}

/// Maximum number of classes in a label set. Its bits must fit in a column item of 1024 bytes.
const MAX_LABELS: i64 = 8192;

/// Size of a label set in bytes. It has one bit per class, or more bits if the largest id requires them.
fn label_set_bytes(listing: &Listing) -> Result<u64, ConvertError> {
    let lists = (0..listing.len()).filter_map(|i| listing.label_list(i));
    let largest = lists.flatten().copied().max().unwrap_or(0);
    let named = i64::try_from(listing.classes().len()).unwrap_or(i64::MAX);
    let n = named.max(largest.saturating_add(1));
    match u64::try_from(n) {
        Ok(bits) if n <= MAX_LABELS => Ok(bits.div_ceil(8).max(1)),
        _ => Err(ConvertError::options(
            format!("the ids in a label set must be from 0 to {}, found {}", MAX_LABELS - 1, n - 1),
            "number the labels from 0, or use their names",
        )),
    }
}

impl Plan {
    /// Whether the sample with this path is stored as raw pixels.
    pub(crate) fn is_raw(&self, seed: u64, path: &[u8]) -> bool {
        match self.form {
            ImageForm::Fixed { .. } | ImageForm::Array(_) | ImageForm::Variable => true,
            ImageForm::Encoded { .. } => false,
            ImageForm::Mixed { raw_fraction, .. } => {
                // The upper 53 bits, scaled to 0..1. An f64 represents the result exactly.
                #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64")]
                let share = (packds_format::hash_bytes(seed, path) >> 11) as f64 / 9_007_199_254_740_992.0;
                share < raw_fraction
            }
        }
    }

    /// Builds the schema. Called again when the dataset's mean and standard deviation have been measured.
    pub(crate) fn build_schema(&mut self, listing: &Listing, options: &ConvertOptions) -> Result<(), ConvertError> {
        let mut fields = Fields::default();
        let image = self.image_field(listing, options);
        let mask_size = size_of(&image).or_else(|| self.size_by_masks(listing));
        fields.add(image);
        if options.seekable {
            fields.add(seek_field(IMAGE));
        }
        if listing.has_masks() {
            fields.add(mask_field(mask_size, options));
        }
        let others = add_others(listing, options, &mut fields);
        if listing.has_labels() {
            fields.column(LABEL, self.label_dtype, Role::Label);
        }
        if listing.has_label_lists() {
            let bytes = label_set_bytes(listing)?;
            let field = Field::column(LABELS, DType::U8, &[bytes]);
            fields.add(field.with_role(Role::Labels));
        }
        if options.on_error == OnError::Substitute {
            fields.column(VALID, DType::U8, Role::Valid);
        }
        fields.column(SOURCE_ID, DType::U64, Role::SourceId);
        fields.column(SOURCE_WIDTH, DType::U32, Role::SourceWidth);
        fields.column(SOURCE_HEIGHT, DType::U32, Role::SourceHeight);
        if !self.form.is_fixed() {
            fields.describe(IMAGE);
        }
        if listing.has_masks() && mask_size.is_none() {
            fields.describe(MASK);
        }
        fields.column("sample_crc32c", DType::U32, Role::SampleCrc32c);
        fields.check_names(listing.root(), &others)?;
        self.pack.schema = Schema::new(fields.list)?;
        self.fields = FieldNumbers::of(&self.pack.schema, listing, options, mask_size)?;
        Ok(())
    }

    /// Size of a field's items in bytes. 0 if items vary in size.
    pub(crate) fn item_bytes(&self, field: usize) -> usize {
        to_usize(self.pack.schema.fields().get(field).and_then(Field::item_bytes).unwrap_or(0))
    }

    pub(crate) fn is_column(&self, field: usize) -> bool {
        self.pack.schema.columns().any(|(number, _)| number == field)
    }

    /// Height and width of image arrays with a known layout, otherwise 0.
    pub(crate) fn array_size(&self) -> (u32, u32) {
        let field = self.pack.schema.fields().get(self.fields.image);
        let shape = field.and_then(Field::image_shape);
        shape.map_or((0, 0), |(height, width, _)| (narrow(height), narrow(width)))
    }

    /// Width and height that masks must have if the images are arrays: planes of numbers, such as slices of a volume,
    /// or arrays with bands. `None` if the images are not arrays, or if the order of the arrays' dimensions is unknown.
    pub(crate) fn plane_size(&self) -> Option<(u32, u32)> {
        let ImageForm::Array(array) = &self.form else { return None };
        match *array.shape.as_slice() {
            [height, width] => Some((narrow(width), narrow(height))),
            _ => self.fields.mask_size,
        }
    }

    /// Width and height of arrays with bands. Only the size of a mask shows whether the bands come first or last.
    /// `None` if the images are not arrays with three dimensions, or if no mask can be read.
    fn size_by_masks(&self, listing: &Listing) -> Option<(u32, u32)> {
        let ImageForm::Array(array) = &self.form else { return None };
        let [first, second, third] = <[u64; 3]>::try_from(array.shape.as_slice()).ok()?.map(narrow);
        let mut samples = 0..if listing.has_masks() { listing.len() } else { 0 };
        let found = samples.find_map(|idx| mask_size(listing, idx))?;
        Some(if found == (third, second) { found } else { (second, first) })
    }

    fn image_field(&self, listing: &Listing, options: &ConvertOptions) -> Field {
        if let ImageForm::Array(array) = &self.form {
            return array_field(array, listing, options);
        }
        let channels = if options.color().channels() == 1 { 1 } else { 3 };
        let interleaved = options.layout() == Layout::Hwc;
        let mut field = match self.form {
            ImageForm::Fixed { width, height } => {
                let (w, h) = (u64::from(width), u64::from(height));
                let shape = if interleaved { [h, w, channels] } else { [channels, h, w] };
                Field { layout: Some(options.layout().to_string()), ..Field::tensor(IMAGE, options.dtype, &shape) }
            }
            _ => Field::variable(IMAGE, FieldKind::Image),
        };
        let pixels = match (options.dtype, &self.form) {
            (DType::U8, ImageForm::Fixed { .. }) => Filter::for_pixels(channels, interleaved),
            (DType::U8, ImageForm::Variable) => Filter::for_pixels(channels, true),
            _ => Filter::NONE,
        };
        field.codec = options.compression.codec(pixels);
        field.color = Some(if channels == 1 { "gray" } else { "rgb" }.to_owned());
        field.normalize = self.normalize(options);
        field.with_role(Role::Image)
    }

    /// The normalization in the schema: either applied already, or left to the reader.
    pub(crate) fn normalize(&self, options: &ConvertOptions) -> Option<Normalize> {
        let applied = options.dtype != DType::U8;
        let channels = options.color().channels();
        let (mean, std) = match &self.affine {
            Some((mean, std)) => (mean.clone(), std.clone()),
            None if applied => (vec![0.0; channels], vec![1.0; channels]),
            None => return None,
        };
        Some(Normalize { scale: 1.0 / 255.0, mean, std, applied })
    }

    /// Returns the final step for the pixels of an image, which converts them to floats if requested and arranges them
    /// in the layout.
    pub(crate) fn emit(&self, options: &ConvertOptions) -> Result<Emit, PixelError> {
        #[expect(clippy::cast_possible_truncation, reason = "normalization is computed in f32, as in torchvision")]
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        let float = FloatType::named(options.dtype.name());
        let affine = self.affine.as_ref().filter(|_| float.is_some());
        let affine = affine.map(|(mean, std)| (narrow(mean), narrow(std)));
        let affine = affine.as_ref().map(|(mean, std)| (mean.as_slice(), std.as_slice()));
        Emit::new(options.color().channels(), affine, float, options.layout())
    }

    fn chunk_samples(&self, listing: &Listing, options: &ConvertOptions) -> Result<u32, ConvertError> {
        if let Some(n) = options.chunk_samples {
            return Ok(n);
        }
        let fixed: u64 = self.pack.schema.body().filter_map(|(_, f)| f.item_bytes()).fold(0, u64::saturating_add);
        let pictures = match self.form {
            ImageForm::Fixed { .. } | ImageForm::Array(_) => 0,
            ImageForm::Encoded { quality: None } => mean_file_bytes(listing),
            _ => mean_item_bytes(listing, options, self)?,
        };
        let variable = pictures.saturating_add(mean_other_bytes(listing, self));
        let most = chunk_samples_for(fixed.saturating_add(variable), options.batch);
        let schema = &self.pack.schema;
        // If several fields are strided, the last chunk is padded to full size. Otherwise it ends after its last
        // sample.
        let is_padded = schema.is_strided() && schema.body().count() > 1;
        Ok(match options.batch {
            None if is_padded => chunk_samples_without_padding(most, to_u64(listing.len())),
            _ => most,
        })
    }

    pub(crate) fn describe_images(&self, options: &ConvertOptions) -> String {
        let channels = options.color().channels();
        let files = |quality: &Option<u8>| match quality {
            None => "the files' own bytes".to_owned(),
            Some(quality) => format!("JPEG files of quality {quality}"),
        };
        match &self.form {
            ImageForm::Fixed { width, height } => match options.layout() {
                Layout::Hwc => format!("{} {height}x{width}x{channels}", options.dtype),
                Layout::Chw => format!("{} {channels}x{height}x{width}", options.dtype),
            },
            ImageForm::Array(array) => format!("{} arrays {:?}", array.dtype, array.shape),
            ImageForm::Variable => format!("u8 pixels, variable size, {}", counted(channels, "channel")),
            ImageForm::Encoded { quality } => files(quality),
            ImageForm::Mixed { raw_fraction, quality } => {
                format!("mixed: {:.0} % u8 pixels, the rest {}", raw_fraction * 100.0, files(quality))
            }
        }
    }
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Width and height of a mask. `None` if the sample is bad or has no mask, or if the header of the mask cannot be read.
fn mask_size(listing: &Listing, idx: usize) -> Option<(u32, u32)> {
    if listing.fault(idx).is_some() || listing.mask_bytes(idx) == 0 {
        return None;
    }
    let mut mask = Vec::new();
    match listing.append_mask(idx, (0, 0), &mut mask).ok()?? {
        Content::Pixels(shape) => Some((shape.width, shape.height)),
        _ => packds_pixels::probe(&mask).ok().map(|info| (info.width, info.height)),
    }
}

/// A mask field. `size` is the width and height of all masks, or `None` if masks vary in size.
fn mask_field(size: Option<(u32, u32)>, options: &ConvertOptions) -> Field {
    let mut field = match size {
        Some((width, height)) => Field::tensor(MASK, DType::U8, &[u64::from(height), u64::from(width)]),
        None => Field::variable(MASK, FieldKind::Image),
    };
    // A filter would not help: differences between class numbers have no meaning, and zstd finds runs by itself.
    field.codec = options.compression.codec(Filter::NONE);
    field.color = Some("index".to_owned());
    field.with_role(Role::Mask)
}

/// Adds the additional fields of the source. Fields from an exported pack keep their order; other fields follow,
/// columns first. Returns their numbers.
fn add_others(listing: &Listing, options: &ConvertOptions, fields: &mut Fields) -> Vec<usize> {
    let known = |name: &str| listing.metadata().and_then(|m| m.field(name));
    let place = |name: &str| {
        let mut fields = listing.metadata().into_iter().flat_map(|m| &m.fields);
        fields.position(|f| f.name == name).unwrap_or(usize::MAX)
    };
    let column = |c: &SourceColumn| (place(&c.name), extra_field(&c.name, &c.values, options));
    let columns = listing.columns().iter().map(column);
    let source = |s: &SourceField| {
        let keypoints = listing.keypoints().filter(|_| s.role == Some(Role::Keypoints)).cloned();
        (place(&s.name), Field { keypoints, ..source_field(s, known(&s.name), options) })
    };
    let mut others: Vec<(usize, Field)> = columns.chain(listing.fields().iter().map(source)).collect();
    others.sort_by_key(|(place, _)| *place);
    others.into_iter().map(|(_, field)| fields.add(field)).collect()
}

/// The fields of a schema that is being built.
#[derive(Default)]
struct Fields {
    list: Vec<Field>,
}

impl Fields {
    fn add(&mut self, field: Field) -> usize {
        self.list.push(field);
        self.list.len() - 1
    }

    /// Adds a column with one value per sample.
    fn column(&mut self, name: &str, dtype: DType, role: Role) -> usize {
        self.add(Field::column(name, dtype, &[]).with_role(role))
    }

    /// Adds the columns that describe the items of a variable-size image field.
    fn describe(&mut self, of: &str) {
        let mut described = |suffix: &str, dtype, role| {
            let field = Field::column(&format!("{of}.{suffix}"), dtype, &[]).with_role(role);
            self.add(Field { of: Some(of.to_owned()), ..field });
        };
        described("width", DType::U32, Role::Width);
        described("height", DType::U32, Role::Height);
        described("channels", DType::U8, Role::Channels);
        described("coding", DType::U8, Role::Coding);
    }

    /// Rejects fields of the source that have the same name as another field. `others` contains the indices of the
    /// source's fields.
    fn check_names(&self, source: &Path, others: &[usize]) -> Result<(), ConvertError> {
        let named = |name: &str| self.list.iter().filter(|field| field.name == name).count();
        let others: Vec<&str> = others.iter().filter_map(|n| self.list.get(*n)).map(|f| f.name.as_str()).collect();
        let Some(name) = others.iter().find(|name| named(name) > 1) else { return Ok(()) };
        let (reason, rename, exclude) = match others.iter().filter(|other| *other == name).count() {
            1 => (format!("field `{name}` of the source has a name that packs reserve"), "it", "it"),
            n => (format!("{n} fields of the source have the name `{name}`"), "all but one", "them"),
        };
        let hint = format!("rename {rename}, or exclude {exclude} with {LEAVE_OUT}");
        Err(ConvertError::unsupported(source, "", reason, hint))
    }
}

/// The field of seek indexes for an image field. They are stored uncompressed, because they do not compress well.
fn seek_field(of: &str) -> Field {
    Field { seek_index_of: Some(of.to_owned()), ..Field::variable(&format!("{of}.seek"), FieldKind::Bytes) }
}

/// The image field for arrays that are stored unchanged. Its layout and color come from the pack that the arrays were
/// exported from, otherwise from their shape.
fn array_field(array: &ArrayType, listing: &Listing, options: &ConvertOptions) -> Field {
    let field = Field::tensor(IMAGE, array.dtype, &array.shape).with_role(Role::Image);
    let known = listing.metadata().and_then(|metadata| {
        let field = metadata.image()?;
        (field.dtype == array.dtype && field.shape == array.shape).then_some(field)
    });
    let (layout, color) = match array.shape.as_slice() {
        [_, _, 1] => (Some("hwc"), Some("gray")),
        [_, _, 3] => (Some("hwc"), Some("rgb")),
        [1, _, _] => (Some("chw"), Some("gray")),
        [3, _, _] => (Some("chw"), Some("rgb")),
        _ => (None, None),
    };
    let own = |text: Option<&str>| text.map(str::to_owned);
    Field {
        layout: known.map_or(own(layout), |field| field.layout.clone()),
        color: known.map_or(own(color), |field| field.color.clone()),
        normalize: known.and_then(|field| field.normalize.clone()),
        codec: options.compression.codec(Filter::NONE),
        ..field
    }
}

/// Maximum size of a column item in bytes.
const MAX_COLUMN_BYTES: u64 = 1024;

/// The field for an additional source field. Numbers and small arrays become columns. `known` is the pack
/// field that the source field was exported from, if any.
fn source_field(source: &SourceField, known: Option<&Field>, options: &ConvertOptions) -> Field {
    let variable = |kind| Field {
        codec: options.compression.codec(Filter::NONE),
        role: source.role,
        ..Field::variable(&source.name, kind)
    };
    let array = match source.store.content(0) {
        Content::Array(array) => array,
        Content::Pixels(shape) => pixel_array(shape, known),
        Content::Ragged(entry) => {
            let codec = options.compression.codec(Filter::NONE);
            return Field { codec, role: source.role, ..Field::ragged(&source.name, entry.dtype, &entry.shape) };
        }
        Content::File | Content::Bytes => return variable(FieldKind::Bytes),
        Content::Text => return variable(FieldKind::String),
        Content::Json => return variable(FieldKind::Json),
    };
    let field = numbers_field(&source.name, &array);
    let codec =
        if field.store == packds_format::Store::Body { options.compression.codec(Filter::NONE) } else { field.codec };
    Field { role: source.role, codec, ..field }
}

/// The field for numbers or arrays of this type: a column if they are small.
pub(crate) fn numbers_field(name: &str, array: &ArrayType) -> Field {
    match array.bytes() {
        Some(0..=MAX_COLUMN_BYTES) => Field::column(name, array.dtype, &array.shape),
        _ => Field::tensor(name, array.dtype, &array.shape),
    }
}

/// The array type for pixels. If the shape in the exported pack differs only in a channel dimension of size one, that
/// shape is used.
fn pixel_array(shape: PixelShape, known: Option<&Field>) -> ArrayType {
    let known = known.map(|field| ArrayType { dtype: field.dtype, shape: field.shape.clone() });
    let same = |array: &ArrayType| PixelShape::of(array) == Some(shape);
    known.filter(same).unwrap_or_else(|| shape.array())
}

fn extra_field(name: &str, values: &ColumnValues, options: &ConvertOptions) -> Field {
    let text = |kind| Field { codec: options.compression.codec(Filter::NONE), ..Field::variable(name, kind) };
    match values {
        ColumnValues::I64(_) => Field::column(name, DType::I64, &[]),
        ColumnValues::F64(_) => Field::column(name, DType::F64, &[]),
        ColumnValues::Bool(_) => Field::column(name, DType::Bool, &[]),
        ColumnValues::Text(_) => text(FieldKind::String),
        ColumnValues::Json(_) => text(FieldKind::Json),
    }
}

/// How a pack stores an image file of this format unchanged. `None` if it cannot.
pub(crate) fn coding_of(format: packds_pixels::ImageFormat) -> Option<Coding> {
    use packds_pixels::ImageFormat as F;
    Some(match format {
        F::Jpeg => Coding::Jpeg,
        F::Png => Coding::Png,
        F::Gif => Coding::Gif,
        F::Bmp => Coding::Bmp,
        F::Tiff => Coding::Tiff,
        F::WebP => Coding::WebP,
        F::Pnm | F::Tga | F::Qoi => return None,
    })
}

/// The order in which the samples of a listing are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Kept(usize),
    Shuffled(Permutation),
}

impl Order {
    /// A part of a listing is in the order of the pack already.
    pub(crate) fn new(listing: &Listing, options: &ConvertOptions) -> Self {
        if options.keep_order || listing.is_part() {
            return Self::Kept(listing.len());
        }
        Self::Shuffled(Permutation::new(to_u64(listing.len()), options.seed))
    }

    /// The listing index of the sample at `position`.
    pub(crate) fn at(&self, position: usize) -> Option<usize> {
        match self {
            Self::Kept(n) => (position < *n).then_some(position),
            Self::Shuffled(permutation) => {
                let position = to_u64(position);
                (position < permutation.len()).then(|| to_usize(permutation.at(position)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_fields_of_one_name_are_told_from_a_reserved_name() {
        let mut fields = Fields::default();
        fields.column("source_id", DType::U64, Role::SourceId);
        for name in ["age", "source_id", "age"] {
            fields.add(Field::column(name, DType::I64, &[]));
        }
        let refused = |others: &[usize]| {
            let error = fields.check_names(Path::new("s"), others).unwrap_err();
            format!("{error}; {}", error.hint().unwrap())
        };
        assert_eq!(
            refused(&[1, 3]),
            "s: 2 fields of the source have the name `age`; rename all but one, or exclude them with leave_out"
        );
        assert_eq!(
            refused(&[2]),
            "s: field `source_id` of the source has a name that packs reserve; rename it, or exclude it with leave_out"
        );
        assert!(Fields::default().check_names(Path::new("s"), &[]).is_ok());
    }
}
