//! Reads arbitrary bytes as a file of another format: the first byte selects the format, the rest
//! is the file.
//!
//! Only formats for which packds has its own parser are covered. Other libraries have to be fuzzed by their authors.
#![no_main]

use std::io::Write;

use packds_convert::source::ListOptions;
use packds_convert::{ConvertOptions, DataFormat, OnError, convert};

const FORMATS: [DataFormat; 12] = [
    DataFormat::Npy,
    DataFormat::Npz,
    DataFormat::Pt,
    DataFormat::Safetensors,
    DataFormat::WebDataset,
    DataFormat::TfRecord,
    DataFormat::Lmdb,
    DataFormat::Mnist,
    DataFormat::Cifar,
    DataFormat::Beton,
    DataFormat::ArrayRecord,
    // Image folders, because an archive is read as a folder.
    DataFormat::ImageFolder,
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let format = FORMATS[usize::from(choice) % FORMATS.len()];
    // CIFAR's files are recognized by their names.
    let suffix = match format {
        DataFormat::Cifar => "data_batch_1.bin",
        _ => "",
    };
    let named = tempfile::Builder::new().prefix("").suffix(suffix).tempfile_in("/dev/shm");
    let (Ok(mut file), Ok(out)) = (named, tempfile::tempdir_in("/dev/shm")) else {
        return;
    };
    if file.write_all(bytes).is_err() {
        return;
    }
    let options = ConvertOptions {
        list: ListOptions {
            from: Some(format),
            jobs: 1,
            spool: Some("/dev/shm".into()),
            ..ListOptions::default()
        },
        on_error: OnError::Skip,
        max_pixels: 1 << 20,
        jobs: 1,
        ..ConvertOptions::default()
    };
    let _ = convert(file.path(), &out.path().join("out.pack"), &options, &());
});
