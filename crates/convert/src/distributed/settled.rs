//! The options of a conversion with every decision made: what a machine needs to convert samples as planned.

use std::fmt::Display;
use std::str::FromStr;

use packds_format::{DType, Field, PackOptions, Schema};
use packds_pixels::{Color, Crop, Filter, Geometry, Layout, Orientation, Resize};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ConvertError;
use crate::options::{Compression, ConvertOptions, Mode, OnError};
use crate::plan::{FieldNumbers, ImageForm, Plan};
use crate::source::Listing;

/// See the module.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Settled {
    #[serde(with = "text")]
    mode: Mode,
    gray: bool,
    #[serde(with = "text")]
    dtype: DType,
    #[serde(with = "text")]
    layout: Layout,
    quality: Option<u8>,
    jpeg_scaling: bool,
    check_decode: bool,
    seekable: bool,
    /// `None` for no compression.
    zstd_level: Option<i32>,
    pub(super) keep_order: bool,
    seed: u64,
    #[serde(with = "text")]
    on_error: OnError,
    max_pixels: u64,
    #[serde(with = "text")]
    resize: Resize,
    #[serde(with = "text")]
    crop: Crop,
    #[serde(with = "text")]
    filter: Filter,
    #[serde(with = "text")]
    orientation: Orientation,
    form: ImageForm,
    affine: Option<(Vec<f64>, Vec<f64>)>,
    mask_size: Option<(u32, u32)>,
    #[serde(with = "text")]
    label_dtype: DType,
    pub(super) chunk_samples: u32,
    fields: Vec<Field>,
}

impl Settled {
    pub(super) fn of(options: &ConvertOptions, plan: &Plan) -> Self {
        let Geometry { resize, crop, filter, orientation } = plan.geometry;
        Self {
            mode: options.mode,
            gray: options.color() == Color::Gray,
            dtype: options.dtype,
            layout: options.layout(),
            quality: options.quality,
            jpeg_scaling: options.jpeg_scaling,
            check_decode: options.check_decode,
            seekable: options.seekable,
            zstd_level: match options.compression {
                Compression::None => None,
                Compression::Zstd(level) => Some(level),
            },
            keep_order: options.keep_order,
            seed: options.seed,
            on_error: options.on_error,
            max_pixels: options.max_pixels,
            resize,
            crop,
            filter,
            orientation,
            form: plan.form.clone(),
            affine: plan.affine.clone(),
            mask_size: plan.fields.mask_size,
            label_dtype: plan.label_dtype,
            chunk_samples: plan.pack.chunk_samples,
            fields: plan.pack.schema.fields().to_vec(),
        }
    }

    pub(super) fn schema(&self) -> Result<Schema, ConvertError> {
        Ok(Schema::new(self.fields.clone())?)
    }

    /// The options to convert a part of the listing, whose samples are in the order of the pack.
    pub(super) fn options(&self, jobs: usize) -> ConvertOptions {
        ConvertOptions {
            mode: self.mode,
            color: Some(if self.gray { Color::Gray } else { Color::Rgb }),
            dtype: self.dtype,
            layout: Some(self.layout),
            quality: self.quality,
            jpeg_scaling: self.jpeg_scaling,
            check_decode: self.check_decode,
            seekable: self.seekable,
            compression: self.zstd_level.map_or(Compression::None, Compression::Zstd),
            chunk_samples: Some(self.chunk_samples),
            keep_order: self.keep_order,
            seed: self.seed,
            on_error: self.on_error,
            max_pixels: self.max_pixels,
            jobs,
            ..ConvertOptions::default()
        }
    }

    /// The plan of the pack that contains the samples of `listing`.
    pub(super) fn plan(&self, listing: &Listing, options: &ConvertOptions) -> Result<Plan, ConvertError> {
        let schema = self.schema()?;
        let fields = FieldNumbers::of(&schema, listing, options, self.mask_size)?;
        Ok(Plan {
            geometry: Geometry {
                resize: self.resize,
                crop: self.crop,
                filter: self.filter,
                orientation: self.orientation,
            },
            form: self.form.clone(),
            pack: PackOptions::new(schema, self.chunk_samples),
            fields,
            notes: Vec::new(),
            label_dtype: self.label_dtype,
            affine: self.affine.clone(),
        })
    }
}

/// Values as users type them.
mod text {
    use super::*;

    pub(super) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
