//! The golden packs: the name, the writer's options and the items of each.
//!
//! The content is a function of (field, sample), so the tests can compute it without the files. Existing cases never
//! change, because their files never do. A new feature gets a new case.

use packds_format::{
    BlockBuilder, Classes, Codec, Coding, DType, Field, FieldKind, FieldStats, Filter, FooterParts, FormatError,
    Keypoints, LabelStats, Normalize, PackOptions, PackWriter, Role, Schema, SizeStats, Store, Uuid, crc32c,
    hash_bytes, mix64,
};

/// One golden pack.
pub(crate) struct Case {
    /// The file is `NAME.pack`.
    pub(crate) name: &'static str,
    /// The number of samples.
    pub(crate) n_samples: u64,
    /// The writer's options.
    pub(crate) options: PackOptions,
    /// The codings of image items. Successive items cycle through them.
    codings: &'static [Coding],
    path: Option<fn(u64) -> Vec<u8>>,
    has_footer: bool,
}

impl Case {
    fn new(name: &'static str, n_samples: u64, chunk_samples: u32, fields: Vec<Field>) -> Result<Self, FormatError> {
        let mut options = PackOptions::new(Schema::new(fields)?, chunk_samples);
        options.pack_uuid = uuid(name.as_bytes());
        options.dataset_uuid = uuid(b"golden");
        Ok(Self { name, n_samples, options, codings: &[], path: None, has_footer: false })
    }

    /// All fields of a sample.
    pub(crate) fn fields(&self) -> &[Field] {
        self.options.schema.fields()
    }

    /// The item of a field of a sample, as a reader must return it.
    pub(crate) fn item(&self, field: usize, sample: u64) -> Vec<u8> {
        let described = &self.fields()[field];
        let bytes_of = |n: u64| n.to_le_bytes()[..item_len(described)].to_vec();
        match described.role {
            Some(Role::Label) => bytes_of(sample * 7 % 5),
            Some(Role::SourceId) => bytes_of(self.n_samples - 1 - sample),
            Some(Role::SourceWidth) => bytes_of(100 + sample),
            Some(Role::SourceHeight) => bytes_of(70_000 + sample),
            Some(Role::Valid) => bytes_of(u64::from(sample % 5 != 4)),
            Some(Role::SampleCrc32c) => bytes_of(u64::from(crc32c(&self.body_items(sample)))),
            Some(Role::Coding) => bytes_of(u64::from(self.image(sample).0.number())),
            Some(Role::Height) => bytes_of(self.image(sample).1[0]),
            Some(Role::Width) => bytes_of(self.image(sample).1[1]),
            Some(Role::Channels) => bytes_of(self.image(sample).1[2]),
            Some(Role::Labels | Role::Image | Role::Mask) | None => self.content(described, field, sample),
            Some(Role::Boxes | Role::BoxLabels | Role::BoxAttribute) => self.content(described, field, sample),
            Some(Role::Keypoints) => bytes_of_floats(&keypoints(sample, described.shape[0])),
            Some(Role::Polygons) => bytes_of_floats(&polygons(sample)),
        }
    }

    fn content(&self, field: &Field, number: usize, sample: u64) -> Vec<u8> {
        let seed = hash_bytes(sample, number.to_string().as_bytes());
        match field.kind {
            FieldKind::Tensor if field.dtype == DType::Bool => {
                noise(seed, item_len(field)).into_iter().map(|b| b & 1).collect()
            }
            FieldKind::Tensor if self.name.contains("incompressible") => noise(seed, item_len(field)),
            FieldKind::Tensor if !field.codec.is_none() || field.layout.is_some() => gradient(sample, item_len(field)),
            FieldKind::Tensor => noise(seed, item_len(field)),
            FieldKind::Image => self.image(sample).2,
            FieldKind::Bytes if field.seek_index_of.is_some() => match self.image(sample).0 {
                Coding::Jpeg => include_bytes!("data/tiny.jpg.seek").to_vec(),
                _ => Vec::new(),
            },
            FieldKind::Bytes => noise(seed, usize::from(seed.to_le_bytes()[7] % 64)),
            FieldKind::String if sample == 0 => Vec::new(),
            FieldKind::String => format!("caption {sample}: caf\u{e9} \u{1f40d}").into_bytes(),
            FieldKind::Ragged => {
                let n = n_boxes(sample);
                let entry = field.shape.iter().product::<u64>() * field.dtype.size();
                noise(seed, usize::try_from(n * entry).unwrap_or(0))
            }
            FieldKind::Json => format!("{{\"boxes\":[[{sample},1,2,3]],\"crowd\":false}}").into_bytes(),
        }
    }

