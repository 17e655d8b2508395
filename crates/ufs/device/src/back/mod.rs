// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash translation and the parts above it work with: the firmware core, the flash array, and the observer. An
//! operation passes the core first and then its die. This module does not know the map, requests or HPB.

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
pub(crate) use dies::{OneRead, stage_of};
pub(crate) use engine::Checked;
pub use faults::{Failable, Failing};
pub(crate) use hardware::Hardware;
pub use media::{MediaMode, MediaOp, NoMedia, WithMedia};
pub(crate) use ops::{Job, NO_OP, Op, OpPool};
pub use probe::{Probe, Resource, StageOf};
pub use stats::DeviceStats;

use crate::config::{CellMode, DeviceConfig, EntryConfig};
use dies::Dies;
use engine::Engine;
use readpath_flash::{DieSched, Done, OpId, Ppn};
use readpath_kit::Ns;
use std::collections::VecDeque;
use std::marker::PhantomData;

pub(crate) struct Back<S, M, P> {
    cpu: Cpu,
    /// Protects and checks HPB entries.
    engine: Engine,
    dies: Dies<S>,
    /// No decision depends on them.
    stats: DeviceStats,
    probe: P,
    media: VecDeque<MediaOp>,
    mode: PhantomData<M>,
}

impl<S: DieSched, M: MediaMode, P: Probe> Back<S, M, P> {
    pub(crate) fn new(config: &DeviceConfig, probe: P) -> Self {
        let entries = config.hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        Back {
            cpu: Cpu::new(config.firmware),
            engine: Engine::new(&entries),
            dies: Dies::new(config),
            stats: DeviceStats::default(),
            probe,
            media: VecDeque::new(),
            mode: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn cpu_mut(&mut self) -> &mut Cpu {
        &mut self.cpu
    }

    /// The engine that checks HPB entries.
    #[inline(always)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    pub(crate) fn counters(&self) -> &DeviceStats {
        &self.stats
    }

    /// The observer.
    #[inline(always)]
    pub(crate) fn probe_mut(&mut self) -> &mut P {
        &mut self.probe
    }

    pub(crate) fn into_probe(self) -> P {
        self.probe
    }

    /// When the next flash operation ends.
    #[inline(always)]
    pub(crate) fn next_flash(&self) -> Ns {
        self.dies.sched.next_deadline()
    }

    /// The flash operation that ends at `now`, if one does.
    #[inline(always)]
    pub(crate) fn poll_flash(&mut self, now: Ns) -> Option<Done> {
        self.dies.sched.poll(now)
    }

    /// An operation that has passed the core arrives at its die.
    #[inline(always)]
    pub(crate) fn start_flash(&mut self, now: Ns, id: OpId) {
        self.dies.start(now, id);
    }

    pub(crate) fn write_ended(&mut self) {
        self.dies.writes -= 1;
    }

    /// Which operations fail from now on.
    pub(crate) fn set_failing(&mut self, what: Failable, failing: Failing) {
        self.dies.faults.set(what, failing);
    }

    /// Restarts the stream of random faults with `seed`.
    pub(crate) fn seed_faults(&mut self, seed: u64) {
        self.dies.faults.seed(seed);
    }

    /// Time of the next event.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> Ns {
        self.cpu.soon().min(self.dies.sched.next_deadline())
    }

