//! Zarr and zarr-python: both versions, in both directions.

use std::fs;

use serde_json::{Value, json};

use super::items::{assert_same, client, convert, hex, ids, items, refused, sample_pack, written_by};
use super::python;
use crate::support::{Folder, fixture};

/// The groups that zarr-python writes, each named after its codec and Zarr version.
const SOURCES: [&str; 25] = [
    "plain3",
    "gzip3",
    "zstd3",
    "blosc3",
    "bitshuffle3",
    "zlib3",
    "bz23",
    "shuffled3",
    "crc32c3",
    "adler323",
    "sharded3",
    "start3",
    "big3",
    "consolidated3",
    "plain2",
    "gzip2",
    "zstd2",
    "blosc2",
    "zlib2",
    "bz22",
    "fortran2",
    "shuffled2",
    "crc32c2",
    "adler322",
    "consolidated2",
];

/// The contents of an export, read by zarr-python.
fn read(folder: &Folder, name: &str) -> Value {
    client("zarr_client.py", "read", &folder.path(name))
}

/// The sources that zarr-python writes, and their contents.
fn sources() -> (Folder, Value) {
    written_by("zarr_client.py")
}

#[test]
fn what_zarr_python_writes_comes_in_and_is_the_same_to_it_when_exported() {
    let (folder, expected) = sources();
    for name in SOURCES {
        let pack = convert(&folder, &format!("{name}.zarr"), &[]);
        let pixels = hex(&items(&pack, "image").concat());
        assert_eq!(json!(pixels), expected["pixels"], "{name}");
        assert_eq!(json!(ids(&pack)), expected["labels"], "{name}");
        assert_eq!(pack.classes().unwrap()[0].names, ["cat", "dog", "owl"], "{name}");
        let caption = items(&pack, "caption");
        assert_eq!(caption[10], "picture 10 ä".as_bytes(), "{name}");
        let wide = items(&pack, "wide");
        let row = |numbers: [i32; 3]| numbers.map(i32::to_le_bytes).concat();
        assert_eq!(wide[3], row([9, 10, 11]), "{name}");
        // This chunk was never written, so it has the fill value.
        assert_eq!(wide[4], row([7; 3]), "{name}");
    }
    for args in [
        &["a.zarr"][..],
        &["b.zarr", "--zarr-version", "2", "--codec", "blosc"],
        &["c.zarr", "--codec", "zstd", "--chunk", "2", "--shard", "6"],
    ] {
        let mut command = vec!["export", "out.pack"];
        command.extend(args);
        folder.packds(&command).ok();
        let found = read(&folder, args[0]);
        let is = &found["expected"];
        assert_eq!(found["image"]["value"], is["image"], "{args:?}");
        assert_eq!(found["label"]["value"], is["label"], "{args:?}");
    }
}

#[test]
fn zarr_python_reads_what_goes_out_and_it_comes_back() {
    let folder = Folder::new();
    let pack = sample_pack(&folder, "in.pack");
    let mut number = 0;
    for version in ["2", "3"] {
        for codec in ["none", "gzip:5", "zstd:3", "blosc"] {
            for layout in [&[][..], &["--chunk", "3"], &["--chunk", "2", "--shard", "6"]] {
                if version == "2" && layout.len() > 2 {
                    continue;
                }
                number += 1;
                let name = format!("{number}.zarr");
                let mut args = vec!["export", "in.pack", &name, "--codec", codec];
                args.extend(["--zarr-version", version]);
                args.extend(layout);
                let said = folder.packds(&args).ok();
                assert!(said.contains("no bfloat16"), "{said}");
                check(&pack, &read(&folder, &name), &args);
                assert_same(&pack, &convert(&folder, &name, &[]), &format!("{args:?}"));
            }
        }
    }
    let found = read(&folder, &format!("{number}.zarr"));
    assert_eq!(found["image"]["dims"], json!(["sample", "height", "width", "channel"]));
    assert_eq!(found["image"]["shards"], json!([6, 4, 6, 3]));
    assert_eq!(found["image"]["chunks"], json!([2, 4, 6, 3]));
}

