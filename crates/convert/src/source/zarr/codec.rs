//! The codecs of a Zarr chunk, based on the zarrs crate. No codec may return more bytes than a chunk has.
//!
//! zarrs unpacks gzip, zlib, zstd and bz2 without a size limit, so these are unpacked here. The crate's fletcher32 differs from
//! numcodecs' if the number of bytes is odd, so fletcher32 is not supported.

use std::borrow::Cow;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use packds_system::to_u64;
use rayon::ThreadPoolBuilder;
use serde_json::{Value, json};
use zarrs::array::codec::{ShardingCodecConfiguration, ShardingIndexLocation, blosc_decompress_bytes, blosc_validate};
use zarrs::array::{
    ArrayToBytesCodecTraits, BytesRepresentation, BytesToBytesCodecTraits, ChunkShape, Codec, CodecChain, CodecOptions,
    DataType, FillValue,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v2::MetadataV2;
use zarrs::metadata::v3::MetadataV3;

/// The supported codecs, for error messages.
const KNOWN: &str = "bytes, transpose, sharding_indexed, vlen-utf8, vlen-bytes, gzip, zlib, zstd, bz2, \
                     blosc, shuffle, crc32c and adler32";

/// A codec from bytes to bytes.
#[derive(Debug)]
enum Packing {
    Gzip,
    Zlib,
    Zstd,
    Bz2,
    Blosc,
    /// Checksums and shuffling, which never return more bytes than they are given.
    Other(Arc<dyn BytesToBytesCodecTraits>),
}

/// All codecs of a chunk.
#[derive(Debug)]
pub(super) struct Chain {
    /// The codecs from elements to bytes. `None` for variable-length items, which are stored as a count, then the
    /// length and bytes of each item.
    array: Option<CodecChain>,
    /// The codecs from bytes to bytes, with their names for errors.
    packing: Vec<(&'static str, Packing)>,
}

/// How the inner chunks of a shard are stored.
#[derive(Debug)]
pub(super) struct Sharding {
    /// Elements of an inner chunk in each dimension.
    pub(super) chunk: ChunkShape,
    pub(super) index: Chain,
    /// Whether a CRC32C follows the index.
    pub(super) index_crc: bool,
    pub(super) index_at_end: bool,
}

impl Chain {
    /// Parses the codecs of version 3. Returns the codecs of the chunks that are unpacked individually, and how these
    /// chunks are sharded into files.
    pub(super) fn version3(codecs: &[MetadataV3], dims: usize) -> Result<(Self, Option<Sharding>), String> {
        let shards = match codecs {
            [codec] if codec.name() == "sharding_indexed" => {
                codec.to_typed_configuration().map_err(|e| e.to_string())?
            }
            _ => return Ok((Self::new(codecs, dims)?, None)),
        };
        let ShardingCodecConfiguration::V1(shards) = shards else {
            return Err("unsupported version of sharding_indexed".to_owned());
        };
        let names: Vec<&str> = shards.index_codecs.iter().map(MetadataV3::name).collect();
        let index_crc = match names.as_slice() {
            ["bytes" | "endian"] => false,
            ["bytes" | "endian", "crc32c"] => true,
            names => return Err(format!("unsupported codecs for the index of a shard: {}", names.join(", "))),
        };
        let sharding = Sharding {
            chunk: shards.chunk_shape,
            index: Self::new(&shards.index_codecs, dims + 1)?,
            index_crc,
            index_at_end: shards.index_location == ShardingIndexLocation::End,
        };
        Ok((Self::new(&shards.codecs, dims)?, Some(sharding)))
    }

    /// Parses the codecs of version 2: `array` from elements to bytes, then the filters and the compressor.
    pub(super) fn version2(array: &[MetadataV3], dims: usize, then: &[MetadataV2]) -> Result<Self, String> {
        let mut chain = Self::new(array, dims)?;
        for metadata in then {
            match metadata.id() {
                "vlen-utf8" | "vlen-bytes" if chain.packing.is_empty() => chain.array = None,
                name => chain.packing.push(packing(name, Some(metadata.configuration()))?),
            }
        }
        Ok(chain)
    }

    fn new(codecs: &[MetadataV3], dims: usize) -> Result<Self, String> {
        let (mut to_array, mut to_bytes, mut packed) = (Vec::new(), None, Vec::new());
        for metadata in codecs {
            let name = metadata.name();
            match name {
                "vlen-utf8" | "vlen-bytes" if to_bytes.is_none() => to_bytes = Some(None),
                "transpose" | "bytes" | "endian" if to_bytes.is_none() => {
                    match Codec::from_metadata(&in_numbers(metadata, dims)?).map_err(|e| e.to_string())? {
                        Codec::ArrayToArray(codec) => to_array.push(codec),
                        Codec::ArrayToBytes(codec) => to_bytes = Some(Some(codec)),
                        Codec::BytesToBytes(_) => return Err(unknown(name)),
                    }
                }
                "sharding_indexed" => return Err("sharding_indexed cannot be combined with other codecs".to_owned()),
                _ if to_bytes.is_none() => return Err(unknown(name)),
                _ => packed.push(packing(name, metadata.configuration())?),
            }
        }
        let to_bytes = to_bytes.ok_or("no codec converts the elements to bytes")?;
        Ok(Self { array: to_bytes.map(|codec| CodecChain::new(to_array, codec, Vec::new())), packing: packed })
    }

    /// Whether chunks contain variable-length items.
    pub(super) fn is_variable(&self) -> bool {
        self.array.is_none()
    }

    /// Decodes a stored chunk to at most `most` bytes: little-endian elements in C order, or framed items.
    pub(super) fn decode(
        &self,
        stored: Vec<u8>,
        shape: &ChunkShape,
        (data_type, fill): (&DataType, &FillValue),
        most: usize,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = stored;
        // Checksums and headers make intermediate data slightly longer than the chunk.
        let limit = most.saturating_add(most / 64).saturating_add(1024);
        for (name, packing) in self.packing.iter().rev() {
            let damaged = |e: String| format!("the {name} data is damaged: {e}");
            bytes = packing.decode(bytes, limit).map_err(damaged)?;
        }
        let Some(array) = &self.array else {
            return Ok(bytes);
        };
        // zarrs returns elements in the machine's byte order, which is little-endian.
        let elements = array.decode(Cow::Owned(bytes), shape, data_type, fill, &options()?);
        let elements = elements.and_then(|elements| elements.into_fixed().map_err(Into::into));
        elements.map(Cow::into_owned).map_err(|e| e.to_string())
    }
}

impl Packing {
    fn decode(&self, bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
        let mut reader: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes.as_slice())),
            Self::Zlib => Box::new(flate2::read::ZlibDecoder::new(bytes.as_slice())),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes.as_slice()).map_err(|e| e.to_string())?),
            Self::Bz2 => Box::new(bzip2::read::MultiBzDecoder::new(bytes.as_slice())),
            Self::Blosc => {
                let header = "expected a Blosc header that fits the data";
                let size = blosc_validate(&bytes).filter(|size| *size <= limit);
                let size = size.ok_or_else(|| format!("{header}, and at most {limit} bytes in a chunk"))?;
                return blosc_decompress_bytes(&bytes, size, 1).map_err(|e| e.to_string());
            }
            // zarrs' shuffling loops forever on empty data with large elements.
            Self::Other(_) if bytes.is_empty() => return Err("expected bytes, found none".to_owned()),
            Self::Other(codec) => {
                let size = BytesRepresentation::UnboundedSize;
                let bytes = codec.decode(Cow::Owned(bytes), &size, &options()?);
                return bytes.map(Cow::into_owned).map_err(|e| e.to_string());
            }
        };
        let mut out = Vec::new();
        let most = to_u64(limit).saturating_add(1);
        reader.by_ref().take(most).read_to_end(&mut out).map_err(|e| e.to_string())?;
        if out.len() > limit {
            return Err(format!("expected at most {limit} bytes in a chunk, found more"));
        }
        Ok(out)
    }
}

