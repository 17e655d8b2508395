// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configured scheduler behind one type: each call takes one more branch, and its users are compiled once instead
//! of once for each scheduler.

use super::{DieSched, Done, Exact, FlashOp, Lean, OpId, OpKind, Queued, Scheduler, Servers, SuspendTiming};
use readpath_kit::Ns;

/// The configured scheduler.
pub enum AnySched {
    /// See [`Lean`].
    Lean(Lean),
    /// See [`Queued`].
    Queued(Queued),
    /// See [`Exact`].
    Exact(Exact),
}

macro_rules! each {
    ($self:ident, $sched:ident => $call:expr) => {
        match $self {
            AnySched::Lean($sched) => $call,
            AnySched::Queued($sched) => $call,
            AnySched::Exact($sched) => $call,
        }
    };
}

impl DieSched for AnySched {
    fn new(named: Scheduler, servers: Servers, suspend: SuspendTiming) -> Self {
        match named {
            Scheduler::Lean => AnySched::Lean(Lean::new(named, servers, suspend)),
            Scheduler::Queued => AnySched::Queued(Queued::new(named, servers, suspend)),
            Scheduler::Exact => AnySched::Exact(Exact::new(named, servers, suspend)),
        }
    }

    #[inline]
    fn plans_ahead(&self, die: u32, kind: OpKind) -> bool {
        each!(self, sched => sched.plans_ahead(die, kind))
    }

    #[inline]
    fn expect(&mut self, die: u32, kind: OpKind) {
        each!(self, sched => sched.expect(die, kind));
    }

    #[inline]
    fn submit(&mut self, arrival: Ns, id: OpId, op: FlashOp) {
        each!(self, sched => sched.submit(arrival, id, op));
    }

    #[inline]
    fn alone(&self, arrival: Ns, die: u32, array: Ns, transfer: Ns) -> Option<Ns> {
        each!(self, sched => sched.alone(arrival, die, array, transfer))
    }

    #[inline]
    fn next_deadline(&self) -> Ns {
        each!(self, sched => sched.next_deadline())
    }

    #[inline]
    fn poll(&mut self, now: Ns) -> Option<Done> {
        each!(self, sched => sched.poll(now))
    }
}
