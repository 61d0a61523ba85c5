//! A GPU as a device for the loader.

use std::sync::Arc;

use packds_reader::Pack;
use packds_reader::arena::{Arena, SlotMut, SlotRef};
use packds_reader::device::{Device, DeviceError, FileLimits, Holding, Transfer};
use packds_reader::loader::{BadSamples, FileSurvey, Holdable, LoadError, LoaderBuilder, Remedy};
use packds_reader::plan::OrderKind;

use crate::driver::{Driver, Nvidia};
use crate::error::CudaError;
use crate::resident::{Resident, Tables, Tier};
use crate::staging::{Copies, FilePlan, ImageSource, Ring, WindowPlan};

/// Why chunks cannot be read from the disk.
const NOT_READABLE: &str =
    "chunks are read from the disk into the GPU's memory for the tier gpu-window alone";

/// Why the mapped file cannot be registered.
const NOT_REGISTRABLE: &str = "the mapped file is registered for the tiers gpu-window and host";

/// Why there is no window on the host.
const NO_WINDOW: &str = "the tier host-window is for the order window, which mixes the samples of some chunks at a time";

/// A GPU. It may serve several loaders, each with its own ring.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
    /// The source of images.
    images: ImageSource,
    /// The requested source, if it is not staging memory.
    asked: Asked,
    /// Why it is in its tier, if the tier was not requested.
    why: Option<String>,
}

