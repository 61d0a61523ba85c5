//! The codecs of a Zarr chunk.
//!
//! `array` reads the rest of the metadata. No codec returns more bytes than a chunk has.

use packds_system::to_u64;
use std::borrow::Cow;
use std::io::Read;

use serde_json::{Map, Value};
use zarrs::array::codec::{BloscCodec, BloscCompressor, BloscShuffleMode};
use zarrs::array::{BytesRepresentation, BytesToBytesCodecTraits, CodecOptions};

/// Codecs from bytes to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zlib,
    Zstd,
    Blosc,
    Crc32c,
}

/// Codecs from elements to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToBytes {
    /// Unchanged, `big`-endian or little-endian.
    Plain { big: bool },
    /// A count, then the length and bytes of each item.
    Variable,
    /// Several inner chunks, with an index of their locations.
    Shard(Box<Sharding>),
}

/// Inner chunks in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sharding {
    /// Elements of an inner chunk in each dimension.
    pub(super) chunk: Vec<u64>,
    pub(super) chain: Chain,
    pub(super) index_at_end: bool,
    /// Whether a CRC32C follows the index.
    pub(super) index_crc: bool,
}

/// All codecs of a chunk, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    /// The array dimension for each dimension of the chunk.
    pub(super) transpose: Option<Vec<usize>>,
    pub(super) to_bytes: ToBytes,
    pub(super) packing: Vec<Packing>,
}

impl Chain {
    /// Parses version 3's list of codecs.
    pub(super) fn parse(codecs: &Value, dims: usize, nested: bool) -> Result<Self, String> {
        let mut transpose = None;
        let mut to_bytes = None;
        let mut packing = Vec::new();
        let none = Map::new();
        for codec in codecs.as_array().ok_or("expected a list of codecs")? {
            let name = codec.as_str().or_else(|| codec.get("name")?.as_str());
            let options = codec.get("configuration").and_then(Value::as_object);
            let options = options.unwrap_or(&none);
            match name.unwrap_or_default() {
                "transpose" if to_bytes.is_none() && transpose.is_none() => {
                    transpose = Some(order(options.get("order"), dims)?);
                }
                "bytes" | "endian" if to_bytes.is_none() => {
                    let endian = options.get("endian").and_then(Value::as_str);
                    let big = endian == Some("big");
                    to_bytes = Some(ToBytes::Plain { big });
                }
                "vlen-utf8" | "vlen-bytes" if to_bytes.is_none() => {
                    to_bytes = Some(ToBytes::Variable);
                }
                "sharding_indexed" if to_bytes.is_none() && !nested => {
                    let sharding = Sharding::parse(options, dims)?;
                    to_bytes = Some(ToBytes::Shard(Box::new(sharding)));
                }
                name if to_bytes.is_some() => packing.push(Packing::named(name)?),
                name => return Err(unknown(name)),
            }
        }
        Ok(Self {
            transpose,
            to_bytes: to_bytes.ok_or("no codec makes bytes of the elements")?,
            packing,
        })
    }

    /// Decodes a stored chunk of `shape` to little-endian bytes in C order. For [`ToBytes::Variable`], returns the framed items. At
    /// most `most` bytes.
    pub(super) fn decode(
        &self,
        stored: Vec<u8>,
        shape: &[u64],
        element: usize,
        most: usize,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = stored;
        // Checksums make intermediate data slightly longer than the chunk.
        let limit = most.saturating_add(64);
        for packing in self.packing.iter().rev() {
            bytes = packing.decode(bytes, limit)?;
        }
        if self.to_bytes == ToBytes::Variable {
            return Ok(bytes);
        }
        if bytes.len() != most {
            return Err(format!("expected {most} bytes, found {}", bytes.len()));
        }
        if self.to_bytes == (ToBytes::Plain { big: true }) && element > 1 {
            bytes.chunks_exact_mut(element).for_each(<[u8]>::reverse);
        }
        match &self.transpose {
            Some(order) => transposed(&bytes, shape, order, element),
            None => Ok(bytes),
        }
    }
}

impl Sharding {
    fn parse(options: &Map<String, Value>, dims: usize) -> Result<Self, String> {
        let chunk = options.get("chunk_shape").and_then(Value::as_array);
        let chunk = chunk.ok_or("sharding_indexed without chunk_shape")?;
        let chunk: Option<Vec<u64>> = chunk.iter().map(Value::as_u64).collect();
        let chunk = chunk.filter(|c| c.len() == dims && !c.contains(&0));
        let codecs = options.get("codecs").unwrap_or(&Value::Null);
        let index = options.get("index_codecs").and_then(Value::as_array);
        let names = index.into_iter().flatten().map(|codec| {
            let name = codec.as_str().or_else(|| codec.get("name")?.as_str());
            name.unwrap_or_default()
        });
        let names: Vec<&str> = names.collect();
        let index_crc = match names.as_slice() {
            ["bytes", "crc32c"] => true,
            ["bytes"] => false,
            names => {
                return Err(format!(
                    "the codecs {} for the index of a shard",
                    names.join(", ")
                ));
            }
        };
        let place = options.get("index_location").and_then(Value::as_str);
        Ok(Self {
            chunk: chunk.ok_or("a chunk_shape of shards that does not fit the array")?,
            chain: Chain::parse(codecs, dims, true)?,
            index_at_end: place != Some("start"),
            index_crc,
        })
    }
}

