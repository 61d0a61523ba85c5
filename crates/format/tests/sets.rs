//! Manifests of sets: golden ones stay readable, and malformed ones are rejected with the right error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use packds_format::{
    BlockBuilder, DType, Field, FooterParts, FormatError, Limits, Manifest, Pack, PackFile, PackOptions, PackWriter,
    Role, Schema, ShardEntry, Uuid, crc32c, manifest_name, manifest_version,
};

use crate::support::{golden_folder, malformed_folder};

fn set_folder() -> PathBuf {
    golden_folder().join("two_shards.packs")
}

/// A shard with these samples: two pixels and a label.
fn shard(samples: std::ops::Range<u8>) -> Vec<u8> {
    let label = Field { role: Some(Role::Label), ..Field::column("label", DType::I32, &[]) };
    let schema = Schema::new(vec![Field::tensor("image", DType::U8, &[2]), label]).unwrap();
    let mut options = PackOptions::new(schema, 4);
    options.pack_uuid = Uuid([samples.start; 16]);
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in samples {
        block.tensor_mut(0).unwrap().fill(sample);
        block.set_column(1, &i32::from(sample % 2).to_le_bytes()).unwrap();
        block.finish_sample().unwrap();
    }
    writer.append(block.finish().unwrap()).unwrap();
    writer.finish(FooterParts::default()).unwrap().0
}

