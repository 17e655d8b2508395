// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flash array as the firmware sees it: operations in progress, what each takes at its die, and the faults of the
//! array. It knows neither why a slice is read or written nor which request waits for it.

use super::faults::Faults;
use super::ops::{Job, Op, OpPool};
use super::probe::StageOf;
use crate::config::{CellMode, CellTimes, DeviceConfig, FlashTiming};
use readpath_flash::{
    DieSched, Done, FlashOp, Geometry, OpId, OpKind, PlaneReads, Ppn, Scheduler, Servers, ServersOfSlices,
    SuspendTiming,
};
use readpath_kit::Ns;

/// A read of one thing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OneRead {
    /// A block of data, from a superblock in this cell mode.
    Block(CellMode),
    /// A page of the map.
    MapPage,
}

pub(crate) struct Dies<S> {
    pub(super) sched: S,
    /// Operations in progress.
    pub(super) ops: OpPool,
    of_slices: ServersOfSlices,
    /// Slices of a page, a power of two, if reads of several pages take all planes of a die that otherwise read apart.
    page_slices: Option<u32>,
    servers: Servers,
    geometry: Geometry,
    scheduler: Scheduler,
    suspend: SuspendTiming,
    timing: FlashTiming,
    /// Array times by cell mode.
    cells: [CellTimes; CellMode::COUNT],
    spare_transfer: Ns,
    /// Data that leaves the cache in SLC mode stays on its die.
    pub folds_on_die: bool,
    /// Data is sent at its own time, not ahead: the link also carries traffic to and from host memory.
    reports_at_end: bool,
    pub(super) faults: Faults,
    /// Programs and erases of any kind that have begun and not ended.
    pub(super) writes: u32,
}

