//! Decides the roles of named arrays, for HDF5 and Zarr.
//!
//! Each format reads its own files and provides a [`Tree`].

use std::path::Path;
use std::sync::Arc;

use packds_format::{FieldKind, Role};

use super::ListOptions;
use super::column::{ColumnValues, SourceColumn, TextArena};
use super::found::{Found, FoundLabels, LabelValues, Names, check_same_classes, is_made_anew, role_of};
use super::label_fields::one_hot_classes;
use super::listing::SourceField;
use super::paths::lossy;
use super::roles::{CLASS_LIST_NAMES, Items, Keys, Part, Roles, are_paths, find_field, is_image_name, is_path_name};
use super::several;
use super::shards::Shards;
use super::split::is_split_name;
use super::store::{ArrayType, Content, RowPart, Rows, Store};
use super::warning::{Warning, readable};
use super::whole::{FileContent, FileValue};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::IMAGE_KEY;

/// The attribute of a label field that lists the class names.
pub(crate) const CLASSES_ATTRIBUTE: &str = "classes";

/// The class names in the attributes of an array or a group: a list of strings, or one JSON text. `texts` reads an attribute. Empty
/// if there are none.
pub(super) fn class_names_in<E>(texts: impl Fn(&str) -> Result<Vec<String>, E>) -> Result<Vec<String>, E> {
    for name in CLASS_LIST_NAMES {
        let names = texts(name)?;
        match names.as_slice() {
            [] => {}
            [one] => return Ok(serde_json::from_str(one).unwrap_or(names)),
            _ => return Ok(names),
        }
    }
    Ok(Vec::new())
}

/// An array of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// The name with its groups, separated by `/`.
    pub(super) path: String,
    /// Number of items: the first dimension, or 0 for a scalar.
    pub(super) rows: u64,
    pub(super) kind: NodeKind,
}

/// The kind of an array's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeKind {
    Array(ArrayType),
    Texts,
    /// Variable-length bytes.
    Bytes,
    /// A description of items that cannot be read.
    Other(String),
}

impl NodeKind {
    /// A description for messages.
    #[cfg(feature = "hdf5")]
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Array(array) => format!("{} arrays of shape {:?}", array.dtype, array.shape),
            Self::Texts => "strings".to_owned(),
            Self::Bytes => "byte strings".to_owned(),
            Self::Other(reason) => reason.clone(),
        }
    }
}

/// A source of named arrays.
pub(super) trait Tree {
    /// The arrays in name order.
    fn nodes(&self) -> &[Node];
    /// The items of an array of numbers.
    fn rows(&mut self, node: usize) -> Result<Vec<RowPart>, ConvertError>;
    /// The items of an array of bytes.
    fn files(&mut self, node: usize, content: Content) -> Result<Arc<dyn Store>, ConvertError>;
    /// The items of an array of strings.
    fn texts(&mut self, node: usize) -> Result<Vec<Vec<u8>>, ConvertError>;
    /// The class names in an array's attribute.
    ///
    /// # Errors
    /// If the files of the array have different class names.
    fn classes(&self, node: usize) -> Result<Vec<String>, ConvertError>;
    /// Number of files. Each contains a part of every array.
    fn n_files(&self) -> usize {
        1
    }
    /// The text under [`crate::metadata::METADATA_KEY`].
    fn metadata(&self) -> Result<Option<String>, ConvertError>;
}

/// Separates the split in a path from the rest: `train/images`, `x_train`, `train_set_x`.
fn split_of(path: &str) -> Option<(String, String)> {
    let parts: Vec<&str> = path.split('/').collect();
    let (last, groups) = parts.split_last()?;
    if let Some(at) = groups.iter().position(|g| is_split_name(g.as_bytes())) {
        let split = groups.get(at)?.to_ascii_lowercase();
        let rest = parts.iter().enumerate().filter(|(idx, _)| *idx != at);
        let rest: Vec<&str> = rest.map(|(_, part)| *part).collect();
        return Some((split, rest.join("/")));
    }
    let words: Vec<&str> = last.split(['_', '-']).collect();
    let (split, rest) = match words.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && is_split_name(first.as_bytes()) => (first, rest),
        [rest @ .., end] if !rest.is_empty() && is_split_name(end.as_bytes()) => (end, rest),
        _ => return None,
    };
    let rest: Vec<&str> = rest.iter().filter(|w| **w != "set").copied().collect();
    if rest.is_empty() {
        return None;
    }
    let mut path = groups.to_vec();
    let name = rest.join("_");
    path.push(&name);
    Some((split.to_ascii_lowercase(), path.join("/")))
}

