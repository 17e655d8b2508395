// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads first: every die has a queue for reads and one for programs and erases. A waiting read is served before any
//! of the others, and may suspend one in progress. Both happen a bounded number of times, so that writes always
//! finish.

use super::{DieSched, Done, FlashOp, OpId, OpKind, Scheduler, Servers};
use readpath_kit::{DeadlineHeap, Ns};
use std::collections::VecDeque;

/// Suspension of a program or an erase for a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuspendTiming {
    /// Time from the suspend command until the die can sense.
    pub suspend: Ns,
    /// Time that a resume adds to the rest of the operation.
    pub resume: Ns,
    /// How often one program or erase may be suspended; 0 switches suspension off.
    pub max_per_op: u32,
}

impl SuspendTiming {
    /// Programs and erases are never suspended.
    pub const OFF: SuspendTiming = SuspendTiming { suspend: Ns::ZERO, resume: Ns::ZERO, max_per_op: 0 };
}

/// Reads that may overtake a program or an erase while it waits or is suspended. An assumption: controllers that
/// prefer reads limit how long others wait, but the limits are not published. Reads that arrived before it are served
/// before it in any case: an erase must not meet a read of the same block.
pub(crate) const READS_AHEAD: u32 = 16;

/// See the module.
pub struct Queued {
    events: DeadlineHeap,
    dies: Vec<Die>,
    channel_free: Vec<Ns>,
    ops: Vec<Running>,
    /// Operations submitted so far.
    submitted: u64,
    suspend: SuspendTiming,
}

#[derive(Default)]
struct Die {
    reads: VecDeque<OpId>,
    others: VecDeque<OpId>,
    active: Option<OpId>,
    suspended: Option<OpId>,
    /// Reads that have overtaken the next program or erase.
    ahead: u32,
}

#[derive(Clone, Copy)]
struct Running {
    op: FlashOp,
    /// Position in the order of submission.
    order: u64,
    stage: Stage,
    /// Remaining array time; known while the operation does not run.
    left: Ns,
    /// When the array is done. Events at other times are obsolete since a suspension.
    ends: Ns,
    suspensions: u32,
    first_stage: Ns,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Waiting,
    Array,
    Transfer,
}

impl Running {
    fn waiting(op: FlashOp, order: u64) -> Running {
        let (stage, left, first_stage) = (Stage::Waiting, op.array, Ns::ZERO);
        Running { op, order, stage, left, ends: Ns::NEVER, suspensions: 0, first_stage }
    }
}

impl Queued {
    /// Gives an idle die its next operation, or suspends a program or an erase for a read.
    fn dispatch(&mut self, now: Ns, die: usize) {
        let d = &mut self.dies[die];
        if let Some(active) = d.active {
            let running = &mut self.ops[usize::from(active)];
            let may_suspend = !d.reads.is_empty()
                && !running.op.kind.reads()
                && running.suspensions < self.suspend.max_per_op
                && running.ends > now + self.suspend.suspend;
            if !may_suspend {
                return;
            }
            running.left = running.ends - now;
            running.ends = Ns::NEVER;
            running.stage = Stage::Waiting;
            running.suspensions += 1;
            d.suspended = Some(active);
            d.active = None;
            d.ahead = 1;
            return self.start_read(now + self.suspend.suspend, die);
        }
        if let Some(&read) = d.reads.front() {
            let other = d.suspended.or(d.others.front().copied());
            let order = |id: OpId| self.ops[usize::from(id)].order;
            let overtakes = other.is_some_and(|other| order(other) < order(read));
            if !overtakes || d.ahead < READS_AHEAD {
                d.ahead += u32::from(overtakes);
                return self.start_read(now, die);
            }
        }
        d.ahead = 0;
        let (id, extra) = match d.suspended.take() {
            Some(id) => (id, self.suspend.resume),
            None => match d.others.pop_front() {
                Some(id) => (id, Ns::ZERO),
                None => return,
            },
        };
        d.active = Some(id);
        let running = &mut self.ops[usize::from(id)];
        running.stage = Stage::Array;
        running.ends = now + running.left + extra;
        self.events.push(running.ends, u32::from(id));
    }

    fn start_read(&mut self, from: Ns, die: usize) {
        let d = &mut self.dies[die];
        let id = d.reads.pop_front().expect("a waiting read");
        d.active = Some(id);
        let running = &mut self.ops[usize::from(id)];
        running.stage = Stage::Array;
        running.ends = from + running.op.array;
        self.events.push(running.ends, u32::from(id));
    }

    fn transfer(&mut self, now: Ns, id: OpId) {
        let channels = self.channel_free.len();
        let running = &mut self.ops[usize::from(id)];
        let free = &mut self.channel_free[running.op.die as usize % channels];
        *free = now.max(*free) + running.op.transfer;
        running.stage = Stage::Transfer;
        running.ends = *free;
        self.events.push(*free, u32::from(id));
    }
}

impl DieSched for Queued {
    /// # Panics
    /// When planes read apart, which this scheduler does not know.
    fn new(_named: Scheduler, servers: Servers, suspend: SuspendTiming) -> Self {
        let Servers { channels, dies, planes } = servers;
        assert_eq!(planes, 1, "dies read as one");
        let (kind, none) = (OpKind::Read, Ns::ZERO);
        let op = FlashOp { die: 0, kind, array: none, transfer: none, report_at_end: true, expected: false };
        Queued {
            events: DeadlineHeap::with_capacity(256),
            dies: (0..dies).map(|_| Die::default()).collect(),
            channel_free: vec![Ns::ZERO; channels as usize],
            ops: vec![Running::waiting(op, 0); DeadlineHeap::SLOTS as usize],
            submitted: 0,
            suspend,
        }
    }

    fn submit(&mut self, now: Ns, id: OpId, op: FlashOp) {
        self.submitted += 1;
        self.ops[usize::from(id)] = Running::waiting(op, self.submitted);
        match op.kind {
            OpKind::Read | OpKind::ReadTogether => self.dies[op.die as usize].reads.push_back(id),
            OpKind::Erase => self.dies[op.die as usize].others.push_back(id),
            OpKind::Program => return self.transfer(now, id),
        }
        self.dispatch(now, op.die as usize);
    }

    fn next_deadline(&self) -> Ns {
        self.events.next()
    }

    fn poll(&mut self, now: Ns) -> Option<Done> {
        while let Some((at, slot)) = self.events.pop_due(now) {
            let id = slot as OpId;
            let Running { op, stage, ends, first_stage, .. } = self.ops[slot as usize];
            if ends != at || stage == Stage::Waiting {
                continue;
            }
            let die = op.die as usize;
            match (op.kind, stage) {
                (OpKind::Read | OpKind::ReadTogether, Stage::Array) => {
                    self.dies[die].active = None;
                    self.ops[slot as usize].first_stage = at;
                    self.transfer(at, id);
                    self.dispatch(at, die);
                }
                (OpKind::Program, Stage::Transfer) => {
                    self.ops[slot as usize].stage = Stage::Waiting;
                    self.ops[slot as usize].first_stage = at;
                    self.dies[die].others.push_back(id);
                    self.dispatch(at, die);
                }
                (_, Stage::Array) => {
                    self.dies[die].active = None;
                    self.ops[slot as usize].ends = Ns::NEVER;
                    self.dispatch(at, die);
                    return Some(Done { op: id, first_stage, at });
                }
                (_, _) => {
                    self.ops[slot as usize].ends = Ns::NEVER;
                    return Some(Done { op: id, first_stage, at });
                }
            }
        }
        None
    }
}
