//! Exports packs to Parquet and Arrow and reads them back. Also reads damaged files.

use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Field, Role};

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};

use crate::data_format::DataFormat;
use crate::export::{ExportCodec, ExportOptions};
use crate::sink::ImagesAs;
use crate::sink::test_pack::{assert_same, back, fields, pack_of, refused, to};
use crate::source::{ListOptions, list};

const NAMES: [&str; 2] = ["out.parquet", "out.arrow"];

fn more_fields() -> Vec<Field> {
    let mut fields = fields();
    let at = fields.len() - 2;
    let more = [
        Field::tensor("half", DType::F16, &[3]),
        Field::tensor("brain", DType::Bf16, &[2, 2]),
        Field::tensor("volume", DType::U8, &[2, 3, 4]),
        Field::tensor("wide", DType::I64, &[2]),
        Field::tensor("mask", DType::U8, &[4, 6]).with_role(Role::Mask),
        Field::column("column_byte", DType::U8, &[]),
        Field::column("column_long", DType::U64, &[]),
    ];
    fields.splice(at..at, more);
    fields
}

#[test]
fn every_field_comes_back_from_both_formats_with_each_codec() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(11, fields());
    let codecs = [None, Some(ExportCodec::None), Some(ExportCodec::Zstd(3)), Some(ExportCodec::Lz4)];
    for (number, codec) in codecs.into_iter().enumerate() {
        for images in [None, Some(ImagesAs::Pixels)] {
            for name in NAMES {
                let target = folder.path().join(format!("{number}{images:?}{name}"));
                let options = ExportOptions { codec, images, ..ExportOptions::default() };
                to(&pack, &target, &options).unwrap();
                let again = back(&target, None);
                assert_same(&pack, &again);
                assert_eq!(pack.path(7).unwrap(), again.path(7).unwrap(), "{name}");
            }
        }
    }
}

#[test]
fn types_that_only_packs_have_come_back_by_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(5, more_fields());
    for name in NAMES {
        let target = folder.path().join(name);
        let report = to(&pack, &target, &ExportOptions::default()).unwrap();
        assert!(report.lost.iter().any(|lost| lost.contains("bfloat16")));
        assert_same_values(&pack, &back(&target, None));
    }
}

/// Like `assert_same`, but small tensors may move to a column.
fn assert_same_values(pack: &packds_format::Pack<Vec<u8>>, again: &packds_format::Pack<Vec<u8>>) {
    for (number, field) in pack.schema().fields().iter().enumerate() {
        if field.name == "sample_crc32c" {
            continue;
        }
        let other = again.schema().index_of(&field.name).unwrap();
        let found = &again.schema().fields()[other];
        assert_eq!((field.dtype, &field.shape, field.role), (found.dtype, &found.shape, found.role), "{}", field.name);
        for sample in 0..pack.n_samples() {
            assert_eq!(
                pack.item(number, sample).unwrap(),
                again.item(other, sample).unwrap(),
                "{} {sample}",
                field.name
            );
        }
    }
}

#[test]
fn files_of_a_set_hold_as_many_samples_as_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(11, fields());
    let target = folder.path().join("set");
    let options = ExportOptions { to: Some(DataFormat::Parquet), shard_samples: Some(3), ..ExportOptions::default() };
    to(&pack, &target, &options).unwrap();
    let mut names: Vec<String> =
        std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 4);
    assert_eq!(names[3], "data-00003-of-00004.parquet");
    assert_same(&pack, &back(&target, None));
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(40, fields());
    for name in NAMES {
        let written = [1, 3].map(|jobs| {
            let target = folder.path().join(format!("{jobs}{name}"));
            let options = ExportOptions { jobs, ..ExportOptions::default() };
            to(&pack, &target, &options).unwrap();
            std::fs::read(target).unwrap()
        });
        assert_eq!(written[0], written[1], "{name}");
    }
}

