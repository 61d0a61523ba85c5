//! The bodies of the fuzz targets, shared by cargo-fuzz (`fuzz/`) and the tests on stable Rust. They must not panic,
//! allocate much or take long, whatever the input is.

use packds_format::{
    BlockBuilder, Codec, DType, Field, FieldKind, Filter, FooterParts, FormatError, Limits, Pack, PackOptions,
    PackWriter, Schema, Store, check_chunk, check_outside_chunks,
};

/// The limits are small, so that a frame with a large output does not slow down the fuzzer.
pub(crate) const LIMITS: Limits = Limits { chunk_bytes: 4 << 20, json_bytes: 1 << 20 };
/// Maximum number of chunks, samples and paths to read, because a small file may declare very many.
const MOST: u64 = 64;

/// Opens a pack.
pub(crate) fn open(bytes: &[u8]) -> Option<Pack<&[u8]>> {
    Pack::open_with(bytes, LIMITS).ok()
}

/// The first and the last numbers below `n`.
fn ends(n: u64) -> impl Iterator<Item = u64> {
    let half = MOST / 2;
    (0..n.min(half)).chain(n.saturating_sub(half).max(half)..n)
}

/// Opens and verifies a pack.
pub(crate) fn verify(bytes: &[u8]) {
    let Some(pack) = open(bytes) else { return };
    let found = check_outside_chunks(&pack).err().unwrap_or_default();
    assert!(found.len() <= 100, "too many errors");
    for chunk in ends(pack.n_chunks()) {
        // Opening checks that every chunk is inside the file.
        let bytes = pack.chunk_bytes_unchecked(chunk).unwrap_or(&[]);
        if let Err(damage) = check_chunk(&pack, chunk, bytes) {
            assert!(damage.bad_samples.len() <= 1 << 20);
            assert!(!damage.error.to_string().is_empty());
        }
        // A caller's buffer may be shorter than the chunk.
        let _ = check_chunk(&pack, chunk, bytes.get(1..).unwrap_or(&[]));
    }
}

/// Opens a pack and decodes everything in it: items, columns, paths, statistics.
pub(crate) fn decode(bytes: &[u8]) {
    let Some(pack) = open(bytes) else { return };
    let _ = (pack.stats(), pack.classes(), pack.provenance());
    let mut n = 0;
    let _ = pack.for_each_path(|_, _| {
        n += 1;
        if n < MOST { Ok(()) } else { Err(FormatError::WrongUse("enough".to_owned())) }
    });
    for (number, field) in pack.schema().fields().iter().enumerate() {
        if field.store == Store::Column
            && let Ok(column) = pack.column(number)
        {
            ends(pack.n_samples()).for_each(|sample| {
                assert!(column.get(sample).is_some());
                let _ = (column.integer(sample), column.u32(sample));
            });
        }
    }
    for sample in ends(pack.n_samples()) {
        for number in 0..pack.schema().fields().len().min(8) {
            let field = &pack.schema().fields()[number];
            for item in [pack.item(number, sample), pack.item_unchecked(number, sample)] {
                if let (Ok(item), Some(n)) = (item, field.item_bytes()) {
                    assert_eq!(u64::try_from(item.len()).ok(), Some(n));
                }
            }
            let _ = (pack.coding(&field.name, sample), pack.item_shape(&field.name, sample));
        }
        let _ = (pack.path(sample), pack.check_sample(sample));
    }
    for chunk in ends(pack.n_chunks()).take(8) {
        let bytes = pack.chunk_bytes_unchecked(chunk).unwrap_or(&[]);
        let mut n = 0;
        let each = |_, _: &[u8]| {
            n += 1;
            if n < MOST { Ok(()) } else { Err(FormatError::WrongUse("enough".to_owned())) }
        };
        let first_body = pack.schema().body().next().map_or(0, |(number, _)| number);
        let _ = pack.for_each_item(first_body, chunk, bytes, each);
    }
}

/// Writes a pack with a schema, sizes and content derived from the bytes, and reads it back.
pub(crate) fn round_trip(bytes: &[u8]) {
    let mut bytes = bytes.iter().copied();
    let mut next = || bytes.next().unwrap_or(0);
    let (n_fields, chunk_samples, n_samples) = (1 + next() % 3, 1 + u32::from(next() % 9), next() % 40);
    let mut fields: Vec<Field> = (0..n_fields).map(|i| field(&i.to_string(), [next(), next(), next()])).collect();
    fields.push(Field::column("column", DType::U16, &[u64::from(1 + next() % 4)]));
    let Ok(schema) = Schema::new(fields) else {
        return;
    };
    let content: Vec<u8> = bytes.collect();
    let item = |field: &Field, number: usize, sample: u8| -> Vec<u8> {
        let at = number * 31 + usize::from(sample) * 7;
        let entry = usize::try_from(field.shape.iter().product::<u64>() * field.dtype.size()).unwrap_or(1);
        // Ragged items have whole entries.
        let len = field.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(at % 50 / entry * entry);
        let source = content.iter().copied().chain(std::iter::repeat(sample));
        source.skip(at % (content.len() + 1)).take(len).collect()
    };
    let file = write(&schema, chunk_samples, n_samples, item).expect("write a valid pack");
    let pack = Pack::open(file.as_slice()).expect("open the written pack");
    for sample in 0..n_samples {
        for (number, field) in schema.fields().iter().enumerate() {
            let found = pack.item(number, sample.into()).expect("read the written items");
            assert!(found == item(field, number, sample), "field {number}, sample {sample}");
        }
    }
    assert!(check_outside_chunks(&pack).is_ok());
}

fn field(name: &str, choice: [u8; 3]) -> Field {
    let [kind, a, b] = choice;
    let shape = [u64::from(1 + a % 9), u64::from(1 + b % 9), u64::from(1 + kind / 8 % 4)];
    let dtype = DType::ALL[usize::from(a) % DType::ALL.len()];
    let zstd = |filter| Codec::Zstd { level: 1, filter };
    let mut field = match kind % 4 {
        0 => Field::tensor(name, dtype, &shape[..usize::from(b % 4)]),
        1 => Field::ragged(name, dtype, &shape[..usize::from(b % 4)]),
        2 => Field::variable(name, FieldKind::Bytes),
        _ => {
            let mut pixels = Field::tensor(name, DType::U8, &shape);
            pixels.layout = Some("hwc".to_owned());
            pixels.codec = zstd(Filter::for_pixels(shape[2], true));
            pixels
        }
    };
    if kind % 8 < 3 && b % 2 == 0 {
        field.codec = zstd(Filter::NONE);
    }
    field
}

fn write(
    schema: &Schema,
    chunk_samples: u32,
    n_samples: u8,
    item: impl Fn(&Field, usize, u8) -> Vec<u8>,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema.clone(), chunk_samples))?;
    let mut block = BlockBuilder::new(schema);
    for sample in 0..n_samples {
        for (number, field) in schema.fields().iter().enumerate() {
            let item = item(field, number, sample);
            match (field.store, field.kind) {
                (Store::Column, _) => block.set_column(number, &item)?,
                (Store::Body, FieldKind::Tensor) => block.tensor_mut(number)?.copy_from_slice(&item),
                (Store::Body, _) => block.item_mut(number)?.extend_from_slice(&item),
            }
        }
        block.finish_sample()?;
        if writer.block_room(block.n_samples()) == 0 {
            writer.append(block.finish()?)?;
            block = BlockBuilder::new(schema);
        }
    }
    writer.append(block.finish()?)?;
    Ok(writer.finish(FooterParts::default())?.0)
}
