//! The virtual machine of a pickle.

use packds_system::{to_u64, to_usize};
use std::collections::HashMap;

use super::input::Input;
use super::tree::{Bytes, Id, Node, Tree};
use super::{FAR, MAX_NODES, MAX_STACK, MAX_TEXT};
use crate::error::ConvertError;
use crate::source::store::OpenFile;

/// Functions and classes that merely wrap data. Only these may be called.
const CALLS: [&str; 22] = [
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.bytes",
    "__builtin__.bytes",
    "collections.OrderedDict",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
    "numpy.dtype",
    "numpy.ndarray",
    "torch.Size",
    "torch.device",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch.utils.data.dataset.TensorDataset",
    "torch.serialization._get_layout",
    "torch.storage._load_from_bytes",
];

/// Reads the pickle between the offsets `start` and `end` of a file.
pub(in crate::source) fn read_pickle(file: &OpenFile, start: u64, end: u64) -> Result<Tree, ConvertError> {
    let mut machine = Machine {
        input: Input::new(file, start, end),
        nodes: vec![Node::None, Node::Bool(false), Node::Bool(true), Node::Tuple(Box::default())],
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        next_memo: 0,
        text_bytes: 0,
        op_at: start,
    };
    loop {
        machine.op_at = machine.input.at;
        let op = machine.input.byte()?;
        if op == b'.' {
            let root = machine.pop()?;
            return Ok(Tree { nodes: machine.nodes, root, end: machine.input.at });
        }
        machine.step(op)?;
    }
}

const NONE: Id = 0;
const FALSE: Id = 1;
const TRUE: Id = 2;
const EMPTY_TUPLE: Id = 3;

struct Machine<'a> {
    input: Input<'a>,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    /// Used for lookup only, so its order does not matter.
    memo: HashMap<u32, Id>,
    next_memo: u32,
    text_bytes: u64,
    op_at: u64,
}

