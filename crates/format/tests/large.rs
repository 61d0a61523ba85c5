//! Packs beyond 4 GiB, 2^32 samples and 16 million chunks. Their bytes are untouched zeros, so they use address space
//! but no memory.

use std::io::Write;

use packds_format::{
    BlockBuilder, DType, Field, FooterParts, FormatError, Pack, PackOptions, PackWriter, Schema, check_chunk, crc32c,
};

/// A file in memory that leaves zeros untouched, like holes in a sparse file.
struct Sparse {
    bytes: Vec<u8>,
    len: usize,
}

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for piece in bytes.chunks(4096) {
            if piece.iter().any(|&b| b != 0) {
                self.bytes[self.len..self.len + piece.len()].copy_from_slice(piece);
            }
            self.len += piece.len();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const GIB: usize = 1 << 30;

#[test]
fn offsets_beyond_4_gib_hold() {
    const SAMPLE: u64 = 16 << 20;
    const N: u64 = 330;
    let fields = vec![Field::tensor("x", DType::U8, &[SAMPLE]), Field::column("label", DType::I64, &[])];
    let schema = Schema::new(fields).unwrap();
    let target = Sparse { bytes: vec![0; 6 * GIB], len: 0 };
    let mut writer = PackWriter::new(target, PackOptions::new(schema.clone(), 4)).unwrap();
    let mut block = BlockBuilder::new(&schema);
    for sample in 0..N {
        let item = block.tensor_mut(0).unwrap();
        item[..8].copy_from_slice(&sample.to_le_bytes());
        block.set_column(1, &sample.to_le_bytes()).unwrap();
        block.finish_sample().unwrap();
        writer.append(block.finish().unwrap()).unwrap();
        block = match writer.reclaim() {
            Some(old) => BlockBuilder::recycle(&schema, old),
            None => BlockBuilder::new(&schema),
        };
    }
    let (file, summary) = writer.finish(FooterParts::default()).unwrap();
    let pack = Pack::open(&file.bytes[..file.len]).unwrap();
    assert_eq!((pack.n_samples(), pack.n_chunks(), summary.n_chunks), (N, 83, 83));
    assert!(summary.file_len > 5 << 30);
    let last = pack.chunk_entry(82).unwrap();
    assert_eq!((last.offset, last.n_samples), (8192 + 82 * 4 * SAMPLE, 2));
    for sample in [0, 1, 255, 256, 257, N - 1] {
        assert_eq!(pack.item(0, sample).unwrap()[..8], sample.to_le_bytes());
        assert_eq!(pack.column(1).unwrap().get(sample).unwrap(), sample.to_le_bytes());
    }
    for chunk in [0, 63, 64, 82] {
        check_chunk(&pack, chunk, pack.chunk_bytes_unchecked(chunk).unwrap()).unwrap();
    }
}

/// A pack of `n` zero bytes, one per sample, laid out by hand, because the writer would take minutes.
fn zeros(n: u64, chunk_samples: u32) -> (Vec<u8>, usize) {
    let place = |n: u64| usize::try_from(n).unwrap();
    let schema = Schema::new(vec![Field::tensor("x", DType::U8, &[])]).unwrap();
    let writer = PackWriter::new(Vec::new(), PackOptions::new(schema, chunk_samples)).unwrap();
    let (empty, _) = writer.finish(FooterParts::default()).unwrap();
    let data_off = crate::support::get(&empty, 88, 8);
    let footer = place(data_off + n).next_multiple_of(64);
    let n_chunks = n.div_ceil(chunk_samples.into());
    let mut file = vec![0; footer + (64 << 20) + (8 << 20)];
    file[..place(data_off)].copy_from_slice(&empty[..place(data_off)]);

    // The sections are those of the empty pack, except that the chunk table is longer.
    let old = crate::support::sections(&empty);
    let part = |i: usize| empty[place(old[i].offset)..place(old[i].offset + old[i].len)].to_vec();
    let chunk = crc32c(&vec![0; place(chunk_samples.into())]).to_le_bytes();
    let rest = n - (n_chunks - 1) * u64::from(chunk_samples);
    let mut table = [&n_chunks.to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 0, 0]].concat();
    (1..n_chunks).for_each(|_| table.extend_from_slice(&chunk));
    table.extend_from_slice(&crc32c(&vec![0; place(rest)]).to_le_bytes());
    let parts = [part(0), table, part(2)];

    let mut end = footer + 8 + 32 * parts.len();
    file[footer] = 3;
    for (i, part) in parts.iter().enumerate() {
        let offset = end.next_multiple_of(64);
        end = offset + part.len();
        file[offset..end].copy_from_slice(part);
        let entry = footer + 8 + 32 * i;
        file[entry..entry + 4].copy_from_slice(&old[i].tag);
        file[entry + 4] = 1;
        let le = |n: usize| u64::try_from(n).unwrap().to_le_bytes();
        file[entry + 8..entry + 16].copy_from_slice(&le(offset));
        file[entry + 16..entry + 24].copy_from_slice(&le(part.len()));
    }
    let len = end + 64;
    let trailer = &mut file[end..len];
    let le = |n: usize| u64::try_from(n).unwrap().to_le_bytes();
    trailer[8..16].copy_from_slice(&le(footer));
    trailer[16..24].copy_from_slice(&le(end - footer));
    trailer[24..32].copy_from_slice(&n.to_le_bytes());
    trailer[32..48].copy_from_slice(&empty[40..56]);
    crate::support::reseal_outside(&mut file[..len]);
    (file, len)
}

