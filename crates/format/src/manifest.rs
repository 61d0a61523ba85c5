//! The manifest of a set: the shards, and what describes all of them. See docs/reference/format.md, "Sets".

use packds_system::{counted, to_u64};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

use crate::checksum::crc32c;
use crate::file::PackFile;
use crate::geometry::PackGeometry;
use crate::header::Uuid;
use crate::le::len_u64;
use crate::{Classes, FormatError, Limits, Schema, Stats};

/// The name of the format in a manifest.
const FORMAT: &str = "packds set";
/// The major version of manifests. Readers reject any other.
const MAJOR: u16 = 1;
/// What precedes the checksum at the end of a manifest.
const BEFORE_CRC: &[u8] = b",\"crc32c\":\"";
/// What follows the checksum.
const AFTER_CRC: &[u8] = b"\"}\n";
/// Number of hexadecimal digits of the checksum.
const CRC_DIGITS: usize = 8;

/// One version of a set of packs.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The number of this version, from 1.
    pub version: u64,
    /// The `pack_uuid` of the version that this one follows. `None` for the first.
    pub parent: Option<Uuid>,
    /// The id of this version. It follows from the shards.
    pub pack_uuid: Uuid,
    /// The id of the dataset.
    pub dataset_uuid: Uuid,
    /// Samples per chunk. The last chunk of each shard may have fewer.
    pub chunk_samples: u32,
    /// The fields of a sample. Every shard has the same.
    pub schema: Schema,
    /// Whether the shards store the paths of their samples.
    pub has_paths: bool,
    /// The shards, in the order of their samples. There is at least one.
    pub shards: Vec<ShardEntry>,
    /// Statistics of all samples.
    pub stats: Stats,
    /// Class names, and counts over all samples.
    pub classes: Vec<Classes>,
    /// Where the samples come from.
    pub provenance: Map<String, Value>,
}