impl Machine<'_> {
    fn step(&mut self, op: u8) -> Result<(), ConvertError> {
        match op {
            b'(' => self.mark(),
            b'0' => self.pop_or_mark(),
            b'1' => self.pop_mark().map(|_| ()),
            b'2' => {
                let top = self.pop()?;
                self.push(top)?;
                self.push(top)
            }
            0x80 => self.protocol(),
            0x95 => self.input.array::<8>().map(|_| ()),
            b'N' => self.push(NONE),
            0x88 => self.push(TRUE),
            0x89 => self.push(FALSE),
            b')' => self.push(EMPTY_TUPLE),
            b'I' | b'L' | b'F' | b'K' | b'M' | b'J' | b'G' | 0x8a | 0x8b => self.number(op),
            b'S' | b'T' | b'U' | b'V' | b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e | 0x96 => self.string(op),
            b']' | b'}' | b'l' | b'd' | b't' | 0x85..=0x87 | b'a' | b'e' | b's' | b'u' => self.container(op),
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.memory(op),
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'b' | b'P' | b'Q' | b'i' | b'o' => self.call(op),
            _ => {
                let reason = format!("unknown opcode {op:#04x}");
                Err(self.input.wrong(self.op_at, reason))
            }
        }
    }

    fn protocol(&mut self) -> Result<(), ConvertError> {
        match self.input.byte()? {
            0..=5 => Ok(()),
            version => {
                let reason = format!("expected protocol 0 to 5, found {version}");
                Err(self.input.wrong(self.op_at, reason))
            }
        }
    }

    fn wrong<T>(&self, reason: &str) -> Result<T, ConvertError> {
        Err(self.input.wrong(self.op_at, reason))
    }

    fn push(&mut self, id: Id) -> Result<(), ConvertError> {
        if self.stack.len() >= MAX_STACK {
            return self.wrong("the pickle puts too many values on the stack");
        }
        self.stack.push(id);
        Ok(())
    }

    fn push_node(&mut self, node: Node) -> Result<(), ConvertError> {
        let id = Id::try_from(self.nodes.len());
        match id {
            Ok(id) if self.nodes.len() < MAX_NODES => {
                self.nodes.push(node);
                self.push(id)
            }
            _ => self.wrong("the pickle has too many values"),
        }
    }

    fn node(&mut self, id: Id) -> Option<&mut Node> {
        usize::try_from(id).ok().and_then(|id| self.nodes.get_mut(id))
    }

    fn mark(&mut self) -> Result<(), ConvertError> {
        if self.marks.len() >= MAX_STACK {
            return self.wrong("the pickle has too many marks");
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, ConvertError> {
        if self.stack.len() <= self.floor() {
            return self.wrong("expected a value on the stack, found none");
        }
        Ok(self.stack.pop().unwrap_or(NONE))
    }

    fn top(&self) -> Result<Id, ConvertError> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.floor() => Ok(*top),
            _ => self.wrong("expected a value on the stack, found none"),
        }
    }

    fn pop_or_mark(&mut self) -> Result<(), ConvertError> {
        if self.stack.len() == self.floor() && !self.marks.is_empty() {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    /// Pops all values above the last mark, and the mark.
    fn pop_mark(&mut self) -> Result<Vec<Id>, ConvertError> {
        match self.marks.pop() {
            Some(mark) if mark <= self.stack.len() => Ok(self.stack.split_off(mark)),
            _ => self.wrong("expected a mark on the stack, found none"),
        }
    }

    fn number(&mut self, op: u8) -> Result<(), ConvertError> {
        let node = match op {
            b'K' => Node::Int(self.input.byte()?.into()),
            b'M' => Node::Int(u16::from_le_bytes(self.input.array()?).into()),
            b'J' => Node::Int(i32::from_le_bytes(self.input.array()?).into()),
            // This is the only big-endian number in a pickle.
            b'G' => {
                let mut bytes: [u8; 8] = self.input.array()?;
                bytes.reverse();
                Node::Float(f64::from_le_bytes(bytes))
            }
            0x8a => {
                let n = self.input.byte()?;
                self.long(n.into())?
            }
            0x8b => {
                let n = u32::from_le_bytes(self.input.array()?);
                self.long(n.into())?
            }
            _ => {
                let line = self.input.line()?;
                let text = String::from_utf8_lossy(&line);
                match (op, text.as_ref()) {
                    (b'I', "00") => return self.push(FALSE),
                    (b'I', "01") => return self.push(TRUE),
                    (b'F', text) => match text.parse() {
                        Ok(number) => Node::Float(number),
                        Err(_) => return self.wrong("expected a number"),
                    },
                    (_, text) => match text.trim_end_matches('L').parse() {
                        Ok(number) => Node::Int(number),
                        Err(_) if text.trim_end_matches('L').len() > 18 => Node::Huge,
                        Err(_) => return self.wrong("expected a whole number"),
                    },
                }
            }
        };
        self.push_node(node)
    }

    /// An integer of `n` bytes.
    fn long(&mut self, n: u64) -> Result<Node, ConvertError> {
        if n > 16 {
            self.input.skip(n)?;
            return Ok(Node::Huge);
        }
        let mut bytes = self.input.bytes(n)?;
        // Removes the high zero bytes that a positive number does not need.
        while let [.., low, 0] = bytes.as_slice()
            && low & 0x80 == 0
        {
            bytes.pop();
        }
        if bytes.len() > 8 {
            return Ok(Node::Huge);
        }
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        for (to, from) in wide.iter_mut().zip(&bytes) {
            *to = *from;
        }
        Ok(Node::Int(i64::from_le_bytes(wide)))
    }

    fn string(&mut self, op: u8) -> Result<(), ConvertError> {
        if op == b'S' {
            let text = unquoted(&self.input.line()?);
            return self.push_node(Node::Text(Bytes::Here(text.into())));
        }
        if op == b'V' {
            let line = self.input.long_line(MAX_TEXT.saturating_sub(self.text_bytes))?;
            self.text_bytes += to_u64(line.len());
            let Some(text) = unescaped(&line) else {
                return self.wrong("invalid escape sequence in a string");
            };
            return self.push_node(Node::Text(Bytes::Here(text.into_bytes().into())));
        }
        let n = match op {
            b'U' | b'C' | 0x8c => self.input.byte()?.into(),
            b'T' | b'X' | b'B' => u32::from_le_bytes(self.input.array()?).into(),
            _ => u64::from_le_bytes(self.input.array()?),
        };
        let bytes = if n > FAR {
            Bytes::Far(self.input.skip(n)?, n)
        } else {
            self.text_bytes += n;
            if self.text_bytes > MAX_TEXT {
                return self.wrong("the pickle has too much text");
            }
            Bytes::Here(self.input.bytes(n)?.into())
        };
        let is_text = matches!(op, b'U' | b'T' | b'X' | 0x8c | 0x8d);
        self.push_node(if is_text { Node::Text(bytes) } else { Node::Bytes(bytes) })
    }

    fn container(&mut self, op: u8) -> Result<(), ConvertError> {
        match op {
            b']' => self.push_node(Node::List(Vec::new())),
            b'}' => self.push_node(Node::Dict(Vec::new())),
            b'l' => {
                let items = self.pop_mark()?;
                self.push_node(Node::List(items))
            }
            b't' => {
                let items = self.pop_mark()?;
                self.push_node(Node::Tuple(items.into()))
            }
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0x84..op {
                    items.push(self.pop()?);
                }
                items.reverse();
                self.push_node(Node::Tuple(items.into()))
            }
            b'd' => {
                let items = self.pop_mark()?;
                let entries = self.pairs(&items)?;
                self.push_node(Node::Dict(entries))
            }
            b'a' | b'e' => {
                let items = if op == b'a' { vec![self.pop()?] } else { self.pop_mark()? };
                let list = self.top()?;
                match self.node(list) {
                    Some(Node::List(list)) => {
                        list.extend(items);
                        Ok(())
                    }
                    _ => self.wrong("expected a list to append to"),
                }
            }
            _ => {
                let items = if op == b's' {
                    let value = self.pop()?;
                    vec![self.pop()?, value]
                } else {
                    self.pop_mark()?
                };
                let entries = self.pairs(&items)?;
                self.set_items(entries)
            }
        }
    }

    fn pairs(&self, items: &[Id]) -> Result<Vec<(Id, Id)>, ConvertError> {
        let pairs = items.as_chunks::<2>();
        if !pairs.1.is_empty() {
            return self.wrong("expected pairs of keys and values");
        }
        Ok(pairs.0.iter().map(|[key, value]| (*key, *value)).collect())
    }

    fn set_items(&mut self, entries: Vec<(Id, Id)>) -> Result<(), ConvertError> {
        let dict = self.top()?;
        match self.node(dict) {
            Some(Node::Dict(dict) | Node::MadeDict(dict)) => {
                dict.extend(entries);
                Ok(())
            }
            _ => self.wrong("expected a dictionary to add entries to"),
        }
    }

    fn memory(&mut self, op: u8) -> Result<(), ConvertError> {
        let number = match op {
            0x94 => self.next_memo,
            b'q' | b'h' => self.input.byte()?.into(),
            b'r' | b'j' => u32::from_le_bytes(self.input.array()?),
            _ => {
                let line = self.input.line()?;
                let number = str::from_utf8(&line).ok().and_then(|n| n.parse().ok());
                match number {
                    Some(number) => number,
                    None => return self.wrong("expected a memo index"),
                }
            }
        };
        if matches!(op, b'g' | b'h' | b'j') {
            return match self.memo.get(&number) {
                Some(&id) => self.push(id),
                None => self.wrong("expected a value in the memo, found none"),
            };
        }
        let top = self.top()?;
        if self.memo.len() >= MAX_NODES {
            return self.wrong("the pickle has too many values in the memo");
        }
        self.memo.insert(number, top);
        self.next_memo = self.next_memo.saturating_add(1);
        Ok(())
    }

    fn call(&mut self, op: u8) -> Result<(), ConvertError> {
        match op {
            b'c' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.push_global(&module, &name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |id| match self.nodes.get(to_usize(id)) {
                    Some(Node::Text(Bytes::Here(text))) => Some(text.to_vec()),
                    _ => None,
                };
                match (text(module), text(name)) {
                    (Some(module), Some(name)) => self.push_global(&module, &name),
                    _ => self.wrong("expected the name of a class or function"),
                }
            }
            b'R' | 0x81 => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.made(callable, args)
            }
            0x92 => {
                let (_, args, callable) = (self.pop()?, self.pop()?, self.pop()?);
                self.made(callable, args)
            }
            b'b' => {
                let state = self.pop()?;
                let object = self.top()?;
                match self.node(object) {
                    Some(Node::Made { state: slot, .. }) => {
                        *slot = Some(state);
                        Ok(())
                    }
                    // The state holds attributes of a dictionary, such as the versions in a state_dict.
                    Some(Node::MadeDict(_)) => Ok(()),
                    _ => self.wrong("expected an object to restore"),
                }
            }
            b'Q' => {
                let id = self.pop()?;
                self.push_node(Node::Persistent(id))
            }
            b'P' => self.wrong("storages referenced by a string are not supported"),
            _ => {
                let name = if op == b'i' {
                    let (module, name) = (self.input.line()?, self.input.line()?);
                    joined(&module, &name)
                } else {
                    "an object".to_owned()
                };
                self.refuse(&name)
            }
        }
    }

    fn push_global(&mut self, module: &[u8], name: &[u8]) -> Result<(), ConvertError> {
        self.push_node(Node::Global(joined(module, name).into()))
    }

    /// Pushes the result of a call that merely wraps data. Refuses any other call.
    fn made(&mut self, callable: Id, args: Id) -> Result<(), ConvertError> {
        let name = match self.nodes.get(to_usize(callable)) {
            Some(Node::Global(name)) => name.to_string(),
            _ => "something without a name".to_owned(),
        };
        if name == "collections.OrderedDict" {
            return self.push_node(Node::MadeDict(Vec::new()));
        }
        if !CALLS.contains(&name.as_str()) {
            return self.refuse(&name);
        }
        self.push_node(Node::Made { callable, args, state: None })
    }

    fn refuse(&self, name: &str) -> Result<(), ConvertError> {
        let name = name.escape_default();
        let reason = format!("the pickle calls {name}, which could run arbitrary code");
        let hint = "nothing was called; save only tensors or arrays, in a dictionary, tuple or list";
        Err(self.input.refused(self.op_at, reason, hint))
    }
}

fn joined(module: &[u8], name: &[u8]) -> String {
    let (module, name) = (String::from_utf8_lossy(module), String::from_utf8_lossy(name));
    format!("{module}.{name}")
}

/// Decodes a string of protocol 0: one byte per character, with other characters as `\u0131` or `\U0001f600`. `None` if
/// an escape is invalid.
fn unescaped(line: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        if digits == 0 {
            text.push(char::from(byte));
            rest = after;
            continue;
        }
        let number = str::from_utf8(after.get(1..=digits)?).ok()?;
        text.push(char::from_u32(u32::from_str_radix(number, 16).ok()?)?);
        rest = after.get(digits + 1..)?;
    }
    Some(text)
}

/// A string of protocol 0 without its quotes. Escapes are not decoded, because names contain none.
fn unquoted(line: &[u8]) -> Vec<u8> {
    let inner = line.get(1..line.len().saturating_sub(1));
    inner.unwrap_or_default().to_vec()
}