    /// Begins a read of data, on which the firmware spends `extra` time. `PLAIN` says that it is of one server of the
    /// array, whatever its length.
    #[inline(always)]
    pub(crate) fn begin_read<const PLAIN: bool>(&mut self, now: Ns, extra: Ns, id: OpId, op: &Op) {
        let (start, end) = self.cpu.reserve(now, self.cpu.timing().flash_op + extra);
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(op.tag.tag), Resource::Firmware, start, end);
        }
        self.go_to_die::<PLAIN>(end, id, op);
    }

    #[inline(always)]
    fn go_to_die<const PLAIN: bool>(&mut self, arrival: Ns, id: OpId, op: &Op) {
        if !self.dies.plan::<PLAIN>(arrival, id, op) {
            self.cpu.will_be_done(arrival, Work::Flash(id));
        }
    }

    /// Begins a read on which the firmware spends `extra` time, for one who holds no [`Op`] under its number.
    #[inline(always)]
    pub(crate) fn read_one(&mut self, now: Ns, extra: Ns, id: OpId, what: OneRead, ppn: Ppn) {
        let (_, end) = self.cpu.reserve(now, self.cpu.timing().flash_op + extra);
        self.dies.plan_read(end, id, what, ppn);
    }

    /// Whether reads can be planned ahead while there is nothing else.
    pub(crate) fn plans_reads(&self) -> bool {
        self.dies.plans_reads(Ppn(0))
    }

    /// When a block of data has been read, on which the firmware spends `extra` time, if that is alone from `now` on.
    #[inline(always)]
    pub(crate) fn data_alone(&self, now: Ns, extra: Ns, cells: CellMode, ppn: Ppn) -> Option<Ns> {
        let passed = self.cpu.alone(now, Ns::ZERO, self.cpu.timing().flash_op + extra)?;
        self.dies.alone(passed, OneRead::Block(cells), ppn)
    }

    /// When a page of the map has been read, for a command that costs the firmware `command`.
    #[inline(always)]
    pub(crate) fn page_alone(&self, now: Ns, command: Ns, ppn: Ppn) -> Option<Ns> {
        let passed = self.cpu.alone(now, command, self.cpu.timing().flash_op)?;
        self.dies.alone(passed, OneRead::MapPage, ppn)
    }

    /// Shows the observer where a finished operation was served; `is_alive` says whether its request still exists.
    pub(crate) fn probe_flash(&mut self, done: Done, is_alive: bool) {
        let of = stage_of(self.dies.ops.get(done.op), is_alive);
        let probe = &mut self.probe;
        self.dies.stages(done, |resource, start, end| probe.stage(of, resource, start, end));
    }

    /// The next movement of data, in order.
    #[inline]
    pub(crate) fn poll_media(&mut self) -> Option<MediaOp> {
        if M::ACTIVE { self.media.pop_front() } else { None }
    }

    /// Drops all work. Reports of data movements stay.
    pub(crate) fn lose_power(&mut self) {
        self.cpu.lose_power();
        self.engine.lose_power();
        self.dies.lose_power();
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> Hardware for Back<S, M, P> {
    fn begin(&mut self, now: Ns, op: Op) {
        self.dies.writes += u32::from(op.job.writes());
        let id = self.dies.ops.take(op);
        self.work(now, self.cpu.timing().flash_op, Work::Flash(id));
    }

    #[inline(always)]
    fn end(&mut self, id: OpId) -> Op {
        let op = *self.dies.ops.get(id);
        self.dies.ops.free(id);
        op
    }

    #[inline]
    fn ops(&self) -> &OpPool {
        &self.dies.ops
    }

    #[inline]
    fn ops_mut(&mut self) -> &mut OpPool {
        &mut self.dies.ops
    }

    #[inline]
    fn work(&mut self, now: Ns, cost: Ns, work: Work) {
        let (start, end) = self.cpu.reserve(now, cost);
        if P::ACTIVE {
            let of = match work {
                Work::Flash(id) | Work::AskHost(id) => stage_of(self.dies.ops.get(id), true),
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
            let op = *self.dies.ops.get(id);
            return self.go_to_die::<false>(end, id, &op);
        }
        self.cpu.will_be_done(end, work);
    }

    #[inline]
    fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    fn set_busy_until(&mut self, ready: Ns) {
        self.cpu.set_busy_until(ready);
        self.engine.set_busy_until(ready);
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
        self.dies.writes
    }

    #[inline]
    fn folds_on_die(&self) -> bool {
        self.dies.folds_on_die
    }

    #[inline]
    fn die_of(&self, ppn: Ppn) -> u32 {
        self.dies.die_of(ppn)
    }

    #[inline]
    fn program_fails(&mut self) -> bool {
        self.dies.faults.fails(Failable::Program)
    }

    #[inline]
    fn erase_fails(&mut self) -> bool {
        self.dies.faults.fails(Failable::Erase)
    }
}
