//! Lists the types of files that are not read: their names, extensions, and how to get images or arrays from such files.
//!
//! `packds_pixels::other_format` recognizes some of them by their first bytes.

use std::collections::BTreeMap;
use std::path::Path;

use packds_system::counted;

use super::candidate::is_image_name;
use super::detect::names_in;
use super::listing::SourceKind;
use super::matlab;
use super::paths::lossy;
use super::tally::Tally;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::METADATA_FILE;

/// A type of file that is not read.
pub(crate) struct Unread {
    pub(crate) name: &'static str,
    /// The file extensions, in lower case and without the dot.
    extensions: &'static [&'static str],
    /// What to do with such a file.
    pub(crate) hint: &'static str,
}

const fn row(name: &'static str, extensions: &'static [&'static str], hint: &'static str) -> Unread {
    Unread { name, extensions, hint }
}

/// The types of files that contain only an image. In a tar file of samples, such files are ignored. Files of other types are packed as
/// bytes.
const PICTURES: [&str; 6] = ["HEIC", "AVIF", "JPEG XL", "JPEG 2000", "OpenEXR", "PAM"];

const TYPES: [Unread; 28] = [
    row(
        "DICOM",
        &["dcm", "dicom"],
        "write 8-bit PNG files with 'dcmj2pnm +on x.dcm x.png', or arrays in Python: numpy.save(\"x.npy\", pydicom.dcmread(\"x.dcm\").pixel_array)",
    ),
    row(
        "NIfTI",
        &["nii", "nii.gz"],
        "write each slice as an array in Python (volumes may differ in depth, but all arrays must have the same shape): v = nibabel.load(\"x.nii.gz\").get_fdata(dtype=numpy.float32); [numpy.save(f\"x_{i:03}.npy\", numpy.ascontiguousarray(v[..., i])) for i in range(v.shape[2])]; for masks, save numpy.ascontiguousarray(v[..., i].astype(numpy.uint8)) instead",
    ),
    row(
        "HEIC",
        &["heic", "heif", "hif"],
        "convert with 'heif-convert x.heic x.jpg', or in Python: pillow_heif.register_heif_opener(); Image.open(\"x.heic\").convert(\"RGB\").save(\"x.jpg\", quality=95)",
    ),
    row(
        "AVIF",
        &["avif"],
        "convert with 'avifdec x.avif x.png', or in Python with Pillow 11.3 or later: Image.open(\"x.avif\").save(\"x.png\")",
    ),
    row("JPEG XL", &["jxl"], "convert with 'djxl x.jxl x.png', or x.jpg if it was made from a JPEG"),
    row("JPEG 2000", &["jp2", "j2k", "jpx", "jpf", "j2c"], "convert in Python: Image.open(\"x.jp2\").save(\"x.png\")"),
    row(
        "OpenEXR",
        &["exr"],
        "write its floats in Python: os.environ[\"OPENCV_IO_ENABLE_OPENEXR\"] = \"1\"; numpy.save(\"x.npy\", cv2.imread(\"x.exr\", cv2.IMREAD_UNCHANGED)[..., ::-1])",
    ),
    row(
        "Radiance HDR",
        &["hdr"],
        "write its floats in Python: numpy.save(\"x.npy\", cv2.imread(\"x.hdr\", cv2.IMREAD_UNCHANGED)[..., ::-1])",
    ),
    row("PAM", &["pam"], "convert with 'pamtopng x.pam > x.png'"),
    row(
        "PFM",
        &["pfm"],
        "write its floats in Python: numpy.save(\"x.npy\", cv2.imread(\"x.pfm\", cv2.IMREAD_UNCHANGED))",
    ),
    row("Photoshop", &["psd", "psb"], "convert in Python: Image.open(\"x.psd\").convert(\"RGB\").save(\"x.png\")"),
    row(
        "DDS, ICO, PCX or SGI",
        &["dds", "ico", "cur", "pcx", "sgi", "rgb", "icns"],
        "convert in Python: Image.open(\"x.ico\").convert(\"RGB\").save(\"x.png\")",
    ),
    row(
        "SVG",
        &["svg", "svgz"],
        "render with 'rsvg-convert -w 256 x.svg -o x.png', or in Python with cairosvg.svg2png",
    ),
    row("PDF", &["pdf"], "render its pages with 'pdftoppm -png x.pdf x'"),
    row(
        "camera raw",
        &["dng", "cr2", "cr3", "nef", "arw", "raf", "orf", "rw2", "pef", "srw"],
        "develop the photo in Python: Image.fromarray(rawpy.imread(\"x.dng\").postprocess()).save(\"x.png\")",
    ),
    row(
        "MATLAB",
        &["mat"],
        "convert in Python, and adapt the names and axes to your file: m = scipy.io.loadmat(\"x.mat\"); images = numpy.moveaxis(m[\"X\"], -1, 0); numpy.savez(\"x.npz\", images=images, labels=m[\"y\"].ravel()); if scipy rejects the file, it is version 7.3: open it with h5py.File(\"x.mat\"), which shows the axes in reverse order",
    ),
    row(
        "MATLAB 7.3",
        &[],
        "convert in Python, and adapt the names to your file (h5py shows its axes in reverse order): f = h5py.File(\"x.mat\"); images = f[\"X\"][:].transpose(0, 3, 2, 1); numpy.savez(\"x.npz\", images=images, labels=f[\"y\"][:].ravel())",
    ),
    row(
        "NRRD or MetaImage",
        &["nrrd", "nhdr", "mha", "mhd"],
        "write its array in Python: numpy.save(\"x.npy\", SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(\"x.mha\")))",
    ),
    row(
        "raw numbers",
        &["raw", "bin", "dat"],
        "save them with their shape in Python: numpy.save(\"x.npy\", numpy.fromfile(\"x.raw\", numpy.uint8).reshape(height, width))",
    ),
    row(
        "pickle",
        &["p", "pkl", "pickle"],
        "packds never runs pickles; if you trust the file, write its arrays in Python: d = pickle.load(open(\"x.p\", \"rb\")); numpy.savez(\"x.npz\", images=d[\"features\"], labels=d[\"labels\"])",
    ),
    row(
        "damaged ArrayRecord",
        &["array_record", "arrayrecord", "riegeli"],
        "its first bytes are not those of an ArrayRecord file: copy the file again, or write it again",
    ),
    row("video", &["mp4", "avi", "mov", "mkv", "webm", "m4v"], "write its frames with 'ffmpeg -i x.mp4 x_%06d.png'"),
    row(
        "whole slide",
        &["svs", "ndpi", "mrxs", "scn"],
        "cut the slide into tiles with openslide or pyvips, and save the tiles as images",
    ),
    row(
        "microscope stack",
        &["czi", "lif", "nd2", "oib", "oif"],
        "write its planes as TIFF or .npy files with bfconvert or aicsimageio",
    ),
    row("DjVu", &["djvu"], "render its pages with 'ddjvu -format=tiff x.djvu x.tif'"),
    row("EPS", &["eps", "ps"], "render with 'gs -sDEVICE=png16m -o x.png x.eps'"),
    row("Git LFS pointer", &[], "run 'git lfs pull' in its repository"),
    row("web page", &[], "download the file again; some sites require a login"),
];

impl Unread {
    /// The type of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|row| row.name == name)
    }

    /// The type indicated by the extension of a file.
    pub(super) fn of_name(file: &[u8]) -> Option<&'static Self> {
        let lower = lossy(file).to_ascii_lowercase();
        // Each file of a set ends in its number, as in `x.array_record-00000-of-00001`.
        let lower = match lower.rsplitn(4, '-').collect::<Vec<_>>().as_slice() {
            [n, "of", _, name] if n.bytes().all(|byte| byte.is_ascii_digit()) => (*name).to_owned(),
            _ => lower,
        };
        let has = |extension: &&str| lower.strip_suffix(*extension).is_some_and(|stem| stem.ends_with('.'));
        TYPES.iter().find(|row| row.extensions.iter().any(has))
    }

    /// The type indicated by the first bytes of a file.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<&'static Self> {
        packds_pixels::other_format(bytes).and_then(Self::named)
    }

    /// Whether files of this type may contain arrays of images.
    pub(super) fn is_array(&self) -> bool {
        ["MATLAB", "pickle", "raw numbers"].contains(&self.name)
    }

    /// Whether files of this type contain only an image.
    pub(super) fn is_picture(&self) -> bool {
        PICTURES.contains(&self.name)
    }
}