/// The splits in array names, in name order. Each must have an image field.
fn splits(source: &Path, nodes: &[Node]) -> Result<Vec<String>, ConvertError> {
    let parts: Vec<(String, String)> = nodes.iter().filter_map(|n| split_of(&n.path)).collect();
    let mut splits: Vec<String> = parts.iter().map(|(split, _)| split.clone()).collect();
    splits.sort();
    splits.dedup();
    let mut found = Vec::new();
    for split in splits {
        let names = parts.iter().filter(|(s, _)| *s == split);
        let names: Vec<String> = names.map(|(_, rest)| last(rest).to_owned()).collect();
        if find_field(source, &names, Part::Image, Keys::default(), None)?.is_some() {
            found.push(split);
        }
    }
    Ok(found)
}

/// One part for each split that the array names mention, and one for arrays without a split if images are among them. The whole
/// source if there are no splits.
pub(super) fn parts(whole: Shards, nodes: &[Node], is_exported: bool) -> Result<Vec<Shards>, ConvertError> {
    // A pack's export is a single set, whatever its fields are called.
    let splits = match is_exported {
        true => Vec::new(),
        false => splits(&whole.root, nodes)?,
    };
    if splits.is_empty() {
        return Ok(vec![whole]);
    }
    let rest = nodes.iter().filter(|node| !is_of(&splits, &node.path));
    let has_rest = rest.into_iter().any(|node| is_image_name(last(&node.path)));
    let part = |split| Shards { split, ..whole.clone() };
    let rest = has_rest.then(|| part(None));
    let splits = splits.into_iter().map(|split| part(Some(split)));
    Ok(rest.into_iter().chain(splits).collect())
}

/// Whether the array with this path belongs to one of the splits.
fn is_of(splits: &[String], path: &str) -> bool {
    split_of(path).is_some_and(|(split, _)| splits.contains(&split))
}

