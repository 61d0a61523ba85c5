//! Malicious and damaged archives. `tests/formats/archive.rs` tests archives written by real programs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;

use super::super::mutation::{Dice, damage, survives};
use super::super::spool::Unpacking;
use super::super::{list, warning::Warning};
use super::*;
use crate::sink::{Member, zip_directory};

/// A bitmap of one pixel.
const IMAGE: &[u8] = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0";

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let mut member = Member::stored(name, data.len() as u64, out.len() as u64);
        member.crc = crc_fast::checksum(Crc32IsoHdlc, data).try_into().unwrap();
        out.extend(member.local_header());
        out.extend_from_slice(data);
        directory.push(member);
    }
    let end = zip_directory(&directory, out.len() as u64);
    out.extend(end);
    out
}

/// A tar file of files and links. A name that starts with `-> ` or `=> ` is a symbolic or hard link, and its data is
/// the target.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, data) in members {
        let mut header = tar::Header::new_ustar();
        let link = [("-> ", tar::EntryType::Symlink), ("=> ", tar::EntryType::Link)];
        let link = link.into_iter().find_map(|(mark, kind)| Some((kind, name.strip_prefix(mark)?)));
        let (kind, name, size) =
            link.map_or((tar::EntryType::Regular, *name, data.len()), |(kind, name)| (kind, name, 0));
        header.set_entry_type(kind);
        // Written directly, because the crate refuses names that lead outside the archive.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if link.is_some() {
            header.as_old_mut().linkname[..data.len()].copy_from_slice(data);
        }
        header.set_size(size as u64);
        header.set_cksum();
        out.append(&header, if link.is_some() { &[][..] } else { data }).unwrap();
    }
    out.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut out, bytes).unwrap();
    out.finish().unwrap()
}

/// A folder with an archive and a folder to unpack it into.
struct Place {
    folder: TempDir,
    path: PathBuf,
    options: ListOptions,
}

impl Place {
    fn of(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, spool) = (folder.path().join(name), folder.path().join("spool"));
        fs::create_dir(&spool).unwrap();
        fs::write(&path, bytes).unwrap();
        Self { folder, path, options: ListOptions { spool: Some(spool), ..ListOptions::default() } }
    }

    fn list(&self) -> Result<Listing, ConvertError> {
        list(&self.path, &self.options)
    }

    /// The error with the archive's folder removed from its path. Also checks that no unpacked files remain.
    fn refused(&self) -> String {
        let error = self.list().unwrap_err().to_string();
        assert_eq!(self.n_left(), 0, "{error}");
        error.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn n_left(&self) -> usize {
        fs::read_dir(self.folder.path().join("spool")).unwrap().count()
    }
}

fn names(listing: &Listing) -> Vec<String> {
    let path = |idx| {
        let mut path = Vec::new();
        listing.path_into(idx, &mut path);
        lossy(&path)
    };
    (0..listing.len()).map(path).collect()
}

#[test]
fn what_is_unpacked_stays_as_long_as_its_listing() {
    let place = Place::of("a.zip", &zip(&[("cat/1.bmp", IMAGE), ("dog/1.bmp", IMAGE)]));
    let listing = place.list().unwrap();
    assert_eq!(names(&listing), ["cat/1.bmp", "dog/1.bmp"]);
    assert_eq!(listing.file_path(0), place.path.join("cat/1.bmp"));
    let again = listing.clone();
    drop(listing);
    let mut out = Vec::new();
    again.append_image(1, u64::MAX, &mut out).unwrap();
    assert_eq!((out.as_slice(), place.n_left()), (IMAGE, 1));
    drop(again);
    assert_eq!(place.n_left(), 0);
}

