// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a simulated measurement: always as many outstanding, some not timed, then those of one part after
//! another. It knows nothing of devices.

use super::Plan;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_run::{LUN, Port, Source};
use readpath_workload::{Io, IoKind, Stream};

const BATCH: usize = 16;
const NONE: Io = Io { block: 0, blocks: 0, kind: IoKind::Read, fua: false };

/// Makes the warm-up's requests and then those of all parts, and times the latter exactly.
pub(super) struct Requests {
    stream: Stream,
    kind: IoKind,
    /// Requests are taken from the stream in batches.
    batch: [Io; BATCH],
    at: usize,
    /// Submission time and request, by cookie.
    flights: Vec<(Ns, Io)>,
    first: u64,
    last: u64,
    /// Requests of a part.
    each: u64,
    ended: u64,
    /// When the warm-up ended, and then every part.
    marks: Vec<Ns>,
    latencies: Vec<u64>,
}

/// What a part showed.
pub(super) struct Part {
    /// Latencies of its requests, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// Time from the end of the previous part, or of the warm-up, to the end of this part.
    pub(super) time: Ns,
}

impl Requests {
    pub(super) fn new(stream: Stream, plan: Plan, depth: u32) -> Self {
        let each = u64::from(plan.timed);
        let (first, timed) = (u64::from(plan.warm_up), each * u64::from(plan.parts));
        Requests {
            stream,
            kind: plan.kind,
            batch: [NONE; BATCH],
            at: BATCH,
            flights: vec![(Ns::ZERO, NONE); depth as usize],
            first,
            last: first + timed,
            each,
            ended: 0,
            marks: Vec::with_capacity(usize::from(plan.parts) + 1),
            latencies: Vec::with_capacity(timed as usize),
        }
    }

    /// What every part showed.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let spans = self.marks.windows(2).map(|m| m[1] - m[0]);
        let parts = self.latencies.chunks(self.each.max(1) as usize).zip(spans);
        parts.map(|(latencies, time)| Part { latencies: latencies.to_vec(), time }).collect()
    }

    #[inline(always)]
    fn submit(&mut self, port: &mut impl Port, cookie: u32, now: Ns) {
        if self.at == BATCH {
            self.stream.fill(&mut self.batch);
            for io in &self.batch {
                port.prefetch(LUN, io.block);
            }
            self.at = 0;
        }
        let io = self.batch[self.at];
        self.at += 1;
        self.flights[cookie as usize] = (now, io);
        let op = if self.kind == IoKind::Read { BlockOp::Read } else { BlockOp::Write };
        let (block, blocks) = (io.block, u32::from(io.blocks));
        port.submit(now, &BlockRequest { cookie, lun: LUN, op, block, blocks });
    }
}

impl Source for Requests {
    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        if self.first == 0 && self.marks.is_empty() {
            self.marks.push(now);
        }
        (0..self.flights.len() as u32).for_each(|cookie| self.submit(port, cookie, now));
    }

    #[inline(always)]
    fn next_at(&self) -> Ns {
        Ns::NEVER
    }

    fn act(&mut self, _: &mut impl Port, _: Ns, _: Ns) {}

    #[inline(always)]
    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        if self.ended == self.last {
            return None;
        }
        let latency = now - self.flights[cookie as usize].0;
        self.ended += 1;
        if self.ended > self.first {
            self.latencies.push(latency.0);
        }
        // No part is shorter than a request.
        if self.ended >= self.first && (self.ended - self.first).is_multiple_of(self.each) {
            self.marks.push(now);
        }
        self.submit(port, cookie, now);
        Some((self.kind, latency))
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights[cookie as usize].1
    }

    fn in_flight(&self) -> u32 {
        self.flights.len() as u32
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.ended == self.last
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.begin(port, now);
    }
}
