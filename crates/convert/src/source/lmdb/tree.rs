//! Reads LMDB files without the LMDB library. The library trusts every offset, so a damaged file could crash the process.
//!
//! The layout is that of LMDB 0.9 on 64-bit little-endian machines. Every page and node is checked before use, and the number of
//! page visits is limited. Writing and databases with duplicate keys are not supported.

use packds_system::to_u64;
use std::path::Path;

use super::super::numbers::{u16_at, u32_at, u64_at};
use super::super::store::OpenFile;
use crate::error::ConvertError;

/// Bytes before the nodes of a page.
const PAGE_HEADER: usize = 16;
/// Bytes before the key of a node.
const NODE_HEADER: usize = 8;
/// The magic number in the first two pages, after their headers.
const MAGIC: u32 = 0xbeef_c0de;
const VERSION: u32 = 1;
/// Page sizes that LMDB uses.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 256..=65536;
/// Maximum depth of a tree: more than LMDB supports.
const MAX_DEPTH: usize = 32;
/// The root of an empty database, which has no pages.
const NO_PAGE: u64 = u64::MAX;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META: u16 = 8;

const BIG: u16 = 1;
const SUB: u16 = 2;
const DUPLICATES: u16 = 4;

/// A database file.
pub(super) struct Tree<'a> {
    file: &'a OpenFile,
    path: &'a Path,
    page_bytes: u64,
    n_pages: u64,
    /// The root page of the main database.
    pub(super) root: u64,
    pub(super) n_entries: u64,
}

/// A key and the location of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The root page of a named database, if the value describes one.
    pub(super) database: Option<u64>,
}

/// The content of one of the two meta pages.
struct Meta {
    page_bytes: u64,
    root: u64,
    n_entries: u64,
    last_page: u64,
    transaction: u64,
}

impl<'a> Tree<'a> {
    /// Opens a file and reads the newer of its two meta pages.
    pub(super) fn open(file: &'a OpenFile, path: &'a Path) -> Result<Self, ConvertError> {
        let wrong = |reason: String| ConvertError::malformed(path, "", reason);
        let first = Meta::read(file, 0).map_err(&wrong)?;
        // Either meta page may be the newer one. The second is ignored if a crash left it incomplete.
        let second = Meta::read(file, first.page_bytes);
        let second = second.ok().filter(|m| m.page_bytes == first.page_bytes);
        let meta = match second {
            Some(second) if second.transaction > first.transaction => second,
            _ => first,
        };
        let n_pages = file.bytes / meta.page_bytes;
        if meta.last_page >= n_pages {
            return Err(wrong(format!(
                "the file ends too early: expected {} pages of {} bytes, found {} bytes",
                meta.last_page.saturating_add(1),
                meta.page_bytes,
                file.bytes
            )));
        }
        Ok(Self {
            file,
            path,
            page_bytes: meta.page_bytes,
            n_pages: meta.last_page + 1,
            root: meta.root,
            n_entries: meta.n_entries,
        })
    }

    /// Calls `each` for every entry of the database with this root, in key order.
    pub(super) fn walk(
        &self,
        root: u64,
        mut each: impl FnMut(Entry) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        if root == NO_PAGE {
            return Ok(());
        }
        // Pages to visit, in reverse order, with their depths.
        let mut open = vec![(root, 0_usize)];
        let mut visits = 0;
        while let Some((number, depth)) = open.pop() {
            visits += 1;
            if visits > self.n_pages || depth >= MAX_DEPTH {
                return Err(self.wrong(number, "the pages of the tree form a cycle"));
            }
            let page = Page::of(number, self.read(number, self.page_bytes)?).map_err(|r| self.wrong(number, &r))?;
            let nodes = page.nodes().map_err(|reason| self.wrong(number, &reason))?;
            if page.kind == BRANCH {
                let children = nodes.iter().rev().map(|node| (node.child(), depth + 1));
                open.extend(children);
                continue;
            }
            for node in &nodes {
                each(self.entry(number, node)?)?;
            }
        }
        Ok(())
    }

    fn entry(&self, page: u64, node: &Node<'_>) -> Result<Entry, ConvertError> {
        let in_page = page.saturating_mul(self.page_bytes);
        let at = |offset: usize| in_page.saturating_add(to_u64(offset));
        let mut entry =
            Entry { key: node.key.to_vec(), offset: at(node.data_at), bytes: node.bytes.into(), database: None };
        if node.flags & DUPLICATES != 0 {
            let reason = "the database allows duplicate keys";
            let hint = "copy it into a database with dupsort=False";
            return Err(ConvertError::unsupported(self.path, &String::from_utf8_lossy(node.key), reason, hint));
        }
        if node.flags & SUB != 0 {
            entry.database = u64_at(node.data, 40);
            return match entry.database {
                Some(_) => Ok(entry),
                None => Err(self.wrong(page, "the description of a database is truncated")),
            };
        }
        if node.flags & BIG != 0 {
            let first = u64_at(node.data, 0);
            let first = first.ok_or_else(|| self.wrong(page, "the location of a value is truncated"))?;
            entry.offset = self.overflow(first, entry.bytes)?;
        }
        Ok(entry)
    }

