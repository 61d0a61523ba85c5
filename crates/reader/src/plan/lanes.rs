//! Lanes divide the line into equal parts that are read in parallel. Every global batch takes the same number of
//! samples from each lane, so a rank reads few chunks at a time. See docs/reference/sampling.md, "Lanes".

use super::line::Line;

/// How many samples each lane contributes to a planned batch, and where each lane is on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Samples on the line.
    len: u64,
    /// Number of lanes. It divides the batch.
    count: u64,
    /// Samples per lane in a batch.
    run: u64,
    /// Number of full batches.
    batches: u64,
}

impl Lanes {
    /// Divides a line of `len` samples into `count` lanes. `count` must divide `batch`, and neither may be 0.
    pub(crate) fn new(len: u64, batch: u32, count: u32) -> Self {
        let batch = u64::from(batch.max(1));
        let count = u64::from(count.max(1));
        Self { len, count, run: (batch / count).max(1), batches: len / batch }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    const fn batch(&self) -> u64 {
        self.count * self.run
    }

    /// Number of samples after the last full batch.
    const fn rest(&self) -> u64 {
        self.len - self.batches * self.batch()
    }

    /// The first place of a lane on the line. Each lane has its samples of all full batches, and an even share of the
    /// rest (at most `run`).
    pub(crate) const fn start(&self, lane: u64) -> u64 {
        lane * self.batches * self.run + lane * self.rest() / self.count
    }

    /// The lane of position `q` of the epoch, and its place in the lane. `q` must be below the number of samples.
    pub(crate) const fn locate(&self, q: u64) -> (u64, u64) {
        let whole = self.batches * self.batch();
        if q < whole {
            let slot = q % self.batch();
            let place = q / self.batch() * self.run + slot % self.run;
            return (slot / self.run, place);
        }
        // The rest is distributed lane by lane. Find the last lane whose share starts at or before the position.
        let q = q - whole;
        let lane = ((q + 1) * self.count - 1) / self.rest();
        let before = lane * self.rest() / self.count;
        (lane, self.batches * self.run + (q - before))
    }

    /// No position after this one visits the places of `lane` up to and including `place`. Exact for places in full
    /// batches; otherwise the last position of the epoch.
    pub(crate) const fn last_position(&self, lane: u64, place: u64) -> u64 {
        if place >= self.batches * self.run {
            return self.len.saturating_sub(1);
        }
        place / self.run * self.batch() + lane * self.run + place % self.run
    }
}

/// How the slots of one lane are divided into groups. The samples of a group are shuffled together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneGroups {
    /// Start and end of the lane on the line.
    pub(crate) start: u64,
    pub(crate) end: u64,
    first_slot: u64,
    slots: u64,
    groups: u64,
}

/// A group, as a range of places on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl LaneGroups {
    /// Divides a lane into as few groups as possible, with at most `most` slots each. Their numbers of slots differ by
    /// at most 1.
    pub(crate) fn new(line: &Line, lanes: &Lanes, lane: u64, most: u64) -> Self {
        let (start, end) = (lanes.start(lane), lanes.start(lane + 1));
        if end <= start {
            return Self { start, end, first_slot: 0, slots: 1, groups: 1 };
        }
        let (first_slot, _) = line.slot_of(start);
        let (last_slot, _) = line.slot_of(end - 1);
        let slots = last_slot - first_slot + 1;
        Self { start, end, first_slot, slots, groups: slots.div_ceil(most.max(1)) }
    }

    /// The group that contains place `x` of the line.
    pub(crate) fn group_of(&self, line: &Line, x: u64) -> Group {
        let (slot, _) = line.slot_of(x);
        // The first `longer` groups have one extra slot.
        let (slots, longer) = (self.slots / self.groups, self.slots % self.groups);
        let first_of = |number: u64| self.first_slot + number * slots + number.min(longer);
        let place = slot - self.first_slot;
        let in_longer = longer * (slots + 1);
        let number = if place < in_longer { place / (slots + 1) } else { longer + (place - in_longer) / slots };
        Group {
            start: line.start(first_of(number)).max(self.start),
            end: line.start(first_of(number + 1)).min(self.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_places_are_one_to_one_and_lanes_are_even() {
        for len in (1..80).chain([255, 256, 257, 1000]) {
            for (batch, count) in [(1, 1), (6, 1), (6, 2), (6, 3), (6, 6), (64, 16), (256, 64)] {
                let lanes = Lanes::new(len, batch, count);
                assert_eq!(lanes.start(lanes.count()), len);
                let mut places: Vec<u64> = (0..len)
                    .map(|q| {
                        let (lane, place) = lanes.locate(q);
                        let x = lanes.start(lane) + place;
                        assert!(x < lanes.start(lane + 1), "{len} {batch} {count} {q}");
                        assert!(lanes.last_position(lane, place) >= q);
                        x
                    })
                    .collect();
                places.sort_unstable();
                assert!(places.into_iter().eq(0..len), "{len} {batch} {count}");
                let sizes = (0..lanes.count()).map(|l| lanes.start(l + 1) - lanes.start(l));
                let (low, high) = (sizes.clone().min(), sizes.max());
                assert!(high.unwrap() - low.unwrap() <= 1);
            }
        }
    }
}
