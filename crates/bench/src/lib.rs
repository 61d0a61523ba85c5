//! Benchmarks of packds, together with hardware limits measured in the same run.
//!
//! We are biased: we wrote packds, and we chose what to measure. Therefore speeds are compared with minimal loops on
//! the same data with the same number of threads. `convert`, `edit` and `load` run alternately with such a loop, and report the
//! median of the ratios. Results are verified.

mod convert;
mod edit;
mod error;
pub mod formats;
mod limits;
mod load;
mod machine;
mod measure;
mod opening;
mod threads;
mod tune;
mod watch;
mod workload;

pub use convert::{ConvertBench, ConvertBenchOptions, bench_convert};
pub use edit::{EditBench, EditBenchOptions, bench_edit};
pub use error::BenchError;
pub use formats::{CacheName, FormatsBenchOptions, OrderName, bench_formats, format_names, to_csv};
pub use load::{FirstBatch, LoadBench, LoadBenchOptions, bench_load, default_batch, has_encoded_images, largest_batch};
pub use machine::{Machine, PeakRss};
pub use measure::{Figure, Pairs, to_f64};
pub use tune::{Ahead, Recommended, TuneBench, TuneBenchOptions, TuneRun, Wait, bench_tune};
pub use watch::Watcher;
