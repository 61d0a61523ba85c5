//! Writes LMDB files from entries in ascending key order. The same entries always give the same bytes.
//!
//! The layout is that of LMDB 0.9 on 64-bit little-endian machines: two meta pages, then the leaves and the pages of
//! large values in order, then the branches. The file is written only once, so there are no transactions
//! or concurrent readers to support.

use packds_system::to_u64;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
const PAGE_BYTES: u64 = 4096;
/// Size of the header of a page, or of a run of pages that holds one large value.
const PAGE_HEADER: usize = 16;
/// Size of the header of a node. The key follows.
const NODE_HEADER: usize = 8;
/// Maximum size of a node. A page must have space for two nodes. LMDB itself uses the same limit.
const MAX_NODE: usize = (((PAGE - PAGE_HEADER) / 2) & !1) - 2;
/// Maximum length of a key that LMDB accepts.
pub(super) const MAX_KEY: usize = 511;
/// The page number that means "no page". An empty database has it as its root.
const NO_PAGE: u64 = u64::MAX;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META: u16 = 8;
/// Flag of a node whose value has its own pages.
const BIG: u16 = 1;

pub(crate) struct TreeWriter {
    file: BufWriter<File>,
    next_page: u64,
    leaf: Page,
    /// The first key and the page number of each leaf.
    leaves: Vec<Child>,
    n_overflow: u64,
    n_entries: u64,
}

struct Child {
    first_key: Vec<u8>,
    page: u64,
}

/// A page under construction. Node positions grow from the front, and nodes grow from the end.
struct Page {
    bytes: Vec<u8>,
    n: usize,
    upper: usize,
    first_key: Vec<u8>,
}

impl Page {
    fn new() -> Self {
        Self { bytes: vec![0; PAGE], n: 0, upper: PAGE, first_key: Vec::new() }
    }

    /// Adds a node. Returns false if it does not fit. `low` is the first word of the node: the size of the value, or a
    /// page number.
    fn add(&mut self, key: &[u8], low: u32, flags: u16, data: &[u8]) -> bool {
        let node_bytes = (NODE_HEADER + key.len() + data.len()).next_multiple_of(2);
        let lower = PAGE_HEADER + 2 * (self.n + 1);
        if self.upper < lower + node_bytes {
            return false;
        }
        self.upper -= node_bytes;
        let key_bytes = u16::try_from(key.len()).unwrap_or(u16::MAX);
        let place = u16::try_from(self.upper).unwrap_or(0);
        put(&mut self.bytes, lower - 2, &place.to_le_bytes());
        put(&mut self.bytes, self.upper, &low.to_le_bytes());
        put(&mut self.bytes, self.upper + 4, &flags.to_le_bytes());
        put(&mut self.bytes, self.upper + 6, &key_bytes.to_le_bytes());
        put(&mut self.bytes, self.upper + NODE_HEADER, key);
        put(&mut self.bytes, self.upper + NODE_HEADER + key.len(), data);
        if self.n == 0 {
            self.first_key = key.to_vec();
        }
        self.n += 1;
        true
    }

    fn finish(mut self, number: u64, kind: u16) -> (Vec<u8>, Vec<u8>) {
        let lower = u16::try_from(PAGE_HEADER + 2 * self.n).unwrap_or(0);
        let upper = u16::try_from(self.upper).unwrap_or(0);
        put(&mut self.bytes, 0, &number.to_le_bytes());
        put(&mut self.bytes, 10, &kind.to_le_bytes());
        put(&mut self.bytes, 12, &lower.to_le_bytes());
        put(&mut self.bytes, 14, &upper.to_le_bytes());
        (self.bytes, self.first_key)
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = page.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

impl TreeWriter {
    /// Starts writing to an empty file.
    pub(super) fn create(file: File) -> std::io::Result<Self> {
        const WRITE_BYTES: usize = 1 << 20;
        let mut file = BufWriter::with_capacity(WRITE_BYTES, file);
        // The meta pages are written last.
        file.write_all(&[0; 2 * PAGE])?;
        Ok(Self { file, next_page: 2, leaf: Page::new(), leaves: Vec::new(), n_overflow: 0, n_entries: 0 })
    }

    /// Adds an entry. Its key must be greater in byte order than all earlier keys.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        let too_large = || std::io::Error::other("LMDB stores keys of 1 to 511 bytes and values of up to 4 GiB");
        let bytes = u32::try_from(value.len()).map_err(|_| too_large())?;
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(too_large());
        }
        self.n_entries += 1;
        if NODE_HEADER + key.len() + value.len() <= MAX_NODE {
            return self.add_node(key, bytes, 0, value);
        }
        // The value gets its own pages, which precede the leaf that refers to them.
        let n_pages = (PAGE_HEADER + value.len()).div_ceil(PAGE);
        let first = self.next_page;
        let mut header = [0; PAGE_HEADER];
        put(&mut header, 0, &first.to_le_bytes());
        put(&mut header, 10, &OVERFLOW.to_le_bytes());
        put(&mut header, 12, &u32::try_from(n_pages).unwrap_or(0).to_le_bytes());
        self.file.write_all(&header)?;
        self.file.write_all(value)?;
        let fill = n_pages * PAGE - PAGE_HEADER - value.len();
        self.file.write_all(&vec![0; fill])?;
        let n_pages = to_u64(n_pages);
        self.next_page += n_pages;
        self.n_overflow += n_pages;
        self.add_node(key, bytes, BIG, &first.to_le_bytes())
    }

