//! A pack returns what was written, for any schema, shape, chunk size, number of samples and codec.

use packds_format::{
    Block, BlockBuilder, Codec, DType, Field, FieldKind, Filter, FooterParts, FormatError, Pack, PackOptions,
    PackWriter, Paths, Role, Schema, Stats, Store, StoredChunk, check_chunk, check_outside_chunks, chunk_samples_for,
    mix64,
};
use proptest::prelude::*;

/// The random content of a field of a sample: compressible or not, empty or not.
fn content(field: &Field, number: usize, sample: u64, seed: u64) -> Vec<u8> {
    let number = u64::try_from(number).unwrap();
    let random = |i: u64| mix64(seed ^ (number << 48) ^ (sample << 24) ^ i).to_le_bytes()[0];
    let entry = field.shape.iter().product::<u64>() * field.dtype.size();
    let len = field.item_bytes().unwrap_or_else(|| u64::from(random(1)) % 40 / entry * entry);
    let flat = random(0) % 2 == 0;
    (0..len).map(|i| if flat { (i / 7).to_le_bytes()[0] } else { random(i) }).collect()
}

fn dtype() -> impl Strategy<Value = DType> {
    proptest::sample::select(&DType::ALL[..])
}

fn shape(max: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1_u64..5, 0..max)
}

/// A body field without a name.
fn body_field() -> impl Strategy<Value = Field> {
    let codec = prop_oneof![
        3 => Just(Codec::None),
        1 => (1..6).prop_map(|level| Codec::Zstd { level, filter: Filter::NONE }),
    ];
    let kind = proptest::sample::select(&[FieldKind::Bytes, FieldKind::String, FieldKind::Json][..]);
    let tensor = || (dtype(), shape(4)).prop_map(|(dtype, shape)| Field::tensor("", dtype, &shape));
    let image = (1_u64..9, 1_u64..9, 1_u64..5, any::<bool>()).prop_map(|(h, w, c, interleaved)| {
        let shape = if interleaved { [h, w, c] } else { [c, h, w] };
        let mut field = Field::tensor("", DType::U8, &shape);
        field.layout = Some(if interleaved { "hwc" } else { "chw" }.to_owned());
        field.codec = Codec::Zstd { level: 1, filter: Filter::for_pixels(c, interleaved) };
        field
    });
    let items = kind.prop_map(|kind| Field::variable("", kind));
    let ragged = (dtype(), shape(3)).prop_map(|(dtype, shape)| Field::ragged("", dtype, &shape));
    let coded = (prop_oneof![tensor(), items, ragged], codec).prop_map(|(mut field, codec)| {
        field.codec = codec;
        field
    });
    prop_oneof![3 => tensor(), 3 => coded, 1 => image]
}

fn schema() -> impl Strategy<Value = Schema> {
    let column = (dtype(), shape(3)).prop_map(|(dtype, shape)| Field::column("", dtype, &shape));
    let body = prop::collection::vec(body_field(), 1..4);
    (body, prop::collection::vec(column, 0..4), any::<bool>()).prop_map(|(mut fields, columns, crc)| {
        fields.extend(columns);
        // Put columns before the body fields, so that a field's number in the schema differs from its number among the
        // body fields.
        fields.reverse();
        for (i, field) in fields.iter_mut().enumerate() {
            field.name = format!("field {i}");
        }
        if crc {
            fields.push(Field::column("crc", DType::U32, &[]).with_role(Role::SampleCrc32c));
        }
        Schema::new(fields).unwrap()
    })
}

/// Encodes samples `first..first + n`.
fn block(schema: &Schema, first: u64, n: u32, seed: u64, reuse: Option<Block>) -> Block {
    let mut block = match reuse {
        Some(old) => BlockBuilder::recycle(schema, old),
        None => BlockBuilder::new(schema),
    };
    for sample in first..first + u64::from(n) {
        // An abandoned sample leaves no trace, whatever its position.
        if mix64(sample ^ seed).is_multiple_of(3) {
            give(&mut block, schema, u64::MAX - sample, seed, 2);
            block.drop_sample();
        }
        give(&mut block, schema, sample, seed, usize::MAX);
        block.finish_sample().unwrap();
    }
    give(&mut block, schema, u64::MAX, seed, 1);
    if seed.is_multiple_of(2) {
        block.drop_sample();
    }
    block.finish().unwrap()
}

