// SPDX-License-Identifier: MIT OR Apache-2.0
//! The oracle: explicit queues before every die and every channel, and an event at the end of every stage. Slower
//! than [`super::Lean`] and written without its shortcuts, so that a common error is unlikely.

use super::{DieSched, Done, FlashOp, OpId, OpKind, Scheduler, Servers, SuspendTiming};
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
    servers: Servers,
    /// The dies, or their planes if they read apart. What takes all planes waits at the heads of all lines of its die.
    dies: Vec<Server>,
    channels: Vec<Server>,
    ops: Vec<Option<(FlashOp, OnDie)>>,
    first_stage: Vec<Ns>,
}

/// Whether an operation waits for, or is in, the die (otherwise the channel).
type OnDie = bool;

impl Exact {
    /// The servers that an operation takes, all at once.
    fn servers(&mut self, op: FlashOp, on_die: OnDie) -> &mut [Server] {
        let (first, planes) = match (on_die, op.kind.takes_all_planes()) {
            (false, _) => {
                return std::slice::from_mut(&mut self.channels[self.servers.channel_of(op.die) as usize]);
            }
            (true, true) => (self.servers.first_plane(op.die), self.servers.planes),
            (true, false) => (op.die, 1),
        };
        &mut self.dies[first as usize..(first + planes) as usize]
    }

    fn join(&mut self, now: Ns, id: OpId, on_die: OnDie) {
        let (op, stage) = self.ops[usize::from(id)].as_mut().expect("a submitted operation");
        *stage = on_die;
        let op = *op;
        self.servers(op, on_die).iter_mut().for_each(|server| server.line.push_back(id));
        self.start(now, id);
    }

    /// Starts an operation that is at the head of its idle servers.
    fn start(&mut self, now: Ns, id: OpId) {
        let (op, on_die) = self.ops[usize::from(id)].expect("a waiting operation");
        let servers = self.servers(op, on_die);
        if servers.iter().all(|server| !server.busy && server.line.front() == Some(&id)) {
            servers.iter_mut().for_each(|server| {
                server.busy = true;
                server.line.pop_front();
            });
            self.events.push(now + if on_die { op.array } else { op.transfer }, u32::from(id));
        }
    }

    /// An operation leaves its servers, and the next of each may start.
    fn leave(&mut self, now: Ns, op: FlashOp, on_die: OnDie) {
        self.servers(op, on_die).iter_mut().for_each(|server| server.busy = false);
        for i in 0..self.servers(op, on_die).len() {
            let server = &self.servers(op, on_die)[i];
            if let (false, Some(&next)) = (server.busy, server.line.front()) {
                self.start(now, next);
            }
        }
    }
}

impl DieSched for Exact {
    fn new(_named: Scheduler, servers: Servers, _suspend: SuspendTiming) -> Self {
        let Servers { channels, dies, planes } = servers;
        Exact {
            events: DeadlineHeap::default(),
            servers,
            dies: (0..dies * planes).map(|_| Server::default()).collect(),
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
            self.leave(at, op, on_die);
            match (op.kind, on_die) {
                (OpKind::Read | OpKind::ReadTogether, true) | (OpKind::Program, false) => {
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
