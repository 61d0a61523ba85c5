//! The header: the first 4096 bytes. See docs/reference/format.md, "Header".

use crate::checksum::crc32c;
use crate::codec;
use crate::le;
use crate::limits::MAX_CHUNK_SAMPLES;
use crate::{FieldKind, FormatError, Schema};

/// The first eight bytes of every pack. As in PNG, they reveal damage by text-mode and 7-bit transfers.
pub const MAGIC: [u8; 8] = [0x89, b'P', b'A', b'C', b'K', 0x0d, 0x0a, 0x1a];
/// The major version. Readers reject any other.
pub const MAJOR: u16 = 1;
/// The minor version. Later minor versions only add parts that older readers may ignore.
pub const MINOR: u16 = 0;
/// Length of the header.
pub const HEADER_BYTES: u64 = 4096;
/// Required feature: the chunk table contains the location of each chunk.
pub const FEATURE_EXPLICIT_CHUNKS: u64 = 1;
/// Required feature: a field is ragged.
pub const FEATURE_RAGGED: u64 = 8;
/// All required features that this crate supports.
const KNOWN_FEATURES: u64 = FEATURE_EXPLICIT_CHUNKS | FEATURE_RAGGED | codec::FEATURES;

const RESERVED_FROM: usize = 116;
const CRC_AT: usize = 4092;

/// A 128-bit identifier, shown as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The header's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Minor version of the writer.
    pub minor: u16,
    /// Features that readers must support.
    pub required_features: u64,
    /// Features that readers may ignore.
    pub ignorable_features: u64,
    /// Base-2 logarithm of the alignment of the body, 12 to 21.
    pub align_log2: u8,
    /// Samples per chunk. The last chunk may have fewer.
    pub chunk_samples: u32,
    /// The pack's id. The trailer repeats it.
    pub pack_uuid: Uuid,
    /// The id of the dataset that the pack belongs to.
    pub dataset_uuid: Uuid,
    /// Length of the schema, which starts at byte 4096.
    pub schema_len: u64,
    /// Where the first chunk starts.
    pub data_off: u64,
    /// Bytes per sample of the first body field in a strided body, otherwise 0.
    pub sample_stride: u64,
    /// Distance from the start of a chunk to the start of the next in a strided body, otherwise 0.
    pub chunk_stride: u64,
    /// CRC32C of the schema.
    pub schema_crc32c: u32,
}

