//! Folders as sources: class folders as in torchvision's `ImageFolder`, or a flat folder. Splits are handled by `split`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    ListOptions, boxed,
    candidate::{SampleFiles, is_image_name},
    captions, class_names, coco,
    detect::{data_sets_in, format_of_folder, head_of, of_set},
    directory::{Directory, Identity},
    folder_note::FolderNote,
    folder_tables, json_files,
    layout::{Layout, MAX_DEPTH, Pair, inside, is_one_of},
    listing::{Labels, Listing, SourceKind},
    lists, mask_colors, mistaken, name_words, nested, pairs,
    paths::{as_path, joined, lossy},
    rows::RowForm,
    split,
    tally::Tally,
    there::is_there_as_file,
    twins,
    unread::{is_note, join_other_files},
    versions::Versions,
    walk::{Found, count},
    warning::Warning,
};
use crate::error::{ConvertError, quoted};
use crate::metadata::Metadata;
use crate::ordered::{Next, ordered};

/// A folder with its detected layout.
pub(super) struct Opened {
    pub(super) root: PathBuf,
    pub(super) files: SampleFiles,
    pub(super) top: Directory,
    pub(super) layout: Layout,
    /// The name of the subfolder that is read in place of its parent, if any.
    pub(super) wrapper: Option<Vec<u8>>,
    /// Number of entries next to that subfolder.
    pub(super) beside_it: u64,
    /// Hidden folders that are not read as classes.
    pub(super) hidden: Tally,
    /// Warnings about unread files and folders next to the data, such as label files or class names.
    pub(super) beside: Vec<Warning>,
    /// Tables, lists of labels or a file of another format, next to the images or in a folder above. The most likely one comes
    /// first.
    pub(super) manifests: Vec<Vec<u8>>,
}

impl Opened {
    /// Opens a folder, or its subfolder if the folder is only a wrapper.
    pub(super) fn at(root: &Path, options: &ListOptions, files: SampleFiles) -> Result<Self, ConvertError> {
        let (mut root, mut wrapper, mut manifests, mut beside_it) = (root.to_owned(), None, Vec::new(), 0);
        let (mut hidden, mut beside) = (Tally::default(), Vec::new());
        if let Some(inner) = only_with(&root, options, files)? {
            root = inner;
        }
        loop {
            let mut top = Directory::scan(&root, b"", files)?;
            if manifests.is_empty() {
                manifests = manifests_beside(&root, &top);
            }
            beside.extend(foreign_labels_in(&top));
            beside.extend(class_names::among(&top));
            let mut layout = match (options, &wrapper) {
                (ListOptions { images, masks, .. }, None) if images.is_some() || masks.is_some() => {
                    Layout::named(&root, &top, images.as_deref(), masks.as_deref())?
                }
                _ if has_only_classes(&root, options)? => Layout::Classes,
                _ => Layout::of(&root, &top, files)?,
            };
            if layout != Layout::Classes {
                top.subdirectories.iter().filter(|name| name.starts_with(b".")).for_each(|name| hidden.add(name));
            }
            let read: Option<&[&[u8]]> = match &layout {
                Layout::Pairs(Pair { images, masks }) => Some(&[images, masks]),
                Layout::Wrapper(folder) => Some(&[folder]),
                Layout::Versions(Versions { images, other, .. }) => Some(&[images, other]),
                _ => None,
            };
            if let Some(read) = read {
                beside.extend(lists::find((&root, files), &top, read, !manifests.is_empty())?);
            }
            if options.masks.is_none() && !has_only_classes(&root, options)? {
                let (told, ignored) = leave_out((&root, files), &mut top, &layout)?;
                if !told.is_empty() {
                    layout = Layout::of(&root, &top, files)?;
                }
                beside.extend(told);
                beside_it += ignored;
            }
            let Layout::Wrapper(folder) = layout else {
                return Ok(Self { root, files, top, layout, wrapper, beside_it, hidden, beside, manifests });
            };
            beside_it += count(top.n_others());
            if options.images.is_none() {
                beside.extend(regularization_beside(&mut top, &folder));
                beside.extend(beside_wrapper(&top, &folder));
            }
            root = inside(&root, &folder);
            wrapper = Some(folder);
        }
    }
}