#[test]
fn names_that_lead_out_of_the_archive_are_refused() {
    for (name, what) in [
        ("../1.bmp", "a path that leaves the archive"),
        ("cat/../../1.bmp", "a path that leaves the archive"),
        ("/tmp/1.bmp", "an absolute path"),
        ("C:/1.bmp", "an absolute path"),
    ] {
        let members = [("cat/1.bmp", IMAGE), (name, IMAGE), ("notes.txt", b"")];
        let expected = format!("{name}: the name of this member is {what}");
        assert_eq!(Place::of("a.zip", &zip(&members)).refused(), format!("a.zip: {expected}"));
        assert_eq!(Place::of("a.tar", &tar(&members)).refused(), format!("a.tar: {expected}"));
    }
    let place = Place::of("a.zip", &zip(&[("cat\\..\\..\\1.bmp", IMAGE)]));
    assert!(place.refused().contains("a path that leaves the archive"));
}

#[test]
fn two_members_of_one_name_are_refused() {
    let expected = "its name conflicts with another member of the archive";
    for names in [["a.bmp", "./a.bmp"], ["a.bmp", "a.bmp/b.bmp"], ["a/b.bmp", "a//b.bmp"]] {
        let members = names.map(|name| (name, IMAGE));
        assert_eq!(Place::of("a.zip", &zip(&members)).refused(), format!("a.zip: {}: {expected}", names[1]));
    }
    let twice = Place::of("a.tar.gz", &gzip(&tar(&[("a.bmp", IMAGE), ("b.bmp", IMAGE), ("./b.bmp", IMAGE)])));
    assert_eq!(twice.refused(), format!("a.tar.gz: ./b.bmp: {expected}"));
}

#[test]
fn links_are_followed_in_the_archive_and_left_out_if_they_lead_elsewhere() {
    let members: [(&str, &[u8]); 9] = [
        ("cat/1.bmp", IMAGE),
        ("=> cat/2.bmp", b"cat/1.bmp"),
        ("-> cat/3.bmp", b"1.bmp"),
        ("-> dog/1.bmp", b"../cat/1.bmp"),
        ("-> dog/2.bmp", b"../../../../etc/passwd"),
        ("-> dog/3.bmp", b"/etc/passwd"),
        ("=> dog/4.bmp", b"../1.bmp"),
        ("-> dog/5.bmp", b"nowhere.bmp"),
        ("-> fox", b"/etc"),
    ];
    let place = Place::of("a.tar.gz", &gzip(&tar(&members)));
    let listing = place.list().unwrap();
    assert_eq!(names(&listing), ["cat/1.bmp", "cat/2.bmp", "cat/3.bmp", "dog/1.bmp"]);
    assert_eq!(listing.warnings()[0], Warning::LinksLeftOut { count: 5, first: b"dog/2.bmp".to_vec() });
}

#[test]
fn an_archive_that_needs_more_than_the_free_space_is_refused() {
    let mut members = zip(&[("cat/1.bmp", IMAGE)]);
    // Changes the unpacked size in the directory, whose entry starts with `PK\1\2`.
    let entry = members.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    members[entry + 24..entry + 28].fill(0xfe);
    members[entry + 20..entry + 24].copy_from_slice(&58_u32.to_le_bytes());
    let place = Place::of("a.zip", &members);
    let spool = place.options.spool_folder();
    let mut unpacker = Unpacker::create(&place.path, &spool).unwrap();
    unpacker.free = 10_000;
    let declared = unzip(&place.path, &mut unpacker).unwrap_err().to_string();
    assert!(declared.contains("unpacking it needs 4278124286 bytes, but "), "{declared}");
    assert!(declared.contains("has 10000 bytes of free space"), "{declared}");
    // A false size does not help an attacker: bytes are counted as they are unpacked.
    let bomb = Place::of("bomb.gz", &gzip(&[0; 100_000]));
    let mut unpacker = Unpacker::create(&bomb.path, &spool).unwrap();
    unpacker.free = 50_000;
    let found = unpack_single(&bomb.path, &mut unpacker).unwrap_err().to_string();
    assert!(found.contains("unpacking it needs more bytes, but "), "{found}");
    let empty = [(); 4].map(|()| ("", &[][..]));
    let files: Vec<(String, &[u8])> =
        empty.iter().enumerate().map(|(i, (_, data))| (format!("{i}.txt"), *data)).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, data)| (name.as_str(), *data)).collect();
    let many = Place::of("a.tar", &tar(&files));
    let mut unpacker = Unpacker::create(&many.path, &spool).unwrap();
    unpacker.free = 10_000;
    assert!(untar(&many.path, &mut unpacker).is_err());
}