    fn add_node(&mut self, key: &[u8], low: u32, flags: u16, data: &[u8]) -> std::io::Result<()> {
        if !self.leaf.add(key, low, flags, data) {
            self.end_leaf()?;
            // This cannot fail, because a page has space for two nodes of maximum size.
            self.leaf.add(key, low, flags, data);
        }
        Ok(())
    }

    fn end_leaf(&mut self) -> std::io::Result<()> {
        let leaf = std::mem::replace(&mut self.leaf, Page::new());
        let child = self.write_page(leaf, LEAF)?;
        self.leaves.push(child);
        Ok(())
    }

    fn write_page(&mut self, page: Page, kind: u16) -> std::io::Result<Child> {
        let number = self.next_page;
        let (bytes, first_key) = page.finish(number, kind);
        self.file.write_all(&bytes)?;
        self.next_page += 1;
        Ok(Child { first_key, page: number })
    }

    pub(super) fn finish(mut self) -> std::io::Result<()> {
        if self.leaf.n > 0 {
            self.end_leaf()?;
        }
        let mut level = std::mem::take(&mut self.leaves);
        let n_leaves = to_u64(level.len());
        let (mut depth, mut n_branches) = (u16::from(n_leaves > 0), 0_u64);
        while level.len() > 1 {
            level = self.branches(level)?;
            n_branches += to_u64(level.len());
            depth += 1;
        }
        let database = Database {
            depth,
            n_branches,
            n_leaves,
            n_overflow: self.n_overflow,
            n_entries: self.n_entries,
            root: level.first().map_or(NO_PAGE, |child| child.page),
        };
        let last_page = self.next_page - 1;
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        // These are the meta pages that LMDB leaves in a file after a single transaction: the first describes an empty
        // database, the second describes the result of the transaction.
        file.write_all_at(&meta(0, &Database::EMPTY, (self.next_page, 1), 0), 0)?;
        file.write_all_at(&meta(1, &database, (self.next_page, last_page), 1), PAGE_BYTES)
    }

    /// Writes one level of branches above `children`.
    fn branches(&mut self, children: Vec<Child>) -> std::io::Result<Vec<Child>> {
        let mut pages: Vec<Vec<Child>> = Vec::new();
        let mut room = 0;
        for child in children {
            // The size of the node, padded to an even number, plus the size of its position.
            let node_bytes = (NODE_HEADER + child.first_key.len()).next_multiple_of(2) + 2;
            match pages.last_mut() {
                Some(page) if room >= node_bytes => {
                    room -= node_bytes;
                    page.push(child);
                }
                _ => {
                    room = PAGE - PAGE_HEADER - node_bytes;
                    pages.push(vec![child]);
                }
            }
        }
        // The library rejects a branch with a single child.
        if let [.., before, last] = pages.as_mut_slice()
            && last.len() == 1
            && let Some(moved) = before.pop()
        {
            last.insert(0, moved);
        }
        let mut written = Vec::new();
        for children in pages {
            let mut page = Page::new();
            let mut first_key = Vec::new();
            for (i, child) in children.into_iter().enumerate() {
                // The first key of a branch is never read, so it is omitted.
                let key = if i == 0 { &[][..] } else { &child.first_key };
                let low = u32::try_from(child.page & 0xffff_ffff).unwrap_or(0);
                let flags = u16::try_from(child.page >> 32).unwrap_or(0);
                page.add(key, low, flags, &[]);
                if i == 0 {
                    first_key = child.first_key;
                }
            }
            let child = self.write_page(page, BRANCH)?;
            written.push(Child { first_key, page: child.page });
        }
        Ok(written)
    }
}

struct Database {
    depth: u16,
    n_branches: u64,
    n_leaves: u64,
    n_overflow: u64,
    n_entries: u64,
    root: u64,
}

impl Database {
    const EMPTY: Self = Self { depth: 0, n_branches: 0, n_leaves: 0, n_overflow: 0, n_entries: 0, root: NO_PAGE };

    fn append(&self, pad: u32, flags: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&pad.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.depth.to_le_bytes());
        let Self { n_branches, n_leaves, n_overflow, n_entries, root, .. } = self;
        for number in [n_branches, n_leaves, n_overflow, n_entries, root] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Builds a meta page. The map size is the size of the file.
fn meta(number: u64, main: &Database, (n_pages, last_page): (u64, u64), transaction: u64) -> Vec<u8> {
    const INTEGER_KEYS: u16 = 8;
    const PAGE_U32: u32 = 4096;
    // The page header, followed by the magic number, the version, no fixed address, and the map size.
    let mut page = [&number.to_le_bytes()[..], &[0; 2], &META.to_le_bytes(), &[0; 4]].concat();
    page.extend_from_slice(&0xbeef_c0de_u32.to_le_bytes());
    page.extend_from_slice(&1_u32.to_le_bytes());
    page.extend_from_slice(&[0; 8]);
    page.extend_from_slice(&(n_pages * PAGE_BYTES).to_le_bytes());
    // The database of free pages, which contains the page size, followed by the main database.
    Database::EMPTY.append(PAGE_U32, INTEGER_KEYS, &mut page);
    main.append(0, 0, &mut page);
    page.extend_from_slice(&last_page.to_le_bytes());
    page.extend_from_slice(&transaction.to_le_bytes());
    page.resize(PAGE, 0);
    page
}
