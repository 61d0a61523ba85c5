//! Zarr, versions 2 and 3: the arrays of a group, stored in folders.

mod array;
mod chunks;
mod codec;

use packds_system::{to_u64, to_usize};
use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use self::array::{Array, Element, json};
use self::chunks::items;
use super::ListOptions;
use super::found::Found;
use super::numbers::text_of;
use super::packed::{Packed, Piece, Unpack, no_piece};
use super::shards::Shards;
use super::spool::Spool;
use super::store::{ArrayType, Content, RowPart, Store};
use super::there::is_there;
use super::tree::{self, Node, NodeKind, Tree, class_names_in};
use super::whole::FileValue;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

/// Maximum group nesting.
const MAX_DEPTH: usize = 16;
/// Why an array whose reader crashed cannot be read.
const CRASHED: &str = "a chunk cannot be unpacked";
/// Maximum total number of groups and arrays.
const MAX_MEMBERS: usize = 1 << 16;

/// The strings of an attribute, which is a list of strings or a single text.
fn texts(value: Option<&Value>) -> Vec<String> {
    let texts = match value {
        Some(Value::String(text)) => return vec![text.clone()],
        Some(Value::Array(texts)) => texts.iter(),
        _ => [].iter(),
    };
    let texts = texts.map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().unwrap_or_default()
}

/// One part for each split that the array names mention, and one for arrays without a split if images are among them. The whole
/// source if there are no splits.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let group = Group::open(source)?;
    let is_exported = group.attributes.contains_key(METADATA_KEY);
    tree::parts(Shards::one(source), &group.nodes(), is_exported)
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let source = part.only()?;
    guarded(source, options, |arrays| tree::read(arrays, DataFormat::Zarr, source, part.split.as_deref(), options))
}

/// The values of a group that holds one sample.
pub(crate) fn read_whole(path: &Path, options: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    guarded(path, options, |arrays| tree::read_whole(arrays))
}

/// Reads the arrays of a group and catches panics, because the codecs are third-party code.
fn guarded<T>(
    source: &Path,
    options: &ListOptions,
    read: impl FnOnce(&mut Arrays<'_>) -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    let work = || {
        let group = Group::open(source)?;
        let nodes = group.nodes();
        read(&mut Arrays { source, group, nodes, options })
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(ConvertError::malformed(source, "", CRASHED)))
}

/// A group, with all arrays in it and in its subgroups.
struct Group {
    attributes: Map<String, Value>,
    /// The arrays in name order. For an unreadable array, the reason.
    arrays: Vec<(String, Result<Array, String>)>,
}

impl Group {
    fn open(source: &Path) -> Result<Self, ConvertError> {
        let mut group = Self { attributes: Map::new(), arrays: Vec::new() };
        let mut seen = 0;
        if !group.collect(source, "", 0, &mut seen)? {
            let reason = "expected zarr.json, .zgroup or .zarray in this folder";
            return Err(ConvertError::malformed(source, "", reason));
        }
        group.arrays.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(group)
    }

