// SPDX-License-Identifier: MIT OR Apache-2.0
//! The oracle: explicit queues before every die and every channel, and an event at the end of every stage. Slower
//! than [`super::Lean`] and written without its shortcuts, so that a common error is unlikely.

use super::{DieSched, Done, FlashOp, OpId, OpKind, Scheduler, SuspendTiming};
use readpath_kit::{DeadlineHeap, Ns};
use std::collections::VecDeque;

/// A server with a queue.
#[derive(Default)]
struct Server {
    busy: bool,
    line: VecDeque<OpId>,
}

/// See the module.
pub struct Exact {
    events: DeadlineHeap,
    dies: Vec<Server>,
    channels: Vec<Server>,
    ops: Vec<Option<(FlashOp, OnDie)>>,
    first_stage: Vec<Ns>,
}

/// Whether an operation waits for, or is in, the die (otherwise the channel).
type OnDie = bool;

impl Exact {
    fn server(&mut self, die: u32, on_die: OnDie) -> &mut Server {
        let channels = self.channels.len();
        if on_die { &mut self.dies[die as usize] } else { &mut self.channels[die as usize % channels] }
    }

    fn join(&mut self, now: Ns, id: OpId, on_die: OnDie) {
        let (op, stage) = self.ops[usize::from(id)].as_mut().expect("a submitted operation");
        *stage = on_die;
        let die = op.die;
        self.server(die, on_die).line.push_back(id);
        self.start_next(now, die, on_die);
    }

    fn start_next(&mut self, now: Ns, die: u32, on_die: OnDie) {
        let server = self.server(die, on_die);
        if server.busy {
            return;
        }
        if let Some(id) = server.line.pop_front() {
            server.busy = true;
            let (op, _) = self.ops[usize::from(id)].expect("a waiting operation");
            self.events.push(now + if on_die { op.array } else { op.transfer }, u32::from(id));
        }
    }
}

impl DieSched for Exact {
    fn new(_named: Scheduler, channels: u32, dies: u32, _suspend: SuspendTiming) -> Self {
        Exact {
            events: DeadlineHeap::default(),
            dies: (0..dies).map(|_| Server::default()).collect(),
            channels: (0..channels).map(|_| Server::default()).collect(),
            ops: vec![None; DeadlineHeap::SLOTS as usize],
            first_stage: vec![Ns::ZERO; DeadlineHeap::SLOTS as usize],
        }
    }

    fn submit(&mut self, now: Ns, id: OpId, op: FlashOp) {
        self.ops[usize::from(id)] = Some((op, true));
        self.join(now, id, op.kind != OpKind::Program);
    }

    fn next_deadline(&self) -> Ns {
        self.events.next()
    }

    fn poll(&mut self, now: Ns) -> Option<Done> {
        while let Some((at, slot)) = self.events.pop_due(now) {
            let id = slot as OpId;
            let (op, on_die) = self.ops[usize::from(id)].expect("a running operation");
            self.server(op.die, on_die).busy = false;
            self.start_next(at, op.die, on_die);
            match (op.kind, on_die) {
                (OpKind::Read, true) | (OpKind::Program, false) => {
                    self.first_stage[slot as usize] = at;
                    self.join(at, id, !on_die);
                }
                _ => {
                    self.ops[usize::from(id)] = None;
                    return Some(Done { op: id, first_stage: self.first_stage[slot as usize], at });
                }
            }
        }
        None
    }
}
