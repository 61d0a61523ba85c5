//! Writes a dictionary of tensors and strings as a pickle that PyTorch's restricted loader accepts.

use crate::dtypes::torch_storage;
use packds_format::DType;

/// Writes a pickle in protocol 2.
pub(crate) struct PickleWriter {
    out: Vec<u8>,
}

impl PickleWriter {
    pub(super) fn new() -> Self {
        Self { out: vec![0x80, 2] }
    }

    /// Starts a dictionary. Its keys and values must be written alternately.
    pub(super) fn begin_dict(&mut self) {
        self.out.extend_from_slice(b"}(");
    }

    pub(super) fn end_dict(&mut self) {
        self.out.push(b'u');
    }

    pub(super) fn text(&mut self, text: &str) {
        self.out.push(b'X');
        // This cannot overflow, because a pack's metadata is limited to far less than 4 GiB.
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.out.extend_from_slice(&len.to_le_bytes());
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn texts(&mut self, texts: &[String]) {
        self.out.extend_from_slice(b"](");
        texts.iter().for_each(|text| self.text(text));
        self.out.push(b'e');
    }

    /// Writes a tensor in C order. Its data is in the member `key` of the zip file.
    pub(super) fn tensor(&mut self, dtype: DType, shape: &[u64], key: &str) {
        // Newer types do not have their own storage class.
        let (class, typed) = match torch_storage(dtype) {
            Some(class) => (format!("torch\n{class}"), true),
            None => ("torch.storage\nUntypedStorage".to_owned(), false),
        };
        let version = if typed { "2" } else { "3" };
        self.global(&format!("torch._utils\n_rebuild_tensor_v{version}"));
        let elements = |dims: &[u64]| dims.iter().fold(1_u64, |n, dim| n.saturating_mul(*dim));
        let n_storage = if typed { elements(shape) } else { elements(shape).saturating_mul(dtype.size()) };
        self.out.extend_from_slice(b"((");
        self.text("storage");
        self.global(&class);
        self.text(key);
        self.text("cpu");
        self.int(n_storage);
        // End the tuple and mark it as a persistent id. The offset follows.
        self.out.extend_from_slice(b"tQ");
        self.int(0);
        self.sizes(shape);
        let strides: Vec<u64> = (1..=shape.len()).map(|at| elements(shape.get(at..).unwrap_or_default())).collect();
        self.sizes(&strides);
        // No gradient, no hooks.
        self.out.push(0x89);
        self.global("collections\nOrderedDict");
        self.out.extend_from_slice(b")R");
        if !typed {
            self.global(&format!("torch\n{}", dtype.numpy()));
        }
        self.out.extend_from_slice(b"tR");
    }

    fn global(&mut self, name: &str) {
        self.out.push(b'c');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'\n');
    }

    fn sizes(&mut self, sizes: &[u64]) {
        self.out.push(b'(');
        sizes.iter().for_each(|n| self.int(*n));
        self.out.push(b't');
    }

    fn int(&mut self, n: u64) {
        match i32::try_from(n) {
            Ok(short) => {
                self.out.push(b'J');
                self.out.extend_from_slice(&short.to_le_bytes());
            }
            Err(_) => {
                // The highest bit is the sign, so a ninth byte of zero keeps the number positive.
                self.out.extend_from_slice(&[0x8a, 9]);
                self.out.extend_from_slice(&n.to_le_bytes());
                self.out.push(0);
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(b'.');
        self.out
    }
}
