// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the map in SRAM, and map pages that are read ahead: what a read of either takes, and what is counted.

use readpath_device::{DeviceConfig, Layout, SramTable};
use readpath_flash::{Exact, Lean};
use readpath_host::BlockOp;
use readpath_kit::Ns;
use readpath_stack::{Tags, Typed};
use readpath_testkit::{Checked, DELAYS, device, filled, latency, settle};

const BLOCKS: u32 = 12 * 1024;

/// A device without HPB, with `frames` of twelve map pages in SRAM.
fn with(frames: u32, map_runs_bytes: u32, map_read_ahead: u32) -> DeviceConfig {
    let mut c = device(BLOCKS);
    c.hpb = None;
    c.lus[0].hpb = false;
    DeviceConfig { map_cache_bytes: frames * 4096, map_runs_bytes, map_read_ahead, ..c }
}

/// What a read of one block takes with its entry in SRAM, and without.
fn hit_and_miss(c: &DeviceConfig) -> (u64, u64) {
    let around = DELAYS.to_link.0 + c.link.request.0 + c.link.response.0 + DELAYS.from_link.0;
    let hit = around + c.firmware.flash_op.0 + c.flash.read.0 + c.flash.transfer_block.0 + c.link.block.0;
    (hit, hit + c.firmware.flash_op.0 + c.flash.map_read.0 + c.flash.map_transfer.0)
}

#[test]
fn a_run_is_found_with_a_page_of_the_map_and_outlives_it() {
    let c = with(1, 200, 0);
    let (hit, miss) = hit_and_miss(&c);
    let (mut stack, mut now): (Checked<Exact>, Ns) =
        filled::<Exact, Tags, Typed>(&c, None, BLOCKS, Layout::Sequential, 1);
    let s = &mut stack;
    let took = [5, 1029, 70, 1023, 2047].map(|block| latency(s, &mut now, BlockOp::Read, block, 1));
    assert_eq!(took, [miss, miss, hit, hit, hit]);
    let stats = *s.device.stats();
    assert_eq!((stats.map_loads, stats.map_misses, stats.map_hits, stats.run_hits), (2, 2, 3, 3));
    // What the write buffer holds is newer than any run.
    latency(s, &mut now, BlockOp::Write, 40, 1);
    assert!(latency(s, &mut now, BlockOp::Read, 39, 3) > hit);
    let stats = *s.device.stats();
    assert_eq!((stats.buffer_hits, stats.run_hits, stats.map_loads), (1, 5, 2));
    // In flash it lies elsewhere: the longer side of the run stays.
    latency(s, &mut now, BlockOp::Flush, 0, 0);
    assert_eq!([40, 41].map(|block| latency(s, &mut now, BlockOp::Read, block, 1)), [hit, hit]);
    let stats = *s.device.stats();
    assert_eq!((stats.recent_hits, stats.run_hits, stats.map_loads), (1, 6, 2));
    assert_eq!(latency(s, &mut now, BlockOp::Read, 39, 1), miss);
    let runs = s.device.sram().into_iter().find(|(table, _)| *table == SramTable::MapRuns);
    assert_eq!(runs, Some((SramTable::MapRuns, 192)), "two sets of eight runs");
    let recovery = s.power_cycle(now, now + Ns::from_ms(1));
    now = s.start(recovery.ready_at).expect("the host finds the device again");
    let before = s.device.stats().map_loads;
    latency(s, &mut now, BlockOp::Read, 1029, 1);
    assert_eq!((s.device.stats().map_loads - before, s.payload.wrong), (1, 0), "SRAM was lost");
}

#[test]
fn pages_are_read_ahead_behind_the_request_and_counted() {
    let c = with(4, 0, 2);
    let (hit, miss) = hit_and_miss(&c);
    let (mut stack, mut now): (Checked<Lean>, Ns) =
        filled::<Lean, Tags, Typed>(&c, None, BLOCKS, Layout::Sequential, 1);
    let s = &mut stack;
    let mut page = |s: &mut Checked<Lean>, page: u32| {
        let took = latency(s, &mut now, BlockOp::Read, page * 1024 + 9, 1);
        settle(s, &mut now);
        took
    };
    // Nothing lies before page 0, and page 5 follows on nothing.
    assert_eq!([0, 5].map(|n| page(s, n)), [miss, miss]);
    assert_eq!((s.device.stats().map_loads, s.device.stats().map_loads_ahead), (2, 0));
    // Page 1 follows on page 0: two more are loaded, and found.
    assert_eq!([1, 2, 3].map(|n| page(s, n)), [miss, hit, hit]);
    let stats = *s.device.stats();
    assert_eq!((stats.map_loads, stats.map_loads_ahead, stats.map_ahead_unused), (5, 2, 0));
    // Pages 5 and 6 come with page 4 and go unused; the last page has none behind it.
    assert_eq!([4, 8, 0, 10, 11].map(|n| page(s, n)), [miss; 5]);
    let stats = *s.device.stats();
    assert_eq!((stats.map_loads - stats.map_loads_ahead, stats.map_loads_ahead, stats.map_ahead_unused), (8, 4, 2));
    assert_eq!((stats.map_hits, s.payload.wrong), (2, 0));
}