fn check(pack: &super::items::Bytes, found: &Value, args: &[&str]) {
    assert_eq!(found["label"]["value"], json!(ids(pack)), "{args:?}");
    assert_eq!(found["label"]["classes"], json!(["cat", "dog", "sea lion"]));
    let texts = |name| {
        let texts = items(pack, name).into_iter().map(String::from_utf8);
        json!(texts.collect::<Result<Vec<_>, _>>().unwrap())
    };
    for name in ["caption", "meta"] {
        assert_eq!(found[name]["value"], texts(name), "{args:?}");
    }
    let path = String::from_utf8(pack.path(9).unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(found["path"]["value"][9], json!(path), "{args:?}");
    for (name, dtype) in [("image", "uint8"), ("brain", "uint16"), ("half", "float16")] {
        let bytes = items(pack, name).concat();
        assert_eq!(found[name]["dtype"], dtype, "{args:?}");
        assert_eq!(found[name]["bytes"], json!(hex(&bytes)), "{args:?}: {name}");
    }
}

#[test]
fn image_files_go_out_as_bytes_and_come_back() {
    let folder = Folder::new();
    let path = folder.path("");
    python(&["hdf5.py", "write", path.to_str().unwrap()]);
    let pack = convert(&folder, "files.h5", &["--mode", "encoded"]);
    let files: Vec<String> = items(&pack, "image").iter().map(|file| hex(file)).collect();
    fs::rename(folder.path("out.pack"), folder.path("files.pack")).unwrap();
    for args in
        [&["--codec", "none", "--zarr-version", "2"][..], &["--codec", "zstd"], &["--chunk", "2", "--shard", "4"]]
    {
        let mut command = vec!["export", "files.pack", "files.zarr"];
        command.extend(args);
        folder.packds(&command).ok();
        assert_eq!(read(&folder, "files.zarr")["image"]["value"], json!(files), "{args:?}");
        let back = convert(&folder, "files.zarr", &["--mode", "encoded"]);
        assert_eq!(items(&back, "image"), items(&pack, "image"), "{args:?}");
        fs::remove_dir_all(folder.path("files.zarr")).unwrap();
    }
}

#[test]
fn damage_and_what_is_not_for_us_is_refused() {
    let (folder, _) = sources();
    let edit = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        assert!(text.contains(from), "{name}: {from}: {text}");
        fs::write(folder.path(name), text.replace(from, to)).unwrap();
    };
    edit("gzip3.zarr/images/zarr.json", "\"gzip\"", "\"pcodec\"");
    edit("plain3.zarr/images/zarr.json", "11,", "1152921504606846976,");
    edit("plain2.zarr/images/.zarray", "11,", "4000000000,");
    edit("big3.zarr/images/zarr.json", "\"regular\"", "\"rectangular\"");
    edit("gzip2.zarr/labels/.zarray", "11", "10");
    let shard = "sharded3.zarr/images/c/0/0/0/0";
    let bytes = fs::read(folder.path(shard)).unwrap();
    // Change a byte of the index, just before its checksum.
    folder.flip(shard, u64::try_from(bytes.len()).unwrap() - 5);
    let chunk = fs::read(folder.path("zstd3.zarr/images/c/0/0/0/0")).unwrap();
    fs::write(folder.path("zstd3.zarr/images/c/0/0/0/0"), &chunk[..chunk.len() / 2]).unwrap();
    let chunk = "blosc2.zarr/images/0.0.0.0";
    let bytes = fs::read(folder.path(chunk)).unwrap();
    fs::write(folder.path(chunk), &bytes[..10]).unwrap();
    for (name, words) in [
        ("gzip3.zarr", "unsupported codec 'pcodec'"),
        ("plain3.zarr", "cannot be stored in"),
        ("plain2.zarr", "cannot be stored in"),
        ("big3.zarr", "the chunk grid is not 'regular'"),
        ("gzip2.zarr", "10"),
        ("sharded3.zarr", "CRC32C"),
        ("zstd3.zarr", "zstd data is damaged"),
        ("blosc2.zarr", "Blosc header"),
    ] {
        refused(&folder, &["convert", name, "no.pack"], words);
    }
    let args = ["convert", "fortran2.zarr", "no.pack", "--image-key", "nothing"];
    refused(&folder, &args, "nothing");
    sample_pack(&folder, "in.pack");
    for (args, words) in [
        (&["--zarr-version", "2", "--shard", "8"][..], "version 3"),
        (&["--shard", "6"], "not a multiple of the chunk size 4"),
        (&["--codec", "lz4"], "zarr cannot be compressed with --codec lz4"),
    ] {
        let mut command = vec!["export", "in.pack", "no.zarr"];
        command.extend(args);
        refused(&folder, &command, words);
        assert!(!folder.path("no.zarr").exists());
    }
}