impl<S: DieSched> Dies<S> {
    /// An idle array.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let (g, planes) = (&config.geometry, config.flash.plane_reads);
        let servers = Servers { channels: g.channels, dies: g.dies(), planes: g.planes_apart(planes) };
        Dies {
            sched: S::new(config.scheduler, servers, config.suspend),
            ops: OpPool::new(),
            of_slices: g.servers_of_slices(planes),
            page_slices: (planes == PlaneReads::Both).then(|| g.slices_per_page()),
            servers,
            geometry: *g,
            scheduler: config.scheduler,
            suspend: config.suspend,
            timing: config.flash,
            cells: CellMode::ALL.map(|mode| config.cell_times(mode)),
            spare_transfer: config.spare_transfer(),
            folds_on_die: config.slc.is_some_and(|slc| slc.folds_on_die),
            reports_at_end: config.host_map().is_some(),
            faults: Faults::new(&config.ftl.faults),
            writes: 0,
        }
    }

    /// The die of a slice.
    #[inline(always)]
    pub(crate) fn die_of(&self, ppn: Ppn) -> u32 {
        self.of_slices.server_of(ppn) >> self.servers.planes.ilog2()
    }

    /// Plans operation `op`, which arrives at its die at `arrival`. All operations pass the firmware before their
    /// dies, so the order of arrival is known in advance: true if the scheduler took the operation ahead of time.
    /// Otherwise [`Dies::start`] must be called at `arrival`. `PLAIN` says that no several pages are read together.
    #[inline(always)]
    pub(crate) fn plan<const PLAIN: bool>(&mut self, arrival: Ns, id: OpId, op: &Op) -> bool {
        if !PLAIN && self.reads_together(op) {
            // The end of its last plane is not known ahead.
            self.sched.expect(self.first_plane(op), OpKind::ReadTogether);
            return false;
        }
        let die = self.of_slices.server_of(op.ppn);
        let kind = kind_of(op.job);
        let plans = kind != OpKind::Program && self.sched.plans_ahead(die, kind);
        if plans {
            self.hand_over::<false>(arrival, id, op, die, false);
        } else {
            self.sched.expect(die, kind);
        }
        plans
    }

    /// Times of the array and the channel.
    #[inline(always)]
    fn times_of(&self, what: OneRead) -> (Ns, Ns) {
        let t = &self.timing;
        match what {
            OneRead::Block(CellMode::Full) => (t.read, t.transfer_block),
            OneRead::Block(cells) => (self.time_in(cells, OpKind::Read), t.transfer_block),
            OneRead::MapPage => (t.map_read, t.map_transfer),
        }
    }

    /// Whether a read of one page would be planned.
    #[inline(always)]
    pub(crate) fn plans_reads(&self, ppn: Ppn) -> bool {
        self.sched.plans_ahead(self.of_slices.server_of(ppn), OpKind::Read)
    }

    /// Plans a read of a block of data, or of a page of the map, as [`Dies::plan`].
    #[inline(always)]
    pub(crate) fn plan_read(&mut self, arrival: Ns, id: OpId, what: OneRead, ppn: Ppn) {
        let (array, transfer) = self.times_of(what);
        let die = self.of_slices.server_of(ppn);
        let report_at_end = what == OneRead::MapPage;
        let op = FlashOp { die, kind: OpKind::Read, array, transfer, report_at_end, expected: false };
        self.sched.submit(arrival, id, op);
    }

    /// When a read of a block of data, or of a page of the map, ends: see [`DieSched::alone`].
    #[inline(always)]
    pub(crate) fn alone(&self, arrival: Ns, what: OneRead, ppn: Ppn) -> Option<Ns> {
        let (array, transfer) = self.times_of(what);
        self.sched.alone(arrival, self.of_slices.server_of(ppn), array, transfer)
    }

    /// A planned operation arrives at its die.
    pub(crate) fn start(&mut self, arrival: Ns, id: OpId) {
        let op = *self.ops.get(id);
        if self.reads_together(&op) {
            return self.hand_over::<true>(arrival, id, &op, self.first_plane(&op), true);
        }
        self.hand_over::<false>(arrival, id, &op, self.of_slices.server_of(op.ppn), true);
    }

    /// Whether it reads several pages of a die whose planes otherwise read apart.
    #[inline(always)]
    fn reads_together(&self, op: &Op) -> bool {
        let spans = |slices: u32| (op.ppn.0 & (slices - 1)) + u32::from(op.count) > slices;
        self.page_slices.is_some_and(|slices| kind_of(op.job) == OpKind::Read && spans(slices))
    }

    #[cold]
    fn first_plane(&self, op: &Op) -> u32 {
        self.servers.first_plane(self.of_slices.server_of(op.ppn))
    }

    /// `TOGETHER`: see [`Dies::reads_together`].
    #[inline(always)]
    fn hand_over<const TOGETHER: bool>(&mut self, arrival: Ns, id: OpId, op: &Op, die: u32, expected: bool) {
        let t = &self.timing;
        let units = units_of(op);
        let (kind, array, transfer) = match accesses(op.job) {
            Access::Slices => (OpKind::Read, t.read, Ns(t.transfer_block.0 * u64::from(op.count))),
            Access::MapPage => (OpKind::Read, t.map_read, t.map_transfer),
            Access::Spare => (OpKind::Read, t.read, self.spare_transfer),
            Access::Program => {
                let slices = self.geometry.slices_per_unit() * units;
                (OpKind::Program, Ns(t.program.0 * u64::from(units)), Ns(t.transfer_block.0 * u64::from(slices)))
            }
            Access::Erase => (OpKind::Erase, t.erase, Ns::ZERO),
        };
        let array = if op.cells == CellMode::Full { array } else { self.time_in(op.cells, kind) };
        let transfer = if op.stays { Ns::ZERO } else { transfer };
        let array = if kind == OpKind::Read { self.faults.with_retries(array) } else { array };
        let kind = if TOGETHER { OpKind::ReadTogether } else { kind };
        let report_at_end = self.reports_at_end | (op.job != Job::HostRead);
        self.sched.submit(arrival, id, FlashOp { die, kind, array, transfer, report_at_end, expected });
    }

    /// Array time in a cell mode other than the full one, which is rare.
    #[cold]
    fn time_in(&self, mode: CellMode, kind: OpKind) -> Ns {
        let times = &self.cells[mode.index()];
        match kind {
            OpKind::Read | OpKind::ReadTogether => times.read,
            OpKind::Program => times.program,
            OpKind::Erase => times.erase,
        }
    }

    /// Where and when a finished operation was served: die or channel, start and end.
    pub(crate) fn stages(&self, done: Done, mut each: impl FnMut(super::probe::Resource, Ns, Ns)) {
        use super::probe::Resource;
        let op = self.ops.get(done.op);
        let (t, g) = (&self.timing, &self.geometry);
        let CellTimes { read, program, erase } = self.cells[op.cells.index()];
        let die = g.die_of(op.ppn);
        let (die, channel) = (Resource::Die(die), Resource::Channel(g.channel_of(die)));
        let from = |end: Ns, span: Ns| end.saturating_sub(span);
        let (array, transfer) = match accesses(op.job) {
            Access::Erase => return each(die, from(done.at, erase), done.at),
            Access::Program => {
                let units = units_of(op);
                let slices = g.slices_per_unit() * units;
                (Ns(program.0 * u64::from(units)), Ns(t.transfer_block.0 * u64::from(slices)))
            }
            Access::Slices => (read, Ns(t.transfer_block.0 * u64::from(op.count))),
            Access::Spare => (read, self.spare_transfer),
            Access::MapPage => (t.map_read, t.map_transfer),
        };
        let transfer = if op.stays { Ns::ZERO } else { transfer };
        // A program's data crosses the channel before the die works, that of a read behind it.
        let (first, last) = match accesses(op.job) {
            Access::Program => ((channel, transfer), (die, array)),
            _ => ((die, array), (channel, transfer)),
        };
        each(first.0, from(done.first_stage, first.1), done.first_stage);
        each(last.0, from(done.at, last.1), done.at);
    }

    /// Drops all operations in progress.
    pub(crate) fn lose_power(&mut self) {
        self.sched = S::new(self.scheduler, self.servers, self.suspend);
        self.ops = OpPool::new();
        self.writes = 0;
    }
}