    /// A sample's image: coding, `[height, width, channels]` and bytes.
    fn image(&self, sample: u64) -> (Coding, [u64; 3], Vec<u8>) {
        let turn = usize::try_from(sample).unwrap_or(0);
        let coding = self.codings[turn % self.codings.len()];
        let file: &[u8] = match coding {
            Coding::Jpeg => include_bytes!("data/tiny.jpg"),
            Coding::Png => include_bytes!("data/tiny.png"),
            Coding::Gif => include_bytes!("data/tiny.gif"),
            Coding::WebP => include_bytes!("data/tiny.webp"),
            Coding::Raw | Coding::Bmp | Coding::Tiff => {
                let shape = [3 + sample % 4, 5 + sample % 3, [3, 1, 4][turn % 3]];
                let len = shape.iter().product::<u64>();
                return (Coding::Raw, shape, gradient(sample, usize::try_from(len).unwrap_or(0)));
            }
        };
        (coding, [6, 8, 3], file.to_vec())
    }

    fn body_items(&self, sample: u64) -> Vec<u8> {
        let body = self.options.schema.body().map(|(number, _)| number);
        body.flat_map(|number| self.item(number, sample)).collect()
    }

    /// The path of a sample, if the pack has paths.
    pub(crate) fn path(&self, sample: u64) -> Option<Vec<u8>> {
        self.path.map(|path| path(sample))
    }

    /// Statistics, classes, provenance and paths.
    pub(crate) fn footer(&self) -> Result<FooterParts, FormatError> {
        let mut parts = FooterParts::default();
        for sample in 0..self.n_samples {
            if let Some(path) = self.path(sample) {
                parts.paths.push(&path)?;
            }
        }
        if !self.has_footer {
            return Ok(parts);
        }
        let histogram: Vec<u64> = (0..256).collect();
        let pixels = FieldStats {
            n_pixels: 48,
            mean: vec![0.5, 0.25, 0.125],
            std: vec![0.1, 0.2, 0.3],
            min: vec![0, 1, 2],
            max: vec![253, 254, 255],
            histogram: vec![histogram; 3],
        };
        let sizes = SizeStats { min: 1, mean: 2.5, max: 4, total: 10 };
        parts.stats.fields.insert("image".to_owned(), pixels);
        parts.stats.labels.insert("label".to_owned(), LabelStats { icc: Some(-0.25) });
        parts.stats.labels.insert("other".to_owned(), LabelStats { icc: None });
        parts.stats.sizes.insert("text".to_owned(), sizes);
        let names = ["ant", "bee", "cat", "dog", "eel"].map(str::to_owned).to_vec();
        parts.classes = vec![Classes { field: "label".to_owned(), names, counts: vec![2, 1, 1, 1, 1] }];
        parts.provenance = r#"{"tool":"make_golden","seed":42}"#.to_owned();
        Ok(parts)
    }

    /// The pack, written by the current writer.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let mut writer = PackWriter::new(Vec::new(), self.options.clone())?;
        let mut block = BlockBuilder::new(writer.schema());
        for sample in 0..self.n_samples {
            for (number, field) in self.fields().iter().enumerate() {
                let item = self.item(number, sample);
                match (field.store, field.kind) {
                    (Store::Column, _) if field.role == Some(Role::SampleCrc32c) => {}
                    (Store::Column, _) => block.set_column(number, &item)?,
                    (Store::Body, FieldKind::Tensor) => block.tensor_mut(number)?.copy_from_slice(&item),
                    (Store::Body, _) => block.item_mut(number)?.extend_from_slice(&item),
                }
            }
            block.finish_sample()?;
            if writer.block_room(block.n_samples()) == 0 {
                writer.append(block.finish()?)?;
                block = BlockBuilder::new(writer.schema());
            }
        }
        writer.append(block.finish()?)?;
        Ok(writer.finish(self.footer()?)?.0)
    }
}

