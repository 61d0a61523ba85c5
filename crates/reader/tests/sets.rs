//! A set reads like the pack that merging its shards gives.

#![cfg(test)]

use std::fs;
use std::path::Path;

use packds_format::{
    BlockBuilder, Codec, DType, Field, FieldKind, FooterParts, FormatError, Geometry, Manifest, Paths, Role, Schema,
    ShardEntry, Store, Uuid, manifest_name,
};
use packds_format::{Filter, PackFile, PackOptions, PackWriter};
use packds_reader::loader::{Loader, LoaderBuilder};
use packds_reader::plan::{Choice, Order, Ranks};
use packds_reader::{Access, Checksums, Pack, ReadError, VerifyOptions, open, verify};

const CHUNK_SAMPLES: u32 = 16;
const UUID: Uuid = Uuid([7; 16]);
/// Numbers of samples of the shards: full chunks, a short chunk, a single sample, several chunks.
const SHARDS: [u64; 5] = [32, 10, 1, 100, 16];

/// How the samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Strided,
    TwoFields,
    Bytes,
    Zstd,
}

const FORMS: [Form; 4] = [Form::Strided, Form::TwoFields, Form::Bytes, Form::Zstd];

fn schema(form: Form) -> Schema {
    let mut image = Field::tensor("image", DType::U8, &[5, 3, 3]);
    let mut fields = Vec::new();
    match form {
        Form::Strided => fields.push(image),
        Form::TwoFields => fields.extend([image, Field::tensor("depth", DType::F32, &[2])]),
        Form::Bytes => fields.push(Field { kind: FieldKind::Bytes, shape: Vec::new(), ..image }),
        Form::Zstd => {
            image.codec = Codec::Zstd { level: 1, filter: Filter::NONE };
            fields.push(image);
        }
    }
    let column = |name, dtype, role| Field { role: Some(role), ..Field::column(name, dtype, &[]) };
    fields.push(column("label", DType::I32, Role::Label));
    fields.push(column("sample_crc32c", DType::U32, Role::SampleCrc32c));
    assert!(fields.iter().any(|field| field.store == Store::Column));
    Schema::new(fields).unwrap()
}

/// A pack of these samples. Their values follow from their numbers.
fn pack(form: Form, samples: std::ops::Range<u64>, uuid: Uuid) -> Vec<u8> {
    let mut options = PackOptions::new(schema(form), CHUNK_SAMPLES);
    options.pack_uuid = uuid;
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    let mut paths = Paths::default();
    let label = usize::from(form == Form::TwoFields) + 1;
    for sample in samples {
        let value = u8::try_from(sample % 251).unwrap();
        match form {
            Form::Bytes => block.item_mut(0).unwrap().extend(vec![value; usize::from(value % 7)]),
            _ => block.tensor_mut(0).unwrap().fill(value),
        }
        if form == Form::TwoFields {
            block.tensor_mut(1).unwrap().fill(value);
        }
        block.set_column(label, &i32::from(value % 5).to_le_bytes()).unwrap();
        block.finish_sample().unwrap();
        paths.push(format!("{sample}.png").as_bytes()).unwrap();
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish().unwrap()).unwrap();
            block = BlockBuilder::new(writer.schema());
        }
    }
    writer.append(block.finish().unwrap()).unwrap();
    writer.finish(FooterParts { paths, ..FooterParts::default() }).unwrap().0
}

/// The merged pack in `merged.pack`, and the set in `shards.packs`.
fn write(folder: &Path, form: Form, shards: &[u64]) -> Manifest {
    let set = folder.join("shards.packs");
    fs::create_dir(&set).unwrap();
    let n_samples = shards.iter().sum();
    fs::write(folder.join("merged.pack"), pack(form, 0..n_samples, UUID)).unwrap();
    let mut entries = Vec::new();
    let mut first = 0;
    for (number, n) in shards.iter().enumerate() {
        let bytes = pack(form, first..first + n, Uuid([u8::try_from(number).unwrap(); 16]));
        let path = format!("{number}.pack");
        entries.push(ShardEntry::of(path.clone(), &PackFile::open(bytes.as_slice()).unwrap()).unwrap());
        fs::write(set.join(path), bytes).unwrap();
        first += n;
    }
    let manifest = Manifest {
        version: 1,
        parent: None,
        pack_uuid: UUID,
        dataset_uuid: UUID,
        chunk_samples: CHUNK_SAMPLES,
        schema: schema(form),
        has_paths: true,
        shards: entries,
        stats: packds_format::Stats::default(),
        classes: Vec::new(),
        provenance: serde_json::Map::new(),
    };
    fs::write(set.join(manifest_name(1)), manifest.to_bytes().unwrap()).unwrap();
    manifest
}

