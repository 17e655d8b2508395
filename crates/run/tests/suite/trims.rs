// SPDX-License-Identifier: MIT OR Apache-2.0
//! More trims than anything else: their journal continues from one superblock to the next, their tables are bounded,
//! and power cuts among them lose nothing that was flushed and take no longer to recover from than the configuration
//! says.

use readpath_device::{DeviceConfig, Layout};
use readpath_flash::{Geometry, Lean};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{Cdb, Command, RequestBody};
use readpath_stack::{Stack, Tags, Typed};
use readpath_testkit::{Bare, DELAYS, assert_bounded, filled, give_little_room, next_event, one, settle};

type Trimmed = Stack<Lean, Tags, (), Typed>;

/// Programs are so slow that more trims come during one than a part of the journal holds.
fn device(map_page_bytes: u32, blocks: u32) -> DeviceConfig {
    let mut config = readpath_testkit::device(blocks);
    config.geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes: 1,
        blocks_per_plane: 0,
        pages_per_block: 24,
        page_bytes: 16384,
    };
    config.flash.program = Ns::from_ms(20);
    config.firmware.control = Ns(1_000);
    config.map_page_bytes = map_page_bytes;
    config.map_cache_bytes = map_page_bytes;
    config.write_buffer_blocks = 256;
    config.ftl.map_changes = 128;
    config.ftl.map_write_pages = 1;
    config.ftl.checkpoint_after_units = 32;
    give_little_room(&mut config, 6);
    config
}

/// Keeps 32 requests in flight: of a hundred, so many are trims, hardly any flushes and the rest writes of one block.
struct Load {
    rng: Prng,
    trims: u64,
    /// Blocks of the longest trim.
    longest: u64,
    outstanding: u32,
    left: u32,
}

impl Load {
    fn new(seed: u64, trims: u64, longest: u64, requests: u32) -> Self {
        Load { rng: Prng::stream(seed, "load", 0), trims, longest, outstanding: 0, left: requests }
    }

    /// Advances to the next event; false when nothing is left to do.
    fn step(&mut self, stack: &mut Trimmed, now: &mut Ns) -> bool {
        let blocks = stack.device.config().lus[0].blocks;
        while self.outstanding < 32 && self.left > 0 {
            let op = match self.rng.below(1000) {
                0 => BlockOp::Flush,
                n if n < self.trims * 10 => BlockOp::Discard,
                _ => BlockOp::Write,
            };
            let longest = if op == BlockOp::Discard { self.longest } else { 1 };
            let n = if op == BlockOp::Flush { 0 } else { 1 + self.rng.below(longest) as u32 };
            let block = if n == 0 { 0 } else { self.rng.below(u64::from(blocks - n + 1)) as u32 };
            stack.submit(*now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks: n });
            self.outstanding += 1;
            self.left -= 1;
        }
        if stack.next_deadline() == Ns::NEVER {
            assert_eq!((self.outstanding, self.left), (0, 0), "every request ends: {:?}", stack.device.stats());
            return false;
        }
        self.outstanding -= next_event(stack, now);
        true
    }
}

fn start(config: &DeviceConfig) -> (Trimmed, Ns) {
    let (mut stack, mut now) = filled::<Lean, Tags, Typed>(config, None, config.lus[0].blocks, Layout::Random, 5);
    settle(&mut stack, &mut now);
    (stack, now)
}

fn read_all(stack: &mut Trimmed, now: &mut Ns) {
    let blocks = stack.device.config().lus[0].blocks;
    for block in (0..blocks).step_by(50) {
        one(stack, now, BlockOp::Read, block, (blocks - block).min(50));
    }
    assert_eq!(stack.payload.wrong, 0, "{:?}", stack.payload.first_wrong);
}

#[test]
fn the_journal_goes_on_under_trims() {
    for map_page_bytes in [4096, 16384] {
        for trims in [100, 60] {
            let config = device(map_page_bytes, 3000);
            let (mut stack, mut now) = start(&config);
            let requests = 8 * config.geometry.units_per_superblock() * 16384 / 16;
            let mut load = Load::new(3, trims, 1, requests);
            while load.step(&mut stack, &mut now) {}
            let s = *stack.device.stats();
            // Each part takes a unit, or a quarter of one.
            let units = s.journal_writes as u32 * map_page_bytes / 16384;
            assert!(units > 4 * config.geometry.units_per_superblock(), "{units} units of journal: {s:?}");
            stack.device.check_consistency().expect("all counts are right");
            read_all(&mut stack, &mut now);
        }
    }
}