fn files() -> [(&'static str, Vec<u8>); 2] {
    [("first.pack", shard(0..4)), ("more/second.pack", shard(4..7))]
}

fn manifest() -> Manifest {
    let entry = |(path, bytes): &(&str, Vec<u8>)| {
        ShardEntry::of((*path).to_owned(), &PackFile::open(bytes.as_slice()).unwrap()).unwrap()
    };
    let shards: Vec<ShardEntry> = files().iter().map(entry).collect();
    Manifest {
        version: 2,
        parent: Some(Uuid([9; 16])),
        pack_uuid: Uuid([8; 16]),
        dataset_uuid: Uuid([7; 16]),
        chunk_samples: 4,
        schema: PackFile::open(files()[0].1.as_slice()).unwrap().schema().clone(),
        has_paths: false,
        shards,
        stats: packds_format::Stats::default(),
        classes: vec![packds_format::Classes {
            field: "label".to_owned(),
            names: vec!["even".to_owned(), "odd".to_owned()],
            counts: vec![4, 3],
        }],
        provenance: serde_json::Map::new(),
    }
}

fn opened(manifest: Manifest) -> Pack<Vec<u8>> {
    let folder = set_folder();
    let open = move |_, entry: &ShardEntry| std::fs::read(folder.join(&entry.path)).map_err(FormatError::Open);
    Pack::open_set(manifest, Limits::default(), open).unwrap()
}

#[test]
fn the_golden_set_is_the_one_that_is_written_today() {
    let golden = std::fs::read(set_folder().join(manifest_name(2))).unwrap();
    assert_eq!(String::from_utf8(manifest().to_bytes().unwrap()).unwrap(), String::from_utf8(golden).unwrap());
    for (path, bytes) in files() {
        assert!(bytes == std::fs::read(set_folder().join(path)).unwrap(), "{path}");
    }
}

#[test]
fn the_golden_set_is_read() {
    let golden = std::fs::read(set_folder().join(manifest_name(2))).unwrap();
    let manifest = Manifest::parse(&golden, Limits::default()).unwrap();
    assert_eq!(manifest, self::manifest());
    let set = opened(manifest);
    assert_eq!((set.n_samples(), set.n_chunks(), set.n_files()), (7, 2, 2));
    for sample in 0..7_u8 {
        assert_eq!(set.item(0, sample.into()).unwrap().as_ref(), [sample; 2]);
        assert_eq!(set.column(1).unwrap().integer(sample.into()), Some((sample % 2).into()));
    }
    assert_eq!(set.classes().unwrap()[0].counts, [4, 3]);
    assert!(matches!(set.item(0, 7), Err(FormatError::OutOfRange { index: 7, len: 7, .. })));
}

/// The bytes of a manifest with this text, which ends before the checksum.
fn sealed(text: &str) -> Vec<u8> {
    format!("{text},\"crc32c\":\"{:08x}\"}}\n", crc32c(text.as_bytes())).into_bytes()
}

/// The text of the manifest before the checksum.
fn text() -> String {
    let bytes = String::from_utf8(manifest().to_bytes().unwrap()).unwrap();
    bytes.split_once(",\"crc32c\":").unwrap().0.to_owned()
}

/// Manifests with one error each. Their checksums are right, so that the intended check is reached.
fn malformed() -> BTreeMap<&'static str, Vec<u8>> {
    let text = text();
    let with = |old: &str, new: &str| {
        assert!(text.contains(old), "{old}");
        sealed(&text.replacen(old, new, 1))
    };
    let path = |path: &str| with("\"first.pack\"", &format!("\"{path}\""));
    let whole = manifest().to_bytes().unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    BTreeMap::from([
        ("set_absolute_path", path("/first.pack")),
        ("set_another_format", with("packds set", "other set")),
        ("set_backslash", path("a\\\\first.pack")),
        ("set_checksum", flipped),
        ("set_chunk_of_none", with("\"chunk_samples\":4", "\"chunk_samples\":0")),
        ("set_count", with("\"n_samples\":7", "\"n_samples\":8")),
        ("set_crc_digits", with("\"footer_crc32c\":\"", "\"footer_crc32c\":\"0x")),
        ("set_current_folder", path("./first.pack")),
        ("set_empty", Vec::new()),
        ("set_empty_name", path("a//first.pack")),
        ("set_empty_shard", with("\"path\":\"first.pack\",\"n_samples\":4", "\"path\":\"first.pack\",\"n_samples\":0")),
        (
            "set_huge_count",
            with("\"path\":\"first.pack\",\"n_samples\":4", "\"path\":\"first.pack\",\"n_samples\":281474976710656"),
        ),
        ("set_key_missing", with("\"has_paths\":false,", "")),
        ("set_long_path", path(&"a/".repeat(600))),
        ("set_newer", with("\"major\":1", "\"major\":2")),
        ("set_no_json", sealed("{\"format\":")),
        ("set_no_shard", with(&text[text.find("[{\"path\"").unwrap()..text.find(",\"stats\"").unwrap()], "[]")),
        ("set_outside", path("../first.pack")),
        ("set_schema", with("\"label\",\"kind\":\"tensor\"", "\"image\",\"kind\":\"tensor\"")),
        ("set_twice", with("more/second.pack", "first.pack")),
        ("set_unfinished", whole[..whole.len() - 1].to_vec()),
        ("set_uuid_digits", with("\"pack_uuid\":\"08080808", "\"pack_uuid\":\"0808080G")),
        ("set_version_0", with("\"version\":2", "\"version\":0")),
    ])
}

#[test]
fn every_malformed_manifest_gives_its_error() {
    let errors = std::fs::read_to_string(malformed_folder().join("sets/errors.txt")).unwrap();
    let expected: BTreeMap<&str, &str> = errors.lines().map(|line| line.split_once(": ").unwrap()).collect();
    let made = malformed();
    assert_eq!(made.len(), expected.len());
    for (name, bytes) in made {
        let path = malformed_folder().join(format!("sets/{name}.json"));
        assert!(bytes == std::fs::read(&path).unwrap(), "{name}");
        let error = Manifest::parse(&bytes, Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), expected[name], "{name}");
    }
}

/// No single changed byte is accepted, and none panics.
#[test]
fn every_flipped_or_missing_byte_of_a_manifest_is_found() {
    let whole = manifest().to_bytes().unwrap();
    for at in 0..whole.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            assert!(Manifest::parse(&bytes, Limits::default()).is_err(), "byte {at}, bit {bit:#x}");
        }
        assert!(Manifest::parse(&whole[..at], Limits::default()).is_err(), "{at} bytes");
    }
}

