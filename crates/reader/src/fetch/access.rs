//! How a pack is read: as the user requested, or as the machine allows.

use super::FetchOptions;
use crate::Pack;
use crate::available::available_bytes;
use crate::human::tenths;

/// How a loader reads a pack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Mapped if the pack fits in memory and no loaded field is compressed, otherwise direct.
    #[default]
    Auto,
    /// The pack is read through a memory mapping. All processes share the page cache, and data is not copied.
    Mapped,
    /// Whole chunks are read into the loader's buffers. This bypasses the page cache if the system allows it.
    Direct,
}

packds_system::named!(Access { Auto = "auto", Mapped = "mapped", Direct = "direct" });

/// How a loader reads its pack, and why. This is shown to users.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessReport {
    /// The chosen access, never [`Access::Auto`].
    pub access: Access,
    /// The I/O engine: `mmap`, `memory`, `io_uring` or `pread`.
    pub engine: &'static str,
    /// Whether reads bypass the page cache, provided that the file system supports this.
    pub past_cache: bool,
    /// The access and the reason for it, such as `mapped, because only columns are read`.
    pub reason: String,
}

/// Tenths of the available memory that a mapped pack may use. The rest is for the training process.
const MAPPED_TENTHS: u64 = 6;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) access: Access,
    /// Whether direct reads bypass the page cache.
    pub(super) past_cache: bool,
    pub(crate) reason: String,
}

pub(crate) fn choose(pack: &Pack, options: &FetchOptions) -> Choice {
    let mut wanted = pack.schema().body().enumerate();
    let compressed = wanted
        .find(|(at, (_, field))| options.positions.contains(at) && !field.codec.is_none())
        .map(|(_, (_, field))| field.name.as_str());
    if pack.is_in_memory() {
        return in_memory(compressed, options);
    }
    decide(pack.file_len(), compressed, options, available_bytes())
}

/// Chooses the access to a pack in memory, regardless of its size.
fn in_memory(compressed: Option<&str>, options: &FetchOptions) -> Choice {
    let (access, reason) = match (options.access, compressed) {
        (Access::Direct, _) => (Access::Direct, "direct, as requested".to_owned()),
        (Access::Auto, Some(field)) => (
            Access::Direct,
            format!("direct, because `{field}` is compressed: direct access decompresses each chunk only once"),
        ),
        _ => (Access::Mapped, "without a copy, because the pack is in memory".to_owned()),
    };
    Choice { access, past_cache: false, reason }
}

/// Chooses the access to a pack of `file_len` bytes. `compressed` is the first field that must be decompressed, if
/// there is one.
fn decide(file_len: u64, compressed: Option<&str>, options: &FetchOptions, available: Option<u64>) -> Choice {
    let choice = |access, past_cache, reason| Choice { access, past_cache, reason };
    if options.positions.is_empty() {
        // Direct reads would read whole chunks, although no chunks are needed.
        let reason = "mapped, because only columns are read".to_owned();
        return choice(Access::Mapped, false, reason);
    }
    match options.access {
        Access::Mapped => return choice(Access::Mapped, false, "mapped, as requested".to_owned()),
        Access::Direct => return choice(Access::Direct, true, "direct, as requested".to_owned()),
        Access::Auto => {}
    }
    let wanted = file_len.saturating_add(options.beside);
    let mut size = tenths(file_len);
    if options.beside > 0 {
        size = format!("{size} (plus {} of smaller packs)", tenths(options.beside));
    }
    if let Some(budget) = options.budget.filter(|budget| wanted > *budget) {
        let budget = tenths(budget);
        let reason = format!("direct, because the size of the pack is {size}, but the memory budget is {budget}");
        return choice(Access::Direct, true, reason);
    }
    let fits = match available {
        Some(available) if wanted > available / 10 * MAPPED_TENTHS => {
            let available = tenths(available);
            let reason = format!(
                "direct, because the size of the pack is {size}, more than 60% of the {available} of available memory"
            );
            return choice(Access::Direct, true, reason);
        }
        Some(available) => {
            format!("the size of the pack is {size}, and {} of memory is available", tenths(available))
        }
        None => "the system does not report how much memory is available".to_owned(),
    };
    match compressed {
        Some(field) => {
            let reason = format!(
                "direct, because `{field}` is compressed: direct access decompresses each chunk only once; the page cache is not bypassed, because {fits}"
            );
            choice(Access::Direct, false, reason)
        }
        None => choice(Access::Mapped, false, format!("mapped, because {fits}")),
    }
}

/// Network file systems that may reclaim mapped pages, with their `statfs` types.
const REMOTE: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x5346_414F, "AFS"),
];