/// The arrays and strings of a file with one sample.
pub(super) fn read_whole(tree: &mut impl Tree) -> Result<Vec<FileValue>, ConvertError> {
    let nodes = tree.nodes().to_vec();
    let mut values = Vec::new();
    for Member { node: number, name } in members(&nodes, None, &[]) {
        let Some(node) = nodes.get(number) else { continue };
        let content = match &node.kind {
            NodeKind::Array(row) => {
                let rows = Rows { parts: tree.rows(number)?, array: row.clone() };
                let shape = [&[node.rows], row.shape.as_slice()].concat();
                let array = ArrayType { dtype: row.dtype, shape };
                FileContent::Array { array, rows, swapped: false, own_offset: None }
            }
            NodeKind::Texts if node.rows == 1 => {
                FileContent::Text(tree.texts(number)?.iter().map(|text| lossy(text)).collect())
            }
            _ => continue,
        };
        values.push(FileValue { name, content });
    }
    Ok(values)
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// An array of the part being read.
struct Member {
    node: usize,
    /// The field name: the last component of the path if no other member has the same, otherwise the path with underscores.
    name: String,
}

/// The arrays of `split`, or all arrays if no array name mentions it. If it is `None`, the arrays outside all `splits`.
fn members(nodes: &[Node], split: Option<&str>, splits: &[String]) -> Vec<Member> {
    let parts: Vec<(usize, String)> = match split {
        Some(split) => {
            let of = |(idx, node): (usize, &Node)| {
                let (s, rest) = split_of(&node.path)?;
                (s == split).then_some((idx, rest))
            };
            nodes.iter().enumerate().filter_map(of).collect()
        }
        None => Vec::new(),
    };
    let parts = if parts.is_empty() {
        let all = nodes.iter().enumerate();
        let all = all.filter(|(_, node)| split.is_some() || !is_of(splits, &node.path));
        all.map(|(idx, node)| (idx, node.path.clone())).collect()
    } else {
        parts
    };
    let member = |(node, path): &(usize, String)| {
        let same = parts.iter().filter(|(_, other)| last(other) == last(path));
        let name = match same.count() {
            1 => last(path).to_owned(),
            _ => path.replace('/', "_"),
        };
        Member { node: *node, name }
    };
    parts.iter().map(member).collect()
}

/// Finds the samples of a tree.
pub(super) fn read(
    tree: &mut impl Tree,
    format: DataFormat,
    source: &Path,
    split: Option<&str>,
    options: &ListOptions,
) -> Result<Found, ConvertError> {
    let mut warnings = Vec::new();
    let metadata = readable(tree.metadata()?.map(|text| Metadata::parse(&text)), &mut warnings);
    let nodes = tree.nodes().to_vec();
    let splits = match metadata {
        Some(_) => Vec::new(),
        None => splits(source, &nodes)?,
    };
    let members = members(&nodes, split, &splits);
    let members = left_in(source, &nodes, members, options)?;
    let fields = Fields { source, nodes: &nodes, members: &members, metadata: metadata.as_ref() };
    let keys = Keys {
        image: fields.key(options.image_key.as_deref()),
        label: fields.key(options.label_key.as_deref()),
        mask: fields.key(options.mask_key.as_deref()),
    };
    let roles = Roles::find(source, &fields.names(), keys, metadata.as_ref());
    let roles = roles.map_err(|error| fields.several().unwrap_or(error))?;
    let fits = |member, warnings: &mut Vec<Warning>| {
        let part = roles.of(member);
        roles.fitting(source, fields.name(member), part, &fields.items(member), warnings)
    };
    fits(roles.image, &mut warnings)?;
    let image = roles.image;
    let images = fields.store(tree, image, Content::File)?;
    let is_plane = |node: &Node| matches!(&node.kind, NodeKind::Array(array) if array.shape.len() == 2);
    let are_planes = members.get(image).and_then(|member| nodes.get(member.node)).is_some_and(is_plane);
    let mut found =
        Found { warnings, are_planes, ..Found::new(format, images, Names::Numbered(fields.name(image).to_owned())) };
    let class_list = roles.label.and_then(|label| fields.class_list_of(tree, label));
    for (idx, member) in members.iter().enumerate() {
        let is_class_list = Some(member.node) == class_list && !fields.has_rows(idx, found.images.len());
        if idx == image || is_class_list {
            continue;
        }
        let part = fits(idx, &mut found.warnings)?;
        if part == Some(Part::Mask) {
            found.masks = Some(fields.store(tree, idx, Content::File)?);
            continue;
        }
        let is_label = part == Some(Part::Label);
        match fields.put(tree, idx, is_label, &mut found) {
            // The field was not requested, so it may be left out.
            Err(ConvertError::SourceUnsupported { reason, .. }) if !is_label => {
                found.warnings.push(Warning::LeftOut { field: member.name.clone(), reason });
            }
            put => put?,
        }
    }
    if let Some(label) = roles.label.filter(|_| found.labels.is_none()) {
        found.classes = fields.classes(tree, fields.node(label)?.0)?;
    }
    found.metadata = metadata;
    Ok(found)
}

/// The members that the caller did not exclude by name or path.
fn left_in(
    source: &Path,
    nodes: &[Node],
    members: Vec<Member>,
    options: &ListOptions,
) -> Result<Vec<Member>, ConvertError> {
    let path = |member: &Member| nodes.get(member.node).map_or("", |node| &node.path);
    let mut names: Vec<String> = members.iter().map(|m| m.name.clone()).collect();
    let paths = members.iter().map(|m| path(m).to_owned());
    names.extend(paths.filter(|path| !members.iter().any(|m| m.name == *path)));
    options.check_left_out(source, &names)?;
    let is_left_out = |m: &Member| options.is_left_out(&m.name) || options.is_left_out(path(m));
    let all = members.into_iter();
    Ok(all.filter(|member| !is_left_out(member)).collect())
}

/// The arrays of the part being read.
struct Fields<'a> {
    source: &'a Path,
    nodes: &'a [Node],
    members: &'a [Member],
    metadata: Option<&'a Metadata>,
}

