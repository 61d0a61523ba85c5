//! An HDF5 file and its datasets, as the library describes them.
//!
//! `rows` reads their bytes.

use packds_system::to_u64;
use std::path::Path;
use std::sync::Arc;

use ::hdf5::datatype::ByteOrder;
use ::hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenArray, VarLenAscii, VarLenUnicode};
use ::hdf5::{Container, Dataset, Datatype, File, Group, H5Type, LinkType, Location, LocationToken};
use packds_format::DType;

use super::{header, heap};
use crate::dtypes::with_native;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;
use crate::source::store::OpenFile;
use crate::source::tree::class_names_in;
use crate::source::warning::Warning;

/// Maximum group nesting. Needed because links can make a group its own member.
const MAX_DEPTH: usize = 16;
/// Maximum number of datasets and groups in a file.
const MAX_MEMBERS: usize = 1 << 16;
/// Describes a link to another file. Such links are not followed, because they could point to any file.
pub(super) const LINK: &str = "a link to another file, which is not followed";
/// Maximum number of links to other files to name in warnings.
const MAX_LINKS: usize = 100;
/// Maximum length of a path in an error, in bytes.
const MAX_SHOWN: usize = 120;
/// First bytes of the superblock. Its version follows.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The first superblock version that only library versions 1.10 and later write.
const NEW_SUPERBLOCK: u8 = 3;
/// Maximum number of strings in an attribute.
const MAX_ATTRIBUTE_ITEMS: usize = 1 << 20;
/// Maximum size of an attribute's strings, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 1 << 28;

/// A file, opened both by the library and for direct reads.
pub(super) struct H5File {
    pub(super) open: Arc<OpenFile>,
    /// The file offset that HDF5 addresses are relative to.
    pub(super) base: u64,
    /// The datasets, in name order.
    pub(super) datasets: Vec<H5Dataset>,
    /// The paths of links to other files.
    pub(super) links: Vec<String>,
    file: File,
}

/// A dataset.
pub(super) struct H5Dataset {
    /// Its index among all datasets of the file.
    pub(super) number: u64,
    /// Its name including its groups.
    pub(super) path: String,
    pub(super) dataset: Dataset,
    pub(super) shape: Vec<u64>,
    pub(super) element: Element,
}

/// The element type of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    /// Numbers converted to this type; `exact` if the file stores them in that form.
    Number { dtype: DType, exact: bool },
    /// Fixed-length strings of this many bytes.
    FixedText(u64),
    /// Variable-length strings.
    Text,
    /// Variable-length bytes.
    Bytes,
    /// An unreadable type, with its description.
    Other(String),
}

impl H5File {
    pub(super) fn open(path: &Path) -> Result<Self, ConvertError> {
        let open = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let mut members = Members { open: &open, seen: 0, datasets: Vec::new(), links: Vec::new() };
        let file = File::open(path).map_err(|e| members.failed("", &e))?;
        members.collect(&file, "", 0)?;
        let mut datasets = members.datasets;
        datasets.sort_by(|a, b| a.path.cmp(&b.path));
        (0..).zip(&mut datasets).for_each(|(number, dataset)| dataset.number = number);
        let links = members.links;
        Ok(Self { base: file.userblock(), open: Arc::new(open), datasets, links, file })
    }

    /// Warnings about the links to other files.
    pub(super) fn link_warnings(&self) -> Vec<Warning> {
        let warning = |link: &String| Warning::LeftOut { field: link.clone(), reason: LINK.to_owned() };
        self.links.iter().map(warning).collect()
    }

    /// Opens the file again, for use by a separate store.
    pub(super) fn reopen(open: &OpenFile) -> Result<OpenFile, ConvertError> {
        let file = open.file().map_err(ConvertError::io(&open.path))?;
        Ok(OpenFile::of(&open.path, file, 0, open.bytes))
    }

    /// The class names of a dataset: from its attributes or its type if they have any, otherwise from the file.
    pub(super) fn classes(&self, dataset: &H5Dataset) -> Result<Vec<String>, ConvertError> {
        let own = class_names_in(|name| self.texts(&dataset.dataset, &dataset.path, name))?;
        if !own.is_empty() {
            return Ok(own);
        }
        let named = dataset.dataset.dtype().map(|dtype| enumerated(&dtype));
        match named.unwrap_or_default() {
            none if none.is_empty() => class_names_in(|name| self.texts(&self.file, "", name)),
            named => Ok(named),
        }
    }

    /// Metadata of the exported pack.
    pub(super) fn metadata(&self) -> Result<Option<String>, ConvertError> {
        let texts = self.texts(&self.file, "", METADATA_KEY)?;
        Ok(texts.into_iter().next())
    }

