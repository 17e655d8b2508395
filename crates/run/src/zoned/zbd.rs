// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the requests of jobs go that work on zones themselves, as fio 3.33 places them with `zonemode=zbd`: writes at
//! write pointers, reads below them. It knows zones and jobs; neither time nor commands.

use readpath_host::BlockOp;
use readpath_workload::{Zbd, ZonedUnit};

/// A zone as the host believes it to be.
#[derive(Clone, Copy, Default, Debug)]
struct Zone {
    /// Blocks up to the write pointer, writes in flight included.
    written: u32,
    /// Writes in flight.
    writes: u32,
    /// It is to be reset before it is written again.
    resets: bool,
}

/// A zone that is written to, and the job that began it.
#[derive(Clone, Copy, Debug)]
struct Target {
    zone: u32,
    job: u32,
}

/// The zones of a unit, which all its jobs share.
#[derive(Debug)]
pub(super) struct Unit {
    config: ZonedUnit,
    zones: Vec<Zone>,
    targets: Vec<Target>,
    /// Blocks below write pointers.
    valid: u64,
    /// Writes in flight, in all zones.
    writes: u32,
    /// Writes until the next reset of [`Zbd::resets`].
    until_reset: u32,
}

/// Where a job's next sequential requests begin: reads, writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursors(pub [u32; 2]);

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It goes to this block, and counts as a write in flight of its zone if it is one.
    At(u32),
    /// Something is done to this zone first, when nothing of the job is in flight: [`Unit::changed`].
    First(BlockOp, u32),
    /// It waits until a write of the unit ends.
    Wait,
    /// No zone has data for it.
    NoData,
    /// No zone that is open has room, and no other may be opened.
    NoZone,
}

impl Unit {
    /// A unit whose zones are written up to `pointers`.
    pub(super) fn new(config: ZonedUnit, pointers: &[u32]) -> Unit {
        let zones: Vec<Zone> = pointers.iter().map(|&written| Zone { written, ..Zone::default() }).collect();
        let valid = zones.iter().map(|zone| u64::from(zone.written)).sum();
        let begun = (0..).zip(&zones).filter(|(_, zone)| (1..config.capacity).contains(&zone.written));
        let targets = begun.take(config.most_open as usize).map(|(zone, _)| Target { zone, job: u32::MAX }).collect();
        Unit { config, zones, targets, valid, writes: 0, until_reset: 0 }
    }

    /// The power was gone: nothing is in flight any more, zones are written up to `pointers`, and none is open.
    pub(super) fn found_again(&mut self, pointers: &[u32]) {
        let targets = Vec::new();
        *self = Unit { targets, until_reset: self.until_reset, ..Unit::new(self.config, pointers) };
    }

    /// Cursors of a job that begins.
    pub(super) fn cursors(&self, zbd: &Zbd) -> Cursors {
        Cursors([zbd.zones.0 * self.config.stride; 2])
    }

    /// Blocks of a zone.
    pub(super) fn capacity(&self) -> u32 {
        self.config.capacity
    }

    /// First block of a zone.
    pub(super) fn start(&self, zone: u32) -> u32 {
        zone * self.config.stride
    }

    fn rest(&self, zone: u32) -> u32 {
        self.config.capacity - self.zones[zone as usize].written
    }

    /// Where a read of `blocks` goes that the job's stream puts at `block`.
    pub(super) fn read(&self, zbd: &Zbd, cursors: &mut Cursors, block: u32, blocks: u32) -> Place {
        let ZonedUnit { stride, capacity, .. } = self.config;
        let block = if zbd.random { block } else { self.at_data(zbd, cursors.0[0]) };
        let (wanted, offset) = (block / stride, block % stride);
        let has = |zone: &u32| {
            let written = self.zones[*zone as usize].written;
            (zbd.read_beyond_wp || written >= blocks).then_some((*zone, written))
        };
        let (first, end) = zbd.zones;
        let at = if zbd.read_beyond_wp {
            Some((wanted, offset.min(capacity - blocks)))
        } else if zbd.random {
            // The nearest zone with enough data, the one above before the one below.
            let near = (0..end - first).flat_map(|away| [wanted.checked_add(away), wanted.checked_sub(away)]);
            let found = near.flatten().filter(|zone| (first..end).contains(zone)).find_map(|zone| has(&zone));
            found.map(|(zone, written)| {
                let most = written - blocks;
                (zone, if most == 0 { 0 } else { offset % most / blocks * blocks })
            })
        } else if offset + blocks <= self.zones[wanted as usize].written {
            Some((wanted, offset))
        } else {
            (wanted + 1..end).find_map(|zone| has(&zone)).map(|(zone, _)| (zone, 0))
        };
        let Some((zone, offset)) = at else {
            cursors.0[0] = self.start(first);
            return Place::NoData;
        };
        cursors.0[0] = self.start(zone) + offset + blocks;
        Place::At(self.start(zone) + offset)
    }