#[test]
fn a_shard_that_differs_from_its_entry_is_refused() {
    type Change = fn(&mut Manifest);
    let changes: [(&str, Change); 8] = [
        ("expected bytes", |m| m.shards[0].bytes += 1),
        ("expected pack_uuid", |m| m.shards[0].pack_uuid = Uuid([1; 16])),
        ("expected footer_crc32c", |m| m.shards[0].footer_crc32c ^= 1),
        ("expected n_samples", |m| m.shards[0].n_samples = 3),
        ("expected body_bytes", |m| m.shards[0].body_bytes += 1),
        ("expected largest_chunk", |m| m.shards[0].largest_chunk += 1),
        ("expected samples per chunk", |m| m.chunk_samples = 5),
        ("expected has_paths true, found false", |m| m.has_paths = true),
    ];
    for (expected, change) in changes {
        let mut manifest = manifest();
        change(&mut manifest);
        let error = opened(manifest).item(0, 0).unwrap_err().to_string();
        assert!(error.contains("shard 'first.pack': not the file in the manifest"), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let mut other = manifest();
    other.schema = Schema::new(vec![Field::tensor("image", DType::U8, &[3])]).unwrap();
    let error = opened(other).item(0, 0).unwrap_err().to_string();
    assert!(error.contains("expected schema"), "{error}");
    let mut gone = manifest();
    gone.shards[0].path = "gone.pack".to_owned();
    let error = opened(gone).item(0, 0).unwrap_err().to_string();
    assert!(error.contains("shard 'gone.pack': cannot open"), "{error}");
}

#[test]
fn file_names_of_manifests_have_one_form() {
    assert_eq!(manifest_name(7), "manifest-00000007.json");
    assert_eq!(manifest_version("manifest-00000007.json"), Some(7));
    assert_eq!(manifest_version(&manifest_name(1_234_567_890)), Some(1_234_567_890));
    for name in ["manifest-7.json", "manifest-+0000007.json", "manifest-000000007.json", "manifest-.json", "x"] {
        assert_eq!(manifest_version(name), None, "{name}");
    }
}

/// Twenty thousand shards are opened from the manifest alone, and found in logarithmic time.
#[test]
fn many_shards_are_opened_without_touching_them() {
    let mut many = manifest();
    let shard = many.shards[0].clone();
    many.shards = (0..20_000).map(|n| ShardEntry { path: format!("{n}.pack"), ..shard.clone() }).collect();
    let bytes = many.to_bytes().unwrap();
    let parsed = Manifest::parse(&bytes, Limits::default()).unwrap();
    let set = Pack::<Vec<u8>>::open_set(parsed, Limits::default(), |_, entry| {
        Err(FormatError::Open(std::io::Error::other(entry.path.clone())))
    })
    .unwrap();
    assert_eq!((set.n_samples(), set.n_chunks()), (80_000, 20_000));
    let error = set.item(0, 79_999).unwrap_err().to_string();
    assert_eq!(error, "shard '19999.pack': cannot open: 19999.pack");
}

/// Writes the fixtures. Golden files are never written again: run this only to add new ones.
#[test]
#[ignore = "writes fixtures"]
fn write_fixtures() {
    let golden = set_folder();
    if !golden.exists() {
        std::fs::create_dir_all(golden.join("more")).unwrap();
        files().iter().for_each(|(path, bytes)| std::fs::write(golden.join(path), bytes).unwrap());
        std::fs::write(golden.join(manifest_name(2)), manifest().to_bytes().unwrap()).unwrap();
    }
    let folder = malformed_folder().join("sets");
    std::fs::create_dir_all(&folder).unwrap();
    let mut errors = String::new();
    for (name, bytes) in malformed() {
        std::fs::write(folder.join(format!("{name}.json")), &bytes).unwrap();
        let error = Manifest::parse(&bytes, Limits::default()).unwrap_err();
        errors.push_str(&format!("{name}: {error}\n"));
    }
    std::fs::write(folder.join("errors.txt"), errors).unwrap();
}
