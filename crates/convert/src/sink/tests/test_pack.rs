//! A pack with every kind of field, for testing exports to all formats and reading them back.

use std::path::Path;

use packds_format::{
    BlockBuilder, Classes, DType, Field, FieldKind, FooterParts, Pack, PackOptions, PackWriter, Paths, Role, Schema,
};

use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::export::{ExportOptions, ExportReport, export};
use crate::source::{ListOptions, Listing, list};
use crate::{ConvertOptions, convert};

/// The class names. They are not sorted, and the last class has no samples.
pub(crate) const CLASSES: [&str; 4] = ["zebra", "ant", "sea lion", "none"];

/// The bytes of a sample's tensor.
fn item(sample: usize, field: usize, bytes: usize) -> Vec<u8> {
    let byte = |i| u8::try_from((sample * 31 + field * 57 + i * 7) % 251);
    (0..bytes).map(|i| byte(i).unwrap()).collect()
}

/// The fields: a 4 x 6 image, an array, two strings, numbers, and the label.
pub(crate) fn fields() -> Vec<Field> {
    let mut image = Field::tensor("image", DType::U8, &[4, 6, 3]).with_role(Role::Image);
    image.layout = Some("hwc".to_owned());
    image.color = Some("rgb".to_owned());
    vec![
        image,
        Field::tensor("points", DType::F32, &[2, 3]),
        Field::variable("caption", FieldKind::String),
        Field::variable("meta", FieldKind::Json),
        Field::column("angle", DType::I16, &[]),
        Field::column("weight", DType::F64, &[]),
        Field::column("flag", DType::Bool, &[]),
        Field::column("label", DType::I32, &[]).with_role(Role::Label),
        Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c),
    ]
}

/// The same fields, an array for each form of arrays, and a number of each type.
pub(crate) fn typed_fields() -> Vec<Field> {
    let mut all = fields();
    let arrays: [(&str, DType, &[u64]); 4] = [
        ("bits", DType::Bool, &[3, 4]),
        ("vector", DType::F32, &[5]),
        ("words", DType::U32, &[3]),
        ("deep", DType::Bf16, &[2, 2, 2]),
    ];
    let arrays = arrays.map(|(name, dtype, shape)| Field::tensor(name, dtype, shape));
    let numbers = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool);
    let numbers = numbers.map(|dtype| Field::column(&format!("column_{dtype}"), dtype, &[]));
    all.splice(4..4, arrays.into_iter().chain(numbers));
    all
}

/// A pack of `n` samples with these fields.
pub(crate) fn pack_of(n: usize, fields: Vec<Field>) -> Pack<Vec<u8>> {
    let names = CLASSES.map(str::to_owned).to_vec();
    pack_by(n, fields, &[("label", names)], |_, _| None)
}

/// A pack of five images of 6 x 4 pixels with boxes. `ids` are the ids of the images, if there are any.
pub(crate) fn pack_with_boxes(ids: &[i64], has_names: bool) -> Pack<Vec<u8>> {
    let mut fields = fields();
    fields.retain(|field| ["image", "caption", "label"].contains(&field.name.as_str()));
    fields.extend([
        Field::ragged("boxes", DType::F32, &[4]).with_role(Role::Boxes),
        Field::ragged("box_labels", DType::I64, &[]).with_role(Role::BoxLabels),
        Field::ragged("box_area", DType::F32, &[]),
        Field::ragged("box_crowd", DType::Bool, &[]),
    ]);
    if !ids.is_empty() {
        fields.push(Field::column("id", DType::I64, &[]));
    }
    let names = CLASSES.map(str::to_owned).to_vec();
    let classes = [("label", names.clone()), ("box_labels", names)];
    pack_by(5, fields, &classes[..1 + usize::from(has_names)], |sample, name| {
        let boxes = 0..[0, 1, 2, 1, 3][sample];
        let bytes = |of: &dyn Fn(u8) -> Vec<u8>| boxes.clone().flat_map(of).collect();
        Some(match name {
            "boxes" => bytes(&|n| sides(sample, n).map(f32::to_le_bytes).concat()),
            "box_labels" => bytes(&|_| i64::try_from(sample % 3).unwrap().to_le_bytes().to_vec()),
            "box_area" => bytes(&|n| (8.25 + f32::from(n)).to_le_bytes().to_vec()),
            "box_crowd" => bytes(&|n| vec![u8::from(sample == 2 && n == 0)]),
            "id" => ids[sample].to_le_bytes().to_vec(),
            _ => return None,
        })
    })
}

/// A box of a sample. The second of sample 4 reaches beyond the image, and the third is outside.
fn sides(sample: usize, n: u8) -> [f32; 4] {
    match (sample, n) {
        (4, 1) => [1.0, 2.1, 8.0, 9.0],
        (4, 2) => [7.0, 0.0, 8.0, 1.0],
        _ => [0.5 + f32::from(n), 0.1, 4.5 + f32::from(n), 2.2],
    }
}