/// Lists and reads everything. Must return a result whatever the file contains.
fn read_all(path: &Path) -> Result<(), String> {
    let listing = list(path, &ListOptions::default()).map_err(|e| e.to_string())?;
    for idx in 0..listing.len() {
        let mut bytes = Vec::new();
        let read = listing.append_image(idx, u64::MAX, &mut bytes);
        read.map_err(|e| e.to_string())?;
    }
    Ok(())
}

#[test]
fn cut_files_are_errors_wherever_they_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(6, fields());
    for name in NAMES {
        let target = folder.path().join(name);
        to(&pack, &target, &ExportOptions::default()).unwrap();
        let bytes = std::fs::read(&target).unwrap();
        for len in (0..bytes.len()).step_by(97) {
            std::fs::write(&target, &bytes[..len]).unwrap();
            assert!(read_all(&target).is_err(), "{name} cut at {len}");
        }
    }
}

#[test]
fn flipped_bits_never_panic_or_hang() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(3, fields());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for name in NAMES {
        let target = folder.path().join(name);
        to(&pack, &target, &ExportOptions::default()).unwrap();
        let bytes = std::fs::read(&target).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                std::fs::write(&target, &bytes).unwrap();
                let _ = read_all(&target);
            }
        }
    }
    std::panic::set_hook(hook);
}

#[test]
fn a_missing_column_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pack = pack_of(3, fields());
    for name in NAMES {
        let target = folder.path().join(name);
        to(&pack, &target, &ExportOptions::default()).unwrap();
        let options = ListOptions { image_key: Some("picture".to_owned()), ..ListOptions::default() };
        let error = refused(&target, &options);
        assert!(error.contains("'picture'") && error.contains("'image'"), "{error}");
    }
}

/// Writes a Parquet and an Arrow file with a column that packs cannot store.
fn with_lists_of_bytes(folder: &Path) -> [std::path::PathBuf; 2] {
    use arrow_array::builder::{BinaryBuilder, ListBuilder};
    use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
    let png = packds_pixels::encode_png(2, 1, 1, &[1, 2]).unwrap();
    let images: ArrayRef = Arc::new(BinaryArray::from(vec![png.as_slice(); 2]));
    let labels: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
    let mut parts = ListBuilder::new(BinaryBuilder::new());
    parts.append_value([Some(b"a"), Some(b"b")]);
    parts.append_value([Some(b"c")]);
    let parts: ArrayRef = Arc::new(parts.finish());
    let columns = [("parts", parts), ("image", images), ("label", labels)];
    written(folder, &RecordBatch::try_from_iter(columns).unwrap())
}

/// Writes a batch as Parquet and Arrow files.
fn written(folder: &Path, batch: &RecordBatch) -> [std::path::PathBuf; 2] {
    let paths = NAMES.map(|name| folder.join(name));
    paths.iter().for_each(|path| write_table(path, batch));
    paths
}

fn write_table(path: &Path, batch: &RecordBatch) {
    let file = std::fs::File::create(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "arrow") {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    }
}

#[test]
fn a_column_that_no_pack_can_hold_is_left_out_with_a_warning_unless_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for path in with_lists_of_bytes(folder.path()) {
        let listing = list(&path, &ListOptions::default()).unwrap();
        assert_eq!((listing.len(), listing.label(1)), (2, Some(1)));
        assert!(listing.columns().is_empty() && listing.fields().is_empty());
        let warnings: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
        let [warning] = warnings.as_slice() else {
            panic!("{warnings:?}");
        };
        assert!(
            warning.starts_with("left out the field 'parts': List(Binary")
                && warning.ends_with(": a pack cannot store Binary"),
            "{warning}"
        );
        let left_out = ListOptions { leave_out: vec!["parts".to_owned()], ..ListOptions::default() };
        let listing = list(&path, &left_out).unwrap();
        assert_eq!((listing.label(1), listing.warnings().len()), (Some(1), 0));
        assert_eq!(listing.append_image(1, 4, &mut Vec::new()).unwrap(), crate::source::store::Content::File);
        let named = ListOptions { label_key: Some("parts".to_owned()), ..ListOptions::default() };
        let error = refused(&path, &named);
        assert!(error.contains("column `parts`: a pack cannot store"), "{error}");
        let missing = ListOptions { leave_out: vec!["no".to_owned()], ..ListOptions::default() };
        let error = refused(&path, &missing);
        let expected = "no field 'no' to leave out, found 'parts', 'image', 'label'";
        assert!(error.ends_with(expected), "{error}");
    }
}

