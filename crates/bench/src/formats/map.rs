//! Maps whole files, and counts their cached pages. Packs are read through their own reader instead.

use packds_system::to_u64;
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::BenchError;

const PAGES: usize = 1 << 16;

/// A read-only mapping of a file that does not change while a benchmark runs.
pub(crate) struct Map(Option<Mmap>);

impl Map {
    pub(crate) fn open(path: &Path) -> Result<Self, BenchError> {
        let file = File::open(path).map_err(BenchError::io(path))?;
        if file.metadata().map_err(BenchError::io(path))?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the caller must ensure that the file does not change while it is mapped. Benchmarks map only files
        // that they wrote into their own folder, and do not write to them while a mapping exists.
        let map = unsafe { Mmap::map(&file) }.map_err(BenchError::io(path))?;
        Ok(Self(Some(map)))
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

pub(crate) fn cached_bytes(path: &Path) -> Result<u64, BenchError> {
    let map = Map::open(path)?;
    let bytes = map.as_ref();
    let page = rustix::param::page_size();
    let mut pages = vec![0_u8; PAGES];
    let mut cached = 0;
    for piece in bytes.chunks(PAGES * page) {
        let address = piece.as_ptr().cast_mut().cast();
        // SAFETY: the mapping starts at a page boundary, and all pieces except the last are whole pages, so the address
        // is page-aligned. `pages` has a byte for each of the piece's pages. No page is accessed.
        let result = unsafe { libc::mincore(address, piece.len(), pages.as_mut_ptr()) };
        if result != 0 {
            return Err(BenchError::io(path)(std::io::Error::last_os_error()));
        }
        let n_pages = piece.len().div_ceil(page);
        let in_cache = pages.iter().take(n_pages).filter(|p| **p & 1 == 1).count();
        cached += (in_cache * page).min(piece.len());
    }
    Ok(to_u64(cached))
}
