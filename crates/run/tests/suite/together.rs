// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads that are under way together: that they are, and that those of units with zones take as long as from event to
//! event. [`crate::alone`] compares all others.

use crate::alone::{ASKED, BLOCKS, Counted, Often, Plain, Watch, driven};
use crate::zonemode::zoned_alone;
use readpath_device::{DeviceConfig, Layout, LuConfig, ZoneLayout, ZoneRule};
use readpath_flash::{PlaneReads, Scheduler};
use readpath_host::{HostConfig, HpbOptions};
use readpath_kit::{Ns, Prng};
use readpath_run::{Jobs, Rest, Runner};
use readpath_stack::{Hold, NoData, Stack, Typed};
use readpath_testkit::{any_slc, device, everything, give_room, host, job, run, start};
use readpath_workload::{IoKind, Job, Offsets, Phase, Sizes, Stream, StreamSpec};

/// Zones alone, or behind a conventional unit; the device and the number of their unit.
fn with_zones(layout: ZoneLayout, blocks: u32, behind_another: bool) -> (DeviceConfig, u8) {
    let mut config = zoned_alone(16, layout, blocks, ZoneRule::Zbc, 4);
    if behind_another {
        config.lus.insert(0, LuConfig { blocks: 4096, zones: None, ..config.lus[0] });
    }
    (config, u8::from(behind_another))
}

/// All that can be seen of reads of zones, some of which are half written, and of a unit before them.
fn seen(seed: u64, hold: Option<Hold>) -> String {
    let rng = &mut Prng::stream(seed, "together, zones", 0);
    let (layout, blocks) =
        [(ZoneLayout::PowerOfTwo, 64), (ZoneLayout::Gaps, 48), (ZoneLayout::Native, 96)][rng.below(3) as usize];
    let (mut config, zoned) = with_zones(layout, blocks, rng.below(2) == 0);
    if rng.below(3) == 0 {
        config.flash.plane_reads = PlaneReads::ALL[rng.below(PlaneReads::ALL.len() as u64) as usize];
    }
    let unit = config.lus[usize::from(zoned)].zones.expect("zones");
    let written = 1 + rng.below(u64::from(16 * blocks)) as u32;
    let (mut stack, mut now): (Plain, Ns) = start(&config, host(None), |stack| {
        let before = (zoned == 1).then_some((0, 0, 3000));
        let ranges = [(zoned, 0, written)].into_iter().chain(before);
        stack.precondition_all(ranges, Layout::Sequential, seed).expect("room");
    });
    let mut text = String::new();
    for part in 0..3 {
        // No read may begin in a gap.
        let zones = if layout == ZoneLayout::Gaps { 1 } else { 1 + rng.below(16) as u32 };
        let first = unit.stride() * rng.below(u64::from(17 - zones)) as u32;
        let most = 1 + rng.below(2) as u16;
        let of_zones = StreamSpec::plain(IoKind::Read, first, zones * blocks - 1, 1, Offsets::Uniform);
        let of_other = StreamSpec::plain(IoKind::Read, 0, 4095, 1, Offsets::Uniform);
        let jobs = (0..=zoned).map(|lun| {
            let mut spec = if lun == zoned { of_zones.clone() } else { of_other.clone() };
            spec.sizes = std::array::from_fn(|_| Sizes::Range { min: 1, max: most });
            let reads = Stream::new(&spec, seed ^ part).expect("a possible stream");
            Job { lun, ..job(reads, 1 + rng.below(15) as u32, 800) }
        });
        let mut phase = Phase { name: String::new(), jobs: jobs.collect() };
        let mut jobs = Jobs::new(&mut phase, now, Rest::Replies);
        let mut hooks = (Watch::default(), Often::default());
        let driven = driven(&mut stack, &mut jobs, &mut hooks, now, hold);
        now = driven.end;
        text += &(everything(&jobs.stats(driven).expect("measured")) + &hooks.0.0 + &hooks.1.text);
    }
    text + &format!("{:?}", stack.device.stats())
}

#[test]
fn reads_of_zones_together_take_as_long_as_from_event_to_event() {
    let (seeds, _) = readpath_testkit::chosen(0..80);
    for seed in seeds {
        let hold = (seed % 2 == 0).then_some(Hold::Always);
        let (short, long) = (seen(seed, hold), seen(seed, Some(Hold::Nothing)));
        let other = short.lines().zip(long.lines()).find(|(a, b)| a != b);
        assert!(short == long, "READPATH_SEED={seed}: {other:?}");
    }
}

