// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managed units under random traffic: the limits of memory and of loads in flight hold after every event, an entry
//! is used only if it was loaded and its block not written since, and no sub-region is lost however often limits
//! change.

use super::*;
use crate::hpb::{HpbLu, HpbRequest, Port, RegionState, SubRegionState, UnitSetup};
use crate::params::{HpbParams, ParamError};
use readpath_kit::Prng;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::HpbNotification;

/// 8 regions of two sub-regions of 16 entries, of which region 0 may be pinned.
const BLOCKS: u32 = 256;
const ENTRIES: u32 = 16;
/// A map: 16 entries of 8 bytes and 16 bits.
const MAP_BYTES: u64 = 16 * 8 + 2;
/// Loads allowed in flight, fewer than tags.
const LOADS: u32 = 3;

fn unit(policy: ManagedPolicy, max_active: u32, pinned: u32, memory_bytes: Option<u64>) -> Result<HpbLu, ParamError> {
    let geometry = HpbGeometry::new(8, 7, u64::from(BLOCKS)).unwrap();
    let setup = UnitSetup {
        geometry,
        max_active,
        pinned: 0..pinned,
        max_blocks: 4,
        single_blocks: 4,
        host_control: true,
        queue_depth: 31,
    };
    let params = HpbParams { inflight_map_req: LOADS, ..HpbParams::LINUX };
    let options = HpbOptions { policy: Some(policy), memory_bytes, params, ..HpbOptions::default() };
    let mut lu = HpbLu::new(&setup, options, Ns::ZERO)?;
    lu.present();
    Ok(lu)
}

fn tables(policy: ManagedPolicy) -> u64 {
    unit(policy, 4, 0, None).expect("a unit").memory().table_bytes
}

/// A port with a number of tags, and commands in flight.
struct Tags {
    free: u32,
    loads: Vec<SubRegion>,
    drops: Vec<u16>,
    /// Other commands in flight.
    busy: u32,
}

impl Port for Tags {
    fn has_tag(&self) -> bool {
        self.free > 0
    }

    fn in_flight(&self) -> u32 {
        self.loads.len() as u32 + self.busy
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        if self.free == 0 {
            return false;
        }
        self.free -= 1;
        match request {
            HpbRequest::Load { at, .. } => self.loads.push(at),
            HpbRequest::Drop { region } => self.drops.push(region),
        }
        true
    }

    fn writes_in_flight(&self, _: impl FnMut(u32, u32)) {}
}

struct Play {
    lu: HpbLu,
    tags: Tags,
    limit: u64,
    /// Content of each block, changed by writes.
    content: Vec<u64>,
    /// What the device hands out for each load in flight: its entries at the time of the command.
    handed_out: Vec<Vec<u8>>,
    /// Regions that the device believes to be active.
    active: Vec<bool>,
}

impl Play {
    fn new(policy: ManagedPolicy, pinned: u32, limit: u64) -> Self {
        let lu = unit(policy, 4, pinned, Some(limit)).expect("a unit");
        let tags = Tags { free: 4, loads: Vec::new(), drops: Vec::new(), busy: 0 };
        Play { lu, tags, limit, content: vec![0; BLOCKS as usize], handed_out: Vec::new(), active: vec![false; 8] }
    }

    fn used(&self) -> u64 {
        let m = self.lu.memory();
        m.table_bytes + m.map_bytes + m.bitmap_bytes
    }

    fn run(&mut self) {
        let (loads, drops) = (self.tags.loads.len(), self.tags.drops.len());
        self.lu.run_worker(Ns::ZERO, &mut self.tags);
        // Drops were sent before the loads that they make room for.
        self.tags.drops[drops..].iter().for_each(|&r| self.active[usize::from(r)] = false);
        for at in &self.tags.loads[loads..] {
            self.active[usize::from(at.region)] = true;
            let first = (at.region * 2 + at.index) as usize * ENTRIES as usize;
            let content = &self.content[first..first + ENTRIES as usize];
            self.handed_out.push(content.iter().flat_map(|c| c.to_ne_bytes()).collect());
        }
    }

