//! The malformed packs: golden packs with one error each. Their checksums are corrected, so that the intended check is
//! reached.

use crate::cases::cases;
use crate::support::{Part, get, place, put, rebuild, reseal, reseal_outside, section, trailer_at};
use packds_format::{FormatError, Pack, Store, check_chunk, check_outside_chunks};

type File = Vec<u8>;

/// All malformed packs with their names.
pub(crate) fn malformed() -> Vec<(&'static str, File)> {
    let mut all = ends();
    all.extend(headers());
    all.extend(footers());
    all.extend(schemas());
    all.extend(tables());
    all.extend(chunks());
    all.extend(blocks());
    all.extend(meta());
    all
}

/// The first error from opening a pack, reading everything in it, and verifying it.
pub(crate) fn first_error(file: &[u8]) -> Option<FormatError> {
    let pack = match Pack::open(file) {
        Ok(pack) => pack,
        Err(error) => return Some(error),
    };
    read_all(&pack).err().or_else(|| verify(&pack).err())
}

fn read_all(pack: &Pack<&[u8]>) -> Result<(), FormatError> {
    pack.stats()?;
    pack.classes()?;
    pack.provenance()?;
    pack.for_each_path(|_, _| Ok::<(), FormatError>(()))?;
    for (number, field) in pack.schema().fields().iter().enumerate() {
        if field.store == Store::Column {
            pack.column(number)?;
        }
        for sample in 0..pack.n_samples() {
            pack.item(number, sample)?;
        }
    }
    (0..pack.n_samples()).try_for_each(|sample| pack.check_sample(sample))
}

fn verify(pack: &Pack<&[u8]>) -> Result<(), FormatError> {
    check_outside_chunks(pack).map_err(|errors| errors.into_iter().next().unwrap())?;
    for chunk in 0..pack.n_chunks() {
        check_chunk(pack, chunk, pack.chunk_bytes_unchecked(chunk)?).map_err(|damage| damage.error)?;
    }
    Ok(())
}

fn golden(name: &str) -> File {
    let cases = cases().unwrap();
    cases.iter().find(|case| case.name == name).unwrap().to_bytes().unwrap()
}

fn strided() -> File {
    golden("short_last_chunk")
}

/// Writes `bytes` at `at`, then corrects all checksums.
fn with(mut file: File, at: usize, bytes: &[u8]) -> File {
    put(&mut file, at, bytes);
    reseal(&mut file);
    file
}

/// Writes `bytes` at `at` of the trailer.
fn with_trailer(file: File, at: usize, bytes: &[u8]) -> File {
    let at = trailer_at(&file) + at;
    with(file, at, bytes)
}

/// Writes `bytes` at `at` of a section.
fn with_section(file: File, tag: &[u8; 4], at: usize, bytes: &[u8]) -> File {
    let at = place(section(&file, tag).unwrap().offset) + at;
    with(file, at, bytes)
}

/// Writes `bytes` at `at` of a section's entry in the table.
fn with_entry(mut file: File, tag: &[u8; 4], at: usize, bytes: &[u8]) -> File {
    let at = section(&file, tag).unwrap().entry_at + at;
    put(&mut file, at, bytes);
    // Corrects only the table's own checksum, because the sections do not change.
    reseal_outside(&mut file);
    file
}

/// Writes `bytes` at `at` without correcting checksums, for checks that run before checksums are compared.
fn put_only(mut file: File, at: usize, bytes: &[u8]) -> File {
    put(&mut file, at, bytes);
    file
}

fn flipped(mut file: File, at: usize) -> File {
    file[at] ^= 1;
    file
}

fn ends() -> Vec<(&'static str, File)> {
    let file = strided();
    let other = golden("strided_one_field");
    let text_mode: File = file.iter().copied().filter(|&b| b != b'\r').collect();
    let mut spliced = file[..4096].to_vec();
    spliced.extend_from_slice(&other[4096..]);
    vec![
        ("no_bytes", Vec::new()),
        ("header_only", file[..4096].to_vec()),
        ("another_kind_of_file", [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 5000]].concat()),
        ("text_mode_transfer", text_mode),
        ("truncated", file[..file.len() - 1].to_vec()),
        ("unfinished", file[..file.len() - 1000].to_vec()),
        ("extended", [file.as_slice(), b"\n"].concat()),
        ("joined_twice", [file.as_slice(), &file].concat()),
        ("spliced", spliced),
        ("trailer_checksum", flipped(file.clone(), file.len() - 40)),
    ]
}

