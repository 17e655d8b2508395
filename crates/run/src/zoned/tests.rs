// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mapper on a naive device, which refuses what is not at a write pointer and forgets what was not flushed.

use super::log::{Log, Run, Work};
use super::mapped::{Command, Mapped};
use readpath_host::{BlockOp, BlockRequest, ZoneMapper, ZoneMapping};
use readpath_kit::{Ns, Prng};
use readpath_testkit::writes::closed_form;
use readpath_workload::ZonedUnit;

/// What a place holds: a block, which version of it, and whether a flush has covered that.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Slice {
    block: u32,
    version: u64,
    durable: bool,
}

struct Sent {
    command: Command,
    request: BlockRequest,
    /// The least version of each block that a read may return.
    floor: Vec<(u32, u64)>,
}

struct World {
    mapped: Mapped,
    unit: ZonedUnit,
    zones: Vec<Vec<Slice>>,
    /// Commands in the order in which they were sent.
    sent: Vec<Sent>,
    /// Newest version that was acknowledged; 0 if none, or discarded.
    newest: Vec<u64>,
    /// Version of the write in flight, and of the last discard.
    writing: Vec<u64>,
    discarded: Vec<u64>,
    /// Requests in flight: first block, blocks, whether it writes.
    requests: Vec<Option<(u32, u32, bool)>>,
    fetched: Vec<(u32, Vec<Slice>)>,
    version: u64,
    resets: u32,
    checked: u64,
}

const ZONES: u32 = 16;

impl World {
    fn new(unit: ZonedUnit, mapper: ZoneMapper) -> World {
        let logical = mapper.logical_blocks(ZONES, unit.capacity) as usize;
        World {
            mapped: Mapped::new(0, Log::new(unit, ZONES, mapper)),
            unit,
            zones: vec![Vec::new(); ZONES as usize],
            sent: Vec::new(),
            newest: vec![0; logical],
            writing: vec![0; logical],
            discarded: vec![0; logical],
            requests: Vec::new(),
            fetched: Vec::new(),
            version: 0,
            resets: 0,
            checked: 0,
        }
    }

    fn slice(&self, block: u32) -> Slice {
        self.zones[(block / self.unit.stride) as usize][(block % self.unit.stride) as usize]
    }

    fn submit(&mut self, op: BlockOp, block: u32, blocks: u32) {
        let range = block as usize..(block + blocks) as usize;
        self.version += 1;
        match op {
            BlockOp::Write | BlockOp::WriteFua => self.writing[range.clone()].fill(self.version),
            BlockOp::Discard => {
                self.newest[range.clone()].fill(0);
                self.discarded[range.clone()].fill(self.version);
            }
            _ => {}
        }
        let free = self.requests.iter().position(Option::is_none).unwrap_or(self.requests.len());
        self.requests.resize(self.requests.len().max(free + 1), None);
        self.requests[free] = Some((block, blocks, matches!(op, BlockOp::Write | BlockOp::WriteFua)));
        self.mapped.submit(Ns(self.version), &BlockRequest { cookie: free as u32, lun: 0, op, block, blocks });
        let floor: Vec<(u32, u64)> = range.map(|at| (at as u32, self.newest[at])).collect();
        let reads = self.take(&floor);
        if op == BlockOp::Read {
            let written = floor.iter().filter(|(_, newest)| *newest > 0).count() as u32;
            assert!(reads >= written, "{written} of the blocks were written, and {reads} are read");
        }
    }

    /// Takes what the mapper sends; returns the blocks that are read for a request.
    fn take(&mut self, floor: &[(u32, u64)]) -> u32 {
        let mut reads = 0;
        while let Some((command, request)) = self.mapped.next() {
            let floor = if matches!(command, Command::Read { .. }) { floor.to_vec() } else { Vec::new() };
            reads += if floor.is_empty() { 0 } else { request.blocks };
            self.sent.push(Sent { command, request, floor });
        }
        reads
    }

