// SPDX-License-Identifier: MIT OR Apache-2.0
//! Load over time: requests and bytes in equal slots, requests in progress, pauses. Knows times, not addresses.

use super::super::Request;
use crate::IoKind;
use readpath_kit::Ns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most slots of a timeline.
const SLOTS: usize = 256;
/// Width of a slot at first.
const FIRST_WIDTH: Ns = Ns::from_ms(1);

/// What happened in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slot {
    /// Requests of any kind.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Most requests in progress, where the trace has latencies.
    pub most_in_progress: u32,
}

/// Equal slots of time from the first request on: 129 to 256, or fewer if the trace is shorter than 128 ms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// Width of a slot: 1 ms times a power of two.
    pub width: Ns,
    /// The slots.
    pub slots: Vec<Slot>,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline { width: FIRST_WIDTH, slots: Vec::new() }
    }
}

impl Timeline {
    pub(super) fn add(&mut self, r: &Request, in_progress: usize) {
        while r.time.0 / self.width.0 >= SLOTS as u64 {
            self.width = Ns(self.width.0 * 2);
            for i in 0..self.slots.len().div_ceil(2) {
                let mut one = self.slots[2 * i];
                if let Some(two) = self.slots.get(2 * i + 1) {
                    one.requests += two.requests;
                    one.read_bytes += two.read_bytes;
                    one.written_bytes += two.written_bytes;
                    one.most_in_progress = one.most_in_progress.max(two.most_in_progress);
                }
                self.slots[i] = one;
            }
            self.slots.truncate(self.slots.len().div_ceil(2));
        }
        let i = (r.time.0 / self.width.0) as usize;
        if self.slots.len() <= i {
            self.slots.resize(i + 1, Slot::default());
        }
        let slot = &mut self.slots[i];
        slot.requests += 1;
        match r.kind {
            IoKind::Read => slot.read_bytes += r.bytes,
            IoKind::Write => slot.written_bytes += r.bytes,
            IoKind::Trim | IoKind::Flush => {}
        }
        slot.most_in_progress = slot.most_in_progress.max(in_progress as u32);
    }
}

/// Requests in progress, over the requests whose latency is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Depth {
    /// Requests with a latency.
    pub requests: u64,
    /// Most in progress at once.
    pub most: u64,
    /// Mean over the time from the first request to the last completion.
    pub mean: f64,
    /// Time in which at least one was in progress.
    pub busy: Ns,
    /// Time from the first request to the last completion.
    pub span: Ns,
    /// How many requests found how many in progress, themselves included: 1, 2, 3 to 4, 5 to 8, and so on; the last
    /// class is everything above 1024.
    pub found: [u64; 12],
}

#[derive(Default)]
pub(super) struct DepthTracker {
    ends: BinaryHeap<Reverse<u64>>,
    last: u64,
    /// Sum of requests in progress times nanoseconds.
    area: u128,
    busy: u64,
    requests: u64,
    most: u64,
    found: [u64; 12],
}

impl DepthTracker {
    pub(super) fn now(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.ends.capacity() as u64 * 8
    }

    fn advance(&mut self, to: u64) {
        let span = to - self.last;
        self.area += self.ends.len() as u128 * u128::from(span);
        self.busy += if self.ends.is_empty() { 0 } else { span };
        self.last = to;
    }

    fn complete_until(&mut self, time: u64) {
        while let Some(&Reverse(end)) = self.ends.peek().filter(|e| e.0 <= time) {
            self.advance(end);
            self.ends.pop();
        }
    }

    pub(super) fn add(&mut self, r: &Request) {
        self.complete_until(r.time.0);
        let Some(latency) = r.latency else { return };
        self.advance(r.time.0);
        self.ends.push(Reverse(r.time.0.saturating_add(latency.0)));
        self.requests += 1;
        let depth = self.ends.len() as u64;
        self.most = self.most.max(depth);
        self.found[(depth.next_power_of_two().trailing_zeros() as usize).min(11)] += 1;
    }

    pub(super) fn finish(mut self) -> Option<Depth> {
        self.complete_until(u64::MAX);
        let span = self.last.max(1);
        (self.requests > 0).then(|| Depth {
            requests: self.requests,
            most: self.most,
            mean: self.area as f64 / span as f64,
            busy: Ns(self.busy),
            span: Ns(self.last),
            found: self.found,
        })
    }
}

/// Pauses of at least some length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapClass {
    /// This long or longer.
    pub at_least: Ns,
    /// How many; a pause counts in every class that it reaches.
    pub count: u64,
    /// Their sum.
    pub total: Ns,
}

/// Pauses between one request and the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gaps {
    /// 1 ms, 10 ms, 100 ms, 1 s, 10 s, 1 minute, 1 hour, 1 day.
    pub classes: [GapClass; 8],
    /// The longest.
    pub longest: Ns,
    /// The request before the longest, from 1; 0 when there is no pause.
    pub longest_after: u64,
}

const CLASSES: [Ns; 8] = [
    Ns::from_ms(1),
    Ns::from_ms(10),
    Ns::from_ms(100),
    Ns::from_secs(1),
    Ns::from_secs(10),
    Ns::from_secs(60),
    Ns::from_secs(3_600),
    Ns::from_secs(86_400),
];

#[derive(Default)]
pub(super) struct GapTracker {
    requests: u64,
    last: Ns,
    longest: Ns,
    longest_after: u64,
    classes: [(u64, u64); 8],
}

impl GapTracker {
    pub(super) fn add(&mut self, time: Ns) {
        let gap = time - self.last;
        self.last = time;
        if gap > self.longest {
            (self.longest, self.longest_after) = (gap, self.requests);
        }
        self.requests += 1;
        for (class, _) in self.classes.iter_mut().zip(CLASSES).take_while(|(_, least)| gap >= *least) {
            class.0 += 1;
            class.1 += gap.0;
        }
    }

    pub(super) fn finish(self) -> Gaps {
        let class = |i: usize| {
            let (count, total) = self.classes[i];
            GapClass { at_least: CLASSES[i], count, total: Ns(total) }
        };
        Gaps { classes: std::array::from_fn(class), longest: self.longest, longest_after: self.longest_after }
    }
}