fn item_len(field: &Field) -> usize {
    field.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

/// The number of entries of a ragged field. The first sample has none.
const fn n_boxes(sample: u64) -> u64 {
    sample * 2 % 7
}

/// Points of each box, with every visibility.
fn keypoints(sample: u64, n_points: u64) -> Vec<f32> {
    let points = (0..n_boxes(sample)).flat_map(|of| (0..n_points).map(move |point| (of, point)));
    let point = |(of, point): (u64, u64)| match (of + point + sample) % 3 {
        0 => [0.0, 0.0, 0.0],
        visibility => [float(point * 10 + of) + 0.5, float(sample * 10 + of) + 0.25, float(visibility)],
    };
    points.flat_map(point).collect()
}

/// The outlines of each box: nothing, a square, or a square with a hole and a triangle beside it.
fn polygons(sample: u64) -> Vec<f32> {
    let square = [[0.0, 0.0], [8.0, 0.0], [8.0, 8.5], [0.0, 8.5]];
    let hole = [[2.0, 2.0], [2.0, 6.0], [6.0, 6.0], [6.0, 2.0]];
    let triangle = [[9.0, 0.0], [12.0, 0.0], [12.0, 3.0]];
    let rings = |of: u64| -> Vec<&[[f32; 2]]> {
        match (of + sample) % 3 {
            0 => vec![],
            1 => vec![&square],
            _ => vec![&square, &hole, &triangle],
        }
    };
    let mut floats = Vec::new();
    for of in 0..n_boxes(sample) {
        for (ring, vertices) in (0_u64..).zip(rings(of)) {
            for [x, y] in vertices {
                floats.extend([float(of), float(ring), x + float(sample), *y]);
            }
        }
    }
    floats
}

fn float(number: u64) -> f32 {
    u16::try_from(number).map_or(f32::NAN, f32::from)
}

fn bytes_of_floats(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn uuid(name: &[u8]) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&hash_bytes(1, name).to_le_bytes());
    bytes[8..].copy_from_slice(&hash_bytes(2, name).to_le_bytes());
    Uuid(bytes)
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    (0_u64..).flat_map(|i| mix64(seed.wrapping_add(i)).to_le_bytes()).take(len).collect()
}

/// A slow gradient in three channels, like a bright sky, with some noise.
fn gradient(sample: u64, len: usize) -> Vec<u8> {
    let value =
        |i: u64| (i / 3 * 2 + i % 3 * 40 + sample * 11 + u64::from(mix64(i).is_multiple_of(64))).to_le_bytes()[0];
    (0_u64..).map(value).take(len).collect()
}

fn pixels(shape: &[u64], layout: &str) -> Field {
    let mut field = Field::tensor("image", DType::U8, shape).with_role(Role::Image);
    field.layout = Some(layout.to_owned());
    field.color = Some(if shape.contains(&1) { "gray" } else { "rgb" }.to_owned());
    field
}

fn zstd(mut field: Field, level: i32, filter: Filter) -> Field {
    field.codec = Codec::Zstd { level, filter };
    field
}

/// The columns that describe the items of image field `image`.
fn image_columns() -> Vec<Field> {
    let column = |name, dtype, role| {
        let mut field = Field::column(name, dtype, &[]).with_role(role);
        field.of = Some("image".to_owned());
        field
    };
    vec![
        column("image.coding", DType::U8, Role::Coding),
        column("image.width", DType::U32, Role::Width),
        column("image.height", DType::U32, Role::Height),
        column("image.channels", DType::U8, Role::Channels),
    ]
}

fn images(codec: Option<Filter>) -> Vec<Field> {
    let field = Field::variable("image", FieldKind::Image).with_role(Role::Image);
    let mut fields = vec![match codec {
        None => field,
        Some(filter) => zstd(field, 3, filter),
    }];
    fields.extend(image_columns());
    fields
}

/// All cases, in the order of their creation.
pub(crate) fn cases() -> Result<Vec<Case>, FormatError> {
    let mut cases = raw_cases()?;
    cases.extend(variable_cases()?);
    cases.extend(zstd_cases()?);
    cases.extend(meta_cases()?);
    cases.push(seek_case()?);
    cases.extend(ragged_cases()?);
    Ok(cases)
}

