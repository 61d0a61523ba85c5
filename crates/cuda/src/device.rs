//! A GPU as a device for the loader.

use std::sync::Arc;

use packds_reader::Pack;
use packds_reader::device::{Attach, ChunkReceiver, Device, FileLimits, Placement, Receiver};
use packds_reader::loader::{BadSamples, FileSurvey, Holdable, LoadError, LoaderBuilder, Probe, Remedy};
use packds_reader::plan::OrderKind;

use crate::driver::{Driver, Nvidia};
use crate::error::CudaError;
use crate::resident::{Resident, Tables, Tier};
use crate::staging::{Copies, FilePlan, Images, Ring, RingWith, Window, WindowPlan};

/// The message if reads from the disk are requested for another tier.
const NOT_READABLE: &str = "only tier 'gpu-window' reads chunks from the disk into the GPU's memory";

/// The message if registering the mapped file is requested for another tier.
const NOT_REGISTRABLE: &str = "the mapped file can only be registered for tiers 'gpu-window' and 'host'";

/// The message if [`Tier::HostWindow`] is requested with another order.
const NO_WINDOW: &str = "tier 'host-window' needs order 'window', which shuffles the samples of a few chunks at a time";

/// A GPU. It can serve several loaders, each with its own ring.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
    images: ImageSource,
    requested: Requested,
    /// Why the device is in its tier, or which files it decodes, as a sentence.
    why: Option<String>,
}

/// The source of images for a device's loaders.
#[derive(Debug, Clone)]
enum ImageSource {
    /// The slots of the ring.
    Slots,
    /// The slots of the ring, or the file if batches are stored contiguously in it.
    Batches(Arc<Copies>),
    /// A dataset that is completely on the GPU.
    Resident(Arc<Resident>),
    /// The chunks of current batches, on the GPU.
    Window(Arc<WindowPlan>),
    /// JPEG files in the slots.
    Files(Arc<FilePlan>),
}

/// The requested source of chunks and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requested {
    /// Staging memory.
    Staging,
    /// The registered file.
    File,
    /// The disk.
    Disk,
}

