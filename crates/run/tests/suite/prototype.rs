// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB (HotStorage 2017), host and device together: hits, updates, and that no read ever returns old
//! data.

use readpath_device::{DeviceConfig, GroupUpdate, HpbConfig, Layout, PrototypeConfig, SramTable, Verification};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest, HpbCounters, HpbOptions, ListOrder};
use readpath_kit::{Ns, Prng};
use readpath_proto::typed::{Cdb, Command, Reply, Request, RequestBody};
use readpath_run::Runner;
use readpath_stack::{Crossed, Encoded, Stack, Tags, Typed, Wire, WireError};
use readpath_testkit::{DELAYS, HPB, everything, filled, give_little_room, host, job, one, run, settle};
use readpath_workload::{IoKind, Kinds, Offsets, Sizes, Stream, StreamSpec};
use std::cell::RefCell;
use std::rc::Rc;

const BLOCKS: u32 = 2048;
const GROUP: u32 = 256;
const BOTH: [GroupUpdate; 2] = [GroupUpdate::Host, GroupUpdate::Device];

fn device(update: GroupUpdate) -> DeviceConfig {
    let mut config = readpath_testkit::device(BLOCKS);
    let prototype = PrototypeConfig { update, group_entries: GROUP, listed_changes: 128 };
    config.hpb = Some(HpbConfig { prototype: Some(prototype), ..HPB });
    config
}

fn options() -> HpbOptions {
    HpbOptions { prototype: Some(GroupUpdate::Host), ..HpbOptions::default() }
}

fn stack<W: Wire + Default>(config: &DeviceConfig, layout: Layout) -> (Stack<Lean, Tags, (), W>, Ns) {
    filled(config, Some(options()), BLOCKS, layout, 3)
}

fn counters<W: Wire>(s: &Stack<Lean, Tags, (), W>) -> HpbCounters {
    *s.host.counters(0).expect("groups")
}

/// Reads blocks one after another; returns how many were hits.
fn hits<W: Wire>(s: &mut Stack<Lean, Tags, (), W>, now: &mut Ns, blocks: impl Iterator<Item = u32>) -> u64 {
    let before = s.device.stats().hpb_hits;
    blocks.for_each(|block| one(s, now, BlockOp::Read, block, 1));
    assert_eq!(s.payload.wrong, 0, "{:?}", s.payload.first_wrong);
    s.device.stats().hpb_hits - before
}

#[test]
fn a_group_is_loaded_after_two_reads_and_then_every_read_is_a_hit() {
    for update in BOTH {
        let (mut s, mut now) = stack::<Encoded>(&device(update), Layout::Random);
        assert_eq!(hits(&mut s, &mut now, 0..2), 0);
        assert_eq!(hits(&mut s, &mut now, 0..GROUP), u64::from(GROUP));
        let (d, h) = (*s.device.stats(), counters(&s));
        assert_eq!((d.hpb_reads, d.read_buffers, d.hpb_stale, d.hpb_foreign), (u64::from(GROUP), 1, 0, 0), "{d:?}");
        assert_eq!((h.hit_cnt, h.miss_cnt, h.map_req_cnt), (u64::from(GROUP), 2, 1));
        // 4 bytes for each entry, and nothing for bitmaps.
        let memory = s.host.memory(0).expect("groups");
        assert_eq!((memory.map_bytes, memory.bitmap_bytes), (u64::from(GROUP) * 4, 0));
        // A bit for each of the 8 groups; the device may also keep 128 changes of 6 bytes and two numbers.
        let tables = s.device.sram().into_iter().find(|t| t.0 == SramTable::Hpb).expect("a table").1;
        assert_eq!(tables, if update == GroupUpdate::Host { 1 } else { 1 + 128 * 6 + 2 });
        let buffers = s.device.sram().into_iter().find(|t| t.0 == SramTable::HpbReadBuffers).expect("a table").1;
        assert_eq!(buffers, 2 * (4096 + u64::from(GROUP) * 4));
    }
}