fn raw_cases() -> Result<Vec<Case>, FormatError> {
    let small = || pixels(&[4, 5, 3], "hwc");
    let mask = || Field::tensor("mask", DType::U8, &[4, 5]).with_role(Role::Mask);
    let depth = || Field::tensor("depth", DType::F32, &[2, 2]);
    let tensor = |d: DType| Field::tensor(d.name(), d, &[3]);
    let column = |(i, d): (usize, DType)| Field::column(d.name(), d, if i % 2 == 0 { &[] } else { &[3] });
    let mut columns = vec![Field::tensor("x", DType::U8, &[1])];
    columns.extend(DType::ALL.into_iter().enumerate().map(column));
    let scalars = vec![Field::tensor("i", DType::I64, &[]), Field::tensor("f", DType::F64, &[])];
    let flags = vec![Field::tensor("flags", DType::Bool, &[9])];
    let mut aligned = Case::new("align_16k", 5, 2, vec![small()])?;
    aligned.options.align_log2 = 14;
    Ok(vec![
        Case::new("strided_one_field", 8, 4, vec![small()])?,
        Case::new("short_last_chunk", 7, 4, vec![small()])?,
        Case::new("chunk_of_one", 3, 1, vec![small()])?,
        Case::new("several_fields", 5, 2, vec![small(), mask(), depth()])?,
        Case::new("dtypes_tensor", 2, 2, DType::ALL.map(tensor).to_vec())?,
        Case::new("dtypes_column", 3, 2, columns)?,
        Case::new("scalars", 4, 3, scalars)?,
        Case::new("bool", 3, 2, flags)?,
        aligned,
        Case::new("empty", 0, 4, vec![small(), Field::column("label", DType::I64, &[]).with_role(Role::Label)])?,
        Case::new("empty_explicit", 0, 4, images(None))?,
    ])
}

fn variable_cases() -> Result<Vec<Case>, FormatError> {
    const FILES: &[Coding] = &[Coding::Jpeg, Coding::Png, Coding::Gif, Coding::WebP];
    let text = vec![
        Field::variable("blob", FieldKind::Bytes),
        Field::variable("text", FieldKind::String),
        Field::variable("boxes", FieldKind::Json),
        Field::tensor("pose", DType::F32, &[4]),
    ];
    let with = |name, n, codings| Ok::<Case, FormatError>(Case { codings, ..Case::new(name, n, 3, images(None))? });
    Ok(vec![
        Case::new("bytes_string_json", 5, 2, text)?,
        with("encoded_images", 6, FILES)?,
        with("mixed_codings", 5, &[Coding::Raw, Coding::Jpeg])?,
        with("raw_variable_size", 4, &[Coding::Raw])?,
    ])
}

/// Image files, and the seek indexes of those that have one.
fn seek_case() -> Result<Case, FormatError> {
    let mut fields = images(None);
    let mut index = Field::variable("image.seek", FieldKind::Bytes);
    index.seek_index_of = Some("image".to_owned());
    fields.insert(1, index);
    Ok(Case { codings: &[Coding::Jpeg, Coding::Png], ..Case::new("seek_index", 5, 3, fields)? })
}

/// Any number of entries per sample: of several elements, and of one.
fn ragged_cases() -> Result<Vec<Case>, FormatError> {
    let tiny = || Field::tensor("x", DType::U8, &[1]);
    let boxes = || Field::ragged("boxes", DType::F32, &[4]);
    let ids = || Field::ragged("ids", DType::I64, &[]);
    let (found, classes) = (boxes().with_role(Role::Boxes), ids().with_role(Role::BoxLabels));
    let points = Field::ragged("points", DType::F16, &[2, 2]).with_role(Role::BoxAttribute);
    let mut joints = Field::ragged("joints", DType::F32, &[3, 3]).with_role(Role::Keypoints);
    let names = ["nose", "left_eye", "right_eye"].map(str::to_owned).to_vec();
    joints.keypoints = Some(Keypoints::named(names, vec![[0, 1], [0, 2]]));
    let outlines = Field::ragged("outlines", DType::F32, &[4]).with_role(Role::Polygons);
    Ok(vec![
        Case::new("ragged", 5, 2, vec![tiny(), boxes(), ids()])?,
        Case::new("boxes", 3, 2, vec![tiny(), found.clone(), classes])?,
        Case::new("box_attributes", 3, 2, vec![tiny(), points, found.clone()])?,
        Case::new("keypoints", 3, 2, vec![tiny(), found.clone(), joints])?,
        Case::new("polygons", 4, 2, vec![tiny(), outlines, found])?,
        Case::new("zstd_ragged", 5, 3, vec![tiny(), zstd(boxes(), 3, Filter::NONE), zstd(ids(), 1, Filter::NONE)])?,
    ])
}