    /// Executes one of the commands in flight: of each zone, those that move its pointer in their order.
    fn step(&mut self, rng: &mut Prng) -> bool {
        if self.sent.is_empty() {
            return false;
        }
        let mut at = rng.below(self.sent.len() as u64) as usize;
        let stride = self.unit.stride;
        let zone = |sent: &Sent| sent.request.op.moves_pointer().then_some(sent.request.block / stride);
        if let Some(of) = zone(&self.sent[at]) {
            at = self.sent.iter().position(|sent| zone(sent) == Some(of)).expect("at least this one");
        }
        let Sent { command, request, floor } = self.sent.remove(at);
        let BlockRequest { block, blocks, .. } = request;
        let number = (block / stride) as usize;
        match command {
            Command::Read { .. } => {
                for at in block..block + blocks {
                    let found = self.slice(at);
                    let least =
                        floor.iter().find(|(block, _)| *block == found.block).expect("a block of the request").1;
                    assert!(found.version >= least, "{found:?} is read, but {least} was acknowledged before");
                    self.checked += 1;
                }
            }
            Command::Fetch(_) => {
                let found = (block..block + blocks).map(|at| self.slice(at)).collect();
                self.fetched.push((block, found));
            }
            Command::Write { first, .. } => {
                let new = (first..first + blocks).map(|block| Slice {
                    block,
                    version: self.writing[block as usize],
                    durable: request.op == BlockOp::WriteFua,
                });
                let new: Vec<Slice> = new.collect();
                self.append(block, new);
            }
            Command::Store { from, .. } => {
                let from = self.mapped.log.address(from);
                let (start, found) = self
                    .fetched
                    .iter()
                    .rfind(|(start, found)| (*start..start + found.len() as u32).contains(&from))
                    .expect("it was fetched");
                let offset = (from - start) as usize;
                let copies =
                    found[offset..offset + blocks as usize].iter().map(|slice| Slice { durable: false, ..*slice });
                let copies = copies.collect();
                self.append(block, copies);
            }
            Command::Flush { .. } | Command::Sync => {
                self.zones.iter_mut().flatten().for_each(|slice| slice.durable = true);
            }
            Command::Reset(_) => {
                assert_eq!((block % stride, blocks), (0, self.unit.capacity));
                let old = std::mem::take(&mut self.zones[number]);
                for gone in old.iter().filter(|slice| slice.durable) {
                    let stays =
                        |slice: &Slice| slice.block == gone.block && slice.version >= gone.version && slice.durable;
                    let is_kept = self.zones.iter().flatten().any(stays);
                    let is_discarded = self.discarded[gone.block as usize] > gone.version;
                    assert!(is_kept || is_discarded, "{gone:?} is reset, and what is newer is not in flash");
                }
                self.resets += 1;
            }
        }
        let ended = self.mapped.ended(command);
        self.end(ended);
        self.take(&[]);
        true
    }

    fn append(&mut self, block: u32, slices: Vec<Slice>) {
        let (zone, offset) = ((block / self.unit.stride) as usize, block % self.unit.stride);
        assert_eq!(self.zones[zone].len() as u32, offset, "zone {zone}: not at the write pointer");
        self.zones[zone].extend(slices);
        assert!(self.zones[zone].len() as u32 <= self.unit.capacity, "zone {zone}: beyond the end");
        let open = self.zones.iter().filter(|zone| (1..self.unit.capacity as usize).contains(&zone.len())).count();
        assert!(open <= ZoneMapper::LOGS as usize, "{open} zones are open");
    }

    fn end(&mut self, cookie: Option<u32>) {
        let Some((first, blocks, writes)) = cookie.and_then(|cookie| self.requests[cookie as usize].take()) else {
            return;
        };
        for block in first as usize..(first + blocks) as usize {
            if writes {
                self.newest[block] = std::mem::take(&mut self.writing[block]);
            }
        }
    }

    fn late(&mut self) {
        while let Some(cookie) = self.mapped.late(Ns::NEVER) {
            self.end(Some(cookie));
        }
    }
}

