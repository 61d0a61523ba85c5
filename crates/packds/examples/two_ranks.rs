//! Two ranks, here two threads, share an epoch. No sample is repeated or lost, and both ranks get the same number of
//! batches. `cargo run --release --example two_ranks -- train.pack`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::sync::Arc;
use std::thread;

use packds::loader::{LoadError, Loader};
use packds::plan::{Last, Ranks};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of a pack")?;
    let pack = Arc::new(packds::open(path)?);
    let ranks = [Ranks::new(0, 2)?, Ranks::new(1, 2)?].map(|ranks| {
        let pack = Arc::clone(&pack);
        thread::spawn(move || {
            let loader = Loader::builder(pack).batch(4).ranks(ranks).last(Last::Pad).build()?;
            let (mut steps, mut ids) = (0, Vec::new());
            for batch in loader.epoch(0)? {
                let batch = batch?;
                steps += 1;
                ids.extend_from_slice(&batch.ids()[..batch.len() - batch.padding()]);
            }
            Ok::<_, LoadError>((steps, ids))
        })
    });
    let mut all = Vec::new();
    for (number, rank) in ranks.into_iter().enumerate() {
        let (steps, ids) = rank.join().map_err(|_| "a rank panicked")??;
        println!("rank {number}: {steps} steps, {} samples", ids.len());
        all.extend(ids);
    }
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..pack.n_samples()));
    println!("together they read every sample once");
    Ok(())
}
