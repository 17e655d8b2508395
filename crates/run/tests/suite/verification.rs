// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device's verification of HPB entries is good for, and what it costs. The check of data that all other tests
//! rely on is shown to be able to fail: without verification a forged entry, or a host that forgets which entries it
//! made stale, returns wrong data; with verification nothing does.

use readpath_device::{DeviceConfig, Layout, SramTable, Verification};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HpbOptions, SubRegionState};
use readpath_kit::{Ns, Prng};
use readpath_proto::typed::{Cdb, HpbEntry, Reply, Request, RequestBody, SubRegion};
use readpath_run::Runner;
use readpath_stack::{Stack, Tags, Typed, Wire};
use readpath_testkit::{DELAYS, Meddled, Meddler, host, job, one, run, settle, step};
use readpath_workload::{IoKind, Kinds, Offsets, Stream, StreamSpec};

const BLOCKS: u32 = 2048;

fn device(verification: Verification) -> DeviceConfig {
    let mut config = readpath_testkit::device(BLOCKS);
    config.hpb.as_mut().expect("it has HPB").verification = verification;
    config
}

fn stack<W: Wire>(config: &DeviceConfig, options: HpbOptions, wire: W) -> Stack<Lean, Tags, (), W> {
    let mut stack =
        Stack::new(config, host(Some(options)), DELAYS, Tags::default(), (), wire).expect("a possible device");
    stack.precondition(0, 0, BLOCKS, Layout::Random, 3).expect("room");
    stack
}

/// Reads and writes single blocks all over the unit with sixteen requests at once.
fn mix<W: Wire>(stack: &mut Stack<Lean, Tags, (), W>, read_percent: u8) {
    let now = stack.start(Ns::ZERO).expect("host and device find each other");
    let mut spec = StreamSpec::plain(IoKind::Read, 0, BLOCKS, 1, Offsets::Uniform);
    spec.kinds = Kinds::Mix(read_percent);
    let stream = Stream::new(&spec, 5).expect("a possible stream");
    run(stack, &mut Runner::new(now), vec![job(stream, 16, 40_000)]);
}

/// Changes the address, and every other time the tag as well.
struct Forger(Prng);

impl Meddler for Forger {
    fn request(&mut self, request: &mut Request) {
        let RequestBody::Command(command) = &mut request.body else { return };
        if let Cdb::HpbRead { entry: HpbEntry(bytes), .. } = &mut command.cdb {
            bytes[2] ^= self.0.below(16) as u8;
            bytes[3] ^= 1 + self.0.below(255) as u8;
            if self.0.below(2) == 0 {
                bytes[4..].copy_from_slice(&(self.0.next_u64() as u32).to_be_bytes());
            }
        }
    }

    fn reply(&mut self, _: &mut Reply) {}
}

#[test]
fn forged_entries_return_wrong_data_unless_verified() {
    for (verification, wrong_data) in [(Verification::Off, true), (Verification::On, false)] {
        let config = device(verification);
        let mut stack = stack(&config, HpbOptions::default(), Meddled::new(Forger(Prng::new(1)), false));
        mix(&mut stack, 100);
        let stats = stack.device.stats();
        assert!(stats.hpb_reads > 10_000, "forged entries were sent: {stats:?}");
        if wrong_data {
            assert!(stack.payload.wrong > 10_000, "{} wrong of {}", stack.payload.wrong, stack.payload.checked);
        } else {
            assert_eq!((stack.payload.wrong, stats.hpb_hits), (0, 0), "{:?}", stack.payload.first_wrong);
            assert_eq!(stats.hpb_forged, stats.hpb_reads);
        }
    }
}

#[test]
fn without_verification_everything_hangs_on_the_dirty_bitmap() {
    for (dirty_bitmap, wrong_data) in [(true, false), (false, true)] {
        let options = HpbOptions { dirty_bitmap, ..HpbOptions::default() };
        let mut stack = stack(&device(Verification::Off), options, Typed);
        mix(&mut stack, 70);
        assert!(stack.device.stats().hpb_hits > 1_000, "{:?}", stack.device.stats());
        assert_eq!(stack.payload.wrong > 0, wrong_data, "{:?}", stack.payload.first_wrong);
    }
}

#[test]
fn verification_catches_what_a_host_without_dirty_bitmap_forgets() {
    let options = HpbOptions { dirty_bitmap: false, ..HpbOptions::default() };
    let mut stack = stack(&device(Verification::On), options, Typed);
    mix(&mut stack, 70);
    let stats = stack.device.stats();
    assert_eq!(stack.payload.wrong, 0, "{:?}", stack.payload.first_wrong);
    assert!(stats.hpb_stale > 1_000 && stats.hpb_hits > 1_000, "{stats:?}");
    assert_eq!(stats.hpb_forged, 0, "an old entry is recognised as old");
}

/// When the load of the first sub-region ends, in a run in which nothing else happens.
fn end_of_load(options: HpbOptions) -> Ns {
    let mut stack = stack(&device(Verification::On), options, Typed);
    let mut now = begin_load(&mut stack);
    while state(&stack) == SubRegionState::Issued {
        step(&mut stack, &mut now);
    }
    assert_eq!(state(&stack), SubRegionState::Valid);
    now
}

