//! The contents of packs, for the tests of formats.
//!
//! `support` makes packs.

use std::path::Path;

use packds_format::{DType, Field, FieldKind, Pack, Role};
use serde_json::Value;

use super::python;
use crate::support::{Folder, SIZE, SamplePack};

pub(super) type Bytes = Pack<Vec<u8>>;

/// A client script's description of a file.
pub(super) fn client(script: &str, verb: &str, file: &Path) -> Value {
    serde_json::from_str(&python(&[script, verb, file.to_str().unwrap()])).unwrap()
}

/// The sources that a client script writes, and their contents.
pub(super) fn written_by(script: &str) -> (Folder, Value) {
    let folder = Folder::new();
    python(&[script, "write", folder.path("").to_str().unwrap()]);
    (folder, client("hdf5.py", "dump", Path::new("")))
}

/// The items of a field, in the pack's order.
pub(super) fn items(pack: &Bytes, name: &str) -> Vec<Vec<u8>> {
    let number = pack.schema().index_of(name).unwrap();
    (0..pack.n_samples()).map(|sample| pack.item(number, sample).unwrap().into_owned()).collect()
}

/// The label ids, whatever their type.
pub(super) fn ids(pack: &Bytes) -> Vec<i64> {
    let id = |item: &Vec<u8>| match item.as_slice() {
        id @ [_, _, _, _] => i64::from(i32::from_le_bytes(id.try_into().unwrap())),
        id => i64::from_le_bytes(id.try_into().unwrap()),
    };
    items(pack, "label").iter().map(id).collect()
}

/// Converts a source, keeping its order.
pub(super) fn convert(folder: &Folder, source: &str, args: &[&str]) -> Bytes {
    let mut all = vec!["convert", source, "out.pack"];
    all.extend(["--keep-order", "--force"]);
    all.extend(args);
    let ran = folder.packds(&all);
    assert_eq!(ran.code, 0, "{source}: {}", ran.stderr);
    Pack::open(std::fs::read(folder.path("out.pack")).unwrap()).unwrap()
}

/// Runs a command that must fail with this text.
pub(super) fn refused(folder: &Folder, args: &[&str], words: &str) {
    let ran = folder.packds(args);
    assert_ne!(ran.code, 0, "{args:?}");
    assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    assert!(!folder.path("no.pack").exists());
}

/// A pack of images, texts and 16-bit floats.
pub(super) fn sample_pack(folder: &Folder, name: &str) -> Bytes {
    let (width, height) = SIZE;
    let mut image = Field::tensor("image", DType::U8, &[height.into(), width.into(), 3]);
    image.layout = Some("hwc".to_owned());
    image.color = Some("rgb".to_owned());
    let pack = SamplePack {
        body: vec![
            image.with_role(Role::Image),
            Field::tensor("brain", DType::Bf16, &[3]),
            Field::tensor("half", DType::F16, &[2]),
            Field::variable("caption", FieldKind::String),
            Field::variable("meta", FieldKind::Json),
        ],
        ..SamplePack::default()
    };
    pack.write(folder, name)
}

/// Asserts that both packs have the same types, items, class names and paths.
pub(super) fn assert_same(pack: &Bytes, back: &Bytes, what: &str) {
    assert_eq!(pack.n_samples(), back.n_samples(), "{what}");
    for field in pack.schema().fields() {
        if field.role == Some(Role::SampleCrc32c) {
            continue;
        }
        let name = &field.name;
        let other = &back.schema().fields()[back.schema().index_of(name).unwrap()];
        assert_eq!(
            (field.kind, field.dtype, &field.shape, field.role),
            (other.kind, other.dtype, &other.shape, other.role),
            "{what}: {name}"
        );
        assert_eq!(items(pack, name), items(back, name), "{what}: {name}");
    }
    // Only compare the order of body fields, because small arrays become columns in `back`.
    let body: Vec<&str> = pack.schema().body().map(|(_, f)| f.name.as_str()).collect();
    let mut found: Vec<&str> = back.schema().fields().iter().map(|f| f.name.as_str()).collect();
    found.retain(|name| body.contains(name));
    assert_eq!(body, found, "{what}: the order of fields");
    let names = |pack: &Bytes| pack.classes().unwrap()[0].names.clone();
    assert_eq!(names(pack), names(back), "{what}");
    for sample in 0..pack.n_samples() {
        assert_eq!(pack.path(sample).unwrap(), back.path(sample).unwrap());
    }
}

/// The bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
