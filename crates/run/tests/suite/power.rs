// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power goes away at every flash operation of a scripted workload, and at random moments of random ones, also
//! while the device recovers. Flushed data is there; no read returns data older than the last flush, or data that was
//! never written; no block is lost; recovery reads no more than the checkpoint and what was programmed since. And each
//! safeguard of recovery is needed: without it the same tests find wrong reads.
//!
//! The host's HPB loses its power with everything else, or lives on with the entries of the time before: these are
//! refused, the device says that it has lost its state, and hits come back.

use readpath_device::{DeviceConfig, DeviceStats, HpbConfig, Layout, Without};
use readpath_flash::{DieSched, Lean, Queued, Scheduler};
use readpath_host::{BlockOp, HpbOptions};
use readpath_kit::{Ns, Prng};
use readpath_testkit::full::{Load, any_full_device, full_device, read_everything};
use readpath_testkit::{
    Checked, HPB, any_read_path, any_slc, assert_bounded, chosen, filled, give_little_room, one, step,
};

const BLOCKS: u32 = readpath_testkit::full::FULL_DEVICE_BLOCKS;

/// Four fifths of the unit are written.
fn new_stack<S: DieSched>(config: &DeviceConfig, hpb: Option<HpbOptions>) -> (Checked<S>, Ns) {
    let blocks = config.lus[0].blocks;
    filled(config, hpb, blocks - blocks / 5, Layout::Random, 5)
}

/// Cuts the power, brings it back, and has the host find the device again.
fn cycle<S: DieSched>(stack: &mut Checked<S>, now: &mut Ns, again: u32, what: &str) {
    let mut on = *now + Ns::from_ms(5);
    let mut recovery = stack.power_cycle(*now, on);
    for _ in 0..again {
        // In the middle of the recovery: nothing has been programmed yet.
        on = *now + Ns::from_ms(10);
        recovery = stack.power_cycle(*now + Ns::from_ms(6), on);
    }
    assert_bounded(stack.device.config(), &recovery, on, what);
    *now = stack.start(recovery.ready_at).expect("the host finds the device again");
}

/// Reads everything; returns the number of blocks with wrong data.
fn read_all<S: DieSched>(stack: &mut Checked<S>, now: &mut Ns) -> u64 {
    read_everything(stack, now);
    stack.payload.wrong
}

fn check<S: DieSched>(stack: &mut Checked<S>, now: &mut Ns, what: &str) {
    stack.device.check_consistency().unwrap_or_else(|e| panic!("{what}: {e}"));
    let wrong = read_all(stack, now);
    assert_eq!(wrong, 0, "{what}: {:?}", stack.payload.first_wrong);
}

/// Whether one of the events of the scripts leads to a wrong read, or to a state that does not add up, when the power
/// goes after it, and its number; or else how many events there are. To come to an event, all events of its script
/// before it are repeated, so the scripts are short.
fn cut_everywhere(config: &DeviceConfig) -> (bool, u32) {
    let (mut events, mut met) = (0, [0; 4]);
    for script in 77..80 {
        for event in 0.. {
            let (mut stack, mut now) = new_stack::<Lean>(config, None);
            let mut load = Load::new(script, 180);
            for _ in 0..event {
                load.step(&mut stack, &mut now);
            }
            if !load.step(&mut stack, &mut now) {
                let s = stack.device.stats();
                let here = [s.collected + s.flushed, s.checkpoints, s.map_writes, s.journal_writes];
                met.iter_mut().zip(here).for_each(|(sum, n)| *sum += n);
                break;
            }
            cycle(&mut stack, &mut now, event % 3, &format!("script {script}, event {event}"));
            if read_all(&mut stack, &mut now) > 0 || stack.device.check_consistency().is_err() {
                return (true, events);
            }
            events += 1;
        }
    }
    assert!(met.iter().zip([10, 5, 20, 20]).all(|(sum, least)| *sum > least), "the scripts are too tame: {met:?}");
    (false, events)
}

#[test]
fn a_cut_at_every_event() {
    let (bad, events) = cut_everywhere(&full_device(Without::NOTHING));
    assert!(!bad && events > 2_000, "{bad} at {events}");
}

#[test]
fn a_cut_at_every_event_with_write_booster() {
    let mut config = full_device(Without::NOTHING);
    config.ftl.idle_after = Ns(200_000);
    any_slc(&mut config, &mut Prng::new(3));
    let (bad, events) = cut_everywhere(&config);
    assert!(!bad && events > 2_000, "{bad} at {events}");
}

#[test]
fn a_cut_at_every_event_with_the_map_and_a_static_cache_in_slc_mode() {
    let is_it = |config: &DeviceConfig| config.slc.is_some_and(|slc| slc.holds_map) && config.static_superblocks() > 0;
    let mut configs = (0..100).map(|seed| {
        let mut config = full_device(Without::NOTHING);
        (config.geometry.pages_per_block, config.ftl.map_changes) = (40, 48);
        give_little_room(&mut config, 2);
        config.ftl.idle_after = Ns(200_000);
        any_slc(&mut config, &mut Prng::new(seed));
        config
    });
    let config = configs.find(is_it).expect("one of them has both");
    let (bad, events) = cut_everywhere(&config);
    assert!(!bad && events > 2_000, "{bad} at {events}");
}

