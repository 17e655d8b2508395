// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units with zones in virtual time: a source around the source, which knows where write pointers are. Requests of jobs
//! that work on zones themselves are placed by [`zbd`], those to a unit behind a mapper by [`log`]; all others pass as
//! they are. That writes of a zone keep their order is up to the driver.

mod log;
mod mapped;
pub(crate) mod refused;
#[cfg(test)]
mod tests;
mod zbd;

pub use refused::ZonesError;

use crate::drive::{Port, Rest, Source};
use crate::error::{RunError, io_error};
use crate::request::Flights;
use crate::through::{Taker, Through};
use log::{Log, LogCounts};
use mapped::{Command, Mapped};
use readpath_config::DevicePreset;
use readpath_device::{Layout, LuConfig, Probe};
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest, SenseData};
use readpath_kit::Ns;
use readpath_stack::{Hold, Payload, Stack, Wire};
use readpath_workload::{Io, IoKind, Zbd, ZonedUnit};
use std::collections::VecDeque;
use zbd::{Cursors, Place};

fn zoned_unit(lu: &LuConfig) -> Option<ZonedUnit> {
    lu.zones.map(|zones| ZonedUnit { stride: zones.stride(), capacity: zones.blocks, most_open: zones.most_open })
}

/// The zones of each unit of a device, as its workloads have to know them; none behind a mapper.
pub fn zoned_units(preset: &DevicePreset) -> Vec<Option<ZonedUnit>> {
    let of = |lu| zoned_unit(lu).filter(|_| preset.host.mapper().is_none());
    preset.device.lus.iter().map(of).collect()
}

/// The parts of a range of a unit, first block and blocks: one for each zone, none in a gap.
pub(crate) fn parts_of(preset: &DevicePreset, lun: u8, first: u32, blocks: u32) -> Vec<(u32, u32)> {
    let Some(zones) = preset.device.lus[usize::from(lun)].zones else { return vec![(first, blocks)] };
    let (stride, end) = (zones.stride(), first + blocks);
    let part = |zone: u32| {
        let start = zone * stride;
        (first.max(start), end.min(start + zones.blocks))
    };
    let parts = (first / stride..end.div_ceil(stride)).map(part);
    parts.filter(|(from, to)| from < to).map(|(from, to)| (from, to - from)).collect()
}

/// Where blocks of ranges (unit, first block, blocks) lie that were written before all others. Behind a mapper that is
/// at the beginning of the unit, in their order.
pub(crate) fn placed(preset: &DevicePreset, ranges: &[(u8, u32, u32)]) -> Vec<(u8, u32, u32)> {
    let Some(_) = preset.host.mapper() else { return ranges.to_vec() };
    let mut placed: Vec<(u8, u32, u32)> = Vec::new();
    for &(lun, first, blocks) in ranges {
        match (preset.device.lus[usize::from(lun)].zones, placed.iter_mut().find(|at| at.0 == lun)) {
            (Some(_), Some(at)) => at.2 += blocks,
            (Some(_), None) => placed.push((lun, 0, blocks)),
            (None, _) => placed.push((lun, first, blocks)),
        }
    }
    for (lun, _, blocks) in &mut placed {
        if let Some(zones) = preset.device.lus[usize::from(*lun)].zones {
            *blocks = *blocks / zones.blocks * zones.stride() + *blocks % zones.blocks;
        }
    }
    placed
}

/// What was written before all others.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Unit, first block, blocks.
    pub ranges: Vec<(u8, u32, u32)>,
    /// In which order.
    pub layout: Layout,
    /// Seed of that order, if it is random.
    pub seed: u64,
}

impl Default for Written {
    fn default() -> Self {
        Written { ranges: Vec::new(), layout: Layout::Sequential, seed: 0 }
    }
}

