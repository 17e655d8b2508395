// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache in SLC mode under the device's own control: the phases of a long write, its static part, idle time, folding
//! within a die; and the map in SLC mode. `vopr` and `power.rs` have them among their random devices.

use super::booster::{Desk, SLC, device};
use readpath_device::{CacheCells, CacheOwner, DeviceConfig, DeviceStats, SlcCacheConfig, SlcConfig};
use readpath_host::BlockOp;
use readpath_kit::Ns;
use readpath_testkit::{give_little_room, one};

const FOLDS: CacheOwner = CacheOwner::Device { folds_when_idle: true };

/// As `device`, with a cache of the device itself of so many superblocks that serve nothing else, and that are lent.
fn own(owner: CacheOwner, kept: u32, lent: u32) -> DeviceConfig {
    let mut config = device(1);
    cache(&mut config, owner, kept, lent);
    config
}

fn cache(config: &mut DeviceConfig, owner: CacheOwner, kept: u32, lent: u32) {
    config.slc = Some(SLC);
    let each = config.cache_slices();
    config.slc_cache =
        Some(SlcCacheConfig { owner, static_blocks: kept * each, dynamic_blocks: lent * each, cells: None });
}

/// A device of 3000 blocks with hardly more room than it needs.
fn tight(kept: u32, lent: u32) -> DeviceConfig {
    let mut config = readpath_testkit::device(3000);
    config.geometry.pages_per_block = 24;
    config.ftl.idle_after = Ns::from_ms(20);
    give_little_room(&mut config, 2);
    config.geometry.blocks_per_plane += kept;
    cache(&mut config, FOLDS, kept, lent);
    config
}

#[test]
fn all_data_goes_to_the_cache_until_it_is_full() {
    let config = own(FOLDS, 2, 3);
    let size = config.cache_slices() * 5;
    // The host's part in WriteBooster has no effect: there is none.
    for host in [true, false] {
        let mut desk = Desk::new(&config, host);
        desk.write(0..size + 1000);
        let stats = desk.stats();
        assert_eq!(stats.slices_boosted, u64::from(size));
        assert!(stats.slices_programmed > stats.slices_boosted + 800, "then it is passed by");
        assert_eq!((stats.stall_space_ns, stats.flushed, stats.collected), (0, 0, 0));
        desk.check(size + 1000);
    }
}

/// QLC flash with a cache in TLC mode: its superblocks hold three quarters, and have times and a life of their own.
#[test]
fn a_cache_may_have_more_bits_a_cell_than_one() {
    let tlc = CacheCells { bits: 3, read: Ns(45_000), program: Ns(400_000), erase: Ns(2_000_000), life_erases: 300 };
    let run = |cells: Option<CacheCells>| {
        let mut config = own(FOLDS, 0, 4);
        config.slc = Some(SlcConfig { bits_per_cell: 4, ..SLC });
        config.slc_cache.as_mut().unwrap().cells = cells;
        let size = 4 * config.cache_slices();
        config.slc_cache.as_mut().unwrap().dynamic_blocks = size;
        let mut desk = Desk::new(&config, true);
        // The superblock is opened, and announced in the journal.
        desk.took(BlockOp::WriteFua, size + 400);
        let times = [BlockOp::WriteFua, BlockOp::Read].map(|op| desk.took(op, size + 404));
        desk.write(0..size + 400);
        let stats = desk.stats();
        assert_eq!(stats.slices_boosted, u64::from(size) - 2 * 3, "two programs of one block");
        assert!(stats.slices_programmed > u64::from(size) + 200, "then it is passed by");
        let on = desk.now + Ns::from_ms(1);
        desk.now = desk.stack.power_cycle(desk.now, on).ready_at;
        desk.now = desk.stack.start(desk.now).unwrap();
        desk.check(size + 400);
        desk.settle();
        desk.check(size + 400);
        let stats = desk.stats();
        let blocks = 4 * u64::from(config.geometry.dies());
        assert_eq!(stats.slc_erases, blocks, "all of the cache is emptied");
        (size, times, config.cache_life())
    };
    let (few, more) = (run(None), run(Some(tlc)));
    assert_eq!(more.0, 3 * few.0);
    assert_eq!(more.1[0] - few.1[0], tlc.program - SLC.program);
    assert_eq!(more.1[1] - few.1[1], tlc.read - SLC.read);
    assert_eq!((few.2, more.2), (4 * 1_000, 4 * 300));
}

#[test]
fn idle_time_gives_the_cache_back_where_the_device_says_so() {
    for folds in [true, false] {
        let config = own(CacheOwner::Device { folds_when_idle: folds }, 2, 2);
        let size = config.cache_slices() * 4;
        let mut desk = Desk::new(&config, true);
        for round in 1..=3u64 {
            desk.write((round as u32 - 1) * size..round as u32 * size);
            desk.settle();
            let stats = desk.stats();
            let rounds = if folds { round } else { 1 };
            assert_eq!((stats.flushed > 0, stats.slices_boosted / u64::from(size)), (folds, rounds), "{stats:?}");
        }
        desk.check(3 * size);
    }
}

