//! Reads WebDataset: tar files in which the members of a sample, named `KEY.EXTENSION`, are adjacent.
//!
//! Members of plain tar files are read in place, even in tar files inside a tar file. Compressed files are unpacked, several in
//! parallel. Pickles are never run.

mod folders;
mod names;

use packds_system::{to_u64, to_usize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use self::names::{Kind, is_image, key_and_extension, kind_and_field, without_root};
use super::ListOptions;
use super::candidate::{SNIFFED_BYTES, is_image_bytes};
use super::column::SourceColumn;
use super::compressed::Compression;
use super::detect::{names_in, tables_of_tars};
use super::found::{Found, FoundLabels, LabelValues, Names};
use super::gather::{Gathered, Gathering, Item, Raw, shown};
use super::listing::Faults;
use super::packed::Packed;
use super::paths::as_path;
use super::roles::is_label_name;
use super::rows::Cell;
use super::shards::{Shards, allow_open_files};
use super::spool::Spool;
use super::store::{Content, OpenFile, SpanFiles};
use super::tally::Tally;
use super::tar::{Member, TarReader};
use super::there::text_file;
use super::unread::UnreadFiles;
use super::values::text_of;
use super::warning::{Warning, readable};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::{CLASSES_FILE, METADATA_RECORD, Metadata};
use crate::opt::IMAGE_KEY;
use crate::ordered::{Next, ordered};
use crate::sample::MAX_FILE_BYTES;

/// The field of `.txt` members.
const CAPTION: &str = "txt";

/// Whether a tar file holds files of another kind of source, such as images and masks, instead of samples. If the tar
/// file cannot be read, the reader of samples reports why.
pub(super) fn is_of_files(path: &Path) -> Result<bool, ConvertError> {
    let mut tar = TarReader::open(path, METADATA_RECORD)?;
    let most = if tar.is_plain() { usize::MAX } else { folders::MAX_PACKED };
    let mut members = Vec::new();
    while members.len() < most
        && let Ok(Some(member)) = tar.next()
    {
        if member.is_file {
            members.push(member);
        }
    }
    Ok(tar.global.is_none() && folders::are_files(&members, tar.is_plain()))
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut samples = Samples::new(options);
    let mut tars = Vec::new();
    for file in &part.files {
        tars.extend(TarFile::in_file(file)?);
    }
    let part = &Shards { files: tars.iter().map(|tar| tar.path.clone()).collect(), ..part.clone() };
    let (shards, files) = list_shards(part, tars, options, &mut samples)?;
    for shard in shards {
        let file = files.get(to_usize(shard.file));
        let file = file.ok_or_else(|| ConvertError::malformed(&shard.path, "", "no such file"))?;
        samples.add_shard(&shard, file)?;
    }
    samples.into_found(part, options, files)
}

/// A tar file, possibly inside another tar file.
struct TarFile {
    /// The path of the tar file for errors.
    path: PathBuf,
    file: PathBuf,
    /// Start and end in the file. `None` for the whole file.
    range: Option<(u64, u64)>,
}

impl TarFile {
    fn open(&self) -> Result<OpenFile, ConvertError> {
        let mut file = OpenFile::open(&self.file).map_err(ConvertError::io(&self.file))?;
        if let Some((_, end)) = self.range {
            file.path.clone_from(&self.path);
            file.bytes = file.bytes.min(end);
        }
        Ok(file)
    }

    /// The inner tar files of a plain tar file that contains only tar files, such as one per class. Otherwise the file itself.
    fn in_file(file: &Path) -> Result<Vec<Self>, ConvertError> {
        let whole = Self { path: file.to_owned(), file: file.to_owned(), range: None };
        let mut tar = TarReader::open(file, METADATA_RECORD)?;
        let mut inner = Vec::new();
        // An error only ends this loop. It is reported later, when the samples are read.
        while let (true, Ok(Some(member))) = (tar.is_plain(), tar.next()) {
            if member.is_file && folders::is_tar_name(&member.name) {
                let path = file.join(as_path(&without_root(member.name)));
                let range = Some((member.offset, member.offset.saturating_add(member.bytes)));
                inner.push(Self { path, file: file.to_owned(), range });
            } else if member.is_file {
                return Ok(vec![whole]);
            }
        }
        Ok(if inner.is_empty() { vec![whole] } else { inner })
    }
}

/// A shard, and those of its members that may belong to samples.
struct Shard {
    path: PathBuf,
    /// The index of the file that the members' offsets refer to.
    file: u32,
    members: Vec<Member>,
    metadata: Option<Vec<u8>>,
    ignored: u64,
    is_open_ended: bool,
}

/// Lists all shards on all threads and adds their samples in order. Returns the shards that can only be added once unpacking has
/// finished, and the files that contain the members of all shards.
fn list_shards(
    part: &Shards,
    tars: Vec<TarFile>,
    options: &ListOptions,
    samples: &mut Samples<'_>,
) -> Result<(Vec<Shard>, Arc<Vec<OpenFile>>), ConvertError> {
    let jobs = options.jobs.max(1).min(part.files.len());
    allow_open_files(part.files.len());
    let spools: Vec<Mutex<Option<Spool>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let mut tars = tars.into_iter();
    let (mut waiting, mut plain) = (Vec::new(), Vec::new());
    ordered(
        jobs,
        jobs * 2,
        || (),
        |(), tar: TarFile| list_shard(&tar, &spools, options),
        || Ok::<_, ConvertError>(tars.next()),
        |listed: Result<(Shard, Option<Arc<OpenFile>>), ConvertError>| {
            let (mut shard, file) = listed?;
            if let Some(file) = file {
                // In the list of files, the plain files come after the spools.
                shard.file = u32::try_from(jobs + plain.len()).unwrap_or(u32::MAX);
                if waiting.is_empty() {
                    samples.add_shard(&shard, &file)?;
                    plain.push(file);
                    return Ok(Next::Continue);
                }
                plain.push(file);
            }
            waiting.push(shard);
            Ok(Next::Continue)
        },
    )?;
    let mut files = Vec::new();
    for spool in spools {
        let spool = spool.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.push(match spool {
            Some(spool) => spool.finish(&part.root)?,
            // Nothing was unpacked, so nothing refers to this file.
            None => OpenFile::empty().map_err(ConvertError::io(&part.root))?,
        });
    }
    for file in plain {
        let file = Arc::into_inner(file);
        files.push(file.ok_or_else(|| ConvertError::malformed(&part.root, "", "in use"))?);
    }
    Ok((waiting, Arc::new(files)))
}

/// Lists one shard. A compressed shard is unpacked into one of the `spools`.
fn list_shard(
    tar: &TarFile,
    spools: &[Mutex<Option<Spool>>],
    options: &ListOptions,
) -> Result<(Shard, Option<Arc<OpenFile>>), ConvertError> {
    let file = tar.open()?;
    // If the file is too short, the tar reader reports that.
    let magic = file.bytes_at(0, file.bytes.min(6)).unwrap_or_default();
    let path = tar.path.clone();
    let mut shard = Shard { path, file: 0, members: Vec::new(), metadata: None, ignored: 0, is_open_ended: false };
    let start = tar.range.map_or(0, |(start, _)| start);
    if start == 0 && Compression::of(&magic).is_some() {
        unpack(&mut shard, spools, options)?;
        return Ok((shard, None));
    }
    let file = Arc::new(file);
    let mut tar = TarReader::plain(Arc::clone(&file), METADATA_RECORD).starting_at(start);
    while let Some(member) = tar.next()? {
        match is_of_sample(&member) {
            true => shard.members.push(member),
            false => shard.ignored += 1,
        }
    }
    shard.metadata = tar.global.take();
    shard.is_open_ended = tar.is_open_ended;
    drop(tar);
    Ok((shard, Some(file)))
}

fn unpack(shard: &mut Shard, spools: &[Mutex<Option<Spool>>], options: &ListOptions) -> Result<(), ConvertError> {
    // There are as many spools as threads, so one is free.
    let free = (0_u32..).zip(spools).find_map(|(number, spool)| spool.try_lock().ok().map(|spool| (number, spool)));
    let Some((number, mut spool)) = free else {
        return Err(ConvertError::malformed(&shard.path, "", "no free spool"));
    };
    shard.file = number;
    let spool = match spool.as_mut() {
        Some(spool) => spool,
        None => spool.insert(Spool::create(&options.spool_folder())?),
    };
    spool.begin_file(Packed::Stream(shard.path.as_path().into()));
    let mut tar = TarReader::open(&shard.path, METADATA_RECORD)?;
    let mut bytes = Vec::new();
    while let Some(mut member) = tar.next()? {
        if !is_of_sample(&member) {
            shard.ignored += 1;
            continue;
        }
        if member.bytes > MAX_FILE_BYTES {
            let reason = format!(
                "'{}' is {} bytes long, more than the limit of {MAX_FILE_BYTES}",
                shown(&member.name),
                member.bytes
            );
            return Err(tar.malformed(member.offset, reason));
        }
        bytes.clear();
        tar.data(&member, u64::MAX, &mut bytes)?;
        spool.at(member.offset);
        member.offset = spool.append(&bytes)?;
        shard.members.push(member);
    }
    shard.metadata = tar.global.take();
    shard.is_open_ended = tar.is_open_ended;
    Ok(())
}

/// Whether a member can belong to a sample. False for members that the `webdataset` library ignores.
fn is_of_sample(member: &Member) -> bool {
    let first = member.name.split(|b| *b == b'/').next().unwrap_or_default();
    let is_meta = first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__");
    member.is_file && !is_meta && key_and_extension(&member.name).is_some()
}

/// Samples being collected.
struct Samples<'a> {
    options: &'a ListOptions,
    image_key: Option<&'a str>,
    /// The field of the label, or its key in the JSON members.
    label_key: Option<&'a str>,
    fields: Vec<Gathered>,
    /// The field index of each extension. `None` if ignored.
    places: BTreeMap<Vec<u8>, Option<usize>>,
    /// The label in the JSON of each sample; null if there is none.
    labels: Vec<Value>,
    paths: Vec<Vec<u8>>,
    /// The number of samples up to the end of each shard.
    ends: Vec<usize>,
    /// Whether each folder holds one sample. `None` before the first shard.
    by_folder: Option<bool>,
    faults: Faults,
    metadata: Option<Vec<u8>>,
    refused: Tally,
    undecoded: UnreadFiles,
    open_ended: Tally,
    /// Excluded extensions and fields found so far.
    left_out: BTreeSet<String>,
    ignored: u64,
}