fn both(folder: &Path) -> [Pack; 2] {
    ["merged.pack", "shards.packs"].map(|name| open(folder.join(name)).unwrap())
}

/// What a batch contains: the numbers of the samples, and the bytes of each field.
type Content = (Vec<u64>, Vec<Vec<u8>>);

fn contents(loader: &Loader, epochs: std::ops::Range<u32>) -> Vec<Content> {
    let mut all = Vec::new();
    for number in epochs {
        for batch in loader.epoch(number).unwrap() {
            let batch = batch.unwrap();
            assert!(batch.bad_samples().is_empty(), "{:?}", batch.bad_samples());
            let fields = batch.fields().iter().map(|field| {
                let rows = 0..batch.len();
                rows.flat_map(|row| batch.item(&field.name, row).unwrap().to_vec()).collect()
            });
            all.push((batch.ids().to_vec(), fields.collect()));
        }
    }
    all
}

const ORDERS: [Order; 5] = [
    Order::Sequential,
    Order::Random,
    Order::Chunks,
    Order::Window { chunks: Some(3) },
    Order::Window { chunks: None },
];

/// Both loaders deliver the same batches.
fn assert_alike(folder: &Path, what: &str, build: impl Fn(LoaderBuilder) -> LoaderBuilder) {
    let [merged, set] = both(folder).map(|pack| {
        let loader = build(Loader::builder(pack)).build().unwrap();
        contents(&loader, 0..2)
    });
    assert!(!merged.is_empty());
    assert!(merged == set, "{what}");
}

#[test]
fn a_set_is_read_in_the_order_of_its_merged_pack() {
    for form in FORMS {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), form, &SHARDS);
        for order in ORDERS {
            for access in [Access::Mapped, Access::Direct] {
                for (rank, world) in [(0, 1), (1, 3)] {
                    assert_alike(folder.path(), &format!("{form:?} {order:?} {access:?} {rank}/{world}"), |loader| {
                        let ranks = Ranks::new(rank, world).unwrap();
                        loader.batch(7).order(order).seed(3).access(access).ranks(ranks)
                    });
                }
            }
        }
    }
}

#[test]
fn choices_of_a_set_are_those_of_its_merged_pack() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Form::Strided, &SHARDS);
    let n: u64 = SHARDS.iter().sum();
    let choices = [
        Choice::filter(n, |sample| sample % 3 == 1),
        Choice::weighted(n, |sample| f64::from(u32::try_from(sample % 4).unwrap())).unwrap(),
        Choice::ranges(n, [5..50, 130..n]).unwrap(),
    ];
    for choice in choices {
        for order in ORDERS {
            assert_alike(folder.path(), &format!("{order:?}"), |loader| {
                loader.batch(8).order(order).choice(choice.clone()).checksums(Checksums::Always)
            });
        }
    }
    let [merged, set] = both(folder.path());
    for condition in ["label = 2", "path = '40.png'", "sample >= 40 and label in (1, 3)"] {
        assert_eq!(merged.select(condition).unwrap(), set.select(condition).unwrap(), "{condition}");
    }
}

#[test]
fn a_run_continues_on_the_merged_pack_and_on_the_set() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Form::Bytes, &SHARDS);
    let order = Order::Window { chunks: Some(3) };
    let build = |pack| Loader::builder(pack).batch(8).order(order).seed(9).build().unwrap();
    let [merged, set] = both(folder.path()).map(build);
    for (from, to) in [(&merged, &set), (&set, &merged)] {
        let mut epoch = from.epoch(1).unwrap();
        for _ in 0..5 {
            epoch.next().unwrap().unwrap();
        }
        let state = epoch.state();
        let rest = |epoch: packds_reader::loader::Epoch| -> Vec<Vec<u64>> {
            epoch.map(|batch| batch.unwrap().ids().to_vec()).collect()
        };
        let expected = rest(epoch);
        assert!(expected.len() > 5);
        assert_eq!(rest(to.epoch_at(&state).unwrap()), expected);
    }
}