    /// The strings of an object's attribute `name`. Empty if the attribute is missing or not text.
    fn texts(&self, of: &Location, path: &str, name: &str) -> Result<Vec<String>, ConvertError> {
        let found = of.attr(name).and_then(|found| Ok((found.dtype()?, found)));
        let Ok((dtype, attribute)) = found else {
            return Ok(Vec::new());
        };
        if attribute.size() > MAX_ATTRIBUTE_ITEMS {
            return Ok(Vec::new());
        }
        match element(&dtype) {
            Element::Text => {
                let texts = self.texts_in_heaps(of, name, attribute.size());
                texts.map_err(|reason| {
                    let place = format!("{path} (attribute {name})");
                    ConvertError::malformed(&self.open.path, place.trim(), reason)
                })
            }
            Element::FixedText(_) => Ok(fixed_texts(&attribute)),
            _ => Ok(Vec::new()),
        }
    }

    /// An attribute's variable-length strings, read without the library. The module `header` explains why.
    fn texts_in_heaps(&self, of: &Location, name: &str, n: usize) -> Result<Vec<String>, String> {
        let at = of.loc_info().map_err(|e| e.to_string())?;
        let at = address(&at.token).ok_or("it has no header")?;
        let value = header::attribute(&self.open, self.base, at, name)?;
        let value = value.ok_or(
            "variable-length strings are not supported in attributes outside the object header; write fewer than nine attributes, or fixed-length strings",
        )?;
        let bytes = n.checked_mul(16).and_then(|bytes| value.get(..bytes));
        let references = bytes.ok_or_else(|| format!("expected {n} strings"))?;
        let texts = heap::texts(self, references, MAX_ATTRIBUTE_BYTES)?;
        Ok(texts.iter().map(|text| text_of(text)).collect())
    }
}

impl H5Dataset {
    /// An error about the dataset's bytes.
    pub(super) fn malformed(&self, file: &H5File, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(&file.open.path, &self.path, reason)
    }
}

/// The names of an enumeration of up to 8 bytes, indexed by value. The name of an unnamed value is its number. Empty for other
/// types, for booleans, and for enumerations with negative or too many values.
fn enumerated(dtype: &Datatype) -> Vec<String> {
    if dtype.size() > 8 || dtype.is::<bool>() {
        return Vec::new();
    }
    let Ok(TypeDescriptor::Enum(of)) = dtype.to_descriptor() else {
        return Vec::new();
    };
    let largest = of.members.iter().map(|member| member.value).max();
    let n = largest.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < MAX_MEMBERS);
    let mut names: Vec<String> = n.map_or_else(Vec::new, |n| (0..=n).map(|id| id.to_string()).collect());
    for member in &of.members {
        let place = usize::try_from(member.value).ok().and_then(|id| names.get_mut(id));
        if let Some(name) = place {
            name.clone_from(&member.name);
        }
    }
    names
}

/// The fixed-length strings of an attribute.
fn fixed_texts(attribute: &Container) -> Vec<String> {
    if let Ok(found) = attribute.read_raw::<FixedUnicode<1024>>() {
        return found.iter().map(|t| text_of(t.as_bytes())).collect();
    }
    let found = attribute.read_raw::<FixedAscii<1024>>().unwrap_or_default();
    found.iter().map(|t| text_of(t.as_bytes())).collect()
}

/// A string as the library reads it: up to the first zero byte.
fn text_of(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The address of an object's header. The bindings expose it only in printed form: a number, or its 16 bytes.
fn address(token: &LocationToken) -> Option<u64> {
    let shown = format!("{token:?}");
    let numbers = shown.rsplit(['(', '[']).next()?;
    let numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty());
    let numbers: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        [address] => Some(*address),
        [low @ .., _, _, _, _, _, _, _, _] if low.len() == 8 => {
            let bytes = low.iter().map(|byte| u8::try_from(*byte).ok());
            let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        }
        _ => None,
    }
}

/// Collects the datasets of a file.
struct Members<'a> {
    open: &'a OpenFile,
    /// Number of groups and datasets seen so far.
    seen: usize,
    datasets: Vec<H5Dataset>,
    /// Links to other files.
    links: Vec<String>,
}