/// A shard of a set. If the file differs from this entry, it is another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardEntry {
    /// Its path in the folder of the set, with `/` between folders.
    pub path: String,
    /// Number of samples, at least 1.
    pub n_samples: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The pack's id.
    pub pack_uuid: Uuid,
    /// CRC32C of the footer.
    pub footer_crc32c: u32,
    /// Bytes from the start of the first chunk to the end of the last.
    pub body_bytes: u64,
    /// Stored size of the largest chunk in bytes.
    pub largest_chunk: u64,
    /// What the shard was made from, if it is not a copy. It identifies a pack, so that none is added twice.
    pub origin: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ManifestJson {
    format: String,
    major: u16,
    version: u64,
    parent: Option<String>,
    pack_uuid: String,
    dataset_uuid: String,
    n_samples: u64,
    chunk_samples: u32,
    has_paths: bool,
    schema: Value,
    shards: Vec<ShardJson>,
    stats: Stats,
    classes: Vec<Classes>,
    provenance: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct ShardJson {
    path: String,
    n_samples: u64,
    bytes: u64,
    pack_uuid: String,
    footer_crc32c: String,
    body_bytes: u64,
    largest_chunk: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

/// How the names of sets end.
pub const SET_EXTENSION: &str = ".packs";

/// The name of the set and the number of the version that a name such as `photos.packs@3` means.
#[must_use]
pub fn version_of_set(name: &str) -> Option<(&str, u64)> {
    let (set, version) = name.rsplit_once('@')?;
    set.ends_with(SET_EXTENSION).then_some(())?;
    Some((set, version.parse().ok()?))
}

/// The file name of the manifest of a version.
#[must_use]
pub fn manifest_name(version: u64) -> String {
    format!("manifest-{version:08}.json")
}

/// The version whose manifest has this file name.
#[must_use]
pub fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("manifest-")?.strip_suffix(".json")?;
    let version = digits.parse().ok()?;
    (manifest_name(version) == name).then_some(version)
}

impl Manifest {
    /// Parses and validates a manifest.
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong.
    pub fn parse(bytes: &[u8], limits: Limits) -> Result<Self, FormatError> {
        let object = checked(bytes)?;
        let json: ManifestJson = serde_json::from_slice(&object).map_err(FormatError::json("manifest"))?;
        if json.format != FORMAT {
            return Err(bad(format!("expected the format '{FORMAT}', found '{}'", json.format.escape_debug())));
        }
        if json.major != MAJOR {
            return Err(FormatError::UnsupportedVersion { expected: MAJOR, found: json.major });
        }
        let schema = serde_json::to_vec(&json.schema).map_err(FormatError::json("schema"))?;
        FormatError::check_limit("schema", limits.json_bytes, len_u64(&schema))?;
        let shards = json.shards.into_iter().map(ShardEntry::of_json).collect::<Result<Vec<_>, _>>()?;
        let manifest = Self {
            version: json.version,
            parent: json.parent.as_deref().map(|text| uuid("parent", text)).transpose()?,
            pack_uuid: uuid("pack_uuid", &json.pack_uuid)?,
            dataset_uuid: uuid("dataset_uuid", &json.dataset_uuid)?,
            chunk_samples: json.chunk_samples,
            schema: Schema::from_json(&schema)?,
            has_paths: json.has_paths,
            shards,
            stats: json.stats,
            classes: json.classes,
            provenance: json.provenance,
        };
        let found = manifest.checked()?.n_samples();
        if found != json.n_samples {
            let expected = counted(json.n_samples, "sample");
            return Err(bad(format!("expected {expected}, but the shards have {found}")));
        }
        Ok(manifest)
    }

    /// The bytes of the file. The same manifest always gives the same bytes.
    ///
    /// # Errors
    /// The reasons for which [`parse`](Self::parse) would reject the bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let json = ManifestJson {
            format: FORMAT.to_owned(),
            major: MAJOR,
            version: self.version,
            parent: self.parent.map(|uuid| uuid.to_string()),
            pack_uuid: self.pack_uuid.to_string(),
            dataset_uuid: self.dataset_uuid.to_string(),
            n_samples: self.checked()?.n_samples(),
            chunk_samples: self.chunk_samples,
            has_paths: self.has_paths,
            schema: serde_json::from_slice(&self.schema.to_json()?).map_err(FormatError::json("schema"))?,
            shards: self.shards.iter().map(ShardEntry::to_json).collect(),
            stats: self.stats.clone(),
            classes: self.classes.clone(),
            provenance: self.provenance.clone(),
        };
        let mut bytes = serde_json::to_vec(&json).map_err(FormatError::json("manifest"))?;
        bytes.pop();
        let crc = crc32c(&bytes);
        bytes.extend_from_slice(BEFORE_CRC);
        bytes.extend_from_slice(format!("{crc:08x}").as_bytes());
        bytes.extend_from_slice(AFTER_CRC);
        // JSON turns NaN and infinity into null, which readers reject. Report such values now.
        serde_json::from_slice::<ManifestJson>(&bytes).map_err(FormatError::json("statistics"))?;
        Ok(bytes)
    }

    /// The division of the samples into chunks, if the values agree with each other.
    pub(crate) fn checked(&self) -> Result<PackGeometry, FormatError> {
        if self.version == 0 {
            return Err(bad("versions are counted from 1, found version 0".to_owned()));
        }
        if self.shards.is_empty() {
            return Err(bad("expected at least one shard, found none".to_owned()));
        }
        let mut seen = BTreeSet::new();
        for shard in &self.shards {
            if !is_inside(&shard.path) {
                return Err(bad(format!(
                    "shard '{}': expected a path inside the folder of the set, without '.' and '..'",
                    shard.path.escape_debug()
                )));
            }
            if !seen.insert(&shard.path) {
                return Err(bad(format!("shard '{}' is listed twice", shard.path)));
            }
            if shard.n_samples == 0 {
                return Err(bad(format!("shard '{}': expected at least 1 sample, found 0", shard.path)));
            }
        }
        PackGeometry::of_shards(self.shards.iter().map(|shard| shard.n_samples), self.chunk_samples)
    }
}

