//! LitData's binary form of lists and dictionaries: a tag before each value, and lists of one type without tags. Datasets of early
//! versions have JSON instead.

use serde_json::{Map, Number, Value};

use super::super::declared;
use super::super::gather::Raw;
use crate::error::ConvertError;

/// Maximum depth of dictionaries.
const MAX_DEPTH: usize = 64;
/// Larger first bytes are those of JSON.
const LARGEST_TAG: u8 = 0x20;

/// The JSON text of a value, without whitespace.
pub(super) fn json(raw: &Raw<'_>) -> Result<String, ConvertError> {
    match raw.head(1)?.first() {
        Some(tag) if *tag <= LARGEST_TAG => {
            let bytes = raw.data()?;
            let mut rest = Rest { bytes: &bytes, is_sound: false };
            let value = rest.value(0).map_err(|reason| match rest.is_sound {
                true => declared::no_json_number(raw, reason),
                false => raw.wrong(reason),
            })?;
            if !rest.bytes.is_empty() {
                return Err(raw.wrong(format!("expected no bytes after the value, found {}", rest.bytes.len())));
            }
            Ok(value.to_string())
        }
        _ => declared::json(raw),
    }
}

/// The bytes that are not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    /// Whether the error is about a number that only JSON cannot express.
    is_sound: bool,
}

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let short = || format!("expected {n} more bytes of the value, found {}", self.bytes.len());
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or_else(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(u8::from_le_bytes(self.fixed()?))
    }

    /// A number of items, each of at least `bytes` bytes.
    fn count(&mut self, bytes: usize) -> Result<usize, String> {
        let n = u32::from_le_bytes(self.fixed()?);
        let fits = |n: &usize| n.checked_mul(bytes).is_some_and(|all| all <= self.bytes.len());
        let found = self.bytes.len();
        let n = usize::try_from(n).ok();
        n.filter(fits).ok_or_else(|| format!("expected fewer items than fit into {found} bytes, found more"))
    }

    fn text(&mut self) -> Result<String, String> {
        let n = self.count(1)?;
        String::from_utf8(self.take(n)?.to_vec()).map_err(|e| format!("expected text: {e}"))
    }

    fn integer(&mut self) -> Result<Value, String> {
        Ok(i64::from_le_bytes(self.fixed()?).into())
    }

    fn float(&mut self) -> Result<Value, String> {
        let number = f64::from_le_bytes(self.fixed()?);
        let json = Number::from_f64(number).map(Value::Number);
        self.is_sound = json.is_none();
        json.ok_or_else(|| format!("expected a number that JSON can express, found {number}"))
    }

    fn boolean(&mut self) -> Result<Value, String> {
        Ok((self.byte()? != 0).into())
    }

    fn list(&mut self, bytes: usize, item: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        let n = self.count(bytes)?;
        (0..n).map(|_| item(self)).collect()
    }

    /// A value after its tag.
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("expected at most {MAX_DEPTH} nested dictionaries, found more"));
        }
        match self.byte()? {
            0 => {
                let n = self.count(1)?;
                serde_json::from_slice(self.take(n)?).map_err(|e| format!("expected JSON: {e}"))
            }
            1 => self.list(4, |rest| rest.text().map(Value::String)),
            2 => self.list(8, Self::integer),
            3 => self.list(8, Self::float),
            4 => self.list(1, Self::boolean),
            5 => {
                let n = self.count(5)?;
                let pairs = (0..n).map(|_| Ok((self.text()?, self.value(depth + 1)?)));
                pairs.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            6 => self.records(),
            7 => self.text().map(Value::String),
            8 => self.integer(),
            9 => self.float(),
            10 => self.boolean(),
            11 => Ok(Value::Null),
            tag => Err(format!("expected the tag of a value, found {tag}")),
        }
    }

    /// Dictionaries with the same keys, which are stored once.
    fn records(&mut self) -> Result<Value, String> {
        let n = u32::from_le_bytes(self.fixed()?);
        let n_keys = self.count(4)?;
        let keys = (0..n_keys).map(|_| self.text()).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() && n > 0 {
            return Err(format!("expected keys for {n} dictionaries, found none"));
        }
        let mut records = Vec::new();
        for _ in 0..n {
            let pairs = keys.iter().map(|key| Ok((key.clone(), self.cell()?)));
            records.push(Value::Object(pairs.collect::<Result<_, String>>()?));
        }
        Ok(Value::Array(records))
    }

    /// A value of a record.
    fn cell(&mut self) -> Result<Value, String> {
        match self.byte()? {
            0x10 => Ok(Value::Null),
            0x11 => self.text().map(Value::String),
            0x12 => self.integer(),
            0x13 => self.float(),
            0x14 => self.boolean(),
            tag => Err(format!("expected the tag of a value, found {tag}")),
        }
    }
}