#[test]
fn samples_columns_paths_and_chunks_are_those_of_the_shards() {
    for form in FORMS {
        let folder = tempfile::tempdir().unwrap();
        let manifest = write(folder.path(), form, &SHARDS);
        let [merged, set] = both(folder.path());
        let n_chunks: u64 = SHARDS.iter().map(|n| Geometry::new(*n, CHUNK_SAMPLES).unwrap().n_chunks()).sum();
        assert_eq!((set.n_samples(), set.n_chunks()), (merged.n_samples(), n_chunks));
        assert_eq!(set.file_len(), manifest.shards.iter().map(|shard| shard.bytes).sum::<u64>());
        for sample in 0..merged.n_samples() {
            assert_eq!(set.path(sample).unwrap(), merged.path(sample).unwrap());
            for (number, _) in merged.schema().fields().iter().enumerate() {
                assert_eq!(set.item(number, sample).unwrap(), merged.item(number, sample).unwrap());
            }
            set.sample(sample).unwrap().check().unwrap();
        }
        let label = merged.schema().index_of("label").unwrap();
        let (one, several) = (merged.column(label).unwrap(), set.column(label).unwrap());
        assert_eq!(one.bytes().unwrap(), several.to_bytes().as_ref());
        let n = merged.n_samples();
        let items = |pack: &Pack| {
            let mut items = Vec::new();
            let each = |sample, item: &[u8]| {
                items.push((sample, item.to_vec()));
                Ok::<(), FormatError>(())
            };
            pack.for_each_item_in(0, 0..n, each).unwrap();
            items
        };
        assert_eq!(items(&merged), items(&set));
        let report = verify(&set, VerifyOptions::default(), &|_, _| {}).unwrap();
        assert!(report.is_ok() && report.n_chunks == n_chunks, "{report:?}");
        for number in 0..set.n_chunks() {
            let chunk = set.chunk(number).unwrap();
            chunk.check().unwrap();
            let labels = chunk.field("label").unwrap();
            assert_eq!(labels.bytes, several.range(chunk.samples()).unwrap());
        }
        assert!(set.sample(n).is_err() && set.chunk(n_chunks).is_err());
    }
}

#[test]
fn no_shard_is_opened_before_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Form::Strided, &SHARDS);
    let set = folder.path().join("shards.packs");
    for number in [0, 1, 2, 4] {
        fs::remove_file(set.join(format!("{number}.pack"))).unwrap();
    }
    let pack = open(&set).unwrap();
    assert_eq!(pack.n_samples(), 159);
    assert_eq!(pack.sample(50).unwrap().field("label").unwrap().bytes.len(), 4);
    let error = pack.sample(42).unwrap().field("label").unwrap_err().to_string();
    assert!(error.contains("shard '2.pack': cannot open"), "{error}");
}

/// The files of a folder that this process has open.
fn open_files(folder: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|path| path.starts_with(folder)).count()
}

#[test]
fn a_loader_of_some_samples_opens_only_their_shards() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, Form::Strided, &SHARDS);
    let set = open(root.join("shards.packs")).unwrap();
    assert_eq!(open_files(&root), 0);
    // The first shard tells how all of them are read.
    for (samples, n_shards) in [(0..3, 1), (43..60, 2), (30..45, 4)] {
        let set = open(set.file_path()).unwrap();
        let choice = Choice::ranges(set.n_samples(), [samples]).unwrap();
        let loader = Loader::builder(set).batch(2).order(Order::Sequential).choice(choice).build().unwrap();
        assert!(loader.epoch(0).unwrap().all(|batch| batch.is_ok()));
        assert_eq!(open_files(&root), n_shards);
    }
    // A shard that is not needed may be missing.
    fs::remove_file(root.join("shards.packs/4.pack")).unwrap();
    let choice = |samples| Choice::ranges(set.n_samples(), [samples]).unwrap();
    let loader = |samples| Loader::builder(open(set.file_path()).unwrap()).batch(2).choice(choice(samples)).build();
    assert!(loader(0..50).is_ok());
    let error = loader(0..159).unwrap_err().to_string();
    assert!(error.contains("shard '4.pack': cannot open"), "{error}");
}

