//! Source paths, compressed in groups for random access. See docs/reference/format.md, "Paths".

use crate::le::{self, len_u64};
use crate::{FormatError, codec};
use packds_system::{counted, to_usize};

/// Paths per group. The last group may have fewer.
pub const PATH_GROUP: u64 = 4096;
/// Bytes before the group offsets.
const HEAD: u64 = 16;
/// Zstandard level.
const LEVEL: i32 = 3;
/// Maximum decoded size of a group. 4096 paths of 4096 bytes need about half of it.
const MAX_GROUP_BYTES: u64 = 32 << 20;

/// Collects paths in sample order.
#[derive(Debug, Default)]
pub struct Paths {
    n: u64,
    group: Vec<u8>,
    /// The end of each path in the open group.
    ends: Vec<u32>,
    /// Offset and decoded length of each finished group.
    groups: Vec<(u64, u64)>,
    packed: Vec<u8>,
}

impl Paths {
    /// Adds the next sample's path: any bytes, with components separated by `/`, at most 64 KiB.
    ///
    /// # Errors
    /// [`FormatError::LimitExceeded`] if the path is longer, [`FormatError::Io`] if the compressor fails.
    pub fn push(&mut self, path: &[u8]) -> Result<(), FormatError> {
        FormatError::check_limit("bytes of a path", 1 << 16, len_u64(path))?;
        self.group.extend_from_slice(path);
        let end = u32::try_from(self.group.len()).unwrap_or(u32::MAX);
        self.ends.push(end);
        self.n += 1;
        if len_u64(&self.ends) == PATH_GROUP { self.close_group() } else { Ok(()) }
    }

    /// Number of paths.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there are no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    fn close_group(&mut self) -> Result<(), FormatError> {
        let mut raw = Vec::new();
        raw.extend_from_slice(&0_u32.to_le_bytes());
        self.ends.iter().for_each(|end| raw.extend_from_slice(&end.to_le_bytes()));
        raw.append(&mut self.group);
        self.ends.clear();
        FormatError::check_limit("bytes of 4096 paths", MAX_GROUP_BYTES, len_u64(&raw))?;
        self.groups.push((len_u64(&self.packed), len_u64(&raw)));
        self.packed.extend_from_slice(&codec::compress(&raw, LEVEL)?);
        Ok(())
    }

    /// The section's bytes.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, FormatError> {
        if !self.ends.is_empty() {
            self.close_group()?;
        }
        let mut out = Vec::new();
        out.extend_from_slice(&self.n.to_le_bytes());
        out.extend_from_slice(&len_u64(&self.groups).to_le_bytes());
        for (offset, decoded) in &self.groups {
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&decoded.to_le_bytes());
        }
        out.append(&mut self.packed);
        Ok(out)
    }
}

/// Decompresses the group that contains the path of `sample` into `out`. Returns the path's index in the group.
pub(crate) fn read_group(section: &[u8], n_samples: u64, sample: u64, out: &mut Vec<u8>) -> Result<u64, FormatError> {
    let group = sample / PATH_GROUP;
    let bad = |reason: String| FormatError::BadPaths { group, reason };
    let n_groups = n_samples.div_ceil(PATH_GROUP);
    let counts = le::u64_at(section, 0).zip(le::u64_at(section, 8));
    let (found, found_groups) = counts.unwrap_or((0, 0));
    if counts != Some((n_samples, n_groups)) {
        let (paths, groups) = (counted(n_samples, "path"), counted(n_groups, "group"));
        return Err(bad(format!("expected {paths} in {groups}, found {found} in {found_groups}")));
    }
    let payload_at = n_groups.checked_mul(16).and_then(|n| n.checked_add(HEAD));
    let payload_at = payload_at.ok_or_else(|| bad("too many groups".to_owned()))?;
    let table = le::slice("path groups", section, HEAD, payload_at - HEAD)?;
    let payload = le::slice("path groups", section, payload_at, len_u64(section) - payload_at)?;
    let at = to_usize(group * 16);
    let start = le::u64_at(table, at).unwrap_or(u64::MAX);
    let decoded = le::u64_at(table, at.saturating_add(8)).unwrap_or(u64::MAX);
    let end = le::u64_at(table, at.saturating_add(16)).unwrap_or(len_u64(payload));
    // The frames are contiguous: there is no gap before the first one, and they do not overlap.
    if start > end || (group == 0 && start != 0) || decoded > MAX_GROUP_BYTES {
        return Err(bad(format!("stored bytes {start}..{end} cannot decode to {}", counted(decoded, "byte"))));
    }
    let frame = le::slice("path group", payload, start, end - start)?;
    codec::decompress(frame, decoded, out).map_err(bad)?;
    Ok(sample % PATH_GROUP)
}

/// Path `i` of `n` in the decompressed group number `group`.
pub(crate) fn path_in(bytes: &[u8], group: u64, n: u64, i: u64) -> Result<&[u8], FormatError> {
    let payload_at = (n + 1) * 4;
    let bad = || FormatError::BadPaths { group, reason: format!("path {i} of {n} is outside its group") };
    let payload_len = len_u64(bytes).checked_sub(payload_at).ok_or_else(bad)?;
    let at = usize::try_from(i * 4).map_err(|_| bad())?;
    let (start, end) = (le::u32_at(bytes, at).ok_or_else(bad)?, le::u32_at(bytes, at + 4).ok_or_else(bad)?);
    let is_last = i + 1 == n;
    if (i == 0 && start != 0) || (is_last && u64::from(end) != payload_len) {
        return Err(bad());
    }
    let len = end.checked_sub(start).ok_or_else(bad)?;
    le::slice("path", bytes, payload_at + u64::from(start), u64::from(len)).map_err(|_| bad())
}