/// Removes subfolders that are not part of the data: a copy of the others, and folders without images that are no classes. Also returns
/// the number of files in the latter.
fn leave_out(
    (root, files): (&Path, SampleFiles),
    top: &mut Directory,
    layout: &Layout,
) -> Result<(Vec<Warning>, u64), ConvertError> {
    let is_class = *layout == Layout::Classes;
    // A copy may have the name of a mask folder, as in `lgg-mri-segmentation/kaggle_3m` next to `kaggle_3m`.
    let may_be_copy = is_class || layout.pair().is_some_and(|pair| top.subdirectories.contains(&pair.masks));
    let (mut told, mut ignored) = (Vec::new(), 0);
    if may_be_copy && let Some(copy) = nested::copy_of_others(root, top, files)? {
        top.subdirectories.retain(|name| *name != copy);
        told.push(Warning::CopyOfClasses { folder: copy });
    }
    // Next to splits, other folders are ignored anyway.
    if is_class && split::split_names(top).is_empty() {
        let (empty, n_files) = mistaken::without_images((root, files), top)?;
        top.subdirectories.retain(|name| !empty.contains(name));
        let first = empty.first().cloned();
        told.extend(first.map(|first| Warning::FoldersBesideWrapper { count: count(empty.len()), first }));
        ignored = n_files;
    }
    Ok((told, ignored))
}

/// The tables among a folder's files: training manifests first, tables of boxes last.
pub(super) fn manifests_in(top: &Directory) -> Vec<Vec<u8>> {
    let rank = |name: &[u8]| {
        let lower = name.to_ascii_lowercase();
        (lists::has_boxes(&lossy(&lower)), !lower.starts_with(b"train"), name.to_vec())
    };
    let mut tables = folder_tables::names_in(top, |_| true);
    tables.sort_by_key(|name| rank(name));
    tables
}

/// The files of a folder that may be meant instead of its images.
fn manifests_beside(root: &Path, top: &Directory) -> Vec<Vec<u8>> {
    let found = [manifests_in(top), labels_in(top), rows_in(root, top), names_in(root, top)];
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_else(|| data_file_in(top).into_iter().collect())
}

/// The text or JSON files whose names suggest labels.
fn labels_in(top: &Directory) -> Vec<Vec<u8>> {
    let mut lists: Vec<Vec<u8>> =
        top.names().filter(|name| is_list(name, &[".txt", ".json"])).map(<[u8]>::to_vec).collect();
    lists.sort_unstable();
    lists
}

/// Whether a text begins with two lines of JSON objects, of which the first names an image, as in ControlNet's `prompt.json`.
fn are_json_lines(head: &str) -> bool {
    let mut lines = head.lines();
    let first = lines.next().and_then(|line| serde_json::from_str::<HashMap<String, Value>>(line).ok());
    let is_image = |value: &Value| value.as_str().is_some_and(|text| is_image_name(text.as_bytes()));
    first.is_some_and(|row| row.values().any(is_image)) && lines.next().is_some_and(|line| line.starts_with('{'))
}

/// The JSON files that begin like a list with an object for each image, or with an object on each line. If there are many JSON files, each probably describes one
/// image, so none is returned.
fn rows_in(root: &Path, top: &Directory) -> Vec<Vec<u8>> {
    const FEW_FILES: usize = 4;
    let mut files: Vec<&[u8]> = top.names().filter(|name| name.ends_with(b".json")).collect();
    let is_of_rows = |name: &&[u8]| {
        let head = head_of(&root.join(as_path(name))).unwrap_or_default();
        let head = lossy(&head);
        let has = |key: &str| head.contains(&format!("\"{key}\""));
        let is_list = head.trim_start().starts_with('[');
        (is_list && ["image", "file_name", "filename", "image_path"].into_iter().any(has))
            || are_json_lines(&head)
            || mistaken::is_keyed(&head)
    };
    if files.len() > FEW_FILES {
        return Vec::new();
    }
    files.sort_unstable();
    let found: Vec<Vec<u8>> = files.into_iter().filter(is_of_rows).map(<[u8]>::to_vec).collect();
    if found.is_empty() { coco::files_in(root, top) } else { found }
}