impl Fields<'_> {
    /// The error if each array is an image, or each is a stack of images.
    fn several(&self) -> Option<ConvertError> {
        let nodes = self.members.iter().filter_map(|member| self.nodes.get(member.node));
        let whole = nodes.map(|node| match &node.kind {
            NodeKind::Array(row) => {
                let shape = [&[node.rows], row.shape.as_slice()].concat();
                Some((node.path.clone(), ArrayType { dtype: row.dtype, shape }))
            }
            _ => None,
        });
        several::refusal(self.source, &whole.collect::<Option<Vec<_>>>()?)
    }

    fn name(&self, member: usize) -> &str {
        self.members.get(member).map_or("", |m| &m.name)
    }

    fn node(&self, member: usize) -> Result<(usize, &Node), ConvertError> {
        let node = self.members.get(member).map(|m| m.node);
        let node = node.and_then(|n| Some((n, self.nodes.get(n)?)));
        node.ok_or_else(|| ConvertError::malformed(self.source, "", "it has no arrays"))
    }

    /// The name of the field that a key refers to. The key may also be the path of the field's array.
    fn key<'k>(&'k self, key: Option<&'k str>) -> Option<&'k str> {
        let key = key?.trim_matches('/');
        let path = |member: &&Member| self.nodes.get(member.node).map(|node| node.path.as_str());
        let member = self.members.iter().find(|m| path(m) == Some(key));
        Some(member.map_or(key, |member| member.name.as_str()))
    }

    fn names(&self) -> Vec<String> {
        self.members.iter().map(|m| m.name.clone()).collect()
    }

    /// The kind of items, which decides the possible roles.
    fn items(&self, member: usize) -> Items {
        match self.node(member).map(|(_, node)| &node.kind) {
            Ok(NodeKind::Array(array)) => Items::of_array(array),
            Ok(NodeKind::Bytes) => Items::pictures(),
            Ok(NodeKind::Texts) => Items::texts(),
            Ok(NodeKind::Other(reason)) => Items::unreadable(reason),
            Err(_) => Items::other("nothing"),
        }
    }

    /// The items of an array of numbers or bytes.
    fn store(&self, tree: &mut impl Tree, member: usize, content: Content) -> Result<Arc<dyn Store>, ConvertError> {
        let (number, node) = self.node(member)?;
        match &node.kind {
            NodeKind::Array(array) => {
                let parts = tree.rows(number)?;
                let array = match self.metadata {
                    Some(metadata) => metadata.restored(self.name(member), array),
                    None => array.clone(),
                };
                Ok(Arc::new(Rows { parts, array }))
            }
            NodeKind::Bytes => tree.files(number, content),
            NodeKind::Texts => Err(ConvertError::unsupported(
                self.source,
                &node.path,
                "expected images, found strings",
                format!("choose the field of images with {IMAGE_KEY}"),
            )),
            NodeKind::Other(reason) => Err(ConvertError::unsupported(
                self.source,
                &node.path,
                reason,
                "write the array again as numbers or variable-length bytes",
            )),
        }
    }

    /// Stores a field other than images and masks according to its role.
    fn put(&self, tree: &mut impl Tree, member: usize, is_label: bool, found: &mut Found) -> Result<(), ConvertError> {
        let (number, node) = self.node(member)?;
        let name = self.name(member);
        let has_rows = self.has_rows(member, found.images.len());
        let is_field = is_label || (has_rows && !is_made_anew(name));
        let role = role_of(self.metadata, name);
        // In the pack, a set of up to eight labels is also stored as a single number.
        let is_label = is_label && role != Some(Role::Labels);
        match &node.kind {
            NodeKind::Array(array) if is_label => {
                let classes = self.classes(tree, number)?;
                let rows = Rows { parts: tree.rows(number)?, array: array.clone() };
                let values = LabelValues::of_store(Arc::new(rows), array.dtype);
                let values = values.map_err(|e| ConvertError::malformed(self.source, &node.path, e.to_string()))?;
                found.labels = Some(FoundLabels { name: name.to_owned(), values, classes });
            }
            NodeKind::Texts if is_label => {
                let values = LabelValues::Names(tree.texts(number)?.iter().map(|text| lossy(text)).collect());
                found.labels = Some(FoundLabels::without_classes(name, values));
            }
            NodeKind::Other(_) => {
                self.store(tree, member, Content::Bytes)?;
            }
            NodeKind::Array(_) | NodeKind::Bytes if is_field => {
                let store = self.store(tree, member, Content::Bytes)?;
                found.fields.push(SourceField { name: name.to_owned(), store, role });
            }
            NodeKind::Texts if is_field => {
                let texts = tree.texts(number)?;
                let paths: Option<Vec<&str>> = texts.iter().map(|t| str::from_utf8(t).ok()).collect();
                if is_path_name(name) && paths.is_some_and(|paths| are_paths(paths.into_iter())) {
                    found.names = Names::Paths(texts);
                } else {
                    found.texts.push(self.column(name, &texts));
                }
            }
            _ => {
                let mut warnings = found.warnings.iter_mut();
                match warnings.find_map(|warning| match warning {
                    Warning::OtherArrays { count, .. } => Some(count),
                    _ => None,
                }) {
                    Some(count) => *count += 1,
                    None => {
                        found.warnings.push(Warning::OtherArrays { count: 1, first: node.path.clone().into_bytes() })
                    }
                }
            }
        }
        Ok(())
    }

    fn column(&self, name: &str, texts: &[Vec<u8>]) -> SourceColumn {
        let field = self.metadata.and_then(|m| m.field(name));
        let is_json = field.is_some_and(|field| field.kind == FieldKind::Json)
            && texts.iter().all(|text| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok());
        let texts: TextArena = texts.iter().map(|text| lossy(text)).collect();
        SourceColumn {
            name: name.to_owned(),
            values: match is_json {
                true => ColumnValues::Json(texts),
                false => ColumnValues::Text(texts),
            },
        }
    }

    /// The class names: an attribute of the labels, or a separate array of names.
    fn classes(&self, tree: &mut impl Tree, label: usize) -> Result<Vec<String>, ConvertError> {
        let classes = tree.classes(label)?;
        if !classes.is_empty() {
            return Ok(classes);
        }
        let Some(list) = self.class_list() else {
            return Ok(Vec::new());
        };
        let mut names: Vec<String> = tree.texts(list)?.iter().map(|t| lossy(t)).collect();
        // Each file has its own list, and all lists must be the same.
        let n = names.len() / tree.n_files().max(1);
        let (first, others) = names.split_at(n);
        for other in others.chunks(n.max(1)) {
            check_same_classes(self.source, first, other)?;
        }
        names.truncate(n);
        Ok(names)
    }

    /// The node of an array of class names.
    fn class_list(&self) -> Option<usize> {
        let is_list = |node: &Node| node.kind == NodeKind::Texts && CLASS_LIST_NAMES.contains(&last(&node.path));
        self.nodes.iter().position(is_list)
    }

    /// The node of the array with the class names of the field `label`, if that array is needed.
    fn class_list_of(&self, tree: &impl Tree, label: usize) -> Option<usize> {
        let (number, node) = self.node(label).ok()?;
        let has_ids =
            matches!(&node.kind, NodeKind::Array(array) if array.is_one_number() || one_hot_classes(array).is_some());
        let is_used = has_ids && tree.classes(number).is_ok_and(|classes| classes.is_empty());
        self.class_list().filter(|_| is_used)
    }

    /// Whether a field has one item per image.
    fn has_rows(&self, member: usize, n_images: usize) -> bool {
        let rows = self.node(member).map(|(_, node)| usize::try_from(node.rows));
        matches!(rows, Ok(Ok(rows)) if rows == n_images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_splits_by_group_or_word() {
        for (path, expected) in [
            ("train/images", Some(("train", "images"))),
            ("a/Test/x", Some(("test", "a/x"))),
            ("x_train", Some(("train", "x"))),
            ("test_set_y", Some(("test", "y"))),
            ("g/train_x", Some(("train", "g/x"))),
            ("train", None),
            ("training_x", Some(("training", "x"))),
            ("trained_x", None),
            ("images", None),
        ] {
            let found = split_of(path);
            let found = found.as_ref().map(|(s, r)| (s.as_str(), r.as_str()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