impl CudaDevice {
    /// Opens the GPU with this number, as counted by the driver from 0.
    ///
    /// # Errors
    /// [`CudaError`] if there is no driver or no such GPU, if either is too old, or if a driver call fails.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        Ok(Self::with(Arc::new(Nvidia::open(ordinal)?)))
    }

    /// A device with a given driver, such as a simulated one for tests.
    #[must_use]
    pub fn with(driver: Arc<dyn Driver>) -> Self {
        Self { driver, images: ImageSource::Slots, requested: Requested::Staging, why: None }
    }

    /// Makes [`in_tier`](Self::in_tier) register the mapped file of the pack with the driver, read-only. This is for
    /// the tiers [`GpuWindow`](Tier::GpuWindow) and [`Host`](Tier::Host). Chunks, or batches that are stored
    /// contiguously, are then copied to the GPU directly from the page cache, without a copy by the CPU. The whole file
    /// stays in memory as long as the device exists. If registering is not possible, data goes through staging memory,
    /// and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn registering_file(mut self) -> Self {
        self.requested = Requested::File;
        self
    }

    /// Makes the device read chunks from the disk into GPU memory with GPUDirect Storage, bypassing the page cache and
    /// the CPU. This requires the tier [`GpuWindow`](Tier::GpuWindow). Checksums must be off, because the bytes never
    /// reach the CPU. If such reads are not possible, data goes through staging memory, and [`copies`](Self::copies)
    /// says why.
    #[must_use]
    pub const fn reading_from_disk(mut self) -> Self {
        self.requested = Requested::Disk;
        self
    }

    /// How chunks or batches get to the GPU, as a sentence. `None` if they go through staging memory and nothing else
    /// was requested.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        match &self.images {
            ImageSource::Window(plan) => plan.copies.told("chunks"),
            ImageSource::Batches(copies) => copies.told("batches"),
            _ => None,
        }
    }

    /// Why the device is in its tier, or which files it decodes, as a sentence. `None` if the tier or the limits for
    /// files were requested.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The device for a loader with these options. It is in the requested tier, or, if none is requested, in the tier
    /// that the GPU's memory allows. In the resident tier, the dataset is loaded before this returns.
    ///
    /// # Errors
    /// [`LoadError`] in these cases:
    /// - Images are requested on the GPU, but cannot be kept there.
    /// - A resident dataset cannot be loaded completely.
    /// - `HostWindow` is requested, but the order is not `window`.
    /// - Registering the file is requested without `GpuWindow` or `Host`.
    /// - Reading chunks from the disk is requested without `GpuWindow`, or with checksums.
    pub fn in_tier(&self, builder: &LoaderBuilder, wanted: Option<Tier>) -> Result<(Self, Tier), LoadError> {
        let probe = Probe::new(builder);
        let because = |images, tier: Tier, why: Option<String>| {
            let device =
                Self { images, why: why.map(|why| format!("tier '{}', because {why}", tier.name())), ..self.clone() };
            Ok((device, tier))
        };
        let with = |images, tier| because(images, tier, None);
        self.check_requested(wanted)?;
        let host_tier = Self::host_tier(builder)?;
        if wanted == Some(Tier::HostWindow) && host_tier != Tier::HostWindow {
            return Err(refused(NO_WINDOW, Remedy::OrderWindow));
        }
        let host = |why| because(ImageSource::Slots, wanted.unwrap_or(host_tier), why);
        if wanted == Some(Tier::Host) && self.requested == Requested::File {
            let copies = self.copies_of(probe, probe.against_batches_in_file()?);
            return with(ImageSource::Batches(Arc::new(copies)), Tier::Host);
        }
        if matches!(wanted, Some(Tier::Host | Tier::HostWindow)) {
            return host(None);
        }
        let Some(holdable) = probe.holdable()? else {
            let too_many = || "there are too many images".to_owned();
            let why = probe.against_holding()?.unwrap_or_else(too_many);
            let why = format!("the images cannot be kept on the GPU: {why}");
            return match wanted {
                Some(_) => Err(refused(&why, Remedy::TierHost)),
                None => host(Some(why)),
            };
        };
        if wanted.is_none() && probe.bad_samples() != BadSamples::Error {
            let why = "a resident dataset is read completely, so a bad sample would be an error";
            return host(Some(why.to_owned()));
        }
        if wanted == Some(Tier::GpuWindow) {
            let plan = self.window_plan(probe, holdable)?;
            return with(ImageSource::Window(Arc::new(plan)), Tier::GpuWindow);
        }
        let free = self.driver.memory()?.free;
        let bytes = holdable.bytes;
        let takes =
            |how| format!("the images take {bytes} bytes, which is {how} than 3/5 of the {free} free bytes of the GPU");
        if wanted.is_none() && Tier::of(bytes, free) == Tier::Host {
            return host(Some(takes("more")));
        }
        let resident = Resident::load(self, probe, holdable)?;
        let why = wanted.is_none().then(|| takes("no more"));
        because(ImageSource::Resident(Arc::new(resident)), Tier::Resident, why)
    }

    /// The tier of a loader with these options if its images are on the host.
    ///
    /// # Errors
    /// [`LoadError`] if the order does not match the pack.
    pub fn host_tier(builder: &LoaderBuilder) -> Result<Tier, LoadError> {
        Ok(match Probe::new(builder).order()? {
            OrderKind::Window => Tier::HostWindow,
            _ => Tier::Host,
        })
    }

    /// A device that decodes JPEG files within the limits, for a loader with these options. The default limits include
    /// nearly all of the loader's files. The host decodes all other files, and the files that nvJPEG rejects. The
    /// pixels come from nvJPEG and may differ slightly from the host's.
    ///
    /// # Errors
    /// [`LoadError`] if the pack or the augmentation does not support this, if nvJPEG is missing or failed, or if
    /// registering the file or reading chunks from the disk was requested.
    pub fn decoding_jpeg(&self, builder: &LoaderBuilder, limits: Option<FileLimits>) -> Result<Self, LoadError> {
        self.check_requested(None)?;
        let probe = Probe::new(builder);
        let room = self.driver.memory()?.free / 4;
        let (limits, why) = match limits {
            Some(limits) => (limits, None),
            None => {
                let survey = probe.survey_files(room)?;
                (survey.limits, Some(told(&survey)))
            }
        };
        let decodable = probe.decodable(limits)?;
        let decoder = self.driver.open_jpeg()?;
        let tables = Tables::load(&self.driver, decodable.resampling)?;
        let plan = FilePlan { limits, room, rows: decodable.rows.into(), decoder, tables };
        Ok(Self { images: ImageSource::Files(Arc::new(plan)), why, ..self.clone() })
    }

    /// Checks that this tier supports the requested source.
    fn check_requested(&self, wanted: Option<Tier>) -> Result<(), LoadError> {
        match (self.requested, wanted) {
            (Requested::Staging, _)
            | (Requested::File, Some(Tier::GpuWindow | Tier::Host))
            | (Requested::Disk, Some(Tier::GpuWindow)) => Ok(()),
            (Requested::File, _) => Err(refused(NOT_REGISTRABLE, Remedy::NameTier)),
            (Requested::Disk, _) => Err(refused(NOT_READABLE, Remedy::NameWindow)),
        }
    }

    fn window_plan(&self, probe: Probe<'_>, holdable: Holdable) -> Result<WindowPlan, LoadError> {
        let copies = match self.requested {
            Requested::Staging => Copies::Staged,
            Requested::File => self.copies_of(probe, probe.against_chunks_in_file()?),
            Requested::Disk => self.copies_of(probe, probe.against_chunks_on_disk()?),
        };
        Ok(WindowPlan {
            pack: probe.pack().pack_uuid(),
            chunk_bytes: holdable.chunk_bytes,
            n_chunks: probe.pack().n_chunks(),
            chunks_of_batch: holdable.chunks_of_batch,
            tables: holdable.resampling.map(|taps| Tables::load(&self.driver, taps)).transpose()?,
            copies,
        })
    }

    /// How chunks or batches are copied: from the pack's file as requested, or through staging memory if `against`
    /// gives a reason or the driver does not support the request.
    fn copies_of(&self, probe: Probe<'_>, against: Option<String>) -> Copies {
        match against {
            Some(why) => Copies::Refused(why),
            None if self.requested == Requested::Disk => Copies::from_disk(&self.driver, probe.pack()),
            None => Copies::from_file(&self.driver, probe.pack()),
        }
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// The name of the GPU.
    #[must_use]
    pub fn name(&self) -> &str {
        self.driver.device_name()
    }
}

