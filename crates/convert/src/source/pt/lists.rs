//! Converts Python lists of numbers or strings in a `torch.save` file to arrays with one item per list element. Labels are often
//! stored this way.

use packds_system::to_u64;
use std::path::Path;
use std::sync::Arc;

use packds_format::DType;

use super::super::arrays::Described;
use super::super::npy::Elements;
use super::super::pickle::{Id, Node, Tree};
use super::super::spool::{Spool, SpoolFolder};
use super::super::store::OpenFile;
use crate::error::ConvertError;

/// Maximum total size of the strings of a list, in bytes. Each text is padded to the length of the longest.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// A list converted to an array: its concatenated elements.
pub(super) struct Listed {
    elements: Elements,
    n: usize,
    bytes: Vec<u8>,
}

impl Listed {
    /// Converts the list `items`. `None` unless all are numbers, or all are short strings.
    pub(super) fn of(tree: &Tree, items: &[Id]) -> Option<Self> {
        let bytes = match tree.get(*items.first()?) {
            Node::Text(_) => return Self::of_texts(tree, items),
            _ => integers(tree, items),
        };
        let (dtype, bytes) = match bytes {
            Some(bytes) => (DType::I64, bytes),
            None => (DType::F64, floats(tree, items)?),
        };
        let swapped = false;
        Some(Self { elements: Elements::Numbers { dtype, swapped }, n: items.len(), bytes })
    }

    fn of_texts(tree: &Tree, items: &[Id]) -> Option<Self> {
        let texts: Vec<&str> = items.iter().map(|id| tree.text(*id)).collect::<Option<_>>()?;
        let width = texts.iter().map(|text| text.len()).max()?.max(1);
        let all = width.checked_mul(texts.len());
        all.filter(|all| *all <= MAX_TEXT_BYTES)?;
        let mut bytes = Vec::new();
        for text in &texts {
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize(bytes.len() + width - text.len(), 0);
        }
        Some(Self {
            elements: Elements::Text { bytes: u64::try_from(width).ok()?, wide: false, swapped: false },
            n: texts.len(),
            bytes,
        })
    }

    /// Writes the elements to a temporary file. `take` then reads them from there as the array `name`. Errors name `source`.
    pub(super) fn unpack(
        self,
        name: &str,
        (source, folder): (&Path, &SpoolFolder),
        take: impl FnOnce(&Arc<OpenFile>, &Described<'_>) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let mut spool = Spool::create(folder)?;
        spool.append(&self.bytes)?;
        let file = Arc::new(spool.finish(source)?);
        let described = Described {
            name,
            elements: self.elements,
            shape: &[to_u64(self.n)],
            offset: 0,
            room: file.bytes,
            stride: None,
        };
        take(&file, &described)
    }
}

fn integers(tree: &Tree, items: &[Id]) -> Option<Vec<u8>> {
    let bytes = items.iter().map(|id| match tree.get(*id) {
        Node::Int(number) => Some(number.to_le_bytes()),
        Node::Bool(is) => Some(i64::from(*is).to_le_bytes()),
        _ => None,
    });
    Some(bytes.collect::<Option<Vec<_>>>()?.concat())
}

fn floats(tree: &Tree, items: &[Id]) -> Option<Vec<u8>> {
    let bytes = items.iter().map(|id| match tree.get(*id) {
        Node::Float(number) => Some(number.to_le_bytes()),
        // An integer in a list of floats becomes a float.
        Node::Int(number) => i32::try_from(*number).ok().map(|n| f64::from(n).to_le_bytes()),
        _ => None,
    });
    Some(bytes.collect::<Option<Vec<_>>>()?.concat())
}
