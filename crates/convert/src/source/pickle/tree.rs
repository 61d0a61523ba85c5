//! The content of a pickle: values that refer to each other by index.

/// The index of a value.
pub(in crate::source) type Id = u32;

/// Bytes or text. Short ones are in memory, long ones in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) enum Bytes {
    Here(Box<[u8]>),
    /// Offset in the file, and length.
    Far(u64, u64),
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// An integer that does not fit in 64 bits.
    Huge,
    Bytes(Bytes),
    /// Text in UTF-8, or in any encoding if written by Python 2.
    Text(Bytes),
    List(Vec<Id>),
    Tuple(Box<[Id]>),
    /// Keys and values in their original order.
    Dict(Vec<(Id, Id)>),
    /// An imported name: `module.name`.
    Global(Box<str>),
    /// The result of a call: the name of the function, its arguments, and the state set afterwards.
    Made {
        callable: Id,
        args: Id,
        state: Option<Id>,
    },
    /// Entries added to the result of a call.
    MadeDict(Vec<(Id, Id)>),
    /// A reference to data outside the pickle.
    Persistent(Id),
}

/// All values and the root.
#[derive(Debug)]
pub(in crate::source) struct Tree {
    pub(in crate::source) nodes: Vec<Node>,
    pub(in crate::source) root: Id,
    /// Offset of the end of the pickle in the file.
    pub(in crate::source) end: u64,
}

impl Tree {
    /// The value with this index.
    pub(in crate::source) fn get(&self, id: Id) -> &Node {
        let node = usize::try_from(id).ok().and_then(|id| self.nodes.get(id));
        node.unwrap_or(&Node::None)
    }

    /// The text of a value, if it is a short string.
    pub(in crate::source) fn text(&self, id: Id) -> Option<&str> {
        let id = match self.made(id) {
            // Python 3 writes bytes this way for Python 2.
            Some(("_codecs.encode", [text, ..], _)) => *text,
            Some(("__builtin__.bytes" | "builtins.bytes", [], _)) => return Some(""),
            _ => id,
        };
        match self.get(id) {
            Node::Text(Bytes::Here(text)) | Node::Bytes(Bytes::Here(text)) => str::from_utf8(text).ok(),
            _ => None,
        }
    }

    pub(in crate::source) fn int(&self, id: Id) -> Option<i64> {
        match self.get(id) {
            Node::Int(n) => Some(*n),
            Node::Bool(b) => Some((*b).into()),
            _ => None,
        }
    }

    pub(in crate::source) fn global(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Node::Global(name) => Some(name),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub(in crate::source) fn items(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Node::List(items) => Some(items),
            Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a plain or ordered dictionary.
    pub(in crate::source) fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.get(id) {
            Node::Dict(entries) | Node::MadeDict(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under this text key.
    pub(in crate::source) fn value(&self, dict: Id, key: &str) -> Option<Id> {
        let mut entries = self.entries(dict)?.iter();
        entries.find(|(k, _)| self.text(*k) == Some(key)).map(|(_, value)| *value)
    }

    /// Name, arguments and state of a call's result.
    pub(in crate::source) fn made(&self, id: Id) -> Option<(&str, &[Id], Option<Id>)> {
        match self.get(id) {
            Node::Made { callable, args, state } => Some((self.global(*callable)?, self.items(*args)?, *state)),
            _ => None,
        }
    }

    /// The values of a tuple or list of sizes.
    pub(in crate::source) fn sizes(&self, id: Id) -> Option<Vec<u64>> {
        // A torch.Size is stored as a call with a tuple.
        let id = match self.made(id) {
            Some(("torch.Size", [inner], _)) => *inner,
            _ => id,
        };
        let size = |id: &Id| self.int(*id).and_then(|n| u64::try_from(n).ok());
        let items = self.items(id)?;
        // Arrays have at most 64 dimensions.
        (items.len() <= 64).then(|| items.iter().map(size).collect())?
    }

    /// A description of a value, for messages.
    pub(in crate::source) fn kind(&self, id: Id) -> String {
        match self.get(id) {
            Node::None => "None".to_owned(),
            Node::Bool(_) => "a bool".to_owned(),
            Node::Int(_) | Node::Huge => "an integer".to_owned(),
            Node::Float(_) => "a float".to_owned(),
            Node::Bytes(_) => "bytes".to_owned(),
            Node::Text(_) => "a string".to_owned(),
            Node::List(items) => format!("a list of {}", items.len()),
            Node::Tuple(items) => format!("a tuple of {}", items.len()),
            Node::Dict(entries) | Node::MadeDict(entries) => {
                format!("a dictionary of {}", entries.len())
            }
            Node::Global(name) => format!("the name {name}"),
            Node::Made { callable, .. } => match self.global(*callable) {
                Some(name) => format!("an object of {name}"),
                None => "an object".to_owned(),
            },
            Node::Persistent(_) => "a storage".to_owned(),
        }
    }
}