/// Adds the first `n_fields` items of a sample.
fn give(block: &mut BlockBuilder, schema: &Schema, sample: u64, seed: u64, n_fields: usize) {
    for (number, field) in schema.fields().iter().enumerate().take(n_fields) {
        let item = content(field, number, sample, seed);
        match (field.store, field.kind) {
            (Store::Column, _) => block.set_column(number, &item).unwrap(),
            (Store::Body, FieldKind::Tensor) => block.tensor_mut(number).unwrap().copy_from_slice(&item),
            (Store::Body, _) => block.item_mut(number).unwrap().extend_from_slice(&item),
        }
    }
}

fn write(options: PackOptions, n_samples: u64, seed: u64, paths: bool) -> Vec<u8> {
    let schema = options.schema.clone();
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    let mut first = 0;
    while first < n_samples {
        let n = u64::from(writer.next_block_samples()).min(n_samples - first);
        let n = u32::try_from(n).unwrap();
        let reuse = writer.reclaim();
        writer.append(block(&schema, first, n, seed, reuse)).unwrap();
        first += u64::from(n);
    }
    let mut parts = FooterParts::default();
    for sample in (0..n_samples).filter(|_| paths) {
        parts.paths.push(&path(sample)).unwrap();
    }
    let (bytes, summary) = writer.finish(parts).unwrap();
    assert_eq!(summary.n_samples, n_samples);
    assert_eq!(summary.file_len, u64::try_from(bytes.len()).unwrap());
    bytes
}

/// A pack written chunk by chunk from another.
fn copied(options: PackOptions, bytes: &[u8]) -> Vec<u8> {
    let pack = Pack::open(bytes.to_vec()).unwrap();
    let mut writer = PackWriter::new(Vec::new(), options).unwrap();
    for chunk in 0..pack.n_chunks() {
        let entry = pack.chunk_entry(chunk).unwrap();
        let first = chunk * u64::from(pack.geometry().chunk_samples());
        let samples = first..first + u64::from(entry.n_samples);
        let column =
            |(number, _): (usize, &Field)| pack.column(number).unwrap().range(samples.clone()).unwrap().to_vec();
        let columns = pack.schema().columns().map(column).collect();
        let bytes = pack.chunk_bytes(chunk).unwrap();
        let stored = StoredChunk { bytes, crc32c: entry.crc32c, n_samples: entry.n_samples, columns };
        writer.append_chunk(&stored).unwrap();
    }
    let mut paths = Paths::default();
    for sample in (0..pack.n_samples()).filter(|_| pack.has_paths()) {
        paths.push(&pack.path(sample).unwrap().unwrap()).unwrap();
    }
    writer.finish(FooterParts { paths, ..FooterParts::default() }).unwrap().0
}

fn path(sample: u64) -> Vec<u8> {
    vec![b'a'; usize::try_from(sample % 5).unwrap()]
}

