// SPDX-License-Identifier: MIT OR Apache-2.0
//! Die schedulers: given operations that arrive at dies, when does each one end?
//!
//! [`Lean`] handles an event at the end of each array operation and reserves the channel there; [`Exact`] handles an
//! event for every stage and keeps explicit queues, as the oracle of the tests; [`Queued`] lets reads overtake and
//! suspend programs and erases. None of them knows the purpose of an operation.

mod any;
mod exact;
mod lean;
mod queued;

use readpath_kit::Ns;

pub use any::AnySched;
pub use exact::Exact;
pub use lean::Lean;
pub use queued::{Queued, SuspendTiming};

readpath_kit::named! {
    /// Kinds of die schedulers.
    pub enum Scheduler {
        /// First come, first served; the fastest.
        Lean = "lean",
        /// Reads overtake and suspend programs and erases.
        Queued = "queued",
        /// An event for every stage; the oracle.
        Exact = "exact",
    }
}

/// Identifies an operation from submission to completion; the submitter chooses it below 4096 and may reuse it
/// afterwards.
pub type OpId = u16;

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sense into the page register, then transfer out over the channel.
    Read,
    /// The same with pages of several planes at once.
    ReadTogether,
    /// Transfer in over the channel, then program.
    Program,
    /// Erase a block (on every plane).
    Erase,
}

impl OpKind {
    /// Whether it reads, be it from one plane or several.
    #[inline(always)]
    pub fn reads(self) -> bool {
        matches!(self, OpKind::Read | OpKind::ReadTogether)
    }

    /// Whether it takes all planes of its die, also if they read apart.
    #[inline(always)]
    pub fn takes_all_planes(self) -> bool {
        self != OpKind::Read
    }
}

/// What an array has to serve operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Servers {
    /// Channels.
    pub channels: u32,
    /// Dies.
    pub dies: u32,
    /// Planes of a die that read apart, a power of two; 1 for a die that reads as one.
    pub planes: u32,
}

impl Servers {
    /// The first plane of the die of `plane`, which all that takes all its planes names.
    #[inline(always)]
    pub fn first_plane(&self, plane: u32) -> u32 {
        plane & !(self.planes - 1)
    }

    fn channel_of(&self, plane: u32) -> u32 {
        plane / self.planes % self.channels
    }
}

/// An operation on one die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashOp {
    /// The die. Where planes read apart: die x planes + the plane that reads, or + 0 for what takes all planes.
    pub die: u32,
    /// The kind.
    pub kind: OpKind,
    /// Time the array is busy (tR, tPROG, tBERS).
    pub array: Ns,
    /// Time the channel is busy; zero for an erase.
    pub transfer: Ns,
    /// A read that must not be reported before its end, because a further stage starts then. Otherwise a scheduler
    /// may report as soon as it knows the end.
    pub report_at_end: bool,
    /// [`DieSched::expect`] announced it.
    pub expected: bool,
}

/// An operation has ended, or its end is certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The operation.
    pub op: OpId,
    /// When its first stage ended: the array for a read, the transfer for a program.
    pub first_stage: Ns,
    /// When its last stage ends; not before the time of the report.
    pub at: Ns,
}

/// A scheduler of dies and channels. A die accepts the next operation as soon as its array is idle (the page register
/// is doubled, so a transfer does not hold the array); a channel carries one transfer at a time in order of arrival.
pub trait DieSched {
    /// A scheduler for an idle array. Die `d` is on channel `d % channels`. `named` is the configured kind; only
    /// [`AnySched`] uses it.
    fn new(named: Scheduler, servers: Servers, suspend: SuspendTiming) -> Self;

    /// Whether a read or an erase of `die` may be submitted ahead of its arrival now, if every operation that arrives
    /// earlier has been submitted or is expected: a first-in-first-out server can be planned as soon as its queue is
    /// known.
    fn plans_ahead(&self, _die: u32, _kind: OpKind) -> bool {
        false
    }

    /// Announces an operation of `die` that will be submitted when it arrives.
    fn expect(&mut self, _die: u32, _kind: OpKind) {}

    /// `op` arrives at its die (a read, an erase) or its channel (a program) at `arrival`, now or, if
    /// [`DieSched::plans_ahead`] allows it, in the future.
    fn submit(&mut self, arrival: Ns, id: OpId, op: FlashOp);

    /// When a read of `die` that arrives at `arrival` ends, if nothing is under way and nothing else comes until then.
    /// It needs no reservation: what comes later comes after its end. `None` if only events tell.
    fn alone(&self, _arrival: Ns, _die: u32, _array: Ns, _transfer: Ns) -> Option<Ns> {
        None
    }

    /// Time of the next event.
    fn next_deadline(&self) -> Ns;

    /// Handles events that are due at `now` and returns the first operation that ended by then; call until `None`.
    #[must_use]
    fn poll(&mut self, now: Ns) -> Option<Done>;
}

#[cfg(test)]
mod tests;
