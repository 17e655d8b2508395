// SPDX-License-Identifier: MIT OR Apache-2.0
//! A zoned unit beside a conventional one, at a device without a host: random writes and actions on zones, some of them
//! forbidden, aborts, resets, and power cuts at random moments, also during recovery. A model of each zone knows what
//! was acknowledged, what has to survive, and what must never be seen.

mod copies;
mod order;
mod rests;

use readpath_device::{DeviceConfig, LuConfig, MediaOp, UfsDevice, WithMedia, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_flash::Lean;
use readpath_kit::{Ns, Prng};
use readpath_proto::typed::{
    Cdb, FLAG_FUA, Form, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status, TaskRequest, ZoneAction,
};
use readpath_testkit::{Bare, any_slc, chosen, command, device, give_little_room, response};
use std::collections::BTreeMap;

const ZONED: u8 = 1;
const MOST_OPEN: u32 = 4;

/// A conventional unit and a zoned one of 12 zones.
fn zoned(layout: ZoneLayout, blocks: u32, rule: ZoneRule) -> DeviceConfig {
    let mut config = device(200);
    let zones = ZoneConfig { layout, blocks, most_open: MOST_OPEN, rule, program_blocks: 4, flush_blocks: 4 };
    config.lus[0] = LuConfig { hpb: false, max_active_regions: 0, ..config.lus[0] };
    config.lus.push(LuConfig { blocks: 12 * zones.stride(), zones: Some(zones), ..config.lus[0] });
    config.hpb = None;
    config
}

/// A zone as the host believes it to be.
#[derive(Clone, Default)]
struct Zone {
    /// Stamp of each block that was accepted.
    written: Vec<u64>,
    /// How many of them have to survive.
    flushed: usize,
    is_full: bool,
    /// It was finished when flushed data was all there, and the flush after that was answered.
    full_is_flushed: bool,
    /// How often it was reset.
    resets: u32,
}

#[derive(Clone, Debug)]
enum Op {
    Write {
        zone: usize,
        stamps: Vec<u64>,
        fua: bool,
    },
    /// Refused with this, if it is not aborted.
    Wrong(Sense),
    Read {
        zone: usize,
        from: u32,
        stamps: Vec<u64>,
    },
    Reset(usize),
    Change(usize, ZoneAction),
    Flush,
    /// A write of a stamp to the conventional unit.
    Other(u64),
}

struct Sent {
    op: Op,
    data: Vec<u64>,
    /// With a flush: what it covers.
    covers: Vec<Zone>,
}

struct Run {
    device: UfsDevice<Lean, WithMedia, ()>,
    zones: ZoneConfig,
    now: Ns,
    flash: BTreeMap<u32, u64>,
    slots: BTreeMap<u16, u64>,
    model: Vec<Zone>,
    sent: Vec<Option<Sent>>,
    rng: Prng,
    stamp: u64,
    what: String,
    counts: BTreeMap<&'static str, u32>,
    /// Most commands read the first zones, so that their superblocks are copied.
    reads_few: bool,
    /// Units that recovery reads at most.
    longest: u32,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Prng::stream(seed, "zones", 0);
        let layout = [ZoneLayout::PowerOfTwo, ZoneLayout::Gaps, ZoneLayout::Native][rng.below(3) as usize];
        // In one superblock or in several.
        let is_long = rng.below(4) == 0;
        let blocks = match layout {
            ZoneLayout::PowerOfTwo => [32, 128][usize::from(is_long)],
            _ => [37, 150][usize::from(is_long)],
        };
        let mut config = zoned(layout, blocks, ZoneRule::Zbc);
        let zones = config.lus[1].zones.as_mut().expect("zones");
        zones.program_blocks = 4 << rng.below(2);
        zones.flush_blocks = zones.program_blocks << rng.below(2);
        config.write_buffer_blocks = 20 + rng.below(64) as u32;
        config.ftl.checkpoint_after_units = 20 + rng.below(60) as u32;
        // With the smallest table of changes, resets wait for room in it.
        if rng.below(2) == 0 {
            config.ftl.map_changes = 16 * config.geometry.slices_per_unit();
        }
        give_little_room(&mut config, 4 + rng.below(20) as u32);
        if rng.below(3) == 0 {
            any_slc(&mut config, &mut rng);
        }
        if rng.below(4) == 0 {
            config.ftl.faults.program_failures_ppm = 2_000;
            config.ftl.faults.erase_failures_ppm = 1_000;
            give_little_room(&mut config, 60);
        }
        config.ftl.read_disturb_limit = rng.below(2) as u32;
        let too_small = ["geometry.blocks_per_plane", "slc_cache.static_blocks", "slc_cache.dynamic_blocks"];
        while config.check().is_err_and(|e| too_small.contains(&e.field)) {
            config.geometry.blocks_per_plane += 1;
        }
        let reads_few = config.ftl.read_disturb_limit > 0 && seed.is_multiple_of(2);
        Run { reads_few, ..Run::on(&config, rng, format!("seed {seed}")) }
    }

    fn on(config: &DeviceConfig, rng: Prng, what: String) -> Run {
        Run {
            device: UfsDevice::new(config, Default::default(), ()).expect("a possible device"),
            zones: config.lus[1].zones.expect("zones"),
            now: Ns::ZERO,
            flash: BTreeMap::new(),
            slots: BTreeMap::new(),
            model: vec![Zone::default(); 12],
            sent: (0..16).map(|_| None).collect(),
            rng,
            stamp: 0,
            what,
            counts: BTreeMap::new(),
            reads_few: false,
            longest: config.longest_recovery().units_read,
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn start_of(&self, zone: usize) -> u64 {
        zone as u64 * u64::from(self.zones.stride())
    }

    fn stamps(&mut self, blocks: u32) -> Vec<u64> {
        self.stamp += u64::from(blocks);
        (self.stamp - u64::from(blocks) + 1..=self.stamp).collect()
    }

    fn is_busy(&self, zone: usize) -> bool {
        self.sent.iter().flatten().any(|sent| match sent.op {
            Op::Write { zone: z, .. } | Op::Read { zone: z, .. } | Op::Reset(z) | Op::Change(z, _) => z == zone,
            // It might be accepted if another came first.
            Op::Wrong(_) => true,
            _ => false,
        })
    }

    fn send(&mut self, tag: usize, lun: u8, op: Op, cdb: Cdb, blocks: u32) {
        let body = command(cdb, blocks * 4096);
        let covers = self.model.clone();
        self.sent[tag] = Some(Sent { op, data: vec![0; blocks as usize], covers });
        self.device.submit(self.now, &Request { lun, tag: tag as u8, body }, &[]);
    }

    /// Sends a random command on a free tag.
    fn send_any(&mut self, tag: usize) {
        let mut zone = self.rng.below(12) as usize;
        let mut kind = self.rng.below(20);
        if self.reads_few && self.rng.below(3) > 0 {
            (zone, kind) = (zone % 3, 6 + kind % 6);
        }
        let (start, capacity) = (self.start_of(zone), self.zones.blocks);
        if kind == 0 {
            let cdb = Cdb::SynchronizeCache { form: Form::Sixteen, lba: 0, blocks: 0, immed: false };
            return self.send(tag, ZONED, Op::Flush, cdb, 0);
        }
        if kind <= 2 {
            let lba = self.rng.below(200);
            let [stamp] = self.stamps(1)[..] else { unreachable!() };
            let cdb = Cdb::Write { form: Form::Ten, lba, blocks: 1, flags: 0 };
            return self.send(tag, 0, Op::Other(stamp), cdb, 1);
        }
        if self.is_busy(zone) {
            return;
        }
        let at = self.model[zone].written.len() as u32;
        let is_full = self.model[zone].is_full;
        let sixteen = |lba, blocks, flags| Cdb::Write { form: Form::Sixteen, lba, blocks, flags };
        match kind {
            3 if at > 0 => {
                let cdb = Cdb::ManageZones { action: ZoneAction::Reset, lba: start, count: 0, all: false };
                self.send(tag, ZONED, Op::Reset(zone), cdb, 0);
            }
            4 => {
                let action = [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish][self.rng.below(3) as usize];
                let action =
                    if action == ZoneAction::Finish && self.rng.below(3) > 0 { ZoneAction::Close } else { action };
                let cdb = Cdb::ManageZones { action, lba: start, count: 1, all: false };
                self.send(tag, ZONED, Op::Change(zone, action), cdb, 0);
            }
            5 => {
                let wrong = self.rng.below(u64::from(capacity)) as u32;
                let sense = if is_full { Sense::INVALID_FIELD } else { Sense::UNALIGNED_WRITE };
                if wrong != at || is_full {
                    self.send(tag, ZONED, Op::Wrong(sense), sixteen(start + u64::from(wrong), 1, 0), 1);
                }
            }
            6..9 => {
                let from = self.rng.below(u64::from(capacity)) as u32;
                let blocks = 1 + self.rng.below(u64::from(capacity - from)) as u32;
                let written = &self.model[zone].written;
                let stamps = (from..from + blocks).map(|i| written.get(i as usize).copied().unwrap_or(0)).collect();
                let cdb = Cdb::Read { form: Form::Sixteen, lba: start + u64::from(from), blocks, flags: 0 };
                self.send(tag, ZONED, Op::Read { zone, from, stamps }, cdb, blocks);
            }
            _ if !is_full => {
                let blocks = (1 + self.rng.below(12) as u32).min(capacity - at);
                let fua = self.rng.below(6) == 0;
                let op = Op::Write { zone, stamps: self.stamps(blocks), fua };
                let flags = if fua { FLAG_FUA } else { 0 };
                self.send(tag, ZONED, op, sixteen(start + u64::from(at), blocks, flags), blocks);
            }
            _ => {}
        }
    }

    fn media(&mut self) {
        while let Some(op) = self.device.poll_media() {
            match op {
                MediaOp::Fill { tag, index, slot } => {
                    let stamp = match &self.sent[usize::from(tag)].as_ref().expect("in flight").op {
                        Op::Write { stamps, .. } => stamps[index as usize],
                        Op::Other(stamp) => *stamp,
                        other => panic!("{}: {other:?} brings data", self.what),
                    };
                    self.slots.insert(slot, stamp);
                }
                MediaOp::Program { slot, ppn, .. } => {
                    self.flash.insert(ppn.0, self.slots[&slot]);
                }
                MediaOp::Move { from, to, .. } => {
                    let what = &self.what;
                    let stamp = *self.flash.get(&from.0).unwrap_or_else(|| panic!("{what}: {op:?} of nothing"));
                    self.flash.insert(to.0, stamp);
                }
                MediaOp::ReadFlash { tag, index, ppn } => {
                    let (what, sent) = (&self.what, self.sent[usize::from(tag)].as_ref().map(|sent| &sent.op));
                    let stamp = self.flash.get(&ppn.0).copied();
                    let stamp = stamp.unwrap_or_else(|| panic!("{what}: {sent:?} reads {op:?}, which holds nothing"));
                    self.is_read(tag, index, stamp);
                }
                MediaOp::ReadBuffer { tag, index, slot } => self.is_read(tag, index, self.slots[&slot]),
                MediaOp::ReadZeros { tag, index } => self.is_read(tag, index, 0),
                MediaOp::Torn { first, slices } | MediaOp::Erase { first, slices } => {
                    (first.0..first.0 + slices).for_each(|ppn| {
                        self.flash.remove(&ppn);
                    });
                }
                _ => {}
            }
        }
    }

    fn is_read(&mut self, tag: u8, index: u32, stamp: u64) {
        if let Some(sent) = &mut self.sent[usize::from(tag)] {
            sent.data[index as usize] = stamp;
        }
    }

    /// Advances to the next event, if there is one.
    fn step(&mut self) -> bool {
        let next = self.device.next_deadline();
        if next == Ns::NEVER {
            return false;
        }
        self.now = next;
        self.device.advance(self.now);
        self.media();
        while let Some(reply) = self.device.poll_reply(self.now) {
            self.replied(&reply);
        }
        true
    }

    fn replied(&mut self, reply: &Reply) {
        let Some(sent) = self.sent[usize::from(reply.tag)].take() else { return };
        let Response { status, sense, .. } = response(reply);
        let good = status == Status::Good;
        if sense == Some(Sense::RESET_OCCURRED) {
            return;
        }
        let what = format!("{} at {}: {:?}", self.what, self.now, sent.op);
        match sent.op {
            Op::Wrong(expected) => assert_eq!(sense, Some(expected), "{what}"),
            // As many zones are open as can be.
            Op::Write { .. } | Op::Change(_, ZoneAction::Open) if sense == Some(Sense::ZONE_RESOURCES) => {
                self.count("no resources");
            }
            // An action of the same zone was dropped before.
            _ if !good => panic!("{what}: {sense:?}"),
            Op::Write { zone, stamps, fua } => {
                let zone = &mut self.model[zone];
                zone.written.extend(stamps);
                zone.is_full = zone.written.len() as u32 == self.zones.blocks;
                if fua {
                    zone.flushed = zone.written.len();
                }
                self.count("write");
            }
            Op::Read { zone, from, stamps } => {
                assert_eq!(sent.data, stamps, "{what}: zone {zone} from {from} on");
                self.count("read");
            }
            Op::Reset(zone) => {
                self.model[zone] = Zone { resets: self.model[zone].resets + 1, ..Zone::default() };
                self.count("reset");
            }
            Op::Change(zone, ZoneAction::Finish) => {
                self.model[zone].is_full = true;
                self.count("finish");
            }
            Op::Change(..) | Op::Other(_) => {}
            Op::Flush => {
                for (zone, then) in self.model.iter_mut().zip(sent.covers) {
                    if zone.resets == then.resets {
                        zone.flushed = zone.flushed.max(then.written.len());
                        zone.full_is_flushed |= then.is_full;
                    }
                }
                self.count("flush");
            }
        }
    }

    fn ask(&mut self, cdb: Cdb, blocks: u32) -> (Vec<u64>, Vec<u8>) {
        let tag = 15;
        self.sent[tag] = None;
        self.device.submit(self.now, &Request { lun: ZONED, tag: 15, body: command(cdb, blocks * 4096) }, &[]);
        let mut data = vec![0; blocks as usize];
        loop {
            let next = self.device.next_deadline();
            assert_ne!(next, Ns::NEVER, "{}: {cdb:?} is answered", self.what);
            self.now = next;
            self.device.advance(next);
            self.sent[tag] = Some(Sent { op: Op::Flush, data: std::mem::take(&mut data), covers: Vec::new() });
            self.media();
            data = self.sent[tag].take().expect("just put there").data;
            while let Some(reply) = self.device.poll_reply(self.now) {
                if reply.tag != 15 {
                    self.replied(&reply);
                } else if response(&reply).sense == Some(Sense::RESET_OCCURRED) {
                    return self.ask(cdb, blocks);
                } else {
                    assert_eq!(response(&reply).status, Status::Good, "{}: {cdb:?}", self.what);
                    return (data, self.device.data_in(15).to_vec());
                }
            }
        }
    }

    /// Condition and write pointer of each zone, from its start.
    fn report(&mut self) -> Vec<(u8, u32)> {
        let cdb = Cdb::ReportZones { start: 0, alloc: 1 << 20, options: 0x3E, partial: false };
        let (_, bytes) = self.ask(cdb, 256);
        let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
        bytes[64..]
            .chunks(64)
            .map(|zone| (zone[1] >> 4, (number(&zone[24..32]) - number(&zone[16..24])) as u32))
            .collect()
    }

    /// After a power cut or an abort: what the device says replaces what the host believed, if it may be so. `lost`
    /// says that data which was not flushed may be lost.
    fn look(&mut self, lost: bool, coming: &[Option<Op>]) {
        let report = self.report();
        assert_eq!(report.len(), 12);
        for (zone, (condition, pointer)) in report.into_iter().enumerate() {
            let what = format!("{}: zone {zone}, condition {condition}, {pointer} blocks", self.what);
            let mut may = vec![self.model[zone].clone()];
            for op in coming.iter().flatten() {
                match op {
                    Op::Write { zone: z, stamps, .. } if *z == zone => may[0].written.extend(stamps),
                    Op::Reset(z) if *z == zone => {
                        may.push(Zone { resets: self.model[zone].resets + 1, ..Zone::default() });
                    }
                    Op::Change(z, ZoneAction::Finish) if *z == zone => may[0].is_full = true,
                    _ => {}
                }
            }
            let is_full = condition == 0xE;
            let (data, _) = self.ask(
                Cdb::Read { form: Form::Sixteen, lba: self.start_of(zone), blocks: self.zones.blocks, flags: 0 },
                self.zones.blocks,
            );
            let shown = data.iter().rposition(|stamp| *stamp != 0).map_or(0, |at| at + 1);
            let length = if is_full { shown } else { pointer as usize };
            assert!(shown <= length, "{what}: data behind the write pointer: {data:?}");
            let fits = |model: &&Zone| {
                let least = if lost { model.flushed } else { self.model[zone].written.len() };
                (least..=model.written.len()).contains(&length)
                    && model.written[..length] == data[..length]
                    && (!is_full || model.is_full || length as u32 == self.zones.blocks)
                    && (is_full || !model.full_is_flushed)
            };
            let reset = may.len() > 1 && length == 0 && !is_full;
            let found = may.iter().find(fits).or(if reset { may.last() } else { None });
            let found = found
                .unwrap_or_else(|| panic!("{what}: {data:?}, but {:?}, {} flushed", may[0].written, may[0].flushed));
            let mut next = found.clone();
            next.written.truncate(length);
            next.is_full = is_full;
            if lost {
                // All that is left is in flash.
                (next.flushed, next.full_is_flushed) = (length, is_full);
            }
            self.model[zone] = next;
        }
    }

    /// The power is cut, and then, with so many cuts left, again while the device recovers or soon after.
    fn power_cut(&mut self, mut again: u32) {
        self.count("cut");
        self.device.power_cut(self.now);
        self.media();
        let coming: Vec<Option<Op>> = self.sent.iter_mut().map(|sent| sent.take().map(|sent| sent.op)).collect();
        self.slots.clear();
        loop {
            let recovery = self.device.recover(self.now);
            assert!(recovery.units_read <= self.longest, "{}: {recovery:?}", self.what);
            let ready = recovery.ready_at;
            self.media();
            if again == 0 {
                self.now = self.now.max(ready);
                break;
            }
            again -= 1;
            self.now += Ns(self.rng.below((ready - self.now).0 * 2 + 1));
            self.device.advance(self.now);
            self.media();
            self.device.power_cut(self.now);
            self.media();
        }
        self.look(true, &coming);
    }

    fn abort(&mut self) {
        let is_zoned = |sent: &Sent| !matches!(sent.op, Op::Other(_));
        let Some(tag) = (0..15).find(|tag| self.sent[*tag].as_ref().is_some_and(is_zoned)) else { return };
        self.count("abort");
        let task = TaskRequest { function: 1, lun: ZONED, task_tag: tag as u8 };
        self.device.submit(self.now, &Request { lun: ZONED, tag: 14, body: RequestBody::Task(task) }, &[]);
        let mut aborted = None;
        loop {
            let next = self.device.next_deadline();
            self.now = next;
            self.device.advance(next);
            self.media();
            let mut is_done = false;
            while let Some(reply) = self.device.poll_reply(self.now) {
                match reply.body {
                    ReplyBody::Task(_) => is_done = true,
                    _ => self.replied(&reply),
                }
            }
            if is_done {
                aborted = self.sent[tag].take().map(|sent| sent.op).or(aborted);
                break;
            }
        }
        while self.step() {}
        self.look(false, &[aborted]);
    }

    fn hardware_reset(&mut self) {
        self.count("hardware reset");
        self.device.hardware_reset(self.now);
        self.media();
        let coming: Vec<_> = self.sent.iter_mut().map(|sent| sent.take().map(|sent| sent.op)).collect();
        while self.step() {}
        self.device.check_consistency().expect("tables that agree");
        self.look(false, &coming);
        // No zone stays between two states: each that is empty takes a write.
        let report = self.report();
        for (zone, _) in report.into_iter().enumerate().filter(|(_, (condition, _))| *condition == 1) {
            let [stamp] = self.stamps(1)[..] else { unreachable!() };
            let cdb = Cdb::Write { form: Form::Sixteen, lba: self.start_of(zone), blocks: 1, flags: 0 };
            self.send(0, ZONED, Op::Write { zone, stamps: vec![stamp], fua: false }, cdb, 1);
            while self.step() {}
        }
    }

    /// Sends a command, or advances to the next event and returns true if there is one.
    fn send_or_step(&mut self) -> bool {
        let tag = (0..14).find(|tag| self.sent[*tag].is_none());
        if let Some(tag) = tag.filter(|_| self.rng.below(3) > 0) {
            self.send_any(tag);
            return false;
        }
        self.step()
    }

    /// Sends commands up to an event, or all of them and waits for that event; false if there are fewer.
    fn run_to(&mut self, event: u32, commands: u32) -> bool {
        let mut events = 0;
        for _ in 0..commands {
            if events == event {
                return true;
            }
            events += u32::from(self.send_or_step());
        }
        while events < event {
            if !self.step() {
                return false;
            }
            events += 1;
        }
        true
    }

    fn run(&mut self, commands: u32) {
        for _ in 0..commands {
            self.send_or_step();
            match self.rng.below(400) {
                0..4 => {
                    let again = (0..).take_while(|_| self.rng.below(3) == 0).count();
                    self.power_cut(again as u32);
                }
                4 => self.abort(),
                5 => self.hardware_reset(),
                // At rest, nothing is left half done.
                7..10 => {
                    while self.step() {}
                    self.device.check_consistency().expect("tables that agree");
                }
                // While zones are being reset: that goes on.
                6 if self.sent.iter().flatten().any(|sent| matches!(sent.op, Op::Reset(_))) => {
                    self.hardware_reset();
                }
                _ => {}
            }
        }
        while self.step() {}
        self.device.check_consistency().expect("tables that agree");
    }
}

#[test]
fn zones_keep_what_they_promise() {
    let (seeds, _) = chosen(1..151);
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    for seed in seeds {
        let mut run = Run::new(seed);
        run.run(3_000);
        let copied = run.device.stats().refreshed as u32;
        for (what, n) in run.counts.into_iter().chain([("copy", copied)]) {
            *counts.entry(what).or_default() += n;
        }
    }
    for what in ["write", "read", "reset", "finish", "flush", "cut", "abort", "hardware reset", "copy"] {
        assert!(counts.get(what).is_some_and(|n| *n > 10), "{what}: {counts:?}");
    }
}

/// A cut at each event, and others while the device recovers from it.
#[test]
fn zones_are_found_after_a_cut_at_any_event() {
    let (seeds, is_chosen) = chosen(200..208);
    let mut events = 0;
    for seed in seeds {
        for event in 0.. {
            let mut run = Run::new(seed);
            let is_there = run.run_to(event, 250);
            run.what = format!("seed {seed}, event {event}");
            for again in 0..3 {
                run.power_cut(again);
                run.run_to(1 + event % 5, 20);
            }
            while run.step() {}
            run.device.check_consistency().expect("tables that agree");
            if !is_there {
                events += event;
                break;
            }
        }
    }
    assert!(is_chosen || events > 1_000, "{events}");
}

/// Writes blocks of a unit, one command after the other.
fn written(bare: &mut Bare, lun: u8, lba: u64, blocks: u32) {
    let cdb = Cdb::Write { form: Form::Sixteen, lba, blocks, flags: 0 };
    let (reply, _) = bare.ask(lun, command(cdb, blocks * 4096), &[]);
    assert_eq!(response(&reply).status, Status::Good, "{cdb:?}");
}

/// Fills all zones.
fn fill(bare: &mut Bare, blocks: u32) {
    for zone in 0..12 {
        (0..blocks / 4).for_each(|i| written(bare, ZONED, u64::from(zone * blocks + i * 4), 4));
    }
}

/// Garbage of the other unit does not spread over superblocks that zones will need.
#[test]
fn zones_that_are_written_need_no_collection() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
    give_little_room(&mut config, 2);
    let (mut bare, mut rng) = (Bare::new(&config), Prng::new(3));
    for _ in 0..8_000 {
        written(&mut bare, 0, rng.below(200), 1);
    }
    let before = *bare.device.stats();
    fill(&mut bare, 64);
    let moved = bare.device.stats().since(&before).slices_moved;
    // What collection has begun, it may end: at most a superblock.
    assert!(before.slices_moved > 150 && moved <= 64, "{} and then {moved} blocks were moved", before.slices_moved);
    assert_eq!(bare.device.stats().no_space, 0);
}

/// Pages of a die that are programmed together are programmed one after the other.
#[test]
fn a_program_of_two_pages_takes_twice_the_time() {
    let took = |program_blocks| {
        let mut config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
        let zones = config.lus[1].zones.as_mut().expect("zones");
        (zones.program_blocks, zones.flush_blocks) = (program_blocks, program_blocks);
        let (timing, firmware, channels) = (config.flash, config.firmware, config.geometry.channels);
        let mut bare = Bare::new(&config);
        // The journal names the superblock first.
        written(&mut bare, ZONED, 0, 8);
        let flush = Cdb::SynchronizeCache { form: Form::Sixteen, lba: 0, blocks: 0, immed: false };
        assert_eq!(response(&bare.ask(ZONED, command(flush, 0), &[]).0).status, Status::Good);
        let begin = bare.now;
        written(&mut bare, ZONED, 8, 8);
        assert_eq!(response(&bare.ask(ZONED, command(flush, 0), &[]).0).status, Status::Good);
        (bare.now - begin, timing, firmware, channels)
    };
    let ((apart, timing, firmware, channels), (together, ..)) = (took(4), took(8));
    assert_eq!(channels, 2, "two programs have a channel each");
    // The firmware begins one operation instead of two.
    let more = timing.program.0 + 4 * timing.transfer_block.0 - firmware.flash_op.0;
    assert_eq!(together - apart, Ns(more));
}

/// A block whose program failed is not used again.
#[test]
fn programs_of_zones_that_fail_leave_bad_blocks() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
    config.ftl.faults.program_failures_ppm = 20_000;
    give_little_room(&mut config, 40);
    let mut bare = Bare::new(&config);
    for _ in 0..3 {
        fill(&mut bare, 64);
        let reset = Cdb::ManageZones { action: ZoneAction::Reset, lba: 0, count: 0, all: true };
        bare.device.check_consistency().expect("tables that agree");
        assert_eq!(response(&bare.ask(ZONED, command(reset, 0), &[]).0).status, Status::Good);
    }
    while bare.device.next_deadline() != Ns::NEVER {
        bare.device.advance(bare.device.next_deadline());
        while bare.device.poll_media().is_some() {}
    }
    let stats = *bare.device.stats();
    assert!(stats.program_failures > 5, "{}", stats.program_failures);
    assert_eq!(stats.bad_blocks, stats.program_failures, "each on a die and superblock of its own");
    bare.device.check_consistency().expect("tables that agree");
}