/// The bytes-to-bytes codec that has this name in version 2 or 3.
fn packing(name: &str, configuration: Option<&Configuration>) -> Result<(&'static str, Packing), String> {
    let short = name.strip_prefix("numcodecs.").unwrap_or(name);
    let (shown, in_zarrs) = match short {
        "gzip" => return Ok(("gzip", Packing::Gzip)),
        "zlib" => return Ok(("zlib", Packing::Zlib)),
        "zstd" => return Ok(("zstd", Packing::Zstd)),
        "bz2" => return Ok(("bz2", Packing::Bz2)),
        "blosc" => return Ok(("blosc", Packing::Blosc)),
        "crc32c" => ("CRC32C", "crc32c"),
        "adler32" => ("Adler-32", "numcodecs.adler32"),
        "shuffle" => ("shuffled", "numcodecs.shuffle"),
        _ => return Err(unknown(name)),
    };
    let metadata = MetadataV3::new_with_configuration(in_zarrs, configuration.cloned().unwrap_or_default());
    match Codec::from_metadata(&metadata).map_err(|e| e.to_string())? {
        Codec::BytesToBytes(codec) => Ok((shown, Packing::Other(codec))),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    format!("unsupported codec '{name}' (supported: {KNOWN})")
}

/// Replaces a transposition order given as C or F, as by older writers, with a list of dimensions.
fn in_numbers(metadata: &MetadataV3, dims: usize) -> Result<MetadataV3, String> {
    let order = metadata.configuration().and_then(|options| options.get("order")?.as_str());
    match order {
        Some("C") => extension("transpose", json!({"order": (0..dims).collect::<Vec<_>>()})),
        Some("F") => extension("transpose", json!({"order": (0..dims).rev().collect::<Vec<_>>()})),
        _ => Ok(metadata.clone()),
    }
}

/// The metadata of a codec or another named extension.
pub(super) fn extension(name: &str, configuration: Value) -> Result<MetadataV3, String> {
    serde_json::from_value(json!({"name": name, "configuration": configuration})).map_err(|e| e.to_string())
}

/// Options that keep zarrs from starting threads. By default, it starts rayon's global thread pool, and panics if that fails.
fn options() -> Result<CodecOptions, String> {
    static OPTIONS: OnceLock<Result<CodecOptions, String>> = OnceLock::new();
    let make = || {
        let pool = || ThreadPoolBuilder::new().num_threads(1);
        let pool = pool().build().or_else(|_| pool().use_current_thread().build());
        let options = pool.map_err(|e| e.to_string())?.install(CodecOptions::default);
        Ok(options.with_concurrent_target(1))
    };
    OPTIONS.get_or_init(make).clone()
}
