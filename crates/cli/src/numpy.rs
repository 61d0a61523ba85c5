//! Python expressions that map the fields of a pack with NumPy alone.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use packds_format::{Field, PackFile, Role};
use packds_reader::{Pack, PackBytes, ReadError};

/// One expression per body field, the image first, or the reason why there are none.
pub(crate) enum Numpy {
    /// Python expressions.
    Lines(Vec<String>),
    /// Why the file contains no plain array of samples.
    None(&'static str),
}

impl Numpy {
    pub(crate) fn of(pack: &Pack) -> Result<Self, ReadError> {
        let schema = pack.schema();
        let Some(file) = pack.one() else {
            return Ok(Self::None("none: the samples of a set are in several files"));
        };
        if !schema.is_strided() {
            let compressed = schema.body().any(|(_, f)| !f.codec.is_none());
            return Ok(Self::None(if compressed {
                "none: chunks are compressed"
            } else {
                "none: a field has variable-size items, so samples have no fixed stride"
            }));
        }
        if pack.n_samples() == 0 {
            return Ok(Self::None("none: no samples"));
        }
        let path = python_path(pack.file_path());
        let mut fields: Vec<(usize, &Field)> = schema.body().map(|(_, f)| f).enumerate().collect();
        if let [(_, field)] = fields.as_slice() {
            return Ok(Self::Lines(vec![memmap(file, field, &path)]));
        }
        let parts = pack.located(pack.strided_parts())?.unwrap_or_default();
        fields.sort_by_key(|(position, field)| (field.role != Some(Role::Image), *position));
        let lines = fields.into_iter().map(|(position, field)| {
            let part = parts.get(position).map_or(0, |part| part.offset);
            strided(file, field, part, &path)
        });
        Ok(Self::Lines(lines.collect()))
    }
}

/// A single field fills the body, so samples are contiguous.
fn memmap(pack: &PackFile<PackBytes>, field: &Field, path: &str) -> String {
    let mut shape = vec![pack.n_samples()];
    shape.extend(&field.shape);
    let (dtype, offset, shape) = (field.dtype.numpy(), pack.header().data_off, tuple(&shape));
    format!("np.memmap({path}, dtype='{dtype}', mode='r', offset={offset}, shape={shape})")
}

/// With several fields, each field has the same offset in every chunk. The last chunk is padded to full length.
fn strided(pack: &PackFile<PackBytes>, field: &Field, part: u64, path: &str) -> String {
    let header = pack.header();
    let mut shape = vec![pack.n_chunks(), u64::from(header.chunk_samples)];
    shape.extend(&field.shape);
    let mut strides = vec![field.dtype.size()];
    for n in field.shape.iter().rev() {
        strides.push(strides.last().copied().unwrap_or(1).saturating_mul(*n));
    }
    strides.push(header.chunk_stride);
    strides.reverse();
    format!(
        "np.ndarray({}, dtype='{}', buffer=np.memmap({path}, dtype='uint8', mode='r'), offset={}, strides={})",
        tuple(&shape),
        field.dtype.numpy(),
        header.data_off.saturating_add(part),
        tuple(&strides)
    )
}

fn tuple(numbers: &[u64]) -> String {
    let items: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match items.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A path as a Python literal: a string, or bytes if it is not UTF-8.
fn python_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let hex = |byte: u32| format!("\\x{byte:02x}");
    let quoted = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        _ if c.is_control() => hex(u32::from(c)),
        _ => c.to_string(),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("'{}'", text.chars().map(quoted).collect::<String>()),
        Err(_) => {
            let each = |&byte: &u8| match byte {
                0x80.. => hex(byte.into()),
                _ => quoted(char::from(byte)),
            };
            format!("b'{}'", bytes.iter().map(each).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn paths_are_python_literals() {
        let of = |bytes: &[u8]| python_path(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(of(b"a b/c.pack"), "'a b/c.pack'");
        assert_eq!(of(b"it's\\\n"), r"'it\'s\\\x0a'");
        assert_eq!(of(b"\xff'"), r"b'\xff\''");
        assert_eq!(of("\u{e9}".as_bytes()), "'\u{e9}'");
    }

    #[test]
    fn tuples_of_one_have_a_comma() {
        assert_eq!(tuple(&[3]), "(3,)");
        assert_eq!(tuple(&[3, 4]), "(3, 4)");
    }
}