    fn lose_commands(&mut self) {
        self.tags = Tags { free: 4, loads: Vec::new(), drops: Vec::new(), busy: 0 };
        self.handed_out.clear();
    }

    fn end_load(&mut self, i: usize, good: bool) {
        let at = self.tags.loads.swap_remove(i);
        self.active[usize::from(at.region)] = true;
        self.tags.free += 1;
        let bytes = self.handed_out.swap_remove(i);
        self.lu.loaded(at, good.then_some(&bytes));
    }

    fn check(&self) {
        assert!(self.used() <= self.limit, "{} bytes of {}", self.used(), self.limit);
        assert!(self.tags.loads.len() <= LOADS as usize, "{} loads", self.tags.loads.len());
        let active = (0..8).filter(|&r| self.lu.region_state(r) != RegionState::Inactive).count();
        assert!(active <= 4, "{active} regions");
        for region in 0..8 {
            let held =
                (0..2).any(|index| self.lu.sub_region_state(SubRegion { region, index }) != SubRegionState::Unused);
            assert_eq!(held, self.lu.region_state(region) != RegionState::Inactive, "region {region}");
        }
        let maps = self.lu.sub_region_states().iter().filter(|&&state| state != SubRegionState::Unused).count() as u64;
        assert_eq!(self.lu.memory().map_bytes, maps * 128);
    }
}

#[test]
fn no_event_exceeds_the_limit_or_brings_an_old_entry() {
    for (n, policy) in ManagedPolicy::ALL.into_iter().enumerate() {
        let tables = tables(policy);
        for seed in 0..20 {
            let mut rng = Prng::new(seed * 100 + n as u64);
            let pinned = (seed % 2) as u32;
            let least = tables + u64::from(pinned) * 2 * MAP_BYTES;
            let mut play = Play::new(policy, pinned, least + 3 * MAP_BYTES + 7);
            let (mut hits, mut version) = (0u32, 0);
            for _ in 0..4000 {
                let block = (rng.below(256) * rng.below(256) / 256) as u32;
                let blocks = (1 + rng.below(6) as u32).min(BLOCKS - block);
                match rng.below(100) {
                    0..50 => {
                        if let Some(entry) = play.lu.entry_for(Ns::ZERO, block, blocks) {
                            assert!(blocks <= 4);
                            let content = play.content[block as usize];
                            assert_eq!(u64::from_ne_bytes(entry.0), content, "{} block {block}", policy.name());
                            hits += 1;
                        }
                    }
                    50..62 => {
                        play.lu.write(block, blocks);
                        version += 1;
                        play.content[block as usize..(block + blocks) as usize].fill(version);
                    }
                    62..85 if !play.tags.loads.is_empty() => {
                        let i = rng.below(play.tags.loads.len() as u64) as usize;
                        play.end_load(i, rng.below(20) > 0);
                    }
                    85..90 if !play.tags.drops.is_empty() => {
                        play.tags.drops.pop();
                        play.tags.free += 1;
                    }
                    90..93 => {
                        let limit = least + rng.below(8 * MAP_BYTES);
                        play.lu.limit_memory(limit).expect("room for the tables");
                        play.limit = limit;
                    }
                    93 if rng.below(8) == 0 => {
                        play.lu.reset();
                        play.lose_commands();
                        play.check();
                        play.lu.restored(Ns::ZERO);
                    }
                    94 if rng.below(8) == 0 => {
                        // All earlier entries are invalid, and so are those being loaded.
                        version += 1;
                        play.content.fill(version);
                        play.lu.device_reset();
                        play.active.fill(false);
                    }
                    95 => {
                        play.lu.suspend();
                        play.run();
                        play.lu.resume(Ns::ZERO);
                    }
                    96 => {
                        let index = rng.below(16) as u16;
                        let at = SubRegion { region: index / 2, index: index % 2 };
                        let mut n = HpbNotification::default();
                        (n.operation, n.active_count, n.active[0]) = (HpbNotification::REGION_UPDATE, 1, at);
                        play.lu.notified(&n);
                    }
                    _ => {}
                }
                play.check();
                play.run();
                play.check();
            }
            // To all policies but `lru`, reads of so few sub-regions are correlated, and loads are rare.
            let seldom = policy != ManagedPolicy::Lru;
            assert!(hits > 50 || seldom, "{}, seed {seed}: {hits} entries were used", policy.name());
            // All commands end: no load is stuck, and none waits for a tag for ever.
            for _ in 0..200 {
                while !play.tags.loads.is_empty() {
                    play.end_load(0, true);
                }
                play.tags.free += std::mem::take(&mut play.tags.drops).len() as u32;
                play.run();
                play.check();
            }
            assert!(play.tags.loads.is_empty() && !play.lu.is_kicked(), "{}, seed {seed}", policy.name());
            assert_eq!(play.tags.free, 4);
            assert_eq!(play.lu.managed().0.abandoned.len(), 0, "loads whose ends are still expected");
            for region in 0..8 {
                let held = play.lu.region_state(region) != RegionState::Inactive;
                assert!(held || !play.active[usize::from(region)], "the drop of region {region} was not announced");
            }
        }
    }
}