/// Images as structs of bytes and path. The rows `without` have no bytes, and the row `null` is null.
fn images_as_structs(n: usize, without: &[usize], null: usize) -> RecordBatch {
    use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray};
    use arrow_schema::{DataType, Field};
    let png = packds_pixels::encode_png(2, 1, 1, &[1, 2]).unwrap();
    let bytes = (0..n).map(|row| (!without.contains(&row)).then_some(png.as_slice()));
    let bytes: ArrayRef = Arc::new(bytes.collect::<BinaryArray>());
    let paths = (0..n).map(|row| Some(format!("{row}.png")));
    let paths: ArrayRef = Arc::new(paths.collect::<StringArray>());
    let fields = vec![Field::new("bytes", DataType::Binary, true), Field::new("path", DataType::Utf8, true)];
    let nulls = (0..n).map(|row| row != null).collect::<Vec<bool>>();
    let images = StructArray::new(fields.into(), vec![bytes, paths], Some(nulls.into()));
    let ids: Vec<i64> = vec![0; n];
    let labels: ArrayRef = Arc::new(Int64Array::from(ids));
    let columns: [(&str, ArrayRef); 2] = [("image", Arc::new(images)), ("label", labels)];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn an_image_that_is_null_or_only_a_path_is_a_bad_sample_unless_all_are_paths() {
    let folder = tempfile::tempdir().unwrap();
    for path in written(folder.path(), &images_as_structs(4, &[1, 2], 2)) {
        let listing = list(&path, &ListOptions::default()).unwrap();
        let fault = |idx| listing.fault(idx).map(|fault| fault.to_string());
        let only_path = "column `image`: the file's path is stored, but not its bytes";
        assert!(fault(1).unwrap().ends_with(only_path), "{:?}", fault(1));
        let null = "column `image`: the image is missing (null)";
        assert!(fault(2).unwrap().ends_with(null), "{:?}", fault(2));
        assert_eq!((fault(0), fault(3)), (None, None));
    }
    for path in written(folder.path(), &images_as_structs(2, &[0, 1], 9)) {
        let error = list(&path, &ListOptions::default()).unwrap_err();
        assert!(error.hint().unwrap().contains("push_to_hub"), "{error}");
    }
}

/// Writes images and labels.
fn save(path: &Path, labels: &[&str]) {
    let images: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x89PNG\r\n\x1a\n"; labels.len()]));
    let labels: ArrayRef = Arc::new(StringArray::from(labels.to_vec()));
    write_table(path, &RecordBatch::try_from_iter([("image", images), ("label", labels)]).unwrap());
}

#[test]
fn a_split_alone_has_the_class_ids_of_all_splits() {
    for extension in ["parquet", "arrow"] {
        let folder = tempfile::tempdir().unwrap();
        save(&folder.path().join(format!("train.{extension}")), &["c", "b"]);
        save(&folder.path().join(format!("val.{extension}")), &["b", "a"]);
        let of = |split: &str| {
            let options = ListOptions { split: Some(split.to_owned()), ..ListOptions::default() };
            let listing = list(folder.path(), &options).unwrap();
            assert_eq!(listing.classes(), ["a", "b", "c"].map(|class| class.as_bytes().to_vec()), "{extension}");
            [listing.label(0), listing.label(1)]
        };
        assert_eq!([of("train"), of("val")], [[Some(2), Some(1)], [Some(1), Some(0)]]);
    }
}