fn headers() -> Vec<(&'static str, File)> {
    let file = strided;
    vec![
        ("future_major_version", with(file(), 8, &[2])),
        ("header_checksum", flipped(file(), 3000)),
        ("unknown_required_feature", with(file(), 16, &[4])),
        ("required_feature_not_needed", with(file(), 16, &[2])),
        ("ragged_feature_not_said", with(golden("ragged"), 16, &[1])),
        ("required_feature_not_said", with(golden("zstd_gray"), 16, &[1])),
        ("header_length", with(file(), 12, &4097_u32.to_le_bytes())),
        ("checksum_kind", with(file(), 33, &[2])),
        ("alignment_too_small", with(file(), 32, &[11])),
        ("alignment_too_large", with(file(), 32, &[22])),
        ("alignment_of_another_body", with(file(), 32, &[14])),
        ("header_reserved", with(file(), 35, &[7])),
        ("header_reserved_tail", with(file(), 4091, &[7])),
        ("no_samples_per_chunk", with(file(), 36, &[0; 4])),
        ("too_many_samples_per_chunk", with(file(), 36, &((1_u32 << 20) + 1).to_le_bytes())),
        ("schema_offset", with(file(), 72, &4097_u64.to_le_bytes())),
        ("data_offset", with(file(), 88, &12288_u64.to_le_bytes())),
        ("data_offset_near_2_64", with(file(), 88, &[0xff; 8])),
        ("sample_stride", with(file(), 96, &[61])),
        ("chunk_stride", with(file(), 104, &[241])),
        ("chunk_stride_near_2_64", with(file(), 104, &[0xff; 8])),
        ("front_schema_checksum", flipped(file(), 4100)),
        ("padding_before_body", with(file(), 8191, &[1])),
        ("too_many_samples", with_trailer(file(), 24, &(1_u64 << 48).to_le_bytes())),
        ("more_samples_than_chunks", with_trailer(file(), 24, &9_u64.to_le_bytes())),
        ("more_samples_than_bytes", with_trailer(file(), 24, &8_u64.to_le_bytes())),
        ("footer_length", with_trailer(file(), 16, &[7])),
        ("footer_offset_near_2_64", with_trailer(file(), 8, &[0xff; 8])),
    ]
}

fn footers() -> Vec<(&'static str, File)> {
    let file = strided;
    let section = |tag: &[u8; 4], flags| Part { tag: *tag, flags, bytes: b"new".to_vec() };
    let footer = place(get(&file(), trailer_at(&file()) + 8, 8));
    let shifted = {
        let old = file();
        let mut new = old[..footer].to_vec();
        new.extend_from_slice(&[0; 64]);
        new.extend_from_slice(&old[footer..]);
        let at = trailer_at(&new);
        put(&mut new, at + 8, &u64::try_from(footer + 64).unwrap().to_le_bytes());
        for i in 0..6 {
            let at = footer + 64 + 8 + 32 * i + 8;
            let offset = get(&new, at, 8) + 64;
            put(&mut new, at, &offset.to_le_bytes());
        }
        reseal_outside(&mut new);
        new
    };
    vec![
        ("footer_checksum", flipped(file(), footer + 32)),
        ("too_many_sections", put_only(file(), footer, &257_u32.to_le_bytes())),
        ("section_table_outside", put_only(file(), footer, &200_u32.to_le_bytes())),
        ("footer_reserved", with(file(), footer + 4, &[1])),
        ("section_reserved", with_entry(file(), b"STAT", 28, &[1])),
        ("section_flags", with_entry(file(), b"STAT", 4, &[2])),
        ("required_section_flags", with_entry(file(), b"CHNK", 4, &[0])),
        ("section_offset", with_entry(file(), b"COLS", 8, &[0])),
        ("section_offset_near_2_64", with_entry(file(), b"COLS", 8, &[0xff; 8])),
        ("section_length_near_2_64", with_entry(file(), b"PROV", 16, &[0xff; 8])),
        ("section_length_short", with_entry(file(), b"PROV", 16, &[1])),
        ("section_checksum", {
            let at = place(crate::support::section(&file(), b"CHNK").unwrap().offset);
            flipped(file(), at + 16)
        }),
        ("unknown_section_to_understand", rebuild(&file(), |parts| parts.push(section(b"NEWS", 1)))),
        ("missing_section", rebuild(&file(), |parts| parts.retain(|p| &p.tag != b"COLS"))),
        ("two_sections_of_one_tag", rebuild(&file(), |parts| parts.push(section(b"STAT", 0)))),
        ("padding_before_section", {
            let at = place(crate::support::section(&file(), b"SCHM").unwrap().offset) - 1;
            with(file(), at, &[1])
        }),
        ("padding_before_footer", with(file(), footer - 1, &[1])),
        ("footer_moved", shifted),
    ]
}