    /// Adds the arrays in a folder. False if the folder is neither a group nor an array.
    fn collect(&mut self, folder: &Path, path: &str, depth: usize, seen: &mut usize) -> Result<bool, ConvertError> {
        *seen += 1;
        if *seen > MAX_MEMBERS || depth > MAX_DEPTH {
            let reason = format!("expected at most {MAX_MEMBERS} groups, nested at most {MAX_DEPTH} deep");
            return Err(ConvertError::malformed(folder, "", reason));
        }
        let has = |name: &str| is_there(&folder.join(name));
        let (metadata, attributes, is_array) = if has("zarr.json")? {
            let metadata = json(&folder.join("zarr.json"))?;
            let attributes = metadata.get("attributes").and_then(Value::as_object);
            let is_array = metadata.get("node_type").and_then(Value::as_str) == Some("array");
            (metadata.clone(), attributes.cloned(), is_array)
        } else if has(".zarray")? || has(".zgroup")? {
            let attributes = match has(".zattrs")? {
                true => json(&folder.join(".zattrs"))?.as_object().cloned(),
                false => None,
            };
            let is_array = has(".zarray")?;
            let name = if is_array { ".zarray" } else { ".zgroup" };
            (json(&folder.join(name))?, attributes, is_array)
        } else {
            return Ok(false);
        };
        let attributes = attributes.unwrap_or_default();
        if is_array {
            let name = if path.is_empty() { "image" } else { path };
            let array = Array::parse(folder, name.to_owned(), metadata, attributes);
            let array = match array {
                Err(ConvertError::SourceUnsupported { reason, .. }) => Err(reason),
                other => Ok(other?),
            };
            self.arrays.push((name.to_owned(), array));
            return Ok(true);
        }
        if path.is_empty() {
            self.attributes = attributes;
        }
        let entries = std::fs::read_dir(folder).map_err(ConvertError::io(folder))?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let inner = folder.join(&name);
            let Some(name) = name.to_str() else {
                continue;
            };
            if !inner.is_dir() {
                // Other files are allowed here, but a pipe or a dangling link may take the place of an array.
                if !name.starts_with('.') {
                    is_there(&inner)?;
                }
                continue;
            }
            let path = match path {
                "" => name.to_owned(),
                path => format!("{path}/{name}"),
            };
            self.collect(&inner, &path, depth + 1, seen)?;
        }
        Ok(true)
    }

    fn array(&self, number: usize) -> Option<&Array> {
        self.arrays.get(number).and_then(|(_, array)| array.as_ref().ok())
    }

    fn nodes(&self) -> Vec<Node> {
        let node = |(path, array): &(String, Result<Array, String>)| {
            let path = path.clone();
            match array {
                Ok(array) => Node { path, rows: array.shape.first().copied().unwrap_or(0), kind: kind(array) },
                Err(reason) => Node { path, rows: 0, kind: NodeKind::Other(reason.clone()) },
            }
        };
        self.arrays.iter().map(node).collect()
    }
}

fn kind(array: &Array) -> NodeKind {
    let Some((_, row)) = array.shape.split_first() else {
        return NodeKind::Other("a single value, not an array of samples".to_owned());
    };
    match &array.element {
        Element::Number(dtype) => NodeKind::Array(ArrayType { dtype: *dtype, shape: row.to_vec() }),
        _ if !row.is_empty() => NodeKind::Other("strings or bytes in several dimensions".to_owned()),
        Element::FixedText { .. } | Element::Text => NodeKind::Texts,
        Element::Bytes => NodeKind::Bytes,
    }
}

/// A group whose arrays another process unpacks.
struct Pieces {
    source: PathBuf,
    group: Group,
}

/// Opens a group to unpack some rows of its arrays.
pub(super) fn pieces(source: &Path) -> Result<Arc<dyn Unpack>, ConvertError> {
    Ok(Arc::new(Pieces { source: source.to_owned(), group: Group::open(source)? }))
}

impl Unpack for Pieces {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let array = self.group.array(to_usize(piece.place));
        let fits =
            |array: &&Array| piece.start.checked_add(piece.rows).is_some_and(|end| array.shape.first() >= Some(&end));
        let array = array.filter(fits).ok_or_else(|| no_piece(&self.source, piece))?;
        let unpack = || {
            let bytes = array.band(piece.start, piece.rows)?;
            if !array.chain.is_variable() {
                return Ok(bytes);
            }
            Ok(items(&bytes, piece.rows).map_err(|e| array.malformed(e))?.concat())
        };
        let bytes = catch_unwind(AssertUnwindSafe(unpack)).unwrap_or_else(|_| Err(array.malformed(CRASHED)))?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// The files of these pieces of a group that are there.
pub(super) fn chunk_files<'a>(source: &Path, pieces: impl Iterator<Item = &'a Piece>) -> Vec<PathBuf> {
    // If the group cannot be read, unpacking reports that.
    let Ok(group) = Group::open(source) else { return Vec::new() };
    let mut files = BTreeSet::new();
    for piece in pieces {
        let Some(array) = group.array(to_usize(piece.place)) else { continue };
        files.extend(["zarr.json", ".zarray"].map(|name| array.folder.join(name)));
        files.extend(array.chunk_files(piece.start));
    }
    files.into_iter().filter(|file| file.is_file()).collect()
}

