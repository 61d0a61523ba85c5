//! Caches of whole chunks: which reads they answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::cluster::Read;

/// What leaves a full cache first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evict {
    /// The chunk that is needed last (Belady, 1966). No other rule answers more reads. It needs to know the future, and the
    /// plan does.
    ByNextUse,
    /// The chunk that was used least recently.
    ByLastUse,
}

/// For each read, whether a cache of `capacity` chunks answers it.
pub(super) fn hits(reads: &[Read], capacity: usize, evict: Evict) -> Vec<bool> {
    match evict {
        Evict::ByNextUse => by_next_use(reads, capacity),
        Evict::ByLastUse => by_last_use(reads, capacity),
    }
}

fn by_next_use(reads: &[Read], capacity: usize) -> Vec<bool> {
    let next = next_uses(reads);
    // The chunks in the cache, by their next use.
    let mut cached: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut hits = Vec::with_capacity(reads.len());
    for (now, (read, next)) in reads.iter().zip(next).enumerate() {
        hits.push(cached.remove(&(now, read.chunk)));
        // A chunk that is not needed again is not kept.
        if capacity == 0 || next == usize::MAX {
            continue;
        }
        cached.insert((next, read.chunk));
        if cached.len() > capacity {
            cached.pop_last();
        }
    }
    hits
}

/// For each read, the place of the next read of the same chunk.
fn next_uses(reads: &[Read]) -> Vec<usize> {
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut next: Vec<usize> =
        reads.iter().enumerate().rev().map(|(now, read)| seen.insert(read.chunk, now).unwrap_or(usize::MAX)).collect();
    next.reverse();
    next
}

fn by_last_use(reads: &[Read], capacity: usize) -> Vec<bool> {
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut by_use: BTreeMap<usize, u64> = BTreeMap::new();
    let mut hits = Vec::with_capacity(reads.len());
    for (now, read) in reads.iter().enumerate() {
        let before = last.insert(read.chunk, now);
        hits.push(before.is_some());
        before.map(|before| by_use.remove(&before));
        by_use.insert(now, read.chunk);
        if by_use.len() > capacity
            && let Some((_, chunk)) = by_use.pop_first()
        {
            last.remove(&chunk);
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(chunks: &[u64]) -> Vec<Read> {
        chunks.iter().map(|chunk| Read { step: 0, chunk: *chunk }).collect()
    }

    #[test]
    fn a_cycle_defeats_last_use_but_not_next_use() {
        let cycle = reads(&[1, 2, 3, 1, 2, 3, 1, 2, 3]);
        let n = |capacity, evict| hits(&cycle, capacity, evict).into_iter().filter(|hit| *hit).count();
        assert_eq!(n(2, Evict::ByLastUse), 0);
        assert_eq!(n(2, Evict::ByNextUse), 4);
        assert_eq!((n(3, Evict::ByLastUse), n(3, Evict::ByNextUse)), (6, 6));
        assert_eq!((n(0, Evict::ByLastUse), n(0, Evict::ByNextUse)), (0, 0));
    }

    #[test]
    fn no_choice_of_what_leaves_answers_more_reads_than_the_next_use() {
        // All choices, by brute force.
        fn best(reads: &[u64], cached: &BTreeSet<u64>, capacity: usize) -> usize {
            let [read, rest @ ..] = reads else { return 0 };
            let hit = usize::from(cached.contains(read));
            let mut all = cached.clone();
            all.insert(*read);
            if all.len() <= capacity {
                return hit + best(rest, &all, capacity);
            }
            let without = |gone: &u64| all.iter().filter(|chunk| *chunk != gone).copied().collect();
            hit + all.iter().map(|gone| best(rest, &without(gone), capacity)).max().unwrap_or(0)
        }
        let mut random = 7_u64;
        for _ in 0..40 {
            let chunks: Vec<u64> = (0..9)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 33) % 4
                })
                .collect();
            for capacity in 1..3 {
                let found = hits(&reads(&chunks), capacity, Evict::ByNextUse);
                let n = found.into_iter().filter(|hit| *hit).count();
                assert_eq!(n, best(&chunks, &BTreeSet::new(), capacity), "{chunks:?} {capacity}");
            }
        }
    }
}