#[test]
fn shrinking_drops_at_once_and_growing_loads_again() {
    let tables = tables(ManagedPolicy::Lru);
    let mut play = Play::new(ManagedPolicy::Lru, 0, tables + 4 * MAP_BYTES);
    let read_all = |play: &mut Play| {
        for s in [0, 2, 4, 6] {
            let hit = play.lu.entry_for(Ns::ZERO, s * ENTRIES, 1).is_some();
            play.run();
            while !play.tags.loads.is_empty() {
                play.end_load(0, true);
            }
            play.tags.free += std::mem::take(&mut play.tags.drops).len() as u32;
            play.check();
            assert!(!hit, "{s}");
        }
    };
    read_all(&mut play);
    assert_eq!(play.used(), tables + 4 * MAP_BYTES);
    // One byte less evicts one map, the least recently read.
    play.limit = tables + 4 * MAP_BYTES - 1;
    play.lu.limit_memory(play.limit).expect("possible");
    play.check();
    assert_eq!(play.used(), tables + 3 * MAP_BYTES);
    assert!(play.lu.entry_for(Ns::ZERO, 2 * ENTRIES, 1).is_some() && play.lu.counters().shrink_cnt == 1);
    // A load in flight is dropped as well, and its entries are not used.
    play.lu.limit_memory(tables).expect("possible");
    (play.limit, play.tags.free) = (tables + MAP_BYTES, 16);
    play.lu.limit_memory(play.limit).expect("possible");
    assert!(play.lu.entry_for(Ns::ZERO, 0, 1).is_none());
    play.run();
    assert_eq!((play.tags.loads.len(), play.used()), (1, tables + MAP_BYTES));
    play.limit = tables;
    play.lu.limit_memory(tables).expect("possible");
    play.check();
    play.end_load(0, true);
    play.check();
    assert!(play.lu.entry_for(Ns::ZERO, 0, 1).is_none());
    play.limit = tables + 4 * MAP_BYTES;
    play.lu.limit_memory(play.limit).expect("possible");
    read_all(&mut play);
    assert_eq!(play.used(), tables + 4 * MAP_BYTES);
}