/// A hit costs what an HPB READ costs: at queue depth 1, on an idle device, to the nanosecond.
#[test]
fn a_hit_takes_as_long_as_an_hpb_read() {
    let took = |config: &DeviceConfig, options: HpbOptions| {
        let (mut s, mut now) = filled::<Lean, Tags, Typed>(config, Some(options), BLOCKS, Layout::Random, 3);
        (0..4).for_each(|block| one(&mut s, &mut now, BlockOp::Read, block, 1));
        let (start, hits) = (now, s.device.stats().hpb_hits);
        one(&mut s, &mut now, BlockOp::Read, 5, 1);
        assert_eq!(s.device.stats().hpb_hits, hits + 1);
        now - start
    };
    let standard = took(&readpath_testkit::device(BLOCKS), HpbOptions::default());
    assert_eq!(BOTH.map(|update| took(&device(update), options())), [standard; 2]);
}

/// With host-initiated updates, a write makes the whole group useless until it is loaded again; with device-initiated
/// updates, only the block, until a response has brought its entry.
#[test]
fn a_write_costs_a_group_or_a_block() {
    for update in BOTH {
        let (mut s, mut now) = stack::<Typed>(&device(update), Layout::Random);
        assert_eq!(hits(&mut s, &mut now, (0..2).chain(0..64)), 64);
        one(&mut s, &mut now, BlockOp::WriteFua, 9, 1);
        let (hits_after, hint_of_9) = (hits(&mut s, &mut now, 0..64), counters(&s));
        match update {
            // The response to the write has named the group: 32 reads miss, each of them
            // names it again, then it is loaded.
            GroupUpdate::Host => {
                let named = hint_of_9.rcmd_noti_cnt;
                assert_eq!((hits_after, named), (64 - 32, 2 + 1 + 32), "also while the group was not held");
                assert_eq!((hint_of_9.map_req_cnt, hint_of_9.pair_cnt), (2, 0));
            }
            GroupUpdate::Device => {
                assert_eq!((hits_after, hint_of_9.map_req_cnt, hint_of_9.pair_cnt), (64, 1, 1));
                assert_eq!(s.device.stats().entries_piggybacked, 1);
            }
        }
        assert_eq!(hits(&mut s, &mut now, 0..64), 64);
        assert_eq!(s.device.stats().hpb_stale + s.device.stats().hpb_foreign, 0, "nothing was sent in vain");
    }
}

/// Long reads carry the first entry if their blocks lie in a row in one group; else they go as READ.
#[test]
fn long_reads_go_by_one_entry_where_blocks_lie_in_a_row() {
    for update in BOTH {
        let (mut s, mut now) = stack::<Encoded>(&device(update), Layout::Sequential);
        hits(&mut s, &mut now, [0, 1, GROUP, GROUP + 1].into_iter());
        let before = (*s.device.stats(), counters(&s));
        for (block, blocks) in [(1, 3), (10, 64), (0, 128), (100, 100), (GROUP, GROUP / 2)] {
            one(&mut s, &mut now, BlockOp::Read, block, blocks);
        }
        let long = 3 + 64 + 128 + 100 + u64::from(GROUP / 2);
        let d = s.device.stats().since(&before.0);
        assert_eq!((d.hpb_hits, d.hpb_long_hits, d.map_hits + d.map_misses), (long, long, 0), "{d:?}");
        // Beyond the group, and where they do not lie in a row.
        one(&mut s, &mut now, BlockOp::Read, GROUP - 1, 2);
        one(&mut s, &mut now, BlockOp::WriteFua, 20, 1);
        hits(&mut s, &mut now, (0..40).map(|i| i % 8));
        let hits_before = s.device.stats().hpb_hits;
        one(&mut s, &mut now, BlockOp::Read, 18, 4);
        assert_eq!(s.device.stats().hpb_hits, hits_before);
        assert_eq!(hits(&mut s, &mut now, 18..22), 4, "each of them alone has an entry");
        assert_eq!(s.payload.wrong, 0);
    }
}