struct Arrays<'a> {
    source: &'a Path,
    group: Group,
    nodes: Vec<Node>,
    options: &'a ListOptions,
}

impl Arrays<'_> {
    fn array(&self, node: usize) -> Result<&Array, ConvertError> {
        let missing = || ConvertError::malformed(self.source, "", "there is no such array");
        self.group.array(node).ok_or_else(missing)
    }
}

impl Tree for Arrays<'_> {
    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn rows(&mut self, node: usize) -> Result<Vec<RowPart>, ConvertError> {
        let array = self.array(node)?;
        let mut spool = Spool::create(&self.options.spool_folder())?;
        let packed = spool.unpacks(Packed::Zarr(self.source.into()));
        array.unpack(self.options, |bytes, start, rows| {
            spool.begin(Piece { packed, place: to_u64(node), start, rows });
            spool.append(&bytes).map(drop)
        })?;
        Ok(vec![spool.into_part(&array.folder, array.count()?, array.row_bytes()?)?])
    }

    fn files(&mut self, node: usize, content: Content) -> Result<Arc<dyn Store>, ConvertError> {
        let array = self.array(node)?;
        let mut spool = Spool::create(&self.options.spool_folder())?;
        let packed = spool.unpacks(Packed::Zarr(self.source.into()));
        let (mut ends, mut end) = (Vec::new(), 0_u64);
        array.unpack(self.options, |bytes, start, rows| {
            spool.begin(Piece { packed, place: to_u64(node), start, rows });
            for item in items(&bytes, rows).map_err(|e| array.malformed(e))? {
                spool.append(item)?;
                end += to_u64(item.len());
                ends.push(end);
            }
            Ok(())
        })?;
        spool.into_items(&array.folder, &ends, content)
    }

    fn texts(&mut self, node: usize) -> Result<Vec<Vec<u8>>, ConvertError> {
        let array = self.array(node)?;
        let mut texts = Vec::new();
        array.unpack(self.options, |bytes, _, rows| {
            match array.element {
                Element::FixedText { bytes: size, wide } => {
                    let size = to_usize(size).max(1);
                    texts.extend(bytes.chunks_exact(size).map(|text| fixed_text(text, wide)));
                }
                _ => {
                    let items = items(&bytes, rows).map_err(|e| array.malformed(e))?;
                    texts.extend(items.iter().map(|item| item.to_vec()));
                }
            }
            Ok(())
        })?;
        Ok(texts)
    }

    fn classes(&self, node: usize) -> Result<Vec<String>, ConvertError> {
        let own = self.array(node).ok().map(|array| &array.attributes);
        let of = |attributes: &Map<String, Value>| class_names_in(|name| Ok(texts(attributes.get(name))));
        match own.map(of).transpose()?.unwrap_or_default() {
            none if none.is_empty() => of(&self.group.attributes),
            names => Ok(names),
        }
    }

    fn metadata(&self) -> Result<Option<String>, ConvertError> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Ok(self.group.attributes.get(METADATA_KEY).map(text))
    }
}

/// A zero-padded text with one or four bytes per character.
fn fixed_text(bytes: &[u8], wide: bool) -> Vec<u8> {
    if !wide {
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        return bytes.get(..end).unwrap_or_default().to_vec();
    }
    text_of(bytes, wide).into_bytes()
}