/// A superblock that is lent is lent only while there are erased ones to spare; one of the static part always. So a
/// full device has its static cache after each pause, and of the other part no more than the one superblock that idle
/// time leaves erased beyond what collection needs.
#[test]
fn a_full_device_has_the_static_part_only() {
    let boosted_when_full = |config: &DeviceConfig| {
        let mut desk = Desk::new(config, true);
        // Overwritten at random, so that erased superblocks come from collection only.
        for round in 0..3 {
            desk.write(0..3000);
            for i in 0..750u32 {
                let block = i * 7919 % 750 * 4;
                desk.write(block..block + 4);
            }
            assert_eq!(desk.stats().no_space, 0, "round {round}");
        }
        // Twice as much as the cache may hold: after a pause, and once more without one.
        let boosted = [true, false].map(|pause| {
            if pause {
                desk.settle();
            }
            let before = desk.stats();
            desk.write(0..config.cache_slices() * 12);
            desk.stats().since(&before).slices_boosted
        });
        desk.check(3000);
        boosted
    };
    let (kept, none) = (boosted_when_full(&tight(6, 0)), boosted_when_full(&tight(0, 6)));
    let each = u64::from(tight(6, 0).cache_slices());
    assert!(kept[0] <= 6 * each && kept[0] + 64 >= 6 * each, "{kept:?} of {each}");
    assert!(none[0] <= each && none[1] == 0, "{none:?} of {each}");
}

/// Without erased superblocks, each write first moves data out of the cache: it is slower than one past the cache.
#[test]
fn a_long_write_has_three_speeds() {
    let mut desk = Desk::new(&tight(0, 9), true);
    let mut speeds = Vec::new();
    let mut folded = Vec::new();
    for part in 0..15 {
        let (from, before) = (desk.now, desk.stats());
        desk.write(part * 200..(part + 1) * 200);
        speeds.push(200.0 / (desk.now - from).0 as f64);
        folded.push(desk.stats().since(&before).slices_flushed);
    }
    let mean = |parts: std::ops::Range<usize>| speeds[parts.clone()].iter().sum::<f64>() / parts.len() as f64;
    let (cached, direct, folding) = (mean(0..5), mean(8..12), mean(12..15));
    assert!(cached > 1.4 * direct && folding < 0.7 * direct, "{speeds:?} {folded:?}");
    assert!(folded[..12].iter().all(|&n| n == 0) && folded[12..].iter().all(|&n| n > 0), "{folded:?}");
    desk.check(3000);
}

/// Data that is folded within its die does not cross the channel.
#[test]
fn folding_on_the_die_spares_the_channel() {
    let fold = |folds_on_die| -> (Ns, DeviceStats) {
        let mut config = own(FOLDS, 0, 4);
        config.slc = Some(SlcConfig { folds_on_die, ..SLC });
        // The channel is what limits.
        config.flash.transfer_block = Ns(1_000_000);
        let mut desk = Desk::new(&config, true);
        desk.write(0..config.cache_slices() * 4);
        let (from, before) = (desk.now, desk.stats());
        desk.settle();
        let took = desk.now - from;
        let did = desk.stats().since(&before);
        desk.check(config.cache_slices() * 4);
        (took, did)
    };
    let ((there, did), (over, same)) = (fold(true), fold(false));
    assert_eq!((did.slices_moved, did.flushed), (same.slices_moved, same.flushed));
    // Each slice would cross a channel twice.
    let channels = u64::from(device(1).geometry.channels);
    let least = Ns(did.slices_moved * 2 * 1_000_000 / channels * 9 / 10);
    assert!(over > there + least, "{over:?} over the channel, {there:?} without, {did:?}");
}

#[test]
fn a_map_in_slc_mode_takes_the_time_and_the_room_of_that_mode() {
    let with_map = |holds_map: bool, read: Ns| {
        let mut config = device(4);
        (config.slc, config.slc_cache) = (Some(SlcConfig { holds_map, read, ..SLC }), None);
        config.flash.map_read = read;
        config.ftl.map_changes = 16 * config.geometry.slices_per_unit();
        while let Err(e) = config.check() {
            match e.field {
                "ftl.spare_map_superblocks" => config.ftl.spare_map_superblocks += 1,
                "ftl.map_changes" => config.geometry.pages_per_block += 1,
                _ => panic!("{e}"),
            }
        }
        let mut desk = Desk::new(&config, false);
        for round in 0..4 {
            desk.write(0..4096);
            assert_eq!(desk.stats().no_space, 0, "round {round}");
        }
        desk.settle();
        desk.stack.device.check_consistency().unwrap();
        let stats = desk.stats();
        // A map page that is not in SRAM.
        let from = desk.now;
        one(&mut desk.stack, &mut desk.now, BlockOp::Read, 1, 1);
        let miss = desk.now - from;
        let on = desk.now + Ns::from_ms(1);
        desk.now = desk.stack.power_cycle(desk.now, on).ready_at;
        desk.now = desk.stack.start(desk.now).unwrap();
        desk.check(4096);
        (miss, stats)
    };
    let (slow, full) = with_map(false, Ns(50_000));
    let (fast, slc) = with_map(true, Ns(20_000));
    assert_eq!(slow - fast, Ns(30_000));
    assert_eq!(full.slc_erases, 0);
    assert!(slc.slc_erases > 0 && slc.slices_boosted == 0, "{slc:?}");
}