/// What the host did in zones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ZoneCounts {
    /// Zones that it reset.
    pub resets: u64,
    /// Blocks that its mappers wrote for their users.
    pub written: u64,
    /// Blocks that cleaning moved.
    pub moved: u64,
    /// Bytes of their maps; 0 without.
    pub map_bytes: u64,
}

impl ZoneCounts {
    pub(crate) fn since(&self, before: &ZoneCounts) -> ZoneCounts {
        ZoneCounts {
            resets: self.resets - before.resets,
            written: self.written - before.written,
            moved: self.moved - before.moved,
            map_bytes: self.map_bytes,
        }
    }
}

/// How requests to a unit with zones are placed.
#[derive(Debug)]
enum Unit {
    Jobs(zbd::Unit),
    Mapped(Box<Mapped>),
}

/// What the host knows of the zones of all units, from one phase to the next.
#[derive(Debug)]
pub(crate) struct HostZones {
    units: Vec<Option<Unit>>,
    /// The power was gone, and with it perhaps what a job wants to read.
    were_lost: bool,
}

impl HostZones {
    /// What the device says of its zones, if it has any, and where a mapper has put what was written before.
    pub(crate) fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(
        stack: &Stack<S, X, P, W>,
        written: &Written,
    ) -> Option<HostZones> {
        let lus = &stack.device.config().lus;
        let unit = |(lun, lu): (u8, &LuConfig)| {
            let config = zoned_unit(lu)?;
            let Some(mapper) = stack.host.mapper() else {
                return Some(Unit::Jobs(zbd::Unit::new(config, &stack.device.zone_pointers(lun))));
            };
            let mut log = Log::new(config, lu.zone_count(), mapper);
            let mine = written.ranges.iter().filter(|(of, ..)| *of == lun);
            mine.for_each(|&(_, first, blocks)| match written.layout {
                Layout::Sequential => log.preset(first, blocks),
                Layout::Random => log.preset_at_random(first, blocks, written.seed),
            });
            Some(Unit::Mapped(Box::new(Mapped::new(lun, log))))
        };
        let has_zones = lus.iter().any(|lu| lu.zones.is_some());
        has_zones.then(|| HostZones { units: (0..).zip(lus).map(unit).collect(), were_lost: false })
    }

    /// What was done so far, with these zones reset.
    pub(crate) fn counts(&self, resets: u64) -> ZoneCounts {
        let mut all = ZoneCounts { resets, ..ZoneCounts::default() };
        for unit in self.units.iter().flatten() {
            if let Unit::Mapped(unit) = unit {
                let LogCounts { written, moved, map_bytes } = unit.log.counts();
                all.written += written;
                all.moved += moved;
                all.map_bytes += map_bytes;
            }
        }
        all
    }

    /// Whether a mapper stands before a unit.
    pub(crate) fn maps(&self) -> bool {
        self.all_mapped().next().is_some()
    }

    fn jobs(&mut self, lun: u8) -> Option<&mut zbd::Unit> {
        match self.units.get_mut(usize::from(lun))? {
            Some(Unit::Jobs(unit)) => Some(unit),
            _ => None,
        }
    }

    fn mapped(&mut self, lun: u8) -> Option<&mut Mapped> {
        match self.units.get_mut(usize::from(lun))? {
            Some(Unit::Mapped(unit)) => Some(unit),
            _ => None,
        }
    }

    fn all_mapped(&self) -> impl Iterator<Item = &Mapped> {
        self.units.iter().flatten().filter_map(|unit| match unit {
            Unit::Mapped(unit) => Some(&**unit),
            Unit::Jobs(_) => None,
        })
    }
}

/// A command in flight.
#[derive(Clone, Copy)]
enum Child {
    /// It is this request of the source.
    Of(u32),
    /// It is this request of a job on zones.
    OfJob { cookie: u32, job: u32, lun: u8, block: u32, writes: bool },
    /// It makes a zone ready for a job.
    Change { job: u32, io: Io },
    /// A mapper sent it.
    Mapped { lun: u8, command: Command },
}

