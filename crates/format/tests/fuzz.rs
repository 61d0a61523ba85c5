//! Bounded, deterministic fuzzing on stable Rust: seeds and old crashes first, then mutated packs with
//! corrected checksums. `fuzz/README.md` explains continuous fuzzing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fuzz_bodies;
use crate::mutation::{Random, mutate};
use crate::support::{golden_folder, malformed_folder};

const ITERATIONS: u32 = 60_000;

/// Maximum time for one small file.
const MOST_TIME: Duration = Duration::from_secs(2);

/// Saves a file in the temporary folder. To replay it in later runs, move it to `fuzz/crashes`.
fn keep(i: u32, file: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("packds-crash-{i}.pack"));
    std::fs::write(&path, file).unwrap();
    path
}

fn run_all(bytes: &[u8]) {
    fuzz_bodies::verify(bytes);
    fuzz_bodies::decode(bytes);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

#[test]
fn seeds_and_old_crashes_do_not_panic() {
    let crashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/crashes");
    let mut n = 0;
    for folder in [golden_folder(), malformed_folder(), crashes] {
        for path in files(&folder) {
            let bytes = std::fs::read(&path).unwrap();
            run_all(&bytes);
            fuzz_bodies::round_trip(&bytes);
            n += 1;
        }
    }
    println!("{n} files replayed");
    assert!(n > 150);
}

#[test]
fn mutated_packs_do_not_panic() {
    let seeds = files(&golden_folder());
    let seeds = seeds.iter().map(|path| std::fs::read(path).unwrap());
    let seeds: Vec<Vec<u8>> = seeds.filter(|bytes| (4160..40_000).contains(&bytes.len())).collect();
    let (start, mut random, mut opened) = (Instant::now(), Random(1), 0);
    for i in 0..ITERATIONS {
        let mut file = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        mutate(&mut file, other, &mut random);
        let began = Instant::now();
        let result = std::panic::catch_unwind(|| {
            run_all(&file);
            fuzz_bodies::open(&file).is_some()
        });
        match result {
            Ok(is_open) if began.elapsed() < MOST_TIME => opened += u32::from(is_open),
            Ok(_) => {
                let path = keep(i, &file);
                panic!("iteration {i} took {:?}: {}", began.elapsed(), path.display());
            }
            Err(panic) => {
                println!("iteration {i} panicked: {}", keep(i, &file).display());
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{ITERATIONS} mutated packs, {opened} of them opened, {:?}", start.elapsed());
    assert!(opened > ITERATIONS / 10, "only {opened} packs opened: most mutations fail on opening");
}

#[test]
fn random_schemas_round_trip() {
    let mut random = Random(2);
    for _ in 0..2000 {
        let n = random.below(400);
        let bytes: Vec<u8> = (0..n).map(|_| random.next().to_le_bytes()[0]).collect();
        fuzz_bodies::round_trip(&bytes);
    }
}