impl Members<'_> {
    /// Adds the datasets of a group and its subgroups. Links to other files are not followed.
    fn collect(&mut self, group: &Group, prefix: &str, depth: usize) -> Result<(), ConvertError> {
        let (mut names, mut links) = (Vec::new(), Vec::new());
        let visited = group.iter_visit_default(|name, info| {
            match info.link_type {
                LinkType::Hard => names.push(name.to_owned()),
                LinkType::External => links.push(format!("{prefix}{name}")),
                LinkType::Soft => {}
            }
            Ok(())
        });
        visited.map_err(|e| self.failed(prefix, &e))?;
        let room = MAX_LINKS.saturating_sub(self.links.len());
        self.links.extend(links.into_iter().take(room));
        for name in names {
            self.seen += 1;
            let path = format!("{prefix}{name}");
            if self.seen > MAX_MEMBERS || depth > MAX_DEPTH {
                let reason =
                    format!("expected at most {MAX_MEMBERS} groups and datasets, nested at most {MAX_DEPTH} deep");
                let hint =
                    "if a link makes a group contain itself, remove the link, or copy the datasets into a new file";
                let path = path.get(..MAX_SHOWN).unwrap_or(&path);
                return Err(ConvertError::contradictory(&self.open.path, path, reason, hint));
            }
            self.add(group, &name, path, depth)?;
        }
        Ok(())
    }

    /// Adds the member `name` of a group. Its full path is `path`.
    fn add(&mut self, group: &Group, name: &str, path: String, depth: usize) -> Result<(), ConvertError> {
        let dataset = group.dataset(name);
        if let Ok(dataset) = dataset {
            let found = described(path.clone(), dataset);
            self.datasets.push(found.map_err(|e| self.failed(&path, &e))?);
            return Ok(());
        }
        if let Ok(inner) = group.group(name) {
            return self.collect(&inner, &format!("{path}/"), depth + 1);
        }
        // A named data type contains no data.
        match (group.loc_type_by_name(name), dataset) {
            (Ok(::hdf5::LocationType::NamedDatatype), _) => Ok(()),
            (_, Err(error)) | (Err(error), _) => Err(self.failed(&path, &error)),
            (Ok(_), Ok(_)) => Ok(()),
        }
    }

    /// The error for a failure of the library, which reports data of newer versions as damaged.
    fn failed(&self, path: &str, error: &::hdf5::Error) -> ConvertError {
        let reason = error.to_string();
        let is_newer = reason.contains("version") || self.superblock() >= Some(NEW_SUPERBLOCK);
        if !is_newer {
            return ConvertError::malformed(&self.open.path, path, reason);
        }
        let (major, minor, patch) = ::hdf5::library_version();
        let hint = format!(
            "the file is damaged, or its HDF5 library is newer than the one in this build ({major}.{minor}.{patch}): write it \
             again with h5py.File(..., libver=(\"earliest\", \"v110\")), or with `h5repack --low=0 --high=2 OLD NEW`"
        );
        ConvertError::contradictory(&self.open.path, path, reason, hint)
    }

    /// The version of the file's superblock, which may start at offset 0, 512, 1024 and so on, doubling each time.
    fn superblock(&self) -> Option<u8> {
        let mut at = 0_u64;
        while at < self.open.bytes {
            let head = self.open.bytes_at(at, 9).ok()?;
            if let Some([version]) = head.strip_prefix(SIGNATURE) {
                return Some(*version);
            }
            at = at.checked_mul(2)?.max(512);
        }
        None
    }
}

fn described(path: String, dataset: Dataset) -> ::hdf5::Result<H5Dataset> {
    let shape = dataset.shape().into_iter();
    let shape = shape.map(to_u64);
    let element = element(&dataset.dtype()?);
    Ok(H5Dataset { number: 0, path, shape: shape.collect(), element, dataset })
}

/// The element type. The library's bindings can only describe types of at most 8 bytes: they read every enumeration value into 8
/// bytes.
fn element(dtype: &Datatype) -> Element {
    let exact = |dtype| Element::Number { dtype, exact: true };
    // bf16 is stored as u16, and the list of types has u16 first.
    let is = |native: &DType| with_native!(*native, T => dtype.is::<T>());
    if let Some(dtype) = DType::ALL.into_iter().find(is) {
        return exact(dtype);
    }
    let size = dtype.size();
    if dtype.is::<VarLenArray<u8>>() || dtype.is::<VarLenArray<i8>>() {
        return Element::Bytes;
    }
    if dtype.conv_to::<VarLenUnicode>().is_some() || dtype.conv_to::<VarLenAscii>().is_some() {
        return Element::Text;
    }
    if dtype.conv_to::<FixedUnicode<8>>().is_some() || dtype.conv_to::<FixedAscii<8>>().is_some() {
        return Element::FixedText(to_u64(size));
    }
    if size > 8 || dtype.conv_to::<f64>().is_none() {
        return Element::Other(format!(
            "elements of {size} bytes that are neither numbers, strings nor bytes (such as rows of a PyTables table)"
        ));
    }
    match dtype.to_descriptor() {
        Ok(TypeDescriptor::Enum(of)) if dtype.byte_order() == ByteOrder::LittleEndian || size == 1 => {
            match converted(&of.base_type()) {
                Element::Number { dtype, .. } => exact(dtype),
                other => other,
            }
        }
        Ok(described) => converted(&described),
        Err(error) => Element::Other(error.to_string()),
    }
}

/// Numbers that the library converts: big-endian numbers, enumerations, and floats of unusual precision.
fn converted(described: &TypeDescriptor) -> Element {
    let dtype = match described {
        TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => {
            let is = |native: &DType| with_native!(*native, T => T::type_descriptor()) == *described;
            DType::ALL.into_iter().find(is)
        }
        // Two-byte floats other than f16, such as bfloat16, need the wider type.
        TypeDescriptor::Float(_) if described.size() <= 4 => Some(DType::F32),
        TypeDescriptor::Float(_) => Some(DType::F64),
        _ => None,
    };
    let Some(dtype) = dtype else {
        return Element::Other(format!("elements of type {described}"));
    };
    Element::Number { dtype, exact: false }
}
