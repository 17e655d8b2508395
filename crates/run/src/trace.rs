// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded trace as a source: submits its requests at their times or at a queue depth, and measures each from the
//! moment it was due to the end of its last piece.

use crate::drive::{Driven, Port, Source};
use crate::error::TOO_LATE;
use crate::measure::{JobStats, KindStats, PhaseStats};
use crate::request::{Flights, block_op};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_stack::Hold;
use readpath_workload::trace::TimedIo;
use readpath_workload::{Io, IoKind};

/// When the requests of a trace are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// At their times, however many are outstanding. What does not fit into the controller's queue waits, and waiting
    /// counts as latency.
    Timed,
    /// Requests are submitted in the order of the trace, as soon as fewer than `iodepth` (at least 1) are outstanding.
    /// Times do not matter.
    Closed {
        /// Requests kept outstanding.
        iodepth: u32,
    },
}

/// How far ahead of their use tables are prefetched, in requests.
const PREFETCH: usize = 16;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing yet.
    Due,
    /// The flush before its write.
    Flush,
    /// The old content of the blocks that it writes in part.
    Old,
    Pieces,
}

/// A request of the trace.
#[derive(Clone, Copy)]
struct Flight {
    /// Index of its first piece in the trace.
    first: u32,
    end: u32,
    step: Step,
    /// Commands of this step that have not ended.
    left: u32,
    since: Ns,
}

/// The logical units that the addresses of a trace are spread over, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Units {
    /// The first block of each, in order.
    firsts: Vec<u32>,
}

impl Units {
    /// Unit 0 alone, whose blocks are those of the trace.
    pub fn first() -> Units {
        Units { firsts: vec![0] }
    }

    /// Units with these sizes in blocks.
    pub fn in_a_row(blocks: impl IntoIterator<Item = u32>) -> Units {
        let firsts = blocks.into_iter().scan(0, |next, blocks: u32| {
            let first = *next;
            *next += blocks;
            Some(first)
        });
        Units { firsts: firsts.collect() }
    }

    /// Whether it is one unit only.
    pub fn is_one(&self) -> bool {
        self.firsts.len() == 1
    }

    /// The unit of a block of the trace, and the block there.
    #[inline]
    pub fn of(&self, block: u32) -> (u8, u32) {
        let lun = self.firsts.iter().rposition(|&first| first <= block).unwrap_or(0);
        (lun as u8, block - self.firsts.get(lun).copied().unwrap_or(0))
    }

    /// A range of blocks of the trace as ranges of units: unit, first block there, blocks.
    pub fn split(&self, first: u32, blocks: u32) -> impl Iterator<Item = (u8, u32, u32)> {
        let mut at = first;
        let end = first + blocks;
        std::iter::from_fn(move || {
            let (lun, block) = (at < end).then(|| self.of(at))?;
            let stop = self.firsts.get(usize::from(lun) + 1).map_or(end, |&next| next.min(end));
            let part = (lun, block, stop - at);
            at = stop;
            Some(part)
        })
    }
}

/// One trace.
pub struct Trace<'a> {
    ios: &'a [TimedIo],
    mode: Mode,
    units: Units,
    start: Ns,
    next: usize,
    flights: Flights<Flight>,
    most: u32,
    kinds: [KindStats; 4],
}

impl<'a> Trace<'a> {
    /// A trace for these units whose time zero is `start`.
    pub fn new(ios: &'a [TimedIo], mode: Mode, units: Units, start: Ns) -> Self {
        Trace { ios, mode, units, start, next: 0, flights: Flights::new(), most: 0, kinds: Default::default() }
    }

    /// The measurements, and the most requests outstanding at once.
    pub fn stats(self, name: String, driven: Driven) -> (PhaseStats, u32) {
        let Driven { end, ios } = driven;
        let job = JobStats { name: String::new(), group: 0, start: self.start, end, kinds: self.kinds };
        (PhaseStats { name, start: self.start, end, jobs: vec![job], ios }, self.most)
    }

    /// When the next request is due; none if there is none.
    fn due(&self) -> Option<Ns> {
        self.ios.get(self.next).map(|io| Ns(self.start.0.saturating_add(io.time.0)))
    }