/// Why the pages of a pack's mapping should not stay in memory for the lifetime of a loader. `None` if they may.
pub(crate) fn against_holding(pack: &Pack) -> Option<String> {
    let file = match pack.file() {
        Ok(file) => file,
        Err(error) => return Some(error.to_string()),
    };
    let system = rustix::fs::fstatfs(file).ok();
    let kind = system.and_then(|system| u64::try_from(system.f_type).ok());
    against(pack.file_len(), available_bytes(), kind)
}

fn against(file_len: u64, available: Option<u64>, kind: Option<u64>) -> Option<String> {
    let remote = REMOTE.iter().find(|(number, _)| Some(*number) == kind);
    if let Some((_, name)) = remote {
        return Some(format!("the pack is on {name}, which may reclaim pages of the file"));
    }
    let Some(available) = available else {
        return Some("the system does not report how much memory is available".to_owned());
    };
    (file_len > available / 10 * MAPPED_TENTHS).then(|| {
        format!(
            "the size of the pack is {}, more than 60% of the {} of available memory, and all of it would stay in memory",
            tenths(file_len),
            tenths(available)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksums;

    const GIB: u64 = 1 << 30;

    fn options(access: Access, budget: Option<u64>) -> FetchOptions {
        FetchOptions {
            access,
            checksums: Checksums::FirstTouch,
            memory_bytes: GIB,
            budget,
            beside: 0,
            positions: vec![0],
        }
    }

    fn auto(file_len: u64, compressed: Option<&str>, budget: Option<u64>) -> Choice {
        let options = options(Access::Auto, budget);
        decide(file_len, compressed, &options, Some(10 * GIB))
    }

    #[test]
    fn a_pack_is_mapped_up_to_six_tenths_of_the_memory() {
        let fits = auto(6 * GIB, None, None);
        assert_eq!((fits.access, fits.past_cache), (Access::Mapped, false));
        assert_eq!(fits.reason, "mapped, because the size of the pack is 6.0 GiB, and 10.0 GiB of memory is available");
        let larger = auto(6 * GIB + 1, None, None);
        assert_eq!((larger.access, larger.past_cache), (Access::Direct, true));
        assert_eq!(
            larger.reason,
            "direct, because the size of the pack is 6.0 GiB, more than 60% of the 10.0 GiB of available memory"
        );
    }

    #[test]
    fn a_pack_larger_than_the_budget_is_read_directly() {
        assert_eq!(auto(GIB, None, Some(GIB)).access, Access::Mapped);
        let larger = auto(GIB + 1, None, Some(GIB));
        assert_eq!((larger.access, larger.past_cache), (Access::Direct, true));
    }

    #[test]
    fn smaller_packs_have_memory_first() {
        let beside = |beside, budget| {
            let mut options = options(Access::Auto, budget);
            options.beside = beside;
            decide(3 * GIB, None, &options, Some(10 * GIB))
        };
        assert_eq!(beside(3 * GIB, None).access, Access::Mapped);
        assert_eq!(beside(3 * GIB + 1, None).access, Access::Direct);
        assert_eq!(beside(GIB, Some(4 * GIB)).access, Access::Mapped);
        let larger = beside(GIB + 1, Some(4 * GIB));
        assert_eq!(
            larger.reason,
            "direct, because the size of the pack is 3.0 GiB (plus 1.0 GiB of smaller packs), but the memory budget is 4.0 GiB"
        );
    }

    #[test]
    fn a_compressed_pack_that_fits_is_read_through_the_page_cache() {
        let choice = auto(GIB, Some("image"), None);
        assert_eq!((choice.access, choice.past_cache), (Access::Direct, false));
        assert!(choice.reason.contains("`image` is compressed"));
    }

    #[test]
    fn what_is_remote_or_larger_than_memory_is_not_held() {
        let why = |len, available, kind| against(len, available, Some(kind)).unwrap_or_default();
        assert_eq!(why(6 * GIB, Some(10 * GIB), 0xEF53), "");
        assert!(why(6 * GIB + 1, Some(10 * GIB), 0xEF53).contains("60% of the 10.0 GiB"));
        assert!(why(1, None, 0xEF53).contains("does not report"));
        assert!(why(1, Some(GIB), 0x6969).contains("is on NFS"));
    }

    #[test]
    fn what_was_asked_for_is_done() {
        for (access, past_cache) in [(Access::Mapped, false), (Access::Direct, true)] {
            let options = options(access, Some(1));
            let choice = decide(100 * GIB, Some("image"), &options, Some(GIB));
            assert_eq!((choice.access, choice.past_cache), (access, past_cache));
        }
    }

    #[test]
    fn a_pack_of_which_only_columns_are_read_is_mapped() {
        for access in [Access::Auto, Access::Mapped, Access::Direct] {
            let options = FetchOptions { positions: Vec::new(), ..options(access, Some(1)) };
            let choice = decide(100 * GIB, None, &options, Some(GIB));
            assert_eq!((choice.access, choice.past_cache), (Access::Mapped, false));
            assert!(choice.reason.contains("only columns"));
        }
    }
}
