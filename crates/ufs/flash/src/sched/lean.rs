// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fast scheduler: one event per array operation. A die is a first-in-first-out server that is reserved when an
//! operation arrives at it, or earlier if no other can come between; the channel is reserved when the array is done.
//! Reads alone are scheduled exactly. A caller that uses a third server from the reported end on does so in order of
//! array ends, not of transfer ends.

use super::{DieSched, Done, FlashOp, OpId, OpKind, Scheduler, Servers, SuspendTiming};
use readpath_kit::{DeadlineHeap, Ns, Tournament};

/// Number of operations.
const OPS: usize = DeadlineHeap::SLOTS as usize;
const NONE: OpId = OpId::MAX;
/// The most dies and channels. Tables have fixed sizes, so that indexing needs no length check.
const SERVERS: usize = Tournament::SERVERS as usize;

/// See the module.
pub struct Lean {
    /// The next event of every server that has one. Later ones are in its queue.
    events: Tournament,
    /// Dies, or their planes if they read apart, then channels.
    servers: Box<[Server; SERVERS]>,
    ops: Box<[Running; OPS]>,
    /// Planes of a die that read apart are this power of two.
    planes: u32,
}

/// A die or a channel: first in, first out.
#[derive(Clone, Copy)]
struct Server {
    free: Ns,
    /// The last operation in its queue of events.
    last: OpId,
    /// Of a die: its channel.
    channel: u16,
    /// Of a die: announced operations that have not been queued yet.
    expected: u32,
}

/// An operation in progress, aligned so that its address in the table is a shift of its number.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Running {
    /// When its stage ends, if it is not the first in its server's queue.
    end: Ns,
    /// Duration of its other stage; after that has begun, the end of this one.
    other: Ns,
    /// The server of its present stage; below, of its other stage.
    at: u16,
    to: u16,
    /// The next in its server's queue of events.
    behind: OpId,
    then: Then,
}

/// What follows when a stage ends.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// A read whose end is certain as soon as its array is done.
    Certain,
    Transfer,
    /// The array is programmed.
    Program,
    Done,
}

impl Server {
    const IDLE: Server = Server { free: Ns::ZERO, last: NONE, channel: 0, expected: 0 };

    /// Reserves the server from `now` on for `span`; returns the end.
    #[inline(always)]
    fn reserve(&mut self, now: Ns, span: Ns) -> Ns {
        self.free = now.max(self.free) + span;
        self.free
    }
}

impl Lean {
    #[inline(always)]
    fn server(&mut self, server: u16) -> &mut Server {
        &mut self.servers[usize::from(server) % SERVERS]
    }

    #[inline(always)]
    fn op(&mut self, id: OpId) -> &mut Running {
        &mut self.ops[usize::from(id) % OPS]
    }

    /// Announced operations of `die` and `kind` become more by `by`.
    #[inline(always)]
    fn announce(&mut self, die: u16, kind: OpKind, by: u32) {
        if self.planes > 0 && kind.takes_all_planes() {
            return self.announce_to_planes(die, by);
        }
        let expected = &mut self.server(die).expected;
        *expected = expected.wrapping_add(by);
    }

    #[inline(never)]
    fn announce_to_planes(&mut self, first: u16, by: u32) {
        for plane in first..first + (1 << self.planes) {
            let expected = &mut self.server(plane).expected;
            *expected = expected.wrapping_add(by);
        }
    }

    /// What takes all planes of a die is served from when the last of them is free.
    #[inline(never)]
    fn reserve_all_planes(&mut self, first: u16, now: Ns, span: Ns) -> Ns {
        let planes = first..first + (1 << self.planes);
        let free = planes.clone().map(|plane| self.server(plane).free).max().expect("a die has planes");
        let end = now.max(free) + span;
        planes.for_each(|plane| self.server(plane).free = end);
        end
    }

    /// Queues the end of the stage of `id` at its `server` as an event.
    #[inline(always)]
    fn line_up(&mut self, id: OpId, server: u16, end: Ns) {
        let last = std::mem::replace(&mut self.server(server).last, id);
        self.go_behind(last, id, server, end);
    }

    #[inline(always)]
    fn go_behind(&mut self, last: OpId, id: OpId, server: u16, end: Ns) {
        if last == NONE {
            return self.events.set(u32::from(server), end, u32::from(id));
        }
        self.op(id).end = end;
        self.op(last).behind = id;
    }

    /// Removes the event of `id`, the first of all; `behind` is the next at its `server`.
    #[inline(always)]
    fn leave(&mut self, id: OpId, server: u16, behind: OpId) {
        if behind == NONE {
            self.server(server).last = NONE;
            return self.events.clear(u32::from(server));
        }
        self.op(id).behind = NONE;
        let end = self.op(behind).end;
        self.events.set(u32::from(server), end, u32::from(behind));
    }