fn zstd_cases() -> Result<Vec<Case>, FormatError> {
    let rgb = Filter::for_pixels(3, true);
    let gray = Filter::for_pixels(1, true);
    let one = |name, field| Case::new(name, 5, 3, vec![field]);
    let plain = Field::tensor("depth", DType::U16, &[16, 16]);
    let noisy = pixels(&[8, 9, 3], "hwc");
    let large = pixels(&[256, 512, 3], "hwc");
    let texts = vec![
        zstd(Field::variable("text", FieldKind::String), 3, Filter::NONE),
        zstd(Field::variable("blob", FieldKind::Bytes), 19, Filter::NONE),
        Field::tensor("x", DType::I16, &[2]),
    ];
    let mixed =
        Case::new("zstd_variable_images", 7, 4, images(Some(Filter::PLANAR.and(Filter::GREEN).and(Filter::UP))))?;
    Ok(vec![
        one("zstd_no_filter", zstd(plain, 3, Filter::NONE))?,
        one("zstd_hwc_rgb", zstd(pixels(&[16, 12, 3], "hwc"), 1, rgb))?,
        one("zstd_gray", zstd(pixels(&[16, 12, 1], "hwc"), 1, gray))?,
        one("zstd_chw", zstd(pixels(&[3, 16, 12], "chw"), 1, Filter::for_pixels(3, false)))?,
        one("zstd_incompressible", zstd(noisy, 1, rgb))?,
        Case::new("zstd_several_blocks", 4, 3, vec![zstd(large, 1, rgb)])?,
        Case::new("zstd_text", 9, 4, texts)?,
        Case { codings: &[Coding::Raw, Coding::Raw, Coding::Png], ..mixed },
    ])
}

fn meta_cases() -> Result<Vec<Case>, FormatError> {
    let tiny = || Field::tensor("x", DType::U8, &[1]);
    let hot = Field::column("classes", DType::U8, &[3]).with_role(Role::Labels);
    let mut image = pixels(&[4, 4, 3], "hwc");
    image.normalize = Some(Normalize {
        scale: 1.0 / 255.0,
        mean: vec![0.485, 0.456, 0.406],
        std: vec![0.229, 0.224, 0.225],
        applied: false,
    });
    let column = |name, dtype, role| Field::column(name, dtype, &[]).with_role(role);
    let full = vec![
        image,
        column("label", DType::I64, Role::Label),
        column("source_id", DType::U64, Role::SourceId),
        column("width", DType::U32, Role::SourceWidth),
        column("height", DType::U32, Role::SourceHeight),
        column("valid", DType::U8, Role::Valid),
        column("crc32c", DType::U32, Role::SampleCrc32c),
    ];
    let full = Case::new("full_footer", 6, 4, full)?;
    let raw_path = |sample: u64| [b"train/\xff\xfe/caf\xe9 ".as_slice(), sample.to_string().as_bytes()].concat();
    let plain = |sample: u64| format!("class {}/img_{sample}.jpg", sample % 3).into_bytes();
    Ok(vec![
        Case::new("labels_multi_hot", 5, 2, vec![tiny(), hot])?,
        Case { path: Some(raw_path), ..Case::new("paths_not_utf8", 4, 2, vec![tiny()])? },
        Case { path: Some(plain), ..Case::new("paths_two_groups", 4099, 1024, vec![tiny()])? },
        Case { has_footer: true, path: Some(plain), ..full },
    ])
}