    /// The offset of a value that has its own pages.
    fn overflow(&self, first: u64, bytes: u64) -> Result<u64, ConvertError> {
        let header = to_u64(PAGE_HEADER);
        let head = self.read(first, header)?;
        let flags = u16_at(&head, 10).unwrap_or(0);
        let n_pages = u32_at(&head, 12).map_or(0, u64::from);
        let room = n_pages.saturating_mul(self.page_bytes);
        let is_inside = first.checked_add(n_pages).is_some_and(|end| end <= self.n_pages);
        if flags & OVERFLOW == 0 || !is_inside || bytes.saturating_add(header) > room {
            return Err(self.wrong(first, "a value lies outside its pages"));
        }
        Ok(first.saturating_mul(self.page_bytes).saturating_add(header))
    }

    /// The first `bytes` bytes of a page.
    fn read(&self, number: u64, bytes: u64) -> Result<Vec<u8>, ConvertError> {
        if number >= self.n_pages {
            return Err(self.wrong(number, &format!("the file has only {} pages", self.n_pages)));
        }
        let read = self.file.bytes_at(number.saturating_mul(self.page_bytes), bytes);
        read.map_err(|error| self.wrong(number, &error.to_string()))
    }

    fn wrong(&self, page: u64, reason: &str) -> ConvertError {
        ConvertError::malformed(self.path, &format!("page {page}"), reason)
    }
}

impl Meta {
    fn read(file: &OpenFile, offset: u64) -> Result<Self, String> {
        // The page header, then magic, version, address, map size, two databases, last page and transaction.
        const BYTES: u64 = 16 + 24 + 2 * 48 + 16;
        let page = file.bytes_at(offset, BYTES);
        let page =
            page.map_err(|_| format!("expected at least {BYTES} bytes for LMDB's first page, found {}", file.bytes))?;
        let meta = page.get(PAGE_HEADER..).unwrap_or_default();
        let (magic, version) = (u32_at(meta, 0), u32_at(meta, 4));
        if magic != Some(MAGIC) || u16_at(&page, 10).is_none_or(|flags| flags & META == 0) {
            let found = magic.unwrap_or(0);
            return Err(format!("expected the LMDB signature {MAGIC:#x}, found {found:#x}"));
        }
        if version != Some(VERSION) {
            let found = version.unwrap_or(0);
            return Err(format!("expected version {VERSION} of the format, found {found}"));
        }
        let number = |at: usize| u64_at(meta, at).ok_or_else(|| "the first page is truncated".to_owned());
        // The page size is stored in an otherwise unused field of the first database, which lists the free pages.
        let page_bytes = u32_at(meta, 24).map_or(0, u64::from);
        if !PAGE_SIZES.contains(&page_bytes) || !page_bytes.is_power_of_two() {
            return Err(format!("expected a power of two up to 65536 as the page size, found {page_bytes}"));
        }
        Ok(Self {
            page_bytes,
            n_entries: number(72 + 32)?,
            root: number(72 + 40)?,
            last_page: number(120)?,
            transaction: number(128)?,
        })
    }
}

/// A page of a tree.
struct Page {
    kind: u16,
    bytes: Vec<u8>,
    /// Number of nodes.
    n: usize,
}

/// A node of a page.
struct Node<'a> {
    flags: u16,
    key: &'a [u8],
    /// Size of the value, which may be stored elsewhere.
    bytes: u32,
    /// The bytes after the key in the page, and their offset.
    data: &'a [u8],
    data_at: usize,
    low: u32,
}

impl Node<'_> {
    /// The child page of a branch node.
    fn child(&self) -> u64 {
        u64::from(self.low) | u64::from(self.flags) << 32
    }
}

impl Page {
    fn of(number: u64, bytes: Vec<u8>) -> Result<Self, String> {
        let own = u64_at(&bytes, 0);
        let kind = u16_at(&bytes, 10).unwrap_or(0) & (BRANCH | LEAF | OVERFLOW | META | 0x60);
        if own != Some(number) || (kind != BRANCH && kind != LEAF) {
            return Err("expected a page of a tree without duplicate keys".to_owned());
        }
        let (lower, upper) = (u16_at(&bytes, 12), u16_at(&bytes, 14));
        let lower = usize::from(lower.unwrap_or(0));
        let upper = upper.map_or(usize::MAX, usize::from);
        // With the largest page size, the stored upper end of an empty page wraps to 0.
        let upper = if upper == 0 { bytes.len() } else { upper };
        if lower < PAGE_HEADER || lower > upper || upper > bytes.len() || lower % 2 != 0 {
            return Err(format!("the free space of the page has invalid bounds: {lower} to {upper}"));
        }
        let n = (lower - PAGE_HEADER) / 2;
        Ok(Self { kind, bytes, n })
    }

    fn nodes(&self) -> Result<Vec<Node<'_>>, String> {
        let node = |i| self.node(i).ok_or_else(|| format!("node {i} lies outside its page"));
        (0..self.n).map(node).collect()
    }

    fn node(&self, i: usize) -> Option<Node<'_>> {
        let page = self.bytes.as_slice();
        let at = usize::from(u16_at(page, PAGE_HEADER + 2 * i)?);
        let low = u32_at(page, at)?;
        let (flags, key_bytes) = (u16_at(page, at + 4)?, usize::from(u16_at(page, at + 6)?));
        let data_at = at + NODE_HEADER + key_bytes;
        let key = page.get(at + NODE_HEADER..data_at)?;
        let held = match (self.kind, flags & BIG != 0) {
            (BRANCH, _) => 0,
            (_, true) => 8,
            _ => usize::try_from(low).ok()?,
        };
        let data = page.get(data_at..data_at.checked_add(held)?)?;
        Some(Node { flags, key, bytes: low, data, data_at, low })
    }
}
