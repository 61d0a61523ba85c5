//! Reads every batch of one epoch and counts the labels: `cargo run --release --example sum_labels -- train.pack`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::collections::BTreeMap;
use std::error::Error;

use packds::loader::Loader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of a pack")?;
    let loader = Loader::builder(packds::open(path)?).batch(8).seed(42).build()?;
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for batch in loader.epoch(0)? {
        for label in batch?.elements::<i32>("label")? {
            *counts.entry(*label).or_default() += 1;
        }
    }
    println!("{counts:?}");
    println!("{:?}", loader.stats());
    Ok(())
}