fn refused(why: &str, remedy: Remedy) -> LoadError {
    LoadError::OnDevice { why: why.to_owned(), remedy }
}

/// Describes which files the GPU decodes.
fn told(survey: &FileSurvey) -> String {
    let FileLimits { file_bytes, pixel_bytes, side } = survey.limits;
    let (n, of) = (survey.n_admitted, survey.n_inspected);
    let more = if survey.lacks_memory { "; with smaller batches or fewer slots, larger files would fit" } else { "" };
    format!(
        "the GPU decodes JPEG files of up to {file_bytes} bytes, {pixel_bytes} bytes of pixels and {side} pixels on the longer side \
         ({n} of the {of} inspected images); the host decodes the others{more}"
    )
}

impl Device for CudaDevice {
    fn placement(self: Arc<Self>, packs: &[Arc<Pack>]) -> Placement {
        let driver = Arc::clone(&self.driver);
        let is_of = |uuid| matches!(packs, [pack] if pack.pack_uuid() == uuid);
        match self.images.clone() {
            ImageSource::Files(plan) => Placement::Files {
                limits: plan.limits,
                room: plan.room,
                attach: Box::new(move |ring| {
                    Ok(Arc::new(RingWith::new(driver, Arc::clone(ring), plan, Images::Files)?))
                }),
            },
            ImageSource::Resident(set) if is_of(set.pack) => Placement::Held(ring_with(driver, Images::Resident(set))),
            ImageSource::Window(plan) if is_of(plan.pack) => {
                let is_unread = matches!(plan.copies, Copies::Disk(_));
                let attach: Attach<dyn ChunkReceiver> = Box::new(move |ring| {
                    let window = Window::new(Arc::clone(&driver), plan, ring.n_slots())?;
                    let window = Arc::new(window);
                    Ok(Arc::new(RingWith::new(driver, Arc::clone(ring), window, Images::Window)?))
                });
                if is_unread { Placement::ChunksOfFile(attach) } else { Placement::Chunks(attach) }
            }
            ImageSource::Batches(copies) => match copies.file().map(Arc::clone) {
                Some(file) => Placement::Stored(Box::new(move |ring| {
                    Ok(Arc::new(RingWith::new(driver, Arc::clone(ring), file, Images::Stored)?))
                })),
                None => Placement::Pixels(ring_with(driver, Images::Slots)),
            },
            _ => Placement::Pixels(ring_with(driver, Images::Slots)),
        }
    }
}

/// Attaches a ring that needs only its slots.
fn ring_with(driver: Arc<dyn Driver>, images: Images) -> Attach<dyn Receiver> {
    Box::new(move |ring| Ok(Arc::new(Ring::new(driver, Arc::clone(ring), images)?)))
}