/// The pack with a different schema.
fn with_schema(file: &[u8], json: &str) -> File {
    rebuild(file, |parts| parts[0].bytes = json.as_bytes().to_vec())
}

/// Fields of boxes, and what belongs to them.
const FOUND: &str = r#"{"name":"found","kind":"ragged","store":"body","dtype":"f32","shape":[4],"role":"boxes"}"#;
const JOINTS: &str =
    r#"{"name":"joints","kind":"ragged","store":"body","dtype":"f32","shape":[2,3],"role":"keypoints"}"#;
const OUTLINES: &str =
    r#"{"name":"outlines","kind":"ragged","store":"body","dtype":"f32","shape":[4],"role":"polygons"}"#;

#[expect(clippy::too_many_lines, reason = "a list")]
fn schemas() -> Vec<(&'static str, File)> {
    let one = |field: &str| with_schema(&strided(), &format!("{{\"fields\":[{field}]}}"));
    let tensor = |dtype: &str, rest: &str| {
        one(&format!("{{\"name\":\"x\",\"kind\":\"tensor\",\"store\":\"body\",\"dtype\":\"{dtype}\"{rest}}}"))
    };
    let many =
        (0..1025).map(|i| format!("{{\"name\":\"{i}\",\"kind\":\"tensor\",\"store\":\"body\",\"dtype\":\"u8\"}}"));
    let many: Vec<String> = many.collect();
    let two = |second: &str| {
        let first = r#"{"name":"x","kind":"tensor","store":"body","dtype":"u8"}"#;
        one(&format!("{first},{second}"))
    };
    let joints = |named: &str| {
        let rest = JOINTS.strip_suffix('}').unwrap();
        one(&format!("{FOUND},{rest},\"keypoints\":{named}}}"))
    };
    let mut copies_differ = rebuild(&strided(), |_| {});
    put(&mut copies_differ, 80, &[1]);
    let front = packds_format::crc32c(&copies_differ[..4092]);
    put(&mut copies_differ, 4092, &front.to_le_bytes());
    vec![
        ("schema_not_json", with_schema(&strided(), "{\"fields\":[")),
        ("schema_is_a_list", with_schema(&strided(), &"[".repeat(2000))),
        ("schema_without_fields", with_schema(&strided(), "{\"fields\":[]}")),
        ("schema_copies_differ", copies_differ),
        ("schema_must_understand", with_schema(&strided(), r#"{"fields":[],"must_understand":["ragged"]}"#)),
        ("too_many_fields", with_schema(&strided(), &format!("{{\"fields\":[{}]}}", many.join(",")))),
        ("unknown_dtype", tensor("u128", "")),
        ("unknown_codec", tensor("u8", r#","codec":{"name":"lz4"}"#)),
        ("unknown_filter", tensor("u8", r#","codec":{"name":"zstd","level":1,"filter":"left"}"#)),
        ("filter_without_layout", tensor("u8", r#","codec":{"name":"zstd","level":1,"filter":"up"}"#)),
        (
            "filter_of_floats",
            tensor("f32", r#","shape":[2,2,3],"layout":"hwc","codec":{"name":"zstd","level":1,"filter":"planar+up"}"#),
        ),
        (
            "green_without_three_channels",
            tensor(
                "u8",
                r#","shape":[2,2,4],"layout":"hwc","codec":{"name":"zstd","level":1,"filter":"planar+green"}"#,
            ),
        ),
        (
            "planar_of_planes",
            tensor("u8", r#","shape":[3,2,2],"layout":"chw","codec":{"name":"zstd","level":1,"filter":"planar"}"#),
        ),
        ("zstd_level", tensor("u8", r#","codec":{"name":"zstd","level":20,"filter":"none"}"#)),
        ("unknown_layout", tensor("u8", r#","layout":"nhwc""#)),
        ("dimension_of_0", tensor("u8", r#","shape":[0]"#)),
        ("nine_dimensions", tensor("u8", r#","shape":[1,1,1,1,1,1,1,1,1]"#)),
        ("item_of_2_64_bytes", tensor("f64", r#","shape":[4294967296,4294967296]"#)),
        ("item_over_2_40_bytes", tensor("u8", r#","shape":[1099511627777]"#)),
        ("chunk_over_2_gib", tensor("u8", r#","shape":[1073741824]"#)),
        ("name_with_control_character", one(r#"{"name":"a\nb","kind":"tensor","store":"body","dtype":"u8"}"#)),
        ("two_fields_of_one_name", two(r#"{"name":"x","kind":"tensor","store":"column","dtype":"u8"}"#)),
        ("text_with_shape", one(r#"{"name":"x","kind":"string","store":"body","dtype":"u8","shape":[2]}"#)),
        ("text_in_column", two(r#"{"name":"y","kind":"string","store":"column","dtype":"u8"}"#)),
        ("column_item_too_large", two(r#"{"name":"y","kind":"tensor","store":"column","dtype":"u8","shape":[1025]}"#)),
        ("label_of_floats", two(r#"{"name":"y","kind":"tensor","store":"column","dtype":"f32","role":"label"}"#)),
        (
            "coding_of_no_image",
            two(r#"{"name":"y","kind":"tensor","store":"column","dtype":"u8","role":"coding","of":"x"}"#),
        ),
        (
            "seek_index_of_no_image",
            two(r#"{"name":"y","kind":"bytes","store":"body","dtype":"u8","seek_index_of":"x"}"#),
        ),
        (
            "seek_index_of_text",
            one(r#"{"name":"x","kind":"image","store":"body","dtype":"u8"},
                {"name":"y","kind":"string","store":"body","dtype":"u8","seek_index_of":"x"}"#),
        ),
        (
            "two_seek_indexes_of_one_image",
            one(r#"{"name":"x","kind":"image","store":"body","dtype":"u8"},
                {"name":"y","kind":"bytes","store":"body","dtype":"u8","seek_index_of":"x"},
                {"name":"z","kind":"bytes","store":"body","dtype":"u8","seek_index_of":"x"}"#),
        ),
        (
            "boxes_of_integers",
            one(r#"{"name":"x","kind":"ragged","store":"body","dtype":"i32","shape":[4],"role":"boxes"}"#),
        ),
        (
            "box_labels_in_column",
            two(r#"{"name":"y","kind":"tensor","store":"column","dtype":"i64","role":"box_labels"}"#),
        ),
        (
            "box_attribute_of_one_size",
            two(r#"{"name":"y","kind":"tensor","store":"body","dtype":"f32","role":"box_attribute"}"#),
        ),
        ("keypoints_without_boxes", one(JOINTS)),
        ("polygons_without_boxes", one(OUTLINES)),
        ("two_fields_of_polygons", {
            let second = OUTLINES.replace("\"outlines\"", "\"others\"");
            one(&format!("{FOUND},{OUTLINES},{second}"))
        }),
        ("keypoints_without_visibility", one(&format!("{FOUND},{}", JOINTS.replace("[2,3]", "[2,2]")))),
        ("polygons_of_integers", one(&format!("{FOUND},{}", OUTLINES.replace("f32", "i32")))),
        ("keypoints_with_too_few_names", joints(r#"{"names":["a"],"swaps":[0,1]}"#)),
        ("keypoints_of_one_name", joints(r#"{"names":["a","a"],"swaps":[0,1]}"#)),
        ("keypoints_swap_outside", joints(r#"{"names":["a","b"],"swaps":[0,4294967295]}"#)),
        ("skeleton_outside", joints(r#"{"names":["a","b"],"swaps":[1,0],"skeleton":[[0,2]]}"#)),
        ("names_of_no_keypoints", tensor("u8", r#","keypoints":{"names":[],"swaps":[]}"#)),
        ("ragged_in_column", two(r#"{"name":"y","kind":"ragged","store":"column","dtype":"f32","shape":[4]}"#)),
        (
            "ragged_entry_of_2_64_bytes",
            one(r#"{"name":"x","kind":"ragged","store":"body","dtype":"f64","shape":[4294967296,4294967296]}"#),
        ),
        ("normalize_uneven", tensor("u8", r#","normalize":{"scale":1.0,"mean":[1.0],"std":[],"applied":false}"#)),
    ]
}

fn tables() -> Vec<(&'static str, File)> {
    let (file, explicit, columns) = (strided, || golden("encoded_images"), || golden("labels_multi_hot"));
    let longer = rebuild(&file(), |parts| parts[1].bytes.push(0));
    let crcs = rebuild(&columns(), |parts| parts[2].bytes.push(0));
    vec![
        ("number_of_chunks", with_section(file(), b"CHNK", 0, &[3])),
        ("chunk_entry_size", with_section(file(), b"CHNK", 8, &[8])),
        ("chunk_table_kind", with_section(file(), b"CHNK", 12, &[1])),
        ("chunk_table_length", longer),
        ("chunk_offset", with_section(explicit(), b"CHNK", 16, &[1])),
        ("chunk_offset_near_2_64", with_section(explicit(), b"CHNK", 16 + 32, &[0xff; 8])),
        ("chunk_of_2_gib", with_section(explicit(), b"CHNK", 24, &(1_u64 << 31).to_le_bytes())),
        ("chunk_over_the_limit", with_section(explicit(), b"CHNK", 24, &((1_u64 << 30) + 1).to_le_bytes())),
        ("chunk_length_reaches_next", with_section(explicit(), b"CHNK", 24, &5000_u64.to_le_bytes())),
        ("chunks_samples", with_section(explicit(), b"CHNK", 36, &[1])),
        ("chunk_entry_reserved", with_section(explicit(), b"CHNK", 47, &[1])),
        ("number_of_columns", with_section(columns(), b"COLS", 0, &[2])),
        ("column_directory_reserved", with_section(columns(), b"COLS", 7, &[1])),
        ("columns_field", with_section(columns(), b"COLS", 8, &[0])),
        ("columns_blocks", with_section(columns(), b"COLS", 12, &[0xff; 4])),
        ("columns_offset", with_section(columns(), b"COLS", 16, &[0xff; 8])),
        ("columns_bytes", with_section(columns(), b"COLS", 24, &[0xff; 8])),
        ("column_directory_length", crcs),
        ("column_checksum", {
            let at = place(get(&columns(), place(section(&columns(), b"COLS").unwrap().offset) + 16, 8));
            flipped(columns(), at)
        }),
        ("padding_before_column", {
            let at = place(get(&columns(), place(section(&columns(), b"COLS").unwrap().offset) + 16, 8)) - 1;
            with(columns(), at, &[1])
        }),
    ]
}

fn chunks() -> Vec<(&'static str, File)> {
    let items = || golden("bytes_string_json");
    let several = || golden("several_fields");
    let body = |file: &File| place(get(file, 88, 8));
    // The parts follow a directory of four entries. The first part has an item table for two samples.
    let part = |n: usize| body(&items()) + 32 * n;
    let table = body(&items()) + 128;
    let full = || golden("full_footer");
    vec![
        ("chunk_checksum", flipped(strided(), 8192 + 300)),
        ("sample_checksum", {
            let at = body(&full()) + 50;
            let value = full()[at] ^ 1;
            with(full(), at, &[value])
        }),
        ("padding_inside_a_strided_chunk", with(several(), body(&several()) + 4000, &[1])),
        ("part_offset", with(items(), part(1), &[1])),
        ("part_offset_near_2_64", with(items(), part(1), &[0xff; 8])),
        ("part_length_near_2_64", with(items(), part(3) + 8, &[0xff; 8])),
        ("part_of_tensors_too_long", with(items(), part(3) + 8, &[33])),
        ("part_of_tensors_hides_a_byte", {
            // The chunk and its last part grow by one byte of the padding after them.
            let longer = with_section(items(), b"CHNK", 24, &481_u64.to_le_bytes());
            with(longer, part(3) + 8, &[33])
        }),
        ("part_codec", with(items(), part(0) + 24, &[1])),
        ("part_filter", with(items(), part(0) + 25, &[1])),
        ("part_reserved", with(items(), part(0) + 31, &[1])),
        ("part_blocks_without_codec", with(items(), part(0) + 16, &[1])),
        ("part_block_samples_without_codec", with(items(), part(0) + 20, &[1])),
        ("item_table_starts_late", with(items(), table, &[1])),
        ("item_table_ends_early", with(items(), table + 16, &[0])),
        ("item_table_goes_backwards", with(items(), table + 8, &[0xff; 8])),
        ("padding_of_an_explicit_chunk", {
            let end = get(&items(), part(0) + 8, 8);
            with(items(), table + place(end), &[1])
        }),
        ("padding_between_chunks", with(items(), body(&items()) + 4095, &[1])),
        ("ragged_item_ends_inside_an_entry", {
            // The boundary between the boxes of samples 0 and 1. The table follows a directory of three entries.
            let ragged = golden("ragged");
            let part = place(get(&ragged, body(&ragged) + 32, 8));
            let table = body(&ragged) + part;
            with(ragged, table + 8, &[5])
        }),
    ]
}

fn blocks() -> Vec<(&'static str, File)> {
    let frames = || golden("zstd_no_filter");
    let text = || golden("zstd_text");
    let body = |file: &File| place(get(file, 88, 8));
    let entry = body(&frames());
    // The directory has one entry. The part starts at byte 64: two block offsets, one decoded length, the frame.
    let table = entry + 64;
    let payload = table + 24;
    let text_table = body(&text()) + 128;
    let more = |decoded: u64| with(text(), text_table + 16, &decoded.to_le_bytes());
    let decoded = get(&text(), text_table + 16, 8);
    vec![
        ("number_of_blocks", with(frames(), entry + 16, &[0xff; 4])),
        ("no_samples_per_block", with(frames(), entry + 20, &[0; 4])),
        ("block_table_starts_late", with(frames(), table, &[1])),
        ("block_table_ends_early", with(frames(), table + 8, &[1, 0])),
        ("decoded_length_of_tensors", with(frames(), table + 16, &[1])),
        ("decoded_length_too_small", more(decoded - 1)),
        ("decoded_length_too_large", more(decoded + 1)),
        ("decoded_length_near_2_64", more(u64::MAX)),
        ("decoded_length_of_1_gib", more(1 << 30)),
        ("frame_not_zstd", with(frames(), payload, b"junk")),
        ("frame_window_of_128_mib", with(frames(), payload + 4, &[0, 0x88])),
    ]
}

fn meta() -> Vec<(&'static str, File)> {
    let paths = || golden("paths_not_utf8");
    let replaced = |i: usize, json: &str| rebuild(&strided(), |parts| parts[i].bytes = json.into());
    let group = |raw: &[u8]| {
        rebuild(&paths(), |parts| {
            let packed = zstd::bulk::compress(raw, 1).unwrap();
            let path = &mut parts[6].bytes;
            path.truncate(24);
            path.extend_from_slice(&u64::try_from(raw.len()).unwrap().to_le_bytes());
            path.extend_from_slice(&packed);
        })
    };
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    vec![
        ("statistics_not_json", replaced(3, "{\"fields\":7}")),
        ("classes_not_json", replaced(4, "{}")),
        ("provenance_not_json", replaced(5, "[]")),
        ("provenance_nested_too_deep", replaced(5, &format!("{{\"a\":{}", "[".repeat(2000)))),
        ("number_of_paths", with_section(paths(), b"PATH", 0, &[5])),
        ("number_of_path_groups", with_section(paths(), b"PATH", 8, &[2])),
        ("path_group_starts_late", with_section(paths(), b"PATH", 16, &[1])),
        ("path_group_offset_near_2_64", with_section(paths(), b"PATH", 16, &[0xff; 8])),
        ("path_group_of_1_gib", with_section(paths(), b"PATH", 24, &(1_u64 << 30).to_le_bytes())),
        ("path_group_length_lies", with_section(paths(), b"PATH", 24, &[20])),
        ("path_offsets_go_backwards", group(&[words(&[0, 2, 1, 2, 2]).as_slice(), b"ab"].concat())),
        ("path_offsets_outside", group(&[words(&[0, 1, 9, 9, 2]).as_slice(), b"ab"].concat())),
        ("path_offsets_start_late", group(&[words(&[1, 1, 1, 1, 2]).as_slice(), b"ab"].concat())),
        ("path_offsets_end_early", group(&[words(&[0, 1, 1, 1, 1]).as_slice(), b"ab"].concat())),
        ("paths_section_empty", rebuild(&paths(), |parts| parts[6].bytes.clear())),
    ]
}