/// One member of a sample: its extension and location.
struct Part<'a> {
    extension: String,
    member: &'a Member,
}

impl<'a> Samples<'a> {
    fn new(options: &'a ListOptions) -> Self {
        Self {
            options,
            image_key: options.image_key.as_deref(),
            label_key: options.label_key.as_deref(),
            fields: Vec::new(),
            places: BTreeMap::new(),
            labels: Vec::new(),
            paths: Vec::new(),
            ends: Vec::new(),
            by_folder: None,
            faults: Faults::new(),
            metadata: None,
            refused: Tally::default(),
            undecoded: UnreadFiles::default(),
            open_ended: Tally::default(),
            left_out: BTreeSet::new(),
            ignored: 0,
        }
    }

    /// Whether a member is excluded, by its extension or field.
    fn is_left_out(&mut self, extension: &str, field: &str) -> bool {
        let names = [extension, field];
        let named = names.into_iter().find(|name| self.options.is_left_out(name));
        if let Some(name) = named
            && !self.left_out.contains(name)
        {
            self.left_out.insert(name.to_owned());
        }
        named.is_some()
    }

    /// All names that can be excluded.
    fn names(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|field| field.name.clone());
        let extensions = self.places.keys().map(|e| String::from_utf8_lossy(e).into_owned());
        let names: BTreeSet<String> = fields.chain(extensions).collect();
        names.union(&self.left_out).cloned().collect()
    }

    /// Adds the samples of a shard. Adjacent members with the same key form a sample.
    fn add_shard(&mut self, listed: &Shard, file: &OpenFile) -> Result<(), ConvertError> {
        if self.metadata.is_none() {
            self.metadata.clone_from(&listed.metadata);
        }
        self.ignored += listed.ignored;
        if listed.is_open_ended {
            self.open_ended.add(name_of(&listed.path).as_bytes());
        }
        let mut key: &[u8] = &[];
        // The order of this set does not matter, because it is used only for lookups.
        let mut before: HashSet<&[u8]> = HashSet::new();
        let mut parts: Vec<Part<'_>> = Vec::new();
        let (path, number) = (listed.path.as_path(), listed.file);
        let shard = ShardFile { path, number, file };
        let by_folder = *self.by_folder.get_or_insert_with(|| folders::are_samples(&listed.members));
        for member in &listed.members {
            let parts_of_name = match by_folder {
                true => folders::in_folder(&member.name),
                false => key_and_extension(&member.name),
            };
            let Some((own, extension)) = parts_of_name else {
                continue;
            };
            if own != key && !parts.is_empty() {
                self.add_sample(&shard, key, &parts, before.contains(key))?;
                before.insert(key);
                parts.clear();
            }
            key = own;
            let extension = String::from_utf8_lossy(extension).to_ascii_lowercase();
            if parts.iter().any(|part| part.extension == extension) {
                let reason = format!("two members have the name '{}'", shown(&member.name));
                let hint = "give each member of a sample its own extension: KEY.EXTENSION";
                return Err(ConvertError::contradictory(path, "", reason, hint));
            }
            parts.push(Part { extension, member });
        }
        if !parts.is_empty() {
            self.add_sample(&shard, key, &parts, before.contains(key))?;
        }
        self.ends.push(self.paths.len());
        Ok(())
    }

    /// Adds the sample of these members. `is_again` means that its key appeared earlier in the shard.
    fn add_sample(
        &mut self,
        shard: &ShardFile<'_>,
        key: &[u8],
        parts: &[Part<'_>],
        is_again: bool,
    ) -> Result<(), ConvertError> {
        let mut image: Option<&str> = None;
        for part in parts {
            let (kind, field) = shard.kind_and_field(part, self.image_key);
            if self.is_left_out(&part.extension, &field) {
                continue;
            }
            if kind == Kind::Refused || kind == Kind::Undecoded {
                match kind {
                    Kind::Refused => self.refused.add(&part.member.name),
                    _ => self.undecoded.add(&part.member.name),
                }
                continue;
            }
            if field == "image" {
                if image.is_some() {
                    let reason = "this sample has several images";
                    let hint = format!("choose the extension of the images with {IMAGE_KEY}");
                    return Err(ConvertError::unsupported(shard.path, &shown(key), reason, hint));
                }
                image = Some(&part.extension);
            }
            self.add_item(shard, part, (kind, field))?;
        }
        // A sample with a bad number is already marked as bad, so its missing members are not reported.
        let missing = self.fill().filter(|_| !self.faults.contains_key(&self.paths.len()));
        if let Some(field) = &missing
            && is_again
        {
            let reason =
                format!("the members of this sample are not adjacent: no '{field}' next to {}", extensions(parts));
            let hint = "write the members of each sample one after another, as `tar --sort=name` does";
            return Err(ConvertError::contradictory(shard.path, &shown(key), reason, hint));
        }
        if let Some(field) = missing {
            let reason = format!(
                "expected a member for the field '{field}', as in other samples, found {} (in {})",
                extensions(parts),
                name_of(shard.path)
            );
            self.faults.insert(self.paths.len(), reason.into());
        }
        let mut path = key.to_vec();
        let extension = image.or(parts.first().map(|part| part.extension.as_str()));
        path.push(b'.');
        path.extend_from_slice(extension.unwrap_or_default().as_bytes());
        self.paths.push(path);
        Ok(())
    }

    /// Adds a placeholder for each item that the current sample lacks. Returns the first missing field.
    fn fill(&mut self) -> Option<String> {
        let n = self.paths.len() + 1;
        let mut missing = None;
        for field in self.fields.iter_mut().filter(|field| field.len() < n) {
            field.push_missing();
            missing.get_or_insert_with(|| field.name.clone());
        }
        if self.label_key.is_some() {
            self.labels.resize(n, Value::Null);
        }
        missing
    }

    fn add_item(
        &mut self,
        shard: &ShardFile<'_>,
        part: &Part<'_>,
        (kind, field): (Kind, String),
    ) -> Result<(), ConvertError> {
        let raw = shard.raw(part.member);
        if kind == Kind::Json {
            self.take_json_label(shard, part, &field)?;
        }
        let field = self.unused_name(part, kind, field);
        let known = self.places.get(part.extension.as_bytes()).copied();
        let known = known.or_else(|| {
            let place = self.fields.iter().position(|own| own.name == field)?;
            Some(Some(place))
        });
        let text;
        let item = match kind {
            Kind::Image => raw.stored(0, Content::File),
            Kind::Array => raw.array()?,
            Kind::Text => {
                text = raw.text()?;
                Item::Text(&text)
            }
            Kind::Integer => {
                text = raw.text()?;
                let own = known.flatten().and_then(|place| self.fields.get(place));
                match text.trim().parse() {
                    Ok(number) if !own.is_some_and(Gathered::is_text) => Item::Int(number),
                    Err(_) if own.is_some_and(Gathered::is_of_ints) => {
                        self.add_bad_number(shard, part, text.trim());
                        return Ok(());
                    }
                    _ => Item::Text(text.trim()),
                }
            }
            Kind::Json => {
                text = json(&raw)?.to_string();
                Item::Json(&text)
            }
            Kind::Bytes | Kind::Undecoded | Kind::Refused => raw.stored(0, Content::Bytes),
        };
        match known {
            Some(Some(place)) => {
                let own = self.fields.get_mut(place);
                own.map_or(Ok(()), |own| own.push(&item)).map_err(|reason| raw.wrong(reason))
            }
            Some(None) => {
                self.ignored += 1;
                Ok(())
            }
            // The first sample decides which fields exist. The label is an exception, because otherwise all labels would be
            // lost if the first sample had none.
            None if self.paths.is_empty() || self.is_label(&field) => {
                let place = self.fields.len();
                self.places.insert(part.extension.clone().into_bytes(), Some(place));
                self.begin(shard, part, field, &item);
                Ok(())
            }
            None => {
                self.places.insert(part.extension.clone().into_bytes(), None);
                self.ignored += 1;
                Ok(())
            }
        }
    }

    /// Marks the current sample as bad, because a member is not a number, unlike in earlier samples. A placeholder
    /// later replaces the number.
    fn add_bad_number(&mut self, shard: &ShardFile<'_>, part: &Part<'_>, found: &str) {
        let found: String = found.chars().take(40).collect();
        let reason = format!(
            "'{}' in {}: expected an integer, as in other samples, found '{}'",
            shown(&part.member.name),
            name_of(shard.path),
            found.escape_debug()
        );
        self.faults.entry(self.paths.len()).or_insert(reason.into());
    }

    /// Takes the label from the JSON of the field `field`, if it contains the label's key.
    fn take_json_label(&mut self, shard: &ShardFile<'_>, part: &Part<'_>, field: &str) -> Result<(), ConvertError> {
        let Some(key) = self.label_key.filter(|key| *key != field) else {
            return Ok(());
        };
        let value = json(&shard.raw(part.member))?;
        if let Some(label) = value.get(key) {
            self.labels.resize(self.paths.len(), Value::Null);
            self.labels.push(label.clone());
        }
        Ok(())
    }

    fn is_label(&self, field: &str) -> bool {
        match self.label_key {
            Some(key) => key == field,
            None => is_label_name(field) && !self.fields.iter().any(|f| is_label_name(&f.name)),
        }
    }

    /// Adds a field that all earlier samples lack, which makes them bad samples.
    fn begin(&mut self, shard: &ShardFile<'_>, part: &Part<'_>, field: String, item: &Item<'_>) {
        let mut begun = Gathered::begin(field, item);
        let reason: Arc<str> = format!(
            "expected a member for the field '{}', as in other samples ('{}' in {}), found none",
            begun.name,
            shown(&part.member.name),
            name_of(shard.path)
        )
        .into();
        for idx in 0..self.paths.len() {
            begun.push_missing();
            self.faults.entry(idx).or_insert_with(|| Arc::clone(&reason).into());
        }
        self.fields.push(begun);
    }

    /// The field name of a member of the first sample. Differs from `field` only if another extension uses that name, for example
    /// with both `cls` and `cls.npy`.
    fn unused_name(&self, part: &Part<'_>, kind: Kind, field: String) -> String {
        let is_taken = self.fields.iter().any(|own| own.name == field);
        if !self.paths.is_empty() || !is_taken {
            return field;
        }
        match kind {
            Kind::Integer => "label".to_owned(),
            _ => part.extension.clone(),
        }
    }

    fn into_found(
        mut self,
        part: &Shards,
        options: &ListOptions,
        files: Arc<Vec<OpenFile>>,
    ) -> Result<Found, ConvertError> {
        options.check_left_out(&part.root, &self.names())?;
        let refused = std::mem::take(&mut self.refused).warning(|count, first| Warning::Pickles { count, first });
        let undecoded = std::mem::take(&mut self.undecoded).into_warnings();
        let open_ended = std::mem::take(&mut self.open_ended);
        let open_ended = open_ended.warning(|count, first| Warning::OpenEndedTars { count, first });
        let mut warnings: Vec<Warning> = refused.into_iter().chain(undecoded).chain(open_ended).collect();
        warnings.extend(tables_beside(part));
        let metadata = self.metadata.take().map(|bytes| Metadata::parse(&String::from_utf8_lossy(&bytes)));
        let metadata = readable(metadata, &mut warnings);
        let mut options = options.clone();
        let names: Vec<&str> = self.fields.iter().map(|f| f.name.as_str()).collect();
        let has = |name: &str| names.contains(&name);
        options.image_key = match options.image_key {
            // The key may be the extension of the image, but the field is named `image`.
            Some(key) if !has(&key) && is_image(&key) && has("image") => Some("image".to_owned()),
            None if !has("image") => self.only_image(),
            key => key,
        };
        let labels = self.json_labels();
        if labels.is_some() {
            options.label_key = None;
        }
        if labels.is_none() && options.label_key.is_none() {
            options.label_key = self.only_class();
        }
        self.fields.sort_by_key(|field| field.name != "image");
        let ends = std::mem::take(&mut self.ends);
        let gathering = Gathering {
            format: DataFormat::WebDataset,
            fields: self.fields,
            names: Names::Paths(self.paths.into_iter().map(without_root).collect()),
            files: SpanFiles::Open(files),
            classes: classes_beside(part)?,
            labels,
            metadata,
            warnings,
            ignored: self.ignored,
        };
        let mut found = gathering.into_found(&part.root, &options)?;
        // Captions are allowed only in a single tar file: folders of captioned images in several tar files may be shards.
        let is_caption = |column: &SourceColumn| column.name == CAPTION && part.files.len() == 1;
        let has_only_images = found.fields.is_empty() && found.texts.iter().all(is_caption) && found.masks.is_none();
        let is_unlabelled = found.labels.is_none() && found.metadata.is_none() && options.leave_out.is_empty();
        if is_unlabelled
            && has_only_images
            && let Some((labels, warning)) = folders::classes(&part.root, &found.names, &part.files, &ends)?
        {
            found.labels = Some(labels);
            found.warnings.push(warning);
        }
        Ok(Found { faults: self.faults, ..found })
    }

    /// The only possible image field, if none has the usual name.
    fn only_image(&self) -> Option<String> {
        let mut stored = self.fields.iter().filter(|field| field.is_stored());
        match (stored.next(), stored.next()) {
            (Some(field), None) => Some(field.name.clone()),
            _ => None,
        }
    }

    /// The only field whose last extension is a label name, such as `output.cls`, if no field has a label name itself.
    fn only_class(&self) -> Option<String> {
        let is_class = |field: &&Gathered| field.name.rsplit_once('.').is_some_and(|(_, last)| is_label_name(last));
        let mut classes = self.fields.iter().filter(is_class);
        let only = classes.next().filter(|_| classes.next().is_none())?;
        (!self.fields.iter().any(|field| is_label_name(&field.name))).then(|| only.name.clone())
    }

    /// Labels from the JSON members.
    fn json_labels(&mut self) -> Option<FoundLabels> {
        let key = self.label_key?;
        let values = std::mem::take(&mut self.labels);
        let is_field = self.fields.iter().any(|field| field.name == key);
        if is_field || values.iter().all(Value::is_null) {
            return None;
        }
        let reason: Arc<str> = format!("its JSON has no key '{key}'").into();
        for (idx, _) in values.iter().enumerate().filter(|(_, v)| v.is_null()) {
            self.faults.entry(idx).or_insert_with(|| Arc::clone(&reason).into());
        }
        let id = |value: &Value| match value {
            Value::Null => Some(0),
            value => value.as_i64(),
        };
        let values = match values.iter().map(id).collect() {
            Some(ids) => LabelValues::Ids(ids),
            None => LabelValues::Names(values.iter().map(|value| text_of(Cell::Json(value))).collect()),
        };
        Some(FoundLabels::without_classes(key, values))
    }
}

