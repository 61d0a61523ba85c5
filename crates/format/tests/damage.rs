//! Every flipped bit, every truncation and every extension of a pack is detected. See docs/reference/format.md, "Abuse
//! list", 2 to 4.

use packds_format::{
    BlockBuilder, Codec, DType, Field, FieldKind, FooterParts, FormatError, Pack, PackOptions, PackWriter, Role,
    Schema, check_chunk, check_outside_chunks,
};

use crate::cases::cases;

/// Whether opening or verifying a file finds an error.
fn is_damaged(file: &[u8]) -> bool {
    let Ok(pack) = Pack::open(file) else {
        return true;
    };
    let chunk_is_bad = |chunk| {
        let bytes = pack.chunk_bytes_unchecked(chunk).unwrap();
        check_chunk(&pack, chunk, bytes).is_err()
    };
    check_outside_chunks(&pack).is_err() || (0..pack.n_chunks()).any(chunk_is_bad)
}

#[test]
fn every_flipped_bit_is_found() {
    // Strided packs with one and with several fields, a pack with columns and paths, explicit packs with and without
    // frames, and an empty pack.
    let names = ["short_last_chunk", "scalars", "full_footer", "zstd_text", "encoded_images", "empty"];
    for case in cases().unwrap().iter().filter(|case| names.contains(&case.name)) {
        let mut file = case.to_bytes().unwrap();
        assert!(!is_damaged(&file), "{}", case.name);
        for at in 0..file.len() {
            for bit in 0..8 {
                file[at] ^= 1 << bit;
                assert!(is_damaged(&file), "{}: bit {bit} of byte {at}", case.name);
                file[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for case in cases().unwrap().iter().filter(|case| case.name != "zstd_several_blocks") {
        let file = case.to_bytes().unwrap();
        for len in 0..file.len() {
            let error = Pack::open(&file[..len]).unwrap_err();
            let expected = match len {
                0..4096 => {
                    matches!(error, FormatError::TooShort { found, .. } if found == u64::try_from(len).unwrap())
                }
                4096..4160 => matches!(error, FormatError::TooShort { .. }),
                _ => matches!(error, FormatError::NoTrailer { .. }),
            };
            assert!(expected, "{}: {len} bytes: {error}", case.name);
        }
    }
}

#[test]
fn every_extension_is_refused() {
    let file = cases().unwrap()[0].to_bytes().unwrap();
    for n in 1..200 {
        for junk in [0, b'x', 0x0a] {
            let mut long = file.clone();
            long.extend(std::iter::repeat_n(junk, n));
            assert!(matches!(Pack::open(long), Err(FormatError::NoTrailer { .. })), "{n} bytes");
        }
    }
    // Two concatenated packs end with a trailer, but it does not describe the whole file.
    let twice = [file.as_slice(), &file].concat();
    assert!(matches!(Pack::open(twice), Err(FormatError::WrongLength { .. })));
}

/// A pack of `n` samples of `bytes` bytes with checksums per sample. It has one chunk, and one block if it is
/// compressed.
fn with_sample_checksums(n: u64, bytes: u64, codec: Codec) -> Vec<u8> {
    let mut image = Field::tensor("x", DType::U8, &[bytes]);
    image.codec = codec;
    let crc = Field::column("crc", DType::U32, &[]).with_role(Role::SampleCrc32c);
    let mut fields = vec![image, crc];
    if codec.is_none() {
        fields.push(Field::variable("text", FieldKind::Bytes));
    }
    let schema = Schema::new(fields).unwrap();
    let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 1 << 20)).unwrap();
    let mut block = BlockBuilder::new(writer.schema());
    for sample in 0..n {
        let item = block.tensor_mut(0).unwrap();
        item.fill(sample.to_le_bytes()[0]);
        if codec.is_none() {
            let text = block.item_mut(2).unwrap();
            text.extend_from_slice(&sample.to_le_bytes());
        }
        block.finish_sample().unwrap();
    }
    writer.append(block.finish().unwrap()).unwrap();
    writer.finish(FooterParts::default()).unwrap().0
}

#[test]
fn bad_samples_of_a_chunk_are_named() {
    let file = with_sample_checksums(10, 100, Codec::None);
    let pack = Pack::open(file.as_slice()).unwrap();
    let mut bytes = pack.chunk_bytes_unchecked(0).unwrap().to_vec();
    // The first part starts after the two-entry directory, at byte 64.
    bytes[64 + 3 * 100 + 50] ^= 1;
    bytes[64 + 7 * 100] ^= 128;
    let damage = check_chunk(&pack, 0, &bytes).unwrap_err();
    assert_eq!(damage.bad_samples, [3, 7]);
    let found = damage.error;
    assert!(
        matches!(found, FormatError::ChunkChecksum { chunk: 0, first_sample: 0, end_sample: 10, offset: 8192, .. }),
        "{found}"
    );
}

/// The pack has 100,000 samples in one block. The block must not be decompressed again for each bad sample.
#[test]
fn naming_the_bad_samples_of_a_large_chunk_is_not_quadratic() {
    let filter = packds_format::Filter::NONE;
    let mut file = with_sample_checksums(100_000, 8, Codec::Zstd { level: 1, filter });
    let pack = Pack::open(file.as_slice()).unwrap();
    let bytes = pack.chunk_bytes_unchecked(0).unwrap().to_vec();
    // Only two checksums are wrong: the last sample's, and the chunk's. Samples are checked only because the chunk's
    // checksum is wrong.
    let column = usize::try_from(pack.one().unwrap().columns()[0].offset).unwrap();
    drop(pack);
    crate::support::put(&mut file, column + 4 * 99_999, &[0; 4]);
    crate::support::reseal(&mut file);
    let table = crate::support::section(&file, b"CHNK").unwrap();
    let (_, _, crc_at) = crate::support::chunk_place(&file, &table, 0);
    crate::support::put(&mut file, crc_at, &[0; 4]);
    crate::support::reseal_outside(&mut file);
    let pack = Pack::open(file.as_slice()).unwrap();
    let start = std::time::Instant::now();
    let damage = check_chunk(&pack, 0, &bytes).unwrap_err();
    assert_eq!(damage.bad_samples, [99_999]);
    // This takes milliseconds. Decompressing 800 KB for each sample would take minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(5));
}

/// Verifying decodes nothing, but it still detects a table whose offsets do not ascend.
#[test]
fn tables_that_go_backwards_are_found_without_decoding() {
    // The table follows the directory. In one pack it is an item table, in the other a block table of two blocks.
    for (name, table) in [("bytes_string_json", 128), ("zstd_several_blocks", 64)] {
        let cases = cases().unwrap();
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let mut file = case.to_bytes().unwrap();
        crate::support::put(&mut file, 8192 + table + 8, &[0xff; 8]);
        crate::support::reseal(&mut file);
        let pack = Pack::open(file.as_slice()).unwrap();
        let damage = check_chunk(&pack, 0, pack.chunk_bytes_unchecked(0).unwrap()).unwrap_err();
        let at = 8192 + u64::try_from(table).unwrap() + 16;
        assert!(
            matches!(damage.error, FormatError::BadValue { what: "part's table", offset, .. } if offset == at),
            "{name}: {}",
            damage.error
        );
    }
}