/// The text files whose first lines each name an image, such as `5.51 I01_01_1.bmp`. If there are many text files, each may describe one
/// image, so none is returned.
fn names_in(root: &Path, top: &Directory) -> Vec<Vec<u8>> {
    const FEW_FILES: usize = 8;
    const FIRST_LINES: usize = 3;
    let mut files: Vec<&[u8]> = top.names().filter(|name| name.ends_with(b".txt") && !is_note(name)).collect();
    if files.len() > FEW_FILES {
        return Vec::new();
    }
    files.sort_unstable();
    let names_image = |line: &str| line.split([' ', '\t', ',', ';']).any(|word| is_image_name(word.trim().as_bytes()));
    let is_list = |name: &&[u8]| {
        let head = head_of(&root.join(as_path(name))).unwrap_or_default();
        let lines: Vec<bool> = lossy(&head).lines().take(FIRST_LINES).map(names_image).collect();
        lines.len() == FIRST_LINES && lines.iter().all(|names| *names)
    };
    files.into_iter().filter(is_list).map(<[u8]>::to_vec).collect()
}

/// The warning about a label file that cannot be read.
fn foreign_labels_in(top: &Directory) -> Option<Warning> {
    const ENDS: [&str; 12] =
        [".npy", ".npz", ".pkl", ".pickle", ".pt", ".pth", ".h5", ".hdf5", ".parquet", ".xlsx", ".xls", ".xml"];
    let is_one = |name: &&[u8]| name.ends_with(b".mat") || is_list(name, &ENDS);
    top.names().filter(is_one).min().map(|file| Warning::LabelsUnread { file: file.to_vec() })
}

/// The folder below `root` that contains the image and mask folders that the caller chose, directly or in a split. All folders on
/// the way to it must contain only one folder. `None` if `root` itself contains the chosen folders, or if there is no such folder.
pub(super) fn only_with(
    root: &Path,
    options: &ListOptions,
    files: SampleFiles,
) -> Result<Option<PathBuf>, ConvertError> {
    let named: Vec<&PathBuf> = options.images.iter().chain(&options.masks).collect();
    if named.is_empty() {
        return Ok(None);
    }
    let is_in = |folder: &Path| named.iter().all(|name| folder.join(name).is_dir());
    let mut folder = root.to_owned();
    for depth in 0..MAX_DEPTH {
        let top = Directory::scan(&folder, b"", files)?;
        let visible: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
        let mut splits = split::split_names(&top).into_iter();
        if is_in(&folder) || splits.any(|split| is_in(&folder.join(split))) {
            return Ok((depth > 0).then_some(folder));
        }
        let [only] = visible.as_slice() else { return Ok(None) };
        folder = inside(&folder, only);
    }
    Ok(None)
}

/// Whether a file's name has one of these endings and contains a word for labels.
pub(super) fn is_list(name: &[u8], ends: &[&str]) -> bool {
    const WORDS: [&str; 14] = [
        "gt",
        "train",
        "val",
        "test",
        "list",
        "attr",
        "label",
        "labels",
        "annotation",
        "annotations",
        "caption",
        "captions",
        "token",
        "dataset",
    ];
    let lower = lossy(name).to_ascii_lowercase();
    let stem = ends.iter().find_map(|end| lower.strip_suffix(end));
    // These also count as part of a word, as in `sceneCategories.txt`.
    const PARTS: [&str; 4] = ["label", "annotation", "caption", "categor"];
    stem.is_some_and(|stem| {
        let has = |is: &dyn Fn(&str) -> bool| stem.split(['_', '-', '.', ' ']).any(is);
        // `Flickr8k.lemma.token.txt` repeats the captions with the base forms of their words.
        !has(&|word| word == "lemma")
            && (has(&|word| WORDS.contains(&word)) || PARTS.iter().any(|part| stem.contains(part)))
    })
}

/// Whether a lower-case file name has the extension of an archive.
pub(super) fn is_archive(name: &str) -> bool {
    [".zip", ".tar", ".tgz", ".tbz2", ".txz", ".rar", ".7z"].iter().any(|end| name.ends_with(end))
        || is_packed_data(name)
}

