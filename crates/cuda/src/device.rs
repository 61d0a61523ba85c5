//! A GPU as a device of the loader.

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

/// A GPU. It may serve several loaders, each with a ring of its own.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
    /// Where images come from.
    images: ImageSource,
    /// What is asked for beside staging memory.
    asked: Asked,
    /// Why it is in its tier, where nobody said in which.
    why: Option<String>,
}

/// Where chunks and batches are to come from, if that can be.
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
    /// The GPU with this number, as the driver counts them from 0.
    ///
    /// # Errors
    /// [`CudaError`]: no driver, no such GPU, too old a driver or GPU, or what the driver says.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        Ok(Self::with(Arc::new(Nvidia::open(ordinal)?)))
    }

    /// A device behind a driver; a simulated one, for tests.
    #[must_use]
    pub fn with(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            images: ImageSource::Slots,
            asked: Asked::Staging,
            why: None,
        }
    }

    /// The same device, which is to register the mapped file of a pack with the driver, read-only, for the tiers
    /// [`GpuWindow`](Tier::GpuWindow) and [`Host`](Tier::Host): chunks, or batches that lie in the file as they are, are then copied to
    /// the GPU from the page cache, without a copy by the processor. The whole file is held in memory as long as the device. Where
    /// something is against it they are copied through staging memory, and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn registering_file(mut self) -> Self {
        self.asked = Asked::File;
        self
    }

    /// The same device, which is to read chunks from the disk into the GPU's memory, past the page cache and the processor, by GPUDirect
    /// Storage: in the tier [`GpuWindow`](Tier::GpuWindow), the only one that it is for, and with checksums off, since nobody sees the
    /// bytes. Where something is against it they are copied through staging memory, and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn reading_from_disk(mut self) -> Self {
        self.asked = Asked::Disk;
        self
    }

    /// How chunks or batches come to the GPU, in a sentence; none where that is through staging memory, as asked for.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        match &self.images {
            ImageSource::Window(plan) => plan.copies.told("chunks"),
            ImageSource::Batches(copies) => copies.told("batches"),
            _ => None,
        }
    }

    /// Why the device is in the tier that it is in, or which files it decodes, in a sentence; none where the tier was named.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The same device for a loader with these options, in a tier: the one that is wanted, or else what the GPU's memory
    /// allows. In the resident tier the set is on the GPU when this returns.
    ///
    /// # Errors
    /// [`LoadError`] where the images cannot be on the GPU though that is wanted, where a resident set cannot be read whole, or
    /// where the file is to be registered and neither `GpuWindow` nor `Host` is wanted, or chunks are to be read from the disk and
    /// `GpuWindow` is not, or checksums are to be verified then.
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

    /// The tier of images that are on the host, for a loader with these options.
    ///
    /// # Errors
    /// [`LoadError`] where the order does not fit the pack.
    pub fn host_tier(builder: &LoaderBuilder) -> Result<Tier, LoadError> {
        Ok(match builder.order_kind()? {
            OrderKind::Window => Tier::HostWindow,
            _ => Tier::Host,
        })
    }

    /// The same device for a loader with these options, which is to decode its JPEG files that are within the limits, or within those that
    /// nearly all of them keep; the host decodes the others, and those that nvJPEG refuses. Pixels are nvJPEG's, which may differ from the host's a
    /// little.
    ///
    /// # Errors
    /// [`LoadError`] where the pack or the augmentation are not for that, where the file is to be registered or chunks are to be read from
    /// the disk, or where nvJPEG is missing or has failed.
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

    /// Copies from the pack's file as they are asked for, where nothing that the loader knows is against it.
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

    /// What the GPU is called.
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

/// Which files are the GPU's.
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