#[test]
fn limits_that_are_not_possible_are_refused() {
    let refused = |result: Result<HpbLu, ParamError>| match result.err() {
        Some(ParamError::TooLittleMemory { bytes, least, .. }) => Some((bytes, least)),
        other => panic!("{other:?}"),
    };
    // A run with HPB must hold a map at its start. A later limit may take it away.
    let tables = tables(ManagedPolicy::Lru);
    let least = tables + MAP_BYTES;
    let mut lu = unit(ManagedPolicy::Lru, 4, 0, Some(least)).expect("room for a map");
    assert_eq!(lu.limit_memory(tables), Ok(()));
    assert_eq!(refused(unit(ManagedPolicy::Lru, 4, 0, Some(least - 1))), Some((least - 1, least)));
    let pinned = tables + 2 * MAP_BYTES;
    assert_eq!(refused(unit(ManagedPolicy::Lru, 4, 1, Some(pinned - 1))), Some((pinned - 1, pinned)));
    let mut lu = unit(ManagedPolicy::Lru, 4, 1, Some(pinned)).expect("room for what is pinned");
    let message = lu.limit_memory(5).expect_err("too little").to_string();
    assert_eq!(message, format!("memory of 5 bytes is too little for HPB: tables and pinned regions take {pinned}"));
    let setup = UnitSetup {
        geometry: HpbGeometry::new(8, 7, 256).unwrap(),
        max_active: 4,
        pinned: 0..0,
        max_blocks: 1,
        single_blocks: 1,
        host_control: false,
        queue_depth: 31,
    };
    let mut linux = HpbLu::new(&setup, HpbOptions::default(), Ns::ZERO).expect("a unit");
    assert_eq!(linux.limit_memory(1 << 30).err(), Some(ParamError::CannotShrink));
    // Linux's lists may have a limit from the start: regions of two maps.
    let tables = linux.memory().table_bytes;
    let with = |bytes| HpbLu::new(&setup, HpbOptions { memory_bytes: Some(bytes), ..HpbOptions::default() }, Ns::ZERO);
    let region = tables + 2 * MAP_BYTES;
    for (bytes, regions) in [(region, 1), (region + 2 * MAP_BYTES - 1, 1), (region + 2 * MAP_BYTES, 2), (1 << 30, 4)] {
        assert_eq!(with(bytes).expect("a unit").linux().0.capacity(), regions, "{bytes} bytes");
    }
    assert_eq!(refused(with(region - 1)), Some((region - 1, region)));
}

/// A sub-region that leaves the window of reads is loaded when the device has been idle for a while, or at once if it
/// was missed more often than there are commands to delay; a read of recently written blocks is no miss.
#[test]
fn loads_wait_for_an_idle_device() {
    let begin = |busy: u32| {
        let geometry = HpbGeometry::new(8, 7, 4096).unwrap();
        let setup = UnitSetup {
            geometry,
            max_active: 64,
            pinned: 0..0,
            max_blocks: 4,
            single_blocks: 4,
            host_control: true,
            queue_depth: 31,
        };
        let options = HpbOptions { policy: Some(ManagedPolicy::Exclusive), ..HpbOptions::default() };
        let mut lu = HpbLu::new(&setup, options, Ns::ZERO).expect("a unit");
        lu.present();
        let mut tags = Tags { free: 64, loads: Vec::new(), drops: Vec::new(), busy };
        lu.run_worker(Ns::ZERO, &mut tags);
        (lu, tags)
    };
    let read = |lu: &mut HpbLu, tags: &mut Tags, unit: u32, now: Ns| {
        assert!(lu.entry_for(now, unit * ENTRIES, 1).is_none(), "nothing is held");
        lu.block_ended(now);
        lu.run_worker(now, tags);
    };
    let loaded =
        |tags: &Tags| tags.loads.iter().map(|at| u32::from(at.region) * 2 + u32::from(at.index)).collect::<Vec<_>>();
    let (at, quiet) = (Ns::from_ms(5), HpbOptions::DEFAULT.exclusive.quiet);
    // Sixteen others push the first two out.
    let (mut lu, mut tags) = begin(0);
    (0..18).for_each(|unit| read(&mut lu, &mut tags, unit, at));
    assert_eq!((loaded(&tags), lu.next_timer()), (vec![], at + quiet));
    // A read in between postpones it.
    let later = at + Ns(1000);
    read(&mut lu, &mut tags, 17, later);
    lu.advance(at + quiet);
    lu.run_worker(at + quiet, &mut tags);
    assert_eq!((loaded(&tags), lu.next_timer()), (vec![], later + quiet));
    lu.advance(later + quiet);
    lu.run_worker(later + quiet, &mut tags);
    assert_eq!(loaded(&tags), [0], "one at a time");
    // With other commands in flight nothing is loaded after one or two misses, but after three.
    let (mut lu, mut tags) = begin(2);
    for round in 1..=3 {
        (0..40).for_each(|unit| read(&mut lu, &mut tags, unit, at));
        assert_eq!(loaded(&tags).is_empty(), round < 3, "round {round}");
    }
    // Blocks that were just written need no map.
    let (mut lu, mut tags) = begin(0);
    for _ in 0..3 {
        (0..40).for_each(|unit| lu.write(unit * ENTRIES, 1));
        (0..40).for_each(|unit| read(&mut lu, &mut tags, unit, at));
    }
    assert_eq!((loaded(&tags), lu.next_timer()), (vec![], Ns::NEVER));
}