/// Random writes, reads, discards and flushes on nearly full units: no read returns old data, no command is refused,
/// no zone is reset whose data is not elsewhere, and nothing gets stuck.
#[test]
fn a_mapper_loses_nothing() {
    let (mut resets, mut moved, mut checked) = (0, 0, 0);
    for seed in 0..150 {
        let mut rng = Prng::new(seed);
        let capacity = [8, 12, 32][rng.below(3) as usize];
        let unit = ZonedUnit { stride: 32, capacity, most_open: 3 };
        let (spare_percent, keep_free) = (rng.below(50) as u8, 2 + rng.below(2) as u16);
        let mut world = World::new(unit, ZoneMapper { mapper: ZoneMapping::Log, spare_percent, keep_free });
        let logical = world.newest.len() as u64;
        let hot = 1 + rng.below(logical);
        for _ in 0..3_000 {
            let range = if rng.below(4) > 0 { hot } else { logical };
            let block = rng.below(range) as u32;
            let blocks = (1 + rng.below(20) as u32).min(logical as u32 - block);
            let is_idle = world.writing[block as usize..(block + blocks) as usize].iter().all(|version| *version == 0);
            match rng.below(12) {
                0..5 if is_idle && world.requests.iter().flatten().count() < 12 => {
                    let op = if rng.below(4) == 0 { BlockOp::WriteFua } else { BlockOp::Write };
                    world.submit(op, block, blocks);
                }
                5..7 => world.submit(BlockOp::Read, block, blocks),
                7 if is_idle && rng.below(8) == 0 => world.submit(BlockOp::Discard, block, blocks),
                8 if rng.below(8) == 0 => world.submit(BlockOp::Flush, 0, 0),
                _ => {
                    world.step(&mut rng);
                }
            }
            world.late();
        }
        while world.step(&mut rng) {
            world.late();
        }
        assert_eq!(world.requests.iter().flatten().count(), 0, "seed {seed}: requests are stuck");
        // All that is left, exactly.
        for block in 0..logical as u32 {
            world.submit(BlockOp::Read, block, 1);
            let expected = world.newest[block as usize];
            match world.sent.last() {
                None => assert_eq!(expected, 0, "seed {seed}: block {block} is gone"),
                Some(sent) => {
                    let found = world.slice(sent.request.block);
                    assert_eq!((found.block, found.version), (block, expected), "seed {seed}");
                }
            }
            while world.step(&mut rng) {}
            world.late();
        }
        resets += world.resets;
        moved += world.mapped.log.counts().moved;
        checked += world.checked;
    }
    assert!(resets > 5_000 && moved > 30_000 && checked > 100_000, "{resets}, {moved}, {checked}");
}

/// What was there before lies where the device has it.
#[test]
fn blocks_from_before_lie_in_a_row() {
    let unit = ZonedUnit { stride: 32, capacity: 24, most_open: 3 };
    let mapper = ZoneMapper { mapper: ZoneMapping::Log, spare_percent: 10, keep_free: 2 };
    let mut log = Log::new(unit, ZONES, mapper);
    log.preset(100, 30);
    log.preset(10, 5);
    let mut runs = Vec::new();
    log.read(100, 30, &mut runs);
    let places: Vec<(u32, u32)> = runs.iter().map(|run| (log.address(run.place), run.blocks)).collect();
    assert_eq!(places, [(0, 24), (32, 6)]);
    log.read(8, 10, &mut runs);
    let places: Vec<(u32, u32)> = runs.iter().map(|run| (log.address(run.place), run.blocks)).collect();
    assert_eq!((places, log.counts().written), (vec![(38, 5)], 0));
}

/// In random order each of them lies somewhere else.
#[test]
fn blocks_from_before_may_lie_in_random_order() {
    let unit = ZonedUnit { stride: 32, capacity: 24, most_open: 3 };
    let mut log = Log::new(unit, ZONES, ZoneMapper { mapper: ZoneMapping::Log, spare_percent: 10, keep_free: 2 });
    log.preset_at_random(10, 48, 7);
    let mut runs = Vec::new();
    log.read(0, 100, &mut runs);
    assert!(runs.len() > 40, "{runs:?}");
    let mut places: Vec<u32> = runs.iter().flat_map(|run| run.place..run.place + run.blocks).collect();
    places.sort_unstable();
    assert_eq!(places, (0..48).collect::<Vec<u32>>());
}

/// Writes blocks one at a time to a full mapper, each command ending at once, until it has settled, and then as many
/// again. Returns its write amplification.
fn amplification(spare_percent: u8, keep_free: u16, mut draw: impl FnMut(u32) -> u32) -> f64 {
    const CAPACITY: u32 = 512;
    const MANY: u32 = 256;
    let mapper = ZoneMapper { mapper: ZoneMapping::Log, spare_percent, keep_free };
    let logical = mapper.logical_blocks(MANY, CAPACITY);
    let mut log = Log::new(ZonedUnit { stride: CAPACITY, capacity: CAPACITY, most_open: 6 }, MANY, mapper);
    log.preset(0, logical);
    let work = |log: &mut Log| {
        while let Some(work) = log.work() {
            match work {
                Work::Fetch(run) => copy(log, run),
                Work::Sync => log.sync_ended(),
                Work::Reset(zone) => log.reset_ended(zone),
            }
        }
    };
    let mut before = log.counts();
    for i in 0..4 * logical {
        if i == 2 * logical {
            before = log.counts();
        }
        let block = draw(logical);
        let run = log.room(log.heat(block), 1).expect("cleaning keeps up");
        log.written(block, run);
        work(&mut log);
    }
    let counts = log.counts();
    1.0 + (counts.moved - before.moved) as f64 / (counts.written - before.written) as f64
}