#[test]
fn no_chunk_unpacks_to_more_than_its_size() {
    let (folder, _) = sources();
    python(&["zarr_client.py", "bombs", folder.path("").to_str().unwrap()]);
    for codec in ["gzip", "zstd", "blosc", "zlib", "bz2"] {
        let name = format!("{codec}2.zarr");
        let words = format!("{name}/images/1.0.0.0: the {codec} data is damaged: expected ");
        refused(&folder, &["convert", &name, "no.pack"], &words);
        refused(&folder, &["convert", &name, "no.pack"], "at most 1121 bytes in a chunk");
    }
}

#[test]
fn sizes_in_metadata_are_refused_before_memory_is_taken() {
    let (folder, _) = sources();
    let edit = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        assert!(text.contains(from), "{name}: {from}: {text}");
        fs::write(folder.path(name), text.replacen(from, to, 1)).unwrap();
    };
    let huge = "4611686018427387904";
    // A shuffle filter with elements of a huge size, applied to no data.
    edit("shuffled2.zarr/images/.zarray", "\"elementsize\": 2", &format!("\"elementsize\": {huge}"));
    let nothing = [0x78, 0x9c, 3, 0, 0, 0, 0, 1];
    fs::write(folder.path("shuffled2.zarr/images/0.0.0.0"), nothing).unwrap();
    // An index for more chunks than a file can have.
    edit("sharded3.zarr/images/zarr.json", "        4,", &format!("        {huge},"));
    let text = format!("{{\"name\": \"fixed_length_utf32\", \"configuration\": {{\"length_bytes\": {huge}}}}}");
    edit("plain3.zarr/images/zarr.json", "\"uint8\"", &text);
    edit("gzip3.zarr/images/zarr.json", "        4,", &format!("        {huge},"));
    for (name, words) in [
        ("shuffled2.zarr", "expected bytes, found none"),
        ("sharded3.zarr", "too few for the index"),
        ("plain3.zarr", "elements of type"),
        ("gzip3.zarr", "at most 1 GiB"),
    ] {
        refused(&folder, &["convert", name, "no.pack"], words);
    }
}

#[test]
fn long_texts_come_back_from_compressed_shards() {
    let folder = Folder::new();
    let note = "far longer than the numbers of a chunk: ".repeat(9);
    let rows = (0..6).map(|nth| {
        let name = format!("{nth}.png");
        fs::copy(fixture("images/same_size/circle/00.png"), folder.path(&name)).unwrap();
        format!("{}\n", json!({"path": name, "label": nth, "note": format!("{note}{nth}")}))
    });
    fs::write(folder.path("in.jsonl"), rows.collect::<String>()).unwrap();
    let pack = convert(&folder, "in.jsonl", &[]);
    fs::rename(folder.path("out.pack"), folder.path("in.pack")).unwrap();
    for codec in ["gzip", "zstd", "blosc"] {
        let name = format!("{codec}.zarr");
        let args = ["export", "in.pack", &name, "--codec", codec];
        let sharded = [&args[..], &["--chunk", "2", "--shard", "4"]].concat();
        folder.packds(&sharded).ok();
        let back = convert(&folder, &name, &[]);
        assert_eq!(items(&back, "note"), items(&pack, "note"), "{codec}");
    }
}