fn state(stack: &Stack<Lean, Tags, (), Typed>) -> SubRegionState {
    stack.host.hpb(0).expect("an HPB unit").sub_region_state(SubRegion::default())
}

/// Reads block 0, so that the device recommends its sub-region, until the load is under way.
fn begin_load(stack: &mut Stack<Lean, Tags, (), Typed>) -> Ns {
    let mut now = stack.start(Ns::ZERO).expect("host and device find each other");
    stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Read, block: 0, blocks: 1 });
    while state(stack) != SubRegionState::Issued {
        step(stack, &mut now);
    }
    stack.poll_done().expect("the read ended");
    now
}

/// Writes block 9 when its entry is already on the way to the host, then reads it back.
fn write_during_load(strict_linux: bool, verification: Verification) -> Stack<Lean, Tags, (), Typed> {
    let options = HpbOptions { strict_linux, ..HpbOptions::default() };
    let just_before = end_of_load(options).saturating_sub(Ns(1));
    let mut stack = stack(&device(verification), options, Typed);
    begin_load(&mut stack);
    while stack.next_deadline() <= just_before {
        let next = stack.next_deadline();
        stack.advance(next);
    }
    assert_eq!(state(&stack), SubRegionState::Issued);
    stack.submit(just_before, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Write, block: 9, blocks: 1 });
    let mut now = just_before;
    settle(&mut stack, &mut now);
    stack.poll_done().expect("the write ended");
    assert_eq!(state(&stack), SubRegionState::Valid);
    for block in [8, 9, 10] {
        one(&mut stack, &mut now, BlockOp::Read, block, 1);
    }
    stack
}

#[test]
fn linux_forgets_a_write_during_a_load_and_our_default_does_not() {
    let linux = write_during_load(true, Verification::Off);
    let wrong = linux.payload.first_wrong.expect("the stale entry was used");
    assert_eq!((linux.payload.wrong, wrong.lpn, wrong.oldest, wrong.got), (1, 9, 2, Some((9, 1))));
    assert_eq!(linux.device.stats().hpb_reads, 3);

    let saved = write_during_load(true, Verification::On);
    assert_eq!((saved.payload.wrong, saved.device.stats().hpb_stale), (0, 1));

    let ours = write_during_load(false, Verification::Off);
    assert_eq!(ours.payload.wrong, 0);
    assert_eq!(ours.device.stats().hpb_reads, 2, "block 9 is read without its entry, its neighbours with theirs");
}

fn table(config: &DeviceConfig, name: SramTable) -> u64 {
    let device = readpath_testkit::Bare::new(config).device;
    device.sram().iter().find(|t| t.0 == name).expect("a table of that name").1
}

#[test]
fn verification_reads_only_tables_that_are_counted_and_small() {
    // A pure run of hits touches nothing of the map: neither its cache nor its pages in flash.
    let mut stack = stack(&device(Verification::On), HpbOptions::default(), Typed);
    mix(&mut stack, 100);
    let mut now = Ns::from_secs(100);
    let (before, sram) = (*stack.device.stats(), stack.device.sram());
    for block in (0..BLOCKS).step_by(5) {
        one(&mut stack, &mut now, BlockOp::Read, block, 1);
    }
    let after = stack.device.stats();
    assert_eq!(after.hpb_hits - before.hpb_hits, u64::from(BLOCKS.div_ceil(5)), "every read was a hit");
    assert_eq!(
        (after.map_hits, after.map_misses, after.map_loads, after.buffer_map_loads),
        (before.map_hits, before.map_misses, before.map_loads, before.buffer_map_loads)
    );
    assert_eq!(stack.device.sram(), sram, "tables do not grow");

    // Eight regions of four sub-regions of 64 entries, all of which may be active. A bit for every entry, or for every
    // 16.
    let mut config = device(Verification::On);
    let fine = table(&config, SramTable::Hpb);
    config.hpb.as_mut().expect("it has HPB").freshness_chunk_entries = 16;
    let coarse = table(&config, SramTable::Hpb);
    assert_eq!(fine - coarse, 8 * 4 * (64 - 64 / 16) / 8);
    assert!(fine <= 8 * 4 * (64 / 8 + 16) + 8 * 16, "{fine} bytes");
    assert_eq!(table(&config, SramTable::MapCache), 2 * 4096);
    assert_eq!(table(&config, SramTable::WriteBuffer), 64 * 4096);
    assert_eq!(table(&config, SramTable::MapDirectory), 2 * 4);

    // Tables grow with what may be active, not with what could be: the map of 4 million blocks would take 16 MiB.
    config.geometry.blocks_per_plane = 2_000;
    config.geometry.pages_per_block = 256;
    config.lus[0].blocks = 4 << 20;
    let hpb = config.hpb.as_mut().expect("it has HPB");
    (hpb.region_size, hpb.sub_region_size) = (15, 15);
    let few = table(&config, SramTable::Hpb);
    assert!(few < (16 << 20) / 1000, "{few} bytes");
    config.lus[0].max_active_regions = 32;
    assert!(table(&config, SramTable::Hpb) < few);
}