/// The requests of a job on zones, in order.
struct Line {
    waiting: VecDeque<BlockRequest>,
    cursors: Cursors,
    in_flight: u32,
    /// A zone is being made ready for the first one.
    changes: bool,
    /// The first one could not go on when it came.
    held: bool,
    has_read: bool,
}

impl Line {
    /// One without requests.
    fn at(cursors: Cursors) -> Line {
        Line { waiting: VecDeque::new(), cursors, in_flight: 0, changes: false, held: false, has_read: false }
    }
}

/// What the source has to be told.
enum Told {
    Begins(u32),
    GivesUp { cookie: u32, is_last: bool },
}

/// What stands between source and driver.
struct Host<'a> {
    zones: &'a mut HostZones,
    jobs: &'a [Option<Zbd>],
    lines: Vec<Line>,
    /// Jobs whose first request waits.
    held: Vec<u32>,
    children: Flights<Child>,
    told: VecDeque<Told>,
    failed: Option<RunError>,
}

impl Host<'_> {
    /// Submits what of a job's requests can go.
    fn go_on(&mut self, port: &mut impl Port, now: Ns, job: u32) {
        let Some(Some(zbd)) = self.jobs.get(job as usize) else { return };
        let mut is_at_start = false;
        loop {
            let line = &mut self.lines[job as usize];
            let Some(&request) = line.waiting.front().filter(|_| !line.changes) else { return };
            let Some(unit) = self.zones.jobs(request.lun) else { return };
            let BlockRequest { cookie, lun, op, block, blocks } = request;
            let writes = matches!(op, BlockOp::Write | BlockOp::WriteFua);
            let place = match op {
                BlockOp::Read => unit.read(zbd, &mut line.cursors, block, blocks),
                _ if writes => unit.write(job, zbd, &mut line.cursors, block, blocks),
                _ => Place::At(block),
            };
            match place {
                Place::At(block) => {
                    line.waiting.pop_front();
                    line.in_flight += 1;
                    line.has_read |= op == BlockOp::Read;
                    if std::mem::take(&mut line.held) {
                        self.told.push_back(Told::Begins(cookie));
                    }
                    let child = self.children.begin(Child::OfJob { cookie, job, lun, block, writes });
                    port.submit_from(now, job, &BlockRequest { cookie: child, block, ..request });
                }
                Place::First(op, zone) => {
                    line.held = true;
                    if line.in_flight > 0 {
                        return;
                    }
                    line.changes = true;
                    unit.changed(op, zone);
                    let (block, blocks) = (unit.start(zone), unit.capacity());
                    let io = Io { block, blocks: 0, kind: IoKind::Trim, fua: false };
                    let cookie = self.children.begin(Child::Change { job, io });
                    port.submit_from(now, job, &BlockRequest { cookie, lun, op, block, blocks });
                    return;
                }
                Place::Wait => {
                    line.held = true;
                    if !self.held.contains(&job) {
                        self.held.push(job);
                    }
                    return;
                }
                // Its cursor is at the start again, where there may be data.
                Place::NoData if zbd.again && line.has_read && !zbd.random && !is_at_start => is_at_start = true,
                Place::NoData if zbd.writes || line.has_read || self.zones.were_lost => {
                    line.waiting.pop_front();
                    self.told.push_back(Told::GivesUp { cookie, is_last: !zbd.writes });
                }
                Place::NoData => return self.fail(RunError::NothingToRead { lun }),
                Place::NoZone => return self.fail(RunError::NoZone { lun, most_open: zbd.most_open }),
            }
        }
    }

    /// Sends what a mapper has to send.
    fn send_mapped(&mut self, port: &mut impl Port, now: Ns, lun: u8) {
        while let Some((command, request)) = self.zones.mapped(lun).and_then(Mapped::next) {
            let cookie = self.children.begin(Child::Mapped { lun, command });
            port.submit(now, &BlockRequest { cookie, ..request });
        }
    }

    /// When the next request ends that needs no command.
    fn next_at(&self) -> Ns {
        self.zones.all_mapped().map(Mapped::next_at).min().unwrap_or(Ns::NEVER)
    }

    /// A request that ends by `until` without a command.
    fn late(&mut self, until: Ns) -> Option<u32> {
        self.zones.units.iter_mut().flatten().find_map(|unit| match unit {
            Unit::Mapped(unit) => unit.late(until),
            Unit::Jobs(_) => None,
        })
    }

    /// The power was gone: nothing is in flight, and the device says how far its zones are written.
    fn lost(&mut self, port: &impl Port) {
        self.zones.were_lost = true;
        self.children = Flights::new();
        self.held.clear();
        self.told.clear();
        for line in &mut self.lines {
            *line = Line { has_read: line.has_read, ..Line::at(line.cursors) };
        }
        for (lun, unit) in (0..).zip(&mut self.zones.units) {
            match unit {
                Some(Unit::Jobs(unit)) => unit.found_again(&port.zone_pointers(lun)),
                // `refused` keeps power cuts from a mapper.
                Some(Unit::Mapped(_)) | None => {}
            }
        }
    }

    fn fail(&mut self, error: RunError) {
        self.failed.get_or_insert(error);
    }

    /// A command has ended; returns the request of the source that has ended with it.
    fn ended(&mut self, port: &mut impl Port, now: Ns, cookie: u32) -> Option<u32> {
        match self.children.end(cookie) {
            Child::Of(cookie) => Some(cookie),
            Child::OfJob { cookie, job, lun, block, writes } => {
                self.lines[job as usize].in_flight -= 1;
                if writes && let Some(unit) = self.zones.jobs(lun) {
                    unit.wrote(block);
                    for job in std::mem::take(&mut self.held) {
                        self.go_on(port, now, job);
                    }
                }
                self.go_on(port, now, job);
                Some(cookie)
            }
            Child::Change { job, .. } => {
                self.lines[job as usize].changes = false;
                self.go_on(port, now, job);
                None
            }
            Child::Mapped { lun, command } => {
                let ended = self.zones.mapped(lun)?.ended(command);
                self.send_mapped(port, now, lun);
                ended
            }
        }
    }
}

