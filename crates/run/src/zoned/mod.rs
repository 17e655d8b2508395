// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units with zones in virtual time: a source around the source, which knows where write pointers are. Requests of jobs
//! that work on zones themselves are placed by [`zbd`]; all others pass as they are. That writes of a zone keep their
//! order is up to the driver.

pub(crate) mod refused;
mod zbd;

pub use refused::ZonesError;

use crate::drive::{Port, Rest, Source};
use crate::error::{RunError, io_error};
use crate::request::Flights;
use crate::through::{Taker, Through};
use readpath_config::DevicePreset;
use readpath_device::{LuConfig, Probe};
use readpath_flash::DieSched;
use readpath_host::{BlockOp, BlockRequest, SenseData};
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::{Io, IoKind, Zbd, ZonedUnit};
use std::collections::VecDeque;
use zbd::{Cursors, Place};

fn zoned_unit(lu: &LuConfig) -> Option<ZonedUnit> {
    lu.zones.map(|zones| ZonedUnit { stride: zones.stride(), capacity: zones.blocks, most_open: zones.most_open })
}

/// The zones of each unit of a device, as its workloads have to know them.
pub fn zoned_units(preset: &DevicePreset) -> Vec<Option<ZonedUnit>> {
    preset.device.lus.iter().map(zoned_unit).collect()
}

/// What the host did in zones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ZoneCounts {
    /// Zones that it reset.
    pub resets: u64,
}

impl ZoneCounts {
    /// What it has done so far, if the device has zones.
    pub(crate) fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Option<ZoneCounts> {
        let has_zones = stack.device.config().lus.iter().any(|lu| lu.zones.is_some());
        has_zones.then(|| ZoneCounts { resets: stack.host.zone_resets() })
    }

    pub(crate) fn since(&self, before: &ZoneCounts) -> ZoneCounts {
        ZoneCounts { resets: self.resets - before.resets }
    }
}

/// What the host knows of the zones of all units, from one phase to the next.
#[derive(Debug)]
pub(crate) struct HostZones {
    units: Vec<Option<zbd::Unit>>,
}

impl HostZones {
    /// What the device says of its zones, if it has any.
    pub(crate) fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Option<HostZones> {
        let lus = &stack.device.config().lus;
        let unit = |(lun, lu): (u8, &LuConfig)| {
            zoned_unit(lu).map(|config| zbd::Unit::new(config, &stack.device.zone_pointers(lun)))
        };
        let has_zones = lus.iter().any(|lu| lu.zones.is_some());
        has_zones.then(|| HostZones { units: (0..).zip(lus).map(unit).collect() })
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
        loop {
            let line = &mut self.lines[job as usize];
            let Some(&request) = line.waiting.front().filter(|_| !line.changes) else { return };
            let Some(Some(unit)) = self.zones.units.get_mut(usize::from(request.lun)) else { return };
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
                // Its cursor is at the start again, where there is data.
                Place::NoData if zbd.again && line.has_read && !zbd.random => {}
                Place::NoData if zbd.writes || line.has_read => {
                    line.waiting.pop_front();
                    self.told.push_back(Told::GivesUp { cookie, is_last: !zbd.writes });
                }
                Place::NoData => return self.fail(RunError::NothingToRead { lun }),
                Place::NoZone => return self.fail(RunError::NoZone { lun, most_open: zbd.most_open }),
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
                if writes && let Some(Some(unit)) = self.zones.units.get_mut(usize::from(lun)) {
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
        }
    }
}

impl Taker for Host<'_> {
    fn submit(&mut self, port: &mut impl Port, now: Ns, thread: u32, request: &BlockRequest) {
        let has_zones = matches!(self.zones.units.get(usize::from(request.lun)), Some(Some(_)));
        if has_zones && let Some(Some(_)) = self.jobs.get(thread as usize) {
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
}

impl<'a, Q: Source> OnZones<'a, Q> {
    /// Around a source whose threads are these jobs, if they know of zones.
    pub(crate) fn new(source: &'a mut Q, zones: &'a mut HostZones, jobs: &'a [Option<Zbd>], luns: &[u8]) -> Self {
        let line = |(zbd, lun): (&Option<Zbd>, &u8)| {
            let unit = zones.units.get(usize::from(*lun)).and_then(Option::as_ref);
            let cursors = unit.zip(*zbd).map_or(Cursors([0; 2]), |(unit, zbd)| unit.cursors(&zbd));
            let waiting = VecDeque::new();
            Line { waiting, cursors, in_flight: 0, changes: false, held: false, has_read: false }
        };
        let lines = jobs.iter().zip(luns).map(line).collect();
        let (held, children, told) = (Vec::new(), Flights::new(), VecDeque::new());
        OnZones { source, host: Host { zones, jobs, lines, held, children, told, failed: None } }
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

    fn begin(&mut self, port: &mut impl Port, now: Ns) {
        self.source.begin(&mut Through { port, taker: &mut self.host }, now);
        self.tell(port, now);
    }

    fn next_at(&self) -> Ns {
        self.source.next_at()
    }

    fn act(&mut self, port: &mut impl Port, now: Ns, until: Ns) {
        self.source.act(&mut Through { port, taker: &mut self.host }, now, until);
        self.tell(port, now);
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
        }
    }

    fn in_flight(&self) -> u32 {
        self.source.in_flight()
    }

    fn is_over(&self) -> bool {
        self.source.is_over() && self.host.children.is_empty() && self.host.failed.is_none()
    }

    fn rest(&self) -> Rest {
        self.source.rest()
    }

    fn lost(&mut self, port: &mut impl Port, now: Ns) {
        self.host.children = Flights::new();
        self.source.lost(&mut Through { port, taker: &mut self.host }, now);
    }
}