#[test]
fn without_a_safeguard_blocks_are_wrong() {
    for without in [
        Without { journal: true, ..Without::NOTHING },
        Without { spare_check: true, ..Without::NOTHING },
        Without { checkpoint_order: true, ..Without::NOTHING },
    ] {
        let (bad, event) = cut_everywhere(&full_device(without));
        assert!(bad, "{without:?}: {event}");
    }
}

/// Runs one device through many cuts; numbers of writes and trims may go as far as said. Returns its counters at the
/// end.
fn many_cuts<S: DieSched>(scheduler: Scheduler, seed: u64, cuts: u32, numbers: Option<(u32, u32)>) -> DeviceStats {
    let mut config = any_full_device(seed);
    config.scheduler = scheduler;
    any_read_path(&mut config, seed);
    let (mut stack, mut now) = new_stack::<S>(&config, None);
    if let Some((span, renumber_at)) = numbers {
        stack.device.limit_numbers(span, renumber_at);
    }
    let rng = &mut Prng::stream(seed, "cuts", 0);
    for cut in 0..cuts {
        let mut load = Load::new(seed << 16 | u64::from(cut), 400);
        let events = rng.below(700);
        for _ in 0..events {
            if !load.step(&mut stack, &mut now) {
                break;
            }
        }
        let what = format!("seed {seed}, cut {cut}");
        stack.device.check_consistency().unwrap_or_else(|e| panic!("{what}, before: {e}"));
        let again = rng.below(3) as u32;
        cycle(&mut stack, &mut now, again, &what);
        if rng.below(3) == 0 {
            // Now and then while the first checkpoint after the recovery is being written.
            for _ in 0..rng.below(60) {
                if stack.next_deadline() == Ns::NEVER {
                    break;
                }
                step(&mut stack, &mut now);
            }
            cycle(&mut stack, &mut now, 0, &what);
        }
        check(&mut stack, &mut now, &what);
    }
    *stack.device.stats()
}

/// Adds up how many blocks went bad, and how many superblocks were retired for it.
fn add_bad((blocks, superblocks): (u64, u64), s: DeviceStats) -> (u64, u64) {
    (blocks + s.bad_blocks, superblocks + s.retired_superblocks)
}

#[test]
fn random_cuts_lean() {
    // The last one runs out of room to move data to, unless some may be borrowed from the map.
    let (seeds, only) = chosen((0..120).chain([125]));
    let bad = seeds.map(|seed| many_cuts::<Lean>(Scheduler::Lean, seed, 70, None)).fold((0, 0), add_bad);
    assert!(only || (bad.0 > 100 && bad.1 > 20), "the seeds are too tame: {bad:?}");
}

#[test]
fn random_cuts_queued() {
    let (seeds, only) = chosen(1_000..1_040);
    let bad = seeds.map(|seed| many_cuts::<Queued>(Scheduler::Queued, seed, 50, None)).fold((0, 0), add_bad);
    assert!(only || (bad.0 > 30 && bad.1 > 5), "the seeds are too tame: {bad:?}");
}

/// What real devices see after sixteen million writes, and after two thousand million, all the time.
#[test]
fn cuts_while_order_is_forgotten() {
    for seed in chosen(3_000..3_060).0 {
        many_cuts::<Lean>(Scheduler::Lean, seed, 60, Some((64 << (seed % 3), 500)));
    }
}