    /// Where a write of `blocks` goes that the job's stream puts at `block`.
    pub(super) fn write(&mut self, job: u32, zbd: &Zbd, cursors: &mut Cursors, block: u32, blocks: u32) -> Place {
        let ZonedUnit { stride, capacity, .. } = self.config;
        let block = if zbd.random { block } else { self.at_data(zbd, cursors.0[1]) };
        let wanted = block / stride;
        let Some(zone) = self.target(job, zbd, wanted, block, blocks) else {
            return if self.writes > 0 { Place::Wait } else { Place::NoZone };
        };
        let rest = self.rest(zone);
        if rest > 0 && rest < blocks {
            if !zbd.random {
                cursors.0[1] = self.start(zone) + capacity;
            }
            return Place::First(BlockOp::FinishZone, zone);
        }
        if let Some((above, every)) = zbd.resets
            && !self.zones[zone as usize].resets
            && self.valid >= above
        {
            self.until_reset = if self.until_reset == 0 { every } else { self.until_reset } - 1;
            self.zones[zone as usize].resets = self.until_reset == 0 && self.zones[zone as usize].written > 0;
        }
        if rest == 0 || self.zones[zone as usize].resets {
            return Place::First(BlockOp::ResetZone, zone);
        }
        let at = self.start(zone) + capacity - rest;
        let found = &mut self.zones[zone as usize];
        (found.written, found.writes) = (found.written + blocks, found.writes + 1);
        (self.valid, self.writes) = (self.valid + u64::from(blocks), self.writes + 1);
        cursors.0[1] = at + blocks;
        Place::At(at)
    }

    /// The next block of a sequential job: behind a zone begins the next one, behind all of them the first.
    fn at_data(&self, zbd: &Zbd, cursor: u32) -> u32 {
        let ZonedUnit { stride, capacity, .. } = self.config;
        let (zone, offset) = (cursor / stride, cursor % stride);
        let zone = if offset >= capacity { zone + 1 } else { zone };
        let offset = if offset >= capacity { 0 } else { offset };
        if zone >= zbd.zones.1 { self.start(zbd.zones.0) } else { self.start(zone) + offset }
    }

    /// The zone that a write of `blocks` goes to, which is open from now on.
    fn target(&mut self, job: u32, zbd: &Zbd, wanted: u32, block: u32, blocks: u32) -> Option<u32> {
        if self.may_write(job, zbd, wanted) {
            return Some(wanted);
        }
        let (first, end) = zbd.zones;
        let n = self.targets.len();
        let parts = u64::from(end - first) * u64::from(self.config.stride);
        let begin = u64::from(block - self.start(first)) * n as u64 / parts;
        let others = (0..n).map(|i| self.targets[(begin as usize + i) % n].zone);
        let has_room = |zone: &u32| (first..end).contains(zone) && self.rest(*zone) >= blocks;
        if let Some(zone) = others.into_iter().find(has_room) {
            return Some(zone);
        }
        let after = (wanted + 1..end).chain(first..wanted);
        after.into_iter().find(|&zone| self.zones[zone as usize].writes == 0 && self.may_write(job, zbd, zone))
    }

    /// Opens a zone to a job, if it may be open.
    fn may_write(&mut self, job: u32, zbd: &Zbd, zone: u32) -> bool {
        if self.targets.iter().any(|target| target.zone == zone) {
            // One that writes in flight fill counts as full.
            return self.rest(zone) > 0 || self.zones[zone as usize].writes == 0;
        }
        let mine = self.targets.iter().filter(|target| target.job == job).count();
        if self.targets.len() >= zbd.most_open as usize || zbd.job_most_open > 0 && mine >= zbd.job_most_open as usize {
            return false;
        }
        self.targets.push(Target { zone, job });
        true
    }

    /// A zone is being reset or finished.
    pub(super) fn changed(&mut self, op: BlockOp, zone: u32) {
        let found = &mut self.zones[zone as usize];
        self.valid -= u64::from(found.written);
        *found = Zone { written: if op == BlockOp::ResetZone { 0 } else { self.config.capacity }, ..*found };
        found.resets = false;
        self.valid += u64::from(found.written);
        self.leave(zone);
    }

    /// A write has ended.
    pub(super) fn wrote(&mut self, block: u32) {
        let zone = block / self.config.stride;
        self.zones[zone as usize].writes -= 1;
        self.writes -= 1;
        self.leave(zone);
    }

    /// A full zone without writes in flight is no longer open.
    fn leave(&mut self, zone: u32) {
        if self.rest(zone) == 0 && self.zones[zone as usize].writes == 0 {
            self.targets.retain(|target| target.zone != zone);
        }
    }
}