/// Counts files that are not read, by the name of their type if it is known, otherwise by extension.
#[derive(Debug, Clone, Default)]
pub(super) struct UnreadFiles {
    types: BTreeMap<&'static str, Tally>,
    others: BTreeMap<String, Tally>,
    /// Files that are read, and not counted.
    read: Vec<Vec<u8>>,
}

impl UnreadFiles {
    /// Counts all files except these.
    pub(super) fn except(read: Vec<Vec<u8>>) -> Self {
        Self { read, ..Self::default() }
    }

    pub(super) fn add(&mut self, file: &[u8]) {
        match Unread::of_name(file).filter(|_| !is_note(file)) {
            Some(row) => self.types.entry(row.name).or_default().add(file),
            None => self.add_other(file),
        }
    }

    /// Counts a file by its extension. Notes about the dataset are not counted.
    pub(super) fn add_other(&mut self, file: &[u8]) {
        if !is_note(file) && !self.read.iter().any(|read| read == file) {
            self.others.entry(extension(file)).or_default().add(file);
        }
    }

    /// Adds the counts of later files.
    pub(super) fn append(&mut self, other: Self) {
        for (name, tally) in other.types {
            self.types.entry(name).or_default().append(tally);
        }
        for (extension, tally) in other.others {
            self.others.entry(extension).or_default().append(tally);
        }
    }