#[test]
fn more_than_2_to_the_32_samples_open_and_are_found() {
    let n = (1_u64 << 32) + 5;
    let (mut file, len) = zeros(n, 1 << 20);
    let pack = Pack::open(&file[..len]).unwrap();
    assert_eq!((pack.n_samples(), pack.n_chunks()), (n, 4097));
    assert_eq!(pack.geometry().locate(n - 1), (4096, 4));
    assert_eq!(pack.item(0, n - 1).unwrap().as_ref(), [0]);
    assert!(matches!(pack.item(0, n), Err(FormatError::OutOfRange { index, .. }) if index == n));
    for chunk in [0, 4095, 4096] {
        check_chunk(&pack, chunk, pack.chunk_bytes_unchecked(chunk).unwrap()).unwrap();
    }
    let at = usize::try_from(pack.chunk_entry(4096).unwrap().offset).unwrap() + 4;
    drop(pack);
    file[at] = 1;
    let pack = Pack::open(&file[..len]).unwrap();
    assert_eq!(pack.item_unchecked(0, n - 1).unwrap().as_ref(), [1]);
    let damage = check_chunk(&pack, 4096, pack.chunk_bytes_unchecked(4096).unwrap()).unwrap_err();
    let expected = (4096, 1 << 32, (1 << 32) + 5);
    assert!(matches!(damage.error, FormatError::ChunkChecksum { chunk, first_sample, end_sample, .. }
        if (chunk, first_sample, end_sample) == expected));
}

#[test]
fn sixteen_million_chunks_open_and_are_found() {
    let n = 1 << 24;
    let (file, len) = zeros(n, 1);
    let pack = Pack::open(&file[..len]).unwrap();
    assert_eq!(pack.n_chunks(), n);
    for chunk in [0, 1, n / 2, n - 1] {
        let entry = pack.chunk_entry(chunk).unwrap();
        assert_eq!((entry.offset, entry.stored_len, entry.n_samples), (8192 + chunk, 1, 1));
        check_chunk(&pack, chunk, pack.chunk_bytes_unchecked(chunk).unwrap()).unwrap();
    }
    assert!(matches!(pack.chunk_entry(n), Err(FormatError::OutOfRange { .. })));
}