/// Whether a lower-case file name is the name of a compressed file in another format, such as `train_x.h5.gz`.
fn is_packed_data(name: &str) -> bool {
    [".gz", ".xz", ".bz2", ".zst"].iter().any(|end| name.strip_suffix(end).is_some_and(|inner| of_set(inner).is_some()))
}

/// The error for a folder that contains archives but no images. The module `archives` has already read folders that it
/// can read.
fn only_archives(root: &Path, top: &Directory) -> Option<ConvertError> {
    let names = top.names().map(lossy);
    let mut archives: Vec<String> = names.filter(|name| is_archive(&name.to_ascii_lowercase())).collect();
    if archives.is_empty() {
        return None;
    }
    archives.sort_unstable();
    let reason = format!("no images in this folder, but the archives {}", quoted(&archives));
    Some(ConvertError::unsupported(root, "", reason, "unpack the archives, and pass the folder again"))
}

/// Whether a table is a sample submission, as provided by Kaggle.
pub(super) fn is_submission(table: &[u8]) -> bool {
    table.to_ascii_lowercase().windows(10).any(|word| word == b"submission")
}

/// A file of another format or an archive, if there are folders next to it.
fn data_file_in(top: &Directory) -> Option<Vec<u8>> {
    let is_data = |name: &str| of_set(name).is_some() || is_archive(name);
    let is_beside = !top.subdirectories.is_empty();
    // `images.zip` next to a folder `images` is assumed to have the same contents.
    let is_unpacked = |name: &[u8]| {
        let stem = name.split(|byte| *byte == b'.').next().unwrap_or_default();
        top.subdirectories.iter().any(|folder| folder == stem)
    };
    let is_other = |name: &&[u8]| is_data(&lossy(name).to_ascii_lowercase()) && !is_unpacked(name);
    top.names().filter(|name| is_beside && is_other(name)).min().map(<[u8]>::to_vec)
}

/// Whether every subfolder is a class, whatever its name: the caller named the format, or a pack was exported into the folder, but not
/// as COCO.
fn has_only_classes(root: &Path, options: &ListOptions) -> Result<bool, ConvertError> {
    let is_exported = || Ok(known_metadata(root)?.is_some() && !is_there_as_file(&root.join(coco::EXPORTED))?);
    if options.from.is_some() { Ok(true) } else { is_exported() }
}

/// Lists a folder when no split was chosen.
pub(super) fn list_source(root: &Path, options: &ListOptions, files: SampleFiles) -> Result<Listing, ConvertError> {
    let opened = without_splits(root, options, files)?;
    let inner = opened.root.strip_prefix(root).map(Path::to_owned).unwrap_or_default();
    let mut listing = list_opened(opened, None, options)?;
    for warning in &mut listing.warnings {
        if let Warning::OneClass { class } = warning {
            *class = joined(inner.as_os_str().as_encoded_bytes(), class);
        }
    }
    Ok(listing)
}

/// The error if the folder consists of splits.
pub(super) fn refused_splits(root: &Path, options: &ListOptions) -> Option<ConvertError> {
    let refused = without_splits(root, options, SampleFiles::Images).err()?;
    matches!(refused, ConvertError::OnlySplits { .. }).then_some(refused)
}

/// Opens a folder that does not consist of splits.
fn without_splits(root: &Path, options: &ListOptions, files: SampleFiles) -> Result<Opened, ConvertError> {
    let opened = Opened::at(root, options, files)?;
    match &opened.layout {
        Layout::Pairs(pair) => {
            split::reject_splits((&opened.root, files), &Directory::scan(&opened.root, &pair.images, files)?)?
        }
        Layout::PairsInEach(_) | Layout::Versions(_) => {}
        Layout::SplitVersions(splits) => {
            let splits = splits.iter().map(|own| lossy(own.split())).collect();
            let (path, others, tables) = (opened.root, Vec::new(), Vec::new());
            return Err(ConvertError::OnlySplits { path, splits, others, tables });
        }
        _ if has_only_classes(&opened.root, options)? => {}
        _ => split::reject_splits((&opened.root, files), &opened.top)?,
    }
    Ok(opened)
}