/// A page of 32 blocks holds more than a command may have under way.
#[test]
fn a_page_of_many_blocks_is_read_in_parts() {
    let mut config = device(GroupUpdate::Host);
    config.geometry.page_bytes = 128 << 10;
    config.write_buffer_blocks = config.write_buffer_blocks.max(2 * config.geometry.slices_per_unit());
    config.ftl.move_buffer_blocks = config.ftl.move_buffer_blocks.max(2 * config.geometry.slices_per_unit());
    config.ftl.map_changes = config.ftl.map_changes.max(16 * config.geometry.slices_per_unit());
    config.ftl.checkpoint_after_units = 64;
    let (mut s, mut now) = stack::<Typed>(&config, Layout::Sequential);
    hits(&mut s, &mut now, [0, 1].into_iter());
    let before = s.device.stats().hpb_hits;
    one(&mut s, &mut now, BlockOp::Read, 0, 64);
    assert_eq!((s.device.stats().hpb_hits - before, s.payload.wrong), (64, 0));
}

/// Notes which update each hint says that its host has seen.
struct Noting(Rc<RefCell<Vec<u8>>>);

impl Wire for Noting {
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        if let RequestBody::Command(Command { cdb: Cdb::HintedRead { hint, .. }, .. }) = &request.body {
            self.0.borrow_mut().push(hint.seen);
        }
        Ok((request, data))
    }

    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        Ok((reply, data))
    }
}

/// The device numbers its updates over all units. A unit without updates must not fall behind: 128 numbers later,
/// updates that it has not seen would look seen.
#[test]
fn every_unit_has_seen_the_updates_of_all() {
    let mut config = device(GroupUpdate::Device);
    config.lus = vec![config.lus[0]; 2];
    config.lus.iter_mut().for_each(|lu| lu.blocks = BLOCKS / 2);
    let noted = Rc::default();
    let host = host(Some(options()));
    let mut s: Stack<Lean, Tags, (), Noting> =
        Stack::new(&config, host, DELAYS, Tags::default(), (), Noting(Rc::clone(&noted))).expect("a possible device");
    let mut now = s.start(Ns::ZERO).expect("host and device find each other");
    let mut go = |lun, op, block| {
        s.submit(now, &BlockRequest { cookie: 0, lun, op, block, blocks: 1 });
        settle(&mut s, &mut now);
        assert!(s.poll_done().is_some_and(|done| done.error.is_none()));
        assert_eq!(s.payload.wrong, 0);
        s.device.stats().entries_piggybacked
    };
    for lun in [0, 1] {
        for block in 0..64 {
            go(lun, BlockOp::WriteFua, block);
        }
        for block in 0..3 {
            go(lun, BlockOp::Read, block);
        }
    }
    for round in 0..300 {
        go(1, BlockOp::WriteFua, round % 64);
        let told = go(1, BlockOp::Read, (round + 1) % 64);
        go(0, BlockOp::Read, 9);
        assert_eq!(noted.borrow().last(), Some(&(told as u8)), "round {round}");
    }
    assert!(go(0, BlockOp::Read, 9) > 256, "numbers began anew");
}