    /// One warning for each type, and one for all other files.
    pub(super) fn into_warnings(self) -> impl Iterator<Item = Warning> {
        let of = |(name, tally): (_, Tally)| tally.warning(|count, first| Warning::UnreadType { name, count, first });
        let others = self.others.into_iter();
        let groups: Vec<_> = others.map(|(extension, tally)| (extension, tally.count, tally.first)).collect();
        let others = (!groups.is_empty()).then_some(Warning::OtherFiles { groups });
        self.types.into_iter().filter_map(of).chain(others)
    }

    /// The error about a folder with such files, but without images. It names the most frequent type.
    pub(super) fn error(&self, folder: &Path) -> Option<ConvertError> {
        let (name, tally) = self.types.iter().rev().max_by_key(|(_, tally)| tally.count)?;
        let (count, first) = (tally.count, lossy(&tally.first));
        let label = if count == 1 { "" } else { "first: " };
        let files = counted(count, "file");
        let reason = format!("no images in this folder, but {files} of type {name} ({label}'{first}')");
        let scene = if *name == "MATLAB" { matlab::scene(folder) } else { None };
        let hint = scene.unwrap_or_else(|| Unread::named(name).map_or("", |row| row.hint).to_owned());
        Some(ConvertError::unsupported(folder, "", reason, hint))
    }
}

/// The warning about tables and images next to files of another format, such as `classes.csv` next to `train.npz`. Other files
/// there, such as lists of class names, may belong to the format. Files of the format `kind` are read, so they cause no
/// warning.
pub(super) fn others_in(folder: &Path, kind: SourceKind) -> Option<Warning> {
    const TABLES: [&str; 6] = ["csv", "tsv", "xlsx", "xls", "jsonl", "mat"];
    let mut names = if folder.is_dir() { names_in(folder) } else { Vec::new() };
    let is_read = |name: &String| DataFormat::from_file_name(name).is_some_and(|format| kind == format.into());
    let is_known = |name: &[u8]| TABLES.contains(&extension(name).as_str()) || is_image_name(name);
    names.retain(|name| is_known(name.as_bytes()) && folder.join(name).is_file());
    names.retain(|name| !is_read(name));
    names.sort_unstable();
    let mut unread = UnreadFiles::default();
    names.iter().for_each(|name| unread.add_other(name.as_bytes()));
    unread.into_warnings().next()
}

/// Whether a file is a note about the dataset, such as a README, or a hidden file.
pub(super) fn is_note(file: &[u8]) -> bool {
    const NOTES: [&str; 8] =
        ["readme", "license", "licence", "copying", "citation", "changelog", "thumbs.db", "desktop.ini"];
    let lower = lossy(file).to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    name.starts_with('.')
        || name.ends_with(".md")
        || name == METADATA_FILE
        || NOTES.iter().any(|note| name.starts_with(note))
}

/// The extension of a file in lower case, without the dot. Empty if it has none.
fn extension(file: &[u8]) -> String {
    const LONGEST: usize = 10;
    let lower = lossy(file).to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_one = extension.len() <= LONGEST && extension.chars().all(|c| c.is_ascii_alphanumeric());
    if is_one { extension.to_owned() } else { String::new() }
}