    /// Takes the next request of the trace.
    fn take(&mut self, port: &mut impl Port, since: Ns, now: Ns) {
        let first = self.next;
        let more = self.ios[first + 1..].iter().take_while(|io| io.continued()).count();
        self.next = first + 1 + more;
        if let Some(io) = self.ios.get(self.next + PREFETCH) {
            let (lun, block) = self.units.of(io.block);
            port.prefetch(lun, block);
        }
        let flight = Flight { first: first as u32, end: self.next as u32, step: Step::Due, left: 0, since };
        let cookie = self.flights.begin(flight);
        self.most = self.most.max(self.flights.len());
        self.go_on(port, cookie, now);
    }

    /// Submits the commands of the next step that has any.
    fn go_on(&mut self, port: &mut impl Port, cookie: u32, now: Ns) {
        let flight = self.flights.get_mut(cookie);
        let pieces = &self.ios[flight.first as usize..flight.end as usize];
        let (head, tail) = (&pieces[0], &pieces[pieces.len() - 1]);
        let units = &self.units;
        let command = |op, block, blocks| {
            let (lun, block) = units.of(block);
            BlockRequest { cookie, lun, op, block, blocks }
        };
        if flight.step == Step::Due && head.preflush() {
            (flight.step, flight.left) = (Step::Flush, 1);
            port.submit(now, &command(BlockOp::Flush, 0, 0));
            return;
        }
        if matches!(flight.step, Step::Due | Step::Flush) {
            let front = head.partial_first().then_some(head.block);
            let back = tail.partial_last().then(|| tail.block + u32::from(tail.blocks) - 1);
            let back = back.filter(|_| front.is_none() || back != front || pieces.len() > 1);
            if front.is_some() || back.is_some() {
                flight.step = Step::Old;
                flight.left = u32::from(front.is_some()) + u32::from(back.is_some());
                for block in front.into_iter().chain(back) {
                    port.submit(now, &command(BlockOp::Read, block, 1));
                }
                return;
            }
        }
        (flight.step, flight.left) = (Step::Pieces, pieces.len() as u32);
        for io in pieces {
            port.submit(now, &command(block_op(io.io()), io.block, u32::from(io.blocks)));
        }
    }
}

impl Source for Trace<'_> {
    /// A command may have 65,535 blocks.
    const WATCH_EVERY: u64 = 1 << 8;

    fn holds(&self) -> Hold {
        if matches!(self.mode, Mode::Closed { iodepth: 0 | 1 }) { Hold::One } else { Hold::Several }
    }

    fn next_at(&self) -> Ns {
        match (self.due(), self.mode) {
            (None, _) => Ns::NEVER,
            (Some(due), Mode::Timed) => due.min(TOO_LATE),
            (Some(_), Mode::Closed { iodepth }) if self.flights.len() < iodepth => Ns::ZERO,
            (Some(_), Mode::Closed { .. }) => Ns::NEVER,
        }
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, _: Ns) {
        while self.next_at() <= now {
            let since = match self.mode {
                Mode::Timed => self.next_at(),
                Mode::Closed { .. } => now,
            };
            self.take(port, since, now);
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let flight = self.flights.get_mut(cookie);
        flight.left -= 1;
        if flight.left > 0 {
            return None;
        }
        if flight.step != Step::Pieces {
            self.go_on(port, cookie, now);
            return None;
        }
        let Flight { first, end, since, .. } = self.flights.end(cookie);
        let pieces = &self.ios[first as usize..end as usize];
        let (kind, latency) = (pieces[0].kind, now - since);
        self.kinds[kind as usize].record(pieces.iter().map(|io| u32::from(io.blocks)).sum(), latency);
        Some((kind, latency))
    }

    fn io(&self, cookie: u32) -> Io {
        self.ios[self.flights.get(cookie).first as usize].io()
    }

    fn in_flight(&self) -> u32 {
        self.flights.len()
    }

    fn is_over(&self) -> bool {
        self.next == self.ios.len() && self.flights.is_empty()
    }

    fn lost(&mut self, _: &mut impl Port, _: Ns) {
        self.flights = Flights::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_units_in_a_row() {
        let units = Units::in_a_row([10, 5, 20]);
        assert_eq!(
            [0, 9, 10, 14, 15, 34].map(|block| units.of(block)),
            [(0, 0), (0, 9), (1, 0), (1, 4), (2, 0), (2, 19)]
        );
        assert_eq!(units.split(8, 10).collect::<Vec<_>>(), [(0, 8, 2), (1, 0, 5), (2, 0, 3)]);
        assert_eq!(units.split(3, 4).collect::<Vec<_>>(), [(0, 3, 4)]);
        assert_eq!(Units::first().of(7), (0, 7));
    }
}