/// What the device advises matters to a policy that heeds it, and only for what is held and out of date.
#[test]
fn advice_is_heeded_by_policies_that_do() {
    for (policy, heeds) in [(ManagedPolicy::Lru, true), (ManagedPolicy::Exclusive, false)] {
        let mut play = Play::new(policy, 1, tables(policy) + 3 * MAP_BYTES);
        play.run();
        (0..2).for_each(|_| play.end_load(0, true));
        let mut advised = HpbNotification { operation: HpbNotification::REGION_UPDATE, ..HpbNotification::default() };
        (advised.active_count, advised.active[0]) = (1, SubRegion { region: 0, index: 1 });
        for is_dirty in [false, true] {
            if is_dirty {
                play.lu.write(ENTRIES, 1);
            }
            play.lu.notified(&advised);
            play.run();
            assert_eq!(play.tags.loads.len(), usize::from(heeds && is_dirty), "{}", policy.name());
        }
    }
}

/// The cost of a load is by how much it delays HPB READs that were in flight with it. Reads of several blocks, which
/// take longer anyway, say nothing of it.
#[test]
fn times_of_single_reads_say_what_a_load_costs() {
    let setup = UnitSetup {
        geometry: HpbGeometry::new(8, 7, 4096).unwrap(),
        max_active: 64,
        pinned: 0..0,
        max_blocks: 4,
        single_blocks: 4,
        host_control: true,
        queue_depth: 31,
    };
    let params = HpbParams { inflight_map_req: 30, ..HpbParams::LINUX };
    let options = HpbOptions { policy: Some(ManagedPolicy::CostAware), params, ..HpbOptions::default() };
    let mut lu = HpbLu::new(&setup, options, Ns::ZERO).expect("a unit");
    lu.present();
    for i in 0..400 {
        // Each is the first read of its sub-region for a while.
        let block = (100 + i % 20) * ENTRIES;
        let now = Ns(1_000_000 * u64::from(i));
        let at = SubRegion { region: 0, index: 0 };
        let timed = |blocks, with_entry| TimedWhat::Read { block, blocks, route: Route::Other, with_entry };
        lu.entry_for(now, block, 1);
        lu.timed(now, timed(1, false), Ns(200), 0);
        lu.timed(now, timed(1, true), Ns(100), 0);
        lu.timed(now, timed(4, true), Ns(900), 0);
        lu.timed(now, TimedWhat::Load(at), Ns(1000), 0);
        // It was sent before the load ended.
        lu.timed(now + Ns(50), timed(1, true), Ns(350), 0);
    }
    // A load delays one HPB READ by 250 ns, and an entry saves 100 ns: the third miss is worth a load.
    let mut tags = Tags { free: 200, loads: Vec::new(), drops: Vec::new(), busy: 0 };
    let at = SubRegion { region: 0, index: 0 };
    let rounds = (1..100).find(|_| {
        (0..20).for_each(|unit| _ = lu.entry_for(Ns::from_secs(1), unit * ENTRIES, 1));
        lu.run_worker(Ns::from_secs(1), &mut tags);
        tags.loads.contains(&at)
    });
    assert_eq!(rounds, Some(3));
}