impl Taker for Host<'_> {
    fn submit(&mut self, port: &mut impl Port, now: Ns, thread: u32, request: &BlockRequest) {
        if let Some(unit) = self.zones.mapped(request.lun) {
            unit.submit(now, request);
            return self.send_mapped(port, now, request.lun);
        }
        if self.zones.jobs(request.lun).is_some()
            && let Some(Some(_)) = self.jobs.get(thread as usize)
        {
            self.lines[thread as usize].waiting.push_back(*request);
            return self.go_on(port, now, thread);
        }
        let cookie = self.children.begin(Child::Of(request.cookie));
        port.submit_from(now, thread, &BlockRequest { cookie, ..*request });
    }
}

/// A source on units with zones. In virtual time only.
pub(crate) struct OnZones<'a, Q> {
    source: &'a mut Q,
    host: Host<'a>,
    /// Requests that have ended without a command and were not told yet.
    ended: VecDeque<(IoKind, Ns)>,
}

impl<'a, Q: Source> OnZones<'a, Q> {
    /// Around a source whose threads are these jobs, if they know of zones.
    pub(crate) fn new(source: &'a mut Q, zones: &'a mut HostZones, jobs: &'a [Option<Zbd>], luns: &[u8]) -> Self {
        let line = |(zbd, lun): (&Option<Zbd>, &u8)| {
            let cursors = zones.jobs(*lun).zip(*zbd).map_or(Cursors([0; 2]), |(unit, zbd)| unit.cursors(&zbd));
            Line::at(cursors)
        };
        let lines = jobs.iter().zip(luns).map(line).collect();
        let (held, children, told) = (Vec::new(), Flights::new(), VecDeque::new());
        let host = Host { zones, jobs, lines, held, children, told, failed: None };
        OnZones { source, host, ended: VecDeque::new() }
    }