/// What a mixed run with everything in it left in counters and histograms.
fn mixed<W: Wire + Default>(seed: u64, verification: Verification) -> (String, u64, u64) {
    let mut rng = Prng::stream(seed, "prototype", 0);
    let mut config = device(BOTH[rng.below(2) as usize]);
    give_little_room(&mut config, 4);
    config.map_cache_bytes = 4096;
    let hpb = config.hpb.as_mut().expect("it has HPB");
    hpb.verification = verification;
    let prototype = hpb.prototype.as_mut().expect("a prototype");
    prototype.group_entries = 64 << rng.below(3);
    prototype.listed_changes = 1 + rng.below(200) as u16;
    let group_bytes = u64::from(prototype.group_entries) * 4;
    // Sometimes too little memory for all groups.
    let max_map_bytes = (rng.below(2) == 0).then(|| (1 + rng.below(6)) * group_bytes);
    let host = host(Some(HpbOptions { max_map_bytes, ..options() }));
    let (mut s, now) = readpath_testkit::start::<Lean, Tags, W>(&config, host, |s| {
        let layout = if seed.is_multiple_of(2) { Layout::Random } else { Layout::Sequential };
        s.precondition(0, 0, BLOCKS, layout, seed).expect("room");
    });
    let mut runner = Runner::new(now);
    let mut spec = StreamSpec::plain(IoKind::Read, 0, BLOCKS, 1, Offsets::Zipf(0.9));
    spec.kinds = Kinds::Mix(75);
    spec.sizes = std::array::from_fn(|_| Sizes::Split(vec![(1, 8), (4, 1), (60, 1)]));
    spec.flush_every = [50, 0];
    let reads = Stream::new(&spec, seed).expect("a possible stream");
    spec.kinds = Kinds::TrimWrite;
    (spec.start_block, spec.blocks) = (500, 300);
    let trims = Stream::new(&spec, seed + 1).expect("a possible stream");
    let stats = run(&mut s, &mut runner, vec![job(reads, 12, 12_000), job(trims, 2, 1_000)]);
    assert!(s.wire_error().is_none());
    let d = s.device.stats();
    assert!(d.hpb_hits > 50 && d.collected > 0 && d.slices_moved > 0, "seed {seed}: {d:?}");
    // Bits and list are exact: no spare area ever contradicts an honest host.
    assert!(verification == Verification::Off || d.hpb_foreign == 0, "seed {seed}: {d:?}");
    let text = format!("{}{d:?}\n{:?}", everything(&stats), counters(&s));
    (text, s.payload.checked, s.payload.wrong)
}

/// Writes, garbage collection, TRIM, any group size, any memory, both updates: reads return the written data, and
/// encoded messages give the same results.
#[test]
fn mixed_runs_read_what_was_written_typed_and_encoded() {
    for seed in 1..=10 {
        let (typed, encoded) = (mixed::<Typed>(seed, Verification::On), mixed::<Encoded>(seed, Verification::On));
        assert_eq!(typed.0, encoded.0, "seed {seed}");
        assert!(typed.1 > 8_000 && typed.2 == 0 && encoded.2 == 0, "seed {seed}: {} wrong of {}", typed.2, typed.1);
    }
}

/// The same with dirty bits, list and spare areas not looked at: without them old entries are believed, and the check
/// of data sees it.
#[test]
fn without_dirty_bits_old_entries_return_wrong_data() {
    for seed in 1..=4 {
        let (_, checked, wrong) = mixed::<Typed>(seed, Verification::Off);
        assert!(wrong > 0, "seed {seed}: {wrong} wrong of {checked}");
    }
}

/// Resets of the controller, power cuts of the device alone and of everything, at random times under load: nothing
/// wrong, and hits come back after each.
#[test]
fn resets_and_power_cuts_leave_no_old_entry_and_hits_recover() {
    for (seed, update) in (1..=6).zip(BOTH.into_iter().cycle()) {
        let mut rng = Prng::stream(seed, "prototype cuts", 0);
        let (mut s, mut now) = stack::<Encoded>(&device(update), Layout::Random);
        for round in 0..6 {
            let mut sent = 0u32;
            let until = now + Ns::from_us(2_000 + rng.below(20_000));
            let mut cookies = 0;
            while now < until {
                while cookies < 16 {
                    let block =
                        (rng.below(u64::from(BLOCKS)) * rng.below(u64::from(BLOCKS)) / u64::from(BLOCKS)) as u32;
                    let op =
                        [BlockOp::Read, BlockOp::Read, BlockOp::Read, BlockOp::Read, BlockOp::Write, BlockOp::Discard];
                    let op = if round == 0 { BlockOp::Read } else { op[rng.below(6) as usize] };
                    s.submit(now, &BlockRequest { cookie: sent, lun: 0, op, block, blocks: 1 });
                    (cookies, sent) = (cookies + 1, sent + 1);
                }
                let next = s.next_deadline();
                now = if next == Ns::NEVER { until } else { next };
                s.advance(now);
                while s.poll_done().is_some() {
                    cookies -= 1;
                }
            }
            match round % 3 {
                0 => s.reset(now),
                1 => now = s.device_power_cycle(now, now + Ns::from_ms(1)).ready_at,
                _ => {
                    now = s.power_cycle(now, now + Ns::from_ms(1)).ready_at;
                    now = s.start(now).expect("host and device find each other");
                }
            }
            if round % 3 != 2 {
                let memory = s.host.memory(0).expect("groups");
                assert_eq!(memory.map_bytes, 0, "the host has dropped everything");
            }
            settle(&mut s, &mut now);
            while s.poll_done().is_some() {}
            let warm = hits(&mut s, &mut now, (0..BLOCKS).step_by(64).flat_map(|block| [block, block]));
            let before = *s.device.stats();
            let again = hits(&mut s, &mut now, (0..BLOCKS).step_by(8));
            let d = s.device.stats().since(&before);
            // Blocks in the write buffer, and unmapped blocks, have no entry.
            let most = u64::from(BLOCKS / 8) - d.buffer_hits - d.unmapped_reads;
            assert!(again > most * 9 / 10, "seed {seed}, round {round}: {again} hits of {most} after {warm}");
        }
        assert!(s.wire_error().is_none());
        assert!(s.device.stats().hpb_hits > 500);
    }
}