fn check(bytes: Vec<u8>, schema: &Schema, n_samples: u64, seed: u64, paths: bool) {
    let pack = Pack::open(bytes).unwrap();
    assert_eq!(pack.schema(), schema);
    assert_eq!(pack.n_samples(), n_samples);
    for sample in 0..n_samples {
        for (number, field) in schema.fields().iter().enumerate() {
            if field.role != Some(Role::SampleCrc32c) {
                assert!(pack.item(number, sample).unwrap() == content(field, number, sample, seed));
            }
        }
        pack.check_sample(sample).unwrap();
        assert_eq!(pack.path(sample).unwrap(), paths.then(|| path(sample)));
    }
    check_outside_chunks(&pack).unwrap();
    for chunk in 0..pack.n_chunks() {
        check_chunk(&pack, chunk, pack.chunk_bytes_unchecked(chunk).unwrap()).unwrap();
    }
    let beyond = pack.item(0, n_samples).unwrap_err();
    assert!(matches!(beyond, FormatError::OutOfRange { what: "sample", .. }));
    assert!(matches!(pack.chunk_entry(pack.n_chunks()), Err(FormatError::OutOfRange { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_pack_reads_as_it_was_written(
        schema in schema(), n_samples in 0_u64..40, chunk_samples in 1_u32..17, align_log2 in 12_u8..15, seed: u64, paths: bool,
    ) {
        let mut options = PackOptions::new(schema.clone(), chunk_samples);
        options.align_log2 = align_log2;
        let bytes = write(options.clone(), n_samples, seed, paths);
        assert!(bytes == write(options.clone(), n_samples, seed, paths), "the bytes differ from run to run");
        assert!(bytes == copied(options, &bytes), "the bytes of a copy by chunks differ");
        check(bytes, &schema, n_samples, seed, paths && n_samples > 0);
    }
}

#[test]
fn blocks_and_columns_of_several_mib_round_trip() {
    // The items of the first pack are larger than zstd's window of 8 MiB, and its blocks have one sample. The second
    // pack has a column with three checksum blocks.
    let mut large = Field::tensor("x", DType::U8, &[9 << 20]);
    large.codec = Codec::Zstd { level: 1, filter: Filter::NONE };
    let schema = Schema::new(vec![large]).unwrap();
    check(write(PackOptions::new(schema.clone(), 2), 3, 2, false), &schema, 3, 2, false);
    let fields = vec![Field::tensor("x", DType::U8, &[]), Field::column("c", DType::F64, &[128])];
    let schema = Schema::new(fields).unwrap();
    check(write(PackOptions::new(schema.clone(), 64), 2100, 3, false), &schema, 2100, 3, false);
}

#[test]
fn any_alignment_up_to_2_mib_round_trips() {
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[3])]).unwrap();
    for align_log2 in 12..=21 {
        let mut options = PackOptions::new(schema.clone(), 2);
        options.align_log2 = align_log2;
        let bytes = write(options, 5, 1, false);
        assert_eq!(Pack::open(bytes.as_slice()).unwrap().one().unwrap().header().data_off, (1 << align_log2).max(8192));
        check(bytes, &schema, 5, 1, false);
    }
    let mut options = PackOptions::new(schema, 2);
    options.align_log2 = 22;
    assert!(matches!(PackWriter::new(Vec::new(), options), Err(FormatError::BadValue { offset: 32, .. })));
}

#[test]
fn a_block_of_another_schema_or_size_is_refused() {
    let schema = |fields: Vec<Field>| Schema::new(fields).unwrap();
    let one = schema(vec![Field::tensor("x", DType::U8, &[4])]);
    let others = [
        schema(vec![Field::tensor("x", DType::U8, &[5])]),
        schema(vec![Field::variable("x", FieldKind::Bytes)]),
        schema(vec![Field::tensor("x", DType::U8, &[4]), Field::column("c", DType::U8, &[])]),
        schema(vec![Field::tensor("x", DType::U8, &[4]), Field::tensor("y", DType::U8, &[4])]),
    ];
    for other in others {
        let mut writer = PackWriter::new(Vec::new(), PackOptions::new(one.clone(), 4)).unwrap();
        let result = writer.append(block(&other, 0, 2, 0, None));
        assert!(matches!(result, Err(FormatError::WrongUse(_))));
    }
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(one.clone(), 4)).unwrap();
    assert!(matches!(writer.append(block(&one, 0, 5, 0, None)), Err(FormatError::WrongUse(_))));
    writer.append(block(&one, 0, 2, 0, None)).unwrap();
    assert!(matches!(writer.append(block(&one, 2, 1, 0, None)), Err(FormatError::WrongUse(_))));
}

#[test]
fn a_ragged_item_that_ends_inside_an_entry_is_refused() {
    let schema = Schema::new(vec![Field::ragged("boxes", DType::F32, &[4])]).unwrap();
    let mut block = BlockBuilder::new(&schema);
    block.item_mut(0).unwrap().extend_from_slice(&[0; 32]);
    block.finish_sample().unwrap();
    block.item_mut(0).unwrap().extend_from_slice(&[0; 31]);
    let error = block.finish_sample().unwrap_err();
    assert_eq!(error.to_string(), "field `boxes`: expected whole entries of 16 bytes each, found 31 bytes");
}

#[test]
fn a_stored_chunk_of_another_size_or_after_a_short_one_is_refused() {
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[4]), Field::column("c", DType::U8, &[])]).unwrap();
    let chunk = |n: u32, n_bytes: usize, n_items: usize| StoredChunk {
        bytes: &[0; 64][..n_bytes],
        crc32c: 0,
        n_samples: n,
        columns: vec![vec![0; n_items]],
    };
    let options = PackOptions::new(schema.clone(), 4);
    let writer = || PackWriter::new(Vec::new(), options.clone()).unwrap();
    writer().append_chunk(&chunk(4, 16, 4)).unwrap();
    for (n, n_bytes, n_items) in [(5, 20, 5), (4, 15, 4), (4, 16, 3), (4, 16, 8), (0, 0, 0)] {
        let refused = writer().append_chunk(&chunk(n, n_bytes, n_items));
        assert!(matches!(refused, Err(FormatError::WrongUse(_))), "{n} {n_bytes} {n_items}");
    }
    let mut open = writer();
    open.append(block(&schema, 0, 2, 0, None)).unwrap();
    assert!(matches!(open.append_chunk(&chunk(4, 16, 4)), Err(FormatError::WrongUse(_))));
    let mut ended = writer();
    ended.append_chunk(&chunk(3, 12, 3)).unwrap();
    assert!(matches!(ended.append_chunk(&chunk(4, 16, 4)), Err(FormatError::WrongUse(_))));
    assert!(matches!(ended.append(block(&schema, 0, 2, 0, None)), Err(FormatError::WrongUse(_))));
}

