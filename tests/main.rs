//! End-to-end tests of the packds command.

mod architecture;
mod bench;
mod bench_formats;
mod convert;
mod convert_refusals;
mod converting;
mod cut_short;
mod doctor;
mod documentation;
mod export;
mod first_touch;
mod formats;
mod head;
mod hostile_sources;
mod interrupted;
mod limits;
mod look;
mod packages;
mod public_types;
mod seekable;
mod sheet;
mod shuffle;
mod summary;
mod support;
mod terminal;
mod view;
