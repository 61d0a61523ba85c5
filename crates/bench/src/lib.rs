//! Benchmarks of packds, together with hardware limits measured in the same run.
//!
//! We are biased: we wrote packds, and we chose what to measure. Therefore every result is a ratio to a minimal loop on
//! the same files with the same number of threads. Both run alternately, and the median of the pairs is reported. Every
//! benchmark verifies its results.

mod convert;
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
pub use error::BenchError;
pub use formats::{CacheName, FormatsBenchOptions, OrderName, bench_formats, format_names, to_csv};
pub use load::{FirstBatch, LoadBench, LoadBenchOptions, bench_load, has_encoded_images};
pub use machine::{Machine, PeakRss};
pub use measure::{Figure, Pairs, to_f64};
pub use tune::{Ahead, Recommended, TuneBench, TuneBenchOptions, TuneRun, Wait, bench_tune};
pub use watch::Watcher;