#[test]
fn a_sample_without_its_tensor_is_refused_even_after_a_dropped_one() {
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[4])]).unwrap();
    let mut block = BlockBuilder::new(&schema);
    assert!(matches!(block.finish_sample(), Err(FormatError::WrongUse(_))));
    block.tensor_mut(0).unwrap().fill(7);
    block.drop_sample();
    assert!(matches!(block.finish_sample(), Err(FormatError::WrongUse(_))));
}

#[test]
fn what_json_cannot_hold_is_refused_when_writing() {
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[4])]).unwrap();
    let writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 4)).unwrap();
    let mut stats = Stats::default();
    stats.sizes.insert("x".to_owned(), packds_format::SizeStats { mean: f64::NAN, ..Default::default() });
    let parts = FooterParts { stats, ..FooterParts::default() };
    assert!(matches!(writer.finish(parts), Err(FormatError::BadJson { what: "statistics", .. })));
    let mut field = Field::tensor("x", DType::U8, &[4]);
    let (mean, std) = (vec![f64::INFINITY], vec![1.0]);
    field.normalize = Some(packds_format::Normalize { scale: 1.0, mean, std, applied: false });
    assert!(matches!(Schema::new(vec![field]), Err(FormatError::BadSchema { .. })));
}

#[test]
fn provenance_is_the_text_of_a_json_object() {
    let written = |provenance: &str| {
        let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[1])]).unwrap();
        let writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 8)).unwrap();
        let parts = FooterParts { provenance: provenance.to_owned(), ..FooterParts::default() };
        writer.finish(parts).map(|(bytes, _)| Pack::open(bytes).unwrap().provenance().unwrap())
    };
    assert_eq!(written("").unwrap(), "{}");
    assert_eq!(written(r#"{ "tool": "x", "a": [1] }"#).unwrap(), r#"{"tool":"x","a":[1]}"#);
    for text in ["[]", "{", "null"] {
        let error = written(text).unwrap_err();
        assert!(matches!(error, FormatError::BadJson { what: "provenance", .. }), "{error}");
    }
}

#[test]
fn paths_that_are_missing_or_too_long_are_refused_when_writing() {
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[4])]).unwrap();
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema.clone(), 4)).unwrap();
    writer.append(block(&schema, 0, 2, 0, None)).unwrap();
    let mut paths = Paths::default();
    paths.push(b"one").unwrap();
    assert_eq!((paths.len(), paths.is_empty()), (1, false));
    let too_long = paths.push(&vec![b'a'; (1 << 16) + 1]);
    assert!(matches!(too_long, Err(FormatError::LimitExceeded { limit: 65536, found: 65537, .. })));
    let parts = FooterParts { paths, ..FooterParts::default() };
    assert!(matches!(writer.finish(parts), Err(FormatError::WrongUse(_))));
}

#[test]
fn columns_give_integers_by_their_type() {
    let dtypes = [DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::U64, DType::F32];
    let mut fields = vec![Field::tensor("x", DType::U8, &[])];
    fields.extend(dtypes.map(|d| Field::column(d.name(), d, &[])));
    fields.push(Field::column("two", DType::U8, &[4]));
    let schema = Schema::new(fields).unwrap();
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema.clone(), 4)).unwrap();
    let mut block = BlockBuilder::new(&schema);
    block.tensor_mut(0).unwrap().fill(0);
    for (number, field) in schema.columns() {
        let n = usize::try_from(field.item_bytes().unwrap()).unwrap();
        block.set_column(number, &vec![0xff; n]).unwrap();
    }
    block.finish_sample().unwrap();
    writer.append(block.finish().unwrap()).unwrap();
    let pack = Pack::open(writer.finish(FooterParts::default()).unwrap().0).unwrap();
    let found: Vec<Option<i64>> = (1..9).map(|n| pack.column(n).unwrap().integer(0)).collect();
    let expected = [Some(-1), Some(65535), Some(-1), Some(4_294_967_295), Some(-1), None, None, None];
    assert_eq!(found, expected);
    assert_eq!(pack.column(4).unwrap().u32(0), Some(u32::MAX));
    assert_eq!(pack.column(8).unwrap().u32(0), None);
}

#[test]
fn the_chunk_rule_stays_within_its_limits() {
    for bytes in [0, 1, 1 << 14, 1 << 20, 1 << 24, 1 << 40, u64::MAX] {
        assert!((1..=1024).contains(&chunk_samples_for(bytes, None)));
        assert_eq!(1000 % chunk_samples_for(bytes, Some(1000)), 0);
    }
}
