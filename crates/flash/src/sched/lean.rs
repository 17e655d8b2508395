// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fast scheduler: one event per array operation. A die is a first-in-first-out server that is reserved when an
//! operation arrives at it; the channel is reserved when the array is done. Reads alone are scheduled exactly; a
//! caller that goes on to a third server at the reported end does so in order of array ends, not of transfer ends.

use super::{DieSched, Done, FlashOp, OpId, OpKind, SuspendTiming};
use readpath_kit::{DeadlineHeap, Divisor, Ns};

/// See the module.
pub struct Lean {
    events: DeadlineHeap,
    die_free: Vec<Ns>,
    channel_free: Vec<Ns>,
    ops: Vec<Running>,
    channels: Divisor,
    /// Programs that have not come to their die yet.
    transfers_in: u32,
}

#[derive(Clone, Copy)]
struct Running {
    transfer: Ns,
    array: Ns,
    die: u16,
    channel: u16,
    kind: OpKind,
    next: Stage,
    report_at_end: bool,
    first_stage: Ns,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// The array is done; a read goes on to the channel.
    ArrayDone,
    /// The transfer is done; a program goes on to the array.
    TransferDone,
}

impl DieSched for Lean {
    fn new(channels: u32, dies: u32, _suspend: SuspendTiming) -> Self {
        let idle = Running {
            transfer: Ns::ZERO,
            array: Ns::ZERO,
            die: 0,
            channel: 0,
            kind: OpKind::Read,
            next: Stage::ArrayDone,
            report_at_end: false,
            first_stage: Ns::ZERO,
        };
        Lean {
            events: DeadlineHeap::with_capacity(256),
            die_free: vec![Ns::ZERO; dies as usize],
            channel_free: vec![Ns::ZERO; channels as usize],
            ops: vec![idle; DeadlineHeap::SLOTS as usize],
            channels: Divisor::new(channels),
            transfers_in: 0,
        }
    }

    /// A program joins its die's line when its transfer ends, so until then a read that comes later must not.
    #[inline(always)]
    fn plans_reads_ahead(&self) -> bool {
        self.transfers_in == 0
    }

    #[inline(always)]
    fn submit(&mut self, now: Ns, id: OpId, op: FlashOp) {
        let mut running = Running {
            transfer: op.transfer,
            array: op.array,
            die: op.die as u16,
            channel: self.channels.remainder(op.die) as u16,
            kind: op.kind,
            next: Stage::ArrayDone,
            report_at_end: op.report_at_end,
            first_stage: Ns::ZERO,
        };
        let at = match op.kind {
            OpKind::Read | OpKind::Erase => reserve(&mut self.die_free[op.die as usize], now, op.array),
            OpKind::Program => {
                running.next = Stage::TransferDone;
                self.transfers_in += 1;
                reserve(&mut self.channel_free[usize::from(running.channel)], now, op.transfer)
            }
        };
        self.ops[usize::from(id)] = running;
        self.events.push(at, u32::from(id));
    }

    #[inline(always)]
    fn next_deadline(&self) -> Ns {
        self.events.next()
    }

    #[inline(always)]
    fn poll(&mut self, now: Ns) -> Option<Done> {
        while let Some((at, slot)) = self.events.first_due(now) {
            let op = &mut self.ops[slot as usize];
            let done = Done { op: slot as OpId, first_stage: op.first_stage, at };
            match (op.kind, op.next) {
                (OpKind::Read, Stage::ArrayDone) => {
                    let end = reserve(&mut self.channel_free[usize::from(op.channel)], at, op.transfer);
                    if !op.report_at_end {
                        self.events.remove_first();
                        return Some(Done { first_stage: at, at: end, ..done });
                    }
                    op.next = Stage::TransferDone;
                    op.first_stage = at;
                    self.events.replace_first(end, slot);
                }
                (OpKind::Program, Stage::TransferDone) => {
                    op.next = Stage::ArrayDone;
                    op.first_stage = at;
                    self.transfers_in -= 1;
                    let end = reserve(&mut self.die_free[usize::from(op.die)], at, op.array);
                    self.events.replace_first(end, slot);
                }
                _ => {
                    self.events.remove_first();
                    return Some(done);
                }
            }
        }
        None
    }
}

/// Takes a first-in-first-out server from `now` on for `span`; returns the end.
#[inline]
fn reserve(free_at: &mut Ns, now: Ns, span: Ns) -> Ns {
    *free_at = now.max(*free_at) + span;
    *free_at
}