/// Lists a folder. If `all_classes` is given, class ids are indices into it. It must be sorted and contain all classes of the
/// folder.
pub(super) fn list_opened(
    opened: Opened,
    all_classes: Option<&[Vec<u8>]>,
    options: &ListOptions,
) -> Result<Listing, ConvertError> {
    let Opened { root, files, mut top, layout, wrapper, beside_it, hidden, beside: told, mut manifests } = opened;
    let has_only_classes = has_only_classes(&root, options)?;
    if has_only_classes {
        manifests.clear();
    }
    let pair_of = layout.pair();
    let is_each = matches!(layout, Layout::PairsInEach(_));
    let mut listing = match layout {
        Layout::Pairs(pair) => {
            let mut listing = pairs::list(&root, &pair, files)?;
            if options.masks.is_none() && pair.is_voc() {
                listing = pairs::with_masks(listing, &pair);
                let boxes = boxed::has_annotations(&root).then_some(Warning::Folders(FolderNote::BoxesBesideMasks));
                listing.warnings.extend(boxes);
            }
            note_beside(&mut listing, (&root, files), &top, &[&pair.images, &pair.masks])?;
            listing
        }
        Layout::Versions(versions) => {
            let mut listing = versions.list(&root, files)?;
            note_beside(&mut listing, (&root, files), &top, &versions.folders())?;
            listing
        }
        Layout::PairsInEach(pair) => {
            top.subdirectories.sort_unstable();
            pairs::list_each((&root, files), &top, &pair, all_classes.unwrap_or(&top.subdirectories))?
        }
        Layout::ImageInEach => list_image_in_each((&root, files), top, options.jobs)?,
        _ if has_only_classes => list_scanned((&root, files), top, all_classes, options.jobs)?,
        _ => list_unmarked((&root, files), top, all_classes, &mut manifests, options.jobs)?,
    };
    if !has_only_classes && listing.masks.is_none() && listing.fields.is_empty() {
        pairs::split_masks(&mut listing);
    }
    mask_colors::find(&mut listing)?;
    if options.masks.is_none() && listing.mask_colors.is_none() {
        pairs::refuse_colors(&listing, pair_of.as_ref())?;
    }
    if !has_only_classes && listing.masks.is_none() {
        nested::refuse_masks(&listing)?;
        nested::refuse_splits(&listing)?;
        nested::refuse_versions(&listing)?;
        nested::refuse_images(&listing)?;
        nested::refuse_datasets(&listing, files)?;
    }
    if !has_only_classes && (listing.masks.is_none() || is_each) {
        let twins = twins::find(&listing)?;
        listing.warnings.extend(twins);
    }
    if !has_only_classes {
        let parts = nested::find_parts(&listing);
        listing.warnings.extend(parts);
        add_beside(&mut listing, !manifests.is_empty(), told)?;
    }
    listing.warnings.extend(Warning::manifests_unread(manifests));
    listing.ignored += beside_it;
    listing.warnings.extend(hidden.warning(|count, first| Warning::HiddenFolders { count, first }));
    let unasked = wrapper.filter(|_| options.images.is_none());
    listing.warnings.extend(unasked.map(|folder| Warning::Wrapper { folder }));
    join_other_files(&mut listing.warnings);
    // An export writes a manifest next to the class folders.
    if listing.metadata.is_some() {
        listing.warnings.retain(|warning| !matches!(warning, Warning::OtherFiles { .. }));
    }
    Ok(listing)
}

