// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash translation and all above it work with: the firmware core, the flash array, and who watches. An operation
//! passes the core first and then its die. Nothing here knows the map, a request or HPB, or decides anything.

mod cpu;
mod dies;
mod engine;
mod faults;
mod hardware;
mod media;
mod ops;
mod probe;
mod stats;

pub(crate) use cpu::{Cpu, Work};
pub(crate) use dies::{Dies, stage_of};
pub(crate) use engine::{Checked, Engine};
pub use faults::{Failable, Failing};
pub(crate) use hardware::Hardware;
pub use media::{MediaMode, MediaOp, NoMedia, WithMedia};
pub(crate) use ops::{Job, NO_OP, Op, OpPool};
pub use probe::{Probe, Resource, StageOf};
pub use stats::DeviceStats;

use readpath_flash::{DieSched, Done, OpId, Ppn};
use readpath_kit::Ns;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// See the module.
pub(crate) struct Back<S, M, P> {
    /// The firmware core.
    pub cpu: Cpu,
    /// The flash array.
    pub dies: Dies<S>,
    /// Counters. Nothing decides by them.
    pub stats: DeviceStats,
    /// The observer.
    pub probe: P,
    media: VecDeque<MediaOp>,
    mode: PhantomData<M>,
}

impl<S: DieSched, M: MediaMode, P: Probe> Back<S, M, P> {
    /// All of it idle.
    pub(crate) fn new(cpu: Cpu, dies: Dies<S>, probe: P) -> Self {
        Back { cpu, dies, stats: DeviceStats::default(), probe, media: VecDeque::new(), mode: PhantomData }
    }

    /// When something happens next.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> Ns {
        self.cpu.soon().min(self.dies.next_deadline())
    }

    /// A read of data begins, on which the firmware spends `extra` time.
    #[inline(always)]
    pub(crate) fn begin_read(&mut self, now: Ns, extra: Ns, id: OpId, op: &Op) {
        let (start, end) = self.cpu.reserve(now, self.cpu.timing().flash_op + extra);
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(op.tag.tag), Resource::Firmware, start, end);
        }
        self.go_to_die(end, id, op);
    }

    #[inline(always)]
    fn go_to_die(&mut self, arrival: Ns, id: OpId, op: &Op) {
        if !self.dies.plan(arrival, id, op) {
            self.cpu.will_be_done(arrival, Work::Flash(id));
        }
    }

    /// Shows the observer where an operation that is done was served; `is_alive` says whether its request is.
    pub(crate) fn probe_flash(&mut self, done: Done, is_alive: bool) {
        let of = stage_of(self.dies.ops().get(done.op), is_alive);
        let probe = &mut self.probe;
        self.dies.stages(done, |resource, start, end| probe.stage(of, resource, start, end));
    }

    /// The next movement of data, in order.
    #[inline]
    pub(crate) fn poll_media(&mut self) -> Option<MediaOp> {
        if M::ACTIVE { self.media.pop_front() } else { None }
    }

    /// The power is gone. What data was to move has moved.
    pub(crate) fn lose_power(&mut self) {
        self.cpu.lose_power();
        self.dies.lose_power();
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> Hardware for Back<S, M, P> {
    fn begin(&mut self, now: Ns, op: Op) {
        self.dies.count_write(op.job);
        let id = self.dies.ops_mut().take(op);
        self.work(now, self.cpu.timing().flash_op, Work::Flash(id));
    }

    #[inline(always)]
    fn end(&mut self, id: OpId) -> Op {
        let op = *self.dies.ops().get(id);
        self.dies.ops_mut().free(id);
        op
    }

    #[inline]
    fn ops(&self) -> &OpPool {
        self.dies.ops()
    }

    #[inline]
    fn ops_mut(&mut self) -> &mut OpPool {
        self.dies.ops_mut()
    }

    #[inline]
    fn work(&mut self, now: Ns, cost: Ns, work: Work) {
        let (start, end) = self.cpu.reserve(now, cost);
        if P::ACTIVE {
            let of = match work {
                Work::Flash(id) | Work::AskHost(id) => stage_of(self.dies.ops().get(id), true),
                Work::WriteHost => StageOf::WriteBack,
                Work::Served { tag, .. }
                | Work::Accept(tag)
                | Work::HandOut(tag)
                | Work::Trimmed(tag)
                | Work::Control(tag) => StageOf::Request(tag.tag),
            };
            self.probe.stage(of, Resource::Firmware, start, end);
        }
        if let Work::Flash(id) = work {
            let op = *self.dies.ops().get(id);
            return self.go_to_die(end, id, &op);
        }
        self.cpu.will_be_done(end, work);
    }

    #[inline]
    fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    fn set_busy_until(&mut self, ready: Ns) {
        self.cpu.set_busy_until(ready);
    }

    #[inline]
    fn emit(&mut self, op: MediaOp) {
        if M::ACTIVE {
            self.media.push_back(op);
        }
    }

    #[inline]
    fn stats(&mut self) -> &mut DeviceStats {
        &mut self.stats
    }

    #[inline]
    fn writes(&self) -> u32 {
        self.dies.writes()
    }

    #[inline]
    fn die_of(&self, ppn: Ppn) -> u32 {
        self.dies.die_of(ppn)
    }

    #[inline]
    fn program_fails(&mut self) -> bool {
        self.dies.fails(Failable::Program)
    }

    #[inline]
    fn erase_fails(&mut self) -> bool {
        self.dies.fails(Failable::Erase)
    }
}