/// INQUIRY, capacity, pages and refusals of a zoned unit beside a conventional one.
#[test]
fn a_zoned_unit_says_what_it_is() {
    let mut config = zoned(ZoneLayout::PowerOfTwo, 256, ZoneRule::Zbc);
    let zones = config.lus[1].zones.as_mut().expect("zones");
    (zones.program_blocks, zones.flush_blocks) = (12, 12);
    let mut bare = Bare::new(&config);
    let mut ask = |lun, cdb| {
        let (reply, data) = bare.ask(lun, command(cdb, 4096), &[]);
        (response(&reply).sense, data)
    };
    let page = |vpd| Cdb::Inquiry { vpd: Some(vpd), alloc: 255 };
    assert_eq!(ask(ZONED, Cdb::Inquiry { vpd: None, alloc: 36 }).1[0], 0x14);
    assert_eq!(ask(0, Cdb::Inquiry { vpd: None, alloc: 36 }).1[0], 0x00);
    assert_eq!(ask(ZONED, page(0)).1[4..], [0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2, 0xB6]);
    assert_eq!(ask(0, page(0)).1[4..], [0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2]);
    let (_, limits) = ask(ZONED, page(0xB0));
    assert_eq!((&limits[12..16], &limits[20..32]), (&[0, 0, 0, 12][..], &[0; 12][..]), "a program; no UNMAP");
    assert_eq!(ask(ZONED, page(0xB2)).1[4..], [0; 4]);
    assert_eq!(ask(ZONED, page(0xB6)).1[16..20], [0, 0, 0, 4]);
    assert_eq!(ask(0, page(0xB6)).0, Some(Sense::INVALID_FIELD));
    let (_, capacity) = ask(ZONED, Cdb::ReadCapacity16 { alloc: 32 });
    assert_eq!((&capacity[..8], capacity[12], capacity[14]), (&[0, 0, 0, 0, 0, 0, 0x0B, 0xFF][..], 0x10, 0));
    let report = Cdb::ReportZones { start: 0, alloc: 4096, options: 0, partial: false };
    assert_eq!(ask(0, report), (Some(Sense::INVALID_OPCODE), vec![]));
    let (sense, zones) = ask(ZONED, report);
    assert_eq!((sense, zones.len(), &zones[..4]), (None, 64 * 13, &[0, 0, 3, 0][..]));
    let reset = Cdb::ManageZones { action: ZoneAction::Reset, lba: 0, count: 0, all: true };
    assert_eq!((ask(0, reset).0, ask(ZONED, reset).0), (Some(Sense::INVALID_OPCODE), None));
    let several = Cdb::ManageZones { action: ZoneAction::Open, lba: 0, count: 2, all: false };
    assert_eq!(ask(ZONED, several).0, Some(Sense::INVALID_FIELD));
    assert_eq!(ask(ZONED, Cdb::Unmap { list_bytes: 0 }).0, Some(Sense::INVALID_OPCODE));
    let beyond = 12 * 256;
    for (start, options, expected) in
        [(beyond, 0, Sense::LBA_OUT_OF_RANGE), (0, 0x08, Sense::INVALID_FIELD), (beyond, 0x08, Sense::LBA_OUT_OF_RANGE)]
    {
        let report = Cdb::ReportZones { start, alloc: 4096, options, partial: true };
        assert_eq!(ask(ZONED, report).0, Some(expected));
    }
}