#[test]
fn cuts_among_trims() {
    for seed in 0..12 {
        let config = device(if seed % 2 == 0 { 4096 } else { 16384 }, 3000);
        let (mut stack, mut now) = start(&config);
        let rng = &mut Prng::stream(seed, "cuts", 0);
        for cut in 0..20 {
            let trims = 50 + rng.below(51);
            let longest = [1, 8, 3000][rng.below(3) as usize];
            let mut load = Load::new(seed << 16 | cut, trims, longest, u32::MAX);
            for _ in 0..rng.below(30_000) {
                load.step(&mut stack, &mut now);
            }
            let on = now + DELAYS.to_link;
            let recovery = stack.power_cycle(now, on);
            assert_bounded(&config, &recovery, on, &format!("seed {seed}, cut {cut}"));
            now = stack.start(recovery.ready_at).expect("the host finds the device again");
            stack.device.check_consistency().unwrap_or_else(|e| panic!("seed {seed}, cut {cut}: {e}"));
            read_all(&mut stack, &mut now);
        }
    }
}

/// Far more blocks are trimmed, one by one, than the table of changes has places.
#[test]
fn trims_of_a_full_device_are_bounded() {
    let config = device(4096, 40_000);
    for events in [1_000, 5_000, 20_000, 60_000, 150_000] {
        let (mut stack, mut now) = start(&config);
        let mut load = Load::new(events, 100, 1, u32::MAX);
        for _ in 0..events {
            load.step(&mut stack, &mut now);
        }
        let on = now + DELAYS.to_link;
        let recovery = stack.power_cycle(now, on);
        assert_bounded(&config, &recovery, on, &format!("after {events} events"));
        now = stack.start(recovery.ready_at).expect("the host finds the device again");
        stack.device.check_consistency().unwrap_or_else(|e| panic!("after {events} events: {e}"));
        read_all(&mut stack, &mut now);
    }
}

/// TRIM does not look into the map, since the model charges no time for that: unmapped blocks cost what others do, map
/// pages written and read, and places of the table of changes after a power cut. What SRAM knows costs nothing: that a
/// block was trimmed before, or has no map page.
#[test]
fn trims_do_not_know_what_is_mapped() {
    const ENTRIES: u32 = 1024;
    let costs = |first: u32, times: u32| {
        let mut b = Bare::new(&device(4096, 32 * ENTRIES));
        // The first half of each map page is mapped; there are no others.
        let mapped = (0..16).map(|page| (0, page * ENTRIES, ENTRIES / 2));
        b.device.precondition(mapped, Layout::Sequential, 1, |_, _| ()).expect("room");
        for _ in 0..times {
            for page in 0..16 {
                (0..32).for_each(|i| unmap(&mut b, page * ENTRIES + first + 16 * i, 8));
            }
        }
        let s = *b.device.stats();
        b.device.power_cut(b.now);
        let recovery = b.device.recover(b.now);
        b.device.check_consistency().expect("all counts are right");
        (s.map_writes, s.write_back_loads, recovery.changes)
    };
    let mapped = costs(0, 1);
    assert!(mapped.0 > 10 && mapped.1 > 10 && mapped.2 > 10, "{mapped:?}");
    assert_eq!(costs(ENTRIES / 2, 1), mapped);
    assert_eq!(costs(16 * ENTRIES, 3), (0, 0, 0), "there is no map page");
}

#[test]
fn a_block_that_is_known_to_be_trimmed_takes_no_second_place() {
    let mut b = Bare::new(&device(4096, 4_096));
    b.device.precondition([(0, 0, 100)], Layout::Sequential, 1, |_, _| ()).expect("room");
    for _ in 0..1_000 {
        unmap(&mut b, 0, 500);
    }
    assert_eq!(b.device.stats().map_writes, 0);
}

fn unmap(b: &mut Bare, first: u32, blocks: u32) {
    let mut list = Vec::new();
    encode_unmap(&[(u64::from(first), blocks)], &mut list);
    let cdb = Cdb::Unmap { list_bytes: list.len() as u16 };
    b.ask(0, RequestBody::Command(Command { expected_bytes: list.len() as u32, cdb }), &list);
}