    /// Tells the source what it has to know.
    fn tell(&mut self, port: &mut impl Port, now: Ns) {
        while let Some(told) = self.host.told.pop_front() {
            match told {
                Told::Begins(cookie) => self.source.begins(cookie, now),
                Told::GivesUp { cookie, is_last } => {
                    let port = &mut Through { port, taker: &mut self.host };
                    self.source.gives_up(port, cookie, is_last, now);
                }
            }
        }
    }
}

impl<Q: Source> Source for OnZones<'_, Q> {
    const WATCH_EVERY: u64 = Q::WATCH_EVERY;
    const ENDS_FIRST: bool = Q::ENDS_FIRST;

    fn holds(&self) -> Hold {
        if self.source.holds() == Hold::Nothing { Hold::Nothing } else { Hold::Several }
    }

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.source.begin(&mut Through { port, taker: &mut self.host }, now);
        self.tell(port, now);
    }

    fn next_at(&self) -> Ns {
        self.source.next_at().min(self.host.next_at())
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        loop {
            if let Some(cookie) = self.host.late(until) {
                let port = &mut Through { port: &mut *port, taker: &mut self.host };
                let ended = self.source.ended(port, cookie, now);
                self.ended.extend(ended);
            } else if self.source.next_at() <= until {
                self.source.act(&mut Through { port: &mut *port, taker: &mut self.host }, now, until);
            } else {
                return self.tell(port, now);
            }
            self.tell(port, now);
        }
    }

    fn work_at(&self) -> Ns {
        if self.host.failed.is_some() { Ns::ZERO } else { self.source.work_at() }
    }

    fn work<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        match self.host.failed.take() {
            Some(error) => Err(error),
            None => self.source.work(stack, now),
        }
    }

    fn ended(&mut self, port: &mut impl Port, cookie: u32, now: Ns) -> Option<(IoKind, Ns)> {
        let ended = self.host.ended(port, now, cookie).and_then(|cookie| {
            let port = &mut Through { port: &mut *port, taker: &mut self.host };
            self.source.ended(port, cookie, now)
        });
        self.tell(port, now);
        ended
    }

    fn late(&mut self, port: &mut impl Port, now: Ns) -> Option<(IoKind, Ns)> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        let late = self.source.late(&mut Through { port, taker: &mut self.host }, now);
        self.tell(port, now);
        late
    }

    /// The error names the blocks that the device was asked for.
    fn refused(&mut self, _: &mut impl Port, cookie: u32, sense: SenseData, now: Ns) -> Result<(), RunError> {
        Err(io_error(self.io(cookie), sense, now))
    }

    fn io(&self, cookie: u32) -> Io {
        match self.host.children.get(cookie) {
            Child::Of(cookie) => self.source.io(cookie),
            Child::OfJob { cookie, block, .. } => Io { block, ..self.source.io(cookie) },
            Child::Change { io, .. } => io,
            Child::Mapped { lun, command } => {
                let unit = self.host.zones.all_mapped().find(|unit| unit.lun() == lun);
                unit.map_or(Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false }, |unit| unit.io(command))
            }
        }
    }

    fn in_flight(&self) -> u32 {
        self.source.in_flight()
    }

    fn is_over(&self) -> bool {
        let is_waited_for = self.host.failed.is_some() || self.host.next_at() != Ns::NEVER;
        self.source.is_over() && self.host.children.is_empty() && !is_waited_for
    }

    fn rest(&self) -> Rest {
        self.source.rest()
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.host.lost(port);
        self.source.lost(&mut Through { port, taker: &mut self.host }, now);
    }
}