/// A pack with these fields and class names. `value` is the item of a sample in a field, if it is not the usual one.
fn pack_by(
    n: usize,
    fields: Vec<Field>,
    classes: &[(&str, Vec<String>)],
    value: impl Fn(usize, &str) -> Option<Vec<u8>>,
) -> Pack<Vec<u8>> {
    let schema = Schema::new(fields.clone()).unwrap();
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 4)).unwrap();
    let mut paths = Paths::default();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        let class = CLASSES[sample % 3];
        paths.push(format!("{class}/im.{sample}.png").as_bytes()).unwrap();
        for (number, field) in fields.iter().enumerate() {
            if let Some(value) = value(sample, &field.name) {
                match field.kind {
                    FieldKind::Tensor => block.set_column(number, &value).unwrap(),
                    _ => block.item_mut(number).unwrap().extend(value),
                }
                continue;
            }
            match (field.kind, field.name.as_str()) {
                (FieldKind::String, _) => {
                    block.item_mut(number).unwrap().extend(format!("caption\u{e9} \"{sample}\"\n").bytes())
                }
                (FieldKind::Json, _) => {
                    block.item_mut(number).unwrap().extend(format!("{{\"a\":[{sample},null]}}").bytes())
                }
                (_, "sample_crc32c") => {}
                (_, "label") => {
                    let id = i32::try_from(sample % 3).unwrap().to_le_bytes();
                    block.set_column(number, &id).unwrap();
                }
                (_, "weight") => {
                    let weight = f64::from(u32::try_from(sample).unwrap()) * 0.1;
                    block.set_column(number, &weight.to_le_bytes()).unwrap();
                }
                (_, "flag") => block.set_column(number, &[u8::from(sample % 2 == 0)]).unwrap(),
                (_, name) if name == "angle" || name.starts_with("column") => {
                    let bytes = usize::try_from(field.item_bytes().unwrap()).unwrap();
                    block.set_column(number, &item(sample, number, bytes)).unwrap();
                }
                _ => {
                    let out = block.tensor_mut(number).unwrap();
                    let bytes = out.len();
                    out.copy_from_slice(&item(sample, number, bytes));
                    if field.dtype == DType::Bool {
                        out.iter_mut().for_each(|byte| *byte &= 1);
                    }
                }
            }
        }
        block.finish_sample().unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    if block.n_samples() > 0 {
        writer.append(block.finish().unwrap()).unwrap();
    }
    let classes = classes.iter().map(|(field, names)| Classes {
        field: (*field).to_owned(),
        names: names.clone(),
        counts: vec![0; names.len()],
    });
    let classes = classes.collect();
    let parts = FooterParts { classes, paths, ..FooterParts::default() };
    Pack::open(writer.finish(parts).unwrap().0).unwrap()
}

/// Exports `pack` to a format.
pub(crate) fn to(pack: &Pack<Vec<u8>>, target: &Path, options: &ExportOptions) -> Result<ExportReport, ConvertError> {
    export(pack, target, options, &())
}

/// The content of a file with this name, exported from five samples with the defaults of its format.
pub(crate) fn exported(name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join(name);
    to(&pack_of(5, fields()), &target, &ExportOptions::default()).unwrap();
    std::fs::read(target).unwrap()
}

/// Converts an export back to a pack in the same order.
pub(crate) fn back(source: &Path, from: Option<DataFormat>) -> Pack<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("back.pack");
    let options = ConvertOptions {
        keep_order: true,
        list: ListOptions { from, ..ListOptions::default() },
        jobs: 2,
        ..ConvertOptions::default()
    };
    convert(source, &output, &options, &()).unwrap();
    Pack::open(std::fs::read(output).unwrap()).unwrap()
}

/// The message of the error that listing a source returns, or about its first bad sample.
pub(crate) fn refused(source: &Path, options: &ListOptions) -> String {
    let first_fault = |listing: Listing| listing.faulty().next().and_then(|idx| listing.fault(idx));
    match list(source, options) {
        Err(error) => error.to_string(),
        Ok(listing) => first_fault(listing).unwrap().to_string(),
    }
}

/// Asserts that a field has the same type and items in both packs.
pub(crate) fn assert_same_field(pack: &Pack<Vec<u8>>, back: &Pack<Vec<u8>>, name: &str) {
    let find = |pack: &Pack<Vec<u8>>| {
        let mut fields = pack.schema().fields().iter();
        let number = fields.position(|field| field.name == name);
        let number = number.unwrap_or_else(|| panic!("no field {name}"));
        let field = &pack.schema().fields()[number];
        let items: Vec<Vec<u8>> =
            (0..pack.n_samples()).map(|sample| pack.item(number, sample).unwrap().into_owned()).collect();
        ((field.kind, field.dtype, field.shape.clone(), field.role), items)
    };
    assert_eq!(find(pack), find(back), "{name}");
}

/// Asserts that both packs have the same exported fields, class names and number of samples.
pub(crate) fn assert_same(pack: &Pack<Vec<u8>>, back: &Pack<Vec<u8>>) {
    assert_eq!(pack.n_samples(), back.n_samples());
    let made_anew = ["sample_crc32c"];
    for field in pack.schema().fields() {
        if !made_anew.contains(&field.name.as_str()) {
            assert_same_field(pack, back, &field.name);
        }
    }
    let names = |pack: &Pack<Vec<u8>>| pack.classes().unwrap()[0].names.clone();
    assert_eq!(names(pack), names(back));
}