    /// Handles the event of `id`, the first of all, at `at`: its other stage begins, which `programs` or transfers.
    #[inline(always)]
    fn go_on(&mut self, at: Ns, id: OpId, programs: bool) {
        let Running { other, at: from, to, behind, .. } = *self.op(id);
        let end = if programs && self.planes > 0 {
            self.reserve_all_planes(to, at, other)
        } else {
            self.server(to).reserve(at, other)
        };
        let op = self.op(id);
        (op.then, op.other, op.at) = (Then::Done, at, to);
        let last = std::mem::replace(&mut self.server(to).last, id);
        if behind == NONE && last == NONE {
            self.server(from).last = NONE;
            return self.events.pass(u32::from(from), u32::from(to), end, u32::from(id));
        }
        self.leave(id, from, behind);
        self.go_behind(last, id, to, end);
    }
}

impl DieSched for Lean {
    fn new(_named: Scheduler, servers: Servers, _suspend: SuspendTiming) -> Self {
        let Servers { channels, dies, planes } = servers;
        debug_assert!(planes.is_power_of_two());
        let dies = dies * planes;
        let idle = Running { end: Ns::ZERO, other: Ns::ZERO, at: 0, to: 0, behind: NONE, then: Then::Done };
        let mut all = Box::new([Server::IDLE; SERVERS]);
        for (die, server) in (0..dies).zip(&mut all[..]) {
            server.channel = (dies + die / planes % channels) as u16;
        }
        Lean {
            events: Tournament::new(dies + channels),
            servers: all,
            ops: Box::new([idle; OPS]),
            planes: planes.ilog2(),
        }
    }

    /// Its die serves in order of arrival, so this is possible unless an announced operation has not been queued
    /// there yet.
    #[inline(always)]
    fn plans_ahead(&self, die: u32, kind: OpKind) -> bool {
        self.servers[die as usize % SERVERS].expected == 0 && (self.planes == 0 || !kind.takes_all_planes())
    }

    #[inline(always)]
    fn expect(&mut self, die: u32, kind: OpKind) {
        self.announce(die as u16, kind, 1);
    }

    #[inline(always)]
    fn submit(&mut self, arrival: Ns, id: OpId, op: FlashOp) {
        let die = op.die as u16;
        let channel = self.server(die).channel;
        let (at, to, span, other, then) = match op.kind {
            OpKind::Read | OpKind::ReadTogether => {
                let then = if op.report_at_end { Then::Transfer } else { Then::Certain };
                (die, channel, op.array, op.transfer, then)
            }
            OpKind::Erase => (die, channel, op.array, Ns::ZERO, Then::Done),
            OpKind::Program => (channel, die, op.transfer, op.array, Then::Program),
        };
        // A program enters the die's queue when its transfer ends.
        match (op.kind, op.expected) {
            (OpKind::Program, false) => self.announce(die, op.kind, 1),
            (OpKind::Read | OpKind::ReadTogether | OpKind::Erase, true) => self.announce(die, op.kind, u32::MAX),
            _ => {}
        }
        let running = self.op(id);
        running.other = other;
        (running.at, running.to, running.then) = (at, to, then);
        debug_assert_eq!(running.behind, NONE);
        let end = if self.planes > 0 && matches!(op.kind, OpKind::Erase | OpKind::ReadTogether) {
            self.reserve_all_planes(at, arrival, span)
        } else {
            self.server(at).reserve(arrival, span)
        };
        self.line_up(id, at, end);
    }

    #[inline(always)]
    fn alone(&self, arrival: Ns, die: u32, array: Ns, transfer: Ns) -> Option<Ns> {
        debug_assert_eq!(self.events.next(), Ns::NEVER, "an operation is under way");
        let Server { free, channel, .. } = self.servers[die as usize % SERVERS];
        let sensed = arrival.max(free) + array;
        Some(sensed.max(self.servers[usize::from(channel) % SERVERS].free) + transfer)
    }

    #[inline(always)]
    fn next_deadline(&self) -> Ns {
        self.events.next()
    }

    #[inline(always)]
    fn poll(&mut self, now: Ns) -> Option<Done> {
        while let Some((at, tag)) = self.events.first_due(now) {
            let id = tag as OpId;
            // Field by field: loading bytes as a whole that were stored in parts is slow.
            let op = self.op(id);
            let (server, to, other, behind) = (op.at, op.to, op.other, op.behind);
            match op.then {
                Then::Certain => {
                    let end = self.server(to).reserve(at, other);
                    self.leave(id, server, behind);
                    return Some(Done { op: id, first_stage: at, at: end });
                }
                Then::Transfer => self.go_on(at, id, false),
                Then::Program => {
                    self.announce(to, OpKind::Program, u32::MAX);
                    self.go_on(at, id, true);
                }
                Then::Done => {
                    self.leave(id, server, behind);
                    return Some(Done { op: id, first_stage: other, at });
                }
            }
        }
        None
    }
}