/// What an operation reads, or what it does to the cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// As many slices as it counts.
    Slices,
    MapPage,
    Spare,
    Program,
    Erase,
}

#[inline(always)]
fn accesses(job: Job) -> Access {
    match job {
        Job::HostRead
        | Job::HintedRead
        | Job::MoveRead
        | Job::TableRead
        | Job::RpmbRead
        | Job::RestRead
        | Job::RefreshRead => Access::Slices,
        Job::MapLoad | Job::BufferLoad | Job::CollectMapLoad | Job::WriteBackLoad => Access::MapPage,
        Job::SpareRead | Job::OwnerRead => Access::Spare,
        Job::Program
        | Job::MoveProgram
        | Job::TableProgram
        | Job::MetaProgram
        | Job::AnchorProgram
        | Job::ZoneProgram
        | Job::RefreshProgram
        | Job::RestProgram
        | Job::RpmbProgram => Access::Program,
        Job::Erase => Access::Erase,
        Job::Free => unreachable!("a freed operation has no work"),
    }
}

/// Multi-plane pages that a program fills.
#[inline(always)]
fn units_of(op: &Op) -> u32 {
    if op.job.programs_together() { op.frame } else { 1 }
}

#[inline(always)]
fn kind_of(job: Job) -> OpKind {
    match accesses(job) {
        Access::Erase => OpKind::Erase,
        Access::Program => OpKind::Program,
        Access::Slices | Access::MapPage | Access::Spare => OpKind::Read,
    }
}

/// What an operation is for; `is_alive` says whether its request still exists.
pub(crate) fn stage_of(op: &Op, is_alive: bool) -> StageOf {
    match op.job {
        Job::MapLoad => StageOf::MapLoad(op.lpn),
        Job::Program | Job::TableProgram | Job::ZoneProgram | Job::RestProgram => StageOf::Program,
        Job::Erase => StageOf::Erase,
        Job::SpareRead
        | Job::TableRead
        | Job::CollectMapLoad
        | Job::MoveRead
        | Job::MoveProgram
        | Job::RestRead
        | Job::RefreshRead
        | Job::RefreshProgram => StageOf::Collect,
        Job::WriteBackLoad | Job::MetaProgram | Job::AnchorProgram => StageOf::WriteBack,
        Job::OwnerRead => StageOf::Dropped,
        _ if is_alive => StageOf::Request(op.tag.tag),
        _ => StageOf::Dropped,
    }
}