impl ShardEntry {
    /// The entry of a pack file at this path.
    ///
    /// # Errors
    /// An error if its chunk table is malformed.
    pub fn of<D: AsRef<[u8]>>(path: String, file: &PackFile<D>) -> Result<Self, FormatError> {
        let (header, trailer) = (file.header(), file.trailer());
        let (body_bytes, largest_chunk) = file.body_sizes()?;
        Ok(Self {
            path,
            n_samples: file.n_samples(),
            bytes: trailer.file_len,
            pack_uuid: header.pack_uuid,
            footer_crc32c: trailer.footer_crc32c,
            body_bytes,
            largest_chunk,
            origin: None,
        })
    }

    /// The properties of the file, with their names.
    pub(crate) fn described(&self) -> [(&'static str, String); 6] {
        [
            ("bytes", self.bytes.to_string()),
            ("pack_uuid", self.pack_uuid.to_string()),
            ("footer_crc32c", format!("{:08x}", self.footer_crc32c)),
            ("n_samples", self.n_samples.to_string()),
            ("body_bytes", self.body_bytes.to_string()),
            ("largest_chunk", self.largest_chunk.to_string()),
        ]
    }

    fn of_json(json: ShardJson) -> Result<Self, FormatError> {
        let crc = hex(&json.footer_crc32c, CRC_DIGITS).and_then(|crc| u32::try_from(crc).ok());
        let wrong = || {
            let found = json.footer_crc32c.escape_debug();
            bad(format!("footer_crc32c of a shard: expected 8 hexadecimal digits, found '{found}'"))
        };
        Ok(Self {
            footer_crc32c: crc.ok_or_else(wrong)?,
            pack_uuid: uuid("pack_uuid of a shard", &json.pack_uuid)?,
            path: json.path,
            n_samples: json.n_samples,
            bytes: json.bytes,
            body_bytes: json.body_bytes,
            largest_chunk: json.largest_chunk,
            origin: json.origin,
        })
    }

    fn to_json(&self) -> ShardJson {
        ShardJson {
            path: self.path.clone(),
            n_samples: self.n_samples,
            bytes: self.bytes,
            pack_uuid: self.pack_uuid.to_string(),
            footer_crc32c: format!("{:08x}", self.footer_crc32c),
            body_bytes: self.body_bytes,
            largest_chunk: self.largest_chunk,
            origin: self.origin.clone(),
        }
    }
}

fn bad(reason: String) -> FormatError {
    FormatError::BadManifest { reason }
}

/// The JSON object of a manifest without the checksum, if the checksum is right.
fn checked(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let unfinished = || bad("expected its checksum at the end: the file is damaged or unfinished".to_owned());
    let rest = bytes.strip_suffix(AFTER_CRC).ok_or_else(unfinished)?;
    let (rest, digits) = rest.split_at_checked(rest.len().saturating_sub(CRC_DIGITS)).ok_or_else(unfinished)?;
    let covered = rest.strip_suffix(BEFORE_CRC).ok_or_else(unfinished)?;
    let text = std::str::from_utf8(digits).map_err(|_| unfinished())?;
    let expected = hex(text, CRC_DIGITS).and_then(|crc| u32::try_from(crc).ok()).ok_or_else(unfinished)?;
    FormatError::check_crc("manifest", 0, expected, crc32c(covered))?;
    let mut object = covered.to_vec();
    object.push(b'}');
    Ok(object)
}

fn uuid(what: &str, text: &str) -> Result<Uuid, FormatError> {
    // The first digits are the first byte.
    let found = hex(text, 32).map(|number| Uuid(number.swap_bytes().to_le_bytes()));
    found.ok_or_else(|| bad(format!("{what}: expected 32 hexadecimal digits, found '{}'", text.escape_debug())))
}

/// The number with exactly these lowercase hexadecimal digits.
fn hex(text: &str, n_digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == n_digits && text.bytes().all(is_digit)).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Whether a shard's path stays in the folder of its set.
fn is_inside(path: &str) -> bool {
    const MAX_BYTES: u64 = 1024;
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    to_u64(path.len()) <= MAX_BYTES && path.split('/').all(is_name) && !path.contains(['\\', '\0'])
}