/// Lists class folders, numbered parts or a flat folder. Refuses folders and images that are something else.
fn list_unmarked(
    (root, files): (&Path, SampleFiles),
    top: Directory,
    all_classes: Option<&[Vec<u8>]>,
    manifests: &mut Vec<Vec<u8>>,
    jobs: usize,
) -> Result<Listing, ConvertError> {
    if let Some(table) = manifests.first().filter(|file| RowForm::from_path(as_path(file)).is_some()) {
        mistaken::refuse_parts(root, &top.subdirectories, table)?;
    }
    mistaken::refuse_described(root, &top.subdirectories)?;
    let parts = mistaken::numbered_parts(&top);
    let hashes = match mistaken::unlabelled_folders(root, &top) {
        None => mistaken::hash_folders(root, &top, files)?,
        unlabelled => {
            manifests.retain(|file| file != mistaken::DATASET.as_bytes());
            unlabelled
        }
    };
    let listing = list_scanned((root, files), top, all_classes, jobs)?;
    if listing.kind == SourceKind::FlatFolder && matches!(files, SampleFiles::Images) {
        mistaken::refuse_pictures(&listing)?;
    }
    Ok(match (parts, hashes) {
        (Some(parts), _) => {
            // Files next to numbered parts belong to the parts, so they are not reported as labels.
            manifests.clear();
            as_one(listing, parts)
        }
        (None, Some(hashes)) => without_nested(as_one(listing, hashes)),
        (None, None) => listing,
    })
}

/// The warning about kohya's regularization images in `reg` next to the images in `img`. Removes that folder.
fn regularization_beside(top: &mut Directory, wrapper: &[u8]) -> Option<Warning> {
    let is_reg = |name: &Vec<u8>| is_one_of(wrapper, &["img"]) && is_one_of(name, &["reg"]);
    let folder = top.subdirectories.iter().find(|name| is_reg(name)).cloned()?;
    top.subdirectories.retain(|name| *name != folder);
    Some(Warning::Folders(FolderNote::RegularizationUnread { folder }))
}

/// Returns warnings about what is next to a subfolder that is read in place of its parent.
fn beside_wrapper(top: &Directory, wrapper: &[u8]) -> Vec<Warning> {
    let mut others: Vec<&Vec<u8>> = top.subdirectories.iter().filter(|name| !name.starts_with(b".")).collect();
    others.retain(|name| name.as_slice() != wrapper);
    others.sort_unstable();
    let mut folders = Tally::default();
    others.into_iter().for_each(|name| folders.add(name));
    let folders = folders.warning(|count, first| Warning::FoldersBesideWrapper { count, first });
    folders.into_iter().chain(top.other_files()).collect()
}

/// Lists folders that each contain one image. Such folders are not classes.
fn list_image_in_each(root: (&Path, SampleFiles), top: Directory, jobs: usize) -> Result<Listing, ConvertError> {
    let folders = Warning::ImageInEach {
        count: count(top.subdirectories.len()),
        first: top.subdirectories.iter().min().cloned().unwrap_or_default(),
    };
    Ok(without_nested(as_one(list_scanned(root, top, None, jobs)?, folders)))
}

/// Removes the warning that classes have images only in subfolders.
fn without_nested(mut listing: Listing) -> Listing {
    listing.warnings.retain(|warning| !matches!(warning, Warning::NestedClasses { .. }));
    listing
}

/// Removes labels and classes from a listing whose folders are not classes, and adds a warning about the folders.
fn as_one(mut listing: Listing, parts: Warning) -> Listing {
    listing.warnings.retain(|warning| !matches!(warning, Warning::EmptyClasses { .. }));
    listing.warnings.push(parts);
    Listing { labels: Labels::None, classes: Vec::new(), kind: SourceKind::FlatFolder, ..listing }
}

/// Adds captions and objects from the files next to the images, and warnings about other files there.
fn add_beside(listing: &mut Listing, has_manifest: bool, told: Vec<Warning>) -> Result<(), ConvertError> {
    captions::add(listing)?;
    json_files::add(listing)?;
    let may_be_labels = |warning: &Warning| {
        !matches!(
            warning,
            Warning::OtherFiles { .. } | Warning::FoldersBesideWrapper { .. } | Warning::CopyOfClasses { .. }
        )
    };
    if !has_manifest && !told.iter().any(may_be_labels) {
        name_words::read(listing);
    }
    // The warning about a label file replaces the one about its file type.
    let is_told =
        |first: &Vec<u8>| told.iter().any(|warning| matches!(warning, Warning::LabelsUnread { file } if file == first));
    listing
        .warnings
        .retain(|warning| !matches!(warning, Warning::UnreadType { count: 1, first, .. } if is_told(first)));
    listing.warnings.extend(told);
    Ok(())
}