/// Joins the warnings about other files into one at the end. Leaves out a file that is the only one with its extension and that
/// another warning names.
pub(super) fn join_other_files(warnings: &mut Vec<Warning>) {
    let mut joined = UnreadFiles::default();
    warnings.retain_mut(|warning| match warning {
        Warning::OtherFiles { groups } => {
            let groups = std::mem::take(groups).into_iter();
            let others = groups.map(|(extension, count, first)| (extension, Tally { count, first })).collect();
            joined.append(UnreadFiles { others, ..UnreadFiles::default() });
            false
        }
        _ => true,
    });
    let named = |file: &[u8]| {
        warnings.iter().any(|warning| match warning {
            Warning::ManifestUnread { file: named, .. }
            | Warning::LabelsUnread { file: named }
            | Warning::MaskColors { file: named, .. } => named == file,
            _ => false,
        })
    };
    joined.others.retain(|_, tally| tally.count > 1 || !named(&tally.first));
    warnings.extend(joined.into_warnings());
}

/// Removes `n` files of this extension from the other files, because they were read or have a warning of their own. `is_taken`:
/// whether a file may be one of these, so that it is no longer named as the first of the others.
pub(super) fn take_others(warnings: &mut Vec<Warning>, extension: &str, n: u64, is_taken: impl Fn(&[u8]) -> bool) {
    warnings.retain_mut(|warning| match warning {
        Warning::OtherFiles { groups } => {
            groups.retain_mut(|(other, count, first)| {
                if other == extension {
                    *count = count.saturating_sub(n);
                    if is_taken(first) {
                        first.clear();
                    }
                }
                *count > 0
            });
            !groups.is_empty()
        }
        _ => true,
    });
}

/// Removes files from the warnings about tables and lists that were not read, and folders of such files from the warnings about a
/// single other folder.
pub(super) fn take_offered(warnings: &mut Vec<Warning>, files: &[Vec<u8>]) {
    let has_file =
        |folder: &[u8]| files.iter().any(|file| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/")));
    warnings.retain_mut(|warning| match warning {
        Warning::FoldersBesidePairs { count: 1, first }
        | Warning::FoldersBesideSplits { count: 1, first }
        | Warning::FoldersBesideWrapper { count: 1, first } => !has_file(first),
        Warning::ManifestUnread { file, others } | Warning::ListsUnread { file, others } => {
            let mut left: Vec<Vec<u8>> = std::iter::once(std::mem::take(file)).chain(std::mem::take(others)).collect();
            left.retain(|file| !files.contains(file));
            let mut left = left.into_iter();
            let first = left.next();
            others.extend(left);
            first.map(|first| *file = first).is_some()
        }
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_the_longest_extension_and_by_the_first_bytes() {
        for (file, name) in [
            ("a/b.DCM", "DICOM"),
            ("brain.nii.gz", "NIfTI"),
            ("x.mat", "MATLAB"),
            ("IMG_0001.HEIC", "HEIC"),
            ("x.cr2", "camera raw"),
        ] {
            assert_eq!(Unread::of_name(file.as_bytes()).unwrap().name, name);
        }
        assert!(Unread::of_name(b"dcm").is_none() && Unread::of_name(b"x.gz").is_none());
        assert_eq!(Unread::of_bytes(b"MATLAB 7.3 MAT-file").unwrap().name, "MATLAB 7.3");
    }

    #[test]
    fn other_files_are_grouped_by_extension_and_joined() {
        let of = |files: &[&str]| {
            let mut unread = UnreadFiles::default();
            files.iter().for_each(|file| unread.add(file.as_bytes()));
            unread
        };
        let first = of(&["b/1.TXT", "README.txt", ".hidden", "a/notes.md", "x.json", "checksums"]);
        let mut warnings: Vec<Warning> = first.into_warnings().chain(of(&["c.txt", "d.dcm"]).into_warnings()).collect();
        join_other_files(&mut warnings);
        let texts: Vec<String> = warnings.iter().skip(1).map(ToString::to_string).collect();
        let expected = "ignored 4 other files: 1 without an extension ('checksums'), 1 .json ('x.json'), 2 .txt (first: 'b/1.TXT')";
        assert_eq!(texts, [expected]);
        take_others(&mut warnings, "txt", 2, |_| true);
        assert_eq!(warnings[1].to_string(), expected.replace(", 2 .txt (first: 'b/1.TXT')", "").replace('4', "2"));
    }

    #[test]
    fn no_extension_belongs_to_two_types_or_to_an_image() {
        let extensions: Vec<&str> = TYPES.iter().flat_map(|row| row.extensions).copied().collect();
        for (number, extension) in extensions.iter().enumerate() {
            assert!(!extensions[..number].contains(extension), "{extension}");
            assert!(packds_pixels::ImageFormat::from_extension(extension.as_bytes()).is_none(), "{extension}");
        }
    }
}