/// Under uniform writes cleaning costs what the published formula says, with the zones that are neither free nor half
/// written. Where some blocks are rewritten more often, it costs less.
#[test]
fn cleaning_costs_what_the_formula_says() {
    for (percent, keep_free) in [(10, 2), (20, 2), (20, 12), (40, 2)] {
        let mut rng = Prng::new(7);
        let found = amplification(percent, keep_free, |logical| rng.below(u64::from(logical)) as u32);
        let mapper = ZoneMapper { mapper: ZoneMapping::Log, spare_percent: percent, keep_free };
        let used = 256.0 - f64::from(keep_free) - 1.5;
        let formula = closed_form(used / f64::from(256 - mapper.spare_zones(256)));
        println!("{percent} % spare, {keep_free} free: {found:.3}, formula {formula:.3}");
        assert!((found / formula - 1.0).abs() < 0.03, "{percent} %, {keep_free} free: {found}, formula {formula}");
    }
    let mut rng = Prng::new(7);
    let uniform = amplification(20, 2, |logical| rng.below(u64::from(logical)) as u32);
    let skewed = amplification(20, 2, |logical| {
        let of = if rng.below(10) == 0 { logical } else { logical / 10 };
        rng.below(u64::from(of)) as u32
    });
    println!("nine in ten writes to a tenth of the blocks: {skewed:.3} instead of {uniform:.3}");
    assert!(skewed < 0.75 * uniform, "{skewed} of {uniform}");
}

/// Ends a copy: the blocks that were fetched are written to the end of the log of moved blocks.
fn copy(log: &mut Log, run: Run) {
    let mut rest = run;
    while rest.blocks > 0 {
        let to = log.store(rest).expect("a free zone is kept");
        log.stored(rest.place, to);
        rest = Run { place: rest.place + to.blocks, blocks: rest.blocks - to.blocks };
    }
    log.copied(run.place);
}

/// When the rest of a victim is discarded while its first blocks are copied, the next victim follows.
#[test]
fn cleaning_goes_on_when_nothing_is_left_of_a_victim() {
    const CAPACITY: u32 = 64;
    let unit = ZonedUnit { stride: CAPACITY, capacity: CAPACITY, most_open: 3 };
    let mut log = Log::new(unit, ZONES, ZoneMapper { mapper: ZoneMapping::Log, spare_percent: 0, keep_free: 8 });
    let (logical, mut rng) = (4 * CAPACITY, Prng::new(1));
    log.preset(0, logical);
    let until_fetch = |log: &mut Log| loop {
        match log.work() {
            Some(Work::Fetch(run)) => return Some(run),
            Some(Work::Sync) => log.sync_ended(),
            Some(Work::Reset(zone)) => log.reset_ended(zone),
            None => return None,
        }
    };
    let first = loop {
        let block = rng.below(logical.into()) as u32;
        let run = log.room(log.heat(block), 1).expect("room");
        log.written(block, run);
        if let Some(run) = until_fetch(&mut log) {
            break run;
        }
    };
    let mut fetched = vec![first];
    fetched.extend(std::iter::from_fn(|| until_fetch(&mut log)));
    let mut left = 0;
    for block in 0..logical {
        let mut runs = Vec::new();
        log.read(block, 1, &mut runs);
        let Some(&Run { place, .. }) = runs.first() else { continue };
        log.used(place);
        if place / CAPACITY == first.place / CAPACITY
            && !fetched.iter().any(|run| (run.place..run.place + run.blocks).contains(&place))
        {
            log.trim(block, 1);
            left += 1;
        }
    }
    fetched.into_iter().for_each(|run| copy(&mut log, run));
    assert!(left > 0 && until_fetch(&mut log).is_some(), "{left} blocks were left, and seven zones are free");
}
