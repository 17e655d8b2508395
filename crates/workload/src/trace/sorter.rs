// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts events that come in runs, one for each processor. An event may be later than thousands after it; inserting
//! those one by one would be too slow. Knows times only.

use super::formats::Row;
use readpath_kit::Ns;

/// Events, given out by time; equal times stay in the order in which they came.
#[derive(Default)]
pub(super) struct Sorter {
    /// An event that is out of order by fewer events than this is put in order.
    capacity: usize,
    held: Vec<Row>,
    /// Time of each that is held.
    times: Vec<u64>,
    ready: std::vec::IntoIter<Row>,
    /// Time of the last event that is ready, or was: earlier ones are too late.
    pub(super) floor: u64,
    latest: u64,
    /// Events that came after one with a later time.
    pub(super) inversions: u64,
    /// The longest time that one of them was behind.
    pub(super) furthest: Ns,
}

impl Sorter {
    pub(super) fn new(capacity: usize) -> Sorter {
        Sorter { capacity: capacity.max(1), ..Sorter::default() }
    }

    /// How far out of order events may be.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes an event that is not before the floor.
    #[inline]
    pub(super) fn push(&mut self, time: u64, row: Row) {
        if time < self.latest {
            self.inversions += 1;
            self.furthest = self.furthest.max(Ns(self.latest - time));
        } else {
            self.latest = time;
        }
        self.times.push(time);
        self.held.push(row);
    }

    /// Whether events have to be taken before more come.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= 2 * self.capacity
    }

    /// The next event, once enough later events are known that none can come before it.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Row> {
        match self.ready.next() {
            None if self.is_full() => {
                self.give(self.capacity);
                self.ready.next()
            }
            next => next,
        }
    }

    /// No more come: all that are held are ready. What was ready before has been taken.
    pub(super) fn finish(&mut self) {
        self.give(self.held.len());
    }

    /// The first `count` are ready; the others are held.
    fn give(&mut self, count: usize) {
        let order = order(&self.times);
        let mut rows = std::mem::take(&mut self.held);
        let mut take = |&place: &usize| std::mem::replace(&mut rows[place], Row::Other);
        let ready: Vec<Row> = order[..count].iter().map(&mut take).collect();
        self.held = order[count..].iter().map(&mut take).collect();
        self.floor = order[..count].last().map_or(self.floor, |&last| self.times[last]);
        self.times = order[count..].iter().map(|&place| self.times[place]).collect();
        self.ready = ready.into_iter();
    }
}

/// The places of `times` in order of time.
fn order(times: &[u64]) -> Vec<usize> {
    let (first, last) = times.iter().fold((u64::MAX, 0), |(first, last), &t| (first.min(t), last.max(t)));
    let bits = usize::BITS - times.len().leading_zeros();
    // Time and place in one number are sorted twice as fast. Hours of nanoseconds have room in it.
    if last.saturating_sub(first).leading_zeros() >= bits {
        let mut keys: Vec<u64> = times.iter().zip(0..).map(|(time, place)| (time - first) << bits | place).collect();
        keys.sort_unstable();
        return keys.into_iter().map(|key| (key & ((1 << bits) - 1)) as usize).collect();
    }
    let mut places: Vec<usize> = (0..times.len()).collect();
    places.sort_by_key(|&place| times[place]);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(sorter: &mut Sorter, out: &mut Vec<(u64, u64)>) {
        while let Some(row) = sorter.next() {
            let Row::Complete { key, time } = row else { panic!("not what was put in") };
            out.push((time, key));
        }
    }

    /// Puts in these times; what comes out, and how many were too late.
    fn sort(times: &[u64], capacity: usize) -> (Vec<(u64, u64)>, usize) {
        let (mut sorter, mut out, mut late) = (Sorter::new(capacity), Vec::new(), 0);
        for (key, &time) in times.iter().enumerate() {
            drain(&mut sorter, &mut out);
            match time < sorter.floor {
                true => late += 1,
                false => sorter.push(time, Row::Complete { key: key as u64, time }),
            }
        }
        drain(&mut sorter, &mut out);
        sorter.finish();
        drain(&mut sorter, &mut out);
        (out, late)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn runs_of_several_processors(
            runs in proptest::collection::vec(proptest::collection::vec(0u64..50, 0..20), 0..12),
            capacity in 1usize..30,
        ) {
            // Each period has a run for each of four processors; no run is longer than the capacity allows.
            let mut times = Vec::new();
            for (i, run) in runs.iter().enumerate() {
                let mut run: Vec<u64> = run.iter().map(|t| (i as u64 / 4) * 50 + t).collect();
                run.sort_unstable();
                times.extend(run);
            }
            let (out, late) = sort(&times, capacity.max(80));
            prop_assert_eq!(late, 0);
            let mut expected: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            expected.sort_by_key(|e| e.0);
            prop_assert_eq!(out, expected);
            // However small it is, what comes out is in order and nothing gets lost.
            let (out, late) = sort(&times, capacity);
            prop_assert!(out.is_sorted_by_key(|e| e.0));
            prop_assert_eq!(out.len() + late, times.len());
        }
    }

    #[test]
    fn times_that_are_far_apart() {
        for far in [0, 1 << 20, 1 << 58, u64::MAX - 5] {
            assert_eq!(order(&[far + 5, 3, far + 4, 3, 0]), [4, 1, 3, 2, 0]);
        }
        assert!(order(&[]).is_empty() && order(&[7]) == [0]);
    }

    #[test]
    fn it_reaches_as_far_as_it_says() {
        let late = |behind: usize| {
            let mut times: Vec<u64> = (0..1000).collect();
            let first = times.remove(0);
            times.insert(behind, first);
            sort(&times, 100).1
        };
        assert_eq!([late(99), late(199), late(200)], [0, 0, 1]);
    }
}
