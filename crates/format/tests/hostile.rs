//! No file makes a reader allocate much more than the file's own length and the limits justify. See
//! docs/reference/format.md, "Abuse list", 7 to 12 and 15. These tests are a separate binary, because memory is
//! counted for the whole process.

#[cfg(test)]
mod cases;
#[cfg(test)]
#[expect(dead_code, reason = "only the memory for reading is measured")]
mod fuzz_bodies;
#[cfg(test)]
#[expect(dead_code, reason = "the other test binary compares the errors")]
mod malformed_cases;
#[cfg(test)]
mod mutation;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the other test binary")]
mod support;

#[cfg(test)]
mod memory {
    use std::time::{Duration, Instant};

    use packds_format::{
        BlockBuilder, Codec, Field, FieldKind, Filter, FooterParts, FormatError, Limits, Pack, PackOptions, PackWriter,
        Schema, check_outside_chunks,
    };
    use peak_alloc::PeakAlloc;

    use crate::mutation::{Random, mutate};
    use crate::{cases, fuzz_bodies, malformed_cases, support};

    #[global_allocator]
    static ALLOCATOR: PeakAlloc = PeakAlloc;

    const MIB: usize = 1 << 20;

    /// The peak memory that `work` adds, and its result.
    fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let result = work();
        (ALLOCATOR.peak_usage().saturating_sub(before), result)
    }

    /// Opens, verifies and decodes a file, and checks the memory used.
    fn check(name: &str, file: &[u8], limit: usize) {
        let (used, ()) = peak(|| {
            fuzz_bodies::verify(file);
            fuzz_bodies::decode(file);
        });
        assert!(used <= limit, "{name}: {used} bytes for a file of {}", file.len());
    }

    /// Maximum memory to read a file. It includes twice the limit of a block, for the decompressed block and a copy of
    /// its items, and some memory for the tables.
    fn bound(file: &[u8]) -> usize {
        16 * file.len() + 2 * usize::try_from(fuzz_bodies::LIMITS.chunk_bytes).unwrap() + MIB
    }

    fn malformed_packs() {
        for (name, file) in malformed_cases::malformed() {
            check(name, &file, bound(&file));
        }
    }

    fn mutated_packs() {
        let cases = cases::cases().unwrap();
        let seeds: Vec<Vec<u8>> = cases.iter().map(|case| case.to_bytes().unwrap()).collect();
        let mut random = Random(3);
        for i in 0..5000 {
            let mut file = seeds[random.below(seeds.len())].clone();
            if file.len() < 40_000 {
                mutate(&mut file, &seeds[random.below(seeds.len())], &mut random);
                check(&format!("mutation {i}"), &file, bound(&file));
            }
        }
    }

    fn golden(name: &str) -> Vec<u8> {
        let cases = cases::cases().unwrap();
        cases.iter().find(|case| case.name == name).unwrap().to_bytes().unwrap()
    }

    /// A pack of one variable-size sample. Its only block is `frame`, and the table declares `decoded` bytes.
    fn with_frame(frame: &[u8], decoded: u64) -> Vec<u8> {
        let mut field = Field::variable("x", FieldKind::Bytes);
        let filter = Filter::NONE;
        field.codec = Codec::Zstd { level: 1, filter };
        let schema = Schema::new(vec![field]).unwrap();
        let mut writer = PackWriter::new(Vec::new(), PackOptions::new(schema, 1)).unwrap();
        let mut block = BlockBuilder::new(writer.schema());
        // Noise does not compress, so the block is stored uncompressed: a table of 16 bytes and the item. The frame
        // that replaces it has the same length.
        let mut random = Random(4);
        let noise = std::iter::repeat_with(|| random.next().to_le_bytes()[0]);
        let item: Vec<u8> = noise.take(frame.len() - 16).collect();
        block.item_mut(0).unwrap().extend_from_slice(&item);
        block.finish_sample().unwrap();
        writer.append(block.finish().unwrap()).unwrap();
        let mut file = writer.finish(FooterParts::default()).unwrap().0;
        // The directory has one entry, aligned to 64. The block table for one block has 24 bytes.
        let part = usize::try_from(support::get(&file, 88, 8)).unwrap() + 64;
        support::put(&mut file, part + 24, frame);
        support::put(&mut file, part + 16, &decoded.to_le_bytes());
        support::reseal(&mut file);
        file
    }

    /// A frame of a few bytes that decompresses to `mib` MiB of zeros. It consists of blocks of 128 KiB that repeat one
    /// byte.
    fn bomb(mib: usize) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
        for i in (0..mib * 8).rev() {
            let header = (128 << 10 << 3) | 2 | u32::from(i == 0);
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    }

    fn frames_that_decompress_to_too_much() {
        assert_eq!(zstd::stream::decode_all(bomb(3).as_slice()).unwrap().len(), 3 * MIB);
        let frame = &bomb(2)[..];
        for decoded in [1, 100, 2 << 20, (2 << 20) + 1, 1 << 30, 1 << 62] {
            let file = with_frame(frame, decoded);
            check("bomb", &file, bound(&file));
            let (used, result) = peak(|| Pack::open(file.as_slice()).unwrap().item(0, 0).map(drop));
            let reason = format!("{:?}", result.unwrap_err());
            assert!(
                reason.contains("BadBlock") || reason.contains("LimitExceeded") || reason.contains("OutOfBounds"),
                "{reason}"
            );
            // Even with the default limit of 1 GiB, memory depends on the frame's output, not on the table.
            assert!(used < 12 * MIB, "{used} bytes for {decoded}");
        }
    }

    fn paths_that_decompress_to_too_much() {
        for (mib, decoded) in [(40, 32 << 20), (1, 32 << 20), (40, 80)] {
            let file = support::rebuild(&golden("paths_not_utf8"), |parts| {
                let path = &mut parts[6].bytes;
                path.truncate(24);
                path.extend_from_slice(&u64::to_le_bytes(decoded));
                path.extend_from_slice(&bomb(mib));
            });
            let (used, result) = peak(|| Pack::open(file.as_slice()).unwrap().path(0).map(drop));
            assert!(matches!(result, Err(FormatError::BadPaths { group: 0, .. })), "{result:?}");
            assert!(used < 65 * MIB, "{used}");
        }
    }

    /// 2^30 samples in a small file: a thousand explicit chunks of 2^20 empty samples.
    fn samples_without_bytes() {
        const N_CHUNKS: u64 = 1 << 10;
        let file = support::rebuild(&golden("bytes_string_json"), |parts| {
            let table = &mut parts[1].bytes;
            table.clear();
            table.extend_from_slice(&N_CHUNKS.to_le_bytes());
            table.extend_from_slice(&[32, 0, 0, 0, 1, 0, 0, 0]);
            for _ in 0..N_CHUNKS {
                table.extend_from_slice(&8192_u64.to_le_bytes());
                table.extend_from_slice(&[0; 12]);
                table.extend_from_slice(&(1_u32 << 20).to_le_bytes());
                table.extend_from_slice(&[0; 8]);
            }
            let mut path = (N_CHUNKS << 20).to_le_bytes().to_vec();
            path.extend_from_slice(&(N_CHUNKS << 8).to_le_bytes());
            parts.push(support::Part { tag: *b"PATH", flags: 0, bytes: path });
        });
        // The body is empty, so the footer follows immediately.
        let footer = usize::try_from(support::get(&file, support::trailer_at(&file) + 8, 8)).unwrap();
        let mut short = file[..8192].to_vec();
        short.extend_from_slice(&file[footer..]);
        let moved = footer - 8192;
        let at = support::trailer_at(&short);
        support::put(&mut short, at + 8, &8192_u64.to_le_bytes());
        support::put(&mut short, at + 24, &(N_CHUNKS << 20).to_le_bytes());
        support::put(&mut short, 36, &(1_u32 << 20).to_le_bytes());
        for section in support::sections(&short) {
            let offset = section.offset - u64::try_from(moved).unwrap();
            support::put(&mut short, section.entry_at + 8, &offset.to_le_bytes());
        }
        support::reseal_outside(&mut short);
        let pack = Pack::open(short.as_slice()).unwrap();
        assert_eq!(pack.n_samples(), 1 << 30);
        let start = Instant::now();
        let paths = pack.for_each_path(|_, _| Ok::<(), FormatError>(()));
        assert!(matches!(paths, Err(FormatError::OutOfBounds { what: "path groups", .. })), "{paths:?}");
        assert!(pack.item(0, 1 << 29).is_err());
        assert!(check_outside_chunks(&pack).is_ok());
        assert!(start.elapsed() < Duration::from_secs(1));
        check("samples without bytes", &short, bound(&short));
    }

    /// All padding between chunks is damaged, but the report is still short.
    fn errors_without_end() {
        let mut file = golden("encoded_images");
        let footer = support::get(&file, support::trailer_at(&file) + 8, 8);
        for at in (8192..usize::try_from(footer).unwrap()).step_by(16) {
            file[at] ^= 0x40;
        }
        support::reseal_outside(&mut file);
        let pack = Pack::open(file.as_slice()).unwrap();
        let found = check_outside_chunks(&pack).unwrap_err().len();
        assert!((5..=100).contains(&found), "{found}");
    }

    fn json_that_is_large_in_memory() {
        let all = |json: String| support::rebuild(&golden("short_last_chunk"), |parts| parts[5].bytes = json.into());
        let keys: Vec<String> = (0..100_000).map(|i| format!("\"{i:x}\":0")).collect();
        for json in [format!("{{\"a\":[{}0]}}", "[],".repeat(300_000)), format!("{{{}}}", keys.join(","))] {
            let file = all(json);
            let limits = Limits::default();
            let (used, _) = peak(|| Pack::open_with(file.as_slice(), limits).unwrap().provenance().map(drop));
            assert!(used < 64 * file.len(), "{used} bytes for a file of {}", file.len());
        }
    }

    /// This is a single test, because parallel tests would count each other's memory.
    #[test]
    fn memory_stays_within_what_the_file_and_the_limits_justify() {
        malformed_packs();
        mutated_packs();
        frames_that_decompress_to_too_much();
        paths_that_decompress_to_too_much();
        samples_without_bytes();
        errors_without_end();
        json_that_is_large_in_memory();
    }
}