/// Cuts the power many times under hosts that use HPB: everything loses it, or the device alone. Returns the counters
/// of the device at the end.
fn many_cuts_with_hpb<S: DieSched>(seed: u64, cuts: u32) -> DeviceStats {
    let mut config = any_full_device(seed);
    let rng = &mut Prng::stream(seed, "hpb", 0);
    config.hpb =
        Some(HpbConfig { region_size: 9 + rng.below(2) as u8, sub_region_size: 7 + rng.below(2) as u8, ..HPB });
    let (mut stack, mut now) = new_stack::<S>(&config, Some(HpbOptions::default()));
    let reads = 30 + rng.below(40);
    let mut load = Load::new(seed, u32::MAX).with_reads(reads);
    for cut in 0..cuts {
        let what = format!("seed {seed}, cut {cut}");
        for _ in 0..rng.below(1_500) {
            assert!(load.step(&mut stack, &mut now), "{what}");
        }
        if rng.below(3) == 0 {
            cycle(&mut stack, &mut now, rng.below(2) as u32, &what);
            load = Load::new(seed << 16 | u64::from(cut), u32::MAX).with_reads(reads);
        } else {
            let on = now + Ns::from_ms(5);
            let recovery = stack.device_power_cycle(now, on);
            assert_bounded(&config, &recovery, on, &what);
            now = on;
        }
        stack.device.check_consistency().unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    load.finish(&mut stack, &mut now);
    check(&mut stack, &mut now, &format!("seed {seed}"));
    *stack.device.stats()
}

#[test]
fn cuts_under_hosts_with_entries() {
    let (mut hits, mut refused, mut resets) = (0, 0, 0);
    for seed in 2_000..2_090 {
        let s = many_cuts_with_hpb::<Lean>(seed, 60);
        hits += s.hpb_hits;
        refused += s.hpb_inactive + s.hpb_forged;
        resets += s.resets_announced;
    }
    assert!(hits > 10_000 && refused > 1_000 && resets > 2_000, "{hits} hits, {refused} refused, {resets} resets");
}

#[test]
fn hits_come_back_after_the_device_lost_its_power() {
    let config = readpath_testkit::device(BLOCKS);
    let (mut stack, mut now) = new_stack::<Lean>(&config, Some(HpbOptions::default()));
    let blocks = BLOCKS - BLOCKS / 5;
    let pass = |stack: &mut Checked<Lean>, now: &mut Ns| {
        let before = *stack.device.stats();
        for i in 0..blocks {
            // In a scattered order, so that the reads of a sub-region do not come at once.
            one(stack, now, BlockOp::Read, i * 7 % blocks, 1);
        }
        stack.device.stats().since(&before)
    };
    for _ in 0..3 {
        pass(&mut stack, &mut now);
    }
    assert_eq!(pass(&mut stack, &mut now).hpb_hits, u64::from(blocks));
    let on = now + Ns::from_ms(5);
    stack.device_power_cycle(now, on);
    now = on;
    let after = pass(&mut stack, &mut now);
    assert!(after.resets_announced > 0 && after.hpb_inactive > 0, "{after:?}");
    assert!(after.hpb_hits < u64::from(blocks), "{after:?}");
    for _ in 0..3 {
        pass(&mut stack, &mut now);
    }
    assert_eq!(pass(&mut stack, &mut now).hpb_hits, u64::from(blocks), "all of them");
    assert_eq!(stack.payload.wrong, 0);
}

#[test]
fn a_host_without_entries_is_told_and_gets_some() {
    let config = readpath_testkit::device(BLOCKS);
    let (mut stack, mut now) = new_stack::<Lean>(&config, Some(HpbOptions::default()));
    let blocks = BLOCKS - BLOCKS / 5;
    let on = now + Ns::from_ms(5);
    stack.device_power_cycle(now, on);
    now = on;
    for i in 0..4 * blocks {
        one(&mut stack, &mut now, BlockOp::Read, i * 7 % blocks, 1);
    }
    let s = stack.device.stats();
    assert!(s.resets_announced > 0 && s.hpb_hits > u64::from(blocks), "{s:?}");
    assert_eq!(stack.payload.wrong, 0);
}

#[test]
fn nobody_waits_while_there_is_no_power() {
    let mut config = full_device(Without::NOTHING);
    config.flash.program = Ns::from_ms(1);
    for device_alone in [false, true] {
        let (mut stack, mut now) = new_stack::<Lean>(&config, None);
        let mut load = Load::new(1, u32::MAX).with_depth(12);
        let mut off = Ns::ZERO;
        for _ in 0..20 {
            for _ in 0..200 {
                load.step(&mut stack, &mut now);
            }
            let on = now + Ns::from_secs(100);
            off += Ns::from_secs(100);
            if device_alone {
                stack.device_power_cycle(now, on);
                now = on;
            } else {
                let recovery = stack.power_cycle(now, on);
                now = stack.start(recovery.ready_at).expect("the host finds the device again");
                load = Load::new(2, u32::MAX).with_depth(12);
            }
        }
        let s = stack.device.stats();
        let stalls = [s.stall_checkpoint_ns, s.stall_map_ns, s.stall_space_ns, s.stall_journal_ns, s.stall_flash_ns];
        let waited = Ns(stalls.iter().sum());
        assert!(waited > Ns::from_ms(10) && waited + off < now, "{waited:?} of {now:?}, {off:?} without power");
    }
}

/// The spare area of a map page says how it changed the references into superblocks, as far as there is room for it. If
/// not, recovery reads all map pages to count them.
#[test]
fn references_that_do_not_fit_are_counted_from_map_pages() {
    for (layout, map_pages) in [(Layout::Sequential, 0), (Layout::Random, 4)] {
        let mut config = readpath_testkit::device(4096);
        config.ftl.checkpoint_after_units = 4096;
        let longest = config.longest_recovery();
        assert_eq!(longest.map_page_reads, 4, "more superblocks than a spare area can name");
        let (mut stack, mut now): (Checked, Ns) = filled(&config, None, 4096, layout, 9);
        for block in (0..4096).step_by(64) {
            one(&mut stack, &mut now, BlockOp::Write, block, 64);
        }
        assert!(stack.device.stats().map_writes > 0, "map pages were written back");
        let recovery = stack.power_cycle(now, now);
        assert_eq!(recovery.map_page_reads, map_pages, "{layout:?}: {recovery:?}");
        assert_bounded(&config, &recovery, now, "after one pass of writes");
        stack.device.check_consistency().unwrap();
    }
}