#[test]
fn every_shard_is_verified_although_some_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    for form in [Form::Strided, Form::Bytes] {
        let root = folder.path().join(format!("{form:?}"));
        fs::create_dir(&root).unwrap();
        write(&root, form, &SHARDS);
        let set = root.join("shards.packs");
        fs::remove_file(set.join("0.pack")).unwrap();
        fs::write(set.join("1.pack"), b"GIF89a").unwrap();
        let mut bytes = fs::read(set.join("3.pack")).unwrap();
        bytes[8200] ^= 1;
        fs::write(set.join("3.pack"), bytes).unwrap();
        let report = verify(&open(&set).unwrap(), VerifyOptions::default(), &|_, _| {}).unwrap();
        let errors: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().any(|error| error.starts_with("shard '0.pack': cannot open")), "{errors:?}");
        assert!(errors.iter().any(|error| error.starts_with("shard '1.pack': file is too short")), "{errors:?}");
        let chunks: Vec<_> = report.bad_chunks.iter().map(|bad| (bad.shard.as_deref(), bad.chunk)).collect();
        assert_eq!(chunks, [(Some("3.pack"), 2 + 1 + 1)], "{form:?}");
        assert!(report.bad_chunks[0].offset < 9000);
        assert!(report.bad_samples.iter().all(|bad| bad.label.is_some() && bad.path.is_some()), "{form:?}");
    }
}

#[test]
fn damage_is_reported_with_its_shard() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Form::Strided, &SHARDS);
    let path = folder.path().join("shards.packs/3.pack");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8192 + 45 * 20] ^= 1;
    fs::write(&path, bytes).unwrap();
    let set = open(folder.path().join("shards.packs")).unwrap();
    let report = verify(&set, VerifyOptions::default(), &|_, _| {}).unwrap();
    let bad: Vec<u64> = report.bad_samples.iter().map(|bad| bad.sample).collect();
    assert_eq!(bad, [32 + 10 + 1 + 20]);
    assert_eq!(report.bad_samples[0].path.as_deref(), Some(&b"63.png"[..]));
    assert_eq!(report.bad_chunks[0].chunk, 2 + 1 + 1 + 1);
    assert!(report.bad_chunks[0].error.to_string().starts_with("shard '3.pack': chunk 1 (samples 16..32)"));
    let error = set.sample(63).unwrap().field("image").unwrap_err().to_string();
    assert!(error.contains("shards.packs: shard '3.pack': sample 20 (chunk 1)"), "{error}");
    let loader = Loader::builder(set).batch(16).order(Order::Sequential).build().unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let failed = epoch.find_map(Result::err).unwrap().to_string();
    assert!(failed.contains("63"), "{failed}");
}

#[test]
fn another_file_in_the_place_of_a_shard_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Form::Strided, &SHARDS);
    let set = folder.path().join("shards.packs");
    let told = |bytes: &[u8]| {
        fs::write(set.join("1.pack"), bytes).unwrap();
        let pack = open(&set).unwrap();
        pack.sample(35).unwrap().field("label").unwrap_err().to_string()
    };
    let same_size = pack(Form::Strided, 32..42, Uuid([9; 16]));
    assert!(told(&same_size).contains("not the file in the manifest: expected pack_uuid 0101"));
    let longer = pack(Form::Strided, 32..43, Uuid([1; 16]));
    assert!(told(&longer).contains("not the file in the manifest: expected bytes"));
    assert!(told(b"GIF89a").contains("shard '1.pack': file is too short"));
}

#[test]
fn versions_are_opened_by_number_and_the_latest_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = write(folder.path(), Form::Strided, &SHARDS);
    let set = folder.path().join("shards.packs");
    manifest.version = 2;
    manifest.shards.truncate(2);
    fs::write(set.join(manifest_name(2)), manifest.to_bytes().unwrap()).unwrap();
    // These are no manifests.
    for name in ["manifest-3.json", ".manifest-00000003.json.packing", "manifest-00000003.json.tmp"] {
        fs::write(set.join(name), b"{").unwrap();
    }
    assert_eq!(open(&set).unwrap().n_samples(), 42);
    assert_eq!(open(folder.path().join("shards.packs@1")).unwrap().n_samples(), 159);
    assert_eq!(open(set.join(manifest_name(1))).unwrap().n_samples(), 159);
    let error = open(folder.path().join("shards.packs@3")).unwrap_err();
    assert!(matches!(error, ReadError::NoVersion { version: 3, latest: 2, .. }), "{error}");
    fs::copy(set.join(manifest_name(1)), set.join(manifest_name(4))).unwrap();
    let error = open(&set).unwrap_err().to_string();
    assert!(error.contains("expected version 4, as in its file name, found 1"), "{error}");
    let empty = folder.path().join("empty.packs");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(open(empty).unwrap_err(), ReadError::NotASet { .. }));
}