impl Header {
    /// The 4096 bytes in the file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        le::put(&mut bytes, 0, &MAGIC);
        le::put(&mut bytes, 8, &MAJOR.to_le_bytes());
        le::put(&mut bytes, 10, &self.minor.to_le_bytes());
        le::put(&mut bytes, 12, &4096_u32.to_le_bytes());
        le::put(&mut bytes, 16, &self.required_features.to_le_bytes());
        le::put(&mut bytes, 24, &self.ignorable_features.to_le_bytes());
        le::put(&mut bytes, 32, &[self.align_log2, 1]);
        le::put(&mut bytes, 36, &self.chunk_samples.to_le_bytes());
        le::put(&mut bytes, 40, &self.pack_uuid.0);
        le::put(&mut bytes, 56, &self.dataset_uuid.0);
        le::put(&mut bytes, 72, &HEADER_BYTES.to_le_bytes());
        le::put(&mut bytes, 80, &self.schema_len.to_le_bytes());
        le::put(&mut bytes, 88, &self.data_off.to_le_bytes());
        le::put(&mut bytes, 96, &self.sample_stride.to_le_bytes());
        le::put(&mut bytes, 104, &self.chunk_stride.to_le_bytes());
        le::put(&mut bytes, 112, &self.schema_crc32c.to_le_bytes());
        let crc = crc32c(bytes.get(..CRC_AT).unwrap_or(&[]));
        le::put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Parses the header of a file of `file_len` bytes. Checks magic and version first, so that other file types and
    /// other versions produce their own errors.
    pub(crate) fn parse(bytes: &[u8], file_len: u64) -> Result<Self, FormatError> {
        let short = || FormatError::TooShort { expected: HEADER_BYTES + 64, found: file_len };
        let found = le::array_at::<8>(bytes, 0).ok_or_else(short)?;
        if found != MAGIC {
            return Err(FormatError::BadMagic { expected: MAGIC, found });
        }
        let bytes = bytes.get(..4096).ok_or_else(short)?;
        let u64_at = |offset| le::u64_at(bytes, offset).unwrap_or(0);
        let u32_at = |offset| le::u32_at(bytes, offset).unwrap_or(0);
        let u16_at = |offset| le::u16_at(bytes, offset).unwrap_or(0);
        if u16_at(8) != MAJOR {
            return Err(FormatError::UnsupportedVersion { expected: MAJOR, found: u16_at(8) });
        }
        FormatError::check_crc("header", 0, u32_at(CRC_AT), crc32c(bytes.get(..CRC_AT).unwrap_or(&[])))?;
        let header = Self {
            minor: u16_at(10),
            required_features: u64_at(16),
            ignorable_features: u64_at(24),
            align_log2: bytes.get(32).copied().unwrap_or(0),
            chunk_samples: u32_at(36),
            pack_uuid: Uuid(le::array_at(bytes, 40).unwrap_or_default()),
            dataset_uuid: Uuid(le::array_at(bytes, 56).unwrap_or_default()),
            schema_len: u64_at(80),
            data_off: u64_at(88),
            sample_stride: u64_at(96),
            chunk_stride: u64_at(104),
            schema_crc32c: u32_at(112),
        };
        let unknown = header.required_features & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(FormatError::UnknownFeatures { unknown });
        }
        header.check_values(bytes)?;
        Ok(header)
    }

    /// Checks the fields that do not depend on the schema, and the reserved bytes.
    fn check_values(&self, bytes: &[u8]) -> Result<(), FormatError> {
        let u64_at = |offset| le::u64_at(bytes, offset).unwrap_or(0);
        let u32_at = |offset| le::u32_at(bytes, offset).unwrap_or(0);
        let value = |what, at, expected: &str, ok: bool, found: u64| {
            if ok { Ok(()) } else { Err(FormatError::bad_value(what, at, expected, found)) }
        };
        value("header length", 12, "4096", u32_at(12) == 4096, u64::from(u32_at(12)))?;
        let kind = bytes.get(33).copied().unwrap_or(0);
        value("checksum kind", 33, "1 (CRC32C)", kind == 1, u64::from(kind))?;
        value("alignment", 32, "2^12 to 2^21", (12..=21).contains(&self.align_log2), u64::from(self.align_log2))?;
        let n = self.chunk_samples;
        value("samples per chunk", 36, "1 to 2^20", (1..=MAX_CHUNK_SAMPLES).contains(&n), u64::from(n))?;
        value("schema offset", 72, "4096", u64_at(72) == HEADER_BYTES, u64_at(72))?;
        le::check_zero("header, reserved", bytes.get(34..36).unwrap_or(&[]), 34)?;
        le::check_zero("header, reserved", bytes.get(RESERVED_FROM..CRC_AT).unwrap_or(&[]), 116)
    }

    /// Checks the fields that follow from the schema.
    pub(crate) fn check_against(&self, schema: &Schema) -> Result<(), FormatError> {
        let check = FormatError::check_value::<u64>;
        check("required features", 16, Self::features_of(schema), self.required_features)?;
        let (sample_stride, chunk_stride) = Self::strides_of(schema, self.chunk_samples)?;
        check("sample stride", 96, sample_stride, self.sample_stride)?;
        check("chunk stride", 104, chunk_stride, self.chunk_stride)?;
        let data_off = Self::data_off_of(self.schema_len, self.align_log2);
        check("data offset", 88, data_off.unwrap_or(0), self.data_off)
    }

    /// The features that a schema requires.
    pub(crate) fn features_of(schema: &Schema) -> u64 {
        let explicit = if schema.is_strided() { 0 } else { FEATURE_EXPLICIT_CHUNKS };
        schema.body().fold(explicit, |features, (_, field)| {
            let ragged = if field.kind == FieldKind::Ragged { FEATURE_RAGGED } else { 0 };
            features | field.codec.feature() | ragged
        })
    }

    /// `(sample_stride, chunk_stride)` of a schema. Both are 0 unless the body is strided.
    pub(crate) fn strides_of(schema: &Schema, chunk_samples: u32) -> Result<(u64, u64), FormatError> {
        if !schema.is_strided() {
            return Ok((0, 0));
        }
        let first = schema.body().next().and_then(|(_, f)| f.item_bytes()).unwrap_or(0);
        let chunk = crate::chunk::strided_parts(schema, chunk_samples)?.1;
        Ok((first, chunk))
    }

    /// Where the body starts after a schema of this length.
    pub(crate) fn data_off_of(schema_len: u64, align_log2: u8) -> Option<u64> {
        le::align_up(HEADER_BYTES.checked_add(schema_len)?, 1_u64.checked_shl(u32::from(align_log2))?)
    }
}