/// Two regions fit, `hot` of regions 0 and 1 is read often, and then region 2 needs room.
fn evicted(hot: u32, hold: Hold) -> String {
    let mut config = device(BLOCKS);
    let hpb = config.hpb.as_mut().expect("HPB");
    let region = 1 << (hpb.region_size - 3);
    hpb.max_active_regions = 2;
    config.lus[0].max_active_regions = 2;
    let (mut stack, mut now): (Plain, Ns) = start(&config, host(Some(HpbOptions::DEFAULT)), |stack| {
        stack.precondition(0, 0, BLOCKS, Layout::Random, 1).expect("room");
    });
    let mut text = String::new();
    for (at, ios) in [(0, 1000), (1, 1000), (hot, 3000), (2, 1000), (hot, 100)] {
        let reads = Stream::uniform_reads(at * region, region, 1, ios).expect("a possible stream");
        let mut phase = Phase { name: String::new(), jobs: vec![job(reads, 8, ios)] };
        let mut jobs = Jobs::new(&mut phase, now, Rest::Replies);
        now = driven(&mut stack, &mut jobs, &mut (), now, Some(hold)).end;
        text += &format!("{now} {:?}\n", stack.device.stats());
    }
    text
}

#[test]
fn reads_together_keep_their_region() {
    for hot in [0, 1] {
        let (short, long) = (evicted(hot, Hold::Several), evicted(hot, Hold::Nothing));
        assert_eq!(short, long, "region {hot}");
    }
}

type Asked = Stack<Counted, NoData, (), Typed>;

/// How often the scheduler was asked for 4000 reads at a depth, when as many as make every entry known have gone
/// before.
fn asked(config: &DeviceConfig, host: HostConfig, depth: u32) -> u64 {
    let (blocks, layout) = match config.lus[0].zones {
        Some(zones) => (16 * zones.blocks, Layout::Sequential),
        None => (BLOCKS, Layout::Random),
    };
    let (mut stack, now): (Asked, Ns) =
        start(config, host, |stack| stack.precondition(0, 0, blocks, layout, 1).expect("room"));
    let mut runner = Runner::new(now);
    for (asks, ios) in [(true, 20_000), (false, 4000)] {
        let stream = Stream::uniform_reads(0, blocks, 1, ios).expect("a possible stream");
        run(&mut stack, &mut runner, vec![job(stream, if asks { 8 } else { depth }, ios)]);
        if asks {
            ASKED.set(0);
        }
    }
    ASKED.get()
}

/// Nobody would notice otherwise if every read took the long way.
#[test]
fn reads_together_ask_no_scheduler() {
    let with_hpb = device(BLOCKS);
    let mut plain = with_hpb.clone();
    plain.hpb = None;
    plain.lus[0].hpb = false;
    // Fewer frames than reads under way.
    plain.map_cache_bytes = 4096 * 8;
    let mut in_sram = plain.clone();
    in_sram.map_cache_bytes = 4096 * plain.map_pages();
    let mut cores = plain.clone();
    (cores.firmware.cores, cores.firmware.read_command) = (3, Ns(1_009));
    let mut cells = plain.clone();
    give_room(&mut cells);
    any_slc(&mut cells, &mut Prng::new(1));
    let mut planes = plain.clone();
    planes.flash.plane_reads = PlaneReads::Both;
    let (zones, _) = with_zones(ZoneLayout::Native, 96, false);
    let hpb = || host(Some(HpbOptions::DEFAULT));
    let possible = [
        ("misses", &plain, host(None)),
        ("hits", &in_sram, host(None)),
        ("HPB", &with_hpb, hpb()),
        ("cores", &cores, host(None)),
        ("cells", &cells, host(None)),
        ("planes", &planes, host(None)),
        ("zones", &zones, host(None)),
    ];
    for (what, config, host) in possible {
        for depth in [2, 16] {
            let asked = asked(config, host, depth);
            assert!(asked <= 40, "{what}, depth {depth}: {asked}");
        }
    }

    // What counts, draws or loads more than its page goes the long way.
    let mut counted = plain.clone();
    counted.ftl.read_disturb_limit = 1 << 20;
    let mut drawn = plain.clone();
    drawn.ftl.faults.read_retries_ppm = 1;
    let mut ahead = plain.clone();
    (ahead.map_cache_bytes, ahead.map_read_ahead) = (4096 * 8, 2);
    for (what, config) in [("disturb", &counted), ("retries", &drawn), ("read ahead", &ahead)] {
        assert!(asked(config, host(None), 16) >= 4000, "{what}");
    }
    assert_eq!(plain.scheduler, Scheduler::Lean);
}