/// Reports unused files and folders next to the image and mask folders, and in the folders above them.
fn note_beside(
    listing: &mut Listing,
    (root, files): (&Path, SampleFiles),
    top: &Directory,
    paths: &[&[u8]],
) -> Result<(), ConvertError> {
    let first = |path: &[u8]| path.split(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    // In a dataset with splits, the folders are one level deeper, and nothing is reported.
    if !paths.iter().any(|path| first(path).is_some_and(|first| top.subdirectories.contains(&first))) {
        return Ok(());
    }
    let above = |path: &&[u8]| {
        let ends: Vec<usize> = (0..path.len()).filter(|at| path[*at] == b'/').collect();
        ends.into_iter().map(|end| path[..end].to_vec()).collect::<Vec<_>>()
    };
    // The mask folder may be inside the image folder.
    let is_read = |folder: &Vec<u8>| paths.iter().any(|path| folder.starts_with(path));
    let inner: BTreeSet<Vec<u8>> = paths.iter().flat_map(above).filter(|folder| !is_read(folder)).collect();
    let (mut folders, mut images) = (Tally::default(), Tally::default());
    let mut note = |path: &[u8], directory: &Directory| {
        let is_used = |folder: &[u8]| paths.contains(&folder) || inner.contains(folder);
        let visible = directory.subdirectories.iter().filter(|name| !name.starts_with(b"."));
        let mut others: Vec<Vec<u8>> = visible.map(|name| joined(path, name)).collect();
        others.sort_unstable();
        others.iter().filter(|folder| !is_used(folder)).for_each(|folder| folders.add(folder));
        let mut names: Vec<&[u8]> = directory.sample_names().collect();
        names.sort_unstable();
        names.into_iter().for_each(|name| images.add(&joined(path, name)));
        listing.ignored += count(directory.n_others());
    };
    note(b"", top);
    let mut others = Vec::new();
    for folder in &inner {
        let directory = Directory::scan(root, folder, files)?;
        note(folder, &directory);
        others.extend(directory.other_files());
    }
    listing.warnings.extend(folders.warning(|count, first| Warning::FoldersBesidePairs { count, first }));
    listing.warnings.extend(images.warning(|count, first| Warning::FilesBesidePairs { count, first }));
    listing.warnings.extend(others.into_iter().chain(top.other_files()));
    Ok(())
}

fn list_scanned(
    (root, files): (&Path, SampleFiles),
    mut top: Directory,
    all_classes: Option<&[Vec<u8>]>,
    jobs: usize,
) -> Result<Listing, ConvertError> {
    let mut own_classes = std::mem::take(&mut top.subdirectories);
    own_classes.sort_unstable();
    let all_classes = all_classes.unwrap_or(&own_classes);
    let labelled: Vec<(i64, &[u8])> = (0_i64..)
        .zip(all_classes)
        .filter(|(_, class)| own_classes.binary_search(class).is_ok())
        .map(|(label, class)| (label, class.as_slice()))
        .collect();
    let below = walk_classes((root, top.identity), &labelled, files, jobs)?;
    if below.paths.len() > 0 {
        return class_listing(root, &top, all_classes, below);
    }

    let archives = only_archives(root, &top);
    let tables = manifests_in(&top);
    let mut found = Found { ignored: below.ignored, oddities: below.oddities, ..Found::default() };
    found.add_directory(b"", 0, top);
    if found.paths.len() == 0 {
        if let Some(error) = archives.or_else(|| found.oddities.unread.error(root)) {
            return Err(error);
        }
        let own = || format_of_folder(root).map(|format| (root.to_owned(), format));
        let holds = data_sets_in(root).next().or_else(|| own().filter(|_| files == SampleFiles::Images));
        if let ([_, others @ ..], None) = (tables.as_slice(), &holds) {
            let noun = if others.is_empty() { "the table" } else { "the tables" };
            let names: Vec<String> = tables.iter().map(|table| lossy(table)).collect();
            let reason = format!("no images in this folder, but {noun} {}", quoted(&names));
            let hint =
                if others.is_empty() { "pass the table as the source" } else { "pass one of them as the source" };
            return Err(ConvertError::unsupported(root, "", reason, hint));
        }
        return Err(ConvertError::EmptySource { path: root.to_owned(), ignored: found.ignored, holds });
    }
    Ok(Listing {
        metadata: known_metadata(root)?,
        warnings: found.oddities.into_warnings(),
        ignored: found.ignored,
        ..Listing::of_files(SourceKind::FlatFolder, root, found.paths, found.bytes)
    })
}

/// The metadata that an export wrote next to the class folders. A file of that name with other contents is unrelated.
pub(super) fn known_metadata(root: &Path) -> Result<Option<Metadata>, ConvertError> {
    Ok(Metadata::in_folder(root)?.and_then(Result::ok))
}

fn class_listing(root: &Path, top: &Directory, classes: &[Vec<u8>], mut found: Found) -> Result<Listing, ConvertError> {
    let mut used = vec![false; classes.len()];
    for label in &found.directory_labels {
        if let Some(used) = usize::try_from(*label).ok().and_then(|idx| used.get_mut(idx)) {
            *used = true;
        }
    }
    let mut warnings = Vec::new();
    let numbered = (0_i64..).zip(classes.iter().zip(used));
    let mut empty = numbered.filter(|(_, (_, used))| !used);
    if let Some((id, (first, _))) = empty.next() {
        warnings.push(Warning::EmptyClasses { count: count(1 + empty.count()), first: first.clone(), id });
    }
    if let Some(first) = top.sample_names().min() {
        warnings.push(Warning::FilesBesideClasses { count: count(top.sample_names().count()), first: first.to_vec() });
    }
    warnings.extend(gifs_among(&found));
    top.note_system(&mut found.oddities);
    top.note_files(&mut found.oddities.unread);
    warnings.extend(nested::find(root, &found));
    let notes = [nested::same_folders(&found), nested::doubled_folders(&found)];
    warnings.extend(notes.into_iter().flatten().map(Warning::Folders));
    warnings.extend(found.oddities.into_warnings());
    Ok(Listing {
        labels: Labels::ByDirectory(found.directory_labels),
        classes: classes.to_vec(),
        metadata: known_metadata(root)?,
        warnings,
        ignored: found.ignored + count(top.n_others()),
        ..Listing::of_files(SourceKind::ImageFolder, root, found.paths, found.bytes)
    })
}

/// The warning if there are GIF files among images of other types.
fn gifs_among(found: &Found) -> Option<Warning> {
    let mut gifs = Tally::default();
    for idx in 0..found.paths.len() {
        if found.paths.name(idx).to_ascii_lowercase().ends_with(b".gif") {
            gifs.add(&found.paths.path(idx));
        }
    }
    let is_mixed = gifs.count < count(found.paths.len());
    gifs.warning(|count, first| Warning::Gifs { count, first }).filter(|_| is_mixed)
}

/// Walks the class folders with `jobs` threads. Neither the result nor the error returned depends on the number of threads.
fn walk_classes(
    root: (&Path, Identity),
    classes: &[(i64, &[u8])],
    files: SampleFiles,
    jobs: usize,
) -> Result<Found, ConvertError> {
    // Use several runs per thread, so that a thread with large classes does not finish much later than the others.
    const RUNS_PER_THREAD: usize = 32;
    let run_len = classes.len().div_ceil(jobs.max(1) * RUNS_PER_THREAD).max(1);
    let mut runs = classes.chunks(run_len);
    let mut found = Found::default();
    ordered(
        jobs.min(runs.len()),
        jobs.max(1) * RUNS_PER_THREAD / 2,
        || (),
        |(), run: &[(i64, &[u8])]| walk_run(root, run, files),
        || Ok::<_, ConvertError>(runs.next()),
        |run: Result<Found, ConvertError>| {
            found.append(run?);
            Ok(Next::Continue)
        },
    )?;
    Ok(found)
}

fn walk_run(root: (&Path, Identity), classes: &[(i64, &[u8])], files: SampleFiles) -> Result<Found, ConvertError> {
    let mut found = Found::default();
    for (label, class) in classes {
        found.add_class(root, class, *label, files)?;
    }
    Ok(found)
}