impl Packing {
    /// The codec with this name in either version.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        match name {
            "gzip" => Ok(Self::Gzip),
            "zlib" | "numcodecs.zlib" => Ok(Self::Zlib),
            "zstd" | "numcodecs.zstd" => Ok(Self::Zstd),
            "blosc" | "numcodecs.blosc" => Ok(Self::Blosc),
            "crc32c" => Ok(Self::Crc32c),
            name => Err(unknown(name)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Blosc => "blosc",
            Self::Crc32c => "crc32c",
        }
    }

    fn decode(self, bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
        let damaged = |e: std::io::Error| format!("the {} data are damaged: {e}", self.name());
        let most = to_u64(limit).saturating_add(1);
        let mut out = Vec::new();
        match self {
            Self::Gzip => {
                let data = flate2::read::MultiGzDecoder::new(bytes.as_slice());
                data.take(most).read_to_end(&mut out).map_err(damaged)?;
            }
            Self::Zlib => {
                let data = flate2::read::ZlibDecoder::new(bytes.as_slice());
                data.take(most).read_to_end(&mut out).map_err(damaged)?;
            }
            Self::Zstd => {
                let data = zstd::stream::read::Decoder::new(bytes.as_slice()).map_err(damaged)?;
                data.take(most).read_to_end(&mut out).map_err(damaged)?;
            }
            Self::Blosc => return unblosc(bytes, limit),
            Self::Crc32c => return unchecked(bytes),
        }
        if out.len() > limit {
            return Err(format!(
                "expected at most {limit} bytes in a chunk, found more"
            ));
        }
        Ok(out)
    }
}

fn unknown(name: &str) -> String {
    format!(
        "the codec '{name}'; bytes, transpose, sharding_indexed, vlen-utf8, vlen-bytes, gzip, zlib, zstd, blosc and crc32c are known"
    )
}

fn order(order: Option<&Value>, dims: usize) -> Result<Vec<usize>, String> {
    if let Some("C" | "F") = order.and_then(Value::as_str) {
        let reversed = order.and_then(Value::as_str) == Some("F");
        return Ok(if reversed {
            (0..dims).rev().collect()
        } else {
            (0..dims).collect()
        });
    }
    let list = order.and_then(Value::as_array).into_iter().flatten();
    let list = list.map(|n| usize::try_from(n.as_u64()?).ok());
    let list = list.collect::<Option<Vec<usize>>>().unwrap_or_default();
    let mut sorted = list.clone();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..dims) {
        Ok(list)
    } else {
        Err(format!("the order {list:?} of {dims} dimensions"))
    }
}

/// Restores the dimension order of a transposed array of `shape`.
fn transposed(
    bytes: &[u8],
    shape: &[u64],
    order: &[usize],
    element: usize,
) -> Result<Vec<u8>, String> {
    let bad = || "a chunk whose dimensions cannot be put in order".to_owned();
    let dims: Option<Vec<usize>> = shape.iter().map(|n| usize::try_from(*n).ok()).collect();
    let dims = dims.ok_or_else(bad)?;
    // The stored distance between neighbours along each dimension.
    let mut strides = vec![0_usize; dims.len()];
    let mut stride = element;
    for &dim in order.iter().rev() {
        *strides.get_mut(dim).ok_or_else(bad)? = stride;
        stride = stride
            .checked_mul(*dims.get(dim).ok_or_else(bad)?)
            .ok_or_else(bad)?;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut place = vec![0_usize; dims.len()];
    let mut at = 0_usize;
    while out.len() < bytes.len() {
        let from = bytes.get(at..at + element).ok_or_else(bad)?;
        out.extend_from_slice(from);
        for dim in (0..dims.len()).rev() {
            let (Some(n), Some(stride), Some(size)) =
                (place.get_mut(dim), strides.get(dim), dims.get(dim))
            else {
                return Err(bad());
            };
            *n += 1;
            at += stride;
            if *n < *size {
                break;
            }
            at -= stride * size;
            *n = 0;
        }
    }
    Ok(out)
}

fn unblosc(bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
    // Version, format, flags, element size, then the unpacked size, block size and stored size.
    let field = |at: usize| {
        let field = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(field)).ok()
    };
    let (Some(unpacked), Some(stored)) = (field(4), field(12)) else {
        return Err("expected a Blosc header of 16 bytes, found less".to_owned());
    };
    if unpacked > limit || stored != bytes.len() {
        return Err(format!(
            "expected Blosc data of {} bytes that unpack to at most {limit}, found {stored} and {unpacked}",
            bytes.len()
        ));
    }
    let shape = BytesRepresentation::UnboundedSize;
    let unpacked = blosc()?
        .decode(Cow::Owned(bytes), &shape, &CodecOptions::default())
        .map_err(|e| format!("the Blosc data are damaged: {e}"))?;
    Ok(unpacked.into_owned())
}

/// The codec. It reads everything except the element size from the data.
fn blosc() -> Result<BloscCodec, String> {
    let level = 5_u8.try_into();
    let level = level.map_err(|_| "blosc's level".to_owned())?;
    let shuffle = BloscShuffleMode::NoShuffle;
    BloscCodec::new(BloscCompressor::LZ4, level, None, shuffle, None).map_err(|e| e.to_string())
}

/// The bytes without their CRC32C, if it matches.
pub(super) fn unchecked(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let at = bytes.len().checked_sub(4);
    let stored = bytes.split_off(at.ok_or("expected a CRC32C, found less than 4 bytes")?);
    let stored = stored.try_into().map(u32::from_le_bytes).unwrap_or(0);
    let found = packds_format::crc32c(&bytes);
    if stored == found {
        Ok(bytes)
    } else {
        Err(format!(
            "expected the CRC32C {stored:08x}, found {found:08x}"
        ))
    }
}