/// The extensions of a sample's members.
fn extensions(parts: &[Part<'_>]) -> String {
    let extensions: Vec<&str> = parts.iter().map(|part| part.extension.as_str()).collect();
    extensions.join(", ")
}

fn name_of(shard: &Path) -> std::borrow::Cow<'_, str> {
    shard.file_name().unwrap_or_default().to_string_lossy()
}

/// A shard being read.
struct ShardFile<'a> {
    path: &'a Path,
    number: u32,
    file: &'a OpenFile,
}

impl ShardFile<'_> {
    /// The kind and the field of a member. Whether a `.img` or `.image` member is an image depends on its first bytes.
    fn kind_and_field(&self, part: &Part<'_>, image_key: Option<&str>) -> (Kind, String) {
        let Member { offset, bytes, .. } = part.member;
        let may_be_image = image_key.is_none() && matches!(part.extension.as_str(), "img" | "image");
        let head = || self.file.bytes_at(*offset, (*bytes).min(to_u64(SNIFFED_BYTES))).unwrap_or_default();
        match may_be_image && is_image_bytes(&head()) {
            true => (Kind::Image, "image".to_owned()),
            false => kind_and_field(&part.extension, image_key),
        }
    }

    fn raw<'b>(&'b self, member: &'b Member) -> Raw<'b> {
        let Member { name, offset, bytes, .. } = member;
        Raw { file: self.file, number: self.number, path: self.path, name, offset: *offset, bytes: *bytes }
    }
}

/// The bytes of a member as JSON.
fn json(raw: &Raw<'_>) -> Result<Value, ConvertError> {
    serde_json::from_str(&raw.text()?).map_err(|e| raw.wrong(format!("expected JSON: {e}")))
}

/// The warning about Parquet files that are named like the tar files next to them.
fn tables_beside(part: &Shards) -> Option<Warning> {
    let mut names = names_in(&part.root);
    names.sort();
    let tables = tables_of_tars(&names);
    let first = tables.first()?.as_bytes().to_vec();
    Some(Warning::TablesOfTars { count: to_u64(tables.len()), first })
}

/// The class names in a file such as `classes.txt` next to the shards, one per line.
fn classes_beside(part: &Shards) -> Result<Vec<String>, ConvertError> {
    let folder = match () {
        () if part.root.is_dir() => Some(part.root.as_path()),
        // Files next to a single shard may be unrelated.
        () if part.root.is_file() => None,
        () => part.root.parent(),
    };
    for name in [CLASSES_FILE, "classnames.txt", "class_names.txt"] {
        if let Some(text) = folder.map_or(Ok(None), |folder| text_file(&folder.join(name)))? {
            return Ok(text.lines().map(str::to_owned).collect());
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests;