fn start(config: &DeviceConfig, options: HpbOptions) -> Result<Stack<Lean, Tags, (), Typed>, String> {
    let host = host(Some(options));
    let mut s = Stack::new(config, host, DELAYS, Tags::default(), (), Typed).expect("a possible device");
    s.precondition(0, 0, BLOCKS, Layout::Random, 3).expect("room");
    s.start(Ns::ZERO).map_err(|e| e.to_string())?;
    Ok(s)
}

#[test]
fn host_and_device_have_to_agree() {
    let refused = |config: &DeviceConfig, options| start(config, options).map(drop).expect_err("they do not");
    let message = refused(&readpath_testkit::device(BLOCKS), options());
    assert!(message.contains("not a prototype of HPB (it has no attribute C1h)"), "{message}");
    let prototype = device(GroupUpdate::Host);
    let message = refused(&prototype, HpbOptions { max_map_bytes: Some(u64::from(GROUP) * 4 - 1), ..options() });
    assert!(message.contains("HPB of logical unit 0: ") && message.contains("1023"), "{message}");
    let message = refused(&prototype, HpbOptions { memory_bytes: Some(1000), ..options() });
    assert!(message.contains("1000"), "{message}");
    // A host of JESD220-3 finds no HPB, and reads.
    let mut s = start(&prototype, HpbOptions::default()).expect("a device without HPB");
    let mut now = Ns::from_secs(1);
    assert_eq!(hits(&mut s, &mut now, 0..20), 0);
    assert!(s.host.counters(0).is_none() && s.device.stats().hpb_reads == 0);
}

/// Memory for two groups of eight: the oldest goes, or the one that was read least recently.
#[test]
fn memory_for_few_groups_keeps_the_newest() {
    for (order, kept) in [(ListOrder::Activation, [1, 2]), (ListOrder::Recency, [0, 2])] {
        let bytes = u64::from(GROUP) * 4 * 2;
        let mut s = start(&device(GroupUpdate::Host), HpbOptions { max_map_bytes: Some(bytes), order, ..options() })
            .expect("they agree");
        let mut now = Ns::from_secs(1);
        for group in [0, 1, 0, 2] {
            hits(&mut s, &mut now, [group * GROUP, group * GROUP + 1, group * GROUP + 2].into_iter());
        }
        let c = counters(&s);
        assert_eq!((c.map_req_cnt, c.evict_cnt), (3, 1));
        let memory = s.host.memory(0).expect("groups");
        assert_eq!((memory.map_bytes, memory.peak_bytes), (bytes, bytes));
        let held = (0..8).filter(|group| hits(&mut s, &mut now, std::iter::once(group * GROUP + 9)) == 1);
        assert_eq!(held.collect::<Vec<u32>>(), kept, "{order:?}");
    }
}
