// SPDX-License-Identifier: MIT OR Apache-2.0
//! A source that reads back a range of blocks in order, a few long reads at a time. The payload checks what is read.

use crate::drive::{Port, Source};
use crate::request::Flights;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::Ns;
use readpath_workload::{Io, IoKind};

/// Blocks of a read.
const EACH: u32 = 64;
/// Reads in flight.
const DEPTH: u32 = 16;

/// A range to read.
pub struct ReadBack {
    lun: u8,
    next: u32,
    end: u32,
    flights: Flights<(Io, Ns)>,
}

impl ReadBack {
    /// Reads `blocks` blocks of a unit from `first` on.
    pub fn new(lun: u8, first: u32, blocks: u32) -> Self {
        ReadBack { lun, next: first, end: first + blocks, flights: Flights::new() }
    }

    fn fill(&mut self, port: &mut impl Port, now: Ns) {
        while self.flights.len() < DEPTH && self.next < self.end {
            let (block, blocks) = (self.next, EACH.min(self.end - self.next));
            self.submit(port, Io { block, blocks: blocks as u16, kind: IoKind::Read, fua: false }, now);
            self.next += blocks;
        }
    }

    fn submit(&mut self, port: &mut impl Port, io: Io, now: Ns) {
        let cookie = self.flights.begin((io, now));
        let (lun, block, blocks) = (self.lun, io.block, u32::from(io.blocks));
        port.submit(now, &BlockRequest { cookie, lun, op: BlockOp::Read, block, blocks });
    }
}

impl Source for ReadBack {
    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.fill(port, now);
    }

    fn next_at(&self) -> Ns {
        Ns::NEVER
    }

    fn act(&mut self, _: &mut impl Port, _: Ns, _: Ns) {}

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let (_, since) = self.flights.end(cookie);
        self.fill(port, now);
        Some((IoKind::Read, now - since))
    }

    fn io(&self, cookie: u32) -> Io {
        self.flights.get(cookie).0
    }

    fn in_flight(&self) -> u32 {
        self.flights.len()
    }

    fn is_over(&self) -> bool {
        self.next == self.end && self.flights.is_empty()
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        // Nothing may be left out.
        for (io, _) in self.flights.take() {
            self.submit(port, io, now);
        }
    }
}
