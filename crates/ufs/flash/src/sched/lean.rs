// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fast scheduler: one event per array operation. A die is a first-in-first-out server that is reserved when an
//! operation arrives at it, or earlier if nothing can come between; the channel is reserved when the array is done.
//! Reads alone are scheduled exactly; a caller that goes on to a third server at the reported end does so in order of
//! array ends, not of transfer ends.

use super::{DieSched, Done, FlashOp, OpId, OpKind, Scheduler, SuspendTiming};
use readpath_kit::{DeadlineHeap, Divisor, Ns, Tournament};

/// Operations with numbers of their own.
const OPS: usize = DeadlineHeap::SLOTS as usize;
const NONE: OpId = OpId::MAX;
/// Dies and channels that can be. Tables have fixed sizes, so that no index needs a look at a length.
const SERVERS: usize = Tournament::SERVERS as usize;

/// See the module.
pub struct Lean {
    /// The next event of every server that has one. Later ones lie in its line.
    events: Tournament,
    /// Dies, then channels.
    servers: Box<[Server; SERVERS]>,
    ops: Box<[Running; OPS]>,
    dies: u16,
    channel_of: Divisor,
}

/// A die or a channel: first in, first out.
#[derive(Clone, Copy)]
struct Server {
    free: Ns,
    /// The last of those whose end here is an event to come.
    last: OpId,
    /// Of a die: operations that are known to come and have not taken their place yet.
    expected: u32,
}

/// An operation in progress. Aligned so that its place in the table is a shift away.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Running {
    /// When its stage ends, if it is not the first of its server.
    end: Ns,
    /// What its other stage takes; when that one has begun, when this one ended.
    other: Ns,
    /// The server it is at, and the one of its other stage.
    at: u16,
    to: u16,
    /// The next whose end is an event of the same server. None unless it is lined up.
    behind: OpId,
    then: Then,
}

/// What comes when a stage ends.
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
    const IDLE: Server = Server { free: Ns::ZERO, last: NONE, expected: 0 };

    /// Takes it from `now` on for `span`; returns the end.
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

    /// The end of the stage of `id`, at its `server`, is an event to come.
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

    /// The event of `id`, the first of all, is over, and `behind` is the next at its `server`.
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

    /// The event of `id`, the first of all, is over at `at`: its other stage begins.
    #[inline(always)]
    fn go_on(&mut self, at: Ns, id: OpId) {
        let Running { other, at: from, to, behind, .. } = *self.op(id);
        let end = self.server(to).reserve(at, other);
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
    fn new(_named: Scheduler, channels: u32, dies: u32, _suspend: SuspendTiming) -> Self {
        let idle = Running { end: Ns::ZERO, other: Ns::ZERO, at: 0, to: 0, behind: NONE, then: Then::Done };
        Lean {
            events: Tournament::new(dies + channels),
            servers: Box::new([Server::IDLE; SERVERS]),
            ops: Box::new([idle; OPS]),
            dies: dies as u16,
            channel_of: Divisor::new(channels),
        }
    }

    /// Its die serves in order of arrival, so it may, unless something earlier has not taken its place there.
    #[inline(always)]
    fn plans_ahead(&self, die: u32) -> bool {
        self.servers[die as usize % SERVERS].expected == 0
    }

    #[inline(always)]
    fn expect(&mut self, die: u32) {
        self.server(die as u16).expected += 1;
    }

    #[inline(always)]
    fn submit(&mut self, arrival: Ns, id: OpId, op: FlashOp) {
        let die = op.die as u16;
        let channel = self.dies + self.channel_of.remainder(op.die) as u16;
        let (at, to, span, other, then) = match op.kind {
            OpKind::Read if op.report_at_end => (die, channel, op.array, op.transfer, Then::Transfer),
            OpKind::Read => (die, channel, op.array, op.transfer, Then::Certain),
            OpKind::Erase => (die, channel, op.array, Ns::ZERO, Then::Done),
            OpKind::Program => (channel, die, op.transfer, op.array, Then::Program),
        };
        // A program takes its place in the die's line when its transfer ends.
        match (op.kind, op.expected) {
            (OpKind::Program, false) => self.server(die).expected += 1,
            (OpKind::Read | OpKind::Erase, true) => self.server(die).expected -= 1,
            _ => {}
        }
        let running = self.op(id);
        running.other = other;
        (running.at, running.to, running.then) = (at, to, then);
        debug_assert_eq!(running.behind, NONE);
        let end = self.server(at).reserve(arrival, span);
        self.line_up(id, at, end);
    }

    #[inline(always)]
    fn next_deadline(&self) -> Ns {
        self.events.next()
    }

    #[inline(always)]
    fn poll(&mut self, now: Ns) -> Option<Done> {
        while let Some((at, tag)) = self.events.first_due(now) {
            let id = tag as OpId;
            // Field by field: what was stored in parts is slow to load as a whole.
            let op = self.op(id);
            let (server, to, other, behind) = (op.at, op.to, op.other, op.behind);
            match op.then {
                Then::Certain => {
                    let end = self.server(to).reserve(at, other);
                    self.leave(id, server, behind);
                    return Some(Done { op: id, first_stage: at, at: end });
                }
                Then::Transfer => self.go_on(at, id),
                Then::Program => {
                    self.server(to).expected -= 1;
                    self.go_on(at, id);
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