#[test]
fn damage_is_told_with_the_member_that_it_is_in() {
    let members = [("cat/1.bmp", IMAGE), ("dog/1.bmp", IMAGE)];
    let mut wrong = zip(&members);
    let last = wrong.windows(IMAGE.len()).rposition(|bytes| bytes == IMAGE).unwrap();
    wrong[last + 40] ^= 1;
    let said = Place::of("a.zip", &wrong).refused();
    assert!(said.starts_with("a.zip: dog/1.bmp: expected the checksum"), "{said}");
    let mut locked = zip(&members);
    let entry = locked.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
    locked[entry + 8] |= 1;
    assert_eq!(Place::of("a.zip", &locked).refused(), "a.zip: dog/1.bmp: the member is encrypted");
    let cut = Place::of("a.zip", &zip(&members)[..300]).refused();
    assert_eq!(cut, "a.zip: expected the directory of a zip file at the end, found none");
    let whole = tar(&[("cat/1.bmp", IMAGE), ("notes.txt", b""), ("dog/1.bmp", &[7; 5000])]);
    let cut = Place::of("a.tar", &whole[..4000]).refused();
    assert!(cut.starts_with("a.tar: dog/1.bmp: byte 2048: the tar file ends too early"), "{cut}");
    let packed = gzip(&whole);
    let cut = Place::of("a.tar.gz", &packed[..packed.len() - 10]).refused();
    assert!(cut.contains("cannot be unpacked"), "{cut}");
}

#[test]
fn archives_in_each_other_are_counted() {
    let mut bytes = zip(&[("1.bmp", IMAGE), ("2.bmp", IMAGE)]);
    for n in 0..MAX_DEPTH {
        let place = Place::of("a.zip", &bytes);
        assert_eq!(place.list().unwrap().len(), 2, "{n}");
        bytes = zip(&[("a.zip", &bytes)]);
    }
    let said = Place::of("a.zip", &bytes).refused();
    assert_eq!(said, "a.zip/a.zip/a.zip/a.zip/a.zip: archives are nested more than 4 deep");
}

#[test]
fn unpacking_stops_when_it_is_told_to_and_leaves_nothing() {
    let mut place = Place::of("a.zip", &zip(&[("cat/1.bmp", IMAGE), ("dog/1.bmp", IMAGE)]));
    let calls = Arc::new(AtomicUsize::new(0));
    place.options.unpacking = Unpacking::default().until(move || calls.fetch_add(1, Ordering::Relaxed) == 3);
    assert_eq!(place.refused(), "interrupted; nothing was written");
}

#[test]
fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
    let members = [("cat/1.bmp", IMAGE), ("cat/2.bmp", IMAGE), ("dog/1.bmp", IMAGE), ("notes.txt", b"x")];
    let (zip, tar) = (zip(&members), tar(&members));
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    std::io::Write::write_all(&mut packed, &tar).unwrap();
    let files = [
        ("a.zip", zip),
        ("a.tar.gz", gzip(&tar)),
        ("a.tar.zst", zstd::bulk::compress(&tar, 1).unwrap()),
        ("a.tar.bz2", packed.finish().unwrap()),
        ("a.tar.xz", include_bytes!("files.tar.xz").to_vec()),
        ("a.tar", tar),
    ];
    for (name, whole) in files {
        survives(DataFormat::ImageFolder, name, 300, |dice: &mut Dice| {
            let mut bytes = whole.clone();
            damage(&mut bytes, dice);
            bytes
        });
    }
}