/// The requested source of chunks and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
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
        Self {
            driver,
            images: ImageSource::Slots,
            asked: Asked::Staging,
            why: None,
        }
    }

    /// Registers the mapped file of a pack with the driver, read-only. This is for the tiers [`GpuWindow`](Tier::GpuWindow)
    /// and [`Host`](Tier::Host). Chunks, or batches that are stored contiguously, are then copied to the GPU directly from
    /// the page cache, without a copy by the CPU. The whole file stays in memory as long as the device exists. If this is
    /// not possible, data goes through staging memory, and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn registering_file(mut self) -> Self {
        self.asked = Asked::File;
        self
    }

    /// Reads chunks from the disk into GPU memory by GPUDirect Storage, bypassing the page cache and the CPU. This requires
    /// the tier [`GpuWindow`](Tier::GpuWindow), and checksums must be off because the bytes never reach the CPU. If this is
    /// not possible, data goes through staging memory, and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn reading_from_disk(mut self) -> Self {
        self.asked = Asked::Disk;
        self
    }

    /// How chunks or batches get to the GPU, as a sentence. `None` if they go through staging memory as requested.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        match &self.images {
            ImageSource::Window(plan) => plan.copies.told("chunks"),
            ImageSource::Batches(copies) => copies.told("batches"),
            _ => None,
        }
    }

    /// Why the device is in its tier, or which files it decodes, as a sentence. `None` if the tier was requested.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The device for a loader with these options, in the requested tier, or else in the tier that the GPU's memory allows. In the
    /// resident tier this loads the dataset before it returns.
    ///
    /// # Errors
    /// [`LoadError`] if images are requested on the GPU but cannot be there, or a resident dataset cannot be loaded completely.
    /// Also if the file is to be registered without `GpuWindow` or `Host`, or if chunks are to be read from the disk without
    /// `GpuWindow` or with checksums.
    pub fn in_tier(
        &self,
        builder: &LoaderBuilder,
        wanted: Option<Tier>,
    ) -> Result<(Self, Tier), LoadError> {
        let because = |images, tier: Tier, why: Option<String>| {
            let device = Self {
                images,
                why: why.map(|why| format!("tier {}, because {why}", tier.name())),
                ..self.clone()
            };
            Ok((device, tier))
        };
        let with = |images, tier| because(images, tier, None);
        match (self.asked, wanted) {
            (Asked::Staging, _)
            | (Asked::File, Some(Tier::GpuWindow | Tier::Host))
            | (Asked::Disk, Some(Tier::GpuWindow)) => {}
            (Asked::File, _) => return Err(refused(NOT_REGISTRABLE, Remedy::NameTier)),
            (Asked::Disk, _) => return Err(refused(NOT_READABLE, Remedy::NameWindow)),
        }
        let host_tier = Self::host_tier(builder)?;
        if wanted == Some(Tier::HostWindow) && host_tier != Tier::HostWindow {
            return Err(refused(NO_WINDOW, Remedy::OrderWindow));
        }
        let host = |why| because(ImageSource::Slots, wanted.unwrap_or(host_tier), why);
        if wanted == Some(Tier::Host) && self.asked == Asked::File {
            let copies = self.copies_of(builder, builder.batches_in_file()?);
            return with(ImageSource::Batches(Arc::new(copies)), Tier::Host);
        }
        if matches!(wanted, Some(Tier::Host | Tier::HostWindow)) {
            return host(None);
        }
        let Some(holdable) = builder.holdable()? else {
            let too_many = || "they are too many".to_owned();
            let why = builder.against_holding()?.unwrap_or_else(too_many);
            let why = format!("the images cannot be on the GPU: {why}");
            return match wanted {
                Some(_) => Err(refused(&why, Remedy::TierHost)),
                None => host(Some(why)),
            };
        };
        if wanted.is_none() && builder.bad_sample_policy() != BadSamples::Error {
            let why = "a resident set is read whole, and a bad sample of it would be an error";
            return host(Some(why.to_owned()));
        }
        if wanted == Some(Tier::GpuWindow) {
            let plan = self.window_plan(builder, holdable)?;
            return with(ImageSource::Window(Arc::new(plan)), Tier::GpuWindow);
        }
        let memory = self.driver.memory();
        let free = memory.map_err(DeviceError::from)?.free;
        let bytes = holdable.bytes;
        let takes = |how| {
            format!(
                "the images take {bytes} bytes, {how} than 3/5 of the {free} that the GPU has free"
            )
        };
        if wanted.is_none() && Tier::of(bytes, free) == Tier::Host {
            return host(Some(takes("more")));
        }
        let resident = Resident::load(self, builder, holdable)?;
        let why = wanted.is_none().then(|| takes("no more"));
        because(
            ImageSource::Resident(Arc::new(resident)),
            Tier::Resident,
            why,
        )
    }

    /// The tier of images on the host, for a loader with these options.
    ///
    /// # Errors
    /// [`LoadError`] if the order does not match the pack.
    pub fn host_tier(builder: &LoaderBuilder) -> Result<Tier, LoadError> {
        Ok(match builder.order_kind()? {
            OrderKind::Window => Tier::HostWindow,
            _ => Tier::Host,
        })
    }

    /// The device for a loader with these options, decoding JPEG files within the limits. The default limits include nearly all of
    /// the loader's files. The host decodes the others, and those that nvJPEG refuses. The pixels come from nvJPEG and may differ
    /// slightly from the host's.
    ///
    /// # Errors
    /// [`LoadError`] if the pack or the augmentation does not support this, if the file is to be registered or chunks are
    /// to be read from the disk, or if nvJPEG is missing or failed.
    pub fn decoding_jpeg(
        &self,
        builder: &LoaderBuilder,
        limits: Option<FileLimits>,
    ) -> Result<Self, LoadError> {
        match self.asked {
            Asked::Staging => {}
            Asked::File => return Err(refused(NOT_REGISTRABLE, Remedy::NameTier)),
            Asked::Disk => return Err(refused(NOT_READABLE, Remedy::NameWindow)),
        }
        let memory = self.driver.memory().map_err(DeviceError::from)?;
        let room = memory.free / 4;
        let (limits, why) = match limits {
            Some(limits) => (limits, None),
            None => {
                let survey = builder.survey_files(room)?;
                (survey.limits, Some(told(&survey)))
            }
        };
        let decodable = builder.decodable(limits)?;
        let decoder = self.driver.open_jpeg().map_err(DeviceError::from)?;
        let tables = Tables::of(&self.driver, Some(decodable.resampling))?;
        let lost = || LoadError::Option("files without tables for resizing".to_owned());
        let plan = FilePlan {
            limits,
            room,
            rows: decodable.rows.into(),
            decoder,
            tables: tables.ok_or_else(lost)?,
        };
        Ok(Self {
            images: ImageSource::Files(Arc::new(plan)),
            why,
            ..self.clone()
        })
    }

    fn window_plan(
        &self,
        builder: &LoaderBuilder,
        holdable: Holdable,
    ) -> Result<WindowPlan, LoadError> {
        let copies = match self.asked {
            Asked::Staging => Copies::Staged,
            Asked::File => self.copies_of(builder, builder.chunks_in_file()?),
            Asked::Disk => self.copies_of(builder, builder.chunks_on_disk()?),
        };
        Ok(WindowPlan {
            pack: builder.pack().header().pack_uuid,
            chunk_bytes: holdable.chunk_bytes,
            n_chunks: builder.pack().n_chunks(),
            chunks_of_batch: holdable.chunks_of_batch,
            tables: Tables::of(&self.driver, holdable.resampling)?,
            copies,
        })
    }

    /// The requested copies from the pack's file, unless the loader rules them out.
    fn copies_of(&self, builder: &LoaderBuilder, in_file: Result<(), String>) -> Copies {
        match in_file {
            Err(why) => Copies::Refused(why),
            Ok(()) if self.asked == Asked::Disk => Copies::from_disk(&self.driver, builder.pack()),
            Ok(()) => Copies::from_file(&self.driver, builder.pack()),
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
    LoadError::OnDevice {
        why: why.to_owned(),
        remedy,
    }
}

/// Describes which files the GPU decodes.
fn told(survey: &FileSurvey) -> String {
    let FileLimits {
        file_bytes,
        pixel_bytes,
        side,
    } = survey.limits;
    let (n, of) = (survey.n_admitted, survey.n_looked_at);
    let more = match survey.lacks_room {
        true => "; with smaller batches or fewer slots there is room for larger ones",
        false => "",
    };
    format!(
        "the GPU decodes JPEG files of up to {file_bytes} bytes, {pixel_bytes} bytes of pixels and {side} pixels on the longer side, {n} of the {of} \
         images that were looked at; the host decodes the others{more}"
    )
}

impl Device for CudaDevice {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn finishes(&self) -> bool {
        true
    }

    fn most_slots(&self, slot_bytes: u64) -> Option<u64> {
        match &self.images {
            ImageSource::Files(plan) => Some(plan.most_slots(slot_bytes)),
            _ => None,
        }
    }

    fn decodes(&self) -> Option<FileLimits> {
        match &self.images {
            ImageSource::Files(plan) => Some(plan.limits),
            _ => None,
        }
    }

    fn holds(&self, pack: &Pack) -> Holding {
        let found = pack.header().pack_uuid;
        match &self.images {
            ImageSource::Resident(set) if set.pack == found => Holding::All,
            ImageSource::Window(plan) if plan.pack == found => match plan.copies {
                Copies::Disk(_) => Holding::ChunksOfFile,
                _ => Holding::Chunks,
            },
            _ => Holding::Nothing,
        }
    }

    fn attach(&self, ring: &Arc<Arena>) -> Result<Option<Arc<dyn Device>>, DeviceError> {
        let ring = Ring::new(Arc::clone(&self.driver), Arc::clone(ring), &self.images)?;
        Ok(Some(Arc::new(ring)))
    }

    fn recycle(&self, _: &mut SlotMut) {}

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        let text = "a slot of a ring that the device was not attached to";
        Err(CudaError::Use(text.to_owned()).into())
    }
}
